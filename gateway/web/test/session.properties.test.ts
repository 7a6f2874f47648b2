// session.properties.test.ts - properties in an open sheet: what is shown, sent and taken back, and what is refused.
import { describe, expect, test, vi } from 'vitest';
import { wholeSheet } from '../src/sheet/arrange';
import type { PropertyEdit } from '../src/v2/messages';
import { open } from './open_sheet';

const [allRows, allCols] = [wholeSheet.toRow, wholeSheet.toCol];
const width = (col: number, value: unknown): PropertyEdit => ({ ...wholeSheet, col, toCol: col, key: 'width', value });

describe('properties of an open sheet', () => {
	const shown = ({ session }: Awaited<ReturnType<typeof open>>) =>
		session
			.properties()
			.list()
			.map(({ row, col, key, value }) => `${row},${col} ${key}=${JSON.stringify(value)}`)
			.sort();

	test('are shown once per frame; own ones at once, over those of others, until the sheet has them', async () => {
		const sheet = await open();
		const { session, wire, grid, ack, edits, frame } = sheet;
		wire.hear({ t: 'properties', seq: 5, more: true, properties: [['property', 0, 1, allRows, 1, 'width', 50]] });
		wire.hear({ t: 'properties', seq: 5, more: false, properties: [['property', 2, 0, 3, 1, 'merge', true]] });
		frame();
		expect(shown(sheet)).toEqual(['0,1 width=50', '2,0 merge=true']);
		const before = grid.arranged;
		session.changed([], [width(1, 90)]);
		expect([grid.arranged, shown(sheet)[0]]).toEqual([before + 1, '0,1 width=90']);
		expect(wire.operations()).toEqual([[['property', 0, 1, allRows, 1, 'width', 90]]]);
		edits([2, 'property', 0, 1, allRows, 1, 'width', 70], [2, 'property', 0, 2, allRows, 2, 'width', 71]);
		expect(grid.arranged).toBe(before + 2);
		expect(shown(sheet)).toEqual(['0,1 width=90', '0,2 width=71', '2,0 merge=true']);
		ack(1);
		edits([1, 'property', 0, 1, allRows, 1, 'width', 90]);
		edits([2, 'property', 0, 1, allRows, 1, 'width', 72]);
		expect(shown(sheet)[0]).toBe('0,1 width=72');
	});

	test('are in one operation with the cells of the change', async () => {
		const { session, wire } = await open();
		const state = (content: string) => ({ content, style: null });
		session.changed([{ row: 0, col: 1, before: state('x'), after: state('') }], [{ row: 0, col: 0, toRow: 0, toCol: 1, key: 'merge', value: true }]);
		expect(wire.operations()).toEqual([
			[
				[0, 1, ''],
				['property', 0, 0, 0, 1, 'merge', true],
			],
		]);
	});

	test('that are refused are not shown any more', async () => {
		const sheet = await open();
		sheet.session.changed([], [width(1, 90)]);
		sheet.frame();
		const before = sheet.grid.arranged;
		sheet.wire.hear({ t: 'nack', n: 1, reason: 'size', row: 0, col: 1, block: false });
		sheet.frame();
		expect([shown(sheet), sheet.log, sheet.grid.arranged]).toEqual([[], ['refused size'], before + 1]);
	});

	test('move with structure edits, sent or not', async () => {
		const sheet = await open();
		sheet.session.changed([], [width(3, 90)]);
		sheet.edits([2, 'insertColumns', 0, 2], [2, 'property', 0, 0, allRows, 0, 'width', 33]);
		expect(shown(sheet)).toEqual(['0,0 width=33', '0,5 width=90']);
		sheet.edits([2, 'deleteColumns', 5, 1]);
		expect(shown(sheet)).toEqual(['0,0 width=33']);
	});

	test('are kept by a connection that is resumed, and replaced by one that is not', async () => {
		const sheet = await open();
		sheet.wire.hear({ t: 'properties', seq: 5, more: false, properties: [['property', 0, 1, allRows, 1, 'width', 50]] });
		sheet.wire.onclose!({ code: 1006, reason: '' });
		sheet.session.changed([], [width(2, 60)]);
		await vi.waitFor(() => expect(sheet.wires.length).toBe(2));
		await sheet.greet({ resumed: true });
		expect(sheet.wires[1]!.operations().length).toBe(1);
		expect(shown(sheet)).toEqual(['0,1 width=50', '0,2 width=60']);
		sheet.wires.at(-1)!.onclose!({ code: 1006, reason: '' });
		await vi.waitFor(() => expect(sheet.wires.length).toBe(3));
		const wire = await sheet.greet({ landed: 1, seq: 9 });
		wire.hear({ t: 'properties', seq: 9, more: false, properties: [['property', 4, 0, 4, allCols, 'height', 40]] });
		expect(shown(sheet)).toEqual(['4,0 height=40']);
	});

	test('are taken back and made again, but for those that somebody else has set since', async () => {
		const sheet = await open();
		const { session, wire, ack, edits, log } = sheet;
		session.changed([], [width(1, 90), width(2, 90)]);
		ack(1);
		edits([1, 'property', 0, 1, allRows, 1, 'width', 90], [1, 'property', 0, 2, allRows, 2, 'width', 90]);
		edits([2, 'property', 0, 2, allRows, 2, 'width', 90], [2, 'insertColumns', 0, 1]);
		session.undo();
		expect(log).toEqual(['skipped 0,3']);
		expect(wire.operations().at(-1)).toEqual([['property', 0, 2, allRows, 2, 'width', null]]);
		expect(shown(sheet)).toEqual(['0,3 width=90']);
		session.redo();
		expect(shown(sheet)).toEqual(['0,2 width=90', '0,3 width=90']);
	});
});
