/*
 * share.mjs - the benchmark `share`: what is shown to those without an account. GET of pastes and of published views against nginx
 * with files of the same size, what others notice while PASTES pastes that have ended are removed, joins by a link, how late the
 * timer is, links that end, and cells by HTTP against SQL. PHASES="get csv sweep join late put", SECONDS=8, PASTES=130000,
 * LINKS=10000. The last line is JSON.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import http from 'node:http';
import { newSheet, post, register } from '../../lib/client.mjs';
import { repository } from '../../lib/cluster.mjs';
import { waitUntil } from '../../lib/processes.mjs';
import { RawClient } from '../../lib/v2.mjs';
import { place, setting } from '../common/site.mjs';
import { Load, serveFiles } from '../gateway/phases/http.mjs';

const rounds = 5;
const sizes = [1000, 32768];
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const rounded = (value) => Number(value.toFixed(3));

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

/**
 * How long a sweep holds others up: the longest processor time for which it held the lock of pastes, as the server measures it.
 * The longest reads of another session beside it, and without it, are told, too; the machine interrupts readers for longer.
 */
async function sweep(bench) {
	const { psql } = bench.site;
	const count = setting('PASTES', 130000, 1000, 10000000);
	const id = await psql(`SELECT sheet.paste_create(repeat('x', 1000), lifetime => '1 hour')`);
	const [before] = (await psql(longestGet(id, `clock_timestamp() > '${new Date(Date.now() + 3000).toISOString()}'`))).split('|').map(Number);
	const seconds = Math.ceil(count / 20000) + 10;
	// by many makers: one of them has a share only while others need memory, but so it is in life
	await psql(`SELECT count(sheet.paste_create('twenty bytes of text', address => (n % 1000)::text,
		lifetime => '${new Date(Date.now() + seconds * 1000).toISOString()}'::timestamptz - clock_timestamp())) FROM generate_series(1, ${count}) n`);
	const readStats = async () => JSON.parse(await psql('SELECT row_to_json(s) FROM sheet.paste_stats s'));
	const stats = await readStats();
	if (stats.pastes < count || stats.evicted > 0) throw new Error(`they are not all stored: ${JSON.stringify(stats)}`);
	bench.line('pastes stored, and the part of pg_sheet.paste_memory', `${stats.pastes} ${(stats.bytes / stats.budget).toFixed(2)}`);
	await waitUntil(async () => Number(await psql('SELECT expired FROM sheet.paste_stats')) > stats.expired, 'the sweep', seconds * 2000, 1);
	const began = Date.now();
	const [during, reads] = (await psql(longestGet(id, 'SELECT pastes < 100 FROM sheet.paste_stats'))).split('|').map(Number);
	const took = (Date.now() - began) / 1000;
	const { expired, sweep_ms: held } = await readStats();
	if (expired - stats.expired < count) throw new Error(`${expired - stats.expired} of ${count} were removed`);
	bench.line('the longest of some 100,000 reads before, ms', before);
	bench.line(`the longest of ${reads} reads while they are removed, ms`, during);
	bench.line('the longest time for which the sweep held their lock, ms', rounded(held), '5', held <= 5);
	bench.line('removed in, s', took);
	return { pastes_stored: stats.pastes, sweep_idle_read_ms: before, sweep_read_ms: during, sweep_stall_ms: rounded(held), sweep_s: took };
}

/** A sheet with `rows` rows of texts, filled by SQL, and a link to it. */
async function publishedSheet(bench, user, rows) {
	const { gateway, psql } = bench.site;
	const fid = await newSheet(gateway, user, { rows, columns: 10 });
	await psql(`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(r) FROM (SELECT ARRAY(SELECT 'text ' || y || ' ' || x FROM generate_series(1, 10) x) r
		FROM generate_series(1, ${rows}) y) t))`);
	const answer = await post(gateway, `/v2/sheets/${fid}/links`, { token: user.token, role: 'viewer' });
	if (answer.status !== 200) throw new Error(answer.text);
	return { fid, ...answer.json };
}

/** GET /s/KEY.csv of a sheet that does not change, and nginx with a file of the same size, take turns. */
async function csv(bench) {
	const { gateway } = bench.site;
	const user = await register(gateway);
	const views = [await publishedSheet(bench, user, 10), await publishedSheet(bench, user, 300)];
	const loads = views.map(({ key }, i) => new Load(bench, gateway.port, `csv-${i}`, `GET /s/${key}.csv HTTP/1.1`));
	for (const load of loads) load.round(); // how large they are, and they are in memory
	for (const load of loads) load.rates = [];
	const nginx = await serveFiles(bench, Object.fromEntries(loads.map((load, i) => [`csv-${i}.txt`, load.bytes])));
	const json = {};
	try {
		const files = loads.map((_, i) => nginx && new Load(bench, nginx.port, `csv-file-${i}`, `GET /csv-${i}.txt HTTP/1.1`));
		for (let i = 0; i < rounds; i++) for (const load of [...loads, ...files]) load?.round();
		loads.forEach((load, i) => {
			bench.line(`GET /s/KEY.csv of ${load.bytes} bytes, answers a second`, load.rate);
			if (!nginx) return;
			const key = i === 0 ? 'csv_vs_nginx' : 'csv_large_vs_nginx';
			json[key] = load.ratio(files[i]);
			bench.line('nginx, a file of that size', files[i].rate);
			bench.line('the CSV against nginx', json[key], '0.7', json[key] >= 0.7);
		});
	} finally {
		await nginx?.stop();
	}
	return json;
}

/** A guest and an account open the same sheet in turns, each by a WebSocket of its own, until they have its cells. */
async function join(bench) {
	const { gateway } = bench.site;
	const user = await register(gateway);
	const { fid, key } = await publishedSheet(bench, user, 100);
	const entered = [];
	const times = { link: [], account: [] };
	for (let i = 0; i < 20; i++) {
		const began = performance.now();
		const answer = await post(gateway, '/v2/link', { link: key, name: 'Guest' });
		if (answer.status !== 200) throw new Error(answer.text);
		entered.push(performance.now() - began);
	}
	const guest = (await post(gateway, '/v2/link', { link: key, name: 'Guest' })).json;
	const one = async (who) => {
		const began = performance.now();
		const client = await RawClient.open(gateway, who, fid);
		client.send({ t: 'get', id: 1, row: 0, col: 0, toRow: 99, toCol: 9 });
		await client.next('block', ({ id }) => id === 1);
		const ms = performance.now() - began;
		client.terminate();
		return ms;
	};
	for (let i = 0; i < 220; i++) {
		const first = i % 2 === 0;
		for (const name of first ? ['link', 'account'] : ['account', 'link']) {
			const ms = await one(name === 'link' ? guest : user);
			if (i >= 20) times[name].push(ms);
		}
	}
	const ratio = rounded(median(times.link) / median(times.account));
	bench.line('POST /v2/link, ms', rounded(median(entered)));
	bench.line('joining as an account, ms', rounded(median(times.account)));
	bench.line('joining by a link, ms', rounded(median(times.link)));
	bench.line('link against account', ratio, '1.10', ratio <= 1.1);
	return { link_enter_ms: rounded(median(entered)), link_join_ms: rounded(median(times.link)), link_join_ratio: ratio };
}

/** LINKS links end within a minute, and each is used before its end and after it, while 100,000 entries of the timer wait. */
async function late(bench) {
	const { gateway, psql } = bench.site;
	const count = setting('LINKS', 10000, 100, 100000);
	// entries whose object is gone: nothing is left to remove but the entry
	await psql(`INSERT INTO sheet.timer (kind, id, at) SELECT 'upload', 4000000000000000 + n, clock_timestamp() + interval '1 hour' FROM generate_series(1, 100000) n`);
	const from = JSON.parse(await psql('SELECT row_to_json(s) FROM sheet.timer_stats s'));
	await psql(`INSERT INTO sheet.timer (kind, id, at) SELECT 'upload', 5000000000000000 + n, clock_timestamp() + n * interval '10 ms' FROM generate_series(101, 2100) n`);
	const links = (
		await psql(`WITH sheets AS MATERIALIZED (SELECT sheet.create('bench ' || n, 10, 5) AS id FROM generate_series(1, ${Math.ceil(count / 200)}) n),
			made AS MATERIALIZED (SELECT id, sheet.set(id, 'A1', 'text') FROM sheets),
			links AS MATERIALIZED (SELECT c.* FROM made, generate_series(1, 200) n, LATERAL sheet.create_link(id, expires => clock_timestamp() + interval '1 s' +
				(random() * 59) * interval '1 s' + n * interval '0 s') c LIMIT ${count})
			SELECT string_agg(link_id || ' ' || key, ',') FROM links`)
	)
		.split(',')
		.map((line) => line.split(' '));
	const ends = new Map(
		(await psql(`SELECT string_agg(link_id || ' ' || extract(epoch FROM expires_at) * 1000, ',') FROM sheet.link WHERE expires_at < now() + interval '2 minutes'`))
			.split(',')
			.map((line) => line.split(' ')),
	);
	const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
	const get = (key) =>
		new Promise((resolve, reject) => {
			const url = new URL(gateway.url);
			http.get({ host: url.hostname, port: gateway.port, path: `/s/${key}.csv`, agent }, (answer) => {
				answer.resume();
				answer.on('end', () => resolve(answer.statusCode));
			}).on('error', reject);
		});
	const queue = links.map(([id, key]) => ({ key, end: Number(ends.get(id)) })).sort((a, b) => a.end - b.end);
	let [used, lateUses, odd] = [0, 0, 0];
	const now = () => performance.timeOrigin + performance.now();
	const use = async ({ key, end }) => {
		// shortly before the end, so that the gateway keeps it, and from the end on
		for (let after = 0; after < 3; ) {
			const asked = Date.now();
			const status = await get(key);
			if (asked > end + 1) after++; // the clock has milliseconds
			if (status === 200 && asked > end + 1) lateUses++;
			else if (status === 200) used++;
			else if (status !== 404) odd++;
			if (after === 0) await new Promise((resolve) => setTimeout(resolve, Math.max(1, Math.min(20, end - Date.now()))));
		}
	};
	const running = [];
	for (const link of queue) {
		const wait = link.end - 40 - now();
		if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
		running.push(use(link));
	}
	await Promise.all(running);
	agent.destroy();
	await waitUntil(async () => (await psql('SELECT count(*) FROM sheet.timer WHERE id > 5000000000000000')) === '0', 'the timer', 60000, 50);
	const to = JSON.parse(await psql('SELECT row_to_json(s) FROM sheet.timer_stats s'));
	await psql('DELETE FROM sheet.timer WHERE id > 4000000000000000');
	bench.line(`uses of ${links.length} links before their ends, and other answers`, `${used} ${odd}`);
	bench.line('uses of them after their ends', lateUses, '0', lateUses === 0);
	bench.line(`entries of the timer that were served, beside 100,000 that wait`, to.served - from.served);
	bench.line('the latest, ms', rounded(to.late_ms), '1000', to.late_ms <= 1000);
	return { late_ms: rounded(to.late_ms), late_uses: lateUses, late_links: links.length, early_uses: used };
}

/** 1000 cells by PUT, and the same batch by sheet.apply(), one after the other; both are stored durably. */
async function put(bench) {
	const { gateway, psql } = bench.site;
	const user = await register(gateway);
	const fids = [await newSheet(gateway, user, { rows: 100, columns: 10 }), await newSheet(gateway, user, { rows: 100, columns: 10 })];
	const bodies = [1, 2].map((n) => JSON.stringify({ values: Array.from({ length: 100 }, (_, y) => Array.from({ length: 10 }, (_, x) => `text ${n} ${y} ${x}`)) }));
	const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
	const send = (fid, body) =>
		new Promise((resolve, reject) => {
			const headers = { authorization: `Bearer ${user.token}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
			const sent = http.request({ host: new URL(gateway.url).hostname, port: gateway.port, method: 'PUT', path: `/v2/sheets/${fid}/cells?range=A1:J100`, agent, headers }, (answer) => {
				answer.resume();
				answer.on('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(`PUT: ${answer.statusCode}`))));
			});
			sent.on('error', reject);
			sent.end(body);
		});
	const batches = [];
	for (const body of bodies) {
		await send(fids[1], body);
		batches.push(await psql(`SELECT cells FROM sheet.read_cells(${fids[1]})`));
	}
	const each = 40;
	const rates = [];
	for (let i = 0; i < rounds + 1; i++) {
		let began = performance.now();
		for (let n = 0; n < each; n++) await send(fids[0], bodies[n % 2]);
		const byHttp = performance.now() - began;
		const script = Array.from({ length: each }, (_, n) => `SELECT last_seq FROM sheet.apply(${fids[1]}, '${batches[n % 2]}');`).join('\n');
		began = performance.now();
		await psql('SELECT 1');
		const start = performance.now() - began;
		began = performance.now();
		await psql(script);
		const bySql = performance.now() - began - start;
		if (i > 0) rates.push({ http: byHttp / each, sql: bySql / each, ratio: bySql / byHttp });
	}
	agent.destroy();
	const stored = await psql(`SELECT count(*) FROM unnest(ARRAY[${fids}]) s, sheet.range(s) r WHERE r.content = 'text 2 ' || r."row" || ' ' || r.col`);
	if (stored !== '2000') throw new Error(`${stored} cells of 2000 have their last content`);
	const ratio = rounded(median(rates.map(({ ratio }) => ratio)));
	bench.line('PUT of 1000 cells, ms', rounded(median(rates.map(({ http }) => http))));
	bench.line('sheet.apply() of the same, ms', rounded(median(rates.map(({ sql }) => sql))));
	bench.line('the rate of PUT against SQL', ratio, '0.5', ratio >= 0.5);
	return { put_ms: rounded(median(rates.map(({ http }) => http))), put_ratio: ratio };
}

const phases = { get, csv, sweep, join, late, put };

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
