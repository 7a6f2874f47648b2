# The next file of the server's log is made while the one before it is still being written, so that no commit of edits waits for it.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('wal_ahead');
$node->init(extra => ['--wal-segsize=1']);
# Nothing but edits makes files of the log, and no checkpoint has old ones used again, but for those of initdb.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_sheet'\nautovacuum = off\ncheckpoint_timeout = 1h\nwal_recycle = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sheet');
my $sheet = $node->safe_psql('postgres', "SELECT sheet.create('sheet', 10, 10)");

# The file that the next record goes to, how much of it is used, and whether the one behind it is there.
my $look = q{SELECT pg_walfile_name(lsn), (lsn - '0/0') % 1048576 / 1048576 AS part,
	(SELECT count(*) FROM pg_ls_waldir() WHERE name = pg_walfile_name(lsn + 1048576::numeric)) AS next
	FROM pg_current_wal_insert_lsn() lsn};

sub look { return split /\|/, $node->safe_psql('postgres', $look); }

# One edit of 29 kB that cannot be compressed.
sub edit
{
	$node->safe_psql('postgres', "SELECT sheet.set($sheet, 'A1', (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 900)))");
}

# Past those.
for (1 .. 20)
{
	last if (look())[2] == 0;
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	edit();
}
# The second round's file has been made ahead itself.
for my $round (1, 2)
{
	my ($file, $part, $next) = look();
	cmp_ok($part, '<', 0.4, "round $round: a file of the log has been begun");
	is($next, 0, "round $round: the next one is not there");
	while ($part < 0.5) { edit(); (undef, $part) = look(); }
	edit();
	ok($node->poll_query_until('postgres', "SELECT next = 1 FROM ($look) l"), "round $round: the next one is made");
	(my $now, $part) = look();
	is($now, $file, "round $round: and nobody has needed it yet");
	while ($now eq $file) { edit(); ($now) = look(); }
}
like($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_waldir()'), qr/^[3-9]$/, 'no more of them than needed');
# ---- the launcher takes so long that the file has been needed, written and removed meanwhile: it does not come back ----
my $launcher = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_sheet launcher'");
my $idle = "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $launcher";
sub stop_launcher
{
	my ($point) = @_;
	$node->append_conf('postgresql.conf', "pg_sheet.stop_point = '$point'\n");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('pg_sheet.stop_point') = '$point'") or die;
}
stop_launcher('log-ahead:halt');
edit() while (look())[1] < 0.5;
edit();
for (1 .. 1800) { last if `ps -o stat= -p $launcher` =~ /^T/; usleep(100_000); }
like(`ps -o stat= -p $launcher`, qr/^T/, 'the launcher stands still before it makes a file');
my $late = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_insert_lsn() + 1048576::numeric)');
for (1 .. 2) { $node->safe_psql('postgres', 'SELECT pg_switch_wal()'); edit(); }
# A checkpoint removes the files before it. Who waits for it gives up: it may be that it waits for the launcher.
$node->psql('postgres', "SET statement_timeout = '1s'; CHECKPOINT");
kill 'CONT', $launcher;
ok($node->poll_query_until('postgres', "SELECT ($idle) AND NOT EXISTS (SELECT FROM pg_ls_waldir() WHERE name = '$late')"), 'a file that was removed meanwhile does not come back');

# ---- a file that cannot be made is somebody else's then; the launcher, and checkpoints, go on ----
stop_launcher('log-ahead:error');
my $log = -s $node->logfile;
while ((look())[1] >= 0.5) { edit(); }
while ((look())[1] < 0.5) { edit(); }
edit();
$node->wait_for_log(qr/ERROR:  stop point "log-ahead" reached/, $log);
$node->safe_psql('postgres', 'CHECKPOINT');
is($node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_sheet launcher'"), $launcher, 'the launcher has not ended by an error');
$node->stop;
done_testing();
