-- Share links: whoever knows the key of a link opens the sheet as a guest, without an account.

CREATE FUNCTION sheet.embed_is_valid(embed text) RETURNS boolean
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT octet_length(embed) <= 1000 AND (embed = '*' OR
		embed ~* '^https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?( https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?)*$')
$$;
COMMENT ON FUNCTION sheet.embed_is_valid(text) IS
	'Internal: * alone, or host sources of the Content Security Policy with a scheme and without a path, with one space '
	'between them, in at most 1000 bytes.';

-- A guest's uid is -link_id. The bound leaves room for the form that guests' uids have in the log and in messages
-- (common/edit_codec.h).
CREATE SEQUENCE sheet.link_id_seq MAXVALUE 4503599627370495;
CREATE TABLE sheet.link (
	link_id bigint PRIMARY KEY DEFAULT nextval('sheet.link_id_seq'),
	sheet_id bigint NOT NULL,
	digest bytea NOT NULL CONSTRAINT link_digest_key UNIQUE,
	role text NOT NULL CHECK (role IN ('viewer', 'commenter', 'editor')),
	label text NOT NULL,
	expires_at timestamptz,
	rectangle boolean NOT NULL DEFAULT false,
	password text,
	generation integer NOT NULL DEFAULT 0,
	created_by bigint NOT NULL,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	revoked_at timestamptz,
	blocked boolean NOT NULL DEFAULT false,
	uses bigint NOT NULL DEFAULT 0,
	last_used timestamptz,
	embed text CHECK (sheet.embed_is_valid(embed)),
	index_ok boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70); -- uses are counted: leave room for HOT updates
-- Those that were not revoked come last.
CREATE INDEX link_sheet_idx ON sheet.link (sheet_id, revoked_at);
-- Those that move with the cells; extension/journal/store/storage.c knows its name.
CREATE INDEX link_rectangle_idx ON sheet.link (sheet_id) WHERE rectangle AND revoked_at IS NULL;
ALTER TABLE sheet.link ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.link IS
	'Share links. Rows of revoked links stay until the sheet is purged: the log has their labels.';
COMMENT ON COLUMN sheet.link.digest IS 'SHA-256 of the link''s key; the key itself is not stored';
COMMENT ON COLUMN sheet.link.label IS 'name of the link''s guests in the log';
COMMENT ON COLUMN sheet.link.expires_at IS 'end of the link; null: none';
COMMENT ON COLUMN sheet.link.rectangle IS
	'the link opens a rectangle (sheet.link_rect), and gives no role on the sheet';
COMMENT ON COLUMN sheet.link.password IS
	'hash: of gateways scrypt; of a password that SQL gives a SCRAM-SHA-256 secret; null: no password';
COMMENT ON COLUMN sheet.link.generation IS 'tokens of an older generation are revoked';
COMMENT ON COLUMN sheet.link.created_by IS 'uid; 0: a superuser without an account';
COMMENT ON COLUMN sheet.link.blocked IS 'the link opens nothing until this is taken back';
COMMENT ON COLUMN sheet.link.uses IS 'how often somebody has opened the link';
COMMENT ON COLUMN sheet.link.embed IS 'pages that may show the published view in a frame; null: none';
COMMENT ON COLUMN sheet.link.index_ok IS 'search engines may list the published view';

-- The C code addresses columns by position; storage.h lists them in this order.
CREATE TABLE sheet.link_rect (
	sheet_id bigint NOT NULL,
	link_id bigint NOT NULL,
	seq bigint NOT NULL,
	row0 bigint NOT NULL,
	col0 bigint NOT NULL,
	row1 bigint NOT NULL,
	col1 bigint NOT NULL,
	PRIMARY KEY (sheet_id, link_id, seq)
);
ALTER TABLE sheet.link_rect ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.link_rect IS
	'Where the rectangles of links are: the row with the highest seq. The others tell where they were.';
COMMENT ON COLUMN sheet.link_rect.seq IS 'the edit from which on the rectangle is there';
COMMENT ON COLUMN sheet.link_rect.row0 IS 'first row, from 0; -1: no cell of the rectangle is left';

SELECT pg_catalog.pg_extension_config_dump('sheet.link', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.link_rect', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.link_id_seq', '');

CREATE FUNCTION sheet.create_link(IN sheet_id bigint, IN role text DEFAULT 'viewer',
	IN expires timestamptz DEFAULT now() + interval '7 days', IN ref text DEFAULT NULL, IN password text DEFAULT NULL,
	IN label text DEFAULT NULL, IN embed text DEFAULT NULL, IN index_ok boolean DEFAULT false,
	IN if_seq bigint DEFAULT NULL, IN as_uid bigint DEFAULT NULL, OUT link_id bigint, OUT key text)
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_create_link';
COMMENT ON FUNCTION sheet.create_link(bigint, text, timestamptz, text, text, text, text, boolean, bigint, bigint) IS
	'Creates a link that opens the sheet without an account, and returns its number and its key, '
	'which cannot be read again. role: viewer, commenter or editor. expires: the end of the link '
	'(null: none). ref: only this rectangle, wherever its cells move, for viewers or editors. password: asked for when the link is '
	'opened (of gateways: its hash). label: the name of the link''s guests in the log. embed: the pages that may show the published view of the '
	'link (/s/KEY) in a frame, such as ''https://example.org https://*.example.com'' (null: none; *: any). index_ok: search engines '
	'may list that view. if_seq: SM001 if rows or columns have moved since that seq, so that ref may name other cells. Owners.';

CREATE FUNCTION sheet.links(sheet_id bigint, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (link_id bigint, role text, label text, expires_at timestamptz, ref text, has_password boolean, state text,
		uses bigint, last_used timestamptz, created_by text, created_at timestamptz, revoked_at timestamptz, embed text,
		index_ok boolean)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_links';
COMMENT ON FUNCTION sheet.links(bigint, bigint) IS
	'The links of the sheet, newest first: all that were not revoked, and those that were revoked last, at most 400 together. '
	'state: valid, blocked, expired or revoked. Owners.';

CREATE FUNCTION sheet.change_link(link_id bigint, role text DEFAULT NULL, expires timestamptz DEFAULT NULL,
	password text DEFAULT NULL, label text DEFAULT NULL, blocked boolean DEFAULT NULL, embed text DEFAULT NULL,
	index_ok boolean DEFAULT NULL, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_change_link';
COMMENT ON FUNCTION sheet.change_link(bigint, text, timestamptz, text, text, boolean, text, boolean, bigint) IS
	'Changes what is not null. expires infinity: no end. password: guests must enter the link '
	'again; empty: no password. blocked: the link opens nothing until it is false again. embed: '
	'empty: no frame shows the published view. The key stays. Owners of the sheet.';

CREATE FUNCTION sheet.revoke_link(link_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_revoke_link';
COMMENT ON FUNCTION sheet.revoke_link(bigint, bigint) IS
	'Ends the link for good. Owners of the sheet.';

CREATE FUNCTION sheet.link_place(sheet_id bigint, link_id bigint, OUT ref text, OUT "row" integer, OUT col integer,
	OUT rows integer, OUT cols integer)
	RETURNS record LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_link_place';
COMMENT ON FUNCTION sheet.link_place(bigint, bigint) IS
	'Where the rectangle of a link is. ref is empty if no cell of it is left; null: the link has '
	'none. For gateways.';

-- ---- for gateways ----

CREATE FUNCTION sheet.has_link(sheet_id bigint, link_id bigint, as_uid bigint DEFAULT NULL) RETURNS boolean
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_has_link';
COMMENT ON FUNCTION sheet.has_link(bigint, bigint, bigint) IS
	'Whether the link is one of the sheet, revoked or not. 42501 unless as_uid is an owner of the sheet. For gateways.';

CREATE FUNCTION sheet.enter_link(digest bytea, name text)
	RETURNS TABLE (link_id bigint, sheet_id bigint, role text, username text, generation integer, left_ms bigint, password text)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_enter_link';
COMMENT ON FUNCTION sheet.enter_link(bytea, text) IS
	'Whom the key of a link, of which this is the SHA-256, makes of a visitor of that name: 0 or 1 '
	'row. No row: the link is unknown, expired, revoked or blocked, or its sheet is in the trash. '
	'password: what the gateway compares the visitor''s with; null: none. left_ms: milliseconds '
	'until the end of the link; null: none. For gateways.';

CREATE FUNCTION sheet.link_target(as_uid bigint)
	RETURNS TABLE (sheet_id bigint, ref text, "row" integer, col integer, rows integer, cols integer, role text)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_link_target';
COMMENT ON FUNCTION sheet.link_target(bigint) IS
	'The rectangle that a guest may read, and with the role editor write in: 0 or 1 row. None if the link is not valid or no cell of it '
	'is left. 42809: the account is no guest of a link to a rectangle. ST001: the sheet is in the trash. For gateways.';

CREATE FUNCTION sheet.link_write(IN edits bytea, IN rows integer, IN cols integer, IN nowait boolean, IN as_uid bigint,
	OUT sheet_id bigint, OUT seq bigint, OUT "row" integer, OUT col integer, OUT content text)
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_link_write';
COMMENT ON FUNCTION sheet.link_write(bytea, integer, integer, boolean, bigint) IS
	'Sets contents in the rectangle of a guest''s link by edits (common/edit_codec.h), whose rows and columns count from its '
	'first cell, all or none, and returns the last seq. The old content of an edit is what the guest has seen (a formula: '
	'anything that begins with =): if the cell has another one, nothing is set, seq is null, and row, col and content are of '
	'the first such cell; content null: a formula. Without an old content the edit sets what is no formula. rows, cols: SM001 unless the rectangle has this size (null: any). nowait: while '
	'another transaction holds the sheet, nothing is done, and all columns are null. 22023: a cell outside, or a formula. '
	'42501: the link is for viewers. 28000: it is not valid. 55000: no cell of the rectangle is left. 42809: the account is no '
	'guest of a link to a rectangle. For gateways.';

CREATE FUNCTION sheet.guest_left(uid bigint) RETURNS bigint
	LANGUAGE c STRICT STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_guest_left';
COMMENT ON FUNCTION sheet.guest_left(bigint) IS
	'Milliseconds until the end of a guest''s link, 0 if it is no longer valid; null: it has no '
	'end, or the uid is of an account. For gateways.';

CREATE FUNCTION sheet.count_link_uses(link_id bigint, uses bigint) RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_count_link_uses';
COMMENT ON FUNCTION sheet.count_link_uses(bigint, bigint) IS 'Counts uses of a link. For gateways.';
