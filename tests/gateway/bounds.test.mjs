/*
 * bounds.test.mjs - what one client can make the gateway keep: pending edits, refusals that are being answered, the stream of a
 * sheet that somebody was about to join, and that of one that nobody edits, all have their bounds; and what a few can take from
 * all: nobody's connection.
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, repository } from '../lib/cluster.mjs';
import { Editor, login, newSheet, post, register, shareByLink } from '../lib/client.mjs';
import { mustRunAs, waitUntil } from '../lib/processes.mjs';
import { RawConnection } from '../lib/raw.mjs';
import { SilentMember } from '../lib/raw_socket.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;

before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'send-queue-bytes': '2MB' } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());

/** Memory of the gateway's process, in MiB. */
const memory = (field) => gateway.memory(field) / 1024;

const long = (text) => `${text} ${'x'.repeat(32000)}`;

test('large edits that wait for the database stop their sender, and are all there in the end', async () => {
	const fid = await newSheet(gateway, anna);
	const editor = await Editor.open(gateway, anna, fid);
	await editor.settle();
	const before_ = memory('VmHWM');
	const session = cluster.psqlSession();
	await session.query(`BEGIN; SELECT sheet.set(${fid}, 'J10', 'held')`);
	const edits = 1300; // 42 MB
	for (let i = 0; i < edits; i++) editor.modify(i % 10, 0, long(i));
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_sender_pauses_total > 0, 'the sender to be paused');
	let unsent;
	await waitUntil(async () => {
		const last = unsent;
		unsent = editor.socket.bufferedAmount;
		await sleep(200);
		return last === unsent;
	}, 'the gateway to take no more');
	assert.ok(unsent > 16 << 20, `${unsent} bytes wait with the sender`);
	assert.ok(memory('VmHWM') - before_ < 24, `${before_} -> ${memory('VmHWM')} MiB`);
	await session.query('COMMIT');
	await session.close();
	for (let i = 0; i < edits; i++) await editor.nextModify(i % 10, 0, long(i), 20000);
	await editor.close();
});

test('a client that does not wait for the answers to its refused edits is closed', async () => {
	const fid = await newSheet(gateway, anna);
	await shareByLink(gateway, anna, fid, 'viewer', ben);
	const viewer = await Editor.open(gateway, ben, fid, { nack: true });
	viewer.modify(0, 0, 'x');
	assert.equal((await viewer.nextOf('refused')).body.reason, 'role');
	viewer.socket._socket.cork();
	for (let i = 0; i < 3000; i++) viewer.modify(0, i % 10, 'x');
	viewer.socket._socket.uncork();
	const { code, reason } = await viewer.waitClosed();
	assert.equal(code, 1013);
	assert.match(reason, /too many refused messages/);
	assert.ok(viewer.messages.length < 3000);
});

test('a client that does not read the answers to its refused edits is closed', async () => {
	const fid = await newSheet(gateway, anna);
	await shareByLink(gateway, anna, fid, 'viewer', ben);
	await cluster.psql(`SELECT sheet.set(${fid}, 'A1', '${'x'.repeat(32000)}')`);
	const viewer = await Editor.open(gateway, ben, fid, { nack: true });
	const before_ = memory('VmHWM');
	viewer.socket.pause();
	for (let sent = 0; sent < 4000 && (await gateway.metrics()).pg_sheet_sessions > 0; sent += 50) {
		for (let i = 0; i < 50; i++) viewer.modify(0, 0, 'x'); // 1.6 MB of answers
		await sleep(20);
	}
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_sessions === 0, 'it to be closed', 20000);
	assert.ok(memory('VmHWM') - before_ < 24, `${before_} -> ${memory('VmHWM')} MiB`);
	viewer.terminate();
});

test('a client whose questions fill the kernel, so that it discards some, gets its answers when it reads', async () => {
	const fid = await newSheet(gateway, anna);
	const [host, port] = gateway.host.split(':');
	const client = path.join(repository, 'tests/gateway/unread_client.py');
	const { unread, asked, answered } = JSON.parse(
		await mustRunAs('/usr/bin/python3', [client, host, port, anna.token, String(fid), String(anna.uid)]),
	);
	assert.ok(unread > 190000, `${unread} bytes were not read`);
	assert.equal(answered, asked, 'each question has its answer');
});

test('who leaves while joining does not keep the stream', async () => {
	const fid = await newSheet(gateway, anna, { rows: 1000, columns: 100 });
	await cluster.psql(
		`SELECT count(sheet.set(${fid}, r, c, 'cell ' || r || ' ' || c)) FROM generate_series(0, 999) r, generate_series(0, 99) c`,
	);
	const editor = await Editor.open(gateway, anna, fid);
	const flood = async (rounds) => {
		for (let round = 0; round < rounds; round++) {
			for (let i = 0; i < 100; i++) editor.modify(i, 0, long(`${round} ${i}`));
			await editor.nextModify(99, 0, long(`${round} 99`), 20000);
		}
	};
	await flood(2);
	// A snapshot of 100,000 cells takes a while: who has not been told of the sheet is joining.
	let left = 0;
	const leaving = (async () => {
		for (let i = 0; i < 40; i++) {
			const joiner = new Editor(gateway, ben, fid, { nack: i % 2 === 0 });
			await joiner.opened;
			if (i % 4 === 0) await sleep(i);
			if (joiner.messages.length === 0) left++;
			joiner.terminate();
		}
	})();
	await Promise.all([leaving, flood(5)]);
	assert.ok(left > 20, `${left} of 40 left while joining`);
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_sessions <= 1, 'them to be gone');
	const before_ = memory('VmHWM');
	await flood(12); // 38 MB
	assert.ok(memory('VmHWM') - before_ < 16, `${before_} -> ${memory('VmHWM')} MiB`);
	await editor.close();
});

test('a member that reads nothing is closed when others only move their selections', async () => {
	await gateway.stop();
	await gateway.start({ 'send-queue-bytes': '64kB', 'stalled-receiver-seconds': 2 });
	const fid = await newSheet(gateway, anna);
	const members = await Promise.all(Array.from({ length: 120 }, () => RawClient.open(gateway, anna, fid)));
	for (const { socket } of members.slice(1)) socket.removeAllListeners('message'); // nobody looks at what they hear
	const silent = await SilentMember.open(gateway, anna, fid);
	let place = 16000000;
	const moving = setInterval(() => {
		place++;
		for (const member of members) member.send({ t: 'cursor', row: place, col: 16000, toRow: place, toCol: 16001 });
	}, 100);
	try {
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_sessions_slow_total > 0, 'it to be closed', 20000);
		assert.deepEqual(await silent.closeCodes(), [1013]);
		const last = members[0].messages.length;
		await waitUntil(() => members[0].messages.slice(last).some(({ t }) => t === 'cursors'), 'selections to be told again');
		assert.deepEqual(members.map(({ closed }) => closed).filter(Boolean), [], 'who reads stays');
		assert.equal((await gateway.metrics()).pg_sheet_edits_received_total, 0);
	} finally {
		clearInterval(moving);
		silent.end();
		for (const member of members) member.terminate();
	}
});

describe('when all connections are taken', () => {
	const limit = 60;
	const greeting = (fid) =>
		`GET /sheetws?fid=${fid} HTTP/1.1\r\nHost: ${gateway.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n` +
		`Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: sheet.v2\r\n\r\n`;

	before(async () => {
		await gateway.stop();
		await gateway.start({ 'max-connections': limit, 'head-seconds': 600, 'stall-seconds': 600, 'stalled-receiver-seconds': 10 });
	});

	/** From so many addresses, twice as many connections as there may be; who is thrown out comes again. Then `work`. */
	async function occupied(addresses, first, work) {
		const connections = new Set();
		let done = false;
		let thrown = 0;
		const attackers = Array.from({ length: 2 * limit }, async (_, i) => {
			while (!done) {
				const connection = await RawConnection.open(gateway, { localAddress: `127.0.3.${1 + (i % addresses)}` }).catch(() => null);
				if (!connection) continue;
				connections.add(connection.send(first(i)));
				if (done) connection.close();
				await connection.waitClosed(600000).catch(() => {});
				connections.delete(connection);
				connection.close();
				thrown++;
				await sleep(20); // as many attackers as the machine can have beside the test
			}
		});
		try {
			await waitUntil(() => thrown > limit, 'all places to be taken');
			await work();
		} finally {
			done = true;
			for (const connection of connections) connection.close();
			await Promise.all(attackers);
		}
	}

	for (const [what, first] of [
		['silent connections', () => ''],
		['halves of requests', (i) => ['GET / HTTP/1.1\r\nX: ', 'POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{'][i % 2]],
		['WebSockets that do not say who they are', (i) => greeting(i + 1)],
	])
		test(`${what} from ten addresses make room for others, and who has signed in stays`, async () => {
			const fid = await newSheet(gateway, anna);
			const editor = await Editor.open(gateway, anna, fid);
			const member = await RawClient.open(gateway, ben, fid);
			await occupied(10, first, async () => {
				for (let i = 0; i < 20; i++) assert.equal((await post(gateway, '/getuser', { token: anna.token })).json.msg, 10);
				await login(gateway, anna);
				const other = await Editor.open(gateway, ben, fid);
				await other.settle(1, 1);
				await editor.settle(2, 2);
				await other.close();
				assert.equal(member.closed, null);
				assert.ok((await gateway.metrics()).pg_sheet_connections <= limit + 8);
			});
			await editor.close();
			member.terminate();
		});

	test('an account that has opened many WebSockets loses some of them to others', async () => {
		const fid = await newSheet(gateway, anna);
		const many = [];
		for (let i = 0; i < limit; i++) many.push(await Editor.open(gateway, anna, fid).catch(() => null));
		for (let i = 0; i < 20; i++) assert.equal((await post(gateway, '/getuser', { token: ben.token })).json.msg, 10);
		const editor = await Editor.open(gateway, ben, fid);
		await editor.settle(3, 3);
		assert.ok(many.filter((one) => one && !one.closed).length >= limit / 8, 'others stay');
		await editor.close();
		for (const one of many) one?.terminate();
	});
});
