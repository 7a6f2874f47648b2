/*
 * cluster.mjs - the benchmark `cluster`: what editors and newcomers notice when gateways join, are drained and are killed.
 *
 * Three gateways; SHEETS=24 sheets with one editor of protocol v2 each, who stores a cell every 20 ms, and 3 with an editor of
 * protocol v1. ROUNDS=3 times: a gateway joins, it is drained, another one is killed and started again. All the time newcomers
 * come to random gateways. A gap is the longest time in which an editor got no acknowledgement; each figure is the longest of
 * all editors or newcomers, the median of the rounds. PHASES="handover ring locks throughput" chooses; the last one is in
 * throughput.mjs. A missed goal fails the run. The last line is one line of JSON:
 *
 *   gap_idle_ms        gap while nothing happens, which is what the machine itself does
 *   handover_join_ms   gap while sheets move to the gateway that joins
 *   handover_drain_ms  gap during a drain
 *   handover_kill_ms   gap after kill -9
 *   newcomer_ms        from the first connection to the gateway's hello, while sheets move
 *   newcomer_errors    newcomers who were not served, while nothing happens and while sheets move
 *   refused_kill_ms    from kill -9 until the last newcomer who was not served
 *   max_over_mean_N    sheets of the fullest of N gateways, by the ring, divided by the mean
 *   moved_join_ratio   sheets that a fourth gateway takes over, by the ring, divided by a fourth of all
 *   sheet_lock_ms      from a release of a sheet's lock in ZooKeeper to the grant to the next
 *   lock_wake_ms       from sheet.unlock() in one SQL session to the return of sheet.lock() in another
 *   lost, duplicated   acknowledged edits that are not in the log, and edits that are there twice
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { newSheet, register, request } from '../../lib/client.mjs';
import { Cluster, waitUntil } from '../../lib/cluster.mjs';
import * as coord from '../../lib/coord.mjs';
import { runAs } from '../../lib/processes.mjs';
import { Typist, enter } from '../../lib/typist.mjs';
import { Writer, checkNothingLost } from '../../lib/writer.mjs';
import { setting } from '../common/site.mjs';
import { throughput } from './throughput.mjs';

const rounds = setting('ROUNDS', 3, 1, 20);
const sheetCount = setting('SHEETS', 24, 3, 200);
const sessionMs = 4000; // the least that ZooKeeper grants by default
const handoverS = 5;
const postgres = { max_connections: 200, fsync: 'on' };
const goals = {
	...{ handover_drain_ms: 300, handover_join_ms: 300, handover_kill_ms: sessionMs + 1000 },
	...{ newcomer_ms: 500, newcomer_errors: 0, refused_kill_ms: sessionMs + 1000 },
	...{ lock_wake_ms: 2, max_over_mean_3: 1.25, max_over_mean_10: 1.25, moved_join_ratio: 1.2, lost: 0, duplicated: 0 },
};
const results = {};
const missed = [];

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function report(key, values) {
	results[key] = Number(median(values).toFixed(2));
	const goal = goals[key];
	if (goal !== undefined && !(results[key] <= goal)) missed.push(key);
	const verdict = goal === undefined ? '' : `goal ${goal}: ${results[key] <= goal ? 'reached' : 'MISSED'}`;
	const all = values.map((value) => Number(value.toFixed(1))).join(' ');
	process.stdout.write(`  ${key.padEnd(18)} ${String(results[key]).padStart(9)}  ${verdict}${values.length > 1 ? `   (${all})` : ''}\n`);
}

class Bench {
	async start() {
		this.cluster = await Cluster.start({ gateways: 3, coordinator: 'zookeeper', sessionMs, gatewayFlags: { 'handover-seconds': handoverS }, postgres });
		const { gateways } = this.cluster;
		this.user = await register(gateways[0]);
		const fids = [];
		for (let i = 0; i < sheetCount + 3; i++) fids.push(await newSheet(gateways[0], this.user));
		let tries = 0;
		const living = () => this.living()[tries++ % this.living().length];
		this.fids = fids.slice(3);
		this.typists = this.fids.map((fid, i) => new Typist(gateways[i % 3], this.user, fid, { pauseMs: 20, living }));
		this.writers = fids.slice(0, 3).map((fid) => new Writer('w', 0, this.user, fid, living));
		for (const editor of [...this.typists, ...this.writers]) await editor.progress(20);
	}

	living() {
		return this.cluster.gateways.filter((gateway) => gateway.service.alive);
	}

	/** What editors and newcomers notice while `event` goes on, and until `settled` is true. */
	async during(event, settled) {
		const began = performance.now();
		const waits = [];
		const errors = [];
		let going = true;
		const coming = (async () => {
			while (going) {
				const living = this.living();
				const at = performance.now();
				const [gateway, fid] = [living, this.fids].map((list) => list[Math.floor(Math.random() * list.length)]);
				await enter(this.cluster, gateway, this.user, fid).then(
					() => waits.push(performance.now() - at),
					({ code, message }) => errors.push({ at: performance.now() - began, text: (message || code).split('\n')[0] }),
				);
				await sleep(50);
			}
		})();
		await event();
		await waitUntil(settled, 'the sheets to move', 60000, 100);
		await Promise.all(this.typists.map((typist) => typist.progress(5, 60000)));
		const gap = Math.max(...this.typists.map((typist) => typist.gap(began)));
		going = false;
		await coming;
		return { gap, newcomer: Math.max(...waits), errors };
	}

	/** Each sheet is served by the gateway that the ring names. */
	async isSettled() {
		const owned = await Promise.all(
			this.fids.map(async (fid) => {
				const answers = await Promise.all(
					this.living().map(async (gateway) => {
						const headers = { authorization: `Bearer ${this.user.token}` };
						return (await request(gateway, 'GET', `/v2/sheets/${fid}/route`, { headers })).json?.ws;
					}),
				);
				return answers[0] !== undefined && answers.every((ws) => ws === answers[0]);
			}),
		);
		return owned.every(Boolean);
	}

	async command(...words) {
		const { code, stderr } = await runAs(this.cluster.gatewayBinary, [...words, ...this.cluster.gateways[0].arguments()]);
		if (code !== 0) throw new Error(stderr);
	}

	async end() {
		let lost = 0;
		let duplicated = 0;
		for (const typist of this.typists) {
			await typist.stop();
			const faults = await typist.faults(this.cluster);
			lost += faults.lost;
			duplicated += faults.doubled;
		}
		for (const writer of this.writers) {
			await writer.stop();
			await checkNothingLost(this.cluster, writer.fid, [writer]);
		}
		report('lost', [lost]);
		report('duplicated', [duplicated]);
	}
}

async function handover() {
	const bench = new Bench();
	const seen = { idle: [], join: [], drain: [], kill: [], newcomer: [], refused: [] };
	let failed = 0;
	const note = (what, { gap, newcomer, errors }) => {
		seen[what].push(gap);
		if (what === 'join' || what === 'drain') seen.newcomer.push(newcomer);
		// The dead gateway's sheets are refused until its session has expired.
		if (what === 'kill') seen.refused.push(Math.max(0, ...errors.map(({ at }) => at)));
		else failed += errors.length;
		const texts = [...new Set(errors.map(({ text }) => text))];
		if (texts.length) process.stdout.write(`  ${what}: ${errors.length} newcomers were not served: ${texts.join('; ')}\n`);
	};
	await bench.start();
	const { cluster } = bench;
	const settled = () => bench.isSettled();
	try {
		for (let round = 0; round < rounds; round++) {
			note('idle', await bench.during(() => sleep(3000), settled));
			if (round === 0) note('join', await bench.during(() => cluster.addGateway(), settled));
			else note('join', await bench.during(() => bench.command('resume', cluster.gateways[3].host), settled));
			await cluster.reported(cluster.gateways[3]);
			note('drain', await bench.during(() => bench.command('drain', cluster.gateways[3].host), settled));
			const victim = cluster.gateways[1 + (round % 2)];
			note('kill', await bench.during(() => victim.kill(), settled));
			await victim.start();
			await waitUntil(settled, 'the killed gateway to be back', 60000, 100);
		}
		report('gap_idle_ms', seen.idle);
		report('handover_join_ms', seen.join);
		report('handover_drain_ms', seen.drain);
		report('handover_kill_ms', seen.kill);
		report('newcomer_ms', seen.newcomer);
		report('newcomer_errors', [failed]);
		report('refused_kill_ms', seen.refused);
		await bench.end();
	} finally {
		await cluster.stop();
	}
}

async function ring() {
	const count = 10000;
	const fullest = (owners) => {
		const sheets = new Map();
		for (const owner of owners) sheets.set(owner, (sheets.get(owner) ?? 0) + 1);
		return Math.max(...sheets.values()) / (owners.length / sheets.size);
	};
	await coord.prepare();
	try {
		const group = await coord.start(3);
		const three = await group[0].owners(count);
		const fourth = new coord.Probe('zookeeper', '127.0.0.1:9004');
		await fourth.next('ready');
		await waitUntil(() => group[0].members().length === 4, 'the fourth');
		const four = await group[0].owners(count);
		const waits = [];
		for (let i = 0; i < 50; i++) {
			const sheet = coord.newSheet();
			await group[0].acquire(sheet);
			group[1].tell(`acquire ${sheet}`);
			await group[1].next(`waiting ${sheet}`);
			const released = performance.now();
			group[0].tell(`release ${sheet}`);
			await group[1].granted(sheet);
			waits.push(group[1].events.find(({ text }) => text.startsWith(`granted ${sheet} `)).at - released);
			group[1].tell(`release ${sheet}`);
		}
		await coord.stop(...group, fourth);
		const ten = await coord.start(10);
		report('max_over_mean_3', [fullest(three)]);
		report('max_over_mean_10', [fullest(await ten[0].owners(count))]);
		report('moved_join_ratio', [(4 * four.filter((owner, i) => owner !== three[i]).length) / count]);
		report('sheet_lock_ms', [median(waits)]);
		await coord.stop(...ten);
	} finally {
		await coord.killProbes();
		await coord.finish();
	}
}

/** Locks of SQL sessions: both times are the server's. */
async function locks() {
	const cluster = await Cluster.start({ gateways: 0 });
	try {
		const [owner, waiter] = [cluster.psqlSession(), cluster.psqlSession()];
		const waits = [];
		for (let i = 0; i < 50; i++) {
			await owner.query("SELECT sheet.lock('wake')");
			const granted = waiter.query("SELECT sheet.lock('wake'), extract(epoch FROM clock_timestamp())");
			await waitUntil(async () => (await cluster.psql("SELECT waiting FROM sheet.locks WHERE name = 'wake'")) === '1', 'the waiter');
			const [released] = (await owner.query("SELECT extract(epoch FROM clock_timestamp()), sheet.unlock('wake')")).split('|');
			waits.push((Number((await granted).split('|')[1]) - Number(released)) * 1000);
			await waiter.query("SELECT sheet.unlock('wake')");
		}
		report('lock_wake_ms', [median(waits)]);
		await owner.close();
		await waiter.close();
	} finally {
		await cluster.stop();
	}
}

const phases = { handover, ring, locks, throughput: async () => Object.assign(results, await throughput()) };
for (const name of (process.env.PHASES ?? Object.keys(phases).join(' ')).split(' ')) {
	process.stdout.write(`${name}\n`);
	await phases[name]();
}
if (missed.length) process.stdout.write(`goals missed: ${missed.join(', ')}\n`);
console.log(JSON.stringify(results));
process.exit(missed.length ? 1 : 0);
