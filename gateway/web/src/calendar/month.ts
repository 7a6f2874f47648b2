// month.ts - the small month beside the calendar, with a red dot on each day on which the account has events.
import { button, h } from '../dom';
import { language, t } from '../i18n';
import type { CalendarApi } from './http';
import { addDays, browserZone, dateOf, wall } from './times';

const monthOf = (date: string): string => date.slice(0, 7);
const shown = (date: string, options: Intl.DateTimeFormatOptions): string =>
	new Intl.DateTimeFormat(language, { ...options, timeZone: 'UTC' }).format(wall(date));

export class SmallMonth {
	readonly element = h('div', { class: 'small-month' });
	private month = monthOf(dateOf(new Date()));
	private dots = new Set<string>();
	/** Of the last request: an earlier answer is not shown. */
	private asked = 0;

	constructor(
		private readonly api: CalendarApi,
		private readonly firstDay: number,
		private readonly choose: (date: string) => void,
	) {
		this.draw();
	}

	/** Shows the month of a date. */
	show(date: string): void {
		if (monthOf(date) === this.month) return;
		this.month = monthOf(date);
		this.dots.clear();
		this.draw();
		void this.refresh();
	}

	/** Asks for the dots again. Without an answer, the old ones stay. */
	async refresh(): Promise<void> {
		const asked = ++this.asked;
		try {
			const dots = await this.api.dots(this.month, browserZone);
			if (asked !== this.asked) return;
			this.dots = dots;
			this.draw();
		} catch {
			// The page tells that there is no connection.
		}
	}

	private draw(): void {
		const first = `${this.month}-01`;
		const next = monthOf(addDays(first, 31));
		const weekday = (new Date(wall(first)).getUTCDay() - this.firstDay + 7) % 7;
		const today = dateOf(new Date());
		const focused = this.element.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.date : undefined;
		const rows: HTMLElement[] = [];
		for (let date = addDays(first, -weekday); monthOf(date) <= this.month && date < `${next}-01`;) {
			const row = h('tr');
			for (let i = 0; i < 7; i++, date = addDays(date, 1)) row.append(h('td', {}, monthOf(date) === this.month && this.day(date, today)));
			rows.push(row);
		}
		const head = Array.from({ length: 7 }, (_, i) => {
			const date = addDays('2023-01-01', this.firstDay + i); // a Sunday
			return h('th', { scope: 'col' }, h('abbr', { title: shown(date, { weekday: 'long' }) }, shown(date, { weekday: 'narrow' })));
		});
		const go = (days: number, label: string, sign: string, name: string) =>
			button(sign, () => this.show(addDays(first, days)), { class: 'icon', 'aria-label': label, 'data-date': name });
		this.element.replaceChildren(
			h(
				'div',
				{ class: 'month-head' },
				go(-1, t('calendar.monthBefore'), '‹', 'before'),
				h('span', { 'aria-live': 'polite' }, shown(first, { month: 'long', year: 'numeric' })),
				go(31, t('calendar.monthAfter'), '›', 'after'),
			),
			h('table', {}, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows)),
		);
		if (focused) this.element.querySelector<HTMLElement>(`[data-date="${focused}"]`)?.focus();
	}

	private day(date: string, today: string): HTMLElement {
		const full = shown(date, { dateStyle: 'full' });
		const hasDot = this.dots.has(date);
		const label = hasDot ? t('calendar.dayWithEvents', { date: full }) : full;
		const attributes = { 'data-date': date, 'data-dot': hasDot, 'aria-label': label, 'aria-current': date === today ? 'date' : undefined };
		return button(String(Number(date.slice(8))), () => this.choose(date), attributes);
	}
}
