-- Accounts, roles, sharing, trash, files: who may do what. Errors are shown by their SQLSTATE.
\set VERBOSITY sqlstate
SELECT sheet.account_create('perm ann', 'ann@example.com', 'hash') AS ann, sheet.account_create('perm bob', NULL, 'hash') AS bob \gset
SELECT sheet.account_create('perm ann', NULL, 'hash');
SELECT sheet.account_create('', NULL, 'hash');
SELECT sheet.account_create(repeat('é', 101), NULL, 'hash');
SELECT sheet.account_create(E'a\tb', NULL, 'hash');
SELECT sheet.account_create(E'a\u202Eb', NULL, 'hash');
SELECT sheet.account_create(E'a\u200Bb', NULL, 'hash');
SELECT sheet.account_create(' a', NULL, 'hash');
-- a name is the same however its accents were typed
SELECT sheet.account_create(E'perm Zoe\u0308', NULL, 'hash') AS zoe \gset
SELECT sheet.account_create(E'perm Zo\u00EB', NULL, 'hash');
SELECT uid = :zoe AS found, name = E'perm Zo\u00EB' AS composed FROM sheet.account_find(E'perm Zoe\u0308');
SELECT sheet.account_rename(:bob, 'perm ann');
SELECT sheet.account_set_password(:bob, 'other');
SELECT name, password_hash, token_generation FROM sheet.account_find('perm bob');
SELECT name, token_generation FROM sheet.account_get(:ann);
CREATE ROLE perm_ann;
CREATE ROLE perm_bob;
CREATE ROLE perm_eve;
CREATE ROLE perm_gateway IN ROLE sheet_gateway;
SELECT sheet.link_account('perm ann', 'perm_ann'), sheet.link_account('perm bob', 'perm_bob');
SELECT sheet.link_account('perm ann', 'perm_bob');
SELECT sheet.link_account('perm ann', 'perm_nobody');

-- the owner
SET ROLE perm_ann;
SELECT sheet.create('perm sheet') AS id \gset
SELECT sheet.role_of(:id), sheet.set(:id, 'A1', 'mine') > 0 AS set;
SELECT name, owner, role, trashed FROM sheet.list;

-- a stranger, with and without an account
SET ROLE perm_bob;
SELECT sheet.get(:id, 'A1');
SELECT sheet.set(:id, 'A1', 'x');
SELECT sheet.share(:id, 'perm bob', 'editor');
SELECT sheet.info(:id);
SELECT count(*) FROM sheet.list;
SELECT count(*) FROM sheet.cells;
SELECT count(*) FROM sheet.log;
-- only gateways may execute what is for gateways
SELECT p.oid::regprocedure AS "for everybody" FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace
	AND obj_description(p.oid, 'pg_proc') ~* 'for gateways\.?$' AND has_function_privilege('perm_eve', p.oid, 'EXECUTE') ORDER BY 1;
SET ROLE perm_eve;
SELECT sheet.create('no account');
SELECT sheet.get(:id, 'A1');
SELECT count(*) FROM sheet.cells;
SELECT * FROM sheet.sheet;
SELECT * FROM sheet.account;
SELECT * FROM sheet.log_batch;
SELECT sheet.account_create('perm eve', NULL, NULL);
SELECT sheet.role_of(:id, :ann);
SELECT sheet.link_account('perm ann', 'perm_eve');
SELECT sheet.set_id_range(1, 1);
SELECT sheet.apply(:id, '');
SELECT sheet.coordinator_acquire('eve');
SELECT sheet.file_list(:id);
-- ids are what a link consists of
SELECT count(*) FROM sheet.cache_entries_read();
SELECT count(*) FROM sheet.cache_entries;
SELECT count(*) FROM sheet.cache_stats;
SET ROLE pg_monitor;
SELECT count(*) > 0 AS entries FROM sheet.cache_entries;

-- a viewer
SET ROLE perm_ann;
SELECT sheet.share(:id, 'perm bob', 'viewer');
SELECT sheet.share(:id, 'nobody there', 'viewer');
SELECT sheet.share(:id, 'perm ann', 'viewer');
SELECT sheet.share(:id, 'perm bob', 'owner');
SELECT name, role FROM sheet.members(:id);
SET ROLE perm_bob;
SELECT sheet.get(:id, 'A1'), sheet.role_of(:id);
SELECT content FROM sheet.cells WHERE sheet_id = :id;
SELECT username, new FROM sheet.log WHERE sheet_id = :id AND kind = 'set';
SELECT sheet.set(:id, 'A1', 'x');
SELECT sheet.rename(:id, 'x');
SELECT sheet.commit(:id);

-- an editor
SET ROLE perm_ann;
SELECT sheet.share(:id, 'perm bob', 'editor');
SET ROLE perm_bob;
SELECT sheet.set(:id, 'A1', 'bob') > 0 AS set;
SELECT sheet.rename(:id, 'renamed');
SELECT sheet.trash(:id);
SELECT sheet.purge(:id);
SELECT sheet.share_link(:id, 'viewer');

-- everyone with the link, who is in the list then; a new link ends the one before it, and who came by it has no role any more
SET ROLE perm_ann;
SELECT sheet.unshare(:id, 'perm bob');
SELECT sheet.share_link(:id, 'viewer') AS key \gset
SELECT length(:'key');
SET ROLE perm_bob;
SELECT sheet.role_of(:id);
SELECT sheet.open_link(:id, 'no such key');
SELECT sheet.open_link(:id, NULL);
SELECT sheet.open_link(:id, :'key');
SELECT sheet.open_link(:id, 'no such key');
SELECT sheet.get(:id, 'A1'), sheet.role_of(:id);
SELECT name, role, link_role FROM sheet.list;
SELECT name, role FROM sheet.members(:id);
SET ROLE perm_ann;
SELECT sheet.share_link(:id, 'editor') AS key2 \gset
SELECT name, role FROM sheet.members(:id);
SET ROLE perm_bob;
SELECT sheet.role_of(:id);
SELECT count(*) FROM sheet.list;
SELECT sheet.open_link(:id, :'key');
SELECT sheet.open_link(:id, :'key2');
SET ROLE perm_ann;
SELECT sheet.share_link(:id, NULL);
SELECT sheet.share(:id, 'perm bob', 'viewer');
SET ROLE perm_bob;
SELECT sheet.open_link(:id, :'key2');
SELECT name, role, link_role FROM sheet.list;
SET ROLE perm_ann;
SELECT sheet.unshare(:id, 'perm bob');
SELECT sheet.share_link(:id, 'viewer') AS key \gset
SET ROLE perm_bob;
SELECT sheet.open_link(:id, :'key');
SET ROLE perm_eve;
SELECT sheet.get(:id, 'A1');

-- the trash
SET ROLE perm_ann;
SELECT sheet.trash(:id);
SELECT sheet.set(:id, 'A1', 'x');
SELECT sheet.get(:id, 'A1');
SELECT trashed FROM sheet.list;
SELECT count(*) FROM sheet.cells;
SELECT sheet.recover(:id);
SELECT sheet.get(:id, 'A1');

-- a gateway acts for accounts, not for itself
SET ROLE perm_gateway;
SELECT sheet.role_of(:id, :bob), sheet.role_of(:id, :ann), sheet.role_of(:id);
SELECT name, owner, role FROM sheet.info(:id, :bob);
SELECT sheet.check_role(:id, 'editor', as_uid => :bob);
SELECT sheet.check_role(:id, 'king', as_uid => :bob);
SELECT sheet.set(:id, 'A1', 'x');
SELECT sheet.set_range(:id, 'B1', '{{by ann}}', :ann) > 0 AS set, sheet.set_property(:id, 'B1', 'color', '1', :ann) > 0 AS set_property;
SELECT kind, username FROM sheet.log_edits(:id) WHERE a1 = 'B1' OR key = 'color';
SELECT sheet.set_range(:id, 'B1', '{{by bob}}', :bob);
SELECT sheet.set_property(:id, 'B1', 'color', '2', :bob);
SET ROLE perm_bob;
SELECT sheet.set_range(:id, 'B1', '{{for ann}}', :ann);
SELECT sheet.set_property(:id, 'B1', 'color', '2', :ann);
SET ROLE perm_gateway;
SELECT name, role, trashed, versions, cols FROM sheet.account_sheets(:ann);
SELECT upload_id AS up, name FROM sheet.file_begin(:id, 'a.b.txt', 'text/plain', as_uid => :ann) \gset
SELECT name FROM sheet.file_begin(:id, 'a.b.txt', 'text/plain', as_uid => :ann);
SELECT count(*) FROM sheet.file_list(:id);
SELECT sheet.file_put(:up, 0, 'abc');
SELECT sheet.file_put(:up, 0, 'abc');
SELECT sheet.file_put(:up, 2, 'abc');
SELECT length(sheet.file_end(:up, 'ff')) AS key_length;
SELECT upload_id AS up2 FROM sheet.file_begin(:id, 'whole', NULL, as_uid => :ann) \gset
SELECT sheet.file_put(:up2, 0, 'abc');
SELECT length(sheet.file_end(:up2, 'ff')) AS key_length;
SELECT size, etag FROM sheet.file_info(:id, 'whole');
SELECT sheet.file_get(:up2, 0), sheet.file_get(:up2, 1) IS NULL AS past_the_end;
SELECT sheet.file_put(:up2, 1, 'abc');
SELECT sheet.file_abort(:up);
SELECT name, length(link_key) FROM sheet.file_list(:id);
SELECT sheet.file_begin(:id, 'a/b', NULL, as_uid => :ann);
SELECT sheet.file_begin(:id, '..', NULL, as_uid => :ann);
SELECT sheet.file_begin(:id, 'x', NULL, as_uid => :bob);
-- the quota: what is announced counts from the beginning, what is not at the end
RESET ROLE;
SET pg_sheet.file_quota = '1kB';
SET ROLE perm_gateway;
SELECT sheet.file_begin(:id, 'q', NULL, 1022, :ann);
SELECT sheet.file_begin(:id, 'q', NULL, -1, :ann);
SELECT upload_id AS up3 FROM sheet.file_begin(:id, 'q', NULL, 1000, :ann) \gset
SELECT sheet.file_put(:up3, 0, repeat('x', 1001)::bytea);
SELECT sheet.file_begin(:id, 'r', NULL, 22, :ann);
SELECT upload_id AS up4 FROM sheet.file_begin(:id, 'r', NULL, as_uid => :ann) \gset
SELECT sheet.file_put(:up4, 0, repeat('x', 22)::bytea);
SELECT length(sheet.file_end(:up4, 'ff')) AS key_length;
SELECT sheet.file_put(:up3, 0, repeat('x', 999)::bytea);
SELECT length(sheet.file_end(:up3, 'ff')) AS key_length;
SELECT length(sheet.file_end(:up4, 'ff')) AS key_length;
SELECT sheet.file_begin(:id, 's', NULL, 1, :ann);
SELECT used, quota FROM sheet.file_usage(:ann);
RESET ROLE;
SET pg_sheet.file_quota = 0;
SET ROLE perm_gateway;
SELECT used, quota FROM sheet.file_usage(:ann);
SELECT name FROM sheet.file_begin(:id, 's', NULL, 1, :ann);
SELECT sheet.coordinator_acquire('me') > 0 AS acquired;
SELECT sheet.coordinator_holder();

-- an operator of the caller's never runs with the rights of the tables' owner
RESET ROLE;
CREATE SCHEMA perm_own AUTHORIZATION perm_ann;
SET ROLE perm_ann;
CREATE FUNCTION perm_own.differ(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RAISE NOTICE 'called'; RETURN false; END $$;
CREATE OPERATOR perm_own.<> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = perm_own.differ);
SET search_path = perm_own, pg_catalog;
SELECT severity, what FROM sheet.fsck(:id, true);
RESET search_path;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA perm_own CASCADE;
RESET client_min_messages;

SET ROLE perm_ann;
SELECT sheet.purge(:id);
SELECT sheet.get(:id, 'A1');
RESET ROLE;
SELECT sheet.create('x', 0), 1;
SELECT sheet.create('x', 16777217);
SELECT sheet.create('x', 1, 16385);
SELECT sheet.create('');
SELECT sheet.create('x', link_role => 'owner');
SELECT sheet.create('x', as_uid => 999999);
SELECT sheet.link_account('perm ann', NULL), sheet.link_account('perm bob', NULL);
-- a role that is dropped leaves nothing behind that another could inherit; an undone DROP changes nothing
SELECT sheet.link_account('perm bob', 'perm_bob'), sheet.link_account('perm ann', 'perm_ann');
BEGIN;
DROP ROLE perm_bob;
SELECT name, db_role FROM sheet.account WHERE uid IN (:ann, :bob) ORDER BY name;
ROLLBACK;
SELECT name, db_role FROM sheet.account WHERE uid IN (:ann, :bob) ORDER BY name;
-- the link follows a role that is renamed; a name that nobody had before brings no account with it
ALTER ROLE perm_bob RENAME TO "perm Bob";
SET ROLE "perm Bob";
SELECT sheet.current_uid() = :bob AS same;
RESET ROLE;
UPDATE sheet.account SET db_role = 'perm_carl' WHERE uid = :ann; -- dropped in another database
ALTER ROLE perm_eve RENAME TO perm_carl;
SET ROLE perm_carl;
SELECT sheet.current_uid();
RESET ROLE;
ALTER ROLE perm_carl RENAME TO perm_eve;
BEGIN;
ALTER ROLE "perm Bob" RENAME TO perm_robert;
SET LOCAL ROLE perm_robert;
SELECT sheet.current_uid() = :bob AS same;
ROLLBACK;
SET ROLE "perm Bob";
SELECT sheet.current_uid() = :bob AS same;
RESET ROLE;
ALTER ROLE "perm Bob" RENAME TO perm_bob;
SELECT sheet.link_account('perm ann', 'perm_ann');
SELECT name, db_role FROM sheet.account WHERE uid IN (:ann, :bob) ORDER BY name;
CREATE ROLE perm_admin CREATEROLE;
GRANT perm_ann, perm_eve TO perm_admin WITH ADMIN OPTION;
SET ROLE perm_admin;
DROP ROLE perm_ann, perm_eve;
RESET ROLE;
SELECT name, db_role FROM sheet.account WHERE uid IN (:ann, :bob) ORDER BY name;
DROP ROLE perm_bob, perm_gateway, perm_admin;
SELECT count(db_role) FROM sheet.account WHERE uid IN (:ann, :bob);
-- a token that was revoked is kept for a day after it has expired: clocks of gateways may be behind
SELECT count(sheet.account_revoke_token(:ann, n, extract(epoch FROM now())::bigint - 3600 * n)) FROM unnest(ARRAY[1, 48, 2]) n;
SELECT n, sheet.account_token_revoked(:ann, n) FROM unnest(ARRAY[1, 48, 2]) n;
