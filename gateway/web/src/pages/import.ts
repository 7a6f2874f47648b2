// import.ts - the upload of a CSV file, which becomes a sheet. Loaded at its first use.
import { CsvError, uploadCsv } from '../csv';
import { button, explain, h, openDialog } from '../dom';
import { t } from '../i18n';
import { localeOf } from '../paste/locale';
import { asCsv } from '../separated';
import type { Navigation } from '../main';
import type { Session } from '../api';

/** Uploads a file, with a dialog that shows how far it is. */
export function importFile(session: Session, file: File, navigation: Navigation): void {
	const share = h('progress', { max: 1, value: 0, 'aria-label': t('csv.progress') });
	const text = h('p', { role: 'status' }, t('csv.sending', { name: file.name }));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const cancel = button(t('cancel'), () => close());
	const { dialog, close } = openDialog(t('csv.import'), text, share, problem, h('footer', {}, cancel));
	let open = true;
	// A file that cannot be converted is sent unchanged. The gateway tells where it is not UTF-8.
	const content = asCsv(file, localeOf(navigator.language).comma).catch(() => file);
	const upload = uploadCsv(session, file, content, (sent) => {
		share.value = sent;
		if (sent < 1) return;
		// All has arrived, and the sheet is being made: it can be cancelled no more.
		share.removeAttribute('value');
		text.textContent = t('csv.making');
		cancel.hidden = true;
	});
	dialog.addEventListener('close', () => {
		open = false;
		if (!cancel.hidden) upload.cancel();
	});
	upload.done.then(
		(fid) => {
			cancel.hidden = true;
			if (!open) return;
			close();
			navigation.toSheet(fid);
		},
		(error: unknown) => {
			share.hidden = true;
			text.hidden = true;
			cancel.textContent = t('close');
			cancel.hidden = false;
			problem.textContent = error instanceof CsvError ? error.message : explain(error);
		},
	);
}
