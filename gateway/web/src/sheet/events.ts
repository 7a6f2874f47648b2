// events.ts - the state of an open sheet, and what the session tells the page.
import type { CellEdit, Edit, Hello, Place, Reason, Role, StructureEdit } from '../v2/messages';
import type { Hindrance } from './frames';
import type { Mark } from './presence';
export type Phase = 'connecting' | 'connected' | 'reconnecting' | 'silent' | 'stopped';

export interface Status {
	phase: Phase;
	/** Number of own edits that are not confirmed. */
	unsaved: number;
	/** Cells are still being read. */
	loading: boolean;
	/** The sheet is too large to be read as a whole: formulas may lack cells. */
	partial: boolean;
	/** A transaction that has locked the sheet, so that edits wait for it; null: none. */
	held: { holder: string; seconds: number } | null;
}

export type StopReason = 'permission' | 'missing' | 'trash' | 'duplicate' | 'protocol';

export interface SessionEvents {
	/** The sheet's name, size and role are known, for the first time and after each reconnection. */
	onHello(hello: Hello): void;
	onStatus(status: Status): void;
	onRole(role: Role): void;
	/** The reminders of the account may have changed. */
	onReminders(): void;
	/** The book of the sheet may have changed. */
	onBook(): void;
	/** Rows or columns were inserted or deleted. */
	onMove(change: StructureEdit): void;
	/** Cells and selections of others, and who is here. */
	onMarks(marks: Mark[], names: string[]): void;
	/** An operation was refused. What it wrote is not in the sheet. */
	onRefused(edits: Edit[], reason: Reason, place: Place): void;
	/** Others have deleted cells that the user was writing, or cells that such a formula refers to. */
	onLost(deleted: CellEdit[], cut: CellEdit[]): void;
	/** The lock of the cell that the user is editing was refused: somebody else is editing it. Called once. */
	onDenied(place: Place): void;
	onSkipped(skipped: Place[]): void;
	/** The grid cannot show what a cell has. */
	onUnshown(place: Place, error: unknown): void;
	/** Rows or columns are not moved, or not taken back. */
	onHindered(reason: Hindrance | 'offline' | 'left'): void;
	onUndoState(canUndo: boolean, canRedo: boolean): void;
	/** The token has ended. The session goes on after `resume`. */
	onTokenEnded(): void;
	onStopped(reason: StopReason): void;
}
