// pointers - what points at cells besides selections and the cell editor, and moves with them when rows or columns are inserted
// or deleted: what was copied or cut, Univer's marks, menus, drags, and ranges that the page has asked about.
//
// What cannot be moved is dropped, and the user is told.
import { type Injector, type IRange, UniverInstanceType } from '@univerjs/core';
import { IRenderManagerService } from '@univerjs/engine-render';
import { AutoFillController, IAutoFillService } from '@univerjs/sheets';
import { ISheetSelectionRenderService } from '@univerjs/sheets-ui';
import { IContextMenuService } from '@univerjs/ui';
import { moveRange } from '../../v2/lines';
import type { Place, Range, StructureEdit } from '../../v2/messages';
import { rangeOf } from '../cells/reading';
import { followCopies, marksOf, moveClipboard, type Marks } from './clipboard';

/** Commands that the end of a drag runs, with the rows and columns that the drag began with. */
const drags = new Set(
	['move-range', 'auto-fill', 'move-rows', 'move-cols', 'set-frozen', 'delta-row-height', 'delta-column-width'].map((name) => `sheet.command.${name}`),
);

/** Ranges of a question that is being asked. */
export interface Tracked {
	/** Where they are now; null if one of them is deleted. */
	ranges: Range[] | null;
	end(): void;
}

export class Pointers {
	private readonly tracked = new Set<Tracked>();
	private readonly listening = new AbortController();
	private isDown = false;
	/** Rows or columns have moved since the mouse was pressed. */
	private moved = false;

	/** told: shows a message (`blocked.KIND`). */
	constructor(
		private readonly injector: Injector,
		host: HTMLElement,
		private readonly told: (kind: string) => void,
	) {
		const { signal } = this.listening;
		const begin = (isDown: boolean) => () => {
			this.isDown = isDown;
			this.moved = false;
		};
		host.addEventListener('pointerdown', begin(true), { capture: true, signal });
		window.addEventListener('keydown', (event) => !event.repeat && !this.isDown && begin(false)(), { capture: true, signal });
		for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, () => (this.isDown = false), { capture: true, signal });
	}

	/** Univer has its services as soon as there is a grid. */
	start(): void {
		followCopies(this.injector, this.told);
	}

	/** The ranges move with their cells, until the question is answered. */
	track(ranges: Range[]): Tracked {
		const tracked: Tracked = { ranges, end: () => this.tracked.delete(tracked) };
		this.tracked.add(tracked);
		return tracked;
	}

	/** What Univer drops when the grid changes. */
	marks(): Marks {
		return marksOf(this.injector);
	}

	/** Call it after the grid has changed. marks: those before. limit: its last row and column. isGone: no selected cell is left. */
	move(marks: Marks, change: StructureEdit, limit: Place, isGone: boolean): void {
		if (this.isDown) this.moved = true;
		const lost = moveClipboard(this.injector, marks, change, limit);
		if (lost) this.told(lost);
		for (const each of this.tracked) {
			const ranges = each.ranges?.map((range) => moveRange(range, change));
			each.ranges = ranges && !ranges.includes(undefined) ? (ranges as Range[]) : null;
		}
		this.moveStart(change);
		// The choice between copies and series refers to the cells that were filled.
		this.injector.get(AutoFillController).quit();
		this.injector.get(IAutoFillService).setShowMenu(false);
		const menu = this.injector.get(IContextMenuService);
		if (!isGone || !menu.visible) return;
		menu.hideContextMenu();
		this.told('gone');
	}

	/** Moves the cell at which a selection by the mouse was begun. */
	private moveStart(change: StructureEdit): void {
		for (const [, render] of this.injector.get(IRenderManagerService).getRenderAll()) {
			if (render.type !== UniverInstanceType.UNIVER_SHEET) continue;
			const selecting = render.with(ISheetSelectionRenderService) as unknown as { _startRangeWhenPointerDown: IRange };
			const moved = moveRange(rangeOf(selecting._startRangeWhenPointerDown), change);
			if (moved)
				Object.assign(selecting._startRangeWhenPointerDown, { startRow: moved.row, endRow: moved.toRow, startColumn: moved.col, endColumn: moved.toCol });
		}
	}

	/** Whether a command ends a drag that began before rows or columns moved. */
	refuses(id: string): boolean {
		return this.moved && drags.has(id);
	}

	dispose(): void {
		this.listening.abort();
	}
}
