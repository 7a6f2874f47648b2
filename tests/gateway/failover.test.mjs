/*
 * Several servers in `database`: the gateway finds the primary whatever the others do, and the editors' work goes on after
 * the primary was killed and its standby promoted. Then what keeps a gateway from a server, and how it says so.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Cluster, freePort, waitUntil, writePrivateFile } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';
import { mustRunAs, signalAll } from '../lib/processes.mjs';
import { Standby } from '../lib/standby.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';

let cluster;
let standby;
let gateway;
let refused; // a port on which nobody listens
let mute; // one whose program accepts and says nothing
let full; // one whose program accepts nothing, and whose queue is full
const servers = [];

/* In place of the name server: many.test has two addresses, the first with nobody, and absent.test none. */
const lookup = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
typedef int Lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	Lookup *real = (Lookup *) dlsym(RTLD_NEXT, "getaddrinfo");
	int status;

	if (node != NULL && strcmp(node, "absent.test") == 0)
		return EAI_NONAME;
	if (node == NULL || strcmp(node, "many.test") != 0)
		return real(node, service, hints, result);
	status = real("127.0.0.2", service, hints, result);
	return status != 0 ? status : real("127.0.0.1", service, hints, &(*result)->ai_next);
}
`;

/** A listener whose queue of connections is full, so that further ones are not answered, as when packets are dropped. */
async function listenFull() {
	const script = [
		'import socket, sys, time',
		's = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(0)',
		'c = [socket.socket() for i in range(4)]',
		'[(x.setblocking(False), x.connect_ex(s.getsockname())) for x in c]',
		'print(s.getsockname()[1], flush=True); sys.stdin.read()',
	].join('\n');
	const child = spawn('python3', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
	servers.push({ close: () => child.stdin.end() });
	const [line] = await new Promise((resolve) => child.stdout.once('data', (data) => resolve(String(data).split('\n'))));
	return Number(line);
}

before(async () => {
	cluster = await Cluster.start({ gateways: 0, gatewayFlags: { 'database-deadline-ms': 3000 }, postgres: { listen_addresses: '127.0.0.1', port: await freePort() } });
	await cluster.psql("CREATE ROLE guarded LOGIN PASSWORD 'right' IN ROLE sheet_gateway");
	const rules = path.join(cluster.directory, 'data', 'pg_hba.conf');
	fs.writeFileSync(rules, `host all guarded 127.0.0.1/32 scram-sha-256\n${fs.readFileSync(rules, 'utf8')}`);
	standby = await Standby.start(cluster);
	await synchronize();
	refused = await freePort();
	const silent = net.createServer((socket) => socket.on('error', () => {}));
	await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve));
	servers.push(silent);
	mute = silent.address().port;
	full = await listenFull();
	const library = path.join(cluster.directory, 'lookup.so');
	fs.writeFileSync(`${library}.c`, lookup);
	execFileSync('cc', ['-shared', '-fPIC', '-o', library, `${library}.c`, '-ldl']);
	fs.chmodSync(library, 0o755);
	gateway = await cluster.addGateway({ database: conninfo(['127.0.0.1', cluster.settings.port]) }, { env: { LD_PRELOAD: library, ASAN_OPTIONS: 'verify_asan_link_order=0' } });
});
after(async () => {
	await Promise.all(cluster?.gateways.map(({ service }) => service?.stop()) ?? []);
	await standby?.stop();
	await cluster?.stop();
	for (const server of servers) server.close();
});

/** pairs of host and port */
function conninfo(...pairs) {
	const [hosts, ports] = [0, 1].map((i) => pairs.map((pair) => pair[i]).join(','));
	return `host=${hosts} port=${ports} user=gateway dbname=sheets connect_timeout=2`;
}

const log = () => fs.readFileSync(gateway.service.log, 'utf8');
/** What the gateway has logged since it was started the last time with start(). */
let logged = 0;
const fresh = () => log().slice(logged);
const serves = async () => (await request(gateway, 'GET', '/readyz')).status === 200;

async function start(database, { env = {}, ready = '/readyz' } = {}) {
	await gateway.stop();
	logged = log().length;
	await gateway.start({ database }, { env, ready });
}

/** Each connection has found the server of this port, which is the cluster's. A connection may have been opened twice. */
async function allAreAt(port) {
	await waitUntil(
		async () => {
			const pids = [...fresh().matchAll(new RegExp(`database connected .*port="${port}" server_pid=(\\d+)`, 'g'))].map(([, pid]) => pid);
			return pids.length >= 19 && (await cluster.psql(`SELECT count(*) FROM pg_stat_activity WHERE pid IN (${pids})`)) === '19';
		},
		() => `19 connections to port ${port}: ${fresh()}`,
	);
	await waitUntil(serves, 'the gateway to serve');
}

test('the primary is found behind hosts that refuse, hang, drop packets, or are standbys', async () => {
	const { port } = cluster.settings;
	const primary = ['127.0.0.1', port];
	const socket = `${cluster.directory}/socket`;
	for (const [database, said] of [
		[conninfo(['127.0.0.1', refused], primary), new RegExp(`port ${refused} failed: Connection refused`)],
		[conninfo(['127.0.0.1', mute], primary), new RegExp(`port ${mute} failed: no answer within 2000 ms`)],
		[conninfo(['127.0.0.1', full], ['127.0.0.1', mute], primary), new RegExp(`port ${full} failed: no answer within 2000 ms`)],
		[`${conninfo(['127.0.0.1', standby.port], primary)} target_session_attrs=read-write`, new RegExp(`port ${standby.port} failed: .*standby`)],
		[`${conninfo(['127.0.0.1', standby.port], primary)} target_session_attrs=any`, new RegExp(`port ${standby.port} failed: .*standby`)],
		[`${conninfo(['127.0.0.1', standby.port], primary)} target_session_attrs=primary`, new RegExp(`port ${standby.port} failed: .*standby`)],
		[conninfo(['::1', refused], primary), /"::1", port \d+ failed: /],
		[conninfo(['/nonexistent', port], [socket, standby.port], [socket, port]), /socket ."\/nonexistent\/.s.PGSQL.* failed: No such file/],
		[`${conninfo(['a.test', refused], ['b.test', port])} hostaddr=127.0.0.1,127.0.0.1`, /"a.test" \(127.0.0.1\), port \d+ failed/],
		[conninfo(['absent.test', port], ['many.test', port]), /"absent.test\\" cannot be looked up/],
		[conninfo(['many.test', port]), /"many.test" \(127.0.0.2\), port \d+ failed/],
	]) {
		await start(database);
		await allAreAt(port);
		const lines = fresh().replaceAll('\\"', '"').split('\n').filter((line) => line.includes(' warn '));
		assert.ok(lines.some((line) => said.test(line) || said.test(line.replaceAll('"', '\\"'))), `${said}: ${lines.join('\n')}`);
		// A cause is logged once, though 19 connections suffer from it.
		const causes = lines.map((line) => /reason="(.*)"/.exec(line)?.[1]);
		assert.equal(new Set(causes).size, causes.length, lines.join('\n'));
	}
});

test('a service, and a password for each host', async () => {
	const { port } = cluster.settings;
	const services = path.join(cluster.directory, 'pg_service.conf');
	const passwords = path.join(cluster.directory, 'passwords');
	writePrivateFile(services, `[sheets]\nhost=127.0.0.1,localhost\nport=${refused},${port}\nuser=guarded\ndbname=sheets\n`);
	writePrivateFile(passwords, `127.0.0.1:*:*:*:wrong\nlocalhost:*:*:*:right\n`);
	await start(`service=sheets passfile=${passwords}`, { env: { PGSERVICEFILE: services } });
	await allAreAt(port);
	await start(`host=127.0.0.1,localhost port=${port},${port} user=guarded dbname=sheets passfile=${passwords}`);
	await allAreAt(port);
	assert.match(fresh(), /"127.0.0.1\\", port \d+ failed: FATAL:  28P01: password authentication failed for user \\"guarded\\"" hint="correct the user or its password/);
});

test('what a gateway cannot use is refused at the start, without a connection', async () => {
	for (const [database, said] of [
		['host=127.0.0.1 target_session_attrs=standby', /a gateway writes/],
		['host=127.0.0.1 target_session_attrs=prefer-standby', /a gateway writes/],
		['host=127.0.0.1 target_session_attrs=read-only', /a gateway writes/],
		['host=127.0.0.1 target_session_attrs=sometimes', /target_session_attrs/],
		['host=127.0.0.1 sslmode=perhaps', /sslmode/],
		['host=127.0.0.1,127.0.0.1,127.0.0.1 port=1,2', /could not match 2 port numbers to 3 hosts/],
		['service=no-such-service', /no-such-service/],
		['nonsense', /missing "=" after "nonsense"/],
	]) {
		const result = await cluster.runGateway({ database });
		assert.equal(result.code, 2, `${database}: ${JSON.stringify(result)}`);
		assert.match(result.stderr, said);
	}
});

/** Writers write while `fail` ends the primary's service in its way and the standby is promoted. */
async function failOver(fail) {
	const { port } = cluster.settings;
	await start(conninfo(['127.0.0.1', port], ['127.0.0.1', mute], ['127.0.0.1', standby.port]));
	await allAreAt(port);
	const user = await register(gateway);
	const fid = await newSheet(gateway, user);
	const writers = [0, 1].map((i) => new Writer(`w${i}`, i, user, fid, () => gateway));
	for (const writer of writers) await writer.progress(50);
	await fail();
	await standby.promote();
	for (const writer of writers) await writer.progress(50, 60000);
	await Promise.all(writers.map((writer) => writer.stop()));
	await checkNothingLost(cluster, fid, writers);
	await allAreAt(cluster.settings.port);
	assert.match(fresh(), /database connections work again/);
}

/**
 * The former primary of this port runs on. A connection that the new one refuses does not go to it, nor do the others.
 */
async function staysAway(formerPort) {
	const former = () =>
		mustRunAs(path.join(cluster.bin, 'psql'), ['-XqAtc', 'SELECT pg_is_in_recovery()', `host=127.0.0.1 port=${formerPort} user=postgres dbname=sheets connect_timeout=5`]);
	await waitUntil(async () => (await former()).trim() === 'f', 'the former primary to serve');
	const user = await register(gateway);
	const fid = await newSheet(gateway, user);
	const writer = new Writer('w', 0, user, fid, () => gateway);
	const { length } = log();
	try {
		await writer.progress(50);
		await cluster.psql(
			"ALTER ROLE gateway CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg_sheet group' ORDER BY pid LIMIT 1",
		);
		const said = new RegExp(`port ${formerPort} failed: this is a former primary: its timeline \\d+ .* of the server at .*port ${cluster.settings.port}, which .* hint="stop this server`);
		await waitUntil(() => said.test(log().slice(length)) || log().slice(length).includes('database connected'), 'the connection to try the former primary');
		assert.match(log().slice(length), said);
		await writer.progress(50);
		await cluster.psql('ALTER ROLE gateway CONNECTION LIMIT -1');
		await allAreAt(cluster.settings.port);
		await writer.progress(50);
	} finally {
		await writer.stop();
	}
	assert.doesNotMatch(log().slice(length), new RegExp(`database connected .*port="${formerPort}"`));
	await checkNothingLost(cluster, fid, [writer]);
}

/** Commits wait for the standby. */
async function synchronize() {
	await cluster.psql("SET synchronous_commit = local; ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf()");
	await waitUntil(() => cluster.psql("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"), 'the standby to be synchronous');
}

test('after the primary is paused and its standby promoted, no connection stays behind, and none goes back when it runs on', async () => {
	const former = cluster.postgres;
	const formerPort = cluster.settings.port;
	let pids = [former.pid];
	try {
		await failOver(() => {
			pids = [former.pid, ...execFileSync('pgrep', ['-P', `${former.pid}`]).toString().trim().split('\n').map(Number)];
			signalAll(pids, 'SIGSTOP');
		});
		signalAll(pids, 'SIGCONT');
		await staysAway(formerPort);
	} finally {
		signalAll(pids, 'SIGKILL');
		await former.ended;
	}
});

test('after the primary was killed and its standby promoted, everything that was acknowledged is there, and editing goes on', async () => {
	const former = cluster.postgres;
	if (standby.postgres === former) standby = await Standby.start(cluster);
	await synchronize();
	await failOver(async () => {
		former.signal('SIGKILL');
		await former.ended;
	});
});
