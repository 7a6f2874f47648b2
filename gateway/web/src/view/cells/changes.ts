// changes.ts - the cells that a command of the user changes. Each is read before the first mutation of it and after the last
// one, because a mutation of Univer is a partial patch.
import type { ICellData, IObjectMatrixPrimitiveType, IRange, Nullable } from '@univerjs/core';
import type { CellState } from '../../sheet/mirror';
import type { Change } from '../../sheet/undo';
import { sameStyle } from '../../style';
import type { Place } from '../../v2/messages';
import { keyOf } from '../../v2/replica';
import { makePlain, settleType } from '../../cell';
import { forCells } from './reading';

type Matrix = IObjectMatrixPrimitiveType<Nullable<ICellData>>;

/** The cells whose content or style a mutation changes. */
export function cellsOfMutation(id: string, params: Record<string, unknown>): Place[] {
	const cells: Place[] = [];
	const inMatrix = (matrix: Matrix, changes: (patch: Nullable<ICellData>) => boolean) =>
		forCells(matrix, (row, col, patch) => {
			if (changes(patch)) cells.push({ row, col });
		});
	const inRanges = (ranges: IRange[]) => {
		for (const { startRow, endRow, startColumn, endColumn } of ranges)
			for (let row = startRow; row <= endRow; row++) for (let col = startColumn; col <= endColumn; col++) cells.push({ row, col });
	};
	if (id === 'sheet.mutation.set-range-values' && params.cellValue)
		inMatrix(params.cellValue as Matrix, (patch) => !patch || 'v' in patch || 'f' in patch || 'p' in patch || 'si' in patch || 's' in patch);
	else if (id === 'sheet.mutation.move-range') {
		for (const { value } of [params.from, params.to] as { value: Matrix }[]) inMatrix(value, () => true);
	} else if (id === 'sheet.mutation.set.numfmt') {
		for (const { ranges } of Object.values(params.values as Record<string, { ranges: IRange[] }>)) inRanges(ranges);
	} else if (id === 'sheet.mutation.remove.numfmt') inRanges(params.ranges as IRange[]);
	return cells;
}

/** Takes what is not stored out of the cells that a mutation sets. Returns whether there was something. */
export function leavePlain(params: Record<string, unknown>): boolean {
	let left = false;
	forCells((params.cellValue ?? {}) as Matrix, (_row, _col, patch) => {
		if (!patch) return;
		settleType(patch);
		if (makePlain(patch)) left = true;
	});
	return left;
}

export class UserChanges {
	private touched = new Map<string, Place & { before: CellState }>();

	constructor(private readonly read: (row: number, col: number) => CellState) {}

	/** The user is about to change these cells. */
	remember(cells: Place[]): void {
		for (const { row, col } of cells) {
			const key = keyOf(row, col);
			if (!this.touched.has(key)) this.touched.set(key, { row, col, before: this.readOr(row, col, () => ({ content: '', style: null })) });
		}
	}

	/** What has changed since. A cell that cannot be read is given to `failed`, and does not keep the others from being reported. */
	take(failed: (place: Place, error: unknown) => void): Change[] {
		const changes: Change[] = [];
		const touched = [...this.touched.values()];
		this.touched.clear();
		for (const { row, col, before } of touched) {
			const after = this.readOr(row, col, (error) => (failed({ row, col }, error), before));
			if (sameStyle(before.style, after.style)) after.style = before.style;
			if (before.content !== after.content || before.style !== after.style) changes.push({ row, col, before, after });
		}
		return changes;
	}

	private readOr(row: number, col: number, otherwise: (error: unknown) => CellState): CellState {
		try {
			return this.read(row, col);
		} catch (error) {
			return otherwise(error);
		}
	}
}
