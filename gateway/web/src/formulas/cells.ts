// cells.ts - the worker's copy of a tab's cells: their contents, and what formulas and arrays show.
import type { ICellData } from '@univerjs/core';
import { isOfRows, maxCols, maxRows, movePlace } from '../v2/lines';
import type { Range, StructureEdit } from '../v2/messages';

/** A range of a tab. */
export interface Area extends Range {
	tab: number;
}

export interface Formula {
	/** Number of its tab; 0: the sheet whose formulas are computed. */
	tab: number;
	row: number;
	col: number;
	text: string;
	/** Its value is that of the present cells. */
	done: boolean;
	/** It has been computed in this pass and waits for others. */
	started: boolean;
	/** The formulas without a value that it reads first. */
	waits: Needs | null;
	/** What the cell shows, unless its array does not fit. */
	value: ICellData;
	/** All values of an array of several cells. */
	array: (ICellData | null)[][] | null;
	/** The cells that its array fills; null: it fills none. */
	spill: Range | null;
	/** What its value depends on. */
	reads: Area[];
	/** It depends on the names of tabs, or on which of them can be read. */
	readsBook: boolean;
	/** A range that it has read ends where the sheet's contents end. */
	readsToEnd: boolean;
	volatile: boolean;
	/** The formulas whose arrays and values change each other for ever, if it is one of them. */
	circle: Formula[] | null;
	/** It is not in the sheet any more. */
	removed: boolean;
}

/** The formulas without a value that a range contains. All that have read it share them. */
export interface Needs {
	formulas: Formula[];
	/** They were found when the unfinished formulas had this version. */
	version: number;
	/** They have been computed in this pass, or are about to be. */
	isOpen: boolean;
}

/** Contents without a formula; those with a format are objects. */
export type Cell = number | string | boolean | ICellData | Formula;

export const keyOf = (row: number, col: number, tab = 0): number => (tab * maxRows + row) * maxCols + col;

export function isFormula(cell: Cell | undefined): cell is Formula {
	return typeof cell === 'object' && 'text' in cell;
}

const numberType = 2;
const stringType = 1;
const booleanType = 3;

/** A content as Univer's functions read it. */
function dataOf(cell: Exclude<Cell, Formula>): ICellData {
	if (typeof cell === 'number') return { v: cell, t: numberType };
	if (typeof cell === 'string') return { v: cell, t: stringType };
	if (typeof cell === 'boolean') return { v: cell ? 1 : 0, t: booleanType };
	return cell;
}

export function cellOf(value: number | string | boolean, pattern?: string): Exclude<Cell, Formula> {
	return pattern ? { ...dataOf(value), s: { n: { pattern } } } : value;
}

/** Ends of what is not empty. Adding is O(1); the end is searched again after the last line has become empty. */
class Extent {
	private readonly counts = new Map<number, number>();
	private end: number | null = -1;

	add(line: number): void {
		this.counts.set(line, (this.counts.get(line) ?? 0) + 1);
		if (this.end !== null && line > this.end) this.end = line;
	}

	remove(line: number): void {
		const count = this.counts.get(line)! - 1;
		if (count > 0) this.counts.set(line, count);
		else this.counts.delete(line);
		if (count === 0 && line === this.end) this.end = null;
	}

	last(): number {
		if (this.end === null) {
			this.end = -1;
			for (const line of this.counts.keys()) if (line > this.end) this.end = line;
		}
		return this.end;
	}
}

export class CellStore {
	private rows = new Map<number, Map<number, Cell>>();
	private rowExtent = new Extent();
	private colExtent = new Extent();
	/** What arrays fill, by rows and columns. */
	private filled = new Map<number, Map<number, { shown: ICellData | null; by: Formula }>>();
	readonly formulas = new Set<Formula>();

	get(row: number, col: number): Cell | undefined {
		return this.rows.get(row)?.get(col);
	}

	set(row: number, col: number, cell: Cell | undefined): void {
		let cells = this.rows.get(row);
		const old = cells?.get(col);
		if (isFormula(old)) {
			old.removed = true;
			this.formulas.delete(old);
		}
		if (isFormula(cell)) this.formulas.add(cell);
		if (cell === undefined) {
			if (old === undefined) return;
			cells!.delete(col);
			if (cells!.size === 0) this.rows.delete(row);
			this.rowExtent.remove(row);
			this.colExtent.remove(col);
			return;
		}
		if (!cells) this.rows.set(row, (cells = new Map()));
		cells.set(col, cell);
		if (old !== undefined) return;
		this.rowExtent.add(row);
		this.colExtent.add(col);
	}

	/** The last row and column that have contents; -1: there are none. */
	end(): { row: number; col: number } {
		return { row: this.rowExtent.last(), col: this.colExtent.last() };
	}

	/** What a cell shows; null: nothing. */
	shown(row: number, col: number): ICellData | null {
		const cell = this.get(row, col);
		if (cell === undefined) return this.filled.get(row)?.get(col)?.shown ?? null;
		if (!isFormula(cell)) return dataOf(cell);
		return cell.value;
	}

	/** The formula that a cell's value comes from. */
	source(row: number, col: number): Formula | undefined {
		const cell = this.get(row, col);
		if (cell === undefined) return this.filled.get(row)?.get(col)?.by;
		return isFormula(cell) ? cell : undefined;
	}

	isFilled(row: number, col: number): boolean {
		return this.filled.get(row)?.has(col) === true;
	}

	fill(row: number, col: number, shown: ICellData | null, by: Formula): void {
		let cells = this.filled.get(row);
		if (!cells) this.filled.set(row, (cells = new Map()));
		cells.set(col, { shown, by });
	}

	empty(row: number, col: number): void {
		const cells = this.filled.get(row);
		cells?.delete(col);
		if (cells?.size === 0) this.filled.delete(row);
	}

	/** Moves the cells as an insertion or a deletion of rows or columns does. All arrays must be empty. */
	move(change: StructureEdit): void {
		const old = this.rows;
		this.rows = new Map();
		this.rowExtent = new Extent();
		this.colExtent = new Extent();
		this.formulas.clear();
		const ofRows = isOfRows(change);
		const untouched = (line: number) => line < change.at;
		for (const [row, cells] of old) {
			for (const [col, cell] of cells) {
				const place = untouched(ofRows ? row : col) ? { row, col } : movePlace({ row, col }, change);
				if (isFormula(cell)) {
					if (place) Object.assign(cell, place);
					else cell.removed = true;
				}
				if (place) this.set(place.row, place.col, cell);
			}
		}
	}
}
