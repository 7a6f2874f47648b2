// plan.ts - which cells a paste writes: the place of the pasted cells, their contents and formats.
import { textContent } from '../content';
import { maxCols, maxRows } from '../v2/lines';
import type { CellEdit, Place, Range, Style } from '../v2/messages';
import type { PastedCell, PastedRows } from './html';
import type { Locale } from './locale';
import { formulaAt } from './r1c1';
import { isTextFormat, pastedValue } from './value';

/** all: contents and formats. plain: a text without formats, whose cells keep theirs. */
export type PasteKind = 'all' | 'plain' | 'values' | 'formats' | 'noBorders';

export interface PastePlan {
	/** The cells that are written. */
	range: Range;
	edits: CellEdit[];
	/** Merged ranges, if the paste brings formats. */
	merges: Range[];
	/** Number of cells whose format is not understood. Their values are those that were shown. */
	lostFormats: number;
}

/** The size of a table: rows, columns. */
export function sizeOf(rows: PastedRows): [number, number] {
	return [rows.length, rows.reduce((most, row) => [...row].reduce((end, [col, { cols }]) => Math.max(end, col + cols), most), 1)];
}

/** The range that a paste fills: the selection, if it is a multiple of the table, or as many cells as the table has. */
export function pastedRange(rows: PastedRows, selection: Range): Range {
	const [height, width] = sizeOf(rows);
	const [selectedRows, selectedCols] = [selection.toRow - selection.row + 1, selection.toCol - selection.col + 1];
	const repeats = selectedRows % height === 0 && selectedCols % width === 0;
	const { row, col } = selection;
	return repeats ? selection : { row, col, toRow: row + height - 1, toCol: col + width - 1 };
}

export const isInSheet = ({ toRow, toCol }: Range): boolean => toRow < maxRows && toCol < maxCols;

/** A text in a formula. */
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;

/** A cell that shows a text, and opens an address. */
export function linkContent(link: string, text: string): string {
	return text === link ? `=HYPERLINK(${quoted(link)})` : `=HYPERLINK(${quoted(link)},${quoted(text)})`;
}

/** What a cell is to be: its content and format, and whether the format of the source is understood. */
function stateOf(
	cell: PastedCell,
	{ row, col }: Place,
	kind: PasteKind,
	locale: Locale,
	style: Style,
	computes: (formula: string) => boolean,
): { content?: string; style?: Style; understood: boolean } {
	const { content, pattern, understood } = pastedValue(cell.text, cell.marks, locale);
	if (kind === 'plain' || kind === 'values') {
		const before = (style?.['n'] as { pattern?: string } | undefined)?.pattern;
		if (isTextFormat(before)) return { content: cell.text === '' ? '' : textContent(cell.text), understood };
		return { content, ...(pattern && !before && { style: { ...style, n: { pattern } } }), understood };
	}
	const own: Style = { ...cell.style, ...(pattern && { n: { pattern } }) };
	if (kind === 'noBorders') delete own['bd'];
	const formatted = { style: Object.keys(own).length > 0 ? own : null, understood };
	const formula = cell.marks.formula === undefined ? null : formulaAt(cell.marks.formula, row, col);
	if (kind !== 'formats' && formula !== null && computes(formula)) return { ...formatted, content: formula };
	return kind === 'formats' ? formatted : { ...formatted, content: cell.link && cell.text.trim() !== '' ? linkContent(cell.link, cell.text) : content };
}

const empty: PastedCell = { text: '', marks: {}, style: null, rows: 1, cols: 1 };

/** `styleAt`: the format that a cell has. `computes`: whether a formula has a result here; otherwise the value is pasted. */
export function planPaste(
	rows: PastedRows,
	range: Range,
	kind: PasteKind,
	locale: Locale,
	styleAt: (row: number, col: number) => Style,
	computes: (formula: string) => boolean,
): PastePlan {
	const [height, width] = sizeOf(rows);
	const plan: PastePlan = { range, edits: [], merges: [], lostFormats: 0 };
	for (let row = range.row; row <= range.toRow; row++) {
		const cells = rows[(row - range.row) % height]!;
		for (let col = range.col; col <= range.toCol; col++) {
			const cell = cells.get((col - range.col) % width) ?? empty;
			const { understood, ...state } = stateOf(cell, { row, col }, kind, locale, kind === 'plain' || kind === 'values' ? styleAt(row, col) : null, computes);
			if (!understood) plan.lostFormats++;
			plan.edits.push({ row, col, ...state });
			if (cell.rows * cell.cols > 1 && kind !== 'plain' && kind !== 'values')
				plan.merges.push({ row, col, toRow: Math.min(row + cell.rows - 1, range.toRow), toCol: Math.min(col + cell.cols - 1, range.toCol) });
		}
	}
	return plan;
}
