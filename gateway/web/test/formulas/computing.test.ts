// computing.test.ts - tests view/formulas: the messages to the worker, and the results in the grid.
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ToWorker } from '../../src/formulas/messages';
import type { StoredValues } from '../../src/view/formulas/computing';
import { withoutDerived } from '../../src/view/formulas/values';
import { ids, Mute, Page, placeOf, TestWorker, wait } from './computing_page';
import { randomOf } from '../person';

let page: Page;
const open = (make?: () => TestWorker): Page => (page = new Page(make));
afterEach(() => page.computing.dispose());

describe('rows and columns that move', () => {
	test('edits that were made just before reach the worker', async () => {
		open().write({ A1: '1', A5: '5', B1: '=A1+A5' });
		await page.settled();
		page.write({ A5: '7', C6: 'gone' });
		page.move({ kind: 'deleteRows', at: 5, n: 1 });
		page.write({ A1: '2' });
		page.move({ kind: 'insertRows', at: 1, n: 2 });
		page.move({ kind: 'insertColumns', at: 0, n: 1 });
		page.write({ C1: '=B1+B7' });
		await page.settled();
		expect(page.of('C1', 'B7')).toEqual([9, 7]);
		expect(page.workers.length).toBe(1);
	});

	test('while the cells are sent to the worker for the first time', async () => {
		open().write({ A1: '1', A2: '2', A3: '3', B1: '=SUM(A1:A9)' });
		page.move({ kind: 'insertRows', at: 0, n: 1 });
		page.move({ kind: 'deleteRows', at: 2, n: 1 });
		await page.settled();
		expect(page.of('B2')).toEqual([4]);
	});

	test('arrays fill their cells anew', async () => {
		open().write({ A1: '=SEQUENCE(3)', B1: '=A3' });
		await page.settled();
		page.move({ kind: 'insertRows', at: 0, n: 1 });
		page.write({ B2: '=A4' });
		await page.settled();
		expect(page.of('A2', 'B2')).toEqual([1, 3]);
	});
});

test('random edits and moves, of which the worker hears later, end with the values of a page that opens the sheet then', async () => {
	const random = randomOf(Number(process.env.PG_SHEET_SEED ?? 20260101));
	const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
	const name = () => `${pick(['A', 'B', 'C', 'D', 'E'])}${1 + random(8)}`;
	const content = () =>
		pick([
			() => `${random(9)}`,
			() => '',
			() => 'text',
			() => `=${name()}+${name()}`,
			() => `=SUM(${name()}:${name()})`,
			() => `=SEQUENCE(${1 + random(3)})`,
			() => '=COUNTA(A:B)',
			() => '=RAND()',
			() => '=SUBTOTAL(109,A1:A9)',
		])();
	for (let round = 0; round < (process.env.LONG ? 200 : 10); round++) {
		open();
		for (let i = 0; i < 40; i++) {
			const what = random(10);
			if (what < 6) page.write(Object.fromEntries(Array.from({ length: 1 + random(3) }, () => [name(), content()])));
			else if (what < 8) page.move({ kind: pick(['insertRows', 'deleteRows', 'insertColumns', 'deleteColumns'] as const), at: random(6), n: 1 + random(2) });
			else if (what === 8) page.computing.hide([random(4), 5 + random(3)]);
			else for (let turns = random(6); turns > 0; turns--) await wait();
		}
		const names = ['A', 'B', 'C', 'D', 'E', 'F', 'G'].flatMap((col) => Array.from({ length: 16 }, (_, row) => `${col}${row + 1}`));
		const hidden = [1];
		page.computing.hide(hidden);
		page.write({ H1: `=${round}` });
		await page.settled();
		const contents = Object.fromEntries(names.map((of) => [of, page.contents.contentAt(placeOf(of).row, placeOf(of).col)]).filter(([, of]) => of !== ''));
		const shown = { values: page.of(...names), filled: page.filled(...names) };
		page.computing.dispose();
		open();
		page.computing.hide(hidden);
		page.write({ ...contents, H1: `=${round}` });
		await page.settled();
		expect(shown, JSON.stringify(contents)).toEqual({ values: page.of(...names), filled: page.filled(...names) });
	}
});

describe('a format that follows from a result', () => {
	test('is not stored, and goes with the formula', async () => {
		open().write({ A1: '=TODAY()', A2: '=TODAY()', A3: '=TODAY()', A4: '=TODAY()' });
		await page.settled();
		expect(page.format('A1')).toBe('yyyy-mm-dd');
		expect(page.contents.read(0, 0)).toEqual({ content: '=TODAY()', style: null });
		page.write({ A1: '5', A2: '2024-05-06' });
		// As Univer does for the user: a number, a deletion.
		const patch = { f: null, si: null, p: null };
		page.commands.syncExecuteCommand('sheet.mutation.set-range-values', {
			...ids,
			cellValue: { 2: { 0: { ...patch, v: 6, s: { bl: 1 } } }, 3: { 0: { ...patch, v: null, custom: null } } },
		});
		await page.settled();
		expect(['A1', 'A2', 'A3', 'A4'].map((name) => page.format(name))).toEqual([undefined, 'yyyy-mm-dd', undefined, undefined]);
		const stored = [0, 1, 2, 3].map((row) => page.contents.read(row, 0));
		expect(stored).toEqual([
			{ content: '5', style: null },
			{ content: '2024-05-06', style: { n: { pattern: 'yyyy-mm-dd' } } },
			{ content: '6', style: { bl: 1 } },
			{ content: '', style: null },
		]);
		page.write({ A2: '=A1', A4: '=TODAY()' });
		await page.settled();
		expect([page.format('A2'), page.format('A4'), ...page.of('A2')]).toEqual([undefined, 'yyyy-mm-dd', 5]);
	});

	test('gives way to one of the user, of whom nothing else is lost', async () => {
		open().write({ A1: '=TODAY()', A2: '=TODAY()', B1: '1' });
		await page.settled();
		page.contents.apply([
			{ row: 0, col: 0, style: { n: { pattern: '0.00' } } as never },
			{ row: 1, col: 0, style: { bl: 1 } as never },
		]);
		page.write({ B1: '2', B2: '=B1' });
		await page.settled();
		page.write({ A1: '=TODAY()+B1' });
		await page.settled();
		expect([page.format('A1'), page.format('A2')]).toEqual(['0.00', 'yyyy-mm-dd']);
		expect([page.contents.read(0, 0).style, page.contents.read(1, 0).style]).toEqual([{ n: { pattern: '0.00' } }, { bl: 1 }]);
	});

	test('of a date that is not stored goes with the date', () => {
		open();
		const style = { n: { pattern: 'yyyy-mm-dd' } };
		const wide = { row: 0, col: 0, toRow: 9, toCol: 9 };
		page.contents.fill(
			wide,
			[
				{ row: 0, col: 0, content: '2024-02-02', style: null },
				{ row: 1, col: 0, content: '2024-02-02', style: style as never },
			],
			() => false,
		);
		page.write({ A3: '2024-02-02' });
		for (const [content, format] of [
			['5', undefined],
			['2024-02-02', 'yyyy-mm-dd'],
			['10:30:00', 'hh:mm:ss'],
			['0.5', undefined],
			['2024-02-02 10:30:00', 'yyyy-mm-dd hh:mm:ss'],
			['text', undefined],
		] as const) {
			page.write({ A1: content, A3: content });
			expect([page.contents.contentAt(0, 0), page.format('A1'), page.contents.contentAt(2, 0), page.format('A3')]).toEqual([content, format, content, format]);
		}
		page.write({ A2: '5' });
		expect([page.contents.contentAt(1, 0), page.format('A2')]).toEqual(['1900-01-05', 'yyyy-mm-dd']);
		// As Univer does for the user: a deletion.
		page.write({ A1: '2024-02-02' });
		page.commands.syncExecuteCommand('sheet.mutation.set-range-values', {
			...ids,
			cellValue: { 0: { 0: { v: null, f: null, si: null, p: null, custom: null } } },
		});
		expect(page.contents.read(0, 0)).toEqual({ content: '', style: null });
		page.write({ A1: '5' });
		expect(page.contents.read(0, 0)).toEqual({ content: '5', style: null });
		// Somebody stores the format.
		page.write({ A1: '2024-02-02', A3: '2024-02-02' });
		page.contents.apply([{ row: 0, col: 0, style: { ...style, bl: 1 } as never }]);
		page.contents.stores(2, 0);
		page.write({ A1: '5', A3: '5' });
		expect([page.format('A1'), page.format('A3')]).toEqual(['yyyy-mm-dd', 'yyyy-mm-dd']);
	});

	test('is not what the user types', () => {
		open();
		const styles = page.book.getStyles();
		const style = { bl: 1 as const, n: { pattern: 'yyyy-mm-dd' } };
		const old = { f: '=TODAY()', v: 46000, s: styles.setValue(style), custom: { derivedFormat: 'yyyy-mm-dd' } };
		expect(withoutDerived({ v: 5, s: style }, old, styles)).toEqual({ v: 5, s: { bl: 1 } });
		expect(withoutDerived({ v: 5, s: style }, { ...old, custom: null }, styles)).toEqual({ v: 5, s: style });
	});
});

test('until the worker answers, formulas show what the server has stored', async () => {
	const cells: StoredValues['cells'] = [
		[0, 0, '5'],
		[0, 1, '2024-01-31'],
		[0, 2, 'old'],
		[1, 0, "'12"],
		[1, 1, '#DIV/0!'],
		[1, 2, '=B1'],
	];
	const formulas = { A1: '=D1', B1: '=D2', C1: 'new', A2: '=D3', B2: '=1/0', C2: '=D4' };
	open(() => new Mute()).stored = async () => ({ seq: 1, cells });
	page.write(formulas);
	await vi.waitUntil(() => page.of('A1')[0] === 5);
	expect(page.of('A1', 'B1', 'C1', 'A2', 'B2', 'C2')).toEqual([5, 45322, 'new', '12', '#DIV/0!', null]);
	expect(page.contents.contentAt(0, 1)).toBe('=D2');
	page.computing.dispose();

	// of another state, or after the worker's results: nothing
	const answer = Promise.resolve({ seq: 2, cells });
	open(() => new Mute()).stored = () => answer;
	page.write(formulas);
	await answer.then(wait);
	expect(page.of('A1', 'B1')).toEqual([null, null]);
	page.computing.dispose();
	let give!: (stored: StoredValues) => void;
	const late = new Promise<StoredValues>((resolve) => (give = resolve));
	open().stored = () => late;
	page.write({ A1: '=D1+1', D1: '6' });
	await page.settled();
	give({ seq: 1, cells });
	await late.then(wait);
	expect(page.of('A1')).toEqual([7]);
});

test('a formula is named as the one that takes too long only while it is computed', async () => {
	vi.useFakeTimers();
	try {
		open(() => new Mute()).write({ A1: '=B1' });
		await vi.advanceTimersByTimeAsync(100);
		const [first] = page.workers;
		first!.say({ t: 'ready' });
		first!.say({ t: 'at', tab: 0, row: 0, col: 0, formula: '=B1' });
		first!.say({ t: 'done', n: (first!.heard.at(-1) as { n: number }).n });
		page.write({ B1: '2' });
		await vi.advanceTimersByTimeAsync(6000);
		expect([page.events, page.workers.length, first!.ended]).toEqual([[], 2, true]);
		expect(page.worker.heard[0]).toEqual({ t: 'start', stopped: [], careful: true });
		page.worker.say({ t: 'ready' });
		page.worker.say({ t: 'at', tab: 0, row: 0, col: 0, formula: '=B1' });
		await vi.advanceTimersByTimeAsync(6000);
		expect(page.events).toEqual(['stopped 0,0']);
		expect(page.worker.heard[0]).toEqual({ t: 'start', stopped: ['=B1'], careful: true });
	} finally {
		vi.useRealTimers();
	}
});

test('a worker that does not load is started again after a while, twice', async () => {
	vi.useFakeTimers();
	try {
		open(() => new Mute()).write({ A1: '=B1', B1: '2' });
		await vi.advanceTimersByTimeAsync(100);
		for (const [workers, pause] of [
			[1, 5000],
			[2, 10000],
		] as const) {
			expect(page.workers.length).toBe(workers);
			page.worker.onerror!({} as never);
			// Formulas that are written in the pause do not end it.
			page.write({ A2: '=B1', A1: `=B${pause}` });
			page.move({ kind: 'insertRows', at: 0, n: 1 });
			await vi.advanceTimersByTimeAsync(pause - 1);
			expect(page.workers.length).toBe(workers);
			await vi.advanceTimersByTimeAsync(1);
		}
		expect([page.workers.length, page.events.includes('off')]).toEqual([3, false]);
		page.worker.onerror!({} as never);
		expect([page.workers.length, page.events.includes('off'), page.computing.isOff]).toEqual([3, true, true]);
		expect(page.of('A2', 'A3')).toEqual(['=B10000', '=B1']);
	} finally {
		vi.useRealTimers();
	}
});

test('the array of a formula that is stopped goes', async () => {
	vi.useFakeTimers();
	try {
		let isStuck = false;
		class Stuck extends TestWorker {
			protected override hear(message: ToWorker): void {
				if (!isStuck || this !== page.workers[0]) super.hear(message);
			}
		}
		open(() => new Stuck()).write({ A1: '=SEQUENCE(B1)', B1: '3' });
		await vi.advanceTimersByTimeAsync(300);
		expect(page.filled('A2', 'A3')).toEqual([2, 3]);
		isStuck = true;
		page.write({ B1: '4' });
		await vi.advanceTimersByTimeAsync(100);
		page.worker.say({ t: 'at', tab: 0, row: 0, col: 0, formula: '=SEQUENCE(B1)' });
		await vi.advanceTimersByTimeAsync(6000);
		expect(page.events).toEqual(['stopped 0,0']);
		expect([...page.of('A1'), ...page.filled('A2', 'A3')]).toEqual(['#CALC!', null, null]);
	} finally {
		vi.useRealTimers();
	}
});

test('cells that are read anew replace formulas and their arrays', async () => {
	open().write({ A1: '=SEQUENCE(2)', B1: '=A1+1', C1: '=B1' });
	await page.settled();
	const cells = [
		{ row: 0, col: 0, content: '5' },
		{ row: 0, col: 2, content: '=A1' },
	].map((cell) => ({ ...cell, style: null }));
	page.contents.fill({ row: 0, col: 0, toRow: 9, toCol: 9 }, cells, () => false);
	await page.settled();
	expect([...page.of('A1', 'B1', 'C1'), ...page.filled('A2')]).toEqual([5, null, 5, null]);
	expect([0, 1, 2].map((col) => page.contents.contentAt(0, col))).toEqual(['5', '', '=A1']);
});
