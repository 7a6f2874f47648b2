// import.ts - CSV files that are chosen, or dropped on the list, and become sheets.
import { CsvError, uploadCsv } from '../csv';
import { button, explain, h, openDialog } from '../dom';
import { t } from '../i18n';
import type { Navigation } from '../main';
import type { Session } from '../api';

/** Uploads a file, with a dialog that shows how far it is. */
function importFile(session: Session, file: File, navigation: Navigation): void {
	const share = h('progress', { max: 1, value: 0, 'aria-label': t('csv.progress') });
	const text = h('p', { role: 'status' }, t('csv.sending', { name: file.name }));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const cancel = button(t('cancel'), () => close());
	const { dialog, close } = openDialog(t('csv.import'), text, share, problem, h('footer', {}, cancel));
	let open = true;
	const upload = uploadCsv(session, file, (sent) => {
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

/** The button that chooses a file. Files may be dropped on `area`, too, until `signal`. */
export function importButton(session: Session, area: HTMLElement, navigation: Navigation, signal: AbortSignal): HTMLElement {
	const input = h('input', { type: 'file', accept: '.csv,text/csv', hidden: true, 'aria-label': t('csv.import') });
	input.addEventListener('change', () => {
		const file = input.files?.[0];
		input.value = '';
		if (file) importFile(session, file, navigation);
	});
	const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
	const over = (event: DragEvent) => {
		if (!hasFiles(event)) return;
		event.preventDefault();
		area.classList.toggle('dropping', event.type === 'dragover');
	};
	const drop = (event: DragEvent) => {
		over(event);
		const file = event.dataTransfer?.files[0];
		if (file && !document.querySelector('dialog[open]')) importFile(session, file, navigation);
	};
	for (const name of ['dragover', 'dragleave'] as const) area.addEventListener(name, over, { signal });
	area.addEventListener('drop', drop, { signal });
	return h('span', {}, button(t('csv.import'), () => input.click(), { title: t('csv.importHelp') }), input);
}
