# Sheets work the same without the cache: with cache_size 0, without shared_preload_libraries, and on a standby; and the
# cache comes back right after a crash, and after a backend is killed while it edits.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $helpers = "$FindBin::Bin/../regress/data/journal_helpers.sql";
my $cells = q{(SELECT r.seq || coalesce(':' || string_agg(d."row" || ',' || d.col || '=' || d.content, ' ' ORDER BY d."row", d.col), '')
	FROM sheet.read_cells(id) r LEFT JOIN j_decode(r.cells) d ON true GROUP BY r.seq)};

# The same story in every configuration; what is printed must not differ.
my $story = qq{
	CREATE TABLE s AS SELECT sheet.create('story', 10, 5) AS id;
	SELECT (sheet.apply(id, j_batch(j_set(0, 0, 'a'), j_set(0, 0, 'b'), j_set(1, 1, 'c')))).last_seq FROM s;
	SELECT (sheet.apply(id, j_batch(j_set(0, 0, 'b')))).last_seq FROM s;
	SELECT $cells FROM s;
	BEGIN;
	SELECT (sheet.apply(id, j_batch(j_set(2, 2, 'd')))).last_seq FROM s;
	SAVEPOINT x;
	SELECT (sheet.apply(id, j_batch(j_set(2, 2, 'e'), j_set(2, 3, 'e')))).last_seq FROM s;
	SELECT $cells FROM s;
	ROLLBACK TO x;
	SELECT (sheet.apply(id, j_batch(j_set(2, 2, 'f'), j_set(2, 3, '')))).last_seq FROM s;
	COMMIT;
	SELECT $cells FROM s;
	BEGIN;
	SELECT (sheet.apply(id, j_batch(j_set(4, 4, 'gone')))).last_seq FROM s;
	ROLLBACK;
	SELECT sheet.commit(id, 'one') FROM s;
	SELECT (sheet.apply(id, j_batch(j_set(0, 0, ''), j_set(9, 4, 'g')))).first_seq FROM s;
	SELECT sheet.rollback(id, 1) FROM s;
	SELECT $cells FROM s;
	SELECT sheet.claim(id, 4, 'me') FROM s;
	SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''x'')), NULL, 3)', id)) FROM s;
	SELECT r.seq, kind, "row", col, old, new FROM s, sheet.log_edits(id) r WHERE segment_id = 1;
	SELECT sheet.trash(id) FROM s;
	SELECT j_error(format('SELECT sheet.apply(%s, j_batch(j_set(0, 0, ''x'')))', id)) FROM s;
	SELECT sheet.recover(id) FROM s;
	SELECT (sheet.apply(id, j_batch(j_set(0, 0, 'last')))).last_seq FROM s;
	SELECT $cells FROM s;
};

sub new_node
{
	my ($name, $conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', $conf);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_sheet');
	$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $helpers, $node->connstr('postgres') ], "$name: helpers");
	return $node;
}

my $preload = "shared_preload_libraries = 'pg_sheet'\n";
my $cached = new_node('cached', "${preload}restart_after_crash = on\n");
my $none = new_node('none', "${preload}pg_sheet.cache_size = 0\n");
my $plain = new_node('plain', '');

my $told = $cached->safe_psql('postgres', $story);
like($told, qr/^4\n4\n4:0,0=b 1,1=c\n/, 'the story begins as it should');
is($none->safe_psql('postgres', $story), $told, 'cache_size 0: the same story');
is($plain->safe_psql('postgres', $story), $told, 'without shared_preload_libraries: the same story');
is($none->safe_psql('postgres', 'SELECT bytes, budget, hits, loads FROM sheet.cache_stats'), '0|0|0|0', 'cache_size 0: nothing is cached');
is($plain->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_stats'), '0', 'no cache, no row');
is($cached->safe_psql('postgres', 'SELECT hits > 0, private_no_room FROM sheet.cache_stats'), 't|0', 'the cache was used');

# Writers of one sheet at once keep the seqs gapless, with no shared memory to help.
my $dir = PostgreSQL::Test::Utils::tempdir();
PostgreSQL::Test::Utils::append_to_file("$dir/write.sql",
	"\\set r random(0, 9)\nSELECT sheet.apply(id, j_batch(j_set(:r, 0, (random() * 100000)::int::text), j_set(:r, 1, 'x'))) FROM s;\n");
for my $node ($plain, $none, $cached)
{
	my $name = $node->name;
	$node->command_ok([ 'pgbench', '-n', '-c', '4', '-t', '40', '-f', "$dir/write.sql", $node->connstr('postgres') ], "$name: writers at once");
	is($node->safe_psql('postgres', q{SELECT bool_and(first_seq = coalesce(before, 0) + 1), count(*) >= 160 FROM
		(SELECT first_seq, lag(last_seq) OVER (ORDER BY first_seq) before FROM sheet.log_batch) t}), 't|t', "$name: no gap");
}
$plain->stop;
$none->stop;

# ---- a standby reads what has been replayed; nothing can be written --------------------------------------------------------
my $standby = start_standby($cached, 'standby');
my $read = "SELECT $cells FROM s";
for my $i (1 .. 3)
{
	$cached->safe_psql('postgres', "SELECT sheet.apply(id, j_batch(j_set(7, $i, 'standby $i'))) FROM s");
	$cached->wait_for_catchup($standby, 'replay', $cached->lsn('insert'));
	is($standby->safe_psql('postgres', $read), $cached->safe_psql('postgres', $read), "the standby shows edit $i");
}
my ($code, $out, $err) = $standby->psql('postgres', "SELECT sheet.apply(id, j_batch(j_set(0, 0, 'no'))) FROM s");
like($err, qr/cannot execute sheet\.apply\(\) during recovery/, 'the standby refuses edits');
$standby->promote;
is($standby->safe_psql('postgres', "SELECT (sheet.apply(id, j_batch(j_set(7, 4, 'promoted')))).last_seq - seq FROM s, sheet.read_cells(id)"),
	'1', 'promoted, it goes on where it was');
is($standby->safe_psql('postgres', $read) =~ /7,3=standby 3 7,4=promoted/ ? 1 : 0, 1, 'and shows old and new edits');
$standby->stop;

# ---- loads that are canceled leave no trace -----------------------------------------------------------------------------------
$cached->safe_psql('postgres', q{
	CREATE TABLE big AS SELECT sheet.create('big', 60000, 10) AS id;
	CREATE TABLE parts AS SELECT g, (SELECT j_batch(VARIADIC array_agg(j_set(g * 1000 + i / 10, i % 10, 'value ' || i))) FROM generate_series(0, 9999) i) AS edits
		FROM generate_series(0, 0) g;
	SELECT sheet.apply(id, edits) FROM big, parts;});
# The log grows by the same cells with other contents, so that a load takes some milliseconds.
$cached->safe_psql('postgres', q{
	DO $$
	BEGIN
		FOR i IN 1 .. 12 LOOP
			PERFORM sheet.apply(id, CASE WHEN i % 2 = 1 THEN other ELSE edits END) FROM big, parts,
				(SELECT j_batch(VARIADIC array_agg(j_set(k / 10, k % 10, 'other ' || k))) AS other FROM generate_series(0, 9999) k) o;
		END LOOP;
	END $$});
my $canceled = 0;
for my $i (0 .. 11)
{
	my $call = $i % 2 ? 'sheet.read_cells(id)' : q{sheet.apply(id, j_batch(j_set(0, 0, clock_timestamp()::text)))};
	my ($code, $out, $err) = $cached->psql('postgres', "SELECT sheet.trash(id) FROM big; SELECT sheet.recover(id) FROM big; SET statement_timeout = "
		. (1 + $i) . "; SELECT $call FROM big");
	$canceled++ if $err =~ /statement timeout/;
}
note "$canceled of 12 canceled";
is($cached->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_entries WHERE writing OR loading OR pins > 0'), '0', 'canceled loads: nothing stays held');
is($cached->safe_psql('postgres', 'SELECT sum(bytes) = (SELECT bytes FROM sheet.cache_stats) FROM sheet.cache_entries'), 't', 'and the bytes add up');
is($cached->safe_psql('postgres', q{SELECT count(*) FROM big, sheet.read_cells(id) r, j_decode(r.cells) d}), '10000', 'and the sheet is whole');

# ---- crashes ----------------------------------------------------------------------------------------------------------------
my $before = $cached->safe_psql('postgres', $read);
my $edit = "BEGIN; SELECT (sheet.apply(id, j_batch(j_set(8, 0, 'never')))).last_seq > 0 FROM s";
my $open = $cached->background_psql('postgres', on_error_stop => 0);
my $pid = $open->query('SELECT pg_backend_pid()');
$open->query($edit);
is($cached->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_entries WHERE writing'), '1', 'a transaction edits');
$cached->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 10000)");
is($cached->safe_psql('postgres', $read), $before, 'terminated: its edits are gone');
is($cached->safe_psql('postgres', 'SELECT count(*) FROM sheet.cache_entries WHERE writing OR pins > 0'), '0', 'and it holds nothing');

$open->{run}->kill_kill;

$open = $cached->background_psql('postgres', on_error_stop => 0);
$pid = $open->query('SELECT pg_backend_pid()');
$open->query($edit);
my $life = server_life($cached);
kill 9, $pid;
$open->{run}->kill_kill;
wait_until_next_life($cached, $life);
is($cached->safe_psql('postgres', $read), $before, 'killed: the server starts again, the edits are gone');
is($cached->safe_psql('postgres', "SELECT (sheet.apply(id, j_batch(j_set(8, 0, 'after')))).last_seq - seq FROM s, sheet.read_cells(id)"), '1',
	'the next edit has the next seq');
my $last = $cached->safe_psql('postgres', $read);
$cached->stop('immediate');
$cached->start;
is($cached->safe_psql('postgres', $read), $last, 'immediate stop: every acknowledged edit is there');
$cached->stop;
done_testing();
