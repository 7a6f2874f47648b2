// tables.ts - the tables that an import has kept (read/tables.ts), as parts of a workbook. Programs take a table for damage whose columns
// are not called as the cells of its header: these cells count, and a table whose header is none any more is left out.
import { rangeName } from '../../../gateway/web/src/content';
import { mergesOf, overlap } from '../../../gateway/web/src/sheet/arrange';
import { maxCols } from '../../../gateway/web/src/v2/lines';
import type { Range } from '../../../gateway/web/src/v2/messages';
import type { PropertySet } from '../../../gateway/web/src/v2/properties';
import { isCellName, workbookRows } from '../formulas';
import { columnKey, placesOf } from '../structured';
import { isTree, keys, type Tree, treeXml } from '../trees';
import type { Cells } from './cells';
import { filterOf } from './kept';
import { attributes, escapeName, head, namespaces } from './xml';

const mostNameCharacters = 255;
const totalsFunctions = ['sum', 'min', 'max', 'average', 'count', 'countNums', 'stdDev', 'var'];
const conditions = ['filters', 'top10', 'customFilters', 'dynamicFilter', 'iconFilter'];
const flags = ['showFirstColumn', 'showLastColumn', 'showRowStripes', 'showColumnStripes'];

interface Column {
	name: string;
	/** Of the row of totals, also of one that is not shown. */
	totalsRowLabel?: string | undefined;
	totalsRowFunction?: string | undefined;
}

export interface WrittenTable {
	/** As it was called: others may be called the same. */
	name: string;
	range: Range;
	hasHeader: boolean;
	hasTotals: boolean;
	columns: Column[];
	tree: Tree;
}

const childOf = ([, , ...children]: Tree, name: string): Tree | undefined =>
	children.find((child): child is Tree => typeof child !== 'string' && child[0] === name);
const childrenOf = (tree: Tree | undefined, name: string): Tree[] =>
	(tree?.slice(2) ?? []).filter((child): child is Tree => Array.isArray(child) && child[0] === name);

/** The texts of the header; undefined: it is none. */
function headerOf({ row, col, toCol }: Range, cells: Cells): string[] | undefined {
	const names: string[] = [];
	const taken = new Set<string>();
	for (let at = col; at <= toCol; at++) {
		const text = cells.text(row, at);
		if (!text || text.length > mostNameCharacters || taken.has(columnKey(text))) return undefined;
		taken.add(columnKey(text));
		names.push(text);
	}
	return names;
}

/** The names of columns without a header: those that it had. */
function ownNames({ col, toCol }: Range, kept: Tree[]): string[] {
	const taken = new Set<string>();
	return Array.from({ length: toCol - col + 1 }, (_, i) => {
		const had = kept[i]?.[1]['name'] ?? '';
		let name = had !== '' && had.length <= mostNameCharacters ? had : `Column${i + 1}`;
		while (taken.has(columnKey(name))) name = `Column${taken.size + 1}_${i}`;
		taken.add(columnKey(name));
		return name;
	});
}

/** cells: of a row of totals; undefined: it is not shown, and has what it had. */
function columnsOf({ toRow, col }: Range, names: string[], kept: Tree[], cells?: Cells): Column[] {
	const had = new Map(kept.map(([, { name = '', ...totals }]) => [columnKey(name), totals]));
	return names.map((name, i) => {
		const { totalsRowFunction = '', totalsRowLabel } = had.get(columnKey(name)) ?? {};
		const isThere = totalsFunctions.includes(totalsRowFunction) && (!cells || cells.isFormula(toRow, col + i));
		return isThere ? { name, totalsRowFunction } : { name, totalsRowLabel: cells ? cells.text(toRow, col + i) : totalsRowLabel };
	});
}

function tableOf(range: Range, tree: Tree, cells: Cells): WrittenTable | undefined {
	const [, { displayName = '', headerRowCount, totalsRowCount }] = tree;
	const hasHeader = headerRowCount !== '0';
	const kept = childrenOf(childOf(tree, 'tableColumns'), 'tableColumn');
	const names = hasHeader ? headerOf(range, cells) : ownNames(range, kept);
	if (!names) return undefined;
	// If none of its functions is there, the row is deleted.
	const shown = columnsOf(range, names, kept, cells);
	const hadFunctions = kept.some(([, { totalsRowFunction = '' }]) => totalsFunctions.includes(totalsRowFunction));
	const hasTotals = Number(totalsRowCount) > 0 && (!hadFunctions || shown.some(({ totalsRowFunction }) => totalsRowFunction));
	if (range.toRow - range.row < Number(hasHeader) + Number(hasTotals)) return undefined;
	return { name: displayName, range, hasHeader, hasTotals, columns: hasTotals ? shown : columnsOf(range, names, kept), tree };
}

/** The tables of a tab that a workbook can have: without cells in common with each other, merged cells or the tab's filter. */
export function tablesOf(properties: PropertySet, cells: Cells): WrittenTable[] {
	const found = properties.of(keys.table).filter(({ value, toRow, toCol }) => isTree(value, ['table']) && toRow < workbookRows && toCol < maxCols);
	if (found.length === 0) return [];
	const filter = filterOf(properties);
	const taken: Range[] = [...mergesOf(properties), ...(filter ? [filter] : [])];
	const names = new Set<string>();
	return found
		.sort((a, b) => a.row - b.row || a.col - b.col)
		.flatMap(({ row, col, toRow, toCol, value }) => {
			const range = { row, col, toRow, toCol };
			const table = taken.some((other) => overlap(other, range)) ? undefined : tableOf(range, value as Tree, cells);
			if (!table || names.has(table.name.toLowerCase())) return [];
			names.add(table.name.toLowerCase());
			taken.push(range);
			return [table];
		});
}

/** The name of the table among those that are taken, in small letters, to which it is added. */
export function tableName({ name }: WrittenTable, id: number, taken: Set<string>): string {
	const isName = /^[\p{L}_][\p{L}\p{M}\p{N}_.]*$/u.test(name) && name.length <= 200 && !isCellName(name) && !/^(?:r[0-9]*)?(?:c[0-9]*)?$/i.test(name);
	const own = isName ? name : `Table${id}`;
	let unique = own;
	for (let i = 2; taken.has(unique.toLowerCase()); i++) unique = `${own}_${i}`;
	taken.add(unique.toLowerCase());
	return unique;
}

function filterXml({ range, hasTotals, columns, tree }: WrittenTable): string {
	const filter = childOf(tree, 'autoFilter');
	if (!filter) return '';
	const places = placesOf(columns.map(({ name }) => name));
	const filters = new Map<number, string>();
	for (const [, { column = '', hiddenButton, showButton }, ...children] of childrenOf(filter, 'filterColumn')) {
		const colId = places.get(columnKey(column));
		const condition = children.find((child) => isTree(child, conditions)) as Tree | undefined;
		if (colId === undefined || (!condition && hiddenButton === undefined && showButton === undefined)) continue;
		filters.set(colId, `<filterColumn${attributes({ colId, hiddenButton, showButton })}>${condition ? treeXml(condition) : ''}</filterColumn>`);
	}
	const ref = rangeName({ ...range, toRow: range.toRow - Number(hasTotals) });
	const inside = [...filters].sort(([a], [b]) => a - b).map(([, text]) => text);
	return `<autoFilter ref="${ref}">${inside.join('')}</autoFilter>`;
}

function styleXml(tree: Tree): string {
	const style = childOf(tree, 'tableStyleInfo')?.[1];
	if (!style) return '';
	const shows = Object.fromEntries(flags.map((flag) => [flag, /^(?:1|true)$/.test(style[flag] ?? '') ? 1 : 0]));
	return `<tableStyleInfo${attributes({ name: style['name'], ...shows })}/>`;
}

/** id: a number that no other table of the workbook has. */
export function tableXml(table: WrittenTable, id: number): string {
	const { name, range, hasHeader, hasTotals, columns, tree } = table;
	const totalsRowShown = tree[1]['totalsRowShown'] === '0' ? 0 : undefined;
	const values = { id, name, displayName: name, ref: rangeName(range), headerRowCount: hasHeader ? undefined : 0 };
	const totals = hasTotals ? { totalsRowCount: 1 } : { totalsRowShown };
	const list = columns.map((column, i) => {
		const { totalsRowLabel, totalsRowFunction } = column;
		return `<tableColumn id="${i + 1}" name="${escapeName(column.name)}"${totalsRowLabel ? ` totalsRowLabel="${escapeName(totalsRowLabel)}"` : ''}${attributes({ totalsRowFunction })}/>`;
	});
	const inside = `${hasHeader ? filterXml(table) : ''}<tableColumns count="${columns.length}">${list.join('')}</tableColumns>${styleXml(tree)}`;
	return `${head}<table xmlns="${namespaces.main}"${attributes(values)}${attributes(totals)}>${inside}</table>`;
}
