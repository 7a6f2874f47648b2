// formula.test.ts - what becomes of references in formulas, against tests/vectors/formulas.json, which the database and
// the gateway are held to as well (tests/unit/test_formula.c). Only the database follows references with a sheet's name.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isTooLong } from '../../src/v2/formula';
import { moveContent } from '../../src/v2/lines';
import type { StructureEdit } from '../../src/v2/messages';

const vectors = JSON.parse(readFileSync(new URL('../../../../tests/vectors/formulas.json', import.meta.url), 'utf8')) as {
	name: string;
	formula: string;
	change: [StructureEdit['kind'], number, number];
	result: string;
	sheet?: string;
}[];

test.each(vectors.filter(({ sheet }) => sheet === undefined))('$name', ({ formula, change: [kind, at, n], result }) => {
	expect(moveContent(formula, { kind, at, n })).toBe(result);
});

test('a formula that becomes too long', () => {
	const formula = (cell: string, spaces: number): string => `=${cell}${' '.repeat(spaces)}+"é"`;
	const insert = (text: string): string | undefined => moveContent(text, { kind: 'insertRows', at: 0, n: 1 });
	expect(insert(formula('A9', 32759))).toBe(formula('A10', 32759));
	expect(insert(formula('A9', 32760))).toBeUndefined();
	expect(insert(formula('A8', 32760))).toBe(formula('A9', 32760));
});

test('a cell has up to 32,767 characters, of whatever script', () => {
	expect(['x', '👍'].map((letter) => [32767, 32768].map((count) => isTooLong(letter.repeat(count))))).toEqual([
		[false, true],
		[false, true],
	]);
});
