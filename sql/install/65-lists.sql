-- Cells that hold lists, such as "red, green".

CREATE FUNCTION sheet.list_column(sheet_id bigint, "column" text, separator text) RETURNS text
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF sheet_id IS NULL THEN
		RAISE EXCEPTION 'the sheet id must not be null' USING ERRCODE = '22004';
	ELSIF "column" IS NULL OR "column" !~ '^\$?[A-Za-z]{1,3}$' THEN
		RAISE EXCEPTION '"%" is not a column such as B', "column" USING ERRCODE = '22023', HINT = 'Name it by its letters.';
	ELSIF coalesce(separator, '') = '' OR separator ~ '"' THEN
		RAISE EXCEPTION 'the separator must not be empty or contain a quote' USING ERRCODE = '22023',
			DETAIL = 'Quotes enclose items that contain the separator.';
	END IF;
	RETURN format('%s:%s', "column", "column");
END
$$;
COMMENT ON FUNCTION sheet.list_column(bigint, text, text) IS 'Internal: checks the arguments of split(), and returns the range of the column.';

CREATE FUNCTION sheet.list_items(content text, separator text) RETURNS text[]
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	items text[] := '{}';
	parts text[] := '{}'; -- of an item: more than one, if a quote encloses separators
	quotes integer := 0;
	quoted boolean;
	pieces text[] := string_to_array(content, separator);
	item text;
BEGIN
	FOR i IN 1 .. cardinality(pieces) LOOP
		IF parts = '{}' THEN
			quoted := ltrim(pieces[i], E' \t\r\n') LIKE '"%';
		END IF;
		parts := parts || pieces[i];
		quotes := quotes + length(pieces[i]) - length(replace(pieces[i], '"', ''));
		IF quoted AND quotes % 2 = 1 AND i < cardinality(pieces) THEN
			CONTINUE;
		END IF;
		item := btrim(array_to_string(parts, separator), E' \t\r\n');
		IF item LIKE '"%"' THEN
			item := replace(substr(item, 2, length(item) - 2), '""', '"');
		END IF;
		items := items || item;
		parts := '{}';
		quotes := 0;
	END LOOP;
	RETURN items;
END
$$;
COMMENT ON FUNCTION sheet.list_items(text, text) IS
	'The items of a list, without blanks around them. An item that begins with a quote ends with the '
	'next one that is not doubled, and may contain the separator.';

-- A body that is parsed now does not depend on the caller's search_path, and is inlined.
CREATE FUNCTION sheet.split(sheet_id bigint, "column" text, separator text DEFAULT ',')
	RETURNS TABLE ("row" integer, item text, ordinal integer)
	LANGUAGE sql STABLE PARALLEL UNSAFE
	BEGIN ATOMIC
		SELECT r."row", CASE WHEN strpos(r.content, '"') > 0 THEN i.item ELSE btrim(i.item, E' \t\r\n') END, i.ordinal::integer
		FROM sheet.range(split.sheet_id, sheet.list_column(split.sheet_id, split."column", split.separator)) r,
			unnest(CASE WHEN strpos(r.content, '"') > 0 THEN sheet.list_items(r.content, split.separator)
				ELSE string_to_array(r.content, split.separator) END) WITH ORDINALITY i (item, ordinal);
	END;
COMMENT ON FUNCTION sheet.split(bigint, text, text) IS
	'The items of the lists in the cells of a column such as B: a row for each item, also for an empty '
	'one between two separators, before the first or behind the last. row from 0, ordinal from 1 in '
	'its cell.';

CREATE FUNCTION sheet.tag_counts(sheet_id bigint, "column" text, separator text DEFAULT ',')
	RETURNS TABLE (tag text, rows bigint)
	LANGUAGE sql STABLE PARALLEL UNSAFE
	BEGIN ATOMIC
		SELECT d.item, count(*) FROM (SELECT DISTINCT s."row", s.item
			FROM sheet.split(tag_counts.sheet_id, tag_counts."column", tag_counts.separator) s WHERE s.item <> '') d
		GROUP BY d.item ORDER BY 2 DESC, 1;
	END;
COMMENT ON FUNCTION sheet.tag_counts(bigint, text, text) IS
	'In how many rows each item of the lists in a column is, the most frequent first; empty items do '
	'not count.';
