/* What is acknowledged survives: the gateway killed, a backend of PostgreSQL killed, PostgreSQL restarted, all while editing. */
import { after, before, beforeEach, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Cluster, isAlive, repository, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register, request } from '../lib/client.mjs';
import { signalAll } from '../lib/processes.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';

let cluster;
let gateway;
let users;
let fid;

before(async () => {
	cluster = await Cluster.start({ postgres: { restart_after_crash: 'on', log_line_prefix: '%m [%p] %e ' } });
	[gateway] = cluster.gateways;
	users = [await register(gateway), await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, users[0]);
});

/** Three writers edit while `disturb` happens; then nothing acknowledged is missing, and everybody goes on. */
async function survive(disturb) {
	const writers = users.map((user, i) => new Writer(`w${i}`, i, user, fid, () => gateway));
	try {
		for (const writer of writers) await writer.progress(100);
		await disturb(writers);
		for (const writer of writers) await writer.progress(100, 30000);
	} finally {
		await Promise.all(writers.map((writer) => writer.stop()));
	}
	for (const writer of writers)
		assert.equal(writer.unanswered, 0, `${writer.name}: everything on the last connection is answered`);
	await checkNothingLost(cluster, fid, writers);
	assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true, false)`), 'clean');
	const late = await Editor.open(gateway, users[0], fid);
	for (const { row, col, content } of await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid})`))
		assert.equal(late.cells.get(`${row},${col}`), content);
	await late.close();
}

test('the gateway is killed with -9 and started again', () =>
	survive(async (writers) => {
		for (let round = 0; round < 3; round++) {
			await gateway.kill();
			await sleep(100);
			await gateway.start();
			for (const writer of writers) await writer.progress(50, 30000);
		}
	}));

test('the gateway is stopped with SIGTERM: it drains, closes its clients and exits with 0', () =>
	survive(async () => {
		const { code } = await gateway.stop();
		assert.equal(code, 0);
		await gateway.start();
	}));

test("the gateway's backend of PostgreSQL is killed with -9", () =>
	survive(async (writers) => {
		const pids = (
			await cluster.psql(
				"SELECT pid FROM pg_stat_activity WHERE usename = 'gateway' AND backend_type = 'client backend'",
			)
		).split('\n');
		assert.ok(pids.length >= 1 && pids.every((pid) => /^\d+$/.test(pid)));
		signalAll(pids.map(Number), 'SIGKILL'); // the first one takes the others along
		await waitUntil(() => cluster.psql('SELECT 1'), 'PostgreSQL to recover', 30000, 100);
		for (const writer of writers) await writer.progress(50, 30000);
		assert.ok(gateway.service.alive);
	}));

test('a connection does not keep the number of a socket that libpq has closed: another one has it by then', async () => {
	execFileSync('make', ['-s', '-C', path.join(repository, 'tests', 'unit'), `BUILD=${cluster.directory}/build`, 'pgconn_probe'], {
		stdio: ['ignore', 'inherit', 'inherit'],
	});
	const probe = spawn(path.join(cluster.directory, 'build', 'pgconn_probe'), [cluster.conninfo('gateway')], {
		stdio: ['pipe', 'pipe', 'inherit'],
	});
	const ended = once(probe, 'exit');
	const said = [];
	for await (const line of createInterface({ input: probe.stdout })) {
		said.push(line);
		const server = /^server (\d+)$/.exec(line);
		if (server) {
			process.kill(Number(server[1]), 'SIGKILL');
			await waitUntil(() => !isAlive(Number(server[1])), 'the backend to be gone');
			probe.stdin.write('gone\n');
		}
	}
	assert.deepEqual(said.slice(1), ['reused', 'woken', 'again']);
	assert.deepEqual(await ended, [0, null]);
	await waitUntil(() => cluster.psql('SELECT 1'), 'PostgreSQL to recover', 30000, 100);
});

test('one connection of the gateway is terminated by an administrator', () =>
	survive(async () => {
		await cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gateway'");
		await sleep(200);
		assert.ok(gateway.service.alive);
	}));

for (const mode of ['fast', 'immediate']) {
	test(`PostgreSQL is restarted (${mode})`, () =>
		survive(async () => {
			await cluster.stopPostgres(mode);
			const health = await request(gateway, 'GET', '/healthz');
			assert.ok(gateway.service.alive, 'the gateway outlives its database');
			assert.ok([200, 503].includes(health.status));
			await sleep(500);
			await cluster.startPostgres();
		}));
}

for (const busy of [false, true]) {
	test(`edits are trimmed before the gateway has read them: its editors come again (${busy ? 'editing' : 'idle'})`, async () => {
		const editor = await Editor.open(gateway, users[0], fid);
		editor.modify(0, 0, 'before');
		await editor.settle(9, 9);
		gateway.service.signal('SIGSTOP');
		try {
			if (busy) editor.modify(1, 1, 'meanwhile');
			await cluster.psql(`SELECT sheet.set(${fid}, 'C1', 'by SQL')`);
			const version = await cluster.psql(`SELECT sheet.commit(${fid})`);
			await cluster.psql(`SELECT sheet.trim(${fid}, ${version})`);
		} finally {
			gateway.service.signal('SIGCONT');
		}
		assert.equal((await editor.waitClosed()).code, 1012);
		const again = await Editor.open(gateway, users[0], fid);
		assert.equal(again.cells.get('0,0'), 'before');
		assert.equal(again.cells.get('0,2'), 'by SQL');
		again.modify(2, 2, 'after');
		await again.settle(9, 9);
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'C3')`), 'after');
		assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true, false)`), 'clean');
		await again.close();
	});
}

test('while PostgreSQL is paused nothing is acknowledged, and everything is afterwards', async () => {
	const editor = await Editor.open(gateway, users[0], fid);
	await editor.settle(9, 9);
	const pids = (await cluster.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'gateway'"))
		.split('\n')
		.map(Number);
	try {
		signalAll(pids, 'SIGSTOP');
		for (let i = 0; i < 50; i++) editor.modify(0, i % 10, `paused ${i}`);
		await sleep(500);
		assert.ok(!editor.modifies().some(({ row }) => row === 0), 'no acknowledgement without a commit');
	} finally {
		signalAll(pids, 'SIGCONT');
	}
	await editor.nextModify(0, 9, 'paused 49', 20000);
	assert.equal(editor.modifies().filter(({ row }) => row === 0).length, 50);
	assert.equal(
		await cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND new LIKE 'paused %'`),
		'50',
	);
	await editor.close();
});
