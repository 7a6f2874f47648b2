# Many subtransactions of one transaction delete from one page of a sheetlog table, which keeps six deleters apart. What stands and what
# does not is the same as in a heap table: for others while it is in progress, on a standby, after a crash, and when it was prepared.
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
	max_prepared_transactions = 4
	CONF
$primary->restart;
my $standby = start_standby($primary, 'standby');

# The ids that are there, in both tables.
my $ids = q{SELECT (SELECT string_agg(id::text, ',' ORDER BY id) FROM l)};
my $same = q{SELECT (SELECT array_agg(id ORDER BY id) FROM l) = (SELECT array_agg(id ORDER BY id) FROM h)};

$primary->safe_psql('postgres', <<~'SQL');
	CREATE TABLE l (id int) USING sheetlog;
	CREATE TABLE h (id int) USING heap;
	INSERT INTO l SELECT generate_series(1, 870);
	INSERT INTO h SELECT generate_series(1, 870);
	-- subtransactions within subtransactions; those of every third and of every seventh row fail
	CREATE FUNCTION del(first int, last int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP
			BEGIN
				BEGIN
					DELETE FROM l WHERE id = i;
					DELETE FROM h WHERE id = i;
					IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
				EXCEPTION WHEN division_by_zero THEN NULL;
				END;
				IF i % 7 = 0 THEN RAISE division_by_zero; END IF;
			EXCEPTION WHEN division_by_zero THEN NULL;
			END;
		END LOOP;
	END $$;
	SQL

sub agree_everywhere
{
	my ($what) = @_;
	$primary->wait_for_catchup($standby);
	is($primary->safe_psql('postgres', $same), 't', "$what: as in the heap table");
	is($standby->safe_psql('postgres', $same), 't', "$what: on the standby");
	is($standby->safe_psql('postgres', $ids), $primary->safe_psql('postgres', $ids), "$what: the same on both");
	is($primary->safe_psql('postgres', q{SELECT * FROM sheet.am_check('l')}), '', "$what: sound");
}

is($primary->safe_psql('postgres', q{SELECT (ctid::text::point)[0] AS page, min(id), max(id) FROM l GROUP BY page ORDER BY page}), "1|1|290\n2|291|580\n3|581|870", 'three pages');
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; SELECT del(1, 30)});
agree_everywhere('a transaction');

# More subtransactions than snapshots keep apart, in progress.
my $writer = $primary->background_psql('postgres', on_error_stop => 0);
$writer->query_safe('SET pg_sheet.allow_log_delete = on');
my $before = $primary->safe_psql('postgres', $ids);
$writer->query_safe('BEGIN; SELECT del(31, 120); SAVEPOINT open; SELECT del(121, 130)');
is($primary->safe_psql('postgres', $ids), $before, 'in progress: others see none of it');
agree_everywhere('in progress');
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe($ids), $before, 'in progress: a reader of the standby');
$writer->query_safe('ROLLBACK TO open; SELECT del(125, 128); COMMIT');
agree_everywhere('committed');
is($reader->query_safe($ids), $before, 'committed: the reader of the standby still has its snapshot');
$reader->query_safe('COMMIT');
is($reader->query_safe($same), 't', 'committed: and then the new one');
$reader->quit;

# Prepared, over a restart.
$primary->safe_psql('postgres', qq{SET pg_sheet.allow_log_delete = on; BEGIN; SELECT del(300, 350); PREPARE TRANSACTION 'stands'});
$primary->safe_psql('postgres', qq{SET pg_sheet.allow_log_delete = on; BEGIN; SELECT del(600, 650); PREPARE TRANSACTION 'fails'});
agree_everywhere('prepared');

# A crash in the middle.
$writer->query_safe('BEGIN; SELECT del(131, 200)');
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->stop('immediate');
$primary->start;
$writer->{run}->kill_kill;
agree_everywhere('after a crash');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'stands'});
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'fails'});
agree_everywhere('prepared transactions that ended');
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; SELECT del(1, 870)});
agree_everywhere('the same rows again');
$primary->safe_psql('postgres', 'VACUUM FREEZE l');
agree_everywhere('VACUUM');
is($primary->safe_psql('postgres', $ids), join(',', grep { $_ % 3 == 0 || $_ % 7 == 0 } 1 .. 870), 'what failed is there, what stood is not');

# CLUSTER brings rows together whose deleters are more than a page keeps apart: two of one transaction become one, also on the standby,
# where the place that becomes free must not make a row the next deleter's.
my $old = $primary->background_psql('postgres', on_error_stop => 0);
$primary->safe_psql('postgres', q{CREATE TABLE c (id int, k int) USING sheetlog; INSERT INTO c SELECT i, i % 290 FROM generate_series(1, 580) i; CREATE INDEX c_k ON c (k)});
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; BEGIN; DELETE FROM c WHERE id = 1; DELETE FROM c WHERE id = 291; COMMIT});
$primary->safe_psql('postgres', "SET pg_sheet.allow_log_delete = on; DELETE FROM c WHERE id = $_") for 2 .. 5;
$primary->wait_for_catchup($standby);
$reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; DELETE FROM c WHERE id = 6});
$primary->safe_psql('postgres', q{CLUSTER c USING c_k});
$primary->wait_for_catchup($standby);
my $left = q{SELECT string_agg(id::text, ',' ORDER BY id) FROM c WHERE id < 10 OR id BETWEEN 290 AND 292};
is($old->query_safe($left), '1,2,3,4,5,6,7,8,9,290,291,292', 'CLUSTER: an old snapshot sees what was deleted since');
is($reader->query_safe($left), '6,7,8,9,290,292', 'CLUSTER: a snapshot of the standby from between the deletions');
is($standby->safe_psql('postgres', $left), '7,8,9,290,292', 'CLUSTER: a new one of the standby');
is($primary->safe_psql('postgres', q{SELECT * FROM sheet.am_check('c')}), '', 'CLUSTER: sound');
$_->quit for $old, $reader;
unlike(slurp_file($standby->logfile), qr/inconsistent page/, 'every page was replayed as it was written');
done_testing();
