-- Webhooks: who makes them, which addresses they take, what gateways are given to send, and the ends of attempts.
SET client_min_messages = warning;
SET timezone = 'America/New_York';
CREATE ROLE hook_anna LOGIN;
CREATE ROLE hook_ben LOGIN;
CREATE ROLE hook_gateway LOGIN IN ROLE sheet_gateway;
SELECT sheet.account_create('hook anna', NULL, 'x') > 0, sheet.account_create('hook ben', NULL, 'x') > 0;
SELECT sheet.link_account('hook anna', 'hook_anna'), sheet.link_account('hook ben', 'hook_ben');
SET ROLE hook_anna;
SELECT sheet.create('hooked', 20, 10) AS s \gset
SELECT sheet.set(:s, 'A1', 'before') \gset
SELECT webhook_id AS w, secret AS key, secret ~ '^whsec_[0-9a-f]{64}$' AS form FROM sheet.create_webhook(:s, 'https://example.org/hook?x=1') \gset
\echo :form
SELECT webhook_id = :w AS same, url, state, delivered_seq, failures, next_at, sent_at, status, error, disabled_reason, created_by FROM sheet.webhooks(:s);
-- addresses
\set VERBOSITY terse
SELECT sheet.create_webhook(:s, 'ftp://example.org/');
SELECT sheet.create_webhook(:s, 'https://user@example.org/');
SELECT sheet.create_webhook(:s, 'https://example.org:0/');
SELECT sheet.create_webhook(:s, 'https://example.org/a b');
SELECT sheet.create_webhook(:s, 'https://127.1/');
SELECT sheet.create_webhook(:s, 'https://example.org/' || repeat('a', 2029));
SELECT sheet.create_webhook(NULL, 'https://example.org/');
SELECT sheet.create_webhook(:s, NULL);
-- a sheet has ten
SELECT count((sheet.create_webhook(:s, 'https://example.org/' || i)).webhook_id) FROM generate_series(2, 10) i;
DO $$ BEGIN PERFORM sheet.create_webhook((SELECT sheet_id FROM sheet.list WHERE name = 'hooked'), 'https://example.org/11');
EXCEPTION WHEN program_limit_exceeded THEN RAISE WARNING 'no more'; END $$;
SELECT count(sheet.delete_webhook(webhook_id)::text) FROM sheet.webhooks(:s) WHERE webhook_id <> :w;
-- others
SELECT sheet.share(:s, 'hook ben', 'editor');
SET ROLE hook_ben;
DO $$ BEGIN PERFORM sheet.create_webhook((SELECT sheet_id FROM sheet.list WHERE name = 'hooked'), 'https://example.org/');
EXCEPTION WHEN insufficient_privilege THEN RAISE WARNING 'not an owner'; END $$;
DO $$ BEGIN PERFORM sheet.webhooks((SELECT sheet_id FROM sheet.list WHERE name = 'hooked'));
EXCEPTION WHEN insufficient_privilege THEN RAISE WARNING 'not an owner'; END $$;
\set VERBOSITY sqlstate
SELECT sheet.change_webhook(:w, active => false);
SELECT sheet.test_webhook(:w);
SELECT sheet.delete_webhook(:w);
SELECT sheet.delete_webhook(NULL);
SELECT * FROM sheet.webhook;
SELECT sheet.take_webhooks('{}', 1);
SELECT sheet.end_webhook(1, 1, 1, 'delivered', 200, NULL);
SELECT sheet.last_seq(1);
\set VERBOSITY default
-- what a gateway gets
SET ROLE hook_gateway;
CREATE FUNCTION pg_temp.take(changed bigint[]) RETURNS TABLE (watched boolean, again boolean, attempt bigint, url text, to_seq bigint, body jsonb)
	LANGUAGE sql AS $$ SELECT t.webhook_id IS NULL, t.again, t.attempt, t.url, t.to_seq, t.body::jsonb - 'webhook' - 'sheet_id' FROM sheet.take_webhooks(changed, 5) t $$;
CREATE FUNCTION pg_temp.edits(body jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_set(body, '{edits}', (SELECT coalesce(jsonb_agg(e - 'at' - 'uid'), '[]') FROM jsonb_array_elements(body -> 'edits') e)) $$;
SELECT * FROM pg_temp.take(ARRAY[:s]);
RESET ROLE;
SELECT sheet.set(:s, 'A1', 'one'), sheet.set(:s, 'B2', '"two"'), sheet.insert_rows(:s, 1, 2);
SET ROLE hook_gateway;
SELECT watched, again, attempt, url, to_seq, pg_temp.edits(body) FROM pg_temp.take(ARRAY[:s]);
-- leased: nobody else gets it
SELECT watched, again, attempt FROM pg_temp.take(ARRAY[:s]);
SELECT sheet.end_webhook(:w, 7, 4, 'delivered', 200, NULL) AS other, sheet.end_webhook(:w, 1, 4, 'failed', 500, 'the answer was 500') AS own,
	sheet.end_webhook(:w, 1, 4, 'delivered', 200, NULL) AS twice;
RESET ROLE;
SELECT delivered_seq, failures, status, error, next_at BETWEEN sent_at + '0.7 s' AND sent_at + '1 s' AS soon FROM sheet.webhooks(:s);
-- longer after each failure; a receiver's wish counts, up to an hour
UPDATE sheet.webhook SET next_at = now(), failures = 5 WHERE webhook_id = :w;
SELECT attempt FROM sheet.take_webhooks('{}', 5);
SELECT sheet.end_webhook(:w, 2, 4, 'failed', NULL, 'it did not answer');
SELECT failures, status, error, next_at BETWEEN sent_at + '24 s' AND sent_at + '32 s' AS backoff FROM sheet.webhooks(:s);
UPDATE sheet.webhook SET next_at = now(), failures = 100 WHERE webhook_id = :w;
SELECT attempt FROM sheet.take_webhooks('{}', 5);
SELECT sheet.end_webhook(:w, 3, 4, 'failed', 503, 'the answer was 503', 86400);
SELECT next_at = sent_at + '1 h' AS bounded FROM sheet.webhooks(:s);
-- what succeeds ends at the seq that was taken, and there is one second between
UPDATE sheet.webhook SET next_at = now() WHERE webhook_id = :w;
SELECT attempt, to_seq FROM sheet.take_webhooks('{}', 5);
SELECT sheet.set(:s, 'C3', 'meanwhile') \gset
SELECT sheet.end_webhook(:w, 4, 5, 'delivered', 204, NULL);
SELECT delivered_seq, failures, status, error, next_at = sent_at + '1 s' AS coalesced FROM sheet.webhooks(:s);
UPDATE sheet.webhook SET next_at = now() WHERE webhook_id = :w;
SELECT attempt, (body::jsonb) ->> 'from_seq' AS from_seq, to_seq, body::jsonb -> 'edits' -> 0 ->> 'at' ~ '[+]00:00$' AS utc FROM sheet.take_webhooks('{}', 5);
SELECT sheet.end_webhook(:w, 5, 6, 'delivered', 200, NULL);
-- up to date: idle
UPDATE sheet.webhook SET next_at = now() WHERE webhook_id = :w;
SELECT to_seq FROM sheet.take_webhooks('{}', 5);
SELECT delivered_seq, next_at FROM sheet.webhooks(:s);
-- a ping: once
SELECT sheet.test_webhook(:w);
SELECT attempt, to_seq, body::jsonb - 'webhook' - 'sheet_id' AS body FROM sheet.take_webhooks('{}', 5);
SELECT sheet.end_webhook(:w, 6, NULL, 'failed', 404, 'the answer was 404');
SELECT state, failures, status FROM sheet.webhooks(:s);
UPDATE sheet.webhook SET next_at = now() WHERE webhook_id = :w;
SELECT to_seq FROM sheet.take_webhooks('{}', 5);
-- more than 256 kB
SELECT sheet.set_range(:s, 'A1', (SELECT array_agg(ARRAY[repeat('x', 20000)]) FROM generate_series(1, 20))) \gset
SELECT to_seq, jsonb_array_length(body::jsonb -> 'edits') AS edits, body::jsonb -> 'truncated' AS truncated, length(body) < 300000 AS bounded FROM sheet.take_webhooks(ARRAY[:s], 5) WHERE body IS NOT NULL;
SELECT sheet.end_webhook(:w, 7, 26, 'delivered', 200, NULL);
-- paused, and what has changed meanwhile is sent after that
SELECT sheet.change_webhook(:w, active => false, url => 'HTTP://Example.NET.:80');
SELECT sheet.set(:s, 'A1', 'while paused') \gset
SELECT watched, again, attempt FROM pg_temp.take(ARRAY[:s]);
\set VERBOSITY sqlstate
SELECT sheet.test_webhook(:w);
\set VERBOSITY default
SELECT sheet.change_webhook(:w, active => true);
SELECT url, to_seq FROM sheet.take_webhooks('{}', 5);
-- in the trash nothing is sent; recovering tells gateways
SELECT sheet.end_webhook(:w, 8, 27, 'delivered', 200, NULL);
SELECT sheet.set(:s, 'A1', 'last') \gset
SELECT sheet.trash(:s);
SELECT watched, again, attempt FROM pg_temp.take(ARRAY[:s]);
UPDATE sheet.webhook SET next_at = now() WHERE webhook_id = :w;
SELECT watched, again, attempt FROM pg_temp.take(ARRAY[:s]);
SELECT sheet.recover(:s);
SELECT watched, again, attempt, to_seq FROM pg_temp.take(ARRAY[:s]);
-- the receiver wants no more, or has failed for days
SELECT sheet.end_webhook(:w, 9, 28, 'gone', 410, 'the answer was 410');
SELECT state, disabled_reason, next_at FROM sheet.webhooks(:s);
SELECT sheet.change_webhook(:w, active => true);
SELECT attempt FROM sheet.take_webhooks('{}', 5);
UPDATE sheet.webhook SET failing_since = now() - interval '73 h', failures = 20 WHERE webhook_id = :w;
SELECT sheet.end_webhook(:w, 10, 28, 'failed', NULL, 'the connection was refused');
SELECT state, disabled_reason, next_at FROM sheet.webhooks(:s);
-- lease of a gateway that has died
SELECT sheet.change_webhook(:w, active => true);
SELECT attempt FROM sheet.take_webhooks('{}', 5, 0);
SELECT attempt FROM sheet.take_webhooks('{}', 5);
SELECT sheet.end_webhook(:w, 11, 28, 'delivered', 200, NULL) AS late, sheet.end_webhook(:w, 12, 28, 'delivered', 200, NULL) AS present;
-- an account with many webhooks that are due delays nobody; nor does a host
RESET ROLE;
UPDATE sheet.webhook SET next_at = NULL;
INSERT INTO sheet.webhook (sheet_id, url, created_by, delivered_seq, next_at)
	SELECT :s, format('https://h%s.example/', i % 100), 0, 0, now() - interval '1 h' FROM generate_series(1, 2000) i;
SELECT count(DISTINCT secret), bool_and(secret ~ '^whsec_[0-9a-f]{64}$') AS form FROM sheet.webhook;
INSERT INTO sheet.webhook (sheet_id, url, created_by, delivered_seq, next_at)
	SELECT :s, 'https://Popular.example:8443/' || i, uid, 0, now() - interval '1 min' FROM sheet.account, generate_series(1, 6) i WHERE name = 'hook anna';
BEGIN;
SELECT account = 0 AS many, count(*), count(DISTINCT url) AS urls FROM sheet.take_webhooks('{}', 16) WHERE body IS NOT NULL GROUP BY 1 ORDER BY 1;
SELECT count(*) AS postponed FROM sheet.webhook WHERE url LIKE '%Popular%' AND next_at > now() AND leased_until IS NULL;
ROLLBACK;
SELECT account = 0 AS many, count(*) FROM sheet.take_webhooks('{}', 16, accounts => '{0,0,0,0,0}', hosts => '{popular.example,popular.example,other.example}')
	WHERE body IS NOT NULL GROUP BY 1 ORDER BY 1;
SELECT account = 0 AS many, count(*) FROM sheet.take_webhooks('{}', 16, accounts => array_fill(0, '{8}'), hosts => '{}') WHERE body IS NOT NULL GROUP BY 1;
DELETE FROM sheet.webhook WHERE webhook_id <> :w;
-- purged
SELECT webhook_id = :w AS watched FROM sheet.watched_sheets(:w - 1);
SELECT sheet.purge(:s);
SELECT count(*) FROM sheet.webhook;
DROP FUNCTION pg_temp.take, pg_temp.edits;
DROP ROLE hook_gateway;
SELECT sheet.link_account('hook anna', NULL), sheet.link_account('hook ben', NULL);
DROP ROLE hook_anna, hook_ben;
