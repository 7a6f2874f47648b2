-- How edits get their place: seqs without gaps, old contents, what is skipped, what is refused.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('journal apply', 10, 5) AS id \gset
-- a new sheet has one edit: its size
SELECT seq, rows, cols FROM sheet.read_cells(:id);
SELECT first_seq, last_seq, duplicate, missed FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a'), j_set(9, 4, 'ü', '{"b":1}')));
SELECT * FROM j_cells(:id);
-- two edits of a cell in a batch: the second's old content is the first's; the third changes nothing
SELECT first_seq, last_seq FROM sheet.apply(:id, j_batch(j_set(1, 1, 'x'), j_set(1, 1, 'y'), j_set(1, 1, 'y')));
-- unchanged content, the same style, no style: no seq
SELECT first_seq, last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'a'), j_set(9, 4, 'ü', '{"b":1}'), j_set(9, 4, 'ü'), j_set(3, 3, '')));
SELECT first_seq, last_seq FROM sheet.apply(:id, '');
-- style alone, by both kinds; clearing it
SELECT first_seq, last_seq FROM sheet.apply(:id, j_batch(j_edit(2, 7, 1, 1, '', '{"i":1}'), j_set(0, 0, 'a', '{"u":1}')));
SELECT first_seq, last_seq FROM sheet.apply(:id, j_batch(j_edit(2, 7, 1, 1, '', '{"i":1}'), j_edit(2, 7, 1, 1, '', '')));
-- growing: by size, and by a cell outside; never smaller
SELECT first_seq, last_seq FROM sheet.apply(:id, j_batch(j_edit(3, 7, 19, 4, ''), j_edit(3, 7, 4, 1, ''), j_set(30, 9, 'far')));
SELECT seq, rows, cols FROM sheet.read_cells(:id);
SELECT seq, kind, "row", col, old, new, CASE WHEN seq > 1 THEN uid END AS uid FROM sheet.log_edits(:id) WHERE segment_id = 1;
SELECT count(*), count(DISTINCT at), bool_and(at > before) FROM (SELECT at, lag(at) OVER (ORDER BY seq) before FROM sheet.log_edits(:id) WHERE segment_id = 1) t;
-- rectangles
SELECT d."row", d.col, d.content FROM sheet.read_cells(:id, 1, 0, 9, 3) r, j_decode(r.cells) d;
SELECT d."row", d.col, d.content FROM sheet.read_cells(:id, 2, NULL, NULL, NULL) r, j_decode(r.cells) d;
-- several batches in one stream are one batch
SELECT first_seq, last_seq FROM sheet.apply(:id, j_batch(j_set(2, 2, 'one')) || j_batch(j_set(2, 3, 'two')));
SELECT count(*) FROM sheet.log_batch WHERE sheet_id = :id AND first_seq = 11 AND last_seq = 12;

-- contents that are replaced count, too: a few bytes that empty long cells are stored in rows of 4 MB, as one batch
SELECT sheet.create('long cells', 400, 1) AS long \gset
SELECT sheet.set_range(:long, 'A1', (SELECT array_agg(ARRAY[repeat(chr(256 + n), 32767)] ORDER BY n) FROM generate_series(1, 400) n)) AS long_seq \gset
SELECT first_seq - :long_seq AS first, last_seq - :long_seq AS last, duplicate FROM sheet.apply(:long, j_batch(VARIADIC ARRAY(SELECT j_set(n, 0, '') FROM generate_series(0, 399) n)), :long_seq, NULL, 7, 1);
SELECT count(*), max(octet_length(data)) < 4.1 * 1024 * 1024 AS short, min(first_seq) - :long_seq AS first, max(last_seq) - :long_seq AS last, count(DISTINCT (origin, batch_no)) AS batches
	FROM sheet.log_batch WHERE sheet_id = :long AND first_seq > :long_seq;
SELECT count(*), bool_and(kind = 'set' AND new = '' AND old = repeat(chr((257 + "row")::int), 32767)) AS told, max(at) - min(at) AS lasted FROM sheet.log WHERE sheet_id = :long AND seq > :long_seq;
SELECT count(*) AS cells FROM sheet.range(:long);
SELECT first_seq - :long_seq AS first, last_seq - :long_seq AS last, duplicate FROM sheet.apply(:long, j_batch(j_set(0, 0, '')), :long_seq, NULL, 7, 1);
-- such a batch is found again when it is sent again, also when it is more than one answer tells: sheet.tail has the rest
SELECT sheet.create('very long cells', 700, 1) AS very \gset
SELECT sheet.set_range(:very, 'A1', (SELECT array_agg(ARRAY[repeat(chr(19968 + n), 32767)] ORDER BY n) FROM generate_series(1, 700) n)) AS very_seq \gset
SELECT first_seq - :very_seq AS first, last_seq - :very_seq AS last, duplicate FROM sheet.apply(:very, j_batch(VARIADIC ARRAY(SELECT j_set(n, 0, '') FROM generate_series(0, 699) n)), :very_seq, NULL, 7, 1);
SELECT a.first_seq - :very_seq AS first, a.last_seq - :very_seq AS last, duplicate, octet_length(missed) BETWEEN 60 * 1024 * 1024 AND 64 * 1024 * 1024 AS cut,
	told, told + (SELECT count(*) FROM j_decode(t.batches) WHERE seq <= a.last_seq) AS both
	FROM sheet.apply(:very, j_batch(j_set(0, 0, '')), :very_seq, NULL, 7, 1) a, LATERAL (SELECT count(*) AS told FROM j_decode(a.missed)) m,
	LATERAL sheet.tail(:very, :very_seq + told, 64 * 1024 * 1024) t;
-- what has come after it does not keep it from being found
SELECT first_seq - :very_seq AS first, last_seq - :very_seq AS last, duplicate
	FROM (SELECT sheet.set_range(:very, 'A1', (SELECT array_agg(ARRAY[repeat(chr(19968 + n), 32767)] ORDER BY n) FROM generate_series(1, 700) n)) AS later) l,
	LATERAL sheet.apply(:very, j_batch(j_set(0, 0, '')), :very_seq, NULL, 7, CASE WHEN later > 0 THEN 1 END) a;
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''other'')), %s, NULL, 7, 2)', :very, :very_seq)) AS other;
-- ROLLBACK TO takes all of its rows back
BEGIN;
SAVEPOINT s;
SELECT sheet.set_range(:long, 'A1', (SELECT array_agg(ARRAY[repeat('y', 32767)] ORDER BY n) FROM generate_series(1, 400) n)) > 0 AS filled;
ROLLBACK TO s;
SELECT sheet.set(:long, 'A1', 'after') - :long_seq AS seq;
COMMIT;
SELECT severity, what FROM sheet.fsck(:long, true);

-- refused before anything is stored
SELECT j_error(format('SELECT sheet.apply(%s, %L)', :id, bytes)) FROM (VALUES
	('\x02000000'::bytea),                                       -- version
	('\x0100'),                                                  -- cut off in the header
	('\x01000002' || j_set(0, 0, 'q')),                          -- one edit too few
	(j_batch(j_set(0, 0, 'q')) || '\x00'),                       -- something behind
	('\x010000ffffffff0f'),                                      -- a count that cannot be
	(j_batch(j_edit(4, 7, 0, 0, 'label'))),                      -- the journal's own kinds
	(j_batch(j_edit(5, 7, 0, 0, ''))),
	(j_batch(j_edit(15, 7, 0, 0, ''))),
	(j_batch(j_set(16777216, 0, 'q'))),
	(j_batch(j_set(0, 16384, 'q'))),
	(j_batch(j_edit(3, 7, 16777216, 0, ''))),
	(j_batch(j_set(0, 0, repeat('x', 32768)))),
	(j_batch(j_set(0, 0, repeat('ü', 32768)))),
	(j_batch(j_set(0, 0, 'q', repeat('x', 4097)))),
	('\x010000010107000001ff'),                                  -- not UTF-8
	('\x01000001010700000100')                                   -- NUL
) v (bytes);
-- a batch is taken as a whole or not at all
SELECT j_error(format('SELECT sheet.apply(%s, %L)', :id, j_batch(j_set(5, 1, 'good'), j_set(16777216, 0, 'bad'))));
SELECT seq FROM sheet.read_cells(:id);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, repeat('ü', 32767), repeat('x', 4096)), j_set(16777215, 16383, 'corner')));
SELECT rows, cols FROM sheet.read_cells(:id, 0, 0, 0, 0);
SELECT j_error('SELECT sheet.apply(0, j_batch(j_set(0, 0, ''q'')))');
SELECT j_error('SELECT sheet.apply(NULL, ''''::bytea)');
SELECT sheet.trash(:id);
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''q'')))', :id));
SELECT sheet.recover(:id);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'back')));

-- owners: a lower epoch is refused, with the holder's name
SELECT sheet.claim(:id, 5, 'gateway a');
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''late'')), NULL, 4)', :id));
SELECT j_error(format('SELECT sheet.claim(%s, 4, ''gateway b'')', :id));
SELECT sheet.claim(:id, 5, 'gateway a again');
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'in time')), NULL, 5);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'SQL needs none')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'newer')), NULL, 6);
SELECT epoch, holder FROM sheet.ownership WHERE sheet_id = :id;
BEGIN;
SELECT sheet.claim(:id, 9, 'undone');
ROLLBACK;
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'six still')), NULL, 6);
-- epochs begin anew, also for what the cache knows
BEGIN;
SELECT sheet.reset_epochs();
ROLLBACK;
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''late'')), NULL, 1)', :id));
SELECT sheet.reset_epochs();
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'anew')), NULL, 1);

-- what a gateway has not seen, and a batch that is sent twice
SELECT sheet.create('journal missed', 10, 5) AS id \gset
SELECT first_seq, last_seq, duplicate, missed FROM sheet.apply(:id, j_batch(j_set(0, 0, 'mine')), 1, 1, 77, 1);
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 1, 'sql 1'), j_set(0, 2, 'sql 2')));
SELECT a.first_seq, a.last_seq, a.duplicate, d.seq, d.content FROM sheet.apply(:id, j_batch(j_set(0, 3, 'mine')), 2, 1, 77, 2) a, j_decode(a.missed) d;
SELECT a.first_seq, a.last_seq, a.duplicate, d.seq, d.content FROM sheet.apply(:id, j_batch(j_set(0, 3, 'mine')), 2, 1, 77, 2) a, j_decode(a.missed) d;
-- known in the middle of a batch: the whole batch comes
SELECT d.seq, d.content FROM sheet.apply(:id, j_batch(j_set(0, 4, 'mine')), 3, 1, 77, 3) a, j_decode(a.missed) d;
SELECT t.last_seq, d.seq, d.content FROM sheet.tail(:id, 3, 1) t, j_decode(t.batches) d;
SELECT t.last_seq, d.seq, d.content FROM sheet.tail(:id, 4) t, j_decode(t.batches) d;
SELECT * FROM sheet.tail(:id, 6);
SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''q'')), 7)', :id));

-- It appends once for each execution, however its row is read.
SELECT sheet.create('journal apply scan', 10, 5) AS id \gset
SELECT duplicate, missed, last_seq + 10 AS later, last_seq, 'x' AS x, last_seq, first_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'columns')));
SELECT (a.*).last_seq, a.at > now() - interval '1 day' AS at FROM sheet.apply(:id, j_batch(j_set(0, 0, 'star'))) a;
SELECT count(*), max(last_seq) FROM sheet.apply(:id, j_batch(j_set(0, 0, 'aggregate')));
SELECT 1 AS nothing FROM sheet.apply(:id, j_batch(j_set(0, 0, 'no column')));
SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'not done'))) LIMIT 0;
PREPARE j_apply(bigint, bytea) AS SELECT last_seq, missed IS NULL AS all FROM sheet.apply($1, $2);
EXECUTE j_apply(:id, j_batch(j_set(0, 0, 'first'), j_set(1, 0, 'too')));
EXECUTE j_apply(:id, j_batch(j_set(0, 0, 'second')));
EXECUTE j_apply(NULL, j_batch(j_set(0, 0, 'q')));
EXECUTE j_apply(:id, NULL);
BEGIN;
DECLARE j_answer SCROLL CURSOR FOR SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(0, 0, 'cursor')));
FETCH BACKWARD FROM j_answer;
FETCH 2 FROM j_answer;
FETCH BACKWARD FROM j_answer;
FETCH BACKWARD FROM j_answer;
FETCH ABSOLUTE 1 FROM j_answer;
FETCH RELATIVE 0 FROM j_answer;
FETCH NEXT FROM j_answer;
COMMIT;
SELECT seq, new FROM sheet.log WHERE sheet_id = :id AND seq > 1 ORDER BY seq;
SELECT a.last_seq FROM generate_series(1, 2) i, LATERAL sheet.apply(:id, j_batch(j_set(2, 2, 'lateral ' || i))) a;
SELECT (SELECT last_seq FROM sheet.apply(:id, j_batch(j_set(2, 2, 'sublink ' || i)))) FROM generate_series(1, 2) i;
-- the right to call it
CREATE ROLE j_caller;
SET ROLE j_caller;
SELECT j_error(format('SELECT last_seq FROM sheet.apply(%s, '''')', :id));
RESET ROLE;
DROP ROLE j_caller;
