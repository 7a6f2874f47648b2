// status.ts - the bar below the grid: sum, average and number of the selected values, and the zoom.
//
// A date is a number in the grid, and the sum of dates means nothing: they have only an average, if there are no other numbers.
import { CellValueType, IUniverInstanceService, numfmt, UniverInstanceType } from '@univerjs/core';
import type { ICellData, IRange, Workbook } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { button, h } from '../dom';
import { language, t } from '../i18n';
import { hasContent, type GridParts } from './parts';

const settleMs = 120;
/** So many rows are added up without a pause. */
const sliceRows = 5000;
const zooms = [0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4];

interface Total {
	sum: number;
	count: number;
	/** The format of the first. */
	pattern: string;
	/** Whether all have formats of one kind. */
	alike: boolean;
}

interface Sums {
	numbers: Total;
	dates: Total;
	cells: number;
}

/** Fifteen digits, without the noise of binary fractions. */
export const shownNumber = (number: number): string => new Intl.NumberFormat(language, { maximumFractionDigits: 10 }).format(Number(number.toPrecision(14)));

const kindOf = (pattern: string) => numfmt.getFormatInfo(pattern).type;

/** Times and percentages are shown as such; of all other formats, the number. */
function shownAs(number: number, { pattern, alike }: Total): string {
	const kind = alike ? kindOf(pattern) : '';
	if (kind === 'time') return numfmt.format('[h]:mm:ss', number);
	return kind === 'percent' ? `${shownNumber(number * 100)}%` : shownNumber(number);
}

function sumsText({ numbers, dates, cells }: Sums): string {
	if (cells < 2) return '';
	const texts = [t('status.count', { count: cells })];
	if (numbers.count > 0)
		texts.unshift(t('status.sum', { sum: shownAs(numbers.sum, numbers) }), t('status.average', { average: shownAs(numbers.sum / numbers.count, numbers) }));
	else if (dates.count > 0) texts.unshift(t('status.average', { average: numfmt.format(dates.pattern, dates.sum / dates.count) }));
	return texts.join('   ');
}

function addTo(total: Total, number: number, pattern: string): void {
	if (total.count === 0) total.pattern = pattern;
	else if (total.alike && pattern !== total.pattern) total.alike = kindOf(pattern) === kindOf(total.pattern);
	total.sum += number;
	total.count++;
}

function addCell(sums: Sums, cell: ICellData, patternOf: (cell: ICellData) => string): void {
	if (!hasContent(cell)) return;
	sums.cells++;
	if (typeof cell.v !== 'number' || (cell.t !== undefined && cell.t !== CellValueType.NUMBER)) return;
	const pattern = cell.s ? patternOf(cell) : '';
	addTo(pattern !== '' && kindOf(pattern)?.startsWith('date') ? sums.dates : sums.numbers, cell.v, pattern);
}

/** The cells of each range, which count once if ranges overlap. Yields now and then. */
function* addUp(parts: GridParts, ranges: IRange[]): Generator<undefined, Sums> {
	const none = { sum: 0, count: 0, pattern: '', alike: true };
	const sums: Sums = { numbers: { ...none }, dates: { ...none }, cells: 0 };
	const styles = parts.injector.get(IUniverInstanceService).getUnit<Workbook>(parts.sheet.getUnitId(), UniverInstanceType.UNIVER_SHEET)!.getStyles();
	const patternOf = (cell: ICellData) => styles.getStyleByCell(cell)?.n?.pattern ?? '';
	const rows = parts.sheet.getCellMatrix().getMatrix();
	const last = parts.sheet.getRowCount() - 1;
	const end = (line: number, most: number) => (Number.isNaN(line) ? most : line);
	const ends = ranges.map(
		({ startRow, endRow, startColumn, endColumn }) => [startRow || 0, Math.min(end(endRow, last), last), startColumn || 0, end(endColumn, Infinity)] as const,
	);
	const [from, to] = [Math.min(...ends.map(([start]) => start)), Math.max(...ends.map(([, end]) => end))];
	for (let row = from; row <= to; row++) {
		if (row % sliceRows === 0) yield;
		const cells = rows[row];
		const here = cells && ends.filter(([start, end]) => row >= start && row <= end);
		if (!here || here.length === 0) continue;
		for (const [name, cell] of Object.entries(cells))
			if (cell && here.some(([, , start, end]) => Number(name) >= start && Number(name) <= end)) addCell(sums, cell as ICellData, patternOf);
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
	const zoom = h(
		'span',
		{ class: 'zoom' },
		button('\u2212', () => step(false), { 'aria-label': t('status.zoomOut') }),
		percent,
		button('+', () => step(true), { 'aria-label': t('status.zoomIn') }),
	);
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
			adding = addUp(
				parts,
				injector
					.get(SheetsSelectionsService)
					.getCurrentSelections()
					.map(({ range }) => range),
			);
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
