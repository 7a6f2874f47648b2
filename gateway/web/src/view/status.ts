// status.ts - the bar below the grid: sum, average and number of the selected values, and the zoom.
import { CellValueType } from '@univerjs/core';
import type { ICellData, IRange } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { button, h } from '../dom';
import { language, t } from '../i18n';
import { hasContent, type GridParts } from './parts';

const settleMs = 120;
/** So many rows are added up without a pause. */
const sliceRows = 5000;
const zooms = [0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4];

export interface Sums {
	sum: number;
	numbers: number;
	cells: number;
}

/** Fifteen digits, without the noise of binary fractions. */
export const shownNumber = (number: number): string => new Intl.NumberFormat(language, { maximumFractionDigits: 10 }).format(Number(number.toPrecision(14)));

export function sumsText({ sum, numbers, cells }: Sums): string {
	if (cells < 2) return '';
	const count = t('status.count', { count: cells });
	return numbers === 0 ? count : [t('status.sum', { sum: shownNumber(sum) }), t('status.average', { average: shownNumber(sum / numbers) }), count].join('   ');
}

function addCell(sums: Sums, cell: ICellData): void {
	if (!hasContent(cell)) return;
	sums.cells++;
	if (typeof cell.v !== 'number' || (cell.t !== undefined && cell.t !== CellValueType.NUMBER)) return;
	sums.sum += cell.v;
	sums.numbers++;
}

/** The cells of each range, which count once if ranges overlap. Yields now and then. */
function* addUp(parts: GridParts, ranges: IRange[]): Generator<undefined, Sums> {
	const sums: Sums = { sum: 0, numbers: 0, cells: 0 };
	const rows = parts.sheet.getCellMatrix().getMatrix();
	const last = parts.sheet.getRowCount() - 1;
	const end = (line: number, most: number) => (Number.isNaN(line) ? most : line);
	const ends = ranges.map(({ startRow, endRow, startColumn, endColumn }) => [startRow || 0, Math.min(end(endRow, last), last), startColumn || 0, end(endColumn, Infinity)] as const);
	const [from, to] = [Math.min(...ends.map(([start]) => start)), Math.max(...ends.map(([, end]) => end))];
	for (let row = from; row <= to; row++) {
		if (row % sliceRows === 0) yield;
		const cells = rows[row];
		const here = cells && ends.filter(([start, end]) => row >= start && row <= end);
		if (!here || here.length === 0) continue;
		for (const [name, cell] of Object.entries(cells)) if (cell && here.some(([, , start, end]) => Number(name) >= start && Number(name) <= end)) addCell(sums, cell as ICellData);
	}
	return sums;
}

/** Fills the element, until the returned function is called. */
export function addStatus(parts: GridParts, element: HTMLElement): () => void {
	const { commands, injector, sheet } = parts;
	const [unitId, subUnitId] = [sheet.getUnitId(), sheet.getSheetId()];
	const sums = h('span', { class: 'sums' });
	const set = (zoomRatio: number) => void commands.executeCommand('sheet.command.set-zoom-ratio', { unitId, subUnitId, zoomRatio });
	const step = (up: boolean) => {
		const now = sheet.getZoomRatio();
		set((up ? zooms.find((zoom) => zoom > now + 0.001) : zooms.filter((zoom) => zoom < now - 0.001).at(-1)) ?? now);
	};
	const percent = button('100%', () => set(1), { class: 'percent' });
	const showZoom = () => {
		percent.textContent = `${Math.round(sheet.getZoomRatio() * 100)}%`;
		percent.setAttribute('aria-label', t('status.zoom', { percent: percent.textContent }));
		percent.title = t('status.zoomReset');
	};
	const zoom = h('span', { class: 'zoom' }, button('\u2212', () => step(false), { 'aria-label': t('status.zoomOut') }), percent, button('+', () => step(true), { 'aria-label': t('status.zoomIn') }));
	element.append(sums, zoom);
	showZoom();

	let timer: ReturnType<typeof setTimeout> | undefined;
	let adding: Generator<undefined, Sums> | null = null;
	const goOn = () => {
		const { done, value } = adding!.next();
		if (done) sums.textContent = sumsText(value);
		timer = done ? undefined : setTimeout(goOn);
	};
	const changed = () => {
		clearTimeout(timer);
		timer = setTimeout(() => {
			adding = addUp(parts, injector.get(SheetsSelectionsService).getCurrentSelections().map(({ range }) => range));
			goOn();
		}, settleMs);
	};
	const listener = commands.onCommandExecuted(({ id }) => {
		if (/set-selections$|\.set-range-values$|move-range$/.test(id)) changed();
		if (id === 'sheet.operation.set-zoom-ratio') showZoom();
	});
	return () => {
		clearTimeout(timer);
		listener.dispose();
		element.replaceChildren();
	};
}
