// book.ts - the tabs of the book of the open sheet.
//
//   book.tabs                  the tabs that this account may see, from left to right, hidden ones included, none that is in the
//                              trash: {sheet, name, colour, hidden, role}. Empty: the sheet is in no book, or that is not known yet.
//   book.onChange(listener)    calls back after the tabs, their names or the book have changed. Returns what ends that.
//   book.look()                the gateway says that the book may have changed: reads it again, soon.
//
// An open sheet has one Book from before its first cells until it is left. The tabs of the sheet that was shown before are known
// at once if the sheet is one of them.
import { Msg } from '../answers';
import { ApiError, ask, type Session } from '../api';
import type { Role } from '../v2/messages';

export interface Tab {
	readonly sheet: number;
	readonly name: string;
	/** As #1d5fbf; null: none. */
	readonly colour: string | null;
	readonly hidden: boolean;
	/** Of this account on the sheet. */
	readonly role: Role;
}

export interface BookState {
	/** null: the sheet is in no book. */
	readonly id: number | null;
	/** null: the account may see single tabs only. */
	readonly name: string | null;
	/** Of this account on the book; null: likewise. */
	readonly role: Role | null;
	readonly tabs: readonly Tab[];
}

interface Answer {
	id: number;
	name: string | null;
	role: Role | null;
	tabs: { id: number; name: string; colour: string | null; hidden: boolean; role: Role; trashed: boolean }[];
}

/** Requests of many pages that hear of the same change are spread over this time. */
const spreadMs = 400;
/** After no gateway has answered. */
const againMs = 5000;

const none: BookState = { id: null, name: null, role: null, tabs: [] };

export function stateOf({ id, name, role, tabs }: Answer): BookState {
	const shown = tabs.filter(({ trashed }) => !trashed);
	return { id, name, role, tabs: shown.map((tab) => ({ sheet: tab.id, name: tab.name, colour: tab.colour, hidden: tab.hidden, role: tab.role })) };
}

/** The book that was read last, for the next sheet of this page. */
let last: { uid: number; state: BookState } | null = null;

export class Book {
	private state = none;
	private known = false;
	private reading = false;
	private again = false;
	private ended = false;
	private soon: ReturnType<typeof setTimeout> | undefined;
	private readonly listeners = new Set<() => void>();

	constructor(
		private readonly session: Session,
		readonly sheet: number,
	) {
		if (last?.uid === session.uid && last.state.tabs.some((tab) => tab.sheet === sheet)) this.state = last.state;
	}

	get id(): number | null {
		return this.state.id;
	}

	get name(): string | null {
		return this.state.name;
	}

	get role(): Role | null {
		return this.state.role;
	}

	get tabs(): readonly Tab[] {
		return this.state.tabs;
	}

	/** Whether the gateway has answered. */
	get isKnown(): boolean {
		return this.known;
	}

	/** The tab of the open sheet. */
	get current(): Tab | undefined {
		return this.tabs.find(({ sheet }) => sheet === this.sheet);
	}

	onChange(listener: () => void): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	look(): void {
		this.soon ??= setTimeout(() => {
			this.soon = undefined;
			void this.read();
		}, Math.random() * spreadMs);
	}

	/** Reads the book. A guest sees none. */
	async read(): Promise<void> {
		if (this.session.link !== undefined || this.ended) return;
		this.again = this.reading;
		if (this.reading) return;
		this.reading = true;
		try {
			this.show(await this.ask());
		} catch {
			this.soon ??= setTimeout(() => {
				this.soon = undefined;
				void this.read();
			}, againMs);
		}
		this.reading = false;
		if (this.again) await this.read();
	}

	private async ask(): Promise<BookState> {
		const before = this.state.id === null ? null : await this.readBook(this.state.id);
		if (before?.tabs.some(({ sheet }) => sheet === this.sheet)) return before;
		const found = (await this.get(`/v2/sheets/${this.sheet}`)) as { book: number | null } | null;
		// A sheet that is in the trash, or not shared any more, leaves the others in the bar.
		if (!found) return before ?? none;
		if (found.book === null) return none;
		return found.book === before?.id ? before : ((await this.readBook(found.book)) ?? none);
	}

	private async readBook(id: number): Promise<BookState | null> {
		const answer = await this.get(`/v2/books/${id}`);
		return answer === null ? null : stateOf(answer as Answer);
	}

	/** null: it is refused. */
	private async get(path: string): Promise<unknown> {
		try {
			return await ask('GET', path, this.session.token);
		} catch (error) {
			if (error instanceof ApiError && error.msg !== null && error.msg !== Msg.InvalidToken) return null;
			throw error;
		}
	}

	private show(state: BookState): void {
		if (this.ended) return;
		const changed = !this.known || JSON.stringify(state) !== JSON.stringify(this.state);
		this.state = state;
		this.known = true;
		last = { uid: this.session.uid, state };
		if (changed) for (const listener of this.listeners) listener();
	}

	end(): void {
		this.ended = true;
		clearTimeout(this.soon);
		this.listeners.clear();
	}
}
