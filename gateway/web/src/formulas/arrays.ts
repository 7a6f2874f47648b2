// arrays.ts - the arrays of the ranges that formulas have read last, for others that read the same range or a longer one: many
// formulas compute a total of one range, or running totals. Univer's functions never change an array that they get.
import { ArrayValueObject, type BaseValueObject, NullValueObject, NumberValueObject } from '@univerjs/engine-formula';
import type { Range } from '../v2/messages';

/** The names of the workbook and its sheet, for Univer. */
export const unitId = 'book';
export const sheetId = 'sheet';

const mostArrays = 64;

type Totals = Map<string, BaseValueObject>;

interface Known {
	range: Range;
	array: ArrayValueObject;
	values: BaseValueObject[][];
	totals: Totals;
	/** The totals of its first rows. */
	begun: { rows: number; totals: Totals } | null;
}

type Total = (this: ArrayValueObject) => BaseValueObject;

const known = new Map<string, Known>();
const byArray = new WeakMap<ArrayValueObject, Known>();

export const makeArray = (values: BaseValueObject[][], row: number, column: number): ArrayValueObject =>
	ArrayValueObject.create({ calculateValueList: values, rowCount: values.length, columnCount: values[0]?.length ?? 0, unitId, sheetId, row, column });

/** The array of a range. `read` gets the values of a row. */
export function arrayOfRange(range: Range, read: (row: number) => BaseValueObject[]): ArrayValueObject {
	const key = `${range.row},${range.col},${range.toRow},${range.toCol}`;
	const same = known.get(key);
	if (same) return same.array;
	let shorter: Known | undefined;
	for (const other of known.values()) {
		const { row, col, toRow, toCol } = other.range;
		if (row === range.row && col === range.col && toCol === range.toCol && toRow < range.toRow && (!shorter || toRow > shorter.range.toRow)) shorter = other;
	}
	const values = shorter ? shorter.values.slice() : [];
	for (let row = range.row + values.length; row <= range.toRow; row++) values.push(read(row));
	const array = makeArray(values, range.row, range.col);
	const one: Known = { range, array, values, totals: new Map(), begun: shorter ? { rows: shorter.values.length, totals: shorter.totals } : null };
	if (known.size >= mostArrays) known.delete(known.keys().next().value!);
	known.set(key, one);
	byArray.set(array, one);
	return array;
}

/** A cell shows something else. */
export function forgetArraysOf(row: number, col: number): void {
	for (const [key, { range }] of known) if (row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol) known.delete(key);
}

export const forgetArrays = (): void => known.clear();

/** A total, from that of the first rows if it is known: numbers are added in the same order. */
function totalOf({ values, begun }: Known, array: ArrayValueObject, name: string, compute: Total): BaseValueObject {
	const before = begun?.totals.get(name);
	if (!before) return compute.call(array);
	const rest = values.slice(begun!.rows);
	if (name.startsWith('count')) return NumberValueObject.create(Number(before.getValue()) + Number(compute.call(makeArray(rest, -1, -1)).getValue()));
	const first = rest[0]!.map((_, i) => (i === 0 ? before : NullValueObject.create()));
	return compute.call(makeArray([first, ...rest], -1, -1));
}

/** Univer computes these anew whenever a formula asks for them. */
export function keepTotals(): void {
	const methods = ArrayValueObject.prototype as unknown as Record<string, Total>;
	for (const name of ['sum', 'max', 'min', 'count', 'countA']) {
		const compute = methods[name]!;
		methods[name] = function () {
			const one = byArray.get(this);
			if (!one) return compute.call(this);
			let total = one.totals.get(name);
			if (!total) one.totals.set(name, (total = totalOf(one, this, name, compute)));
			// The caller may give it another format.
			return total.isNumber() ? NumberValueObject.create(Number(total.getValue()), total.getPattern()) : total;
		};
	}
}
