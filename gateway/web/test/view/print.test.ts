// print.test.ts - merged cells on paper.
import { expect, test, vi } from 'vitest';
import { spansOf } from '../../src/pages/print';

vi.mock('../../src/i18n', () => ({ t: (name: string) => name }));

const range = (startRow: number, endRow: number, startColumn: number, endColumn: number) => ({ startRow, endRow, startColumn, endColumn });

test('a merged cell has the rows and columns of it that are printed, and the content of its first cell', () => {
	const { spans, covered } = spansOf([2, 3, 5, 9], [1, 2, 4], [range(0, 4, 0, 1), range(5, 7, 2, 4), range(6, 8, 0, 9), range(9, 9, 4, 4)]);
	expect([...spans]).toEqual([
		['2,1', { rows: 2, cols: 1, main: { row: 0, col: 0 } }],
		['5,2', { rows: 1, cols: 2, main: { row: 5, col: 2 } }],
		['9,4', { rows: 1, cols: 1, main: { row: 9, col: 4 } }],
	]);
	expect([...covered]).toEqual(['3,1', '5,4']);
});

test('the work for a merged cell does not grow with the rows of the sheet', () => {
	const count = 20_000;
	let reads = 0;
	const rows = new Proxy(
		Array.from({ length: count }, (_, i) => i),
		{ get: (all, name) => (reads++, Reflect.get(all, name)) },
	);
	const { spans } = spansOf(
		rows,
		[0],
		Array.from({ length: count / 2 }, (_, i) => range(2 * i, 2 * i + 1, 0, 0)),
	);
	expect(spans.size).toBe(count / 2);
	expect(reads).toBeLessThan(count * 50);
});
