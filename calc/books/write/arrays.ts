// arrays.ts - which formula of a sheet has filled which cells. Only that arrays have filled them is stored.
import { keyOf } from '../../../gateway/web/src/formulas/cells';
import { maxCols } from '../../../gateway/web/src/v2/lines';
import type { Range } from '../../../gateway/web/src/v2/messages';

/** What is looked at, at most. */
const mostSteps = 20_000_000;

export interface Filled {
	range: Range;
	cells: number[];
}

const rowOf = (key: number): number => Math.floor(key / maxCols);

/** Columns by their rows, in order. */
function byRows(keys: Iterable<number>): Map<number, number[]> {
	const rows = new Map<number, number[]>();
	for (const key of Float64Array.from(keys).sort()) {
		const cols = rows.get(rowOf(key));
		if (cols) cols.push(key % maxCols);
		else rows.set(rowOf(key), [key % maxCols]);
	}
	return rows;
}

/** Where the first one is that is not below `value`. */
function indexOf(sorted: readonly number[], value: number): number {
	let [low, high] = [0, sorted.length];
	while (low < high) {
		const middle = (low + high) >> 1;
		if (sorted[middle]! < value) low = middle + 1;
		else high = middle;
	}
	return low;
}

/**
 * An array is a rectangle from its formula on. It has no other contents, overlaps no other array, and some of its cells may be empty. So
 * these cells are certain: all that a formula could have filled, if no other one could have filled one of them.
 */
export function filledBy(formulas: number[], contents: Iterable<number>, filled: ReadonlySet<number>): Map<number, Filled> {
	const [taken, cells] = [byRows(contents), byRows(filled)];
	const rows = [...new Set([...taken.keys(), ...cells.keys()])].sort((a, b) => a - b);
	const lastRow = [...cells.keys()].at(-1) ?? -1;
	const owners = new Map<number, number>();
	const doubtful = new Set<number>();
	let steps = 0;
	for (const formula of formulas) {
		const [row, col] = [rowOf(formula), formula % maxCols];
		let end = maxCols;
		for (let i = indexOf(rows, row); i < rows.length && rows[i]! <= lastRow && end > col; i++) {
			const at = rows[i]!;
			const others = taken.get(at) ?? [];
			end = Math.min(end, others[indexOf(others, at === row ? col + 1 : col)] ?? maxCols);
			const cols = cells.get(at) ?? [];
			for (let j = indexOf(cols, col); j < cols.length && cols[j]! < end; j++, steps++) {
				const key = keyOf(at, cols[j]!);
				const owner = owners.get(key);
				if (owner === undefined) owners.set(key, formula);
				else doubtful.add(owner).add(formula);
			}
			if (++steps > mostSteps) return new Map();
		}
	}
	const found = new Map<number, Filled>();
	for (const [key, owner] of owners) {
		if (doubtful.has(owner)) continue;
		const [row, col] = [rowOf(key), key % maxCols];
		const one = found.get(owner) ?? { range: { row: rowOf(owner), col: owner % maxCols, toRow: row, toCol: col }, cells: [] };
		one.range.toRow = Math.max(one.range.toRow, row);
		one.range.toCol = Math.max(one.range.toCol, col);
		one.cells.push(key);
		found.set(owner, one);
	}
	return found;
}
