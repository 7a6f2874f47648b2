# Readers of a sheet do not overtake a commit that waits to show its edits: while one reader is slow, the others wait behind the
# commit, so that it needs to wait for those only who were there before it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_server('readers');
my $sheet = $node->safe_psql('postgres', q{SELECT sheet.create('large', 1024, 1024)});
for my $band (0 .. 7)
{
	$node->safe_psql('postgres', "SELECT sheet.import_csv_into($sheet, 'A' || ($band * 128 + 1), (SELECT string_agg(l, E'\\n') FROM (SELECT string_agg('cell ' || c, ',') l FROM generate_series(1, 128) r, generate_series(1, 1024) c GROUP BY r) t))");
}

# With a given snapshot a read holds the lock to its end.
my ($slow, $other, $writer) = map { new_session($node) } 1 .. 3;
my $one = "SELECT content FROM sheet.range($sheet, 'B2')";

sub begin
{
	my ($session) = @_;
	$session->ask('BEGIN ISOLATION LEVEL REPEATABLE READ');
	return $session->ask($one);
}

# Is the session waiting for the sheet's lock, or soon?
sub waits_for_sheet
{
	my ($session) = @_;
	for (1 .. 20)
	{
		return 1 if $node->safe_psql('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $session->{pid}") eq 'pg_sheet_entry';
		sleep(0.01);
	}
	return 0;
}

# Stops a reader at any moment, until it is one at which it holds the lock: then a commit waits for it.
sub stop_reader_with_lock
{
	for my $try (1 .. 200)
	{
		is(begin($slow), 'cell 2', 'a reader') if $try == 1;
		begin($slow) if $try > 1;
		$slow->send("SELECT sum(length(cells)) FROM sheet.read_cells($sheet)");
		sleep(0.001 * ($try % 40));
		kill 'STOP', $slow->{pid};
		$writer->send("SELECT sheet.set($sheet, 'A1', 'try $try') > 0");
		return $try if waits_for_sheet($writer);
		kill 'CONT', $slow->{pid};
		$writer->answer;
		$slow->answer;
		$slow->ask('COMMIT');
	}
	return 0;
}

is(begin($other), 'cell 2', 'another reader, which has its snapshot already');
my $tries = stop_reader_with_lock();
ok($tries, 'a commit waits for a reader') or BAIL_OUT('no reader holds the lock');
$other->send($one);
ok(waits_for_sheet($other), 'who reads now waits behind the commit');
kill 'CONT', $slow->{pid};
like($slow->answer, qr/^\d+$/, 'the reader has its cells');
is($writer->answer, 't', 'the commit is done');
is($other->answer, 'cell 2', 'and who waited reads what its snapshot sees');
$other->ask('COMMIT');
is($other->ask("SELECT content FROM sheet.range($sheet, 'A1')"), "try $tries", 'and then the edit');
$_->end for $slow, $other, $writer;
$node->stop;
done_testing();
