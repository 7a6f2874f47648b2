// mirror.ts - keeps the grid equal to the sheet. The grid's model is the only copy of the cells.
//
// The user's edits are in the grid before they are in the sheet. While a cell has such an edit, edits by others do not
// reach the grid: the own edit comes later in the sheet's order and replaces them. The cell's state in the sheet is kept
// here, and shown if the own edit is refused. Other edits are collected and shown at most once per frame; structure edits
// are applied at once, so that the grid always has the rows and columns of the replica.
import { type CellStore, contains, keyOf, moveKeys, placeOf } from '../v2/replica';
import { type CellEdit, type Edit, type LoggedStructure, type PropertyEdit, type Range, type Style, isCell } from '../v2/messages';

export interface CellState {
	content: string;
	style: Style;
}

/** The grid, as the mirror uses it. */
export interface Grid {
	/** Shows edits. None of them is reported as the user's. */
	apply(edits: CellEdit[]): void;
	/** Replaces the cells of a range, except those for which `skip` is true. */
	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void;
	move(change: LoggedStructure): void;
}

/** An own cell: how many own edits it has that are not in the sheet, and its state in the sheet (undefined: unknown). */
interface Own {
	count: number;
	content?: string;
	style?: Style;
}

/** Calls `run` in time for the next frame. */
export type Schedule = (run: () => void) => void;

const frameMs = 16;
let lastRun = -frameMs;

/**
 * At once, or in the next animation frame if something has run within the last one. Univer draws at the beginning of a
 * frame, before what has been asked for since: what waits for a frame is drawn in the one after it.
 */
export const nextFrame: Schedule = (run) => {
	const begin = () => {
		lastRun = performance.now();
		try {
			run();
		} finally {
			lastRun = performance.now();
		}
	};
	if (document.hidden) setTimeout(begin, 50);
	else if (performance.now() - lastRun < frameMs) requestAnimationFrame(begin);
	else queueMicrotask(begin); // when the message has been read to its end
};

export class Mirror implements CellStore {
	private own = new Map<string, Own>();
	private waiting = new Map<string, CellEdit>();
	private scheduled = false;

	constructor(
		private readonly grid: Grid,
		private readonly schedule: Schedule,
		/** Called with each edit and its author. */
		private readonly onEdit: (edit: CellEdit, uid: number) => void = () => {},
		private readonly onMove: (change: LoggedStructure) => void = () => {},
		readonly property: (edit: PropertyEdit, uid: number) => void = () => {},
	) {}

	isOwn(row: number, col: number): boolean {
		return this.own.has(keyOf(row, col));
	}

	// ---- the sheet's edits ----

	set(edit: CellEdit, uid: number): void {
		this.onEdit(edit, uid);
		const key = keyOf(edit.row, edit.col);
		const own = this.own.get(key);
		if (own) {
			if (edit.content !== undefined) own.content = edit.content;
			if (edit.style !== undefined) own.style = edit.style;
			return;
		}
		this.wait(key, edit);
	}

	private wait(key: string, edit: CellEdit): void {
		const before = this.waiting.get(key);
		this.waiting.set(key, before ? { ...before, ...edit } : edit);
		if (this.scheduled) return;
		this.scheduled = true;
		this.schedule(() => this.flush());
	}

	/** Shows the collected edits. */
	flush(): void {
		this.scheduled = false;
		if (this.waiting.size === 0) return;
		const edits = [...this.waiting.values()];
		this.waiting.clear();
		this.grid.apply(edits);
	}

	fill(range: Range, cells: CellEdit[]): void {
		this.flush();
		for (const [key, own] of this.own) {
			if (contains(range, ...placeOf(key))) Object.assign(own, { content: '', style: null });
		}
		for (const { row, col, content, style } of cells) {
			const own = this.own.get(keyOf(row, col));
			if (own) Object.assign(own, { content: content ?? '', style: style ?? null });
		}
		this.grid.fill(range, cells, (row, col) => this.isOwn(row, col));
	}

	move(change: LoggedStructure): void {
		this.flush();
		moveKeys(this.own, change);
		this.grid.move(change);
		this.onMove(change);
	}

	/** The cells are to be read again. The grid shows the old ones until then. */
	clear(): void {
		this.waiting.clear();
		for (const own of this.own.values()) own.content = own.style = undefined;
	}

	// ---- the user's edits ----

	/** The user has changed a cell, which was in this state. Call it before the edit is sent. */
	take(row: number, col: number, before: CellState | undefined): void {
		const key = keyOf(row, col);
		const own = this.own.get(key) ?? { count: 0, ...before };
		// What waits is older than the user's change, and is not in the state that the user has changed.
		const { content, style } = this.waiting.get(key) ?? {};
		if (content !== undefined) own.content = content;
		if (style !== undefined) own.style = style;
		this.waiting.delete(key);
		own.count++;
		this.own.set(key, own);
	}

	/** An own edit is in the sheet, or was refused. The grid shows what the sheet has. */
	release(edits: readonly Edit[]): void {
		for (const edit of edits) {
			if (!isCell(edit)) continue;
			const { row, col } = edit;
			const key = keyOf(row, col);
			const own = this.own.get(key);
			if (!own || --own.count > 0) continue;
			this.own.delete(key);
			const { content, style } = own;
			this.wait(key, { row, col, ...(content !== undefined && { content }), ...(style !== undefined && { style }) });
		}
	}
}
