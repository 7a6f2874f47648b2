// cells.ts - the cells of a sheet as a workbook has them.
import { cellName, parseContent, rangeName, type TypedValue } from '../../../gateway/web/src/content';
import { keyOf } from '../../../gateway/web/src/formulas/cells';
import { ByteReader } from '../../../gateway/web/src/v2/bytes';
import { readBatches } from '../../../gateway/web/src/v2/edits';
import { maxCols } from '../../../gateway/web/src/v2/lines';
import { isProperty, isStructure, type Place, type Style } from '../../../gateway/web/src/v2/messages';
import { readLink, withPrefixes } from '../formulas';
import { asSingle, givesOne, withFunctions } from '../intersection';
import { Refused } from '../read/refused';
import { filledBy } from './arrays';
import type { StyleTables } from './styles';
import { escapeXml } from './xml';

interface Cell {
	content: string;
	style: Style;
}

/** The errors that all programs know. */
const errors = new Set(['#NULL!', '#DIV/0!', '#VALUE!', '#REF!', '#NAME?', '#NUM!', '#N/A']);
/** Programs show no more links of a sheet. */
const mostLinks = 65_000;

const textFormat = '@';
const patternOf = (style: Style): string | undefined => (style?.['n'] as { pattern?: string } | null | undefined)?.pattern;

/** The number format in which a date or a time is shown that has none, as in the page (cell.ts). */
function impliedFormat(value: TypedValue): string | undefined {
	if (value.kind === 'date') return value.hasTime ? 'yyyy-mm-dd hh:mm:ss' : 'yyyy-mm-dd';
	if (value.kind === 'time') return value.serial >= 1 ? '[h]:mm:ss' : value.hasSeconds ? 'hh:mm:ss' : 'hh:mm';
	return undefined;
}

/** Of one sheet, which is in memory as a whole. */
const mostCells = 2_000_000;

export class Cells {
	private readonly cells = new Map<number, Cell>();
	/** Values of formulas, and of cells that arrays fill. */
	private readonly values = new Map<number, string>();
	private readonly filled = new Set<number>();
	/** What the arrays of formulas fill. */
	private readonly arrays = new Map<number, string>();
	readonly links: { name: string; link: string }[] = [];
	/** Whether a formula that was written may fill several cells. */
	hasArrays = false;
	lastRow = -1;
	lastCol = -1;

	/** isComputed: the values are those of the contents. part: only what is behind this place of the sheet, without formulas. */
	constructor(
		private readonly isComputed = true,
		private readonly part?: Place,
	) {}

	/** A stream of sheet.read_cells(). */
	add(bytes: Uint8Array): void {
		for (const { edit } of readBatches(new ByteReader(bytes))) {
			if (!edit || isStructure(edit) || isProperty(edit)) continue;
			const { content = '', style = null } = edit;
			const [row, col] = [edit.row - (this.part?.row ?? 0), edit.col - (this.part?.col ?? 0)];
			this.cells.set(keyOf(row, col), { content: this.part && content.startsWith('=') ? '' : content, style });
			if (this.cells.size > mostCells) throw new Refused('workbook_limit', `a sheet has more than ${mostCells} cells`);
			this.extend(row, col);
		}
	}

	/** The same with the values of formulas. The cells are there. */
	addValues(bytes: Uint8Array): void {
		for (const { edit } of readBatches(new ByteReader(bytes))) {
			if (!edit || isStructure(edit) || isProperty(edit)) continue;
			const { row, col, content = '' } = edit;
			const key = keyOf(row, col);
			const cell = this.cells.get(key);
			if (cell?.content.startsWith('=')) this.values.set(key, content);
			else if ((cell === undefined || cell.content === '') && content !== '') {
				this.values.set(key, content);
				this.filled.add(key);
				if (!cell) this.cells.set(key, { content: '', style: null });
				this.extend(row, col);
			}
		}
	}

	private extend(row: number, col: number): void {
		this.lastRow = Math.max(this.lastRow, row);
		this.lastCol = Math.max(this.lastCol, col);
	}

	/** The text that a cell has; undefined: it has another content, or none. */
	text(row: number, col: number): string | undefined {
		const content = this.cells.get(keyOf(row, col))?.content ?? '';
		const value = parseContent(content);
		return value.kind === 'text' ? value.text : value.kind === 'formula' ? readLink(content)?.text : undefined;
	}

	isFormula(row: number, col: number): boolean {
		return this.cells.get(keyOf(row, col))?.content.startsWith('=') ?? false;
	}

	/** In reading order, when all are added. */
	keys(): Float64Array {
		this.findArrays();
		return Float64Array.from(this.cells.keys()).sort();
	}

	/** The XML of a cell. `text`: the number of a text that cells share. */
	xml(key: number, styles: StyleTables, text: (text: string) => number, rename: (formula: string) => string | null): string {
		const { content, style } = this.cells.get(key)!;
		const [row, col] = [Math.floor(key / maxCols), key % maxCols];
		const name = cellName(row, col);
		const value = parseContent(content === '' ? (this.values.get(key) ?? '') : content);
		if (value.kind === 'formula') return this.formulaXml(key, name, content, style, styles, text, rename);
		return this.valueXml(name, value, style, styles, text);
	}

	private valueXml(name: string, value: TypedValue, style: Style, styles: StyleTables, text: (text: string) => number): string {
		const isText = (value.kind === 'date' || value.kind === 'time') && patternOf(style) === textFormat;
		const number = styles.number(style, isText ? undefined : impliedFormat(value));
		const s = number === 0 ? '' : ` s="${number}"`;
		switch (value.kind) {
			case 'empty':
			case 'formula':
				return number === 0 ? '' : `<c r="${name}"${s}/>`;
			case 'number':
				return `<c r="${name}"${s}><v>${value.number}</v></c>`;
			case 'boolean':
				return `<c r="${name}"${s} t="b"><v>${value.boolean ? 1 : 0}</v></c>`;
			case 'date':
			case 'time':
				return `<c r="${name}"${s}><v>${value.serial}</v></c>`;
			case 'text':
				return `<c r="${name}"${s} t="s"><v>${text(value.text)}</v></c>`;
		}
	}

	private formulaXml(
		key: number,
		name: string,
		content: string,
		style: Style,
		styles: StyleTables,
		shared: (text: string) => number,
		rename: (formula: string) => string | null,
	): string {
		const link = this.links.length < mostLinks ? readLink(content) : null;
		if (link) {
			this.links.push({ name, link: link.link });
			return this.valueXml(name, { kind: 'text', text: link.text, forced: true }, style, styles, shared);
		}
		const error = content.slice(1).trim().toUpperCase();
		const shown = this.values.get(key);
		const value = shown === undefined || /^#[A-Z0-9/_]+[!?]?$/.test(shown) ? null : parseContent(shown);
		const number = styles.number(style, value ? impliedFormat(value) : undefined);
		const s = number === 0 ? '' : ` s="${number}"`;
		if (errors.has(error)) return `<c r="${name}"${s} t="e"><v>${error}</v></c>`;
		const range = this.arrays.get(key);
		const renamed = rename(content.slice(1));
		// Programs take a formula with a tab that is not there for damage.
		if (renamed === null && value) return this.valueXml(name, value, style, styles, shared);
		if (renamed === null) return `<c r="${name}"${s} t="e"><v>${shown !== undefined && errors.has(shown) ? shown : '#REF!'}</v></c>`;
		const single = range ? null : asSingle(renamed);
		this.hasArrays ||= single === null;
		const text = escapeXml(withPrefixes(single ?? withFunctions(renamed)));
		const formula = single === null ? `<f t="array" ref="${range ?? name}">${text}</f>` : `<f>${text}</f>`;
		const [type, v] = value ? resultOf(value) : shown !== undefined && errors.has(shown) ? ['e', shown] : ['', undefined];
		const more = `${single === null ? ' cm="1"' : ''}${type ? ` t="${type}"` : ''}`;
		return `<c r="${name}"${s}${more}>${formula}${v === undefined ? '' : `<v>${v}</v>`}</c>`;
	}

	/**
	 * Which formula fills a cell is not stored. Arrays are rectangles that have no contents and overlap no others, and cells in them may
	 * be empty. So a formula has a range if no other one, whose value may be an array, could have filled the cells. The program that opens
	 * the workbook computes the others, and all if the values are those of former contents.
	 */
	private findArrays(): void {
		if (this.filled.size === 0) return;
		const contents = [...this.cells].filter(([, { content }]) => content !== '');
		const mayFill = (key: number, content: string) => content.startsWith('=') && this.values.get(key) !== '#SPILL!' && !givesOne(content.slice(1));
		const formulas = contents.filter(([key, { content }]) => mayFill(key, content)).map(([key]) => key);
		const keys = contents.map(([key]) => key);
		const lost = new Set(this.filled);
		for (const [formula, { range, cells }] of this.isComputed ? filledBy(formulas, keys, this.filled) : []) {
			this.arrays.set(formula, rangeName(range));
			for (const cell of cells) lost.delete(cell);
		}
		for (const cell of lost) this.values.delete(cell);
	}
}

/** The type and the text of a value of a formula. */
function resultOf(value: TypedValue): [type: string, text: string | number | undefined] {
	switch (value.kind) {
		case 'number':
			return ['', value.number];
		case 'boolean':
			return ['b', value.boolean ? 1 : 0];
		case 'date':
		case 'time':
			return ['', value.serial];
		case 'text':
			return ['str', escapeXml(value.text)];
		default:
			return ['str', ''];
	}
}
