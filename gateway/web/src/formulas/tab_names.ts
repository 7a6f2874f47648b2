// tab_names.ts - names of tabs that Univer does not read right in quotes: it takes what is between brackets for the name of a workbook,
// and ends a name at its first exclamation mark. It gets other names in their place, which have the letters' numbers.
import { type BaseFunction, type BaseValueObject, type IFunctionService, StringValueObject } from '@univerjs/engine-formula';

const quoted = /"(?:[^"]|"")*"|'((?:[^']|'')*)'!/g;
const written = /^~(?:[0-9a-f]{4})+$/;
const isMisread = (name: string): boolean => /[[\]!]/.test(name) || written.test(name);

/** A formula with other names in place of those that would be misread. */
export function writeNames(formula: string): string {
	return formula.replace(quoted, (part: string, name: string | undefined) => {
		if (name === undefined || !isMisread(name.replaceAll("''", "'"))) return part;
		const numbers = [...name.replaceAll("''", "'").normalize('NFC')].flatMap((letter) => letter.split(''));
		return `'~${numbers.map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0')).join('')}'!`;
	});
}

/** The name that stands for this one. */
export function readName(name: string): string {
	return written.test(name) ? name.replace(/~?([0-9a-f]{4})/g, (_, number: string) => String.fromCharCode(parseInt(number, 16))) : name;
}

/** INDIRECT() reads names in texts. */
export function readNamesInTexts(functions: IFunctionService): void {
	const indirect = functions.getExecutor('INDIRECT') as unknown as BaseFunction & { calculate(text: BaseValueObject, ...rest: BaseValueObject[]): unknown };
	const calculate = indirect.calculate.bind(indirect);
	indirect.calculate = ((text: BaseValueObject, ...rest: BaseValueObject[]) =>
		calculate(text.isString() ? StringValueObject.create(writeNames(String(text.getValue()))) : text, ...rest)) as never;
}
