// undo.ts - the user's edits, to take them back and to make them again.
//
// Only what the user wrote last is taken back: a part of a cell (its content or its style) or a property that somebody else has
// written since, or that differs for another reason, is skipped. Structure edits of others move the recorded cells, and the
// references of their formulas. Those of the user are entries of their own (frames.ts).
import { moveContent, movePlace } from '../v2/lines';
import { keyOf, moveKeys, placeOf } from '../v2/replica';
import type { CellEdit, Edit, Place, PropertyEdit, StructureEdit } from '../v2/messages';
import { moveProperty, PropertySet } from '../v2/properties';
import type { CellState } from './mirror';
import { sameStyle } from '../style';
import type { StructureFrame } from './frames';
import { type LineMove, movedPlace } from './moving';
import { ForeignProperties, isPropertyChange, type PropertyChange } from './property_undo';

export interface Change extends Place {
	before: CellState;
	after: CellState;
}

/** What a change writes. */
export const editOf = ({ row, col, before, after }: Change): CellEdit => ({
	...{ row, col },
	...(before.content !== after.content && { content: after.content }),
	...(!sameStyle(before.style, after.style) && { style: after.style }),
});

/** An own change of a property, or of a cell. */
type AnyChange = PropertyChange | Change;

/** The edits that take a change back or make it again, and the cells that are skipped. */
export interface Step {
	edits: Edit[];
	skipped: Place[];
}

const mostEntries = 100;
const contentPart = 1;
const stylePart = 2;

type Entry = AnyChange[] | StructureFrame;
export type Direction = 'undo' | 'redo';

const isFrame = (entry: Entry): entry is StructureFrame => !Array.isArray(entry);

/** Changes after a structure edit. */
function moveChanges(changes: AnyChange[], edit: StructureEdit): AnyChange[] {
	const moved = (state: CellState): CellState => ({ ...state, content: moveContent(state.content, edit) ?? state.content });
	return changes.flatMap((item): AnyChange[] => {
		if (isPropertyChange(item)) return [moveProperty(item, edit) ?? []].flat();
		const place = movePlace(item, edit);
		return place ? [{ ...place, before: moved(item.before), after: moved(item.after) }] : [];
	});
}

/** The entries after a structure edit, each in its own coordinates. */
function moveEntries(entries: Entry[], change: StructureEdit): Entry[] {
	let changes = [change];
	const moved = [...entries].reverse().map((entry) => {
		if (!isFrame(entry)) return changes.reduce(moveChanges, entry);
		changes = changes.flatMap((edit) => entry.follow(edit));
		return entry;
	});
	return moved.reverse().filter((entry) => isFrame(entry) || entry.length > 0);
}

export class UndoStack {
	private undos: Entry[] = [];
	private redos: Entry[] = [];
	/** Parts of recorded cells that somebody else has written last. */
	private foreign = new Map<string, number>();
	private properties = new ForeignProperties();

	get canUndo(): boolean {
		return this.undos.length > 0;
	}

	get canRedo(): boolean {
		return this.redos.length > 0;
	}

	/** The user has changed these cells and properties. */
	push(changes: AnyChange[]): void {
		if (changes.length === 0) return;
		this.redos = [];
		this.undos.push(changes);
		if (this.undos.length > mostEntries) this.undos.shift();
		for (const change of changes) {
			if (isPropertyChange(change)) this.properties.written(change, true);
			else this.written(editOf(change), true);
		}
	}

	/** An edit has arrived in the sheet's order. */
	written({ row, col, content, style }: CellEdit, own: boolean): void {
		if (this.undos.length === 0 && this.redos.length === 0) return;
		const key = keyOf(row, col);
		const parts = (content === undefined ? 0 : contentPart) | (style === undefined ? 0 : stylePart);
		const before = this.foreign.get(key) ?? 0;
		const after = own ? before & ~parts : before | parts;
		if (after === 0) this.foreign.delete(key);
		else this.foreign.set(key, after);
	}

	propertyWritten(edit: PropertyEdit, own: boolean): void {
		if (this.canUndo || this.canRedo) this.properties.written(edit, own);
	}

	/** Somebody else has inserted or deleted rows or columns. */
	move(change: StructureEdit): void {
		moveKeys(this.foreign, change);
		this.properties.move(change);
		this.undos = moveEntries(this.undos, change);
		this.redos = moveEntries(this.redos, change);
	}

	/** The user's own structure edit is in the sheet. `frame` takes it back. It may itself take back `reversed` (make it again). */
	restructured(frame: StructureFrame, changes: StructureEdit[], direction?: Direction, reversed?: StructureFrame): void {
		for (const change of changes) {
			moveKeys(this.foreign, change);
			this.properties.move(change);
		}
		if (!direction) {
			this.redos = [];
			this.undos.push(frame);
			return;
		}
		const [from, to] = direction === 'undo' ? [this.undos, this.redos] : [this.redos, this.undos];
		// What the user has written since it was sent is in the coordinates from before it.
		const at = reversed ? from.indexOf(reversed) : -1;
		const later = at < 0 ? [] : from.splice(at).slice(1);
		from.push(...changes.reduce(moveEntries, later));
		if (later.length === 0) to.push(frame);
	}

	/** The user's own move is in the sheet. */
	linesMoved(frame: StructureFrame, move: LineMove, changes: StructureEdit[], direction?: Direction, reversed?: StructureFrame): void {
		const foreign = [...this.foreign];
		this.restructured(frame, changes, direction, reversed);
		this.foreign = new Map(
			foreign.map(([key, parts]) => {
				const [row, col] = placeOf(key);
				const place = movedPlace(move, { row, col });
				return [keyOf(place.row, place.col), parts];
			}),
		);
	}

	/** The last entry, if it is a structure edit. */
	frame(direction: Direction): StructureFrame | undefined {
		const entry = (direction === 'undo' ? this.undos : this.redos).at(-1);
		return entry && isFrame(entry) ? entry : undefined;
	}

	/** The last structure edit, below whatever the user has written since. */
	lastFrame(direction: Direction): StructureFrame | undefined {
		return (direction === 'undo' ? this.undos : this.redos).filter(isFrame).at(-1);
	}

	/** A structure edit is not taken back: the entries below it are in the coordinates after it from now on. */
	drop(frame: StructureFrame): void {
		for (const entries of [this.undos, this.redos]) {
			const at = entries.indexOf(frame);
			if (at >= 0) entries.splice(0, at + 1, ...frame.changes().reduce(moveEntries, entries.slice(0, at)));
		}
	}

	/** It is not known where rows and columns have moved. */
	forgetStructure(): void {
		const known = (entries: Entry[]): Entry[] => entries.slice(entries.map(isFrame).lastIndexOf(true) + 1);
		this.undos = known(this.undos);
		this.redos = known(this.redos);
	}

	/** What takes the last change back. Null: there is nothing to take back. */
	undo(state: (row: number, col: number) => CellState, set = new PropertySet()): Step | null {
		return this.swap(this.undos, this.redos, state, set);
	}

	redo(state: (row: number, col: number) => CellState, set = new PropertySet()): Step | null {
		return this.swap(this.redos, this.undos, state, set);
	}

	private swap(from: Entry[], to: Entry[], state: (row: number, col: number) => CellState, set: PropertySet): Step | null {
		const changes = from.at(-1);
		if (!changes || isFrame(changes)) return null;
		from.pop();
		const edits: Edit[] = [];
		const skipped: Place[] = [];
		const done: AnyChange[] = [];
		for (const change of changes) {
			if (isPropertyChange(change)) {
				const back = this.properties.takeBack(change, set);
				if (!back) {
					skipped.push({ row: change.row, col: change.col });
					continue;
				}
				const { before: _before, ...edit } = back;
				edits.push(edit);
				done.push(back);
				continue;
			}
			const { row, col, before, after } = change;
			const now = state(row, col);
			const foreign = this.foreign.get(keyOf(row, col)) ?? 0;
			const edit: CellEdit = { row, col };
			let skips = false;
			if (before.content !== after.content) {
				if (foreign & contentPart || now.content !== after.content) skips = true;
				else edit.content = before.content;
			}
			if (!sameStyle(before.style, after.style)) {
				if (foreign & stylePart || !sameStyle(now.style, after.style)) skips = true;
				else edit.style = before.style;
			}
			if (skips) skipped.push({ row, col });
			if (edit.content === undefined && edit.style === undefined) continue;
			edits.push(edit);
			done.push({ row, col, before: now, after: { content: edit.content ?? now.content, style: edit.style === undefined ? now.style : edit.style } });
		}
		if (done.length > 0) to.push(done);
		return { edits, skipped };
	}
}
