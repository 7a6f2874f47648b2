// batch.ts - edits that came in are collected until the next frame, the last of each cell wins: a grid that gets ten
// thousand edits one by one is busy for minutes, in one batch for a tenth of a second.
import type { CellEdit, CellPlace } from './protocol';

export type Schedule = (run: () => void) => void;

/** The next frame, or soon when the page is hidden and there are no frames. */
export const nextFrame: Schedule = (run) => {
	if (document.hidden) setTimeout(run, 100);
	else requestAnimationFrame(() => run());
};

export class EditBatch {
	private cells = new Map<string, CellEdit>();
	private scheduled = false;

	constructor(
		private readonly schedule: Schedule,
		private readonly apply: (edits: CellEdit[]) => void,
	) {}

	add(edits: CellEdit[]): void {
		for (const edit of edits) {
			const key = `${edit.row},${edit.col}`;
			const older = this.cells.get(key);
			// A later edit without a style leaves the style of an earlier one.
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

	/** An own edit of these cells was made after what was collected for them. */
	forget(places: CellPlace[]): void {
		for (const { row, col } of places) this.cells.delete(`${row},${col}`);
	}

	/** Forgets what was collected: newer content replaces it all. */
	clear(): void {
		this.cells.clear();
	}
}
