-- Formulas that read other tabs of their book: what a program that computes values asks for (docs/design/calc.md).

CREATE FUNCTION sheet.book_state(sheet_id bigint) RETURNS bigint
	LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce((SELECT (b.book_id % 2147483648 << 32) + b.changes % 4294967296
		FROM sheet.book_tab t, LATERAL (SELECT * FROM sheet.book b WHERE b.book_id = t.book_id OFFSET 0) b WHERE t.sheet_id = $1), 0)
$$;
COMMENT ON FUNCTION sheet.book_state(bigint) IS
	'Internal: another number after each change of the book of which the sheet is a tab, and in another book; 0: in none.';

CREATE FUNCTION sheet.depends_on_changes(sheet_id bigint) RETURNS boolean
	LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT FROM sheet.value_source v WHERE v.sheet_id = $1 AND v.seq >= 0
		AND v.seq <> CASE WHEN v.source_id = 0 THEN sheet.book_state($1) ELSE sheet.last_seq(v.source_id) END)
$$;
COMMENT ON FUNCTION sheet.depends_on_changes(bigint) IS
	'Internal: another tab that the values of the sheet depend on, or its book, has changed since they were computed.';

CREATE FUNCTION sheet.to_compute(sheet_ids bigint[], source_ids bigint[] DEFAULT '{}', shared_ids bigint[] DEFAULT '{}')
	RETURNS TABLE (sheet_id bigint, seq bigint, computed bigint)
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	-- OFFSET 0: each sheet is looked up separately.
	SELECT c.sheet_id, l.seq, c.seq
	FROM unnest($1) i (id), LATERAL (SELECT * FROM sheet.computed c WHERE c.sheet_id = i.id OFFSET 0) c,
		LATERAL (SELECT sheet.last_seq(c.sheet_id) AS seq OFFSET 0) l
	WHERE c.seq < l.seq OR sheet.depends_on_changes(c.sheet_id)
	UNION ALL
	SELECT c.sheet_id, sheet.last_seq(c.sheet_id), c.seq
	FROM unnest($2) i (id), LATERAL (SELECT v.sheet_id, v.seq FROM sheet.value_source v WHERE v.source_id = i.id OFFSET 0) v,
		LATERAL (SELECT c.sheet_id, c.seq FROM sheet.computed c WHERE c.sheet_id = v.sheet_id OFFSET 0) c,
		LATERAL (SELECT sheet.last_seq(i.id) AS seq OFFSET 0) l
	WHERE v.seq >= 0 AND v.seq <> l.seq
	UNION ALL
	SELECT c.sheet_id, sheet.last_seq(c.sheet_id), c.seq
	FROM unnest($3) i (id), LATERAL (
			SELECT v.sheet_id FROM sheet.value_source v WHERE v.source_id = i.id
			UNION SELECT v.sheet_id FROM sheet.value_source v WHERE v.sheet_id = i.id AND v.source_id = 0 OFFSET 0) v,
		LATERAL (SELECT c.sheet_id, c.seq FROM sheet.computed c WHERE c.sheet_id = v.sheet_id OFFSET 0) c
$$;
COMMENT ON FUNCTION sheet.to_compute(bigint[], bigint[], bigint[]) IS
	'Those of sheet_ids that have formulas and have changed since their values were computed, or whose book or other tabs '
	'that they depend on have, and all sheets whose values depend on one of source_ids that has changed since, or on who may see or edit one of '
	'shared_ids. seq: of the '
	'sheet; computed: of the values. For programs that compute values.';

CREATE FUNCTION sheet.computed_sheets(after bigint DEFAULT 0, most integer DEFAULT 1000)
	RETURNS TABLE (sheet_id bigint, seq bigint, computed bigint, due boolean)
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT c.sheet_id, l.seq, c.seq, c.seq < l.seq OR sheet.depends_on_changes(c.sheet_id)
	FROM (SELECT * FROM sheet.computed c WHERE c.sheet_id > $1 ORDER BY c.sheet_id LIMIT $2) c,
		LATERAL (SELECT sheet.last_seq(c.sheet_id) AS seq OFFSET 0) l
	ORDER BY 1
$$;
COMMENT ON FUNCTION sheet.computed_sheets(bigint, integer) IS
	'A page of the sheets that have, or had, formulas: at most `most`, with higher ids than after, by id. seq: of the '
	'sheet; computed: of the values; due: the sheet, or another tab that its values depend on, has changed since. For '
	'programs that compute values.';

CREATE FUNCTION sheet.tabs_to_read(sheet_id bigint, wanted bigint[] DEFAULT '{}')
	RETURNS TABLE (tab_id bigint, name text, seq bigint, book_state bigint)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	IF $1 IS NULL THEN
		RAISE EXCEPTION 'the sheet id must not be null' USING ERRCODE = '22004';
	END IF;
	-- The formulas of the sheet and of all wanted tabs take part. Who may edit one of them must see each other one, or
	-- could read it by a formula. Each row of a member is read once, whatever the number of tabs.
	RETURN QUERY WITH parts AS MATERIALIZED (
		SELECT s.sheet_id, s.link_role, s.link_digest, s.link_no
		FROM (SELECT DISTINCT u.id FROM unnest($1 || $2) u (id)) i, LATERAL (SELECT * FROM sheet.sheet s WHERE s.sheet_id = i.id OFFSET 0) s),
	-- of each account that may edit one of them and does not see all: those that it sees
	lacking AS MATERIALIZED (
		SELECT array_agg(r.sheet_id) FILTER (WHERE r.role IS NOT NULL) AS seen
		FROM (SELECT m.sheet_id, m.uid, sheet.member_role(m.role, m.link_no, p.link_role, p.link_digest, p.link_no) AS role
			FROM parts p, LATERAL (SELECT * FROM sheet.member m WHERE m.sheet_id = p.sheet_id OFFSET 0) m OFFSET 0) r
		GROUP BY r.uid
		HAVING bool_or(r.role IN ('editor', 'owner')) AND count(r.role) < (SELECT count(*) FROM parts)),
	open AS MATERIALIZED (
		SELECT p.sheet_id FROM parts p WHERE EXISTS (
			SELECT FROM sheet.link l WHERE l.sheet_id = p.sheet_id AND l.role = 'editor' AND l.revoked_at IS NULL AND NOT l.blocked
				AND (l.expires_at IS NULL OR l.expires_at > now())))
	SELECT t.sheet_id, s.name, CASE WHEN t.sheet_id <> $1 AND t.sheet_id = ANY ($2)
			AND NOT EXISTS (SELECT FROM open o WHERE o.sheet_id <> t.sheet_id)
			AND NOT EXISTS (SELECT FROM lacking l WHERE t.sheet_id <> ALL (l.seen))
		THEN sheet.last_seq(t.sheet_id) END, sheet.book_state($1)
	FROM (SELECT * FROM sheet.book_tab b WHERE b.sheet_id = $1 OFFSET 0) own,
		LATERAL (SELECT * FROM sheet.book_tab t WHERE t.book_id = own.book_id OFFSET 0) t,
		LATERAL (SELECT * FROM sheet.sheet s WHERE s.sheet_id = t.sheet_id AND s.trashed_at IS NULL OFFSET 0) s
	ORDER BY t.place, t.sheet_id;
END
$$;
COMMENT ON FUNCTION sheet.tabs_to_read(bigint, bigint[]) IS
	'The tabs of the sheet''s book that are not in the trash, in their order. seq: the state of those in `wanted`; null: '
	'formulas may not read the tab, since an account or a guest who may edit the sheet, or another of the wanted tabs, may '
	'not see it. book_state: of their names, for sheet.put_values(). For programs that compute values.';
