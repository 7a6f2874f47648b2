/*
 * networks.mjs - a network of its own for each server of a test, in which links can be cut, also in one direction.
 *
 *     const refusal = await runInNamespace(import.meta.url); // first of all in a test file
 *     const network = new Network();
 *     network.add('gateway-0');                              // then Service.spawn(..., { prefix: network.enter('gateway-0') })
 *     network.cut('gateway-0', 'zookeeper-1');               // packets in this direction are dropped
 *     network.heal();
 *
 * The test file runs a second time, in a user namespace with a network and mounts of its own (as root: without the user
 * namespace), so it needs no rights on the machine, and all vanishes with its last process. There a router connects the
 * networks, each a pair of virtual Ethernet devices. The test itself is the node `clients`. A cut link is a rule of the
 * router that drops packets without an answer.
 */
import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const mark = 'PG_SHEET_NETWORKS';
const router = 'router';
const range = '10.9.0.0/16';

const ip = (lines, prefix = []) => {
	const words = [...prefix, 'ip', '-batch', '-'];
	execFileSync(words[0], words.slice(1), { input: `${lines.join('\n')}\n`, stdio: ['pipe', 'pipe', 'pipe'] });
};

/**
 * Runs the test file in a namespace, and ends this process with its exit status. Returns undefined in the namespace. Where the
 * system permits none, returns why.
 */
export async function runInNamespace(url) {
	process.env.PATH += ':/usr/sbin:/sbin';
	if (process.env[mark]) return undefined;
	const user = process.getuid() === 0 ? [] : ['--user', '--map-current-user', '--keep-caps'];
	const words = ['unshare', ...user, '--net', '--mount'];
	const probe = `new (await import(${JSON.stringify(import.meta.url)})).Network().add('probe')`;
	try {
		execFileSync(words[0], [...words.slice(1), process.execPath, '--input-type=module', '-e', probe], { stdio: 'pipe' });
	} catch (error) {
		return `namespaces or virtual Ethernet devices are not permitted here: ${(error.stderr?.toString().trim() || error.message).split('\n').at(-1)}`;
	}
	const inner = [...words.slice(1), 'setpriv', '--pdeathsig', 'TERM', process.execPath, ...process.execArgv, fileURLToPath(url)];
	const child = spawn(words[0], inner, { stdio: 'inherit', env: { ...process.env, [mark]: '1' } });
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
	const code = await new Promise((resolve) => child.on('exit', (status) => resolve(status ?? 1)));
	process.exit(code);
}

export class Network {
	constructor() {
		this.addresses = {};
		this.rules = new Set();
		execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', '/run']); // where ip keeps the names of networks
		ip(['link set lo up', `netns add ${router}`]);
		execFileSync('nsenter', [...this.enter(router).slice(1), 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward']);
		this.add('clients');
	}

	/** The words that run a command in the network of a node. */
	enter(name) {
		return name === 'clients' ? [] : ['nsenter', `--net=/run/netns/${name}`];
	}

	/** A node with an address, which is returned. */
	add(name) {
		const number = Object.keys(this.addresses).length;
		const [here, there] = [`10.9.${number}.2`, `10.9.${number}.1`];
		const device = `veth${number}`;
		if (name !== 'clients') ip([`netns add ${name}`]);
		ip([
			`link add ${device} type veth peer name peer${number}`,
			`link set dev peer${number} netns ${router}`,
			...(name === 'clients' ? [] : [`link set dev ${device} netns ${name}`]),
		]);
		ip([`addr add ${there}/24 dev peer${number}`, `link set dev peer${number} up`], this.enter(router));
		ip(
			['link set lo up', `addr add ${here}/24 dev ${device}`, `link set dev ${device} up`, `route add ${range} via ${there}`],
			this.enter(name),
		);
		this.addresses[name] = here;
		return here;
	}

	/** Drops packets from each node whose name begins with `from` to each whose name begins with `to`. */
	cut(from, to) {
		const those = (start) => Object.keys(this.addresses).filter((name) => name.startsWith(start));
		const rules = those(from).flatMap((one) => those(to).map((other) => `from ${this.addresses[one]} to ${this.addresses[other]} blackhole`));
		const added = rules.filter((rule) => !this.rules.has(rule));
		ip(added.map((rule) => `rule add ${rule}`), this.enter(router));
		for (const rule of added) this.rules.add(rule);
	}

	/** Drops packets in both directions. */
	part(one, other) {
		this.cut(one, other);
		this.cut(other, one);
	}

	/** All links work again. */
	heal() {
		ip([...this.rules].map((rule) => `rule del ${rule}`), this.enter(router));
		this.rules.clear();
	}
}
