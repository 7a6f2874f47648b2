# Formulas under random structure edits, against an oracle in Perl: a plain list of the names of all rows and columns, in which
# each end of a reference is looked up. Several functions, transactions, savepoints, versions and rollbacks; a cache that holds a
# part of the sheet, a restart, and no cache at all.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

my $rounds = rounds_to_run(60, 600);
my ($rows, $cols) = (300, 60);
seed_random();
my $seed = int rand 1_000_000;
srand $seed;

my $node = new_server('formulas');
$node->append_conf('postgresql.conf', "fsync = off\nautovacuum = off\npg_sheet.cache_size = '160kB'\npg_sheet.version_edits = 500\npg_sheet.version_interval = 0\n");
$node->restart;
my $id = $node->safe_psql('postgres', "SELECT sheet.create('formulas', $rows, $cols)");

# ---- the model: cells by the names of their row and column; a formula is a list of texts and references ----

my @lines = ([0 .. $rows - 1], [0 .. $cols - 1]);
my $names = 100_000;
my %cells;

# A reference is [kind, rows, columns]; rows and columns have the names of the first and the last line and their dollar signs, or
# are undef for whole columns or rows. `order` has the names of all lines, those that are gone included.
my @order = ([0 .. $rows - 1], [0 .. $cols - 1]);

sub column_name { my $n = shift() + 1; my $name = ''; while ($n > 0) { $name = chr(65 + ($n - 1) % 26) . $name; $n = int(($n - 1) / 26) } return $name }

sub span
{
	my ($axis, $first, $last, $there, $place) = @_;
	my ($in, $from, $to) = (0);
	foreach my $name (@{ $order[$axis] })
	{
		$in = 1 if $name == $first;
		if ($in && exists $there->{$name}) { $from //= $there->{$name}; $to = $there->{$name} }
		last if $name == $last;
	}
	return ($from, $to);
}

sub text_of
{
	my ($content, $there) = @_;
	return $content unless ref $content;
	my $text = '=';
	foreach my $part (@$content)
	{
		if (!ref $part) { $text .= $part; next }
		my ($range, @axes) = @$part;
		my @ends = ('', '');
		if ($range eq 'gone') { $text .= '#REF!'; next }
		foreach my $axis (1, 0)
		{
			my $of = $axes[$axis] or next;
			my ($from, $to) = span($axis, $of->{first}, $of->{last}, $there->[$axis]);
			if (!defined $from) { $part->[0] = 'gone'; last }
			($of->{first}, $of->{last}) = @{ $lines[$axis] }[$from, $to]; # what is gone is forgotten
			$ends[0] .= $of->{sign}[0] . ($axis ? column_name($from) : $from + 1);
			$ends[1] .= $of->{sign}[1] . ($axis ? column_name($to) : $to + 1);
		}
		$text .= $part->[0] eq 'gone' ? '#REF!' : $range eq 'cell' ? $ends[0] : "$ends[0]:$ends[1]";
	}
	return $text;
}

sub places { return [map { my %at; @at{@$_} = 0 .. $#$_; \%at } @lines] }

sub dump_model
{
	my $there = places();
	return join "\n", map { "$_->[0] $_->[1] $_->[2]" } sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
		map { my ($row, $col) = split /,/; [$there->[0]{$row}, $there->[1]{$col}, text_of($cells{$_}, $there)] } keys %cells;
}

sub check
{
	my ($name) = @_;
	my $is = $node->safe_psql('postgres', "SELECT \"row\" || ' ' || col || ' ' || content FROM sheet.range($id) ORDER BY \"row\", col");
	my $wanted = dump_model();
	my ($first) = grep { ((split /\n/, $is)[$_] // '') ne ((split /\n/, $wanted)[$_] // '') } 0 .. 5000;
	diag(sprintf "%s: %s, not %s", $name, (split /\n/, $is)[$first] // 'nothing', (split /\n/, $wanted)[$first] // 'nothing') if defined $first;
	return !defined $first;
}

# ---- what happens ----

sub random_line { my ($axis) = @_; return int rand(@{ $lines[$axis] } > 40 ? rand() < 0.7 ? 40 : @{ $lines[$axis] } : 40) }
sub sign { return rand() < 0.3 ? '$' : '' }

sub axis_of
{
	my ($axis, $wide) = @_;
	my $first = int rand @{ $lines[$axis] };
	my $last = $wide ? $first + int rand(@{ $lines[$axis] } - $first) : $first;
	$last = $first + 8 if $last > $first + 8 && rand() < 0.8;
	return { first => $lines[$axis][$first], last => $lines[$axis][$last], sign => [sign(), sign()] };
}

sub random_reference
{
	my $kind = rand();
	return ['cell', axis_of(0, 0), axis_of(1, 0)] if $kind < 0.5;
	return ['range', axis_of(0, 1), axis_of(1, 1)] if $kind < 0.8;
	return ['range', axis_of(0, 1), undef] if $kind < 0.9;
	return ['range', undef, axis_of(1, 1)];
}

sub random_content
{
	return 'text A5' if rand() < 0.2;
	my @parts;
	foreach (0 .. int rand 3)
	{
		push @parts, '+' if @parts;
		push @parts, rand() < 0.5 ? (random_reference()) : ('SUM(', random_reference(), ',"A1:B2")');
		push @parts, ('', '', '*LOG10(5)', '&"$A$1"', '-Sheet2!A5', "+'A 1'!B2:C3", '+A1_x')[rand 7];
	}
	return \@parts;
}

sub quote { my $text = shift; $text =~ s/'/''/g; return "'$text'" }

sub put
{
	my ($row, $col) = (int rand @{ $lines[0] }, int rand @{ $lines[1] });
	my $content = random_content();
	$cells{"$lines[0][$row],$lines[1][$col]"} = $content;
	return "SELECT sheet.set($id, $row, $col, " . quote(text_of($content, places())) . ')';
}

sub move
{
	my $axis = int rand 2;
	my $insert = @{ $lines[$axis] } < 20 || rand() < 0.5;
	my $n = 1 + int rand 6;
	my $at = int rand(@{ $lines[$axis] } - ($insert ? 0 : $n));
	my $what = ($insert ? 'insert_' : 'delete_') . ('rows', 'columns')[$axis];
	if ($insert)
	{
		my @new = map { $names++ } 1 .. $n;
		my ($where) = grep { $order[$axis][$_] == $lines[$axis][$at] } 0 .. $#{ $order[$axis] };
		splice @{ $lines[$axis] }, $at, 0, @new;
		splice @{ $order[$axis] }, $where, 0, @new;
	}
	else
	{
		my %gone = map { $_ => 1 } splice @{ $lines[$axis] }, $at, $n;
		delete $cells{$_} foreach grep { $gone{ (split /,/)[$axis] } } keys %cells;
		dump_model(); # what is gone now is gone for good
	}
	return "SELECT sheet.$what($id, $at, $n)";
}

my $done = 0;
my $good = 1;
sub some { my ($n) = @_; return map { rand() < 0.6 ? put() : move() } 1 .. $n }

$node->safe_psql('postgres', join ';', map { put() } 1 .. 400);
for my $round (1 .. $rounds)
{
	my @sql = rand() < 0.3 ? ('BEGIN', some(3), 'SAVEPOINT a', "SELECT sheet.insert_rows($id, 3, 2), sheet.set($id, 0, 0, '=A1:B9'), sheet.delete_columns($id, 1, 2)", 'ROLLBACK TO a', some(3), 'COMMIT') : some(4);
	$node->safe_psql('postgres', join ';', @sql);
	if ($round % 20 == 10)
	{
		my $version = $node->safe_psql('postgres', "SELECT sheet.commit($id, 'round $round')");
		my $was = $node->safe_psql('postgres', "SELECT md5(string_agg(\"row\" || ' ' || col || ' ' || content, '|' ORDER BY \"row\", col)) FROM sheet.range($id)");
		$node->safe_psql('postgres', 'BEGIN; ' . join(';', "SELECT sheet.insert_rows($id, 2, 3)", "SELECT sheet.delete_columns($id, 0, 1)", "SELECT sheet.set($id, 0, 0, '=A5')") . '; COMMIT');
		$node->safe_psql('postgres', "SELECT sheet.rollback($id, $version)");
		my $is = $node->safe_psql('postgres', "SELECT md5(string_agg(\"row\" || ' ' || col || ' ' || content, '|' ORDER BY \"row\", col)) FROM sheet.range($id)");
		$good &&= $is eq $was;
	}
	if ($round == int($rounds / 3)) { $node->restart }
	if ($round == int($rounds * 2 / 3)) { $node->append_conf('postgresql.conf', "pg_sheet.cache_size = '0'\n"); $node->restart }
	$done++ if check("round $round, seed $seed");
	last if $done < $round;
}
is($done, $rounds, "$rounds rounds of structure edits and formulas agree with the oracle (seed $seed)");
ok($good, 'a rollback over structure edits brings the formulas back');
is($node->safe_psql('postgres', "SELECT string_agg(what, '; ') FROM sheet.fsck($id, true)"), 'clean', 'the log says the same');
done_testing();
