// blocked.test.ts - what of Univer is refused, with which reason, and what is stored.
import { expect, test } from 'vitest';
import { english } from './texts';
import { blockedKind, changesCells, changesLayout, hiddenMenus } from '../src/view/input/blocked';

test('sizes, hidden rows and columns, merges and the frozen part are stored; the rest is refused with a reason', () => {
	const mutations = ['set-worksheet-col-width', 'set-row-hidden', 'set-col-visible', 'add-worksheet-merge', 'set-frozen'].map(
		(name) => `sheet.mutation.${name}`,
	);
	for (const id of mutations) expect([blockedKind(id), changesLayout(id), changesCells(id)]).toEqual([undefined, true, false]);
	// Univer computes these heights. They are not the user's.
	expect([blockedKind('sheet.mutation.set-worksheet-row-auto-height'), changesLayout('sheet.mutation.set-worksheet-row-auto-height')]).toEqual([
		undefined,
		false,
	]);
	for (const id of [
		'sheet.mutation.set-col-data',
		'sheet.mutation.insert-sheet',
		'sheet.mutation.unheard-of',
		'sheet.command.set-gridlines-color',
		'sheet.command.insert-defined-name',
	])
		expect(english).toHaveProperty([`blocked.${blockedKind(id)}`]);
	expect(hiddenMenus()).not.toHaveProperty(['sheet.menu.sheet-frozen']);
});
