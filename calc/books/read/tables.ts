// tables.ts - the tables of a workbook: where they are, for formulas that name their columns, and what is kept of them as a property.
import { maxCols, maxRows } from '../../../gateway/web/src/v2/lines';
import { type NamedTable, placesOf } from '../structured';
import { type Tree, TreeReader } from '../trees';
import { rangeOf } from './sheet';
import { type Attributes, numberOf, readXml, unescapeText } from './xml';
import type { Zip } from './zip';

export interface Table extends NamedTable {
	tree: Tree;
}

/** What of a table is not kept. */
const lost: Record<string, string> = {
	...{ calculatedColumnFormula: 'formulas that tables give to new rows', sortState: 'orders of tables', colorFilter: 'filters by colour' },
	...{ xmlColumnPr: 'connections to data' },
};
const styleAttributes = ['name', 'showFirstColumn', 'showLastColumn', 'showRowStripes', 'showColumnStripes'];
const knownStyle = /^TableStyle(?:Light|Medium|Dark)[0-9]{1,2}$/;

const only = (attributes: Attributes, names: string[]): Attributes => Object.fromEntries(Object.entries(attributes).filter(([name]) => names.includes(name)));

class TableReader {
	private table: Attributes = {};
	private readonly columns: Attributes[] = [];
	private filter: Tree | undefined;
	private style: Attributes | undefined;
	private tree: TreeReader | undefined;

	constructor(private readonly lose: (what: string) => void) {}

	open(name: string, attributes: Attributes): boolean | void {
		if (Object.hasOwn(lost, name)) this.lose(lost[name]!);
		if (Object.hasOwn(lost, name) || name === 'extLst') return false;
		if (name === 'autoFilter') this.tree ??= new TreeReader();
		if (this.tree) return this.tree.begin(name, attributes);
		if (name === 'table') this.table = attributes;
		else if (name === 'tableColumn') this.column(attributes);
		else if (name === 'tableStyleInfo') this.style = this.styleOf(attributes);
	}

	private column(attributes: Attributes): void {
		if (this.columns.length > maxCols) return;
		const told = Object.entries(only({ name: '', ...attributes }, ['name', 'totalsRowFunction', 'totalsRowLabel']));
		this.columns.push(Object.fromEntries(told.map(([key, text]) => [key, unescapeText(text)])));
	}

	private styleOf(attributes: Attributes): Attributes {
		const style = only(attributes, styleAttributes);
		if (style['name'] === undefined || knownStyle.test(style['name'])) return style;
		this.lose('styles of tables that are not those of all programs');
		delete style['name'];
		return style;
	}

	text(text: string): void {
		this.tree?.text(text);
	}

	close(): void {
		const tree = this.tree?.end();
		if (!tree) return;
		this.filter = tree;
		this.tree = undefined;
	}

	/** undefined: it is none. */
	result(at: number): Table | undefined {
		const { table, columns } = this;
		const range = rangeOf(table['ref']);
		const name = unescapeText(table['displayName'] ?? table['name'] ?? '');
		const [hasHeader, hasTotals] = [table['headerRowCount'] !== '0', (numberOf(table['totalsRowCount']) ?? 0) > 0];
		if (!range || name === '' || range.toRow >= maxRows || range.toCol >= maxCols) return undefined;
		if (columns.length !== range.toCol - range.col + 1 || range.toRow - range.row < Number(hasHeader) + Number(hasTotals)) return undefined;
		const places = placesOf(columns.map(({ name: column = '' }) => column));
		return { name, at, range, hasHeader, hasTotals, columns: places, tree: this.treeOf(name, hasHeader, hasTotals) };
	}

	/** What the cells tell is not in it: the names of columns that a header has, and labels of totals. */
	private treeOf(name: string, hasHeader: boolean, hasTotals: boolean): Tree {
		const attributes = { displayName: name, ...only(this.table, ['headerRowCount', 'totalsRowCount', 'totalsRowShown']) };
		const columns = this.columns
			.map((column) => (hasTotals ? only(column, ['name', 'totalsRowFunction']) : column))
			.filter((column) => !hasHeader || Object.keys(column).length > 1);
		const parts: Tree[] = [];
		if (this.filter && hasHeader) parts.push(['autoFilter', {}, ...this.filterColumns(this.filter)]);
		if (columns.length > 0) parts.push(['tableColumns', {}, ...columns.map((column): Tree => ['tableColumn', column])]);
		if (this.style) parts.push(['tableStyleInfo', this.style]);
		return ['table', attributes, ...parts];
	}

	/** With names of columns, since columns may move. */
	private filterColumns([, , ...children]: Tree): Tree[] {
		return children.flatMap((child): Tree[] => {
			if (typeof child === 'string' || child[0] !== 'filterColumn') return [];
			const [, { colId, ...others }, ...conditions] = child;
			const column = this.columns[numberOf(colId) ?? -1]?.['name'];
			return column === undefined ? [] : [['filterColumn', { ...others, column }, ...conditions]];
		});
	}
}

/** undefined: the part has no table, or one that is broken. */
export async function readTable(zip: Zip, part: string, at: number, lose: (what: string) => void): Promise<Table | undefined> {
	if (!zip.has(part)) return undefined;
	const reader = new TableReader(lose);
	await readXml(zip, part, {
		open: (name, attributes) => reader.open(name, attributes),
		text: (text) => reader.text(text),
		close: () => reader.close(),
	});
	return reader.result(at);
}
