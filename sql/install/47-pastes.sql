-- Pastes: short texts in shared memory under ids that cannot be guessed, until an end.

CREATE FUNCTION sheet.paste_create(content text, title text DEFAULT '', lang text DEFAULT '', lifetime interval DEFAULT '1 day',
	address text DEFAULT NULL, as_uid bigint DEFAULT 0) RETURNS text
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_paste_create';
COMMENT ON FUNCTION sheet.paste_create(text, text, text, interval, text, bigint) IS
	'Stores a text of 20 to 32768 bytes in shared memory, for 1 second to 7 days, and returns its id. '
	'It may be removed earlier when memory is needed. address: of whom a gateway serves. It is not part of '
	'the transaction, and not written to disk.';

CREATE FUNCTION sheet.paste_get(id text, viewed bigint DEFAULT 1, OUT content text, OUT title text, OUT lang text,
	OUT created_at timestamptz, OUT expires_at timestamptz, OUT views bigint)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE ROWS 1 PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_paste_get';
COMMENT ON FUNCTION sheet.paste_get(text, bigint) IS
	'The paste, for anybody who has its id; no row if there is none, it has ended, or it is blocked. '
	'viewed: how many views to count. Only gateways count more than one at a time.';

CREATE FUNCTION sheet.paste_viewed(id text, viewed bigint) RETURNS timestamptz
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_paste_viewed';
COMMENT ON FUNCTION sheet.paste_viewed(text, bigint) IS
	'Counts views of a paste. Returns its end; null if paste_get() has no row. For gateways, which keep copies.';

CREATE FUNCTION sheet.paste_block(id text, blocked boolean DEFAULT true) RETURNS boolean
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_paste_block';
COMMENT ON FUNCTION sheet.paste_block(text, boolean) IS
	'Hides a paste, or shows it again. false: there is none. Operators.';

CREATE FUNCTION sheet.paste_delete(id text) RETURNS boolean
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_paste_delete';
COMMENT ON FUNCTION sheet.paste_delete(text) IS 'Removes a paste. false: there is none. Operators.';

CREATE FUNCTION sheet.pastes_read(OUT id text, OUT title text, OUT lang text, OUT bytes integer, OUT created_at timestamptz,
	OUT expires_at timestamptz, OUT views bigint, OUT blocked boolean, OUT uid bigint, OUT origin text)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_pastes_read';
COMMENT ON FUNCTION sheet.pastes_read() IS 'See the view sheet.moderation.';
CREATE VIEW sheet.moderation AS SELECT * FROM sheet.pastes_read();
COMMENT ON VIEW sheet.moderation IS
	'The pastes of this database, without their content, for operators. sheet.paste_block() hides one, '
	'sheet.paste_delete() removes one.';
COMMENT ON COLUMN sheet.moderation.bytes IS 'of the content';
COMMENT ON COLUMN sheet.moderation.uid IS 'of the account that made it; null: none';
COMMENT ON COLUMN sheet.moderation.origin IS
	'the same for all pastes of an account, an address or a role; another one after a restart of the server';

CREATE FUNCTION sheet.paste_stats_read(OUT pastes bigint, OUT bytes bigint, OUT budget bigint, OUT share bigint, OUT created bigint,
	OUT expired bigint, OUT evicted bigint, OUT deleted bigint, OUT refused bigint, OUT hits bigint, OUT misses bigint,
	OUT sweep_ms double precision)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_paste_stats';
COMMENT ON FUNCTION sheet.paste_stats_read() IS 'See the view sheet.paste_stats.';
CREATE VIEW sheet.paste_stats AS SELECT * FROM sheet.paste_stats_read();
COMMENT ON VIEW sheet.paste_stats IS
	'The memory of pastes of this server, and what has happened to them since its start; no row if they are turned off.';
COMMENT ON COLUMN sheet.paste_stats.pastes IS 'of all databases, with those that have ended and were not removed yet';
COMMENT ON COLUMN sheet.paste_stats.bytes IS 'of the budget, with all overhead';
COMMENT ON COLUMN sheet.paste_stats.budget IS 'pg_sheet.paste_memory';
COMMENT ON COLUMN sheet.paste_stats.share IS 'bytes that the pastes of one address, account or role may take while others need memory';
COMMENT ON COLUMN sheet.paste_stats.sweep_ms IS
	'the longest processor time for which others waited at once while pastes that had ended were removed';
COMMENT ON COLUMN sheet.paste_stats.evicted IS 'removed before their end, for others';
