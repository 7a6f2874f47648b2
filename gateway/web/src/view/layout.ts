// layout.ts - properties in the grid: sizes and visibility of rows and columns, merged cells, the frozen part.
//
// Univer's mutations of these are not executed. collect() makes their changes in a copy of the properties, and the difference is
// sent. The grid shows what the properties say then, and whenever they change: arrange() compares Univer's model with them
// and corrects it, so it does not matter how the model came to differ.
import type { ICommandService, IRange, Worksheet } from '@univerjs/core';
import { commonHeight, freezeOf, hiddenLines, merge, mergesOf, setFreeze, setLines, sizes, unmerge, wholeSheet } from '../sheet/arrange';
import type { PropertyEdit, Range } from '../v2/messages';
import type { PropertySet } from '../v2/properties';

type Numbers = number | Record<number, number | null | undefined>;
type Params = { ranges?: IRange[]; colWidth?: Numbers; rowHeight?: Numbers; autoHeightInfo?: Numbers } & Record<string, unknown>;

const prefix = 'sheet.mutation.';

/** Groups numbers in ascending order. */
function spansOf(lines: Iterable<number>): [number, number][] {
	const spans: [number, number][] = [];
	for (const line of [...lines].sort((a, b) => a - b)) {
		const last = spans.at(-1);
		if (last && last[1] === line - 1) last[1] = line;
		else spans.push([line, line]);
	}
	return spans;
}

const mergeKey = ({ startRow, startColumn, endRow, endColumn }: IRange): string => `${startRow},${startColumn},${endRow},${endColumn}`;

export class GridLayout {
	/** The properties before and after the user's change; null: there is none. */
	private before: PropertySet | null = null;
	private after: PropertySet | null = null;
	/** The height of rows without a property. */
	private normalHeight: number | undefined;
	/** The rows that are hidden. */
	hidden: Iterable<number> = [];
	/** Something was shown that is not the default. */
	private arranged = false;

	constructor(
		private readonly commands: ICommandService,
		private readonly ids: { unitId: string; subUnitId: string },
		private readonly sheet: () => Worksheet,
		private readonly properties: () => PropertySet,
	) {}

	// ---- the user's changes ----

	/** Takes a mutation as a change of the properties. */
	collect(id: string, params: Params): void {
		this.before ??= this.properties();
		this.after ??= this.before.copy();
		const set = this.after;
		const ranges = (params.ranges ?? []).map((range) => this.rangeOf(range));
		switch (id.slice(prefix.length)) {
			case 'set-worksheet-col-width':
				return this.resize(set, false, ranges, params.colWidth!);
			case 'set-worksheet-row-height':
				return this.resize(set, true, ranges, params.rowHeight!);
			case 'set-worksheet-row-is-auto-height':
				return this.automatic(set, ranges, params.autoHeightInfo!);
			case 'set-col-hidden':
				return ranges.forEach(({ col, toCol }) => this.hide(set, false, col, toCol, true));
			case 'set-col-visible':
				return ranges.forEach(({ col, toCol }) => this.hide(set, false, col, toCol, false));
			case 'set-row-hidden':
				return ranges.forEach(({ row, toRow }) => this.hide(set, true, row, toRow, true));
			case 'set-row-visible':
				return ranges.forEach(({ row, toRow }) => this.hide(set, true, row, toRow, false));
			case 'add-worksheet-merge':
				return ranges.forEach((range) => merge(set, range));
			case 'remove-worksheet-merge':
				return ranges.forEach((range) => unmerge(set, range));
			case 'set-frozen': {
				const { startRow, startColumn, ySplit, xSplit } = params as Record<string, number>;
				return setFreeze(set, { rows: ySplit! > 0 ? startRow! : 0, cols: xSplit! > 0 ? startColumn! : 0 });
			}
		}
	}

	/** The edits of the changes since the last call. */
	take(): PropertyEdit[] {
		const { before, after } = this;
		this.before = this.after = null;
		return before && after ? after.since(before) : [];
	}

	/** A range of all rows of the grid means those to come, too. */
	private rangeOf({ startRow, startColumn, endRow, endColumn }: IRange): Range {
		const [rows, cols] = [this.sheet().getRowCount(), this.sheet().getColumnCount()];
		const allRows = !(startRow > 0) && !(endRow < rows - 1);
		const allCols = !(startColumn > 0) && !(endColumn < cols - 1);
		return {
			...(allRows ? { row: 0, toRow: wholeSheet.toRow } : { row: startRow, toRow: endRow }),
			...(allCols ? { col: 0, toCol: wholeSheet.toCol } : { col: startColumn, toCol: endColumn }),
		};
	}

	private resize(set: PropertySet, ofRows: boolean, ranges: Range[], size: Numbers): void {
		const key = ofRows ? 'height' : 'width';
		for (const range of ranges) {
			const [first, last] = ofRows ? [range.row, range.toRow] : [range.col, range.toCol];
			if (typeof size === 'number') {
				setLines(set, key, ofRows, first, last, size);
				continue;
			}
			const lines = Object.keys(size)
				.map(Number)
				.filter((line) => line >= first && line <= last && typeof size[line] === 'number');
			for (const value of new Set(lines.map((line) => size[line]!)))
				for (const [from, to] of spansOf(lines.filter((line) => size[line] === value))) setLines(set, key, ofRows, from, to, value);
		}
	}

	/** Heights that follow the content are not stored. */
	private automatic(set: PropertySet, ranges: Range[], isAutomatic: Numbers): void {
		for (const { row, toRow } of ranges) {
			if (typeof isAutomatic === 'number') {
				if (isAutomatic) setLines(set, 'height', true, row, toRow, null);
				continue;
			}
			for (const line of Object.keys(isAutomatic).map(Number))
				if (line >= row && line <= toRow && isAutomatic[line]) setLines(set, 'height', true, line, line, null);
		}
	}

	private hide(set: PropertySet, ofRows: boolean, first: number, last: number, hidden: boolean): void {
		// Nothing would be left to select.
		const isAll = first === 0 && last === (ofRows ? wholeSheet.toRow : wholeSheet.toCol);
		if (!isAll || !hidden) setLines(set, 'hidden', ofRows, first, last, hidden);
	}

	// ---- showing them ----

	/** Returns whether the widths of columns have changed. */
	arrange(): boolean {
		const set = this.properties();
		if (set.size === 0 && !this.arranged) return false;
		this.arranged = true;
		this.showRows(set);
		const widened = this.showColumns(set);
		this.showMerges(set);
		this.showFreeze(set);
		return widened;
	}

	private execute(name: string, params: object): void {
		this.commands.syncExecuteCommand(prefix + name, { ...this.ids, ...params }, { fromCollab: true });
	}

	private rows(lines: Iterable<number>): IRange[] {
		const endColumn = this.sheet().getColumnCount() - 1;
		return spansOf(lines).map(([startRow, endRow]) => ({ startRow, endRow, startColumn: 0, endColumn }));
	}

	private columns(lines: Iterable<number>): IRange[] {
		const endRow = this.sheet().getRowCount() - 1;
		return spansOf(lines).map(([startColumn, endColumn]) => ({ startRow: 0, endRow, startColumn, endColumn }));
	}

	private showRows(set: PropertySet): void {
		const manager = this.sheet().getRowManager();
		const count = this.sheet().getRowCount();
		const config = this.sheet().getConfig();
		this.normalHeight ??= config.defaultRowHeight;
		const normal = commonHeight(set, count) ?? this.normalHeight;
		config.defaultRowHeight = normal;
		const [heights, hidden] = [sizes(set, true, count), hiddenLines(set, true, count)];
		this.hidden = hidden;
		const rowHeight: Record<number, number> = {};
		const autoHeightInfo: Record<number, number | undefined> = {};
		const [hide, show]: [number[], number[]] = [[], []];
		for (const row of new Set([...Object.keys(manager.getRowData()).map(Number), ...heights.keys(), ...hidden])) {
			const { h = normal, ia, hd = 0 } = manager.getRow(row) ?? {};
			const height = heights.get(row);
			if (height !== (ia === 0 ? h : undefined)) {
				rowHeight[row] = height ?? normal;
				autoHeightInfo[row] = height === undefined ? undefined : 0;
			}
			if (hidden.has(row) !== (hd === 1)) (hidden.has(row) ? hide : show).push(row);
		}
		const ranges = this.rows(Object.keys(rowHeight).map(Number));
		if (ranges.length > 0) {
			this.execute('set-worksheet-row-is-auto-height', { ranges, autoHeightInfo });
			this.execute('set-worksheet-row-height', { ranges, rowHeight });
		}
		if (show.length > 0) this.execute('set-row-visible', { ranges: this.rows(show) });
		if (hide.length > 0) this.execute('set-row-hidden', { ranges: this.rows(hide) });
	}

	private showColumns(set: PropertySet): boolean {
		const manager = this.sheet().getColumnManager();
		const count = this.sheet().getColumnCount();
		const [widths, hidden] = [sizes(set, false, count), hiddenLines(set, false, count)];
		const colWidth: Record<number, number> = {};
		const [hide, show]: [number[], number[]] = [[], []];
		for (const col of new Set([...Object.keys(manager.getColumnData()).map(Number), ...widths.keys(), ...hidden])) {
			const { custom, hd = 0 } = manager.getColumn(col) ?? {};
			const width = widths.get(col);
			if (width === undefined ? custom?.sized : !custom?.sized || manager.getColumnWidth(col) !== width) {
				// All see the same width of a column to which nobody has given one.
				colWidth[col] = width ?? this.sheet().getConfig().defaultColumnWidth;
				// The mutation leaves hidden columns alone. The mark moves with the column.
				manager.setColumnWidth(col, colWidth[col]!);
				manager.getColumnOrCreate(col).custom = { ...custom, sized: width !== undefined };
			}
			if (hidden.has(col) !== (hd === 1)) (hidden.has(col) ? hide : show).push(col);
		}
		const ranges = this.columns(Object.keys(colWidth).map(Number));
		if (ranges.length > 0) this.execute('set-worksheet-col-width', { ranges, colWidth });
		if (show.length > 0) this.execute('set-col-visible', { ranges: this.columns(show) });
		if (hide.length > 0) this.execute('set-col-hidden', { ranges: this.columns(hide) });
		return ranges.length > 0;
	}

	private showMerges(set: PropertySet): void {
		const [rows, cols] = [this.sheet().getRowCount(), this.sheet().getColumnCount()];
		const merges = mergesOf(set)
			.filter(({ row, col }) => row < rows && col < cols)
			.map(({ row, col, toRow, toCol }): IRange => ({
				startRow: row,
				startColumn: col,
				endRow: Math.min(toRow, rows - 1),
				endColumn: Math.min(toCol, cols - 1),
			}));
		const wanted = new Set(merges.map(mergeKey));
		const gone = this.sheet()
			.getMergeData()
			.filter((range) => !wanted.has(mergeKey(range)));
		if (gone.length > 0) this.execute('remove-worksheet-merge', { ranges: [...gone] });
		const there = new Set(this.sheet().getMergeData().map(mergeKey));
		const ranges = merges.filter((range) => !there.has(mergeKey(range)));
		if (ranges.length > 0) this.execute('add-worksheet-merge', { ranges });
	}

	private showFreeze(set: PropertySet): void {
		const { rows, cols } = freezeOf(set);
		const ySplit = Math.min(rows, this.sheet().getRowCount() - 1);
		const xSplit = Math.min(cols, this.sheet().getColumnCount() - 1);
		const now = this.sheet().getConfig().freeze;
		if (now.ySplit === ySplit && now.xSplit === xSplit) return;
		this.execute('set-frozen', { startRow: ySplit || -1, startColumn: xSplit || -1, ySplit, xSplit });
	}
}
