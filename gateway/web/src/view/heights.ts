// heights.ts - rows that are as high as their contents. Univer computes this for what the user does, not for what others do or
// what is read. Such heights are not stored: each page has its own fonts.
//
// A height is computed when its row is about to be seen: those of all rows of a large sheet would take minutes. Univer keeps the
// first visible row in its place when rows above it become higher.
import { WrapStrategy } from '@univerjs/core';
import type { ICommandService, Injector, IRange, IStyleData, Nullable, Worksheet } from '@univerjs/core';
import { IRenderManagerService, SHEET_VIEWPORT_KEY } from '@univerjs/engine-render';
import { SheetSkeletonManagerService } from '@univerjs/sheets-ui';
import { isOfRows, movePlace } from '../v2/lines';
import type { StructureEdit } from '../v2/messages';

/** If a height is missing within `near` rows of the visible ones, all within `far` rows are computed. */
const near = 50;
const far = 100;
/** Letters of this size fit into a row of the normal height. */
const normalFontSize = 11;

function isHigh(content: string, style: Nullable<IStyleData>): boolean {
	return content.includes('\n') || style?.tb === WrapStrategy.WRAP || (style?.fs ?? 0) > normalFontSize || Boolean(style?.tr?.a || style?.tr?.v);
}

export class RowHeights {
	/** The rows whose heights are missing. */
	private rows = new Set<number>();
	private frames: { unsubscribe(): void } | undefined;
	private readonly jumps: { dispose(): void };

	constructor(
		private readonly injector: Injector,
		private readonly commands: ICommandService,
		private readonly ids: { unitId: string; subUnitId: string },
		private readonly sheet: () => Worksheet,
	) {
		// A cell at the lower end of the screen would leave it if the rows above became higher later.
		this.jumps = commands.beforeCommandExecuted(({ id, params }) => {
			if (this.rows.size === 0 || !/set-selections$|scroll-to-(cell|range)$/.test(id)) return;
			const { range, selections } = params as { range?: IRange; selections?: { range: IRange }[] };
			const target = range ?? selections?.at(-1)?.range;
			if (target) [target.startRow, target.endRow].forEach((row) => this.fit(row, row));
		});
	}

	/** A cell has got this content. */
	changed(row: number, content: string, style: Nullable<IStyleData>): void {
		if (isHigh(content, style) || this.sheet().getRowManager().getRow(row)?.ah) this.add(row);
	}

	/** The widths of columns have changed. */
	widthsChanged(firstRow: number, lastRow: number): void {
		for (let row = firstRow; row <= lastRow; row++) this.add(row);
	}

	/** Rows or columns are inserted or deleted. */
	move(change: StructureEdit): void {
		if (isOfRows(change)) this.rows = new Set([...this.rows].flatMap((row) => movePlace({ row, col: 0 }, change)?.row ?? []));
	}

	private add(row: number): void {
		this.rows.add(row);
		this.frames ??= this.render?.engine.beginFrame$.subscribe(() => this.fitVisible());
	}

	private get render() {
		return this.injector.get(IRenderManagerService).getRenderById(this.ids.unitId);
	}

	private get skeleton() {
		return this.render?.with(SheetSkeletonManagerService).getCurrentSkeleton();
	}

	/** Called before each frame is drawn. */
	private fitVisible(): void {
		const { render, skeleton } = this;
		const top = render?.scene.getViewport(SHEET_VIEWPORT_KEY.VIEW_MAIN)?.viewportScrollY ?? 0;
		if (this.rows.size === 0 || !render || !skeleton) return;
		const rowAt = (y: number) => skeleton.getOffsetRelativeToRowCol(0, y).row;
		const { ySplit } = this.sheet().getConfig().freeze;
		if (ySplit > 0) this.fit(0, ySplit - 1);
		this.fit(rowAt(top), rowAt(top + render.engine.height / render.scene.scaleY) + ySplit);
	}

	private missing(first: number, last: number): number[] {
		const rows = [];
		for (let row = first; row <= last; row++) if (this.rows.has(row)) rows.push(row);
		return rows;
	}

	/** Gives rows and those around them their heights. */
	private fit(first: number, last: number): void {
		const { skeleton } = this;
		if (!skeleton || this.missing(first - near, last + near).length === 0) return;
		const rows = this.missing(first - far, last + far);
		for (const row of rows) this.rows.delete(row);
		const endColumn = this.sheet().getColumnCount() - 1;
		const heights = skeleton.calculateAutoHeightInRange(rows.map((row) => ({ startRow: row, endRow: row, startColumn: 0, endColumn })));
		const rowsAutoHeightInfo = heights.filter(({ row, autoHeight }) => autoHeight !== this.sheet().getRowHeight(row));
		if (rowsAutoHeightInfo.length > 0)
			this.commands.syncExecuteCommand('sheet.mutation.set-worksheet-row-auto-height', { ...this.ids, rowsAutoHeightInfo }, { fromCollab: true });
	}

	dispose(): void {
		this.frames?.unsubscribe();
		this.jumps.dispose();
	}
}
