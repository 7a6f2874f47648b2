// lines.test.ts - what becomes of late edits, against tests/vectors/lines.json, which the gateway is held to as well
// (tests/unit/test_lines.c).

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { editToTuple, tupleToEdit } from '../../src/v2/edits';
import { moveExtent, movePlace, moveRange, transform } from '../../src/v2/lines';
import { type StructureEdit, isStructure } from '../../src/v2/messages';

const vectors = JSON.parse(readFileSync(new URL('../../../../tests/vectors/lines.json', import.meta.url), 'utf8')) as {
	name: string;
	changes: unknown[];
	edits: unknown[];
	result: unknown[];
}[];
const change = (kind: StructureEdit['kind'], at: number, n: number): StructureEdit => ({ kind, at, n });

describe('late edits', () => {
	test.each(vectors)('$name', ({ changes, edits, result }) => {
		const before = changes.map(tupleToEdit).filter(isStructure);
		expect(transform(edits.map(tupleToEdit), before).map(editToTuple)).toEqual(result);
	});
});

describe('what a change does', () => {
	const insert = change('insertRows', 5, 3);
	const remove = change('deleteRows', 5, 3);
	const rows = (row: number, toRow: number) => ({ row, col: 1, toRow, toCol: 2 });

	test('to a cell', () => {
		expect([4, 5].map((row) => movePlace({ row, col: 5 }, insert))).toEqual([
			{ row: 4, col: 5 },
			{ row: 8, col: 5 },
		]);
		expect([4, 7, 8].map((row) => movePlace({ row, col: 5 }, remove))).toEqual([{ row: 4, col: 5 }, undefined, { row: 5, col: 5 }]);
		expect(movePlace({ row: 5, col: 16383 }, change('insertColumns', 0, 1))).toBeUndefined();
	});

	test.each([
		[insert, [1, 4], [1, 4]],
		[insert, [5, 9], [8, 12]],
		[insert, [4, 5], [4, 8]],
		[change('insertRows', 5, 16777211), [4, 9], [4, 16777215]],
		[change('insertRows', 5, 16777211), [7, 9], undefined],
		[remove, [1, 4], [1, 4]],
		[remove, [8, 9], [5, 6]],
		[remove, [4, 8], [4, 5]],
		[remove, [2, 6], [2, 4]],
		[remove, [6, 9], [5, 6]],
		[remove, [5, 7], undefined],
	] as const)('to a range: %o %o', (by, [from, to], left) => {
		expect(moveRange(rows(from, to), by)).toEqual(left && rows(left[0], left[1]));
	});

	test('to the size of a sheet', () => {
		expect([2, 10].map((extent) => moveExtent(insert, extent))).toEqual([8, 13]);
		expect([2, 6, 10].map((extent) => moveExtent(remove, extent))).toEqual([2, 5, 7]);
		expect([2, 3, 4].map((extent) => moveExtent(change('deleteRows', 0, 3), extent))).toEqual([1, 1, 1]);
	});
});
