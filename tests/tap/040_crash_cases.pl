# A session ends at every stop point of the journal, by SIGKILL or PANIC, or fails there. What was under way is there as a
# whole or not at all, sheet.fsck has nothing to say, and the same thing done again succeeds. Repairs, too, are interrupted and
# done again. Points of other layers are passed in 041_kill_rounds.pl.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

my $node = new_server('cases');
$node->safe_psql('postgres', "INSERT INTO sheet.account (uid, name) VALUES (1, 'editor')");
my %scale = (cells => 40);

# Every stored row of the sheet, as text.
sub rows_of
{
	my ($sheet) = @_;
	my @parts = map { "(SELECT string_agg(t::text, E'\\n' ORDER BY t::text) FROM sheet.$_ t WHERE sheet_id = $sheet)" }
	  qw(sheet log_batch segment version version_tile property_set log_trim ownership member);
	return $node->safe_psql('postgres', 'SELECT concat_ws(E\'\\n--\\n\', ' . join(', ', @parts) . ')');
}

# A sheet with two versions, of several tiles, and edits after them.
sub new_sheet
{
	my $sheet = $node->safe_psql('postgres', "SELECT sheet.create('cases', 300, 60)");
	for my $version (1, 2)
	{
		my @edits = map { [ $_ * 7, $_, "v$version cell $_" ] } 0 .. $scale{cells} - 1;
		$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch(@edits) . "); SELECT sheet.set_property($sheet, '1:$version', 'height', '$version'); SELECT sheet.commit($sheet, 'v$version')");
	}
	$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch([ 0, 0, 'open' ], [ 250, 50, 'far' ]) . ')');
	return $sheet;
}

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

# Runs it with the point set; true when it succeeded. After a crash, the server is back.
sub run_to
{
	my ($point, $sql) = @_;
	my $life = server_life($node);
	my ($code) = $node->psql('postgres', "SET pg_sheet.stop_point = '$point';\n$sql", on_error_die => 0, on_error_stop => 1);
	wait_until_next_life($node, $life) if $point =~ /:(kill|panic)/;
	return $code == 0;
}

sub fsck
{
	my ($sheet, $arguments) = @_;
	return $node->safe_psql('postgres', "SELECT severity, what, place, repaired FROM sheet.fsck($sheet, $arguments)");
}

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
my %passed;
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

# ---- a repair that is interrupted ----

sub damage
{
	my ($sheet, @deletes) = @_;
	$node->safe_psql('postgres', join("\n", 'SET pg_sheet.allow_log_delete = on;', map { "DELETE FROM sheet.$_ AND sheet_id = $sheet;" } @deletes));
}

# What is deleted, the points that its repair passes, and what the repair says.
my @damages = (
	[ ['version WHERE version_id = 2'], [qw(fsck-deleted version-tile fsck-version fsck-end)], qr/the version is missing\|version 2/ ],
	[ [ 'version WHERE true', 'version_tile WHERE version_id = 2' ], [ 'fsck-deleted', 'fsck-version', 'fsck-version:kill:2' ], qr/the version is missing\|version 1\|.*the version is missing\|version 2/s ],
	[ ['version_tile WHERE version_id = 2 AND tile_row = 0'], [qw(remove-row version-row)], qr/the tile at A1 is missing/ ],
	[ ['property_set WHERE true'], [qw(fsck-properties fsck-end)], qr/the sheet's properties differ from the log/ ],
	[ ['segment WHERE segment_id = 3'], [qw(fsck-head fsck-end)], qr/the segment's row is missing/ ],
	[ [ 'log_batch WHERE segment_id = 3', 'segment WHERE segment_id = 3', 'version WHERE version_id = 2' ], [qw(fsck-head fsck-version)], qr/the segment's row is missing\|segment 3\|.*the version is missing\|version 2/s ],
	[ ['log_batch WHERE segment_id = 2 AND first_seq = (SELECT max(seq) FROM sheet.version c WHERE c.sheet_id = log_batch.sheet_id)'], [qw(fsck-record fsck-end)], qr/the commit record of the version is missing/ ],
);
for my $damage (@damages)
{
	my ($deletes, $points, $says) = @$damage;
	for my $point (@$points)
	{
		my $sheet = new_sheet();
		my $sound = rows_of($sheet);
		my $cells = sheet_state($node, $sheet);
		my $what = "$deletes->[0], repair ends at $point";
		my $edits_lost = grep { /log_batch WHERE segment_id = 3/ } @$deletes;
		damage($sheet, @$deletes);
		my $damaged = rows_of($sheet);
		like(fsck($sheet, 'true, false'), $says, "$what: a look tells");
		ok(!run_to($point =~ /:/ ? $point : "$point:kill", "SELECT * FROM sheet.fsck($sheet, true)"), "$what: does not come to its end");
		ok(rows_of($sheet) eq $damaged, "$what: nothing of it is there");
		like(fsck($sheet, 'true'), $says, "$what: the second repair says the same");
		is(fsck($sheet, 'true'), 'info|clean||f', "$what: after that it is clean");
		ok(rows_of($sheet) eq $sound, "$what: every row is what it was") if !$edits_lost;
		is(sheet_state($node, $sheet), $cells, "$what: the cells are what they were") if !$edits_lost;
		ok($node->safe_psql('postgres', "SELECT sheet.set($sheet, 'C3', 'after'); SELECT sheet.commit($sheet, 'after')"), "$what: it can be edited");
		is(fsck($sheet, 'true'), 'info|clean||f', "$what: and is clean");
	}
}
$node->stop;
done_testing();
