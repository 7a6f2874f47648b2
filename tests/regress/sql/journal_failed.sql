-- A sheet whose edits fail again and again, while others fill page after page, reads and takes edits as before. Each failure leaves the name
-- of another page in the directory, at one position.
\set VERBOSITY terse
SET client_min_messages = warning;
SELECT sheet.create('tried') AS tried \gset
SELECT sheet.create('filler') AS filler \gset
SELECT sheet.set(:tried, 'A1', 'first');
CREATE PROCEDURE try(tried bigint, filler bigint, times int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. times LOOP
		PERFORM sheet.set(tried, 'A2', 'fails');
		ROLLBACK;
		PERFORM sheet.set(filler, 'A1', string_agg(md5((i * 1000 + g)::text), '')) FROM generate_series(1, 100) g;
		COMMIT;
	END LOOP;
END $$;
CALL try(:tried, :filler, 150);
SELECT count(*), max(seq) FROM sheet.log WHERE sheet_id = :tried;
SELECT sheet.set(:tried, 'A2', 'works');
SELECT seq, kind, a1, new FROM sheet.log WHERE sheet_id = :tried ORDER BY seq;
SELECT seq, a1, new FROM sheet.log WHERE sheet_id = :tried AND seq >= 3;
SELECT severity, what, place FROM sheet.fsck(:tried, true);
SELECT sheet.commit(:tried, 'a version');
SELECT sheet.set(:tried, 'A3', 'after it');
SELECT count(*), max(seq) FROM sheet.log WHERE sheet_id = :tried;
SELECT * FROM sheet.am_check('sheet.log_batch');
SELECT sheet.trash(:tried), sheet.purge(:tried), sheet.trash(:filler), sheet.purge(:filler);
DROP PROCEDURE try;
-- an index that edits cannot maintain: each of them fails, and leaves no memory behind
SELECT sheet.create('indexed') AS indexed \gset
CREATE INDEX log_batch_odd ON sheet.log_batch ((sheet_id + 1));
CREATE FUNCTION relation_memory() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'pg_sheet relation' $$;
SELECT sheet.set(:indexed, 'A1', 'fails');
SELECT relation_memory() AS before \gset
SELECT sheet.set(:indexed, 'A1', 'fails');
SELECT sheet.set(:indexed, 'A1', 'fails');
SELECT sheet.set(:indexed, 'A1', 'fails');
SELECT relation_memory() - :before AS more;
DROP INDEX sheet.log_batch_odd;
SELECT sheet.set(:indexed, 'A1', 'works');
SELECT sheet.trash(:indexed), sheet.purge(:indexed);
DROP FUNCTION relation_memory;
