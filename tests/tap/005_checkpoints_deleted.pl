# All stored versions of sheets are deleted, by the setting for repair drills: sheet.fsck says so and restores them from
# the log, and a second run is clean.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

seed_random();
my $node = new_server('repair');
my @sheets = map { $node->safe_psql('postgres', "SELECT sheet.create('repair $_', 100, 26)") } 1 .. 2;
for my $round (1 .. 4)
{
	for my $sheet (@sheets)
	{
		my @edits = map { [ int rand 200, int rand 40, rand() < 0.2 ? '' : "round $round edit $_" ] } 1 .. 150;
		$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch(@edits) . "); SELECT sheet.commit($sheet, 'round $round')");
	}
}
$node->safe_psql('postgres', "SELECT sheet.rollback($sheets[0], 2); SELECT sheet.apply($sheets[0], " . batch([ 1, 1, 'open end' ]) . ')');

my $versions = "SELECT s, v.version_id, v.seq, v.rows, v.cols, r.seq, md5(r.cells) FROM unnest(ARRAY[$sheets[0], $sheets[1]]) s, sheet.versions(s) v, sheet.read_version(s, v.version_id) r ORDER BY 1, 2";
my $check = 'SELECT severity, what, place, repaired FROM sheet.fsck(NULL, true)';
my $before = $node->safe_psql('postgres', $versions);
my @cells = map { sheet_state($node, $_) } @sheets;
is($node->safe_psql('postgres', $check) =~ /^(info\|clean\|[^\n]*\n?)+\z/ ? 'clean' : 'findings', 'clean', 'a sound database is clean');
is(scalar(split /\n/, $before), 9, 'five versions and four');

for my $table ('checkpoint', 'version_tile', 'checkpoint, version_tile')
{
	my $deletes = join '; ', map { "DELETE FROM sheet.$_" } split /, /, $table;
	my ($code, $out, $err) = $node->psql('postgres', $deletes);
	like($err, qr/cannot delete from table "checkpoint/, "$table: refused without the setting");
	$node->safe_psql('postgres', "SET pg_sheet.allow_log_delete = on; $deletes");
	my $looked = $node->safe_psql('postgres', 'SELECT count(*) FILTER (WHERE severity <> \'info\') > 0, bool_or(repaired) FROM sheet.fsck(NULL, true, false)');
	is($looked, 't|f', "$table: a look alone finds it and repairs nothing");
	my $told = $node->safe_psql('postgres', $check);
	like($told, qr/\|t$/m, "$table: fsck says what it restored");
	note $told;
	is($node->safe_psql('postgres', $check) =~ /^(info\|clean\|[^\n]*\n?)+\z/ ? 'clean' : 'findings', 'clean', "$table: a second run is clean");
	is($node->safe_psql('postgres', $versions), $before, "$table: every version is what it was");
	is(sheet_state($node, $sheets[$_]), $cells[$_], "$table: the cells of sheet $sheets[$_] are what they were") for 0, 1;
}
# What was restored is good for going on.
my $version_id = $node->safe_psql('postgres', "SELECT sheet.rollback($sheets[0], 1)");
is($version_id, 6, 'rolled back to a restored version, as the next one');
my $content = 'SELECT md5(string_agg(d."row" || \',\' || d.col || \'=\' || d.content, \' \' ORDER BY d."row", d.col)) FROM sheet.read_version';
is($node->safe_psql('postgres', "$content($sheets[0], 6) r, j_decode(r.cells) d"), $node->safe_psql('postgres', "$content($sheets[0], 1) r, j_decode(r.cells) d"),
	'with the same content');
$node->restart;
is($node->safe_psql('postgres', $check) =~ /^(info\|clean\|[^\n]*\n?)+\z/ ? 'clean' : 'findings', 'clean', 'clean after a restart, too');
$node->stop;
done_testing();
