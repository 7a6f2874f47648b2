// convergence.test.ts - several people edit a sheet at random, over connections that delay, merge, split and break. All grids
// end equal to the cells, the styles and the properties of the server, which is a table and its log.
import { describe, expect, test, vi } from 'vitest';
import type { Socket } from '../src/v2/client';
import { editToTuple, tupleToEdit } from '../src/v2/edits';
import { moveContent, transform } from '../src/v2/lines';
import { type ClientMessage, type Edit, isCell, isProperty, isStructure, type StructureEdit } from '../src/v2/messages';
import { moveKeys } from '../src/v2/replica';
import { Person, randomOf, type Random } from './person';
import { Table } from './table';

interface Commit {
	seq: number;
	uid: number;
	edits: Edit[];
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
	table = new Table(10, 8);
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
		} else if (connection.down.length > 0 && (connection.up.length === 0 || this.random(2) === 0))
			connection.onmessage?.({ data: JSON.stringify(connection.down.shift()) });
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
			const cells = this.table.list().filter((cell) => cell.row >= row && cell.row <= toRow && cell.col >= col && cell.col <= toCol);
			connection.down.push({ t: 'block', id, row, col, toRow, toCol, seq: this.seq, more: false, cells: cells.map(editToTuple) });
		}
	}

	private greet(connection: Connection, { client, since }: Extract<ClientMessage, { t: 'hello' }>): void {
		const resumed = since > 0 && this.random(5) > 0;
		Object.assign(connection, { client, joined: true, told: resumed ? since : this.seq, floor: resumed || since === 0 ? 0 : this.seq });
		connection.down.push({
			...{
				t: 'hello',
				v: 2,
				session: this.connections.indexOf(connection) + 1,
				uid: connection.uid,
				name: 's',
				role: 'editor',
				seq: connection.told,
				epoch: 1,
			},
			...{ rows: this.table.rows.length, cols: this.table.cols.length, landed: this.landed.get(client) ?? 0, resumed, retention: 604800, lease: 30 },
			...{ maxEdits: 16384, maxBytes: 1048576, peers: [], locks: [] },
		});
		// The database sorts them.
		const properties = this.table.propertyList().map(editToTuple).sort();
		const part = this.random(properties.length + 1);
		if (!resumed && part > 0)
			connection.down.push({ t: 'properties', seq: connection.told, more: part < properties.length, properties: properties.slice(0, part) });
		if (!resumed && part < properties.length) connection.down.push({ t: 'properties', seq: connection.told, more: false, properties: properties.slice(part) });
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

	private operate(connection: Connection, { n, nacks, base, seen, edits }: Extract<ClientMessage, { t: 'op' }>): void {
		if (nacks !== connection.nacks) return;
		if (n <= (this.landed.get(connection.client) ?? 0)) {
			connection.down.push({ t: 'ack', n, seq: this.seq });
			return;
		}
		const late = this.late(edits, base);
		const stale = (base !== 0 && base < connection.floor) || (seen !== undefined && this.overwrites(late, connection.uid, seen));
		if (stale || this.random(15) === 0) {
			connection.nacks++;
			connection.down.push({ t: 'nack', n, reason: stale ? 'base' : 'locked', row: 0, col: 0, block: false });
			return;
		}
		this.landed.set(connection.client, n);
		if (late.length > 0) this.commit(connection.uid, late);
		// The acknowledgement comes before the edits, or behind them.
		if (this.random(2) === 0) this.tell(connection, true);
		connection.down.push({ t: 'ack', n, seq: this.seq });
	}

	private since(seq: number): Commit[] {
		return this.log.filter((commit) => commit.seq > seq);
	}

	private late(edits: Edit[], base: number): Edit[] {
		return base === 0
			? edits
			: transform(
					edits,
					this.since(base).flatMap((commit) => commit.edits.filter(isStructure)),
				);
	}

	/** Whether others have written since a cell that the edits write or delete or, with structure edits, any formula. */
	private overwrites(edits: Edit[], uid: number, seen: number): boolean {
		const written = new Map<string, boolean>();
		for (const commit of this.since(seen)) {
			for (const edit of commit.edits) {
				if (isStructure(edit)) moveKeys(written, edit);
				else if (isCell(edit) && commit.uid !== uid) written.set(`${edit.row},${edit.col}`, Boolean(edit.content?.startsWith('=')));
			}
		}
		if (edits.some(isStructure) && [...written.values()].includes(true)) return true;
		return edits.some((edit) => {
			if (!isStructure(edit)) return isCell(edit) && written.has(`${edit.row},${edit.col}`);
			const { size } = written;
			moveKeys(written, edit);
			return written.size < size;
		});
	}

	/** Stores edits. Those that rewrite formulas follow adjacent structure edits. */
	private commit(uid: number, edits: Edit[]): void {
		const stored: Edit[] = [];
		const store = (edit: Edit) => {
			stored.push(edit);
			this.table.apply(edit);
		};
		let changes: StructureEdit[] = [];
		edits.forEach((edit, i) => {
			store(edit);
			if (!isStructure(edit)) return;
			changes.push(edit);
			if (edits[i + 1] && isStructure(edits[i + 1]!)) return;
			for (const { row, col, content } of this.table.list()) {
				const moved = changes.reduce((text, change) => moveContent(text, change)!, content);
				if (moved !== content) store({ row, col, content: moved });
			}
			changes = [];
		});
		this.seq += stored.length;
		this.log.push({ seq: this.seq, uid, edits: stored });
	}
}

async function converge(seed: number, steps: number): Promise<{ server: Server; people: Person[] }> {
	const random = randomOf(seed);
	const server = new Server(random);
	const people = ['a', 'b', 'c', 'd'].map(
		(name, i) => new Person({ name, uid: i + 1, sheet: 7, url: 'ws://server', token: '', open: () => server.open(i + 1), random }),
	);
	for (let step = 0; step < steps; step++) {
		const connection = server.connections[random(server.connections.length)];
		const what = random(100);
		if (what < 30) people[random(people.length)]!.act(server.table.rows.length, server.table.cols.length);
		else if (what === 30 && connection) server.cut(connection);
		else if (what < 40) await vi.advanceTimersByTimeAsync(random(400));
		else if (connection) server.deliver(connection);
	}
	for (let round = 0; round < 400; round++) {
		await vi.advanceTimersByTimeAsync(1000);
		for (let i = 0; i < 200; i++) server.connections.forEach((connection) => server.deliver(connection));
		if (people.every((person) => person.isQuiet) && server.connections.every(({ up, down, told }) => up.length + down.length === 0 && told === server.seq))
			break;
	}
	await Promise.all(people.map(({ session }) => session.stop()));
	return { server, people };
}

/** What a grid shows, or a table has. */
type Shown = Pick<Person['grid'], 'contents' | 'styles' | 'properties' | 'merges'>;

const isMove = ([first, second]: Edit[]): boolean =>
	Boolean(first && second && isStructure(first) && isStructure(second) && first.kind.replace('insert', 'delete') === second.kind);

describe('people who edit at random, over connections that break', () => {
	test.each(Array.from({ length: process.env.LONG ? 25 : 8 }, (_, seed) => seed))(
		'end with the sheet of the server: seed %i',
		async (seed) => {
			vi.useFakeTimers();
			const { server, people } = await converge(seed, 1500);
			expect(people.map(({ isQuiet }) => isQuiet)).toEqual(people.map(() => true));
			const shown = (grid: Shown) => ({ contents: grid.contents(), styles: grid.styles(), properties: grid.properties, merges: grid.merges });
			const replayed = new Table(10, 8);
			for (const { edits } of server.log) edits.forEach((edit) => replayed.apply(edit));
			expect(shown(server.table)).toEqual(shown(replayed));
			for (const { grid } of people) expect(shown(grid)).toEqual(shown(replayed));
			const edits = server.log.map((commit) => commit.edits);
			expect(edits.length).toBeGreaterThan(100);
			expect(edits.flat().filter(isStructure).length).toBeGreaterThan(10);
			expect(edits.flat().filter(isProperty).length).toBeGreaterThan(10);
			expect(edits.filter(isMove).length).toBeGreaterThan(0);
			vi.useRealTimers();
		},
		60000,
	);
});
