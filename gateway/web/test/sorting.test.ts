// The list of sheets: what a search finds, and in which order.
import { describe, expect, it } from 'vitest';
import { arrange, needsAll, sortedNext, unarranged, type Shown } from '../src/pages/sorting';

const shown = (name: string, owner: string, updatedAt: string, fid: number): Shown => ({
	sheet: { fid, name, owner, isDeleted: false, columns: 1, updatedAt },
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
