// corrections.ts - functions of Univer whose results differ from those that Excel and LibreOffice give alike.
import {
	BaseFunction,
	type BaseValueObject,
	ErrorValueObject,
	type IFunctionService,
	NullValueObject,
	NumberValueObject,
	StringValueObject,
} from '@univerjs/engine-formula';
import { makeArray } from './arrays';
import { mostCells } from './limits';

type Calculate = (...variants: BaseValueObject[]) => BaseValueObject;

interface Elements {
	get(row: number, col: number): BaseValueObject | null;
	getRowCount(): number;
	getColumnCount(): number;
	map(of: (value: BaseValueObject | null, row: number, col: number) => BaseValueObject | null): BaseValueObject;
	mapValue(of: (value: BaseValueObject) => BaseValueObject): BaseValueObject;
}

const numberObject = (number: number): BaseValueObject =>
	Number.isFinite(number) ? NumberValueObject.create(number) : ErrorValueObject.create('#NUM!' as never);

const isOne = (array: BaseValueObject): boolean => (array as unknown as Elements).getRowCount() === 1 && (array as unknown as Elements).getColumnCount() === 1;

/** An argument of one row or column is repeated. */
function elementOf(argument: BaseValueObject, row: number, col: number): BaseValueObject {
	if (!argument.isArray()) return argument;
	const array = argument as unknown as Elements;
	return array.get(Math.min(row, array.getRowCount() - 1), Math.min(col, array.getColumnCount() - 1)) as BaseValueObject;
}

/** As elementOf(); #N/A where an array of several lines has no more of them. */
function elementAt(argument: BaseValueObject, row: number, col: number): BaseValueObject {
	if (!argument.isArray()) return argument;
	const array = argument as unknown as Elements;
	const isIn = (line: number, lines: number): boolean => lines === 1 || line < lines;
	const isThere = isIn(row, array.getRowCount()) && isIn(col, array.getColumnCount());
	return isThere ? (elementOf(argument, row, col) ?? NullValueObject.create()) : ErrorValueObject.create('#N/A' as never);
}

/** Corrects each result, which may be in an array, by the elements of the arguments that it was computed from. */
function correct(
	functions: IFunctionService,
	name: string,
	of: (value: BaseValueObject, elements: BaseValueObject[], calculate: Calculate) => BaseValueObject,
): void {
	const executor = functions.getExecutor(name) as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((...variants: BaseValueObject[]) => {
		const result = calculate(...variants);
		if (!result.isArray())
			return of(
				result,
				variants.map((variant) => elementOf(variant, 0, 0)),
				calculate,
			);
		return (result as unknown as Elements).map(
			(value, row, col) =>
				value &&
				of(
					value,
					variants.map((variant) => elementOf(variant, row, col)),
					calculate,
				),
		);
	}) as never;
}

/** The number of an element; NaN: it has none. */
function numberOf(element: BaseValueObject | undefined): number {
	const number = element?.isString() ? element.convertToNumberObjectValue() : element;
	return number && !number.isError() ? Number(number.getValue()) : NaN;
}

/** Lanczos, g = 7, n = 9. Univer's has a wrong coefficient. */
const lanczos = [
	...[0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905],
	...[-0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7],
];

function gamma(x: number): number {
	if (x < 0.5) return Math.PI / (Math.sin(Math.PI * x) * gamma(1 - x));
	if (Number.isInteger(x) && x <= 20) return Array.from({ length: x - 1 }, (_, i) => i + 1).reduce((product, n) => product * n, 1);
	const sum = lanczos.reduce((total, part, i) => total + (i === 0 ? part : part / (x - 1 + i)));
	const t = x + 6.5;
	// In two steps: the power alone would be too large.
	const power = t ** ((x - 0.5) / 2);
	return Math.sqrt(2 * Math.PI) * power * Math.exp(-t) * power * sum;
}

/** Where in a text a pattern with ? and * begins, from `start` on; -1: nowhere. ~ makes the next character plain. */
function findPattern(text: string, pattern: string, start: number): number {
	const segments: (string | null)[][] = [[]];
	for (let i = 0; i < pattern.length; i++) {
		const one = pattern[i]!;
		if (one === '*') segments.push([]);
		else if (one === '~' && i + 1 < pattern.length) segments.at(-1)!.push(pattern[++i]!);
		else segments.at(-1)!.push(one === '?' ? null : one);
	}
	const find = (segment: (string | null)[], from: number): number => {
		for (let at = from; at + segment.length <= text.length; at++) if (segment.every((one, i) => one === null || one === text[at + i])) return at;
		return -1;
	};
	// The first place of each segment leaves the most text to the next ones.
	let first = -1;
	let from = start;
	for (const segment of segments) {
		const at = find(segment, from);
		if (at < 0) return -1;
		if (first < 0) first = at;
		from = at + segment.length;
	}
	return first;
}

/** Capital letters, in the same places: that of ß would be two. */
const capitals = (text: string): string =>
	text.replace(/\p{Ll}/gu, (letter) => (letter.toUpperCase().length === letter.length ? letter.toUpperCase() : letter));

/** SEARCH() of Univer knows no wildcards, and counts the two letters of a capital ß. */
function searchPattern(value: BaseValueObject, [find, within, start]: BaseValueObject[]): BaseValueObject {
	if (!find?.isString() || !within || within.isError() || within.isNull()) return value;
	const [text, from] = [capitals(String(within.getValue())), start ? Math.floor(numberOf(start)) : 1];
	if (!(from >= 1 && from <= text.length + 1)) return value;
	const at = findPattern(text, capitals(String(find.getValue())), from - 1);
	return at < 0 ? ErrorValueObject.create('#VALUE!' as never) : NumberValueObject.create(at + 1);
}

/** As a text, a number has 15 digits. */
function shortText(element: BaseValueObject): BaseValueObject {
	if (!element?.isNumber()) return element;
	const number = Number(element.getValue());
	return Number.isSafeInteger(number) ? element : StringValueObject.create(String(Number(number.toPrecision(15))));
}

function joinShortTexts(functions: IFunctionService, name: string): void {
	const executor = functions.getExecutor(name) as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((...variants: BaseValueObject[]) => {
		// CONCAT() of Univer takes an error for nothing, and writes TRUE in small letters.
		const error = name === 'CONCAT' && variants.find((variant) => variant.isError());
		if (error) return error;
		const texts = variants.map((variant) => {
			if (variant.isArray()) return (variant as unknown as Elements).mapValue(shortText);
			return name === 'CONCAT' && variant.isBoolean() ? StringValueObject.create(variant.getValue() ? 'TRUE' : 'FALSE') : shortText(variant);
		});
		return calculate(...texts);
	}) as never;
}

/** Words begin with a capital; all that are no letters are between words. Univer knows the letters A to Z alone. */
const capitalised = (text: string): string => text.toLowerCase().replace(/\p{L}+/gu, (word) => word.replace(/^./u, (first) => first.toUpperCase()));

/** The week of a day, by its serial number: that of its Thursday, in the Thursday's year. Univer's is one too small in some years. */
function isoWeek(serial: number): number {
	const day = Math.floor(serial);
	const thursday = day - ((day + 5) % 7) + 3;
	const year = new Date(Date.UTC(1899, 11, 30 + thursday)).getUTCFullYear();
	const newYear = Date.UTC(year, 0, 1) / 86_400_000 + 25569;
	return Math.floor((thursday - newYear) / 7) + 1;
}

/** The rate of interest where Univer finds none: the smallest one above 0 of a hundred percent or less, else one below 0. */
function findRate([periods, payment, present, future, type]: number[]): number | undefined {
	const [n = NaN, pmt = NaN, pv = NaN, fv = 0, due = 0] = [periods, payment, present, future, type];
	const worth = (rate: number): number => {
		const growth = (1 + rate) ** n;
		return pv * growth + (pmt * (1 + rate * due) * (growth - 1)) / rate + fv;
	};
	const between = (from: number, to: number): number | undefined => {
		if (!(worth(from) * worth(to) <= 0)) return undefined;
		let [low, high] = [from, to];
		for (let i = 0; i < 200; i++) {
			const middle = (low + high) / 2;
			if (worth(low) * worth(middle) <= 0) high = middle;
			else low = middle;
		}
		return low;
	};
	for (let i = 0; i < 100; i++) {
		const rate = between(1e-9 + i / 100, 1e-9 + (i + 1) / 100);
		if (rate !== undefined) return rate;
	}
	return between(-0.999999, -1e-9);
}

/** CHOOSE({1,2},A1:A3,B1:B3) has as many rows as the ranges. */
function chooseFromArrays(functions: IFunctionService): void {
	const executor = functions.getExecutor('CHOOSE') as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	const read = (variant: BaseValueObject): BaseValueObject =>
		variant.isReferenceObject() ? (variant as unknown as { toArrayValueObject(): BaseValueObject }).toArrayValueObject() : variant;
	executor.calculate = ((index: BaseValueObject, ...variants: BaseValueObject[]) => {
		const indexes = read(index);
		return indexes.isArray() && !isOne(indexes) ? calculate(indexes, ...variants.map(read)) : calculate(index, ...variants);
	}) as never;
}

const linesOf = (variants: BaseValueObject[], count: (array: Elements) => number): number =>
	Math.max(...variants.map((variant) => (variant.isArray() ? count(variant as unknown as Elements) : 1)));

/** An array of what is computed from the elements of the arguments. */
function computeEach(variants: BaseValueObject[], of: Calculate): BaseValueObject {
	const [rows, columns] = [linesOf(variants, (array) => array.getRowCount()), linesOf(variants, (array) => array.getColumnCount())];
	if (rows * columns > mostCells) return ErrorValueObject.create('#NUM!' as never);
	const valueAt = (row: number, col: number) => elementOf(of(...variants.map((variant) => elementAt(variant, row, col))), 0, 0);
	const values = Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (__, col) => valueAt(row, col)));
	return makeArray(values, -1, -1);
}

const isSeveral = (variant: BaseValueObject | undefined): boolean => variant?.isArray() === true && !isOne(variant);

/** VLOOKUP({1;2},A1:C9,{2,3}) has an element for each value and each index, with its own error. */
function lookUpEach(functions: IFunctionService, name: string): void {
	const executor = functions.getExecutor(name) as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((value: BaseValueObject, range: BaseValueObject, index: BaseValueObject, ...rest: BaseValueObject[]) =>
		isSeveral(index)
			? computeEach([value, index, ...rest], (one, at, ...how) => (at.isError() ? at : calculate(one, range, at, ...how)))
			: calculate(value, range, index, ...rest)) as never;
}

/** EOMONTH({45322;45353},{1,2}) has several elements. */
function computeEachMonth(functions: IFunctionService): void {
	const executor = functions.getExecutor('EOMONTH') as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((...variants: BaseValueObject[]) => (variants.some(isSeveral) ? computeEach(variants, calculate) : calculate(...variants))) as never;
}

/** Texts of numbers are numbers, and months are cut toward zero. Univer's EDATE() refuses texts, and both functions take -1.9 for -2. */
function readMonths(functions: IFunctionService, name: string): void {
	const executor = functions.getExecutor(name) as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	const each = (variant: BaseValueObject, of: (element: BaseValueObject) => BaseValueObject): BaseValueObject =>
		variant.isArray() ? (variant as unknown as Elements).mapValue(of) : of(variant);
	const read = (element: BaseValueObject): BaseValueObject => {
		const number = numberOf(element);
		return element.isString() && !Number.isNaN(number) ? NumberValueObject.create(number) : element;
	};
	const cut = (element: BaseValueObject): BaseValueObject => {
		const number = read(element);
		return number.isNumber() ? NumberValueObject.create(Math.trunc(Number(number.getValue()))) : number;
	};
	executor.calculate = ((date: BaseValueObject, months: BaseValueObject) => calculate(each(date, read), each(months, cut))) as never;
}

/** Of two errors, an operator gives the left one, also if it is in an array of one element, as that of MATCH() is. */
function preferLeftErrors(functions: IFunctionService, operator: string): void {
	const executor = functions.getExecutor(operator) as BaseFunction;
	const calculate = executor.calculate.bind(executor) as Calculate;
	executor.calculate = ((left: BaseValueObject, right: BaseValueObject) => {
		const one = left.isArray() && isOne(left) ? elementOf(left, 0, 0) : null;
		return one?.isError() ? one : calculate(left, right);
	}) as never;
}

export function correctFunctions(functions: IFunctionService): void {
	for (const operator of ['PLUS', 'MINUS', 'MULTIPLY', 'DIVIDED', 'POWER', 'COMPARE']) preferLeftErrors(functions, operator);
	// Univer adds to a number what makes it round well, and so subtracts it from the size of a negative one. A number that has no digits
	// to be cut off stays.
	for (const name of ['TRUNC', 'ROUND', 'ROUNDUP', 'ROUNDDOWN'])
		correct(functions, name, (value, [number, digits], calculate) => {
			const [given, places] = [numberOf(number), digits === undefined ? 0 : Math.trunc(numberOf(digits))];
			if (!Number.isFinite(given) || !Number.isFinite(places)) return value;
			if (places >= 0 && !(Math.abs(given) * 10 ** places < Number.MAX_SAFE_INTEGER)) return numberObject(given);
			if (name !== 'TRUNC' || !value.isNumber() || given >= 0) return value;
			return numberObject(-Number(calculate(NumberValueObject.create(-given), NumberValueObject.create(places)).getValue()));
		});
	correct(functions, 'GAMMA', (value, [number]) => (value.isNumber() ? numberObject(gamma(numberOf(number))) : value));
	correct(functions, 'SEARCH', searchPattern);
	correct(functions, 'PROPER', (value, [text]) =>
		value.isError() || !text ? value : StringValueObject.create(text.isNull() ? '' : capitalised(String(text.getValue()))),
	);
	correct(functions, 'ISOWEEKNUM', (value, [date]) =>
		value.isNumber() && date?.isNumber() && numberOf(date) >= 61 ? NumberValueObject.create(isoWeek(numberOf(date))) : value,
	);
	correct(functions, 'RATE', (value, elements) => {
		const rate = value.isError() && elements.length < 6 && !elements.some((element) => element.isError()) ? findRate(elements.map(numberOf)) : undefined;
		return rate === undefined ? value : NumberValueObject.create(rate, '0%');
	});
	// Where nothing fits the conditions, Univer's are an empty text; where no number does, infinite.
	for (const name of ['MAXIFS', 'MINIFS'])
		correct(functions, name, (value) => {
			const isNone = (value.isString() && value.getValue() === '') || (value.isNumber() && !Number.isFinite(Number(value.getValue())));
			return isNone ? NumberValueObject.create(0) : value;
		});
	for (const name of ['EDATE', 'EOMONTH']) readMonths(functions, name);
	computeEachMonth(functions);
	// A month later than 31 January is 29 February. Univer's goes on into March.
	const endOfMonth = functions.getExecutor('EOMONTH')!;
	correct(functions, 'EDATE', (value, dates) => {
		const end = value.isNumber() ? (endOfMonth.calculate(...(dates as never[])) as BaseValueObject) : value;
		const isCut = end.isNumber() && Number(end.getValue()) < Number(value.getValue());
		return isCut ? NumberValueObject.create(Number(end.getValue()), value.getPattern()) : value;
	});
	chooseFromArrays(functions);
	for (const name of ['VLOOKUP', 'HLOOKUP']) lookUpEach(functions, name);
	for (const name of ['CONCAT', 'CONCATENATE', 'TEXTJOIN']) joinShortTexts(functions, name);
}
