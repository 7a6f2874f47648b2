// replica.ts - the cells of a sheet as far as they have been asked for, kept up by what the gateway tells. No socket, no DOM.
//
// A range is asked for once; its block holds at a seq, and edits up to that seq are in it already.

import type { Edit, LoggedEdit, Range, ServerMessage, Style } from './messages';

export interface Cell {
	content: string;
	style: Style;
}

interface Loaded extends Range {
	seq: number;
}

const contains = (range: Range, row: number, col: number): boolean =>
	row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol;

export class Replica {
	/** By "row,col"; cells that hold nothing are not there. */
	readonly cells = new Map<string, Cell>();
	/** All that was committed up to here has been told. */
	seq = 0;
	rows = 0;
	cols = 0;
	private loaded: Loaded[] = [];
	private inParts = false;

	/** Forgets all cells: they will be asked for again. */
	reset(seq: number): void {
		this.cells.clear();
		this.loaded = [];
		this.inParts = false;
		this.seq = seq;
	}

	/** The connection was cut: the rest of a block does not come. */
	cut(): void {
		this.inParts = false;
	}

	block(message: Extract<ServerMessage, { t: 'block' }>): void {
		if (!this.inParts) this.open(message);
		for (const cell of message.cells) if (!this.isOlder(cell, message.seq)) this.set(cell);
		this.inParts = message.more;
	}

	/** The first part of a block: what was known of its range is older. */
	private open({ row, col, toRow, toCol, seq }: Loaded): void {
		const range = { row, col, toRow, toCol, seq };
		for (const key of this.cells.keys()) {
			const [cellRow, cellCol] = key.split(',').map(Number) as [number, number];
			if (contains(range, cellRow, cellCol) && !this.isOlder({ row: cellRow, col: cellCol }, seq)) this.cells.delete(key);
		}
		this.loaded.push(range);
	}

	/** Returns the edits that change what is known. */
	edits(message: Extract<ServerMessage, { t: 'edits' }>): LoggedEdit[] {
		const told = message.edits.filter((edit) => this.isNews(edit, message.seq));
		for (const edit of message.edits) {
			this.rows = Math.max(this.rows, edit.row + 1);
			this.cols = Math.max(this.cols, edit.col + 1);
		}
		told.forEach((edit) => this.set(edit));
		if (!message.more) this.seq = message.seq;
		return told;
	}

	/** A newer block has the cell: blocks come in any order. */
	private isOlder({ row, col }: Edit, seq: number): boolean {
		return this.loaded.some((range) => range.seq > seq && contains(range, row, col));
	}

	private isNews({ row, col }: Edit, seq: number): boolean {
		const holding = this.loaded.filter((range) => contains(range, row, col));
		return holding.length > 0 && holding.every((range) => seq > range.seq);
	}

	private set({ row, col, content, style }: Edit): void {
		const key = `${row},${col}`;
		const before = this.cells.get(key) ?? { content: '', style: null };
		const cell = { content: content ?? before.content, style: style === undefined ? before.style : style };
		if (cell.content === '' && cell.style === null) this.cells.delete(key);
		else this.cells.set(key, cell);
	}
}
