-- The catalog: accounts, sheets, members, files, and the functions on them. There are no foreign keys: they exist
-- before the rows of a dump, which a parallel restore inserts in any order. The functions keep the rows consistent
-- (sheets.c, files.c), and sheet.fsck reports what belongs to nothing.

CREATE FUNCTION sheet.gateway_role_powers() RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT nullif(concat_ws(', ', CASE WHEN r.rolcanlogin THEN 'LOGIN' END, CASE WHEN r.rolsuper THEN 'SUPERUSER' END,
		CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END, CASE WHEN r.rolcreatedb THEN 'CREATEDB' END,
		CASE WHEN r.rolreplication THEN 'REPLICATION' END, CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END), '')
	FROM pg_roles r WHERE r.rolname = 'sheet_gateway'
$$;
COMMENT ON FUNCTION sheet.gateway_role_powers() IS
	'Internal: what sheet_gateway may do that the extension has not given it. NULL: nothing.';

DO $$
BEGIN
	CREATE ROLE sheet_gateway NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
	-- Roles belong to the cluster: another database has created it. Or somebody who wants to be a gateway.
	IF sheet.gateway_role_powers() IS NOT NULL THEN
		RAISE EXCEPTION 'role "sheet_gateway" exists already, and is not as the extension makes it' USING ERRCODE = 'duplicate_object',
			DETAIL = pg_catalog.format('It has %s.', sheet.gateway_role_powers()),
			HINT = 'Gateways act for every account. See who uses the role, and drop it, or run ALTER ROLE sheet_gateway NOLOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS.';
	END IF;
END
$$;

CREATE SEQUENCE sheet.account_uid_seq;
CREATE TABLE sheet.account (
	uid bigint PRIMARY KEY DEFAULT nextval('sheet.account_uid_seq'),
	name text COLLATE "C" NOT NULL CONSTRAINT account_name_key UNIQUE,
	email text,
	password_hash text,
	token_generation integer NOT NULL DEFAULT 0,
	db_role name CONSTRAINT account_db_role_key UNIQUE,
	created_at timestamptz NOT NULL DEFAULT now(),
	skeleton text COLLATE "C" CONSTRAINT account_skeleton_key UNIQUE
);
COMMENT ON TABLE sheet.account IS
	'Accounts that sign in at gateways, and the SQL roles that act as them.';
COMMENT ON COLUMN sheet.account.uid IS 'number of the account; 0 is nobody';
COMMENT ON COLUMN sheet.account.name IS 'unique, case-sensitive, 1 to 100 characters';
COMMENT ON COLUMN sheet.account.password_hash IS 'as computed by the gateway';
COMMENT ON COLUMN sheet.account.token_generation IS 'tokens of an older generation are revoked';
COMMENT ON COLUMN sheet.account.skeleton IS
	'equal for names that look alike (Unicode Technical Standard 39)';
COMMENT ON COLUMN sheet.account.db_role IS 'name of the SQL role that acts as this account';

CREATE TABLE sheet.revoked_token (
	uid bigint NOT NULL,
	token_id bigint NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (uid, token_id)
);
COMMENT ON TABLE sheet.revoked_token IS
	'Tokens that were revoked one by one, by signing out, until they expire.';

CREATE SEQUENCE sheet.sheet_number_seq MINVALUE 0 START 0;
CREATE TABLE sheet.id_range (
	start bigint NOT NULL CHECK (start BETWEEN 1 AND 9007199254740991),
	stride bigint NOT NULL CHECK (stride BETWEEN 1 AND 1000000)
);
COMMENT ON TABLE sheet.id_range IS
	'The sheet ids that this database assigns: start + n * stride. Without a row: 1, 2, 3, ...';

CREATE TABLE sheet.sheet (
	sheet_id bigint PRIMARY KEY CHECK (sheet_id BETWEEN 1 AND 9007199254740991),
	name text NOT NULL,
	owner bigint,
	created_at timestamptz NOT NULL DEFAULT now(),
	trashed_at timestamptz,
	link_role text CHECK (link_role IN ('viewer', 'commenter', 'editor')),
	link_digest bytea,
	link_no integer NOT NULL DEFAULT 0,
	init_rows integer NOT NULL,
	init_cols integer NOT NULL,
	calendar boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE sheet.sheet IS 'The sheets.';
COMMENT ON COLUMN sheet.sheet.sheet_id IS 'below 2^53, so that JavaScript numbers can represent it';
COMMENT ON COLUMN sheet.sheet.owner IS
	'uid; null for a sheet created by a superuser without an account';
COMMENT ON COLUMN sheet.sheet.trashed_at IS
	'when it was moved to the trash; null: not in the trash';
COMMENT ON COLUMN sheet.sheet.link_role IS
	'role of every signed-in account that has opened the link; null: no link';
COMMENT ON COLUMN sheet.sheet.link_digest IS
	'SHA-256 of the link''s key; null: the id alone opens the sheet';
COMMENT ON COLUMN sheet.sheet.calendar IS 'its rows are tasks: agendas follow each commit of edits';
COMMENT ON COLUMN sheet.sheet.link_no IS 'number of the link; a new link ends the previous one';

CREATE TABLE sheet.member (
	sheet_id bigint NOT NULL,
	uid bigint NOT NULL,
	role text CHECK (role IN ('viewer', 'commenter', 'editor', 'owner')),
	link_no integer,
	opened_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (sheet_id, uid)
);
-- For the account's list of sheets, which is read in pages.
CREATE INDEX member_list_idx ON sheet.member (uid, opened_at DESC, sheet_id DESC) WHERE role IS NOT NULL OR link_no IS NOT NULL;
COMMENT ON TABLE sheet.member IS
	'The owner of each sheet and the accounts that may open it. Accounts that may no longer open '
	'it have neither role nor link_no.';
COMMENT ON COLUMN sheet.member.role IS 'the role given to the account; null: none';
COMMENT ON COLUMN sheet.member.link_no IS
	'the link that the account has opened. The account has the link''s role while this is the '
	'sheet''s link. Null: none';
COMMENT ON COLUMN sheet.member.opened_at IS
	'when the account last opened, created or got the sheet, to the hour';

CREATE SEQUENCE sheet.file_upload_id_seq;
CREATE TABLE sheet.file (
	upload_id bigint PRIMARY KEY DEFAULT nextval('sheet.file_upload_id_seq'),
	sheet_id bigint NOT NULL,
	name text COLLATE "C" NOT NULL,
	content_type text,
	uid bigint,
	size bigint,
	announced bigint,
	etag text,
	link_key text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
	created_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT file_name_key UNIQUE (sheet_id, name)
);
CREATE INDEX file_unfinished_idx ON sheet.file (uid, created_at) WHERE size IS NULL;
CREATE UNIQUE INDEX file_link_key_idx ON sheet.file (sha256(link_key::bytea));
-- For the account's album, which is read in pages.
CREATE INDEX file_album_idx ON sheet.file (uid, upload_id) WHERE size IS NOT NULL;
COMMENT ON TABLE sheet.file IS 'Files attached to sheets.';
COMMENT ON COLUMN sheet.file.size IS 'bytes; null while the upload is not finished';
COMMENT ON COLUMN sheet.file.announced IS
	'announced size in bytes, an upper bound that counts towards the quota until the upload is '
	'finished; null: not announced';
COMMENT ON COLUMN sheet.file.etag IS 'SHA-256 of the content';
COMMENT ON COLUMN sheet.file.link_key IS
	'key that permits reading the file while the sheet is not in the trash';

CREATE TABLE sheet.file_part (
	upload_id bigint NOT NULL,
	part integer NOT NULL CHECK (part >= 0),
	data bytea NOT NULL,
	PRIMARY KEY (upload_id, part)
);
ALTER TABLE sheet.file_part ALTER data SET STORAGE EXTERNAL;
COMMENT ON TABLE sheet.file_part IS 'The bytes of files, in parts of 262144; the last one may be shorter.';

CREATE TABLE sheet.file_use (
	uid bigint NOT NULL,
	bytes bigint NOT NULL
);
CREATE INDEX file_use_uid_idx ON sheet.file_use (uid);
COMMENT ON TABLE sheet.file_use IS
	'Bytes of the finished files of accounts: the sum of each account''s rows. Negative: removed '
	'files.';

-- Plans are made once for all sheets and accounts. These estimates make the planner use the index,
-- whatever share of the rows an average sheet or account has.
ALTER TABLE sheet.member ALTER sheet_id SET (n_distinct = -0.05), ALTER uid SET (n_distinct = -0.05);
ALTER TABLE sheet.file ALTER sheet_id SET (n_distinct = -0.05), ALTER uid SET (n_distinct = -0.05);
ALTER TABLE sheet.file_part ALTER upload_id SET (n_distinct = -0.05);
ALTER TABLE sheet.file_use ALTER uid SET (n_distinct = -0.05);

SELECT pg_catalog.pg_extension_config_dump('sheet.account', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.revoked_token', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.account_uid_seq', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.id_range', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.sheet_number_seq', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.sheet', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.member', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.file', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.file_upload_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.file_part', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.file_use', '');

-- ---- the caller and its permissions ----

CREATE FUNCTION sheet.check_role(sheet_id bigint, role text, allow_trashed boolean DEFAULT false, as_uid bigint DEFAULT NULL)
	RETURNS void LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_check_role';
COMMENT ON FUNCTION sheet.check_role(bigint, text, boolean, bigint) IS
	'Raises 42501 unless the account (null: that of the current role) has at least this role on '
	'the sheet, ST001 in the trash.';

CREATE FUNCTION sheet.role_of(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_role_of';
COMMENT ON FUNCTION sheet.role_of(bigint, bigint) IS
	'The role of the account (null: that of the current role) on the sheet; null: none.';

CREATE FUNCTION sheet.member_role(role text, link_no integer, sheet_link_role text, sheet_link_digest bytea, sheet_link_no integer)
	RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN CASE
		WHEN role = 'owner' OR sheet_link_digest IS NOT NULL AND link_no IS DISTINCT FROM sheet_link_no THEN role
		WHEN 'editor' IN (role, sheet_link_role) THEN 'editor'
		WHEN 'commenter' IN (role, sheet_link_role) THEN 'commenter'
		ELSE coalesce(role, sheet_link_role) END;
COMMENT ON FUNCTION sheet.member_role(text, integer, text, bytea, integer) IS
	'Internal: the role that a row of sheet.member grants, given the link of its sheet; null: '
	'none.';

CREATE FUNCTION sheet.current_uid() RETURNS bigint
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_current_uid';
COMMENT ON FUNCTION sheet.current_uid() IS 'The account of the current SQL role; 0: none.';

CREATE FUNCTION sheet.sees_all() RETURNS boolean
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_sees_all';
COMMENT ON FUNCTION sheet.sees_all() IS
	'Whether the current role may see every sheet, as superusers may.';

-- ---- accounts ----

CREATE FUNCTION sheet.account_create(name text, email text, password_hash text) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_create';
COMMENT ON FUNCTION sheet.account_create(text, text, text) IS
	'Creates an account and returns its uid. 23505: the name is taken, or looks like another one.';

CREATE FUNCTION sheet.account_find(OUT uid bigint, INOUT name text, OUT password_hash text, OUT token_generation integer)
	RETURNS SETOF record LANGUAGE c STRICT STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_account_find';
COMMENT ON FUNCTION sheet.account_find(text) IS
	'The account with that name: 0 or 1 row. For gateways.';

CREATE FUNCTION sheet.account_get(INOUT uid bigint, OUT name text, OUT token_generation integer)
	RETURNS SETOF record LANGUAGE c STRICT STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_account_get';
COMMENT ON FUNCTION sheet.account_get(bigint) IS
	'The account with that uid: 0 or 1 row. For gateways.';

CREATE FUNCTION sheet.account_seen(sheet_id bigint, uid bigint) RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_seen';
COMMENT ON FUNCTION sheet.account_seen(bigint, bigint) IS
	'The name of an account that is visible in the sheet: its owner, members and former members, '
	'and accounts that sent operations in the last days or made one of the last 1,000 edits; '
	'otherwise null. For gateways.';

CREATE FUNCTION sheet.account_rename(uid bigint, name text) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_rename';
COMMENT ON FUNCTION sheet.account_rename(bigint, text) IS
	'Renames the account. 23505: the name is taken, or looks like another one.';

CREATE FUNCTION sheet.account_set_password(uid bigint, password_hash text) RETURNS integer
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_set_password';
COMMENT ON FUNCTION sheet.account_set_password(bigint, text) IS
	'Changes the password and returns the new token generation. Older tokens are revoked.';

CREATE FUNCTION sheet.account_revoke_tokens(uid bigint) RETURNS integer
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_revoke_tokens';
COMMENT ON FUNCTION sheet.account_revoke_tokens(bigint) IS
	'Revokes the account''s tokens and returns the new token generation. For gateways.';

CREATE FUNCTION sheet.account_revoke_token(uid bigint, token_id bigint, expires_at bigint) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_revoke_token';
COMMENT ON FUNCTION sheet.account_revoke_token(bigint, bigint, bigint) IS
	'Revokes one of the account''s tokens, which expires at expires_at (seconds since 1970). An '
	'account with a thousand of them gets a new token generation instead. For gateways.';

CREATE FUNCTION sheet.account_token_revoked(uid bigint, token_id bigint) RETURNS boolean
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_token_revoked';
COMMENT ON FUNCTION sheet.account_token_revoked(bigint, bigint) IS
	'Whether the token was revoked by account_revoke_token. For gateways.';

CREATE FUNCTION sheet.account_sheets(uid bigint, max_rows integer DEFAULT 200, after text DEFAULT NULL)
	RETURNS TABLE (sheet_id bigint, name text, owner text, role text, trashed boolean, versions bigint, cols integer,
		created_at timestamptz, updated_at timestamptz, place text, book_id bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_sheets';
COMMENT ON FUNCTION sheet.account_sheets(bigint, integer, text) IS
	'A page of the account''s list of sheets, last opened first: sheets that it owns, that are '
	'shared with it or that it has opened by a link. after: the place of the last row of the page '
	'before. A row without a role is a sheet that the account can no longer see. The page has '
	'max_rows rows unless the list ends. For gateways and for the account itself.';

CREATE FUNCTION sheet.register_opening(sheet_id bigint, uid bigint) RETURNS boolean
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_register_opening';
COMMENT ON FUNCTION sheet.register_opening(bigint, bigint) IS
	'Moves the sheet to the head of the list of an account that may open it, once an hour; true if '
	'it did. Does not wait: null if it would have to, and on a standby. For gateways.';

CREATE FUNCTION sheet.link_account(name text, db_role name) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_link_account';
COMMENT ON FUNCTION sheet.link_account(text, name) IS
	'The SQL role acts as the account from now on (null: no role does). Superusers.';

-- ---- sheets ----

CREATE FUNCTION sheet.next_sheet_id() RETURNS bigint
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT coalesce(max(start), 1) + nextval('sheet.sheet_number_seq') * coalesce(max(stride), 1) FROM sheet.id_range;
END;
COMMENT ON FUNCTION sheet.next_sheet_id() IS 'Internal: the id of a new sheet.';

CREATE FUNCTION sheet.set_id_range(start bigint, stride bigint) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	used bigint;
BEGIN
	LOCK TABLE sheet.id_range IN EXCLUSIVE MODE;
	SELECT coalesce(max(r.start), 1) + (s.last_value - CASE WHEN s.is_called THEN 0 ELSE 1 END) * coalesce(max(r.stride), 1)
		INTO used FROM sheet.sheet_number_seq s LEFT JOIN sheet.id_range r ON true GROUP BY s.last_value, s.is_called;
	DELETE FROM sheet.id_range;
	INSERT INTO sheet.id_range VALUES (set_id_range.start, set_id_range.stride);
	-- continue above every id that was ever assigned
	PERFORM setval('sheet.sheet_number_seq',
		greatest(0, (used - set_id_range.start + set_id_range.stride) / set_id_range.stride), false);
END
$$;
COMMENT ON FUNCTION sheet.set_id_range(bigint, bigint) IS
	'New sheets get the ids start, start + stride, ... Several databases with the same stride and '
	'different starts never assign the same id. Superusers.';

CREATE FUNCTION sheet.last_edit(sheet_id bigint, otherwise timestamptz) RETURNS timestamptz
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_last_edit';
COMMENT ON FUNCTION sheet.last_edit(bigint, timestamptz) IS
	'Internal: the time of the sheet''s last edit.';

CREATE FUNCTION sheet.glance(IN sheet_id bigint, IN init_cols integer, IN created_at timestamptz,
	OUT versions bigint, OUT cols integer, OUT updated_at timestamptz)
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_glance';
COMMENT ON FUNCTION sheet.glance(bigint, integer, timestamptz) IS
	'Internal: what a list shows of a sheet: the number of its newest version, its columns as far '
	'as known without reading it, its last edit.';

CREATE FUNCTION sheet.create(name text, rows integer DEFAULT 100, cols integer DEFAULT 26, link_role text DEFAULT NULL,
	as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_create';
COMMENT ON FUNCTION sheet.create(text, integer, integer, text, bigint) IS
	'Creates a sheet and returns its id. link_role: the role of every signed-in account that knows '
	'the id; null: the sheet is private.';

CREATE FUNCTION sheet.info(INOUT sheet_id bigint, IN as_uid bigint DEFAULT NULL,
	OUT name text, OUT owner_uid bigint, OUT owner text, OUT trashed boolean, OUT link_role text, OUT role text,
	OUT created_at timestamptz, OUT updated_at timestamptz, OUT book_id bigint)
	RETURNS SETOF record LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_info';
COMMENT ON FUNCTION sheet.info(bigint, bigint) IS
	'Properties of a sheet: 0 or 1 row. For gateways, role is null if the account may not see the '
	'sheet.';

CREATE FUNCTION sheet.rename(sheet_id bigint, name text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_rename';
COMMENT ON FUNCTION sheet.rename(bigint, text, bigint) IS
	'Renames the sheet. 23505: another tab of its book has this name, without regard to case. Editors.';

CREATE FUNCTION sheet.trash(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_trash';
COMMENT ON FUNCTION sheet.trash(bigint, bigint) IS 'Moves the sheet to the trash, where nobody can edit it. Owners.';

CREATE FUNCTION sheet.recover(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_recover';
COMMENT ON FUNCTION sheet.recover(bigint, bigint) IS
	'Moves the sheet out of the trash. 23505: another tab of its book has taken its name. ST001: its book is in the '
	'trash. Owners.';

CREATE FUNCTION sheet.purge(sheet_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_purge';
COMMENT ON FUNCTION sheet.purge(bigint, bigint) IS
	'Deletes the sheet for good, with its log, versions, files and members. Owners.';

CREATE FUNCTION sheet.share(sheet_id bigint, account text, role text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_share';
COMMENT ON FUNCTION sheet.share(bigint, text, text, bigint) IS
	'Gives the account the role viewer, commenter or editor on the sheet. Owners.';

CREATE FUNCTION sheet.unshare(sheet_id bigint, account text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_unshare';
COMMENT ON FUNCTION sheet.unshare(bigint, text, bigint) IS 'Removes the account''s role. Owners.';

CREATE FUNCTION sheet.share_link(sheet_id bigint, role text, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_share_link';
COMMENT ON FUNCTION sheet.share_link(bigint, text, bigint) IS
	'Creates a link to the sheet and returns its key. Every signed-in account that opens the link '
	'gets this role. The previous link ends, with the access of all who used it; role null: '
	'without a new one. Owners.';

CREATE FUNCTION sheet.open_link(sheet_id bigint, key text, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_open_link';
COMMENT ON FUNCTION sheet.open_link(bigint, text, bigint) IS
	'Opens the sheet by the key of its link and returns the role. The account no longer needs the '
	'key then. 42501: the key is wrong, or the sheet is not shared.';
CREATE FUNCTION sheet.open_link_digest(sheet_id bigint, digest bytea, as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_open_link_digest';
COMMENT ON FUNCTION sheet.open_link_digest(bigint, bytea, bigint) IS
	'The same, by the SHA-256 of the key, so that no log of the server has the key. For gateways.';

CREATE FUNCTION sheet.members(sheet_id bigint, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (uid bigint, name text, role text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_members';
COMMENT ON FUNCTION sheet.members(bigint, bigint) IS
	'The owner, the accounts with which the sheet is shared, and those that have opened its link.';
CREATE FUNCTION sheet.access(sheet_id bigint, max_rows integer DEFAULT 200, after bigint DEFAULT 0, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (uid bigint, name text, role text, by_link boolean)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_access';
COMMENT ON FUNCTION sheet.access(bigint, integer, bigint, bigint) IS
	'A page of sheet.members(): accounts with uids above `after`, by uid. by_link: the role is that '
	'of the link, which the account has opened. A row without a role is an account that can no '
	'longer see the sheet. The page has max_rows rows unless the list ends. Viewers.';

-- ---- files, for gateways ----

CREATE FUNCTION sheet.file_begin(IN sheet_id bigint, INOUT name text, IN content_type text, IN size bigint DEFAULT NULL,
	IN as_uid bigint DEFAULT NULL, OUT upload_id bigint)
	RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_file_begin';
COMMENT ON FUNCTION sheet.file_begin(bigint, text, text, bigint, bigint) IS
	'Starts an upload of at most size bytes (null: not announced). The name is made unique by " '
	'(2)" before the extension. For gateways.';
CREATE FUNCTION sheet.file_put(upload_id bigint, part integer, data bytea) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_file_put';
COMMENT ON FUNCTION sheet.file_put(bigint, integer, bytea) IS
	'Stores part 0, 1, ... of an upload: 262144 bytes each, the last one may be shorter. For gateways.';
CREATE FUNCTION sheet.file_end(upload_id bigint, sha256 text) RETURNS text
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_file_end';
COMMENT ON FUNCTION sheet.file_end(bigint, text) IS
	'Makes the uploaded file visible; it never changes again. Returns the key that opens it '
	'without an account. For gateways.';
CREATE FUNCTION sheet.file_abort(upload_id bigint) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_file_abort';
COMMENT ON FUNCTION sheet.file_abort(bigint) IS 'Removes an unfinished upload. For gateways.';
CREATE FUNCTION sheet.file_info(sheet_id bigint, name text, digest bytea DEFAULT '')
	RETURNS TABLE (upload_id bigint, size bigint, content_type text, etag text, created_at timestamptz, by_key boolean)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_file_info';
COMMENT ON FUNCTION sheet.file_info(bigint, text, bytea) IS
	'The file with that name: 0 or 1 row. by_key: the key of which this is the SHA-256 opens it '
	'without an account. For gateways.';
CREATE FUNCTION sheet.file_by_digest(digest bytea, name text)
	RETURNS TABLE (upload_id bigint, size bigint, etag text, sheet_id bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_file_by_digest';
COMMENT ON FUNCTION sheet.file_by_digest(bytea, text) IS
	'The file that the key with this SHA-256 opens: 0 or 1 row. None if it has another name, or its sheet is in the '
	'trash. For gateways.';
CREATE FUNCTION sheet.account_files(max_rows integer DEFAULT 200, before bigint DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (upload_id bigint, sheet_id bigint, name text, size bigint, created_at timestamptz, link_key text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_files';
COMMENT ON FUNCTION sheet.account_files(integer, bigint, bigint) IS
	'A page of the files that the account has uploaded, newest first: those with an upload_id below '
	'`before`. sheet_id: null if the account can no longer see the sheet. link_key: opens the file '
	'without an account; null then, and while its sheet is in the trash. The page has max_rows rows '
	'unless the list ends.';
CREATE FUNCTION sheet.file_usage(as_uid bigint DEFAULT NULL) RETURNS TABLE (used bigint, quota bigint)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_file_usage';
COMMENT ON FUNCTION sheet.file_usage(bigint) IS
	'One row: the bytes of the finished files of the account, also of those in the trash, and how many '
	'are allowed (pg_sheet.file_quota). Both are null if there is no quota.';
CREATE FUNCTION sheet.file_delete(upload_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_file_delete';
COMMENT ON FUNCTION sheet.file_delete(bigint, bigint) IS
	'Deletes a file for good. Who has uploaded it, even without access to its sheet, and owners of the '
	'sheet. 42704: there is no such file, or the account may not delete it.';
CREATE FUNCTION sheet.file_get(upload_id bigint, part integer) RETURNS bytea
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_file_get';
COMMENT ON FUNCTION sheet.file_get(bigint, integer) IS 'One part of a file; null past its end. For gateways.';
CREATE FUNCTION sheet.file_list(sheet_id bigint) RETURNS TABLE (name text, link_key text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_file_list';
COMMENT ON FUNCTION sheet.file_list(bigint) IS
	'The finished files of a sheet. link_key: opens the file without an account. For gateways.';

-- ---- one gateway without ZooKeeper ----

CREATE SEQUENCE sheet.coordinator_epoch_seq;
SELECT pg_catalog.pg_extension_config_dump('sheet.coordinator_epoch_seq', '');
CREATE TABLE sheet.coordinator (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	holder text NOT NULL,
	epoch bigint NOT NULL,
	pid integer NOT NULL
);
COMMENT ON TABLE sheet.coordinator IS
	'The last coordinator. It remains the coordinator while its session holds the lock.';
CREATE FUNCTION sheet.coordinator_acquire(holder text) RETURNS bigint
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_coordinator_acquire';
COMMENT ON FUNCTION sheet.coordinator_acquire(text) IS
	'Makes this session the coordinator until it ends, and returns a new epoch above all earlier '
	'ones; null: another session is the coordinator. For gateways.';
CREATE FUNCTION sheet.coordinator_holder() RETURNS text
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_coordinator_holder';
COMMENT ON FUNCTION sheet.coordinator_holder() IS 'The name of the last coordinator. For gateways.';
