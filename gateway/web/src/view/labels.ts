// labels.ts - accessible names and roles for Univer's controls, most of which show only an icon. A button's command is in
// its data-u-command attribute.
import { t, tOr } from '../i18n';

/** Names that Univer does not translate. */
const untranslated = [
	['ui.', 'tool.toolbar'],
	['Sidebar panel', 'tool.sidebar'],
	['Close sidebar', 'tool.closeSidebar'],
	['Notifications', 'tool.notifications'],
] as const;

function nameOf(element: HTMLElement): string {
	const command = element.closest<HTMLElement>('[data-u-command]')?.dataset.uCommand ?? '';
	const last = command.replace(/^[\w-]+\.(command|operation)\.(numfmt\.)?(set\.)?/, '');
	return tOr(`tool.${last}`, 'tool.other', { command: last.replace(/[-.]/g, ' ') });
}

function nameAll(root: HTMLElement): void {
	for (const element of root.querySelectorAll<HTMLElement>('button, [role="button"], a, input, [data-u-command]')) {
		if (element.ariaLabel || element.hasAttribute('aria-labelledby') || element.textContent?.trim() || (element as HTMLInputElement).labels?.length) continue;
		if (element.dataset.uComp === 'ribbon-header-menu') continue;
		element.setAttribute('aria-label', nameOf(element) || t('tool.menu'));
		if (element instanceof HTMLDivElement) element.role ??= 'group';
		if (element instanceof HTMLAnchorElement) element.role ??= 'button';
	}
	for (const icon of root.querySelectorAll('svg:not([aria-hidden])')) icon.setAttribute('aria-hidden', 'true');
	// The focus comes to the cells with F6 or the mouse; a positive tabindex would put them before all else.
	root.querySelectorAll<HTMLCanvasElement>('canvas').forEach((canvas, i) => {
		if (canvas.tabIndex > 0) canvas.tabIndex = -1;
		if (canvas.id && canvas !== root.querySelector(`canvas[id="${canvas.id}"]`)) canvas.id += `-${i}`;
	});
	for (const element of document.querySelectorAll<HTMLElement>(untranslated.map(([start]) => `[aria-label^="${start}"]`).join())) {
		const [, key] = untranslated.find(([start]) => element.ariaLabel!.startsWith(start))!;
		if (element.ariaLabel !== t(key)) element.setAttribute('aria-label', t(key));
	}
}

/** Names present and future buttons: Univer puts dialogs and panels behind its container, too. Returns a function that stops it. */
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
