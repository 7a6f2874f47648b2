// arrangement.ts - what a tab has besides cells: sizes, hidden rows and columns, merges and frozen panes become properties of the
// sheet. There is a limit to these (common/properties.h): the most important come first, and the others are counted.
import { wholeSheet } from '../../../gateway/web/src/sheet/arrange';
import { maxCols, maxRows } from '../../../gateway/web/src/v2/lines';
import type { PropertyEdit } from '../../../gateway/web/src/v2/messages';
import { pixelsOfHeight, pixelsOfWidth } from '../formats';
import type { Losses } from './refused';
import { rangeOf } from './sheet';
import { type Attributes, isTrue, numberOf } from './xml';

const mostProperties = 10_000;
const mostPixels = 10_000;
const mostFrozen = 1000;
const mostMerge = 100_000;
const mostMerged = 1_000_000;
const leastCols = 26;

/** Consecutive rows or columns with one value. */
interface Run {
	first: number;
	last: number;
	value: number | true;
}

function extend(runs: Run[], first: number, last: number, value: Run['value']): void {
	const before = runs.at(-1);
	if (before?.value === value && before.last === first - 1) before.last = last;
	else runs.push({ first, last, value });
}

export class Arrangement {
	colour: string | undefined;
	/** The colour of the tab, to be read by the workbook's theme. */
	colourAttributes: Attributes | undefined;
	private readonly widths: Run[] = [];
	private readonly heights: Run[] = [];
	/** Heights that follow from what is in the rows. */
	private readonly ownHeights: Run[] = [];
	private readonly hiddenRows: Run[] = [];
	private readonly hiddenCols: Run[] = [];
	private readonly merges: PropertyEdit[] = [];
	private freeze: { rows: number; cols: number } | undefined;
	private merged = 0;
	private defaultHeight: number | undefined;
	/** Rows that the tab does not name are hidden. */
	private othersHidden = false;
	private lastRow = -1;
	private lastCol = leastCols - 1;

	constructor(
		private readonly tab: string,
		private readonly losses: Losses,
	) {}

	/** A cell is there. */
	use(_row: number, col: number): void {
		this.lastCol = Math.max(this.lastCol, col);
	}

	private lose(what: string, count = 1): void {
		this.losses.add(this.tab, what, count);
	}

	open(name: string, attributes: Attributes): void {
		if (name === 'tabColor') this.colourAttributes = attributes;
		else if (name === 'col') this.column(attributes);
		else if (name === 'mergeCell') this.merge(attributes['ref']);
		else if (name === 'pane') this.pane(attributes);
		else if (name === 'sheetFormatPr') {
			this.defaultHeight = numberOf(attributes['defaultRowHeight']);
			this.othersHidden = isTrue(attributes['zeroHeight']);
		} else if (name === 'sheetView') {
			if (attributes['showGridLines'] !== undefined && !isTrue(attributes['showGridLines'])) this.lose('hidden grid lines');
			if (isTrue(attributes['rightToLeft'])) this.lose('directions from right to left');
		}
	}

	private column({ min, max, width, customWidth, hidden, style, outlineLevel }: Attributes): void {
		const first = (numberOf(min) ?? 0) - 1;
		const last = Math.min(numberOf(max) ?? 0, maxCols) - 1;
		if (first < 0 || last < first) return;
		const size = numberOf(width);
		if (isTrue(hidden) || size === 0) extend(this.hiddenCols, first, last, true);
		if (size && size > 0 && (isTrue(customWidth) || last < maxCols - 1)) extend(this.widths, first, last, Math.min(pixelsOfWidth(size), mostPixels));
		if (numberOf(style)) this.lose('styles of whole columns', 1);
		if (numberOf(outlineLevel)) this.lose('groups of rows and columns');
	}

	row(row: number, { ht, customHeight, hidden, s, customFormat, outlineLevel }: Attributes): void {
		if (this.othersHidden && row > this.lastRow + 1) extend(this.hiddenRows, this.lastRow + 1, row - 1, true);
		this.lastRow = Math.max(this.lastRow, row);
		const height = numberOf(ht);
		if (isTrue(hidden) || height === 0) extend(this.hiddenRows, row, row, true);
		if (height && height > 0) {
			const pixels = Math.min(pixelsOfHeight(height), mostPixels);
			if (isTrue(customHeight)) extend(this.heights, row, row, pixels);
			else if (height !== this.defaultHeight) extend(this.ownHeights, row, row, pixels);
		}
		if (isTrue(customFormat) && numberOf(s)) this.lose('styles of whole rows');
		if (numberOf(outlineLevel)) this.lose('groups of rows and columns');
	}

	private merge(ref: string | undefined): void {
		const range = rangeOf(ref);
		if (!range || range.toRow >= maxRows || range.toCol >= maxCols) return this.lose('merged cells');
		const cells = (range.toRow - range.row + 1) * (range.toCol - range.col + 1);
		if (cells === 1) return;
		if (cells > mostMerge || this.merged + cells > mostMerged) return this.lose('merged cells');
		this.merged += cells;
		this.merges.push({ ...range, key: 'merge', value: true });
	}

	private pane({ state, xSplit, ySplit }: Attributes): void {
		const [cols, rows] = [numberOf(xSplit) ?? 0, numberOf(ySplit) ?? 0];
		const isFrozen = state === 'frozen' || state === 'frozenSplit';
		if (!isFrozen || rows < 0 || cols < 0 || rows > mostFrozen || cols > mostFrozen) return this.lose('split windows');
		this.freeze = { rows: Math.trunc(rows), cols: Math.trunc(cols) };
	}

	/** The properties of the sheet. */
	properties(): PropertyEdit[] {
		if (this.othersHidden && this.lastRow < maxRows - 1) extend(this.hiddenRows, this.lastRow + 1, maxRows - 1, true);
		const rows = (key: string, runs: Run[]) => runs.map(({ first, last, value }) => ({ ...wholeSheet, row: first, toRow: last, key, value }));
		const cols = (key: string, runs: Run[]) => runs.map(({ first, last, value }) => ({ ...wholeSheet, col: first, toCol: last, key, value }));
		// A width of all columns to the last one would enlarge the sheet to 16,384 columns.
		const widths = this.widths.map((run) => (run.last === maxCols - 1 ? { ...run, last: Math.max(run.first, this.lastCol) } : run));
		const groups: [string, PropertyEdit[]][] = [
			['frozen rows and columns', this.freeze ? [{ ...wholeSheet, key: 'freeze', value: this.freeze }] : []],
			['hidden columns', cols('hidden', this.hiddenCols)],
			['widths', cols('width', widths)],
			['hidden rows', rows('hidden', this.hiddenRows)],
			['merged cells', this.merges],
			['heights', rows('height', this.heights)],
			['heights', rows('height', this.ownHeights)],
		];
		const kept: PropertyEdit[] = [];
		for (const [what, properties] of groups) {
			const room = mostProperties - kept.length;
			if (properties.length > room) this.lose(what, properties.length - room);
			kept.push(...properties.slice(0, room));
		}
		return kept;
	}
}
