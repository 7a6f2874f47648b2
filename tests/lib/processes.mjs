/*
 * processes.mjs - starts and ends the processes of a test: as the user postgres when the tests run as root (PostgreSQL
 * refuses root), each in a process group of its own, and none outlives the test, however that ends.
 *
 * Three nets, one below the other: stop() of whoever started it; the exit handler here, which kills the groups that are
 * left (also after SIGINT, SIGTERM and an uncaught error); and the kernel, which signals the child when this process was
 * killed with -9 (setpriv --pdeathsig).
 */
import { spawn, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export const asRoot = process.getuid() === 0;
const serviceUser = asRoot ? 'postgres' : null;
const running = new Set();
const directories = new Set();

/** How often a test does what has no end of its own: `short` in make check, `long` in make check-long, ROUNDS if it is set. */
export const roundsToRun = (short, long) => Number(process.env.ROUNDS ?? (process.env.LONG ? long : short));

/** Waits until probe() gives something true, and returns that; what names it in the error. */
export async function waitUntil(probe, what, timeoutMs = 30000, everyMs = 20) {
	const end = Date.now() + timeoutMs;
	let problem;
	for (;;) {
		try {
			const value = await probe();
			if (value) return value;
			problem = undefined;
		} catch (error) {
			problem = error;
		}
		if (Date.now() > end) {
			const detail = typeof what === 'function' ? await what() : what;
			throw new Error(`waited ${timeoutMs} ms for ${detail}${problem ? `; last: ${problem.message}` : ''}`);
		}
		await sleep(everyMs);
	}
}

function serviceWords(deathSignal) {
	const words = ['setpriv'];
	if (serviceUser) words.push(`--reuid=${serviceUser}`, `--regid=${serviceUser}`, '--init-groups');
	if (deathSignal) words.push('--pdeathsig', deathSignal.replace('SIG', ''));
	return words;
}

function serviceEnvironment(extra) {
	return {
		PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
		LANG: 'C.UTF-8',
		LC_ALL: 'C.UTF-8',
		HOME: '/tmp',
		...extra,
	};
}

/** Is there a process of this number? */
export function isAlive(pid) {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

/** Signals processes; one that has ended meanwhile needs none. */
export function signalAll(pids, signal) {
	for (const pid of pids) {
		try {
			process.kill(pid, signal);
		} catch (error) {
			if (error.code !== 'ESRCH') throw error;
		}
	}
}

/** A long-running process; its output goes to a log file. */
export class Service {
	/** deathSignal: what the kernel sends it when this process dies. prefix: a command that runs the rest (Network.enter()). */
	static spawn(name, command, args, { log, env = {}, cwd = '/', deathSignal = 'SIGKILL', prefix = [] }) {
		const service = new Service();
		const out = fs.openSync(log, 'a');
		const words = [...prefix, ...serviceWords(deathSignal), command, ...args];
		service.name = name;
		service.log = log;
		service.exit = null;
		service.stopping = false; // by the test
		service.deathSignal = deathSignal;
		service.child = spawn(words[0], words.slice(1), {
			env: serviceEnvironment(env),
			stdio: ['ignore', out, out],
			detached: true,
			cwd,
		});
		fs.closeSync(out);
		service.ended = new Promise((resolve) => {
			const finish = (code, signal) => {
				service.exit ??= { code, signal };
				running.delete(service);
				resolve(service.exit);
			};
			service.child.on('exit', finish);
			service.child.on('error', (error) => finish(error.code, null));
		});
		running.add(service);
		return service;
	}

	get pid() {
		return this.child.pid;
	}

	get alive() {
		return this.exit === null;
	}

	logTail(lines = 25) {
		try {
			return fs.readFileSync(this.log, 'utf8').split('\n').slice(-lines).join('\n');
		} catch {
			return '';
		}
	}

	/** Until the probe succeeds; fails with the end of the log when the process ends before or time runs out. */
	async waitReady(probe, timeoutMs = 60000) {
		const ready = async () => {
			if (!this.alive) throw new Error(`ended with ${JSON.stringify(this.exit)}`);
			return probe();
		};
		const end = Date.now() + timeoutMs;
		for (;;) {
			let problem;
			try {
				if (await ready()) return;
			} catch (error) {
				problem = error;
			}
			if (!this.alive || Date.now() > end) {
				throw new Error(
					`${this.name} did not start: ${problem?.message ?? 'no answer'}\n--- end of ${this.log}\n${this.logTail()}`,
				);
			}
			await sleep(20);
		}
	}

	signal(signal) {
		if (this.alive) process.kill(this.pid, signal);
	}

	signalGroup(signal) {
		try {
			process.kill(-this.pid, signal);
		} catch {
			// The group is gone already.
		}
	}

	/** Signals it and waits for its end; kills the whole group when it takes too long. */
	async stop(signal = 'SIGTERM', timeoutMs = 60000) {
		this.stopping = true;
		if (this.alive) {
			this.signal('SIGCONT');
			this.signal(signal);
			const late = Symbol('late');
			const first = await Promise.race([this.ended, sleep(timeoutMs, late, { ref: false })]);
			if (first === late) process.stderr.write(`# ${this.name} ignored ${signal} for ${timeoutMs} ms: killed\n`);
		}
		this.signalGroup('SIGKILL');
		return this.ended;
	}

	/** kill -9, now. */
	async kill() {
		this.stopping = true;
		this.signalGroup('SIGKILL');
		return this.ended;
	}
}

/** Runs a command to its end as the service user; resolves to {code, stdout, stderr}. */
export function runAs(command, args, { input, env = {}, timeoutMs = 60000 } = {}) {
	return new Promise((resolve, reject) => {
		const words = [...serviceWords('SIGKILL'), command, ...args];
		const child = spawn(words[0], words.slice(1), {
			env: serviceEnvironment(env),
			cwd: '/',
			timeout: timeoutMs,
			killSignal: 'SIGKILL',
		});
		const out = [];
		const err = [];
		child.stdout.on('data', (data) => out.push(data));
		child.stderr.on('data', (data) => err.push(data));
		child.on('error', reject);
		child.on('close', (code, signal) =>
			resolve({ code, signal, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }),
		);
		child.stdin.on('error', () => {});
		child.stdin.end(input ?? '');
	});
}

/** Runs a command to its end; throws with its output when it fails. */
export async function mustRunAs(command, args, options) {
	const result = await runAs(command, args, options);
	if (result.code !== 0) {
		throw new Error(
			`${command} ${args.join(' ')}: exit ${result.code ?? result.signal}\n${result.stdout}${result.stderr}`,
		);
	}
	return result.stdout;
}

export function makeDirectory(prefix) {
	const directory = fs.mkdtempSync(prefix);
	directories.add(directory);
	giveToService(directory);
	fs.chmodSync(directory, 0o700);
	return directory;
}

export function removeDirectory(directory) {
	directories.delete(directory);
	if (process.env.KEEP) process.stderr.write(`# kept ${directory}\n`);
	else fs.rmSync(directory, { recursive: true, force: true });
}

let serviceIds;
/** Makes a file or directory the service user's own. */
export function giveToService(path) {
	if (!asRoot) return;
	serviceIds ??= ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, serviceUser])));
	fs.chownSync(path, ...serviceIds);
}

/** A file that only the service user may read. */
export function writePrivateFile(path, text) {
	fs.writeFileSync(path, text, { mode: 0o600 });
	giveToService(path);
}

/*
 * Ports: one of TEST_PORTS=FIRST-LAST, or of some below those that the kernel gives to outgoing connections and to whoever asks for
 * any port, so that a gateway which is started again finds its own free.
 */
const given = new Set();
const usualPorts = '16000-31999';

function portIsFree(port) {
	return new Promise((resolve) => {
		const server = net.createServer();
		server.once('error', () => resolve(false));
		server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
	});
}

export async function freePort() {
	const range = process.env.TEST_PORTS ?? usualPorts;
	const [first, last] = range.split('-').map(Number);
	const count = last - first + 1;
	const start = Math.floor(Math.random() * count);
	for (let i = 0; i < count; i++) {
		const port = first + ((start + i) % count);
		if (!given.has(port) && (await portIsFree(port))) {
			given.add(port);
			return port;
		}
	}
	throw new Error(`no free port in ${range}`);
}

function processIsGone(pid) {
	try {
		return /^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
	} catch {
		return true;
	}
}

/* The exit handler cannot await: it polls. PostgreSQL gets SIGQUIT, so that it takes its children and shared memory along. */
function endEverything() {
	const nap = new Int32Array(new SharedArrayBuffer(4));
	for (const service of running) service.signalGroup(service.deathSignal);
	for (let i = 0; i < 300 && [...running].some((service) => !processIsGone(service.pid)); i++)
		Atomics.wait(nap, 0, 0, 10);
	for (const service of running) service.signalGroup('SIGKILL');
	running.clear();
	for (const directory of directories) {
		try {
			removeDirectory(directory);
		} catch {
			// A dying process may still write into it.
		}
	}
}

process.on('exit', endEverything);
for (const [signal, code] of [
	['SIGINT', 130],
	['SIGTERM', 143],
	['SIGHUP', 129],
]) {
	process.once(signal, () => process.exit(code));
}
