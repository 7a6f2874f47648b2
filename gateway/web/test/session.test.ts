// session.test.ts - an open sheet against a socket and a grid of the test: what the grid shows, what is sent, and undo.
import { describe, expect, test, vi } from 'vitest';
import { knownStyle, plainStyle, sameStyle } from '../src/style';
import { splitEdits } from '../src/sheet/split';
import { browserZone, zoneProperty } from '../src/sheet/timezone';
import type { Operation } from '../src/v2/client';
import { open } from './open_sheet';

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

	test('a cell is formatted in the frame in which somebody else writes it: both are kept', async () => {
		const { wire, grid, type, hear, ack, frame, session } = await open([[0, 0, 'old']]);
		hear([2, 0, 0, 'theirs']);
		type(0, 0, undefined, { bl: 1 });
		hear([1, 0, 0, null, { bl: 1 }]);
		ack(1);
		frame();
		expect([grid.read(0, 0), wire.operations()]).toEqual([{ content: 'theirs', style: { bl: 1 } }, [[[0, 0, null, { bl: 1 }]]]]);
		session.undo();
		expect(wire.operations()[1]).toEqual([[0, 0, null, null]]);
	});

	test('a cell is typed over in the frame in which somebody else writes it: undo and a refusal bring that back', async () => {
		const { wire, grid, type, hear, ack, frame, session } = await open([
			[0, 0, 'old'],
			[1, 0, 'old'],
		]);
		hear([2, 0, 0, 'theirs'], [2, 1, 0, 'theirs']);
		type(0, 0, 'mine');
		type(1, 0, 'mine');
		frame();
		expect(grid.contents()).toEqual({ '0,0': 'mine', '1,0': 'mine' });
		wire.hear({ t: 'nack', n: 2, reason: 'locked', row: 1, col: 0, block: false });
		hear([1, 0, 0, 'mine']);
		ack(1);
		frame();
		expect(grid.contents()).toEqual({ '0,0': 'mine', '1,0': 'theirs' });
		session.undo(); // of the refused one: there is nothing to take back
		session.undo();
		expect([grid.contents(), wire.operations().at(-1)]).toEqual([{ '0,0': 'theirs', '1,0': 'theirs' }, [[0, 0, 'theirs']]]);
	});

	test('an edit that the grid has not shown when the user writes the cell is what a refusal brings back', async () => {
		const { session, wire, grid, hear, frame } = await open([[0, 0, 'old']]);
		hear([2, 0, 0, 'theirs']);
		grid.cells.set('0,0', { content: 'mine', style: null });
		session.changed([{ row: 0, col: 0, before: { content: 'old', style: null }, after: { content: 'mine', style: null } }]);
		frame();
		expect(grid.contents()).toEqual({ '0,0': 'mine' });
		wire.hear({ t: 'nack', n: 1, reason: 'locked', row: 0, col: 0, block: false });
		frame();
		expect(grid.contents()).toEqual({ '0,0': 'theirs' });
	});

	test('cells that are pushed out of the range that is being read are read, too', async () => {
		const { wires, greet } = await open();
		wires[0]!.onclose?.({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const wire = await greet();
		wire.hear({ t: 'edits', seq: 6, more: false, edits: [[2, 'insertColumns', 0, 1]] });
		for (const id of [1, 2]) wire.hear({ t: 'block', id, row: 0, col: 0, toRow: 8, toCol: 8, seq: 6, more: false, cells: [] });
		expect(wire.said.filter(({ t }) => t === 'get').at(-1)).toEqual({ t: 'get', id: 2, row: 0, col: 9, toRow: 8, toCol: 9 });
	});

	test('shows all edits but the one that the grid cannot show, and reports that', async () => {
		const { grid, edits, log } = await open();
		const { apply } = grid;
		grid.apply = (list) => {
			if (list.some(({ row }) => row === 1)) throw new Error('not this one');
			apply.call(grid, list);
		};
		edits([2, 0, 0, 'a'], [2, 1, 0, 'b'], [2, 2, 0, 'c']);
		expect([grid.contents(), log]).toEqual([{ '0,0': 'a', '2,0': 'c' }, ['unshown 1,0']]);
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
		const { session, wire, grid, type, edits, ack } = await open([
			[0, 0, 'a'],
			[5, 0, 'f'],
		]);
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

	test('after an interruption that is not resumed, the grid has the new state, and unsent edits are refused', async () => {
		const { grid, type, wires, greet, log, frame } = await open([
			[0, 0, 'a'],
			[1, 0, 'b'],
			[2, 0, 'c'],
		]);
		type(0, 0, 'mine');
		wires[0]!.onclose?.({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const wire = await greet({ seq: 9, rows: 2 });
		wire.hear({
			t: 'block',
			id: 1,
			row: 0,
			col: 0,
			toRow: 1,
			toCol: 8,
			seq: 9,
			more: false,
			cells: [
				[0, 0, 'new a'],
				[1, 0, 'new b'],
			],
		});
		wire.hear({ t: 'edits', seq: 10, more: false, edits: [[2, 'insertRows', 0, 1]] });
		expect(grid.contents()).toEqual({ '1,0': 'new a', '2,0': 'new b' });
		wire.hear({ t: 'nack', n: 1, reason: 'base', row: 0, col: 0, block: false });
		wire.hear({ t: 'edits', seq: 11, more: false, edits: [[2, 1, 0, 'theirs']] });
		frame();
		expect([grid.contents(), log]).toEqual([{ '1,0': 'theirs', '2,0': 'new b' }, ['refused base']]);
	});

	test('an edit whose place is unknown gives way to what the sheet has, wherever that moves', async () => {
		const { type, grid, wires, greet, frame } = await open([[0, 0, 'a']]);
		type(0, 0, 'mine');
		wires[0]!.onclose?.({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const wire = await greet({ seq: 9 });
		wire.hear({ t: 'block', id: 1, row: 0, col: 0, toRow: 8, toCol: 8, seq: 9, more: false, cells: [[0, 0, 'new a']] });
		wire.hear({ t: 'edits', seq: 10, more: false, edits: [[2, 'insertRows', 0, 1]] });
		expect(grid.contents()).toEqual({ '1,0': 'new a' });
		expect(wire.said.find(({ t }) => t === 'op')).toMatchObject({ base: 5, edits: [[0, 0, 'mine']] });
		wire.hear({ t: 'nack', n: 1, reason: 'base', row: 0, col: 0, block: false });
		frame();
		expect(grid.contents()).toEqual({ '1,0': 'new a' });
	});

	test('asks for the names of those who hold cells, a few at a time', async () => {
		const { session, wire, frame } = await open();
		for (let uid = 100; uid < 200; uid++) wire.hear({ t: 'lock', row: uid, col: 0, session: 0, uid });
		const asked = () => wire.said.filter(({ t }) => t === 'who').map(({ uid }) => uid as number);
		frame();
		expect(asked().length).toBeLessThan(60);
		for (let told = 0; told < asked().length; told++) {
			wire.hear({ t: 'user', uid: asked()[told], name: `user ${asked()[told]}` });
			frame();
		}
		expect(new Set(asked()).size).toBe(100);
		expect([asked().length, session.holderOf({ row: 199, col: 0 })]).toEqual([100, 'user 199']);
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

describe('the time zone', () => {
	const zone = 'Europe/Berlin';
	const edit = ['property', 0, 0, 16777215, 16383, 'timezone', zone];
	const kept = () => {
		const rows: unknown[] = [];
		return {
			rows,
			outbox: {
				put: (operation: Operation) => void rows.push(operation.n),
				rebase: (all: readonly Operation[]) => void rows.push(...all.map(({ n }) => n)),
				settle() {},
				remove() {},
			},
		};
	};

	test('of a sheet without one is that of its first editor, which no other page sends', async () => {
		const { rows, outbox } = kept();
		const { wire, wires, edits, type, greet } = await open([], 'editor', { zone, outbox });
		expect(wire.operations()).toEqual([[edit]]);
		edits([2, 'insertRows', 0, 1]);
		wires[0]!.onclose?.({ code: 4412, reason: 'unknown' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const again = await greet({ resumed: true });
		expect([again.operations(), rows]).toEqual([[[edit]], []]);
		type(0, 0, 'typed');
		again.hear({ t: 'edits', seq: 7, more: false, edits: [[2, 'insertRows', 0, 1]] });
		expect(rows).toEqual([2, 2]);
	});

	test('is refused in silence, unless the user has chosen it', async () => {
		const { session, wire, log } = await open([], 'editor', { zone });
		wire.hear({ t: 'nack', n: 1, reason: 'base', row: 0, col: 0, block: false });
		expect(log).toEqual([]);
		session.write([], [zoneProperty(zone)]);
		wire.hear({ t: 'nack', n: 2, reason: 'size', row: 0, col: 0, block: false });
		expect(log).toEqual(['refused size']);
	});

	test('of an editor whose role changes is refused, and given again when the role is back', async () => {
		const { wire, log, edits } = await open([], 'editor', { zone });
		wire.hear({ t: 'nack', n: 1, reason: 'role', row: 0, col: 0, block: false });
		edits([2, 0, 0, 'theirs']);
		expect([log, wire.operations().length]).toEqual([['role viewer'], 1]);
		wire.hear({ t: 'role', role: 'editor' });
		expect(wire.operations()).toEqual([[edit], [edit]]);
	});

	test('is none if the browser does not know its own', () => {
		for (const [name, known] of [
			['Europe/Berlin', 'Europe/Berlin'],
			['Etc/GMT+3', 'Etc/GMT+3'],
			['UTC', 'UTC'],
			['Etc/Unknown', undefined],
			['Nowhere/Atlantis', undefined],
			['', undefined],
			['+03:00', undefined],
		])
			expect(browserZone(name)).toBe(known);
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

	test('tells guests of one link apart, who have one uid', async () => {
		const uid = 2 ** 52 + 7;
		const { session, wire, grid, type, edits, ack, log, frame } = await open([[3, 0, 'd']], 'editor', {}, { uid });
		type(0, 0, 'x');
		type(1, 0, 'mine');
		type(2, 0, 'first', { bl: 1 });
		edits([uid, 1, 0, 'theirs'], [uid, 0, 0, 'x'], [uid, 1, 0, 'mine'], [uid, 2, 0, 'first', { bl: 1 }]);
		ack(3);
		edits([uid, 0, 0, 'y'], [uid, 0, 0, 'x']);
		session.undo();
		session.undo();
		edits([uid, 2, 0, '', null], [uid, 1, 0, '']);
		ack(5);
		session.undo();
		expect([grid.contents(), log]).toEqual([{ '0,0': 'x', '3,0': 'd' }, ['skipped 0,0']]);
		// The own deletion is taken back; another guest's is not.
		session.restructure({ kind: 'deleteRows', at: 3, n: 1 });
		edits([uid, 'deleteRows', 8, 1]);
		edits([uid, 'deleteRows', 3, 1]);
		ack(6);
		frame();
		session.undo();
		expect(wire.operations().at(-1)).toEqual([
			['insertRows', 3, 1],
			[3, 0, 'd'],
		]);
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

	test('never takes back what somebody else wrote with a structure edit, in one operation or in one resumed message', async () => {
		for (const commit of [
			[
				[2, 'insertRows', 5, 1],
				[2, 0, 0, '=2+2'],
			],
			[
				[2, 'insertRows', 5, 1],
				[2, 0, 0, '=2+2'],
				[2, 0, 0, '=1+1'],
			],
		]) {
			const { session, grid, type, edits, ack, log, wires, greet } = await open();
			type(0, 0, '=1+1');
			edits([1, 0, 0, '=1+1']);
			ack(1);
			wires[0]!.onclose?.({ code: 1006, reason: '' });
			await vi.waitFor(() => expect(wires.length).toBe(2));
			const wire = await greet({ seq: 6, resumed: true });
			wire.hear({ t: 'edits', seq: 8, more: true, edits: commit.slice(0, 1) });
			wire.hear({ t: 'edits', seq: 8, more: false, edits: commit.slice(1) });
			session.undo();
			expect([grid.contents(), log, wire.operations()]).toEqual([{ '0,0': commit.at(-1)![3] }, ['skipped 0,0'], []]);
		}
	});

	test('an own style does not hide that somebody else wrote the content', async () => {
		const { session, wire, grid, type, edits, ack, log } = await open();
		type(0, 0, 'x');
		edits([1, 0, 0, 'x']);
		ack(1);
		edits([2, 0, 0, 'y'], [2, 0, 0, 'x']);
		type(0, 0, 'x', { bl: 1 });
		edits([1, 0, 0, null, { bl: 1 }]);
		ack(2);
		session.undo();
		edits([1, 0, 0, null, null]);
		ack(3);
		session.undo();
		expect([grid.contents(), log, wire.operations().length]).toEqual([{ '0,0': 'x' }, ['skipped 0,0'], 3]);
	});

	test('cells that have not been read leave the entries as they are', async () => {
		const { session, wire, grid, type, undo, wires, greet } = await open([[0, 0, 'old']]);
		type(0, 0, 'new');
		session.undo();
		expect(undo).toEqual([false, true]);
		wires[0]!.onclose?.({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		await greet({ rows: 9000 });
		type(8000, 0, 'typed');
		session.write([{ row: 8001, col: 0, content: 'put back' }]);
		expect(undo).toEqual([false, true]);
		expect([grid.read(8001, 0).content, wire.operations().length]).toEqual(['put back', 2]);
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

describe('a command that needs cells which have not been read', () => {
	test('waits until they are, and is refused for good if they are too many', async () => {
		const { session, wires, greet } = await open();
		expect(
			session.lacks([
				{ row: 0, col: 0, toRow: 8, toCol: 8 },
				{ row: 3, col: 3, toRow: 400, toCol: 20 },
			]),
		).toBeNull();
		wires[0]!.onclose?.({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(wires.length).toBe(2));
		const wire = await greet({ rows: 1000000, cols: 10 });
		for (const id of [1]) wire.hear({ t: 'block', id, row: 0, col: 0, toRow: 119, toCol: 9, seq: 5, more: false, cells: [] });
		expect(session.lacks([{ row: 0, col: 0, toRow: 119, toCol: 9 }])).toBeNull();
		expect(session.lacks([{ row: 0, col: 0, toRow: 999999, toCol: 9 }])).toBe('large');
		expect(
			session.lacks([
				{ row: 100, col: 0, toRow: 130, toCol: 2 },
				{ row: 150, col: 5, toRow: 160, toCol: 5 },
			]),
		).toBe('unread');
		expect(wire.said.at(-1)).toEqual({ t: 'get', id: 3, row: 120, col: 0, toRow: 160, toCol: 5 });
		wire.hear({ t: 'block', id: 3, row: 120, col: 0, toRow: 160, toCol: 5, seq: 5, more: false, cells: [] });
		expect(session.lacks([{ row: 100, col: 0, toRow: 130, toCol: 2 }])).toBeNull();
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
		const pasted = {
			ff: 'Arial',
			fs: 11,
			it: 0,
			bl: 0,
			ul: { s: 0 },
			st: { s: 0 },
			ol: { s: 0 },
			cl: { rgb: '#000' },
			td: 0,
			tr: { a: 0, v: 0 },
			ht: 0,
			vt: 0,
			tb: 0,
			pd: {},
		};
		expect(plainStyle(pasted)).toBeNull();
		expect(plainStyle({ ...pasted, bl: 1, bg: null })).toEqual({ bl: 1 });
		expect(sameStyle({ bl: 1, n: { pattern: '0' } }, { n: { pattern: '0' }, bl: 1, it: 0 })).toBe(true);
		expect(sameStyle(null, { bl: 1 })).toBe(false);
	});

	test('styles of any JSON are compared, and reach the grid without fields that it cannot show', () => {
		const bombs = [
			5,
			'x',
			[],
			{ ff: { x: 1 } },
			{ constructor: 1 },
			{ toString: 1 },
			{ valueOf: {} },
			JSON.parse('{"__proto__":{"x":1}}'),
			{ n: { pattern: 5 } },
			{ bd: { t: 7 } },
			{ bd: { t: { s: 1, cl: 'x' } } },
			{ fs: '9' },
		];
		for (const bomb of bombs) {
			expect(knownStyle(bomb)).toBeNull();
			expect(sameStyle(bomb, { bl: 1 })).toBe(false);
		}
		expect(plainStyle({ constructor: 1 })).toEqual({ constructor: 1 });
		const shown = { bl: 1, n: { pattern: '0.00' }, bd: { t: { s: 1, cl: { rgb: '#000' } }, b: null }, bg: null, cl: { rgb: null } };
		expect(knownStyle({ ...shown, ff: 5, custom: 1 })).toEqual(shown);
	});
});
