/*
 * throughput.mjs - what one, two and three gateways carry together, over 10 to 10,000 sheets, and how many reads miss the
 * cache of the server. The cache (4 MB) has room for a part of the 10,000 sheets.
 *
 * EDITORS=64 editors of protocol v2 open random sheets by random gateways, store 25 cells in each, one after the other, and go
 * on to the next sheet. Then 32 readers send POST /getsheet for random sheets to random gateways. SECONDS=4 of each.
 */
import fs from 'node:fs';
import { register } from '../../lib/client.mjs';
import { Cluster, waitUntil } from '../../lib/cluster.mjs';
import { RawClient } from '../../lib/v2.mjs';
import { setting } from '../common/site.mjs';

const editors = setting('EDITORS', 64, 1, 1000);
const seconds = setting('SECONDS', 4, 1, 60);
const sizes = [10, 100, 1000, 10000];
const gatewayCounts = [1, 2, 3];
const readers = 32;
const cellsOfVisit = 25;

const choose = (list) => list[Math.floor(Math.random() * list.length)];

class World {
	async start() {
		this.cluster = await Cluster.start({ gateways: 1, coordinator: 'zookeeper', postgres: { fsync: 'on', 'pg_sheet.cache_size': '4MB' } });
		this.user = await register(this.cluster.gateways[0]);
		this.fids = [];
		// The sheets of one transaction must have room in the cache.
		while (this.fids.length < sizes.at(-1)) {
			const some = await this.cluster.psql(`SELECT sheet.create('t' || i, 20, 10, as_uid => ${this.user.uid}) FROM generate_series(1, 1000) i`);
			const ids = some.split('\n').map(Number);
			await this.cluster.psql(`SELECT count(sheet.set(id, r, c, 'content ' || r || ' ' || c)) FROM unnest('{${ids}}'::bigint[]) id, generate_series(0, 9) r, generate_series(0, 4) c`);
			this.fids.push(...ids);
		}
	}

	/** One more gateway, and all know it. */
	async grow(count) {
		while (this.cluster.gateways.length < count) await this.cluster.addGateway();
		const listed = () => this.cluster.psql("SELECT count(*) FROM sheet.gateways WHERE state = 'serving'");
		await waitUntil(async () => Number(await listed()) === count, `${count} gateways`, 60000, 200);
	}

	/** Opens a sheet by any gateway; follows it to its own. */
	async open(fid) {
		let gateway = choose(this.cluster.gateways);
		for (let tries = 0; tries < 5; tries++) {
			const client = new RawClient(gateway, fid, { encoding: 'binary' });
			await client.opened;
			client.send({ t: 'hello', v: 2, token: this.user.token, client: 1 + Math.floor(Math.random() * 2 ** 50), acked: 0, since: 0 });
			await waitUntil(() => client.closed || client.messages.length > 0, 'an answer', 20000, 1);
			if (!client.closed) return client;
			const { host } = new URL(JSON.parse(client.closed.reason).ws);
			gateway = this.cluster.gateways.find((other) => other.host === host);
		}
		throw new Error('sent to and fro');
	}

	/** Acknowledged edits per second. */
	async edit(count) {
		let stored = 0;
		const end = performance.now() + 1000 * seconds;
		const work = async () => {
			while (performance.now() < end) {
				const client = await this.open(this.fids[Math.floor(Math.random() * count)]);
				let heard = () => {};
				for (const event of ['message', 'close']) client.socket.on(event, () => heard());
				visit: for (let n = 1; n <= cellsOfVisit && performance.now() < end; n++) {
					client.messages.splice(0);
					client.op(n, [{ row: n % 20, col: n % 10, content: `e${Math.random()}` }]);
					while (!client.messages.some((message) => message.t === 'ack' && message.n === n)) {
						if (client.closed?.code === 4307) break visit; // the sheet moves to a gateway that has joined
						if (client.closed) throw new Error(`closed: ${JSON.stringify(client.closed)}`);
						await new Promise((resolve) => (heard = resolve));
					}
					stored++;
				}
				client.socket.close();
			}
		};
		await Promise.all(Array.from({ length: editors }, work));
		return stored / seconds;
	}

	/** Answers per second, and the part of the server's reads that missed its cache. */
	async read(count) {
		const counts = async () => (await this.cluster.rows('SELECT hits, misses + private_no_room AS misses FROM sheet.cache_stats'))[0];
		const before = await counts();
		let answers = 0;
		const end = performance.now() + 1000 * seconds;
		const work = async () => {
			while (performance.now() < end) {
				const fid = this.fids[Math.floor(Math.random() * count)];
				const answer = await fetch(`${choose(this.cluster.gateways).url}/getsheet`, {
					method: 'POST',
					headers: { authorization: `Bearer ${this.user.token}` },
					body: JSON.stringify({ fid }),
				});
				if ((await answer.json()).data?.fid !== fid) throw new Error(`sheet ${fid}: status ${answer.status}`);
				answers++;
			}
		};
		await Promise.all(Array.from({ length: readers }, work));
		const after = await counts();
		const [hits, misses] = ['hits', 'misses'].map((key) => Number(after[key]) - Number(before[key]));
		return { rate: answers / seconds, misses: misses / Math.max(1, hits + misses) };
	}
}

/** Measures, prints a table, and returns {key: figure}. PLOT=FILE draws the edits per second. */
export async function throughput() {
	const world = new World();
	const results = {};
	const lines = [];
	await world.start();
	try {
		for (const gateways of gatewayCounts) {
			await world.grow(gateways);
			for (const count of sizes) {
				await world.read(count); // what the cache has room for is in it
				const { rate, misses } = await world.read(count);
				const edits = await world.edit(count);
				const key = `${gateways}_${count}`;
				Object.assign(results, { [`edits_${key}`]: Math.round(edits), [`reads_${key}`]: Math.round(rate), [`misses_${key}`]: Number(misses.toFixed(3)) });
				lines.push({ gateways, count, edits });
				process.stdout.write(`  ${gateways} gateways, ${String(count).padStart(5)} sheets: ${Math.round(edits)} edits/s, ${Math.round(rate)} reads/s, ${(100 * misses).toFixed(1)} % of them miss the cache\n`);
			}
		}
	} finally {
		await world.cluster.stop();
	}
	if (process.env.PLOT) fs.writeFileSync(process.env.PLOT, picture(lines));
	return results;
}

/** Edits per second over the number of sheets, a line for each number of gateways. */
function picture(lines) {
	const colours = ['#1a6fb5', '#d9480f', '#2b8a3e'];
	const top = 1.1 * Math.max(...lines.map(({ edits }) => edits));
	const x = (count) => 70 + (540 * sizes.indexOf(count)) / (sizes.length - 1);
	const y = (edits) => 340 - (300 * edits) / top;
	const text = (at, words, more = '') => `<text x="${at[0]}" y="${at[1]}" ${more}>${words}</text>`;
	const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => `<path d="M70 ${340 - 300 * part}h540" stroke="#ddd"/>${text([62, 344 - 300 * part], Math.round(top * part), 'text-anchor="end"')}`);
	const drawn = gatewayCounts.map((gateways, i) => {
		const own = lines.filter((line) => line.gateways === gateways);
		const path = own.map(({ count, edits }, at) => `${at ? 'L' : 'M'}${x(count).toFixed(1)} ${y(edits).toFixed(1)}`).join('');
		return `<path d="${path}" fill="none" stroke="${colours[i]}" stroke-width="2"/>${text([500, 60 + 20 * i], `${gateways} gateway${i ? 's' : ''}`, `fill="${colours[i]}"`)}`;
	});
	return [
		'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" font-family="sans-serif" font-size="13">',
		'<rect width="640" height="400" fill="#fff"/>',
		...grid,
		...sizes.map((count) => text([x(count), 362], count, 'text-anchor="middle"')),
		text([340, 388], 'sheets', 'text-anchor="middle"'),
		text([70, 24], 'acknowledged edits per second'),
		...drawn,
		'</svg>\n',
	].join('\n');
}
