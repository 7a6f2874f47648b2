import { describe, expect, test } from 'vitest';
import { nextMonths } from '../../src/view/input/months';

const serial = (date: string) => (Date.parse(`${date}Z`) - Date.UTC(1899, 11, 30)) / 86400000;
const next = (count: number, ...dates: string[]) =>
	nextMonths(dates.map(serial), count)?.map((day) => new Date(Math.round((day - 25569) * 86400000)).toISOString().slice(0, 16).replace('T00:00', '')) ?? null;

describe('months', () => {
	test('the same day of the next months, or their ends', () => {
		expect(next(4, '2024-01-31', '2024-02-29')).toEqual(['2024-03-31', '2024-04-30', '2024-05-31', '2024-06-30']);
		expect(next(2, '2023-02-28', '2023-03-31')).toEqual(['2023-04-30', '2023-05-31']);
		expect(next(3, '2024-11-15', '2024-12-15')).toEqual(['2025-01-15', '2025-02-15', '2025-03-15']);
		expect(next(2, '2024-11-30', '2024-12-30')).toEqual(['2025-01-30', '2025-02-28']);
		expect(next(2, '2024-01-31', '2024-04-30')).toEqual(['2024-07-31', '2024-10-31']);
		expect(next(2, '2024-02-29', '2025-02-28')).toEqual(['2026-02-28', '2027-02-28']);
		expect(next(2, '2024-03-31', '2024-02-29', '2024-01-31')).toEqual(['2023-12-31', '2023-11-30']);
		expect(next(2, '2022-05-01', '2023-05-01')).toEqual(['2024-05-01', '2025-05-01']);
		expect(next(1, '2024-01-15T10:30', '2024-02-15T10:30')).toEqual(['2024-03-15T10:30']);
	});

	test('other dates go on by days', () => {
		for (const dates of [
			['2024-01-31'],
			['2024-01-01', '2024-01-08'],
			['2024-01-31', '2024-02-28'],
			['2024-01-01', '2024-02-01', '2024-02-15'],
			['2024-01-15T10:30', '2024-02-15T11:30'],
			['1900-01-31', '1900-02-28'],
		])
			expect(next(2, ...dates)).toBe(null);
	});
});
