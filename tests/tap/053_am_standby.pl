# A standby replays everything that is done to a table that uses sheetlog, page by page the same (wal_consistency_checking); its
# readers see what their snapshots see or are cancelled; it is promoted and goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_server('primary', streaming => 1);
$primary->append_conf('postgresql.conf', <<~'CONF');
	wal_consistency_checking = all
	autovacuum = off
	max_standby_streaming_delay = 1s
	max_prepared_transactions = 4
	CONF
$primary->restart;
my $standby = start_standby($primary, 'standby');

my $sum = q{SELECT count(*), sum(id), md5(string_agg(id || coalesce(body, '-'), ',' ORDER BY id, body)) FROM t};

sub same_on_standby
{
	my ($what) = @_;
	$primary->wait_for_catchup($standby);
	is($standby->safe_psql('postgres', $sum), $primary->safe_psql('postgres', $sum), "$what: the same rows");
	is($standby->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $sum WHERE id >= 0"), $primary->safe_psql('postgres', $sum), "$what: by the index");
	is($standby->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}), '', "$what: sound");
}

$primary->safe_psql('postgres', <<~'SQL');
	CREATE TABLE t (id bigint, body text) USING sheetlog;
	CREATE INDEX ON t (id);
	CREATE INDEX ON t USING sheetlog_directory (id, id);
	CREATE INDEX ON t USING gin (string_to_array(left(body, 100), ' '));
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
	INSERT INTO t SELECT i, (SELECT string_agg(md5((i * j)::text), ' ') FROM generate_series(1, 1500) j) FROM generate_series(1, 20) i;
	SQL
same_on_standby('rows, short and long');
# A long row whose writer fails when it has its pages, and before it has written them all: the standby's file has these pages, too.
my ($failed) = $primary->psql('postgres', q{SET pg_sheet.stop_point = 'am-reserved:error'; INSERT INTO t SELECT -1, string_agg(md5(i::text), ' ') FROM generate_series(1, 3000) i});
is($failed, 3, 'a long row whose writer fails');
same_on_standby('a long row that was begun');
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO t SELECT i, repeat('aborted', i) FROM generate_series(1, 800) i; SAVEPOINT s; INSERT INTO t VALUES (1, 'sub'); ROLLBACK TO s; INSERT INTO t VALUES (-1, 'kept'); ROLLBACK});
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (6000, 'kept'); SAVEPOINT s; INSERT INTO t VALUES (6001, 'sub'); ROLLBACK TO s; INSERT INTO t VALUES (6002, 'kept'); COMMIT});
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (7000, 'prepared'); PREPARE TRANSACTION 'p1'});
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (7001, 'prepared'); PREPARE TRANSACTION 'p2'});
same_on_standby('aborts, savepoints, prepared transactions');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'p1'});
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'p2'});
$primary->safe_psql('postgres', 'VACUUM t');
same_on_standby('VACUUM');
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, 'conflict' FROM generate_series(1, 10) i ON CONFLICT DO NOTHING});
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; DELETE FROM t WHERE id % 3 = 0});
same_on_standby('DELETE');

# A reader of the standby with a snapshot from before: VACUUM moves rows under its cursor, and takes rows that it can see.
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $seen = $reader->query_safe($sum);
$reader->query_safe('DECLARE c CURSOR FOR SELECT id, length(body) FROM t');
$reader->query_safe('FETCH 10 FROM c');
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO t SELECT i, 'gone' FROM generate_series(1, 3000) i; ROLLBACK});
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, 'later' FROM generate_series(8000, 8100) i});
$primary->wait_for_catchup($standby);
is($reader->query_safe($sum), $seen, 'a reader of the standby has its snapshot');
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; DELETE FROM t WHERE id BETWEEN 100 AND 900});
$primary->safe_psql('postgres', 'VACUUM (FREEZE) t');
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, 'over it' FROM generate_series(9000, 12000) i});
$primary->wait_for_catchup($standby);
my $answer = eval { $reader->query_safe($sum) };
isnt($answer // 'cancelled', $answer // '', 'a reader of the standby whose rows are gone is cancelled') or is($answer, $seen, 'or sees what it saw');
like(slurp_file($standby->logfile), qr/conflict with recovery/, 'because of the conflict');
eval { $reader->quit };
same_on_standby('VACUUM FREEZE, and space used again');

$primary->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY t_late ON t (body text_pattern_ops) WHERE length(body) < 100; REINDEX TABLE t; VACUUM FULL t');
same_on_standby('index builds and VACUUM FULL');
$primary->safe_psql('postgres', q{ALTER TABLE t ADD COLUMN more int DEFAULT 7; INSERT INTO t VALUES (20000, 'with more', 8)});
same_on_standby('a new column');
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; DELETE FROM t WHERE id > 500; });
$primary->safe_psql('postgres', 'VACUUM (FREEZE, TRUNCATE) t');
same_on_standby('the file is cut');
$primary->safe_psql('postgres', q{BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 'after'); COMMIT; INSERT INTO t SELECT i, 'x' FROM generate_series(2, 2000) i});
same_on_standby('TRUNCATE');

my $sheet = $primary->safe_psql('postgres', q{SELECT sheet.create('on standby')});
$primary->safe_psql('postgres', "SELECT sheet.set($sheet, 'A' || i, 'v' || i) FROM generate_series(1, 50) i; SELECT sheet.commit($sheet)");
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*), max(content) FROM sheet.range($sheet)"), '50|v9', 'a sheet is read on the standby');
my $rows = $primary->safe_psql('postgres', $sum);
# A cursor that stands in the middle of a page, from which rows are taken out; then the standby is promoted.
$primary->safe_psql('postgres', q{CREATE TABLE moved (id bigint PRIMARY KEY, body text) USING sheetlog; INSERT INTO moved SELECT i, md5(i::text) FROM generate_series(1, 100) i});
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; DELETE FROM moved WHERE id <= 50});
$primary->wait_for_catchup($standby);
my $cursor = $standby->background_psql('postgres', on_error_stop => 0);
$cursor->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
$cursor->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT id, body FROM moved WHERE id > 0 ORDER BY id');
is($cursor->query_safe('MOVE 4 FROM c; FETCH 1 FROM c') =~ s/\|.*//r, '55', 'a cursor of the standby');
$primary->safe_psql('postgres', 'VACUUM moved');
$primary->wait_for_catchup($standby);
$primary->stop;
$standby->promote;
is(join(' ', map { /(\d+)\|(\w+)/ } split /\n/, $cursor->query('FETCH ALL FROM c')),
	$standby->safe_psql('postgres', q{SELECT string_agg(i || ' ' || md5(i::text), ' ' ORDER BY i) FROM generate_series(56, 100) i}),
	'a cursor that is open when the standby is promoted goes on where its rows are now');
$cursor->quit;
is($standby->safe_psql('postgres', $sum), $rows, 'promoted: the same rows');
$standby->safe_psql('postgres', "INSERT INTO t SELECT i, 'new' FROM generate_series(3000, 4000) i; SELECT sheet.set($sheet, 'A1', 'promoted')");
$standby->safe_psql('postgres', 'VACUUM t');
is($standby->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}), '', 'sound after writing');
is($standby->safe_psql('postgres', "SELECT sheet.get($sheet, 'A1')"), 'promoted', 'the sheet goes on');
is($standby->safe_psql('postgres', "SELECT what FROM sheet.fsck($sheet, true)"), 'clean', 'and is sound');
unlike(slurp_file($standby->logfile), qr/inconsistent page|PANIC/, 'every page was replayed as it was written');
$standby->stop;
done_testing();
