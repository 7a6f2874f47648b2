-- Views over the sheets in the list of the current role's account (for superusers over all sheets).

-- OFFSET 0: each sheet is looked up separately, so the cost does not depend on the number of sheets.
CREATE VIEW sheet.listed AS
	SELECT m.uid, m.sheet_id, s.name, s.owner AS owner_uid, s.role, s.trashed_at, s.link_role, s.init_cols, s.created_at, m.opened_at
	FROM sheet.member m, LATERAL (SELECT s.*, sheet.member_role(m.role, m.link_no, s.link_role, s.link_digest, s.link_no) AS role
		FROM sheet.sheet s WHERE s.sheet_id = m.sheet_id OFFSET 0) s
	WHERE (m.role IS NOT NULL OR m.link_no IS NOT NULL) AND s.role IS NOT NULL AND (s.trashed_at IS NULL OR s.role = 'owner');
COMMENT ON VIEW sheet.listed IS 'Internal: the sheets in the lists of all accounts.';

CREATE VIEW sheet.list WITH (security_barrier) AS
	SELECT s.sheet_id, s.name, o.name AS owner, s.role, s.trashed_at IS NOT NULL AS trashed, s.link_role, s.created_at, s.opened_at
	FROM sheet.listed s LEFT JOIN LATERAL (SELECT a.name FROM sheet.account a WHERE a.uid = s.owner_uid OFFSET 0) o ON true
	WHERE NOT (SELECT sheet.sees_all()) AND s.uid = (SELECT sheet.current_uid())
	UNION ALL
	SELECT s.sheet_id, s.name, o.name, 'owner', s.trashed_at IS NOT NULL, s.link_role, s.created_at, NULL
	FROM sheet.sheet s LEFT JOIN sheet.account o ON o.uid = s.owner
	WHERE (SELECT sheet.sees_all());
COMMENT ON VIEW sheet.list IS
	'Sheets that the current role owns, that are shared with it or that it has opened by a link.';
COMMENT ON COLUMN sheet.list.role IS
	'role of the current role''s account: viewer, commenter, editor or owner';
COMMENT ON COLUMN sheet.list.link_role IS
	'role of every signed-in account that has opened the link; null: no link';
COMMENT ON COLUMN sheet.list.opened_at IS
	'when the account last opened it, to the hour; null for superusers';

CREATE VIEW sheet.links WITH (security_barrier) AS
	SELECT s.sheet_id, l.*
	FROM sheet.list s, LATERAL sheet.links(s.sheet_id) l WHERE s.role = 'owner';
COMMENT ON VIEW sheet.links IS 'The share links of the sheets that the current role owns; see sheet.links().';

CREATE VIEW sheet.cells WITH (security_barrier) AS
	SELECT l.sheet_id, r."row", r.col, r.a1, r.content, r.style, r.value, r.stale
	FROM sheet.list l, LATERAL sheet.range(l.sheet_id) r WHERE NOT l.trashed;
COMMENT ON VIEW sheet.cells IS
	'The cells of every sheet in sheet.list that is not in the trash; see sheet.range().';
COMMENT ON COLUMN sheet.cells."row" IS 'from 0';
COMMENT ON COLUMN sheet.cells.col IS 'from 0';
COMMENT ON COLUMN sheet.cells.a1 IS 'the cell in A1 notation';
COMMENT ON COLUMN sheet.cells.content IS 'as typed: a value, or a formula if it starts with =';
COMMENT ON COLUMN sheet.cells.style IS 'JSON; null: none';
COMMENT ON COLUMN sheet.cells.value IS 'what the cell shows: of a formula the value that was computed last, or #BUSY!';
COMMENT ON COLUMN sheet.cells.stale IS 'the sheet has changed since the value was computed';

-- log_edits() returns only sheets of sheet.list, those in the trash only to their owners. The view
-- itself hides no row of it, so a security barrier would protect nothing. It would make PostgreSQL
-- plan the view as a subquery, into which conditions of joins are not pushed.
CREATE VIEW sheet.log AS
	SELECT e.sheet_id, e.seq, e.segment_id, e.at, e.uid, e.username, e.origin, e.kind, e."row", e.col, e.a1, e.old, e.new, e.style,
		e.target, e.key
	FROM sheet.log_edits() e;
COMMENT ON VIEW sheet.log IS 'All edits that were not trimmed, of every sheet in sheet.list.';
COMMENT ON COLUMN sheet.log.seq IS 'number of the edit in its sheet: from 1, without gaps';
COMMENT ON COLUMN sheet.log.segment_id IS
	'number of the segment; segment n ends with the commit of version n';
COMMENT ON COLUMN sheet.log.uid IS 'account; 0: a superuser without one';
COMMENT ON COLUMN sheet.log.origin IS 'the gateway; 0: SQL';
COMMENT ON COLUMN sheet.log.kind IS
	'set, style, resize, commit, rollback, insert_rows, delete_rows, insert_columns, delete_columns '
	'or property';
COMMENT ON COLUMN sheet.log."row" IS
	'from 0, in the numbering of that time; -1 for commit and rollback, and for inserted or '
	'deleted columns; of a property the first row of its target, -1 for all rows';
COMMENT ON COLUMN sheet.log.new IS
	'content after the edit, unchanged by a style; the label of a commit; the number of inserted '
	'or deleted rows or columns; the value of a property, empty if it was removed';
COMMENT ON COLUMN sheet.log.style IS 'null: unchanged by the edit';
COMMENT ON COLUMN sheet.log.target IS
	'of a property: the cell, range, rows or columns that it belongs to; null: the sheet';
COMMENT ON COLUMN sheet.log.key IS 'of a property; null: another kind of edit';

CREATE FUNCTION sheet.history(sheet_id bigint, ref text) RETURNS SETOF sheet.log
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF ref ~ ':' THEN
		RAISE EXCEPTION '"%" is not a cell such as B7', ref USING ERRCODE = '22023';
	END IF;
	PERFORM sheet.get(sheet_id, ref); -- fails if the reference is invalid or the caller may not read it
	RETURN QUERY SELECT l.* FROM sheet.log l WHERE l.sheet_id = history.sheet_id
		-- in the collation "C": the capital of "i" is another letter in Turkish
		AND l.a1 = upper(replace(ref, '$', '') COLLATE "C") COLLATE "default" ORDER BY l.seq;
END
$$;
COMMENT ON FUNCTION sheet.history(bigint, text) IS 'The edits of one cell, oldest first.';
