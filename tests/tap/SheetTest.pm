# What the tests of crashes, standbys and dumps share: a server with the extension, batches for sheet.apply, writers that
# note what was acknowledged, and the comparison of a sheet with its log and with those notes.
package SheetTest;

use strict;
use warnings;
use Exporter 'import';
use FindBin;
use IPC::Open2;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(seed_random new_server batch start_writers wait_until_written end_writers check_sheets sheet_state wait_until_up
  server_life wait_until_next_life new_session cache_is_at_rest install_model start_standby start_processes seconds_to_run rounds_to_run
  start_with_clock step_clock);

# Starts a server whose clock steps: a library in front of the system's adds the seconds of step_clock() to the time of day.
sub start_with_clock
{
	my ($node) = @_;
	my $clock = $node->basedir . '/clock.so';
	system_or_bail('cc', '-shared', '-fPIC', '-O1', '-o', $clock, "$FindBin::Bin/../lib/stepped_clock.c") if !-e $clock;
	step_clock($node, 0) if !-e clock_offset($node);
	local $ENV{LD_PRELOAD} = $clock;
	local $ENV{STEPPED_CLOCK} = clock_offset($node);
	$node->start;
	return;
}

sub clock_offset
{
	my ($node) = @_;
	return $node->basedir . '/offset';
}

sub step_clock
{
	my ($node, $seconds) = @_;
	my $offset = clock_offset($node);
	append_to_file($offset, pack 'q', 0) if !-e $offset;
	open my $file, '+<', $offset or die;
	syswrite $file, pack 'q', $seconds;
	close $file;
	return;
}

# How long a test does what has no end of its own: `short` seconds in make check, `long` in make check-long, TIME if it is set.
sub seconds_to_run
{
	my ($short, $long) = @_;
	return $ENV{TIME} // ($ENV{LONG} ? $long : $short);
}

# How often, with ROUNDS.
sub rounds_to_run
{
	my ($short, $long) = @_;
	return $ENV{ROUNDS} // ($ENV{LONG} ? $long : $short);
}

# Seeds rand() with PG_SHEET_SEED, and returns it. By default the seed is the same in each run, so that the result depends on the
# code alone. With TIME or ROUNDS it is another one each time.
sub seed_random
{
	my $seed = $ENV{PG_SHEET_SEED} // ($ENV{TIME} || $ENV{ROUNDS} ? int(time * 1000) % 1_000_000 : 1);
	note "PG_SHEET_SEED=$seed";
	srand($seed);
	return $seed;
}

# A running server with the extension in its database postgres, durable as in production.
sub new_server
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => $options{streaming} // 0);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_sheet'\nfsync = on\nrestart_after_crash = on\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_sheet');
	load_helpers($node, 'postgres');
	return $node;
}

# A running streaming standby of the node, with these lines in its configuration.
sub start_standby
{
	my ($node, $name, $conf) = @_;
	$node->backup($name);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($node, $name, has_streaming => 1);
	$standby->append_conf('postgresql.auto.conf', $conf) if $conf;
	$standby->start;
	return $standby;
}

# After a crash: until the server takes connections again. (poll_query_until feeds a psql that may be gone.)
sub wait_until_up
{
	my ($node) = @_;
	for (1 .. 600)
	{
		return if system('pg_isready', '-q', '-d', $node->connstr('postgres')) == 0;
		sleep 0.1;
	}
	die 'the server does not come back';
}

# The checkpointer's pid, which is another one after a crash; undef while nobody can connect. (The node's psql is fed the query, and
# may be gone by then.)
sub server_life
{
	my ($node) = @_;
	my ($pid) = run_command([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'} ]);
	return $pid =~ /^\d+$/ ? $pid : undef;
}

# After a crash that the postmaster may not have noticed yet: until there are connections again in a life other than `before`.
sub wait_until_next_life
{
	my ($node, $before) = @_;
	for (1 .. 600)
	{
		my $life = server_life($node);
		return if defined $life && $life != $before;
		sleep 0.05;
	}
	die 'the server does not come back from a crash';
}

# j_decode() and others.
sub load_helpers
{
	my ($node, $database) = @_;
	$node->safe_psql($database, "\\i $FindBin::Bin/../regress/data/journal_helpers.sql");
}

sub varint
{
	my ($number) = @_;
	my $bytes = '';
	while ($number >= 128)
	{
		$bytes .= chr($number % 128 + 128);
		$number = int($number / 128);
	}
	return $bytes . chr($number);
}

# A batch of sets, each [row, col, text] of ASCII; as an SQL literal.
sub batch
{
	my (@edits) = @_;
	my $bytes = "\x01\0\0" . varint(scalar @edits);
	for my $edit (@edits)
	{
		my ($row, $col, $text) = @$edit;
		$bytes .= "\x01" . varint(7) . varint($row) . varint($col) . varint(length $text) . $text;
	}
	return "'\\x" . unpack('H*', $bytes) . "'";
}

# ---- sessions ---------------------------------------------------------------------------------------------------------------

# A psql that is asked one thing at a time, and may be left alone with it. $session->ask(SQL) returns the rows, or "ERROR
# sqlstate" with the message behind it. $session->send(SQL) returns at once, and $session->answer waits for that.
sub new_session
{
	my ($node, %options) = @_;
	my $self = bless { in => '', out => '', err => '' }, 'SheetTest::Session';
	$self->{psql} = IPC::Run::start(
		[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=0', '-v', 'VERBOSITY=verbose', '-d', $node->connstr($options{database} // 'postgres'), $options{role} ? ('-U', $options{role}) : () ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, IPC::Run::timeout(300));
	$self->{pid} = $self->ask('SELECT pg_backend_pid()');
	return $self;
}

sub SheetTest::Session::send
{
	my ($self, $sql) = @_;
	$self->{out} = $self->{err} = '';
	$self->{in} .= "$sql;\n\\echo END\n\\warn END\n";
	$self->{psql}->pump_nb;
}

sub SheetTest::Session::answer
{
	my ($self) = @_;
	$self->{psql}->pump until $self->{out} =~ /^END\n/m && $self->{err} =~ /^END\n/m;
	return "ERROR $1" if $self->{err} =~ /ERROR:\s+(.*)/;
	(my $rows = $self->{out}) =~ s/^END\n//m;
	chomp $rows;
	return $rows;
}

sub SheetTest::Session::ask
{
	my ($self, $sql) = @_;
	$self->send($sql);
	return $self->answer;
}

# The rows; dies when the statement fails.
sub SheetTest::Session::rows
{
	my ($self, $sql) = @_;
	my $rows = $self->ask($sql);
	die "$sql: $rows" if $rows =~ /^ERROR/;
	return $rows;
}

sub SheetTest::Session::end
{
	my ($self) = @_;
	$self->{in} .= "\\q\n";
	$self->{psql}->finish;
}

# ---- writers ----------------------------------------------------------------------------------------------------------------

my $text_no = 0;

# One edit after another through one connection, until it breaks. Each edit is noted in NAME.sent before it is sent and,
# with its seqs, in NAME.acked when it was answered.
sub write_until_broken
{
	my ($connstr, $name, $sheets) = @_;
	my $pid = open2(my $from, my $to, 'psql', '-XqAt', '-d', $connstr, '-v', 'ON_ERROR_STOP=1');
	open my $sent, '>>', "$name.sent" or die;
	open my $acked, '>>', "$name.acked" or die;
	$_->autoflush(1) for $to, $sent, $acked;
	$SIG{PIPE} = 'IGNORE';
	while (1)
	{
		my $sheet = $sheets->[ rand @$sheets ];
		my @edits;
		for (0 .. rand 4)
		{
			# Texts of their own, so that no edit is without effect and each can be told from all others.
			push @edits, [ int rand 80, int rand 20, join('-', $$, time, ++$text_no, 'x' x rand(rand() < 0.05 ? 3000 : 20)) ];
		}
		print $sent map { "$sheet|$_->[0]|$_->[1]|$_->[2]\n" } @edits;
		print $to "SELECT first_seq, last_seq FROM sheet.apply($sheet, ", batch(@edits), ");\n" or last;
		my $answer = <$from> // last;
		my ($first, $last) = $answer =~ /^(\d+)\|(\d+)$/ or last;
		print $acked join("\n", map { my $e = $edits[$_]; $first + $_ . "|$sheet|$e->[0]|$e->[1]|$e->[2]" } 0 .. $#edits) . "\n";
		if ($last - $first != $#edits)
		{
			print $acked "wrong: $first to $last for " . scalar(@edits) . " edits\n";
		}
		if (rand() < 0.02)
		{
			# Another writer may have committed a version just now.
			print $to "DO \$\$ BEGIN PERFORM sheet.commit($sheet); EXCEPTION WHEN SQLSTATE 'SN001' THEN NULL; END \$\$;\nSELECT 1;\n" or last;
			$answer = <$from> // last;
		}
	}
	close $to;
	close $from;
	waitpid $pid, 0;
}

# Runs the code in `count` processes, with their numbers from 1; returns their pids.
sub start_processes
{
	my ($count, $code) = @_;
	my @pids;
	for my $n (1 .. $count)
	{
		my $pid = fork // die;
		if ($pid == 0)
		{
			srand($$ ^ int(time * 1000));
			open STDERR, '>', '/dev/null';
			eval { $code->($n) };
			require POSIX;
			POSIX::_exit(0);
		}
		push @pids, $pid;
	}
	return @pids;
}

# Processes that write at once; their notes are $dir/1.sent and so on.
sub start_writers
{
	my ($node, $dir, $count, @sheets) = @_;
	my $connstr = $node->connstr('postgres') . ' application_name=writer';
	return start_processes($count, sub { write_until_broken($connstr, "$dir/$_[0]", \@sheets) });
}

# Until they have noted so many acknowledged edits more.
sub wait_until_written
{
	my ($dir, $count) = @_;
	my $goal = $count + read_notes("$dir/*.acked");
	for (1 .. 2400)
	{
		return if read_notes("$dir/*.acked") >= $goal;
		sleep 0.05;
	}
	die "the writers have not written $count edits in two minutes";
}

sub end_writers
{
	waitpid $_, 0 for @_;
}

# ---- comparing ----------------------------------------------------------------------------------------------------------------

# The log of a sheet: seq -> [kind, row, col, new].
sub read_log
{
	my ($node, $database, $sheet) = @_;
	my %log;
	my $rows = $node->safe_psql($database, qq{SELECT seq, kind, "row", col, new FROM sheet.log_edits($sheet) ORDER BY seq});
	for my $line (split /\n/, $rows)
	{
		my ($seq, @edit) = split /\|/, $line, -1;
		die "seq $seq twice in sheet $sheet" if $log{$seq};
		$log{$seq} = \@edit;
	}
	return \%log;
}

sub state_query
{
	my ($sheet) = @_;
	return qq{SELECT r.seq || coalesce(E'\\n' || string_agg(d."row" || ',' || d.col || '=' || d.content, E'\\n' ORDER BY d."row", d.col), '')
		FROM sheet.read_cells($sheet) r LEFT JOIN j_decode(r.cells) d ON true GROUP BY r.seq};
}

# The cells as the server shows them, one "row,col=text" a line, behind the seq.
sub sheet_state
{
	my ($node, $sheet, $database) = @_;
	return $node->safe_psql($database // 'postgres', state_query($sheet));
}

# The same, replayed from the log.
sub replay
{
	my ($log) = @_;
	my %cells;
	my $last = 0;
	for my $seq (sort { $a <=> $b } keys %$log)
	{
		my ($kind, $row, $col, $new) = @{ $log->{$seq} };
		$last = $seq;
		$cells{$row}{$col} = $new if $kind eq 'set';
	}
	my @lines = ($last);
	for my $row (sort { $a <=> $b } keys %cells)
	{
		push @lines, map { "$row,$_=$cells{$row}{$_}" } grep { $cells{$row}{$_} ne '' } sort { $a <=> $b } keys %{ $cells{$row} };
	}
	return join("\n", @lines);
}

sub read_notes
{
	my ($glob) = @_;
	my @lines;
	for my $file (glob $glob)
	{
		open my $notes, '<', $file or die;
		push @lines, grep { /\n\z/ } <$notes>;
	}
	chomp @lines;
	return @lines;
}

# The logs have no gaps, hold every acknowledged edit at its seq and nothing that was not sent, and the cells are their
# replay. Returns the number of acknowledged edits.
sub check_sheets
{
	my ($node, $what, $dir, @sheets) = @_;
	my %log = map { $_ => read_log($node, 'postgres', $_) } @sheets;
	my @acked = read_notes("$dir/*.acked");
	my (@lost, @strange, @gaps, @other);
	my %sent = map { $_ => 1 } read_notes("$dir/*.sent");
	for my $line (@acked)
	{
		my ($seq, $sheet, @edit) = split /\|/, $line, -1;
		my $found = defined $sheet ? $log{$sheet}{$seq} : undef;
		push @lost, $line if !$found || join('|', @$found) ne join('|', 'set', @edit);
	}
	for my $sheet (@sheets)
	{
		my $log = $log{$sheet};
		push @gaps, grep { !$log->{$_} } 1 .. keys %$log;
		for my $edit (values %$log)
		{
			push @strange, join('|', $sheet, @$edit) if $edit->[0] eq 'set' && !$sent{ join('|', $sheet, @$edit[ 1 .. 3 ]) };
		}
		push @other, $sheet if sheet_state($node, $sheet) ne replay($log);
	}
	is(scalar @lost, 0, "$what: every acknowledged edit (" . scalar(@acked) . ') is in the log') or diag join("\n", @lost[ 0 .. ($#lost < 5 ? $#lost : 5) ]);
	is(scalar @gaps, 0, "$what: no gap in any log");
	is(scalar @strange, 0, "$what: nothing in the log that was not sent") or diag $strange[0];
	is("@other", '', "$what: the cells are the replay of the log");
	return scalar @acked;
}

# A table that is changed in the transactions that change sheets, so that what a snapshot sees of it is what it must see of them.
sub install_model
{
	my ($node) = @_;
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE model (sheet_id bigint, "row" integer, col integer, content text NOT NULL, PRIMARY KEY (sheet_id, "row", col));
CREATE FUNCTION model_write(sheet bigint, r integer, c integer, content text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sheet.set(sheet, r, c, content);
	INSERT INTO model VALUES (sheet, r, c, content) ON CONFLICT (sheet_id, "row", col) DO UPDATE SET content = excluded.content;
END $$;
-- Cells that differ, in one snapshot, since the functions are STABLE.
CREATE FUNCTION model_differences(sheet bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
	SELECT count(*) FROM (SELECT "row", col, content FROM sheet.range(sheet)) g
		FULL JOIN (SELECT "row", col, content FROM model WHERE sheet_id = sheet) m USING ("row", col)
	WHERE g.content IS DISTINCT FROM m.content
$$;
SQL
}

# Nobody uses a sheet: nothing is held (background workers may still be at it for a moment), and the cache's bytes are those of
# its entries, within the budget.
sub cache_is_at_rest
{
	my ($node, $what) = @_;
	ok($node->poll_query_until('postgres', q{SELECT count(*) FILTER (WHERE pins > 0 OR writing OR loading) = 0 AND coalesce(sum(e.bytes), 0) = max(s.bytes) AND max(s.bytes) <= max(s.budget)
		FROM sheet.cache_stats s LEFT JOIN sheet.cache_entries e ON true}), "$what: nothing is held, and the bytes are those of the entries and within the budget");
}

1;
