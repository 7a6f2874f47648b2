/*
 * Protocol v2: operations that overwrite nobody (`seen`). They are refused if another account has written one of their cells
 * since a seq, whether its edit was published, is pending, or is moved by inserted and deleted rows.
 */
import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { cluster, anna, ben, fid, raw, hold, set, change, sqlGrid } from '../lib/two_people.mjs';

describe('an operation with `seen`', () => {
	for (const encoding of ['json', 'binary'])
		test(`is refused if another account has written one of its cells since, and only then: sent as ${encoding}`, async () => {
			const a = await raw(anna, { encoding });
			const b = await raw(ben);
			a.op(1, [set(0, 0, 'a'), set(1, 0, 'a')]);
			const { seq: own } = await a.next('ack');
			b.op(1, [set(1, 0, 'b')]);
			const { seq: theirs } = await b.next('ack');
			a.op(2, [set(0, 0, 'back')], { seen: own });
			await a.next('ack', ({ n }) => n === 2);
			a.op(3, [set(0, 0, 'back'), set(1, 0, 'back')], { seen: own });
			assert.deepEqual(await a.next('nack'), { t: 'nack', n: 3, reason: 'base', row: 1, col: 0, block: true });
			a.op(3, [set(1, 0, 'over it')], { seen: theirs, nacks: 1 });
			await a.next('ack', ({ n }) => n === 3);
			assert.deepEqual(await sqlGrid(), [['0,0', 'back'], ['1,0', 'over it']]);
		});

	test('is refused because of edits that are not committed yet, too', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		const session = await hold(`SELECT sheet.set(${fid}, 'Z1', 'held')`);
		b.op(1, [set(1, 0, 'first')]);
		b.op(2, [set(2, 0, 'second')]);
		await cluster.sheetIsHeld();
		const seen = a.hello.seq;
		a.op(1, [set(2, 0, 'a')], { seen });
		assert.equal((await a.next('nack')).reason, 'base');
		a.op(2, [set(1, 0, 'a')], { seen, nacks: 1 });
		assert.equal((await a.next('nack')).reason, 'base');
		a.op(3, [set(3, 0, 'a')], { seen, nacks: 2 });
		await session.query('COMMIT');
		await a.next('ack');
		assert.deepEqual(await sqlGrid(), [['0,25', 'held'], ['1,0', 'first'], ['2,0', 'second'], ['3,0', 'a']]);
	});

	test('finds its cells and theirs where rows have moved, and a deletion touches what it deletes', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		const seen = a.hello.seq;
		b.op(1, [set(5, 1, 'b'), change('insertRows', 0, 2)]);
		const { seq } = await b.next('ack');
		await a.next('edits', (message) => message.seq === seq);
		const refused = async (n, edits, base) => {
			a.op(n, edits, { seen, base, nacks: n - 1 });
			const { reason, row, col } = await a.next('nack');
			assert.deepEqual([reason, row, col], ['base', 7, 1]);
		};
		await refused(1, [set(5, 1, 'a')], seen);
		await refused(2, [set(7, 1, 'a')], seq);
		await refused(3, [change('deleteRows', 6, 2)], seq);
		await refused(4, [change('deleteRows', 5, 1)], seen);
		a.op(5, [change('deleteRows', 0, 2)], { seen, base: seq, nacks: 4 });
		await a.next('ack');
		assert.deepEqual(await sqlGrid(), [['5,1', 'b']]);
	});

	test('with structure edits is refused after any formula, which may refer to what it deletes', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		const seen = a.hello.seq;
		b.op(1, [set(50, 1, '=A3')]);
		await b.next('ack');
		a.op(1, [change('deleteRows', 2, 1)], { seen });
		assert.deepEqual(await a.next('nack'), { t: 'nack', n: 1, reason: 'base', row: 50, col: 1, block: false });
		a.op(2, [set(2, 0, 'x')], { seen, nacks: 1 });
		await a.next('ack');
	});

	test('is not refused for a commit of many cells, of its account or elsewhere, but for one around its cells', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		const seen = a.hello.seq;
		const many = (top, content) => Array.from({ length: 600 }, (_, i) => set(top + (i >> 2), 2 + (i & 3), content));
		a.op(1, many(0, 'own'));
		await a.next('ack');
		b.op(1, many(300, 'theirs'));
		await b.next('ack');
		a.op(2, many(0, 'again'), { seen });
		await a.next('ack', ({ n }) => n === 2);
		a.op(3, [set(280, 2, 'x'), set(310, 3, 'x')], { seen });
		assert.deepEqual(await a.next('nack').then(({ reason, row, col }) => [reason, row, col]), ['base', 310, 3]);
	});

	test('is refused if `seen` is older than what the gateway remembers, or has not been reported', async () => {
		const a = await raw(anna);
		const b = await raw(ben);
		const seen = a.hello.seq;
		let seq;
		for (let n = 1; n <= 9; n++) {
			b.op(n, Array.from({ length: 60 }, (_, row) => set(row, 9, `${n}`)));
			({ seq } = await b.next('ack', (ack) => ack.n === n));
		}
		a.op(1, [set(0, 0, 'a')], { seen });
		assert.equal((await a.next('nack')).reason, 'base');
		a.op(2, [set(0, 0, 'a')], { seen: seq + 1000, nacks: 1 });
		assert.equal((await a.next('nack')).reason, 'base');
		a.op(3, [set(0, 0, 'a')], { seen: seq, nacks: 2 });
		await a.next('ack');
	});
});
