# The same random statements on a table that uses sheetlog and on one that uses heap, in several sessions with transactions,
# savepoints, aborts, cursors and old snapshots: the same answers, by every way of reading.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Thousands of statements: their texts are in the server's log.
{
	no warnings 'redefine';
	*PostgreSQL::Test::BackgroundPsql::note = sub { };
}

seed_random();
my $seconds = seconds_to_run(8, 60);
my $node = new_server('model');
$node->append_conf('postgresql.conf', "autovacuum = off\nmin_parallel_table_scan_size = 0\nparallel_setup_cost = 0\nmaintenance_work_mem = 1MB\n");
$node->restart;

my $columns = '(id bigint, k int, at timestamptz, f float8, n numeric, body text, u uuid, flags bool, s smallint, i interval)';
for my $table (['l', 'sheetlog'], ['h', 'heap'])
{
	my ($name, $am) = @$table;
	$node->safe_psql('postgres', <<~SQL);
		CREATE TABLE $name $columns USING $am;
		CREATE UNIQUE INDEX ${name}_id ON $name (id);
		CREATE INDEX ${name}_k ON $name (k) INCLUDE (id);
		CREATE INDEX ${name}_at ON $name USING brin (at);
		CREATE INDEX ${name}_s ON $name USING hash (s);
		SQL
}

# What a snapshot sees, by several ways; the same text for both tables.
my @ways = (
	['a scan', 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0', 'true'],
	['parallel workers', 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 2', 'true'],
	['the primary index', 'SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = off', 'id BETWEEN 0 AND 1000000000'],
	['bitmaps', "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on; SET work_mem = '64kB'", 'k BETWEEN 3 AND 12 OR k > 15'],
	['a hash index', 'SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = on', 's = 7'],
	['block ranges', 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on', q{at > '2000-01-01'}],
);

sub answer
{
	my ($table, $where) = @_;
	return "(SELECT count(*) || ' ' || coalesce(sum(hashtextextended($table\::text, 0) % 1000003), 0) FROM $table WHERE $where)";
}

my ($checks, $statements, $refused) = (0, 0, 0);
my @history;

sub compare
{
	my ($session) = @_;
	my ($name, $settings, $where) = @{ $ways[ rand @ways ] };
	my $psql = $session->{psql};
	$psql->query_safe($settings);
	my $result = $psql->query_safe('SELECT ' . answer('l', $where) . ' = ' . answer('h', $where));
	$checks++;
	return 1 if $result eq 't';
	fail("session $session->{name}, by $name: " . $psql->query_safe('SELECT ' . answer('l', $where) . q{ || ' against ' || } . answer('h', $where)));
	diag join "\n", @history[ ($#history > 40 ? $#history - 40 : 0) .. $#history ];
	return 0;
}

my $next_id = 1;

# A statement with T for the table, run on both. A page of a log keeps the deletions of six transactions that somebody may not see
# yet: what is refused for that reason is not done on the other table, either.
sub on_both
{
	my ($session, $sql) = @_;
	push @history, "$session->{name}: $sql";
	$statements++;
	for my $table ('l', 'h')
	{
		(my $statement = $sql) =~ s/\bT\b/$table/g;
		my ($answer, $failed) = $session->{psql}->query($statement);
		next unless $failed;
		my $error = $session->{psql}->{stderr};
		$session->{psql}->{stderr} = '';
		die "$statement: $error" unless $table eq 'l' && $error =~ /too many transactions delete/;
		push @history, "$session->{name}: refused";
		$refused++;
		$session->{psql}->query_safe('ROLLBACK') if $session->{open};
		$session->{open} = $session->{saved} = $session->{cursor} = 0;
		return;
	}
}

# When a page has no room for one more deletion, two commands' of one transaction become one, and its cursors from in between
# see again what the first had deleted (docs/design/log.md). `gone`: the ids that the transaction has deleted; `again`: those of
# them that its cursor may see, since there has been a deletion after it.
sub delete_on_both
{
	my ($session, $where) = @_;
	$where = "id % 3 = $session->{name} AND $where";
	if ($session->{cursor})
	{
		$session->{again} = $session->{gone};
	}
	else
	{
		$session->{gone}{$_} = 1 for split /\n/, $session->{psql}->query_safe("SELECT id FROM h WHERE $where");
	}
	on_both($session, "DELETE FROM T WHERE $where");
}

sub values_of
{
	my ($from, $n, $long) = @_;
	my $to = $from + $n - 1;
	my $body = $long ? "repeat(md5(g::text), 1 + (g * 37 % $long)::int)" : 'left(md5(g::text), (g % 20)::int)';
	my $seed = int rand 1000;
	return "SELECT g, (g * 7 % 20)::int, '2026-01-01'::timestamptz + g * interval '1 second', g / 3.0, CASE WHEN g % 5 = 0 THEN NULL ELSE g * 1.1 END, "
	  . "CASE WHEN g % 11 = 0 THEN NULL ELSE $body END, md5((g + $seed)::text)::uuid, g % 2 = 0, (g % 13)::smallint, g * interval '1 minute' FROM generate_series($from, $to) g";
}

my %operations = (
	insert => [30, sub { my ($s) = @_; my $n = 1 + int rand 60; on_both($s, 'INSERT INTO T ' . values_of($next_id, $n, 0)); $next_id += $n }],
	insert_many => [4, sub { my ($s) = @_; my $n = 200 + int rand 800; on_both($s, 'INSERT INTO T ' . values_of($next_id, $n, 0)); $next_id += $n }],
	insert_long => [6, sub { my ($s) = @_; my $n = 1 + int rand 5; on_both($s, 'INSERT INTO T ' . values_of($next_id, $n, 1 + int rand 2000)); $next_id += $n }],
	conflict => [6, sub { my ($s) = @_; my $from = 3 * int(rand($next_id / 3)) + $s->{name}; on_both($s, "INSERT INTO T SELECT * FROM T WHERE id = $from ON CONFLICT DO NOTHING") }],
	itself => [2, sub { my ($s) = @_; my $n = int rand 5; on_both($s, "INSERT INTO T SELECT id + 100000000 * (1 + $s->{name}) + $next_id * 1000, k, at, f, n, body, u, flags, s, i FROM T WHERE id % 97 = $n AND id < 100000000"); $next_id++ }],
	delete => [8, sub { my ($s) = @_; my $m = 3 + int rand 9; delete_on_both($s, "id / 3 % $m = 0") }],
	delete_range => [3, sub { my ($s) = @_; my $from = int rand $next_id; delete_on_both($s, "id BETWEEN $from AND $from + 300") }],
	begin => [14, sub {
		my ($s) = @_;
		return if $s->{open};
		my $level = ('READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ')[ rand 3 ];
		$s->{psql}->query_safe("BEGIN ISOLATION LEVEL $level");
		push @history, "$s->{name}: BEGIN $level";
		$s->{level} = $level;
		$s->{open} = 1;
		$s->{gone} = {};
	}],
	savepoint => [8, sub { my ($s) = @_; return unless $s->{open}; $s->{psql}->query_safe('SAVEPOINT p'); $s->{saved}++; push @history, "$s->{name}: SAVEPOINT" }],
	rollback_to => [6, sub { my ($s) = @_; return unless $s->{saved}; $s->{psql}->query_safe('ROLLBACK TO p'); push @history, "$s->{name}: ROLLBACK TO" }],
	release => [3, sub { my ($s) = @_; return unless $s->{saved}; $s->{psql}->query_safe('RELEASE p'); $s->{saved}--; push @history, "$s->{name}: RELEASE" }],
	commit => [9, sub { my ($s) = @_; finish($s, 'COMMIT') }],
	rollback => [6, sub { my ($s) = @_; finish($s, 'ROLLBACK') }],
	vacuum => [5, sub { my ($s) = @_; my $how = ('', '(FREEZE)', '(DISABLE_PAGE_SKIPPING)', '(INDEX_CLEANUP OFF)', '(FREEZE)')[ rand 5 ]; push @history, "VACUUM $how"; $node->safe_psql('postgres', "VACUUM $how l; VACUUM h") }],
	analyze => [1, sub { $node->safe_psql('postgres', 'ANALYZE l; ANALYZE h') }],
);

sub finish
{
	my ($session, $how) = @_;
	return unless $session->{open};
	if ($session->{cursor})
	{
		my @rows = map { $session->{psql}->query_safe("FETCH ALL FROM c$_") } 'l', 'h';
		my %expected = map { $_ => 1 } split /\n/, $rows[1];
		my @got = grep { $expected{$_} || !$session->{again}{ (split /\|/)[0] } } split /\n/, $rows[0];
		is(join("\n", @got), $rows[1], 'a cursor sees what it saw') if join("\n", @got) ne $rows[1];
		$session->{cursor} = 0;
	}
	$session->{psql}->query_safe($how);
	push @history, "$session->{name}: $how";
	$session->{open} = $session->{saved} = 0;
}

my @wheel = map { ($_) x $operations{$_}[0] } sort keys %operations;
my @sessions = map { { name => $_, psql => $node->background_psql('postgres', on_error_stop => 0), open => 0, saved => 0, cursor => 0, gone => {}, again => {} } } 0 .. 2;
$_->{psql}->query_safe('SET pg_sheet.allow_log_delete = on') for @sessions;

my $end = time + $seconds;
my $sound = 1;
# On a busy machine, the time alone would permit only a few comparisons.
while ((time < $end || $checks <= 20) && $sound)
{
	my $session = $sessions[ rand @sessions ];
	$operations{ $wheel[ rand @wheel ] }[1]->($session);
	if ($session->{open} && !$session->{saved} && !$session->{cursor} && rand() < 0.05)
	{
		$session->{psql}->query_safe("DECLARE c$_ CURSOR FOR SELECT id, body FROM $_ WHERE id % 5 = 1 ORDER BY id") for 'l', 'h';
		$session->{cursor} = 1;
		$session->{again} = {};
	}
	$sound = compare($session) if rand() < 0.5;
	if (rand() < 0.01)
	{
		my $damage = $node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('l') LIMIT 5});
		$sound &&= is($damage, '', 'am_check') if $damage ne '';
	}
}
finish($_, 'COMMIT') for @sessions;
if ($sound)
{
	for my $way (@ways)
	{
		is($node->safe_psql('postgres', "$way->[1]; SELECT " . answer('l', $way->[2])), $node->safe_psql('postgres', "$way->[1]; SELECT " . answer('h', $way->[2])), "in the end, by $way->[0]");
	}
	is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('l')}), '', 'am_check finds nothing');
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT ' . answer('l', 'true')), $node->safe_psql('postgres', 'SELECT ' . answer('h', 'true')), 'after an immediate stop');
	$node->safe_psql('postgres', 'VACUUM FULL l; VACUUM FULL h');
	is($node->safe_psql('postgres', 'SELECT ' . answer('l', 'true')), $node->safe_psql('postgres', 'SELECT ' . answer('h', 'true')), 'after VACUUM FULL');
	is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('l')}), '', 'am_check finds nothing then');
	$node->safe_psql('postgres', 'ALTER TABLE l SET ACCESS METHOD heap');
	is($node->safe_psql('postgres', 'SELECT ' . answer('l', 'true')), $node->safe_psql('postgres', 'SELECT ' . answer('h', 'true')), 'as a heap table');
}
$_->{psql}->quit for @sessions;
note "$statements statements, $refused of them refused, $checks comparisons";
cmp_ok($checks, '>', 20, 'the comparisons were made');
$node->stop;
done_testing();
