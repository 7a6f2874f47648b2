/*
 * peers - the flood against servers of others (../peers/catalogue.mjs), in turns, so that the machine's other work meets all.
 * PEERS="ws_plain ws_coalescing" says which, PEERS=all takes all of them; ROUNDS=3. TABLE=tests/bench/README.md puts the table
 * into that document, too.
 */
import path from 'node:path';
import { Editor, newSheet } from '../../../lib/client.mjs';
import { repository } from '../../../lib/cluster.mjs';
import { cpuOfMachine, cpuOfTree, setting, startGenerator } from '../../common/site.mjs';
import { peers as catalogue } from '../peers/catalogue.mjs';
import { markdown, versionsOf, writeInto } from '../peers/table.mjs';
import { expectWhole, round, writeOneSheet } from './common.mjs';

const probes = 20;
const ours = {
	ours: { name: 'pg_sheet, protocol v1', program: 'edit_generator' },
	ours_v2: {
		name: 'pg_sheet, protocol v2, binary, 16 edits an operation',
		stored: 'yes: the commits are the same',
		program: 'v2_flood',
	},
};

/** The names of those that take turns; ours is always the first. */
function contenders() {
	const known = { ...ours, ...catalogue };
	const text = process.env.PEERS || 'ws_plain ws_coalescing';
	const names = text === 'all' ? Object.keys(known) : text.split(/\s+/).filter(Boolean);
	const unknown = names.find((name) => !known[name]);
	if (!unknown) return [...new Set(['ours', ...names])];
	process.stderr.write(`PEERS: ${unknown} is none of ${Object.keys(known).join(' ')}, all\n`);
	process.exit(2);
}

/** One round of a peer: {recv, ns, others, lost (share of the deliveries)}. */
async function measurePeer(bench, peer, seconds) {
	const users = bench.users.length;
	const server = await peer.start();
	try {
		const generator = startGenerator(
			...peer.load({ port: server.port, seconds, users, file: (...args) => bench.file(...args) }),
		);
		const { pid } = generator.child;
		if ((await generator.line()) !== 'ready') throw new Error('the load is not ready');
		const look = () => ({ server: cpuOfTree(server.pid), load: cpuOfTree(pid), machine: cpuOfMachine() });
		const before = look();
		generator.go();
		const first = await generator.line();
		const after = look();
		const result = JSON.parse(first === 'over' ? await generator.line() : first);
		generator.end();
		// What a peer loses is told of it; it is no fault of this run.
		expectWhole(bench, { ...result, lost: 0 }, peer.name);
		for (const problem of result.problems ?? []) bench.expect(false, `${peer.name}: ${problem}`);
		const spent = Object.fromEntries(['server', 'load'].map((who) => [who, after[who] - before[who]]));
		const busy = after.machine.busy - before.machine.busy;
		return {
			recv: result.received / users / result.total_seconds,
			ns: (spent.server / result.received) * 1e9,
			others: Math.max(0, busy - spent.server - spent.load) / (after.machine.all - before.machine.all),
			lost: result.lost / (result.received + result.lost),
		};
	} finally {
		await server.stop();
	}
}

async function measureOurs(bench, { program }, seconds) {
	const { recv, cpu, users } = await writeOneSheet(bench, { seconds, rate: 0, program });
	return { recv, ns: (cpu.gateway + cpu.postgres) / users };
}

/** A single edit comes back while nobody else writes: is the server's log flushed then, as far as it is written? */
async function isDurable(editor, psql, content) {
	editor.modify(0, 0, content);
	await editor.nextModify(0, 0, content);
	return (await psql('SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()')) === 't';
}

/**
 * Is an edit on the disk when its sender sees it? PostgreSQL itself writes a record now and then, which nobody waits for: an edit
 * that seems not to be is tried again. If edits were seen early, few of all these would have been flushed meanwhile.
 */
async function countDurableEchoes(bench) {
	const { gateway, psql } = bench.site;
	const [user] = bench.users;
	const editor = await Editor.open(gateway, user, await newSheet(gateway, user, { name: 'durable' }));
	let durable = 0;
	for (let i = 0; i < probes; i++)
		for (let attempt = 0; attempt < 3; attempt++)
			if (await isDurable(editor, psql, `edit ${i}.${attempt}`)) {
				durable++;
				break;
			}
	await editor.close();
	bench.expect(durable === probes, `${probes - durable} of ${probes} edits were seen before they were on the disk`);
	bench.expect((await psql('SHOW fsync')) === 'on', 'fsync is off');
	return `${durable === probes ? 'yes' : 'NO'}: ${durable} of ${probes} edits sent alone were, fsync on`;
}

function statistics(values) {
	const sorted = [...values].sort((a, b) => a - b);
	return { median: sorted[Math.floor(sorted.length / 2)], low: sorted[0], high: sorted.at(-1) };
}

/** Rounds of all contenders; a peer whose server cannot be started is left out. */
async function measureAll(bench, names, rounds, seconds) {
	const results = new Map(names.map((name) => [name, []]));
	const leftOut = new Map();
	for (let i = 0; i < rounds; i++) {
		for (const name of results.keys()) {
			if (leftOut.has(name)) continue;
			try {
				const measure = ours[name] ? measureOurs : measurePeer;
				results.get(name).push(await measure(bench, ours[name] ?? catalogue[name], seconds));
			} catch (error) {
				if (ours[name] || results.get(name).length > 0) throw error;
				leftOut.set(name, error.message.replace(/\s*\n\s*/g, '; '));
			}
		}
	}
	for (const name of leftOut.keys()) results.delete(name);
	return { results, leftOut };
}

function print(bench, rows, leftOut) {
	for (const { name, recv, ns } of rows)
		bench.line(`${name}: edits/s, server`, `${Math.round(recv.median)}, ${Math.round(ns.median)} ns`);
	for (const { name, reason } of leftOut) bench.line(`left out: ${name}: ${reason}`, '-');
}

export async function peers(bench) {
	const names = contenders();
	const rounds = setting('ROUNDS', 3, 1, 100);
	const seconds = Math.max(1, bench.seconds / 2);
	const stored = await countDurableEchoes(bench);
	const { results, leftOut: missing } = await measureAll(bench, names, rounds, seconds);
	const rows = [...results].map(([key, values]) => ({
		key,
		stored,
		...(ours[key] ?? catalogue[key]),
		recv: statistics(values.map(({ recv }) => recv)),
		ns: statistics(values.map(({ ns }) => ns)),
		lost: statistics(values.map(({ lost = 0 }) => lost)),
	}));
	const leftOut = [...missing].map(([key, reason]) => ({ name: catalogue[key].name, reason }));
	const shares = [...results.values()].flat().flatMap(({ others }) => others ?? []);
	const table = markdown(rows, {
		rounds,
		seconds,
		others: shares.length > 0 ? statistics(shares).median : null,
		versions: versionsOf(rows),
		leftOut,
	});
	print(bench, rows, leftOut);
	process.stdout.write(`\n${table}\n\n`);
	if (process.env.TABLE) writeInto(path.resolve(repository, process.env.TABLE), table);

	const json = Object.fromEntries(
		rows.flatMap(({ key, recv, ns }) => [
			[`${key}_recv_per_user`, Math.round(recv.median)],
			[`${key}_ns_per_delivery`, Math.round(ns.median)],
		]),
	);
	const coalescing = rows.find(({ key }) => key === 'ws_coalescing');
	if (coalescing) {
		json.v1_vs_node_ws = round(rows[0].recv.median / coalescing.recv.median, 2);
		bench.line('this gateway against ws, coalescing', json.v1_vs_node_ws, '1.5', json.v1_vs_node_ws >= 1.5);
	}
	return json;
}
