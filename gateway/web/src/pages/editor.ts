// editor.ts - the page of a sheet: the grid, the session, and the bar above.
import { ApiError, findSheet, saveSession, sharedSession, SheetApi } from '../api';
import { Msg } from '../answers';
import { attempt, button, h, notify } from '../dom';
import { language, t, tOr } from '../i18n';
import type { Leaving, Navigation } from '../main';
import { cellName } from '../content';
import { PageOutbox, refusedEdits, sendLeftovers } from '../outbox';
import { SheetSession, type SessionEvents, type Status, type StopReason } from '../sheet/session';
import type { Place, Reason, Role } from '../v2/messages';
import type { Session } from '../api';
import { KeptList } from './kept';
import { askPassword } from './sign-in';
import { createUniverView } from '../view/univer';
import type { UniverView } from '../view/univer';
import { nameToolbarButtons } from '../view/labels';
import { colourOf } from '../view/marks';

const stopOf = new Map<number, StopReason | 'token'>([
	[Msg.InvalidToken, 'token'],
	[Msg.NoPermission, 'permission'],
	[Msg.NoSheet, 'missing'],
	[Msg.InTrash, 'trash'],
]);

const mostPeople = 5;

function statusText({ phase, unsaved, held, loading }: Status): string {
	if (phase === 'stopped') return unsaved ? t('status.stoppedUnsaved', { count: unsaved }) : t('status.stopped');
	if (phase === 'connecting') return t('status.connecting');
	if (phase === 'reconnecting') return unsaved ? t('status.reconnectingUnsaved', { count: unsaved }) : t('status.reconnecting');
	if (phase === 'silent') return unsaved ? t('status.silentUnsaved', { count: unsaved }) : t('status.silent');
	if (unsaved && held) return t('status.held', { count: unsaved, name: held.holder, seconds: held.seconds });
	if (unsaved) return t('status.saving', { count: unsaved });
	return loading ? t('status.loading') : t('status.saved');
}

export function showEditor(root: HTMLElement, account: Session, fid: number, navigation: Navigation): Leaving {
	const sheetApi = new SheetApi(account, fid);
	const title = h('h1', { class: 'sheet-name' }, '…');
	const status = h('span', { class: 'status', role: 'status', 'data-state': 'connecting' }, t('status.connecting'));
	const signIn = button(t('signin.submit'), () => void goOn(), { hidden: true });
	const people = h('ul', { class: 'people', 'aria-label': t('people.title') });
	const grid = h('div', { class: 'grid', 'aria-label': t('editor.grid'), role: 'application' });
	const reader = h('div', { class: 'visually-hidden', 'aria-live': 'polite', id: 'cell-reader' });
	const drawers = h('div', { class: 'drawers' });
	const context = { session: account, sheetApi, drawers };
	const outbox = new PageOutbox(account.uid, fid);
	let view: UniverView | null = null;
	let viewComing = false;
	let gone = false;
	let stopNaming = () => {};

	const kept = new KeptList((edits) => session.write(edits));
	const events: SessionEvents = {
		onHello(hello) {
			title.textContent = hello.name || t('sheets.unnamed');
			document.title = `${title.textContent} – ${t('product')}`;
			if (viewComing) return;
			viewComing = true;
			void makeView(hello);
		},
		onStatus(next) {
			const text = statusText(next);
			if (status.textContent !== text) status.textContent = text;
			status.dataset.state = next.phase === 'connected' && next.unsaved ? 'saving' : next.phase === 'connected' && next.loading ? 'loading' : next.phase;
			status.dataset.unsaved = String(next.unsaved);
		},
		onRole(role: Role) {
			view?.setReadOnly(role !== 'editor' && role !== 'owner');
		},
		onMarks(marks, names) {
			view?.showMarks(marks);
			showPeople(names);
		},
		onMove: (change) => kept.move(change),
		onRefused(edits, reason, place) {
			const text = refusal(reason, place);
			notify(text, 'problem');
			kept.add(edits, text);
		},
		onDenied(place, reason) {
			if (reason !== 'locked') return;
			const content = view?.editorText();
			view?.cancelEditing();
			const text = refusal(reason, place);
			notify(text, 'problem');
			if (content) kept.add([{ ...place, content }], text);
		},
		onSkipped(skipped) {
			if (skipped.length === 0) return;
			const cells = skipped.slice(0, mostPeople).map(({ row, col }) => cellName(row, col)).join(', ');
			notify(t('undo.skipped', { count: skipped.length, cells: skipped.length > mostPeople ? `${cells} …` : cells }), 'problem');
		},
		onUndoState: (canUndo, canRedo) => view?.showUndo(canUndo, canRedo),
		onTokenEnded() {
			void goOn();
		},
		onStopped(reason) {
			view?.setReadOnly(true);
			showStopped(reason);
		},
	};

	const session = new SheetSession(
		{
			sheet: fid,
			uid: account.uid,
			token: () => account.token,
			locate: async () => (await findSheet(account.token, fid)).ws,
			stopOf: (error) => (error instanceof ApiError && error.msg !== null ? (stopOf.get(error.msg) ?? null) : null),
			outbox,
		},
		events,
	);

	function refusal(reason: Reason, place: Place): string {
		const name = session.holderOf(place);
		const values = { cell: cellName(place.row, place.col), reason, name: name ?? '' };
		return reason === 'locked' && name ? t('lock.held', values) : tOr(`refused.${reason}`, 'refused.other', values);
	}

	async function makeView(size: { rows: number; cols: number }): Promise<void> {
		const made = await createUniverView(grid, language, size, {
			onChanges: (changes) => session.changed(changes),
			onStructure(change) {
				if (!session.restructure(change)) notify(t('blocked.offline'), 'problem');
			},
			onUndo: () => session.undo(),
			onRedo: () => session.redo(),
			lockHolder(place: Place) {
				const name = session.holderOf(place);
				if (name) notify(t('lock.held', { name, cell: cellName(place.row, place.col) }), 'problem');
				return name;
			},
			onEditing: (place) => session.setEditing(place),
			onBlocked: (kind) => notify(t(`blocked.${kind}`), 'problem'),
			onSelection(place, range) {
				session.select(range);
				readCell(place);
			},
			onView: (range) => session.view(range),
		});
		if (gone) {
			made.dispose();
			return;
		}
		view = made;
		view.setReadOnly(!session.canEdit);
		session.attach(view);
		stopNaming = nameToolbarButtons(grid);
	}

	function readCell(place: Place): void {
		if (!view) return;
		const holder = session.holderOf(place);
		reader.textContent = view.describe(place.row, place.col) + (holder ? `, ${t('lock.held', { name: holder, cell: '' })}` : '');
	}

	function showPeople(names: string[]): void {
		const different = [...new Set(names)];
		const shown = different.slice(0, mostPeople).map((name) => h('li', { title: name, 'aria-label': name, style: `--colour:${colourOf(name)}` }, [...name][0]!.toUpperCase()));
		const more = different.length - shown.length;
		people.replaceChildren(...shown, ...(more > 0 ? [h('li', { class: 'more' }, `+${more}`)] : []));
	}

	function showStopped(reason: StopReason): void {
		const retry = button(t('retry'), () => location.reload());
		const text = h('p', {}, t(`stopped.${reason}`));
		root.querySelector('.stopped')?.remove();
		root.append(h('div', { class: 'stopped', role: 'alert' }, text, h('p', {}, button(t('editor.back'), () => navigation.toList(), { class: 'primary' }), ' ', retry)));
	}

	/** Goes on with a new token. The user may close the dialog, and sign in later. */
	async function goOn(): Promise<void> {
		signIn.hidden = true;
		const signedIn = await signInAgain();
		if (gone) return;
		signIn.hidden = signedIn;
		if (signedIn) session.resume();
	}

	/** Gets a new token: that of another tab, or by the password. Resolves to whether there is one. */
	async function signInAgain(): Promise<boolean> {
		const shared = await sharedSession();
		if (shared?.uid !== account.uid || shared.token === account.token) return askPassword(account, () => navigation.signOut());
		Object.assign(account, shared);
		saveSession(account);
		return true;
	}

	/** Sends what earlier pages have left, and offers what the gateway has refused. */
	async function bringLeftovers(): Promise<void> {
		const sent = (await sendLeftovers(account)).get(fid) ?? 0;
		if (gone) return;
		if (sent > 0) notify(t('kept.sent', { count: sent }));
		for (const { edits, forget } of await refusedEdits(account.uid, fid)) kept.add(edits, t('kept.left'), () => void forget());
	}

	const askBeforeLeaving = (event: BeforeUnloadEvent) => {
		if (session.unsaved > 0) event.preventDefault();
	};
	// Tab moves between cells, so F6 leaves the grid and returns to it.
	const leaveGrid = (event: KeyboardEvent) => {
		if (event.key !== 'F6' || root.querySelector('dialog[open]')) return;
		event.preventDefault();
		event.stopPropagation();
		if (grid.contains(document.activeElement) || document.activeElement === document.body) root.querySelector<HTMLElement>('.bar a')?.focus();
		else view?.focus();
	};
	const listeners = new AbortController();
	const { signal } = listeners;
	document.addEventListener('keydown', leaveGrid, { capture: true, signal });
	window.addEventListener('beforeunload', askBeforeLeaving, { signal });
	window.addEventListener('online', () => session.wake(), { signal });
	document.addEventListener('visibilitychange', () => document.hidden || session.wake(), { signal });

	const save = async () => {
		await attempt(async () => {
			const cid = await sheetApi.commit();
			notify(cid === null ? t('versions.nothing') : t('versions.saved', { cid }));
		});
	};
	root.append(
		h(
			'header',
			{ class: 'bar' },
			h('a', {
				href: '/',
				class: 'back',
				click: (event) => {
					event.preventDefault();
					navigation.toList();
				},
			}, h('span', { class: 'logo', 'aria-hidden': 'true' }), h('span', {}, t('editor.back'))),
			title,
			status,
			signIn,
			h('span', { class: 'space' }),
			people,
			button(t('versions.save'), () => void save()),
			button(t('versions.title'), () => void import('./versions').then(({ openVersions }) => openVersions(context)), { 'aria-haspopup': 'dialog' }),
			button(t('history.title'), () => void import('./history').then(({ openHistory }) => openHistory(context)), { 'aria-haspopup': 'dialog' }),
			button(t('share.title'), () => void import('./share').then(({ openShare }) => openShare(context)), { class: 'primary', 'aria-haspopup': 'dialog' }),
			h('span', { class: 'user' }, account.username),
		),
		h('main', { class: 'editor' }, grid, drawers),
		kept.element,
		reader,
	);
	session.start();
	void bringLeftovers();

	// For the console and for tests.
	Object.assign(window, { pgSheet: { contentOf: (row: number, col: number) => view?.contentOf({ row, col }) ?? null, layoutOf: (col: number) => view?.layoutOf(col) } });

	return {
		unsaved: () => session.unsaved,
		end() {
			gone = true;
			listeners.abort();
			stopNaming();
			void session.stop().then(() => outbox.close());
			view?.dispose();
		},
	};
}
