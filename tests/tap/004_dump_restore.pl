# pg_dump and restore of a database with the extension keep every sheet: cells, log, versions, members, files, accounts and
# their SQL roles; whatever the format and the order of the tables, and whether or not the roles exist. Editing goes on.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;

seed_random();
my $node = new_server('dump');
$node->append_conf('postgresql.conf', 'fsync = off'); # nothing crashes here
$node->reload;
my %role = (ann => 'ann', bob => 'B "ob"');
for my $name (sort keys %role)
{
	(my $quoted = $role{$name}) =~ s/"/""/g;
	$node->safe_psql('postgres', qq{SELECT sheet.account_create('$name', '$name\@example.com', 'hash'); CREATE ROLE "$quoted" LOGIN; SELECT sheet.link_account('$name', '$role{$name}')});
}
my $ann = $node->safe_psql('postgres', q{SELECT uid FROM sheet.account WHERE name = 'ann'});
$node->safe_psql('postgres', 'SELECT sheet.set_id_range(1000, 10)');
my @sheets = map { $node->safe_psql('postgres', "SELECT sheet.create('dump $_', 100, 26, as_uid => $ann)") } 1 .. 3;
for my $round (1 .. 3)
{
	for my $sheet (@sheets[ 0, 1 ])
	{
		my @edits = map { [ int rand 80, int rand 20, "round $round edit $_ " . 'x' x rand 500 ] } 1 .. 200;
		$node->safe_psql('postgres', "SELECT sheet.apply($sheet, " . batch(@edits) . "); SELECT sheet.commit($sheet, 'round $round')");
	}
}
$node->safe_psql('postgres', "SELECT sheet.rollback($sheets[0], 2); SELECT sheet.apply($sheets[1], " . batch([ 99, 25, q(it's "the" last) ]) . ')');
$node->safe_psql('postgres', "SELECT sheet.trash($sheets[2])");
$node->safe_psql('postgres', "SELECT sheet.share($sheets[0], 'bob', 'editor'), sheet.set_property($sheets[0], 'B:B', 'width', '120')");
my $upload = $node->safe_psql('postgres', "SELECT upload_id FROM sheet.file_begin($sheets[1], 'picture.png', 'image/png', as_uid => $ann)");
$node->safe_psql('postgres', "SELECT sheet.file_put($upload, 0, decode(repeat('00ff', 5000), 'hex')), sheet.file_end($upload, 'ff')");
$node->safe_psql('postgres', "SELECT sheet.create_webhook($sheets[0], 'https://example.org/')");
$node->safe_psql('postgres', "SELECT sheet.create_book('dumped', $ann); SELECT sheet.move_tab(s, 1, as_uid => $ann) FROM unnest(ARRAY[$sheets[0], $sheets[1]]) s; SELECT sheet.share_book(1, 'bob', 'editor', $ann); SELECT sheet.change_tab($sheets[1], '#112233', true, $ann)");
$node->safe_psql('postgres', "SELECT sheet.set($sheets[1], 'A1', '=''dump 1''!A9')");
$node->safe_psql('postgres', 'CREATE TABLE own (id int PRIMARY KEY, body text) USING sheetlog; INSERT INTO own SELECT g, g::text FROM generate_series(1, 1000) g');

my %questions = (
	log => 'SELECT count(*), md5(string_agg(r::text, \',\' ORDER BY h.sheet_id, r.seq)) FROM sheet.segment h, sheet.log_edits(h.sheet_id) r WHERE r.segment_id = h.segment_id',
	versions => "SELECT s, v.*, md5(r.cells) FROM unnest(ARRAY[$sheets[0], $sheets[1]]) s, sheet.versions(s) v, sheet.read_version(s, v.version_id) r ORDER BY 1, 2",
	'sheets in the trash' => 'SELECT sheet_id, name, trashed_at FROM sheet.sheet ORDER BY 1',
	accounts => 'SELECT a.*, current_uid FROM sheet.account a, sheet.current_uid() ORDER BY uid',
	members => 'SELECT * FROM sheet.member ORDER BY 1, 2',
	properties => "SELECT * FROM sheet.properties($sheets[0])",
	files => 'SELECT f.*, u.*, md5(p.data) FROM sheet.file f LEFT JOIN sheet.file_part p USING (upload_id) LEFT JOIN sheet.file_use u USING (uid)',
	'numbers that were given out' => join(' UNION ALL ', map { "SELECT '$_', last_value, is_called FROM sheet.$_" } qw(account_uid_seq sheet_number_seq file_upload_id_seq coordinator_epoch_seq lock_number_seq webhook_id_seq book_id_seq)),
	books => "SELECT to_jsonb(b), to_jsonb(t), to_jsonb(m) FROM sheet.book b JOIN sheet.book_tab t USING (book_id) JOIN sheet.book_member m USING (book_id) ORDER BY t.sheet_id, m.uid",
	'tabs that refer to others' => 'SELECT * FROM sheet.referring ORDER BY 1',
	webhooks => 'SELECT * FROM sheet.webhook ORDER BY 1',
	'range of ids' => 'SELECT * FROM sheet.id_range',
	privileges => "SELECT n.nspname, n.nspacl FROM pg_namespace n WHERE nspname = 'sheet'",
	'own table' => "SELECT count(*), sum(id), (SELECT amname FROM pg_am a JOIN pg_class c ON a.oid = c.relam WHERE c.relname = 'own') FROM own");
my $dir = PostgreSQL::Test::Utils::tempdir();

# The answers to all questions, and the cells, by one session: what => rows.
sub answers
{
	my ($database) = @_;
	my @what = grep { $_ ne 'own table' || $database !~ /^sheets_/ } sort keys %questions;
	my $sql = join ";\n", map { ("SELECT '=$_'", $questions{$_}) } @what;
	$sql .= join '', map { ";\nSELECT '=cells of sheet $_';\n" . SheetTest::state_query($_) } @sheets[ 0, 1 ];
	my %answers = map { /^(.*?)\n(.*)$/s ? ($1, $2) : ($_, '') } split /^=/m, $node->safe_psql($database, $sql);
	delete $answers{''};
	return %answers;
}
my %dumped = answers('postgres');
my $past_version = $node->safe_psql('postgres', "SELECT r.seq - max(v.seq) FROM sheet.read_cells($sheets[0]) r, sheet.versions($sheets[0]) v GROUP BY r.seq");

# What was restored is what was dumped, and sound; and editing goes on.
sub is_the_same
{
	my ($way) = @_;
	SheetTest::load_helpers($node, $way) if $way =~ /^sheets_/;
	my %restored = answers($way);
	is($restored{$_}, $dumped{$_}, "$way: the same $_") for sort keys %restored;
	my ($rc, $out, $err) = $node->psql($way, 'CALL sheet.fsck_all(true)');
	like($err, qr/NOTICE:  checked sheets: 3, findings: 0, repaired: 0$/m, "$way: every sheet is sound");
	unlike($err, qr/WARNING/, "$way: nothing else is found");
	is($node->safe_psql($way, 'SELECT * FROM sheet.privileges_changed(); SELECT first_seq - (SELECT max(seq) FROM sheet.versions(' . $sheets[0] . ")) FROM sheet.apply($sheets[0], " . batch([ 5, 5, 'after' ]) . ')'),
		$past_version + 1, "$way: privileges are those of a new database, and editing goes on without a gap");
	my $new = $node->safe_psql($way, "SELECT sheet.create('new', 10, 10)");
	ok($new % 10 == 0 && !grep({ $_ == $new } @sheets), "$way: a new sheet has an id of its own, of the range");
}

sub make_database
{
	my ($name, @sql) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0");
	$node->safe_psql($name, $_) for @sql;
	return $node->connstr($name);
}

sub dump_ok
{
	my ($file, @options) = @_;
	$node->command_ok([ 'pg_dump', @options, '-f', "$dir/$file", $node->connstr('postgres') ], "dumped: $file");
	return "$dir/$file";
}

my $plain = dump_ok('plain', '--format=plain');
my $custom = dump_ok('custom', '--format=custom');
my $directory = dump_ok('directory', '--format=directory');
my $data = dump_ok('data', '--format=plain', '--data-only', '--table=sheet.*');
$node->safe_psql('postgres', 'CREATE ROLE backup LOGIN IN ROLE pg_read_all_data');
my $by_reader = dump_ok('by_reader', '--format=custom', '--username=backup');
my $clean = dump_ok('clean', '--format=plain', '--clean', '--if-exists');

$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $plain, make_database('plain') ], 'plain: restored');
is_the_same('plain');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', make_database('custom'), $custom ], 'custom: restored');
is_the_same('custom');
$node->command_ok([ 'pg_restore', '--single-transaction', '-d', make_database('single'), $custom ], 'single: restored in one transaction');
is_the_same('single');

# The tables in the opposite order: parts of files before files, members before sheets, sheets before accounts.
my $list = `pg_restore -l $custom`;
my @data = grep { / TABLE DATA sheet / } split /\n/, $list;
PostgreSQL::Test::Utils::append_to_file("$dir/list", join("\n", (grep { !/ TABLE DATA sheet / } split /\n/, $list), reverse @data) . "\n");
$node->command_ok([ 'pg_restore', '--exit-on-error', '-L', "$dir/list", '-d', make_database('reversed'), $custom ], 'reversed: restored');
is_the_same('reversed');
$node->command_ok([ 'pg_restore', '-j4', '-d', make_database('parallel'), $directory ], 'parallel: restored by four sessions');
is_the_same('parallel');

# Data alone, into a database that has the extension.
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $data, make_database('sheets_data', 'CREATE EXTENSION pg_sheet') ], 'data only: restored');
is_the_same('sheets_data');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--schema=sheet', '-d', make_database('sheets_schema', 'CREATE EXTENSION pg_sheet'), $custom ], 'the schema alone: restored');
is_the_same('sheets_schema');

# Over a database that has other contents.
make_database('clean', 'CREATE EXTENSION pg_sheet', q{SELECT sheet.create('gone') FROM generate_series(1, 3)}, 'SELECT sheet.set(s, \'A1\', \'gone\') FROM sheet.list l(s)');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $clean, $node->connstr('clean') ], 'clean: restored');
is_the_same('clean');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '-d', $node->connstr('clean'), $by_reader ], 'clean: restored again, from the dump of a role that only reads');
is_the_same('clean');

# What is missing after an incomplete restore is reported.
$node->command_ok([ 'pg_restore', '-l', $custom ], 'list');
PostgreSQL::Test::Utils::append_to_file("$dir/incomplete", join("\n", grep { !/ TABLE DATA sheet (sheet|file_part|account) / } split /\n/, $list) . "\n");
$node->command_ok([ 'pg_restore', '-L', "$dir/incomplete", '-d', make_database('incomplete'), $custom ], 'incomplete: restored');
my ($rc, $out, $err) = $node->psql('incomplete', 'CALL sheet.fsck_all()');
like($err, qr/WARNING:  sheet $_: .*: the sheet is gone$/m, "incomplete: sheet $_ is reported") for @sheets[ 0, 1 ];
like($err, qr/WARNING:  sheet $sheets[0]: account $ann: a member is gone$/m, 'incomplete: so is the account');
like($err, qr/WARNING:  sheet $sheets[1]: file "picture.png": 0 of 10000 bytes are stored$/m, 'incomplete: so is the file');

# Where the roles of a dump do not exist, everything else is restored; a role that is made later is linked by its name. In the database
# in which a role is renamed or dropped, the link follows.
$node->safe_psql('template1', 'DROP ROLE ann; CREATE ROLE carl');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', make_database('without'), $custom ], 'without the role: restored');
is_the_same('without');
is($node->safe_psql('without', 'SET ROLE carl; SELECT sheet.current_uid()'), '0', 'without the role: nobody else acts as the account');
$node->safe_psql('without', 'CREATE ROLE ann');
is($node->safe_psql('without', "SET ROLE ann; SELECT sheet.current_uid(), sheet.role_of($sheets[0])"), "$ann|owner", 'the role that has the name acts as the account');
$node->safe_psql('without', 'ALTER ROLE ann RENAME TO "anna maria"; CREATE ROLE ann');
is($node->safe_psql('without', 'SET ROLE "anna maria"; SELECT sheet.current_uid(); SET ROLE ann; SELECT sheet.current_uid()'), "$ann\n0", 'the link follows a renamed role');
$node->safe_psql('without', 'DROP ROLE "anna maria"; CREATE ROLE "anna maria"');
is($node->safe_psql('without', 'SET ROLE "anna maria"; SELECT sheet.current_uid()'), '0', 'a dropped role leaves no link');
$node->stop;
done_testing();
