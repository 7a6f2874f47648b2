-- Webhooks: gateways post the changes of a sheet to an address that an owner of it has named (docs/design/webhooks.md).

CREATE SEQUENCE sheet.webhook_id_seq MAXVALUE 9007199254740991;
CREATE TABLE sheet.webhook (
	webhook_id bigint PRIMARY KEY DEFAULT nextval('sheet.webhook_id_seq'),
	sheet_id bigint NOT NULL,
	url text NOT NULL,
	secret text NOT NULL DEFAULT 'whsec_' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''),
	created_by bigint NOT NULL,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'disabled')),
	delivered_seq bigint NOT NULL,
	ping boolean NOT NULL DEFAULT false,
	next_at timestamptz,
	leased_until timestamptz,
	attempt bigint NOT NULL DEFAULT 0,
	failures integer NOT NULL DEFAULT 0,
	failing_since timestamptz,
	sent_at timestamptz,
	status integer,
	error text,
	disabled_reason text
) WITH (fillfactor = 70);
CREATE INDEX webhook_sheet_idx ON sheet.webhook (sheet_id, webhook_id);
CREATE INDEX webhook_due_idx ON sheet.webhook (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_account_idx ON sheet.webhook (created_by, next_at) WHERE next_at IS NOT NULL;
ALTER TABLE sheet.webhook ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.webhook IS 'Addresses to which gateways post the changes of sheets.';
COMMENT ON COLUMN sheet.webhook.secret IS 'key of the signatures (HMAC); stored, since each delivery needs it';
COMMENT ON COLUMN sheet.webhook.created_by IS 'uid; 0: a superuser without an account';
COMMENT ON COLUMN sheet.webhook.delivered_seq IS 'all changes up to this seq have been delivered';
COMMENT ON COLUMN sheet.webhook.ping IS 'a test delivery was asked for';
COMMENT ON COLUMN sheet.webhook.next_at IS 'when a gateway looks at it next; null: when the sheet changes';
COMMENT ON COLUMN sheet.webhook.leased_until IS 'until then a gateway is sending; null: none is';
COMMENT ON COLUMN sheet.webhook.attempt IS 'number of the last attempt: the gateway of an earlier one changes nothing';
COMMENT ON COLUMN sheet.webhook.failures IS 'attempts that have failed since the last one that succeeded';
COMMENT ON COLUMN sheet.webhook.sent_at IS 'end of the last attempt';
COMMENT ON COLUMN sheet.webhook.status IS 'status of the last answer; null: there was none';
SELECT pg_catalog.pg_extension_config_dump('sheet.webhook', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.webhook_id_seq', '');

-- Whoever changes the table, also a restore: gateways learn that the sheet has a webhook.
CREATE FUNCTION sheet.webhook_changed() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'sheet_webhook_changed';
COMMENT ON FUNCTION sheet.webhook_changed() IS 'Internal: tells gateways when the transaction commits.';
CREATE TRIGGER webhook_changed AFTER INSERT OR UPDATE OF url, state, ping ON sheet.webhook
	FOR EACH ROW EXECUTE FUNCTION sheet.webhook_changed();

CREATE FUNCTION sheet.create_webhook(IN sheet_id bigint, IN url text, IN as_uid bigint DEFAULT NULL, OUT webhook_id bigint,
	OUT secret text)
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_create_webhook';
COMMENT ON FUNCTION sheet.create_webhook(bigint, text, bigint) IS
	'Has gateways post changes of the sheet from now on to the address (http or https), and returns '
	'the number of the webhook and the secret that signs what is posted, which is not shown again. '
	'A sheet has at most 10. Owners.';

CREATE FUNCTION sheet.webhooks(sheet_id bigint, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (webhook_id bigint, url text, state text, delivered_seq bigint, failures integer, next_at timestamptz,
		sent_at timestamptz, status integer, error text, disabled_reason text, created_by text, created_at timestamptz)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_webhooks';
COMMENT ON FUNCTION sheet.webhooks(bigint, bigint) IS
	'The webhooks of the sheet, newest first. state: active; paused (by an owner); disabled (by its '
	'failures, see disabled_reason). sent_at, status and error are of the last attempt. Owners.';

CREATE FUNCTION sheet.change_webhook(webhook_id bigint, url text DEFAULT NULL, active boolean DEFAULT NULL,
	as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_change_webhook';
COMMENT ON FUNCTION sheet.change_webhook(bigint, text, boolean, bigint) IS
	'Changes what is not null. active false: nothing is posted. active true: posting goes on, with '
	'what has changed meanwhile, and at once if it waited for another attempt. Owners of the sheet.';

CREATE FUNCTION sheet.test_webhook(webhook_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_test_webhook';
COMMENT ON FUNCTION sheet.test_webhook(bigint, bigint) IS
	'Has a gateway post a ping soon, whether or not anything has changed. 55000: the webhook is not '
	'active. Owners of the sheet.';

CREATE FUNCTION sheet.delete_webhook(webhook_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_delete_webhook';
COMMENT ON FUNCTION sheet.delete_webhook(bigint, bigint) IS 'Deletes the webhook. Owners of the sheet.';

-- ---- for gateways ----

CREATE FUNCTION sheet.last_seq(sheet_id bigint) RETURNS bigint
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_last_seq';
COMMENT ON FUNCTION sheet.last_seq(bigint) IS 'The seq of the last edit of the sheet; 0: none. For gateways.';

CREATE FUNCTION sheet.watched_sheets(after bigint, max_rows integer DEFAULT 1000) RETURNS TABLE (webhook_id bigint, sheet_id bigint)
	LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER ROWS 1000 SET search_path = pg_catalog, pg_temp AS $$
	SELECT w.webhook_id, w.sheet_id FROM sheet.webhook w WHERE w.webhook_id > after ORDER BY w.webhook_id LIMIT max_rows
$$;
COMMENT ON FUNCTION sheet.watched_sheets(bigint, integer) IS
	'A page of the webhooks behind that number, and their sheets. For gateways.';

CREATE FUNCTION sheet.webhook_body(webhook bigint, sheet bigint, title text, first_seq bigint, last_seq bigint) RETURNS text
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
	edits json;
	found bigint := 0;
BEGIN
	BEGIN
		-- at most 1000 edits and 256 kB
		SELECT json_agg(json_build_object('seq', e.seq, 'kind', e.kind, 'row', e."row", 'col', e.col, 'a1', e.a1, 'content', e.new,
				'uid', e.uid, 'username', e.username, 'at', e.at) ORDER BY e.seq), count(*)
			INTO edits, found
			FROM (SELECT l.*, sum(100 + coalesce(octet_length(l.new), 0)) OVER (ORDER BY l.seq) AS bytes
				FROM sheet.log_edits(sheet) l WHERE l.seq BETWEEN first_seq AND least(last_seq, first_seq + 999)) e
			WHERE e.bytes <= 262144;
	EXCEPTION WHEN OTHERS THEN
		IF left(SQLSTATE, 2) IN ('40', '53', '55', '57') THEN
			RAISE; -- it may succeed later
		END IF;
		edits := NULL; -- other sheets' webhooks go on
	END;
	RETURN json_build_object('event', 'changes', 'webhook', webhook, 'sheet_id', sheet, 'title', title, 'from_seq', first_seq,
		'to_seq', last_seq, 'edits', coalesce(edits, '[]'), 'truncated', found < last_seq - first_seq + 1);
END
$$;
COMMENT ON FUNCTION sheet.webhook_body(bigint, bigint, text, bigint, bigint) IS
	'Internal: what is posted of the edits from first_seq to last_seq.';

CREATE FUNCTION sheet.take_webhooks(changed bigint[], max_webhooks integer, lease_ms integer DEFAULT 30000,
	accounts bigint[] DEFAULT '{}', hosts text[] DEFAULT '{}')
	RETURNS TABLE (sheet_id bigint, again boolean, webhook_id bigint, attempt bigint, url text, secret text, account bigint,
		to_seq bigint, body text, failures integer)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_sort = off SET jit = off AS $$
DECLARE
	window_rows CONSTANT integer := 200;
	account_max CONSTANT integer := 8; -- deliveries at a time of one account
	host_max CONSTANT integer := 4; -- and to one host, as DELIVERY_HOST_MAX
	-- Rows are locked, and then read by another snapshot: a change that the snapshot does not have is heard of later.
	locked bigint[] := ARRAY(SELECT w.webhook_id FROM sheet.webhook w WHERE w.sheet_id = ANY (changed) FOR NO KEY UPDATE SKIP LOCKED);
	started timestamptz := clock_timestamp();
	title text;
	w record;
	due bigint[];
	host text;
	taken integer := 0;
BEGIN
	UPDATE sheet.webhook h SET next_at = started
		WHERE h.webhook_id = ANY (locked) AND h.state = 'active' AND h.next_at IS NULL AND sheet.last_seq(h.sheet_id) > h.delivered_seq;
	RETURN QUERY SELECT h.sheet_id, NOT bool_and(h.webhook_id = ANY (locked)), NULL::bigint, NULL::bigint, NULL, NULL, NULL::bigint,
		NULL::bigint, NULL, NULL::integer FROM sheet.webhook h WHERE h.sheet_id = ANY (changed) GROUP BY h.sheet_id;
	-- The accounts that have something due. If that is much, it may all be of one account, whose rows are not read.
	due := ARRAY(SELECT h.created_by FROM sheet.webhook h WHERE h.next_at <= started ORDER BY h.next_at LIMIT window_rows);
	IF cardinality(due) = window_rows THEN
		due := ARRAY(WITH RECURSIVE a AS (
			(SELECT h.created_by FROM sheet.webhook h WHERE h.next_at <= started ORDER BY h.created_by, h.next_at LIMIT 1)
			UNION ALL
			SELECT n.created_by FROM a, LATERAL (SELECT h.created_by FROM sheet.webhook h
				WHERE h.created_by > a.created_by AND h.next_at <= started ORDER BY h.created_by, h.next_at LIMIT 1) n)
			SELECT a.created_by FROM a);
	END IF;
	-- The first one of each account, then the second one of each. Row comparisons permit no other index than (created_by, next_at),
	-- and without sorting the recursion has no other either: plans must not depend on statistics.
	FOR w IN SELECT h.* FROM
			(SELECT d.* FROM (SELECT DISTINCT unnest(due) AS account) a, LATERAL
				(SELECT h.webhook_id, h.next_at AS due_at, row_number() OVER (ORDER BY h.created_by, h.next_at) AS nth FROM sheet.webhook h
					WHERE (h.created_by, h.next_at) >= (a.account, '-infinity'::timestamptz) AND (h.created_by, h.next_at) <= (a.account, started)
						AND h.next_at IS NOT NULL
					ORDER BY h.created_by, h.next_at
					LIMIT greatest(account_max - cardinality(array_positions(accounts, a.account)), 0)) d
				ORDER BY d.nth, d.due_at LIMIT window_rows) q
			JOIN sheet.webhook h ON h.webhook_id = q.webhook_id
			WHERE h.next_at <= started ORDER BY q.nth, q.due_at FOR NO KEY UPDATE OF h SKIP LOCKED
	LOOP
		EXIT WHEN taken >= max_webhooks;
		sheet_id := w.sheet_id;
		again := NULL;
		body := NULL;
		IF w.state = 'active' AND w.created_by > 0 AND (SELECT sheet.role_of(s.sheet_id, w.created_by)
				FROM sheet.sheet s WHERE s.sheet_id = w.sheet_id) IS DISTINCT FROM 'owner' THEN
			UPDATE sheet.webhook h SET state = 'disabled', next_at = NULL, leased_until = NULL,
					disabled_reason = 'its creator is no longer an owner of the sheet'
				WHERE h.webhook_id = w.webhook_id;
			CONTINUE;
		END IF;
		SELECT s.name AS title, sheet.last_seq(s.sheet_id) AS last_seq INTO title, to_seq FROM sheet.sheet s
			WHERE s.sheet_id = w.sheet_id AND s.trashed_at IS NULL;
		IF w.state = 'active' AND FOUND AND w.ping THEN
			body := json_build_object('event', 'ping', 'webhook', w.webhook_id, 'sheet_id', w.sheet_id, 'title', title, 'seq', to_seq);
			to_seq := NULL;
		ELSIF w.state = 'active' AND FOUND AND to_seq > w.delivered_seq THEN
			body := '';
		END IF;
		host := lower(substring(w.url FROM '^[a-z]+://(\[[^]]*\]|[^]/:?#]*)'));
		IF body IS NOT NULL AND cardinality(array_positions(hosts, host)) >= host_max THEN
			UPDATE sheet.webhook h SET next_at = started + interval '1 s' WHERE h.webhook_id = w.webhook_id;
			CONTINUE;
		END IF;
		IF body = '' THEN
			body := sheet.webhook_body(w.webhook_id, w.sheet_id, title, w.delivered_seq + 1, to_seq);
		END IF;
		-- The lease begins with the statement: the gateway sends nothing if the answer comes late.
		UPDATE sheet.webhook h SET leased_until = CASE WHEN body IS NOT NULL THEN started + lease_ms * interval '1 ms' END,
				next_at = CASE WHEN body IS NOT NULL THEN started + lease_ms * interval '1 ms' END,
				attempt = h.attempt + (body IS NOT NULL)::integer
			WHERE h.webhook_id = w.webhook_id;
		IF body IS NOT NULL THEN
			webhook_id := w.webhook_id;
			attempt := w.attempt + 1;
			url := w.url;
			secret := w.secret;
			account := w.created_by;
			failures := w.failures;
			hosts := hosts || host;
			taken := taken + 1;
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION sheet.take_webhooks(bigint[], integer, integer, bigint[], text[]) IS
	'Of the changed sheets, those that have webhooks; again: ask again, since somebody else is '
	'changing one. Then at most max_webhooks that are due, with what is to be posted: until '
	'lease_ms have passed, or end_webhook(), nobody else gets them. accounts and hosts have an '
	'element for each delivery that is under way: an account has at most 8, a host 4. For gateways.';

CREATE FUNCTION sheet.end_webhook(webhook_id bigint, attempt bigint, to_seq bigint, outcome text, status integer, error text,
	wait_seconds integer DEFAULT 0) RETURNS boolean
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	n timestamptz := clock_timestamp();
	w sheet.webhook;
BEGIN
	SELECT h.* INTO w FROM sheet.webhook h WHERE h.webhook_id = end_webhook.webhook_id AND h.attempt = end_webhook.attempt
		AND h.leased_until IS NOT NULL FOR NO KEY UPDATE;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	w.leased_until := NULL;
	w.next_at := n + interval '1 s'; -- one a second at most
	IF outcome = 'postponed' THEN
		NULL; -- nothing was sent
	ELSE
		w.sent_at := n;
		w.status := end_webhook.status;
		w.error := left(end_webhook.error, 300);
		IF to_seq IS NULL THEN
			w.ping := false; -- a test is not repeated
		END IF;
		IF outcome = 'delivered' THEN
			w.delivered_seq := greatest(w.delivered_seq, to_seq);
			w.failures := 0;
			w.failing_since := NULL;
		ELSIF outcome = 'gone' THEN
			w.state := 'disabled';
			w.disabled_reason := 'the receiver answered 410 Gone';
		ELSIF to_seq IS NOT NULL THEN
			w.failures := w.failures + 1;
			w.failing_since := coalesce(w.failing_since, n);
			-- 1 s, doubled up to an hour, less up to a quarter so that those of one receiver spread
			w.next_at := n + greatest(least(wait_seconds, 3600), least(3600, 2.0 ^ least(w.failures - 1, 12)) * (1 - random() / 4)) * interval '1 s';
			-- Trash and gateways that were down also take time, but make no attempts.
			IF w.failing_since < n - interval '3 days' AND w.failures >= 20 THEN
				w.state := 'disabled';
				w.disabled_reason := format('every attempt has failed for 3 days; the last one: %s', coalesce(w.error, 'status ' || w.status));
			END IF;
		END IF;
	END IF;
	IF w.state <> 'active' THEN
		w.next_at := NULL;
	END IF;
	UPDATE sheet.webhook h SET (leased_until, next_at, sent_at, status, error, delivered_seq, failures, failing_since, disabled_reason)
		= (w.leased_until, w.next_at, w.sent_at, w.status, w.error, w.delivered_seq, w.failures, w.failing_since, w.disabled_reason)
		WHERE h.webhook_id = w.webhook_id;
	-- Apart: gateways are told of each UPDATE that names these columns.
	IF outcome <> 'postponed' AND (to_seq IS NULL OR w.state = 'disabled') THEN
		UPDATE sheet.webhook h SET ping = w.ping, state = w.state WHERE h.webhook_id = w.webhook_id;
	END IF;
	RETURN true;
END
$$;
COMMENT ON FUNCTION sheet.end_webhook(bigint, bigint, bigint, text, integer, text, integer) IS
	'Tells how an attempt has ended: delivered, failed, gone (the receiver wants no more) or '
	'postponed (nothing was sent). False: the attempt is no longer the present one. For gateways.';
