/*
 * Three gateways, three ZooKeeper servers and PostgreSQL, each in a network of its own: links are cut, also in one direction,
 * processes are killed, paused and restarted, disks are full. All the time editors of both protocols write and newcomers come. No
 * acknowledged edit is lost or stored twice, all clients receive one order, no gateway serves a sheet after another one has got it,
 * and in the end all gateways agree and answer alike.
 *
 * The short form has each fault once. The long form goes on with random ones (PG_SHEET_SEED).
 */
// measures for how long gateways refuse
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { runInNamespace } from '../lib/networks.mjs';

const refusal = await runInNamespace(import.meta.url);
const { WebSocket } = await import('ws');
const { newSheet, post, register, request } = await import('../lib/client.mjs');
const { PsqlSession, database } = await import('../lib/cluster.mjs');
const { Ensemble, impatienceMs, sessionMs } = await import('../lib/ensemble.mjs');
const { roundsToRun, waitUntil } = await import('../lib/processes.mjs');
const { Typist } = await import('../lib/typist.mjs');
const { RawClient, gridOf } = await import('../lib/v2.mjs');
const { Writer, checkNothingLost } = await import('../lib/writer.mjs');

const patienceMs = 60000; // of a test on a busy machine
/*
 * For how long newcomers may be refused. ZooKeeper ends a session at the first of its ticks (0.5 s) after the session time; then
 * another gateway takes the lock. busyMs: all servers and editors of this test share the cores, so the path from the end of the
 * session to the newcomer's hello may wait for one.
 */
const busyMs = 1000;
const deadMs = sessionMs + 1000 + busyMs;
/* ZooKeeper hears a gateway until that leaves its server, after a third of the session without an answer. */
const heardMs = (sessionMs * 4) / 3 + 1000 + busyMs;
const withoutDatabaseMs = 10000 + busyMs;
/* For how long an editor may wait for an acknowledgement when its gateway hands over. */
const handoverMs = 300 + busyMs;
const seed = Number(process.env.PG_SHEET_SEED ?? 1);
let cluster;
let anna;
let idle; // a sheet that nobody edits
const sheets = [];
const writers = [];
const typists = [];
const away = new Set(); // gateways that the database did not answer, until they take sheets again

/** mulberry32 */
class Random {
	constructor(state) {
		this.state = state;
	}

	number() {
		this.state = (this.state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	}

	choose(list) {
		return list[Math.floor(this.number() * list.length)];
	}

	shuffle(list) {
		return list.map((value) => [this.number(), value]).sort(([a], [b]) => a - b).map(([, value]) => value);
	}
}
const faultsRandom = new Random(seed);
const clientsRandom = new Random(seed + 1);

const editors = () => [...writers, ...typists];
const progress = (count = 5) => Promise.all(editors().map((editor) => editor.progress(count, patienceMs)));
const settled = () => cluster.settled(sheets, anna, away);
const enter = (fid) => cluster.enter(fid, anna, clientsRandom, patienceMs);
const sheetsOf = async (gateway) => [...((await cluster.serving(gateway)) ?? new Map()).keys()].filter((fid) => sheets.includes(fid));
const isReady = async (gateway) => (await request(gateway, 'GET', '/readyz', { timeoutMs: impatienceMs }).catch(() => null))?.status === 200;

/** Gateways, the first of which serves sheets. */
async function victims(count = 1) {
	const candidates = faultsRandom.shuffle(cluster.living().filter((gateway) => !away.has(gateway)));
	const numbers = await Promise.all(candidates.map(async (gateway) => (await sheetsOf(gateway)).length));
	const serving = candidates.findIndex((_, i) => numbers[i] > 0);
	assert.ok(serving >= 0, 'a gateway serves');
	return [candidates[serving], ...candidates.filter((_, i) => i !== serving)].slice(0, count);
}

/** Until newcomers are served by others in place of these gateways, which may take boundMs. */
async function replaced(t, gateways, fault, boundMs = deadMs) {
	const fids = (await Promise.all(gateways.map(sheetsOf))).flat();
	const began = performance.now();
	await fault();
	const gaps = await Promise.all(
		fids.map(async (fid) => {
			const served = async () => !gateways.includes(await enter(fid));
			await waitUntil(served, `sheet ${fid} to be served by another gateway`, patienceMs, 10);
			return Math.round(performance.now() - began);
		}),
	);
	t.diagnostic(`${fids.length} sheets were served by others after ${gaps.sort((a, b) => a - b).join(', ')} ms; at most ${Math.round(boundMs)}`);
	assert.ok(gaps.every((gap) => gap <= boundMs), `refused for ${gaps} ms`);
	return fids;
}

/** No editor of protocol v2 has waited for an acknowledgement for longer. */
function checkGaps(t, since, boundMs) {
	const gap = Math.round(Math.max(...typists.map((typist) => typist.gap(since))));
	t.diagnostic(`the longest time without an acknowledgement: ${gap} ms; at most ${boundMs}`);
	assert.ok(gap <= boundMs, `${gap} ms without an acknowledgement`);
}

/** A gateway without contact to ZooKeeper lets no newcomer wait, and serves HTTP. */
async function sendsNewcomersAway(gateway, fid) {
	const client = new RawClient(gateway, fid);
	await client.opened;
	client.send({ t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 });
	const { code, reason } = await client.waitClosed();
	assert.ok(code === 4307 || (code === 1012 && /lost contact/.test(reason)), `${code} ${reason}`);
	const headers = { authorization: `Bearer ${anna.token}` };
	assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1:B2`, { headers })).status, 200);
}

async function healed() {
	cluster.restore();
	await settled();
	await progress();
}

const faults = {
	async 'a gateway and ZooKeeper do not reach each other'(t) {
		const [gateway] = await victims();
		const fids = await replaced(t, [gateway], () => cluster.network.part(gateway.network, 'zookeeper'));
		for (const fid of fids) await sendsNewcomersAway(gateway, fid);
		await healed();
	},

	async 'one gateway does not reach ZooKeeper, and ZooKeeper does not reach another'(t) {
		const [deaf, mute] = await victims(2);
		await replaced(t, [deaf, mute], () => {
			cluster.network.cut('zookeeper', deaf.network);
			cluster.network.cut(mute.network, 'zookeeper');
		}, heardMs);
		await healed();
	},

	async 'one gateway does not reach PostgreSQL, and PostgreSQL does not reach another, for some seconds'() {
		const [deaf, mute] = await victims(2);
		cluster.network.cut('postgres', deaf.network);
		cluster.network.cut(mute.network, 'postgres');
		await waitUntil(async () => !(await isReady(deaf)) && !(await isReady(mute)), 'both to notice', patienceMs);
		await healed();
	},

	async 'clients and a gateway do not reach each other'() {
		const [gateway] = await victims();
		const silenced = await editorsAt(gateway);
		cluster.unreachable.add(gateway);
		cluster.network.part(gateway.network, 'clients');
		await someSilence(silenced);
		await healed();
	},

	async 'clients do not hear one gateway, and another does not hear clients'() {
		const [mute, deaf] = await victims(2);
		const silenced = [...(await editorsAt(mute)), ...(await editorsAt(deaf))];
		cluster.unreachable.add(mute).add(deaf);
		cluster.network.cut(mute.network, 'clients');
		cluster.network.cut('clients', deaf.network);
		await someSilence(silenced);
		await healed();
	},

	async 'a gateway is killed and started again'(t) {
		const [gateway] = await victims();
		await replaced(t, [gateway], () => gateway.kill());
		await gateway.start();
		await healed();
	},

	async 'a gateway is paused for longer than its session'(t) {
		const [gateway] = await victims();
		await replaced(t, [gateway], () => {
			gateway.service.signal('SIGSTOP');
			cluster.stopped.add(gateway);
		}, deadMs + impatienceMs); // a newcomer may go to the paused gateway just before the sheet moves
		await healed();
	},

	async 'all gateways are restarted, one after the other'(t) {
		const began = performance.now();
		for (const gateway of faultsRandom.shuffle(cluster.living())) {
			cluster.unreachable.add(gateway);
			assert.equal((await gateway.stop()).code, 0);
			away.delete(gateway);
			await gateway.start({}, { ready: '/readyz' });
			cluster.unreachable.delete(gateway);
		}
		await progress();
		checkGaps(t, began, handoverMs);
		await healed();
	},

	async 'the ZooKeeper leader is killed and started again'(t) {
		const leader = await cluster.zookeeperLeader();
		const began = performance.now();
		await cluster.zookeepers[leader].kill();
		await cluster.zookeeperLeader();
		await progress();
		checkGaps(t, began, deadMs);
		await cluster.startServers(leader);
		await healed();
	},

	async 'two of three ZooKeeper servers are killed and started again'(t) {
		const dead = faultsRandom.shuffle([1, 2, 3]).slice(0, 2);
		const living = cluster.living();
		for (const n of dead) await cluster.zookeepers[n].kill();
		const rooms = () => Promise.all(living.map((gateway) => cluster.serving(gateway)));
		await waitUntil(async () => (await rooms()).every((serving) => serving?.size === 0), 'the gateways to give their sheets up', patienceMs);
		const count = () => editors().map(({ order }) => order.length);
		const told = count();
		for (const gateway of living) await sendsNewcomersAway(gateway, faultsRandom.choose(sheets));
		assert.deepEqual(count(), told, 'nothing is acknowledged without locks');
		const back = performance.now();
		await cluster.startServers(...dead);
		const started = performance.now();
		await progress();
		t.diagnostic(`all editors go on ${Math.round(performance.now() - started)} ms after the servers were started, which took ${Math.round(started - back)} ms`);
		await healed();
	},

	async 'the disk of a ZooKeeper server is full, and has room again'(t) {
		const n = faultsRandom.choose([1, 2, 3]);
		cluster.fillDisk(n);
		const noticed = async () => {
			await enter(idle); // takes a lock and releases it
			return cluster.hasFoundDiskFull(n);
		};
		await waitUntil(noticed, 'the server to find its disk full', patienceMs, 0);
		await progress();
		t.diagnostic(`server ${n} ${cluster.zookeepers[n].alive ? 'lives' : 'has ended'}`);
		cluster.freeDisk(n);
		if (!cluster.zookeepers[n].alive) cluster.spawnServer(n);
		await cluster.zookeeperIsBack(n);
		await healed();
	},

	async 'a gateway joins and is drained'(t) {
		const began = performance.now();
		let fourth = cluster.gateways[3];
		if (fourth) await fourth.start();
		else fourth = await cluster.addGateway();
		await settled();
		const moved = () => sheetsOf(fourth);
		await waitUntil(async () => (await moved()).length > 0, 'sheets of protocol v2 to move', patienceMs);
		t.diagnostic(`${(await moved()).length} sheets have moved to the new gateway`);
		await progress();
		await cluster.reported(fourth);
		await cluster.command('drain', fourth.host);
		assert.deepEqual([...(await cluster.serving(fourth)).keys()], []);
		await progress();
		checkGaps(t, began, handoverMs);
		assert.equal((await fourth.stop()).code, 0);
		await healed();
	},

	async 'PostgreSQL and the owner of a lock do not reach each other'() {
		const conninfo = () => `host=${cluster.network.addresses.postgres} user=postgres dbname=${database}`;
		for (const statement of ['', 'SELECT pg_sleep(600)']) {
			const [owner, waiter] = [new PsqlSession({ bin: cluster.bin, conninfo }), cluster.psqlSession()];
			const [pid, former] = (await owner.query("SELECT pg_backend_pid(), sheet.lock('leased', lease => '2 s')")).split('|');
			owner.child.stdin.write(`${statement};\n`);
			const state = `SELECT state FROM pg_stat_activity WHERE pid = ${pid}`;
			await waitUntil(async () => (await cluster.psql(state)) === (statement ? 'active' : 'idle'), 'the statement', patienceMs, 20);
			cluster.network.part('postgres', 'clients');
			const began = performance.now();
			const number = await waiter.query("SELECT sheet.lock('leased')");
			// During a statement PostgreSQL asks after a second without traffic, and looks for the answer each 0.7 s.
			assert.ok(performance.now() - began <= 3000 + busyMs, `the lock was free after ${performance.now() - began} ms`);
			assert.ok(Number(number) > Number(former), `${former}, then ${number}`);
			await assert.rejects(cluster.psql(`SELECT sheet.require_lock('leased', ${former})`), /SF002/);
			cluster.restore();
			owner.child.kill('SIGKILL');
			await waiter.close();
		}
	},

	async 'a gateway and PostgreSQL do not reach each other'(t) {
		const [gateway] = await victims();
		away.add(gateway);
		await replaced(t, [gateway], () => cluster.network.part(gateway.network, 'postgres'), withoutDatabaseMs);
		await healed();
	},

	async 'a ZooKeeper server is paused, and continues'() {
		const leader = await cluster.zookeeperLeader();
		const paused = cluster.zookeepers[faultsRandom.choose([1, 2, 3].filter((n) => n !== leader))];
		paused.signal('SIGSTOP');
		try {
			await progress();
			await enter(idle);
		} finally {
			paused.signal('SIGCONT');
		}
		await healed();
	},

	async 'all ZooKeeper servers are restarted, one after the other'() {
		for (const n of faultsRandom.shuffle([1, 2, 3])) {
			await cluster.zookeepers[n].kill();
			await progress();
			await cluster.startServers(n);
		}
		await healed();
	},

	async 'PostgreSQL and a gateway end their sessions while they do not reach each other'() {
		const [gateway] = await victims();
		away.add(gateway);
		cluster.network.part(gateway.network, 'postgres');
		const sessions = () => cluster.psql(`SELECT count(*) FROM pg_stat_activity WHERE client_addr = '${gateway.address}'`);
		await waitUntil(async () => (await sessions()) === '0', 'PostgreSQL to end the sessions', patienceMs, 500);
		const isUp = async () => /"up":true/.test((await request(gateway.admin, 'GET', '/debug')).text);
		await waitUntil(async () => !(await isUp()), 'the gateway to notice on all connections', patienceMs, 500);
		await healed();
	},
};

/** The editors whose sheets this gateway serves. */
async function editorsAt(gateway) {
	const fids = await sheetsOf(gateway);
	return editors().filter(({ fid }) => fids.includes(fid));
}

/** A second in which none of the editors gets an acknowledgement, after what was on its way has arrived. */
async function someSilence(silenced) {
	const heard = () => silenced.map(({ order }) => order.length).join();
	let last = heard();
	let since = performance.now();
	const silent = () => {
		if (heard() !== last) [last, since] = [heard(), performance.now()];
		return performance.now() - since > 1000;
	};
	await waitUntil(silent, 'a second without acknowledgements', patienceMs);
}

/** A request of protocol v1 that follows redirects. */
async function follow(gateway, route, body) {
	for (let hops = 0; hops < 3; hops++) {
		const answer = await post(gateway, route, body);
		if (answer.status !== 307) return answer;
		const { host, pathname } = new URL(answer.headers.location);
		assert.equal(pathname, route);
		gateway = cluster.gateways.find((candidate) => candidate.host === host);
	}
	throw new Error(`${route}: sent to and fro`);
}

/** What a session of protocol v1 gets that begins at this gateway, without what differs from session to session. */
async function golden(gateway) {
	const user = await register(gateway);
	const answers = [];
	let fid = null;
	const ask = async (route, body) => {
		const { status, text, json } = await follow(gateway, route, body);
		const timeless = text
			.replace(/"ey[\w-]+\.[\w-]+\.[\w-]+"/g, '"A.B.C"')
			.replace(/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"/g, '"TIME"')
			.replaceAll(`"${user.username}"`, '"USER"')
			.replace(new RegExp(`"uid":${user.uid}\\b`, 'g'), '"uid":UID')
			.replace(/"fid":\d+/g, '"fid":FID');
		answers.push([route, status, route === '/newsheet' ? `${json.success} ${json.msg}` : timeless]);
		return json.data;
	};
	const { token } = await ask('/login', { username: user.username, password: user.password });
	for (let i = 0; i < 2; i++) {
		fid = await ask('/newsheet', { token, name: 'golden', initRows: 3, initColumns: 3 });
		await ask('/getsheet', { token, fid });
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'first')`);
		const cid = await ask('/commitsheet', { token, fid });
		await cluster.psql(`SELECT sheet.set(${fid}, 'B2', 'second')`);
		await ask('/getsheetlog', { token, fid, lid: 1 });
		await ask('/getsheetlog', { token, fid, lid: 2 });
		await ask('/rollbacksheet', { token, fid, cid });
		await ask('/getsheet', { token, fid });
	}
	await ask('/login', { username: user.username, password: user.password });
	return answers;
}

async function begin() {
	cluster = await Ensemble.start({ gatewayFlags: { 'handover-seconds': 1, 'drain-seconds': 5 } });
	const [first] = cluster.gateways;
	anna = await register(first);
	for (let i = 0; i < 10; i++) sheets.push(await newSheet(first, anna));
	idle = await newSheet(first, anna);
	const choose = () => clientsRandom.choose(cluster.reachable());
	const open = (url, protocol) => new WebSocket(url, protocol, { handshakeTimeout: impatienceMs }).on('error', () => {});
	const write = (fid, row) => writers.push(new Writer(`w${writers.length}`, row, anna, fid, choose, { window: 2, pauseMs: 50 }));
	const type = (fid) => typists.push(new Typist(choose(), anna, fid, { name: `t${typists.length}`, pauseMs: 50, living: choose, open }));
	// Some sheets have editors of protocol v1, some of v2, some of both.
	for (const fid of sheets.slice(0, 4)) write(fid, 0);
	for (const fid of sheets.slice(0, 2)) write(fid, 1);
	for (const fid of sheets.slice(2)) type(fid);
	for (const fid of sheets.slice(4, 6)) type(fid);
	await progress();
	await settled();
	cluster.observe();
}

/** Names of faults: each once, then random ones. The last three, which take half a minute, are of the long form only. */
function plan() {
	const names = Object.keys(faults);
	const rounds = roundsToRun(names.length - 3, 40);
	return Array.from({ length: rounds }, (_, i) => names[i] ?? faultsRandom.choose(names));
}

if (refusal) test('faults of an ensemble', { skip: refusal }, () => {});
else {
	before(begin);
	after(async () => {
		for (const writer of writers) writer.stopping = true;
		for (const { client } of typists) client.close();
		await cluster?.stop();
	});
	test('the three gateways answer alike', answersAlike);
	for (const name of plan()) {
		test(name, async (t) => {
			t.diagnostic(`seed ${seed}`);
			const began = performance.now();
			try {
				await faults[name](t);
				assert.deepEqual(cluster.observer.faults, []);
			} finally {
				await cluster.repair();
				for (const gateway of away) if (await isReady(gateway)) away.delete(gateway);
				t.diagnostic(`${Math.round(performance.now() - began)} ms`);
			}
		});
	}
	test('nothing acknowledged is lost or stored twice, and all were told of one order', async (t) => {
		await Promise.all(writers.map((writer) => writer.stop()));
		for (const typist of typists) typist.stopping = true;
		await Promise.all(typists.map((typist) => typist.done));
		for (const { fid, client, name } of typists) await waitUntil(() => showsAll(fid, client), `${name} to show the sheet`, patienceMs, 100);
		await Promise.all(typists.map((typist) => typist.stop()));
		await cluster.stopObserving();
		for (const fid of sheets) {
			const at = (list) => list.filter((editor) => editor.fid === fid);
			await checkNothingLost(cluster, fid, at(writers), at(typists));
		}
		const edits = editors().map(({ order }) => order.length);
		assert.ok(edits.every((count) => count > 0), `each editor has written: ${edits}`);
		t.diagnostic(`${edits.reduce((sum, count) => sum + count)} edits were acknowledged`);
	});
	test('no gateway served or wrote a sheet after another one had got it', async (t) => {
		assert.deepEqual(cluster.observer.faults, []);
		t.diagnostic(`${cluster.observer.count} observations`);
		const epochs = await cluster.rows('SELECT sheet_id, first_seq, epoch FROM sheet.log_batch WHERE epoch > 0 ORDER BY 1, 2');
		for (const [i, row] of epochs.entries()) {
			const former = epochs[i - 1];
			if (former?.sheet_id === row.sheet_id) assert.ok(row.epoch >= former.epoch, `${JSON.stringify(former)}, then ${JSON.stringify(row)}`);
		}
		assert.ok(new Set(epochs.map(({ epoch }) => epoch)).size > sheets.length, 'the sheets have moved');
	});
	test('after all faults the three gateways answer alike', answersAlike);
}

/** Does the page show what the database has? */
async function showsAll(fid, client) {
	const cells = await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid})`);
	const stored = cells.map(({ row, col, content }) => [`${row},${col}`, content]).sort(([a], [b]) => (a < b ? -1 : 1));
	return JSON.stringify(gridOf(client)) === JSON.stringify(stored);
}

async function answersAlike() {
	const [first, ...others] = await Promise.all(cluster.living().map(golden));
	assert.equal(others.length, 2);
	for (const answers of others) assert.deepEqual(answers, first);
	assert.ok(first.every(([, status, text]) => status === 200 && /true/.test(text)), JSON.stringify(first));
}
