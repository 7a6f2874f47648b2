/* How the gateway starts, with a slow name server too, and what it refuses to start with; the page, the operator's pages, and origins. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Cluster, freePort, waitUntil, writePrivateFile } from '../lib/cluster.mjs';
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
		const answer = await request(gateway, 'GET', '/metrics');
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

test('durable=false commits edits without waiting for the disk, and says so', async () => {
	assert.equal((await request(gateway, 'GET', '/healthz')).json.durable, true);
	await gateway.stop();
	gateway = await cluster.addGateway({ durable: 'false' });
	assert.equal((await request(gateway, 'GET', '/healthz')).json.durable, false);
	await waitUntil(
		() => cluster.psql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'pg_sheet edits' AND query LIKE '%''synchronous_commit'', ''off''%'"),
		'the sessions that write edits to be relaxed',
	);
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
