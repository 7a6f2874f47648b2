# Sheets that are checked by themselves: those that are opened after a crash of the server, and those that are claimed from a
# holder that has not released them. In the background, once, with a line in the log, and nobody waits for it; a server that was
# shut down, and a standby, have nothing to check.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_server('auto', streaming => 1);
# Few entries of the cache, so that sheets leave it and come back.
$node->append_conf('postgresql.conf', "log_min_messages = debug1\npg_sheet.allow_log_delete = on\npg_sheet.max_cached_sheets = 16\n");
$node->restart;

sub sql { return $node->safe_psql('postgres', join('; ', @_)) }

# A sheet with two versions.
sub create
{
	my ($count) = @_;
	return map { my $id = sql("SELECT sheet.create('sheet', 10, 10)"); sql("SELECT sheet.set($id, 'A1', 'one'), sheet.commit($id), sheet.set($id, 'A1', 'two'), sheet.commit($id)"); $id } 1 .. $count;
}

# Sheets that were checked in this life of the server, or wait for it.
sub checks { return sql('SELECT checked + queued FROM sheet.version_stats') }

sub wait_for_checks
{
	my ($count, $what) = @_;
	ok($node->poll_query_until('postgres', "SELECT checked = $count AND queued = 0 FROM sheet.version_stats"), $what) or diag sql('SELECT * FROM sheet.version_stats');
}

my $log_from = 0;

# What the log says of a sheet's checks since the mark, without times.
sub mark_log { $log_from = -s $node->logfile; return }

sub said
{
	my ($sheet) = @_;
	return join "\n", map { s/^.*? (LOG|DEBUG):  /$1 /r } grep { /pg_sheet: (check of )?sheet $sheet in/ } split /\n/, slurp_file($node->logfile, $log_from);
}

sub fsck { my ($sheet) = @_; return sql("SELECT severity, what FROM sheet.fsck($sheet, true, false)") }

# The postmaster is killed. Its children need a moment to notice.
sub crash
{
	$node->kill9;
	for (1 .. 100)
	{
		return if $node->start(fail_ok => 1);
		sleep 0.1;
		$node->stop('fast', fail_ok => 1);
	}
	die 'the server does not start again';
}

# Checks stop where the point is, until the returned session ends; a worker as often as it is named. A worker reads this
# when it starts: one that started before (with the server, to search for long logs) must have ended.
sub hold_worker
{
	my ($point, $times) = (@_, 1);
	sql("ALTER DATABASE postgres SET pg_sheet.stop_point = '" . join(' ', ("$point:wait") x $times) . "'");
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker'}) or die 'a worker stays';
	my $session = new_session($node);
	$session->ask("SELECT pg_advisory_lock(hashtext('$point'))");
	return $session;
}

sub wait_until_held
{
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker' AND wait_event = 'advisory'}) or die 'no worker stops';
	sql('ALTER DATABASE postgres RESET pg_sheet.stop_point');
	return;
}

# ---- a server that was shut down ----
my @sheets = create(8);
my ($no_versions, $no_tiles, $no_head, $hole, $claimed, $written, $sound, $unopened) = @sheets;
sql("DELETE FROM sheet.version WHERE sheet_id = $unopened");
is(checks(), 0, 'nothing is checked in the first life of a server');
$node->restart;
sql(map { "SELECT sheet.get($_, 'A1')" } $sound, $no_versions);
sql("SELECT sheet.claim($claimed, 1, 'one')");
is(checks(), 0, 'nor after a shutdown');
sql("SELECT sheet.release($claimed, 1)");

# ---- a crash, and damage ----
sql("DELETE FROM sheet.version WHERE sheet_id IN ($no_versions, $claimed, $written)", "DELETE FROM sheet.version_tile WHERE sheet_id IN ($no_versions, $no_tiles)",
	"DELETE FROM sheet.segment WHERE sheet_id = $no_head AND segment_id = 2", "DELETE FROM sheet.log_batch WHERE sheet_id = $hole AND first_seq = 2", "DELETE FROM sheet.version WHERE sheet_id = $hole AND version_id = 1");
mark_log();
crash();
is(checks(), 0, 'what nobody opens is not checked');
sql("SELECT sheet.get($no_versions, 'A1')", "SELECT count(*) FROM sheet.range($no_tiles)", "SELECT sheet.get($no_head, 'A1')", "SELECT sheet.claim($claimed, 2, 'one')", "SELECT sheet.set($written, 'B1', 'new')", "SELECT sheet.get($sound, 'A1')");
wait_for_checks(6, 'sheets that are read, written or claimed are');
like(said($no_versions), qr/^LOG pg_sheet: sheet $no_versions in database "postgres", opened after a crash of the server: findings: 2, repaired: 2$/, 'the log says what was found and repaired');
my $log = slurp_file($node->logfile, $log_from);
like($log, qr/sheet $no_versions in.*\n.*DETAIL:  version 1: the version is missing \(repaired\)\n\tversion 2: the version is missing \(repaired\)\n/, 'in each version');
like(said($_), qr/^LOG .* opened after a crash of the server: findings: [12], repaired: [12]$/, 'and of the others') for $no_tiles, $no_head, $claimed, $written;
is(said($sound), qq{DEBUG pg_sheet: sheet $sound in database "postgres", opened after a crash of the server, is clean}, 'that one is clean it says at a lower level');
is(fsck($_), 'info|clean', 'the sheet is sound') for $no_versions, $no_tiles, $no_head, $claimed, $written;
my $read = ($node->psql('postgres', "SELECT sheet.get($hole, 'A1')"))[0];
wait_for_checks(7, 'damage that cannot be repaired is looked at, too');
like(said($hole), qr/^LOG .*findings: \d, repaired: 0$/, 'and reported once');
isnt(fsck($hole), 'info|clean', 'it is left as it is');
is(sql('SELECT damaged FROM sheet.version_stats'), 6, 'the view counts the damaged ones');

# ---- once ----
my @others = create(40);
is(sql('SELECT count(*) FROM sheet.cache_entries WHERE sheet_id IN (' . join(', ', @sheets) . ')'), 0, 'sheets that have left the cache');
for (1, 2)
{
	sql(map { "SELECT sheet.get($_, 'A1')" } $no_versions, $no_tiles, $no_head, $claimed, $written, $sound);
	sql(map { "SELECT sheet.get($_, 'A1')" } @others);
}
is(checks(), 7, 'are not checked when they come back; nor are those that were made since the crash');
is(scalar(() = said($no_versions) =~ /^/mg), 1, 'there is one line of each');

# ---- a shutdown is the end of it ----
$node->restart;
sql(map { "SELECT sheet.get($_, 'A1')" } @sheets[ 0 .. 2 ], $unopened);
is(checks(), 0, 'after a shutdown nothing is checked');

# ---- one of the server's processes crashes ----
mark_log();
my $life = server_life($node);
my $victim = new_session($node);
kill 'KILL', $victim->{pid};
wait_until_next_life($node, $life);
sql("SELECT sheet.get($unopened, 'A1')", "SELECT sheet.get($sound, 'A1')");
wait_for_checks(2, 'a crash of one process is one of the server');
like(said($unopened), qr/findings: 2, repaired: 2$/, 'the sheet is repaired');
is(fsck($unopened), 'info|clean', 'and sound');

# ---- many sheets at once ----
$node->append_conf('postgresql.conf', "pg_sheet.max_cached_sheets = 8192\n");
$node->restart;
my $many = 1100; # more than the queue has room for
sql("DO \$\$ BEGIN FOR i IN 1..$many LOOP PERFORM sheet.create('many', 10, 10); END LOOP; END \$\$");
my $of_many = "SELECT count(r.seq) FROM sheet.sheet s, sheet.read_cells(s.sheet_id, 0, 0, 0, 0) r WHERE s.name = 'many'";
$node->stop('immediate');
$node->start;
my $holder = hold_worker('fsck-look');
is(sql($of_many), $many, 'very many sheets are opened');
wait_until_held();
is(sql($of_many), $many, 'while the first one is being checked, nobody waits');
my $checked = sql(q{SELECT (regexp_match(query, 'check of sheet (\d+)'))[1] FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker'});
is(sql("SELECT sheet.set($checked, 'A1', 'meanwhile') > 0, sheet.claim($checked, 9, 'one') > 0"), 't|t', 'not even for that one');
is(sql('SELECT checked, queued FROM sheet.version_stats'), '0|1024', 'the queue is full');
$holder->end;
ok($node->poll_query_until('postgres', 'SELECT checked = 1024 AND queued = 0 FROM sheet.version_stats'), 'those that are in it are checked');
is(sql($of_many), $many, 'they are read again');
wait_for_checks($many, 'and those for which it had no room are checked');
is(sql($of_many), $many, 'once more');
is(checks(), $many, 'each of them once');

# ---- while a worker searches all sheets for long logs ----
my ($last) = create(1); # the search looks at a thousand sheets at once: these two are not among the same
sql("SELECT sheet.apply($_, " . batch(map { [ $_, 3, "long $_" ] } 0 .. 299) . ')') for $sound, $last;
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = 0\npg_sheet.version_bytes = 0\npg_sheet.version_interval = 0\n");
crash();
mark_log();
$holder = hold_worker('automatic-built', 2);
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = 200\n");
$node->reload;
wait_until_held();
my $second = new_session($node);
$second->send(q{SELECT pg_advisory_lock(hashtext('automatic-built'))});
$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $second->{pid}") or die;
sql("SELECT sheet.get($no_head, 'A1')");
$holder->end;
$second->answer; # the worker has passed
wait_until_held();
is(said($no_head), qq{DEBUG pg_sheet: sheet $no_head in database "postgres", opened after a crash of the server, is clean}, 'a sheet that is opened is checked before the search is at its end');
$second->end;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.versions($last) WHERE cause = 'log'"), 'which comes');
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = 100000\n");

# ---- a sheet that somebody is editing ----
my ($busy, $next) = create(2);
sql("DELETE FROM sheet.version WHERE sheet_id = $busy");
crash();
mark_log();
my $writer = new_session($node);
$writer->ask("BEGIN; SELECT sheet.set($busy, 'B1', 'mine')");
sql("SELECT sheet.get($next, 'A1')");
ok($node->poll_query_until('postgres', 'SELECT checked = 1 FROM sheet.version_stats'), 'a check that must wait for a writer keeps no other waiting');
is($writer->ask("SELECT sheet.set($busy, 'B2', 'mine') > 0"), 't', 'and not the writer');
ok($node->wait_for_log(qr/check of sheet $busy in database "postgres" is put off/, $log_from), 'it is put off');
$writer->ask('COMMIT');
$writer->end;
wait_for_checks(2, 'and made later');
like(said($busy), qr/findings: 2, repaired: 2$/, 'the sheet is repaired');
is(fsck($busy), 'info|clean', 'and sound, with what was written');

# ---- a check that crashes ----
my ($fatal) = create(1);
sql("DELETE FROM sheet.version WHERE sheet_id = $fatal");
crash();
mark_log();
$holder = hold_worker('fsck-version');
sql("SELECT sheet.get($fatal, 'A1')");
wait_until_held();
$life = server_life($node);
kill 'KILL', sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker'});
wait_until_next_life($node, $life);
is(said($fatal), '', 'nothing is said to be repaired that is not');
is(sql("SELECT count(*) FROM sheet.versions($fatal)"), 0, 'and nothing is');
sql("SELECT sheet.get($fatal, 'A1')");
wait_for_checks(1, 'it is checked when it is opened next');
like(said($fatal), qr/^LOG .*findings: 2, repaired: 2$/, 'and repaired');

# ---- a check that fails ----
my ($failing) = create(1);
sql("ALTER DATABASE postgres SET pg_sheet.stop_point = 'fsck-look:error'"); # before a worker starts, which reads it then
crash();
mark_log();
$node->psql('postgres', "SELECT sheet.get($failing, 'A1')");
ok($node->poll_query_until('postgres', 'SELECT queued = 0 AND workers = 0 FROM sheet.version_stats'), 'a check that fails is not repeated');
like(said($failing), qr/^LOG .* failed: stop point "fsck-look" reached$/, 'the log says why');
sql('ALTER DATABASE postgres RESET pg_sheet.stop_point');

# ---- without room for cells ----
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = 0\n");
crash();
sql(map { "SELECT sheet.get($_, 'A1')" } $sound, $sound, $next);
wait_for_checks(2, 'a server that caches no cells checks as well');
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '16MB'\n");
$node->restart;

# ---- claims ----
sub claims_that_check
{
	my ($what, $expected, @sql) = @_;
	my $before = checks();
	sql(@sql);
	is(checks() - $before, $expected, $what);
}
my ($taken) = create(1);
claims_that_check('the first claim of a sheet', 0, "SELECT sheet.claim($taken, 1, 'one')");
claims_that_check('a claim that is repeated', 0, "SELECT sheet.claim($taken, 1, 'one')");
mark_log();
claims_that_check('a claim of a sheet that was not released', 1, "SELECT sheet.claim($taken, 2, 'two')");
$node->poll_query_until('postgres', 'SELECT queued = 0 FROM sheet.version_stats') or die;
is(said($taken), qq{DEBUG pg_sheet: sheet $taken in database "postgres", taken over from a gateway that did not release it, is clean}, 'it is checked');
claims_that_check('of one that was', 0, "SELECT sheet.release($taken, 2)", "SELECT sheet.claim($taken, 3, 'three')");
claims_that_check('a release by an older holder does not count', 1, "SELECT sheet.release($taken, 2)", "SELECT sheet.claim($taken, 4, 'four')");
claims_that_check('a claim that is rolled back', 0, 'BEGIN', "SELECT sheet.claim($taken, 5, 'five')", 'ROLLBACK');
claims_that_check('or whose subtransaction is', 0, 'BEGIN', 'SAVEPOINT a', "SELECT sheet.claim($taken, 5, 'five')", 'ROLLBACK TO a', 'COMMIT');
$writer = new_session($node);
$writer->ask("BEGIN; SELECT sheet.set($taken, 'A1', 'held')");
is(sql("SELECT sheet.release($taken, 4)"), 'f', 'a release does not wait for a writer');
$writer->ask('COMMIT');
$writer->end;
is(sql("SELECT sheet.release($taken, 4)"), 't', 'without one it is noted');
is(sql("SELECT holder FROM sheet.ownership WHERE sheet_id = $taken"), '', 'there is no holder');
my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT sheet.claim($taken, 3, 'three')");
like($err, qr/SF001/, 'older epochs are refused all the same');

# ---- a standby ----
sql("DELETE FROM sheet.version WHERE sheet_id = $taken");
my $standby = start_standby($node, 'auto_standby');
sql("SELECT sheet.set($sound, 'C1', 'for the standby')");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$standby->stop('immediate');
$standby->start;
is($standby->safe_psql('postgres', "SELECT sheet.get($taken, 'A1')"), 'held', 'a standby that has crashed is read');
is($standby->safe_psql('postgres', 'SELECT checked, queued FROM sheet.version_stats'), '0|0', 'and checks nothing');
$node->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', "SELECT sheet.get($taken, 'A1')"), 'held', 'it is promoted');
ok($standby->poll_query_until('postgres', "SELECT count(*) > 0 FROM sheet.versions($taken)"), 'and repairs what is opened then');
is($standby->safe_psql('postgres', "SELECT severity, what FROM sheet.fsck($taken, true, false)"), 'info|clean', 'soundly');
$standby->stop;
done_testing();
