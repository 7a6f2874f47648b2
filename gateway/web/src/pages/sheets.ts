// sheets.ts - the list of own and shared sheets, the last used first, and the trash.
import { account, deleteSheet, newSheet, recoverSheet, renameSheet } from '../api';
import { attempt, bdi, button, confirmDialog, explain, field, h, isSignedOut, notify, openDialog } from '../dom';
import { formatTime, language, t } from '../i18n';
import type { Navigation } from '../main';
import { watchLeftovers, type Leftovers } from '../outbox';
import type { SheetInfo } from '../answers';
import type { Session } from '../api';
import { accountButton, albumButton, importButton } from './openers';
import { arrange, needsAll, sortedNext, unarranged, type Shown, type SortKey } from './sorting';
import { switches } from './switches';

const pageSheets = 200;

export function isOwn(sheet: SheetInfo, session: Session): boolean {
	return sheet.owner === session.username || sheet.owner === session.uid;
}

export function showSheets(root: HTMLElement, session: Session, navigation: Navigation): () => void {
	let gone = false;
	let trash = false;
	let sheets: SheetInfo[] = [];
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
			let after = more ? next : null;
			do {
				const page = await account(session.token, pageSheets, after);
				read.push(...page.sheets);
				after = page.next;
				if (current !== loads) return; // a later call shows the list
			} while (!more && after !== null && read.length < sheets.length);
			sheets = read;
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
		const all = sheets
			.filter((sheet) => sheet.isDeleted === trash)
			.map((sheet): Shown => ({ sheet, name: sheet.name || t('sheets.unnamed'), owner: ownerOf(sheet) }));
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
			const all = controls(rows().find(({ dataset }) => dataset.fid === held?.dataset.fid) ?? rows()[place] ?? rows().at(-1));
			(all[at] ?? all.at(-1) ?? search).focus();
		};
	}

	function ownerOf(sheet: SheetInfo): string {
		return isOwn(sheet, session) ? t('sheets.me') : typeof sheet.owner === 'string' ? sheet.owner : t('sheets.shared');
	}

	function row({ sheet, name, owner }: Shown): HTMLElement {
		const own = isOwn(sheet, session);
		const link = h('a', { href: `/?id=${sheet.fid}`, click: follow(sheet.fid) }, bdi(name));
		const actions = own ? (trash ? [recoverButton(sheet, name), purgeButton(sheet, name)] : [renameButton(sheet, name), trashButton(sheet, name)]) : [];
		return h(
			'tr',
			{ 'data-fid': sheet.fid },
			h('td', {}, trash ? bdi(name) : link),
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

	function renameButton(sheet: SheetInfo, name: string): HTMLElement {
		const run = () =>
			askName(t('sheets.rename'), t('sheets.renameSave'), sheet.name, async (next) => {
				await renameSheet(session.token, sheet.fid, next);
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

	function trashButton(sheet: SheetInfo, name: string): HTMLElement {
		const run = () => change(() => deleteSheet(session.token, sheet.fid, false), t('sheets.trashed', { name }));
		return button(t('sheets.toTrash'), once(run), { 'aria-label': t('sheets.toTrashOf', { name }) });
	}

	function recoverButton(sheet: SheetInfo, name: string): HTMLElement {
		const run = () => change(() => recoverSheet(session.token, sheet.fid), t('sheets.recovered', { name }));
		return button(t('sheets.recover'), once(run), { 'aria-label': t('sheets.recoverOf', { name }) });
	}

	function purgeButton(sheet: SheetInfo, name: string): HTMLElement {
		const run = async () => {
			if (!(await confirmDialog(t('sheets.purge'), t('sheets.purgeQuestion', { name }), t('sheets.purge'), true))) return;
			await change(() => deleteSheet(session.token, sheet.fid, true), t('sheets.purged', { name }));
		};
		return button(t('sheets.purge'), once(run), { class: 'danger', 'aria-label': t('sheets.purgeOf', { name }) });
	}

	function create(): void {
		askName(t('sheets.new'), t('sheets.create'), t('sheets.untitled'), async (name) => navigation.toSheet(await newSheet(session.token, name)));
	}

	/** Asks for the name of a sheet, until the gateway accepts it. */
	function askName(title: string, yes: string, before: string, work: (name: string) => Promise<void>): void {
		const name = field(t('sheets.newName'), { name: 'name', required: true, value: before });
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
		h('div', { class: 'heading' }, h('h1', {}, t('sheets.title')), button(t('sheets.new'), create, { class: 'primary' })),
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
