// messages.ts - what the page and the worker that computes formulas tell each other (docs/design/page.md).
import type { ICellData } from '@univerjs/core';
import type { Edit, StructureEdit } from '../v2/messages';

/** A cell as the sheet stores it. `value` is undefined if it is empty; `pattern` is its number format. */
export type CellMessage = [row: number, col: number, value: number | string | boolean | null | undefined, pattern?: string];

/** A cell with a formula that begins with "=". Its value is not told: the worker computes it. */
export type FormulaMessage = [row: number, col: number, formula: string];

export type ToWorker =
	| {
			t: 'start';
			/** Formulas that have exceeded the deadline. They are not computed. */
			stopped: string[];
			/** Tell each formula before it is computed, so that the page knows which one exceeds the deadline. */
			careful: boolean;
	  }
	/** `more`: others follow, so that it is too early to compute. */
	| { t: 'cells'; n: number; cells: CellMessage[]; formulas: FormulaMessage[]; more: boolean }
	/** Rows or columns were inserted or deleted. References in formulas follow as cells. */
	| { t: 'move'; n: number; change: StructureEdit }
	/** The hidden rows, which some functions leave out. */
	| { t: 'hidden'; n: number; rows: number[] }
	/** The time zone of NOW() and TODAY(), or a new day there. */
	| { t: 'clock'; n: number; zone: string }
	/** The sheet has this seq now. Random numbers depend on it. */
	| { t: 'seq'; n: number; seq: number }
	/** The tabs of the book, in their order. The sheet has the number 0. A number never names another tab. null: they are not known. */
	| { t: 'names'; n: number; names: readonly TabName[] | null }
	/** Edits of a tab that was asked for, whose contents are the first ones, up to seq. `isHere`: all is told. */
	| { t: 'edits'; n: number; tab: number; edits: Edit[]; seq: number; isHere: boolean }
	/** The cells of a tab come anew, or cannot be read. */
	| { t: 'tab'; n: number; tab: number; state: 'wanted' | 'refused' };

export interface TabName {
	tab: number;
	name: string;
}

/** What a cell shows; null: nothing. */
export type Result = [row: number, col: number, shown: ICellData | null];

export interface Spill {
	row: number;
	col: number;
	toRow: number;
	toCol: number;
}

export type FromWorker =
	| { t: 'ready' }
	/** A formula is about to be computed. Told if `careful`, or if the sheet has few formulas (`mostTold`). */
	| { t: 'at'; tab: number; row: number; col: number; formula: string }
	/** Formulas read tabs for the first time, or the names of tabs. Results follow when all of that is here. */
	| { t: 'wants'; tabs: number[] }
	/** Formulas have been computed since the last message. */
	| { t: 'alive' }
	| {
			t: 'results';
			/** As of this message to the worker. */
			n: number;
			/** Of cells with formulas. */
			values: Result[];
			/** Of the cells that array formulas fill, except the formulas' own. */
			filled: Result[];
			/** The ranges of array formulas that have changed, by their first cells; null: it fills no others any more. */
			spills: [row: number, col: number, spill: Spill | null][];
	  }
	/** All is computed that was told up to n. */
	| { t: 'done'; n: number };

/** Hears of names and cells. Tabs have numbers: the open sheet 0. */
export interface TabListener {
	names(names: readonly TabName[]): void;
	/** isHere: the edits so far are all cells, as of seq. */
	edits(tab: number, edits: Edit[], seq: number, isHere: boolean): void;
	/** The cells come anew, or cannot be read. */
	state(tab: number, state: 'wanted' | 'refused'): void;
}

/** Where the page gets the other tabs from. */
export interface OtherTabsSource {
	/** Another computation begins. It asks for the tabs that it reads. */
	listen(listener: TabListener): void;
	want(tabs: number[]): void;
	close(): void;
}
