/*
 * memory.test.mjs - the most memory that a gateway takes (docs/OPERATIONS.md, "Memory"): everything that is bounded there is
 * filled at the same time, with small settings, by clients that do not read or do not go on.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from '../lib/cluster.mjs';
import { Editor, multipart, newSheet, post, register, request, shareByLink } from '../lib/client.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { RawSocket, clientFrame } from '../lib/raw_socket.mjs';
import { RawClient } from '../lib/v2.mjs';

const kB = 1024;
const MB = 1024 * kB;
const settings = {
	'password-memory': MB,
	'snapshot-bytes': 32 * MB,
	'range-cache-bytes': 4 * MB,
	'max-header-bytes': 16 * kB,
	'max-body-bytes': 512 * kB,
	'max-frame-bytes': 512 * kB,
	'send-queue-bytes': MB,
};
/* How many of each kind there are. */
const load = { sheets: 40, logs: 20, downloads: 20, uploads: 20, bodies: 30, heads: 30, windows: 30, blocks: 20, messages: 30, refused: 20, held: 6, flooded: 4 };

/** The formula of docs/OPERATIONS.md, for this load. */
function most() {
	const http = 2 * settings['max-header-bytes'] + 0.2 * MB;
	const socket = 0.5 * MB + 2 * settings['max-frame-bytes'] + settings['send-queue-bytes'];
	const sheet = 8 * settings['send-queue-bytes'];
	const sender = 0.2 * MB;
	const { sheets, logs, downloads, uploads, bodies, heads, windows, blocks, messages, refused, held, flooded } = load;
	return Object.entries({
		process: 24 * MB,
		passwords: 3 * settings['password-memory'],
		snapshots: settings['snapshot-bytes'],
		windows: settings['range-cache-bytes'] + 64 * MB,
		database: 4 * MB * 7,
		http: http * (sheets + logs + downloads + uploads + bodies + heads + windows),
		bodies: 2 * settings['max-body-bytes'] * bodies,
		files: MB * (downloads + uploads),
		logs: 2 * MB * logs,
		sockets: socket * (blocks + messages + refused + held + 2 * flooded) + 2 * MB * blocks,
		sheets: (sheet + sender) * (held + flooded) + sheet,
	}).reduce((sum, [, bytes]) => sum + bytes, 0);
}

let cluster;
let gateway;
let anna;
let ben;
let others;
before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { ...settings, 'stall-seconds': 600, 'head-seconds': 600, 'block-seconds': 600 } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
	others = await times(8, () => register(gateway));
});
after(() => cluster?.stop());

const headOf = (method, path, headers) =>
	`${method} ${path} HTTP/1.1\r\nHost: ${gateway.host}\r\n${Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;

/** A request that is not ended, or whose answer is not read. */
function stalled(bytes) {
	const socket = net.connect({ port: gateway.port, host: '127.0.0.1' });
	socket.on('error', () => {});
	socket.write(bytes);
	return socket;
}

function stalledPost(path, body) {
	const text = JSON.stringify(body);
	return stalled(headOf('POST', path, { 'Content-Type': 'application/json', 'Content-Length': text.length }) + text);
}

const times = (count, make) => Promise.all(Array.from({ length: count }, (_, i) => make(i)));

async function filled(rows, columns, length) {
	const fid = await newSheet(gateway, anna, { rows, columns });
	await cluster.psql(
		`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(line) FROM (SELECT array_agg(r || ' ' || c || repeat('x', ${length})) AS line FROM generate_series(1, ${rows}) r, generate_series(1, ${columns}) c GROUP BY r) l))`,
	);
	await shareByLink(gateway, anna, fid, 'viewer', ben, ...others);
	return fid;
}

test('with everything filled that has a bound, the gateway stays below their sum', async (t) => {
	const open = [];
	t.after(() => {
		for (const socket of open) (socket.terminate ?? socket.destroy).call(socket);
	});
	const sheets = await times(4, () => filled(300, 300, 120)); // 12 MB each, more than sockets hold
	const small = await filled(10, 10, 3);
	await cluster.psql(`SELECT sheet.set(${small}, 'A1', '${'x'.repeat(30000)}')`);
	const files = await times(2, async () => {
		const { body, headers } = multipart([
			['fid', String(sheets[0])],
			['token', anna.token],
			['uploadfile', Buffer.alloc(8 * MB, 7), 'large.bin', 'application/octet-stream'],
		]);
		return (await request(gateway, 'POST', '/uploadchunk', { headers, body })).json.data;
	});
	const begun = gateway.memory() / 1024;

	// HTTP: answers that nobody reads, bodies and heads that do not end.
	open.push(...(await times(load.sheets, (i) => stalledPost('/getsheet', { token: [anna, ben][i % 2].token, fid: sheets[i % 4] }))));
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_snapshot_bytes > 20 * MB, 'two sheets to be held', 20000);
	open.push(...(await times(load.logs, (i) => stalledPost('/getsheetlog', { token: others[i % 8].token, fid: sheets[i % 4], lid: 1 }))));
	open.push(...(await times(load.downloads, (i) => stalled(headOf('GET', `/getchunk?fid=${sheets[0]}&chunk=${encodeURIComponent(files[i % 2])}&token=${anna.token}`, {})))));
	open.push(
		...(await times(load.uploads, (i) => {
			const { body, headers } = multipart([
				['fid', String(sheets[0])],
				['token', anna.token],
				['uploadfile', Buffer.alloc(4 * MB, 7), `${i}.bin`, 'application/octet-stream'],
			]);
			const socket = stalled(headOf('POST', '/uploadchunk', headers));
			socket.write(body.subarray(0, body.length - 10));
			return socket;
		})),
	);
	open.push(...(await times(load.bodies, () => stalled(headOf('POST', '/getsheet', { 'Content-Length': settings['max-body-bytes'] }) + ' '.repeat(settings['max-body-bytes'] - 10)))));
	open.push(...(await times(load.heads, () => stalled(`GET / HTTP/1.1\r\nX-Long: ${'x'.repeat(settings['max-header-bytes'] - 100)}`))));
	open.push(
		...(await times(load.windows, (i) =>
			stalled(headOf('GET', `/v2/sheets/${sheets[i % 4]}/cells?row=${i}&col=0&toRow=${i + 60}&toCol=150`, { Authorization: `Bearer ${anna.token}` })),
		)),
	);

	// WebSockets: messages that do not end, blocks and refusals that nobody reads.
	open.push(
		...(await times(load.messages, async () => {
			const raw = await RawSocket.open(gateway, anna, await newSheet(gateway, anna));
			for (let sent = 0; sent + 64 * kB < settings['max-frame-bytes']; sent += 64 * kB) raw.write(clientFrame(sent === 0 ? 1 : 0, Buffer.alloc(64 * kB, 'x')));
			return raw;
		})),
	);
	open.push(
		...(await times(load.blocks, async (i) => {
			const client = await RawClient.open(gateway, [anna, ben][i % 2], sheets[3]);
			client.socket.pause();
			for (let n = 1; n <= 30; n++) client.send({ t: 'get', id: n, row: 0, col: 0, toRow: 99, toCol: 99 });
			return client.socket;
		})),
	);
	open.push(
		...(await times(load.refused, async () => {
			const viewer = await Editor.open(gateway, ben, small, { nack: true });
			viewer.socket.pause();
			for (let n = 0; n < 200; n++) viewer.modify(0, 0, 'x');
			return viewer.socket;
		})),
	);

	// Sheets: edits that wait for a transaction, and others that a slow member is behind with.
	const long = 'y'.repeat(30000);
	const holder = cluster.psqlSession();
	const held = await times(load.held, async () => {
		const fid = await newSheet(gateway, anna);
		return { fid, editor: await Editor.open(gateway, anna, fid) };
	});
	await holder.query(`BEGIN; ${held.map(({ fid }) => `SELECT sheet.set(${fid}, 'J10', 'held')`).join('; ')}`);
	for (const { editor } of held) {
		for (let n = 0; n < 300; n++) editor.modify(n % 10, 0, long); // 9 MB
		open.push(editor.socket);
	}
	const flooded = await times(load.flooded, async () => {
		const fid = await newSheet(gateway, anna);
		const slow = await Editor.open(gateway, anna, fid);
		const editor = await Editor.open(gateway, anna, fid);
		slow.socket.pause();
		for (let n = 0; n < 1000; n++) editor.modify(n % 10, 0, long); // 30 MB
		open.push(slow.socket, editor.socket);
		return editor;
	});
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_sender_pauses_total > load.held, 'senders to be paused', 20000);
	await waitUntil(() => flooded.every((editor) => editor.messages.length > 900 || editor.closed), 'the floods to pass', 60000);
	await sleep(1000);

	// The gateway goes on with what is small.
	const fresh = await newSheet(gateway, ben);
	assert.equal((await post(gateway, '/getsheet', { token: ben.token, fid: fresh })).status, 200);
	const metrics = await gateway.metrics();
	const bound = most() / MB;
	const peak = gateway.memory('VmHWM') / 1024;
	t.diagnostic(`${begun.toFixed(0)} MiB before, at most ${peak.toFixed(0)} MiB, of ${bound.toFixed(0)}`);
	assert.ok(metrics.pg_sheet_snapshot_bytes > settings['snapshot-bytes'] / 2 && metrics.pg_sheet_snapshot_bytes < settings['snapshot-bytes'] + 2 * MB, `${metrics.pg_sheet_snapshot_bytes}`);
	assert.ok(metrics.pg_sheet_snapshot_refused_total > 0);
	assert.ok(peak < bound, `${peak} MiB of ${bound}`);
	await holder.query('ROLLBACK');
	await holder.close();
	for (const socket of open.splice(0)) (socket.terminate ?? socket.destroy).call(socket);
	await waitUntil(async () => (await gateway.metrics()).pg_sheet_sessions === 0, 'all to be gone', 20000);
});
