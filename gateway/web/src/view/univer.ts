// univer.ts - the grid: Univer, with the few methods and events that the page uses.
import { ICommandService, IPermissionService, IUniverInstanceService, LocaleService, LogLevel, mergeLocales, Univer, UniverInstanceType } from '@univerjs/core';
import type { IRange, Workbook, Worksheet } from '@univerjs/core';
import { FUniver } from '@univerjs/core/lib/facade';
import { FormulaDataModel, IFunctionService } from '@univerjs/engine-formula';
import { SheetPermissionCheckController, SheetsSelectionsService } from '@univerjs/sheets';
import '@univerjs/preset-sheets-core/lib/index.css';
import { cellName } from '../content';
import type { CellState } from '../sheet/mirror';
import type { Mark } from '../sheet/presence';
import type { SessionGrid } from '../sheet/session';
import { isInsert, isOfRows } from '../v2/lines';
import type { CellEdit, Place, Range, StructureEdit } from '../v2/messages';
import { Contents } from './cells/contents';
import { rangeOf } from './cells/reading';
import { GridClock } from './clock';
import type { GridEvents } from './events';
import { columnCountFor, GridExtent, leastColumns, leastRows, rowCountFor } from './extent';
import { RowHeights } from './heights';
import { Computing, type ComputingOptions } from './formulas/computing';
import { startWorker } from './formulas/worker';
import { drawFrames } from './frames';
import { CellEditor } from './input/cell-editor';
import { Guard } from './input/guard';
import { limitMenu } from './input/menu';
import { Typing } from './input/typing';
import { GridLayout } from './layout';
import { ListColumns } from './lists';
import { MarkOverlay } from './marks';
import type { GridParts } from './parts';
import { pluginsOf } from './plugins';
import { Pointers } from './pointers';
import { addMoveItems, deletion, insertion, keyOfMove, keyOfStructure, linesOf, moveByOne, movedSelections, structureMutations } from './structure';
import { readFunctionTexts, type GridTexts } from './texts';

const unitId = 'book';
const sheetId = 'sheet';
const viewMs = 80;

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
	private readonly pointers: Pointers;
	private readonly typing: Typing;
	private book!: Workbook;
	private sheet!: Worksheet;
	private contents!: Contents;
	private computing!: Computing;
	private guard!: Guard;
	private clock!: GridClock;
	private lists!: ListColumns;
	private readOnly = true;
	private viewTimer: ReturnType<typeof setTimeout> | undefined;
	private cleanUps: (() => void)[] = [];
	private created: (parts: GridParts) => void = () => {};

	constructor(
		container: HTMLElement,
		gridTexts: GridTexts,
		private readonly size: { rows: number; cols: number },
		private readonly events: GridEvents,
		private readonly computed: ComputingOptions,
	) {
		// Univer empties the element that it gets.
		this.host = document.createElement('div');
		this.host.className = 'grid-host';
		container.append(this.host);
		const { locale, texts } = gridTexts;
		const injector = () => (this.book ? this.univer.__getInjector() : null);
		this.editor = new CellEditor(injector);
		this.typing = new Typing({ host: this.host, injector, unitId, editor: this.editor, read: (row, col) => this.read(row, col), events });
		this.univer = new Univer({ locale, locales: { [locale]: mergeLocales(texts as never) }, logLevel: LogLevel.ERROR });
		for (const [plugin, options] of pluginsOf(this.host)) this.univer.registerPlugin(plugin as never, options as never);
		this.api = FUniver.newAPI(this.univer);
		this.commands = this.get(ICommandService);
		this.instances = this.get(IUniverInstanceService);
		this.pointers = new Pointers(this.univer.__getInjector(), this.host, (kind) => events.onBlocked(kind));
		this.marks = new MarkOverlay(container, this.univer.__getInjector(), unitId, sheetId);
		this.heights = new RowHeights(this.univer.__getInjector(), this.commands, { unitId, subUnitId: sheetId }, () => this.sheet);
		this.layout = new GridLayout(this.commands, { unitId, subUnitId: sheetId }, () => this.sheet, events.properties);
		this.extent = new GridExtent(
			this.commands,
			{ unitId, subUnitId: sheetId },
			() => this.sheet,
			() => queueMicrotask(() => this.arrange()),
		);
		this.cleanUps.push(
			drawFrames(this.univer.__getInjector(), unitId, () => this.marks.place()),
			readFunctionTexts(this.host, gridTexts, this.get(LocaleService)),
			() => this.heights.dispose(),
			() => this.typing.dispose(),
			() => this.pointers.dispose(),
		);
	}

	private get<T>(service: Parameters<ReturnType<Univer['__getInjector']>['get']>[0]): T {
		return this.univer.__getInjector().get(service) as T;
	}

	// ---- the sheet's content ------------------------------------------------------------------------------------------

	/** Creates the grid when the first cells are known. */
	private create(): void {
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
					defaultColumnWidth: 96,
					defaultRowHeight: 24,
				},
			},
		});
		this.sheet = this.book.getSheetBySheetId(sheetId)!;
		const { commands, book, sheet, extent, heights, layout, pointers, events, typing } = this;
		this.editor.keepText();
		const injector = this.univer.__getInjector();
		const formulas = this.get<FormulaDataModel>(FormulaDataModel);
		const onFilled = (cells: Place[]) => this.computing.note(cells);
		this.contents = new Contents({ book, sheet, commands, formulas, extent, heights, onFilled, onShown: () => this.marks.refresh() });
		const contentAt = (row: number, col: number) => this.contents.contentAt(row, col);
		this.computing = new Computing({
			book,
			sheet,
			commands,
			model: formulas,
			extent,
			contentAt,
			makeWorker: startWorker,
			off: this.computed.off,
			seq: this.computed.seq,
			stored: this.computed.stored,
			others: this.computed.others,
			events: this.computed,
		});
		this.cleanUps.push(() => this.computing.dispose());
		this.lists = new ListColumns({ injector, sheet }, events.properties);
		this.clock = new GridClock(events.properties, (zone) => this.computing.setClock(zone));
		this.setReadOnly(this.readOnly);
		this.guard = new Guard({
			injector,
			unitId,
			sheet,
			contents: this.contents,
			extent,
			layout,
			pointers,
			events,
			typing,
			readOnly: () => this.readOnly,
			isFocused: () => this.isFocused,
		});
		pointers.start();
		limitMenu(injector, () => this.readOnly);
		this.listen();
		this.arrange();
		this.created(this.parts!);
	}

	/** Shows the properties. */
	arrange(): void {
		if (!this.book) return;
		this.clock.arrange();
		this.lists.arrange();
		const visible = this.layout.arrange() ? this.visible() : null;
		if (visible) this.heights.widthsChanged(visible.row, visible.toRow);
		this.computing.hide(this.layout.hidden);
		this.marks.refresh();
	}

	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void {
		if (!this.book && cells.length === 0 && range.row >= this.size.rows) return;
		if (!this.book) this.create();
		this.contents.fill(range, cells, skip);
	}

	apply(edits: CellEdit[]): void {
		if (this.book) this.contents.apply(edits);
	}

	read(row: number, col: number): CellState {
		return this.book ? this.contents.read(row, col) : { content: '', style: null };
	}

	list(range: Range): CellEdit[] {
		return this.book ? this.contents.list(range) : [];
	}

	formulas(): (Place & { content: string })[] {
		return this.book ? this.contents.formulas() : [];
	}

	get hasFormulas(): boolean {
		return this.book ? this.contents.hasFormulas : false;
	}

	/** A cell's content, and the text that it shows; null while there is no grid. */
	contentOf({ row, col }: Place): { content: string; shown: string; style: CellState['style'] } | null {
		if (!this.book) return null;
		if (row >= this.sheet.getRowCount() || col >= this.sheet.getColumnCount()) return { content: '', shown: '', style: null };
		const shown = this.api.getActiveWorkbook()?.getSheetBySheetId(sheetId)?.getRange(row, col).getDisplayValue() ?? '';
		return { ...this.read(row, col), shown: String(shown ?? '').replace(/\r\n$/, '') };
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
		const marks = this.pointers.marks();
		this.commands.syncExecuteCommand(structureMutations[change.kind], { unitId, subUnitId: sheetId, range }, { fromCollab: true });
		this.extent.growTo(leastRows, leastColumns);
		const limit = { row: this.sheet.getRowCount() - 1, col: this.sheet.getColumnCount() - 1 };
		const { moved, isGone } = movedSelections(selections, change, limit);
		if (moved.length > 0)
			this.commands.syncExecuteCommand('sheet.operation.set-selections', { unitId, subUnitId: sheetId, selections: moved }, { fromCollab: true });
		this.pointers.move(marks, change, limit, isGone);
		const lost = this.editor.move(change);
		if (lost !== null) this.cancelEditing();
		for (const text of [lost, this.typing.move(change)]) if (text !== null) this.events.onTextLost(text);
		this.computing.move(change);
		this.marks.refresh();
	}

	private get selections(): SheetsSelectionsService {
		return this.get(SheetsSelectionsService);
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
		const executed = this.commands.onCommandExecuted(({ id, params }, options) => {
			if (id === 'sheet.operation.set-selections' && !options?.fromCollab) this.reportSelection(params as never);
			if (id === 'sheet.operation.set-scroll') this.reportView();
		});
		this.cleanUps.push(() => executed.dispose());
		// Univer tells in a dialog of its own what the role does not permit.
		this.get<IPermissionService>(IPermissionService).setShowComponents(false);
		const refused = this.get<SheetPermissionCheckController>(SheetPermissionCheckController).triggerPermissionUIEvent$.subscribe(() =>
			this.events.onBlocked('role'),
		);
		this.cleanUps.push(() => refused.unsubscribe());
		const { Event } = this.api;
		this.on(Event.SheetEditStarted, (event) => this.events.onEditing({ row: event.row, col: event.column }));
		// Univer sets the value after closing the editor. The lock is released after the value is sent.
		this.on(Event.SheetEditEnded, () =>
			setTimeout(() => {
				this.typing.closed();
				if (!this.api.getActiveWorkbook()?.isCellEditing()) this.events.onEditing(null);
			}, 0),
		);
		const keys = (event: KeyboardEvent) => this.structureKey(event);
		this.host.addEventListener('keydown', keys, { capture: true });
		addMoveItems(this.univer, (back) => this.moveSelected(back));
		const resized = new ResizeObserver(() => {
			this.reportView();
			this.marks.refresh();
		});
		resized.observe(this.host);
		this.cleanUps.push(() => resized.disconnect());
	}

	private on<Name extends string>(name: Name, run: (event: any) => void): void {
		const registered = this.api.addEvent(name as never, run as never);
		this.cleanUps.push(() => registered.dispose());
	}

	/** Enables or disables the buttons of undo and redo. */
	showUndo(canUndo: boolean, canRedo: boolean): void {
		this.guard?.showUndo(canUndo, canRedo);
	}

	private get isFocused(): boolean {
		return this.instances.getFocusedUnit()?.getUnitId() === unitId;
	}

	private reportSelection({ selections }: { selections?: { range: IRange; primary?: { actualRow: number; actualColumn: number } | null }[] }): void {
		const last = selections?.at(-1);
		if (!last) return;
		const cells = this.guard.inGrid(last.range);
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

	/** Closes the cell editor and writes the typed text. */
	async acceptEditing(): Promise<void> {
		await this.api.getActiveWorkbook()?.endEditingAsync(true);
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

	/** Whether formulas have a function of this name, in capital letters. */
	hasFunction(name: string): boolean {
		return this.get<IFunctionService>(IFunctionService).hasExecutor(name);
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
		this.clock?.dispose();
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
