// client.ts - a client of protocol v2. It authenticates, sends each operation until it is acknowledged, so that it takes
// effect exactly once, and reconnects. Messages of the gateway go to a Replica and to the listener.

import { decodeBinary, decodeJson, encodeBinary, encodeJson } from './codec';
import { transform } from './lines';
import { type ClientMessage, type Edit, type Hello, type Range, type Reason, type ServerMessage, type StructureEdit, closeCodes, isStructure } from './messages';
import { Replica } from './replica';

/** The part of WebSocket that the client uses. */
export interface Socket {
	binaryType: string;
	onopen: (() => void) | null;
	onmessage: ((event: { data: unknown }) => void) | null;
	onclose: ((event: { code: number; reason: string }) => void) | null;
	send(data: string | Uint8Array<ArrayBuffer>): void;
	close(code?: number): void;
}

export interface ClientOptions {
	/** ws://host/sheetws, from GET /v2/sheets/ID/route. */
	url: string;
	sheet: number;
	token: () => string;
	encoding?: 'json' | 'binary';
	/** The client's number, which stays the same as long as its queue; 0: read only. */
	client?: number;
	open?: (url: string, protocol: string) => Socket;
	onMessage?: (message: ServerMessage) => void;
	onClose?: (code: number, reason: string) => void;
	/** ms before the first reconnection; doubles up to 30 times that. */
	retryMs?: number;
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

interface Pending {
	n: number;
	/** The seq to which the coordinates of the edits refer. Both follow the edits received. */
	base: number;
	/** The edits since base are unknown: the gateway refuses the operation unless it is already acknowledged. */
	lost: boolean;
	edits: Edit[];
	done: (seq: number) => void;
	failed: (error: Error) => void;
}

/** Close codes after which the client reconnects. */
const retryableCodes = new Set([1001, 1005, 1006, 1011, 1012, 1013]);

const newClient = (): number => {
	const [high, low] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number];
	return (high >>> 11) * 2 ** 32 + low + 1;
};

export class SheetClient {
	readonly replica = new Replica();
	readonly client: number;
	hello: Hello | null = null;
	/** Highest operation that was acknowledged. */
	acked = 0;
	private lastOperation = 0;
	private pending: Pending[] = [];
	private nacks = 0;
	private ranges: { range: Range; asked: boolean }[] = [];
	/** Structure edits of a batch whose other parts are still to come. */
	private changes: StructureEdit[] = [];
	private socket: Socket | null = null;
	private url: string;
	private attempts = 0;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private ended = false;

	constructor(private readonly options: ClientOptions) {
		this.client = options.client ?? newClient();
		this.url = options.url;
	}

	/** Number of operations that are not acknowledged. */
	get unacknowledged(): number {
		return this.pending.length;
	}

	connect(): void {
		const open = this.options.open ?? ((url, protocol) => new WebSocket(url, protocol) as unknown as Socket);
		const socket = open(`${this.url}?fid=${this.options.sheet}`, 'sheet.v2');
		this.socket = socket;
		this.hello = null;
		this.nacks = 0;
		socket.binaryType = 'arraybuffer';
		socket.onopen = () =>
			this.send({
				t: 'hello',
				v: 2,
				token: this.options.token(),
				client: this.client,
				acked: this.acked,
				since: this.replica.seq,
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
		clearTimeout(this.timer);
		this.socket?.close(1000);
	}

	send(message: ClientMessage): void {
		this.socket?.send(this.options.encoding === 'binary' ? encodeBinary(message) : encodeJson(message));
	}

	/** Sends values of formulas, computed from the current replica, to the others. They are not acknowledged. */
	calc(cells: { row: number; col: number; content: string }[]): void {
		if (this.hello && this.replica.seq > 0) this.send({ t: 'calc', seq: this.replica.seq, cells });
	}

	/** Requests a range and keeps its cells known from then on, whatever rows and columns it has. */
	load(range: Range): void {
		this.ranges.push({ range, asked: false });
		this.askMissing();
	}

	/** Requests the unknown part of the ranges, such as cells that moved in because rows were deleted. */
	private askMissing(): void {
		if (!this.hello) return;
		this.ranges.forEach((entry, i) => {
			const missing = entry.asked || this.replica.waits(i + 1) ? undefined : this.replica.missing(entry.range);
			if (!missing) return;
			entry.asked = true;
			this.send({ t: 'get', id: i + 1, ...missing });
		});
	}

	/**
	 * Resolves to the seq at which the operation is durable. Its coordinates refer to the current replica and, after a
	 * structure edit of the operation, to the result of that.
	 */
	operate(edits: Edit[]): Promise<number> {
		return new Promise((done, failed) => {
			const operation = { n: ++this.lastOperation, base: this.replica.seq, lost: false, edits, done, failed };
			this.pending.push(operation);
			if (this.hello) this.sendOperation(operation);
		});
	}

	private sendOperation({ n, base, edits }: Pending): void {
		this.send({ t: 'op', n, nacks: this.nacks, base, edits });
	}

	private receive(data: unknown): void {
		const message = typeof data === 'string' ? decodeJson(data) : decodeBinary(new Uint8Array(data as ArrayBuffer));
		switch (message.t) {
			case 'hello':
				this.greeted(message);
				break;
			case 'edits':
				this.replica.edits(message);
				this.follow(message);
				break;
			case 'block':
				this.replica.block(message);
				if (message.more) break;
				if (this.ranges[message.id - 1]) this.ranges[message.id - 1]!.asked = false;
				this.askMissing();
				break;
			case 'calc':
				this.replica.calc(message);
				break;
			case 'ack':
				this.settle(message.n, message.seq);
				break;
			case 'nack':
				this.refused(message);
				break;
		}
		this.options.onMessage?.(message);
	}

	private greeted(hello: Hello): void {
		this.hello = hello;
		this.attempts = 0;
		if (!hello.resumed) this.restart(hello);
		this.replica.cut();
		this.changes = [];
		for (const entry of this.ranges) entry.asked = false;
		this.askMissing();
		this.lastOperation = Math.max(this.lastOperation, hello.landed);
		this.settle(hello.landed, hello.seq);
		this.sendAgain();
	}

	private restart({ seq, rows, cols }: Hello): void {
		for (const operation of this.pending) operation.lost = operation.base !== 0 && operation.base !== seq;
		this.replica.reset(seq);
		Object.assign(this.replica, { rows, cols });
	}

	/** Moves the coordinates of the unacknowledged operations by these edits. */
	private follow({ seq, more, edits }: Extract<ServerMessage, { t: 'edits' }>): void {
		this.changes.push(...edits.filter(isStructure));
		if (more) return;
		const changes = this.changes.splice(0);
		for (const operation of this.pending) {
			if (operation.lost || operation.base === 0 || seq <= operation.base) continue;
			if (changes.length > 0) operation.edits = transform(operation.edits, changes);
			operation.base = seq;
		}
		this.askMissing();
	}

	/** Sends the unacknowledged operations again. One whose edits have all lost their cells is done. */
	private sendAgain(): void {
		const empty = this.pending.filter(({ edits }) => edits.length === 0);
		this.pending = this.pending.filter(({ edits }) => edits.length > 0);
		empty.forEach((operation) => operation.done(this.replica.seq));
		this.pending.forEach((operation) => this.sendOperation(operation));
	}

	/** All operations up to n are acknowledged. */
	private settle(n: number, seq: number): void {
		const acknowledged = this.pending.filter((operation) => operation.n <= n);
		this.pending = this.pending.filter((operation) => operation.n > n);
		this.acked = Math.max(this.acked, n);
		acknowledged.forEach((operation) => operation.done(seq));
	}

	/** The gateway ignored the operations after the refused one, so they are sent again. */
	private refused({ n, reason, row, col }: Extract<ServerMessage, { t: 'nack' }>): void {
		const failed = this.pending.find((operation) => operation.n === n);
		this.pending = this.pending.filter((operation) => operation.n !== n);
		this.nacks++;
		this.sendAgain();
		failed?.failed(new RefusedError(reason, row, col));
	}

	private closed(code: number, reason: string): void {
		this.socket = null;
		this.hello = null;
		this.options.onClose?.(code, reason);
		if (code === closeCodes.moved) this.url = (JSON.parse(reason) as { ws: string }).ws;
		else if (this.ended || !retryableCodes.has(code)) {
			this.pending.splice(0).forEach((operation) => operation.failed(new Error(`closed: ${code} ${reason}`)));
			return;
		}
		if (this.ended) return;
		if (this.attempts > 0 && code !== closeCodes.moved) this.url = this.options.url; // the gateway that it moved to is gone
		const first = this.options.retryMs ?? 1000;
		this.timer = setTimeout(() => this.connect(), Math.min(first * 2 ** this.attempts++, first * 30));
	}
}
