// choose.ts - the choice of a file of rows, and its dialog, which is loaded then.
import { h, notify } from '../dom';
import { loadDialogTexts, t } from '../i18n';
import type { Session } from '../api';
import type { ImportTarget } from './import';

export const rowFiles = '.csv,.tsv,.txt,.jsonl,text/csv,text/tab-separated-values';

/** Runs `work` with a module and its texts unless a dialog was opened meanwhile, or tells that the gateway cannot be reached. */
export function withModule<M>(loading: Promise<M>, work: (module: M) => void): void {
	const loaded = ([module]: [M, void]) => document.querySelector('dialog[open]') || work(module);
	Promise.all([loading, loadDialogTexts()]).then(loaded, () => notify(t('error.unreachable'), 'problem'));
}

/** Lets the user choose a file, and shows the dialog in which it becomes what `target` says. */
export function chooseRows(session: Session, target: ImportTarget): void {
	const input = h('input', { type: 'file', accept: rowFiles });
	input.addEventListener('change', () => {
		const file = input.files?.[0];
		if (file) withModule(import('./import'), ({ importFile }) => importFile(session, file, target));
	});
	input.click();
}
