// queue.ts - own edits that the gateway has not confirmed yet. No socket, no clock, no grid.
//
// In v1 the confirmation of an edit is its own echo, and the gateway answers the edits of a connection in their order,
// with an echo or a refusal each. While a cell has edits here, what others write into it is not shown: ours comes later
// in the one order of the sheet and will be what remains.
import type { CellEdit, CellPlace } from './protocol';

interface Pending extends CellEdit {
	sent: boolean;
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
	private cells = new Map<string, Pending[]>();
	private total = 0;

	/** Number of edits that are not confirmed. */
	get size(): number {
		return this.total;
	}

	has(place: CellPlace): boolean {
		return this.cells.has(keyOf(place));
	}

	/** The newest own content of a cell, undefined when nothing is pending. */
	newest(place: CellPlace): CellEdit | undefined {
		return this.cells.get(keyOf(place))?.at(-1);
	}

	/** An own edit; it replaces an older one of the cell that was not sent yet. */
	add(edit: CellEdit): void {
		const key = keyOf(edit);
		const list = this.cells.get(key) ?? [];
		const last = list.at(-1);
		if (last && !last.sent) {
			list[list.length - 1] = { ...edit, info: edit.info === undefined ? last.info : edit.info, sent: false };
			return;
		}
		list.push({ ...edit, sent: false });
		this.cells.set(key, list);
		this.total++;
	}

	/** The edits that have to go out now; they count as sent from here on. */
	takeUnsent(): CellEdit[] {
		const result: CellEdit[] = [];
		for (const list of this.cells.values()) {
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
		const list = this.cells.get(keyOf(edit));
		if (!list) return 'show';
		if (own && list[0].sent && list[0].content === edit.content) {
			this.drop(edit);
			return 'confirmed';
		}
		return 'hidden';
	}

	/** The gateway refused something about a cell: true when it was an edit and no other of the cell is pending. */
	refuse(place: CellPlace): { wasEdit: boolean; showContent: boolean } {
		const list = this.cells.get(keyOf(place));
		if (!list || !list[0].sent) return { wasEdit: false, showContent: false };
		this.drop(place);
		return { wasEdit: true, showContent: !this.has(place) };
	}

	/**
	 * The connection was lost and a new one delivered the content of the sheet: an edit whose content is there has arrived.
	 * Of the others the newest of each cell is sent again. (When somebody wrote the cell meanwhile, ours lands after it,
	 * as it would have over a slow connection; the log has both.)
	 */
	resume(contentOf: (place: CellPlace) => string): void {
		this.total = 0;
		for (const [key, list] of this.cells) {
			const last = list[list.length - 1];
			const arrived = last.sent && last.info === undefined && contentOf(last) === last.content;
			if (arrived) {
				this.cells.delete(key);
				continue;
			}
			const style = list.map((edit) => edit.info).filter((info) => info !== undefined).at(-1);
			this.cells.set(key, [{ ...last, ...(style === undefined ? {} : { info: style }), sent: false }]);
			this.total++;
		}
	}

	/** All that is not confirmed, the newest of each cell: what the grid has to show on top of a snapshot. */
	overlay(): CellEdit[] {
		return [...this.cells.values()].map((list) => toEdit(list[list.length - 1]));
	}

	private drop(place: CellPlace): void {
		const key = keyOf(place);
		const list = this.cells.get(key);
		if (!list) return;
		list.shift();
		this.total--;
		if (list.length === 0) this.cells.delete(key);
	}
}

function toEdit({ row, col, content, info }: Pending): CellEdit {
	return { row, col, content, ...(info === undefined ? {} : { info }) };
}
