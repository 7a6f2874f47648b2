// queue.ts - own edits that are not confirmed, and received edits that are not shown yet. No socket, no clock, no grid.
import type { CellEdit, CellPlace } from './protocol';

export const keyOf = ({ row, col }: CellPlace): string => `${row},${col}`;

interface Pending extends CellEdit {
	sent: boolean;
}

interface Cell {
	list: Pending[];
	/** The last edit of the cell, in the sheet's order, that was received since the list was created. */
	hidden: CellEdit | null;
}

/** What to do with a received `modify`. */
export type Incoming =
	/** It confirms an own edit, which is shown already. */
	| 'confirmed'
	/** It is by another user and must be shown. */
	| 'show'
	/** It is by another user, and an own edit of the cell follows it. */
	| 'hidden';

/**
 * Own edits that are not confirmed. In v1 the echo of an edit confirms it, and echoes have the order of the edits. A refusal
 * arrives independently, with the content that the cell had when the gateway checked. While a cell has an edit here, edits
 * by others are not shown: the own edit comes later in the sheet's order and replaces them. The last of them is kept and
 * shown if the own edit is refused, since it is at least as new as the refusal's content.
 */
export class EditQueue {
	private cells = new Map<string, Cell>();
	private total = 0;

	/** Number of edits that are not confirmed. */
	get size(): number {
		return this.total;
	}

	has(place: CellPlace): boolean {
		return this.cells.has(keyOf(place));
	}

	/** Adds an own edit. It replaces an unsent one of the cell. */
	add(edit: CellEdit): void {
		const key = keyOf(edit);
		const cell = this.cells.get(key) ?? { list: [], hidden: null };
		const last = cell.list.at(-1);
		if (last && !last.sent) {
			cell.list[cell.list.length - 1] = { ...edit, info: edit.info === undefined ? last.info : edit.info, sent: false };
			return;
		}
		cell.list.push({ ...edit, sent: false });
		this.cells.set(key, cell);
		this.total++;
	}

	/** Returns the unsent edits and marks them as sent. */
	takeUnsent(): CellEdit[] {
		const result: CellEdit[] = [];
		for (const { list } of this.cells.values()) {
			for (const edit of list) {
				if (edit.sent) continue;
				edit.sent = true;
				result.push(toEdit(edit));
			}
		}
		return result;
	}

	/** Handles a `modify` of the gateway. */
	receive(edit: CellEdit, own: boolean): Incoming {
		const cell = this.cells.get(keyOf(edit));
		if (!cell) return 'show';
		cell.hidden = edit;
		const found = own ? cell.list.findIndex((pending) => pending.sent && pending.content === edit.content) : -1;
		if (found < 0) return 'hidden';
		// Earlier edits without an echo were refused. Their refusals are still to arrive.
		this.drop(edit, found + 1);
		return 'confirmed';
	}

	/** Handles a refusal. `content` is the cell's content then. Returns what to show in the cell. */
	refuse(place: CellPlace, content: string | null): { wasEdit: boolean; show: CellEdit | null } {
		const cell = this.cells.get(keyOf(place));
		if (!cell || !cell.list[0].sent) return { wasEdit: false, show: null };
		this.drop(place, 1);
		if (this.has(place)) return { wasEdit: true, show: null };
		return { wasEdit: true, show: cell.hidden ?? (content === null ? null : { ...place, content }) };
	}

	/**
	 * Handles the snapshot of a new connection. An edit whose content is in the snapshot has arrived. Of the others, the last
	 * of each cell is sent again; it then follows edits that others made meanwhile, as over a slow connection.
	 */
	resume(contentOf: (place: CellPlace) => string): void {
		this.total = 0;
		for (const [key, { list }] of this.cells) {
			const last = list[list.length - 1];
			const arrived = last.sent && last.info === undefined && contentOf(last) === last.content;
			if (arrived) {
				this.cells.delete(key);
				continue;
			}
			const style = list.map((edit) => edit.info).filter((info) => info !== undefined).at(-1);
			this.cells.set(key, { list: [{ ...last, ...(style === undefined ? {} : { info: style }), sent: false }], hidden: null });
			this.total++;
		}
	}

	/** The last unconfirmed edit of each cell, which the grid shows over a snapshot. */
	overlay(): CellEdit[] {
		return [...this.cells.values()].map(({ list }) => toEdit(list[list.length - 1]));
	}

	private drop(place: CellPlace, count: number): void {
		const key = keyOf(place);
		const cell = this.cells.get(key);
		if (!cell) return;
		this.total -= cell.list.splice(0, count).length;
		if (cell.list.length === 0) this.cells.delete(key);
	}
}

function toEdit({ row, col, content, info }: Pending): CellEdit {
	return { row, col, content, ...(info === undefined ? {} : { info }) };
}

export type Schedule = (run: () => void) => void;

/** Runs in the next frame, or after 100 ms if the page is hidden and has no frames. */
export const nextFrame: Schedule = (run) => {
	if (document.hidden) setTimeout(run, 100);
	else requestAnimationFrame(() => run());
};

/**
 * Edits received until the next frame, the last of each cell. Univer takes minutes to apply ten thousand edits one by one,
 * and a tenth of a second for them in one batch.
 */
export class EditBatch {
	private cells = new Map<string, CellEdit>();
	private scheduled = false;

	constructor(
		private readonly schedule: Schedule,
		private readonly apply: (edits: CellEdit[]) => void,
	) {}

	add(edits: CellEdit[]): void {
		for (const edit of edits) {
			const key = keyOf(edit);
			const older = this.cells.get(key);
			// An edit without a style keeps an earlier edit's style.
			this.cells.set(key, older && edit.info === undefined && older.info !== undefined ? { ...edit, info: older.info } : edit);
		}
		if (this.scheduled || this.cells.size === 0) return;
		this.scheduled = true;
		this.schedule(() => this.flush());
	}

	flush(): void {
		this.scheduled = false;
		if (this.cells.size === 0) return;
		const edits = [...this.cells.values()];
		this.cells.clear();
		this.apply(edits);
	}

	/** Drops edits of these cells, which own edits have replaced. */
	forget(places: CellPlace[]): void {
		for (const place of places) this.cells.delete(keyOf(place));
	}

	/** Drops all edits: a new snapshot contains them. */
	clear(): void {
		this.cells.clear();
	}
}
