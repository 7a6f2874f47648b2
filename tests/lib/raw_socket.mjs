/*
 * raw_socket.mjs - a WebSocket by hand: for frames, handshakes and silences that a client library does not produce.
 */
import { spawn } from 'node:child_process';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { once } from 'node:events';
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

/** The whole frames among a server's bytes: {opcode, payload}. */
export function serverFrames(bytes) {
	const found = [];
	let at = 0;
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

/** The codes of the close frames among them; null: one without a code. */
const closeCodesOf = (frames) =>
	frames.filter(({ opcode }) => opcode === 8).map(({ payload }) => (payload.length >= 2 ? payload.readUInt16BE() : null));

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

	waitFor(probe, what, timeoutMs = 30000) {
		return waitUntil(probe, what, timeoutMs, 5);
	}

	/** The HTTP status of the answer, 0 when there is none. */
	status() {
		return Number(/^HTTP\/1\.[01] (\d{3})/.exec(this.bytes().toString('latin1'))?.[1] ?? 0);
	}

	/** The whole frames that have come: {opcode, payload}. */
	frames() {
		const bytes = this.bytes();
		return serverFrames(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4));
	}

	/** The codes of the close frames that have come; null: one without a code. */
	closeCodes() {
		return closeCodesOf(this.frames());
	}

	/** Until a close frame or the end of the connection; the code, undefined without a close frame. */
	async waitCode(timeoutMs = 30000) {
		await this.waitFor(() => this.ended || this.closeCodes().length > 0, 'a close frame', timeoutMs);
		return this.closeCodes()[0];
	}

	waitEnd(timeoutMs = 30000) {
		return this.waitFor(() => this.ended, 'the end of the connection', timeoutMs);
	}

	destroy() {
		this.socket.destroy();
	}
}

/*
 * A socket that takes little before somebody reads it; Node cannot ask for that, Perl can. It writes the upgrade and, when that
 * is answered, the frame, and reads what comes up to the bytes that it is told; the rest when its input ends.
 */
const silentProgram = String.raw`
use strict; use Socket qw(:DEFAULT IPPROTO_TCP TCP_MAXSEG); $| = 1;
my ($port, $head, $frame, $until) = ($ARGV[0], map { pack 'H*', $_ } @ARGV[1..3]);
socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
setsockopt($s, SOL_SOCKET, SO_RCVBUF, pack 'i', 4096) or die;
setsockopt($s, IPPROTO_TCP, TCP_MAXSEG, pack 'i', 1400) or die; # what the other side reckons its buffer with
connect($s, sockaddr_in($port, inet_aton('127.0.0.1'))) or die;
sub hear {
	my $heard = '';
	while (index($heard, $_[0]) < 0) { sysread($s, $heard, 4096, length $heard) or die "closed behind $heard\n" }
	return $heard;
}
syswrite($s, $head); hear("\r\n\r\n");
syswrite($s, $frame);
my $heard = hear($until);
print "silent\n"; <STDIN>;
while (sysread($s, $heard, 65536, length $heard)) {}
print unpack('H*', $heard), "\n";`;

/** A member of protocol v2 that has been told hello, and then reads nothing until it is asked what has come. */
export class SilentMember {
	static async open(gateway, user, fid) {
		const member = new SilentMember();
		const head = upgradeHead(gateway, user, fid, { changes: { 'Sec-WebSocket-Protocol': 'sheet.v2' } });
		const hello = clientFrame(0x81, Buffer.from(JSON.stringify({ t: 'hello', v: 2, token: user.token })));
		const bytes = [head, hello, '"locks":'].map((text) => Buffer.from(text).toString('hex'));
		member.output = '';
		member.child = spawn('perl', ['-e', silentProgram, gateway.port, ...bytes], { stdio: ['pipe', 'pipe', 'inherit'] });
		member.child.stdout.on('data', (data) => (member.output += data));
		member.ended = once(member.child, 'close');
		await waitUntil(() => member.output !== '' || member.child.exitCode !== null, 'the silent member to have joined');
		assert.equal(member.output, 'silent\n');
		return member;
	}

	/** Reads to the end of the connection; the codes of the close frames. */
	async closeCodes() {
		this.child.stdin.end();
		await this.ended;
		return closeCodesOf(serverFrames(Buffer.from(this.output.split('\n')[1], 'hex')));
	}

	end() {
		this.child.kill('SIGKILL');
	}
}
