// session.ts - an open sheet: the connection (v2/client.ts), the grid's mirror, undo, and the user's lock and selection.
//
// It knows no DOM. The page gives it a grid when the size of the sheet is known, and gets its state and its news.
import { SheetClient, type Operation, type Outbox, type RefusedError, type Socket } from '../v2/client';
import { moveContent, movePlace, moveRange, maxCols, maxRows } from '../v2/lines';
import { closeCodes, isCell, isProperty, mayEdit } from '../v2/messages';
import type { CellEdit, Edit, Hello, LoggedStructure, Place, PropertyEdit, Range, Reason, Role, ServerMessage, StructureEdit } from '../v2/messages';
import type { PropertySet } from '../v2/properties';
import { withOwn } from './arrange';
import type { Phase, SessionEvents, Status, StopReason } from './events';
import { propertyChanges } from './property_undo';
import { Mirror, nextFrame, type CellState, type Grid, type Schedule } from './mirror';
import type { Cells, LineMove } from './moving';
import { Presence } from './presence';
import { Restructuring } from './restructure';
import { splitEdits } from './split';
import { hasZone, zoneProperty } from './timezone';
import { editOf, UndoStack, type Change, type Step } from './undo';

/** A grid of which the session also reads cells. */
export interface SessionGrid extends Grid, Cells {
	/** The properties have changed. */
	arrange(): void;
}

export interface SessionOptions {
	sheet: number;
	uid: number;
	token: () => string;
	/** The gateway's address. moved: the one that the last gateway named. */
	locate: (moved: string | null) => Promise<string>;
	/** The reason to stop, if no address was found for good; 'token' if the token has ended. */
	stopOf: (error: unknown) => StopReason | 'token' | null;
	outbox?: Outbox;
	/** The time zone that a sheet without one gets. */
	zone?: string | undefined;
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
/** Before a move is tried again that others have written into. */
const repeatMs = 100;
/** Larger sheets are read as they are scrolled. */
const mostCells = 4194304;
const viewSlot = 0;
const wholeSlot = 1;
const neededSlot = 2;
const firstRows = 120;
const firstCols = 60;

/** The smallest range that contains both. */
const unite = (a: Range, b: Range): Range => ({
	row: Math.min(a.row, b.row),
	col: Math.min(a.col, b.col),
	toRow: Math.max(a.toRow, b.toRow),
	toCol: Math.max(a.toCol, b.toCol),
});

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
	/** What the sheet was when the user began to edit. */
	private began = 0;
	/** The lock of the edited cell was refused. */
	private denied = false;
	private renewed = 0;
	private readonly presence: Presence;
	private cursor: Range | null = null;
	private cursorTimer: ReturnType<typeof setTimeout> | undefined;
	private silent = 0;
	/** The grid is to be arranged in the next frame. */
	private arrangeDue = false;
	/** Whether the sheet had a time zone when the user could edit it, or has been given one. */
	private zoneSettled = false;
	/** The operation that gives it one. */
	private zoneOperation: Operation | undefined;
	/** Whether all cells are read: not until the first screen is there, and not if there are too many. */
	private whole: 'never' | 'later' | 'now' = 'never';
	private readonly restructuring: Restructuring;
	/** Adjacent structure edits of the commit that is being applied: edits that follow rewrite formulas. */
	private structure: StructureEdit[] = [];
	private structureEnded = false;
	private reportDue = false;

	constructor(
		private readonly options: SessionOptions,
		private readonly events: SessionEvents,
	) {
		const grid: Grid = {
			apply: (edits) => this.show(edits),
			fill: (range, cells, skip) => this.grid?.fill(range, cells, skip),
			move: (change) => {
				this.restructuring.before(change);
				this.grid?.move(change);
			},
		};
		this.mirror = new Mirror(
			grid,
			options.schedule ?? nextFrame,
			(edit, uid) => this.written(edit, uid),
			(change) => this.moved(change),
			(edit, uid) => this.undoStack.propertyWritten(edit, uid === options.uid),
		);
		this.client = new SheetClient({
			...{ url: options.locate, sheet: options.sheet, token: options.token, store: this.mirror, retryMs: 250 },
			...(options.outbox && { outbox: options.outbox }),
			...(options.open && { open: options.open }),
			onMessage: (message) => this.receive(message),
			onRestart: (hello) => this.restart(hello),
			onDetached: ({ edits }) => this.mirror.release(edits),
			onFinished: (operation) => {
				// The cells of a structure edit are in the grid only when the sheet has them.
				if (!this.restructuring.finished(operation) && !operation.lost) this.mirror.release(operation.edits);
			},
			onRefused: (operation, refusal) => this.refused(operation, refusal),
			onLost: (deleted, cut) => this.events.onLost(deleted, cut),
			onClose: (code, _reason, again) => this.closed(code, again),
			onUnreachable: (error) => this.unreachable(error),
		});
		this.presence = new Presence(
			(uid) => this.client.send({ t: 'who', uid }),
			options.schedule ?? nextFrame,
			(marks, names) => this.events.onMarks(marks, names),
		);
		this.restructuring = new Restructuring(this.client, options.uid, this.undoStack, () => this.flushed(), {
			onHindered: (reason) => this.events.onHindered(reason),
			onSkipped: (skipped) => this.events.onSkipped(skipped),
			onChange: () => this.changedUndo(),
			later: (run) => setTimeout(run, repeatMs),
		});
	}

	get unsaved(): number {
		return this.client.unacknowledged + this.restructuring.waits;
	}

	/** The edits that are not acknowledged. */
	get unsent(): readonly Edit[] {
		return this.client.waiting.flatMap(({ edits }) => edits);
	}

	get canEdit(): boolean {
		return mayEdit(this.role);
	}

	start(): void {
		this.client.connect();
		this.timers.push(setInterval(() => this.tick(), 1000));
	}

	/** Ends the session; first waits for a moment for what was sent. */
	async stop(): Promise<void> {
		this.timers.forEach(clearInterval);
		clearTimeout(this.cursorTimer);
		this.restructuring.leave();
		this.grid = null;
		for (let i = 0; i < 40 && this.unsaved > 0 && this.client.hello; i++) await new Promise((resolve) => setTimeout(resolve, 50));
		this.client.close();
	}

	/** The page may end at any time: stores a move that waits. */
	store(): void {
		this.restructuring.goOn(true);
	}

	/** There is a new token. */
	resume(): void {
		this.phase = 'reconnecting';
		this.client.connect();
		this.report();
	}

	/** The network is back, or the page was hidden: reconnects or probes at once. */
	wake(networkWasAway = false): void {
		this.mirror.flush();
		this.client.retryNow(networkWasAway);
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

	/**
	 * Whether a command that needs these cells has to wait: they are not all in the grid. They are requested then ('unread'),
	 * unless they are too many ('large').
	 */
	lacks(needed: Range[]): 'unread' | 'large' | null {
		const missing = needed.flatMap((range) => this.client.replica.missing(range) ?? []);
		if (missing.length === 0) return null;
		const range = missing.reduce(unite);
		if ((range.toRow - range.row + 1) * (range.toCol - range.col + 1) > mostCells) return 'large';
		this.client.load(range, neededSlot);
		this.report();
		return 'unread';
	}

	/** The seq of the sheet that the grid shows. */
	get seq(): number {
		return this.client.replica.seq;
	}

	/** The last row and column of the sheet, if not all cells are in the grid. */
	get unreadEnd(): Place | null {
		const { isWhole, rows, cols } = this.client.replica;
		return isWhole ? null : { row: Math.max(rows, 1) - 1, col: Math.max(cols, 1) - 1 };
	}

	/** Cells of the sheet that are not in the grid; null: all are. */
	get unread(): Range | null {
		const { replica } = this.client;
		return replica.missing({ row: 0, col: 0, toRow: Math.max(replica.rows, 1) - 1, toCol: Math.max(replica.cols, 1) - 1 }) ?? null;
	}

	// ---- edits ----

	/** The sheet's properties, with the user's edits that are not in the sheet yet. */
	properties(): PropertySet {
		return withOwn(this.client.replica.properties, this.client.unfinished);
	}

	/** Shows all received edits. The user's command changes the cells that it has read. */
	flush(): void {
		this.mirror.flush();
	}

	/**
	 * The user has changed cells in the grid, and properties. What was written without the cell's lock does not overwrite what
	 * the other user has written meanwhile: the gateway refuses it.
	 */
	changed(changes: Change[], properties: PropertyEdit[] = []): void {
		this.undoStack.push([...this.known(changes), ...propertyChanges(properties, this.properties())]);
		this.send([...changes.map(editOf), ...properties], changes, this.denied ? this.began : undefined);
	}

	/** Writes edits into the grid and the sheet, as one change of the user. seen: as for send(). */
	write(edits: CellEdit[], properties: PropertyEdit[] = [], seen?: number): void {
		const changes = edits.map((edit): Change => {
			const before = this.read(edit.row, edit.col);
			return {
				row: edit.row,
				col: edit.col,
				before,
				after: { content: edit.content ?? before.content, style: edit.style === undefined ? before.style : edit.style },
			};
		});
		this.grid?.apply(edits);
		this.undoStack.push([...this.known(changes), ...propertyChanges(properties, this.properties())]);
		this.send([...edits, ...properties], changes, seen);
	}

	/** Writes edits that were made of what the cells hold now. They do not overwrite what others write meanwhile. */
	rewrite(edits: CellEdit[], properties: PropertyEdit[] = []): void {
		this.write(edits, properties, this.seq);
	}

	undo(): void {
		if (!this.restructuring.step('undo', () => this.undo())) this.apply(this.undoStack.undo((row, col) => this.read(row, col), this.properties()));
	}

	redo(): void {
		if (!this.restructuring.step('redo', () => this.redo())) this.apply(this.undoStack.redo((row, col) => this.read(row, col), this.properties()));
	}

	private apply(step: Step | null): void {
		if (!step) return;
		const { edits, skipped } = step;
		if (edits.length > 0) {
			const cells = edits.filter(isCell);
			const states = cells.map(({ row, col }) => ({ row, col, before: this.read(row, col) }));
			this.grid?.apply(cells);
			this.send(edits, states, this.client.replica.seq);
		}
		this.events.onSkipped(skipped);
		this.changedUndo();
	}

	/** Shows edits, each for itself if one of them cannot be shown. */
	private show(edits: CellEdit[]): void {
		try {
			this.grid?.apply(edits);
		} catch (error) {
			const [first] = edits;
			if (edits.length > 1) edits.forEach((edit) => this.show([edit]));
			else this.events.onUnshown(first!, error);
		}
	}

	private changedUndo(): void {
		this.events.onUndoState(this.undoStack.canUndo, this.undoStack.canRedo);
		this.report();
	}

	private written(edit: CellEdit, uid: number): void {
		this.structureEnded = true;
		if (!this.isRewritten(edit)) this.undoStack.written(edit, uid === this.options.uid);
	}

	/** Whether the structure edits before it have made the database write this: nobody has written another formula. */
	private isRewritten({ row, col, content, style }: CellEdit): boolean {
		if (this.structure.length === 0 || !content?.startsWith('=') || style !== undefined) return false;
		const before = this.grid?.read(row, col).content;
		return this.structure.reduce((text, change) => text && moveContent(text, change), before) === content;
	}

	/** The grid, with all received edits. */
	private flushed(): SessionGrid | null {
		this.flush();
		return this.grid;
	}

	private read(row: number, col: number): CellState {
		return this.flushed()?.read(row, col) ?? { content: '', style: null };
	}

	/** seen: the edits are refused if others have written their cells after this seq. */
	private send(edits: Edit[], states: { row: number; col: number; before: CellState }[], seen?: number): void {
		const parts = splitEdits(edits, this.client.hello?.maxEdits, this.client.hello?.maxBytes);
		for (const { row, col, before } of states) this.mirror.take(row, col, this.isKnown(row, col) ? before : undefined);
		for (const part of parts) this.client.operate(part, seen).catch(() => {});
		if (edits.some(isProperty)) this.grid?.arrange();
		this.changedUndo();
	}

	/** The changes that can be taken back: the former state of a cell that has not been read is unknown. */
	private known(changes: Change[]): Change[] {
		return changes.filter(({ row, col }) => this.isKnown(row, col));
	}

	private isKnown(row: number, col: number): boolean {
		return !this.client.replica.missing({ row, col, toRow: row, toCol: col });
	}

	/** Inserts or deletes rows or columns. The grid changes when the edit is in the sheet. Returns whether it was sent. */
	restructure(change: StructureEdit): boolean {
		return this.restructuring.change(change);
	}

	/** Moves rows or columns, when all edits of the user are in the sheet. Returns false if the page is not connected. */
	moveLines(move: LineMove): boolean {
		return this.restructuring.move(move);
	}

	// ---- locks and selections ----

	/** The user opened the editor of a cell (null: closed it). Requests its lock without waiting for it. */
	setEditing(place: Place | null): void {
		const before = this.editing;
		if (before && place && before.row === place.row && before.col === place.col) return;
		this.editing = place;
		this.denied = false;
		this.began = this.client.replica.seq;
		if (!this.client.hello || !this.canEdit) return;
		const base = this.client.replica.seq;
		if (before) this.client.send({ t: 'unlock', ...before, base });
		if (place) this.lock(place);
	}

	private lock(place: Place): void {
		this.renewed = Date.now();
		this.client.send({ t: 'lock', row: place.row, col: place.col, base: this.client.replica.seq });
	}

	private refuseLock(reason: Reason, row: number, col: number): void {
		const { editing } = this;
		if (reason !== 'locked' || this.denied || editing?.row !== row || editing.col !== col) return;
		this.denied = true;
		this.events.onDenied(editing);
	}

	/** The name of the user who is editing a cell. */
	holderOf(place: Place): string | null {
		return this.presence.holderOf(place);
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

	private moved(change: LoggedStructure): void {
		this.structure = this.structureEnded ? [change] : [...this.structure, change];
		this.structureEnded = false;
		if (this.editing) this.editing = movePlace(this.editing, change) ?? null;
		this.cursor = this.cursor && (moveRange(this.cursor, change) ?? this.cursor);
		this.presence.move(change);
		this.events.onMove(change);
	}

	// ---- messages ----

	private receive(message: ServerMessage): void {
		this.presence.receive(message);
		switch (message.t) {
			case 'hello':
				this.greeted(message);
				break;
			case 'edits':
				// The grid has moved already.
				if (this.structure.length > 0) this.grid?.arrange();
				else if (message.edits.some(isProperty)) this.arrangeSoon();
				if (this.structure.length > 0 && this.whole === 'now') this.readWhole();
				this.structure = [];
				break;
			case 'properties':
				if (!message.more) this.arrangeSoon();
				break;
			case 'block':
				// The first screen is there: read the rest.
				if (message.more || this.whole !== 'later') break;
				this.whole = 'now';
				this.readWhole();
				break;
			case 'denied':
				this.refuseLock(message.reason, message.row, message.col);
				break;
			case 'role':
				this.role = message.role;
				this.events.onRole(message.role);
				break;
			case 'reminders':
				this.events.onReminders();
				break;
			case 'book':
				this.events.onBook();
				break;
			case 'held':
				this.held = message.held ? { holder: message.holder, since: Date.now() - message.ms } : null;
				break;
			default:
				break;
		}
		this.silent = 0;
		// The properties come before all else.
		if (message.t !== 'hello' && message.t !== 'properties') this.settleZone();
		this.restructuring.goOn();
		this.report();
	}

	/** The first editor of a sheet gives it a time zone, once for all. */
	private settleZone(): void {
		const { zone } = this.options;
		if (!zone || this.zoneSettled || !this.canEdit || !this.client.hello) return;
		this.zoneSettled = true;
		if (hasZone(this.properties())) return;
		// The user has not written it, so no other page sends it, or asks what becomes of it.
		this.client.operate([zoneProperty(zone)], this.client.replica.seq, false).catch(() => {});
		this.zoneOperation = this.client.unfinished.at(-1);
	}

	private greeted(hello: Hello): void {
		this.phase = 'connected';
		this.held = null;
		this.role = hello.role;
		this.events.onHello(hello);
		this.events.onRole(hello.role);
		this.events.onReminders();
		if (this.editing && this.canEdit) this.lock(this.editing);
		this.sendCursor();
	}

	/** Cells outside the sheet are empty. The first screen is read first, then the rest, unless the sheet is too large. */
	private restart({ rows, cols }: Hello): void {
		const { replica } = this.client;
		this.restructuring.restart();
		if (rows < maxRows) this.empty({ row: rows, col: 0, toRow: maxRows - 1, toCol: maxCols - 1 });
		if (cols < maxCols) this.empty({ row: 0, col: cols, toRow: maxRows - 1, toCol: maxCols - 1 });
		if (this.grid) this.plan(replica.rows, replica.cols);
		this.arrangeSoon();
	}

	private arrangeSoon(): void {
		if (this.arrangeDue) return;
		this.arrangeDue = true;
		(this.options.schedule ?? nextFrame)(() => {
			this.arrangeDue = false;
			this.grid?.arrange();
		});
	}

	private empty(range: Range): void {
		this.client.replica.know(range);
		this.mirror.fill(range, []);
	}

	private plan(rows: number, cols: number): void {
		this.client.load({ row: 0, col: 0, toRow: Math.min(rows, firstRows) - 1, toCol: Math.min(cols, firstCols) - 1 }, viewSlot);
		this.whole = rows * cols <= mostCells ? 'later' : 'never';
	}

	/** Rows and columns may be inserted meanwhile, and push others out of the range that is being read. */
	private readWhole(): void {
		const { rows, cols } = this.client.replica;
		this.client.load({ row: 0, col: 0, toRow: rows - 1, toCol: cols - 1 }, wholeSlot);
	}

	private refused(operation: Operation, refusal: RefusedError): void {
		const { reason, row, col } = refusal;
		if (operation.edits.some(isProperty)) this.arrangeSoon();
		if (reason === 'role') this.events.onRole((this.role = 'viewer'));
		if (operation === this.zoneOperation) {
			// Somebody else has been faster, there is no room for it, or the role has changed and may come back.
			this.zoneSettled = reason !== 'role';
			return this.report();
		}
		const told = (edits: Edit[]) => this.events.onRefused(edits, reason, { row, col });
		if (!this.restructuring.refused(operation, refusal, () => told([]))) {
			if (!operation.lost) this.mirror.release(operation.edits);
			told(operation.edits);
		}
		this.report();
	}

	private closed(code: number, again: boolean): void {
		this.held = null;
		this.presence.clear();
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
		const loading = this.phase === 'connected' && this.grid !== null && (this.whole === 'later' || !this.client.loaded);
		const silent = this.phase === 'connected' && this.silent >= (held ? heldMs : silentMs);
		return {
			phase: silent ? 'silent' : this.phase,
			unsaved: this.unsaved,
			loading,
			partial: this.phase === 'connected' && !loading && !this.client.replica.isWhole,
			held: held && { holder: held.holder, seconds: Math.round((Date.now() - held.since) / 1000) },
		};
	}
}
