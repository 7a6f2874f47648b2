/*
 * edit.mjs - drives the benchmark `edit`: users of one sheet write as fast as TCP takes it, through WebSocket to a durable
 * commit and back to all of them (generator.c), and says what it measured. The last line is one line of JSON.
 *
 * Settings from the environment: USERS=10, SECONDS=10, RATE=0 (edits a second and user on an open loop; 0 is unlimited).
 * The cluster is the one of PG_SHEET_URL, PG_SHEET_DATABASE, PG_SHEET_GATEWAY_PID and PG_SHEET_POSTGRES_PID, or a private
 * one (tests/lib/cluster.mjs), with fsync on.
 *
 *   send_per_user   edits that one user sent, per second of the sending time
 *   recv_per_user   edits that one user received (its own and all others'), per second until the last one had come back
 *   lost            edits that were sent and not received, summed over the receivers
 *   reordered       edits out of their sender's order, and receivers whose stream differs from the first one's
 *   p50_ms, p99_ms  from making an edit (RATE: from when it was due) to its sender's receiving it
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { newSheet, register } from '../../lib/client.mjs';
import { cpuOfAll, peakMegabytes, place, setting, startGenerator } from '../common/site.mjs';
import { compareWithModel } from './check.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const columns = 100;

const snapshotSql = (fid) => `
	SELECT json_build_object('batches', (SELECT count(*) FROM sheet.log_batch WHERE sheet_id = ${fid}),
		'wal', pg_current_wal_insert_lsn() - '0/0'::pg_lsn)`;

function print(result, run, check) {
	const number = (value, digits = 0) => value.toLocaleString('en-US', { maximumFractionDigits: digits });
	const rows = [
		[
			'users, seconds, rate',
			`${result.users}, ${run.seconds}, ${run.rate ? `${run.rate}/s and user, open loop` : 'unlimited (TCP backpressure only)'}`,
		],
		[
			'durability',
			`fsync ${run.fsync}, synchronous_commit ${run.synchronousCommit}: an edit is sent to anybody after its commit`,
		],
		['sent', `${number(result.sent)} edits: ${number(run.json.send_per_user)} a second and user`],
		[
			'received',
			`${number(result.received)} edits: ${number(run.json.recv_per_user)} a second and user, ${number(result.total_seconds, 2)} s until the last one`,
		],
		['lost, reordered', `${number(result.lost)}, ${number(result.reordered)}; other messages ${result.other_messages}`],
		[
			'echo latency',
			`p50 ${result.p50_ms} ms, p90 ${result.p90_ms} ms, p99 ${result.p99_ms} ms, max ${result.max_ms} ms (${number(result.latency_samples)} samples)`,
		],
		['commits', `${number(run.json.commits_per_s)} a second, ${number(run.json.edits_per_commit, 1)} edits each`],
		[
			'WAL',
			`${number(run.wal / 1e6, 1)} MB, ${number(run.wal / Math.max(result.changed, 1), 1)} bytes for each of ${number(result.changed)} logged edits`,
		],
		[
			'to each user',
			`${number(result.stream_bytes / 1e6, 1)} MB, ${number(result.stream_bytes / Math.max(result.sent, 1), 1)} bytes an edit`,
		],
		['gateway, peak memory', `${run.peak} MB`],
		...run.cpu.map(([name, seconds]) => [
			`CPU of ${name}`,
			`${number(seconds, 2)} s, ${number((seconds / result.total_seconds) * 100)} % of a core`,
		]),
		[
			'log and cells',
			check.problems.length
				? check.problems.join('; ')
				: `as the generator says: ${number(check.logged)} edits logged, ${check.cells} cells`,
		],
	];
	for (const [name, text] of rows) process.stdout.write(`${name.padEnd(24)} ${text}\n`);
	process.stdout.write(`${JSON.stringify(run.json)}\n`);
}

async function main() {
	const [users, seconds, rate] = [
		setting('USERS', 10, 1, 500),
		setting('SECONDS', 10, 0.1, 600),
		setting('RATE', 0, 0, 1e7),
	];
	execFileSync('make', ['-s', '-C', here], { stdio: ['ignore', 'ignore', 'inherit'] });
	const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-edit-'));
	process.on('exit', () => fs.rmSync(temporary, { recursive: true, force: true }));
	const site = await place();
	try {
		const accounts = [];
		for (let i = 0; i < users; i++) accounts.push(await register(site.gateway, `bench-${Date.now()}-${i}`));
		const fid = await newSheet(site.gateway, accounts[0], { name: 'benchmark', rows: Math.max(10, users), columns });
		const [tokens, cells] = [path.join(temporary, 'tokens'), path.join(temporary, 'cells')];
		fs.writeFileSync(tokens, accounts.map(({ token }) => `${token}\n`).join(''), { mode: 0o600 });

		const generator = startGenerator('edit_generator', [site.gateway.port, fid, tokens, seconds, rate, cells]);
		if ((await generator.line()) !== 'ready') throw new Error('the load generator is not ready');
		const before = JSON.parse(await site.psql(snapshotSql(fid)));
		const cpuBefore = cpuOfAll(site, generator.child.pid);
		generator.go();
		const result = JSON.parse(await generator.line());
		const cpuAfter = cpuOfAll(site, generator.child.pid);
		const after = JSON.parse(await site.psql(snapshotSql(fid)));
		generator.end();

		const batches = after.batches - before.batches;
		const run = {
			seconds,
			rate,
			wal: after.wal - before.wal,
			peak: peakMegabytes(site.gatewayPid),
			fsync: await site.psql('SHOW fsync'),
			synchronousCommit: await site.psql('SHOW synchronous_commit'),
			cpu: [...cpuAfter]
				.map(([name, value]) => [name, value - (cpuBefore.get(name) ?? 0)])
				.filter(([name, value]) => value >= 0.05 || !name.startsWith('postgres')),
			json: {
				recv_per_user: Math.round(result.received / users / result.total_seconds),
				send_per_user: Math.round(result.sent / users / result.send_seconds),
				lost: result.lost,
				reordered: result.reordered,
				p50_ms: result.p50_ms,
				p99_ms: result.p99_ms,
				commits_per_s: Math.round(batches / result.total_seconds),
				edits_per_commit: Number((result.changed / Math.max(batches, 1)).toFixed(1)),
			},
		};
		const check = await compareWithModel(site.psql, fid, result, cells);
		print(result, run, check);
		if (result.lost || result.reordered || result.other_messages || check.problems.length) process.exitCode = 1;
	} finally {
		await site.stop();
	}
}

main().catch((error) => {
	process.stderr.write(`${error.stack}\n`);
	process.exit(1);
});
