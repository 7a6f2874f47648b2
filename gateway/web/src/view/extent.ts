// extent.ts - the rows and columns of the grid: those of the sheet, and empty ones behind them. More are added when the user comes
// near the end, so that the grid ends where a sheet may end.
import type { ICommandService, IExecutionOptions, Worksheet } from '@univerjs/core';
import { maxCols, maxRows } from '../v2/lines';
import type { Place } from '../v2/messages';

/** Empty rows and columns after those that are used. */
const spareRows = 200;
const spareColumns = 6;
export const leastRows = 200;
export const leastColumns = 26;
/** So near to the end, more are added. */
const nearRows = 40;
const nearColumns = 4;

export const rowCountFor = (rows: number): number => Math.min(Math.max(leastRows, rows + spareRows), maxRows);
export const columnCountFor = (columns: number): number => Math.min(Math.max(leastColumns, columns + spareColumns), maxCols);

export class GridExtent {
	constructor(
		private readonly commands: ICommandService,
		private readonly ids: { unitId: string; subUnitId: string },
		private readonly sheet: () => Worksheet,
		/** Properties of all rows or columns are those of the new ones. */
		private readonly grown: () => void,
	) {}

	/** Makes room for so many rows and columns. */
	growTo(rows: number, columns: number): void {
		const options: IExecutionOptions = { fromCollab: true, onlyLocal: true };
		const [moreRows, moreColumns] = [rows > this.sheet().getRowCount(), columns > this.sheet().getColumnCount()];
		if (moreRows) this.commands.syncExecuteCommand('sheet.mutation.set-worksheet-row-count', { ...this.ids, rowCount: rowCountFor(rows) }, options);
		if (moreColumns)
			this.commands.syncExecuteCommand('sheet.mutation.set-worksheet-column-count', { ...this.ids, columnCount: columnCountFor(columns) }, options);
		if (moreRows || moreColumns) this.grown();
	}

	/** The user has come to this cell. */
	reached({ row, col }: Place): void {
		this.growTo(Math.min(row + nearRows, maxRows), Math.min(col + nearColumns, maxCols));
	}
}
