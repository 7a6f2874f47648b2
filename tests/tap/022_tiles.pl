# Sheets of many tiles in a cache that holds a part of them: editors and readers at once, each read of a window compared
# with a plain table that the same transactions keep; then the order in which tiles leave, and what a small window of a large
# cold sheet loads.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes ();

my $seconds = $ENV{PG_SHEET_MODEL_SECONDS} // 8;
my $sheets = 3;
my ($rows, $cols) = (640, 160); # 100 tiles
seed_random();
my $seed = int rand 1_000_000;

my $node = new_server('tiles');
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '6MB'\nmax_connections = 40\nautovacuum = off\n");
$node->restart;

$node->safe_psql('postgres', <<"SQL");
CREATE TABLE sheets (n serial PRIMARY KEY, id bigint);
CREATE FUNCTION start(i int, r int, c int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT md5(r || ''-'' || c || ''-'' || i)';
INSERT INTO sheets (id) SELECT sheet.import_csv('tiles ' || i, string_agg(line, E'\n' ORDER BY r) || E'\n') FROM generate_series(1, $sheets) i,
	LATERAL (SELECT r, string_agg(start(i, r, c), ',' ORDER BY c) AS line FROM generate_series(0, $rows - 1) r, generate_series(0, $cols - 1) c GROUP BY r) l GROUP BY i ORDER BY i;
CREATE TABLE model (id bigint, r int, c int, content text, PRIMARY KEY (id, r, c)) WITH (fillfactor = 70);
INSERT INTO model SELECT id, r, c, start(n, r, c) FROM sheets, generate_series(0, $rows - 1) r, generate_series(0, $cols - 1) c;
ANALYZE model;
CREATE FUNCTION sheet_of(i int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT id FROM sheets WHERE n = 1 + i % $sheets';
-- Edits near one place, and the model's. Some are taken back, in part or altogether.
CREATE FUNCTION edit(id bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	r0 int := random() * ($rows - 1); c0 int := random() * ($cols - 1); k int := 1 + random() * random() * 60;
	batch bytea; part int;
BEGIN
	FOR part IN 1 .. 1 + (random() * 2)::int LOOP
	BEGIN
		CREATE TEMP TABLE IF NOT EXISTS e (o int, r int, c int, content text) ON COMMIT DELETE ROWS;
		TRUNCATE e;
		INSERT INTO e SELECT o, least(r0 + random() * 90, $rows - 1), least(c0 + random() * 30, $cols - 1),
			CASE WHEN random() < 0.2 THEN '' ELSE repeat(md5(random()::text), 1 + (random() * random() * 6)::int) END
			FROM generate_series(1, k) o;
		SELECT '\\x01'::bytea || '\\x0000' || j_varint(k) || string_agg(j_set(r, c, content), '' ORDER BY o) INTO batch FROM e;
		PERFORM sheet.apply(id, batch);
		INSERT INTO model SELECT DISTINCT ON (r, c) edit.id, r, c, content FROM e ORDER BY r, c, o DESC
			ON CONFLICT ON CONSTRAINT model_pkey DO UPDATE SET content = excluded.content;
		IF random() < 0.2 THEN RAISE EXCEPTION 'taken back'; END IF;
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
	END LOOP;
	IF random() < 0.05 THEN PERFORM sheet.commit(id); END IF;
	IF random() < 0.1 THEN RAISE EXCEPTION 'all taken back' USING ERRCODE = 'T0001'; END IF;
EXCEPTION WHEN SQLSTATE 'T0001' OR SQLSTATE 'SN001' THEN NULL;
END \$\$;
CREATE FUNCTION ref(r int, c int) RETURNS text LANGUAGE sql IMMUTABLE AS \$\$
	SELECT CASE WHEN c >= 26 THEN chr(64 + c / 26) ELSE '' END || chr(65 + c % 26) || r + 1
\$\$;
-- Cells of a window that differ from the model's; both are seen with the snapshot of one statement.
CREATE FUNCTION differ(id bigint, r0 int, c0 int, r1 int, c1 int) RETURNS bigint LANGUAGE sql VOLATILE AS \$\$
	SELECT count(*) FROM (SELECT "row", col, content FROM sheet.range(id, ref(r0, c0) || ':' || ref(r1, c1)) s) s
		FULL JOIN (SELECT * FROM model m WHERE m.id = differ.id AND r BETWEEN r0 AND r1 AND c BETWEEN c0 AND c1 AND m.content <> '') m
		ON s."row" = m.r AND s.col = m.c
	WHERE s.content IS DISTINCT FROM m.content
\$\$;
CREATE FUNCTION look(id bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	r0 int := random() * ($rows - 1); c0 int := random() * ($cols - 1); wrong bigint;
BEGIN
	wrong := differ(id, r0, c0, least(r0 + (random() * 100)::int, $rows - 1), least(c0 + (random() * 30)::int, $cols - 1));
	IF wrong > 0 THEN RAISE EXCEPTION '% cells of sheet % at %, % differ', wrong, id, r0, c0; END IF;
END \$\$;
CREATE FUNCTION budget_kept() RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	IF EXISTS (SELECT FROM sheet.cache_stats WHERE bytes > budget) THEN RAISE EXCEPTION 'the cache is beyond its budget'; END IF;
END \$\$;
SQL

my %script = (
	edit => "\\set i random(0, 1000)\nSELECT edit(sheet_of(:i));\n",
	look => "\\set i random(0, 1000)\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT look(sheet_of(:i));\nCOMMIT;\n",
	whole => "\\set i random(0, 1000)\nBEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 1 / (differ(sheet_of(:i), 0, 0, $rows - 1, $cols - 1) = 0)::int;\nCOMMIT;\n",
	budget => "SELECT budget_kept();\n");
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/$_.sql", $script{$_}) for keys %script;

# All at once; pgbench fails when any statement does.
sub run_scripts
{
	my ($what, $clients, $for, @scripts) = @_;
	$node->command_ok([ 'pgbench', '-n', '-M', 'simple', '-c', $clients, '-j', 2, '-T', $for, "--random-seed=$seed", (map { ('-f', "$dir/$_") } @scripts),
		'-h', $node->host, '-p', $node->port, 'postgres' ], $what);
}

sub differences
{
	return $node->safe_psql('postgres', "SELECT sum(differ(id, 0, 0, $rows - 1, $cols - 1)) FROM sheets");
}

sub stat_of
{
	my ($column) = @_;
	return $node->safe_psql('postgres', "SELECT $column FROM sheet.cache_stats");
}

run_scripts('editors alone', 4, 3, 'edit.sql@1');
is(differences(), 0, 'the sheets are what the model says');
# However slow the machine is: until tiles have come and gone.
for (1 .. 10)
{
	run_scripts('editors and readers of windows at once', 8, $seconds, 'edit.sql@2', 'look.sql@10', 'budget.sql@2');
	last if stat_of('evictions > 200 AND hits > 50') eq 't';
}
is(differences(), 0, 'the sheets are what the model says after that');
cmp_ok(stat_of('evictions'), '>', 200, 'tiles were taken out');
cmp_ok(stat_of('hits'), '>', 50, 'reads were served from the cache');
run_scripts('with readers of whole sheets', 3, 3, 'edit.sql', 'whole.sql');
is(differences(), 0, 'the sheets are what the model says then, too');
is($node->safe_psql('postgres', 'SELECT sum(e.bytes) = max(s.bytes) FROM sheet.cache_entries e, sheet.cache_stats s'), 't', 'the bytes are those of the entries');
is($node->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_entries WHERE pins > 0 OR writing OR loading'), 0, 'nothing stays pinned');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT f.severity || ' ' || f.what, ', ') FROM sheets, sheet.fsck(id, true) f}), 'info clean', 'fsck finds nothing');

# A crash in the middle leaves nothing wrong behind.
for my $round (1 .. 3)
{
	my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', 6, '-j', 2, '-T', 20, '-f', "$dir/edit.sql", '-f', "$dir/look.sql", '-h', $node->host, '-p', $node->port,
		'postgres' ], '>', '/dev/null', '2>', '/dev/null');
	Time::HiRes::sleep(0.5 + rand 1);
	my $life = server_life($node);
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query LIKE '%sheet_of%' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1");
	kill 'KILL', $pid if $pid;
	wait_until_next_life($node, $life);
	eval { $pgbench->finish };
	is(differences(), 0, "round $round: after kill -9 of a backend the sheets are what the model says");
}

$node->stop;
done_testing();
