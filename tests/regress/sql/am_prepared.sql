-- Two-phase commit of transactions that wrote to a sheetlog table: seen by nobody until then, by all afterwards, or never.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_prepared;
SET search_path = am_prepared, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (id int PRIMARY KEY, body text) USING sheetlog;
CREATE INDEX l_body ON l (body);
INSERT INTO l SELECT g, 'b' || g FROM generate_series(1, 100) g;
BEGIN;
INSERT INTO l VALUES (101, 'kept'), (102, repeat('long', 50000));
SAVEPOINT s;
INSERT INTO l VALUES (103, 'undone');
ROLLBACK TO s;
SAVEPOINT t;
INSERT INTO l VALUES (104, 'of a subtransaction');
RELEASE t;
PREPARE TRANSACTION 'am_prepared_1';
BEGIN;
INSERT INTO l VALUES (105, 'never'), (106, 'never');
PREPARE TRANSACTION 'am_prepared_2';
SELECT count(*) FROM l;
SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'am_prepared%' ORDER BY 1;
-- what they hold, others wait for
SET lock_timeout = '100ms';
INSERT INTO l VALUES (101, 'other');
INSERT INTO l VALUES (105, 'other');
INSERT INTO l VALUES (106, 'other') ON CONFLICT DO NOTHING;
INSERT INTO l VALUES (103, 'free'), (107, 'free');
TRUNCATE l;
ALTER TABLE l ADD COLUMN more int;
CREATE INDEX l_more ON l (id);
RESET lock_timeout;
-- VACUUM leaves their rows alone
VACUUM l;
VACUUM (FREEZE) l;
SELECT count(*) FROM l;
ANALYZE l;
COMMIT PREPARED 'am_prepared_1';
SELECT id, left(body, 20), length(body) FROM l WHERE id > 100 ORDER BY id;
INSERT INTO l VALUES (101, 'twice');
ROLLBACK PREPARED 'am_prepared_2';
SELECT id FROM l WHERE id > 103 ORDER BY id;
INSERT INTO l VALUES (105, 'other'), (106, 'other') ON CONFLICT DO NOTHING RETURNING id;
SET enable_seqscan = off;
SELECT id FROM l WHERE body IN ('kept', 'never', 'of a subtransaction', 'free') ORDER BY id;
RESET enable_seqscan;
VACUUM l;
SELECT count(*) FROM l;
-- deletions
SET pg_sheet.allow_log_delete = on;
BEGIN;
DELETE FROM l WHERE id BETWEEN 1 AND 10;
PREPARE TRANSACTION 'am_prepared_3';
BEGIN;
DELETE FROM l WHERE id BETWEEN 11 AND 20;
PREPARE TRANSACTION 'am_prepared_4';
SELECT count(*) FROM l WHERE id <= 20;
VACUUM l;
SET lock_timeout = '100ms';
DELETE FROM l WHERE id = 5;
INSERT INTO l VALUES (5, 'again');
RESET lock_timeout;
COMMIT PREPARED 'am_prepared_3';
ROLLBACK PREPARED 'am_prepared_4';
SELECT count(*) FROM l WHERE id <= 20;
INSERT INTO l VALUES (5, 'again');
INSERT INTO l VALUES (15, 'again');
VACUUM (FREEZE) l;
SELECT id, body FROM l WHERE id IN (5, 15) ORDER BY id;
-- a table that is made, changed or emptied by such a transaction
BEGIN;
CREATE TABLE l2 (id int PRIMARY KEY) USING sheetlog;
INSERT INTO l2 SELECT generate_series(1, 100);
PREPARE TRANSACTION 'am_prepared_5';
SELECT to_regclass('l2');
COMMIT PREPARED 'am_prepared_5';
SELECT count(*) FROM l2;
BEGIN;
TRUNCATE l2;
INSERT INTO l2 VALUES (1);
PREPARE TRANSACTION 'am_prepared_6';
ROLLBACK PREPARED 'am_prepared_6';
SELECT count(*) FROM l2;
BEGIN;
ALTER TABLE l2 SET ACCESS METHOD heap;
DELETE FROM l2 WHERE id > 50;
PREPARE TRANSACTION 'am_prepared_7';
COMMIT PREPARED 'am_prepared_7';
SELECT count(*) FROM l2;
DROP SCHEMA am_prepared CASCADE;
