/*
 * What clients do to a WebSocket that they should not do: broken frames, floods, silence, odd handshakes and ends. Each ends
 * with the right code or status, while somebody else edits the same sheet all the time and notices nothing, and the gateway's
 * memory stays bounded.
 */
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register } from '../lib/client.mjs';
import { RawSocket, clientFrame, closeFrame, upgradeHead } from '../lib/raw_socket.mjs';
import { RawClient, encodeJson } from '../lib/v2.mjs';

const frameLimit = 65536;
const longestEcho = 3000; // ms; on a busy machine
const silenceMs = 12000; // twice ping-seconds, and some
let cluster;
let gateway;
let anna;
let ben;
let fid;
let pulse;
let memoryAtStart;
let opened = [];

/** Edits a cell of its own again and again, and notes how long the echo takes at most. */
class Pulse {
	constructor(editor) {
		Object.assign(this, { editor, beats: 0, longest: 0, stopping: false });
		this.done = this.run();
	}

	async run() {
		while (!this.stopping) {
			const content = `beat ${this.beats + 1}`;
			const started = performance.now();
			this.editor.modify(9, 9, content);
			await this.editor.nextModify(9, 9, content, longestEcho * 2);
			this.longest = Math.max(this.longest, performance.now() - started);
			this.beats++;
			await sleep(10);
		}
	}
}

const memory = (field) => gateway.memory(field);

before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'max-frame-bytes': frameLimit, 'ping-seconds': 2, 'lease-seconds': 3600, 'keepalive-seconds': 1 } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
	fid = await newSheet(gateway, anna);
	pulse = new Pulse(await Editor.open(gateway, ben, fid));
	await waitUntil(() => pulse.beats > 20, 'the pulse');
	memoryAtStart = memory('VmRSS');
});
after(async () => {
	if (pulse) {
		pulse.stopping = true;
		await pulse.done;
		pulse.editor.terminate();
	}
	await cluster?.stop();
});
/* After each of them somebody else's editing has gone on. */
afterEach(async () => {
	for (const raw of opened.splice(0)) raw.destroy();
	const { beats } = pulse;
	await waitUntil(() => pulse.beats > beats + 2, 'the others to go on', longestEcho);
	assert.equal(pulse.editor.closed, null);
	assert.ok(pulse.longest < longestEcho, `an echo took ${pulse.longest} ms`);
	assert.ok(gateway.service.alive);
});

async function open(user = anna, options = {}) {
	const raw = await RawSocket.open(gateway, user, fid, options);
	opened.push(raw);
	return raw;
}

function connect() {
	const raw = new RawSocket(gateway);
	opened.push(raw);
	return raw;
}

const modify = (content, row = 1, col = 1) =>
	Buffer.from(JSON.stringify({ msgType: 'modify', body: { row, col, content } }));

const isTold = (content) => pulse.editor.modifies().some((body) => body.content === content);

const isLogged = async (content) =>
	(await cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND new = '${content}'`)) !== '0';

/** The connection still works: an edit comes back. */
async function stillEdits(raw, content) {
	raw.write(clientFrame(0x81, modify(content)));
	await raw.waitFor(() => raw.bytes().includes(content), `the echo of ${content}`);
}

describe('frames', () => {
	const text = Buffer.from('{}');
	for (const [name, ...frames] of [
		['reserved bit 1', clientFrame(0xc1, text)],
		['reserved bit 2', clientFrame(0xa1, text)],
		['reserved bit 3', clientFrame(0x91, text)],
		...[3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf].map((opcode) => [
			`reserved opcode ${opcode.toString(16)}`,
			clientFrame(0x80 | opcode),
		]),
		['a ping in fragments', clientFrame(0x09, text)],
		['a close frame in fragments', clientFrame(0x08, text)],
		['a continuation of nothing', clientFrame(0x80, text)],
		['a text in an unfinished text', clientFrame(0x01, text), clientFrame(0x81, text)],
		['a text in an unfinished binary message', clientFrame(0x02, text), clientFrame(0x81, text)],
		['a frame that is not masked', clientFrame(0x81, modify('unmasked'), { masked: false })],
		['a short length in two bytes', Buffer.from([0x81, 0xfe, 0, 2, 0, 0, 0, 0, 0x7b, 0x7d])],
		['a length of two bytes in eight', Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0])],
		['a ping of more than 125 bytes', clientFrame(0x89, Buffer.alloc(126))],
		['a close frame of more than 125 bytes', clientFrame(0x88, Buffer.alloc(200, 0x41))],
		['a length of more than 63 bits', clientFrame(0x81, text, { length: 1n << 63n })],
	]) {
		test(`${name}: 1002`, async () => {
			const raw = await open();
			raw.write(Buffer.concat([...frames, clientFrame(0x81, modify('behind the error'))]));
			assert.equal(await raw.waitCode(), 1002);
			assert.ok(!isTold('behind the error'), 'nothing behind the error is read');
		});
	}

	for (const [name, ...frames] of [
		['in a text', clientFrame(0x81, Buffer.from([0x22, 0xff, 0x22]))],
		['in a fragment', clientFrame(0x01, text), clientFrame(0x80, Buffer.from([0xc0, 0x80]))],
		['a surrogate over two fragments', clientFrame(0x01, Buffer.from([0xed])), clientFrame(0x80, Buffer.from([0xa0, 0x80]))],
		['a text that ends inside a character', clientFrame(0x81, Buffer.from([0x22, 0xe2, 0x82]))],
		['fragments that end inside a character', clientFrame(0x01, Buffer.from([0xf0, 0x9f])), clientFrame(0x80, Buffer.from([0x98]))],
	]) {
		test(`invalid UTF-8, ${name}: 1007`, async () => {
			const raw = await open();
			for (const frame of frames) raw.write(frame);
			assert.equal(await raw.waitCode(), 1007);
		});
	}

	test('a character over two fragments is one', async () => {
		const raw = await open();
		const message = modify('half €');
		const cut = message.indexOf(0xe2) + 1;
		raw.write(Buffer.concat([clientFrame(0x01, message.subarray(0, cut)), clientFrame(0x80, message.subarray(cut))]));
		await waitUntil(() => isTold('half €'), 'the edit');
	});

	for (const [name, ...frames] of [
		['in one frame', clientFrame(0x81, Buffer.alloc(frameLimit + 1, 0x20))],
		['in two', clientFrame(0x01, Buffer.alloc(frameLimit, 0x20)), clientFrame(0x80, text)],
		['that says it has 2^62 bytes', clientFrame(0x82, Buffer.alloc(frameLimit + 1), { length: 1n << 62n })],
	]) {
		test(`a message over the limit, ${name}: 1009`, async () => {
			const raw = await open();
			for (const frame of frames) raw.write(frame);
			assert.equal(await raw.waitCode(), 1009);
		});
	}
});

describe('many frames', () => {
	test('a message in 20,000 fragments of one byte, with pings between them, is one message', async () => {
		const raw = await open();
		const message = modify('t'.repeat(20000));
		const frames = [];
		message.forEach((byte, i) => {
			frames.push(clientFrame(i === 0 ? 0x01 : i === message.length - 1 ? 0x80 : 0x00, Buffer.from([byte])));
			if (i % 1000 === 0) frames.push(clientFrame(0x89, Buffer.from(`${i}`)));
		});
		raw.write(Buffer.concat(frames));
		await waitUntil(() => isTold('t'.repeat(20000)), 'the edit');
		assert.ok(raw.frames().some(({ opcode }) => opcode === 0x0a), 'a pong came');
	});

	test('a few empty fragments are nothing; a message of ever more of them: 1002', async () => {
		const raw = await open();
		const empty = (n) => Buffer.concat([clientFrame(0x01), ...Array.from({ length: n }, () => clientFrame(0x00))]);
		raw.write(Buffer.concat([empty(10), clientFrame(0x80, modify('after empty ones'))]));
		await waitUntil(() => isTold('after empty ones'), 'the edit');
		raw.write(empty(1000));
		assert.equal(await raw.waitCode(), 1002);
	});

	test('200 messages that are never finished hold no more than their limit each', async () => {
		const start = memory('VmRSS');
		const raws = await Promise.all(Array.from({ length: 200 }, () => open()));
		for (const raw of raws) raw.write(clientFrame(0x01, Buffer.alloc(frameLimit - 10, 0x20)));
		for (const raw of raws) raw.write(clientFrame(0x89, Buffer.from('are you there')));
		await waitUntil(() => raws.every((raw) => raw.bytes().includes('are you there')), 'the pongs', 20000);
		const grown = memory('VmRSS') - start;
		assert.ok(grown < 200 * 2.5 * (frameLimit / 1024), `the gateway grew by ${grown} kB`);
	});

	for (const [name, opcode] of [
		['pings', 0x89],
		['pongs that nobody asked for', 0x8a],
	]) {
		test(`a flood of ${name}, with nobody reading the answers`, async () => {
			const raw = await open();
			const start = memory('VmRSS');
			raw.socket.pause();
			const some = Buffer.concat(Array.from({ length: 500 }, (_, i) => clientFrame(opcode, Buffer.alloc(125, i % 256))));
			for (let i = 0; i < 100; i++) raw.write(some);
			await waitUntil(() => raw.socket.writableLength === 0 || raw.ended, 'the flood to be taken', 20000);
			const grown = memory('VmRSS') - start;
			assert.ok(grown < 20000, `the gateway grew by ${grown} kB`);
			raw.socket.resume();
			await stillEdits(raw, `after ${name}`);
		});
	}

	test('a flood of messages that are no messages', async () => {
		const raw = await open(anna, { extra: '&nack=1' });
		const start = memory('VmRSS');
		const some = Buffer.concat(Array.from({ length: 1000 }, () => clientFrame(0x81, Buffer.from('{"msgType":"nonsense"}'))));
		for (let i = 0; i < 20; i++) raw.write(some);
		assert.equal(await raw.waitCode(20000), 1013, 'more refusals at once than are answered');
		const grown = memory('VmRSS') - start;
		assert.ok(grown < 20000, `the gateway grew by ${grown} kB`);
	});
});

describe('silence', () => {
	test('a client that answers no ping is dropped, and its locks are free; one that answers stays', async () => {
		const [silent, alive] = [await open(), await open()];
		silent.write(clientFrame(0x81, Buffer.from('{"msgType":"acquire","body":{"row":5,"col":5}}')));
		const answering = setInterval(() => alive.write(clientFrame(0x8a)), 300);
		try {
			await waitUntil(() => silent.frames().some(({ opcode }) => opcode === 9), 'a ping');
			await silent.waitEnd(silenceMs);
			// The pings of anna's other connection are signs of life, but not of a lock that nobody edits: it is hers until both are gone.
			await stillEdits(alive, 'still alive');
		} finally {
			clearInterval(answering);
		}
		alive.destroy();
		await waitUntil(
			() => pulse.editor.messages.some(({ msgType, body }) => msgType === 'release' && body.row === 5 && body.col === 5),
			'the release',
		);
	});

	test('who ignores the close frame has no locks and is no member, from the moment at which it is sent', async (t) => {
		const carl = await register(gateway);
		const peer = await RawClient.open(gateway, ben, fid, { v: 3 });
		const ignoring = await RawSocket.open(gateway, carl, fid);
		ignoring.write(clientFrame(0x81, Buffer.from('{"msgType":"acquire","body":{"row":6,"col":6}}')));
		await peer.next('lock', ({ row, uid }) => row === 6 && uid === carl.uid);
		const v2 = new RawSocket(gateway);
		v2.write(upgradeHead(gateway, carl, fid, { changes: { 'Sec-WebSocket-Protocol': 'sheet.v2' } }));
		const say = (message) => v2.write(clientFrame(0x81, Buffer.from(encodeJson({ base: 0, ...message }))));
		await v2.waitFor(() => v2.bytes().includes('101 Switching'), 'the upgrade');
		// They answer pings: a busy machine may take longer for this than silence lasts.
		const answering = setInterval(() => [ignoring, v2].forEach((one) => one.write(clientFrame(0x8a))), 300);
		t.after(() => clearInterval(answering));
		say({ t: 'hello', v: 3, token: carl.token, client: 0, acked: 0, since: 0 });
		say({ t: 'lock', row: 7, col: 7 });
		const { session } = await peer.next('lock', ({ row, uid }) => row === 7 && uid === carl.uid).catch((error) => {
			throw new Error(`${error.message}; the other one heard ${v2.bytes().toString('latin1').slice(-1000)}`);
		});
		say({ t: 'lockRange', row: 20, col: 0, toRow: 25, toCol: 5, wait: false });
		await peer.next('range', ({ row, uid }) => row === 20 && uid === carl.uid);
		const open = (await gateway.metrics()).pg_sheet_sessions;
		say({ t: 'hello', v: 3, token: carl.token, client: 0, acked: 0, since: 0 }); // a second one: 4400
		await peer.next('peer', (message) => message.session === session && !message.here);
		await peer.next('lock', ({ row, uid }) => row === 7 && uid === 0);
		await peer.next('range', ({ row, uid }) => row === 20 && uid === 0);
		ignoring.write(clientFrame(0x81, Buffer.alloc(frameLimit + 1, 0x20))); // 1009
		await peer.next('lock', ({ row, uid }) => row === 6 && uid === 0);
		assert.equal((await gateway.metrics()).pg_sheet_sessions, open, 'their connections have not ended');
		assert.deepEqual([ignoring.ended, v2.ended], [false, false]);
		const late = await RawClient.open(gateway, ben, fid, { v: 3 });
		assert.ok(late.hello.peers.every(({ uid }) => uid !== carl.uid), JSON.stringify(late.hello.peers));
		assert.ok(late.hello.locks.every(({ uid }) => uid !== carl.uid), JSON.stringify(late.hello.locks));
		for (const one of [ignoring, v2]) one.destroy();
		for (const one of [peer, late]) one.terminate();
	});

	test('a client that is stopped in the middle of a frame is dropped', async () => {
		const raw = await open();
		raw.write(clientFrame(0x81, modify('never whole')).subarray(0, 20));
		await raw.waitEnd(silenceMs);
		assert.ok(!isTold('never whole'));
	});

	test('a connection that ends, or is reset, in the middle of a frame', async () => {
		for (const end of ['end', 'resetAndDestroy']) {
			const raw = await open();
			raw.write(clientFrame(0x81, modify(`cut by ${end}`)).subarray(0, 30));
			await raw.waitFor(() => raw.socket.writableLength === 0, 'the bytes to be sent');
			raw.socket[end]();
			await raw.waitEnd();
			assert.ok(!isTold(`cut by ${end}`));
		}
	});

	test('a hundred handshakes that are never finished, and one that comes byte by byte', async () => {
		const head = upgradeHead(gateway, anna, fid);
		for (let i = 0; i < 100; i++) connect().write(head.slice(0, -2));
		const slow = connect();
		slow.socket.setNoDelay(true);
		for (const byte of head) {
			slow.write(byte);
			await sleep(1);
		}
		await slow.waitFor(() => slow.bytes().includes('onConn'), 'onConn');
		await stillEdits(slow, 'after a slow handshake');
	});
});

describe('handshakes', () => {
	for (const [name, status, options] of [
		['no key', 400, { changes: { 'Sec-WebSocket-Key': null } }],
		['a short key', 400, { changes: { 'Sec-WebSocket-Key': 'abcd' } }],
		['a long key', 400, { changes: { 'Sec-WebSocket-Key': 'A'.repeat(300) } }],
		['a key that is no base64', 400, { changes: { 'Sec-WebSocket-Key': '!'.repeat(22) + '==' } }],
		['no version', 426, { changes: { 'Sec-WebSocket-Version': null } }],
		['version 8', 426, { changes: { 'Sec-WebSocket-Version': '8' } }],
		['version 130', 426, { changes: { 'Sec-WebSocket-Version': '130' } }],
		['an unknown subprotocol', 400, { changes: { 'Sec-WebSocket-Protocol': 'chat, superchat' } }],
		['no Connection', 400, { changes: { Connection: null } }],
		['another Connection', 400, { changes: { Connection: 'keep-alive' } }],
		['an upgrade to h2c', 400, { changes: { Upgrade: 'h2c' } }],
		['HTTP/1.0', 400, { version: 'HTTP/1.0' }],
		['no Host', 400, { changes: { Host: null } }],
		['a page of another origin', 403, { changes: { Origin: 'https://evil.example' } }],
		['the origin of a sandbox', 403, { changes: { Origin: 'null' } }],
		['POST', 405, { method: 'POST' }],
	]) {
		test(`${name}: ${status}`, async () => {
			const raw = connect();
			raw.write(upgradeHead(gateway, anna, fid, options));
			await raw.waitEnd();
			assert.equal(raw.status(), status, raw.bytes().toString('latin1'));
			assert.match(raw.bytes().toString('latin1'), /"success":false/);
			if (status === 426) assert.match(raw.bytes().toString('latin1'), /\r\nsec-websocket-version: 13\r\n/i);
		});
	}

	for (const [name, changes] of [
		['Connection: keep-alive, Upgrade', { Connection: 'keep-alive, Upgrade' }],
		['a subprotocol that is spoken, among others', { 'Sec-WebSocket-Protocol': 'chat, sheet.v1' }],
		['a list of subprotocols in several lines', { 'Sec-WebSocket-Protocol': 'chat\r\nSec-WebSocket-Protocol: superchat, sheet.v1\r\nSec-WebSocket-Protocol: other' }],
		['an extension that is not', { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' }],
		['its own origin', { Origin: 'http://HOST' }],
	]) {
		test(`${name} is fine`, async () => {
			const own = Object.entries(changes).map(([key, value]) => [key, value.replace('HOST', gateway.host)]);
			const raw = await open(anna, { changes: Object.fromEntries(own) });
			const head = raw.bytes().toString('latin1').split('\r\n\r\n')[0];
			assert.equal(raw.status(), 101);
			assert.ok(!/extensions/i.test(head), 'no extension is taken');
			assert.equal(/\r\nsec-websocket-protocol: (.*)/i.exec(head)?.[1], 'Sec-WebSocket-Protocol' in changes ? 'sheet.v1' : undefined);
			await stillEdits(raw, `after ${name}`);
		});
	}

	/* A client has to wait for the answer (RFC 6455 4.1). */
	test('frames that come with the handshake end the connection, or are read', async () => {
		for (const length of [10, 1000]) {
			const raw = connect();
			const frame = clientFrame(0x81, modify('e'.repeat(length)));
			raw.write(Buffer.concat([Buffer.from(upgradeHead(gateway, anna, fid)), frame]));
			await raw.waitFor(() => raw.ended || raw.bytes().includes('onConn'), 'the end or onConn');
		}
	});
});

describe('the end', () => {
	for (const [name, frame, answer] of [
		['1000', closeFrame(1000, 'bye'), 1000],
		['no code', clientFrame(0x88), null],
		['a code of their own', closeFrame(4999), 4999],
		['1005, which is never sent', closeFrame(1005), 1002],
		['a code below 1000', closeFrame(999), 1002],
	]) {
		test(`a client that closes with ${name} is answered, once, and the connection ends`, async () => {
			const raw = await open();
			raw.write(Buffer.concat([frame, clientFrame(0x81, modify('after the end')), frame]));
			await raw.waitEnd();
			assert.deepEqual(raw.closeCodes(), [answer]);
			assert.ok(!isTold('after the end') && !(await isLogged('after the end')), 'nothing behind it is read');
		});
	}

	test('a reason that is not UTF-8 ends the connection', async () => {
		const raw = await open();
		raw.write(clientFrame(0x88, Buffer.from([3, 232, 0xff, 0xfe])));
		await raw.waitEnd();
	});

	test('a client that closes before it has been told of the sheet', async () => {
		const raws = Array.from({ length: 20 }, () => connect());
		for (const raw of raws) raw.write(upgradeHead(gateway, anna, fid));
		await Promise.all(
			raws.map(async (raw) => {
				await raw.waitFor(() => raw.status() === 101, 'the answer');
				raw.write(closeFrame(1000));
				await raw.waitEnd();
				assert.deepEqual(raw.closeCodes(), [1000]);
			}),
		);
	});

	test('when the gateway closes, a client that answers is let go at once, one that does not in five seconds', async () => {
		const other = await newSheet(gateway, anna);
		const raws = [];
		for (let i = 0; i < 3; i++) raws.push(await RawSocket.open(gateway, anna, other));
		opened.push(...raws);
		const [polite, silent, stubborn] = raws;
		await cluster.psql(`SELECT sheet.trash(${other})`);
		for (const raw of raws) assert.equal(await raw.waitCode(), 4410);
		polite.write(closeFrame(4410));
		const flood = setInterval(() => stubborn.write(clientFrame(0x81, modify('too late'))), 1);
		try {
			await polite.waitEnd(4000);
			for (const raw of [silent, stubborn]) await raw.waitEnd(8000);
		} finally {
			clearInterval(flood);
		}
		for (const raw of raws) assert.equal(raw.closeCodes().length, 1, 'one close frame');
		assert.ok(!(await isLogged('too late')));
	});

	test('memory is bounded', async (context) => {
		const [now, peak] = [memory('VmRSS'), memory('VmHWM')];
		context.diagnostic(`the gateway had ${memoryAtStart} kB at the start, ${peak} kB at most and ${now} kB at the end`);
		context.diagnostic(`${pulse.beats} edits of somebody else went on meanwhile, their longest echo took ${Math.round(pulse.longest)} ms`);
		assert.ok(peak - memoryAtStart < 64 * 1024);
	});
});
