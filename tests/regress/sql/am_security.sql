-- Rights, row-level security and views hold for a sheetlog table as for any other.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_security;
SET search_path = am_security, public;
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (id int PRIMARY KEY, owner name, secret text) USING sheetlog;
INSERT INTO l VALUES (1, 'am_security_a', 'a1'), (2, 'am_security_b', 'b1'), (3, 'am_security_a', 'a2');
CREATE ROLE am_security_a;
CREATE ROLE am_security_b;
GRANT USAGE ON SCHEMA am_security TO am_security_a, am_security_b;
SET ROLE am_security_a;
SELECT * FROM l;
INSERT INTO l VALUES (4, 'am_security_a', 'x');
RESET ROLE;
GRANT SELECT (id, owner), INSERT (id, owner) ON l TO am_security_b;
GRANT ALL ON l TO am_security_a;
SET ROLE am_security_b;
SELECT id, owner FROM l ORDER BY id;
SELECT secret FROM l;
SELECT ctid FROM l;
INSERT INTO l (id, owner) VALUES (5, 'am_security_b');
INSERT INTO l VALUES (6, 'am_security_b', 'x');
INSERT INTO l (id, owner) VALUES (7, 'am_security_b') RETURNING secret;
RESET ROLE;
ALTER TABLE l ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON l USING (owner = current_user) WITH CHECK (owner = current_user);
SET ROLE am_security_a;
SELECT id FROM l ORDER BY id;
SELECT count(*) FROM l TABLESAMPLE SYSTEM (100);
SET enable_seqscan = off;
SELECT secret FROM l WHERE id = 2;
SELECT secret FROM l WHERE id = 3;
RESET enable_seqscan;
INSERT INTO l VALUES (10, 'am_security_a', 'mine');
INSERT INTO l VALUES (11, 'am_security_b', 'not mine');
INSERT INTO l VALUES (2, 'am_security_a', 'taken') ON CONFLICT DO NOTHING;
COPY l TO stdout;
DELETE FROM l;
UPDATE l SET secret = '';
SELECT * FROM l FOR SHARE;
TRUNCATE l;
SET pg_sheet.allow_log_delete = on;
RESET ROLE;
SELECT id, owner FROM l ORDER BY id;
CREATE VIEW v WITH (security_barrier) AS SELECT id, secret FROM l WHERE owner = 'am_security_b';
GRANT SELECT ON v TO am_security_a;
SET ROLE am_security_a;
SELECT * FROM v ORDER BY id;
RESET ROLE;
DROP OWNED BY am_security_a, am_security_b;
DROP ROLE am_security_a, am_security_b;
DROP SCHEMA am_security CASCADE;
