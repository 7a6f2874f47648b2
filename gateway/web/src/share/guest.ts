// guest.ts - entering by a share link: the form for the visitor's name, and entering again when the token has ended. Loaded at
// its first use.
import { ApiError, findSheet, openLink, type Session } from '../api';
import { Msg } from '../answers';
import { cellName } from '../content';
import { button, explain, field, h, notify, openDialog } from '../dom';
import { t } from '../i18n';
import type { Navigation } from '../main';
import { enter, lastName, storedGuest, type Guest } from './http';
import { isCell, type Edit } from '../v2/messages';
import './links.css';
import { switches } from '../pages/switches';

/** At least so much time is between two entrances that nobody has asked for, whatever ends the tokens. */
const againMs = 5000;

/** Most characters of a name. An input counts UTF-16 units, of which a character has one or two. */
const mostLetters = 50;

/** A name for who gives none: that of the account or the last one. Guests who keep what is made up can be told apart. */
const proposedName = (account: Session | null): string =>
	[...(account?.username ?? lastName())].slice(0, mostLetters).join('') || t('guest.someone', { number: 10 + Math.floor(Math.random() * 90) });

interface EntryForm {
	form: HTMLFormElement;
	focus(): void;
}

/** Asks for the name, of which one is proposed, and, if the link has one, for the password. gone: the link opens nothing. */
function entryForm(
	link: string,
	proposed: string,
	onlyPassword: boolean,
	entered: (guest: Guest) => void,
	gone: () => void,
	...others: HTMLElement[]
): EntryForm {
	const name = field(t('guest.name'), {
		...{ name: 'guest-name', required: true, maxlength: 2 * mostLetters, autocomplete: 'nickname', value: proposed, 'aria-describedby': 'guest-help' },
	});
	const password = field(t('signin.password'), { name: 'link-password', type: 'password', maxlength: 1024, autocomplete: 'off' });
	const problem = h('p', { class: 'problem', role: 'alert' });
	const submit = h('button', { type: 'submit', class: 'primary' }, t('guest.enter'));
	const askPassword = () => {
		password.row.hidden = false;
		password.input.required = true;
	};

	async function send(event: Event): Promise<void> {
		event.preventDefault();
		problem.textContent = '';
		submit.disabled = true;
		let wait = 0;
		try {
			entered(await enter(link, name.input.value.trim(), password.row.hidden ? undefined : password.input.value));
		} catch (error) {
			const { code, seconds } = error instanceof ApiError ? error : { code: '', seconds: null };
			wait = code === 'http.429' ? (seconds ?? 10) : 0;
			problem.textContent = wait > 0 ? t('guest.wait', { seconds: wait }) : explain(error);
			if (code === 'password_needed' || code === 'password_wrong') {
				askPassword();
				password.input.focus();
				password.input.select();
			} else if (code === 'no_link') gone();
			else name.input.focus();
		}
		// The gateway refuses sooner attempts.
		if (wait > 0) setTimeout(() => (submit.disabled = false), wait * 1000);
		else submit.disabled = false;
	}

	password.row.hidden = true;
	name.row.hidden = onlyPassword;
	if (onlyPassword) askPassword();
	const help = h('p', { id: 'guest-help', class: 'hint' }, t('guest.nameHelp'));
	const form = h('form', { submit: (event) => void send(event) }, name.row, !onlyPassword && help, password.row, problem, h('footer', {}, ...others, submit));
	return {
		form,
		focus() {
			const { input } = onlyPassword ? password : name;
			input.focus();
			input.select();
		},
	};
}

/** Whether the account may open the sheet: by this link, if it is one for accounts, or without it. */
async function mayOpen(account: Session, fid: number, link: string): Promise<boolean> {
	const refused = (error: unknown) => {
		if (error instanceof ApiError && (error.msg === Msg.NoPermission || error.msg === Msg.NoSheet)) return false;
		throw error;
	};
	const opened = await openLink(account.token, fid, link).then(() => true, refused);
	return opened || findSheet(account.token, fid).then(() => true, refused);
}

/**
 * Resolves to who opens the sheet: the account, if it may, or the guest of this tab, or who enters by the form, which is shown
 * in `root` until then.
 */
export async function enterByLink(
	root: HTMLElement,
	link: string,
	fid: number | null,
	account: Session | null,
	navigation: Navigation,
): Promise<Session | Guest> {
	const guest = storedGuest(link);
	if (guest) return guest;
	if (account && fid !== null && (await mayOpen(account, fid, link).catch(() => false))) return account;
	document.title = `${t('guest.title')} – ${t('product')}`;
	return new Promise((resolve) => {
		const gone = h('p', { hidden: true }, t('guest.goneHelp'));
		const { form, focus } = entryForm(link, proposedName(account), false, resolve, () => (gone.hidden = false));
		const signIn = button(t('guest.signIn'), () => navigation.signIn(), { class: 'link' });
		const asAccount = account ? h('p', {}, t('guest.noAccess', { name: account.username })) : h('p', {}, h('span', {}, t('guest.account')), ' ', signIn);
		root.replaceChildren(
			h(
				'main',
				{ class: 'sign-in' },
				h('p', { class: 'brand' }, h('span', { class: 'logo', 'aria-hidden': 'true' }), t('product')),
				h('h1', {}, t('guest.title')),
				form,
				gone,
				asAccount,
				switches(),
			),
		);
		focus();
	});
}

/** So many cells are listed. */
const mostCells = 20;

/** What tells the edits that are not in the sheet, and copies them. None: nothing. */
export function unsentCells(edits: readonly Edit[]): HTMLElement[] {
	const cells = edits.filter(isCell).filter(({ content }) => content !== undefined);
	if (edits.length === 0) return [];
	const lines = cells.map(({ row, col, content }) => `${cellName(row, col)}: ${content}`);
	const list = h('ul', { class: 'unsent' }, ...lines.slice(0, mostCells).map((line) => h('li', {}, line)));
	if (lines.length > mostCells) list.append(h('li', {}, t('kept.more', { count: lines.length - mostCells })));
	const copy = () =>
		void (navigator.clipboard?.writeText(lines.join('\n')) ?? Promise.reject(new Error('no clipboard'))).then(
			() => notify(t('kept.copied')),
			() => notify(t('share.copyByHand'), 'problem'),
		);
	return [h('p', {}, t('guest.unsent', { count: edits.length })), list, ...(lines.length > 0 ? [h('p', {}, button(t('share.copy'), copy))] : [])];
}

/** How a guest's token was replaced, or why not. */
export type Entering = 'entered' | 'ended' | 'later';

const enteredAt = new WeakMap<Session, number>();

/**
 * Enters again by the link of a guest whose token has ended, with the same name: asks for the password if the link has one.
 * `asked`: the visitor has asked for it.
 */
export async function enterAgain(guest: Session, asked: boolean): Promise<Entering> {
	const { link, name } = guest as Guest;
	const take = (next: Guest) => {
		enteredAt.set(guest, Date.now());
		Object.assign(guest, next);
	};
	const since = Date.now() - (enteredAt.get(guest) ?? 0);
	if (!asked && since < againMs) await new Promise((resolve) => setTimeout(resolve, againMs - since));
	try {
		take(await enter(link, name));
		return 'entered';
	} catch (error) {
		const code = error instanceof ApiError ? error.code : '';
		if (code === 'no_link') return 'ended';
		if (code !== 'password_needed' && asked) notify(explain(error), 'problem');
		if (code !== 'password_needed') return 'later';
	}
	return new Promise((resolve) => {
		let result: Entering = 'later';
		const end = (next: Entering) => {
			result = next;
			close();
		};
		const later = button(t('cancel'), () => end('later'));
		const { form, focus } = entryForm(
			link,
			name,
			true,
			(next) => (take(next), end('entered')),
			() => end('ended'),
			later,
		);
		const { dialog, close } = openDialog(t('guest.again'), h('p', {}, t('guest.againHelp')), form);
		dialog.addEventListener('close', () => resolve(result));
		focus();
	});
}
