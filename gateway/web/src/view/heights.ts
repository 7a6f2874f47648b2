// heights.ts - rows that are as high as their contents. Univer computes this for what the user does, not for what others do or
// what is read. Such heights are not stored: each page has its own fonts.
import { WrapStrategy } from '@univerjs/core';
import type { ICommandService, Injector, IStyleData, Nullable, Worksheet } from '@univerjs/core';
import { IRenderManagerService } from '@univerjs/engine-render';
import { SheetSkeletonManagerService } from '@univerjs/sheets-ui';

const rowsPerFrame = 50;
/** Letters of this size fit into a row of the normal height. */
const normalFontSize = 11;

function isHigh(content: string, style: Nullable<IStyleData>): boolean {
	return content.includes('\n') || style?.tb === WrapStrategy.WRAP || (style?.fs ?? 0) > normalFontSize || Boolean(style?.tr?.a || style?.tr?.v);
}

export class RowHeights {
	private readonly rows = new Set<number>();
	private frame = 0;

	constructor(
		private readonly injector: Injector,
		private readonly commands: ICommandService,
		private readonly ids: { unitId: string; subUnitId: string },
		private readonly sheet: () => Worksheet,
	) {}

	/** A cell has got this content. */
	changed(row: number, content: string, style: Nullable<IStyleData>): void {
		if (isHigh(content, style) || this.sheet().getRowManager().getRow(row)?.ah) this.add(row);
	}

	/** The widths of columns have changed. */
	widthsChanged(firstRow: number, lastRow: number): void {
		for (let row = firstRow; row <= lastRow; row++) this.add(row);
	}

	private add(row: number): void {
		this.rows.add(row);
		this.frame ||= requestAnimationFrame(() => {
			this.frame = 0;
			this.fit();
		});
	}

	/** Gives the rows their heights; at once before they move. */
	fit(all = false): void {
		const skeleton = this.injector.get(IRenderManagerService).getRenderById(this.ids.unitId)?.with(SheetSkeletonManagerService).getCurrentSkeleton();
		const rows = skeleton ? [...this.rows].slice(0, all ? undefined : rowsPerFrame) : [];
		for (const row of rows) this.rows.delete(row);
		const endColumn = this.sheet().getColumnCount() - 1;
		const heights = skeleton?.calculateAutoHeightInRange(rows.map((row) => ({ startRow: row, endRow: row, startColumn: 0, endColumn }))) ?? [];
		const rowsAutoHeightInfo = heights.filter(({ row, autoHeight }) => autoHeight !== this.sheet().getRowHeight(row));
		if (rowsAutoHeightInfo.length > 0) this.commands.syncExecuteCommand('sheet.mutation.set-worksheet-row-auto-height', { ...this.ids, rowsAutoHeightInfo }, { fromCollab: true });
		const [next] = this.rows;
		if (next !== undefined) this.add(next);
	}

	dispose(): void {
		cancelAnimationFrame(this.frame);
	}
}
