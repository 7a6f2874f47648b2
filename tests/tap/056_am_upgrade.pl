# pg_upgrade takes the files of tables that use sheetlog, and the sheets with them, as they are.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = new_server('old');
$old->safe_psql('postgres', <<~'SQL');
	CREATE TABLE t (id bigint, body text) USING sheetlog;
	CREATE UNIQUE INDEX ON t (id);
	INSERT INTO t SELECT i, repeat(md5(i::text), 1 + i % 100 * (i % 7)) FROM generate_series(1, 3000) i;
	BEGIN; INSERT INTO t SELECT i, 'aborted' FROM generate_series(4001, 4300) i; ROLLBACK;
	SET pg_sheet.allow_log_delete = on;
	DELETE FROM t WHERE id % 10 = 0;
	CREATE TABLE p (id bigint, body text) PARTITION BY RANGE (id);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) USING sheetlog;
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
	INSERT INTO p SELECT i, 'part' FROM generate_series(0, 199) i;
	SQL
my $sheet = $old->safe_psql('postgres', q{SELECT sheet.create('upgraded')});
$old->safe_psql('postgres', "SELECT sheet.set($sheet, 'A' || i, 'v' || i) FROM generate_series(1, 300) i; SELECT sheet.commit($sheet); SELECT sheet.set($sheet, 'A1', 'later')");
my $sum = q{SELECT count(*), sum(id), md5(string_agg(body, ',' ORDER BY id)) FROM t};
my $edits = "SELECT count(*), md5(string_agg(l::text, ',' ORDER BY seq)) FROM sheet.log l WHERE sheet_id = $sheet";
my @before = map { $old->safe_psql('postgres', $_) } $sum, $edits;
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_sheet'\n");
my $bindir = (split /\n/, `pg_config --bindir`)[0];
chdir $PostgreSQL::Test::Utils::tmp_check or die;
command_ok(
	[ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir, '-s', $new->host, '-p', $old->port, '-P', $new->port ],
	'pg_upgrade');
$new->start;
is($new->safe_psql('postgres', $sum), $before[0], 'the rows are there');
is($new->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $sum WHERE id > 0"), $before[0], 'by the index, too');
is($new->safe_psql('postgres', $edits), $before[1], 'every edit is there');
is($new->safe_psql('postgres', 'SELECT count(*) FROM p'), 200, 'partitions');
is($new->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t') UNION ALL SELECT * FROM sheet.am_check('sheet.log_batch')}), '', 'sound');
$new->safe_psql('postgres', "INSERT INTO t VALUES (10000, 'new'); SELECT sheet.set($sheet, 'A2', 'new')");
$new->safe_psql('postgres', 'VACUUM (FREEZE) t');
is($new->safe_psql('postgres', q{SELECT body FROM t WHERE id = 10000}), 'new', 'and it goes on');
is($new->safe_psql('postgres', "SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'the sheet is sound');
$new->stop;
done_testing();
