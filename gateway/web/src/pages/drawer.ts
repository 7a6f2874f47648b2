// drawer.ts - a panel beside the grid, one at a time, closed by Escape or its button.
import type { SheetApi } from '../api';
import { button, h } from '../dom';
import { t } from '../i18n';
import type { Session } from '../api';
import type { Range } from '../v2/messages';

export interface EditorContext {
	session: Session;
	sheetApi: SheetApi;
	drawers: HTMLElement;
	/** The selected cells. */
	selection(): Range;
	/** The seq of the sheet in which `selection()` has its place. */
	seq(): number;
}

/** Opens a drawer. Its content goes into `body`. */
export function openDrawer({ drawers }: EditorContext, name: string, title: string): { body: HTMLElement; isOpen(): boolean } {
	const opener = document.activeElement;
	const body = h('div', { class: 'drawer-body' });
	const close = () => {
		drawer.remove();
		if (opener instanceof HTMLElement) opener.focus();
	};
	const closer = button('✕', close, { class: 'icon', 'aria-label': t('close') });
	const drawer = h(
		'aside',
		{ class: 'drawer', 'data-drawer': name, 'aria-label': title, keydown: (event) => (event as KeyboardEvent).key === 'Escape' && close() },
		h('header', {}, h('h2', {}, title), closer),
		body,
	);
	drawers.replaceChildren(drawer);
	closer.focus();
	return { body, isOpen: () => drawer.isConnected };
}
