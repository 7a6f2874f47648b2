// session.test.ts - an open sheet against a socket and a grid of the test: what the grid shows, what is sent, and undo.
import { describe, expect, test, vi } from 'vitest';
import { plainStyle, sameStyle } from '../src/style';
import { splitEdits } from '../src/sheet/split';
import { SheetSession, type SessionEvents, type SessionGrid } from '../src/sheet/session';
import type { CellState } from '../src/sheet/mirror';
import type { Socket } from '../src/v2/client';
import { contains, keyOf, moveKeys, placeOf } from '../src/v2/replica';
import type { CellEdit, Place, Range, StructureEdit, Style } from '../src/v2/messages';

class Wire implements Socket {
	binaryType = '';
	onopen: (() => void) | null = null;
	onmessage: ((event: { data: unknown }) => void) | null = null;
	onclose: ((event: { code: number; reason: string }) => void) | null = null;
	said: Record<string, any>[] = [];
	send(data: string | Uint8Array): void {
		this.said.push(JSON.parse(data as string));
	}
	close(): void {}
	hear(message: object): void {
		this.onmessage?.({ data: JSON.stringify(message) });
	}
	operations(): unknown[] {
		return this.said.filter(({ t }) => t === 'op').map(({ edits }) => edits);
	}
}

/** A grid without Univer: cells by "row,col". */
class TestGrid implements SessionGrid {
	cells = new Map<string, CellState>();
	read(row: number, col: number): CellState {
		return this.cells.get(keyOf(row, col)) ?? { content: '', style: null };
	}
	apply(edits: CellEdit[]): void {
		for (const { row, col, content, style } of edits) {
			const before = this.read(row, col);
			this.cells.set(keyOf(row, col), { content: content ?? before.content, style: style === undefined ? before.style : style });
		}
	}
	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void {
		for (const key of this.cells.keys()) if (contains(range, ...placeOf(key)) && !skip(...placeOf(key))) this.cells.delete(key);
		this.apply(cells.filter(({ row, col }) => !skip(row, col)));
	}
	move(change: StructureEdit): void {
		moveKeys(this.cells, change);
	}
	contents(): Record<string, string> {
		return Object.fromEntries([...this.cells].filter(([, { content }]) => content !== '').map(([key, { content }]) => [key, content]));
	}
}

async function open(cells: unknown[] = [], role = 'editor') {
	vi.useRealTimers();
	const wires: Wire[] = [];
	const grid = new TestGrid();
	const log: string[] = [];
	const frames: (() => void)[] = [];
	const events = new Proxy({} as SessionEvents, {
		get: (_, name: string) => (...values: unknown[]) => {
			if (name === 'onSkipped' && (values[0] as Place[]).length > 0) log.push(`skipped ${(values[0] as Place[]).map(({ row, col }) => keyOf(row, col))}`);
			if (name === 'onRefused') log.push(`refused ${values[1]}`);
			if (name === 'onTokenEnded' || name === 'onDenied') log.push(name);
		},
	});
	const session = new SheetSession(
		{ sheet: 7, uid: 1, token: () => 't', locate: async () => 'ws://a', stopOf: () => null, open: () => (wires.push(new Wire()), wires.at(-1)!), schedule: (run) => frames.push(run) },
		events,
	);
	session.start();
	const greet = async (more: object = {}) => {
		await vi.waitFor(() => expect(wires.at(-1)?.onopen).toBeTruthy());
		const wire = wires.at(-1)!;
		wire.onopen!();
		wire.hear({
			...{ t: 'hello', v: 2, session: 1, uid: 1, name: 's', role, seq: 5, epoch: 1, rows: 9, cols: 9, landed: 0, resumed: false },
			...{ retention: 604800, lease: 30, maxEdits: 16384, maxBytes: 1048576, peers: [], locks: [], ...more },
		});
		return wire;
	};
	const wire = await greet();
	session.attach(grid);
	for (const id of [1, 2]) wire.hear({ t: 'block', id, row: 0, col: 0, toRow: 8, toCol: 8, seq: 5, more: false, cells });
	const frame = () => frames.splice(0).forEach((run) => run());
	/** The user types into a cell. */
	const type = (row: number, col: number, content: string, style?: Style) => {
		const before = grid.read(row, col);
		const after = { content, style: style === undefined ? before.style : style };
		grid.cells.set(keyOf(row, col), after);
		session.changed([{ row, col, before, after }]);
	};
	let seq = 5;
	const edits = (...list: unknown[][]) => (wire.hear({ t: 'edits', seq: ++seq, more: false, edits: list }), frame());
	const ack = (n: number) => wire.hear({ t: 'ack', n, seq });
	return { session, wire, grid, log, type, edits, ack, frame, greet, wires };
}

describe('an open sheet', () => {
	test('shows others once per frame, and own edits over theirs until the sheet has them', async () => {
		const { wire, grid, type, edits, ack } = await open([[0, 0, 'old']]);
		expect(grid.contents()).toEqual({ '0,0': 'old' });
		type(0, 0, 'mine');
		edits([2, 0, 0, 'before mine'], [2, 1, 1, 'x']);
		expect(grid.contents()).toEqual({ '0,0': 'mine', '1,1': 'x' });
		ack(1);
		edits([1, 0, 0, 'mine']);
		edits([2, 0, 0, 'after mine']);
		expect(grid.contents()).toEqual({ '0,0': 'after mine', '1,1': 'x' });
		expect(wire.operations()).toEqual([[[0, 0, 'mine']]]);
	});

	test('an edit that follows the own one in the same commit is shown', async () => {
		const { grid, type, edits, ack, frame } = await open();
		type(0, 0, 'mine');
		edits([1, 0, 0, 'mine'], [2, 0, 0, 'theirs']);
		expect(grid.contents()).toEqual({ '0,0': 'mine' });
		ack(1);
		frame();
		expect(grid.contents()).toEqual({ '0,0': 'theirs' });
	});

	test('a refused edit gives way to what the sheet has', async () => {
		const { wire, grid, type, log, edits, frame } = await open([[0, 0, 'old']]);
		type(0, 0, 'mine');
		edits([2, 0, 0, 'theirs']);
		wire.hear({ t: 'nack', n: 1, reason: 'locked', row: 0, col: 0, block: false });
		frame();
		expect([grid.contents(), log]).toEqual([{ '0,0': 'theirs' }, ['refused locked']]);
	});

	test('only what differs is sent, styles without contents', async () => {
		const { wire, type } = await open([[0, 0, 'old']]);
		type(0, 0, 'old', { bl: 1 });
		type(0, 0, '', { bl: 1 });
		expect(wire.operations()).toEqual([[[0, 0, null, { bl: 1 }]], [[0, 0, '']]]);
	});

	test('structure edits move own edits, the grid and undo', async () => {
		const { session, wire, grid, type, edits, ack } = await open([[0, 0, 'a'], [5, 0, 'f']]);
		type(5, 0, 'mine');
		edits([2, 'insertRows', 0, 2]);
		expect(grid.contents()).toEqual({ '2,0': 'a', '7,0': 'mine' });
		edits([1, 7, 0, 'mine']);
		ack(1);
		session.undo();
		expect(wire.operations()).toEqual([[[5, 0, 'mine']], [[7, 0, 'f']]]);
		expect(grid.contents()).toEqual({ '2,0': 'a', '7,0': 'f' });
	});

	test('a structure edit is shown when the sheet has it', async () => {
		const { session, wire, grid, edits } = await open([[0, 0, 'a']]);
		expect(session.restructure({ kind: 'insertRows', at: 0, n: 1 })).toBe(true);
		expect([grid.contents(), wire.operations()]).toEqual([{ '0,0': 'a' }, [[['insertRows', 0, 1]]]]);
		edits([1, 'insertRows', 0, 1]);
		expect(grid.contents()).toEqual({ '1,0': 'a' });
	});

	test('after an interruption that is not resumed, the grid has the new state, with unsent edits on top', async () => {
		const { grid, type, wires, greet } = await open([[0, 0, 'a'], [1, 0, 'b'], [2, 0, 'c']]);
		type(0, 0, 'mine');
		wires[0]!.onclose?.({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const wire = await greet({ seq: 9, rows: 2 });
		wire.hear({ t: 'block', id: 1, row: 0, col: 0, toRow: 1, toCol: 8, seq: 9, more: false, cells: [[0, 0, 'new a'], [1, 0, 'new b']] });
		expect(grid.contents()).toEqual({ '0,0': 'mine', '1,0': 'new b' });
		wire.hear({ t: 'nack', n: 1, reason: 'base', row: 0, col: 0, block: false });
	});

	test('a token that ends keeps the edits, and they are sent with the next one', async () => {
		const { session, type, wires, greet, log } = await open();
		wires[0]!.onclose?.({ code: 4401, reason: 'expired' });
		type(0, 0, 'written meanwhile');
		expect([log, session.unsaved]).toEqual([['onTokenEnded'], 1]);
		session.resume();
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const wire = await greet({ resumed: true });
		expect(wire.operations()).toEqual([[[0, 0, 'written meanwhile']]]);
	});
});

describe('undo', () => {
	test('takes back own edits only: never what somebody else wrote over them', async () => {
		const { session, wire, grid, type, edits, ack, log } = await open();
		type(0, 0, 'a1');
		edits([1, 0, 0, 'a1']);
		ack(1);
		edits([2, 0, 0, 'b1']);
		session.undo();
		expect([grid.contents(), log, wire.operations().length]).toEqual([{ '0,0': 'b1' }, ['skipped 0,0'], 1]);
	});

	test('knows the last writer even if the content is the same again', async () => {
		const { session, grid, type, edits, ack, log } = await open();
		type(0, 0, 'x');
		edits([1, 0, 0, 'x']);
		ack(1);
		edits([2, 0, 0, 'y'], [2, 0, 0, 'x']);
		session.undo();
		expect([grid.contents(), log]).toEqual([{ '0,0': 'x' }, ['skipped 0,0']]);
	});

	test('redo makes it again, unless somebody has written since', async () => {
		const { session, grid, type, edits, ack, log } = await open([[0, 0, 'old']]);
		type(0, 0, 'new');
		edits([1, 0, 0, 'new']);
		ack(1);
		session.undo();
		edits([1, 0, 0, 'old']);
		ack(2);
		expect(grid.contents()).toEqual({ '0,0': 'old' });
		session.redo();
		edits([1, 0, 0, 'new']);
		ack(3);
		expect(grid.contents()).toEqual({ '0,0': 'new' });
		session.undo();
		edits([1, 0, 0, 'old']);
		ack(4);
		edits([2, 0, 0, 'theirs']);
		session.redo();
		expect([grid.contents(), log]).toEqual([{ '0,0': 'theirs' }, ['skipped 0,0']]);
	});

	test('knows a formula again whose references a structure edit has rewritten', async () => {
		const { session, grid, type, edits, ack, log } = await open([[5, 0, 'old']]);
		type(5, 0, '=A1');
		edits([1, 5, 0, '=A1']);
		ack(1);
		edits([2, 'insertRows', 0, 1], [2, 6, 0, '=A2']);
		expect(grid.contents()).toEqual({ '6,0': '=A2' });
		session.undo();
		expect([grid.contents(), log]).toEqual([{ '6,0': 'old' }, []]);
		session.redo();
		expect(grid.contents()).toEqual({ '6,0': '=A2' });
	});

	test('an undo of 10,000 cells is one operation', async () => {
		const { session, wire } = await open();
		const none = { content: '', style: null };
		const changes = Array.from({ length: 10000 }, (_, i) => ({ row: 100 + i, col: 0, before: none, after: { content: `${i}`, style: null } }));
		session.changed(changes);
		session.undo();
		// The grid of this test does not have the cells: it has to be told.
		expect(wire.operations().map((edits) => (edits as unknown[]).length)).toEqual([10000]);
		session.write(changes.map(({ row, col }, i) => ({ row, col, content: `${i}` })));
		session.undo();
		expect(wire.operations().map((edits) => (edits as unknown[]).length)).toEqual([10000, 10000, 10000]);
	});
});

describe('edits', () => {
	test('are split where the gateway would refuse them', () => {
		const edits = Array.from({ length: 20000 }, (_, row) => ({ row, col: 0, content: 'x' }));
		expect(splitEdits(edits).map((part) => part.length)).toEqual([16384, 3616]);
		const long = [0, 1, 2].map((row) => ({ row, col: 0, content: '你'.repeat(300) }));
		expect(splitEdits(long, 16384, 2300).map((part) => part.length)).toEqual([2, 1]);
	});

	test('styles have what differs from the default', () => {
		const pasted = { ff: 'Arial', fs: 11, it: 0, bl: 0, ul: { s: 0 }, st: { s: 0 }, ol: { s: 0 }, cl: { rgb: '#000' }, td: 0, tr: { a: 0, v: 0 }, ht: 0, vt: 0, tb: 0, pd: {} };
		expect(plainStyle(pasted)).toBeNull();
		expect(plainStyle({ ...pasted, bl: 1, bg: null })).toEqual({ bl: 1 });
		expect(sameStyle({ bl: 1, n: { pattern: '0' } }, { n: { pattern: '0' }, bl: 1, it: 0 })).toBe(true);
		expect(sameStyle(null, { bl: 1 })).toBe(false);
	});
});
