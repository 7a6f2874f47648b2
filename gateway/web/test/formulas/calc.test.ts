// calc.test.ts - calc computes what the page computes, and its values are what the cells show (docs/design/calc.md).
import { describe, expect, test } from 'vitest';
import { ComputedSheet } from '../../../../calc/sheet';
import type { Values } from '../../../../calc/messages';
import { valueContent } from '../../../../calc/values';
import { readContent } from '../../src/formulas/tab_cells';
import { againAt } from '../../../../calc/again';
import { Peers } from '../../../../calc/peers';
import { formatDate, parseContent } from '../../src/content';
import { keyOf } from '../../src/formulas/cells';
import { Evaluator } from '../../src/formulas/evaluator';
import { ByteWriter } from '../../src/v2/bytes';
import { writeEdits } from '../../src/v2/edits';
import { movePlace } from '../../src/v2/lines';
import { type Edit, isProperty, isStructure } from '../../src/v2/messages';
import { randomOf } from '../person';

const evaluator = new Evaluator();
// A turn of the event loop, in which waiting messages are handled.
const hooks = { alive: () => {}, pause: () => new Promise<void>((resolve) => setTimeout(resolve, 0)) };

/** A stored batch. */
function batchOf(seq: number, edits: Edit[]): Uint8Array {
	const writer = new ByteWriter();
	writer.byte(1);
	writer.number(seq);
	writer.number(0);
	writeEdits(writer, edits);
	return writer.finish();
}

/** What the database has stored after this. */
function store(stored: Map<number, string>, values: Values): void {
	if (values.whole) stored.clear();
	values.row.forEach((row, i) => {
		const key = keyOf(row, values.col[i]!);
		if (values.value[i] === null) stored.delete(key);
		else stored.set(key, values.value[i]!);
	});
}

async function computed(cells: Edit[], seq: number): Promise<Map<number, string>> {
	const sheet = new ComputedSheet(evaluator, [], false, hooks);
	sheet.setProperties(100, null);
	sheet.addCells(100, batchOf(seq, cells));
	const stored = new Map<number, string>();
	store(stored, (await sheet.compute(seq))!);
	return stored;
}

const value = async (content: string, style?: Record<string, unknown>) => (await computed([{ row: 0, col: 0, content, ...(style && { style }) }], 1)).get(0);

describe('values as contents', () => {
	test('a number is the same double again', () => {
		const below = randomOf(7);
		const bytes = new DataView(new ArrayBuffer(8));
		for (let i = 0; i < 10_000; i++) {
			for (let byte = 0; byte < 8; byte++) bytes.setUint8(byte, below(256));
			const number = i % 2 ? bytes.getFloat64(0) : Number((below(1e12) / 1e6).toFixed(i % 7));
			if (!Number.isFinite(number)) continue;
			const content = valueContent({ v: number, t: 2 }, undefined);
			expect(parseContent(content)).toEqual({ kind: 'number', number: number === 0 ? 0 : number });
		}
	});

	test('a text is the same text again', () => {
		for (const text of ['a', '12', 'TRUE', '=A1', "'x", '2024-01-31', '10:30', '', '#ABC!', 'a\nb', '1e5', '007']) {
			const parsed = parseContent(valueContent({ v: text, t: 1 }, undefined));
			expect(parsed).toMatchObject({ kind: 'text', text });
		}
		expect(valueContent({ v: '#DIV/0!', t: 1 }, undefined)).toBe('#DIV/0!');
		expect(valueContent({ v: '#ABC!', t: 1 }, undefined)).toBe("'#ABC!");
		expect(valueContent({ v: 'a\0b', t: 1 }, undefined)).toBe('a\ufffdb');
	});

	test('of formulas', async () => {
		expect(await value('=1=1')).toBe('TRUE');
		expect(await value('=DATE(2024,2,29)')).toBe('2024-02-29');
		expect(await value('=1/0')).toBe('#DIV/0!');
		expect(await value('=""')).toBe("'");
		expect(await value('=45322', { n: { pattern: 'yyyy-mm-dd' } })).toBe(formatDate(45322));
		expect(await value('=DATE(2024,2,29)', { n: { pattern: '0.00' } })).toBe('45351');
	});

	test('contents are read as the page reads them', () => {
		expect(readContent(0, 0, '2024-01-31', undefined)).toEqual({ cell: [0, 0, 45322, 'yyyy-mm-dd'] });
		expect(readContent(0, 0, '2024-01-31', '@')).toEqual({ cell: [0, 0, '2024-01-31'] });
		expect(readContent(0, 0, "'", undefined)).toEqual({ cell: [0, 0, undefined] });
		expect(readContent(0, 0, '=A1', '@')).toEqual({ formula: [0, 0, '=A1'] });
		expect(readContent(0, 0, '1.50', '0.0')).toEqual({ cell: [0, 0, 1.5, '0.0'] });
		expect(readContent(0, 0, 'a\r\nb', undefined)).toEqual({ cell: [0, 0, 'a\nb'] });
	});
});

/** Cells, as a sheet that is read anew has them. */
class Cells {
	private cells = new Map<number, { row: number; col: number; content?: string; style?: Record<string, unknown> | null }>();

	apply(edit: Edit): void {
		if (isProperty(edit)) return;
		if (isStructure(edit)) {
			const before = [...this.cells.values()];
			this.cells.clear();
			for (const cell of before) {
				const place = movePlace(cell, edit);
				if (place) this.cells.set(keyOf(place.row, place.col), { ...cell, ...place });
			}
			return;
		}
		const key = keyOf(edit.row, edit.col);
		this.cells.set(key, { ...this.cells.get(key), ...edit });
	}

	list(): Edit[] {
		return [...this.cells.values()].map(({ content = '', ...cell }) => ({ content, ...cell }));
	}
}

test('values that follow the log are those of the cells read anew', { timeout: 120_000 }, async () => {
	const below = randomOf(11);
	const contents = ['', '1', '2.5', '2024-01-31', "'12", 'TRUE', 'text', '=A1+B2', '=SUM(A1:C4)', '=SEQUENCE(2,2)', '=B1', '=A1&"x"', '=RAND()', '=C3*2'];
	const patterns = [null, { n: { pattern: 'yyyy-mm-dd' } }, { n: { pattern: '@' } }, { bl: 1 }];
	for (let round = 0; round < 20; round++) {
		const cells = new Cells();
		const sheet = new ComputedSheet(evaluator, [], false, hooks);
		sheet.setProperties(100, null);
		const stored = new Map<number, string>();
		for (let seq = 1; seq <= 60;) {
			const edits: Edit[] = [];
			for (let i = below(5); i >= 0; i--) {
				const place = { row: below(5), col: below(4) };
				if (below(10) < 7) edits.push({ ...place, content: contents[below(contents.length)]! });
				else if (below(10) < 6) edits.push({ ...place, style: patterns[below(patterns.length)]! });
				else edits.push({ kind: below(2) ? 'insertRows' : 'deleteColumns', at: below(4), n: 1 });
			}
			sheet.addEdits(batchOf(seq, edits), 0);
			edits.forEach((edit) => cells.apply(edit));
			seq += edits.length;
			const values = (await sheet.compute(seq - 1))!;
			// Some calls are refused: their values come with the next one.
			if (below(10) < 8) {
				store(stored, values);
				sheet.stored();
				expect(Object.fromEntries(stored)).toEqual(Object.fromEntries(await computed(cells.list(), seq - 1)));
			}
		}
	}
});

test('NOW() is due at the next hour, TODAY() at the next day of the zone', () => {
	const now = Date.UTC(2024, 0, 31, 22, 10);
	const at = (text: string, zone: string) => againAt(zone, [{ text, volatile: true }], now);
	expect(at('=NOW()', 'UTC')).toBe(Date.UTC(2024, 0, 31, 23));
	expect(at('=TODAY()', 'UTC')).toBe(Date.UTC(2024, 1, 1));
	expect(at('=TODAY()', 'Asia/Kathmandu')).toBe(Date.UTC(2024, 1, 1, 18, 15));
	expect(at('=RAND()', 'UTC')).toBe(null);
	expect(againAt('UTC', [{ text: '="TODAY()"', volatile: false }], now)).toBe(null);
});

test('each sheet belongs to one of several', () => {
	const names = ['a', 'b', 'c'];
	const peers = names.map((name) => {
		const own = new Peers(name);
		own.set(names);
		return own;
	});
	const counts = names.map(() => 0);
	for (let sheet = 0; sheet < 3000; sheet++) {
		const owners = peers.flatMap((peer, i) => (peer.isOwn(`${sheet}`) ? [i] : []));
		expect(owners).toHaveLength(1);
		counts[owners[0]!]!++;
	}
	for (const count of counts) expect(count).toBeGreaterThan(800);
});
