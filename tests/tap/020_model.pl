# Random edits, savepoints, aborts, commits, versions and reads in several sessions, on a cache that is too small for all
# sheets, compared step by step with a model in Perl. Sessions that do this at once are tested in 061_truth_random.pl.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use Test::More;
use Time::HiRes qw(time);

my $seed = seed_random();
my $seconds = seconds_to_run(4, 30);

my $node = new_server('model');
$node->append_conf('postgresql.conf', <<'CONF');
pg_sheet.cache_size = '512kB'
pg_sheet.max_cached_sheets = 16
max_connections = 30
fsync = off
CONF
$node->restart;

# ---- the model ------------------------------------------------------------------------------------------------------------

my $sheets = 12;
my ($rows, $cols) = (60, 20);
my %id;          # number of the sheet -> its id
my %state;       # number -> { seq, cells => { "r,c" => text }, version => [ copies of cells ], dirty }
my %writer;      # number -> the session that has edited it
# stack: overlays of the open transaction, one for each savepoint
my @sessions = map { my $session = new_session($node); @$session{qw(name stack isolation snapshot)} = ("s$_", [], undef, undef); $session } 1 .. 5;

for my $n (1 .. $sheets)
{
	$id{$n} = $sessions[0]->ask("SELECT sheet.create('model $n', $rows, $cols)");
	$state{$n} = { seq => 1, cells => {}, versions => [], changed => 1 };
}

sub copy_state
{
	my ($s) = @_;
	return { seq => $s->{seq}, cells => { %{ $s->{cells} } }, versions => [ @{ $s->{versions} } ], changed => $s->{changed} };
}

# What the session sees of sheet n, to be altered: the newest overlay gets a copy.
sub overlay
{
	my ($session, $n) = @_;
	my $top = $session->{stack}[-1];
	return $top->{$n} //= copy_state(visible($session, $n));
}

# Its own edits, else what its snapshot or everybody sees.
sub visible
{
	my ($session, $n) = @_;
	for my $level (reverse @{ $session->{stack} })
	{
		return $level->{$n} if $level->{$n};
	}
	return $session->{snapshot}{$n} if $session->{snapshot};
	return $state{$n};
}

sub as_text
{
	my ($s) = @_;
	my @cells = sort grep { $s->{cells}{$_} ne '' } keys %{ $s->{cells} };
	return join("\n", $s->{seq}, map { "$_=$s->{cells}{$_}" } @cells);
}

sub read_sheet
{
	my ($session, $n) = @_;
	my $got = $session->ask(qq{SELECT r.seq || coalesce(E'\\n' || string_agg(d."row" || ',' || d.col || '=' || d.content, E'\\n' ORDER BY (d."row" || ',' || d.col) COLLATE "C"), '')
		FROM sheet.read_cells($id{$n}) r LEFT JOIN j_decode(r.cells) d ON true GROUP BY r.seq});
	return $got;
}

my @log; # what was done, for the failure's report
my $failed = 0;

# The seqs, and the cells that differ, shortened.
sub differences
{
	my ($want, $got) = @_;
	my ($want_seq, @want) = split /\n/, $want;
	my ($got_seq, @got) = split /\n/, $got;
	my %want = map { $_ => 1 } @want;
	my %got = map { $_ => 1 } @got;
	my @lines = map { "< $_" } grep { !$got{$_} } @want;
	push @lines, map { "> $_" } grep { !$want{$_} } @got;
	return join("\n", "seq $want_seq, $got_seq", map { substr($_, 0, 60) . (length > 60 ? '... ' . length : '') } @lines);
}

sub check
{
	my ($session, $n, $what) = @_;
	my $want = as_text(visible($session, $n));
	my $got = read_sheet($session, $n);
	return if $got eq $want;
	$failed = 1;
	diag "seed $seed: $session->{name} sees sheet $n otherwise ($what), < is the model, > the database:";
	diag differences($want, $got);
	diag "read again, it sees " . (read_sheet($session, $n) eq $want ? 'what it should' : 'the same or something else that is wrong');
	diag join("\n", 'last steps:', @log > 40 ? @log[ -40 .. -1 ] : @log);
}

sub random_text
{
	my $kind = rand;
	return '' if $kind < 0.15;
	return join('', map { chr(97 + rand 26) } 1 .. rand 8) if $kind < 0.9;
	return chr(97 + rand 26) x (200 + rand 3000);
}

sub in_transaction { return scalar @{ $_[0]->{stack} } }

# An edit needs a sheet that no other session is editing (it would wait).
sub free_sheet
{
	my ($session) = @_;
	my @free = grep { !$writer{$_} || $writer{$_} == $session } 1 .. $sheets;
	return @free ? $free[ rand @free ] : undef;
}

# In REPEATABLE READ an edit of what has changed since the snapshot fails.
sub outdated
{
	my ($session, $n) = @_;
	return 0 if !$session->{snapshot} || ($writer{$n} // 0) == $session;
	return $session->{snapshot}{$n}{seq} != $state{$n}{seq};
}

sub fail_transaction
{
	my ($session) = @_;
	$session->ask('ROLLBACK');
	finish_transaction($session, 0);
}

sub finish_transaction
{
	my ($session, $commit) = @_;
	if ($commit)
	{
		my %all = map { %$_ } @{ $session->{stack} };
		$state{$_} = $all{$_} for keys %all;
	}
	$session->{stack} = [];
	$session->{snapshot} = undef;
	for my $n (keys %writer)
	{
		delete $writer{$n} if $writer{$n} == $session;
	}
}

sub step_apply
{
	my ($session) = @_;
	my $n = free_sheet($session) // return;
	my $alone = !in_transaction($session);
	my (@sql, %cells);
	my $view = visible($session, $n);
	my ($seq, %now) = ($view->{seq}, %{ $view->{cells} });
	for (1 .. 1 + rand(rand() < 0.2 ? 60 : 3))
	{
		my ($r, $c, $text) = (int rand $rows, int rand $cols, random_text());
		push @sql, "j_set($r, $c, '$text')";
		next if ($now{"$r,$c"} // '') eq $text;
		$seq++;
		$now{"$r,$c"} = $text;
	}
	my $got = $session->ask("SELECT last_seq FROM sheet.apply($id{$n}, j_batch(" . join(', ', @sql) . '))');
	if (outdated($session, $n))
	{
		$failed = 1, diag "expected 40001, got $got" if $got !~ /^ERROR 40001/;
		return fail_transaction($session);
	}
	$failed = 1, diag "apply to $n: want $seq, got $got" if $got ne $seq;
	$session->{stack} = [ {} ] if $alone;
	my $new = overlay($session, $n);
	$new->{changed} = 1 if $seq != $new->{seq};
	@$new{qw(seq cells)} = ($seq, \%now);
	$writer{$n} = $session;
	finish_transaction($session, 1) if $alone;
	push @log, "$session->{name} apply $n -> $seq";
}

sub step_version
{
	my ($session) = @_;
	my $n = free_sheet($session) // return;
	return if outdated($session, $n);
	my $alone = !in_transaction($session);
	my $view = copy_state(visible($session, $n));
	my $back = @{ $view->{versions} } && rand() < 0.4 ? 1 + int rand @{ $view->{versions} } : 0;
	my $got = $session->ask($back ? "SELECT sheet.rollback($id{$n}, $back)" : "SELECT sheet.commit($id{$n})");
	if (!$back && !$view->{changed})
	{
		$failed = 1, diag "expected SN001, got $got" if $got !~ /^ERROR SN001/;
		return $alone ? undef : fail_transaction($session);
	}
	my $version_id = @{ $view->{versions} } + 1;
	$failed = 1, diag "version of $n: want $version_id, got $got" if $got ne $version_id;
	$view->{seq}++;
	if ($back)
	{
		my ($then, $now) = ($view->{versions}[ $back - 1 ], $view->{cells});
		my %keys = (%$then, %$now);
		$view->{seq} += 1 + grep { ($then->{$_} // '') ne ($now->{$_} // '') } keys %keys;
		$view->{cells} = {%$then};
	}
	push @{ $view->{versions} }, { %{ $view->{cells} } };
	$view->{changed} = 0;
	$session->{stack} = [ {} ] if $alone;
	$session->{stack}[-1]{$n} = $view;
	$writer{$n} = $session;
	finish_transaction($session, 1) if $alone;
	push @log, "$session->{name} version $n" . ($back ? " back to $back" : '');
}

sub step_transaction
{
	my ($session) = @_;
	my $depth = in_transaction($session);
	my $what = rand;
	if (!$depth)
	{
		my $repeatable = rand() < 0.3;
		$session->ask($repeatable ? 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1' : 'BEGIN');
		$session->{stack} = [ {} ];
		$session->{snapshot} = { map { $_ => copy_state($state{$_}) } keys %state } if $repeatable;
	}
	elsif ($what < 0.3 && $depth < 5)
	{
		$session->ask("SAVEPOINT s$depth");
		push @{ $session->{stack} }, {};
	}
	elsif ($what < 0.5 && $depth > 1)
	{
		# Sheets locked in there are free again; those that were edited before stay ours.
		my $to = 1 + int rand($depth - 1);
		$session->ask("ROLLBACK TO s$to; RELEASE s$to");
		$#{ $session->{stack} } = $to - 1;
		for my $n (keys %writer)
		{
			delete $writer{$n} if $writer{$n} == $session && !grep { $_->{$n} } @{ $session->{stack} };
		}
	}
	elsif ($what < 0.65 && $depth > 1)
	{
		my $to = $depth - 1;
		$session->ask("RELEASE s$to");
		my $top = pop @{ $session->{stack} };
		$session->{stack}[-1]{$_} = $top->{$_} for keys %$top;
	}
	else
	{
		my $commit = rand() < 0.7;
		my $got = $session->ask($commit ? 'COMMIT' : 'ROLLBACK');
		$failed = 1, diag "commit: $got" if $got ne '';
		finish_transaction($session, $commit);
	}
	push @log, "$session->{name} transaction, depth $depth -> " . in_transaction($session);
}

sub step_error
{
	my ($session) = @_;
	return if in_transaction($session) < 2;
	$session->ask('SELECT 1/0');
	my $to = in_transaction($session) - 1;
	$session->ask("ROLLBACK TO s$to; RELEASE s$to");
	pop @{ $session->{stack} };
	for my $n (keys %writer)
	{
		delete $writer{$n} if $writer{$n} == $session && !grep { $_->{$n} } @{ $session->{stack} };
	}
	push @log, "$session->{name} error";
}

my $used = 'SELECT hits > 0 AND loads > 0 AND evictions > 0, bytes <= budget, private_own_edits > 0, private_old_snapshot > 0 FROM sheet.cache_stats';
my ($steps, $reads, $end) = (0, 0, time + $seconds);

# However slow the machine is: until enough has been done to mean something.
sub is_over
{
	return 1 if $failed || time >= $end + 180;
	return time >= $end && $steps % 50 == 0 && $reads > 100 && $node->safe_psql('postgres', $used) !~ /f/;
}
while (!is_over())
{
	my $session = $sessions[ rand @sessions ];
	my $kind = rand;
	if ($kind < 0.40) { step_apply($session) }
	elsif ($kind < 0.45) { step_version($session) }
	elsif ($kind < 0.65) { step_transaction($session) }
	elsif ($kind < 0.67) { step_error($session) }
	else { $reads++; check($session, 1 + int rand $sheets, 'at random') }
	$steps++;
}
note "$steps steps, $reads reads";
ok(!$failed, 'every session saw what the model says');
cmp_ok($reads, '>', 100, 'enough was read to mean something');

for my $session (@sessions)
{
	fail_transaction($session) if in_transaction($session);
}
$failed = 0;
check($sessions[0], $_, 'at the end') for 1 .. $sheets;
ok(!$failed, 'the end is the model\'s');
my $wrong = 0;
for my $n (1 .. $sheets)
{
	my $version_id = 0;
	for my $cells (@{ $state{$n}{versions} })
	{
		$version_id++;
		my $want = join("\n", map { "$_=$cells->{$_}" } sort grep { $cells->{$_} ne '' } keys %$cells);
		my $got = $sessions[0]->ask(qq{SELECT string_agg(d."row" || ',' || d.col || '=' || d.content, E'\\n' ORDER BY (d."row" || ',' || d.col) COLLATE "C")
			FROM sheet.read_version($id{$n}, $version_id) r, j_decode(r.cells) d});
		$wrong++ if $got ne $want;
	}
}
is($wrong, 0, 'every version is the model\'s');

is($node->safe_psql('postgres', $used), 't|t|t|t', 'the cache was used, was too small, kept to its budget, and was passed by');
note $node->safe_psql('postgres', 'SELECT * FROM sheet.cache_stats');
is($node->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_entries WHERE pins > 0 OR writing OR loading'), '0', 'nothing stays pinned');
$_->end for @sessions;
$node->stop;
done_testing();
