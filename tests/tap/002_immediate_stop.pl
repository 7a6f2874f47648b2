# An immediate stop of the server in the middle of edits loses nothing that was acknowledged.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep);

seed_random();
my $node = new_server('stop');
my $dir = PostgreSQL::Test::Utils::tempdir();
my @sheets = map { $node->safe_psql('postgres', "SELECT sheet.create('stop $_', 100, 26)") } 1 .. 3;
my $acked = 0;
for my $round (1 .. 5)
{
	my @writers = start_writers($node, $dir, 4, @sheets);
	wait_until_written($dir, 70);
	sleep rand 0.5;
	# Now and then a checkpoint of PostgreSQL is what is interrupted, and its end what recovery starts from.
	$node->safe_psql('postgres', 'CHECKPOINT') if $round % 2;
	sleep rand 0.2;
	$node->stop('immediate');
	end_writers(@writers);
	$node->start;
	$acked = check_sheets($node, "round $round", $dir, @sheets);
}
cmp_ok($acked, '>', 300, 'enough was written to mean something');
$node->stop;
done_testing();
