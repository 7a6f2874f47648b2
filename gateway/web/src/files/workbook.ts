// workbook.ts - the dialog of a workbook (.xlsx) that becomes a book: the upload, and what of it was not taken over. Loaded at its first use.
import { refusal } from '../csv';
import { button, explain, h, notify, openDialog } from '../dom';
import { t, tOr } from '../i18n';
import type { Navigation } from '../main';
import type { Session } from '../api';

interface Part {
	tab: string | null;
	what: string;
	count: number;
}

interface Imported {
	id: number;
	tabs: { id: number; name: string }[];
	not_carried: Part[];
	/** Not shown, but in a workbook that is made of the book. */
	kept: Part[];
}

interface Refusal {
	data?: unknown;
	code?: unknown;
	tab?: unknown;
	part?: unknown;
	row?: unknown;
	column?: unknown;
}

const bookNameOf = ({ name }: { name: string }): string => [...name.replace(/\.xls[xm]$/i, '')].slice(0, 255).join('') || t('sheets.untitled');

/** Why a workbook was refused, and where. The reason of the gateway is English. */
function problemOf(status: number, answer: Refusal | null): string {
	if (typeof answer?.code !== 'string') return explain(refusal(status));
	const { code, data, tab, part, row, column } = answer;
	const place = [tab ?? part, row && t('workbook.row', { row: String(row) }), column && t('workbook.column', { column: String(column) })].filter(Boolean);
	const text = tOr(`workbook.error.${code}`, 'error.other', { code });
	return `${text}${place.length > 0 ? ` ${place.join(', ')}.` : ''} (${String(data)})`;
}

/** Uploads a workbook, and shows the book that it becomes. Nothing is left if it fails. */
export function importWorkbook(session: Session, file: File, navigation: Navigation): void {
	const share = h('progress', { max: 1, value: 0, 'aria-label': t('csv.progress') });
	const text = h('p', { role: 'status' }, t('csv.sending', { name: file.name }));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const result = h('div');
	const cancel = button(t('cancel'), () => close());
	const open = button(t('workbook.open'), () => {}, { class: 'primary', hidden: true });
	const { dialog, close } = openDialog(t('workbook.title'), h('p', { dir: 'auto' }, file.name), text, share, result, problem, h('footer', {}, cancel, open));
	let isOpen = true;
	// fetch() tells nothing of its progress.
	const sending = new XMLHttpRequest();
	const fail = (reason: string) => {
		share.hidden = true;
		text.textContent = '';
		cancel.hidden = false;
		if (isOpen) problem.textContent = reason;
		else notify(reason, 'problem');
	};
	const item = ({ tab, what, count }: Part) =>
		h('li', { lang: 'en', dir: 'auto' }, `${tab === null ? '' : `${tab}: `}${what}${count > 1 ? ` (${count})` : ''}`);
	const listOf = (title: string, parts: Part[]) => (parts.length > 0 ? [h('p', {}, title), h('ul', {}, ...parts.map(item))] : []);
	const show = ({ tabs, not_carried: lost, kept }: Imported) => {
		const go = () => {
			close();
			navigation.toSheet(tabs[0]!.id);
		};
		if (!isOpen) return notify(t('workbook.made'));
		if (lost.length + kept.length === 0) return go();
		share.hidden = true;
		open.hidden = false;
		text.textContent = t('workbook.made');
		result.replaceChildren(...listOf(t('workbook.lost'), lost), ...listOf(t('workbook.kept'), kept));
		open.onclick = go;
		open.focus();
	};
	sending.responseType = 'json';
	sending.open('POST', `/v2/books/import?name=${encodeURIComponent(bookNameOf(file))}`);
	sending.setRequestHeader('authorization', `Bearer ${session.token}`);
	sending.setRequestHeader('content-type', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet');
	sending.upload.onprogress = ({ loaded, total }) => {
		share.value = total === 0 ? 1 : loaded / total;
		if (share.value < 1) return;
		// The upload is complete. The import can no longer be cancelled.
		share.removeAttribute('value');
		text.textContent = t('workbook.making');
		cancel.hidden = true;
	};
	sending.onload = () => {
		const answer = sending.response as Imported | null;
		if (sending.status === 201 && answer) show(answer);
		else fail(problemOf(sending.status, answer as Refusal | null));
	};
	sending.onerror = () => fail(t('csv.broken'));
	dialog.addEventListener(
		'close',
		() => {
			isOpen = false;
			if (!cancel.hidden) sending.abort();
		},
		{ once: true },
	);
	sending.send(file);
}
