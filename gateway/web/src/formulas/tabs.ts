// tabs.ts - the tabs of a book in a computation: the sheet whose formulas are computed (number 0), and those that it reads, directly
// or through formulas of others. The names of
// the tabs are asked for when a formula has one, a tab when it is read first. Until they are there, no result is told.
import { CellStore, type Formula } from './cells';
import type { TabName } from './messages';
import { Spills } from './spills';

export type TabState =
	/** Nobody has read it yet. */
	| 'unread'
	/** It is asked for, and its cells are not all here. */
	| 'wanted'
	| 'here'
	/** It may not be read, or does not exist any more: who reads it shows #REF!. */
	| 'refused';

export interface Tab {
	state: TabState;
	readonly cells: CellStore;
	readonly spills: Spills;
	spillsChanged: boolean;
	hidden: Record<number, { hd: 1 }>;
	/** Where the contents end, for ranges that are read to their end. */
	end: { row: number; col: number };
	/** The seq of the cells. Random numbers follow from it. */
	seq: number;
	/** The time zone of NOW() and TODAY(). */
	zone: string;
	/** More cells are to come before it is worth to compute. */
	more: boolean;
}

function makeTab(state: TabState): Tab {
	const cells = new CellStore();
	return {
		...{ state, cells, spills: new Spills(cells), spillsChanged: false, hidden: {}, end: { row: -1, col: -1 } },
		...{ seq: 0, zone: 'UTC', more: false },
	};
}

/** Names that differ only in case name the same tab, by the full case folding of Unicode (sheet.tab_key() of the database). */
const tabKey = (name: string): string =>
	[...name.normalize('NFC')]
		.map((letter) => (letter === 'ı' ? letter : letter.toLowerCase().toUpperCase().toLowerCase()))
		.join('')
		.normalize('NFC');

export class Tabs {
	private readonly tabs: Tab[] = [makeTab('here')];
	/** All tabs of the book, in their order; null: not known yet. */
	names: readonly TabName[] | null = null;
	/** A formula depends on the names. */
	areNamesWanted = false;
	private readonly numbers = new Map<string, number>();

	/** The sheet whose formulas are computed. */
	get own(): Tab {
		return this.tabs[0]!;
	}

	get(number: number): Tab {
		while (this.tabs.length <= number) this.tabs.push(makeTab('unread'));
		return this.tabs[number]!;
	}

	[Symbol.iterator](): IterableIterator<Tab> {
		return this.tabs.values();
	}

	/** Forgets the cells of a tab. */
	replace(number: number, state: TabState): void {
		this.tabs[number] = makeTab(state);
	}

	setNames(names: readonly TabName[] | null): void {
		this.names = names;
		this.areNamesWanted = false;
		this.numbers.clear();
		for (const { tab, name } of names ?? []) {
			this.get(tab);
			this.numbers.set(tabKey(name), tab);
		}
	}

	named(name: string): number | undefined {
		return this.numbers.get(tabKey(name));
	}

	/** Cells of the own sheet are to come, or those of a tab that a formula has read, or the names. */
	get areComing(): boolean {
		return this.areNamesWanted || this.tabs.some(({ state, more }) => state === 'wanted' || more);
	}

	*formulas(): Iterable<Formula> {
		for (const { cells } of this.tabs) yield* cells.formulas;
	}

	get formulaCount(): number {
		return this.tabs.reduce((count, { cells }) => count + cells.formulas.size, 0);
	}
}
