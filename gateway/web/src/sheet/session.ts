// session.ts - an open sheet: the connection (v2/client.ts), the grid's mirror, undo, locks, and who is here.
//
// It knows no DOM. The page gives it a grid when the size of the sheet is known, and gets its state and its news.
import { SheetClient, type Operation, type Outbox, type RefusedError, type Socket } from '../v2/client';
import { movePlace, moveRange, maxCols, maxRows } from '../v2/lines';
import { keyOf } from '../v2/replica';
import { closeCodes } from '../v2/messages';
import type { CellEdit, Cursor, Edit, HeldCell, Hello, Place, Range, Reason, Role, ServerMessage, StructureEdit } from '../v2/messages';
import { sameStyle } from '../style';
import { Mirror, nextFrame, type CellState, type Grid, type Schedule } from './mirror';
import { splitEdits } from './split';
import { UndoStack, type Change } from './undo';

/** A grid of which the session also reads cells. */
export interface SessionGrid extends Grid {
	read(row: number, col: number): CellState;
}

export type Phase = 'connecting' | 'connected' | 'reconnecting' | 'silent' | 'stopped';

export interface Status {
	phase: Phase;
	/** Number of own edits that are not confirmed. */
	unsaved: number;
	/** Cells are still being read. */
	loading: boolean;
	/** A transaction that has locked the sheet, so that edits wait for it; null: none. */
	held: { holder: string; seconds: number } | null;
}

export type StopReason = 'permission' | 'missing' | 'trash' | 'duplicate' | 'protocol';

/** Somebody's cell or range. `session` 0 is a user of protocol v1. */
export interface Mark extends Range {
	session: number;
	name: string;
	/** The cell is being edited. */
	lock: boolean;
}

export interface SessionEvents {
	/** The sheet's name, size and role are known, for the first time and after each reconnection. */
	onHello(hello: Hello): void;
	onStatus(status: Status): void;
	onRole(role: Role): void;
	/** Rows or columns were inserted or deleted. */
	onMove(change: StructureEdit): void;
	/** Cells and selections of others, and who is here. */
	onMarks(marks: Mark[], names: string[]): void;
	/** An operation was refused. What it wrote is not in the sheet. */
	onRefused(edits: Edit[], reason: Reason, place: Place): void;
	/** The lock of a cell was refused: somebody else is editing it. */
	onDenied(place: Place, reason: Reason): void;
	onSkipped(skipped: Place[], done: number): void;
	onUndoState(canUndo: boolean, canRedo: boolean): void;
	/** The token has ended. The session goes on after `resume`. */
	onTokenEnded(): void;
	onStopped(reason: StopReason): void;
}

export interface SessionOptions {
	sheet: number;
	uid: number;
	token: () => string;
	locate: () => Promise<string>;
	/** The reason to stop, if no address was found for good; 'token' if the token has ended. */
	stopOf: (error: unknown) => StopReason | 'token' | null;
	outbox?: Outbox;
	open?: (url: string, protocol: string) => Socket;
	schedule?: Schedule;
}

const stopCodes = new Map<number, StopReason>([
	[closeCodes.forbidden, 'permission'],
	[closeCodes.notFound, 'missing'],
	[closeCodes.gone, 'trash'],
	[closeCodes.replaced, 'duplicate'],
]);

const silentMs = 3000;
/** A held transaction is reported every five seconds. */
const heldMs = 8000;
const renewLockMs = 10000;
const cursorMs = 120;
/** Larger sheets are read as they are scrolled. */
const mostCells = 4194304;
const viewSlot = 0;
const wholeSlot = 1;
const firstRows = 120;
const firstCols = 60;

export class SheetSession {
	private readonly client: SheetClient;
	private readonly undoStack = new UndoStack();
	private grid: SessionGrid | null = null;
	private readonly mirror: Mirror;
	private phase: Phase = 'connecting';
	private role: Role = 'viewer';
	private held: { holder: string; since: number } | null = null;
	private timers: ReturnType<typeof setInterval>[] = [];
	private editing: Place | null = null;
	private renewed = 0;
	private locks = new Map<string, HeldCell>();
	private cursors = new Map<number, Cursor>();
	private peers = new Map<number, string>();
	private names = new Map<number, string>();
	private asked = new Set<number>();
	private marksDue = false;
	private cursor: Range | null = null;
	private cursorTimer: ReturnType<typeof setTimeout> | undefined;
	private silent = 0;
	/** The commit that is being applied has structure edits, and rewrites formulas. */
	private structured = false;
	/** Cells to read after those of the first screen. */
	private rest: Range | null = null;
	private reportDue = false;

	constructor(
		private readonly options: SessionOptions,
		private readonly events: SessionEvents,
	) {
		const grid: Grid = {
			apply: (edits) => this.grid?.apply(edits),
			fill: (range, cells, skip) => this.grid?.fill(range, cells, skip),
			move: (change) => this.grid?.move(change),
		};
		this.mirror = new Mirror(
			grid,
			options.schedule ?? nextFrame,
			(edit, uid) => this.written(edit, uid),
			(change) => this.moved(change),
		);
		this.client = new SheetClient({
			...{ url: options.locate, sheet: options.sheet, token: options.token, store: this.mirror, retryMs: 250 },
			...(options.outbox && { outbox: options.outbox }),
			...(options.open && { open: options.open }),
			onMessage: (message) => this.receive(message),
			onRestart: (hello) => this.restart(hello),
			onFinished: ({ edits }) => this.mirror.release(edits),
			onRefused: (operation, refusal) => this.refused(operation, refusal),
			onClose: (code, _reason, again) => this.closed(code, again),
			onUnreachable: (error) => this.unreachable(error),
		});
	}

	get unsaved(): number {
		return this.client.unacknowledged;
	}

	get canEdit(): boolean {
		return this.role === 'editor' || this.role === 'owner';
	}

	start(): void {
		this.client.connect();
		this.timers.push(setInterval(() => this.tick(), 1000));
	}

	/** Ends the session; first waits for a moment for what was sent. */
	async stop(): Promise<void> {
		this.timers.forEach(clearInterval);
		clearTimeout(this.cursorTimer);
		this.grid = null;
		for (let i = 0; i < 40 && this.unsaved > 0 && this.client.hello; i++) await new Promise((resolve) => setTimeout(resolve, 50));
		this.client.close();
	}

	/** There is a new token. */
	resume(): void {
		this.phase = 'reconnecting';
		this.client.connect();
		this.report();
	}

	/** Sends a new token before the old one expires. */
	renew(token: string): void {
		if (this.client.hello) this.client.send({ t: 'auth', token });
	}

	/** The network may be back, or the page was hidden: reconnects or probes at once. */
	wake(): void {
		this.mirror.flush();
		this.client.retryNow();
		this.client.probe();
	}

	/** The grid exists now. It is empty, and has the size of the sheet. */
	attach(grid: SessionGrid): void {
		this.grid = grid;
		const { rows, cols } = this.client.replica;
		this.plan(rows, cols);
	}

	/** The user sees these cells. */
	view(range: Range): void {
		if (this.grid) this.client.load(range, viewSlot);
	}

	// ---- edits ----

	/** The user has changed cells in the grid. */
	changed(changes: Change[]): void {
		// Of a cell that has not been read, the former state is unknown.
		this.undoStack.push(changes.filter(({ row, col }) => this.isKnown(row, col)));
		this.send(changes.map(({ row, col, before, after }) => ({
			...{ row, col },
			...(before.content !== after.content && { content: after.content }),
			...(!sameStyle(before.style, after.style) && { style: after.style }),
		})), changes);
	}

	/** Writes edits into the grid and the sheet, as one change of the user. */
	write(edits: CellEdit[]): void {
		const changes = edits.map((edit): Change => {
			const before = this.read(edit.row, edit.col);
			return { row: edit.row, col: edit.col, before, after: { content: edit.content ?? before.content, style: edit.style === undefined ? before.style : edit.style } };
		});
		this.grid?.apply(edits);
		this.undoStack.push(changes);
		this.send(edits, changes);
	}

	undo(): void {
		this.apply(this.undoStack.undo((row, col) => this.read(row, col)));
	}

	redo(): void {
		this.apply(this.undoStack.redo((row, col) => this.read(row, col)));
	}

	private apply(step: { edits: CellEdit[]; skipped: Place[] } | null): void {
		if (!step) return;
		const { edits, skipped } = step;
		if (edits.length > 0) {
			const states = edits.map(({ row, col }) => ({ row, col, before: this.read(row, col) }));
			this.grid?.apply(edits);
			this.send(edits, states);
		}
		this.events.onSkipped(skipped, edits.length);
		this.events.onUndoState(this.undoStack.canUndo, this.undoStack.canRedo);
	}

	private written(edit: CellEdit, uid: number): void {
		const { row, col, content } = edit;
		const before = this.structured && content?.startsWith('=') ? this.grid?.read(row, col).content : undefined;
		if (before?.startsWith('=')) this.undoStack.rewritten(row, col, before, content!);
		else this.undoStack.written(edit, uid === this.options.uid);
	}

	private read(row: number, col: number): CellState {
		this.mirror.flush();
		return this.grid?.read(row, col) ?? { content: '', style: null };
	}

	private send(edits: CellEdit[], states: { row: number; col: number; before: CellState }[]): void {
		for (const { row, col, before } of states) this.mirror.take(row, col, this.isKnown(row, col) ? before : undefined);
		const hello = this.client.hello;
		for (const part of splitEdits(edits, hello?.maxEdits, hello?.maxBytes)) this.client.operate(part).catch(() => {});
		this.events.onUndoState(this.undoStack.canUndo, this.undoStack.canRedo);
		this.report();
	}

	private isKnown(row: number, col: number): boolean {
		return !this.client.replica.missing({ row, col, toRow: row, toCol: col });
	}

	/** Inserts or deletes rows or columns. The grid changes when the edit is in the sheet. Returns whether it was sent. */
	restructure(change: StructureEdit): boolean {
		if (!this.client.hello) return false;
		this.client.operate([change]).catch(() => {});
		this.report();
		return true;
	}

	// ---- locks and selections ----

	/** The user opened the editor of a cell (null: closed it). Requests its lock without waiting for it. */
	setEditing(place: Place | null): void {
		const before = this.editing;
		if (before && place && before.row === place.row && before.col === place.col) return;
		this.editing = place;
		if (!this.client.hello || !this.canEdit) return;
		const base = this.client.replica.seq;
		if (before) this.client.send({ t: 'unlock', ...before, base });
		if (place) this.lock(place);
	}

	private lock(place: Place): void {
		this.renewed = Date.now();
		this.client.send({ t: 'lock', row: place.row, col: place.col, base: this.client.replica.seq });
	}

	/** The name of the user who is editing a cell. */
	holderOf({ row, col }: Place): string | null {
		const lock = this.locks.get(keyOf(row, col));
		return lock ? this.nameOf(lock) : null;
	}

	private nameOf({ session, uid }: { session: number; uid: number }): string {
		return this.peers.get(session) ?? this.names.get(uid) ?? '…';
	}

	select(range: Range): void {
		this.cursor = range;
		this.cursorTimer ??= setTimeout(() => {
			this.cursorTimer = undefined;
			this.sendCursor();
		}, cursorMs);
	}

	private sendCursor(): void {
		if (this.cursor && this.client.hello) this.client.send({ t: 'cursor', ...this.cursor, base: this.client.replica.seq });
	}

	private marksChanged(): void {
		if (this.marksDue) return;
		this.marksDue = true;
		(this.options.schedule ?? nextFrame)(() => {
			this.marksDue = false;
			const marks: Mark[] = [];
			for (const lock of this.locks.values()) {
				const { row, col, session, uid } = lock;
				if (!this.peers.has(session) && !this.names.has(uid)) this.ask(uid);
				marks.push({ row, col, toRow: row, toCol: col, session, name: this.nameOf(lock), lock: true });
			}
			for (const { session, ...range } of this.cursors.values()) {
				const name = this.peers.get(session);
				const edits = marks.some((mark) => mark.lock && mark.session === session);
				if (name !== undefined && !edits) marks.push({ ...range, session, name, lock: false });
			}
			this.events.onMarks(marks, [...this.peers.values()]);
		});
	}

	private ask(uid: number): void {
		if (this.asked.has(uid) || uid === 0) return;
		this.asked.add(uid);
		this.client.send({ t: 'who', uid });
	}

	private moved(change: StructureEdit): void {
		this.structured = true;
		this.undoStack.move(change);
		if (this.editing) this.editing = movePlace(this.editing, change) ?? null;
		const locks = [...this.locks.values()].flatMap((lock) => {
			const place = movePlace(lock, change);
			return place ? [{ ...lock, ...place }] : [];
		});
		this.locks = new Map(locks.map((lock) => [keyOf(lock.row, lock.col), lock]));
		for (const [session, cursor] of this.cursors) {
			const range = moveRange(cursor, change);
			if (range) this.cursors.set(session, { ...range, session });
			else this.cursors.delete(session);
		}
		this.events.onMove(change);
		this.marksChanged();
	}

	// ---- messages ----

	private receive(message: ServerMessage): void {
		switch (message.t) {
			case 'hello':
				this.greeted(message);
				break;
			case 'edits':
				this.structured = false;
				break;
			case 'block':
				// The first screen is there: read the rest.
				if (message.more || !this.rest) break;
				this.client.load(this.rest, wholeSlot);
				this.rest = null;
				break;
			case 'lock': {
				const { t: _t, ...lock } = message;
				const own = lock.session === this.client.hello?.session;
				if (own || (lock.session === 0 && lock.uid === 0)) this.locks.delete(keyOf(lock.row, lock.col));
				else this.locks.set(keyOf(lock.row, lock.col), lock);
				this.marksChanged();
				break;
			}
			case 'denied':
				this.events.onDenied({ row: message.row, col: message.col }, message.reason);
				break;
			case 'peer':
				if (message.here) this.peers.set(message.session, message.name);
				else {
					this.peers.delete(message.session);
					this.cursors.delete(message.session);
				}
				this.names.set(message.uid, message.name);
				this.marksChanged();
				break;
			case 'cursors':
				for (const cursor of message.cursors) if (cursor.session !== this.client.hello?.session) this.cursors.set(cursor.session, cursor);
				this.marksChanged();
				break;
			case 'user':
				this.names.set(message.uid, message.name);
				this.marksChanged();
				break;
			case 'role':
				this.role = message.role;
				this.events.onRole(message.role);
				break;
			case 'held':
				this.held = message.held ? { holder: message.holder, since: Date.now() - message.ms } : null;
				break;
			default:
				break;
		}
		this.silent = 0;
		this.report();
	}

	private greeted(hello: Hello): void {
		this.phase = 'connected';
		this.held = null;
		this.role = hello.role;
		this.peers = new Map(hello.peers.filter(({ session }) => session !== hello.session).map(({ session, name }) => [session, name]));
		for (const { uid, name } of hello.peers) this.names.set(uid, name);
		this.cursors.clear();
		this.locks = new Map(hello.locks.filter(({ session }) => session !== hello.session).map((lock) => [keyOf(lock.row, lock.col), lock]));
		this.events.onHello(hello);
		this.events.onRole(hello.role);
		if (this.editing && this.canEdit) this.lock(this.editing);
		this.sendCursor();
		this.marksChanged();
	}

	/** Cells outside the sheet are empty. The first screen is read first, then the rest, unless the sheet is too large. */
	private restart({ rows, cols }: Hello): void {
		const { replica } = this.client;
		if (rows < maxRows) this.empty({ row: rows, col: 0, toRow: maxRows - 1, toCol: maxCols - 1 });
		if (cols < maxCols) this.empty({ row: 0, col: cols, toRow: maxRows - 1, toCol: maxCols - 1 });
		if (this.grid) this.plan(replica.rows, replica.cols);
	}

	private empty(range: Range): void {
		this.client.replica.know(range);
		this.mirror.fill(range, []);
	}

	private plan(rows: number, cols: number): void {
		this.client.load({ row: 0, col: 0, toRow: Math.min(rows, firstRows) - 1, toCol: Math.min(cols, firstCols) - 1 }, viewSlot);
		this.rest = rows * cols <= mostCells ? { row: 0, col: 0, toRow: rows - 1, toCol: cols - 1 } : null;
	}

	private refused({ edits }: Operation, { reason, row, col }: RefusedError): void {
		this.mirror.release(edits);
		if (reason === 'role') this.events.onRole((this.role = 'viewer'));
		this.events.onRefused(edits, reason, { row, col });
		this.report();
	}

	private closed(code: number, again: boolean): void {
		this.held = null;
		this.locks.clear();
		this.cursors.clear();
		this.peers.clear();
		this.marksChanged();
		this.phase = again ? 'reconnecting' : 'stopped';
		this.report();
		if (again || code === 1000) return;
		if (code === closeCodes.unauthorized) this.events.onTokenEnded();
		else this.events.onStopped(stopCodes.get(code) ?? 'protocol');
	}

	private unreachable(error: unknown): boolean {
		const reason = this.options.stopOf(error);
		this.phase = reason ? 'stopped' : 'reconnecting';
		this.report();
		if (reason === 'token') this.events.onTokenEnded();
		else if (reason) this.events.onStopped(reason);
		return reason === null;
	}

	// ---- state ----

	private tick(): void {
		this.silent = this.client.check();
		if (this.editing && this.canEdit && this.client.hello && Date.now() - this.renewed >= renewLockMs) this.lock(this.editing);
		this.report();
	}

	/** Reports the state once for all messages of an animation frame. */
	private report(): void {
		if (this.reportDue) return;
		this.reportDue = true;
		(this.options.schedule ?? nextFrame)(() => {
			this.reportDue = false;
			this.events.onStatus(this.status());
		});
	}

	private status(): Status {
		const { held } = this;
		const silent = this.phase === 'connected' && this.silent > (held ? heldMs : silentMs);
		return {
			phase: silent ? 'silent' : this.phase,
			unsaved: this.unsaved,
			loading: this.phase === 'connected' && this.grid !== null && (this.rest !== null || !this.client.loaded),
			held: held && { holder: held.holder, seconds: Math.round((Date.now() - held.since) / 1000) },
		};
	}
}
