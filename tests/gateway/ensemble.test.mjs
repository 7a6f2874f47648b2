/* Two gateways, of which one loses the database or is killed: clients are sent to the other, or told to wait, and never to a dead address. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Cluster, freePort, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { RawClient } from '../lib/v2.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';

/* So long that a killed gateway stays a member while the test looks at what is answered in its place. */
const sessionMs = 30000;
let cluster;
let anna;
let proxy;
let left;
let right;
const sheets = [];

before(async () => {
	cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper', sessionMs });
	[left, right] = cluster.gateways;
	proxy = await PgProxy.start(cluster, left);
	anna = await register(right);
	for (let i = 0; i < 20; i++) sheets.push(await newSheet(right, anna));
	await waitUntil(async () => (await sheetsOf(left)).length > 0 && (await sheetsOf(right)).length > 0, 'the ring', 20000);
});
after(async () => {
	await proxy?.stop();
	await cluster?.stop();
});

const ready = async (gateway) => (await request(gateway, 'GET', '/readyz')).status === 200;

/** How the gateway answers a WebSocket of protocol v2: {code, reason} of the close, or null when it serves the sheet. */
async function greeting(gateway, fid) {
	const client = new RawClient(gateway, fid);
	await client.opened;
	client.send({ t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 });
	return client.waitClosed();
}

/** The sheets to which the gateway sends nobody elsewhere; it asks no database. */
async function sheetsOf(gateway) {
	const answers = await Promise.all(sheets.map((fid) => upgrade(gateway, fid)));
	return sheets.filter((_, i) => answers[i].json?.msg !== 19);
}

const upgrade = (gateway, fid) =>
	request(gateway, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&ticket=none`, {
		headers: {
			upgrade: 'websocket',
			connection: 'Upgrade',
			'sec-websocket-version': '13',
			'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
		},
	});

test('a gateway that the database does not answer gives its sheets to one that it answers, and takes them back', async () => {
	const [fid, ...others] = await sheetsOf(left);
	let tries = 0;
	const writer = new Writer('w', 0, anna, fid, () => cluster.gateways[tries++ % 2]);
	try {
		await writer.progress(50);
		proxy.silence();
		await waitUntil(async () => (await sheetsOf(right)).length === sheets.length, 'one gateway to have all sheets', 60000, 100);
		await waitUntil(async () => (await sheetsOf(left)).length === 0, 'the other to agree');
		const { code, reason } = await greeting(left, fid);
		assert.deepEqual([code, JSON.parse(reason)], [4307, { ws: `ws://${right.host}/sheetws` }]);
		await writer.progress(50, 60000);
		assert.ok(!(await ready(left)) && (await ready(right)));
		proxy.release();
		const back = async () => (await sheetsOf(left)).filter((sheet) => sheet !== fid).join() === others.join();
		await waitUntil(async () => (await back()) && (await ready(left)), 'the sheets to come back that nobody edits by protocol v1', 60000, 100);
		await writer.progress(50, 60000);
	} finally {
		proxy.release();
		await writer.stop();
	}
	await checkNothingLost(cluster, fid, [writer]);
});

test('nobody is sent to a killed gateway: while its session lasts, its sheets are answered with 503 and Retry-After', async () => {
	const [fid] = await sheetsOf(right);
	const [own] = await sheetsOf(left);
	const cells = (sheet) => request(left, 'GET', `/v2/sheets/${sheet}/cells?range=A1:B2&token=${anna.token}`);
	assert.equal((await cells(fid)).status, 307);
	await right.kill();
	const answer = await waitUntil(
		async () => {
			const found = await cells(fid);
			return found.status === 503 && found;
		},
		'503 in place of a redirect',
		15000,
		20,
	);
	assert.equal(answer.headers['retry-after'], '1');
	assert.match(answer.text, /accepts no connections: if it is dead, another takes over/);
	const route = await request(left, 'GET', `/v2/sheets/${fid}/route`, { headers: { authorization: `Bearer ${anna.token}` } });
	assert.equal(route.status, 503);
	const handshake = await upgrade(left, fid);
	assert.deepEqual([handshake.status, handshake.headers['retry-after']], [503, '1']);
	const { code, reason } = await greeting(left, fid);
	assert.equal(code, 1012);
	assert.match(reason, /accepts no connections/);
	assert.equal((await cells(own)).status, 200, 'its own sheets are served');
	assert.ok((await cluster.zookeeperCommand('dump')).includes(right.host), 'its session has not ended yet');
});

/** A new gateway with this peer-address, whose public address nobody can reach, and a sheet for which `left` sends clients there. */
async function addHidden(peer) {
	const name = `127.0.0.1:${await freePort()}`;
	const hidden = await cluster.addGateway();
	await hidden.stop();
	await hidden.start({ 'public-address': name, 'peer-address': peer ?? hidden.host });
	const cells = () => request(left, 'GET', `/v2/sheets/${hidden.fid}/cells?range=A1:B2&token=${anna.token}`);
	const find = async () => {
		for (hidden.fid of sheets) if ((await cells()).headers.location?.startsWith(`http://${name}/`)) return true;
		return false;
	};
	await waitUntil(find, 'a sheet of the new gateway', 20000);
	return Object.assign(hidden, { name, cells });
}

/** Clients are told to wait while the session of the gateway lasts. */
async function checkNoticed({ name, cells }) {
	const refused = async () => {
		const answer = await cells();
		return answer.status === 503 && answer;
	};
	const answer = await waitUntil(refused, '503 in place of a redirect', 10000, 20);
	assert.equal(answer.headers['retry-after'], '1');
	assert.match(answer.text, /accepts no connections/);
	assert.ok((await cluster.zookeeperCommand('dump')).includes(name), 'its session has not ended yet');
}

test('a killed gateway is noticed at its peer-address, where others cannot reach its public address', async () => {
	const hidden = await addHidden();
	const connections = async () => (await hidden.metrics()).pg_sheet_connections;
	await waitUntil(async () => (await connections()) > 0, 'the connection of the other gateway');
	await hidden.kill();
	await checkNoticed(hidden);
});

/* A listener for one connection, which ends it when told. Then the queue of new ones is full, so that Linux answers none. */
const lastOne = `
import socket, sys
listener = socket.create_server(('127.0.0.1', 0), backlog=0)
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
print('accepted', flush=True)
sys.stdin.readline()
others = [socket.socket() for _ in range(4)]
for other in others:
    other.setblocking(False)
    other.connect_ex(listener.getsockname())
connection.close()
sys.stdin.read()
`;

test('a machine that vanished with a gateway is noticed when its connection ends and no other one is answered', async () => {
	const machine = spawn('python3', ['-c', lastOne], { stdio: ['pipe', 'pipe', 'inherit'] });
	const lines = createInterface(machine.stdout)[Symbol.asyncIterator]();
	try {
		const hidden = await addHidden(`127.0.0.1:${(await lines.next()).value}`);
		await lines.next();
		assert.equal((await hidden.cells()).status, 307);
		machine.stdin.write('\n');
		await checkNoticed(hidden);
	} finally {
		machine.kill();
	}
});
