# Properties of sheets: random cells, structure edits and properties against a plain model, with transactions that are rolled
# back, versions, rollbacks and times of the past; after crashes, on a standby, and in a dump that is restored.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

use constant { LAST_ROW => 16777215, LAST_COL => 16383 };

seed_random();
my $node = new_server('properties', streaming => 1);
my $standby = start_standby($node, 'properties_standby');
my $session = new_session($node);
my $sheet = $session->rows("SELECT sheet.create('properties', 12, 8)");

# ---- the model: a hash of "row col to_row to_col key" => value ---------------------------------------------------------------

my %model;

sub moved
{
	my ($first, $last, $limit, $insert, $at, $n) = @_;
	return ($first, $last) if $first == 0 && $last == $limit;
	if ($insert)
	{
		$first += $n if $first >= $at;
		$last += $n if $last >= $at;
		return $first > $limit ? () : ($first, $last > $limit ? $limit : $last);
	}
	my @left = grep { $_ < $at || $_ >= $at + $n } $first .. $last;
	return () unless @left;
	return map { $_ >= $at + $n ? $_ - $n : $_ } @left[ 0, -1 ];
}

sub model_structure
{
	my ($rows, $insert, $at, $n) = @_;
	my (%after, %size);
	for my $place (sort keys %model)
	{
		my ($row, $col, $to_row, $to_col, $key) = split ' ', $place;
		my $size = ($to_row - $row + 1) * ($to_col - $col + 1);
		my @axis = $rows ? moved($row, $to_row, LAST_ROW, $insert, $at, $n) : moved($col, $to_col, LAST_COL, $insert, $at, $n);
		next unless @axis;
		($row, $to_row) = @axis if $rows;
		($col, $to_col) = @axis unless $rows;
		my $to = "$row $col $to_row $to_col $key";
		next if exists $size{$to} && $size{$to} < $size;
		$size{$to} = $size;
		$after{$to} = $model{$place};
	}
	%model = %after;
}

sub model_text { return join "\n", map { "$_=$model{$_}" } sort keys %model; }

# The same of the database: of now, of a version, of a time.
sub properties
{
	my ($from, @past) = @_;
	my $rows = $from->rows('SELECT concat_ws(\' \', coalesce(row0, 0), coalesce(col0, 0), coalesce(row1, ' . LAST_ROW . '), coalesce(col1, ' . LAST_COL
		  . "), key) || '=' || value FROM sheet.properties(" . join(', ', $sheet, @past) . ')');
	return join "\n", sort split /\n/, $rows;
}

sub cells
{
	my ($from, @past) = @_;
	my $call = @past ? "sheet.at($sheet, $past[0])" : "sheet.range($sheet)";
	return $from->rows("SELECT string_agg(a1 || '=' || content, ' ' ORDER BY \"row\", col) FROM $call");
}

# ---- random edits ------------------------------------------------------------------------------------------------------------

my ($rows, $cols) = (12, 8);

sub random_target
{
	my ($row, $col) = (int rand $rows, int rand $cols);
	my @targets = (
		[ 0, 0, LAST_ROW, LAST_COL ],
		[ $row, 0, $row + int rand 3, LAST_COL ],
		[ 0, $col, LAST_ROW, $col + int rand 3 ],
		[ $row, $col, $row + int rand 3, $col + int rand 3 ]);
	return @{ $targets[ rand @targets ] };
}

sub target_name
{
	my ($row, $col, $to_row, $to_col) = @_;
	return 'NULL' if $to_row == LAST_ROW && $to_col == LAST_COL;
	return sprintf "'%d:%d'", $row + 1, $to_row + 1 if $to_col == LAST_COL;
	my ($left, $right) = map { chr(65 + $_) } $col, $to_col;
	return "'$left:$right'" if $to_row == LAST_ROW;
	return sprintf "'%s%d:%s%d'", $left, $row + 1, $right, $to_row + 1;
}

sub one_edit
{
	my $kind = rand 10;
	if ($kind < 2)
	{
		return sprintf "SELECT sheet.set(%d, %d, %d, 'c%d')", $sheet, rand $rows, rand $cols, rand 100;
	}
	if ($kind < 4)
	{
		my ($of_rows, $insert, $at, $n) = (rand 2 < 1, rand 2 < 1, int rand 10, 1 + int rand 2);
		my $extent = $of_rows ? \$rows : \$cols;
		$insert = 1 if $$extent < 6;
		$insert = 0 if $$extent > 18;
		$at = int rand($$extent - $n);
		$$extent += $insert ? $n : -$n;
		model_structure($of_rows, $insert, $at, $n);
		return sprintf 'SELECT sheet.%s_%s(%d, %d, %d)', $insert ? 'insert' : 'delete', $of_rows ? 'rows' : 'columns', $sheet, $at, $n;
	}
	my @target = random_target();
	my $key = ('a', 'b')[ rand 2 ];
	my $value = rand 5 < 1 ? 'null' : int rand 50;
	my $place = join ' ', @target, $key;
	if ($value eq 'null') { delete $model{$place}; }
	else
	{
		$model{$place} = $value;
		$rows = $target[2] + 1 if $target[2] < LAST_ROW && $target[2] >= $rows;
		$cols = $target[3] + 1 if $target[3] < LAST_COL && $target[3] >= $cols;
	}
	return "SELECT sheet.set_property($sheet, " . target_name(@target) . ", '$key', '$value')";
}

# ---- the model test ----------------------------------------------------------------------------------------------------------

my %versions;    # the model and the cells of each
my @times;       # [time, model, cells]
my ($wrong, $edits) = (0, 0);

sub compare
{
	my ($what, $got, $expected) = @_;
	return if $got eq $expected;
	is($got, $expected, $what) if $wrong++ < 3;
}

my $rounds = rounds_to_run(60, 600);
for my $round (1 .. $rounds)
{
	my $way = rand 10;
	if ($way < 2)    # a transaction that is rolled back, to a savepoint or as a whole
	{
		my %before = %model;
		my @extent = ($rows, $cols);
		my $point = rand 2 < 1;
		$session->rows('BEGIN');
		$session->rows($point ? 'SAVEPOINT s' : 'SELECT 1');
		$session->rows(one_edit()) for 1 .. 4;
		compare('within the transaction', properties($session), model_text());
		$session->rows($point ? 'ROLLBACK TO s' : 'ROLLBACK');
		%model = %before;
		($rows, $cols) = @extent;
		$session->rows('COMMIT') if $point;
	}
	elsif ($way < 3 && %versions)
	{
		my ($version) = (sort { $a <=> $b } keys %versions)[ rand keys %versions ];
		my $new = $session->rows("SELECT sheet.rollback($sheet, $version)");
		%model = %{ $versions{$version}{model} };
		compare("cells after a rollback to version $version", cells($session), $versions{$version}{cells});
		($rows, $cols) = split /\|/, $session->rows("SELECT rows, cols FROM sheet.read_cells($sheet, 0, 0, 0, 0)");
		$versions{$new} = { model => {%model}, cells => cells($session) };
	}
	else
	{
		my $inside = rand 3 < 1;
		$session->rows('BEGIN') if $inside;
		for (1 .. 1 + int rand 6)
		{
			$session->rows(one_edit());
			$edits++;
		}
		$session->rows('COMMIT') if $inside;
	}
	compare("round $round", properties($session), model_text());
	if (rand 4 < 1)
	{
		my $version = $session->ask("SELECT sheet.commit($sheet)");
		$versions{$version} = { model => {%model}, cells => cells($session) } if $version =~ /^\d+$/;
	}
	my $at = $session->rows("SELECT max(at) FROM sheet.log_edits($sheet)");
	push @times, [ $at, model_text(), cells($session) ];
}
for my $version (sort { $a <=> $b } keys %versions)
{
	my %then = %{ $versions{$version}{model} };
	compare("version $version", properties($session, "$version\::bigint"), join "\n", map { "$_=$then{$_}" } sort keys %then);
}
for my $time (@times)
{
	compare("the properties at $time->[0]", properties($session, "'$time->[0]'::timestamptz"), $time->[1]);
	compare("the cells at $time->[0]", cells($session, "'$time->[0]'::timestamptz"), $time->[2]);
}
is($wrong, 0, "$rounds rounds, $edits edits, " . keys(%versions) . ' versions and ' . @times . ' times are what the model says');
is($session->rows("SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'the replay of the log gives the same');

# The difference of two versions is that of their models.
my ($a, $b) = (sort { $a <=> $b } keys %versions)[ 0, -1 ];
my %differ = map { $_ => 1 } grep { ($versions{$a}{model}{$_} // '') ne ($versions{$b}{model}{$_} // '') } keys %{ $versions{$a}{model} }, keys %{ $versions{$b}{model} };
is($session->rows("SELECT count(*) FROM sheet.diff_properties($sheet, $a, $b)"), scalar keys %differ, 'differences of versions');

# ---- other servers -----------------------------------------------------------------------------------------------------------

$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my $there = new_session($standby);
is(properties($there), model_text(), 'a standby has the same properties');
is(properties($there, "'$times[3][0]'::timestamptz"), $times[3][1], 'and those of the past');
like($there->ask("SELECT sheet.set_property($sheet, 'A1', 'k', '1')"), qr/^ERROR 25006/, 'and refuses to set any');
$there->end;

# A crash: what is committed stays, what is not is gone.
$session->rows(one_edit()) for 1 .. 5;
my $open = new_session($node);
$open->rows("BEGIN; SELECT sheet.set_property($sheet, 'A1', 'lost', '1'), sheet.delete_rows($sheet, 0)");
$node->stop('immediate');
$node->start;
$session = new_session($node);
is(properties($session), model_text(), 'after a crash the properties are those that were committed');
is($session->rows("SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'and the sheet is sound');

# In a version that the background worker makes, and after it.
$session->rows("ALTER SYSTEM SET pg_sheet.version_edits = 20");
$session->rows("ALTER SYSTEM SET pg_sheet.version_interval = 0");
$session->rows('SELECT pg_reload_conf()');
my $automatic = "SELECT count(*) FROM sheet.versions($sheet) WHERE cause = 'log'";
my $before = $session->rows($automatic);
for my $try (1 .. 200)
{
	$session->rows(one_edit());
	last if $session->rows($automatic) > $before;
}
$node->poll_query_until('postgres', "SELECT count(*) > $before FROM sheet.versions($sheet) WHERE cause = 'log'") or die;
is(properties($session), model_text(), 'an automatic version changes nothing');
is($session->rows("SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'and has the properties of the log');

# A dump.
my $file = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->command_ok([ 'pg_dump', '--format=custom', '-f', $file, $node->connstr('postgres') ], 'dumped');
$node->safe_psql('postgres', 'CREATE DATABASE restored TEMPLATE template0');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $file ], 'restored');
my $restored = new_session($node, database => 'restored');
is(properties($restored), model_text(), 'the same properties');
is(properties($restored, "'$times[5][0]'::timestamptz"), $times[5][1], 'and those of the past');
is($restored->rows("SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'and the sheet is sound');
$restored->end;
$session->end;
done_testing();
