// replica.test.ts - cells from blocks and edits, in whatever order they come.

import { describe, expect, test } from 'vitest';
import type { CellEdit, Edit, LoggedEdit } from '../../src/v2/messages';
import { Replica } from '../../src/v2/replica';

const range = (row: number, col: number, toRow: number, toCol: number) => ({ row, col, toRow, toCol });
const block = (seq: number, where: ReturnType<typeof range>, cells: CellEdit[], more = false) => ({ t: 'block', id: 1, seq, more, cells, ...where }) as const;
const edits = (seq: number, list: Edit[], more = false) => ({ t: 'edits', seq, more, edits: list.map((edit): LoggedEdit => ({ uid: 1, ...edit })) }) as const;
const text = (replica: Replica, key: string) => replica.cells.get(key)?.content;
const contents = (replica: Replica) => Object.fromEntries([...replica.cells].map(([key, { content }]) => [key, content]));
const at = (seq: number) => {
	const replica = new Replica();
	replica.reset(seq);
	return replica;
};

describe('a replica', () => {
	test('knows of edits only where it has a block', () => {
		const replica = at(10);
		replica.block(block(10, range(0, 0, 9, 9), [{ row: 1, col: 1, content: 'ten' }]));
		replica.edits(
			edits(11, [
				{ row: 1, col: 2, content: 'eleven' },
				{ row: 20, col: 0, content: 'elsewhere' },
			]),
		);
		expect([text(replica, '1,1'), text(replica, '1,2'), text(replica, '20,0')]).toEqual(['ten', 'eleven', undefined]);
		expect([replica.seq, replica.rows]).toEqual([11, 21]);
	});

	test('is as large as the edits that it is told of make the sheet', () => {
		const replica = at(10);
		const sizeAfter = (edit: CellEdit) => {
			replica.edits(edits(replica.seq + 1, [edit]));
			return [replica.rows, replica.cols];
		};
		Object.assign(replica, { rows: 10, cols: 10 });
		expect(sizeAfter({ row: 20, col: 20, content: '' })).toEqual([10, 10]);
		expect(sizeAfter({ row: 20, col: 20, style: null })).toEqual([10, 10]);
		expect(sizeAfter({ row: 20, col: 20, content: '', style: null })).toEqual([10, 10]);
		expect(sizeAfter({ row: 11, col: 1, content: 'x' })).toEqual([12, 10]);
		expect(sizeAfter({ row: 1, col: 12, style: { bold: true } })).toEqual([12, 13]);
		expect(sizeAfter({ row: 14, col: 14 })).toEqual([15, 15]);
	});

	test('puts a block aside until its seq has been told', () => {
		const replica = at(9);
		replica.block(
			block(9, range(0, 0, 9, 9), [
				{ row: 0, col: 0, content: 'nine' },
				{ row: 9, col: 9, content: 'x' },
			]),
		);
		replica.block(block(12, range(0, 0, 4, 4), [{ row: 0, col: 0, content: 'twelve' }]));
		expect([text(replica, '0,0'), replica.waits(1)]).toEqual(['nine', true]);
		replica.edits(
			edits(11, [
				{ row: 0, col: 0, content: 'eleven' },
				{ row: 9, col: 9, content: 'eleven' },
			]),
		);
		expect(contents(replica)).toEqual({ '0,0': 'eleven', '9,9': 'eleven' });
		replica.edits(edits(12, [{ row: 0, col: 0, content: 'twelve' }], true));
		expect(replica.waits(1)).toBe(true);
		replica.edits(edits(12, []));
		expect([contents(replica), replica.waits(1)]).toEqual([{ '0,0': 'twelve', '9,9': 'eleven' }, false]);
	});

	test('takes a new block for what its range holds, nothing else', () => {
		const replica = at(5);
		replica.block(
			block(5, range(0, 0, 9, 9), [
				{ row: 0, col: 0, content: 'old' },
				{ row: 9, col: 9, content: 'stays' },
			]),
		);
		replica.edits(edits(8, []));
		replica.block(block(8, range(0, 0, 4, 4), [], true));
		replica.block(block(8, range(0, 0, 4, 4), [{ row: 4, col: 4, content: 'second part' }]));
		expect([text(replica, '0,0'), text(replica, '9,9'), text(replica, '4,4')]).toEqual([undefined, 'stays', 'second part']);
	});

	test('moves cells with their rows and columns, and knows which ranges it knows then', () => {
		const replica = at(1);
		Object.assign(replica, { rows: 30, cols: 10 });
		replica.block(
			block(1, range(5, 0, 9, 9), [
				{ row: 5, col: 1, content: 'a' },
				{ row: 8, col: 1, content: 'b' },
				{ row: 9, col: 9, content: 'c' },
			]),
		);
		replica.edits(
			edits(2, [
				{ kind: 'insertRows', at: 7, n: 2 },
				{ row: 7, col: 0, content: 'new' },
			]),
		);
		expect(contents(replica)).toEqual({ '5,1': 'a', '7,0': 'new', '10,1': 'b', '11,9': 'c' });
		expect([replica.missing(range(5, 0, 11, 9)), replica.rows]).toEqual([undefined, 32]);
		replica.edits(
			edits(3, [
				{ kind: 'deleteRows', at: 0, n: 6 },
				{ kind: 'deleteColumns', at: 9, n: 1 },
			]),
		);
		expect(contents(replica)).toEqual({ '1,0': 'new', '4,1': 'b' });
		expect([replica.rows, replica.cols]).toEqual([26, 9]);
		expect(replica.missing(range(0, 0, 5, 8))).toBeUndefined();
		expect(replica.missing(range(0, 0, 9, 8))).toEqual(range(6, 0, 9, 8));
		expect(replica.missing(range(0, 0, 5, 9))).toEqual(range(0, 9, 5, 9));
		expect(replica.missing(range(0, 0, 9, 9))).toEqual(range(0, 0, 9, 9));
	});

	test('knows that inserted rows and columns are empty, and asks for what has come into a range', () => {
		const replica = at(1);
		replica.block(block(1, range(0, 0, 9, 9), []));
		replica.edits(edits(2, [{ kind: 'insertRows', at: 0, n: 1 }]));
		expect(replica.missing(range(0, 0, 10, 9))).toBeUndefined();
		replica.edits(edits(3, [{ kind: 'insertColumns', at: 0, n: 2 }]));
		expect(replica.missing(range(0, 0, 10, 11))).toBeUndefined();
		replica.edits(edits(4, [{ kind: 'deleteRows', at: 0, n: 3 }]));
		expect(replica.missing(range(0, 0, 9, 9))).toEqual(range(8, 2, 9, 9));
	});

	test('keeps styles and contents apart, and empty cells nowhere', () => {
		const replica = at(1);
		replica.block(block(1, range(0, 0, 9, 9), []));
		replica.edits(edits(2, [{ row: 0, col: 0, content: 'a', style: { bold: true } }]));
		replica.edits(edits(3, [{ row: 0, col: 0, content: 'b' }]));
		expect(replica.cells.get('0,0')).toEqual({ content: 'b', style: { bold: true } });
		replica.edits(edits(4, [{ row: 0, col: 0, content: '' }]));
		expect(replica.cells.get('0,0')).toEqual({ content: '', style: { bold: true } });
		replica.edits(edits(5, [{ row: 0, col: 0, style: null }]));
		expect(replica.cells.size).toBe(0);
	});

	test('is at a seq when the last part of a batch has come', () => {
		const replica = new Replica();
		replica.edits(edits(9, [], true));
		expect(replica.seq).toBe(0);
		replica.edits(edits(9, []));
		expect(replica.seq).toBe(9);
	});
});
