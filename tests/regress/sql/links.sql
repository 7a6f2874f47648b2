-- Share links: who may make them, what they open for guests and until when, and what the log says. Errors are shown by their SQLSTATE.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
\set VERBOSITY sqlstate
SELECT sheet.account_create('link ann', NULL, 'hash') AS ann, sheet.account_create('link bob', NULL, 'hash') AS bob \gset
CREATE ROLE link_ann;
CREATE ROLE link_bob;
CREATE ROLE link_gateway IN ROLE sheet_gateway;
SELECT sheet.link_account('link ann', 'link_ann'), sheet.link_account('link bob', 'link_bob');

-- owners
SET ROLE link_ann;
SELECT sheet.create('linked') AS id, sheet.create('other') AS other \gset
SELECT sheet.set(:id, 'A1', 'seen') > 0 AS set;
SELECT link_id AS view, key AS view_key FROM sheet.create_link(:id) \gset
SELECT link_id AS edit, key AS edit_key FROM sheet.create_link(:id, 'editor', NULL, label => 'Field team', password => 'gëheim') \gset
SELECT length(:'view_key'), :'view_key' ~ '^[A-Za-z0-9_-]+$' AS alphabet, :'view_key' <> :'edit_key' AS different;
SELECT role, replace(label, :'view', 'N') AS label, expires_at BETWEEN now() + interval '6 days 23 hours' AND now() + interval '7 days 1 hour' AS week,
	ref, has_password, state, uses, last_used, created_by, revoked_at FROM sheet.links(:id);
SELECT sheet_id = :id AS here, count(*) FROM sheet.links GROUP BY 1;
-- what links cannot be
SELECT sheet.create_link(:id, 'owner');
SELECT sheet.create_link(:id, NULL);
SELECT sheet.create_link(:id, 'viewer', now() - interval '1 second');
SELECT sheet.create_link(:id, 'viewer', '-infinity');
SELECT sheet.create_link(:id, label => E'a\nb');
SELECT sheet.create_link(:id, label => '');
SELECT sheet.create_link(:id, label => repeat('x', 101));
SELECT sheet.create_link(:id, password => repeat('x', 1025));
SELECT sheet.create_link(987654321);
SELECT sheet.create_link(NULL);
SELECT * FROM sheet.link;
-- others
SET ROLE link_bob;
SELECT sheet.create_link(:id);
SELECT * FROM sheet.links(:id);
SELECT count(*) FROM sheet.links;
SELECT sheet.change_link(:view, 'editor');
SELECT sheet.revoke_link(:view);
SELECT sheet.revoke_link(987654321);
SELECT sheet.create_link(:id, as_uid => :ann);
SELECT sheet.enter_link(sha256(:'view_key'), 'Zoe');
SELECT sheet.role_of(:id, -:view);

-- guests, by gateways
SET ROLE link_gateway;
SELECT link_id = :view AS link, sheet_id = :id AS sheet, role, username, generation, left_ms BETWEEN 600000000 AND 604800000 AS week, password IS NOT NULL AS has_password
	FROM sheet.enter_link(sha256(:'view_key'), E'Zoe\u0308');
SELECT link_id = :edit AS link, role, username, left_ms, left(password, 19) AS password FROM sheet.enter_link(sha256(:'edit_key'), 'Ben');
SELECT sheet.change_link(:edit, password => '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA', as_uid => :ann);
SELECT password FROM sheet.enter_link(sha256(:'edit_key'), 'Ben');
SELECT * FROM sheet.enter_link(sha256('AAAAAAAAAAAAAAAAAAAAAA'), 'Ben');
SELECT * FROM sheet.enter_link(sha256(''), 'Ben');
SELECT sheet.enter_link(sha256(:'view_key'), '');
SELECT sheet.enter_link(sha256(:'view_key'), ' a');
SELECT sheet.enter_link(sha256(:'view_key'), E'a\u202Eb');
SELECT sheet.enter_link(sha256(:'view_key'), repeat('x', 51));
SELECT sheet.enter_link(NULL, 'Ben');
SELECT sheet.role_of(:id, -:view), sheet.role_of(:id, -:edit), sheet.role_of(:other, -:edit), sheet.role_of(:id, -987654321),
	sheet.role_of(:id, (-9223372036854775808)::bigint);
SELECT name = 'Link ' || :view || ' (link)' AS name, token_generation FROM sheet.account_get(-:view);
SELECT name, token_generation FROM sheet.account_get(-:edit);
SELECT sheet.guest_left(-:view) > 0 AS some, sheet.guest_left(-:edit) AS none, sheet.guest_left(-987654321) AS unknown, sheet.guest_left(:ann) AS account;
SELECT role FROM sheet.info(:id, -:view);
SELECT sheet.set_range(:id, 'A2', '{{no}}', -:view);
SELECT sheet.set_range(:id, 'A2', '{{yes}}', -:edit) > 0 AS set;
SELECT duplicate FROM sheet.apply(:id, j_batch(j_edit(1, 4503599627370496 + :edit, 2, 0, 'by a gateway', NULL)), clients => ARRAY[-:edit, 7, 1, 1]);
SELECT sheet.commit(:id, 'by a guest', as_uid => -:edit) > 0 AS committed;
-- a guest is no account
SELECT sheet.create('mine', as_uid => -:edit);
SELECT sheet.import_csv('mine', 'a,b', as_uid => -:edit);
SELECT sheet.import_begin('mine', NULL, -:edit);
SELECT sheet.file_begin(:id, 'a.png', 'image/png', 5, -:edit);
SELECT sheet.open_link(:id, :'view_key', -:edit);
SELECT sheet.share(:id, 'link bob', 'viewer', -:edit);
SELECT sheet.share_link(:id, 'viewer', -:edit);
SELECT sheet.create_link(:id, as_uid => -:edit);
SELECT sheet.links(:id, -:edit);
SELECT sheet.revoke_link(:view, -:edit);
SELECT sheet.trash(:id, -:edit);
SELECT count(*) FROM sheet.account_sheets(-:edit);
SELECT sheet.register_opening(:id, -:edit);
RESET ROLE;
SELECT count(*) FROM sheet.member WHERE uid < 0;
-- a sheet that is open by its id alone is so for accounts, not for guests of another sheet
SELECT sheet.create('public', link_role => 'editor') AS public \gset
SELECT sheet.role_of(:public, :bob), sheet.role_of(:public, -:edit);
-- nobody has a name that is shown for guests
SELECT sheet.account_create('Field team (link)', NULL, 'hash');
SELECT sheet.account_create('Ben (guest)', NULL, 'hash');
SELECT sheet.account_create(E'Ben \uFF08guest\uFF09', NULL, 'hash');
SELECT sheet.account_rename(:bob, E'Field team (l\u0456nk)');

-- the log has the label, whatever has become of the link
SET ROLE link_ann;
SELECT seq, replace(username, :'view', 'N') AS username, uid = -:edit AS by_link, kind, new FROM sheet.log WHERE sheet_id = :id ORDER BY seq;
SELECT seq, new FROM sheet.log WHERE sheet_id = :id AND username = 'Field team (link)' ORDER BY seq;
SELECT count(*) FROM sheet.log WHERE sheet_id = :id AND username = 'Field team';
SELECT version_id, username, label FROM sheet.versions(:id);
RESET ROLE;
SELECT sheet.account_seen(:id, -:edit), sheet.account_seen(:other, -:edit);
SELECT what, place FROM sheet.fsck(:id);

-- changes
SET ROLE link_ann;
SELECT sheet.change_link(:edit, 'viewer', label => 'Office');
SELECT role, label, expires_at, has_password FROM sheet.links(:id) WHERE link_id = :edit;
SELECT sheet.change_link(:edit, expires => now() + interval '1 hour', password => '');
SELECT role, label, expires_at > now() AS later, has_password FROM sheet.links(:id) WHERE link_id = :edit;
SELECT sheet.change_link(:edit, 'owner');
SELECT sheet.change_link(:edit, expires => now());
SELECT sheet.change_link(NULL);
SET ROLE link_gateway;
SELECT name, token_generation FROM sheet.account_get(-:edit);
SELECT sheet.set_range(:id, 'A2', '{{no}}', -:edit);
SET ROLE link_ann;
SELECT sheet.change_link(:edit, blocked => true);
SELECT state FROM sheet.links(:id) WHERE link_id = :edit;
SELECT sheet.role_of(:id) AS owner;
SET ROLE link_gateway;
SELECT sheet.role_of(:id, -:edit), (SELECT count(*) FROM sheet.account_get(-:edit)), (SELECT count(*) FROM sheet.enter_link(sha256(:'edit_key'), 'Ben')), sheet.guest_left(-:edit);
SET ROLE link_ann;
SELECT sheet.change_link(:edit, blocked => false, expires => 'infinity');
SELECT state, expires_at FROM sheet.links(:id) WHERE link_id = :edit;
SELECT sheet.set(:id, 'A1', 'edits do not touch links'), sheet.insert_rows(:id, 0, 1), sheet.rollback(:id, 1) > 0 AS rolled_back;
SELECT role, state, has_password FROM sheet.links(:id);

-- the end is compared with the clock, within a transaction too
SELECT link_id AS short, key AS short_key FROM sheet.create_link(:id, 'editor', clock_timestamp() + interval '1 day') \gset
RESET ROLE;
CREATE FUNCTION pg_temp.ends(number bigint) RETURNS TABLE (before text, later boolean, after text, accounts bigint, "left" bigint) LANGUAGE plpgsql AS $$
DECLARE
	id bigint := (SELECT l.sheet_id FROM sheet.link l WHERE l.link_id = number);
BEGIN
	before := sheet.role_of(id, -number);
	UPDATE sheet.link l SET expires_at = clock_timestamp() WHERE l.link_id = number;
	later := (SELECT l.expires_at > now() FROM sheet.link l WHERE l.link_id = number);
	after := coalesce(sheet.role_of(id, -number), 'none');
	accounts := (SELECT count(*) FROM sheet.account_get(-number));
	"left" := sheet.guest_left(-number);
	RETURN NEXT;
END
$$;
SELECT * FROM pg_temp.ends(:short);
SELECT count(*) FROM sheet.enter_link(sha256(:'short_key'), 'Ben');
SELECT sheet.set_range(:id, 'A2', '{{late}}', -:short);
SELECT state FROM sheet.links(:id) WHERE link_id = :short;

-- a rectangle: it gives no role on the sheet, and is wherever its cells are
SELECT sheet.create('plan', 20, 10, as_uid => :ann) AS plan \gset
SET ROLE link_ann;
SELECT sheet.set_range(:plan, 'A1', '{{secret,b1,c1},{a2,in1,=A1},{a3,in2,"''=x"},{a4,b4,c4}}') > 0 AS set, sheet.commit(:plan) AS first, sheet.set(:plan, 'J1', 'after it') > 0 AS after;
SELECT link_id AS rect, key AS rect_key FROM sheet.create_link(:plan, ref => 'C3:B2', label => 'Part') \gset
SELECT sheet.create_link(:plan, 'commenter', ref => 'A1:B2');
SELECT sheet.create_link(:plan, ref => 'A1:B');
SELECT sheet.create_link(:plan, ref => 'A:C');
SELECT sheet.create_link(:plan, ref => '');
SELECT sheet.change_link(:rect, 'commenter');
SET ROLE link_bob;
SELECT sheet.link_target(-:rect);
SELECT sheet.published_cells(:plan, :rect, 1000);
SELECT sheet.link_place(:plan, :rect);
SET ROLE link_gateway;
SELECT link_id = :rect AS link, sheet_id, role, password FROM sheet.enter_link(sha256(:'rect_key'), 'Ben');
SELECT name FROM sheet.account_get(-:rect);
SELECT sheet.role_of(:plan, -:rect);
SELECT role FROM sheet.info(:plan, -:rect);
SELECT sheet.check_role(:plan, 'viewer', as_uid => -:rect);
SELECT sheet_id = :plan AS here, ref, "row", col, rows, cols FROM sheet.link_target(-:rect);
SELECT * FROM sheet.link_target(-:view);
SELECT * FROM sheet.link_target(:ann);
SELECT * FROM sheet.link_target(NULL);
RESET ROLE;
CREATE FUNCTION pg_temp.part(plan bigint, link bigint) RETURNS text LANGUAGE sql AS $$
	SELECT p.ref || ': ' || coalesce((SELECT string_agg(concat_ws(' ', r."row" - p."row", r.col - p.col, CASE WHEN r.content ~ '^=' THEN 'formula' ELSE r.content END), ', ' ORDER BY r."row", r.col)
		FROM sheet.range(plan, p.ref) r WHERE p.ref <> ''), '-') FROM sheet.link_place(plan, link) p $$;
SELECT sheet.insert_rows(:plan, 0, 3), sheet.insert_columns(:plan, 1, 1), pg_temp.part(:plan, :rect);
SELECT sheet.commit(:plan) AS second;
SELECT sheet.insert_rows(:plan, 5, 2), sheet.delete_columns(:plan, 0, 1), pg_temp.part(:plan, :rect);
SELECT sheet.set(:plan, 'A1', 'elsewhere'), pg_temp.part(:plan, :rect);
SELECT ref, state FROM sheet.links(:plan);
-- a transaction that is rolled back moves nothing
BEGIN;
SELECT sheet.delete_rows(:plan, 0, 4), pg_temp.part(:plan, :rect);
SAVEPOINT s;
SELECT sheet.delete_rows(:plan, 0, 10), pg_temp.part(:plan, :rect);
ROLLBACK TO s;
SELECT pg_temp.part(:plan, :rect);
ROLLBACK;
SELECT pg_temp.part(:plan, :rect);
-- a version has the cells where they were; one that is older than the link does not tell where
SELECT sheet.rollback(:plan, 2) > 0 AS back, pg_temp.part(:plan, :rect);
SELECT sheet.insert_rows(:plan, 0, 1), pg_temp.part(:plan, :rect);
SELECT sheet.rollback(:plan, 3) > 0 AS back, pg_temp.part(:plan, :rect);
BEGIN;
SELECT sheet.rollback(:plan, 1) > 0 AS back, pg_temp.part(:plan, :rect);
SELECT (SELECT count(*) FROM sheet.link_target(-:rect)), (SELECT count(*) FROM sheet.enter_link(sha256(:'rect_key'), 'Ben'));
ROLLBACK;
-- by gateways, several in one batch
SELECT duplicate FROM sheet.apply(:plan, j_batch(j_edit(6, 0, 0, 0, '2', NULL), j_edit(6, 0, 0, 0, '1', NULL)));
SELECT pg_temp.part(:plan, :rect);
-- when all of it is deleted, the link opens nothing, and does not come back
SELECT sheet.delete_rows(:plan, 8, 1), pg_temp.part(:plan, :rect);
SELECT sheet.delete_rows(:plan, 0, 15), pg_temp.part(:plan, :rect);
SELECT sheet.insert_rows(:plan, 0, 15), pg_temp.part(:plan, :rect);
SELECT count(*) FROM sheet.enter_link(sha256(:'rect_key'), 'Ben');
SELECT count(*) FROM sheet.link_target(-:rect);
SELECT ref = '' AS lost, state FROM sheet.links(:plan);
SELECT sheet.create_link(:plan, ref => 'B2', if_seq => 5);
SELECT max(seq) AS last_seq FROM sheet.log WHERE sheet_id = :plan \gset
SELECT sheet.create_link(:plan, ref => 'B2', if_seq => :last_seq) IS NOT NULL AS another, sheet.revoke_link(:rect);
SELECT count(*) FROM sheet.link_rect WHERE link_id = :rect;
SELECT sheet.trash(:plan), sheet.purge(:plan);
SELECT count(*) FROM sheet.link_rect;

-- guests of a rectangle with the role editor write in it, wherever it is, and nowhere else. A cell: row, column, content, what was seen.
CREATE FUNCTION j_guest_write(guest bigint, cells jsonb, rows int DEFAULT NULL, cols int DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	bytes bytea;
BEGIN
	SELECT j_batch(VARIADIC array_agg(set_byte(j_edit(1, 9, (c->>0)::int, (c->>1)::int, c->>2), 0, CASE WHEN jsonb_array_length(c) > 3 THEN 33 ELSE 1 END)
		|| CASE WHEN jsonb_array_length(c) > 3 THEN j_varint(octet_length(coalesce(c->>3, '='))) || convert_to(coalesce(c->>3, '='), 'UTF8') ELSE '' END ORDER BY o))
		INTO bytes FROM jsonb_array_elements(cells) WITH ORDINALITY e(c, o);
	SELECT * INTO r FROM sheet.link_write(bytes, rows, cols, false, guest);
	RETURN CASE WHEN r.seq IS NOT NULL THEN 'written' ELSE format('%s,%s has %s', r."row", r.col, coalesce(r.content, 'a formula')) END;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ': ' || regexp_replace(sqlerrm, 'sheet \d+', 'sheet N');
END $$;
SELECT sheet.create('form', 10, 10, as_uid => :ann) AS form \gset
SET ROLE link_ann;
SELECT sheet.set_range(:form, 'A1', '{{secret,b1,c1},{a2,in1,=A1},{a3,in2,"''=x"},{a4,b4,c4}}') > 0 AS set;
SELECT link_id AS pen, key AS pen_key FROM sheet.create_link(:form, 'editor', ref => 'B2:C3', label => 'Form') \gset
SELECT role, ref FROM sheet.links(:form);
SELECT sheet.link_write('', NULL, NULL, false, -:pen);
SET ROLE link_gateway;
SELECT sheet_id, role FROM sheet.enter_link(sha256(:'pen_key'), 'Ben');
SELECT ref, role FROM sheet.link_target(-:pen);
SELECT sheet.role_of(:form, -:pen);
SELECT sheet.set_range(:form, 'B2', '{{no}}', -:pen);
SELECT sheet.write_cells(:form, j_batch(j_set(1, 1, 'no')), as_uid => -:pen);
SELECT count(*) FROM sheet.published(sha256(:'pen_key'));
RESET ROLE;
SELECT j_guest_write(-:pen, '[[0,0,"first","in1"],[1,1,"",null]]') AS not_a_formula;
SELECT j_guest_write(-:pen, '[[0,0,"first","in1"],[1,0,"second"],[1,1,"","''=x"]]');
SELECT a1, content FROM sheet.range(:form) WHERE content !~ 'in1';
SELECT kind, "row", col, old, new, username, uid = -:pen AS by_link FROM sheet.log WHERE sheet_id = :form AND uid < 0 ORDER BY seq;
-- what somebody else has written is not overwritten, nor is anything of that request
SELECT j_guest_write(-:pen, '[[1,1,"x",""],[1,0,"mine","in2"],[0,0,"mine","in1"]]');
SELECT j_guest_write(-:pen, '[[1,1,"x","y"]]') AS empty_now;
SELECT j_guest_write(-:pen, jsonb_build_array(jsonb_build_array(1, 1, 'x', repeat('y', 32767)))) AS empty_now;
SELECT j_guest_write(-:pen, '[[0,0,"a","first"],[0,0,"b","first"]]');
SELECT sheet.get(:form, 'B2') AS last_one;
SELECT max(seq) AS before FROM sheet.log WHERE sheet_id = :form \gset
SELECT j_guest_write(-:pen, '[[0,0,"b","b"],[1,1,"",""]]'), max(seq) = :before AS nothing_new FROM sheet.log WHERE sheet_id = :form;
-- a formula is overwritten by who has seen that it is one, and no text that is sent tells what it is
SELECT j_guest_write(-:pen, '[[0,1,"x"]]'), j_guest_write(-:pen, '[[0,1,"x",""]]'), j_guest_write(-:pen, '[[0,1,"x","A1"]]');
SELECT j_guest_write(-:pen, '[[0,1,"x","=wrong"]]');
SELECT sheet.get(:form, 'C2');
-- nothing that is evaluated
SELECT c, j_guest_write(-:pen, jsonb_build_array(jsonb_build_array(0, 1, c, 'x'))) FROM unnest(ARRAY['=A1', '=', '=HYPERLINK("x")', '={1,2}', E'=\n']) c;
SELECT j_guest_write(-:pen, '[[0,1,"''=A1","x"]]');
SELECT sheet.get(:form, 'C2');
SELECT j_guest_write(-:pen, '[[0,1," =A1","''=A1"]]');
SELECT sheet.get(:form, 'C2');
SET ROLE link_gateway;
SELECT sheet.link_write(j_batch(j_edit(1, 0, 0, 0, 'x', '{}')), NULL, NULL, false, -:pen);
SELECT sheet.link_write(j_batch(j_edit(2, 0, 0, 0, '', '{}')), NULL, NULL, false, -:pen);
SELECT sheet.link_write(j_batch(j_edit(6, 0, 0, 0, '1')), NULL, NULL, false, -:pen);
SELECT sheet.link_write(j_batch(j_edit(10, 0, 0, 0, 'true')), NULL, NULL, false, -:pen);
SELECT sheet.link_write(j_batch(j_set(0, 0, repeat('x', 32768))), NULL, NULL, false, -:pen);
SELECT sheet.link_write('\x00', NULL, NULL, false, -:pen);
SELECT sheet.link_write('', NULL, NULL, false, NULL);
SELECT sheet_id = :form AS here, seq > 0 AS seq, "row" FROM sheet.link_write('', 2, 2, true, -:pen);
RESET ROLE;
-- nowhere else
SELECT j_guest_write(-:pen, '[[2,0,"x"]]'), j_guest_write(-:pen, '[[0,2,"x"]]'), j_guest_write(-:pen, '[[0,0,"x"],[2147483647,0,"x"]]'), j_guest_write(-:pen, '[[0,2147483647,"x"]]');
SELECT j_guest_write(-:pen, '[[-1,0,"x"]]') ~ '^22' AS refused;
-- it follows its cells
SELECT sheet.insert_rows(:form, 0, 3), sheet.insert_columns(:form, 1, 1), j_guest_write(-:pen, '[[0,0,"moved","b"]]');
SELECT sheet.get(:form, 'C5');
BEGIN;
SELECT sheet.delete_rows(:form, 0, 4), sheet.insert_rows(:form, 1, 1), j_guest_write(-:pen, '[[1,0,"between",""],[2,1,"last",""]]'), sheet.get(:form, 'C2');
SELECT sheet.get(:form, 'D3');
-- rows that have come inside make other cells of the rows below
SELECT j_guest_write(-:pen, '[[1,0,"x"]]', 2, 2), j_guest_write(-:pen, '[[1,0,"x"]]', 3, 1), j_guest_write(-:pen, '[[1,0,"x"]]', 3, 2), j_guest_write(-:pen, '[[1,0,"y"]]', NULL, 2);
SAVEPOINT s;
SELECT sheet.delete_rows(:form, 0, 3), j_guest_write(-:pen, '[[0,0,"x"]]');
ROLLBACK TO s;
SELECT sheet.trash(:form), j_guest_write(-:pen, '[[0,0,"x"]]');
ROLLBACK;
SELECT string_agg(content, ',' ORDER BY "row", col) FROM sheet.range(:form);
-- the role, and the link, are those of now
SET ROLE link_ann;
SELECT sheet.change_link(:pen, 'viewer');
RESET ROLE;
SELECT j_guest_write(-:pen, '[[0,0,"x"]]');
SELECT role FROM sheet.link_target(-:pen);
SELECT count(*) FROM sheet.published(sha256(:'pen_key'));
SELECT sheet.change_link(:pen, 'editor', blocked => true), j_guest_write(-:pen, '[[0,0,"x"]]');
SELECT sheet.change_link(:pen, blocked => false, password => 'x'), j_guest_write(-:pen, '[[0,0,"x"]]');
UPDATE sheet.link SET expires_at = clock_timestamp() WHERE link_id = :pen;
SELECT j_guest_write(-:pen, '[[0,0,"y"]]');
SELECT sheet.change_link(:pen, expires => 'infinity'), j_guest_write(-:pen, '[[0,0,"y"]]');
SELECT sheet.revoke_link(:pen), j_guest_write(-:pen, '[[0,0,"z"]]');
SELECT j_guest_write(-:edit, '[[0,0,"z"]]'), j_guest_write(:ann, '[[0,0,"z"]]'), j_guest_write(-987654321, '[[0,0,"z"]]');
SELECT what, place FROM sheet.fsck(:form);
SELECT sheet.trash(:form), sheet.purge(:form);
DROP FUNCTION j_guest_write;

-- the end of links
SET ROLE link_ann;
SELECT sheet.revoke_link(:edit), sheet.revoke_link(:edit);
SELECT sheet.change_link(:edit, 'editor');
SELECT state, revoked_at > created_at AS later FROM sheet.links(:id) WHERE link_id = :edit;
SELECT sheet.has_link(:id, :view, :ann);
SET ROLE link_gateway;
SELECT count(*) FROM sheet.enter_link(sha256(:'edit_key'), 'Ben');
SELECT sheet.role_of(:id, -:edit), (SELECT count(*) FROM sheet.account_get(-:edit));
SELECT sheet.has_link(:id, :view, :ann), sheet.has_link(:id, :edit, :ann) AS revoked, sheet.has_link(:other, :view, :ann) AS of_another, sheet.has_link(:id, 987654321, :ann) AS unknown;
SELECT sheet.has_link(:id, :view, :bob);
SELECT sheet.has_link(:id, 987654321, :bob);
SELECT sheet.has_link(:id, :view, -:view);
SELECT sheet.has_link(987654321, :view, :ann);
SELECT sheet.has_link(:id, NULL, :ann);
SELECT sheet.count_link_uses(:view, 3), sheet.count_link_uses(:view, 2);
RESET ROLE;
SELECT count(*) FILTER (WHERE username = 'Office (link)') AS label_stays, count(*) FILTER (WHERE uid = -:edit) AS edits FROM sheet.log WHERE sheet_id = :id;
SELECT uses, last_used IS NOT NULL AS used FROM sheet.links(:id) WHERE link_id = :view;
-- a list has what is not revoked, and of the others those that were revoked last, however old they are
SELECT state, count(*) FROM sheet.links(:id) GROUP BY 1 ORDER BY 1;
BEGIN;
INSERT INTO sheet.link (sheet_id, digest, role, label, created_by, revoked_at) SELECT :id, sha256(convert_to('revoked ' || n, 'UTF8')), 'viewer', n::text, 0, now() - n * interval '1 minute' FROM generate_series(1, 500) n;
SELECT state, count(*), count(*) FILTER (WHERE link_id = :edit) AS revoked_now, max(label::int) FILTER (WHERE label ~ '^[0-9]+$') AS oldest FROM sheet.links(:id) GROUP BY 1 ORDER BY 1;
SELECT bool_and(newer) AS newest_first FROM (SELECT link_id < lag(link_id, 1, 9223372036854775807) OVER () AS newer FROM sheet.links(:id)) l;
ROLLBACK;
-- in the trash
SELECT sheet.trash(:id);
SELECT count(*) FROM sheet.enter_link(sha256(:'view_key'), 'Ben');
SET ROLE link_ann;
SELECT sheet.create_link(:id);
SELECT count(*) FROM sheet.links(:id);
RESET ROLE;
SELECT trashed, role FROM sheet.info(:id, -:view);
SELECT sheet.check_role(:id, 'viewer', as_uid => -:view);
SELECT count(sheet.purge(s)) FROM unnest(ARRAY[:id, :other, :public]) s;
SELECT count(*) FROM sheet.link WHERE sheet_id IN (:id, :other, :public);
SELECT sheet.role_of(:id, -:view);
DELETE FROM sheet.account WHERE name LIKE 'link %';
DROP ROLE link_ann, link_bob, link_gateway;
