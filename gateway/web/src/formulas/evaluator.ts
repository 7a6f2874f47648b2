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
	CELL_INVERTED_INDEX_CACHE,
	ErrorValueObject,
	FormulaCurrentConfigService,
	FormulaRuntimeService,
	IFormulaCurrentConfigService,
	IFormulaRuntimeService,
	IFunctionService,
	Interpreter,
	Lexer,
	NullValueObject,
	StringValueObject,
	UniverFormulaEnginePlugin,
} from '@univerjs/engine-formula';
import { maxCols, maxRows } from '../v2/lines';
import type { Range } from '../v2/messages';
import { arrayOfRange, forgetArrays, forgetArraysOf, keepTotals, makeArray, sheetId, unitId } from './arrays';
import { random, registerFunctions, seedRandom } from './functions';
import { longestText, mostCells, mostFilled } from './limits';

/** The cells, for the formula that is being computed. */
export interface Sheet {
	/** A range is read. Returns where it ends: at the last cell that is not empty, or before. */
	read(range: Range): { toRow: number; toCol: number };
	shown(row: number, col: number): ICellData | null;
	formulaText(row: number, col: number): string | null;
	hiddenRows(): Record<number, { hd: 1 }>;
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

const error = (type: string) => ErrorValueObject.create(type as never);

/** What a range is read to; null: it is not in the sheet. */
function readRange(reference: Reference): Range | null {
	const { startRow, startColumn, endRow, endColumn } = reference.getRangePosition();
	if (!(startRow >= 0 && startColumn >= 0 && endRow < maxRows && endColumn < maxCols)) return null;
	const range = { row: startRow, col: startColumn, toRow: endRow, toCol: endColumn };
	const { toRow, toCol } = sheet.read(range);
	const end = { ...range, toRow: Math.max(startRow, toRow), toCol: Math.max(startColumn, toCol) };
	if ((end.toRow - end.row + 1) * (end.toCol - end.col + 1) > mostCells) throw new FormulaError('#NUM!');
	return end;
}

function replaceReading(): void {
	const methods = BaseReferenceObject.prototype as unknown as Record<string, unknown>;
	const valueAt = (reference: Reference, row: number, col: number): BaseValueObject | null => {
		const cell = sheet.shown(row, col);
		return cell === null || ((cell.v === null || cell.v === undefined) && !cell.p) ? null : (reference.getCellValueObject(cell) as BaseValueObject);
	};
	Object.assign(methods, {
		// Tells the error when it is read, so that IFERROR() sees it.
		isExceedRange: () => false,
		getCellData(this: Reference, row: number, col: number) {
			sheet.read({ row, col, toRow: row, toCol: col });
			return sheet.shown(row, col) ?? undefined;
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
				for (let col = range.col; col <= range.toCol; col++) if (visit(valueAt(this, row, col), row, col) === false) return;
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
				for (let col = range.col; col <= range.toCol; col++) line.push(valueAt(this, row, col) ?? NullValueObject.create());
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

/** The cells as Univer's functions look for formulas in them. */
const cellData = {
	getValue: (row: number, col: number) => (sheet.formulaText(row, col) === null ? null : { f: sheet.formulaText(row, col) }),
	getMatrix: () => new Proxy({}, { get: (_, row) => new Proxy({}, { get: (__, col) => cellData.getValue(Number(row), Number(col)) }) }),
};

class Config extends FormulaCurrentConfigService {
	override getUnitData(): never {
		return { [unitId]: { [sheetId]: { cellData, rowCount: maxRows, columnCount: maxCols, rowData: sheet.hiddenRows(), columnData: {} } } } as never;
	}
	override getUnitStylesData(): never {
		return { [unitId]: { getStyleByCell: (cell: ICellData) => cell.s ?? null } } as never;
	}
	override getSheetNameMap = (): never => ({ [unitId]: { Sheet: sheetId } }) as never;
	override getSheetsInfo = (): never => ({ sheetOrder: [sheetId], sheetNameMap: { [sheetId]: 'Sheet' } }) as never;
	override getExecuteUnitId = (): string => unitId;
	override getExecuteSubUnitId = (): string => sheetId;
	override getSheetRowColumnCount = () => ({ rowCount: maxRows, columnCount: maxCols });
	override getFilteredOutRows = (): number[] => [];
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
		univer.createUnit(UniverInstanceType.UNIVER_SHEET, { id: unitId, sheetOrder: [sheetId], sheets: { [sheetId]: { id: sheetId, name: 'Sheet' } } });
		this.lexer = injector.get(Lexer);
		this.builder = injector.get(AstTreeBuilder);
		this.interpreter = injector.get(Interpreter);
		this.runtime = injector.get(IFormulaRuntimeService) as never;
		registerFunctions(injector.get(IFunctionService));
		replaceReading();
		keepTotals();
		Math.random = random;
	}

	/** A cell shows something else. */
	changed(row: number, col: number): void {
		forgetArraysOf(row, col);
		const caches = CELL_INVERTED_INDEX_CACHE as unknown as Record<'_cache' | '_continueBuildingCache', Map<string, Map<string, Map<number, unknown>>>>;
		for (const cache of [caches._cache, caches._continueBuildingCache]) cache.get(unitId)?.get(sheetId)?.delete(col);
	}

	/** Many cells show something else. */
	changedAll(): void {
		forgetArrays();
		CELL_INVERTED_INDEX_CACHE.clear();
	}

	async evaluate(text: string, row: number, col: number, of: Sheet): Promise<Computed> {
		if (sheet !== of) this.changedAll();
		sheet = of;
		let tree: Tree | null | string = null;
		try {
			tree = this.treeOf(text);
			if (typeof tree === 'string') return { value: errorCell(tree), array: null, volatile: false };
			if (!tree) return { value: errorCell('#ERROR!'), array: null, volatile: false };
			this.runtime.setCurrent(row, col, maxRows, maxCols, sheetId, unitId);
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
		const lexed = this.lexer.treeBuilder(text);
		if (typeof lexed === 'string') return lexed;
		const tree = this.builder.parse(lexed as never) as unknown as Tree | null;
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

export function errorCell(type: string): ICellData {
	return { v: type, t: 1 };
}

function isVolatile(tree: Tree): boolean {
	return tree.isForcedCalculateFunction() || tree.getChildren().some(isVolatile);
}
