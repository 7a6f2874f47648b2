// pictures.ts - the upload of a picture for a cell, with what is shown meanwhile. Loaded at its first use.
import { ApiError, type Session } from '../api';
import { button, explain, h, notify } from '../dom';
import { loadDialogTexts, t } from '../i18n';
import { linkContent } from '../paste/plan';
import { uploadFile } from './upload';

const mostNameBytes = 200;

/** A name that the gateway takes. Browsers call each copied picture image.png: those get the time instead. */
export function nameOf(file: File, now: Date): string {
	const [, start, ending] = /^(.*?)(\.[^.]{1,10})?$/s.exec(file.name)!;
	const time = new Date(now.getTime() - now.getTimezoneOffset() * 60000).toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '.');
	const letters = [...(start === 'image' || !start ? `${t('picture.name')} ${time}` : start)];
	const bytes = () => new TextEncoder().encode(letters.join('')).length;
	while (bytes() > mostNameBytes) letters.pop();
	return letters.join('') + (ending ?? '');
}

/** Uploads a picture. Resolves to what its cell is to have; null: it was not uploaded, and the user knows. refocus: the button that
 * had the focus is gone. */
export async function uploadPicture(
	session: Session,
	fid: number,
	file: File,
	area: HTMLElement,
	refocus: () => void,
	signal: AbortSignal,
): Promise<string | null> {
	await loadDialogTexts();
	if (signal.aborted) return null;
	const name = nameOf(file, new Date());
	const share = h('progress', { max: 1, value: 0, 'aria-label': t('csv.progress') });
	const upload = uploadFile(session, fid, file, name, (sent) => (share.value = sent));
	const cancel = button(t('cancel'), () => upload.cancel(), { 'aria-label': t('picture.cancel', { name }) });
	const row = h('span', { class: 'upload' }, h('span', { role: 'status' }, t('csv.sending', { name })), share, cancel);
	signal.addEventListener('abort', () => upload.cancel());
	area.append(row);
	try {
		const stored = await upload.done;
		return linkContent(stored.url, stored.name);
	} catch (error) {
		if (error instanceof ApiError && error.code === 'canceled') notify(t('picture.canceled', { name }));
		else notify(t('picture.failed', { name, reason: explain(error) }), 'problem');
		return null;
	} finally {
		const focused = row.contains(document.activeElement);
		row.remove();
		if (focused) refocus();
	}
}
