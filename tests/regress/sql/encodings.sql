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
-- the letters of A1 notation and the order of keys do not depend on the language of the database
\c :here
CREATE DATABASE encodings_turkish ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C' TEMPLATE template0;
\c encodings_turkish
CREATE EXTENSION pg_sheet;
SELECT upper('i') = 'I' AS english;
SELECT sheet.account_create('ITIR', NULL, NULL) AS itir, sheet.account_create('ıtır', NULL, NULL) AS small \gset
SELECT uid = :itir AS found FROM sheet.account_find('ITIR');
SELECT sheet.create('turkish', 10, 10, as_uid => :itir) AS id \gset
SELECT sheet.set(:id, 'i1', 'one') > 0 AS set, sheet.set(:id, '$I$1', 'two') > 0 AS set_again;
SELECT a1, new FROM sheet.history(:id, 'i1');
SELECT a1, new FROM sheet.history(:id, '$i$1');
SELECT sheet.get(:id, 'i1'), (SELECT string_agg(a1, ' ') FROM sheet.range(:id, 'h1:i2'));
SELECT count(*) FROM sheet.log WHERE sheet_id = :id AND a1 = 'I1' AND kind = 'set';
SELECT sheet.commit(:id);
SELECT count(sheet.set_property(:id, t, k, '1')) FROM (VALUES ('I1', 'i'), ('I1', 'I'), ('A1', 'z'), ('A1', 'Z'), ('b:B', 'a')) v(t, k);
SELECT key, target FROM sheet.properties(:id);
SELECT key, target FROM sheet.diff_properties(:id, 1);
ALTER DATABASE encodings_turkish SET synchronous_commit = 'OFF';
ALTER DATABASE encodings_turkish SET default_transaction_isolation = 'SERIALIZABLE';
SELECT what FROM sheet.doctor() WHERE what !~ '^fsync';
SELECT what FROM sheet.fsck(:id, true);
\c :here
DROP DATABASE encodings_latin1;
DROP DATABASE encodings_japanese;
DROP DATABASE encodings_ascii;
DROP DATABASE encodings_turkish;
