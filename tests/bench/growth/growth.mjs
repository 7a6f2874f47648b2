/*
 * growth.mjs - the benchmark `growth`: does anything cost more in a large world than in a small one?
 *
 * Two databases of one server, each with a gateway (world.mjs): 10,000 edits on a sheet and 10 sheets of an account, against
 * SCALE=1 times 10,000,000 edits and 1,000,000 sheets. Both are measured in turns, ROUNDS=5 times; the figures are medians, a ratio is
 * large / small in one turn. Then floods of SECONDS=5 by ten users, with the cache and without it, on a fresh sheet and on one with all those
 * edits; and sheet.fsck_all() of FSCK_SHEETS=30000 sheets. PHASES="memory cold flood fsck" names some of it. The last line is JSON;
 * README.md names the goals.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cluster } from '../../lib/cluster.mjs';
import { Editor, newSheet, register, request } from '../../lib/client.mjs';
import { setting, startGenerator } from '../common/site.mjs';
import { World } from './world.mjs';

const say = (text) => process.stdout.write(`${text}\n`);
const round = (value, digits = 3) => Number(value.toFixed(digits));
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function timed(work) {
	const from = process.hrtime.bigint();
	await work();
	return Number(process.hrtime.bigint() - from) / 1e6;
}

async function repeated(count, work) {
	const times = [];
	for (let i = 0; i < count; i++) times.push(await timed(() => work(i)));
	return times;
}

/** Where a window of 5 x 5 cells begins that the gateway has not in memory: each a little elsewhere. */
let windows = 0;
const nextWindow = () => `row=${windows % 5}&toRow=${5 + (Math.floor(windows / 5) % 5)}&col=0&toCol=${(windows++ >> 3) % 10}`;

async function inSheet(world, measure) {
	const editor = await Editor.open(world.gateway, world.user, world.busy[0]);
	await editor.settle(9, 9);
	const times = await measure(editor);
	await editor.close();
	return times;
}

/** What is measured in a world whose sheets are in memory: name => times in ms. */
const measures = {
	join: async (world) => {
		const times = [];
		for (let i = 0; i < 20; i++) {
			let editor;
			times.push(await timed(async () => (editor = await Editor.open(world.gateway, world.user, world.busy[0]))));
			await editor.close();
		}
		return times;
	},
	login: (world) => repeated(8, () => world.login()),
	list: (world) => repeated(20, () => world.call('/getuser', { limit: 10 }, 10)),
	info: (world) => world.time(`SELECT * FROM sheet.info(${world.busy[0]}, ${world.user.uid})`, 20),
	edit: (world) => inSheet(world, (editor) => repeated(50, () => editor.settle(1, 1))),
	batch: (world) =>
		inSheet(world, (editor) =>
			repeated(20, (i) => {
				for (let k = 0; k < 100; k++) editor.modify(Math.floor(k / 10), k % 10, `${windows} ${i} ${k}`);
				return editor.settle(9, 9);
			}),
		),
	window: (world) =>
		inSheet(world, async (editor) => {
			const times = [];
			for (let i = 0; i < 20; i++) {
				await editor.settle(8, 8); // the gateway forgets what it had
				const headers = { authorization: `Bearer ${world.user.token}` };
				times.push(await timed(() => request(world.gateway, 'GET', `/v2/sheets/${world.busy[0]}/cells?${nextWindow()}`, { headers })));
			}
			return times;
		}),
	log_tail: (world) => world.time(`SELECT * FROM sheet.log WHERE sheet_id = ${world.busy[0]} ORDER BY seq DESC LIMIT 100`, 20),
	version: (world) =>
		world.time(`SELECT sheet.commit(${world.busy[1]})`, 10, {
			before: `SELECT sheet.set(${world.busy[1]}, 'B2', clock_timestamp()::text)`,
			warm: 1,
		}),
};

async function compare(small, large, rounds) {
	const times = Object.fromEntries(Object.keys(measures).map((name) => [name, new Map([[small, []], [large, []]])]));
	for (let number = 0; number < rounds; number++) {
		for (const [name, measure] of Object.entries(measures))
			for (const world of number % 2 ? [large, small] : [small, large]) times[name].get(world).push(median(await measure(world)));
		say(`round ${number + 1} of ${rounds} of what is in memory`);
	}
	return times;
}

/** The server has just been started: a sheet is read whose pages are in the system's memory, in a session that has read another. */
async function compareCold(cluster, small, large, rounds) {
	const times = new Map([[small, []], [large, []]]);
	for (let number = 0; number < rounds; number++) {
		await cluster.restartPostgres();
		for (const world of number % 2 ? [large, small] : [small, large])
			for (const fid of world.busy) {
				const other = `SELECT octet_length(cells) FROM sheet.read_cells(${await world.makeSheet('another')})`;
				times.get(world).push(...(await world.time(`SELECT octet_length(cells) FROM sheet.read_cells(${fid})`, 1, { before: other, warm: 0 })));
			}
	}
	return times;
}

class Floods {
	constructor(cluster, world, seconds) {
		Object.assign(this, { cluster, world, seconds, faults: [] });
		this.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-growth-'));
		process.on('exit', () => fs.rmSync(this.directory, { recursive: true, force: true }));
	}

	async prepare() {
		this.users = [];
		for (let i = 0; i < 10; i++) this.users.push(await register(this.world.gateway, `flood-${i}`, `password of ${i}`));
		this.tokens = path.join(this.directory, 'tokens');
		fs.writeFileSync(this.tokens, this.users.map(({ token }) => `${token}\n`).join(''), { mode: 0o600 });
	}

	async withCache(size) {
		this.cluster.settings['pg_sheet.cache_size'] = size;
		await this.cluster.restartPostgres();
		await this.world.untilServing();
	}

	/** Edits that each of ten users receives a second. */
	async rate(fid) {
		const { world, tokens, seconds } = this;
		const generator = startGenerator('edit_generator', [world.gateway.port, fid, tokens, seconds, 0, path.join(this.directory, 'cells')]);
		if ((await generator.line()) !== 'ready') throw new Error('the load generator is not ready');
		generator.go();
		const result = JSON.parse(await generator.line());
		generator.end();
		for (const fault of ['lost', 'reordered']) if (result[fault]) this.faults.push(`${fault}: ${result[fault]} edits`);
		return result.received / result.users / result.total_seconds;
	}

	freshSheet() {
		return newSheet(this.world.gateway, this.users[0], { name: 'flood', rows: 10, columns: 100 });
	}

	async compare(rounds) {
		const cached = [];
		const uncached = [];
		const grown = [];
		for (let number = 0; number < rounds; number++) {
			await this.withCache('128MB');
			cached.push(await this.rate(await this.freshSheet()));
			await this.withCache('0');
			uncached.push(await this.rate(await this.freshSheet()));
			grown.push(await this.rate(this.world.flooded));
			say(`flood ${number + 1} of ${rounds}: received a second and user: cached ${Math.round(cached.at(-1))}, without cache ${Math.round(uncached.at(-1))}, on the grown sheet ${Math.round(grown.at(-1))}`);
		}
		await this.withCache('128MB');
		const rates = { cached: median(cached), uncached: median(uncached), grown: median(grown) };
		return {
			nocache_flood_ratio: round(rates.uncached / rates.cached),
			nocache_growth_ratio: round(rates.uncached / rates.grown),
			recv_per_user: Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, Math.round(rate)])),
		};
	}
}

/** Sheets a second; 0 when it fails. */
async function checkRate(cluster, sheets) {
	const world = new World(cluster, 'checked', { edits: 100, sheets });
	await world.make();
	try {
		const seconds = (await timed(() => world.psql('CALL sheet.fsck_all()'))) / 1000;
		return Math.round(sheets / seconds);
	} catch (error) {
		say(`sheet.fsck_all() of ${sheets} sheets failed: ${error.message.trim()}`);
		return 0;
	}
}

function report(times) {
	const json = { ms: {} };
	for (const [name, byWorld] of Object.entries(times)) {
		const [small, large] = [...byWorld.values()].map(median);
		const [ofSmall, ofLarge] = [...byWorld.values()];
		// Of each turn, so that what else the machine does meanwhile is in both.
		const ratio = median(ofLarge.map((ms, i) => ms / ofSmall[i]));
		json[`${name}_ratio`] = round(ratio);
		json.ms[name] = [round(small), round(large)];
		say(`${name.padEnd(10)} ${small.toFixed(3).padStart(9)} ms ${large.toFixed(3).padStart(9)} ms   ratio ${ratio.toFixed(2)}`);
	}
	return json;
}

function tellGoals(json) {
	const missed = Object.keys(json).filter((key) => {
		if (key === 'nocache_flood_ratio') return !(json[key] >= 0.33);
		if (key === 'fsck_sheets_per_s') return !(json[key] >= 1000);
		return key.endsWith('_ratio') && !(json[key] <= 1.5);
	});
	say(missed.length ? `goals missed: ${missed.join(', ')}` : 'all goals are reached');
}

async function main() {
	const scale = setting('SCALE', 1, 0.001, 1);
	const rounds = setting('ROUNDS', 5, 1, 100);
	const seconds = setting('SECONDS', 5, 1, 60);
	const phases = (process.env.PHASES || 'memory cold flood fsck').split(/\s+/);
	const fsckSheets = setting('FSCK_SHEETS', Math.max(1000, 30000 * scale), 1, 1e6);
	execFileSync('make', ['-s', '-C', path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'edit')], { stdio: ['ignore', 'ignore', 'inherit'] });
	const cluster = await Cluster.start({
		gateways: 0,
		gatewayFlags: { 'password-memory': '32MB', 'log-level': 'warn' },
		postgres: {
			shared_buffers: '512MB',
			'pg_sheet.cache_size': '128MB',
			max_wal_size: '8GB',
			checkpoint_timeout: '1h',
			autovacuum: 'off',
		},
	});
	const large = new World(cluster, 'large', { edits: 1e7 * scale, sheets: Math.ceil(1e6 * scale) });
	const small = new World(cluster, 'small', { edits: 10000, sheets: 10 });
	try {
		for (const world of [small, large]) {
			say(`making the ${world.name} world: ${world.sheets} sheets, ${world.edits} edits on a sheet`);
			await world.make();
		}
		const times = phases.includes('memory') ? await compare(small, large, rounds) : {};
		if (phases.includes('cold')) times.cold_open = await compareCold(cluster, small, large, rounds);
		const floods = new Floods(cluster, large, seconds);
		const json = report(times);
		if (phases.includes('flood')) {
			for (const world of [small, large]) await world.untilServing();
			await floods.prepare();
			Object.assign(json, await floods.compare(Math.min(rounds, 3)));
		}
		if (phases.includes('fsck')) json.fsck_sheets_per_s = await checkRate(cluster, fsckSheets);
		tellGoals(json);
		json.faults = floods.faults.length;
		for (const fault of floods.faults) say(`FAULT: ${fault}`);
		say(JSON.stringify(json));
		if (json.faults) process.exitCode = 1;
	} finally {
		await cluster.stop();
	}
}

main().catch((error) => {
	process.stderr.write(`${error.stack}\n`);
	process.exit(1);
});
