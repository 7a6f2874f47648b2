-- Integrity: the log and the versions checked against each other.

CREATE FUNCTION sheet.fsck(INOUT sheet_id bigint DEFAULT NULL, IN "full" boolean DEFAULT false, IN repair boolean DEFAULT true,
	OUT severity text, OUT what text, OUT place text, OUT repaired boolean)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'sheet_fsck';
COMMENT ON FUNCTION sheet.fsck(bigint, boolean, boolean) IS
	'Checks one sheet (owner), or all with NULL (superuser), and returns a row per finding; one row "info, clean" when there is none. '
	'Brief: logs and versions are complete (lid = cid + 1), seq is gapless, sealed logs end in a commit record. '
	'Full: also every record decodes, every old content is what the log has before it, every version equals the replay of the log. '
	'With repair, what follows from the log is written again: heads of logs and versions, one or all. Damage that cannot be repaired is '
	'reported with its place, and nothing is overwritten. A second run after a repair is clean. '
	'Both: what is noted of clients of protocol v2 is of accounts that are here, and of numbers and times that can be. '
	'The state in which a commit was interrupted is named: C2 after its commit record, C3 after the next log was opened.';
