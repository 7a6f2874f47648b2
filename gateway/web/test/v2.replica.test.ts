// v2.replica.test.ts - cells from blocks and edits, in whatever order they come.

import { describe, expect, test } from 'vitest';
import type { Edit, LoggedEdit } from '../src/v2/messages';
import { Replica } from '../src/v2/replica';

const range = (row: number, col: number, toRow: number, toCol: number) => ({ row, col, toRow, toCol });
const block = (seq: number, where: ReturnType<typeof range>, cells: Edit[], more = false) =>
	({ t: 'block', id: 1, seq, more, cells, ...where }) as const;
const edits = (seq: number, list: Edit[], more = false) =>
	({ t: 'edits', seq, more, edits: list.map((edit): LoggedEdit => ({ uid: 1, ...edit })) }) as const;
const text = (replica: Replica, key: string) => replica.cells.get(key)?.content;

describe('a replica', () => {
	test('knows of edits only where it has a block, and only what is newer than that', () => {
		const replica = new Replica();
		replica.block(block(10, range(0, 0, 9, 9), [{ row: 1, col: 1, content: 'ten' }]));
		replica.edits(edits(10, [{ row: 1, col: 1, content: 'in the block already' }]));
		replica.edits(edits(11, [{ row: 1, col: 2, content: 'eleven' }, { row: 20, col: 0, content: 'elsewhere' }]));
		expect([text(replica, '1,1'), text(replica, '1,2'), text(replica, '20,0')]).toEqual(['ten', 'eleven', undefined]);
		expect([replica.seq, replica.rows]).toEqual([11, 21]);
	});

	test('takes a new block for what its range holds, nothing else', () => {
		const replica = new Replica();
		replica.block(block(5, range(0, 0, 9, 9), [{ row: 0, col: 0, content: 'old' }, { row: 9, col: 9, content: 'stays' }]));
		replica.block(block(8, range(0, 0, 4, 4), [], true));
		replica.block(block(8, range(0, 0, 4, 4), [{ row: 4, col: 4, content: 'second part' }]));
		expect([text(replica, '0,0'), text(replica, '9,9'), text(replica, '4,4')]).toEqual([undefined, 'stays', 'second part']);
	});

	test('keeps what a newer block said when an older one comes later', () => {
		const replica = new Replica();
		replica.block(block(12, range(0, 0, 4, 4), [{ row: 0, col: 0, content: 'new' }]));
		replica.block(block(10, range(0, 0, 9, 9), [{ row: 0, col: 0, content: 'old' }, { row: 1, col: 1, content: 'gone' }, { row: 9, col: 9, content: 'x' }]));
		expect([...replica.cells.keys()].sort()).toEqual(['0,0', '9,9']);
		expect(text(replica, '0,0')).toBe('new');
		replica.edits(edits(11, [{ row: 0, col: 0, content: 'older than the newer block' }, { row: 9, col: 9, content: 'eleven' }]));
		expect([text(replica, '0,0'), text(replica, '9,9')]).toEqual(['new', 'eleven']);
	});

	test('keeps styles and contents apart, and empty cells nowhere', () => {
		const replica = new Replica();
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
