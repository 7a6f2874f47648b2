// parts.ts - what the files that add to the grid (keys.ts, menu.ts, touch.ts) get of it.
import type { ICellData, ICommandService, Injector, IRange, Nullable, Worksheet } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import type { Place, Range } from '../v2/messages';

export interface GridParts {
	/** The element of the grid, with toolbar and cells. */
	host: HTMLElement;
	injector: Injector;
	commands: ICommandService;
	sheet: Worksheet;
	isEditing(): boolean;
	/** The rows and columns that are visible. */
	visible(): Range | null;
	/** The upper left corner of a range in the window; null if it is not visible. */
	cornerOf(range: Range): { x: number; y: number } | null;
}

/** The canvas of the cells, not that of the cell editor. */
export function canvasOf(host: HTMLElement): HTMLCanvasElement | null {
	return host.querySelector('canvas[id^="univer-sheet-main-canvas"]');
}

/** The selected range, and the cell in it from which keys start. */
export function selectionOf({ injector }: GridParts): (Place & { range: IRange }) | null {
	const last = injector.get(SheetsSelectionsService).getCurrentLastSelection();
	return last?.primary ? { range: last.range, row: last.primary.actualRow, col: last.primary.actualColumn } : null;
}

export function select({ commands, sheet }: GridParts, range: IRange, { row, col }: Place): void {
	const primary = { actualRow: row, actualColumn: col, startRow: row, endRow: row, startColumn: col, endColumn: col, isMerged: false, isMergedMainCell: false };
	const [unitId, subUnitId] = [sheet.getUnitId(), sheet.getSheetId()];
	commands.syncExecuteCommand('sheet.operation.set-selections', { unitId, subUnitId, selections: [{ range, primary, style: null }] });
}

/** Scrolls, if a cell is not visible. */
export function reveal({ commands }: Pick<GridParts, 'commands'>, { row, col }: Place): void {
	void commands.executeCommand('sheet.command.scroll-to-cell', { range: { startRow: row, endRow: row, startColumn: col, endColumn: col } });
}

export function hasContent(cell: Nullable<ICellData>): boolean {
	return !!cell && ((cell.v !== undefined && cell.v !== null && cell.v !== '') || !!cell.f || !!cell.si || !!cell.p);
}
