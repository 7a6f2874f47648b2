// live.ts - hears that others change calendars: a connection of protocol v2 to each of their sheets, which reads no cells.
import { locateSheet, type Session } from '../api';
import { lookForReminders } from '../reminders';
import { SheetClient } from '../v2/client';

/** How often a connection that says nothing is looked at. */
const checkMs = 30000;

export interface LiveEvents {
	/** The sheet has edits up to seq. */
	heard(calendar: number, seq: number): void;
	/** Whether changes of all calendars are heard. */
	connected(all: boolean): void;
	/** A calendar is not followed any more: the role has ended, or the session has. */
	ended(): void;
}

export class Live {
	private readonly clients = new Map<number, SheetClient>();
	/** Without a connection that had one. */
	private readonly away = new Set<number>();
	private readonly timer = setInterval(() => this.clients.forEach((client) => client.check()), checkMs);
	private readonly again = () => this.clients.forEach((client) => client.retryNow(true));

	constructor(
		private readonly session: Session,
		private readonly events: LiveEvents,
	) {
		window.addEventListener('online', this.again);
	}

	follow(calendars: readonly number[]): void {
		for (const [id, client] of this.clients) if (!calendars.includes(id)) this.drop(id, client);
		for (const id of calendars) if (!this.clients.has(id)) this.connect(id);
	}

	private connect(id: number): void {
		const client: SheetClient = new SheetClient({
			url: (moved) => locateSheet(this.session.token, id, moved),
			sheet: id,
			token: () => this.session.token,
			client: 0,
			onMessage: (message) => {
				if (message.t === 'hello') this.tell(id, false);
				if (message.t === 'hello' || message.t === 'reminders') lookForReminders();
				if (message.t === 'hello' || message.t === 'edits') this.events.heard(id, message.seq);
			},
			onClose: (_code, _reason, retries) => {
				if (this.clients.get(id) !== client) return;
				if (retries) return this.tell(id, true);
				this.drop(id, client);
				this.events.ended();
			},
			onUnreachable: () => {
				if (this.clients.get(id) === client) this.tell(id, true);
				return this.clients.get(id) === client;
			},
		});
		this.clients.set(id, client);
		client.connect();
	}

	private tell(id: number, isAway: boolean): void {
		const before = this.away.size;
		if (isAway) this.away.add(id);
		else this.away.delete(id);
		if (before === 0 || this.away.size === 0) this.events.connected(this.away.size === 0);
	}

	private drop(id: number, client: SheetClient): void {
		this.clients.delete(id);
		client.close();
		this.tell(id, false);
	}

	/** The page is seen again. */
	wake(): void {
		this.clients.forEach((client) => client.check());
	}

	end(): void {
		clearInterval(this.timer);
		window.removeEventListener('online', this.again);
		for (const client of this.clients.values()) client.close();
		this.clients.clear();
	}
}
