-- The tables below name their access method; a session default of sheetlog must not apply to them.
SET LOCAL default_table_access_method = heap;

-- The access method.

CREATE FUNCTION sheet.sheetlog_handler(internal) RETURNS table_am_handler
	LANGUAGE c STRICT
	AS 'MODULE_PATHNAME', 'sheetlog_handler';
COMMENT ON FUNCTION sheet.sheetlog_handler(internal) IS
	'Handler of the table access method sheetlog.';

CREATE ACCESS METHOD sheetlog TYPE TABLE HANDLER sheet.sheetlog_handler;
COMMENT ON ACCESS METHOD sheetlog IS
	'append-only tables: UPDATE, DELETE and row locks are refused, everything else works as with '
	'heap';

CREATE FUNCTION sheet.sheetlog_directory_handler(internal) RETURNS index_am_handler
	LANGUAGE c STRICT
	AS 'MODULE_PATHNAME', 'sheetlog_directory_handler';
COMMENT ON FUNCTION sheet.sheetlog_directory_handler(internal) IS 'Handler of the index access method sheetlog_directory.';

CREATE ACCESS METHOD sheetlog_directory TYPE INDEX HANDLER sheet.sheetlog_directory_handler;
COMMENT ON ACCESS METHOD sheetlog_directory IS
	'maps keys to the pages that hold their rows: one entry per page and key, on two bigint '
	'columns (key, increasing position)';

CREATE OPERATOR CLASS sheet.directory_int8_ops DEFAULT FOR TYPE bigint USING sheetlog_directory AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >,
	FUNCTION 1 btint8cmp(bigint, bigint);
-- Keys are also compared with smaller integers, as literals are.
ALTER OPERATOR FAMILY sheet.directory_int8_ops USING sheetlog_directory ADD
	OPERATOR 1 < (bigint, integer),
	OPERATOR 2 <= (bigint, integer),
	OPERATOR 3 = (bigint, integer),
	OPERATOR 4 >= (bigint, integer),
	OPERATOR 5 > (bigint, integer),
	FUNCTION 1 (bigint, integer) btint84cmp(bigint, integer),
	OPERATOR 1 < (bigint, smallint),
	OPERATOR 2 <= (bigint, smallint),
	OPERATOR 3 = (bigint, smallint),
	OPERATOR 4 >= (bigint, smallint),
	OPERATOR 5 > (bigint, smallint),
	FUNCTION 1 (bigint, smallint) btint82cmp(bigint, smallint);

CREATE FUNCTION sheet.am_check(IN relation regclass, OUT block bigint, OUT "offset" integer, OUT what text)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_am_check';
COMMENT ON FUNCTION sheet.am_check(regclass) IS
	'Verifies every page and row of a table that uses sheetlog. Returns the damage: block, number '
	'of the row in it (null: the whole page) and a description. No rows: the table is sound. Does '
	'not block writers. Table owners.';
