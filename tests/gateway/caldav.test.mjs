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
	// some programs ask the address alone
	assert.equal((await done(401, null, 'PROPFIND', '/')).headers['www-authenticate'], 'Basic realm="pg_sheet"');
	const bare = responses(await propfind(anna, '/', '<current-user-principal/><resourcetype/>', 1));
	assert.deepEqual(bare.map(([href]) => href), ['/', home(anna)]);
	assert.ok(bare[0][1].includes(`<href>${home(anna)}</href>`), bare[0][1]);
	await done(405, anna, 'PUT', '/');
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

test('each resource has what Thunderbird and Apple ask of it', async () => {
	const id = await calendarOf(anna);
	const [C, S] = ['C:', 'S:'];
	const principal = ['resourcetype', 'displayname', 'current-user-principal', 'principal-URL', 'principal-collection-set', 'supported-report-set', `${C}calendar-home-set`, `${C}calendar-user-address-set`];
	const calendar = ['resourcetype', 'displayname', 'owner', 'current-user-principal', 'current-user-privilege-set', 'supported-report-set', 'sync-token', `${C}supported-calendar-component-set`, `${S}getctag`];
	// what they ask, too, and do without
	const more = [`${C}schedule-inbox-URL`, `${C}schedule-outbox-URL`, `${S}dropbox-home-URL`, `${S}email-address-set`, `${S}notification-URL`, 'resource-id', 'acl', `${C}calendar-free-busy-set`, 'quota-used-bytes'];
	for (const [address, names] of [['/dav/', principal], [home(anna), principal], [`${home(anna)}${id}/`, calendar]]) {
		const answer = await propfind(anna, address, [...names, ...more].map((name) => `<${name}/>`).join(''));
		const [[href, text]] = responses(answer);
		assert.equal(href, address);
		const [found, missing] = text.split('<status>HTTP/1.1 200 OK</status>');
		for (const name of names) assert.match(found, new RegExp(`<${name}[ >]`), `${name} of ${address}`);
		for (const name of more) assert.match(missing, new RegExp(`[:<]${name.replace(/^.:/, '')}[ />]`), `${name} of ${address}`);
	}
	const [, listed] = responses(await propfind(anna, home(anna), '<resourcetype/><displayname/><current-user-privilege-set/><C:supported-calendar-component-set/>', 1)).find(([href]) => href === `${home(anna)}${id}/`);
	for (const part of ['<C:calendar/>', '<write/>', '<C:comp name="VEVENT"/>']) assert.ok(listed.includes(part), listed);
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
	assert.match((await done(403, anna, 'REPORT', at, `<C:other-query ${spaces}/>`)).text, /<supported-report\/>/);
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
	// by its e-mail address, which it finds
	await cluster.psql(`UPDATE sheet.account SET email = 'ben@example.org' WHERE uid = ${ben.uid}`);
	assert.match((await propfind(ben, home(ben), '<C:calendar-user-address-set/>')).text, /account:.*<href>mailto:ben@example.org<\/href>/);
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

test('names that programs take for the address of the calendar, or for several names, are refused; none is listed', async () => {
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	await done(201, anna, 'PUT', `${at}known.ics`, event('known', weekly));
	for (const name of ['.', '..', '%2E', '.%2e', '', '/', 'a/b', 'a%2Fb', './', '%2Fx'])
		assert.equal((await done(403, anna, 'PUT', `${at}${name}`, event('new', weekly))).status, 403, name);
	assert.match((await done(403, anna, 'PUT', `${at}.`, event('new', weekly))).text, /<C:valid-calendar-data\/>.*must not be \. or \.\./s);
	for (const name of ['.', '..', '%2e%2E']) await done(403, { ...anna, password: await tokenOf(anna, ['admin']) }, 'MKCALENDAR', `${home(anna)}${name}`);
	assert.equal((await rows(id)).length, 1);
	// as a dump of before has them
	await done(201, anna, 'PUT', `${at}second.ics`, event('second', weekly));
	await cluster.psql(`UPDATE sheet.calendar_object SET name = CASE task_uid WHEN 'known' THEN '.' ELSE 'a/b' END WHERE sheet_id = ${id}`);
	const hrefs = responses(await propfind(anna, at, '<getetag/>', 1)).map(([href]) => href).slice(1);
	assert.equal(hrefs.length, 2);
	for (const href of hrefs) {
		assert.match(href.slice(at.length), /^[0-9a-f-]{36}\.ics$/);
		await done(204, anna, 'DELETE', href);
	}
	assert.deepEqual(await rows(id), []);
});

test('titles, places and persons that look like something else are texts, whoever has written them', async () => {
	const titles = ["'s-Hertogenbosch trip", "'", "''12", '=2+3', '=', '12', '1e5', '+4930', '2027-01-04', '10:30', 'TRUE', "O'Neill", "it's"];
	const id = await calendarOf(anna);
	const at = `${home(anna)}${id}/`;
	const json = async (method, path, body) => {
		const text = JSON.stringify(body);
		const answer = await request(gateway, method, `/v2/calendars/${id}/tasks${path}`, {
			headers: { authorization: `Bearer ${anna.token}`, ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }) },
			body: text,
		});
		assert.ok([200, 201].includes(answer.status), answer.text);
		return answer.json;
	};
	/** The texts that cells show: without the apostrophe that makes them texts. Formulas and dates show something else. */
	const shown = async (column) => {
		const contents = (await cluster.rows(`SELECT r.content FROM sheet.range(${id}, '${column}2:${column}100') r WHERE r.content <> '' ORDER BY r."row"`)).map(({ content }) => content);
		for (const content of contents) assert.ok(!/^(=.|[-+0-9.]|TRUE)/.test(content), content);
		return contents.map((content) => content.replace(/^'/, ''));
	};
	const uids = [];
	for (const title of titles) uids.push((await json('POST', '', { cells: { Title: title, Place: title, Who: anna.username, Notes: title, Start: '2027-01-04 09:00' } })).uid);
	for (const column of ['A', 'F']) assert.deepEqual(await shown(column), titles);
	for (const [n, uid] of uids.entries()) {
		const { cells } = await json('GET', `/${uid}`);
		assert.deepEqual([cells.title, cells.place, cells.notes], [titles[n], titles[n], titles[n]]);
		// as a dialog, and as a program sends back what it has read
		await json('PATCH', `/${uid}`, { cells: { Title: `${titles[n]}!`, Place: '' } });
		await json('PATCH', `/${uid}`, { cells: { Title: titles[n], Place: titles[n] }, seen: { Title: `${titles[n]}!` } });
		const name = await cluster.psql(`SELECT sheet.caldav_name(${id}, '${uid}')`);
		const { text } = await done(200, anna, 'GET', `${at}${name}`);
		assert.ok(text.includes(`SUMMARY:${titles[n]}\r\n`) && text.includes(`LOCATION:${titles[n]}\r\n`), text);
		const before = await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${id}`);
		await done(204, anna, 'PUT', `${at}${name}`, text);
		assert.equal(await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${id}`), before, 'nothing has changed');
		await done(204, anna, 'PUT', `${at}${name}`, text.replace('SUMMARY:', 'SUMMARY:x'));
		await done(204, anna, 'PUT', `${at}${name}`, text);
	}
	for (const column of ['A', 'F']) assert.deepEqual(await shown(column), titles);
	assert.deepEqual((await rows(id)).map(({ title }) => title), titles);
	// from a program, with a UID that looks like a formula
	for (const [n, title] of titles.entries()) await done(201, anna, 'PUT', `${at}${n}.ics`, event(`=${n}`, ['DTSTART:20270104T090000Z', `SUMMARY:${title}`]));
	assert.deepEqual(await shown('A'), [...titles, ...titles]);
	for (const [n, title] of titles.entries()) {
		const { text } = await done(200, anna, 'GET', `${at}${n}.ics`);
		assert.ok(text.includes(`SUMMARY:${title}\r\n`) && text.includes(`UID:=${n}\r\n`), text);
	}
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

test('a calendar is renamed by editors, and has a colour for each account', async () => {
	const id = await calendarOf(anna);
	await cluster.psql(`SELECT sheet.share(${id}, '${ben.username}', 'viewer')`);
	const at = (user) => `${home(user)}${id}/`;
	const apple = 'xmlns:A="http://apple.com/ns/ical/"';
	const patch = (user, set, status = 207) => done(status, user, 'PROPPATCH', at(user), `<propertyupdate ${spaces} ${apple}><set><prop>${set}</prop></set></propertyupdate>`);
	const colourOf = async (user) => /<A:calendar-color>(.*)<\/A:calendar-color>/.exec((await propfind(user, at(user), `<A:calendar-color ${apple}/>`)).text)?.[1];
	assert.match((await patch(anna, '<displayname>Crew</displayname>')).text, /displayname.*200 OK/);
	assert.match((await propfind(anna, at(anna), '<displayname/>')).text, /<displayname>Crew<\/displayname>/);
	assert.match((await patch(ben, '<displayname>Mine</displayname>', 403)).text, /<need-privileges\/>/);
	assert.equal(await colourOf(anna), undefined);
	assert.match((await patch(anna, '<A:calendar-color>#FF2968AA</A:calendar-color><displayname>Team</displayname>')).text, /calendar-color.*200 OK/);
	assert.match((await patch(ben, '<A:calendar-color>#1d5fbf</A:calendar-color>')).text, /200 OK/);
	assert.deepEqual([await colourOf(anna), await colourOf(ben)], ['#ff2968', '#1d5fbf']);
	// nothing of a change is done if a part is refused
	for (const colour of ['red', '#12345', '#1234567', '#gggggg', '<b/>#', 'x'.repeat(5000)])
		assert.match((await patch(anna, `<displayname>No</displayname><A:calendar-color>${colour}</A:calendar-color>`)).text, /displayname.*409 Conflict/, colour);
	assert.match((await patch(anna, '<none xmlns="">x</none>')).text, /<none xmlns=""\/><\/prop><status>HTTP\/1.1 403/);
	const refused = (await patch(anna, '<displayname>No</displayname><C:calendar-description>x</C:calendar-description>')).text;
	assert.match(refused, /displayname[^]*424 Failed Dependency[^]*calendar-description[^]*403 Forbidden/);
	assert.match((await propfind(anna, at(anna), '<displayname/>')).text, /<displayname>Team<\/displayname>/);
	assert.equal(await colourOf(anna), '#ff2968');
	// the page has the same
	const listed = async (user) => (await request(gateway, 'GET', '/v2/calendars', { headers: { authorization: `Bearer ${user.token}` } })).json.calendars.find((c) => c.id === id).colour;
	assert.deepEqual([await listed(anna), await listed(ben)], ['#ff2968', '#1d5fbf']);
	const choose = (colour, status) =>
		request(gateway, 'PATCH', `/v2/calendars/${id}`, { headers: { authorization: `Bearer ${ben.token}`, 'content-type': 'application/json' }, body: JSON.stringify({ colour }) }).then((answer) => assert.equal(answer.status, status, answer.text));
	await choose('#0b6b50', 204);
	assert.equal(await colourOf(ben), '#0b6b50');
	await choose('green', 400);
	await choose(7, 400);
	await choose(null, 204);
	assert.equal(await colourOf(ben), undefined);
	await done(207, anna, 'PROPPATCH', at(anna), `<propertyupdate ${spaces} ${apple}><remove><prop><A:calendar-color/></prop></remove></propertyupdate>`);
	assert.equal(await colourOf(anna), undefined);
});

test('calendars are made, found and deleted by the address that a program has chosen', async () => {
	const user = await register(gateway);
	const maker = { ...user, password: await tokenOf(user, ['edit', 'admin']) };
	user.password = await tokenOf(user);
	const at = `${home(user)}7E3A-work%20%C3%BC/`;
	const zone = '<C:calendar-timezone>BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nTZID:/x/Europe/Berlin\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nEND:VCALENDAR\r\n</C:calendar-timezone>';
	const body = (props) => `<C:mkcalendar ${spaces} xmlns:A="http://apple.com/ns/ical/"><set><prop>${props}</prop></set></C:mkcalendar>`;
	const listed = async () => responses(await propfind(user, home(user), '<displayname/>', 1)).slice(1).map(([href]) => href);
	await done(201, maker, 'MKCALENDAR', at, body(`<displayname>Work &amp; more</displayname>${zone}<A:calendar-color>#FF2968FF</A:calendar-color><A:calendar-order>3</A:calendar-order><C:supported-calendar-component-set><C:comp name="VEVENT"/></C:supported-calendar-component-set>`));
	const [calendar] = await cluster.rows(`SELECT sheet_id, name, zone, colour, owner FROM sheet.calendars(${user.uid})`);
	assert.deepEqual([calendar.name, calendar.zone, calendar.colour, calendar.owner], ['Work & more', 'Europe/Berlin', '#ff2968', user.username]);
	assert.deepEqual(await listed(), [at]);
	// its objects are found by either address
	await done(201, user, 'PUT', `${at}a.ics`, event('a', weekly));
	const etag = (await done(200, user, 'GET', `${at}a.ics`)).headers.etag;
	assert.equal((await done(200, user, 'GET', `${home(user)}${calendar.sheet_id}/a.ics`)).headers.etag, etag);
	assert.deepEqual(responses(await propfind(user, at, '<getetag/>', 1)).map(([href]) => href), [at, `${at}a.ics`]);
	const sync = await report(user, at, 'sync-collection', '<sync-token/><prop><getetag/></prop>');
	assert.deepEqual(responses(sync).map(([href]) => href), [`${at}a.ics`]);
	assert.deepEqual(responses(await report(user, at, 'sync-collection', `<sync-token>${syncToken(sync)}</sync-token><prop><getetag/></prop>`)), []);
	assert.match((await report(user, at, 'C:calendar-multiget', `<prop><C:calendar-data/></prop><href>${at}a.ics</href>`)).text, /SUMMARY:Standup/);
	// another account does not have it
	await done(404, ben, 'PROPFIND', `${home(ben)}7E3A-work%20%C3%BC/`);
	// by MKCOL, without anything: the zone is that of the last calendar
	await done(201, maker, 'MKCOL', `${home(user)}plain/`, `<mkcol ${spaces}><set><prop><resourcetype><collection/><C:calendar/></resourcetype></prop></set></mkcol>`);
	assert.deepEqual(await cluster.rows(`SELECT name, zone FROM sheet.calendars(${user.uid}) WHERE address = 'plain'`), [{ name: 'plain', zone: 'Europe/Berlin' }]);
	await done(201, maker, 'MKCALENDAR', `${home(user)}bare`);
	// refused, and nothing is made
	const before = await listed();
	const cases = [
		['there is one', at, body(''), 405, 'resource-must-be-null'],
		['there is one, by its number', `${home(user)}${calendar.sheet_id}/`, body(''), 405, 'resource-must-be-null'],
		['the home', home(user), body(''), 405, 'resource-must-be-null'],
		['a number', `${home(user)}987654321/`, body(''), 403, 'calendar-collection-location-ok'],
		['a calendar in a calendar', `${at}inner/`, body(''), 403, 'calendar-collection-location-ok'],
		['a slash', `${home(user)}a%2Fb/`, body(''), 403, 'calendar-collection-location-ok'],
		['a long name', `${home(user)}${'x'.repeat(300)}/`, body(''), 403, 'calendar-collection-location-ok'],
		['another home', `${home(ben)}mine/`, body(''), 403, 'calendar-collection-location-ok'],
		['todos', `${home(user)}new/`, body('<C:supported-calendar-component-set><C:comp name="VEVENT"/><C:comp name="VTODO"/></C:supported-calendar-component-set>'), 403, 'supported-calendar-component'],
		['no zone', `${home(user)}new/`, body('<C:calendar-timezone>Europe/Berlin BEGIN:</C:calendar-timezone>'), 403, 'valid-calendar-data'],
		['an unknown zone', `${home(user)}new/`, body(zone.replace('/x/Europe/Berlin', 'Mars/Phobos')), 403, 'valid-calendar-data'],
		['an unknown name of a zone', `${home(user)}new/`, body('<C:calendar-timezone-id>Mars/Phobos</C:calendar-timezone-id>'), 403, 'initialize-calendar-collection'],
		['a colour', `${home(user)}new/`, body('<A:calendar-color>red</A:calendar-color>'), 403, 'initialize-calendar-collection'],
		['a name of nothing visible', `${home(user)}new/`, body('<displayname>a\u202eb</displayname>'), 403, 'initialize-calendar-collection'],
	];
	for (const [what, address, text, status, element] of cases) {
		const answer = await done(status, maker, 'MKCALENDAR', address, text);
		assert.match(answer.text, new RegExp(`<(C:)?${element}/>`), `${what}: ${answer.text}`);
	}
	assert.match((await done(403, maker, 'MKCOL', `${home(user)}new/`)).text, /<valid-resourcetype\/>/);
	for (const method of ['MKCOL', 'MKCALENDAR']) await done(400, maker, method, `${home(user)}new/`, `<propfind ${spaces}/>`);
	await done(400, maker, 'MKCALENDAR', `${home(user)}a%01b/`, body(''));
	await done(403, user, 'MKCALENDAR', `${home(user)}new/`, body(''));
	assert.deepEqual(await listed(), before);
	assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.sheet WHERE owner = ${user.uid}`), '3');
	// two at once: one of them
	const twice = await Promise.all([1, 2].map(() => dav(maker, 'MKCALENDAR', `${home(user)}twice/`)));
	assert.deepEqual(twice.map(({ status }) => status).sort(), [201, 405]);
	// in the trash, its address is free again
	assert.match((await done(403, user, 'DELETE', at)).text, /<need-privileges\/>/);
	await cluster.psql(`SELECT sheet.share(${calendar.sheet_id}, '${ben.username}', 'editor')`);
	assert.match((await done(403, { ...ben, password: await tokenOf(ben, ['edit', 'admin']) }, 'DELETE', `${home(ben)}${calendar.sheet_id}/`)).text, /<need-privileges\/>/);
	await done(204, maker, 'DELETE', at);
	await done(410, user, 'PROPFIND', at);
	assert.equal(await cluster.psql(`SELECT trashed_at IS NOT NULL FROM sheet.sheet WHERE sheet_id = ${calendar.sheet_id}`), 't');
	await done(201, maker, 'MKCALENDAR', at);
	assert.deepEqual(responses(await propfind(user, at, '<getetag/>', 1)).map(([href]) => href), [at], 'it is another one');
	await done(404, maker, 'DELETE', `${home(user)}none/`);
});

test('when a calendar is busy', async () => {
	const id = await calendarOf(anna);
	await cluster.psql(`SELECT sheet.share(${id}, '${ben.username}', 'viewer')`);
	const at = (user) => `${home(user)}${id}/`;
	const put = (uid, lines) => done(201, anna, 'PUT', `${at(anna)}${uid}.ics`, event(uid, lines));
	await put('a', weekly);
	await put('b', ['DTSTART:20270104T081000Z', 'DTEND:20270104T090000Z']);
	await put('c', ['DTSTART:20270105T081000Z', 'DTEND:20270105T090000Z', 'TRANSP:TRANSPARENT']);
	await put('d', ['DTSTART:20270106T081000Z', 'DTEND:20270106T090000Z', 'STATUS:TENTATIVE']);
	await put('e', ['DTSTART:20270107T090000Z', 'DTEND:20270107T100000Z', 'STATUS:CANCELLED']);
	await put('f', ['DTSTART;VALUE=DATE:20270109', 'SUMMARY:Fair']);
	const query = (range) => `<C:free-busy-query ${spaces}>${range}</C:free-busy-query>`;
	const answer = await done(200, ben, 'REPORT', at(ben), query('<C:time-range start="20270104T000000Z" end="20270111T081000Z"/>'), { depth: 1 });
	assert.equal(answer.headers['content-type'], 'text/calendar; charset=utf-8');
	assert.deepEqual(answer.text.split('\r\n').filter((line) => /^(FREEBUSY|DTSTART|DTEND|BEGIN)/.test(line)), [
		'BEGIN:VCALENDAR',
		'BEGIN:VFREEBUSY',
		'DTSTART:20270104T000000Z',
		'DTEND:20270111T081000Z',
		'FREEBUSY;FBTYPE=BUSY:20270104T080000Z/20270104T090000Z',
		'FREEBUSY;FBTYPE=BUSY:20270107T080000Z/20270107T081500Z',
		'FREEBUSY;FBTYPE=BUSY:20270108T230000Z/20270109T230000Z',
		'FREEBUSY;FBTYPE=BUSY:20270111T080000Z/20270111T081000Z',
		'FREEBUSY;FBTYPE=BUSY-TENTATIVE:20270106T081000Z/20270106T090000Z',
	]);
	assert.doesNotMatch(answer.text, /Standup|Fair/);
	for (const range of ['', '<C:time-range start="20270104T000000Z"/>', '<C:time-range start="x" end="20270111T081000Z"/>', '<C:time-range start="20270111T000000Z" end="20270104T000000Z"/>'])
		await done(400, ben, 'REPORT', at(ben), query(range));
	const eve = await register(gateway);
	eve.password = await tokenOf(eve);
	await done(403, eve, 'REPORT', at(eve), query('<C:time-range start="20270104T000000Z" end="20270111T081000Z"/>'));
	assert.match((await propfind(anna, at(anna), '<supported-report-set/>')).text, /free-busy-query/);
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
