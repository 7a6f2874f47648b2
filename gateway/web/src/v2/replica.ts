// replica.ts - the requested cells of a sheet, kept current by the gateway's messages. No socket, no DOM.
//
// All known cells have the state of one seq. A block with a later seq waits until the edits up to it have arrived.
// Structure edits move cells and the ranges whose cells are known.

import { isInsert, isOfRows, maxCols, maxRows, moveExtent, movePlace, moveRange } from './lines';
import { PropertySet } from './properties';
import {
	type CellEdit,
	type LoggedEdit,
	type LoggedStructure,
	type PropertyEdit,
	type Range,
	type ServerMessage,
	type StructureEdit,
	type Style,
	isProperty,
	isStructure,
} from './messages';

export interface Cell {
	content: string;
	style: Style;
}

/** Where a replica keeps its cells. */
export interface CellStore {
	/** An edit of a known cell. */
	set(edit: CellEdit, uid: number): void;
	/** The non-empty cells of a range, which replace all of its cells. */
	fill(range: Range, cells: CellEdit[]): void;
	move(change: LoggedStructure): void;
	/** The set of properties has this edit. */
	property?(edit: PropertyEdit, uid: number): void;
	/** No cell is known any more. */
	clear(): void;
}

type Block = Extract<ServerMessage, { t: 'block' }>;

export const contains = (range: Range, row: number, col: number): boolean => row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol;

export const keyOf = (row: number, col: number): string => `${row},${col}`;
export const placeOf = (key: string): [number, number] => key.split(',').map(Number) as [number, number];

/** Whether the edit extends the sheet to its cell. An edit that leaves a cell beyond the end empty is not stored. */
const extendsSheet = ({ content, style }: CellEdit): boolean => Boolean(content || style) || (content === undefined && style === undefined);

/** Moves the entries of a map by cell. */
export function moveKeys(map: Map<string, unknown>, change: StructureEdit): void {
	const moved = [...map].flatMap(([key, value]): [string, unknown][] => {
		const [row, col] = placeOf(key);
		const place = movePlace({ row, col }, change);
		return place ? [[keyOf(place.row, place.col), value]] : [];
	});
	map.clear();
	for (const [key, value] of moved) map.set(key, value);
}

/** Returns the union, if it is a range. */
function join(a: Range, b: Range): Range | undefined {
	const sameRows = a.row === b.row && a.toRow === b.toRow;
	const sameCols = a.col === b.col && a.toCol === b.toCol;
	const meet = (from: number, to: number, otherFrom: number, otherTo: number): boolean => from <= otherTo + 1 && otherFrom <= to + 1;
	const inside = b.row >= a.row && b.toRow <= a.toRow && b.col >= a.col && b.toCol <= a.toCol;
	if (inside || (sameCols && meet(a.row, a.toRow, b.row, b.toRow)) || (sameRows && meet(a.col, a.toCol, b.col, b.toCol)))
		return {
			row: Math.min(a.row, b.row),
			col: Math.min(a.col, b.col),
			toRow: Math.max(a.toRow, b.toRow),
			toCol: Math.max(a.toCol, b.toCol),
		};
	return undefined;
}

/** Cells by "row,col". Empty cells have no entry. */
class CellMap implements CellStore {
	readonly cells = new Map<string, Cell>();

	set({ row, col, content, style }: CellEdit): void {
		const key = keyOf(row, col);
		const before = this.cells.get(key) ?? { content: '', style: null };
		const cell = { content: content ?? before.content, style: style === undefined ? before.style : style };
		if (cell.content === '' && cell.style === null) this.cells.delete(key);
		else this.cells.set(key, cell);
	}

	fill(range: Range, cells: CellEdit[]): void {
		for (const key of this.cells.keys()) if (contains(range, ...placeOf(key))) this.cells.delete(key);
		cells.forEach((cell) => this.set(cell));
	}

	move(change: StructureEdit): void {
		moveKeys(this.cells, change);
	}

	clear(): void {
		this.cells.clear();
	}
}

export class Replica {
	private readonly map = new CellMap();
	/** The sheet's properties, all of them. */
	readonly properties = new PropertySet();
	/** All edits up to here have been received. */
	seq = 0;
	rows = 0;
	cols = 0;
	/** Ranges whose cells are known. */
	private known: Range[] = [];
	/** Blocks that wait for edits. */
	private waiting: Block[][] = [];
	/** Parts of an incomplete block. */
	private parts: Block[] = [];

	constructor(private readonly store?: CellStore) {}

	/** The cells, if they are kept here. */
	get cells(): Map<string, Cell> {
		return this.map.cells;
	}

	private get kept(): CellStore {
		return this.store ?? this.map;
	}

	/** Forgets all cells. They are requested again. */
	reset(seq: number): void {
		this.kept.clear();
		this.properties.clear();
		this.known = [];
		this.cut();
		this.seq = seq;
	}

	/** The connection was lost: forgets blocks that are incomplete or wait. */
	cut(): void {
		this.parts = [];
		this.waiting = [];
	}

	/** Returns a range that contains the unknown part of a range; undefined if all is known. */
	missing(range: Range): Range | undefined {
		if (this.known.some((known) => contains(known, range.row, range.col) && contains(known, range.toRow, range.toCol))) return undefined;
		for (const known of this.known) {
			const wide = known.col <= range.col && known.toCol >= range.toCol;
			const high = known.row <= range.row && known.toRow >= range.toRow;
			if (wide && known.row <= range.row && known.toRow >= range.row) return this.missing({ ...range, row: known.toRow + 1 });
			if (wide && known.toRow >= range.toRow && known.row <= range.toRow) return this.missing({ ...range, toRow: known.row - 1 });
			if (high && known.col <= range.col && known.toCol >= range.col) return this.missing({ ...range, col: known.toCol + 1 });
			if (high && known.toCol >= range.toCol && known.col <= range.toCol) return this.missing({ ...range, toCol: known.col - 1 });
		}
		return range;
	}

	/** Whether all cells of the sheet are known. */
	get isWhole(): boolean {
		return !this.missing({ row: 0, col: 0, toRow: Math.max(this.rows, 1) - 1, toCol: Math.max(this.cols, 1) - 1 });
	}

	block(message: Block): void {
		this.parts.push(message);
		if (message.more) return;
		this.waiting.push(this.parts);
		this.parts = [];
		this.takeBlocks();
	}

	/** Whether the block with this id has arrived and waits for edits. */
	waits(id: number): boolean {
		return this.waiting.some(([block]) => block!.id === id);
	}

	/** Applies the blocks whose seq has been reached. */
	private takeBlocks(): void {
		const due = this.waiting.filter(([block]) => block!.seq <= this.seq);
		this.waiting = this.waiting.filter(([block]) => block!.seq > this.seq);
		for (const parts of due) if (parts[0]!.seq === this.seq) this.takeBlock(parts);
	}

	private takeBlock(parts: Block[]): void {
		const { row, col, toRow, toCol } = parts[0]!;
		const range = { row, col, toRow, toCol };
		this.know(range);
		this.kept.fill(range, parts.length === 1 ? parts[0]!.cells : parts.flatMap(({ cells }) => cells));
	}

	/** The cells of the range are known. */
	know(range: Range): void {
		for (let i = 0; i < this.known.length; i++) {
			const both = join(range, this.known[i]!) ?? join(this.known[i]!, range);
			if (!both) continue;
			this.known.splice(i, 1);
			this.know(both);
			return;
		}
		this.known.push(range);
	}

	/** Applies edits. Returns those that change known cells. */
	edits(message: Extract<ServerMessage, { t: 'edits' }>): LoggedEdit[] {
		const told = message.edits.filter((edit) => this.edit(edit));
		if (!message.more) {
			this.seq = message.seq;
			this.takeBlocks();
		}
		return told;
	}

	private edit(edit: LoggedEdit): boolean {
		if (isStructure(edit)) {
			this.restructure(edit);
			return true;
		}
		if (isProperty(edit)) {
			this.properties.put(edit);
			this.kept.property?.(edit, edit.uid);
			// A property of whole rows does not extend the sheet to the right, and so on.
			if (edit.value !== null && edit.toRow < maxRows - 1) this.rows = Math.max(this.rows, edit.toRow + 1);
			if (edit.value !== null && edit.toCol < maxCols - 1) this.cols = Math.max(this.cols, edit.toCol + 1);
			return false;
		}
		if (extendsSheet(edit)) {
			this.rows = Math.max(this.rows, edit.row + 1);
			this.cols = Math.max(this.cols, edit.col + 1);
		}
		if (!this.known.some((range) => contains(range, edit.row, edit.col))) return false;
		this.kept.set(edit, edit.uid);
		return true;
	}

	private restructure(change: LoggedStructure): void {
		this.kept.move(change);
		this.properties.move(change);
		const ranges = this.known.flatMap((range) => moveRange(range, change) ?? []);
		this.known = [];
		for (const range of ranges) this.know(range);
		// Inserted rows and columns are empty.
		const last = change.at + change.n - 1;
		if (isInsert(change) && isOfRows(change)) this.know({ row: change.at, col: 0, toRow: last, toCol: maxCols - 1 });
		else if (isInsert(change)) this.know({ row: 0, col: change.at, toRow: maxRows - 1, toCol: last });
		if (isOfRows(change)) this.rows = moveExtent(change, this.rows);
		else this.cols = moveExtent(change, this.cols);
	}
}
