// reads.ts - finds the formulas that have read a cell.
//
// A range of few rows is in the blocks of rows that it touches, so that a search looks at its neighbours only. All others are in
// one list. The cost of a range does not depend on its cells.
import type { Place, Range } from '../v2/messages';
import { type Formula, keyOf } from './cells';

interface Read {
	range: Range;
	formula: Formula;
}

const blockRows = 256;
const mostBlocks = 4;

const blockOf = (row: number): number => Math.floor(row / blockRows);
const contains = (range: Range, { row, col }: Place): boolean => row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol;
const overlaps = (a: Range, b: Range): boolean => a.row <= b.toRow && b.row <= a.toRow && a.col <= b.toCol && b.col <= a.toCol;
const isCell = ({ row, col, toRow, toCol }: Range): boolean => row === toRow && col === toCol;

export class Reads {
	private cells = new Map<number, Set<Formula>>();
	private blocks = new Map<number, Set<Read>>();
	private others = new Set<Read>();
	private of = new Map<Formula, { cells: number[]; ranges: Read[] }>();

	/** Replaces what a formula has read. */
	set(formula: Formula, ranges: Range[]): void {
		this.remove(formula);
		if (ranges.length === 0) return;
		const entry: { cells: number[]; ranges: Read[] } = { cells: [], ranges: [] };
		for (const range of ranges) {
			if (isCell(range)) {
				const key = keyOf(range.row, range.col);
				let readers = this.cells.get(key);
				if (!readers) this.cells.set(key, (readers = new Set()));
				readers.add(formula);
				entry.cells.push(key);
				continue;
			}
			const read = { range, formula };
			entry.ranges.push(read);
			for (const list of this.listsOf(range, true)) list.add(read);
		}
		this.of.set(formula, entry);
	}

	remove(formula: Formula): void {
		const entry = this.of.get(formula);
		if (!entry) return;
		this.of.delete(formula);
		for (const key of entry.cells) {
			const readers = this.cells.get(key);
			readers?.delete(formula);
			if (readers?.size === 0) this.cells.delete(key);
		}
		for (const read of entry.ranges) for (const list of this.listsOf(read.range, false)) list.delete(read);
	}

	clear(): void {
		this.cells.clear();
		this.blocks.clear();
		this.others.clear();
		this.of.clear();
	}

	private listsOf(range: Range, make: boolean): Set<Read>[] {
		const [first, last] = [blockOf(range.row), blockOf(range.toRow)];
		if (last - first >= mostBlocks) return [this.others];
		const lists: Set<Read>[] = [];
		for (let block = first; block <= last; block++) {
			let list = this.blocks.get(block);
			if (!list && make) this.blocks.set(block, (list = new Set()));
			if (list) lists.push(list);
		}
		return lists;
	}

	/** The formulas that have read the cell. */
	find(place: Place, found: (formula: Formula) => void): void {
		this.cells.get(keyOf(place.row, place.col))?.forEach(found);
		for (const list of [this.blocks.get(blockOf(place.row)), this.others]) list?.forEach(({ range, formula }) => contains(range, place) && found(formula));
	}

	/** The formulas that have read one of the cells. */
	findAll(places: Place[], found: (formula: Formula) => void): void {
		if (places.length === 0) return;
		const area = { row: Infinity, col: Infinity, toRow: -1, toCol: -1 };
		const inBlocks = new Map<number, Place[]>();
		for (const place of places) {
			const { row, col } = place;
			this.cells.get(keyOf(row, col))?.forEach(found);
			Object.assign(area, { row: Math.min(area.row, row), col: Math.min(area.col, col), toRow: Math.max(area.toRow, row), toCol: Math.max(area.toCol, col) });
			const block = blockOf(row);
			if (!this.blocks.has(block)) continue;
			if (!inBlocks.has(block)) inBlocks.set(block, []);
			inBlocks.get(block)!.push(place);
		}
		const search = (list: Set<Read>, among: Place[]) =>
			list.forEach(({ range, formula }) => {
				if (overlaps(range, area) && among.some((place) => contains(range, place))) found(formula);
			});
		for (const [block, among] of inBlocks) search(this.blocks.get(block)!, among);
		search(this.others, places);
	}
}
