# sheet.am_check: nothing to report on sound tables, whatever has been done to them; a byte flipped anywhere in a row, and most
# anywhere else, is reported with its block, without checksums of the cluster; with them, every one is.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use SheetTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

seed_random();

sub make_node
{
	my ($name, @initdb) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(extra => \@initdb);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_sheet'\nautovacuum = off\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_sheet');
	$node->safe_psql('postgres', <<~'SQL');
		CREATE TABLE t (id bigint, at timestamptz, body text, more numeric) USING sheetlog;
		CREATE INDEX ON t (id);
		CREATE INDEX ON t USING sheetlog_directory (id, id);
		INSERT INTO t SELECT i, now(), repeat(md5(i::text), 1 + i % 9), i FROM generate_series(1, 3000) i;
		INSERT INTO t SELECT i, now(), (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 2000) j), NULL FROM generate_series(1, 5) i;
		BEGIN; INSERT INTO t SELECT i, now(), 'aborted' FROM generate_series(1, 500) i; ROLLBACK;
		SQL
	return $node;
}

sub check { return $_[0]->safe_psql('postgres', q{SELECT * FROM sheet.am_check('t')}) }

# From PostgreSQL 18 on, checksums are the default.
my $node = make_node('plain', `postgres --version` =~ / (\d+)/ && $1 >= 18 ? '--no-data-checksums' : ());
is(check($node), '', 'a sound table');
$node->safe_psql('postgres', q{SET pg_sheet.allow_log_delete = on; DELETE FROM t WHERE id % 7 = 0 OR id = 3});
is(check($node), '', 'with deleted rows');
$node->safe_psql('postgres', 'VACUUM t');
is(check($node), '', 'after VACUUM');
$node->safe_psql('postgres', q{INSERT INTO t SELECT i, now(), repeat('x', i) FROM generate_series(4000, 5000) i});
is(check($node), '', 'with space used again');
$node->safe_psql('postgres', 'VACUUM FREEZE t');
is(check($node), '', 'frozen');
my ($code, $out, $err) = $node->psql('postgres', q{SELECT * FROM sheet.am_check('pg_class')});
like($err, qr/does not use access method "sheetlog"/, 'another access method is refused');
for my $none (0, 4000000000)
{
	($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM sheet.am_check($none)");
	like($err, qr/ERROR:  42P01: relation with OID $none does not exist/, "there is no table $none");
}
($code, $out, $err) = $node->psql('postgres', q{CREATE ROLE reader; GRANT SELECT ON t TO reader; GRANT USAGE ON SCHEMA sheet TO reader; SET ROLE reader; SELECT * FROM sheet.am_check('t')});
like($err, qr/must be owner of table t/, 'for owners only');

# damage($node, TABLE => sub { my ($fh) = @_; ... }, ...): changes the tables' files; the server is stopped meanwhile.
sub damage
{
	my ($node, %changes) = @_;
	my %files = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } keys %changes;
	$node->stop;
	for my $table (keys %changes)
	{
		open my $fh, '+<:raw', $files{$table} or die "$files{$table}: $!";
		$changes{$table}->($fh);
		close $fh;
	}
	$node->start;
}

# A crash between the extension of the file and the metapage's WAL record.
$node->safe_psql('postgres', 'CREATE TABLE begun (id bigint) USING sheetlog');
damage($node, begun => sub { print { $_[0] } "\0" x 8192 });
is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('begun')}), '', 'a table whose first writer did not come to its metapage');
is($node->safe_psql('postgres', 'INSERT INTO begun VALUES (7); SELECT id FROM begun'), '7', 'takes rows');
damage($node, begun => sub { print { $_[0] } "\0" x 8192 });
is($node->safe_psql('postgres', q{SELECT block, what FROM sheet.am_check('begun')}), '0|the metapage is missing', 'once there are rows, a metapage is missed');

sub flip
{
	my ($node, @places) = @_;
	damage($node, t => sub {
		my ($fh) = @_;
		for my $place (@places)
		{
			seek $fh, $place, 0;
			read $fh, my $byte, 1;
			seek $fh, $place, 0;
			print $fh chr(ord($byte) ^ (1 << int rand 8));
		}
	});
}

sub used_bytes
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS pageinspect');
	return map { [split /\|/] } split /\n/,
	  $node->safe_psql('postgres', q{SELECT b, lower FROM generate_series(1, pg_relation_size('t') / 8192 - 1) b, page_header(get_raw_page('t', b::int)) WHERE lower > 24});
}

sub different_pages
{
	my %seen;
	return grep { !$seen{ $_->[0] }++ } @_;
}

# A page that rows would be added to, whose base record promises 200 columns: behind tag, xid and the row's 4 columns.
$node->safe_psql('postgres', 'CREATE TABLE base (a int, b int, c int, d int) USING sheetlog; INSERT INTO base VALUES (1, 2, 3, 4)');
damage($node, base => sub { my ($fh) = @_; seek $fh, 8192 + 24 + 6, 0; print $fh "\x22\x03" });
($code, $out, $err) = $node->psql('postgres', 'INSERT INTO base VALUES (5, 6, 7, 8)');
like($err, qr/block 1 of table "base" is damaged.*cannot be read/s, 'nothing is added to a page whose base record is damaged');
like($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('base')}), qr/too many columns/, 'and the check says why');

# The check sum of a row does not cover its tag, which says how it is decoded: each bit of one, in a table of its own.
$node->safe_psql('postgres', "CREATE TABLE tag$_ (a int, b text, c int, d int) USING sheetlog; INSERT INTO tag$_ SELECT i, 'needle' || i, i, i FROM generate_series(1, 3) i") for 0 .. 7;
damage($node, map {
	my $bit = 1 << $_;
	"tag$_" => sub {
		my ($fh) = @_;
		local $/;
		my $place = index(<$fh>, 'needle2') - 6; # behind it length, check sum, a, and the length of b
		seek $fh, $place, 0;
		read $fh, my $tag, 1;
		is(ord($tag), 0x80, 'the tag of a plain row');
		seek $fh, $place, 0;
		print $fh chr(ord($tag) ^ $bit);
	}
} 0 .. 7);
is($node->safe_psql('postgres', join ' UNION ALL ', map { "SELECT $_, c.* FROM sheet.am_check('tag$_') c" } 0 .. 7), <<~'END' =~ s/\n\z//r, 'each is reported once');
	0|1|2|the row does not end with its last column
	1|1|2|the row goes on in a block that does not exist
	2|1|2|row (1,2) of table "tag2" is damaged
	3|1|2|the row names a deleter that is not there
	4|1|2|the row names a deleter that is not there
	5|1|2|the row names a deleter that is not there
	6|1|13|a row does not end
	7|1|2|the page has a second base record
	END

# A transaction id of which the server has forgotten whether it committed, because all older rows are frozen.
{
	my ($xact, $command) = ($node->data_dir . '/pg_xact', sub { PostgreSQL::Test::Utils::system_or_bail(@_) });
	$node->safe_psql($_, 'VACUUM FREEZE') for qw(postgres template1);
	$node->stop;
	$command->('pg_resetwal', '-x', 0x200000 + 64, $node->data_dir);
	open my $fh, '>:raw', "$xact/0002" or die;
	print $fh "\0" x (32 * 8192);
	close $fh;
	unlink "$xact/0000" or die;
	$node->start;
	$node->safe_psql('postgres', <<~'SQL');
		CREATE TABLE old (id bigint, body text) USING sheetlog;
		CREATE INDEX old_directory ON old USING sheetlog_directory (id, id);
		INSERT INTO old SELECT i, repeat(md5(i::text), 1000 * (2 - i)) FROM generate_series(1, 2) i;
		SQL
	is($node->safe_psql('postgres', q{SELECT * FROM sheet.am_check('old')}), '', 'a table with young rows');
	damage($node, old => sub { my ($fh) = @_; seek $fh, 8192 + 24 + 3, 0; print $fh "\0" });
	is($node->safe_psql('postgres', q{SELECT what FROM sheet.am_check('old')}), 'a transaction id is older than relfrozenxid and is not frozen', 'a forgotten transaction id is reported');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t') > 3000, 1, 'the rest can be read');
}

# Without checksums: a byte of the records of each of some pages.
my @pages = used_bytes($node);
my @chosen = map { $pages[ rand @pages ] } 1 .. 25;
my %expected = map { $_->[0] => 1 } @chosen;
my @flipped = map { $_->[0] * 8192 + 24 + int rand($_->[1] - 24) } different_pages(@chosen);
flip($node, @flipped);
my %reported = map { (split /\|/)[0] => 1 } split /\n/, check($node);
# A damaged page of a long row is reported with the block and number of the row.
my $missed = grep { !$reported{$_} } keys %expected;
my $long = $node->safe_psql('postgres', q{SELECT count(*) FROM sheet.am_check('t') WHERE what LIKE '%bytes of the row%' OR what LIKE '%goes on%' OR what LIKE '%belongs to no row%'});
ok(scalar(keys %reported) > 0, 'flipped bytes are reported') or diag check($node);
cmp_ok($missed, '<=', $long, 'each is reported, in its block or in that of its row');
note "$missed of " . keys(%expected) . ' pages are reported by the block of their row';
$node->stop;

# With checksums: every byte, and the block.
my $summed = make_node('summed', '--data-checksums');
@pages = used_bytes($summed);
@chosen = different_pages(map { $pages[ rand @pages ] } 1 .. 25);
flip($summed, map { $_->[0] * 8192 + int rand 8192 } @chosen);
%reported = map { (split /\|/)[0] => 1 } split /\n/, check($summed);
is(join(' ', sort grep { !$reported{$_} } map { $_->[0] } @chosen), '', 'with checksums every flipped byte is reported with its block');
my $bad = $chosen[0][0];
($code, $out, $err) = $summed->psql('postgres', "SELECT * FROM t");
like($err, qr/invalid page|damaged/, 'and reading the table fails');
$summed->stop;
done_testing();
