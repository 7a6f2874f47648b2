# Sessions that edit, take back, read, version, trash and purge sheets at random, all at once, and hold every read against
# plain tables that the same transactions change (tests/tools/truth_driver.c): with a cache that is too small, with one that
# is large enough, without one; then in rounds that end with SIGKILL for a backend. PG_SHEET_SEED=... has the sessions decide as
# before.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $seconds = seconds_to_run(9, 60) / 3;
my $rounds = rounds_to_run(2, 10);
my $sessions = 6;
my $seed = seed_random();

my $dir = PostgreSQL::Test::Utils::tempdir();
my ($include, $lib) = map { my $option = $_; my $out = `pg_config --$option`; chomp $out; $out } qw(includedir libdir);
command_ok([ 'cc', '-std=gnu11', '-O1', '-g', '-Wall', '-Werror', "-I$include", '-I/usr/include/postgresql', '-o', "$dir/truth_driver",
	"$FindBin::Bin/../tools/truth_driver.c", "-L$lib", '-lpq' ], 'the driver is built');

my $node = new_server('truth');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE model_sheet (sheet_id bigint PRIMARY KEY);
CREATE TABLE model_cell (sheet_id bigint, "row" integer, col integer, content text NOT NULL, PRIMARY KEY (sheet_id, "row", col));
CREATE TABLE model_version (sheet_id bigint, version_id bigint, PRIMARY KEY (sheet_id, version_id));
CREATE TABLE model_version_cell (sheet_id bigint, version_id bigint, "row" integer, col integer, content text NOT NULL);
CREATE INDEX ON model_version_cell (sheet_id, version_id);
INSERT INTO model_sheet SELECT sheet.create('truth ' || n, 100, 26) FROM generate_series(1, 10) n;
-- Rows or columns that come or go, in the sheet and in the model.
CREATE FUNCTION model_move(sheet bigint, kind text, at integer, n integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT sheet.%I($1, $2, $3)', kind) USING sheet, at, n;
	IF kind = 'delete_rows' THEN
		DELETE FROM model_cell WHERE sheet_id = sheet AND "row" >= at AND "row" < at + n;
	ELSIF kind = 'delete_columns' THEN
		DELETE FROM model_cell WHERE sheet_id = sheet AND col >= at AND col < at + n;
	END IF;
	IF kind ~ '^delete' THEN n := -n; END IF;
	-- in two steps, since the key is checked row by row
	IF kind ~ 'rows' THEN
		UPDATE model_cell SET "row" = -1 - ("row" + n) WHERE sheet_id = sheet AND "row" >= at;
		UPDATE model_cell SET "row" = -1 - "row" WHERE sheet_id = sheet AND "row" < 0;
	ELSE
		UPDATE model_cell SET col = -1 - (col + n) WHERE sheet_id = sheet AND col >= at;
		UPDATE model_cell SET col = -1 - col WHERE sheet_id = sheet AND col < 0;
	END IF;
END $$;
-- A cell of each sheet, or version, that is not what the model says.
CREATE FUNCTION model_differences() RETURNS TABLE (sheet_id bigint, "row" integer, col integer, got text, want text) LANGUAGE sql STABLE AS $$
	SELECT s.sheet_id, d.* FROM model_sheet s JOIN sheet.list l USING (sheet_id),
		LATERAL (SELECT "row", col, g.content AS got, m.content AS want FROM (SELECT r."row", r.col, r.content FROM sheet.range(s.sheet_id) r) g
			FULL JOIN (SELECT c."row", c.col, c.content FROM model_cell c WHERE c.sheet_id = s.sheet_id) m USING ("row", col)) d
	WHERE NOT l.trashed AND got IS DISTINCT FROM want
$$;
CREATE FUNCTION model_version_differences() RETURNS TABLE (sheet_id bigint, version_id bigint, "row" integer, col integer, got text, want text) LANGUAGE sql STABLE AS $$
	SELECT v.sheet_id, v.version_id, d.* FROM model_version v JOIN sheet.list l USING (sheet_id),
		LATERAL (SELECT "row", col, g.content AS got, m.content AS want FROM (SELECT r."row", r.col, r.content FROM sheet.at(v.sheet_id, v.version_id) r) g
			FULL JOIN (SELECT c."row", c.col, c.content FROM model_version_cell c WHERE c.sheet_id = v.sheet_id AND c.version_id = v.version_id) m USING ("row", col)) d
	WHERE NOT l.trashed AND got IS DISTINCT FROM want
$$;
SQL

sub restart_with_cache
{
	my ($size) = @_;
	$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '$size'\nfsync = off\npg_sheet.version_edits = 500");
	$node->restart;
}

# The driver's exit code, and the counts of its last line.
sub drive
{
	my ($for, $seed) = @_;
	my ($out, $err);
	IPC::Run::run([ "$dir/truth_driver", $node->connstr('postgres') . ' application_name=truth', $seed, $for, $sessions ], '>', \$out, '2>', \$err);
	my $code = $? >> 8;
	diag $out, $err if $code != 0 && $code != 3;
	my %counts = ($out =~ /\n?([^\n]*)\n\z/)[0] =~ /(\w+)=(\d+)/g;
	return ($code, \%counts);
}

# From the cache, and past it, which SERIALIZABLE reads are.
sub check_state
{
	my ($what) = @_;
	my $found = $node->safe_psql('postgres', 'SELECT * FROM model_differences() LIMIT 5');
	is($found, '', "$what: the sheets are the model's");
	$found = $node->safe_psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT * FROM model_differences() LIMIT 5;\nSELECT * FROM model_version_differences() LIMIT 5;\nCOMMIT");
	is($found, '', "$what: and their logs and versions are");
	is($node->safe_psql('postgres', q{SELECT f.* FROM model_sheet s, sheet.fsck(s.sheet_id, true, false) f WHERE severity <> 'info'}), '', "$what: fsck finds nothing");
	cache_is_at_rest($node, $what);
}

for my $size ('256kB', '16MB', '0')
{
	restart_with_cache($size);
	my $want = { '256kB' => 't|t|t|t', '16MB' => 't|f|t|t', '0' => 'f|f|f|t' }->{$size};
	my ($code, $counts, $used);
	# A slow machine comes to all of it later.
	for my $attempt (1 .. 10)
	{
		($code, my $more) = drive($seconds, $seed++);
		$counts->{$_} += $more->{$_} for keys %$more;
		$used = $node->safe_psql('postgres', 'SELECT hits > 0, evictions > 0, private_old_snapshot > 0, private_own_edits > 0 FROM sheet.cache_stats');
		last if $code != 0 || $used eq $want;
	}
	is($code, 0, "cache of $size: every read was right");
	note join(' ', map { "$_=$counts->{$_}" } sort keys %$counts);
	cmp_ok($counts->{$_}, '>', 0, "cache of $size: $_") for qw(reads edits commits rollbacks_to versions sheets cursors);
	note $node->safe_psql('postgres', 'SELECT * FROM sheet.cache_stats');
	is($used, $want, "cache of $size: the cache was used as it should");
	check_state("cache of $size");
}

# ---- kills ----

restart_with_cache('256kB');
my ($reads, $killed) = (0, 0);
for my $round (1 .. $rounds)
{
	my $life = server_life($node);
	my $killer = fork // die;
	if ($killer == 0)
	{
		# Somebody must be there, and still be there when the signal comes.
		for (1 .. 40)
		{
			sleep 0.3 + rand 1.2;
			my ($pid) = run_command([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'truth' ORDER BY random() LIMIT 1} ]);
			last if $pid =~ /^\d+$/ && kill 9, $pid;
		}
		require POSIX;
		POSIX::_exit(0);
	}
	my ($code, $counts) = drive(30, $seed++);
	waitpid $killer, 0;
	$reads += $counts->{reads};
	$killed++ if $code == 3;
	is($code, 3, "round $round: a backend was killed, and every read was right");
	wait_until_next_life($node, $life) if $code == 3;
	check_state("round $round");
	last if !Test::More->builder->is_passing;
}
note "$rounds rounds, $reads reads";
is($killed, $rounds, 'every round had its kill');
$node->stop;
done_testing();
