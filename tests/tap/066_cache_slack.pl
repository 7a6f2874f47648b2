# What edited sheets have in the cache beyond their cells goes before any sheet does: sheets that were written live make room
# for others until they take no more than sheets that were loaded; those that a transaction is editing stay as they are. The
# cells are right throughout, and every byte is accounted for.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SheetTest;
use Test::More;

my $node = new_server('slack');
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '4MB'\nautovacuum = off\npg_sheet.version_edits = 0\npg_sheet.version_bytes = 0");
$node->restart;

# Texts of 1 to 15 characters, others in each round; a block of them is a call of its own.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION cell_text(n bigint, round integer, r integer, c integer) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT left(md5(n || '/' || round || '/' || r || '/' || c), 1 + (r * 16 + c + round * 7) % 15) $$;
CREATE FUNCTION ref(r integer, c integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN c >= 26 THEN chr(64 + c / 26) ELSE '' END || chr(65 + c % 26) || r + 1
$$;
CREATE FUNCTION write_block(n bigint, round integer, top integer, left_col integer) RETURNS bigint LANGUAGE sql AS $$
	SELECT sheet.set_range(n, ref(top, left_col),
		(SELECT array_agg(line ORDER BY r) FROM (SELECT r, array_agg(cell_text(n, round, r, c) ORDER BY c) AS line
			FROM generate_series(top, top + 63) r, generate_series(left_col, left_col + 15) c GROUP BY r) l))
$$;
CREATE FUNCTION wrong_cells(n bigint, round integer, cells bigint DEFAULT 1024) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE content <> cell_text(n, round, "row", col)) + abs(count(*) - cells) FROM sheet.range(n)
$$;
-- Bytes a cell beyond the contents.
CREATE FUNCTION beyond(ids bigint[]) RETURNS numeric LANGUAGE sql AS $$
	SELECT round((sum(bytes) - sum(content)) / sum(cells), 2)
		FROM (SELECT bytes, (SELECT sum(length(content)) FROM sheet.range(sheet_id)) AS content, (SELECT count(*) FROM sheet.range(sheet_id)) AS cells
			FROM sheet.cache_entries WHERE cached AND sheet_id = ANY (ids)) e
$$;
SQL

my $session = new_session($node);

sub ask { return $session->rows(@_) }

sub make_sheets
{
	my ($count, $rounds) = @_;
	my @ids = split /\n/, ask("SELECT sheet.create('slack', 64, 16) FROM generate_series(1, $count)");
	write_sheets($_, @ids) for 1 .. $rounds;
	return @ids;
}

sub write_sheets
{
	my ($round, @ids) = @_;
	ask("SELECT count(write_block($_, $round, 0, 0))") for @ids;
}

sub restart_cold
{
	$session->end;
	$node->restart;
	$session = new_session($node);
}

sub ids
{
	return "'{" . join(',', @_) . "}'";
}

# Reads sheets one after another, and some of others after each, so that these are not the least recently used. Returns how many
# tiles have left the cache meanwhile.
sub read_beside
{
	my ($sheets, @others) = @_;
	my $before = evictions();
	for my $n (0 .. $#$sheets)
	{
		ask("SELECT count(*) FROM unnest(" . ids($sheets->[$n], map { $others[ (2 * $n + $_) % @others ] } 0 .. 1) . "::bigint[]) id, sheet.range(id)");
	}
	return evictions() - $before;
}

sub evictions
{
	return ask('SELECT evictions FROM sheet.cache_stats');
}

# ---- many small sheets ----

my @cold = make_sheets(150, 1);
restart_cold();
ask("SELECT wrong_cells($cold[0], 1)");
my $loaded = ask('SELECT beyond(' . ids($cold[0]) . ')');
cmp_ok($loaded, '<=', 8.5, "a sheet of one block that was loaded takes $loaded bytes a cell beyond its contents");
my @live = make_sheets(100, 3);
my $live = ask('SELECT beyond(' . ids(@live) . ')');
cmp_ok($live, '>=', 14, "those that were written over at once take $live");
is(evictions(), 0, 'all of them are there');

# Three are being edited all the time.
my $editor = new_session($node);
my @held = @live[ 10, 30, 50 ];
$editor->ask('BEGIN');
$editor->ask("SELECT write_block($_, 4, 0, 0)") for @held;
my $held = ask('SELECT sum(bytes) FROM sheet.cache_entries WHERE sheet_id = ANY (' . ids(@held) . ')');
note 'left: ' . join(' ', map { read_beside(\@cold, @live) } 1 .. 2);
is(read_beside(\@cold, @live), 0, 'sheets that were stored have found room beside them, and none leaves any more');
my @rest = grep { my $id = $_; !grep { $_ == $id } @held } @live;
my $now = ask('SELECT beyond(' . ids(@rest) . ')');
cmp_ok($now, '<=', 9.5, "the sheets that were written over take $now bytes a cell now");
is(ask('SELECT sum(bytes) FROM sheet.cache_entries WHERE sheet_id = ANY (' . ids(@held) . ')'), $held, 'those that are being edited have kept their room');
$editor->ask('COMMIT');
is(ask('SELECT sum(wrong_cells(id, 4)) FROM unnest(' . ids(@held) . '::bigint[]) id'), 0, 'and have it for their edits');
is(ask('SELECT sum(wrong_cells(id, 1)) FROM unnest(' . ids(@cold) . '::bigint[]) id'), 0, 'those that were read are right');
is(ask('SELECT sum(wrong_cells(id, 3)) FROM unnest(' . ids(@rest) . '::bigint[]) id'), 0, 'the others are right');
write_sheets(5, @live);
is(ask('SELECT sum(wrong_cells(id, 5)) FROM unnest(' . ids(@live) . '::bigint[]) id'), 0, 'they can be written again');
cache_is_at_rest($node, 'small sheets');

# ---- one large sheet, which is looked at in parts ----

restart_cold();
my $large = ask("SELECT sheet.create('large', 640, 160)");
for my $round (1 .. 2)
{
	ask("SELECT count(write_block($large, $round, top * 64, l * 16)) FROM generate_series(0, 9) top, generate_series(0, 9) l");
}
my $tiles = ask("SELECT tiles_cached FROM sheet.cache_entries WHERE sheet_id = $large");
cmp_ok(ask('SELECT beyond(' . ids($large) . ')'), '>=', 14, "a sheet of $tiles blocks that was written over at once");
# A read of all of it stops behind its first slice meanwhile.
my ($holder, $reader) = map { new_session($node) } 1 .. 2;
my $digest = "SELECT md5(cells) FROM sheet.read_cells($large)";
$holder->ask(q{SELECT pg_advisory_lock(hashtext('read-slice'))});
$reader->ask(q{SET pg_sheet.stop_point = 'read-slice:wait'});
$reader->send($digest);
$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $reader->{pid}") or die 'the reader does not stop';
note 'left: ' . join(' ', map { read_beside(\@cold, $large) } 1 .. 2);
is(read_beside(\@cold, $large), 0, 'sheets have found room beside it');
$holder->end;
is($reader->answer, ask("BEGIN ISOLATION LEVEL SERIALIZABLE; $digest; COMMIT"), 'a large read that has begun before goes on where its cells are now');
$reader->end;
$now = ask('SELECT beyond(' . ids($large) . ')');
cmp_ok($now, '<=', 10.5, "it takes $now bytes a cell beyond its contents");
is(ask("SELECT wrong_cells($large, 2, 102400)"), 0, 'and is right');

# Of each block a row is left.
ask("SELECT count(sheet.set_range($large, ref(top * 64 + 1, l * 16), array_fill(''::text, ARRAY[63, 16]))) FROM generate_series(0, 9) top, generate_series(0, 9) l");
my $emptied = ask("SELECT bytes FROM sheet.cache_entries WHERE sheet_id = $large");
my @more = make_sheets(180, 1);
read_beside(\@more, $large) for 1 .. 2;
my $small = ask("SELECT bytes FROM sheet.cache_entries WHERE sheet_id = $large");
cmp_ok($small, '<=', 1600 * (8 + 10) * 33 / 32 + 100 * 136 + 256, "emptied but for a row of each block, it takes $small bytes, and had $emptied before others wanted them");
is(ask("SELECT wrong_cells($large, 2, 1600)"), 0, 'and is right');
cache_is_at_rest($node, 'a large sheet');
$_->end for $session, $editor;
$node->stop;
# Sheets that a transaction reads as a whole are passed over, also when the clock's hand stands between their tiles.
{
	restart_cold();
	my @cold = make_sheets(300, 1);
	my @wide = split /\n/, ask("SELECT sheet.create('wide', 64, 160) FROM generate_series(1, 8)");
	my $committer = new_session($node);
	for my $round (1 .. 3)
	{
		ask("SELECT count(write_block($_, $round, 0, 16 * k)) FROM generate_series(0, 9) k") for @wide;
		ask("SELECT count(*) FROM sheet.range($cold[$_])") for map { $round * 30 + $_ } 0 .. 29;
		$committer->rows('BEGIN');
		$committer->rows("SELECT sheet.commit($_, 'whole')") for @wide;
		my $failures = ask('SELECT load_failures FROM sheet.cache_stats');
		ask("SELECT count(*) FROM sheet.range($cold[$_])") for map { 150 + $round * 30 + $_ } 0 .. 29;
		is(ask('SELECT load_failures FROM sheet.cache_stats'), $failures, "round $round: other sheets are loaded beside those that are pinned");
		$committer->rows('ROLLBACK');
	}
	$committer->end;
}

done_testing();
