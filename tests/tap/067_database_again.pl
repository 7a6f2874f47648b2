# A database that is dropped leaves nothing in shared memory: one that gets its number and, from the same template, the numbers
# of its files and the ids of its sheets, has cells, logs, versions and events of its own, on the primary, on a standby, and on
# one that was promoted. The sheets of other databases stay cached.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

my $number = 70000; # of the database that comes again
my $node = new_server('database_again', streaming => 1);
$node->append_conf('postgresql.conf', "pg_sheet.version_edits = 100\npg_sheet.version_interval = '1h'\n");
$node->reload;

sub make
{
	my ($server) = @_;
	$server->safe_psql('postgres', "CREATE DATABASE again TEMPLATE form OID = $number");
}

sub cells
{
	my ($server, $database) = @_;
	return $server->safe_psql($database, q{SELECT string_agg(a1 || '=' || content, ' ' ORDER BY a1) FROM sheet.range(1)});
}

# Edits of sheet 1, each a batch.
sub edit
{
	my ($server, $text, $count) = @_;
	$server->safe_psql('again', "SELECT sheet.set(1, 'A' || n, '$text') FROM generate_series(1, $count) n");
}

# A row of key 1 that begins a page: those of key 2 have filled the ones before.
sub add_rows
{
	my ($server) = @_;
	$server->safe_psql('again', q{INSERT INTO log SELECT 2, n, repeat('x', 100) FROM generate_series(1, 200) n});
	$server->safe_psql('again', q{INSERT INTO log VALUES (1, 2)});
}

sub versions
{
	my ($server) = @_;
	return $server->safe_psql('again', 'SELECT count(*) FROM sheet.versions(1)');
}

sub is_sound
{
	my ($server, $what) = @_;
	is($server->safe_psql('again', 'SELECT severity, what FROM sheet.fsck(1, true, false)'), 'info|clean', "$what: fsck finds nothing");
	is($server->safe_psql('again', q{SELECT t, c.* FROM unnest('{log, sheet.log_batch, sheet.version_tile}'::regclass[]) t, sheet.am_check(t) c}), '', "$what: nor does am_check");
	is($server->safe_psql('again', 'SELECT r.seq - (SELECT count(*) FROM sheet.log WHERE sheet_id = 1) FROM sheet.read_cells(1) r'), '0', "$what: the log has every seq");
}

# What the cache has of a database, or of all others.
sub cached
{
	my ($server, $database) = @_;
	my $which = defined $database ? "= $database" : "<> $number";
	return $server->safe_psql('postgres', qq{SELECT coalesce(string_agg(concat_ws(' ', database, sheet_id, cached, bytes, seq), ', ' ORDER BY database, sheet_id), '') FROM sheet.cache_entries WHERE database $which});
}

$node->safe_psql('postgres', 'CREATE DATABASE form');
$node->safe_psql('form', q{CREATE EXTENSION pg_sheet; SELECT sheet.create('first'); SELECT sheet.set(1, 'A1', 'form')});
$node->safe_psql('form', q{CREATE TABLE log (key bigint, position bigint, body text) USING sheetlog; CREATE INDEX ON log USING sheetlog_directory (key, position); INSERT INTO log VALUES (1, 1)});
$node->safe_psql('postgres', q{CREATE DATABASE neighbour; SELECT sheet.create('mine'); SELECT sheet.set(1, 'A1', 'mine')});
$node->safe_psql('neighbour', q{CREATE EXTENSION pg_sheet; SELECT sheet.create('first'); SELECT sheet.set(1, 'A1', 'neighbour')});

# ---- on the primary ----

make($node);
is(cells($node, $_->[0]), "A1=$_->[1]", "the cells of $_->[0]") for [ 'postgres', 'mine' ], [ 'neighbour', 'neighbour' ], [ 'again', 'form' ];
my $others = cached($node);
my $cursor = $node->safe_psql('again', 'SELECT f.cursor FROM sheet.follow(0, NULL, 0) f');
edit($node, 'old', 150);
ok($node->poll_query_until('again', 'SELECT count(*) = 1 FROM sheet.versions(1)'), 'a version is made');
edit($node, 'older', 150);
ok($node->poll_query_until('postgres', 'SELECT queued = 1 AND workers = 0 FROM sheet.version_stats'), 'and another one waits until it is time');
add_rows($node);
is_sound($node, 'the first one');
is($node->safe_psql('again', "SELECT lost, sheet_ids, seqs FROM sheet.follow(0, $cursor, 0)"), 'f|{1}|{303}', 'a follower is told');
like(cached($node, $number), qr/^$number 1 t \d+ 303$/, 'its sheet is cached');
my ($before, $mine) = split /\|/, $node->safe_psql('postgres', "SELECT s.bytes, e.bytes FROM sheet.cache_stats s, sheet.cache_entries e WHERE database = $number");

my $inside = new_session($node, database => 'again');
isnt(($node->psql('postgres', 'DROP DATABASE again'))[0], 0, 'a database in which somebody is cannot be dropped');
like(cached($node, $number), qr/^$number 1 t/, 'and stays in the cache');
$inside->ask("BEGIN; SELECT sheet.set(1, 'A1', 'never')");
$node->safe_psql('postgres', 'DROP DATABASE again WITH (FORCE)');
is(cached($node, $number), '', 'dropped, while somebody has edited: nothing of it is cached');
is($node->safe_psql('postgres', 'SELECT bytes FROM sheet.cache_stats'), $before - $mine, 'its memory is given back');
is($node->safe_psql('postgres', 'SELECT queued FROM sheet.version_stats'), '0', 'no sheet of it waits for a version');
is(cached($node), $others, 'the sheets of others stay');

make($node);
is(cells($node, 'again'), 'A1=form', 'one of the same number has its own cells');
is($node->safe_psql('again', "SELECT lost, sheet_ids FROM sheet.follow(0, $cursor, 0)"), 't|{}', 'a follower of the old one has lost what it knew');
edit($node, 'new', 150);
add_rows($node);
is($node->safe_psql('again', q{SELECT seq, old, new FROM sheet.log WHERE sheet_id = 1 ORDER BY seq LIMIT 2 OFFSET 1}), "2||form\n3|form|new", 'its edits go on where it began');
ok($node->poll_query_until('again', 'SELECT count(*) = 1 FROM sheet.versions(1)'), 'its versions are made when it is time for them');
is_sound($node, 'the second one');
is(cached($node), $others, 'the sheets of others are as they were');

$cursor = $node->safe_psql('again', 'SELECT f.cursor FROM sheet.follow(0, NULL, 0) f');
is($node->safe_psql('again', "SELECT lost FROM sheet.follow(0, $cursor, 0)"), 'f', 'who follows the new one misses nothing');
$node->safe_psql('postgres', "ALTER DATABASE again RENAME TO once");
$node->safe_psql('postgres', "ALTER DATABASE neighbour RENAME TO again");
is($node->safe_psql('again', "SELECT lost FROM sheet.follow(0, $cursor, 0)"), 't', 'until another one has its name');
is(cells($node, 'again'), 'A1=neighbour', 'whose cells are read');
is(cached($node), $others, 'from the cache, as before');
$node->safe_psql('postgres', "ALTER DATABASE again RENAME TO neighbour");
$node->safe_psql('postgres', "ALTER DATABASE once RENAME TO again");

# ---- on a standby, and when it has been promoted ----

my $standby = start_standby($node, 'database_again_standby');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my $reader = new_session($standby, database => 'again');
is($reader->ask("SELECT sheet.get(1, 'A150')"), 'new', 'a standby reads the database');
$node->safe_psql('postgres', 'DROP DATABASE again');
make($node);
edit($node, 'third', 1);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(cells($standby, 'again'), 'A1=third', 'then the new one');
is($standby->safe_psql('postgres', 'SELECT entries, bytes FROM sheet.cache_stats'), '0|0', 'with nothing in its cache');
$node->stop('immediate');
$standby->promote;
is(cells($standby, 'again'), 'A1=third', 'promoted, it reads the same');
edit($standby, 'there', 5);
add_rows($standby);
is_sound($standby, 'and goes on');
like(cached($standby, $number), qr/^$number 1 t/, 'it has a cache now');
$standby->safe_psql('postgres', 'DROP DATABASE again');
is(cached($standby, $number), '', 'from which a database goes that is dropped');
make($standby);
is(cells($standby, 'again'), 'A1=form', 'and the next one has its own cells');
edit($standby, 'fourth', 5);
add_rows($standby);
is_sound($standby, 'and logs');
$standby->stop;

done_testing();
