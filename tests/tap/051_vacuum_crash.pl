# VACUUM of a table that uses sheetlog ends at each of its stop points, by kill, PANIC and ERROR: the rows are what they were, by
# whatever way they are read; the next VACUUM does what is left; space is used again.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_server('vacuum_crash');
$node->append_conf('postgresql.conf', "autovacuum = off\n");
$node->restart;

# VACUUM's, whichever files of the layer they are in.
sub points
{
	my %points;
	for my $file (glob "$FindBin::RealBin/../../extension/am/*/*.c")
	{
		open my $source, '<', $file or die;
		/STOP_POINT\("(vacuum-[a-z-]+)"\)/ && $points{$1}++ for <$source>;
	}
	return sort keys %points;
}

# Half of the rows are dead, some of them long; the end of the file is free after VACUUM.
sub make_table
{
	$node->safe_psql('postgres', <<~'SQL');
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id bigint, body text) USING sheetlog;
		ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
		CREATE UNIQUE INDEX t_id ON t (id);
		CREATE INDEX t_directory ON t USING sheetlog_directory (id, id);
		INSERT INTO t SELECT i, CASE WHEN i % 50 = 0 THEN repeat(md5(i::text), 1000) ELSE md5(i::text) END FROM generate_series(1, 1500) i;
		BEGIN; INSERT INTO t SELECT i, repeat('aborted', 1 + i % 7 * 1000) FROM generate_series(10001, 10500) i; ROLLBACK;
		SET pg_sheet.allow_log_delete = on;
		DELETE FROM t WHERE id % 2 = 0 OR id > 1200;
		SQL
}

my $sum = q{SELECT count(*), sum(id), md5(string_agg(body, ',' ORDER BY id)) FROM t};

sub check_table
{
	my ($what, $expected) = @_;
	is($node->safe_psql('postgres', $sum), $expected, "$what: the rows by a scan of the table");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $sum WHERE id BETWEEN 0 AND 1000000"), $expected, "$what: by the index");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM generate_series(1, 1500) g WHERE EXISTS (SELECT FROM t WHERE t.id = g)"), ($expected =~ /^(\d+)/)[0], "$what: one by one");
}

# The crash may not have been noticed yet when the session has ended.
sub wait_for_recovery
{
	my ($log_end) = @_;
	for (1 .. 600)
	{
		last if slurp_file($node->logfile, $log_end) =~ /ready to accept connections/;
		usleep(100_000);
	}
	wait_until_up($node);
}

my @points = points();
cmp_ok(scalar @points, '>=', 6, "stop points: @points");
for my $point (@points)
{
	for my $action ('kill', 'panic', 'error')
	{
		my $what = "$point:$action";
		make_table();
		my $expected = $node->safe_psql('postgres', $sum);
		my $log_end = -s $node->logfile;
		my ($code) = $node->psql('postgres', "SET pg_sheet.stop_point = '$what:1';\nVACUUM t");
		isnt($code, 0, "$what: VACUUM does not come to its end");
		wait_for_recovery($log_end) if $action ne 'error';
		check_table($what, $expected);
		# Pages of a long row whose row went first are lost until the next rewrite; nothing else is reported.
		is($node->safe_psql('postgres', q{SELECT DISTINCT what FROM sheet.am_check('t') WHERE what <> 'the page belongs to no row'}), '', "$what: sound");
		$node->safe_psql('postgres', 'VACUUM t');
		check_table("$what, vacuumed", $expected);
		my $size = $node->safe_psql('postgres', q{SELECT pg_relation_size('t')});
		$node->safe_psql('postgres', q{INSERT INTO t SELECT i, 'again' FROM generate_series(1201, 1500) i; DELETE FROM t WHERE false});
		is($node->safe_psql('postgres', q{SELECT count(*) FROM t WHERE body = 'again'}), 300, "$what: keys of removed rows can be inserted again");
		is($node->safe_psql('postgres', q{SELECT DISTINCT what FROM sheet.am_check('t') WHERE what <> 'the page belongs to no row'}), '', "$what: sound in the end");
	}
}

# Pages of long rows whose writer has failed are freed as VACUUM comes to them, which may be before it comes to their rows.
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE failed (id bigint, body text) USING sheetlog;
	ALTER TABLE failed ALTER body SET STORAGE EXTERNAL;
	INSERT INTO failed SELECT i, 'stays' FROM generate_series(1, 100) i;
	BEGIN; INSERT INTO failed SELECT i, repeat('failed', 3000) FROM generate_series(101, 200) i; ROLLBACK;
	SQL
my $vacuum = q{SET pg_sheet.stop_point = 'vacuum-failed:error:1'; VACUUM failed;} . "\n\\echo :SQLSTATE\nSELECT DISTINCT what FROM sheet.am_check('failed');\n";
my ($out, $err) = ('', '');
IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \($vacuum x 300), '>', \$out, '2>', \$err);
my $stopped = () = $err =~ /stop point "vacuum-failed" reached/g;
cmp_ok($stopped, '>=', 100, 'VACUUM ends behind each page of rows whose writer has failed');
is(join(' ', grep { !/^(00000|XX000)$/ } split /\n/, $out), '', 'and each time the table is sound');
is($node->safe_psql('postgres', 'SELECT count(*), min(body), max(body) FROM failed'), '100|stays|stays', 'with the rows that are to stay');
$node->stop;
done_testing();
