// undo.ts - the user's edits of cells, to take them back and to make them again.
//
// Only what the user wrote last is taken back: a part of a cell (its content or its style) that somebody else has written
// since, or that differs for another reason, is skipped. Structure edits move the recorded cells.
import { movePlace } from '../v2/lines';
import { keyOf, moveKeys } from '../v2/replica';
import type { CellEdit, Place, StructureEdit } from '../v2/messages';
import type { CellState } from './mirror';
import { sameStyle } from '../style';

export interface Change extends Place {
	before: CellState;
	after: CellState;
}

const mostEntries = 100;
const contentPart = 1;
const stylePart = 2;

export class UndoStack {
	private undos: Change[][] = [];
	private redos: Change[][] = [];
	/** Parts of recorded cells that somebody else has written last. */
	private foreign = new Map<string, number>();

	get canUndo(): boolean {
		return this.undos.length > 0;
	}

	get canRedo(): boolean {
		return this.redos.length > 0;
	}

	/** The user has changed these cells. */
	push(changes: Change[]): void {
		this.redos = [];
		this.undos.push(changes);
		if (this.undos.length > mostEntries) this.undos.shift();
		if (this.foreign.size > 0) for (const { row, col } of changes) this.foreign.delete(keyOf(row, col));
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

	/** A structure edit has changed the references of a formula: nobody has written another one. */
	rewritten(row: number, col: number, before: string, after: string): void {
		const renew = (state: CellState) => (state.content === before ? { ...state, content: after } : state);
		for (const changes of [...this.undos, ...this.redos]) {
			for (const change of changes) {
				if (change.row !== row || change.col !== col) continue;
				change.before = renew(change.before);
				change.after = renew(change.after);
			}
		}
	}

	move(change: StructureEdit): void {
		moveKeys(this.foreign, change);
		const moved = (entries: Change[][]) =>
			entries
				.map((changes) => changes.flatMap((cell) => { const place = movePlace(cell, change); return place ? [{ ...cell, ...place }] : []; }))
				.filter((changes) => changes.length > 0);
		this.undos = moved(this.undos);
		this.redos = moved(this.redos);
	}

	/** The edits that take the last change back, and the cells that are skipped. Null: there is nothing to take back. */
	undo(state: (row: number, col: number) => CellState): { edits: CellEdit[]; skipped: Place[] } | null {
		return this.swap(this.undos, this.redos, state);
	}

	redo(state: (row: number, col: number) => CellState): { edits: CellEdit[]; skipped: Place[] } | null {
		return this.swap(this.redos, this.undos, state);
	}

	private swap(from: Change[][], to: Change[][], state: (row: number, col: number) => CellState): { edits: CellEdit[]; skipped: Place[] } | null {
		const changes = from.pop();
		if (!changes) return null;
		const edits: CellEdit[] = [];
		const skipped: Place[] = [];
		const done: Change[] = [];
		for (const change of changes) {
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
