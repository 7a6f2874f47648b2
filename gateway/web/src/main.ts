// main.ts - chooses the page: the sign-in form, the list of sheets (/), or a sheet (/?id=FID, and #link=KEY if it is opened
// by a link).
import './style.css';
import { currentSession, endSession, forgetSession, isSignedIn, onSignedOut, openLink, saveSession } from './api';
import { loadEditorTexts, loadTexts, t } from './i18n';
import { showSheets } from './pages/sheets';
import { showSignIn } from './pages/sign-in';
import { attempt, button, h, notify } from './dom';

/** What a page does when the user leaves it. */
export interface Leaving {
	/** Number of edits that are not saved. */
	unsaved(): number;
	end(): void;
}

export interface Navigation {
	toList(): void;
	toSheet(fid: number): void;
	/** Ends the session. expired: tells the user that it has ended. */
	signOut(expired?: boolean): void;
}

const root = document.querySelector<HTMLElement>('#app')!;
let leaving: Leaving | null = null;
/** The address of the shown page. */
let address = location.href;
/** Number of pages shown: an earlier one that is still loading is not shown any more. */
let shows = 0;

const navigation: Navigation = {
	toList: () => go('/'),
	toSheet: (fid) => go(`/?id=${fid}`),
	signOut(expired = false) {
		if (expired) forgetSession();
		else endSession().catch(() => notify(t('signout.failed'), 'problem'));
		void show().then(() => expired && !isSignedIn() && notify(t('signin.expired'), 'problem'));
	},
};

/** Whether the page may be left: nothing is unsaved, or the user agrees. Unsaved edits stay in IndexedDB. */
function mayLeave(): boolean {
	const count = leaving?.unsaved() ?? 0;
	return count === 0 || window.confirm(t('editor.leave', { count }));
}

function go(to: string): void {
	if (!mayLeave()) return;
	history.pushState(null, '', to);
	void show();
}

function sheetOfAddress(): number | null {
	const id = new URLSearchParams(location.search).get('id') ?? '';
	return /^[1-9][0-9]{0,15}$/.test(id) ? Number(id) : null;
}

/** The key of a link is in the fragment, which browsers do not send. */
function linkOfAddress(): string | null {
	return new URLSearchParams(location.hash.slice(1)).get('link');
}

async function show(): Promise<void> {
	leaving?.end();
	leaving = null;
	address = location.href;
	root.replaceChildren();
	const current = ++shows;
	const fid = sheetOfAddress();
	// The grid is most of the page's size. It is loaded when a sheet is opened, while the session is asked for.
	const editor = fid === null ? null : Promise.all([import('./pages/editor'), loadEditorTexts()]);
	editor?.catch(() => {});
	const session = await currentSession();
	if (current !== shows) return;
	if (session) saveSession(session);
	if (!session) {
		document.title = `${t('signin.title')} – ${t('product')}`;
		showSignIn(root, (signedIn) => {
			saveSession(signedIn);
			void show();
		});
		return;
	}
	if (fid === null || !editor) {
		document.title = `${t('sheets.title')} – ${t('product')}`;
		leaving = { unsaved: () => 0, end: showSheets(root, session, navigation) };
		return;
	}
	root.append(h('p', { class: 'loading', role: 'status' }, t('editor.opening')));
	const link = linkOfAddress();
	const opened = link !== null && (await attempt(() => openLink(session.token, fid, link)));
	if (current !== shows) return;
	if (opened) history.replaceState(null, '', `/?id=${fid}`);
	const loaded = await editor.catch(() => null);
	if (current !== shows) return;
	if (!loaded) {
		// A browser does not load a module again that it could not load.
		const retry = button(t('retry'), () => location.reload());
		root.replaceChildren(h('p', { class: 'loading', role: 'alert' }, t('error.unreachable'), ' ', retry));
		return;
	}
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
