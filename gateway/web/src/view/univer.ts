// univer.ts - the grid: Univer, with the few methods and events that the page uses.
//
// Univer's model is the page's only copy of the cells. A mutation of Univer is a partial patch ("formula: null" may mean that
// the value stays). Therefore the page reads a cell before the user's first mutation of it and after the last one, and
// reports both states. Received edits are marked fromCollab, so that they are not reported. Without formulas they are also
// marked onlyLocal, which saves Univer a scan of all cells; this file then starts the recalculation.
//
// Rows and columns change only when the sheet's do: a command that inserts or deletes some is reported, not executed.
import { DOCS_NORMAL_EDITOR_UNIT_ID_KEY, ICommandService, IUndoRedoService, IUniverInstanceService, LocaleType, LogLevel, mergeLocales, Univer, UniverInstanceType } from '@univerjs/core';
import type { DocumentDataModel, ICellData, IExecutionOptions, IObjectMatrixPrimitiveType, IRange, IStyleData, Nullable, Workbook, Worksheet } from '@univerjs/core';
import { FUniver } from '@univerjs/core/lib/facade';
import { FormulaDataModel } from '@univerjs/engine-formula';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { IEditorBridgeService } from '@univerjs/sheets-ui';
import '@univerjs/preset-sheets-core/lib/index.css';
import { cellName } from '../content';
import type { CellState } from '../sheet/mirror';
import type { Mark, SessionGrid } from '../sheet/session';
import type { Change } from '../sheet/undo';
import { plainStyle, sameStyle } from '../style';
import { isInsert, isOfRows, movePlace, moveRange } from '../v2/lines';
import type { CellEdit, Place, Range, StructureEdit } from '../v2/messages';
import { keyOf } from '../v2/replica';
import { blockedKind, changesCells } from './blocked';
import { cellOfContent, contentOfCell, patchOfContent, stylePatch } from './cells';
import { MarkOverlay } from './marks';
import { pluginsOf } from './plugins';

export interface GridEvents {
	/** The user changed cells: typed, pasted, cleared, filled, formatted. One call for each command. */
	onChanges(changes: Change[]): void;
	/** The user inserts or deletes rows or columns, which the grid does not do itself. */
	onStructure(change: StructureEdit): void;
	onUndo(): void;
	onRedo(): void;
	/** The user starts to edit a cell. Returns the user who has locked it, or null. */
	lockHolder(place: Place): string | null;
	/** The editor of a cell was opened, or closed (null). */
	onEditing(place: Place | null): void;
	/** A command was refused. The texts have its kind (`blocked.KIND`). */
	onBlocked(kind: string): void;
	onSelection(place: Place, range: Range): void;
	/** Other rows and columns are visible. */
	onView(range: Range): void;
}

const unitId = 'book';
const sheetId = 'sheet';
const setValues = 'sheet.mutation.set-range-values';
/** Empty rows and columns after those of the sheet. */
const spareRows = 200;
const spareColumns = 6;
const leastRows = 200;
const leastColumns = 26;

/** Pixels. The first rows determine a column's width, within these limits. */
const leastWidth = 96;
const mostWidth = 200;
const measuredRows = 200;
const viewMs = 80;

type Matrix = IObjectMatrixPrimitiveType<Nullable<ICellData>>;
type Execute = (id: string, params?: any, options?: IExecutionOptions) => unknown;

/** The commands with which all others insert or delete rows or columns. */
const structureCommands: Record<string, StructureEdit['kind']> = {
	'sheet.command.insert-row-by-range': 'insertRows',
	'sheet.command.insert-col-by-range': 'insertColumns',
	'sheet.command.remove-row-by-range': 'deleteRows',
	'sheet.command.remove-col-by-range': 'deleteColumns',
};

const structureMutations: Record<StructureEdit['kind'], string> = {
	insertRows: 'sheet.mutation.insert-row',
	insertColumns: 'sheet.mutation.insert-col',
	deleteRows: 'sheet.mutation.remove-rows',
	deleteColumns: 'sheet.mutation.remove-col',
};

const rangeOf = ({ startRow, startColumn, endRow, endColumn }: IRange): Range => ({ row: startRow, col: startColumn, toRow: endRow, toCol: endColumn });

async function localeOf(language: string): Promise<{ locale: LocaleType; texts: object }> {
	if (language === 'zh-CN') return { locale: LocaleType.ZH_CN, texts: (await import('@univerjs/preset-sheets-core/locales/zh-CN')).default };
	return { locale: LocaleType.EN_US, texts: (await import('@univerjs/preset-sheets-core/locales/en-US')).default };
}

export async function createUniverView(container: HTMLElement, language: string, size: { rows: number; cols: number }, events: GridEvents): Promise<UniverView> {
	const { locale, texts } = await localeOf(language);
	return new UniverView(container, locale, texts, size, events);
}

export class UniverView implements SessionGrid {
	private readonly host: HTMLElement;
	private readonly univer: Univer;
	private readonly api: FUniver;
	private readonly commands: ICommandService;
	/** Also used when Univer has been disposed of. */
	private readonly instances: IUniverInstanceService;
	private readonly marks: MarkOverlay;
	private book!: Workbook;
	private sheet!: Worksheet;
	private hasFormulas = false;
	private readOnly = true;
	private changed = new Map<string, { row: number; col: number; before: CellState }>();
	private reporting = false;
	private viewTimer: ReturnType<typeof setTimeout> | undefined;
	private history = { undos: 0, redos: 0 };
	private updateHistory = () => {};
	private cleanUps: (() => void)[] = [];

	constructor(
		container: HTMLElement,
		locale: LocaleType,
		texts: object,
		private readonly size: { rows: number; cols: number },
		private readonly events: GridEvents,
	) {
		// Univer empties the element that it gets.
		this.host = document.createElement('div');
		this.host.className = 'grid-host';
		container.append(this.host);
		this.univer = new Univer({ locale, locales: { [locale]: mergeLocales(texts as never) }, logLevel: LogLevel.ERROR });
		for (const [plugin, options] of pluginsOf(this.host)) this.univer.registerPlugin(plugin as never, options as never);
		this.api = FUniver.newAPI(this.univer);
		this.commands = this.get(ICommandService);
		this.instances = this.get(IUniverInstanceService);
		this.marks = new MarkOverlay(container, this.univer.__getInjector(), unitId, sheetId);
	}

	private get<T>(service: Parameters<ReturnType<Univer['__getInjector']>['get']>[0]): T {
		return this.univer.__getInjector().get(service) as T;
	}

	// ---- the sheet's content ------------------------------------------------------------------------------------------

	/** Creates the grid when its first cells are known, which determine the widths of columns. */
	private create(cells: CellEdit[]): void {
		this.book = this.univer.createUnit<object, Workbook>(UniverInstanceType.UNIVER_SHEET, {
			id: unitId,
			name: '',
			sheetOrder: [sheetId],
			sheets: {
				[sheetId]: {
					id: sheetId,
					name: 'Sheet',
					cellData: {},
					rowCount: Math.max(leastRows, this.size.rows + spareRows),
					columnCount: Math.max(leastColumns, this.size.cols + spareColumns),
					columnData: columnWidths(cells),
					defaultColumnWidth: leastWidth,
					defaultRowHeight: 24,
				},
			},
		});
		this.sheet = this.book.getSheetBySheetId(sheetId)!;
		this.setReadOnly(this.readOnly);
		this.listen();
	}

	/** Replaces the cells of a range, except those that `skip` names. Writes the model directly, which is much faster. */
	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void {
		if (!this.book && cells.length === 0 && range.row >= this.size.rows) return;
		if (!this.book) this.create(cells);
		this.growTo(cells.reduce((most, { row }) => Math.max(most, row + 1), 0), cells.reduce((most, { col }) => Math.max(most, col + 1), 0));
		const matrix = this.sheet.getCellMatrix();
		const formulas: CellEdit[] = [];
		const listed = new Set(cells.map(({ row, col }) => row * 16384 + col));
		const gone: CellEdit[] = [];
		const rows = matrix.getMatrix();
		for (let row = range.row; row <= Math.min(range.toRow, matrix.getLength() - 1); row++) {
			for (const name of Object.keys(rows[row] ?? {})) {
				const col = Number(name);
				if (col >= range.col && col <= range.toCol && !listed.has(row * 16384 + col) && !skip(row, col)) gone.push({ row, col, content: '', style: null });
			}
		}
		let shown: CellEdit | undefined;
		for (const cell of cells) {
			const { row, col, content = '', style } = cell;
			if (skip(row, col)) continue;
			if (content.startsWith('=') && content.length > 1) {
				formulas.push(cell);
				continue;
			}
			if (matrix.getValue(row, col)?.f) gone.push({ row, col, content: '', style: null });
			const { s: dateStyle, ...data } = cellOfContent(content) ?? {};
			const full = style || dateStyle ? { ...(dateStyle as IStyleData), ...(style as IStyleData) } : null;
			matrix.setValue(row, col, full ? { ...data, s: this.book.getStyles().setValue(full) } : data);
			shown ??= cell;
		}
		if (gone.length > 0) this.apply(gone);
		if (formulas.length > 0) this.apply(formulas);
		else if (shown) this.commands.syncExecuteCommand(setValues, { unitId, subUnitId: sheetId, cellValue: { [shown.row]: { [shown.col]: {} } } }, { fromCollab: true, onlyLocal: true });
		if (this.hasFormulas && cells.length > formulas.length) this.recalculate([range]);
	}

	/** Applies edits. Cells that are so already are left alone. */
	apply(edits: CellEdit[]): void {
		if (!this.book) return;
		const cellValue: Record<number, Record<number, ICellData>> = {};
		const written: Range[] = [];
		let rows = 0;
		let columns = 0;
		let touchesFormula = false;
		for (const { row, col, content, style } of edits) {
			const old = this.sheet.getCellRaw(row, col);
			const oldStyle = this.styleOf(old);
			const newContent = content !== undefined && content !== this.contentAt(row, col);
			const newStyle = style !== undefined && !sameStyle(style, oldStyle as CellState['style']);
			if (!newContent && !newStyle) continue;
			const cell = newContent ? patchOfContent(content, style === undefined ? oldStyle : (style as IStyleData)) : {};
			if (newStyle) cell.s = style === null ? (cell.s ?? null) : { ...(cell.s as IStyleData), ...stylePatch(style, oldStyle) };
			if (newContent && (cell.f || old?.f || old?.si)) touchesFormula = true;
			(cellValue[row] ??= {})[col] = cell;
			written.push({ row, col, toRow: row, toCol: col });
			rows = Math.max(rows, row + 1);
			columns = Math.max(columns, col + 1);
		}
		if (written.length === 0) return;
		this.growTo(rows, columns);
		this.hasFormulas ||= touchesFormula;
		const options: IExecutionOptions = touchesFormula ? { fromCollab: true } : { fromCollab: true, onlyLocal: true };
		this.commands.syncExecuteCommand(setValues, { unitId, subUnitId: sheetId, cellValue }, options);
		if (!touchesFormula && this.hasFormulas) this.recalculate(written);
		this.marks.refresh();
	}

	private growTo(rows: number, columns: number): void {
		const options = { fromCollab: true, onlyLocal: true };
		if (rows > this.sheet.getRowCount()) {
			const rowCount = rows + spareRows;
			this.commands.syncExecuteCommand('sheet.mutation.set-worksheet-row-count', { unitId, subUnitId: sheetId, rowCount }, options);
		}
		if (columns > this.sheet.getColumnCount()) {
			const columnCount = columns + spareColumns;
			this.commands.syncExecuteCommand('sheet.mutation.set-worksheet-column-count', { unitId, subUnitId: sheetId, columnCount }, options);
		}
	}

	/** Computes the formulas that depend on these ranges; all formulas if there are none. */
	private recalculate(ranges: Range[]): void {
		const dirtyRanges = ranges.map(({ row, col, toRow, toCol }) => ({
			unitId,
			sheetId,
			range: { startRow: row, endRow: toRow, startColumn: col, endColumn: toCol },
		}));
		const parameters = {
			dirtyRanges,
			forceCalculation: ranges.length === 0,
			dirtyNameMap: {},
			dirtyDefinedNameMap: {},
			dirtyUnitFeatureMap: {},
			dirtyUnitOtherFormulaMap: {},
			clearDependencyTreeCache: {},
			options: null,
		};
		void this.commands.executeCommand('formula.mutation.set-formula-calculation-start', parameters, { onlyLocal: true });
	}

	/** Inserts or deletes rows or columns. Selections and the open editor move with their cells. */
	move(change: StructureEdit): void {
		if (!this.book) return;
		const ofRows = isOfRows(change);
		const extent = ofRows ? this.sheet.getRowCount() : this.sheet.getColumnCount();
		if (change.at >= extent) return;
		const last = isInsert(change) ? change.at + change.n - 1 : Math.min(change.at + change.n, extent) - 1;
		const [rowEnd, columnEnd] = [this.sheet.getRowCount() - 1, this.sheet.getColumnCount() - 1];
		const range = ofRows
			? { startRow: change.at, endRow: last, startColumn: 0, endColumn: columnEnd }
			: { startRow: 0, endRow: rowEnd, startColumn: change.at, endColumn: last };
		const selections = this.selections.getCurrentSelections();
		this.commands.syncExecuteCommand(structureMutations[change.kind], { unitId, subUnitId: sheetId, range }, { fromCollab: true });
		this.growTo(leastRows, leastColumns);
		this.moveSelections(change, selections);
		this.moveEditor(change);
		if (this.hasFormulas) this.recalculate([]);
		this.marks.refresh();
	}

	private get selections(): SheetsSelectionsService {
		return this.get(SheetsSelectionsService);
	}

	private moveSelections(change: StructureEdit, before: readonly { range: IRange; primary: unknown }[]): void {
		const limit = { row: this.sheet.getRowCount() - 1, col: this.sheet.getColumnCount() - 1 };
		const moved = before.map((selection) => {
			const { row, col, toRow, toCol } = moveRange(rangeOf(selection.range), change) ?? this.fallback(change, rangeOf(selection.range));
			const range = { ...selection.range, startRow: Math.min(row, limit.row), startColumn: Math.min(col, limit.col), endRow: Math.min(toRow, limit.row), endColumn: Math.min(toCol, limit.col) };
			const old = selection.primary as { actualRow: number; actualColumn: number } | null;
			const place = (old && movePlace({ row: old.actualRow, col: old.actualColumn }, change)) ?? { row: range.startRow, col: range.startColumn };
			const primary = old && { ...old, actualRow: place.row, actualColumn: place.col, startRow: place.row, endRow: place.row, startColumn: place.col, endColumn: place.col };
			return { ...selection, range, primary };
		});
		if (moved.length > 0) this.commands.syncExecuteCommand('sheet.operation.set-selections', { unitId, subUnitId: sheetId, selections: moved }, { fromCollab: true });
	}

	/** What takes the place of a selection whose rows or columns are deleted. */
	private fallback(change: StructureEdit, range: Range): Range {
		return isOfRows(change) ? { ...range, row: change.at, toRow: change.at } : { ...range, col: change.at, toCol: change.at };
	}

	/** Univer moves the edited cell, but not the editor's box. */
	private moveEditor(change: StructureEdit): void {
		const bridge = this.get<IEditorBridgeService & { _currentEditCell?: { primary: Record<string, number> } | null }>(IEditorBridgeService);
		const cell = bridge._currentEditCell;
		if (!cell || !bridge.isVisible().visible) return;
		const { primary } = cell;
		const place = movePlace({ row: primary.actualRow!, col: primary.actualColumn! }, change);
		if (!place) return;
		cell.primary = { ...primary, actualRow: place.row, actualColumn: place.col, startRow: place.row, endRow: place.row, startColumn: place.col, endColumn: place.col };
		bridge.refreshEditCellPosition(false);
	}

	private styleOf(cell: Nullable<ICellData>): Nullable<IStyleData> {
		return cell?.s ? this.book.getStyles().getStyleByCell(cell) : null;
	}

	private contentAt(row: number, col: number): string {
		const cell = this.sheet.getCellRaw(row, col);
		if (!cell) return '';
		let formula: Nullable<string> = cell.f;
		if (!formula && cell.si) formula = this.get<FormulaDataModel>(FormulaDataModel).getFormulaStringByCell(row, col, sheetId, unitId);
		return contentOfCell(cell, formula, this.styleOf(cell));
	}

	read(row: number, col: number): CellState {
		if (!this.book) return { content: '', style: null };
		return { content: this.contentAt(row, col), style: plainStyle(this.styleOf(this.sheet.getCellRaw(row, col))) };
	}

	/** A cell's content, and the text that it shows; null while there is no grid. */
	contentOf({ row, col }: Place): { content: string; shown: string; style: CellState['style'] } | null {
		if (!this.book) return null;
		if (row >= this.sheet.getRowCount() || col >= this.sheet.getColumnCount()) return { content: '', shown: '', style: null };
		const shown = this.api.getActiveWorkbook()?.getSheetBySheetId(sheetId)?.getRange(row, col).getDisplayValue() ?? '';
		return { ...this.read(row, col), shown: String(shown ?? '') };
	}

	/** For tests: the width of a column, and the number of merged ranges. */
	layoutOf(col: number): { width: number; merges: number } {
		return { width: this.sheet.getColumnWidth(col), merges: this.sheet.getMergeData().length };
	}

	// ---- the user's edits ---------------------------------------------------------------------------------------------

	private listen(): void {
		const isOurs = (options?: IExecutionOptions) => options?.fromCollab || options?.onlyLocal || options?.fromFormula || options?.applyFormulaCalculationResult;
		this.guard(isOurs);
		const executed = this.commands.onCommandExecuted(({ id, params }, options) => {
			if (id === 'sheet.operation.set-selections' && !options?.fromCollab) this.reportSelection(params as never);
			if (id === 'sheet.operation.set-scroll') this.reportView();
			if (changesCells(id) && !isOurs(options)) this.reportSoon();
		});
		this.cleanUps.push(() => executed.dispose());
		const { Event } = this.api;
		this.on(Event.BeforeSheetEditStart, (event) => {
			if (this.readOnly || this.events.lockHolder({ row: event.row, col: event.column })) event.cancel = true;
		});
		this.on(Event.SheetEditStarted, (event) => this.events.onEditing({ row: event.row, col: event.column }));
		// Univer sets the value after closing the editor. The lock is released after the value is sent.
		this.on(Event.SheetEditEnded, () =>
			setTimeout(() => {
				if (!this.api.getActiveWorkbook()?.isCellEditing()) this.events.onEditing(null);
			}, 0),
		);
		const resized = new ResizeObserver(() => this.reportView());
		resized.observe(this.host);
		this.cleanUps.push(() => resized.disconnect());
	}

	private on<Name extends string>(name: Name, run: (event: any) => void): void {
		const registered = this.api.addEvent(name as never, run as never);
		this.cleanUps.push(() => registered.dispose());
	}

	/**
	 * Lets no command of the user change what the server cannot store. A refused mutation counts as executed, so that the
	 * rest of its command goes on. Undo and redo of the sheet are the page's own.
	 */
	private guard(isOurs: (options?: IExecutionOptions) => unknown): void {
		const wrap = (run: Execute, result: (done: boolean) => unknown): Execute => (id, params, options) => {
			if (isOurs(options)) return run(id, params, options);
			const structure = structureCommands[id];
			const kind = blockedKind(id) ?? (this.readOnly && (changesCells(id) || structure) ? 'role' : undefined);
			if (kind) {
				this.events.onBlocked(kind);
				return result(id.startsWith('sheet.mutation.'));
			}
			if (structure) {
				const range = (params as { range: IRange }).range;
				const [at, end] = structure.endsWith('Rows') ? [range.startRow, range.endRow] : [range.startColumn, range.endColumn];
				this.events.onStructure({ kind: structure, at, n: end - at + 1 });
				return result(true);
			}
			if ((id === 'univer.command.undo' || id === 'univer.command.redo') && this.isFocused) {
				if (id === 'univer.command.undo') this.events.onUndo();
				else this.events.onRedo();
				return result(true);
			}
			// Listeners of Univer change cells before the mutation does.
			if (changesCells(id)) this.remember(id, params as never);
			return run(id, params, options);
		};
		const { commands } = this;
		commands.syncExecuteCommand = wrap(commands.syncExecuteCommand.bind(commands), (done) => done) as never;
		commands.executeCommand = wrap(commands.executeCommand.bind(commands), (done) => Promise.resolve(done)) as never;
		// Univer's own history has no entries of the sheet, only those of the cell editor.
		const history = this.get<IUndoRedoService & { _updateStatus(): void; _undoRedoStatus$: { next(status: object): void } }>(IUndoRedoService);
		const push = history.pushUndoRedo.bind(history);
		history.pushUndoRedo = (item) => {
			if (item.unitID !== unitId) push(item);
		};
		const update = history._updateStatus.bind(history);
		history._updateStatus = () => (this.isFocused ? history._undoRedoStatus$.next(this.history) : update());
		this.updateHistory = () => history._updateStatus();
	}

	/** Enables or disables the buttons of undo and redo. */
	showUndo(canUndo: boolean, canRedo: boolean): void {
		this.history = { undos: Number(canUndo), redos: Number(canRedo) };
		this.updateHistory();
	}

	private get isFocused(): boolean {
		return this.instances.getFocusedUnit()?.getUnitId() === unitId;
	}

	private reportSelection({ selections }: { selections?: { range: IRange; primary?: { actualRow: number; actualColumn: number } | null }[] }): void {
		const last = selections?.at(-1);
		if (!last) return;
		const { range, primary } = last;
		const [rows, columns] = [this.sheet.getRowCount() - 1, this.sheet.getColumnCount() - 1];
		const startRow = Number.isNaN(range.startRow) ? 0 : range.startRow;
		const startColumn = Number.isNaN(range.startColumn) ? 0 : range.startColumn;
		const [toRow, toCol] = [Number.isNaN(range.endRow) ? rows : range.endRow, Number.isNaN(range.endColumn) ? columns : range.endColumn];
		this.events.onSelection({ row: primary?.actualRow ?? startRow, col: primary?.actualColumn ?? startColumn }, { row: startRow, col: startColumn, toRow, toCol });
	}

	private reportView(): void {
		this.viewTimer ??= setTimeout(() => {
			this.viewTimer = undefined;
			const visible = this.api.getActiveWorkbook()?.getActiveSheet()?.getVisibleRange();
			if (visible) this.events.onView(rangeOf(visible));
		}, viewMs);
	}

	/** Reads the cells that a mutation is about to change. */
	private remember(id: string, params: Record<string, unknown>): void {
		const inRanges = (ranges: IRange[]) => {
			for (const { startRow, endRow, startColumn, endColumn } of ranges)
				for (let row = startRow; row <= endRow; row++) for (let col = startColumn; col <= endColumn; col++) this.touch(row, col);
		};
		if (id === setValues && params.subUnitId === sheetId && params.cellValue) {
			forCells(params.cellValue as Matrix, (row, col, patch) => {
				if (!patch || 'v' in patch || 'f' in patch || 'p' in patch || 'si' in patch || 's' in patch) this.touch(row, col);
			});
		} else if (id === 'sheet.mutation.move-range') {
			for (const { value } of [params.from, params.to] as { value: Matrix }[]) forCells(value, (row, col) => this.touch(row, col));
		} else if (id === 'sheet.mutation.set.numfmt') {
			for (const { ranges } of Object.values(params.values as Record<string, { ranges: IRange[] }>)) inRanges(ranges);
		} else if (id === 'sheet.mutation.remove.numfmt') inRanges(params.ranges as IRange[]);
	}

	/** Keeps the state of a cell before the user's change. */
	private touch(row: number, col: number): void {
		const key = keyOf(row, col);
		if (!this.changed.has(key)) this.changed.set(key, { row, col, before: this.read(row, col) });
	}

	/** The mutations of an action (a value, then its format) are one change. */
	private reportSoon(): void {
		if (!this.reporting) queueMicrotask(() => this.reportChanges());
		this.reporting = true;
	}

	private reportChanges(): void {
		this.reporting = false;
		const changes: Change[] = [];
		for (const { row, col, before } of this.changed.values()) {
			const after = this.read(row, col);
			if (after.content.startsWith('=')) this.hasFormulas = true;
			if (sameStyle(before.style, after.style)) after.style = before.style;
			if (before.content !== after.content || before.style !== after.style) changes.push({ row, col, before, after });
		}
		this.changed.clear();
		if (changes.length > 0) this.events.onChanges(changes);
	}

	// ---- the rest -----------------------------------------------------------------------------------------------------

	showMarks(marks: Mark[]): void {
		this.marks.show(marks);
	}

	/** The text in the open cell editor; null if none is open. */
	editorText(): string | null {
		if (!this.api.getActiveWorkbook()?.isCellEditing()) return null;
		const document = this.instances.getUnit<DocumentDataModel>(DOCS_NORMAL_EDITOR_UNIT_ID_KEY);
		return document?.getBody()?.dataStream.replace(/\r\n$/, '').replace(/\r/g, '\n') ?? null;
	}

	/** Closes the cell editor and discards the typed text. */
	cancelEditing(): void {
		void this.api.getActiveWorkbook()?.endEditingAsync(false);
	}

	setReadOnly(readOnly: boolean): void {
		this.readOnly = readOnly;
		if (this.book) this.api.getActiveWorkbook()?.setEditable(!readOnly);
	}

	focus(): void {
		this.instances.focusUnit(unitId);
		this.host.querySelector<HTMLElement>('canvas')?.focus();
	}

	dispose(): void {
		clearTimeout(this.viewTimer);
		for (const cleanUp of this.cleanUps) cleanUp();
		this.marks.dispose();
		this.univer.dispose();
		this.host.remove();
	}

	/** The text that a screen reader gets for a cell. */
	describe(row: number, col: number): string {
		const { content, shown } = this.contentOf({ row, col }) ?? { content: '', shown: '' };
		return content.startsWith('=') ? `${cellName(row, col)}, ${shown}, ${content}` : `${cellName(row, col)}, ${shown}`;
	}
}

function forCells(matrix: Matrix, visit: (row: number, col: number, cell: Nullable<ICellData>) => void): void {
	for (const [row, cells] of Object.entries(matrix)) {
		for (const [col, cell] of Object.entries(cells ?? {})) visit(Number(row), Number(col), cell as Nullable<ICellData>);
	}
}

function columnWidths(cells: CellEdit[]): Record<number, { w: number }> {
	const widths: Record<number, { w: number }> = {};
	for (const { row, col, content = '' } of cells) {
		if (row >= measuredRows || content.startsWith('=')) continue;
		if (content.length * 8 <= leastWidth && !wideLetters.test(content)) continue;
		let width = 16;
		for (const letter of content) width += wideLetters.test(letter) ? 15 : 8;
		widths[col] = { w: Math.min(mostWidth, Math.max(leastWidth, width, widths[col]?.w ?? 0)) };
	}
	return widths;
}

/** Chinese, Japanese and Korean letters are about twice as wide. */
const wideLetters = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]/;
