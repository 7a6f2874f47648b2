// reading.ts - cells of Univer's matrices.
import type { ICellData, IRange, IObjectMatrixPrimitiveType, Nullable } from '@univerjs/core';
import type { Range } from '../../v2/messages';

export const rangeOf = ({ startRow, startColumn, endRow, endColumn }: IRange): Range => ({ row: startRow, col: startColumn, toRow: endRow, toCol: endColumn });

type Matrix = IObjectMatrixPrimitiveType<Nullable<ICellData>>;

/** Calls `visit` for the cells of a range, row by row. */
export function visitCells(matrix: Matrix, range: Range, visit: (row: number, col: number, cell: ICellData) => void): void {
	for (const [row, cells] of Object.entries(matrix)) {
		if (Number(row) < range.row || Number(row) > range.toRow) continue;
		for (const [col, cell] of Object.entries(cells ?? {})) {
			if (cell && Number(col) >= range.col && Number(col) <= range.toCol) visit(Number(row), Number(col), cell as ICellData);
		}
	}
}

/** Calls `visit` for all entries of a matrix. */
export function forCells(matrix: Matrix, visit: (row: number, col: number, cell: Nullable<ICellData>) => void): void {
	for (const [row, cells] of Object.entries(matrix)) {
		for (const [col, cell] of Object.entries(cells ?? {})) visit(Number(row), Number(col), cell as Nullable<ICellData>);
	}
}
