// copying.ts - a field with a text to be copied, such as an address.
import { button, field, h, notify } from './dom';
import { t } from './i18n';

/** Copies a text. Where the browser does not permit it, the text is selected in the input that has it. */
export function copyText(text: string, input?: HTMLInputElement): void {
	input?.select();
	const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
	copied.then(
		() => notify(t('copy.done')),
		() => notify(t('copy.byHand'), 'problem'),
	);
}

/** A text that is shown once, or used elsewhere, with a button that copies it. */
export function copyField(label: string): { row: HTMLElement; input: HTMLInputElement } {
	const { row, input } = field(label, { readonly: true, autocomplete: 'off', spellcheck: 'false' });
	return {
		row: h(
			'div',
			{ class: 'inline' },
			row,
			button(t('copy.copy'), () => copyText(input.value, input), { class: 'copy' }),
		),
		input,
	};
}
