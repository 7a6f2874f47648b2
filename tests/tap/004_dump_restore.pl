# pg_dump and restore of a database with the extension keep every sheet: cells, log, versions; and editing goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

seed_random();
my $node = new_server('dump');
my @sheets = map { $node->safe_psql('postgres', "SELECT sheet.create('dump $_', 100, 26)") } 1 .. 3;
for my $round (1 .. 3)
{
	for my $sheet (@sheets[ 0, 1 ])
	{
		my @edits = map { [ int rand 80, int rand 20, "round $round edit $_ " . 'x' x rand 500 ] } 1 .. 200;
		$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch(@edits) . "); SELECT sheet.commit($sheet, 'round $round')");
	}
}
$node->safe_psql('postgres', "SELECT sheet.rollback($sheets[0], 2); SELECT sheet.apply($sheets[1], " . batch([ 99, 25, q(it's "the" last) ]) . ')');
$node->safe_psql('postgres', "SELECT sheet.trash($sheets[2])");
$node->safe_psql('postgres', 'CREATE TABLE own (id int PRIMARY KEY, body text) USING sheetlog; INSERT INTO own SELECT g, g::text FROM generate_series(1, 1000) g');

my %questions = (
	log => 'SELECT count(*), md5(string_agg(r::text, \',\' ORDER BY h.sheet_id, r.seq)) FROM sheet.segment h, sheet.read_log(h.sheet_id, h.segment_id) r',
	versions => "SELECT s, v.*, md5(r.cells) FROM unnest(ARRAY[$sheets[0], $sheets[1]]) s, sheet.versions(s) v, sheet.read_version(s, v.version_id) r ORDER BY 1, 2",
	'sheets in the trash' => 'SELECT sheet_id, name, trashed_at FROM sheet.sheet ORDER BY 1',
	'own table' => "SELECT count(*), sum(id), (SELECT amname FROM pg_am a JOIN pg_class c ON a.oid = c.relam WHERE c.relname = 'own') FROM own");
my $dir = PostgreSQL::Test::Utils::tempdir();

# custom format and plain SQL, and the latter without the access method
for my $way ('custom', 'plain')
{
	my $file = "$dir/$way.dump";
	$node->command_ok([ 'pg_dump', "--format=$way", '-f', $file, $node->connstr('postgres') ], "$way: dumped");
	$node->safe_psql('postgres', "CREATE DATABASE $way TEMPLATE template0");
	$node->command_ok($way eq 'custom' ? [ 'pg_restore', '--exit-on-error', '-d', $node->connstr($way), $file ] : [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, $node->connstr($way) ],
		"$way: restored");
	for my $what (sort keys %questions)
	{
		is($node->safe_psql($way, $questions{$what}), $node->safe_psql('postgres', $questions{$what}), "$way: the same $what");
	}
	is(sheet_state($node, $_, $way), sheet_state($node, $_), "$way: the same cells of sheet $_") for @sheets[ 0, 1 ];
	my $seq = $node->safe_psql($way, "SELECT seq FROM sheet.read_cells($sheets[0])");
	is($node->safe_psql($way, "SELECT first_seq FROM sheet.apply($sheets[0], " . batch([ 5, 5, 'after' ]) . ')'), $seq + 1, "$way: editing goes on without a gap");
	my $new = $node->safe_psql($way, "SELECT sheet.create('new', 10, 10)");
	ok(!grep({ $_ == $new } @sheets), "$way: a new sheet has an id of its own");
}
$node->stop;
done_testing();
