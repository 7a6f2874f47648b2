// render.ts - a paste as elements: text, code, a table, Markdown, formulas. Each library is loaded when a paste needs it.
//
// A paste is somebody else's. Text becomes nodes of text. HTML that a library has made of it (Markdown, coloured code) is
// sanitised by DOMPurify. KaTeX writes its own elements into what was sanitised before, and trusts no formula.
import { h } from '../dom';

export const kinds = ['plain', 'code', 'table', 'markdown', 'formula'] as const;
export type Kind = (typeof kinds)[number];

const kindsOfLanguages: Record<string, Kind> = {
	'': 'plain',
	text: 'plain',
	plain: 'plain',
	txt: 'plain',
	csv: 'table',
	tsv: 'table',
	md: 'markdown',
	markdown: 'markdown',
	tex: 'formula',
	latex: 'formula',
	katex: 'formula',
	math: 'formula',
};

/** How a paste of this language is shown at first. */
export function kindOf(lang: string): Kind {
	const key = lang.toLowerCase();
	return Object.hasOwn(kindsOfLanguages, key) ? kindsOfLanguages[key] : 'code';
}

/** The lines of a pre, with their numbers beside it. */
function withNumbers(content: string, code: Node): HTMLElement {
	const count = content.replace(/\r?\n$/, '').split('\n').length;
	const numbers = Array.from({ length: count }, (_, i) => i + 1).join('\n');
	return h('div', { class: 'lines' }, h('pre', { class: 'numbers', 'aria-hidden': 'true' }, numbers), h('pre', { tabindex: 0 }, code));
}

const plain = (content: string) => withNumbers(content, document.createTextNode(content));

/** Only the parts of coloured code, which have classes of highlight.js. */
async function coloured(content: string, lang: string): Promise<DocumentFragment> {
	const [{ default: hljs }, { default: purify }] = await Promise.all([import('highlight.js/lib/common'), import('dompurify')]);
	const { value } = hljs.getLanguage(lang) ? hljs.highlight(content, { language: lang, ignoreIllegals: true }) : hljs.highlightAuto(content);
	return purify.sanitize(value, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'], RETURN_DOM_FRAGMENT: true });
}

async function code(content: string, lang: string): Promise<HTMLElement> {
	return withNumbers(content, h('code', {}, await coloured(content, lang.toLowerCase())));
}

async function table(content: string, lang: string): Promise<HTMLElement> {
	const { default: papa } = await import('papaparse');
	const rows = papa.parse<string[]>(content.replace(/\r?\n$/, ''), { delimiter: lang.toLowerCase() === 'tsv' ? '\t' : '' }).data;
	const body = h('tbody');
	rows.forEach((cells, i) => body.append(h('tr', {}, h('th', { scope: 'row', class: 'numbers' }, String(i + 1)), ...cells.map((cell) => h('td', {}, cell)))));
	return h('div', { class: 'table', tabindex: 0 }, h('table', {}, body));
}

/** Replaces the content of an element by the formula that it has. */
async function drawFormulas(elements: Iterable<Element>): Promise<void> {
	const list = [...elements];
	if (list.length === 0) return;
	const [{ default: katex }] = await Promise.all([import('katex'), import('katex/dist/katex.min.css')]);
	for (const element of list)
		katex.render(element.textContent ?? '', element as HTMLElement, {
			displayMode: element.classList.contains('language-display'),
			throwOnError: false,
			trust: false,
			maxSize: 50,
			maxExpand: 500,
		});
}

async function formula(content: string): Promise<HTMLElement> {
	const parts = content.split(/\n\s*\n/).filter((part) => part.trim() !== '');
	const all = h('div', { class: 'text' }, ...parts.map((part) => h('p', { class: 'language-display' }, part)));
	await drawFormulas(all.children);
	return all;
}

const escape = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

async function markdown(content: string): Promise<HTMLElement> {
	const [{ Marked }, { default: purify }] = await Promise.all([import('marked'), import('dompurify')]);
	const marked = new Marked({
		extensions: [
			{
				name: 'formula',
				level: 'inline',
				start: (text) => text.indexOf('$'),
				tokenizer(text) {
					const found = /^\$\$([^$]+)\$\$|^\$([^\s$](?:[^$\n]*[^\s$])?)\$(?!\d)/.exec(text);
					return found ? { type: 'formula', raw: found[0], display: found[1] !== undefined, text: found[1] ?? found[2] } : undefined;
				},
				renderer: ({ display, text }) => `<span class="language-${display ? 'display' : 'inline'}">${escape(text as string)}</span>`,
			},
		],
	});
	const fragment = purify.sanitize(marked.parse(content, { async: false }), {
		USE_PROFILES: { html: true },
		FORBID_TAGS: ['style', 'form', 'input', 'button', 'textarea', 'select', 'option', 'img', 'picture', 'video', 'audio', 'dialog'],
		FORBID_ATTR: ['style', 'id', 'name', 'tabindex', 'popover', 'hidden'],
		ALLOW_DATA_ATTR: false,
		ALLOW_ARIA_ATTR: false,
		RETURN_DOM_FRAGMENT: true,
	});
	const all = h('div', { class: 'text' }, fragment);
	// No class of this page: a paste does not look like a part of it.
	for (const element of all.querySelectorAll('[class]')) element.className = [...element.classList].filter((name) => name.startsWith('language-')).join(' ');
	for (const link of all.querySelectorAll('a')) Object.assign(link, { target: '_blank', rel: 'noopener noreferrer nofollow' });
	for (const block of all.querySelectorAll('pre code[class^="language-"]'))
		block.replaceChildren(await coloured(block.textContent ?? '', block.className.replace('language-', '').toLowerCase()));
	await drawFormulas(all.querySelectorAll('span.language-display, span.language-inline'));
	return all;
}

/** The elements that show a paste. */
export function render(kind: Kind, lang: string, content: string): Promise<HTMLElement> {
	const renderers: Record<Kind, () => Promise<HTMLElement>> = {
		plain: () => Promise.resolve(plain(content)),
		code: () => code(content, lang),
		table: () => table(content, lang),
		markdown: () => markdown(content),
		formula: () => formula(content),
	};
	return renderers[kind]();
}
