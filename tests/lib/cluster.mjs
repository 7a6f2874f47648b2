/*
 * cluster.mjs - the real thing for a test: a PostgreSQL cluster with the extension, gateways, and ZooKeeper when asked.
 *
 *     const cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper' });
 *     const alice = await register(cluster.gateways[0]);
 *     await cluster.psql('SELECT count(*) FROM sheet.log');
 *     await cluster.stop();
 *
 * The environment may say:
 *   PG_CONFIG    pg_config of a PostgreSQL that has the extension installed; default: a private copy in .run/pg of this
 *                checkout, into which the extension is built and installed
 *   GATEWAY_BIN  the gateway to run; default: build/gateway/pg_sheet_gateway, built when it is missing or old
 *   TEST_PORTS   FIRST-LAST: ports to choose from; default: some that the kernel gives to nobody by itself
 *   PG_SHEET_WEB_ROOT  the built page; default: gateway/web/dist
 *   TMPDIR       where temporary directories go; default: /tmp
 *   KEEP=1       keeps them, with the logs
 */
import { spawn, execFileSync } from 'node:child_process';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import {
	Service,
	asRoot,
	freePort,
	giveToService,
	isAlive,
	makeDirectory,
	mustRunAs,
	removeDirectory,
	runAs,
	waitUntil,
	writePrivateFile,
} from './processes.mjs';
import { request } from './client.mjs';

export const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const database = 'sheets';

let built;
/** Builds what the environment does not name; once a process, one process at a time. */
export function build() {
	built ??= (() => {
		const lock = (command) =>
			execFileSync('flock', [path.join(repository, '.run', 'test-build.lock'), ...command], {
				cwd: repository,
				stdio: ['ignore', 'pipe', 'inherit'],
			}).toString();
		let pgConfig = process.env.PG_CONFIG;
		if (!pgConfig || !process.env.GATEWAY_BIN) fs.mkdirSync(path.join(repository, '.run'), { recursive: true });
		if (!pgConfig) {
			pgConfig = lock(['scripts/pgtree', path.join(repository, '.run', 'pg')]).trim();
			lock(['make', '-s', '-C', 'extension', `PG_CONFIG=${pgConfig}`, 'install']);
		}
		const gateway = process.env.GATEWAY_BIN ?? path.join(repository, 'build', 'gateway', 'pg_sheet_gateway');
		if (!process.env.GATEWAY_BIN) lock(['make', '-s', '-C', 'gateway']);
		const bin = execFileSync(pgConfig, ['--bindir']).toString().trim();
		return { bin, gateway };
	})();
	return built;
}

/* Gateways built with SANITIZE=1 keep what they have freed, to notice who still uses it (main/sanitize.c); too much of it where memory is measured. */
const sanitizerForgets = { ASAN_OPTIONS: 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64' };

/** One gateway process and its place: it keeps port and name when it is started again. */
export class Gateway {
	constructor(cluster, index, port, address = '127.0.0.1', adminPort = port + 1000) {
		Object.assign(this, {
			cluster,
			index,
			port,
			address,
			host: `${address}:${port}`,
			url: `${cluster.certificate ? 'https' : 'http'}://${address}:${port}`,
			tls: cluster.certificate ? { ca: cluster.certificate } : undefined, // for clients
			flags: {},
			env: {},
			service: null,
		});
		/** Its admin-address, as a gateway of client.mjs. */
		const tls = address.startsWith('127.') ? undefined : this.tls;
		this.admin = { address, port: adminPort, host: `${address}:${adminPort}`, url: `http${tls ? 's' : ''}://${address}:${adminPort}`, tls };
	}

	arguments(flags = {}) {
		const { cluster } = this;
		const settings = {
			'listen-address': this.address,
			'listen-port': this.port,
			'admin-address': this.admin.host,
			database: cluster.conninfo('gateway'),
			coordinator: cluster.coordinator,
			...(cluster.zookeeperPort
				? { 'zookeeper-hosts': `127.0.0.1:${cluster.zookeeperPort}`, 'zookeeper-session-ms': cluster.sessionMs }
				: {}),
			'web-root': path.join(cluster.directory, 'web'),
			'jwt-key-file': path.join(cluster.directory, 'jwt.key'),
			'log-level': process.env.LOG_LEVEL ?? 'info',
			'default-link-role': 'editor', // users of a test meet in a sheet by its id; sharing.test.mjs has the default
			'password-memory': '1MB', // hundreds of accounts are made; accounts.test.mjs has the default
			...(this.tls
				? { 'tls-certificate': path.join(cluster.directory, 'tls.crt'), 'tls-key': path.join(cluster.directory, 'tls.key') }
				: {}),
			...cluster.gatewayFlags,
			...this.flags,
			...flags,
		};
		return Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
	}

	/** ready: what answers 200 when it has started. */
	async start(flags = {}, { env = {}, ready = '/healthz' } = {}) {
		this.flags = { ...this.flags, ...flags };
		this.env = { ...this.env, ...env };
		this.service = Service.spawn(`gateway ${this.host}`, this.cluster.gatewayBinary, this.arguments(), {
			log: path.join(this.cluster.directory, 'log', `gateway-${this.index}.log`),
			cwd: this.cluster.directory,
			prefix: this.cluster.networkOf(`gateway-${this.index}`),
			env: { ...(this.cluster.measured ? sanitizerForgets : {}), ...this.env },
		});
		await this.service.waitReady(
			async () => (await request(this, 'GET', ready, { timeoutMs: 2000 })).status === 200,
		);
		return this;
	}

	/** Of the gateway's process, in kB; VmHWM: the most it has had. Needs a cluster with `measured`. */
	memory(field = 'VmRSS') {
		assert.ok(this.cluster.measured);
		const status = fs.readFileSync(`/proc/${this.service.pid}/status`, 'utf8');
		return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)[1]);
	}

	/** Processor time that all threads of the gateway's process have had, in ms. */
	processorMs() {
		const tasks = `/proc/${this.service.pid}/task`;
		const nanoseconds = (task) => Number(fs.readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]);
		return fs.readdirSync(tasks).reduce((sum, task) => sum + nanoseconds(task), 0) / 1e6;
	}

	/** SIGTERM: it drains. Resolves to {code, signal}. */
	stop() {
		return this.service.stop('SIGTERM');
	}

	kill() {
		return this.service.kill();
	}

	/** /metrics as a map from "name{labels}" to its number. */
	async metrics() {
		const answer = await request(this.admin, 'GET', '/metrics');
		return Object.fromEntries(
			answer.text
				.split('\n')
				.filter((line) => line && !line.startsWith('#'))
				.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
		);
	}
}

/** A psql that stays open: for transactions that are left open between statements. */
export class PsqlSession {
	constructor(cluster, role) {
		this.marker = 0;
		this.output = '';
		this.errors = '';
		this.child = spawn(path.join(cluster.bin, 'psql'), ['-XqAt', '-v', 'VERBOSITY=sqlstate', cluster.conninfo(role)], {
			stdio: 'pipe',
		});
		this.child.stdout.on('data', (data) => (this.output += data));
		this.child.stderr.on('data', (data) => (this.errors += data));
		this.child.stdin.on('error', () => {});
	}

	/** Runs statements; returns their output, throws with the SQLSTATEs when one failed. */
	async query(sql, timeoutMs = 60000) {
		const marker = `---${++this.marker}---`;
		this.output = '';
		this.errors = '';
		this.child.stdin.write(`${sql.trimEnd().replace(/;?$/, ';')}\n\\echo ${marker}\n`);
		await waitUntil(
			() => this.output.includes(`${marker}\n`) || this.child.exitCode !== null,
			`psql to finish: ${sql}`,
			timeoutMs,
			5,
		);
		if (this.errors) throw new Error(this.errors.trim());
		return this.output.slice(0, this.output.indexOf(marker)).trim();
	}

	async close() {
		this.child.stdin.end('\\q\n');
		if (this.child.exitCode === null) await new Promise((resolve) => this.child.once('exit', resolve));
	}
}

export class Cluster {
	/**
	 * gateways: how many to start; coordinator: postgres | zookeeper; gatewayFlags: settings of all gateways;
	 * postgres: settings of the server; sessionMs: the ZooKeeper session; tls: the gateways speak HTTPS; measured: their memory
	 * is looked at.
	 */
	static async start({
		gateways = 1,
		coordinator = 'postgres',
		gatewayFlags = {},
		postgres = {},
		sessionMs = 2000,
		tls = false,
		measured = false,
	} = {}) {
		const cluster = new this();
		const { bin, gateway } = build();
		cluster.bin = bin;
		cluster.coordinator = coordinator;
		cluster.gatewayFlags = gatewayFlags;
		cluster.sessionMs = sessionMs;
		cluster.measured = measured;
		cluster.settings = {
			shared_preload_libraries: 'pg_sheet',
			shared_buffers: '64MB',
			'pg_sheet.cache_size': '32MB',
			listen_addresses: '',
			max_connections: 60,
			...postgres,
		};
		cluster.gateways = [];
		cluster.directory = makeDirectory(path.join(os.tmpdir(), 'tests-'));
		try {
			cluster.prepareFiles(gateway);
			if (tls) cluster.makeCertificate();
			await cluster.initializePostgres();
			if (coordinator === 'zookeeper') await cluster.startZookeeper();
			for (let i = 0; i < gateways; i++) await cluster.addGateway();
		} catch (error) {
			await cluster.stop();
			throw error;
		}
		return cluster;
	}

	/** The words that run a command in the network of this server (ensemble.mjs): here all are on loopback. */
	networkOf() {
		return [];
	}

	prepareFiles(gateway) {
		for (const name of ['log', 'socket', 'web']) {
			fs.mkdirSync(path.join(this.directory, name));
			giveToService(path.join(this.directory, name));
		}
		// A copy: a gateway may be built anew while the tests run, and the user postgres may not see the checkout.
		this.gatewayBinary = path.join(this.directory, 'pg_sheet_gateway');
		fs.copyFileSync(gateway, this.gatewayBinary);
		fs.chmodSync(this.gatewayBinary, 0o755);
		const page = process.env.PG_SHEET_WEB_ROOT ?? path.join(repository, 'gateway', 'web', 'dist');
		if (fs.existsSync(path.join(page, 'index.html')))
			fs.cpSync(page, path.join(this.directory, 'web'), { recursive: true });
		else fs.writeFileSync(path.join(this.directory, 'web', 'index.html'), '<!doctype html><title>pg_sheet</title>\n');
		this.jwtKey = crypto.randomBytes(32).toString('hex');
		writePrivateFile(path.join(this.directory, 'jwt.key'), `k1:${this.jwtKey}\n`);
	}

	/**
	 * A new key and a certificate for 127.0.0.1 that nobody else has signed; gateways read them when they start, or at SIGHUP.
	 * kind: of the key, as openssl names it.
	 */
	makeCertificate(kind = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']) {
		const [certificate, key] = ['tls.crt', 'tls.key'].map((name) => path.join(this.directory, name));
		execFileSync(
			'openssl',
			['req', '-x509', '-newkey', ...kind, '-nodes', '-days', '2', '-subj', '/CN=gateway'].concat(
				['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', `${key}.new`, '-out', certificate],
			),
			{ stdio: 'ignore' },
		);
		writePrivateFile(key, fs.readFileSync(`${key}.new`, 'utf8'));
		fs.unlinkSync(`${key}.new`);
		this.certificate = fs.readFileSync(certificate, 'utf8');
		for (const gateway of this.gateways) gateway.tls = { ca: this.certificate };
	}

	conninfo(role = 'postgres', name = database) {
		const port = this.settings.port ? ` port=${this.settings.port}` : '';
		return `host=${this.directory}/socket${port} user=${role} dbname=${name}`;
	}

	/** A new data directory, without the database. */
	initdb(data) {
		const options = ['-U', 'postgres', '-A', 'trust', '--data-checksums', '--encoding=UTF8', '--locale=C.UTF-8', '--no-instructions', '--no-sync'];
		return mustRunAs(path.join(this.bin, 'initdb'), ['-D', data, ...options]);
	}

	async createDatabase() {
		await mustRunAs(path.join(this.bin, 'psql'), ['-XqAt', '-c', `CREATE DATABASE ${database}`, this.conninfo('postgres', 'postgres')]);
		await this.psql('CREATE EXTENSION pg_sheet; CREATE ROLE gateway LOGIN IN ROLE sheet_gateway');
	}

	/**
	 * A running server with the database, the extension and the gateways' role. In a check, the first cluster makes a data directory
	 * that has them, and all are copies of it.
	 */
	async initializePostgres() {
		const data = path.join(this.directory, 'data');
		const template = process.env.CHECK_DIR && path.join(process.env.CHECK_DIR, 'initdb');
		if (!template) {
			await this.initdb(data);
			await this.startPostgres();
			await this.createDatabase();
			return;
		}
		if (!fs.existsSync(template)) {
			await this.initdb(data);
			const { settings } = this;
			this.settings = { shared_preload_libraries: settings.shared_preload_libraries, listen_addresses: '', fsync: 'off' };
			await this.startPostgres();
			await this.createDatabase();
			await this.stopPostgres();
			this.settings = settings;
			// The template appears as a whole, by its rename; of several files that begin together, one makes it.
			await runAs('sh', ['-c', 'mv -T "$1" "$2" 2>/dev/null || rm -rf "$1"', '-', data, template]);
		}
		await mustRunAs('cp', ['-a', template, data]);
		await this.startPostgres();
	}

	async startPostgres() {
		const settings = Object.entries(this.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
		const args = ['-D', path.join(this.directory, 'data'), '-k', path.join(this.directory, 'socket'), ...settings];
		this.postgres = Service.spawn('postgres', path.join(this.bin, 'postgres'), args, {
			log: path.join(this.directory, 'log', 'postgres.log'),
			deathSignal: 'SIGQUIT',
			prefix: this.networkOf('postgres'),
		});
		const probe = ['-q', '-d', this.conninfo('postgres', 'postgres')];
		await this.postgres.waitReady(
			async () => (await runAs(path.join(this.bin, 'pg_isready'), probe)).code === 0,
			60000,
		);
	}

	/** mode: fast (SIGINT) or immediate (SIGQUIT). */
	async stopPostgres(mode = 'fast') {
		await this.postgres.stop(mode === 'fast' ? 'SIGINT' : 'SIGQUIT', 30000);
	}

	async restartPostgres(mode) {
		await this.stopPostgres(mode);
		await this.startPostgres();
	}

	/** Runs statements with psql and returns its output, unaligned, without headers; throws when one fails. */
	psql(sql, { role = 'postgres', timeoutMs = 60000 } = {}) {
		return mustRunAs(path.join(this.bin, 'psql'), ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', '-', this.conninfo(role)], {
			input: sql,
			timeoutMs,
		}).then((output) => output.trimEnd());
	}

	/** The rows of one query, as objects. */
	async rows(sql, options) {
		return JSON.parse(await this.psql(`SELECT coalesce(json_agg(q), '[]') FROM (${sql}) q`, options));
	}

	psqlSession(role = 'postgres') {
		return new PsqlSession(this, role);
	}

	async startZookeeper() {
		this.zookeeperPort ??= await freePort();
		this.zookeeper = this.spawnZookeeper('zookeeper', [`clientPort=${this.zookeeperPort}`, 'clientPortAddress=127.0.0.1']);
		await this.zookeeper.waitReady(async () => (await this.zookeeperCommand('srvr')).includes('Mode:'), 30000);
	}

	/** One server with a directory of this name; lines: what differs from server to server in its configuration. */
	spawnZookeeper(name, lines, data = path.join(this.directory, name, 'data')) {
		const home = path.join(this.directory, name);
		if (!fs.existsSync(home)) fs.mkdirSync(home);
		giveToService(home);
		const common = ['tickTime=500', 'minSessionTimeout=1000', 'maxSessionTimeout=60000', `dataDir=${data}`, 'maxClientCnxns=0'];
		const words = ['admin.enableServer=false', '4lw.commands.whitelist=*', ...lines, ''];
		fs.writeFileSync(path.join(home, 'zoo.cfg'), [...common, ...words].join('\n'));
		return Service.spawn(
			name,
			'java',
			[
				'-Xms16m',
				'-Xmx64m',
				'-XX:+UseSerialGC',
				'-XX:TieredStopAtLevel=1',
				'-Xshare:auto',
				'-Djava.awt.headless=true',
				'-Dzookeeper.jmx.log4j.disable=true',
				...(this.zookeeperProperties ?? []),
				'-cp',
				'/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar',
				'org.apache.zookeeper.server.quorum.QuorumPeerMain',
				path.join(home, 'zoo.cfg'),
			],
			{ log: path.join(this.directory, 'log', `${name}.log`), cwd: this.directory, prefix: this.networkOf(name) },
		);
	}

	/** A four-letter word of ZooKeeper's: srvr, dump, mntr ... */
	zookeeperCommand(word, address = '127.0.0.1') {
		return new Promise((resolve, reject) => {
			const socket = net.connect(this.zookeeperPort, address, () => socket.end(word));
			let text = '';
			socket.on('data', (data) => (text += data));
			socket.on('error', reject);
			socket.on('close', () => resolve(text));
			socket.setTimeout(2000, () => socket.destroy());
		});
	}

	/** A sheet of the first gateway waits for the SQL transaction that holds it. */
	sheetIsHeld() {
		const held = async () => (await this.gateways[0].metrics()).pg_sheet_held_sheets === 1;
		return waitUntil(held, 'the gateway to wait for the sheet');
	}

	async addGateway(flags = {}, options = {}) {
		const gateway = new Gateway(this, this.gateways.length, await freePort(), undefined, await freePort());
		this.gateways.push(gateway);
		return gateway.start(flags, options);
	}

	/** Until the database knows the gateway by its name, as `drain HOST:PORT` needs it. */
	async reported({ host }) {
		const sql = `SELECT count(*) FROM sheet.gateways WHERE address = '${host}' AND state = 'serving'`;
		await waitUntil(async () => (await this.psql(sql)) === '1', `${host} to report`);
	}

	/** Runs a gateway that is expected to end by itself; resolves to {code, signal, stdout, stderr}. */
	async runGateway(flags = {}, { extra = [], env = {}, timeoutMs = 60000 } = {}) {
		const gateway = new Gateway(this, 99, await freePort(), undefined, await freePort());
		return runAs(this.gatewayBinary, [...gateway.arguments(flags), ...extra], { env, timeoutMs });
	}

	/** Ends everything, gateways first, and removes the directory. */
	async stop() {
		await Promise.all(this.gateways.map((gateway) => gateway.service?.stop()));
		await this.zookeeper?.stop('SIGKILL');
		if (this.postgres?.alive) await this.stopPostgres('fast');
		const findings = this.sanitizerFindings();
		removeDirectory(this.directory);
		if (findings) throw new Error(`a gateway's sanitizer found:\n${findings}`);
	}

	/** What the sanitizers of gateways built with SANITIZE=1 have written into the logs: wrong accesses, leaks. */
	sanitizerFindings() {
		const logs = path.join(this.directory, 'log');
		return fs
			.readdirSync(logs)
			.filter((name) => name.startsWith('gateway-'))
			.map((name) => /^.*(?:ERROR: \w+Sanitizer|: runtime error: )[^]*/m.exec(fs.readFileSync(path.join(logs, name), 'utf8')))
			.map((found) => found?.[0].slice(0, 4000) ?? '')
			.join('');
	}
}

export { asRoot, isAlive, sleep, waitUntil, freePort, writePrivateFile };
