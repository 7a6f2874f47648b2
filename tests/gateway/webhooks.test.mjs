/* Webhooks: what receivers get, in which order, after which failures, and where gateways do not send. */
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register, request } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let tlsFiles;

before(async () => {
	// 127.0.0.1 and 127.0.0.9 are permitted; every other special address is not.
	cluster = await Cluster.start({ gateways: 0, coordinator: 'zookeeper', gatewayFlags: { 'webhook-networks': '127.0.0.1, 127.0.0.9, ::1' } });
	tlsFiles = makeCertificates(cluster.directory);
	for (let i = 0; i < 2; i++) await cluster.addGateway({}, { env: { SSL_CERT_FILE: tlsFiles.trusted.certificate, http_proxy: '127.0.0.1:1', socks_proxy: '127.0.0.1:1' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
});
after(() => cluster?.stop());

const open = [];
afterEach(async () => {
	await cluster.psql('UPDATE sheet.webhook SET state = \'paused\', next_at = NULL');
	for (const server of open.splice(0)) {
		server.closeAllConnections?.();
		for (const socket of server.sockets ?? []) socket.destroy();
		server.close();
	}
});

/** Certificates for localhost that sign themselves; gateways of the test trust the first one. */
function makeCertificates(directory) {
	const make = (name, subject) => {
		const [certificate, key] = [`${name}.crt`, `${name}.key`].map((file) => path.join(directory, file));
		execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', `/CN=${subject}`, '-addext', `subjectAltName=DNS:${subject}`, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
		fs.chmodSync(certificate, 0o644);
		return { certificate, cert: fs.readFileSync(certificate), key: fs.readFileSync(key) };
	};
	const [trusted, other, unknown] = [make('trusted', 'localhost'), make('other', 'example.org'), make('unknown', 'localhost')];
	fs.appendFileSync(trusted.certificate, other.cert); // known, but of another host
	return { trusted, other, unknown };
}

/**
 * A server that keeps what it gets. answer(request) may return a status, [status, headers], or null: no answer. close():
 * listen again on the same port with again().
 */
async function receiver(answer = () => 200, { host = '127.0.0.1', port = 0, credentials } = {}) {
	const got = [];
	const handle = (request, response) => {
		const chunks = [];
		request.on('error', () => {});
		request.on('data', (chunk) => chunks.push(chunk));
		request.on('end', () => {
			const text = Buffer.concat(chunks).toString();
			const one = { method: request.method, url: request.url, headers: request.headers, text, json: JSON.parse(text), at: Date.now() };
			got.push(one);
			const result = answer(one, response);
			if (result === null) return;
			const [status, headers] = Array.isArray(result) ? result : [result, {}];
			response.writeHead(status, headers);
			response.end('answer');
		});
	};
	const server = credentials ? https.createServer(credentials, handle) : http.createServer(handle);
	await new Promise((resolve) => server.listen(port, host, resolve));
	open.push(server);
	const own = { server, got, port: server.address().port };
	own.url = `${credentials ? 'https' : 'http'}://${credentials ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${own.port}/hook?a=b`;
	own.changes = () => got.filter((one) => one.json.event === 'changes');
	own.stop = () => {
		server.closeAllConnections();
		return new Promise((resolve) => server.close(resolve));
	};
	own.again = () => new Promise((resolve) => server.listen(own.port, host, resolve));
	return own;
}

/** A server of bytes: answers each connection's request with these. */
async function rawReceiver(answer, host = '127.0.0.1') {
	const own = { connections: 0, requests: 0 };
	const server = net.createServer((socket) => {
		own.connections++;
		server.sockets.add(socket);
		socket.on('error', () => {});
		let text = '';
		socket.on('data', (data) => {
			text += data;
			if (!text.includes('\r\n\r\n') || socket.asked) return;
			socket.asked = true;
			own.requests++;
			answer(socket);
		});
	});
	server.sockets = new Set();
	open.push(server);
	await new Promise((resolve) => server.listen(0, host, resolve));
	own.url = `http://${host}:${server.address().port}/`;
	return own;
}

function api(method, route, body, { token = anna.token, at = gateway } = {}) {
	const text = body === undefined ? undefined : JSON.stringify(body);
	return request(at, method, route, { headers: { authorization: `Bearer ${token}`, ...(text ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}) }, body: text });
}
async function hook(url, { fid, user = anna } = {}) {
	fid ??= await newSheet(gateway, user, { rows: 100 });
	const answer = await api('POST', `/v2/sheets/${fid}/webhooks`, { url }, { token: user.token });
	assert.equal(answer.status, 201, answer.text);
	return { fid, ...answer.json };
}
/** Webhooks of as many sheets, made one after another: five such statements of an account at once can be one too many. */
async function hookMany(count, url) {
	const made = [];
	while (made.length < count) made.push(await hook(url));
	return made;
}
/** The gateway that serves the sheet. */
async function ownerOf(fid) {
	const { json } = await api('GET', `/v2/sheets/${fid}/route`);
	return cluster.gateways.find((one) => one.host === new URL(json.ws ?? json.url).host);
}
const list = async (fid) => (await api('GET', `/v2/sheets/${fid}/webhooks`)).json.webhooks;
const edit = (fid, content, ref = 'A1') => cluster.psql(`SELECT sheet.set(${fid}, '${ref}', '${content}')`).then(Number);
/** The webhook's next attempt is due now, whatever it waits for. */
const hurry = (webhook) => cluster.psql(`UPDATE sheet.webhook SET next_at = now() WHERE webhook_id = ${webhook} AND leased_until IS NULL AND next_at IS NOT NULL`);
const delivered = (hooked, seq) => waitUntil(async () => (await list(hooked.fid))[0].deliveredSeq >= seq, `seq ${seq} delivered`, 60000);
const state = async (hooked) => (await list(hooked.fid))[0];

/** As receivers verify; the example in docs/PROTOCOL.md. */
function verify(secret, header, text) {
	const { t, v1 } = Object.fromEntries(header.split(',').map((part) => part.split('=')));
	const own = crypto.createHmac('sha256', secret).update(`${t}.${text}`).digest('hex');
	return Math.abs(Date.now() / 1000 - Number(t)) < 300 && crypto.timingSafeEqual(Buffer.from(own), Buffer.from(v1));
}

describe('what a receiver gets', () => {
	test('edits of gateways and of SQL, signed; a ping', async () => {
		const to = await receiver();
		const hooked = await hook(to.url);
		const editor = await Editor.open(await ownerOf(hooked.fid), anna, hooked.fid);
		editor.modify(1, 2, 'größe "1"');
		await waitUntil(() => to.got.length > 0, 'a request');
		const [first] = to.got;
		assert.equal(first.method, 'POST');
		assert.equal(first.url, '/hook?a=b');
		assert.equal(first.headers.host, `127.0.0.1:${to.port}`);
		assert.equal(first.headers['content-type'], 'application/json');
		assert.match(first.headers['user-agent'], /^pg_sheet\/\d/);
		assert.equal(first.headers['x-pg-sheet-event'], 'changes');
		assert.match(first.headers['x-pg-sheet-delivery'], new RegExp(`^${hooked.webhook}-\\d+$`));
		assert.ok(verify(hooked.secret, first.headers['x-pg-sheet-signature'], first.text));
		assert.ok(!verify('whsec_other', first.headers['x-pg-sheet-signature'], first.text));
		const { edits, title, ...rest } = first.json;
		assert.deepEqual(rest, { event: 'changes', webhook: hooked.webhook, sheet_id: hooked.fid, from_seq: edits[0].seq, to_seq: edits[0].seq, truncated: false });
		assert.equal(typeof title, 'string');
		const { at, ...cell } = edits[0];
		assert.ok(Math.abs(Date.parse(at) - Date.now()) < 120000, at);
		assert.deepEqual(cell, { seq: rest.from_seq, kind: 'set', row: 1, col: 2, a1: 'C2', content: 'größe "1"', uid: cell.uid, username: anna.username });
		const seq = await edit(hooked.fid, 'by SQL', 'B7');
		await delivered(hooked, seq);
		assert.deepEqual(to.got.at(-1).json.edits.map(({ a1, content, username }) => [a1, content, username]), [['B7', 'by SQL', null]]);
		assert.equal(to.got.at(-1).json.to_seq, seq);
		assert.equal((await api('POST', `/v2/sheets/${hooked.fid}/webhooks/test/${hooked.webhook}`)).status, 200);
		await waitUntil(() => to.got.at(-1).json.event === 'ping', 'a ping');
		assert.equal(to.got.at(-1).headers['x-pg-sheet-event'], 'ping');
		assert.ok(verify(hooked.secret, to.got.at(-1).headers['x-pg-sheet-signature'], to.got.at(-1).text));
		editor.close?.();
	});

	test('a burst is coalesced to one request a second, in order, and nothing is sent twice by two gateways', async () => {
		const to = await receiver();
		const hooked = await hook(to.url);
		const before = (await state(hooked)).deliveredSeq;
		let seq;
		for (let i = 0; i < 60; i++) seq = await edit(hooked.fid, `edit ${i}`);
		await delivered(hooked, seq);
		const all = to.changes();
		const span = all.at(-1).at - all[0].at;
		assert.ok(all.length <= 2 + span / 900, `${all.length} requests in ${span} ms`);
		let next = before + 1;
		for (const { json } of all) {
			assert.equal(json.from_seq, next);
			next = json.to_seq + 1;
		}
		assert.equal(next, seq + 1);
		assert.deepEqual(all.flatMap(({ json }) => json.edits.map((one) => one.content)), Array.from({ length: 60 }, (_, i) => `edit ${i}`));
		const sent = await Promise.all(cluster.gateways.map(async (one) => (await one.metrics())['pg_sheet_webhook_requests_total{outcome="delivered"}']));
		assert.ok(sent[0] + sent[1] >= all.length, String(sent));
	});

	test('more edits than a request may have: the first thousand, and truncated', async () => {
		const to = await receiver();
		const hooked = await hook(to.url);
		await cluster.psql(`UPDATE sheet.webhook SET next_at = now() + interval '1 h' WHERE webhook_id = ${hooked.webhook}`);
		const seq = Number(await cluster.psql(`SELECT sheet.set_range(${hooked.fid}, 'A1', (SELECT array_agg(ARRAY[i::text, 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) FROM generate_series(1, 100) i)), sheet.set(${hooked.fid}, 'A1', 'more')`.replace(/^SELECT (.*), (sheet.set\(.*)$/s, 'SELECT $1; SELECT $2')).then((text) => text.trim().split('\n').at(-1)));
		await hurry(hooked.webhook);
		await delivered(hooked, seq);
		const { json } = to.got.at(-1);
		assert.equal(json.to_seq, seq);
		assert.equal(json.truncated, true);
		assert.equal(json.edits.length, 1000);
	});
});

describe('failures', () => {
	test('a receiver that is down gets everything later, in one piece', async () => {
		const to = await receiver();
		const hooked = await hook(to.url);
		await to.stop();
		const first = await edit(hooked.fid, 'while down');
		await waitUntil(async () => (await state(hooked)).failures > 0, 'a failure');
		const failed = await state(hooked);
		assert.equal(failed.state, 'active');
		assert.equal(failed.status, null);
		assert.equal(failed.error, 'it could not be connected to');
		assert.ok(Date.parse(failed.nextAt) > Date.parse(failed.sentAt));
		const last = await edit(hooked.fid, 'still down');
		await to.again();
		await hurry(hooked.webhook);
		await delivered(hooked, last);
		assert.equal(to.got.at(-1).json.from_seq, first);
		assert.equal((await state(hooked)).failures, 0);
	});

	test('refusals are repeated later, 410 ends the webhook, redirects are not followed', async () => {
		const elsewhere = await receiver();
		let status = 500;
		const to = await receiver(() => (status === 302 ? [302, { location: elsewhere.url }] : status === 503 ? [503, { 'retry-after': '1800' }] : status));
		const hooked = await hook(to.url);
		const seq = await edit(hooked.fid, 'x');
		for (const [next, error] of [[500, 'the answer was 500'], [302, 'the answer was 302; redirects are not followed'], [404, 'the answer was 404'], [503, 'the answer was 503']]) {
			status = next;
			const { failures } = await state(hooked);
			await hurry(hooked.webhook);
			await waitUntil(async () => (await state(hooked)).status === next, `status ${next}`);
			const now = await state(hooked);
			assert.ok(now.failures >= failures);
			assert.equal(now.error, error);
		}
		const later = await state(hooked);
		assert.ok(Date.parse(later.nextAt) - Date.parse(later.sentAt) >= 1799000);
		assert.equal(elsewhere.got.length, 0);
		status = 410;
		await hurry(hooked.webhook);
		await waitUntil(async () => (await state(hooked)).state === 'disabled', 'disabled');
		assert.equal((await state(hooked)).disabledReason, 'the receiver answered 410 Gone');
		assert.equal((await api('POST', `/v2/sheets/${hooked.fid}/webhooks/test/${hooked.webhook}`)).status, 409);
		status = 200;
		assert.equal((await api('PATCH', `/v2/sheets/${hooked.fid}/webhooks/${hooked.webhook}`, { active: true })).status, 200);
		await delivered(hooked, seq);
		assert.ok(to.changes().every(({ json }) => json.from_seq === seq && json.to_seq === seq));
	});

	test('a receiver that never answers, and one whose answer never ends, delay nobody', async () => {
		const others = '127.0.0.9'; // a gateway sends at most four requests to a host at a time
		const silent = await rawReceiver(() => {});
		const endless = await rawReceiver((socket) => {
			socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
			const more = () => socket.destroyed || (socket.write(`400\r\n${'x'.repeat(1024)}\r\n`), setImmediate(more));
			more();
		}, others);
		const good = await receiver(undefined, { host: others });
		const slow = await hookMany(6, silent.url);
		const [long, quick] = [await hook(endless.url), await hook(good.url)];
		for (const { fid } of slow) await edit(fid, 'x');
		await waitUntil(() => silent.requests >= 4, 'four requests at a time');
		const started = Date.now();
		await delivered(long, await edit(long.fid, 'x'));
		await delivered(quick, await edit(quick.fid, 'x'));
		assert.ok(Date.now() - started < 9000, 'sooner than the others end');
		const lag = (await gateway.metrics())['pg_sheet_loop_lag_microseconds'];
		assert.ok(lag < 2e6, `${lag}`);
		assert.ok(silent.requests <= 8, 'at most four to a host, of each gateway');
		await waitUntil(async () => (await state(slow[0])).failures > 0, 'the time limit');
		assert.equal((await state(slow[0])).error, 'there was no answer in time');
	});

	test('an account with 200 webhooks that are due, of which none is answered, delays no other account', async () => {
		const [ben, silent] = [await register(gateway), await rawReceiver(() => {})];
		const good = await receiver(undefined, { host: '127.0.0.9' });
		const [many, other] = [await hook(silent.url), await hook(good.url, { user: ben })];
		const seq = await edit(other.fid, 'x');
		await edit(many.fid, 'x');
		await cluster.psql(`UPDATE sheet.webhook SET next_at = NULL WHERE webhook_id = ${other.webhook};
			INSERT INTO sheet.webhook (sheet_id, url, created_by, delivered_seq, next_at) SELECT sheet_id, url, created_by, 0, now() - interval '1 h'
			FROM sheet.webhook, generate_series(1, 200) WHERE webhook_id = ${many.webhook}`);
		await waitUntil(() => silent.requests >= 4, 'four requests at a time');
		const postponed = async () => (await Promise.all(cluster.gateways.map((one) => one.metrics()))).reduce((sum, one) => sum + one['pg_sheet_webhook_requests_total{outcome="postponed"}'], 0);
		const [before, started] = [await postponed(), Date.now()];
		await edit(other.fid, 'y');
		await waitUntil(() => good.got.some(({ json }) => json.to_seq > seq), "the other account's");
		assert.ok(Date.now() - started < 9000, 'before the first request to the silent receiver ends');
		assert.equal(await postponed(), before, 'nothing is taken that is not sent');
	});

	test('answers that are not HTTP end the attempt, and not the gateway', async () => {
		const answers = [
			'garbage\r\n\r\n', 'HTTP/1.1 \r\n\r\n', 'HTTP/1.1 99 x\r\n\r\n', 'HTTP/1.1 200\r\n\r\n', 'HTTP/9.9 200 OK\r\n\r\n', '\r\n\r\n', '\0\0\0\0\r\n\r\n', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
			'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx',
			'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', `HTTP/1.1 200 OK\r\nX-Long: ${'y'.repeat(70000)}\r\n\r\n`, `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(20000)}\r\n`, 'HTTP/1.1 200 OK\r\nno colon\r\n\r\n', 'HTTP/1.1 200 OK\r\n: empty\r\n\r\n',
			'HTTP/1.1 200 OK\nContent-Length: 0\n\n', 'HTTP/1.1 204 No Content\r\n\r\n', 'HTTP/1.1 301 Moved\r\n\r\n', 'HTTP/1.1 301 Moved\r\nLocation: \r\n\r\n', 'HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.2:1/\r\n\r\n', 'HTTP/1.1 200 OK\r\nX-Auth: 1\r\nConnection: close\r\n\r\n',
			'HTTP/1.0 200 OK\r\n\r\n', '', 'H', 'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="x"\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nConnection: keep-alive\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
		];
		const pids = cluster.gateways.map((one) => one.service.pid);
		let turn = 0;
		let now;
		const to = await rawReceiver((socket) => (now = answers[turn], socket.end(now)));
		const hooked = await hook(to.url);
		const outcomes = {};
		for (; turn < answers.length; turn++) {
			const { requests } = to;
			await edit(hooked.fid, `${turn}`);
			await waitUntil(async () => {
				await hurry(hooked.webhook);
				return to.requests > requests;
			}, `a request for ${JSON.stringify(answers[turn].slice(0, 60))}`);
			await waitUntil(async () => (await cluster.psql(`SELECT leased_until IS NULL FROM sheet.webhook WHERE webhook_id = ${hooked.webhook}`)) === 't', 'its end', 40000);
			const { state: is, status, error } = await state(hooked);
			assert.equal(is, 'active');
			outcomes[answers[turn].slice(0, 60)] = status ?? error;
		}
		assert.deepEqual(cluster.gateways.map((one) => one.service.pid), pids);
		for (const one of cluster.gateways) assert.equal((await request(one, 'GET', '/livez')).status, 200);
		assert.equal(outcomes['garbage\r\n\r\n'], 'the connection ended without an answer');
		assert.equal(outcomes['HTTP/1.1 204 No Content\r\n\r\n'], 204);
		assert.equal(outcomes['HTTP/1.0 200 OK\r\n\r\n'], 200);
	});
});

describe('gateways', () => {
	test('what a gateway was sending when it was killed, another one sends; changes while none runs are sent later', async () => {
		let answers = false;
		const to = await receiver(() => (answers ? 200 : null));
		const hooked = await hook(to.url);
		const seq = await edit(hooked.fid, 'x');
		await waitUntil(() => to.got.length > 0, 'a request');
		await Promise.all(cluster.gateways.map((one) => one.kill()));
		answers = true;
		const later = await edit(hooked.fid, 'while none runs');
		await cluster.psql(`UPDATE sheet.webhook SET next_at = now(), leased_until = now() WHERE webhook_id = ${hooked.webhook}`); // the lease has ended
		const other = await receiver();
		await cluster.psql(`INSERT INTO sheet.webhook (sheet_id, url, secret, created_by, delivered_seq) VALUES (${hooked.fid}, '${other.url}', 'x', 0, ${seq})`);
		for (const one of cluster.gateways) await one.start();
		await waitUntil(() => other.got.length > 0, 'what nobody has told of');
		await waitUntil(() => to.got.at(-1).json.to_seq === later, 'both changes');
		assert.deepEqual([to.got.at(-1).json.from_seq, other.got[0].json.from_seq], [seq, later]);
	});

	test('each range is sent by one of two gateways', async () => {
		const busy = new Map();
		let overlaps = 0;
		const to = await receiver(({ json }, response) => {
			overlaps += busy.has(json.webhook);
			busy.set(json.webhook, true);
			setTimeout(() => {
				busy.delete(json.webhook);
				response.writeHead(200).end();
			}, 50);
			return null;
		});
		const hooks = await hookMany(5, to.url);
		let seqs = [];
		for (let i = 0; i < 20; i++) seqs = await Promise.all(hooks.map(({ fid }) => edit(fid, `${i}`)));
		await Promise.all(hooks.map((one, i) => delivered(one, seqs[i])));
		assert.equal(overlaps, 0);
		for (const { webhook } of hooks) {
			const ranges = to.got.filter(({ json }) => json.webhook === webhook).map(({ json }) => [json.from_seq, json.to_seq]);
			for (let i = 1; i < ranges.length; i++) assert.equal(ranges[i][0], ranges[i - 1][1] + 1, JSON.stringify(ranges));
		}
	});
});

describe('where gateways do not send', () => {
	const forms = ['127.0.0.2', '127.1.2.3', '10.0.0.1', '192.168.1.1', '172.16.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1', '255.255.255.255', '[::]', '[fe80::1]', '[fc00::1]', '[fd12::1]', '[::ffff:127.0.0.2]', '[::ffff:7f00:2]', '[::127.0.0.2]', '[64:ff9b::7f00:2]', '[64:ff9b::10.0.0.1]', '[2002:7f00:2::]', '[ff02::1]', '[2001:db8::1]'];
	test('special addresses are refused when a webhook is made, and when it is used', async () => {
		const fid = await newSheet(gateway, anna);
		for (const host of forms) {
			const answer = await api('POST', `/v2/sheets/${fid}/webhooks`, { url: `http://${host}/` });
			assert.deepEqual([answer.status, answer.json.data], [400, 'the address is in a private or special network'], host);
		}
		for (const host of ['2130706434', '0x7f000002', '127.2', '0177.0.0.2', '127.0.0.02', 'a b', '', 'user@10.0.0.1', '[::1', '[fe80::1%25eth0]', 'x:0', 'x:65536'])
			assert.equal((await api('POST', `/v2/sheets/${fid}/webhooks`, { url: `http://${host}/` })).status, 400, host);
		assert.deepEqual(await list(fid), []);
		const trap = await receiver(undefined, { host: '127.0.0.2' });
		for (const host of ['127.0.0.2', '[::ffff:127.0.0.2]']) {
			const [webhook] = (await cluster.psql(`SELECT webhook_id FROM sheet.create_webhook(${fid}, 'http://${host}:${trap.port}/')`)).split('\n');
			await edit(fid, host);
			const own = async () => (await list(fid)).find((one) => one.webhook === Number(webhook));
			await waitUntil(async () => (await own()).failures > 0, host);
			assert.equal((await own()).error, 'its address is in a private or special network, or the gateway\'s');
			await api('DELETE', `/v2/sheets/${fid}/webhooks/${webhook}`);
		}
		assert.equal(trap.got.length, 0);
	});

	test('TLS: the certificate must be trusted, and of that host', async () => {
		const to = await receiver(undefined, { host: '127.0.0.1', credentials: tlsFiles.trusted });
		const hooked = await hook(to.url);
		await delivered(hooked, await edit(hooked.fid, 'x'));
		assert.ok(verify(hooked.secret, to.got[0].headers['x-pg-sheet-signature'], to.got[0].text));
		for (const [name, url] of [['unknown'], ['other'], ['trusted', 'https://127.0.0.1']]) {
			const wrong = await receiver(undefined, { host: '127.0.0.1', credentials: tlsFiles[name] });
			const refused = await hook(url ? `${url}:${wrong.port}/` : wrong.url);
			await edit(refused.fid, 'x');
			await waitUntil(async () => (await state(refused)).failures > 0, `${name} refused`);
			assert.equal(wrong.got.length, 0, name);
			assert.equal((await state(refused)).error, 'its certificate is not valid, or TLS failed', name);
		}
		// a port of TLS that is asked without
		const plain = await hook(to.url.replace('https', 'http'));
		await edit(plain.fid, 'x');
		await waitUntil(async () => (await state(plain)).failures > 0, 'plain refused');
	});
});

describe('the routes', () => {
	test('for owners, with the scope admin; of the sheet of the path only', async () => {
		const [ben, fid, other] = [await register(gateway), await newSheet(gateway, anna), await newSheet(gateway, anna)];
		await cluster.psql(`SELECT sheet.share(${fid}, '${ben.username}', 'editor')`);
		const { webhook, secret, url } = await hook('HTTPS://Example.ORG.:443/x', { fid });
		assert.match(secret, /^whsec_[0-9a-f]{64}$/);
		assert.equal(url, 'https://example.org/x');
		const [{ createdAt, ...listed }] = await list(fid);
		assert.deepEqual(listed, { webhook, url, state: 'active', deliveredSeq: listed.deliveredSeq, failures: 0, nextAt: null, sentAt: null, status: null, error: null, disabledReason: null, createdBy: anna.username });
		assert.ok(Date.parse(createdAt) > 0);
		for (const [method, route, body] of [['GET', ''], ['POST', '', { url }], ['PATCH', `/${webhook}`, { active: false }], ['POST', `/test/${webhook}`], ['DELETE', `/${webhook}`]]) {
			assert.equal((await api(method, `/v2/sheets/${fid}/webhooks${route}`, body, { token: ben.token })).status, 403, `${method} ${route}`);
			assert.equal((await request(gateway, method, `/v2/sheets/${fid}/webhooks${route}`, { headers: body ? { 'content-length': 2 } : {}, body: body && '{}' })).status, body ? (method === 'PATCH' ? 401 : 400) : 401);
		}
		assert.equal((await api('DELETE', `/v2/sheets/${other}/webhooks/${webhook}`)).status, 404);
		for (const wrong of ['x', '', '0', `${webhook}/x`, `${webhook}/`]) assert.equal((await api('DELETE', `/v2/sheets/${fid}/webhooks/${wrong}`)).status, 404, wrong);
		for (const body of [{}, { url: 1 }, { url: 'x' }]) assert.equal((await api('POST', `/v2/sheets/${fid}/webhooks`, body)).status, 400);
		for (const body of [{ url: 1 }, { active: 1 }, { url: 'ftp://x' }]) assert.equal((await api('PATCH', `/v2/sheets/${fid}/webhooks/${webhook}`, body)).status, 400);
		assert.equal((await api('PATCH', `/v2/sheets/${fid}/webhooks/${webhook}`, { active: false, url: 'https://example.net/' })).status, 200);
		assert.deepEqual((await list(fid)).map((one) => [one.state, one.url]), [['paused', 'https://example.net/']]);
		for (let i = 1; i < 10; i++) await hook(`https://example.org/${i}`, { fid });
		const full = await api('POST', `/v2/sheets/${fid}/webhooks`, { url });
		assert.equal(full.status, 409);
		assert.match(full.json.data, /has 10 webhooks/);
		assert.equal((await api('DELETE', `/v2/sheets/${fid}/webhooks/${webhook}`)).status, 200);
		assert.equal((await list(fid)).length, 9);
	});
});
