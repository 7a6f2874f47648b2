/*
 * Batches that are sent again: because their answer was lost, with more before and in them than one answer of sheet.apply
 * tells (64 MB, contents that were replaced included), or because the database has refused them.
 *
 * A proxy holds back what the database says, so that the gateway has not heard of what SQL has done before the batch.
 */
import { after, afterEach, before, beforeEach, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { RawClient } from '../lib/v2.mjs';

const LONG = 700; // cells of 98 kB, more than 64 MB together
let cluster;
let proxy;
let gateway;
let user;
let fid;
let lastClient = 0;
let holder;
const opened = [];

before(async () => {
	cluster = await Cluster.start({ postgres: { 'pg_sheet.version_edits': 0, 'pg_sheet.version_bytes': 0 } });
	[gateway] = cluster.gateways;
	proxy = await PgProxy.start(cluster, gateway);
	user = await register(gateway);
});
after(async () => {
	await gateway?.stop();
	await proxy?.stop();
	await cluster?.stop();
});
beforeEach(async () => {
	fid = await newSheet(gateway, user);
	holder = cluster.psqlSession();
});
afterEach(async () => {
	for (const client of opened.splice(0)) client.terminate();
	await holder.close();
});

const keep = (client) => (opened.push(client), client);
const raw = async (options) => keep(await RawClient.open(gateway, user, fid, { client: ++lastClient, ...options }));
const set = (row, col, content) => ({ row, col, content });
const cleared = (first, count) => Array.from({ length: count }, (_, i) => set(first + i, 0, ''));
const fillLong = () =>
	cluster.psql(
		`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(ARRAY[repeat(chr(19968 + n), 32767)] ORDER BY n) FROM generate_series(1, ${LONG}) n))`,
	);
const clearLong = (count) => `SELECT sheet.set_range(${fid}, 'A1', array_fill(''::text, ARRAY[${count}, 1]))`;
/** What a member of protocol v2 has been told since it came: contents and kinds in their order, equal ones as one with their number. */
const toldOf = (client) => {
	const told = [];
	for (const { kind, content } of client.messages.filter(({ t }) => t === 'edits').flatMap(({ edits }) => edits)) {
		const what = kind ?? content;
		if (told.at(-1)?.[0] === what) told.at(-1)[1]++;
		else told.push([what, 1]);
	}
	return told;
};
/** The same as the log has it, from a seq on. */
const loggedSince = async (seq) =>
	(
		await cluster.rows(
			`SELECT what, count(*) AS n FROM (SELECT seq, what, seq - row_number() OVER (PARTITION BY what ORDER BY seq) AS run
			FROM (SELECT seq, CASE kind WHEN 'set' THEN new WHEN 'insert_rows' THEN 'insertRows' END AS what FROM sheet.log_edits(${fid}) WHERE seq > ${seq}) e) r
			GROUP BY what, run ORDER BY min(seq)`,
		)
	).map(({ what, n }) => [what, n]);
const lastSeq = async () => Number(await cluster.psql(`SELECT max(seq) FROM sheet.log_edits(${fid})`));
const metric = async (name) => (await gateway.metrics())[`pg_sheet_${name}`];

const gatewayLog = () => fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8');

/** Both members are closed; how often the database has refused the sheet's batches until then. */
async function refusalsUntilClosed(members, close) {
	for (const member of members) assert.deepEqual(await member.waitClosed(), close);
	return gatewayLog().match(new RegExp(`batch refused sheet=${fid} `, 'g'))?.length;
}

test('a batch that the database refuses for good is not sent again: the members are closed, and come again', async () => {
	// It takes no value of more than 8191 bytes. Longer batches are not stored yet: this is the first test.
	await cluster.psql('CREATE INDEX of_data ON sheet.log_batch (data)');
	try {
		const old = keep(await Editor.open(gateway, user, fid));
		const client = await raw();
		client.op(1, [set(1, 1, Array.from({ length: 4000 }, (_, i) => String.fromCharCode(19968 + ((i * 7919) % 20011))).join(''))]);
		assert.equal(await refusalsUntilClosed([old, client], { code: 1011, reason: 'the edits cannot be stored' }), 1);
		const again = await raw();
		again.op(1, [set(1, 1, 'short')]);
		await again.next('ack');
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'B2')`), 'short');
	} finally {
		await cluster.psql('DROP INDEX sheet.of_data');
	}
});

/** The operation is committed behind what the SQL does, and its answer is to be lost. */
async function loseAnswer(client, edits, sql) {
	proxy.hold('pg_sheet group', 'pg_sheet follow');
	await cluster.psql(sql);
	client.op(1, edits);
	await waitUntil(() => proxy.heldBytes > 0, 'the answer to be on its way');
}

for (const [where, first, before] of [
	['is more than one answer tells', 0, () => ''],
	['comes behind as much as one answer tells', 680, () => clearLong(680)],
]) {
	test(`a batch whose answer is lost and that ${where} is told once, at its place, and acknowledged`, async () => {
		await fillLong();
		const a = await raw();
		const b = await raw({ encoding: 'binary' });
		const start = await lastSeq();
		const duplicates = await metric('batches_duplicate_total');
		await loseAnswer(a, cleared(first, LONG - first), `SELECT sheet.set(${fid}, 'K1', 'before'); ${before()}`);
		b.op(1, [set(1, 1, 'pending')]);
		await cluster.psql(`SELECT sheet.set(${fid}, 'K1', 'after')`);
		proxy.drop();
		await a.next('ack');
		await b.next('ack');
		// Its author is told of an edit before all others.
		await waitUntil(() => [a, b].every((member) => toldOf(member).at(-1)[0] === 'pending'), 'all to be told');
		const told = [
			['before', 1],
			['', LONG],
			['after', 1],
			['pending', 1],
		];
		for (const member of [a, b]) assert.deepEqual(toldOf(member), told);
		assert.deepEqual(await loggedSince(start), told);
		assert.equal((await metric('batches_duplicate_total')) - duplicates, 1, 'it was sent again');
	});
}

test('operations behind more than one answer tells wait until all of that is told, also those that insert rows', async () => {
	await fillLong();
	const a = await raw();
	const b = await raw();
	const start = await lastSeq();
	await holder.query(`BEGIN; ${clearLong(LONG)}`);
	a.op(1, [{ kind: 'insertRows', at: 0, n: 1 }]);
	await cluster.sheetIsHeld();
	b.op(1, [set(0, 1, 'behind it')]);
	await holder.query('COMMIT');
	await a.next('ack');
	await b.next('ack');
	const told = [
		['', LONG],
		['insertRows', 1],
		['behind it', 1],
	];
	await waitUntil(() => [a, b].every((member) => toldOf(member).length === told.length), 'all to be told');
	for (const member of [a, b]) assert.deepEqual(toldOf(member), told);
	assert.deepEqual(await loggedSince(start), told);
});

/** Another database: in place of a function of the extension stands one that always fails. */
async function withFailing(failing, run) {
	const definitions = [];
	try {
		for (const [name, sqlstate] of Object.entries(failing)) {
			const definition = await cluster.psql(`SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = '${name}' AND pronamespace = 'sheet'::regnamespace`);
			definitions.push(definition);
			const head = definition.slice(0, definition.search(/\n LANGUAGE/));
			await cluster.psql(`${head} LANGUAGE plpgsql AS $body$BEGIN RAISE EXCEPTION 'as ever' USING ERRCODE = '${sqlstate}'; END$body$`);
		}
		await run();
	} finally {
		for (const definition of definitions) await cluster.psql(definition);
	}
}

for (const [what, failing, reason, times] of [
	['to catch up when there is nothing to catch up with', { apply: 'SR002' }, 'the edits cannot be stored', 2],
	['to catch up, which fails', { apply: 'SR002', tail: '54000' }, 'the edits of others cannot be read', 1],
]) {
	test(`a gateway that is told ${what} does not go on for ever`, async () => {
		await withFailing(failing, async () => {
			const old = keep(await Editor.open(gateway, user, fid));
			const client = await raw();
			client.op(1, [set(1, 1, 'never')]);
			assert.equal(await refusalsUntilClosed([old, client], { code: 1011, reason }), times);
		});
		const again = await raw();
		again.op(1, [set(1, 1, 'now')]);
		await again.next('ack');
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'B2')`), 'now');
	});
}

test('edits made elsewhere that cannot be read now are asked for again, but not at once', async () => {
	const client = await raw();
	await withFailing({ tail: '53200' }, async () => {
		const { log } = cluster.postgres;
		const from = fs.statSync(log).size;
		const failures = () => fs.readFileSync(log).subarray(from).toString().match(/ERROR: .*as ever/g)?.length ?? 0;
		const start = Date.now();
		await cluster.psql(`SELECT sheet.set(${fid}, 'K1', 'elsewhere')`);
		await waitUntil(() => failures() >= 3, 'three failures');
		const times = failures();
		const ms = Date.now() - start;
		assert.ok(times <= 1 + ms / 200, `${times} failures in ${ms} ms`);
	});
	await waitUntil(() => toldOf(client).at(-1)?.[0] === 'elsewhere', 'the edit to be told');
	const lines = (event) => gatewayLog().match(new RegExp(`${event} sheet=${fid} `, 'g'))?.length;
	assert.deepEqual([lines('tail not read'), lines('tail is read again')], [1, 1], 'one line when it began to fail, and one at the end');
});
