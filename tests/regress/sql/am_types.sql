-- Values of every class of types in a sheetlog table, with nulls in every position, come back as they went in.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_types;
SET search_path = am_types, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TYPE pair AS (a int, b text);
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
SELECT twin('CREATE TABLE T (id int, c1 bool, c2 "char", c3 int2, c4 int4, c5 int8, c6 float4, c7 float8, c8 numeric, c9 text, c10 varchar(30), c11 char(9), c12 bytea, c13 uuid, c14 interval, c15 point,
	c16 int[], c17 text[], c18 pair, c19 pair[], c20 jsonb, c21 json, c22 name, c23 timestamptz, c24 timestamp, c25 date, c26 time, c27 timetz, c28 money, c29 oid, c30 xid8, c31 inet, c32 macaddr8,
	c33 int4range, c34 nummultirange, c35 box, c36 path, c37 bit(11), c38 varbit, c39 tsvector, c40 tsquery, c41 mood, c42 percent, c43 "char"[], c44 tid, c45 pg_lsn, c46 regclass, c47 int2vector, c48 cidr, c49 circle) USING AM');
CREATE FUNCTION value_list(g int) RETURNS text[] IMMUTABLE LANGUAGE sql AS $f$
	SELECT ARRAY[(g % 2 = 0)::text, chr(97 + abs(g) % 26), (g * 300)::text, (-g * 20000000)::text, (g::bigint * 92233720368547758)::text, (g / 7.0)::text, (-g / 3e200)::text, (g * 1e30 + g / 3.0)::text, repeat('t', abs(g)), 'v' || g, 'c',
		'\x' || repeat(to_hex(abs(g) % 16), 2 * abs(g)), md5(g::text), g || ' mons ' || g || ' secs', '(' || g || ',' || -g || ')', '{' || g || ',NULL,' || -g || '}', '{a,"b c",NULL,"' || repeat('d', abs(g) * 3) || '"}', '(' || g || ',"x y")', '{"(' || g || ',z)",NULL}',
		'{"k": [' || g || ', null, {"d": "' || repeat('e', abs(g)) || '"}]}', '{"raw" :  ' || g || '}', 'name' || g, '2026-01-01 00:00:00.123456+00', '4713-01-01 BC', 'infinity', '23:59:59.999999', '10:00:00+05:30', g::text, (4294967295 - abs(g))::text, abs(g)::text,
		'2001:db8::' || abs(g) || '/64', '08:00:2b:01:02:03:04:' || lpad(to_hex(abs(g)), 2, '0'), '[' || g || ',' || g + 5 || ')', '{[' || g || '.5,' || g + 1 || '],(100,)}', '(1,1),(0,' || g || ')', '((0,0),(1,' || g || '),(2,2))', (B'1'::bit(11) | abs(g)::bit(11))::text,
		repeat('10', abs(g) % 30), '''fat'':2 ''cat'':3', '''fat'' & ''rat''', CASE WHEN g % 2 = 0 THEN 'low' ELSE 'high' END, (abs(g) % 101)::text, '{x,y,NULL}', '(' || abs(g) || ',' || abs(g) + 1 || ')', 'AB/' || to_hex(abs(g)), 'pg_class', '1 2 ' || abs(g), '10.0.' || abs(g) % 256 || '.0/24', '<(' || g || ',1),2>']
$f$;
-- everything; all but one; one alone; all null
CREATE FUNCTION row_values(g int, missing int, present int) RETURNS text LANGUAGE sql AS $$
	SELECT '(' || g || ', ' || string_agg(CASE WHEN i = missing OR present > 0 AND i <> present OR present < 0 THEN 'NULL' ELSE quote_literal(v) END, ', ' ORDER BY i) || ')' FROM unnest(value_list(g)) WITH ORDINALITY u(v, i)
$$;
SELECT twin('INSERT INTO T VALUES ' || string_agg(row_values(g, 0, 0), ', ')) FROM generate_series(-60, 60) g;
SELECT twin('INSERT INTO T VALUES ' || string_agg(row_values(g, g, 0), ', ')) FROM generate_series(1, 49) g;
SELECT twin('INSERT INTO T VALUES ' || string_agg(row_values(g, 0, g), ', ')) FROM generate_series(1, 49) g;
SELECT twin('INSERT INTO T VALUES ' || row_values(61, 0, -1));
SELECT same();
SELECT count(*) FROM l WHERE c1 IS NULL;
SELECT same('SELECT c20->''k'', (c18).b, c19[1], c16[3], c33 * c33, c15[1], c9 COLLATE "C", c12 || c12, c8 + 1, c23 + c14 FROM T');
-- the least and the greatest
SELECT twin($$INSERT INTO T (id, c3, c4, c5, c6, c7, c8) VALUES (1, -32768, -2147483648, -9223372036854775808, '-Infinity', '-Infinity', '-Infinity'), (2, 32767, 2147483647, 9223372036854775807, 'Infinity', 'Infinity', 'Infinity'),
	(3, 0, 0, 0, '-0', '-0', 0), (4, -1, -1, -1, 'NaN', 'NaN', 'NaN'), (5, 1, 1, 1, 1e-45, 5e-324, 1e-1000), (6, NULL, NULL, NULL, 3.4028235e38, 1.7976931348623157e308, 1e1000)$$);
SELECT twin($$INSERT INTO T (id, c23, c24, c25, c14, c26) VALUES (1, 'infinity', '-infinity', '-infinity', '-178000000 years', '00:00'), (2, '4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999', '5874897-12-31', '178000000 years', '24:00')$$);
SELECT twin($$INSERT INTO T (id, c9, c10, c11, c12, c16, c20, c22) VALUES (1, '', '', '', '', '{}', '{}', ''), (2, E'\u00e9\U0001F600', 'é', 'é', '\x00', '[5:6]={1,2}', 'null', 'é'), (3, repeat('é', 5000), NULL, NULL, decode(repeat('00', 9000), 'hex'), array_fill(NULL::int, ARRAY[50, 50]), '[]', repeat('n', 63))$$);
SELECT same();
-- long values of kinds that can be long
SELECT twin($$INSERT INTO T (id, c8, c12, c16, c17, c18, c20, c38, c39) SELECT g, (repeat('123456789', 3000) || '.5')::numeric, decode(string_agg(md5((g * i)::text), ''), 'hex'), array_agg(i * g), array_agg(md5((g * i)::text)), ROW(g, string_agg(md5(i::text), ''))::pair,
	jsonb_agg(md5((g * i)::text)), repeat('10', 20000)::varbit, to_tsvector('simple', string_agg(md5((g * i)::text), ' ')) FROM generate_series(5001, 5004) g, generate_series(1, 1500) i GROUP BY g$$);
SELECT same();
VACUUM FULL l;
SELECT same();
-- rows as values, and in order
SELECT same('SELECT T FROM T WHERE T IS NOT NULL');
SELECT same('SELECT count(DISTINCT x) FROM (SELECT ROW(c4, c9, c18) AS x FROM T) y');
SELECT same('SELECT string_agg(id::text, '','' ORDER BY c9 NULLS FIRST, c8, id, c7) FROM T');
DROP SCHEMA am_types CASCADE;
