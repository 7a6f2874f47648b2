/* What an operator relies on: health and readiness, metrics, who may read them, logs with request ids, systemd, SIGHUP, the drain. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import dgram from 'node:dgram';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { Cluster, freePort, repository, sleep, waitUntil, writePrivateFile } from '../lib/cluster.mjs';
import { Editor, call, login, newSheet, post, refused, register, request, tokenParts, uniqueName } from '../lib/client.mjs';
import { signalAll } from '../lib/processes.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';

let cluster;
let gateway;
let configFile;
let keyFile;

before(async () => {
	cluster = await Cluster.start({ gateways: 0 });
	configFile = path.join(cluster.directory, 'gateway.conf');
	keyFile = path.join(cluster.directory, 'jwt.key');
	writePrivateFile(configFile, '');
	gateway = await cluster.addGateway({ config: configFile, 'log-format': 'json' });
});
after(() => cluster?.stop());

const get = (address, headers = {}) => request(gateway, 'GET', address, { headers });
const ask = (address, headers = {}) => request(gateway.admin, 'GET', address, { headers }); // as an operator
const logFile = () => fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8');

/** New settings in the file, and SIGHUP. */
async function configure(text) {
	writePrivateFile(configFile, text);
	const start = logFile().length;
	gateway.service.signal('SIGHUP');
	await waitUntil(() => /"event":"(not )?reloaded/.test(logFile().slice(start)), 'the reload');
	return logFile().slice(start);
}

describe('health', () => {
	test('/livez, /readyz and /healthz', async () => {
		assert.ok((await get('/livez')).json.uptime_seconds >= 0);
		assert.deepEqual((await get('/readyz')).json, { ready: true, reasons: [] });
		assert.equal((await get('/healthz')).json.status, 'ok');
		assert.notEqual((await get('/readyz', { connection: 'keep-alive' })).headers.connection, 'close');
	});

	test('a database that does not answer: not ready, but alive; and ready again by itself', async () => {
		const pids = (await cluster.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'gateway'")).split('\n').map(Number);
		signalAll(pids, 'SIGSTOP');
		try {
			await waitUntil(async () => (await get('/readyz')).status === 503, 'the gateway not to be ready');
			assert.deepEqual((await get('/readyz')).json.reasons, ['the database does not answer']);
			assert.equal((await get('/healthz')).json.database, false);
			assert.equal((await get('/livez')).status, 200);
		} finally {
			signalAll(pids, 'SIGCONT');
		}
		await waitUntil(async () => (await get('/readyz')).status === 200, 'the gateway to be ready again');
	});
});

describe('metrics', () => {
	test('are what Prometheus reads: each family once, with help and type, histograms that add up', async () => {
		const user = await register(gateway);
		const fid = await newSheet(gateway, user);
		const editor = await Editor.open(gateway, user, fid);
		await editor.settle();
		await editor.close();
		await get('/no/such/address');
		const text = (await ask('/metrics')).text;
		const types = new Map();
		const values = new Map();
		for (const line of text.trimEnd().split('\n')) {
			const type = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line);
			if (type) {
				assert.ok(!types.has(type[1]), `${type[1]} is described twice`);
				types.set(type[1], type[2]);
				continue;
			}
			if (/^# HELP \w+ \S/.test(line)) continue;
			const sample = /^(\w+)(\{(?:\w+="[^"\\\n]*"(?:,\w+="[^"\\\n]*")*)?\})? (-?[\d.]+(?:e[+-]\d+)?)$/.exec(line);
			assert.ok(sample, `a line that nobody can read: ${line}`);
			const family = types.has(sample[1]) ? sample[1] : sample[1].replace(/_(bucket|sum|count)$/, '');
			assert.ok(types.has(family), `${line} has no type`);
			const key = sample[1] + (sample[2] ?? '');
			assert.ok(!values.has(key), `${key} is told twice`);
			values.set(key, Number(sample[3]));
		}
		for (const [name, type] of Object.entries({
			pg_sheet_edits_committed_total: 'counter',
			pg_sheet_refused_total: 'counter',
			pg_sheet_sessions_slow_total: 'counter',
			pg_sheet_http_answers_total: 'counter',
			pg_sheet_batch_edits: 'histogram',
			pg_sheet_commit_seconds: 'histogram',
			pg_sheet_http_duration_seconds: 'histogram',
			pg_sheet_loop_turn_seconds: 'histogram',
			pg_sheet_database_queue: 'gauge',
			pg_sheet_password_queue: 'gauge',
			pg_sheet_pending_edits: 'gauge',
			process_resident_memory_bytes: 'gauge',
		}))
			assert.equal(types.get(name), type, name);
		assert.ok(values.get('process_resident_memory_bytes') > 1e6);
		assert.ok(values.get('pg_sheet_edits_committed_total') >= 1);
		assert.ok(values.get('pg_sheet_sessions_closed_total{code="0"}') >= 1, 'the editor has left by itself');
		assert.ok(values.get('pg_sheet_http_answers_total{route="/register",status="2xx"}') >= 1);
		assert.ok(values.get('pg_sheet_http_answers_total{route="/*",status="4xx"}') >= 1);
		assert.equal(values.get('pg_sheet_http_under_way'), 1, 'this request alone');
		// Buckets only grow, and the last one has all.
		for (const family of [...types.keys()].filter((name) => types.get(name) === 'histogram')) {
			const series = new Map();
			for (const [key, value] of values) {
				const bucket = new RegExp(`^${family}_bucket\\{(.*?),?le="([^"]+)"\\}$`).exec(key);
				if (!bucket) continue;
				const last = series.get(bucket[1]);
				if (last) assert.ok(last.bound < Number(bucket[2].replace('+Inf', 'Infinity')) && last.value <= value, key);
				series.set(bucket[1], { bound: Number(bucket[2].replace('+Inf', 'Infinity')), value });
			}
			assert.ok(series.size > 0, family);
			for (const [label, { bound, value }] of series) {
				const count = values.get(`${family}_count{${label}}`) ?? values.get(`${family}_count`);
				assert.deepEqual([bound, value], [Infinity, count], `${family}{${label}}`);
			}
		}
	});

	test('the dashboard for Grafana asks only for metrics that exist, with labels that they have', async () => {
		const text = fs.readFileSync(path.join(repository, 'docker/grafana-dashboard.json'), 'utf8');
		const queries = JSON.parse(text).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
		const series = Object.keys(await gateway.metrics());
		const exported = new Set(series.map((name) => name.replace(/\{.*/, '')));
		const named = new Set(text.match(/\b(pg_sheet|process)_\w+/g));
		assert.ok(queries.length >= 12 && named.size >= 12);
		for (const name of named) assert.ok(exported.has(name), `${name} is not exported`);
		for (const query of queries) {
			const name = /\b(pg_sheet|process)_\w+/.exec(query)[0];
			const label = /by \((\w+)\)/.exec(query)?.[1];
			if (label) assert.ok(series.some((one) => one.startsWith(`${name}{`) && one.includes(`${label}="`)), query);
		}
	});

	test('whatever addresses strangers ask for, there is one series for each route', async () => {
		const series = async () => Object.keys(await gateway.metrics()).length;
		await get('/stranger');
		await post(gateway, '/stranger', {});
		const before_ = await series();
		for (let i = 0; i < 50; i++) {
			await get(`/stranger-${i}`);
			await post(gateway, `/stranger-${i}`, {});
		}
		assert.equal(await series(), before_);
	});

	test('/debug tells of the sheets that are open', async () => {
		const user = await register(gateway);
		const fid = await newSheet(gateway, user);
		const editor = await Editor.open(gateway, user, fid);
		const { json } = await ask('/debug');
		const room = json.first_rooms.find(({ sheet }) => sheet === fid);
		assert.equal(room.state, 'serving');
		assert.equal(room.sessions, 1);
		assert.equal(json.signing_key, 'k1');
		assert.ok(!JSON.stringify(json).includes(cluster.jwtKey));
		await editor.close();
	});
});

describe('for operators only', () => {
	const token = 'operator-0123456789-0123456789-0123456789';

	/** The status of both addresses, which is the same. */
	async function status(headers) {
		const [metrics, debug] = [await ask('/metrics', headers), await ask('/debug', headers)];
		assert.equal(metrics.status, debug.status);
		if (metrics.status === 403) assert.match(metrics.json.data, /admin-networks.*admin-token-file/);
		return metrics.status;
	}

	const act = async (headers = {}, address = '/admin/drain') => (await post(gateway.admin, address, {}, { headers })).status;
	const permitted = 409; // there is no other gateway

	test('at admin-address, where nothing else is served, and nowhere else', async () => {
		const headers = { authorization: `Bearer ${token}`, host: 'localhost' };
		for (const address of ['/metrics', '/debug', '/admin/drain', '/admin/resume', '/%6detrics'])
			for (const answer of [await get(address, headers), await post(gateway, address, {}, { headers })])
				assert.equal(answer.status, 404, address);
		for (const address of ['/', '/index.html', '/sheetws?query=1&fid=1', '/getchunk?fid=1&chunk=a', '/v2/sheets/1/cells'])
			assert.equal((await ask(address)).status, 404, address);
		for (const address of ['/login', '/register', '/getuser', '/v2/session', '/v2/session/end', '/v2/ticket', '/uploadchunk'])
			assert.equal((await post(gateway.admin, address, {})).status, 404, address);
		await assert.rejects(Editor.open(gateway.admin, { token: 'x' }, 1), (error) => error.status === 404);
		for (const address of ['/livez', '/readyz', '/healthz'])
			for (const answer of [await get(address), await ask(address)]) assert.equal(answer.status, 200, address);
		const page = await ask('/metrics', { origin: `http://${gateway.host}` });
		assert.equal(page.headers['access-control-allow-origin'], undefined);
	});

	test('the default of admin-address follows listen-port; one that is in use, or has no port, is refused', async () => {
		const start = (flags) => cluster.runGateway(flags, { timeoutMs: 20000 });
		const used = await start({ 'admin-address': gateway.admin.host });
		assert.equal(used.code, 1);
		assert.match(used.stderr, new RegExp(`cannot listen on 127.0.0.1 port ${gateway.admin.port}: .*\n.*--admin-address`));
		for (const value of ['127.0.0.1', 'localhost:9080', ':9080', '127.0.0.1:0', '127.0.0.1:65536', '::1:9080'])
			assert.match((await start({ 'admin-address': value })).stderr, /setting "admin-address" = .*not an IP address and a port/);
		const busy = net.createServer().listen(64000, '127.0.0.2');
		await once(busy, 'listening').catch(() => {}); // in use already: as good
		try {
			// The port that follows is in use, so that the gateway tells it.
			for (const flags of [{ 'listen-port': 63000 }, { 'listen-port': 65000 }]) {
				const { stderr } = await start({ 'listen-address': '127.0.0.2', 'admin-address': '', ...flags });
				assert.match(stderr, /cannot listen on 127.0.0.2 port 64000/);
			}
		} finally {
			busy.close();
		}
	});

	test('from loopback by default, but not through a proxy there', async () => {
		assert.equal(await status({}), 200);
		assert.equal(await act(), permitted);
		for (const name of ['x-forwarded-for', 'x-forwarded', 'x-forwarded-proto', 'X-Forwarded-Host', 'via', 'x-real-ip', 'true-client-ip', 'forwarded', 'cf-connecting-ip', 'x-original-uri']) {
			const headers = { [name]: name === 'forwarded' ? 'for=127.0.0.1' : '127.0.0.1' };
			assert.equal(await status(headers), 403, name);
			assert.equal(await act(headers), 403, name);
			assert.equal(await act(headers, '/admin/resume'), 403, name);
		}
		await configure('trusted-proxies = 127.0.0.1\n');
		assert.equal(await status({ 'x-forwarded-for': '198.51.100.1' }), 403);
		assert.equal(await status({ 'x-forwarded-for': '127.0.0.2' }), 200);
		assert.equal(await status({ forwarded: 'for="127.0.0.2:80"' }), 200);
		assert.equal(await status({ 'x-real-ip': '127.0.0.2' }), 403);
		assert.equal(await act({ 'x-forwarded-for': '127.0.0.2' }), 403, 'who changes something must be on this machine');
	});

	test('another machine reads metrics if its network is one of the setting, and changes nothing without the token', async (t) => {
		const address = Object.values(os.networkInterfaces()).flat().find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
		if (!address) return t.skip('this machine has no address but loopback');
		const file = path.join(cluster.directory, 'operator');
		writePrivateFile(file, `${token}\n`);
		const port = await freePort();
		const other = await cluster.addGateway(
			{ 'admin-address': `${address}:${port}`, 'admin-networks': '0.0.0.0/0', 'admin-token-file': file, coordinator: 'zookeeper', 'zookeeper-hosts': '127.0.0.1:1' },
			{ ready: '/livez' },
		);
		const door = { address, port };
		assert.equal((await request(door, 'GET', '/metrics')).status, 200);
		const drain = async (headers) => (await post(door, '/admin/drain', {}, { headers })).status;
		assert.equal(await drain({}), 403);
		assert.equal(await drain({ authorization: `Bearer ${token}` }), permitted);
		await other.stop();
		return undefined;
	});

	test('and not when a proxy does not say, in a way that can be read, for whom it asks', async () => {
		await configure('trusted-proxies = 127.0.0.1\n');
		const lists = ['', 'unknown', 'garbage', '198.51.100.1:1234', '[2001:db8::1]:1234', `127.0.0.2${', 127.0.0.1'.repeat(100)}`, `${'127.0.0.2, '.repeat(100)}198.51.100.1`];
		for (const list of lists) assert.equal(await status({ 'x-forwarded-for': list }), 403, list);
		for (const list of ['for=unknown', 'for=_hidden', 'host=a', 'for="127.0.0.2', 'for=127.0.0.2;for=127.0.0.2', 'for=127.0.0.2;x=", for=198.51.100.1', 'for=127.0.0.2;x=", for="198.51.100.1"'])
			assert.equal(await status({ forwarded: list }), 403, list);
		assert.equal(await status({ 'x-forwarded-for': '127.0.0.2', forwarded: 'for=127.0.0.3' }), 403, 'which of the two is the proxy\u2019s?');
		await configure('');
	});

	test('and not by a name that is not the gateway’s, which somebody else may resolve to its address', async () => {
		await configure('allowed-origins = https://sheets.example.org\n');
		for (const host of ['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1.evil.example'])
			assert.equal(await status({ host }), 403, host);
		for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1:9', '[::1]:80', 'sheets.example.org', 'sheets.example.org:443'])
			assert.equal(await status({ host }), 200, host);
		await configure('');
	});

	test('from the networks of the setting, or with the token', async () => {
		const file = path.join(cluster.directory, 'operator');
		writePrivateFile(file, `${token}\n`);
		await configure(`admin-networks = 10.9.0.0/16\nadmin-token-file = ${file}\n`);
		assert.equal(await status({}), 403);
		assert.equal(await act(), 403, 'nor does loopback count');
		assert.equal(await status({ authorization: `Bearer ${token}` }), 200);
		assert.equal(await act({ authorization: `Bearer ${token}`, via: '1.1 proxy', 'x-forwarded-for': '1.2.3.4' }), permitted);
		for (const wrong of [`Bearer ${token}x`, `Bearer ${token.slice(1)}`, 'Bearer ', `Basic ${token}`, token])
			assert.equal(await status({ authorization: wrong }), 403, wrong);
		assert.equal((await get('/readyz')).status, 200, 'anybody may ask whether it is ready');
		for (const bad of ['short', 'with blanks 0123456789 0123456789 0123456789', 'x'.repeat(300)]) {
			writePrivateFile(file, bad);
			assert.match(await configure(fs.readFileSync(configFile, 'utf8')), /32 to 256/);
		}
		assert.equal(await status({ authorization: `Bearer ${token}` }), 200, 'the former token stays');
		assert.match(await configure('admin-networks = everywhere\n'), /admin-networks/);
		await configure('');
		assert.equal(await status({}), 200);
		assert.equal(await status({ authorization: `Bearer ${token}`, 'x-forwarded-for': '1.2.3.4' }), 403);
	});
});

describe('logs', () => {
	test('are JSON, a line for each event, and carry the id of the request', async () => {
		await configure('log-requests = on\n');
		const answer = await post(gateway, '/login', { username: 'a"b\\c', password: 'x' }, { headers: { 'x-request-id': 'proxy-17:a' } });
		assert.equal(answer.headers['x-request-id'], 'proxy-17:a');
		await get('/readyz?token=not-for-the-log', { 'x-request-id': 'q-1' });
		const secret = ['/i/not-for-the-log/a.png', '/p/not-for-the-log', '/record/not-for-the-log'];
		for (const address of secret) await get(address, { 'x-request-id': `q-2${address.split('/')[1]}` });
		await waitUntil(() => ['q-1', 'q-2record'].every((id) => logFile().includes(id)), 'the log');
		const lines = logFile()
			.trimEnd()
			.split('\n')
			.map((line) => JSON.parse(line));
		assert.ok(lines.every(({ at, level, event }) => at && level && event));
		const events = lines.filter((line) => line.request === 'proxy-17:a');
		assert.deepEqual(
			events.map(({ event }) => event),
			['login refused', 'request'],
		);
		assert.deepEqual([events[1].method, events[1].path, events[1].status], ['POST', '/login', 200]);
		assert.deepEqual(
			lines.filter(({ request }) => request?.startsWith('q-2')).map(({ path }) => path),
			['/i/*', '/p/*', '/record/*'],
		);
		assert.ok(!logFile().includes('not-for-the-log'));
	});

	test("a WebSocket's lines carry the id of its upgrade", async () => {
		await configure('log-requests = on\n');
		const user = await register(gateway);
		const fid = await newSheet(gateway, user);
		const editor = await Editor.open(gateway, user, fid, { headers: { 'x-request-id': 'live-1' } });
		await editor.close();
		const lines = () =>
			logFile()
				.trimEnd()
				.split('\n')
				.map((line) => JSON.parse(line))
				.filter((line) => line.request === 'live-1')
				.map(({ event }) => event);
		await waitUntil(() => lines().length === 3, 'the log');
		assert.deepEqual(lines().sort(), ['request', 'session closed', 'session joined']);
	});

	test('ids that could do harm are replaced, and all are different', async () => {
		const ids = new Set();
		for (const id of [undefined, 'a b', '"', '<script>', 'x'.repeat(65), '$(reboot)', 'é', ''])
			ids.add((await get('/livez', id === undefined ? {} : { 'x-request-id': Buffer.from(id).toString('latin1') })).headers['x-request-id']);
		assert.equal(ids.size, 8);
		for (const id of ids) assert.match(id, /^[0-9a-f]{16}-\d+$/);
	});

	test('requests are logged only when that is wanted', async () => {
		await configure('');
		await get('/livez', { 'x-request-id': 'unlogged' });
		await call(gateway, '/getuser', { token: (await register(gateway)).token }, 10);
		assert.ok(!logFile().includes('unlogged'));
	});
});

describe('systemd', () => {
	test('hears of ready, reload, watchdog and stop', async () => {
		// Node has no datagram sockets of Unix; Perl has.
		const socket = path.join(cluster.directory, 'socket', 'notify');
		const listener = spawn('perl', [
			'-MIO::Socket::UNIX',
			'-e',
			'$|=1; umask 0; my $s = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die; print "listening\n"; while (defined $s->recv(my $m, 4096)) { $m =~ s/\n/;/g; print "$m\n" }',
			socket,
		]);
		let heard = '';
		listener.stdout.on('data', (data) => (heard += data));
		const hears = (word) => waitUntil(() => heard.includes(word), `${word} in ${heard}`);
		try {
			await hears('listening');
			await gateway.stop();
			gateway.env = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '5000000' };
			await gateway.start();
			await hears('READY=1');
			await hears('STATUS=serving');
			await hears('WATCHDOG=1');
			await configure('');
			await hears('RELOADING=1');
			heard = '';
			await gateway.stop();
			await hears('STOPPING=1');
		} finally {
			gateway.env = {};
			listener.kill();
			if (!gateway.service.alive) await gateway.start();
		}
	});
});

describe('reloading', () => {
	const reload = () => configure(fs.readFileSync(configFile, 'utf8'));

	test('keys rotate without a restart: the first signs, all verify, a removed one revokes', async () => {
		const fresh = crypto.randomBytes(32).toString('hex');
		const user = await register(gateway);
		const fid = await newSheet(gateway, user);
		const editor = await Editor.open(gateway, user, fid);
		assert.equal(tokenParts(user.token).header.kid, 'k1');

		writePrivateFile(keyFile, `k1:${cluster.jwtKey}\nk2:${fresh}\n`);
		await reload();
		assert.equal(tokenParts((await login(gateway, user)).token).header.kid, 'k1', 'the second key only verifies');

		writePrivateFile(keyFile, `k2:${fresh}\nk1:${cluster.jwtKey}\n`);
		await reload();
		const { token } = await login(gateway, user);
		assert.equal(tokenParts(token).header.kid, 'k2');
		await call(gateway, '/getuser', { token: user.token }, 10);
		await call(gateway, '/getuser', { token }, 10);
		assert.equal(editor.closed, null, 'adding keys disturbs nobody');

		writePrivateFile(keyFile, `k2:${fresh}\n`);
		await reload();
		assert.equal((await editor.waitClosed()).code, 1012, 'when a key goes, live editors come again');
		await refused(gateway, '/getuser', { token: user.token }, 1);
		await assert.rejects(Editor.open(gateway, user, fid), (error) => error.json?.msg === 1);
		const again = await Editor.open(gateway, { ...user, token }, fid);
		await again.close();
	});

	test('wrong keys and wrong settings change nothing, and the log says why', async () => {
		const good = fs.readFileSync(keyFile, 'utf8');
		const user = await register(gateway);
		writePrivateFile(keyFile, 'k3:short\n');
		assert.match(await reload(), /k3.*shorter[^]*not reloaded/);
		await call(gateway, '/getuser', { token: user.token }, 10);
		fs.chmodSync(keyFile, 0o644);
		assert.match(await reload(), /others may read[^]*not reloaded/);
		fs.chmodSync(keyFile, 0o600);
		writePrivateFile(keyFile, good);

		await configure('allowed-origins = HTTPS://One.example\n');
		assert.match(await configure('allowed-origins = https://two.example\nlease-seconds = never\n'), /lease-seconds[^]*never[^]*not reloaded/);
		const allowed = async (origin) =>
			(await post(gateway, '/getuser', {}, { headers: { origin } })).headers['access-control-allow-origin'];
		assert.equal(await allowed('https://one.example'), 'https://one.example');
		assert.equal(await allowed('https://two.example'), undefined);

		assert.match(await configure('allowed-origins = https://two.example\nweight = 7\n'), /weight[^\n]*needs a restart[^]*"reloaded"/);
		assert.equal(await allowed('https://one.example'), undefined);
		assert.equal(await allowed('https://two.example'), 'https://two.example');
		assert.equal((await get('/healthz')).status, 200);
		await configure('');
	});
});

describe('the drain', () => {
	test('readiness goes first, service later; editors are told to come again, and nothing acknowledged is lost', async () => {
		await configure('drain-notice-seconds = 5\n'); // time for all that is done before it ends
		const users = [await register(gateway), await register(gateway)];
		const fid = await newSheet(gateway, users[0]);
		const writers = users.map((user, i) => new Writer(`d${i}`, i, user, fid, () => gateway));
		const reader = await Editor.open(gateway, users[0], fid);
		for (const writer of writers) await writer.progress(100);
		const stopped = gateway.stop();
		await waitUntil(async () => (await get('/readyz')).status === 503, '/readyz to say no');
		const answer = await get('/readyz', { connection: 'keep-alive' });
		assert.deepEqual(answer.json.reasons, ['draining']);
		assert.equal(answer.headers.connection, 'close', 'connections that were kept go elsewhere');
		assert.equal(reader.closed, null, 'editors stay in the time of notice');
		for (const writer of writers) await writer.progress(50);
		await (await Editor.open(gateway, users[1], fid)).close();
		assert.equal((await get('/livez')).status, 200);
		const { code, reason } = await reader.waitClosed();
		assert.equal(code, 1012);
		assert.match(reason, /stops/);
		assert.equal((await stopped).code, 0);
		const last = JSON.parse(logFile().trimEnd().split('\n').at(-1));
		assert.deepEqual([last.event, last.sessions, last.sheets, last.requests], ['stopped', 0, 0, 0], 'in order, not by time');
		await gateway.start();
		for (const writer of writers) await writer.progress(50, 30000);
		await Promise.all(writers.map((writer) => writer.stop()));
		await checkNothingLost(cluster, fid, writers);
		await configure('');
	});

	test('requests that are under way are answered', async () => {
		const user = await register(gateway);
		const lock = cluster.psqlSession();
		await lock.query('BEGIN; LOCK TABLE sheet.sheet IN ACCESS EXCLUSIVE MODE');
		const { length } = logFile();
		const answer = post(gateway, '/newsheet', { token: user.token, name: 'late', initRows: 10, initColumns: 10 });
		// The request waits for the lock for half a second only, so another psql would come too late.
		await waitUntil(() => lock.query("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'sheet.sheet'::regclass"), 'the request', 30000, 1);
		const stopped = gateway.stop();
		await waitUntil(() => /"event":"draining"/.test(logFile().slice(length)), 'the drain', 30000, 1);
		await lock.query('COMMIT');
		assert.equal((await answer).json.msg, 11, (await answer).text);
		assert.equal((await stopped).code, 0);
		await lock.close();
		await gateway.start();
	});

	test('takes no longer than it may, and a second signal ends it at once', async () => {
		const user = await register(gateway);
		const connected = () => cluster.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet writes'");
		await gateway.stop();
		for (const [settings, signals] of [
			['drain-seconds = 1\n', 1],
			['drain-seconds = 600\n', 2],
		]) {
			// Those of the gateway before are not taken for its own. One that connects later would not be stopped, and answer.
			await waitUntil(async () => (await connected()).length === 0, 'the connections to end');
			await gateway.start();
			await configure(settings);
			await waitUntil(async () => (await connected()).length === 2, 'both connections for writes');
			const writers = await connected();
			const queued = async () => (await gateway.metrics())['pg_sheet_database_queue{class="writes"}'];
			await waitUntil(async () => (await queued()) === 0, 'what the gateway itself asks to be answered');
			for (const { pid } of writers) process.kill(pid, 'SIGSTOP');
			const answer = post(gateway, '/newsheet', { token: user.token, name: 'never', initRows: 10, initColumns: 10 }).catch((error) => error);
			await waitUntil(async () => (await queued()) > 0, 'the request');
			const length = logFile().length;
			const stopped = gateway.stop();
			await waitUntil(() => /"event":"draining"/.test(logFile().slice(length)), 'the drain');
			if (signals === 2) gateway.service.signal('SIGTERM');
			assert.equal((await stopped).code, 0, 'by itself, before it is killed');
			assert.ok((await answer) instanceof Error, 'the connection ends without an answer');
			for (const { pid } of writers) process.kill(pid, 'SIGCONT');
		}
		await gateway.start();
	});
});

test('the user of the packaged configuration can be made in PostgreSQL, and is the one of the unit', async () => {
	const packaged = (name) => fs.readFileSync(path.join(repository, 'packaging', name), 'utf8');
	const user = /^database = .*\buser=(\w+)$/m.exec(packaged('gateway.conf'))[1];
	await cluster.psql(`CREATE ROLE ${user} LOGIN IN ROLE sheet_gateway`);
	assert.equal(await cluster.psql(`SELECT name FROM sheet.account_find('nobody')`, { role: user }), '');
	for (const key of ['User', 'Group']) assert.equal(new RegExp(`^${key}=(\\w+)$`, 'm').exec(packaged('pg_sheet_gateway.service'))[1], user);
	assert.equal(/^u (\w+) /m.exec(packaged('pg_sheet.sysusers'))[1], user);
});
