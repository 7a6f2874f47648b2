// lines.ts - how inserted and deleted rows and columns move cells, ranges and edits. The gateway does the same in
// gateway/ws/edit/lines.c, which explains it; docs/PROTOCOL.md has the rules.

import { maxCols, maxRows, shiftFormula } from './formula';
import { type CellEdit, type Edit, type Place, type PropertyEdit, type Range, type StructureEdit, isProperty, isStructure } from './messages';

export { maxCols, maxRows };

export const isOfRows = ({ kind }: StructureEdit): boolean => kind === 'insertRows' || kind === 'deleteRows';
export const isInsert = ({ kind }: StructureEdit): boolean => kind === 'insertRows' || kind === 'insertColumns';
const limitOf = (change: StructureEdit): number => (isOfRows(change) ? maxRows : maxCols);

/** The index of a row or column after the change; undefined if it is deleted. */
function moveLine(change: StructureEdit, line: number): number | undefined {
	if (line < change.at) return line;
	if (!isInsert(change)) return line < change.at + change.n ? undefined : line - change.n;
	return line + change.n < limitOf(change) ? line + change.n : undefined;
}

/** The coordinates of a cell after the change; undefined if it is deleted. */
export function movePlace({ row, col }: Place, change: StructureEdit): Place | undefined {
	const [toRow, toCol] = isOfRows(change) ? [moveLine(change, row), col] : [row, moveLine(change, col)];
	return toRow === undefined || toCol === undefined ? undefined : { row: toRow, col: toCol };
}

/** The indexes first to last after the change, with rows or columns inserted between; undefined if all are deleted. */
export function moveSpan(change: StructureEdit, first: number, last: number): [number, number] | undefined {
	const { at, n } = change;
	const limit = limitOf(change);
	if (last < at) return [first, last];
	if (isInsert(change)) {
		const from = first >= at ? first + n : first;
		return from < limit ? [from, Math.min(last + n, limit - 1)] : undefined;
	}
	const end = at + n;
	if (first >= end) return [first - n, last - n];
	if (first >= at && last < end) return undefined;
	return [Math.min(first, at), last >= end ? last - n : at - 1];
}

/** The range after the change; undefined if all of it is deleted. */
export function moveRange(range: Range, change: StructureEdit): Range | undefined {
	if (isOfRows(change)) {
		const rows = moveSpan(change, range.row, range.toRow);
		return rows && { ...range, row: rows[0], toRow: rows[1] };
	}
	const cols = moveSpan(change, range.col, range.toCol);
	return cols && { ...range, col: cols[0], toCol: cols[1] };
}

/** A content after the change, with the references of a formula moved; undefined if it would be too long. */
export function moveContent(content: string, change: StructureEdit): string | undefined {
	return shiftFormula(content, (rows, first, last) => (rows === isOfRows(change) ? moveSpan(change, first, last) : [first, last]));
}

/** The number of rows or columns of a sheet after the change. */
export function moveExtent(change: StructureEdit, extent: number): number {
	const { at, n } = change;
	if (isInsert(change)) return Math.min(Math.max(at, extent) + n, limitOf(change));
	if (at >= extent) return extent;
	return extent - at > n ? extent - n : Math.max(at, 1); // the last one stays, empty
}

/** Consecutive rows or columns: those that the author saw, those that exist now, or both. */
interface Part {
	n: number;
	seen: boolean;
	there: boolean;
}

type Order = 'seen' | 'there';

class Axis {
	private readonly parts: Part[] = [{ n: 2 ** 40, seen: true, there: true }];

	constructor(private readonly limit: number) {}

	/** Splits the parts so that one begins at this index of an order. Returns its position. */
	private cut(order: Order, index: number): number {
		let i = 0;
		for (; !this.parts[i]![order] || index >= this.parts[i]!.n; i++) if (this.parts[i]![order]) index -= this.parts[i]!.n;
		if (index === 0) return i;
		const part = this.parts[i]!;
		this.parts.splice(i, 1, { ...part, n: index }, { ...part, n: part.n - index });
		return i + 1;
	}

	private thereBefore(end: number): number {
		return this.parts.slice(0, end).reduce((sum, { n, there }) => sum + (there ? n : 0), 0);
	}

	/** Applies a change that the author has not seen. */
	change(change: StructureEdit): void {
		const from = this.cut('there', change.at);
		if (isInsert(change)) {
			this.parts.splice(from, 0, { n: change.n, seen: false, there: true });
			return;
		}
		const to = this.cut('there', change.at + change.n);
		const left = this.parts.slice(from, to).filter(({ seen }) => seen);
		this.parts.splice(from, to - from, ...left.map((part) => ({ ...part, there: false })));
	}

	place(line: number): number | undefined {
		let place = 0;
		for (const { n, seen, there } of this.parts) {
			if (seen && line < n) return there && place + line < this.limit ? place + line : undefined;
			if (seen) line -= n;
			if (there) place += n;
		}
		return undefined;
	}

	/** The first and the last of these lines that exist now. All lines stay all lines. */
	span(first: number, last: number): [number, number] | undefined {
		if (first === 0 && last === this.limit - 1) return [first, last];
		let place = 0;
		let from: number | undefined;
		let to = 0;
		for (const { n, seen, there } of this.parts) {
			const [low, high] = [Math.max(first, 0), Math.min(last, n - 1)];
			if (seen && there && low <= high) {
				from ??= place + low;
				to = place + high;
			}
			if (seen) [first, last] = [first - n, last - n];
			if (there) place += n;
			if (last < 0) break;
		}
		return from === undefined || from >= this.limit ? undefined : [from, Math.min(to, this.limit - 1)];
	}

	/** Applies the author's change. Returns it as changes of what exists now. */
	follow(change: StructureEdit): StructureEdit[] {
		return isInsert(change) ? this.insert(change) : this.delete(change);
	}

	private insert(change: StructureEdit): StructureEdit[] {
		const i = this.cut('seen', change.at);
		const at = this.thereBefore(i);
		this.parts.splice(i, 0, { n: change.n, seen: true, there: true });
		return at < this.limit ? [{ ...change, at, n: Math.min(change.n, this.limit - at) }] : [];
	}

	private delete(change: StructureEdit): StructureEdit[] {
		const from = this.cut('seen', change.at);
		const to = this.cut('seen', change.at + change.n);
		const runs: StructureEdit[] = [];
		let at = this.thereBefore(from);
		let joined = false;
		for (const { n, seen, there } of this.parts.slice(from, to)) {
			if (!there) continue;
			if (!seen) at += n;
			else if (at < this.limit) {
				const run = joined ? runs.pop()! : { ...change, at, n: 0 };
				runs.push({ ...run, n: Math.min(run.n + n, this.limit - run.at) });
			}
			joined = seen && runs.length > 0;
		}
		this.parts.splice(from, to - from, ...this.parts.slice(from, to).filter(({ seen }) => !seen));
		return runs;
	}
}

/** Transforms an author's edits by changes that the author has not seen. */
export function transform(edits: readonly Edit[], changes: readonly StructureEdit[]): Edit[] {
	const rows = new Axis(maxRows);
	const cols = new Axis(maxCols);
	for (const change of changes) (isOfRows(change) ? rows : cols).change(change);
	const place = (edit: CellEdit): Edit[] => {
		const [row, col] = [rows.place(edit.row), cols.place(edit.col)];
		if (row === undefined || col === undefined) return [];
		if (!edit.content?.startsWith('=')) return [{ ...edit, row, col }];
		const content = shiftFormula(edit.content, (isRow, first, last) => (isRow ? rows : cols).span(first, last));
		return content === undefined ? [] : [{ ...edit, row, col, content }];
	};
	const range = (edit: PropertyEdit): Edit[] => {
		const [high, wide] = [rows.span(edit.row, edit.toRow), cols.span(edit.col, edit.toCol)];
		return high && wide ? [{ ...edit, row: high[0], toRow: high[1], col: wide[0], toCol: wide[1] }] : [];
	};
	return edits.flatMap((edit): Edit[] => {
		if (isStructure(edit)) return (isOfRows(edit) ? rows : cols).follow(edit);
		return isProperty(edit) ? range(edit) : place(edit);
	});
}
