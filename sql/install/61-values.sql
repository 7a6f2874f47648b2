-- Values of formulas: computed by a program outside (docs/design/calc.md), stored beside the texts.

CREATE TABLE sheet.computed (
	sheet_id bigint PRIMARY KEY,
	seq bigint NOT NULL,
	again_at timestamptz
) WITH (fillfactor = 70);
COMMENT ON TABLE sheet.computed IS
	'Sheets that have, or had, formulas. The row comes with the first formula.';
COMMENT ON COLUMN sheet.computed.seq IS 'the stored values are those of the sheet at this seq; 0: there are none';
COMMENT ON COLUMN sheet.computed.again_at IS
	'when values are computed again though the sheet does not change, because of NOW() and such; null: never';
CREATE INDEX computed_again_at_idx ON sheet.computed (again_at, sheet_id);

CREATE TABLE sheet.value (
	sheet_id bigint NOT NULL,
	tile bigint NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (sheet_id, tile)
);
COMMENT ON TABLE sheet.value IS
	'Values of formulas, and of cells that arrays fill, in blocks of 64 rows and 4 columns. They are derived: '
	'they can be deleted and computed again.';
COMMENT ON COLUMN sheet.value.tile IS 'number of the block, by rows and columns that stay when others are inserted or deleted';

CREATE TABLE sheet.value_source (
	sheet_id bigint NOT NULL,
	source_id bigint NOT NULL,
	seq bigint NOT NULL,
	PRIMARY KEY (sheet_id, source_id)
);
CREATE INDEX value_source_idx ON sheet.value_source (source_id);
ALTER TABLE sheet.value_source ALTER sheet_id SET (n_distinct = -0.1), ALTER source_id SET (n_distinct = -0.1);
COMMENT ON TABLE sheet.value_source IS
	'Which other tabs of its book the values of a sheet depend on. source_id 0: on the names of the tabs.';
COMMENT ON COLUMN sheet.value_source.seq IS 'the state of the other tab, or of the book, from which the values were computed; -1: the tab may not be read';

SELECT pg_catalog.pg_extension_config_dump('sheet.value_source', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.computed', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.value', '');

-- STABLE: as of the snapshot of the statement, which is not later than that of the values that sheet.read_cells() reads in it.
CREATE FUNCTION sheet.computed_seq(sheet_id bigint) RETURNS bigint
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF sheet_id IS NULL THEN
		RAISE EXCEPTION 'the sheet id must not be null' USING ERRCODE = '22004';
	END IF;
	RETURN (SELECT c.seq FROM sheet.computed c WHERE c.sheet_id = $1);
END
$$;
COMMENT ON FUNCTION sheet.computed_seq(bigint) IS
	'The seq of the state of the sheet whose values are stored (0: none are); null: the sheet never had a formula. For gateways.';

CREATE FUNCTION sheet.to_compute_again(after timestamptz DEFAULT '-infinity', after_id bigint DEFAULT 0, most integer DEFAULT 1000)
	RETURNS TABLE (sheet_id bigint, seq bigint, again_at timestamptz)
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT c.sheet_id, sheet.last_seq(c.sheet_id), c.again_at
	FROM (SELECT * FROM sheet.computed c WHERE (c.again_at, c.sheet_id) > ($1, $2) AND c.again_at <= now()
		ORDER BY c.again_at, c.sheet_id LIMIT $3) c ORDER BY 3, 1
$$;
COMMENT ON FUNCTION sheet.to_compute_again(timestamptz, bigint, integer) IS
	'A page of the sheets whose values are to be computed again now though they have not changed, those first that '
	'have waited longest: at most `most`, after this time and sheet. For programs that compute values.';

CREATE FUNCTION sheet.value_tiles(IN sheet_id bigint, IN seq bigint, IN "row" integer[], IN col integer[], IN value text[],
	IN filled boolean[], IN whole boolean, OUT tiles bigint[], OUT data bytea[])
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_value_tiles';
COMMENT ON FUNCTION sheet.value_tiles(bigint, bigint, integer[], integer[], text[], boolean[], boolean) IS
	'Internal: the values of places as of seq, by the blocks of sheet.value. Nulls: rows or columns were inserted or '
	'deleted too often since. Tells followers that values come.';

CREATE FUNCTION sheet.merge_tile(old bytea, new bytea) RETURNS bytea
	LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_merge_tile';
COMMENT ON FUNCTION sheet.merge_tile(bytea, bytea) IS
	'Internal: a block of sheet.value (null: none) with the changes of sheet.value_tiles(); null: nothing is left.';

CREATE FUNCTION sheet.put_values(sheet_id bigint, seq bigint, "row" integer[], col integer[], value text[],
	filled boolean[] DEFAULT NULL, whole boolean DEFAULT false, again_at timestamptz DEFAULT NULL,
	source_ids bigint[] DEFAULT '{}', source_seqs bigint[] DEFAULT '{}') RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
	stored bigint;
	tiles bigint[];
	parts bytea[];
	gone bigint[];
BEGIN
	IF sheet_id IS NULL THEN
		RAISE EXCEPTION 'the sheet id must not be null' USING ERRCODE = '22004';
	END IF;
	-- Until the end of the transaction nobody else stores values of the sheet. Edits do not wait for it.
	SELECT c.seq INTO stored FROM sheet.computed c WHERE c.sheet_id = put_values.sheet_id FOR NO KEY UPDATE;
	IF stored > seq OR stored IS NULL OR EXISTS (
		SELECT FROM unnest(source_ids, source_seqs) n (id, at), LATERAL (
			SELECT v.seq FROM sheet.value_source v WHERE v.sheet_id = put_values.sheet_id AND v.source_id = n.id AND n.id > 0 OFFSET 0) v
		WHERE n.at >= 0 AND n.at < v.seq AND v.seq <= sheet.last_seq(n.id)) THEN
		RETURN false;
	END IF;
	SELECT t.tiles, t.data INTO tiles, parts FROM sheet.value_tiles(sheet_id, seq, "row", col, value, filled, whole) t;
	IF tiles IS NULL THEN
		RETURN false;
	END IF;
	-- OFFSET 0: each block is looked up separately, so the cost does not depend on the number of sheets.
	WITH changed AS MATERIALIZED (
		SELECT n.tile, o.data AS old, sheet.merge_tile(CASE WHEN NOT whole THEN o.data END, n.part) AS data
		FROM unnest(tiles, parts) n (tile, part) LEFT JOIN LATERAL (
			SELECT v.data FROM sheet.value v WHERE v.sheet_id = put_values.sheet_id AND v.tile = n.tile OFFSET 0) o ON true),
	stored AS (
		INSERT INTO sheet.value AS v (sheet_id, tile, data)
		SELECT sheet_id, c.tile, c.data FROM changed c WHERE c.data IS NOT NULL AND c.data IS DISTINCT FROM c.old
		ON CONFLICT ON CONSTRAINT value_pkey DO UPDATE SET data = excluded.data)
	SELECT array_agg(c.tile) INTO gone FROM changed c WHERE c.data IS NULL AND c.old IS NOT NULL;
	IF whole THEN
		DELETE FROM sheet.value v WHERE v.sheet_id = put_values.sheet_id
			AND NOT EXISTS (SELECT FROM unnest(tiles) t (tile) WHERE t.tile = v.tile);
	END IF;
	IF gone IS NOT NULL THEN
		DELETE FROM sheet.value v WHERE v.sheet_id = put_values.sheet_id AND v.tile = ANY (gone);
	END IF;
	DELETE FROM sheet.value_source v WHERE v.sheet_id = put_values.sheet_id AND v.source_id <> ALL (source_ids);
	INSERT INTO sheet.value_source AS v (sheet_id, source_id, seq)
		SELECT put_values.sheet_id, n.id, n.at FROM unnest(source_ids, source_seqs) n (id, at)
		ON CONFLICT ON CONSTRAINT value_source_pkey DO UPDATE SET seq = excluded.seq WHERE v.seq <> excluded.seq;
	UPDATE sheet.computed c SET seq = put_values.seq, again_at = put_values.again_at
		WHERE c.sheet_id = put_values.sheet_id AND (c.seq, c.again_at) IS DISTINCT FROM (put_values.seq, put_values.again_at);
	RETURN true;
END
$$;
COMMENT ON FUNCTION sheet.put_values(bigint, bigint, integer[], integer[], text[], boolean[], boolean, timestamptz, bigint[], bigint[]) IS
	'Stores values of formulas that were computed for the sheet as of seq: value[i], in the form of a content (null: '
	'none), for the cell that was in row[i] and col[i] then. filled[i]: an array of another cell fills the cell. whole: '
	'cells that are not named have no value. again_at: compute again then. source_ids, source_seqs: the other tabs that '
	'values depend on, and their states (-1: it may not be read); 0: the names of the tabs, with their book_state. Values go with cells '
	'that have moved since. False, and nothing is stored: values of a later seq, also of another tab, are stored, rows or columns were '
	'inserted or deleted more than 100 times since seq, or the sheet never had a formula. 22023: the '
	'sheet has no such seq, or the arrays do not fit. For programs that compute values.';
