// structure.ts - how a user inserts, deletes and moves rows and columns: Univer's commands, keys, and items of the menus of
// headers, none of which Univer executes; and what becomes of selections.
import { CommandType, ICommandService, RANGE_TYPE } from '@univerjs/core';
import type { IRange, Univer } from '@univerjs/core';
import { ContextMenuGroup, ContextMenuPosition, IMenuManagerService, MenuItemType } from '@univerjs/ui';
import { t } from '../i18n';
import type { LineMove } from '../sheet/moving';
import { isOfRows, movePlace, moveRange } from '../v2/lines';
import type { Place, Range, StructureEdit } from '../v2/messages';
import { rangeOf } from './cells/reading';

/** The commands with which all others insert or delete rows or columns. */
export const structureCommands: Record<string, StructureEdit['kind']> = {
	'sheet.command.insert-row-by-range': 'insertRows',
	'sheet.command.insert-col-by-range': 'insertColumns',
	'sheet.command.remove-row-by-range': 'deleteRows',
	'sheet.command.remove-col-by-range': 'deleteColumns',
};

export const structureMutations: Record<StructureEdit['kind'], string> = {
	insertRows: 'sheet.mutation.insert-row',
	insertColumns: 'sheet.mutation.insert-col',
	deleteRows: 'sheet.mutation.remove-rows',
	deleteColumns: 'sheet.mutation.remove-col',
};

/** The commands that move rows or columns, by drag of their headers. */
export const moveCommands: Record<string, (params: { fromRange: IRange; toRange: IRange }) => LineMove> = {
	'sheet.command.move-rows': ({ fromRange: { startRow: at, endRow }, toRange }) => ({ rows: true, at, n: endRow - at + 1, to: toRange.startRow }),
	'sheet.command.move-cols': ({ fromRange: { startColumn: at, endColumn }, toRange }) => ({ rows: false, at, n: endColumn - at + 1, to: toRange.startColumn }),
};

/** Whole rows or columns that are selected. */
export interface Lines {
	rows: boolean;
	at: number;
	n: number;
}

/** The selected rows and columns, the last ones first. Empty unless whole ones are selected, and nothing else. */
export function linesOf(selections: readonly { range: IRange }[]): Lines[] {
	const lines = selections.flatMap(({ range }): Lines[] => {
		if (range.rangeType === RANGE_TYPE.ROW) return [{ rows: true, at: range.startRow, n: range.endRow - range.startRow + 1 }];
		if (range.rangeType === RANGE_TYPE.COLUMN) return [{ rows: false, at: range.startColumn, n: range.endColumn - range.startColumn + 1 }];
		return [];
	});
	return lines.length === selections.length ? lines.sort((a, b) => b.at - a.at) : [];
}

export function insertion({ rows, at, n }: Lines): StructureEdit {
	return { kind: rows ? 'insertRows' : 'insertColumns', at, n };
}

export function deletion({ rows, at, n }: Lines): StructureEdit {
	return { kind: rows ? 'deleteRows' : 'deleteColumns', at, n };
}

/** Moves rows or columns by one place; undefined if they are the first ones already. */
export function moveByOne(lines: Lines, back: boolean): LineMove | undefined {
	if (back) return lines.at > 0 ? { ...lines, to: lines.at - 1 } : undefined;
	return { ...lines, to: lines.at + lines.n + 1 };
}

/** Whether a key inserts (Ctrl and plus) or deletes (Ctrl and minus) selected rows and columns. Otherwise it zooms the page. */
export function keyOfStructure(event: KeyboardEvent): 'insert' | 'delete' | undefined {
	if (!(event.ctrlKey || event.metaKey) || event.altKey) return undefined;
	if (event.key === '+' || event.code === 'NumpadAdd' || event.code === 'Equal') return 'insert';
	return event.key === '-' || event.code === 'NumpadSubtract' ? 'delete' : undefined;
}

/** Whether a key moves selected rows and columns (Alt, Shift and an arrow): back, or forth. */
export function keyOfMove(event: KeyboardEvent, { rows }: Lines): 'back' | 'forth' | undefined {
	if (!event.altKey || !event.shiftKey || event.ctrlKey || event.metaKey) return undefined;
	if (event.key === (rows ? 'ArrowUp' : 'ArrowLeft')) return 'back';
	return event.key === (rows ? 'ArrowDown' : 'ArrowRight') ? 'forth' : undefined;
}

/** Adds items that move rows and columns to the menus of the headers. */
export function addMoveItems(univer: Univer, run: (back: boolean) => void): void {
	const injector = univer.__getInjector();
	const commands = injector.get(ICommandService);
	const group = (rows: boolean) => ({
		[ContextMenuGroup.LAYOUT]: Object.fromEntries(
			[true, false].map((back, i) => {
				const name = `${rows ? 'rows' : 'columns'}.${back ? 'back' : 'forth'}`;
				const id = `page.command.move-${name}`;
				commands.registerCommand({ id, type: CommandType.COMMAND, handler: () => (run(back), true) });
				return [id, { order: 20 + i, menuItemFactory: () => ({ id, type: MenuItemType.BUTTON, title: t(`move.${name}`) }) }];
			}),
		),
	});
	injector.get(IMenuManagerService).mergeMenu({ [ContextMenuPosition.ROW_HEADER]: group(true), [ContextMenuPosition.COL_HEADER]: group(false) } as never);
}

export interface Selected {
	range: IRange;
	primary: unknown;
}

/** What takes the place of a selection whose rows or columns are deleted. */
const fallback = (range: Range, change: StructureEdit): Range =>
	isOfRows(change) ? { ...range, row: change.at, toRow: change.at } : { ...range, col: change.at, toCol: change.at };

/** A selection of whole rows or columns (or of all) has all cells of them, and may have no ends. */
function placed({ rangeType }: IRange, range: Range, limit: Place): Range {
	const [ofRows, ofColumns] = [rangeType === RANGE_TYPE.ROW || rangeType === RANGE_TYPE.ALL, rangeType === RANGE_TYPE.COLUMN || rangeType === RANGE_TYPE.ALL];
	const within = (value: number, last: number) => Math.min(value, last);
	return {
		row: ofColumns ? 0 : within(range.row, limit.row),
		toRow: ofColumns ? limit.row : within(range.toRow, limit.row),
		col: ofRows ? 0 : within(range.col, limit.col),
		toCol: ofRows ? limit.col : within(range.toCol, limit.col),
	};
}

/** A selection after a structure edit; undefined if all of it is deleted. limit: the last row and column of the grid. */
export function movedSelection(selection: Selected, change: StructureEdit, limit: Place, instead?: Range): Selected | undefined {
	const { rangeType } = selection.range;
	const across = rangeType === RANGE_TYPE.ALL || rangeType === (isOfRows(change) ? RANGE_TYPE.COLUMN : RANGE_TYPE.ROW);
	const before = rangeOf(selection.range);
	const moved = (across ? before : moveRange(before, change)) ?? instead;
	if (!moved) return undefined;
	const { row, col, toRow, toCol } = placed(selection.range, moved, limit);
	const range = { ...selection.range, startRow: row, startColumn: col, endRow: toRow, endColumn: toCol };
	const old = selection.primary as { actualRow: number; actualColumn: number } | null;
	const place = (old && movePlace({ row: old.actualRow, col: old.actualColumn }, change)) ?? { row, col };
	const primary = old && {
		...old,
		actualRow: place.row,
		actualColumn: place.col,
		startRow: place.row,
		endRow: place.row,
		startColumn: place.col,
		endColumn: place.col,
	};
	return { ...selection, range, primary };
}

/** Selections after a structure edit. If all of them are deleted, what has taken the place of the last one (isGone). */
export function movedSelections(selections: readonly Selected[], change: StructureEdit, limit: Place): { moved: Selected[]; isGone: boolean } {
	const moved = selections.flatMap((selection) => movedSelection(selection, change, limit) ?? []);
	const last = selections.at(-1);
	if (moved.length > 0 || !last) return { moved, isGone: false };
	return { moved: [movedSelection(last, change, limit, fallback(rangeOf(last.range), change))!], isGone: true };
}
