-- Statistics of a sheetlog table: ANALYZE and VACUUM count rows as they are, the planner's estimates follow.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/data/am_helpers.sql'
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_analyze;
SET search_path = am_analyze, public;
\set ECHO none
\i :helpers
\set ECHO all
SELECT twin('CREATE TABLE T (id int PRIMARY KEY, k int, body text, rare int) USING AM WITH (autovacuum_enabled = off)');
CREATE FUNCTION stats() RETURNS TABLE (what text, log text, heap text) LANGUAGE sql AS $$
	SELECT 'reltuples', (SELECT reltuples::text FROM pg_class WHERE oid = 'l'::regclass), (SELECT reltuples::text FROM pg_class WHERE oid = 'h'::regclass)
	UNION ALL SELECT a.attname || ' ' || v.what, max(CASE a.tablename WHEN 'l' THEN v.value END), max(CASE a.tablename WHEN 'h' THEN v.value END) FROM pg_stats a,
		LATERAL (VALUES ('n_distinct', a.n_distinct::text), ('null_frac', round(a.null_frac::numeric, 2)::text), ('avg_width', a.avg_width::text), ('mcv', left(a.most_common_vals::text, 20))) v(what, value)
	WHERE a.schemaname = 'am_analyze' GROUP BY 1
$$;
-- before and after the first ANALYZE of nothing
SELECT reltuples FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
ANALYZE l;
ANALYZE h;
SELECT reltuples, relpages < 5 AS small FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
SELECT twin($$INSERT INTO T SELECT g, g % 20, 'b' || g % 100, CASE WHEN g % 4 = 0 THEN 1 END FROM generate_series(1, 10000) g$$);
ANALYZE l;
ANALYZE h;
SELECT * FROM stats() WHERE log IS DISTINCT FROM heap;
SELECT * FROM stats() WHERE what ~ 'reltuples|n_distinct|null_frac' ORDER BY what;
SELECT relpages = pg_relation_size(oid) / 8192 AS right FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
-- dead rows are not counted
BEGIN;
SELECT twin('INSERT INTO T SELECT g, 1 FROM generate_series(20001, 25000) g');
ROLLBACK;
ANALYZE l;
ANALYZE h;
SELECT reltuples FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
SET pg_sheet.allow_log_delete = on;
SELECT twin('DELETE FROM T WHERE id % 2 = 0');
ANALYZE l;
ANALYZE h;
SELECT reltuples FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
VACUUM l;
VACUUM h;
SELECT reltuples FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass, 'l_pkey'::regclass, 'h_pkey'::regclass);
-- rows of this transaction are counted, those of others in progress are not an error
BEGIN;
SELECT twin('INSERT INTO T SELECT g, 1 FROM generate_series(30001, 35000) g');
ANALYZE l;
ANALYZE h;
SELECT reltuples FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
ROLLBACK;
ANALYZE l;
ANALYZE h;
SELECT reltuples FROM pg_class WHERE oid IN ('l'::regclass, 'h'::regclass);
-- a sample: a table larger than it
SELECT twin('CREATE TABLE T2 (id int, k int) USING AM');
SELECT twin('INSERT INTO T2 SELECT g, g % 50 FROM generate_series(1, 60000) g');
SET default_statistics_target = 10;
ANALYZE l2;
ANALYZE h2;
RESET default_statistics_target;
SELECT reltuples BETWEEN 55000 AND 65000 FROM pg_class WHERE oid IN ('l2'::regclass, 'h2'::regclass);
SELECT n_distinct FROM pg_stats WHERE schemaname = 'am_analyze' AND tablename IN ('l2', 'h2') AND attname = 'k';
SELECT n_distinct < -0.9 FROM pg_stats WHERE schemaname = 'am_analyze' AND tablename IN ('l2', 'h2') AND attname = 'id';
-- expressions, extended statistics, histogram; estimates
CREATE INDEX l_lower ON l (lower(body));
CREATE STATISTICS l_both (ndistinct, dependencies, mcv) ON k, body FROM l;
ANALYZE l;
SELECT n_distinct FROM pg_stats WHERE schemaname = 'am_analyze' AND tablename = 'l_lower';
SELECT count(*) FROM pg_stats_ext WHERE schemaname = 'am_analyze' AND statistics_name = 'l_both' AND n_distinct IS NOT NULL;
CREATE FUNCTION estimate(query text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE j json; BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO j; RETURN j->0->'Plan'->>'Plan Rows'; END $$;
SELECT estimate('SELECT * FROM l WHERE id < 2000') BETWEEN 800 AND 1200 AS range, estimate('SELECT * FROM l WHERE k = 3') BETWEEN 400 AND 600 AS value, estimate('SELECT * FROM l') AS all;
-- a table that was never analyzed is estimated by its size
CREATE TABLE l3 (id int, k int) USING sheetlog WITH (autovacuum_enabled = off);
INSERT INTO l3 SELECT g, g FROM generate_series(1, 50000) g;
SELECT estimate('SELECT * FROM l3') BETWEEN 10000 AND 250000 AS about;
-- the counts of pg_stat
SELECT pg_stat_force_next_flush();
SELECT n_live_tup = 50000, n_tup_ins, n_tup_upd, n_tup_del, n_dead_tup FROM pg_stat_user_tables WHERE relid = 'l3'::regclass;
BEGIN;
INSERT INTO l3 SELECT g, g FROM generate_series(1, 1000) g;
ROLLBACK;
SELECT pg_stat_force_next_flush();
SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'l3'::regclass;
VACUUM (ANALYZE) l3;
SELECT pg_stat_force_next_flush();
SELECT n_live_tup, n_dead_tup, vacuum_count, analyze_count, last_vacuum IS NOT NULL AS vacuumed FROM pg_stat_user_tables WHERE relid = 'l3'::regclass;
SELECT count(*) FROM l3;
SET enable_seqscan = off;
SELECT count(*) FROM l WHERE id BETWEEN 1 AND 9;
RESET enable_seqscan;
SELECT pg_stat_force_next_flush();
SELECT seq_scan > 0 AS scans, seq_tup_read >= 50000 AS read FROM pg_stat_user_tables WHERE relid = 'l3'::regclass;
SELECT idx_scan > 0 AS scans, idx_tup_fetch >= 5 AS fetched FROM pg_stat_user_tables WHERE relid = 'l'::regclass;
SELECT heap_blks_read + heap_blks_hit > 0 AS blocks FROM pg_statio_user_tables WHERE relid = 'l3'::regclass;
DROP SCHEMA am_analyze CASCADE;
