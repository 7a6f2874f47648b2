// main.ts - the page of pastes (paste.html): /p/ID.html shows one, /paste.html makes one.
import '../style.css';
import './pastes.css';
import { currentSession } from '../api';
import { sheetNameOf, sheetOf, uploadCsv } from '../csv';
import { bdi, button, explain, field, h, openDialog } from '../dom';
import { formatTime, isolated, loadDialogTexts, loadPasteTexts, loadTexts, t } from '../i18n';
import { addressOf, createPaste, endChoice } from './create';
import { type Kind, kindOf, kinds, render } from './render';

interface Paste {
	title: string;
	lang: string;
	content: string;
	saving_time: number;
	expiration: number;
	view_count: number;
}

const root = document.querySelector<HTMLElement>('#app')!;

function show(title: string, ...content: (Node | null)[]): void {
	document.title = `${isolated(title)} – ${t('product')}`;
	const brand = h('a', { class: 'back', href: '/' }, h('span', { class: 'logo' }), t('product'));
	const another = h('a', { href: '/paste.html' }, t('paste.new'));
	root.replaceChildren(
		h('header', { class: 'bar' }, brand, h('span', { class: 'space' }), another),
		h('main', { class: 'sheets paste' }, h('h1', {}, bdi(title)), ...content),
	);
}

/** Where a paste is shown, with a choice of how. */
class View {
	readonly place = h('div', { class: 'shown' });
	readonly choice = h(
		'select',
		{ 'aria-label': t('paste.shown'), change: () => void this.draw() },
		...kinds.map((kind) => h('option', { value: kind }, t(`paste.kind.${kind}`))),
	);
	private draws = 0;

	constructor(
		private lang: string,
		private content: string,
	) {
		this.choice.value = kindOf(lang);
	}

	set(lang: string, content: string): Promise<void> {
		if (lang !== this.lang) this.choice.value = kindOf(lang);
		this.lang = lang;
		this.content = content;
		return this.draw();
	}

	/** A library that cannot be loaded leaves the text. */
	async draw(): Promise<void> {
		const current = ++this.draws;
		const kind = this.choice.value as Kind;
		const shown = await render(kind, this.lang, this.content).catch(() => render('plain', '', this.content));
		if (current === this.draws) this.place.replaceChildren(shown);
	}
}

/** Makes a sheet of a paste, and opens it. */
async function makeSheet(paste: Paste, problem: HTMLElement): Promise<void> {
	problem.textContent = '';
	const session = await currentSession();
	if (!session) {
		problem.textContent = t('paste.sign_in');
		return;
	}
	const file = { name: paste.title || t('paste.untitled') };
	const format = paste.lang.toLowerCase() === 'tsv' ? 'tsv' : 'csv';
	try {
		await loadDialogTexts();
		const { id } = await uploadCsv(session, sheetOf(sheetNameOf(file)), new Blob([paste.content]), { format, encoding: 'UTF-8' }, () => {}).done;
		location.href = `/?id=${id}`;
	} catch (error) {
		problem.textContent = explain(error);
	}
}

async function showCode(address: string): Promise<void> {
	const { default: qrcode } = await import('qrcode-generator');
	const code = qrcode(0, 'M');
	code.addData(address);
	code.make();
	openDialog(t('paste.qr'), h('p', { class: 'qr' }, h('img', { src: code.createDataURL(6, 24), alt: address })));
}

async function showPaste(id: string): Promise<void> {
	const answer = await fetch(`/record/${id}`, { cache: 'no-store', credentials: 'omit' }).catch(() => null);
	if (!answer?.ok) {
		show(t('paste.untitled'), h('p', { class: 'empty', role: 'alert' }, t(answer?.status === 404 ? 'paste.gone' : 'paste.failed')));
		return;
	}
	const paste = (await answer.json()) as Paste;
	const view = new View(paste.lang, paste.content);
	const problem = h('p', { class: 'problem', role: 'alert' });
	const copy = button(t('paste.copy'), () => {
		void navigator.clipboard.writeText(paste.content).then(() => (copy.textContent = t('paste.copied')));
	});
	const ends = new Date((paste.saving_time + paste.expiration) * 1000).toISOString();
	show(
		paste.title || t('paste.untitled'),
		h(
			'p',
			{ class: 'about' },
			[paste.lang, t('paste.ends', { at: formatTime(ends) }), t('paste.views', { count: paste.view_count })].filter(Boolean).join(' · '),
		),
		h(
			'div',
			{ class: 'tools' },
			view.choice,
			h('a', { href: `/p/${id}` }, t('paste.raw')),
			copy,
			button(t('paste.qr'), () => void showCode(location.href)),
			button(t('paste.sheet'), () => void makeSheet(paste, problem), { class: 'primary' }),
		),
		problem,
		view.place,
	);
	await view.draw();
}

function showNew(): void {
	const content = h('textarea', { id: 'content', rows: 16, spellcheck: 'false', required: true });
	const title = field(t('paste.title'), { maxlength: 200 });
	const lang = field(t('paste.lang'), { maxlength: 32, pattern: '[A-Za-z0-9+#._\\-]*' });
	const ends = endChoice('ends');
	const problem = h('p', { class: 'problem', role: 'alert' });
	const view = new View('', '');
	const preview = h('section', { 'aria-label': t('paste.preview'), hidden: true }, h('div', { class: 'tools' }, view.choice), view.place);
	const publish = async () => {
		problem.textContent = '';
		const paste = { content: content.value, title: title.input.value, lang: lang.input.value, expiration: Number(ends.value) };
		const made = await createPaste(await currentSession(), paste);
		if (made.key === undefined) problem.textContent = made.problem;
		else location.href = addressOf(made.key);
	};
	const form = h(
		'form',
		{
			submit: (event) => {
				event.preventDefault();
				void publish();
			},
		},
		h('div', { class: 'field' }, h('label', { for: 'content' }, t('paste.content')), content),
		title.row,
		lang.row,
		h('div', { class: 'field' }, h('label', { for: 'ends' }, t('paste.end')), ends),
		problem,
		h(
			'div',
			{ class: 'tools' },
			button(t('paste.preview'), () => {
				preview.hidden = false;
				void view.set(lang.input.value, content.value);
			}),
			h('button', { type: 'submit', class: 'primary' }, t('paste.publish')),
		),
	);
	show(t('paste.new'), form, preview);
}

await Promise.all([loadTexts(), loadPasteTexts()]);
const id = /^\/p\/([a-z2-7]{26})\.html$/.exec(location.pathname)?.[1];
if (id !== undefined) await showPaste(id);
else if (location.pathname.startsWith('/p/')) show(t('paste.untitled'), h('p', { class: 'empty', role: 'alert' }, t('paste.gone')));
else showNew();
