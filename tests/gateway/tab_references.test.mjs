/*
 * References across the tabs of a book: who has a tab open sees its formulas follow the rows and names of other tabs, whoever
 * changes these; and what editors see when a tab that refers to theirs is held.
 */
import { after, afterEach, before, beforeEach, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { register, request } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let tabs;
let lastClient = 0;
const opened = [];

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
afterEach(() => {
	for (const client of opened.splice(0)) client.terminate?.();
});

function ask(method, path, body) {
	const text = JSON.stringify(body);
	const headers = { authorization: `Bearer ${anna.token}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
	return request(gateway, method, path, { headers, body: text });
}
async function send(...parts) {
	const answer = await ask(...parts);
	assert.ok(answer.status < 300, `${parts}: ${answer.text}`);
	return answer.json;
}

beforeEach(async () => {
	const book = (await send('POST', '/v2/books', { name: 'Accounts' })).id;
	tabs = {};
	for (const name of ['X', 'Y', 'Z']) tabs[name] = (await send('POST', `/v2/books/${book}/tabs`, { name })).id;
});

const open = async (user, tab, options) => {
	const client = await RawClient.open(gateway, user, tabs[tab], { client: ++lastClient, ...options });
	opened.push(client);
	return client;
};
const set = (row, col, content) => ({ row, col, content });
const change = (kind, at, n) => ({ kind, at, n });
const text = (tab, a1) => cluster.psql(`SELECT content FROM sheet.range(${tabs[tab]}, '${a1}')`);
/** The formula, as the client is told of it. */
const told = async (client, row, col, content) => {
	const message = await client.next('edits', ({ edits }) => edits.some((edit) => edit.row === row && edit.col === col));
	const edit = message.edits.find((one) => one.row === row && one.col === col);
	assert.equal(edit.content, content);
	return edit;
};

for (const encoding of ['json', 'binary'])
	test(`formulas of an open tab follow the rows and the name of another one: ${encoding}`, async () => {
		const y = await open(anna, 'Y', { encoding });
		y.op(1, [set(0, 0, '=X!A5+A5'), set(0, 1, '="X!A5"')]);
		await y.next('ack');
		await cluster.psql(`SELECT sheet.share(${tabs.X}, '${ben.username}', 'editor')`);
		// by a page whose person may not see the other tab
		const x = await open(ben, 'X', { encoding });
		x.op(1, [change('insertRows', 2, 3)]);
		await x.next('ack');
		const edit = await told(y, 0, 0, '=X!A8+A5');
		assert.equal(edit.uid, ben.uid);
		// by a request, and by SQL
		await send('POST', `/v2/sheets/${tabs.X}/rename`, { name: "Anna's" });
		await told(y, 0, 0, "='Anna''s'!A8+A5");
		await cluster.psql(`SELECT sheet.delete_rows(${tabs.X}, 0, 1)`);
		await told(y, 0, 0, "='Anna''s'!A7+A5");
		// what the tab does itself, and its next edits, are right behind it
		y.op(2, [change('insertRows', 0, 1), set(0, 0, '=A6')]);
		await y.next('ack', ({ n }) => n === 2);
		assert.deepEqual([await text('Y', 'A1'), await text('Y', 'A2'), await text('Y', 'B2')], ['=A6', "='Anna''s'!A7+A6", '="X!A5"']);
	});

test('rows that are inserted wait for a transaction that holds a tab which refers to theirs, and other tabs do not', async () => {
	const [x, y, z] = [await open(anna, 'X'), await open(anna, 'Y'), await open(anna, 'Z')];
	y.op(1, [set(0, 0, '=X!A5')]);
	z.op(1, [set(0, 0, '=X!A5')]);
	await Promise.all([y.next('ack'), z.next('ack')]);
	const clerk = cluster.psqlSession();
	try {
		await clerk.query(`SET application_name = 'month end'; BEGIN; SELECT sheet.set(${tabs.Z}, 'J10', 'by SQL')`);
		x.op(1, [change('insertRows', 0, 1)]);
		const { application } = await x.next('held', ({ held }) => held);
		assert.equal(application, 'month end');
		x.op(2, [set(9, 9, 'behind it')]);
		for (let n = 2; n < 12; n++) {
			y.op(n, [set(n, 1, 'not held')]);
			await y.next('ack', (ack) => ack.n === n);
		}
		assert.equal(await text('Y', 'A1'), '=X!A5');
		const { status } = await ask('POST', `/v2/sheets/${tabs.X}/rename`, { name: 'too early' });
		assert.equal(status, 503, 'a new name does not wait long');
		await clerk.query('COMMIT');
		await x.next('held', ({ held }) => !held);
		await x.next('ack', ({ n }) => n === 2);
	} finally {
		await clerk.close();
	}
	await told(y, 0, 0, '=X!A6');
	await told(z, 0, 0, '=X!A6');
	assert.equal(await text('X', 'J10'), 'behind it');
});

test('when one tab that refers to theirs is free again, and another one is held, editors are told of that', async () => {
	const [x, y, z] = [await open(anna, 'X'), await open(anna, 'Y'), await open(anna, 'Z')];
	for (const client of [y, z]) {
		client.op(1, [set(0, 0, '=X!A5')]);
		await client.next('ack');
	}
	const clerks = { Y: cluster.psqlSession(), Z: cluster.psqlSession() };
	try {
		for (const [tab, clerk] of Object.entries(clerks)) await clerk.query(`SET application_name = 'clerk of ${tab}'; BEGIN; SELECT sheet.set(${tabs[tab]}, 'J10', 'by SQL')`);
		x.op(1, [change('insertRows', 0, 1)]);
		assert.equal((await x.next('held', ({ held }) => held)).application, 'clerk of Y');
		await clerks.Y.query('COMMIT');
		assert.equal((await x.next('held', ({ held, application }) => held && application !== 'clerk of Y')).application, 'clerk of Z');
		y.op(2, [set(5, 5, 'not held')]);
		await y.next('ack', ({ n }) => n === 2);
		await clerks.Z.query('ROLLBACK');
		await x.next('ack');
	} finally {
		for (const clerk of Object.values(clerks)) await clerk.close();
	}
	assert.deepEqual([await text('Y', 'A1'), await text('Z', 'A1')], ['=X!A6', '=X!A6']);
});

test("a tab's first reference waits for rows that a transaction inserts in another one", async () => {
	const y = await open(anna, 'Y');
	const clerk = cluster.psqlSession();
	try {
		await clerk.query(`BEGIN; SELECT sheet.insert_rows(${tabs.X}, 0)`);
		y.op(1, [set(0, 0, '=X!A5')]);
		const z = await open(anna, 'Z');
		z.op(1, [set(0, 0, 'others go on')]);
		await z.next('ack');
		const { log } = cluster.postgres;
		await waitUntil(() => fs.readFileSync(log, 'utf8').match(/cannot store its first reference/g)?.length >= 3, 'the batch to be refused three times');
		assert.equal(await text('Y', 'A1'), '');
		await clerk.query('COMMIT');
		await y.next('ack');
	} finally {
		await clerk.close();
	}
	const lines = (event) => fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8').match(new RegExp(`${event} sheet=${tabs.Y} `, 'g'))?.length;
	assert.deepEqual([lines('batch refused'), lines('batch taken after refusals')], [1, 1], 'one line when it began to wait, and one at the end');
	assert.equal(await text('Y', 'A1'), '=X!A5');
	await cluster.psql(`SELECT sheet.insert_rows(${tabs.X}, 0)`);
	await told(y, 0, 0, '=X!A6');
});

test('rows that are inserted in several tabs wait for a transaction that stores a first reference, and nothing else does', async () => {
	const [x, y] = [await open(anna, 'X'), await open(anna, 'Y')];
	y.op(1, [set(0, 0, '=X!A5')]);
	await y.next('ack');
	const clerk = cluster.psqlSession();
	try {
		await clerk.query(`SET application_name = 'month end'; BEGIN; SELECT sheet.set(${tabs.Z}, 'A1', '=X!A5')`);
		x.op(1, [change('insertRows', 0, 1)]);
		assert.equal((await x.next('held', ({ held }) => held)).application, 'month end');
		// The room has stopped trying, and the sheets are not locked.
		for (let n = 2; n < 12; n++) {
			y.op(n, [set(n, 1, 'not held')]);
			await y.next('ack', (ack) => ack.n === n);
			assert.equal(await cluster.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"), '0');
		}
		y.op(12, [change('insertRows', 5, 1)]);
		assert.equal((await y.next('held', ({ held }) => held)).application, 'month end');
		await cluster.psql(`SET lock_timeout = '10s'; SELECT sheet.set(${tabs.X}, 'J10', 'by SQL'), sheet.set(${tabs.Y}, 'J10', 'by SQL')`);
		await clerk.query('COMMIT');
		await Promise.all([x.next('ack', ({ n }) => n === 1), y.next('ack', ({ n }) => n === 12)]);
	} finally {
		await clerk.close();
	}
	assert.deepEqual([await text('Y', 'A1'), await text('Z', 'A1')], ['=X!A6', '=X!A6']);
});

/** mulberry32 */
function randomOf(seed) {
	return (below) => {
		seed = (seed + 0x6d2b79f5) | 0;
		let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
	};
}

test('editors of all tabs insert and delete rows and columns at once: each formula still means its cell', async (t) => {
	const seed = Number(process.env.PG_SHEET_SEED ?? Date.now() % 1e9);
	t.diagnostic(`seed ${seed}`);
	const random = randomOf(seed);
	const names = Object.keys(tabs);
	const column = (col) => String.fromCharCode(65 + col);
	// Cells with a text of their own, and in each tab formulas that name them, and their texts.
	const cells = names.flatMap((tab) => Array.from({ length: 8 }, (_, i) => ({ tab, row: 2 * i, col: i % 3, text: `${tab}${i}` })));
	const clients = await Promise.all(names.flatMap((tab) => [0, 1].map(() => open(anna, tab))));
	for (const [i, tab] of names.entries()) {
		const own = cells.filter((cell) => cell.tab === tab).map((cell) => set(cell.row, cell.col, cell.text));
		const formulas = cells.map((cell, n) => set(20 + n, 12 + (n % 12), `=${cell.tab}!${column(cell.col)}${cell.row + 1}&"${cell.text}"`));
		clients[2 * i].op(1, [...own, ...formulas]);
		await clients[2 * i].next('ack');
	}
	const edits = () => [change(['insertRows', 'deleteRows', 'insertRows', 'insertColumns', 'deleteColumns', 'insertColumns'][random(6)], random(10), 1)];
	await Promise.all(
		clients.map(async (client, i) => {
			for (let n = i % 2 === 0 ? 2 : 1, last = n + 15; n < last; n++) {
				client.op(n, edits());
				await client.next('ack', (ack) => ack.n === n);
			}
		}),
	);
	const rows = await cluster.rows(`SELECT id, "row", col, content FROM unnest(ARRAY[${Object.values(tabs).join()}]::bigint[]) id, LATERAL (SELECT * FROM sheet.range(id) WHERE content <> '') r`);
	const at = new Map(rows.map(({ id, row, col, content }) => [`${names.find((tab) => tabs[tab] === Number(id))}!${column(Number(col))}${Number(row) + 1}`, content]));
	const there = new Set(at.values());
	let alive = 0;
	for (const content of at.values()) {
		const [, reference, wanted] = /^=(.*)&"(.*)"$/.exec(content) ?? [];
		if (reference === undefined) continue;
		if (there.has(wanted)) assert.equal(at.get(reference), wanted, `${content} means ${at.get(reference)}`);
		else assert.equal(reference, '#REF!', content);
		alive += there.has(wanted) ? 1 : 0;
	}
	assert.ok(alive > 0);
	const findings = await cluster.rows(`SELECT f.* FROM unnest(ARRAY[${Object.values(tabs).join()}]::bigint[]) id, sheet.fsck(id, true, false) f WHERE what <> 'clean'`);
	assert.deepEqual(findings, []);
});
