-- Operations of protocol v2: how many of each client's are acknowledged is stored with their edits, and what is acknowledged is not made again.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('clients', 10, 5) AS id \gset
SELECT sheet.client_acknowledged(:id, 1, 7);
SELECT first_seq, last_seq, duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a')), clients => '{1,7,1,2, 2,7,5,5}');
SELECT sheet.client_acknowledged(:id, 1, 7), sheet.client_acknowledged(:id, 2, 7), sheet.client_acknowledged(:id, 1, 8);
-- all are acknowledged: nothing is appended, whatever the edits are
SELECT first_seq, last_seq, duplicate, missed IS NULL AS nothing_missed FROM sheet.apply(:id, j_batch(j_set(0, 0, 'b')), known_seq => 2, clients => '{1,7,2,2}');
SELECT content FROM sheet.range(:id, 'A1');
-- the caller hears of the edits that it has not seen
SELECT first_seq, last_seq, duplicate, missed IS NULL AS nothing_missed FROM sheet.apply(:id, j_batch(j_set(0, 0, 'b')), known_seq => 1, clients => '{1,7,2,2}');
-- some are acknowledged: the batch is refused, and nothing is stored
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'b')), clients => '{1,7,2,3}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'b')), clients => '{1,7,2,2, 2,7,6,6}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'b')), clients => '{2,7,6,6, 1,7,2,2}');
SELECT sheet.client_acknowledged(:id, 1, 7), sheet.client_acknowledged(:id, 2, 7);
-- edits that change nothing are noted as well
SELECT first_seq, last_seq, duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a')), clients => '{1,7,3,9}');
SELECT sheet.client_acknowledged(:id, 1, 7);
-- what is rolled back is not acknowledged
BEGIN;
SELECT first_seq, duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'c')), clients => '{1,7,10,10}');
SAVEPOINT s;
SELECT first_seq, duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'd')), clients => '{1,7,11,11}');
SELECT sheet.client_acknowledged(:id, 1, 7);
ROLLBACK TO s;
SELECT sheet.client_acknowledged(:id, 1, 7);
SELECT first_seq, duplicate FROM sheet.apply(:id, j_batch(j_set(0, 0, 'e')), clients => '{1,7,11,12}');
COMMIT;
SELECT sheet.client_acknowledged(:id, 1, 7), (SELECT content FROM sheet.range(:id, 'A1'));
BEGIN;
SELECT first_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'f')), clients => '{1,7,13,13}');
ROLLBACK;
SELECT sheet.client_acknowledged(:id, 1, 7), (SELECT content FROM sheet.range(:id, 'A1'));
-- operations of which nothing is left are noted; not before the caller knows of rows that have come since
\set VERBOSITY sqlstate
SELECT last_seq AS known FROM sheet.tail(:id, 0) \gset
SELECT first_seq, last_seq - :known AS more, duplicate FROM sheet.apply(:id, '\x01000000', known_seq => :known, clients => '{4,7,1,2}');
SELECT sheet.insert_rows(:id, 3, 1) - :known AS more;
SELECT sheet.apply(:id, '\x01000000', known_seq => :known, clients => '{4,7,3,3}');
SELECT sheet.client_acknowledged(:id, 4, 7);
SELECT first_seq, last_seq - :known AS more, duplicate FROM sheet.apply(:id, '\x01000000', known_seq => :known + 1, clients => '{4,7,3,3}');
SELECT sheet.client_acknowledged(:id, 4, 7);
\set VERBOSITY default
-- malformed
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'x')), clients => '{1,7,13}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'x')), clients => '{1,7,14,13}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'x')), clients => '{1,0,1,1}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'x')), clients => '{0,7,1,1}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'x')), clients => '{{1,7,1,1},{2,7,1,1}}');
SELECT sheet.apply(:id, j_batch(j_set(0, 0, 'x')), clients => '{1,7,1,NULL}');
-- rows go a week after the last operation, when a new client comes; and with the sheet
UPDATE sheet.client SET at = at - interval '6 days 23 hours' WHERE sheet_id = :id AND uid = 1;
UPDATE sheet.client SET at = at - interval '7 days 1 hour' WHERE sheet_id = :id AND uid = 2;
SELECT first_seq IS NOT NULL AS done FROM sheet.apply(:id, j_batch(j_set(1, 1, 'x')), clients => '{3,1,1,1}');
SELECT uid, client, acknowledged FROM sheet.client WHERE sheet_id = :id ORDER BY uid;
-- a newcomer looks at few rows only; newcomers together find most of what is too old: of an account that brings them, and of accounts that came once
INSERT INTO sheet.client SELECT :id, 9, n * 9007199254740, 1, now() - interval '8 days' FROM generate_series(1, 1000) n;
INSERT INTO sheet.client SELECT :id, 1000 + n, n * 9007199254740, 1, now() - interval '8 days' FROM generate_series(1, 1000) n;
SELECT count(first_seq) FROM sheet.apply(:id, j_batch(j_set(1, 1, 'y')), clients => '{9,9007199254000,1,1}');
SELECT count(*) BETWEEN 1968 AND 1984 AS few_rows_went FROM sheet.client WHERE sheet_id = :id AND at < now() - interval '7 days';
SELECT count(sheet.apply(:id, j_batch(j_set(1, 1, n::text)), clients => ARRAY[9, (random() * 9007199254740000)::bigint, 1, 1])) FROM generate_series(1, 1000) n;
SELECT count(*) FILTER (WHERE uid = 9) < 100 AS those_of_an_account_went, count(*) FILTER (WHERE uid > 9) < 300 AS those_of_many_went
	FROM sheet.client WHERE sheet_id = :id AND at < now() - interval '7 days';
SELECT count(*) >= 1001 AS others_stay FROM sheet.client WHERE sheet_id = :id AND at > now() - interval '7 days';
SELECT sheet.trash(:id), sheet.purge(:id);
SELECT count(*) FROM sheet.client WHERE sheet_id = :id;
-- gateways only
CREATE ROLE clients_nobody;
SET ROLE clients_nobody;
SELECT sheet.client_acknowledged(1, 1, 1);
SELECT count(*) FROM sheet.client;
RESET ROLE;
DROP ROLE clients_nobody;
