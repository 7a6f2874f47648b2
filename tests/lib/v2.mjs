/*
 * v2.mjs - clients of protocol v2 for tests: the page's own (gateway/web/src/v2), built for Node, and one that says what it
 * is told to.
 */
import { execFileSync } from 'node:child_process';
import { webcrypto } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { WebSocket } from 'ws';
import { repository } from './cluster.mjs';
import { waitUntil } from './processes.mjs';

// Node 18, which Debian 12 has, does not give it the name that it has in browsers.
globalThis.crypto ??= webcrypto;

const web = path.join(repository, 'gateway', 'web');
const built = fs.mkdtempSync(path.join(os.tmpdir(), 'v2-'));
process.on('exit', () => fs.rmSync(built, { recursive: true, force: true }));
execFileSync(path.join(web, 'node_modules', '.bin', 'esbuild'), [
	...['client', 'codec'].map((name) => path.join(web, 'src', 'v2', `${name}.ts`)),
	'--bundle',
	'--format=esm',
	'--out-extension:.js=.mjs',
	`--outdir=${built}`,
	'--log-level=error',
]);

export const { SheetClient, RefusedError } = await import(path.join(built, 'client.mjs'));
export const { encodeJson, encodeBinary, decodeJson, decodeBinary } = await import(path.join(built, 'codec.mjs'));

/** A module of the page, by its path below gateway/web/src. */
export async function pageModule(name) {
	const outfile = path.join(built, name.replace(/ts$/, 'mjs'));
	execFileSync(path.join(web, 'node_modules', '.bin', 'esbuild'), [path.join(web, 'src', name), '--bundle', '--format=esm', `--outfile=${outfile}`, '--log-level=error']);
	return import(outfile);
}

/** The page's client, on a gateway. It keeps all cells of the first rows and columns when `load` is left as it is. */
export function sheetClient(gateway, user, fid, options = {}) {
	const { load = { row: 0, col: 0, toRow: 199, toCol: 99 }, ...rest } = options;
	const client = new SheetClient({
		url: `ws://${gateway.host}/sheetws`,
		sheet: fid,
		token: () => user.token,
		retryMs: 50,
		open: (url, protocol) => new WebSocket(url, protocol).on('error', () => {}),
		...rest,
	});
	if (load) client.load(load);
	client.connect();
	return client;
}

/** The cells of a client as the database lists them: [["row,col", content], …]. */
export const gridOf = (client) =>
	[...client.replica.cells]
		.filter(([, { content }]) => content !== '')
		.map(([key, { content }]) => [key, content])
		.sort(([a], [b]) => (a < b ? -1 : 1));

/** Says what it is told to, and keeps what it hears. */
export class RawClient {
	constructor(gateway, fid, { encoding = 'json', protocols = 'sheet.v2', headers = {}, timeoutMs } = {}) {
		Object.assign(this, { encoding, messages: [], position: 0, closed: null });
		this.socket = new WebSocket(`ws://${gateway.host}/sheetws?fid=${fid}`, protocols, { headers, handshakeTimeout: timeoutMs });
		this.opened = new Promise((resolve, reject) => {
			this.socket.once('open', resolve);
			this.socket.once('error', reject);
		});
		this.opened.catch(() => {});
		this.socket.on('message', (data, isBinary) => {
			this.lastWasBinary = isBinary;
			this.messages.push(isBinary ? decodeBinary(new Uint8Array(data)) : decodeJson(data.toString()));
		});
		this.socket.on('error', () => {});
		this.socket.on('close', (code, reason) => (this.closed = { code, reason: reason.toString() }));
	}

	/** Connects and greets; the gateway's hello is in .hello. */
	static async open(gateway, user, fid, { v = 2, client = 0, acked = 0, since = 0, ...options } = {}) {
		const raw = new RawClient(gateway, fid, options);
		await raw.opened;
		raw.send({ t: 'hello', v, token: user.token, client, acked, since });
		raw.hello = await raw.next('hello');
		return raw;
	}

	/** Places are those of now unless the message has a base. */
	send(message) {
		const whole = { base: 0, ...message };
		this.socket.send(this.encoding === 'binary' ? encodeBinary(whole) : encodeJson(whole));
	}

	sendRaw(data) {
		this.socket.send(data);
	}

	op(n, edits, { nacks = 0, base = 0, seen } = {}) {
		this.send({ t: 'op', n, nacks, base, seen, edits });
	}

	/** The next message of a type, not yet taken, that the predicate accepts; those before it are skipped. */
	async next(type, predicate = () => true, timeoutMs = 30000) {
		return waitUntil(
			() => {
				while (this.position < this.messages.length) {
					const message = this.messages[this.position++];
					if (message.t === type && predicate(message)) return message;
				}
				if (this.closed) throw new Error(`closed: ${JSON.stringify(this.closed)}`);
				return null;
			},
			() => `${type}; heard ${JSON.stringify(this.messages.slice(-4)).slice(0, 500)}`,
			timeoutMs,
			2,
		);
	}

	async waitClosed(timeoutMs = 60000) {
		await waitUntil(() => this.closed, 'the connection to be closed', timeoutMs, 5);
		return this.closed;
	}

	terminate() {
		this.socket.terminate();
	}
}
