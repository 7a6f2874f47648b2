# A repair by sheet.fsck ends at each of its stop points, by SIGKILL. Nothing of it is there then, and the same repair done again
# restores every row.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use CrashCases;
use SheetTest;
use Test::More;

my $node = start_cases('repairs');

sub damage
{
	my ($sheet, @deletes) = @_;
	$node->safe_psql('postgres', join("\n", 'SET pg_sheet.allow_log_delete = on;', map { "DELETE FROM sheet.$_ AND sheet_id = $sheet;" } @deletes));
}

# Each case: the rows that are deleted, the stop points that the repair passes, and the findings of the repair.
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
