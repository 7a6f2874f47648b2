// restructure.ts - the user's own structure edits: sends them, and recognises them in the sheet, where they become entries of
// the undo stack. Insertions and deletions are sent at once. What is made of the present cells (a move, and whatever takes
// a structure edit back) waits until all edits of the user are in the sheet.
import type { Operation, RefusedError, SheetClient } from '../v2/client';
import { isInsert } from '../v2/lines';
import type { Edit, Place, StructureEdit } from '../v2/messages';
import { type Hindrance, MoveBack, Removal, Restoration, type StructureFrame } from './frames';
import { type Cells, type LineMove, type Sheet, cellsOf, changesNothing, followMove, moveEdits, moveOf } from './moving';
import { splitEdits } from './split';
import type { Direction, UndoStack } from './undo';

export interface RestructureEvents {
	/** A structure edit is not made. */
	onHindered(reason: Hindrance | 'offline'): void;
	onSkipped(skipped: Place[]): void;
	/** The undo stack or the number of operations has changed. */
	onChange(): void;
	/** Repeats an operation later. */
	later(run: () => void): void;
}

/** A structure edit of the user that is under way. */
interface Due {
	operation: Operation;
	/** It takes back `frame`, or makes it again. */
	direction: Direction | undefined;
	frame: StructureFrame | undefined;
	/** Edits of the operation that are still to come, by their kinds. */
	kinds: StructureEdit['kind'][];
	move: LineMove | undefined;
	inserted?: StructureEdit;
	/** All formulas, before the move. */
	formulas?: ReturnType<Cells['formulas']>;
	tries: number;
}

/** What is made of the present cells is made again if others have written into them, so many times. */
const mostTries = 8;

export class Restructuring {
	private due: Due[] = [];
	/** What waits for the user's edits to be in the sheet. */
	private waiting: (() => void)[] = [];

	constructor(
		private readonly client: SheetClient,
		private readonly uid: number,
		private readonly stack: UndoStack,
		/** The cells, with all received edits; null while there is no grid. */
		private readonly grid: () => Cells | null,
		private readonly events: RestructureEvents,
	) {}

	private sheet(): Sheet | null {
		const grid = this.grid();
		if (!grid) return null;
		const properties = this.client.replica.properties.list();
		return { read: (row, col) => grid.read(row, col), list: (range) => grid.list(range), formulas: () => grid.formulas(), properties };
	}

	/** Inserts or deletes rows or columns. Returns false if the page is not connected. */
	change(change: StructureEdit): boolean {
		if (!this.client.hello) return false;
		this.send([change], { direction: undefined, frame: undefined, move: undefined, tries: 0 });
		return true;
	}

	/** Moves rows or columns. Returns false if the page is not connected. */
	move(move: LineMove): boolean {
		if (!this.client.hello) return false;
		if (!changesNothing(move)) this.whenSaved(() => this.makeMove(move));
		return true;
	}

	/** Takes the last entry back, or makes it again. Returns false if it is none of a structure edit, and none is under way. */
	step(direction: Direction, again: () => void): boolean {
		if (this.due.length > 0) {
			this.waiting.push(again);
			return true;
		}
		const frame = this.stack.frame(direction);
		if (!frame) return false;
		if (!this.client.hello) this.events.onHindered('offline');
		else this.whenSaved(() => this.reverse(direction));
		return true;
	}

	/** A structure edit is about to be applied. */
	before(change: StructureEdit & { uid: number }): void {
		const due = this.due[0];
		const sheet = this.sheet();
		if (change.uid !== this.uid || !sheet || !due?.kinds.includes(change.kind)) {
			this.stack.move(change);
			for (const { move } of this.due) if (move) this.followMoves(change);
		} else if (due.move) this.beforeMove(due, change, sheet);
		else {
			const { frame, direction } = due;
			const restored = frame instanceof Restoration && direction === 'undo';
			const made = isInsert(change)
				? new Removal(change, frame instanceof Restoration ? frame.cells : [], !restored)
				: new Restoration(change, sheet, !this.client.replica.missing(this.inSheet(change)));
			this.stack.restructured(made, [change], direction, frame);
		}
	}

	private followMoves(change: StructureEdit): void {
		for (const due of this.due) due.move = due.move && followMove(due.move, change);
	}

	/** A move is an insertion and a deletion. Others may have changed it on its way. */
	private beforeMove(due: Due, change: StructureEdit, sheet: Cells): void {
		const { inserted } = due;
		if (isInsert(change) && !inserted) {
			due.inserted = change;
			due.formulas = sheet.formulas();
			return;
		}
		due.kinds = [];
		const changes = inserted ? [inserted, change] : [change];
		if (inserted?.n !== change.n) {
			changes.forEach((edit) => this.stack.move(edit));
			return;
		}
		const move = moveOf(inserted, change);
		this.stack.linesMoved(new MoveBack(move, due.formulas!), move, changes, due.direction, due.frame);
	}

	/** The rows or columns of a change, as far as the sheet goes. */
	private inSheet(change: StructureEdit) {
		const { rows, cols } = this.client.replica;
		const range = cellsOf(change);
		return { ...range, toRow: Math.min(range.toRow, Math.max(rows - 1, range.row)), toCol: Math.min(range.toCol, Math.max(cols - 1, range.col)) };
	}

	private reverse(direction: Direction, tries = 0): void {
		const frame = this.stack.frame(direction);
		const sheet = this.sheet();
		if (!frame || !sheet) return;
		if (frame instanceof MoveBack && !this.client.replica.isWhole) {
			this.hinder('unread');
			return;
		}
		const result = frame.reverse(sheet);
		if (typeof result === 'string') this.hinder(result, frame);
		else if (!this.fits(result.edits)) this.hinder('large', frame);
		else {
			this.send(result.edits, { direction, frame, move: frame instanceof MoveBack ? frame.move : undefined, tries });
			if (result.skipped.length > 0) this.events.onSkipped(result.skipped);
		}
	}

	private hinder(reason: Hindrance, frame?: StructureFrame): void {
		if (frame) this.stack.drop(frame);
		this.events.onHindered(reason);
		this.events.onChange();
		this.goOn();
	}

	private fits(edits: Edit[]): boolean {
		const { hello } = this.client;
		return splitEdits(edits, hello?.maxEdits, hello?.maxBytes).length === 1;
	}

	private makeMove(move: LineMove, tries = 0): void {
		const sheet = this.sheet();
		if (!sheet || changesNothing(move)) return;
		if (!this.client.replica.isWhole) {
			this.hinder('unread');
			return;
		}
		const edits = moveEdits(move, sheet);
		if (!edits || !this.fits(edits)) this.hinder('large');
		else this.send(edits, { direction: undefined, frame: undefined, move, tries });
	}

	/** Insertions and deletions of the user are sent as they are; what is made of cells is refused if others have written them. */
	private send(edits: Edit[], due: Omit<Due, 'operation' | 'kinds'>): void {
		const plain = !due.move && !due.direction;
		this.client.operate(edits, plain).catch(() => {});
		const kinds = edits.flatMap((edit) => ('kind' in edit ? [edit.kind] : []));
		this.due.push({ ...due, kinds, operation: this.client.unfinished.at(-1)! });
		this.events.onChange();
	}

	/** Returns whether the operation was a structure edit of the user; it is in the sheet now. */
	finished(operation: Operation): boolean {
		const due = this.remove(operation);
		if (due?.frame && due.frame === this.stack.frame(due.direction!)) this.stack.drop(due.frame); // others have deleted it
		this.goOn();
		return due !== undefined;
	}

	/** Returns whether the operation was a structure edit of the user. `told` is called if it is not tried again. */
	refused(operation: Operation, { reason }: RefusedError, told: () => void): boolean {
		const due = this.remove(operation);
		if (!due) return false;
		const { move, direction, frame, tries } = due;
		const again = () => {
			if (!direction) this.makeMove(move!, tries + 1);
			else if (this.stack.frame(direction) === frame) this.reverse(direction, tries + 1);
		};
		if ((move || direction) && reason === 'base' && tries < mostTries) this.events.later(() => this.whenSaved(again));
		else told();
		this.goOn();
		return true;
	}

	private remove(operation: Operation): Due | undefined {
		const due = this.due.find((entry) => entry.operation === operation);
		if (due) this.due = this.due.filter((entry) => entry !== due);
		return due;
	}

	/** It is not known what has happened to rows and columns. */
	restart(): void {
		this.due = [];
		this.waiting = [];
		this.stack.forgetStructure();
	}

	private whenSaved(run: () => void): void {
		this.waiting.push(run);
		this.goOn();
	}

	/** Does what waits, when all edits of the user are in the sheet. */
	goOn(): void {
		const saved = () => this.due.length === 0 && this.client.unfinished.length === 0;
		while (this.waiting.length > 0 && this.client.hello && saved()) this.waiting.shift()!();
	}
}

