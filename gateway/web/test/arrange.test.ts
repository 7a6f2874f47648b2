// arrange.test.ts - what properties mean for rows, columns and cells, and what a change by the user makes of them.
import { describe, expect, test } from 'vitest';
import { commonHeight, freezeOf, hiddenLines, merge, mergesOf, setFreeze, setLines, sizes, unmerge, withOwn, wholeSheet } from '../src/sheet/arrange';
import { ForeignProperties } from '../src/sheet/property_undo';
import { splitEdits } from '../src/sheet/split';
import { tupleToProperty } from '../src/v2/edits';
import type { PropertyEdit } from '../src/v2/messages';
import { PropertySet } from '../src/v2/properties';

const rows = (first: number, last: number, key: string, value: unknown): PropertyEdit => ({ ...wholeSheet, row: first, toRow: last, key, value });
const cells = (row: number, col: number, toRow: number, toCol: number, value: unknown = true): PropertyEdit => ({
	row,
	col,
	toRow,
	toCol,
	key: 'merge',
	value,
});
function setOf(...properties: PropertyEdit[]): PropertySet {
	const set = new PropertySet();
	properties.forEach((property) => set.put(property));
	return set;
}
const heights = (set: PropertySet, count = 20) => Array.from({ length: count }, (_, row) => sizes(set, true, count).get(row) ?? 0);

describe('what counts', () => {
	test('a height of all rows of a sheet of any size costs as much as a few', () => {
		const set = setOf(
			{ ...wholeSheet, key: 'height', value: 50 },
			rows(3, 16_000_000, 'height', 40),
			rows(9, 10, 'height', 30),
			rows(16_000_009, 16_000_009, 'hidden', true),
		);
		const found = sizes(set, true, 16_777_216);
		expect([found.get(10), found.get(4), commonHeight(set, 16_777_216), commonHeight(set, 1000)]).toEqual([30, 40, 50, undefined]);
		expect(found.size).toBeLessThan(300_000);
		expect([...hiddenLines(set, true, 16_777_216)]).toEqual([16_000_009]);
	});

	test('the smaller range, and of equal ones the later', () => {
		const set = setOf(rows(0, 9, 'height', 10), rows(2, 4, 'height', 20), rows(4, 6, 'height', 30), rows(3, 3, 'height', 40), {
			...wholeSheet,
			key: 'height',
			value: 5,
		});
		expect(heights(set, 12)).toEqual([10, 10, 20, 40, 30, 30, 30, 10, 10, 10, 5, 5]);
	});

	test('a visible row within hidden ones; a sheet that is all hidden is not', () => {
		const set = setOf(rows(1, 5, 'hidden', true), rows(3, 3, 'hidden', false), { ...wholeSheet, key: 'hidden', value: true });
		expect([...hiddenLines(set, true, 9)].sort()).toEqual([1, 2, 4, 5]);
		expect([...hiddenLines(set, false, 9)]).toEqual([]);
	});

	test('nothing that is no size, no freeze and no merge', () => {
		const set = setOf(
			rows(0, 0, 'height', 'tall'),
			rows(1, 1, 'height', -3),
			rows(2, 2, 'height', 1e9),
			{ ...wholeSheet, key: 'freeze', value: { rows: 'x', cols: 2 } },
			cells(1, 1, 1, 1),
			cells(2, 2, 3, 3, 'yes'),
		);
		expect(heights(set, 3)).toEqual([0, 0, 2000]);
		expect(freezeOf(set)).toEqual({ rows: 0, cols: 2 });
		expect(mergesOf(set)).toEqual([]);
	});

	test('of merges that begin in one cell and are equally large the one with more rows, whichever came first', () => {
		const [wide, square, high] = [cells(2, 2, 2, 5), cells(2, 2, 3, 3), cells(2, 2, 5, 2)];
		for (const merges of [
			[wide, square, high],
			[high, square, wide],
			[square, high, wide],
		])
			expect(mergesOf(setOf(...merges)).map(({ toRow }) => toRow)).toEqual([5]);
	});

	test('of overlapping merges the smaller, and those that overlap only a merge that does not count', () => {
		const set = setOf(cells(0, 0, 3, 3), cells(3, 3, 4, 4), cells(0, 0, 0, 1), cells(9, 9, 9, 10));
		expect(
			mergesOf(set)
				.map(({ row, col }) => [row, col])
				.sort(),
		).toEqual([
			[0, 0],
			[3, 3],
			[9, 9],
		]);
	});

	test('ten thousand merges of one cell, and as many that do not overlap; none is larger than the database permits', () => {
		const at = (n: number) => [Math.floor(n / 100), n % 100] as const;
		const nested = Array.from({ length: 10_000 }, (_, n) => cells(0, 0, at(n)[0] + 1, at(n)[1]));
		expect(mergesOf(setOf(...nested)).map(({ toRow, toCol }) => [toRow, toCol])).toEqual([[1, 0]]);
		const apart = Array.from({ length: 10_000 }, (_, n) => cells(at(n)[0] * 2, at(n)[1], at(n)[0] * 2 + 1, at(n)[1]));
		expect(mergesOf(setOf(...apart))).toHaveLength(10_000);
		expect(mergesOf(setOf(cells(0, 0, 99_999, 0), cells(0, 1, 100_000, 1))).map(({ col }) => col)).toEqual([0]);
	});

	test('own edits over those of the sheet, up to the first own structure edit', () => {
		const operation = { n: 1, base: 1, lost: false, edits: [rows(1, 1, 'height', 7), { kind: 'insertRows' as const, at: 0, n: 1 }, rows(2, 2, 'height', 8)] };
		const sheet = setOf(rows(1, 1, 'height', 6));
		expect(heights(withOwn(sheet, [operation]), 3)).toEqual([0, 7, 0]);
		expect(heights(withOwn(sheet, [{ ...operation, lost: true }]), 3)).toEqual([0, 6, 0]);
		expect(heights(sheet, 3)).toEqual([0, 6, 0]);
	});
});

describe('a change by the user', () => {
	test('of several rows removes what is within, cuts what is not larger, and leaves what is larger', () => {
		const before = setOf(rows(0, 9, 'height', 1), rows(4, 4, 'height', 2), rows(2, 3, 'height', 3), rows(6, 7, 'height', 4));
		const after = before.copy();
		setLines(after, 'height', true, 3, 6, 50);
		expect(heights(after, 10)).toEqual([1, 1, 3, 50, 50, 50, 50, 4, 1, 1]);
		expect(after.since(before).map(({ row, toRow, value }) => [row, toRow, value])).toEqual([
			[4, 4, null],
			[2, 3, null],
			[6, 7, null],
			[7, 7, 4],
			[2, 2, 3],
			[3, 6, 50],
		]);
	});

	test('that changes nothing is no edit', () => {
		const before = setOf(rows(0, 9, 'height', 1), rows(5, 6, 'hidden', true));
		const after = before.copy();
		setLines(after, 'height', true, 3, 4, 1);
		setLines(after, 'height', true, 12, 13, null);
		setLines(after, 'hidden', true, 0, 2, false);
		setLines(after, 'hidden', true, 5, 5, true);
		unmerge(after, cells(0, 0, 9, 9));
		setFreeze(after, { rows: 0, cols: 0 });
		expect(after.since(before)).toEqual([]);
	});

	test('merges, and takes merges apart that it touches', () => {
		const set = setOf(cells(0, 0, 1, 1), cells(5, 5, 6, 6));
		merge(set, cells(1, 1, 2, 2));
		expect(set.list()).toEqual([cells(5, 5, 6, 6), cells(1, 1, 2, 2)]);
	});

	test('random: these rows get the value, all others keep theirs', () => {
		let state = 3;
		const roll = (n: number) => Math.floor(((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32) * n);
		for (let round = 0; round < (process.env.LONG ? 3000 : 600); round++) {
			const set = new PropertySet();
			for (let i = roll(6); i > 0; i--) {
				const first = roll(16);
				set.put(rows(first, Math.min(19, first + roll(8)), 'height', 1 + roll(3)));
			}
			if (roll(4) === 0) set.put({ ...wholeSheet, key: 'height', value: 9 });
			const before = heights(set);
			const first = roll(16);
			const last = Math.min(19, first + roll(8));
			const value = roll(4) === 0 ? null : 1 + roll(3);
			setLines(set, 'height', true, first, last, value);
			expect(heights(set)).toEqual(before.map((old, row) => (row >= first && row <= last ? (value ?? 0) : old)));
		}
	});

	test('random: hidden and shown', () => {
		let state = 5;
		const roll = (n: number) => Math.floor(((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32) * n);
		const set = new PropertySet();
		const expected = new Set<number>();
		for (let round = 0; round < (process.env.LONG ? 3000 : 600); round++) {
			const first = roll(16);
			const last = Math.min(19, first + roll(6));
			const hidden = roll(2) === 0;
			setLines(set, 'hidden', false, first, last, hidden);
			for (let col = first; col <= last; col++) hidden ? expected.add(col) : expected.delete(col);
			expect([...hiddenLines(set, false, 20)].sort()).toEqual([...expected].sort());
		}
	});
});

describe('undo of a property', () => {
	const change = { ...rows(3, 4, 'height', 30), before: 20 };

	test('sets what was there, unless somebody else has set it since', () => {
		const foreign = new ForeignProperties();
		expect(foreign.takeBack(change, setOf(rows(3, 4, 'height', 30)))).toEqual({ ...rows(3, 4, 'height', 20), before: 30 });
		expect(foreign.takeBack(change, setOf(rows(3, 4, 'height', 31)))).toBeUndefined();
		foreign.written(rows(3, 4, 'height', 30), false);
		expect(foreign.takeBack(change, setOf(rows(3, 4, 'height', 30)))).toBeUndefined();
		foreign.move({ kind: 'insertRows', at: 0, n: 1 });
		expect(foreign.takeBack(change, setOf(rows(3, 4, 'height', 30)))).toBeDefined();
		expect(foreign.takeBack({ ...change, row: 4, toRow: 5 }, setOf(rows(4, 5, 'height', 30)))).toBeUndefined();
		foreign.written(rows(4, 5, 'height', 30), true);
		expect(foreign.takeBack({ ...change, row: 4, toRow: 5 }, setOf(rows(4, 5, 'height', 30)))).toBeDefined();
	});
});

test('property edits are split by their size', () => {
	const edits = Array.from({ length: 10 }, (_, i) => tupleToProperty(['property', i, 0, i, 0, 'note', 'x'.repeat(500)]));
	expect(splitEdits(edits, 100, 2000).map((part) => part.length)).toEqual([2, 2, 2, 2, 2]);
});
