-- Published views: a share link for viewers without a password is one, under its key (GET /s/KEY).

CREATE FUNCTION sheet.published(digest bytea)
	RETURNS TABLE (link_id bigint, sheet_id bigint, title text, rectangle boolean, embed text, index_ok boolean, left_ms bigint)
	LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
	-- The sheet is looked up in any case, so that a link that is not valid is not answered sooner.
	-- Outside of a rectangle nothing exists for the visitor, not even a name.
	SELECT l.link_id, l.sheet_id, CASE WHEN l.rectangle THEN 'Cells' ELSE s.name END, l.rectangle, l.embed, l.index_ok,
		CASE WHEN l.expires_at IS NOT NULL THEN
			greatest(floor(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000), 0)::bigint END
	FROM sheet.link l, sheet.sheet s
	WHERE l.digest = $1 AND s.sheet_id = l.sheet_id AND s.trashed_at IS NULL
		AND (sheet.link_place(l.sheet_id, l.link_id)).ref IS DISTINCT FROM ''
		AND l.role = 'viewer' AND l.password IS NULL AND l.revoked_at IS NULL AND NOT l.blocked
		AND (l.expires_at IS NULL OR l.expires_at > clock_timestamp())
$$;
COMMENT ON FUNCTION sheet.published(bytea) IS
	'What the key of a link, of which this is the SHA-256, publishes: 0 or 1 row. No row: the link is unknown, expired, '
	'revoked, blocked, not for viewers, or has a password, no cell of its rectangle is left, or its sheet is in the '
	'trash. title: the name of the sheet; of a rectangle, Cells. left_ms: milliseconds until its end; null: none. For '
	'gateways.';

CREATE FUNCTION sheet.published_cells(sheet_id bigint, link_id bigint, max_bytes integer)
	RETURNS TABLE (seq bigint, rows integer, cols integer, cells bytea, "row" integer, col integer)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	rect sheet.link_rect;
	again bigint;
	parts bytea[];
	at_seq bigint;
BEGIN
	IF $1 IS NULL THEN
		RAISE EXCEPTION 'the sheet id must not be null' USING ERRCODE = '22004';
	END IF;
	-- The cells are those of the last commit, whose snapshot no statement has. So the rectangle is looked up before and
	-- after, by statements of their own: each move of it is a row of its own.
	FOR attempt IN 1..10 LOOP
		SELECT * INTO rect FROM sheet.link_rect r WHERE r.sheet_id = $1 AND r.link_id = $2 ORDER BY r.seq DESC LIMIT 1;
		IF NOT FOUND OR rect.row0 < 0 THEN
			RETURN;
		END IF;
		SELECT array_agg(c.cells), min(c.seq) INTO parts, at_seq FROM (SELECT c.cells, c.seq FROM sheet.read_cells($1,
			rect.row0::integer, rect.col0::integer, rect.row1::integer, rect.col1::integer, $3) c LIMIT 2) c;
		-- not max(): where most links have moved once, its plan reads all moves of this one
		SELECT r.seq INTO again FROM sheet.link_rect r WHERE r.sheet_id = $1 AND r.link_id = $2 ORDER BY r.seq DESC LIMIT 1;
		IF again = rect.seq AND at_seq >= rect.seq THEN
			IF cardinality(parts) > 1 THEN
				RAISE EXCEPTION 'the part of the sheet has become too large' USING ERRCODE = '54000',
					DETAIL = format('It has more than %s bytes.', $3);
			END IF;
			RETURN QUERY SELECT at_seq, (rect.row1 - rect.row0 + 1)::integer, (rect.col1 - rect.col0 + 1)::integer, parts[1],
				rect.row0::integer, rect.col0::integer;
			RETURN;
		END IF;
	END LOOP;
	RAISE EXCEPTION 'the part of the sheet is being moved' USING ERRCODE = '40001', HINT = 'Try again.';
END
$$;
COMMENT ON FUNCTION sheet.published_cells(bigint, bigint, integer) IS
	'The cells of the rectangle of a link, as by sheet.read_cells(), its size, and where it is: at the same seq. 0 or 1 '
	'row; none if no cell of it is left. 54000: more than max_bytes. The caller has checked that the link is valid. For '
	'gateways.';
