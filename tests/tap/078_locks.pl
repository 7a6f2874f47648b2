# Locks with names: 50 sessions of one name never hold it together, and wait without CPU; what is left of a lock when clients,
# sessions and servers have gone.
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

# ---- a client that is gone --------------------------------------------------------------------------------------------------

# The first of two sessions gets the lock for a second, $away makes its client vanish. The second has the lock in time.
sub passes_on
{
	my ($what, $away) = @_;
	my ($owner, $waiter) = map { new_session($node) } 1 .. 2;
	my $number = $owner->rows(q{SELECT sheet.lock('leased', lease => '1 s')});
	$waiter->send(q{SELECT sheet.lock('leased')});
	$node->poll_query_until('postgres', q{SELECT waiting = 1 FROM sheet.locks WHERE name = 'leased'}) or die 'nobody waits';
	$away->($owner);
	my $since = time;
	cmp_ok($waiter->answer, '>', $number, "$what: the waiter has the lock, under a higher number");
	cmp_ok(time - $since, '<', 3, "$what: in time"); # a second, and two for a busy machine
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
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) or die;
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
$client->end;

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
my $life = server_life($node);
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

done_testing();
