// openers.ts - what opens the dialogs of the account, its files and imports, whose modules are loaded at their first use.
import { button, h } from '../dom';
import { rowFiles, withModule } from '../files/choose';
import { t } from '../i18n';
import type { Navigation } from '../main';
import type { Session } from '../api';

/** The button with the user's name, which opens the dialog of the account. */
export function accountButton(session: Session, navigation: Navigation): HTMLButtonElement {
	const opener = button(
		session.username,
		() => withModule(import('./account'), ({ openAccount }) => openAccount(session, navigation, () => (opener.textContent = session.username))),
		{
			class: 'user link',
			dir: 'auto',
			'aria-haspopup': 'dialog',
			title: t('account.title'),
		},
	);
	return opener;
}

/** The button that opens what the account has uploaded. */
export function albumButton(session: Session, sheetName: (fid: number) => string | undefined): HTMLElement {
	const open = () => withModule(import('../files/album'), ({ openAlbum }) => openAlbum(session, sheetName));
	return button(t('album.title'), open, { 'aria-haspopup': 'dialog' });
}

/** The button that chooses a file. Files may be dropped anywhere on the page, too, until `signal`; `area` shows it. */
export function importButton(session: Session, area: HTMLElement, navigation: Navigation, signal: AbortSignal): HTMLElement {
	const upload = (file: File) =>
		/\.xls[xm]$/i.test(file.name)
			? withModule(import('../files/workbook'), ({ importWorkbook }) => importWorkbook(session, file, navigation))
			: withModule(import('../files/import'), ({ importFile }) => importFile(session, file, { done: (id) => navigation.toSheet(id!) }));
	const input = h('input', {
		type: 'file',
		accept: `${rowFiles},.xlsx,.xlsm`,
		hidden: true,
		'aria-label': t('sheets.import'),
	});
	input.addEventListener('change', () => {
		const file = input.files?.[0];
		input.value = '';
		if (file) upload(file);
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
		if (file && !document.querySelector('dialog[open]')) upload(file);
	};
	for (const name of ['dragover', 'dragleave'] as const) document.addEventListener(name, over, { signal });
	document.addEventListener('drop', drop, { signal });
	return h(
		'span',
		{},
		button(t('sheets.import'), () => input.click(), { title: t('sheets.importHelp') }),
		input,
	);
}
