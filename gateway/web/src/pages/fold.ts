// fold.ts - a button that shows and hides what it controls. style.css decides whether there is room to show it without.
import { button, h } from '../dom';

/** The button's content and name. The panel is closed by Escape, by a click elsewhere, and by a choice in it. */
export function fold(id: string, name: string, content: Node | string, panel: HTMLElement): { toggle: HTMLButtonElement; close(): void } {
	panel.id = id;
	const toggle = button('', () => show(!isOpen()), { class: 'fold', 'aria-label': name, 'aria-expanded': 'false', 'aria-controls': id });
	toggle.append(content);
	const isOpen = () => panel.hasAttribute('data-open');

	function show(open: boolean): void {
		panel.toggleAttribute('data-open', open);
		toggle.setAttribute('aria-expanded', String(open));
		if (open) document.addEventListener('pointerdown', outside, { capture: true });
		else document.removeEventListener('pointerdown', outside, { capture: true });
	}
	const outside = (event: Event) => {
		if (event.target instanceof Node && !panel.contains(event.target) && !toggle.contains(event.target)) show(false);
	};
	for (const element of [panel, toggle]) {
		element.addEventListener('keydown', (event) => {
			if (event.key !== 'Escape' || !isOpen()) return;
			event.stopPropagation();
			show(false);
			toggle.focus();
		});
	}
	panel.addEventListener('click', (event) => {
		if (isOpen() && event.target instanceof Element && event.target.closest('button')) show(false);
	});
	return { toggle, close: () => show(false) };
}

export const foldIcon = (): HTMLElement => h('span', { 'aria-hidden': 'true' }, '☰');
