// main.ts - chooses the page: the sign-in form, the list of sheets (/), a sheet (/?id=FID), or the calendars (/?calendar). With #link=KEY, the sheet or a
// part of it is opened by a share link, also without an account; with #join=KEY by the link for accounts.
import './style.css';
import { currentSession, endSession, forgetGuest, forgetSession, isSignedIn, onSignedOut, openLink, saveSession, type Session } from './api';
import { loadCalendarTexts, loadEditorTexts, loadLinkTexts, loadTexts, t } from './i18n';
import { showSheets } from './pages/sheets';
import { showSignIn } from './pages/sign-in';
import { attempt, button, h, notify } from './dom';
import { watchReminders } from './reminders';
import type { Guest } from './share/http';

/** What a page does when the user leaves it. */
export interface Leaving {
	/** Number of edits that are not saved. */
	unsaved(): number;
	/** Number of uploads that have not ended. */
	uploading?(): number;
	/** Number of edits that are discarded when the visit of a guest ends. */
	discarded?(): number;
	/** visit: the visit of a guest ends, too. The next guest in this browser must not find its edits. */
	end(visit?: boolean): void;
}

export interface Navigation {
	toList(): void;
	toSheet(fid: number): void;
	/** The calendars; fid: of a sheet that is one; day: to be shown first, as 2027-01-31. */
	toCalendars(fid?: number, day?: string): void;
	/** Shows the form to sign in, and then the same address again. */
	signIn(): void;
	/** Ends the visit of a guest. */
	leave(): void;
	/** Ends the session. expired: tells the user that it has ended. */
	signOut(expired?: boolean): void;
}

const root = document.querySelector<HTMLElement>('#app')!;
let leaving: Leaving | null = null;
let endReminders: (() => void) | null = null;
/** The address of the shown page. */
let address = location.href;
/** Number of pages shown: an earlier one that is still loading is not shown any more. */
let shows = 0;

const navigation: Navigation = {
	toList: () => go('/'),
	toSheet: (fid) => go(`/?id=${fid}`),
	toCalendars: (fid, day) => go(`/?calendar${fid === undefined ? '' : `=${fid}`}${day === undefined ? '' : `&day=${day}`}`),
	signIn() {
		if (!endVisit()) return;
		begin();
		askSignIn();
	},
	leave() {
		if (!endVisit()) return;
		history.pushState(null, '', '/');
		void show();
	},
	signOut(expired = false) {
		if (expired) forgetSession();
		else endSession().catch(() => notify(t('signout.failed'), 'problem'));
		void show().then(() => expired && !isSignedIn() && notify(t('signin.expired'), 'problem'));
	},
};

/** Whether the page may be left: nothing is unsaved, or the user agrees. Unsaved edits stay in IndexedDB. */
function mayLeave(): boolean {
	const count = leaving?.unsaved() ?? 0;
	return mayCancelUploads() && (count === 0 || window.confirm(t('editor.leave', { count })));
}

function mayCancelUploads(): boolean {
	const count = leaving?.uploading?.() ?? 0;
	return count === 0 || window.confirm(t('editor.leaveUploads', { count }));
}

/** Ends the visit of a guest, unless the user wants to keep the edits that are not saved. */
function endVisit(): boolean {
	const count = leaving?.discarded?.() ?? 0;
	if (!mayCancelUploads() || (count > 0 && !window.confirm(t('editor.leaveVisit', { count })))) return false;
	forgetGuest();
	leaving?.end(true);
	leaving = null;
	return true;
}

function go(to: string): void {
	if (!mayLeave()) return;
	history.pushState(null, '', to);
	void show();
}

function sheetOfAddress(name: 'id' | 'calendar' = 'id'): number | null {
	const id = new URLSearchParams(location.search).get(name) ?? '';
	return /^[1-9][0-9]{0,15}$/.test(id) ? Number(id) : null;
}

/** The key of a link is in the fragment, which browsers do not send. */
function keyOfAddress(kind: 'link' | 'join'): string | null {
	return new URLSearchParams(location.hash.slice(1)).get(kind);
}

/** Ends the shown page. Returns the number of the next one. */
function begin(): number {
	leaving?.end();
	leaving = null;
	endReminders?.();
	endReminders = null;
	address = location.href;
	root.replaceChildren();
	return ++shows;
}

function askSignIn(): void {
	document.title = `${t('signin.title')} – ${t('product')}`;
	showSignIn(root, (signedIn) => {
		saveSession(signedIn);
		void show();
	});
}

function loadEditor(): Promise<[typeof import('./pages/editor'), void]> {
	const loading = Promise.all([import('./pages/editor'), loadEditorTexts()]);
	loading.catch(() => {});
	return loading;
}

/** A module could not be loaded. A browser does not load it again. */
function tellUnreachable(): void {
	const retry = button(t('retry'), () => location.reload());
	root.replaceChildren(h('p', { class: 'loading', role: 'alert' }, t('error.unreachable'), ' ', retry));
}

async function show(): Promise<void> {
	const current = begin();
	const fid = sheetOfAddress();
	const link = keyOfAddress('link');
	// The grid is most of the page's size. It is loaded when a sheet is opened, while the session is asked for.
	const editor = fid === null ? null : loadEditor();
	const session = await currentSession();
	if (current !== shows) return;
	if (session) {
		saveSession(session);
		endReminders = watchReminders(session, navigation);
	}
	if (link !== null) await showLink(current, link, fid, session, editor);
	else if (!session) askSignIn();
	else if (fid === null && new URLSearchParams(location.search).has('calendar')) await showCalendars(current, session);
	else if (fid === null || !editor) {
		document.title = `${t('sheets.title')} – ${t('product')}`;
		leaving = { unsaved: () => 0, end: showSheets(root, session, navigation) };
	} else {
		root.append(h('p', { class: 'loading', role: 'status' }, t('editor.opening')));
		const key = keyOfAddress('join');
		const opened = key !== null && (await attempt(() => openLink(session.token, fid, key)));
		if (current !== shows) return;
		if (opened) history.replaceState(null, '', `/?id=${fid}`);
		await showSheet(current, session, fid, editor);
	}
}

async function showCalendars(current: number, session: Session): Promise<void> {
	root.append(h('p', { class: 'loading', role: 'status' }, t('editor.opening')));
	const loaded = await Promise.all([import('./calendar/page'), loadCalendarTexts()]).catch(() => null);
	if (current !== shows) return;
	if (!loaded) return tellUnreachable();
	root.replaceChildren();
	document.title = `${t('sheets.calendars')} – ${t('product')}`;
	const day = new URLSearchParams(location.search).get('day') ?? '';
	const shown = /^\d{4}-\d\d-\d\d$/.test(day) ? day : null;
	leaving = loaded[0].showCalendars(root, session, sheetOfAddress('calendar'), shown, navigation);
}

/** Opens what a share link opens, when it is known as whom. */
async function showLink(
	current: number,
	link: string,
	fid: number | null,
	account: Session | null,
	editor: ReturnType<typeof loadEditor> | null,
): Promise<void> {
	root.append(h('p', { class: 'loading', role: 'status' }, t('editor.opening')));
	const loaded = await Promise.all([import('./share/guest'), loadLinkTexts()]).catch(() => null);
	if (current !== shows) return;
	if (!loaded) return tellUnreachable();
	const [pages] = loaded;
	const session = await pages.enterByLink(root, link, fid, account, navigation);
	if (current !== shows) return;
	const opened = session.link === undefined ? fid : (session as Guest).fid;
	root.replaceChildren();
	if (opened === null) {
		const part = await import('./share/part').catch(() => null);
		if (current !== shows) return;
		if (part) leaving = part.showPart(root, session as Guest, navigation);
		else tellUnreachable();
		return;
	}
	// A guest keeps the key in the address: it is all that opens the sheet again.
	history.replaceState(null, '', session.link === undefined ? `/?id=${opened}` : `/?id=${opened}#link=${link}`);
	root.append(h('p', { class: 'loading', role: 'status' }, t('editor.opening')));
	await showSheet(current, session, opened, editor ?? loadEditor());
}

async function showSheet(current: number, session: Session, fid: number, editor: ReturnType<typeof loadEditor>): Promise<void> {
	const loaded = await editor.catch(() => null);
	if (current !== shows) return;
	if (!loaded) return tellUnreachable();
	root.replaceChildren();
	const [page] = loaded;
	leaving = page.showEditor(root, session, fid, navigation);
	address = location.href;
}

// The browser has left the entry already: the page's own is added again if the user stays.
window.addEventListener('popstate', () => {
	if (mayLeave()) void show();
	else history.pushState(null, '', address);
});
// A browser opens a file that nothing takes, in the place of the page.
for (const name of ['dragover', 'drop'] as const)
	window.addEventListener(name, (event) => {
		if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return;
		event.preventDefault();
		event.dataTransfer.dropEffect = 'none';
	});
onSignedOut(() => {
	// The gateway may have closed the sheet before, so that the page asks for the password.
	for (const dialog of document.querySelectorAll<HTMLDialogElement>('dialog[open]')) dialog.close();
	notify(t('signin.elsewhere'));
	void show();
});
void loadTexts().then(show);
