// publishing.ts - the published view of a link for viewers without a password: its addresses, which pages may show it in a frame, and
// whether search engines may list it.
import { button, field, h, notify } from '../dom';
import { t } from '../i18n';
import { sourcesOf } from './sources';

export interface Publishing {
	/** Sources as in frame-ancestors, with blanks between them; '*': any page, null: none. */
	embed: string | null;
	index: boolean;
}

const example = 'https://example.org';

let choices = 0;

/** The fields of a published view. kept: what it has. values(): what differs from that; null if the user has to correct something. */
export function publishFields(kept: Publishing): { element: HTMLElement; show(published: boolean): void; values(): Partial<Publishing> | null } {
	const id = `link-embed-${++choices}`;
	const before = kept.embed === null || kept.embed === '*' ? (kept.embed ?? 'none') : 'pages';
	const options = [
		['none', t('links.embed.none')],
		['pages', t('links.embed.pages')],
		['*', t('links.embed.any')],
	] as const;
	const select = h('select', { id }, ...options.map(([value, text]) => h('option', { value, selected: value === before }, text)));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const pages = field(t('links.embedPages'), {
		...{ name: 'link-embed', autocomplete: 'off', spellcheck: 'false', placeholder: example },
		value: before === 'pages' ? kept.embed! : '',
	});
	const index = h('input', { type: 'checkbox', name: 'link-index', checked: kept.index });
	const showPages = () => (pages.row.hidden = select.value !== 'pages');
	select.addEventListener('change', showPages);
	showPages();
	const element = h(
		'details',
		{ class: 'publishing', open: kept.embed !== null || kept.index },
		h('summary', {}, t('links.publishing')),
		h('p', { class: 'hint' }, t('links.publishingHelp', { address: `${location.origin}/s/` })),
		h('div', { class: 'columns' }, h('div', { class: 'field' }, h('label', { for: id }, t('links.embed')), select), pages.row),
		problem,
		h('label', { class: 'option' }, index, ' ', t('links.index')),
	);
	return {
		element,
		show: (published) => (element.hidden = !published),
		values() {
			problem.textContent = '';
			pages.input.removeAttribute('aria-invalid');
			if (element.hidden) return {};
			const sources = select.value === 'pages' ? sourcesOf(pages.input.value) : { embed: select.value === '*' ? '*' : null };
			if ('invalid' in sources) {
				problem.textContent = t(sources.invalid.trim() === '' ? 'links.noPages' : 'links.notPages', { address: sources.invalid, example });
				pages.input.setAttribute('aria-invalid', 'true');
				element.open = true;
				pages.input.focus();
				return null;
			}
			const { embed } = sources;
			return { ...(embed !== kept.embed && { embed }), ...(index.checked !== kept.index && { index: index.checked }) };
		},
	};
}

/** An address to copy. */
export function addressField(label: string, name: string, address: string): { row: HTMLElement; copy: HTMLButtonElement } {
	const { row, input } = field(label, { value: address, readonly: true, name });
	const copy = () => {
		input.select();
		(navigator.clipboard?.writeText(address) ?? Promise.reject(new Error('no clipboard'))).then(
			() => notify(t('share.copied')),
			() => notify(t('share.copyByHand')),
		);
	};
	return { row, copy: button(t('share.copy'), copy, { 'aria-label': `${t('share.copy')}: ${label}` }) };
}

/** The addresses of a published view, in each form. */
export function publishedAddresses(address: string): HTMLElement {
	const forms = [
		['', t('links.published.page')],
		['.csv', t('links.published.csv')],
		['.json', t('links.published.json')],
	] as const;
	const rows = forms.map(([ending, label]) => {
		const { row, copy } = addressField(label, `published${ending}`, address + ending);
		return h('div', { class: 'inline' }, row, copy);
	});
	return h('div', { class: 'published' }, h('p', { class: 'hint' }, t('links.published')), ...rows);
}
