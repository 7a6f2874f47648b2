/*
 * strict_socket.mjs - a WebSocket client that takes nothing for granted: it checks every byte that the gateway sends, over TCP
 * or TLS, and reads when and as fast as it is told.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import net from 'node:net';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import { waitUntil } from './processes.mjs';
import { clientFrame, upgradeHead } from './raw_socket.mjs';

/*
 * Carries bytes to and from a socket that takes little before somebody reads it; Node cannot ask for that, Perl can. One
 * process for each way, so that either may stand still.
 */
const narrowProgram = String.raw`
use strict; use Socket qw(:DEFAULT IPPROTO_TCP TCP_MAXSEG);
socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
setsockopt($s, SOL_SOCKET, SO_RCVBUF, pack 'i', 4096) or die;
setsockopt($s, IPPROTO_TCP, TCP_MAXSEG, pack 'i', 1400) or die;
connect($s, sockaddr_in($ARGV[0], inet_aton('127.0.0.1'))) or die;
sub carry {
	my ($from, $to) = @_;
	while (sysread($from, my $bytes, 4096)) {
		for (my $at = 0; $at < length $bytes;) { $at += syswrite($to, $bytes, length($bytes) - $at, $at) || exit }
	}
}
if (fork) { close STDIN; carry($s, \*STDOUT) } else { close STDOUT; carry(\*STDIN, $s); shutdown($s, 1) }`;

function openNarrow(gateway) {
	const child = spawn('perl', ['-e', narrowProgram, gateway.port], { stdio: ['pipe', 'pipe', 'inherit'] });
	const duplex = new Duplex({
		allowHalfOpen: true,
		highWaterMark: 4096,
		read: () => child.stdout.resume(),
		write: (bytes, encoding, done) => child.stdin.write(bytes, done),
		final: (done) => child.stdin.end(done),
		destroy: (error, done) => {
			child.stdin.destroy();
			child.kill('SIGKILL');
			done(error);
		},
	});
	child.stdout.on('data', (bytes) => duplex.push(bytes) || child.stdout.pause());
	child.stdout.on('end', () => duplex.push(null));
	child.stdin.on('error', () => {});
	return duplex;
}

export class StrictSocket {
	/**
	 * narrow: little is under way between the gateway and this client. hear(text or bytes) gets each message. early: bytes sent
	 * with the upgrade.
	 */
	constructor(gateway, user, fid, { narrow = false, protocol, hear = () => {}, early = Buffer.alloc(0) } = {}) {
		Object.assign(this, { hear, rest: Buffer.alloc(0), upgraded: false, ended: false, pongs: [], pings: 0, messages: 0, close: undefined, wrong: null, message: null });
		const to = { port: gateway.port, host: '127.0.0.1', allowHalfOpen: true };
		const plain = narrow ? openNarrow(gateway) : null;
		if (gateway.tls) this.socket = tls.connect({ ...(plain ? { socket: plain, host: to.host } : to), ...gateway.tls, servername: '' });
		else this.socket = plain ?? net.connect(to);
		this.plain = plain ?? this.socket;
		if (!narrow) this.socket.setNoDelay(true);
		this.socket.on('data', (bytes) => {
			try {
				this.take(bytes);
			} catch (error) {
				this.wrong ??= error;
			}
		});
		for (const event of ['end', 'close']) this.socket.on(event, () => (this.ended = true));
		this.socket.on('error', () => {});
		const changes = protocol ? { 'Sec-WebSocket-Protocol': protocol } : {};
		this.socket.write(Buffer.concat([Buffer.from(upgradeHead(gateway, user, fid, { changes })), early]));
	}

	send(text) {
		const payload = Buffer.from(text);
		return this.socket.write(clientFrame(typeof text === 'string' ? 0x81 : 0x82, payload));
	}

	write(bytes) {
		return this.socket.write(bytes);
	}

	take(bytes) {
		this.rest = this.rest.length > 0 ? Buffer.concat([this.rest, bytes]) : bytes;
		if (!this.upgraded) {
			const end = this.rest.indexOf('\r\n\r\n');
			if (end < 0) return;
			assert.match(this.rest.subarray(0, end).toString('latin1'), /^HTTP\/1\.1 101 /);
			this.upgraded = true;
			this.rest = this.rest.subarray(end + 4);
		}
		while (this.takeFrame());
	}

	takeFrame() {
		const { rest } = this;
		if (rest.length === 0) return false;
		assert.equal(this.close, undefined, 'nothing follows a close frame');
		const expected = this.message ? [0x00, 0x80] : [0x01, 0x02, 0x81, 0x82];
		assert.ok([...expected, 0x88, 0x89, 0x8a].includes(rest[0]), `a frame begins with ${rest[0].toString(16)}`);
		if (rest.length < 2) return false;
		assert.ok(rest[1] < 0x80, 'a frame is masked');
		assert.ok(rest[0] < 0x88 || rest[1] <= 125, 'a control frame is long');
		let [length, header] = [rest[1], 2];
		if (length >= 126) {
			header = length === 126 ? 4 : 10;
			if (rest.length < header) return false;
			length = header === 4 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
			assert.ok(length > (header === 4 ? 125 : 65535) && length < 1 << 26, `a length of ${length} in ${header} bytes`);
		}
		if (rest.length < header + length) return false;
		const payload = rest.subarray(header, header + length);
		this.rest = rest.subarray(header + length);
		this.takePayload(rest[0], payload);
		return true;
	}

	takePayload(first, payload) {
		if (first === 0x8a) this.pongs.push(payload.toString());
		else if (first === 0x89) {
			this.pings++;
			if (this.answers !== false) this.write(clientFrame(0x8a, payload));
		} else if (first === 0x88) {
			assert.notEqual(payload.length, 1);
			this.close = payload.length > 0 ? payload.readUInt16BE() : null;
			this.reason = new TextDecoder('utf-8', { fatal: true }).decode(payload.subarray(2));
		} else {
			this.message ??= { binary: (first & 0x0f) === 2, parts: [] };
			this.message.parts.push(payload);
			if (first < 0x80) return;
			const { binary, parts } = this.message;
			const whole = Buffer.concat(parts);
			this.message = null;
			this.messages++;
			this.hear(binary ? whole : new TextDecoder('utf-8', { fatal: true }).decode(whole));
		}
	}

	pause() {
		this.socket.pause();
	}

	resume() {
		this.socket.resume();
	}

	async waitFor(probe, what, timeoutMs = 30000) {
		await waitUntil(() => this.wrong || probe(), what, timeoutMs, 5);
		if (this.wrong) throw this.wrong;
	}

	/** Until the connection has ended; the code of the close frame, undefined without one. */
	async waitEnd(timeoutMs) {
		await this.waitFor(() => this.ended, 'the end of the connection', timeoutMs);
		return this.close;
	}

	destroy() {
		this.socket.destroy();
		this.plain.destroy();
	}
}
