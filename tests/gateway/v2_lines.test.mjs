/*
 * Protocol v2: rows and columns that come and go, by clients and by SQL, while others edit. The rules for late edits are held to
 * a model by tests/unit/test_lines.c; here is what the gateway, the database and the clients make of them together.
 */
import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, shareByLink } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { RawClient } from '../lib/v2.mjs';
import { cluster, gateway, anna, ben, fid, keep, usedClient, raw, whole, hold, set, change, sorted, sqlGrid, agree } from '../lib/two_people.mjs';

const logOf = (seq) =>
	cluster.rows(`SELECT kind, "row", col, new FROM sheet.log_edits(${fid}) WHERE seq > ${seq} ORDER BY seq`);

describe('by a client', () => {
	for (const encoding of ['json', 'binary'])
		test(`rows and columns come and go in one commit with cells, and all are told in order: sent as ${encoding}`, async () => {
			const a = await raw(anna, { encoding });
			const others = [await raw(ben, { encoding: 'json' }), await raw(ben, { encoding: 'binary' })];
			const old = keep(await Editor.open(gateway, ben, fid));
			a.op(1, [set(3, 0, 'three'), set(4, 0, 'four')]);
			a.op(2, [change('insertRows', 3, 2), set(3, 0, 'new'), change('deleteRows', 6, 1), change('insertColumns', 0, 1), change('deleteColumns', 5, 2)]);
			const { seq } = await a.next('ack', ({ n }) => n === 2);
			for (const client of [a, ...others]) {
				client.position = 0;
				await client.next('edits', ({ edits }) => edits.length === 2);
				assert.deepEqual(await client.next('edits'), {
					t: 'edits',
					seq,
					more: false,
					edits: [
						{ uid: anna.uid, ...change('insertRows', 3, 2) },
						{ uid: anna.uid, ...set(3, 0, 'new') },
						{ uid: anna.uid, ...change('deleteRows', 6, 1) },
						{ uid: anna.uid, ...change('insertColumns', 0, 1) },
						{ uid: anna.uid, ...change('deleteColumns', 5, 2) },
					],
				});
			}
			assert.deepEqual(await sqlGrid(), [['3,1', 'new'], ['5,1', 'three']]);
			assert.equal((await old.waitClosed()).code, 1012);
			const again = keep(await Editor.open(gateway, ben, fid));
			assert.deepEqual(again.grid(), [['3,1', 'new'], ['5,1', 'three']]);
			assert.ok(a.closed === null && others.every(({ closed }) => closed === null));
		});

	test('each reason of a refusal', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		let nacks = 0;
		const refused = async (reason, edits) => {
			a.op(1, edits, { nacks });
			const nack = await a.next('nack');
			nacks++;
			assert.deepEqual([nack.n, nack.reason], [1, reason]);
			return nack;
		};
		b.send({ t: 'lock', row: 5, col: 2 });
		await a.next('lock');
		assert.deepEqual(await refused('locked', [change('deleteRows', 4, 2)]), { t: 'nack', n: 1, reason: 'locked', row: 5, col: 2, block: false });
		await refused('locked', [change('insertRows', 0, 1), change('deleteColumns', 2, 1)]);
		await refused('locked', [change('insertRows', 0, 1), set(6, 2, 'x')]);
		await refused('size', Array.from({ length: 65 }, () => change('insertRows', 0, 1)));
		await refused('range', [change('insertRows', 1, 16777216)]);
		await refused('range', [set(16777215, 0, 'last'), change('insertRows', 1, 1)]);
		assert.deepEqual(await logOf(a.hello.seq), []);
	});

	test('who may not edit is refused', async () => {
		await shareByLink(gateway, anna, fid, 'viewer', ben);
		const viewer = await raw(ben);
		viewer.op(1, [change('insertRows', 0, 1)]);
		assert.equal((await viewer.next('nack')).reason, 'role');
		assert.deepEqual(await logOf(viewer.hello.seq), []);
	});

	test('what the database has no room for is refused, and nothing behind it has landed', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		const session = await hold(`SELECT sheet.set(${fid}, 'A16777216', 'last')`);
		a.op(1, [change('insertRows', 0, 1), set(0, 0, 'never')]);
		a.op(2, [set(0, 1, 'behind')]);
		a.send({ t: 'lock', row: 1, col: 1 });
		b.op(1, [set(0, 2, 'of another')]);
		await cluster.sheetIsHeld();
		await session.query('COMMIT');
		assert.deepEqual(await a.next('nack'), { t: 'nack', n: 1, reason: 'size', row: 0, col: 0, block: false });
		await b.next('ack');
		assert.equal((await a.next('lock')).session, a.hello.session, 'what came behind it is handled');
		assert.deepEqual(await sqlGrid(), [['0,2', 'of another'], ['16777215,0', 'last']]);
		a.op(2, [set(0, 1, 'behind')], { nacks: 1 });
		assert.equal((await a.next('ack')).n, 2);
		assert.deepEqual(await sqlGrid(), [['0,1', 'behind'], ['0,2', 'of another'], ['16777215,0', 'last']]);
	});
});

describe('late edits', () => {
	test('go where their cells are now; what is left of an operation lands, and is acknowledged', async () => {
		const a = await raw(anna);
		const b = await raw(ben, { encoding: 'binary' });
		a.op(1, [set(2, 0, 'two'), set(5, 0, 'five')]);
		const { seq: base } = await b.next('edits');
		a.op(2, [change('insertRows', 4, 3), change('deleteRows', 2, 1), change('insertColumns', 1, 1)]);
		const { seq } = await b.next('edits');
		b.op(1, [set(5, 1, 'moved'), set(2, 1, 'gone'), set(0, 0, 'there')], { base });
		b.op(2, [set(2, 0, 'gone')], { base });
		b.op(3, [change('deleteRows', 2, 4), set(2, 0, 'behind')], { base });
		b.op(4, [set(8, 0, 'told')], { base: seq });
		assert.equal((await b.next('ack', ({ n }) => n === 4)).n, 4);
		assert.deepEqual(
			(await logOf(seq)).map(({ kind, row, col, new: content }) => [kind, row, col, content]),
			[
				['set', 7, 2, 'moved'],
				['set', 0, 0, 'there'],
				['delete_rows', 2, -1, '1'], // rows that were inserted in between stay
				['set', 6, 0, ''],
				['set', 6, 2, ''],
				['delete_rows', 5, -1, '2'],
				['set', 5, 0, 'behind'],
				['set', 5, 0, 'told'],
			],
		);
		b.op(5, [set(2, 0, 'gone')], { base });
		await b.next('ack', ({ n }) => n === 5);
		const again = await raw(ben, { client: usedClient() });
		assert.equal(again.hello.landed, 5, 'also those of which nothing was left');
	});

	test('that wait for SQL which inserts and deletes go where their cells are then, each once, and nobody is cut off', async () => {
		const a = await whole(anna);
		const b = await whole(ben, { encoding: 'binary' });
		const old = keep(await Editor.open(gateway, ben, fid));
		await a.operate([set(4, 0, 'four'), set(5, 0, 'five'), set(6, 0, 'six')]);
		await agree([a, b]);
		const session = await hold(`SELECT sheet.insert_rows(${fid}, 2, 3); SELECT sheet.delete_rows(${fid}, 9, 1)`);
		const waiting = [
			a.operate([set(4, 0, 'four, late'), set(6, 0, 'gone with its row')]),
			b.operate([set(6, 1, 'gone as well')]),
			b.operate([change('deleteRows', 5, 1), set(5, 1, 'beside six, which is gone')]),
			a.operate([change('insertRows', 5, 1), set(5, 0, 'in front of five')]),
		];
		await cluster.sheetIsHeld();
		await session.query('COMMIT');
		const acked = await Promise.all(waiting);
		assert.ok(acked.every((seq) => seq > a.hello.seq));
		const truth = await agree([a, b]);
		assert.ok(truth.some(([key, content]) => key === '7,0' && content === 'four, late'), JSON.stringify(truth));
		assert.ok(truth.some(([, content]) => content === 'in front of five'));
		assert.ok(!truth.some(([, content]) => content.includes('gone')));
		assert.equal((await old.waitClosed()).code, 1012);
		const newcomer = await whole(ben);
		await agree([a, b, newcomer]);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.log_edits(${fid}) WHERE new = 'four, late'`), '1');
		const [{ sheet }] = await cluster.rows(`SELECT rows AS sheet FROM sheet.read_cells(${fid})`);
		await waitUntil(() => [a, b, newcomer].every(({ replica }) => replica.rows === sheet), () => `${sheet} rows: ${[a, b, newcomer].map(({ replica }) => replica.rows)}`);
	});

	test('are refused when nobody knows any more where their places are', async () => {
		const a = await raw(anna);
		const base = a.hello.seq;
		await cluster.psql(`DO $$ BEGIN FOR i IN 1..300 LOOP PERFORM sheet.insert_rows(${fid}, 0, 1); END LOOP; END $$`);
		const { seq } = await a.next('edits', ({ edits }) => edits.length === 1 && edits[0].kind === 'insertRows');
		await a.next('edits', (message) => message.seq === base + 300);
		a.op(1, [set(5, 0, 'x')], { base: seq });
		assert.deepEqual(await a.next('nack'), { t: 'nack', n: 1, reason: 'base', row: 5, col: 0, block: true });
		a.op(1, [set(5, 0, 'x')], { nacks: 1, base: base + 200 });
		await a.next('ack');
		assert.deepEqual(await sqlGrid(), [['105,0', 'x']]);
		a.op(2, [set(5, 0, 'y')], { nacks: 1, base: base + 1000 });
		assert.equal((await a.next('nack')).reason, 'base', 'a seq that has not been told');
		a.op(2, [set(5, 0, 'z')], { nacks: 2 });
		await a.next('ack');
		assert.deepEqual(await sqlGrid(), [['105,0', 'x'], ['5,0', 'z']], 'without a base: as it is now');
	});

	test('of who comes again after the gateway was killed, and rows had gone meanwhile', async () => {
		const a = await raw(anna);
		a.op(1, [set(5, 0, 'five'), set(7, 0, 'seven')]);
		const { seq } = await a.next('edits');
		await gateway.kill();
		await cluster.psql(`SELECT sheet.delete_rows(${fid}, 2, 4); SELECT sheet.insert_rows(${fid}, 0, 1)`);
		await gateway.start();
		const again = await raw(anna, { client: usedClient(), since: seq });
		assert.deepEqual([again.hello.resumed, again.hello.landed], [true, 1]);
		again.op(2, [set(7, 1, 'beside seven'), set(5, 1, 'gone')], { base: seq });
		await again.next('edits', ({ edits }) => edits.some(({ content }) => content === 'beside seven'));
		assert.deepEqual(
			again.messages.filter(({ t }) => t === 'edits').flatMap(({ edits }) => edits.map(({ kind, content }) => kind ?? content)),
			['', 'deleteRows', 'insertRows', 'beside seven'],
		);
		assert.deepEqual(await sqlGrid(), [['4,0', 'seven'], ['4,1', 'beside seven']]);
		const stranger = await raw(ben);
		stranger.op(1, [set(7, 1, 'x')], { base: seq });
		await stranger.next('ack');
		assert.deepEqual(await sqlGrid(), [['4,0', 'seven'], ['4,1', 'x']], 'what one has brought back is known for all');
	});
});

test('an insertion whose answer is lost is told once, at its place before what others have deleted then', async () => {
	const proxy = await PgProxy.start(cluster, gateway);
	try {
		const a = await raw(anna);
		const b = await raw(ben, { encoding: 'binary' });
		a.op(1, [set(5, 0, 'five'), set(6, 0, 'six')]);
		const { seq: base } = await b.next('edits');
		proxy.hold('pg_sheet edits');
		a.op(2, [change('insertRows', 3, 2), set(3, 0, 'new')]);
		await waitUntil(() => proxy.heldBytes > 0, 'the answer to be on its way');
		b.op(1, [set(6, 1, 'beside six')], { base });
		await cluster.psql(`SELECT sheet.delete_rows(${fid}, 7, 1)`);
		proxy.drop();
		await a.next('ack', ({ n }) => n === 2);
		await b.next('edits', ({ edits }) => edits[0]?.content === 'beside six');
		const told = b.messages.filter(({ t }) => t === 'edits').flatMap(({ edits }) => edits.map(({ kind, content }) => kind ?? content));
		assert.deepEqual(told, ['five', 'six', 'insertRows', 'new', '', 'deleteRows', 'beside six']);
		assert.deepEqual(await sqlGrid(), [['3,0', 'new'], ['7,0', 'six'], ['7,1', 'beside six']]);
		assert.equal((await gateway.metrics()).pg_sheet_batches_duplicate_total, 1, 'it was sent again');
	} finally {
		await proxy.remove();
	}
});

test('what comes behind an insertion that waits takes little memory, and lands in its order when that is decided', async () => {
	const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${gateway.service.pid}/status`, 'utf8'))[1]) / 1024;
	const a = await raw(anna);
	const session = await hold(`SELECT sheet.set(${fid}, 'A1', 'held')`);
	a.op(1, [change('insertRows', 0, 1)]);
	await cluster.sheetIsHeld();
	const before = resident();
	const sent = 10000;
	for (let n = 2; n <= sent; n++) a.op(n, [set(0, n % 10, `${n} ${'x'.repeat(2000)}`)]);
	const b = await raw(ben);
	for (let i = 0; i < 20; i++) {
		b.send({ t: 'who', uid: 4000000000 + i });
		await b.next('user'); // the gateway has had its turns
	}
	assert.ok(resident() - before < 8, `${before} to ${resident()} MB`);
	assert.equal(a.messages.filter(({ t }) => t === 'ack').length, 0);
	await session.query('COMMIT');
	await a.next('ack', ({ n }) => n === sent, 30000);
	assert.deepEqual(
		(await sqlGrid()).map(([key, content]) => [key, content.split(' ')[0]]),
		sorted([...Array.from({ length: 10 }, (_, i) => [`0,${i}`, `${sent - ((10 - i) % 10)}`]), ['1,0', 'held']]),
	);
});

test('cells that are held, and selections, move along; those in rows that go are gone', async () => {
	const a = await raw(anna);
	const b = await raw(ben, { encoding: 'binary' });
	const base = a.hello.seq;
	a.send({ t: 'lock', row: 5, col: 1 });
	a.send({ t: 'lock', row: 8, col: 1 });
	a.send({ t: 'cursor', row: 5, col: 1, toRow: 8, toCol: 1 });
	await b.next('lock', ({ row }) => row === 8);
	await b.next('cursors');
	await cluster.psql(`SELECT sheet.insert_rows(${fid}, 2, 2); SELECT sheet.delete_rows(${fid}, 10, 3)`);
	await b.next('edits', (message) => message.seq === base + 2);
	const late = await raw(ben);
	assert.deepEqual(late.hello.locks, [{ row: 7, col: 1, session: a.hello.session, uid: anna.uid }]);
	assert.deepEqual((await late.next('cursors')).cursors, [{ session: a.hello.session, row: 7, col: 1, toRow: 9, toCol: 1 }]);
	b.op(1, [set(5, 1, 'late')], { base });
	assert.deepEqual(await b.next('nack'), { t: 'nack', n: 1, reason: 'locked', row: 7, col: 1, block: true });
	const block = await b.next('block');
	assert.deepEqual([block.row, block.col], [7, 1]);
	b.send({ t: 'lock', row: 6, col: 1, base });
	assert.equal((await a.next('lock', ({ session }) => session === b.hello.session)).row, 8);
	b.send({ t: 'lock', row: 8, col: 1, base });
	assert.deepEqual(await b.next('denied'), { t: 'denied', row: 8, col: 1, reason: 'base' });
	a.send({ t: 'unlock', row: 5, col: 1, base });
	assert.equal((await b.next('lock', ({ session }) => session === 0)).row, 7);
	b.send({ t: 'cursor', row: 4, col: 0, toRow: 9, toCol: 3, base });
	assert.deepEqual((await a.next('cursors', ({ cursors }) => cursors[0].session === b.hello.session)).cursors, [
		{ session: b.hello.session, row: 6, col: 0, toRow: 9, toCol: 3 },
	]);
});

test('who comes while rows move, or again when they have moved, learns where the cells are that others hold', async () => {
	/** Where a client that does as it is told sees them. */
	const heldRows = (client) => {
		let rows = client.hello.locks.map(({ row }) => row);
		for (const message of client.messages) {
			if (message.t === 'lock') rows.push(message.row);
			for (const { kind, at, n } of message.t === 'edits' ? message.edits : []) if (kind === 'insertRows') rows = rows.map((row) => (row < at ? row : row + n));
		}
		return rows;
	};
	const proxy = await PgProxy.start(cluster, gateway);
	try {
		const a = await raw(anna);
		const since = a.hello.seq;
		a.send({ t: 'lock', row: 5, col: 1 });
		await a.next('lock');
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'x'), sheet.insert_rows(${fid}, 2, 2)`);
		await a.next('edits', ({ edits }) => edits[0].kind === 'insertRows');
		const again = await raw(ben, { since });
		assert.ok(again.hello.resumed);
		await waitUntil(() => again.messages.some(({ t, more }) => t === 'edits' && !more), 'what was missed');
		await waitUntil(() => String(heldRows(again)) === '7', () => `row 7: ${heldRows(again)}`);
		for (const came of [0, since]) {
			proxy.hold('pg_sheet reads');
			let newcomer;
			const joining = raw(ben, { since: came }).then((client) => (newcomer = client));
			for (let round = 0; round < 20 && !newcomer; round++) {
				await waitUntil(() => newcomer || proxy.heldBytes > 0, 'an answer to be on its way');
				await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 1)`);
				await a.next('edits', ({ edits }) => edits[0].kind === 'insertRows' && edits[0].at === 0);
				proxy.release();
				proxy.hold('pg_sheet reads');
			}
			proxy.release();
			await joining;
			const expected = String(heldRows(a));
			await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'end ${came}')`);
			await newcomer.next('edits', ({ edits }) => edits.some(({ content }) => content === `end ${came}`));
			assert.equal(String(heldRows(newcomer)), expected);
		}
	} finally {
		await proxy.remove();
	}
});

describe('hello tells how large the sheet is at its seq', () => {
	const size = ({ hello: { seq, rows, cols } }) => ({ seq, rows, cols });

	test('and not what the database has by then, when the gateway has not heard of it', async () => {
		const before_ = size(await raw(anna));
		const [{ pid }] = await cluster.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet follow'");
		process.kill(pid, 'SIGSTOP');
		try {
			await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 5)`);
			const b = await raw(anna);
			assert.deepEqual(size(b), before_);
			process.kill(pid, 'SIGCONT');
			await b.next('edits', ({ edits }) => edits.some(({ kind }) => kind === 'insertRows'));
		} finally {
			process.kill(pid, 'SIGCONT');
		}
		assert.equal(size(await raw(anna)).rows, before_.rows + 5);
	});

	test('and what is committed while the gateway asks for it is in it, or told behind it', async () => {
		const proxy = await PgProxy.start(cluster, gateway);
		try {
			const other = await newSheet(gateway, anna);
			const elsewhere = keep(await RawClient.open(gateway, anna, other));
			const now = await cluster.psql('SELECT clock_timestamp()');
			const asked = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'pg_sheet reads' AND state = 'idle' AND query LIKE 'SELECT seq, rows, cols%' AND query_start > '${now}'`;
			proxy.hold('pg_sheet edits');
			const opening = raw(anna);
			await waitUntil(() => proxy.heldBytes > 0, 'the claim to be answered');
			proxy.release();
			proxy.hold('pg_sheet reads');
			await waitUntil(() => proxy.heldBytes > 0 && cluster.psql(asked), 'the size to be on its way');
			await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 5)`);
			await cluster.psql(`SELECT sheet.set(${other}, 'A1', 'heard')`);
			await elsewhere.next('edits', ({ edits }) => edits.some(({ content }) => content === 'heard')); // so the insertion was heard of, too
			proxy.release();
			const a = await opening;
			// What the gateway fetches may be here before what hello asks for itself: then hello has it.
			if (a.hello.rows !== 15) await a.next('edits', ({ edits }) => edits.some(({ kind }) => kind === 'insertRows'));
			assert.equal(size(await raw(anna)).rows, 15);
		} finally {
			await proxy.remove();
		}
	});

	test('and not what edits make of it that wait for their commit', async () => {
		const a = await raw(anna);
		const session = await hold(`SELECT sheet.set(${fid}, 'A1', 'held')`);
		a.op(1, [set(5000, 90, 'far')]);
		await cluster.sheetIsHeld();
		assert.deepEqual(size(await raw(anna)), size(a));
		await session.query('COMMIT');
		await a.next('ack');
		const { rows, cols } = size(await raw(anna));
		assert.deepEqual([rows, cols], [5001, 91]);
	});

	test('and not what edits name that leave empty cells empty, of which the database stores nothing', async () => {
		const a = await raw(anna);
		const v1 = keep(await Editor.open(gateway, ben, fid));
		a.op(1, [set(16777215, 90, ''), { row: 4000, col: 16383, style: null }, { row: 90, col: 4000, content: '', style: null }]);
		await a.next('ack', ({ n }) => n === 1);
		await v1.settle(5, 5);
		v1.modify(6, 60, '');
		await v1.nextModify(6, 60, '');
		const { rows, cols } = size(await raw(anna));
		assert.deepEqual([rows, cols], [10, 10]);
		a.op(2, [set(16777215, 0, ''), change('insertRows', 0, 1), set(20, 0, '')]);
		await a.next('ack', ({ n }) => n === 2);
		a.op(3, [set(30, 0, 'here'), set(30, 0, ''), { row: 0, col: 40, style: { bold: true } }, { row: 50, col: 0 }]);
		await a.next('ack', ({ n }) => n === 3);
		const { hello } = await raw(anna);
		assert.deepEqual([hello.rows, hello.cols], [51, 41]);
		const [truth] = await cluster.rows(`SELECT rows, cols FROM sheet.read_cells(${fid}, 0, 0, 0, 0)`);
		assert.deepEqual([Number(truth.rows), Number(truth.cols)], [51, 41]);
	});
});

test('whatever clients, SQL and a killed gateway do at once, all end with the cells of the database, and each operation landed once', async () => {
	const seed = Number(process.env.PG_SHEET_SEED ?? 1);
	let state = seed;
	const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), Math.floor(state / 65536) % n);
	const clients = await Promise.all(['json', 'binary', 'json', 'binary'].map((encoding, i) => whole([anna, ben][i % 2], { encoding, retryMs: 20 })));
	const tokens = [];
	let operations = 0;
	const waits = [];
	const someChange = () => change(['insertRows', 'deleteRows', 'insertColumns', 'deleteColumns'][random(4)], random(12), 1 + random(2));
	const operate = (i) => {
		const token = `${i}.${operations++}`;
		const what = random(10);
		if (what < 7) waits.push(clients[i].operate([set(random(12), random(8), token), set(random(12), random(8), `${token}b`)]));
		else if (what < 9) {
			tokens.push(token); // in a column that nobody deletes
			const at = random(12);
			waits.push(clients[i].operate([change('insertRows', at, 1), set(at, 60, token), set(random(12), 9, 'x')]));
		} else waits.push(clients[i].operate([someChange(), set(random(12), random(8), token), someChange()]));
	};
	for (let round = 0; round < 60; round++) {
		clients.forEach((_, i) => operate(i));
		if (round % 6 === 1) {
			const { kind, at, n } = someChange();
			const name = { insertRows: 'insert_rows', deleteRows: 'delete_rows', insertColumns: 'insert_columns', deleteColumns: 'delete_columns' }[kind];
			waits.push(cluster.psql(`SELECT sheet.set(${fid}, 'C3', 'SQL ${round}'); SELECT sheet.${name}(${fid}, ${at}, ${n})`));
		}
		if (round % 15 === 7) clients[random(4)].socket?.terminate();
		if (round === 30) {
			await gateway.kill();
			await gateway.start();
		}
		await new Promise((resolve) => setTimeout(resolve, random(12)));
	}
	await Promise.all(waits);
	clients.push(await whole(anna));
	const truth = await agree(clients);
	assert.ok(truth.length > 10, `${truth.length} cells`);
	const landed = await cluster.rows(`SELECT new AS token, count(*) AS times FROM sheet.log_edits(${fid}) WHERE kind = 'set' AND new LIKE '%.%' GROUP BY new`);
	const times = new Map(landed.map((row) => [row.token, row.times]));
	assert.deepEqual([...times].filter(([, n]) => n !== 1), [], `seed ${seed}: no operation landed twice`);
	assert.deepEqual(tokens.filter((token) => !times.has(token)), [], `seed ${seed}: what was put into inserted rows is there`);
	const [{ rows, cols }] = await cluster.rows(`SELECT rows, cols FROM sheet.read_cells(${fid})`);
	const sizes = () => clients.map(({ replica }) => [replica.rows, replica.cols]);
	await waitUntil(() => sizes().every(([height, width]) => height === rows && width === cols), () => `seed ${seed}: ${rows} rows, ${cols} columns: ${sizes()}`);
	assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true, false)`), 'clean');
});
