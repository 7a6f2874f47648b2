/*
 * http_protocol.test.mjs - HTTP as good clients use it: connections that are kept, requests sent ahead, methods, the page's own
 * files with their compressed forms, validators and ranges, and the headers that keep browsers safe.
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { Cluster } from '../lib/cluster.mjs';
import { runAs } from '../lib/processes.mjs';
import { multipart, newSheet, post, register, request } from '../lib/client.mjs';
import { RawConnection, rawExchange } from '../lib/raw.mjs';

const script = `export const words = ${JSON.stringify('words '.repeat(2000))};\n`;
let cluster;
let gateway;
let anna;
let fid;

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	const assets = path.join(cluster.directory, 'web', 'assets');
	fs.mkdirSync(assets, { recursive: true });
	fs.writeFileSync(path.join(assets, 'words-1a2b.js'), script);
	fs.writeFileSync(path.join(assets, 'words-1a2b.js.br'), zlib.brotliCompressSync(script));
	fs.writeFileSync(path.join(assets, 'words-1a2b.js.gz'), zlib.gzipSync(script));
	fs.writeFileSync(path.join(assets, 'plain-3c4d.bin'), 'only so');
	anna = await register(gateway);
	fid = await newSheet(gateway, anna);
});
after(() => cluster?.stop());

const host = () => `Host: ${gateway.host}\r\n`;
const get = (target, headers = '') => `GET ${target} HTTP/1.1\r\n${host()}${headers}\r\n`;
const postOf = (target, body, headers = '') =>
	`POST ${target} HTTP/1.1\r\n${host()}Content-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;

describe('connections', () => {
	test('many requests on one, one after the other and sent ahead: answers in order', async () => {
		const connection = await RawConnection.open(gateway);
		for (let i = 0; i < 5; i++) assert.equal((await connection.send(get('/healthz')).answer()).status, 200);
		// Quick and slow ones mixed: a login takes the time of a password hash, a 404 none.
		const requests = [];
		for (let i = 0; i < 30; i++) {
			requests.push([
				[postOf('/login', JSON.stringify({ username: anna.username, password: anna.password })), 4],
				[get(`/nothing-${i}`), undefined],
				[postOf('/getsheet', JSON.stringify({ token: anna.token, fid })), 12],
				[postOf('/getuser', JSON.stringify({ token: 'no' })), 1],
			][i % 4]);
		}
		connection.send(requests.map(([bytes]) => bytes).join(''));
		for (const [, msg] of requests) {
			const answer = await connection.answer();
			if (msg === undefined) assert.equal(answer.status, 404);
			else assert.equal(answer.json.msg, msg);
		}
		connection.close();
	});

	test('a thousand requests sent ahead, in pieces of odd lengths', async () => {
		const connection = await RawConnection.open(gateway);
		const bytes = get('/healthz').repeat(1000);
		for (let at = 0; at < bytes.length; at += 997) {
			connection.send(bytes.slice(at, at + 997));
			if (at % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
		}
		for (let i = 0; i < 1000; i++) assert.equal((await connection.answer()).status, 200);
		assert.equal(connection.received.length, 0);
		connection.close();
	});

	test('a client that ends its side behind its requests gets all answers', async () => {
		const connection = await RawConnection.open(gateway, { allowHalfOpen: true });
		connection.socket.end(get('/nothing').repeat(3) + postOf('/getuser', JSON.stringify({ token: anna.token })));
		for (let i = 0; i < 3; i++) assert.equal((await connection.answer()).status, 404);
		assert.equal((await connection.answer()).json.msg, 10);
		await connection.waitClosed();
		connection.close();
	});

	test('Connection: close and HTTP/1.0 end it behind the answer; HTTP/1.0 keep-alive does not', async () => {
		for (const [bytes, ends] of [
			[get('/healthz', 'Connection: close\r\n'), true],
			[get('/healthz', 'Connection: foo, CLOSE\r\n'), true],
			['GET /healthz HTTP/1.0\r\n\r\n', true],
			['GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', false],
			[get('/healthz'), false],
		]) {
			const connection = await RawConnection.open(gateway);
			const answer = await connection.send(bytes).answer();
			assert.equal(answer.headers.connection === 'close', ends, bytes);
			if (ends) await connection.waitClosed(4000); // keepalive-seconds is 5
			else assert.equal((await connection.send(get('/healthz')).answer()).status, 200);
			connection.close();
		}
	});

	test('a body is waited for as Expect: 100-continue says', async () => {
		const connection = await RawConnection.open(gateway);
		const body = JSON.stringify({ token: anna.token });
		connection.send(`POST /getuser HTTP/1.1\r\n${host()}Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
		assert.equal((await connection.answer()).status, 100);
		assert.equal((await connection.send(body).answer()).json.msg, 10);
		connection.send(`POST /nothing HTTP/1.1\r\n${host()}Content-Length: 9\r\nExpect: 100-continue\r\n\r\n`);
		assert.equal((await connection.answer()).status, 404, 'refused without the body');
		connection.close();
	});

	test('a body may come in chunks, and the next request stands right behind it', async () => {
		const body = JSON.stringify({ token: anna.token });
		const head = `POST /getuser HTTP/1.1\r\n${host()}Transfer-Encoding: chunked\r\n`;
		const inChunks = (size, extension = '') =>
			`${body.match(new RegExp(`.{1,${size}}`, 'g')).map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join('')}0\r\n\r\n`;
		const requests = [1, 7, 1000].map((size) => `${head}\r\n${inChunks(size)}`);
		requests.push(`${head}\r\n${inChunks(100, ';name="a value"')}`, get('/healthz'));
		const all = requests.join('');
		for (const step of [all.length, 1, 13]) {
			const connection = await RawConnection.open(gateway);
			for (let at = 0; at < all.length; at += step) connection.send(all.slice(at, at + step));
			for (let i = 0; i < 4; i++) {
				const answer = await connection.answer();
				assert.equal(answer.json.msg, 10, answer.text);
				assert.equal(answer.headers.connection, undefined, 'and the connection stays');
			}
			assert.equal((await connection.answer()).json.status, 'ok');
			connection.close();
		}
		const connection = await RawConnection.open(gateway);
		connection.send(`${head}Expect: 100-continue\r\n\r\n`);
		assert.equal((await connection.answer()).status, 100);
		assert.equal((await connection.send(inChunks(50)).answer()).json.msg, 10);
		connection.close();
	});

	test('clients that do not know the length: node with a stream, curl with its input', async () => {
		const json = JSON.stringify({ token: anna.token });
		const stream = new ReadableStream({
			start(controller) {
				for (const part of [json.slice(0, 5), json.slice(5)]) controller.enqueue(new TextEncoder().encode(part));
				controller.close();
			},
		});
		const answer = await fetch(`${gateway.url}/getuser`, { method: 'POST', body: stream, duplex: 'half' });
		assert.equal((await answer.json()).msg, 10);
		const curl = await runAs('curl', ['-sS', '-X', 'POST', '-T', '-', `${gateway.url}/getuser`], { input: json });
		assert.equal(curl.code, 0, curl.stderr);
		assert.equal(JSON.parse(curl.stdout).msg, 10);
	});

	test('an upload whose length is not told', async () => {
		const bytes = crypto.randomBytes(700000);
		const form = multipart([
			['fid', String(fid)],
			['token', anna.token],
			['uploadfile', bytes, 'chunks.bin', 'application/octet-stream'],
		]);
		const stream = new ReadableStream({
			start(controller) {
				for (let at = 0; at < form.body.length; at += 50001) controller.enqueue(form.body.subarray(at, at + 50001));
				controller.close();
			},
		});
		const answer = await fetch(`${gateway.url}/uploadchunk`, {
			method: 'POST',
			headers: { 'content-type': form.headers['content-type'] },
			body: stream,
			duplex: 'half',
		});
		assert.equal((await answer.json()).msg, 33);
		const file = await request(gateway, 'GET', `/getchunk?fid=${fid}&chunk=chunks.bin&token=${anna.token}`);
		assert.ok(file.body.equals(bytes));
	});

	test('behind an early answer the rest of the body is no request', async () => {
		const smuggled = get('/healthz').repeat(50);
		const form = multipart([
			['fid', String(fid)],
			['token', 'nonsense'],
			['uploadfile', Buffer.from(smuggled.repeat(100)), 'a.txt', 'text/plain'],
		]);
		const uploadHead = `POST /uploadchunk HTTP/1.1\r\n${host()}Content-Type: ${form.headers['content-type']}\r\nContent-Length: ${form.body.length}\r\n\r\n`;
		for (const [first, rest, msg] of [
			[uploadHead + form.body.subarray(0, 3000), form.body.subarray(3000), 1],
			[`POST /uploadchunk HTTP/1.1\r\n${host()}Content-Type: text/plain\r\nContent-Length: ${smuggled.length}\r\n\r\n`, smuggled, 31],
			[`POST /nothing HTTP/1.1\r\n${host()}Content-Length: ${smuggled.length}\r\n\r\n`, smuggled, 0],
			[`POST /healthz HTTP/1.1\r\n${host()}Content-Length: ${smuggled.length}\r\n\r\n`, smuggled, 0],
		]) {
			const connection = await RawConnection.open(gateway);
			connection.send(first);
			const answer = await connection.answer();
			assert.equal(answer.json.msg, msg, answer.text);
			assert.equal(answer.headers.connection, 'close');
			connection.send(rest);
			await connection.waitClosed();
			assert.equal(connection.received.toString(), '', 'nothing but the one answer');
			connection.close();
		}
	});
});

describe('methods', () => {
	test('OPTIONS and 405 name what an address takes', async () => {
		for (const [target, allow] of [
			['/login', 'POST, OPTIONS'],
			['/uploadchunk', 'POST, OPTIONS'],
			['/healthz', 'GET, HEAD, OPTIONS'],
			['/getchunk', 'GET, HEAD, OPTIONS'],
			['/', 'GET, HEAD, PROPFIND, OPTIONS'], // where CalDAV's programs begin
		]) {
			const options = await request(gateway, 'OPTIONS', target);
			assert.deepEqual([options.status, options.headers.allow, options.text], [204, allow, '']);
			for (const method of ['PUT', 'DELETE', 'PATCH', 'TRACE', 'BREW', allow.startsWith('POST') ? 'GET' : 'POST']) {
				if (target === '/' && method === 'POST') continue; // no address for it: 404
				const answer = await request(gateway, method, target);
				assert.deepEqual([answer.status, answer.headers.allow], [405, allow], `${method} ${target}`);
			}
		}
	});

	test('HEAD is GET without the body', async () => {
		for (const target of ['/', '/healthz', '/assets/words-1a2b.js', '/nothing']) {
			const connection = await RawConnection.open(gateway);
			const head = await connection.send(`HEAD ${target} HTTP/1.1\r\n${host()}\r\n`).answer({ head: true });
			const full = await connection.send(get(target)).answer();
			const own = { date: '', 'x-request-id': '' }; // of each answer
			assert.deepEqual({ ...head.headers, ...own }, { ...full.headers, ...own }, target);
			assert.equal(head.status, full.status);
			connection.close();
		}
	});

	test('every answer carries a date and forbids guessing its type', async () => {
		for (const target of ['/', '/healthz', '/nothing', '/metrics']) {
			const { headers } = await request(gateway, 'GET', target);
			assert.ok(Math.abs(new Date(headers.date) - Date.now()) < 5000);
			assert.equal(headers['x-content-type-options'], 'nosniff');
			assert.equal(headers['referrer-policy'], 'no-referrer');
			assert.equal(headers['strict-transport-security'], undefined, 'not over plain HTTP');
		}
	});
});

describe('the page', () => {
	const accepting = (accepted, headers = '') =>
		rawExchange(gateway, get('/assets/words-1a2b.js', `${accepted === null ? '' : `Accept-Encoding: ${accepted}\r\n`}${headers}`));

	test('comes in the form that the client likes best', async () => {
		for (const [accepted, coding] of [
			[null, undefined],
			['', undefined],
			['gzip, deflate, br', 'br'],
			['gzip', 'gzip'],
			['GZIP', 'gzip'],
			['br;q=0.5, gzip;q=0.8', 'gzip'],
			['br;q=0, gzip', 'gzip'],
			['br;q=0, gzip;q=0', undefined],
			['*', 'br'],
			['*;q=0.1, br;q=0', 'gzip'],
			['identity', undefined],
			['brotli, xgzip', undefined],
		]) {
			const answer = await accepting(accepted);
			assert.equal(answer.headers['content-encoding'], coding, String(accepted));
			assert.equal(answer.headers.vary, 'Accept-Encoding');
			const decode = { br: zlib.brotliDecompressSync, gzip: zlib.gunzipSync }[coding] ?? ((bytes) => bytes);
			assert.equal(decode(answer.body).toString(), script);
			assert.match(answer.headers['content-type'], /^text\/javascript/);
			assert.equal(answer.headers['cache-control'], 'public, max-age=31536000, immutable');
		}
		assert.equal((await rawExchange(gateway, get('/assets/plain-3c4d.bin', 'Accept-Encoding: br\r\n'))).text, 'only so');
	});

	test('forms have validators of their own, and are not sent again', async () => {
		const tags = {};
		for (const coding of ['br', 'gzip', '']) tags[coding] = (await accepting(coding)).headers.etag;
		assert.equal(new Set(Object.values(tags)).size, 3);
		for (const [condition, status] of [
			[tags.br, 304],
			[`W/${tags.br}`, 304],
			[`"a", ${tags.br}, "b"`, 304],
			['*', 304],
			[tags.gzip, 200],
			['"a"', 200],
			[tags.br.slice(0, -2), 200],
		]) {
			const answer = await accepting('br', `If-None-Match: ${condition}\r\n`);
			assert.equal(answer.status, status, condition);
			assert.equal(answer.headers.etag, tags.br);
		}
	});

	test('in parts', async () => {
		const { etag } = (await accepting(null)).headers;
		const part = await accepting(null, 'Range: bytes=10-19\r\n');
		assert.deepEqual([part.status, part.headers['content-range'], part.text], [206, `bytes 10-19/${script.length}`, script.slice(10, 20)]);
		assert.equal((await accepting(null, 'Range: bytes=-5\r\n')).text, script.slice(-5));
		assert.equal((await accepting(null, `Range: bytes=0-4\r\nIf-Range: ${etag}\r\n`)).status, 206);
		assert.equal((await accepting(null, 'Range: bytes=0-4\r\nIf-Range: "a"\r\n')).status, 200);
		assert.equal((await accepting(null, 'Range: bytes=0-4, 6-7\r\n')).text, script, 'several ranges are not served');
		const outside = await accepting(null, 'Range: bytes=999999-\r\n');
		assert.deepEqual([outside.status, outside.headers['content-range']], [416, `bytes */${script.length}`]);
	});

	test('may run its own scripts, and talk to its own gateway', async () => {
		const { headers } = await request(gateway, 'GET', '/');
		const policy = Object.fromEntries(
			headers['content-security-policy'].split('; ').map((item) => [item.split(' ')[0], item.split(' ').slice(1).join(' ')]),
		);
		assert.equal(policy['default-src'], "'none'");
		assert.equal(policy['script-src'], "'self'");
		assert.equal(policy['connect-src'], `'self' http://${gateway.host} ws://${gateway.host}`);
		assert.equal(policy['frame-ancestors'], "'none'");
		assert.equal(policy['base-uri'], "'none'");
		assert.ok(!/unsafe-eval|\*/.test(headers['content-security-policy']));
		assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
		assert.equal(headers['cache-control'], 'no-cache');
	});
});

test('other origins: allowed ones are told so, others are not', async () => {
	const own = await post(gateway, '/getuser', { token: anna.token }, { headers: { origin: `http://${gateway.host}` } });
	assert.equal(own.headers['access-control-allow-origin'], `http://${gateway.host}`);
	assert.equal(own.headers['access-control-allow-credentials'], 'true');
	for (const origin of ['http://evil.example', 'null', `http://${gateway.host}.evil.example`, `ftp://${gateway.host}`]) {
		const answer = await post(gateway, '/getuser', { token: anna.token }, { headers: { origin } });
		assert.equal(answer.headers['access-control-allow-origin'], undefined, origin);
	}
});
