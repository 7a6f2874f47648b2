// chips.test.ts - which columns have chips, and how many of them fit.
import { expect, test } from 'vitest';
import { separatorsOf, wholeSheet } from '../../src/sheet/arrange';
import { fitting } from '../../src/tags/items';
import { PropertySet } from '../../src/v2/properties';

test('the columns with a separator of their own', () => {
	const set = new PropertySet();
	set.put({ ...wholeSheet, col: 2, toCol: 3, key: 'list', value: ';' });
	set.put({ ...wholeSheet, col: 5, toCol: 5, key: 'list', value: '"' });
	set.put({ ...wholeSheet, col: 6, toCol: 6, key: 'list', value: 7 });
	set.put({ row: 0, toRow: 9, col: 7, toCol: 7, key: 'list', value: ';' });
	expect([...separatorsOf(set)]).toEqual([
		[2, ';'],
		[3, ';'],
	]);
});

test('chips that do not fit are counted in the last one', () => {
	const more = () => 15;
	expect(fitting([], 0, 4, more)).toBe(0);
	expect(fitting([50, 30], 84, 4, more)).toBe(2);
	expect(fitting([50, 30], 83, 4, more)).toBe(1);
	expect(fitting([50, 30], 68, 4, more)).toBe(0);
	expect(fitting([20, 20, 20, 20], 83, 4, more)).toBe(2);
});
