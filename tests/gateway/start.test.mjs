/* How the gateway starts, with a slow name server too, and what it refuses to start with; the page, the operator's pages, and origins. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Cluster, freePort, waitUntil, writePrivateFile } from '../lib/cluster.mjs';
import { runAs } from '../lib/processes.mjs';
import { newSheet, post, register, request } from '../lib/client.mjs';

let cluster;
let gateway;

before(async () => {
	cluster = await Cluster.start({ gateways: 0, postgres: { listen_addresses: '127.0.0.1', port: await freePort() } });
});
after(() => cluster?.stop());

describe('starting', () => {
	const keyFile = (name, text) => {
		const file = path.join(cluster.directory, name);
		writePrivateFile(file, text);
		return file;
	};

	test('refuses a signing key that is short, an example, or missing', async () => {
		for (const [name, text] of [
			['short', 'k1:0123456789abcdef\n'],
			['example', 'k1:this-is-an-example-key-which-is-long-enough\n'],
			['changeme', 'k1:changeme-changeme-changeme-changeme\n'],
			['repeated', `k1:${'a'.repeat(64)}\n`],
			['empty', ''],
		]) {
			const result = await cluster.runGateway({ 'jwt-key-file': keyFile(name, text) });
			assert.equal(result.code, 2, `${name}: ${JSON.stringify(result)}`);
			assert.match(result.stderr, /key/i, name);
			const secret = text.trim().replace('k1:', '');
			assert.ok(!secret || !result.stderr.includes(secret), 'the message does not print the key');
		}
		const result = await cluster.runGateway({ 'jwt-key-file': path.join(cluster.directory, 'absent') });
		assert.equal(result.code, 2);
		assert.match(result.stderr, /absent/);
	});

	test('refuses a key file that others may read', async () => {
		const file = keyFile('readable', `k1:${cluster.jwtKey}\n`);
		fs.chmodSync(file, 0o644);
		const result = await cluster.runGateway({ 'jwt-key-file': file });
		assert.equal(result.code, 2, JSON.stringify(result));
		assert.match(result.stderr, /readable/);
	});

	test('refuses unknown settings and values out of range, with their names', async () => {
		for (const [flags, words] of [
			[{ 'no-such-setting': 1 }, /no-such-setting/],
			[{ 'listen-port': 70000 }, /listen-port/],
			[{ 'listen-port': 'eighty' }, /listen-port/],
			[{ coordinator: 'etcd' }, /coordinator/],
		]) {
			const result = await cluster.runGateway(flags);
			assert.equal(result.code, 2, JSON.stringify(result));
			assert.match(result.stderr, words);
		}
	});

	test('what no restart can mend ends it with status 2: files that are missing or unreadable, and a foreign address', async () => {
		const at = (name) => path.join(cluster.directory, name);
		const plain = keyFile('plain.pem', 'no certificate\n');
		fs.mkdirSync(at('closed'), { mode: 0 });
		for (const [flags, words] of [
			[{ 'tls-certificate': at('absent.crt'), 'tls-key': at('absent.key') }, /tls-certificate cannot be read: .*absent\.crt/],
			[{ 'tls-certificate': plain, 'tls-key': plain }, /tls-certificate cannot be read: .*plain\.pem/],
			[{ 'web-root': at('absent') }, /web-root.*No such file/],
			[{ 'web-root': plain }, /web-root.*not a directory/],
			[{ 'web-root': at('closed') }, /web-root.*Permission denied/],
			[{ 'admin-token-file': at('absent') }, /admin-token-file/],
			[{ config: at('absent') }, /configuration file/],
			[{ 'reminder-mail': 'sendmail -t', 'reminder-mail-from': 'a@example.org' }, /reminder-mail.*path of a program/],
			[{ 'reminder-mail': `${at('absent')} -t`, 'reminder-mail-from': 'a@example.org' }, /reminder-mail cannot be executed/],
			[{ 'reminder-mail': '/bin/true' }, /needs an address in reminder-mail-from/],
			[{ 'reminder-mail': '/bin/true', 'reminder-mail-from': 'a@example.org\nBcc: b@example.org' }, /reminder-mail-from.*ASCII/],
			[{ 'listen-address': '192.0.2.1' }, /cannot listen on 192\.0\.2\.1 .*\n.*IP address of this machine/],
			[{ 'listen-address': 'no-address' }, /cannot listen on no-address .*\n.*IP address of this machine/],
		]) {
			const result = await cluster.runGateway(flags);
			assert.equal(result.code, 2, JSON.stringify([flags, result]));
			assert.match(result.stderr, words);
		}
	});

	test('--help explains every setting', async () => {
		const result = await cluster.runGateway({}, { extra: ['--help'] });
		assert.equal(result.code, 0);
		for (const name of ['listen-port', 'database', 'coordinator', 'jwt-key-file', 'web-root', 'max-frame-bytes'])
			assert.match(result.stdout, new RegExp(name));
	});

	test('says which port is busy', async () => {
		const port = await freePort();
		const server = net.createServer().listen(port, '127.0.0.1');
		await new Promise((resolve) => server.once('listening', resolve));
		try {
			const result = await cluster.runGateway({ 'listen-port': port });
			assert.notEqual(result.code, 0);
			assert.notEqual(result.code, null, 'it ends by itself');
			assert.match(result.stderr, new RegExp(`${port}`));
			assert.match(result.stderr, /in use|busy/i);
		} finally {
			server.close();
		}
	});

	test('starts, and keeps a second gateway without ZooKeeper out', async () => {
		gateway = await cluster.addGateway({ 'allowed-origins': 'https://sheets.example.org' });
		const started = performance.now();
		const result = await cluster.runGateway();
		assert.notEqual(result.code, 0);
		assert.notEqual(result.code, null, 'it ends by itself');
		assert.ok(result.stderr.includes(gateway.host) && result.stderr.includes('--coordinator=zookeeper'), result.stderr);
		assert.ok(performance.now() - started > 9000, 'after a while in which the first might have died');
		assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
	});

	test('the commands need only what they use', async () => {
		const run = (...words) => runAs(cluster.gatewayBinary, words);
		const closed = await run('drain', `127.0.0.1:${await freePort()}`);
		assert.equal(closed.code, 1);
		assert.match(closed.stderr, /does not answer/);
		const resumed = await run('resume', gateway.admin.host);
		assert.equal(resumed.code, 0, resumed.stderr);
		const members = await run('members', `--database=${cluster.conninfo('gateway')}`, '--admin-token-file=/nonexistent');
		assert.equal(members.code, 0, members.stderr);
		assert.match(members.stdout, /address/);
		assert.equal((await run('members', '--database=port')).code, 2);
	});
});

describe('the page and the operator', () => {
	test('/ is the page, with a type', async () => {
		const answer = await request(gateway, 'GET', '/');
		assert.equal(answer.status, 200);
		assert.match(answer.headers['content-type'], /^text\/html/);
		assert.match(answer.text, /<!doctype html>/i);
	});

	test('/healthz and /metrics', async () => {
		assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
		const answer = await request(gateway.admin, 'GET', '/metrics');
		assert.equal(answer.status, 200);
		assert.match(answer.headers['content-type'], /^text\/plain/);
		assert.match(answer.text, /^# TYPE \w+ (counter|gauge|histogram)$/m);
		for (const line of answer.text.trim().split('\n'))
			assert.match(line, /^(#.*|[a-zA-Z_:][\w:]*(\{.*\})? (-?[\d.e+-]+|\+Inf|NaN))$/);
	});
});

describe('origins', () => {
	const origins = () => [`http://${gateway.host}`, 'https://sheets.example.org'];

	test("the gateway's own and the configured ones may use credentials", async () => {
		for (const origin of origins()) {
			const answer = await post(gateway, '/getuser', { token: 'x' }, { headers: { origin } });
			assert.equal(answer.headers['access-control-allow-origin'], origin);
			assert.equal(answer.headers['access-control-allow-credentials'], 'true');
			assert.match(answer.headers.vary ?? '', /origin/i);
			const preflight = await request(gateway, 'OPTIONS', '/getuser', {
				headers: {
					origin,
					'access-control-request-method': 'POST',
					'access-control-request-headers': 'content-type,authorization',
				},
			});
			assert.ok(preflight.status === 200 || preflight.status === 204, `preflight: ${preflight.status}`);
			assert.equal(preflight.headers['access-control-allow-origin'], origin);
			assert.match(preflight.headers['access-control-allow-headers'], /content-type/i);
			assert.match(preflight.headers['access-control-allow-methods'], /POST/);
		}
	});

	test('others are not, and never * or null', async () => {
		for (const origin of [
			'http://evil.example',
			'null',
			`http://${gateway.host}.evil.example`,
			'http://127.0.0.1:1',
			'https://sheets.example.org.evil.example',
		]) {
			for (const method of ['POST', 'OPTIONS']) {
				const answer = await request(gateway, method, '/getuser', {
					headers: { origin, 'access-control-request-method': 'POST', 'content-type': 'application/json' },
					body: method === 'POST' ? '{}' : undefined,
				});
				assert.equal(answer.headers['access-control-allow-origin'], undefined, `${method} from ${origin}`);
			}
		}
	});
});

test('nothing above has killed or restarted the gateway', async () => {
	assert.ok(gateway.service.alive);
	assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
});

test('a gateway logs what sheet.doctor() finds', async () => {
	const log = () => fs.readFileSync(gateway.service.log, 'utf8');
	const granted = /sheet\.doctor\(\) has a finding.*PUBLIC: SELECT on sheet\.account/;
	assert.doesNotMatch(log(), granted);
	await cluster.psql('GRANT SELECT ON sheet.account TO PUBLIC');
	await gateway.stop();
	gateway = await cluster.addGateway();
	await waitUntil(() => granted.test(log()), 'the finding to be logged');
	assert.doesNotMatch(log(), /could not be asked/);
	await cluster.psql('SELECT sheet.reset_privileges()');
});

test('durable=false commits edits without waiting for the disk, and says so', async () => {
	assert.equal((await request(gateway, 'GET', '/healthz')).json.durable, true);
	await gateway.stop();
	await cluster.psql("ALTER ROLE gateway SET log_statement = 'all'");
	gateway = await cluster.addGateway({ durable: 'false' }, { ready: '/readyz' });
	await cluster.psql('ALTER ROLE gateway RESET ALL');
	assert.equal((await request(gateway, 'GET', '/healthz')).json.durable, false);
	const lines = fs.readFileSync(cluster.postgres.log, 'utf8').split('\n');
	assert.ok(lines.some((line) => line.includes("set_config('synchronous_commit', 'off', false)") && line.includes('pg_sheet.time_slice')));
});

test('where Linux can do it (6.12), the loop has a time slice of its own, and the threads beside it have not', async () => {
	await register(gateway, 'slices'); // begins the threads that compute passwords
	const slices = (pid) =>
		fs.readdirSync(`/proc/${pid}/task`).map((thread) => [Number(thread) === pid, /se\.slice\s*:\s*(\d+)/.exec(fs.readFileSync(`/proc/${pid}/task/${thread}/sched`, 'latin1'))?.[1]]);
	if (!fs.existsSync('/proc/self/sched')) return;
	const [[, own]] = slices(process.pid);
	const [major, minor] = os.release().split('.').map(Number);
	if (own === undefined || major < 6 || (major === 6 && minor < 12)) return;
	const of = slices(gateway.service.pid);
	assert.ok(of.length > 1);
	for (const [isLoop, slice] of of) assert.equal(slice, isLoop ? '500000' : own);
});

/* In place of the name server: database.test is on this machine, which takes three seconds to find out. */
const lookup = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");

	if (node != NULL && strcmp(node, "database.test") == 0)
	{
		sleep(3);
		node = "127.0.0.1";
	}
	return real(node, service, hints, result);
}
`;

test('while the name of the database is looked up the gateway answers, and then it serves', async () => {
	await gateway.stop();
	const library = path.join(cluster.directory, 'lookup.so');
	fs.writeFileSync(`${library}.c`, lookup);
	execFileSync('cc', ['-shared', '-fPIC', '-o', library, `${library}.c`, '-ldl']);
	fs.chmodSync(library, 0o755);
	gateway = await cluster.addGateway(
		{ database: `host=database.test port=${cluster.settings.port} user=gateway dbname=sheets` },
		{ env: { LD_PRELOAD: library }, ready: '/livez' },
	);
	const slowest = { ms: 0 };
	const end = Date.now() + 2500;
	while (Date.now() < end) {
		const start = performance.now();
		assert.equal((await request(gateway, 'GET', '/livez')).status, 200);
		slowest.ms = Math.max(slowest.ms, performance.now() - start);
	}
	assert.ok(slowest.ms < 1000, `${slowest.ms} ms`);
	await waitUntil(async () => (await request(gateway, 'GET', '/readyz')).status === 200, 'the gateway to serve', 15000);
	const user = await register(gateway);
	await newSheet(gateway, user);
	assert.equal(await cluster.psql("SELECT count(DISTINCT client_addr) FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet %'"), '1');
});
