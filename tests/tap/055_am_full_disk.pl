# No room on the disk in the middle of a statement: it fails with a clear error, what was committed stays, nothing is damaged, and
# work goes on when there is room. The limit is that of the size of files (RLIMIT_FSIZE), which takes no rights to set: PostgreSQL's
# write fails in the same place as with a full disk.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('full');
$node->append_conf('postgresql.conf', "autovacuum = off\nshared_buffers = 4MB\nwal_recycle = off\nwork_mem = 256MB\n");
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE t (id bigint, body text) USING sheetlog;
	ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
	CREATE UNIQUE INDEX ON t (id);
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
	SQL
my $sheet = $node->safe_psql('postgres', q{SELECT sheet.create('full', 100000, 100)});
$node->safe_psql('postgres', "SELECT sheet.set($sheet, 'A1', 'before')");
$node->stop;

# WAL segments are 16 MB: files may grow to 20 MB, and then no further.
sub start_with_limit
{
	my ($megabytes) = @_;
	my $limit = $megabytes * 1024; # ulimit counts in kB
	system('bash', '-c', "ulimit -S -f $limit && exec pg_ctl -w -D '" . $node->data_dir . "' -l '" . $node->logfile . "' -o '--cluster-name=full' start >/dev/null") == 0 or die 'the server does not start';
	$node->_update_pid(1);
}

my $sum = q{SELECT count(*), sum(id), md5(string_agg(body, ',' ORDER BY id)) FROM t};
start_with_limit(20);
my $before = $node->safe_psql('postgres', $sum);
my ($code, $out, $err) = $node->psql('postgres', q{INSERT INTO t SELECT i, repeat(md5(i::text), 100) FROM generate_series(10001, 30000) i});
isnt($code, 0, 'many rows do not find room');
like($err, qr/could not (extend|write)/, 'the error says so');
is($node->safe_psql('postgres', $sum), $before, 'what was committed is there');
is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}), '', 'sound');
($code, $out, $err) = $node->psql('postgres', q{INSERT INTO t SELECT 40001, string_agg(md5(i::text), '') FROM generate_series(1, 1000000) i});
isnt($code, 0, 'neither does one long row');
like($err, qr/could not (extend|write)/, 'the error says so');
is($node->safe_psql('postgres', $sum), $before, 'what was committed is there');
$node->safe_psql('postgres', 'VACUUM t');
is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}), '', 'sound after VACUUM');
$node->safe_psql('postgres', q{INSERT INTO t SELECT i, md5(i::text) FROM generate_series(50001, 51000) i});
$before = $node->safe_psql('postgres', $sum);
like($before, qr/^2000\|/, 'rows that find room are taken');

# Batches of a sheet until there is no more room.
my $batches = 0;
while ($batches < 200)
{
	my $first = $batches * 500 + 1;
	($code, $out, $err) = $node->psql('postgres', "SELECT count(sheet.set($sheet, 'B' || i, (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 20 + i % 2) j))) FROM generate_series($first, $first + 499) i");
	last if $code;
	$batches++;
}
isnt($code, 0, 'a sheet finds no room in the end');
like($err, qr/could not (extend|write)/, 'the error says so');
cmp_ok($batches, '>', 3, "after $batches batches");
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.range($sheet)"), 1 + 500 * $batches, 'every acknowledged cell is there, and no other');
is($node->safe_psql('postgres', "SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'the sheet is sound');
$node->stop('immediate');
start_with_limit(20);
is($node->safe_psql('postgres', $sum), $before, 'after an immediate stop: the rows');
is($node->safe_psql('postgres', "SELECT count(*) FROM sheet.range($sheet)"), 1 + 500 * $batches, 'the cells');
$node->stop;

$node->start;
$node->safe_psql('postgres', "SELECT count(sheet.set($sheet, 'C' || i, 'room again')) FROM generate_series(1, 500) i");
$node->safe_psql('postgres', q{INSERT INTO t SELECT i, repeat(md5(i::text), 100) FROM generate_series(60001, 61000) i});
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 3000, 'with room, work goes on');
is($node->safe_psql('postgres', "SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'the sheet goes on');
is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t') UNION ALL SELECT * FROM sheet.am_check('sheet.log_batch')}), '', 'sound');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no panic');
$node->stop;
done_testing();
