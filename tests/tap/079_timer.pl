# The timer removes what has expired: in time and once, whatever is rolled back or changed, past objects that are in use or cannot be
# removed, after crashes of workers and of the server, in databases that are copied, restored or dropped, on no standby before it is
# promoted, and when the clock steps. The objects are unfinished uploads, which end a day after their beginning.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep time);

# A second is promised. Other tests run beside the short form.
my $limit = $ENV{LONG} ? 1000 : 2000;
my $node = new_server('timer', streaming => 1);
$node->append_conf('postgresql.conf', "max_prepared_transactions = 2\nlog_min_messages = debug1\nautovacuum = off\n");
$node->restart;

# Of each upload that is removed: how late. begin_upload() returns an upload that ends so much later, without an entry.
my $setup = q{
	CREATE TABLE removed (upload_id bigint, name text, late interval);
	CREATE FUNCTION upload_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF OLD.name LIKE 'bad%' THEN RAISE EXCEPTION 'not this one'; END IF;
		INSERT INTO public.removed VALUES (OLD.upload_id, OLD.name, clock_timestamp() - OLD.created_at - interval '1 day');
		RETURN NULL; END $$;
	CREATE TRIGGER upload_removed AFTER DELETE ON sheet.file FOR EACH ROW EXECUTE FUNCTION upload_removed();
	CREATE FUNCTION begin_upload(name text, ends interval) RETURNS bigint LANGUAGE sql AS
		$$ INSERT INTO sheet.file (sheet_id, name, created_at) VALUES (1, name, clock_timestamp() + ends - interval '1 day') RETURNING upload_id $$;
	CREATE FUNCTION upload(name text, ends interval) RETURNS void LANGUAGE sql AS
		$$ INSERT INTO sheet.timer SELECT 'upload', begin_upload(name, ends), clock_timestamp() + ends ON CONFLICT (kind, id) DO UPDATE SET at = excluded.at $$;
};
$node->safe_psql('postgres', $setup);

sub sql
{
	my ($query, $database) = @_;
	return $node->safe_psql($database // 'postgres', $query);
}

sub stat_of
{
	return sql("SELECT $_[0] FROM sheet.timer_stats");
}

sub is_there
{
	return sql("SELECT count(*) FROM sheet.file WHERE name LIKE '$_[0]'");
}

sub removed
{
	return sql("SELECT count(*) FROM removed WHERE name LIKE '$_[0]'");
}

sub wait_until_removed
{
	my ($like, $what, $database) = @_;
	ok($node->poll_query_until($database // 'postgres', "SELECT count(*) = 0 FROM sheet.file WHERE name LIKE '$like'"), $what);
}

sub wait_until_idle
{
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer'}) or die 'a worker of the timer does not end';
}

# Milliseconds; 'none' if one was removed early.
sub latest
{
	my ($like) = @_;
	return sql("SELECT CASE WHEN min(late) < '0' THEN 'early' ELSE (extract(epoch FROM max(late)) * 1000)::int::text END FROM removed WHERE name LIKE '$like'");
}

sub is_in_time
{
	my ($like, $what) = @_;
	my $latest = latest($like);
	ok($latest ne 'early' && $latest <= $limit, "$what: $latest ms late");
}

# ---- many ----
wait_until_idle();
my ($many, $seconds) = $ENV{LONG} ? (10_000, 60) : (3_000, 4);
my ($scans, $served) = split /\|/, sql('SELECT scans, served FROM sheet.timer_stats');
sql("SELECT count(upload('many ' || n, interval '1 s' * (1 + random() * ($seconds - 1)))) FROM generate_series(1, $many / 2) n");
sql("SELECT count(upload('many ' || n, interval '1 s' * (1 + random() * ($seconds - 1)))) FROM generate_series($many / 2 + 1, $many) n");
wait_until_removed('many %', "$many uploads are removed");
is(removed('many %'), $many, 'each of them once');
is_in_time('many %', 'none early, and the last one');
wait_until_idle();
is(sql('SELECT count(*) FROM sheet.timer'), 0, 'and so are their entries');
is(stat_of("served - $served"), $many, 'they are counted');
cmp_ok(stat_of("scans - $scans"), '<=', 1 + $seconds / 60, 'the table is scanned once a minute at most');
is(stat_of('workers, told'), '0|0', 'nothing runs any more');

# ---- rolled back, and changed ----
my $id = sql("SELECT begin_upload('rolled back', '1 s')");
sql("BEGIN; INSERT INTO sheet.timer VALUES ('upload', $id, now() + interval '1 s'); ROLLBACK");
my $savepoint = sql("SELECT begin_upload('savepoint', '1 s')");
sql("BEGIN; SELECT upload('outer', '1 s'); SAVEPOINT a; INSERT INTO sheet.timer VALUES ('upload', $savepoint, now() + interval '1 s'); SAVEPOINT b; SELECT upload('lost', '1 s'); RELEASE b; ROLLBACK TO a; SAVEPOINT c; SELECT upload('kept', '1 s'); RELEASE c; COMMIT");
my $long = sql("SELECT upload('later', '1 s'); SELECT upload('earlier', '1 h'); SELECT upload_id FROM sheet.file WHERE name = 'later'");
sql(q{UPDATE sheet.file SET created_at = created_at + interval '1 h' WHERE name = 'later'});
sql("UPDATE sheet.timer SET at = now() + interval '1 h' WHERE id = $long");
sql(q{UPDATE sheet.file SET created_at = created_at - interval '3598 s' WHERE name = 'earlier'});
sql(q{UPDATE sheet.timer SET at = f.created_at + interval '1 day' FROM sheet.file f WHERE f.upload_id = timer.id AND f.name = 'earlier'});
wait_until_removed('earlier', 'an entry whose time becomes earlier is served then');
wait_until_removed($_, "$_: an entry of a transaction with savepoints that are rolled back is served") for 'outer', 'kept';
is_in_time('%er', 'in time');
is(is_there('rolled back') + is_there('savepoint') + is_there('later'), 3, 'those that were rolled back, or become later, are not served');
is(sql("SELECT at > now() + interval '50 min' FROM sheet.timer WHERE id = $long"), 't', 'and the later one has its time');
sql(q{DELETE FROM sheet.file; DELETE FROM sheet.timer});
my ($code, $out, $err) = $node->psql('postgres', q{BEGIN; SELECT upload('prepared', '1 s'); PREPARE TRANSACTION 'timer'});
like($err, qr/cannot PREPARE a transaction that has set a timer/, 'a transaction that has set a timer cannot be prepared');
($code, $out, $err) = $node->psql('postgres', q{INSERT INTO sheet.timer VALUES ('nothing', 1, now())});
like($err, qr/the timer has no kind "nothing"/, 'the kinds are known');

# ---- in use, and not removable ----
my $holder = new_session($node);
sql(q{SELECT upload('used ' || n, '500 ms') FROM generate_series(1, 3) n; SELECT upload('row', '1 s')});
$holder->ask(q{BEGIN});
$holder->ask(q{SELECT count(*) FROM (SELECT FROM sheet.file WHERE name LIKE 'used %' FOR UPDATE) f});
$holder->ask(q{UPDATE sheet.timer SET at = now() FROM sheet.file f WHERE f.upload_id = id AND f.name = 'row'});
my $log = -s $node->logfile;
sql(q{SELECT upload('bad ' || n, '500 ms') FROM generate_series(1, 2) n; SELECT upload('good ' || n, interval '1 ms' * n) FROM generate_series(1, 1500) n});
wait_until_removed('good %', 'what is in use, or fails, does not keep others');
is_in_time('good %', 'the last one');
$node->poll_query_until('postgres', q{SELECT sum(failures) >= 2 FROM sheet.timer t JOIN sheet.file f ON f.upload_id = t.id WHERE f.name LIKE 'bad %'}) or die 'no failure is noted';
is(is_there('used %') + is_there('bad %') + is_there('row'), 6, 'those remain');
like(slurp_file($node->logfile, $log), qr/could not remove what has expired in database "postgres" \(kind "upload", id \d+\): not this one.*retried with increasing delays/s, 'a failure is logged');
cmp_ok(stat_of('failures'), '>=', 2, 'and counted');
$holder->ask(q{ROLLBACK});
wait_until_removed($_, "$_: what was in use is removed when it is not any more") for 'used %', 'row';
sql(q{UPDATE sheet.file SET name = 'healed ' || name WHERE name LIKE 'bad %'; UPDATE sheet.timer SET at = now()});
wait_until_removed('healed %', 'what could not be removed is, once it can be');

$holder->ask('BEGIN');
$holder->ask('LOCK TABLE sheet.file');
sql("INSERT INTO sheet.timer SELECT 'upload', -n, now() FROM generate_series(1, 1000) n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer' AND wait_event_type = 'Lock'}) or die 'no worker waits';
$holder->ask('ROLLBACK');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM sheet.timer'), 'a table that is locked for a while keeps nothing from being served then');

# ---- parts of uploads, and the functions that begin and end them ----
sql(q{SELECT sheet.create('files')});
my $upload = sql(q{SELECT upload_id FROM sheet.file_begin(1, 'large', NULL, NULL)});
is(sql("SELECT at - now() > interval '23 h' FROM sheet.timer WHERE kind = 'upload' AND id = $upload"), 't', 'an upload has an entry');
sql("INSERT INTO sheet.file_part SELECT $upload, n, 'x' FROM generate_series(0, 449) n");
sql("UPDATE sheet.file SET created_at = now() - interval '1 day' WHERE upload_id = $upload");
($code, $out, $err) = $node->psql('postgres', "SELECT sheet.file_put($upload, 450, 'x')");
like($err, qr/no upload $upload is under way/, 'after a day it is refused what it sends');
sql("UPDATE sheet.timer SET at = now() WHERE id = $upload");
wait_until_removed('large', 'it is removed');
is(sql('SELECT count(*) FROM sheet.file_part'), 0, 'with all its parts');
$upload = sql(q{SELECT upload_id FROM sheet.file_begin(1, 'small', NULL, NULL)});
sql("SELECT sheet.file_put($upload, 0, 'x'), sheet.file_end($upload, 'digest')");
sql(sprintf 'SELECT sheet.file_abort(%d)', sql(q{SELECT upload_id FROM sheet.file_begin(1, 'aborted', NULL, NULL)}));
is(sql('SELECT count(*) FROM sheet.timer'), 0, 'uploads that end or are aborted have no entry any more');

# ---- revoked tokens ----
my $uid = sql(q{SELECT sheet.account_create('somebody', NULL, 'hash')});
sql("SELECT sheet.account_revoke_token($uid, n, extract(epoch FROM now() - interval '1 day' + interval '1 s' * CASE WHEN n > 8 THEN 3600 ELSE 1 + n % 2 END)::bigint) FROM generate_series(1, 10) n");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 2 FROM sheet.revoked_token'), 'revoked tokens that have expired are removed');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.timer WHERE kind = 'revoked tokens' AND id = $uid AND at > now() + interval '50 min'"), 'and the next ones wait for their time');

# ---- sleeping ----
wait_until_idle();
my $launcher = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_sheet launcher'});

sub wakeups
{
	my ($count) = slurp_file("/proc/$_[0]/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m;
	return $count;
}
# Wakes in a time are what is tested. Something else may wake a process once: the least of five counts is taken.
sub wakes_seldom
{
	my ($count) = @_;
	for (1 .. 5)
	{
		my ($before, $start) = ($count->(), time);
		sleep 2;
		return 1 if $count->() - $before < time - $start;
	}
	return 0;
}
ok(wakes_seldom(sub { wakeups($launcher) }), 'with an entry of the next hour no worker runs, and the launcher wakes less than once a second');
sql(q{SELECT upload('soon', '20 s'); SELECT upload('sooner', '100 ms')});
wait_until_removed('sooner', 'a worker that knows of another entry stays');
my $worker = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer'});
ok(wakes_seldom(sub { stat_of('wakes') }), 'and wakes less than once a second');

# ---- workers and the server are killed ----
my $life = server_life($node);
sql(q{SELECT upload('killed ' || n, interval '1 ms' * n) FROM generate_series(1, 2000) n});
kill 'KILL', $worker;
wait_until_next_life($node, $life);
wait_until_removed('killed %', 'a worker is killed: what is due is removed by the next one');
is(removed('killed %'), 2000, 'each once');
sql(q{ALTER DATABASE postgres SET pg_sheet.stop_point = 'timer-locked:wait'});
$holder = $node->background_psql('postgres');
$holder->query_safe(q{SELECT pg_advisory_lock(hashtext('timer-locked'))});
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer'});
sql(q{SELECT upload('within ' || n, '200 ms') FROM generate_series(1, 100) n});
my $within = q{FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer' AND wait_event_type = 'Lock'};
$node->poll_query_until('postgres', "SELECT count(*) = 1 $within") or die 'no worker stops';
$life = server_life($node);
kill 'KILL', sql("SELECT pid $within");
wait_until_next_life($node, $life);
$holder->{run}->finish;
sql('ALTER DATABASE postgres RESET pg_sheet.stop_point');
wait_until_removed('within %', 'so it is when that happens within a batch');
is(removed('within %'), 100, 'each once');
sql(q{SELECT upload('terminated ' || n, '1 s') FROM generate_series(1, 100) n; SELECT upload('first', '0')});
wait_until_removed('first', 'a worker runs');
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer'});
wait_until_removed('terminated %', 'one that is told to go has a successor');
sql(q{SELECT upload('relaunched ' || n, '1 s') FROM generate_series(1, 100) n; SELECT upload('first', '0')});
wait_until_removed('first', 'a worker runs');
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_sheet launcher'});
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'pg_sheet launcher'}) or die;
wait_until_removed('relaunched %', 'and so has the launcher');
sql(q{SELECT upload('crash ' || n, interval '10 ms' * n) FROM generate_series(1, 200) n});
sql(q{SELECT upload('orphan ' || n, '2 s') FROM generate_series(1, 3) n; SELECT sheet.account_revoke_token(sheet.account_create('orphan', NULL, 'hash'), 1, extract(epoch FROM now())::bigint - 86398)});
sql(q{DELETE FROM sheet.timer t USING sheet.file f WHERE f.upload_id = t.id AND f.name LIKE 'orphan %'; DELETE FROM sheet.timer WHERE kind = 'revoked tokens' AND id = (SELECT uid FROM sheet.account WHERE name = 'orphan')});
$node->stop('immediate');
$node->start;
wait_until_removed('crash %', 'the server crashes: nothing is lost');
wait_until_removed('soon', 'nor what was to end later');
wait_until_removed('orphan %', 'entries that are missing are added when the server starts');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM sheet.revoked_token JOIN sheet.account USING (uid) WHERE name = 'orphan'}), 'of each kind');

# ---- other databases ----
sql(q{CREATE DATABASE two});
sql("CREATE EXTENSION pg_sheet; $setup", 'two');
sql(q{SELECT upload('hour', '1 h'); SELECT upload('copied ' || n, '2 s') FROM generate_series(1, 10) n}, 'two');
sql(q{CREATE DATABASE copy TEMPLATE two});
wait_until_removed('copied %', "the timer of a database that is copied goes on in $_", $_) for 'two', 'copy';
sql(q{SELECT upload('dumped ' || n, interval '1 s' * n) FROM generate_series(1, 3) n}, 'two');
sql(q{CREATE DATABASE restored});
my $dump = $node->basedir . '/timer.sql';
command_ok([ 'pg_dump', '-f', $dump, $node->connstr('two') ], 'a database is dumped');
command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'and restored');
wait_until_removed('dumped %', 'the entries of a dump are served where it is restored', 'restored');
# As after a parallel restore that has lost the entry.
sql(q{SELECT upload('lost', '1 s'); DELETE FROM sheet.timer t USING sheet.file f WHERE f.upload_id = t.id AND f.name = 'lost'; SELECT sheet.file_begin(sheet.create('files'), 'has one', NULL, NULL)}, 'restored');
($code, $out, $err) = $node->psql('restored', q{CALL sheet.fsck_all(repair => false); SELECT count(*) FROM sheet.timer});
is($out, 2, 'without a repair fsck_all adds nothing to the entries of others');
($code, $out, $err) = $node->psql('restored', q{CALL sheet.fsck_all()});
like($err, qr/entries of the timer that were missing: 1, all added.*findings: 1, repaired: 1/s, 'entries that are missing are added by fsck_all');
wait_until_removed('lost', 'and served', 'restored');
($code, $out, $err) = $node->psql('restored', q{CALL sheet.fsck_all()});
like($err, qr/findings: 0, repaired: 0/, 'once');
sql(q{SELECT upload('sleeping', '30 s'); SELECT upload('now', '0')}, $_) for 'two', 'copy', 'restored';
wait_until_removed('now', "databases take turns: $_", $_) for 'two', 'copy', 'restored';
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer'}) or die;
for my $database ('copy', 'restored')
{
	my $start = time;
	sql("DROP DATABASE $database");
	cmp_ok(time - $start, '<', 4, "a database whose timer has entries is dropped: $database");
}
sql(q{DROP TRIGGER upload_removed ON sheet.file; SET client_min_messages = warning; DROP EXTENSION pg_sheet CASCADE}, 'two');
sql(q{CREATE EXTENSION pg_sheet; DROP TABLE removed; DROP FUNCTION upload_removed, begin_upload, upload;} . $setup, 'two');
sql(q{SELECT upload('again', '500 ms')}, 'two');
wait_until_removed('again', 'an extension that is dropped and created has a timer', 'two');
sql(q{DROP DATABASE two});

# ---- databases that allow no connections, templates, and new names ----
for my $name ('closed', 'template')
{
	sql("CREATE DATABASE $name");
	sql("CREATE EXTENSION pg_sheet; $setup", $name);
}
sql(q{SELECT upload('closed ' || n, '8 s') FROM generate_series(1, 5) n}, $_) for 'closed', 'template';
sql('ALTER DATABASE closed ALLOW_CONNECTIONS false; ALTER DATABASE template IS_TEMPLATE true');
$node->restart;
$log = -s $node->logfile;
ok($node->poll_query_until('postgres', 'SELECT served >= 5 FROM sheet.timer_stats'), 'the timer of a database that allows no connections is served after a restart');
sql('ALTER DATABASE closed ALLOW_CONNECTIONS true; ALTER DATABASE template IS_TEMPLATE false');
wait_until_removed('closed %', "nothing is left: $_", $_) for 'closed', 'template';
sql(q{SELECT upload('now', '0'); SELECT upload('renamed', '8 s')}, 'template');
wait_until_removed('now', 'a worker is in a database', 'template');
sql('ALTER DATABASE template RENAME TO renamed');
wait_until_removed('renamed', 'which gets another name, and its timer goes on', 'renamed');
sql('DROP DATABASE renamed; DROP DATABASE closed');
cmp_ok(scalar(() = slurp_file($node->logfile, $log) =~ /FATAL|ERROR:/g), '<', 10, 'and nothing of that fills the log');

# ---- a standby ----
wait_until_idle();
my $standby = start_standby($node, 'timer_standby');
sql(q{SELECT upload('standby ' || n, '2 s') FROM generate_series(1, 10) n});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$node->stop('immediate');
sleep 0.1 while $standby->safe_psql('postgres', q{SELECT max(at) > clock_timestamp() FROM sheet.timer WHERE kind = 'upload'}) eq 't';
is($standby->safe_psql('postgres', q{SELECT count(*) FROM sheet.file WHERE name LIKE 'standby %'}), 10, 'a standby removes nothing');
$standby->promote;
ok($standby->poll_query_until('postgres', q{SELECT count(*) = 0 FROM sheet.file WHERE name LIKE 'standby %'}), 'until it is promoted');
$standby->stop;

# ---- the clock ----
start_with_clock($node);
sql(q{SELECT upload('step ' || n, interval '10 min' + interval '1 ms' * n) FROM generate_series(1, 100) n; SELECT upload('awake', '1 h'); SELECT upload('after', '2 h')});
step_clock($node, 3600);
wait_until_removed($_, "the clock steps forward: $_") for 'step %', 'awake';
is(is_there('after'), 1, 'what ends later is not removed');
sql(q{SELECT upload('known', '20 s'); SELECT upload('now', '0')});
wait_until_removed('now', 'a worker is awake');
step_clock($node, 0);
sql(q{SELECT upload('back ' || n, '1 s') FROM generate_series(1, 100) n});
my $wakes = stat_of('wakes');
wait_until_removed('back %', 'the clock steps back: what ends soon is removed soon');
is_in_time('back %', 'the last one');
is(is_there('known'), 1, 'what was to end is not removed early');
sleep 2; # time is what is tested: a busy worker wakes thousands of times
cmp_ok(stat_of('wakes') - $wakes, '<', 20, 'and no worker is busy');
step_clock($node, 7300);
wait_until_removed($_, "nor is anything forgotten: $_") for 'known', 'after';
$node->stop;
done_testing();
