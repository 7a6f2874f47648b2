# Which sheets leave the cache, and when: the least recently used first, no more than the room that is needed, never one
# that a transaction is editing. What does not fit is served all the same, and room that was given back holds others.
# Sheets are as large as one block of cells, so that it does not matter whether blocks or sheets are what leaves. What to
# expect is computed from what sheet.cache_entries says before each step.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use SheetTest;
use Test::More;

seed_random();
my $node = new_server('order');
my $capacity = 4 * 1024 * 1024;
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '4MB'\nautovacuum = off\npg_sheet.version_edits = 0\npg_sheet.version_bytes = 0");
$node->restart;
my $session = new_session($node);
my @sheets;

sub ask { return $session->rows(@_) }

# A block of 64 x 16 cells whose contents tell the sheet, the block and the cell.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION block_text(n bigint, block integer, cell integer) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT rpad(n || '/' || block || '/' || cell || '/', 96, 'x') $$;
CREATE FUNCTION write_block(sheet bigint, block integer) RETURNS bigint LANGUAGE sql AS $$
	SELECT sheet.set_range(sheet, 'A' || block * 64 + 1,
		(SELECT array_agg(line ORDER BY r) FROM (SELECT r, array_agg(block_text(sheet, block, r * 16 + c) ORDER BY c) AS line
			FROM generate_series(0, 63) r, generate_series(0, 15) c GROUP BY r) l))
$$;
-- Cells that are not as they were written; all of them when the number of cells is another.
CREATE FUNCTION wrong_cells(sheet bigint, blocks integer) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FILTER (WHERE content <> block_text(sheet, "row" / 64, "row" % 64 * 16 + col)) + abs(count(*) - blocks * 1024) FROM sheet.range(sheet)
$$;
SQL

sub make_sheets
{
	my ($count) = @_;
	return split /\n/, ask("SELECT id FROM (SELECT sheet.create('order', 64, 16) AS id FROM generate_series(1, $count)) s, LATERAL write_block(id, 0)");
}

# Sheets with cells in the cache, most recently used first: [id, bytes]
sub cached
{
	return map { [ split /\|/ ] } split /\n/, ask('SELECT sheet_id, sum(bytes) FROM sheet.cache_entries WHERE cached GROUP BY sheet_id ORDER BY min(place)');
}

sub sum_bytes
{
	my $sum = 0;
	$sum += $_->[1] for @_;
	return $sum;
}

# What a step (which uses one sheet) has done to the cache that is wrong, and how many others left.
sub use_sheet
{
	my ($id, $step, %held) = @_;
	my @before = grep { $_->[0] != $id } cached();
	my $had = ask("SELECT coalesce(sum(bytes), 0) FROM sheet.cache_entries WHERE sheet_id = $id");
	my $answer = $step->();
	my ($bytes, $budget) = split /\|/, ask('SELECT bytes, budget FROM sheet.cache_stats');
	my @after = cached();
	my @wrong = $answer eq 'right' ? () : "it answered $answer";
	push @wrong, "$bytes bytes of $budget" if $bytes > $budget || $budget != $capacity;
	push @wrong, "the entries have " . sum_bytes(@after) . " bytes, the cache $bytes" if $bytes != sum_bytes(@after);
	my $own = shift @after;
	push @wrong, 'it is not the most recently used' if !$own || $own->[0] != $id;
	my %stays = map { $_->[0] => 1 } @after;
	my @evicted = grep { !$stays{ $_->[0] } } @before;
	my @free = grep { !$held{ $_->[0] } } @before;
	my @oldest = @evicted ? @free[ -@evicted .. -1 ] : ();
	push @wrong, 'left: ' . join(' ', map { $_->[0] } @evicted) . ', oldest: ' . join(' ', map { $_->[0] } @oldest)
	  if join(' ', map { $_->[0] } @evicted) ne join(' ', map { $_->[0] } @oldest);
	push @wrong, 'the others changed places' if join(' ', map { $_->[0] } @after) ne join(' ', map { $_->[0] } grep { $stays{ $_->[0] } } @before);
	return (scalar @evicted, join('; ', @wrong), ($own ? $own->[1] : 0) - $had, sum_bytes(@before) + $had, @evicted);
}

sub read_sheet
{
	my ($id, $blocks) = @_;
	return sub { ask("SELECT CASE wrong_cells($id, $blocks) WHEN 0 THEN 'right' ELSE 'wrong cells' END") };
}

# Uses all of them; returns how many are there then.
sub fill
{
	ask("SELECT wrong_cells(id, 1) FROM unnest('{" . join(',', @sheets) . "}'::bigint[]) id");
	return scalar(my @there = cached());
}

# A load that has found no room is not tried again at once.
sub read_until_cached
{
	my ($id, $blocks) = @_;
	for (1 .. 100)
	{
		my $state = read_sheet($id, $blocks)->();
		return $state if $state ne 'right';
		return 'cached' if grep { $_->[0] == $id } cached();
	}
	return 'never cached';
}

sub restart_cold
{
	$session->end;
	$node->restart;
	$session = new_session($node);
}

@sheets = make_sheets(3);
restart_cold();
ask("SELECT wrong_cells($sheets[0], 1)");
my $unit = sum_bytes(cached());
my $fit = int($capacity / $unit);
note "a sheet takes $unit bytes: $fit fit";
push @sheets, make_sheets(3 * $fit - @sheets);
restart_cold();

# ---- three times the capacity ----

my (@wrong, $left, @first);
for my $n (0 .. $#sheets)
{
	my ($evicted, $wrong) = use_sheet($sheets[$n], read_sheet($sheets[$n], 1));
	push @wrong, "sheet $n: $wrong" if $wrong;
	push @first, $n if $evicted && !@first;
	$left += $evicted;
	my $there = $n + 1 - $left;
	push @wrong, "$there sheets, not $first[0]" if @first && abs($there - $first[0]) > 1; # the allocator's blocks may be cut otherwise
}
is("@wrong", '', 'sheets of equal size leave in the order in which they were used, and no more than must');
note "$first[0] of $fit fitted before the first left; $left left in all";
my $held = () = cached();
is($left + $held, scalar @sheets, 'and each that is not there has left once');

# Uses at random, of what is there and what is not.
@wrong = ();
my $hits = ask('SELECT hits FROM sheet.cache_stats');
for (1 .. 150)
{
	my @there = map { $_->[0] } cached();
	my $id = rand() < 0.5 ? $there[ rand @there ] : $sheets[ rand @sheets ];
	my $was = grep { $_ == $id } @there;
	my ($evicted, $wrong) = use_sheet($id, read_sheet($id, 1));
	push @wrong, $wrong if $wrong;
	push @wrong, 'a sheet that was there put others out' if $was && $evicted;
}
is("@wrong", '', 'used at random, the least recently used leave');
cmp_ok(ask('SELECT hits FROM sheet.cache_stats') - $hits, '>=', 70, 'and those that are there are read from there');


# ---- growth ----

sub grow
{
	my ($id, $from, $to) = @_;
	return sub { ask("SELECT CASE WHEN count(write_block($id, b)) > 0 AND wrong_cells($id, $to + 1) = 0 THEN 'right' ELSE 'wrong cells' END FROM generate_series($from, $to) b") };
}

for my $round (1 .. 3)
{
	my @there = map { $_->[0] } cached();
	my $id = $there[ rand @there ];
	my ($evicted, $wrong, $grown) = use_sheet($id, grow($id, 1, 3));
	is($wrong, '', "growth $round: the least recently used make room");
	# The allocator's blocks may be cut so that one sheet's room more or less is free.
	cmp_ok(abs($evicted - 3), '<=', 1, "growth $round: of four sheets' room by three ($grown bytes), $evicted left");
	# It goes, so that the next round begins with sheets of one size.
	ask("SELECT sheet.purge($id)");
	@sheets = grep { $_ != $id } @sheets;
	fill();
}

# Room for edits that were rolled back may be kept for the next ones, but counts, and goes with the sheet.
my ($id, $bytes) = @{ (cached())[0] };
my ($evicted, $wrong) = use_sheet($id, sub { ask("BEGIN; SELECT count(*) FROM (SELECT write_block($id, b) FROM generate_series(1, 3) b) t; ROLLBACK"); 'right' });
is($wrong, '', 'growth that is rolled back: the order holds');
cmp_ok($evicted, '>', 1, 'the room was there before it was needed');
is(read_sheet($id, 1)->(), 'right', 'and the cells are as they were');
@sheets = ((grep { $_ != $id } @sheets), $id);
fill();
is((cached())[0][0] . ' ' . (cached())[0][1], "$id $bytes", 'and read anew it is as large as before');

# ---- sheets that are being edited stay ----

fill();
my $editor = new_session($node);
my %held = map { $_->[0] => 1 } (cached())[ 3, 5, 8 ];
$editor->ask('BEGIN');
$editor->ask("SELECT sheet.set($_, 0, 0, block_text($_, 0, 0) || 'not yet')") for sort { $a <=> $b } keys %held;
@wrong = ();
for my $n (0 .. $#sheets)
{
	next if $held{ $sheets[$n] };
	my ($evicted, $wrong) = use_sheet($sheets[$n], read_sheet($sheets[$n], 1), %held);
	push @wrong, "sheet $n: $wrong" if $wrong;
}
is("@wrong", '', 'of all others the least recently used leave');
is(scalar(grep { $held{ $_->[0] } } cached()), 3, 'sheets that a transaction edits stay');
is(read_sheet($_, 1)->(), 'right', 'others see them as they were') for keys %held;
$editor->ask('ROLLBACK');
use_sheet($_, read_sheet($_, 1)) for grep { !$held{$_} } @sheets;
is(scalar(grep { $held{ $_->[0] } } cached()), 0, 'until it ends');

# What was passed over while it was held has its place again, before what was used later.
for my $end ('ROLLBACK', 'COMMIT')
{
	fill();
	my ($passed) = map { $_->[0] } (cached())[-1];
	$editor->ask('BEGIN');
	$editor->ask("SELECT sheet.set($passed, 0, 0, block_text($passed, 0, 0) || 'not yet')");
	$editor->ask("SELECT sheet.set($passed, 0, 0, block_text($passed, 0, 0))");
	read_sheet($_, 1)->() for reverse grep { $_ != $passed } map { $_->[0] } cached();
	my %there = map { $_->[0] => 1 } cached();
	my @absent = grep { !$there{$_} } @sheets;
	@wrong = ();
	for my $id (@absent[ 0, 1 ])
	{
		my ($evicted, $wrong) = use_sheet($id, read_sheet($id, 1), $passed => 1);
		push @wrong, $wrong if $wrong;
	}
	is("@wrong", '', "$end: a sheet that is held is passed over");
	$editor->ask($end);
	@wrong = ();
	for my $id (@absent[ 2 .. 4 ])
	{
		my ($evicted, $wrong) = use_sheet($id, read_sheet($id, 1));
		push @wrong, $wrong if $wrong;
	}
	is("@wrong", '', "$end: afterwards it is the first to leave");
	is(scalar(grep { $_->[0] == $passed } cached()), 0, "$end: it has left");
}

# All of the cache is held.
$editor->ask('BEGIN');
%held = ();
while (my @free = grep { !$held{$_} } map { $_->[0] } cached())
{
	$held{ $free[-1] } = 1;
	$editor->ask("SELECT sheet.set($free[-1], 0, 0, block_text($free[-1], 0, 0) || 'not yet')");
}
my %stay = map { $_->[0] => 1 } cached();
my ($other) = grep { !$held{$_} } @sheets;
is(read_sheet($other, 1)->(), 'right', 'a sheet for which there is no room is served');
cmp_ok(ask("SELECT sheet.set($other, 'A1', 'changed')"), '>', 0, 'and can be edited');
is(ask("SELECT sheet.get($other, 'A1')"), 'changed', 'and shows the edit');
is(ask("SELECT sheet.set($other, 0, 0, block_text($other, 0, 0)) > 0"), 't', 'and another one');
is(join(' ', sort map { $_->[0] } cached()), join(' ', sort keys %stay), 'and nothing that is held has left');
is(ask('SELECT bytes <= budget FROM sheet.cache_stats'), 't', 'and the budget is kept');
$editor->ask('ROLLBACK');
is(read_until_cached($other, 1), 'cached', 'when there is room it is cached');

# ---- too large ----

my $large = ask("SELECT sheet.create('large', 64, 16)");
@wrong = ();
for my $block (0 .. 63)
{
	ask("SELECT write_block($large, $block)");
	my $state = $block % 8 == 7 ? ask("SELECT CASE wrong_cells($large, $block + 1) WHEN 0 THEN 'right' ELSE 'wrong cells' END") : 'right';
	my $within = ask('SELECT bytes <= budget FROM sheet.cache_stats');
	push @wrong, "block $block: $state, $within" if "$state $within" ne 'right t';
}
is("@wrong", '', 'a sheet that outgrows the cache is right at every size, and the budget is kept');
cmp_ok(ask("SELECT sum(length(content)) FROM sheet.range($large)"), '>', $capacity, 'it is larger than the cache');
is(ask("SELECT string_agg(content, ' ' ORDER BY \"row\") FROM (SELECT * FROM sheet.range($large, 'B64:B65') UNION ALL SELECT * FROM sheet.range($large, 'B4000')) t") =~ s/x+//gr,
	"$large/0/1009/ $large/1/1/ $large/62/497/", 'parts of it are right');
is(ask("SELECT sheet.set($large, 4095, 15, 'last') > 0, sheet.get($large, 'P4096')"), 't|' . ask("SELECT block_text($large, 63, 1023)"), 'an edit is not seen by its own statement');
is(ask("SELECT sheet.get($large, 'P4096')"), 'last', 'but by the next');
is(read_until_cached($sheets[0], 1), 'cached', 'and others are cached as before');
for my $stored ('its log alone', 'a version')
{
	ask("SELECT sheet.commit($large, 'large')") if $stored eq 'a version';
	restart_cold();
	fill();
	my @there = cached();
	my $evictions = ask('SELECT evictions FROM sheet.cache_stats');
	is(ask("SELECT count(*) FROM sheet.range($large)"), 64 * 1024, "stored as $stored, the sheet is read");
	is(ask("SELECT load_failures, evictions - $evictions FROM sheet.cache_stats"), '1|0', 'its load fails before anything is taken out for it');
	is_deeply([cached()], \@there, 'and the others are there as before');
}

# ---- room that is given back ----

my @fitted;
for my $round (1 .. 4)
{
	ask("SELECT sheet.purge(sheet_id) FROM sheet.list");
	is(ask('SELECT bytes FROM sheet.cache_stats'), 0, "round $round: purged sheets take no room");
	@sheets = make_sheets(2 * $first[0]);
	push @fitted, fill();
}
is(scalar(grep { abs($_ - $first[0]) > 1 } @fitted), 0, 'as many sheets fit as into a new cache');
$_->end for $session, $editor;
$node->stop;
done_testing();
