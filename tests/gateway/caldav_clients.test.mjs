/*
 * caldav_clients.test.mjs - calendars in real programs: vdirsyncer with khal, python-caldav, calcurse-caldav and tsdav, each both ways.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { createDAVClient } from 'tsdav';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { post, register } from '../lib/client.mjs';

const run = promisify(execFile);
const there = (program) => fs.existsSync(`/usr/bin/${program}`);
let cluster;
let gateway;
let anna;
let ben;
let id;
const homes = [];

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' }, postgres: { fsync: 'off' } });
	[gateway] = cluster.gateways;
	for (const user of ([anna, ben] = [await register(gateway), await register(gateway)])) {
		user.password = (await post(gateway, '/v2/tokens', { token: user.token, label: 'calendar', scopes: ['edit', 'admin'] })).json.token;
		user.url = `http://127.0.0.1:${gateway.port}/dav/`;
	}
	id = Number(await cluster.psql(`SELECT sheet.create_calendar('Team', 'Europe/Berlin', ${anna.uid})`));
	await cluster.psql(`SELECT sheet.share(${id}, '${ben.username}', 'editor')`);
});
after(async () => {
	await cluster?.stop();
	for (const home of homes) fs.rmSync(home, { recursive: true, force: true });
});

/** A computer of a user: runs a program there, and returns what it has written. */
function computer(files) {
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'pg_sheet-calendar-'));
	homes.push(home);
	for (const [name, content] of Object.entries(files)) {
		fs.mkdirSync(path.join(home, path.dirname(name)), { recursive: true });
		fs.writeFileSync(path.join(home, name), content.replaceAll('HOME', home));
	}
	const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: `${home}/.config`, XDG_DATA_HOME: `${home}/.local/share`, XDG_CACHE_HOME: `${home}/.cache`, TZ: 'Europe/Berlin', LC_ALL: 'C.UTF-8' };
	return async (program, ...args) => {
		try {
			const { stdout } = await run(`/usr/bin/${program}`, args, { env, cwd: home, timeout: 60000 });
			return stdout;
		} catch (error) {
			throw new Error(`${program} ${args.join(' ')}: ${error.message}\n${error.stdout}\n${error.stderr}`);
		}
	};
}

const khalOf = (user) =>
	computer({
		'.config/vdirsyncer/config': `[general]
status_path = "HOME/status/"
[pair team]
a = "files"
b = "server"
collections = ["from b"]
conflict_resolution = "b wins"
[storage files]
type = "filesystem"
path = "HOME/calendars/"
fileext = ".ics"
[storage server]
type = "caldav"
url = "${user.url}"
username = "${user.username}"
password = "${user.password}"
`,
		'.config/khal/config': `[calendars]
[[team]]
path = HOME/calendars/${id}
[locale]
local_timezone = Europe/Berlin
default_timezone = Europe/Berlin
timeformat = %H:%M
dateformat = %Y-%m-%d
longdateformat = %Y-%m-%d
datetimeformat = %Y-%m-%d %H:%M
longdatetimeformat = %Y-%m-%d %H:%M
[default]
default_calendar = team
`,
	});

test('khal and vdirsyncer: two people have one calendar, and a sheet', { skip: !there('vdirsyncer') || !there('khal') }, async () => {
	const [annas, bens] = [khalOf(anna), khalOf(ben)];
	const list = (at) => at('khal', 'list', '--format', '{start-long-full} {title} @{location}', '--day-format', '', '2027-01-04', '14d');
	for (const at of [annas, bens]) {
		await at('bash', '-c', 'yes | vdirsyncer discover');
		await at('vdirsyncer', 'sync');
	}
	await annas('khal', 'new', '--repeat', 'weekly', '--until', '2027-03-01', '--location', 'Room 1', '2027-01-04', '09:00', '09:30', 'Standup', '::', 'Bring coffee');
	await annas('vdirsyncer', 'sync');
	const [row] = await cluster.rows(`SELECT cells - 'uid' AS cells, problem FROM sheet.tasks(${id})`);
	assert.deepEqual([row.cells.title, row.cells.start, row.cells.end, row.cells.place, row.cells.notes, row.problem], ['Standup', '2027-01-04 09:00', '09:30', 'Room 1', 'Bring coffee', null]);
	assert.match(row.cells.repeats, /^FREQ=WEEKLY/);
	await bens('vdirsyncer', 'sync');
	assert.deepEqual((await list(bens)).trim().split('\n'), ['2027-01-04 09:00 Standup @Room 1', '2027-01-11 09:00 Standup @Room 1']);
	// a cell, and an occurrence, in the sheet
	await cluster.psql(`SELECT sheet.set(${id}, t."row", 5, 'Room 2') FROM sheet.tasks(${id}) t`);
	await waitUntil(async () => (await cluster.psql(`SELECT data ~ 'Room 2' FROM sheet.caldav_get(${id})`)) === 't', 'the edit');
	await cluster.psql(`SELECT sheet.change_task(${id}, t.task_uid, '{"Start": "2027-01-11 10:00"}', 'this', '2027-01-11 09:00') FROM sheet.tasks(${id}) t`);
	for (const at of [annas, bens]) {
		await at('vdirsyncer', 'sync');
		assert.deepEqual((await list(at)).trim().split('\n'), ['2027-01-04 09:00 Standup @Room 2', '2027-01-11 10:00 Standup @Room 2']);
	}
	// "this and following" gives two series, without a gap and without doubles
	await cluster.psql(`SELECT sheet.change_task(${id}, t.task_uid, '{"Title": "Later"}', 'following', '2027-01-18 09:00') FROM sheet.tasks(${id}) t WHERE t.instance IS NULL`);
	await bens('vdirsyncer', 'sync');
	const all = (await bens('khal', 'list', '--format', '{start-date-long} {title}', '--day-format', '', '2027-01-04', '70d')).trim().split('\n');
	assert.deepEqual(all, ['2027-01-04 Standup', '2027-01-11 Standup', ...['01-18', '01-25', '02-01', '02-08', '02-15', '02-22'].map((day) => `2027-${day} Later`)]);
	// deleted in the sheet, and by a program
	await cluster.psql(`SELECT sheet.delete_task(${id}, t.task_uid) FROM sheet.tasks(${id}) t WHERE t.title = 'Later'`);
	await bens('vdirsyncer', 'sync');
	assert.ok(!(await bens('khal', 'list', '--format', '{title}', '--day-format', '', '2027-01-04', '70d')).includes('Later'));
	await bens('bash', '-c', `rm "$HOME"/calendars/${id}/*.ics`);
	await bens('khal', 'new', '2027-05-01', 'Holiday');
	await bens('vdirsyncer', 'sync');
	assert.deepEqual(await cluster.rows(`SELECT cells->>'title' AS title, cells->>'start' AS start FROM sheet.tasks(${id})`), [{ title: 'Holiday', start: '2027-05-01' }]);
});

test('python-caldav: searches with expansion, writes, changes and deletes', { skip: !fs.existsSync('/usr/lib/python3/dist-packages/caldav') }, async () => {
	await cluster.psql(`SELECT sheet.delete_task(${id}, t.task_uid) FROM sheet.tasks(${id}) t WHERE t.instance IS NULL; SELECT sheet.add_task(${id}, '{"Title": "Daily", "Start": "2027-06-01 09:00", "End": "1 h", "Repeats": "FREQ=DAILY;COUNT=10"}')`);
	await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.caldav_query(${id}, '2027-06-03', '2027-06-05')`)) === '1', 'the task');
	const script = `
import sys, datetime, caldav
client = caldav.DAVClient(url=sys.argv[1], username=sys.argv[2], password=sys.argv[3])
made = client.principal().make_calendar(name='Made by Python', cal_id='python-1')
made.save_event(dtstart=datetime.datetime(2027, 6, 1, 9), dtend=datetime.datetime(2027, 6, 1, 10), summary='In it')
print(made.url.path.split('/')[-2], [str(e.vobject_instance.vevent.summary.value) for e in client.principal().calendar(cal_id='python-1').events()])
made.delete()
print(sorted(c.name for c in client.principal().calendars()))
calendar = client.principal().calendars()[0]
print(calendar.name)
found = calendar.date_search(datetime.datetime(2027, 6, 3), datetime.datetime(2027, 6, 5), expand=True)
print(sorted(str(c.dtstart.value) for e in found for c in e.vobject_instance.vevent_list))
event = calendar.save_event('''BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:from-python
DTSTAMP:20270101T000000Z
DTSTART:20270701T100000Z
DTEND:20270701T110000Z
SUMMARY:From Python
END:VEVENT
END:VCALENDAR
''')
again = calendar.event_by_uid('from-python')
again.vobject_instance.vevent.summary.value = 'Changed'
again.save()
print(sorted(str(e.vobject_instance.vevent.summary.value) for e in calendar.events()))
calendar.event_by_uid('from-python').delete()
print(len(calendar.events()))
bare = caldav.DAVClient(url=sys.argv[1].split('/dav/')[0], username=sys.argv[2], password=sys.argv[3])
print([c.name for c in bare.principal().calendars()])
`;
	const output = await computer({ 'test.py': script })('python3', 'test.py', anna.url, anna.username, anna.password);
	assert.deepEqual(output.trim().split('\n'), ["python-1 ['In it']", "['Team']", 'Team', "['2027-06-03 07:00:00+00:00', '2027-06-04 07:00:00+00:00']", "['Changed', 'Daily']", '1', "['Team']"]);
});

test('calcurse-caldav: both ways', { skip: !there('calcurse-caldav') || !fs.existsSync('/usr/lib/python3/dist-packages/httplib2') }, async () => {
	const at = computer({
		'.config/calcurse/caldav/config': `[General]
Binary = calcurse
Hostname = 127.0.0.1:${gateway.port}
Path = /dav/u/${anna.username}/${id}/
AuthMethod = basic
InsecureSSL = No
HTTPS = No
SyncFilter = cal
DryRun = No
Verbose = Yes
[Auth]
Username = ${anna.username}
`,
		'.local/share/calcurse/caldav/x': '',
		'new.ics': 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nDTSTART:20270801T100000Z\r\nDURATION:PT1H\r\nSUMMARY:From calcurse\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n',
	});
	const sync = (...args) => at('env', `CALCURSE_CALDAV_PASSWORD=${anna.password}`, '/usr/bin/python3', '/usr/bin/calcurse-caldav', ...args);
	await sync('--init', 'keep-remote');
	assert.match(await at('calcurse', '-d', '06/01/2027'), /Daily/);
	await at('calcurse', '-i', 'new.ics');
	await sync();
	assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.tasks(${id}) WHERE title = 'From calcurse' AND problem IS NULL`), '1');
	await cluster.psql(`SELECT sheet.delete_task(${id}, t.task_uid) FROM sheet.tasks(${id}) t WHERE t.title = 'Daily'`);
	await sync();
	assert.doesNotMatch(await at('calcurse', '-d', '06/01/2027'), /Daily/);
});

test('vdirsyncer makes a calendar of a folder', { skip: !there('vdirsyncer') }, async () => {
	const at = khalOf(anna);
	await at('sed', '-i', 's/collections = .*/collections = [["mine", "work", "work-calendar"]]/', '.config/vdirsyncer/config');
	await at('mkdir', '-p', 'calendars/work');
	await at('bash', '-c', 'yes | vdirsyncer discover');
	assert.deepEqual(await cluster.rows(`SELECT name, address FROM sheet.calendars(${anna.uid}) WHERE name <> 'Team'`), [{ name: 'work-calendar', address: 'work-calendar' }]);
	await at('bash', '-c', 'printf "BEGIN:VCALENDAR\\r\\nVERSION:2.0\\r\\nPRODID:x\\r\\nBEGIN:VEVENT\\r\\nUID:v\\r\\nDTSTART:20270104T080000Z\\r\\nSUMMARY:Filed\\r\\nEND:VEVENT\\r\\nEND:VCALENDAR\\r\\n" >calendars/work/v.ics');
	await at('vdirsyncer', 'sync');
	assert.equal(await cluster.psql(`SELECT string_agg(t.title, ',') FROM sheet.calendars(${anna.uid}) c, sheet.tasks(c.sheet_id) t WHERE c.address = 'work-calendar'`), 'Filed');
});

test('tsdav: finds, makes and lists calendars, writes, synchronizes, answers and deletes', async () => {
	const clientOf = ({ username, password }) =>
		createDAVClient({ serverUrl: `http://127.0.0.1:${gateway.port}/`, credentials: { username, password }, authMethod: 'Basic', defaultAccountType: 'caldav' });
	const [annas, bens] = [await clientOf(anna), await clientOf(ben)];
	const account = await annas.createAccount({ account: { serverUrl: `http://127.0.0.1:${gateway.port}/`, accountType: 'caldav' } });
	assert.equal(new URL(account.homeUrl).pathname, `/dav/u/${anna.username}/`);
	const url = new URL('7E3A6B1C/', account.homeUrl).href;
	const [made] = await annas.makeCalendar({ url, props: { 'd:displayname': 'Made by tsdav', 'ca:calendar-color': '#FF2968FF' } });
	assert.equal(made.status, 201, JSON.stringify(made));
	const find = async (client, name) => (await client.fetchCalendars()).find(({ displayName }) => displayName === name);
	const calendar = await find(annas, 'Made by tsdav');
	assert.deepEqual([calendar.url, calendar.calendarColor, calendar.components], [url, '#ff2968', ['VEVENT']]);
	assert.ok(calendar.reports.includes('syncCollection') && calendar.reports.includes('freeBusyQuery'), String(calendar.reports));
	const meeting = (answer) =>
		`BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:tsdav\r\nBEGIN:VEVENT\r\nUID:t\r\nDTSTAMP:20270101T000000Z\r\nDTSTART:20270104T080000Z\r\nDTEND:20270104T090000Z\r\nSUMMARY:Meeting\r\nATTENDEE;PARTSTAT=ACCEPTED:urn:pg-sheet:account:${anna.username}\r\nATTENDEE;PARTSTAT=${answer}:urn:pg-sheet:account:${ben.username}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n`;
	const { status } = await annas.createCalendarObject({ calendar, filename: 't.ics', iCalString: meeting('NEEDS-ACTION') });
	assert.equal(status, 201);
	const [{ sheet_id: sheet }] = await cluster.rows(`SELECT sheet_id FROM sheet.calendars(${anna.uid}) WHERE name = 'Made by tsdav'`);
	await cluster.psql(`SELECT sheet.share(${sheet}, '${ben.username}', 'viewer')`);
	// ben has it by its number, and answers
	const shared = await find(bens, 'Made by tsdav');
	assert.equal(new URL(shared.url).pathname, `/dav/u/${ben.username}/${sheet}/`);
	const [object] = await bens.fetchCalendarObjects({ calendar: shared });
	assert.match(object.data, /SUMMARY:Meeting/);
	const synced = async (client, known) => client.smartCollectionSync({ collection: { ...known, objectMultiGet: client.calendarMultiGet }, method: 'webdav', detailedResult: true, account });
	const first = await synced(annas, { ...calendar, syncToken: undefined, objects: [] });
	assert.deepEqual(first.objects.created.map((o) => o.url), [`${url}t.ics`]);
	const answered = await bens.updateCalendarObject({ calendarObject: { ...object, data: object.data.replaceAll('NEEDS-ACTION', 'ACCEPTED') } });
	assert.equal(answered.status, 204);
	const second = await synced(annas, { ...first, objects: first.objects.created });
	assert.equal(second.objects.updated.length, 1);
	assert.match(second.objects.updated[0].data.replaceAll(/\r?\n /g, ''), new RegExp(`PARTSTAT=ACCEPTED:urn:pg-sheet:account:${ben.username}`));
	assert.equal(await cluster.psql(`SELECT answer FROM sheet.answer WHERE sheet_id = ${sheet} AND uid = ${ben.uid}`), 'accepted');
	assert.equal((await bens.deleteCalendarObject({ calendarObject: { url: object.url } })).status, 403);
	const busy = await bens.freeBusyQuery({ url: shared.url, timeRange: { start: '2027-01-04T00:00:00Z', end: '2027-01-05T00:00:00Z' } });
	assert.match(JSON.stringify(busy), /20270104T080000Z\/20270104T090000Z/);
	assert.equal((await annas.deleteCalendarObject({ calendarObject: second.objects.updated[0] })).status, 204);
	const third = await synced(annas, { ...second, objects: second.objects.updated });
	assert.deepEqual(third.objects.deleted.map((o) => o.url), [`${url}t.ics`]);
	assert.equal((await annas.deleteObject({ url })).status, 204);
	assert.equal(await find(annas, 'Made by tsdav'), undefined);
});
