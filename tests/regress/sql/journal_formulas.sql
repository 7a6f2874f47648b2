-- Formulas follow the rows and columns that they refer to: by every function and by sheet.apply, in the transaction of the
-- structure edit, with edits of the log behind it. What tests/vectors/formulas.json says of single formulas is not said again.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
CREATE FUNCTION f_show(id bigint) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(a1 || ' ' || content || coalesce(' ' || style, ''), ' | ' ORDER BY "row", col), '') FROM sheet.range(id)
$$;
SELECT sheet.create('formulas', 20, 8) AS id \gset
SELECT last_seq AS known FROM sheet.apply(:id, j_batch(j_set(0, 0, '=A10'), j_set(0, 1, '=SUM(A$5:$B9)*2', '{"bold":1}'), j_set(0, 2, '=SUM(5:9)+SUM(B:D)'),
	j_set(0, 3, '="A10"&LOG10(A1)&Sheet2!A10'), j_set(9, 0, '=A1'), j_set(11, 4, 'A10'))) \gset
SELECT sheet.insert_rows(:id, 6, 2) > 0, f_show(:id);
SELECT seq - :known AS seq, kind, "row", col, old, new, style FROM sheet.log_edits(:id) WHERE seq > :known ORDER BY seq;
SELECT sheet.delete_rows(:id, 3, 3) > 0, f_show(:id);
SELECT sheet.insert_columns(:id, 1) > 0, f_show(:id);
SELECT sheet.delete_columns(:id, 2, 2) > 0, f_show(:id);
SELECT sheet.delete_rows(:id, 0, 1) > 0, f_show(:id);
SELECT severity, what FROM sheet.fsck(:id, true);
-- nothing to do: nothing is stored but the structure edit
SELECT sheet.insert_rows(:id, 100) - sheet.set(:id, 'H1', '=A1') AS edits;

-- ---- the author, and one transaction ----
SELECT sheet.account_create('formulas', 'f@example.org', 'x') AS uid \gset
SELECT sheet.create('formulas of authors', 9, 9) AS own \gset
SELECT sheet.share(:own, 'formulas', 'editor');
SELECT sheet.set(:own, 'A9', '=A5') > 0, sheet.insert_rows(:own, 0, 1, as_uid => :uid) > 0;
SELECT uid = :uid AS own, kind, "row", col, old, new FROM sheet.log_edits(:own) ORDER BY seq;
-- what the transaction has set itself, has set again, or has emptied; what it takes back
BEGIN;
SELECT sheet.set(:own, 'B1', '=A7') > 0, sheet.set(:own, 'B2', '=A7') > 0, sheet.set(:own, 'B2', 'text') > 0, sheet.set(:own, 'B3', 'text') > 0,
	sheet.set(:own, 'B3', '=A8') > 0, sheet.set(:own, 'A10', '') > 0;
SAVEPOINT a;
SELECT sheet.insert_rows(:own, 4, 1) > 0, f_show(:own);
SELECT sheet.delete_columns(:own, 0, 1) > 0, f_show(:own);
ROLLBACK TO a;
SELECT f_show(:own);
SELECT sheet.insert_rows(:own, 2, 1) > 0, sheet.insert_rows(:own, 2, 1) > 0, f_show(:own);
COMMIT;
SELECT f_show(:own);
SELECT severity, what FROM sheet.fsck(:own, true);

-- ---- sheet.apply: edits name the rows that structure edits before them have left, and so do their formulas ----
SELECT sheet.create('formulas of batches', 9, 9) AS batch \gset
SELECT sheet.set(:batch, 'A9', '=A5+B1') AS known \gset
SELECT last_seq - :known AS edits FROM sheet.apply(:batch, j_batch(j_set(0, 1, '=A5'), j_edit(6, 7, 1, 0, '2'), j_edit(7, 7, 0, 0, '1'), j_set(0, 2, '=A5'),
	j_edit(8, 7, 0, 0, '1'), j_set(0, 0, '=A5')), :known);
SELECT seq - :known AS seq, kind, "row", col, old, new FROM sheet.log_edits(:batch) WHERE seq > :known ORDER BY seq;
-- a client's own rewriting of the same changes nothing
SELECT last_seq AS known FROM sheet.apply(:batch, j_batch(j_edit(6, 7, 0, 0, '1'), j_set(10, 1, '=B7+#REF!'))) \gset
SELECT f_show(:batch);
SELECT severity, what FROM sheet.fsck(:batch, true);

-- ---- versions, rollback, times of the past ----
SELECT sheet.create('formulas of versions', 9, 9) AS kept \gset
SELECT last_seq > 0 FROM sheet.apply(:kept, j_batch(j_set(0, 0, '=SUM(A3:A6)'), j_set(4, 0, '5'), j_set(6, 1, '=A5')));
SELECT sheet.commit(:kept, 'before') AS version \gset
SELECT f_show(:kept) AS was \gset
SELECT sheet.insert_rows(:kept, 3, 2) > 0, sheet.delete_rows(:kept, 6, 1) > 0, f_show(:kept);
SELECT sheet.commit(:kept, 'between') > 0;
SELECT string_agg(a1 || ' ' || content, ' | ' ORDER BY "row", col) AS at_version FROM sheet.at(:kept, :version);
SELECT a1, old, new FROM sheet.diff(:kept, :version) ORDER BY a1;
SELECT sheet.rollback(:kept, :version) > 0, f_show(:kept) = :'was' AS restored;
SELECT severity, what FROM sheet.fsck(:kept, true);

-- ---- what cannot be ----
SELECT sheet.create('formulas that are long', 9, 9) AS long \gset
SELECT sheet.set(:long, 'B2', '=A9' || repeat(' ', 32764)) > 0;
SELECT j_error(format('SELECT sheet.insert_rows(%s, 0)', :long));
SELECT sheet.delete_rows(:long, 0) > 0, length(sheet.get(:long, 'B1'));

-- ---- many: several rows of the log, one for 4096 edits ----
SELECT sheet.create('many formulas', 100000, 4) AS many \gset
SELECT sheet.set_range(:many, format('A%s', 1 + 20000 * i), (SELECT array_agg(ARRAY['=B' || 1 + 20000 * i + j, '=SUM($B$1:B' || 1 + 20000 * i + j || ')'] ORDER BY j) FROM generate_series(0, 19999) j)) > 0
	FROM generate_series(0, 4) i;
SELECT seq AS known FROM sheet.read_cells(:many) \gset
SELECT sheet.insert_rows(:many, 50000, 3) - :known AS edits;
SELECT sheet.get(:many, 'A50000'), sheet.get(:many, 'B50000'), sheet.get(:many, 'A50004'), sheet.get(:many, 'B100003');
SELECT severity, what FROM sheet.fsck(:many, true);
