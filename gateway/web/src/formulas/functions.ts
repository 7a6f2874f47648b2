// functions.ts - the functions of formulas: Univer's, with what the page changes in them. The one place where functions are
// registered for computing; the worker calls it. (What the editor says about functions is in view/texts.ts.)
import type { ICellData, IRange } from '@univerjs/core';
import {
	ALL_IMPLEMENTED_FUNCTIONS,
	BaseFunction,
	type BaseValueObject,
	ErrorValueObject,
	FUNCTION_NAMES_DATE,
	type IFunctionService,
	NullValueObject,
	NumberValueObject,
} from '@univerjs/engine-formula';
import { serialIn } from '../sheet/timezone';
import { correctFunctions } from './corrections';
import { mostCells } from './limits';
import { readPlaces } from './places';

type Calculate = (...variants: BaseValueObject[]) => unknown;

/** How many cells functions make, about, of those that can make more than their arguments have. */
const sized: Record<string, (...variants: (BaseValueObject | undefined)[]) => number> = {
	SEQUENCE: (rows, columns) => numberOf(rows) * numberOf(columns),
	RANDARRAY: (rows, columns) => numberOf(rows) * numberOf(columns),
	MAKEARRAY: (rows, columns) => numberOf(rows) * numberOf(columns),
	MUNIT: (size) => numberOf(size) ** 2,
	EXPAND: (array, rows, columns) => Math.max(numberOf(rows), rowsOf(array)) * Math.max(numberOf(columns), columnsOf(array)),
	WRAPROWS: (array, count) => rowsOf(array) * columnsOf(array) + numberOf(count),
	WRAPCOLS: (array, count) => rowsOf(array) * columnsOf(array) + numberOf(count),
	HSTACK: (...arrays) => Math.max(...arrays.map(rowsOf)) * sum(arrays.map(columnsOf)),
	VSTACK: (...arrays) => sum(arrays.map(rowsOf)) * Math.max(...arrays.map(columnsOf)),
	CHOOSEROWS: (array, ...rows) => columnsOf(array) * sum(rows.map((indexes) => rowsOf(indexes) * columnsOf(indexes))),
	CHOOSECOLS: (array, ...columns) => rowsOf(array) * sum(columns.map((indexes) => rowsOf(indexes) * columnsOf(indexes))),
	MMULT: (left, right) => rowsOf(left) * columnsOf(right),
};

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);
const rowsOf = (variant: BaseValueObject | undefined): number => (variant?.isArray() ? (variant as unknown as CountedArray).getRowCount() : 1);
const columnsOf = (variant: BaseValueObject | undefined): number => (variant?.isArray() ? (variant as unknown as CountedArray).getColumnCount() : 1);

/** The size that an element asks for, which may be a text such as 2024-01-31. */
function sizeOf(element: BaseValueObject | null | undefined): number {
	const number = element?.isString() ? element.convertToNumberObjectValue() : element;
	return number && !number.isError() ? Math.abs(Number(number.getValue())) || 1 : 1;
}

/** The largest size that an argument asks for. Of an array, some functions take the first element, and others make an array for each. */
function numberOf(variant: BaseValueObject | undefined): number {
	if (!variant?.isArray()) return sizeOf(variant);
	const rows = (variant as unknown as { getArrayValue(): (BaseValueObject | null)[][] }).getArrayValue();
	return rows.reduce((most, row) => (row ?? []).reduce((largest, element) => Math.max(largest, sizeOf(element)), most), 1);
}

/** Refuses sizes before the function makes its array. */
function limitSize(executor: BaseFunction, cellsOf: (...variants: BaseValueObject[]) => number): void {
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((...variants: BaseValueObject[]) =>
		cellsOf(...variants) > mostCells ? ErrorValueObject.create('#NUM!' as never) : calculate(...variants)) as never;
}

/** Number of the cell that is being computed, and of its random numbers so far: see random(). */
let [seed, drawn] = [0, 0];

export function seedRandom(row: number, col: number, salt: number): void {
	seed = (Math.imul(row + 1, 0x9e3779b1) ^ Math.imul(col + 1, 0x85ebca6b) ^ Math.imul(salt + 1, 0xc2b2ae35)) >>> 0;
	drawn = 0;
}

/** The same numbers in every page that shows the same state of the sheet. mulberry32 */
export function random(): number {
	let t = (seed + Math.imul(++drawn, 0x6d2b79f5)) | 0;
	t = Math.imul(t ^ (t >>> 15), 1 | t);
	t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
	return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

let zone = 'UTC';

/** NOW() and TODAY() have the time of this zone. Univer computes NOW() in that of the browser, and TODAY() in UTC. */
export function setZone(name: string): void {
	zone = name;
}

class Now extends BaseFunction {
	override minParams = 0;
	override maxParams = 0;
	override calculate() {
		return NumberValueObject.create(serialIn(zone), 'yyyy-mm-dd hh:mm');
	}
}

class Today extends BaseFunction {
	override minParams = 0;
	override maxParams = 0;
	override calculate() {
		return NumberValueObject.create(Math.floor(serialIn(zone)), 'yyyy-mm-dd');
	}
}

/** The value in the row or the column of the formula, of a range; the first one, of several. Workbooks have it as "@". */
class Single extends BaseFunction {
	override minParams = 1;
	override maxParams = 1;
	override needsReferenceObject = true;
	override calculate(variant: BaseValueObject) {
		if (variant.isReferenceObject()) return this.cellOf(variant as unknown as ReadReference);
		if (!variant.isArray()) return variant;
		const array = variant as unknown as { get(row: number, col: number): BaseValueObject | null };
		return array.get(0, 0) ?? NullValueObject.create();
	}

	private cellOf(reference: ReadReference): BaseValueObject {
		const { startRow, endRow, startColumn, endColumn } = reference.getRangePosition();
		const row = startRow === endRow ? startRow : this.row;
		const col = startColumn === endColumn ? startColumn : this.column;
		const isOne = startRow === endRow || startColumn === endColumn;
		if (!isOne || row < startRow || row > endRow || col < startColumn || col > endColumn) return ErrorValueObject.create('#VALUE!' as never);
		if (reference._checkIfWorksheetMiss()) return ErrorValueObject.create('#REF!' as never);
		const cell = reference.getCellData(row, col);
		return cell && (cell.p || (cell.v !== undefined && cell.v !== null)) ? reference.getCellValueObject(cell) : NullValueObject.create();
	}
}

interface ReadReference {
	getRangePosition(): IRange;
	_checkIfWorksheetMiss(): boolean;
	getCellData(row: number, col: number): ICellData | undefined;
	getCellValueObject(cell: ICellData): BaseValueObject;
}

export function registerFunctions(functions: IFunctionService): void {
	functions.registerExecutors(...ALL_IMPLEMENTED_FUNCTIONS.map(([Executor, name]) => new Executor(name as string)));
	functions.registerExecutors(new Single('SINGLE'));
	functions.registerExecutors(new Now(FUNCTION_NAMES_DATE.NOW), new Today(FUNCTION_NAMES_DATE.TODAY));
	for (const [name, cellsOf] of Object.entries(sized)) {
		const executor = functions.getExecutor(name);
		if (executor) limitSize(executor, cellsOf);
	}
	correctFunctions(functions);
	readPlaces(functions);
}

interface CountedArray {
	getRowCount(): number;
	getColumnCount(): number;
}
