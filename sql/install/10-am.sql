-- The access method.

CREATE FUNCTION sheet.sheetlog_handler(internal) RETURNS table_am_handler
	LANGUAGE c STRICT
	AS 'MODULE_PATHNAME', 'sheetlog_handler';
COMMENT ON FUNCTION sheet.sheetlog_handler(internal) IS 'Handler of the table access method sheetlog.';

CREATE ACCESS METHOD sheetlog TYPE TABLE HANDLER sheet.sheetlog_handler;
COMMENT ON ACCESS METHOD sheetlog IS
	'append-only tables: UPDATE, DELETE and row locks are refused, everything else works as with heap';
