-- Cells: writing and reading them, at present and in the past.

CREATE FUNCTION sheet.set(sheet_id bigint, ref text, content text) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_set_ref';
COMMENT ON FUNCTION sheet.set(bigint, text, text) IS
	'Sets a cell, for example ''B7'' (null or empty: clears it), and returns the seq of the edit. '
	'Editors.';
CREATE FUNCTION sheet.set(sheet_id bigint, "row" integer, col integer, content text) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_set_place';
COMMENT ON FUNCTION sheet.set(bigint, integer, integer, text) IS
	'Sets the cell at row and column, both from 0 (null or empty: clears it), and returns the seq of the edit. Editors.';
CREATE FUNCTION sheet.set_range(sheet_id bigint, ref text, content text[], as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_set_range';
COMMENT ON FUNCTION sheet.set_range(bigint, text, text[], bigint) IS
	'Sets a rectangle with upper left corner ref from an array of rows (nulls clear), and returns '
	'the last seq. Editors.';

CREATE FUNCTION sheet.insert_rows(sheet_id bigint, at integer, n integer DEFAULT 1, as_uid bigint DEFAULT NULL)
	RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_insert_rows';
COMMENT ON FUNCTION sheet.insert_rows(bigint, integer, integer, bigint) IS
	'Inserts n empty rows before row at, from 0, and returns the last seq. 54000: non-empty rows '
	'would leave the sheet. Editors.';
CREATE FUNCTION sheet.delete_rows(sheet_id bigint, at integer, n integer DEFAULT 1, as_uid bigint DEFAULT NULL)
	RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_delete_rows';
COMMENT ON FUNCTION sheet.delete_rows(bigint, integer, integer, bigint) IS
	'Deletes n rows from row at on, from 0, and returns the last seq. The log keeps their content. '
	'Editors.';
CREATE FUNCTION sheet.insert_columns(sheet_id bigint, at integer, n integer DEFAULT 1, as_uid bigint DEFAULT NULL)
	RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_insert_columns';
COMMENT ON FUNCTION sheet.insert_columns(bigint, integer, integer, bigint) IS
	'Inserts n empty columns before column at, from 0, and returns the last seq. 54000: non-empty '
	'columns would leave the sheet. Editors.';
CREATE FUNCTION sheet.delete_columns(sheet_id bigint, at integer, n integer DEFAULT 1, as_uid bigint DEFAULT NULL)
	RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_delete_columns';
COMMENT ON FUNCTION sheet.delete_columns(bigint, integer, integer, bigint) IS
	'Deletes n columns from column at on, from 0, and returns the last seq. The log keeps their '
	'content. Editors.';

CREATE FUNCTION sheet.get(sheet_id bigint, ref text) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_get';
COMMENT ON FUNCTION sheet.get(bigint, text) IS 'The content of a cell; null: empty.';

CREATE FUNCTION sheet.range(sheet_id bigint, ref text DEFAULT NULL, formulas boolean DEFAULT false)
	RETURNS TABLE ("row" integer, col integer, a1 text, content text, style text, value text, stale boolean)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_range';
COMMENT ON FUNCTION sheet.range(bigint, text, boolean) IS
	'The non-empty cells of a range such as A1:C10, B:D or 3:5 (null: of the sheet), in reading '
	'order, and those that an array fills. value: what the cell shows: of a formula the value that was '
	'computed last, or #BUSY! if none was. stale: the sheet has changed since. formulas: value is the text '
	'of a formula, and cells that arrays fill are left out.';

CREATE FUNCTION sheet.at(sheet_id bigint, version_id bigint)
	RETURNS TABLE ("row" integer, col integer, a1 text, content text, style text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_at';
COMMENT ON FUNCTION sheet.at(bigint, bigint) IS
	'The cells of a version. 42704: there is no version with that number.';

CREATE FUNCTION sheet.at(sheet_id bigint, "time" timestamptz)
	RETURNS TABLE ("row" integer, col integer, a1 text, content text, style text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_at_time';
COMMENT ON FUNCTION sheet.at(bigint, timestamptz) IS
	'The cells at a time, with the edits of that microsecond; none before the sheet was created. '
	'now(), and a time that is not before the start of the statement, means the present. 42704: that '
	'state has been trimmed.';

CREATE FUNCTION sheet.diff(sheet_id bigint, version_id_a bigint, version_id_b bigint DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS TABLE ("row" integer, col integer, a1 text, old text, new text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_diff';
COMMENT ON FUNCTION sheet.diff(bigint, bigint, bigint, bigint) IS
	'The cells whose content differs between two versions; version_id_b null: between the version '
	'and now.';

-- ---- properties ----

CREATE FUNCTION sheet.set_property(sheet_id bigint, target text, key text, value jsonb, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_set_property';
COMMENT ON FUNCTION sheet.set_property(bigint, text, text, jsonb, bigint) IS
	'Sets a property of a cell, a range, whole rows or columns, such as B7, A1:C10, 3:5 or B:D, or '
	'of the sheet (null). A value that is null removes it. Returns the seq of the edit; if nothing '
	'changed, of the sheet. Editors.';

CREATE FUNCTION sheet.properties(sheet_id bigint)
	RETURNS TABLE (target text, row0 integer, col0 integer, row1 integer, col1 integer, key text, value jsonb, seq bigint, uid bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_properties';
COMMENT ON FUNCTION sheet.properties(bigint) IS
	'The properties of the sheet, by key and target, with the last edit of each. target: null for '
	'the sheet itself; row0 and row1 (col0 and col1) are null for all rows (columns). Viewers.';

CREATE FUNCTION sheet.properties(sheet_id bigint, version_id bigint)
	RETURNS TABLE (target text, row0 integer, col0 integer, row1 integer, col1 integer, key text, value jsonb, seq bigint, uid bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_properties_version';
COMMENT ON FUNCTION sheet.properties(bigint, bigint) IS
	'The properties of a version. 42704: there is no version with that number.';

CREATE FUNCTION sheet.properties(sheet_id bigint, "time" timestamptz)
	RETURNS TABLE (target text, row0 integer, col0 integer, row1 integer, col1 integer, key text, value jsonb, seq bigint, uid bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_properties_time';
COMMENT ON FUNCTION sheet.properties(bigint, timestamptz) IS
	'The properties at a time, with the edits of that microsecond; see sheet.at(). 42704: that state '
	'has been trimmed.';

CREATE FUNCTION sheet.diff_properties(sheet_id bigint, version_id_a bigint, version_id_b bigint DEFAULT NULL)
	RETURNS TABLE (target text, key text, old jsonb, new jsonb)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	-- A comparison of rows treats nulls as values.
	RETURN QUERY WITH a AS (SELECT p.* FROM sheet.properties(sheet_id, version_id_a) p),
		b AS (SELECT p.* FROM sheet.properties(sheet_id) p WHERE version_id_b IS NULL
			UNION ALL SELECT p.* FROM sheet.properties(sheet_id, coalesce(version_id_b, version_id_a)) p WHERE version_id_b IS NOT NULL)
		SELECT coalesce(a.target, b.target), coalesce(a.key, b.key), a.value, b.value
		FROM a FULL JOIN b ON coalesce(a.target, '') = coalesce(b.target, '') AND a.key = b.key
		WHERE a.value IS DISTINCT FROM b.value
		ORDER BY coalesce(a.key, b.key) COLLATE "C", coalesce(a.target, b.target) COLLATE "C" NULLS FIRST;
END
$$;
COMMENT ON FUNCTION sheet.diff_properties(bigint, bigint, bigint) IS
	'The properties that differ between two versions; version_id_b null: between the version and '
	'now.';

-- Gives the planner the number of rows, and loads the library before planning.
CREATE FUNCTION sheet.log_edits_support(internal) RETURNS internal
	LANGUAGE c STRICT IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_log_edits_support';
COMMENT ON FUNCTION sheet.log_edits_support(internal) IS 'Internal: for the planner.';
-- A named type: the row type of RETURNS TABLE would be built for each column of the view in each query.
CREATE TYPE sheet.logged_edit AS (sheet_id bigint, seq bigint, segment_id bigint, at timestamptz, uid bigint,
	username text COLLATE "C", origin bigint, kind text, "row" integer, col integer, a1 text, old text, new text, style text,
	target text, key text);
COMMENT ON TYPE sheet.logged_edit IS 'A row of sheet.log_edits().';
CREATE FUNCTION sheet.log_edits(sheet_id bigint)
	RETURNS SETOF sheet.logged_edit
	LANGUAGE c STABLE PARALLEL UNSAFE SUPPORT sheet.log_edits_support AS 'MODULE_PATHNAME', 'sheet_log_edits';
COMMENT ON FUNCTION sheet.log_edits(bigint) IS
	'All edits of the sheet. Conditions on the columns limit what is read of the log. Viewers; in '
	'the trash owners.';
CREATE FUNCTION sheet.log_edits()
	RETURNS SETOF sheet.logged_edit
	LANGUAGE c STABLE PARALLEL UNSAFE SUPPORT sheet.log_edits_support AS 'MODULE_PATHNAME', 'sheet_log_edits';
COMMENT ON FUNCTION sheet.log_edits() IS
	'All edits of every sheet in sheet.list; see the view sheet.log.';

-- ---- tables and CSV ----

CREATE FUNCTION sheet.as_table(sheet_id bigint, header boolean DEFAULT true, formulas boolean DEFAULT false,
	errors_as_null boolean DEFAULT false) RETURNS SETOF record
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_as_table';
COMMENT ON FUNCTION sheet.as_table(bigint, boolean, boolean, boolean) IS
	'The sheet as a table with the columns that the caller lists: AS t(name text, height numeric). '
	'With header, the first row is omitted. Formulas are their values; with formulas, their texts. '
	'errors_as_null: an error such as #DIV/0! is null in a column that is not of a type for texts, '
	'where it otherwise raises the error of the type.';

CREATE FUNCTION sheet.column_names(sheet_id bigint, header boolean, formulas boolean DEFAULT false) RETURNS text[]
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_column_names';
COMMENT ON FUNCTION sheet.column_names(bigint, boolean, boolean) IS
	'Distinct names for the used columns: the contents of the first row with header; otherwise, '
	'and where it is empty, A, B, C, ...';

CREATE FUNCTION sheet.create_view(sheet_id bigint, view name, header boolean DEFAULT true, formulas boolean DEFAULT false) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
	columns text;
BEGIN
	-- The view is created in the current schema, so the path is the caller's.
	SELECT pg_catalog.string_agg(pg_catalog.format('%I text', n), ', ' ORDER BY i)
		INTO columns FROM pg_catalog.unnest(sheet.column_names(sheet_id, header, formulas)) WITH ORDINALITY c(n, i);
	IF columns IS NULL THEN
		RAISE EXCEPTION 'sheet % is empty', sheet_id USING ERRCODE = '22023', DETAIL = 'A view needs at least one column.';
	END IF;
	EXECUTE pg_catalog.format('CREATE VIEW %I AS SELECT * FROM sheet.as_table(%L::pg_catalog.int8, %L::pg_catalog.bool, '
		'%L::pg_catalog.bool) AS t(%s)', view, sheet_id, header, formulas, columns);
END
$$;
COMMENT ON FUNCTION sheet.create_view(bigint, name, boolean, boolean) IS
	'Creates a view of the sheet in the current schema. The contents of the first row are the '
	'column names, all of type text. Formulas are their values; with formulas, their texts.';

CREATE FUNCTION sheet.import_csv(name text, csv text, format text DEFAULT 'csv', separator text DEFAULT NULL, quote text DEFAULT '"',
	lenient boolean DEFAULT false, decimal_point text DEFAULT '.', formulas boolean DEFAULT false, date_order text DEFAULT NULL,
	as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_csv';
COMMENT ON FUNCTION sheet.import_csv(text, text, text, text, text, boolean, text, boolean, text, bigint) IS
	'Creates a sheet from CSV, TSV or JSON Lines, and returns its id. Formulas, and codes such as 1E5, stay texts unless '
	'formulas is true.';
CREATE FUNCTION sheet.import_csv_into(sheet_id bigint, ref text, csv text, format text DEFAULT 'csv', separator text DEFAULT NULL, quote text DEFAULT '"',
	lenient boolean DEFAULT false, decimal_point text DEFAULT '.', formulas boolean DEFAULT false, date_order text DEFAULT NULL,
	as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_csv_into';
COMMENT ON FUNCTION sheet.import_csv_into(bigint, text, text, text, text, text, boolean, text, boolean, text, bigint) IS
	'Sets cells from CSV, TSV or JSON Lines, with ref as the upper left corner, and returns the last seq. Formulas, and '
	'codes such as 1E5, stay texts unless formulas is true. Editors.';
CREATE FUNCTION sheet.import_file(path text, name text DEFAULT NULL, into_sheet bigint DEFAULT NULL, ref text DEFAULT 'A1', is_program boolean DEFAULT false,
	format text DEFAULT 'csv', separator text DEFAULT NULL, quote text DEFAULT '"',
	lenient boolean DEFAULT false, decimal_point text DEFAULT '.', formulas boolean DEFAULT false, date_order text DEFAULT NULL,
	as_uid bigint DEFAULT NULL, OUT sheet_id bigint, OUT seq bigint)
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_file';
COMMENT ON FUNCTION sheet.import_file(text, text, bigint, text, boolean, text, text, text, boolean, text, boolean, text, bigint) IS
	'Creates a sheet with this name from a file of the server, or from the output of a program there, in UTF-8; or sets the '
	'cells of into_sheet from ref on. The options are those of import_csv(). Needs the rights that COPY needs: the role '
	'pg_read_server_files or pg_execute_server_program.';
CREATE FUNCTION sheet.import_rows(sheet_id bigint, query text, ref text DEFAULT 'A1', header boolean DEFAULT false,
	formulas boolean DEFAULT false, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_rows';
COMMENT ON FUNCTION sheet.import_rows(bigint, text, text, boolean, boolean, bigint) IS
	'Sets cells from the rows of a query, with ref as the upper left corner, and returns the last seq. With header, the '
	'first row has the names of the columns. A null clears its cell. Texts stay texts unless formulas is true. The query '
	'runs with the rights of the caller, and ends before the sheet is locked. Editors.';
CREATE FUNCTION sheet.export_csv(sheet_id bigint, ref text DEFAULT NULL, escape_formulas boolean DEFAULT false, format text DEFAULT 'csv',
	formulas boolean DEFAULT false) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_export_csv';
COMMENT ON FUNCTION sheet.export_csv(bigint, text, boolean, text, boolean) IS
	'The contents of the range (null: the sheet) as csv (RFC 4180) with CRLF, as tsv (the same with tabs), or as '
	'jsonl (an array of strings and nulls for each row). Formulas are their values; with formulas, '
	'their texts. escape_formulas, not of jsonl: puts an '
	'apostrophe before contents that a spreadsheet program would take for a formula. At most '
	'100 million fields may be empty (54000).';
CREATE FUNCTION sheet.read_csv(sheet_id bigint, max_bytes integer, ref text DEFAULT NULL, escape_formulas boolean DEFAULT false,
	format text DEFAULT 'csv', formulas boolean DEFAULT false) RETURNS SETOF text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_read_csv';
COMMENT ON FUNCTION sheet.read_csv(bigint, integer, text, boolean, text, boolean) IS
	'The text of export_csv(), in pieces of about max_bytes, in order. Viewers; '
	'gateways for all their users.';

-- ---- imports in parts, for gateways ----

-- Unlogged: an import that a crash interrupts is begun anew by its client.
CREATE SEQUENCE sheet.import_id_seq;
CREATE UNLOGGED TABLE sheet.import (
	import_id bigint PRIMARY KEY DEFAULT nextval('sheet.import_id_seq'),
	uid bigint NOT NULL,
	name text NOT NULL,
	link_role text,
	parts integer NOT NULL DEFAULT 0,
	begun_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX import_begun_idx ON sheet.import (begun_at);
COMMENT ON TABLE sheet.import IS 'CSV and workbooks that are being uploaded, to become cells; workbooks that are made.';
COMMENT ON COLUMN sheet.import.name IS 'of the new sheet; empty: it is for one that is there';
COMMENT ON COLUMN sheet.import.parts IS 'number of parts that have come';
CREATE UNLOGGED TABLE sheet.import_part (
	import_id bigint NOT NULL,
	part integer NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (import_id, part)
);
ALTER TABLE sheet.import_part ALTER data SET STORAGE EXTERNAL, ALTER import_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.import_part IS 'The bytes of imports, in parts of at most 262144.';

CREATE FUNCTION sheet.import_begin(name text, link_role text, as_uid bigint) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_begin';
COMMENT ON FUNCTION sheet.import_begin(text, text, bigint) IS
	'Begins the import of CSV, in parts, into a new sheet of the account, or (name null) into one that is there, and '
	'returns its number. For gateways.';
CREATE FUNCTION sheet.import_put(import_id bigint, part integer, data bytea) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_put';
COMMENT ON FUNCTION sheet.import_put(bigint, integer, bytea) IS
	'Stores a part, of at most 262144 bytes. Parts are numbered from 0, and come in order. For gateways.';
CREATE FUNCTION sheet.import_end(import_id bigint, into_sheet bigint DEFAULT NULL, ref text DEFAULT NULL, format text DEFAULT 'csv', separator text DEFAULT NULL, quote text DEFAULT '"',
	lenient boolean DEFAULT false, decimal_point text DEFAULT '.', formulas boolean DEFAULT false, date_order text DEFAULT NULL,
	OUT sheet_id bigint, OUT seq bigint, OUT taken_separator text, OUT forgiven bigint, OUT forgiven_line bigint)
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_end';
COMMENT ON FUNCTION sheet.import_end(bigint, bigint, text, text, text, text, boolean, text, boolean, text) IS
	'Creates the sheet from the parts, or sets cells of into_sheet, with ref as the upper left corner (null: A1, and '
	'the sheet is empty, so that empty fields set nothing); removes the parts. Returns the sheet, the last seq, the separator, and how many fields had misplaced quotes, with the line of '
	'the first one. For gateways.';
CREATE FUNCTION sheet.import_abort(import_id bigint) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_import_abort';
COMMENT ON FUNCTION sheet.import_abort(bigint) IS 'Removes the parts of an import. For gateways.';
