// dom.ts - small helpers to build the page: elements, dialogs, drawers and short messages.
import { t } from './i18n';

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/** An element; attributes that are functions are listeners, true sets the bare attribute. */
export function h<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (value === undefined || value === false) continue;
		if (typeof value === 'function') element.addEventListener(name, value);
		else element.setAttribute(name, value === true ? '' : String(value));
	}
	element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
	return element;
}

export function button(label: string, run: (event: Event) => void, attributes: Attributes = {}): HTMLButtonElement {
	return h('button', { type: 'button', click: run, ...attributes }, label);
}

let fields = 0;
/** An input with its label. */
export function field(label: string, attributes: Attributes): { row: HTMLElement; input: HTMLInputElement } {
	const id = `field-${++fields}`;
	const input = h('input', { id, ...attributes });
	return { row: h('div', { class: 'field' }, h('label', { for: id }, label), input), input };
}

/** A modal dialog; the browser keeps the focus inside, Escape closes it. */
export function openDialog(title: string, ...content: Child[]): { dialog: HTMLDialogElement; close(): void } {
	const id = `dialog-${++fields}`;
	const before = document.activeElement;
	const dialog = h('dialog', { 'aria-labelledby': id });
	const close = () => dialog.close();
	dialog.append(
		h('header', {}, h('h2', { id }, title), button('✕', close, { class: 'icon', 'aria-label': t('close') })),
		...content.filter((child): child is Node | string => !!child),
	);
	dialog.addEventListener('close', () => {
		dialog.remove();
		if (before instanceof HTMLElement) before.focus();
	});
	document.body.append(dialog);
	dialog.showModal();
	return { dialog, close };
}

/** Asks for a yes; resolves to false when it was closed in any other way. */
export function confirmDialog(title: string, text: string, yes: string, danger = false): Promise<boolean> {
	return new Promise((resolve) => {
		let answer = false;
		const { dialog, close } = openDialog(
			title,
			h('p', {}, text),
			h(
				'footer',
				{},
				button(t('cancel'), () => close()),
				button(yes, () => {
					answer = true;
					close();
				}, { class: danger ? 'danger' : 'primary' }),
			),
		);
		dialog.addEventListener('close', () => resolve(answer));
	});
}

/** A short message at the bottom of the window, also read out. */
export function notify(text: string, kind: 'info' | 'problem' = 'info'): void {
	let area = document.querySelector<HTMLElement>('#messages');
	if (!area) {
		area = h('div', { id: 'messages', role: 'log', 'aria-live': 'polite' });
		document.body.append(area);
	}
	for (const old of area.children) if (old.textContent === text) old.remove();
	const message = h('p', { class: kind }, text);
	area.append(message);
	while (area.children.length > 3) area.firstElementChild?.remove();
	setTimeout(() => message.remove(), kind === 'problem' ? 8000 : 4000);
}
