// find.ts - the drawer that finds and replaces. It is loaded at its first use.
//
// It keeps no results that could become old: the next cell is looked for from the selected one, in what the grid has now, and a cell
// is read again before its content is replaced.
import { cellName, named, rangeName } from '../content';
import { button, explain, field, h, notify } from '../dom';
import { t } from '../i18n';
import { Finder, isFormula } from '../sheet/find';
import { isTooLong } from '../v2/formula';
import { moveCommands, structureMutations } from '../view/structure';
import { reveal, select, selectionOf, type GridParts } from '../view/parts';
import type { CellEdit, Place, Range } from '../v2/messages';
import { openDrawer, type EditorContext } from './drawer';

export interface FindSheet {
	parts: GridParts;
	contentAt(place: Place): string;
	/** What a cell shows, which takes longer to find out. */
	shownAt(place: Place): string;
	canEdit(): boolean;
	/** Who is editing a cell; null: nobody. */
	holderOf(place: Place): string | null;
	/** Cells of the sheet that have not been read; null: all have. */
	unread(): Range | null;
	/** Writes the cells as one step of undo. */
	write(edits: CellEdit[]): void;
}

const sliceMs = 12;
const waitMs = 300;
const structural = new Set([...Object.values(structureMutations), ...Object.keys(moveCommands)]);

const isAfter = (a: Place, b: Place) => a.row > b.row || (a.row === b.row && a.col > b.col);

/** Lets the page do other things. */
const pause = () => new Promise<void>((done) => setTimeout(done, 0));

export class FindDrawer {
	private readonly text = field(t('find.text'), { type: 'search', autocomplete: 'off', name: 'find' });
	private readonly by = field(t('find.by'), { type: 'text', autocomplete: 'off', name: 'replace' });
	private readonly matchCase = h('input', { type: 'checkbox' });
	private readonly whole = h('input', { type: 'checkbox' });
	private readonly formulas = h('input', { type: 'checkbox' });
	private readonly count = h('p', { role: 'status', class: 'find-count' });
	private readonly unread = h('p', { class: 'find-unread' });
	private readonly buttons: HTMLButtonElement[];
	private readonly role = h('p', {}, t('blocked.role'));
	private isOpen: () => boolean = () => false;
	/** The searches and replacements of the user, one after another. */
	private work = Promise.resolve();
	/** Counts the counts: an older one ends. */
	private counts = 0;
	/** Rows or columns have moved, so often. */
	private moves = 0;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private listening: { dispose(): void } | undefined;

	constructor(
		private readonly context: EditorContext,
		private readonly sheet: FindSheet,
	) {
		this.buttons = [
			button(t('find.replace'), () => this.replace(), { name: 'replace' }),
			button(t('find.replaceAll'), () => this.replaceAll(), { name: 'replace-all' }),
		];
		for (const input of [this.text.input, this.matchCase, this.whole, this.formulas]) input.addEventListener('input', () => this.countSoon(waitMs / 3));
		this.text.input.addEventListener('keydown', (event) => {
			if (event.key !== 'Enter' || event.isComposing) return;
			event.preventDefault();
			this.go(event.shiftKey);
		});
		this.by.input.addEventListener('keydown', (event) => {
			if (event.key === 'Enter' && !event.isComposing) this.replace();
		});
	}

	/** Opens the drawer, with the text that is selected in the sheet if none was looked for. */
	open(replace: boolean): void {
		if (!this.isOpen()) {
			const { body, isOpen } = openDrawer(this.context, 'find', t('find.title'));
			this.isOpen = isOpen;
			const option = (input: HTMLInputElement, text: string) => h('label', { class: 'option' }, input, text);
			body.append(
				this.text.row,
				option(this.matchCase, t('find.case')),
				option(this.whole, t('find.whole')),
				option(this.formulas, t('find.formulas')),
				h(
					'div',
					{ class: 'find-buttons' },
					button(t('find.next'), () => this.go(false), { class: 'primary' }),
					button(t('find.previous'), () => this.go(true)),
				),
				this.count,
				this.unread,
				this.by.row,
				h('div', { class: 'find-buttons' }, ...this.buttons),
				this.role,
			);
			this.listening?.dispose();
			this.listening = this.sheet.parts.commands.onCommandExecuted(({ id }) => {
				if (!this.isOpen()) return this.listening?.dispose();
				if (structural.has(id)) this.moves++;
				if (id.startsWith('sheet.mutation.')) this.countSoon(waitMs);
				if (id === 'sheet.operation.set-selections') this.showPosition();
			});
		}
		this.showRole();
		this.countSoon(0);
		const { input } = replace ? this.by : this.text;
		input.focus();
		input.select();
	}

	private showRole(): void {
		const canEdit = this.sheet.canEdit();
		this.role.hidden = canEdit;
		for (const control of [...this.buttons, this.by.input]) control.disabled = !canEdit;
	}

	private get finder(): Finder | null {
		const { value } = this.text.input;
		return value === '' ? null : new Finder({ text: value, matchCase: this.matchCase.checked, whole: this.whole.checked, formulas: this.formulas.checked });
	}

	private finds(finder: Finder, place: Place): boolean {
		return finder.finds(this.sheet.contentAt(place), () => this.sheet.shownAt(place));
	}

	/** Adds a search or replacement, for the text in the field now. */
	private ask(run: (finder: Finder) => Promise<void>): void {
		const { finder } = this;
		if (finder) this.work = this.work.then(() => run(finder)).catch((error) => notify(explain(error), 'problem'));
	}

	/** The cells that are found, row by row; null if it is not wanted any more. What rows that move meanwhile leave behind is searched again. */
	private async scan(finder: Finder, isWanted = this.isOpen): Promise<Place[] | null> {
		for (;;) {
			const { moves } = this;
			const found: Place[] = [];
			let begun = performance.now();
			const rows = this.sheet.parts.sheet.getCellMatrix().getMatrix();
			for (const row of Object.keys(rows)) {
				for (const col of Object.keys(rows[Number(row)] ?? {})) {
					const place = { row: Number(row), col: Number(col) };
					if (this.finds(finder, place)) found.push(place);
				}
				if (performance.now() - begun < sliceMs) continue;
				await pause();
				if (!isWanted()) return null;
				if (moves !== this.moves) break;
				begun = performance.now();
			}
			if (moves === this.moves) return found;
		}
	}

	private countSoon(ms: number): void {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => void this.showCount(), ms);
	}

	private found: Place[] = [];

	private async showCount(): Promise<void> {
		if (!this.isOpen()) return;
		this.showRole();
		const unread = this.sheet.unread();
		this.unread.textContent = unread ? t('find.unread', { range: rangeName(unread) }) : '';
		const { finder } = this;
		if (!finder) {
			this.counts++;
			this.found = [];
			this.count.textContent = '';
			return;
		}
		const count = ++this.counts;
		const found = await this.scan(finder, () => this.isOpen() && count === this.counts);
		if (!found) return;
		this.found = found;
		this.showPosition();
	}

	private showPosition(): void {
		const { value } = this.text.input;
		const at = selectionOf(this.sheet.parts);
		const n = at ? this.found.findIndex(({ row, col }) => row === at.row && col === at.col) + 1 : 0;
		const count = this.found.length;
		const text = value === '' ? '' : count === 0 ? t('find.none') : n > 0 ? t('find.at', { n, count }) : t('find.count', { count });
		if (this.count.textContent !== text) this.count.textContent = text;
	}

	/** Selects the next cell, or the previous one; behind the last one the first. */
	private go(back: boolean): void {
		this.ask((finder) => this.goTo(finder, back));
	}

	private async goTo(finder: Finder, back: boolean): Promise<void> {
		const found = await this.scan(finder);
		if (!found) return;
		this.found = found;
		const from = selectionOf(this.sheet.parts) ?? { row: 0, col: -1 };
		const next = back ? (found.filter((place) => isAfter(from, place)).at(-1) ?? found.at(-1)) : (found.find((place) => isAfter(place, from)) ?? found[0]);
		if (next) {
			select(this.sheet.parts, { startRow: next.row, endRow: next.row, startColumn: next.col, endColumn: next.col }, next);
			reveal(this.sheet.parts, next);
		}
		this.showPosition();
	}

	/** What a cell is to hold; a text says why it is left alone. */
	private edit(finder: Finder, by: string, place: Place): CellEdit | 'formulas' | 'formats' | 'locked' | 'long' {
		const content = this.sheet.contentAt(place);
		const after = finder.replaced(content, by);
		if (after === null) return isFormula(content) ? 'formulas' : 'formats';
		if (isTooLong(after)) return 'long';
		return this.sheet.holderOf(place) ? 'locked' : { ...place, content: after };
	}

	/** Replaces the text in the selected cell if it is found there, and goes to the next one. */
	private replace(): void {
		const by = this.by.input.value;
		this.ask(async (finder) => {
			const at = selectionOf(this.sheet.parts);
			if (!at) return;
			if (!this.sheet.canEdit()) return notify(t('blocked.role'), 'problem');
			const place = { row: at.row, col: at.col };
			if (this.finds(finder, place)) {
				const edit = this.edit(finder, by, place);
				if (typeof edit === 'string') notify(t('find.left', { reasons: t(`find.left.${edit}`, { cells: cellName(place.row, place.col) }) }), 'problem');
				else this.sheet.write([edit]);
			}
			await this.goTo(finder, false);
		});
	}

	private replaceAll(): void {
		const by = this.by.input.value;
		this.ask((finder) => this.replaceIn(finder, by));
	}

	private async replaceIn(finder: Finder, by: string): Promise<void> {
		const found = await this.scan(finder);
		if (!found) return;
		if (!this.sheet.canEdit()) return notify(t('blocked.role'), 'problem');
		const edits: CellEdit[] = [];
		const left = new Map<string, string[]>();
		for (const place of found) {
			const edit = this.edit(finder, by, place);
			if (typeof edit !== 'string') edits.push(edit);
			else {
				if (!left.has(edit)) left.set(edit, []);
				left.get(edit)!.push(cellName(place.row, place.col));
			}
		}
		if (edits.length > 0) this.sheet.write(edits);
		notify(t('find.replaced', { count: edits.length }));
		const reasons = [...left].map(([reason, cells]) => t(`find.left.${reason}`, { cells: named(cells) }));
		if (reasons.length > 0) notify(t('find.left', { reasons: reasons.join(' ') }), 'problem');
		const unread = this.sheet.unread();
		if (unread) notify(t('find.unread', { range: rangeName(unread) }), 'problem');
		this.countSoon(0);
	}
}
