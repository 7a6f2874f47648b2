// places.ts - functions that need the place of a range, and not what is in it: ROW(), COLUMN(), ROWS(), COLUMNS(). Univer reads the
// range, so that =ROW(A1) in A1 would wait for itself, and ROW(1:10) would end where the contents of the sheet end. COUNTBLANK()
// counts the cells beyond that end, too.
import type { IRange } from '@univerjs/core';
import { ArrayValueObject, type BaseValueObject, ErrorValueObject, type IFunctionService, NumberValueObject } from '@univerjs/engine-formula';
import { maxCols, maxRows } from '../v2/lines';
import { makeArray } from './arrays';
import { mostRead } from './limits';

interface Reference {
	getRangePosition(): IRange;
	toArrayValueObject(): ArrayValueObject;
}

interface Size {
	rows: number;
	cols: number;
}

/** The value from the place; null: it follows from the cells. */
type Of = (range: IRange, size: Size, reference: Reference) => BaseValueObject | null;

const numbers = (count: number, first: number): BaseValueObject[] => Array.from({ length: count }, (_, i) => NumberValueObject.create(first + i + 1));

// Numbers of a range that is too large to be read whole are as many as what is read of it, so that both can be compared.
const ofPlaces: Record<string, Of> = {
	ROW: ({ startRow }, { rows, cols }) =>
		rows * (cols === maxCols ? 1 : cols) > mostRead
			? null
			: makeArray(
					numbers(rows, startRow).map((number) => [number]),
					-1,
					-1,
				),
	COLUMN: ({ startColumn }, { rows, cols }) => (cols * (rows === maxRows ? 1 : rows) > mostRead ? null : makeArray([numbers(cols, startColumn)], -1, -1)),
	ROWS: (_, { rows }) => NumberValueObject.create(rows),
	COLUMNS: (_, { cols }) => NumberValueObject.create(cols),
	COUNTBLANK(_, { rows, cols }, reference) {
		const array = reference.toArrayValueObject();
		return NumberValueObject.create(rows * cols - array.getRowCount() * array.getColumnCount() + Number(array.countBlank().getValue()));
	},
};

export function readPlaces(functions: IFunctionService): void {
	for (const [name, of] of Object.entries(ofPlaces)) {
		const executor = functions.getExecutor(name)!;
		const calculate = executor.calculate.bind(executor) as (...variants: BaseValueObject[]) => BaseValueObject;
		executor.needsReferenceObject = true;
		executor.calculate = ((...variants: BaseValueObject[]) => {
			const [variant, ...rest] = variants;
			if (!variant?.isReferenceObject()) return calculate(...variants);
			const reference = variant as unknown as Reference;
			const range = reference.getRangePosition();
			const { startRow, endRow, startColumn, endColumn } = range;
			const isThere = startRow >= 0 && startColumn >= 0 && endRow < maxRows && endColumn < maxCols;
			if (!isThere) return ErrorValueObject.create('#REF!' as never);
			const size = { rows: endRow - startRow + 1, cols: endColumn - startColumn + 1 };
			return of(range, size, reference) ?? calculate(reference.toArrayValueObject(), ...rest);
		}) as never;
	}
}
