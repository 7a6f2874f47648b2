// editor.ts - the page of a sheet: the grid, the session, and the bar above.
import '../editor.css';
import { ApiError, locateSheet, saveSession, sharedSession, SheetApi, tokenRenewal } from '../api';
import { Msg } from '../answers';
import { attempt, button, confirmDialog, h, notify, remind } from '../dom';
import { Book } from '../book/book';
import { TabBar } from '../book/bar';
import { readTabs } from '../book/reading';
import { language, personName, t, tOr } from '../i18n';
import type { Leaving, Navigation } from '../main';
import { cellName, named } from '../content';
import { keepRow, PageOutbox, watchLeftovers, type Leftovers, type Row } from '../outbox';
import { lookForReminders } from '../reminders';
import { merge, unmerge } from '../sheet/arrange';
import { foreignPart } from '../sheet/foreign';
import type { SessionEvents, Status, StopReason } from '../sheet/events';
import { SheetSession } from '../sheet/session';
import { browserZone, zoneOf, zoneProperty } from '../sheet/timezone';
import { movePlace } from '../v2/lines';
import { isCell, isProperty, mayEdit, type CellEdit, type Place, type Range, type Reason, type Role } from '../v2/messages';
import type { Session } from '../api';
import { downloadCsv } from '../csv';
import { accountButton } from './openers';
import { openHistory } from './history';
import { KeptList } from './kept';
import { openShare } from './share';
import { askPassword } from './sign-in';
import { openVersions } from './versions';
import { readTexts } from '../view/texts';
import { UniverView } from '../view/univer';
import { addToGrid } from '../view/additions';
import type { PasteEvents } from '../view/input/paste';
import { typedContent } from '../view/input/typed';
import { reveal } from '../view/parts';
import { StateAnnouncer, statusText } from './announce';
import { Draft } from './draft';
import { fold, foldIcon } from './fold';
import { FormulaNotice } from './formulas';
import { People } from './people';
import { Pictures } from './pictures';
import { SheetTitle } from './title';
import { switches } from './switches';
import { ZoneButton } from './zone';
import { addTools, guestButtons } from './tools';

const stopOf = new Map<number, StopReason | 'token'>([
	[Msg.InvalidToken, 'token'],
	[Msg.NoPermission, 'permission'],
	[Msg.NoSheet, 'missing'],
	[Msg.InTrash, 'trash'],
]);

/** So many cells are named before they are deleted. */
const mostNamed = 30;
/** So many columns may have the header of a calendar. */
const headerColumns = 40;
/** A paste of so many cells is reported. */
const toldCells = 1000;

export function showEditor(root: HTMLElement, account: Session, fid: number, navigation: Navigation): Leaving {
	const sheetApi = new SheetApi(account, fid);
	const isGuest = account.link !== undefined;
	const title = new SheetTitle((name) => sheetApi.rename(name));
	const status = h('span', { class: 'status', 'data-state': 'connecting' }, t('status.connecting'));
	const announcer = new StateAnnouncer();
	const formulas = new FormulaNotice();
	const signIn = button(t(isGuest ? 'guest.again' : 'signin.submit'), () => void goOn(true), { hidden: true });
	const grid = h('div', { class: 'grid', 'aria-label': t('editor.grid'), 'aria-describedby': 'grid-help', role: 'application' });
	const people = new People(
		grid,
		({ row, col }) => view?.parts && reveal(view.parts, { row, col }),
		() => phase === 'connected',
	);
	let phase: Status['phase'] = 'connecting';
	const reader = h('div', { class: 'visually-hidden', 'aria-live': 'polite', id: 'cell-reader' });
	const drawers = h('div', { class: 'drawers' });
	const zone = new ZoneButton(
		() => session.canEdit,
		(name) => session.write([], [zoneProperty(name)]),
	);
	const gridStatus = h('span', { class: 'grid-status' });
	const seqNow = () => {
		session.flush();
		return session.seq;
	};
	const context = { session: account, sheetApi, drawers, selection: () => selectedRange, seq: seqNow };
	const book = new Book(account, fid);
	const name = () => title.element.textContent ?? '';
	const tabs = new TabBar({ session: account, book, name, open: (sheet) => void leaveFor(sheet), toList: () => navigation.toList(), settled });
	book.onChange(() => book.current && title.show(book.current.name));
	const others = readTabs(account, book);
	const outbox = new PageOutbox(account, fid, () => notify(t('kept.notStored'), 'problem'));
	const gridTexts = readTexts(language);
	let view: UniverView | null = null;
	let viewComing = false;
	let gone = false;
	/** An edit could not be queued. */
	let broken = false;
	let removeAdditions = () => {};
	let shown: Status | null = null;
	/** The token with which the sheet was opened. */
	let usedToken = account.token;
	/** Number of edits that other pages have not saved. */
	let elsewhere = 0;

	let selected: Place = { row: 0, col: 0 };
	let selectedRange: Range = { row: 0, col: 0, toRow: 0, toCol: 0 };
	const kept = new KeptList(
		(edits) => session.write(edits),
		() => selected,
	);
	const draft = new Draft(
		() => view,
		() => outbox.keep(),
	);
	const unsaved = () => session.unsaved + (draft.content ? 1 : 0);
	const pictures = new Pictures({
		session: account,
		fid,
		canEdit: () => session.canEdit,
		contentAt({ row, col }) {
			session.flush();
			return view?.read(row, col).content ?? '';
		},
		lacks: (ranges) => session.lacks(ranges),
		write: (edits) => session.rewrite(edits),
		focus: () => view?.focus(),
		offer: (edit, reason) => kept.add([edit], reason, outbox.keep()),
		offerLost: (content) => kept.addLost([content], t('kept.deleted')),
	});
	/** The user may not write any more: closes the cell editor, and offers its text. */
	const endEditing = (reason: string) => {
		const { content } = draft;
		if (content) kept.add([content], reason, outbox.keep());
		view?.cancelEditing();
		view?.setReadOnly(true);
	};
	const events: SessionEvents = {
		onHello(hello) {
			title.show(hello.name);
			if (viewComing) return book.look();
			void book.read();
			viewComing = true;
			void makeView(hello);
		},
		onStatus(sessionState) {
			shown = sessionState;
			const next = { ...sessionState, partial: sessionState.partial && view?.hasFormulas === true };
			const others = next.phase === 'connected' && next.unsaved === 0 && elsewhere > 0;
			const text = broken ? t('status.broken') : others ? t('status.elsewhere', { count: elsewhere }) : statusText(next);
			if (status.textContent !== text) status.textContent = text;
			phase = next.phase;
			zone.show(zoneOf(session.properties()));
			status.dataset.state =
				next.phase === 'connected' && (next.unsaved || others || broken) ? 'saving' : next.phase === 'connected' && next.loading ? 'loading' : next.phase;
			status.dataset.unsaved = String(next.unsaved);
			announceState(others ? { ...next, unsaved: elsewhere } : next);
		},
		onReminders: lookForReminders,
		onBook: () => book.look(),
		onRole(role: Role) {
			if (document.body.dataset.role !== undefined && document.body.dataset.role !== 'viewer' && !session.canEdit) remind(t('blocked.role'));
			document.body.dataset.role = role;
			title.allow(session.canEdit && !isGuest);
			if (!isGuest) tabs.allow(role);
			if (mayEdit(role)) view?.setReadOnly(false);
			else endEditing(t('refused.role'));
		},
		onMarks(marks, names) {
			view?.showMarks(marks.map((mark) => ({ ...mark, name: personName(mark.name) })));
			people.show(marks, names);
		},
		onMove(change) {
			draft.move(change);
			kept.move(change);
			pictures.move(change);
			selected = movePlace(selected, change) ?? selected;
		},
		onRefused(edits, reason, place) {
			const text = reason === 'size' && edits.some(isProperty) ? t('refused.properties') : refusal(reason, place);
			notify(text, 'problem');
			kept.add(edits, text, outbox.keep());
		},
		onLost(deleted, cut) {
			const keep = outbox.keep();
			keep(deleted);
			kept.addLost(
				deleted.map(({ content }) => content!),
				t('kept.deleted'),
				keep,
			);
			kept.add(cut, t('kept.cut'), outbox.keep());
		},
		onDenied(place) {
			notify(t('lock.denied', { cell: cellName(place.row, place.col) }), 'problem');
			draft.whenPaused((content) => {
				kept.add([content], refusal('locked', content), outbox.keep());
				view?.cancelEditing();
			});
		},
		onSkipped(skipped) {
			if (skipped.length === 0) return;
			notify(t('undo.skipped', { count: skipped.length, cells: named(skipped.map(({ row, col }) => cellName(row, col))) }), 'problem');
		},
		onUnshown({ row, col }, error) {
			console.error(error);
			notify(t('grid.unshown', { cell: cellName(row, col) }), 'problem');
		},
		onHindered: (reason) => notify(reason === 'offline' ? t('blocked.offline') : t(`hindered.${reason}`), 'problem'),
		onUndoState: (canUndo, canRedo) => view?.showUndo(canUndo, canRedo),
		onTokenEnded() {
			void goOn();
		},
		onStopped(reason) {
			if (gone) return;
			book.look();
			endEditing(t(`stopped.${reason}`));
			showStopped(t(`stopped.${reason}`), null);
		},
	};

	const session = new SheetSession(
		{
			sheet: fid,
			uid: account.uid,
			token: () => (usedToken = account.token),
			locate: (moved) => locateSheet(account.token, fid, moved),
			stopOf: (error) => (error instanceof ApiError && error.msg !== null ? (stopOf.get(error.msg) ?? null) : null),
			outbox,
			zone: isGuest ? undefined : browserZone(),
		},
		events,
	);

	function holderOf(place: Place): string | null {
		const name = session.holderOf(place);
		return name && personName(name);
	}

	function refusal(reason: Reason, place: Place): string {
		const name = holderOf(place);
		const values = { cell: cellName(place.row, place.col), reason, name: name ?? '' };
		return reason === 'locked' && name ? t('lock.held', values) : tOr(`refused.${reason}`, 'refused.other', values);
	}

	async function makeView(size: { rows: number; cols: number }): Promise<void> {
		const texts = await gridTexts;
		if (gone) return;
		const made = new UniverView(
			grid,
			texts,
			size,
			{
				onChanges(changes, properties) {
					session.changed(changes, properties);
					tellForeign(
						changes.map(({ row, col, after }) => ({ row, col, content: after.content })),
						made,
					);
				},
				onUnsaved(edits, error) {
					console.error(error);
					broken = true;
					kept.add(edits, t('kept.broken'), outbox.keep());
					if (shown) events.onStatus(shown);
				},
				beforeChange: () => session.flush(),
				lacks: (ranges) => session.lacks(ranges),
				properties: () => session.properties(),
				onStructure(change) {
					if (!session.restructure(change)) notify(t('blocked.offline'), 'problem');
				},
				onMoveLines(move) {
					if (!session.moveLines(move)) notify(t('blocked.offline'), 'problem');
				},
				onTextLost(text) {
					if (text) kept.addLost([typedContent(text)], t('kept.deleted'));
				},
				onUndo: () => session.undo(),
				onRedo: () => session.redo(),
				refusal(place) {
					const holder = session.holderOf(place);
					if (session.canEdit && !holder) return null;
					remind(session.canEdit ? refusal('locked', place) : t('blocked.role'));
					return session.canEdit ? 'locked' : 'role';
				},
				onRefusedText: (edit) => kept.add([edit], refusal('locked', edit), outbox.keep()),
				onEditing(place) {
					draft.edit(place);
					session.setEditing(place);
				},
				onBlocked: (kind) => remind(t(`blocked.${kind}`)),
				onSelection(place, range) {
					session.select(range);
					selected = place;
					selectedRange = range;
					readCell(place);
				},
				onView: (range) => session.view(range),
				onDivides: (merged) => notify(t('merge.divides', { merged }), 'problem'),
				confirmMerge: (ranges, cells) =>
					confirmDialog(t('merge.title', { range: named(ranges) }), t('merge.text', { cells: named(cells, mostNamed) }), t('merge.confirm'), true),
			},
			formulas.options(
				() => session.seq,
				() => sheetApi.storedValues(),
				others,
			),
		);
		view = made;
		view.setReadOnly(!session.canEdit);
		session.attach(view);
		removeAdditions = addToGrid(view, () => session.unreadEnd, pasting(made), gridStatus);
	}

	const pasting = (grid: UniverView): PasteEvents => ({
		canEdit: () => session.canEdit,
		lacks: (ranges) => session.lacks(ranges),
		computes: (formula) => !foreignPart(formula, (name) => grid.hasFunction(name)),
		styleAt(row, col) {
			session.flush();
			return grid.read(row, col).style;
		},
		write(edits, area, merges) {
			const before = session.properties();
			const after = before.copy();
			if (merges) unmerge(after, area);
			merges?.forEach((range) => merge(after, range));
			session.write(edits, after.since(before));
			tellForeign(edits, grid);
		},
		onBlocked: (kind) => notify(t(`blocked.${kind}`), 'problem'),
		onDivides: (merged) => notify(t('paste.divides', { merged }), 'problem'),
		onPasted(rows, cols, lostFormats) {
			if (lostFormats > 0) notify(t('paste.formats', { count: lostFormats }), 'problem');
			else if (rows * cols >= toldCells) notify(t('paste.done', { rows, cols }));
		},
		onFiles: (files, place) => (isGuest ? remind(t('picture.guest')) : pictures.add(files, place)),
	});

	/** Says what to write instead of the first formula that only other spreadsheets understand. */
	function tellForeign(edits: CellEdit[], grid: UniverView): void {
		for (const { row, col, content = '' } of edits) {
			const part = foreignPart(content, (name) => grid.hasFunction(name));
			if (!part) continue;
			const instead = part.kind === 'unknown' ? tOr(`formula.instead.${part.name}`, 'formula.instead.other') : part.instead;
			return notify(t(`formula.${part.kind}`, { cell: cellName(row, col), name: part.name, instead }), 'problem');
		}
	}

	function readCell(place: Place): void {
		if (!view) return;
		const holder = holderOf(place);
		reader.textContent = view.describe(place.row, place.col) + (holder ? `, ${t('lock.held', { name: holder, cell: '' })}` : '');
	}

	/** Announces that all is saved after something was not, and that the connection is lost or back. */
	function announceState(status: Status): void {
		const { phase: now, unsaved, loading } = status;
		if (now === 'connecting' || loading) return;
		const settled = now !== 'connected' ? now : unsaved === 0 ? 'saved' : '';
		if (settled === '') announcer.forget();
		announcer.show(settled, statusText({ ...status, held: null }));
	}

	/** Covers the sheet with what has happened. first: the button before the others. */
	function showStopped(text: string, first: HTMLElement | null, ...more: HTMLElement[]): void {
		const back = isGuest ? button(t('guest.leave'), () => navigation.leave()) : button(t('editor.back'), () => navigation.toList(), { class: 'primary' });
		root.querySelector('.stopped')?.remove();
		for (const covered of root.querySelectorAll<HTMLElement>('header, main, footer > :not(.tab-bar)')) covered.inert = true;
		root.append(
			h(
				'div',
				{ class: 'stopped', role: 'alert' },
				h('p', {}, text),
				...more,
				h('p', {}, first, first && ' ', back, ' ', first ? null : button(t('retry'), () => location.reload())),
			),
		);
	}

	/** The link of the guest opens the sheet no more: says so, and what is not in the sheet, which is sent if the guest enters again. */
	async function showEnded(): Promise<void> {
		const { unsentCells } = await import('../share/guest');
		if (gone) return;
		endEditing(t('guest.ended'));
		const again = async () => {
			const entered = await enterAgain(true);
			if (!entered || gone) return;
			root.querySelector('.stopped')?.remove();
			for (const covered of root.querySelectorAll<HTMLElement>('[inert]')) covered.inert = false;
			session.resume();
		};
		const unsent = unsentCells(session.unsent);
		showStopped(
			t('guest.ended'),
			button(t('guest.again'), () => void again(), { class: 'primary' }),
			...unsent,
		);
	}

	/** Goes on with a new token. The user may close the dialog, and sign in later. asked: the user has asked for it. */
	async function goOn(asked = false): Promise<void> {
		signIn.hidden = true;
		const signedIn = isGuest ? await enterAgain(asked) : await signInAgain();
		if (gone) return;
		signIn.hidden = signedIn || root.querySelector('.stopped') !== null;
		if (signedIn) session.resume();
		if (signedIn) others.tryAgain();
	}

	/** Gets a new token for a guest. Resolves to whether there is one. */
	async function enterAgain(asked: boolean): Promise<boolean> {
		const guest = await import('../share/guest');
		const entering = gone ? 'later' : await guest.enterAgain(account, asked);
		if (entering === 'ended' && !gone) await showEnded();
		return entering === 'entered';
	}

	/** Gets a new token: that of another tab, or by the password. Resolves to whether there is one. */
	async function signInAgain(): Promise<boolean> {
		await tokenRenewal();
		if (gone) return false;
		if (account.token !== usedToken) return true;
		const shared = await sharedSession();
		if (gone) return false;
		if (shared?.uid !== account.uid || shared.token === account.token) return askPassword(account, () => navigation.signOut());
		Object.assign(account, shared);
		saveSession(account);
		return true;
	}

	const offered = new Set<string>();
	/** Says what other pages have not saved, and offers what the gateway has refused. */
	function showLeftovers({ sent, unsent, refused }: Leftovers): void {
		const here = (rows: Row[]) => rows.filter(({ sheet }) => sheet === fid);
		const count = here(sent).length;
		if (count > 0) notify(t('kept.sent', { count }));
		elsewhere = here(unsent).length;
		if (shown) events.onStatus(shown);
		for (const row of here(refused)) {
			const id = `${row.page} ${row.n}`;
			const others = row.edits.filter((edit) => !isCell(edit));
			if (!offered.has(id)) kept.add(row.edits, t(others.length > 0 ? 'kept.leftOthers' : 'kept.left'), keepRow(row), others);
			offered.add(id);
		}
	}

	/** Writes what is being typed, and waits until the edits are saved, for a short time. */
	async function settled(): Promise<void> {
		if (draft.content) await view?.acceptEditing();
		session.flush();
		for (let waits = 0; waits < 40 && !gone && phase === 'connected' && unsaved() > 0; waits++) await new Promise((done) => setTimeout(done, 50));
	}

	async function leaveFor(sheet: number): Promise<void> {
		await settled();
		if (!gone) navigation.toSheet(sheet);
	}

	const store = () => {
		draft.store();
		session.store();
	};
	const askBeforeLeaving = (event: BeforeUnloadEvent) => {
		store();
		if (unsaved() + pictures.count > 0) event.preventDefault();
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
	window.addEventListener('online', () => session.wake(true), { signal });
	window.addEventListener('pagehide', store, { signal });
	document.addEventListener('visibilitychange', () => (document.hidden ? store() : session.wake()), { signal });

	const save = async () => {
		await attempt(async () => {
			const cid = await sheetApi.commit();
			notify(cid === null ? t('versions.nothing') : t('versions.saved', { cid }));
		});
	};
	const tools = addTools({ context, session, view: () => view, name });
	const toCalendar = button(t('editor.toCalendar'), () => navigation.toCalendars(fid), { class: 'for-accounts', hidden: true });
	/** A sheet with the header of a calendar can be shown as one. */
	const offerCalendar = () => {
		const names = Array.from({ length: headerColumns }, (_, col) => view?.contentOf({ row: 0, col })?.content.trim().toLowerCase());
		toCalendar.hidden = !names.includes('title') || !names.includes('start');
	};
	const moreMenu = h(
		'div',
		{ class: 'more-menu' },
		...tools.buttons,
		toCalendar,
		button(t('csv.download'), () => void attempt(() => downloadCsv(fid, isGuest ? account.token : null))),
	);
	const more = fold('more', t('editor.more'), t('editor.more'), moreMenu);
	more.toggle.classList.add('more');
	const actions = h(
		'div',
		{ class: 'actions-menu' },
		button(t('versions.save'), () => void save(), { class: 'for-editors' }),
		button(t('versions.title'), () => openVersions(context), { 'aria-haspopup': 'dialog' }),
		button(t('history.title'), () => openHistory(context), { 'aria-haspopup': 'dialog' }),
		button(t('share.title'), () => openShare(context, t('share.heading')), { class: 'primary for-owners', 'aria-haspopup': 'dialog' }),
		button(t('access.title'), () => openShare(context, t('access.heading')), { class: 'for-others', 'aria-haspopup': 'dialog' }),
		more.toggle,
		moreMenu,
		switches(),
		...(isGuest ? guestButtons(account, navigation) : [accountButton(account, navigation)]),
	);
	const toGrid = button('', () => view?.focus(), { class: 'to-grid', 'aria-label': t('editor.toGrid'), title: t('editor.gridHelp') });
	toGrid.append(h('span', { class: 'label' }, t('editor.toGrid')), h('span', { class: 'sign', 'aria-hidden': 'true' }, '\u2328'));
	const backName = t(isGuest ? 'guest.leave' : 'editor.back');
	const menu = fold('actions', t('editor.menu'), foldIcon(), actions);
	for (const { toggle } of [more, menu]) toggle.addEventListener('click', offerCalendar);
	root.append(
		h(
			'header',
			{ class: 'bar editor-bar' },
			h(
				'a',
				{
					href: '/',
					class: 'back',
					'aria-label': backName,
					click: (event) => {
						event.preventDefault();
						if (isGuest) navigation.leave();
						else navigation.toList();
					},
				},
				h('span', { class: 'logo', 'aria-hidden': 'true' }),
				h('span', { class: 'label' }, backName),
			),
			title.element,
			h('span', { class: 'read-only', title: t('blocked.role') }, t('editor.readOnly')),
			status,
			formulas.element,
			toGrid,
			signIn,
			h('span', { class: 'space' }),
			people.element,
			menu.toggle,
			actions,
		),
		h('main', { class: 'editor' }, grid, drawers),
		h('footer', { class: 'status-bar' }, tabs.element, zone.element, pictures.element, gridStatus),
		kept.element,
		reader,
		h('p', { id: 'grid-help', class: 'visually-hidden' }, t('editor.gridHelp')),
	);
	if (isGuest) document.body.dataset.guest = '';
	tabs.shown();
	session.start();
	const endWatch = watchLeftovers(account, outbox.page, showLeftovers);

	// For the console and for tests.
	Object.assign(window, {
		pgSheet: {
			contentOf: (row: number, col: number) => view?.contentOf({ row, col }) ?? null,
			layoutOf: (row: number, col: number) => view?.layoutOf(row, col),
			editorText: () => view?.editorText() ?? null,
		},
	});

	return {
		unsaved,
		uploading: () => pictures.count,
		discarded: () => unsaved() + kept.count + elsewhere,
		end(visit = false) {
			draft.end();
			pictures.end();
			gone = true;
			delete document.body.dataset.role;
			delete document.body.dataset.guest;
			listeners.abort();
			removeAdditions();
			tools.end();
			tabs.end();
			people.stop();
			announcer.stop();
			menu.close();
			more.close();
			endWatch();
			const stopped = session.stop();
			void (visit ? stopped.then(() => outbox.discard()).catch(() => {}) : stopped).then(() => outbox.close());
			view?.dispose();
			view = null;
		},
	};
}
