# Tablespaces: files of one database that have the same number in two of them are not taken for each other, and a database that
# moves from one to another and back keeps what is known of it.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

my $node = new_server('tablespaces');
$node->append_conf('postgresql.conf', "allow_in_place_tablespaces = on\nautovacuum = off\n");
$node->reload;
$node->safe_psql('postgres', "CREATE TABLESPACE away LOCATION ''");

# A log with a directory, and rows: of key 2 as many as fill pages, then one of key 1 at a position, which begins a page.
sub make_log
{
	my ($database, $log) = @_;
	$node->safe_psql($database, "CREATE TABLE $log (key bigint, position bigint, body text) USING sheetlog; CREATE INDEX ${log}_directory ON $log USING sheetlog_directory (key, position)");
}

sub add_rows
{
	my ($database, $log, $position, $count) = @_;
	$node->safe_psql($database, "INSERT INTO $log SELECT 2, n, repeat('x', 100) FROM generate_series(1, $count) n");
	$node->safe_psql($database, "INSERT INTO $log VALUES (1, $position)");
}

sub is_sound
{
	my ($database, $what, @logs) = @_;
	is($node->safe_psql($database, "SELECT t, c.* FROM unnest('{" . join(',', @logs) . "}'::regclass[]) t, sheet.am_check(t) c"), '', "$what: am_check finds nothing");
}

# ---- two indexes ----

make_log('postgres', $_) for 'near', 'far';
$node->safe_psql('postgres', "REINDEX INDEX near_directory"); # a file whose number is not an index's
my $file = $node->safe_psql('postgres', "SELECT pg_relation_filenode('near_directory')");
$node->stop;
command_ok([ 'pg_resetwal', '-o', $file, $node->data_dir ], 'the counter of numbers goes round');
$node->start;
$node->safe_psql('postgres', 'REINDEX (TABLESPACE away) INDEX far_directory');
is($node->safe_psql('postgres', "SELECT pg_relation_filenode('far_directory')"), $file, 'two files have the same number');
add_rows('postgres', $_, 1, 200) for 'near', 'far';
is_sound('postgres', 'the same keys in both', 'near', 'far');
for my $log ('near', 'far')
{
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM $log WHERE key = 1"), '1', "the row of $log is found");
}
$node->safe_psql('postgres', 'VACUUM near');
add_rows('postgres', $_, 2, 200) for 'near', 'far';
is_sound('postgres', 'when entries of one have gone', 'near', 'far');

# ---- a database that moves ----

$node->safe_psql('postgres', 'CREATE DATABASE moved');
$node->safe_psql('moved', q{CREATE EXTENSION pg_sheet; SELECT sheet.create('first')});
make_log('moved', 'log');
my $position = 0;
for my $space ('away', 'pg_default', 'away')
{
	$node->safe_psql('moved', "SELECT sheet.set(1, 'A1', 'before $space')");
	add_rows('moved', 'log', ++$position, 200);
	my $loads = $node->safe_psql('postgres', 'SELECT loads FROM sheet.cache_stats');
	$node->safe_psql('postgres', "ALTER DATABASE moved SET TABLESPACE $space");
	is($node->safe_psql('moved', "SELECT sheet.get(1, 'A1')"), "before $space", "moved to $space: its cells");
	is($node->safe_psql('postgres', 'SELECT loads FROM sheet.cache_stats'), $loads, 'are still in the cache');
	$node->safe_psql('moved', "SELECT sheet.set(1, 'B1', 'in $space')");
	$node->safe_psql('moved', "SET pg_sheet.allow_log_delete = on; DELETE FROM log WHERE ctid < '(4,0)'");
	$node->safe_psql('moved', 'VACUUM log');
	add_rows('moved', 'log', ++$position, 300);
	is_sound('moved', "moved to $space", 'log', 'sheet.log_batch');
	is($node->safe_psql('moved', 'SELECT severity, what FROM sheet.fsck(1, true, false)'), 'info|clean', 'nor does fsck');
}
$node->stop;
done_testing();
