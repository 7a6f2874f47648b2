// comparisons.ts - Univer keeps an index of the values of a column, in which it looks up comparisons from the second one on. The index
// takes the text "12" for a number, an error for a text, and A for a; knows of no cell that is equal to 0 because it is empty; and says
// nothing of cells that are not equal. So it is used only where it gives what a comparison of each cell gives: a value must not
// depend on what was computed before.
import { ArrayValueObject, type BaseValueObject, BooleanValueObject, CELL_INVERTED_INDEX_CACHE, type IFunctionService } from '@univerjs/engine-formula';
import { idOfTab, unitId } from './arrays';

const index = CELL_INVERTED_INDEX_CACHE as unknown as {
	_cache: Map<string, Map<string, Map<number, unknown>>>;
	_continueBuildingCache: Map<string, Map<string, Map<number, unknown>>>;
	set(unit: string, sheet: string, col: number, value: unknown, ...rest: unknown[]): void;
	canUseCache(unit: string, sheet: string, col: number, from: number, to: number): { rowsInCache: [number, number][]; rowsNotInCache: [number, number][] };
	clear(): void;
};

/** Columns with texts that are something else in the index, by tab. */
const mixed = new Map<string, Set<number>>();
/** The present comparison looks at each cell: it is with neither a number but 0 nor a text that is one in the index. */
let isDirect = false;
const no = BooleanValueObject.create(false);
const comparison = 5; // Univer's number of it

/** A text that the index takes for an empty cell, a number or an error. */
const isTakenOtherwise = (text: string): boolean => text.trim() === '' || text.startsWith('#') || !Number.isNaN(Number(text));

export function compareExactly(functions: IFunctionService): void {
	const set = index.set.bind(index);
	index.set = (unit, sheet, col, value, ...rest) => {
		if (typeof value === 'string' && isTakenOtherwise(value)) {
			const columns = mixed.get(sheet);
			if (columns) columns.add(col);
			else mixed.set(sheet, new Set([col]));
		}
		set(unit, sheet, col, value, ...rest);
	};
	const canUse = index.canUseCache.bind(index);
	index.canUseCache = (unit, sheet, col, from, to) =>
		isDirect || mixed.get(sheet)?.has(col) ? { rowsInCache: [], rowsNotInCache: [[from, to]] } : canUse(unit, sheet, col, from, to);
	const methods = ArrayValueObject.prototype as unknown as {
		_batchOperatorValue(
			this: ArrayValueObject,
			value: BaseValueObject,
			col: number,
			result: (BaseValueObject | null)[][],
			type: number,
			operator: string,
			isCaseSensitive: boolean,
		): void;
	};
	const operate = methods._batchOperatorValue;
	methods._batchOperatorValue = function (value, col, result, type, operator, isCaseSensitive) {
		const isSame = value.isNumber() ? value.getValue() !== 0 : value.isString() && !isTakenOtherwise(String(value.getValue()));
		isDirect = isCaseSensitive || !isSame;
		try {
			operate.call(this, value, col, result, type, operator, isCaseSensitive);
		} finally {
			isDirect = false;
		}
		if (type === comparison) for (let row = 0; row < this.getRowCount(); row++) (result[row] ??= [])[col] ??= no;
	};
	// The function of the operators keeps the last one, which a call of COMPARE() by its name must not see.
	const compare = functions.getExecutor('COMPARE') as unknown as { calculate(...args: unknown[]): unknown; setCompareType(type: string): void };
	const calculate = compare.calculate.bind(compare);
	compare.calculate = (...args) => {
		const value = calculate(...args);
		compare.setCompareType('=');
		return value;
	};
}

/** A cell of the column shows something else. */
export function forgetColumn(col: number, tab: number): void {
	mixed.get(idOfTab(tab))?.delete(col);
	for (const cache of [index._cache, index._continueBuildingCache]) cache.get(unitId)?.get(idOfTab(tab))?.delete(col);
}

export function forgetColumns(): void {
	mixed.clear();
	index.clear();
}
