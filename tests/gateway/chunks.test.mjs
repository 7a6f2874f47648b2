/* Files attached to a sheet: upload, download, ranges, names, limits, and who may. */
import { after, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../lib/cluster.mjs';
import { call, multipart, newSheet, post, register, request, signToken, tokenParts } from '../lib/client.mjs';
import { runAs, waitUntil } from '../lib/processes.mjs';

const maxUpload = 4 << 20;
let cluster;
let gateway;
let anna;
let ben;
let fid;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'max-upload-bytes': maxUpload } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});

const sha256 = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

function upload(bytes, name, { token = anna.token, sheet = fid, type = 'application/octet-stream', fields } = {}) {
	const form = multipart(
		fields ?? [
			['fid', String(sheet)],
			['token', token],
			['uploadfile', bytes, name, type],
		],
	);
	return request(gateway, 'POST', '/uploadchunk', form);
}

async function stored(bytes, name, options) {
	const answer = await upload(bytes, name, options);
	assert.equal(answer.json?.msg, 33, `${answer.status} ${answer.text}`);
	assert.equal(answer.json.success, true);
	return typeof answer.json.data === 'string' ? answer.json.data : answer.json.data.name;
}

function download(name, { headers, token = anna.token, sheet = fid, method = 'GET' } = {}) {
	return request(
		gateway,
		method,
		`/getchunk?fid=${sheet}&chunk=${encodeURIComponent(name)}${token === null ? '' : `&token=${token}`}`,
		{ headers },
	);
}

/** The path of the address that an upload is answered with. */
const pathOf = (answer) => {
	const url = new URL(answer.json.url);
	assert.equal(url.host, `127.0.0.1:${gateway.port}`);
	return url.pathname;
};

const list = (user = anna) => call(gateway, '/getallchunks', { token: user.token, fid }, 34);

describe('round trip', () => {
	test('files of any size up to the limit come back byte by byte', async () => {
		for (const size of [0, 1, 1000, 262143, 262144, 262145, 524288, 3000001]) {
			const bytes = crypto.randomBytes(size);
			const name = await stored(bytes, `file-${size}.bin`);
			const answer = await download(name);
			assert.equal(answer.status, 200);
			assert.equal(Number(answer.headers['content-length']), size);
			assert.equal(sha256(answer.body), sha256(bytes), `${size} bytes`);
			assert.equal(answer.headers['x-content-type-options'], 'nosniff');
			assert.match(answer.headers.etag, /^"[^"]+"$/);
		}
		assert.equal((await list()).length, 8);
	});

	test('a token in the head counts from the start; a field behind a large file is refused', async () => {
		const bytes = crypto.randomBytes(1 << 20);
		const file = ['uploadfile', bytes, 'large.bin', 'application/octet-stream'];
		const [id, token] = [['fid', String(fid)], ['token', anna.token]];
		const send = (fields, headers, query = '') => {
			const form = multipart(fields);
			return request(gateway, 'POST', `/uploadchunk${query}`, { ...form, headers: { ...form.headers, ...headers } });
		};
		const bearer = { authorization: `Bearer ${anna.token}` };
		for (const args of [[[id, token, file]], [[token, id, file]], [[id, file], bearer], [[id, file], {}, `?token=${anna.token}`], [[id, file, token], bearer]]) {
			const { json, text } = await send(...args);
			assert.equal(json?.msg, 33, text);
			assert.equal(sha256((await download(json.data)).body), sha256(bytes));
		}
		for (const args of [[[id, file, token]], [[token, file, id]], [[file, id], bearer]]) {
			const { status, text } = await send(...args);
			assert.equal(status, 400, text);
			assert.match(text, /must stand before the file/);
		}
	});

	test('bytes that look like boundaries, and boundaries that straddle reads', async () => {
		const tricky = Buffer.from(
			['\r\n--', '\r\n-----------', '--', '\r\n\r\n', '\r', '\n--x--\r\n'].join('').repeat(20000),
		);
		const name = await stored(tricky, 'tricky.bin');
		assert.equal(sha256((await download(name)).body), sha256(tricky));
	});

	test('names with blanks, quotes and other scripts come back', async () => {
		for (const name of ['two words.txt', 'naïve 漢字 😀.txt', 'a+b&c=d.txt', "it's.txt"]) {
			const got = await stored(Buffer.from(name), name);
			assert.equal(got, name);
			assert.equal((await download(got)).text, name);
		}
		assert.deepEqual((await list()).sort(), ['a+b&c=d.txt', "it's.txt", 'naïve 漢字 😀.txt', 'two words.txt'].sort());
	});

	test('HEAD has no body; an absent file is 404', async () => {
		const name = await stored(Buffer.from('12345'), 'five.txt');
		const head = await download(name, { method: 'HEAD' });
		assert.equal(head.status, 200);
		assert.equal(head.headers['content-length'], '5');
		assert.equal(head.body.length, 0);
		assert.equal((await download('absent.txt')).status, 404);
	});
});

describe('ranges and validators', () => {
	const bytes = crypto.randomBytes(600000);
	let name;
	beforeEach(async () => {
		name = await stored(bytes, 'ranged.bin');
	});

	test('one range is 206 with exactly those bytes, across parts', async () => {
		for (const [range, first, last] of [
			['0-0', 0, 0],
			['0-9', 0, 9],
			['262140-262150', 262140, 262150],
			['100-', 100, 599999],
			['-7', 599993, 599999],
			['599999-700000', 599999, 599999],
			['0-', 0, 599999],
		]) {
			const answer = await download(name, { headers: { range: `bytes=${range}` } });
			assert.equal(answer.status, 206, range);
			assert.equal(answer.headers['content-range'], `bytes ${first}-${last}/600000`);
			assert.equal(sha256(answer.body), sha256(bytes.subarray(first, last + 1)), range);
		}
		assert.equal((await download(name)).headers['accept-ranges'], 'bytes');
	});

	test('ranges outside are 416; nonsense is ignored', async () => {
		for (const range of ['600000-', '700000-800000', '-0']) {
			const answer = await download(name, { headers: { range: `bytes=${range}` } });
			assert.equal(answer.status, 416, range);
			assert.equal(answer.headers['content-range'], 'bytes */600000');
		}
		for (const range of ['bytes=9-1', 'lines=1-2', 'bytes=a-b', 'bytes=', 'bytes=99999999999999999999-']) {
			const answer = await download(name, { headers: { range } });
			assert.ok(answer.status === 200 || answer.status === 416, `${range}: ${answer.status}`);
		}
	});

	test('If-None-Match is 304; If-Range with another validator sends all', async () => {
		const { etag } = (await download(name)).headers;
		const unchanged = await download(name, { headers: { 'if-none-match': etag } });
		assert.equal(unchanged.status, 304);
		assert.equal(unchanged.body.length, 0);
		assert.equal((await download(name, { headers: { 'if-none-match': '"other"' } })).status, 200);
		assert.equal((await download(name, { headers: { range: 'bytes=0-9', 'if-range': '"other"' } })).status, 200);
		assert.equal((await download(name, { headers: { range: 'bytes=0-9', 'if-range': etag } })).status, 206);
	});
});

describe('write once', () => {
	test('a name that is taken gets a number; the first file stays as it is', async () => {
		const [one, two] = [Buffer.from('the first'), Buffer.from('the second')];
		assert.equal(await stored(one, 'same.png'), 'same.png');
		assert.equal(await stored(two, 'same.png'), 'same (2).png');
		assert.equal((await download('same.png')).text, 'the first');
		assert.equal((await download('same (2).png')).text, 'the second');
	});

	test('uploads of one name at the same time all survive', async () => {
		const names = await Promise.all([...Array(6)].map((_, i) => stored(Buffer.from(`file ${i}`), 'race.txt')));
		assert.equal(new Set(names).size, 6);
		const texts = await Promise.all(names.map(async (name) => (await download(name)).text));
		assert.deepEqual(
			texts.sort(),
			[...Array(6)].map((_, i) => `file ${i}`),
		);
	});

	test('an upload that is broken off leaves nothing', async () => {
		const { body, headers } = multipart([
			['fid', String(fid)],
			['token', anna.token],
			['uploadfile', crypto.randomBytes(500000), 'broken.bin', 'application/octet-stream'],
		]);
		const net = await import('node:net');
		const socket = net.connect(gateway.port, '127.0.0.1');
		socket.on('error', () => {});
		socket.write(
			`POST /uploadchunk HTTP/1.1\r\nHost: ${gateway.host}\r\nContent-Type: ${headers['content-type']}\r\nContent-Length: ${body.length}\r\n\r\n`,
		);
		await new Promise((resolve) => socket.write(body.subarray(0, 400000), resolve));
		await new Promise((resolve) => setTimeout(resolve, 200));
		socket.destroy();
		await new Promise((resolve) => setTimeout(resolve, 300));
		assert.deepEqual(await list(), []);
		assert.equal((await download('broken.bin')).status, 404);
	});
});

describe('the quota', () => {
	after(() => cluster.psql('ALTER DATABASE sheets RESET pg_sheet.file_quota'));

	/** A quota takes effect in new sessions: those of the gateway are ended. */
	async function setQuota(quota) {
		await cluster.psql(`ALTER DATABASE sheets SET pg_sheet.file_quota = '${quota}';
			SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet %'`);
		await waitUntil(async () => (await request(gateway, 'GET', '/healthz')).status === 200, 'the gateway to be connected');
	}

	test('an upload that would exceed it is refused when it begins, with the reason, and leaves nothing', async () => {
		const carl = await register(gateway);
		const own = await newSheet(gateway, carl);
		const put = (bytes, user = carl) => upload(crypto.randomBytes(bytes), 'a.bin', { token: user.token, sheet: own });
		await setQuota('1MB');
		assert.equal((await put(1 << 19)).json.msg, 33);
		const refused = await put((1 << 19) + 3);
		assert.equal(refused.status, 507, refused.text);
		assert.equal(refused.json.success, false);
		assert.match(refused.json.data, /this file of \d+ bytes would exceed the quota/);
		assert.equal((await put(3000000).catch((error) => ({ status: error.code }))).status, 507);
		// A form may end with a line's end or without: two bytes are not known when the file begins.
		assert.equal((await put((1 << 19) - 2)).json.msg, 33, 'what is left');
		assert.equal((await put(3)).status, 507);
		assert.equal((await put(1, ben)).json.msg, 33, "another's is another's");
		assert.equal((await call(gateway, '/getallchunks', { token: carl.token, fid: own }, 34)).length, 3);
		const listed = async () => (await request(gateway, 'GET', '/v2/files', { headers: { authorization: `Bearer ${carl.token}` } })).json;
		const { files, used, quota } = await listed();
		assert.deepEqual([files.length, used, quota], [2, files.reduce((sum, { size }) => sum + size, 0), 1 << 20]);
		await setQuota('0');
		assert.equal((await put(1)).json.msg, 33, '0: no quota');
		assert.deepEqual((({ used, quota }) => [used, quota])(await listed()), [null, null]);
	});

	test('uploads at the same time do not share what is left', async () => {
		const carl = await register(gateway);
		const own = await newSheet(gateway, carl);
		await setQuota('1MB');
		const answers = await Promise.all(
			[...Array(8)].map(() => upload(crypto.randomBytes(300000), 'a.bin', { token: carl.token, sheet: own })),
		);
		assert.equal(answers.filter(({ json }) => json.msg === 33).length, 3);
		assert.equal(answers.filter(({ status }) => status === 507).length, 5);
		assert.equal(await cluster.psql(`SELECT sum(size) FROM sheet.file WHERE uid = ${carl.uid}`), '900000');
		await setQuota('0');
	});
});

describe('refusals', () => {
	test('an upload without a good token, for an unknown sheet, or by somebody without permission', async () => {
		const bytes = Buffer.from('x');
		assert.equal((await upload(bytes, 'a.txt', { token: 'nonsense' })).json.msg, 1);
		assert.equal(
			(
				await upload(bytes, 'a.txt', {
					fields: [
						['fid', String(fid)],
						['uploadfile', bytes, 'a.txt', 'text/plain'],
					],
				})
			).json.msg,
			1,
		);
		assert.equal((await upload(bytes, 'a.txt', { sheet: 999999999 })).json.msg, 14);
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		assert.equal((await upload(bytes, 'a.txt', { token: ben.token })).json.msg, 13);
		assert.deepEqual(await list(), []);
	});

	test('no file is msg 31, a bad fid 32', async () => {
		assert.equal(
			(
				await upload(null, null, {
					fields: [
						['fid', String(fid)],
						['token', anna.token],
					],
				})
			).json.msg,
			31,
		);
		for (const sheet of ['abc', '', '-1', '1.5', '99999999999999999999']) {
			const { json, text } = await upload(Buffer.from('x'), 'a.txt', { sheet });
			assert.ok([32, 14].includes(json?.msg), `${sheet}: ${text}`);
		}
	});

	test('a file before the fields is understood or refused, never stored for nobody', async () => {
		const answer = await upload(null, null, {
			fields: [
				['uploadfile', Buffer.from('x'), 'a.txt', 'text/plain'],
				['fid', String(fid)],
				['token', anna.token],
			],
		});
		assert.ok([33, 32, 1].includes(answer.json?.msg), `${answer.status} ${answer.text}`);
		assert.equal((await list()).length, answer.json.msg === 33 ? 1 : 0);
	});

	test('what is not multipart', async () => {
		for (const [type, body] of [
			['application/json', '{}'],
			['multipart/form-data', 'x'],
			['multipart/form-data; boundary=', 'x'],
			['multipart/form-data; boundary=abc', 'no boundary at all'],
			['multipart/form-data; boundary=abc', '--abc\r\nContent-Disposition: form-data; name="fid"\r\n\r\n1'],
			[`multipart/form-data; boundary=${'b'.repeat(500)}`, 'x'],
			['multipart/form-data; boundary=abc', `--abc\r\n${'X: y\r\n'.repeat(5000)}\r\n--abc--\r\n`],
		]) {
			const answer = await request(gateway, 'POST', '/uploadchunk', {
				headers: { 'content-type': type, 'content-length': body.length },
				body,
			});
			assert.ok(answer.status === 400 || answer.json?.success === false, `${type}: ${answer.status} ${answer.text}`);
		}
		assert.deepEqual(await list(), []);
	});

	test('too large a file is 413 as soon as it is announced, and leaves nothing', async () => {
		const { headers } = multipart([['uploadfile', Buffer.alloc(maxUpload + 100000), 'large.bin', 'text/plain']]);
		const answer = await new Promise((resolve, reject) => {
			const outgoing = http.request(
				{ port: gateway.port, method: 'POST', path: '/uploadchunk', headers, agent: false },
				resolve,
			);
			outgoing.on('error', reject);
			outgoing.flushHeaders(); // The body is never sent.
		});
		assert.equal(answer.statusCode, 413);
		const [text] = await once(answer, 'data');
		assert.match(text.toString(), new RegExp(`max-upload-bytes permits \\(${maxUpload} bytes\\)`));
		answer.destroy();
		// A client that sends all of it regardless may find the connection closed before it reads the answer.
		const sent = await upload(Buffer.alloc(maxUpload + 100000), 'large.bin').catch((error) => ({ status: error.code }));
		assert.ok([413, 'EPIPE', 'ECONNRESET'].includes(sent.status), `${sent.status}`);
		assert.deepEqual(await list(), []);
	});

	test('a name of more than 255 bytes is refused with the reason, and one of 255 is stored', async () => {
		for (const name of ['x'.repeat(256), '漢'.repeat(86), 'x'.repeat(3000)]) {
			const answer = await upload(Buffer.from('x'), name);
			assert.deepEqual([answer.status, answer.json], [400, { success: false, msg: 0, data: 'the name of the file is longer than 255 bytes' }]);
		}
		for (const name of ['x'.repeat(255), '漢'.repeat(85)]) assert.equal((await upload(Buffer.from('x'), name)).json.data, name);
		assert.equal((await list()).length, 2);
	});

	test('names that are paths, empty or strange cannot leave their sheet', async () => {
		for (const name of ['../../../etc/passwd', '..\\..\\x', '/etc/passwd', '..', '.', 'a/b', 'a\u0001b']) {
			const answer = await upload(Buffer.from('x'), name);
			if (answer.json?.msg !== 33) continue;
			assert.ok(!/[/\\\u0000-\u001f]/.test(answer.json.data.name ?? answer.json.data), `stored as ${answer.json.data}`);
			assert.ok(!['..', '.'].includes(answer.json.data));
		}
		for (const name of ['../../etc/passwd', '../1/a.txt', '/etc/passwd', '..%2f..', '', '\u0000']) {
			const answer = await download(name).catch(() => ({ status: 400 })); // %00 may end the connection.
			assert.ok(answer.status === 404 || answer.status === 400, `${JSON.stringify(name)}: ${answer.status}`);
		}
	});

	test('a file of another sheet is not found here', async () => {
		const name = await stored(Buffer.from('here'), 'here.txt');
		const another = await newSheet(gateway, anna);
		assert.equal((await download(name, { sheet: another })).status, 404);
	});

	test('a download needs a token and permission', async () => {
		const name = await stored(Buffer.from('private words'), 'private.txt');
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		for (const token of [null, '', 'nonsense', ben.token]) {
			const answer = await download(name, { token });
			assert.ok(!answer.text.includes('private words'), `token ${token}`);
			assert.ok(
				[401, 403, 404].includes(answer.status) || answer.json?.success === false,
				`token ${token}: ${answer.status}`,
			);
		}
		const answer = await download(name, { token: null, headers: { authorization: `Bearer ${anna.token}` } });
		assert.equal(answer.text, 'private words');
	});

	test('the address in the answer shows the file to who knows it, until the sheet is in the trash', async () => {
		const answer = await upload(Buffer.from('a picture'), 'é 1&2.png');
		const url = pathOf(answer);
		const [, key, name] = url.match(/^\/i\/([0-9a-f]{32})\/([\w.%-]+)$/);
		assert.equal((await request(gateway, 'GET', url)).text, 'a picture');
		const byKey = `/getchunk?fid=${fid}&chunk=${name}&key=${key}`;
		assert.equal((await request(gateway, 'GET', byKey)).text, 'a picture');
		const other = pathOf(await upload(Buffer.from('another'), 'b.png'));
		const otherKey = other.split('/')[2];
		for (const wrong of [
			byKey.replace(key, otherKey),
			byKey.replace(key, ''),
			byKey.replace(key, '0'.repeat(32)),
			byKey.replace(/&key=.*/, ''),
			url.replace(key, otherKey),
			url.replace(key, '0'.repeat(32)),
			url.replace(key, key.toUpperCase()),
			url.replace(key, `${key}0`),
			url.replace(key, 'x'.repeat(500)),
			url.replace(key, ''),
			url.replace(name, 'b.png'),
			url.replace(name, ''),
			`${url}/`,
			`${url}%00`,
			`/i/${key}`,
			`/i/${key}/..%2f${name}`,
			`/i/../i/${key}/%2e%2e/${name}`,
			'/i/',
		]) {
			const refusal = await request(gateway, 'GET', wrong);
			assert.ok([400, 404].includes(refusal.status) || refusal.json?.msg === 1, `${wrong}: ${refusal.status}`);
		}
		const post = await request(gateway, 'POST', url, { body: '' });
		assert.equal(post.status, 405);
		assert.match(post.headers.allow, /^GET, HEAD/);
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		assert.equal((await request(gateway, 'GET', url)).status, 404);
		await call(gateway, '/recoversheet', { token: anna.token, fid }, 25);
		assert.equal((await request(gateway, 'GET', url)).status, 200);
	});

	test('an address anywhere: kept for ever, in parts, and nothing of it runs', async () => {
		const head = (...bytes) => Buffer.concat([Buffer.from(bytes), crypto.randomBytes(1000)]);
		const page = Buffer.from('<!doctype html><script>alert(1)</script>');
		for (const [name, bytes, type] of [
			['a.png', head(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a), 'image/png'],
			['a.jpeg', head(0xff, 0xd8, 0xff, 0xe0), 'image/jpeg'],
			['a.gif', head(...Buffer.from('GIF89a')), 'image/gif'],
			['a.webp', head(...Buffer.from('RIFF    WEBP')), 'image/webp'],
			['a.avif', head(0, 0, 0, 28, ...Buffer.from('ftypavif')), 'image/avif'],
			['page.png', page, null],
			['a.svg', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'), null],
			['page.html', page, null],
		]) {
			// The type that a client names counts for nothing.
			const url = pathOf(await upload(bytes, name, { type: 'image/png' }));
			const answer = await request(gateway, 'GET', url);
			assert.equal(sha256(answer.body), sha256(bytes), name);
			assert.equal(answer.headers['content-type'], type ?? 'application/octet-stream', name);
			assert.equal(answer.headers['content-disposition'], type ? undefined : `attachment; filename*=UTF-8''${name}`);
			assert.equal(answer.headers['content-security-policy'], "default-src 'none'; sandbox");
			assert.equal(answer.headers['x-content-type-options'], 'nosniff');
			assert.equal(answer.headers['cache-control'], 'public, max-age=31536000, immutable');
			assert.equal(answer.headers['set-cookie'], undefined);
			const part = await request(gateway, 'GET', url, { headers: { range: 'bytes=2-5' } });
			assert.equal(part.status, 206);
			assert.deepEqual(part.body, bytes.subarray(2, 6));
			assert.equal((await request(gateway, 'GET', url, { headers: { 'if-none-match': answer.headers.etag } })).status, 304);
			assert.equal((await request(gateway, 'HEAD', url)).headers['content-length'], String(bytes.length));
		}
	});

	test('two pictures of one name have two addresses', async () => {
		const urls = await Promise.all(['one', 'two', 'three'].map(async (text) => [text, pathOf(await upload(Buffer.from(text), 'image.png'))]));
		assert.equal(new Set(urls.map(([, url]) => url)).size, 3);
		for (const [text, url] of urls) assert.equal((await request(gateway, 'GET', url)).text, text);
	});

	test('programs upload in their own forms, with a token for uploads: PicGo, ShareX, curl, and a script as Typora runs it', async () => {
		const { token } = (await request(gateway, 'POST', '/v2/tokens', { headers: { authorization: `Bearer ${anna.token}`, 'content-type': 'application/json' }, body: JSON.stringify({ label: 'programs', scopes: ['upload'], days: 1 }) })).json;
		const kinds = {
			'p.png': ['89504e470d0a1a0a0000000d49484452', 'image/png'],
			'p.jpg': ['ffd8ffe000104a464946000101', 'image/jpeg'],
			'p.webp': ['524946461a000000574542505650384c', 'image/webp'],
			'图 1.svg': [Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('hex'), 'image/svg+xml'],
			'page.png': [Buffer.from('<html><script>1</script></html>').toString('hex'), 'image/png'],
		};
		const shown = { 'p.png': 'image/png', 'p.jpg': 'image/jpeg', 'p.webp': 'image/webp' };
		/** The address opens the bytes; what is no picture is an attachment, whatever it is called. */
		const check = async (url, name, bytes) => {
			const answer = await request(gateway, 'GET', new URL(url).pathname);
			assert.deepEqual([answer.status, answer.headers['content-type']], [200, shown[name] ?? 'application/octet-stream'], name);
			assert.equal(/^attachment/.test(answer.headers['content-disposition'] ?? ''), !(name in shown), name);
			assert.equal(answer.text, bytes.toString(), name);
		};
		/** PicGo 3.1.0 with picgo-plugin-web-uploader 1.1.1: the fields of the user first, no charset, the type by the name. */
		const picgo = (bytes, name, type) => {
			const boundary = '--------------------------14fda007cc8906a6d9f6689e';
			const part = (head, value) => [`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`, value, '\r\n'];
			const parts = [...part('name="fid"', String(fid)), ...part('name="token"', token), ...part(`name="uploadfile"; filename="${name}"\r\nContent-Type: ${type}`, bytes), `--${boundary}--\r\n`];
			const body = Buffer.concat(parts.map((each) => Buffer.from(each)));
			const headers = { accept: 'application/json, text/plain, */*', 'content-type': `multipart/form-data; boundary=${boundary}`, 'user-agent': 'PicGo', 'content-length': body.length };
			return { headers, body };
		};
		/** ShareX with a custom uploader: the token in a header. */
		const sharex = (bytes, name, type) => {
			const boundary = '-----------------------8dd0e4a1b2c3d4e';
			const head = `--${boundary}\r\nContent-Disposition: form-data; name="fid"\r\n\r\n${fid}\r\n--${boundary}\r\nContent-Disposition: form-data; name="uploadfile"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`;
			const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]);
			return { headers: { 'user-agent': 'ShareX/17.0.0', authorization: `Bearer ${token}`, 'content-type': `multipart/form-data; boundary=${boundary}`, 'content-length': body.length }, body };
		};
		const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'upload-'));
		try {
			for (const [name, [hex, type]] of Object.entries(kinds)) {
				const bytes = Buffer.from(hex, 'hex');
				for (const form of [picgo, sharex]) {
					const { json, text } = await request(gateway, 'POST', '/uploadchunk', form(bytes, name, type));
					assert.equal(json?.success, true, text);
					await check(json.url, name, bytes);
				}
				fs.writeFileSync(path.join(directory, name), bytes);
			}
			// Typora takes the last lines of the output, as many as it has files. curl waits for 100 Continue before a large body.
			const script = path.join(directory, 'upload.sh');
			fs.writeFileSync(script, `for file; do curl -fsS -w '\\n' --noproxy '*' -H 'Authorization: Bearer ${token}' -F fid=${fid} -F "uploadfile=@$file" ${gateway.url}/uploadchunk | sed -n 's/.*"url":"\\([^"]*\\)".*/\\1/p'; done\n`);
			const names = Object.keys(kinds);
			fs.chmodSync(directory, 0o755);
			const { code, stdout, stderr } = await runAs('sh', [script, ...names.map((name) => path.join(directory, name))]);
			assert.equal(code, 0, stderr);
			const urls = stdout.trimEnd().split('\n');
			assert.equal(urls.length, names.length, stdout);
			for (const [i, name] of names.entries()) await check(urls[i], name, fs.readFileSync(path.join(directory, name)));
		} finally {
			fs.rmSync(directory, { recursive: true });
		}
		assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1`, { headers: { authorization: `Bearer ${token}` } })).status, 403, 'the token is for uploads');
	});

	test('an account lists what it has uploaded, and deletes it', async () => {
		const cleo = await register(gateway);
		const headers = { authorization: `Bearer ${cleo.token}` };
		const files = async (query = '') => (await request(gateway, 'GET', `/v2/files${query}`, { headers })).json;
		assert.deepEqual(await files(), { files: [], next: null, used: null, quota: null });
		const sheet = await newSheet(gateway, cleo);
		for (let n = 0; n < 3; n++) assert.equal((await upload(Buffer.from(`picture ${n}`), `p${n}.png`, { token: cleo.token, sheet })).json.msg, 33);
		const { files: listed, next } = await files();
		assert.deepEqual(listed.map(({ name, size, fid }) => ({ name, size, fid })), [2, 1, 0].map((n) => ({ name: `p${n}.png`, size: 9, fid: sheet })));
		assert.equal(next, null);
		assert.equal((await request(gateway, 'GET', new URL(listed[1].url).pathname)).text, 'picture 1');
		assert.deepEqual((await files(`?before=${listed[0].id}`)).files.map(({ name }) => name), ['p1.png', 'p0.png']);
		const remove = (id, who = headers) => request(gateway, 'DELETE', `/v2/files/${id}`, { headers: who });
		assert.equal((await remove(listed[1].id, { authorization: `Bearer ${ben.token}` })).status, 404);
		assert.equal((await remove(listed[1].id)).status, 200);
		assert.equal((await remove(listed[1].id)).status, 404);
		assert.equal((await request(gateway, 'GET', new URL(listed[1].url).pathname)).status, 404);
		assert.deepEqual((await files()).files.map(({ name }) => name), ['p2.png', 'p0.png']);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.file_part WHERE upload_id = ${listed[1].id}`), '0');
		assert.equal(await cluster.psql(`SELECT sum(bytes) FROM sheet.file_use u JOIN sheet.account a USING (uid) WHERE a.name = '${cleo.username}'`), '18');
		await call(gateway, '/deletesheet', { token: cleo.token, fid: sheet }, 16);
		const shown = async () => (await files()).files.map(({ name, fid, url }) => [name, fid, url]);
		assert.deepEqual(await shown(), ['p2.png', 'p0.png'].map((name) => [name, sheet, null]));
		assert.equal((await remove(listed[0].id)).status, 200, 'the owner of the sheet, also from the trash');
		// What counts for the quota can be deleted, also when its sheet is not shared with the account any more.
		const other = await newSheet(gateway, ben);
		await cluster.psql(`SELECT sheet.share_link(${other}, NULL)`);
		const role = (role) => cluster.psql(`SELECT sheet.${role ? 'share' : 'unshare'}(${other}, '${cleo.username}'${role ? `, '${role}'` : ''})`);
		await role('editor');
		assert.equal((await upload(Buffer.from('a picture'), 'left.png', { token: cleo.token, sheet: other })).json.msg, 33);
		await role(null);
		assert.deepEqual(await shown(), [['left.png', null, null], ['p0.png', sheet, null]]);
		const [{ id }] = (await files()).files;
		assert.equal((await remove(id, { authorization: `Bearer ${anna.token}` })).status, 404);
		assert.equal((await remove(id)).status, 200);
		assert.deepEqual(await shown(), [['p0.png', sheet, null]]);
	});

	test('who has signed in sees pictures by a cookie that is good for nothing else', async () => {
		const name = await stored(Buffer.from('a picture'), 'a.png');
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		const signIn = async (user, password = user.password) => {
			const answer = await post(gateway, '/login', { username: user.username, password });
			return answer.headers['set-cookie'] ?? [];
		};
		const [cookie] = await signIn(anna);
		assert.match(cookie, /^pg_sheet_files=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
		assert.deepEqual(await signIn(anna, 'a wrong password'), []);
		const headers = { cookie: `a=b; ${cookie.split(';')[0]}; c=d` };
		assert.equal((await download(name, { token: null, headers })).text, 'a picture');
		const [stranger] = await signIn(ben);
		const refused = await download(name, { token: null, headers: { cookie: stranger.split(';')[0] } });
		assert.equal(refused.status, 404);
		const answer = await post(gateway, '/getallchunks', { fid }, { headers });
		assert.equal(answer.json.msg, 1);
		assert.equal((await download(name, { token: null, headers: { ...headers, 'sec-fetch-site': 'same-site' } })).status, 200, 'a page of another gateway');
		for (const foreign of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'http://elsewhere.example' }])
			assert.equal((await download(name, { token: null, headers: { ...headers, ...foreign } })).json.msg, 1);
	});

	test('who has the token only gets the cookie again, with the rest of its life', async () => {
		const name = await stored(Buffer.from('a picture'), 'again.png');
		const own = { origin: gateway.url };
		const key = fs.readFileSync(path.join(cluster.directory, 'jwt.key'), 'utf8').trim().slice(3);
		const sign = (user, left) => {
			const { header, claims } = tokenParts(user.token);
			return signToken(header, { ...claims, iat: claims.iat - 1, exp: Math.floor(Date.now() / 1000) + left }, key);
		};
		const token = sign(anna, 600);
		const form = () => multipart([['fid', String(fid)], ['token', token], ['uploadfile', Buffer.from('x'), 'x.txt', 'text/plain']]);
		const bearer = { authorization: `Bearer ${token}` };
		const asks = [
			(headers) => post(gateway, '/getuser', { token }, { headers }),
			(headers) => post(gateway, '/getsheet', { token, fid }, { headers }),
			(headers) => post(gateway, '/v2/ticket', { fid }, { headers: { ...headers, ...bearer } }),
			(headers) => request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1:B2`, { headers: { ...headers, ...bearer } }),
			(headers) => request(gateway, 'GET', `/getchunk?fid=${fid}&chunk=${name}&token=${token}`, { headers }),
			(headers) => {
				const { body, headers: types } = form();
				return request(gateway, 'POST', '/uploadchunk', { body, headers: { ...headers, ...types } });
			},
		];
		const cookieOf = async (ask, headers) => {
			const answer = await ask(headers);
			assert.equal(answer.status, 200, answer.text);
			const [cookie, ...more] = answer.headers['set-cookie'] ?? [];
			assert.equal(more.length, 0);
			if (cookie) assert.equal(answer.headers['cache-control'], 'no-store');
			return cookie;
		};
		for (const ask of asks) {
			const cookie = await cookieOf(ask, own);
			const [, value, left] = /^pg_sheet_files=([^;]+); Path=\/; HttpOnly; SameSite=Strict; Max-Age=(\d+)$/.exec(cookie);
			assert.equal(value, token);
			assert.ok(left > 500 && left <= 600, left);
			assert.equal((await download(name, { token: null, headers: { cookie: cookie.split(';')[0] } })).text, 'a picture');
			const held = (kept) => ({ ...own, cookie: `a=b; pg_sheet_files=${kept}` });
			assert.equal(await cookieOf(ask, held(token)), undefined, 'it is there');
			assert.equal(await cookieOf(ask, held(ben.token)), undefined, 'somebody else has signed in since');
			for (const kept of [sign(anna, 60), sign(anna, -60), sign(ben, -60), 'x', '']) assert.ok(await cookieOf(ask, held(kept)), kept);
			for (const foreign of [{ origin: 'http://elsewhere.example' }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }])
				assert.equal(await cookieOf(ask, foreign), undefined, JSON.stringify(foreign));
		}
		assert.ok(await cookieOf(asks[0], {}), 'a client that is no browser');
		assert.equal(await cookieOf(asks[3], {}), undefined, 'it may be a picture of any page');
		const refused = await post(gateway, '/getuser', { token: sign(anna, -60) }, { headers: own });
		assert.deepEqual([refused.json.msg, refused.headers['set-cookie']], [1, undefined]);
	});

	test('what a browser would run is not served as a page of ours', async () => {
		for (const [name, type, text] of [
			['page.html', 'text/html', '<script>alert(1)</script>'],
			['image.svg', 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'],
			['fake.png', 'image/png', '<html><script>alert(1)</script>'],
			['page.html', 'text/plain', '<script>alert(1)</script>'],
		]) {
			const got = await stored(Buffer.from(text), name, { type });
			const { headers } = await download(got);
			assert.equal(headers['x-content-type-options'], 'nosniff');
			const harmless =
				!/html|svg|xml/.test(headers['content-type'] ?? '') ||
				/^attachment/.test(headers['content-disposition'] ?? '') ||
				/sandbox/.test(headers['content-security-policy'] ?? '');
			assert.ok(harmless, `${name} as ${type}: ${JSON.stringify(headers)}`);
		}
	});
});
