// evaluator.ts - computes one formula with Univer's parser and functions, which get the cells from a Sheet instead of a workbook.
//
// Univer reads references through BaseReferenceObject. Its methods are replaced here: they read a range as far as something is in
// it, and tell the sheet what is read.
import { LocaleType, LogLevel, Univer, UniverInstanceType } from '@univerjs/core';
import type { ICellData, IRange } from '@univerjs/core';
import {
	ArrayValueObject,
	AstTreeBuilder,
	BaseReferenceObject,
	type BaseValueObject,
	ERROR_TYPE_SET,
	ErrorValueObject,
	FormulaCurrentConfigService,
	FormulaDataModel,
	FormulaRuntimeService,
	IFormulaCurrentConfigService,
	IFormulaRuntimeService,
	IFunctionService,
	Interpreter,
	Lexer,
	LexerTreeBuilder,
	NullValueObject,
	StringValueObject,
	UniverFormulaEnginePlugin,
} from '@univerjs/engine-formula';
import { maxCols, maxRows } from '../v2/lines';
import { arrayOfRange, forgetArrays, forgetArraysOf, idOfTab, keepTotals, makeArray, protectArrays, tabOfId, unitId } from './arrays';
import type { Area, Formula } from './cells';
import { compareExactly, forgetColumn, forgetColumns } from './comparisons';
import { type AstNode, refuseAbsent } from './absent';
import { random, registerFunctions, seedRandom } from './functions';
import { correctLexer, joinsReferences } from './lexing';
import { longestText, mostCells, mostFilled } from './limits';
import type { TabName } from './messages';
import { readName, readNamesInTexts, writeNames } from './tab_names';
import { keepTexts, readAllArrays, readAllNumbers } from './numbers';

/** The cells of a sheet and the other tabs of its book, for the formula that is being computed. Tabs have numbers. */
export interface Sheet {
	/** A range is read. Returns where it ends: at the last cell that is not empty, or before. null: the tab cannot be read. */
	read(area: Area): { toRow: number; toCol: number } | null;
	shown(row: number, col: number, tab: number): ICellData | null;
	formulaText(row: number, col: number, tab: number): string | null;
	hiddenRows(tab: number): Record<number, { hd: 1 }>;
	/** Whether there are cells of the tab to read. */
	isHere(tab: number): boolean;
	/** The tab with a name. */
	tabNamed(name: string): number | undefined;
	/** All tabs, in their order. */
	tabs(): readonly TabName[];
}

export interface Computed {
	value: ICellData;
	/** All values, if they are several. */
	array: (ICellData | null)[][] | null;
	volatile: boolean;
}

const mostTrees = 5000;

/** Ends a computation with an error. */
class FormulaError extends Error {
	constructor(readonly type: string) {
		super(type);
	}
}

interface Tree {
	getChildren(): Tree[];
	isForcedCalculateFunction(): boolean;
	resetCalculationState(): void;
}

interface Value {
	isReferenceObject(): boolean;
	isArray(): boolean;
	isError(): boolean;
	isLambda(): boolean;
	isNull(): boolean;
}

interface Reference {
	getRangePosition(): IRange;
	getSheetId(): string;
	_checkIfWorksheetMiss(): boolean;
	getCellValueObject(cell: ICellData): BaseValueObject;
	iterator(visit: (value: BaseValueObject | null, row: number, col: number) => boolean | void): void;
}

/** The parts of Univer's service that are used. */
interface Runtime {
	setCurrent(row: number, col: number, rowCount: number, colCount: number, sheetId: string, unitId: string): void;
	_getValueObjectOfRuntimeData(value: unknown): ICellData | null | undefined;
}

let sheet!: Sheet;
/** The tab of the formula that is being computed. */
let current = 0;

const error = (type: string) => ErrorValueObject.create(type as never);

/** What a range is read to; null: it is not in the sheet. */
function readRange(reference: Reference): Area | null {
	const { startRow, startColumn, endRow, endColumn } = reference.getRangePosition();
	if (!(startRow >= 0 && startColumn >= 0 && endRow < maxRows && endColumn < maxCols)) return null;
	const range = { tab: tabOfId(reference.getSheetId()), row: startRow, col: startColumn, toRow: endRow, toCol: endColumn };
	const last = sheet.read(range);
	if (!last) return null;
	const end = { ...range, toRow: Math.max(startRow, last.toRow), toCol: Math.max(startColumn, last.toCol) };
	if ((end.toRow - end.row + 1) * (end.toCol - end.col + 1) > mostCells) throw new FormulaError('#NUM!');
	return end;
}

function replaceReading(): void {
	const methods = BaseReferenceObject.prototype as unknown as Record<string, unknown>;
	const valueAt = (reference: Reference, row: number, col: number, tab: number): BaseValueObject | null => {
		const cell = sheet.shown(row, col, tab);
		return cell === null || ((cell.v === null || cell.v === undefined) && !cell.p) ? null : (reference.getCellValueObject(cell) as BaseValueObject);
	};
	const setRange = methods['setRangeData'] as (this: Reference, range: IRange) => void;
	Object.assign(methods, {
		// SUMIF() and AVERAGEIF() enlarge the range of the cells that they add up. All formulas that name the cell share it.
		setRangeData(this: Reference, range: IRange) {
			setRange.call(this, { ...range });
		},
		// Tells the error when it is read, so that IFERROR() sees it.
		isExceedRange: () => false,
		getCellData(this: Reference, row: number, col: number) {
			const tab = tabOfId(this.getSheetId());
			return sheet.read({ tab, row, col, toRow: row, toCol: col }) ? (sheet.shown(row, col, tab) ?? undefined) : { v: '#REF!', t: 1 };
		},
		getActiveSheetRowCount: () => maxRows,
		getActiveSheetColumnCount: () => maxCols,
		getRowCount(this: Reference) {
			const { startRow, endRow } = this.getRangePosition();
			return endRow - startRow + 1;
		},
		getColumnCount(this: Reference) {
			const { startColumn, endColumn } = this.getRangePosition();
			return endColumn - startColumn + 1;
		},
		iterator(this: Reference, visit: (value: BaseValueObject | null, row: number, col: number) => boolean | void) {
			const { startRow, startColumn } = this.getRangePosition();
			if (this._checkIfWorksheetMiss()) return visit(error('#REF!'), startRow, startColumn);
			const range = readRange(this);
			if (!range) return visit(error('#REF!'), startRow, startColumn);
			for (let row = range.row; row <= range.toRow; row++)
				for (let col = range.col; col <= range.toCol; col++) if (visit(valueAt(this, row, col, range.tab), row, col) === false) return;
		},
		getFirstCell(this: Reference) {
			let first: BaseValueObject | null = null;
			this.iterator((value) => {
				first = value;
				return false;
			});
			return first ?? NullValueObject.create();
		},
		toArrayValueObject(this: Reference) {
			const range = this._checkIfWorksheetMiss() ? null : readRange(this);
			if (!range) return makeArray([[error('#REF!')]], -1, -1);
			return arrayOfRange(range, (row) => {
				const line: BaseValueObject[] = [];
				for (let col = range.col; col <= range.toCol; col++) line.push(valueAt(this, row, col, range.tab) ?? NullValueObject.create());
				return line;
			});
		},
	});
	const texts = StringValueObject as unknown as { create(text: string, options?: unknown): unknown };
	const create = texts.create.bind(StringValueObject);
	texts.create = (text, options) => {
		if (text.length > longestText) throw new FormulaError('#VALUE!');
		return create(text, options);
	};
	const arrayMethods = ArrayValueObject.prototype as unknown as { _batchOperator(this: ArrayValueObject, other: BaseValueObject, ...rest: unknown[]): unknown };
	const operate = arrayMethods._batchOperator;
	arrayMethods._batchOperator = function (other, ...rest) {
		const size = other.isArray() ? (other as ArrayValueObject) : null;
		const rows = Math.max(this.getRowCount(), size?.getRowCount() ?? 1);
		if (rows * Math.max(this.getColumnCount(), size?.getColumnCount() ?? 1) > mostCells) throw new FormulaError('#NUM!');
		return operate.call(this, other, ...rest);
	};
}

/** A tab as Univer's functions look for formulas and hidden rows in it. */
function dataOfTab(tab: number) {
	const getValue = (row: number, col: number) => {
		const f = sheet.formulaText(row, col, tab);
		return f === null ? null : { f };
	};
	const getMatrix = () => new Proxy({}, { get: (_, row) => new Proxy({}, { get: (__, col) => getValue(Number(row), Number(col)) }) });
	return {
		cellData: { getValue, getMatrix },
		rowCount: maxRows,
		columnCount: maxCols,
		get rowData() {
			return sheet.hiddenRows(tab);
		},
		columnData: {},
	};
}

const tabData: ReturnType<typeof dataOfTab>[] = [];
const unitData = {
	[unitId]: new Proxy(
		{},
		{
			get: (_, id) => {
				const tab = tabOfId(String(id));
				return (tabData[tab] ??= dataOfTab(tab));
			},
		},
	),
};
const tabNames = {
	[unitId]: new Proxy(
		{},
		{
			get: (_, name) => {
				const tab = name === '' ? undefined : sheet.tabNamed(readName(String(name)));
				return tab === undefined ? undefined : idOfTab(tab);
			},
		},
	),
};

function sheetsInfo() {
	const tabs = sheet.tabs();
	return { sheetOrder: tabs.map(({ tab }) => idOfTab(tab)), sheetNameMap: Object.fromEntries(tabs.map(({ tab, name }) => [idOfTab(tab), name])) };
}

class Config extends FormulaCurrentConfigService {
	override getUnitData = (): never => unitData as never;
	override getUnitStylesData(): never {
		return { [unitId]: { getStyleByCell: (cell: ICellData) => cell.s ?? null } } as never;
	}
	override getSheetNameMap = (): never => tabNames as never;
	override getSheetsInfo = (): never => ({ sheetOrder: [], sheetNameMap: {} }) as never;
	override getExecuteUnitId = (): string => unitId;
	override getExecuteSubUnitId = (): string => idOfTab(current);
	override getSheetRowColumnCount = () => ({ rowCount: maxRows, columnCount: maxCols });
	override getFilteredOutRows = (): number[] => [];
}

/** FORMULATEXT() and SUBTOTAL() look for formulas in the workbook, and SHEET() and SHEETS() have the tabs of when the formula was parsed. */
function readAnew(functions: IFunctionService, model: FormulaDataModel): void {
	model.getFormulaStringByCell = (row, col, id) => sheet.formulaText(row, col, tabOfId(id));
	for (const name of ['SHEET', 'SHEETS']) (functions.getExecutor(name) as unknown as { getSheetsInfo(): unknown }).getSheetsInfo = sheetsInfo;
}

export class Evaluator {
	private readonly trees = new Map<string, Tree | null>();
	private readonly lexer: Lexer;
	private readonly builder: AstTreeBuilder;
	private readonly interpreter: Interpreter;
	private readonly runtime: Runtime;
	/** Random numbers are the same for the same salt. */
	salt = 0;

	constructor() {
		const univer = new Univer({ locale: LocaleType.EN_US, locales: { [LocaleType.EN_US]: {} }, logLevel: LogLevel.SILENT, override: [] });
		univer.registerPlugin(UniverFormulaEnginePlugin, {});
		const injector = univer.__getInjector();
		injector.replace([IFormulaCurrentConfigService, { useClass: Config }]);
		injector.replace([IFormulaRuntimeService, { useClass: FormulaRuntimeService }]);
		// HYPERLINK() looks for the sheet.
		univer.createUnit(UniverInstanceType.UNIVER_SHEET, { id: unitId, sheetOrder: [idOfTab(0)], sheets: { [idOfTab(0)]: { id: idOfTab(0), name: 'Sheet' } } });
		this.lexer = injector.get(Lexer);
		correctLexer(injector.get(LexerTreeBuilder));
		this.builder = injector.get(AstTreeBuilder);
		this.interpreter = injector.get(Interpreter);
		this.runtime = injector.get(IFormulaRuntimeService) as never;
		registerFunctions(injector.get(IFunctionService));
		readNamesInTexts(injector.get(IFunctionService));
		readAnew(injector.get(IFunctionService), injector.get(FormulaDataModel));
		replaceReading();
		keepTotals();
		protectArrays();
		readAllNumbers();
		readAllArrays();
		keepTexts(injector.get(IFunctionService));
		compareExactly(injector.get(IFunctionService));
		Math.random = random;
	}

	/** A cell shows something else. */
	changed(row: number, col: number, tab: number): void {
		forgetArraysOf(row, col, tab);
		forgetColumn(col, tab);
	}

	/** Many cells show something else. */
	changedAll(): void {
		forgetArrays();
		forgetColumns();
	}

	async evaluate({ text, row, col, tab }: Pick<Formula, 'text' | 'row' | 'col' | 'tab'>, of: Sheet): Promise<Computed> {
		if (sheet !== of) this.changedAll();
		[sheet, current] = [of, tab];
		let tree: Tree | null | string = null;
		try {
			tree = this.treeOf(text);
			if (typeof tree === 'string') return { value: errorCell(tree), array: null, volatile: false };
			if (!tree) return { value: errorCell('#ERROR!'), array: null, volatile: false };
			this.runtime.setCurrent(row, col, maxRows, maxCols, idOfTab(tab), unitId);
			seedRandom(row, col, this.salt);
			const data = { node: tree, refOffsetX: 0, refOffsetY: 0 } as never;
			const value = this.interpreter.checkAsyncNode(tree as never) ? await this.interpreter.executeAsync(data) : this.interpreter.execute(data);
			const computed = { ...this.result(value as unknown as Value), volatile: isVolatile(tree) };
			tree.resetCalculationState();
			return computed;
		} catch (problem) {
			// The tree may be in any state.
			this.trees.delete(text);
			const type = problem instanceof FormulaError ? problem.type : problem instanceof RangeError ? '#NUM!' : '#ERROR!';
			return { value: errorCell(type), array: null, volatile: typeof tree === 'object' && tree !== null && isVolatile(tree) };
		}
	}

	private treeOf(text: string): Tree | null | string {
		const known = this.trees.get(text);
		if (known) return known;
		if (joinsReferences(text)) return '#ERROR!';
		const lexed = this.lexer.treeBuilder(writeNames(text));
		if (typeof lexed === 'string') return lexed;
		const tree = this.builder.parse(lexed as never) as unknown as Tree | null;
		if (tree) refuseAbsent(tree as unknown as AstNode, (tab) => sheet.isHere(tab));
		if (this.trees.size >= mostTrees) this.trees.delete(this.trees.keys().next().value!);
		this.trees.set(text, tree);
		return tree;
	}

	private result(result: Value): { value: ICellData; array: (ICellData | null)[][] | null } {
		if (result.isLambda?.()) return { value: errorCell('#CALC!'), array: null };
		if (!result.isReferenceObject() && !result.isArray()) return { value: this.cellOf(result), array: null };
		const values: (ICellData | null)[][] = [];
		let [lastRow, lastCol] = [0, 0];
		const { startRow, startColumn, endRow, endColumn } = (result as unknown as Reference).getRangePosition();
		const isArray = result.isArray();
		if (isArray && (endRow - startRow + 1) * (endColumn - startColumn + 1) > mostFilled * 4) return { value: errorCell('#NUM!'), array: null };
		(result as unknown as Reference).iterator(((value: Value | null, row: number, col: number) => {
			const line = (values[row - startRow] ??= []);
			const shown = value === null || value.isNull?.() ? null : this.cellOf(value);
			line[col - startColumn] = shown;
			if (shown) [lastRow, lastCol] = [Math.max(lastRow, row - startRow), Math.max(lastCol, col - startColumn)];
		}) as never);
		// Empty cells at the end of what is read are not there.
		const array = isArray ? values : values.slice(0, lastRow + 1).map((line) => line.slice(0, lastCol + 1));
		const value = array[0]?.[0] ?? { v: 0, t: 2 };
		if (array.length <= 1 && (array[0]?.length ?? 0) <= 1) return { value, array: null };
		if (array.length * array[0]!.length > mostFilled) return { value: errorCell('#NUM!'), array: null };
		return { value, array };
	}

	private cellOf(value: Value): ICellData {
		const cell: ICellData = this.runtime._getValueObjectOfRuntimeData(value) ?? { v: 0, t: 2 };
		if (cell.v === null || cell.v === undefined) return cell.p ? cell : { ...cell, v: 0, t: 2 };
		return cell;
	}
}

/** Formulas do not tell a text from the error of this name. */
export const isErrorName = (text: string): boolean => ERROR_TYPE_SET.has(text as never);

export function errorCell(type: string): ICellData {
	return { v: type, t: 1 };
}

function isVolatile(tree: Tree): boolean {
	return tree.isForcedCalculateFunction() || tree.getChildren().some(isVolatile);
}
