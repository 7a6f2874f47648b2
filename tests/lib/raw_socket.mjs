/*
 * raw_socket.mjs - a WebSocket by hand: for frames, handshakes and silences that a client library does not produce.
 */
import crypto from 'node:crypto';
import net from 'node:net';
import { waitUntil } from './processes.mjs';

/**
 * A client's frame. first: FIN, reserved bits and opcode; masked: as clients must; length: what the header says
 * (default: the payload's).
 */
export function clientFrame(first, payload = Buffer.alloc(0), { masked = true, length = BigInt(payload.length) } = {}) {
	const bit = masked ? 0x80 : 0;
	let head;
	if (length < 126n) head = Buffer.from([first, bit | Number(length)]);
	else if (length < 65536n) {
		head = Buffer.from([first, bit | 126, 0, 0]);
		head.writeUInt16BE(Number(length), 2);
	} else {
		head = Buffer.from([first, bit | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
		head.writeBigUInt64BE(length, 2);
	}
	if (!masked) return Buffer.concat([head, payload]);
	const mask = crypto.randomBytes(4);
	const masking = Buffer.concat([head, mask, payload]);
	for (let i = 0, at = head.length + 4; i < payload.length; i++) masking[at + i] ^= mask[i & 3];
	return masking;
}

export function closeFrame(code, reason = '') {
	const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
	payload.writeUInt16BE(code);
	payload.write(reason, 2);
	return clientFrame(0x88, payload);
}

/** The head of an upgrade; changes replaces headers by name, null leaves one out. */
export function upgradeHead(gateway, user, fid, { changes = {}, method = 'GET', version = 'HTTP/1.1', extra = '' } = {}) {
	const headers = {
		Host: gateway.host,
		Upgrade: 'websocket',
		Connection: 'Upgrade',
		'Sec-WebSocket-Key': crypto.randomBytes(16).toString('base64'),
		'Sec-WebSocket-Version': '13',
		...changes,
	};
	const lines = Object.entries(headers)
		.filter(([, value]) => value !== null)
		.map(([name, value]) => `${name}: ${value}\r\n`);
	return `${method} /sheetws?token=${user.token}&fid=${fid}${extra} ${version}\r\n${lines.join('')}\r\n`;
}

export class RawSocket {
	constructor(gateway) {
		this.received = [];
		this.ended = false;
		this.socket = net.connect({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true });
		this.socket.on('data', (data) => this.received.push(data));
		this.socket.on('end', () => (this.ended = true));
		this.socket.on('close', () => (this.ended = true));
		this.socket.on('error', () => {});
	}

	/** Upgraded and told of the sheet. */
	static async open(gateway, user, fid, options) {
		const raw = new RawSocket(gateway);
		raw.write(upgradeHead(gateway, user, fid, options));
		await raw.waitFor(() => raw.bytes().includes('onConn'), 'onConn on a raw socket');
		return raw;
	}

	write(data) {
		return this.socket.write(data);
	}

	bytes() {
		if (this.received.length > 1) this.received = [Buffer.concat(this.received)];
		return this.received[0] ?? Buffer.alloc(0);
	}

	waitFor(probe, what, timeoutMs = 10000) {
		return waitUntil(probe, what, timeoutMs, 5);
	}

	/** The HTTP status of the answer, 0 when there is none. */
	status() {
		return Number(/^HTTP\/1\.[01] (\d{3})/.exec(this.bytes().toString('latin1'))?.[1] ?? 0);
	}

	/** The whole frames that have come: {opcode, payload}. */
	frames() {
		const bytes = this.bytes();
		const found = [];
		let at = bytes.indexOf('\r\n\r\n') + 4;
		while (at + 2 <= bytes.length) {
			let length = bytes[at + 1] & 0x7f;
			let header = 2;
			if (length === 126) [length, header] = [at + 4 <= bytes.length ? bytes.readUInt16BE(at + 2) : Infinity, 4];
			else if (length === 127)
				[length, header] = [at + 10 <= bytes.length ? Number(bytes.readBigUInt64BE(at + 2)) : Infinity, 10];
			if (at + header + length > bytes.length) break;
			found.push({ opcode: bytes[at] & 0x0f, payload: bytes.subarray(at + header, at + header + length) });
			at += header + length;
		}
		return found;
	}

	/** The codes of the close frames that have come; null: one without a code. */
	closeCodes() {
		return this.frames()
			.filter(({ opcode }) => opcode === 8)
			.map(({ payload }) => (payload.length >= 2 ? payload.readUInt16BE() : null));
	}

	/** Until a close frame or the end of the connection; the code, undefined without a close frame. */
	async waitCode(timeoutMs = 10000) {
		await this.waitFor(() => this.ended || this.closeCodes().length > 0, 'a close frame', timeoutMs);
		return this.closeCodes()[0];
	}

	waitEnd(timeoutMs = 10000) {
		return this.waitFor(() => this.ended, 'the end of the connection', timeoutMs);
	}

	destroy() {
		this.socket.destroy();
	}
}
