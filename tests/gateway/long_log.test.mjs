/* POST /getsheetlog of a log that is much larger than what the gateway keeps of it at a time. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { Cluster } from '../lib/cluster.mjs';
import { newSheet, post, register, request } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { waitUntil } from '../lib/processes.mjs';

const edits = 9000;
let cluster;
let gateway;
let user;
let fid;
let log; // what the database says it is

before(async () => {
	cluster = await Cluster.start({ measured: true, postgres: { 'pg_sheet.version_edits': 0, 'pg_sheet.version_bytes': 0 } });
	[gateway] = cluster.gateways;
	user = await register(gateway);
	fid = await newSheet(gateway, user);
	// Short edits, then long ones, then short ones: pages are of one size in bytes, not in edits.
	await cluster.psql(
		`SELECT count(sheet.set(${fid}, i % 50, i / 200 % 10, i || repeat('ü', CASE WHEN i / 2000 = 3 THEN 3000 ELSE 3 END))) FROM generate_series(1, ${edits}) i`,
	);
	log = JSON.parse(
		await cluster.psql(
			`SELECT json_agg(json_build_array("row", col, coalesce(old, ''), new) ORDER BY seq) FROM sheet.log WHERE sheet_id = ${fid}`,
		),
	);
});
after(() => cluster?.stop());

const asLogged = (data) => data.map(({ row, col, old, new: content }) => [row, col, old, content]);
const body = () => JSON.stringify({ token: user.token, fid, lid: 1 });

test('it comes whole, in its order, and the gateway stays small', async (t) => {
	const before = gateway.memory();
	const answer = await post(gateway, '/getsheetlog', body());
	const grown = gateway.memory() - before;
	assert.equal(answer.status, 200);
	assert.equal(answer.headers['transfer-encoding'], 'chunked');
	assert.deepEqual([answer.json.success, answer.json.msg], [true, 23]);
	assert.ok(log.length > edits);
	assert.deepEqual(asLogged(answer.json.data), log);
	t.diagnostic(`${answer.body.length} bytes; the gateway grew by ${grown} kB`);
	assert.ok(answer.body.length > 15e6 && grown < 16384, `${answer.body.length} bytes; the gateway grew by ${grown} kB`);
	// The connection goes on: nothing is left over behind the last chunk.
	assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
});

test('of an account that asks for more than it may have at a time, each answer that begins is whole', async () => {
	const counts = { 200: 0, 503: 0 };
	// The next request takes the place in the queue that an answer under way has left between two of its pages.
	const ask = async () => {
		while (counts[200] < 12) {
			const answer = await post(gateway, '/getsheetlog', body());
			counts[answer.status]++;
			if (answer.status === 200) assert.equal(answer.json.data.length, log.length);
		}
	};
	await Promise.all(Array.from({ length: 12 }, ask));
	assert.ok(counts[503] > 0, JSON.stringify(counts));
});

test('HTTP/1.0 gets it without chunks, up to the end of the connection', async () => {
	const text = await new Promise((resolve, reject) => {
		const parts = [];
		const socket = net.connect(gateway.port, '127.0.0.1', () =>
			socket.write(
				`POST /getsheetlog HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: ${body().length}\r\n\r\n${body()}`,
			),
		);
		socket.on('data', (part) => parts.push(part));
		socket.on('error', reject);
		socket.on('end', () => resolve(Buffer.concat(parts).toString()));
	});
	const [head] = text.split('\r\n\r\n', 1);
	assert.match(head, /^HTTP\/1\.1 200 OK/);
	assert.doesNotMatch(head, /transfer-encoding|content-length/i);
	assert.deepEqual(asLogged(JSON.parse(text.slice(head.length + 4)).data), log);
});

/* Its kernel takes little at a time, and it reads slowly until it has got a long edit, which it says on stderr. */
const slowClient = `
import socket, sys, time
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
connection.connect(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"POST /getsheetlog HTTP/1.0\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(sys.argv[2]) + sys.argv[2].encode())
short, taken = True, 0
while part := connection.recv(4096):
    sys.stdout.buffer.write(part)
    taken += len(part)
    if short:
        time.sleep(0.01 if taken < 400000 else 0.05)
        short = "ü".encode() * 100 not in part
        print("" if short else "long", end="", file=sys.stderr, flush=True)
`;

test('a part of a page that is sent before the rest of the page has come is followed by that rest', async () => {
	const proxy = await PgProxy.start(cluster, gateway);
	try {
		/* The first page that reaches long edits was queried as if they were short. It is held after more bytes than are
		 * taken of a page, while the client still reads the pages before it. */
		let passed = 0;
		proxy.seen = (name, data) => {
			if (name !== 'pg_sheet long' || (passed === 0 && !data.includes('ü'.repeat(100)))) return;
			passed += data.length;
			if (passed < 250e3) return;
			proxy.hold(name);
			proxy.seen = undefined;
		};
		const client = spawn('/usr/bin/python3', ['-c', slowClient, gateway.port, body()]);
		const answer = text(client.stdout);
		let said = '';
		client.stderr.on('data', (data) => (said += data));
		await waitUntil(() => proxy.heldBytes > 0, 'the page to be held');
		await waitUntil(() => said.includes('long'), 'the client to get a part of it');
		proxy.release();
		const all = await answer;
		assert.deepEqual(asLogged(JSON.parse(all.slice(all.indexOf('\r\n\r\n') + 4)).data), log);
	} finally {
		await proxy.remove();
	}
});

test('a segment that does not exist, that has no edits yet, and that was trimmed', async () => {
	const ask = async (lid) => (await post(gateway, '/getsheetlog', JSON.stringify({ token: user.token, fid, lid }))).json;
	for (const lid of [0, 2, 99]) assert.equal((await ask(lid)).msg, 24, `segment ${lid}`);
	await cluster.psql(`SELECT sheet.commit(${fid}); SELECT sheet.set(${fid}, 0, 0, 'second'); SELECT sheet.commit(${fid})`);
	assert.deepEqual(asLogged((await ask(2)).data).map((edit) => edit[3]), ['second', '']);
	assert.deepEqual(await ask(3), { success: true, msg: 23, data: [] });
	assert.equal((await ask(4)).msg, 24);
	await cluster.psql(`SELECT sheet.trim(${fid}, 2)`);
	for (const lid of [1, 2]) assert.equal((await ask(lid)).msg, 24, `segment ${lid}`);
	assert.deepEqual(await ask(3), { success: true, msg: 23, data: [] });
});
