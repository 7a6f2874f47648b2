// r1c1.ts - formulas as Google Sheets copies them, with references relative to their cell (=R[0]C[-1]*2), as formulas of a cell. Pure.
import { columnName } from '../content';
import { maxCols, maxRows } from '../v2/lines';

const line = '(?:\\[-?[0-9]+\\]|[1-9][0-9]*)';
const end = `(?:R${line}C${line}|R${line}|C${line})`;
/** A text, the name of a tab, a reference or a range of it, or a name. */
const part = new RegExp(`"(?:[^"]|"")*"|'(?:[^']|'')*'|(?<![\\w.\\]])(${end})(?::(${end}))?(?![\\w.(\\[])|[\\p{L}_][\\p{L}\\p{N}_.]*`, 'gu');

/** A row or a column, as it is named from a cell; null: outside of the sheet. */
function named(text: string, from: number, most: number, name: (at: number) => string): string | null {
	const relative = text.startsWith('[');
	const at = relative ? from + Number(text.slice(1, -1)) : Number(text) - 1;
	return at < 0 || at >= most ? null : (relative ? '' : '$') + name(at);
}

/** One end of a range: its column, its row, or both. */
function endOf(text: string, row: number, col: number): { col?: string | null; row?: string | null } {
	const [, ofRow, ofCol] = new RegExp(`^(?:R(${line}))?(?:C(${line}))?$`).exec(text)!;
	return { ...(ofCol && { col: named(ofCol, col, maxCols, columnName) }), ...(ofRow && { row: named(ofRow, row, maxRows, (at) => String(at + 1)) }) };
}

/** The formula in the cell; null if it refers to another tab, to what is outside of the sheet, or to a range without an end. */
export function formulaAt(formula: string, row: number, col: number): string | null {
	let understood = true;
	const text = formula.replace(part, (whole, first?: string, last?: string) => {
		if (first === undefined) return whole;
		const ends = [endOf(first, row, col), ...(last === undefined ? [] : [endOf(last, row, col)])];
		const kind = (at: (typeof ends)[number]) => Object.keys(at).join();
		if (ends.some((at) => at.col === null || at.row === null) || ends.some((at) => kind(at) !== kind(ends[0]!))) understood = false;
		const names = ends.map((at) => `${at.col ?? ''}${at.row ?? ''}`);
		// Whole rows and columns are ranges.
		return (names.length === 1 && kind(ends[0]!) !== 'col,row' ? [names[0], names[0]] : names).join(':');
	});
	return understood && text.startsWith('=') && !text.replace(/"(?:[^"]|"")*"/g, '').includes('!') ? text : null;
}
