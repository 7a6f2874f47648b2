/*
 * Protocol v2: properties of sheets, in both forms: set with cells and structure edits in one operation, told to others, sent to
 * those who join, moved by the structure edits of others, refused, and stored once.
 */
import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { waitUntil } from '../lib/cluster.mjs';
import { Editor, call, shareByLink } from '../lib/client.mjs';
import { PropertyClient, sqlProperties } from '../lib/properties.mjs';
import { cluster, gateway, anna, ben, fid, keep, newClient } from '../lib/two_people.mjs';

const ROW = 16777215; // the last
const COL = 16383;

const join = async (user, options) => keep(await PropertyClient.open(gateway, user, fid, { client: newClient(), ...options }));
const set = (target, key, value) => `SELECT sheet.set_property(${fid}, '${target}', '${key}', '${JSON.stringify(value)}')`;
const agree = async (clients) => {
	const truth = await sqlProperties(cluster, fid);
	await waitUntil(
		() => clients.every((client) => JSON.stringify(client.set.list()) === JSON.stringify(truth)),
		() => `all to have ${JSON.stringify(truth)}: ${clients.map((client) => JSON.stringify(client.set.list()))}`,
	);
	return truth;
};
const clean = async () => assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true)`), 'clean');
const lastSeq = async () => Number(await cluster.psql(`SELECT max(seq) FROM sheet.log_edits(${fid})`));

describe('an operation', () => {
	for (const encoding of ['json', 'binary'])
		test(`with cells, rows and properties is one commit, and others are told in order: sent as ${encoding}`, async () => {
			const a = await join(anna, { encoding });
			const others = [await join(ben, { encoding: 'json' }), await join(ben, { encoding: 'binary' })];
			a.op([
				['property', 0, 0, ROW, COL, 'freeze', { rows: 1 }],
				[2, 0, 'cell'],
				['property', 2, 0, 3, COL, 'height', 30],
				['insertRows', 3, 2],
				['property', 0, 1, ROW, 1, 'width', 120],
				['property', 6, 2, 7, 3, 'merge', true],
			]);
			const { seq } = await a.answer();
			for (const client of [a, ...others]) {
				client.position = 0;
				const told = await client.next('edits');
				assert.deepEqual([told.seq, told.more, told.edits.length], [seq, false, 6]);
				assert.deepEqual(told.edits[2].slice(1), ['property', 2, 0, 3, COL, 'height', 30]);
				assert.deepEqual(told.edits[3].slice(1), ['insertRows', 3, 2]);
			}
			assert.deepEqual(await agree([a, ...others]), [
				`0,0,${ROW},${COL},freeze={"rows":1}`,
				`0,1,${ROW},1,width=120`,
				`2,0,5,${COL},height=30`,
				'6,2,7,3,merge=true',
			]);
			assert.deepEqual(
				await cluster.rows(`SELECT count(DISTINCT at - seq * interval '1 microsecond')::int AS commits, min(username) AS username
					FROM sheet.log_edits(${fid}) WHERE kind = 'property'`),
				[{ commits: 1, username: anna.username }],
			);
			a.op([['property', 2, 0, 5, COL, 'height', null]]);
			await a.answer();
			assert.equal((await agree([a, ...others])).length, 3);
			await clean();
		});

	test('extends the sheet to its targets, and a property that does not exist is not removed', async () => {
		const a = await join(anna);
		a.op([['property', 40, 0, 41, COL, 'height', 1], ['property', 0, 30, ROW, 30, 'width', 2], ['property', 99, 0, 99, 99, 'none', null]]);
		await a.answer();
		assert.deepEqual(await cluster.rows(`SELECT rows, cols FROM sheet.read_cells(${fid}, 0, 0, 0, 0)`), [{ rows: 42, cols: 31 }]);
		const b = await join(ben);
		assert.deepEqual([b.hello.rows, b.hello.cols], [42, 31]);
		await agree([a, b]);
	});

	test('is seen by members of protocol v1 as its cells alone', async () => {
		const old = keep(await Editor.open(gateway, ben, fid));
		const a = await join(anna);
		a.op([['property', 0, 0, ROW, 0, 'width', 7], [1, 1, 'cell']]);
		await a.answer();
		a.op([['property', 0, 0, ROW, 0, 'width', 8]]);
		await a.answer();
		a.op([[2, 2, 'later']]);
		await a.answer();
		await old.nextModify(1, 1, 'cell');
		await old.nextModify(2, 2, 'later');
		const log = await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: 1 }, 23);
		assert.deepEqual(log.filter(({ row }) => row >= 0).map((edit) => edit.new).slice(-2), ['cell', 'later']);
		assert.deepEqual(old.messages.slice(1).map(({ msgType }) => msgType), ['modify', 'modify']);
	});

	test('that is sent again is stored once', async () => {
		const client = newClient();
		const a = await join(anna, { client });
		a.op([['property', 0, 0, 0, 0, 'note', 'one']]);
		const { seq } = await a.answer();
		await cluster.psql(set('A1', 'note', 'two'));
		const again = await join(anna, { client });
		assert.equal(again.hello.landed, 1);
		again.op([['property', 0, 0, 0, 0, 'note', 'one']], { n: 1 });
		await again.answer();
		assert.deepEqual(await agree([again]), ['0,0,0,0,note="two"']);
		assert.equal(await lastSeq(), seq + 1);
	});
});

describe('who joins', () => {
	for (const encoding of ['json', 'binary'])
		test(`is sent the properties behind hello, and none when there are none: ${encoding}`, async () => {
			const first = await join(anna, { encoding });
			await cluster.psql(set('B:B', 'width', 5));
			await agree([first]);
			assert.deepEqual(first.messages.map(({ t }) => t).filter((t) => t !== 'other').slice(0, 2), ['hello', 'edits']);
			const second = await join(ben, { encoding });
			const told = await second.next('properties');
			assert.equal(told.seq, second.hello.seq);
			assert.deepEqual(told.properties, [['property', 0, 1, ROW, 1, 'width', 5]]);
			assert.deepEqual(second.messages.slice(0, 2).map(({ t }) => t), ['hello', 'properties']);
		});

	test('gets many in several messages, and a gateway that starts anew has them', async () => {
		await cluster.psql(`SELECT sheet.set_property(${fid}, NULL, 'k' || n, to_jsonb(repeat('x', 20000))) FROM generate_series(1, 40) n`);
		const a = await join(anna, { encoding: 'binary' });
		await a.next(({ t, more }) => t === 'properties' && !more);
		const parts = a.messages.filter(({ t }) => t === 'properties');
		assert.ok(parts.length >= 3 && parts.every(({ seq }) => seq === a.hello.seq), `${parts.length} parts`);
		await agree([a]);
		await gateway.kill();
		await gateway.start();
		const b = await join(ben);
		await b.next(({ t, more }) => t === 'properties' && !more);
		assert.equal((await agree([b])).length, 40);
	});

	for (const encoding of ['json', 'binary'])
		test(`again with since is sent what it has missed: ${encoding}`, async () => {
			await cluster.psql(set('A1', 'old', 1));
			const a = await join(anna, { encoding });
			await agree([a]);
			const { seq } = a;
			a.terminate();
			await cluster.psql(`${set('3:4', 'height', 2)}; SELECT sheet.insert_rows(${fid}, 3); ${set('A1', 'old', null)}; ${set('A:A', 'width', 3)}`);
			const again = await join(anna, { encoding, since: seq, set: a.set });
			assert.equal(again.hello.resumed, true);
			assert.deepEqual(await agree([again]), [`0,0,${ROW},0,width=3`, `2,0,4,${COL},height=2`]);
			assert.equal(again.messages.filter(({ t }) => t === 'properties').length, 0);
		});
});

describe('SQL', () => {
	test('is told to all: properties, structure edits, a rollback', async () => {
		const clients = [await join(anna), await join(ben, { encoding: 'binary' })];
		await cluster.psql(`${set('2:3', 'height', 9)}; SELECT sheet.commit(${fid})`);
		await agree(clients);
		await cluster.psql(`BEGIN; ${set('2:3', 'height', 10)}; SELECT sheet.delete_rows(${fid}, 0); ${set('C:C', 'width', 1)}; COMMIT`);
		assert.equal((await agree(clients)).length, 2);
		await cluster.psql(`SELECT sheet.rollback(${fid}, 1)`);
		assert.deepEqual(await agree(clients), [`1,0,2,${COL},height=9`]);
		assert.deepEqual(await sqlProperties(cluster, fid, '1::bigint'), [`1,0,2,${COL},height=9`]);
	});
});

describe('rows and columns of others', () => {
	for (const encoding of ['json', 'binary'])
		test(`move late properties: sent as ${encoding}`, async () => {
			const a = await join(anna, { encoding });
			const b = await join(ben);
			const base = a.seq;
			b.op([['insertRows', 1, 2], ['deleteRows', 5, 1], ['insertColumns', 0, 1]], { base });
			await b.answer();
			await waitUntil(() => a.seq > base, 'the rows to be told');
			a.op([['property', 2, 0, 4, COL, 'height', 1], ['property', 3, 1, 3, 1, 'gone', 1], ['property', 0, 2, ROW, 2, 'width', 1], ['insertRows', 2, 1], ['property', 2, 0, 3, COL, 'own', 1]], { base });
			await a.answer();
			assert.deepEqual(await agree([a, b]), [`0,3,${ROW},3,width=1`, `4,0,5,${COL},own=1`, `5,0,6,${COL},height=1`]);
			await clean();
		});

	test('move those that wait for their commit', async () => {
		const a = await join(anna);
		const holder = cluster.psqlSession();
		await holder.query(`BEGIN; SELECT sheet.insert_rows(${fid}, 0, 3)`);
		a.op([['property', 2, 0, 2, COL, 'height', 1]]);
		await new Promise((resolve) => setTimeout(resolve, 300));
		await holder.query('COMMIT');
		await holder.close();
		await a.answer();
		assert.deepEqual(await agree([a]), [`5,0,5,${COL},height=1`]);
	});
});

describe('a refusal', () => {
	const refused = async (client, edits, reason) => {
		const before = await lastSeq();
		client.op(edits);
		const answer = await client.answer();
		assert.deepEqual([answer.t, answer.reason], ['nack', reason]);
		assert.equal(await lastSeq(), before);
	};

	for (const encoding of ['json', 'binary'])
		test(`concerns one operation: outside of sheets, too long, too many, not storable: ${encoding}`, async () => {
			const a = await join(anna, { encoding });
			await refused(a, [[0, 0, 'x'], ['property', 0, 0, ROW + 1, 0, 'k', 1]], 'range');
			await refused(a, [['property', 0, 0, 0, 0, 'k', 'x'.repeat(32767)]], 'size');
			await cluster.psql(`SELECT sheet.set_property(${fid}, NULL, 'k' || n, to_jsonb(repeat('x', 32764))) FROM generate_series(1, 31) n`);
			await refused(a, [[0, 0, 'x'], ['property', 0, 0, 0, 0, 'k', 'x'.repeat(32764)]], 'size');
			a.op([['property', 0, 0, 0, 0, 'k', 'x']]);
			assert.equal((await a.answer()).t, 'ack');
			await agree([a]);
		});

	test('of a number that the database cannot store', async () => {
		const a = await join(anna);
		a.socket.send('{"t":"op","n":1,"nacks":0,"base":0,"edits":[["property",0,0,0,0,"k",1e999999]]}');
		const nack = await a.next('nack');
		assert.deepEqual([nack.n, nack.reason, nack.block], [1, 'size', false]);
		a.op([['property', 0, 0, 0, 0, 'k', 1e99]], { n: 2 });
		assert.equal((await a.answer()).t, 'ack');
		await agree([a]);
	});

	test('of viewers', async () => {
		await shareByLink(gateway, anna, fid, 'viewer', ben);
		await refused(await join(ben), [['property', 0, 0, 0, 0, 'k', 1]], 'role');
	});

	test('of what is malformed closes the connection', async () => {
		for (const edit of ['["property",1,0,0,0,"k",1]', '["property",0,0,0,0,"a b",1]', '["property",0,0,0,0,"k"]', '["property",0,0,0,0,"k",tru]']) {
			const a = await join(anna);
			a.socket.send(`{"t":"op","n":1,"edits":[${edit}]}`);
			await waitUntil(() => a.closed, 'the connection to be closed');
			assert.equal(a.closed.code, 4400);
		}
	});
});

test('clients and SQL that set, remove, insert and delete at random end with the properties of the database', async () => {
	let seed = 20261123;
	const random = (n) => {
		seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
		return Math.floor((seed / 2 ** 32) * n);
	};
	const target = () => {
		const [row, col] = [random(12), random(8)];
		return [
			[0, 0, ROW, COL],
			[row, 0, row + random(4), COL],
			[0, col, ROW, col + random(3)],
			[row, col, row + random(3), col + random(3)],
		][random(4)];
	};
	const edit = () => {
		if (random(5) === 0) return [`${random(2) ? 'insert' : 'delete'}${random(2) ? 'Rows' : 'Columns'}`, random(8), 1 + random(2)];
		if (random(4) === 0) return [random(12), random(8), `c${random(100)}`];
		return ['property', ...target(), 'ab'[random(2)], random(4) === 0 ? null : random(50)];
	};
	const clients = [await join(anna), await join(anna, { encoding: 'binary' }), await join(ben)];
	for (let round = 0; round < 60; round++) {
		const seqs = clients.map(({ seq }) => seq);
		for (const [i, client] of clients.entries())
			if (random(3) > 0) client.op(Array.from({ length: 1 + random(4) }, edit), { base: seqs[i] });
		if (random(3) === 0)
			await cluster.psql(
				['SELECT sheet.insert_rows(%, 2)', 'SELECT sheet.delete_rows(%, 1)', "SELECT sheet.set_property(%, '2:4', 'a', '77')", 'SELECT sheet.delete_columns(%, 3)', 'SELECT sheet.commit(%)'][random(5)].replace('%', fid),
			).catch((error) => assert.match(error.message, /nothing has changed/));
		if (random(4) === 0) for (const client of clients) if (client.n > 0) await client.next(() => true).catch(() => {});
		if (random(12) === 0) clients.push(await join(ben, { encoding: random(2) ? 'json' : 'binary' }));
	}
	for (const client of clients) {
		client.op([['property', 0, 0, 0, 0, `end${client.hello.session}`, 1]]);
		await client.answer();
	}
	const truth = await agree(clients);
	assert.ok(truth.length > 5, `${truth.length} properties`);
	await clean();
	const late = await join(ben);
	await agree([late]);
});
