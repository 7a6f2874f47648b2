// structure.test.ts - the user's structure edits: taken back and made again, moves, and what others do meanwhile. `sheet`
// plays the gateway and the database: it applies operations to cells of its own, and rewrites formulas.
import { describe, expect, test, vi } from 'vitest';
import { tupleToEdit } from '../src/v2/edits';
import { moveContent, movePlace } from '../src/v2/lines';
import { type Edit, isProperty, isStructure } from '../src/v2/messages';
import { open } from './open_sheet';

async function sheet(cells: [number, number, string][] = []) {
	const opened = await open(cells);
	let stored = new Map(cells.map(([row, col, content]) => [`${row},${col}`, content]));
	let done = 0;

	/** Applies edits, and returns them as the database stores them. */
	const store = (uid: number, edits: Edit[]): unknown[][] => {
		const log: unknown[][] = [];
		edits.forEach((edit, i) => {
			if (isProperty(edit)) {
				log.push([uid, 'property', edit.row, edit.col, edit.toRow, edit.toCol, edit.key, edit.value]);
				return;
			}
			if (!isStructure(edit)) {
				if (edit.content !== undefined) stored.set(`${edit.row},${edit.col}`, edit.content);
				log.push([uid, edit.row, edit.col, edit.content ?? null, ...(edit.style ? [edit.style] : [])]);
				return;
			}
			log.push([uid, edit.kind, edit.at, edit.n]);
			const rewritten = new Map<string, string>();
			stored = new Map(
				[...stored].flatMap(([key, content]): [string, string][] => {
					const [row, col] = key.split(',').map(Number) as [number, number];
					const place = movePlace({ row, col }, edit);
					const moved = moveContent(content, edit)!;
					if (place && moved !== content) rewritten.set(`${place.row},${place.col}`, moved);
					return place ? [[`${place.row},${place.col}`, moved]] : [];
				}),
			);
			// The database rewrites behind adjacent structure edits; what it writes between them is the same in the end.
			if (!edits[i + 1] || !isStructure(edits[i + 1]!)) {
				for (const [key, content] of stored) {
					const [row, col] = key.split(',').map(Number) as [number, number];
					if (content.startsWith('=')) log.push([uid, row, col, content]);
				}
			}
		});
		return log;
	};
	/** Takes the user's operations, in their order. */
	const take = () => {
		const operations = opened.wire.said.filter(({ t }) => t === 'op');
		for (; done < operations.length; done++) {
			opened.edits(...store(1, (operations[done]!.edits as unknown[]).map(tupleToEdit)));
			opened.ack(operations[done]!.n as number);
		}
		opened.frame();
	};
	const others = (...tuples: unknown[][]) => opened.edits(...store(2, tuples.map(tupleToEdit)));
	const rows = (kind: 'insertRows' | 'deleteRows', at: number, n = 1) => (opened.session.restructure({ kind, at, n }), take());
	const write = (row: number, col: number, content: string) => (opened.type(row, col, content), take());
	const undo = () => (opened.session.undo(), take(), take());
	const redo = () => (opened.session.redo(), take(), take());
	const shows = () => {
		const contents = Object.fromEntries([...stored].filter(([, content]) => content !== ''));
		expect(opened.grid.contents()).toEqual(contents);
		return contents;
	};
	return { ...opened, take, others, rows, write, undo, redo, shows };
}

describe('structure edits are taken back', () => {
	test('an insertion, and it is made again', async () => {
		const { rows, undo, redo, shows } = await sheet([
			[0, 0, 'a'],
			[2, 0, '=A1'],
		]);
		rows('insertRows', 0, 2);
		expect(shows()).toEqual({ '2,0': 'a', '4,0': '=A3' });
		undo();
		expect(shows()).toEqual({ '0,0': 'a', '2,0': '=A1' });
		redo();
		expect(shows()).toEqual({ '2,0': 'a', '4,0': '=A3' });
		undo();
		expect(shows()).toEqual({ '0,0': 'a', '2,0': '=A1' });
	});

	test('an insertion stays if somebody has written into it, or refers to it', async () => {
		const { rows, undo, others, shows, log } = await sheet([[0, 0, 'a']]);
		rows('insertRows', 0);
		others([0, 3, 'theirs']);
		undo();
		expect([shows(), log]).toEqual([{ '1,0': 'a', '0,3': 'theirs' }, ['hindered written']]);
		rows('insertRows', 0);
		others([5, 0, '=A1*2']);
		undo();
		expect([shows()['5,0'], log[1]]).toEqual(['=A1*2', 'hindered referred']);
	});

	test('a deletion, with contents, formats and formulas', async () => {
		const { rows, undo, redo, shows, grid, frame, edits } = await sheet([
			[1, 0, 'b'],
			[1, 1, '=A5'],
			[2, 0, 'c'],
			[4, 0, '=A2+A6'],
			[6, 0, '=SUM(A1:A2)'],
		]);
		edits([2, 1, 0, null, { bl: 1 }]);
		frame();
		rows('deleteRows', 1);
		expect(shows()).toEqual({ '1,0': 'c', '3,0': '=#REF!+A5', '5,0': '=SUM(A1:A1)' });
		undo();
		expect(shows()).toEqual({ '1,0': 'b', '1,1': '=A5', '2,0': 'c', '4,0': '=A2+A6', '6,0': '=SUM(A1:A2)' });
		expect(grid.read(1, 0).style).toEqual({ bl: 1 });
		redo();
		expect(shows()).toEqual({ '1,0': 'c', '3,0': '=#REF!+A5', '5,0': '=SUM(A1:A1)' });
		undo();
		expect(shows()['4,0']).toBe('=A2+A6');
	});

	test('a deletion after others have moved everything, and not the formulas that they have changed', async () => {
		const { rows, undo, others, shows, log } = await sheet([
			[1, 0, 'b'],
			[1, 1, '=A4+A2'],
			[3, 0, 'x'],
			[4, 0, '=A2'],
			[5, 0, '=A2+A4'],
		]);
		rows('deleteRows', 1);
		others(['insertRows', 0, 2]);
		others(['insertRows', 4, 1], [6, 0, 'theirs']);
		expect(shows()).toEqual({ '5,0': 'x', '6,0': 'theirs', '7,0': '=#REF!+A6' });
		undo();
		expect([shows(), log]).toEqual([{ '3,0': 'b', '3,1': '=A7+A4', '6,0': 'x', '7,0': 'theirs', '8,0': '=A4+A7' }, ['skipped 6,0']]);
	});

	test('two deletions with a formula that refers to both, and an edit in a deleted row', async () => {
		const cells: [number, number, string][] = [
			[2, 0, 'c'],
			[6, 0, 'g'],
			[8, 0, '=A7+A3'],
		];
		const { rows, write, undo, redo, shows } = await sheet(cells);
		write(6, 0, 'G');
		rows('deleteRows', 6);
		rows('deleteRows', 2);
		expect(shows()).toEqual({ '6,0': '=#REF!+#REF!' });
		undo();
		expect(shows()).toEqual({ '2,0': 'c', '7,0': '=#REF!+A3' });
		undo();
		expect(shows()).toEqual({ '2,0': 'c', '6,0': 'G', '8,0': '=A7+A3' });
		undo();
		expect(shows()).toEqual({ '2,0': 'c', '6,0': 'g', '8,0': '=A7+A3' });
		for (let i = 0; i < 3; i++) redo();
		expect(shows()).toEqual({ '6,0': '=#REF!+#REF!' });
	});

	test('steps that are pressed fast wait for each other, and say what others must not have written', async () => {
		const { session, wire, take, rows, write, shows } = await sheet([
			[3, 0, 'd'],
			[5, 0, '=A4'],
		]);
		write(3, 1, 'mine');
		rows('deleteRows', 3);
		session.undo();
		session.undo();
		expect(wire.operations().length).toBe(3);
		take();
		take();
		expect(shows()).toEqual({ '3,0': 'd', '5,0': '=A4' });
		expect(wire.said.filter(({ t }) => t === 'op').map(({ seen }) => seen !== undefined)).toEqual([false, false, true, true]);
	});

	test('are made again if others have written at the same moment', async () => {
		const { session, wire, rows, others, take, shows } = await sheet([
			[3, 0, 'd'],
			[5, 0, '=A4'],
		]);
		rows('deleteRows', 3);
		session.undo();
		vi.useFakeTimers();
		others([8, 0, '=A1']);
		wire.hear({ t: 'nack', n: 2, reason: 'base', row: 8, col: 0, block: false });
		wire.said = wire.said.filter(({ n }) => n !== 2);
		vi.runAllTimers();
		vi.useRealTimers();
		take();
		expect(shows()).toEqual({ '3,0': 'd', '5,0': '=A4', '9,0': '=A1' });
	});

	test('whatever the user asks for after an undo comes after it', async () => {
		const { session, take, type, shows } = await sheet([
			[1, 0, 'b'],
			[3, 0, 'd'],
		]);
		session.restructure({ kind: 'deleteRows', at: 1, n: 1 });
		session.undo();
		// The user still sees the deleted row: d is in row 4.
		session.restructure({ kind: 'insertRows', at: 3, n: 1 });
		type(8, 0, 'typed');
		session.moveLines({ rows: true, at: 3, n: 1, to: 0 });
		for (let i = 0; i < 5; i++) take();
		expect(shows()).toEqual({ '0,0': 'd', '2,0': 'b', '10,0': 'typed' });
	});

	test('an undo that is made again comes before what the user has asked for, which follows the rows', async () => {
		const { session, wire, rows, type, others, take, shows } = await sheet([
			[3, 0, 'd'],
			[5, 0, '=A4'],
		]);
		rows('deleteRows', 3);
		session.undo();
		vi.useFakeTimers();
		others(['insertRows', 0, 1], [8, 0, '=A1']);
		wire.hear({ t: 'nack', n: 2, reason: 'base', row: 8, col: 0, block: false });
		wire.said = wire.said.filter(({ n }) => n !== 2);
		type(7, 1, 'typed');
		take();
		session.restructure({ kind: 'insertRows', at: 7, n: 1 });
		others(['insertRows', 0, 1]);
		vi.runAllTimers();
		vi.useRealTimers();
		for (let i = 0; i < 3; i++) take();
		expect(shows()).toEqual({ '5,0': 'd', '7,0': '=A6', '10,1': 'typed', '11,0': '=A2' });
	});

	test('the contents before an edit move with the references', async () => {
		const { write, undo, others, shows } = await sheet([
			[5, 0, '=A2'],
			[1, 0, '1'],
		]);
		write(5, 0, 'typed over it');
		others(['insertRows', 0, 3]);
		undo();
		expect(shows()).toEqual({ '8,0': '=A5', '4,0': '1' });
	});

	test('a formula that somebody puts back is theirs, one that the database rewrites is not', async () => {
		const { write, undo, others, shows, log } = await sheet();
		write(5, 0, '=A1');
		others(['insertRows', 0, 1], [6, 0, '=A9'], [6, 0, '=A2']);
		undo();
		expect([shows(), log]).toEqual([{ '6,0': '=A2' }, ['skipped 6,0']]);
	});
});

describe('rows and columns are moved', () => {
	const cells: [number, number, string][] = [
		[0, 0, 'a'],
		[1, 0, 'b'],
		[1, 1, '=A2&A1'],
		[2, 0, 'c'],
		[3, 0, 'd'],
		[5, 0, '=A2'],
		[6, 0, '=SUM(A1:A4)'],
		[7, 0, '=B2'],
	];

	test('down and up, with references that follow them', async () => {
		const { session, take, undo, redo, shows, wire } = await sheet(cells);
		session.moveLines({ rows: true, at: 1, n: 1, to: 3 });
		take();
		expect(shows()).toEqual({ '0,0': 'a', '1,0': 'c', '2,0': 'b', '2,1': '=A3&A1', '3,0': 'd', '5,0': '=A3', '6,0': '=SUM(A1:A4)', '7,0': '=B3' });
		expect(wire.operations().length).toBe(1);
		undo();
		expect(shows()).toEqual(Object.fromEntries(cells.map(([row, col, content]) => [`${row},${col}`, content])));
		redo();
		expect(shows()['5,0']).toBe('=A3');
		session.moveLines({ rows: true, at: 2, n: 2, to: 0 });
		take();
		expect(shows()).toMatchObject({ '0,0': 'b', '0,1': '=A1&A3', '1,0': 'd', '2,0': 'a', '3,0': 'c', '5,0': '=A1' });
		session.moveLines({ rows: false, at: 0, n: 1, to: 3 });
		take();
		expect(shows()).toMatchObject({ '0,2': 'b', '0,0': '=C1&C3', '5,2': '=C1' });
	});

	test('a range loses a row that leaves it and has one that comes, and undo brings it back', async () => {
		const { session, take, undo, others, shows } = await sheet([
			[0, 0, '=SUM(B2:B5)'],
			[1, 0, '=B5'],
			[4, 1, '5'],
			[8, 1, '9'],
		]);
		session.moveLines({ rows: true, at: 4, n: 1, to: 7 });
		take();
		expect(shows()).toMatchObject({ '0,0': '=SUM(B2:B4)', '1,0': '=B7', '6,1': '5' });
		session.moveLines({ rows: true, at: 8, n: 1, to: 2 });
		take();
		expect(shows()).toMatchObject({ '0,0': '=SUM(B2:B5)', '1,0': '=B8', '2,1': '9' });
		others(['insertRows', 0, 1]);
		undo();
		undo();
		expect(shows()).toEqual({ '1,0': '=SUM(B3:B6)', '2,0': '=B6', '5,1': '5', '9,1': '9' });
	});

	test('a range whose rows change places has them all', async () => {
		const { session, take, shows } = await sheet([
			[0, 0, '=SUM(B2:B5)'],
			[4, 1, '5'],
		]);
		session.moveLines({ rows: true, at: 4, n: 1, to: 1 });
		take();
		expect(shows()).toEqual({ '0,0': '=SUM(B2:B5)', '1,1': '5' });
	});

	test('waits for own edits, and is made again if others have written meanwhile', async () => {
		const { session, wire, type, take, others, shows } = await sheet(cells);
		type(1, 0, 'B');
		session.moveLines({ rows: true, at: 1, n: 1, to: 3 });
		expect(wire.operations().length).toBe(1);
		take();
		expect(wire.operations().length).toBe(2);
		vi.useFakeTimers();
		others([1, 2, 'theirs']);
		wire.hear({ t: 'nack', n: 2, reason: 'base', row: 1, col: 2, block: false });
		wire.said = wire.said.filter(({ n }) => n !== 2);
		vi.runAllTimers();
		vi.useRealTimers();
		take();
		expect(shows()).toMatchObject({ '2,0': 'B', '2,2': 'theirs', '5,0': '=A3' });
	});

	test('what the user asks for during a move is done where the rows have moved', async () => {
		const { session, take, shows } = await sheet([
			[0, 0, 'a'],
			[1, 0, 'b'],
			[2, 0, 'c'],
			[3, 0, 'd'],
			[4, 0, 'e'],
		]);
		session.moveLines({ rows: true, at: 1, n: 2, to: 5 });
		session.restructure({ kind: 'deleteRows', at: 1, n: 1 });
		session.moveLines({ rows: true, at: 2, n: 1, to: 0 });
		session.restructure({ kind: 'insertRows', at: 0, n: 1 });
		expect(session.unsaved).toBe(4);
		for (let i = 0; i < 5; i++) take();
		expect(session.unsaved).toBe(0);
		expect(shows()).toEqual({ '0,0': 'c', '2,0': 'a', '3,0': 'd', '4,0': 'e' });
	});

	test('a move that waits is made when the page is left, behind the edits that it waits for', async () => {
		const { session, wire, type, take, shows, log } = await sheet(cells);
		type(1, 0, 'B');
		session.moveLines({ rows: true, at: 1, n: 1, to: 3 });
		session.store();
		expect(wire.operations().length).toBe(2);
		take();
		expect(shows()).toMatchObject({ '1,0': 'c', '2,0': 'B', '2,1': '=A3&A1', '5,0': '=A3' });
		type(5, 5, 'typed');
		session.moveLines({ rows: true, at: 2, n: 1, to: 0 });
		session.restructure({ kind: 'insertRows', at: 0, n: 1 });
		void session.stop();
		expect([wire.operations().length, session.unsaved, log]).toEqual([4, 2, ['hindered left']]);
	});

	test('a move that is made when the page is left takes along the properties that the user has just set', async () => {
		const { session, take } = await sheet(cells);
		session.changed([], [{ row: 1, col: 0, toRow: 1, toCol: 16383, key: 'height', value: 30 }]);
		session.moveLines({ rows: true, at: 1, n: 1, to: 3 });
		session.store();
		take();
		take();
		expect(
			session
				.properties()
				.of('height')
				.map(({ row, toRow, value }) => [row, toRow, value]),
		).toEqual([[2, 2, 30]]);
	});

	test('properties come along, and come back with deleted rows', async () => {
		const { session, take, rows, undo, others, shows } = await sheet(cells);
		const height = (row: number, toRow: number, value: number) => ['property', row, 0, toRow, 16383, 'height', value];
		const heights = () =>
			session
				.properties()
				.of('height')
				.map(({ row, toRow, value }) => [row, toRow, value])
				.sort();
		others(height(1, 1, 30), height(2, 5, 40), height(7, 7, 50));
		session.moveLines({ rows: true, at: 1, n: 1, to: 7 });
		take();
		expect(heights()).toEqual([
			[1, 4, 40],
			[6, 6, 30],
			[7, 7, 50],
		]);
		undo();
		expect(heights()).toEqual([
			[1, 1, 30],
			[2, 5, 40],
			[7, 7, 50],
		]);
		rows('deleteRows', 5, 3);
		expect(heights()).toEqual([
			[1, 1, 30],
			[2, 4, 40],
		]);
		others(['insertRows', 0, 1]);
		undo();
		expect(heights()).toEqual([
			[2, 2, 30],
			[3, 6, 40],
			[8, 8, 50],
		]);
		expect(shows()['2,0']).toBe('b');
	});

	test('edits from before a move are taken back where they are now', async () => {
		const { session, write, take, undo, others, shows } = await sheet(cells);
		write(1, 0, 'B');
		session.moveLines({ rows: true, at: 1, n: 1, to: 3 });
		take();
		others(['insertRows', 1, 1]);
		expect(shows()['3,0']).toBe('B');
		undo();
		expect(shows()).toMatchObject({ '1,0': 'B', '3,0': 'c' });
		undo();
		expect(shows()).toMatchObject({ '1,0': 'b', '3,0': 'c' });
	});
});

test('edits that lose their cell, or a reference, while they are on their way are offered', async () => {
	const { type, log, others } = await sheet([[3, 0, 'd']]);
	type(3, 1, 'typed');
	type(5, 0, '=A4+A1');
	others(['deleteRows', 3, 1]);
	expect(log).toEqual([
		`lost ${JSON.stringify([[{ row: 3, col: 1, content: 'typed' }], []])}`,
		`lost ${JSON.stringify([[], [{ row: 4, col: 0, content: '=A4+A1' }]])}`,
	]);
});
