/*
 * site.mjs - for benchmarks through a gateway: where to run, settings from the environment, what processes cost.
 */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { Cluster, repository } from '../../lib/cluster.mjs';
import { runAs } from '../../lib/processes.mjs';

export function setting(name, fallback, low, high) {
	const value = Number(process.env[name] || fallback);
	if (!(value >= low && value <= high)) {
		process.stderr.write(`${name}=${process.env[name]}: must be a number from ${low} to ${high}\n`);
		process.exit(2);
	}
	return value;
}

/** Where to run: {gateway, conninfo, psql, gatewayPid, postgresPid, stop}. */
export async function place(gatewayFlags = {}) {
	const {
		PG_SHEET_URL: url,
		PG_SHEET_DATABASE: conninfo,
		PG_SHEET_GATEWAY_PID: gatewayPid,
		PG_SHEET_POSTGRES_PID: postgresPid,
	} = process.env;
	if (url && conninfo && gatewayPid && postgresPid) {
		const psql = async (sql) => {
			const { code, stdout, stderr } = await runAs('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', '-', conninfo], {
				input: sql,
				timeoutMs: 600000,
			});
			if (code !== 0) throw new Error(stderr);
			return stdout.trimEnd();
		};
		const { port, host } = new URL(url);
		return {
			gateway: { port: Number(port), host, url },
			conninfo,
			psql,
			gatewayPid: Number(gatewayPid),
			postgresPid: Number(postgresPid),
			stop: async () => {},
		};
	}
	const cluster = await Cluster.start({ gatewayFlags, postgres: { shared_buffers: '128MB', 'pg_sheet.cache_size': '128MB' } });
	const [gateway] = cluster.gateways;
	return {
		gateway,
		conninfo: cluster.conninfo(),
		psql: (sql) => cluster.psql(sql, { timeoutMs: 600000 }),
		gatewayPid: gateway.service.pid,
		postgresPid: cluster.postgres.pid,
		stop: () => cluster.stop(),
	};
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']));

/** The numbers of /proc/PID/stat behind the name, from the state on; null when the process has ended. */
function statOf(pid) {
	try {
		return fs
			.readFileSync(`/proc/${pid}/stat`, 'utf8')
			.replace(/^.*\) /s, '')
			.split(' ');
	} catch {
		return null;
	}
}

export function cpuSeconds(pid) {
	const fields = statOf(pid);
	return fields ? (Number(fields[11]) + Number(fields[12])) / ticksPerSecond : 0;
}

function childrenOf(pid) {
	return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(statOf(name)?.[1]) === pid);
}

/** CPU seconds so far of a process and its children. */
export function cpuOfTree(pid) {
	return [pid, ...childrenOf(pid)].reduce((sum, each) => sum + cpuSeconds(each), 0);
}

/** CPU seconds of all cores since the machine was started: all there were, and those that somebody used. */
export function cpuOfMachine() {
	const [user, nice, system, idle, iowait, irq, softirq, steal] = fs
		.readFileSync('/proc/stat', 'utf8')
		.split('\n')[0]
		.split(/\s+/)
		.slice(1)
		.map((ticks) => Number(ticks) / ticksPerSecond);
	const busy = user + nice + system + irq + softirq + steal;
	return { busy, all: busy + idle + iowait };
}

/** What the process holds now, kB. */
export function memoryKilobytes(pid) {
	return Number(/^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
}

/** Notes the memory of a process and its children until it is called again, which returns the most in MB. */
export function watchTree(pid) {
	let most = 0;
	const look = () => {
		const kilobytes = (each) => {
			try {
				return memoryKilobytes(each);
			} catch {
				return 0; // It has ended.
			}
		};
		most = Math.max(most, [pid, ...childrenOf(pid)].reduce((sum, each) => sum + kilobytes(each), 0));
	};
	const timer = setInterval(look, 50);
	return () => {
		clearInterval(timer);
		return Math.round(most / 1024);
	};
}

export function peakMegabytes(pid) {
	return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024);
}

/** CPU seconds so far: of the gateway, the generator, and each of PostgreSQL's processes by what it is. */
export function cpuOfAll({ gatewayPid, postgresPid }, generatorPid) {
	const usage = new Map([
		['gateway', cpuSeconds(gatewayPid)],
		['generator', cpuSeconds(generatorPid)],
	]);
	for (const name of childrenOf(postgresPid)) {
		try {
			const title = fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0/g, ' ').trim();
			const what = /^postgres: (?:\S+: )?(.*?)(?: (?:\[local\]|127\.0\.0\.1).*)?$/.exec(title)?.[1] ?? title;
			usage.set(`postgres: ${what} (${name})`, cpuSeconds(name));
		} catch {
			// It has ended.
		}
	}
	return usage;
}

/** The child does not outlive this process, if that can still do something. */
export function killAtExit(child) {
	const kill = () => child.kill('SIGKILL');
	process.once('exit', kill);
	child.once('exit', () => process.off('exit', kill));
}

/** A running generator, a program of the build or a file of JavaScript: its lines, and its input. */
export function startGenerator(program, args, env = {}) {
	const words = program.endsWith('.mjs') ? [process.execPath, program] : [path.join(repository, 'build', 'bench', program)];
	const child = spawn(words[0], [...words.slice(1), ...args.map(String)], {
		stdio: ['pipe', 'pipe', 'inherit'],
		env: { ...process.env, ...env },
	});
	const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
	const line = async () => {
		const { value, done } = await lines.next();
		if (done) throw new Error(`${program} ended early`);
		return value;
	};
	killAtExit(child);
	return { child, line, go: () => child.stdin.write('go\n'), end: () => child.stdin.end() };
}
