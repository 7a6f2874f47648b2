/*
 * client.mjs - what a client of a gateway does, for the tests: HTTP requests, accounts and sheets by the v1 routes, and
 * a WebSocket (npm ws) whose messages are kept in order.
 *
 * Plain node:http with a connection for each request: fetch keeps connections, and those of a killed gateway would fail
 * the next request for no reason of the product's.
 */
import http from 'node:http';
import https from 'node:https';
import crypto from 'node:crypto';
import assert from 'node:assert/strict';
import WebSocket from 'ws';
import { undocumented } from './documented.mjs';
import { waitUntil } from './processes.mjs';

/** One request; resolves to {status, headers, body: Buffer, text, json}. json is undefined when the body is not JSON. */
export function request(gateway, method, path, { headers = {}, body, timeoutMs = 60000 } = {}) {
	return new Promise((resolve, reject) => {
		const outgoing = (gateway.tls ? https : http).request(
			{ host: gateway.address ?? '127.0.0.1', port: gateway.port, method, path, headers, agent: false, timeout: timeoutMs, ...gateway.tls },
			(answer) => {
				const parts = [];
				answer.on('data', (part) => parts.push(part));
				answer.on('error', reject);
				answer.on('end', () => {
					const bytes = Buffer.concat(parts);
					const text = bytes.toString();
					let json;
					try {
						json = JSON.parse(text);
					} catch {
						// Not every answer is JSON.
					}
					const { statusCode: status, headers: given } = answer;
					// Each refusal for now tells when to try again. What has no such id is not the gateway's answer.
					if ((status === 503 || status === 429) && given['x-request-id'] && !(Number(given['retry-after']) > 0))
						reject(new Error(`${method} ${path}: ${status} without Retry-After: ${text}`));
					const problem = undocumented(method, path, { status, headers: given, text });
					if (problem) reject(new Error(problem));
					resolve({ status, headers: given, body: bytes, text, json });
				});
			},
		);
		outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer in ${timeoutMs} ms`)));
		outgoing.on('error', reject);
		outgoing.end(body);
	});
}

/** POST of a JSON body; the whole answer. */
export function post(gateway, path, body, { headers = {}, ...options } = {}) {
	const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
	return request(gateway, 'POST', path, {
		...options,
		headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers },
		body: text,
	});
}

/** POST that must be answered with this msg; returns data. */
export async function call(gateway, path, body, msg) {
	const answer = await post(gateway, path, body);
	assert.equal(answer.status, 200, `${path}: ${answer.status} ${answer.text}`);
	assert.ok(answer.json, `${path}: not JSON: ${answer.text}`);
	assert.equal(answer.json.msg, msg, `${path} ${JSON.stringify(body)}: ${answer.text}`);
	return answer.json.data;
}

/** The route answers this body with a refusal: 200, success false, this msg. */
export async function refused(gateway, path, body, msg) {
	const answer = await post(gateway, path, body);
	assert.equal(answer.status, 200, `${path}: ${answer.status} ${answer.text}`);
	assert.deepEqual(
		{ success: answer.json.success, msg: answer.json.msg },
		{ success: false, msg },
		`${path} ${JSON.stringify(body)}: ${answer.text}`,
	);
}

/** The route finds this body malformed: 400, msg 0. */
export async function malformed(gateway, path, body, headers) {
	const answer = await post(gateway, path, body, { headers });
	const shown = String(typeof body === 'string' ? body : JSON.stringify(body)).slice(0, 80);
	assert.equal(answer.status, 400, `${path} ${shown}: ${answer.status} ${answer.text}`);
	assert.equal(answer.json?.success, false, `${path} ${shown}: ${answer.text}`);
	assert.equal(answer.json.msg, 0, `${path} ${shown}: ${answer.text}`);
}

let names = 0;
export function uniqueName(prefix = 'user') {
	return `${prefix}-${process.pid}-${++names}`;
}

/** A new account: {username, password, token, uid}. */
export async function register(gateway, username = uniqueName(), password = `pw of ${username}`) {
	const token = await call(gateway, '/register', { username, password, email: `${username}@example.org` }, 5);
	return { username, password, token, uid: tokenClaims(token).uid };
}

export async function login(gateway, { username, password }) {
	return call(gateway, '/login', { username, password }, 4);
}

export async function newSheet(gateway, user, { name = uniqueName('sheet'), rows = 10, columns = 10 } = {}) {
	return call(gateway, '/newsheet', { token: user.token, name, initRows: rows, initColumns: columns }, 11);
}

/** Makes a new link to the sheet, and has the users open it; returns its key. */
export async function shareByLink(gateway, owner, fid, role, ...users) {
	const link = await call(gateway, '/sharelink', { token: owner.token, fid, role }, 12);
	for (const user of users) {
		const answer = await post(gateway, `/v2/sheets/${fid}/open`, { token: user.token, link });
		assert.deepEqual([answer.status, answer.json], [200, { role }]);
	}
	return link;
}

export function getSheet(gateway, user, fid) {
	return call(gateway, '/getsheet', { token: user.token, fid }, 12);
}

/** multipart/form-data of [name, value] fields and [name, Buffer, filename, type] files. */
export function multipart(fields) {
	const boundary = `----------------${crypto.randomBytes(8).toString('hex')}`;
	const parts = fields.flatMap(([name, value, filename, type]) => [
		`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n` +
			`${type ? `Content-Type: ${type}\r\n` : ''}\r\n`,
		value,
		'\r\n',
	]);
	const body = Buffer.concat([...parts, `--${boundary}--\r\n`].map((part) => Buffer.from(part)));
	return {
		body,
		headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, 'content-length': body.length },
	};
}

/* Tokens, for forging them. */
const encode = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

export function tokenParts(token) {
	const [header, claims, signature] = token.split('.');
	return {
		header: JSON.parse(Buffer.from(header, 'base64url')),
		claims: JSON.parse(Buffer.from(claims, 'base64url')),
		signature,
	};
}

export function tokenClaims(token) {
	return tokenParts(token).claims;
}

export function signToken(header, claims, key, hash = 'sha256') {
	const signed = `${encode(header)}.${encode(claims)}`;
	return `${signed}.${crypto.createHmac(hash, key).update(signed).digest('base64url')}`;
}

export function unsignedToken(header, claims, signature = '') {
	return `${encode(header)}.${encode(claims)}.${signature}`;
}

/** A live editor of one sheet. */
export class Editor {
	/**
	 * Connects and waits for onConn. nack: ask for refusals; token, path, headers: to connect in a wrong way;
	 * grid: false skips keeping a copy of the cells; timeoutMs: for the handshake, and again for onConn.
	 */
	static async open(gateway, user, fid, options = {}) {
		const editor = new Editor(gateway, user, fid, options);
		await editor.opened;
		editor.onConn = await editor.next((message) => true, options.timeoutMs ?? 30000);
		assert.equal(editor.onConn.msgType, 'onConn', 'the first message is onConn');
		editor.startGrid(editor.onConn.body);
		return editor;
	}

	constructor(
		gateway,
		user,
		fid,
		{ nack = false, token = user?.token, path, headers = {}, extra = '', protocols = [], timeoutMs } = {},
	) {
		const query = path ?? `/sheetws?token=${encodeURIComponent(token)}&fid=${fid}${nack ? '&nack=1' : ''}${extra}`;
		this.user = user;
		this.messages = [];
		this.frames = [];
		this.position = 0;
		this.closed = null;
		this.socket = new WebSocket(`${gateway.tls ? 'wss' : 'ws'}://${gateway.host}${query}`, protocols, {
			...gateway.tls,
			perMessageDeflate: true,
			headers,
			handshakeTimeout: timeoutMs,
			maxPayload: 256 << 20,
		});
		this.opened = new Promise((resolve, reject) => {
			this.socket.once('open', resolve);
			this.socket.once('error', reject);
			this.socket.once('unexpected-response', (_request, answer) => {
				const parts = [];
				answer.on('data', (part) => parts.push(part));
				answer.on('end', () => {
					const text = Buffer.concat(parts).toString();
					const refusal = { status: answer.statusCode, headers: answer.headers, text };
					const problem = undocumented('GET', query, refusal);
					const error = new Error(problem ?? `upgrade refused: ${answer.statusCode} ${text}`);
					Object.assign(error, problem ? {} : refusal);
					try {
						error.json = JSON.parse(text);
					} catch {
						// The test looks at text.
					}
					reject(error);
				});
			});
		});
		this.opened.catch(() => {});
		this.socket.on('error', (error) => (this.error = error));
		this.socket.on('message', (data, isBinary) => {
			assert.equal(isBinary, false, 'server frames are text');
			const message = JSON.parse(data.toString());
			this.messages.push(message);
			this.frames.push(data);
			if (this.cells) this.apply(message);
		});
		this.socket.on('close', (code, reason) => (this.closed = { code, reason: reason.toString() }));
	}

	startGrid({ columns, content }) {
		this.cells = new Map();
		content.forEach((text, i) => this.setCell(Math.floor(i / columns), i % columns, text));
		for (const message of this.messages.slice(1)) this.apply(message);
	}

	setCell(row, col, content) {
		if (content === '') this.cells.delete(`${row},${col}`);
		else this.cells.set(`${row},${col}`, content);
	}

	apply({ msgType, body }) {
		if (msgType === 'modify') this.setCell(body.row, body.col, body.content);
	}

	/** The cells that hold something, sorted, for comparing editors with each other and with the database. */
	grid() {
		return [...this.cells].sort(([a], [b]) => (a < b ? -1 : 1));
	}

	send(msgType, body, { binary = false } = {}) {
		this.socket.send(JSON.stringify({ msgType, body }), { binary });
	}

	sendRaw(data, options) {
		this.socket.send(data, options);
	}

	modify(row, col, content, info) {
		this.send('modify', { row, col, content, info });
	}

	acquire(row, col) {
		this.send('acquire', { row, col });
	}

	release(row, col) {
		this.send('release', { row, col });
	}

	/** The next message, not yet taken, that the predicate accepts; those before it are skipped. */
	async next(predicate = () => true, timeoutMs = 30000) {
		let found;
		const look = () => {
			while (this.position < this.messages.length) {
				const message = this.messages[this.position++];
				if (predicate(message)) {
					found = message;
					return true;
				}
			}
			if (this.closed) throw new Error(`the connection was closed: ${JSON.stringify(this.closed)}`);
			return false;
		};
		const end = Date.now() + timeoutMs;
		while (!look()) {
			if (Date.now() > end)
				throw new Error(
					`no such message in ${timeoutMs} ms: ${predicate}; last ones: ${JSON.stringify(this.messages.slice(-3)).slice(0, 600)}`,
				);
			await new Promise((resolve) => {
				const wake = () => {
					clearTimeout(timer);
					this.socket.off('message', wake);
					this.socket.off('close', wake);
					resolve();
				};
				const timer = setTimeout(wake, 50);
				this.socket.once('message', wake);
				this.socket.once('close', wake);
			});
		}
		return found;
	}

	nextOf(msgType, timeoutMs) {
		return this.next((message) => message.msgType === msgType, timeoutMs);
	}

	nextModify(row, col, content, timeoutMs) {
		return this.next(
			({ msgType, body }) =>
				msgType === 'modify' &&
				body.row === row &&
				body.col === col &&
				(content === undefined || body.content === content),
			timeoutMs,
		);
	}

	modifies() {
		return this.messages.filter((message) => message.msgType === 'modify').map((message) => message.body);
	}

	/** Sends an edit of a cell nobody else uses and waits for its echo: all that was sent before it has been handled. */
	async settle(row = 0, col = 0) {
		const content = `settled ${uniqueName('')}`;
		this.modify(row, col, content);
		return this.nextModify(row, col, content);
	}

	async waitClosed(timeoutMs = 30000) {
		await waitUntil(() => this.closed, 'the connection to be closed', timeoutMs, 5);
		return this.closed;
	}

	async close() {
		if (!this.closed) this.socket.close(1000);
		await this.waitClosed();
	}

	/** Drops TCP without a word. */
	terminate() {
		this.socket.terminate();
	}
}
