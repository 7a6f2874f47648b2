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
	'number. Both also check the records of protocol v2 clients (the account exists, numbers and '
	'times are possible), and report members, owners, books and their tabs, files and parts of files that belong to nothing, '
	'as after an incomplete restore.';

CREATE FUNCTION sheet.fsck_catalog(only_sheet bigint) RETURNS TABLE (sheet_id bigint, what text, place text)
	LANGUAGE sql STABLE AS $$
	SELECT s.sheet_id, 'its owner is gone', 'account ' || s.owner FROM sheet.sheet s
	WHERE (only_sheet IS NULL OR s.sheet_id = only_sheet) AND s.owner IS NOT NULL
		AND NOT EXISTS (SELECT FROM sheet.account a WHERE a.uid = s.owner)
	UNION ALL
	SELECT s.sheet_id, 'its owner is not among its members', 'account ' || s.owner FROM sheet.sheet s
	WHERE (only_sheet IS NULL OR s.sheet_id = only_sheet) AND s.owner IS NOT NULL
		AND NOT EXISTS (SELECT FROM sheet.member m WHERE m.sheet_id = s.sheet_id AND m.uid = s.owner AND m.role = 'owner')
	UNION ALL
	SELECT m.sheet_id, 'a member is gone', 'account ' || m.uid FROM sheet.member m
	WHERE (only_sheet IS NULL OR m.sheet_id = only_sheet) AND NOT EXISTS (SELECT FROM sheet.account a WHERE a.uid = m.uid)
	UNION ALL
	SELECT f.sheet_id, format('%s of %s bytes are stored', p.bytes, f.size), format('file "%s"', f.name) FROM sheet.file f,
		LATERAL (SELECT coalesce(sum(length(p.data)), 0) AS bytes FROM sheet.file_part p WHERE p.upload_id = f.upload_id) p
	WHERE (only_sheet IS NULL OR f.sheet_id = only_sheet) AND f.size <> p.bytes
	UNION ALL
	SELECT r.sheet_id, 'the sheet is gone', string_agg(DISTINCT r.kind, ', ') FROM (
		SELECT m.sheet_id, 'members' FROM sheet.member m
		UNION ALL SELECT f.sheet_id, 'files' FROM sheet.file f
		UNION ALL SELECT g.sheet_id, 'segments' FROM sheet.segment g
		UNION ALL SELECT v.sheet_id, 'versions' FROM sheet.version v
		UNION ALL SELECT l.sheet_id, 'labels of versions' FROM sheet.version_label l
		UNION ALL SELECT p.sheet_id, 'properties' FROM sheet.property_set p
		UNION ALL SELECT o.sheet_id, 'ownership' FROM sheet.ownership o
		UNION ALL SELECT l.sheet_id, 'links' FROM sheet.link l
		UNION ALL SELECT l.sheet_id, 'rectangles of links' FROM sheet.link_rect l
		UNION ALL SELECT w.sheet_id, 'webhooks' FROM sheet.webhook w
		UNION ALL SELECT t.sheet_id, 'tabs of books' FROM sheet.book_tab t
		UNION ALL SELECT t.sheet_id, 'trims' FROM sheet.log_trim t) r (sheet_id, kind)
	WHERE only_sheet IS NULL AND NOT EXISTS (SELECT FROM sheet.sheet s WHERE s.sheet_id = r.sheet_id) GROUP BY r.sheet_id
	UNION ALL
	SELECT t.sheet_id, 'its book is gone', 'book ' || t.book_id FROM sheet.book_tab t
	WHERE (only_sheet IS NULL OR t.sheet_id = only_sheet) AND NOT EXISTS (SELECT FROM sheet.book b WHERE b.book_id = t.book_id)
	UNION ALL
	SELECT t.sheet_id, 'its book has another owner', 'book ' || t.book_id FROM sheet.book_tab t
		JOIN sheet.sheet s ON s.sheet_id = t.sheet_id JOIN sheet.book b ON b.book_id = t.book_id
	WHERE (only_sheet IS NULL OR t.sheet_id = only_sheet) AND s.owner IS DISTINCT FROM b.owner
	UNION ALL
	SELECT NULL, 'members of a book that is gone', 'book ' || m.book_id FROM (SELECT DISTINCT m.book_id FROM sheet.book_member m) m
	WHERE only_sheet IS NULL AND NOT EXISTS (SELECT FROM sheet.book b WHERE b.book_id = m.book_id)
	UNION ALL
	SELECT NULL, 'a member of a book is gone', format('book %s, account %s', m.book_id, m.uid) FROM sheet.book_member m
	WHERE only_sheet IS NULL AND NOT EXISTS (SELECT FROM sheet.account a WHERE a.uid = m.uid)
	UNION ALL
	SELECT NULL, 'the owner of a book is not among its members', format('book %s, account %s', b.book_id, b.owner) FROM sheet.book b
	WHERE only_sheet IS NULL AND b.owner IS NOT NULL
		AND NOT EXISTS (SELECT FROM sheet.book_member m WHERE m.book_id = b.book_id AND m.uid = b.owner AND m.role = 'owner')
	UNION ALL
	SELECT NULL, 'parts of a file that is gone are stored', 'upload ' || p.upload_id FROM (SELECT DISTINCT p.upload_id FROM sheet.file_part p) p
	WHERE only_sheet IS NULL AND NOT EXISTS (SELECT FROM sheet.file f WHERE f.upload_id = p.upload_id)
	ORDER BY 1, 3, 2
$$;
COMMENT ON FUNCTION sheet.fsck_catalog(bigint) IS
	'Internal: members, owners, books, files and other rows, of one sheet or of all, that refer to what does not exist.';

CREATE PROCEDURE sheet.fsck_all("full" boolean DEFAULT false, repair boolean DEFAULT true, after bigint DEFAULT NULL)
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'sheet_fsck_all';
COMMENT ON PROCEDURE sheet.fsck_all(boolean, boolean, bigint) IS
	'Checks all sheets with ids above "after", in the order of their ids, as sheet.fsck does, and '
	'commits after each. Each sheet with findings raises a warning. A repair also adds the entries of '
	'the timer that are missing after a parallel restore. sheet.fsck_progress shows the '
	'progress; an error or a cancellation shows where to continue. Superusers.';

CREATE FUNCTION sheet.fsck_progress_read(OUT pid integer, OUT datid oid, OUT "full" boolean, OUT repair boolean, OUT sheets_total bigint,
	OUT sheets_done bigint, OUT sheet_id bigint, OUT findings bigint, OUT repaired bigint)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'sheet_fsck_progress';
COMMENT ON FUNCTION sheet.fsck_progress_read() IS 'See the view sheet.fsck_progress.';
CREATE VIEW sheet.fsck_progress AS
	SELECT p.pid, p.datid, d.datname, p."full", p.repair, p.sheets_total, p.sheets_done, p.sheet_id, p.findings, p.repaired
	FROM sheet.fsck_progress_read() p LEFT JOIN pg_database d ON d.oid = p.datid;
COMMENT ON VIEW sheet.fsck_progress IS
	'A row for each session that checks all sheets, in any database of this server: CALL '
	'sheet.fsck_all() or sheet.fsck(NULL).';
COMMENT ON COLUMN sheet.fsck_progress.sheets_total IS 'number of sheets above "after" at the start';
COMMENT ON COLUMN sheet.fsck_progress.sheet_id IS
	'the sheet that is being checked; CALL sheet.fsck_all(after => sheet_id - 1) continues with it';
COMMENT ON COLUMN sheet.fsck_progress.repaired IS 'repaired findings';
