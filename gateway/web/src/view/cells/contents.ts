// contents.ts - the cells of Univer's model, as the session reads and writes them.
//
// Received edits are marked fromCollab, so that they are not reported. Without formulas they are also marked onlyLocal, which
// saves Univer a scan of all cells.
import type { ICellData, ICommandService, IExecutionOptions, IStyleData, Nullable, Workbook, Worksheet } from '@univerjs/core';
import type { FormulaDataModel } from '@univerjs/engine-formula';
import { keyOf } from '../../formulas/cells';
import type { CellState } from '../../sheet/mirror';
import { plainStyle, sameStyle } from '../../style';
import { maxCols, maxRows } from '../../v2/lines';
import type { CellEdit, Place, Range, Style } from '../../v2/messages';
import type { GridExtent } from '../extent';
import { isFormulaCell, ownStyle } from '../formulas/values';
import type { RowHeights } from '../heights';
import { cellOfContent, contentOfCell, implied, patchOfContent, styleOfInfo, stylePatch } from '../../cell';
import { visitCells } from './reading';

const setValues = 'sheet.mutation.set-range-values';

interface ContentParts {
	book: Workbook;
	sheet: Worksheet;
	commands: ICommandService;
	formulas: FormulaDataModel;
	extent: GridExtent;
	heights: RowHeights;
	/** Cells were shown. */
	onShown(): void;
	/** These cells were written without a mutation. */
	onFilled(cells: Place[]): void;
}

export class Contents {
	hasFormulas = false;
	private readonly unitId: string;
	private readonly sheetId: string;

	constructor(private readonly parts: ContentParts) {
		this.unitId = parts.book.getUnitId();
		this.sheetId = parts.sheet.getSheetId();
	}

	/** Replaces the cells of a range, except those that `skip` names. Writes the model directly, which is much faster. */
	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void {
		this.parts.extent.growTo(
			cells.reduce((most, { row }) => Math.max(most, row + 1), 0),
			cells.reduce((most, { col }) => Math.max(most, col + 1), 0),
		);
		const matrix = this.parts.sheet.getCellMatrix();
		const formulas: CellEdit[] = [];
		const listed = new Set(cells.map(({ row, col }) => keyOf(row, col)));
		const gone: CellEdit[] = [];
		const rows = matrix.getMatrix();
		for (let row = range.row; row <= Math.min(range.toRow, matrix.getLength() - 1); row++) {
			for (const name of Object.keys(rows[row] ?? {})) {
				const col = Number(name);
				if (col >= range.col && col <= range.toCol && !listed.has(keyOf(row, col)) && !skip(row, col)) gone.push({ row, col, content: '', style: null });
			}
		}
		const isFormula = (content: string) => content.startsWith('=') && content.length > 1;
		for (const { row, col, content = '' } of cells)
			if (!isFormula(content) && !skip(row, col) && isFormulaCell(matrix.getValue(row, col))) gone.push({ row, col, content: '', style: null });
		// Univer hears of formulas that go. Only then others may take their cells.
		if (gone.length > 0) this.apply(gone);
		let shown: CellEdit | undefined;
		for (const cell of cells) {
			const { row, col, content = '' } = cell;
			const style = styleOfInfo(cell.style);
			if (skip(row, col)) continue;
			if (isFormula(content)) {
				formulas.push(cell);
				continue;
			}
			const { s: dateStyle, ...data } = cellOfContent(content, style?.n?.pattern) ?? {};
			const full = style || dateStyle ? { ...(dateStyle as IStyleData), ...style } : null;
			const custom = dateStyle && !style?.n ? { custom: implied((dateStyle as IStyleData).n!.pattern) } : {};
			matrix.setValue(row, col, full ? { ...data, ...custom, s: this.parts.book.getStyles().setValue(full) } : data);
			shown ??= cell;
			this.parts.heights.changed(row, content, full);
		}
		if (formulas.length > 0) this.apply(formulas);
		else if (shown)
			this.parts.commands.syncExecuteCommand(
				setValues,
				{ unitId: this.unitId, subUnitId: this.sheetId, cellValue: { [shown.row]: { [shown.col]: {} } } },
				{ fromCollab: true, onlyLocal: true },
			);
		if (this.hasFormulas && cells.length > formulas.length) this.parts.onFilled(cells);
	}

	/** Applies edits. Cells that are so already are left alone. */
	apply(edits: CellEdit[]): void {
		const cellValue: Record<number, Record<number, ICellData>> = {};
		let written = 0;
		let [rows, columns, touchesFormula] = [0, 0, false];
		for (const { row, col, content, style: info } of edits) {
			const style = info === undefined ? undefined : styleOfInfo(info);
			const old = this.parts.sheet.getCellRaw(row, col);
			const oldStyle = this.styleOf(old);
			const newContent = content !== undefined && content !== this.contentAt(row, col);
			const newStyle = style !== undefined && !sameStyle(style as Style, oldStyle as Style);
			if (!newContent && !newStyle) continue;
			const cell = newContent ? (style === undefined ? patchOfContent(content, oldStyle, old) : patchOfContent(content, style)) : {};
			if (newStyle) cell.s = style === null ? (cell.s ?? null) : { ...(cell.s as IStyleData), ...stylePatch(style, oldStyle) };
			if (newStyle && style?.n && old?.custom?.impliedFormat) cell.custom ??= null;
			if (newContent && (cell.f || old?.f || old?.si)) touchesFormula = true;
			(cellValue[row] ??= {})[col] = cell;
			this.parts.heights.changed(row, content ?? '', style ?? oldStyle);
			written++;
			rows = Math.max(rows, row + 1);
			columns = Math.max(columns, col + 1);
		}
		if (written === 0) return;
		this.parts.extent.growTo(rows, columns);
		this.hasFormulas ||= touchesFormula;
		// onlyRows: tools/univer.ts
		const options: IExecutionOptions = touchesFormula ? { fromCollab: true } : { fromCollab: true, onlyLocal: true, onlyRows: true };
		this.parts.commands.syncExecuteCommand(setValues, { unitId: this.unitId, subUnitId: this.sheetId, cellValue }, options);
		this.parts.onShown();
	}

	/** The style of a cell is being stored, with the format that it shows. */
	stores(row: number, col: number): void {
		const cell = this.parts.sheet.getCellRaw(row, col);
		if (cell?.custom?.impliedFormat) delete cell.custom;
	}

	private styleOf(cell: Nullable<ICellData>): Nullable<IStyleData> {
		return ownStyle(cell, this.parts.book.getStyles());
	}

	contentAt(row: number, col: number): string {
		const cell = this.parts.sheet.getCellRaw(row, col);
		if (!cell) return '';
		let formula: Nullable<string> = cell.f;
		if (!formula && cell.si) formula = this.parts.formulas.getFormulaStringByCell(row, col, this.sheetId, this.unitId);
		return contentOfCell(cell, formula, this.styleOf(cell));
	}

	read(row: number, col: number): CellState {
		return { content: this.contentAt(row, col), style: plainStyle(this.styleOf(this.parts.sheet.getCellRaw(row, col))) };
	}

	list(range: Range): CellEdit[] {
		const cells: CellEdit[] = [];
		visitCells(this.parts.sheet.getCellMatrix().getMatrix(), range, (row, col) => {
			const { content, style } = this.read(row, col);
			if (content !== '' || style) cells.push({ row, col, content, style });
		});
		return cells;
	}

	formulas(): (Place & { content: string })[] {
		const cells: (Place & { content: string })[] = [];
		if (this.hasFormulas)
			visitCells(this.parts.sheet.getCellMatrix().getMatrix(), { row: 0, col: 0, toRow: maxRows, toCol: maxCols }, (row, col, cell) => {
				if (cell.f || cell.si) cells.push({ row, col, content: this.contentAt(row, col) });
			});
		return cells;
	}
}
