// The list of sheets: what a search finds, and in which order.
import { describe, expect, it } from 'vitest';
import { arrange, gather, needsAll, sortedNext, unarranged, type Shown } from '../src/pages/sorting';

const shown = (name: string, owner: string, updatedAt: string, fid: number): Shown => ({
	sheet: { fid, name, owner, isOwn: true, isDeleted: false, updatedAt, book: null },
	name,
	owner,
});
const sheets = [
	shown('Plan 10', 'Ann', '2026-03-01T00:00:00Z', 1),
	shown('plan 9', 'Bob', '2026-01-01T00:00:00.5Z', 2),
	shown('Ärger', 'ann', '2026-02-01T00:00:00+05:00', 3),
	shown('ＰＬＡＮ wide', 'eve', '2026-01-01T00:00:00Z', 4),
];
const fids = (search: string, by: 'name' | 'owner' | 'used' | null = null, descending = false) =>
	arrange(sheets, { search, by, descending }, 'en').map(({ sheet }) => sheet.fid);

describe('the list of sheets', () => {
	it('is searched by all words, in names and owners, whatever their case and width', () => {
		expect(fids('')).toEqual([1, 2, 3, 4]);
		expect(fids('  plan ')).toEqual([1, 2, 4]);
		expect(fids('PLAN ann')).toEqual([1]);
		expect(fids('ärger')).toEqual([3]);
		expect(fids('wide')).toEqual([4]);
		expect(fids('nothing')).toEqual([]);
	});
	it('is sorted as people do: numbers by their value, and equal ones as they were', () => {
		expect(fids('', 'name')).toEqual([3, 2, 1, 4]);
		expect(fids('', 'name', true)).toEqual([4, 1, 2, 3]);
		expect(fids('', 'used', true)).toEqual([1, 3, 2, 4]);
		expect(fids('', 'owner')).toEqual([3, 1, 2, 4]);
	});
	it('needs all sheets for an order or a search only', () => {
		expect(needsAll(unarranged)).toBe(false);
		expect(needsAll({ ...unarranged, search: ' ' })).toBe(false);
		expect(needsAll({ ...unarranged, search: 'a' })).toBe(true);
		expect(needsAll({ ...unarranged, by: 'name' })).toBe(true);
	});
	it('a header sorts one way, then the other, then not', () => {
		let now = sortedNext({ ...unarranged, search: 's' }, 'name');
		expect(now).toEqual({ search: 's', by: 'name', descending: false });
		now = sortedNext(now, 'name');
		expect(now).toEqual({ search: 's', by: 'name', descending: true });
		expect(sortedNext(now, 'used')).toEqual({ search: 's', by: 'used', descending: true });
		expect(sortedNext(sortedNext(now, 'used'), 'used').descending).toBe(false);
		expect(sortedNext(now, 'name').by).toBe(null);
	});
});

describe('books in the list', () => {
	const sheet = (fid: number, book: number | null, isDeleted = false) => ({
		...shown(`Sheet ${fid}`, 'Ann', '2026-01-01T00:00:00Z', fid).sheet,
		book,
		isDeleted,
	});
	const book = (id: number, trashed = false) => ({ id, name: `Book ${id}`, owner: 'Ann', role: 'owner' as const, trashed, createdAt: '2026-01-02T00:00:00Z' });
	const summary = (entries: ReturnType<typeof gather>) =>
		entries.map((entry) => [entry.book?.id ?? null, entry.sheet.fid, ...(entry.tabs ?? []).map(({ fid }) => fid)]);
	it('are one entry, where the tab that was used last is; those without tabs come last', () => {
		const sheets = [sheet(1, null), sheet(2, 7), sheet(3, null), sheet(4, 7), sheet(5, 9)];
		expect(summary(gather(sheets, [book(7), book(8)]))).toEqual([
			[null, 1],
			[7, 2, 2, 4],
			[null, 3],
			[null, 5],
			[8, 0],
		]);
	});
	it('are in the trash with all their tabs; a tab alone there is a sheet', () => {
		const sheets = [sheet(1, 7, true), sheet(2, 7), sheet(3, 8, true), sheet(4, 8, true)];
		expect(summary(gather(sheets, [book(7), book(8, true)]))).toEqual([
			[null, 1],
			[7, 2, 2],
			[8, 3, 3, 4],
		]);
	});
	it('are found by the names of their tabs', () => {
		const [entry] = gather([sheet(2, 7)], [book(7)]);
		expect(arrange([{ ...entry!, name: 'Book 7', owner: 'me' }], { ...unarranged, search: 'sheet 2 book' }, 'en').length).toBe(1);
	});
});
