# Locks with names: 50 sessions of one name never hold it together; what is left of a lock when sessions and servers are killed.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(sleep);

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
