-- Pastes: limits, who may do what, what operators do. Eviction and ends are tested by tests/tap/080_pastes.pl.
CREATE ROLE regress_paste_user;
CREATE ROLE regress_paste_stranger;
CREATE ROLE regress_paste_operator SUPERUSER;
CREATE ROLE regress_paste_gateway IN ROLE sheet_gateway;
INSERT INTO sheet.account (name) VALUES ('paste user');
SELECT sheet.link_account('paste user', 'regress_paste_user');

SELECT sheet.paste_create(E'a,"b ""c"""\r\n\td,äöü\r\n', 'a title', 'csv', '1 hour') AS id \gset
SELECT :'id' ~ '^[a-z2-7]{26}$' AS id;
SELECT content = E'a,"b ""c"""\r\n\td,äöü\r\n' AS content, title, lang, expires_at - created_at AS lifetime, views FROM sheet.paste_get(:'id');
SELECT views FROM sheet.paste_get(:'id');
SELECT views FROM sheet.paste_get(:'id', 0);
SELECT sheet.paste_viewed(:'id', 5) = expires_at AS same_end FROM sheet.paste_get(:'id');
SELECT views FROM sheet.paste_get(:'id', 0);
-- around each border of a block
SELECT count(*) FILTER (WHERE g.content = p.content AND g.title = p.title AND g.lang = p.lang) AS same, count(*)
FROM (SELECT left(repeat(md5(n::text), 1025), n) AS content, repeat('t', n % 201) AS title, repeat('l', n % 33) AS lang
	FROM unnest(ARRAY[32767, 32768] || array(SELECT generate_series(20, 1300))) n OFFSET 0) p,
	LATERAL sheet.paste_get(sheet.paste_create(p.content, p.title, p.lang)) g;
-- it is not part of the transaction
BEGIN;
SELECT sheet.paste_create('twenty bytes of text') AS other \gset
ROLLBACK;
SELECT content FROM sheet.paste_get(:'other');

-- what cannot be stored
\set VERBOSITY terse
SELECT sheet.paste_create(repeat('x', 19));
SELECT sheet.paste_create(repeat('ä', 16385));
SELECT sheet.paste_create(NULL);
SELECT sheet.paste_create('twenty bytes of text', repeat('t', 201));
SELECT sheet.paste_create('twenty bytes of text', E'a\nb');
SELECT sheet.paste_create('twenty bytes of text', lang => '<b>');
SELECT sheet.paste_create('twenty bytes of text', lang => repeat('l', 33));
SELECT sheet.paste_create('twenty bytes of text', lifetime => '0.9 s');
SELECT sheet.paste_create('twenty bytes of text', lifetime => '7 days 1 ms');
SELECT sheet.paste_create('twenty bytes of text', lifetime => '-1 day');
SELECT sheet.paste_create('twenty bytes of text', lifetime => '178000000 years');
SELECT sheet.paste_get(:'id', -1);
SELECT sheet.paste_create('twenty bytes of text', lifetime => '7 days') IS NOT NULL AS stored;
-- no id
SELECT count(*) FROM unnest(ARRAY['', 'x', upper(:'id'), left(:'id', 25), :'id' || 'a', repeat('a', 26), repeat('7', 26), repeat('1', 26)]) i,
	LATERAL sheet.paste_get(i);
-- one character is another one: none of those is found
SELECT count(*) FROM generate_series(1, 26) n, unnest(string_to_array('a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,2,3,4,5,6,7', ',')) c,
	LATERAL sheet.paste_get(overlay(:'id' placing c from n)) WHERE substr(:'id', n, 1) <> c;

-- who may
SET ROLE regress_paste_user;
SELECT sheet.paste_create('twenty bytes of text') AS mine \gset
SELECT content, views FROM sheet.paste_get(:'mine');
SELECT sheet.paste_get(:'mine', 2);
SELECT sheet.paste_viewed(:'mine', 1);
SELECT sheet.paste_create('twenty bytes of text', address => '192.0.2.1');
SELECT sheet.paste_create('twenty bytes of text', as_uid => 1);
SELECT * FROM sheet.moderation;
SELECT sheet.paste_block(:'mine');
SELECT sheet.paste_delete(:'mine');
SET ROLE regress_paste_stranger;
SELECT content FROM sheet.paste_get(:'mine');
SELECT sheet.paste_create('twenty bytes of text');
SET ROLE regress_paste_gateway;
SELECT sheet.paste_create('twenty bytes of text', address => '192.0.2.1') AS anonymous \gset
SELECT sheet.paste_create('twenty bytes of text', address => '192.0.2.1', as_uid => uid) AS account FROM sheet.account_find('paste user') \gset
SELECT count(*) FROM sheet.paste_get(:'account', 3);
SET ROLE regress_paste_operator;
SELECT m.title, m.lang, m.bytes, m.expires_at - m.created_at AS lifetime, m.views, m.blocked, m.uid IS NULL AS anonymous FROM sheet.moderation m
WHERE id IN (:'id', :'mine', :'anonymous', :'account') ORDER BY bytes DESC, lifetime, anonymous, views;
SELECT (SELECT origin FROM sheet.moderation WHERE id = :'mine') = (SELECT origin FROM sheet.moderation WHERE id = :'account') AS same,
	(SELECT origin FROM sheet.moderation WHERE id = :'mine') = (SELECT origin FROM sheet.moderation WHERE id = :'anonymous') AS other;
SELECT sheet.paste_block(:'mine'), sheet.paste_block(repeat('a', 26)), sheet.paste_block('no id');
SELECT count(*) FROM sheet.paste_get(:'mine');
SELECT blocked, views FROM sheet.moderation WHERE id = :'mine';
SELECT sheet.paste_block(:'mine', false);
SELECT content, views FROM sheet.paste_get(:'mine');
SELECT sheet.paste_delete(:'mine'), sheet.paste_delete(:'mine');
SELECT count(*) FROM sheet.paste_get(:'mine');
SELECT count(*) FROM sheet.moderation WHERE id = :'mine';
RESET ROLE;

-- another database has none of them
SELECT current_database() AS here \gset
CREATE DATABASE regress_pastes TEMPLATE template0;
\c regress_pastes
SET client_min_messages = warning;
CREATE EXTENSION pg_sheet;
SELECT count(*) FROM sheet.moderation;
SELECT count(*) FROM sheet.paste_get(:'id');
SELECT sheet.paste_delete(:'id');
\c :here
DROP DATABASE regress_pastes;

SELECT pastes > 1000 AS pastes, bytes <= budget AND bytes > 1000 * 256 AS bytes, share < budget AS share, created > 1000 AS created, evicted, deleted, refused, hits > 1000 AS hits, misses > 0 AS misses, sweep_ms >= 0 AS sweep
FROM sheet.paste_stats;
SELECT count(sheet.paste_delete(id)) > 1000 AS deleted FROM sheet.moderation;
SELECT pastes, bytes FROM sheet.paste_stats;
DROP OWNED BY regress_paste_user, regress_paste_stranger, regress_paste_operator, regress_paste_gateway;
DELETE FROM sheet.account WHERE name = 'paste user';
DROP ROLE regress_paste_user, regress_paste_stranger, regress_paste_operator, regress_paste_gateway;
