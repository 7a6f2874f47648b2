// fields.ts - fields of forms with a place for what is wrong with them.
import { h } from '../dom';

let count = 0;

export interface Field<Control extends HTMLElement> {
	row: HTMLElement;
	control: Control;
	/** '': nothing is wrong. */
	blame(text: string): void;
}

function labelled<Control extends HTMLElement>(label: string, control: Control, hint?: string): Field<Control> {
	const id = `calendar-field-${++count}`;
	control.id = id;
	const problem = h('p', { class: 'problem', id: `${id}-problem` });
	const about = hint === undefined ? null : h('p', { class: 'hint', id: `${id}-hint` }, hint);
	const described = about?.id ?? '';
	if (described) control.setAttribute('aria-describedby', described);
	return {
		row: h('div', { class: 'field' }, h('label', { for: id }, label), control, about, problem),
		control,
		blame(text) {
			problem.textContent = text;
			control.setAttribute('aria-invalid', String(text !== ''));
			const ids = [described, text === '' ? '' : problem.id].filter(Boolean).join(' ');
			if (ids) control.setAttribute('aria-describedby', ids);
			else control.removeAttribute('aria-describedby');
		},
	};
}

export function input(label: string, attributes: Parameters<typeof h>[1], hint?: string): Field<HTMLInputElement> {
	return labelled(label, h('input', attributes), hint);
}

export const area = (label: string, value: string): Field<HTMLTextAreaElement> => labelled(label, h('textarea', { rows: 3 }, value));

/** values: the texts of the options by their values. */
export function choice(label: string, values: [value: string, text: string][], value: string): Field<HTMLSelectElement> {
	const control = h('select', {}, ...values.map(([of, text]) => h('option', { value: of, selected: of === value }, text)));
	return labelled(label, control);
}

export function check(label: string, checked: boolean, attributes: Parameters<typeof h>[1] = {}): { row: HTMLElement; control: HTMLInputElement } {
	const control = h('input', { type: 'checkbox', checked, ...attributes });
	return { row: h('label', { class: 'check' }, control, ' ', label), control };
}
