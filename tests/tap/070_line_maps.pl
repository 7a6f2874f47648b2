# Rows and columns that are inserted and deleted while others edit and read: in a cache that holds a part of the sheets, each
# read of a window is compared with a plain table that the same transactions keep, and the cache never exceeds its budget;
# versions and rollbacks, kill -9, no cache at all, and a standby that reads.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes ();

my $seconds = seconds_to_run(3, 30);
my $rounds = rounds_to_run(1, 5);
my $sheets = 3;
my ($rows, $cols) = (400, 80);
seed_random();
my $seed = int rand 1_000_000;

my $node = new_server('maps', streaming => 1);
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '160kB'\nfsync = off\nmax_connections = 40\nautovacuum = off\npg_sheet.version_edits = 3000\npg_sheet.version_interval = 0\n");
$node->restart;

$node->safe_psql('postgres', <<"SQL");
CREATE TABLE sheets (n serial PRIMARY KEY, id bigint);
INSERT INTO sheets (id) SELECT sheet.create('maps ' || i, $rows, $cols) FROM generate_series(1, $sheets) i;
CREATE TABLE model (id bigint, r int, c int, content text, PRIMARY KEY (id, r, c)) WITH (fillfactor = 70);
CREATE TABLE old_model (id bigint, version_id bigint, r int, c int, content text);
CREATE INDEX ON old_model (id, version_id);
CREATE FUNCTION sheet_of(i int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT id FROM sheets WHERE n = 1 + i % $sheets';
CREATE FUNCTION put(id bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	r0 int := random() * ($rows - 1); c0 int := random() * ($cols - 1); k int := 1 + random() * random() * 60; batch bytea;
BEGIN
	CREATE TEMP TABLE IF NOT EXISTS e (o int, r int, c int, content text) ON COMMIT DELETE ROWS;
	DELETE FROM e;
	INSERT INTO e SELECT o, least(r0 + random() * 90, $rows - 1), least(c0 + random() * 30, $cols - 1),
		CASE WHEN random() < 0.2 THEN '' ELSE repeat(md5(random()::text), 1 + (random() * random() * 6)::int) END FROM generate_series(1, k) o;
	SELECT '\\x01'::bytea || '\\x0000' || j_varint(k) || string_agg(j_set(r, c, content), '' ORDER BY o) INTO batch FROM e;
	PERFORM sheet.apply(id, batch);
	INSERT INTO model SELECT DISTINCT ON (r, c) put.id, r, c, content FROM e ORDER BY r, c, o DESC
		ON CONFLICT ON CONSTRAINT model_pkey DO UPDATE SET content = excluded.content;
	DELETE FROM model m WHERE m.id = put.id AND m.content = '';
END \$\$;
-- What is inserted or deleted, in the sheet and in the model.
CREATE FUNCTION move(sheet bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	lines boolean := random() < 0.6; come boolean := random() < 0.5; a int; k int := 1 + random() * random() * 12;
BEGIN
	a := CASE WHEN lines THEN random() * ($rows - 13) ELSE random() * ($cols - 13) END;
	IF lines AND come THEN
		PERFORM sheet.insert_rows(sheet, a, k);
		UPDATE model SET r = -1 - (r + k) WHERE id = sheet AND r >= a;
	ELSIF lines THEN
		PERFORM sheet.delete_rows(sheet, a, k);
		DELETE FROM model WHERE id = sheet AND r BETWEEN a AND a + k - 1;
		UPDATE model SET r = -1 - (r - k) WHERE id = sheet AND r >= a;
	ELSIF come THEN
		PERFORM sheet.insert_columns(sheet, a, k);
		UPDATE model SET c = -1 - (c + k) WHERE id = sheet AND c >= a;
	ELSE
		PERFORM sheet.delete_columns(sheet, a, k);
		DELETE FROM model WHERE id = sheet AND c BETWEEN a AND a + k - 1;
		UPDATE model SET c = -1 - (c - k) WHERE id = sheet AND c >= a;
	END IF;
	UPDATE model SET r = greatest(r, -1 - r), c = greatest(c, -1 - c) WHERE id = sheet AND (r < 0 OR c < 0);
END \$\$;
-- A version, and sometimes an old one brought back.
CREATE FUNCTION keep(sheet bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	old bigint; made bigint;
BEGIN
	SELECT version_id INTO old FROM old_model WHERE id = sheet ORDER BY random() LIMIT 1;
	IF old IS NOT NULL AND random() < 0.4 THEN
		made := sheet.rollback(sheet, old);
		DELETE FROM model WHERE id = sheet;
		INSERT INTO model SELECT id, r, c, content FROM old_model WHERE id = sheet AND version_id = old;
	ELSE
		made := sheet.commit(sheet);
	END IF;
	INSERT INTO old_model SELECT id, made, r, c, content FROM model WHERE id = sheet;
EXCEPTION WHEN SQLSTATE 'SN001' THEN NULL;
END \$\$;
-- One transaction: some of each, parts of it taken back, or all.
CREATE FUNCTION edit(id bigint) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM pg_advisory_xact_lock(id); -- the model's rows are locked in other orders than the sheet
	FOR part IN 1 .. 1 + (random() * 3)::int LOOP
	BEGIN
		IF random() < 0.4 THEN PERFORM move(id); ELSIF random() < 0.9 THEN PERFORM put(id); ELSE PERFORM keep(id); END IF;
		IF random() < 0.3 THEN PERFORM move(id); END IF;
		IF random() < 0.2 THEN RAISE EXCEPTION 'taken back'; END IF;
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
	END LOOP;
	IF random() < 0.1 THEN RAISE EXCEPTION 'all taken back' USING ERRCODE = 'T0001'; END IF;
EXCEPTION WHEN SQLSTATE 'T0001' THEN NULL;
END \$\$;
CREATE FUNCTION ref(r int, c int) RETURNS text LANGUAGE sql IMMUTABLE AS \$\$
	SELECT CASE WHEN c >= 26 THEN chr(64 + c / 26) ELSE '' END || chr(65 + c % 26) || r + 1
\$\$;
CREATE FUNCTION differ(id bigint, r0 int, c0 int, r1 int, c1 int) RETURNS bigint LANGUAGE sql VOLATILE AS \$\$
	SELECT count(*) FROM (SELECT "row", col, content FROM sheet.range(id, ref(r0, c0) || ':' || ref(r1, c1)) s) s
		FULL JOIN (SELECT * FROM model m WHERE m.id = differ.id AND r BETWEEN r0 AND r1 AND c BETWEEN c0 AND c1) m
		ON s."row" = m.r AND s.col = m.c
	WHERE s.content IS DISTINCT FROM m.content
\$\$;
CREATE FUNCTION differ(id bigint) RETURNS bigint LANGUAGE sql VOLATILE AS \$\$
	SELECT count(*) FROM (SELECT "row", col, content FROM sheet.range(id) s) s FULL JOIN (SELECT * FROM model m WHERE m.id = differ.id) m
		ON s."row" = m.r AND s.col = m.c WHERE s.content IS DISTINCT FROM m.content
\$\$;
CREATE FUNCTION differ(id bigint, version bigint) RETURNS bigint LANGUAGE sql VOLATILE AS \$\$
	SELECT count(*) FROM (SELECT "row", col, content FROM sheet.at(id, version) s) s
		FULL JOIN (SELECT * FROM old_model m WHERE m.id = differ.id AND m.version_id = version) m
		ON s."row" = m.r AND s.col = m.c WHERE s.content IS DISTINCT FROM m.content
\$\$;
CREATE FUNCTION look(id bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	r0 int := random() * ($rows - 1); c0 int := random() * ($cols - 1); wrong bigint;
BEGIN
	wrong := differ(id, r0, c0, r0 + (random() * 100)::int, c0 + (random() * 30)::int);
	IF wrong > 0 THEN RAISE EXCEPTION '% cells of sheet % at %, % differ', wrong, id, r0, c0; END IF;
END \$\$;
SQL

my %script = (
	edit => "\\set i random(0, 1000)\nSELECT edit(sheet_of(:i));\n",
	look => "\\set i random(0, 1000)\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT look(sheet_of(:i));\nCOMMIT;\n",
	whole => "\\set i random(0, 1000)\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 1 / (differ(sheet_of(:i)) = 0)::int;\nCOMMIT;\n",
	budget => "SELECT 1 / (bytes <= budget)::int FROM sheet.cache_stats;\n");
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/$_.sql", $script{$_}) for keys %script;

sub run_scripts
{
	my ($what, $clients, $for, @scripts) = @_;
	$node->command_ok([ 'pgbench', '-n', '-M', 'simple', '-c', $clients, '-j', 2, '-T', $for, "--random-seed=$seed", (map { ('-f', "$dir/$_") } @scripts),
		'-h', $node->host, '-p', $node->port, 'postgres' ], $what);
}

sub all_is_well
{
	my ($what) = @_;
	is($node->safe_psql('postgres', 'SELECT sum(differ(id)) FROM sheets'), 0, "$what: the sheets are what the model says");
	is($node->safe_psql('postgres', 'SELECT coalesce(sum(differ(id, version_id)), 0) FROM (SELECT DISTINCT id, version_id FROM old_model) v'), 0, "$what: so are the versions");
	is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT f.severity || ' ' || f.what, ', ') FROM sheets, sheet.fsck(id, true) f}), 'info clean', "$what: fsck finds nothing");
}

# However slow the machine is: until lines have moved, and tiles have come and gone.
for (1 .. 10)
{
	run_scripts('inserts, deletions, edits and readers of windows at once', 8, $seconds, 'edit.sql@2', 'look.sql@6', 'whole.sql@1', 'budget.sql@2');
	last if $node->safe_psql('postgres', q{SELECT evictions > 20 AND hits > 50 AND (SELECT count(*) FROM sheet.log WHERE kind ~ 'insert|delete') > 50 FROM sheet.cache_stats}) eq 't';
}
all_is_well('a cache that is too small');
note $node->safe_psql('postgres', q{SELECT kind, count(*) FROM sheet.log GROUP BY 1}), "\n", $node->safe_psql('postgres', 'SELECT s FROM sheet.cache_stats s');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM sheet.log WHERE kind ~ 'insert|delete'}), '>', 50, 'rows and columns have moved');
cmp_ok($node->safe_psql('postgres', 'SELECT evictions FROM sheet.cache_stats'), '>', 20, 'tiles were taken out');
cmp_ok($node->safe_psql('postgres', 'SELECT hits FROM sheet.cache_stats'), '>', 50, 'reads were served from the cache');
cache_is_at_rest($node, 'then');

for my $round (1 .. $rounds)
{
	my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', 6, '-j', 2, '-T', 20, '-f', "$dir/edit.sql", '-f', "$dir/look.sql", '-h', $node->host, '-p', $node->port,
		'postgres' ], '>', '/dev/null', '2>', '/dev/null');
	Time::HiRes::sleep(0.5 + rand 1);
	my $life = server_life($node);
	for (1 .. 200)
	{
		my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query LIKE '%sheet_of%' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1");
		last if $pid && kill 'KILL', $pid;
		Time::HiRes::sleep(0.05);
	}
	wait_until_next_life($node, $life);
	eval { $pgbench->finish };
	all_is_well("round $round, after kill -9 of a backend");
}

# A standby reads what the primary has, and the versions that are lost are rebuilt from the log alone.
my $standby = start_standby($node, 'line_maps_standby');
$node->safe_psql('postgres', 'SELECT move(id), put(id), move(id) FROM sheets');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT sum(differ(id)) FROM sheets'), 0, 'a standby shows the sheets as the model says');
$standby->stop;

my $stored = q{SELECT md5(string_agg(c::text, E'\n' ORDER BY sheet_id, version_id)), count(*) FILTER (WHERE line_maps IS NOT NULL) > 3,
	(SELECT md5(string_agg(t::text, E'\n' ORDER BY sheet_id, tile_row, tile_col, version_id)) FROM sheet.version_tile t) FROM sheet.version c};
my $before = $node->safe_psql('postgres', $stored);
like($before, qr/\|t\|/, 'versions have maps');
$node->safe_psql('postgres', 'SET pg_sheet.allow_log_delete = on; DELETE FROM sheet.version_tile; DELETE FROM sheet.version');
like($node->safe_psql('postgres', 'SELECT DISTINCT repaired FROM sheet.fsck(NULL, true)'), qr/t/, 'versions that are lost are rebuilt');
is($node->safe_psql('postgres', $stored), $before, 'from the log alone, byte for byte');
all_is_well('rebuilt');

for my $size ('16MB', 0)
{
	$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '$size'\n");
	$node->restart;
	run_scripts("with a cache of $size", 6, $seconds, 'edit.sql@2', 'look.sql@4', 'whole.sql@1');
	all_is_well("a cache of $size");
}

$node->stop;
done_testing();
