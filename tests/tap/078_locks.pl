# Locks with names: 50 sessions of one name never hold it together, and wait without CPU; what is left of a lock when clients,
# sessions and servers have gone; no role takes all names; tables in shared memory that are full, read by many sessions.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_server('locks');
$node->safe_psql('postgres', 'CREATE TABLE counter (inside int, most int, total int); INSERT INTO counter VALUES (0, 0, 0)');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# ---- one at a time ----------------------------------------------------------------------------------------------------------

$node->pgbench(
	'--no-vacuum --client=50 --jobs=2 --transactions=20',
	0,
	[qr{processed: 1000/1000}],
	[qr{^$}],
	'50 sessions',
	{ 'locks' => q{SELECT sheet.lock('counter');
UPDATE counter SET inside = inside + 1, most = greatest(most, inside + 1);
UPDATE counter SET inside = inside - 1, total = total + 1;
SELECT sheet.unlock('counter');
} });
is(sql('SELECT * FROM counter'), '0|1|1000', 'never two at a time');
is(sql('SELECT count(*) FROM sheet.locks'), '0', 'no lock is left');

# ---- waiting ----------------------------------------------------------------------------------------------------------------

# Milliseconds of CPU that these processes have used.
sub cpu_ms
{
	my $sum = 0;
	$sum += (split ' ', slurp_file("/proc/$_/schedstat"))[0] / 1e6 for @_;
	return $sum;
}

my $holder = new_session($node);
$holder->rows(q{SELECT sheet.lock('idle')});
my $script = $node->basedir . '/wait.sql';
append_to_file($script, q{SELECT sheet.lock('idle'); SELECT sheet.unlock('idle');});
my $waiters = IPC::Run::start(
	[ 'pgbench', '--no-vacuum', '--client=50', '--jobs=2', '--transactions=1', "--file=$script", $node->connstr('postgres') ],
	'>', \my $report, '2>', \my $errors, IPC::Run::timeout(300));
$node->poll_query_until('postgres', q{SELECT waiting = 50 FROM sheet.locks WHERE name = 'idle'}) or die 'they do not wait';
my @pids = split /\n/, sql(q{SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
is(@pids, 50, '50 sessions wait');
my $used = cpu_ms(@pids);
sleep 3;
cmp_ok(cpu_ms(@pids) - $used, '<', 30, 'they use no CPU');
$holder->rows(q{SELECT sheet.unlock('idle')});
$waiters->finish;
like($report, qr{processed: 50/50}, 'each gets the lock');

# ---- no role takes all names ---------------------------------------------------------------------------------------------------

sql(q{CREATE ROLE greedy; CREATE ROLE modest; CREATE ROLE gate IN ROLE sheet_gateway});

# The numbers of names that so many sessions of the role get, 128 each at most; the sessions remain.
my @sessions;

sub take_names
{
	my ($role, $count) = @_;
	my $taken = 0;
	for (1 .. $count)
	{
		push @sessions, new_session($node);
		$sessions[-1]->ask("SET SESSION AUTHORIZATION $role");
		my $answer = $sessions[-1]->ask('SELECT cardinality(sheet.lock(array_agg(pg_backend_pid() || $$ $$ || i))) FROM generate_series(1, 128) i');
		$taken += $answer if $answer !~ /^ERROR/;
	}
	return $taken;
}

my $life = server_life($node);
is(take_names('greedy', 33), (4096 - 512) / 2, 'one role gets half of the names that are not reserved');
like($sessions[-1]->ask(q{SELECT sheet.lock('more')}), qr/^ERROR 53400.*role "greedy" holds too many/, 'the error says so');
is(take_names('modest', 4), 512, 'another role gets names');
is(take_names('gate', 4), 512, 'a gateway gets names');
is(take_names('greedy', 1), 0, 'a role that holds many gets no more');
is(take_names('postgres', 11), 1280, 'the last names are for superusers');
is(sql('SELECT count(*) FROM sheet.locks'), 4096, 'the table is full, and all of it is shown');
like($sessions[-1]->ask(q{SELECT sheet.lock('more')}), qr/^ERROR 53400/, 'the table has an end');
is(server_life($node), $life, 'the server runs on');
# Names that DISCARD ALL has released count no more, neither for the session nor for its role.
my $pooled = pop @sessions;
$_->end for @sessions;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM sheet.locks') or die 'names are left';
for my $round (1 .. 3)
{
	is($pooled->ask("SELECT cardinality(sheet.lock(array_agg('pooled $round ' || i))) FROM generate_series(1, 128) i"), 128, "a pooled session, round $round");
	$pooled->ask('DISCARD ALL');
}
$pooled->end;
@sessions = ();
is(take_names('greedy', 14), (4096 - 512) / 2, 'the names of sessions that have ended are free');
$_->end for @sessions;

# ---- numbers cannot be guessed -----------------------------------------------------------------------------------------------

# Wrong numbers of the present owner take turns: sessions together guess no faster than one.
my $guarded = new_session($node);
my $secret = $guarded->rows(q{SELECT sheet.lock('guarded')});
my $guess = "SELECT sheet.require_lock('guarded', " . ($secret ^ 1) . ')';
my @guessers = map { new_session($node) } 1 .. 10;
$_->ask('SET SESSION AUTHORIZATION modest') for @guessers;
my $begin = time;
$_->send($guess) for @guessers;
is((grep { $_->answer =~ /^ERROR SF002/ } @guessers), 10, 'ten sessions guess wrongly');
cmp_ok(time - $begin, '>=', 0.19, 'which takes ten times 20 ms');
# No timeout shortens one. It may end the statement before.
$guessers[0]->ask(q{SET statement_timeout = '5ms'});
my ($answer, $took) = ('', 0);
for (1 .. 100)
{
	$begin = time;
	$answer = $guessers[0]->ask($guess);
	$took = time - $begin;
	last if $answer =~ /^ERROR SF002/;
}
like($answer, qr/^ERROR SF002/, 'a wrong number is refused as such, and not by statement_timeout');
cmp_ok($took, '>=', 0.019, 'after its time');
$guessers[0]->ask('RESET statement_timeout');
unlike($guessers[0]->ask("SELECT sheet.require_lock('guarded', $secret)"), qr/^ERROR/, 'the right number is not refused');
$_->end for @guessers, $guarded;

# ---- a client that is gone --------------------------------------------------------------------------------------------------

# Waits for a state before the lease is over; a new psql for each look could take longer.
my $watch = new_session($node);

sub wait_for
{
	my ($condition) = @_;
	for (1 .. 1000)
	{
		return if $watch->rows("SELECT coalesce(($condition), false)") eq 't';
		sleep 0.02;
	}
	die "not before the lease has passed: $condition";
}

# The first of two sessions gets the lock for two seconds, $away makes its client vanish. The second has the lock in time.
sub passes_on
{
	my ($what, $away) = @_;
	my ($owner, $waiter) = map { new_session($node) } 1 .. 2;
	my $number = $owner->rows(q{SELECT sheet.lock('leased', lease => '2 s')});
	$waiter->send(q{SELECT sheet.lock('leased')});
	wait_for(q{SELECT waiting = 1 FROM sheet.locks WHERE name = 'leased'});
	$away->($owner);
	my $since = time;
	cmp_ok($waiter->answer, '>', $number, "$what: the waiter has the lock, under a higher number");
	cmp_ok(time - $since, '<', 6, "$what: in time"); # two seconds, and four for a busy machine
	is(($node->psql('postgres', "SELECT sheet.require_lock('leased', $number)"))[0], 3, "$what: the former number is refused");
	$waiter->end;
	$owner->{psql}->signal('KILL');
	eval { $owner->{psql}->finish };
}

passes_on('a client that hangs', sub { $_[0]{psql}->signal('STOP') });
passes_on(
	'a client that hangs in a transaction',
	sub { $_[0]->rows('BEGIN'); $_[0]{psql}->signal('STOP') });
passes_on(
	'a client that ends during a statement',
	sub {
		$_[0]->send('SELECT pg_sleep(600)');
		wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'});
		$_[0]{psql}->signal('KILL');
	});

my $client = new_session($node);
$client->rows(q{SELECT sheet.lock('kept', lease => '3 s')});
for (1 .. 15)
{
	sleep 0.3;
	$client->rows('SELECT 1');
}
is(sql(q{SELECT sheet.locked('kept')}), 't', 'a client that sends statements keeps the lock');
$_->end for $client, $watch;

# ---- ends ---------------------------------------------------------------------------------------------------------------------

my ($owner, $waiter) = map { new_session($node) } 1 .. 2;
my $first = $owner->ask(q{SELECT sheet.lock('work')});
$waiter->send(q{SELECT sheet.lock('work')});
$node->poll_query_until('postgres', q{SELECT waiting = 1 FROM sheet.locks WHERE name = 'work'}) or die 'nobody waits';
is(sql("SELECT pg_terminate_backend($owner->{pid})"), 't', 'the owner is ended');
my $second = $waiter->answer;
cmp_ok($second, '>', $first, 'the waiter has the lock, under a higher number');
is(sql(q{SELECT pid FROM sheet.locks}), $waiter->{pid}, 'it is the owner');
is(($node->psql('postgres', "SELECT sheet.require_lock('work', $first)"))[0], 3, 'the former number is refused');
is(($node->psql('postgres', "SELECT sheet.require_lock('work', $second)"))[0], 0, 'the present one is not');

# A killed session takes the server's shared memory with it.
$life = server_life($node);
kill 'KILL', $waiter->{pid};
wait_until_next_life($node, $life);
is(sql(q{SELECT sheet.locked('work')}), 'f', 'nobody holds it');
my $third = sql(q{SELECT sheet.lock('work')});
cmp_ok($third, '>', $second, 'after a crash of the server the next number is higher');

# A number that was returned to a client is never given out again, although its transaction did not commit.
my $open = new_session($node);
$open->ask('BEGIN');
my $fourth = $open->ask(q{SELECT sheet.lock('work')});
$node->kill9;
for (1 .. 100) # its children need a moment to notice
{
	last if $node->start(fail_ok => 1);
	sleep 0.1;
	$node->stop('fast', fail_ok => 1);
}
cmp_ok(sql(q{SELECT sheet.lock('work')}), '>', $fourth, 'nor is one of a transaction that was cut off');

# ---- many sessions, and tables that are full --------------------------------------------------------------------------------------

# Names, sheets in the cache, followers, checks and versions that are due: each time beyond what the tables hold, while all of the
# sessions read all of the tables.
$node->append_conf('postgresql.conf', "max_locks_per_transaction = 1024\npg_sheet.max_cached_sheets = 16\npg_sheet.version_edits = 1\npg_sheet.version_interval = 0\n");
$node->restart;
sql(q{
CREATE FUNCTION crowd_look() RETURNS bigint LANGUAGE sql AS $$
	SELECT (SELECT count(number) FROM sheet.locks) + (SELECT count(*) FROM sheet.cache_entries) + (SELECT count(bytes) FROM sheet.cache_stats)
		+ (SELECT count(*) FROM sheet.gateways) + (SELECT count(queued) FROM sheet.version_stats) + (SELECT count(*) FROM sheet.fsck_progress)
		+ (SELECT count(*) FROM sheet.holders(ARRAY(SELECT sheet_id FROM sheet.list LIMIT 50))) + (SELECT count(*) FROM sheet.cells WHERE sheet_id <= 50)
$$;
CREATE SEQUENCE crowd_epochs;
CREATE FUNCTION crowd_fill(client int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		PERFORM sheet.lock(array_agg(client || ' ' || i)) FROM generate_series(1, 128) i;
	EXCEPTION WHEN configuration_limit_exceeded THEN NULL;
	END;
	FOR sheet IN 1 .. 15
	LOOP
		BEGIN
			PERFORM sheet.claim(client * 15 + sheet, nextval('crowd_epochs'), 'gateway ' || client, true), sheet.set(client * 15 + sheet, 'A1', random()::text);
		EXCEPTION WHEN OTHERS THEN EXIT; -- the others edit all sheets that the cache has room for
		END;
	END LOOP;
END $$;
CREATE FUNCTION crowd_follow(client int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sheet.follow(client, (SELECT "cursor" FROM sheet.follow(client, NULL, 0)), 1000);
EXCEPTION WHEN too_many_connections THEN NULL;
END $$;
});
sql('DO $$ BEGIN FOR i IN 1 .. 1400 LOOP PERFORM sheet.create($n$crowd$n$); COMMIT; END LOOP; END $$');
$life = server_life($node);
$node->pgbench(
	'--no-vacuum --client=90 --jobs=2 --transactions=3',
	0,
	[qr{processed: 270/270}],
	[qr{^$}],
	'90 sessions read tables that are full',
	{
		'crowd@1' => q{SELECT crowd_fill(:client_id); SELECT crowd_look(); SELECT crowd_follow(:client_id); SELECT crowd_look(); SELECT pg_advisory_unlock_all();},
	});
is(server_life($node), $life, 'the server runs on');
is(sql('SELECT count(*) FROM sheet.locks'), '0', 'no lock is left after them');

done_testing();
