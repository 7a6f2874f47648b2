// calculation.ts - computes the formulas of a sheet, so that what they show is a function of the contents: the same in each page,
// in whatever order it has heard of the edits.
//
// A change marks all formulas that depend on it. One of them is computed; if it has read formulas that are marked, too, these
// come first and it is computed again. What remains then waits for itself: formulas in a circle show #CYCLE!, and the others
// go on. So the order of formulas follows from what they really read, also by INDIRECT() or OFFSET(). Arrays fill cells when
// all formulas are computed (spills.ts); those that have read one of these cells are marked again.
import type { ICellData } from '@univerjs/core';
import type { Place, Range, StructureEdit } from '../v2/messages';
import { cellOf, CellStore, type Formula, isFormula, keyOf, type Needs } from './cells';
import { errorCell, type Evaluator, type Sheet } from './evaluator';
import { mostRead, mostRounds, mostTold } from './limits';
import type { CellMessage, FormulaMessage, FromWorker, Result } from './messages';
import { Reads } from './reads';
import { Spills } from './spills';
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
	private readonly cells = new CellStore();
	private readonly reads = new Reads();
	private readonly spills = new Spills(this.cells);
	private readonly unfinished = new Unfinished();
	private hidden: Record<number, { hd: 1 }> = {};
	/** How often formulas were marked again since the last change. */
	private rounds = 0;
	private spillsChanged = false;
	private running = false;
	/** More cells are to come before it is worth to compute. */
	private more = false;
	/** Number of changes since the computation began to look at them. */
	private changes = 0;
	private told = 0;
	/** Where the contents end, for ranges that are read to their end. */
	private end = { row: -1, col: -1 };
	// Changes for the next message to the page.
	private values = new Set<Formula>();
	private filled = new Map<number, Place>();
	private resized = new Set<Formula>();
	private gone: [row: number, col: number, spill: null][] = [];
	private posted = 0;
	// The ranges that the current formula has read, and the formulas in them that have no value yet.
	private readNow: Range[] = [];
	private needs: Needs[] = [];
	private readsToEnd = false;
	/** By ranges, as of `needsVersion`. */
	private readonly needsOf = new Map<string, Needs>();
	private needsVersion = -1;

	constructor(
		private readonly evaluator: Evaluator,
		private readonly options: CalculationOptions,
	) {}

	// ---- changes ----

	/** Contents have changed. */
	set(n: number, cells: CellMessage[], formulas: FormulaMessage[], more = false): void {
		const places: Place[] = [];
		const write = (row: number, col: number, cell: Parameters<CellStore['set']>[2]) => {
			const old = this.cells.get(row, col);
			// The page has emptied it.
			if (this.cells.isFilled(row, col)) this.filled.set(keyOf(row, col), { row, col });
			if (old === undefined && cell === undefined) return;
			if (isFormula(old)) this.forget(old);
			this.cells.set(row, col, cell);
			places.push({ row, col });
		};
		for (const [row, col, value, pattern] of cells) write(row, col, value === undefined || value === null ? undefined : cellOf(value, pattern));
		for (const [row, col, text] of formulas) {
			const old = this.cells.get(row, col);
			if (isFormula(old) && old.text === text) {
				// The page has written it again, without a value.
				this.values.add(old);
				continue;
			}
			const formula: Formula = {
				...{
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
					volatile: false,
					circle: null,
					removed: false,
				},
			};
			write(row, col, formula);
			this.mark(formula);
		}
		if (places.length > 1000) this.evaluator.changedAll();
		else places.forEach(({ row, col }) => this.evaluator.changed(row, col));
		this.markReaders(places);
		if (!this.spills.isEmpty && this.spills.touches(places)) this.spillsChanged = true;
		this.noteChange(n, more);
	}

	/** Rows or columns were inserted or deleted: all is computed again. */
	move(n: number, change: StructureEdit): void {
		this.spills.clear((row, col) => this.filled.set(keyOf(row, col), { row, col }));
		this.gone = [];
		this.filled.clear();
		this.values.clear();
		this.resized.clear();
		this.reads.clear();
		this.unfinished.clear();
		this.cells.move(change);
		this.evaluator.changedAll();
		for (const formula of this.cells.formulas) {
			Object.assign(formula, { array: null, spill: null, reads: [], done: true });
			this.mark(formula);
		}
		this.noteChange(n);
	}

	/** Some functions leave out hidden rows. */
	hide(n: number, rows: number[]): void {
		this.hidden = Object.fromEntries(rows.map((row) => [row, { hd: 1 as const }]));
		for (const formula of this.cells.formulas) if (/SUBTOTAL|AGGREGATE/i.test(formula.text)) this.mark(formula);
		this.noteChange(n);
	}

	/** Random numbers are drawn again. */
	draw(n: number, seq: number): void {
		this.evaluator.salt = seq;
		this.noteChange(n);
	}

	/** NOW() is another time. */
	redraw(n: number): void {
		this.noteChange(n);
	}

	private noteChange(n: number, more = this.more): void {
		this.told = n;
		this.more = more;
		this.changes++;
		this.rounds = 0;
		for (const formula of this.cells.formulas) if (formula.volatile) this.mark(formula);
		if (!more) void this.run();
	}

	private forget(formula: Formula): void {
		this.reads.remove(formula);
		this.unfinished.delete(formula);
		this.values.delete(formula);
		formula.array = null;
		formula.done = true;
		if (formula.spill) {
			this.gone.push([formula.row, formula.col, null]);
			this.spillsChanged = true;
		}
		formula.removed = true;
		this.spills.set(formula);
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
			for (let r = row; r <= toRow; r++) for (let c = col; c <= toCol; c++) this.reads.find({ row: r, col: c }, take);
		}
	}

	private markReaders(places: Place[]): void {
		for (const place of places) this.reads.find(place, (formula) => this.mark(formula));
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
				if (this.more) return;
				await this.compute();
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
		this.findEnd();
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
				this.post();
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
		if (this.options.stopped.has(text)) {
			this.finish(formula, stoppedCell, null);
			return [];
		}
		if (this.options.careful || this.cells.formulas.size <= mostTold) this.options.post({ t: 'at', row, col, formula: text });
		this.readNow = [];
		this.needs = [];
		this.readsToEnd = false;
		const { value, array, volatile } = await this.evaluator.evaluate(text, row, col, this.sheet);
		if (formula.removed) return [];
		formula.reads = this.readNow;
		formula.readsToEnd = this.readsToEnd;
		formula.volatile = volatile || /RANDARRAY/i.test(text);
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
			this.spills.set(formula);
			this.spillsChanged = true;
		}
		this.show(formula, value);
	}

	private show(formula: Formula, value: ICellData): void {
		if (!sameCell(formula.value, value)) this.evaluator.changed(formula.row, formula.col);
		formula.value = value;
		this.values.add(formula);
	}

	/** An array that a formula makes of the cells that it fills. */
	private fillsWhatItReads({ row, col, reads }: Formula, array: NonNullable<Formula['array']>): boolean {
		const [toRow, toCol] = [row + array.length - 1, col + array[0]!.length - 1];
		return reads.some((read) => read.row <= toRow && read.toRow >= row && read.col <= toCol && read.toCol >= col);
	}

	/**
	 * All that is left waits for others that are left. Those that wait for themselves show an error. (The strongly connected
	 * components of a graph in which a formula leads to what it needs, and that to its formulas.)
	 */
	private breakCycles(): void {
		type Node = Formula | Needs;
		const index = new Map<Node, number>();
		const low = new Map<Node, number>();
		const open: Node[] = [];
		const isOpen = new Set<Node>();
		const circular: Formula[] = [];
		for (const root of this.unfinished) {
			if (index.has(root)) continue;
			const stack: { node: Node; others: Node[]; next: number }[] = [];
			const enter = (node: Node) => {
				index.set(node, index.size);
				low.set(node, index.get(node)!);
				open.push(node);
				isOpen.add(node);
				stack.push({ node, others: 'formulas' in node ? node.formulas : node.waits ? [node.waits] : [], next: 0 });
			};
			enter(root);
			while (stack.length > 0) {
				const top = stack.at(-1)!;
				const { node } = top;
				const other = top.others[top.next++];
				if (other) {
					if ('done' in other && other.done) continue;
					if (!index.has(other)) enter(other);
					else if (isOpen.has(other)) low.set(node, Math.min(low.get(node)!, index.get(other)!));
					continue;
				}
				stack.pop();
				const above = stack.at(-1)?.node;
				if (above) low.set(above, Math.min(low.get(above)!, low.get(node)!));
				if (low.get(node) !== index.get(node)) continue;
				const members = open.splice(open.lastIndexOf(node));
				for (const member of members) {
					isOpen.delete(member);
					if (members.length > 1 && 'text' in member) circular.push(member);
				}
			}
		}
		for (const formula of circular) this.finish(formula, cycle, null);
	}

	private fillArrays(): void {
		if (!this.spillsChanged) return;
		this.spillsChanged = false;
		const changed: Place[] = [];
		const note = (row: number, col: number) => {
			this.filled.set(keyOf(row, col), { row, col });
			changed.push({ row, col });
		};
		this.spills.resolve(note, (formula) => {
			if (formula.removed) return;
			this.resized.add(formula);
			if (!formula.array) return;
			const value = formula.spill ? (formula.array[0]![0] ?? { v: 0, t: 2 }) : spillError;
			if (sameCell(value, formula.value)) return;
			this.show(formula, value);
			changed.push({ row: formula.row, col: formula.col });
		});
		if (changed.length > 1000) this.evaluator.changedAll();
		else changed.forEach(({ row, col }) => this.evaluator.changed(row, col));
		this.markReaders(changed);
		this.findEnd();
	}

	/** Marks the formulas that have read to the end, if it is elsewhere. */
	private findEnd(): void {
		const end = this.cells.end();
		if (!this.spills.isEmpty) {
			const filled = this.spills.end(null, (formula) => !formula.readsToEnd);
			Object.assign(end, { row: Math.max(end.row, filled.row), col: Math.max(end.col, filled.col) });
		}
		if (end.row === this.end.row && end.col === this.end.col) return;
		this.end = end;
		for (const formula of this.cells.formulas) if (formula.readsToEnd) this.mark(formula);
	}

	// ---- what is read ----

	private readonly sheet: Sheet = {
		read: (range) => {
			this.readNow.push(range);
			let { toRow, toCol } = range;
			if ((toRow - range.row + 1) * (toCol - range.col + 1) > mostRead) {
				this.readsToEnd = true;
				const filled = this.spills.endIn(range);
				[toRow, toCol] = [Math.min(toRow, Math.max(this.end.row, filled.row)), Math.min(toCol, Math.max(this.end.col, filled.col))];
			}
			if (this.unfinished.size > 0) this.findNeeds({ ...range, toRow, toCol });
			return { toRow, toCol };
		},
		shown: (row, col) => this.cells.shown(row, col),
		formulaText: (row, col) => {
			const cell = this.cells.get(row, col);
			return isFormula(cell) ? cell.text : null;
		},
		hiddenRows: () => this.hidden,
	};

	private findNeeds(range: Range): void {
		const { row, col, toRow, toCol } = range;
		const { version } = this.unfinished;
		if ((toRow - row + 1) * (toCol - col + 1) <= fewCells) {
			const formulas: Formula[] = [];
			for (let r = row; r <= toRow; r++)
				for (let c = col; c <= toCol; c++) {
					const formula = this.cells.source(r, c);
					if (formula && !formula.done) formulas.push(formula);
				}
			if (formulas.length > 0) this.needs.push({ formulas, version, isOpen: false });
			return;
		}
		if (this.needsVersion !== version) this.needsOf.clear();
		this.needsVersion = version;
		const key = `${row},${col},${toRow},${toCol}`;
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
