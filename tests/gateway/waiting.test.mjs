/* A newcomer whose sheet's lock another program has is told whom it waits for, or why it waits no more. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register } from '../lib/client.mjs';
import { Rival } from '../lib/coord.mjs';
import { RawClient } from '../lib/v2.mjs';
import { withZookeeper } from '../lib/zookeeper.mjs';

const sessionMs = 2000;
let cluster;
let anna;
let first;
let rival;

before(async () => {
	// Nothing moves by itself during the tests.
	cluster = await Cluster.start({ gateways: 1, coordinator: 'zookeeper', sessionMs, gatewayFlags: { 'handover-seconds': 60 } });
	[first] = cluster.gateways;
	anna = await register(first);
	rival = new Rival('kazoo', cluster.zookeeperPort);
});
after(async () => {
	await rival?.kill();
	await cluster?.stop();
});

const lockOf = (fid) => `/pg_sheet/locks/sheet${fid}`;

/** A newcomer, and the time when it came. */
async function come(gateway, fid) {
	const client = new RawClient(gateway, fid);
	await client.opened;
	client.send({ t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 });
	client.cameAt = performance.now();
	return client;
}

async function lockedSheet() {
	const fid = await newSheet(first, anna);
	rival.tell(`acquire ${lockOf(fid)}`);
	await rival.answer(`held ${lockOf(fid)}`);
	return fid;
}

/** Waits until so many contend for the lock; a gateway has two nodes. */
const contend = (fid, nodes) =>
	waitUntil(
		async () => (await withZookeeper({ port: cluster.zookeeperPort }, ({ children }) => children(lockOf(fid)))).length === nodes,
		`${nodes} nodes`,
	);

test('a lock that no gateway has: the newcomer is closed with the reason, and served when the lock is free', async () => {
	const fid = await lockedSheet();
	const client = await come(first, fid);
	await waitUntil(() => client.closed, 'the end of its patience', 20000);
	assert.equal(client.closed.code, 1012);
	assert.match(client.closed.reason, /lock is held by another program or gateway/);
	const waited = performance.now() - client.cameAt;
	assert.ok(waited > sessionMs, `it waits for longer than the session of a dead gateway lasts: ${waited} ms`);
	const again = await come(first, fid);
	await contend(fid, 3);
	rival.tell(`release ${lockOf(fid)}`);
	await rival.answer(`released ${lockOf(fid)}`);
	await again.next('hello');
	again.socket.close();
});

test('three contend for a lock: the last one learns who is next', async () => {
	const sheets = [];
	for (let i = 0; i < 16; i++) sheets.push(await lockedSheet());
	const early = await Promise.all(sheets.map((fid) => come(first, fid)));
	for (const fid of sheets) await contend(fid, 3);
	const second = await cluster.addGateway();
	const late = await Promise.all(sheets.map((fid) => come(second, fid)));
	// Those that are not the second one's by the ring are sent on.
	let ready;
	await waitUntil(async () => {
		ready = [];
		for (let i = 0; i < sheets.length; i++)
			if (!late[i].closed && (await withZookeeper({ port: cluster.zookeeperPort }, ({ children }) => children(lockOf(sheets[i])))).length === 5)
				ready.push(i);
		return ready.length > 0 && late.every(({ closed }, i) => closed || ready.includes(i));
	}, 'the second gateway to contend');
	const [i] = ready;
	rival.tell(`release ${lockOf(sheets[i])}`);
	await rival.answer(`released ${lockOf(sheets[i])}`);
	await early[i].next('hello');
	await waitUntil(() => late[i].closed, 'an answer to the last one', 4000);
	assert.equal(late[i].closed.code, 4307, late[i].closed.reason);
	assert.equal(new URL(JSON.parse(late[i].closed.reason).ws).host, first.host);
});
