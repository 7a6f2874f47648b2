/*
 * coord.mjs - the coordination of gateways on its own, for tests: tests/unit/coord_probe.c is a gateway's coordination
 * without the gateway, which prints events and takes commands. A TCP proxy in front of ZooKeeper cuts connections at the
 * worst moment: after a request has arrived and before its answer.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Cluster, repository, waitUntil } from './cluster.mjs';
import { giveToService, makeDirectory, removeDirectory } from './processes.mjs';
import { withZookeeper } from './zookeeper.mjs';

export const sessionMs = 3000;
export const zookeeper = new Cluster();
let binary;
let nextSheet = 1000;
let nextPort = 10000;
const probes = new Set();

const rivals = {
	members: ['python3', ['rival.py', 'members']],
	kazoo: ['python3', ['rival.py', 'kazoo']],
	'the recipe in C': ['python3', ['rival.py', 'c']],
	Curator: [
		'java',
		[
			'-Xmx64m',
			'-XX:TieredStopAtLevel=1',
			'-cp',
			['curator-client', 'curator-framework', 'curator-recipes', 'zookeeper', 'guava', 'slf4j-nop', 'bsh']
				.map((jar) => `/usr/share/java/${jar}.jar`)
				.join(':'),
			'bsh.Interpreter',
			'rival_curator.bsh',
		],
	],
};
export class Probe {
	constructor(kind, member, { weight = 1, target, root = '/pg_sheet', session = sessionMs } = {}) {
		this.member = member;
		this.events = [];
		this.seen = 0;
		this.child = spawn(
			binary,
			[kind, member, String(weight), target ?? `127.0.0.1:${zookeeper.zookeeperPort}`, root, String(session)],
			{
				stdio: ['pipe', 'pipe', 'pipe'],
			},
		);
		this.partial = '';
		this.stderr = '';
		this.child.stdout.on('data', (data) => {
			const lines = (this.partial + data).split('\n');
			this.partial = lines.pop();
			for (const text of lines) this.events.push({ text, at: performance.now() });
		});
		this.child.stderr.on('data', (data) => (this.stderr += data));
		this.child.stdin.on('error', () => {});
		this.ended = new Promise((resolve) => this.child.on('exit', (code, signal) => resolve(code ?? signal)));
		probes.add(this);
	}

	get texts() {
		return this.events.map((event) => event.text);
	}

	tell(command) {
		this.child.stdin.write(`${command}\n`);
	}

	/** The next event, after those that were already waited for, that begins with the words; what came between is skipped. */
	async next(words, timeoutMs = 30000) {
		let found;
		await waitUntil(
			() => {
				for (; this.seen < this.events.length; this.seen++) {
					const event = this.events[this.seen];
					if (event.text === words || event.text.startsWith(`${words} `)) {
						found = event;
						this.seen++;
						return true;
					}
				}
				return false;
			},
			() => `"${words}" from ${this.member}; it said:\n${this.texts.join('\n')}\n${this.stderr}`,
			timeoutMs,
			5,
		);
		return found;
	}

	/** Everything told from now on, for the absence of something. */
	mark() {
		this.seen = this.events.length;
		return this.seen;
	}

	since(mark) {
		return this.texts.slice(mark);
	}

	async acquire(sheet, timeoutMs) {
		this.tell(`acquire ${sheet}`);
		return this.granted(sheet, timeoutMs);
	}

	/** The epoch of the grant. */
	async granted(sheet, timeoutMs) {
		return Number((await this.next(`granted ${sheet}`, timeoutMs)).text.split(' ')[2]);
	}

	/** The epoch of the grant that came behind `i` others of the sheet. */
	grantNumber(i, sheet) {
		const wanted = new RegExp(`^granted ${sheet} (\\d+)$`);
		return waitUntil(
			() => {
				const all = this.texts.map((text) => wanted.exec(text)).filter(Boolean);
				return all.length > i && Number(all[i][1]);
			},
			() => `grant ${i} of sheet ${sheet} to ${this.member}\n${this.texts.slice(-20).join('\n')}`,
			30000,
			2,
		);
	}

	async owners(count) {
		this.tell(`owners ${count}`);
		return (await this.next('owners')).text.split(' ').slice(1);
	}

	members() {
		return (
			this.texts
				.findLast((text) => text.startsWith('members'))
				?.split(' ')
				.slice(1) ?? []
		);
	}

	/** Ends it in the ordinary way; it must leave nothing on its loop and no leak. */
	async close() {
		if (this.child.exitCode === null && this.child.signalCode === null) this.child.stdin.end('close\n');
		const code = await this.ended;
		probes.delete(this);
		assert.equal(code, 0, `${this.member} ended with ${code}\n${this.texts.join('\n')}\n${this.stderr}`);
	}

	async kill() {
		this.child.kill('SIGKILL');
		await this.ended;
		probes.delete(this);
	}
}

/** Another program that uses ZooKeeper: lib/rival.py or lib/rival_curator.bsh. */
export class Rival {
	constructor(kind, port = zookeeper.zookeeperPort) {
		const [program, args] = rivals[kind];
		this.answers = [];
		probes.add(this);
		this.stderr = '';
		this.child = spawn(program, [...args, `127.0.0.1:${port}`], {
			cwd: path.join(repository, 'tests', 'lib'),
			stdio: ['pipe', 'pipe', 'pipe'],
		});
		this.ended = new Promise((resolve) => this.child.on('exit', resolve));
		this.child.stdin.on('error', () => {});
		this.child.stderr.on('data', (data) => (this.stderr += data));
		let partial = '';
		this.child.stdout.on('data', (data) => {
			const lines = (partial + data).split('\n');
			partial = lines.pop();
			this.answers.push(...lines);
		});
	}

	tell(command) {
		this.child.stdin.write(`${command}\n`);
	}

	async answer(wanted) {
		await waitUntil(() => this.answers.length > 0 || this.child.exitCode !== null, () => `"${wanted}"\n${this.stderr}`, 60000, 2);
		assert.equal(this.answers.shift(), wanted, this.stderr);
	}

	async kill() {
		this.child.kill('SIGKILL');
		await this.ended;
		probes.delete(this);
	}

	/** Ends it in the ordinary way: its session ends at once. */
	async end() {
		this.child.stdin.end();
		await this.ended;
		probes.delete(this);
	}
}

/** Waits until each of the probes gives sheets to all of them. A newcomer is ready before the others count on it. */
export async function untilInRing(...group) {
	for (const probe of group)
		await waitUntil(async () => {
			const owners = await probe.owners(1000);
			return group.every(({ member }) => owners.includes(member));
		}, 'all members to own sheets');
}

/** Probes that are ready and know one another. */
export async function start(count, options = {}) {
	const group = Array.from({ length: count }, () => new Probe('zookeeper', newName(), options));
	for (const probe of group) await probe.next('ready');
	await waitUntil(() => group.every((probe) => probe.members().length === count), () => `all members\n${group.map((probe) => probe.texts.join('; ')).join('\n')}`);
	await untilInRing(...group);
	return group;
}

/** Ends probes. */
export const stop = (...group) => Promise.all(group.map((probe) => probe.close()));

export const newSheet = () => ++nextSheet;
/* Nobody listens there: a name is all that coordination needs. */
export const newName = () => `127.0.0.1:${++nextPort}`;
export const nodeCount = async () => Number(/zk_znode_count\s+(\d+)/.exec(await zookeeper.zookeeperCommand('mntr'))[1]);

/** The number of nodes when the locks of earlier tests have gone: the server removes their empty parents after a while. */
export async function quietNodeCount() {
	const locks = () => withZookeeper({ port: zookeeper.zookeeperPort }, ({ children }) => children('/pg_sheet/locks'));
	await waitUntil(async () => (await locks()).length === 0, 'no locks', 30000, 50);
	return nodeCount();
}

/** What an administrator does with zkCli.sh: deletes a node. */
export const removeNode = (path) => withZookeeper({ port: zookeeper.zookeeperPort }, ({ remove }) => remove(path));

/** Between a probe and ZooKeeper. */
export class Proxy {
	static async start() {
		const proxy = new Proxy();
		proxy.links = new Set();
		proxy.mode = 'pass';
		proxy.cuts = 0;
		proxy.server = net.createServer((client) => proxy.link(client)).unref(); // a forgotten one must not hold the run up
		await new Promise((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
		proxy.address = `127.0.0.1:${proxy.server.address().port}`;
		return proxy;
	}

	link(client) {
		if (this.mode === 'refuse') return client.destroy();
		if (this.mode === 'mute') return void client.on('error', () => {}).resume(); // for ever: who comes later is answered
		const server = net.connect(zookeeper.zookeeperPort, '127.0.0.1');
		const link = { client, server, deaf: false };
		const end = () => {
			client.destroy();
			server.destroy();
			this.links.delete(link);
		};
		this.links.add(link);
		if (this.mode === 'stall') this.pause(link);
		for (const socket of [client, server]) socket.on('error', end).on('close', end);
		client.on('data', (data) => {
			if (this.mode === 'hole') return;
			server.write(data);
			/* a request other than a heartbeat's and a ping's short ones: it arrives, its answer does not */
			if (this.cutNext && data.length > 40) {
				this.cutNext = false;
				this.cuts++;
				link.deaf = true;
				setTimeout(end, 30);
			}
		});
		server.on('data', (data) => {
			if (this.mode !== 'hole' && !link.deaf) client.write(data);
		});
	}

	pause({ client, server }) {
		client.pause();
		server.pause();
	}

	/** Like a server that is stopped: what it is sent arrives when it continues, also by connections that have been closed. */
	stall() {
		this.mode = 'stall';
		for (const link of this.links) this.pause(link);
	}

	proceed() {
		this.mode = 'pass';
		for (const { client, server } of this.links) {
			client.resume();
			server.resume();
		}
	}

	cutAll() {
		for (const link of [...this.links]) link.client.destroy();
	}

	/** After all who use it were ended: what they sent last, as the end of their session, must arrive. */
	async stop() {
		await waitUntil(() => this.links.size === 0, 'the last connection of a proxy to end');
		await new Promise((resolve) => this.server.close(resolve));
	}
}

/** Builds the probe and starts ZooKeeper. sweepMs: how often the server removes empty containers; its default is a minute. */
export async function prepare({ sweepMs = 60000 } = {}) {
	zookeeper.zookeeperProperties = [`-Dznode.container.checkIntervalMs=${sweepMs}`];
	zookeeper.directory = makeDirectory(path.join(os.tmpdir(), 'coord-'));
	fs.mkdirSync(path.join(zookeeper.directory, 'log'));
	giveToService(path.join(zookeeper.directory, 'log'));
	const build = path.join(zookeeper.directory, 'build');
	execFileSync('make', ['-s', '-C', path.join(repository, 'tests', 'unit'), `BUILD=${build}`, 'coord_probe'], {
		stdio: ['ignore', 'inherit', 'inherit'],
	});
	binary = path.join(build, 'coord_probe');
	await zookeeper.startZookeeper();
}

/** Ends the probes that a failed test has left. */
export const killProbes = () => Promise.all([...probes].map((probe) => probe.kill()));

/** Ends ZooKeeper and removes the directory. */
export async function finish() {
	await zookeeper.zookeeper?.stop('SIGKILL');
	removeDirectory(zookeeper.directory);
}
