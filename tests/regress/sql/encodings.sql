-- Cells are UTF-8: in a database that would take their bytes for other characters there is no extension.
SELECT current_database() AS here \gset
CREATE DATABASE encodings_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
CREATE DATABASE encodings_japanese ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0;
CREATE DATABASE encodings_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c encodings_latin1
\set SHOW_CONTEXT never
CREATE EXTENSION pg_sheet;
\c encodings_japanese
\set VERBOSITY sqlstate
CREATE EXTENSION pg_sheet;
-- this one takes them as they are
\c encodings_ascii
CREATE EXTENSION pg_sheet;
SELECT sheet.create('ascii', 10, 10) AS id \gset
SELECT sheet.set(:id, 'A1', E'\xC3\xA9') > 0 AS set;
SELECT sheet.get(:id, 'A1') = E'\xC3\xA9' AS same, octet_length(sheet.get(:id, 'A1'));
\c :here
DROP DATABASE encodings_latin1;
DROP DATABASE encodings_japanese;
DROP DATABASE encodings_ascii;
