// menu.ts - a menu above a button of the bar of tabs, or where the pointer is.
import { bdi, h } from '../dom';

export interface Item {
	text: string;
	run(): void;
	/** Of several, the chosen one. */
	checked?: boolean;
	disabled?: boolean;
	colour?: string | null;
	/** What is said of it besides its text. */
	note?: string;
	/** The text is a name that somebody has chosen. */
	name?: boolean;
}

/** What closes the open menu. */
let closeOpen: (() => void) | null = null;

export function closeMenu(): void {
	closeOpen?.();
}

function itemElement(item: Item, close: () => void): HTMLElement {
	const swatch = item.colour && h('span', { class: 'swatch', style: `--tab: ${item.colour}`, 'aria-hidden': 'true' });
	return h(
		'button',
		{
			type: 'button',
			role: item.checked === undefined ? 'menuitem' : 'menuitemradio',
			'aria-checked': item.checked === undefined ? undefined : String(item.checked),
			'aria-disabled': item.disabled ? 'true' : undefined,
			tabindex: -1,
			click() {
				if (item.disabled) return;
				close();
				item.run();
			},
		},
		swatch || null,
		item.name ? bdi(item.text) : item.text,
		item.note ? h('span', { class: 'note' }, ` ${item.note}`) : null,
	);
}

/** anchor: has the focus again when the menu is closed by Escape. at: where the pointer is. */
export function openMenu(anchor: HTMLElement, label: string, items: Item[], at?: { x: number }): void {
	closeMenu();
	const close = (focus = false) => {
		closeOpen = null;
		ended.abort();
		menu.remove();
		anchor.setAttribute('aria-expanded', 'false');
		if (focus) anchor.focus();
	};
	const ended = new AbortController();
	const elements = items.map((item) => itemElement(item, () => close(true)));
	const menu = h('div', { class: 'tab-menu', role: 'menu', 'aria-label': label }, ...elements);
	const focused = () => elements.indexOf(document.activeElement as HTMLElement);
	const { signal } = ended;
	menu.addEventListener('keydown', (event) => {
		const n = elements.length;
		const to = { ArrowDown: (focused() + 1) % n, ArrowUp: (focused() + n - 1) % n, Home: 0, End: n - 1 }[event.key];
		event.stopPropagation();
		if (event.key === 'Escape' || event.key === 'Tab') close(true);
		else if (to !== undefined) elements[to]!.focus();
		else return;
		event.preventDefault();
	});
	document.addEventListener('pointerdown', ({ target }) => target instanceof Node && !menu.contains(target) && !anchor.contains(target) && close(), {
		capture: true,
		signal,
	});
	window.addEventListener('resize', () => close(), { signal });
	document.body.append(menu);
	const box = anchor.getBoundingClientRect();
	menu.style.left = `${Math.max(4, Math.min(at?.x ?? box.left, innerWidth - menu.offsetWidth - 4))}px`;
	menu.style.bottom = `${innerHeight - box.top + 4}px`;
	menu.style.maxHeight = `${box.top - 12}px`;
	anchor.setAttribute('aria-expanded', 'true');
	closeOpen = close;
	(elements.find((element) => element.ariaChecked === 'true') ?? elements[0])?.focus();
}
