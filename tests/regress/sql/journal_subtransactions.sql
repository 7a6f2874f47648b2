-- Many calls and savepoints in one transaction: each edit sees those before it that are left, and what was rolled back
-- costs neither memory nor time for ever.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('journal subtransactions', 10, 5) AS id \gset
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a'), j_set(0, 1, 'b')));
-- a batch that changes nothing, then the cell is changed and changed back
BEGIN;
SELECT first_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a'), j_set(0, 1, 'b')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'x')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 1, 'y')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 1, 'z')));
COMMIT;
SELECT * FROM j_cells(:id);
SELECT seq, old, new FROM sheet.log_edits(:id) WHERE segment_id = 1 AND seq > 3;
SELECT severity, what FROM sheet.fsck(:id, true);
-- nested savepoints over the same cells: what was taken back is what the next edit replaces
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, '1'), j_set(1, 0, '1')));
SAVEPOINT a;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, '2'), j_set(0, 0, '3'), j_set(2, 0, '2')));
SAVEPOINT b;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, '4')));
RELEASE b;
ROLLBACK TO a;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, '5'), j_set(2, 0, '5')));
SAVEPOINT c;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, '6')));
ROLLBACK TO c;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, '7'), j_set(1, 0, '7')));
COMMIT;
SELECT seq, "row", col, old, new FROM sheet.log_edits(:id) WHERE segment_id = 1 AND seq > 7;
SELECT severity, what FROM sheet.fsck(:id, true);
-- who follows the sheet hears of the edits, also when the sheet was in the trash for a while in the same transaction
SELECT "cursor" AS before FROM sheet.follow(9, NULL, 0) \gset
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(4, 0, 'kept')));
SAVEPOINT a;
SELECT sheet.trash(:id);
ROLLBACK TO a;
COMMIT;
SELECT sheet_ids = ARRAY[:id::bigint] AS of_the_sheet, seqs FROM sheet.follow(9, :before, 0);
-- what fails in a loop, before or after it is staged, gives its memory back
CREATE FUNCTION t_memory() RETURNS bigint LANGUAGE sql AS
	$$ SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts WHERE name LIKE 'pg_sheet %' $$;
CREATE FUNCTION t_failing(id bigint, batch bytea, times int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. times LOOP
		BEGIN
			PERFORM sheet.apply(id, batch);
			RAISE EXCEPTION USING ERRCODE = 'P0001', MESSAGE = 'taken back';
		EXCEPTION WHEN raise_exception OR program_limit_exceeded THEN NULL;
		END;
	END LOOP;
END $$;
SELECT j_batch(VARIADIC array_agg(j_set(n, 0, repeat('x', 1000)))) AS batch FROM generate_series(0, 999) n \gset
SELECT j_batch(j_set(0, 0, repeat('x', 32768))) AS long \gset
BEGIN;
SELECT t_failing(:id, :'batch', 30), t_failing(:id, :'long', 300);
SELECT t_memory() < 8000000 AS little;
COMMIT;
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(3, 3, 'locked by the outer transaction')));
SELECT t_failing(:id, :'batch', 30), t_failing(:id, :'long', 300);
SELECT t_memory() < 8000000 AS little;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(3, 3, 'and again')));
COMMIT;
SELECT content FROM j_cells(:id) WHERE "row" = 3;
-- a stream of as many batches as there may be edits
SELECT last_seq FROM sheet.apply(:id, decode(repeat(encode(j_batch(j_set(4, 4, 'again')), 'hex'), 65536), 'hex'));
SELECT last_seq FROM sheet.apply(:id, decode(repeat(encode(j_batch(j_set(4, 4, 'again')), 'hex'), 65537), 'hex'));
-- what an error has cut short, while a sheet that the cache knows nothing of was looked up again, is not remembered
SELECT sheet.trash(:id), sheet.recover(:id);
BEGIN;
SELECT sheet.set(:id, 4, 4, 'again');
SAVEPOINT a;
ALTER TABLE sheet.segment RENAME TO segment_away;
SELECT sheet.set(:id, 4, 4, 'again');
ROLLBACK TO a;
COMMIT;
SELECT sheet.set(:id, 4, 4, 'and again');
SELECT severity, what FROM sheet.fsck(:id, true);
DROP FUNCTION t_memory, t_failing;
SELECT sheet.purge(:id);
