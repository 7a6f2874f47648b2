-- References across the tabs of a book follow rows, columns and names of the tab that they name, in the same transaction.
SET client_min_messages = warning;
SELECT sheet.create_book('references') AS b \gset
SELECT sheet.add_tab(:b, 'X') AS x, sheet.add_tab(:b, 'a b') AS ab, sheet.add_tab(:b, 'Straße') AS s, sheet.add_tab(:b, 'Plain') AS p \gset
CREATE TABLE tab_ids AS SELECT sheet_id AS id, name FROM sheet.tabs(:b);
-- the formulas of the tabs
CREATE FUNCTION public.texts() RETURNS TABLE (tab text, cell text, text text) LANGUAGE sql AS $$
	SELECT s.name, c.cell, c.content FROM tab_ids JOIN sheet.sheet s ON s.sheet_id = tab_ids.id,
		LATERAL (SELECT r."row", r.col, r.a1 AS cell, left(r.content, 200) AS content FROM sheet.range(tab_ids.id, formulas => true) r WHERE r.content LIKE '=%') c
	ORDER BY tab_ids.id, c."row", c.col $$;
CREATE FUNCTION public.seqs() RETURNS TABLE (tab text, seq bigint) LANGUAGE sql AS $$
	SELECT name, (sheet.read_properties(id)).seq FROM tab_ids ORDER BY id $$;

-- ---- structure edits ----
SELECT count(*) FROM sheet.referring JOIN tab_ids ON id = sheet_id;
SELECT sheet.set(:x, 'A1', '=A5+X!B5+''a b''!B5') > 0 AS x, sheet.set(:ab, 'A1', '=SUM(X!A5:B6)+SUM(X!3:4)+SUM(x!$A:B)+A5+"X!A5"+''X''!A5:x!B9') > 0 AS ab,
	sheet.set(:s, 'A1', '=X!A5#+''a b''!B5+STRASSE!A5') > 0 AS s, sheet.set(:p, 'A1', '=A5&"X!A5"') > 0 AS p;
SELECT name FROM sheet.referring JOIN tab_ids ON id = sheet_id ORDER BY 1;
SELECT * FROM seqs();
SELECT sheet.insert_rows(:x, 3, 2) > 0 AS inserted;
SELECT * FROM texts();
-- tabs in which nothing changes have no edit
SELECT * FROM seqs();
SELECT sheet.insert_columns(:ab, 0, 1) > 0 AS inserted;
SELECT * FROM texts();
SELECT sheet.insert_rows(:s, 1, 1) > 0 AS inserted, sheet.delete_columns(:s, 25, 5) > 0 AS deleted;
SELECT tab, cell, text FROM texts() WHERE tab = 'Straße';
-- nothing is left
SELECT sheet.delete_rows(:x, 4, 8) > 0 AS deleted;
SELECT * FROM texts();
-- all of it is one transaction
BEGIN;
SELECT sheet.insert_rows(:x, 0, 7) > 0 AS inserted;
SELECT text FROM texts() WHERE tab = 'a b';
SAVEPOINT s;
SELECT sheet.set(:p, 'B1', '=X!A1') > 0 AS set, sheet.insert_rows(:x, 0, 100) > 0 AS inserted;
SELECT text FROM texts() WHERE tab IN ('a b', 'Plain');
ROLLBACK TO s;
SELECT text FROM texts() WHERE tab IN ('a b', 'Plain');
ROLLBACK;
SELECT text FROM texts() WHERE tab IN ('a b', 'Plain');
SELECT count(*) FROM sheet.referring WHERE sheet_id = :p;
-- who made the edit
SELECT sheet.account_create('reference anna', NULL, 'x') AS anna \gset
SELECT sheet.set(:ab, 'C1', '=X!A9') > 0 AS set, sheet.set(:x, 'C1', '=Y!A9') > 0 AS other;
SELECT sheet.share(:x, 'reference anna', 'editor');
SELECT sheet.insert_rows(:x, 2, 1, :anna) > 0 AS inserted;
SELECT kind, uid = :anna AS mine, old, new FROM sheet.log_edits(:ab) ORDER BY seq DESC LIMIT 1;
SELECT l.epoch, l.origin, l.batch_no FROM sheet.log_batch l WHERE sheet_id = :ab ORDER BY first_seq DESC LIMIT 1;
-- formulas that would become too long: whoever may not see the tab does not learn where
SELECT sheet.set(:ab, 'D1', '=X!A9' || repeat('+1', 16381)) > 0 AS set;
\set VERBOSITY terse
DO $$ DECLARE detail text; BEGIN
	PERFORM sheet.insert_rows((SELECT id FROM tab_ids WHERE name = 'X'), 0, 1);
EXCEPTION WHEN program_limit_exceeded THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RAISE WARNING '%. %', SQLERRM, detail;
END $$;
SELECT sheet.set(:ab, 'D1', '') > 0 AS set;

-- ---- names ----
SELECT sheet.rename(:x, 'It''s 1');
SELECT * FROM texts();
SELECT sheet.rename(:x, 'IT''S 1');
SELECT text FROM texts() WHERE tab = 'a b';
SELECT * FROM seqs();
SELECT sheet.rename(:x, 'IT''S 1');
SELECT * FROM seqs();
SELECT sheet.rename(:s, 'B2'), sheet.rename(:ab, 'Data_2');
SELECT * FROM texts();
-- a name that is refused changes nothing
DO $$ BEGIN
	PERFORM sheet.rename((SELECT id FROM tab_ids WHERE name = 'X'), 'data_2');
EXCEPTION WHEN unique_violation THEN RAISE WARNING '%', SQLERRM;
END $$;
SELECT text FROM texts() WHERE tab = 'Data_2';
-- names that differ in case and composition only
SELECT sheet.rename(:x, U&'Gr\00F6\00DFe'), sheet.set(:p, 'A2', U&'=''gro\0308sse''!A3+GR\00D6SSE!A3+Grosse!A3') > 0 AS set;
SELECT sheet.insert_rows(:x, 0, 1) > 0 AS inserted;
SELECT text FROM texts() WHERE tab = 'Plain';
SELECT sheet.rename(:x, 'X');
SELECT text FROM texts() WHERE tab = 'Plain';

-- ---- tabs in the trash, of other books, and sheets in no book ----
SELECT sheet.trash(:p);
SELECT sheet.insert_rows(:x, 0, 1) > 0 AS inserted;
SELECT sheet.rename(:x, 'Xx');
SELECT sheet.recover(:p);
SELECT text FROM texts() WHERE tab = 'Plain';
SELECT sheet.create('Alone') AS alone \gset
SELECT sheet.set(:alone, 'A1', '=Alone!A5+Xx!A5+A5') > 0 AS set, sheet.insert_rows(:alone, 2, 1) > 0 AS inserted;
SELECT sheet.rename(:alone, 'Xy');
SELECT sheet.get(:alone, 'A1');
INSERT INTO tab_ids VALUES (:alone, 'Alone');
SELECT sheet.move_tab(:alone, :b);
SELECT sheet.insert_rows(:x, 0, 1) > 0 AS inserted, sheet.insert_rows(:alone, 2, 1) > 0 AS own;
SELECT text FROM texts() WHERE tab = 'Xy';
-- copies have the texts, and follow
SELECT sheet.duplicate_tab(:p, 'Copy') AS copy \gset
INSERT INTO tab_ids VALUES (:copy, 'Copy');
SELECT sheet.insert_rows(:x, 0, 1) > 0 AS inserted;
SELECT tab, text FROM texts() WHERE tab IN ('Plain', 'Copy');

-- what does not follow: texts that a rollback brings back, texts in INDIRECT(), and a tab that has left the book
SELECT sheet.commit(:copy) AS version \gset
SELECT sheet.insert_rows(:x, 0, 1) > 0 AS inserted, sheet.rollback(:copy, :version) > 0 AS rolled_back;
SELECT text FROM texts() WHERE tab IN ('Plain', 'Copy') AND text LIKE '=X%';
SELECT sheet.set(:copy, 'A3', '=INDIRECT("Xx!A1")') > 0 AS set, sheet.move_tab(:alone, NULL), sheet.set(:alone, 'A2', '=Xx!A1') > 0 AS set;
SELECT sheet.insert_rows(:x, 0, 1) > 0 AS inserted;
SELECT tab, text FROM texts() WHERE tab IN ('Copy', 'Xy');

-- ---- each way of writing is noticed ----
CREATE FUNCTION public.is_noticed(id bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT EXISTS (SELECT FROM sheet.referring WHERE sheet_id = id) $$;
SELECT sheet.add_tab(:b, 'r1') AS r1, sheet.add_tab(:b, 'r2') AS r2, sheet.add_tab(:b, 'r3') AS r3, sheet.add_tab(:b, 'r4') AS r4 \gset
SELECT is_noticed(:r1), is_noticed(:r2), is_noticed(:r3), is_noticed(:r4);
SELECT sheet.set_range(:r1, 'A1', ARRAY[ARRAY['1', '=Xx!A1']]) > 0 AS set_range, sheet.import_csv_into(:r2, 'A1', E'1,=Xx!A1\n', formulas => true) > 0 AS csv;
SELECT last_seq > 0 AS apply FROM sheet.apply(:r3, ('\x0100000101070000' || '06' || encode('=Xx!A1', 'hex'))::bytea);
SELECT is_noticed(:r1), is_noticed(:r2), is_noticed(:r3), is_noticed(:r4);
-- but not what is no formula, or no reference
SELECT sheet.set_range(:r4, 'A1', ARRAY[ARRAY['Xx!A1', '="Xx!A1"', '=#REF!+#DIV/0!']]) > 0 AS set, is_noticed(:r4);
SELECT sheet.purge(:r1) FROM (SELECT sheet.trash(:r1)) t;
SELECT is_noticed(:r1);

-- ---- dumps and checks ----
SELECT obj FROM unnest((SELECT extconfig FROM pg_extension WHERE extname = 'pg_sheet')) o (oid), LATERAL (SELECT oid::regclass::text AS obj) n WHERE obj = 'sheet.referring';
SELECT severity, count(*) FROM tab_ids, sheet.fsck(id, "full" => true) GROUP BY 1;
DELETE FROM sheet.referring WHERE sheet_id = :x;
SELECT f.severity, f.what, f.place, f.repaired FROM sheet.fsck(:x, true, false) f;
SELECT f.severity, f.what, f.place, f.repaired FROM sheet.fsck(:x, true) f;
SELECT f.severity, f.what, is_noticed(:x) FROM sheet.fsck(:x, true) f;
SELECT sheet.purge_book(:b), sheet.purge(:alone);
SELECT count(*) FROM sheet.referring JOIN tab_ids ON id = sheet_id;
DROP FUNCTION texts, seqs, is_noticed;
DROP TABLE tab_ids;
