// restructure.ts - the user's own structure edits: sends them, and recognises them in the sheet, where they become entries of
// the undo stack. Insertions and deletions are sent at once. What is made of the present cells (a move, and whatever takes
// a structure edit back) waits until all edits of the user are in the sheet. Later structure edits and steps of undo wait
// behind it, so that all take effect in the order in which the user has asked for them.
import type { Operation, RefusedError, SheetClient } from '../v2/client';
import { isInsert, transform } from '../v2/lines';
import type { Edit, Place, StructureEdit } from '../v2/messages';
import { withOwn } from './arrange';
import { type Hindrance, MoveBack, Removal, Restoration, type StructureFrame } from './frames';
import { type Cells, type LineMove, type Sheet, cellsOf, changesNothing, followMove, moveChange, moveEdits, moveMove, moveOf } from './moving';
import { splitEdits } from './split';
import type { Direction, UndoStack } from './undo';

export interface RestructureEvents {
	/** A structure edit is not made. */
	onHindered(reason: Hindrance | 'offline' | 'left'): void;
	onSkipped(skipped: Place[]): void;
	/** The undo stack or the number of operations has changed. */
	onChange(): void;
	/** Repeats an operation later. */
	later(run: () => void): void;
}

/** What the user has asked for, in the coordinates of the grid: insertions and deletions, a move, or a step. */
interface Request {
	changes?: StructureEdit[];
	move?: LineMove | undefined;
	direction?: Direction;
	/** What the step takes back or makes again; undefined: the last entry of that time. */
	frame?: StructureFrame | undefined;
	/** Makes the step, if `frame` is undefined. */
	again?: () => void;
	tries: number;
	/** It was refused, and is made again a moment later. */
	pauses?: boolean;
}

/** A request that is under way. */
interface Due extends Request {
	operation: Operation;
	/** Edits of the operation that are still to come, by their kinds. */
	kinds: StructureEdit['kind'][];
	inserted?: StructureEdit;
	/** All formulas, before the move. */
	formulas?: ReturnType<Cells['formulas']>;
}

/** What is made of the present cells is made again if others have written into them, so many times. */
const mostTries = 8;

export class Restructuring {
	private due: Due[] = [];
	/** Requests that wait for the user's edits to be in the sheet, and for those before them. */
	private waiting: Request[] = [];
	/** The first request that waited is being made. */
	private going = false;

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
		const properties = withOwn(this.client.replica.properties, this.client.unfinished).list();
		return { read: (row, col) => grid.read(row, col), list: (range) => grid.list(range), formulas: () => grid.formulas(), properties };
	}

	/** How many requests wait. */
	get waits(): number {
		return this.waiting.length;
	}

	/** Inserts or deletes rows or columns. Returns false if the page is not connected. */
	change(change: StructureEdit): boolean {
		if (!this.client.hello) return false;
		const request = { changes: [change], tries: 0 };
		if (this.waiting.length > 0 || this.due.some(({ changes }) => !changes)) this.waiting.push(request);
		else this.make(request);
		return true;
	}

	/** Moves rows or columns. Returns false if the page is not connected. */
	move(move: LineMove): boolean {
		if (!this.client.hello) return false;
		this.whenSaved({ move, tries: 0 });
		return true;
	}

	/** Takes the last entry back, or makes it again. Returns false if it is none of a structure edit, and none is under way. */
	step(direction: Direction, again: () => void): boolean {
		if (!this.going && this.due.length + this.waiting.length > 0) {
			this.waiting.push({ direction, again, tries: 0 });
			return true;
		}
		const frame = this.stack.frame(direction);
		if (!frame) return false;
		const request = { direction, frame, tries: 0 };
		if (!this.client.hello) this.events.onHindered('offline');
		else if (this.going) this.make(request);
		else this.whenSaved(request);
		return true;
	}

	/** A structure edit is about to be applied. */
	before(change: StructureEdit & { uid: number }): void {
		const due = this.due[0];
		const sheet = this.sheet();
		const own = change.uid === this.uid && sheet !== null && due?.kinds.includes(change.kind);
		if (!own || !due?.move) this.followWaiting(change);
		if (!own) {
			this.stack.move(change);
			for (const other of this.due) other.move &&= followMove(other.move, change);
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

	private followWaiting(change: StructureEdit): void {
		for (const request of this.waiting) {
			request.changes &&= transform(request.changes, [change]) as StructureEdit[];
			request.move &&= followMove(request.move, change);
		}
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
			changes.forEach((edit) => {
				this.stack.move(edit);
				this.followWaiting(edit);
			});
			return;
		}
		const move = moveOf(inserted, change);
		for (const request of this.waiting) {
			request.changes &&= request.changes.flatMap((edit) => moveChange(move, edit));
			request.move &&= moveMove(move, request.move);
		}
		this.stack.linesMoved(new MoveBack(move, due.formulas!), move, changes, due.direction, due.frame);
	}

	/** The rows or columns of a change, as far as the sheet goes. */
	private inSheet(change: StructureEdit) {
		const { rows, cols } = this.client.replica;
		const range = cellsOf(change);
		return { ...range, toRow: Math.min(range.toRow, Math.max(rows - 1, range.row)), toCol: Math.min(range.toCol, Math.max(cols - 1, range.col)) };
	}

	private make(request: Request): void {
		const { changes, frame, again } = request;
		if (changes) this.send(changes, request);
		else if (frame) this.reverse(frame, request);
		else if (again) again();
		else this.makeMove(request);
	}

	private reverse(frame: StructureFrame, request: Request): void {
		const sheet = this.sheet();
		if (!sheet || this.stack.lastFrame(request.direction!) !== frame) return; // the user has written since, which ends redo
		if (frame instanceof MoveBack && !this.client.replica.isWhole) {
			this.hinder('unread');
			return;
		}
		const result = frame.reverse(sheet);
		if (typeof result === 'string') this.hinder(result, frame);
		else if (!this.fits(result.edits)) this.hinder('large', frame);
		else {
			this.send(result.edits, { ...request, move: frame instanceof MoveBack ? frame.move : undefined });
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

	private makeMove(request: Request): void {
		const { move } = request;
		const sheet = this.sheet();
		if (!sheet || !move || changesNothing(move)) return;
		if (!this.client.replica.isWhole) {
			this.hinder('unread');
			return;
		}
		const edits = moveEdits(move, sheet);
		if (!edits || !this.fits(edits)) this.hinder('large');
		else this.send(edits, request);
	}

	/** Insertions and deletions of the user are sent as they are; what is made of cells is refused if others have written them. */
	private send(edits: Edit[], request: Request): void {
		if (edits.length === 0) return; // others have deleted the rows or columns
		this.client.operate(edits, request.changes ? undefined : this.client.replica.seq).catch(() => {});
		const kinds = edits.flatMap((edit) => ('kind' in edit ? [edit.kind] : []));
		this.due.push({ ...request, kinds, operation: this.client.unfinished.at(-1)! });
		this.events.onChange();
	}

	/** Returns whether the operation was a structure edit of the user; it is in the sheet now. */
	finished(operation: Operation): boolean {
		const due = this.remove(operation);
		if (due?.frame && due.frame === this.stack.lastFrame(due.direction!)) this.stack.drop(due.frame); // others have deleted it
		// A step that was asked for meanwhile takes this edit back, whatever the user writes until then.
		const next = this.waiting[0];
		if (due && this.due.length === 0 && next?.again) next.frame ??= this.stack.frame(next.direction!);
		this.goOn();
		return due !== undefined;
	}

	/** Returns whether the operation was a structure edit of the user. `told` is called if it is not tried again. */
	refused(operation: Operation, { reason }: RefusedError, told: () => void): boolean {
		const due = this.remove(operation);
		if (!due) return false;
		const { changes, move, direction, frame, tries } = due;
		if (!changes && reason === 'base' && tries < mostTries) {
			const request: Request = { move, ...(direction && { direction }), frame, tries: tries + 1, pauses: true };
			this.waiting.unshift(request);
			this.events.later(() => {
				request.pauses = false;
				this.goOn();
			});
		} else told();
		this.goOn();
		return true;
	}

	private remove(operation: Operation): Due | undefined {
		const due = this.due.find((entry) => entry.operation === operation);
		if (due) this.due = this.due.filter((entry) => entry !== due);
		return due;
	}

	/** The page is left. Says so if requests are lost. */
	leave(): void {
		this.goOn(true);
		if (this.waiting.length > 0) this.events.onHindered('left');
		this.waiting = [];
	}

	/** It is not known what has happened to rows and columns. */
	restart(): void {
		if (this.waiting.length > 0) this.events.onHindered('offline');
		this.due = [];
		this.waiting = [];
		this.stack.forgetStructure();
	}

	private whenSaved(request: Request): void {
		this.waiting.push(request);
		this.goOn();
	}

	/**
	 * Makes the requests that wait, when all edits of the user are in the sheet. leaving: the page may not live until then. It
	 * makes and stores the first one, behind the user's edits; those behind it need its result.
	 */
	goOn(leaving = false): void {
		if (this.going) return;
		this.going = true;
		try {
			const saved = () => this.client.hello && !this.waiting[0]!.pauses && this.client.unfinished.length === 0;
			while (this.waiting.length > 0 && this.due.length === 0 && (leaving || saved())) this.make(this.waiting.shift()!);
		} finally {
			this.going = false;
		}
	}
}
