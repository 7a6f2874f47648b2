-- sheet.set_property(), sheet.properties(): properties of the sheet, of rows, columns, cells and ranges; how structure
-- edits move them; versions, time travel, rollback, limits and errors.
CREATE ROLE props_ann;
CREATE ROLE props_bob;
SELECT sheet.account_create('props ann', NULL, NULL) IS NOT NULL AS created;
SELECT sheet.account_create('props bob', NULL, NULL) IS NOT NULL AS created;
SELECT sheet.link_account('props ann', 'props_ann'), sheet.link_account('props bob', 'props_bob');
SELECT set_config('props.uid', uid::text, false) IS NOT NULL FROM sheet.account_find('props ann');
SELECT sheet.create('properties', 20, 10, as_uid => current_setting('props.uid')::bigint) AS id \gset
-- No row is stored of a sheet without properties.
SELECT count(*) FROM sheet.property_set WHERE sheet_id = :id;
SELECT * FROM sheet.properties(:id);

SET ROLE props_ann;
SELECT sheet.set_property(:id, NULL, 'freeze', '{"rows": 1, "cols": 0}');
SELECT sheet.set_property(:id, '3:5', 'height', '30');
SELECT sheet.set_property(:id, 'B:B', 'width', '120');
SELECT sheet.set_property(:id, 'c4', 'note', '"a note"');
SELECT sheet.set_property(:id, 'D8:B6', 'merge', 'true');
-- The same value changes nothing; another one replaces it.
SELECT sheet.set_property(:id, 'B:B', 'width', ' 120 ');
SELECT sheet.set_property(:id, 'B:B', 'width', '130');
-- Other targets of the same key, and other keys of the same target, are other properties.
SELECT sheet.set_property(:id, 'B:C', 'width', '10'), sheet.set_property(:id, 'B:B', 'hidden', 'true');
SELECT target, row0, col0, row1, col1, key, value, seq FROM sheet.properties(:id);
-- Null removes, in SQL and in JSON. What does not exist cannot be removed.
SELECT sheet.set_property(:id, 'B:C', 'width', NULL), sheet.set_property(:id, 'B:B', 'hidden', 'null');
SELECT sheet.set_property(:id, 'B:B', 'hidden', NULL), sheet.set_property(:id, 'Z99', 'note', NULL);
SELECT target, key, value, seq FROM sheet.properties(:id);
-- The log.
SELECT seq, kind, "row", col, a1, old, new, style, target, key FROM sheet.log WHERE sheet_id = :id ORDER BY seq;
SELECT seq, target FROM sheet.log WHERE sheet_id = :id AND kind = 'property' AND "row" = 3;
-- A property lies within the sheet: it extends the sheet as a cell does.
SELECT rows, cols FROM sheet.read_cells(:id, 0, 0, 0, 0);
SELECT sheet.set_property(:id, 'L:L', 'width', '50') > 0, sheet.set_property(:id, '25:30', 'hidden', 'true') > 0;
SELECT rows, cols FROM sheet.read_cells(:id, 0, 0, 0, 0);
RESET ROLE;

-- Permission: viewers read, editors write, others do neither.
\set VERBOSITY sqlstate
SET ROLE props_bob;
SELECT * FROM sheet.properties(:id);
\set VERBOSITY default
RESET ROLE;
SELECT sheet.share(:id, 'props bob', 'viewer');
SET ROLE props_bob;
SELECT count(*) FROM sheet.properties(:id);
\set VERBOSITY sqlstate
SELECT sheet.set_property(:id, 'A1', 'note', '1');
\set VERBOSITY default
SELECT sheet.read_properties(:id);
SELECT * FROM sheet.property_set;
RESET ROLE;

-- Errors, before anything is logged.
SELECT last_value AS before FROM (SELECT max(seq) AS last_value FROM sheet.log WHERE sheet_id = :id) s \gset
SELECT sheet.set_property(:id, 'A1', 'two words', '1');
SELECT sheet.set_property(:id, 'A1', '', '1');
SELECT sheet.set_property(:id, 'A1', NULL, '1');
SELECT sheet.set_property(:id, 'A1', repeat('k', 65), '1');
SELECT sheet.set_property(:id, 'A0', 'note', '1');
SELECT sheet.set_property(:id, 'A1', 'note', to_jsonb(repeat('x', 32767)));
SELECT sheet.set_property(-1, 'A1', 'note', '1');
-- sheet.apply: row 0, column 0; no target, a target that ends before it begins, all rows in two forms, no JSON.
CREATE FUNCTION pg_temp.edit(place bytea, target text, value text) RETURNS bytea LANGUAGE sql
	RETURN '\x01000001' || '\x1a00'::bytea || place || set_byte('\x00', 0, length(value)) || convert_to(value, 'UTF8')
		|| set_byte('\x00', 0, length(target)) || convert_to(target, 'UTF8');
SELECT sheet.apply(:id, pg_temp.edit('\x0000', '', '1'));
SELECT sheet.apply(:id, pg_temp.edit('\x0000', '1 0 k', '1'));
SELECT sheet.apply(:id, pg_temp.edit('\x0100', '* 0 k', '1'));
SELECT sheet.apply(:id, pg_temp.edit('\xffffff0700', '0 0 k', '1'));
SELECT sheet.apply(:id, pg_temp.edit('\x8080800800', '0 0 k', '1'));
SELECT sheet.apply(:id, pg_temp.edit('\x0000', '00 0 k', '1'));
\set VERBOSITY sqlstate
SELECT sheet.apply(:id, pg_temp.edit('\x0000', '0 0 k', '{'));
SELECT sheet.apply(:id, pg_temp.edit('\x0000', '0 0 k', '1e999999'));
\set VERBOSITY default
SELECT max(seq) = :before AS unchanged FROM sheet.log WHERE sheet_id = :id;
SELECT (sheet.apply(:id, pg_temp.edit('\x0502', '4 2 k', '[1]'))).last_seq = :before + 1 AS appended;
SELECT target, value FROM sheet.properties(:id) WHERE key = 'k';
SELECT (sheet.apply(:id, pg_temp.edit('\x0502', '4 2 k', 'null'))).last_seq = :before + 2 AS removed;

-- Structure edits move targets. Those with all rows or all columns keep them.
CREATE VIEW pg_temp.props AS SELECT s.sheet_id, p.target, p.key, p.value FROM sheet.sheet s, sheet.properties(s.sheet_id) p;
SELECT sheet.create('moves', 20, 10) AS m \gset
SELECT count(sheet.set_property(:m, t, 'k', to_jsonb(n))) FROM unnest(ARRAY[NULL, '3:5', 'B:D', 'B4', 'B3:D5', '10:10']) WITH ORDINALITY u(t, n);
SELECT sheet.insert_rows(:m, 3, 2) > 0; -- in the middle
SELECT target, value FROM pg_temp.props WHERE sheet_id = :m;
SELECT sheet.insert_columns(:m, 0, 1) > 0; -- before
SELECT sheet.insert_rows(:m, 7, 1) > 0; -- right after
SELECT target, value FROM pg_temp.props WHERE sheet_id = :m;
SELECT sheet.delete_rows(:m, 0, 4) > 0; -- a part; the row of 12:12 stays
SELECT target, value FROM pg_temp.props WHERE sheet_id = :m;
SELECT sheet.delete_columns(:m, 2, 1) > 0; -- all of B4
SELECT target, value FROM pg_temp.props WHERE sheet_id = :m;
SELECT sheet.delete_rows(:m, 0, 3) > 0; -- all of the range, and the other part of 3:5
SELECT target, value FROM pg_temp.props WHERE sheet_id = :m;
-- Two targets become equal: the smaller one stays.
SELECT sheet.set_property(:m, '5:6', 'same', '"large"') > 0, sheet.set_property(:m, '5:5', 'same', '"small"') > 0,
	sheet.set_property(:m, '5:6', 'same', '"larger"') > 0;
SELECT sheet.delete_rows(:m, 5, 1) > 0;
SELECT target, value FROM pg_temp.props WHERE sheet_id = :m AND key = 'same';
SELECT what FROM sheet.fsck(:m, true);

-- Versions, time travel, differences, rollback.
SELECT sheet.create('versions', 20, 10) AS v \gset
SELECT sheet.set(:v, 'A1', 'one'), sheet.set_property(:v, 'A:A', 'width', '1'), sheet.set_property(:v, '2:3', 'height', '2');
SELECT sheet.commit(:v);
SELECT at AS then FROM sheet.log WHERE sheet_id = :v AND kind = 'commit' \gset
SELECT sheet.set_property(:v, 'A:A', 'width', '10') > 0, sheet.set_property(:v, 'C3', 'note', '{"by": "bob"}') > 0, sheet.insert_rows(:v, 0) > 0;
SELECT target, key, value FROM sheet.properties(:v);
SELECT target, key, value, seq FROM sheet.properties(:v, 1);
SELECT target, key, value, seq FROM sheet.properties(:v, :'then'::timestamptz);
SELECT count(*) FROM sheet.properties(:v, '2001-01-01'::timestamptz);
\set VERBOSITY sqlstate
SELECT * FROM sheet.properties(:v, 99);
\set VERBOSITY default
SELECT * FROM sheet.diff_properties(:v, 1);
SELECT * FROM sheet.diff_properties(:v, 1, 1);
SELECT sheet.rollback(:v, 1);
SELECT target, key, value FROM sheet.properties(:v);
SELECT * FROM sheet.diff_properties(:v, 1, 2);
SELECT kind, target, key, old, new FROM sheet.log WHERE sheet_id = :v AND kind IN ('property', 'rollback') AND segment_id = 2 ORDER BY seq;
-- A version without properties, of a sheet that has some; and back.
SELECT count(sheet.set_property(:v, target, key, NULL)) FROM sheet.properties(:v);
SELECT count(*) FROM sheet.property_set WHERE sheet_id = :v;
SELECT sheet.commit(:v), (SELECT count(*) FROM sheet.version WHERE sheet_id = :v AND properties IS NULL);
SELECT sheet.rollback(:v, 1), (SELECT count(*) FROM sheet.properties(:v)) AS before;
SELECT count(*) FROM sheet.properties(:v);
SELECT what FROM sheet.fsck(:v, true);
-- After a trim.
SELECT sheet.trim(:v, 3) > 0;
SELECT target, key, value FROM sheet.properties(:v, 4);
SELECT what FROM sheet.fsck(:v, true);

-- Transactions: a rolled-back property never shows.
BEGIN;
SELECT sheet.set_property(:v, 'A:A', 'width', '77') > 0;
SAVEPOINT s;
SELECT sheet.set_property(:v, 'A:A', 'width', '78') > 0, sheet.set_property(:v, '9:9', 'height', '1') > 0, sheet.delete_rows(:v, 0) > 0;
SELECT target, key, value FROM sheet.properties(:v);
ROLLBACK TO s;
SELECT target, key, value FROM sheet.properties(:v);
SELECT sheet.set_property(:v, 'A:A', 'width', '79') > 0;
SELECT sheet.commit(:v) > 0;
COMMIT;
SELECT target, key, value FROM sheet.properties(:v);
BEGIN;
SELECT sheet.set_property(:v, 'A:A', 'width', NULL) > 0;
ROLLBACK;
SELECT target, key, value FROM sheet.properties(:v);
SELECT what FROM sheet.fsck(:v, true);

-- fsck: stored properties that differ from the log, or are gone, or damaged; a version's.
DELETE FROM sheet.property_set WHERE sheet_id = :v;
SELECT severity, what, place, repaired FROM sheet.fsck(:v);
SELECT target, key, value FROM sheet.properties(:v);
UPDATE sheet.property_set SET data = '\x0102' WHERE sheet_id = :v;
\set VERBOSITY sqlstate
SELECT * FROM sheet.properties(:v);
\set VERBOSITY default
SELECT severity, what, place, repaired FROM sheet.fsck(:v, repair => false);
SELECT severity, what, place, repaired FROM sheet.fsck(:v);
UPDATE sheet.property_set SET data = p.data FROM sheet.property_set p WHERE property_set.sheet_id = :v AND p.sheet_id = :id;
SELECT severity, what, place, repaired FROM sheet.fsck(:v);
SELECT severity, what, place, repaired FROM sheet.fsck(:v, true);
SELECT severity, what, place, repaired FROM sheet.fsck(:v, true);

ALTER TABLE sheet.version SET ACCESS METHOD heap;
UPDATE sheet.version SET properties = NULL WHERE sheet_id = :v AND version_id = 4;
DELETE FROM sheet.version WHERE sheet_id = :v AND version_id = 5;
ALTER TABLE sheet.version SET ACCESS METHOD sheetlog;
SELECT severity, what, place, repaired FROM sheet.fsck(:v);
SELECT what FROM sheet.fsck(:v, true);
SELECT target, key, value FROM sheet.properties(:v, 4);

-- Limits: 10,000 properties, a megabyte of keys and values.
SELECT sheet.create('limits', 20, 10) AS l \gset
SELECT count(sheet.set_property(:l, r || ':' || r, 'height', to_jsonb(r))) FROM generate_series(1, 20) r;
DO $$
DECLARE
	id bigint := (SELECT max(sheet_id) FROM sheet.sheet);
	batch bytea := '\x010000' || '\xfc4d'::bytea; -- 9980 edits
	edits bytea[] := '{}';
BEGIN
	FOR r IN 0..9979 LOOP
		edits := edits || ('\x1a00'::bytea || set_byte(set_byte('\x0000', 0, 128 | (r & 127)), 1, r >> 7) || '\x00'::bytea ||
			'\x0131'::bytea || set_byte('\x00', 0, length(r || ' * k')) || convert_to(r || ' * k', 'UTF8'));
	END LOOP;
	PERFORM sheet.apply(id, batch || string_agg(e, '' ORDER BY n)) FROM unnest(edits) WITH ORDINALITY u(e, n);
END
$$;
SELECT count(*) FROM sheet.properties(:l);
SELECT sheet.set_property(:l, NULL, 'one more', '1');
SELECT sheet.set_property(:l, NULL, 'one.more', '1');
SELECT sheet.set_property(:l, '1:1', 'height', '2') > 0, sheet.insert_rows(:l, 0) > 0;
SELECT sheet.set_property(:l, '3:3', 'height', NULL) > 0, sheet.set_property(:l, NULL, 'one.more', '1') > 0;
SELECT what FROM sheet.fsck(:l, true);
SELECT sheet.create('bytes', 20, 10) AS b \gset
SELECT count(sheet.set_property(:b, NULL, 'k' || n, to_jsonb(repeat('x', 32764)))) FROM generate_series(1, 31) n;
SELECT sheet.set_property(:b, NULL, 'last', to_jsonb(repeat('x', 32764)));
SELECT sheet.set_property(:b, NULL, 'last', to_jsonb(repeat('x', 30000))) > 0;
SELECT count(*), sum(length(value::text)) FROM sheet.properties(:b);

-- Values that could not be read everywhere are refused, null with white space removes.
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/data/journal_prelude.sql'
\i :prelude
SELECT sheet.create('values', 20, 10) AS x \gset
SELECT sheet.set_property(:x, NULL, 'deep', (repeat('[', 64) || repeat(']', 64))::jsonb) > 0;
SELECT sheet.set_property(:x, NULL, 'deep', (repeat('[', 65) || repeat(']', 65))::jsonb);
SELECT sheet.apply(:x, j_batch(j_edit(10, 7, 0, 0, repeat('[', 65) || repeat(']', 65), '* * deep')));
SELECT sheet.apply(:x, j_batch(j_edit(10, 7, 0, 0, '["[[e9", 1e308, {"e":[1.5E+10,1e-7,true]}, 1e309]', '* * large')));
SELECT count(*) FROM sheet.apply(:x, j_batch(j_edit(10, 7, 0, 0, '["[[\"e999", 1e308, {"e400":[1.5E+10,1e-7,true,false,999]}]', '* * large')));
SELECT count(*) FROM sheet.apply(:x, j_batch(j_edit(10, 7, 0, 0, E' null\n', '* * deep')));
SELECT key, length(value::text) FROM sheet.properties(:x);

-- A rollback never has more properties in between than before or after it.
SELECT sheet.create('rollback', 20, 10) AS y \gset
SELECT count(sheet.set_property(:y, NULL, 'a' || n, to_jsonb(repeat('x', 32700)))) FROM generate_series(1, 31) n;
SELECT sheet.set_property(:y, NULL, 'b', '1') > 0, sheet.set_property(:y, NULL, 'zz', to_jsonb(repeat('x', 30000))) > 0, sheet.commit(:y);
SELECT sheet.set_property(:y, NULL, 'a1', '1') > 0, sheet.set_property(:y, NULL, 'b', to_jsonb(repeat('x', 32700))) > 0,
	sheet.set_property(:y, NULL, 'zz', to_jsonb(repeat('x', 32700))) > 0, sheet.set_property(:y, NULL, 'a31', to_jsonb(repeat('x', 32760))) > 0;
SELECT sheet.rollback(:y, 1);
SELECT key, length(value::text) FROM sheet.properties(:y) WHERE key IN ('a1', 'a31', 'b', 'zz');

-- fsck leaves the sheet's properties alone if a version is damaged that it cannot replace.
SELECT sheet.create('damaged', 20, 10) AS z \gset
SELECT sheet.set(:z, 'A1', 'x') > 0, sheet.set_property(:z, 'B:B', 'width', '10') > 0, sheet.set_property(:z, 'C:C', 'width', '20') > 0, sheet.commit(:z);
SELECT sheet.set(:z, 'A2', 'y') > 0, sheet.set_property(:z, 'D:D', 'width', '30') > 0;
SET pg_sheet.allow_log_delete = on;
CREATE TEMP TABLE damaged AS SELECT * FROM sheet.version WHERE sheet_id = :z;
CREATE TEMP TABLE damaged_tile AS SELECT * FROM sheet.version_tile WHERE sheet_id = :z;
DELETE FROM sheet.version WHERE sheet_id = :z;
DELETE FROM sheet.version_tile WHERE sheet_id = :z;
UPDATE damaged SET digest = digest + 1;
UPDATE damaged_tile SET data = substr(data, 1, length(data) - 1);
INSERT INTO sheet.version SELECT * FROM damaged;
INSERT INTO sheet.version_tile SELECT * FROM damaged_tile;
SELECT severity, what, place, repaired FROM sheet.fsck(:z, true, true);
SELECT target, value FROM sheet.properties(:z);
SELECT severity, what, place, repaired FROM sheet.fsck(:z, true, true);
RESET pg_sheet.allow_log_delete;

-- Purging removes the row.
SELECT sheet.trash(:l), sheet.purge(:l);
SELECT count(*) FROM sheet.property_set WHERE sheet_id = :l;
DROP VIEW pg_temp.props;
DROP ROLE props_ann, props_bob;

-- What a page makes of a value costs all members: values of the page's keys are checked, however they come, and merges have an end.
SELECT sheet.create('page', 20, 10) AS p \gset
CREATE FUNCTION tried(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ' ' || sqlerrm;
END $$;
SELECT key, left(value, 40) AS value, tried(format('SELECT sheet.set_property(%s, NULL, %L, %L)', :p, key, value)) AS by_function,
	left(tried(format($$SELECT sheet.apply(%s, j_batch(j_edit(10, 7, 0, 0, %L, '* * %s')))$$, :p, value, key)), 5) AS by_batch
FROM (VALUES ('width', '-1'), ('width', '10000'), ('width', '10000.1'), ('width', '1e300'), ('height', '"30"'), ('height', '[30]'),
	('height', '0.5'), ('height', 'true'), ('height', '12345678901234567890123456789012345678901234567890123456789012345678901234567890'),
	('hidden', '1'), ('hidden', 'false'), ('merge', 'false'), ('merge', '{}'), ('freeze', '1'), ('freeze', '{"rows": -1}'),
	('freeze', '{"rows": 1001}'), ('freeze', '{"rows": 1.5}'), ('freeze', '{"cols": 1e9}'), ('freeze', '{"rows": 1, "lines": 2}'),
	('freeze', '{"rows": 1000, "cols": 2}'), ('freeze', '{}'), ('timezone', '"Europe/Berlin"'), ('timezone', '"Berlin; now"'), ('timezone', 'true'), ('other', '-1'), ('other', '1.7976931348623157e308'), ('other', '1.8e308'),
	('other', '[0.000012e313]'), ('other', '[0.000018e313]'), ('other', '-1e308'), ('other', '1e999'), ('other', '{"a":' || repeat('9', 309) || '}')) v (key, value);
SELECT tried(format($$SELECT sheet.set_property(%s, 'A1:A100000', 'merge', 'true')$$, :p)),
	tried(format($$SELECT sheet.set_property(%s, 'B1:B100001', 'merge', 'true')$$, :p)),
	tried(format($$SELECT sheet.set_property(%s, 'C:C', 'merge', 'true')$$, :p)),
	tried(format($$SELECT sheet.set_property(%s, NULL, 'merge', 'true')$$, :p)),
	tried(format($$SELECT sheet.insert_rows(%s, 7, 1)$$, :p)),
	tried(format($$SELECT sheet.insert_rows(%s, 0, 1)$$, :p)),
	tried(format($$SELECT sheet.insert_columns(%s, 1, 1)$$, :p)) \gx
SELECT sheet.set_property(:p, 'A2:A100001', 'merge', NULL) > 0 AS removed;
SELECT target, tried(format('SELECT sheet.set_property(%s, %L, %L, %L)', :p, target, 'merge', 'true'))
FROM (SELECT chr(66 + n) || '1:' || chr(66 + n) || '90000' AS target FROM generate_series(1, 12) n) t;
SELECT tried(format('SELECT sheet.insert_rows(%s, 80000, 1000)', :p)), tried(format('SELECT sheet.insert_rows(%s, 80000, 900)', :p));
-- a removal makes room again, and a rollback brings back what there was
SELECT sheet.commit(:p) AS version \gset
SELECT tried(format('SELECT sheet.set_property(%s, %L, %L, NULL)', :p, target, 'merge')) FROM sheet.properties(:p) WHERE key = 'merge' AND target LIKE 'C%';
SELECT tried(format('SELECT sheet.insert_rows(%s, 80000, 1000)', :p));
SELECT count(*) FROM sheet.properties(:p) WHERE key = 'merge';
SELECT sheet.rollback(:p, :version) > 0;
SELECT count(*) FROM sheet.properties(:p) WHERE key = 'merge';
SELECT what FROM sheet.fsck(:p, true, false);
