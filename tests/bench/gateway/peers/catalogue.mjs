/*
 * catalogue.mjs - the peers: how to start each one's server, what loads it, and what is known about edits that its users see.
 *
 * Each is set up as its documentation advises, and its load keeps as many edits under way (`window`, of each user) as it
 * does best with; larger ones give nothing more. `ws` is loaded without a window, as we are: its server pushes senders back.
 * stored: is an edit on the disk when its sender sees it? By what the server is configured to do, and by its documentation.
 */
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { killAtExit } from '../../common/site.mjs';
import { startNats, startNginx } from '../servers.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const inHere = (name) => path.join(here, name);

/** Installs the packages of package-lock.json unless they are here; what stands in the way, or ''. */
function tryToInstall() {
	const [wanted, have] = ['package-lock.json', path.join('node_modules', '.installed-lock')].map(inHere);
	const lock = fs.readFileSync(wanted, 'utf8');
	if (fs.existsSync(have) && fs.readFileSync(have, 'utf8') === lock) return '';
	process.stdout.write('  installing the npm packages of tests/bench/gateway/peers\n');
	const { status, stderr, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
		cwd: here,
		stdio: ['ignore', 'ignore', 'pipe'],
	});
	if (status !== 0) return `npm ci in tests/bench/gateway/peers: ${error?.message ?? stderr.toString().trim().split('\n')[0]}`;
	fs.writeFileSync(have, lock);
	return '';
}

let problem;
/** For those who need more than `ws`, which the tests have, too. */
function needPackages() {
	problem ??= tryToInstall();
	if (problem) throw new Error(problem);
}

/** A server in JavaScript, which prints its port and ends with its input. */
async function startNode(name, args = [], env = {}) {
	const child = spawn(process.execPath, [inHere(name), ...args], {
		stdio: ['pipe', 'pipe', 'inherit'],
		env: { ...process.env, NODE_ENV: 'production', ...env },
	});
	const ended = new Promise((resolve) => child.once('exit', resolve));
	killAtExit(child);
	const port = await new Promise((resolve, reject) => {
		readline.createInterface({ input: child.stdout }).on('line', (line) => /^\d+$/.test(line) && resolve(Number(line)));
		ended.then((code) => reject(new Error(`${name} ended with ${code} before it had a port`)));
	});
	return {
		port,
		pid: child.pid,
		stop: async () => {
			child.stdin.end();
			await ended;
		},
	};
}

function startYjs(env) {
	needPackages();
	return startNode('yjs-server.mjs', [], env);
}

function startShareDb() {
	needPackages();
	return startNode('sharedb-server.mjs');
}

/** Yjs that hands each update to y-leveldb. */
async function startYjsWithLevel() {
	needPackages();
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pg_sheet-level-'));
	const server = await startYjs({ YPERSISTENCE: directory });
	const stop = async () => {
		await server.stop();
		fs.rmSync(directory, { recursive: true, force: true });
	};
	return { ...server, stop };
}

const nchan = `nchan_shared_memory_size 512M;
	server { listen 127.0.0.1:PORT; location = /sheet { nchan_pubsub websocket; nchan_channel_id sheet;
		nchan_message_buffer_length 20000; nchan_subscriber_first_message newest; } }`;

/** Loads, as [program, arguments]. */
const flood = ({ port, seconds, file, users }) => [
	'edit_generator',
	[port, 1, file('tokens', Array(users).fill('nobody')), seconds, 0, file('cells'), 60],
];
const native =
	(dialect, window) =>
	({ port, seconds, users }) => ['peer_load', [dialect, port, users, window, seconds]];
const script =
	(name, window, batch) =>
	({ port, seconds, users }) => [inHere(name), [port, users, window, batch, seconds]];

export const peers = {
	ws_plain: {
		name: 'Node `ws`, a send for each message and receiver',
		stored: 'no: nothing is stored',
		start: () => startNode('ws-server.mjs', ['plain']),
		load: flood,
		packages: ['ws'],
	},
	ws_coalescing: {
		name: 'Node `ws`, coalescing by hand',
		stored: 'no: nothing is stored',
		start: () => startNode('ws-server.mjs', ['coalescing']),
		load: flood,
		packages: ['ws'],
	},
	yjs: {
		name: 'Yjs and y-websocket, an edit a transaction',
		stored: 'no: in memory',
		start: () => startYjs({}),
		load: script('yjs-load.mjs', 2000, 1),
		packages: ['yjs', 'y-websocket', 'ws'],
	},
	yjs_16: {
		name: 'Yjs and y-websocket, 16 edits a transaction',
		stored: 'no: in memory',
		start: () => startYjs({}),
		load: script('yjs-load.mjs', 400, 16),
		packages: ['yjs', 'y-websocket', 'ws'],
	},
	yjs_level_16: {
		name: 'the same with y-leveldb',
		stored: 'no: written after the echo, without fsync',
		start: startYjsWithLevel,
		load: script('yjs-load.mjs', 400, 16),
		packages: ['yjs', 'y-websocket', 'y-leveldb', 'ws'],
	},
	sharedb: {
		name: 'ShareDB, json0, an edit an operation',
		stored: 'no: its database in memory',
		start: startShareDb,
		load: script('sharedb-load.mjs', 1, 1),
		packages: ['sharedb', 'ws'],
	},
	sharedb_16: {
		name: 'ShareDB, json0, 16 edits an operation',
		stored: 'no: its database in memory',
		start: startShareDb,
		load: script('sharedb-load.mjs', 1, 16),
		packages: ['sharedb', 'ws'],
	},
	nchan: {
		name: 'nchan, one worker of nginx',
		stored: 'no: in shared memory',
		start: () =>
			startNginx({
				http: nchan,
				modules: [{ package: 'libnginx-mod-nchan', file: '/usr/lib/nginx/modules/ngx_nchan_module.so' }],
			}),
		load: native('nchan', 20),
		debian: ['nginx', 'libnginx-mod-nchan'],
	},
	nats: {
		name: 'nats-server, WebSocket',
		stored: 'no: nothing is stored',
		start: () => startNats({ stored: false }),
		load: native('nats', 5000),
		debian: ['nats-server'],
	},
	nats_jetstream: {
		name: 'nats-server, WebSocket, JetStream in files',
		stored: 'no: written, fsync every 2 minutes',
		start: () => startNats({ stored: true }),
		load: native('jetstream', 500),
		debian: ['nats-server'],
	},
};
