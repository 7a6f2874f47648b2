# A trimmed sheet through the server's life: a crash, a standby and its promotion, dump and restore; and VACUUM gives the
# room of what was removed to new edits.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Digest::MD5 qw(md5_hex);

seed_random();
my $primary = new_server('trim', streaming => 1);
$primary->append_conf('postgresql.conf', 'autovacuum = off');
$primary->restart;
my ($sheet, $all) = map { $primary->safe_psql('postgres', "SELECT sheet.create('trim $_', 400, 60)") } 1, 2;
# The primary keeps what readers on the standby still see.
my $standby = start_standby($primary, 'trim_standby', "hot_standby_feedback = on\nwal_receiver_status_interval = 1s");

# Edits all over the first version, then in the upper left only: most tiles stay those of version 1.
my $number = 0;
for my $version (1 .. 6)
{
	for my $id ($sheet, $all)
	{
		my ($rows, $cols) = $version == 1 ? (400, 60) : (20, 10);
		my @edits = map { [ int rand $rows, int rand $cols, 'edit ' . ++$number . 'x' x rand 40 ] } 1 .. 600;
		$primary->safe_psql('postgres', "SELECT sheet.apply($id, " . batch(@edits) . "); SELECT sheet.commit($id, 'v$version')");
	}
}
$primary->safe_psql('postgres', "SELECT sheet.apply($_, " . batch([ 1, 1, 'open end' ]) . ')') for $sheet, $all;

sub versions
{
	my ($node, $database) = @_;
	return $node->safe_psql($database // 'postgres', "SELECT s, v.version_id, v.seq, md5(r.cells) FROM unnest(ARRAY[$sheet, $all]) s, sheet.versions(s) v, sheet.read_version(s, v.version_id) r WHERE v.version_id >= 4 ORDER BY 1, 2");
}

sub everything
{
	my ($node, $database) = @_;
	my $log = $node->safe_psql($database // 'postgres', 'SELECT count(*), min(seq), md5(string_agg(l::text, \',\' ORDER BY sheet_id, seq)) FROM sheet.log l');
	my $errors = join "\n", map { ($node->psql($database // 'postgres', $_))[2] =~ s/.*ERROR/ERROR/sr =~ s/trimmed on [^;]*;/trimmed;/gr }
	  "SELECT sheet.read_version($sheet, 2)", "SELECT sheet.tail($sheet, 3)";
	return join "\n", versions($node, $database), $log, $errors, map { md5_hex(sheet_state($node, $_, $database)) } $sheet, $all;
}

sub fsck
{
	my ($node, $repair, $database) = @_;
	return $node->safe_psql($database // 'postgres', "SELECT DISTINCT severity, what FROM unnest(ARRAY[$sheet, $all]) s, sheet.fsck(s, true, $repair)");
}

my $versions = versions($primary);
my $cells = sheet_state($primary, $sheet);
# A reader on the standby keeps its snapshot over the trim.
my $reader = $standby->background_psql('postgres');
is($reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM sheet.versions($sheet)"), 6, 'a reader on the standby sees six versions');
$primary->poll_query_until('postgres', 'SELECT bool_or(backend_xmin IS NOT NULL) FROM pg_stat_replication') or die;
is($primary->safe_psql('postgres', "SELECT sheet.trim($sheet, 4)"), $primary->safe_psql('postgres', "SELECT seq FROM sheet.versions($sheet) WHERE version_id = 4"), 'trimmed at version 4');
is(versions($primary), $versions, 'what is kept is what it was');
is(sheet_state($primary, $sheet), $cells, 'and so are the cells');
is(fsck($primary, 'false'), 'info|clean', 'fsck finds nothing');
my $known = everything($primary);
like($known, qr/has no version 2.*version 4 is the oldest.*after seq 3 have been trimmed/s, 'what is gone is said to be');

# ---- the standby ----
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(everything($standby), $known, 'the standby has the same, and says the same');
is(fsck($standby, 'false'), 'info|clean', 'fsck finds nothing there');
is(fsck($standby, 'true'), 'info|clean', 'also when it might repair');
is($reader->query_safe("SELECT count(*) FROM sheet.versions($sheet)"), 6, 'the old snapshot still sees six versions');
is($reader->query_safe("SELECT severity FROM sheet.fsck($sheet, true, false)"), 'info', 'as a sound sheet');
$reader->quit;

# ---- a crash ----
$primary->stop('immediate');
$primary->start;
is(everything($primary), $known, 'the same after a crash');

# ---- dump and restore ----
my $file = PostgreSQL::Test::Utils::tempdir() . '/trim.dump';
$primary->command_ok([ 'pg_dump', '-Fc', '-f', $file, $primary->connstr('postgres') ], 'dumped');
$primary->safe_psql('postgres', 'CREATE DATABASE restored TEMPLATE template0');
$primary->command_ok([ 'pg_restore', '--exit-on-error', '-d', $primary->connstr('restored'), $file ], 'restored');
is(everything($primary, 'restored'), $known, 'the same in the restored database');
is(fsck($primary, 'true', 'restored'), 'info|clean', 'fsck finds nothing there');
# trimmed further there, and to the end
ok($primary->safe_psql('restored', "SELECT sheet.commit($sheet, 'last'); SELECT sheet.trim($sheet, 7)"), 'trimmed to the end');
my $seq = $primary->safe_psql('restored', "SELECT seq FROM sheet.versions($sheet)");
$primary->stop('immediate');
$primary->start;
is($primary->safe_psql('restored', "SELECT first_seq FROM sheet.apply($sheet, " . batch([ 3, 3, 'after' ]) . ')'), $seq + 1, 'edits go on where the last version ends');
is(fsck($primary, 'true', 'restored'), 'info|clean', 'fsck finds nothing after that');

# ---- promoted ----
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$primary->stop;
$standby->promote;
is(everything($standby), $known, 'the same where the standby was promoted');
is($standby->safe_psql('postgres', "SELECT sheet.trim($sheet, 5)") > 0, 1, 'and it can be trimmed there');
is(fsck($standby, 'true'), 'info|clean', 'and is sound');

# ---- space ----
sub size { return $standby->safe_psql('postgres', "SELECT sum(pg_total_relation_size('sheet.' || r)) FROM unnest(ARRAY['log_batch', 'segment', 'version', 'version_tile']) r"); }

# Incompressible contents, in as many versions as a sheet of half a megabyte has in a week.
my $big = $standby->safe_psql('postgres', "SELECT sheet.create('space', 100, 20)");
sub fill
{
	my ($from) = @_;
	for my $version ($from .. $from + 9)
	{
		my @edits = map { [ int($_ / 20), $_ % 20, join('', map { chr(33 + rand 90) } 1 .. 100) ] } 0 .. 1999;
		$_->[2] =~ tr/\\'/  / for @edits;
		$standby->safe_psql('postgres', "SELECT sheet.apply($big, " . batch(@edits) . "); SELECT sheet.commit($big, 'v$version')");
	}
}
my $empty = size();
fill(1);
my $filled = size();
$standby->safe_psql('postgres', "SELECT sheet.trim($big, 10)");
$standby->safe_psql('postgres', 'VACUUM sheet.log_batch, sheet.segment, sheet.version, sheet.version_tile');
fill(11);
my $again = size();
note "$empty bytes before, $filled with ten versions, $again after a trim, VACUUM and ten more";
cmp_ok($again - $filled, '<', ($filled - $empty) * 0.3, 'new edits take the room of those that were removed');
is($standby->safe_psql('postgres', "SELECT severity, what FROM sheet.fsck($big, true)"), 'info|clean', 'and all of it is sound');
$standby->stop;
done_testing();
