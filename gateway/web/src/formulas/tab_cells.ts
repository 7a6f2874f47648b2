// tab_cells.ts - tells a calculation the cells of a tab, from what the sheet stores: contents, styles, properties and structure edits.
import { numberContent } from '../content';
import { hiddenLines } from '../sheet/arrange';
import { zoneOf } from '../sheet/timezone';
import { knownStyle } from '../style';
import { maxCols, moveExtent, movePlace } from '../v2/lines';
import { type CellEdit, type Edit, isProperty, isStructure, type PropertyEdit, type StructureEdit, type Style } from '../v2/messages';
import { PropertySet } from '../v2/properties';
import { cellOfContent, valueOf } from '../cell';
import type { Calculation } from './calculation';
import { isFormula, keyOf } from './cells';
import type { CellMessage, FormulaMessage } from './messages';

export type Read = { cell: CellMessage } | { formula: FormulaMessage };

/** A content as formulas read it. `own`: the number format of the cell's style, if it has one. */
export function readContent(row: number, col: number, content: string, own: string | undefined): Read {
	const cell = cellOfContent(content, own);
	if (cell?.f) return { formula: [row, col, content] };
	const value = valueOf(cell);
	const derived = typeof cell?.s === 'object' ? cell.s?.n?.pattern : undefined;
	const pattern = typeof value === 'number' ? (own ?? derived) : undefined;
	return { cell: pattern ? [row, col, value, pattern] : [row, col, value] };
}

/** The number format of a style. */
function patternOf(style: Style): string | undefined {
	const format = knownStyle(style)?.['n'] as { pattern?: string } | null | undefined;
	return format?.pattern;
}

/** The content that has this value, unless it was typed otherwise. */
function plainContent(value: number | string | boolean): string {
	if (typeof value === 'number') return numberContent(value);
	return typeof value === 'boolean' ? (value ? 'TRUE' : 'FALSE') : value;
}

function movedKeys<T>(map: Map<number, T>, change: StructureEdit): Map<number, T> {
	const moved = new Map<number, T>();
	for (const [key, value] of map) {
		const place = movePlace({ row: Math.floor(key / maxCols), col: key % maxCols }, change);
		if (place) moved.set(keyOf(place.row, place.col), value);
	}
	return moved;
}

export class TabCells {
	readonly properties = new PropertySet();
	/** Number formats of cells' styles. */
	private patterns = new Map<number, string>();
	/** Contents that do not follow from the values: dates, and what was typed otherwise. */
	private typed = new Map<number, string>();
	/** Contents that the calculation has not been told. */
	private readonly told = new Map<number, string>();
	rows = 0;
	/** Number of cells with contents. */
	count = 0;
	private hidden = '';
	private zone = 'UTC';
	private seq = -1;

	constructor(
		private readonly calculation: Calculation,
		private readonly tab: number,
		/** The number of the next message. */
		private readonly next: () => number,
		/** A formula is gone from its cell. */
		private readonly onGone: (key: number) => void = () => {},
	) {}

	private get cells() {
		return this.calculation.cellsOf(this.tab);
	}

	pattern(key: number): string | undefined {
		return this.patterns.get(key);
	}

	apply(edit: Edit): void {
		if (isProperty(edit)) this.put(edit);
		else if (isStructure(edit)) {
			this.properties.move(edit);
			this.move(edit);
		} else this.edit(edit);
	}

	put(edit: PropertyEdit): void {
		this.properties.put(edit);
	}

	edit({ row, col, content, style }: CellEdit): void {
		const key = keyOf(row, col);
		this.rows = Math.max(this.rows, row + 1);
		if (style !== undefined) {
			const pattern = patternOf(style);
			if (pattern !== this.patterns.get(key)) {
				// Its content means something else in the new format.
				if (content === undefined) this.told.set(key, this.contentAt(row, col));
				if (pattern === undefined) this.patterns.delete(key);
				else this.patterns.set(key, pattern);
			}
		}
		if (content !== undefined) this.told.set(key, content);
	}

	private contentAt(row: number, col: number): string {
		const key = keyOf(row, col);
		const content = this.told.get(key) ?? this.typed.get(key);
		if (content !== undefined) return content;
		const cell = this.cells.get(row, col);
		if (cell === undefined) return '';
		if (isFormula(cell)) return cell.text;
		return plainContent(typeof cell === 'object' ? Number(cell.v) : cell);
	}

	/** Rows or columns were inserted or deleted. The properties have moved. */
	move(change: StructureEdit): void {
		this.tell(true);
		this.patterns = movedKeys(this.patterns, change);
		this.typed = movedKeys(this.typed, change);
		this.rows = change.kind.endsWith('Rows') ? moveExtent(change, this.rows) : this.rows;
		this.calculation.move(this.next(), change, this.tab);
	}

	/** Tells the calculation the contents that have changed. `more`: others follow. */
	tell(more: boolean): void {
		const cells: CellMessage[] = [];
		const formulas: FormulaMessage[] = [];
		for (const [key, content] of this.told) {
			const [row, col] = [Math.floor(key / maxCols), key % maxCols];
			const old = this.cells.get(row, col);
			const read = readContent(row, col, content, this.patterns.get(key));
			const value = 'cell' in read ? read.cell[2] : undefined;
			const plain = 'formula' in read ? content : value === undefined || value === null ? '' : plainContent(value);
			if (plain === content) this.typed.delete(key);
			else this.typed.set(key, content);
			if ('formula' in read) formulas.push(read.formula);
			else {
				cells.push(read.cell);
				if (isFormula(old)) this.onGone(key);
			}
			this.count += ('formula' in read || value !== undefined ? 1 : 0) - (old === undefined ? 0 : 1);
		}
		this.told.clear();
		this.calculation.set(this.next(), cells, formulas, more, this.tab);
	}

	/** Tells all that follows from contents and properties of this seq. */
	settle(seq: number): void {
		if (this.tab > 0 && seq === this.seq) return;
		this.seq = seq;
		const zone = zoneOf(this.properties);
		if (zone !== this.zone) this.calculation.setClock(this.next(), zone, this.tab);
		this.zone = zone;
		const hidden = [...hiddenLines(this.properties, true, this.rows)].sort((a, b) => a - b);
		if (hidden.join() !== this.hidden) this.calculation.hide(this.next(), hidden, this.tab);
		this.hidden = hidden.join();
		// This also computes NOW() again.
		this.calculation.draw(this.next(), seq, this.tab);
		this.tell(false);
	}

	get currentZone(): string {
		return this.zone;
	}
}
