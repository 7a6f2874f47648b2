/*
 * gateway.mjs - the benchmark `gateway`: what one gateway process carries, in phases that can be run alone.
 *
 * PHASES="flood v2 latency sheets idle viewers http tls peers", SECONDS=8 of each load, and a setting or two of each phase (see
 * phases/). Every phase prints its figures, and gives keys for the last line, which is JSON. Whoever loses or reorders an
 * edit fails the run, whatever the figures are.
 *
 * A phase is a function (bench) => {key: number}; phases of another protocol are further entries of `phases`.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { repository } from '../../lib/cluster.mjs';
import { register } from '../../lib/client.mjs';
import { place, setting } from '../common/site.mjs';
import { flood } from './phases/flood.mjs';
import { http } from './phases/http.mjs';
import { idle } from './phases/idle.mjs';
import { latency } from './phases/latency.mjs';
import { peers } from './phases/peers.mjs';
import { sheets } from './phases/sheets.mjs';
import { tls } from './phases/tls.mjs';
import { v2 } from './phases/v2.mjs';
import { viewers } from './phases/viewers.mjs';

const phases = { flood, v2, latency, sheets, idle, viewers, http, tls, peers };
const accounts = 10;

/** What phases share: the place, accounts, a directory, the faults found so far, and the table. */
class Bench {
	constructor(site, users, directory, seconds) {
		Object.assign(this, { site, users, directory, seconds, lost: 0, reordered: 0, faults: [] });
	}

	/** A line of the table. met: is the goal reached? */
	line(what, value, goal, met) {
		const verdict = goal === undefined ? '' : `   goal ${goal}: ${met ? 'reached' : 'MISSED'}`;
		process.stdout.write(`  ${what.padEnd(62)} ${String(value).padStart(12)}${verdict}\n`);
	}

	/** Edits that were lost or reordered end in failure. */
	expect(condition, text) {
		if (condition) return;
		this.faults.push(text);
		process.stdout.write(`  FAULT: ${text}\n`);
	}

	file(name, lines) {
		const file = path.join(this.directory, name);
		if (lines) fs.writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
		return file;
	}

	program(name) {
		return path.join(repository, 'build', 'bench', name);
	}
}

async function main() {
	const wanted = (process.env.PHASES || Object.keys(phases).join(' ')).split(/\s+/).filter(Boolean);
	for (const name of wanted) {
		if (phases[name]) continue;
		process.stderr.write(`PHASES: ${name} is none of ${Object.keys(phases).join(' ')}\n`);
		process.exit(2);
	}
	const seconds = setting('SECONDS', 8, 1, 600);
	execFileSync('make', ['-s', '-C', path.dirname(fileURLToPath(import.meta.url))], {
		stdio: ['ignore', 'ignore', 'inherit'],
	});
	const directory = fs.mkdtempSync(path.join(process.env.PG_SHEET_BENCH_DIR ?? os.tmpdir(), 'bench-gateway-'));
	process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
	const site = await place({ 'max-connections': 12000, 'max-connections-per-address': 0 });
	try {
		const users = [];
		for (let i = 0; i < accounts; i++) users.push(await register(site.gateway, `bench-${Date.now()}-${i}`));
		const bench = new Bench(site, users, directory, seconds);
		const json = {};
		for (const name of wanted) {
			process.stdout.write(`${name}\n`);
			Object.assign(json, await phases[name](bench));
		}
		Object.assign(json, { lost: bench.lost, reordered: bench.reordered, faults: bench.faults.length });
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
