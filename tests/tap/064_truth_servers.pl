# Reads are right whatever happens around them: while a commit is between becoming visible and reaching the cache, in several
# databases whose sheets have the same ids, in copies of a database, on a standby that is written to all the time, and after
# an immediate stop. 067_database_again.pl has databases that get the number of a dropped one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

seed_random();
my $node = new_server('truth_servers', streaming => 1);
install_model($node);

# ---- a commit that is visible and not yet in the cache ----

sub wait_for
{
	my ($sql) = @_;
	$node->poll_query_until('postgres', $sql) or die "never: $sql";
}

my $id = $node->safe_psql('postgres', "SELECT sheet.create('publication', 10, 5)");
$node->safe_psql('postgres', "CREATE TABLE told (what text); SELECT model_write($id, 0, 0, 'before')");
my ($writer, $holder, $reader, $older, $impatient) = map { new_session($node) } 1 .. 5;
my $read = "SELECT sheet.get($id, 'A1') || ' ' || (SELECT content FROM model WHERE sheet_id = $id)";
$older->ask('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($older->ask($read), 'before before', 'a transaction reads');
$holder->ask("SELECT pg_advisory_lock(hashtext('publish'))");
$writer->ask("SET pg_sheet.stop_point = 'publish:wait'");
$writer->send("BEGIN; SELECT model_write($id, 0, 0, 'after'); INSERT INTO told VALUES ('committed'); COMMIT");
wait_for('SELECT count(*) = 1 FROM told');
is($older->ask($read), 'before before', 'another commits and has not told the cache: the first reads on');
$reader->send($read);
wait_for("SELECT wait_event_type = 'Extension' OR (state = 'idle' AND query LIKE '%sheet.get%') FROM pg_stat_activity WHERE pid = $reader->{pid}");
is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $reader->{pid}"), 'active', 'who sees the commit waits for it');
$impatient->ask("SET statement_timeout = '100ms'");
like($impatient->ask($read), qr/^ERROR 57014/, 'and may be canceled');
$holder->ask("SELECT pg_advisory_unlock(hashtext('publish'))");
is($reader->answer, 'after after', 'then reads what was committed');
is($older->ask($read), 'before before', 'the first still reads what it did');
$older->ask('COMMIT');
is($older->ask($read), 'after after', 'and the new content after its end');
$writer->answer;
cache_is_at_rest($node, 'a commit that was held');

# ---- a transaction that has failed and has not told the cache ----
$holder->ask("SELECT pg_advisory_lock(hashtext('withdraw'))");
$writer->ask("SET pg_sheet.stop_point = 'withdraw:wait'");
$writer->send("BEGIN; SELECT model_write($id, 0, 0, 'never'); ROLLBACK");
wait_for("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $writer->{pid}");
$reader->ask("SET statement_timeout = '60s'");
$reader->send($read);
wait_for("SELECT wait_event_type = 'Extension' OR (state = 'idle' AND query LIKE '%sheet.get%') FROM pg_stat_activity WHERE pid = $reader->{pid}");
is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $reader->{pid}"), 'active', 'who sees that a writer has failed waits for it');
$holder->ask("SELECT pg_advisory_unlock(hashtext('withdraw'))");
is($reader->answer, 'after after', 'then reads what was there before');
$writer->answer;
cache_is_at_rest($node, 'a rollback that was held');
$_->end for $writer, $holder, $reader, $older, $impatient;

# ---- the same ids in several databases ----

sub contents
{
	my ($database) = @_;
	return $node->safe_psql($database, q{SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.range(1)});
}

for my $database ('one', 'two')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE EXTENSION pg_sheet; SELECT sheet.create('first'); SELECT sheet.set(1, 'A1', 'of $database')");
}
is(contents('one') . ', ' . contents('two'), 'of one, of two', 'two databases: each has its own');
$node->safe_psql('one', "SELECT sheet.set(1, 'B1', 'more')");
is(contents('one') . ', ' . contents('two'), 'of one more, of two', 'also after edits');
$node->safe_psql('two', 'SELECT sheet.purge(1)');
is(contents('one'), 'of one more', 'and when one of them is purged');

for my $strategy ('wal_log', 'file_copy')
{
	my $copy = "copy_$strategy";
	is(contents('one'), 'of one more', 'read, so that the cache has it');
	my $seq = $node->safe_psql('one', 'SELECT max(seq) FROM sheet.log WHERE sheet_id = 1') + 1;
	$node->safe_psql('postgres', "CREATE DATABASE $copy TEMPLATE one STRATEGY $strategy");
	is(contents($copy), 'of one more', "a copy by $strategy has the same cells");
	$node->safe_psql($copy, "SELECT sheet.set(1, 'A1', 'of $copy')");
	is(contents('one') . ', ' . contents($copy), "of one more, of $copy more", 'edits of the copy are not the first one\'s');
	$node->safe_psql('one', "SELECT sheet.set(1, 'C1', '$strategy')");
	is(contents('one') . ', ' . contents($copy), "of one more $strategy, of $copy more", 'nor the other way round');
	is($node->safe_psql($_, "SELECT count(*), max(seq) FROM sheet.log WHERE sheet_id = 1"), "$seq|$seq", "the log of $_ has its own last edit") for 'one', $copy;
	$node->safe_psql('one', "SELECT sheet.set(1, 'C1', '')");
}

# ---- a standby, and an immediate stop ----

my $dir = PostgreSQL::Test::Utils::tempdir();
PostgreSQL::Test::Utils::append_to_file("$dir/write.sql", "\\set n random(1, 4)\n\\set r random(0, 60)\n\\set c random(0, 9)\n\\set len random(0, 200)\n"
	. "SELECT model_write(sheet_id, :r, :c, 'client ' || :client_id || repeat('x', :len)) FROM sheets WHERE n = :n;\n");
$node->safe_psql('postgres', "CREATE TABLE sheets AS SELECT n, sheet.create('standby ' || n, 100, 26) AS sheet_id FROM generate_series(1, 4) n");
my $standby = start_standby($node, 'truth_standby');
my $told = '';
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', seconds_to_run(3, 30), '-f', "$dir/write.sql", $node->connstr('postgres') ], '>&', \$told);
my ($reads, $wrong, %seen) = (0, 0);
my $on_standby = new_session($standby);
while ($load->pumpable)
{
	my ($differences, $cells) = split /\|/, $on_standby->ask('SELECT sum(model_differences(sheet_id)), (SELECT md5(string_agg(m::text, $$,$$ ORDER BY m)) FROM model m) FROM sheets');
	$reads++;
	$wrong++ if $differences ne '0';
	$seen{ $cells // '' } = 1;
	$load->pump_nb;
}
ok($load->finish, 'the primary was written to') or diag $told;
is($wrong, 0, "$reads reads on the standby: the cells are those of the same snapshot's table");
cmp_ok(scalar keys %seen, '>', 5, 'which changed meanwhile');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($on_standby->ask('SELECT sum(model_differences(sheet_id)) FROM sheets'), '0', 'and at the end');
my $sum = 'SELECT md5(string_agg(r::text, $$,$$ ORDER BY n, r)) FROM sheets, LATERAL (SELECT a1, content FROM sheet.range(sheet_id)) r';
is($on_standby->ask($sum), $node->safe_psql('postgres', $sum), 'the same as on the primary');
$on_standby->end;
$standby->stop;

$load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', '60', '-f', "$dir/write.sql", $node->connstr('postgres') ], '>&', \$told);
wait_for('SELECT count(*) > 1200 FROM sheet.log');
$node->stop('immediate');
$load->finish;
$node->start;
is($node->safe_psql('postgres', 'SELECT sum(model_differences(sheet_id)) FROM sheets'), '0', 'after an immediate stop: the cells are the model\'s');
is($node->safe_psql('postgres', q{SELECT f.* FROM sheets, sheet.fsck(sheet_id, true, false) f WHERE severity <> 'info'}), '', 'and fsck finds nothing');
$node->stop;
done_testing();
