/*
 * Protocol v2: an operation lands exactly once, whoever is killed between its commit and its acknowledgement.
 *
 * A proxy holds back what the database says, so that an operation is committed and nobody has heard of it.
 */
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { roundsToRun } from '../lib/processes.mjs';
import { RawClient, sheetClient } from '../lib/v2.mjs';

const CLIENT = 4711;
let cluster;
let proxy;
let gateway;
let anna;
let fid;
const opened = [];

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'database-deadline-ms': 3000 } });
	[gateway] = cluster.gateways;
	proxy = await PgProxy.start(cluster, gateway);
	anna = await register(gateway);
});
after(async () => {
	await gateway?.stop();
	await proxy?.stop();
	await cluster?.stop();
});
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});
afterEach(() => {
	proxy.release();
	for (const client of opened.splice(0)) (client.terminate ?? client.close).call(client);
});

const keep = (client) => (opened.push(client), client);
const raw = async (options) => keep(await RawClient.open(gateway, anna, fid, { client: CLIENT, ...options }));
/** Comes again as a client does: until the gateway serves the sheet. */
const comeAgain = (options) => waitUntil(() => raw(options), 'the gateway to serve again', 15000, 100);
const set = (row, col, content) => ({ row, col, content });
const landed = async () => Number(await cluster.psql(`SELECT sheet.client_acknowledged(${fid}, ${anna.uid}, ${CLIENT})`));
/** What A1 was set to by gateways, in the log's order. */
const history = async () =>
	(
		await cluster.rows(
			`SELECT new FROM sheet.log_edits(${fid}) WHERE kind = 'set' AND "row" = 0 AND col = 0 AND origin <> 0 ORDER BY seq`,
		)
	).map((row) => row.new);

/** Sends an operation that is committed, and the gateway does not hear of it. */
async function commitUnheard(client, n, edits) {
	proxy.hold('pg_sheet group');
	client.op(n, edits);
	await waitUntil(async () => (await landed()) === n, 'the operation to be committed');
}

describe('between commit and acknowledgement', () => {
	test('the gateway is killed: the client learns that the operation has landed', async () => {
		const client = await raw();
		client.op(1, [set(0, 0, '1')]);
		await client.next('ack');
		await commitUnheard(client, 2, [set(0, 0, '2')]);
		await gateway.kill();
		proxy.release();
		await gateway.start();
		assert.ok(!client.messages.some(({ t, n }) => t === 'ack' && n === 2));
		const again = await raw({ acked: 1 });
		assert.equal(again.hello.landed, 2);
		again.op(2, [set(0, 0, '2')]);
		assert.equal((await again.next('ack')).n, 2);
		again.op(3, [set(0, 0, '3')]);
		assert.equal((await again.next('ack', ({ n }) => n === 3)).n, 3);
		assert.deepEqual(await history(), ['1', '2', '3']);
	});

	test('PostgreSQL is killed: the operation is there, and is not made again', async () => {
		const client = await raw();
		await commitUnheard(client, 1, [set(0, 0, '1')]);
		await cluster.restartPostgres('immediate');
		proxy.release();
		await client.waitClosed();
		const again = await comeAgain();
		assert.equal(again.hello.landed, 1);
		again.op(1, [set(0, 0, '1')]);
		again.op(2, [set(0, 0, '2')]);
		await again.next('ack', ({ n }) => n === 2);
		assert.deepEqual(await history(), ['1', '2']);
	});

	test('the connection is cut: the operation that comes again over another one is not taken twice', async () => {
		const client = await raw();
		const session = cluster.psqlSession();
		await session.query(`BEGIN; SELECT sheet.set(${fid}, 'J10', 'held')`);
		client.op(1, [set(0, 0, '1')]);
		await cluster.sheetIsHeld();
		client.terminate();
		const again = await raw();
		assert.equal(again.hello.landed, 0, 'it is under way');
		again.op(1, [set(0, 0, '1')]);
		again.op(2, [set(0, 0, '2')]);
		await session.query('COMMIT');
		await session.close();
		await again.next('ack', ({ n }) => n === 2);
		assert.deepEqual(await history(), ['1', '2']);
	});

	test('an operation that changed nothing is not made later, when it would', async () => {
		const client = await raw();
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'same')`);
		await client.next('edits');
		await commitUnheard(client, 1, [set(0, 0, 'same')]);
		await gateway.kill();
		proxy.release();
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'newer')`);
		await gateway.start();
		const again = await raw();
		again.op(1, [set(0, 0, 'same')]);
		assert.equal((await again.next('ack')).n, 1);
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'newer');
	});
});

test('before the commit PostgreSQL is killed: the operation lands once', async () => {
	const client = await raw();
	const session = cluster.psqlSession();
	await session.query(`BEGIN; SELECT sheet.set(${fid}, 'J10', 'held')`);
	client.op(1, [set(0, 0, '1')]);
	await cluster.sheetIsHeld();
	await cluster.restartPostgres('immediate');
	await session.close();
	await client.waitClosed();
	const again = await comeAgain();
	assert.equal(again.hello.landed, 0);
	again.op(1, [set(0, 0, '1')]);
	await again.next('ack', ({ n }) => n === 1);
	assert.deepEqual(await history(), ['1']);
});

test('a refused operation whose answer was lost may come again; nothing behind it has landed', async () => {
	const other = keep(await RawClient.open(gateway, anna, fid, { client: CLIENT + 1 }));
	other.send({ t: 'lock', row: 1, col: 1 });
	await other.next('lock');
	const client = await raw();
	client.op(1, [set(1, 1, 'refused')]);
	client.op(2, [set(0, 0, 'behind it')]);
	await client.next('nack');
	client.terminate();
	other.send({ t: 'unlock', row: 1, col: 1 });
	await other.next('lock', ({ uid }) => uid === 0);
	const again = await raw();
	assert.equal(again.hello.landed, 0);
	again.op(1, [set(1, 1, 'taken now')]);
	again.op(2, [set(0, 0, 'behind it')]);
	await again.next('ack', ({ n }) => n === 2);
	assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'B2')`), 'taken now');
});

test('whoever is killed at any moment, each operation is in the log once, and in order', async () => {
	const clients = ['json', 'binary'].map((encoding, i) =>
		keep(sheetClient(gateway, anna, fid, { encoding, client: CLIENT + 10 + i, retryMs: 20 })),
	);
	const sent = clients.map(() => 0);
	const results = [];
	let sending = true;
	const writers = clients.map(async (client, i) => {
		while (sending) {
			const n = ++sent[i];
			results.push(client.operate([set(i, 0, `${n}`), set(i, 1 + (n % 3), `${n}`)]));
			await new Promise((resolve) => setTimeout(resolve, 1));
		}
	});
	for (let round = 0; round < roundsToRun(3, 30); round++) {
		const before = clients.map(({ acked }) => acked);
		await waitUntil(() => clients.every(({ acked }, i) => acked > before[i] + 20), 'operations to be acknowledged', 20000);
		await gateway.kill();
		await gateway.start();
		await waitUntil(() => clients.every(({ hello }) => hello), 'both to be back', 20000);
		if (round === 0) await cluster.restartPostgres('immediate');
	}
	sending = false;
	await Promise.all(writers);
	await Promise.all(results);
	for (const [i, n] of sent.entries()) {
		const log = await cluster.rows(
			`SELECT new FROM sheet.log_edits(${fid}) WHERE kind = 'set' AND "row" = ${i} AND col = 0 ORDER BY seq`,
		);
		assert.deepEqual(
			log.map((row) => Number(row.new)),
			Array.from({ length: n }, (_, k) => k + 1),
			`client ${i}`,
		);
	}
});

test('a client that the database has forgotten is told so; rows of clients are kept for seven days', async () => {
	const client = await raw();
	client.op(1, [set(0, 0, '1')]);
	await client.next('ack');
	client.terminate();
	const ahead = keep(new RawClient(gateway, fid));
	await ahead.opened;
	ahead.send({ t: 'hello', v: 2, token: anna.token, client: CLIENT, acked: 2, since: 0 });
	assert.equal((await ahead.waitClosed()).code, 4412);
	const age = (days) =>
		cluster.psql(`UPDATE sheet.client SET at = at - interval '${days} days' WHERE sheet_id = ${fid} AND client = ${CLIENT}`);
	const join = async (number) => {
		const next = keep(await RawClient.open(gateway, anna, fid, { client: number }));
		next.op(1, [set(0, 0, `${number}`)]);
		await next.next('ack');
	};
	await age(6);
	await join(1);
	assert.equal(await landed(), 1);
	await age(2);
	await join(2);
	assert.equal(await landed(), 0);
});
