# Sheets that a transaction holds: sheet.apply and sheet.claim with nowait answer at once, and sheet.holders says who it is. A
# batch that is sent again is confirmed only when its commit has reached the synchronous standbys.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

my $node = new_server('held', streaming => 1);
$node->safe_psql('postgres', q{SELECT sheet.account_create('clerk', '', ''); CREATE ROLE clerk LOGIN SUPERUSER; SELECT sheet.link_account('clerk', 'clerk')});

# sheet.apply of one edit of A1.
sub apply
{
	my ($sheet, $content, %options) = @_;
	my $known = $options{known} // 1;
	return 'SELECT first_seq, last_seq, duplicate FROM sheet.apply(' . join(', ', $sheet, batch([0, 0, $content]), $known, 1, 7, $options{number} // 1, 'NULL', $options{nowait} // 'true') . ')';
}

sub ask { return $node->safe_psql('postgres', $_[0]) }

# The SQLSTATE and message with which a statement fails.
sub refusal
{
	my ($sql) = @_;
	my $session = new_session($node);
	my $answer = $session->ask($sql);
	$session->end;
	return $answer;
}

my ($sheet, @others) = map { ask(q{SELECT sheet.create('sheet', 10, 10)}) } 1 .. 3;
is(ask("SELECT count(*) FROM sheet.holders('{$sheet, 4711}')"), '0', 'nobody holds a sheet');
my $holder = new_session($node, role => 'clerk');
$holder->ask("SET application_name = 'month end'");
$holder->ask("BEGIN; SELECT sheet.set($sheet, 'J10', 'held'), sheet.set($others[0], 'J10', 'held')");
is( ask("SELECT sheet_id, holder, application, transaction <> '', clock_timestamp() - since < '1 min' FROM sheet.holders('{$others[1], $sheet, $others[0]}') ORDER BY 1"),
	"$sheet|clerk|month end|t|t\n$others[0]|clerk|month end|t|t",
	'who holds which sheets');
is(ask(apply($sheet, 'x')), '||', 'a batch does not wait');
is(ask("SELECT sheet.claim($sheet, 5, 'gateway', true) IS NULL"), 't', 'nor does a claim');
is(ask('BEGIN; ' . apply($sheet, 'x') . '; ' . apply($others[1], 'x') . '; COMMIT'), "||\n2|2|f", 'and the others of its transaction are stored');
is(ask("SET lock_timeout = '10ms'; SELECT count(*) FROM sheet.range($sheet)"), '0', 'readers do not notice');
like(refusal("SET lock_timeout = '10ms'; " . apply($sheet, 'x', nowait => 'false')), qr/^ERROR 55P03/, 'without nowait it waits');
like(refusal("SET ROLE pg_monitor; SELECT sheet.holders('{1}')"), qr/^ERROR 42501/, 'gateways alone may ask');
like(refusal("SELECT sheet.holders('{1, null}')"), qr/^ERROR 22023/, 'sheets are not null');
$holder->ask('COMMIT');
$holder->end;
is(ask("SELECT count(*) FROM sheet.holders('{$sheet}')"), '0', 'it ends with the transaction');

# ---- a batch that is sent again -----------------------------------------------------------------------------------------

sub standbys
{
	my ($names) = @_;
	$node->append_conf('postgresql.conf', "synchronous_standby_names = '$names'");
	$node->reload;
	$node->poll_query_until('postgres', "SHOW synchronous_standby_names", $names);
}

my $known = ask("SELECT max(seq) FROM sheet.log WHERE sheet_id = $sheet");
my $batch = apply($sheet, 'once', known => $known, number => 2);
my ($first, $again) = (new_session($node), new_session($node));
standbys('nobody');
my $waits = 'SELECT array_agg(pid::text) FROM pg_stat_activity WHERE wait_event = $$SyncRep$$';
$first->send($batch);
ok($node->poll_query_until('postgres', $waits, "{$first->{pid}}"), 'its commit waits for a standby');
ask("SELECT pg_terminate_backend($first->{pid})");
ok($node->poll_query_until('postgres', "SELECT sheet.get($sheet, 'A1')", 'once'), 'who waited is gone: the edit is seen here');
$again->send($batch);
ok($node->poll_query_until('postgres', $waits, "{$again->{pid}}"), 'sent again, it waits for the standby as well');
standbys('');
is($again->answer, ($known + 1) . '|' . ($known + 1) . '|t', 'and then it is known to be there');
$again->end;
is(ask("SELECT count(*) FROM sheet.log WHERE sheet_id = $sheet AND new = 'once'"), '1', 'it is stored once');
$node->stop;
done_testing();
