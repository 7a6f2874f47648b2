/*
 * What the gateway writes to WebSockets whose sockets are full: whole frames, every message once and in order, and a close frame
 * at the end, over TCP and over TLS. No pings come and nothing else happens that would have bytes written that were forgotten.
 */
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register } from '../lib/client.mjs';
import { clientFrame, closeFrame } from '../lib/raw_socket.mjs';
import { StrictSocket } from '../lib/strict_socket.mjs';
import { decodeBinary, decodeJson, encodeBinary, encodeJson } from '../lib/v2.mjs';

const kinds = ['v1', 'v2 in JSON', 'v2 in binary'];

for (const tls of [false, true]) {
	describe(tls ? 'over TLS' : 'over TCP', () => {
		let cluster;
		let gateway;
		let anna;
		let fid;
		let sender;
		let said = 0;
		let opened = [];

		before(async () => {
			cluster = await Cluster.start({
				tls,
				measured: true,
				gatewayFlags: { 'ping-seconds': 3600 },
			});
			[gateway] = cluster.gateways;
			anna = await register(gateway);
			await begin();
		});
		after(async () => {
			sender?.destroy();
			await cluster?.stop();
		});
		afterEach(() => {
			for (const member of opened.splice(0)) member.destroy();
		});

		/** A new sheet with a sender, and a gateway with other settings. */
		async function begin(flags) {
			if (flags) {
				sender.destroy();
				await gateway.stop();
				await gateway.start(flags);
			}
			fid = await newSheet(gateway, anna);
			sender = await open('v1');
			opened.pop();
		}

		/** A member; heard: how many messages of the sender it has got. */
		async function open(kind, options = {}) {
			const member = new StrictSocket(gateway, anna, fid, { protocol: kind === 'v1' ? undefined : 'sheet.v2', ...options });
			Object.assign(member, { live: false, heard: said });
			const listen = (content) => {
				const found = /^#(\d+) (\d+) /.exec(content);
				if (!found) return;
				assert.equal(Number(found[1]), ++member.heard, 'the next message');
				assert.equal(content.length, Number(found[2]), 'all of it');
			};
			member.hear = (data) => {
				if (kind === 'v1') {
					const { msgType, body } = JSON.parse(data);
					member.live ||= msgType === 'onConn';
					if (msgType === 'modify') listen(body.content);
					return;
				}
				const message = typeof data === 'string' ? decodeJson(data) : decodeBinary(new Uint8Array(data));
				member.live ||= message.t === 'hello';
				if (message.t === 'edits') for (const { content } of message.edits) listen(content);
			};
			opened.push(member);
			const hello = { t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 };
			if (kind === 'v2 in JSON') member.send(encodeJson(hello));
			if (kind === 'v2 in binary') member.send(Buffer.from(encodeBinary(hello)));
			await member.waitFor(() => member.live, 'the snapshot');
			return member;
		}

		/** The sender says another one; false when it should wait. */
		function say(length) {
			const head = `#${++said} ${length} `;
			return sender.send(JSON.stringify({ msgType: 'modify', body: { row: said % 5, col: 1, content: head.padEnd(length, 'x') } }));
		}

		const allTold = () => sender.waitFor(() => sender.heard === said, 'the sender to hear itself');
		const allHeard = (member, what = 'all messages') => member.waitFor(() => member.heard === said, what);

		test('every kind of receiver, slow or fast, hears everything once, in order; pings are answered', async () => {
			const members = [];
			for (const kind of kinds) for (const narrow of [false, true]) for (const slow of [false, true]) members.push(Object.assign(await open(kind, { narrow }), { slow }));
			let stopping = false;
			const habits = members.map(async (member, i) => {
				for (let n = 0; !stopping; n++) {
					if (member.slow) {
						member.pause();
						await sleep((n * 37 + i * 11) % 120);
						member.resume();
					}
					member.write(clientFrame(0x89, Buffer.from(`${n}`)));
					await sleep((n * 13 + i * 7) % 20);
				}
			});
			for (let n = 0; n < 600; n++) {
				if (!say(20 + ((n * n * 7919) % (n % 10 === 0 ? 30000 : 700)))) await new Promise((resolve) => sender.socket.once('drain', resolve));
			}
			await Promise.all(members.map((member) => allHeard(member)));
			stopping = true;
			await Promise.all(habits);
			for (const { pongs } of members) assert.ok(pongs.length > 0);
		});

		/*
		 * Members that read nothing, each of which is one message further behind than the one after it: the socket of one of
		 * them becomes full by the last message, whatever sockets hold here.
		 */
		async function openLadder() {
			const members = [];
			for (let n = 0; n < 84; n++) {
				if (n < 24) {
					members.push(await open('v1', { narrow: true }));
					members[n].pause();
				}
				say(12000);
				await allTold();
			}
			return members;
		}

		test('what a full socket has not taken follows as soon as it can', async () => {
			const members = await openLadder();
			for (const member of members) member.resume();
			await Promise.all(members.map((member, n) => allHeard(member, `all messages, member ${n}`)));
		});

		test('all that was said before comes before the close frame', async () => {
			const members = await openLadder();
			for (const member of members) member.write(clientFrame(0xf1));
			await sleep(100);
			for (const member of members) member.resume();
			for (const [n, member] of members.entries()) {
				assert.equal(await member.waitEnd(), 1002, `member ${n}, with ${member.rest.length} bytes of a frame`);
				assert.equal(member.heard, said);
			}
		});

		test('nothing is told behind a close frame', async () => {
			const member = await open('v1');
			member.write(clientFrame(0x81, Buffer.from([0xff])));
			await member.waitFor(() => member.close !== undefined, 'the close frame');
			for (let n = 0; n < 5; n++) say(100);
			await allTold();
			member.write(closeFrame(1007));
			assert.equal(await member.waitEnd(), 1007);
		});

		for (const [name, frame, code] of [
			['a close frame', closeFrame(1000), 1000],
			['a broken frame', clientFrame(0xf1), 1002],
		]) {
			test(`a client that sends ${name} and then nothing more, ever, is answered`, async () => {
				const member = await open('v1');
				member.socket.end(frame);
				assert.equal(await member.waitEnd(), code);
			});
		}

		test('a close frame in the middle of what is being written ends the frame that has begun', async () => {
			for (let n = 0; n < 4; n++) {
				const member = await open('v1', { narrow: true });
				member.pause();
				for (let i = 0; i < 60; i++) say(29000 + n);
				await allTold();
				member.write(closeFrame(1000));
				for (let i = 0; i < 3; i++) await gateway.metrics(); // so the close frame has been read
				member.resume();
				assert.equal(await member.waitEnd(), 1000);
				assert.ok(member.heard < said, 'what had not begun is not sent');
				member.destroy();
			}
		});

		test('of many pings the last one is answered', async () => {
			const member = await open('v1');
			member.write(Buffer.concat(Array.from({ length: 50 }, (_, n) => clientFrame(0x89, Buffer.from(`ping ${n}`)))));
			await member.waitFor(() => member.pongs.includes('ping 49'), 'the last pong');
			assert.deepEqual(member.pongs, [...new Set(member.pongs)]);
			assert.ok(member.pongs.every((text, n) => n === 0 || Number(text.slice(5)) > Number(member.pongs[n - 1].slice(5))), `in order: ${member.pongs}`);
		});

		test('frames in segments of one byte, and behind the upgrade', async () => {
			const hello = clientFrame(0x82, Buffer.from(encodeBinary({ t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 })));
			const early = Buffer.concat([clientFrame(0x89, Buffer.from('early')), hello]);
			const member = new StrictSocket(gateway, anna, fid, { protocol: 'sheet.v2', early, hear: () => (member.live = true) });
			opened.push(member);
			await member.waitFor(() => member.live && member.pongs[0] === 'early', 'hello and a pong');
			const other = await open('v1');
			other.plain.setNoDelay?.(true);
			const content = `#${++said} 300 `.padEnd(300, 'y');
			for (const byte of clientFrame(0x81, Buffer.from(JSON.stringify({ msgType: 'modify', body: { row: 0, col: 0, content } })))) {
				other.write(Buffer.from([byte]));
				await sleep(1);
			}
			await allHeard(other, 'the message of small segments');
			await allTold();
		});

		if (tls) return; // what follows is the same there

		test('a receiver that is to be closed and reads nothing holds no more than others may be behind', async () => {
			const member = await open('v1', { narrow: true });
			member.pause();
			const start = gateway.memory('VmHWM');
			member.write(clientFrame(0x81, Buffer.from([0xff])));
			// The gateway's memory has the sender's edits until they are stored. At most a hundred of them are waiting.
			for (let n = 0; n < 4000; n++) {
				say(29000);
				if (n % 100 === 99) await allTold();
			}
			const grown = gateway.memory('VmHWM') - start;
			assert.ok(grown < 60000, `the gateway grew by ${grown} kB`);
			assert.equal(member.ended, false);
			member.resume();
			await member.waitFor(() => member.close === 1007, 'the close frame');
		});

		test('a receiver that is closed as too far behind may close, too', async () => {
			await begin({ 'send-queue-bytes': '64kB', 'stalled-receiver-seconds': 1 });
			const member = await open('v1', { narrow: true });
			member.pause();
			for (let n = 0; n < 60; n++) say(29000);
			await waitUntil(async () => (await gateway.metrics()).pg_sheet_sessions_slow_total > 0, 'the member to be too slow');
			member.write(closeFrame(1000));
			await sleep(50);
			member.resume();
			assert.equal(await member.waitEnd(), 1013);
		});

		test('a client that asks for more and more and reads nothing is dropped', async () => {
			await begin({ 'send-queue-bytes': '64kB', 'ping-seconds': 1 });
			for (let n = 0; n < 20; n++) say(29000);
			await allTold();
			const member = await open('v2 in JSON', { narrow: true });
			member.pause();
			for (let n = 0; n < 20; n++) member.send(encodeJson({ t: 'get', id: n + 1, row: 0, col: 0, toRow: 49, toCol: 5 }));
			await sleep(500);
			member.send(encodeJson({ t: 'get', id: 99, row: 0, col: 0, toRow: 49, toCol: 5 }));
			const answering = setInterval(() => sender.write(clientFrame(0x8a)), 300);
			try {
				await waitUntil(async () => (await gateway.metrics()).pg_sheet_sessions === 1, 'the silent one to be dropped', 10000);
			} finally {
				clearInterval(answering);
			}
		});
	});
}
