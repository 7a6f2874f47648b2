-- Every function with nulls, and with the least and the largest numbers: an answer or an error of SQL, and the session goes on.
SELECT pg_backend_pid() AS pid \gset
BEGIN;
CREATE FUNCTION pg_temp.call_all(numbers text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f record;
	internal text[] = '{}';
	answers int = 0;
BEGIN
	FOR f IN SELECT p.oid::regproc AS name, (SELECT string_agg(CASE
				WHEN numbers IS NULL THEN 'NULL::' || t::regtype
				WHEN t = 'int8'::regtype THEN format('(%s)::int8', numbers)
				WHEN t = 'int4'::regtype THEN format('(%s)::int4', greatest(least(numbers::numeric, 2147483647), -2147483648))
				WHEN t = 'int8[]'::regtype THEN format('ARRAY[%s]::int8[]', numbers)
				WHEN t = 'text'::regtype THEN quote_literal('x')
				WHEN t = 'bytea'::regtype THEN quote_literal('\x01000001') || '::bytea'
				WHEN t = 'bool'::regtype THEN 'true'
				ELSE 'NULL::' || t::regtype END, ', ' ORDER BY o) FROM unnest(p.proargtypes) WITH ORDINALITY a(t, o)) AS args
		FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace AND p.prokind = 'f' AND p.pronargs > 0 AND p.proname <> 'set_id_range'
			AND p.prorettype NOT IN ('trigger'::regtype, 'internal'::regtype, 'table_am_handler'::regtype, 'index_am_handler'::regtype)
	LOOP
		BEGIN
			EXECUTE format('SELECT %s(%s)', f.name, f.args);
			answers := answers + 1;
		EXCEPTION WHEN internal_error THEN
			internal := internal || format('%s: %s', f.name, sqlerrm);
		WHEN syntax_error OR undefined_function OR ambiguous_function THEN
			RAISE;
		WHEN OTHERS THEN NULL;
		END;
	END LOOP;
	RETURN format('%s, %s', answers > 10, internal);
END $$;
SELECT numbers, pg_temp.call_all(numbers) FROM (VALUES (NULL), ('0'), ('-1'), ('1'), ('9223372036854775807'), ('-9223372036854775808')) v (numbers);
ROLLBACK;
SELECT pg_advisory_unlock_all();
SELECT pg_backend_pid() = :pid AS same;
-- Every function for callers, from the catalog, so that a new one cannot be forgotten: its parameters have names, as_uid is the
-- last one, a null sheet id is an error (in a target list, and in FROM, where some have scans of their own), and what runs with
-- the rights of its owner looks up names in pg_catalog only.
CREATE TEMP VIEW callable AS SELECT p.*, p.oid::regprocedure::text AS signature, p.proargnames[1:p.pronargs] AS names
	FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace AND obj_description(p.oid, 'pg_proc') !~ '^(Internal|Handler)';
SELECT signature AS without_names FROM callable WHERE pronargs > 0 AND (names IS NULL OR '' = ANY (names));
SELECT signature AS as_uid_is_not_last FROM callable WHERE array_position(names, 'as_uid') < pronargs;
SELECT p.oid::regprocedure AS search_path_of_the_caller FROM pg_proc p
WHERE p.pronamespace = 'sheet'::regnamespace AND p.prosecdef AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(p.proconfig, '{}'));
CREATE FUNCTION pg_temp.with_null_sheet(f callable, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	arguments text := (SELECT string_agg(CASE WHEN f.names[n] = 'sheet_id' THEN 'NULL'
			WHEN t = 'bytea'::regtype THEN quote_literal('\x00') WHEN t = 'bool'::regtype THEN 'true'
			WHEN t IN ('timestamptz'::regtype, 'timestamp'::regtype) THEN 'now()' WHEN t = 'jsonb'::regtype OR f.names[n] = 'sha256' THEN quote_literal('1')
			WHEN t::regtype::text ~ '\[\]$' THEN quote_literal('{}') WHEN f.names[n] = 'role' THEN quote_literal('viewer')
			WHEN t = 'text'::regtype OR t = 'name'::regtype THEN quote_literal('A1') ELSE '1' END || '::' || t::regtype, ', ' ORDER BY n)
		FROM unnest(f.proargtypes) WITH ORDINALITY a (t, n));
BEGIN
	EXECUTE format(query, format('%s(%s)', f.oid::regproc, arguments));
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ': ' || sqlerrm;
END $$;
-- all but fsck, for which null means all sheets
CREATE TEMP TABLE answers AS SELECT signature, query, pg_temp.with_null_sheet(f, query) AS answer
	FROM callable f, LATERAL (VALUES ('SELECT %s'), ('SELECT * FROM %s' || CASE WHEN proname = 'as_table' THEN ' AS t(a text)' ELSE '' END)) q (query)
	WHERE 'sheet_id' = ANY (names) AND proname <> 'fsck';
SELECT signature, query, answer FROM answers WHERE answer <> '22004: the sheet id must not be null';
SELECT count(DISTINCT signature) > 50 AS many FROM answers;
