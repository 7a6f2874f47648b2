// presence.test.ts - what others have locked, as the page marks it.
import { expect, test } from 'vitest';
import { type Mark, Presence } from '../src/sheet/presence';
import type { HeldRange, Hello } from '../src/v2/messages';

function present(ranges: HeldRange[]) {
	const frames: (() => void)[] = [];
	let marks: Mark[] = [];
	const presence = new Presence(
		() => {},
		(run) => frames.push(run),
		(shown) => (marks = shown),
	);
	const peers = [
		{ session: 1, uid: 1, name: 'me' },
		{ session: 2, uid: 2, name: 'Ben' },
	];
	presence.receive({ t: 'hello', session: 1, peers, locks: [], ranges } as unknown as Hello);
	const shown = () => {
		frames.splice(0).forEach((run) => run());
		return marks.map(({ row, col, toRow, toCol, name, lock }) => [row, col, toRow, toCol, name, lock]);
	};
	return { presence, shown };
}

const rect = (row: number, col: number, toRow: number, toCol: number) => ({ row, col, toRow, toCol });

test('a range of another is marked, and its cells have a holder, until it is free', () => {
	const { presence, shown } = present([
		{ ...rect(5, 5, 6, 6), session: 1, uid: 1 },
		{ ...rect(0, 0, 0, 1), session: 2, uid: 2 },
	]);
	presence.receive({ t: 'range', ...rect(1, 1, 3, 2), session: 2, uid: 2 });
	expect(shown()).toEqual([
		[0, 0, 0, 1, 'Ben', true],
		[1, 1, 3, 2, 'Ben', true],
	]);
	const holders = [
		[0, 1],
		[0, 2],
		[1, 1],
		[3, 2],
		[4, 2],
		[3, 3],
		[5, 5],
	].map(([row, col]) => presence.holderOf({ row: row!, col: col! }));
	expect(holders).toEqual(['Ben', null, 'Ben', 'Ben', null, null, null]);
	presence.receive({ t: 'range', ...rect(1, 1, 3, 2), session: 0, uid: 0 });
	presence.receive({ t: 'range', ...rect(0, 0, 0, 1), session: 0, uid: 0 });
	expect([shown(), presence.holderOf({ row: 1, col: 1 })]).toEqual([[], null]);
});

test('ranges move with rows and columns, and go with them; the selection of their holder stays visible', () => {
	const { presence, shown } = present([
		{ ...rect(2, 1, 4, 2), session: 2, uid: 2 },
		{ ...rect(7, 0, 8, 0), session: 2, uid: 2 },
	]);
	presence.receive({ t: 'cursors', cursors: [{ session: 2, ...rect(9, 9, 9, 9) }] });
	presence.move({ uid: 1, kind: 'insertRows', at: 3, n: 2 });
	presence.move({ uid: 1, kind: 'deleteRows', at: 9, n: 2 });
	presence.move({ uid: 1, kind: 'deleteColumns', at: 2, n: 3 });
	expect(shown()).toEqual([
		[2, 1, 6, 1, 'Ben', true],
		[9, 6, 9, 6, 'Ben', false],
	]);
	presence.clear();
	expect(shown()).toEqual([]);
});
