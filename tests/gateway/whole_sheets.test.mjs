/*
 * whole_sheets.test.mjs - what tells a whole sheet by protocol v1, /getsheet, /getsheetchkp and onConn: however many read
 * it, and however slowly, the gateway keeps each state once, and all states together within snapshot-bytes.
 */
import { after, before, beforeEach, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Cluster } from '../lib/cluster.mjs';
import { Editor, getSheet, newSheet, post, register, shareByLink } from '../lib/client.mjs';
import { waitUntil } from '../lib/processes.mjs';

const rows = 400;
const columns = 400;
const sheetBytes = 20 << 20; // of a large sheet's answer, at least
let cluster;
let gateway;
let anna;
let ben;
let large; // of anna
let people; // who may read it

/** A sheet of anna's whose every cell has a long text. */
async function makeLarge(mark) {
	const fid = await newSheet(gateway, anna, { rows, columns });
	await cluster.psql(
		`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(line ORDER BY r) FROM (SELECT r, array_agg(format('%s "${mark}" %s', r * ${columns} + c, repeat('x', 120)) ORDER BY c) AS line FROM generate_series(0, ${rows - 1}) r, generate_series(0, ${columns - 1}) c GROUP BY r) l))`,
	);
	return fid;
}

const cellsOf = (mark) => Array.from({ length: rows * columns }, (_, i) => `${i} "${mark}" ${'x'.repeat(120)}`);

before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'snapshot-bytes': '96MB' } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
	large = await makeLarge('large');
	people = await Promise.all(Array.from({ length: 15 }, () => register(gateway)));
	await shareByLink(gateway, anna, large, 'viewer', ...people);
	await cluster.psql(`SELECT sheet.commit(${large})`);
});
after(() => cluster?.stop());
/* Nothing is left of the test before. */
beforeEach(() => waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshots === 0, 'snapshots to go'));

/** Memory of the gateway's process, in MiB. */
const memory = (field) => gateway.memory(field) / 1024;

/** A POST whose answer is read when read() is called, and not before. */
class SlowReader {
	constructor(path, body) {
		const text = JSON.stringify(body);
		this.parts = [];
		this.ended = false;
		this.socket = net.connect({ port: gateway.port, host: '127.0.0.1' });
		this.socket.on('error', (error) => (this.problem = error));
		this.socket.on('close', () => (this.ended = true));
		this.socket.write(
			`POST ${path} HTTP/1.1\r\nHost: ${gateway.host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
		);
	}

	/** The whole answer: its status, the length it was announced with, and its body. */
	async read() {
		this.socket.on('data', (part) => this.parts.push(part));
		await waitUntil(() => this.ended, 'the answer to end', 60000);
		const bytes = Buffer.concat(this.parts);
		const end = bytes.indexOf('\r\n\r\n');
		const head = bytes.subarray(0, end).toString();
		return {
			status: Number(head.slice(9, 12)),
			length: Number(/^content-length: (\d+)/im.exec(head)?.[1]),
			body: bytes.subarray(end + 4),
		};
	}

	leave() {
		this.socket.destroy();
	}
}

for (const { route, fields, msg, head } of [
	{ route: '/getsheet', fields: {}, msg: 12, head: /^\{"success":true,"msg":12,"data":\{"fid":\d+,"isDeleted":false,"name":"[^"]+","owner":"[^"]+","CreatedAt":"[^"]+","UpdatedAt":"[^"]+","checkpoint_num":\d+,"checkPointBrief":\[[^\]]*\],"columns":400,"content":$/ },
	{ route: '/getsheetchkp', fields: { cid: 1 }, msg: 21, head: /^\{"success":true,"msg":21,"data":\{"cid":1,"timestamp":"[^"]+","rows":400,"columns":400,"content":$/ },
])
	test(`sixty slow readers of ${route} cost the gateway one copy of the sheet`, async (t) => {
		const content = JSON.stringify(cellsOf('large'));
		assert.ok(content.length > sheetBytes);
		const before_ = memory();
		const readers = Array.from({ length: 60 }, (_, i) => new SlowReader(route, { token: people[i % 15].token, fid: large, ...fields }));
		await waitUntil(() => readers.every(({ socket }) => socket.bytesRead > 0), 'all answers to begin', 60000);
		assert.equal((await gateway.metrics()).pg_sheet_snapshots, 1);
		const grown = memory('VmHWM') - before_;
		t.diagnostic(`${before_.toFixed(0)} MiB and ${grown.toFixed(0)} more for 60 times ${(content.length / (1 << 20)).toFixed(0)} MiB`);
		assert.ok(grown < 96, `${grown} MiB`);
		for (const reader of readers.splice(0, 50)) reader.leave(); // in the middle
		for (const { status, length, body } of await Promise.all(readers.map((reader) => reader.read()))) {
			assert.deepEqual([status, length], [200, body.length]);
			const at = body.length - content.length - 2;
			assert.match(body.subarray(0, at).toString(), head);
			assert.ok(body.subarray(at).equals(Buffer.from(`${content}}}`)), `the cells, then the end: msg ${msg}`);
		}
	});

test('slow joiners share a snapshot, and get it whole, with what is edited meanwhile', async () => {
	const editor = await Editor.open(gateway, anna, large, { timeoutMs: 30000 });
	await shareByLink(gateway, anna, large, 'editor', ben);
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshot_bytes === 0, 'the snapshot to go');
	const reads = (await gateway.metrics()).pg_sheet_snapshot_reads_total;
	const before_ = memory();
	const joiners = await Promise.all(
		Array.from({ length: 30 }, async (_, i) => {
			const joiner = new Editor(gateway, i % 2 ? anna : ben, large, { nack: i % 3 === 0 });
			await joiner.opened;
			joiner.socket.pause();
			return joiner;
		}),
	);
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshots === 1, 'the snapshot to be read', 30000);
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshot_bytes > sheetBytes, 'it to be there', 30000);
	await editor.settle(0, 1);
	editor.modify(rows - 1, columns - 1, 'meanwhile');
	await editor.nextModify(rows - 1, columns - 1, 'meanwhile');
	assert.ok((await gateway.metrics()).pg_sheet_snapshot_reads_total - reads <= 2);
	const grown = memory('VmHWM') - before_;
	assert.ok(grown < 96, `${before_} and ${grown} MiB more`);
	for (const joiner of joiners.splice(0, 25)) joiner.terminate();
	for (const joiner of joiners) {
		joiner.socket.resume();
		const { msgType, body } = await joiner.next(() => true, 30000);
		assert.equal(msgType, 'onConn');
		assert.equal(body.columns, columns);
		assert.equal(body.content.length, rows * columns);
		joiner.startGrid(body);
		await waitUntil(() => joiner.cells.get(`${rows - 1},${columns - 1}`) === 'meanwhile', 'the edit to come');
		const expected = cellsOf('large');
		expected[1] = joiner.cells.get('0,1');
		expected[rows * columns - 1] = 'meanwhile';
		assert.deepEqual([...joiner.cells.values()], expected);
		joiner.terminate();
	}
	await editor.close();
});

test('an answer holds at one seq, with all that was committed before it was asked for', async () => {
	const fid = await makeLarge('counted');
	const session = cluster.psqlSession();
	await session.query(`SELECT sheet.set(${fid}, 'A1', '0'); SELECT sheet.set(${fid}, ${rows - 1}, ${columns - 1}, '0')`);
	let committed = 0;
	let on = true;
	const writing = (async () => {
		while (on) {
			await session.query(
				`BEGIN; SELECT sheet.set(${fid}, 'A1', '${committed + 1}'); SELECT sheet.set(${fid}, ${rows - 1}, ${columns - 1}, '${committed + 1}'); COMMIT`,
			);
			committed++;
		}
	})();
	const reader = async (user) => {
		for (let i = 0; i < 5; i++) {
			const atLeast = committed;
			const { status, json } = await post(gateway, '/getsheet', { token: user.token, fid }, { timeoutMs: 60000 });
			if (status === 503) continue;
			const { content } = json.data;
			assert.equal(content[0], content.at(-1), 'both or none of a transaction');
			assert.ok(Number(content[0]) >= atLeast, `${content[0]} was read after ${atLeast} was committed`);
		}
	};
	await shareByLink(gateway, anna, fid, 'viewer', ben);
	try {
		await Promise.all([reader(anna), reader(anna), reader(ben), reader(ben)]);
	} finally {
		on = false;
		await writing;
		await session.close();
	}
	assert.ok(committed > 5);
});

test('states that do not fit get 503, small sheets are read, and slow readers make room in the end', async () => {
	const second = await makeLarge('second');
	const small = await newSheet(gateway, ben);
	await shareByLink(gateway, anna, second, 'viewer', ben);
	await gateway.stop();
	await gateway.start({ 'snapshot-bytes': '32MB', 'block-seconds': 3 });
	const reader = new SlowReader('/getsheet', { token: anna.token, fid: large });
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshot_bytes > sheetBytes, 'it to be held', 30000);
	const refused = await post(gateway, '/getsheet', { token: ben.token, fid: second });
	assert.equal(refused.status, 503);
	assert.equal(refused.headers['retry-after'], '1');
	const joiner = new Editor(gateway, ben, second);
	assert.equal((await joiner.waitClosed()).code, 1013);
	assert.equal((await getSheet(gateway, ben, small)).content.length, 100);
	await (await Editor.open(gateway, ben, small)).close();
	assert.equal((await post(gateway, '/getsheet', { token: anna.token, fid: large })).status, 200, 'what is held is shared');
	let answer;
	await waitUntil(async () => {
		answer = await post(gateway, '/getsheet', { token: ben.token, fid: second }, { timeoutMs: 60000 });
		return answer.status !== 503;
	}, 'the slow reader to make room', 30000);
	assert.deepEqual(answer.json.data.content, cellsOf('second'));
	const { length, body } = await reader.read();
	assert.ok(body.length < length, 'the slow one finds its answer short');
	assert.equal((await gateway.metrics()).pg_sheet_snapshot_ended_total, 1);
});

test('an account that holds a large state gets a quarter for several', async () => {
	await gateway.stop();
	await gateway.start({ 'snapshot-bytes': '64MB', 'block-seconds': 30 });
	const second = await makeLarge('quarter');
	await shareByLink(gateway, anna, second, 'viewer', ben);
	const reader = new SlowReader('/getsheet', { token: anna.token, fid: large });
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshot_bytes > sheetBytes, 'it to be held', 30000);
	assert.equal((await post(gateway, '/getsheet', { token: anna.token, fid: second })).status, 503);
	assert.equal((await post(gateway, '/getsheet', { token: ben.token, fid: second })).status, 200);
	reader.leave();
});

test('a sheet that is larger than all snapshots may be is refused for good', async () => {
	await gateway.stop();
	await gateway.start({ 'snapshot-bytes': '16MB' });
	assert.equal((await post(gateway, '/getsheet', { token: anna.token, fid: large })).status, 413);
	assert.equal((await new Editor(gateway, anna, large).waitClosed()).code, 1009);
	assert.ok((await gateway.metrics()).pg_sheet_snapshot_bytes === 0);
});

test('the stream that a joiner waits with is bounded, however long the database takes for the sheet', async () => {
	await gateway.stop();
	await gateway.start({ 'snapshot-bytes': '96MB', 'send-queue-bytes': '4MB', 'long-connections': 1 });
	const fid = await makeLarge('flooded');
	const session = await Editor.open(gateway, anna, fid, { timeoutMs: 30000 });
	const [pid] = (await cluster.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet long'")).split('\n').map(Number);
	const before_ = memory();
	// A joiner who comes before the first edit would get the text that has stayed from the session's.
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshot_bytes === 0, 'the text that the session has read to be freed');
	process.kill(pid, 'SIGSTOP');
	try {
		const joiner = new Editor(gateway, ben, fid);
		await joiner.opened;
		for (let round = 0; round < 30; round++) {
			for (let i = 0; i < 60; i++) session.modify(0, i, `${round} ${'y'.repeat(32000)}`);
			await session.nextModify(0, 59, undefined, 20000);
		}
		const { code, reason } = await joiner.waitClosed();
		assert.deepEqual([code, reason], [1013, 'the sheet changes faster than it is read: come again']);
		const grown = memory('VmHWM') - before_;
		assert.ok(grown < 48, `${before_} and ${grown} MiB more, of 57`);
	} finally {
		process.kill(pid, 'SIGCONT');
	}
	await session.close();
});

test('a log whose edits are much longer than those before is read in pages of a bounded size', async () => {
	const fid = await newSheet(gateway, anna, { rows: 50, columns: 50 });
	await cluster.psql(`SELECT count(sheet.set(${fid}, i % 50, 0, i::text)) FROM generate_series(1, 6000) i`);
	await cluster.psql(`SELECT count(sheet.set(${fid}, i % 50, 1, i || repeat('z', 32000))) FROM generate_series(1, 1500) i`);
	await gateway.stop();
	await gateway.start();
	await getSheet(gateway, anna, await newSheet(gateway, anna));
	const before_ = memory();
	const reader = new SlowReader('/getsheetlog', { token: anna.token, fid, lid: 1 });
	const { status, body } = await reader.read();
	const grown = memory('VmHWM') - before_;
	assert.equal(status, 200);
	const told = () => `${body.length} bytes, ${reader.problem ?? 'no error'}: ${fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8').slice(-1000)}`;
	assert.ok(body.subarray(-9).equals(Buffer.from(']}\r\n0\r\n\r\n')), `the answer is cut after ${told()}`);
	assert.ok(body.length > 90e6, told());
	assert.ok(grown < 16, `${before_} and ${grown} MiB more`);
});
