-- Edits obey transactions: seqs come back, readers see their own edits, nothing half done stays.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('journal transactions', 10, 5) AS id \gset
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'gone')));
SELECT * FROM j_cells(:id);
ROLLBACK;
SELECT * FROM j_cells(:id);
-- savepoints: seqs return, later edits see what is left
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'outer')));
SAVEPOINT a;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'inner'), j_set(1, 1, 'inner')));
SAVEPOINT b;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'innermost')));
RELEASE b;
SELECT * FROM j_cells(:id);
ROLLBACK TO a;
SELECT * FROM j_cells(:id);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'outer'), j_set(0, 1, 'after')));
COMMIT;
SELECT * FROM j_cells(:id);
SELECT seq, old, new FROM sheet.log_edits(:id) WHERE segment_id = 1;
-- all of the transaction's edits undone, then another one
BEGIN;
SAVEPOINT a;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(4, 4, 'undone')));
ROLLBACK TO a;
COMMIT;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(4, 4, 'done')));
-- an exception block in PL/pgSQL
DO $$
DECLARE id bigint;
BEGIN
	SELECT s.sheet_id INTO id FROM sheet.sheet s WHERE s.name = 'journal transactions';
	PERFORM sheet.apply(id, j_batch(j_set(2, 0, 'kept')));
	BEGIN
		PERFORM sheet.apply(id, j_batch(j_set(2, 0, 'dropped'), j_set(2, 1, 'dropped')));
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
		PERFORM sheet.apply(id, j_batch(j_set(2, 2, 'handled')));
	END;
	BEGIN
		PERFORM sheet.apply(id, j_batch(j_set(2, 3, 'good'), j_set(16777216, 3, 'bad')));
	EXCEPTION WHEN program_limit_exceeded THEN
		PERFORM sheet.apply(id, j_batch(j_set(2, 3, 'instead')));
	END;
END $$;
SELECT * FROM j_cells(:id);
SELECT count(*), max(seq) FROM sheet.log_edits(:id) WHERE segment_id = 1;
-- several calls in one statement
SELECT (sheet.apply(:id, j_batch(j_set(3, 0, n::text)))).last_seq FROM generate_series(1, 3) n;
SELECT seq, old, new FROM sheet.log_edits(:id) WHERE segment_id = 1 AND "row" = 3;
-- versions inside a transaction, and their undoing
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(5, 0, 'in version 1')));
SELECT sheet.commit(:id, 'first');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(5, 0, 'after version 1')));
SELECT sheet.rollback(:id, 1);
SELECT content FROM j_cells(:id) WHERE "row" = 5;
ROLLBACK;
SELECT * FROM sheet.versions(:id);
SELECT sheet.commit(:id, 'first');
-- two-phase commit is refused, after edits only
BEGIN;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(6, 0, 'prepared')));
PREPARE TRANSACTION 'journal';
SELECT seq FROM sheet.read_cells(:id);
BEGIN;
SELECT count(*) FROM j_cells(:id);
PREPARE TRANSACTION 'journal';
ROLLBACK PREPARED 'journal';
-- read-only transactions
BEGIN READ ONLY;
SELECT count(*) FROM j_cells(:id);
SELECT sheet.apply(:id, j_batch(j_set(6, 0, 'read only')));
ROLLBACK;
-- SERIALIZABLE and REPEATABLE READ, alone, are as READ COMMITTED
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(6, 0, 'serializable')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(6, 1, 'serializable')));
SELECT content FROM j_cells(:id) WHERE "row" = 6;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT content FROM j_cells(:id) WHERE "row" = 6;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(6, 0, 'repeatable')));
SELECT content FROM j_cells(:id) WHERE "row" = 6;
COMMIT;
SELECT content FROM j_cells(:id) WHERE "row" = 6;
-- what the cache shows is what the log says
SELECT count(*) FROM (
	(SELECT "row", col, content FROM j_cells(:id))
	EXCEPT
	(SELECT DISTINCT ON ("row", col) "row", col, new FROM (SELECT * FROM sheet.log_edits(:id) WHERE segment_id = 1 UNION ALL SELECT * FROM sheet.log_edits(:id) WHERE segment_id = 2) l
	 WHERE kind = 'set' ORDER BY "row", col, seq DESC)) t;
