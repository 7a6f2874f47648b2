// arrange.ts - the properties that the page shows: what they mean for rows, columns and cells (docs/PROTOCOL.md, Properties),
// and how a change by the user becomes edits. No grid, no connection.
//
// The user's changes are made to a copy of the set; the difference is what is sent (PropertySet.since).
import { maxCols, maxRows } from '../v2/lines';
import { isProperty, isStructure, type PropertyEdit, type Range } from '../v2/messages';
import type { Operation } from '../v2/client';
import { cellsOf, hasAllCols, hasAllRows, type PropertySet, sameValue } from '../v2/properties';

export type LineKey = 'width' | 'height' | 'hidden';

/** Consecutive rows or columns and the property that counts for them. */
export interface Run {
	first: number;
	last: number;
	property: PropertyEdit;
}

export interface Freeze {
	rows: number;
	cols: number;
}

/** Univer has no larger ones. */
const mostPixels = 2000;

export const wholeSheet: Range = { row: 0, col: 0, toRow: maxRows - 1, toCol: maxCols - 1 };

const lineRange = (ofRows: boolean, first: number, last: number): Range =>
	ofRows ? { ...wholeSheet, row: first, toRow: last } : { ...wholeSheet, col: first, toCol: last };

/** The sheet's properties with the edits of operations that are not in it yet. */
export function withOwn(sheet: PropertySet, operations: readonly Operation[]): PropertySet {
	const set = sheet.copy();
	for (const { lost, edits } of operations) {
		if (lost) continue;
		for (const edit of edits) {
			// What follows refers to rows and columns that the grid does not have yet.
			if (isStructure(edit)) break;
			if (isProperty(edit)) set.put(edit);
		}
	}
	return set;
}

/** The separators of lists in the columns that have one of their own. */
export function separatorsOf(set: PropertySet): Map<number, string> {
	const separators = new Map<number, string>();
	for (const property of set.of('list')) {
		const { value, col, toCol } = property;
		if (!hasAllRows(property) || typeof value !== 'string' || value === '' || value.includes('"')) continue;
		for (let at = col; at <= toCol; at++) separators.set(at, value);
	}
	return separators;
}

/** The properties of whole rows or columns, the first of which counts for a row that several have. */
function ranked(set: PropertySet, key: LineKey, ofRows: boolean): Run[] {
	return set
		.of(key)
		.filter((property) => (ofRows ? hasAllCols(property) : hasAllRows(property)) && !(key === 'hidden' && hasAllCols(property) && hasAllRows(property)))
		.map((property) => (ofRows ? { first: property.row, last: property.toRow, property } : { first: property.col, last: property.toCol, property }))
		.sort((a, b) => a.last - a.first - (b.last - b.first) || b.first - a.first);
}

/** Which property counts where. */
export function runsOf(set: PropertySet, key: LineKey, ofRows: boolean): Run[] {
	const candidates = ranked(set, key, ofRows);
	const edges = [...new Set(candidates.flatMap(({ first, last }) => [first, last + 1]))].sort((a, b) => a - b);
	const position = new Map(edges.map((edge, i) => [edge, i]));
	const owners: PropertyEdit[] = [];
	// Where the next part without an owner may be.
	const next = edges.map((_, i) => i);
	const free = (i: number): number => {
		while (next[i]! !== i) i = next[i] = next[next[i]!]!;
		return i;
	};
	for (const { first, last, property } of candidates) {
		const end = position.get(last + 1)!;
		for (let i = free(position.get(first)!); i < end; i = free(i)) {
			owners[i] = property;
			next[i] = i + 1;
		}
	}
	return edges.flatMap((first, i) => (owners[i] ? [{ first, last: edges[i + 1]! - 1, property: owners[i] }] : []));
}

/** The grid has an entry for each row or column with a value. If there are more, the longest runs have none from here on. */
const mostLines = 200_000;

/** The rows or columns below `count` that have a value. Other clients may have set any. */
function lines<T>(set: PropertySet, key: LineKey, ofRows: boolean, count: number, read: (value: unknown) => T | undefined): Map<number, T> {
	const values = new Map<number, T>();
	for (const { first, last, property } of runsOf(set, key, ofRows).sort((a, b) => a.last - a.first - (b.last - b.first))) {
		const value = read(property.value);
		const end = Math.min(last, count - 1, first + mostLines - values.size - 1);
		if (value !== undefined) for (let line = first; line <= end; line++) values.set(line, value);
	}
	return values;
}

export const sizes = (set: PropertySet, ofRows: boolean, count: number): Map<number, number> =>
	lines(set, ofRows ? 'height' : 'width', ofRows, count, (value) => (typeof value === 'number' && value > 0 ? Math.min(value, mostPixels) : undefined));

/** The height of all rows, if they are more than can have one each. */
export function commonHeight(set: PropertySet, count: number): number | undefined {
	const value = count > mostLines ? set.value({ ...wholeSheet, key: 'height' }) : undefined;
	return typeof value === 'number' && value > 0 ? Math.min(value, mostPixels) : undefined;
}

export const hiddenLines = (set: PropertySet, ofRows: boolean, count: number): Set<number> =>
	new Set(lines(set, 'hidden', ofRows, count, (value) => (value === true ? true : undefined)).keys());

export function freezeOf(set: PropertySet): Freeze {
	const value = set.value({ ...wholeSheet, key: 'freeze' }) as Partial<Freeze> | null;
	const count = (n: unknown): number => (Number.isSafeInteger(n) && (n as number) > 0 ? (n as number) : 0);
	return { rows: count(value?.rows), cols: count(value?.cols) };
}

export const overlap = (a: Range, b: Range): boolean => a.row <= b.toRow && b.row <= a.toRow && a.col <= b.toCol && b.col <= a.toCol;
/** Whether the second range has all of the first. */
export const isInside = (a: Range, b: Range): boolean => a.row >= b.row && a.toRow <= b.toRow && a.col >= b.col && a.toCol <= b.toCol;

/** The database refuses larger merges; the grid has an entry for each of their cells. */
const mostMerged = 100_000;
const blockRows = 64;

/** The merged ranges. Of those that overlap, the one with the fewest cells counts, then the one that begins last, then the highest. */
export function mergesOf(set: PropertySet): Range[] {
	const counts: PropertyEdit[] = [];
	/** Those that count, by the blocks of rows that they touch. */
	const inBlock = new Map<number, PropertyEdit[]>();
	const all = set.of('merge').filter((property) => property.value === true && cellsOf(property) > 1 && cellsOf(property) <= mostMerged);
	for (const merge of all.sort((a, b) => cellsOf(a) - cellsOf(b) || b.row - a.row || b.col - a.col || b.toRow - a.toRow)) {
		const last = Math.floor(merge.toRow / blockRows);
		let block = Math.floor(merge.row / blockRows);
		while (block <= last && !inBlock.get(block)?.some((other) => overlap(other, merge))) block++;
		if (block <= last) continue;
		counts.push(merge);
		for (block = Math.floor(merge.row / blockRows); block <= last; block++) {
			if (!inBlock.has(block)) inBlock.set(block, []);
			inBlock.get(block)!.push(merge);
		}
	}
	return counts;
}

// ---- changes by the user ----

/**
 * Gives rows or columns a value; null: none. Other properties of the key lose these rows where they would count, and keep
 * the rest.
 */
export function setLines(set: PropertySet, key: LineKey, ofRows: boolean, first: number, last: number, value: number | boolean | null): void {
	const runs = runsOf(set, key, ofRows);
	const inside = runs.filter((run) => run.first <= last && run.last >= first);
	const covered = inside.reduce((sum, run) => sum + Math.min(run.last, last) - Math.max(run.first, first) + 1, 0);
	if (covered === (value === null ? 0 : last - first + 1) && inside.every(({ property }) => sameValue(property.value, value))) return;
	for (const other of ranked(set, key, ofRows)) {
		const larger = other.last - other.first > last - first;
		if (other.first > last || other.last < first || (value !== null && larger)) continue;
		set.remove(other.property);
		for (const run of runs) {
			if (run.property !== other.property) continue;
			const put = (from: number, to: number) => from <= to && set.put({ ...lineRange(ofRows, from, to), key, value: other.property.value });
			put(run.first, Math.min(run.last, first - 1));
			put(Math.max(run.first, last + 1), run.last);
		}
	}
	// Only what is within something hidden must be said to be visible.
	const isNeeded = value !== false || ranked(set, key, ofRows).some((run) => run.first <= last && run.last >= first && run.property.value === true);
	if (isNeeded) set.put({ ...lineRange(ofRows, first, last), key, value });
}

export function unmerge(set: PropertySet, range: Range): void {
	for (const merge of set.of('merge')) if (overlap(merge, range)) set.remove(merge);
}

export function merge(set: PropertySet, range: Range): void {
	unmerge(set, range);
	if (cellsOf(range) > 1) set.put({ ...range, key: 'merge', value: true });
}

export function setFreeze(set: PropertySet, freeze: Freeze): void {
	set.put({ ...wholeSheet, key: 'freeze', value: freeze.rows || freeze.cols ? freeze : null });
}
