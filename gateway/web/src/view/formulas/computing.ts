// computing.ts - has the formulas of the grid computed by a worker, and shows the results (docs/design/page.md, How formulas are
// bounded).
//
// The worker exists if the grid has formulas. It gets all cells then, and each change. If it does not answer for a while
// because of one formula, it is ended, and a new one computes the others.
import type { ICellData, ICommandService, IExecutionOptions, IObjectMatrixPrimitiveType, Nullable, Workbook, Worksheet } from '@univerjs/core';
import type { FormulaDataModel } from '@univerjs/engine-formula';
import { keyOf } from '../../formulas/cells';
import { deadlineMs, mostStopped } from '../../formulas/limits';
import type { CellMessage, FormulaMessage, FromWorker, OtherTabsSource, Result, ToWorker } from '../../formulas/messages';
import { isOfRows, movePlace } from '../../v2/lines';
import type { Place, StructureEdit } from '../../v2/messages';
import { cellOfContent, leaveImplied, valueOf } from '../../cell';
import { cellsOfMutation } from '../cells/changes';
import { forCells } from '../cells/reading';
import type { GridExtent } from '../extent';
import { changesCells } from '../input/blocked';
import { formulaPatch, isFormulaCell, leaveDerived } from './values';

const setValues = 'sheet.mutation.set-range-values';
const tickMs = 500;
/** Loading the script of the worker may take so long. */
const loadingMs = 60_000;
/** The user is told after such a time that there is a way to open the sheet without formulas. */
const slowMs = 10_000;
const chunkCells = 20_000;
/** In place of a tab: the names of the tabs. */
const namesWanted = -1;
const mostFailures = 3;
/** What the server says of a formula without a stored value. */
const notComputed = '#BUSY!';
/** After a worker whose script could not be loaded, the next one is started so much later; after the second, twice that. */
const retryMs = 5000;

export interface WorkerLike {
	postMessage(message: ToWorker): void;
	terminate(): void;
	onmessage: ((event: never) => void) | null;
	onerror: ((event: never) => void) | null;
}

export interface ComputingEvents {
	/** The formula of a cell has exceeded the deadline. */
	onStopped(place: Place): void;
	/** The first results take long. */
	onSlow(): void;
	/** All formulas are computed. */
	onComputed(): void;
	/** No formula is computed any more. */
	onOff(): void;
}

/** What the page says of formulas. */
export type ComputingOptions = ComputingEvents & Pick<ComputingParts, 'off' | 'seq' | 'stored' | 'others'>;

interface ComputingParts {
	book: Workbook;
	sheet: Worksheet;
	commands: ICommandService;
	model: FormulaDataModel;
	extent: GridExtent;
	/** The content of a cell, as it is stored. */
	contentAt(row: number, col: number): string;
	makeWorker(): WorkerLike;
	events: ComputingEvents;
	/** Formulas are not computed: cells show them. */
	off: boolean;
	/** The seq that the grid shows. */
	seq(): number;
	/** The other tabs of the book, for formulas that read them. */
	others: OtherTabsSource;
	/** What the server has stored of the first cells: contents, and the values of formulas. */
	stored(): Promise<StoredValues>;
}

/** Cells as of a seq. */
export interface StoredValues {
	seq: number;
	cells: [row: number, col: number, content: string][];
}

type Matrix = IObjectMatrixPrimitiveType<Nullable<ICellData>>;
type Filled = Record<number, Record<number, ICellData>>;

export class Computing {
	private worker: WorkerLike | null = null;
	private readonly ids: { unitId: string; subUnitId: string };
	private off: boolean;
	/** Cells that have changed since the last message. */
	private changed = new Map<number, Place>();
	private scheduled = false;
	/** The rows that have not been sent to the worker yet; null: all have been. */
	private rows: number[] | null = null;
	private sending: ReturnType<typeof setTimeout> | undefined;
	private retrying: ReturnType<typeof setTimeout> | undefined;
	private n = 0;
	private done = 0;
	/** Number of the last message before which results have other coordinates. */
	private movedAt = 0;
	private hidden = '';
	private seq = 0;
	private zone = 'UTC';
	private readonly stopped: string[] = [];
	private careful = false;
	private failures = 0;
	private isReady = false;
	private hasResults = false;
	private at: (Place & { tab: number; formula: string }) | null = null;
	private silentTicks = 0;
	/** Tabs for which the worker waits. */
	private readonly wanted = new Set<number>();
	private wantNames = () => {};
	private ticking: ReturnType<typeof setInterval> | undefined;
	private slow: ReturnType<typeof setTimeout> | undefined;
	private filled: Filled = {};
	private ranges: Record<number, Record<number, object>> = {};

	constructor(private readonly parts: ComputingParts) {
		this.ids = { unitId: parts.book.getUnitId(), subUnitId: parts.sheet.getSheetId() };
		this.off = parts.off;
		// The worker knows what arrays fill. Univer would change it by itself.
		Object.assign(parts.model, { updateArrayFormulaCellData: () => false, updateArrayFormulaRange: () => false });
		const before = parts.commands.beforeCommandExecuted(({ id, params }, options) => this.onExecuting(id, params as never, options));
		const executed = parts.commands.onCommandExecuted(({ id, params }, options) => this.onExecuted(id, params as never, options));
		this.dispose = () => {
			before.dispose();
			executed.dispose();
			clearTimeout(this.slow);
			this.end();
		};
	}

	readonly dispose: () => void;

	/** Formulas of the sheet are shown as texts. */
	get isOff(): boolean {
		return this.off;
	}

	// ---- what changes ----

	private onExecuting(id: string, params: { cellValue?: Matrix }, options?: IExecutionOptions): void {
		if (id !== setValues || options?.applyFormulaCalculationResult || options?.onlyRows) return;
		const { sheet, book } = this.parts;
		forCells(params.cellValue ?? {}, (row, col, patch) => {
			if (!patch) return;
			leaveDerived(patch, sheet.getCellRaw(row, col), book.getStyles());
			leaveImplied(patch, sheet.getCellRaw(row, col), book.getStyles());
		});
	}

	private onExecuted(id: string, params: Record<string, unknown>, options?: IExecutionOptions): void {
		// What the page writes with onlyRows has no formulas, and takes none out.
		if (!changesCells(id) || options?.applyFormulaCalculationResult || (options?.onlyRows && !this.worker)) return;
		this.note(cellsOfMutation(id, params));
	}

	/** The contents of these cells have changed. */
	note(places: Iterable<Place>): void {
		const { sheet } = this.parts;
		if (this.retrying !== undefined) return;
		if (!this.worker) {
			const formulas = [...places].filter(({ row, col }) => isFormulaCell(sheet.getCellRaw(row, col)));
			if (formulas.length === 0) return;
			if (this.off) this.showTexts(formulas);
			else this.begin();
			return;
		}
		let emptied = false;
		for (const place of places) {
			this.changed.set(keyOf(place.row, place.col), place);
			if (this.filled[place.row]?.[place.col]) {
				delete this.filled[place.row]![place.col];
				emptied = true;
			}
		}
		if (emptied) this.showFilled();
		if (this.scheduled) return;
		this.scheduled = true;
		// The edit is sent to the gateway first.
		setTimeout(() => this.flush(), 0);
	}

	private flush(): void {
		this.scheduled = false;
		if (!this.worker || this.changed.size === 0) return;
		const places = [...this.changed.values()];
		this.changed.clear();
		this.send(places, this.rows !== null);
	}

	private send(places: Place[], more: boolean): void {
		const cells: CellMessage[] = [];
		const formulas: FormulaMessage[] = [];
		for (const { row, col } of places) {
			const cell = this.parts.sheet.getCellRaw(row, col);
			if (isFormulaCell(cell)) formulas.push([row, col, this.parts.contentAt(row, col)]);
			else cells.push(this.messageOf(row, col, cell));
		}
		this.post({ t: 'cells', n: ++this.n, cells, formulas, more });
	}

	private messageOf(row: number, col: number, cell: Nullable<ICellData>): CellMessage {
		const value = valueOf(cell);
		const pattern = typeof value === 'number' && cell?.s ? this.parts.book.getStyles().getStyleByCell(cell)?.n?.pattern : undefined;
		return pattern ? [row, col, value, pattern] : [row, col, value];
	}

	/** Rows or columns were inserted or deleted in the grid. */
	move(change: StructureEdit): void {
		this.dropFilled();
		if (!this.worker) return;
		// Cells that have not been sent yet are sent with their new places.
		const places = [...this.changed.values()].flatMap((place) => movePlace(place, change) ?? []);
		this.changed = new Map(places.map((place) => [keyOf(place.row, place.col), place]));
		if (isOfRows(change)) this.rows = this.rows?.flatMap((row) => movePlace({ row, col: 0 }, change)?.row ?? []) ?? null;
		this.movedAt = ++this.n;
		this.post({ t: 'move', n: this.n, change });
	}

	/** Other rows are hidden. */
	hide(rows: Iterable<number>): void {
		const list = [...rows].sort((a, b) => a - b);
		const key = list.join();
		if (key === this.hidden) return;
		this.hidden = key;
		if (this.worker) this.post({ t: 'hidden', n: ++this.n, rows: list });
	}

	/** The time zone of NOW() and TODAY(), or a new day there. */
	setClock(zone: string): void {
		this.zone = zone;
		if (this.worker) this.post({ t: 'clock', n: ++this.n, zone });
	}

	private tellSeq(): void {
		const seq = this.parts.seq();
		if (seq === this.seq) return;
		this.seq = seq;
		this.post({ t: 'seq', n: ++this.n, seq });
	}

	// ---- the worker ----

	/** Starts a worker, and sends it all cells. */
	private begin(): void {
		this.end();
		this.changed.clear();
		this.dropFilled();
		try {
			this.worker = this.parts.makeWorker();
		} catch {
			this.turnOff();
			return;
		}
		this.worker.onmessage = ({ data }: { data: FromWorker }) => this.hear(data);
		this.worker.onerror = () => this.fail();
		this.post({ t: 'start', stopped: this.stopped, careful: this.careful });
		this.setClock(this.zone);
		this.seq = -1;
		this.tellSeq();
		if (this.hidden) this.post({ t: 'hidden', n: ++this.n, rows: this.hidden.split(',').map(Number) });
		this.movedAt = this.n;
		this.rows = Object.keys(this.parts.sheet.getCellMatrix().getMatrix()).map(Number);
		this.hearOthers();
		if (!this.slow) void this.showStored();
		this.slow ??= setTimeout(() => this.parts.events.onSlow(), slowMs);
		this.ticking = setInterval(() => this.tick(), tickMs);
		this.sendRows();
	}

	private hearOthers(): void {
		this.wanted.clear();
		let areNamesTold = false;
		this.wantNames = () => void (areNamesTold || this.wanted.add(namesWanted));
		this.parts.others.listen({
			names: (names) => {
				areNamesTold = true;
				this.wanted.delete(namesWanted);
				this.post({ t: 'names', n: ++this.n, names });
			},
			edits: (tab, edits, seq, isHere) => {
				if (isHere) this.wanted.delete(tab);
				this.post({ t: 'edits', n: ++this.n, tab, edits, seq, isHere });
			},
			state: (tab, state) => {
				if (state === 'refused') this.wanted.delete(tab);
				else this.wanted.add(tab);
				this.post({ t: 'tab', n: ++this.n, tab, state });
			},
		});
	}

	/** Sends some rows, and goes on when the page has done what else there is to do. */
	private sendRows(): void {
		const matrix = this.parts.sheet.getCellMatrix().getMatrix();
		const places: Place[] = [];
		while (this.rows!.length > 0 && places.length < chunkCells) {
			const row = this.rows!.pop()!;
			for (const col of Object.keys(matrix[row] ?? {})) places.push({ row, col: Number(col) });
		}
		const more = this.rows!.length > 0;
		if (!more) this.rows = null;
		this.send(places, more);
		if (more) this.sending = setTimeout(() => this.sendRows(), 0);
	}

	private end(): void {
		clearTimeout(this.sending);
		clearTimeout(this.retrying);
		clearInterval(this.ticking);
		this.worker?.terminate();
		this.worker = null;
		this.parts.others.close();
		this.rows = null;
		this.retrying = undefined;
		this.at = null;
		this.isReady = false;
		this.silentTicks = 0;
	}

	private post(message: ToWorker): void {
		this.worker?.postMessage(message);
	}

	private hear(message: FromWorker): void {
		this.silentTicks = 0;
		this.at = message.t === 'at' ? message : null;
		switch (message.t) {
			case 'ready':
				this.isReady = true;
				return;
			case 'wants':
				for (const tab of message.tabs) this.wanted.add(tab);
				this.wantNames();
				this.parts.others.want(message.tabs);
				return;
			case 'results':
				this.hasResults = true;
				if (message.n >= this.movedAt) this.show(message.values, message.filled, message.spills);
				return;
			case 'done':
				this.done = message.n;
				if (this.done < this.n) return;
				this.failures = 0;
				clearTimeout(this.slow);
				this.parts.events.onComputed();
		}
	}

	/** A tab that has stood still itself gets several messages before the next tick. */
	private tick(): void {
		this.tellSeq();
		if (this.done >= this.n || this.rows || this.wanted.size > 0) {
			this.silentTicks = 0;
			return;
		}
		const limit = this.isReady ? deadlineMs : loadingMs;
		if (++this.silentTicks * tickMs >= limit) this.exceed();
	}

	private exceed(): void {
		const { at } = this;
		if (!at) {
			this.careful = true;
			this.fail();
			return;
		}
		this.stopped.push(at.formula);
		if (at.tab === 0) this.parts.events.onStopped(at);
		if (this.stopped.length >= mostStopped) this.turnOff();
		else this.begin();
	}

	/** The worker has ended, or does not say where it is. If it has not begun, the network may be gone. */
	private fail(): void {
		const { isReady } = this;
		if (++this.failures >= mostFailures) this.turnOff();
		else if (isReady) this.begin();
		else {
			this.end();
			this.retrying = setTimeout(() => this.begin(), retryMs * this.failures);
		}
	}

	private turnOff(): void {
		this.end();
		clearTimeout(this.slow);
		this.off = true;
		this.dropFilled();
		const places: Place[] = [];
		this.parts.sheet.getCellMatrix().forValue((row, col, cell) => void (isFormulaCell(cell) && places.push({ row, col })));
		this.showTexts(places);
		this.parts.events.onOff();
	}

	// ---- results ----

	/** While the worker is loaded and computes, formulas show the values that the server has stored. */
	private async showStored(): Promise<void> {
		const stored = await this.parts.stored().catch(() => null);
		if (!stored || this.hasResults || !this.worker || stored.seq !== this.parts.seq()) return;
		this.show(
			stored.cells.map(([row, col, content]): Result => [row, col, cellOfContent(content)]).filter(([, , cell]) => !cell?.f && cell?.v !== notComputed),
			[],
			[],
		);
	}

	private showTexts(places: Place[]): void {
		this.show(
			places.map(({ row, col }) => [row, col, { v: this.parts.contentAt(row, col), t: 1 }]),
			[],
			[],
		);
	}

	private show(
		values: Result[],
		filled: Result[],
		spills: [row: number, col: number, spill: { row: number; col: number; toRow: number; toCol: number } | null][],
	): void {
		const { sheet, book, extent, commands } = this.parts;
		for (const [row, col, cell] of filled) {
			if (cell) (this.filled[row] ??= {})[col] = cell;
			else delete this.filled[row]?.[col];
		}
		for (const [row, col, spill] of spills) {
			if (spill) (this.ranges[row] ??= {})[col] = { startRow: spill.row, startColumn: spill.col, endRow: spill.toRow, endColumn: spill.toCol };
			else delete this.ranges[row]?.[col];
			if (spill) extent.growTo(spill.toRow + 1, spill.toCol + 1);
		}
		if (filled.length > 0 || spills.length > 0) this.showFilled();
		const cellValue: Record<number, Record<number, ICellData>> = {};
		for (const [row, col, cell] of values) {
			const old = sheet.getCellRaw(row, col);
			if (!cell || !isFormulaCell(old)) continue;
			const patch = formulaPatch(cell, old!, book.getStyles().getStyleByCell(old));
			if (patch) (cellValue[row] ??= {})[col] = patch;
		}
		const options = { onlyLocal: true, fromFormula: true, applyFormulaCalculationResult: true };
		// Drawing follows from the mutation.
		if (Object.keys(cellValue).length > 0 || filled.length > 0) commands.syncExecuteCommand(setValues, { ...this.ids, cellValue }, options);
	}

	/** Nothing is known of what arrays fill. */
	private dropFilled(): void {
		if (Object.keys(this.filled).length === 0 && Object.keys(this.ranges).length === 0) return;
		this.filled = {};
		this.ranges = {};
		this.showFilled();
	}

	private showFilled(): void {
		const of = (cells: object) => ({ [this.ids.unitId]: { [this.ids.subUnitId]: cells } });
		const params = { arrayFormulaRange: of(this.ranges), arrayFormulaCellData: of(this.filled) };
		this.parts.commands.syncExecuteCommand('formula.mutation.set-array-formula-data', params, { onlyLocal: true });
	}
}
