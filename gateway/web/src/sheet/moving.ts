// moving.ts - moves rows or columns: one operation that inserts rows, deletes the old ones, and writes the cells and the
// formulas that the database would not have moved so.
//
// A reference keeps its cells if they are still adjacent. Otherwise it grows and shrinks as with the insertion and the deletion:
// a range that a row is moved into has it, and a range that it is moved out of has it no longer.
import { shiftFormula } from '../v2/formula';
import { isInsert, isOfRows, maxCols, maxRows, moveContent, movePlace, moveSpan } from '../v2/lines';
import type { CellEdit, Edit, Place, PropertyEdit, Range, StructureEdit } from '../v2/messages';
import { moveProperty, propertyName } from '../v2/properties';
import type { CellState } from './mirror';

/** The grid, as it is read to make edits. */
export interface Cells {
	read(row: number, col: number): CellState;
	/** The cells of a range that have a content or a style. */
	list(range: Range): CellEdit[];
	/** All cells with formulas. */
	formulas(): (Place & { content: string })[];
}

/** What a move, or whatever takes a structure edit back, is made of. */
export interface Sheet extends Cells {
	properties: readonly PropertyEdit[];
}

/** Moves the n rows or columns from `at` on before the one that is at `to`. */
export interface LineMove {
	rows: boolean;
	at: number;
	n: number;
	to: number;
}

const lineOf = (rows: boolean, { row, col }: Place): number => (rows ? row : col);
const withLine = (rows: boolean, { row, col }: Place, line: number): Place => (rows ? { row: line, col } : { row, col: line });

/** All cells of the rows or columns of a structure edit. */
export const cellsOf = (change: StructureEdit): Range =>
	isOfRows(change)
		? { row: change.at, toRow: change.at + change.n - 1, col: 0, toCol: maxCols - 1 }
		: { row: 0, toRow: maxRows - 1, col: change.at, toCol: change.at + change.n - 1 };

export const changesNothing = ({ at, n, to }: LineMove): boolean => n < 1 || (to >= at && to <= at + n);

/** The insertion and the deletion of a move. */
export function structureOf({ rows, at, n, to }: LineMove): [StructureEdit, StructureEdit] {
	return [
		{ kind: rows ? 'insertRows' : 'insertColumns', at: to, n },
		{ kind: rows ? 'deleteRows' : 'deleteColumns', at: to <= at ? at + n : at, n },
	];
}

/** The move that an insertion and a deletion make. */
export function moveOf(insert: StructureEdit, removal: StructureEdit): LineMove {
	const { at: to, n } = insert;
	return { rows: isOfRows(insert), at: removal.at > to ? removal.at - n : removal.at, n, to };
}

/** The first moved row or column after the move. */
const target = ({ at, n, to }: LineMove): number => (to <= at ? to : to - n);

/** Moves the rows or columns back. */
export const moveBack = (move: LineMove): LineMove => {
	const at = target(move);
	return { ...move, at, to: move.at < at ? move.at : move.at + move.n };
};

function movedLine(move: LineMove, line: number): number {
	const { at, n } = move;
	if (line >= at && line < at + n) return target(move) + line - at;
	const left = line < at ? line : line - n;
	return left < target(move) ? left : left + n;
}

export const movedPlace = (move: LineMove, place: Place): Place => withLine(move.rows, place, movedLine(move, lineOf(move.rows, place)));

/** Rows or columns first to last in runs that the move keeps together, each with its place after the move. */
function movedRuns(move: LineMove, first: number, last: number): { at: number; n: number }[] {
	const inner = [move.at, move.at + move.n, move.to].filter((line) => line > first && line <= last).sort((a, b) => a - b);
	const cuts = [first, ...inner, last + 1];
	return cuts.slice(1).map((next, i) => ({ at: movedLine(move, cuts[i]!), n: next - cuts[i]! }));
}

/** Rows or columns first to last after the move, if they are adjacent then. */
function movedWhole(move: LineMove, first: number, last: number): [number, number] | undefined {
	const runs = movedRuns(move, first, last);
	const [from, to] = [Math.min(...runs.map(({ at }) => at)), Math.max(...runs.map(({ at, n }) => at + n - 1))];
	return to - from === last - first ? [from, to] : undefined;
}

/** Another structure edit after the move. */
export function moveChange(move: LineMove, change: StructureEdit): StructureEdit[] {
	if (isOfRows(change) !== move.rows) return [change];
	if (isInsert(change)) return [{ ...change, at: movedLine(move, change.at) }];
	// The last one first, so that none moves another.
	const runs = movedRuns(move, change.at, change.at + change.n - 1).map((run) => ({ ...change, ...run }));
	return runs.filter(({ n }) => n > 0).sort((a, b) => b.at - a.at);
}

/** Another move after this one; undefined if its rows or columns are not adjacent any more. */
export function moveMove(move: LineMove, other: LineMove): LineMove | undefined {
	if (other.rows !== move.rows) return other;
	const span = movedWhole(move, other.at, other.at + other.n - 1);
	return span && { ...other, at: span[0], to: movedLine(move, other.to) };
}

/** The edits that move properties where the insertion and the deletion do not: removals first. */
function moveProperties(move: LineMove, properties: readonly PropertyEdit[]): PropertyEdit[] {
	const removed: PropertyEdit[] = [];
	const put: PropertyEdit[] = [];
	for (const property of properties) {
		const stored = structureOf(move).reduce<PropertyEdit | undefined>((moved, change) => moved && moveProperty(moved, change), property);
		const span = move.rows ? movedWhole(move, property.row, property.toRow) : movedWhole(move, property.col, property.toCol);
		if (!span) continue;
		const wanted = move.rows ? { ...property, row: span[0], toRow: span[1] } : { ...property, col: span[0], toCol: span[1] };
		if (stored && propertyName(stored) === propertyName(wanted)) continue;
		if (stored) removed.push({ ...stored, value: null });
		put.push(wanted);
	}
	return [...removed, ...put];
}

/** A content after the move; undefined if it would be too long. */
export function movedContent(move: LineMove, content: string): string | undefined {
	const [insert, removal] = structureOf(move);
	return shiftFormula(content, (rows, first, last) => {
		if (rows !== move.rows) return [first, last];
		const whole = movedWhole(move, first, last);
		if (whole) return whole;
		const span = moveSpan(insert, first, last);
		return span && moveSpan(removal, ...span);
	});
}

/** The move after somebody else's change; undefined if its rows or columns are deleted. */
export function followMove(move: LineMove, change: StructureEdit): LineMove | undefined {
	if (isOfRows(change) !== move.rows) return move;
	const span = moveSpan(change, move.at, move.at + move.n - 1);
	const { at, n } = change;
	const to = isInsert(change) ? (at < move.to ? move.to + n : move.to) : move.to <= at ? move.to : Math.max(at, move.to - n);
	return span && { ...move, at: span[0], n: span[1] - span[0] + 1, to };
}

/** An edit that writes a listed cell into an empty one. */
export const writes = ({ row, col, content, style }: CellEdit): CellEdit => ({ row, col, ...(content && { content }), ...(style && { style }) });

/** The edits of a move; undefined if a formula would be too long. */
export function moveEdits(move: LineMove, sheet: Sheet): Edit[] | undefined {
	const changes = structureOf(move);
	const from = { ...changes[1], at: move.at };
	const edits: Edit[] = [...changes];
	for (const cell of sheet.list(cellsOf(from))) {
		const content = movedContent(move, cell.content ?? '');
		if (content === undefined) return undefined;
		edits.push(writes({ ...cell, ...movedPlace(move, cell), content }));
	}
	for (const { row, col, content } of sheet.formulas()) {
		const line = move.rows ? row : col;
		if (line >= move.at && line < move.at + move.n) continue;
		const moved = movedContent(move, content);
		if (moved === undefined) return undefined;
		const stored = changes.reduce<string | undefined>((text, change) => text && moveContent(text, change), content);
		if (moved !== stored) edits.push({ ...movedPlace(move, { row, col }), content: moved });
	}
	return [...edits, ...moveProperties(move, sheet.properties)];
}

/** Moves cells and their formulas by structure edits. */
export function moveCells<Cell extends CellEdit>(cells: Cell[], changes: StructureEdit[]): Cell[] {
	return changes.reduce(
		(list, change) =>
			list.flatMap((cell) => {
				const place = movePlace(cell, change);
				return place ? [{ ...cell, ...place, ...(cell.content && { content: moveContent(cell.content, change) ?? cell.content }) }] : [];
			}),
		cells,
	);
}
