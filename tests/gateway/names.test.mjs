/*
 * A slow name server stops nothing: the gateway serves while the name of its database is looked up.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, freePort, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';

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
let cluster;
let port;

before(async () => {
	port = await freePort();
	cluster = await Cluster.start({ gateways: 0, postgres: { listen_addresses: '127.0.0.1', port } });
});
after(() => cluster?.stop());

test('while the name of the database is looked up the gateway answers, and then it serves', async () => {
	const library = path.join(cluster.directory, 'lookup.so');
	fs.writeFileSync(`${library}.c`, lookup);
	execFileSync('cc', ['-shared', '-fPIC', '-o', library, `${library}.c`, '-ldl']);
	fs.chmodSync(library, 0o755);
	const gateway = await cluster.addGateway({ database: `host=database.test port=${port} user=gateway dbname=sheets` }, { env: { LD_PRELOAD: library }, ready: '/livez' });
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
