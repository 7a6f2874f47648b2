/*
 * Protocol v2: locks of ranges. One is granted as a whole, or refused, or waits in the order of the requests; with
 * clients that know only cells, and of v1. tests/unit/test_locks.c holds the table of locks to a model.
 */
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, newSheet, register } from '../lib/client.mjs';
import { RawClient, RefusedError, gridOf, sheetClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;
let lastClient = 0;
const opened = [];

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'lease-seconds': 8 } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});
afterEach(() => {
	for (const client of opened.splice(0)) (client.terminate ?? client.close).call(client);
});

const keep = (client) => (opened.push(client), client);
const raw = async (user, options) => keep(await RawClient.open(gateway, user, fid, { client: ++lastClient, v: 3, ...options }));
const sqlGrid = async () =>
	(await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid}) WHERE content <> ''`))
		.map(({ row, col, content }) => [`${row},${col}`, content])
		.sort(([x], [y]) => (x < y ? -1 : 1));
const set = (row, col, content) => ({ row, col, content });
const change = (kind, at, n) => ({ kind, at, n });
const rect = (row, col, toRow, toCol) => ({ row, col, toRow, toCol });
const lock = (client, range, waits = false, base = 0) => client.send({ t: 'lockRange', ...range, base, wait: waits });
const unlock = (client, range) => client.send({ t: 'unlockRange', ...range });
const heldBy = (client, user, range) => ({ t: 'range', ...range, session: client.hello.session, uid: user.uid });
const free = (range) => ({ t: 'range', ...range, session: 0, uid: 0 });
const blocked = (range, waits, [atRow, atCol], client, user) => ({
	...{ t: 'blocked', ...range, reason: 'locked', waits, atRow, atCol },
	...{ session: client.hello?.session ?? 0, uid: user.uid },
});
const refused = (range, reason) => ({ t: 'blocked', ...range, reason, waits: false, atRow: 0, atCol: 0, session: 0, uid: 0 });
/** What a client has heard of locks since a position, when all that it sent has been handled. */
const heard = async (client, from) => {
	client.send({ t: 'get', id: 77, ...rect(0, 0, 0, 0) });
	await client.next('block', ({ id }) => id === 77);
	return client.messages.slice(from).filter(({ t }) => ['lock', 'denied', 'range', 'blocked'].includes(t));
};
/** Asks for a range that is not free. */
const wait = async (client, range, at, by, user) => {
	lock(client, range, true);
	assert.deepEqual(await client.next('blocked'), blocked(range, true, at, by, user));
};
/** Everybody hears that a client has a range. */
const granted = async (clients, holder, user, range) => {
	for (const client of clients) assert.deepEqual(await client.next('range', ({ session }) => session === holder.hello.session), heldBy(holder, user, range));
};

describe('a range', () => {
	for (const encoding of ['json', 'binary'])
		test(`is locked as a whole or not at all, and all who know ranges are told: ${encoding}`, async () => {
			const [a, b] = [await raw(anna, { encoding }), await raw(ben, { encoding })];
			const range = rect(1, 1, 3, 3);
			lock(a, range);
			for (const client of [a, b]) assert.deepEqual(await client.next('range'), heldBy(a, anna, range));
			const larger = rect(3, 0, 900000, 9);
			lock(b, larger);
			assert.deepEqual(await b.next('blocked'), blocked(larger, false, [3, 1], a, anna));
			lock(b, rect(4, 1, 5, 5));
			assert.deepEqual(await a.next('range'), heldBy(b, ben, rect(4, 1, 5, 5)));
			assert.deepEqual((await raw(ben, { encoding })).hello.ranges, [
				{ ...range, session: a.hello.session, uid: anna.uid },
				{ ...rect(4, 1, 5, 5), session: b.hello.session, uid: ben.uid },
			]);
			unlock(a, range);
			await b.next('range', ({ session }) => session === b.hello.session);
			assert.deepEqual(await b.next('range'), free(range));
			lock(b, rect(0, 0, 3, 9));
			assert.deepEqual(await a.next('range', ({ row, session }) => row === 0 && session > 0), heldBy(b, ben, rect(0, 0, 3, 9)));
		});

	test('refuses the edits and locks of others, and renews with its own', async () => {
		const [a, b, old] = [await raw(anna), await raw(ben), keep(await Editor.open(gateway, ben, fid, { nack: true }))];
		const told = () => old.messages.filter(({ msgType }) => msgType === 'acquire' || msgType === 'release');
		lock(a, rect(1, 1, 3, 3));
		await b.next('range');
		b.op(1, [set(0, 0, 'never'), set(2, 3, 'never')]);
		const { reason, row, col } = await b.next('nack');
		assert.deepEqual([reason, row, col], ['locked', 2, 3]);
		b.op(2, [change('deleteRows', 0, 2)], { nacks: 1 });
		const deleted = await b.next('nack');
		assert.deepEqual([deleted.reason, deleted.row, deleted.col], ['locked', 1, 1]);
		b.send({ t: 'lock', row: 1, col: 1 });
		assert.deepEqual(await b.next('denied'), { t: 'denied', row: 1, col: 1, reason: 'locked' });
		old.acquire(1, 2);
		old.modify(3, 3, 'never');
		// Each waits for the stored content of its cell, so they may come in any order.
		const refused = [];
		while (refused.length < 2) refused.push((await old.next(({ msgType }) => msgType === 'refused')).body);
		assert.deepEqual(refused.map((body) => `${body.row},${body.col} ${body.reason}`).sort(), ['1,2 locked', '3,3 locked']);
		assert.deepEqual(told(), []);
		a.op(1, [set(2, 2, 'mine')]);
		a.send({ t: 'lock', row: 2, col: 2 });
		assert.equal((await b.next('lock')).session, a.hello.session);
		b.op(3, [set(0, 0, 'beside'), set(4, 4, 'it')], { nacks: 2 });
		await b.next('ack');
		assert.deepEqual(await sqlGrid(), [['0,0', 'beside'], ['2,2', 'mine'], ['4,4', 'it']]);
		assert.deepEqual(told().map(({ body }) => body.username), [anna.username], 'v1 hears of cells only');
	});

	test('is not told to clients that know only cells, nor can they ask for one', async () => {
		const [a, old] = [await raw(anna), await raw(ben, { v: 2 })];
		lock(a, rect(1, 1, 3, 3));
		await a.next('range');
		const late = await raw(ben, { v: 2 });
		assert.deepEqual([old.hello.v, late.hello.v, late.hello.ranges, a.hello.v], [2, 2, undefined, 3]);
		a.send({ t: 'lock', row: 7, col: 7 });
		await old.next('lock');
		unlock(a, rect(1, 1, 3, 3));
		await a.next('range');
		assert.deepEqual((await heard(old, 0)).map(({ t }) => t), ['lock']);
		lock(old, rect(5, 5, 6, 6));
		assert.equal((await old.waitClosed()).code, 4400);
	});

	test('is not asked for again and again: more than 64 requests at once close the client', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		a.socket._socket.cork();
		for (let i = 0; i < 2000; i++) lock(a, rect(0, 0, 1, i), true);
		a.socket._socket.uncork();
		assert.equal((await a.waitClosed()).code, 1013);
		lock(b, rect(0, 0, 9, 9));
		await granted([b], b, ben, rect(0, 0, 9, 9));
	});

	test('is refused for each reason', async () => {
		const share = (role) => call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role }, 12);
		await call(gateway, '/sharelink', { token: anna.token, fid, role: null }, 12);
		await share('editor');
		const [a, b] = [await raw(anna), await raw(ben)];
		lock(b, rect(2, 0, 4, 1), true, a.hello.seq + 9);
		assert.deepEqual(await b.next('blocked'), refused(rect(2, 0, 4, 1), 'base'));
		const rows = Array.from({ length: 17 }, (_, row) => rect(row, 0, row, 5));
		for (const range of rows) lock(b, range, true);
		assert.deepEqual(await b.next('blocked'), refused(rows[16], 'busy'));
		lock(b, rows[3]);
		assert.deepEqual(await b.next('range', ({ row }) => row === 3), heldBy(b, ben, rows[3]), 'one renews what one has');
		await wait(a, rows[15], [15, 0], b, ben);
		await share('viewer');
		await b.next('role', ({ role }) => role === 'viewer');
		await granted([a], a, anna, rows[15]);
		lock(b, rect(40, 0, 40, 0));
		assert.deepEqual(await b.next('blocked'), refused(rect(40, 0, 40, 0), 'role'));
	});
});

describe('requests that wait', () => {
	test('are granted in their order; none is overtaken, by ranges or cells', async () => {
		const [a, b, c] = [await raw(anna), await raw(ben), await raw(ben, { encoding: 'binary' })];
		lock(a, rect(5, 5, 6, 6));
		await granted([a, b, c], a, anna, rect(5, 5, 6, 6));
		await wait(b, rect(0, 0, 9, 9), [5, 5], a, anna);
		await wait(c, rect(9, 9, 12, 12), [9, 9], b, ben);
		c.send({ t: 'lock', row: 0, col: 0 });
		assert.deepEqual(await c.next('denied'), { t: 'denied', row: 0, col: 0, reason: 'locked' });
		lock(a, rect(0, 0, 1, 1));
		assert.deepEqual(await a.next('blocked'), blocked(rect(0, 0, 1, 1), false, [0, 0], b, ben));
		const old = keep(await Editor.open(gateway, anna, fid, { nack: true }));
		old.acquire(1, 1);
		assert.equal((await old.next(({ msgType }) => msgType === 'refused')).body.reason, 'locked');
		c.op(1, [set(0, 0, 'edits do not wait')]);
		await c.next('ack');
		a.send({ t: 'lock', row: 20, col: 20 });
		lock(c, rect(20, 0, 22, 9));
		await granted([a, b, c], c, ben, rect(20, 0, 22, 9));
		await wait(b, rect(0, 0, 9, 9), [5, 5], a, anna); // asks again, and keeps its place
		unlock(a, rect(5, 5, 6, 6));
		await granted([a, b, c], b, ben, rect(0, 0, 9, 9));
		assert.deepEqual((await heard(c, c.position)), []);
		unlock(b, rect(0, 0, 9, 9));
		await granted([a, b, c], c, ben, rect(9, 9, 12, 12));
	});

	test('end when they are cancelled, and with their connection', async () => {
		const [a, b, c, d] = [await raw(anna), await raw(ben), await raw(ben), await raw(ben)];
		lock(a, rect(0, 0, 0, 0));
		await granted([a], a, anna, rect(0, 0, 0, 0));
		await wait(b, rect(0, 0, 5, 5), [0, 0], a, anna);
		await wait(c, rect(0, 0, 3, 3), [0, 0], a, anna);
		await wait(d, rect(3, 3, 4, 4), [3, 3], b, ben);
		unlock(b, rect(0, 0, 5, 5));
		assert.deepEqual((await heard(b, b.position)).filter(({ t }) => t === 'blocked'), []);
		assert.deepEqual(await heard(d, d.position), [], 'it waits for the next one now');
		c.terminate();
		await granted([a, b, d], d, ben, rect(3, 3, 4, 4));
		a.terminate();
		assert.deepEqual(await b.next('range'), free(rect(0, 0, 0, 0)));
		assert.deepEqual((await raw(ben)).hello.ranges, [{ ...rect(3, 3, 4, 4), session: d.hello.session, uid: ben.uid }]);
	});

	test('are granted when cells are free: by release, a connection that ends, of v1 as well', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		const old = keep(await Editor.open(gateway, anna, fid));
		a.send({ t: 'lock', row: 1, col: 1 });
		await b.next('lock');
		old.acquire(2, 2);
		await b.next('lock');
		lock(b, rect(0, 0, 2, 2), true);
		assert.ok((await b.next('blocked')).waits);
		a.send({ t: 'unlock', row: 1, col: 1 });
		await b.next('lock');
		lock(b, rect(0, 0, 2, 2), true);
		assert.deepEqual(await b.next('blocked'), blocked(rect(0, 0, 2, 2), true, [2, 2], {}, anna));
		old.terminate();
		await granted([a, b], b, ben, rect(0, 0, 2, 2));
	});

	test('are granted when a lease that nobody renews ends', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		lock(a, rect(0, 0, 2, 2));
		await wait(b, rect(2, 2, 3, 3), [2, 2], a, anna);
		assert.deepEqual(await b.next('range', ({ session }) => session === 0, 30000), free(rect(0, 0, 2, 2)));
		await granted([a, b], b, ben, rect(2, 2, 3, 3));
	});
});

describe('rows and columns that come and go', () => {
	test('move ranges and requests; those in rows that go are gone', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		const base = a.hello.seq;
		lock(a, rect(5, 1, 8, 2));
		lock(a, rect(9, 0, 9, 0));
		await b.next('range', ({ row }) => row === 9);
		await wait(b, rect(7, 2, 9, 3), [7, 2], a, anna);
		await cluster.psql(`SELECT sheet.insert_rows(${fid}, 7, 2); SELECT sheet.delete_rows(${fid}, 11, 1); SELECT sheet.insert_columns(${fid}, 1, 1)`);
		await b.next('edits', ({ seq }) => seq === base + 3);
		const range = rect(5, 2, 10, 3);
		assert.deepEqual((await raw(ben)).hello.ranges, [{ ...range, session: a.hello.session, uid: anna.uid }]);
		b.op(1, [set(8, 2, 'late')], { base });
		const nack = await b.next('nack');
		assert.deepEqual([nack.reason, nack.row, nack.col], ['locked', 10, 3]);
		lock(b, rect(9, 0, 9, 0), false, base);
		assert.deepEqual(await b.next('blocked'), refused(rect(9, 0, 9, 0), 'base'));
		a.send({ t: 'unlockRange', ...rect(5, 1, 8, 2), base });
		assert.deepEqual(await b.next('range'), free(range));
		assert.deepEqual(await b.next('range'), heldBy(b, ben, rect(9, 3, 10, 4)));
	});

	test('grant a request when what it waits for is deleted', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		lock(a, rect(5, 0, 6, 3));
		await b.next('range');
		await wait(b, rect(6, 0, 8, 0), [6, 0], a, anna);
		a.op(1, [change('deleteRows', 5, 2)]);
		await granted([a, b], b, ben, rect(5, 0, 6, 0));
	});

	test('are learnt by who comes again', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		lock(a, rect(5, 0, 6, 3));
		await b.next('range');
		const since = b.hello.seq;
		b.terminate();
		a.op(1, [change('insertRows', 0, 2)]);
		await a.next('ack');
		const again = await raw(ben, { since });
		assert.deepEqual([again.hello.resumed, again.hello.ranges], [true, []]);
		await again.next('edits');
		assert.deepEqual(await again.next('range'), heldBy(a, anna, rect(7, 0, 8, 3)));
	});
});

test('the page\'s client is refused as others are, and shows what is in the sheet', async () => {
	const a = await raw(anna);
	const page = keep(sheetClient(gateway, ben, fid));
	await waitUntil(() => page.hello, 'hello');
	lock(a, rect(0, 0, 3, 3));
	await a.next('range');
	await assert.rejects(page.operate([set(1, 1, 'never')]), (error) => error instanceof RefusedError && error.reason === 'locked');
	await page.operate([set(4, 4, 'beside')]);
	await waitUntil(() => JSON.stringify(gridOf(page)) === '[["4,4","beside"]]', 'the cells');
	assert.deepEqual([page.hello.v, page.hello.ranges], [5, []]);
});
