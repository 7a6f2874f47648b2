// client.ts - a client of protocol v2. It authenticates, sends each operation until it is acknowledged, so that it takes
// effect exactly once, and reconnects. Messages of the gateway go to a Replica and to the listener.

import { CodecError, decodeBinary, decodeJson, encodeBinary, encodeJson } from './codec';
import { isGuest, tellGuestsApart } from './guests';
import { newClient } from './identity';
import { isInsert, transform } from './lines';
import {
	type CellEdit,
	type ClientMessage,
	type Edit,
	type Hello,
	type LoggedEdit,
	type Range,
	type Reason,
	type ServerMessage,
	type StructureEdit,
	closeCodes,
	isStructure,
} from './messages';
import { type CellStore, Replica } from './replica';

/** The part of WebSocket that the client uses. */
export interface Socket {
	binaryType: string;
	/** 1: open. A test's socket is always open. */
	readonly readyState?: number;
	onopen: (() => void) | null;
	onmessage: ((event: { data: unknown }) => void) | null;
	onclose: ((event: { code: number; reason: string }) => void) | null;
	send(data: string | Uint8Array<ArrayBuffer>): void;
	close(code?: number): void;
}

export interface ClientOptions {
	/**
	 * ws://host/sheetws, from GET /v2/sheets/ID/route, or a function that is asked for it before each connection. moved: the
	 * address that the last gateway named.
	 */
	url: string | ((moved: string | null) => Promise<string>);
	sheet: number;
	token: () => string;
	encoding?: 'json' | 'binary';
	/** The client's number, which stays the same as long as its queue; 0: read only. */
	client?: number;
	open?: (url: string, protocol: string) => Socket;
	store?: CellStore;
	outbox?: Outbox;
	onMessage?: (message: ServerMessage) => void;
	/** The replica has forgotten all cells. */
	onRestart?: (hello: Hello) => void;
	/** The edits since the operation's base are unknown, so its coordinates do not follow the replica any more. */
	onDetached?: (operation: Operation) => void;
	/** An operation is acknowledged, and its edits are in the replica. */
	onFinished?: (operation: Operation) => void;
	onRefused?: (operation: Operation, refusal: RefusedError) => void;
	/** Others have deleted the cells of these edits, or what their formulas refer to, before the edits were in the sheet. */
	onLost?: (deleted: CellEdit[], cut: CellEdit[]) => void;
	/** again: the client reconnects by itself. */
	onClose?: (code: number, reason: string, again: boolean) => void;
	/** No gateway could be asked for the address. Returns whether to try again. */
	onUnreachable?: (error: unknown) => boolean;
	/** ms before the first reconnection; doubles up to 30 times that. */
	retryMs?: number;
}

/** Stores the unacknowledged operations, so that they outlive the page. */
export interface Outbox {
	/** acked: the highest operation of the client that was acknowledged. */
	put(operation: Operation, client: number, acked: number): void;
	/** Structure edits have moved the edits of these operations, or only `base` has changed. */
	rebase(operations: readonly Operation[], moved: boolean): void;
	/** The operations up to n are settled. */
	settle(n: number): void;
	remove(n: number): void;
}

export class RefusedError extends Error {
	constructor(
		readonly reason: Reason,
		readonly row: number,
		readonly col: number,
	) {
		super(`refused: ${reason}`);
	}
}

export interface Operation {
	n: number;
	/** The seq to which the coordinates of the edits refer. Both follow the edits received. */
	base: number;
	/** The edits since base are unknown: the gateway refuses the operation unless it is already acknowledged. */
	lost: boolean;
	edits: Edit[];
	/** The operation is refused if others have written its cells after this seq, which stays as it is. */
	seen?: number;
	/** The operation ends with the page: it is not in the outbox. */
	brief?: true;
}

interface Pending extends Operation {
	done: (seq: number) => void;
	failed: (error: Error) => void;
}

type EditsMessage = Extract<ServerMessage, { t: 'edits' }>;

/** Close codes after which the client reconnects. */
const retryableCodes = new Set<number>([1001, 1005, 1006, 1011, 1012, 1013, closeCodes.timeout, closeCodes.unknown]);
/** The most cells of a `get`. */
const blockCells = 65536;
/** A connection that is silent for so long is given up, if an answer is due. */
const silentMs = 10000;
/** The same while it is doubtful whether the connection still exists. */
const doubtfulMs = 3000;
/** An idle connection is probed after this time. */
const probeMs = 2000;
/** A page that was not called for so long has slept. */
const sleptMs = 5000;
/** A message that arrives so soon after that may have been sent before. */
const oldMs = 500;

/** How often in a row the client follows a moved sheet without a pause: from the owner to the holder, and back. */
const movesAtOnce = 3;

/** The address in the reason of a close with 4307; null: it is unreadable. */
function addressIn(reason: string): string | null {
	try {
		const { ws } = JSON.parse(reason) as { ws?: unknown };
		return typeof ws === 'string' ? ws : null;
	} catch {
		return null;
	}
}

export class SheetClient {
	readonly replica: Replica;
	client: number;
	hello: Hello | null = null;
	/** Highest operation that was acknowledged. */
	acked = 0;
	private lastOperation = 0;
	private pending: Pending[] = [];
	/** Acknowledged operations whose edits have not been received. */
	private echoing: { operation: Operation; seq: number }[] = [];
	/** Of a guest: edits of unfinished operations that have been received. */
	private readonly echoes = new WeakSet<Edit>();
	private nacks = 0;
	private ranges: { range: Range; asked: boolean }[] = [];
	/** The parts of an incomplete commit. */
	private parts: EditsMessage[] = [];
	/** The last hello was not resumed, and the sheet's properties may follow it. */
	private isJoining = false;
	private socket: Socket | null = null;
	private movedTo: string | null = null;
	private attempts = 0;
	private attempt = 0;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private ended = false;
	/** When a message last arrived, and since when an answer is due (0: none is). */
	private heard = 0;
	private due = 0;
	/** When the page woke up, or the network was back, and nothing new has arrived since then; 0: something has. */
	private doubtful = 0;
	private checked = Date.now();

	constructor(private readonly options: ClientOptions) {
		this.client = options.client ?? newClient();
		this.replica = new Replica(options.store);
	}

	/** Number of operations that are not acknowledged. */
	get unacknowledged(): number {
		return this.pending.length;
	}

	/** The unacknowledged operations. */
	get waiting(): readonly Operation[] {
		return this.pending;
	}

	/** The unacknowledged operations that are in the outbox. */
	private get kept(): Pending[] {
		return this.pending.filter(({ brief }) => !brief);
	}

	/** The operations whose edits are not in the replica, in their order. */
	get unfinished(): Operation[] {
		return [...this.echoing.map(({ operation }) => operation), ...this.pending];
	}

	/** Goes on with the operations of an earlier page, which had received everything up to `seq`. */
	restore(operations: readonly Operation[], seq: number, acked: number): void {
		this.replica.seq = seq;
		this.acked = acked;
		this.pending = operations.map((operation) => ({ ...operation, done: () => {}, failed: () => {} }));
		this.lastOperation = operations.at(-1)?.n ?? acked;
	}

	connect(): void {
		clearTimeout(this.timer);
		const attempt = ++this.attempt;
		const { url } = this.options;
		if (typeof url === 'string') this.openSocket(this.movedTo ?? url);
		else
			url(this.movedTo).then(
				(found) => attempt === this.attempt && !this.ended && this.openSocket(found),
				(error: unknown) => {
					if (attempt !== this.attempt || this.ended) return;
					this.movedTo = null;
					if (this.options.onUnreachable?.(error) !== false) this.retryLater();
				},
			);
	}

	private openSocket(url: string): void {
		const open = this.options.open ?? ((to, protocol) => new WebSocket(to, protocol) as unknown as Socket);
		let socket: Socket;
		try {
			socket = open(`${url}?fid=${this.options.sheet}`, 'sheet.v2');
		} catch (error) {
			this.closed(1006, String(error)); // the browser does not accept the address
			return;
		}
		this.socket = socket;
		this.hello = null;
		this.nacks = 0;
		this.due = this.heard = Date.now();
		this.doubtful = 0;
		socket.binaryType = 'arraybuffer';
		socket.onopen = () =>
			this.send({
				t: 'hello',
				v: 5,
				token: this.options.token(),
				client: this.client,
				acked: this.acked,
				// What the gateway would resume lacks properties that have not arrived.
				since: this.isJoining ? 0 : this.replica.seq,
			});
		socket.onmessage = ({ data }) => {
			if (socket === this.socket) this.receive(data);
		};
		socket.onclose = ({ code, reason }) => {
			if (socket === this.socket) this.closed(code, reason);
		};
	}

	close(): void {
		this.ended = true;
		this.attempt++;
		clearTimeout(this.timer);
		this.socket?.close(1000);
	}

	/** Reconnects at once if the client waits to; else asks for an answer. doubtful: the network was away. */
	retryNow(doubtful = false): void {
		if (doubtful) this.doubtful = Date.now();
		this.check();
		if (!this.socket && !this.ended && this.timer !== undefined) this.connect();
		this.probe();
	}

	/**
	 * Milliseconds for which the gateway has owed an answer. Probes an idle connection, and gives up a silent one. Called
	 * each second.
	 */
	check(): number {
		const now = Date.now();
		if (now - this.checked > sleptMs) this.doubtful = now;
		this.checked = now;
		if (!this.socket) return 0;
		// The silence before the probe counts, except what the page has slept through.
		if (this.due === 0 && now - this.heard >= probeMs) this.probe(this.doubtful ? now : Math.max(this.heard, now - probeMs));
		const silent = this.due === 0 ? 0 : now - Math.max(this.due, this.heard);
		if (silent > (this.doubtful ? doubtfulMs : silentMs)) {
			const socket = this.socket;
			this.closed(1006, 'silent');
			socket.close();
		}
		return silent;
	}

	/** Asks for an answer, which the gateway gives at once. */
	probe(due = Date.now()): void {
		if (!this.hello) return;
		this.due ||= due;
		this.send({ t: 'who', uid: this.hello.uid });
	}

	send(message: ClientMessage): void {
		// A socket that is being closed accepts nothing. Operations are sent again.
		if ((this.socket?.readyState ?? 1) !== 1) return;
		this.socket?.send(this.options.encoding === 'binary' ? encodeBinary(message) : encodeJson(message));
	}

	/**
	 * Requests a range and keeps its cells known from then on, whatever rows and columns it has. A slot, from 0, has one
	 * range at a time; by default the range gets the next one.
	 */
	load(range: Range, slot = this.ranges.length): void {
		this.ranges[slot] = { range, asked: this.ranges[slot]?.asked ?? false };
		this.askMissing();
	}

	/** Requests the unknown part of the ranges, such as cells that moved in because rows were deleted. */
	private askMissing(): void {
		if (!this.hello) return;
		this.ranges.forEach((entry, i) => {
			const missing = entry.asked || this.replica.waits(i + 1) ? undefined : this.replica.missing(entry.range);
			if (!missing) return;
			entry.asked = true;
			const cols = Math.min(missing.toCol - missing.col + 1, blockCells);
			const toCol = missing.col + cols - 1;
			const toRow = Math.min(missing.toRow, missing.row + Math.floor(blockCells / cols) - 1);
			this.send({ t: 'get', id: i + 1, row: missing.row, col: missing.col, toRow, toCol });
		});
	}

	/** Whether all cells of the requested ranges are known. */
	get loaded(): boolean {
		return this.ranges.every(({ range }) => !this.replica.missing(range));
	}

	/**
	 * Resolves to the seq at which the operation is durable. Its coordinates refer to the current replica and, after a
	 * structure edit of the operation, to the result of that. seen: it is refused if others have written its cells after this seq.
	 * isKept: it is in the outbox.
	 */
	operate(edits: Edit[], seen?: number, isKept = true): Promise<number> {
		return new Promise((done, failed) => {
			const operation: Pending = {
				n: ++this.lastOperation,
				base: this.replica.seq,
				lost: false,
				edits,
				...(seen !== undefined && { seen }),
				...(!isKept && { brief: true }),
				done,
				failed,
			};
			this.pending.push(operation);
			if (isKept) this.options.outbox?.put(operation, this.client, this.acked);
			if (this.hello) this.sendOperation(operation);
		});
	}

	private sendOperation({ n, base, seen, edits }: Pending): void {
		this.due ||= Date.now();
		this.send({ t: 'op', n, nacks: this.nacks, base, ...(seen !== undefined && { seen }), edits });
	}

	private receive(data: unknown): void {
		let message: ServerMessage;
		try {
			message = typeof data === 'string' ? decodeJson(data) : decodeBinary(new Uint8Array(data as ArrayBuffer));
		} catch (error) {
			if (!(error instanceof CodecError)) throw error;
			// What is shown may be wrong from here on.
			const { socket } = this;
			this.closed(closeCodes.malformed, error.message);
			socket?.close(1000);
			return;
		}
		this.heard = Date.now();
		if (this.heard - this.doubtful > oldMs) this.doubtful = 0;
		if (message.t !== 'properties') this.isJoining = message.t === 'hello' && !message.resumed;
		switch (message.t) {
			case 'hello':
				this.greeted(message);
				break;
			case 'edits':
				this.received(message);
				return;
			case 'block':
				this.replica.block(message);
				if (message.more) break;
				if (this.ranges[message.id - 1]) this.ranges[message.id - 1]!.asked = false;
				this.askMissing();
				break;
			case 'properties':
				message.properties.forEach((property) => this.replica.properties.put(property));
				this.isJoining = message.more;
				break;
			case 'ack':
				this.settle(message.n, message.seq);
				break;
			case 'nack':
				this.refused(message);
				break;
		}
		if (this.pending.length === 0 && this.hello) this.due = 0;
		this.options.onMessage?.(message);
	}

	/** Applies a commit when all of it has arrived. */
	private received(message: EditsMessage): void {
		this.parts.push(message);
		if (message.more) return;
		const parts = this.parts.splice(0);
		const commit = parts.length === 1 ? message : { ...message, edits: parts.flatMap(({ edits }) => edits) };
		const whole = isGuest(this.hello?.uid ?? 0) ? { ...commit, edits: this.toldApart(commit.edits) } : commit;
		this.replica.edits(whole);
		this.follow(whole);
		this.options.onMessage?.(whole);
	}

	private toldApart(edits: LoggedEdit[]): LoggedEdit[] {
		const sent = this.unfinished.flatMap((operation) => operation.edits);
		return tellGuestsApart(edits, this.hello!.uid, sent, this.echoes);
	}

	private greeted(hello: Hello): void {
		this.hello = hello;
		this.attempts = 0;
		this.due = 0;
		this.parts = [];
		if (!hello.resumed) this.restart(hello);
		this.replica.cut();
		for (const entry of this.ranges) entry.asked = false;
		this.askMissing();
		this.lastOperation = Math.max(this.lastOperation, hello.landed);
		this.settle(hello.landed, hello.seq);
		this.sendAgain();
	}

	private restart(hello: Hello): void {
		const { seq, rows, cols } = hello;
		for (const operation of this.pending) {
			if (operation.lost || operation.base === 0 || operation.base === seq) continue;
			operation.lost = true;
			this.options.onDetached?.(operation);
		}
		this.replica.reset(seq);
		Object.assign(this.replica, { rows, cols });
		this.options.onRestart?.(hello);
		this.echoing.splice(0).forEach(({ operation }) => this.options.onFinished?.(operation));
	}

	/** Moves the coordinates of the unacknowledged operations by these edits. */
	private follow({ seq, edits }: EditsMessage): void {
		const changes = edits.filter(isStructure);
		const deletes = changes.some((change) => change.uid !== this.hello?.uid && !isInsert(change));
		for (const operation of this.unfinished) {
			if (operation.lost || operation.base === 0 || seq <= operation.base) continue;
			if (deletes) this.reportLost(operation, changes);
			if (changes.length > 0) operation.edits = transform(operation.edits, changes);
			operation.base = seq;
		}
		if (this.kept.length > 0) this.options.outbox?.rebase(this.kept, changes.length > 0);
		this.echoing = this.echoing.filter(({ operation, seq: last }) => {
			if (last <= seq) this.options.onFinished?.(operation);
			return last > seq;
		});
		this.askMissing();
	}

	private reportLost({ edits }: Operation, changes: StructureEdit[]): void {
		if (!this.options.onLost || edits.some(isStructure)) return;
		const deleted: CellEdit[] = [];
		const cut: CellEdit[] = [];
		for (const edit of edits as CellEdit[]) {
			if (!edit.content) continue;
			const [moved] = transform([edit], changes) as CellEdit[];
			if (!moved) deleted.push(edit);
			else if (moved.content!.split('#REF!').length > edit.content.split('#REF!').length) cut.push({ ...moved, content: edit.content });
		}
		if (deleted.length + cut.length > 0) this.options.onLost(deleted, cut);
	}

	/** Sends the unacknowledged operations again. One whose edits have all lost their cells is done. */
	private sendAgain(): void {
		const empty = this.pending.filter(({ edits }) => edits.length === 0);
		this.pending = this.pending.filter(({ edits }) => edits.length > 0);
		empty.forEach((operation) => {
			this.options.outbox?.remove(operation.n);
			this.options.onFinished?.(operation);
			operation.done(this.replica.seq);
		});
		this.pending.forEach((operation) => this.sendOperation(operation));
	}

	/** All operations up to n are acknowledged. */
	private settle(n: number, seq: number): void {
		const acknowledged = this.pending.filter((operation) => operation.n <= n);
		this.pending = this.pending.filter((operation) => operation.n > n);
		this.acked = Math.max(this.acked, n);
		if (this.pending.length > 0) this.due = Date.now();
		if (acknowledged.length > 0) this.options.outbox?.settle(n);
		for (const operation of acknowledged) {
			if (seq > this.replica.seq) this.echoing.push({ operation, seq });
			else this.options.onFinished?.(operation);
			operation.done(seq);
		}
	}

	/** The gateway ignored the operations after the refused one, so they are sent again. */
	private refused({ n, reason, row, col }: Extract<ServerMessage, { t: 'nack' }>): void {
		const failed = this.pending.find((operation) => operation.n === n);
		this.pending = this.pending.filter((operation) => operation.n !== n);
		this.nacks++;
		this.sendAgain();
		if (failed) {
			const refusal = new RefusedError(reason, row, col);
			this.options.onRefused?.(failed, refusal);
			failed.failed(refusal);
		}
		this.options.outbox?.remove(n);
	}

	private closed(code: number, reason: string): void {
		this.socket = null;
		this.hello = null;
		this.due = 0;
		if (code === closeCodes.moved) this.movedTo = addressIn(reason);
		else if (code === closeCodes.unknown) this.renumber();
		const again = !this.ended && (code === closeCodes.moved || retryableCodes.has(code));
		this.options.onClose?.(code, reason, again);
		if (!again) return;
		if (this.attempts > 0 && code !== closeCodes.moved) this.movedTo = null; // the gateway that it moved to is gone
		if (code === closeCodes.moved && this.attempts < movesAtOnce) this.retryLater(0);
		else if (code === 1012)
			this.retryLater(1); // a gateway is there, and the sheet will be served soon
		else this.retryLater();
	}

	/** pause: in units of retryMs. */
	private retryLater(pause = 2 ** Math.min(this.attempts, 3)): void {
		this.attempts++;
		this.timer = setTimeout(() => this.connect(), (this.options.retryMs ?? 1000) * pause);
	}

	/** The database does not know this client any more: its operations are those of a new one. */
	private renumber(): void {
		this.client = newClient();
		this.acked = 0;
		this.kept.forEach((operation) => this.options.outbox?.put(operation, this.client, this.acked));
	}
}
