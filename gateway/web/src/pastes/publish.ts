// publish.ts - the dialog that makes a paste of the selected cells: what they show, as CSV or TSV. Loaded at its first use.
import type { Session } from '../api';
import { rangeName } from '../content';
import { copyField } from '../copying';
import { button, field, h, notify, openDialog } from '../dom';
import { formatTime, loadDialogTexts, loadPasteTexts, t } from '../i18n';
import { writeTable } from '../paste/tsv';
import type { Range } from '../v2/messages';
import { visitCells } from '../view/cells/reading';
import { shownRows } from '../view/cells/shown';
import { hasContent, type GridParts } from '../view/parts';
import { addressOf, createPaste, endChoice, mostBytes, sizeProblem } from './create';

const mostTitle = 200;

/** The rows as CSV. A row that is one empty cell is not an empty line, which programs skip. */
export function writeCsv(rows: string[][]): string {
	const quote = (cell: string) => (/[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
	return rows.map((row) => (row.length === 1 && row[0] === '' ? '""' : row.map(quote).join(','))).join('\n');
}

const writers: Record<string, (rows: string[][]) => string> = { csv: writeCsv, tsv: writeTable };

/** A text that begins like a formula gets an apostrophe, so that no program computes what somebody has written. */
export const escapeFormulas = (rows: string[][]): string[][] => rows.map((row) => row.map((cell) => (cell.startsWith('=') ? `'${cell}` : cell)));

const cellsOf = ({ row, col, toRow, toCol }: Range) => (toRow - row + 1) * (toCol - col + 1);

/** A range up to its last cell with content. */
function usedOf({ sheet }: GridParts, range: Range): Range {
	const used = { ...range, toRow: range.row, toCol: range.col };
	visitCells(sheet.getCellMatrix().getMatrix(), range, (row, col, cell) => {
		if (!hasContent(cell)) return;
		used.toRow = Math.max(used.toRow, row);
		used.toCol = Math.max(used.toCol, col);
	});
	return used;
}

/** Rows without the empty ones at the end, and without empty columns there. */
export function trimmed(rows: string[][]): string[][] {
	const end = <T>(all: T[], isFilled: (item: T) => boolean) => all.reduce((last, item, i) => (isFilled(item) ? i + 1 : last), 0);
	const width = Math.max(0, ...rows.map((row) => end(row, (cell) => cell !== '')));
	const height = end(rows, (row) => row.some((cell) => cell !== ''));
	return rows.slice(0, height).map((row) => row.slice(0, width));
}

export interface PublishedSheet {
	session: Session;
	name: string;
	parts: GridParts;
	/** The kind of refusal if not all of these cells are in the grid; null if they are. */
	lacks(ranges: Range[]): string | null;
}

/** Opens the dialog for the cells of a range that are shown. */
export async function publishRange({ session, name, parts, lacks }: PublishedSheet, selected: Range): Promise<void> {
	await Promise.all([loadPasteTexts(), loadDialogTexts()]);
	const { sheet } = parts;
	// Each cell has a separator. Whole columns end at the last content.
	const range = cellsOf(selected) > mostBytes ? usedOf(parts, selected) : selected;
	if (cellsOf(range) > mostBytes) return notify(t('publish.many', { range: rangeName(range) }), 'problem');
	const lacking = lacks([range]);
	if (lacking) return notify(t(`blocked.${lacking}`), 'problem');
	const at = { startRow: range.row, startColumn: range.col, endRow: range.toRow, endColumn: range.toCol };
	const rows = trimmed(
		shownRows(
			sheet,
			at,
			(row) => sheet.getRowVisible(row) && !sheet.getRowFiltered(row),
			(col) => sheet.getColVisible(col),
		),
	);
	if (rows.length === 0) return notify(t('publish.empty'), 'problem');
	openPublish(session, `${name} ${rangeName(range)}`.trim(), rows);
}

/** Opens the dialog for these rows of texts. name: of the sheet and its range. */
function openPublish(session: Session, name: string, rows: string[][]): void {
	const table = escapeFormulas(rows);
	const lang = h(
		'select',
		{ id: 'publish-lang', change: () => check() },
		...Object.keys(writers).map((kind) => h('option', { value: kind }, kind.toUpperCase())),
	);
	const ends = endChoice('publish-ends');
	const title = field(t('paste.title'), { maxlength: mostTitle, value: [...name].slice(0, mostTitle).join('') });
	const problem = h('p', { class: 'problem', role: 'alert' });
	const submit = h('button', { type: 'submit', class: 'primary' }, t('paste.publish'));
	let content = '';

	function check(): void {
		content = writers[lang.value]!(table);
		problem.textContent = sizeProblem(content);
		submit.disabled = problem.textContent !== '';
	}
	async function publish(event: Event): Promise<void> {
		event.preventDefault();
		submit.disabled = true;
		problem.textContent = '';
		const expiration = Number(ends.value);
		const made = await createPaste(session, { content, title: title.input.value, lang: lang.value, expiration });
		if (!dialog.isConnected) return;
		submit.disabled = false;
		if (made.key === undefined) problem.textContent = made.problem;
		else showAddress(addressOf(made.key), expiration);
	}
	function showAddress(address: string, seconds: number): void {
		const copied = copyField(t('publish.address'));
		copied.input.value = address;
		form.replaceWith(
			h('p', { role: 'status' }, t('publish.done', { at: formatTime(new Date(Date.now() + seconds * 1000).toISOString()) })),
			copied.row,
			h(
				'footer',
				{},
				h('a', { href: address, target: '_blank', rel: 'noopener' }, t('publish.open')),
				button(t('close'), () => close()),
			),
		);
		copied.input.focus();
		copied.input.select();
	}
	const labelled = (text: string, select: HTMLSelectElement) => h('div', { class: 'field' }, h('label', { for: select.id }, text), select);
	const form = h(
		'form',
		{ class: 'stacked', submit: (event) => void publish(event) },
		h('p', {}, t('publish.help', { name, rows: table.length, cols: table[0]?.length ?? 0 })),
		title.row,
		labelled(t('publish.format'), lang),
		labelled(t('paste.end'), ends),
		problem,
		h('footer', {}, submit),
	);
	const { dialog, close } = openDialog(t('publish.title'), form);
	check();
	if (submit.disabled) lang.focus();
	else submit.focus();
}
