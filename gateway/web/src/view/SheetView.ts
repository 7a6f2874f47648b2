// SheetView.ts - what the page needs of a grid. The collaboration client and the pages know only this.
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
	/** The user wants to edit a cell: who holds it, null when it is free. */
	lockHolder(place: CellPlace): string | null;
	/** The editor of a cell was opened, or closed (null). */
	onEditing(place: CellPlace | null): void;
	/** Something that sheets cannot do here was asked for; its kind is a key of the texts (`blocked.*`). */
	onBlocked(kind: string): void;
	onSelection(place: CellPlace): void;
}

export interface SheetView {
	/** Shows this content in place of what is shown, with own edits on top. */
	load(content: GridContent, overlay: CellEdit[]): void;
	/** Edits of others, many at once. */
	apply(edits: CellEdit[]): void;
	/** All cells that others hold now. */
	showLocks(locks: CellLock[]): void;
	/** Ends the editing of a cell without taking what was typed. */
	cancelEditing(): void;
	/** What a cell holds, and what it shows. */
	contentOf(place: CellPlace): { content: string; shown: string };
	setReadOnly(readOnly: boolean): void;
	focus(): void;
	dispose(): void;
}
