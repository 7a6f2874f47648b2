/*
 * Protocol v2: formulas follow the rows and columns that they refer to. What becomes of one formula is in
 * tests/vectors/formulas.json; here is what clients, the gateway and the database make of them together.
 */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { database, waitUntil } from '../lib/cluster.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { cluster, gateway, anna, ben, fid, raw, whole, hold, set, change, sorted, sqlGrid, agree } from '../lib/two_people.mjs';

const toldOf = (client, seq) =>
	client.messages.filter(({ t, seq: at }) => t === 'edits' && at > seq).flatMap(({ edits }) => edits.map(({ kind, at, n, row, col, content }) => (kind ? `${kind} ${at} ${n}` : `${row},${col} ${content}`)));

for (const encoding of ['json', 'binary'])
	test(`an operation is told with the formulas that it moves, in one commit: sent as ${encoding}`, async () => {
		const a = await raw(anna, { encoding });
		const others = [await raw(ben, { encoding: 'json' }), await raw(ben, { encoding: 'binary' })];
		a.op(1, [set(0, 0, '=B5+B9'), set(0, 1, '=SUM(B3:B9)'), set(0, 2, '"B5"'), set(5, 0, 'six')]);
		await a.next('ack');
		a.op(2, [change('insertRows', 3, 2), set(3, 0, '=B1'), change('deleteRows', 6, 2)]);
		const { seq } = await a.next('ack', ({ n }) => n === 2);
		const edits = [
			change('insertRows', 3, 2),
			set(0, 0, '=B7+B11'),
			set(0, 1, '=SUM(B3:B11)'),
			set(3, 0, '=B1'),
			change('deleteRows', 6, 2), // the cell that it empties is not told
			set(0, 0, '=#REF!+B9'),
			set(0, 1, '=SUM(B3:B9)'),
		].map((edit) => ({ uid: anna.uid, ...edit }));
		for (const client of [a, ...others]) {
			client.position = 0;
			const message = await client.next('edits', (told) => told.seq === seq);
			assert.deepEqual(message, { t: 'edits', seq, more: false, edits });
		}
		const rows = await cluster.rows(`SELECT old, new FROM sheet.log_edits(${fid}) WHERE seq > ${seq} - 8 AND kind = 'set' ORDER BY seq`);
		assert.deepEqual(rows.map(({ old, new: now }) => [old, now]), [
			['=B5+B9', '=B7+B11'],
			['=SUM(B3:B9)', '=SUM(B3:B11)'],
			['', '=B1'],
			['six', ''],
			['=B7+B11', '=#REF!+B9'],
			['=SUM(B3:B11)', '=SUM(B3:B9)'],
		]);
	});

const manyFormulas = (rows) =>
	cluster.psql(`SELECT sheet.set_range(${fid}, 'B1000', (SELECT array_agg(ARRAY['=A99999', '=A99999', '=A99999', '=A99999']) FROM generate_series(1, ${rows})))`);

/** The operation is refused, and the sheet goes on. goesOn: the client that edits it then, b unless it connects again. */
async function refused(edits, goesOn = async (b) => b) {
	const a = await raw(anna);
	const ready = await raw(ben);
	a.op(1, edits);
	const nack = await a.next('nack');
	assert.deepEqual([nack.n, nack.reason], [1, 'size']);
	const b = await goesOn(ready);
	b.op(1, [set(0, 0, 'y')]);
	await b.next('ack');
	assert.equal(await cluster.psql(`SELECT content FROM sheet.range(${fid}, 'A1')`), 'y');
}

test('an operation that rewrites all formulas again and again is refused', async () => {
	await manyFormulas(10000);
	await refused(Array.from({ length: 64 }, (_, i) => [change('deleteRows', 0, 1), set(i, 0, 'x')]).flat());
});

test('an operation is refused that the database could not store in time, twice', async () => {
	await manyFormulas(10);
	const cancels = async () => {
		const log = await fs.readFile(path.join(cluster.directory, 'log', 'postgres.log'), 'utf8');
		return log.split('canceling statement due to user request').length - 1;
	};
	/** Whether the server cancels the first two statements of each session that store edits, as statement_timeout does. */
	const arrange = async (cancel) => {
		await cluster.psql(`ALTER DATABASE ${database} ${cancel ? "SET pg_sheet.stop_point = 'append-stage:cancel:1 append-stage:cancel:2'" : 'RESET pg_sheet.stop_point'}`);
		assert.equal((await gateway.stop()).code, 0);
		await gateway.start();
	};
	const before = await cancels();
	await arrange(true);
	try {
		await refused([change('insertRows', 0, 1)], async () => {
			assert.equal((await cancels()) - before, 2);
			await arrange(false);
			return raw(ben);
		});
	} finally {
		await cluster.psql(`ALTER DATABASE ${database} RESET pg_sheet.stop_point`);
	}
});

test('formulas of late operations refer to what their author saw', async () => {
	const a = await raw(anna);
	const b = await raw(ben, { encoding: 'binary' });
	const base = a.hello.seq;
	a.op(1, [change('insertRows', 4, 3), change('deleteRows', 2, 1), change('insertColumns', 1, 1)]);
	const { seq } = await b.next('edits');
	b.op(1, [set(6, 1, '=A1+A3+B6+SUM(A2:A9)+SUM(A:B)+"A3"'), set(0, 0, 'A3')], { base });
	b.op(2, [change('insertRows', 0, 1), set(0, 0, '=A6')], { base });
	b.op(3, [set(0, 5, '=A6')], { base: seq });
	await b.next('ack', ({ n }) => n === 3);
	assert.deepEqual(await sqlGrid(), sorted([['9,2', '=A2+#REF!+C9+SUM(A3:A12)+SUM(A:C)+"A3"'], ['1,0', 'A3'], ['0,0', '=A8'], ['1,5', '=A7']]));
});

test('formulas that wait for SQL which inserts and deletes, and those of who is cut off, refer to what their author saw', async () => {
	const a = await whole(anna);
	const b = await whole(ben, { encoding: 'binary' });
	await a.operate([set(4, 0, 'five'), set(5, 0, 'six'), set(0, 3, '=A5')]);
	await agree([a, b]);
	const session = await hold(`SELECT sheet.insert_rows(${fid}, 2, 3); SELECT sheet.delete_rows(${fid}, 8, 1)`);
	const waiting = [a.operate([set(0, 1, '=A5&A6')]), b.operate([change('insertRows', 5, 1), set(0, 2, '=A5&A7')])];
	await cluster.sheetIsHeld();
	await session.query('COMMIT');
	await Promise.all(waiting);
	assert.deepEqual(await agree([a, b]), sorted([['7,0', 'five'], ['0,3', '=A8'], ['0,1', '=A8&#REF!'], ['0,2', '=A8&#REF!']]));
	await gateway.kill();
	const late = a.operate([set(1, 1, '=A8')]);
	await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 1)`);
	await gateway.start();
	await late;
	assert.ok((await agree([a, b])).some(([key, content]) => key === '2,1' && content === '=A9'));
	assert.ok(a.hello.resumed);
});

test('an insertion whose answer is lost is told once, with the formulas that it moves', async () => {
	const proxy = await PgProxy.start(cluster, gateway);
	try {
		const a = await raw(anna);
		const b = await raw(ben);
		a.op(1, [set(0, 0, '=A9'), set(1, 0, '=A1')]);
		const { seq } = await b.next('edits');
		proxy.hold('pg_sheet edits');
		a.op(2, [change('insertRows', 3, 2), set(3, 0, 'new'), change('deleteRows', 1, 1)]);
		await waitUntil(() => proxy.heldBytes > 0, 'the answer to be on its way');
		await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 1)`);
		proxy.drop();
		await a.next('ack', ({ n }) => n === 2);
		await b.next('edits', ({ edits }) => edits.some(({ content }) => content === '=A11'));
		assert.deepEqual(toldOf(b, seq), ['insertRows 3 2', '0,0 =A11', '3,0 new', 'deleteRows 1 1', '0,0 =A10', 'insertRows 0 1', '1,0 =A11']);
		assert.deepEqual(await sqlGrid(), [['1,0', '=A11'], ['3,0', 'new']]);
	} finally {
		await proxy.remove();
	}
});

test('an insertion with which a formula would become too long is refused, and nothing of it is stored', async () => {
	const a = await raw(anna);
	a.op(1, [set(0, 0, `=A9${' '.repeat(32764)}`)]);
	await a.next('ack');
	a.op(2, [change('insertRows', 3, 2)]);
	assert.deepEqual(await a.next('nack'), { t: 'nack', n: 2, reason: 'size', row: 0, col: 0, block: false });
	a.op(3, [change('insertRows', 10, 2)], { nacks: 1 });
	await a.next('ack', ({ n }) => n === 3);
	assert.equal((await sqlGrid())[0][1].length, 32767);
});

test('a hundred thousand formulas are moved by one operation, and told in parts of one commit', async () => {
	await cluster.psql(`SELECT sheet.set_range(${fid}, 'A' || 1 + 20000 * i, (SELECT array_agg(ARRAY['=B' || 20001 + j] ORDER BY j) FROM generate_series(0, 19999) j)) FROM generate_series(0, 4) i`);
	const a = await raw(anna);
	const b = await raw(ben, { encoding: 'binary' });
	const started = performance.now();
	a.op(1, [change('insertRows', 19999, 1)]);
	const { seq } = await a.next('ack');
	const ms = performance.now() - started;
	assert.ok(ms < 5000, `${ms} ms`);
	await b.next('edits', (message) => message.seq === seq && !message.more, 20000);
	const parts = b.messages.filter(({ t, edits }) => t === 'edits' && edits.length > 0); // an automatic version may follow, without edits
	assert.equal(parts.reduce((sum, { edits }) => sum + edits.length, 0), 100001);
	assert.deepEqual(parts.map((part) => [part.seq, part.more]), parts.map((_, i) => [seq, i < parts.length - 1]));
	assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1') || sheet.get(${fid}, 'A100001')`), '=B20002=B40001');
});

test('whatever clients and SQL do at once, each formula refers to the cell that its author meant', async () => {
	const seed = Number(process.env.PG_SHEET_SEED ?? 1);
	let state = seed;
	const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), Math.floor(state / 65536) % n);
	const clients = await Promise.all(['json', 'binary', 'json', 'binary'].map((encoding, i) => whole([anna, ben][i % 2], { encoding, retryMs: 20 })));
	const marks = Array.from({ length: 40 }, (_, i) => set(i, i % 4, `m${i}`));
	await clients[0].operate(marks);
	await agree(clients);
	const nameOf = (row, col) => `${String.fromCharCode(65 + (col % 26))}${row + 1}`;
	const someChange = () => (random(3) > 0 ? change(random(2) ? 'insertRows' : 'deleteRows', random(30), 1 + random(2)) : change(random(4) ? 'insertColumns' : 'deleteColumns', random(6), 1));
	const waits = [];
	let formulas = 0;
	/** A formula that refers to a mark, and names it; into a cell that is empty for its author, or holds a formula. */
	const someFormula = (client) => {
		const known = [...client.replica.cells].filter(([key, { content }]) => /^m\d+$/.test(content) && Number(key.split(',')[1]) < 26);
		const [key, { content }] = known[random(known.length)];
		const [row, col] = key.split(',').map(Number);
		const to = [random(40), random(12)];
		if (/^m/.test(client.replica.cells.get(to.join(','))?.content ?? '')) return [];
		formulas++;
		return [set(...to, `=${nameOf(row, col)}&"${content}"`)];
	};
	for (let round = 0; round < 60; round++) {
		clients.forEach((client) => {
			const edits = random(5) === 0 ? [...someFormula(client), someChange()] : someFormula(client);
			if (edits.length > 0) waits.push(client.operate(edits));
		});
		if (round % 6 === 1) {
			const { kind, at, n } = someChange();
			const name = { insertRows: 'insert_rows', deleteRows: 'delete_rows', insertColumns: 'insert_columns', deleteColumns: 'delete_columns' }[kind];
			waits.push(cluster.psql(`SELECT sheet.${name}(${fid}, ${at}, ${n})`));
		}
		if (round % 15 === 7) clients[random(4)].socket?.terminate();
		if (round === 30) {
			await gateway.kill();
			await gateway.start();
		}
		await new Promise((resolve) => setTimeout(resolve, random(12)));
	}
	await Promise.all(waits);
	const truth = new Map(await agree(clients));
	const contents = new Set(truth.values());
	let [right, gone] = [0, 0];
	for (const [key, content] of truth) {
		const [, reference, letter, number, mark] = /^=((?:([A-Z]+)(\d+))|#REF!)&"(m\d+)"$/.exec(content) ?? [];
		if (!reference) continue;
		if (reference === '#REF!') {
			assert.ok(!contents.has(mark), `seed ${seed}: ${key} ${content}, and ${mark} is there`);
			gone++;
			continue;
		}
		const col = [...letter].reduce((sum, char) => sum * 26 + char.charCodeAt(0) - 64, 0) - 1;
		assert.equal(truth.get(`${number - 1},${col}`), mark, `seed ${seed}: ${key} ${content}`);
		right++;
	}
	assert.ok(formulas > 100 && right > 10, `${formulas} formulas, ${right} refer to a mark, ${gone} to a deleted one`);
	assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true, false)`), 'clean');
});
