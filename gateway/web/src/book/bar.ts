// bar.ts - the tabs below the grid: choosing, renaming in place, dragging, and the buttons of menus. actions.ts changes the book.
import { renameSheet, type Session } from '../api';
import { bdi, button, explain, h, notify } from '../dom';
import { t } from '../i18n';
import { mayEdit, type Role } from '../v2/messages';
import type { Actions } from './actions';
import type { Book, Tab } from './book';
import { closeMenu, openMenu } from './menu';
import { nextTab, placeBefore, shownTabs } from './tabs';

export interface BarOptions {
	session: Session;
	book: Book;
	/** Of the open sheet. */
	name(): string;
	/** Shows another sheet in this page. */
	open(sheet: number): void;
	toList(): void;
	/** Resolves when the edits of the open sheet are saved, or cannot be soon. */
	settled(): Promise<void>;
}

/** A pointer that is moved farther drags. */
const dragPixels = 6;
/** How the bar was scrolled when the sheet before was left, and whether its tabs had the focus. */
let scrolled = 0;
let hadFocus = false;
/** A tab that was clicked once, until it is shown, and whether it was pressed again: then its name is typed. The page has no bar meanwhile. */
let opening: { sheet: number; again: boolean; listeners: AbortController } | null = null;

function openedByClick(sheet: number | null): void {
	opening?.listeners.abort();
	opening = sheet === null ? null : { sheet, again: false, listeners: new AbortController() };
	const { signal } = opening?.listeners ?? {};
	const press = ({ detail }: MouseEvent) => {
		// Only the second press of a double click has 2, wherever it comes to.
		if (opening && detail === 2) opening.again = true;
		else openedByClick(null);
	};
	if (opening) window.addEventListener('mousedown', press, { capture: true, signal });
}

export class TabBar {
	private readonly list = h('div', { class: 'tab-list', role: 'tablist' });
	private readonly all = button('', () => this.openAll(), { class: 'all-tabs', 'aria-label': t('tabs.all'), title: t('tabs.all'), 'aria-haspopup': 'menu' });
	private readonly menu = button('', () => this.openMenuOf(this.options.book.sheet, this.menu), {
		class: 'tab-actions',
		'aria-label': t('tabs.menu'),
		title: t('tabs.menu'),
		'aria-haspopup': 'menu',
	});
	private readonly plus = button('', () => void this.add(), { class: 'add-tab' });
	readonly element = h('div', { class: 'tab-bar' }, this.all, this.list, this.menu, this.plus);
	private role: Role | null = null;
	/** A name is being typed, or a tab dragged: what changes is drawn after that. */
	private busy = false;
	private drawn = false;
	/** The click that follows is a part of a drag. */
	private dropped = false;
	/** Tabs that look as they should stay in the document: one may have been pressed. */
	private readonly elements = new Map<number, { looks: string; element: HTMLElement }>();
	private gone = false;
	private readonly listeners = new AbortController();
	private readonly resized = new ResizeObserver(() => this.scrollTo(this.elementOf(this.options.book.sheet)));
	private loaded: Promise<Actions> | null = null;

	constructor(private readonly options: BarOptions) {
		for (const [one, sign] of [
			[this.all, '☰'],
			[this.menu, '⋮'],
			[this.plus, '+'],
		] as const)
			one.append(h('span', { 'aria-hidden': 'true' }, sign));
		options.book.onChange(() => this.draw());
		this.list.addEventListener('keydown', (event) => this.key(event));
		this.list.addEventListener('pointerdown', (event) => this.press(event));
		this.list.addEventListener('contextmenu', (event) => {
			const tab = this.tabAt(event.target);
			if (!tab) return;
			event.preventDefault();
			this.openMenuOf(tab.sheet, this.elementOf(tab.sheet)!, event.detail === 0 && event.clientX === 0 ? undefined : { x: event.clientX });
		});
		this.list.addEventListener('wheel', ({ deltaX, deltaY }) => (this.list.scrollLeft += deltaX || deltaY), { passive: true });
		document.addEventListener('keydown', (event) => this.pageKey(event), { capture: true, signal: this.listeners.signal });
		// Elements to the right of the bar are added later and make it narrower.
		this.resized.observe(this.list);
		this.draw();
	}

	/** The user's role on the open sheet. */
	allow(role: Role): void {
		this.role = role;
		this.draw();
	}

	end(): void {
		scrolled = this.list.scrollLeft;
		this.gone = true;
		this.listeners.abort();
		this.resized.disconnect();
		closeMenu();
		this.options.book.end();
	}

	private get canEdit(): boolean {
		return mayEdit(this.options.book.role);
	}

	/** The module that changes books, which is loaded at its first use. */
	private actions(): Promise<Actions> {
		this.loaded ??= import('./actions').then(({ Actions }) => new Actions(this.options));
		this.loaded.catch(() => {
			this.loaded = null;
			notify(t('error.unreachable'), 'problem');
		});
		return this.loaded;
	}

	// ---- drawing ----

	private draw(): void {
		if (this.busy || this.gone) return;
		const { book } = this.options;
		const shown = shownTabs(book.tabs, book.sheet);
		const inBook = book.id !== null;
		// The owner of a sheet that is in no book can make a book of it.
		const adds = inBook ? this.canEdit : book.isKnown && this.role === 'owner';
		const focused = this.tabAt(document.activeElement)?.sheet;
		const label = t(inBook ? 'tabs.new' : 'tabs.begin');
		this.element.hidden = !inBook && !adds;
		this.all.hidden = this.list.hidden = !inBook;
		this.menu.hidden = !book.current || this.itemsFor(book.current).length === 0;
		this.plus.hidden = !adds;
		this.plus.title = label;
		this.plus.setAttribute('aria-label', label);
		this.list.setAttribute('aria-label', book.name === null ? t('tabs.title') : t('tabs.titleOf', { name: book.name }));
		this.place(shown.map((tab) => this.tabElement(tab)));
		const first = this.elementOf(book.sheet) ?? (this.list.firstElementChild as HTMLElement | null);
		if (first) first.tabIndex = 0;
		if (focused !== undefined) this.focus(this.elementOf(focused) ?? first);
		if (!this.drawn && first && this.element.isConnected) this.show(first);
	}

	private place(elements: HTMLElement[]): void {
		const { list } = this;
		for (const old of [...list.children]) if (!elements.includes(old as HTMLElement)) old.remove();
		elements.forEach((element, i) => {
			if (list.children[i] !== element) list.insertBefore(element, list.children[i] ?? null);
			element.tabIndex = -1;
		});
	}

	/** Called when the bar is in the page. */
	shown(): void {
		const { sheet } = this.options.book;
		const first = this.elementOf(sheet);
		if (first) this.show(first);
		if (opening?.sheet === sheet && opening.again) this.rename(sheet);
		openedByClick(null);
	}

	private show(current: HTMLElement): void {
		this.drawn = true;
		this.list.scrollLeft = scrolled;
		this.scrollTo(current);
		if (hadFocus) this.focus(current);
		hadFocus = false;
	}

	private scrollTo(tab: HTMLElement | null): void {
		const { list } = this;
		if (!tab) return;
		const [start, end] = [tab.offsetLeft - list.offsetLeft, tab.offsetLeft - list.offsetLeft + tab.offsetWidth];
		if (start < list.scrollLeft) list.scrollLeft = start - 16;
		else if (end > list.scrollLeft + list.clientWidth) list.scrollLeft = end - list.clientWidth + 16;
	}

	private tabElement(tab: Tab): HTMLElement {
		const { sheet, name, colour, hidden } = tab;
		const current = sheet === this.options.book.sheet;
		const looks = JSON.stringify([name, colour, hidden, current]);
		const old = this.elements.get(sheet);
		if (old?.looks === looks) return old.element;
		const element = h(
			'button',
			{
				type: 'button',
				role: 'tab',
				class: colour ? 'tab coloured' : 'tab',
				'aria-selected': String(current),
				'data-sheet': sheet,
				title: name,
				style: colour ? `--tab: ${colour}` : undefined,
				click: (event) => this.click(sheet, (event as MouseEvent).detail),
			},
			bdi(name || t('sheets.unnamed')),
			hidden ? h('span', { class: 'note' }, ` ${t('tabs.hidden')}`) : null,
		);
		this.elements.set(sheet, { looks, element });
		return element;
	}

	private elementOf(sheet: number): HTMLElement | null {
		return this.list.querySelector(`[data-sheet="${sheet}"]`);
	}

	private tabAt(target: EventTarget | null): Tab | undefined {
		const element = target instanceof Element && this.list.contains(target) ? target.closest<HTMLElement>('.tab') : null;
		return element ? this.options.book.tabs.find(({ sheet }) => sheet === Number(element.dataset.sheet)) : undefined;
	}

	private focus(tab: HTMLElement | null): void {
		if (!tab) return;
		for (const one of this.list.querySelectorAll<HTMLElement>('.tab')) one.tabIndex = one === tab ? 0 : -1;
		tab.focus({ preventScroll: true });
		this.scrollTo(tab);
	}

	// ---- choosing ----

	private click(sheet: number, clicks: number): void {
		if (this.dropped) return;
		// The first click of two may have been that which opened the tab.
		if (sheet !== this.options.book.sheet) {
			if (clicks < 2 || sheet !== opening?.sheet) this.open(sheet, clicks === 0);
		} else if (clicks === 2) this.rename(sheet);
	}

	/** byKey: the tabs keep the focus. */
	private open(sheet: number, byKey = false): void {
		hadFocus = byKey;
		openedByClick(byKey ? null : sheet);
		this.options.open(sheet);
	}

	private key(event: KeyboardEvent): void {
		const tab = this.tabAt(event.target);
		if (!tab || event.altKey || event.ctrlKey || event.metaKey) return;
		const all = [...this.list.querySelectorAll<HTMLElement>('.tab')];
		const at = all.indexOf(event.target as HTMLElement);
		const toRight = getComputedStyle(this.list).direction === 'rtl' ? -1 : 1;
		const to = { ArrowRight: at + toRight, ArrowLeft: at - toRight, Home: 0, End: all.length - 1 }[event.key];
		if (to !== undefined) this.focus(all[(to + all.length) % all.length]!);
		else if (event.key === 'F2') this.rename(tab.sheet);
		else return;
		event.preventDefault();
		event.stopPropagation();
	}

	/** Ctrl+Page Up and Down, with Shift for browsers that keep these keys to themselves. */
	private pageKey(event: KeyboardEvent): void {
		const step = { PageDown: 1 as const, PageUp: -1 as const }[event.key];
		if (!step || !event.ctrlKey || event.altKey || event.metaKey || document.querySelector('dialog[open]')) return;
		const { book } = this.options;
		if (book.id === null) return;
		event.preventDefault();
		event.stopPropagation();
		const next = nextTab(book.tabs, book.sheet, step);
		if (next !== null) this.open(next, this.list.contains(document.activeElement));
	}

	// ---- menus ----

	private openAll(): void {
		const { book } = this.options;
		const items = book.tabs.map((tab) => ({
			text: tab.name || t('sheets.unnamed'),
			name: true,
			checked: tab.sheet === book.sheet,
			colour: tab.colour,
			note: tab.hidden ? t('tabs.hidden') : undefined,
			run: () => tab.sheet !== book.sheet && this.open(tab.sheet),
		}));
		if (items.length > 0) openMenu(this.all, t('tabs.all'), items);
	}

	private openMenuOf(sheet: number, anchor: HTMLElement, at?: { x: number }): void {
		const tab = this.options.book.tabs.find((one) => one.sheet === sheet);
		const items = tab ? this.itemsFor(tab) : [];
		if (tab && items.length > 0) openMenu(anchor, t('tabs.menuOf', { name: tab.name }), items, at);
	}

	private itemsFor(tab: Tab): { text: string; run(): void; disabled?: boolean }[] {
		const { book } = this.options;
		const run = (work: (actions: Actions) => Promise<void>) => () => void this.actions().then(work, () => {});
		const at = shownTabs(book.tabs, book.sheet).findIndex(({ sheet }) => sheet === tab.sheet);
		const last = shownTabs(book.tabs, book.sheet).length - 1;
		const { sheet } = tab;
		return [
			...(mayEdit(tab.role) ? [{ text: t('tabs.rename'), run: () => this.rename(sheet) }] : []),
			...(this.canEdit
				? [
						{ text: t('tabs.newBeside'), run: run((actions) => actions.add(sheet)) },
						{ text: t('tabs.import'), run: run((actions) => actions.import(sheet)) },
						{ text: t('tabs.duplicate'), run: run((actions) => actions.duplicate(tab)) },
						{ text: t('tabs.colour'), run: run((actions) => actions.colour(tab)) },
						{ text: t(tab.hidden ? 'tabs.show' : 'tabs.hide'), run: run((actions) => actions.hide(tab)) },
						{ text: t('tabs.left'), run: run((actions) => actions.move(sheet, at - 1)), disabled: at <= 0 },
						{ text: t('tabs.right'), run: run((actions) => actions.move(sheet, at + 1)), disabled: at < 0 || at === last },
					]
				: []),
			...(tab.role === 'owner' ? [{ text: t('tabs.trash'), run: run((actions) => actions.trash(tab)) }] : []),
		];
	}

	private async add(): Promise<void> {
		const actions = await this.actions().catch(() => null);
		this.plus.disabled = true;
		await (this.options.book.id === null ? actions?.begin() : actions?.add(this.options.book.sheet));
		this.plus.disabled = false;
	}

	// ---- renaming in place ----

	rename(sheet: number): void {
		const tab = this.options.book.tabs.find((one) => one.sheet === sheet);
		const element = this.elementOf(sheet);
		if (!tab || !element || !mayEdit(tab.role) || this.busy) return;
		this.busy = true;
		const input = h('input', { class: 'tab-name', dir: 'auto', 'aria-label': t('tabs.name'), maxlength: 255 });
		const problem = h('p', { class: 'tab-problem', role: 'alert' });
		let ended = false;
		const size = () => (input.style.width = `${Math.min(30, Math.max(8, input.value.length + 2))}ch`);
		const end = (focus: boolean) => {
			ended = true;
			this.busy = false;
			problem.remove();
			this.draw();
			if (focus) this.focus(this.elementOf(sheet));
		};
		const tell = (text: string) => {
			const box = input.getBoundingClientRect();
			problem.textContent = text;
			problem.style.left = `${Math.max(4, Math.min(box.left, innerWidth - problem.offsetWidth - 4))}px`;
			problem.style.bottom = `${innerHeight - box.top + 4}px`;
		};
		const save = async (byKey: boolean) => {
			const name = input.value.trim();
			if (ended || input.readOnly) return;
			if (name === tab.name) return end(byKey);
			input.readOnly = true;
			try {
				await renameSheet(this.options.session.token, sheet, name);
				await this.options.book.read();
				end(byKey);
			} catch (error) {
				input.readOnly = false;
				if (this.gone) return;
				// A user who has moved the focus elsewhere gets a notice; the focus stays there.
				if (!byKey && document.activeElement !== input) {
					notify(explain(error), 'problem');
					end(false);
				} else tell(explain(error));
			}
		};
		input.value = tab.name;
		input.addEventListener('input', () => {
			size();
			problem.textContent = '';
		});
		input.addEventListener('blur', () => void save(false));
		input.addEventListener('keydown', (event) => {
			event.stopPropagation();
			if (event.isComposing || (event.key !== 'Enter' && event.key !== 'Escape')) return;
			event.preventDefault();
			if (event.key === 'Enter') void save(true);
			else end(true);
		});
		size();
		element.replaceWith(input);
		this.element.append(problem);
		input.focus({ preventScroll: true });
		this.scrollTo(input);
		input.select();
	}

	// ---- dragging, by a mouse or a pen: a finger scrolls the bar ----

	private press(event: PointerEvent): void {
		const tab = this.tabAt(event.target);
		if (!tab || event.button !== 0 || event.pointerType === 'touch' || !this.canEdit || this.busy) return;
		const ended = new AbortController();
		const { signal } = ended;
		const element = this.elementOf(tab.sheet)!;
		let to: number | null = null;
		const end = () => {
			ended.abort();
			if (to === null) return;
			element.classList.remove('dragged');
			this.list.querySelectorAll('.drop-before, .drop-behind').forEach((one) => one.classList.remove('drop-before', 'drop-behind'));
			this.busy = false;
			this.draw();
		};
		const move = ({ clientX }: PointerEvent) => {
			if (to === null && Math.abs(clientX - event.clientX) < dragPixels) return;
			this.busy = true;
			element.classList.add('dragged');
			const others = [...this.list.querySelectorAll<HTMLElement>('.tab')].filter((one) => one !== element);
			const middles = others.map((one) => one.getBoundingClientRect()).map(({ left, width }) => left + width / 2);
			to = middles.filter((middle) => middle < clientX).length;
			others.forEach((one, i) => one.classList.toggle('drop-before', i === to));
			others.at(-1)?.classList.toggle('drop-behind', to === others.length);
			const box = this.list.getBoundingClientRect();
			if (clientX < box.left + 24) this.list.scrollLeft -= 12;
			else if (clientX > box.right - 24) this.list.scrollLeft += 12;
		};
		const drop = () => {
			const place = to;
			const { book } = this.options;
			const all = shownTabs(book.tabs, book.sheet).map(({ sheet }) => sheet);
			end();
			if (place === null) return;
			this.dropped = true;
			setTimeout(() => (this.dropped = false));
			if (placeBefore(book.tabs, book.sheet, tab.sheet, place) !== (all[all.indexOf(tab.sheet) + 1] ?? null))
				void this.actions().then(
					(actions) => actions.move(tab.sheet, place),
					() => {},
				);
		};
		window.addEventListener('pointermove', move, { signal });
		window.addEventListener('pointerup', drop, { signal });
		window.addEventListener('pointercancel', end, { signal });
		window.addEventListener('keydown', (key) => key.key === 'Escape' && end(), { capture: true, signal });
	}
}
