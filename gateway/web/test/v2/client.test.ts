// client.test.ts - what the client says when it comes again, against a socket that the test holds in its hands.

import { describe, expect, test, vi } from 'vitest';
import { SheetClient, type ClientOptions, type Socket } from '../../src/v2/client';

class Wire implements Socket {
	binaryType = '';
	onopen: (() => void) | null = null;
	onmessage: ((event: { data: unknown }) => void) | null = null;
	onclose: ((event: { code: number; reason: string }) => void) | null = null;
	readonly said: Record<string, unknown>[] = [];

	constructor(readonly url: string) {}
	send(data: string | Uint8Array): void {
		this.said.push(JSON.parse(data as string) as Record<string, unknown>);
	}
	close(): void {}
	hear(message: object): void {
		this.onmessage?.({ data: JSON.stringify(message) });
	}
	greet(seq: number, resumed: boolean, landed = 0): void {
		this.onopen?.();
		this.hear({
			...{ t: 'hello', v: 2, session: 1, uid: 1, name: 's', role: 'owner', seq, epoch: 1, rows: 9, cols: 9, landed, resumed },
			...{ retention: 604800, lease: 30, maxEdits: 16384, maxBytes: 1048576, peers: [], locks: [] },
		});
	}
	asked(): unknown[] {
		return this.said.filter(({ t }) => t === 'get').map(({ id }) => id);
	}
	operations(): unknown[] {
		return this.said.filter(({ t }) => t === 'op').map(({ n, nacks }) => [n, nacks]);
	}
}

function start(options: Partial<ClientOptions> = {}) {
	vi.useFakeTimers();
	const wires: Wire[] = [];
	const client = new SheetClient({
		...{ url: 'ws://a/sheetws', sheet: 7, token: () => 't', client: 5, retryMs: 10 },
		open: (url) => (wires.push(new Wire(url)), wires.at(-1)!),
		...options,
	});
	const again = (code = 1006, reason = '') => {
		wires.at(-1)!.onclose?.({ code, reason });
		vi.advanceTimersByTime(1000);
		return wires.at(-1)!;
	};
	return { client, wires, again };
}

const range = (row: number) => ({ row, col: 0, toRow: row + 9, toCol: 9 });
const block = (id: number, more: boolean) => ({ t: 'block', id, ...range(id * 10 - 10), seq: 3, more, cells: [] });
const edit = [{ row: 0, col: 0, content: 'x' }];

describe('a client that was cut off', () => {
	test('joins anew if the properties had not all come', () => {
		const { client, wires, again } = start();
		const property = (col: number) => ['property', 0, col, 16777215, col, 'width', 90];
		const since = () => wires.at(-1)!.said[0]!.since;
		client.connect();
		wires[0]!.greet(3, false);
		again().greet(4, false);
		wires.at(-1)!.hear({ t: 'properties', seq: 4, more: true, properties: [property(1)] });
		expect(since()).toBe(0);
		again().greet(4, false);
		wires.at(-1)!.hear({ t: 'properties', seq: 4, more: false, properties: [property(1), property(2)] });
		expect(since()).toBe(0);
		again().greet(4, true);
		again().greet(4, false);
		wires.at(-1)!.hear({ t: 'user', uid: 1, name: 'there are none' });
		expect(since()).toBe(4);
		again().greet(4, true);
		expect([since(), client.replica.properties.size]).toEqual([4, 0]);
	});

	test('asks for the ranges that had not come whole, when it is resumed', () => {
		const { client, wires, again } = start();
		client.load(range(0));
		client.load(range(10));
		client.load(range(20));
		client.connect();
		wires[0]!.greet(3, false);
		expect(wires[0]!.asked()).toEqual([1, 2, 3]);
		wires[0]!.hear(block(1, false));
		wires[0]!.hear(block(2, true));
		const wire = again();
		wire.greet(3, true);
		expect(wire.said[0]).toMatchObject({ t: 'hello', since: 3 });
		expect(wire.asked()).toEqual([2, 3]);
		wire.hear({ ...block(2, false), cells: [[12, 1, 'whole']] });
		expect(client.replica.cells.get('12,1')?.content).toBe('whole');
		const third = again();
		third.greet(9, false);
		expect(third.asked()).toEqual([1, 2, 3]);
	});

	test('sends what has not landed, in order; the rest is done', async () => {
		const { client, wires, again } = start();
		client.connect();
		wires[0]!.greet(3, false);
		const results = [client.operate(edit), client.operate(edit), client.operate(edit)];
		expect(wires[0]!.operations()).toEqual([
			[1, 0],
			[2, 0],
			[3, 0],
		]);
		const wire = again();
		wire.greet(5, true, 1);
		expect(await results[0]).toBe(5);
		expect(wire.operations()).toEqual([
			[2, 0],
			[3, 0],
		]);
		wire.hear({ t: 'ack', n: 3, seq: 9 });
		expect(await Promise.all(results)).toEqual([5, 9, 9]);
		expect([client.unacknowledged, client.acked]).toEqual([0, 3]);
	});

	test('sends those behind a refused one again, and counts refusals anew on a new connection', async () => {
		const { client, wires, again } = start();
		client.connect();
		wires[0]!.greet(3, false);
		const refused = client.operate(edit);
		const behind = client.operate(edit);
		wires[0]!.hear({ t: 'nack', n: 1, reason: 'locked', row: 0, col: 0, block: false });
		await expect(refused).rejects.toMatchObject({ reason: 'locked' });
		expect(wires[0]!.operations()).toEqual([
			[1, 0],
			[2, 0],
			[2, 1],
		]);
		const wire = again();
		wire.greet(3, true);
		expect(wire.operations()).toEqual([[2, 0]]);
		wire.hear({ t: 'ack', n: 2, seq: 4 });
		expect(await behind).toBe(4);
	});

	test('says again what it meant, for the places as they are now', async () => {
		const { client, wires, again } = start();
		client.connect();
		wires[0]!.greet(3, false);
		const results = [
			client.operate([
				{ row: 4, col: 0, content: 'moves' },
				{ row: 2, col: 0, content: 'goes' },
			]),
			client.operate([{ row: 2, col: 1, content: 'nothing is left of it' }]),
			client.operate([
				{ kind: 'deleteRows', at: 1, n: 3 },
				{ row: 1, col: 0, content: 'behind' },
			]),
		];
		const told = { t: 'edits', seq: 5, edits: [[9, 'deleteRows', 2, 1]] };
		wires[0]!.hear({ ...told, more: true });
		wires[0]!.hear({ ...told, more: false, edits: [[9, 'insertRows', 0, 2]] });
		const wire = again();
		wire.greet(5, true);
		expect(wire.said.filter(({ t }) => t === 'op').map(({ n, base, edits }) => [n, base, edits])).toEqual([
			[1, 5, [[5, 0, 'moves']]],
			[
				3,
				5,
				[
					['deleteRows', 3, 2],
					[3, 0, 'behind'],
				],
			],
		]);
		expect(await results[1]).toBe(5);
		wire.hear({ t: 'ack', n: 3, seq: 7 });
		expect(await Promise.all(results)).toEqual([7, 5, 7]);
	});

	test('leaves what it meant as it was when it cannot know where that is now', () => {
		const { client, wires, again } = start();
		client.connect();
		wires[0]!.greet(3, false);
		client.operate([{ row: 4, col: 0, content: 'x' }]).catch(() => {});
		const wire = again();
		wire.greet(9, false);
		wire.hear({ t: 'edits', seq: 10, more: false, edits: [[9, 'deleteRows', 2, 1]] });
		const last = again();
		last.greet(10, true);
		expect(last.said.find(({ t }) => t === 'op')).toMatchObject({ base: 3, edits: [[4, 0, 'x']] });
	});

	test('asks for what has come into its ranges, once', () => {
		const { client, wires } = start();
		client.load(range(0));
		client.connect();
		const wire = wires[0]!;
		wire.greet(3, false);
		wire.hear(block(1, false));
		wire.hear({ t: 'edits', seq: 4, more: false, edits: [[1, 'deleteRows', 0, 2]] });
		wire.hear({ t: 'edits', seq: 5, more: false, edits: [[1, 'deleteRows', 0, 1]] });
		const asked = () => wire.said.filter(({ t }) => t === 'get').map(({ row, toRow }) => [row, toRow]);
		const { toRow } = range(0);
		expect(asked().slice(1)).toEqual([[toRow - 1, toRow]]);
		wire.hear({ ...block(1, false), seq: 5, row: toRow - 1, toRow, cells: [] });
		expect(asked().slice(2)).toEqual([[toRow - 2, toRow - 2]]);
	});

	test('goes where it is sent, and back to where it began when that is gone', () => {
		const { client, wires, again } = start();
		client.connect();
		expect(again(4307, '{"ws":"ws://b/sheetws"}').url).toBe('ws://b/sheetws?fid=7');
		again();
		expect(again().url).toBe('ws://a/sheetws?fid=7');
		expect(wires.length).toBeGreaterThan(3);
	});

	test('stops when reconnecting does not help, and sends what it has with the next token', async () => {
		const { client, wires, again } = start();
		client.connect();
		wires[0]!.greet(3, false);
		const waiting = client.operate(edit);
		again(4401, 'the token has expired');
		expect([wires.length, client.unacknowledged]).toEqual([1, 1]);
		client.connect();
		wires[1]!.greet(3, true);
		wires[1]!.hear({ t: 'ack', n: 1, seq: 4 });
		expect(await waiting).toBe(4);
	});

	test('reconnects when it cannot read where it is sent, and when the browser does not accept an address', async () => {
		const asked: (string | null)[] = [];
		let refuse = false;
		const wires: Wire[] = [];
		const open = (url: string) => {
			if (refuse) throw new SyntaxError('no address');
			return (wires.push(new Wire(url)), wires.at(-1)!);
		};
		const { client } = start({ url: async (moved) => (asked.push(moved), `ws://${asked.length}`), open });
		const close = async (code: number, reason: string) => {
			wires.at(-1)!.onclose?.({ code, reason });
			await vi.advanceTimersByTimeAsync(1000);
		};
		client.connect();
		await vi.advanceTimersByTimeAsync(0);
		await close(4307, '');
		await close(4307, '{"ws":"ws://b/sheetws"}');
		refuse = true;
		await close(1006, '');
		refuse = false;
		await vi.advanceTimersByTimeAsync(1000);
		expect(asked.slice(0, 4)).toEqual([null, null, 'ws://b/sheetws', null]);
		expect(wires.at(-1)!.url).toBe(`ws://${asked.length}?fid=7`);
	});

	test('starts again with another number when the database does not know it', () => {
		const stored: unknown[] = [];
		const outbox = {
			put: ({ n }: { n: number }, client: number, acked: number) => void stored.push([n, client === 5, acked]),
			rebase() {},
			settle() {},
			remove() {},
		};
		const { client, wires, again } = start({ outbox });
		client.connect();
		wires[0]!.greet(3, false);
		void client.operate(edit);
		wires[0]!.hear({ t: 'ack', n: 1, seq: 4 });
		void client.operate(edit);
		const wire = again(4412);
		wire.greet(2, false);
		expect(wire.said[0]).toMatchObject({ t: 'hello', acked: 0 });
		expect(wire.said[0]!.client).not.toBe(5);
		expect(wire.operations()).toEqual([[2, 0]]);
		expect(stored).toEqual([
			[1, true, 0],
			[2, true, 1],
			[2, false, 0],
		]);
	});

	test('applies a commit of several messages as one', () => {
		const { client, wires } = start();
		client.load(range(0));
		client.connect();
		wires[0]!.greet(3, false);
		wires[0]!.hear(block(1, false));
		wires[0]!.hear({ t: 'edits', seq: 4, more: true, edits: [[1, 0, 0, 'a']] });
		expect(client.replica.cells.size).toBe(0);
		wires[0]!.hear({ t: 'edits', seq: 4, more: false, edits: [[1, 0, 1, 'b']] });
		expect(client.replica.cells.size).toBe(2);
	});

	test('asks for a large range in parts', () => {
		const { client, wires } = start();
		client.load({ row: 0, col: 0, toRow: 9999, toCol: 9 });
		client.connect();
		wires[0]!.greet(3, false);
		const asked = () => wires[0]!.said.filter(({ t }) => t === 'get').map(({ row, toRow }) => [row, toRow]);
		expect(asked()).toEqual([[0, 6552]]);
		wires[0]!.hear({ t: 'block', id: 1, row: 0, col: 0, toRow: 6552, toCol: 9, seq: 3, more: false, cells: [] });
		expect(asked()).toEqual([
			[0, 6552],
			[6553, 9999],
		]);
		expect(client.loaded).toBe(false);
		wires[0]!.hear({ t: 'block', id: 1, row: 6553, col: 0, toRow: 9999, toCol: 9, seq: 3, more: false, cells: [] });
		expect(client.loaded).toBe(true);
	});

	test('notices that the gateway is silent, and gives the connection up', () => {
		const { client, wires } = start();
		client.connect();
		wires[0]!.greet(3, false);
		expect(client.check()).toBe(0);
		void client.operate(edit);
		vi.advanceTimersByTime(4000);
		expect(client.check()).toBe(4000);
		wires[0]!.hear({ t: 'ack', n: 1, seq: 4 });
		expect(client.check()).toBe(0);
		const after = (milliseconds: number) => {
			vi.advanceTimersByTime(milliseconds);
			return client.check();
		};
		expect(after(1000)).toBe(0);
		expect(after(1000)).toBe(2000);
		expect(wires[0]!.said.at(-1)).toMatchObject({ t: 'who' });
		expect(after(1000)).toBe(3000);
		wires[0]!.hear({ t: 'user', uid: 1, name: 'ann' });
		expect(after(1000)).toBe(0);
		expect(after(1000)).toBe(2000);
		for (let silent = 3000; silent <= 11000; silent += 1000) {
			expect(wires.length).toBe(1);
			expect(after(1000)).toBe(silent);
		}
		vi.advanceTimersByTime(1000);
		expect(wires.length).toBe(2);
	});

	test('gives a silent connection up sooner after the page has slept, or the network was away', () => {
		const { client, wires } = start();
		const after = (milliseconds: number) => {
			vi.advanceTimersByTime(milliseconds);
			return client.check();
		};
		client.connect();
		wires[0]!.greet(3, false);
		expect([after(1000), after(60000)]).toEqual([0, 0]);
		expect(wires[0]!.said.at(-1)).toMatchObject({ t: 'who' });
		expect([after(1000), after(1000), after(1000)]).toEqual([1000, 2000, 3000]);
		expect([wires.length, after(1000)]).toEqual([1, 4000]);
		vi.advanceTimersByTime(1000);
		expect(wires.length).toBe(2);
		wires[1]!.greet(3, true);
		void client.operate(edit);
		expect([after(1000), after(1000), after(1000), after(1000)]).toEqual([1000, 2000, 3000, 4000]);
		client.retryNow();
		expect(wires.length).toBe(2);
		client.retryNow(true);
		expect(wires.length).toBe(3);
		wires[2]!.greet(3, true);
		expect([after(1000), after(1000), after(1000), after(1000)]).toEqual([1000, 2000, 3000, 4000]);
		expect(wires.length).toBe(3);
	});

	test('does not take what has arrived during the sleep for a sign of life', () => {
		const { client, wires } = start();
		client.connect();
		wires[0]!.greet(3, false);
		vi.advanceTimersByTime(60000);
		client.check();
		wires[0]!.hear({ t: 'edits', seq: 3, more: false, edits: [] });
		for (let i = 0; i < 8; i++) {
			vi.advanceTimersByTime(1000);
			client.check();
		}
		expect(wires.length).toBe(2);
	});

	test('goes on with the operations of an earlier page, moved by what has happened since', () => {
		const { client, wires } = start();
		client.restore([{ n: 7, base: 3, lost: false, edits: [{ row: 4, col: 0, content: 'x' }] }], 3, 6);
		client.connect();
		wires[0]!.greet(3, true, 6);
		expect(wires[0]!.said[0]).toMatchObject({ acked: 6, since: 3 });
		expect(wires[0]!.operations()).toEqual([[7, 0]]);
		wires[0]!.hear({ t: 'edits', seq: 5, more: false, edits: [[9, 'insertRows', 0, 2]] });
		expect(client.unfinished[0]).toMatchObject({ base: 5, edits: [{ row: 6, col: 0, content: 'x' }] });
	});
});
