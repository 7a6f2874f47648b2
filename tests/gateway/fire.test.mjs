/*
 * One order for all, and nothing acknowledged lost, while everything is stopped, killed and started again in the middle of a
 * flood. What each connection was told must be a piece of the log without a gap, and every acknowledged edit must be in it
 * once (checkNothingLost in lib/writer.mjs). operations.test.mjs has the gateway that is stopped with SIGTERM.
 */
import { after, before, beforeEach, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Cluster, isAlive, repository, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register, request } from '../lib/client.mjs';
import { roundsToRun, signalAll } from '../lib/processes.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';
import { startWriterProcess } from '../lib/writer_process.mjs';

let cluster;
let gateway;
let users;
let fid;

before(async () => {
	cluster = await Cluster.start({
		postgres: { restart_after_crash: 'on' },
		gatewayFlags: { 'send-queue-bytes': 1 << 20, 'database-deadline-ms': 3000 },
	});
	[gateway] = cluster.gateways;
	users = [await register(gateway), await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, users[0]);
});

/** Joins, is told for a while, goes (every other time without a word), and joins again. */
class Visitor {
	constructor(name) {
		Object.assign(this, { name, order: [], streams: [], stopping: false });
		this.done = this.run();
	}

	async run() {
		while (!this.stopping) {
			let editor;
			try {
				editor = await Editor.open(gateway, users[2], fid, { timeoutMs: 5000 });
			} catch {
				await sleep(50);
				continue;
			}
			this.streams.push(editor);
			await sleep(100);
			if (this.streams.length % 2) editor.terminate();
			else if (!editor.closed) editor.socket.close(1000);
		}
	}
}

/** Writers, visitors and a reader that does not read for most of the time, while `disturb` happens; then the books are balanced. */
async function underFire(disturb) {
	// The test before may have ended the gateway's connections.
	await waitUntil(async () => (await request(gateway, 'GET', '/readyz')).status === 200, 'the gateway to be ready', 30000);
	const lazy = await Editor.open(gateway, users[2], fid);
	const writers = [0, 1].map((i) => new Writer(`w${i}`, i, users[i], fid, () => gateway));
	const visitors = [0, 1].map((i) => new Visitor(`v${i}`));
	const outside = startWriterProcess('outside', 2, users[2], fid, gateway);
	const reading = setInterval(() => (lazy.socket.isPaused ? lazy.socket.resume() : lazy.socket.pause()), 150);
	let report;
	try {
		await outside.ready();
		for (const writer of writers) await writer.progress(50);
		await disturb({ outside, writers });
		for (const writer of writers) await writer.progress(100, 30000);
	} finally {
		clearInterval(reading);
		lazy.socket.resume();
		for (const visitor of visitors) visitor.stopping = true;
		await Promise.all([...writers.map((writer) => writer.stop()), ...visitors.map((visitor) => visitor.done)]);
		report = await outside.report();
		lazy.terminate();
	}
	const readers = [...visitors, { name: 'lazy', order: [], streams: [lazy] }];
	const log = await checkNothingLost(cluster, fid, [...writers, report, ...readers]);
	assert.ok(report.order.length >= 50);
	for (const writer of writers) assert.equal(writer.unanswered, 0, `${writer.name}: everything on the last connection is answered`);
	const late = await Editor.open(gateway, users[0], fid);
	for (const { row, col, content } of await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid})`))
		assert.equal(late.cells.get(`${row},${col}`), content);
	await late.close();
	assert.ok(visitors.every(({ streams }) => streams.some(({ messages }) => messages.length > 1)));
	assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true, false)`), 'clean');
	return { edits: log.length, connections: writers[0].connections + writers[1].connections + report.connections };
}

const backends = async () =>
	(await cluster.psql("SELECT pid FROM pg_stat_activity WHERE usename = 'gateway' AND backend_type = 'client backend'"))
		.split('\n')
		.map(Number);

const resent = async () =>
	Object.entries(await gateway.metrics()).find(([name]) => name.endsWith('batches_resent_total'))[1];

test('a client, the gateway and its backends are stopped for a while, and go on', async (context) => {
	const figures = await underFire(async ({ outside, writers }) => {
		for (let round = 0; round < roundsToRun(1, 10); round++) {
			outside.signal('SIGSTOP');
			await writers[0].progress(100);
			gateway.service.signal('SIGSTOP');
			await sleep(500);
			gateway.service.signal('SIGCONT');
			await writers[1].progress(50);
			outside.signal('SIGCONT');
			const pids = await backends();
			signalAll(pids, 'SIGSTOP');
			await sleep(500);
			signalAll(pids, 'SIGCONT');
			for (const writer of writers) await writer.progress(50);
		}
	});
	context.diagnostic(`${figures.edits} edits, ${figures.connections} connections of the writers`);
});

test('a backend that is stopped for longer than the deadline: the batch goes again, and lands once', async (context) => {
	const before_ = await resent();
	const figures = await underFire(async ({ writers }) => {
		// All backends are stopped: a batch is sent again only if the connection that asks about it is silent, too. A
		// backend may be stopped while it holds a lock in shared memory. Then no other backend can do anything either.
		for (let round = 0; round < 5 && (await resent()) === before_; round++) {
			const pids = await backends();
			signalAll(pids, 'SIGSTOP');
			await waitUntil(async () => (await resent()) > before_, 'the deadline', 15000, 100).catch(() => {});
			signalAll(pids, 'SIGCONT');
		}
		assert.ok((await resent()) > before_, 'a batch was sent again');
		for (const writer of writers) await writer.progress(50, 30000);
	});
	context.diagnostic(`${figures.edits} edits, ${figures.connections} connections of the writers`);
});

/** All processes of the server, once `first` has been done to the postmaster, which starts the others. */
function serverProcesses(first) {
	const postmaster = cluster.postgres.pid;
	first(postmaster);
	const children = fs.readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8');
	return [postmaster, ...children.trim().split(' ').map(Number)];
}

test('all of PostgreSQL is stopped for five seconds: nothing is acknowledged meanwhile, the gateway says so and goes on', async (context) => {
	const figures = await underFire(async ({ writers }) => {
		const pids = serverProcesses((postmaster) => process.kill(postmaster, 'SIGSTOP'));
		signalAll(pids, 'SIGSTOP');
		const until = Date.now() + 5000;
		try {
			const ready = async () => (await request(gateway, 'GET', '/readyz')).status;
			await waitUntil(async () => (await ready()) === 503, 'the gateway to notice');
			const told = () => writers.map(({ echoed }) => echoed.size);
			const toldBefore = told();
			await sleep(until - Date.now());
			assert.equal(await ready(), 503);
			assert.deepEqual(told(), toldBefore);
		} finally {
			signalAll(pids, 'SIGCONT');
		}
		for (const writer of writers) await writer.progress(50, 30000);
	});
	context.diagnostic(`${figures.edits} edits, ${figures.connections} connections of the writers`);
});

test('the disk under PostgreSQL is full: it goes down, and with room it comes back with everything acknowledged', async (context) => {
	const figures = await underFire(async ({ writers }) => {
		// No file can be written to (as in tests/tap/055_am_full_disk.pl): the log of PostgreSQL neither.
		const limit = (pid) => execFileSync('prlimit', ['--pid', `${pid}`, '--fsize=1:unlimited'], { stdio: 'ignore' });
		const [, ...others] = serverProcesses(limit);
		for (const pid of others) {
			try {
				limit(pid);
			} catch {
				// The first to write has taken it along.
			}
		}
		await waitUntil(() => !cluster.postgres.alive, 'the server to give up', 30000);
		await cluster.startPostgres();
		for (const writer of writers) await writer.progress(50, 30000);
	});
	context.diagnostic(`${figures.edits} edits, ${figures.connections} connections of the writers`);
});

test('the gateway and all of PostgreSQL are killed with -9, in turns', async (context) => {
	const figures = await underFire(async ({ writers }) => {
		for (let round = 0; round < roundsToRun(1, 10); round++) {
			await gateway.kill();
			await gateway.start();
			for (const writer of writers) await writer.progress(50, 30000);
			const pids = serverProcesses(() => true).slice(1);
			await cluster.postgres.kill();
			await waitUntil(() => pids.every((pid) => !isAlive(pid)), 'its processes to notice');
			await cluster.startPostgres();
			for (const writer of writers) await writer.progress(50, 30000);
		}
	});
	context.diagnostic(`${figures.edits} edits, ${figures.connections} connections of the writers`);
});

test("the gateway's backend of PostgreSQL is killed with -9", () =>
	underFire(async ({ writers }) => {
		signalAll(await backends(), 'SIGKILL'); // the first one takes the others along
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

test('the connections of the gateway are terminated by an administrator', () =>
	underFire(async ({ writers }) => {
		await cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gateway'");
		for (const writer of writers) await writer.progress(50, 30000);
		assert.ok(gateway.service.alive);
	}));

for (const mode of ['fast', 'immediate']) {
	test(`PostgreSQL is restarted (${mode})`, () =>
		underFire(async () => {
			await cluster.stopPostgres(mode);
			const { status } = await request(gateway, 'GET', '/healthz');
			assert.ok(gateway.service.alive, 'the gateway outlives its database');
			assert.ok([200, 503].includes(status));
			await waitUntil(async () => (await request(gateway, 'GET', '/readyz')).status === 503, 'the gateway to notice');
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

test('200 sheets at one edit a second each: every edit comes back soon, and is logged once in its sheet', async (context) => {
	const [count, rounds] = [200, 5];
	const first = Number(await cluster.psql('SELECT coalesce(max(sheet_id), 0) FROM sheet.sheet'));
	for (let i = 0; i < count; i++) await newSheet(gateway, users[0], { name: `sheet ${i}` });
	const fids = (await cluster.rows(`SELECT sheet_id FROM sheet.sheet WHERE sheet_id > ${first} ORDER BY sheet_id`)).map(
		(row) => row.sheet_id,
	);
	assert.equal(fids.length, count);
	const editors = [];
	for (let i = 0; i < count; i += 20)
		editors.push(...(await Promise.all(fids.slice(i, i + 20).map((id) => Editor.open(gateway, users[0], id)))));
	const times = [];
	await Promise.all(
		editors.map(async (editor, i) => {
			await sleep((i * 1000) / count);
			for (let round = 0; round < rounds; round++) {
				const started = performance.now();
				editor.modify(round, i % 10, `${i} in round ${round}`);
				await editor.nextModify(round, i % 10, `${i} in round ${round}`);
				times.push(performance.now() - started);
				await sleep(Math.max(0, 1000 - (performance.now() - started)));
			}
		}),
	);
	for (const editor of editors) editor.terminate();
	times.sort((a, b) => a - b);
	context.diagnostic(
		`${times.length} edits, echo p50 ${times[times.length >> 1].toFixed(1)} ms, p99 ${times[Math.floor(times.length * 0.99)].toFixed(1)} ms`,
	);
	assert.ok(times[times.length >> 1] < 500, 'half of the echoes within half a second, on a busy machine');
	const logged = await cluster.rows(
		`SELECT sheet_id, array_agg(new ORDER BY seq) AS news FROM sheet.log WHERE sheet_id > ${first} AND kind = 'set' GROUP BY sheet_id ORDER BY sheet_id`,
	);
	assert.deepEqual(
		logged,
		fids.map((id, i) => ({ sheet_id: id, news: Array.from({ length: rounds }, (_, round) => `${i} in round ${round}`) })),
	);
});
