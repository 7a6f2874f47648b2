// presence.ts - who is here: the cells that others are editing, the ranges that they have locked, their selections and
// their names.
import { isGuest } from '../v2/guests';
import { movePlace, moveRange } from '../v2/lines';
import type { Cursor, HeldCell, HeldRange, Hello, LoggedStructure, Place, Range, ServerMessage } from '../v2/messages';
import { keyOf } from '../v2/replica';

/** Names that are asked for at a time. The gateway allows 64 unanswered questions. */
const mostQuestions = 32;

/** Somebody's cell or range. `session` 0 is a user of protocol v1. */
export interface Mark extends Range {
	session: number;
	name: string;
	/** The cell is being edited, or the range is locked. */
	lock: boolean;
}

export class Presence {
	/** The session of this page. */
	private own = 0;
	private locks = new Map<string, HeldCell>();
	private ranges: HeldRange[] = [];
	private cursors = new Map<number, Cursor>();
	private peers = new Map<number, string>();
	private names = new Map<number, string>();
	/** Whose names are asked for. */
	private asked = new Set<number>();
	private due = false;

	constructor(
		/** Requests the name of a user. */
		private readonly request: (uid: number) => void,
		private readonly schedule: (run: () => void) => void,
		private readonly onMarks: (marks: Mark[], names: string[]) => void,
	) {}

	/** The name of the user who is editing a cell, or has locked a range with it. */
	holderOf({ row, col }: Place): string | null {
		const covers = (range: Range) => row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol;
		const lock = this.locks.get(keyOf(row, col)) ?? this.ranges.find(covers);
		return lock ? this.nameOf(lock) : null;
	}

	private nameOf({ session, uid }: { session: number; uid: number }): string {
		return this.peers.get(session) ?? this.names.get(uid) ?? '…';
	}

	/** The connection is lost. */
	clear(): void {
		this.locks.clear();
		this.ranges = [];
		this.cursors.clear();
		this.peers.clear();
		this.changed();
	}

	move(change: LoggedStructure): void {
		const locks = [...this.locks.values()].flatMap((lock) => {
			const place = movePlace(lock, change);
			return place ? [{ ...lock, ...place }] : [];
		});
		this.locks = new Map(locks.map((lock) => [keyOf(lock.row, lock.col), lock]));
		this.ranges = this.ranges.flatMap((held) => {
			const range = moveRange(held, change);
			return range ? [{ ...held, ...range }] : [];
		});
		for (const [session, cursor] of this.cursors) {
			const range = moveRange(cursor, change);
			if (range) this.cursors.set(session, { ...range, session });
			else this.cursors.delete(session);
		}
		this.changed();
	}

	receive(message: ServerMessage): void {
		switch (message.t) {
			case 'hello':
				this.greeted(message);
				break;
			case 'lock': {
				const { t: _t, ...lock } = message;
				if (lock.session === this.own || (lock.session === 0 && lock.uid === 0)) this.locks.delete(keyOf(lock.row, lock.col));
				else this.locks.set(keyOf(lock.row, lock.col), lock);
				break;
			}
			case 'range': {
				const { t: _t, ...range } = message;
				this.ranges = this.ranges.filter(
					({ row, col, toRow, toCol }) => row !== range.row || col !== range.col || toRow !== range.toRow || toCol !== range.toCol,
				);
				if (range.session !== this.own && range.session !== 0) this.ranges.push(range);
				break;
			}
			case 'peer':
				if (message.here) this.peers.set(message.session, message.name);
				else {
					this.peers.delete(message.session);
					this.cursors.delete(message.session);
				}
				this.name(message);
				break;
			case 'cursors':
				for (const cursor of message.cursors) if (cursor.session !== this.own) this.cursors.set(cursor.session, cursor);
				break;
			case 'user':
				this.asked.delete(message.uid);
				this.names.set(message.uid, message.name);
				break;
			default:
				return;
		}
		this.changed();
	}

	private greeted({ session: own, peers, locks, ranges = [] }: Hello): void {
		this.own = own;
		this.peers = new Map(peers.filter(({ session }) => session !== own).map(({ session, name }) => [session, name]));
		peers.forEach((peer) => this.name(peer));
		this.asked.clear();
		this.cursors.clear();
		this.locks = new Map(locks.filter(({ session }) => session !== own).map((lock) => [keyOf(lock.row, lock.col), lock]));
		this.ranges = ranges.filter(({ session }) => session !== own);
	}

	/** The name of an account. Guests of one link have one uid, whose name is the link's. */
	private name({ uid, name }: { uid: number; name: string }): void {
		if (!isGuest(uid)) this.names.set(uid, name);
	}

	private changed(): void {
		if (this.due) return;
		this.due = true;
		this.schedule(() => {
			this.due = false;
			const marks: Mark[] = [];
			const cells = [...this.locks.values()].map((lock) => ({ ...lock, toRow: lock.row, toCol: lock.col }));
			for (const { uid, ...range } of [...cells, ...this.ranges]) {
				if (!this.peers.has(range.session) && !this.names.has(uid)) this.ask(uid);
				marks.push({ ...range, name: this.nameOf({ session: range.session, uid }), lock: true });
			}
			for (const { session, ...range } of this.cursors.values()) {
				const name = this.peers.get(session);
				const edits = cells.some((lock) => lock.session === session);
				if (name !== undefined && !edits) marks.push({ ...range, session, name, lock: false });
			}
			this.onMarks(marks, [...this.peers.values()]);
		});
	}

	private ask(uid: number): void {
		if (this.asked.has(uid) || uid === 0 || this.asked.size >= mostQuestions) return;
		this.asked.add(uid);
		this.request(uid);
	}
}
