/*
 * `make run` supervises: with three gateways and three ZooKeeper servers, whichever is killed comes back while a client edits,
 * with a growing delay; `make stop` ends everything. The scripts run in a directory of their own, which looks like a
 * clone that has been built.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { build, repository, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';
import { Service, giveToService, isAlive, makeDirectory, mustRunAs, removeDirectory } from '../lib/processes.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';

const patient = 60000;
let clone;
let data;
let run;
let env;
let ports;
let gateways;

/** Below the ports of the other tests, so that none takes a port of a service that is about to start again. */
function choosePorts() {
	const first = 10000 + 50 * Math.floor(Math.random() * 100);
	return { PORT: first, PGPORT: first + 5, ZKPORT: first + 10 };
}

const log = () => fs.readFileSync(path.join(data, 'log', 'run.log'), 'utf8');
const pidOf = (name) => Number(fs.readFileSync(path.join(data, 'run', `${name}.pid`), 'utf8').split(' ')[0]);
const isReady = async (gateway) => (await request(gateway, 'GET', '/readyz', { timeoutMs: 2000 })).status === 200;
const script = (name) => path.join(clone, 'scripts', name);

/** Kills a service, and waits until the supervisor has started it again. */
async function killed(name) {
	const pid = pidOf(name);
	process.kill(pid, 'SIGKILL');
	await waitUntil(() => isAlive(pidOf(name)) && pidOf(name) !== pid, `${name} to be started again; ${log()}`, patient);
}

/** The processes that have a path of the clone on their command lines. */
const processes = () =>
	fs.readdirSync('/proc').filter((pid) => {
		if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
		try {
			return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(clone);
		} catch {
			return false;
		}
	});

before(async () => {
	const { bin, gateway } = build();
	clone = makeDirectory('/tmp/pg_sheet-clone-');
	data = path.join(clone, '.run', 'data');
	fs.cpSync(path.join(repository, 'scripts'), path.join(clone, 'scripts'), { recursive: true });
	const app = path.join(clone, '.run', 'app');
	fs.mkdirSync(app, { recursive: true });
	fs.symlinkSync(gateway, path.join(app, 'pg_sheet_gateway'));
	fs.mkdirSync(path.join(app, 'web'));
	fs.cpSync(path.join(repository, 'build', 'calc'), path.join(app, 'calc'), { recursive: true });
	fs.cpSync(path.join(repository, 'sql', 'examples'), path.join(app, 'examples'), { recursive: true });
	for (const file of ['.run', '.run/app']) giveToService(path.join(clone, file));
	for (let tries = 5; ; tries--) {
		ports = choosePorts();
		env = {
			...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
			PG_CONFIG: path.join(bin, 'pg_config'),
			GATEWAYS: '3',
			ZOOKEEPERS: '3',
			PG_SHEET_ZOOKEEPER_SESSION_MS: '3000',
			PG_SHEET_PASSWORD_MEMORY: '1MB',
		};
		await mustRunAs('mkdir', ['-p', '-m', '0700', path.join(data, 'log')]);
		fs.writeFileSync(path.join(data, 'log', 'run.log'), '');
		run = Service.spawn('make run', script('run'), ['--detached'], {
			log: path.join(data, 'log', 'run.log'),
			env,
			deathSignal: 'SIGTERM',
		});
		await waitUntil(() => !run.alive || fs.existsSync(path.join(data, 'run', 'ready')), () => `the start; ${log()}`, 2 * patient);
		if (run.alive) break;
		assert.ok(tries > 0 && / is in use, and /.test(log()), log());
	}
	gateways = [0, 1, 2].map((i) => ports.PORT + i).map((port) => ({ port, host: `127.0.0.1:${port}` }));
});

after(async () => {
	await run?.stop('SIGTERM', patient);
	if (clone) removeDirectory(clone);
});

test('a gateway and a ZooKeeper server that are killed come back while a client edits', async () => {
	const names = gateways.map(({ port }) => `gateway-${port}`);
	const user = await register(gateways[0]);
	const fid = await newSheet(gateways[0], user);
	let turn = 0;
	const writer = new Writer('w', 0, user, fid, () => gateways[++turn % gateways.length]);
	try {
		await writer.progress(100, patient);
		const before = log();
		const connections = writer.connections;
		await killed('zookeeper-2');
		await killed('calc');
		await writer.progress(100, patient);
		const owner = turn % gateways.length;
		await killed(names[owner]);
		await waitUntil(() => writer.connections > connections, 'the client to reconnect', patient);
		await writer.progress(100, patient);
		for (const gateway of gateways) await waitUntil(() => isReady(gateway), `${gateway.host} to be ready`, patient, 100);
		const told = log().slice(before.length);
		assert.match(told, /zookeeper-2 was ended by SIGKILL after \d+ s; starting it again in 1 s/);
		assert.match(told, new RegExp(`${names[owner]} was ended by SIGKILL after \\d+ s; starting it again in 1 s`));
		await killed(names[owner]);
		await waitUntil(() => isReady(gateways[owner]), `${names[owner]} to be ready`, patient, 100);
		const [, lived, delay] = [...log().matchAll(new RegExp(`${names[owner]} was .* after (\\d+) s.* in (\\d+) s`, 'g'))].at(-1);
		assert.equal(Number(delay), lived < 60 ? 2 : 1, 'the delay grows');
		await writer.progress(100, patient);
	} finally {
		await writer.stop();
	}
	const psql = path.join(build().bin, 'psql');
	const rows = async (sql) =>
		JSON.parse(
			await mustRunAs(psql, [
				'-XAtc',
				`SELECT coalesce(json_agg(r), '[]') FROM (${sql}) r`,
				`host=${data}/run port=${ports.PGPORT} user=postgres dbname=sheets`,
			]),
		);
	await checkNothingLost({ rows }, fid, [writer]);
	await rows(`SELECT sheet.set(${fid}, 'ZZ1', '=1+1')`);
	const computed = async () => (await rows(`SELECT value FROM sheet.range(${fid}, 'ZZ1')`))[0].value === '2';
	await waitUntil(computed, 'calc to compute a formula', patient, 100);
});

test('PostgreSQL comes back, and make stop ends everything', async () => {
	await killed('postgres');
	for (const gateway of gateways) await waitUntil(() => isReady(gateway), `${gateway.host} to be ready`, patient, 100);
	process.kill(pidOf(`gateway-${ports.PORT}`), 'SIGKILL'); // it is about to be started again
	await mustRunAs(script('stop'), [], { env, timeoutMs: 2 * patient });
	await run.ended;
	assert.deepEqual(processes(), []);
});
