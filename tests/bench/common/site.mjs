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

/** Where to run: {gateway, psql, gatewayPid, postgresPid, stop}. */
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
		psql: (sql) => cluster.psql(sql, { timeoutMs: 600000 }),
		gatewayPid: gateway.service.pid,
		postgresPid: cluster.postgres.pid,
		stop: () => cluster.stop(),
	};
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']));

export function cpuSeconds(pid) {
	try {
		const fields = fs
			.readFileSync(`/proc/${pid}/stat`, 'utf8')
			.replace(/^.*\) /s, '')
			.split(' ');
		return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
	} catch {
		return 0;
	}
}

/** What the process holds now, kB. */
export function memoryKilobytes(pid) {
	return Number(/^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
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
	for (const name of fs.readdirSync('/proc')) {
		if (!/^\d+$/.test(name)) continue;
		try {
			const parent = Number(
				fs
					.readFileSync(`/proc/${name}/stat`, 'utf8')
					.replace(/^.*\) /s, '')
					.split(' ')[1],
			);
			if (parent !== postgresPid) continue;
			const title = fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0/g, ' ').trim();
			const what = /^postgres: (?:\S+: )?(.*?)(?: (?:\[local\]|127\.0\.0\.1).*)?$/.exec(title)?.[1] ?? title;
			usage.set(`postgres: ${what} (${name})`, cpuSeconds(name));
		} catch {
			// It has ended.
		}
	}
	return usage;
}

/** A running generator: its lines, and its input. */
export function startGenerator(program, args) {
	const child = spawn(path.join(repository, 'build', 'bench', program), args.map(String), {
		stdio: ['pipe', 'pipe', 'inherit'],
	});
	const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
	const line = async () => {
		const { value, done } = await lines.next();
		if (done) throw new Error(`${program} ended early`);
		return value;
	};
	process.on('exit', () => child.kill('SIGKILL'));
	return { child, line, go: () => child.stdin.write('go\n'), end: () => child.stdin.end() };
}
