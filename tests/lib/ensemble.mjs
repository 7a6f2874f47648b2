/*
 * ensemble.mjs - three gateways, three ZooKeeper servers and PostgreSQL, each in a network of its own (networks.mjs), and an
 * observer who checks all the time that no gateway serves a sheet after another one has got it.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from './client.mjs';
import { Cluster, Gateway, database } from './cluster.mjs';
import { Network } from './networks.mjs';
import { giveToService, runAs, waitUntil, writePrivateFile } from './processes.mjs';
import { RawClient } from './v2.mjs';
import { withZookeeper } from './zookeeper.mjs';

export const sessionMs = 2000;
const gatewayPort = 8080;
const zookeeperPort = 2181;
const servers = [1, 2, 3];
/* How long a client waits for a gateway that does not answer. */
export const impatienceMs = 1000;

/**
 * What gateways were seen to serve: sheet, epoch and when. The epoch of a sheet grows whenever another gateway gets its lock, so
 * an epoch may not be seen at two gateways, and not be served when a higher one was seen before.
 */
class Observer {
	constructor() {
		this.seen = new Map();
		this.faults = [];
		this.count = 0;
	}

	/** The gateway was asked at `from` and has answered now. */
	note(sheet, epoch, gateway, from) {
		const epochs = this.seen.get(sheet) ?? new Map();
		this.seen.set(sheet, epochs);
		const known = epochs.get(epoch) ?? { gateway, at: performance.now() };
		epochs.set(epoch, known);
		this.count++;
		if (known.gateway !== gateway) this.faults.push(`sheet ${sheet}: ${gateway} and ${known.gateway} serve it with epoch ${epoch}`);
		for (const [higher, { gateway: other, at }] of epochs)
			if (higher > epoch && at < from)
				this.faults.push(`sheet ${sheet}: ${gateway} serves it with epoch ${epoch}, ${Math.round(from - at)} ms after ${other} did with ${higher}`);
	}
}

export class Ensemble extends Cluster {
	constructor() {
		super();
		this.network = new Network();
		for (const name of ['postgres', ...servers.map((n) => `zookeeper-${n}`), 'gateway-0', 'gateway-1', 'gateway-2', 'gateway-3'])
			this.network.add(name);
		this.zookeepers = {};
		this.zookeeperPort = zookeeperPort;
		this.zookeeperProperties = ['-Dzookeeper.preAllocSize=64']; // kB; more than the disk has would not be written to it
		this.observer = new Observer();
		this.stopped = new Set(); // paused gateways
		this.unreachable = new Set(); // those that clients cannot reach
	}

	static start(options = {}) {
		return super.start({ gateways: 3, coordinator: 'zookeeper', sessionMs, postgres: { max_connections: 150 }, ...options });
	}

	networkOf(name) {
		return this.network.enter(name);
	}

	async initializePostgres() {
		const { addresses } = this.network;
		this.settings.listen_addresses = addresses.postgres;
		await super.initializePostgres();
		fs.appendFileSync(path.join(this.directory, 'data', 'pg_hba.conf'), 'host all all 10.9.0.0/16 trust\n');
		this.session = this.psqlSession();
		this.former = Promise.resolve();
		await this.psql('SELECT pg_reload_conf()');
		const token = path.join(this.directory, 'operator');
		writePrivateFile(token, `operator-${'0123456789'.repeat(4)}\n`); // commands come from another machine
		this.gatewayFlags = {
			'admin-token-file': token,
			database: `host=${addresses.postgres} user=gateway dbname=${database}`,
			'zookeeper-hosts': servers.map((n) => `${addresses[`zookeeper-${n}`]}:${zookeeperPort}`).join(),
			'admin-networks': '10.9.0.0/16',
			'attempts-per-address': 0,
			...this.gatewayFlags,
		};
	}

	/** By one psql that stays open: starting it takes longer than most queries. */
	psql(sql) {
		if (!this.session) return super.psql(sql);
		const answer = this.former.then(() => this.session.query(sql));
		this.former = answer.catch(() => {});
		return answer;
	}

	/* ---- ZooKeeper ---- */

	async startZookeeper() {
		for (const n of servers) {
			const data = this.zookeeperData(n);
			fs.mkdirSync(data);
			execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', data]);
			fs.writeFileSync(path.join(data, 'myid'), `${n}\n`);
			for (const file of [data, path.join(data, 'myid')]) giveToService(file);
			this.spawnServer(n);
		}
		await this.zookeeperIsBack(...servers);
	}

	/** Its disk: a small file system in memory, which vanishes with the namespace. */
	zookeeperData(n) {
		return `/run/zookeeper-${n}`;
	}

	spawnServer(n) {
		const address = (other) => this.network.addresses[`zookeeper-${other}`];
		const lines = [
			...['initLimit=20', 'syncLimit=4', `clientPort=${zookeeperPort}`, `clientPortAddress=${address(n)}`],
			...servers.map((other) => `server.${other}=${address(other)}:2888:3888`),
		];
		this.zookeepers[n] = this.spawnZookeeper(`zookeeper-${n}`, lines, this.zookeeperData(n));
	}

	async startServers(...numbers) {
		for (const n of numbers) this.spawnServer(n);
		await this.zookeeperIsBack(...numbers);
	}

	/** Leader, follower or undefined. */
	async zookeeperMode(n) {
		const answer = await this.zookeeperCommand('srvr', this.network.addresses[`zookeeper-${n}`]).catch(() => '');
		return /^Mode: (\w+)/m.exec(answer)?.[1];
	}

	async zookeeperIsBack(...numbers) {
		for (const n of numbers) await this.zookeepers[n].waitReady(() => this.zookeeperMode(n), 60000);
	}

	async zookeeperLeader() {
		return waitUntil(async () => {
			for (const n of servers) if ((await this.zookeeperMode(n)) === 'leader') return n;
			return null;
		}, 'a leader', 30000);
	}

	/** Takes the last byte of the server's disk. */
	fillDisk(n) {
		this.logBefore = fs.statSync(this.zookeepers[n].log).size;
		const file = fs.openSync(path.join(this.zookeeperData(n), 'filler'), 'a');
		try {
			for (let size = 1 << 16; size >= 1; size >>= 4) {
				for (;;) if (!this.writeAll(file, Buffer.alloc(size))) break;
			}
		} finally {
			fs.closeSync(file);
		}
	}

	/** False: the disk is full. */
	writeAll(file, bytes) {
		try {
			return fs.writeSync(file, bytes) > 0;
		} catch (error) {
			if (error.code === 'ENOSPC') return false;
			throw error;
		}
	}

	hasFoundDiskFull(n) {
		return fs.readFileSync(this.zookeepers[n].log).includes('No space left on device', this.logBefore);
	}

	freeDisk(n) {
		fs.unlinkSync(path.join(this.zookeeperData(n), 'filler'));
	}

	/** The holders of sheets' locks, by ZooKeeper: sheet to {holder, epoch}. */
	async locks() {
		const n = await this.zookeeperLeader();
		return withZookeeper({ host: this.network.addresses[`zookeeper-${n}`], port: zookeeperPort }, async ({ children, read }) => {
			const locks = new Map();
			for (const sheet of await children('/pg_sheet/locks')) {
				const nodes = (await children(`/pg_sheet/locks/${sheet}`)).sort((a, b) => a.slice(-10).localeCompare(b.slice(-10)));
				if (nodes.length === 0) continue;
				const { text, czxid } = await read(`/pg_sheet/locks/${sheet}/${nodes[0]}`);
				locks.set(Number(sheet.replace(/\D/g, '')), { holder: text, epoch: czxid });
			}
			return locks;
		});
	}

	/* ---- gateways ---- */

	async addGateway(flags = {}) {
		const index = this.gateways.length;
		const gateway = new Gateway(this, index, gatewayPort, this.network.addresses[`gateway-${index}`]);
		gateway.network = `gateway-${index}`;
		this.gateways.push(gateway);
		await gateway.start(flags);
		return gateway;
	}

	/** All links work, no gateway is paused. */
	restore() {
		this.network.heal();
		this.unreachable.clear();
		for (const gateway of this.stopped) gateway.service.signal('SIGCONT');
		this.stopped.clear();
	}

	/** All is as in the beginning, also after a fault whose test has failed before it was mended. */
	async repair() {
		this.restore();
		for (const n of servers) {
			fs.rmSync(path.join(this.zookeeperData(n), 'filler'), { force: true });
			if (!this.zookeepers[n].alive) await this.startServers(n);
		}
		if (this.gateways[3]?.service.alive) await this.gateways[3].stop();
		for (const gateway of this.gateways.slice(0, 3)) {
			const { alive, stopping } = gateway.service; // one that has ended by itself remains: see living()
			if (!alive && stopping) await gateway.start({}, { ready: '/readyz' });
		}
	}

	/** None has ended by itself. */
	living() {
		for (const { host, service } of this.gateways) {
			if (!service.alive && !service.stopping) throw new Error(`the gateway ${host} ended with ${JSON.stringify(service.exit)}\n${service.logTail()}`);
		}
		return this.gateways.filter((gateway) => gateway.service.alive && !this.stopped.has(gateway));
	}

	/** What clients may try: a load balancer knows as much. */
	reachable() {
		return this.living().filter((gateway) => !this.unreachable.has(gateway));
	}

	/** The rooms in which a gateway serves: sheet to epoch; null if it does not answer. */
	async serving(gateway) {
		const from = performance.now();
		const answer = await request(gateway.admin, 'GET', '/debug', { timeoutMs: impatienceMs }).catch(() => null);
		if (answer?.status !== 200) return null;
		const rooms = answer.json.first_rooms.filter(({ state }) => state === 'serving');
		for (const { sheet, epoch } of rooms) this.observer.note(sheet, epoch, gateway.host, from);
		return new Map(rooms.map(({ sheet, epoch }) => [sheet, epoch]));
	}

	observe() {
		this.observing = true;
		this.observed = Promise.all(
			[0, 1, 2, 3].map(async (index) => {
				while (this.observing) {
					const gateway = this.gateways[index];
					if (gateway?.service?.alive) await this.serving(gateway);
					await sleep(100);
				}
			}),
		);
	}

	async stopObserving() {
		this.observing = false;
		await this.observed;
	}

	/** Comes to a sheet as an editor of protocol v2 who tries gateways at random until one serves it; resolves to that gateway. */
	async enter(fid, user, random, timeoutMs = 60000) {
		const end = performance.now() + timeoutMs;
		let gateway = null;
		let problem = 'no gateway';
		while (performance.now() < end) {
			gateway ??= random.choose(this.reachable());
			const from = performance.now();
			const client = new RawClient(gateway, fid, { timeoutMs: impatienceMs });
			try {
				await client.opened;
				client.send({ t: 'hello', v: 2, token: user.token, client: 0, acked: 0, since: 0 });
				await waitUntil(() => client.closed || client.messages.length > 0, 'an answer', impatienceMs, 2);
			} catch (error) {
				problem = error.message;
			}
			const [hello] = client.messages;
			client.terminate();
			if (hello?.t === 'hello') {
				this.observer.note(fid, hello.epoch, gateway.host, from);
				return gateway;
			}
			problem = client.closed ? `${client.closed.code} ${client.closed.reason}` : problem;
			const host = client.closed?.code === 4307 ? new URL(JSON.parse(client.closed.reason).ws).host : null;
			gateway = this.gateways.find((candidate) => candidate.host === host) ?? null;
			if (!gateway) await sleep(20);
		}
		throw new Error(`nobody serves sheet ${fid} for ${timeoutMs} ms; last: ${problem}`);
	}

	/** Waits until each sheet is served by one gateway, whom all name and who has its lock. away: may be missing from the ring. */
	async settled(fids, user, away = new Set()) {
		let problem;
		const agreed = async () => {
			problem = await this.disagreement(fids, user, away);
			return !problem;
		};
		await waitUntil(agreed, () => `the gateways to agree: ${problem}`, 90000, 100);
	}

	async disagreement(fids, user, away) {
		const living = this.living();
		const rooms = new Map();
		for (const gateway of living) {
			const { status, text, json } = await request(gateway, 'GET', '/healthz', { timeoutMs: impatienceMs });
			if (!json?.database || !json.coordination || (status !== 200 && !away.has(gateway))) return `${gateway.host} is not ready: ${text}`;
			rooms.set(gateway, await this.serving(gateway));
			if (!rooms.get(gateway)) return `${gateway.host} does not answer`;
		}
		const ofSheets = await Promise.all(fids.map((fid) => this.disagreementOfSheet(fid, user, living, rooms)));
		return ofSheets.find(Boolean) ?? this.disagreementOfLocks(fids, living, rooms);
	}

	async disagreementOfSheet(fid, user, living, rooms) {
		const owners = living.filter((gateway) => rooms.get(gateway).has(fid));
		if (owners.length !== 1) return `sheet ${fid} is served by ${owners.length} gateways`;
		for (const gateway of living) {
			const named = await this.route(gateway, fid, user);
			// A sheet with editors of protocol v1 stays where it is. The ring's owner sends newcomers on.
			if (named !== owners[0] && (!named || (await this.sendsTo(named, fid, user)) !== owners[0]))
				return `${gateway.host} names ${named?.host} for sheet ${fid}, served by ${owners[0].host}`;
		}
		return null;
	}

	/** The gateway to which this one sends clients of the sheet. */
	async route(gateway, fid, user) {
		const headers = { authorization: `Bearer ${user.token}` };
		const { json } = await request(gateway, 'GET', `/v2/sheets/${fid}/route`, { headers, timeoutMs: impatienceMs });
		return this.gateways.find(({ host }) => json?.ws === `ws://${host}/sheetws`);
	}

	/** The gateway to which this one sends newcomers of protocol v1; undefined: it serves them. */
	async sendsTo(gateway, fid, user) {
		const { json } = await request(gateway, 'GET', `/sheetws?token=${user.token}&fid=${fid}&query=1`, { timeoutMs: impatienceMs });
		return json?.msg === 19 ? this.gateways.find(({ host }) => new URL(json.data).host === host) : undefined;
	}

	async disagreementOfLocks(fids, living, rooms) {
		const locks = await this.locks();
		const stored = await this.rows(`SELECT sheet_id, epoch FROM sheet.ownership WHERE sheet_id IN (${fids.join()})`);
		const epochs = new Map(stored.map((row) => [row.sheet_id, row.epoch]));
		for (const fid of fids) {
			const owner = living.find((gateway) => rooms.get(gateway).has(fid));
			const epoch = rooms.get(owner).get(fid);
			const { holder, epoch: made } = locks.get(fid) ?? {};
			if (holder !== owner.host || made !== epoch) return `sheet ${fid}: ${owner.host} serves with epoch ${epoch}, ${holder} has the lock ${made}`;
			if (epochs.get(fid) !== epoch) return `sheet ${fid}: epoch ${epoch}, and ${epochs.get(fid)} in sheet.ownership`;
		}
		return null;
	}

	/** pg_sheet_gateway drain HOST:PORT and its like. */
	async command(...words) {
		const { code, stderr, stdout } = await runAs(this.gatewayBinary, [...words, ...this.gateways[0].arguments()], { timeoutMs: 60000 });
		assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
		return stdout;
	}

	async stop() {
		this.restore();
		await this.stopObserving();
		await Promise.all(this.gateways.map((gateway) => gateway.service?.stop()));
		await Promise.all(Object.values(this.zookeepers).map((server) => server.stop('SIGKILL')));
		await this.session?.close();
		await super.stop();
	}
}
