# A check of very many sheets: in one session, with the fewest locks that a server can have, its locks and its memory stay the
# same; each repair is committed by itself, and a check that is cancelled goes on where it was.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(time);

my $sheets = rounds_to_run(8000, 20000);
my $node = new_server('many');
$node->append_conf('postgresql.conf', "max_locks_per_transaction = 10\npg_sheet.allow_log_delete = on\npg_sheet.max_cached_sheets = 64\n");
$node->restart;
$node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1..$sheets LOOP PERFORM sheet.create('sheet ' || i, 10, 10); IF i % 16 = 0 THEN COMMIT; END IF; END LOOP; END \$\$");
is($node->safe_psql('postgres', 'SELECT count(*), min(sheet_id), max(sheet_id) FROM sheet.sheet'), "$sheets|1|$sheets", "$sheets sheets");

# ---- locks and memory, looked at while the check stands still behind its first sheets and before its last ----
sub look_at
{
	my ($session) = @_;
	$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $session->{pid}") or die 'the check does not stop';
	my ($memory) = slurp_file("/proc/$session->{pid}/status") =~ /^RssAnon:\s+(\d+) kB/m;
	return {
		locks => $node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $session->{pid}"),
		sheets => $node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $session->{pid} AND locktype = 'advisory' AND objsubid = 21320"),
		done => $node->safe_psql('postgres', "SELECT sheets_done || ' of ' || sheets_total FROM sheet.fsck_progress WHERE pid = $session->{pid}"),
		memory => $memory
	};
}

sub watch
{
	my ($check, $says) = @_;
	my $holder = new_session($node);
	$holder->ask(q{SELECT pg_advisory_lock(hashtext('fsck-end'))});
	my $session = new_session($node);
	# the last step of each check, a query whose memory work_mem limits; by itself, and as fsck runs it
	$session->ask('SELECT sheet.fsck_catalog(NULL); SELECT count(*) FROM sheet.fsck(1, true)');
	$session->ask("SET pg_sheet.stop_point = 'fsck-end:wait:100'");
	$session->send($check);
	my $first = look_at($session);
	is($first->{done}, "99 of $sheets", "$check: the view says how far it has come");
	$holder->ask(q{SELECT pg_advisory_unlock_all()});
	is($session->answer, $says, "$check: comes to its end");
	$holder->ask(q{SELECT pg_advisory_lock(hashtext('fsck-end'))});
	$session->ask("SET pg_sheet.stop_point = 'fsck-end:wait:$sheets'");
	$session->send($check);
	my $last = look_at($session);
	is($last->{done}, $sheets - 1 . " of $sheets", "$check: the view says that it is before its end");
	$holder->ask(q{SELECT pg_advisory_unlock_all()});
	is($session->answer, $says, "$check: once more");
	is($last->{sheets}, 0, "$check: no sheet is locked");
	is($last->{locks}, $first->{locks}, "$check: $first->{locks} locks from the first sheets to the last");
	# 66 bytes a sheet with PostgreSQL 15, 103 with 17
	cmp_ok($last->{memory}, '<', $first->{memory} + $sheets / 8, "$check: $first->{memory} kB of memory, in the end $last->{memory} kB");
	$_->end for $session, $holder;
}
watch('SELECT severity, what FROM sheet.fsck()', 'info|clean');
watch('SELECT severity, what FROM sheet.fsck(NULL, true)', 'info|clean');
watch('CALL sheet.fsck_all()', '');
watch('CALL sheet.fsck_all(true)', '');

my $began = time;
$node->safe_psql('postgres', 'CALL sheet.fsck_all()');
my $rate = $sheets / (time - $began);
cmp_ok($rate, '>', 1000, sprintf('%d sheets a second', $rate));

# ---- very many repairs ----
my $damaged = $sheets / 10;
my $damage = 'DELETE FROM sheet.segment WHERE sheet_id % 10 = 0';
$node->safe_psql('postgres', $damage);
my ($code, $out, $err) = $node->psql('postgres', 'SELECT sheet_id, what, repaired FROM sheet.fsck()');
is(scalar(grep { /\|t$/ } split /\n/, $out), 10, 'a function repairs as many sheets as its share of the locks allows');
is(scalar(grep { /missing\|f$/ } split /\n/, $out), $damaged - 10, 'and reports the others');
ok($out =~ /^\|10 sheets were repaired, others only checked: CALL sheet.fsck_all\(\) repairs all of them\|f$/m, 'it says what repairs those');

# The messages of the procedure, without psql's own words before them.
sub fsck_all
{
	my ($arguments, $settings) = @_;
	($code, $out, $err) = $node->psql('postgres', ($settings // '') . "CALL sheet.fsck_all($arguments)");
	$err =~ s/^psql:<stdin>:\d+: //mg;
	return $err;
}

sub headless
{
	my ($where) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM sheet.sheet s WHERE $where AND NOT EXISTS (SELECT FROM sheet.segment h WHERE h.sheet_id = s.sheet_id)");
}
my $said = fsck_all('after => 200', "SET pg_sheet.stop_point = 'fsck-end:cancel:1000';");
ok($said =~ /^ERROR:  canceling statement due to user request\nCONTEXT:  check of sheet 1200: CALL sheet\.fsck_all\(after => 1199\) goes on with it$/m, 'a check that is cancelled says where to go on');
ok($said =~ /^WARNING:  sheet 210: findings: 1, repaired: 1\nDETAIL:  segment 1: the segment's row is missing \(repaired\)$/m, 'and has told of each sheet');
is(headless('sheet_id BETWEEN 201 AND 1199'), 0, 'what it had repaired is repaired');
is(headless('sheet_id <= 200'), 10, 'nothing before its beginning is');
my $left = headless('sheet_id > 1199');
cmp_ok($left, '>', $damaged - 130, 'nor behind its end');
ok(fsck_all('after => 1199') =~ /^NOTICE:  checked sheets: @{[ $sheets - 1199 ]}, findings: $left, repaired: $left$/m, 'it goes on from there, and repairs the others');
ok(fsck_all('') =~ /^NOTICE:  checked sheets: $sheets, findings: 10, repaired: 10$/m, 'the first ones are repaired by a check of all');
is(fsck_all(''), "NOTICE:  checked sheets: $sheets, findings: 0, repaired: 0", 'then all are sound');
is(headless('true'), 0, 'they are');

# ---- who may, and where ----
($code, $out, $err) = $node->psql('postgres', "BEGIN;\nCALL sheet.fsck_all()");
like($err, qr/cannot run inside a transaction block/, 'not in a transaction block');
$node->safe_psql('postgres', 'CREATE ROLE stranger LOGIN; CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; GRANT USAGE ON SCHEMA sheet TO stranger, watcher');
($code, $out, $err) = $node->psql('postgres', 'SET ROLE stranger; CALL sheet.fsck_all()');
like($err, qr/only superusers may check all sheets/, 'not everybody');
($code, $out, $err) = $node->psql('postgres', 'SET ROLE stranger; SELECT * FROM sheet.fsck_progress');
like($err, qr/permission denied for view fsck_progress/, 'nor is everybody told which sheets there are');
is($node->safe_psql('postgres', 'SET ROLE watcher; SELECT count(*) FROM sheet.fsck_progress'), 0, 'those who watch the server are; and there is no row without a check');
$node->stop;
done_testing();
