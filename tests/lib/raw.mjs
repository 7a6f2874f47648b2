/*
 * raw.mjs - HTTP byte by byte, for the tests: what a well-behaved client library would never send, and answers read as
 * they come. Over TLS when the connection is given options for it.
 */
import net from 'node:net';
import tls from 'node:tls';
import { waitUntil } from './processes.mjs';

export class RawConnection {
	/** tls: options for tls.connect. */
	static async open(gateway, { tls: secure, ...options } = {}) {
		const connection = new RawConnection();
		connection.received = Buffer.alloc(0);
		connection.ended = false;
		connection.closed = false;
		const to = { port: gateway.port, host: '127.0.0.1', ...options };
		connection.socket = secure ? tls.connect({ ...to, ...secure }) : net.connect(to);
		await new Promise((resolve, reject) => {
			connection.socket.once(secure ? 'secureConnect' : 'connect', resolve);
			connection.socket.once('error', reject);
		});
		connection.socket.on('data', (bytes) => (connection.received = Buffer.concat([connection.received, bytes])));
		connection.socket.on('error', (error) => (connection.error = error));
		connection.socket.on('end', () => (connection.ended = true));
		connection.socket.on('close', () => (connection.closed = true));
		return connection;
	}

	send(bytes) {
		this.socket.write(bytes);
		return this;
	}

	/** The next answer: {status, headers, body, text, json}. head: it answers HEAD, and so has no body. */
	async answer({ head = false, timeoutMs = 30000 } = {}) {
		let found;
		await waitUntil(
			() => {
				found = this.take(head);
				if (!found && (this.ended || this.closed)) throw new Error(`closed without an answer: ${JSON.stringify(this.received.toString('latin1').slice(0, 300))}`);
				return found;
			},
			'an answer',
			timeoutMs,
			2,
		);
		return found;
	}

	take(head) {
		const end = this.received.indexOf('\r\n\r\n');
		if (end < 0) return undefined;
		const [line, ...lines] = this.received.subarray(0, end).toString('latin1').split('\r\n');
		const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
		const headers = Object.fromEntries(lines.map((text) => [text.slice(0, text.indexOf(':')).toLowerCase(), text.slice(text.indexOf(':') + 1).trim()]));
		const length = head || status < 200 || status === 204 || status === 304 ? 0 : Number(headers['content-length']);
		if (this.received.length < end + 4 + length) return undefined;
		const body = this.received.subarray(end + 4, end + 4 + length);
		this.received = this.received.subarray(end + 4 + length);
		const text = body.toString();
		let json;
		try {
			json = JSON.parse(text);
		} catch {
			// Not every answer is JSON.
		}
		return { status, headers, body, text, json };
	}

	/** Resolves when the gateway has ended the connection. */
	waitClosed(timeoutMs = 30000) {
		return waitUntil(() => this.ended || this.closed, 'the connection to be closed', timeoutMs, 2);
	}

	close() {
		this.socket.destroy();
	}
}

/** One request as bytes, one answer, and whether the connection was closed behind it. */
export async function rawExchange(gateway, bytes, options) {
	const connection = await RawConnection.open(gateway, options);
	try {
		return await connection.send(bytes).answer(options);
	} finally {
		connection.close();
	}
}
