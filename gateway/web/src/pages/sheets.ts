// sheets.ts - the list of own and shared sheets, the last used first, and the trash.
import { deleteSheet, listSheets, newSheet, recoverSheet, renameSheet } from '../api';
import { addTab, changeBook, firstTab, listBooks, newBook, type BookInfo } from '../book/http';
import { attempt, bdi, button, confirmDialog, explain, field, h, isSignedOut, notify, openDialog } from '../dom';
import { formatTime, language, loadEditorTexts, t } from '../i18n';
import type { Navigation } from '../main';
import { watchLeftovers, type Leftovers } from '../outbox';
import { mayEdit } from '../v2/messages';
import type { SheetInfo } from '../answers';
import type { Session } from '../api';
import { accountButton, albumButton, importButton } from './openers';
import { arrange, gather, needsAll, sortedNext, unarranged, type Shown, type SortKey } from './sorting';
import { switches } from './switches';

const pageSheets = 200;

export function showSheets(root: HTMLElement, session: Session, navigation: Navigation): () => void {
	const { token } = session;
	let gone = false;
	let trash = false;
	let sheets: SheetInfo[] = [];
	let books: BookInfo[] = [];
	let next: string | null = null;
	let loads = 0;
	let arrangement = unarranged;
	let busy = false;
	/** The user has asked for the next page. */
	let wantsMore = false;
	const ended = new AbortController();
	const search = h('input', { type: 'search', 'aria-label': t('sheets.search'), placeholder: t('sheets.search'), maxlength: 255 });
	search.addEventListener('input', () => {
		arrangement = { ...arrangement, search: search.value };
		readOn();
		draw();
	});
	const list = h('div', { class: 'list' }, h('p', { role: 'status' }, t('sheets.loading')));
	const unsent = h('p', { class: 'problem', role: 'alert' });
	const tabs = [button(t('sheets.current'), () => turn(false)), button(t('sheets.trash'), () => turn(true))];

	function turn(toTrash: boolean): void {
		trash = toTrash;
		draw();
	}

	/** Reads the shown part of the list again. more: reads the next page instead. */
	async function load(more = false): Promise<void> {
		const read: SheetInfo[] = more ? [...sheets] : [];
		const current = ++loads;
		busy = true;
		try {
			const reading = more ? Promise.resolve(books) : listBooks(token);
			reading.catch(() => {}); // the sheets may fail before
			let after = more ? next : null;
			do {
				const page = await listSheets(token, pageSheets, after);
				read.push(...page.sheets);
				after = page.next;
				if (current !== loads) return; // a later call shows the list
			} while (!more && after !== null && read.length < sheets.length);
			const known = await reading;
			if (current !== loads) return;
			sheets = read;
			books = known;
			next = after;
			busy = false;
			if (more) wantsMore = false;
			if (gone) return;
			readOn();
			draw();
		} catch (error) {
			if (gone || current !== loads) return;
			busy = wantsMore = false;
			if (isSignedOut(error)) navigation.signOut(true);
			else
				list.replaceChildren(
					h('p', { class: 'problem', role: 'alert' }, explain(error)),
					button(t('retry'), () => void load()),
				);
		}
	}

	/** Reads the next page if it is needed, after what is being read: a search and an order need all of them. */
	function readOn(): void {
		if (!busy && next !== null && (wantsMore || needsAll(arrangement))) void load(true);
	}

	function readMore(): void {
		wantsMore = true;
		readOn();
		draw();
	}

	function sort(key: SortKey): void {
		arrangement = sortedNext(arrangement, key);
		readOn();
		draw();
	}

	function column(key: SortKey, label: string): HTMLElement {
		const { by, descending } = arrangement;
		const order = by !== key ? 'none' : descending ? 'descending' : 'ascending';
		const mark = h('span', { 'aria-hidden': 'true' }, order === 'none' ? '' : descending ? ' ↓' : ' ↑');
		const header = button(label, () => sort(key), { class: 'link', 'data-sort': key });
		header.append(mark);
		return h('th', { scope: 'col', 'aria-sort': order }, header);
	}

	function draw(): void {
		tabs.forEach((tab, i) => tab.setAttribute('aria-pressed', String(trash === (i === 1))));
		const all = gather(sheets, books)
			.filter(({ sheet }) => sheet.isDeleted === trash)
			.map((entry): Shown => ({ ...entry, name: entry.book?.name || entry.sheet.name || t('sheets.unnamed'), owner: ownerOf(entry.sheet) }));
		const shown = arrange(all, arrangement, language);
		const further = next === null ? [] : busy ? [h('p', { role: 'status' }, t('sheets.loading'))] : [button(t('sheets.more'), readMore)];
		const refocus = focused();
		if (shown.length === 0) {
			list.replaceChildren(h('p', { class: 'empty' }, t(all.length > 0 ? 'sheets.notFound' : trash ? 'sheets.noTrash' : 'sheets.none')), ...further);
			refocus();
			return;
		}
		const head = h(
			'tr',
			{},
			column('name', t('sheets.name')),
			column('owner', t('sheets.owner')),
			column('used', t('sheets.used')),
			h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, t('sheets.actions'))),
		);
		list.replaceChildren(h('table', {}, h('thead', {}, head), h('tbody', {}, ...shown.map(row))), ...further);
		refocus();
	}

	/**
	 * Returns what puts the focus, if the list has it, where it is now: to the header, or into the row of the sheet. If the sheet
	 * is gone, into the row in its place; from the button for more sheets, to the first of them.
	 */
	function focused(): () => void {
		const active = document.activeElement as HTMLElement | null;
		if (!active || !list.contains(active)) return () => {};
		const { sort } = active.dataset;
		if (sort !== undefined) return () => list.querySelector<HTMLElement>(`[data-sort="${sort}"]`)?.focus();
		const rows = () => [...list.querySelectorAll<HTMLElement>('tbody tr')];
		const controls = (row?: HTMLElement) => [...(row?.querySelectorAll<HTMLElement>('a, button') ?? [])];
		const held = active.closest<HTMLElement>('tr') ?? undefined;
		const [place, at] = held ? [rows().indexOf(held), controls(held).indexOf(active)] : [rows().length, 0];
		return () => {
			const all = controls(rows().find(({ dataset }) => dataset.entry === held?.dataset.entry) ?? rows()[place] ?? rows().at(-1));
			(all[at] ?? all.at(-1) ?? search).focus();
		};
	}

	function ownerOf(sheet: SheetInfo): string {
		return sheet.isOwn ? t('sheets.me') : (sheet.owner ?? t('sheets.shared'));
	}

	function row({ sheet, name, owner, book, tabs }: Shown): HTMLElement {
		const open = book ? followed(() => void attempt(() => openBook(book))) : follow(sheet.fid);
		const link = h('a', { href: sheet.fid ? `/?id=${sheet.fid}` : '/', click: open }, bdi(name));
		// The page may have read some of the tabs only.
		const kind = book && h('span', { class: 'kind' }, next === null ? t('books.tabs', { count: tabs!.length }) : t('books.book'));
		const actions = book ? bookActions(book, name) : [];
		if (!book && sheet.isOwn && trash) {
			actions.push(recoverButton(name, () => recoverSheet(token, sheet.fid)));
			actions.push(purgeButton(name, t('sheets.purgeQuestion', { name }), () => deleteSheet(token, sheet.fid, true)));
		} else if (!book && sheet.isOwn) {
			actions.push(renameButton(t('sheets.newName'), name, sheet.name, (to) => renameSheet(token, sheet.fid, to)));
			actions.push(trashButton(name, () => deleteSheet(token, sheet.fid, false)));
		}
		return h(
			'tr',
			{ 'data-entry': book ? `book ${book.id}` : sheet.fid },
			h('td', {}, trash ? bdi(name) : link, kind && ' ', kind),
			h('td', {}, bdi(owner)),
			h('td', {}, h('time', { datetime: sheet.updatedAt }, formatTime(sheet.updatedAt))),
			h('td', { class: 'actions' }, ...actions),
		);
	}

	/** A click that opens no other window stays in this page. */
	const followed = (go: () => void) => (event: Event) => {
		const click = event as MouseEvent;
		if (click.ctrlKey || click.metaKey || click.shiftKey || click.button !== 0) return;
		event.preventDefault();
		go();
	};
	const follow = (fid: number) => followed(() => navigation.toSheet(fid));
	const toCalendars = followed(() => navigation.toCalendars());

	function bookActions({ id, role }: BookInfo, name: string): HTMLElement[] {
		const work = (which: 'trash' | 'recover' | 'purge') => () => changeBook(token, id, which);
		if (!mayEdit(role)) return [];
		const rename = renameButton(t('books.newName'), name, name, (to) => changeBook(token, id, 'rename', to));
		if (role === 'editor') return [rename];
		if (trash) return [recoverButton(name, work('recover')), purgeButton(name, t('books.purgeQuestion', { name }), work('purge'))];
		const share = () =>
			Promise.all([import('../book/share'), loadEditorTexts()]).then(
				([{ openBookShare }]) => document.querySelector('dialog[open]') || openBookShare(session, id, name),
				() => notify(t('error.unreachable'), 'problem'),
			);
		return [
			button(t('share.title'), () => void share(), { 'aria-label': t('books.shareOf', { name }), 'aria-haspopup': 'dialog' }),
			rename,
			trashButton(name, work('trash')),
		];
	}

	/** Opens the first tab. An editor's book without tabs gets one. */
	async function openBook({ id, role }: BookInfo): Promise<void> {
		const tab = await firstTab(token, id);
		if (gone) return;
		if (tab !== null) navigation.toSheet(tab);
		else if (mayEdit(role)) navigation.toSheet(await addTab(token, id, t('books.first')));
		else notify(t('books.empty'), 'problem');
	}

	function renameButton(label: string, name: string, before: string, work: (name: string) => Promise<void>): HTMLElement {
		const run = () =>
			askName(t('sheets.rename'), label, t('sheets.renameSave'), before, async (next) => {
				await work(next);
				void load();
			});
		return button(t('sheets.rename'), run, { 'aria-label': t('sheets.renameOf', { name }) });
	}

	async function change(work: () => Promise<void>, done: string): Promise<void> {
		if (await attempt(work)) notify(done);
		await load();
	}

	/** Runs work once a time. The second click of a double click is for nothing, as the list may have moved. */
	function once(work: () => Promise<void>): (event: Event) => void {
		let running = false;
		return (event) => {
			if (running || (event as MouseEvent).detail > 1) return;
			running = true;
			void work().finally(() => (running = false));
		};
	}

	function trashButton(name: string, work: () => Promise<void>): HTMLElement {
		const run = () => change(work, t('sheets.trashed', { name }));
		return button(t('sheets.toTrash'), once(run), { 'aria-label': t('sheets.toTrashOf', { name }) });
	}

	function recoverButton(name: string, work: () => Promise<void>): HTMLElement {
		const run = () => change(work, t('sheets.recovered', { name }));
		return button(t('sheets.recover'), once(run), { 'aria-label': t('sheets.recoverOf', { name }) });
	}

	function purgeButton(name: string, question: string, work: () => Promise<void>): HTMLElement {
		const run = async () => {
			if (!(await confirmDialog(t('sheets.purge'), question, t('sheets.purge'), true))) return;
			await change(work, t('sheets.purged', { name }));
		};
		return button(t('sheets.purge'), once(run), { class: 'danger', 'aria-label': t('sheets.purgeOf', { name }) });
	}

	const create = () =>
		askName(t('sheets.new'), t('sheets.newName'), t('sheets.create'), t('sheets.untitled'), async (name) => navigation.toSheet(await newSheet(token, name)));
	const createBook = () =>
		askName(t('books.new'), t('books.newName'), t('sheets.create'), t('sheets.untitled'), async (name) =>
			navigation.toSheet(await newBook(token, name, t('books.first'))),
		);

	/** Asks for a name, until the gateway accepts it. */
	function askName(title: string, label: string, yes: string, before: string, work: (name: string) => Promise<void>): void {
		const name = field(label, { name: 'name', required: true, value: before });
		const problem = h('p', { class: 'problem', role: 'alert' });
		const submit = h('button', { type: 'submit', class: 'primary' }, yes);
		const send = async (event: Event) => {
			event.preventDefault();
			submit.disabled = true;
			try {
				await work(name.input.value.trim());
				close();
			} catch (error) {
				problem.textContent = explain(error);
			} finally {
				submit.disabled = false;
			}
		};
		const { close } = openDialog(title, h('form', { submit: (event) => void send(event) }, name.row, problem, h('footer', {}, submit)));
		name.input.select();
	}

	/** Links to the sheets whose edits were refused. */
	function showRefused({ refused }: Leftovers): void {
		const fids = [...new Set(refused.map(({ sheet }) => sheet))];
		const links = fids.map((fid) => h('a', { href: `/?id=${fid}`, click: follow(fid) }, bdi(sheets.find((sheet) => sheet.fid === fid)?.name ?? String(fid))));
		if (links.length !== unsent.children.length)
			unsent.replaceChildren(...(links.length > 0 ? [t('sheets.unsent')] : []), ...links.flatMap((link) => [' ', link]));
	}

	const main = h('main', { class: 'sheets' });
	root.append(
		h(
			'header',
			{ class: 'bar' },
			h('p', { class: 'brand' }, h('span', { class: 'logo', 'aria-hidden': 'true' }), t('product')),
			h('span', { class: 'space' }),
			switches(),
			accountButton(session, navigation),
			button(t('signout'), () => navigation.signOut()),
		),
		main,
	);
	main.append(
		h('div', { class: 'heading' }, h('h1', {}, t('sheets.title')), button(t('books.new'), createBook), button(t('sheets.new'), create, { class: 'primary' })),
		h('div', { class: 'tabs', role: 'group', 'aria-label': t('sheets.title') }, ...tabs),
		h(
			'div',
			{ class: 'tools' },
			search,
			importButton(session, main, navigation, ended.signal),
			albumButton(session, (fid) => sheets.find((sheet) => sheet.fid === fid)?.name),
			h('a', { href: '/?calendar', click: toCalendars }, t('sheets.calendars')),
			h('a', { href: '/paste.html' }, t('sheets.paste')),
		),
		unsent,
		list,
	);
	void load();
	const endWatch = watchLeftovers(session, 0, showRefused);
	return () => {
		gone = true;
		ended.abort();
		endWatch();
	};
}
