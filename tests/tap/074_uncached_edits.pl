# Without the cache a session keeps cells of the sheets that it edits: old contents do not cost a replay of the log, are right
# whatever others do to the sheet in between, and the memory that is kept is bounded.
use strict;
use warnings;
use FindBin;
use JSON::PP;
use lib $FindBin::Bin;
use SheetTest;
use Test::More;

my $node = new_server('uncached_edits');
$node->append_conf('postgresql.conf', "pg_sheet.cache_size = 0\nfsync = off\nautovacuum = off\npg_sheet.version_edits = 0\npg_sheet.version_bytes = 0\n");
$node->restart;
my ($one, $two) = map { new_session($node) } 1 .. 2;

sub new_sheet
{
	my ($name) = @_;
	return $one->ask("SELECT sheet.create('$name', 100, 50)");
}

# Blocks that the statement has looked at.
sub blocks
{
	my ($session, $sql) = @_;
	my $plan = decode_json($session->ask("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) $sql"))->[0]{Plan};
	return $plan->{'Shared Hit Blocks'} + $plan->{'Shared Read Blocks'};
}

# The log's old contents are what the log has before them, and the cells are those of the log.
sub is_right
{
	my ($id, $what) = @_;
	is($node->safe_psql('postgres', "SELECT * FROM sheet.fsck($id, true, false) WHERE severity <> 'info'"), '', "$what: the log is right");
}

# ---- what an edit costs -----------------------------------------------------------------------------------------------------

my $grown = new_sheet('grown');
$two->ask("DO \$\$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM sheet.set_range($grown, 'A1', ARRAY[ARRAY(SELECT md5(i || ',' || j) FROM generate_series(1, 100) j)]); END LOOP; END \$\$");
my $first = blocks($one, "SELECT sheet.set($grown, 'A1', 'first')");
my $again = blocks($one, "SELECT sheet.set($grown, 'A1', 'again')");
my $beside = blocks($one, "SELECT sheet.set($grown, 'B2', 'beside')");
$two->ask("SELECT sheet.set($grown, 'A1', 'other')");
my $after = blocks($one, "SELECT sheet.set($grown, 'A1', 'after')");
note "blocks: $first for the first edit, then $again, $beside and $after";
cmp_ok($first, '>', 300, 'the first edit of a session reads the log');
cmp_ok($again, '<', 60, 'the second does not');
cmp_ok($beside, '<', 60, 'nor one of a cell beside it');
cmp_ok($after, '<', 60, 'nor one after somebody else has edited');
is_right($grown, 'edits by two');

# ---- what happens in between ------------------------------------------------------------------------------------------------

# A session has kept A1 = 'one'; then something makes it `left`. Setting it to 'one' is an edit unless it is 'one' still.
sub after
{
	my ($what, $left, @statements) = @_;
	my $id = new_sheet($what);
	$one->ask("SELECT sheet.set($id, 'A1', 'zero')");
	$one->ask("SELECT sheet.commit($id)");
	$one->ask("SELECT sheet.set($id, 'A1', 'one')");
	$one->ask("SELECT sheet.set($id, 'C3', 'kept')"); # what came before is known now
	for my $statement (@statements)
	{
		my ($session, $sql) = @$statement;
		my $answer = $session->ask($sql =~ s/\bID\b/$id/gr);
		unlike($answer, qr/^ERROR/, "$what: $sql");
	}
	my $seq = $one->ask("SELECT seq FROM sheet.read_cells($id)");
	$one->ask("SELECT sheet.set($id, 'A1', 'one')");
	my $edits = $one->ask("SELECT coalesce(string_agg(old, ' '), 'none') FROM sheet.log WHERE sheet_id = $id AND seq > $seq");
	is($edits, $left eq 'one' ? 'none' : $left, "$what: the old content");
	is_right($id, $what);
}

after('nothing', 'one');
after('an edit of another session', 'other', [ $two, q{SELECT sheet.set(ID, 'A1', 'other')} ]);
after('an edit that is rolled back', 'one', [ $one, 'BEGIN' ], [ $one, q{SELECT sheet.set(ID, 'A1', 'gone')} ], [ $one, 'ROLLBACK' ]);
after('ROLLBACK TO', 'stays', [ $one, 'BEGIN' ], [ $one, q{SELECT sheet.set(ID, 'A1', 'stays')} ], [ $one, 'SAVEPOINT a' ],
	[ $one, q{SELECT sheet.set(ID, 'A1', 'gone')} ], [ $one, q{SELECT sheet.set(ID, 'Z60', 'gone')} ], [ $one, 'ROLLBACK TO a' ], [ $one, 'COMMIT' ]);
after('a first look that is rolled back', 'one', [ $one, 'BEGIN; SAVEPOINT a' ], [ $one, q{SELECT sheet.set(ID, 'Z60', 'gone')} ], [ $one, 'ROLLBACK TO a' ],
	[ $one, q{SELECT sheet.set(ID, 'Y60', 'here')} ], [ $one, 'COMMIT' ]);
after('a version of another session', 'one', [ $two, 'SELECT sheet.commit(ID)' ]);
after('a version and an edit', 'other', [ $two, 'SELECT sheet.commit(ID)' ], [ $two, q{SELECT sheet.set(ID, 'A1', 'other')} ]);
after('a rollback to a version', 'zero', [ $two, 'SELECT sheet.rollback(ID, 1)' ]);
after('a rollback of its own', 'zero', [ $one, 'SELECT sheet.rollback(ID, 1)' ]);
after('a version that is rolled back', 'one', [ $one, 'BEGIN' ], [ $one, 'SELECT sheet.commit(ID)' ], [ $one, q{SELECT sheet.set(ID, 'A1', 'gone')} ],
	[ $one, 'ROLLBACK' ]);
after('a trim', 'one', [ $two, 'SELECT sheet.commit(ID)' ], [ $two, 'SELECT sheet.trim(ID, 2)' ]);
after('a trim and an edit', 'other', [ $two, 'SELECT sheet.commit(ID)' ], [ $two, 'SELECT sheet.trim(ID, 2)' ], [ $two, q{SELECT sheet.set(ID, 'A1', 'other')} ]);
after('rows of another session', '', [ $two, 'SELECT sheet.insert_rows(ID, 0, 3)' ]);
after('rows that come and go', 'one', [ $two, 'SELECT sheet.insert_rows(ID, 0, 3)' ], [ $one, q{SELECT sheet.set(ID, 'A2', 'new')} ],
	[ $two, 'SELECT sheet.delete_rows(ID, 0, 3)' ]);
after('columns that are rolled back', 'one', [ $one, 'BEGIN' ], [ $one, 'SELECT sheet.delete_columns(ID, 0, 1)' ],
	[ $one, q{SELECT sheet.set(ID, 'A1', 'gone')} ], [ $one, 'ROLLBACK' ]);
after('the trash and back', 'one', [ $two, 'SELECT sheet.trash(ID)' ], [ $two, 'SELECT sheet.recover(ID)' ]);
# Rows go past the log: others take the same seqs.
after('other edits under the same seqs', 'other', [ $two, 'SET pg_sheet.allow_log_delete = on' ],
	[ $two, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND first_seq > 3' ], [ $two, 'SELECT sheet.trash(ID)' ], [ $two, 'SELECT sheet.recover(ID)' ],
	[ $two, q{SELECT sheet.set(ID, 'A1', 'other')} ], [ $two, q{SELECT sheet.set(ID, 'C3', 'other')} ], [ $two, q{SELECT sheet.set(ID, 'D4', 'other')} ]);
after('rows that it has deleted itself, rolled back', 'one', [ $one, 'BEGIN' ], [ $one, 'SET LOCAL pg_sheet.allow_log_delete = on' ],
	[ $one, 'DELETE FROM sheet.log_batch WHERE sheet_id = ID AND first_seq > 3' ], [ $one, q{SELECT sheet.set(ID, 'A1', 'gone')} ], [ $one, 'ROLLBACK' ]);
after('a log with another file', 'one', [ $two, 'VACUUM FULL sheet.log_batch' ]);
# It comes to the inserted rows, and no further.
after('an error while it looks at what others have done', 'other', [ $two, 'SELECT sheet.insert_rows(ID, 0, 3)' ], [ $two, q{SELECT sheet.set(ID, 'A1', 'other')} ],
	[ $one, q{SET pg_sheet.stop_point = 'replay-batch:error:3'} ],
	[ $one, q{DO $$ BEGIN PERFORM sheet.set(ID, 'A1', 'gone'); RAISE 'no error before'; EXCEPTION WHEN internal_error THEN NULL; END $$} ],
	[ $one, 'RESET pg_sheet.stop_point' ]);
after('an edit in REPEATABLE READ', 'mine', [ $two, q{SELECT sheet.set(ID, 'A1', 'other')} ], [ $one, 'BEGIN ISOLATION LEVEL REPEATABLE READ' ],
	[ $one, q{SELECT sheet.set(ID, 'A1', 'mine')} ], [ $one, 'COMMIT' ]);

# The log is another one within a transaction that is rolled back, and a cell is read then that was not known before.
my $altered = new_sheet('altered');
$two->ask("SELECT sheet.set($altered, 'Z90', 'one')");
$one->ask("SELECT sheet.set($altered, 'A1', 'here')");
$one->ask($_) for 'BEGIN', 'SET LOCAL pg_sheet.allow_log_delete = on', "CREATE TEMP TABLE batch AS SELECT * FROM sheet.log_batch WHERE sheet_id = $altered AND first_seq = 2",
	"DELETE FROM sheet.log_batch WHERE sheet_id = $altered AND first_seq = 2", q{UPDATE batch SET data = decode(replace(encode(data, 'hex'), encode('one', 'hex'), encode('two', 'hex')), 'hex')};
is($one->ask('INSERT INTO sheet.log_batch SELECT * FROM batch RETURNING first_seq'), '2', 'a transaction alters the log');
$one->ask("SELECT sheet.set($altered, 'Z91', 'gone')");
$one->ask('ROLLBACK');
$one->ask("SELECT sheet.set($altered, 'Z90', 'two')");
is($one->ask("SELECT old FROM sheet.log WHERE sheet_id = $altered ORDER BY seq DESC LIMIT 1"), 'one', 'what it has read then is not kept');
is_right($altered, 'an altered log');

# ---- how much is kept -------------------------------------------------------------------------------------------------------

my $kept = q{SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_sheet session tiles%'};
my @many = map { new_sheet("many $_") } 1 .. 60;
my $text = 'x' x 200;
my $most = 0;
for my $round (1 .. 2)
{
	for my $id (@many)
	{
		$one->ask("SELECT sheet.set_range($id, 'A1', array_fill('$text $round'::text, ARRAY[40, 16]))");
		$one->ask("SELECT sheet.set($id, 'A1', 'edit $round')");
		my $bytes = $one->ask($kept);
		$most = $bytes if $bytes > $most;
	}
}
note "at most $most bytes were kept";
cmp_ok($most, '>', 2 * 1024 * 1024, 'cells are kept of several sheets');
cmp_ok($most, '<=', 4 * 1024 * 1024, 'but not of all');
my $large = new_sheet('large');
$one->ask("SELECT sheet.set_range($large, 'A1', array_fill('$text$text'::text, ARRAY[1000, 26]))");
$one->ask("SELECT sheet.set_range($large, 'A1', array_fill('$text'::text, ARRAY[1000, 26]))");
cmp_ok($one->ask($kept), '<=', 4 * 1024 * 1024, 'nor all of a large one');
is_right($_, "sheet $_") for @many[ 0, 59 ], $large;

# ---- at random, at once -----------------------------------------------------------------------------------------------------

# Sheets that several sessions edit in turns: some transactions fail, some savepoints, some make versions or bring one back.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE ids AS SELECT n, sheet.create('storm ' || n, 200, 40) AS id FROM generate_series(1, 3) n;
CREATE FUNCTION storm(sheet bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE what float := random();
BEGIN
	IF what < 0.02 THEN
		PERFORM sheet.commit(sheet);
	ELSIF what < 0.03 THEN
		PERFORM sheet.rollback(sheet, max(version_id)) FROM sheet.version WHERE sheet_id = sheet HAVING max(version_id) > 0;
	ELSIF what < 0.05 THEN
		PERFORM sheet.insert_rows(sheet, (random() * 100)::int, 1 + (random() * 3)::int);
	ELSIF what < 0.07 THEN
		PERFORM sheet.delete_columns(sheet, (random() * 20)::int, 1);
	ELSIF what < 0.08 THEN
		PERFORM sheet.trash(sheet);
		PERFORM sheet.recover(sheet);
	END IF;
	FOR i IN 1 .. 1 + random() * 3 LOOP
		BEGIN
			PERFORM sheet.apply(sheet, j_batch(VARIADIC array_agg(j_set((random() * 99)::int, (random() * 29)::int, left('abc', (random() * 3)::int),
				CASE WHEN random() < 0.2 THEN left('st', (random() * 2)::int) END)))) FROM generate_series(1, 1 + (random() * 20)::int);
			IF random() < 0.1 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
	IF random() < 0.1 THEN
		RAISE EXCEPTION 'abort';
	END IF;
EXCEPTION WHEN raise_exception OR SQLSTATE 'SN001' OR invalid_parameter_value OR undefined_object THEN
	NULL;
END $$;
SQL
my $dir = PostgreSQL::Test::Utils::tempdir();
PostgreSQL::Test::Utils::append_to_file("$dir/storm.sql", "\\set n random(1, 3)\nSELECT storm(id) FROM ids WHERE n = :n;\n");
$node->command_ok([ 'pgbench', '-n', '-c', '4', '-T', seconds_to_run(2, 20), '-f', "$dir/storm.sql", $node->connstr('postgres') ], 'several sessions edit the same sheets');
is_right($_, "storm $_") for split /\n/, $node->safe_psql('postgres', 'SELECT id FROM ids');
$_->end for $one, $two;
$node->stop;
done_testing();
