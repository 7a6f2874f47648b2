/* Protocol v2: large blocks are read from the database as their clients take them, and hold up nobody else. */
import { after, afterEach, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';

const side = 256; // 65,536 cells, the most of one `get`
const length = 4096;
const bound = 16; // MB that a large block may cost the gateway

let cluster;
let gateway;
let anna;
let ben;
let fid;
const opened = [];

before(async () => {
	// No versions that make themselves: their seqs would come between ours.
	cluster = await Cluster.start({ measured: true, postgres: { 'pg_sheet.version_bytes': 0, 'pg_sheet.version_edits': 0 } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	ben = await register(gateway);
	fid = await newSheet(gateway, anna, { rows: side, columns: side });
	await cluster.psql(
		`SELECT sheet.set_range(${fid}, 'A1', array_agg(line ORDER BY r)) FROM (
			SELECT r, array_agg(rpad(r || ',' || c || ' ', ${length}, 'x') ORDER BY c) AS line
			FROM generate_series(0, ${side - 1}) r, generate_series(0, ${side - 1}) c GROUP BY r) s`,
	);
	await cluster.psql(`SELECT sheet.share(${fid}, '${ben.username}', 'viewer')`);
});
after(() => cluster?.stop());
afterEach(() => {
	for (const client of opened.splice(0)) client.terminate();
});

/** Each of them asks for a large block and reads none of it. */
const askAndBeMute = (clients) => {
	for (const client of clients) {
		client.socket.pause();
		get(client, large);
	}
};
const blockSeconds = 20; // for what a test does before the first of them ends

const join = async (user = anna) => {
	const client = await RawClient.open(gateway, user, fid, { encoding: 'binary' });
	opened.push(client);
	return client;
};
const all = { row: 0, col: 0, toRow: side - 1, toCol: side - 1 };
const large = { ...all, toRow: 63 }; // 64 MB: more than sockets hold
const medium = { ...all, toRow: 3 };
const small = { row: 3, col: 0, toRow: 3, toCol: 9 };
const get = (client, range, id = 1) => client.send({ t: 'get', id, ...range });
const backends = (condition) =>
	cluster.psql(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pg_sheet blocks' AND ${condition}`).then(Number);
/** Statements that were cancelled. */
const cancelled = () => fs.readFileSync(path.join(cluster.directory, 'log', 'postgres.log'), 'utf8').split('canceling statement due to user request').length - 1;
/** The server has more of `count` blocks to send than the gateway takes. */
async function stalled(count) {
	try {
		await waitUntil(async () => (await backends(`wait_event = 'ClientWrite'`)) === count, `${count} blocks to wait for their clients`, 90000);
	} catch (error) {
		// A paused client does not notice that it has been closed.
		const servers = await cluster.rows(`SELECT state, wait_event FROM pg_stat_activity WHERE application_name = 'pg_sheet blocks'`);
		for (const client of opened) client.socket.resume();
		await sleep(2000);
		const clients = opened.map(({ closed, messages }) => ({ closed, parts: messages.filter(({ t }) => t === 'block').length }));
		throw new Error(`${error.message}: ${JSON.stringify({ servers, clients })}`);
	}
}

/** The parts of one block, as they come; resolves to the seqs that they hold at, after a look at every cell. */
async function takeBlock(client, range, id = 1) {
	const seqs = new Set();
	const missing = new Set();
	for (let row = range.row; row <= range.toRow; row++) for (let col = range.col; col <= range.toCol; col++) missing.add(`${row},${col}`);
	for (let more = true; more; ) {
		const part = await client.next('block', () => true, 90000);
		client.messages.splice(0, client.position);
		client.position = 0;
		assert.equal(part.id, id);
		seqs.add(part.seq);
		more = part.more;
		for (const { row, col, content } of part.cells) {
			assert.ok(missing.delete(`${row},${col}`), `cell ${row},${col}`);
			assert.equal(content, `${row},${col} `.padEnd(length, 'x'));
		}
	}
	assert.equal(missing.size, 0);
	return [...seqs];
}

test('a block of 268 MB costs the gateway little, holds up no other reader, and comes whole when its client reads', async (t) => {
	const mute = await join();
	const other = await join(ben);
	const start = gateway.memory() / 1024;
	fs.writeFileSync(`/proc/${gateway.service.pid}/clear_refs`, '5'); // VmHWM begins anew
	mute.socket.pause();
	get(mute, all);
	await stalled(1);
	for (let id = 1; id <= 20; id++) {
		get(other, small, id);
		await takeBlock(other, small, id);
	}
	get(other, medium); // another large one
	await takeBlock(other, medium);
	// What is committed meanwhile is in no part of the block, and is told after it.
	await cluster.psql(`SELECT sheet.set(${fid}, ${side - 1}, ${side - 1}, 'newer')`);
	const { seq } = await other.next('edits');
	assert.equal(await backends(`wait_event = 'ClientWrite'`), 1);
	mute.socket.resume();
	assert.deepEqual(await takeBlock(mute, all), [seq - 1]);
	assert.equal((await mute.next('edits')).seq, seq);
	await cluster.psql(`SELECT sheet.set(${fid}, ${side - 1}, ${side - 1}, rpad('${side - 1},${side - 1} ', ${length}, 'x'))`);
	const grown = gateway.memory('VmHWM') / 1024 - start;
	t.diagnostic(`peak memory of the gateway grew by ${grown.toFixed(1)} MB`);
	assert.ok(grown < bound, `${grown} MB`);
});

test('windows that nobody reads cost the gateway no more than is promised, and small ones are given meanwhile', async (t) => {
	const begin = gateway.memory() / 1024;
	fs.writeFileSync(`/proc/${gateway.service.pid}/clear_refs`, '5');
	const mutes = [];
	const head = (row, toRow) =>
		`GET /v2/sheets/${fid}/cells?row=${row}&col=0&toRow=${toRow}&toCol=${side - 1} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${anna.token}\r\n\r\n`;
	const window = (row, toRow) =>
		request(gateway, 'GET', `/v2/sheets/${fid}/cells?row=${row}&col=0&toRow=${toRow}&toCol=${toRow > row ? side - 1 : 9}`, { headers: { authorization: `Bearer ${anna.token}` } });
	try {
		const asked = (await gateway.metrics()).pg_sheet_window_misses_total;
		for (let i = 0; i < 24; i++) {
			const socket = net.connect(gateway.port, '127.0.0.1');
			mutes.push(socket.on('error', () => {}));
			socket.write(head(i, i + 14)); // 15.7 MB
		}
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_window_misses_total === asked + mutes.length, 'all to be asked for');
		assert.equal((await window(100, 114)).status, 503);
		assert.equal((await window(100, 100)).status, 200);
	} finally {
		for (const socket of mutes) socket.destroy();
	}
	await waitUntil(async () => (await window(100, 114)).status === 200, 'room for large windows');
	const grown = gateway.memory('VmHWM') / 1024 - begin;
	t.diagnostic(`peak memory of the gateway grew by ${grown.toFixed(1)} MB`);
	assert.ok(grown < 64 + 5 * 2 * 16, `${grown} MB: what waits, and an answer that is read and one that is made for each connection`);
});

test('who leaves in the middle of a large block leaves its connection to the next', async () => {
	for (let i = 0; i < 3; i++) {
		const [one, two] = [await join(), await join(ben)];
		const before_ = cancelled();
		askAndBeMute([one, two]);
		await stalled(2);
		const third = await join();
		get(third, medium);
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_blocks_waiting === 1, 'the third to wait');
		(i === 1 ? third : one).terminate();
		if (i === 1) {
			await waitUntil(async () => (await gateway.metrics()).pg_sheet_blocks_waiting === 0, 'the third to be forgotten');
			one.terminate();
		} else await takeBlock(third, medium);
		two.terminate();
		await waitUntil(async () => (await backends(`state <> 'idle'`)) === 0, 'the connections to be free');
		assert.equal(cancelled() - before_, 2);
	}
});

test('a connection that breaks in the middle of a large block: the client comes again', async () => {
	const mute = await join();
	mute.socket.pause();
	get(mute, large);
	await stalled(1);
	await cluster.psql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg_sheet blocks' AND state = 'active'`);
	mute.socket.resume();
	assert.equal((await mute.waitClosed()).code, 1012);
	await waitUntil(async () => (await backends('true')) === 2, 'the gateway to connect again');
	const again = await join();
	get(again, medium);
	await takeBlock(again, medium);
});

test('an account that asks for many large blocks, and reads none, does not keep others waiting behind all of them', async () => {
	await gateway.stop();
	await gateway.start({ 'block-seconds': blockSeconds });
	const greedy = [];
	for (let i = 0; i < 8; i++) greedy.push(await join(ben));
	const last = await join();
	askAndBeMute(greedy);
	let waiting;
	await waitUntil(async () => (waiting = (await gateway.metrics()).pg_sheet_blocks_waiting) === 7, () => `7 to wait; ${waiting} do`, 90000);
	get(last, medium);
	await takeBlock(last, medium);
});

test('who does not read a large block in time is closed; who waits for it hears of edits meanwhile', async () => {
	await gateway.stop();
	await gateway.start({ 'block-seconds': blockSeconds });
	const mutes = [await join(), await join(ben)];
	const third = await join();
	askAndBeMute(mutes);
	await stalled(2);
	get(third, medium);
	await cluster.psql(`SELECT sheet.set(${fid}, ${side - 1}, ${side - 1}, 'newest')`);
	const { seq } = await third.next('edits');
	// Whoever does not read the reason within five seconds is cut off without: so look at the third's block afterwards.
	await waitUntil(async () => (await backends(`state <> 'idle'`)) === 0, 'the first two to be closed, the third to be served', 90000);
	for (const mute of mutes) mute.socket.resume();
	for (const mute of mutes)
		assert.deepEqual(await mute.waitClosed(), { code: 1013, reason: 'a large block has not been read in time: ask for smaller ranges' });
	assert.deepEqual(await takeBlock(third, medium), [seq]);
});
