-- Integrity: the log and the versions checked against each other.

CREATE FUNCTION sheet.fsck(INOUT sheet_id bigint DEFAULT NULL, IN "full" boolean DEFAULT false, IN repair boolean DEFAULT true,
	OUT severity text, OUT what text, OUT place text, OUT repaired boolean)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'sheet_fsck';
COMMENT ON FUNCTION sheet.fsck(bigint, boolean, boolean) IS
	'Checks one sheet (owner), or all with NULL (superuser), and returns a row per finding; one row "info, clean" when there is none. '
	'Brief: logs and versions are complete (segment_id = version_id + 1), seq is gapless, sealed logs end in a commit record. '
	'Full: also every record decodes, every old content is what the log has before it, every version equals the replay of the log. '
	'With repair, what follows from the log is written again: heads of logs and versions, one or all. Damage that cannot be repaired is '
	'reported with its place, and nothing is overwritten. A second run after a repair is clean. '
	'A sheet with findings is locked for its repair, to the end of the transaction; others are not. With NULL no more sheets are repaired '
	'than max_locks_per_transaction: sheet.fsck_all repairs any number. '
	'Both: what is noted of clients of protocol v2 is of accounts that are here, and of numbers and times that can be. '
	'The state in which a commit was interrupted is named: C2 after its commit record, C3 after the next log was opened.';

CREATE PROCEDURE sheet.fsck_all("full" boolean DEFAULT false, repair boolean DEFAULT true, after bigint DEFAULT NULL)
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'sheet_fsck_all';
COMMENT ON PROCEDURE sheet.fsck_all(boolean, boolean, bigint) IS
	'Checks all sheets in the order of their ids, those behind "after", as sheet.fsck does, and commits after each. Superusers. '
	'Findings are warnings, one for each sheet. sheet.fsck_progress shows how far it has come; an error or a cancellation tells where to go on.';

CREATE FUNCTION sheet.fsck_progress_read(OUT pid integer, OUT datid oid, OUT "full" boolean, OUT repair boolean, OUT sheets_total bigint,
	OUT sheets_done bigint, OUT sheet_id bigint, OUT findings bigint, OUT repaired bigint)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'sheet_fsck_progress';
COMMENT ON FUNCTION sheet.fsck_progress_read() IS 'See the view sheet.fsck_progress.';
CREATE VIEW sheet.fsck_progress AS
	SELECT p.pid, p.datid, d.datname, p."full", p.repair, p.sheets_total, p.sheets_done, p.sheet_id, p.findings, p.repaired
	FROM sheet.fsck_progress_read() p LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) p.datid;
COMMENT ON VIEW sheet.fsck_progress IS
	'A row for each session that checks all sheets, in any database of this server: CALL sheet.fsck_all() or sheet.fsck(NULL).';
COMMENT ON COLUMN sheet.fsck_progress.sheets_total IS 'sheets that there were at the beginning, behind "after"';
COMMENT ON COLUMN sheet.fsck_progress.sheet_id IS
	'the sheet that is being checked: CALL sheet.fsck_all(after => sheet_id - 1) goes on with it';
COMMENT ON COLUMN sheet.fsck_progress.repaired IS 'findings that were repaired';
REVOKE ALL ON FUNCTION sheet.fsck_progress_read() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sheet.fsck_progress_read() TO pg_monitor;
GRANT SELECT ON sheet.fsck_progress TO pg_monitor;
