/*
 * http_abuse.test.mjs - bytes that no good client sends: each is answered with a reason and the connection ended, nothing of
 * it is taken for another request, and everybody else goes on as before.
 */
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster } from '../lib/cluster.mjs';
import { Editor, multipart, newSheet, post, register, request } from '../lib/client.mjs';
import { RawConnection, rawExchange } from '../lib/raw.mjs';
import { waitUntil } from '../lib/processes.mjs';

let cluster;
let gateway;
let anna;
let fid;
let editor;

before(async () => {
	cluster = await Cluster.start({
		measured: true,
		gatewayFlags: {
			'head-seconds': 3,
			'keepalive-seconds': 4,
			'stall-seconds': 2,
			'min-rate-bytes': 5000,
			'max-header-bytes': 8192,
			'max-url-bytes': 2048,
			'max-connections-per-address': 40,
		},
	});
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	fid = await newSheet(gateway, anna);
	editor = await Editor.open(gateway, anna, fid);
});
after(() => cluster?.stop());

/* Whatever has happened: the same process serves, and the editor, who was there all the time, still edits. */
afterEach(async () => {
	assert.ok(gateway.service.alive);
	assert.equal(editor.closed, null);
	await editor.settle();
	assert.equal((await post(gateway, '/getuser', { token: anna.token })).json.msg, 10);
});

const host = () => `Host: ${gateway.host}\r\n`;
const health = () => `GET /healthz HTTP/1.1\r\n${host()}\r\n`;

/** These bytes are refused with this status and a reason, and the connection ends: what stands behind them is no request. */
async function refused(bytes, status) {
	const shown = JSON.stringify(bytes.toString('latin1').slice(0, 120));
	const connection = await RawConnection.open(gateway);
	try {
		const answer = await connection.send(bytes).answer();
		assert.equal(answer.status, status, `${shown}: ${answer.status} ${answer.text}`);
		assert.equal(answer.json.success, false, shown);
		assert.equal(answer.json.msg, 0, shown);
		assert.match(answer.json.data, /\w+ \w+/, shown);
		assert.equal(answer.headers.connection, 'close', shown);
		await connection.waitClosed();
		assert.equal(connection.received.length, 0, `${shown}: a second answer: ${connection.received}`);
	} finally {
		connection.close();
	}
}

describe('framing', () => {
	const body = (text = '{}') => `Content-Length: ${text.length}\r\n\r\n${text}`;

	test('lengths that contradict each other, or say nothing', async () => {
		const start = `POST /getuser HTTP/1.1\r\n${host()}`;
		for (const [headers, status] of [
			['Content-Length: 2\r\nContent-Length: 3\r\n', 400],
			['Content-Length: 2\r\nContent-Length: 2\r\n', 400],
			['Content-Length: 2, 2\r\n', 400],
			['Content-Length: -2\r\n', 400],
			['Content-Length: +2\r\n', 400],
			['Content-Length: 0x2\r\n', 400],
			['Content-Length: 2 2\r\n', 400],
			['Content-Length:\r\n', 400],
			['Content-Length: 99999999999999999999\r\n', 400],
			['Content-Length: 18446744073709551618\r\n', 400],
			['Content-Length : 2\r\n', 400],
			['Content-Length: 999999999999999999\r\n', 413],
			['Transfer-Encoding: chunked\r\nContent-Length: 2\r\n', 400],
			['Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', 400],
			['Content-Length: 2\r\nTransfer-Encoding: identity\r\n', 400],
			['Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', 400],
			['Transfer-Encoding: xchunked\r\n', 501],
			['Transfer-Encoding: gzip, chunked\r\n', 501],
			['Transfer-Encoding : chunked\r\n', 400],
			['', 411],
		]) {
			await refused(`${start}${headers}\r\n${health()}`, status);
		}
		await refused(`POST /getuser HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400);
	});

	const chunks = (text, target = '/getuser') =>
		`POST ${target} HTTP/1.1\r\n${host()}Transfer-Encoding: chunked\r\n\r\n${text}`;

	test('well-formed trailers are ignored, and the next request is read behind them', async () => {
		const connection = await RawConnection.open(gateway);
		for (const trailers of ['X: y\r\n', 'Digest:sha-256=:YQ==:\r\nempty:\r\nX-Content-Length: 40\r\n', `Long: ${'a'.repeat(4000)}\r\n`, 'Authorization: Bearer x\r\n']) {
			const answer = await connection.send(chunks(`2\r\n{}\r\n0\r\n${trailers}\r\n`)).answer();
			assert.deepEqual([answer.status, answer.json.msg], [200, 1], trailers.slice(0, 40));
			assert.equal((await connection.send(health()).answer()).status, 200);
		}
		connection.close();
	});

	test('a body in malformed chunks, with malformed trailers, or too much in them', async () => {
		for (const text of [
			health(),
			'\r\n2\r\n{}\r\n0\r\n\r\n',
			'2\n{}\n0\n\n',
			'2\r\n{}0\r\n\r\n',
			'2\r\n{}\r\n0\r\n\n',
			'0x2\r\n{}\r\n0\r\n\r\n',
			'-2\r\n{}\r\n0\r\n\r\n',
			'2 \r\n{}\r\n0\r\n\r\n',
			'00000000000000002\r\n{}\r\n0\r\n\r\n',
			`2;${'x'.repeat(5000)}\r\n{}\r\n0\r\n\r\n`,
			'2\r\n{}\r\n0\r\nContent-Length: 40\r\n\r\n',
			'2\r\n{}\r\n0\r\nX y\r\n\r\n',
			'2\r\n{}\r\n0\r\n X: y\r\n\r\n',
			'2\r\n{}\r\n0\r\nX: y\n\r\n',
			`2\r\n{}\r\n0\r\nX: ${'y'.repeat(5000)}\r\n\r\n`,
			`2\r\n{}\r\n0\r\n${health()}`,
		])
			await refused(chunks(text) + health(), 400);
		const piece = `ffff\r\n${' '.repeat(65535)}\r\n`;
		await refused(chunks(piece.repeat(17)), 413);
		await refused(chunks('ffffffffffffffff\r\n{}'.padEnd(2 << 20)), 413);
		await refused(chunks('2\r\n{}\r\n0\r\n\r\n', '/nothing') + health(), 404);
	});

	test('an answer with a long header ends its lines and tells its length', async () => {
		const name = 'a'.repeat(3980);
		const connection = await RawConnection.open(gateway);
		const answer = await connection.send(`GET /healthz HTTP/1.1\r\nHost: ${name}\r\nOrigin: http://${name}\r\n\r\n`).answer();
		assert.equal(answer.headers['access-control-allow-origin'], `http://${name}`);
		assert.match(answer.headers['access-control-expose-headers'], /x-request-id$/);
		assert.equal(answer.json.status, 'ok');
		assert.equal((await connection.send(health()).answer()).status, 200);
		connection.close();
	});

	test('millions of empty lines before a request cost next to nothing', async () => {
		const connection = await RawConnection.open(gateway);
		assert.equal((await connection.send(health()).answer()).status, 200);
		const before = gateway.processorMs();
		connection.send(Buffer.alloc(4 << 20, '\r\n')).send(health());
		assert.equal((await connection.answer()).status, 200);
		const took = gateway.processorMs() - before;
		assert.ok(took < 1000, `${took} ms`);
		connection.close();
	});

	test('a body where none belongs is not read as a request', async () => {
		await refused(`GET /healthz HTTP/1.1\r\n${host()}${body(health())}`, 400);
		await refused(`GET /healthz HTTP/1.1\r\n${host()}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${health()}`, 400);
		await refused(`DELETE /login HTTP/1.1\r\n${host()}${body(health())}`, 405);
	});

	test('lines that end otherwise, folded lines, blanks before colons, control characters', async () => {
		for (const bytes of [
			`GET /healthz HTTP/1.1\n${host()}\r\n`,
			`GET /healthz HTTP/1.1\r\nHost: x\nX: y\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\nHost: x\rX: y\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X: a\r\n b\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X: a\r\n\tContent-Length: 5\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X : y\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}: y\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X: a\u0000b\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X: a\u007fb\r\n\r\n`,
			`GET /healthz HTTP/1.1\r\n${host()}X\u00e9: a\r\n\r\n`,
			'\u0000\u0001\u0002\r\n\r\n',
			'\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
			'NONSENSE\r\n\r\n',
			`GET  /healthz HTTP/1.1\r\n${host()}\r\n`,
			`GET /healthz\r\n${host()}\r\n`,
			`GET /healthz HTTP/1.1 \r\n${host()}\r\n`,
			`GET /healthz http/1.1\r\n${host()}\r\n`,
			`GET /health z HTTP/1.1\r\n${host()}\r\n`,
			`G(T /healthz HTTP/1.1\r\n${host()}\r\n`,
			`GET healthz HTTP/1.1\r\n${host()}\r\n`,
			`GET /%zz HTTP/1.1\r\n${host()}\r\n`,
			`GET /%0d%0aX HTTP/1.1\r\n${host()}\r\n`,
			`GET /\u00e9 HTTP/1.1\r\n${host()}\r\n`,
			'GET /healthz HTTP/1.1\r\n\r\n',
			`GET /healthz HTTP/1.1\r\n${host()}${host()}\r\n`,
			'GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n',
			`GET /healthz HTTP/1.1\r\n${host()}Authorization: a\r\nAuthorization: b\r\n\r\n`,
		]) {
			await refused(Buffer.from(bytes, 'latin1'), 400);
		}
		await refused('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505);
		await refused(`GET /healthz HTTP/1.1\r\n${host()}Expect: miracles\r\n\r\n`, 417);
	});

	test('what is unusual and right is understood', async () => {
		for (const bytes of [
			`\r\n${health()}`,
			'GET /healthz HTTP/1.0\r\n\r\n',
			`GET http://elsewhere.example/healthz HTTP/1.1\r\n${host()}\r\n`,
			`GET /%68ealthz?x=%00 HTTP/1.1\r\n${host()}X:\t y \t\r\nx-empty:\r\n\r\n`,
		]) {
			assert.equal((await rawExchange(gateway, bytes)).status, 200, bytes);
		}
		const options = await rawExchange(gateway, `OPTIONS * HTTP/1.1\r\n${host()}\r\n`);
		assert.equal(options.status, 204);
	});
});

describe('sizes', () => {
	test('long addresses, long headers, many headers', async () => {
		await refused(`GET /${'a'.repeat(2100)} HTTP/1.1\r\n${host()}\r\n`, 414);
		await refused(`GET /${'a'.repeat(9000)}`, 414);
		await refused(`GET /healthz HTTP/1.1\r\n${host()}X: ${'a'.repeat(9000)}\r\n\r\n`, 431);
		await refused(`GET /healthz HTTP/1.1\r\n${host()}X: ${'a'.repeat(9000)}`, 431);
		await refused(`GET /healthz HTTP/1.1\r\n${host()}${'X: y\r\n'.repeat(100)}\r\n`, 431);
		assert.equal((await rawExchange(gateway, `GET /healthz HTTP/1.1\r\n${host()}X: ${'a'.repeat(7500)}\r\n\r\n`)).status, 200);
	});

	test('a megabyte of one header costs no megabyte', async () => {
		const connection = await RawConnection.open(gateway);
		connection.send(`GET /healthz HTTP/1.1\r\nX: ${'a'.repeat(1 << 20)}`);
		assert.equal((await connection.answer()).status, 431);
		await connection.waitClosed();
		connection.close();
	});

	test('one address has so many connections, and the next is told', async () => {
		const open = [];
		const count = async () => (await gateway.metrics()).pg_sheet_connections;
		await waitUntil(async () => (await count()) <= 1, 'earlier connections to be gone');
		for (let i = 0; i < 39; i++) open.push(await RawConnection.open(gateway));
		const one = await RawConnection.open(gateway);
		const answer = await one.answer();
		assert.equal(answer.status, 429);
		assert.match(answer.headers['retry-after'], /^\d+$/);
		assert.match(answer.text, /too many connections from your address/);
		await one.waitClosed();
		const elsewhere = await RawConnection.open(gateway, { localAddress: '127.0.0.2' });
		assert.equal((await elsewhere.send(health()).answer()).status, 200, 'another address is served');
		for (const connection of [...open, one, elsewhere]) connection.close();
		await waitUntil(async () => (await rawExchange(gateway, health())).status === 200, 'room again');
	});
});

/* These wait most of the time, and run at once. */
describe('time', { concurrency: true }, () => {
	test('a head that does not come is answered with 408', async () => {
		const connection = await RawConnection.open(gateway);
		const drip = setInterval(() => connection.send('X'), 100);
		connection.send(`GET /healthz HTTP/1.1\r\n`);
		const answer = await connection.answer().finally(() => clearInterval(drip));
		assert.equal(answer.status, 408);
		assert.match(answer.json.data, /head/);
		await connection.waitClosed();
		connection.close();
	});

	test('a connection that says nothing is closed, and so is one that says nothing more', async () => {
		const silent = await RawConnection.open(gateway);
		const idle = await RawConnection.open(gateway);
		assert.equal((await idle.send(health()).answer()).status, 200);
		// Empty lines are nothing: "\n\r" ends one and begins the next.
		const blank = await Promise.all(['\r\n', '\n\r'].map(() => RawConnection.open(gateway)));
		for (const connection of blank) assert.equal((await connection.send(health()).answer()).status, 200);
		blank[1].send('\r');
		const beat = setInterval(() => blank.forEach((connection, i) => connection.closed || connection.send(['\r\n', '\n\r'][i])), 500);
		try {
			for (const connection of [silent, idle, ...blank]) await connection.waitClosed();
		} finally {
			clearInterval(beat);
		}
		for (const connection of [silent, idle, ...blank]) {
			assert.equal(connection.received.length, 0);
			connection.close();
		}
	});

	test('a body that drips is answered with 408, and one that comes at the least rate is read', async () => {
		const slow = async (bytesPerSecond) => {
			const text = JSON.stringify({ token: anna.token, filler: 'x'.repeat(30000) });
			const connection = await RawConnection.open(gateway);
			connection.send(`POST /getuser HTTP/1.1\r\n${host()}Content-Length: ${text.length}\r\n\r\n`);
			const started = Date.now();
			let sent = 0;
			const drip = setInterval(() => {
				const due = Math.floor((Date.now() - started) / 1000 * bytesPerSecond);
				connection.send(text.slice(sent, due));
				sent = Math.max(sent, due);
			}, 50);
			const answer = await connection.answer().finally(() => clearInterval(drip));
			connection.close();
			return answer;
		};
		const dripping = await slow(400);
		assert.equal(dripping.status, 408);
		assert.match(dripping.json.data, /body/);
		assert.equal((await slow(10000)).json.msg, 10, 'slow, but not too slow'); // three seconds: longer than stall-seconds
	});
});

describe('answers', () => {
	test('an answer that is not read ends, and its memory with it', async () => {
		const bytes = Buffer.alloc(24 << 20, 'x');
		const form = multipart([
			['fid', String(fid)],
			['token', anna.token],
			['uploadfile', bytes, 'large.bin', 'application/octet-stream'],
		]);
		assert.equal((await request(gateway, 'POST', '/uploadchunk', form)).json.msg, 33);
		const before_ = (await gateway.metrics()).pg_sheet_http_timeouts_total;
		const connection = await RawConnection.open(gateway);
		connection.socket.pause();
		connection.send(`GET /getchunk?fid=${fid}&chunk=large.bin&token=${anna.token} HTTP/1.1\r\n${host()}\r\n`);
		await waitUntil(
			async () => (await gateway.metrics()).pg_sheet_http_timeouts_total > before_,
			'the gateway to give up',
		);
		connection.socket.resume();
		await connection.waitClosed();
		assert.ok(connection.received.length < bytes.length);
		connection.close();
		const slow = await RawConnection.open(gateway);
		slow.send(`GET /getchunk?fid=${fid}&chunk=large.bin&token=${anna.token} HTTP/1.1\r\n${host()}\r\n`);
		for (let i = 0; i < 15; i++) {
			slow.socket.pause();
			await new Promise((resolve) => setTimeout(resolve, 100));
			slow.socket.resume();
			await new Promise((resolve) => setTimeout(resolve, 10));
		}
		assert.equal((await slow.answer()).status, 200, 'who reads slowly, but reads, gets everything');
		slow.close();
	});
});

describe('names', () => {
	test('no address leads out of the page, however it is written', async () => {
		const secret = cluster.jwtKey;
		for (const name of ['/../jwt.key', '/..%2fjwt.key', '/%2e%2e/jwt.key', '/%2e%2e%2fjwt.key', '/assets/../../jwt.key', '/./../jwt.key', '//../jwt.key', '/assets/..%5c..%5cjwt.key', '/%252e%252e/jwt.key', '/.digest']) {
			const answer = await rawExchange(gateway, `GET ${name} HTTP/1.1\r\n${host()}\r\n`);
			assert.equal(answer.status, 404, `${name}: ${answer.status}`);
			assert.ok(!answer.text.includes(secret));
		}
	});
});

test('hundreds of connections that do all of this at once do not keep others from being served', async () => {
	const before_ = gateway.memory();
	const attack = ['G', 'GET / HTTP/1.1\r\nX: ', `POST /login HTTP/1.1\r\n${host()}Content-Length: 1000\r\n\r\n{`, '\r\n', ''];
	const count = 300;
	let served = false;
	// Who is thrown out comes again as long as others have not been served.
	const attackers = Promise.all(
		Array.from({ length: count }, async (_, i) => {
			do {
				const connection = await RawConnection.open(gateway, { localAddress: `127.0.1.${1 + (i % 20)}` });
				await connection.send(attack[i % attack.length]).waitClosed();
				connection.close();
			} while (!served);
		}),
	);
	try {
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_connections > count / 2, 'the attackers to be there');
		await editor.settle(1, 1);
		assert.equal((await post(gateway, '/getuser', { token: anna.token })).json.msg, 10);
	} finally {
		served = true;
		await attackers;
	}
	assert.ok(gateway.memory() - before_ < 30000, `${before_} -> ${gateway.memory()} kB`);
});
