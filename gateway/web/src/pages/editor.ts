// editor.ts - the page of a sheet: the grid, the connection, and the bar above.
import { ApiError, findSocket, SheetApi } from '../api';
import { Collab } from '../collab';
import type { CollabListener, FindGateway, SocketLike, Status, StopReason } from '../collab';
import { attempt, button, h, notify } from '../dom';
import { language, t, tOr } from '../i18n';
import type { Navigation } from '../main';
import { cellName } from '../content';
import { Msg } from '../protocol';
import type { CellEdit, CellLock, CellPlace, Snapshot } from '../protocol';
import { EditBatch, nextFrame } from '../queue';
import type { Session } from '../api';
import { openHistory } from './history';
import { openShare } from './share';
import { openVersions } from './versions';
import { createUniverView } from '../view/univer';
import type { UniverView } from '../view/univer';
import { nameToolbarButtons } from '../view/labels';

const stopOf = new Map<number, StopReason>([
	[Msg.InvalidToken, 'token'],
	[Msg.NoPermission, 'permission'],
	[Msg.NoSheet, 'missing'],
	[Msg.InTrash, 'trash'],
	[Msg.DupConnection, 'duplicate'],
]);

function gatewayFinder(session: Session, fid: number): FindGateway {
	return async () => {
		try {
			return { url: await findSocket(session.token, fid) };
		} catch (error) {
			const stop = error instanceof ApiError && error.msg !== null ? stopOf.get(error.msg) : undefined;
			if (stop) return { stop };
			throw error;
		}
	};
}

function statusText({ state, unsaved, held }: Status): string {
	if (state === 'stopped') return t('status.stopped');
	if (state === 'connecting') return t('status.connecting');
	if (state === 'reconnecting') return unsaved ? t('status.reconnectingUnsaved', { count: unsaved }) : t('status.reconnecting');
	if (unsaved && held) return t('status.held', { count: unsaved, name: held.holder, seconds: held.seconds });
	return unsaved ? t('status.saving', { count: unsaved }) : t('status.saved');
}

export function showEditor(root: HTMLElement, session: Session, fid: number, navigation: Navigation): () => void {
	const sheetApi = new SheetApi(session.token, fid);
	const title = h('h1', { class: 'sheet-name' }, '…');
	const status = h('span', { class: 'status', role: 'status', 'data-state': 'connecting' }, t('status.connecting'));
	const grid = h('div', { class: 'grid', 'aria-label': t('editor.grid'), role: 'application' });
	const reader = h('div', { class: 'visually-hidden', 'aria-live': 'polite', id: 'cell-reader' });
	const drawers = h('div', { class: 'drawers' });
	const context = { session, sheetApi, drawers };
	let view: UniverView | null = null;
	let viewComing: Promise<void> | null = null;
	let latest: { snapshot: Snapshot; overlay: CellEdit[] } | null = null;
	let locks: CellLock[] = [];
	let gone = false;

	const batch = new EditBatch(nextFrame, (edits) => view?.apply(edits.filter((edit) => !collab.isPending(edit))));
	const listener: CollabListener = {
		onSnapshot(snapshot, overlay) {
			batch.clear();
			title.textContent = snapshot.name || t('sheets.unnamed');
			document.title = `${title.textContent} – ${t('product')}`;
			latest = { snapshot, overlay };
			if (view) view.load(snapshot, overlay);
			// Edits that arrive while the grid is created wait in the batch.
			viewComing ??= makeView().then(() => {
				view?.load(latest!.snapshot, latest!.overlay);
				batch.flush();
				view?.showLocks(locks);
			});
		},
		onEdits: (edits) => batch.add(edits),
		onLocks(next) {
			locks = next;
			view?.showLocks(locks);
		},
		onRefused(place, reason, wasEdit) {
			const holder = collab.holderOf(place);
			const values = { cell: cellName(place.row, place.col), reason, name: holder ?? '' };
			if (!wasEdit) view?.cancelEditing();
			if (reason === 'role') view?.setReadOnly(true);
			notify(holder ? t('lock.held', values) : tOr(`refused.${reason}`, 'refused.other', values), 'problem');
		},
		onStatus(next) {
			const text = statusText(next);
			if (status.textContent !== text) status.textContent = text;
			status.dataset.state = next.state === 'connected' && next.unsaved ? 'saving' : next.state;
			status.dataset.unsaved = String(next.unsaved);
		},
		onStopped(reason) {
			if (reason === 'token') {
				navigation.signOut(true);
				return;
			}
			view?.setReadOnly(true);
			showStopped(reason);
		},
	};

	const collab = new Collab(
		session.username,
		{
			findGateway: gatewayFinder(session, fid),
			openSocket: (url) => new WebSocket(url) as SocketLike,
			setTimer(run, milliseconds) {
				const timer = setTimeout(run, milliseconds);
				return () => clearTimeout(timer);
			},
			now: () => performance.now(),
			random: Math.random,
		},
		listener,
	);

	async function makeView(): Promise<void> {
		const made = await createUniverView(grid, language, {
			onLocalEdits(edits) {
				batch.forget(edits);
				collab.edit(edits);
			},
			lockHolder(place: CellPlace) {
				const name = collab.holderOf(place);
				if (name) notify(t('lock.held', { name, cell: cellName(place.row, place.col) }), 'problem');
				return name;
			},
			onEditing: (place) => collab.setEditing(place),
			onBlocked: (kind) => notify(t(`blocked.${kind}`), 'problem'),
			onSelection: (place) => readCell(place),
		});
		if (gone) {
			made.dispose();
			return;
		}
		view = made;
		stopNaming = nameToolbarButtons(grid);
	}
	let stopNaming = () => {};

	function readCell(place: CellPlace): void {
		if (!view) return;
		const holder = collab.holderOf(place);
		reader.textContent = view.describe(place.row, place.col) + (holder ? `, ${t('lock.held', { name: holder, cell: '' })}` : '');
	}

	function showStopped(reason: StopReason): void {
		const retry = button(t('retry'), () => location.reload());
		const text = h('p', {}, t(`stopped.${reason}`));
		root.querySelector('.stopped')?.remove();
		root.append(h('div', { class: 'stopped', role: 'alert' }, text, h('p', {}, button(t('editor.back'), () => navigation.toList(), { class: 'primary' }), ' ', retry)));
	}

	const askBeforeLeaving = (event: BeforeUnloadEvent) => {
		if (collab.unsaved > 0) event.preventDefault();
	};
	const visible = () => {
		if (document.hidden) return;
		batch.flush();
		collab.retryNow();
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
	window.addEventListener('online', () => collab.retryNow(), { signal });
	document.addEventListener('visibilitychange', visible, { signal });

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
					if (collab.unsaved === 0 || window.confirm(t('editor.leave', { count: collab.unsaved }))) navigation.toList();
				},
			}, h('span', { class: 'logo', 'aria-hidden': 'true' }), h('span', {}, t('editor.back'))),
			title,
			status,
			h('span', { class: 'space' }),
			button(t('versions.save'), () => void save()),
			button(t('versions.title'), () => openVersions(context), { 'aria-haspopup': 'dialog' }),
			button(t('history.title'), () => openHistory(context), { 'aria-haspopup': 'dialog' }),
			button(t('share.title'), () => openShare(context), { class: 'primary', 'aria-haspopup': 'dialog' }),
			h('span', { class: 'user' }, session.username),
		),
		h('main', { class: 'editor' }, grid, drawers),
		reader,
	);
	collab.start();

	// For the console and for tests.
	Object.assign(window, { pgSheet: { contentOf: (row: number, col: number) => view?.contentOf({ row, col }) ?? null } });

	return () => {
		gone = true;
		listeners.abort();
		stopNaming();
		collab.stop();
		view?.dispose();
	};
}
