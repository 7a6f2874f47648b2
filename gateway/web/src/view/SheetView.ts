// SheetView.ts - the page's interface to the grid.
import type { CellEdit, CellLock, CellPlace } from '../protocol';

export interface GridContent {
	columns: number;
	/** Row-major. */
	content: string[];
	styles: { row: number; col: number; info: unknown }[];
}

export interface SheetViewEvents {
	/** The user changed cells: typed, pasted, cleared, filled, formatted. */
	onLocalEdits(edits: CellEdit[]): void;
	/** The user starts to edit a cell. Returns the user who has locked it, or null. */
	lockHolder(place: CellPlace): string | null;
	/** The editor of a cell was opened, or closed (null). */
	onEditing(place: CellPlace | null): void;
	/** A command was refused. The texts have its kind (`blocked.KIND`). */
	onBlocked(kind: string): void;
	onSelection(place: CellPlace): void;
}

export interface SheetView {
	/** Replaces the content, with own edits on top. */
	load(content: GridContent, overlay: CellEdit[]): void;
	/** Applies edits by others. */
	apply(edits: CellEdit[]): void;
	/** Shows the current locks of others. */
	showLocks(locks: CellLock[]): void;
	/** Closes the cell editor and discards the typed text. */
	cancelEditing(): void;
	/** A cell's content, and the text that it shows. */
	contentOf(place: CellPlace): { content: string; shown: string };
	setReadOnly(readOnly: boolean): void;
	focus(): void;
	dispose(): void;
}
