/* Calendars over HTTP: tasks, their occurrences and answers, at any gateway, and what is wrong with a request. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, register, request } from '../lib/client.mjs';

let cluster;
let gateway;
let other;
let anna;
let ben;
let eve;

before(async () => {
	cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper', gatewayFlags: { 'default-link-role': 'none' } });
	[gateway, other] = cluster.gateways;
	[anna, ben, eve] = [await register(gateway), await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());

async function send(user, method, path, body, at = gateway) {
	const text = body === undefined ? undefined : JSON.stringify(body);
	const headers = { authorization: `Bearer ${user.token}`, ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }) };
	const answer = await request(at, method, `/v2/calendars${path}`, { headers, body: text });
	return { status: answer.status, ...answer.json, text: answer.text };
}

/** A new calendar of anna's, with ben as an editor. */
async function calendar(zone = 'Europe/Berlin') {
	const { id } = await send(anna, 'POST', '', { name: 'Team', zone });
	await cluster.psql(`SELECT sheet.share(${id}, '${ben.username}', 'editor')`);
	return id;
}
const add = async (id, cells) => (await send(anna, 'POST', `/${id}/tasks`, { cells })).uid;
const entries = (user, id, from = '2031-01-01T00:00:00Z', to = '2031-02-01T00:00:00Z', at = gateway) =>
	send(user, 'GET', `/entries?from=${from}&to=${to}&calendars=${id}`, undefined, at);
/** Any gateway changes the cells; the sheet is open at the one that serves it. */
const openAt = (user, id) => Editor.open(gateway, user, id).catch(() => Editor.open(other, user, id));
/** The worker makes what is later than the next month. */
async function untilStarts(user, id, wanted) {
	let last;
	const starts = async () => (last = (await entries(user, id)).entries.map(({ start }) => start.slice(8, 16)));
	await waitUntil(async () => String(await starts()) === String(wanted), () => `${wanted}, not ${last}`);
}

describe('calendars over HTTP', () => {
	test('a person lists the calendars that are shared, with roles and zones, and no other sheets', async () => {
		const id = await calendar();
		const listed = async (user) => (await send(user, 'GET', '')).calendars.find((found) => found.id === id);
		assert.deepEqual(await listed(anna), { id, name: 'Team', owner: anna.username, role: 'owner', zone: 'Europe/Berlin', colour: null });
		assert.equal((await listed(ben)).role, 'editor');
		assert.equal(await listed(eve), undefined);
		await cluster.psql(`SELECT sheet.create('plain', 10, 10, as_uid => ${eve.uid})`);
		assert.deepEqual((await send(eve, 'GET', '')).calendars, []);
		await cluster.psql(`SELECT sheet.trash(${id}, ${anna.uid})`);
		assert.equal(await listed(anna), undefined);
	});

	test('a task repeats in its zone; one, the following and all are changed and deleted; open sheets see it', async () => {
		const id = await calendar();
		const editor = await openAt(ben, id);
		const uid = await add(id, { title: 'Standup', Start: '2031-01-06 09:00', END: '1 h', Repeats: 'FREQ=DAILY;COUNT=6' });
		await untilStarts(anna, id, ['06T08:00', '07T08:00', '08T08:00', '09T08:00', '10T08:00', '11T08:00']);
		const task = `/${id}/tasks/${uid}`;
		assert.equal((await send(ben, 'PATCH', task, { cells: { Start: '2031-01-07 10:30' }, scope: 'this', instance: '2031-01-07T09:00:00' }, other)).uid, uid);
		const later = await send(ben, 'PATCH', task, { cells: { Start: '2031-01-09 12:00' }, scope: 'following', instance: '2031-01-09T09:00:00' });
		assert.notEqual(later.uid, uid);
		await waitUntil(() => editor.grid().some(([, content]) => content.startsWith('2031-01-09 12:00')), 'the open sheet to have the new row');
		await untilStarts(ben, id, ['06T08:00', '07T09:30', '08T08:00', '09T11:00', '10T11:00', '11T11:00']);
		assert.deepEqual((await send(ben, 'GET', `${task}?instance=2031-01-07T09:00:00`)).own.start, '2031-01-07 10:30');
		assert.equal((await send(ben, 'DELETE', `/${id}/tasks/${later.uid}?scope=this&instance=2031-01-10T12:00:00`)).status, 204);
		assert.equal((await send(ben, 'DELETE', task)).status, 204);
		await untilStarts(anna, id, ['09T11:00', '11T11:00']);
		editor.close();
		assert.equal(await cluster.psql(`SELECT DISTINCT uid FROM sheet.log WHERE sheet_id = ${id} AND new = '2031-01-09 12:00'`), String(ben.uid));
	});

	test('whole days are dates, whatever the zone', async () => {
		const id = await calendar('Pacific/Kiritimati');
		await add(id, { Title: 'Trip', Start: '2031-01-10', End: '2031-01-12' });
		await untilStarts(anna, id, ['10']);
		const [{ start, end, allDay }] = (await entries(anna, id)).entries;
		assert.deepEqual({ start, end, allDay }, { start: '2031-01-10', end: '2031-01-13', allDay: true });
	});

	test('an invited person answers, and sees the entry in the agenda without the calendar', async () => {
		const id = await calendar();
		const uid = await add(id, { Title: 'Lunch', Start: '2031-01-20 12:00', Repeats: 'FREQ=WEEKLY;COUNT=3', Who: `${anna.username}, ${eve.username}` });
		const agenda = async () => (await send(eve, 'GET', '/entries?from=2031-01-01T00:00:00Z&to=2031-02-01T00:00:00Z')).agenda.map(({ answer }) => answer);
		await waitUntil(async () => String(await agenda()) === 'invited,invited', 'both occurrences');
		assert.equal((await entries(eve, id)).status, 403);
		assert.equal((await send(eve, 'GET', `/${id}/tasks/${uid}`)).status, 403);
		assert.equal((await send(eve, 'PUT', `/${id}/answers/${uid}`, { answer: 'accepted' })).status, 204);
		assert.equal((await send(eve, 'PUT', `/${id}/answers/${uid}`, { answer: 'declined', instance: '2031-01-27T12:00:00' }, other)).status, 204);
		assert.deepEqual(await agenda(), ['accepted', 'declined']);
		const persons = async (instance) => (await send(anna, 'GET', `/${id}/tasks/${uid}${instance}`)).persons.find(({ name }) => name === eve.username).answer;
		assert.equal(await persons(''), 'accepted');
		assert.equal(await persons('?instance=2031-01-27T12:00:00'), 'declined');
		assert.deepEqual((await send(eve, 'GET', '/dots?month=2031-01&zone=Asia/Tokyo')).days, ['2031-01-20', '2031-01-27']);
		assert.equal((await send(ben, 'PUT', `/${id}/answers/${uid}`, { answer: 'accepted' })).code, 'no_task');
		assert.equal((await send(eve, 'PUT', `/${id}/answers/${uid}`, { answer: 'perhaps' })).status, 400);
	});

	test('what others have changed since it was read is not replaced', async () => {
		const id = await calendar();
		const uid = await add(id, { Title: 'Lunch', Start: '2031-01-06 12:00', Repeats: 'FREQ=DAILY;COUNT=3' });
		const change = (cells, seen, more = {}) => send(anna, 'PATCH', `/${id}/tasks/${uid}`, { cells, seen, ...more });
		const this7 = { scope: 'this', instance: '2031-01-07T12:00:00' };
		assert.equal((await change({ Title: 'Dinner' }, { Title: 'Lunch', Place: '' })).uid, uid);
		const answer = await change({ Title: 'Tea', Place: 'Here' }, { Title: 'Lunch', Place: '' });
		assert.deepEqual([answer.status, answer.code], [412, 'changed'], answer.text);
		assert.match(answer.data, /Title$/);
		assert.equal((await change({ Title: 'Tea' }, { title: 'Dinner' }, this7)).uid, uid); // the occurrence has no row of its own yet
		assert.equal((await change({ Title: 'Milk' }, { Title: 'Dinner' }, this7)).status, 412); // it has one
		assert.equal((await change({ Title: 'Milk' }, { Title: 'Tea' }, this7)).uid, uid);
		assert.equal((await change({ Title: 'x' }, { Title: 'Tea' })).status, 412);
		assert.equal((await change({ Title: 'x' }, null)).uid, uid);
		for (const seen of ['x', ['x'], 1]) assert.equal((await change({ Title: 'y' }, seen)).status, 400);
		const task = await send(anna, 'GET', `/${id}/tasks/${uid}?instance=2031-01-07T12:00:00`);
		assert.deepEqual([task.cells.title, task.cells.place ?? '', task.own.title], ['x', '', 'Milk']);
	});

	test('a refusal names the column, and nothing is stored', async () => {
		const id = await calendar();
		const good = { Title: 'x', Start: '2031-01-06 09:00' };
		const wrong = [
			[{ Start: 'soon' }, 'start'],
			[{ Start: '' }, 'start'],
			[{ End: '2031-01-05 10:00' }, 'end'],
			[{ Repeats: 'FREQ=HOURLY' }, 'repeats'],
			[{ Reminder: 'early' }, 'reminder'],
			[{ 'Time zone': 'Mars/Base' }, 'zone'],
			[{ Colour: 'red' }, 'column'],
			[{ Who: `${anna.username}, nobody of that name` }, 'who'],
		];
		for (const [cells, code] of wrong) {
			const answer = await send(anna, 'POST', `/${id}/tasks`, { cells: { ...good, ...cells } });
			assert.deepEqual([answer.status, answer.code], [400, code], `${JSON.stringify(cells)} ${answer.text}`);
		}
		assert.equal((await entries(anna, id)).entries.length, 0);
		const many = await add(id, { ...good, Repeats: 'FREQ=DAILY;COUNT=30000' });
		assert.match((await send(anna, 'GET', `/${id}/tasks/${many}`)).problem, /^Repeats: /);
		const uid = await add(id, good);
		const stranger = await send(anna, 'PATCH', `/${id}/tasks/${uid}`, { cells: { Who: 'nobody of that name' } });
		assert.deepEqual([stranger.status, stranger.code, stranger.data], [400, 'who', 'Who: there is no account "nobody of that name"']);
		// an address is of somebody who has no account
		assert.equal((await send(anna, 'PATCH', `/${id}/tasks/${uid}`, { cells: { Who: `somebody@example.org, ${ben.username}` } })).uid, uid);
		const status = async (...request) => (await send(...request)).status;
		for (const list of ['7,', ',7', '7,,8', ',', '99999999999999999999', '0'])
			assert.match((await send(anna, 'GET', `/entries?from=2031-01-01T00:00:00Z&to=2031-02-01T00:00:00Z&calendars=${list}`)).data, /^calendars is a list/, list);
		assert.equal(await status(anna, 'PATCH', `/${id}/tasks/${uid}`, { cells: {}, scope: 'some' }), 400);
		assert.equal(await status(anna, 'PATCH', `/${id}/tasks/${uid}`, { cells: {}, scope: 'this', instance: 'x' }), 400);
		assert.equal(await status(anna, 'PATCH', `/${id}/tasks/${uid}`, { cells: [] }), 400);
		assert.equal(await status(anna, 'PATCH', `/${id}/tasks/none`, { cells: {} }), 404);
		assert.equal(await status(anna, 'GET', `/${id}/tasks/none`), 404);
		assert.equal(await status(eve, 'POST', `/${id}/tasks`, { cells: good }), 403);
		assert.equal(await status(anna, 'GET', '/dots?month=2031-13'), 400);
		assert.equal(await status(anna, 'GET', '/dots?month=soon'), 400);
		assert.equal(await status(anna, 'GET', '/entries?from=2031-01-01'), 400);
		assert.equal(await status(anna, 'GET', '/entries?from=2031-01-01&to=2031-02-01&calendars=1;2'), 400);
		assert.equal(await status(anna, 'POST', '', { name: 'x', zone: 'Mars/Base' }), 400);
		const plain = await cluster.psql(`SELECT sheet.create('plain', 10, 10, as_uid => ${anna.uid})`);
		assert.equal((await send(anna, 'POST', `/${plain}/tasks`, { cells: good })).code, 'no_calendar');
		assert.equal((await send(anna, 'PUT', `/${plain}`)).code, 'no_calendar');
		await cluster.psql(`SELECT sheet.set_range(${plain}, 'A1', '{{Start,Title},{2031-01-03,Made}}')`);
		assert.equal(await status(anna, 'PUT', `/${plain}`), 204);
		await untilStarts(anna, plain, ['03']);
	});
});
