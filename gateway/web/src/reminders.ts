// reminders.ts - reminders of calendars: cards in a corner of each page of the account, until they are dismissed in one of them. The page
// asks for them when it opens, when the gateway says that they have changed, and, since not each page has a WebSocket, once a minute.
import { ask, type Session } from './api';
import { button, explain, h, notify } from './dom';
import { language, t } from './i18n';
import type { Navigation } from './main';

const pollMs = 60000;
/** Spreads the requests: many pages are notified at once, and a page once for each of its connections. */
const spreadMs = 300;
const narrow = matchMedia('(max-width: 40rem)');

interface Reminder {
	id: number;
	calendar: number;
	/** A time in UTC, or of whole days a date; the end is the day after the last one. */
	start: string;
	end: string;
	allDay: boolean;
	title: string;
	place: string;
}

function timeText({ start, end, allDay }: Reminder): string {
	const day = { weekday: 'short', day: 'numeric', month: 'short' } as const;
	const format = new Intl.DateTimeFormat(language, allDay ? { ...day, timeZone: 'UTC' } : { ...day, hour: 'numeric', minute: '2-digit' });
	const from = new Date(start);
	const to = new Date(new Date(end).getTime() - (allDay ? 86400000 : 0));
	return format.formatRange(from, to > from ? to : from);
}

/** The day on which it begins, for the user. */
function dayOf({ start, allDay }: Reminder): string {
	const at = new Date(start);
	const two = (n: number) => String(n).padStart(2, '0');
	return allDay ? start : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

let look: (() => void) | null = null;

/** The gateway says that they have changed. */
export const lookForReminders = (): void => look?.();

/** Shows the reminders of the account. Returns what ends that. */
export function watchReminders(session: Session, navigation: Navigation): () => void {
	const cards = new Map<number, HTMLElement>();
	const dismissed = new Set<number>();
	const list = h('ul');
	const more = h('span');
	const foot = h(
		'footer',
		{ hidden: true },
		more,
		button(t('reminders.dismissAll'), () => dismiss(reminders)),
	);
	const area = h('section', { class: 'reminders', 'aria-label': t('reminders.title'), 'aria-live': 'polite', hidden: true }, list, foot);
	let reminders: Reminder[] = [];
	let asking = false;
	let again = false;
	let soon: ReturnType<typeof setTimeout> | undefined;

	function card(reminder: Reminder): HTMLElement {
		const title = reminder.title || t('reminders.untitled');
		const day = dayOf(reminder);
		const link = h('a', { href: `/?calendar=${reminder.calendar}&day=${day}`, dir: 'auto' }, title);
		link.addEventListener('click', (event) => {
			if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
			event.preventDefault();
			navigation.toCalendars(reminder.calendar, day);
		});
		return h(
			'li',
			{ 'data-reminder': reminder.id },
			link,
			h('time', { datetime: reminder.start }, timeText(reminder)),
			reminder.place !== '' && h('span', { class: 'place', dir: 'auto' }, reminder.place),
			button(t('reminders.dismiss'), () => dismiss([reminder]), { 'aria-label': t('reminders.dismissOne', { title }) }),
		);
	}

	/** Cards that stay are not touched, so that they keep the focus and are not read out again. */
	function draw(): void {
		const most = narrow.matches ? 1 : 3;
		const shown = reminders.slice(0, most);
		const held = area.contains(document.activeElement);
		for (const [id, element] of cards)
			if (!shown.some((reminder) => reminder.id === id)) {
				element.remove();
				cards.delete(id);
			}
		shown.forEach((reminder, i) => {
			if (cards.has(reminder.id)) return;
			const element = card(reminder);
			cards.set(reminder.id, element);
			list.insertBefore(element, list.children[i] ?? null);
		});
		more.textContent = reminders.length > most ? t('reminders.more', { count: reminders.length - most }) : '';
		foot.hidden = reminders.length < 2;
		area.hidden = reminders.length === 0;
		if (held && !area.contains(document.activeElement)) list.querySelector('button')?.focus();
	}

	async function read(): Promise<void> {
		again = asking;
		if (asking) return;
		asking = true;
		try {
			const answer = (await ask('GET', '/v2/reminders', session.token)) as { reminders: Reminder[] };
			reminders = answer.reminders.filter(({ id }) => !dismissed.has(id));
			draw();
		} catch {
			// The next time.
		}
		asking = false;
		if (again) void read();
	}

	function dismiss(those: Reminder[]): void {
		const ids = those.map(({ id }) => id);
		for (const id of ids) dismissed.add(id);
		reminders = reminders.filter(({ id }) => !dismissed.has(id));
		draw();
		ask('DELETE', `/v2/reminders?ids=${ids.join()}`, session.token).catch((error: unknown) => {
			for (const id of ids) dismissed.delete(id);
			notify(explain(error), 'problem');
			void read();
		});
	}

	const poll = () => {
		if (!document.hidden) void read();
	};
	const own = () => {
		clearTimeout(soon);
		soon = setTimeout(() => void read(), Math.random() * spreadMs);
	};
	const timer = setInterval(poll, pollMs);
	document.addEventListener('visibilitychange', poll);
	narrow.addEventListener('change', draw);
	document.body.append(area);
	look = own;
	void read();
	return () => {
		clearInterval(timer);
		clearTimeout(soon);
		document.removeEventListener('visibilitychange', poll);
		narrow.removeEventListener('change', draw);
		area.remove();
		if (look === own) look = null;
	};
}
