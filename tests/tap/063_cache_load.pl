# The cache under load: a thousand writers of one cell, sheets that grow while they are written and read, sheets that put each
# other out, and all of it without a cache. The cells are held against a plain table that the same transactions change, in
# every read and at the end; and at no moment does the cache hold more than its budget.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

my $seconds = seconds_to_run(2, 20);
seed_random();
my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = new_server('load');
$node->append_conf('postgresql.conf', "fsync = off\nmax_connections = 80\n");
$node->restart;
install_model($node);
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE load (n integer PRIMARY KEY, sheet_id bigint);
CREATE FUNCTION load_sheets(count integer) RETURNS void LANGUAGE sql AS $$
	SELECT sheet.purge(sheet_id) FROM load;
	DELETE FROM load;
	DELETE FROM model;
	INSERT INTO load SELECT n, sheet.create('load ' || n, 100, 26) FROM generate_series(1, count) n
$$;
-- A square of cells at once; some of these transactions are taken back.
CREATE FUNCTION load_square(sheet bigint, r integer, c integer, size integer, content text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sheet.set_range(sheet, chr(65 + c) || r + 1, (SELECT array_agg(line) FROM generate_series(1, size), LATERAL (SELECT array_fill(content, ARRAY[size]) AS line) l));
	INSERT INTO model SELECT sheet, r + i, c + j, content FROM generate_series(0, size - 1) i, generate_series(0, size - 1) j
		ON CONFLICT (sheet_id, "row", col) DO UPDATE SET content = excluded.content;
	IF random() < 0.2 THEN
		RAISE EXCEPTION USING ERRCODE = 'ZZ001';
	END IF;
EXCEPTION WHEN SQLSTATE 'ZZ001' THEN NULL;
END $$;
CREATE FUNCTION load_check(sheet bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE n bigint := model_differences(sheet);
BEGIN
	IF n > 0 THEN
		RAISE EXCEPTION '% cells of sheet % are not the model''s', n, sheet;
	END IF;
	RETURN 'right';
END $$;
-- An error when the cache holds too much, which ends pgbench.
CREATE FUNCTION load_budget() RETURNS void LANGUAGE plpgsql AS $$
DECLARE s record;
BEGIN
	FOR i IN 1 .. 200 LOOP
		SELECT bytes, budget INTO s FROM sheet.cache_stats;
		IF s.bytes > s.budget THEN
			RAISE EXCEPTION '% bytes, the budget is %', s.bytes, s.budget;
		END IF;
	END LOOP;
END $$;
SQL

sub with_cache
{
	my ($size) = @_;
	$node->append_conf('postgresql.conf', "pg_sheet.cache_size = '$size'");
	$node->restart;
}

sub script
{
	my ($name, $text) = @_;
	PostgreSQL::Test::Utils::append_to_file("$dir/$name.sql", $text) if !-e "$dir/$name.sql";
	return "$dir/$name.sql";
}

sub ask
{
	return $node->safe_psql('postgres', @_);
}

# pgbench's scripts at once, and the look at the budget beside them; again on a machine that is so slow that `enough` has not been done.
sub load
{
	my ($what, $enough, @rest) = @_;
	for (1 .. 10)
	{
		load_once($what, @rest);
		last if ask("SELECT $enough") eq 't';
	}
}

sub load_once
{
	my ($what, $sheets, @scripts) = @_;
	my $budget = script('budget', "SELECT load_budget();\n");
	my $told = '';
	my $poll = IPC::Run::start([ 'pgbench', '-n', '-c', '1', '-T', $seconds, '-f', $budget, $node->connstr('postgres') ], '>&', \$told);
	my ($load_out, $load_err);
	my $right = IPC::Run::run([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', $seconds, '-D', "sheets=$sheets", (map { ('-f', $_) } @scripts), $node->connstr('postgres') ],
		'>', \$load_out, '2>', \$load_err);
	ok($right, "$what: every read was right, and every write went through") or diag substr($load_err, 0, 2000);
	ok($poll->finish, "$what: at no moment were there more bytes than the budget") or diag substr($told, 0, 2000);
	note "$what: $1 transactions" if $load_out =~ /actually processed: (\d+)/;
}

# From the cache, and past it; and the log is sound.
sub check_all
{
	my ($what) = @_;
	is(ask('SELECT sum(model_differences(sheet_id)) FROM load'), 0, "$what: the cells are the model's");
	is(ask("BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT sum(model_differences(sheet_id)) FROM load;\nCOMMIT"), 0, "$what: and the log's");
	is(ask(q{SELECT f.* FROM load, sheet.fsck(sheet_id, true, false) f WHERE severity <> 'info'}), '', "$what: fsck finds nothing");
	cache_is_at_rest($node, $what);
}

# ---- a thousand writers of one cell ----

sub one_cell
{
	my ($what) = @_;
	ask('SELECT load_sheets(1)');
	my $sheet = ask('SELECT sheet_id FROM load');
	$node->command_ok([ 'pgbench', '-n', '-c', 50, '-j', 2, '-t', 20, '-D', "sheet=$sheet", '-f',
		script('one', "SELECT model_write(:sheet, 3, 3, 'client ' || :client_id || ' ' || clock_timestamp());\n"), $node->connstr('postgres') ], "$what: a thousand edits of one cell by 50 sessions");
	is(ask("SELECT count(*), count(DISTINCT new), max(seq) - min(seq) + 1 FROM sheet.log WHERE sheet_id = $sheet AND a1 = 'D4'"), '1000|1000|1000', "$what: each is in the log");
	is(ask("SELECT count(*) FROM (SELECT old, lag(new, 1, '') OVER (ORDER BY seq) AS before FROM sheet.log WHERE sheet_id = $sheet AND a1 = 'D4') l WHERE old <> before"), 0,
		"$what: each knows the one before");
	is(ask("SELECT sheet.get($sheet, 'D4') = (SELECT new FROM sheet.log WHERE sheet_id = $sheet AND kind = 'set' ORDER BY seq DESC LIMIT 1)"), 't', "$what: the cell shows the last");
	check_all($what);
	# Five texts, so that many edits change nothing.
	my $last = ask("SELECT max(seq) FROM sheet.log WHERE sheet_id = $sheet");
	$node->command_ok([ 'pgbench', '-n', '-c', 50, '-j', 2, '-t', 20, '-D', "sheet=$sheet", '-f',
		script('five', "\\set n random(1, 5)\nSELECT model_write(:sheet, 3, 3, repeat('five', :n));\n"), $node->connstr('postgres') ], "$what: a thousand edits with five texts");
	is(ask("SELECT count(*) > 0 AND count(*) < 1000 AND count(*) FILTER (WHERE old = new) = 0 AND max(seq) - min(seq) + 1 = count(*) FROM sheet.log WHERE sheet_id = $sheet AND seq > $last"),
		't', "$what: those that change something are in the log");
	check_all($what);
}

# ---- the loads ----

my $read = script('read', "\\set n random(1, :sheets)\nSELECT load_check(sheet_id) FROM load WHERE n = :n;\n");
my $write = script('write', "\\set n random(1, :sheets)\n\\set r random(0, 199)\n\\set c random(0, 15)\n\\set len random(0, 300)\n"
	. "SELECT model_write(sheet_id, :r, :c, repeat(chr(97 + :len % 26), :len + 1)) FROM load WHERE n = :n;\n");
my $square = script('square', "\\set n random(1, :sheets)\n\\set r random(0, 180)\n\\set c random(0, 8)\n\\set len random(1, 200)\n"
	. "SELECT load_square(sheet_id, :r, :c, 8, repeat(chr(97 + :len % 26), :len)) FROM load WHERE n = :n;\n");
# Each client's rows, beyond all others' and ever further down and to the right.
my $grow = script('grow', "\\set n random(1, :sheets)\n\\set step random(1, 40)\nSELECT model_write(sheet_id, max_row + :step, (max_row + :step) % 60, 'grown by ' || :client_id)"
	. " FROM load, LATERAL (SELECT coalesce(max(\"row\"), 0) AS max_row FROM model m WHERE m.sheet_id = load.sheet_id) x WHERE n = :n;\n");

with_cache('16MB');
one_cell('cached');
ask('SELECT load_sheets(2)');
load('growing while written', '(SELECT min(rows) > 500 FROM load, sheet.read_cells(sheet_id))', 2, $grow, $write, $read);
cmp_ok(ask('SELECT min(rows) FROM load, sheet.read_cells(sheet_id)'), '>', 500, 'the sheets have grown');
check_all('growing while written');
is(ask('SELECT hits > 0, evictions FROM sheet.cache_stats'), 't|0', 'from the cache');

with_cache('4MB');
ask('SELECT load_sheets(40)');
load('putting each other out', '(SELECT evictions > 40 FROM sheet.cache_stats)', 40, $square, $write, $read, $read);
cmp_ok(ask('SELECT evictions FROM sheet.cache_stats'), '>', 40, 'many left the cache');
note ask('SELECT * FROM sheet.cache_stats');
check_all('putting each other out');

with_cache('0');
one_cell('without a cache');
ask('SELECT load_sheets(10)');
load('without a cache', 'true', 10, $square, $write, $grow, $read);
check_all('without a cache');
is(ask('SELECT bytes, budget, loads, hits FROM sheet.cache_stats'), '0|0|0|0', 'nothing was cached');
$node->stop;
done_testing();
