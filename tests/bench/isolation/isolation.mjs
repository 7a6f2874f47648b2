/*
 * isolation.mjs - the benchmark `isolation`: what do ten users notice while somebody else does something expensive?
 *
 * The users sign in, list and read sheets, edit, create sheets and join them, at a fixed pace, for SECONDS=8: once alone
 * before each disturbance, then during it. The p99 of each kind of work may at most double (and add SLACK_MS=10, since a
 * p99 of a millisecond doubles by chance). The disturbances (PHASES):
 *
 *   held        one SQL transaction holds a hundred sheets that are being edited, and versions of which are asked for
 *   rollback, commit, getsheet, version, log, cells, upload
 *               one account sends eight of these requests at a time, of a sheet of 1024 x 1024 filled cells
 *   history     the sheet that users join has 100,000 batches behind it
 *   export      the same account downloads that sheet as CSV and as a workbook, eight at a time
 *   import      it imports CSV files of 4 MB and workbooks of 100,000 cells, eight at a time
 *
 * The number of server processes must not grow. The last line is JSON: for each disturbance the worst ratio. If it is
 * above 2, the users work once more while foreign processes compute, as many as were runnable during the disturbance,
 * and `foreign` has that ratio. A ratio above 2 that is also above 1.25 times that of foreign processes fails the run.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Editor, call, login, multipart, newSheet, post, register, request } from '../../lib/client.mjs';
import { repository } from '../../lib/cluster.mjs';
import { waitUntil } from '../../lib/processes.mjs';
import { workbookType } from '../../lib/workbook.mjs';
import { killAtExit, place, setting } from '../common/site.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const side = 1024;
const heldSheets = 100;
const users = 10;
const paceMs = 100;

/** A psql that stays open. */
class Session {
	constructor(conninfo) {
		this.child = spawn('psql', ['-XqAt', conninfo], { stdio: ['pipe', 'pipe', 'inherit'] });
		this.output = '';
		this.child.stdout.on('data', (data) => (this.output += data));
	}

	async query(sql) {
		this.output = '';
		this.child.stdin.write(`${sql};\n\\echo done\n`);
		while (!this.output.includes('done\n')) await sleep(5);
	}

	close() {
		this.child.stdin.end();
	}
}

/** How many threads of the machine run or are ready to run, sampled until done() gives the mean. */
function sampleRunnable() {
	const samples = [];
	const timer = setInterval(() => samples.push(Number(fs.readFileSync('/proc/loadavg', 'utf8').split(/[ /]/)[3])), 20);
	return () => {
		clearInterval(timer);
		return samples.reduce((sum, n) => sum + n, 0) / samples.length;
	};
}

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))];

class Bench {
	async prepare(site) {
		this.site = site;
		this.gateway = site.gateway;
		this.seconds = setting('SECONDS', 8, 1, 600);
		this.slackMs = setting('SLACK_MS', 10, 0, 1000);
		this.people = [];
		for (let i = 0; i < users; i++) {
			const user = await register(this.gateway, `isolation-${Date.now()}-${i}`);
			const fid = await newSheet(this.gateway, user);
			const editor = await Editor.open(this.gateway, user, fid);
			this.people.push({ user, fid, editor, round: 0 });
		}
		this.greedy = await register(this.gateway, `isolation-${Date.now()}-greedy`);
		this.joined = this.people[0].fid;
	}

	/** A large sheet of the greedy account, with two versions. */
	async makeLarge() {
		if (this.large) return;
		this.large = await newSheet(this.gateway, this.greedy);
		for (let row = 0; row < side; row += 128)
			await this.site.psql(
				`SELECT sheet.set_range(${this.large}, 'A${row + 1}', (SELECT array_agg(line) FROM (SELECT array_agg((r * c)::text) AS line FROM generate_series(1, 128) r, generate_series(1, ${side}) c GROUP BY r) l))`,
			);
		this.versions = [await this.site.psql(`SELECT sheet.commit(${this.large})`)];
		await this.site.psql(`SELECT sheet.set(${this.large}, 'A1', 'second')`);
		this.versions.push(await this.site.psql(`SELECT sheet.commit(${this.large})`));
	}

	/** calc converts workbooks. It has a session of its own, as services have. */
	async startCalc() {
		if (this.calc) return;
		this.calc = spawn(process.execPath, [path.join(repository, 'build/calc/main.mjs'), `--database=${this.site.conninfo}`], { detached: true, stdio: 'ignore' });
		killAtExit(this.calc);
		await waitUntil(async () => (await this.site.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
	}

	async stop() {
		for (const { editor } of this.people) editor.terminate();
		if (!this.calc) return;
		this.calc.kill();
		await once(this.calc, 'exit');
	}

	kinds() {
		const { gateway } = this;
		return {
			login: async ({ user }) => login(gateway, user),
			list: async ({ user }) => call(gateway, '/getuser', { token: user.token }, 10),
			read: async ({ user, fid }) => call(gateway, '/getsheet', { token: user.token, fid }, 12),
			edit: async (person) => {
				const text = `round ${person.round++}`;
				person.editor.modify(1, 1, text);
				await person.editor.nextModify(1, 1, text, 60000);
			},
			create: async ({ user }) => newSheet(gateway, user),
			join: async () => (await Editor.open(gateway, this.people[0].user, this.joined, { timeoutMs: 60000 })).terminate(),
		};
	}

	/** The users work for some seconds: p50 and p99 of each kind of work, ms. */
	async work(seconds = this.seconds) {
		const kinds = Object.entries(this.kinds());
		const times = Object.fromEntries(kinds.map(([name]) => [name, []]));
		const end = performance.now() + seconds * 1000;
		await Promise.all(
			this.people.map(async (person, i) => {
				await sleep((i * paceMs) / users);
				for (let n = i; performance.now() < end; n++) {
					const [name, run] = kinds[n % kinds.length];
					// A password costs a tenth of a second of a processor: one user signs in at a time.
					if (name === 'login' && i > 0) continue;
					const start = performance.now();
					try {
						await run(person);
						times[name].push(performance.now() - start);
					} catch (error) {
						times[name].push(60000);
						this.errors = (this.errors ?? 0) + 1;
						if (this.errors < 5) process.stdout.write(`  ${name}: ${error.message}\n`);
					}
					await sleep(Math.max(0, paceMs - (performance.now() - start)));
				}
			}),
		);
		return Object.fromEntries(
			Object.entries(times).map(([name, list]) => [name, { p50: quantile(list, 0.5), p99: quantile(list, 0.99), n: list.length }]),
		);
	}

	async backends() {
		return Number(await this.site.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name LIKE 'pg_sheet %'"));
	}

	/** Waits until nothing that was requested is under way any more, as conversions whose client has gone. */
	async quiet() {
		const active = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid() AND query NOT LIKE '%sheet.follow%'";
		const jobs = 'SELECT count(*) FROM sheet.workbook_job';
		await waitUntil(async () => (await this.site.psql(`SELECT (${active}) + (${jobs})`)) === '0', 'the requests to end', 120000, 200);
	}

	/** work(), and the mean number of runnable threads meanwhile. */
	async workAndSample() {
		const done = sampleRunnable();
		return [await this.work(), done()];
	}

	/** Prints what the users noticed; the worst ratio of the p99s. */
	report(title, before, during) {
		let worst = 0;
		process.stdout.write(`${title}\n`);
		for (const [kind, { p50, p99, n }] of Object.entries(during)) {
			const ratio = Math.max(0, p99 - this.slackMs) / before[kind].p99;
			worst = Math.max(worst, ratio);
			process.stdout.write(
				`  ${kind.padEnd(8)} p50 ${before[kind].p50.toFixed(1).padStart(7)} -> ${p50.toFixed(1).padStart(7)} ms   p99 ${before[kind].p99.toFixed(1).padStart(7)} -> ${p99.toFixed(1).padStart(7)} ms   ${ratio <= 2 ? '' : 'MORE THAN TWICE'} (${n})\n`,
			);
		}
		return worst;
	}

	/** The same work before and during a disturbance: {ratio, foreign}. */
	async compare(name, disturb) {
		const connections = await this.backends();
		const [before, idle] = await this.workAndSample();
		let on = true;
		const counts = {};
		const disturbing = disturb(() => on, (what, n = 1) => (counts[what] = (counts[what] ?? 0) + n));
		await sleep(500);
		const [during, busy] = await this.workAndSample();
		const after = await this.backends();
		on = false;
		await disturbing;
		let worst = this.report(`${name}   (${Object.entries(counts).map(([what, n]) => `${what}: ${n}`).join(', ')})`, before, during);
		// Too many requests are refused (429, 503); others are no disturbance.
		if (Object.keys(counts).some((status) => /^4/.test(status) && status !== '429')) {
			process.stdout.write('  FAULT: requests were wrong\n');
			worst = Infinity;
		}
		if (after !== connections) {
			process.stdout.write(`  FAULT: ${connections} server processes before, ${after} during\n`);
			worst = Infinity;
		}
		const result = { ratio: Number(worst.toFixed(2)) };
		if (worst > 2 && worst < Infinity) result.foreign = await this.foreign(before, Math.max(1, Math.round(busy - idle)));
		return result;
	}

	/** The same work while `count` processes compute that have nothing to do with pg_sheet; the worst ratio. */
	async foreign(before, count) {
		const loops = Array.from({ length: count }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
		loops.forEach(killAtExit);
		await sleep(500);
		const during = await this.work();
		await Promise.all(loops.map((loop) => (loop.kill('SIGKILL'), once(loop, 'exit'))));
		return Number(this.report(`  with ${count} foreign processes that compute, as many as were runnable`, before, during).toFixed(2));
	}

	/** One account sends eight requests at a time, from a process of its own. */
	flood(requests, edit = null) {
		return async (on, count) => {
			const child = spawn(process.execPath, [path.join(here, 'flood.mjs')], {
				stdio: ['pipe', 'pipe', 'inherit'],
			});
			killAtExit(child);
			child.stdin.write(`${JSON.stringify({ port: this.gateway.port, requests, edit })}\n`);
			let output = '';
			child.stdout.on('data', (data) => (output += data));
			while (on()) await sleep(50);
			child.stdin.end();
			await new Promise((resolve) => child.once('exit', resolve));
			for (const [status, n] of Object.entries(JSON.parse(output))) count(status, n);
			await this.quiet();
		};
	}

	/** A POST of the greedy account about its large sheet. */
	greedyPost(route, fields = {}) {
		const body = JSON.stringify({ token: this.greedy.token, fid: this.large, ...fields });
		return { method: 'POST', path: route, headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }, body };
	}

	/** A download by the greedy account. */
	greedyGet(route) {
		return { method: 'GET', path: route, headers: { authorization: `Bearer ${this.greedy.token}` } };
	}

	/** An import of a file by the greedy account. */
	greedyImport(route, type, name, bytes) {
		const file = path.join(directory, name);
		fs.writeFileSync(file, bytes);
		return { method: 'POST', path: `${route}?name=import`, file, headers: { authorization: `Bearer ${this.greedy.token}`, 'content-type': type, 'content-length': bytes.length } };
	}

	/** A workbook of 5000 x 20 cells, half of them texts. */
	async workbook() {
		const { gateway, greedy, site } = this;
		const fid = await newSheet(gateway, greedy);
		await site.psql(
			`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(line) FROM (SELECT array_agg(CASE c % 2 WHEN 0 THEN (r * c)::text ELSE 'item ' || r * c END) AS line FROM generate_series(1, 5000) r, generate_series(1, 20) c GROUP BY r) l))`,
		);
		const { status, body } = await request(gateway, 'GET', `/v2/sheets/${fid}.xlsx`, this.greedyGet(''));
		if (status !== 200) throw new Error(body.toString());
		return body;
	}

	greedyUpload(i) {
		const bytes = 4 << 20;
		const { body, headers } = multipart([
			['fid', String(this.large)],
			['token', this.greedy.token],
			['uploadfile', Buffer.alloc(0), `f${i}.bin`, 'application/octet-stream'],
		]);
		const text = body.toString('latin1');
		const at = text.indexOf('octet-stream\r\n\r\n') + 'octet-stream\r\n\r\n'.length;
		return { method: 'POST', path: '/uploadchunk', headers: { ...headers, 'content-length': body.length + bytes }, body: [text.slice(0, at), text.slice(at)], bytes };
	}
}

const phases = {
	async held(bench) {
		const sheets = [];
		for (let i = 0; i < heldSheets; i++) sheets.push(await newSheet(bench.gateway, bench.greedy));
		const editors = [];
		for (const fid of sheets) editors.push(await Editor.open(bench.gateway, bench.greedy, fid));
		const session = new Session(bench.site.conninfo);
		const ratio = await bench.compare('held', async (on, count) => {
			await session.query(`BEGIN; ${sheets.map((fid) => `SELECT sheet.set(${fid}, 'J10', 'x')`).join('; ')}`);
			await Promise.all([
				...editors.map(async (editor, i) => {
					for (let n = 0; on(); n++) {
						editor.modify(0, n % 9, `${n}`);
						await sleep(200);
					}
				}),
				...sheets.slice(0, 12).map(async (fid) => {
					while (on()) {
						count((await post(bench.gateway, '/commitsheet', { token: bench.greedy.token, fid })).status);
						await sleep(500);
					}
				}),
			]);
		});
		const start = performance.now();
		await session.query('COMMIT');
		for (const editor of editors) editor.modify(5, 5, 'last');
		await Promise.all(editors.map((editor) => editor.nextModify(5, 5, 'last', 30000)));
		process.stdout.write(`  all edits landed ${(performance.now() - start).toFixed(0)} ms after COMMIT\n`);
		for (const editor of editors) editor.terminate();
		session.close();
		return ratio;
	},
	rollback: (bench) => bench.compare('rollback', bench.flood(bench.versions.map((version_id) => bench.greedyPost('/rollbacksheet', { cid: Number(version_id) })))),
	commit: (bench) =>
		bench.compare('commit', bench.flood([bench.greedyPost('/commitsheet')], { conninfo: bench.site.conninfo, sql: `SELECT sheet.set(${bench.large}, 'B1', clock_timestamp()::text)` })),
	getsheet: (bench) => bench.compare('getsheet', bench.flood([bench.greedyPost('/getsheet')])),
	version: (bench) => bench.compare('version', bench.flood([bench.greedyPost('/getsheetchkp', { cid: Number(bench.versions[0]) })])),
	log: (bench) => bench.compare('log', bench.flood([bench.greedyPost('/getsheetlog', { lid: 1 })])),
	cells: (bench) =>
		bench.compare('cells', bench.flood(Array.from({ length: 500 }, (_, i) => ({
			method: 'GET',
			path: `/v2/sheets/${bench.large}/cells?range=A${i + 1}:ALL${i + 64}`,
			headers: { authorization: `Bearer ${bench.greedy.token}` },
		})))),
	upload: (bench) => bench.compare('upload', bench.flood(Array.from({ length: 1000 }, (_, i) => bench.greedyUpload(i)))),
	async history(bench) {
		const fresh = await bench.work();
		const fid = await newSheet(bench.gateway, bench.people[0].user);
		await bench.site.psql(`DO $$ BEGIN FOR i IN 1..100000 LOOP PERFORM sheet.set(${fid}, 0, i % 10, i::text); END LOOP; END $$`);
		bench.joined = fid;
		const long = await bench.work();
		bench.joined = bench.people[0].fid;
		process.stdout.write(`history\n  join     p50 ${fresh.join.p50.toFixed(1)} -> ${long.join.p50.toFixed(1)} ms   p99 ${fresh.join.p99.toFixed(1)} -> ${long.join.p99.toFixed(1)} ms\n`);
		return { ratio: Number((Math.max(0, long.join.p99 - bench.slackMs) / fresh.join.p99).toFixed(2)) };
	},
	async export(bench) {
		await bench.startCalc();
		return bench.compare('export', bench.flood(['.csv', '.xlsx'].map((suffix) => bench.greedyGet(`/v2/sheets/${bench.large}${suffix}`))));
	},
	async import(bench) {
		await bench.startCalc();
		const csv = Buffer.from(Array.from({ length: 90000 }, (_, i) => `${i},2026-11-30,${(i % 9973) / 100},item ${i % 5003},nothing of note\n`).join(''));
		const requests = [bench.greedyImport('/v2/sheets/import', 'text/csv', 'file.csv', csv), bench.greedyImport('/v2/books/import', workbookType, 'file.xlsx', await bench.workbook())];
		return bench.compare('import', bench.flood(requests));
	},
};

const wanted = (process.env.PHASES || Object.keys(phases).join(' ')).split(/\s+/).filter(Boolean);
for (const name of wanted)
	if (!phases[name]) {
		process.stderr.write(`PHASES: ${name} is none of ${Object.keys(phases).join(' ')}\n`);
		process.exit(2);
	}
const directory = fs.mkdtempSync(path.join(process.env.PG_SHEET_BENCH_DIR || os.tmpdir(), 'isolation-'));
const site = await place();
const json = {};
let failed = false;
const bench = new Bench();
try {
	await bench.prepare(site);
	if (wanted.some((name) => !['held', 'history', 'import'].includes(name))) await bench.makeLarge();
	await bench.work(2); // plans and caches are warm
	for (const name of wanted) {
		const { ratio, foreign } = await phases[name](bench);
		json[`${name}_p99_ratio`] = ratio;
		if (foreign !== undefined) json[`${name}_foreign_ratio`] = foreign;
		failed ||= !(ratio <= Math.max(2, 1.25 * (foreign ?? 0)));
	}
	await bench.stop();
} finally {
	fs.rmSync(directory, { recursive: true });
	await site.stop();
}
process.stdout.write(`${JSON.stringify(json)}\n`);
process.exit(failed ? 1 : 0);
