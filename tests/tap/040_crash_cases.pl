# A session ends at every stop point of the journal, by SIGKILL or PANIC, or fails there. What was under way is there as a
# whole or not at all, sheet.fsck has nothing to say, and the same thing done again succeeds. Repairs are in 043_repair_cases.pl.
# Points of other layers are passed in 041_kill_rounds.pl.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use CrashCases;
use SheetTest;
use Test::More;

my $node = start_cases('cases');

# The points that stand in the sources of the journal.
sub stop_points
{
	my %points;
	for my $file (glob "$FindBin::Bin/../../extension/journal/*/*.c")
	{
		open my $source, '<', $file or die;
		/STOP_POINT(?:_NO_FAIL)?\("([a-z-]+)"\)/ && $points{$1}++ for <$source>;
	}
	is(join(' ', grep { $points{$_} > 1 } sort keys %points), '', 'each name is used once');
	return sort keys %points;
}

# What leads through a point: by its first word. S stands for the sheet.
my %way = (
	append => ["SELECT sheet.set(S, 'B2', 'new')"],
	publish => ["SELECT sheet.set(S, 'B2', 'new')"],
	property => [ "SELECT sheet.set_property(S, 'B:B', 'width', '1')", 'SELECT sheet.insert_rows(S, 0)', "SELECT sheet.set_property(S, '1:1', 'height', NULL)" ],
	clients => ["SELECT sheet.apply(S, j_batch(j_set(1, 1, 'new')), clients => '{1,7,1,1}')"],
	commit => ["SELECT sheet.commit(S, 'third')"],
	version => ["SELECT sheet.commit(S, 'third')"],
	rollback => ['SELECT sheet.rollback(S, 1)'],
	create => ["SELECT sheet.create('never', 10, 10)"],
	remove => [ 'SELECT sheet.trim(S, 2)', 'SELECT sheet.purge(S)' ],
	trim => ['SELECT sheet.trim(S, 2)'],
	fsck => [],
	automatic => [],   # in a worker: 060_worker.pl
	load => [],        # of tiles that have left the cache: 023_tile_races.pl
	read => [],        # of a large sheet, between two slices: the same
	replay => [],      # of edits past the cache: 074_uncached_edits.pl
	withdraw => [],    # of a transaction that is rolled back: 064_truth_servers.pl
);

sub crash_at
{
	my ($point, $action, $number, $way) = @_;
	my $what = "$point:$action:$number, $way";
	my $sheet = new_sheet();
	my $sheets = $node->safe_psql('postgres', 'SELECT count(*) FROM sheet.sheet');
	my $before = rows_of($sheet);
	my $done = $point =~ /^publish/; # it is committed then
	(my $sql = $way) =~ s/\bS\b/$sheet/;
	ok(!run_to("$point:$action:$number", $sql), "$what: does not come to its end") or return;
	is(rows_of($sheet) eq $before ? 'as before' : 'changed', $done ? 'changed' : 'as before', "$what: all of it or nothing");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM sheet.sheet'), $sheets, "$what: no sheet more, none less");
	is(fsck($sheet, 'true, false'), 'info|clean||f', "$what: clean");
	is($node->safe_psql('postgres', "SELECT sheet.get($sheet, 'B2')"), $done ? 'new' : '', "$what: what the cell holds");
	$sql =~ s/'new'/'newer'/;
	ok($node->safe_psql('postgres', "$sql IS NOT NULL"), "$what: again, without the point");
	is(fsck($sheet, 'true, false'), 'info|clean||f', "$what: clean after that") if $sql !~ /purge/;
}

my @points = stop_points();
for my $point (@points)
{
	my ($word) = $point =~ /^([a-z]+)/;
	ok($way{$word}, "$point: the test knows its way") or next;
	for my $way (@{ $way{$word} })
	{
		crash_at($point, 'kill', 1, $way);
		crash_at($point, 'error', 1, $way) if $word ne 'publish';
	}
}
# in the middle, and by a PANIC of the server's own
crash_at('version-tile', 'kill', 2, $way{commit}[0]);
crash_at('remove-row', 'kill', 5, 'SELECT sheet.trim(S, 2)');
crash_at('remove-table', 'kill', 4, 'SELECT sheet.purge(S)');
crash_at($_, 'panic', 1, $way{commit}[0]) for qw(commit-record commit-head version-row commit-version);
crash_at('publish', 'panic', 1, $way{append}[0]);

$node->stop;
done_testing();
