// arrays.ts - the arrays of the ranges that formulas have read last, for others that read the same range or a longer one: many
// formulas compute a total of one range, or running totals. SORT() changes the list of rows that it gets, so it gets a copy.
import { ArrayValueObject, type BaseValueObject, NullValueObject, NumberValueObject } from '@univerjs/engine-formula';
import type { Area } from './cells';

/** The name of the workbook, for Univer. */
export const unitId = 'book';

const tabs = new Map<string, number>();
const ids: string[] = [];

/** The name of a tab, for Univer. */
export function idOfTab(tab: number): string {
	if (ids[tab] === undefined) tabs.set((ids[tab] = `tab${tab}`), tab);
	return ids[tab];
}

export const tabOfId = (id: string): number => tabs.get(id) ?? 0;

const mostArrays = 64;

type Totals = Map<string, BaseValueObject>;

interface Known {
	range: Area;
	array: ArrayValueObject;
	values: BaseValueObject[][];
	totals: Totals;
	/** The totals of its first rows. */
	begun: { rows: number; totals: Totals } | null;
}

type Total = (this: ArrayValueObject) => BaseValueObject;

const known = new Map<string, Known>();
const byArray = new WeakMap<ArrayValueObject, Known>();

export const makeArray = (values: BaseValueObject[][], row: number, column: number, tab = 0): ArrayValueObject =>
	ArrayValueObject.create({
		...{ calculateValueList: values, rowCount: values.length, columnCount: values[0]?.length ?? 0 },
		...{ unitId, sheetId: idOfTab(tab), row, column },
	});

/** The array of a range. `read` gets the values of a row. */
export function arrayOfRange(range: Area, read: (row: number) => BaseValueObject[]): ArrayValueObject {
	const key = `${range.tab},${range.row},${range.col},${range.toRow},${range.toCol}`;
	const same = known.get(key);
	if (same) return same.array;
	let shorter: Known | undefined;
	for (const other of known.values()) {
		const { tab, row, col, toRow, toCol } = other.range;
		if (
			tab === range.tab &&
			row === range.row &&
			col === range.col &&
			toCol === range.toCol &&
			toRow < range.toRow &&
			(!shorter || toRow > shorter.range.toRow)
		)
			shorter = other;
	}
	const values = shorter ? shorter.values.slice() : [];
	for (let row = range.row + values.length; row <= range.toRow; row++) values.push(read(row));
	const array = makeArray(values, range.row, range.col, range.tab);
	const one: Known = { range, array, values, totals: new Map(), begun: shorter ? { rows: shorter.values.length, totals: shorter.totals } : null };
	if (known.size >= mostArrays) known.delete(known.keys().next().value!);
	known.set(key, one);
	byArray.set(array, one);
	return array;
}

/** A function that changes the list of rows must not change what others read. */
export function protectArrays(): void {
	const methods = ArrayValueObject.prototype as unknown as { getArrayValue(this: ArrayValueObject): unknown[] };
	const get = methods.getArrayValue;
	methods.getArrayValue = function () {
		const rows = get.call(this);
		return byArray.has(this) ? rows.slice() : rows;
	};
}

/** A cell shows something else. */
export function forgetArraysOf(row: number, col: number, tab: number): void {
	for (const [key, { range }] of known)
		if (tab === range.tab && row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol) known.delete(key);
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
