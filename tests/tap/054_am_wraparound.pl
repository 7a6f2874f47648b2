# Transaction ids come round: tables that use sheetlog are frozen by VACUUM and by autovacuum, relfrozenxid advances, and rows
# stay what they were when the commit log of their transactions is gone, three times round half of the ids.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('wraparound');
$node->append_conf('postgresql.conf', "autovacuum = off\nautovacuum_naptime = 1s\nautovacuum_freeze_max_age = 100000\nautovacuum_vacuum_cost_delay = 0\n");
$node->restart;
my $segment = 1048576; # transactions of a file of the commit log

$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE t (id bigint, body text) USING sheetlog;
	CREATE UNIQUE INDEX ON t (id);
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
	INSERT INTO t SELECT i, (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 1000) j) FROM generate_series(3001, 3010) i;
	BEGIN; INSERT INTO t SELECT i, repeat('aborted', 2000) FROM generate_series(4001, 4300) i; ROLLBACK;
	SET pg_sheet.allow_log_delete = on;
	DELETE FROM t WHERE id % 10 = 0;
	BEGIN; DELETE FROM t WHERE id % 10 = 1; ROLLBACK;
	SQL
my $sheet = $node->safe_psql('postgres', q{SELECT sheet.create('round')});
$node->safe_psql('postgres', "SELECT sheet.set($sheet, 'A' || i, 'v' || i) FROM generate_series(1, 100) i; SELECT sheet.commit($sheet)");

my $sum = q{SELECT count(*), sum(id), md5(string_agg(body, ',' ORDER BY id)) FROM t};
my $rows = $node->safe_psql('postgres', $sum);
my $age = q{SELECT max(age(relfrozenxid)) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'sheetlog'};

# Leaves out transaction ids while the server is down.
my $next = 0;

sub skip_to
{
	my ($xid) = @_;
	$node->stop;
	my $file = sprintf '%s/pg_xact/%04X', $node->data_dir, $xid / $segment;
	open my $fh, '>:raw', $file or die "$file: $!";
	print $fh "\0" x (256 * 1024);
	close $fh;
	system_or_bail('pg_resetwal', '-x', $xid, $node->data_dir);
	$node->start;
}

# A VACUUM that is not told to freeze, with the ids not yet old, and then old enough to force one.
$node->safe_psql('postgres', 'VACUUM t');
is($node->safe_psql('postgres', $sum), $rows, 'after VACUUM');
skip_to(3 * $segment);
# An autovacuum is forced now, though the setting is off.
is($node->safe_psql('postgres', $sum), $rows, 'rows with old ids are read');
$node->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()');
ok($node->poll_query_until('postgres', "SELECT ($age) < 100000 AND (SELECT bool_and(age(datfrozenxid) < 200000) FROM pg_database)"), 'autovacuum freezes all of them');
$node->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf()');
$node->safe_psql('postgres', 'VACUUM (FREEZE)');
$node->safe_psql($_, 'VACUUM (FREEZE)') for 'template1';
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_ls_dir('pg_xact') f WHERE f < '0003'}), 0, 'the commit log of the old ids is gone');
is($node->safe_psql('postgres', $sum), $rows, 'the rows are there');
is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}), '', 'sound');

for my $round (1 .. 3)
{
	my $xid = ($round * 1_500_000_000 + 10 * $segment) % 2**32;
	$xid += 10 * $segment if $xid < 10 * $segment;
	skip_to($xid);
	is($node->safe_psql('postgres', $sum), $rows, "round $round: rows of before are read");
	$node->safe_psql('postgres', "INSERT INTO t VALUES (10000 + $round, 'round'); BEGIN; INSERT INTO t VALUES (20000 + $round, 'aborted'); ROLLBACK");
	like($node->psql('postgres', "INSERT INTO t VALUES (5, 'twice')", on_error_die => 0) ? 'refused' : 'taken', qr/refused/, "round $round: unique still");
	$rows = $node->safe_psql('postgres', $sum);
	$node->safe_psql('postgres', "SELECT sheet.set($sheet, 'B$round', 'round')");
	$node->safe_psql($_, 'VACUUM (FREEZE)') for 'postgres', 'template1';
	$node->safe_psql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
	$node->safe_psql('template0', 'VACUUM (FREEZE)');
	cmp_ok($node->safe_psql('postgres', $age), '<', 1000, "round $round: frozen");
	is($node->safe_psql('postgres', $sum), $rows, "round $round: the rows are there");
	is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}), '', "round $round: sound");
	is($node->safe_psql('postgres', "SELECT what FROM sheet.fsck($sheet, true)"), 'clean', "round $round: the sheet is sound");
}
$node->stop;
done_testing();
