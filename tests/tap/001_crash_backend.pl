# kill -9 of a backend in the middle of edits: the server starts again by itself, and every acknowledged edit is there.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep);

seed_random();
my $node = new_server('crash');
my $dir = PostgreSQL::Test::Utils::tempdir();
my @sheets = map { $node->safe_psql('postgres', "SELECT sheet.create('crash $_', 100, 26)") } 1 .. 3;
my $acked = 0;
for my $round (1 .. 6)
{
	my @writers = start_writers($node, $dir, 4, @sheets);
	$node->poll_query_until('postgres', "SELECT count(*) = 4 FROM pg_stat_activity WHERE application_name = 'writer'") or die;
	wait_until_written($dir, 60);
	sleep rand 0.4;
	my @backends = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'");
	kill 9, $backends[ rand @backends ] if @backends;
	end_writers(@writers);
	is(scalar @backends, 4, "round $round: four writers were at it");
	wait_until_up($node);
	$acked = check_sheets($node, "round $round", $dir, @sheets);
}
cmp_ok($acked, '>', 300, 'enough was written to mean something');
$node->stop;
done_testing();
