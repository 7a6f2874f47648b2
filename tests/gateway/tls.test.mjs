/* tls.test.mjs - HTTPS and wss: versions, headers, addresses in answers, certificates that change while people edit. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import { Cluster } from '../lib/cluster.mjs';
import { Editor, call, multipart, newSheet, post, register, request } from '../lib/client.mjs';
import { RawConnection } from '../lib/raw.mjs';
import { runAs, waitUntil, writePrivateFile } from '../lib/processes.mjs';

let cluster;
let gateway;
let anna;
let fid;

before(async () => {
	cluster = await Cluster.start({ tls: true, gatewayFlags: { 'head-seconds': 3, 'keepalive-seconds': 60 } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	fid = await newSheet(gateway, anna);
});
after(() => cluster?.stop());

/** A handshake with these options; resolves to {protocol, cipher, alpn, fingerprint}, rejects when it fails. */
const shakeHands = (options) =>
	new Promise((resolve, reject) => {
		const socket = tls.connect({ host: '127.0.0.1', port: gateway.port, rejectUnauthorized: false, ...options }, () => {
			resolve({
				protocol: socket.getProtocol(),
				cipher: socket.getCipher().name,
				alpn: socket.alpnProtocol,
				fingerprint: socket.getPeerCertificate().fingerprint256,
			});
			socket.destroy();
		});
		socket.on('error', reject);
	});

describe('the protocol', () => {
	test('TLS 1.3 and 1.2 with forward secrecy; nothing older', async () => {
		assert.equal((await shakeHands({})).protocol, 'TLSv1.3');
		const older = await shakeHands({ maxVersion: 'TLSv1.2' });
		assert.equal(older.protocol, 'TLSv1.2');
		assert.match(older.cipher, /^ECDHE-.*(GCM|CHACHA20)/);
		for (const version of ['TLSv1.1', 'TLSv1'])
			await assert.rejects(shakeHands({ minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }));
		await assert.rejects(shakeHands({ maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA:AES256-GCM-SHA384' }));
	});

	test('HTTP/1.1 is agreed on by ALPN', async () => {
		assert.equal((await shakeHands({ ALPNProtocols: ['h2', 'http/1.1'] })).alpn, 'http/1.1');
		await assert.rejects(shakeHands({ ALPNProtocols: ['h2'] }));
	});

	test('a client that speaks plain HTTP is told; one that says nothing, or nonsense, is dropped', async () => {
		const plain = await RawConnection.open(gateway);
		const answer = await plain.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n').answer();
		assert.equal(answer.status, 400);
		assert.match(answer.json.data, /HTTPS/);
		await plain.waitClosed();
		plain.close();
		const timeouts = async () => (await gateway.metrics()).pg_sheet_http_timeouts_total;
		for (const [bytes, counted] of [
			['', 0], // as other gateways and load balancers do
			['\u0016', 1],
			['\u0016\u0003\u0001\u0000\u0004nope', 0],
		]) {
			const before_ = await timeouts();
			const connection = await RawConnection.open(gateway);
			connection.send(Buffer.from(bytes, 'latin1'));
			await connection.waitClosed();
			connection.close();
			assert.equal((await timeouts()) - before_, counted, JSON.stringify(bytes));
		}
	});

	test('a clear word that browsers shall not come back without TLS', async () => {
		const { headers } = await request(gateway, 'GET', '/');
		assert.match(headers['strict-transport-security'], /^max-age=31536000$/);
		assert.match(headers['content-security-policy'], /connect-src 'self' https:\/\/\S+ wss:\/\/\S+;/);
	});

	test('cookies are of this host alone; pages without TLS are others', async () => {
		const answer = await post(gateway, '/login', { username: anna.username, password: anna.password });
		const [files, session] = answer.headers['set-cookie'];
		const { token } = answer.json.data;
		assert.match(files, /^__Host-pg_sheet_files=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=\d+$/);
		assert.match(session, /^__Host-pg_sheet_session=[^;]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
		const ask = async (headers) => (await post(gateway, '/v2/session', {}, { headers })).status;
		const cookie = session.split(';')[0];
		assert.equal(await ask({ cookie }), 200);
		assert.equal(await ask({ cookie, origin: gateway.url }), 200);
		assert.equal(await ask({ cookie, origin: `http://${gateway.host}` }), 403);
		assert.equal(await ask({ cookie: `pg_sheet_session=${token}` }), 204, 'a page without TLS could have set it');
		const signIn = await post(gateway, '/login', { username: anna.username, password: anna.password }, { headers: { origin: `http://${gateway.host}` } });
		assert.deepEqual([signIn.json.msg, signIn.headers['set-cookie']], [4, undefined]);
	});

	test('operators are served on loopback without TLS', async () => {
		assert.equal((await request(gateway.admin, 'GET', '/metrics')).status, 200);
	});

	test('a gateway is named by its address for clients, which the admin token is not sent to', async () => {
		const file = path.join(cluster.directory, 'admin.token');
		writePrivateFile(file, 'a-token-of-the-operators-0123456789');
		const command = (address, flags) => runAs(cluster.gatewayBinary, ['resume', address, ...gateway.arguments({ 'admin-token-file': file, ...flags })]);
		const named = () => cluster.psql(`SELECT admin_url FROM sheet.gateways WHERE address = '${gateway.host}'`);
		await waitUntil(async () => (await named()) !== '', 'the gateway to be told of');
		const resumed = await command(gateway.host, {});
		assert.deepEqual([resumed.code, resumed.stdout], [0, `${gateway.host} takes sheets again\n`], resumed.stderr);
		const lost = await command(gateway.host, { database: 'host=/nonexistent' });
		assert.equal(lost.code, 1);
		assert.match(lost.stderr, /it is not known whether that is a name/);
		assert.equal((await command(gateway.admin.url, { database: 'host=/nonexistent' })).code, 0);
	});

	test('addresses in answers are https and wss', async () => {
		const answer = await request(gateway, 'GET', `/v2/sheets/${fid}/route?token=${anna.token}`);
		assert.deepEqual(
			[answer.json.http, answer.json.ws],
			[`https://${gateway.host}`, `wss://${gateway.host}/sheetws`],
		);
	});
});

describe('work', () => {
	test('files go in and out unchanged, in pipelined requests too', async () => {
		const bytes = crypto.randomBytes(3 << 20);
		const form = multipart([
			['fid', String(fid)],
			['token', anna.token],
			['uploadfile', bytes, 'large.bin', 'application/octet-stream'],
		]);
		assert.equal((await request(gateway, 'POST', '/uploadchunk', form)).json.msg, 33);
		const connection = await RawConnection.open(gateway, { tls: gateway.tls });
		const one = `GET /getchunk?fid=${fid}&chunk=large.bin&token=${anna.token} HTTP/1.1\r\nHost: ${gateway.host}\r\n\r\n`;
		connection.send(one.repeat(3));
		for (let i = 0; i < 3; i++) assert.ok(bytes.equals((await connection.answer()).body));
		connection.close();
	});

	test('two edit over wss, with large messages, and hear of each other', async () => {
		const [a, b] = [await Editor.open(gateway, anna, fid), await Editor.open(gateway, await register(gateway), fid)];
		const text = '漢'.repeat(30000);
		for (let row = 0; row < 60; row++) a.modify(row, 1, `${row} ${text}`);
		for (let row = 0; row < 60; row++) await b.nextModify(row, 1, `${row} ${text}`);
		b.modify(0, 0, 'back');
		await a.nextModify(0, 0, 'back');
		await a.close();
		await b.close();
		assert.deepEqual([a.closed.code, b.closed.code], [1000, 1000]);
	});

	test('a refused upgrade is answered as over plain HTTP', async () => {
		await assert.rejects(Editor.open(gateway, { token: 'nonsense' }, fid), (error) => error.json.msg === 1);
		await assert.rejects(
			Editor.open(gateway, anna, fid, { headers: { origin: 'https://elsewhere.example' } }),
			(error) => error.status === 403,
		);
	});

	test('the page of this gateway may connect', async () => {
		const editor = await Editor.open(gateway, anna, fid, { headers: { origin: `https://${gateway.host}` } });
		await editor.settle();
		await editor.close();
	});

	test('connections end without leaving anything', async () => {
		const before_ = (await gateway.metrics()).pg_sheet_connections;
		const descriptors = () => fs.readdirSync(`/proc/${gateway.service.pid}/fd`).length;
		const some = descriptors();
		const editors = await Promise.all([...Array(20)].map(() => Editor.open(gateway, anna, fid)));
		const most = descriptors(); // connections of earlier tests may end meanwhile
		for (const [i, editor] of editors.entries()) {
			if (i % 2) editor.terminate();
			else await editor.close();
		}
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_connections <= before_, 'connections to be counted off');
		await waitUntil(() => descriptors() <= Math.min(some, most - 20), 'descriptors to be closed');
	});
});

describe('certificates', () => {
	const logged = () => fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8');

	test('SIGHUP reads them again: new connections get the new one, and nobody is disturbed', async () => {
		const editor = await Editor.open(gateway, anna, fid);
		const keptAlive = await RawConnection.open(gateway, { tls: gateway.tls });
		const health = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
		assert.equal((await keptAlive.send(health).answer()).status, 200); // who has said nothing has three seconds
		const before_ = (await shakeHands({})).fingerprint;
		cluster.makeCertificate();
		assert.equal((await shakeHands({})).fingerprint, before_, 'not before it is told');
		process.kill(gateway.service.pid, 'SIGHUP');
		await waitUntil(async () => (await shakeHands({})).fingerprint !== before_, 'the new certificate');
		await editor.settle();
		assert.equal((await keptAlive.send(health).answer()).status, 200);
		keptAlive.close();
		await call(gateway, '/getuser', { token: anna.token }, 10); // checked against the new certificate
		await editor.close();
	});

	test('a certificate with another kind of key replaces the one of before for every client', async () => {
		const clients = ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'].map((ciphers) => ({ ciphers, maxVersion: 'TLSv1.2' }));
		const [rsa, ec] = clients;
		await assert.rejects(shakeHands(rsa));
		cluster.makeCertificate(['rsa:2048']);
		process.kill(gateway.service.pid, 'SIGHUP');
		await waitUntil(() => shakeHands(rsa).catch(() => null), 'the key of the other kind');
		await assert.rejects(shakeHands(ec));
		await call(gateway, '/getuser', { token: anna.token }, 10);
		cluster.makeCertificate();
		process.kill(gateway.service.pid, 'SIGHUP');
		await waitUntil(() => shakeHands(ec).catch(() => null), 'the key of the first kind');
		await assert.rejects(shakeHands(rsa));
	});

	test('a broken one is not taken: the one of before stays, and the log says why', async () => {
		const before_ = (await shakeHands({})).fingerprint;
		const file = path.join(cluster.directory, 'tls.crt');
		const good = fs.readFileSync(file);
		fs.writeFileSync(file, 'no certificate\n');
		process.kill(gateway.service.pid, 'SIGHUP');
		await waitUntil(() => /tls-certificate cannot be read/.test(logged()), 'the log to say so');
		assert.equal((await shakeHands({})).fingerprint, before_);
		fs.writeFileSync(file, good);
		assert.equal((await post(gateway, '/getuser', { token: anna.token })).json.msg, 10);
	});

	test('settings that cannot work are refused at the start', async () => {
		const start = (flags) => runAs(cluster.gatewayBinary, gateway.arguments({ 'listen-port': 1, ...flags }));
		const open = path.join(cluster.directory, 'open.key');
		fs.copyFileSync(path.join(cluster.directory, 'tls.key'), open);
		fs.chmodSync(open, 0o644);
		for (const [flags, message] of [
			[{ 'tls-key': '' }, /tls-certificate and tls-key go together/],
			[{ 'tls-key': open }, /others may read it/],
			[{ 'tls-certificate': '/nonexistent' }, /tls-certificate cannot be read/],
			[{ 'tls-key': path.join(cluster.directory, 'jwt.key') }, /tls-key cannot be read, or does not belong/],
		]) {
			const { code, stderr } = await start(flags);
			assert.notEqual(code, 0);
			assert.match(stderr, message);
		}
	});
});
