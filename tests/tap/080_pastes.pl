# Pastes: random operations against a plain model of eviction, many sessions at once, ends, what a crash and a stop leave, standbys.
use strict;
use warnings;
no warnings 'portable';
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(time);

# What paste_private.h and paste_memory.c say of a paste of so many bytes, title and language included.
my ($first_text, $more_text, $largest) = (120, 252, 33000);
sub blocks_for { my ($len) = @_; return 1 + ($len > $first_text ? int(($len - $first_text + $more_text - 1) / $more_text) : 0); }

seed_random();
my $node = PostgreSQL::Test::Cluster->new('pastes');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', <<CONF);
shared_preload_libraries = 'pg_sheet'
fsync = off
restart_after_crash = on
max_connections = 60
pg_sheet.paste_memory = '1MB'
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sheet');

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub stat_of { my ($column) = @_; return sql("SELECT $column FROM sheet.paste_stats"); }

# Blocks that pastes take by the list of them, and by the statistics: none is lost.
sub counted_blocks
{
	my $expression = "1 + (greatest(octet_length(title) + octet_length(lang) + bytes - $first_text, 0) + $more_text - 1) / $more_text";
	return sql("SELECT coalesce(sum($expression), 0) FROM sheet.moderation");
}

# ---- a plain model ------------------------------------------------------------------------------------------------------------

# So many small pastes of as many addresses fit.
my $blocks = sql(q{SELECT count(sheet.paste_create('twenty bytes of text', address => 'filler ' || n)) FROM generate_series(1, 4500) n;
	SELECT pastes FROM sheet.paste_stats});
$blocks = (split /\n/, $blocks)[-1];
my $cost = stat_of('bytes') / $blocks;
cmp_ok($blocks, '>', 3800, "$blocks blocks of $cost bytes, with all overhead");
cmp_ok(stat_of('bytes'), '<=', stat_of('budget'), 'they are within the budget');
is(stat_of('evicted'), 4500 - $blocks, 'the others have been evicted');
is(sql(q{SELECT count(*) FROM sheet.moderation m WHERE m.created_at < (SELECT max(created_at) FROM sheet.moderation) AND m.views > 0}), '0', 'nobody has read them');
sql('SELECT count(sheet.paste_delete(id)) FROM sheet.moderation');
is(stat_of('bytes'), '0', 'deleting gives all memory back');

my $share = int($blocks / 16) > blocks_for($largest) ? int($blocks / 16) : blocks_for($largest);
my $makers = int($blocks / 8);
my (%pastes, %maker, @over);
my ($clock, $free) = (0, $blocks);

sub maker_add
{
	my ($maker, $count) = @_;
	$maker->{blocks} += $count;
	my $is_over = $maker->{blocks} > $share;
	@over = grep { $_ != $maker } @over if !$is_over;
	push @over, $maker if $is_over && !grep { $_ == $maker } @over;
}

sub oldest
{
	my ($maker) = @_;
	my ($id) = sort { $pastes{$a}{used} <=> $pastes{$b}{used} } grep { !$maker || $pastes{$_}{maker} == $maker } keys %pastes;
	return $id;
}

sub forget
{
	my ($id) = @_;
	my $paste = delete $pastes{$id};
	$free += $paste->{blocks};
	maker_add($paste->{maker}, -$paste->{blocks});
}

sub make_room
{
	my ($maker, $needed) = @_;
	while ($free < $needed)
	{
		my $id;
		$id = oldest($maker) if $maker->{blocks} + $needed > $share;
		for my $other (@over) { $id //= oldest($other); }
		forget($id // oldest());
	}
}

my $session = new_session($node);

sub create
{
	my ($address, $len) = @_;
	my $id = $session->rows("SELECT sheet.paste_create(repeat('x', $len), address => '$address')");
	my $origin = $session->rows("SELECT origin FROM sheet.moderation WHERE id = '$id'");
	my $maker = $maker{ hex($origin) % $makers } //= { blocks => 0 };
	my $needed = blocks_for($len);
	make_room($maker, $needed);
	$free -= $needed;
	maker_add($maker, $needed);
	$pastes{$id} = { maker => $maker, blocks => $needed, used => ++$clock, len => $len, views => 0 };
}

sub ids { return $session->rows(q{SELECT string_agg(id, ' ' ORDER BY id COLLATE "C") FROM sheet.moderation}); }

my ($operations, $wrong, $gone) = (0, 0, 0);
my $rounds = rounds_to_run(12, 200);
for my $round (1 .. $rounds)
{
	# a flood by one address in every third round, many small ones in every other one
	my $flood = $round % 3 == 0 ? 'flood' : undef;
	for (1 .. 60)
	{
		my $dice = rand;
		my ($id) = %pastes ? (sort keys %pastes)[ rand keys %pastes ] : ();
		$operations++;
		if ($dice < 0.5 || !$id)
		{
			create($flood // 'address ' . int(rand 20), 20 + int(rand($round % 2 ? 32749 : 3000)));
		}
		elsif ($dice < 0.9)
		{
			my $row = $session->rows("SELECT octet_length(content), views FROM sheet.paste_get('$id')");
			my $paste = $pastes{$id};
			if (!$paste->{blocked})
			{
				$paste->{used} = ++$clock;
				$paste->{views}++;
			}
			$wrong += $row ne ($paste->{blocked} ? '' : "$paste->{len}|$paste->{views}");
		}
		elsif ($dice < 0.95)
		{
			$pastes{$id}{blocked} = !$pastes{$id}{blocked};
			$wrong += $session->rows("SELECT sheet.paste_block('$id', " . ($pastes{$id}{blocked} ? 'true' : 'false') . ')') ne 't';
		}
		else
		{
			forget($id);
			$wrong += $session->rows("SELECT sheet.paste_delete('$id')") ne 't';
			$gone += $session->rows("SELECT count(*) FROM sheet.paste_get('$id')") eq '0';
		}
	}
	is(ids(), join(' ', sort keys %pastes), "round $round: the pastes of the model, " . keys %pastes);
}
is($wrong, 0, "$operations operations, each answer as the model has it");
cmp_ok($gone, '>', 0, 'some were deleted');
cmp_ok(stat_of('evicted'), '>', 4500 - $blocks + 50, 'and many were evicted');
is(stat_of('bytes') / $cost, $blocks - $free, 'as many blocks are taken');
is(counted_blocks(), $blocks - $free, 'by pastes, all of them');

# ---- a flood takes a share ------------------------------------------------------------------------------------------------------

# Ids of pastes whose makers have places of their own in the table, so that the flood is not one with them.
sub others
{
	my ($of_flood) = map { hex($_) % $makers } split /\n/, sql(q{SELECT DISTINCT origin FROM sheet.moderation WHERE title = 'flood'});
	my %places = map { split /\|/ } split /\n/, sql(q{SELECT id, origin FROM sheet.moderation WHERE title <> 'flood'});
	return sort grep { hex($places{$_}) % $makers != $of_flood } keys %places;
}

sub store
{
	my ($title, $count) = @_;
	sql("SELECT count(sheet.paste_create(repeat('m', 1000), '$title', address => '$title ' || n)) FROM generate_series(1, $count) n");
}

sub flood { sql(q{SELECT count(sheet.paste_create(repeat('f', 20 + n % 9 * 4000), 'flood', address => '198.51.100.7')) FROM generate_series(1, 3000) n}); }

sub kept { my %now = map { $_ => 1 } others(); return scalar grep { $now{$_} } @_; }

sql('SELECT count(sheet.paste_delete(id)) FROM sheet.moderation');
store('modest', 300);
sql(q{SELECT sheet.paste_create('twenty bytes of text', 'flood', address => '198.51.100.7')});
my @modest = others();
flood();
is(kept(@modest), @modest, 'a flood by one address evicts nothing but its own, ' . @modest . ' of others are there');
store('new', 300);
is(kept(@modest), @modest, 'and what others store later evicts that of the flood');
store('more', 2 * $blocks / 5);
my @before = others();
flood();
my $lost = @before - kept(@before);
cmp_ok($lost, '<=', $share / 5 + 30, "of a full memory it takes its share from others and no more: $lost of " . @before);

# ---- many sessions ----------------------------------------------------------------------------------------------------------------

# Each stores a paste, reads it while others evict it or not, and fails on a content that is not the one it has stored.
$node->pgbench(
	'--no-vacuum --client=20 --jobs=2 --transactions=' . rounds_to_run(100, 2000) . ' --protocol=prepared',
	0,
	[qr{processed}],
	[qr{^$}],
	'20 sessions store, read, block and delete',
	{ 'pastes' => q{\set len random(20, 30000)
\set c random(0, 15)
\set who random(1, 40)
SELECT sheet.paste_create(repeat(to_hex(:c::int), :len::int), 't' || :c::text, address => 'client ' || :who::text) AS id \gset
SELECT 1 / (count(*) FILTER (WHERE g.content <> repeat(to_hex(:c::int), :len::int) OR g.title <> 't' || :c::text) = 0)::int FROM sheet.paste_get(:id) g;
SELECT count(sheet.paste_block(:id, :c::int % 2 = 0)), count(*) FROM sheet.paste_get(:id);
SELECT sheet.paste_delete(:id) WHERE :c::int < 4;
SELECT count(*) FROM sheet.moderation WHERE :c::int = 15;
} });
is(counted_blocks(), stat_of('bytes') / $cost, 'no block is lost');
cmp_ok(stat_of('refused'), '<', 100, 'hardly any was refused');

# ---- ends ---------------------------------------------------------------------------------------------------------------------------

sql('SELECT count(sheet.paste_delete(id)) FROM sheet.moderation');
sql(q{CREATE TABLE short AS SELECT sheet.paste_create('twenty bytes of text', lifetime => make_interval(secs => 1 + n % 10 / 10.0)) AS id FROM generate_series(1, 1500) n;
	CREATE TABLE long AS SELECT sheet.paste_create('twenty bytes of text', 'long') AS id FROM generate_series(1, 100) n});
my ($expired, $late, $polls) = (stat_of('expired'), 0, 0);
# clock_timestamp() is read before the paste: whatever comes back ends after it.
my $probe = q{SELECT count(*) FROM (SELECT id, clock_timestamp() AS now FROM short OFFSET 0) s, LATERAL sheet.paste_get(s.id) g WHERE g.expires_at <= s.now};
do
{
	$polls++;
	$late += sql($probe);
} until sql('SELECT count(*) FROM short s, LATERAL sheet.paste_get(s.id) g') eq '0' || $polls == 3000;
is($late, 0, "no paste was served after its end, in $polls rounds");
$node->poll_query_until('postgres', 'SELECT pastes = 100 FROM sheet.paste_stats') or die 'they are not removed';
pass('those that have ended are removed');
is(sql('SELECT count(*) FROM long l, LATERAL sheet.paste_get(l.id)'), '100', 'the others are there');
# nobody reads these: the launcher removes them
sql(q{SELECT count(sheet.paste_create('twenty bytes of text', lifetime => '1 s')) FROM generate_series(1, 1500) n});
$node->poll_query_until('postgres', 'SELECT pastes = 100 AND expired >= 3000 + ' . $expired . ' FROM sheet.paste_stats') or die 'they are not swept';
is(stat_of('expired'), $expired + 3000, 'the launcher removes what nobody reads');

# ---- a standby has its own --------------------------------------------------------------------------------------------------------

my $standby = start_standby($node, 'standby');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM sheet.moderation'), '0', 'a standby does not have those of its primary');
is($standby->safe_psql('postgres', q{SELECT content FROM sheet.paste_get(sheet.paste_create('twenty bytes of text'))}), 'twenty bytes of text', 'it has its own');
$standby->stop;

# ---- crashes and restarts ----------------------------------------------------------------------------------------------------------

my $life = server_life($node);
my $doomed = new_session($node);
$doomed->rows('SELECT 1');
kill 'KILL', $doomed->{pid};
wait_until_next_life($node, $life);
is(stat_of('pastes'), '0', 'a crash leaves none');
my $id = sql(q{SELECT sheet.paste_create(repeat('never' || '-on-' || 'disk ', 100), repeat('never' || '-on-' || 'disk ', 5))});
sql('CHECKPOINT');
is(sql("SELECT count(*) FROM sheet.paste_get('$id')"), '1', 'new ones are stored');
$node->stop('fast');
is(system('grep', '-rqF', 'never-on-disk', $node->data_dir) >> 8, 1, 'no byte of a paste is on disk');
$node->start;
is(sql("SELECT count(*) FROM sheet.paste_get('$id')"), '0', 'a restart leaves none');

# ---- turned off ----------------------------------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', 'pg_sheet.paste_memory = 0');
$node->restart;
like(new_session($node)->ask(q{SELECT sheet.paste_create('twenty bytes of text')}), qr/55000/, 'without memory there are no pastes');
is(sql('SELECT count(*) FROM sheet.paste_stats'), '0', 'nor statistics');
is(sql('SELECT count(*) FROM sheet.moderation'), '0', 'nor a list');
$node->append_conf('postgresql.conf', 'pg_sheet.paste_memory = 1000kB');
$node->restart;
is(sql('SHOW pg_sheet.paste_memory'), '32MB', 'a memory that is too small is not used');
like(slurp_file($node->logfile), qr/invalid value for parameter "pg_sheet.paste_memory": 1000/, 'which the log tells');
$node->stop;
done_testing();
