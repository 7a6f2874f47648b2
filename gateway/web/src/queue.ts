// queue.ts - own edits that the gateway has not confirmed yet. No socket, no clock, no grid.
//
// In v1 the confirmation of an edit is its own echo, and echoes come in the order of the edits. Refusals come on their own
// time, with the content that the cell had when the gateway looked. While a cell has edits here, what others write into it
// is not shown: ours comes later in the one order of the sheet and will be what remains. It is remembered, for when ours
// is refused: it is at least as new as the refusal's content, or something newer is still to come.
import type { CellEdit, CellPlace } from './protocol';

interface Pending extends CellEdit {
	sent: boolean;
}

interface Cell {
	list: Pending[];
	/** The newest edit of the cell in the order of the sheet that came since the list was begun. */
	hidden: CellEdit | null;
}

/** What to do with a `modify` that came in. */
export type Incoming =
	/** It confirms an own edit; the cell shows it already. */
	| 'confirmed'
	/** Somebody else's: show it. */
	| 'show'
	/** Somebody else's, but an own edit of the same cell comes after it. */
	| 'hidden';

const keyOf = (place: CellPlace) => `${place.row},${place.col}`;

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

	/** An own edit; it replaces an older one of the cell that was not sent yet. */
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

	/** The edits that have to go out now; they count as sent from here on. */
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

	/** A `modify` came from the gateway. */
	receive(edit: CellEdit, own: boolean): Incoming {
		const cell = this.cells.get(keyOf(edit));
		if (!cell) return 'show';
		cell.hidden = edit;
		const found = own ? cell.list.findIndex((pending) => pending.sent && pending.content === edit.content) : -1;
		if (found < 0) return 'hidden';
		// Those before it have no echo, so they were refused; their refusals are still on the way.
		this.drop(edit, found + 1);
		return 'confirmed';
	}

	/** The gateway refused something about a cell; `content` is what the cell held. `show`: what to show there now. */
	refuse(place: CellPlace, content: string | null): { wasEdit: boolean; show: CellEdit | null } {
		const cell = this.cells.get(keyOf(place));
		if (!cell || !cell.list[0].sent) return { wasEdit: false, show: null };
		this.drop(place, 1);
		if (this.has(place)) return { wasEdit: true, show: null };
		return { wasEdit: true, show: cell.hidden ?? (content === null ? null : { ...place, content }) };
	}

	/**
	 * The connection was lost and a new one delivered the content of the sheet: an edit whose content is there has arrived.
	 * Of the others the newest of each cell is sent again. (When somebody wrote the cell meanwhile, ours lands after it,
	 * as it would have over a slow connection; the log has both.)
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

	/** All that is not confirmed, the newest of each cell: what the grid has to show on top of a snapshot. */
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
