-- Names that would be shown as others: characters that change the direction of text are refused wherever something has a name, and
-- names of accounts that look like those of others.
\set VERBOSITY terse
SELECT sheet.account_create('names owner', NULL, 'hash') AS owner \gset
SELECT sheet.create('names', 10, 10, as_uid => :owner) AS id \gset
CREATE FUNCTION pg_temp.refused(command text, VARIADIC chars int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c int;
	said text;
	answers text[] = '{}';
BEGIN
	FOREACH c IN ARRAY chars LOOP
		BEGIN
			EXECUTE format(command, quote_literal('a' || chr(c) || 'gpj.exe'));
			answers := answers || format('U+%s accepted', upper(to_hex(c)));
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
			answers := answers || format('%s %s (%s)', SQLSTATE, SQLERRM, said);
		END;
	END LOOP;
	RETURN (SELECT string_agg(DISTINCT replace(a, coalesce(substring(a FROM 'U\+[0-9A-F]+'), ''), 'U+...'), '; ') FROM unnest(answers) a);
END $$;
CREATE FUNCTION pg_temp.answer(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT array_agg(c) AS chars FROM (SELECT generate_series(8234, 8238) UNION ALL SELECT generate_series(8294, 8297) UNION ALL VALUES (8206), (8207), (1564)) v(c) \gset
SELECT pg_temp.refused('SELECT sheet.create(%s)', VARIADIC :'chars');
SELECT pg_temp.refused(format('SELECT sheet.rename(%s, %%s)', :id), VARIADIC :'chars');
SELECT pg_temp.refused('SELECT sheet.import_csv(%s, $$a,b$$)', VARIADIC :'chars');
SELECT pg_temp.refused(format('SELECT sheet.file_begin(%s, %%s, NULL)', :id), VARIADIC :'chars');
SELECT pg_temp.refused('SELECT sheet.account_create(%s, NULL, $$x$$)', VARIADIC :'chars');
SELECT pg_temp.refused(format('SELECT sheet.account_rename(%s, %%s)', :owner), VARIADIC :'chars');
-- and control characters, in all texts that others are shown
SELECT :'chars'::int[] || ARRAY[1, 9, 10, 13, 27, 127, 133] AS more \gset
SELECT sheet.set(:id, 'A1', 'x') > 0;
SELECT pg_temp.refused(format('SELECT sheet.commit(%s, %%s)', :id), VARIADIC :'more');
SELECT pg_temp.refused('SELECT sheet.lock(%s)', VARIADIC :'more');
SELECT pg_temp.refused('SELECT sheet.lock(ARRAY[%s])', VARIADIC :'more');
SELECT pg_temp.refused(format('SELECT sheet.file_begin(%s, $$a$$, %%s)', :id), VARIADIC :'more');
SELECT pg_temp.refused('SELECT sheet.account_create($$names texts$$, %s, $$x$$)', VARIADIC :'more');
SELECT pg_temp.refused(format('SELECT sheet.claim(%s, 1, %%s)', :id), VARIADIC :'more');
SELECT pg_temp.refused('SELECT sheet.coordinator_acquire(%s)', VARIADIC :'more');
SELECT left(pg_temp.refused('SELECT sheet.report_gateway(%s, 1, $$serving$$, 0, 0, 0, $$$$)', VARIADIC :'more'), 5);
SELECT left(pg_temp.refused('SELECT sheet.report_gateway($$a$$, 1, %s, 0, 0, 0, $$$$)', VARIADIC :'more'), 5);
SELECT sheet.commit(:id, '') AS without_label;
-- what is written from right to left needs none of them
SELECT sheet.rename(:id, 'גיליון שלי'), (SELECT name FROM sheet.file_begin(:id, 'تقرير.pdf', NULL));
-- a name can be seen; characters without width may stand among others
SELECT count(*) AS names, string_agg(DISTINCT answer, '; ') AS answers FROM unnest(ARRAY[' ', '  ', U&'\00A0', U&'\3000', U&'\200B', U&'\200D\FE0F', U&'\2800 \3164', U&'\FEFF', U&'\+0E0020']) name,
	LATERAL unnest(ARRAY['SELECT sheet.create(%s)', format('SELECT sheet.rename(%s, %%s)', :id), 'SELECT sheet.import_csv(%s, $$a$$)', format('SELECT sheet.commit(%s, %%s)', :id), format('SELECT sheet.label_version(%s, 1, %%s)', :id), format('SELECT sheet.file_begin(%s, %%s, NULL)', :id), 'SELECT sheet.lock(%s)']) command,
	LATERAL pg_temp.answer(format(command, quote_literal(name))) answer;
SELECT sheet.rename(:id, U&'\+01F468\200D\+01F469\200D\+01F467 \2764\FE0F'), sheet.label_version(:id, 1, U&'\2764\FE0F') IS NOT NULL AS label;

-- names that look alike
SELECT sheet.account_create('names modern', NULL, 'hash') AS modern \gset
SELECT sheet.account_create(U&'names m\043Edern', NULL, 'hash'); -- a Cyrillic o
SELECT sheet.account_create('names rnodern', NULL, 'hash');
SELECT sheet.account_create('names modern', NULL, 'hash');
SELECT sheet.account_create('names Modern', NULL, 'hash') > 0 AS another;
SELECT sheet.account_create('names 10', NULL, 'hash') > 0 AS ten;
SELECT sheet.account_create('names lO', NULL, 'hash');
SELECT sheet.account_create(U&'\FF4E\FF41\FF4D\FF45\FF53 10', NULL, 'hash'); -- of full width
SELECT sheet.account_rename(:owner, 'names m0dern') IS NOT NULL AS renamed;
SELECT sheet.account_rename(:owner, 'names rnodern');
SELECT sheet.account_rename(:modern, 'names rnodern') IS NOT NULL AS of_itself;
SELECT sheet.account_rename(:owner, 'names modern');
SELECT sheet.account_rename(:modern, 'names gone') IS NOT NULL AS renamed;
SELECT sheet.account_rename(:owner, 'names modern') IS NOT NULL AS renamed;
-- found by an index
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT 1 FROM sheet.account WHERE skeleton = 'x';
SELECT count(sheet.purge(s)) FROM (SELECT sheet.trash(:id), :id AS s) t;
DELETE FROM sheet.file_use;
DELETE FROM sheet.account WHERE name LIKE 'names %';
