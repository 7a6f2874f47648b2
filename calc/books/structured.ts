// structured.ts - structured references: the cells of a table that formulas of workbooks name by its columns, as Table1[[#All],[Amount]].
import { columnName } from '../../gateway/web/src/content';
import type { Range } from '../../gateway/web/src/v2/messages';

/** Where a table has what. */
export interface TableShape {
	range: Range;
	hasHeader: boolean;
	hasTotals: boolean;
	/** Places of the columns from the left, by columnKey() of their names. */
	columns: ReadonlyMap<string, number>;
}

export interface NamedTable extends TableShape {
	name: string;
	/** Its tab, as the place among all. */
	at: number;
}

/** Names of columns that are the same to programs have the same key. */
export const columnKey = (name: string): string => name.replace(/\r\n?/g, '\n').toLowerCase();

/** Places of columns by their keys. Of two that are called the same, the first one counts. */
export const placesOf = (names: string[]): Map<string, number> => new Map(names.map((name, i) => [columnKey(name), i] as const).reverse());

/** From "[" to its "]". An apostrophe escapes the next character there. */
export const bracketsPattern = `\\[(?:[^\\[\\]']|'[^]|\\[(?:[^\\[\\]']|'[^])*\\])*\\]`;
const part = /\s*([,:]?)\s*\[((?:[^[\]']|'[^])*)\]/y;

interface Specifier {
	/** As "#all". */
	items: string[];
	/** One column, or the first and the last one. */
	columns: string[];
}

const columnOf = (text: string): string => columnKey(text.replace(/'([^])/g, '$1'));

/** Several parts in brackets, as [#All],[Amount]:[Tax]. */
function readParts(text: string, { items, columns }: Specifier): boolean {
	part.lastIndex = 0;
	let end = 0;
	let isColumn = false;
	for (let match = part.exec(text); match; match = part.exec(text)) {
		const [, sign = '', name = ''] = match;
		const wasColumn = isColumn;
		isColumn = !name.startsWith('#');
		if ((sign === '') !== (end === 0) || (sign === ':' && !(wasColumn && isColumn))) return false;
		if (isColumn && columns.length !== (sign === ':' ? 1 : 0)) return false;
		if (isColumn) columns.push(columnOf(name));
		else items.push(name.trim().toLowerCase());
		end = part.lastIndex;
	}
	return text.slice(end).trim() === '';
}

function readSpecifier(brackets: string): Specifier | undefined {
	const inside = brackets.slice(1, -1);
	const isRow = inside.trimStart().startsWith('@');
	const text = isRow ? inside.trimStart().slice(1) : inside;
	const specifier: Specifier = { items: isRow ? ['#this row'] : [], columns: [] };
	if (text.trimStart().startsWith('[')) return readParts(text, specifier) ? specifier : undefined;
	if (text.trimStart().startsWith('#')) specifier.items.push(text.trim().toLowerCase());
	else if (text.trim() !== '') specifier.columns.push(columnOf(text));
	return specifier;
}

/** The first and the last row; undefined: the table has not all of them. */
function rowsOf({ range, hasHeader, hasTotals }: TableShape, items: string[], row: number | undefined): [number, number] | undefined {
	const [first, last] = [range.row + (hasHeader ? 1 : 0), range.toRow - (hasTotals ? 1 : 0)];
	if (items[0] === '#this row') return items.length === 1 && row !== undefined && row >= first && row <= last ? [row, row] : undefined;
	switch ([...new Set(items)].sort().join()) {
		case '':
		case '#data':
			return [first, last];
		case '#all':
			return [range.row, range.toRow];
		case '#headers':
			return hasHeader ? [range.row, range.row] : undefined;
		case '#totals':
			return hasTotals ? [range.toRow, range.toRow] : undefined;
		case '#data,#headers':
			return [range.row, last];
		case '#data,#totals':
			return [first, range.toRow];
		default:
			return undefined;
	}
}

/** The reference to cells that brackets name, as $C$2:$C$10, or $C5 of the formula's row; undefined: there are none. */
export function cellsOf(table: TableShape, brackets: string, row: number | undefined): string | undefined {
	const specifier = readSpecifier(brackets);
	const rows = specifier && rowsOf(table, specifier.items, row);
	if (!rows) return undefined;
	const { range } = table;
	const named = specifier.columns.map((name) => table.columns.get(name));
	if (named.includes(undefined)) return undefined;
	const places = named.length === 0 ? [0, range.toCol - range.col] : (named as number[]);
	const sign = specifier.items[0] === '#this row' ? '' : '$';
	const corner = (col: number, at: number): string => `$${columnName(range.col + col)}${sign}${at + 1}`;
	const [from, to] = [corner(Math.min(...places), rows[0]), corner(Math.max(...places), rows[1])];
	return from === to ? from : `${from}:${to}`;
}
