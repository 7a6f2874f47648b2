# Versions that background workers make: when a log has become long, before and after crashes, beside other databases,
# past damaged sheets, and never in the way of those who drop or copy a database.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $limit = 200;
my $node = new_server('worker', streaming => 1);
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = $limit\npg_sheet.version_interval = 0\npg_sheet.allow_log_delete = on\nlog_min_messages = debug1\n");
$node->restart;

my $text = 0;

# Appends batches of ten edits.
sub edit
{
	my ($server, $sheet, $count, $database) = @_;
	my $sql = '';
	for (1 .. $count / 10)
	{
		$sql .= "SELECT sheet.apply($sheet, " . batch(map { [ int rand 100, int rand 20, 'text ' . ++$text ] } 1 .. 10) . ");\n";
	}
	$server->safe_psql($database // 'postgres', $sql);
}

sub create
{
	my ($name, $database) = @_;
	return $node->safe_psql($database // 'postgres', "SELECT sheet.create('$name', 100, 20)");
}

# Edits since the newest version: what opening the sheet has to read of its log.
sub tail
{
	my ($server, $sheet, $database) = @_;
	return $server->safe_psql($database // 'postgres', "SELECT r.seq - coalesce((SELECT max(v.seq) FROM sheet.versions($sheet) v), 0) FROM sheet.read_cells($sheet) r");
}

sub wait_for_version
{
	my ($server, $sheet, $what, $database) = @_;
	ok($server->poll_query_until($database // 'postgres', "SELECT count(*) > 0 FROM sheet.versions($sheet) WHERE cause = 'log'"), $what);
}

# Without the seq, which a version moves.
sub cells
{
	return sheet_state(@_) =~ s/^\d+\n//r;
}

sub stat_of
{
	my ($server, $column) = @_;
	return $server->safe_psql('postgres', "SELECT $column FROM sheet.version_stats");
}

sub fsck
{
	my ($server, $sheet, $database) = @_;
	return $server->safe_psql($database // 'postgres', "SELECT severity, what FROM sheet.fsck($sheet, true, false)");
}

sub wait_until_idle
{
	$node->poll_query_until('postgres', 'SELECT workers = 0 FROM sheet.version_stats') or die;
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker'}) or die;
}

sub pid_of
{
	my ($server, $type) = @_;
	return $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");
}

# Workers of the database stop when they have built a version, until the returned session ends. A worker reads this when
# it starts: one that started before must have ended.
sub hold_workers
{
	my ($database) = @_;
	$node->safe_psql('postgres', "ALTER DATABASE $database SET pg_sheet.stop_point = 'automatic-built:wait'");
	$node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker' AND datname = '$database'}) or die 'a worker stays';
	my $session = $node->background_psql($database);
	$session->query_safe(q{SELECT pg_advisory_lock(hashtext('automatic-built'))});
	return $session;
}

sub wait_until_held
{
	my ($database) = @_;
	$node->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker' AND datname = '$database' AND wait_event_type = 'Lock'})
	  or die "no worker stops in $database";
}

# ---- a log grows ----
my $sheet = create('grows');
edit($node, $sheet, $limit - 20);
wait_until_idle();
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.versions($sheet)"), 0, 'no version of a short log');
edit($node, $sheet, 40);
wait_for_version($node, $sheet, 'a version of a long log');
is($node->safe_psql('postgres', "SELECT version_id, uid, username IS NULL, label IS NULL, cause FROM sheet.versions($sheet)"), '1|0|t|t|log', 'it is nobody\'s');
is(fsck($node, $sheet), 'info|clean', 'and sound');
cmp_ok(tail($node, $sheet), '<', $limit, 'the log after it is short');
is($node->safe_psql('postgres', "SELECT sheet.commit($sheet, 'mine')"), 2, 'a person may keep the same cells');
my ($code, $out, $err) = $node->psql('postgres', "SELECT sheet.commit($sheet)");
like($err, qr/nothing has changed/, 'once');
is($node->safe_psql('postgres', "SELECT string_agg(cause, ',' ORDER BY version_id) FROM sheet.versions($sheet)"), 'log,commit', 'and lists tell them apart');
is($node->safe_psql('postgres', "SELECT sheet.rollback($sheet, 1)"), 3, 'a version that was made by itself can be brought back');
is(fsck($node, $sheet), 'info|clean', 'all are sound');
is(stat_of($node, 'by_commit, by_rollback, by_log, by_eviction, failures'), '1|1|1|0|0', 'versions are counted by cause');
$node->safe_psql('postgres', "DELETE FROM sheet.version WHERE sheet_id = $sheet; DELETE FROM sheet.version_tile WHERE sheet_id = $sheet; SELECT sheet.fsck($sheet, true, true)");
is($node->safe_psql('postgres', "SELECT string_agg(cause, ',' ORDER BY version_id) FROM sheet.versions($sheet)"), 'log,commit,rollback', 'the causes are in the log: versions that are rebuilt have them');

# ---- a version with a time to come, as after the clock was set back ----
my $clock = create('clock');
edit($node, $clock, 20);
$node->safe_psql('postgres', "SELECT sheet.commit($clock); CREATE TABLE moved AS SELECT * FROM sheet.version WHERE sheet_id = $clock; DELETE FROM sheet.version WHERE sheet_id = $clock;
	UPDATE moved SET at = at + interval '2 hours'; INSERT INTO sheet.version SELECT * FROM moved; DROP TABLE moved");
edit($node, $clock, $limit + 20);
wait_for_version($node, $clock, 'the next version does not wait for that time');
$node->safe_psql('postgres', "SELECT sheet.purge($clock)"); # whose version is not that of its log any more

# ---- many edits, and opening the sheet cold ----
my $busy = create('busy');
edit($node, $busy, 3000);
wait_until_idle();
my $state = cells($node, $busy);
$node->restart;
$node->poll_query_until('postgres', 'SELECT rescans = 1 AND queued = 0 AND workers = 0 FROM sheet.version_stats') or die;
wait_until_idle();
my $read = stat_of($node, 'replayed_edits');
is(cells($node, $busy), $state, 'the cells after a restart');
$read = stat_of($node, 'replayed_edits') - $read;
cmp_ok($read, '<', $limit, "opening a cold sheet of 3000 edits reads $read of them");
is($read, tail($node, $busy), 'those that follow its newest version');
is(fsck($node, $busy), 'info|clean', 'its versions are sound');

# ---- sleeping ----
my $launcher = pid_of($node, 'pg_sheet launcher');

sub wakeups
{
	my ($line) = grep { /^voluntary_ctxt_switches/ } split /\n/, slurp_file("/proc/$launcher/status");
	return $line;
}
like($node->safe_psql('postgres', "SELECT application_name, state, wait_event FROM pg_stat_activity WHERE pid = $launcher"), qr/^pg_sheet launcher\|idle\|(Extension|PgSheetLauncher)$/, 'the launcher can be seen');
# A stranger's signal may wake it once; what wakes it for no reason would do so again and again.
my $slept = 0;
for (1 .. 5)
{
	sleep 1;
	my $quiet = wakeups();
	edit($node, create('short'), 20);
	sleep 4;
	last if $slept = wakeups() eq $quiet;
}
ok($slept, 'it does not wake up while there is no work, nor by a short log');

# ---- intervals ----
$node->safe_psql('postgres', q{ALTER SYSTEM SET pg_sheet.version_interval = '1h'});
$node->reload;
my $flood = create('flood');
edit($node, $flood, $limit + 10);
wait_for_version($node, $flood, 'the first version of a sheet waits for nothing');
edit($node, $flood, 3 * $limit);
$node->poll_query_until('postgres', 'SELECT queued = 1 AND workers = 0 FROM sheet.version_stats') or die;
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.versions($flood)"), 1, 'a sheet that is flooded waits for its next one');
$node->safe_psql('postgres', q{ALTER SYSTEM SET pg_sheet.version_interval = 0});
$node->reload;
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM sheet.versions($flood)"), 'until the setting is another');
is($node->safe_psql('postgres', q{SELECT setting || coalesce(unit, '') FROM pg_settings WHERE name LIKE 'pg_sheet.version%' ORDER BY name}), "65536kB\n$limit\n0ms", 'settings have units');

# ---- one sheet is damaged ----
my ($broken, $whole) = (create('broken'), create('whole'));
edit($node, $_, $limit - 10) for $broken, $whole;
$node->safe_psql('postgres', "DELETE FROM sheet.log_batch WHERE sheet_id = $broken AND first_seq = 52");
my $log = -s $node->logfile;
edit($node, $_, 20) for $broken, $whole;
wait_for_version($node, $whole, 'a damaged sheet does not keep others from their versions');
ok($node->poll_query_until('postgres', 'SELECT failures > 0 AND workers = 0 FROM sheet.version_stats'), 'its failure is counted');
like(slurp_file($node->logfile, $log), qr/version of sheet $broken in database "postgres" failed: sheet $broken is damaged.*retried in 5 seconds/s, 'and logged');
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.versions($broken)"), 0, 'it has no version');
$node->safe_psql('postgres', "SELECT sheet.purge($broken)");
ok($node->poll_query_until('postgres', 'SELECT queued = 0 FROM sheet.version_stats'), 'and is forgotten when it is no more');

# ---- a worker is killed ----
my $killed = create('killed');
my $session = hold_workers('postgres');
edit($node, $killed, $limit + 10);
wait_until_held('postgres');
$state = cells($node, $killed);
my $life = server_life($node);
my $worker = pid_of($node, 'pg_sheet worker');
is($node->safe_psql('postgres', "SELECT application_name, query FROM pg_stat_activity WHERE pid = $worker"), "pg_sheet worker|version of sheet $killed", 'a worker at work can be seen');
kill 'KILL', $worker;
wait_until_next_life($node, $life);
$session->{run}->finish;
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
wait_for_version($node, $killed, 'the version is made after the crash');
is(cells($node, $killed), $state, 'of the same cells');
is(fsck($node, $killed), 'info|clean', 'and sound');

# ---- a worker and the launcher are told to go ----
$session = hold_workers('postgres');
my $told = create('told');
edit($node, $told, $limit + 10);
wait_until_held('postgres');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_sheet worker'});
wait_for_version($node, $told, 'what a worker has left is done by the next one');
$session->quit;
$launcher = pid_of($node, 'pg_sheet launcher');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($launcher)");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_sheet launcher' AND pid <> $launcher"), 'the launcher comes back');

# ---- edits while a version is built ----
$session = hold_workers('postgres');
my $meanwhile = create('meanwhile');
edit($node, $meanwhile, $limit + 10);
wait_until_held('postgres');
edit($node, $meanwhile, 150);
my $seq = $node->safe_psql('postgres', "SELECT seq FROM sheet.read_cells($meanwhile)");
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
$session->quit;
wait_for_version($node, $meanwhile, 'writers go on while a version is built');
is($node->safe_psql('postgres', "SELECT seq FROM sheet.versions($meanwhile)"), $seq + 1, 'what they have written is in it');
is(fsck($node, $meanwhile), 'info|clean', 'and it is sound');

# The version builds on another one, and what is written meanwhile touches further tiles, or moves all cells.
for my $case ([ 'further tiles', q{SELECT sheet.set($id, 70 + n, 17, 'new ' || n) FROM generate_series(1, 9) n} ],
	[ 'rows that are inserted', q{SELECT sheet.insert_rows($id, 3, 2)} ],
	[ 'columns that are deleted', q{SELECT sheet.delete_columns($id, 2, 3), sheet.set($id, 1, 1, 'moved')} ])
{
	my ($what, $sql) = @$case;
	my $id = create($what);
	$node->safe_psql('postgres', "SELECT sheet.insert_columns($id, 5, 1)") if $what =~ /rows/; # there are maps before, too
	edit($node, $id, $limit - 20);
	$node->safe_psql('postgres', "SELECT sheet.set($id, 500, 50, 'not touched again')");
	$node->safe_psql('postgres', "SELECT sheet.commit($id)");
	$session = hold_workers('postgres');
	edit($node, $id, $limit - 20);
	$node->safe_psql('postgres', "SELECT sheet.set($id, n % 5, 0, n::text) FROM generate_series(1, 40) n");
	wait_until_held('postgres');
	$node->safe_psql('postgres', $sql =~ s/\$id/$id/gr);
	my $seq = $node->safe_psql('postgres', "SELECT seq FROM sheet.read_cells($id)");
	$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
	$session->quit;
	wait_for_version($node, $id, "a version is made of $what");
	is($node->safe_psql('postgres', "SELECT max(seq) FROM sheet.versions($id)"), $seq + 1, "... which are in it");
	is(fsck($node, $id), 'info|clean', "... with the digest of all cells");
}

# ---- a large sheet ----
my $large = $node->safe_psql('postgres', q{SELECT sheet.create('large', 25600, 20)});
$node->safe_psql('postgres', "SELECT count(sheet.set($large, n * 64, 0, n::text)) FROM generate_series(0, 399) n");
$node->safe_psql('postgres', "SELECT sheet.commit($large)") if tail($node, $large) > 0;
wait_until_idle();
my $read_sql = q{SELECT coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) FROM pg_statio_all_tables WHERE relid = 'sheet.version_tile'::regclass};
my $blocks = $node->safe_psql('postgres', $read_sql);
$node->safe_psql('postgres', "SELECT count(sheet.set($large, n % 64, 1, n::text)) FROM generate_series(1, $limit + 10) n");
wait_for_version($node, $large, 'a version of a large sheet in which one tile was edited');
wait_until_idle();
is($node->safe_psql('postgres', "SELECT tiles FROM sheet.version WHERE sheet_id = $large ORDER BY version_id DESC LIMIT 1"), 1, 'stores that tile');
cmp_ok($node->safe_psql('postgres', $read_sql) - $blocks, '<', 100, 'and does not read the others');
is(fsck($node, $large), 'info|clean', 'it is sound');

$session = hold_workers('postgres');
my $overtaken = create('overtaken');
edit($node, $overtaken, $limit + 10);
wait_until_held('postgres');
$node->safe_psql('postgres', "SELECT sheet.commit($overtaken, 'first')");
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
$session->quit;
wait_until_idle();
is($node->safe_psql('postgres', "SELECT string_agg(cause, ',') FROM sheet.versions($overtaken)"), 'commit', 'a person who is quicker makes the version');
is(fsck($node, $overtaken), 'info|clean', 'the only one');

$session = hold_workers('postgres');
my $trimmed = create('trimmed');
my $failures = $node->safe_psql('postgres', 'SELECT failures FROM sheet.version_stats');
edit($node, $trimmed, $limit + 10);
wait_until_held('postgres');
edit($node, $trimmed, 10);
$node->safe_psql('postgres', "SELECT sheet.commit($trimmed, 'first'), sheet.set($trimmed, 'A1', 'of the next log')");
$node->safe_psql('postgres', "SELECT sheet.trim($trimmed, 1)");
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
$session->quit;
wait_until_idle();
is($node->safe_psql('postgres', "SELECT string_agg(cause, ',') FROM sheet.versions($trimmed)"), 'commit', 'also when the log is trimmed then');
is($node->safe_psql('postgres', 'SELECT failures FROM sheet.version_stats'), $failures, 'which is no damage');

# ---- two databases, and those who want one for themselves ----
$node->safe_psql('postgres', 'CREATE DATABASE two');
$node->safe_psql('postgres', 'CREATE DATABASE plain');
$node->safe_psql('two', 'CREATE EXTENSION pg_sheet');
my $here = create('here');
my $there = create('there', 'two');
edit($node, $here, $limit + 10);
edit($node, $there, $limit + 10, 'two');
wait_for_version($node, $here, 'a version in one database');
wait_for_version($node, $there, 'and in the other', 'two');
is(fsck($node, $there, 'two'), 'info|clean', 'sound');

# Begins a command that needs the database for itself while a worker is at work there, and lets go of the worker's stop point
# only when the worker has gone.
sub with_busy_worker
{
	my ($database, $id, $command) = @_;
	my $holder = hold_workers($database);
	edit($node, $id, $limit + 10, $database);
	wait_until_held($database);
	my $worker = pid_of($node, 'pg_sheet worker');
	my $run = IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-c', $command ], '>', \my $out, '2>', \my $err);
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker"), "a worker makes way for $command");
	$holder->quit;
	$run->finish;
	is($err, '', 'which succeeds'); # PostgreSQL waits five seconds for those who are there
}
with_busy_worker('two', $there, 'CREATE DATABASE three TEMPLATE two');
$node->safe_psql('postgres', 'ALTER DATABASE two RESET pg_sheet.stop_point');
is($node->safe_psql('three', "SELECT count(*) FROM sheet.versions($there)"), 1, 'a database with sheets is copied');
ok($node->poll_query_until('two', "SELECT count(*) = 2 FROM sheet.versions($there)"), 'and the worker comes back');
edit($node, $there, $limit + 10, 'three');
ok($node->poll_query_until('three', "SELECT count(*) = 2 FROM sheet.versions($there)"), 'the copy has workers of its own');
is($node->safe_psql('two', "SELECT count(*) FROM sheet.versions($there)"), 2, 'that leave the original alone');
with_busy_worker('three', $there, 'DROP DATABASE three');
ok($node->poll_query_until('postgres', 'SELECT queued = 0 AND workers = 0 FROM sheet.version_stats'), 'nothing is left in the queue');

# DROP EXTENSION while there is work: it waits for one version at most, and what waits is forgotten.
my @many = map { create("many $_", 'two') } 1 .. 5;
my $holder = hold_workers('two');
edit($node, $there, $limit + 10, 'two');
wait_until_held('two');
edit($node, $_, $limit + 10, 'two') for @many;
my $drop = IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('two'), '-c', 'SET client_min_messages = warning', '-c', 'DROP EXTENSION pg_sheet' ], '>', \my $drop_out, '2>', \my $drop_err);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'DROP EXTENSION pg_sheet' AND wait_event_type = 'Lock'}) or die;
$holder->quit;
$drop->finish;
is($drop_err, '', 'DROP EXTENSION waits for a worker, and is not its victim');
ok($node->poll_query_until('postgres', 'SELECT queued = 0 AND workers = 0 FROM sheet.version_stats'), 'nothing is left in the queue');
$node->safe_psql('postgres', 'ALTER DATABASE two RESET pg_sheet.stop_point');
$node->safe_psql('two', 'CREATE EXTENSION pg_sheet');
my $again = create('again', 'two');
edit($node, $again, $limit + 10, 'two');
wait_for_version($node, $again, 'and workers come again with the extension', 'two');

# ---- more sheets than the queue holds ----
$session = hold_workers('postgres');
$node->safe_psql('postgres', "DO \$\$ DECLARE id bigint; BEGIN FOR i IN 1..1100 LOOP id := sheet.create('full ' || i, 100, 20); PERFORM sheet.apply(id, "
	  . batch(map { [ $_, 1, "x$_" ] } 0 .. 99) . "); PERFORM sheet.apply(id, " . batch(map { [ $_, 2, "x$_" ] } 0 .. 99) . "); END LOOP; END \$\$");
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET pg_sheet.stop_point');
$session->quit;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1100 FROM sheet.list l, sheet.versions(l.sheet_id) v WHERE l.name LIKE 'full %'}), 'an overflow of the queue loses nothing');
wait_until_idle();

# ---- a log of many bytes, which no server has seen all of ----
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = 100000\npg_sheet.version_bytes = '1MB'\n");
$node->restart;
my $bytes = create('bytes');
for my $row (1 .. 3)
{
	# Of each sort 200 kB, with and without compression.
	$node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1..10 LOOP PERFORM sheet.set($bytes, 'A' || $row * 10 + i, repeat('x', 20000));"
		  . " PERFORM sheet.set($bytes, 'B' || $row * 10 + i, (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 625))); END LOOP; END \$\$");
	wait_until_idle();
	is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.versions($bytes)"), 0, 'no version of ' . $row * 400 . ' kB') if $row < 3;
	$node->stop('immediate');
	$node->start;
}
wait_for_version($node, $bytes, 'a version of a log whose bytes were written before and after crashes');
wait_until_idle();
$node->append_conf('postgresql.conf', "pg_sheet.version_bytes = '64MB'\n");

# ---- eviction ----
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = 100000\npg_sheet.cache_size = '2MB'\n");
$node->restart;
my @evicted = map { create("evicted $_") } 1 .. 6;
edit($node, $_, 1200) for @evicted;
$node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1..40 LOOP PERFORM sheet.read_cells(sheet.create('other ' || i, 100, 20)); END LOOP; END \$\$; SELECT sum(length(cells)) FROM sheet.list l, sheet.read_cells(l.sheet_id)");
ok($node->poll_query_until('postgres', 'SELECT by_eviction > 0 FROM sheet.version_stats'), 'sheets that the cache gives up get versions');
wait_until_idle();
is($node->safe_psql('postgres', 'SELECT count(*) FROM sheet.fsck(NULL, true, false) WHERE severity <> \'info\''), 0, 'all sheets are sound');
is(tail($node, $evicted[0]), 0, 'nothing of the log is read to open one again');

# ---- a standby ----
$node->safe_psql('postgres', q{ALTER SYSTEM SET pg_sheet.version_edits = 0});
$node->safe_psql('postgres', q{ALTER SYSTEM SET pg_sheet.version_bytes = 0});
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('pg_sheet.version_edits') = '0'}) or die;
my $off = create('off');
edit($node, $off, 2000);
wait_until_idle();
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.versions($off)"), 0, '0 turns it off');
my $standby = start_standby($node, 'worker_standby', "pg_sheet.version_edits = $limit\n");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'pg_sheet%'}), 0, 'a standby has no launcher');
is($standby->safe_psql('postgres', "SELECT count(*) FROM sheet.versions($off)"), 0, 'and makes no versions');
$node->stop;
$standby->promote;
wait_for_version($standby, $off, 'it does when it is promoted');
is(fsck($standby, $off), 'info|clean', 'soundly');
$standby->stop;
done_testing();
