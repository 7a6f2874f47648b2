/*
 * More than the gateway or the database can take, by the load generator of the benchmark `edit`, which checks that every
 * user gets every edit, in each sender's order and in one order for all.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster, repository, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register } from '../lib/client.mjs';
import { compareWithModel } from '../bench/edit/check.mjs';

const columns = 100;
let directory;
let cluster;
let gateway;
const users = [];

before(async () => {
	directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tests-overload-'));
	execFileSync('make', ['-s', '-C', path.join(repository, 'tests', 'bench', 'edit'), `BUILD=${directory}`]);
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'stalled-receiver-seconds': 5 } });
	[gateway] = cluster.gateways;
	for (let i = 0; i < 10; i++) users.push(await register(gateway));
});
after(async () => {
	await cluster?.stop();
	fs.rmSync(directory, { recursive: true, force: true });
});

const memory = () => gateway.memory();
const open = (fid) => Editor.open(gateway, users[0], fid, { timeoutMs: 5000 });

/** Users who write as fast as TCP takes it (rate: edits a second and user) for some seconds, from when all have joined; with a promise of the checked result. */
async function flood(fid, seconds, { count = users.length, rate = 0, joined = async () => {} } = {}) {
	const [tokens, cells] = ['tokens', 'cells'].map((name) => path.join(directory, name));
	fs.writeFileSync(tokens, users.slice(0, count).map(({ token }) => `${token}\n`).join(''));
	const args = [gateway.port, fid, tokens, seconds, rate, cells, 20].map(String);
	const child = spawn(path.join(directory, 'edit_generator'), args, { stdio: ['pipe', 'pipe', 'inherit'] });
	const lines = [];
	let text = '';
	child.stdout.on('data', (data) => {
		const parts = (text + data).split('\n');
		text = parts.pop();
		lines.push(...parts);
	});
	await waitUntil(() => lines.length > 0 || child.exitCode !== null, 'the writers to join', 20000);
	await joined();
	child.stdin.write('go\n');
	const finished = (async () => {
		await waitUntil(() => lines.length > 1 || child.exitCode !== null, 'everything to come back', 60000);
		child.stdin.end();
		const result = JSON.parse(lines[1]);
		const { problems } = await compareWithModel((sql) => cluster.psql(sql), fid, result, cells);
		assert.deepEqual(problems, []);
		assert.deepEqual([result.lost, result.reordered, result.other_messages], [0, 0, 0]);
		return result;
	})();
	return { finished };
}

const flooded = () => newSheet(gateway, users[0], { rows: 10, columns });

test('while nothing can be committed, senders are held back in bounded memory; afterwards everything is there within seconds', async (t) => {
	const fid = await flooded();
	const session = cluster.psqlSession();
	const before = memory();
	let most = 0;
	try {
		const { finished } = await flood(fid, 1.5, {
			joined: () => session.query(`BEGIN; SELECT sheet.set(${fid}, 9, ${columns - 1}, 'held')`),
		});
		for (let i = 0; i < 20; i++) {
			most = Math.max(most, memory() - before);
			await sleep(100);
		}
		await session.query('ROLLBACK');
		const { sent, total_seconds: seconds } = await finished;
		const { pg_sheet_sender_pauses_total: pauses } = await gateway.metrics();
		t.diagnostic(`${sent} edits were sent against a database that took none; the gateway grew by ${most} kB; ${pauses} pauses`);
		assert.ok(pauses > 0, 'the senders were paused');
		assert.ok(most < 64 * 1024, `the gateway grew by ${most} kB`);
		assert.ok(seconds < 2.2 + 5, `the backlog was there after ${seconds - 2.2} s`);
	} finally {
		await session.close();
	}
});

test('a reader that does not read is cut off, and nine others do not notice', async (t) => {
	const fid = await flooded();
	const slow = await open(fid);
	slow.socket.pause();
	const { finished } = await flood(fid, 4, { count: 9 });
	const { received, total_seconds: seconds } = await finished;
	t.diagnostic(`${Math.round(received / 9 / seconds)} edits a second and user beside a reader that does not read`);
	assert.ok(received / 9 / seconds > 5000);
	slow.socket.resume();
	assert.equal((await slow.waitClosed(10000)).code, 1013);
	assert.ok((await gateway.metrics()).pg_sheet_sessions_slow_total >= 1);
});

test('joins in the middle of 5,000 edits a second are prompt and exact', async () => {
	const fid = await flooded();
	const { finished } = await flood(fid, 3, { rate: 500 }); // what a client in JavaScript can read
	const joiners = [];
	for (let i = 0; i < 5; i++) {
		const editor = await open(fid); // onConn within 5 s
		joiners.push(editor);
		if (i % 2) editor.terminate();
		await sleep(100);
	}
	await finished;
	const want = (await open(fid)).grid();
	assert.ok(want.length > 500);
	for (const editor of joiners.filter((_, i) => i % 2 === 0)) {
		await waitUntil(
			() => editor.closed || JSON.stringify(editor.grid()) === JSON.stringify(want),
			'the joiner to have what all have',
			20000,
			100,
		);
		assert.equal(editor.closed, null);
		editor.terminate();
	}
});

test('a flood without any cache is slower, and whole', async (t) => {
	cluster.settings['pg_sheet.cache_size'] = '0';
	await cluster.restartPostgres('fast');
	await waitUntil(
		async () => (await gateway.metrics().catch(() => ({}))).pg_sheet_database_up !== 0 && (await canOpen()),
		'the gateway to serve again',
		15000,
		200,
	);
	const { finished } = await flood(await flooded(), 1.5);
	const { received, total_seconds: seconds } = await finished;
	t.diagnostic(`${Math.round(received / users.length / seconds)} edits a second and user with pg_sheet.cache_size 0`);
});

async function canOpen() {
	try {
		const editor = await open(await flooded());
		editor.terminate();
		return true;
	} catch {
		return false;
	}
}
