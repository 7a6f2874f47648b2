-- Whose names the people of a sheet may know: those who are to be seen in it.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.account_create('seen owner', 'x', 'hash') AS owner \gset
SELECT sheet.account_create('seen member', 'x', 'hash') AS member \gset
SELECT sheet.account_create('seen author', 'x', 'hash') AS author \gset
SELECT sheet.account_create('seen client', 'x', 'hash') AS client \gset
SELECT sheet.account_create('seen committer', 'x', 'hash') AS committer \gset
SELECT sheet.account_create('seen stranger', 'x', 'hash') AS stranger \gset
SELECT sheet.create('seen', 10, 5, as_uid => :owner) AS id \gset
SELECT sheet.create('unseen', 10, 5, as_uid => :stranger) AS other \gset
CREATE FUNCTION pg_temp.seen(sheet bigint) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(coalesce(sheet.account_seen(sheet, a.uid), '-'), ', ' ORDER BY a.uid) FROM sheet.account a WHERE a.name LIKE 'seen %' $$;
SELECT pg_temp.seen(:id), pg_temp.seen(:other);
SELECT sheet.share(:id, 'seen member', 'viewer'), sheet.share(:id, 'seen committer', 'editor');
SELECT sheet.unshare(:id, 'seen member');
SELECT pg_temp.seen(:id);
SELECT sheet.share(:id, 'seen member', 'viewer');
SELECT duplicate FROM sheet.apply(:id, j_batch(j_edit(1, :author, 0, 0, 'a', NULL)));
SELECT duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a')), clients => ARRAY[:client, 7, 1, 2]);
SELECT pg_temp.seen(:id);
SELECT sheet.commit(:id, as_uid => :committer);
SELECT sheet.unshare(:id, 'seen committer');
SELECT pg_temp.seen(:id), pg_temp.seen(:other);
-- an author of long ago who never was a member is forgotten
SELECT count(*) FROM (SELECT sheet.set_range(:id, 'A1', (SELECT array_agg(ARRAY[i::text]) FROM generate_series(1, 990) i))) s;
SELECT pg_temp.seen(:id);
SELECT count(*) FROM (SELECT sheet.set_range(:id, 'A1', (SELECT array_agg(ARRAY['x' || i]) FROM generate_series(1, 20) i))) s;
SELECT pg_temp.seen(:id);
-- nobody, no sheet, no gateway
SELECT sheet.account_seen(:id, 0), sheet.account_seen(:id, 987654321), sheet.account_seen(987654321, :owner), sheet.account_seen(:id, NULL);
CREATE ROLE seen_nobody;
SET ROLE seen_nobody;
SELECT sheet.account_seen(:id, :owner);
RESET ROLE;
DROP ROLE seen_nobody;
CREATE ROLE seen_gateway IN ROLE sheet_gateway;
SET ROLE seen_gateway;
SELECT sheet.account_seen(:id, :owner), sheet.account_seen(:id, :stranger), sheet.account_seen(:id, :committer);
RESET ROLE;
DROP ROLE seen_gateway;
SELECT count(sheet.trash(s)) FROM unnest(ARRAY[:id, :other]) s;
SELECT count(sheet.purge(s)) FROM unnest(ARRAY[:id, :other]) s;
DELETE FROM sheet.account WHERE name LIKE 'seen %';
