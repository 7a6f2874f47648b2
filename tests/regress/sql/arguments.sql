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
