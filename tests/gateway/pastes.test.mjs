/*
 * pastes.test.mjs - pastes by HTTP: what pastebinit and ab send, sizes, ends, what operators hide, limits by address, and the
 * copies that a gateway keeps.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { post, register, request } from '../lib/client.mjs';
import { RawConnection } from '../lib/raw.mjs';

let cluster;
let gateway;
let anna;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'trusted-proxies': '127.0.0.1', 'anonymous-pastes': 'everybody', 'pastes-per-address': 20 }, postgres: { fsync: 'off' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
});
after(() => cluster?.stop());

const form = (fields) => new URLSearchParams(fields).toString();
const paste = (fields, headers = {}) =>
	request(gateway, 'POST', '/paste', { headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers }, body: form(fields) });
const get = (path, headers = {}) => request(gateway, 'GET', path, { headers });
const made = async (content, more = {}) => {
	const answer = await post(gateway, '/record', { content, ...more });
	assert.equal(answer.status, 200, answer.text);
	return answer.json.key;
};
const from = (address) => ({ 'x-forwarded-for': address });
const bearer = (user) => ({ authorization: `Bearer ${user.token}` });
const csv = 'name,"a ""quoted"" text"\r\n"two\r\nlines",=A1+1\n\tä&ö=ü%41+ 表 🙂,\u007f\u0001\r\n';
/** What two answers must have in common so that nobody can tell them apart. */
const shown = ({ status, headers, text }) => {
	const { date, 'x-request-id': id, ...rest } = headers;
	return { status, rest, text: text.replace(id, '') };
};

test('pastebinit: its request, byte by byte, is answered with the address of the paste', async () => {
	const body = `poster=bob&title=title1&content=${encodeURIComponent(csv).replaceAll('%20', '+')}&syntax=csv&expiry_days=1`;
	const connection = await RawConnection.open(gateway);
	connection.send(
		`POST /paste HTTP/1.1\r\nAccept-Encoding: identity\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
			`Content-Length: ${body.length}\r\nHost: 127.0.0.1:${gateway.port}\r\nUser-Agent: Pastebinit v1.6.2\r\nConnection: close\r\n\r\n${body}`,
	);
	const answer = await connection.answer();
	assert.equal(answer.status, 200, answer.text);
	assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8');
	assert.match(answer.text, new RegExp(`^http://127\\.0\\.0\\.1:${gateway.port}/p/[a-z2-7]{26}\n$`));
	const path = new URL(answer.text.trim()).pathname;
	const got = await get(path);
	assert.equal(got.status, 200);
	assert.equal(got.text, csv);
	const record = (await get(path.replace('/p/', '/record/'))).json;
	assert.deepEqual([record.title, record.lang, record.content, record.expiration, record.view_count], ['title1', 'csv', csv, 86400, 2]);
	assert.ok(Math.abs(record.saving_time - Date.now() / 1000) < 600);
	const json = await post(gateway, '/paste', { content: csv, title: 'by post_format=json' }, { headers: { 'content-type': 'text/json' } });
	assert.equal((await get(new URL(json.text.trim()).pathname)).text, csv);
});

test('a paste is plain text in a sandbox, which a browser keeps for less than its life', async () => {
	const id = await made('<script>alert("twenty bytes")</script>', { expiration: 30 });
	const got = await get(`/p/${id}`);
	assert.equal(got.text, '<script>alert("twenty bytes")</script>');
	assert.equal(got.headers['content-type'], 'text/plain; charset=utf-8');
	assert.equal(got.headers['x-content-type-options'], 'nosniff');
	assert.equal(got.headers['content-security-policy'], "sandbox; default-src 'none'");
	const age = Number(/^private, max-age=(\d+)$/.exec(got.headers['cache-control'])[1]);
	assert.ok(age < 30, got.headers['cache-control']);
	const again = await get(`/p/${id}`, { 'if-none-match': got.headers.etag });
	assert.deepEqual([again.status, again.text], [304, '']);
	const head = await request(gateway, 'HEAD', `/p/${id}`);
	assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', got.headers['content-length']]);
});

test('20 bytes to 32 kB, of UTF-8', async () => {
	const content = (size) => crypto.randomBytes(size).toString('latin1').replace(/[^\n-~]/g, '%').padEnd(size, 'x');
	for (const [size, status] of [[19, 400], [20, 200], [32768, 200], [32769, 413], [70000, 413]]) {
		for (const send of [(text) => paste({ content: text }), (text) => post(gateway, '/record', { content: text })]) {
			const text = content(size);
			const answer = await send(text);
			assert.equal(answer.status, status, `${size}: ${answer.text}`);
			if (status === 200) assert.equal((await get(`/p/${answer.json?.key ?? answer.text.trim().split('/').pop()}`)).text, text);
		}
	}
	// escapes make it no larger; what cannot be a paste is refused by its length
	assert.equal((await post(gateway, '/record', `{"content":"${'\\u0001'.repeat(32768)}"}`)).status, 200);
	for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
		const answer = await request(gateway, 'POST', '/paste', { headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers }, body: `content=${'%41'.repeat(90000)}` }).catch((error) => error);
		assert.equal(answer.status ?? 413, 413, answer.text);
	}
	for (const body of ['content=%ff%fe' + 'x'.repeat(30), 'content=twenty+bytes+%00+of+a+text', 'content=twenty+bytes+of+%4', 'content=twenty+bytes+of+%zz', 'title=x', '', 'content=twenty+bytes+of+a+text\0'])
		assert.equal((await request(gateway, 'POST', '/paste', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body })).status, 400, body);
	const sharp = await request(gateway, 'POST', '/paste', { body: 'x=1&content=raw\nlines & no type of content' });
	assert.equal(sharp.status, 400, 'an & ends the content');
});

test('the end: one that is no end is refused, and a paste that has ended is not there', async () => {
	const content = 'twenty bytes of text';
	for (const days of ['0', '8', '-1', '1.5', 'x', ' 1']) assert.equal((await paste({ content, expiry_days: days })).status, 400, days);
	for (const days of ['', '1', '7']) assert.equal((await paste({ content, expiry_days: days })).status, 200, days);
	for (const expiration of [0, 604801, 1.5, '60', -1, true]) assert.equal((await post(gateway, '/record', { content, expiration })).status, 400, String(expiration));
	for (const field of [{ title: 'x'.repeat(201) }, { title: 'a\nb' }, { title: 1 }, { lang: '<b>' }]) assert.equal((await post(gateway, '/record', { content, ...field })).status, 400);
	const id = await made(content, { expiration: 2 });
	const end = await cluster.psql(`SELECT extract(epoch FROM expires_at) * 1000 FROM sheet.paste_get('${id}', 0)`);
	let last;
	let served = 0;
	await waitUntil(async () => {
		const asked = Date.now();
		last = await get(`/p/${id}`);
		if (last.status === 200) {
			served++;
			assert.ok(asked < Number(end), 'it was served after its end');
		}
		return last.status === 404;
	}, 'its end');
	assert.ok(served > 0 && Date.now() >= Number(end) - 5, 'nor did it end earlier');
	assert.deepEqual(shown(last), shown(await get(`/p/${'a'.repeat(26)}`)));
	assert.equal((await get(`/p/${id}.html`)).status, 404);
});

test('an unknown, malformed, ended, blocked or deleted id has the same answer', async () => {
	const content = 'twenty bytes of text';
	const [blocked, deleted] = [await made(content), await made(content)];
	for (const id of [blocked, deleted]) assert.equal((await get(`/p/${id}`)).text, content);
	assert.equal(await cluster.psql(`SELECT sheet.paste_block('${blocked}')::text || sheet.paste_delete('${deleted}')`), 'truetrue');
	for (const id of [blocked, deleted]) {
		// while the gateway's copy is asked for all the time
		await waitUntil(async () => (await get(`/p/${id}`)).status === 404, 'the gateway to notice', 3000, 1);
		for (const path of ['/p/', '/record/']) {
			const unknown = await get(`${path}${'a'.repeat(26)}`);
			assert.equal(unknown.status, 404);
			for (const other of [id, 'x', '', 'A'.repeat(26), `${id}a`, `${id}/`, `..%2f${id}`, '1'.repeat(26), `${'a'.repeat(25)}b`]) {
				if (path === '/record/' && other === '') continue;
				assert.deepEqual(shown(await get(path + other)), shown(unknown), path + other);
			}
		}
	}
	// The page is the same, with the status of a missing one, also if the browser has it or wants a part.
	const missing = [blocked, deleted, 'x', '', 'A'.repeat(26), `${'a'.repeat(25)}b`, `${blocked}a`];
	const page = await get(`/p/${await made(content)}.html`);
	assert.equal(page.status, 200);
	assert.match(page.headers['content-type'], /^text\/html/);
	for (const headers of [{}, { 'if-none-match': page.headers.etag }, { range: 'bytes=0-9' }])
		for (const id of missing) {
			const { status, text, headers: given } = await get(`/p/${id}.html`, headers);
			assert.deepEqual([status, text, given.etag, given['content-security-policy']], [404, page.text, undefined, page.headers['content-security-policy']], id);
		}
	assert.equal((await get(`/p/${await made(content)}.html`, { 'if-none-match': page.headers.etag })).status, 304);
	assert.equal(await cluster.psql(`SELECT sheet.paste_block('${blocked}', false)`), 't');
	assert.equal((await get(`/p/${blocked}`)).text, content);
	assert.equal((await get(`/p/${blocked}.html`)).status, 200);
});

test('ids cannot be guessed: neighbours of one, and a thousand others, are unknown', async () => {
	const ids = await Promise.all(Array.from({ length: 20 }, () => made('twenty bytes of text')));
	assert.equal(new Set(ids.map((id) => id.slice(0, 8))).size, 20, 'they have no beginning in common');
	const digits = 'abcdefghijklmnopqrstuvwxyz234567';
	const guesses = Array.from({ length: 1000 }, (_, i) =>
		i < 600
			? ids[i % 20].slice(0, i % 26) + digits[(digits.indexOf(ids[i % 20][i % 26]) + 1 + (i % 31)) % 32] + ids[i % 20].slice((i % 26) + 1)
			: Array.from(crypto.randomBytes(26), (byte) => digits[byte % 32]).join(''),
	);
	for (let i = 0; i < guesses.length; i += 50) {
		const answers = await Promise.all(guesses.slice(i, i + 50).map((id) => get(`/p/${id}`)));
		assert.deepEqual(answers.map(({ status }) => status), Array(50).fill(404));
	}
});

test('views are counted, also those of the copies that the gateway keeps', async () => {
	const id = await made('twenty bytes of text');
	const views = async () => Number(await cluster.psql(`SELECT views FROM sheet.paste_get('${id}', 0)`));
	for (let i = 0; i < 200; i++) assert.equal((await get(`/p/${id}`)).status, 200);
	await request(gateway, 'HEAD', `/p/${id}`);
	await waitUntil(async () => (await views()) === 200, async () => `${await views()} of 200 views`);
	for (let i = 0; i < 3; i++) await get(`/p/${id}`);
	assert.equal((await get(`/record/${id}`)).json.view_count, 204);
});

test('methods: 405 with Allow', async () => {
	for (const [method, path, allow] of [
		['GET', '/paste', 'POST'],
		['PUT', '/paste', 'POST'],
		['GET', '/record', 'POST'],
		['DELETE', '/record', 'POST'],
		['POST', `/record/${'a'.repeat(26)}`, 'GET'],
		['POST', `/p/${'a'.repeat(26)}`, 'GET'],
		['DELETE', `/p/${'a'.repeat(26)}`, 'GET'],
	]) {
		const answer = await request(gateway, method, path, { headers: { 'content-length': 0 } });
		assert.equal(answer.status, 405, `${method} ${path}`);
		assert.ok(answer.headers.allow.split(', ').includes(allow), `${method} ${path}: ${answer.headers.allow}`);
	}
});

test('ab: HTTP/1.0, with and without keep-alive', async () => {
	for (const keep of ['', 'Connection: Keep-Alive\r\n']) {
		const body = JSON.stringify({ content: 'twenty bytes of text' });
		const writer = await RawConnection.open(gateway);
		writer.send(`POST /record HTTP/1.0\r\n${keep}Content-length: ${body.length}\r\nContent-type: text/plain\r\nHost: 127.0.0.1\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n${body}`);
		const { json } = await writer.answer();
		const reader = await RawConnection.open(gateway);
		for (let i = 0; i < (keep ? 3 : 1); i++) {
			reader.send(`GET /p/${json.key} HTTP/1.0\r\n${keep}Host: 127.0.0.1\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n`);
			const got = await reader.answer();
			assert.deepEqual([got.status, got.text, got.headers.connection], [200, 'twenty bytes of text', keep ? 'keep-alive' : 'close']);
		}
	}
});

test('an address and an account have a number of pastes a minute, by their size; loopback has no limit', async () => {
	const small = { content: 'twenty bytes of text' };
	const statuses = async (count, fields, headers) => {
		const answers = [];
		for (let i = 0; i < count; i++) answers.push(await paste(fields, headers));
		return answers;
	};
	const answers = await statuses(21, small, from('198.51.100.1'));
	assert.deepEqual(answers.map(({ status }) => status), [...Array(20).fill(200), 429]);
	assert.match(answers[20].headers['retry-after'], /^[1-9]\d*$/);
	const large = await statuses(4, { content: 'x'.repeat(28000) }, from('198.51.100.2'));
	assert.deepEqual(large.map(({ status }) => status), [200, 200, 429, 429], 'seven times 4 kB each');
	assert.equal((await paste(small, from('198.51.100.3'))).status, 200, 'another address has its own');
	assert.equal((await paste(small, from('2001:db8::1'))).status, 200);
	for (const last of ['2', '3']) await statuses(10, small, from(`2001:db8::${last}`));
	assert.equal((await paste(small, from('2001:db8::4'))).status, 429, 'a network of IPv6 is one');
	const signedIn = await statuses(21, small, { ...bearer(anna), ...from('198.51.100.1') });
	assert.deepEqual(signedIn.map(({ status }) => status), [...Array(20).fill(200), 429], 'an account has its own');
	assert.deepEqual((await statuses(30, small)).map(({ status }) => status), Array(30).fill(200));
});

test('without a token: nobody, this machine, or everybody, and no page of another site', async () => {
	const content = 'twenty bytes of text';
	assert.equal((await paste({ content }, { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' })).status, 403);
	assert.equal((await paste({ content }, { authorization: 'Bearer nonsense' })).status, 401, 'a token that is shown must be valid');
	for (const [setting, local, remote] of [
		['none', 401, 401],
		['loopback', 200, 401],
	]) {
		await gateway.stop();
		await gateway.start({ 'anonymous-pastes': setting });
		assert.equal((await paste({ content })).status, local, setting);
		assert.equal((await paste({ content }, from('198.51.100.9'))).status, remote, setting);
		assert.equal((await paste({ content }, { host: 'rebound.evil.test' })).status, 401, 'a name that is not ours');
		assert.equal((await paste({ content }, { ...bearer(anna), ...from('198.51.100.9') })).status, 200, 'an account may');
		assert.equal((await post(gateway, '/record', { content, token: anna.token }, { headers: from('198.51.100.9') })).status, 200, 'by a member, too');
	}
	await gateway.stop();
	await gateway.start({ 'trusted-proxies': '' });
	assert.equal((await paste({ content }, from('127.0.0.1'))).status, 401, 'forwarded by a proxy that is not trusted');
});

test('without memory for pastes there are none', async () => {
	await cluster.psql(`ALTER SYSTEM SET pg_sheet.paste_memory = 0`);
	await cluster.restartPostgres('fast');
	await waitUntil(async () => (await post(gateway, '/record', { content: 'twenty bytes of text', token: anna.token })).status === 501, 'the gateway to be connected again');
	assert.equal((await get(`/p/${'a'.repeat(26)}`)).status, 404);
	assert.equal((await get(`/record/${'a'.repeat(26)}`)).status, 404);
});
