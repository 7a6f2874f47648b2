// paste.ts - pasting what other programs have copied, and what this page puts on the clipboard for them.
//
// Univer reads the clipboard of its own cells, which keeps formulas and their references. Everything else is read by src/paste,
// and written as one change of the user.
import { CellValueType, type IRange } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { ISheetClipboardService } from '@univerjs/sheets-ui';
import { rangeName, textContent } from '../../content';
import { cellsOfRows, readHtml, type PastedRows } from '../../paste/html';
import { localeOf } from '../../paste/locale';
import { isInSheet, pastedRange, planPaste, type PasteKind } from '../../paste/plan';
import { readTable, writeTable } from '../../paste/tsv';
import type { CellEdit, Place, Range, Style } from '../../v2/messages';
import { isInside } from '../../sheet/arrange';
import { select, selectionOf, type GridParts } from '../parts';
import { refreshCut } from '../pointers/clipboard';
import { rangeOf } from '../cells/reading';
import { shownRows } from '../cells/shown';
import { dividedBy } from './merging';
import { addDrop, isPicture, pictureOf } from './pictures';

export interface PasteEvents {
	/** Whether a formula has only what formulas have here. */
	computes(formula: string): boolean;
	canEdit(): boolean;
	/** The kind of refusal if not all of these cells are in the grid; null if they are. */
	lacks(ranges: Range[]): string | null;
	/** Writes cells and the merged ranges of a part of the sheet as one change of the user. merges: null if they stay. */
	write(edits: CellEdit[], area: Range, merges: Range[] | null): void;
	styleAt(row: number, col: number): Style;
	onBlocked(kind: string): void;
	/** The paste would divide these merged cells. */
	onDivides(merged: string): void;
	onPasted(rows: number, cols: number, lostFormats: number): void;
	/** Pictures were pasted, or files dropped, for a cell. */
	onFiles(files: File[], place: Place): void;
}

const kinds: Record<string, PasteKind> = {
	'special-paste-value': 'values',
	'special-paste-format': 'formats',
	'special-paste-besides-border': 'noBorders',
};

/** Whether Univer has copied this itself, in this page. */
function isOwn(clipboard: ISheetClipboardService, html: string): boolean {
	const id = /data-copy-id="([^"]+)"/.exec(html)?.[1];
	if (id === undefined || !clipboard.copyContentCache().get(id)) return false;
	refreshCut(clipboard, id);
	return true;
}

/** The selected cells; of a whole row or column its first cell. */
function target({ injector, sheet }: GridParts): Range | null {
	const selection = injector.get(SheetsSelectionsService).getCurrentLastSelection();
	if (!selection) return null;
	const { startRow, startColumn, endRow, endColumn } = selection.range;
	const row = Number.isNaN(startRow) ? 0 : startRow;
	const col = Number.isNaN(startColumn) ? 0 : startColumn;
	const isWhole = !(endRow - row < sheet.getRowCount() - 1) || !(endColumn - col < sheet.getColumnCount() - 1);
	return isWhole ? { row, col, toRow: row, toCol: col } : { row, col, toRow: endRow, toCol: endColumn };
}

function paste(parts: GridParts, events: PasteEvents, rows: PastedRows, kind: PasteKind): boolean {
	const { sheet } = parts;
	const selected = target(parts);
	if (!selected) return false;
	if (!events.canEdit()) {
		events.onBlocked('role');
		return false;
	}
	const merged = sheet.getMergeData().map(rangeOf);
	const isOne = rows.length === 1 && rows[0]!.size === 1;
	const whole = merged.find((range) => range.row === selected.row && range.col === selected.col && isInside(selected, range));
	// One value is taken by the merged cell.
	const range =
		isOne && whole
			? { ...selected, toRow: selected.row, toCol: selected.col }
			: pastedRange(rows, whole && !isOne ? { ...selected, toRow: selected.row, toCol: selected.col } : selected);
	if (!isInSheet(range)) {
		events.onBlocked('size');
		return false;
	}
	const inTheWay = isOne && whole ? undefined : dividedBy(sheet, range);
	if (inTheWay) {
		events.onDivides(rangeName(inTheWay));
		return false;
	}
	const lacking = events.lacks([range]);
	if (lacking) {
		events.onBlocked(lacking);
		return false;
	}
	const plan = planPaste(rows, range, kind, localeOf(navigator.language), events.styleAt, events.computes);
	events.write(plan.edits, range, kind === 'plain' || kind === 'values' || (isOne && whole) ? null : plan.merges);
	select(parts, { startRow: range.row, endRow: range.toRow, startColumn: range.col, endColumn: range.toCol }, range);
	events.onPasted(range.toRow - range.row + 1, range.toCol - range.col + 1, plan.lostFormats);
	return true;
}

/** Pastes HTML or a plain text. `type` is Univer's name of a special paste. */
function pasteExternal(parts: GridParts, events: PasteEvents, html: string, text: string, type?: string): boolean {
	if (type === 'special-paste-col-width') return true;
	const rows = html ? readHtml(html, localeOf(navigator.language)) : null;
	const kind = kinds[type ?? ''];
	if (rows) return paste(parts, events, rows, kind ?? 'all');
	const plain = text || (html ? (new DOMParser().parseFromString(html, 'text/html').body.textContent ?? '') : '');
	return plain !== '' && kind !== 'formats' && paste(parts, events, cellsOfRows(readTable(plain)), 'plain');
}

// ---- copying ----

/** The selected cells as a text. */
const copiedText = ({ sheet }: GridParts, range: IRange): string => writeTable(shownRows(sheet, range, (row) => !sheet.getRowFiltered(row)));

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** HTML that other spreadsheets read as the same cells: line breaks within a cell, texts that look like numbers. */
function copyHook({ sheet }: GridParts) {
	return {
		id: 'pg-sheet-copy',
		priority: -1,
		onCopyCellContent(row: number, col: number): string {
			const text = sheet.getCell(row, col)?.p?.body?.dataStream.replace(/\r\n$/, '');
			return text?.includes('\r') ? text.split('\r').map(escaped).join('<br style="mso-data-placement:same-cell">') : '';
		},
		onCopyCellStyle(row: number, col: number): Record<string, string> | null {
			const cell = sheet.getCellRaw(row, col);
			const isText = typeof cell?.v === 'string' && cell.t !== CellValueType.NUMBER && cell.t !== CellValueType.BOOLEAN && textContent(cell.v) !== cell.v;
			return isText ? { style: 'mso-number-format:\\@' } : null;
		},
	};
}

interface Internals {
	_errorService: { emit(text: string): void };
	_getPastedRange(cells: unknown): { pastedRange: { rows: number[]; cols: number[] } } | null;
}

/** Names the merged cells that Univer refuses to divide by a paste of its own cells. */
function nameDivided({ sheet }: GridParts, events: PasteEvents, clipboard: ISheetClipboardService): void {
	const univer = clipboard as unknown as Internals;
	const { _errorService: errors, _getPastedRange: pastedRange } = univer;
	let range: Range | null = null;
	univer._getPastedRange = (cells) => {
		const target = pastedRange.call(clipboard, cells);
		const { rows, cols } = target?.pastedRange ?? { rows: [], cols: [] };
		range = rows.length > 0 && cols.length > 0 ? { row: rows[0]!, col: cols[0]!, toRow: rows.at(-1)!, toCol: cols.at(-1)! } : null;
		return target;
	};
	univer._errorService = {
		emit(text) {
			const divided = range && dividedBy(sheet, range);
			if (divided) events.onDivides(rangeName(divided));
			else errors.emit(text);
		},
	};
}

/** Reads and writes the clipboard, until the returned function is called. */
export function addPaste(parts: GridParts, events: PasteEvents): () => void {
	const clipboard = parts.injector.get(ISheetClipboardService);
	const { legacyPaste, paste: pasteItem, generateCopyContent } = clipboard;
	nameDivided(parts, events, clipboard);
	/** A program that copies cells adds a picture of them to their text. */
	const takePictures = (pictures: File[], text: string): boolean => {
		const at = pictures.length > 0 && text === '' ? selectionOf(parts) : null;
		if (at) events.onFiles(pictures, { row: at.row, col: at.col });
		return at !== null;
	};
	clipboard.legacyPaste = async (html = '', text = '', files) => {
		if (takePictures((files ?? []).filter(isPicture), text)) return true;
		if (isOwn(clipboard, html) || (!html && !text)) return legacyPaste.call(clipboard, html, text, files);
		return pasteExternal(parts, events, html, text);
	};
	clipboard.paste = async (item, type) => {
		const read = async (format: string) => (item.types.includes(format) ? (await item.getType(format)).text() : '');
		const [html, text] = [await read('text/html'), await read('text/plain')];
		if (takePictures(await pictureOf(item), text)) return true;
		if (isOwn(clipboard, html) || (!html && !text)) return pasteItem.call(clipboard, item, type);
		return pasteExternal(parts, events, html, text, type);
	};
	clipboard.generateCopyContent = (unitId, subUnitId, range, options) => {
		const copied = generateCopyContent.call(clipboard, unitId, subUnitId, range, options);
		return copied && { ...copied, plain: copiedText(parts, range) };
	};
	const hook = clipboard.addClipboardHook(copyHook(parts) as never);
	const endDrop = addDrop(parts, (files, place) => events.onFiles(files, place));
	return () => {
		endDrop();
		hook.dispose();
	};
}
