// functions.ts - the functions of formulas: Univer's, with what the page changes in them. The one place where functions are
// registered for computing; the worker calls it. (What the editor says about functions is in view/texts.ts.)
import type { IRange } from '@univerjs/core';
import {
	ALL_IMPLEMENTED_FUNCTIONS,
	BaseFunction,
	type BaseValueObject,
	ErrorValueObject,
	FUNCTION_NAMES_DATE,
	type IFunctionService,
	NumberValueObject,
} from '@univerjs/engine-formula';
import { maxCols, maxRows } from '../v2/lines';
import { serialIn } from '../sheet/timezone';
import { mostCells } from './limits';

type Calculate = (...variants: BaseValueObject[]) => unknown;

/** Functions that make arrays of any size, and the arguments that say how many rows and columns. */
const sized: Record<string, [rows: number, columns: number]> = { SEQUENCE: [0, 1], RANDARRAY: [0, 1], MAKEARRAY: [0, 1], EXPAND: [1, 2], MUNIT: [0, 0] };

function numberOf(variant: BaseValueObject | undefined): number {
	const first = variant?.isArray() ? (variant as unknown as { getFirstCell(): BaseValueObject }).getFirstCell() : variant;
	return first && !first.isError() ? Math.abs(Number(first.getValue())) || 1 : 1;
}

/** Refuses sizes before the function makes its array. */
function limitSize(executor: BaseFunction, [rows, columns]: [number, number]): void {
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((...variants: BaseValueObject[]) =>
		numberOf(variants[rows]) * numberOf(variants[columns]) > mostCells ? ErrorValueObject.create('#NUM!' as never) : calculate(...variants)) as never;
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

export function registerFunctions(functions: IFunctionService): void {
	functions.registerExecutors(...ALL_IMPLEMENTED_FUNCTIONS.map(([Executor, name]) => new Executor(name as string)));
	functions.registerExecutors(new Now(FUNCTION_NAMES_DATE.NOW), new Today(FUNCTION_NAMES_DATE.TODAY));
	for (const [name, places] of Object.entries(sized)) {
		const executor = functions.getExecutor(name);
		if (executor) limitSize(executor, places);
	}
	// These count cells of ranges that are not read to their end (calculation.ts).
	const counts: Record<string, (size: Size, read: () => CountedArray) => number> = {
		ROWS: ({ rows }) => rows,
		COLUMNS: ({ cols }) => cols,
		COUNTBLANK({ rows, cols }, read) {
			const array = read();
			return rows * cols - array.getRowCount() * array.getColumnCount() + Number(array.countBlank().getValue());
		},
	};
	for (const [name, count] of Object.entries(counts)) {
		const executor = functions.getExecutor(name);
		if (!executor) continue;
		const calculate = executor.calculate.bind(executor) as Calculate;
		executor.needsReferenceObject = true;
		executor.calculate = ((variant: BaseValueObject, ...rest: BaseValueObject[]) => {
			if (!variant.isReferenceObject()) return calculate(variant, ...rest);
			const reference = variant as unknown as { getRangePosition(): IRange; toArrayValueObject(): CountedArray };
			const { startRow, endRow, startColumn, endColumn } = reference.getRangePosition();
			const isThere = startRow >= 0 && startColumn >= 0 && endRow < maxRows && endColumn < maxCols;
			if (!isThere) return ErrorValueObject.create('#REF!' as never);
			return NumberValueObject.create(count({ rows: endRow - startRow + 1, cols: endColumn - startColumn + 1 }, () => reference.toArrayValueObject()));
		}) as never;
	}
}

interface Size {
	rows: number;
	cols: number;
}

interface CountedArray {
	getRowCount(): number;
	getColumnCount(): number;
	countBlank(): BaseValueObject;
}
