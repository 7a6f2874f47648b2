-- Integrity: checks of the log and the versions against each other.

CREATE FUNCTION sheet.fsck(INOUT sheet_id bigint DEFAULT NULL, IN "full" boolean DEFAULT false, IN repair boolean DEFAULT true,
	OUT severity text, OUT what text, OUT place text, OUT repaired boolean)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'sheet_fsck';
COMMENT ON FUNCTION sheet.fsck(bigint, boolean, boolean) IS
	'Checks one sheet (owner), or all with null (superuser). Returns a row per finding, or one row '
	'"info, clean". Brief: segments and versions are complete (segment_id = version_id + 1), seq '
	'has no gaps, closed segments end in a commit record. Full: also every record can be decoded, '
	'every old content is the one before it in the log, every version and the present properties '
	'equal the replay of the log. With repair, rows of segments and versions, and properties, are '
	'rewritten from the log. Damage that '
	'cannot be repaired is reported with its place, and nothing is overwritten. A sheet with '
	'findings is locked for its repair until the end of the transaction; others are not. With '
	'null, at most max_locks_per_transaction sheets are repaired; sheet.fsck_all repairs any '
	'number. Both also check the records of protocol v2 clients: the account exists, numbers and '
	'times are possible.';

CREATE PROCEDURE sheet.fsck_all("full" boolean DEFAULT false, repair boolean DEFAULT true, after bigint DEFAULT NULL)
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'sheet_fsck_all';
COMMENT ON PROCEDURE sheet.fsck_all(boolean, boolean, bigint) IS
	'Checks all sheets with ids above "after", in the order of their ids, as sheet.fsck does, and '
	'commits after each. Each sheet with findings raises a warning. sheet.fsck_progress shows the '
	'progress; an error or a cancellation shows where to continue. Superusers.';

CREATE FUNCTION sheet.fsck_progress_read(OUT pid integer, OUT datid oid, OUT "full" boolean, OUT repair boolean, OUT sheets_total bigint,
	OUT sheets_done bigint, OUT sheet_id bigint, OUT findings bigint, OUT repaired bigint)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'sheet_fsck_progress';
COMMENT ON FUNCTION sheet.fsck_progress_read() IS 'See the view sheet.fsck_progress.';
CREATE VIEW sheet.fsck_progress AS
	SELECT p.pid, p.datid, d.datname, p."full", p.repair, p.sheets_total, p.sheets_done, p.sheet_id, p.findings, p.repaired
	FROM sheet.fsck_progress_read() p LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) p.datid;
COMMENT ON VIEW sheet.fsck_progress IS
	'A row for each session that checks all sheets, in any database of this server: CALL '
	'sheet.fsck_all() or sheet.fsck(NULL).';
COMMENT ON COLUMN sheet.fsck_progress.sheets_total IS 'number of sheets above "after" at the start';
COMMENT ON COLUMN sheet.fsck_progress.sheet_id IS
	'the sheet that is being checked; CALL sheet.fsck_all(after => sheet_id - 1) continues with it';
COMMENT ON COLUMN sheet.fsck_progress.repaired IS 'repaired findings';
REVOKE ALL ON FUNCTION sheet.fsck_progress_read() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sheet.fsck_progress_read() TO pg_monitor;
GRANT SELECT ON sheet.fsck_progress TO pg_monitor;
