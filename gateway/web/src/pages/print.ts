// print.ts - the sheet on paper: a table of the used cells, or of the selected ones if there are several, which exists while the
// browser prints. The frozen rows are repeated on each page.
import type { IRange, IStyleData, Nullable } from '@univerjs/core';
import { columnName, isNumberText, rangeName } from '../content';
import { bdi, h, notify } from '../dom';
import { t } from '../i18n';
import { hasContent, selectionOf, type GridParts } from '../view/parts';
import type { Place, Range } from '../v2/messages';

export interface PrintSheet {
	name: string;
	parts: GridParts;
	contentOf(place: Place): { content: string; shown: string };
	/** Cells of the sheet that have not been read; null: all have. */
	unread(): Range | null;
}

/** A browser lays out so many cells in a second or two. */
export const mostCells = 50_000;
/** The pixels that a page has side by side: upright, and on its side. */
const pageWidth = 700;
const wideWidth = 1020;

const borders = { t: 'Top', r: 'Right', b: 'Bottom', l: 'Left' } as const;
const widths: Record<number, string> = { 1: '1px', 7: '3px', 8: '2px', 9: '2px', 10: '2px', 11: '2px', 12: '2px', 13: '3px' };
const kinds: Record<number, string> = { 3: 'dotted', 2: 'dotted', 4: 'dashed', 5: 'dashed', 6: 'dashed', 7: 'double', 9: 'dashed' };
const aligns = ['', 'left', 'center', 'right', 'justify'];
const valigns = ['', 'top', 'middle', 'bottom'];

/** The cells with content, colour or borders. */
function usedOf({ sheet }: GridParts): Range | null {
	const used = { row: 0, col: 0, toRow: -1, toCol: -1 };
	sheet.getCellMatrix().forValue((row, col, cell) => {
		if (!hasContent(cell)) {
			const style = cell?.s && (sheet.getComposedCellStyle(row, col) as Nullable<IStyleData>);
			if (!style || (!style.bg?.rgb && !style.bd)) return;
		}
		used.toRow = Math.max(used.toRow, row);
		used.toCol = Math.max(used.toCol, col);
	});
	for (const { startRow, startColumn, endRow, endColumn } of sheet.getMergeData()) {
		if (startRow > used.toRow || startColumn > used.toCol) continue;
		used.toRow = Math.max(used.toRow, endRow);
		used.toCol = Math.max(used.toCol, endColumn);
	}
	return used.toRow < 0 ? null : used;
}

/** The selected cells that are used, if several are selected; otherwise all that are used. */
function printedOf(parts: GridParts): Range | null {
	const used = usedOf(parts);
	const selected = selectionOf(parts)?.range;
	if (!used || !selected || (selected.startRow === selected.endRow && selected.startColumn === selected.endColumn)) return used;
	const merged = parts.sheet.getMergedCell(selected.startRow || 0, selected.startColumn || 0);
	if (merged && merged.endRow === selected.endRow && merged.endColumn === selected.endColumn) return used;
	const end = (value: number, last: number) => (value < last ? value : last);
	const range = {
		row: selected.startRow || 0,
		col: selected.startColumn || 0,
		toRow: end(selected.endRow, used.toRow),
		toCol: end(selected.endColumn, used.toCol),
	};
	return range.row > range.toRow || range.col > range.toCol ? used : range;
}

function dress(element: HTMLElement, style: Nullable<IStyleData>, content: string, shown: string): void {
	const { style: css } = element;
	const isNumber = isNumberText(content) || (content.startsWith('=') && isNumberText(shown.replace(/[,%$€£¥\s]/g, '')));
	css.textAlign = (style?.ht && aligns[style.ht]) || (isNumber || /^\d{4}-\d{2}-\d{2}/.test(content) ? 'right' : /^(TRUE|FALSE)$/.test(shown) ? 'center' : '');
	if (!style) return;
	css.verticalAlign = (style.vt && valigns[style.vt]) || '';
	if (style.ff) css.fontFamily = style.ff;
	if (style.fs) css.fontSize = `${style.fs}pt`;
	if (style.bl) css.fontWeight = 'bold';
	if (style.it) css.fontStyle = 'italic';
	css.textDecoration = [style.ul?.s ? 'underline' : '', style.st?.s ? 'line-through' : ''].join(' ').trim();
	if (style.cl?.rgb) css.color = style.cl.rgb;
	if (style.bg?.rgb) css.backgroundColor = style.bg.rgb;
	for (const [key, side] of Object.entries(borders)) {
		const line = style.bd?.[key as keyof typeof borders];
		if (line?.s) css[`border${side}`] = `${widths[line.s] ?? '1px'} ${kinds[line.s] ?? 'solid'} ${line.cl?.rgb ?? '#000'}`;
	}
}

/** How many of these ascending numbers are less. */
function countBelow(numbers: readonly number[], limit: number): number {
	let [low, high] = [0, numbers.length];
	while (low < high) {
		const middle = (low + high) >> 1;
		if (numbers[middle]! < limit) low = middle + 1;
		else high = middle;
	}
	return low;
}

interface Span {
	rows: number;
	cols: number;
	/** The cell whose content it shows: its first row or column may be hidden, or not be printed. */
	main: Place;
}

/** The merged cells by their first cell ("row,col") in these rows and columns, and the other cells of them. */
export function spansOf(rows: readonly number[], cols: readonly number[], merges: readonly IRange[]): { spans: Map<string, Span>; covered: Set<string> } {
	const spans = new Map<string, Span>();
	const covered = new Set<string>();
	for (const { startRow, endRow, startColumn, endColumn } of merges) {
		const [down, across] = [
			rows.slice(countBelow(rows, startRow), countBelow(rows, endRow + 1)),
			cols.slice(countBelow(cols, startColumn), countBelow(cols, endColumn + 1)),
		];
		if (down.length === 0 || across.length === 0) continue;
		for (const r of down) for (const c of across) covered.add(`${r},${c}`);
		const first = `${down[0]},${across[0]}`;
		covered.delete(first);
		spans.set(first, { rows: down.length, cols: across.length, main: { row: startRow, col: startColumn } });
	}
	return { spans, covered };
}

function tableOf({ parts, contentOf }: PrintSheet, { row, col, toRow, toCol }: Range): { table: HTMLTableElement; width: number } {
	const { sheet } = parts;
	const lines = (from: number, to: number, isShown: (line: number) => boolean) => Array.from({ length: to - from + 1 }, (_, i) => from + i).filter(isShown);
	const rows = lines(row, toRow, (line) => sheet.getRowVisible(line));
	const cols = lines(col, toCol, (line) => sheet.getColVisible(line));
	const { spans, covered } = spansOf(rows, cols, sheet.getMergeData());
	const cellOf = (r: number, c: number): HTMLElement => {
		const span = spans.get(`${r},${c}`);
		const main = span?.main ?? { row: r, col: c };
		const raw = sheet.getCellRaw(main.row, main.col);
		const { content, shown } = hasContent(raw) ? contentOf(main) : { content: '', shown: '' };
		const { rows: rowspan, cols: colspan } = span ?? { rows: 1, cols: 1 };
		const text = content.includes('\n') && !content.startsWith('=') ? content.replace(/^'/, '') : shown;
		const cell = h('td', { rowspan: rowspan > 1 && rowspan, colspan: colspan > 1 && colspan }, text);
		dress(cell, raw?.s ? (sheet.getComposedCellStyle(main.row, main.col) as Nullable<IStyleData>) : null, content, shown);
		return cell;
	};
	const line = (r: number) => {
		const element = h('tr', {}, ...cols.filter((c) => !covered.has(`${r},${c}`)).map((c) => cellOf(r, c)));
		element.style.height = `${sheet.getRowHeight(r)}px`;
		return element;
	};
	const width = cols.reduce((sum, c) => sum + sheet.getColumnWidth(c), 0);
	const columns = cols.map((c) => {
		const element = h('col', { 'data-column': columnName(c) });
		element.style.width = `${sheet.getColumnWidth(c)}px`;
		return element;
	});
	const { ySplit } = sheet.getFreeze();
	// A merged cell that goes on below keeps its row out of the head.
	const frozen = countBelow(rows, ySplit);
	const headEnd = rows.findIndex((r, i) => i >= frozen || cols.some((c) => (spans.get(`${r},${c}`)?.rows ?? 1) > frozen - i));
	const head = headEnd < 0 ? rows.length - 1 : headEnd;
	const table = h(
		'table',
		{},
		h('colgroup', {}, ...columns),
		head > 0 && h('thead', {}, ...rows.slice(0, head).map(line)),
		h('tbody', {}, ...rows.slice(Math.max(head, 0)).map(line)),
	);
	table.style.width = `${width}px`;
	return { table, width };
}

/** What is printed, and what is said about it. */
function paperOf(sheet: PrintSheet): HTMLElement {
	const range = printedOf(sheet.parts);
	const paper = h('div', { class: 'paper' }, h('h1', {}, bdi(sheet.name)));
	if (!range) return paper;
	const rows = Math.max(1, Math.floor(mostCells / (range.toCol - range.col + 1)));
	const printed = { ...range, toRow: Math.min(range.toRow, range.row + rows - 1) };
	const unread = sheet.unread();
	const notes = [
		printed.toRow < range.toRow && t('print.cut', { range: rangeName(printed), count: mostCells }),
		unread && t('print.unread', { range: rangeName(unread) }),
	].filter((note) => note !== false && note !== null);
	const { table, width } = tableOf(sheet, printed);
	if (width > pageWidth) paper.classList.add('wide');
	const room = width > pageWidth ? wideWidth : pageWidth;
	if (width > room) table.style.zoom = String(room / width);
	paper.append(...notes.map((note) => h('p', {}, note)), table);
	notes.forEach((note) => notify(note, 'problem'));
	return paper;
}

/** Makes the table before the browser prints, until the returned function is called. */
export function addPrinting(sheetNow: () => PrintSheet | null): () => void {
	const listening = new AbortController();
	const { signal } = listening;
	let paper: HTMLElement | null = null;
	const remove = () => {
		paper?.remove();
		paper = null;
		document.body.classList.remove('printed');
	};
	window.addEventListener(
		'beforeprint',
		() => {
			const sheet = sheetNow();
			remove();
			if (!sheet) return;
			document.body.append((paper = paperOf(sheet)));
			// With :has(.paper) in the style sheet, browsers would look at all elements again whenever one is added.
			document.body.classList.add('printed');
		},
		{ signal },
	);
	window.addEventListener('afterprint', remove, { signal });
	return () => {
		listening.abort();
		remove();
	};
}
