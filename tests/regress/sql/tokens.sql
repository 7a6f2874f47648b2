-- Access tokens: made, listed and revoked by the account, found by gateways; and cells that programs write.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.account_create('token owner', 'x', 'hash') AS owner \gset
SELECT sheet.account_create('token other', 'x', 'hash') AS other \gset
CREATE FUNCTION pg_temp.digest(token text) RETURNS bytea LANGUAGE sql AS $$ SELECT sha256(convert_to(token, 'UTF8')) $$;
-- 32 random bytes; only the digest is stored
SELECT sheet.create_token('first', as_uid => :owner) AS token \gset
SELECT :'token' ~ '^pgs_[A-Za-z0-9_-]{43}$' AS form, length(decode(translate(substr(:'token', 5), '-_', '+/') || '=', 'base64')) AS bytes;
SELECT label, scopes, expires_at - created_at AS valid, last_used FROM sheet.tokens(:owner);
SELECT count(*) FROM sheet.access_token t WHERE t::text LIKE '%' || :'token' || '%';
SELECT uid = :owner AS own, name, scopes, expires_at > now() AS ends, used FROM sheet.token_find(pg_temp.digest(:'token'));
SELECT count(*) FROM sheet.token_find(pg_temp.digest('pgs_' || repeat('A', 43)));
SELECT sheet.create_token('first', as_uid => :owner) <> :'token' AS another;
-- scopes in their order, each once
SELECT sheet.create_token('all', '{admin,upload,edit,read,edit}', as_uid => :owner) IS NOT NULL;
SELECT sheet.create_token('for good', '{edit}', NULL, :owner) AS forever \gset
SELECT label, scopes, expires_at IS NULL AS for_good FROM sheet.tokens(:owner);
SELECT sheet.create_token('x', '{}', as_uid => :owner);
SELECT sheet.create_token('x', '{read,write}', as_uid => :owner);
SELECT sheet.create_token('x', ARRAY['read', NULL], as_uid => :owner);
SELECT sheet.create_token('x', NULL, as_uid => :owner);
SELECT sheet.create_token('', as_uid => :owner);
SELECT sheet.create_token(repeat('x', 101), as_uid => :owner);
SELECT sheet.create_token(NULL, as_uid => :owner);
\set VERBOSITY terse
SELECT sheet.create_token('x', expires => now() - interval '1 s', as_uid => :owner);
SELECT sheet.create_token('x', as_uid => 987654321);
-- nobody, and a guest by a link
SELECT sheet.create_token('x');
SELECT sheet.create_token('x', as_uid => -5);
\set VERBOSITY default
-- when it was used, to the hour
SELECT token_id AS id FROM sheet.token_find(pg_temp.digest(:'token')) \gset
SELECT sheet.token_used(:id), sheet.token_used(:id), sheet.token_used(987654321);
SELECT last_used = date_trunc('hour', now()) AS this_hour FROM sheet.tokens(:owner) WHERE token_id = :id;
SELECT used FROM sheet.token_find(pg_temp.digest(:'token'));
UPDATE sheet.access_token SET last_used = last_used - interval '1 hour' WHERE token_id = :id;
SELECT used FROM sheet.token_find(pg_temp.digest(:'token'));
-- one that has ended is found no more, and stays in the list for a while
UPDATE sheet.access_token SET expires_at = now() WHERE token_id = :id;
SELECT count(*) FROM sheet.token_find(pg_temp.digest(:'token'));
SELECT count(*) FROM sheet.tokens(:owner) WHERE token_id = :id;
UPDATE sheet.access_token SET expires_at = now() - interval '31 days' WHERE token_id = :id;
SELECT sheet.create_token('next', as_uid => :owner) IS NOT NULL;
SELECT count(*) FROM sheet.tokens(:owner) WHERE token_id = :id;
-- revoking: one's own only; gateways hear of it
SELECT token_id AS id FROM sheet.token_find(pg_temp.digest(:'forever')) \gset
\set VERBOSITY sqlstate
SELECT sheet.revoke_token(:id, :other);
SELECT count(*) FROM sheet.token_find(pg_temp.digest(:'forever'));
SELECT "cursor" FROM sheet.follow(7, NULL, 0) \gset
SELECT sheet.revoke_token(:id, :owner);
SELECT sheet_ids = ARRAY[-:owner::bigint] AS account, seqs FROM sheet.follow(7, :cursor, 0);
SELECT count(*) FROM sheet.token_find(pg_temp.digest(:'forever'));
SELECT sheet.revoke_token(:id, :owner);
SELECT sheet.revoke_token(NULL, :owner);
-- a superuser revokes any
SELECT sheet.create_token('of another', as_uid => :other) AS token \gset
SELECT sheet.revoke_token(token_id) FROM sheet.token_find(pg_temp.digest(:'token'));
SELECT count(*) FROM sheet.tokens(:other);
-- a password that changes ends sign-ins, not tokens
SELECT sheet.create_token('kept', as_uid => :other) AS token \gset
SELECT sheet.account_set_password(:other, 'another');
SELECT count(*) FROM sheet.token_find(pg_temp.digest(:'token'));
-- at most 100
SELECT count(sheet.create_token('many ' || i, as_uid => :other)) FROM generate_series(1, 99) i;
SELECT sheet.create_token('too many', as_uid => :other);
-- who may call what
CREATE ROLE token_role;
SELECT sheet.link_account('token owner', 'token_role');
SET ROLE token_role;
SELECT sheet.create_token('by SQL', '{edit}') IS NOT NULL;
SELECT label FROM sheet.tokens() WHERE label = 'by SQL';
SELECT sheet.create_token('x', as_uid => :other);
SELECT count(*) FROM sheet.tokens(:other);
SELECT sheet.token_find('\x00');
SELECT sheet.token_used(1);
SELECT count(*) FROM sheet.access_token;
SELECT sheet.write_cells(1, '\x');
SELECT sheet.revoke_token((SELECT token_id FROM sheet.tokens() WHERE label = 'by SQL'));
RESET ROLE;
DROP ROLE token_role;
\set VERBOSITY default
-- ---- writing cells ----
SELECT sheet.create('written', 10, 5, as_uid => :owner) AS id \gset
SELECT sheet.share(:id, 'token other', 'viewer');
SELECT seq, "row" FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'a'), j_set(0, 1, 'b'), j_set(1, 0, 'c')), as_uid => :owner);
SELECT a1, content FROM sheet.range(:id);
SELECT DISTINCT uid = :owner AS by_owner, origin FROM sheet.log_edits(:id) WHERE kind = 'set';
-- nothing, and nothing new
SELECT seq FROM sheet.write_cells(:id, '\x', as_uid => :owner);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'a')), as_uid => :owner);
-- only if nobody has set these cells since
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'A')), 4, as_uid => :owner);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 1, 'B')), 4, as_uid => :owner);
SELECT j_error(format('SELECT sheet.write_cells(%s, j_batch(j_set(0, 0, ''AA''), j_set(5, 3, ''x'')), 4, as_uid => %s)', :id, :owner));
\set VERBOSITY sqlstate
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'AA')), 987654321, as_uid => :owner);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'AA')), -1, as_uid => :owner);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'AA')), 6, as_uid => :owner);
SELECT sheet.insert_rows(:id, 5);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 4, 'E')), 7, as_uid => :owner);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(0, 4, 'E')), 8, as_uid => :owner);
-- what was trimmed cannot be known
SELECT sheet.commit(:id) AS version \gset
SELECT sheet.trim(:id, :version) > 0;
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(1, 4, 'E')), 8, as_uid => :owner);
SELECT seq FROM sheet.write_cells(:id, j_batch(j_set(1, 4, 'E')), 10, as_uid => :owner);
-- below the last content: a style is none, and neither is the size of the sheet
SELECT seq, "row" FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'x'), j_set(1, 1, 'y')), append => true, as_uid => :owner);
SELECT duplicate FROM sheet.apply(:id, j_batch(j_edit(2, :owner, 8, 0, '', '{"bold":true}')));
SELECT "row" FROM sheet.write_cells(:id, j_batch(j_set(0, 0, 'z')), append => true, as_uid => :owner);
SELECT a1, content FROM sheet.range(:id, 'A3:E99') WHERE content <> '';
SELECT sheet.create('empty', 2000000, 3, as_uid => :owner) AS empty \gset
SELECT seq, "row" FROM sheet.write_cells(:empty, j_batch(j_set(0, 0, 'x')), append => true, as_uid => :owner);
SELECT sheet.set(:empty, 'B70000', 'far');
SELECT "row" FROM sheet.write_cells(:empty, j_batch(j_set(0, 0, 'x')), append => true, as_uid => :owner);
SELECT sheet.set(:empty, 'A16777216', 'the last row');
SELECT "row" FROM sheet.write_cells(:empty, j_batch(j_set(0, 0, 'x')), append => true, as_uid => :owner);
-- in a transaction that has made the content
BEGIN;
SELECT sheet.create('own', 10, 5, as_uid => :owner) AS own \gset
SELECT sheet.set(:own, 'A3', 'x');
SELECT "row" FROM sheet.write_cells(:own, j_batch(j_set(0, 0, 'y')), append => true, as_uid => :owner);
SELECT "row" FROM sheet.write_cells(:own, j_batch(j_set(0, 0, 'z')), append => true, as_uid => :owner);
ROLLBACK;
-- contents only, of editors
SELECT sheet.write_cells(:id, j_batch(j_edit(1, :owner, 0, 0, 'x', '{"bold":true}')), as_uid => :owner);
SELECT sheet.write_cells(:id, j_batch(j_edit(2, :owner, 0, 0, '', '{"bold":true}')), as_uid => :owner);
SELECT sheet.write_cells(:id, '\x0100000105', as_uid => :owner);
SELECT sheet.write_cells(:id, NULL, as_uid => :owner);
SELECT sheet.write_cells(:id, j_batch(j_set(0, 0, 'x')), as_uid => :other);
SELECT sheet.write_cells(987654321, j_batch(j_set(0, 0, 'x')), as_uid => :owner);
SELECT sheet.trash(:id);
SELECT sheet.write_cells(:id, j_batch(j_set(0, 0, 'x')), as_uid => :owner);
