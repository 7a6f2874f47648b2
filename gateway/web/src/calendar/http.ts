// http.ts - calendars over HTTP (docs/PROTOCOL.md#calendars-over-http).
import { ask, type Session } from '../api';
import { mayEdit, type Role } from '../v2/messages';

export interface Calendar {
	id: number;
	name: string;
	owner: string | null;
	role: Role;
	/** Of times without a zone of their own. */
	zone: string;
	/** As #1d5fbf; null: the account has chosen none. */
	colour: string | null;
}

export type Answer = 'invited' | 'accepted' | 'declined' | 'tentative';
export type Scope = 'all' | 'this' | 'following';

export interface Entry {
	calendar: number;
	uid: string;
	/** The local time of the occurrence in the zone of the task. */
	instance: string;
	/** A time in UTC, or of whole days a date; the end is the day after the last one. */
	start: string;
	end: string;
	allDay: boolean;
	zone: string;
	title: string;
	place: string;
	/** Of an entry of a calendar; absent: it names none. */
	persons?: string[];
	/** Of the own account; absent: it is not invited. */
	answer?: Answer;
}

/** How far the entries follow the cells of a calendar. */
export interface State {
	id: number;
	seq: number;
	/** Of later times, not all are there yet; null: they are. */
	expandedTo: string | null;
}

/** Texts by the names of the header, in lower case. */
export type Cells = Record<string, string>;

export interface Task {
	/** Null: the row is not understood. */
	start: string | null;
	allDay: boolean | null;
	zone: string | null;
	repeats: boolean | null;
	cells: Cells;
	/** Of the row that replaces the occurrence. */
	own: Cells | null;
	problem: string | null;
	persons: { name: string; answer: Answer }[];
}

export const canWrite = (calendar?: Calendar): calendar is Calendar => mayEdit(calendar?.role);

/** What the cells that are to be changed had when the task was read. */
export function seenTexts(task: Task, cells: Cells, scope: Scope): Cells {
	const row = scope === 'this' ? (task.own ?? task.cells) : task.cells;
	return Object.fromEntries(Object.keys(cells).map((name) => [name, row[name.toLowerCase()] ?? '']));
}

export class CalendarApi {
	constructor(private readonly session: Session) {}

	private ask<Value>(method: string, path: string, body?: object): Promise<Value> {
		return ask(method, `/v2/calendars${path}`, this.session.token, body) as Promise<Value>;
	}

	async calendars(): Promise<Calendar[]> {
		return (await this.ask<{ calendars: Calendar[] }>('GET', '')).calendars;
	}

	async create(name: string, zone: string): Promise<number> {
		return (await this.ask<{ id: number }>('POST', '', { name, zone })).id;
	}

	/** Makes a sheet with the header of a calendar one. */
	async make(id: number): Promise<void> {
		await this.ask('PUT', `/${id}`, {});
	}

	/** The account's calendar programs have it, too. */
	async setColour(id: number, colour: string): Promise<void> {
		await this.ask('PATCH', `/${id}`, { colour });
	}

	/** Those of the calendars, and the account's own in all calendars. */
	entries(from: Date, to: Date, calendars: number[]): Promise<{ entries: Entry[]; agenda: Entry[]; states: State[] }> {
		return this.ask('GET', `/entries?from=${from.toISOString()}&to=${to.toISOString()}&calendars=${calendars.join()}`);
	}

	/** Days with events, of a month such as 2027-01. */
	async dots(month: string, zone: string): Promise<Set<string>> {
		return new Set((await this.ask<{ days: string[] }>('GET', `/dots?month=${month}&zone=${encodeURIComponent(zone)}`)).days);
	}

	private task(calendar: number, uid: string): string {
		return `/${calendar}/tasks/${encodeURIComponent(uid)}`;
	}

	describe({ calendar, uid, instance }: Pick<Entry, 'calendar' | 'uid' | 'instance'>): Promise<Task> {
		return this.ask('GET', `${this.task(calendar, uid)}?instance=${instance}`);
	}

	async add(calendar: number, cells: Cells): Promise<string> {
		return (await this.ask<{ uid: string }>('POST', `/${calendar}/tasks`, { cells })).uid;
	}

	/** `seen`: the task as it was read; what others have changed meanwhile is refused (changed). */
	async change({ calendar, uid, instance }: Entry, cells: Cells, scope: Scope, seen: Task): Promise<string> {
		const texts = seenTexts(seen, cells, scope);
		const body = { cells, scope, instance: scope === 'all' ? null : instance, seen: texts };
		return (await this.ask<{ uid: string }>('PATCH', this.task(calendar, uid), body)).uid;
	}

	async remove({ calendar, uid, instance }: Entry, scope: Scope): Promise<void> {
		await this.ask('DELETE', `${this.task(calendar, uid)}?scope=${scope}${scope === 'all' ? '' : `&instance=${instance}`}`);
	}

	async answer({ calendar, uid, instance }: Entry, answer: Answer, only: boolean): Promise<void> {
		await this.ask('PUT', `/${calendar}/answers/${encodeURIComponent(uid)}`, { answer, instance: only ? instance : null });
	}
}
