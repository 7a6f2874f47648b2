// messages.ts - what the main thread and the threads that compute tell each other.

import type { TabName } from '../gateway/web/src/formulas/messages';

/**
 * A job of a sheet: `open` (unless the thread has the sheet), contents and edits, and `compute`. Until the thread has answered, it gets
 * no job of another sheet. `tab`: of another tab of its book, for this sheet.
 */
export type ToThread =
	/** A sheet without cells. The texts of formulas in `stopped` are not computed; with `off` none is. */
	| { t: 'open'; sheet: string; stopped: string[]; off: boolean }
	/** The tabs of its book. The sheet itself has the number 0. null: they are not known. */
	| { t: 'names'; sheet: string; names: TabName[] | null }
	/** Another tab comes anew, is all here, or cannot be read. */
	| {
			t: 'tab';
			sheet: string;
			tab: number;
			state: 'wanted' | 'here' | 'refused';
	  }
	| {
			t: 'properties';
			sheet: string;
			tab: number;
			rows: number;
			bytes: Uint8Array | null;
	  }
	| { t: 'cells'; sheet: string; tab: number; rows: number; bytes: Uint8Array }
	/** Batches of the log. Up to `read`, the cells have their edits already, and only the properties lack them. */
	| { t: 'edits'; sheet: string; tab: number; bytes: Uint8Array; read: number }
	/** `others`: the seqs of the other tabs. */
	| {
			t: 'compute';
			sheet: string;
			seq: number;
			others: [tab: number, seq: number][];
	  }
	/** The values of the last computation are in the database. */
	| { t: 'stored'; sheet: string }
	| { t: 'close'; sheet: string };

export interface Values {
	row: number[];
	col: number[];
	/** As contents; null: there is no value any more. */
	value: (string | null)[];
	filled: boolean[];
	/** What is not named has no value any more. */
	whole: boolean;
	/** When formulas with the time are to be computed again, in milliseconds since 1970. */
	againAt: number | null;
	/** Values depend on the names of tabs. */
	readsNames: boolean;
}

export type FromThread =
	/** It can take its first job. */
	| { t: 'ready' }
	| { t: 'computed'; values: Values; weight: number }
	/** The names of tabs are to come first, and these tabs; then it is to compute again. */
	| { t: 'wants'; tabs: number[] }
	/** The job cannot be done. */
	| { t: 'failed'; message: string };
