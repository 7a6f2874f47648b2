/*
 * docker/compose.yaml as docs/OPERATIONS.md tells: built from a copy of the clone, started, used, a gateway killed, the
 * profiles added, taken down. With a project name, image tag, network and ports of its own. The images are kept for the next run. Skipped where
 * no Docker engine answers.
 *
 * PG_SHEET_DOCKER_CA=FILE: certificates with which npm connects while the images are built (docker/ca/README.md).
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Editor, login, newSheet, post, register, request } from '../lib/client.mjs';
import { freePort, waitUntil } from '../lib/processes.mjs';
import { buildMs, copyClone, docker, engineObstacle, run, works } from './engine.mjs';

const project = `pg_sheet_test_${process.pid}`;
const services = ['postgres', 'zookeeper-1', 'zookeeper-2', 'zookeeper-3', 'gateway-1', 'gateway-2', 'gateway-3', 'calc'];

const compose = [['docker', 'compose'], ['docker-compose']].find((words) => works(...words, 'version'));
const obstacle = engineObstacle('docker/compose.yaml') || (!compose && 'Docker Compose is not installed');

const directory = obstacle ? undefined : copyClone();
const environment = { ...process.env, COMPOSE_PROJECT_NAME: project };
const words = [...(compose ?? []), '-f', 'docker/compose.yaml'];

let running; // docker compose

/** Runs docker compose in the copy; its whole output is part of the error. */
async function composed(...args) {
	try {
		const options = { cwd: directory, env: environment, timeout: buildMs, maxBuffer: 64 << 20 };
		const result = run(words[0], [...words.slice(1), ...args], options);
		running = result.child;
		return (await result).stdout.trim();
	} catch (error) {
		throw new Error(`${args.join(' ')}: ${`${error.stdout}${error.stderr}`.slice(-6000)}`);
	}
}

/** The containers, volumes or networks of the project. */
async function list(...command) {
	const lines = await docker(...command, '--quiet', '--filter', `label=com.docker.compose.project=${project}`);
	return lines.split('\n').filter(Boolean);
}
const containers = () => list('ps', '--all');
const volumes = () => list('volume', 'ls');
const networks = () => list('network', 'ls');

function clean() {
	if (!fs.existsSync(directory)) return;
	running?.kill();
	spawnSync(words[0], [...words.slice(1), 'down', '--volumes', '--timeout', '1'], { cwd: directory, env: environment });
	fs.rmSync(directory, { recursive: true, force: true });
}

/** Adds lines to docker/.env. */
const set = (...lines) => fs.appendFileSync(path.join(directory, 'docker/.env'), `${lines.join('\n')}\n`);

async function configure(gateways) {
	await run('docker/make-secrets', { cwd: directory });
	set(
		'IMAGE_TAG=test',
		`INNER_NETWORK=172.30.${1 + Math.floor(Math.random() * 250)}`,
		...gateways.flatMap(({ port, host }, i) => [`GATEWAY_${i + 1}_PORT=${port}`, `GATEWAY_${i + 1}_ADDRESS=${host}`]),
	);
}

/** What OPERATIONS.md tells to do before the profile tls is started. Returns HAProxy's ports as gateways. */
async function configureTls() {
	const tls = path.join(directory, 'docker/tls');
	const [chain, key] = ['chain', 'key'].map((name) => path.join(directory, name));
	const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=test'];
	await run('openssl', [...words, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', chain]);
	const ca = fs.readFileSync(chain, 'utf8');
	fs.mkdirSync(tls);
	fs.writeFileSync(path.join(tls, 'site.pem'), ca + fs.readFileSync(key, 'utf8'), { mode: 0o644 });
	const doors = [];
	for (let i = 0; i < 3; i++) {
		const port = await freePort();
		doors.push({ address: '127.0.0.1', port, host: `127.0.0.1:${port}`, tls: { ca } });
	}
	set(
		'PUBLIC_SCHEME=https',
		'TRUSTED_PROXIES=172.16.0.0/12',
		...doors.flatMap(({ port, host }, i) => [`TLS_${i + 1}_PORT=${port}`, `GATEWAY_${i + 1}_ADDRESS=${host}`]),
	);
	return doors;
}

if (obstacle) {
	test('docker/compose.yaml', { skip: obstacle }, () => {});
} else {
	describe('docker/compose.yaml', () => {
		const gateways = [];
		let anna;
		let fid;
		let owner;
		let prometheus;

		const container = (service) => composed('ps', '-q', service);
		const health = async (service) =>
			docker('inspect', '--format', '{{.State.Health.Status}}', await container(service));
		/** The gateway that says of itself that the sheet is its own. */
		const findOwner = async (candidates) => {
			for (const gateway of candidates) {
				const where = await request(gateway, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`);
				if (where.json?.msg === 20) return gateway;
			}
			return undefined;
		};

		before(
			async () => {
				process.on('exit', clean);
				for (const service of services.filter((name) => name.startsWith('gateway'))) {
					const port = await freePort();
					gateways.push({ service, port, host: `127.0.0.1:${port}` });
				}
				await configure(gateways);
				await composed('up', '-d', '--build');
			},
			{ timeout: buildMs },
		);
		after(clean, { timeout: 120000 });

		test('all containers become healthy', async () => {
			await waitUntil(
				async () => (await Promise.all(services.filter((name) => name !== 'calc').map(health))).every((status) => status === 'healthy'),
				'all to be healthy',
				120000,
				500,
			);
			for (const gateway of gateways) {
				assert.equal((await request(gateway, 'GET', '/readyz')).status, 200);
				assert.match((await request(gateway, 'GET', '/')).text, /<script/);
			}
		});

		test('an account signs in at any gateway and edits a sheet at its owner', async () => {
			anna = await register(gateways[0]);
			for (const gateway of gateways) anna.token = (await login(gateway, anna)).token;
			fid = await newSheet(gateways[0], anna);
			owner = await waitUntil(() => findOwner(gateways), 'an owner of the sheet');
			const editor = await Editor.open(owner, anna, fid);
			editor.modify(0, 0, 'kept');
			await editor.nextModify(0, 0, 'kept');
			await editor.close();
			const sql = `SELECT content FROM sheet.cells WHERE sheet_id = ${fid} AND a1 = 'A1'`;
			assert.equal(await docker('exec', await container('postgres'), 'psql', '-XAtc', sql, 'sheets'), 'kept');
		});

		test('another gateway serves the sheet of one that is killed, which comes back', async () => {
			const editor = await Editor.open(owner, anna, fid);
			editor.modify(0, 1, 'acknowledged');
			await editor.nextModify(0, 1, 'acknowledged');
			const killed = await container(owner.service);
			await docker('kill', killed);
			await editor.waitClosed();
			const others = gateways.filter((gateway) => gateway !== owner);
			const cells = `/v2/sheets/${fid}/cells?range=A1:B2&token=${anna.token}`;
			for (const other of others) {
				const told = await waitUntil(async () => {
					const { status, headers } = await request(other, 'GET', cells);
					return !headers.location?.startsWith(`http://${owner.host}/`) && status;
				}, 'nobody to be sent to the killed gateway');
				assert.equal(told, 503, 'before its session has ended');
			}
			const successor = await waitUntil(() => findOwner(others), 'a successor', 30000, 200);
			const again = await waitUntil(() => Editor.open(successor, anna, fid), 'the sheet to be open', 30000, 200);
			assert.equal(again.cells.get('0,0'), 'kept');
			assert.equal(again.cells.get('0,1'), 'acknowledged');
			again.modify(1, 0, 'of the successor');
			await again.nextModify(1, 0, 'of the successor');
			await again.close();
			await docker('start', killed);
			await waitUntil(async () => (await health(owner.service)) === 'healthy', 'it to be back', 60000, 500);
		});

		test('the profile tls: the page and WebSockets over TLS, and nobody is an operator by what they forge', async () => {
			const doors = await configureTls();
			prometheus = { address: '127.0.0.1', port: await freePort() };
			set(`PROMETHEUS_PORT=${prometheus.port}`);
			environment.COMPOSE_PROFILES = 'tls,metrics';
			await composed('up', '-d', '--build');
			for (const door of doors) {
				const ready = async () => (await request(door, 'GET', '/readyz').catch(() => ({}))).status === 200;
				await waitUntil(ready, `${door.host} to be ready`, 120000, 500);
				assert.match((await request(door, 'GET', '/')).text, /<script/);
				for (const headers of [{}, { 'x-forwarded-for': '127.0.0.1' }, { forwarded: 'for=127.0.0.1' }])
					assert.equal((await request(door, 'GET', '/metrics', { headers })).status, 404);
			}
			const door = await waitUntil(() => findOwner(doors), 'an owner of the sheet');
			const editor = await Editor.open(door, anna, fid);
			assert.equal(editor.cells.get('0,0'), 'kept');
			editor.modify(2, 0, 'over TLS');
			await editor.nextModify(2, 0, 'over TLS');
			await editor.close();
			const other = doors.find((candidate) => candidate !== door);
			const answer = await post(other, '/getsheet', { fid, token: anna.token });
			assert.deepEqual([answer.status, answer.headers.location], [307, `https://${door.host}/getsheet`]);
		});

		test('the profile metrics: Prometheus reads all three gateways with the token', async () => {
			const ask = async (query) =>
				(await request(prometheus, 'GET', `/api/v1/query?query=${query}`).catch(() => ({}))).json?.data?.result ?? [];
			const values = async (query) =>
				Object.fromEntries((await ask(query)).map(({ metric, value }) => [metric.instance, value[1]]));
			const all = Object.fromEntries([1, 2, 3].map((i) => [`gateway-${i}:9080`, '1']));
			for (const query of ['up', 'pg_sheet_ready']) {
				let found;
				const isAll = async () => isDeepStrictEqual((found = await values(query)), all);
				await waitUntil(isAll, () => `${query}: ${JSON.stringify(found)}`, 60000, 500);
			}
		});

		test('down removes containers and networks and keeps the data; down -v removes the data', async () => {
			assert.equal((await containers()).length, services.length + 2);
			await composed('down');
			assert.deepEqual([await containers(), await networks()], [[], []]);
			assert.ok((await volumes()).includes(`${project}_postgres`));
			await composed('down', '--volumes');
			assert.deepEqual(await volumes(), []);
		});
	});
}
