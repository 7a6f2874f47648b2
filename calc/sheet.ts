// sheet.ts - a sheet in a thread that computes: its cells follow from what the database has stored, and its values go there. The other
// tabs of its book that its formulas read are here, too. Calculation gets the same messages as in the page (view/formulas/computing.ts).
import { Calculation } from '../gateway/web/src/formulas/calculation';
import { isFormula, keyOf } from '../gateway/web/src/formulas/cells';
import type { Evaluator } from '../gateway/web/src/formulas/evaluator';
import type { FromWorker, TabName } from '../gateway/web/src/formulas/messages';
import { TabCells } from '../gateway/web/src/formulas/tab_cells';
import { ByteReader } from '../gateway/web/src/v2/bytes';
import { readBatches, readStoredProperties } from '../gateway/web/src/v2/edits';
import { maxCols } from '../gateway/web/src/v2/lines';
import { isProperty, isStructure } from '../gateway/web/src/v2/messages';
import { againAt } from './again';
import type { Values } from './messages';
import { valueContent } from './values';

/** What a formula weighs, compared with a cell. */
const formulaWeight = 10;
const sheetWeight = 500;

/** No formula is computed. */
class All extends Set<string> {
	override has(): boolean {
		return true;
	}
}

export interface Hooks {
	/** The thread is alive, and computes this formula next; '': none. */
	alive(formula: string): void;
	/** Resolves when messages that wait have been handled. */
	pause(): Promise<void>;
}

type Pending = { value: string | null; filled: boolean };

export class ComputedSheet {
	private readonly calculation: Calculation;
	/** By their numbers; the sheet itself is the first one. */
	private readonly tabs = new Map<number, TabCells>();
	/** What the database has not stored yet. */
	private pending = new Map<number, Pending>();
	private whole = true;
	private n = 0;
	/** Tabs that formulas read, and that are to come first. They may be known before compute() is called. */
	private wants: number[] | null = null;
	private finished: (() => void) | null = null;
	private failed: ((error: unknown) => void) | null = null;

	constructor(evaluator: Evaluator, stopped: string[], off: boolean, hooks: Hooks) {
		this.calculation = new Calculation(evaluator, {
			stopped: off ? new All() : new Set(stopped),
			careful: true,
			post: (message) => {
				hooks.alive(message.t === 'at' ? message.formula : '');
				this.hear(message);
			},
			pause: () => hooks.pause(),
			failed: (error) => this.failed?.(error),
		});
	}

	// ---- contents ----

	private tab(number: number): TabCells {
		let tab = this.tabs.get(number);
		if (!tab) {
			const onGone = (key: number) => void (number === 0 && this.pending.set(key, { value: null, filled: false }));
			this.tabs.set(number, (tab = new TabCells(this.calculation, number, () => ++this.n, onGone)));
		}
		return tab;
	}

	setNames(names: TabName[] | null): void {
		for (const number of this.tabs.keys()) if (number > 0 && !names?.some(({ tab }) => tab === number)) this.tabs.delete(number);
		this.calculation.setNames(++this.n, names);
	}

	/** The cells of another tab are to come ('wanted'), are all here, or cannot be read. */
	setTab(number: number, state: 'wanted' | 'here' | 'refused'): void {
		if (state !== 'here') this.tabs.delete(number);
		this.calculation.setState(++this.n, number, state);
	}

	setProperties(rows: number, bytes: Uint8Array | null, number = 0): void {
		const tab = this.tab(number);
		tab.rows = rows;
		if (bytes) for (const property of readStoredProperties(new ByteReader(bytes))) tab.put(property);
	}

	addCells(rows: number, bytes: Uint8Array, number = 0): void {
		const tab = this.tab(number);
		tab.rows = Math.max(tab.rows, rows);
		for (const { edit } of readBatches(new ByteReader(bytes))) if (edit && !isStructure(edit) && !isProperty(edit)) tab.edit(edit);
		tab.tell(true);
	}

	/** Edits of the log. Those up to `read` are in the cells already. */
	addEdits(bytes: Uint8Array, read: number, number = 0): void {
		const tab = this.tab(number);
		for (const { seq, edit } of readBatches(new ByteReader(bytes))) {
			if (!edit) continue;
			if (isProperty(edit)) tab.put(edit);
			else if (isStructure(edit)) {
				tab.properties.move(edit);
				if (seq <= read) continue;
				if (number === 0) {
					// All is computed again.
					this.pending.clear();
					this.whole = true;
				}
				tab.move(edit);
			} else if (seq > read) tab.edit(edit);
		}
	}

	// ---- computing ----

	/** Computes the formulas of the sheet as of seq. `others`: the seqs of other tabs. Resolves to what the database has not stored yet; null: names of tabs, or tabs, are to come first (takeWants()). */
	async compute(seq: number, others: [tab: number, seq: number][] = []): Promise<Values | null> {
		const computed = new Promise<void>((resolve, reject) => {
			this.finished = resolve;
			this.failed = reject;
		});
		for (const [tab, its] of [...others, [0, seq] as const]) this.tab(tab).settle(its);
		if (!this.wants) await computed;
		this.finished = this.failed = null;
		return this.wants ? null : this.values();
	}

	takeWants(): number[] {
		const wants = this.wants ?? [];
		this.wants = null;
		return wants;
	}

	private values(): Values {
		const times = [...this.tabs].flatMap(([number, tab]) => againAt(tab.currentZone, this.calculation.cellsOf(number).formulas) ?? []);
		const values: Values = {
			...{ row: [], col: [], value: [], filled: [], whole: this.whole },
			againAt: times.length > 0 ? Math.min(...times) : null,
			readsNames: this.calculation.readsNames,
		};
		for (const [key, { value, filled }] of this.pending) {
			if (this.whole && value === null) continue;
			values.row.push(Math.floor(key / maxCols));
			values.col.push(key % maxCols);
			values.value.push(value);
			values.filled.push(filled);
		}
		return values;
	}

	/** The database has stored all values. */
	stored(): void {
		this.pending.clear();
		this.whole = false;
	}

	get weight(): number {
		let weight = sheetWeight;
		for (const [number, { count }] of this.tabs) weight += count + this.calculation.cellsOf(number).formulas.size * formulaWeight;
		return weight;
	}

	private hear(message: FromWorker): void {
		if (message.t === 'done' && message.n === this.n) this.finished?.();
		if (message.t === 'wants') {
			this.wants = [...(this.wants ?? []), ...message.tabs];
			this.finished?.();
		}
		if (message.t !== 'results') return;
		const own = this.tab(0);
		for (const [row, col, shown] of message.filled) {
			const key = keyOf(row, col);
			if (shown)
				this.pending.set(key, {
					value: valueContent(shown, own.pattern(key)),
					filled: true,
				});
			else if (!isFormula(this.calculation.cells.get(row, col))) this.pending.set(key, { value: null, filled: false });
		}
		for (const [row, col, shown] of message.values) {
			const key = keyOf(row, col);
			this.pending.set(key, {
				value: shown && valueContent(shown, own.pattern(key)),
				filled: false,
			});
		}
		for (const [, , spill] of message.spills) if (spill) own.rows = Math.max(own.rows, spill.toRow + 1);
	}
}
