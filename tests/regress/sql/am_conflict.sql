-- ON CONFLICT on a sheetlog table: DO NOTHING as with heap, DO UPDATE refused before anything happens.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_conflict;
SET search_path = am_conflict, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, k int UNIQUE, body text DEFAULT ''d'', EXCLUDE USING hash (body WITH =) WHERE (id > 1000)) USING AM');
SELECT twin('INSERT INTO T SELECT g, g + 100, ''b'' || g FROM generate_series(1, 20) g');
-- conflicts with what is there, within the statement, by any constraint
SELECT twin('INSERT INTO T VALUES (1, 1, ''x'') ON CONFLICT DO NOTHING');
SELECT twin('INSERT INTO T VALUES (1, 1), (30, 1), (30, 2), (31, 130), (32, 130), (33, 101) ON CONFLICT DO NOTHING');
SELECT twin('INSERT INTO T SELECT g, g + 100 FROM generate_series(10, 60) g ON CONFLICT (id) DO NOTHING');
SELECT same();
-- the conflict is with another constraint than the one that is named
SELECT twin_refusal('INSERT INTO T VALUES (500, 101) ON CONFLICT (id) DO NOTHING');
SELECT twin_refusal('INSERT INTO T VALUES (500, 101) ON CONFLICT ON CONSTRAINT T_pkey DO NOTHING');
SELECT twin('INSERT INTO T VALUES (500, 101) ON CONFLICT (k) DO NOTHING');
SELECT twin('INSERT INTO T VALUES (1001, 5, ''once''), (1002, 6, ''once'') ON CONFLICT DO NOTHING');
SELECT twin_refusal('INSERT INTO T VALUES (1003, 7, ''once'') ON CONFLICT (id) DO NOTHING');
SELECT same();
-- RETURNING tells of the rows that were inserted
INSERT INTO l VALUES (1, 1), (70, 70), (70, 71), (71, 70), (72, 72) ON CONFLICT DO NOTHING RETURNING id, k, body;
INSERT INTO h VALUES (1, 1), (70, 70), (70, 71), (71, 70), (72, 72) ON CONFLICT DO NOTHING;
WITH new AS (INSERT INTO l SELECT g, g FROM generate_series(71, 76) g ON CONFLICT DO NOTHING RETURNING id) SELECT array_agg(id) FROM new;
INSERT INTO h SELECT g, g FROM generate_series(71, 76) g ON CONFLICT DO NOTHING;
-- after an aborted insertion of the key, by transaction and by savepoint
BEGIN;
SELECT twin('INSERT INTO T VALUES (80, 80)');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT twin('INSERT INTO T VALUES (80, 81) ON CONFLICT DO NOTHING');
ROLLBACK TO s;
SELECT twin('INSERT INTO T VALUES (80, 82) ON CONFLICT DO NOTHING');
SELECT twin('INSERT INTO T VALUES (80, 83) ON CONFLICT DO NOTHING'); -- with a row of this transaction
COMMIT;
SELECT same();
-- many conflicts, with long values
SELECT twin('CREATE TABLE T2 (id int PRIMARY KEY, body text) USING AM');
SELECT twin('INSERT INTO T2 SELECT g % 300, repeat(md5(g::text), g % 500) FROM generate_series(1, 1000) g ON CONFLICT DO NOTHING');
SELECT same('SELECT * FROM T2');
-- no arbiter there is
SELECT twin_refusal('INSERT INTO T2 VALUES (1) ON CONFLICT (body) DO NOTHING');
-- expressions and predicates as arbiters
SELECT twin('CREATE TABLE T3 (id int, body text) USING AM');
SELECT twin('CREATE UNIQUE INDEX T3_lower ON T3 (lower(body)) WHERE id > 0');
SELECT twin('INSERT INTO T3 VALUES (1, ''A''), (2, ''a''), (-1, ''A''), (3, ''b'') ON CONFLICT (lower(body)) WHERE id > 0 DO NOTHING');
SELECT same('SELECT * FROM T3');
-- a deferrable constraint is no arbiter
SELECT twin('CREATE TABLE T4 (id int UNIQUE DEFERRABLE) USING AM');
SELECT twin_refusal('INSERT INTO T4 VALUES (1) ON CONFLICT DO NOTHING');
SELECT twin_refusal('INSERT INTO T4 VALUES (2) ON CONFLICT (id) DO NOTHING');
-- DO UPDATE cannot be: it says so, and leaves nothing behind
\set VERBOSITY default
INSERT INTO l VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET body = 'x';
\set VERBOSITY terse
INSERT INTO l VALUES (300, 300), (1, 1) ON CONFLICT (id) DO UPDATE SET body = 'x' WHERE l.id < 0;
SELECT count(*) FROM l WHERE id = 300 OR body = 'x';
MERGE INTO l USING (VALUES (1, 1), (90, 90)) v(id, k) ON l.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.k);
SELECT id, k, body FROM l WHERE id = 90;
MERGE INTO l USING (VALUES (1), (91)) v(id) ON l.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.id) WHEN MATCHED THEN DELETE;
MERGE INTO l USING (VALUES (1), (91)) v(id) ON l.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.id) WHEN MATCHED THEN DO NOTHING;
SELECT count(*) FROM l WHERE id IN (1, 91);
DROP SCHEMA am_conflict CASCADE;
