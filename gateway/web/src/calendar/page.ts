// page.ts - the page of calendars (/?calendar, or /?calendar=ID from a sheet): what takes place in all calendars of the account, beside
// and over each other, and the forms that change it. The sheets of the calendars have the truth (docs/design/calendar.md).
import { createCalendar, DayGrid, destroyCalendar, Interaction, List, TimeGrid, type Calendar as View } from '@event-calendar/core';
import '@event-calendar/core/index.css';
import { isSignedOut, button, confirmDialog, explain, field, h, notify, openDialog } from '../dom';
import type { Session } from '../api';
import { language, t } from '../i18n';
import type { Leaving, Navigation } from '../main';
import { accountButton } from '../pages/openers';
import { switches } from '../pages/switches';
import { calendarRows } from './side';
import { Choices, invitations, views, type View as ViewName } from './choices';
import { colourOf, textOn } from './colours';
import { askScope, openEntry, spanOf, type EntryContext } from './entry';
import { CalendarApi, canWrite, type Calendar, type Entry, type State } from './http';
import { Live } from './live';
import { SmallMonth } from './month';
import { movedCells, type Span } from './span';
import { addDays, browserZone, dateOf, localTime } from './times';
import './calendar.css';

type ShownEvent = View.Event;
type Dropped = View.EventDropInfo | View.EventResizeInfo;

/** Others' edits in a row are shown together. */
const soonMs = 150;
/** Entries follow the cells some milliseconds later. The page asks for them again after this time, and doubles it each time. */
const againMs = 100;
const mostAgain = 7;
/** After a failure. */
const retryMs = 5000;
const narrow = matchMedia('(max-width: 48rem)');

const keyOf = ({ calendar, uid, instance }: Entry): string => `${calendar} ${uid} ${instance}`;
const entryOf = ({ extendedProps }: ShownEvent): Entry => extendedProps.entry as Entry;

/** The first day of the week, from Sunday. */
function firstDay(): number {
	const locale = new Intl.Locale(navigator.language) as Intl.Locale & { weekInfo?: { firstDay: number }; getWeekInfo?(): { firstDay: number } };
	return (locale.getWeekInfo?.() ?? locale.weekInfo)?.firstDay === 7 ? 0 : 1;
}

/** chosen: a calendar that is shown; day: the one that is shown first, of a link that leads to it. */
export function showCalendars(root: HTMLElement, session: Session, chosen: number | null, day: string | null, navigation: Navigation): Leaving {
	const api = new CalendarApi(session);
	const choices = new Choices(session.uid);
	let calendars: Calendar[] = [];
	let gone = false;
	let unsaved = 0;
	/** Up to which seq others have edited each calendar, as heard. */
	const heard = new Map<number, number>();
	let shown: View.EventInput[] = [];
	let fetches = 0;
	let timer: ReturnType<typeof setTimeout> | undefined;
	let hasInvitations = false;
	/** Something was changed since all entries were there. */
	let changing = false;
	/** The list of calendars has been read. */
	let known = false;
	let connected = true;
	let loaded = true;

	// ---- what is shown ----

	const status = h('span', { class: 'status', role: 'status' });
	const list = h('ul', { class: 'calendar-list' });
	const title = h('h2', { 'aria-live': 'polite' });
	const place = h('div', { class: 'calendar-view' });
	const create = button(t('calendar.newCalendar'), () => createNew());
	const add = button(t('calendar.new'), () => void openEntry(context, null, nextHour()), { class: 'primary' });
	const viewButtons = views.map((view) => button(t(`calendar.view.${view}`), () => setView(view), { 'data-view': view }));
	const context: EntryContext = {
		api,
		calendars: () => calendars,
		changed,
		setUnsaved: (count) => (unsaved = count),
	};

	function showStatus(): void {
		const text = connected && loaded ? '' : t('calendar.away');
		if (status.textContent !== text) status.textContent = text;
	}

	/** The next full hour of the shown day, or of today. */
	function nextHour(): Span {
		const now = new Date();
		const day = localTime(now, browserZone).slice(0, 10);
		const hour = Math.min(now.getHours() + 1, 22);
		const at = (of: number) => `${day} ${String(of).padStart(2, '0')}:00`;
		return { start: at(hour), end: at(hour + 1), allDay: false };
	}

	async function load(): Promise<void> {
		try {
			calendars = await api.calendars();
			if (gone) return;
			known = true;
			showList();
			live.follow(calendars.filter(({ id }) => choices.isShown(id)).map(({ id }) => id));
			refresh(0);
		} catch (error) {
			failed(error);
		}
	}

	function failed(error: unknown): void {
		if (gone) return;
		if (isSignedOut(error)) return navigation.signOut(true);
		loaded = false;
		showStatus();
		clearTimeout(timer);
		timer = setTimeout(() => void load(), retryMs);
	}

	function showList(): void {
		const events = {
			changed() {
				showList();
				live.follow(calendars.filter(({ id }) => choices.isShown(id)).map(({ id }) => id));
				refresh(0);
			},
			setColour: (calendar: Calendar, colour: string) => void setColour(calendar, colour),
			toSheet: (id: number) => navigation.toSheet(id),
			seqOf: (id: number) => heard.get(id) ?? 0,
		};
		const active = document.activeElement;
		const at = [...list.querySelectorAll<HTMLElement>('input, summary, select, a, button')].indexOf(active as HTMLElement);
		const open = list.querySelector<HTMLElement>('details[open]')?.closest('li')?.dataset.calendar;
		list.replaceChildren(...calendarRows(session, calendars, hasInvitations, choices, events));
		if (open !== undefined) list.querySelector(`[data-calendar="${open}"] details`)?.setAttribute('open', '');
		if (at >= 0) list.querySelectorAll<HTMLElement>('input, summary, select, a, button')[at]?.focus();
		add.disabled = !calendars.some(canWrite);
		none.hidden = calendars.length > 0;
	}

	async function setColour(calendar: Calendar, colour: string): Promise<void> {
		try {
			await api.setColour(calendar.id, colour);
			calendar.colour = colour;
			refresh(0);
		} catch (error) {
			notify(explain(error), 'problem');
		}
		if (!gone) showList();
	}

	// ---- entries ----

	function changed(): void {
		changing = true;
		refresh(0);
	}

	/** Asks for the entries again; those that are shown stay meanwhile. */
	function refresh(wait: number): void {
		clearTimeout(timer);
		timer = setTimeout(() => {
			view.refetchEvents();
			void month.refresh();
		}, wait);
	}

	/** Whether the entries have the edits that were heard of; after a change, also that they are there until `end`. */
	function isComplete({ id, seq, expandedTo }: State, end: Date): boolean {
		return seq >= (heard.get(id) ?? 0) && !(changing && expandedTo !== null && new Date(expandedTo) < end);
	}

	async function fetchEvents({ start, end }: View.FetchInfo): Promise<View.EventInput[]> {
		if (!known) return shown;
		const number = ++fetches;
		const ids = calendars.filter(({ id }) => choices.isShown(id)).map(({ id }) => id);
		try {
			for (let again = 0; ; again++) {
				const { entries, agenda, states } = await api.entries(start, end, ids);
				if (number !== fetches || gone) return shown;
				shown = eventsOf(entries, agenda);
				loaded = true;
				showStatus();
				if (again === mostAgain || states.every((state) => isComplete(state, end))) {
					changing = false;
					return shown;
				}
				await new Promise((done) => setTimeout(done, againMs * 2 ** again));
				if (number !== fetches || gone) return shown;
			}
		} catch (error) {
			if (number === fetches) failed(error);
			return shown;
		}
	}

	function eventsOf(entries: Entry[], agenda: Entry[]): View.EventInput[] {
		const own = new Map(agenda.map((entry) => [keyOf(entry), entry.answer]));
		const listed = new Map(calendars.map((calendar) => [calendar.id, calendar]));
		const colourOfId = (id: number) => colourOf(listed.get(id) ?? { id, colour: null });
		const invited = agenda.filter(({ calendar }) => !listed.has(calendar));
		if (invited.length > 0 && !hasInvitations) {
			hasInvitations = true;
			showList();
		}
		const of = (entry: Entry, colour: string): View.EventInput => {
			const answer = entry.answer ?? (entry.persons ? own.get(keyOf(entry)) : undefined);
			const writes = canWrite(calendars.find(({ id }) => id === entry.calendar));
			return {
				id: keyOf(entry),
				// In EventCalendar, dates are local to the browser.
				start: entry.allDay ? entry.start : new Date(entry.start),
				end: entry.allDay ? entry.end : new Date(entry.end),
				allDay: entry.allDay,
				title: entry.title || t('calendar.untitled'),
				editable: writes,
				backgroundColor: colour,
				textColor: textOn(colour),
				classNames: answer === undefined ? [] : [`is-${answer}`],
				extendedProps: { entry: answer === undefined ? entry : { ...entry, answer } },
			};
		};
		return [
			...entries.map((entry) => of(entry, colourOfId(entry.calendar))),
			...(choices.isShown(invitations) ? invited.map((entry) => of(entry, colourOfId(invitations))) : []),
		];
	}

	function content({ event, timeText }: View.EventContentInfo): View.Content {
		const entry = entryOf(event);
		const time = event.allDay ? [] : [h('time', { class: 'ec-event-time', datetime: entry.start }, timeText)];
		const answer = entry.answer === undefined || entry.answer === 'accepted' ? '' : t(`calendar.is.${entry.answer}`);
		return {
			domNodes: [
				...time,
				h('span', { class: 'ec-event-title' }, String(event.title), answer !== '' && h('span', { class: 'visually-hidden' }, ` (${answer})`)),
				...(entry.place === '' ? [] : [h('span', { class: 'place' }, entry.place)]),
			],
		};
	}

	// ---- changes ----

	/** The time of an event that was dragged, in the zone of its task. */
	function droppedSpan({ start, end, allDay }: ShownEvent, zone: string): Span {
		if (allDay) return { start: dateOf(start), end: dateOf(end), allDay };
		return { start: localTime(start, zone), end: localTime(end, zone), allDay };
	}

	async function dropped(info: Dropped): Promise<void> {
		const entry = entryOf(info.event);
		try {
			const task = await api.describe(entry);
			const scope = task.repeats ? await askScope(t('calendar.move')) : 'all';
			if (scope === null) return info.revert();
			await api.change(entry, movedCells(task, spanOf(entry), droppedSpan(info.event, entry.zone), scope), scope, task);
			notify(t('calendar.saved'));
			changing = true;
		} catch (error) {
			info.revert();
			notify(explain(error), 'problem');
		}
		refresh(0);
	}

	function createNew(): void {
		const name = field(t('calendar.name'), { name: 'name', required: true, autocomplete: 'off' });
		const problem = h('p', { class: 'problem', role: 'alert' });
		const submit = h('button', { type: 'submit', class: 'primary' }, t('calendar.create'));
		const send = async (event: Event) => {
			event.preventDefault();
			submit.disabled = true;
			try {
				const id = await api.create(name.input.value.trim(), browserZone);
				choices.show(id, true);
				close();
				await load();
			} catch (error) {
				problem.textContent = explain(error);
			} finally {
				submit.disabled = false;
			}
		};
		const about = h('p', { class: 'hint' }, t('calendar.about'));
		const { close } = openDialog(
			t('calendar.newCalendar'),
			h('form', { submit: (event) => void send(event) }, name.row, about, problem, h('footer', {}, submit)),
		);
	}

	/** A sheet whose calendar was asked for is shown; if it is none yet, the user is asked. */
	async function choose(id: number): Promise<void> {
		choices.show(id, true);
		await load();
		if (gone || day !== null || calendars.some((calendar) => calendar.id === id) || !loaded) return;
		if (!(await confirmDialog(t('calendar.make'), t('calendar.makeQuestion'), t('calendar.make')))) return;
		try {
			await api.make(id);
			await load();
		} catch (error) {
			notify(explain(error), 'problem');
		}
	}

	function setView(name: ViewName): void {
		choices.view = name;
		view.setOption('view', name);
	}

	// ---- the page ----

	const month = new SmallMonth(api, firstDay(), (date) => {
		view.gotoDate(date);
		if (narrow.matches) side.open = false;
	});
	const none = h('p', { class: 'empty', hidden: true }, t('calendar.none'));
	const live = new Live(session, {
		heard(id, seq) {
			const before = heard.get(id);
			heard.set(id, Math.max(seq, before ?? 0));
			if (seq <= (before ?? 0)) return;
			changing ||= before !== undefined;
			refresh(soonMs);
		},
		connected(all) {
			connected = all;
			showStatus();
			if (all) refresh(0);
		},
		ended: () => void load(),
	});
	const side = h(
		'details',
		{ class: 'side', open: !narrow.matches },
		h('summary', {}, t('calendar.calendars')),
		h('div', { class: 'side-body' }, month.element, h('section', { 'aria-label': t('calendar.calendars') }, list, none, create)),
	);
	const tools = h(
		'div',
		{ class: 'calendar-tools' },
		button(t('calendar.today'), () => view.gotoDate(new Date())),
		h(
			'span',
			{ class: 'steps' },
			button('‹', () => view.prev(), { 'aria-label': t('calendar.before') }),
			button('›', () => view.next(), { 'aria-label': t('calendar.after') }),
		),
		title,
		h('div', { class: 'views', role: 'group', 'aria-label': t('calendar.view') }, ...viewButtons),
		add,
	);
	const back = h('a', { class: 'back', href: '/' }, h('span', { class: 'logo', 'aria-hidden': 'true' }), t('calendar.back'));
	back.addEventListener('click', (event) => {
		if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
		event.preventDefault();
		navigation.toList();
	});
	root.append(
		h(
			'header',
			{ class: 'bar' },
			back,
			h('h1', {}, t('calendar.calendars')),
			status,
			h('span', { class: 'space' }),
			switches(),
			accountButton(session, navigation),
			button(t('signout'), () => navigation.signOut()),
		),
		h(
			'main',
			{ class: 'calendars' },
			side,
			h('section', { class: 'calendar-main', 'aria-label': t('calendar.view') }, tools, h('h3', { class: 'visually-hidden' }, t('calendar.view')), place),
		),
	);

	const view: View = createCalendar(place, [DayGrid, TimeGrid, List, Interaction], {
		view: choices.view ?? (narrow.matches ? 'listMonth' : 'timeGridWeek'),
		...(day !== null && { date: day }),
		locale: language,
		firstDay: firstDay() as 0 | 1,
		headerToolbar: { start: '', center: '', end: '' },
		height: '100%',
		scrollTime: '07:00:00',
		nowIndicator: true,
		selectable: true,
		dayMaxEvents: true,
		lazyFetching: false,
		snapDuration: '00:15',
		eventTimeFormat: { hour: 'numeric', minute: '2-digit' },
		moreLinkContent: ({ num }) => t('calendar.more', { count: num }),
		noEventsContent: t('calendar.noEntries'),
		allDayContent: t('calendar.allDay'),
		buttonText: (text) => ({ ...text, close: t('close') }),
		eventContent: content,
		eventSources: [{ events: fetchEvents }],
		eventClick: ({ event }) => void openEntry(context, entryOf(event), spanOf(entryOf(event))),
		eventDrop: (info) => void dropped(info),
		eventResize: (info) => void dropped(info),
		select({ start, end, allDay }) {
			const span = allDay
				? { start: dateOf(start), end: dateOf(end), allDay }
				: { start: localTime(start, browserZone), end: localTime(end, browserZone), allDay };
			view.unselect();
			if (calendars.some(canWrite)) void openEntry(context, null, span);
		},
		dateClick({ date, allDay }) {
			const hour = new Date(date.getTime() + 3600000);
			const day = dateOf(date);
			const span = allDay ? { start: day, end: addDays(day, 1), allDay } : { start: localTime(date, browserZone), end: localTime(hour, browserZone), allDay };
			if (calendars.some(canWrite)) void openEntry(context, null, span);
		},
		datesSet({ view: now }) {
			title.textContent = String(now.title);
			// This can be called before there is a view.
			requestAnimationFrame(() => {
				if (gone) return;
				// Not the month of the first day shown: a week can begin in the month before.
				month.show(dateOf(view.getOption('date') as Date));
				// EventCalendar names the days of a month in elements that have no role.
				place.querySelectorAll('.ec-col-head span[aria-label]').forEach((name) => name.setAttribute('role', 'img'));
			});
			for (const of of viewButtons) of.setAttribute('aria-pressed', String(of.dataset.view === now.type));
		},
	});
	const wake = () => {
		if (document.hidden) return;
		live.wake();
		refresh(0);
	};
	document.addEventListener('visibilitychange', wake);
	if (chosen === null) void load();
	else void choose(chosen);
	return {
		unsaved: () => unsaved,
		end() {
			gone = true;
			clearTimeout(timer);
			document.removeEventListener('visibilitychange', wake);
			live.end();
			void destroyCalendar(view);
		},
	};
}
