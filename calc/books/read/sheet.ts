// sheet.ts - a tab of a workbook becomes edits of a sheet, as it is read.
import { formattedContent, isDateFormat, isTimeFormat, numberContent, parseDate, parseTime, textContent } from '../../../gateway/web/src/content';
import { isTooLong } from '../../../gateway/web/src/v2/formula';
import { maxCols, maxRows } from '../../../gateway/web/src/v2/lines';
import type { CellEdit, Style } from '../../../gateway/web/src/v2/messages';
import { isError, macDays, own } from '../formats';
import { missingOf, moveFormula, quoted, withoutPrefixes } from '../formulas';
import { intersected } from '../intersection';
import { Arrangement } from './arrangement';
import { type Losses, Refused } from './refused';
import { isKept, type Kept } from './kept';
import type { Names } from './names';
import type { Strings } from './strings';
import type { Styles } from './styles';
import { type Attributes, bare, isTrue, numberOf, unescapeText } from './xml';

/** What all tabs of a workbook share. */
export interface Book {
	strings: Strings;
	styles: Styles;
	losses: Losses;
	names: Names;
	/** Dates count from 1904. */
	mac: boolean;
}

/** The links of a tab. */
export interface Links {
	/** Whether there are links, whose cells are needed again at the end. */
	some: boolean;
	/** The addresses by their ids. */
	targets: ReadonlyMap<string, string>;
}

/** A reference such as B7; undefined if it is none. */
export function placeOf(reference: string | undefined): { row: number; col: number } | undefined {
	const match = /^\$?([A-Z]{1,4})\$?([0-9]{1,9})$/i.exec(reference ?? '');
	if (!match) return undefined;
	const col = [...match[1]!.toUpperCase()].reduce((sum, one) => sum * 26 + one.charCodeAt(0) - 64, 0) - 1;
	return { row: Number(match[2]) - 1, col };
}

export function rangeOf(reference: string | undefined): { row: number; col: number; toRow: number; toCol: number } | undefined {
	const [from, to] = (reference ?? '').split(':').map(placeOf);
	const last = reference?.includes(':') ? to : from;
	return from && last && from.row <= last.row && from.col <= last.col ? { ...from, toRow: last.row, toCol: last.col } : undefined;
}

const mostFilled = 1_000_000;
/** Elements of a tab that are counted, and nothing else. */
const counted: Record<string, string> = {
	// These three, of later programs.
	...{ cfRule: 'conditional formats', dataValidation: 'validations', sparkline: 'sparklines', protectedRange: 'protection' },
	...{ sheetProtection: 'protection', scenario: 'scenarios', picture: 'background pictures', oleObject: 'embedded objects' },
	...{ control: 'controls' },
	...{ legacyDrawingHF: 'pictures in headers', customSheetView: 'views', slicerRef: 'slicers', phoneticPr: '', drawing: '', legacyDrawing: '' },
};

export class TabReader {
	readonly arrangement: Arrangement;
	private row = -1;
	private col = -1;
	private cell: Attributes | undefined;
	private value: string | undefined;
	private formula: { attributes: Attributes; text: string } | undefined;
	/** Where text belongs. */
	private reads: 'value' | 'formula' | 'inline' | undefined;
	private isRich = false;
	private isExtended = false;
	/** Formulas that several cells share, and the cell that has each. */
	private readonly shared = new Map<string, { text: string; row: number; col: number }>();
	/** Cells with values of an array of another cell. */
	private readonly filled = new Set<number>();
	private readonly contents = new Map<number, string>();

	constructor(
		private readonly tab: string,
		/** Its place among all. */
		private readonly at: number,
		private readonly part: string,
		private readonly book: Book,
		private readonly links: Links,
		readonly kept: Kept,
		private readonly put: (edit: CellEdit) => void,
	) {
		this.arrangement = new Arrangement(tab, book.losses);
	}

	private lose(what: string, count = 1): void {
		this.book.losses.add(this.tab, what, count);
	}

	private refuse(code: 'workbook_broken' | 'workbook_limit', reason: string): Refused {
		const number = (at: number) => (at < 0 ? undefined : at + 1);
		return new Refused(code, reason, { part: this.part, tab: this.tab, row: number(this.row), column: number(this.col) });
	}

	// ---- elements ----

	open(name: string, attributes: Attributes): boolean | void {
		// An extLst has elements of the same names, of later versions. They are not read.
		if (this.kept.isOpen || (isKept(name) && !this.isExtended)) return this.kept.open(name, attributes);
		if (name === 'extLst') this.isExtended = true;
		switch (name) {
			case 'row':
				return this.openRow(attributes);
			case 'c':
				return this.openCell(attributes);
			case 'v':
				if (!this.cell) return false;
				this.reads = 'value';
				this.value = '';
				return;
			case 'f':
				// One of a rule is not of a cell.
				if (!this.cell) return false;
				this.reads = 'formula';
				this.formula = { attributes, text: '' };
				return;
			case 'is':
				this.value = '';
				return;
			case 't':
				if (this.cell) this.reads = 'inline';
				return;
			case 'rPr':
				this.isRich = this.cell !== undefined;
				return false;
			case 'rPh':
				return false;
			case 'hyperlink':
				return this.link(bare(attributes));
			default: {
				const what = own(counted, name);
				if (what === undefined) this.arrangement.open(name, attributes);
				else if (what !== '') this.lose(what);
				// It has what a tab has, again.
				return name === 'customSheetView' ? false : undefined;
			}
		}
	}

	text(text: string): void {
		if (this.kept.isOpen) return this.kept.text(text);
		if (this.reads === 'formula') this.formula!.text += text;
		else if (this.reads) this.value += text;
	}

	close(name: string): void {
		if (this.kept.isOpen) return this.kept.close();
		if (name === 'extLst') this.isExtended = false;
		if (name === 'c') this.closeCell();
		else if (name === 'v' || name === 'f' || name === 't') this.reads = undefined;
	}

	private openRow(attributes: Attributes): void {
		const number = attributes['r'] === undefined ? this.row + 2 : numberOf(attributes['r']);
		if (!number || !Number.isInteger(number) || number < 1) throw this.refuse('workbook_broken', 'a row has no number');
		this.row = number - 1;
		this.col = -1;
		if (number > maxRows) throw this.refuse('workbook_limit', `a sheet has at most ${maxRows} rows`);
		this.arrangement.row(this.row, attributes);
	}

	private openCell(attributes: Attributes): void {
		const place = attributes['r'] === undefined ? { row: this.row, col: this.col + 1 } : placeOf(attributes['r']);
		if (!place || place.row < 0 || this.cell) throw this.refuse('workbook_broken', 'a cell has no place');
		this.row = place.row;
		this.col = place.col;
		if (place.row >= maxRows) throw this.refuse('workbook_limit', `a sheet has at most ${maxRows} rows`);
		if (place.col >= maxCols) throw this.refuse('workbook_limit', `a sheet has at most ${maxCols} columns`);
		this.cell = attributes;
		this.value = this.formula = undefined;
		this.isRich = false;
	}

	private closeCell(): void {
		const { row, col } = this;
		const { style, pattern, lost } = this.book.styles.of(this.cell!['s']);
		const key = row * maxCols + col;
		const content = this.filled.has(key) && !this.formula ? '' : this.content(pattern);
		this.cell = undefined;
		for (const what of lost) this.lose(what);
		if (content === '' && style === null) return;
		this.arrangement.use(row, col);
		if (isTooLong(content)) throw this.refuse('workbook_limit', 'the content of a cell has more than 32767 characters');
		if (this.links.some && content !== '') this.contents.set(key, content);
		this.put(editOf(row, col, content, style));
	}

	// ---- contents ----

	private content(pattern: string | undefined): string {
		const formula = this.formula && this.formulaText(this.formula);
		return formula ?? this.valueContent(pattern);
	}

	/** null: the value counts. */
	private formulaText({ attributes, text }: { attributes: Attributes; text: string }): string | null {
		const { t: kind, si, ref } = attributes;
		const { row, col } = this;
		if (kind === 'dataTable') {
			this.lose('data tables');
			return null;
		}
		if (kind === 'array') this.fill(ref);
		if (kind === 'array' && this.cell!['cm'] === undefined && ref?.includes(':')) this.lose('the size of arrays: a formula fills what it gives');
		let formula = text.trim();
		if (kind === 'shared' && si !== undefined) {
			if (formula !== '') this.shared.set(si, { text: formula, row, col });
			const first = this.shared.get(si);
			formula = first ? moveFormula(first.text, row - first.row, col - first.col) : '';
		}
		if (formula === '') return null;
		return this.written(formula, kind === 'array');
	}

	/** The formula as a sheet has it. */
	private written(formula: string, isArray: boolean): string {
		const { row, col, at } = this;
		const plain = (text: string): string => `=${isArray ? withoutPrefixes(text) : intersected(withoutPrefixes(text))}`;
		const { text, hasNames } = this.book.names.write(formula, { at, row, col });
		const content = plain(text);
		const isWritten = text !== formula && !isTooLong(content);
		if (isWritten) this.lose('names in formulas: references are in their place');
		if (hasNames || (text !== formula && !isWritten)) this.lose('formulas that refer to names');
		const missing = missingOf(withoutPrefixes(isWritten ? text : formula));
		if (missing) this.lose(missing);
		return isWritten ? content : plain(formula);
	}

	/** An array fills these cells, by itself in a sheet. */
	private fill(ref: string | undefined): void {
		const range = rangeOf(ref);
		if (!range || (range.toRow - range.row + 1) * (range.toCol - range.col + 1) + this.filled.size > mostFilled) return;
		for (let row = range.row; row <= range.toRow; row++)
			for (let col = range.col; col <= range.toCol; col++) if (row !== this.row || col !== this.col) this.filled.add(row * maxCols + col);
	}

	private valueContent(pattern: string | undefined): string {
		const { value } = this;
		const kind = this.cell!['t'] ?? 'n';
		if (value === undefined) return '';
		switch (kind) {
			case 's':
				return this.sharedContent(value);
			case 'str':
			case 'inlineStr':
				if (this.isRich) this.lose('formats of parts of texts');
				return contentOfText(unescapeText(value));
			case 'b':
				return isTrue(value.trim()) ? 'TRUE' : 'FALSE';
			case 'e':
				return isError(value.trim()) ? `=${value.trim()}` : textContent(value);
			case 'd':
				return this.isoContent(value.trim());
			default:
				return value.trim() === '' ? '' : this.numberContent(value.trim(), pattern);
		}
	}

	private sharedContent(index: string): string {
		const string = this.book.strings.at(index.trim());
		if (string === undefined) throw this.refuse('workbook_broken', 'a cell has a text that is not there');
		if (string.rich) this.lose('formats of parts of texts');
		return string.content;
	}

	private isoContent(value: string): string {
		const [, date = '', time = ''] =
			/^([0-9]{4}-[0-9]{2}-[0-9]{2})?T?([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?$/.exec(value) ?? [];
		const isDay = date !== '' && /^00:00(:00(\.0+)?)?$/.test(time);
		const text = `${date} ${isDay ? '' : time.replace(/(\.[0-9]{1,3})[0-9]*$/, '$1')}`.trim();
		return parseDate(text) || parseTime(text) !== null ? text : textContent(value);
	}

	private numberContent(value: string, pattern: string | undefined): string {
		const number = Number(value);
		if (!Number.isFinite(number)) throw this.refuse('workbook_broken', 'a number is none');
		if (!pattern) return numberContent(number);
		const isTime = isTimeFormat(pattern);
		const isMoved = this.book.mac && (isDateFormat(pattern) || (isTime && !/\[[hms]+\]/i.test(pattern) && number >= 1));
		return formattedContent(isMoved ? number + macDays : number, pattern);
	}

	// ---- links ----

	private link({ ref, id, location, tooltip }: Attributes): void {
		const range = rangeOf(ref);
		const target = `${this.links.targets.get(id ?? '') ?? ''}${location ? `#${location}` : ''}`;
		if (!range || target === '') return this.lose('links');
		if (tooltip) this.lose('tips of links');
		const content = this.contents.get(range.row * maxCols + range.col);
		const isPlain = content !== undefined && /^[^=]/.test(content) && textContent(content.replace(/^'/, '')) === content;
		if (!isPlain) return this.lose('links of cells without a text');
		const text = content.replace(/^'/, '');
		const linked = text === target ? `=HYPERLINK(${quoted(target)})` : `=HYPERLINK(${quoted(target)},${quoted(text)})`;
		if (isTooLong(linked)) return this.lose('links');
		this.put({ row: range.row, col: range.col, content: linked });
	}
}

/** An empty text is one. */
export const contentOfText = (text: string): string => (text === '' ? "'" : textContent(text));

function editOf(row: number, col: number, content: string, style: Style): CellEdit {
	if (content === '') return { row, col, style };
	return style === null ? { row, col, content } : { row, col, content, style };
}
