-- Views over all sheets that the current role owns or that are shared with it (all of them for superusers).
-- Sheets that are open to everyone who knows their id are not listed: that is what the id is for.

CREATE VIEW sheet.list WITH (security_barrier) AS
	SELECT s.sheet_id, s.name, o.name AS owner,
		CASE WHEN (SELECT sheet.sees_all()) OR s.owner = (SELECT sheet.current_uid()) THEN 'owner' ELSE m.role END AS role,
		s.trashed_at IS NOT NULL AS trashed, s.link_role, s.created_at
	FROM sheet.sheet s
		LEFT JOIN sheet.account o ON o.uid = s.owner
		LEFT JOIN sheet.member m ON m.sheet_id = s.sheet_id AND m.uid = (SELECT sheet.current_uid())
	WHERE (SELECT sheet.sees_all()) OR s.owner = (SELECT sheet.current_uid())
		OR (m.role IS NOT NULL AND s.trashed_at IS NULL);
COMMENT ON VIEW sheet.list IS 'The sheets that the current role owns or that are shared with it.';
COMMENT ON COLUMN sheet.list.role IS 'what the current role may do: viewer, commenter, editor or owner';
COMMENT ON COLUMN sheet.list.link_role IS 'the role of everyone signed in who knows the id; null: none';

CREATE VIEW sheet.cells WITH (security_barrier) AS
	SELECT l.sheet_id, r."row", r.col, r.a1, r.content, r.style
	FROM sheet.list l, LATERAL sheet.range(l.sheet_id) r WHERE NOT l.trashed;
COMMENT ON VIEW sheet.cells IS 'The cells that hold something, of every sheet in sheet.list that is not in the trash.';
COMMENT ON COLUMN sheet.cells."row" IS 'from 0';
COMMENT ON COLUMN sheet.cells.col IS 'from 0';
COMMENT ON COLUMN sheet.cells.a1 IS 'the place in A1 notation';
COMMENT ON COLUMN sheet.cells.content IS 'what was typed: a value, or a formula when it starts with =';
COMMENT ON COLUMN sheet.cells.style IS 'JSON; null: none';

-- log_edits() has only the sheets of sheet.list, those in the trash for owners.
CREATE VIEW sheet.log WITH (security_barrier) AS
	SELECT e.sheet_id, e.seq, e.lid, e.at, e.uid, e.username, e.origin, e.kind, e."row", e.col, e.a1, e.old, e.new, e.style
	FROM sheet.log_edits() e;
COMMENT ON VIEW sheet.log IS 'Every edit ever made and not trimmed, of every sheet in sheet.list.';
COMMENT ON COLUMN sheet.log.seq IS 'number of the edit in its sheet: from 1, without gaps';
COMMENT ON COLUMN sheet.log.lid IS 'number of the log; log n ends with the commit of version n';
COMMENT ON COLUMN sheet.log.uid IS 'account; 0: a superuser without one';
COMMENT ON COLUMN sheet.log.origin IS 'the gateway; 0: SQL';
COMMENT ON COLUMN sheet.log.kind IS
	'set, style, resize, commit, rollback, insert_rows, delete_rows, insert_columns or delete_columns';
COMMENT ON COLUMN sheet.log."row" IS
	'from 0, as rows were numbered then; -1 for commit and rollback, and where columns were inserted or deleted';
COMMENT ON COLUMN sheet.log.new IS 'the content after the edit; of a commit: its label; how many rows or columns were inserted or deleted';
COMMENT ON COLUMN sheet.log.style IS 'null: the edit left it alone';

CREATE FUNCTION sheet.history(sheet_id bigint, ref text) RETURNS SETOF sheet.log
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE AS $$
BEGIN
	IF ref OPERATOR(pg_catalog.~) ':' THEN
		RAISE EXCEPTION '"%" is not a cell such as B7', ref USING ERRCODE = '22023';
	END IF;
	PERFORM sheet.get(sheet_id, ref); -- fails when the cell is none, or may not be read
	RETURN QUERY SELECT l.* FROM sheet.log l WHERE l.sheet_id OPERATOR(pg_catalog.=) history.sheet_id
		AND l.a1 OPERATOR(pg_catalog.=) pg_catalog.upper(pg_catalog.replace(ref, '$', '')) ORDER BY l.seq;
END
$$;
COMMENT ON FUNCTION sheet.history(bigint, text) IS 'The edits of one cell, oldest first.';

GRANT SELECT ON sheet.list, sheet.cells, sheet.log TO PUBLIC;
