# pg_upgrade takes the files of tables that use sheetlog, and sheets with their versions and files, as they are; pg_dump
# and a restore write them anew. From the same version of PostgreSQL, and from those in PG_SHEET_UPGRADE_FROM
# (directories with bin/, which have the extension; set by make check PGVERSIONS="15 17").
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $bindir = (split /\n/, `pg_config --bindir`)[0];
my $here = $bindir =~ s{/bin$}{}r;
my $count = 0;

# Both clusters are without checksums: they are the default from PostgreSQL 18 on, and pg_upgrade needs the same in both.
sub make_cluster
{
	my ($name, $directory) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $directory);
	$node->init(extra => `$directory/bin/postgres --version` =~ / (\d+)/ && $1 >= 18 ? ['--no-data-checksums'] : []);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_sheet'\n");
	return $node;
}

sub fill
{
	my ($node) = @_;
	$node->safe_psql('postgres', <<~'SQL');
		CREATE EXTENSION pg_sheet;
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
	my $account = $node->safe_psql('postgres', q{SELECT sheet.account_create('ann', NULL, NULL)});
	my $sheet = $node->safe_psql('postgres', "SELECT sheet.create('upgraded', as_uid => $account)");
	$node->safe_psql('postgres', "SELECT sheet.set($sheet, 'A' || i, 'v' || i) FROM generate_series(1, 300) i; SELECT sheet.commit($sheet); SELECT sheet.set($sheet, 'A1', 'later'), sheet.insert_rows($sheet, 3, 2); SELECT sheet.commit($sheet, 'two'); SELECT sheet.set($sheet, 'B7', 'last')");
	my $upload = $node->safe_psql('postgres', "SELECT upload_id FROM sheet.file_begin($sheet, 'picture.png', 'image/png', as_uid => $account)");
	$node->safe_psql('postgres', "SELECT sheet.file_put($upload, 0, decode(repeat('00ff', 5000), 'hex')), sheet.file_end($upload, 'ff')");
	return ($sheet, $upload);
}

sub answers
{
	my ($node, $sheet, $upload) = @_;
	return map { $node->safe_psql('postgres', $_) }
	  q{SELECT count(*), sum(id), md5(string_agg(body, ',' ORDER BY id)) FROM t},
	  q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(id), md5(string_agg(body, ',' ORDER BY id)) FROM t WHERE id > 0},
	  q{SELECT count(*), sum(id) FROM p},
	  "SELECT count(*), md5(string_agg(l::text, ',' ORDER BY seq)) FROM sheet.log l WHERE sheet_id = $sheet",
	  qq{SELECT md5(string_agg(r::text, ',' ORDER BY "row", col)) FROM sheet.range($sheet) r},
	  "SELECT md5(string_agg(v::text, ',' ORDER BY version_id)) FROM sheet.versions($sheet) v",
	  qq{SELECT md5(string_agg(r::text, ',' ORDER BY "row", col)) FROM sheet.at($sheet, 1) r},
	  "SELECT f.*, md5(sheet.file_get($upload, 0)) FROM sheet.file_info($sheet, 'picture.png') f";
}

sub goes_on
{
	my ($node, $what, $sheet, $upload, @before) = @_;
	my @after = answers($node, $sheet, $upload);
	is($after[$_], $before[$_], "$what: question $_") for 0 .. $#before;
	is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t') UNION ALL SELECT * FROM sheet.am_check('sheet.log_batch')}), '', "$what: the tables are sound");
	$node->safe_psql('postgres', "INSERT INTO t VALUES (10000, 'new'); SELECT sheet.set($sheet, 'A2', 'new'), sheet.rollback($sheet, 1)");
	$node->safe_psql('postgres', 'VACUUM (FREEZE) t');
	is($node->safe_psql('postgres', q{SELECT body FROM t WHERE id = 10000}), 'new', "$what: rows can be added");
	is($node->safe_psql('postgres', "SELECT what FROM sheet.fsck($sheet, true)"), 'clean', "$what: the sheet is sound");
	return;
}

for my $from ($here, split ' ', $ENV{PG_SHEET_UPGRADE_FROM} // '')
{
	my ($version) = `$from/bin/postgres --version` =~ /\) (\S+)/;
	$count++;
	my $old = make_cluster("old$count", $from);
	$old->start;
	my ($sheet, $upload) = fill($old);
	my @before = answers($old, $sheet, $upload);

	my $restored = make_cluster("restored$count", $here);
	my $dump = PostgreSQL::Test::Utils::tempdir() . '/all.sql';
	$restored->start;
	$restored->command_ok([ 'pg_dump', '-f', $dump, $old->connstr('postgres') ], "from $version: pg_dump");
	$restored->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $restored->connstr('postgres') ], "from $version: restored");
	goes_on($restored, "restored from $version", $sheet, $upload, @before);
	$restored->stop;

	$old->stop;
	my $new = make_cluster("new$count", $here);
	chdir $PostgreSQL::Test::Utils::tmp_check or die;
	command_ok(
		[ "$bindir/pg_upgrade", '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', "$from/bin", '-B', $bindir, '-s', $new->host, '-p', $old->port, '-P', $new->port ],
		"from $version: pg_upgrade");
	$new->start;
	goes_on($new, "upgraded from $version", $sheet, $upload, @before);
	$new->stop;
}
done_testing();
