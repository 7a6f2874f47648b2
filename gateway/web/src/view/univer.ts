// univer.ts - the grid: Univer, with the few methods and events that the page uses.
//
// A mutation of Univer is a partial patch ("formula: null" may mean that the value stays). Therefore the page sends the
// content of the model after the mutation, not the patch. Received edits are marked fromCollab, so that they are not sent
// again. Without formulas they are also marked onlyLocal, which saves Univer a scan of all cells; this file then starts the
// recalculation.
import { ICommandService, IUniverInstanceService, LocaleType, LogLevel, mergeLocales, Univer, UniverInstanceType } from '@univerjs/core';
import type { ICellData, IExecutionOptions, IObjectMatrixPrimitiveType, IRange, IStyleData, Nullable, Workbook, Worksheet } from '@univerjs/core';
import { FUniver } from '@univerjs/core/lib/facade';
import { FormulaDataModel, UniverSheetsCorePreset } from '@univerjs/preset-sheets-core';
import '@univerjs/preset-sheets-core/lib/index.css';
import { cellName } from '../content';
import type { CellEdit, CellLock, CellPlace } from '../protocol';
import { keyOf } from '../queue';
import { blockedKind, hiddenMenus } from './blocked';
import { cellOfContent, contentOfCell, patchOfContent, stylePatch, styleOfInfo } from './cells';
import { LockOverlay } from './locks';

export interface GridContent {
	columns: number;
	/** Row-major. */
	content: string[];
	styles: { row: number; col: number; info: unknown }[];
}

export interface GridEvents {
	/** The user changed cells: typed, pasted, cleared, filled, formatted. */
	onLocalEdits(edits: CellEdit[]): void;
	/** The user starts to edit a cell. Returns the user who has locked it, or null. */
	lockHolder(place: CellPlace): string | null;
	/** The editor of a cell was opened, or closed (null). */
	onEditing(place: CellPlace | null): void;
	/** A command was refused. The texts have its kind (`blocked.KIND`). */
	onBlocked(kind: string): void;
	onSelection(place: CellPlace): void;
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

type Matrix = IObjectMatrixPrimitiveType<Nullable<ICellData>>;

async function localeOf(language: string): Promise<{ locale: LocaleType; texts: object }> {
	if (language === 'zh-CN') return { locale: LocaleType.ZH_CN, texts: (await import('@univerjs/preset-sheets-core/locales/zh-CN')).default };
	return { locale: LocaleType.EN_US, texts: (await import('@univerjs/preset-sheets-core/locales/en-US')).default };
}

export async function createUniverView(container: HTMLElement, language: string, events: GridEvents): Promise<UniverView> {
	const { locale, texts } = await localeOf(language);
	return new UniverView(container, locale, texts, events);
}

export class UniverView {
	private readonly host: HTMLElement;
	private readonly univer: Univer;
	private readonly api: FUniver;
	private readonly commands: ICommandService;
	private readonly locks: LockOverlay;
	private book!: Workbook;
	private sheet!: Worksheet;
	private hasFormulas = false;
	private readOnly = false;
	private changed = new Map<string, { row: number; col: number; withStyle: boolean }>();
	private cleanUps: (() => void)[] = [];

	constructor(
		container: HTMLElement,
		locale: LocaleType,
		texts: object,
		private readonly events: GridEvents,
	) {
		// Univer empties the element that it gets.
		this.host = document.createElement('div');
		this.host.className = 'grid-host';
		container.append(this.host);
		this.univer = new Univer({ locale, locales: { [locale]: mergeLocales(texts as never) }, logLevel: LogLevel.ERROR });
		const { plugins } = UniverSheetsCorePreset({
			container: this.host,
			header: true,
			footer: false,
			menu: hiddenMenus(),
			disableTextFormatAlert: true,
			disableTextFormatMark: true,
			sheets: { disableForceStringAlert: true, disableForceStringMark: true },
			formula: { initialFormulaComputing: 0 },
		} as never);
		for (const plugin of plugins) {
			if (Array.isArray(plugin)) this.univer.registerPlugin(plugin[0], plugin[1]);
			else this.univer.registerPlugin(plugin);
		}
		this.api = FUniver.newAPI(this.univer);
		this.commands = this.univer.__getInjector().get(ICommandService);
		this.locks = new LockOverlay(container, this.univer.__getInjector(), unitId, sheetId);
	}

	// ---- content ------------------------------------------------------------------------------------------------------

	/** Replaces the content, with own edits on top. */
	load(content: GridContent, overlay: CellEdit[]): void {
		if (this.book) this.replace(content, overlay);
		else this.create(content, overlay);
	}

	private create(content: GridContent, overlay: CellEdit[]): void {
		const cellData: Record<number, Record<number, ICellData>> = {};
		const columns = Math.max(1, content.columns);
		const put = (row: number, col: number, cell: ICellData) => {
			(cellData[row] ??= {})[col] = cell;
			if (cell.f) this.hasFormulas = true;
		};
		content.content.forEach((text, i) => {
			const cell = text === '' ? null : cellOfContent(text);
			if (cell) put(Math.floor(i / columns), i % columns, cell);
		});
		for (const { row, col, info } of content.styles) {
			const style = styleOfInfo(info);
			if (style) put(row, col, { ...cellData[row]?.[col], s: style });
		}
		const rows = Math.ceil(content.content.length / columns);
		this.book = this.univer.createUnit<object, Workbook>(UniverInstanceType.UNIVER_SHEET, {
			id: unitId,
			name: '',
			sheetOrder: [sheetId],
			sheets: {
				[sheetId]: {
					id: sheetId,
					name: 'Sheet',
					cellData,
					rowCount: Math.max(leastRows, rows + spareRows),
					columnCount: Math.max(leastColumns, columns + spareColumns),
					columnData: columnWidths(content.content, columns),
					defaultColumnWidth: leastWidth,
					defaultRowHeight: 24,
				},
			},
		});
		this.sheet = this.book.getSheetBySheetId(sheetId)!;
		this.listen();
		if (overlay.length) this.apply(overlay);
		this.setReadOnly(this.readOnly);
	}

	/** Replaces the content. Sets only cells that differ, so that selection, scrolling and the open editor stay. */
	private replace(content: GridContent, overlay: CellEdit[]): void {
		const { columns } = content;
		const own = new Set(overlay.map(keyOf));
		const edits: CellEdit[] = [];
		const at = (row: number, col: number) => (col < columns ? (content.content[row * columns + col] ?? '') : '');
		const compare = (row: number, col: number) => {
			const text = at(row, col);
			if (!own.has(keyOf({ row, col })) && this.contentAt(row, col) !== text) edits.push({ row, col, content: text });
		};
		content.content.forEach((text, i) => {
			if (text !== '') compare(Math.floor(i / columns), i % columns);
		});
		this.sheet.getCellMatrix().forValue((row, col) => {
			if (at(row, col) === '') compare(row, col);
		});
		const byPlace = new Map(edits.map((edit) => [keyOf(edit), edit]));
		for (const { row, col, info } of content.styles) {
			const edit = byPlace.get(keyOf({ row, col }));
			if (edit) edit.info = info;
			else if (!own.has(keyOf({ row, col })) && JSON.stringify(this.styleOf(this.sheet.getCellRaw(row, col)) ?? {}) !== JSON.stringify(info)) {
				edits.push({ row, col, content: at(row, col), info });
			}
		}
		this.apply([...edits, ...overlay]);
	}

	/** Applies edits by others. */
	apply(edits: CellEdit[]): void {
		if (edits.length === 0) return;
		const cellValue: Record<number, Record<number, ICellData>> = {};
		let rows = 0;
		let columns = 0;
		let touchesFormula = false;
		for (const { row, col, content, info } of edits) {
			const old = this.sheet.getCellRaw(row, col);
			const oldStyle = this.styleOf(old);
			const cell = patchOfContent(content, oldStyle);
			const style = info === undefined ? null : stylePatch(info, oldStyle);
			if (style) cell.s = style;
			if (cell.f || old?.f || old?.si) touchesFormula = true;
			(cellValue[row] ??= {})[col] = cell;
			rows = Math.max(rows, row + 1);
			columns = Math.max(columns, col + 1);
		}
		this.growTo(rows, columns);
		this.hasFormulas ||= touchesFormula;
		const options: IExecutionOptions = touchesFormula ? { fromCollab: true } : { fromCollab: true, onlyLocal: true };
		this.commands.syncExecuteCommand(setValues, { unitId, subUnitId: sheetId, cellValue }, options);
		if (!touchesFormula && this.hasFormulas) this.recalculate(edits);
		this.locks.refresh();
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

	private recalculate(edits: CellEdit[]): void {
		const dirtyRanges = edits.map(({ row, col }) => ({
			unitId,
			sheetId,
			range: { startRow: row, endRow: row, startColumn: col, endColumn: col },
		}));
		const parameters = {
			dirtyRanges,
			forceCalculation: false,
			dirtyNameMap: {},
			dirtyDefinedNameMap: {},
			dirtyUnitFeatureMap: {},
			dirtyUnitOtherFormulaMap: {},
			clearDependencyTreeCache: {},
			options: null,
		};
		void this.commands.executeCommand('formula.mutation.set-formula-calculation-start', parameters, { onlyLocal: true });
	}

	private styleOf(cell: Nullable<ICellData>): Nullable<IStyleData> {
		return cell?.s ? this.book.getStyles().getStyleByCell(cell) : null;
	}

	private contentAt(row: number, col: number): string {
		const cell = this.sheet.getCellRaw(row, col);
		if (!cell) return '';
		let formula: Nullable<string> = cell.f;
		if (!formula && cell.si) formula = this.univer.__getInjector().get(FormulaDataModel).getFormulaStringByCell(row, col, sheetId, unitId);
		return contentOfCell(cell, formula, this.styleOf(cell));
	}

	/** A cell's content, and the text that it shows. */
	contentOf({ row, col }: CellPlace): { content: string; shown: string } {
		if (row >= this.sheet.getRowCount() || col >= this.sheet.getColumnCount()) return { content: '', shown: '' };
		const shown = this.api.getActiveWorkbook()?.getSheetBySheetId(sheetId)?.getRange(row, col).getDisplayValue() ?? '';
		return { content: this.contentAt(row, col), shown: String(shown ?? '') };
	}

	// ---- the user's edits ---------------------------------------------------------------------------------------------

	private listen(): void {
		const executed = this.commands.onCommandExecuted((command, options) => {
			if (options?.fromCollab || options?.onlyLocal || options?.fromFormula || options?.applyFormulaCalculationResult) return;
			const parameters = command.params as never;
			switch (command.id) {
				case 'sheet.operation.set-selections':
					this.reportSelection(parameters);
					break;
				case setValues:
					this.markValues(parameters);
					break;
				case 'sheet.mutation.move-range':
					this.markMove(parameters);
					break;
				case 'sheet.mutation.set.numfmt':
					for (const { ranges } of Object.values((parameters as { values: Record<string, { ranges: IRange[] }> }).values)) this.markRanges(ranges);
					break;
				case 'sheet.mutation.remove.numfmt':
					this.markRanges((parameters as { ranges: IRange[] }).ranges);
					break;
			}
		});
		this.cleanUps.push(() => executed.dispose());
		const { Event } = this.api;
		this.on(Event.BeforeCommandExecute, (event) => {
			const kind = blockedKind(event.id);
			if (!kind || event.options?.fromCollab) return;
			event.cancel = true;
			this.events.onBlocked(kind);
		});
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
	}

	private on<Name extends string>(name: Name, run: (event: any) => void): void {
		const registered = this.api.addEvent(name as never, run as never);
		this.cleanUps.push(() => registered.dispose());
	}

	private reportSelection({ selections }: { selections?: { range: IRange; primary?: { actualRow: number; actualColumn: number } | null }[] }): void {
		const last = selections?.at(-1);
		if (!last) return;
		const { range, primary } = last;
		this.events.onSelection({ row: primary?.actualRow ?? range.startRow, col: primary?.actualColumn ?? range.startColumn });
	}

	private markValues({ subUnitId, cellValue }: { subUnitId: string; cellValue?: Matrix }): void {
		if (subUnitId !== sheetId || !cellValue) return;
		forCells(cellValue, (row, col, patch) => {
			const touchesContent = !patch || 'v' in patch || 'f' in patch || 'p' in patch || 'si' in patch;
			const touchesStyle = !!patch && 's' in patch;
			if (touchesContent || touchesStyle) this.mark(row, col, touchesStyle);
		});
	}

	/** Cut and paste, or a dragged selection: sends both ranges. */
	private markMove({ from, to }: { from: { value: Matrix }; to: { value: Matrix } }): void {
		for (const matrix of [from.value, to.value]) forCells(matrix, (row, col) => this.mark(row, col, true));
	}

	private markRanges(ranges: IRange[]): void {
		for (const { startRow, endRow, startColumn, endColumn } of ranges) {
			for (let row = startRow; row <= endRow; row++) for (let col = startColumn; col <= endColumn; col++) this.mark(row, col, true);
		}
	}

	/** Marks a cell as changed by the user. Several mutations of an action (a value, then its format) become one edit. */
	private mark(row: number, col: number, withStyle: boolean): void {
		if (this.changed.size === 0) queueMicrotask(() => this.sendChanged());
		const key = keyOf({ row, col });
		this.changed.set(key, { row, col, withStyle: withStyle || this.changed.get(key)?.withStyle === true });
	}

	private sendChanged(): void {
		const edits: CellEdit[] = [];
		for (const { row, col, withStyle } of this.changed.values()) {
			const content = this.contentAt(row, col);
			if (content.startsWith('=')) this.hasFormulas = true;
			edits.push(withStyle ? { row, col, content, info: this.styleOf(this.sheet.getCellRaw(row, col)) ?? {} } : { row, col, content });
		}
		this.changed.clear();
		this.events.onLocalEdits(edits);
	}

	// ---- the rest -----------------------------------------------------------------------------------------------------

	/** Shows the current locks of others. */
	showLocks(locks: CellLock[]): void {
		this.locks.show(locks);
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
		this.univer.__getInjector().get(IUniverInstanceService).focusUnit(unitId);
		this.host.querySelector<HTMLElement>('canvas')?.focus();
	}

	dispose(): void {
		for (const cleanUp of this.cleanUps) cleanUp();
		this.locks.dispose();
		this.univer.dispose();
		this.host.remove();
	}

	/** The text that a screen reader gets for a cell. */
	describe(row: number, col: number): string {
		const { content, shown } = this.contentOf({ row, col });
		return content.startsWith('=') ? `${cellName(row, col)}, ${shown}, ${content}` : `${cellName(row, col)}, ${shown}`;
	}
}

function forCells(matrix: Matrix, visit: (row: number, col: number, cell: Nullable<ICellData>) => void): void {
	for (const [row, cells] of Object.entries(matrix)) {
		for (const [col, cell] of Object.entries(cells ?? {})) visit(Number(row), Number(col), cell as Nullable<ICellData>);
	}
}

function columnWidths(content: string[], columns: number): Record<number, { w: number }> {
	const widths: Record<number, { w: number }> = {};
	content.slice(0, measuredRows * columns).forEach((text, i) => {
		if (text.length * 8 <= leastWidth && !wideLetters.test(text)) return;
		if (text.startsWith('=')) return;
		let width = 16;
		for (const letter of text) width += wideLetters.test(letter) ? 15 : 8;
		const col = i % columns;
		widths[col] = { w: Math.min(mostWidth, Math.max(leastWidth, width, widths[col]?.w ?? 0)) };
	});
	return widths;
}

/** Chinese, Japanese and Korean letters are about twice as wide. */
const wideLetters = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]/;
