// reads.ts - finds the formulas that have read a cell.
//
// It has what the formulas that are done have read; the others are computed in any case. Formulas that have read the same range
// share an entry. A range is in one or two blocks, of as many rows as it has, rounded up to a power of two, and there by its
// columns. So a search looks only at ranges that are near, and formulas whose ranges begin together (running totals) cost
// hardly more than those that it finds.
import { maxCols, maxRows } from '../v2/lines';
import type { Range } from '../v2/messages';
import { type Area, type Formula, keyOf } from './cells';

interface Read {
	range: Area;
	readers: Set<Formula>;
}

/** Ranges of the same columns. */
interface Columns {
	col: number;
	toCol: number;
	/** By their rows. */
	reads: Map<number, Read>;
}

type Block = Map<number, Columns>;

const isCell = ({ row, col, toRow, toCol }: Range): boolean => row === toRow && col === toCol;
const rowsKey = ({ row, toRow }: Range): number => row * maxRows + toRow;
const columnsKey = ({ col, toCol }: Range): number => col * maxCols + toCol;
/** A block of this level has 2^level rows. */
const levelOf = ({ row, toRow }: Range): number => 32 - Math.clz32(toRow - row);
/** The block of a row. Those of a tab come after those of the one before. */
const blockOf = (tab: number, row: number, level: number): number => tab * (maxRows / 2 ** level) + (row >> level);

export class Reads {
	private cells = new Map<number, Set<Formula>>();
	/** By level and number. */
	private levels = new Map<number, Map<number, Block>>();
	private of = new Map<Formula, Area[]>();

	/** A formula has read these ranges. It is not here yet. */
	add(formula: Formula, ranges: Area[]): void {
		if (ranges.length === 0) return;
		this.of.set(formula, ranges);
		for (const range of ranges) {
			if (isCell(range)) {
				const key = keyOf(range.row, range.col, range.tab);
				const readers = this.cells.get(key);
				if (readers) readers.add(formula);
				else this.cells.set(key, new Set([formula]));
			} else this.readOf(range).readers.add(formula);
		}
	}

	remove(formula: Formula): void {
		for (const range of this.of.get(formula) ?? []) {
			if (isCell(range)) {
				const key = keyOf(range.row, range.col, range.tab);
				const readers = this.cells.get(key);
				readers?.delete(formula);
				if (readers?.size === 0) this.cells.delete(key);
			} else this.removeRead(range, formula);
		}
		this.of.delete(formula);
	}

	clear(): void {
		this.cells.clear();
		this.levels.clear();
		this.of.clear();
	}

	private readOf(range: Area): Read {
		const level = levelOf(range);
		const blocks = entry(this.levels, level, () => new Map<number, Block>());
		let read: Read | undefined;
		for (let number = blockOf(range.tab, range.row, level); number <= blockOf(range.tab, range.toRow, level); number++) {
			const block = entry(blocks, number, (): Block => new Map());
			const { reads } = entry(block, columnsKey(range), () => ({ col: range.col, toCol: range.toCol, reads: new Map<number, Read>() }));
			read = entry(reads, rowsKey(range), () => read ?? { range, readers: new Set() });
		}
		return read!;
	}

	private removeRead(range: Area, formula: Formula): void {
		const level = levelOf(range);
		const blocks = this.levels.get(level);
		for (let number = blockOf(range.tab, range.row, level); number <= blockOf(range.tab, range.toRow, level); number++) {
			const block = blocks?.get(number);
			const columns = block?.get(columnsKey(range));
			const read = columns?.reads.get(rowsKey(range));
			read?.readers.delete(formula);
			if (read?.readers.size !== 0) continue;
			columns!.reads.delete(rowsKey(range));
			if (columns!.reads.size === 0) block!.delete(columnsKey(range));
			if (block!.size === 0) blocks!.delete(number);
			if (blocks!.size === 0) this.levels.delete(level);
		}
	}

	/** The formulas that have read the cell. They may be removed meanwhile. */
	find(row: number, col: number, tab: number, found: (formula: Formula) => void): void {
		this.cells.get(keyOf(row, col, tab))?.forEach(found);
		for (const [level, blocks] of this.levels) {
			for (const columns of blocks.get(blockOf(tab, row, level))?.values() ?? []) {
				if (col < columns.col || col > columns.toCol) continue;
				for (const { range, readers } of columns.reads.values()) if (row >= range.row && row <= range.toRow) readers.forEach(found);
			}
		}
	}
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
	let value = map.get(key);
	if (value === undefined) map.set(key, (value = make()));
	return value;
}
