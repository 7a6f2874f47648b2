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
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Cluster, repository } from '../../lib/cluster.mjs';
import { runAs } from '../../lib/processes.mjs';
import { newSheet, register } from '../../lib/client.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const columns = 100;

function setting(name, fallback, low, high) {
	const value = Number(process.env[name] || fallback);
	if (!(value >= low && value <= high)) {
		process.stderr.write(`${name}=${process.env[name]}: must be a number from ${low} to ${high}\n`);
		process.exit(2);
	}
	return value;
}

/** Where to run: {gateway, psql, gatewayPid, postgresPid, stop}. */
async function place() {
	const {
		PG_SHEET_URL: url,
		PG_SHEET_DATABASE: conninfo,
		PG_SHEET_GATEWAY_PID: gatewayPid,
		PG_SHEET_POSTGRES_PID: postgresPid,
	} = process.env;
	if (url && conninfo && gatewayPid && postgresPid) {
		const psql = async (sql) => {
			const { code, stdout, stderr } = await runAs('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', '-', conninfo], {
				input: sql,
				timeoutMs: 600000,
			});
			if (code !== 0) throw new Error(stderr);
			return stdout.trimEnd();
		};
		const { port, host } = new URL(url);
		return {
			gateway: { port: Number(port), host, url },
			psql,
			gatewayPid: Number(gatewayPid),
			postgresPid: Number(postgresPid),
			stop: async () => {},
		};
	}
	const cluster = await Cluster.start({ postgres: { shared_buffers: '128MB', 'pg_sheet.cache_size': '128MB' } });
	const [gateway] = cluster.gateways;
	return {
		gateway,
		psql: (sql) => cluster.psql(sql, { timeoutMs: 600000 }),
		gatewayPid: gateway.service.pid,
		postgresPid: cluster.postgres.pid,
		stop: () => cluster.stop(),
	};
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']));

function cpuSeconds(pid) {
	try {
		const fields = fs
			.readFileSync(`/proc/${pid}/stat`, 'utf8')
			.replace(/^.*\) /s, '')
			.split(' ');
		return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
	} catch {
		return 0;
	}
}

function peakMegabytes(pid) {
	return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024);
}

/** CPU seconds so far: of the gateway, the generator, and each of PostgreSQL's processes by what it is. */
function cpuOfAll({ gatewayPid, postgresPid }, generatorPid) {
	const usage = new Map([
		['gateway', cpuSeconds(gatewayPid)],
		['generator', cpuSeconds(generatorPid)],
	]);
	for (const name of fs.readdirSync('/proc')) {
		if (!/^\d+$/.test(name)) continue;
		try {
			const parent = Number(
				fs
					.readFileSync(`/proc/${name}/stat`, 'utf8')
					.replace(/^.*\) /s, '')
					.split(' ')[1],
			);
			if (parent !== postgresPid) continue;
			const title = fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0/g, ' ').trim();
			const what = /^postgres: (?:\S+: )?(.*?)(?: (?:\[local\]|127\.0\.0\.1).*)?$/.exec(title)?.[1] ?? title;
			usage.set(`postgres: ${what} (${name})`, cpuSeconds(name));
		} catch {
			// It has ended.
		}
	}
	return usage;
}

/** A running generator: its lines, and its input. */
function startGenerator(args) {
	const child = spawn(path.join(repository, 'build', 'bench', 'edit_generator'), args.map(String), {
		stdio: ['pipe', 'pipe', 'inherit'],
	});
	const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
	const line = async () => {
		const { value, done } = await lines.next();
		if (done) throw new Error('the load generator ended early');
		return value;
	};
	process.on('exit', () => child.kill('SIGKILL'));
	return { child, line, go: () => child.stdin.write('go\n'), end: () => child.stdin.end() };
}

const snapshotSql = (fid) => `
	SELECT json_build_object('batches', (SELECT count(*) FROM sheet.log_batch WHERE sheet_id = ${fid}),
		'wal', pg_current_wal_insert_lsn() - '0/0'::pg_lsn)`;

/** The log and the cells against what the generator says they must be; the differences. */
async function compareWithModel(psql, fid, result, cellsFile) {
	const problems = [];
	const logged = Number(await psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set'`));
	if (logged !== result.changed) problems.push(`sheet.log has ${logged} edits, ${result.changed} changed a cell`);
	const wanted = fs.readFileSync(cellsFile, 'utf8').trim().split('\n').filter(Boolean).sort();
	const cells = await psql(
		`SELECT "row", col, CASE WHEN content = repeat('test', length(content) / 4) THEN (length(content) / 4)::text ELSE content END FROM sheet.range(${fid}) WHERE content <> ''`,
	);
	const got = cells.replace(/\|/g, ' ').split('\n').filter(Boolean).sort();
	if (JSON.stringify(got) !== JSON.stringify(wanted))
		problems.push(`the cells differ: ${got.length} are filled, ${wanted.length} must be`);
	return { logged, cells: got.length, problems };
}

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

		const generator = startGenerator([site.gateway.port, fid, tokens, seconds, rate, cells]);
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
