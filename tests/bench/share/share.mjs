/*
 * share.mjs - the benchmark `share`: pastes. GET /p/ID against nginx with a file of the same size, and what others notice while
 * PASTES pastes that have ended are removed. PHASES="get sweep", SECONDS=8, PASTES=130000. The last line is JSON.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { post } from '../../lib/client.mjs';
import { repository } from '../../lib/cluster.mjs';
import { waitUntil } from '../../lib/processes.mjs';
import { place, setting } from '../common/site.mjs';
import { Load, serveFiles } from '../gateway/phases/http.mjs';

const rounds = 5;
const sizes = [1000, 32768];

class Bench {
	constructor(site, directory, seconds) {
		Object.assign(this, { site, directory, seconds });
	}

	line(what, value, goal, met) {
		const verdict = goal === undefined ? '' : `   goal ${goal}: ${met ? 'reached' : 'MISSED'}`;
		process.stdout.write(`  ${what.padEnd(62)} ${String(value).padStart(12)}${verdict}\n`);
	}

	file(name) {
		return path.join(this.directory, name);
	}

	program(name) {
		return path.join(repository, 'build', 'bench', name);
	}
}

/** GET /p/ID and nginx take turns; the figures are medians. */
async function get(bench) {
	const { gateway } = bench.site;
	const loads = [];
	for (const size of sizes) {
		const answer = await post(gateway, '/record', { content: 'x'.repeat(size) });
		if (answer.status !== 200) throw new Error(answer.text);
		loads.push(new Load(bench, gateway.port, `paste-${size}`, `GET /p/${answer.json.key} HTTP/1.1`));
	}
	for (const load of loads) load.round(); // it is in memory
	for (const load of loads) load.rates = [];
	const nginx = await serveFiles(bench, Object.fromEntries(sizes.map((size) => [`paste-${size}.txt`, size])));
	const json = {};
	try {
		const files = sizes.map((size) => nginx && new Load(bench, nginx.port, `file-${size}`, `GET /paste-${size}.txt HTTP/1.1`));
		for (let i = 0; i < rounds; i++) for (const load of [...loads, ...files]) load?.round();
		sizes.forEach((size, i) => {
			bench.line(`GET /p/ID of ${size} bytes, answers a second`, loads[i].rate);
			json[`paste_get_${size}_per_s`] = loads[i].rate;
			if (!nginx) return;
			const key = i === 0 ? 'paste_get_vs_nginx' : 'paste_get_large_vs_nginx';
			json[key] = loads[i].ratio(files[i]);
			bench.line(`nginx, a file of ${size} bytes`, files[i].rate);
			bench.line('the paste against nginx', json[key], '0.7', json[key] >= 0.7);
		});
	} finally {
		await nginx?.stop();
	}
	return json;
}

/** The longest paste_get() in ms until the statement is true, and their number. */
const longestGet = (id, end) => `
	CREATE OR REPLACE FUNCTION pg_temp.longest(OUT ms numeric, OUT reads bigint) LANGUAGE plpgsql AS $$
	DECLARE
		began timestamptz;
	BEGIN
		ms := 0;
		reads := 0;
		LOOP
			began := clock_timestamp();
			PERFORM FROM sheet.paste_get('${id}', 0);
			ms := greatest(ms, extract(epoch FROM clock_timestamp() - began) * 1000);
			reads := reads + 1;
			EXIT WHEN reads % 50 = 0 AND (${end});
		END LOOP;
	END $$;
	SELECT * FROM pg_temp.longest()`;

async function sweep(bench) {
	const { psql } = bench.site;
	const count = setting('PASTES', 130000, 1000, 10000000);
	const id = await psql(`SELECT sheet.paste_create(repeat('x', 1000), lifetime => '1 hour')`);
	const [before] = (await psql(longestGet(id, `clock_timestamp() > '${new Date(Date.now() + 3000).toISOString()}'`))).split('|').map(Number);
	const seconds = Math.ceil(count / 20000) + 10;
	// by many makers: one of them has a share only while others need memory, but so it is in life
	await psql(`SELECT count(sheet.paste_create('twenty bytes of text', address => (n % 1000)::text,
		lifetime => '${new Date(Date.now() + seconds * 1000).toISOString()}'::timestamptz - clock_timestamp())) FROM generate_series(1, ${count}) n`);
	const stats = JSON.parse(await psql('SELECT row_to_json(s) FROM sheet.paste_stats s'));
	if (stats.pastes < count || stats.evicted > 0) throw new Error(`they are not all stored: ${JSON.stringify(stats)}`);
	bench.line('pastes stored, and the part of pg_sheet.paste_memory', `${stats.pastes} ${(stats.bytes / stats.budget).toFixed(2)}`);
	await waitUntil(async () => Number(await psql('SELECT expired FROM sheet.paste_stats')) > stats.expired, 'the sweep', seconds * 2000, 1);
	const began = Date.now();
	const [during, reads] = (await psql(longestGet(id, 'SELECT pastes < 100 FROM sheet.paste_stats'))).split('|').map(Number);
	const took = (Date.now() - began) / 1000;
	bench.line('the longest of some 100,000 reads before, ms', before);
	bench.line(`the longest of ${reads} reads while they are removed, ms`, during, '5', during <= 5);
	bench.line('removed in, s', took);
	return { pastes_stored: stats.pastes, sweep_idle_ms: before, sweep_stall_ms: during, sweep_s: took };
}

const phases = { get, sweep };

async function main() {
	const wanted = (process.env.PHASES || Object.keys(phases).join(' ')).split(/\s+/).filter(Boolean);
	const unknown = wanted.find((name) => !phases[name]);
	if (unknown) {
		process.stderr.write(`PHASES: ${unknown} is none of ${Object.keys(phases).join(' ')}\n`);
		process.exit(2);
	}
	execFileSync('make', ['-s', '-C', path.join(path.dirname(fileURLToPath(import.meta.url)), '../gateway')], { stdio: ['ignore', 'ignore', 'inherit'] });
	const directory = fs.mkdtempSync(path.join(process.env.PG_SHEET_BENCH_DIR ?? os.tmpdir(), 'bench-share-'));
	process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
	const site = await place();
	try {
		const bench = new Bench(site, directory, setting('SECONDS', 8, 1, 600));
		const json = {};
		for (const name of wanted) {
			process.stdout.write(`${name}\n`);
			Object.assign(json, await phases[name](bench));
		}
		process.stdout.write(`${JSON.stringify(json)}\n`);
	} finally {
		await site.stop();
	}
}

main().catch((error) => {
	process.stderr.write(`${error.stack}\n`);
	process.exit(1);
});
