// shown.ts - what cells show, as rows of texts.
import { CellModeEnum, CellValueType, type ICellData, type IRange, type Nullable, type Worksheet } from '@univerjs/core';

function textOf(cell: Nullable<ICellData & { displayV?: string }>): string {
	if (!cell) return '';
	const { displayV, p, v, t } = cell;
	if (displayV !== undefined && displayV !== null) return displayV;
	if (p?.body) return p.body.dataStream.replace(/\r\n$/, '').replaceAll('\r', '\n');
	if (v === null || v === undefined) return '';
	return t === CellValueType.BOOLEAN ? (Number(v) ? 'TRUE' : 'FALSE') : String(v);
}

/** The texts of a range, without the rows and columns that are not wanted. */
export function shownRows(
	sheet: Worksheet,
	{ startRow, startColumn, endRow, endColumn }: IRange,
	wantsRow: (row: number) => boolean,
	wantsColumn: (col: number) => boolean = () => true,
): string[][] {
	const cells = sheet.getMatrixWithMergedCells(startRow, startColumn, endRow, endColumn, CellModeEnum.Both);
	const cols = Array.from({ length: endColumn - startColumn + 1 }, (_, i) => startColumn + i).filter(wantsColumn);
	const rows: string[][] = [];
	for (let row = startRow; row <= endRow; row++) {
		if (wantsRow(row)) rows.push(cols.map((col) => textOf(cells.getValue(row, col))));
	}
	return rows;
}
