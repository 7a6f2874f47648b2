# Calendars: random rules have the times that python3-dateutil and npm's rrule give them; random changes of tasks, by SQL and in cells, leave what a
# plain model has; the worker follows commits of edits, whatever is killed; reminders come once, and in time.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use SheetTest;
use Test::More;
use Time::HiRes qw(time);
use Time::Local qw(timegm);

my $random = seed_random();
my $node = new_server('calendar');
$node->append_conf('postgresql.conf', "autovacuum = off\ntimezone = 'UTC'\n");
$node->restart;

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

# ---- rules ----

my $rules = rounds_to_run(400, 5000);
my $file = "$PostgreSQL::Test::Utils::tmp_check/rules.json";
system("/usr/bin/python3 $FindBin::Bin/random_rules.py $rules $random >$file") == 0 or die 'random_rules.py failed';
sql(qq{
	CREATE TABLE rule (rule jsonb);
	COPY rule FROM '$file' CSV QUOTE E'\\x01' DELIMITER E'\\x02';
	CREATE FUNCTION times(r jsonb) RETURNS jsonb LANGUAGE plpgsql AS \$\$ BEGIN
		RETURN (SELECT jsonb_agg(to_char(o.instance, 'YYYY-MM-DD"T"HH24:MI:SS') ORDER BY o.instance)
			FROM sheet.occurrences((r->>'starts')::timestamp, r->>'rule', 'UTC', NULL, (r->>'starts')::timestamptz + interval '4380 days 1 s', max_rows => 30) o);
	EXCEPTION WHEN invalid_parameter_value THEN RETURN 'null'; END \$\$;
	CREATE TABLE compared AS SELECT rule, times(rule) AS times FROM rule});
is(sql(q{SELECT rule->>'rule', rule->>'starts', rule->'times', times FROM compared WHERE times <> 'null' AND times <> rule->'times' LIMIT 5}), '',
	"$rules random rules have the times of dateutil");
my $others = rounds_to_run(100, 5000); # rrule takes 14 ms for a rule
is(scalar `head -n $others $file | node $FindBin::Bin/random_rules.mjs`, '', "$others of them have the times of npm's rrule");
is($?, 0, 'random_rules.mjs');
# Rules without any time are refused, and those that libical does not expand rightly.
cmp_ok(sql(q{SELECT count(*) FROM compared WHERE times = 'null'}), '<', $rules / 4, 'most rules are taken');

# ---- a model ----

my $persons = 3;
sql("SELECT sheet.account_create('p' || i, NULL, 'x') FROM generate_series(1, $persons) i");
my @uid = split /\n/, sql("SELECT uid FROM sheet.account ORDER BY uid");
my $calendar = sql("SELECT sheet.create_calendar('model', 'UTC', $uid[0])");

# Day 0 is near, so that all of it is expanded at once or soon.
sub day
{
	my ($n) = @_;
	my @t = gmtime(timegm(0, 0, 0, 1, 0, 2031) + 86400 * $n);
	return sprintf('%04d-%02d-%02d', $t[5] + 1900, $t[4] + 1, $t[3]);
}

# Of each UID: its number, the persons, the first day and hour of its rule, and the occurrences: the day by the rule =>
# [title, day, hour, whether it has a row of its own].
my %tasks;
my $titles = 0;

sub who
{
	return join(', ', map { "p$_" } grep { $_[0] >> ($_ - 1) & 1 } 1 .. $persons);
}

sub add_task
{
	my ($first, $count, $hour, $who) = (int rand 50, 1 + int rand 20, int rand 24, 1 + int rand(2**$persons - 1));
	my $title = 't' . ++$titles;
	my $uid = sql(sprintf(q{SELECT sheet.add_task(%d, '{"Title": "%s", "Start": "%s %02d:00", "End": "30 min", "Repeats": "FREQ=DAILY;COUNT=%d", "Who": "%s"}')},
		$calendar, $title, day($first), $hour, $count, who($who)));
	$tasks{$uid} = {number => $titles, who => $who, days => {map { $_ => [$title, $_, $hour] } $first .. $first + $count - 1}, hour => $hour, first => $first};
}

sub instance
{
	my ($task, $day) = @_;
	return sprintf('%s %02d:00', day($day), $task->{hour});
}

sub change_one
{
	my ($uid) = @_;
	my $task = $tasks{$uid};
	my @days = sort { $a <=> $b } keys %{$task->{days}};
	my $day = $days[rand @days];
	my ($title, $moved, $hour) = ('t' . ++$titles, int rand 60, int rand 24);
	if (rand() < 0.3)
	{
		sql("SELECT sheet.delete_task($calendar, '$uid', 'this', '" . instance($task, $day) . "')");
		delete $task->{days}{$day};
		return;
	}
	sql(sprintf(q{SELECT sheet.change_task(%d, '%s', '{"Title": "%s", "Start": "%s %02d:00"}', 'this', '%s')},
		$calendar, $uid, $title, day($moved), $hour, instance($task, $day)));
	$task->{days}{$day} = [$title, $moved, $hour, 1];
}

sub cut
{
	my ($uid) = @_;
	my $task = $tasks{$uid};
	my @days = sort { $a <=> $b } keys %{$task->{days}};
	my $day = $days[rand @days];
	return if $day == $task->{first};
	if (rand() < 0.3)
	{
		sql("SELECT sheet.delete_task($calendar, '$uid', 'following', '" . instance($task, $day) . "')");
		delete $task->{days}{$_} for grep { $_ >= $day } @days;
		return;
	}
	my ($title, $hour) = ('t' . ++$titles, int rand 24);
	my $later = sql(sprintf(q{SELECT sheet.change_task(%d, '%s', '{"Title": "%s", "Start": "%s %02d:00"}', 'following', '%s')},
		$calendar, $uid, $title, day($day), $hour, instance($task, $day)));
	my %moved;
	for my $n (grep { $_ >= $day } @days)
	{
		my $was = delete $task->{days}{$n};
		$moved{$n} = $was->[3] ? $was : [$title, $n, $hour];
	}
	$tasks{$later} = {number => $titles, who => $task->{who}, days => \%moved, hour => $hour, first => $day};
}

sub change_all
{
	my ($uid) = @_;
	my $task = $tasks{$uid};
	my ($title, $hour) = ('t' . ++$titles, int rand 24);
	sql(sprintf(q{SELECT sheet.change_task(%d, '%s', '{"Title": "%s", "Start": "%s %02d:00"}')}, $calendar, $uid, $title, day($task->{first}), $hour));
	$task->{hour} = $hour;
	$_->[3] or @$_[0, 2] = ($title, $hour) for values %{$task->{days}};
}

# In the cells, as people do it.
sub edit_cell
{
	my ($uid) = @_;
	my $task = $tasks{$uid};
	my $row = sql("SELECT \"row\" FROM sheet.tasks($calendar) WHERE task_uid = '$uid' AND instance IS NULL");
	if (rand() < 0.5)
	{
		return if grep { $_->[3] } values %{$task->{days}};
		$task->{who} = 1 + int rand(2**$persons - 1);
		sql(sprintf(q{SELECT sheet.set(%d, %d, 4, '%s')}, $calendar, $row, who($task->{who})));
	}
	elsif (rand() < 0.5)
	{
		sql("SELECT sheet.insert_rows($calendar, " . (1 + int rand 5) . ", 2)");
	}
	else
	{
		sql("SELECT sheet.delete_rows($calendar, \"row\", 1) FROM (SELECT \"row\" FROM sheet.tasks($calendar) WHERE task_uid = '$uid' ORDER BY 1 DESC) t");
		delete $tasks{$uid};
	}
	# Rows that tasks() names are those of the last refresh.
	sql("SELECT sheet.refresh_calendar($calendar)");
}

# who: a bit for each person.
sub model_of
{
	my ($who) = @_;
	my @all;
	for my $task (grep { $_->{who} & $who } values %tasks)
	{
		push @all, map { sprintf('%s %02d:00:00+00|%s', day($_->[1]), $_->[2], $_->[0]) } values %{$task->{days}};
	}
	return join("\n", sort @all);
}

sub compare
{
	my ($what) = @_;
	for my $person (1 .. $persons)
	{
		my $agenda = sql("SELECT starts_at, title FROM sheet.agenda($uid[$person - 1], '2031-01-01', '2031-12-31') ORDER BY starts_at, title COLLATE \"C\"");
		is(join("\n", sort split /\n/, $agenda), model_of(1 << $person - 1), "$what: p$person");
	}
	my $entries = sql("SELECT DISTINCT e.starts_at, e.title FROM generate_series(timestamptz '2031-01-01', '2031-12-30', '1 week') w,
		sheet.calendar_entries($calendar, w, w + interval '1 week') e");
	is(join("\n", sort split /\n/, $entries), model_of(2**$persons - 1), "$what: the calendar, week by week");
}

my $steps = rounds_to_run(120, 1500);
for my $step (1 .. $steps)
{
	# in an order that does not depend on UIDs
	my @uids = grep { %{$tasks{$_}{days}} } sort { $tasks{$a}{number} <=> $tasks{$b}{number} } keys %tasks;
	my $uid = @uids ? $uids[rand @uids] : undef;
	my $kind = rand;
	if (!defined $uid || $kind < 0.3) { add_task() }
	elsif ($kind < 0.55) { change_one($uid) }
	elsif ($kind < 0.75) { cut($uid) }
	elsif ($kind < 0.85) { change_all($uid) }
	else { edit_cell($uid) }
	next if $step % 30 != 0;
	sql("SELECT sheet.refresh_calendar($calendar)");
	1 while sql("SELECT sheet.serve_calendar($calendar) IS NULL") eq 't';
	compare("after $step steps");
}
is(sql("SELECT problem FROM sheet.tasks($calendar) WHERE problem IS NOT NULL"), '', 'no task has a problem');

# A series is never rewritten: what its occurrences were is still true of those that are valid.
is(sql(q{SELECT count(*) FROM sheet.occurrence o WHERE NOT EXISTS (SELECT FROM sheet.series s WHERE s.series_id = o.series_id)}), 0,
	'no occurrence is without its series');

# ---- rows that move between the reading of a row without a UID and the writing of its UID ----

my $crowd = sql("SELECT sheet.create_calendar('crowd', 'UTC', $uid[0])");
sql(qq{SELECT sheet.set_range($crowd, 'A2', (SELECT array_agg(ARRAY['known' || i, '2031-06-01 10:00', '1 h']) FROM generate_series(1, 10) i)); SELECT sheet.refresh_calendar($crowd)});
my $known = "SELECT string_agg(title || task_uid, ',' ORDER BY title) FROM sheet.tasks($crowd) WHERE title LIKE 'known%'";
my $named = sql($known);
my ($holder, $keeper, $server) = map { new_session($node) } 1 .. 3;
# The worker waits for the calendar's row in vain, and forgets the new row of the sheet.
$holder->ask("BEGIN; SELECT 1 FROM sheet.calendar WHERE sheet_id = $crowd FOR UPDATE");
sql("SELECT sheet.set_range($crowd, 'A12', '{{late,2031-06-02 10:00,1 h}}')");
$holder->ask("DELETE FROM sheet.timer WHERE kind = 'calendar edit'; DELETE FROM sheet.calendar_edit WHERE sheet_id = $crowd");
$keeper->ask("SELECT pg_advisory_lock(hashtext('calendar-lock'))");
$server->ask("SET pg_sheet.stop_point = 'calendar-lock:wait'");
$server->send("SELECT sheet.serve_calendar($crowd)");
my $waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE 'SELECT sheet.serve_calendar%' AND wait_event";
ok($node->poll_query_until('postgres', "$waits IN ('transactionid', 'tuple')"), 'a session is about to serve the calendar');
$holder->ask('COMMIT');
ok($node->poll_query_until('postgres', "$waits = 'advisory'"), 'it has read a row without a UID');
sql("SELECT sheet.insert_rows($crowd, 1, 1)");
$keeper->end;
$server->answer;
$_->end for $holder, $server;
sql("SELECT sheet.refresh_calendar($crowd)");
is(sql($known), $named, 'when rows have moved, no other row gets its UID');
is(sql("SELECT count(*), count(DISTINCT task_uid) FROM sheet.tasks($crowd)"), '11|11', 'and it has one');

# A session that has the sheet lock does not wait for a worker that waits for that lock.
$_ = new_session($node) for $holder, $server;
$holder->ask("BEGIN; SELECT 1 FROM sheet.calendar WHERE sheet_id = $crowd FOR UPDATE");
sql("SELECT sheet.set_range($crowd, 'A20', '{{later,2031-06-02 10:00,1 h}}')");
$holder->ask("DELETE FROM sheet.timer WHERE kind = 'calendar edit'; DELETE FROM sheet.calendar_edit WHERE sheet_id = $crowd; COMMIT");
$holder->ask("BEGIN; SELECT sheet.set($crowd, 'A20', 'latest')");
$server->send("SELECT sheet.serve_calendar($crowd)");
ok($node->poll_query_until('postgres', "$waits = 'advisory'"), 'a session that serves the calendar waits for the sheet lock');
$holder->ask("SET lock_timeout = '30 s'; SET deadlock_timeout = '60 s'; SELECT sheet.refresh_calendar($crowd); COMMIT");
$server->answer;
$_->end for $holder, $server;
is(sql("SELECT count(*) FROM sheet.tasks($crowd) WHERE title = 'latest'"), 1, 'and the calendar is refreshed meanwhile');

# ---- the worker ----

sub agenda_has
{
	my ($title, $count, $what) = @_;
	ok($node->poll_query_until('postgres', "SELECT count(*) = $count FROM sheet.agenda($uid[0], '2031-01-01', '2032-01-01') WHERE title = '$title'"), $what);
}

sql("SELECT sheet.set_range($calendar, 'A200', '{{worker,2031-05-01 10:00,1 h,FREQ=DAILY;COUNT=5,p1}}')");
agenda_has('worker', 5, 'the worker follows a commit');
sql("BEGIN; SELECT sheet.set($calendar, 'A200', 'never'); ROLLBACK");
sql("SELECT sheet.set($calendar, 'D200', 'FREQ=DAILY;COUNT=3')");
agenda_has('worker', 3, 'and another one, after one that was rolled back');
is(sql("SELECT title FROM sheet.agenda($uid[0], '2031-01-01', '2032-01-01') WHERE title = 'never'"), '', 'of which nothing is seen');
sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_sheet timer'; SELECT sheet.set($calendar, 'A200', 'ended')");
agenda_has('ended', 3, 'after a worker was ended');
$node->stop('immediate');
$node->start;
agenda_has('ended', 3, 'after a crash');
sql("SELECT sheet.set($calendar, 'A200', 'crashed')");
$node->stop('immediate');
$node->start;
agenda_has('crashed', 3, 'a commit before a crash is followed after it');

# A commit tells the worker after it has published its cells. A worker that came earlier would find nothing, and not come again.
$holder = new_session($node);
$holder->ask("SELECT pg_advisory_lock(hashtext('publish'))");
my $editor = new_session($node);
$editor->ask("SET pg_sheet.stop_point = 'publish:wait'");
$editor->send("SELECT sheet.set($calendar, 'A200', 'published')");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM sheet.calendar_edit'), 'a commit is visible, and its cells are not yet');
my $beside = sql("SELECT sheet.create_calendar('beside', 'UTC', $uid[1])");
sql("SELECT sheet.set_range($beside, 'A2', '{{told,2031-05-01 10:00,1 h}}')");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.tasks($beside)"), 'the worker serves another calendar');
is(sql('SELECT count(*) FROM sheet.calendar_edit'), 1, 'and has not heard of the commit');
$holder->end;
$editor->answer;
$editor->end;
agenda_has('published', 3, 'it follows when the cells are there');

# ---- a calendar that cannot be served, and much work ----

# There is no column for UIDs. One entry tries again, whoever goes on editing, and others are served.
my $full = sql("SELECT sheet.create_calendar('full', 'UTC', $uid[0])");
sql("SELECT sheet.set($full, 'L1', ''), sheet.set($full, 'XFD1', 'last')");
sql("SELECT sheet.set_range($full, 'A$_', '{{full,2031-05-0$_ 10:00,1 h}}')") for 2 .. 6;
ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM sheet.timer WHERE kind = 'calendar' AND id = $full AND failures > 0)
	AND NOT EXISTS (SELECT FROM sheet.calendar_edit WHERE sheet_id = $full)"), 'a calendar that fails is tried again by one entry');
sql("SELECT sheet.set($calendar, 'A200', 'beside')");
agenda_has('beside', 3, 'others are followed');
sql("SELECT sheet.set($full, 'XFD1', '')");
agenda_has('full', 5, 'and it is, when the cause is gone');

# Many edited rows, of which each may take long, are read in portions.
my $many = sql("SELECT sheet.create_calendar('many', 'UTC', $uid[1])");
sql("SELECT sheet.set_range($many, 'A2', (SELECT array_agg(ARRAY['many' || i, '2031-06-01 10:00']) FROM generate_series(1, 700) i)); SELECT sheet.refresh_calendar($many)");
is(sql("BEGIN; SELECT sheet.set_range($many, 'A2', (SELECT array_agg(ARRAY['more' || i]) FROM generate_series(1, 700) i)) > 0;
	SELECT sheet.refresh_calendar_now($many, now(), 1000) IS NULL;
	SELECT count(*) BETWEEN 1 AND 699 FROM sheet.tasks($many) WHERE title LIKE 'more%';
	SELECT sheet.refresh_calendar($many);
	SELECT count(*) FROM sheet.tasks($many) WHERE title LIKE 'more%'; COMMIT"), "t\nt\nt\n\n700", 'edits of many rows are followed in portions');

# ---- reminders ----

# So many are due at once that they come in several transactions.
sql(qq{SELECT sheet.set_range($many, 'A1000', ARRAY[ARRAY['long', (now() + interval '1 hour')::date::text, '', 'FREQ=DAILY;COUNT=45', 'p2', '', '100 days']])});
ok($node->poll_query_until('postgres', "SELECT count(*) >= 44 FROM sheet.outbox WHERE title = 'long'"), 'all reminders of an occurrence that are due come');
cmp_ok(sql("SELECT count(DISTINCT xmin::text) FROM sheet.outbox WHERE title = 'long'"), '>=', 5, 'some at a time');
sql("SELECT sheet.delete_rows($many, 999, 1); SELECT count(*) FROM sheet.take_reminders(1000)");

# Whoever has locked old reminders does not delay those of others.
sql("UPDATE sheet.notice SET created_at = now() - interval '8 days'");
my $slow = new_session($node);
$slow->ask('BEGIN; SELECT count(*) FROM (SELECT FROM sheet.notice FOR UPDATE) n');
sql(qq{SELECT sheet.set_range($calendar, 'A280', ARRAY[ARRAY['beside', to_char(now() + interval '1 hour', 'YYYY-MM-DD HH24:MI:SS'), '5 min', '', 'p1', '', '2 h']])});
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.outbox WHERE title = 'beside'"), 'a reminder comes while another transaction has old ones');
$slow->ask('ROLLBACK');
sql("SELECT count(*) FROM sheet.take_reminders(1000)");

# The reminder of each is due within some seconds; half of them before the crash, half after it. p3 is invited, too, and has neither a
# role in the calendar nor accepted.
sql("SELECT sheet.share($calendar, 'p2', 'viewer')");
my $reminded = 40;
sql(qq{SELECT sheet.set_range($calendar, 'A300', (SELECT array_agg(ARRAY['remind' || i, to_char(now() + interval '61 s' + i * interval '100 ms', 'YYYY-MM-DD HH24:MI:SS'),
	'5 min', '', 'p1, p2, p3', '', '1 min']) FROM generate_series(1, $reminded) i))});
ok($node->poll_query_until('postgres', "SELECT count(*) >= $reminded FROM sheet.outbox WHERE title LIKE 'remind%'"), 'half of the reminders have come');
$node->stop('immediate');
$node->start;
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 * $reminded FROM sheet.outbox WHERE title LIKE 'remind%'"), 'all have come after a crash');
is(sql("SELECT count(DISTINCT (uid, title)) FROM sheet.outbox WHERE title LIKE 'remind%'"), 2 * $reminded, 'each once');
is(sql("SELECT count(*) FROM sheet.outbox WHERE title LIKE 'remind%' AND created_at < starts_at - interval '1 min'"), 0, 'none before its time');
is(sql("SELECT count(*) FROM sheet.take_reminders(1000) WHERE title LIKE 'remind%' AND username IN ('p1', 'p2')"), 2 * $reminded, 'they are taken');
is(sql("SELECT count(*) FROM sheet.outbox"), 0, 'and are gone');

# Each is also a notice, until it is dismissed by its account.
sub notices
{
	my ($uid) = @_;
	return sql("SELECT count(*), count(DISTINCT title), coalesce(max(title), '') FROM sheet.reminders($uid) WHERE title LIKE 'remind%'");
}
is(notices($uid[0]), "$reminded|$reminded|remind9", 'pages show each once, whoever has taken it');
is(notices($uid[2]), '0|0|', 'nor are they shown to somebody without a role who has not accepted');
sql("SELECT sheet.dismiss_reminders(array_agg(reminder_id), $uid[1]) FROM sheet.reminders($uid[0])");
is(notices($uid[0]), "$reminded|$reminded|remind9", 'another account does not dismiss them');
my $cursor = sql('SELECT f."cursor" FROM sheet.follow(9, NULL, 0) f');
sql("SELECT sheet.dismiss_reminders(array_agg(reminder_id), $uid[0]) FROM sheet.reminders($uid[0]) WHERE title <> 'remind7'");
is(notices($uid[0]), '1|1|remind7', 'its own one does');
is(notices($uid[1]), "$reminded|$reminded|remind9", 'for itself');
is(sql("SELECT sheet_ids, seqs FROM sheet.follow(9, $cursor, 0)"), "{-$uid[0]}|{-2}", 'gateways hear of that');

# ---- dump and restore ----

my $before = sql("SELECT count(*), min(starts_at), max(title) FROM sheet.agenda($uid[0], '2031-01-01', '2032-01-01')");
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = "$PostgreSQL::Test::Utils::tmp_check/calendar.dump";
$node->command_ok(['pg_dump', '-Fc', '-f', $dump, $node->connstr('postgres')], 'a dump');
$node->command_ok(['pg_restore', '-d', $node->connstr('restored'), $dump], 'is restored');
is($node->safe_psql('restored', "SELECT count(*), min(starts_at), max(title) FROM sheet.agenda($uid[0], '2031-01-01', '2032-01-01')"), $before,
	'with its agendas');
$node->safe_psql('restored', "SELECT sheet.set($calendar, 'A200', 'restored')");
ok($node->poll_query_until('restored', "SELECT count(*) = 3 FROM sheet.agenda($uid[0], '2031-01-01', '2032-01-01') WHERE title = 'restored'"),
	'which follow its calendars');

# ---- a name that nobody had ----

sql(q{SELECT sheet.set_range(%1$d, 'A210', '{{late,2031-07-01 10:00,1 h,"","p1, newcomer, p9"},{later,2031-07-02 10:00,1 h,"",renamed}}')} =~ s/%1\$d/$calendar/r);
agenda_has('late', 1, 'a task names somebody whom nobody knows');
my $newcomer = sql("SELECT sheet.account_create('newcomer', NULL, 'x')");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.agenda($newcomer, '2031-07-01', '2031-08-01') WHERE title = 'late'"),
	'an account gets the name, and is invited');
is(sql("SELECT problem FROM sheet.tasks($calendar) WHERE title = 'late'"), 'Who: there is no account "p9"', 'the other name stays unknown');
sql("SELECT sheet.account_rename($newcomer, 'renamed')");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.agenda($newcomer, '2031-07-01', '2031-08-01') WHERE title = 'later'"),
	'also if an account is renamed');
sql("SELECT sheet.set($calendar, 'A211', 'latest')");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.agenda($newcomer, '2031-07-01', '2031-08-01') WHERE title = 'latest'"),
	'and the row is followed as any other');

# A pass over all rows is under way when an account gets a name that many rows have.
my $named = sql("SELECT sheet.create_calendar('named', 'UTC', $uid[1])");
sql("SELECT sheet.set_range($named, 'A2', (SELECT array_agg(ARRAY['named' || i, '2031-08-01 10:00', '1 h', '', 'crowd']) FROM generate_series(1, 1600) i))");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1600 FROM sheet.tasks($named) WHERE problem ~ 'crowd'"), 'many rows name nobody');
my $crowded = sql("BEGIN; SELECT sheet.insert_rows($named, 1, 1) > 0; SELECT sheet.account_create('crowd', NULL, 'x'); COMMIT") =~ s/^t\n//r;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1600 FROM sheet.agenda($crowded, '2031-08-01', '2031-08-02')"), 'all of them find the account');
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM sheet.calendar_edit) AND EXISTS (SELECT FROM sheet.calendar
	WHERE sheet_id = $named AND all_seq IS NULL AND done_seq = sheet.last_seq($named))"), 'and the worker comes to an end');

# An account and a task that names it, of transactions that do not see each other; either one is committed first.
for my $first ('account', 'task')
{
	my ($maker, $namer) = (new_session($node), new_session($node));
	$_->ask('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1') for $maker, $namer;
	my $uid = $maker->ask("SELECT sheet.account_create('beside $first', NULL, 'x')");
	$namer->ask(qq{SELECT sheet.refresh_calendar($calendar), sheet.put_cells($calendar, NULL,
		'{"title": "beside", "start": "2031-09-01 10:00", "who": "beside $first", "uid": "beside $first"}', NULL), sheet.refresh_calendar($calendar)});
	for my $session ($first eq 'account' ? ($maker, $namer) : ($namer, $maker))
	{
		$session->ask('COMMIT');
		ok($node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM sheet.calendar_edit)'), 'the worker has served what is committed');
	}
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.agenda($uid, '2031-09-01', '2031-09-02')"),
		"an account and a task beside each other, the $first first: it is invited");
}

# ---- new rules of a time zone ----

my $zones = $node->basedir . '/zones';
mkdir $zones or die;
system_or_bail('cc', '-shared', '-fPIC', '-O1', '-o', "$zones/own.so", "$FindBin::Bin/../lib/own_zoneinfo.c");

# A day that has not come, in the middle of the series.
my $zoned;
my $change = sql("SELECT (now() + interval '40 days')::date");

sub start_with_zone
{
	my ($rules) = @_;
	open my $source, '>', "$zones/source" or die;
	print $source $rules;
	close $source;
	system_or_bail('/usr/sbin/zic', '-d', $zones, "$zones/source");
	$node->stop;
	local $ENV{LD_PRELOAD} = "$zones/own.so";
	local $ENV{OWN_ZONEINFO} = $zones;
	$node->start;
	return;
}

# Days of the series whose clocks do not show 10:00, by the rules that the server has now.
sub days_at_other_times
{
	my ($title, $span) = @_;
	return sql("SELECT count(*) FILTER (WHERE (starts_at AT TIME ZONE 'Pacific/Efate')::time <> '10:00'), count(*) > 20
		FROM sheet.calendar_entries($zoned, now() + interval '$span', now() + interval '$span' + interval '30 days') WHERE title = '$title'");
}

start_with_zone("Zone Pacific/Efate 11:00 - EFT\n");
$zoned = sql("SELECT sheet.create_calendar('zoned', 'Pacific/Efate', $uid[0])");
sql(qq{SELECT sheet.set_range($zoned, 'A2', (SELECT ARRAY[ARRAY['ever', d, '1 h', 'FREQ=DAILY', 'p1', '', ''], ARRAY['single', d2, '1 h', '', 'p1', '', '15 min'],
	ARRAY['counted', d, '1 h', 'FREQ=DAILY;COUNT=200', 'p1', '', ''], ARRAY['other', d, '1 h', 'FREQ=DAILY', 'p1', '', '']]
	FROM (SELECT (now() - interval '60 days')::date || ' 10:00' AS d, date '$change' + 5 || ' 10:00' AS d2) t));
	SELECT sheet.set($zoned, 'H5', 'Pacific/Guam'), sheet.set($zoned, 'I2', date '$change' + 3 || ' 10:00')});
my $all = "SELECT count(*) = 4 FROM sheet.series WHERE sheet_id = $zoned AND expanded_to >= now() + interval '20 months' AND until_at = 'infinity'";
ok($node->poll_query_until('postgres', $all), 'series of a zone are expanded');
my $lines = q{SELECT string_agg(format('%s %s', o.series_id, o.starts_at), ', ' ORDER BY 1) FROM sheet.occurrence o JOIN sheet.series s USING (series_id) WHERE s.sheet_id = } . $zoned;
my $past = sql("$lines AND o.starts_at < now()");
my $elsewhere = sql("$lines AND s.zone = 'Pacific/Guam'");
my $until = sql("SELECT to_char(date '$change', 'YYYY Mon DD')");
start_with_zone("Zone Pacific/Efate 11:00 - EFT $until\n 12:00 - EFST\n");
# Of 30 days without the exception; within the hour of the entries, one is under way at the beginning of these days.
like(days_at_other_times('ever', '41 days'), qr/^(29|30)\|t$/, 'new rules of the zone: occurrences are at another time of day');
is(sql("SELECT sheet.check_zones() > 0"), 't', 'calendars are looked at');
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM sheet.series WHERE sheet_id = $zoned AND zone_rules <> sheet.zone_rules(zone))
	AND NOT EXISTS (SELECT FROM sheet.timer WHERE kind = 'calendar' AND at <= now())"), 'until they have followed the rules');
is(days_at_other_times($_, '41 days'), '0|t', "the future of '$_' is right") for qw(ever counted);
is(days_at_other_times('ever', '5 days'), '0|t', 'before and after the change');
is(sql("SELECT starts_at AT TIME ZONE 'Pacific/Efate' = date '$change' + 5 + time '10:00' FROM sheet.calendar_entries($zoned, now(), now() + interval '1 year') WHERE title = 'single'"),
	't', 'and that of a single occurrence');
is(sql("SELECT count(*) FROM sheet.calendar_entries($zoned, now(), now() + interval '60 days')
	WHERE title = 'ever' AND (starts_at AT TIME ZONE 'Pacific/Efate')::date = date '$change' + 3"), '0', 'an exception stays one');
is(sql("$lines AND o.starts_at < now()"), $past, 'the past stays');
is(sql("$lines AND s.zone = 'Pacific/Guam'"), $elsewhere, 'and other zones');
is(sql("SELECT count(*) FROM sheet.occurrence o JOIN sheet.series s USING (series_id) WHERE s.sheet_id = $zoned AND s.rule LIKE '%COUNT%'"), '200', 'as many as before');
ok($node->poll_query_until('postgres', $all), 'all of them');

# ---- the clock ----

$node->stop;
start_with_clock($node);
sql(qq{SELECT sheet.set_range($calendar, 'A400', ARRAY[ARRAY['step', to_char(now() + interval '25 h', 'YYYY-MM-DD HH24:MI:SS'), '5 min', 'FREQ=DAILY;COUNT=3',
	'p1', '', '1 h']])});

sub reminders_come
{
	my ($n, $what) = @_;
	ok($node->poll_query_until('postgres', "SELECT count(*) = $n FROM sheet.outbox WHERE title = 'step'"), $what);
	return;
}
step_clock($node, 86410);
reminders_come(1, 'the clock steps forward by a day: a reminder comes');
step_clock($node, 0);
sql(qq{SELECT sheet.set_range($calendar, 'A401', ARRAY[ARRAY['now', to_char(now() + interval '61 s', 'YYYY-MM-DD HH24:MI:SS'), '5 min', '', 'p1', '', '1 min']])});
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sheet.outbox WHERE title = 'now'"), 'back: the next one that is due comes');
step_clock($node, 2 * 86400 + 10);
reminders_come(2, 'forward again: one more, and none twice');
$node->stop('immediate');
step_clock($node, 3 * 86400 + 10);
start_with_clock($node);
reminders_come(3, 'after a crash, and a step meanwhile, the last one');
is(sql("SELECT count(DISTINCT starts_at) FROM sheet.outbox WHERE title = 'step'"), 3, 'each once');
is(sql("SELECT count(*) FROM sheet.outbox WHERE title = 'step' AND created_at < starts_at - interval '1 h'"), 0, 'none before its time');
$node->stop;

# ---- a crash behind a reminder ----

# Without the wait for the disk, this crash would take the reminder, and the worker would put it again, with another time.
$node = new_server('crash');
$node->append_conf('postgresql.conf', "autovacuum = off\ntimezone = 'UTC'\nwal_writer_delay = 10s\npg_sheet.version_edits = 0\npg_sheet.version_bytes = 0\n");
$node->restart;
sql("SELECT sheet.account_create('p1', NULL, 'x')");
sql(q{SELECT sheet.set_range(sheet.create_calendar('crash', 'UTC', (SELECT uid FROM sheet.account)), 'A2',
	ARRAY[ARRAY['seen', to_char(now() + interval '61 s', 'YYYY-MM-DD HH24:MI:SS'), '5 min', '', 'p1', '', '1 min']])});
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM sheet.outbox'), 'a reminder comes');
my $seen = sql('SELECT created_at FROM sheet.outbox');
$node->stop('immediate');
$node->start;
is(sql('SELECT created_at FROM sheet.outbox'), $seen, 'and is there after a crash');
$node->stop;
done_testing();
