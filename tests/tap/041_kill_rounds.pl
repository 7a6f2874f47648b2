# Rounds of kills against a model. In each, sessions write sheets and a table of their own, in transactions over both, and
# commit, roll back and trim versions, and vacuum, until SIGKILL hits a backend, another process, the whole server, or a session at a stop
# point; or the server stops at once. After it has recovered: every acknowledged transaction is there, each other one as a
# whole or not at all, seqs have no gaps, sheet.fsck and sheet.am_check find nothing, the cells are the replay of the log, and
# indexes give the rows that scans give. Each 15 rounds have every kind of kill.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IPC::Open2;
use List::Util qw(shuffle);
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $writers = 4;
my $rounds = rounds_to_run(15, 150);
my $generation = 12; # rounds after which the sheets are new, so that looking through them stays cheap
seed_random();

my $node = new_server('kill');
$node->append_conf('postgresql.conf', "log_min_messages = fatal\npg_sheet.cache_size = '4MB'");
$node->restart;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE plain (txn text, n integer, round integer, payload text, PRIMARY KEY (txn, n)) USING sheetlog;
CREATE INDEX plain_round ON plain (round);
-- One transaction: the same number of edits in each sheet, rows in the table, and what a subtransaction takes back.
CREATE FUNCTION kill_write(txn text, round integer, sheets bigint[], edits integer, rows integer, long boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE sheet bigint; tail text := CASE WHEN long THEN repeat('x', 2500) ELSE '' END;
BEGIN
	FOREACH sheet IN ARRAY sheets LOOP
		IF edits > 2 THEN
			PERFORM sheet.apply(sheet, (SELECT j_batch(VARIADIC array_agg(j_set((random() * 150)::int, (random() * 30)::int, txn || ':' || i || tail))) FROM generate_series(1, edits) i));
		ELSE
			PERFORM sheet.set(sheet, (random() * 150)::int, (random() * 30)::int, txn || ':' || i || tail) FROM generate_series(1, edits) i;
		END IF;
		BEGIN
			PERFORM sheet.set(sheet, 0, 0, 'never');
			INSERT INTO plain VALUES ('never', 1, round, '');
			RAISE EXCEPTION USING ERRCODE = 'ZZ001';
		EXCEPTION WHEN SQLSTATE 'ZZ001' THEN NULL;
		END;
	END LOOP;
	INSERT INTO plain SELECT txn, i, round, repeat(txn, 1 + (random() * 50)::int) || tail FROM generate_series(1, rows) i;
END $$;
CREATE FUNCTION kill_version(sheet bigint, what text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE version_id bigint := (SELECT v.version_id FROM sheet.versions(sheet) v ORDER BY random() LIMIT 1);
BEGIN
	CASE what
		WHEN 'commit' THEN PERFORM sheet.commit(sheet, 'in the rounds');
		WHEN 'rollback' THEN PERFORM sheet.rollback(sheet, version_id);
		WHEN 'trim' THEN PERFORM sheet.trim(sheet, version_id);
	END CASE;
EXCEPTION WHEN SQLSTATE 'SN001' OR null_value_not_allowed OR undefined_object THEN NULL; -- nothing new, or no such version yet
END $$;
SQL

# ---- the writers ----

# What a session does next: [sql, note of it or nothing].
sub next_work
{
	my ($name, $round, $sheets, $number) = @_;
	my @all = @$sheets;
	my $trimmed = $all[-1];
	my $dice = rand;
	return ["SELECT kill_version($all[rand @all], 'commit')"] if $dice < 0.05;
	return ["SELECT kill_version($all[rand @all], 'rollback')"] if $dice < 0.07;
	return ["SELECT kill_version($trimmed, 'trim')"] if $dice < 0.09;
	return ['VACUUM plain, sheet.log_batch, sheet.segment, sheet.version, sheet.version_tile'] if $dice < 0.1;
	# Sheets in the order of their ids, so that sessions wait for each other and nobody for himself.
	my @some = grep { rand() < 0.4 } @all;
	my ($edits, $rows) = (1 + int rand 8, int rand 6);
	my $txn = "w${name}r${round}t$number";
	my $counted = grep { $_ != $trimmed } @some;
	my $long = rand() < 0.1 ? 'true' : 'false';
	return [ "SELECT kill_write('$txn', $round, ARRAY[" . join(',', @some) . "]::bigint[], $edits, $rows, $long)", "$txn|" . $counted * $edits . "|$rows" ];
}

# Works until the connection breaks. Transactions are noted before they are sent and when they were answered.
sub write_until_broken
{
	my ($connstr, $dir, $name, $round, $sheets, $point) = @_;
	my $pid = open2(my $from, my $to, 'psql', '-XqAt', '-d', $connstr);
	open my $sent, '>', "$dir/$name.sent" or die;
	open my $acked, '>', "$dir/$name.acked" or die;
	$_->autoflush(1) for $to, $sent, $acked;
	$SIG{PIPE} = 'IGNORE';
	print $to "SET pg_sheet.stop_point = '$point';\n" if $point;
	for (my $number = 1; ; $number++)
	{
		my ($sql, $note) = @{ next_work($name, $round, $sheets, $number) };
		print $sent "$note\n" if $note;
		print $to "$sql;\n\\echo END :SQLSTATE\n" or last;
		my $answer;
		1 while defined($answer = <$from>) && $answer !~ /^END/;
		last if !defined $answer;
		print $acked "$note\n" if $note && $answer eq "END 00000\n";
		print $acked "error|$answer" if $answer !~ /^END (|00000|40P01|40001|57P0\d|08\d+)$/; # the end of the connection is no answer
	}
	close $to;
	waitpid $pid, 0;
}

sub start_round
{
	my ($dir, $round, $sheets, @points) = @_;
	my $connstr = $node->connstr('postgres') . ' application_name=writer';
	return start_processes($writers, sub { my ($name) = @_; write_until_broken($connstr, $dir, $name, $round, $sheets, $points[ $name - 1 ]) });
}

# ---- the kills ----

sub children_of
{
	my ($parent) = @_;
	my @children;
	for my $stat (glob '/proc/[0-9]*/stat')
	{
		open my $file, '<', $stat or next;
		my $line = <$file> // next;
		push @children, $1 if $line =~ /^(\d+) \(.*\) \S (\d+)/ && $2 == $parent;
	}
	return @children;
}

sub wait_until_gone
{
	for my $pid (@_)
	{
		for (1 .. 300)
		{
			last if !kill 0, $pid;
			sleep 0.02;
		}
	}
}

sub writer_pids
{
	# The node's psql is fed the query, and may be gone by then.
	my ($out) = run_command([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'} ]);
	return grep { /^\d+$/ } split /\n/, $out;
}

sub kill_backend
{
	my @pids = writer_pids();
	kill 9, $pids[ rand @pids ] if @pids;
}

sub kill_any_child
{
	my @pids = children_of($node->{_pid});
	kill 9, $pids[ rand @pids ] if @pids;
}

sub kill_server
{
	my @pids = ($node->{_pid}, children_of($node->{_pid}));
	kill 9, @pids;
	wait_until_gone(@pids);
	$node->{_pid} = undef;
	$node->start;
}

# Sometimes a checkpoint of PostgreSQL is interrupted, or is where recovery starts.
sub stop_at_once
{
	$node->safe_psql('postgres', 'CHECKPOINT') if rand() < 0.5;
	$node->stop('immediate');
	$node->start;
}

# The points of all layers. Some writers get one, and end there at their n-th passage; when none comes there, a backend is killed.
sub stop_points
{
	my %points;
	for my $file (glob "$FindBin::Bin/../../extension/*/*.c $FindBin::Bin/../../extension/*/*/*.c")
	{
		open my $source, '<', $file or die;
		/STOP_POINT(?:_NO_FAIL)?\("([a-z-]+)"\)/ && $points{$1}++ for <$source>;
	}
	return sort grep { !/^(create|fsck|log|vacuum)-/ } keys %points;
}

my @points = stop_points();
my @points_to_set;

# Each point in its turn; first those of the access method, as 040_crash_cases.pl passes those of the journal.
sub next_point
{
	@points_to_set = ((grep { /^am-/ } shuffle(@points)), (grep { !/^am-/ } shuffle(@points))) if !@points_to_set;
	return shift @points_to_set;
}

my %reached;

sub wait_for_stop_point
{
	my $until = time + 1.5;
	while (time < $until)
	{
		my @pids = writer_pids();
		return 1 if @pids < $writers;
		sleep 0.05;
	}
	kill_backend();
	return 0;
}

# ---- the comparison ----

my %expected_rows = (total => 0);

sub query
{
	my ($sql) = @_;
	return map { [ split /\|/, $_, -1 ] } split /\n/, $node->safe_psql('postgres', $sql);
}

# Of this round: each transaction as a whole or not at all, the acknowledged ones there. Returns what is wrong.
sub check_transactions
{
	my ($dir, $round, @sheets) = @_;
	my (@wrong, %edits, %rows);
	my @counted = @sheets[ 0 .. $#sheets - 1 ];
	$edits{ $_->[0] } += $_->[1] for query("SELECT split_part(new, ':', 1), count(DISTINCT new) FROM sheet.log WHERE kind = 'set'
		AND sheet_id IN (" . join(',', @counted) . ") AND new LIKE 'w%r${round}t%' GROUP BY sheet_id, 1");
	$rows{ $_->[0] } = $_->[1] for query("SELECT txn, count(*) FROM plain WHERE round = $round GROUP BY 1");
	my %acked = map { $_ => 1 } SheetTest::read_notes("$dir/*.acked");
	my ($acknowledged, $others) = (0, 0);
	push @wrong, grep { /^error/ } keys %acked;
	for my $note (SheetTest::read_notes("$dir/*.sent"))
	{
		my ($txn, $want_edits, $want_rows) = split /\|/, $note;
		my ($has_edits, $has_rows) = (delete $edits{$txn} // 0, delete $rows{$txn} // 0);
		my $whole = $has_edits == $want_edits && $has_rows == $want_rows;
		my $nothing = $has_edits == 0 && $has_rows == 0;
		push @wrong, "acknowledged: $note, there: $has_edits edits, $has_rows rows" if $acked{$note} && !$whole;
		push @wrong, "in part: $note, there: $has_edits edits, $has_rows rows" if !$whole && !$nothing;
		$acked{$note} ? $acknowledged++ : $others++;
		$expected_rows{total} += $has_rows;
	}
	push @wrong, map { "never sent: $_" } keys %edits, keys %rows;
	return ($acknowledged, $others, @wrong);
}

# No gaps, fsck, the cells in three ways, indexes and scans, pages.
sub check_storage
{
	my (@sheets) = @_;
	my @wrong;
	my $list = join(',', @sheets);
	my @gaps = query("SELECT sheet_id, first_seq FROM (SELECT b.sheet_id, first_seq, coalesce(lag(last_seq) OVER (PARTITION BY b.sheet_id ORDER BY first_seq),
			(SELECT max(t.seq) FROM sheet.log_trim t WHERE t.sheet_id = b.sheet_id), 0) AS before
		FROM sheet.log_batch b WHERE b.sheet_id IN ($list)) g WHERE first_seq <> before + 1");
	push @wrong, map { "gap in sheet $_->[0] before $_->[1]" } @gaps;
	push @wrong, map { "fsck: @$_" } query("SELECT s, severity, what, place FROM unnest(ARRAY[$list]) s, sheet.fsck(s, true, false) WHERE severity <> 'info'");
	for my $sheet (@sheets)
	{
		my $cached = sheet_state($node, $sheet);
		(my $private = $node->safe_psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE;\n" . SheetTest::state_query($sheet) . ";\nCOMMIT;")) =~ s/\n\z//;
		push @wrong, "sheet $sheet: the cache shows something else than storage" if $cached ne $private;
		push @wrong, "sheet $sheet: the cells are not the replay of the log"
		  if $sheet != $sheets[-1] && $cached ne SheetTest::replay(SheetTest::read_log($node, 'postgres', $sheet));
	}
	return @wrong, check_indexes();
}

sub check_indexes
{
	my @wrong;
	for ([ 'plain', "txn >= ''" ], [ 'plain', 'round >= 0' ], map { [ "sheet.$_", 'sheet_id > 0' ] } qw(log_batch segment version version_tile))
	{
		my ($table, $where) = @$_;
		my $sum = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM $table t WHERE $where";
		my @sums = split /\n/, $node->safe_psql('postgres', "SET enable_seqscan = off; $sum; RESET enable_seqscan; SET enable_indexscan = off; SET enable_bitmapscan = off; $sum");
		push @wrong, "$table: by index $sums[0], by scan $sums[1]" if $sums[0] ne $sums[1];
	}
	push @wrong, map { "am_check: @$_" } query(q{SELECT r, c.* FROM unnest('{plain,sheet.log_batch,sheet.segment,sheet.version,sheet.version_tile}'::regclass[]) r, sheet.am_check(r) c});
	my ($rows, $never) = @{ (query("SELECT count(*), count(*) FILTER (WHERE txn = 'never') FROM plain"))[0] };
	push @wrong, "plain has $rows rows, not $expected_rows{total}" if $rows != $expected_rows{total};
	push @wrong, 'what was taken back is there' if $never > 0;
	return @wrong;
}

# ---- the rounds ----

my @kills = (
	[ 'a backend' => \&kill_backend, 3 ],
	[ 'any process' => \&kill_any_child, 2 ],
	[ 'the server' => \&kill_server, 3 ],
	[ 'stopped at once' => \&stop_at_once, 2 ],
	[ 'at a stop point' => \&wait_for_stop_point, 5 ],
);
my @choice = map { my $kill = $_; ($kill) x $kill->[2] } @kills;
my (@next, %done);
my ($round, $acknowledged, $others, $failed) = (0, 0, 0, 0);
my @sheets;
my $started = time;

sub new_generation
{
	$node->safe_psql('postgres', "SELECT sheet.purge($_)") for @sheets;
	@sheets = map { $node->safe_psql('postgres', "SELECT sheet.create('kill $_', 160, 40)") } 1 .. 4;
}

while ($failed < 3 && $round < $rounds)
{
	@next = shuffle(@choice) if !@next;
	my ($what, $kill) = @{ shift @next };
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my @session_points;
	new_generation() if $round++ % $generation == 0;
	if ($kill == \&wait_for_stop_point)
	{
		push @session_points, join(':', next_point(), rand() < 0.8 ? 'kill' : 'panic', 1 + int rand 6) for 1 .. 2;
	}
	my @pids = start_round($dir, $round, \@sheets, @session_points);
	for (1 .. 200)
	{
		last if @session_points || writer_pids() == $writers;
		sleep 0.01;
	}
	sleep 0.05 + rand 0.4;
	my $reached = $kill->();
	end_writers(@pids);
	wait_until_up($node);
	my ($acked, $unacked, @wrong) = check_transactions($dir, $round, @sheets);
	push @wrong, check_storage(@sheets);
	$acknowledged += $acked;
	$others += $unacked;
	$done{$what}++;
	$reached{ $_ =~ s/:.*//r }++ for $reached && @session_points ? @session_points : ();
	next if !@wrong;
	$failed++;
	fail("round $round, $what @session_points");
	diag join("\n", @wrong[ 0 .. ($#wrong < 9 ? $#wrong : 9) ]);
}
is($failed, 0, "$round rounds: " . join(', ', map { "$_ $done{$_}" } sort keys %done));
note "set when a session ended at a stop point: " . join(', ', map { "$_ $reached{$_}" } sort keys %reached);
note sprintf "%d acknowledged transactions, %d whose end nobody was told, %.0f s", $acknowledged, $others, time - $started;
cmp_ok($acknowledged, '>', 20 * $round, 'enough was written to mean something');
cmp_ok($others, '>', 0, 'transactions were under way at the kills');
$node->stop;
done_testing();
