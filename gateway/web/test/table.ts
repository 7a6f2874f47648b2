// table.ts - what the edits of a log make of a sheet, in their order: the oracle of convergence.test.ts. Rows and columns are
// objects, so that they need not be counted when others are inserted or deleted.
import type { CellState } from '../src/sheet/mirror';
import { type Edit, isProperty, isStructure, type PropertyEdit, type StructureEdit } from '../src/v2/messages';
import { listed } from './person';

type Line = Map<object, CellState>; // a row: its cells by column

/** `rows`: the rows of the range; null: all rows. `cols` likewise. */
interface Property {
	key: string;
	value: unknown;
	rows: object[] | null;
	cols: object[] | null;
}

const [lastRow, lastCol] = [16777215, 16383];

/** What is left of adjacent lines, with whatever is between them now. */
function remaining(lines: object[], now: object[]): object[] {
	const left = lines.map((line) => now.indexOf(line)).filter((index) => index >= 0);
	return left.length === 0 ? [] : now.slice(Math.min(...left), Math.max(...left) + 1);
}

export class Table {
	rows: Line[] = [];
	cols: object[] = [];
	private arranged: Property[] = [];

	constructor(rows: number, cols: number) {
		this.extend(rows - 1, cols - 1);
	}

	apply(edit: Edit): void {
		if (isStructure(edit)) this.restructure(edit);
		else if (isProperty(edit)) this.arrange(edit);
		else {
			const { row, col, content, style } = edit;
			this.extend(row, col);
			const before = this.cell(row, col);
			this.rows[row]!.set(this.cols[col]!, { content: content ?? before.content, style: style === undefined ? before.style : style });
		}
	}

	private cell(row: number, col: number): CellState {
		return this.rows[row]!.get(this.cols[col]!) ?? { content: '', style: null };
	}

	private extend(row: number, col: number): void {
		while (this.rows.length <= row) this.rows.push(new Map());
		while (this.cols.length <= col) this.cols.push({});
	}

	private restructure({ kind, at, n }: StructureEdit): void {
		const cellsOf = ({ rows, cols }: Property) => (rows?.length ?? lastRow + 1) * (cols?.length ?? lastCol + 1);
		const ofRows = kind.endsWith('Rows');
		const before = this.arranged.map((property) => ({ property, cells: cellsOf(property) })).sort((a, b) => a.cells - b.cells);
		if (kind.startsWith('insert')) this.extend(ofRows ? at - 1 : 0, ofRows ? 0 : at - 1);
		const added = () => Array.from({ length: n }, () => new Map());
		const lines: object[] = ofRows ? this.rows : this.cols;
		if (kind.startsWith('insert')) lines.splice(at, 0, ...added());
		else lines.splice(at, n);
		this.extend(0, 0);
		this.arranged = [];
		const places = new Set<string>();
		for (const { property } of before) {
			if (property.rows && ofRows) property.rows = remaining(property.rows, this.rows);
			if (property.cols && !ofRows) property.cols = remaining(property.cols, this.cols);
			if (property.rows?.length === 0 || property.cols?.length === 0 || places.has(this.place(property))) continue;
			places.add(this.place(property));
			this.arranged.push(property);
		}
	}

	private arrange({ row, col, toRow, toCol, key, value }: PropertyEdit): void {
		const [allRows, allCols] = [row === 0 && toRow === lastRow, col === 0 && toCol === lastCol];
		this.arranged = this.arranged.filter((property) => this.place(property) !== [key, row, toRow, col, toCol].join());
		if (value === null) return;
		this.extend(allRows ? 0 : toRow, allCols ? 0 : toCol);
		this.arranged.push({ key, value, rows: allRows ? null : this.rows.slice(row, toRow + 1), cols: allCols ? null : this.cols.slice(col, toCol + 1) });
	}

	private place({ key, rows, cols }: Property): string {
		const span = (lines: object[] | null, of: object[], last: number) => (lines ? [of.indexOf(lines[0]!), of.indexOf(lines.at(-1)!)] : [0, last]);
		return [key, ...span(rows, this.rows, lastRow), ...span(cols, this.cols, lastCol)].join();
	}

	/** The cells that have something. */
	list(): { row: number; col: number; content: string; style: CellState['style'] }[] {
		const all = this.rows.flatMap((_, row) => this.cols.map((_, col) => ({ row, col, ...this.cell(row, col) })));
		return all.filter(({ content, style }) => content || style);
	}

	contents(): Record<string, string> {
		return Object.fromEntries(this.list().flatMap(({ row, col, content }) => (content ? [[`${row},${col}`, content]] : [])));
	}

	styles(): Record<string, unknown> {
		return Object.fromEntries(this.list().flatMap(({ row, col, style }) => (style ? [[`${row},${col}`, style]] : [])));
	}

	propertyList(): PropertyEdit[] {
		return this.arranged.map((property) => {
			const [key, row, toRow, col, toCol] = this.place(property).split(',');
			return { row: Number(row), col: Number(col), toRow: Number(toRow), toCol: Number(toCol), key: key!, value: property.value };
		});
	}

	get properties(): string[] {
		return listed(this.propertyList());
	}

	/** The merges that count: the smaller one of two that overlap, or the one that begins later, or that has more rows. */
	get merges(): string[] {
		const cells = ({ row, col, toRow, toCol }: PropertyEdit) => (toRow - row + 1) * (toCol - col + 1);
		const all = this.propertyList().filter((merge) => merge.key === 'merge' && cells(merge) > 1);
		const order = (a: PropertyEdit, b: PropertyEdit) => cells(a) - cells(b) || b.row - a.row || b.col - a.col || b.toRow - a.toRow;
		const kept: PropertyEdit[] = [];
		for (const merge of all.sort(order))
			if (kept.every(({ row, col, toRow, toCol }) => row > merge.toRow || toRow < merge.row || col > merge.toCol || toCol < merge.col)) kept.push(merge);
		return listed(kept);
	}
}
