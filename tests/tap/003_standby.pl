# A streaming standby shows the same cells and versions, refuses to write, and goes on without a gap when it is promoted
# after the primary has died in the middle of edits.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep);

seed_random();
my $primary = new_server('primary', streaming => 1);
my @sheets = map { $primary->safe_psql('postgres', "SELECT sheet.create('standby $_', 100, 26)") } 1 .. 2;
my $standby = start_standby($primary, 'standby');

for my $round (1 .. 4)
{
	for my $sheet (@sheets)
	{
		my @edits = map { [ int rand 80, int rand 20, "round $round edit $_" ] } 1 .. 50;
		$primary->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch(@edits) . "); SELECT sheet.commit($sheet, 'round $round')");
	}
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(sheet_state($standby, $_), sheet_state($primary, $_), "round $round: the standby shows the same cells of sheet $_") for @sheets;
}
my $version = "SELECT seq, rows, cols, md5(cells) FROM sheet.read_version($sheets[0], 2)";
is($standby->safe_psql('postgres', $version), $primary->safe_psql('postgres', $version), 'and the same versions');
my $log = "SELECT md5(string_agg(r::text, ',' ORDER BY seq)) FROM sheet.segment h, sheet.log_edits(h.sheet_id) r WHERE r.segment_id = h.segment_id AND h.sheet_id = $sheets[0]";
is($standby->safe_psql('postgres', $log), $primary->safe_psql('postgres', $log), 'and the same log');
is($standby->safe_psql('postgres', 'SELECT * FROM sheet.doctor()'), '', 'sheet.doctor() answers, and has nothing to say');
for my $call ("sheet.apply($sheets[0], " . batch([ 0, 0, 'no' ]) . ')', "sheet.commit($sheets[0])", "sheet.rollback($sheets[0], 1)", "sheet.claim($sheets[0], 1, 'x')")
{
	my ($code, $out, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT $call");
	like($err, qr/ERROR:\s+25006: cannot execute .* (during recovery|in a read-only transaction)/, "refused: $call");
}

# Damage that nobody can repair is told there as well, also to who lets repair what can be.
# Who opens a sheet there is not kept from it; its place in the own list stays.
my $member = $primary->safe_psql('postgres', q{SELECT sheet.account_create('member', NULL, 'hash')});
$primary->safe_psql('postgres', "SELECT sheet.share($sheets[0], 'member', 'viewer'); UPDATE sheet.member SET opened_at = opened_at - interval '1 day'");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', "SELECT sheet.register_opening($sheets[0], $member), count(*) FROM sheet.account_sheets($member)"), '|1', 'an opening is not registered on the standby, and no error');
is($primary->safe_psql('postgres', "SELECT sheet.register_opening($sheets[0], $member)"), 't', 'it is on the primary');
my $damaged = $primary->safe_psql('postgres', q{SELECT sheet.create('damaged', 10, 5)});
$primary->safe_psql('postgres', "SELECT sheet.apply($damaged, " . batch([ 0, $_, 'lost' ]) . ')') for 1 .. 3;
$primary->safe_psql('postgres', "SET pg_sheet.allow_log_delete = on; DELETE FROM sheet.log_batch WHERE sheet_id = $damaged AND first_seq = 3");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
like($standby->safe_psql('postgres', "SELECT severity, what, repaired FROM sheet.fsck($damaged)"), qr/^error\|edits are missing or doubled: seq 3 was expected\|f$/m, 'the standby finds damage that cannot be repaired');
$primary->safe_psql('postgres', "SELECT sheet.purge($damaged)");

# The primary dies while it is written to. What is acknowledged waits for the standby.
$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = '*'});
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'}) or die;
my $dir = PostgreSQL::Test::Utils::tempdir();
my @own = map { $primary->safe_psql('postgres', "SELECT sheet.create('sync $_', 100, 26)") } 1 .. 2;
my @writers = start_writers($primary, $dir, 3, @own);
wait_until_written($dir, 30);
sleep rand 0.5;
$primary->stop('immediate');
end_writers(@writers);
$standby->promote;
cmp_ok(check_sheets($standby, 'promoted', $dir, @own), '>', 20, 'enough was written to mean something');
for my $sheet (@sheets, @own)
{
	my $seq = $standby->safe_psql('postgres', "SELECT seq FROM sheet.read_cells($sheet)");
	is($standby->safe_psql('postgres', "SELECT first_seq FROM sheet.apply($sheet, " . batch([ 90, 3, 'after' ]) . ')'), $seq + 1, "sheet $sheet goes on without a gap");
}
$standby->stop;
done_testing();
