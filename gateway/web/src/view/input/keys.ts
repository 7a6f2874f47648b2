// keys.ts - keys of spreadsheets that Univer lacks: Home, End, Page Up and Down, with Ctrl the corners, with Shift a range;
// Shift+Tab and Shift+Enter move back; Shift+Space and Ctrl+Space select rows and columns; Ctrl+9 and Ctrl+0 hide them, with Shift they are
// shown again; Ctrl+; and Ctrl+Shift+; write the date and the time; Shift+F10 opens the menu.
import { CommandType, RANGE_TYPE } from '@univerjs/core';
import type { ICellData, IRange } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { IShortcutService, KeyCode, MetaKeys } from '@univerjs/ui';
import type { Place } from '../../v2/messages';
import { moveCursor } from './cell-editor';
import { cellOfContent } from '../../cell';
import { openMenu } from './menu';
import { canvasOf, hasContent, reveal, select, selectionOf, type GridParts } from '../parts';

export interface KeyParts extends GridParts {
	/** The last row and column of the sheet, if cells have not been read; null: they all have. */
	unreadEnd(): Place | null;
}

/** The last row and the last column that have content, or may have. */
function lastUsed({ sheet, unreadEnd }: KeyParts): Place {
	const last = { ...(unreadEnd() ?? { row: 0, col: 0 }) };
	sheet.getCellMatrix().forValue((row, col, cell) => {
		if (!hasContent(cell)) return;
		last.row = Math.max(last.row, row);
		last.col = Math.max(last.col, col);
	});
	return last;
}

function lastOfRow({ sheet }: GridParts, row: number): number {
	const cells = sheet.getCellMatrix().getMatrix()[row] ?? {};
	return Object.entries(cells).reduce((last, [col, cell]) => (hasContent(cell) ? Math.max(last, Number(col)) : last), 0);
}

/** Where a key moves to from a cell; null if it moves nowhere. */
function target(parts: KeyParts, { key, ctrlKey }: KeyboardEvent, { row, col }: Place): Place | null {
	const { sheet } = parts;
	if (key === 'Home') return ctrlKey ? { row: 0, col: 0 } : { row, col: 0 };
	if (key === 'End') return ctrlKey ? lastUsed(parts) : { row, col: lastOfRow(parts, row) };
	if (ctrlKey || (key !== 'PageDown' && key !== 'PageUp')) return null;
	const visible = parts.visible();
	const screen = visible ? Math.max(1, visible.toRow - visible.row - 1) : 1;
	return { row: Math.min(Math.max(row + (key === 'PageDown' ? screen : -screen), 0), sheet.getRowCount() - 1), col };
}

/** The range from the cell at which it was begun to another one. */
function between(from: Place, to: Place): IRange {
	return {
		startRow: Math.min(from.row, to.row),
		endRow: Math.max(from.row, to.row),
		startColumn: Math.min(from.col, to.col),
		endColumn: Math.max(from.col, to.col),
	};
}

function write({ commands, sheet }: GridParts, { row, col }: Place, cell: ICellData | null): void {
	const [unitId, subUnitId] = [sheet.getUnitId(), sheet.getSheetId()];
	const range = { startRow: row, endRow: row, startColumn: col, endColumn: col };
	void commands.executeCommand('sheet.command.set-range-values', { unitId, subUnitId, range, value: { ...cell, f: null, si: null, p: null } });
}

const two = (n: number) => String(n).padStart(2, '0');

/** Today, as the user's clock shows it. */
function dateNow(): ICellData | null {
	const now = new Date();
	return cellOfContent(`${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`);
}

function timeNow(): ICellData | null {
	const now = new Date();
	return cellOfContent(`${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`);
}

/** Hides the selected rows or columns, or shows the hidden ones among them. */
function hide({ injector, commands, sheet }: GridParts, rows: boolean, hidden: boolean): void {
	const [unitId, subUnitId] = [sheet.getUnitId(), sheet.getSheetId()];
	// A whole column may have no first row.
	const selected = injector
		.get(SheetsSelectionsService)
		.getCurrentSelections()
		.flatMap(({ range }) => (Number.isNaN(rows ? range.startRow : range.startColumn) ? [] : [range]));
	const lines = (range: IRange): IRange[] => {
		if (rows)
			return hidden
				? [{ ...range, startColumn: 0, endColumn: sheet.getColumnCount() - 1, rangeType: RANGE_TYPE.ROW }]
				: sheet.getHiddenRows(range.startRow, range.endRow);
		return hidden
			? [{ ...range, startRow: 0, endRow: sheet.getRowCount() - 1, rangeType: RANGE_TYPE.COLUMN }]
			: sheet.getHiddenCols(range.startColumn, range.endColumn);
	};
	const ranges = selected.flatMap(lines);
	const name = rows ? (hidden ? 'set-rows-hidden' : 'set-specific-rows-visible') : hidden ? 'set-col-hidden' : 'set-col-visible-on-cols';
	if (ranges.length > 0) void commands.executeCommand(`sheet.command.${name}`, { unitId, subUnitId, ranges });
}

/** The key that writes ; without Shift. With Shift it writes something else on many keyboards. */
let semicolonCode = 'Semicolon';

interface Keyboard {
	getLayoutMap(): Promise<Map<string, string>>;
}

/** Not all browsers tell the layout. */
function readLayout(): void {
	const { keyboard } = navigator as Navigator & { keyboard?: Keyboard };
	keyboard?.getLayoutMap().then(
		(layout) => {
			for (const [code, letter] of layout) if (letter === ';') semicolonCode = code;
		},
		() => {},
	);
}

function isSemicolon({ key, code }: KeyboardEvent): boolean {
	return /^[;:]$/.test(key) || (code === semicolonCode && !/^\p{L}$/u.test(key));
}

/** Runs the command of a key. Returns false if the key has none. */
function run(parts: KeyParts, event: KeyboardEvent): boolean {
	const { sheet } = parts;
	const { key, code, ctrlKey, shiftKey, altKey, metaKey } = event;
	const at = selectionOf(parts);
	if (!at || altKey || metaKey) return false;
	const to = target(parts, event, shiftKey ? farCorner(at) : at);
	if (to) {
		select(parts, shiftKey ? between(at, to) : between(to, to), shiftKey ? at : to);
		reveal(parts, to);
		return true;
	}
	if (key === ' ' && ctrlKey !== shiftKey) {
		const range = shiftKey
			? { startRow: at.range.startRow, endRow: at.range.endRow, startColumn: 0, endColumn: sheet.getColumnCount() - 1, rangeType: RANGE_TYPE.ROW }
			: { startRow: 0, endRow: sheet.getRowCount() - 1, startColumn: at.range.startColumn, endColumn: at.range.endColumn, rangeType: RANGE_TYPE.COLUMN };
		select(parts, range, at);
		return true;
	}
	// With Shift, `key` is what the keyboard has above the digit.
	if (ctrlKey && (code === 'Digit9' || code === 'Digit0')) {
		hide(parts, code === 'Digit9', !shiftKey);
		return true;
	}
	if (ctrlKey && isSemicolon(event)) {
		write(parts, at, (code === semicolonCode ? shiftKey : key === ':') ? timeNow() : dateNow());
		return true;
	}
	if (key === 'ContextMenu' || (key === 'F10' && shiftKey && !ctrlKey)) {
		openMenu(parts, at);
		return true;
	}
	return false;
}

/** The corner of the selection that is opposite to its cell. */
function farCorner({ range, row, col }: Place & { range: IRange }): Place {
	return { row: range.startRow === row ? range.endRow : range.startRow, col: range.startColumn === col ? range.endColumn : range.startColumn };
}

/** Whether keys go to the cells: to the canvas, or to the hidden editor in which Univer takes what is typed. */
function hasFocus({ host }: GridParts): boolean {
	const focused = document.activeElement;
	return focused === canvasOf(host) || (focused instanceof HTMLElement && host.contains(focused) && focused.isContentEditable);
}

/** Univer's own Shift+Tab and Shift+Enter throw, or stay, if one cell is selected; in a range they move. */
function addPreviousCell(parts: GridParts, name: string, binding: number, rows: number, cols: number): () => void {
	const id = `pg-sheet.command.${name}`;
	const handler = () => {
		const at = selectionOf(parts);
		if (!at) return false;
		const to = { row: Math.max(at.row - rows, 0), col: Math.max(at.col - cols, 0) };
		select(parts, between(to, to), to);
		reveal(parts, to);
		return true;
	};
	const preconditions = () => {
		const range = selectionOf(parts)?.range;
		return hasFocus(parts) && !parts.isEditing() && range?.startRow === range?.endRow && range?.startColumn === range?.endColumn;
	};
	const command = parts.commands.registerCommand({ id, type: CommandType.COMMAND, handler });
	const shortcut = parts.injector.get(IShortcutService).registerShortcut({ id, binding, priority: 1000, preconditions });
	return () => {
		shortcut.dispose();
		command.dispose();
	};
}

/** Listens until the returned function is called. */
export function addKeys(parts: KeyParts): () => void {
	const listen = (event: KeyboardEvent) => {
		if (event.isComposing || !hasFocus(parts) || !(parts.isEditing() ? moveCursor(parts.injector, event) : run(parts, event))) return;
		event.preventDefault();
		event.stopImmediatePropagation();
	};
	const removals = [
		addPreviousCell(parts, 'previous-cell', KeyCode.TAB | MetaKeys.SHIFT, 0, 1),
		addPreviousCell(parts, 'upper-cell', KeyCode.ENTER | MetaKeys.SHIFT, 1, 0),
	];
	readLayout();
	window.addEventListener('keydown', listen, { capture: true });
	return () => {
		removals.forEach((remove) => remove());
		window.removeEventListener('keydown', listen, { capture: true });
	};
}
