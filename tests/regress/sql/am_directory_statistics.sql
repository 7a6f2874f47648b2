-- The planner asks what a scan of a directory costs, also when ANALYZE has seen how the key's order and the rows' agree:
-- autovacuum does that in every database that is used.
SELECT sheet.create('statistics ' || i) > 0 AS made FROM generate_series(1, 3) i;
SELECT count(sheet.set(sheet_id, 0, 0, 'x')) FROM sheet.sheet, generate_series(1, 5) WHERE name LIKE 'statistics %';
ANALYZE sheet.log_batch;
SELECT correlation IS NOT NULL AS known FROM pg_stats WHERE tablename = 'log_batch' AND attname = 'sheet_id';
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM sheet.log_batch WHERE sheet_id = 1;
SELECT count(*) > 0 AS found FROM sheet.log_batch
	WHERE sheet_id = (SELECT min(sheet_id) FROM sheet.sheet WHERE name LIKE 'statistics %');
SELECT count(sheet.trash(sheet_id)) FROM sheet.sheet WHERE name LIKE 'statistics %';
SELECT count(sheet.purge(sheet_id)) FROM sheet.sheet WHERE name LIKE 'statistics %';
-- For the plans of other tests.
DELETE FROM pg_statistic WHERE starelid = 'sheet.log_batch'::regclass;
