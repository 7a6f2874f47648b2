// convergence.test.ts - several people edit a sheet at random, over connections that delay, merge, split and break. All grids
// end equal to the cells of the server, which is a table and its log.
import { describe, expect, test, vi } from 'vitest';
import type { Socket } from '../src/v2/client';
import { editToTuple, tupleToEdit } from '../src/v2/edits';
import { transform } from '../src/v2/lines';
import { type ClientMessage, type Edit, isProperty, isStructure } from '../src/v2/messages';
import type { CellState } from '../src/sheet/mirror';
import { Person, randomOf, type Random } from './person';

interface Commit {
	seq: number;
	uid: number;
	edits: Edit[];
}

const empty = (): CellState => ({ content: '', style: null });

/** Cells in rows, as the database has them after a log. */
class Table {
	rows: CellState[][];

	constructor(rows: number, readonly width: { cols: number }) {
		this.rows = Array.from({ length: rows }, () => Array.from({ length: width.cols }, empty));
	}

	apply(edit: Edit): void {
		if (isProperty(edit)) return;
		if (!isStructure(edit)) {
			const { row, col, content, style } = edit;
			while (this.rows.length <= row) this.rows.push(Array.from({ length: this.width.cols }, empty));
			for (; this.width.cols <= col; this.width.cols++) this.rows.forEach((cells) => cells.push(empty()));
			const cell = this.rows[row]![col]!;
			if (content !== undefined) cell.content = content;
			if (style !== undefined) cell.style = style;
			return;
		}
		const { kind, at, n } = edit;
		const ofRows = kind.endsWith('Rows');
		if (at >= (ofRows ? this.rows.length : this.width.cols)) return;
		if (ofRows && kind.startsWith('insert')) this.rows.splice(at, 0, ...Array.from({ length: n }, () => Array.from({ length: this.width.cols }, empty)));
		else if (ofRows) this.rows.splice(at, n);
		else if (kind.startsWith('insert')) this.rows.forEach((cells) => cells.splice(at, 0, ...Array.from({ length: n }, empty)));
		else this.rows.forEach((cells) => cells.splice(at, n));
		if (!ofRows) this.width.cols = kind.startsWith('insert') ? this.width.cols + n : Math.max(at, this.width.cols - n);
	}

	contents(): Record<string, string> {
		return Object.fromEntries(this.rows.flatMap((cells, row) => cells.flatMap(({ content }, col) => (content ? [[`${row},${col}`, content]] : []))));
	}

	styles(): Record<string, unknown> {
		return Object.fromEntries(this.rows.flatMap((cells, row) => cells.flatMap(({ style }, col) => (style ? [[`${row},${col}`, style]] : []))));
	}
}

/** One connection: messages wait in both directions until the test delivers them. */
class Connection implements Socket {
	binaryType = '';
	onopen: (() => void) | null = null;
	onmessage: ((event: { data: unknown }) => void) | null = null;
	onclose: ((event: { code: number; reason: string }) => void) | null = null;
	up: ClientMessage[] = [];
	down: object[] = [];
	opened = false;
	nacks = 0;
	client = 0;
	/** The seq up to which edits are in `down`, and that of a hello that resumed nothing. */
	told = 0;
	floor = 0;
	joined = false;

	constructor(readonly uid: number) {}

	send(data: string | Uint8Array): void {
		const message = JSON.parse(data as string) as ClientMessage;
		if (message.t === 'op') message.edits = message.edits.map(tupleToEdit as never);
		this.up.push(message);
	}
	close(): void {}
}

class Server {
	table = new Table(10, { cols: 8 });
	log: Commit[] = [];
	seq = 1;
	landed = new Map<number, number>();
	connections: Connection[] = [];

	constructor(private readonly random: Random) {}

	open(uid: number): Connection {
		const connection = new Connection(uid);
		this.connections.push(connection);
		return connection;
	}

	/** Delivers the next message of a connection, in a direction. */
	deliver(connection: Connection): void {
		if (!connection.opened) {
			connection.opened = true;
			connection.onopen?.();
		} else if (connection.down.length > 0 && (connection.up.length === 0 || this.random(2) === 0)) connection.onmessage?.({ data: JSON.stringify(connection.down.shift()) });
		else if (connection.up.length > 0) this.receive(connection, connection.up.shift()!);
		else this.tell(connection, false);
	}

	cut(connection: Connection): void {
		this.connections = this.connections.filter((other) => other !== connection);
		connection.onclose?.({ code: 1006, reason: '' });
	}

	private receive(connection: Connection, message: ClientMessage): void {
		if (message.t === 'hello') this.greet(connection, message);
		else if (message.t === 'op') this.operate(connection, message);
		else if (message.t === 'who') connection.down.push({ t: 'user', uid: message.uid, name: 'somebody' });
		else if (message.t === 'get') {
			this.tell(connection, true);
			const { id, row, col, toRow, toCol } = message;
			const cells = this.table.rows.flatMap((line, r) => line.flatMap(({ content, style }, c) =>
				(content || style) && r >= row && r <= toRow && c >= col && c <= toCol ? [editToTuple({ row: r, col: c, content, style })] : []));
			connection.down.push({ t: 'block', id, row, col, toRow, toCol, seq: this.seq, more: false, cells });
		}
	}

	private greet(connection: Connection, { client, since }: Extract<ClientMessage, { t: 'hello' }>): void {
		const resumed = since > 0 && this.random(5) > 0;
		Object.assign(connection, { client, joined: true, told: resumed ? since : this.seq, floor: resumed || since === 0 ? 0 : this.seq });
		connection.down.push({
			...{ t: 'hello', v: 2, session: this.connections.indexOf(connection) + 1, uid: connection.uid, name: 's', role: 'editor', seq: connection.told, epoch: 1 },
			...{ rows: this.table.rows.length, cols: this.table.width.cols, landed: this.landed.get(client) ?? 0, resumed, retention: 604800, lease: 30 },
			...{ maxEdits: 16384, maxBytes: 1048576, peers: [], locks: [] },
		});
		this.tell(connection, true);
	}

	/** Puts the commits that the connection has not got into its messages: one for each, or merged, or in parts. */
	private tell(connection: Connection, all: boolean): void {
		if (!connection.joined) return;
		const commits = this.log.filter(({ seq }) => seq > connection.told);
		while (commits.length > 0) {
			const taken = commits.splice(0, 1 + this.random(4));
			const { seq } = taken.at(-1)!;
			const edits = taken.flatMap((commit) => commit.edits.map((edit) => [commit.uid, ...editToTuple(edit)]));
			const part = this.random(edits.length + 1);
			if (part > 0) connection.down.push({ t: 'edits', seq, more: part < edits.length, edits: edits.slice(0, part) });
			if (part < edits.length) connection.down.push({ t: 'edits', seq, more: false, edits: edits.slice(part) });
			connection.told = seq;
			if (!all) return;
		}
	}

	private operate(connection: Connection, { n, nacks, base, edits }: Extract<ClientMessage, { t: 'op' }>): void {
		if (nacks !== connection.nacks) return;
		if (n <= (this.landed.get(connection.client) ?? 0)) {
			connection.down.push({ t: 'ack', n, seq: this.seq });
			return;
		}
		const stale = base !== 0 && base < connection.floor;
		if (stale || this.random(15) === 0) {
			connection.nacks++;
			connection.down.push({ t: 'nack', n, reason: stale ? 'base' : 'locked', row: 0, col: 0, block: false });
			return;
		}
		const changes = base === 0 ? [] : this.log.filter(({ seq }) => seq > base).flatMap((commit) => commit.edits.filter(isStructure));
		const late = transform(edits, changes);
		this.landed.set(connection.client, n);
		if (late.length > 0) {
			this.seq += late.length;
			this.log.push({ seq: this.seq, uid: connection.uid, edits: late });
			late.forEach((edit) => this.table.apply(edit));
		}
		// The acknowledgement comes before the edits, or behind them.
		if (this.random(2) === 0) this.tell(connection, true);
		connection.down.push({ t: 'ack', n, seq: this.seq });
	}
}

const stylesOf = (cells: Map<string, CellState>) => Object.fromEntries([...cells].flatMap(([key, { style }]) => (style ? [[key, style]] : [])));

async function converge(seed: number, steps: number): Promise<{ server: Server; people: Person[] }> {
	const random = randomOf(seed);
	const server = new Server(random);
	const people = ['a', 'b', 'c', 'd'].map((name, i) => new Person({ name, uid: i + 1, sheet: 7, url: 'ws://server', token: '', open: () => server.open(i + 1), random }));
	for (let step = 0; step < steps; step++) {
		const connection = server.connections[random(server.connections.length)];
		const what = random(100);
		if (what < 30) people[random(people.length)]!.act(server.table.rows.length, server.table.width.cols);
		else if (what === 30 && connection) server.cut(connection);
		else if (what < 40) await vi.advanceTimersByTimeAsync(random(400));
		else if (connection) server.deliver(connection);
	}
	for (let round = 0; round < 400; round++) {
		await vi.advanceTimersByTimeAsync(1000);
		for (let i = 0; i < 200; i++) server.connections.forEach((connection) => server.deliver(connection));
		if (people.every((person) => person.isQuiet) && server.connections.every(({ up, down, told }) => up.length + down.length === 0 && told === server.seq)) break;
	}
	await Promise.all(people.map(({ session }) => session.stop()));
	return { server, people };
}

describe('people who edit at random, over connections that break', () => {
	test.each(Array.from({ length: 25 }, (_, seed) => seed))('end with the cells of the server: seed %i', async (seed) => {
		vi.useFakeTimers();
		const { server, people } = await converge(seed, 1500);
		expect(people.map(({ isQuiet }) => isQuiet)).toEqual(people.map(() => true));
		for (const { grid } of people) {
			expect(grid.contents()).toEqual(server.table.contents());
			expect(stylesOf(grid.cells)).toEqual(server.table.styles());
		}
		const replayed = new Table(10, { cols: 8 });
		for (const { edits } of server.log) edits.forEach((edit) => replayed.apply(edit));
		expect(replayed.contents()).toEqual(server.table.contents());
		expect(server.log.length).toBeGreaterThan(100);
		expect(server.log.flatMap(({ edits }) => edits.filter(isStructure)).length).toBeGreaterThan(10);
		vi.useRealTimers();
	});
});
