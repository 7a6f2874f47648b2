// labels.ts - accessible names for the buttons of Univer's toolbar, most of which show only an icon. A button's command is
// in its data-u-command attribute.
import { t, tOr } from '../i18n';

function nameOf(element: HTMLElement): string {
	const command = element.closest<HTMLElement>('[data-u-command]')?.dataset.uCommand ?? '';
	const last = command.replace(/^[\w-]+\.(command|operation)\.(numfmt\.)?(set\.)?/, '');
	return tOr(`tool.${last}`, 'tool.other', { command: last.replace(/[-.]/g, ' ') });
}

function nameAll(root: HTMLElement): void {
	for (const element of root.querySelectorAll<HTMLElement>('button, [role="button"], input, [data-u-command]')) {
		if (element.ariaLabel || element.hasAttribute('aria-labelledby') || element.textContent?.trim() || (element as HTMLInputElement).labels?.length) continue;
		if (element.dataset.uComp === 'ribbon-header-menu') continue;
		element.setAttribute('aria-label', nameOf(element) || t('tool.menu'));
	}
	// Names that Univer does not translate.
	for (const element of root.querySelectorAll<HTMLElement>('[aria-label^="ui."]')) element.setAttribute('aria-label', t('tool.toolbar'));
}

/** Names present and future buttons. Returns a function that stops it. */
export function nameToolbarButtons(root: HTMLElement): () => void {
	let waiting = false;
	const observer = new MutationObserver(() => {
		if (waiting) return;
		waiting = true;
		requestAnimationFrame(() => {
			waiting = false;
			nameAll(root);
		});
	});
	observer.observe(root, { childList: true, subtree: true });
	nameAll(root);
	return () => observer.disconnect();
}
