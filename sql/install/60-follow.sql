-- Following: how gateways learn of changes made elsewhere.

CREATE FUNCTION sheet.follow(IN origin bigint, INOUT "cursor" bigint, IN timeout_ms integer,
	OUT lost boolean, OUT sheet_ids bigint[], OUT seqs bigint[])
	RETURNS record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'sheet_follow';
COMMENT ON FUNCTION sheet.follow(bigint, bigint, integer) IS
	'Waits up to timeout_ms (0 to 600000) for commits after cursor by another origin in this '
	'database. cursor null: returns the present one at once. seqs[i] is the last seq of '
	'sheet_ids[i], or -1 if the sheet''s row or its members changed. sheet_ids[i] is -uid, and '
	'seqs[i] -1, if the name or the tokens of that account changed; -2, if its reminders did. '
	'seqs[i] -3: values of formulas of the sheet were stored; -4: its book has changed. lost: '
	'events were missed, so ask every sheet for its tail. For gateways.';

-- What each gateway tells of itself every 5 seconds. Unlogged: nothing is decided by it.
CREATE UNLOGGED TABLE sheet.gateway (
	address text PRIMARY KEY,
	weight integer NOT NULL,
	state text NOT NULL,
	sheets integer NOT NULL,
	sessions integer NOT NULL,
	edits_per_second integer NOT NULL,
	seen timestamptz NOT NULL,
	pid integer NOT NULL, -- of the connection that it told by
	admin_url text NOT NULL,
	CONSTRAINT gateway_texts CHECK (length(address) <= 300 AND length(state) <= 300 AND length(admin_url) <= 300
		AND address || state || admin_url !~ E'[[:cntrl:]\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]')
) WITH (fillfactor = 50);
COMMENT ON TABLE sheet.gateway IS 'For the view sheet.gateways.';

CREATE FUNCTION sheet.report_gateway(address text, weight integer, state text, sheets integer, sessions integer,
	edits_per_second integer, admin_url text) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO sheet.gateway VALUES (address, weight, state, sheets, sessions, edits_per_second, now(), pg_backend_pid(),
			admin_url)
		ON CONFLICT ON CONSTRAINT gateway_pkey DO UPDATE SET weight = excluded.weight, state = excluded.state,
			sheets = excluded.sheets, sessions = excluded.sessions, edits_per_second = excluded.edits_per_second,
			seen = excluded.seen, pid = excluded.pid, admin_url = excluded.admin_url
$$;
COMMENT ON FUNCTION sheet.report_gateway(text, integer, text, integer, integer, integer, text) IS
	'Tells the state and the load of a gateway. For gateways.';

CREATE VIEW sheet.gateways AS
	SELECT address, weight, CASE WHEN seen < now() - interval '15 s'
			OR NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = gateway.pid)
		THEN 'silent' ELSE state END AS state, sheets, sessions, edits_per_second, seen, admin_url
	FROM sheet.gateway
	WHERE seen > now() - interval '1 day';
COMMENT ON VIEW sheet.gateways IS
	'Gateways that were seen in the last day, and what they told last. Not readable on a standby.';
COMMENT ON COLUMN sheet.gateways.address IS 'host:port by which clients reach it';
COMMENT ON COLUMN sheet.gateways.weight IS 'its share of the sheets, compared with the others';
COMMENT ON COLUMN sheet.gateways.state IS
	'serving; draining: its sheets move to others; stopping: the same, and it ends; away: the '
	'database did not answer it, and others have its sheets; suspended: no contact with the '
	'coordinator; silent: its connection to the database has ended, or nothing was heard of it for '
	'15 seconds';
COMMENT ON COLUMN sheet.gateways.sheets IS 'open sheets';
COMMENT ON COLUMN sheet.gateways.sessions IS 'open WebSockets';
COMMENT ON COLUMN sheet.gateways.edits_per_second IS 'stored, on average between its last two reports';
COMMENT ON COLUMN sheet.gateways.seen IS 'when it last told';
COMMENT ON COLUMN sheet.gateways.admin_url IS 'where operators ask it: its setting admin-address';
