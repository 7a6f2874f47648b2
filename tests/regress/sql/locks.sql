-- Locks with names: numbers, counts, errors, the view. Waiting is tested by tests/isolation/specs/locks.spec.
SELECT sheet.lock('job') AS first \gset
SELECT :first > 0 AS number, sheet.locked('job'), sheet.locked('another');
-- the same session locks it again: the same number, and as many calls of unlock
SELECT sheet.lock('job') = :first AS same;
SELECT name, number = :first AS same, pid = pg_backend_pid() AS own, role = session_user AS role, waiting FROM sheet.locks;
SELECT sheet.unlock('job');
SELECT sheet.locked('job');
SELECT sheet.require_lock('job', :first);
\set VERBOSITY terse
SELECT sheet.require_lock('job', :first - 1);
SELECT sheet.unlock('job');
SELECT sheet.unlock('job');
SELECT sheet.require_lock('job', :first);
-- a later owner has a higher number
SELECT sheet.lock('job') > :first AS higher;
-- several at once: those that are held keep their number
SELECT n[1] < n[2] AND n[2] = n[3] AND n[2] = n[4] AS numbers FROM (SELECT sheet.lock(ARRAY['job', 'b', 'a', 'b']) AS n) x;
SELECT name FROM sheet.locks ORDER BY name;
-- a rollback releases nothing, and unlocks nothing again
BEGIN;
SELECT sheet.lock('in a transaction') > 0;
SELECT sheet.unlock('a');
ROLLBACK;
SELECT name FROM sheet.locks ORDER BY name;
-- malformed
\set VERBOSITY sqlstate
SELECT sheet.lock('');
SELECT sheet.lock(repeat('n', 124));
SELECT sheet.lock(NULL::text);
SELECT sheet.lock(ARRAY['x', NULL]);
SELECT sheet.lock('x', '-1 s');
SELECT sheet.lock('x', '1 month');
SELECT sheet.lock(array_agg('n' || i)) FROM generate_series(1, 129) i;
SELECT name FROM sheet.locks ORDER BY name;
\set VERBOSITY default
-- what releases advisory locks releases these
DISCARD ALL;
SELECT count(*) FROM sheet.locks;
SELECT sheet.lock('job') > :first AS higher;
SELECT sheet.lock('ä' || repeat('n', 121)) > :first AS longest;
SELECT count(*) FROM sheet.lock(ARRAY[]::text[]) n WHERE n = '{}';
-- the sessions of other roles, too
CREATE ROLE regress_locks_user;
SET SESSION AUTHORIZATION regress_locks_user;
SELECT sheet.lock('of a user') > 0;
SELECT role FROM sheet.locks WHERE name = 'of a user';
RESET SESSION AUTHORIZATION;
DROP ROLE regress_locks_user;
-- a lease is a matter of settings, which end with the last lock; shorter ones stay
\connect -
SET idle_session_timeout = '7 s';
SELECT sheet.lock('leased', '1 s', '10 s') > 0, sheet.lock(ARRAY['leased', 'too'], lease => '9 s') IS NOT NULL;
SELECT name, current_setting(name) FROM unnest(ARRAY['client_connection_check_interval', 'idle_in_transaction_session_timeout',
	'idle_session_timeout']) name ORDER BY name;
SELECT sheet.unlock('leased'), sheet.unlock('leased');
SHOW idle_in_transaction_session_timeout;
SELECT sheet.unlock('too');
SHOW idle_session_timeout;
SHOW idle_in_transaction_session_timeout;
SELECT sheet.lock('leased', lease => '0.9 s');
BEGIN;
SELECT sheet.lock('leased', lease => '9 s');
ROLLBACK;
-- a statement that fails after it has taken such a lock releases it, and leaves the settings alone
SELECT sheet.lock('leased', lease => '9 s') / 0;
SELECT sheet.locked('leased');
SHOW idle_in_transaction_session_timeout;
-- the settings of the session come back with the last unlock
SET idle_in_transaction_session_timeout = '1 h';
SELECT sheet.lock('plain') > 0, sheet.lock('leased', lease => '9 s') > 0;
SHOW idle_in_transaction_session_timeout;
SELECT sheet.unlock('leased'), sheet.unlock('plain');
SHOW idle_in_transaction_session_timeout;
-- an unlock that is rolled back leaves the settings to the next one
SELECT sheet.lock('leased', lease => '9 s') > 0;
BEGIN;
SELECT sheet.unlock('leased');
ROLLBACK;
SELECT sheet.lock('plain') > 0, sheet.unlock('plain') IS NULL;
SHOW idle_in_transaction_session_timeout;
-- after DISCARD ALL another lease begins and ends
SELECT sheet.lock('leased', lease => '9 s') > 0;
DISCARD ALL;
SELECT sheet.lock('again', lease => '9 s') > 0, sheet.unlock('again');
SHOW idle_in_transaction_session_timeout;
