// drawer.ts - the drawer of tags: in how many rows of the selected column each item of its lists is, where, and which of them the
// selected cell has. Loaded at its first use.
//
// The separator of a column is its property `list`, so that all have the same. Counting takes time that grows with the rows, in
// slices, after each change of the cells.
import { cellName, columnName, rangeName } from '../content';
import { button, field, h, notify } from '../dom';
import { t } from '../i18n';
import { openDrawer, type EditorContext } from '../pages/drawer';
import { isFormula } from '../sheet/find';
import { isTooLong } from '../v2/formula';
import { wholeSheet } from '../sheet/arrange';
import type { CellEdit, Place, PropertyEdit, Range } from '../v2/messages';
import { reveal, select, selectionOf, type GridParts } from '../view/parts';
import { changed, itemsOf } from './items';
import './tags.css';

export interface TagSheet {
	parts: GridParts;
	contentAt(place: Place): string;
	canEdit(): boolean;
	/** Who is editing a cell; null: nobody. */
	holderOf(place: Place): string | null;
	/** Cells of the sheet that have not been read; null: all have. */
	unread(): Range | null;
	/** Whether cells have not been read, which are requested then. */
	lacks(ranges: Range[]): string | null;
	property(target: Omit<PropertyEdit, 'value'>): unknown;
	write(edits: CellEdit[], properties?: PropertyEdit[]): void;
}

const sliceMs = 12;
const waitMs = 300;
const mostTags = 500;
const separators = [',', ';', '|', '/', ' '];
const usualSeparator = ',';

const pause = () => new Promise<void>((done) => setTimeout(done, 0));
const listOf = (col: number) => ({ ...wholeSheet, col, toCol: col, key: 'list' });

export class TagDrawer {
	private readonly separator = h('select', { id: 'tags-separator', change: () => this.setSeparator() });
	private readonly list = h('ul', { class: 'tags' });
	private readonly about = h('p', { role: 'status' });
	private readonly cell = h('p');
	private readonly more = h('p');
	private readonly added = field(t('tags.new'), { name: 'tag', autocomplete: 'off' });
	private readonly add = h('button', { type: 'submit' }, t('tags.add'));
	private isOpen: () => boolean = () => false;
	private listening: { dispose(): void } | undefined;
	private timer: ReturnType<typeof setTimeout> | undefined;
	/** Counts the counts: an older one ends. */
	private counts = 0;
	/** In how many rows each tag is, of `counted`. */
	private tags = new Map<string, number>();
	private col = -1;

	constructor(
		private readonly context: EditorContext,
		private readonly sheet: TagSheet,
	) {}

	open(): void {
		if (!this.isOpen()) {
			const { body, isOpen } = openDrawer(this.context, 'tags', t('tags.title'));
			this.isOpen = isOpen;
			const submit = (event: Event) => {
				event.preventDefault();
				const tag = this.added.input.value.trim();
				if (tag !== '') this.set(tag, true);
				this.added.input.value = '';
			};
			body.append(
				this.about,
				h('div', { class: 'field' }, h('label', { for: this.separator.id }, t('tags.separator')), this.separator),
				this.cell,
				this.list,
				this.more,
				h('form', { class: 'inline', submit }, this.added.row, this.add),
			);
			this.listening?.dispose();
			this.listening = this.sheet.parts.commands.onCommandExecuted(({ id }) => {
				if (!this.isOpen()) return this.listening?.dispose();
				if (id.startsWith('sheet.mutation.')) this.countSoon(waitMs);
				if (id === 'sheet.operation.set-selections') this.follow();
			});
		}
		this.col = -1;
		this.follow();
		this.separator.focus();
	}

	private get place(): Place {
		const at = selectionOf(this.sheet.parts);
		return { row: at?.row ?? 0, col: at?.col ?? 0 };
	}

	private separatorOf(col: number): string {
		const value = this.sheet.property(listOf(col));
		return typeof value === 'string' && value !== '' && !value.includes('"') ? value : usualSeparator;
	}

	/** Shows the selected cell; if it is in another column, that column. */
	private follow(): void {
		const { col } = this.place;
		if (col !== this.col) {
			this.col = col;
			this.tags.clear();
			this.list.replaceChildren();
			this.countSoon(0);
		}
		this.showCell();
	}

	private setSeparator(): void {
		if (this.sheet.canEdit()) this.sheet.write([], [{ ...listOf(this.col), value: this.separator.value === usualSeparator ? null : this.separator.value }]);
		this.countSoon(0);
	}

	private showSeparator(): void {
		const current = this.separatorOf(this.col);
		const all = [...new Set([...separators, current])];
		const name = (separator: string) => (separator === ' ' ? t('tags.blank') : separator);
		if (this.separator.options.length !== all.length || this.separator.value !== current)
			this.separator.replaceChildren(...all.map((value) => h('option', { value, selected: value === current }, name(value))));
		this.separator.disabled = !this.sheet.canEdit();
	}

	private countSoon(ms: number): void {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => void this.count(), ms);
	}

	/** The rows of the column whose lists have a tag, or any; null if it is not wanted any more. */
	private async scan(visit: (row: number, items: Set<string>) => void, isWanted: () => boolean): Promise<boolean> {
		const { col, sheet } = this;
		const separator = this.separatorOf(col);
		let begun = performance.now();
		for (const key of Object.keys(sheet.parts.sheet.getCellMatrix().getMatrix())) {
			const row = Number(key);
			const content = sheet.contentAt({ row, col });
			if (content !== '' && !isFormula(content)) visit(row, new Set(itemsOf(content, separator).filter((item) => item !== '')));
			if (performance.now() - begun < sliceMs) continue;
			await pause();
			if (!isWanted()) return false;
			begun = performance.now();
		}
		return true;
	}

	private async count(): Promise<void> {
		if (!this.isOpen()) return;
		this.showSeparator();
		const current = ++this.counts;
		const tags = new Map<string, number>();
		const done = await this.scan(
			(_, items) => items.forEach((item) => tags.set(item, (tags.get(item) ?? 0) + 1)),
			() => this.isOpen() && current === this.counts,
		);
		if (!done) return;
		this.tags = new Map([...tags].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)));
		this.show();
	}

	private show(): void {
		const unread = this.sheet.unread();
		const column = columnName(this.col);
		const text = this.tags.size === 0 ? t('tags.none', { column }) : t('tags.count', { column, count: this.tags.size });
		const all = unread ? `${text} ${t('find.unread', { range: rangeName(unread) })}` : text;
		if (this.about.textContent !== all) this.about.textContent = all;
		const focused = this.list.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
		const [tag, kind] = [focused?.closest('li')?.dataset.tag, focused?.tagName];
		const shown = [...this.tags].slice(0, mostTags);
		this.list.replaceChildren(...shown.map(([name, rows]) => this.itemOf(name, rows)));
		this.more.textContent = this.tags.size > mostTags ? t('tags.more', { count: this.tags.size - mostTags }) : '';
		if (kind)
			[...this.list.children]
				.find((item) => (item as HTMLElement).dataset.tag === tag)
				?.querySelector<HTMLElement>(kind)
				?.focus();
		this.showCell();
	}

	private itemOf(name: string, rows: number): HTMLElement {
		const box = h('input', { type: 'checkbox', 'aria-label': t('tags.has', { tag: name }), change: () => this.set(name, box.checked) });
		const go = button(name, () => void this.goTo(name), { class: 'tag', dir: 'auto', title: t('tags.next', { tag: name }) });
		return h('li', { 'data-tag': name }, box, go, h('span', { class: 'rows', 'aria-label': t('tags.rows', { count: rows }), role: 'note' }, String(rows)));
	}

	/** Shows which tags the selected cell has. */
	private showCell(): void {
		const { place } = this;
		const content = this.sheet.contentAt(place);
		const held = new Set(itemsOf(content, this.separatorOf(place.col)));
		const can = this.sheet.canEdit() && !isFormula(content);
		this.cell.textContent = t('tags.cell', { cell: cellName(place.row, place.col) });
		for (const item of this.list.children) {
			const box = item.querySelector('input')!;
			box.checked = held.has((item as HTMLElement).dataset.tag!);
			box.disabled = !can;
		}
		this.added.input.disabled = this.add.disabled = !can;
	}

	/** Adds a tag to the selected cell, or removes it. */
	private set(tag: string, isIn: boolean): void {
		const { place } = this;
		const before = this.sheet.contentAt(place);
		const content = changed(before, this.separatorOf(place.col), tag, isIn);
		const holder = this.sheet.holderOf(place);
		if (!this.sheet.canEdit()) notify(t('blocked.role'), 'problem');
		else if (this.sheet.lacks([{ ...place, toRow: place.row, toCol: place.col }])) notify(t('blocked.unread'), 'problem');
		else if (holder) notify(t('lock.held', { name: holder, cell: cellName(place.row, place.col) }), 'problem');
		else if (isTooLong(content)) notify(t('refused.size', { cell: cellName(place.row, place.col) }), 'problem');
		else if (content !== before) this.sheet.write([{ ...place, content }]);
		this.showCell();
		this.countSoon(0);
	}

	/** Selects the next cell of the column that has a tag; behind the last one the first. */
	private async goTo(tag: string): Promise<void> {
		const { row: from, col } = this.place;
		let [first, next] = [-1, -1];
		const done = await this.scan(
			(row, items) => {
				if (!items.has(tag)) return;
				if (first < 0) first = row;
				if (next < 0 && row > from) next = row;
			},
			() => this.isOpen() && col === this.col,
		);
		const row = next < 0 ? first : next;
		if (!done || row < 0) return;
		select(this.sheet.parts, { startRow: row, endRow: row, startColumn: col, endColumn: col }, { row, col });
		reveal(this.sheet.parts, { row, col });
	}
}
