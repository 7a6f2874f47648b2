// actions.ts - what editors do to the book of the open sheet. Loaded at the first use.
import { ApiError, ask, deleteSheet } from '../api';
import { tabOf } from '../csv';
import { attempt, button, confirmDialog, explain, h, notify, openDialog } from '../dom';
import { chooseRows } from '../files/choose';
import { t } from '../i18n';
import type { BarOptions } from './bar';
import type { Tab } from './book';
import { freeName, neighbour, placeBefore } from './tabs';

const colours = {
	red: '#c62828',
	orange: '#e07000',
	yellow: '#e8b800',
	green: '#2e8b3d',
	teal: '#00868b',
	blue: '#1d5fbf',
	purple: '#7b3fa8',
	pink: '#d0487e',
	grey: '#6b7280',
};

/** Names have no marks that separate directions of writing, and at most 255 characters. */
const copyName = (name: string) => (n: number) =>
	t(n === 1 ? 'tabs.copyName' : 'tabs.copyNumber', { name: [...name].slice(0, 200).join(''), n }).replace(/[\u2068\u2069]/g, '');

export class Actions {
	constructor(private readonly options: BarOptions) {}

	private get book() {
		return this.options.book;
	}

	private ask(method: string, path: string, body?: object): Promise<unknown> {
		return ask(method, path, this.options.session.token, body);
	}

	/** Changes the book, and shows what has become of it. */
	private async change(work: () => Promise<void>): Promise<boolean> {
		const done = await attempt(work);
		await this.book.read();
		return done;
	}

	/** Makes a tab with the first free name. A tab that this account does not see may have it, so others are tried, too. */
	private async make(book: number, body: object, name: (n: number) => string, from: number): Promise<number> {
		let { n } = freeName(this.book.tabs, from, name);
		for (let tries = 0; ; tries++, n++) {
			try {
				const { id } = (await this.ask('POST', `/v2/books/${book}/tabs`, { ...body, name: name(n) })) as { id: number };
				return id;
			} catch (error) {
				if (!(error instanceof ApiError) || error.code !== 'name_taken' || tries === 20) throw error;
			}
		}
	}

	/** The tab to the right of this one; null: there is none. */
	private after(beside: number): number | null {
		const { tabs } = this.book;
		return tabs[tabs.findIndex(({ sheet }) => sheet === beside) + 1]?.sheet ?? null;
	}

	/** A file becomes a tab to the right of this one. */
	async import(beside: number): Promise<void> {
		chooseRows(this.options.session, {
			request: (file) => {
				const { id, tabs } = this.book;
				const { name } = freeName(tabs, 1, (n) => (n === 1 ? file : `${[...file].slice(0, 200).join('')} ${n}`));
				return tabOf(name, id!, this.after(beside));
			},
			done: (made) => void this.book.read().then(() => this.options.open(made!)),
		});
	}

	/** A new tab to the right of this one. */
	async add(beside: number): Promise<void> {
		const { id, tabs } = this.book;
		const before = this.after(beside);
		let made = 0;
		const done = await this.change(async () => {
			made = await this.make(id!, { before }, (n) => t('tabs.newName', { n }), tabs.length + 1);
		});
		if (done) this.options.open(made);
	}

	/** A book with the open sheet, which is in none, and a second tab. */
	async begin(): Promise<void> {
		const { sheet } = this.book;
		const name = this.options.name();
		let made = 0;
		const done = await this.change(async () => {
			const { id } = (await this.ask('POST', '/v2/books', { name: name || t('sheets.unnamed') })) as { id: number };
			try {
				await this.ask('POST', `/v2/books/${id}/tabs`, { sheet });
			} catch (error) {
				// Nobody asked for an empty book.
				await this.ask('DELETE', `/v2/books/${id}`).then(
					() => this.ask('DELETE', `/v2/books/${id}?purge=true`),
					() => {},
				);
				throw error;
			}
			const before = name.toLowerCase();
			const second = (n: number) => t('tabs.newName', { n });
			made = await this.make(id, {}, second, second(2).toLowerCase() === before ? 3 : 2);
		});
		if (done) this.options.open(made);
	}

	async duplicate(tab: Tab): Promise<void> {
		let made = 0;
		await this.options.settled();
		const done = await this.change(async () => {
			made = await this.make(this.book.id!, { copy: tab.sheet }, copyName(tab.name), 1);
		});
		if (done) this.options.open(made);
	}

	private patch(sheet: number, body: object): Promise<boolean> {
		return this.change(async () => {
			await this.ask('PATCH', `/v2/books/${this.book.id}/tabs/${sheet}`, body);
		});
	}

	/** To the place `to` among the shown tabs. */
	async move(sheet: number, to: number): Promise<void> {
		await this.patch(sheet, { before: placeBefore(this.book.tabs, this.book.sheet, sheet, to) });
	}

	/** Hides the tab, or shows it again. */
	async hide({ sheet, hidden }: Tab): Promise<void> {
		const next = neighbour(this.book.tabs, sheet);
		const others = this.book.tabs.some((tab) => tab.sheet !== sheet && !tab.hidden);
		if (!hidden && !others) return notify(t('tabs.lastShown'), 'problem');
		if ((await this.patch(sheet, { hidden: !hidden })) && !hidden && sheet === this.book.sheet && next !== null) this.options.open(next);
	}

	async colour({ sheet, name, colour }: Tab): Promise<void> {
		const choose = (chosen: string | null) => () => {
			close();
			void this.patch(sheet, { colour: chosen });
		};
		const choices = Object.entries(colours).map(([id, value]) =>
			button('', choose(value), {
				class: 'swatch',
				style: `--tab: ${value}`,
				'aria-label': t(`tabs.colour.${id}`),
				title: t(`tabs.colour.${id}`),
				'aria-pressed': String(value === colour),
			}),
		);
		const other = h('input', { type: 'color', 'aria-label': t('tabs.colour.other'), title: t('tabs.colour.other'), value: colour ?? '#808080' });
		other.addEventListener('change', () => choose(other.value)());
		const { close } = openDialog(
			t('tabs.colourOf', { name }),
			h('div', { class: 'swatches' }, ...choices, other),
			h('footer', {}, button(t('tabs.colour.none'), choose(null), { 'aria-pressed': String(colour === null) })),
		);
	}

	async trash(tab: Tab): Promise<void> {
		const { sheet, name } = tab;
		if (!(await confirmDialog(t('tabs.trash'), t('tabs.trashQuestion', { name }), t('tabs.trash'), true))) return;
		const next = neighbour(this.book.tabs, sheet);
		if (sheet === this.book.sheet) await this.options.settled();
		try {
			await deleteSheet(this.options.session.token, sheet, false);
		} catch (error) {
			return notify(explain(error), 'problem');
		}
		notify(t('sheets.trashed', { name }));
		await this.book.read();
		if (sheet !== this.book.sheet) return;
		if (next === null) this.options.toList();
		else this.options.open(next);
	}
}
