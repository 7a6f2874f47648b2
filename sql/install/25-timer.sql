-- The timer: what expires, and the functions that remove it (extension/timer, extension/worker/timers.c).

CREATE TABLE sheet.timer (
	kind text COLLATE "C" NOT NULL,
	id bigint NOT NULL,
	at timestamptz NOT NULL,
	failures integer NOT NULL DEFAULT 0,
	PRIMARY KEY (kind, id)
);
CREATE INDEX timer_at_idx ON sheet.timer (at, kind, id);
COMMENT ON TABLE sheet.timer IS
	'What expires, and when a background worker removes it. Whoever uses an object compares its own '
	'end with the clock.';
COMMENT ON COLUMN sheet.timer.kind IS
	'upload: an unfinished upload; revoked tokens: those of an account, of which the first expires; calendar edit: a commit '
	'that agendas are to follow; calendar: one whose series are to be expanded further; reminder: a task with reminders';
COMMENT ON COLUMN sheet.timer.id IS 'of the object in its kind: upload_id, uid, edit_id, sheet_id, task_id';
COMMENT ON COLUMN sheet.timer.at IS 'when the worker looks at it next';
COMMENT ON COLUMN sheet.timer.failures IS 'failed attempts since it was set';
SELECT pg_catalog.pg_extension_config_dump('sheet.timer', '');

CREATE FUNCTION sheet.timer_changed() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'sheet_timer_changed';
COMMENT ON FUNCTION sheet.timer_changed() IS
	'Internal: tells the worker when the transaction commits. 22023: there is no such kind.';
CREATE TRIGGER timer_changed AFTER INSERT OR UPDATE ON sheet.timer FOR EACH ROW EXECUTE FUNCTION sheet.timer_changed();
-- also for rows that a subscription receives
ALTER TABLE sheet.timer ENABLE ALWAYS TRIGGER timer_changed;

-- ---- the kinds ----
-- Each function removes those of the objects that are over, and returns those that are left, with their ends. An end
-- that has come: somebody is using the object. Null: there is more to remove. It waits for nobody.

CREATE FUNCTION sheet.expire_uploads(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	over bigint[] := ARRAY(SELECT f.upload_id FROM sheet.file f WHERE f.upload_id = ANY (ids) AND f.size IS NULL
		AND f.created_at <= now() - interval '1 day' FOR UPDATE SKIP LOCKED);
BEGIN
	-- A part is inserted under a lock on the row of its file, so none is added any more. 25 MB at a time.
	DELETE FROM sheet.file_part p USING (SELECT d.upload_id, d.part FROM sheet.file_part d WHERE d.upload_id = ANY (over) LIMIT 100) d
		WHERE p.upload_id = d.upload_id AND p.part = d.part;
	DELETE FROM sheet.file f WHERE f.upload_id = ANY (over) AND NOT EXISTS (SELECT FROM sheet.file_part p WHERE p.upload_id = f.upload_id);
	RETURN QUERY SELECT f.upload_id, CASE WHEN f.upload_id = ANY (over) THEN NULL ELSE f.created_at + interval '1 day' END
		FROM sheet.file f WHERE f.upload_id = ANY (ids) AND f.size IS NULL;
END
$$;
COMMENT ON FUNCTION sheet.expire_uploads(bigint[]) IS
	'Internal: removes those of the uploads that are not finished after a day.';

-- By a clock of a gateway, which may be behind this one, a token may expire up to a day later.
CREATE FUNCTION sheet.expire_revoked_tokens(ids bigint[]) RETURNS TABLE (id bigint, at timestamptz)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM sheet.revoked_token r USING (SELECT o.uid, o.token_id FROM sheet.revoked_token o WHERE o.uid = ANY (ids)
			AND o.expires_at <= now() - interval '1 day' FOR UPDATE SKIP LOCKED) o
		WHERE r.uid = o.uid AND r.token_id = o.token_id;
	RETURN QUERY SELECT r.uid, min(r.expires_at) + interval '1 day' FROM sheet.revoked_token r WHERE r.uid = ANY (ids) GROUP BY r.uid;
END
$$;
COMMENT ON FUNCTION sheet.expire_revoked_tokens(bigint[]) IS
	'Internal: removes those of the accounts'' revoked tokens that expired a day ago.';

-- ---- missing entries ----

-- A parallel restore may restore an entry whose time has come before the object. Then the worker removes the entry, and
-- nothing would remove the object. The cost is that of what has an end.
CREATE FUNCTION sheet.repair_timer() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp AS $$
	WITH added AS (INSERT INTO sheet.timer (kind, id, at)
		SELECT 'upload', f.upload_id, f.created_at + interval '1 day' FROM sheet.file f
		WHERE f.size IS NULL AND NOT EXISTS (SELECT FROM sheet.timer t WHERE t.kind = 'upload' AND t.id = f.upload_id)
		UNION ALL
		SELECT 'revoked tokens', r.uid, min(r.expires_at) + interval '1 day' FROM sheet.revoked_token r
		WHERE NOT EXISTS (SELECT FROM sheet.timer t WHERE t.kind = 'revoked tokens' AND t.id = r.uid) GROUP BY r.uid
		ON CONFLICT DO NOTHING RETURNING 1)
	SELECT count(*) FROM added
$$;
COMMENT ON FUNCTION sheet.repair_timer() IS
	'Internal: adds the entries that are missing for unfinished uploads and revoked tokens. Returns their number.';

-- ---- counters ----

CREATE FUNCTION sheet.timer_stats_read(OUT served bigint, OUT failures bigint, OUT scans bigint, OUT wakes bigint,
	OUT late_ms double precision, OUT told integer, OUT workers integer)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_timer_stats';
COMMENT ON FUNCTION sheet.timer_stats_read() IS 'See the view sheet.timer_stats.';
CREATE VIEW sheet.timer_stats AS SELECT * FROM sheet.timer_stats_read();
COMMENT ON VIEW sheet.timer_stats IS
	'What the timer has done in all databases since the start of the server; no row without '
	'shared_preload_libraries.';
COMMENT ON COLUMN sheet.timer_stats.served IS 'entries whose object was removed, or was gone';
COMMENT ON COLUMN sheet.timer_stats.failures IS 'failed attempts, which are repeated';
COMMENT ON COLUMN sheet.timer_stats.scans IS 'scans of sheet.timer: one a minute at most, unless very much is set at once';
COMMENT ON COLUMN sheet.timer_stats.wakes IS 'how often a worker has woken up';
COMMENT ON COLUMN sheet.timer_stats.late_ms IS
	'longest time between the end of an object (or the start of the server) and its removal';
COMMENT ON COLUMN sheet.timer_stats.told IS 'entries that no worker has taken yet';
COMMENT ON COLUMN sheet.timer_stats.workers IS 'running workers of the timer';
