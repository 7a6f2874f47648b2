-- For tests of the access method sheetlog: the same statements on a table of it and on a heap table. In a statement, T (T2, ...)
-- is the table and AM its access method: l (l2, ...) and sheetlog, or h (h2, ...) and heap.
CREATE FUNCTION for_log(statement text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT regexp_replace(regexp_replace(statement, '\mT(\d*)(_\w+)?\M', 'l\1\2', 'g'), '\mAM\M', 'sheetlog', 'g')
$$;
CREATE FUNCTION for_heap(statement text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT regexp_replace(regexp_replace(statement, '\mT(\d*)(_\w+)?\M', 'h\1\2', 'g'), '\mAM\M', 'heap', 'g')
$$;
-- Runs a statement on both tables; the number of rows.
CREATE FUNCTION twin(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE l bigint; h bigint;
BEGIN
	EXECUTE for_log(statement);
	GET DIAGNOSTICS l = ROW_COUNT;
	EXECUTE for_heap(statement);
	GET DIAGNOSTICS h = ROW_COUNT;
	RETURN CASE WHEN l = h THEN l::text ELSE 'DIFFERENT: ' || l || ' / ' || h END;
END $$;
-- What is wrong with a statement.
CREATE FUNCTION refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || regexp_replace(SQLERRM, '\m[lh](\d*)(_\w+)?\M', 'T\1\2', 'g');
END $$;
-- The same for both tables, with what came of it on each, once when it is the same.
CREATE FUNCTION twin_refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE l text := refusal(for_log(statement)); h text := refusal(for_heap(statement));
BEGIN
	RETURN CASE WHEN l = h THEN l ELSE 'DIFFERENT: ' || l || ' / ' || h END;
END $$;
-- Compares the rows of a query, in any order.
CREATE FUNCTION same(query text DEFAULT 'SELECT * FROM T') RETURNS text LANGUAGE plpgsql AS $$
DECLARE l text[]; h text[]; surplus text; missing text;
BEGIN
	EXECUTE 'SELECT array_agg(left(r::text, 60) || md5(r::text)) FROM (' || for_log(query) || ') r' INTO l;
	EXECUTE 'SELECT array_agg(left(r::text, 60) || md5(r::text)) FROM (' || for_heap(query) || ') r' INTO h;
	SELECT string_agg(line, ' ') INTO surplus FROM (SELECT unnest(l) AS line EXCEPT ALL SELECT unnest(h) LIMIT 3) d;
	SELECT string_agg(line, ' ') INTO missing FROM (SELECT unnest(h) AS line EXCEPT ALL SELECT unnest(l) LIMIT 3) d;
	IF surplus IS NOT NULL OR missing IS NOT NULL THEN
		RETURN 'DIFFERENT: surplus ' || coalesce(surplus, '-') || ', missing ' || coalesce(missing, '-');
	END IF;
	RETURN 'same ' || coalesce(array_length(l, 1), 0);
END $$;
-- How the log is read.
CREATE FUNCTION plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; nodes text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || for_log(query) LOOP
		IF line ~ 'Scan' THEN nodes := nodes || regexp_replace(line, '^[ >-]*', ''); END IF;
	END LOOP;
	RETURN array_to_string(nodes, ', ');
END $$;
-- Allows the ways of reading that are named, and no other: seq, index, indexonly, bitmap, tid.
CREATE FUNCTION ways(VARIADIC names text[]) RETURNS void LANGUAGE sql AS $$
	SELECT set_config('enable_' || w || 'scan', (w = ANY (names))::text, false) FROM unnest('{seq,index,indexonly,bitmap,tid}'::text[]) w
$$;
-- The plan, and whether the rows are the same.
CREATE FUNCTION way(query text) RETURNS text LANGUAGE sql AS $$ SELECT plan(query) || ': ' || same(query) $$;
