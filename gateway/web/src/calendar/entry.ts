// entry.ts - the dialog of an entry: what it is, its answers, and the form that makes or changes it. The form shows a refusal at
// its field, and keeps what was typed until it is saved or closed.
import { ApiError } from '../api';
import { button, confirmDialog, explain, h, notify, openDialog } from '../dom';
import { language, t, tOr } from '../i18n';
import { area, check, choice, input, type Field } from './fields';
import { canWrite, seenTexts, type Answer, type Calendar, type CalendarApi, type Cells, type Entry, type Scope, type Task } from './http';
import { repeatFields } from './repeats';
import { addDays, browserZone, localTime, wall } from './times';
import { movedCells, type Span } from './span';

export interface EntryContext {
	api: CalendarApi;
	calendars(): Calendar[];
	/** Something has been changed. */
	changed(): void;
	/** The dialog has a form with changes: 1; otherwise 0. */
	setUnsaved(count: number): void;
}

export const spanOf = ({ start, end, allDay, zone }: Entry): Span =>
	allDay ? { start, end, allDay } : { start: localTime(new Date(start), zone), end: localTime(new Date(end), zone), allDay };

/** Which occurrences are meant; null: none. */
export function askScope(title: string, withThis = true): Promise<Scope | null> {
	return new Promise((resolve) => {
		let scope: Scope | null = null;
		const choose = (value: Scope) =>
			button(t(`calendar.scope.${value}`), () => {
				scope = value;
				close();
			});
		const { dialog, close } = openDialog(
			title,
			h('p', {}, t('calendar.scope')),
			h('div', { class: 'stacked' }, ...(withThis ? [choose('this')] : []), choose('following'), choose('all')),
		);
		dialog.addEventListener('close', () => resolve(scope));
	});
}

const answers: Exclude<Answer, 'invited'>[] = ['accepted', 'tentative', 'declined'];

/** When an entry is, for people. */
function timeText({ start, end, allDay }: Entry): string {
	const [from, to] = allDay ? [`${start}T00:00`, `${addDays(end, -1)}T00:00`] : [start, end];
	const format = new Intl.DateTimeFormat(language, allDay ? { dateStyle: 'full' } : { dateStyle: 'full', timeStyle: 'short' });
	return format.formatRange(new Date(from), new Date(to));
}

/** Buttons that answer the invitation to an entry. */
function answerButtons({ api, changed }: EntryContext, entry: Entry, mayRepeat: boolean): HTMLElement {
	const only = check(t('calendar.answer.only'), false);
	const problem = h('p', { class: 'problem', role: 'alert' });
	const buttons = answers.map((answer) => {
		const give = async () => {
			problem.textContent = '';
			try {
				await api.answer(entry, answer, mayRepeat && only.control.checked);
				show(answer);
				notify(t(`calendar.answered.${answer}`));
				changed();
			} catch (error) {
				problem.textContent = explain(error);
			}
		};
		return button(t(`calendar.answer.${answer}`), () => void give(), { 'data-answer': answer });
	});
	const show = (given?: Answer) => buttons.forEach((of) => of.setAttribute('aria-pressed', String(of.dataset.answer === given)));
	show(entry.answer);
	return h('div', { class: 'answers', role: 'group', 'aria-label': t('calendar.answer') }, ...buttons, mayRepeat && only.row, problem);
}

/** Opens an entry; `entry` null: the form of a new one. */
export async function openEntry(context: EntryContext, entry: Entry | null, span: Span, chosen?: number): Promise<void> {
	const own = context.calendars().filter(canWrite);
	const calendar = entry ? context.calendars().find(({ id }) => id === entry.calendar) : (own.find(({ id }) => id === chosen) ?? own[0]);
	let task: Task | null = null;
	if (entry && calendar) {
		try {
			task = await context.api.describe(entry);
		} catch (error) {
			notify(explain(error), 'problem');
			return;
		}
	}
	if (entry && (!canWrite(calendar) || !task || task.start === null)) showEntry(context, entry, calendar, task);
	else if (calendar) new EntryForm(context, entry, task, span, calendar, own).open();
}

/** An entry that the account does not write. */
function showEntry(context: EntryContext, entry: Entry, calendar: Calendar | undefined, task: Task | null): void {
	const cells = task?.own ?? task?.cells ?? {};
	openDialog(
		entry.title || t('calendar.untitled'),
		h('p', {}, timeText(entry)),
		entry.place !== '' && h('p', {}, entry.place),
		calendar && h('p', { class: 'hint' }, calendar.name),
		cells.notes && h('p', { class: 'notes' }, cells.notes),
		task && personList(task),
		entry.answer && answerButtons(context, entry, task?.repeats ?? true),
	);
}

function personList({ persons }: Task): HTMLElement | null {
	if (persons.length === 0) return null;
	return h(
		'ul',
		{ class: 'persons' },
		...persons.map(({ name, answer }) => h('li', { 'data-answer': answer }, name, h('span', {}, ` ${t(`calendar.is.${answer}`)}`))),
	);
}

const reminders = ['', '0 min', '5 min', '10 min', '30 min', '1 h', '1 day'];

class EntryForm {
	private readonly cells: Cells;
	private readonly zone: string;
	private readonly title;
	private readonly place;
	private readonly who;
	private readonly notes;
	private readonly reminder;
	private readonly repeats;
	private readonly into;
	private readonly allDay;
	private readonly dates: [Field<HTMLInputElement>, Field<HTMLInputElement>];
	private readonly times: [Field<HTMLInputElement>, Field<HTMLInputElement>];
	private readonly problem = h('p', { class: 'problem', role: 'alert' });
	private readonly submit = h('button', { type: 'submit', class: 'primary' }, t('calendar.save'));
	private close = () => {};
	private isChanged = false;
	/** The task as it is known to the user: others may have changed it since the form was opened. */
	private seen: Task | null;

	constructor(
		private readonly context: EntryContext,
		private readonly entry: Entry | null,
		private readonly task: Task | null,
		private readonly before: Span,
		calendar: Calendar,
		own: Calendar[],
	) {
		const { start, end, allDay } = before;
		this.seen = task;
		this.cells = task?.own ?? task?.cells ?? {};
		this.zone = entry?.zone ?? browserZone;
		const cell = (name: string) => this.cells[name] ?? '';
		this.title = input(t('calendar.title'), { value: cell('title'), required: true, autocomplete: 'off' });
		this.place = input(t('calendar.place'), { value: cell('place'), autocomplete: 'off' });
		this.who = input(t('calendar.who'), { value: cell('who'), autocomplete: 'off' }, t('calendar.whoHint'));
		this.notes = area(t('calendar.notes'), cell('notes'));
		const remind = cell('reminder');
		const known = reminders.includes(remind) ? reminders : [...reminders, remind];
		this.reminder = choice(
			t('calendar.reminder'),
			known.map((value) => [value, value === '' ? t('calendar.reminder.none') : tOr(`calendar.reminder.${value}`, value)]),
			remind,
		);
		this.repeats = repeatFields(task?.cells.repeats ?? '', this.zone, () => this.touch());
		this.into = choice(
			t('calendar.calendar'),
			(entry ? [calendar] : own).map(({ id, name }) => [String(id), name]),
			String(calendar.id),
		);
		this.into.control.disabled = entry !== null;
		this.allDay = check(t('calendar.allDay'), allDay);
		const date = (label: string, value: string) => input(label, { type: 'date', required: true, value });
		const time = (label: string, value: string) => input(label, { type: 'time', required: !allDay, value });
		this.dates = [date(t('calendar.start'), start.slice(0, 10)), date(t('calendar.end'), allDay ? addDays(end, -1) : end.slice(0, 10))];
		this.times = [time(t('calendar.startTime'), start.slice(11, 16)), time(t('calendar.endTime'), end.slice(11, 16))];
		this.allDay.control.addEventListener('change', () => this.showTimes());
		this.showTimes();
	}

	private touch(): void {
		this.isChanged = true;
		this.context.setUnsaved(1);
	}

	private showTimes(): void {
		const allDay = this.allDay.control.checked;
		this.times.forEach(({ row, control }, i) => {
			row.hidden = allDay;
			control.required = !allDay;
			if (!allDay && control.value === '') control.value = i === 0 ? '09:00' : '10:00';
		});
	}

	open(): void {
		const { entry, task } = this;
		const other = this.zone !== browserZone && h('p', { class: 'hint' }, t('calendar.inZone', { zone: this.zone }));
		const form = h(
			'form',
			{ class: 'entry stacked', submit: (event) => void this.save(event), input: () => this.touch() },
			entry?.answer && answerButtons(this.context, entry, task?.repeats ?? false),
			this.title.row,
			this.allDay.row,
			h('div', { class: 'pair' }, this.dates[0].row, this.times[0].row, this.dates[1].row, this.times[1].row),
			other,
			...this.repeats.rows,
			this.place.row,
			this.who.row,
			task && personList(task),
			h('div', { class: 'pair' }, this.reminder.row, this.into.row),
			this.notes.row,
			this.problem,
			h('footer', {}, entry && button(t('calendar.delete'), () => void this.remove(), { class: 'danger' }), this.submit),
		);
		form.noValidate = true;
		const { dialog, close } = openDialog(entry ? t('calendar.edit') : t('calendar.new'), form);
		dialog.classList.add('entry');
		dialog.addEventListener('closing', (event) => {
			if (!this.isChanged) return;
			event.preventDefault();
			const title = t('calendar.discard');
			void confirmDialog(title, t('calendar.discardQuestion'), title, true).then((yes) => yes && close());
		});
		dialog.addEventListener('close', () => this.context.setUnsaved(0));
		this.close = close;
		this.title.control.focus();
	}

	private span(): Span {
		const allDay = this.allDay.control.checked;
		const [first, last] = this.dates.map(({ control }) => control.value) as [string, string];
		if (allDay) return { start: first, end: addDays(last, 1), allDay };
		return { start: `${first} ${this.times[0].control.value}`, end: `${last} ${this.times[1].control.value}`, allDay };
	}

	/** Tells what is missing or impossible at its field. Returns whether nothing is. */
	private isComplete(): boolean {
		const all = [this.title, ...this.dates, ...this.times, this.who, this.reminder, this.repeats.freq];
		for (const field of all) field.blame('');
		this.problem.textContent = '';
		const wrong = ([this.title, ...this.dates, ...this.times] as Field<HTMLInputElement>[]).filter(
			({ row, control }) => !row.hidden && control.required && (control.value.trim() === '' || control.validity.badInput),
		);
		for (const field of wrong) field.blame(t('calendar.missing'));
		if (wrong.length === 0) {
			const { start, end, allDay } = this.span();
			if (wall(end) < wall(start) || (allDay && wall(end) <= wall(start))) {
				this.dates[1].blame(t('calendar.endBefore'));
				wrong.push(this.dates[1]);
			}
		}
		wrong[0]?.control.focus();
		return wrong.length === 0;
	}

	/** The cells that differ from those of the row. */
	private changes(scope: Scope): Cells {
		const cells: Cells = this.entry ? movedCells(this.task, this.before, this.span(), scope) : movedCells(null, null, this.span(), 'all');
		const put = (name: string, value: string, old: string) => {
			if (value !== old) cells[name] = value;
		};
		const cell = (name: string) => this.cells[name] ?? '';
		put('Title', this.title.control.value.trim(), cell('title'));
		put('Place', this.place.control.value.trim(), cell('place'));
		put('Who', this.who.control.value.trim(), cell('who'));
		put('Notes', this.notes.control.value, cell('notes'));
		put('Reminder', this.reminder.control.value, cell('reminder'));
		if (scope !== 'this') put('Repeats', this.repeats.value(), this.task?.cells.repeats ?? '');
		const into = this.context.calendars().find(({ id }) => id === Number(this.into.control.value));
		if (!this.entry && into && into.zone !== this.zone) cells['Time zone'] = this.zone;
		return cells;
	}

	private async save(event: Event): Promise<void> {
		event.preventDefault();
		if (!this.isComplete()) return;
		const { entry, task, context } = this;
		const newRule = this.repeats.value() !== (task?.cells.repeats ?? '');
		const scope = entry && task?.repeats ? await askScope(t('calendar.save'), !newRule) : 'all';
		if (scope === null) return;
		this.submit.disabled = true;
		const calendar = Number(this.into.control.value);
		const cells = this.changes(scope);
		try {
			const uid = entry ? await context.api.change(entry, cells, scope, this.seen!) : await context.api.add(calendar, cells);
			context.changed();
			this.close();
			const { problem } = await context.api.describe({ calendar, uid, instance: '' });
			notify(problem === null ? t('calendar.saved') : t('calendar.problem', { problem }), problem === null ? 'info' : 'problem');
		} catch (error) {
			if (entry && error instanceof ApiError && error.code === 'changed') await this.tell(entry, cells, scope);
			else this.blame(error);
		} finally {
			this.submit.disabled = false;
		}
	}

	/** Others have changed what this form changes: tells how. Who saves again replaces that. */
	private async tell(entry: Entry, cells: Cells, scope: Scope): Promise<void> {
		try {
			const now = await this.context.api.describe(entry);
			const before = this.seen ? seenTexts(this.seen, cells, scope) : {};
			const others = Object.entries(seenTexts(now, cells, scope)).filter(([name, text]) => text !== before[name]);
			this.seen = now;
			const changes = others.map(([name, text]) => `${t(`calendar.${name.toLowerCase()}`)}: ${text || t('calendar.empty')}`).join('; ');
			this.problem.textContent = t('calendar.changed', { changes });
		} catch (error) {
			this.blame(error);
		}
	}

	private blame(error: unknown): void {
		const fields: Record<string, Field<HTMLElement>> = {
			start: this.dates[0],
			end: this.dates[1],
			repeats: this.repeats.freq,
			who: this.who,
			reminder: this.reminder,
		};
		const field = error instanceof ApiError ? fields[error.code] : undefined;
		if (field) {
			field.blame(explain(error));
			field.control.focus();
		} else this.problem.textContent = explain(error);
	}

	private async remove(): Promise<void> {
		const { entry, task, context } = this;
		if (!entry) return;
		const title = t('calendar.delete');
		const scope = task?.repeats
			? await askScope(title)
			: (await confirmDialog(title, t('calendar.deleteQuestion', { title: entry.title }), title, true))
				? 'all'
				: null;
		if (scope === null) return;
		try {
			await context.api.remove(entry, scope);
			context.changed();
			this.close();
			notify(t('calendar.deleted', { title: entry.title }));
		} catch (error) {
			this.blame(error);
		}
	}
}
