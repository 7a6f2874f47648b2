# Races of tiles that leave the cache: each is brought about step by step with stop points in a cache of 1.5 MB.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes ();

my $node = new_server('races');
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '1536kB'\nmax_connections = 40\nautovacuum = off\nfsync = off\npg_sheet.version_edits = 0\npg_sheet.version_bytes = 0\n");
$node->restart;

my $dir = PostgreSQL::Test::Utils::tempdir();

# So many tiles of 1024 cells, one below the other, of about 40 kB each.
sub sheet_of_tiles
{
	my ($name, $tiles) = @_;
	my $last = $tiles * 64 - 1;
	return $node->safe_psql('postgres', "SELECT sheet.import_csv('$name', string_agg(line, E'\\n' ORDER BY r) || E'\\n')
		FROM (SELECT r, string_agg(md5(r || '-' || c), ',' ORDER BY c) AS line FROM generate_series(0, $last) r, generate_series(0, 15) c GROUP BY r) l");
}

# A session that does this beside the test.
sub session
{
	my ($name, $sql) = @_;
	my $out = '';
	my $file = "$dir/$name.sql";
	unlink $file;
	append_to_file($file, $sql);
	my $handle = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . " application_name=$name", '-f', $file ], '<', '/dev/null', '>', \$out, '2>&1');
	return { handle => $handle, out => \$out, name => $name };
}

sub finish
{
	my ($session) = @_;
	for (1 .. 150)
	{
		my $there = $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = '$session->{name}'");
		if (!$there) { $session->{handle}->finish; return ${ $session->{out} }; }
		Time::HiRes::sleep(0.1);
	}
	kill 'KILL', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = '$session->{name}'");
	return 'does not end';
}

sub wait_for
{
	my ($what, $condition) = @_;
	$node->poll_query_until('postgres', "SELECT $condition") or die $what;
}

sub waits
{
	my ($name, $type) = @_;
	wait_for("$name waits", "EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '$name' AND wait_event_type = '$type')");
}

# Holds the point until it is let go.
sub hold
{
	my ($point) = @_;
	my $session = session("hold-$point", "SELECT pg_advisory_lock(hashtext('$point'));\nSELECT pg_advisory_lock(77);\n");
	wait_for('the holder', "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = (hashtext('$point')::bigint & 4294967295)::oid)");
	return $session;
}

my $gate = session('gate', "SELECT pg_advisory_lock(77);\nSELECT pg_sleep(600);\n");
wait_for('the gate', "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 77)");

sub let_go
{
	my ($session) = @_;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '$session->{name}'");
	eval { $session->{handle}->finish };
}

sub read_range
{
	my ($id, $range) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) || ' ' || coalesce(max(content) FILTER (WHERE \"row\" = 0 AND col = 0), '') FROM sheet.range($id, '$range')");
}

# How many tiles of a sheet the cache has. The view has null while another process, such as the worker, has locked the entry.
sub tiles_of
{
	my $tiles = "FROM sheet.cache_entries WHERE sheet_id = $_[0]";
	wait_for('the tiles can be counted', "coalesce(bool_and(tiles_cached IS NOT NULL), true) $tiles");
	return $node->safe_psql('postgres', "SELECT coalesce(sum(tiles_cached), 0) $tiles");
}

my $other = sheet_of_tiles('other', 60);
sub push_all_out { read_range($other, 'A' . (1 + 640 * $_) . ':P' . (640 * $_ + 640)) for 0 .. 4, 0 .. 4 }

# ---- tiles that come into a grid that was empty when room was looked for leave it again ----
my $hold = hold('empty-grid');
my $young = session('young', "BEGIN;\nSELECT sheet.create('young', 64, 16) AS id \\gset\nSELECT pg_advisory_lock(hashtext('empty-grid'));\nSELECT sheet.apply(:id, " . batch([ 0, 0, 'x' x 2000 ]) . ");\nCOMMIT;\n");
waits('young', 'Lock');
push_all_out();
let_go($hold);
finish($young);
push_all_out();
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.cache_entries e JOIN sheet.sheet s USING (sheet_id) WHERE s.name = 'young' AND cached"), 0, 'a tile of a young sheet goes');

# ---- an empty grid that a version is made of stays ----
my $empty = $node->safe_psql('postgres', "SELECT sheet.create('empty', 12, 7)");
push_all_out();
$hold = hold('append-stage');
my $commit = session('commit', "SET pg_sheet.stop_point = 'append-stage:wait';\nSELECT sheet.commit($empty, 'one');\n");
waits('commit', 'Lock');
push_all_out();
$node->safe_psql('postgres', "SELECT sheet.create('filler ' || i, 4000 + i, 300) FROM generate_series(1, 40) i");
push_all_out();
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.cache_entries WHERE sheet_id = $empty AND cached"), 1, 'the grid of a writer that reads all of it stays');
let_go($hold);
finish($commit);
is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT f.severity || ' ' || f.what, ', ') FROM sheet.fsck($empty, true) f"), 'info clean', 'and the version is right');
push_all_out();
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.cache_entries WHERE sheet_id = $empty AND cached"), 0, 'when it is made, the grid may go');

# ---- an edit that changes nothing holds its tile to the end of its transaction ----
my $same = sheet_of_tiles('same', 1);
$node->safe_psql('postgres', "SELECT sheet.set($same, 'A1', md5('0-0'))");
is(tiles_of($same), 1, 'an edit that changes nothing has its tile in the cache');
push_all_out();
is(tiles_of($same), 0, 'when it has ended, the tile may go');

# ---- a load that begins when the tile is here already ----
my $stale = sheet_of_tiles('stale', 2);
push_all_out();
read_range($stale, 'A65:P65');
$hold = hold('load-part-snapshot');
my $gate2 = session('gate2', "SELECT pg_advisory_lock(78);\nSELECT pg_sleep(600);\n");
wait_for('the second gate', "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 78)");
my $first = session('first', "BEGIN;\nSELECT count(*) FROM sheet.range($other, 'A3521:P3521');\nSELECT pg_advisory_lock(78);\nSELECT count(*) FROM sheet.range($stale, 'A1:P1');\nCOMMIT;\n");
waits('first', 'Lock');
my $lock = session('lock', "BEGIN;\nLOCK TABLE sheet.version_tile IN ACCESS EXCLUSIVE MODE;\nCOMMIT;\n");
waits('lock', 'Lock');
my $second = session('second', "SET pg_sheet.stop_point = 'load-part-snapshot:wait';\nSELECT count(*) FROM sheet.range($stale, 'A1:P1');\n");
waits('second', 'Lock');
let_go($gate2);
finish($first);
finish($lock);
Time::HiRes::sleep(0.5);
$node->safe_psql('postgres', "SELECT sheet.apply($stale, " . batch([ 0, 0, 'edited' ]) . ')');
push_all_out();
let_go($hold);
finish($second);
is(read_range($stale, 'A1:P64'), '1024 edited', 'an edit beside a load of its tile is seen');

# ---- an edit of a tile that is missing is published while the tile is loaded, or when it has been ----
my $missing = sheet_of_tiles('missing', 2);
my $editor = new_session($node);

# Of the sheet's two tiles the first is missing, and edited: who has deleted rows of the log loads nothing into the cache.
sub edit_missing
{
	my ($text) = @_;
	my $drill = $node->safe_psql('postgres', "SELECT sheet.create('drill', 1, 1)");
	push_all_out();
	read_range($missing, 'A65:P65');
	$editor->ask('BEGIN; SET LOCAL pg_sheet.allow_log_delete = on');
	$editor->ask("DELETE FROM sheet.segment WHERE sheet_id = $drill");
	$editor->ask("SELECT sheet.set($missing, 'A1', '$text')");
	tiles_of($missing);
	is($node->safe_psql('postgres', "SELECT tiles_cached, tiles, writing FROM sheet.cache_entries WHERE sheet_id = $missing"), '1|2|t', "$text: its tile is missing");
}

edit_missing('while it is loaded');
$hold = hold('load-part-snapshot');
$second = session('second', "SET pg_sheet.stop_point = 'load-part-snapshot:wait';\nSELECT count(*) FROM sheet.range($missing, 'A1:P1');\n");
waits('second', 'Lock');
$editor->ask('COMMIT');
let_go($hold);
finish($second);
is(read_range($missing, 'A1:P64'), '1024 while it is loaded', 'an edit of a missing tile is published while it is loaded, and is seen');
push_all_out();
read_range($missing, 'A65:P65');
my $loads = $node->safe_psql('postgres', 'SELECT loads FROM sheet.cache_stats');
$hold = hold('load-part-snapshot');
$second = session('second', "SET pg_sheet.stop_point = 'load-part-snapshot:wait';\nSELECT count(*) FROM sheet.range($missing, 'A1:P1');\n");
waits('second', 'Lock');
$editor->send("SELECT count(*) FROM sheet.range($missing, 'A1:P2')");
wait_for('the other reader', "wait_event_type = 'Extension' OR state = 'idle' AND query LIKE '%A1:P2%' FROM pg_stat_activity WHERE pid = $editor->{pid}");
is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $editor->{pid}"), 'active', 'who wants a tile that somebody loads waits for it');
let_go($hold);
is($editor->answer . ' ' . finish($second), "32 16\n", 'then both have it');
is($node->safe_psql('postgres', "SELECT loads - $loads FROM sheet.cache_stats"), 1, 'by one load');
edit_missing('when it is loaded');
is(read_range($missing, 'A1:P64'), '1024 while it is loaded', 'who loads it sees the state before');
$editor->ask('COMMIT');
is(read_range($missing, 'A1:P64'), '1024 when it is loaded', 'an edit of a missing tile is published when it has been loaded, and is seen');
$editor->end;

# ---- a trim between a load's begin and its snapshot ----
my $trimmed = sheet_of_tiles('trimmed', 2);
push_all_out();
read_range($trimmed, 'A65:P65');
$hold = hold('load-part');
$second = session('second', "SET pg_sheet.stop_point = 'load-part:wait';\nSELECT count(*) FROM sheet.range($trimmed, 'A1:P1');\n");
waits('second', 'Lock');
# In one transaction: a version of edits of its own is not made from the cached grid.
my $version_id = $node->safe_psql('postgres', "BEGIN; DO \$\$ BEGIN PERFORM sheet.apply($trimmed, " . batch([ 64, 0, 'edited' ]) . "); END \$\$; SELECT sheet.commit($trimmed, 'one'); COMMIT");
$node->safe_psql('postgres', "SELECT sheet.trim($trimmed, $version_id)");
let_go($hold);
like(finish($second), qr/^16\b/m, 'a load that a trim overtakes gives the cells');
like(read_range($trimmed, 'A1:P64'), qr/^1024 /, 'and they are there afterwards');

# ---- what happens between two slices of a large read, whose rows have an odd number of cells ----
my $large = $node->safe_psql('postgres', "SELECT sheet.import_csv('large', string_agg(line, E'\\n' ORDER BY r) || E'\\n')
	FROM (SELECT r, string_agg(((r * 7 + c) % 10)::text, ',' ORDER BY c) AS line FROM generate_series(0, 6399) r, generate_series(0, 16) c GROUP BY r) l");
my $digest = "SELECT md5(cells) FROM sheet.read_cells($large);";

# As read from storage.
sub truth { return $node->safe_psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE; $digest COMMIT;") }

# A read that stops behind its first slice while this happens.
sub read_while
{
	my ($name, $happens) = @_;
	my $holder = hold('read-slice');
	my $reader = session($name, "SET pg_sheet.stop_point = 'read-slice:wait';\n$digest\n");
	waits($name, 'Lock');
	$happens->();
	let_go($holder);
	return finish($reader);
}

is($node->safe_psql('postgres', $digest), truth(), 'a large read in slices, which end within a row, gives all cells');
my $before = truth();
my $gate3 = session('gate3', "SELECT pg_advisory_lock(79);\nSELECT pg_sleep(600);\n");
wait_for('the third gate', "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 79)");
my $writer;
is( read_while(
		'slice-writer',
		sub {
			$writer = session('writer', "BEGIN;\nSELECT sheet.apply($large, " . batch([ 0, 0, 'new' ], [ 6399, 15, 'new' ]) . ");\nSELECT pg_advisory_lock(79);\nCOMMIT;\n");
			waits('writer', 'Lock');
		}),
	"$before\n",
	'a large read does not see, nor wait for, a writer that began meanwhile');
let_go($gate3);
finish($writer);
my $after = truth();
isnt($after, $before, 'the writer has committed');
is( read_while('slice-commit', sub { $node->safe_psql('postgres', "SELECT sheet.apply($large, " . batch([ 0, 0, 'first' ], [ 6399, 15, 'last' ]) . ')') }),
	truth() . "\n",
	'a writer commits between two slices of a large read, which gives the state after it');
isnt(truth(), $after, 'which is another one');
is(read_while('slice-eviction', \&push_all_out), truth() . "\n", 'all tiles go between two slices of a large read');
$node->safe_psql('postgres', $digest);
is( read_while(
		'slice-some',
		sub {
			read_range($large, 'A1:Q4096'); # the first slice was used last, so the others go
			read_range($other, 'A' . (1 + 640 * $_) . ':P' . (640 * $_ + 640)) for 0 .. 1;
		}),
	truth() . "\n",
	'the last tiles go between two slices of a large read');
$node->safe_psql('postgres', $digest);
is( read_while('slice-structure', sub { $node->safe_psql('postgres', "SELECT sheet.insert_rows($large, 6000, 3)") }),
	truth() . "\n",
	'rows are inserted between two slices of a large read');
is($node->safe_psql('postgres', $digest), truth(), 'a large read of moved rows gives all cells');
$before = truth();
my ($code, $answer) = $node->psql('postgres', "SET pg_sheet.stop_point = 'read-slice:error';\n$digest\n$digest\nSELECT sheet.set($large, 'C3', 'after') > 0;", on_error_stop => 0);
is($answer, "$before\nt", 'a large read ends with an error between two slices, and the session goes on');
$editor = new_session($node);
push_all_out();
for my $point ('read-slice', 'load-part')
{
	for my $begin ('BEGIN', 'BEGIN; SAVEPOINT a')
	{
		read_range($missing, 'A65:P65');
		$editor->ask("SET pg_sheet.stop_point = '$point:error'");
		$editor->ask($begin);
		like($editor->ask($point eq 'load-part' ? "SELECT count(*) FROM sheet.range($missing, 'A1:P1')" : $digest =~ s/;$//r), qr/^ERROR XX000/, "$begin: an error at $point");
		$editor->ask('ROLLBACK TO a') if $begin =~ /SAVEPOINT/;
		is($node->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_entries WHERE pins > 0 OR loading'), 0, 'and nothing is held any more');
		$editor->ask('ROLLBACK');
	}
}
$editor->end;

# ---- a load of one sheet does not wait for the lock of another, whose tiles are passed over ----
my @quiet = map { sheet_of_tiles("quiet $_", 10) } 0 .. 2;
push_all_out();
read_range($_, 'A1:P640') for @quiet;
is(join(' ', map { tiles_of($_) } @quiet), '10 10 10', 'three sheets are in the cache');
$hold = hold('publish-locked');
$writer = session('locker', "SET pg_sheet.stop_point = 'publish-locked:wait';\nSELECT sheet.apply($quiet[0], " . batch([ 0, 0, 'locked' ]) . ");\n");
waits('locker', 'Extension');
my $loader = session('loader', "SELECT count(*) FROM sheet.range($other, 'A1:P1280');\n");
is(finish($loader), "20480\n", 'a sheet is loaded while the one whose tiles are the oldest is locked');
my @left = map { tiles_of($_) } @quiet[ 1, 2 ];
cmp_ok($left[0], '<', 10, 'tiles of others have gone for it');
let_go($hold);
finish($writer);
is(tiles_of($quiet[0]), 10, 'and none of the one that was locked');

# ---- rows are inserted when the cache has no room for what tells where they lie ----
my $moved = $node->safe_psql('postgres', "SELECT sheet.create('moved', 1000, 1)");
my $inserter = new_session($node);
$inserter->ask("BEGIN; SELECT sheet.set($moved, 'A' || i * 3, i::text) FROM generate_series(1, 300) i");
$inserter->ask("SELECT sheet.set(sheet.create('filler', 1, 1), 'A1', repeat('x', size)) FROM unnest('{30000,3000,300}'::int[]) size, generate_series(1, 50)");
is($inserter->ask("SELECT count(sheet.insert_rows($moved, i * 4)) FROM generate_series(1, 200) i"), 200, 'rows are inserted at many places while all of the cache is held');
$inserter->ask('COMMIT');
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.cache_entries WHERE sheet_id = $moved AND cached"), 0, 'what the cache has of the sheet goes with the commit');
my $cells = "SELECT md5(string_agg(a1 || content, ',' ORDER BY \"row\")) FROM sheet.range($moved);";
is($node->safe_psql('postgres', $cells), $node->safe_psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE; $cells COMMIT;"), 'its cells are where they belong');
is($node->safe_psql('postgres', "SELECT content FROM sheet.range($moved, 'A1:A7')"), "1\n2", 'behind the rows that were inserted');
$inserter->end;

$node->safe_psql('postgres', 'SELECT sheet.purge(sheet_id) FROM sheet.list');
is($node->safe_psql('postgres', 'SELECT bytes FROM sheet.cache_stats'), 0, 'purged sheets leave nothing in the cache, whatever became of their loads');
let_go($gate);
$node->stop('immediate');
done_testing();
