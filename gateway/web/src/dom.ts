// dom.ts - helpers to build the page: elements, dialogs, short messages, and texts for errors.
import { ApiError } from './api';
import { t, tOr } from './i18n';
import { Msg } from './answers';

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/** Creates an element. A function is a listener; true sets an attribute without a value. */
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

/** A name that people have chosen. Its own letters decide its direction, and nothing around it does. */
export const bdi = (name: string): HTMLElement => h('bdi', {}, name);

export function button(label: string, run: (event: Event) => void, attributes: Attributes = {}): HTMLButtonElement {
	return h('button', { type: 'button', click: run, ...attributes }, label);
}

let fields = 0;
/** An input with its label. */
export function field(label: string, attributes: Attributes): { row: HTMLElement; input: HTMLInputElement } {
	const id = `field-${++fields}`;
	const input = h('input', { id, dir: 'auto', ...attributes });
	return { row: h('div', { class: 'field' }, h('label', { for: id }, label), input), input };
}

/**
 * Opens a modal dialog. The browser keeps the focus inside. Escape and its button close it, unless a listener for its event "closing"
 * prevents that.
 */
export function openDialog(title: string, ...content: Child[]): { dialog: HTMLDialogElement; close(): void } {
	const id = `dialog-${++fields}`;
	const before = document.activeElement;
	const dialog = h('dialog', { 'aria-labelledby': id });
	const close = () => dialog.close();
	const closeByUser = () => dialog.dispatchEvent(new Event('closing', { cancelable: true })) && close();
	// Univer takes the key if one of its menus has opened the dialog.
	const escape = (event: KeyboardEvent) => {
		if (event.key !== 'Escape' || event.isComposing || [...document.querySelectorAll('dialog[open]')].at(-1) !== dialog) return;
		event.preventDefault();
		event.stopImmediatePropagation();
		closeByUser();
	};
	window.addEventListener('keydown', escape, { capture: true });
	dialog.append(
		h(
			'header',
			{},
			h('h2', { id }, title),
			button('✕', () => void closeByUser(), { class: 'icon', 'aria-label': t('close') }),
		),
		...content.filter((child): child is Node | string => !!child),
	);
	dialog.addEventListener('close', () => {
		window.removeEventListener('keydown', escape, { capture: true });
		const messages = dialog.querySelector('#messages');
		if (messages) document.body.append(messages);
		dialog.remove();
		if (before instanceof HTMLElement) before.focus();
	});
	document.body.append(dialog);
	dialog.showModal();
	return { dialog, close };
}

/** Resolves to true if the user confirms, and to false if the dialog is closed otherwise. */
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
				button(
					yes,
					() => {
						answer = true;
						close();
					},
					{ class: danger ? 'danger' : 'primary' },
				),
			),
		);
		dialog.addEventListener('close', () => resolve(answer));
	});
}

/** Shows a short message at the bottom of the window, which screen readers read out. */
export function notify(text: string, kind: 'info' | 'problem' = 'info'): void {
	const area = document.querySelector<HTMLElement>('#messages')!;
	// What is outside of an open dialog is neither visible nor read out.
	const place = document.querySelector('dialog[open]') ?? document.body;
	if (area.parentElement !== place) place.append(area);
	for (const old of area.children) if (old.textContent === text) old.remove();
	const message = h('p', { class: kind }, text);
	area.append(message);
	while (area.children.length > 3) area.firstElementChild?.remove();
	setTimeout(() => message.remove(), kind === 'problem' ? 8000 : 4000);
}

/** Shows a message unless it is visible. For reasons that each key would repeat. */
export function remind(text: string): void {
	const shown = [...document.querySelectorAll('#messages > p')].some(({ textContent }) => textContent === text);
	if (!shown) notify(text, 'problem');
}

/** The text for an error. */
export function explain(error: unknown): string {
	if (error instanceof ApiError) return tOr(`error.${error.code}`, error.msg === null ? 'error.unreachable' : 'error.other', { code: error.code });
	return t('error.unexpected', { detail: error instanceof Error ? error.message : String(error) });
}

export function isSignedOut(error: unknown): boolean {
	return error instanceof ApiError && error.msg === Msg.InvalidToken;
}

/** Runs a call of a gateway. Shows the error if it fails, and returns false. */
export async function attempt(run: () => Promise<void>): Promise<boolean> {
	try {
		await run();
		return true;
	} catch (error) {
		notify(explain(error), 'problem');
		return false;
	}
}
