// links.ts - the links of a sheet in the dialog that shares it: they are made, copied, changed, blocked and revoked there.
// Loaded at its first use.
import { ApiError, type Session } from '../api';
import { rangeName } from '../content';
import { bdi, button, confirmDialog, explain, field, h, notify } from '../dom';
import { formatTime, isolated, t } from '../i18n';
import { changeLink, createLink, guestsOf, linksOf, revokeLink, type LinkValues, type NewLink, type ShareLink } from './http';
import { addressField, publishedAddresses, publishFields } from './publishing';
import { isPublished } from './sources';
import type { Range } from '../v2/messages';
import './links.css';
import { givenRoles } from '../pages/access';

/** Days until the end of a link; 0: it has none. */
const days = [1, 7, 30, 0];
const usualDays = 7;
/** The gateway's limit of a rectangle. */
const mostCells = 100_000;

export interface LinksOptions {
	session: Session;
	fid: number;
	/** The selected cells, and the seq of the sheet in which they have this place. */
	selection: Range;
	seq: number;
	/** Shows what the link's guests have edited. */
	showEdits(uid: number, name: string): void;
}

let choices = 0;
function choice(label: string, options: [value: string, text: string][], chosen: string): { row: HTMLElement; select: HTMLSelectElement } {
	const id = `link-choice-${++choices}`;
	const select = h('select', { id }, ...options.map(([value, text]) => h('option', { value }, text)));
	select.value = chosen;
	return { row: h('div', { class: 'field' }, h('label', { for: id }, label), select), select };
}

const roleChoice = (chosen: string) => {
	const roles = givenRoles.includes(chosen) ? givenRoles : [...givenRoles, chosen];
	return choice(
		t('links.role'),
		roles.map((role) => [role, t(`links.may.${role}`)]),
		chosen,
	);
};

/** Chooses an end. kept: the present one, which may stay. */
function endChoice(kept?: string | null): { rows: HTMLElement[]; value(): string | null | undefined } {
	const ends = days.map((n): [string, string] => [String(n), n === 0 ? t('links.never') : t(n === 1 ? 'links.day' : 'links.days', { days: n })]);
	const stays: [string, string][] = kept === undefined ? [] : [['', kept === null ? t('links.never') : formatTime(kept)]];
	const { row, select } = choice(
		t('links.end'),
		[...stays, ...ends.filter(([n]) => kept !== null || n !== '0'), ['date', t('links.date')]],
		kept === undefined ? String(usualDays) : '',
	);
	const tomorrow = new Date(Date.now() + 86400000);
	const date = field(t('links.lastDay'), {
		type: 'date',
		min: `${tomorrow.getFullYear()}-${String(tomorrow.getMonth() + 1).padStart(2, '0')}-${String(tomorrow.getDate()).padStart(2, '0')}`,
	});
	const show = () => {
		date.row.hidden = select.value !== 'date';
		date.input.required = !date.row.hidden;
	};
	select.addEventListener('change', show);
	show();
	return {
		rows: [row, date.row],
		value() {
			if (select.value === '') return undefined;
			// The link ends with the day, where the owner is.
			if (select.value === 'date') return new Date(`${date.input.value}T23:59:59`).toISOString();
			return select.value === '0' ? null : new Date(Date.now() + Number(select.value) * 86400000).toISOString();
		},
	};
}

/** Sets the password of a link, which may have one. */
function passwordChoice(has: boolean): { rows: HTMLElement[]; after(): boolean; value(): string | null | undefined } {
	const stays = [
		['stays', t('links.password.stays')],
		['other', t('links.password.other')],
		['none', t('links.password.none')],
	] as [string, string][];
	const { row, select } = choice(t('links.password'), stays, 'stays');
	const { row: typed, input } = field(t(has ? 'links.password.new' : 'links.password'), {
		...{ name: 'link-new-password', type: 'password', maxlength: 1024, autocomplete: 'new-password' },
		...(!has && { placeholder: t('links.optional') }),
	});
	const show = () => {
		typed.hidden = has && select.value !== 'other';
		input.required = has && !typed.hidden;
	};
	select.addEventListener('change', show);
	show();
	return {
		rows: has ? [row, typed] : [typed],
		after: () => (has ? select.value !== 'none' : input.value !== ''),
		value() {
			if (has && select.value === 'none') return null;
			return typed.hidden || input.value === '' ? undefined : input.value;
		},
	};
}

/** The addresses of a new link, with what copies them, and a picture of the first. */
function newLink({ address, published }: NewLink): HTMLElement {
	const { row, copy } = addressField(t('links.made'), 'new-link', address);
	copy.classList.add('primary');
	const picture = h('p', { class: 'qr', hidden: true });
	const showCode = async () => {
		const { default: qrcode } = await import('qrcode-generator');
		const code = qrcode(0, 'M');
		code.addData(address);
		code.make();
		picture.replaceChildren(h('img', { src: code.createDataURL(5, 20), alt: t('links.qrOf') }));
		picture.hidden = false;
		toggle.setAttribute('aria-expanded', 'true');
	};
	const toggle = button(
		t('links.qr'),
		() => {
			if (picture.hidden) return void showCode().catch(() => notify(t('error.unreachable'), 'problem'));
			picture.hidden = true;
			toggle.setAttribute('aria-expanded', 'false');
		},
		{ 'aria-expanded': 'false' },
	);
	return h('div', { class: 'new-link' }, h('div', { class: 'inline' }, row, copy, toggle), picture, published !== null && publishedAddresses(published));
}

export function linkSection({ session, fid, seq, selection, showEdits }: LinksOptions): HTMLElement {
	const problem = h('p', { class: 'problem', role: 'alert' });
	const made = h('div', {});
	const list = h('ul', { class: 'links' });
	const past = h('ul', { class: 'links' });
	const pastLinks = h('details', { hidden: true }, h('summary', {}, t('links.revokedOnes')), past);

	/** Runs what may fail, and shows the links after it. Returns whether it succeeded. */
	async function run(work: () => Promise<unknown>): Promise<boolean> {
		problem.textContent = '';
		try {
			await work();
			await load();
			return true;
		} catch (error) {
			problem.textContent = error instanceof ApiError && error.code === 'changed' ? t('links.moved') : explain(error);
			return false;
		}
	}

	async function load(): Promise<void> {
		const links = await linksOf(session, fid);
		const revoked = links.filter(({ state }) => state === 'revoked');
		const others = links.filter(({ state }) => state !== 'revoked');
		list.replaceChildren(...(others.length > 0 ? others.map(entry) : [h('li', { class: 'empty' }, t('links.none'))]));
		past.replaceChildren(...revoked.map(entry));
		pastLinks.hidden = revoked.length === 0;
	}

	function stateOf({ state, expires }: ShareLink): string {
		if (state === 'revoked' || state === 'blocked') return t(`links.${state}`);
		if (expires === null) return t('links.endless');
		return t(state === 'expired' ? 'links.expired' : 'links.until', { time: formatTime(expires) });
	}

	function entry(link: ShareLink): HTMLElement {
		const { label, role, ref, state, uses, lastUsed, password, embed, index } = link;
		const what = ref === null ? t(`links.may.${role}`) : ref === '' ? t('links.noCells') : t(`links.part.${role}`, { range: ref });
		const used =
			uses === 0 ? t('links.unused') : t(uses === 1 ? 'links.usedOnce' : 'links.used', { count: uses, time: lastUsed === null ? '' : formatTime(lastUsed) });
		const shown = isPublished(role, password)
			? [
					t('links.isPublished'),
					...(embed === null ? [] : [embed === '*' ? t('links.inFrames') : t('links.inFramesOf', { pages: embed })]),
					...(index ? [t('links.listed')] : []),
				]
			: [];
		const about = [what, ...(password ? [t('links.withPassword')] : []), ...shown, used].join(' · ');
		const buttons = h('span', { class: 'actions' });
		const named = (key: string) => ({ 'aria-label': `${t(key)}: ${isolated(label)}` });
		if (state !== 'revoked')
			buttons.append(
				button(t('links.change'), () => change(link, element), named('links.change')),
				state === 'blocked'
					? button(t('links.unblock'), () => void set(link, { blocked: false }, 'links.unblocked'), named('links.unblock'))
					: button(t('links.block'), () => void set(link, { blocked: true }, 'links.isBlocked'), named('links.block')),
				button(t('links.revoke'), () => void revoke(link), { class: 'danger', ...named('links.revoke') }),
			);
		if (role === 'editor') buttons.append(button(t('links.edits'), () => showEdits(guestsOf(link.link), label), named('links.edits')));
		const element = h(
			'li',
			{ 'data-link': link.link, 'data-state': state },
			h('strong', {}, bdi(label)),
			h('span', { class: 'state' }, stateOf(link)),
			h('span', { class: 'about' }, about),
			buttons,
		);
		return element;
	}

	/** The list is made anew: the focus stays at the link. */
	const focus = (link: number) => list.querySelector<HTMLElement>(`[data-link="${link}"] button`)?.focus();

	async function set({ link, label }: ShareLink, values: LinkValues, done: string): Promise<void> {
		if (await run(() => changeLink(session, fid, link, values))) notify(t(done, { label }));
		focus(link);
	}

	async function revoke({ link, label }: ShareLink): Promise<void> {
		if (!(await confirmDialog(t('links.revoke'), t('links.revokeQuestion', { label }), t('links.revoke'), true))) return;
		if (await run(() => revokeLink(session, fid, link))) notify(t('links.isRevoked', { label }));
		(list.querySelector<HTMLElement>('button') ?? submit).focus();
	}

	/** Shows fields instead of the buttons of the link. */
	function change(link: ShareLink, element: HTMLElement): void {
		const buttons = element.querySelector('.actions')!;
		const label = field(t('links.label'), { value: link.label, required: true, maxlength: 100, autocomplete: 'off' });
		const end = endChoice(link.expires);
		const role = roleChoice(link.role);
		const password = passwordChoice(link.password);
		const publishing = publishFields(link);
		const show = () => publishing.show(isPublished(role.select.value, password.after()));
		const back = () => {
			form.replaceWith(buttons);
			buttons.querySelector('button')?.focus();
		};
		const send = async (event: Event) => {
			event.preventDefault();
			const shown = publishing.values();
			if (!shown) return;
			const expires = end.value();
			const secret = password.value();
			const named = label.input.value.trim();
			await set(
				link,
				{
					...(expires !== undefined && { expires }),
					...(role.select.value !== link.role && { role: role.select.value }),
					...(named !== link.label && { label: named }),
					...(secret !== undefined && { password: secret }),
					...shown,
				},
				'links.changed',
			);
		};
		const form = h(
			'form',
			{ class: 'stacked', submit: (event) => void send(event), input: show },
			h('div', { class: 'columns' }, ...end.rows, role.row, label.row, ...password.rows),
			h('p', { class: 'hint' }, t('links.passwordHelp')),
			publishing.element,
			h('footer', {}, button(t('cancel'), back), h('button', { type: 'submit', class: 'primary' }, t('links.save'))),
		);
		form.addEventListener('keydown', (event) => {
			if (event.key !== 'Escape') return;
			event.preventDefault();
			event.stopPropagation();
			back();
		});
		show();
		buttons.replaceWith(form);
		form.querySelector('select')?.focus();
	}

	const role = roleChoice('viewer');
	const end = endChoice();
	const password = field(t('links.password'), {
		name: 'link-password',
		type: 'password',
		maxlength: 1024,
		autocomplete: 'new-password',
		placeholder: t('links.optional'),
	});
	const label = field(t('links.label'), { name: 'link-label', maxlength: 100, autocomplete: 'off', placeholder: t('links.optional') });
	const range = rangeName(selection);
	const part = h('input', { type: 'checkbox', name: 'link-part' });
	const tooLarge = (selection.toRow - selection.row + 1) * (selection.toCol - selection.col + 1) > mostCells;
	const publishing = publishFields({ embed: null, index: false });
	const showPublishing = () => publishing.show(isPublished(role.select.value, password.input.value !== ''));
	const submit = h('button', { type: 'submit', class: 'primary' }, t('links.create'));

	async function create(event: Event): Promise<void> {
		event.preventDefault();
		if (part.checked && tooLarge) {
			problem.textContent = t('links.tooLarge', { range });
			return;
		}
		const shown = publishing.values();
		if (!shown) return;
		const expires = end.value();
		submit.disabled = true;
		const done = await run(async () => {
			const values = {
				...{ role: role.select.value, ...(expires !== undefined && { expires }) },
				...(part.checked && { ref: range }),
				...(password.input.value !== '' && { password: password.input.value }),
				...(label.input.value.trim() !== '' && { label: label.input.value.trim() }),
				...shown,
			};
			made.replaceChildren(newLink(await createLink(session, fid, values, part.checked ? seq : undefined)));
			password.input.value = label.input.value = '';
			showPublishing();
		});
		submit.disabled = false;
		if (done) made.querySelector('input')?.select();
	}

	const section = h(
		'section',
		{ class: 'link-section' },
		h('h3', {}, t('links.title')),
		h('p', { class: 'hint' }, t('links.help')),
		h(
			'form',
			{ class: 'stacked', submit: (event) => void create(event), input: showPublishing },
			h('div', { class: 'columns' }, role.row, ...end.rows, password.row, label.row),
			publishing.element,
			h('label', { class: 'option' }, part, ' ', t('links.onlyPart', { range })),
			h('footer', {}, submit),
		),
		problem,
		made,
		list,
		pastLinks,
	);
	showPublishing();
	load().catch((error: unknown) => (problem.textContent = explain(error)));
	return section;
}
