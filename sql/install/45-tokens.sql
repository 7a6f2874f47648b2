-- An API for programs: access tokens, by which they act as an account within scopes and until an end; writing cells.

CREATE SEQUENCE sheet.access_token_id_seq;
CREATE TABLE sheet.access_token (
	token_id bigint PRIMARY KEY DEFAULT nextval('sheet.access_token_id_seq'),
	uid bigint NOT NULL,
	digest bytea NOT NULL CONSTRAINT access_token_digest_key UNIQUE,
	label text NOT NULL,
	scopes text[] NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	expires_at timestamptz,
	last_used timestamptz
);
CREATE INDEX access_token_uid_idx ON sheet.access_token (uid, token_id);
ALTER TABLE sheet.access_token ALTER uid SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.access_token IS 'Tokens by which programs act as an account.';
COMMENT ON COLUMN sheet.access_token.digest IS 'SHA-256 of the token, which is stored nowhere';
COMMENT ON COLUMN sheet.access_token.scopes IS 'what it permits: read, edit (and read), upload, admin';
COMMENT ON COLUMN sheet.access_token.expires_at IS 'null: never';
COMMENT ON COLUMN sheet.access_token.last_used IS 'to the hour; null: not yet';
SELECT pg_catalog.pg_extension_config_dump('sheet.access_token', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.access_token_id_seq', '');

CREATE FUNCTION sheet.create_token(label text, scopes text[] DEFAULT '{read}', expires timestamptz DEFAULT now() + interval '90 days',
	as_uid bigint DEFAULT NULL) RETURNS text
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_create_token';
COMMENT ON FUNCTION sheet.create_token(text, text[], timestamptz, bigint) IS
	'Creates an access token of the account, and returns it. It is not stored, and cannot be shown '
	'again. scopes: read, edit, upload, admin. expires null: never. An account has at most 100.';

CREATE FUNCTION sheet.tokens(as_uid bigint DEFAULT NULL)
	RETURNS TABLE (token_id bigint, label text, scopes text[], created_at timestamptz, expires_at timestamptz, last_used timestamptz)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_tokens';
COMMENT ON FUNCTION sheet.tokens(bigint) IS
	'The access tokens of the account, without the tokens themselves. last_used: to the hour.';

CREATE FUNCTION sheet.revoke_token(token_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_revoke_token';
COMMENT ON FUNCTION sheet.revoke_token(bigint, bigint) IS
	'Revokes an access token of the account. Superusers may revoke any. 42704: there is no such token.';

-- VOLATILE: it finds a token that the same statement has created.
CREATE FUNCTION sheet.token_find(IN digest bytea, OUT token_id bigint, OUT uid bigint, OUT name text, OUT scopes text[],
	OUT expires_at timestamptz, OUT used boolean)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_token_find';
COMMENT ON FUNCTION sheet.token_find(bytea) IS
	'The valid access token with that SHA-256, and its account: 0 or 1 row. used: also in this hour, '
	'as far as is stored. For gateways.';

CREATE FUNCTION sheet.token_used(token_id bigint) RETURNS boolean
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_token_used';
COMMENT ON FUNCTION sheet.token_used(bigint) IS
	'Registers that an access token is used, once an hour; true if it did. Does not wait for '
	'others, who have registered the same. False on a standby. For gateways.';

-- ---- writing cells ----

CREATE FUNCTION sheet.write_cells(IN sheet_id bigint, IN edits bytea, IN if_seq bigint DEFAULT NULL, IN append boolean DEFAULT false,
	IN nowait boolean DEFAULT false, IN as_uid bigint DEFAULT NULL, OUT seq bigint, OUT "row" integer)
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_write_cells';
COMMENT ON FUNCTION sheet.write_cells(bigint, bytea, bigint, boolean, boolean, bigint) IS
	'Sets contents by edits (common/edit_codec.h), and returns the last seq. if_seq: SM001 if one of '
	'the cells has changed since. append: the rows of the edits count from the first one below all '
	'contents, which is returned. nowait: while another transaction holds the sheet, nothing is '
	'done, and both columns are null. Editors; for gateways.';
