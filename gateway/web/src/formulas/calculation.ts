// calculation.ts - computes the formulas of a sheet, so that what they show is a function of the contents, those of other tabs
// included (tabs.ts): the same in each page, in whatever order it has heard of the edits.
//
// A change marks all formulas that depend on it. One of them is computed; if it has read formulas that are marked, too, these
// come first and it is computed again. What remains then waits for itself: formulas in a circle show #CYCLE!, and the others
// go on. So the order of formulas follows from what they really read, also by INDIRECT() or OFFSET(). Arrays fill cells when
// all formulas are computed (spills.ts); those that have read one of these cells are marked again.
import type { ICellData } from '@univerjs/core';
import type { Place, Range, StructureEdit } from '../v2/messages';
import { type Area, cellOf, type CellStore, type Formula, isFormula, keyOf, type Needs } from './cells';
import { circular } from './cycles';
import { errorCell, type Evaluator, type Sheet } from './evaluator';
import { setZone } from './functions';
import { mostRead, mostRounds, mostTold } from './limits';
import type { CellMessage, FormulaMessage, FromWorker, Result, TabName } from './messages';
import { Reads } from './reads';
import { type Tab, Tabs, type TabState } from './tabs';
import { Unfinished } from './unfinished';

const cycle = errorCell('#CYCLE!');
const stoppedCell = errorCell('#CALC!');
const spillError = errorCell('#SPILL!');
/** A computation makes room for messages so often. */
const sliceMs = 100;
/** In a range of more cells, the formulas without a value are not looked for cell by cell. */
const fewCells = 64;

function sameCell(a: ICellData | null, b: ICellData | null): boolean {
	return a === b || (!!a && !!b && a.v === b.v && a.t === b.t && JSON.stringify([a.s, a.p]) === JSON.stringify([b.s, b.p]));
}

export interface CalculationOptions {
	/** Texts of formulas that are not computed. */
	stopped: Set<string>;
	/** Tell each formula before it is computed. */
	careful: boolean;
	post(message: FromWorker): void;
	/** Resolves when messages that wait have been handled. */
	pause(): Promise<void>;
	/** The computation has ended with an error. */
	failed(error: unknown): void;
}

export class Calculation {
	private readonly tabs = new Tabs();
	private readonly reads = new Reads();
	private readonly unfinished = new Unfinished();
	/** How often formulas were marked again since the last change. */
	private rounds = 0;
	/** The formulas that are computed after each change. */
	private readonly volatile = new Set<Formula>();
	private running = false;
	/** Tabs that have been read, and are not asked for yet. */
	private wanted: number[] = [];
	private isWanting = false;
	/** Number of changes since the computation began to look at them. */
	private changes = 0;
	private told = 0;
	// Changes for the next message to the page.
	private values = new Set<Formula>();
	private filled = new Map<number, Place>();
	private resized = new Set<Formula>();
	private gone: [row: number, col: number, spill: null][] = [];
	private posted = 0;
	// The ranges that the current formula has read, and the formulas in them that have no value yet.
	private readNow: Area[] = [];
	private needs: Needs[] = [];
	private readsToEnd = false;
	private readsBook = false;
	/** By ranges, as of `needsVersion`. */
	private readonly needsOf = new Map<string, Needs>();
	private needsVersion = -1;

	constructor(
		private readonly evaluator: Evaluator,
		private readonly options: CalculationOptions,
	) {}

	/** The cells of the own sheet. */
	get cells(): CellStore {
		return this.tabs.own.cells;
	}

	cellsOf(tab: number): CellStore {
		return this.tabs.get(tab).cells;
	}

	/** Numbers of the other tabs that formulas have asked for. */
	get others(): number[] {
		return [...this.tabs].flatMap(({ state }, number) => (number > 0 && state !== 'unread' ? [number] : []));
	}

	/** Whether a value depends on the names of tabs. */
	get readsNames(): boolean {
		for (const { readsBook } of this.tabs.formulas()) if (readsBook) return true;
		return false;
	}

	// ---- changes ----

	/** Contents have changed. */
	set(n: number, cells: CellMessage[], formulas: FormulaMessage[], more = false, number = 0): void {
		const tab = this.tabs.get(number);
		const places: Place[] = [];
		const write = (row: number, col: number, cell: Parameters<CellStore['set']>[2]) => {
			const old = tab.cells.get(row, col);
			// The page has emptied it.
			if (number === 0 && tab.cells.isFilled(row, col)) this.filled.set(keyOf(row, col), { row, col });
			if (old === undefined && cell === undefined) return;
			if (isFormula(old)) this.forget(old);
			tab.cells.set(row, col, cell);
			places.push({ row, col });
		};
		for (const [row, col, value, pattern] of cells) write(row, col, value === undefined || value === null ? undefined : cellOf(value, pattern));
		for (const [row, col, text] of formulas) {
			const old = tab.cells.get(row, col);
			if (isFormula(old) && old.text === text) {
				// The page has written it again, without a value.
				if (number === 0) this.values.add(old);
				continue;
			}
			const formula: Formula = {
				...{
					tab: number,
					row,
					col,
					text,
					done: true,
					started: false,
					waits: null,
					value: { v: 0, t: 2 },
					array: null,
					spill: null,
					reads: [],
					readsToEnd: false,
					readsBook: false,
					volatile: false,
					circle: null,
					removed: false,
				},
			};
			write(row, col, formula);
			this.mark(formula);
		}
		if (places.length > 1000) this.evaluator.changedAll();
		else places.forEach(({ row, col }) => this.evaluator.changed(row, col, number));
		this.markReaders(places, number);
		if (!tab.spills.isEmpty && tab.spills.touches(places)) tab.spillsChanged = true;
		tab.more = more;
		this.noteChange(n);
	}

	/** Rows or columns were inserted or deleted: all is computed again. */
	move(n: number, change: StructureEdit, number = 0): void {
		const tab = this.tabs.get(number);
		tab.spills.clear(() => {});
		if (number === 0) {
			this.gone = [];
			this.filled.clear();
			this.values.clear();
			this.resized.clear();
		}
		this.reads.clear();
		this.unfinished.clear();
		tab.cells.move(change);
		for (const formula of tab.cells.formulas) Object.assign(formula, { array: null, spill: null });
		this.evaluator.changedAll();
		for (const formula of this.tabs.formulas()) {
			Object.assign(formula, { reads: [], done: true });
			this.mark(formula);
		}
		this.noteChange(n);
	}

	/** Some functions leave out hidden rows. */
	hide(n: number, rows: number[], number = 0): void {
		this.tabs.get(number).hidden = Object.fromEntries(rows.map((row) => [row, { hd: 1 as const }]));
		for (const formula of this.tabs.formulas()) if (/SUBTOTAL|AGGREGATE/i.test(formula.text)) this.mark(formula);
		this.noteChange(n);
	}

	/** Random numbers are drawn again. */
	draw(n: number, seq: number, number = 0): void {
		this.tabs.get(number).seq = seq;
		this.noteChange(n);
	}

	/** NOW() is another time. */
	setClock(n: number, zone: string, number = 0): void {
		this.tabs.get(number).zone = zone;
		this.noteChange(n);
	}

	/** The tabs of the book have these names, in this order. Those that are not among them are not read any more. null: ask for them. */
	setNames(n: number, names: readonly TabName[] | null): void {
		const listed = new Set(names?.map(({ tab }) => tab));
		this.tabs.setNames(names);
		for (const number of this.others) if (!listed.has(number)) this.forgetTab(number, 'unread');
		this.markReadersOfBook();
		this.noteChange(n);
	}

	/** The cells of a tab are all here ('here'), are read anew ('wanted'), or cannot be read ('refused'). */
	setState(n: number, number: number, state: TabState): void {
		if (state !== this.tabs.get(number).state || state === 'wanted') {
			if (state === 'here') this.tabs.get(number).state = state;
			else this.forgetTab(number, state);
			this.markReadersOfBook();
		}
		this.noteChange(n);
	}

	private forgetTab(number: number, state: TabState): void {
		for (const formula of this.tabs.get(number).cells.formulas) this.forget(formula);
		this.tabs.replace(number, state);
		this.evaluator.changedAll();
	}

	private markReadersOfBook(): void {
		for (const formula of this.tabs.formulas()) if (formula.readsBook) this.mark(formula);
	}

	private noteChange(n: number): void {
		this.told = n;
		this.changes++;
		this.rounds = 0;
		for (const formula of this.volatile) {
			if (formula.removed) this.volatile.delete(formula);
			else this.mark(formula);
		}
		if (!this.tabs.areComing) void this.run();
	}

	private forget(formula: Formula): void {
		this.reads.remove(formula);
		this.unfinished.delete(formula);
		this.values.delete(formula);
		formula.array = null;
		formula.done = true;
		const tab = this.tabs.get(formula.tab);
		if (formula.spill) {
			if (formula.tab === 0) this.gone.push([formula.row, formula.col, null]);
			tab.spillsChanged = true;
		}
		formula.removed = true;
		tab.spills.set(formula);
		if (formula.circle) this.leaveCircle(formula).forEach((member) => this.mark(member));
	}

	/** Marks a formula and all that depend on it. */
	private mark(formula: Formula): void {
		const stack: Formula[] = [];
		const take = (next: Formula) => {
			if (!next.done || next.removed) return;
			next.done = false;
			next.started = false;
			this.reads.remove(next);
			this.unfinished.add(next);
			stack.push(next);
		};
		take(formula);
		for (let next = stack.pop(); next; next = stack.pop()) {
			if (next.circle) this.leaveCircle(next).forEach(take);
			const { row, col, toRow, toCol } = next.spill ?? { row: next.row, col: next.col, toRow: next.row, toCol: next.col };
			for (let r = row; r <= toRow; r++) for (let c = col; c <= toCol; c++) this.reads.find(r, c, next.tab, take);
		}
	}

	private markReaders(places: Place[], tab: number): void {
		for (const { row, col } of places) this.reads.find(row, col, tab, (formula) => this.mark(formula));
	}

	/** One of a circle changes: the others may end, too. */
	private leaveCircle({ circle }: Formula): Formula[] {
		circle!.forEach((member) => (member.circle = null));
		return circle!;
	}

	// ---- computing ----

	private async run(): Promise<void> {
		if (this.running) return;
		this.running = true;
		try {
			for (;;) {
				const seen = this.changes;
				await this.options.pause();
				if (this.tabs.areComing) return;
				await this.compute();
				if (this.tabs.areComing) {
					if (this.isWanting) this.options.post({ t: 'wants', tabs: this.wanted });
					this.wanted = [];
					this.isWanting = false;
					return;
				}
				if (this.changes === seen && this.unfinished.size === 0 && !this.spillsChanged) break;
			}
			this.post();
			this.options.post({ t: 'done', n: this.told });
		} catch (error) {
			this.options.failed(error);
		} finally {
			this.running = false;
		}
	}

	/** Computes all that is marked, or until a change has come. */
	private async compute(): Promise<void> {
		const seen = this.changes;
		this.findEnds();
		for (;;) {
			if (!(await this.computeMarked(seen))) return;
			this.fillArrays();
			if (this.unfinished.size === 0) return;
			if (++this.rounds <= mostRounds) continue;
			this.endCircle();
			return;
		}
	}

	/** What is marked changes itself for ever, by arrays that fill other cells each time. */
	private endCircle(): void {
		const circle = new Set<Formula>();
		while (this.unfinished.size > 0) {
			for (const formula of this.unfinished) {
				circle.add(formula);
				this.finish(formula, cycle, null);
			}
			this.fillArrays();
		}
		for (const formula of circle) formula.circle = [...circle];
	}

	/** Returns whether all is computed; false: a change has come. */
	private async computeMarked(seen: number): Promise<boolean> {
		while (this.unfinished.size > 0) {
			const before = this.unfinished.size;
			for (const formula of this.unfinished) {
				formula.started = false;
				formula.waits = null;
			}
			this.needsVersion = -1;
			for (const root of [...this.unfinished]) if (!(await this.computeWithNeeds(root, seen))) return false;
			if (this.unfinished.size === before) this.breakCycles();
		}
		return true;
	}

	private async computeWithNeeds(root: Formula, seen: number): Promise<boolean> {
		const stack = [root];
		while (stack.length > 0) {
			const formula = stack.at(-1)!;
			if (formula.done || (formula.started && this.isWaiting(formula))) {
				stack.pop();
				continue;
			}
			if (performance.now() - this.posted > sliceMs) {
				if (!this.tabs.areComing) this.post();
				this.options.post({ t: 'alive' });
				this.posted = performance.now();
				await this.options.pause();
				if (this.changes !== seen) return false;
			}
			formula.started = true;
			const needs = await this.attempt(formula);
			if (formula.done) {
				stack.pop();
				continue;
			}
			const before = stack.length;
			for (const need of needs) {
				if (need.isOpen) continue;
				need.isOpen = true;
				for (const other of need.formulas) if (!other.started) stack.push(other);
			}
			if (stack.length === before) stack.pop();
		}
		return true;
	}

	/** None of those for which it waits has got a value since. */
	private isWaiting({ waits }: Formula): boolean {
		return waits !== null && (waits.version === this.unfinished.version || waits.formulas.every((other) => !other.done && other.started));
	}

	/** Computes a formula. Returns the marked ones that it has read; if there are none, it has a value now. */
	private async attempt(formula: Formula): Promise<Needs[]> {
		const { text, row, col } = formula;
		const tab = this.tabs.get(formula.tab);
		if (this.options.stopped.has(text)) {
			this.finish(formula, stoppedCell, null);
			return [];
		}
		if (this.options.careful || this.tabs.formulaCount <= mostTold) this.options.post({ t: 'at', tab: formula.tab, row, col, formula: text });
		this.readNow = [];
		this.needs = [];
		this.readsToEnd = false;
		this.readsBook = false;
		this.evaluator.salt = tab.seq;
		setZone(tab.zone);
		const { value, array, volatile } = await this.evaluator.evaluate(formula, this.sheet);
		if (formula.removed) return [];
		formula.reads = this.readNow;
		formula.readsToEnd = this.readsToEnd;
		formula.readsBook = this.readsBook;
		formula.volatile = volatile || /RANDARRAY/i.test(text);
		if (formula.volatile) this.volatile.add(formula);
		else this.volatile.delete(formula);
		if (this.needs.length === 0) this.finish(formula, value, array);
		else formula.waits = this.needs[0]!;
		return this.needs;
	}

	private finish(formula: Formula, value: ICellData, array: Formula['array']): void {
		this.unfinished.delete(formula);
		formula.done = true;
		formula.waits = null;
		this.reads.add(formula, formula.reads);
		if (array && this.fillsWhatItReads(formula, array)) [value, array] = [cycle, null];
		const hadArray = formula.array !== null;
		formula.array = array;
		if (array || hadArray) {
			const tab = this.tabs.get(formula.tab);
			tab.spills.set(formula);
			tab.spillsChanged = true;
		}
		this.show(formula, value);
	}

	private show(formula: Formula, value: ICellData): void {
		if (!sameCell(formula.value, value)) this.evaluator.changed(formula.row, formula.col, formula.tab);
		formula.value = value;
		if (formula.tab === 0) this.values.add(formula);
	}

	/** An array that a formula makes of the cells that it fills. */
	private fillsWhatItReads({ tab, row, col, reads }: Formula, array: NonNullable<Formula['array']>): boolean {
		const [toRow, toCol] = [row + array.length - 1, col + array[0]!.length - 1];
		return reads.some((read) => read.tab === tab && read.row <= toRow && read.toRow >= row && read.col <= toCol && read.toCol >= col);
	}

	/** All that is left waits for others that are left. Those that wait for themselves show an error. */
	private breakCycles(): void {
		for (const formula of circular(this.unfinished)) this.finish(formula, cycle, null);
	}

	private get spillsChanged(): boolean {
		for (const { spillsChanged } of this.tabs) if (spillsChanged) return true;
		return false;
	}

	private fillArrays(): void {
		let number = 0;
		for (const tab of this.tabs) this.fillArraysOf(tab, number++);
	}

	private fillArraysOf(tab: Tab, number: number): void {
		if (!tab.spillsChanged) return;
		tab.spillsChanged = false;
		const changed: Place[] = [];
		const note = (row: number, col: number) => {
			if (number === 0) this.filled.set(keyOf(row, col), { row, col });
			changed.push({ row, col });
		};
		tab.spills.resolve(note, (formula) => {
			if (formula.removed) return;
			if (number === 0) this.resized.add(formula);
			if (!formula.array) return;
			const value = formula.spill ? (formula.array[0]![0] ?? { v: 0, t: 2 }) : spillError;
			if (sameCell(value, formula.value)) return;
			this.show(formula, value);
			changed.push({ row: formula.row, col: formula.col });
		});
		if (changed.length > 1000) this.evaluator.changedAll();
		else changed.forEach(({ row, col }) => this.evaluator.changed(row, col, number));
		this.markReaders(changed, number);
		this.findEnd(tab, number);
	}

	private findEnds(): void {
		let number = 0;
		for (const tab of this.tabs) this.findEnd(tab, number++);
	}

	/** Marks the formulas that have read to the end of a tab, if it is elsewhere. */
	private findEnd(tab: Tab, number: number): void {
		const end = tab.cells.end();
		if (!tab.spills.isEmpty) {
			const filled = tab.spills.end(null, (formula) => !formula.readsToEnd);
			Object.assign(end, { row: Math.max(end.row, filled.row), col: Math.max(end.col, filled.col) });
		}
		if (end.row === tab.end.row && end.col === tab.end.col) return;
		tab.end = end;
		for (const formula of this.tabs.formulas()) if (formula.readsToEnd && formula.reads.some((read) => read.tab === number)) this.mark(formula);
	}

	// ---- what is read ----

	private readonly sheet: Sheet = {
		read: (area) => {
			const tab = this.tabs.get(area.tab);
			if (tab.state !== 'here') return this.readAbsent(tab, area.tab);
			this.readNow.push(area);
			let { toRow, toCol } = area;
			if ((toRow - area.row + 1) * (toCol - area.col + 1) > mostRead) {
				this.readsToEnd = true;
				const filled = tab.spills.endIn(area);
				[toRow, toCol] = [Math.min(toRow, Math.max(tab.end.row, filled.row)), Math.min(toCol, Math.max(tab.end.col, filled.col))];
			}
			if (this.unfinished.size > 0) this.findNeeds({ ...area, toRow, toCol });
			return { toRow, toCol };
		},
		shown: (row, col, tab) => this.tabs.get(tab).cells.shown(row, col),
		formulaText: (row, col, tab) => {
			const cell = this.tabs.get(tab).cells.get(row, col);
			return isFormula(cell) ? cell.text : null;
		},
		hiddenRows: (tab) => this.tabs.get(tab).hidden,
		isHere: (number) => {
			const tab = this.tabs.get(number);
			return tab.state === 'here' || this.readAbsent(tab, number) !== null;
		},
		tabNamed: (name) => {
			this.readNames();
			return this.tabs.named(name);
		},
		tabs: () => {
			this.readNames();
			return this.tabs.names ?? [];
		},
	};

	private readNames(): void {
		this.readsBook = true;
		if (this.tabs.names || this.tabs.areNamesWanted) return;
		this.tabs.areNamesWanted = true;
		this.isWanting = true;
	}

	/** The formula is computed again when the tab is here. */
	private readAbsent(tab: Tab, number: number): null {
		this.readsBook = true;
		if (tab.state === 'unread') {
			tab.state = 'wanted';
			this.wanted.push(number);
			this.isWanting = true;
		}
		return null;
	}

	private findNeeds(range: Area): void {
		const { tab, row, col, toRow, toCol } = range;
		const { cells } = this.tabs.get(tab);
		const { version } = this.unfinished;
		if ((toRow - row + 1) * (toCol - col + 1) <= fewCells) {
			const formulas: Formula[] = [];
			for (let r = row; r <= toRow; r++)
				for (let c = col; c <= toCol; c++) {
					const formula = cells.source(r, c);
					if (formula && !formula.done) formulas.push(formula);
				}
			if (formulas.length > 0) this.needs.push({ formulas, version, isOpen: false });
			return;
		}
		if (this.needsVersion !== version) this.needsOf.clear();
		this.needsVersion = version;
		const key = `${tab},${row},${col},${toRow},${toCol}`;
		let needs = this.needsOf.get(key);
		if (!needs) this.needsOf.set(key, (needs = { formulas: this.unfinished.within(range), version, isOpen: false }));
		if (needs.formulas.length > 0) this.needs.push(needs);
	}

	// ---- results ----

	private post(): void {
		if (this.values.size === 0 && this.filled.size === 0 && this.resized.size === 0 && this.gone.length === 0) return;
		const values: Result[] = [...this.values].filter(({ removed, done }) => !removed && done).map(({ row, col, value }) => [row, col, value]);
		const filled: Result[] = [...this.filled.values()].map(({ row, col }) => [
			row,
			col,
			this.cells.get(row, col) === undefined ? this.cells.shown(row, col) : null,
		]);
		const spills = [
			...this.gone,
			...[...this.resized].filter(({ removed }) => !removed).map(({ row, col, spill }): [number, number, Range | null] => [row, col, spill]),
		];
		this.values.clear();
		this.filled.clear();
		this.resized.clear();
		this.gone = [];
		this.options.post({ t: 'results', n: this.told, values, filled, spills });
	}
}
