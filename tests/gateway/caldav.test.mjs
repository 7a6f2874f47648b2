/*
 * caldav.test.mjs - calendars over HTTP: the requests that calendar programs send, one by one; what is refused, with nothing
 * stored; and the feed.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, PsqlSession, waitUntil } from '../lib/cluster.mjs';
import { post, register, request } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let ben;

const tokenOf = async (user, scopes = ['edit']) => {
	const answer = await post(gateway, '/v2/tokens', { token: user.token, label: scopes.join(), scopes });
	assert.equal(answer.status, 201, answer.text);
	return answer.json.token;
};
before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' }, postgres: { fsync: 'off' } });
	[gateway] = cluster.gateways;
	for (const user of ([anna, ben] = [await register(gateway), await register(gateway)])) user.password = await tokenOf(user);
});
after(() => cluster?.stop());

const calendarOf = async (user, name = 'Team', zone = 'Europe/Berlin') => Number(await cluster.psql(`SELECT sheet.create_calendar('${name}', '${zone}', ${user.uid})`));
const home = (user) => `/dav/u/${user.username}/`;
const dav = (user, method, address, body, headers = {}) =>
	request(gateway, method, address, {
		headers: {
			...(user ? { authorization: `Basic ${Buffer.from(`${user.username}:${user.password}`).toString('base64')}` } : {}),
			...(body === undefined ? {} : { 'content-type': method === 'PUT' ? 'text/calendar' : 'application/xml', 'content-length': Buffer.byteLength(body) }),
			...headers,
		},
		body,
	});
const done = async (status, ...args) => {
	const answer = await dav(...args);
	assert.equal(answer.status, status, `${args[1]} ${args[2]}: ${answer.text}`);
	return answer;
};
const spaces = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:S="http://calendarserver.org/ns/"';
const propfind = (user, address, properties, depth = 0) =>
	done(207, user, 'PROPFIND', address, properties === null ? undefined : `<propfind ${spaces}><prop>${properties}</prop></propfind>`, { depth });
const report = (user, address, name, content, depth = 1) => done(207, user, 'REPORT', address, `<${name} ${spaces}>${content}</${name}>`, { depth });
/** The responses of a multistatus: [href, text]. */
const responses = ({ text }) => [...text.matchAll(/<response><href>(.*?)<\/href>(.*?)<\/response>/gs)].map(([, href, rest]) => [href, rest]);
const dataOf = (text) => /<C:calendar-data>(.*?)<\/C:calendar-data>/s.exec(text)?.[1].replaceAll('&#13;', '').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
const etagOf = (text) => /<getetag>(.*?)<\/getetag>/.exec(text)?.[1].replaceAll('&quot;', '"');
const syncToken = ({ text }) => /<sync-token>(.*?)<\/sync-token>/.exec(text)[1];
const event = (uid, lines, extra = '') =>
	`BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\n${extra}BEGIN:VEVENT\r\nUID:${uid}\r\nDTSTAMP:20270101T000000Z\r\n${lines.join('\r\n')}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n`;
const weekly = ['DTSTART;TZID=Europe/Berlin:20270104T090000', 'DTEND;TZID=Europe/Berlin:20270104T091500', 'RRULE:FREQ=WEEKLY;BYDAY=MO,TH', 'SUMMARY:Standup'];
const rows = async (id) => JSON.parse(await cluster.psql(`SELECT coalesce(json_agg(t.cells - 'uid' ORDER BY t."row"), '[]') FROM sheet.tasks(${id}) t`));

test('a program finds its calendars', async () => {
	for (const method of ['GET', 'PROPFIND']) {
		const answer = await done(301, null, method, '/.well-known/caldav');
		assert.equal(answer.headers.location, '/dav/');
	}
	const anybody = await done(401, null, 'PROPFIND', '/dav/', undefined, { depth: 0 });
	assert.equal(anybody.headers['www-authenticate'], 'Basic realm="pg_sheet"');
	await done(401, { ...anna, password: 'pgs_wrong' }, 'PROPFIND', '/dav/');
	const options = await done(204, null, 'OPTIONS', '/dav/');
	assert.match(options.headers.dav, /calendar-access/);
	assert.match(options.headers.allow, /PROPFIND.*REPORT/);
	const id = await calendarOf(anna, 'Team & <friends>');
	assert.ok(responses(await propfind(anna, '/dav/', '<current-user-principal/>'))[0][1].includes(`<href>${home(anna)}</href>`));
	assert.ok(responses(await propfind(anna, home(anna), '<C:calendar-home-set/>'))[0][1].includes(`<href>${home(anna)}</href>`));
	const listed = responses(await propfind(anna, home(anna), '<resourcetype/><displayname/><X:other xmlns:X="urn:x"/>', 1));
	assert.deepEqual(listed.map(([href]) => href), [home(anna), `${home(anna)}${id}/`]);
	assert.ok(listed[1][1].includes('<C:calendar/>') && listed[1][1].includes('Team &amp; &lt;friends&gt;') && /other.*404/.test(listed[1][1]), listed[1][1]);
	assert.ok(responses(await propfind(anna, `${home(anna)}${id}/`, null))[0][1].includes('<displayname>'), 'all properties');
	await done(404, ben, 'PROPFIND', home(anna));
	for (const address of [`${home(ben)}${id}/`, `${home(ben)}999999/`]) assert.ok([403, 404].includes((await dav(ben, 'PROPFIND', address)).status), address);
	await done(403, ben, 'PUT', `${home(ben)}${id}/x.ics`, event('x', weekly));
	const answer = await dav(anna, 'POST', '/dav/');
	assert.equal(answer.status, 405);
});

test('objects are written, read, changed and deleted, and are rows of the sheet', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	const kept = ['CLASS:PRIVATE', 'X-CUSTOM;X-P=1:a; b', 'CATEGORIES:one,two', 'LOCATION:Room 1', 'DESCRIPTION:first line\\nsecond'];
	const alarm = ['BEGIN:VALARM', 'ACTION:DISPLAY', 'DESCRIPTION:Soon', 'TRIGGER:-PT10M', 'X-MOZ:1', 'END:VALARM'];
	await done(201, anna, 'PUT', `${at}standup%201.ics`, event('a/1 ü', [...weekly, ...kept, ...alarm]), { 'if-none-match': '*' });
	assert.deepEqual(await rows(id), [
		{ title: 'Standup', start: '2027-01-04 09:00', end: '09:15', repeats: 'FREQ=WEEKLY;BYDAY=MO,TH', place: 'Room 1', notes: 'first line\nsecond', reminder: '10 min' },
	]);
	await done(412, anna, 'PUT', `${at}standup%201.ics`, event('a/1 ü', weekly), { 'if-none-match': '*' });
	const listed = responses(await propfind(anna, at, '<resourcetype/><getcontenttype/><getetag/>', 1));
	assert.deepEqual(listed.map(([href]) => href), [at, `${at}standup%201.ics`]);
	const etag = etagOf(listed[1][1]);
	const got = responses(await report(anna, at, 'C:calendar-multiget', `<prop><getetag/><C:calendar-data/></prop><href>${at}standup%201.ics</href><href>${at}none.ics</href>`));
	assert.ok(got.find(([href]) => href === `${at}none.ics`)[1].includes('404'));
	const text = dataOf(got.find(([href]) => href !== `${at}none.ics`)[1]);
	for (const line of [...weekly, ...kept.filter((l) => !l.startsWith('CAT')), ...alarm, 'UID:a/1 ü', 'BEGIN:VTIMEZONE', 'TZID:Europe/Berlin', 'CATEGORIES:one', 'CATEGORIES:two'])
		assert.ok(text.includes(`\n${line}\n`), `${line}\n${text}`);
	const plain = await done(200, anna, 'GET', `${at}standup%201.ics`);
	assert.equal(plain.headers.etag, etag);
	assert.equal(plain.text.replaceAll('\r', ''), text);
	await done(304, anna, 'GET', `${at}standup%201.ics`, undefined, { 'if-none-match': etag });
	// what it has given is written back: nothing changes
	await done(204, anna, 'PUT', `${at}standup%201.ics`, plain.text, { 'if-match': etag });
	assert.equal((await done(200, anna, 'GET', `${at}standup%201.ics`)).headers.etag, etag);
	// an exception and a changed occurrence
	const changed = event('a/1 ü', [...weekly, 'EXDATE;TZID=Europe/Berlin:20270107T090000', 'END:VEVENT', 'BEGIN:VEVENT', 'UID:a/1 ü', 'RECURRENCE-ID:20270111T080000Z', 'DTSTART;TZID=Europe/Berlin:20270111T100000', 'DURATION:PT1H', 'SUMMARY:Late']);
	await done(412, anna, 'PUT', `${at}standup%201.ics`, changed, { 'if-match': '"1"' });
	await done(204, anna, 'PUT', `${at}standup%201.ics`, changed, { 'if-match': etag });
	const starts = async () => JSON.parse(await cluster.psql(`SELECT json_agg(e.title || ' ' || e.starts_at::timestamptz AT TIME ZONE 'UTC' ORDER BY e.starts_at) FROM sheet.calendar_entries(${id}, '2027-01-01', '2027-01-16') e`));
	assert.deepEqual(await starts(), ['Standup 2027-01-04 08:00:00', 'Late 2027-01-11 09:00:00', 'Standup 2027-01-14 08:00:00']);
	const both = await done(200, anna, 'GET', `${at}standup%201.ics`);
	assert.ok(both.text.includes('RECURRENCE-ID;TZID=Europe/Berlin:20270111T090000') && both.text.includes('EXDATE;TZID=Europe/Berlin:20270107T090000'), both.text);
	assert.notEqual(both.headers.etag, etag);
	// the occurrence is as the others again
	await done(204, anna, 'PUT', `${at}standup%201.ics`, event('a/1 ü', weekly));
	assert.equal((await rows(id)).length, 1);
	await done(412, anna, 'DELETE', `${at}standup%201.ics`, undefined, { 'if-match': etag });
	await done(204, anna, 'DELETE', `${at}standup%201.ics`);
	assert.deepEqual(await rows(id), []);
	await done(404, anna, 'GET', `${at}standup%201.ics`);
	await done(404, anna, 'DELETE', `${at}standup%201.ics`);
});

test('queries by time, with expansion', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	await done(201, anna, 'PUT', `${at}w.ics`, event('w', [...weekly, 'EXDATE;TZID=Europe/Berlin:20270107T090000']));
	await done(201, anna, 'PUT', `${at}d.ics`, event('d', ['DTSTART;VALUE=DATE:20270105', 'DTEND;VALUE=DATE:20270107', 'SUMMARY:Fair']));
	const query = (filter, data = '<C:calendar-data/>') => report(anna, at, 'C:calendar-query', `<prop><getetag/>${data}</prop><C:filter><C:comp-filter name="VCALENDAR">${filter}</C:comp-filter></C:filter>`);
	const names = async (filter, data) => responses(await query(filter, data)).map(([href]) => href.slice(at.length)).sort();
	const span = (start, end) => `<C:comp-filter name="VEVENT"><C:time-range ${start ? `start="${start}"` : ''} ${end ? `end="${end}"` : ''}/></C:comp-filter>`;
	assert.deepEqual(await names(''), ['d.ics', 'w.ics']);
	assert.deepEqual(await names('<C:comp-filter name="VTODO"/>'), []);
	assert.deepEqual(await names(span('20270106T000000Z', '20270107T000000Z')), ['d.ics']);
	assert.deepEqual(await names(span('20270107T000000Z', '20270108T000000Z'), ''), [], 'an exception');
	assert.deepEqual(await names(span('20270111T081400Z', '20270111T081500Z')), ['w.ics']);
	assert.deepEqual(await names(span('20270201T000000Z')), ['w.ics']);
	assert.deepEqual(await names(span(undefined, '20270104T080000Z')), []);
	assert.deepEqual(await names('<C:comp-filter name="VEVENT"><C:prop-filter name="UID"><C:text-match>d</C:text-match></C:prop-filter></C:comp-filter>'), ['d.ics']);
	const expanded = responses(await query(span('20270104T000000Z', '20270115T000000Z'), '<C:calendar-data><C:expand start="20270104T000000Z" end="20270115T000000Z"/></C:calendar-data>'));
	const events = expanded.flatMap(([, text]) => dataOf(text).split('BEGIN:VEVENT').slice(1));
	assert.ok(!expanded.some(([, text]) => text.includes('RRULE')));
	assert.deepEqual(events.map((text) => /\nDTSTART.*:(.*)\n/.exec(text)[1]).sort(), ['20270104T080000Z', '20270105', '20270111T080000Z', '20270114T080000Z']);
	assert.match(events.find((text) => text.includes('DTSTART:20270111T080000Z')), /RECURRENCE-ID:20270111T080000Z/);
	for (const filter of [span('2027', '2028'), span('20280101T000000Z', '20270101T000000Z')])
		assert.match((await done(403, anna, 'REPORT', at, `<C:calendar-query ${spaces}><prop/><C:filter><C:comp-filter name="VCALENDAR">${filter}</C:comp-filter></C:filter></C:calendar-query>`)).text, /<C:valid-filter\/>/);
	assert.match((await done(403, anna, 'REPORT', at, `<C:free-busy-query ${spaces}/>`)).text, /<supported-report\/>/);
});

test('what has changed since a token', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	const sync = (token, status = 207) => done(status, anna, 'REPORT', at, `<sync-collection ${spaces}><sync-token>${token}</sync-token><sync-level>1</sync-level><prop><getetag/><C:calendar-data/></prop></sync-collection>`);
	await done(201, anna, 'PUT', `${at}a.ics`, event('a', weekly));
	await done(201, anna, 'PUT', `${at}b.ics`, event('b', weekly));
	const first = await sync('');
	assert.deepEqual(responses(first).map(([href]) => href).sort(), [`${at}a.ics`, `${at}b.ics`]);
	assert.deepEqual(responses(await sync(syncToken(first))), []);
	await done(204, anna, 'DELETE', `${at}a.ics`);
	// a cell in the sheet, and a new row there
	await cluster.psql(`SELECT sheet.set(${id}, t."row", 0, 'Renamed') FROM sheet.tasks(${id}) t; SELECT sheet.add_task(${id}, '{"Title": "By SQL", "Start": "2027-02-01 10:00", "Who": "${anna.username}, ${ben.username}"}')`);
	let changes;
	await waitUntil(async () => responses((changes = await sync(syncToken(first)))).length === 3 && changes.text.includes('Renamed'), 'the changes');
	const of = Object.fromEntries(responses(changes));
	assert.match(of[`${at}a.ics`], /<status>HTTP\/1.1 404/);
	assert.match(dataOf(of[`${at}b.ics`]), /SUMMARY:Renamed/);
	const added = dataOf(responses(changes).find(([href]) => !/\/[ab]\.ics$/.test(href))[1]);
	assert.ok(added.replaceAll('\n ', '').includes(`ATTENDEE;CN=${ben.username};PARTSTAT=NEEDS-ACTION:urn:pg-sheet:account:${ben.username}`), added);
	// an answer is a change
	const [task] = await cluster.rows(`SELECT task_uid FROM sheet.tasks(${id}) WHERE title = 'By SQL'`);
	await cluster.psql(`SELECT sheet.answer(${id}, '${task.task_uid}', 'accepted', NULL, ${ben.uid})`);
	let answered;
	await waitUntil(async () => responses((answered = await sync(syncToken(changes)))).length === 1, 'the answer');
	assert.match(dataOf(responses(answered)[0][1]).replaceAll('\n ', ''), new RegExp(`PARTSTAT=ACCEPTED:urn:pg-sheet:account:${ben.username}`));
	for (const token of ['x', `urn:pg-sheet:sync:${id}:999999999`, `urn:pg-sheet:sync:${id}:0`]) assert.match((await sync(token, 403)).text, /<valid-sync-token\/>/);
});

test('a program answers for its account, with what it writes', async () => {
	const id = await calendarOf(anna);
	await cluster.psql(`SELECT sheet.share(${id}, '${ben.username}', 'viewer')`);
	const object = (who, lines = []) => event('m', [...weekly, ...Object.entries(who).map(([name, answer]) => `ATTENDEE;PARTSTAT=${answer}:urn:pg-sheet:account:${name}`), ...lines]);
	const [annas, bens] = [anna, ben].map((user) => `${home(user)}${id}/m.ics`);
	const answers = async (address = bens) =>
		Object.fromEntries([...(await done(200, ben, 'GET', address)).text.replaceAll('\r\n ', '').matchAll(/PARTSTAT=([^:;]*).*:urn:pg-sheet:account:(.*)\r/g)].map(([, answer, name]) => [name, answer]));
	await done(201, anna, 'PUT', annas, object({ [anna.username]: 'ACCEPTED', [ben.username]: 'ACCEPTED' }));
	assert.deepEqual(await answers(), { [anna.username]: 'ACCEPTED', [ben.username]: 'NEEDS-ACTION' }, 'only its own');
	const { headers: before } = await done(200, ben, 'GET', bens);
	const sync = (token) => report(anna, `${home(anna)}${id}/`, 'sync-collection', `<sync-token>${token}</sync-token><prop><getetag/></prop>`);
	const token = syncToken(await sync(''));
	await done(204, ben, 'PUT', bens, object({ [anna.username]: 'DECLINED', [ben.username]: 'TENTATIVE' }), { 'if-match': before.etag });
	assert.deepEqual(await answers(), { [anna.username]: 'ACCEPTED', [ben.username]: 'TENTATIVE' });
	const after = (await done(200, ben, 'GET', bens)).headers.etag;
	assert.notEqual(after, before.etag);
	assert.deepEqual(responses(await sync(token)).map(([href, text]) => [href, etagOf(text)]), [[annas, after]]);
	await done(412, ben, 'PUT', bens, object({ [anna.username]: 'ACCEPTED', [ben.username]: 'ACCEPTED' }), { 'if-match': before.etag });
	// an occurrence
	const one = ['END:VEVENT', 'BEGIN:VEVENT', 'UID:m', 'RECURRENCE-ID;TZID=Europe/Berlin:20270107T090000', 'DTSTART;TZID=Europe/Berlin:20270107T090000', 'DTEND;TZID=Europe/Berlin:20270107T091500', 'SUMMARY:Standup'];
	const persons = [`ATTENDEE:urn:pg-sheet:account:${anna.username}`, `ATTENDEE;PARTSTAT=DECLINED:urn:pg-sheet:account:${ben.username}`];
	await done(204, ben, 'PUT', bens, object({ [anna.username]: 'ACCEPTED', [ben.username]: 'TENTATIVE' }, [...one, ...persons]));
	const own = (await done(200, ben, 'GET', bens)).text.replaceAll('\r\n ', '').split('BEGIN:VEVENT')[2];
	assert.ok(own.includes('RECURRENCE-ID;TZID=Europe/Berlin:20270107T090000') && own.includes(`PARTSTAT=DECLINED:urn:pg-sheet:account:${ben.username}`), own);
	assert.deepEqual(await cluster.rows(`SELECT a.starts_at::date::text AS day, a.answer FROM sheet.agenda(${ben.uid}, '2027-01-04', '2027-01-12') a WHERE a.sheet_id = ${id}`), [
		{ day: '2027-01-04', answer: 'tentative' },
		{ day: '2027-01-07', answer: 'declined' },
		{ day: '2027-01-11', answer: 'tentative' },
	]);
	assert.equal((await rows(id)).length, 1);
	// a viewer changes nothing else
	const seq = await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${id}`);
	const all = { [anna.username]: 'ACCEPTED', [ben.username]: 'ACCEPTED' };
	for (const [what, body] of Object.entries({
		'the title': object(all).replace('SUMMARY:Standup', 'SUMMARY:Mine'),
		'a person': object({ ...all, other: 'ACCEPTED' }),
		'an occurrence': object(all, [...one.map((line) => line.replace('DTSTART;TZID=Europe/Berlin:20270107T09', 'DTSTART;TZID=Europe/Berlin:20270107T08')), ...persons]),
		'the object': event('m', weekly),
	}))
		assert.match((await done(403, ben, 'PUT', bens, body)).text, /<need-privileges\/>/, what);
	assert.match((await done(403, ben, 'PUT', bens.replace('m.ics', 'n.ics'), object(all).replace('UID:m', 'UID:n'))).text, /<need-privileges\/>/);
	await done(403, { ...ben, password: await tokenOf(ben, ['read']) }, 'PUT', bens, object(all));
	assert.equal(await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${id}`), seq);
	assert.equal((await answers())[ben.username], 'DECLINED', 'of the occurrence, the last that is named');
	// by its e-mail address
	await cluster.psql(`UPDATE sheet.account SET email = 'ben@example.org' WHERE uid = ${ben.uid}`);
	await done(204, ben, 'PUT', bens, object(all).replace(`urn:pg-sheet:account:${ben.username}`, 'MAILTO:Ben@example.org'));
	assert.equal(await cluster.psql(`SELECT answer FROM sheet.answer WHERE sheet_id = ${id} AND uid = ${ben.uid} AND instance = '-infinity'`), 'accepted');
	// one who is not a person of the task, and one who has no role
	const eve = await register(gateway);
	eve.password = await tokenOf(eve);
	await done(403, eve, 'PUT', `${home(eve)}${id}/m.ics`, object({ ...all, [eve.username]: 'ACCEPTED' }));
	await cluster.psql(`SELECT sheet.share(${id}, '${eve.username}', 'viewer')`);
	await done(204, eve, 'PUT', `${home(eve)}${id}/m.ics`, object(all));
	assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.answer WHERE sheet_id = ${id} AND uid = ${eve.uid}`), '0');
});

test('what a calendar cannot have is refused, and nothing is stored', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	await done(201, anna, 'PUT', `${at}known.ics`, event('known', weekly));
	const before = await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${id}`);
	const start = 'DTSTART:20270104T090000Z';
	const cases = [
		['no calendar', 'hello', 403, 'valid-calendar-data'],
		['empty', '', 403, 'valid-calendar-data'],
		['a todo', event('t', [start]).replaceAll('VEVENT', 'VTODO'), 403, 'supported-calendar-component'],
		['no event', 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n', 403, 'valid-calendar-object-resource'],
		['a method', event('m', [start], 'METHOD:REQUEST\r\n'), 403, 'valid-calendar-object-resource'],
		['two UIDs', event('u', [start, 'END:VEVENT', 'BEGIN:VEVENT', 'UID:v', start]), 403, 'valid-calendar-object-resource'],
		['two events', event('u', [start, 'END:VEVENT', 'BEGIN:VEVENT', 'UID:u', start]), 403, 'valid-calendar-object-resource'],
		['the UID of another object', event('known', [start]), 409, 'no-uid-conflict'],
		['no UID', event('', [start]), 403, 'valid-calendar-data'],
		['control characters', event('c', [start, 'SUMMARY:a\x07b']), 403, 'valid-calendar-data'],
		['end before start', event('e', [start, 'DTEND:20270104T080000Z']), 403, 'valid-calendar-data'],
		['a date and a time', event('e', [start, 'DTEND;VALUE=DATE:20270105']), 403, 'valid-calendar-data'],
		['an unknown zone', event('z', ['DTSTART;TZID=Mars/Phobos:20270104T090000']), 403, 'valid-calendar-data'],
		['no such day', event('n', ['DTSTART:20270230T090000Z']), 403, 'valid-calendar-data'],
		['no rule', event('r', [start, 'RRULE:FREQ=NEVER']), 403, 'valid-calendar-data'],
		['a rule by the hour', event('r', [start, 'RRULE:FREQ=HOURLY']), 403, 'valid-calendar-data'],
		['a rule without a time', event('r', [start, 'RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30']), 403, 'valid-calendar-data'],
		['100,000 occurrences', event('r', [start, 'RRULE:FREQ=DAILY;COUNT=100000']), 403, 'valid-calendar-data'],
		['two rules', event('r', [start, 'RRULE:FREQ=DAILY', 'RRULE:FREQ=WEEKLY']), 403, 'valid-calendar-data'],
		['a title that no cell has', event('l', [start, `SUMMARY:${'x'.repeat(200000)}`]), 403, 'valid-calendar-data'],
	];
	for (const [what, body, status, element] of cases) {
		const answer = await done(status, anna, 'PUT', `${at}new.ics`, body);
		assert.ok(answer.text.includes(`:${element}/>`), `${what}: ${answer.text}`);
	}
	assert.match((await done(409, anna, 'PUT', `${at}known.ics`, event('other', [start]))).text, /no-uid-conflict/);
	assert.match((await done(415, anna, 'PUT', `${at}new.ics`, '{}', { 'content-type': 'application/json' })).text, /supported-calendar-data/);
	await done(413, anna, 'PUT', `${at}new.ics`, undefined, { 'content-type': 'text/calendar', 'content-length': 50 << 20, expect: '100-continue' });
	const reader = { ...anna, password: await tokenOf(anna, ['read']) };
	await done(403, reader, 'PUT', `${at}new.ics`, event('new', [start]));
	await done(403, anna, 'PUT', at, event('new', [start]));
	await done(403, anna, 'DELETE', at);
	assert.equal(await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${id}`), before);
	await done(404, anna, 'GET', `${at}new.ics`);
});

test('XML that does harm is refused', async () => {
	const id = await calendarOf(anna);
	const deep = (levels) => `<propfind xmlns="DAV:">${'<prop>'.repeat(levels)}${'</prop>'.repeat(levels)}</propfind>`;
	for (const body of [
		'<propfind',
		'<propfind xmlns="DAV:"></prop>',
		`<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><propfind xmlns="DAV:">&b;</propfind>`,
		'<!DOCTYPE a SYSTEM "file:///etc/passwd"><propfind xmlns="DAV:"/>',
		deep(1000),
		`<propfind xmlns="DAV:"><prop>${'<a/>'.repeat(60000)}</prop></propfind>`,
		'<other xmlns="DAV:"/>',
		'\0',
	])
		await done(400, anna, 'PROPFIND', `${home(anna)}${id}/`, body);
	assert.match((await done(403, anna, 'PROPFIND', home(anna), undefined, { depth: 'infinity' })).text, /propfind-finite-depth/);
	await done(207, anna, 'PROPFIND', `${home(anna)}${id}/`, deep(20));
});

test('a calendar is renamed, and nothing else about it', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	const patch = (set) => done(207, anna, 'PROPPATCH', at, `<propertyupdate ${spaces}><set><prop>${set}</prop></set></propertyupdate>`);
	assert.match((await patch('<displayname>Crew</displayname>')).text, /displayname.*200 OK/);
	assert.match((await propfind(anna, at, '<displayname/>')).text, /<displayname>Crew<\/displayname>/);
	assert.match((await patch('<X:calendar-color xmlns:X="http://apple.com/ns/ical/">#ff0000</X:calendar-color>')).text, /calendar-color.*403 Forbidden/);
	assert.match((await done(403, { ...anna, password: await tokenOf(anna, ['admin']) }, 'MKCALENDAR', `${home(anna)}new/`)).text, /calendar-collection-location-ok/);
});

test('the feed of a link', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	for (const uid of ['a', 'b']) await done(201, anna, 'PUT', `${at}${uid}.ics`, event(uid, weekly));
	const link = async (values = {}) => (await post(gateway, `/v2/sheets/${id}/links`, { token: anna.token, ...values })).json;
	const { key, link: number } = await link();
	const feed = await done(200, null, 'GET', `/cal/${key}.ics`);
	assert.equal(feed.headers['content-type'], 'text/calendar; charset=utf-8');
	assert.equal(feed.text.split('BEGIN:VEVENT').length, 3);
	assert.equal(feed.text.split('BEGIN:VTIMEZONE').length, 2);
	await done(304, null, 'GET', `/cal/${key}.ics`, undefined, { 'if-none-match': feed.headers.etag });
	await cluster.psql(`SELECT sheet.delete_task(${id}, 'a')`);
	assert.equal((await done(200, null, 'GET', `/cal/${key}.ics`, undefined, { 'if-none-match': feed.headers.etag })).text.split('BEGIN:VEVENT').length, 2);
	// Requests of one feed wait for each other, or are refused: other connections for long statements stay free.
	const session = new PsqlSession(cluster);
	await session.query('BEGIN; LOCK TABLE sheet.calendar_object IN ACCESS EXCLUSIVE MODE');
	let refused = 0;
	const flood = Array.from({ length: 10 }, () => dav(null, 'GET', `/cal/${key}.ics`).then(({ status }) => (refused += status === 503)));
	try {
		await waitUntil(() => refused >= 5, 'the requests that may not wait to be refused');
		// The timer's worker may wait, too: it follows the calendar.
		const waits = `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT l.granted AND l.relation = 'sheet.calendar_object'::regclass AND a.backend_type = 'client backend'`;
		assert.ok(Number(await session.query(waits.replace(/\s+/g, ' '))) <= 1);
	} finally {
		await session.close();
		await Promise.all(flood);
	}
	const missing = [`/cal/${'A'.repeat(key.length)}.ics`, `/cal/${key}`, '/cal/x.ics', `/cal/${(await link({ password: 'secret word' })).key}.ics`, `/cal/${(await link({ role: 'editor' })).key}.ics`];
	await cluster.psql(`SELECT sheet.revoke_link(${number})`);
	for (const address of [...missing, `/cal/${key}.ics`]) await done(404, null, 'GET', address);
});
