// collab.ts - an open sheet: the socket, its reconnection, own edits until they are confirmed, and the locks of cells.
//
// It uses protocol.ts, and reports to a CollabListener instead of the grid. The caller provides the socket, the clock and
// the function that finds the gateway.
import { encodeEdit, encodeLock, parseMessage, ProtocolError } from './protocol';
import type { CellEdit, CellLock, CellPlace, Snapshot } from './protocol';
import { EditQueue, keyOf } from './queue';

export type ConnectionState = 'connecting' | 'connected' | 'reconnecting' | 'stopped';

export interface Status {
	state: ConnectionState;
	/** Number of own edits that are not confirmed. */
	unsaved: number;
	/** When reconnecting: milliseconds until the next attempt; 0 during an attempt. */
	retryIn: number;
	/** A transaction that has locked the sheet, so that edits wait for it; null: none. */
	held: { holder: string; seconds: number } | null;
}

export interface CollabListener {
	/** The whole content, at the start and after each reconnection. `overlay` has the unconfirmed own edits. */
	onSnapshot(snapshot: Snapshot, overlay: CellEdit[], first: boolean): void;
	onEdits(edits: CellEdit[]): void;
	/** All locks of other users. */
	onLocks(locks: CellLock[]): void;
	onRefused(place: CellPlace, reason: string, wasEdit: boolean): void;
	onStatus(status: Status): void;
	/** The gateway refuses the session for good: signed out, no permission, in the trash and so on. */
	onStopped(reason: StopReason): void;
}

export type StopReason = 'token' | 'permission' | 'missing' | 'trash' | 'duplicate' | 'large' | 'protocol';

/** Close codes after which there is no reconnection. */
const stopCodes = new Map<number, StopReason>([
	[1009, 'large'],
	[4401, 'token'],
	[4403, 'permission'],
	[4404, 'missing'],
	[4410, 'trash'],
]);

/** Returns the address, or a reason to stop. Throws if no gateway answers. */
export type FindGateway = () => Promise<{ url: string } | { stop: StopReason }>;

export interface SocketLike {
	onmessage: ((event: { data: unknown }) => void) | null;
	onclose: ((event: { code: number }) => void) | null;
	send(text: string): void;
	close(code?: number): void;
}

export interface CollabSurroundings {
	findGateway: FindGateway;
	openSocket(url: string): SocketLike;
	setTimer(run: () => void, milliseconds: number): () => void;
	/** Milliseconds of a monotonic clock. */
	now(): number;
	random(): number;
}

const firstRetryMs = 250;
const lastRetryMs = 8000;
/** A connection without a snapshot after this time is dropped. */
const snapshotDeadlineMs = 15000;
const longestSent = 40000;
/** A lock's lease is 30 s. */
const renewLockMs = 10000;

export class Collab {
	private queue = new EditQueue();
	private socket: SocketLike | null = null;
	private state: ConnectionState = 'connecting';
	private tries = 0;
	private retryIn = 0;
	private cancelTimers: (() => void)[] = [];
	private cancelRenewal: (() => void) | null = null;
	private locks = new Map<string, CellLock>();
	private editing: CellPlace | null = null;
	private attempt = 0;
	private first = true;
	private held: { holder: string; since: number } | null = null;
	private cancelCount: (() => void) | null = null;

	constructor(
		private readonly username: string,
		private readonly surroundings: CollabSurroundings,
		private readonly listener: CollabListener,
	) {}

	get unsaved(): number {
		return this.queue.size;
	}

	start(): void {
		void this.connect();
	}

	/** Closes the connection. Unconfirmed edits stay unconfirmed. */
	stop(): void {
		this.enter('stopped');
		this.cancelAll();
		this.setEditing(null);
		this.setHeld(null);
		const socket = this.socket;
		this.socket = null;
		socket?.close(1000);
	}

	/** Reconnects at once, for when the network is back. */
	retryNow(): void {
		if (this.state !== 'reconnecting' || this.retryIn === 0) return;
		this.cancelAll();
		void this.connect();
	}

	/** Sends own edits, which the grid already shows. */
	edit(edits: CellEdit[]): void {
		for (const edit of edits) this.queue.add(edit);
		this.flush();
		this.report();
	}

	/** The user opened the editor of a cell (null: closed it). Requests its lock without waiting for it. */
	setEditing(place: CellPlace | null): void {
		const before = this.editing;
		if (before && place && before.row === place.row && before.col === place.col) return;
		this.cancelRenewal?.();
		this.cancelRenewal = null;
		this.editing = place;
		if (before) this.sendLock('release', before);
		if (place) {
			this.sendLock('acquire', place);
			this.renewLater();
		}
	}

	/** The user who has locked a cell. */
	holderOf(place: CellPlace): string | null {
		return this.locks.get(keyOf(place))?.username ?? null;
	}

	isPending(place: CellPlace): boolean {
		return this.queue.has(place);
	}

	// ---- connection ---------------------------------------------------------------------------------------------------

	private async connect(): Promise<void> {
		const attempt = ++this.attempt;
		this.retryIn = 0;
		this.report();
		let answer: Awaited<ReturnType<FindGateway>>;
		try {
			answer = await this.surroundings.findGateway();
		} catch {
			if (attempt === this.attempt) this.retryLater();
			return;
		}
		if (attempt !== this.attempt || this.state === 'stopped') return;
		if ('stop' in answer) {
			this.end(answer.stop);
			return;
		}
		const socket = this.surroundings.openSocket(answer.url);
		this.socket = socket;
		socket.onmessage = (event) => {
			if (socket === this.socket && typeof event.data === 'string') this.receive(event.data);
		};
		socket.onclose = ({ code }) => {
			if (socket !== this.socket) return;
			const stop = stopCodes.get(code);
			if (stop) this.end(stop);
			else this.lost();
		};
		this.cancelTimers.push(
			this.surroundings.setTimer(() => {
				if (socket !== this.socket || this.state === 'connected') return;
				this.lost();
				socket.close();
			}, snapshotDeadlineMs),
		);
	}

	private lost(): void {
		this.socket = null;
		this.setHeld(null);
		this.cancelAll();
		this.retryLater();
	}

	private retryLater(): void {
		if (this.state === 'stopped') return;
		this.state = 'reconnecting';
		const span = Math.min(lastRetryMs, firstRetryMs * 2 ** this.tries++);
		this.retryIn = Math.round(span * (0.5 + this.surroundings.random() / 2));
		this.cancelTimers.push(this.surroundings.setTimer(() => void this.connect(), this.retryIn));
		this.report();
	}

	private end(reason: StopReason): void {
		this.stop();
		this.listener.onStopped(reason);
	}

	private cancelAll(): void {
		for (const cancel of this.cancelTimers) cancel();
		this.cancelTimers = [];
		this.attempt++;
	}

	private enter(state: ConnectionState): void {
		this.state = state;
		this.report();
	}

	private report(): void {
		const { held } = this;
		this.listener.onStatus({
			state: this.state,
			unsaved: this.queue.size,
			retryIn: this.retryIn,
			held: held && { holder: held.holder, seconds: Math.round((this.surroundings.now() - held.since) / 1000) },
		});
	}

	/** Stores who has locked the sheet, and counts the seconds. */
	private setHeld(by: { holder: string; ms: number } | null): void {
		this.cancelCount?.();
		this.cancelCount = null;
		this.held = by && { holder: by.holder, since: this.surroundings.now() - by.ms };
		if (this.held) this.countSeconds();
	}

	private countSeconds(): void {
		this.report();
		this.cancelCount = this.surroundings.setTimer(() => this.countSeconds(), 1000);
	}

	// ---- messages -----------------------------------------------------------------------------------------------------

	private receive(text: string): void {
		let message: ReturnType<typeof parseMessage>;
		try {
			message = parseMessage(text);
		} catch (error) {
			if (!(error instanceof ProtocolError)) throw error;
			// After a malformed message the shown content may be wrong.
			this.end('protocol');
			return;
		}
		if (!message) return;
		switch (message.type) {
			case 'onConn':
				this.welcome(message.snapshot);
				break;
			case 'acquire':
			case 'release':
				this.storeLock(message.type, message.lock);
				break;
			case 'modify':
				if (this.queue.receive(message.edit, message.username === this.username) === 'show') this.listener.onEdits([message.edit]);
				this.report();
				break;
			case 'refused':
				this.refused(message.place, message.reason, message.content);
				break;
			case 'held':
				this.setHeld(message.by);
				this.report();
				break;
		}
	}

	private welcome(snapshot: Snapshot): void {
		this.tries = 0;
		this.cancelAll();
		const { columns, content } = snapshot;
		this.queue.resume(({ row, col }) => (col < columns ? (content[row * columns + col] ?? '') : ''));
		this.locks.clear();
		for (const lock of snapshot.locks) if (lock.username !== this.username) this.locks.set(keyOf(lock), lock);
		this.listener.onSnapshot(snapshot, this.queue.overlay(), this.first);
		this.first = false;
		this.listener.onLocks([...this.locks.values()]);
		this.enter('connected');
		if (this.editing) this.sendLock('acquire', this.editing);
		this.flush();
	}

	private storeLock(kind: 'acquire' | 'release', lock: CellLock): void {
		if (kind === 'acquire' && lock.username !== this.username) this.locks.set(keyOf(lock), lock);
		else if (!this.locks.delete(keyOf(lock))) return;
		this.listener.onLocks([...this.locks.values()]);
	}

	private refused(place: CellPlace, reason: string, content: string | null): void {
		const { wasEdit, show } = this.queue.refuse(place, content);
		if (show) this.listener.onEdits([show]);
		this.listener.onRefused(place, reason, wasEdit);
		this.report();
	}

	private flush(): void {
		if (this.state !== 'connected' || !this.socket) return;
		for (const edit of this.queue.takeUnsent()) {
			// The limit is 32,767 characters. A longer text is cut so that the gateway refuses the edit, but does not
			// close the connection.
			const content = edit.content.slice(0, longestSent);
			this.socket.send(encodeEdit({ ...edit, content }));
		}
	}

	private sendLock(kind: 'acquire' | 'release', place: CellPlace): void {
		if (this.state === 'connected') this.socket?.send(encodeLock(kind, place));
	}

	private renewLater(): void {
		this.cancelRenewal = this.surroundings.setTimer(() => {
			if (this.editing) this.sendLock('acquire', this.editing);
			this.renewLater();
		}, renewLockMs);
	}
}
