/*
 * soak.mjs - the benchmark `soak`: is memory flat, and nothing lost, over millions of edits?
 *
 * Rounds of SECONDS=10, each of ten users who write to a new sheet as fast as TCP takes it, until EDITS=2000000 have been sent
 * and there were at least six rounds. Each round holds every receiver's stream, the log and the cells to what was sent (as
 * the benchmark `edit` does). Between rounds it looks at the private memory of the gateway and of PostgreSQL's processes,
 * which must not be more at the end than in the first half of the rounds, but for `slack`. The last line is JSON.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { register } from '../../lib/client.mjs';
import { place, peakMegabytes, setting } from '../common/site.mjs';
import { writeOneSheet } from '../gateway/phases/common.mjs';

const accounts = 10;
const leastRounds = 6;
const slack = 4096; // kB: what malloc keeps differs a little from round to round

/** Private memory of a process, kB: without shared memory and the pages of files. */
function privateKilobytes(pid) {
	return Number(/^RssAnon:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
}

/** Of PostgreSQL's processes, the largest of those that live as long as the gateway's connections. */
async function backendKilobytes(site) {
	const pids = await site.psql(
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
	);
	return Math.max(...pids.split('\n').map(privateKilobytes));
}

/** What the rounds of the benchmark `gateway` need. */
class Bench {
	constructor(site, users, directory) {
		Object.assign(this, { site, users, directory, faults: [] });
	}

	file(name, lines) {
		const file = path.join(this.directory, name);
		if (lines) fs.writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
		return file;
	}

	expect(condition, text) {
		if (!condition) this.fault(text);
	}

	fault(text) {
		this.faults.push(text);
		process.stdout.write(`FAULT: ${text}\n`);
	}
}

/** The most of the first half against the last; a fault when it has grown. */
function judgeMemory(bench, what, samples) {
	const early = Math.max(...samples.slice(0, Math.ceil(samples.length / 2)));
	const last = samples.at(-1);
	if (last > early + slack) bench.fault(`${what} grew: ${early} kB at most in the first half, ${last} kB at the end`);
	return { first_half_kb: early, last_kb: last };
}

async function soak(bench, edits, seconds) {
	const [gateway, backend] = [[], []];
	let sent = 0;
	for (let number = 1; sent < edits || number <= leastRounds; number++) {
		const result = await writeOneSheet(bench, { seconds, rate: 0 });
		sent += result.sent;
		gateway.push(privateKilobytes(bench.site.gatewayPid));
		backend.push(await backendKilobytes(bench.site));
		process.stdout.write(
			`round ${number}: ${sent} edits sent, ${result.recv} received a second and user; private memory: ` +
				`gateway ${gateway.at(-1)} kB, largest backend ${backend.at(-1)} kB\n`,
		);
	}
	return {
		edits: sent,
		gateway: judgeMemory(bench, 'the gateway', gateway),
		backend: judgeMemory(bench, "PostgreSQL's largest backend", backend),
	};
}

async function main() {
	const [edits, seconds] = [setting('EDITS', 2000000, 1, 1e10), setting('SECONDS', 10, 1, 600)];
	execFileSync('make', ['-s', '-C', path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'edit')], {
		stdio: ['ignore', 'ignore', 'inherit'],
	});
	const directory = fs.mkdtempSync(path.join(process.env.PG_SHEET_BENCH_DIR ?? os.tmpdir(), 'bench-soak-'));
	process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
	const site = await place();
	try {
		const users = [];
		for (let i = 0; i < accounts; i++) users.push(await register(site.gateway, `soak-${i}`));
		const bench = new Bench(site, users, directory);
		const json = await soak(bench, edits, seconds);
		json.gateway_peak_mb = peakMegabytes(site.gatewayPid);
		json.faults = bench.faults.length;
		process.stdout.write(`${JSON.stringify(json)}\n`);
		if (bench.faults.length) process.exitCode = 1;
	} finally {
		await site.stop();
	}
}

main().catch((error) => {
	process.stderr.write(`${error.stack}\n`);
	process.exit(1);
});
