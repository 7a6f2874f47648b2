// numbers.ts - numbers and texts in formulas and in their arrays, and numbers in the criteria of COUNTIF() and others. Univer takes
// numbers that JavaScript writes otherwise, such as 1.50, .5, 007 and 1e5, for texts; and texts that look like a number with a format,
// such as "1E5", "1/2" and "50%", for numbers if they are arguments of functions.
import {
	ArrayValueObject,
	type BaseValueObject,
	FUNCTION_NAMES_INFORMATION,
	FUNCTION_NAMES_LOGICAL,
	FUNCTION_NAMES_LOOKUP,
	FUNCTION_NAMES_TEXT,
	type IFunctionService,
	NumberValueObject,
	ValueObjectFactory,
} from '@univerjs/engine-formula';

const decimal = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

export function readAllNumbers(): void {
	const create = ValueObjectFactory.create.bind(ValueObjectFactory);
	ValueObjectFactory.create = (raw, ...rest) => {
		const number = typeof raw === 'string' && decimal.test(raw.trim()) ? Number(raw) : NaN;
		return Number.isFinite(number) ? NumberValueObject.create(number) : create(raw, ...rest);
	};
}

/** An element of an array, and what ends it. Univer has made one quote of each two, so a text ends at a quote before a separator. */
const element = /(\s*"(?:[^"]|"(?!\s*(?:[,;]|$)))*"\s*|[^,;]*)([,;]|$)/y;

/** The elements of 1,"a,b";2,3 by rows. Univer divides it at the separators in texts, too. */
function elementsOf(array: string): string[][] {
	const rows: string[][] = [[]];
	element.lastIndex = 0;
	for (let end = ','; end !== '';) {
		const found: RegExpExecArray = element.exec(array)!;
		rows.at(-1)!.push(found[1]!.trim());
		end = found[2]!;
		if (end === ';') rows.push([]);
	}
	return rows;
}

const withLineBreaks = /^\s*\{.*[\r\n].*\}\s*$/s;

/** {1,"a,b"} in a formula. Univer removes the line breaks of its texts. */
export function readAllArrays(): void {
	const create = ValueObjectFactory.create.bind(ValueObjectFactory);
	ValueObjectFactory.create = (raw, ...rest) =>
		typeof raw === 'string' && withLineBreaks.test(raw) ? ArrayValueObject.create(raw.trim()) : create(raw, ...rest);
	const methods = ArrayValueObject.prototype as unknown as { _formatValue(this: ArrayValueObject, raw: unknown): (BaseValueObject | null)[][] };
	const format = methods._formatValue;
	methods._formatValue = function (raw) {
		if (typeof raw !== 'string') return format.call(this, raw);
		const rows = elementsOf(raw.slice(1, -1)).map((row) => row.map((text) => ValueObjectFactory.create(text)));
		this.setRowCount(rows.length);
		this.setColumnCount(Math.max(...rows.map(({ length }) => length)));
		return rows;
	};
}

/** Functions of texts that read a number or a date. */
const ofNumbers = ['TEXT', 'VALUE', 'NUMBERVALUE', 'DOLLAR', 'FIXED', 'BAHTTEXT', 'CHAR', 'UNICHAR', 'VALUETOTEXT'];

/** Functions that take any text get quoted texts as they are. Those of dates and numbers read them. */
export function keepTexts(functions: IFunctionService): void {
	const names = [FUNCTION_NAMES_INFORMATION, FUNCTION_NAMES_LOGICAL, FUNCTION_NAMES_LOOKUP, FUNCTION_NAMES_TEXT].flatMap(
		(group) => Object.values(group as object) as string[],
	);
	for (const name of names) {
		const executor = ofNumbers.includes(name) ? null : functions.getExecutor(name);
		if (executor) executor.isArgumentsIgnoreNumberPattern = () => true;
	}
}
