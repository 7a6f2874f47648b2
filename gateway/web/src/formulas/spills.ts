// spills.ts - which cells the arrays of formulas fill.
//
// It depends only on the contents and the arrays, not on the order in which they came: an array fills its cells if they are
// empty and if no array fills one of them whose formula is above, or in the same row on the left.
import type { Place, Range } from '../v2/messages';
import { maxCols, maxRows } from '../v2/lines';
import type { CellStore, Formula } from './cells';

const wantedBy = ({ row, col, array }: Formula): Range => ({ row, col, toRow: row + array!.length - 1, toCol: col + array![0]!.length - 1 });

function sameRange(a: Range | null, b: Range | null): boolean {
	return a === b || (!!a && !!b && a.row === b.row && a.col === b.col && a.toRow === b.toRow && a.toCol === b.toCol);
}

const inOrder = (a: Formula, b: Formula): number => a.row - b.row || a.col - b.col;

export class Spills {
	/** The formulas with arrays, of which some do not fit. */
	private readonly arrays = new Set<Formula>();
	/** Formulas that fill cells, with the array that is there. */
	private readonly shown = new Map<Formula, Formula['array']>();

	/** By ranges; what is filled has not changed since. */
	private readonly ends = new Map<string, { row: number; col: number }>();

	constructor(private readonly cells: CellStore) {}

	get isEmpty(): boolean {
		return this.arrays.size === 0 && this.shown.size === 0;
	}

	/** A formula has another value, or is gone. */
	set(formula: Formula): void {
		if (formula.array && !formula.removed) this.arrays.add(formula);
		else this.arrays.delete(formula);
	}

	/** The contents of these cells have changed. Returns whether that can matter. */
	touches(places: Place[]): boolean {
		if (places.length === 0) return false;
		for (const formula of this.arrays) {
			const { row, col, toRow, toCol } = wantedBy(formula);
			if (places.some((place) => place.row >= row && place.row <= toRow && place.col >= col && place.col <= toCol)) return true;
		}
		return false;
	}

	/** The last row and column that are filled in the columns and rows of a range. */
	endIn(range: Range): { row: number; col: number } {
		const key = `${range.row},${range.col},${range.toRow},${range.toCol}`;
		let end = this.ends.get(key);
		if (!end) this.ends.set(key, (end = this.end(range, () => true)));
		return end;
	}

	/** The last row and column that are filled in these columns and rows by formulas that `counts` accepts. */
	end(range: Range | null, counts: (formula: Formula) => boolean): { row: number; col: number } {
		const end = { row: -1, col: -1 };
		for (const formula of this.shown.keys()) {
			const { spill } = formula;
			if (!spill || !counts(formula)) continue;
			if (!range || (spill.col <= range.toCol && spill.toCol >= range.col)) end.row = Math.max(end.row, spill.toRow);
			if (!range || (spill.row <= range.toRow && spill.toRow >= range.row)) end.col = Math.max(end.col, spill.toCol);
		}
		return end;
	}

	/**
	 * Fills and empties cells. Calls `changed` for those that show something else, and `resized` for formulas whose array fills
	 * other cells, or begins or ceases to fit.
	 */
	resolve(changed: (row: number, col: number) => void, resized: (formula: Formula) => void): void {
		const taken = new Map<number, Range[]>();
		const rowsOf = 64;
		const fits = (range: Range, formula: Formula): boolean => {
			if (range.toRow >= maxRows || range.toCol >= maxCols) return false;
			for (let row = range.row; row <= range.toRow; row++)
				for (let col = range.col; col <= range.toCol; col++)
					if ((row !== formula.row || col !== formula.col) && this.cells.get(row, col) !== undefined) return false;
			for (let block = Math.floor(range.row / rowsOf); block <= Math.floor(range.toRow / rowsOf); block++)
				if (taken.get(block)?.some((other) => other.row <= range.toRow && range.row <= other.toRow && other.col <= range.toCol && range.col <= other.toCol))
					return false;
			return true;
		};
		const spills = new Map<Formula, Range>();
		for (const formula of [...this.arrays].sort(inOrder)) {
			const range = wantedBy(formula);
			if (!fits(range, formula)) continue;
			spills.set(formula, range);
			for (let block = Math.floor(range.row / rowsOf); block <= Math.floor(range.toRow / rowsOf); block++) {
				if (!taken.has(block)) taken.set(block, []);
				taken.get(block)!.push(range);
			}
		}
		const before = new Map<Formula, Range | null>();
		// First what is not filled any more, so that others can fill it.
		for (const [formula, array] of this.shown) {
			const range = spills.get(formula);
			if (range && array === formula.array && sameRange(range, formula.spill)) continue;
			before.set(formula, formula.spill);
			this.empty(formula, changed);
		}
		for (const [formula, range] of spills) {
			if (this.shown.has(formula)) continue;
			if (!before.has(formula)) before.set(formula, null);
			this.fill(formula, range, changed);
		}
		for (const formula of this.arrays) if (formula.spill === null && !before.has(formula)) before.set(formula, null);
		for (const formula of before.keys()) resized(formula);
	}

	/** Empties all, before the cells move. */
	clear(changed: (row: number, col: number) => void): void {
		for (const formula of [...this.shown.keys()]) this.empty(formula, changed);
		this.arrays.clear();
	}

	private empty(formula: Formula, changed: (row: number, col: number) => void): void {
		this.ends.clear();
		this.shown.delete(formula);
		const { row, col, toRow, toCol } = formula.spill!;
		formula.spill = null;
		for (let r = row; r <= toRow; r++) {
			for (let c = col; c <= toCol; c++) {
				if (r === row && c === col) continue;
				this.cells.empty(r, c);
				changed(r, c);
			}
		}
	}

	private fill(formula: Formula, range: Range, changed: (row: number, col: number) => void): void {
		this.ends.clear();
		this.shown.set(formula, formula.array);
		formula.spill = range;
		formula.array!.forEach((line, i) => {
			for (let j = 0; j < line.length; j++) {
				if (i === 0 && j === 0) continue;
				this.cells.fill(range.row + i, range.col + j, line[j] ?? null, formula);
				changed(range.row + i, range.col + j);
			}
		});
	}
}
