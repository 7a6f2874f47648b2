// univer.ts - the grid: Univer, with the few methods and events that the page uses.
//
// Univer's model is the page's only copy of the cells. A mutation of Univer is a partial patch ("formula: null" may mean that
// the value stays). Therefore the page reads a cell before the user's first mutation of it and after the last one, and
// reports both states. Received edits are marked fromCollab, so that they are not reported. Without formulas they are also
// marked onlyLocal, which saves Univer a scan of all cells; this file then starts the recalculation.
//
// Rows and columns change only when the sheet's do: a command that inserts or deletes some is reported, not executed.
import { ICommandService, IUndoRedoService, IUniverInstanceService, LocaleService, LogLevel, mergeLocales, Univer, UniverInstanceType } from '@univerjs/core';
import type { ICellData, IExecutionOptions, IObjectMatrixPrimitiveType, IRange, IStyleData, Nullable, Workbook, Worksheet } from '@univerjs/core';
import { FUniver } from '@univerjs/core/lib/facade';
import { FormulaDataModel } from '@univerjs/engine-formula';
import { SheetsSelectionsService } from '@univerjs/sheets';
import '@univerjs/preset-sheets-core/lib/index.css';
import { cellName } from '../content';
import type { CellState } from '../sheet/mirror';
import type { LineMove } from '../sheet/moving';
import type { Mark } from '../sheet/presence';
import type { SessionGrid } from '../sheet/session';
import type { Change } from '../sheet/undo';
import { plainStyle, sameStyle } from '../style';
import { isInsert, isOfRows, maxCols, maxRows } from '../v2/lines';
import type { CellEdit, Place, PropertyEdit, Range, StructureEdit, Style } from '../v2/messages';
import type { PropertySet } from '../v2/properties';
import { blockedKind, changesCells, changesLayout, readsSelection } from './blocked';
import { CellEditor } from './cell-editor';
import { cellsOfMutation, leavePlain, UserChanges } from './changes';
import { cellOfContent, contentOfCell, patchOfContent, styleOfInfo, stylePatch } from './cells';
import { columnCountFor, GridExtent, leastColumns, leastRows, rowCountFor } from './extent';
import { RowHeights } from './heights';
import { GridLayout } from './layout';
import { MarkOverlay } from './marks';
import type { GridParts } from './parts';
import { pluginsOf } from './plugins';
import { rangeOf, valuesOf, visitCells } from './reading';
import { addMoveItems, deletion, insertion, keyOfMove, keyOfStructure, linesOf, moveByOne, moveCommands, movedSelections, structureCommands, structureMutations } from './structure';
import { readFunctionTexts, type GridTexts } from './texts';
import { columnWidths, leastWidth, measuredRows } from './widths';

export interface GridEvents {
	/** The user changed cells or properties: typed, pasted, formatted, merged, resized. One call for each command. */
	onChanges(changes: Change[], properties: PropertyEdit[]): void;
	/** A command of the user is about to read or change cells. */
	beforeChange(): void;
	/** The kind of refusal if not all of these cells are in the grid; null if they are. */
	lacks(ranges: Range[]): string | null;
	/** The properties to be shown. */
	properties(): PropertySet;
	/** The user inserts or deletes rows or columns, which the grid does not do itself. */
	onStructure(change: StructureEdit): void;
	onUndo(): void;
	onRedo(): void;
	/** The user starts to edit a cell. Returns the user who has locked it, or null. */
	lockHolder(place: Place): string | null;
	/** The user moves rows or columns, which the grid does not do itself. */
	onMoveLines(move: LineMove): void;
	/** The cell that was being edited is deleted. */
	onTextLost(text: string): void;
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
const viewMs = 80;

type Matrix = IObjectMatrixPrimitiveType<Nullable<ICellData>>;
type Execute = (id: string, params?: any, options?: IExecutionOptions) => unknown;

export class UniverView implements SessionGrid {
	private readonly host: HTMLElement;
	private readonly univer: Univer;
	private readonly api: FUniver;
	private readonly commands: ICommandService;
	/** Also used when Univer has been disposed of. */
	private readonly instances: IUniverInstanceService;
	private readonly marks: MarkOverlay;
	private readonly layout: GridLayout;
	private readonly extent: GridExtent;
	private readonly heights: RowHeights;
	private readonly editor: CellEditor;
	private book!: Workbook;
	private sheet!: Worksheet;
	hasFormulas = false;
	private readOnly = true;
	private readonly changes = new UserChanges((row, col) => this.read(row, col));
	private reporting = false;
	private viewTimer: ReturnType<typeof setTimeout> | undefined;
	private history = { undos: 0, redos: 0 };
	private updateHistory = () => {};
	private cleanUps: (() => void)[] = [];
	private created: (parts: GridParts) => void = () => {};

	constructor(
		container: HTMLElement,
		gridTexts: GridTexts,
		private readonly size: { rows: number; cols: number },
		private readonly events: GridEvents,
	) {
		// Univer empties the element that it gets.
		this.host = document.createElement('div');
		this.host.className = 'grid-host';
		container.append(this.host);
		const { locale, texts } = gridTexts;
		this.univer = new Univer({ locale, locales: { [locale]: mergeLocales(texts as never) }, logLevel: LogLevel.ERROR });
		for (const [plugin, options] of pluginsOf(this.host)) this.univer.registerPlugin(plugin as never, options as never);
		this.api = FUniver.newAPI(this.univer);
		this.commands = this.get(ICommandService);
		this.instances = this.get(IUniverInstanceService);
		this.editor = new CellEditor(this.univer);
		this.marks = new MarkOverlay(container, this.univer.__getInjector(), unitId, sheetId);
		this.heights = new RowHeights(this.univer.__getInjector(), this.commands, { unitId, subUnitId: sheetId }, () => this.sheet);
		this.layout = new GridLayout(this.commands, { unitId, subUnitId: sheetId }, () => this.sheet, events.properties, (col) => this.naturalWidth(col));
		this.extent = new GridExtent(this.commands, { unitId, subUnitId: sheetId }, () => this.sheet, () => queueMicrotask(() => this.arrange()));
		this.cleanUps.push(readFunctionTexts(this.host, gridTexts, this.get(LocaleService)), () => this.heights.dispose());
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
					rowCount: rowCountFor(this.size.rows),
					columnCount: columnCountFor(this.size.cols),
					columnData: columnWidths(cells),
					defaultColumnWidth: leastWidth,
					defaultRowHeight: 24,
				},
			},
		});
		this.sheet = this.book.getSheetBySheetId(sheetId)!;
		this.setReadOnly(this.readOnly);
		this.listen();
		this.arrange();
		this.created(this.parts!);
	}

	/** Shows the properties. */
	arrange(): void {
		if (!this.book) return;
		const visible = this.layout.arrange() ? this.visible() : null;
		if (visible) this.heights.widthsChanged(visible.row, visible.toRow);
		this.marks.refresh();
	}

	private naturalWidth(col: number): number {
		const cells = Array.from({ length: Math.min(measuredRows, this.sheet.getRowCount()) }, (_, row) => ({ row, col, content: this.contentAt(row, col) }));
		return columnWidths(cells)[col]?.w ?? leastWidth;
	}

	/** Replaces the cells of a range, except those that `skip` names. Writes the model directly, which is much faster. */
	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void {
		if (!this.book && cells.length === 0 && range.row >= this.size.rows) return;
		if (!this.book) this.create(cells);
		this.extent.growTo(cells.reduce((most, { row }) => Math.max(most, row + 1), 0), cells.reduce((most, { col }) => Math.max(most, col + 1), 0));
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
			const { row, col, content = '' } = cell;
			const style = styleOfInfo(cell.style);
			if (skip(row, col)) continue;
			if (content.startsWith('=') && content.length > 1) {
				formulas.push(cell);
				continue;
			}
			if (matrix.getValue(row, col)?.f) gone.push({ row, col, content: '', style: null });
			const { s: dateStyle, ...data } = cellOfContent(content) ?? {};
			const full = style || dateStyle ? { ...(dateStyle as IStyleData), ...style } : null;
			matrix.setValue(row, col, full ? { ...data, s: this.book.getStyles().setValue(full) } : data);
			shown ??= cell;
			this.heights.changed(row, content, full);
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
		let [rows, columns, touchesFormula] = [0, 0, false];
		for (const { row, col, content, style: info } of edits) {
			const style = info === undefined ? undefined : styleOfInfo(info);
			const old = this.sheet.getCellRaw(row, col);
			const oldStyle = this.styleOf(old);
			const newContent = content !== undefined && content !== this.contentAt(row, col);
			const newStyle = style !== undefined && !sameStyle(style as Style, oldStyle as Style);
			if (!newContent && !newStyle) continue;
			const cell = newContent ? patchOfContent(content, style === undefined ? oldStyle : style) : {};
			if (newStyle) cell.s = style === null ? (cell.s ?? null) : { ...(cell.s as IStyleData), ...stylePatch(style, oldStyle) };
			if (newContent && (cell.f || old?.f || old?.si)) touchesFormula = true;
			(cellValue[row] ??= {})[col] = cell;
			this.heights.changed(row, content ?? '', style ?? oldStyle);
			written.push({ row, col, toRow: row, toCol: col });
			rows = Math.max(rows, row + 1);
			columns = Math.max(columns, col + 1);
		}
		if (written.length === 0) return;
		this.extent.growTo(rows, columns);
		this.hasFormulas ||= touchesFormula;
		// onlyRows: tools/univer.ts
		const options: IExecutionOptions = touchesFormula ? { fromCollab: true } : { fromCollab: true, onlyLocal: true, onlyRows: true };
		this.commands.syncExecuteCommand(setValues, { unitId, subUnitId: sheetId, cellValue }, options);
		if (!touchesFormula && this.hasFormulas) this.recalculate(written);
		this.marks.refresh();
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
		this.heights.move(change);
		const last = isInsert(change) ? change.at + change.n - 1 : Math.min(change.at + change.n, extent) - 1;
		const [rowEnd, columnEnd] = [this.sheet.getRowCount() - 1, this.sheet.getColumnCount() - 1];
		const range = ofRows
			? { startRow: change.at, endRow: last, startColumn: 0, endColumn: columnEnd }
			: { startRow: 0, endRow: rowEnd, startColumn: change.at, endColumn: last };
		const selections = this.selections.getCurrentSelections();
		this.commands.syncExecuteCommand(structureMutations[change.kind], { unitId, subUnitId: sheetId, range }, { fromCollab: true });
		this.extent.growTo(leastRows, leastColumns);
		const limit = { row: this.sheet.getRowCount() - 1, col: this.sheet.getColumnCount() - 1 };
		const moved = movedSelections(selections, change, limit);
		if (moved.length > 0) this.commands.syncExecuteCommand('sheet.operation.set-selections', { unitId, subUnitId: sheetId, selections: moved }, { fromCollab: true });
		const lost = this.editor.move(change);
		if (lost !== null) {
			this.cancelEditing();
			this.events.onTextLost(lost);
		}
		if (this.hasFormulas) this.recalculate([]);
		this.marks.refresh();
	}

	private get selections(): SheetsSelectionsService {
		return this.get(SheetsSelectionsService);
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

	list(range: Range): CellEdit[] {
		const cells: CellEdit[] = [];
		if (this.book)
			visitCells(this.sheet.getCellMatrix().getMatrix(), range, (row, col) => {
				const { content, style } = this.read(row, col);
				if (content !== '' || style) cells.push({ row, col, content, style });
			});
		return cells;
	}

	formulas(): (Place & { content: string })[] {
		const cells: (Place & { content: string })[] = [];
		if (this.book && this.hasFormulas)
			visitCells(this.sheet.getCellMatrix().getMatrix(), { row: 0, col: 0, toRow: maxRows, toCol: maxCols }, (row, col, cell) => {
				if (cell.f || cell.si) cells.push({ row, col, content: this.contentAt(row, col) });
			});
		return cells;
	}

	/** A cell's content, and the text that it shows; null while there is no grid. */
	contentOf({ row, col }: Place): { content: string; shown: string; style: CellState['style'] } | null {
		if (!this.book) return null;
		if (row >= this.sheet.getRowCount() || col >= this.sheet.getColumnCount()) return { content: '', shown: '', style: null };
		const shown = this.api.getActiveWorkbook()?.getSheetBySheetId(sheetId)?.getRange(row, col).getDisplayValue() ?? '';
		return { ...this.read(row, col), shown: String(shown ?? '') };
	}

	/** For tests: sizes of a row and a column (0: hidden), the merged ranges, the frozen rows and columns. */
	layoutOf(row: number, col: number): { height: number; width: number; merges: Range[]; frozen: [number, number] } {
		const { ySplit, xSplit } = this.sheet.getConfig().freeze;
		const height = this.sheet.getRowVisible(row) ? this.sheet.getRowHeight(row) : 0;
		const width = this.sheet.getColVisible(col) ? this.sheet.getColumnWidth(col) : 0;
		return { height, width, merges: this.sheet.getMergeData().map(rangeOf), frozen: [ySplit, xSplit] };
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
		const keys = (event: KeyboardEvent) => this.structureKey(event);
		this.host.addEventListener('keydown', keys, { capture: true });
		addMoveItems(this.univer, (back) => this.moveSelected(back));
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
			if (id === setValues && options?.applyFormulaCalculationResult) params = this.presentResults(params);
			if (isOurs(options)) return run(id, params, options);
			// The box that names the selection takes cells behind the grid, too.
			if (id === 'sheet.operation.set-selections' && !this.reach(params.selections ?? [])) {
				this.events.onBlocked('end');
				return result(false);
			}
			if (id.startsWith('sheet.command.') || changesCells(id)) this.events.beforeChange();
			const structure = structureCommands[id];
			const moves = moveCommands[id];
			const cells = changesCells(id) ? cellsOfMutation(id, params) : [];
			const kind = blockedKind(id) ?? (this.readOnly && (changesCells(id) || changesLayout(id) || structure || id in moveCommands) ? 'role' : this.lacking(id, cells));
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
			if (moves) {
				this.events.onMoveLines(moves(params as never));
				return result(true);
			}
			if ((id === 'univer.command.undo' || id === 'univer.command.redo') && this.isFocused) {
				if (id === 'univer.command.undo') this.events.onUndo();
				else this.events.onRedo();
				return result(true);
			}
			if (changesLayout(id)) {
				this.layout.collect(id, params as never);
				this.reportSoon();
				return result(true);
			}
			// Listeners of Univer change cells before the mutation does.
			this.changes.remember(cells);
			if (id === setValues && leavePlain(params)) this.events.onBlocked('part');
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

	/** Makes room for what is to be selected. Returns whether the sheet may have so many rows and columns. */
	private reach(selections: { range: IRange }[]): boolean {
		const end = (last: 'endRow' | 'endColumn', count: number) => selections.reduce((most, { range }) => (range[last] > most ? range[last] : most), count - 1);
		const [row, col] = [end('endRow', this.sheet.getRowCount()), end('endColumn', this.sheet.getColumnCount())];
		if (row >= maxRows || col >= maxCols) return false;
		this.extent.growTo(row + 1, col + 1);
		return true;
	}

	/** The kind of refusal of a command that needs cells which have not been read. A single cell can be typed over. */
	private lacking(id: string, cells: Place[]): string | undefined {
		const read = readsSelection(id) && this.isFocused ? this.selections.getCurrentSelections().map(({ range }) => this.inGrid(range)) : [];
		const written = cells.length > 1 ? cells.map(({ row, col }) => ({ row, col, toRow: row, toCol: col })) : [];
		return this.events.lacks([...read, ...written]) ?? undefined;
	}

	/** The cells of a selection. A whole row or column has no ends. */
	private inGrid({ startRow, startColumn, endRow, endColumn }: IRange): Range {
		const end = (value: number, last: number) => (Number.isNaN(value) ? last : value);
		return { row: end(startRow, 0), col: end(startColumn, 0), toRow: end(endRow, this.sheet.getRowCount() - 1), toCol: end(endColumn, this.sheet.getColumnCount() - 1) };
	}

	/** Results of a calculation, without those whose formulas have moved since it began. Another one follows. */
	private presentResults<Values extends { cellValue: Matrix }>(params: Values): Values {
		const hasFormula = (row: number, col: number) => {
			const cell = this.sheet.getCellRaw(row, col);
			return Boolean(cell?.f || cell?.si);
		};
		return { ...params, cellValue: valuesOf(params.cellValue, hasFormula) };
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
		const cells = this.inGrid(last.range);
		const place = { row: last.primary?.actualRow ?? cells.row, col: last.primary?.actualColumn ?? cells.col };
		this.extent.reached(place);
		this.events.onSelection(place, cells);
	}

	private reportView(): void {
		this.viewTimer ??= setTimeout(() => {
			this.viewTimer = undefined;
			const visible = this.visible();
			if (!visible) return;
			this.extent.reached({ row: visible.toRow, col: visible.toCol });
			this.events.onView(visible);
		}, viewMs);
	}

	private visible(): Range | null {
		const visible = this.api.getActiveWorkbook()?.getActiveSheet()?.getVisibleRange();
		return visible ? rangeOf(visible) : null;
	}

	/** The mutations of an action (a value, then its format) are one change. */
	private reportSoon(): void {
		if (!this.reporting) queueMicrotask(() => this.reportChanges());
		this.reporting = true;
	}

	private reportChanges(): void {
		this.reporting = false;
		const changes = this.changes.take();
		if (changes.some(({ after }) => after.content.startsWith('='))) this.hasFormulas = true;
		const properties = this.layout.take();
		if (changes.length > 0 || properties.length > 0) this.events.onChanges(changes, properties);
	}

	// ---- the rest -----------------------------------------------------------------------------------------------------

	/** Inserts, deletes or moves the selected rows and columns, if the key does that. */
	private structureKey(event: KeyboardEvent): void {
		if (!this.isFocused || this.editor.isOpen || this.readOnly) return;
		const lines = linesOf(this.selections.getCurrentSelections());
		const key = lines[0] && keyOfStructure(event);
		const moves = lines.length === 1 && keyOfMove(event, lines[0]!);
		if (!key && !moves) return;
		event.preventDefault();
		event.stopPropagation();
		if (moves) this.moveSelected(moves === 'back');
		else lines.forEach((each) => this.events.onStructure(key === 'insert' ? insertion(each) : deletion(each)));
	}

	private moveSelected(back: boolean): void {
		const lines = linesOf(this.selections.getCurrentSelections());
		const move = lines.length === 1 ? moveByOne(lines[0]!, back) : undefined;
		if (this.readOnly) this.events.onBlocked('role');
		else if (move) this.events.onMoveLines(move);
	}

	showMarks(marks: Mark[]): void {
		this.marks.show(marks);
	}

	/** The text in the open cell editor; null if none is open. */
	editorText(): string | null {
		return this.book ? this.editor.text() : null;
	}

	/** Closes the cell editor and discards the typed text. */
	cancelEditing(): void {
		void this.api.getActiveWorkbook()?.endEditingAsync(false);
	}

	setReadOnly(readOnly: boolean): void {
		this.readOnly = readOnly;
		if (this.book) this.api.getActiveWorkbook()?.setEditable(!readOnly);
	}

	/** For the files that add to the grid; null until it has cells. */
	get parts(): GridParts | null {
		if (!this.book) return null;
		return {
			host: this.host,
			injector: this.univer.__getInjector(),
			commands: this.commands,
			sheet: this.sheet,
			isEditing: () => this.api.getActiveWorkbook()?.isCellEditing() ?? false,
			visible: () => this.visible(),
			cornerOf: (range) => this.marks.cornerOf(range),
		};
	}

	/** Calls `run` as soon as the grid has cells. */
	onCreated(run: (parts: GridParts) => void): void {
		this.created = run;
		if (this.parts) run(this.parts);
	}

	setDark(dark: boolean): void {
		this.api.toggleDarkMode(dark);
	}

	focus(): void {
		this.instances.focusUnit(unitId);
		this.host.querySelector<HTMLElement>('canvas')?.focus();
	}

	dispose(): void {
		clearTimeout(this.viewTimer);
		this.cleanUps.forEach((cleanUp) => cleanUp());
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
