// The forms of calendars: times as cells have them, and rules as choices.
import { describe, expect, test } from 'vitest';
import { movedCells, type Span } from '../../src/calendar/span';
import type { Task } from '../../src/calendar/http';
import { parseRule, ruleText } from '../../src/calendar/rule';
import { addDays, endText, localTime, wall, wallText } from '../../src/calendar/times';

describe('times', () => {
	test('are what the clocks of the zone show', () => {
		const at = new Date('2027-03-28T01:30:00Z');
		expect(localTime(at, 'Europe/Berlin')).toBe('2027-03-28 03:30');
		expect(localTime(at, 'America/New_York')).toBe('2027-03-27 21:30');
		expect(localTime(new Date('2027-01-01T00:00:00Z'), 'UTC')).toBe('2027-01-01 00:00');
		expect(() => localTime(at, 'Mars/Base')).toThrow(RangeError);
	});

	test('move as texts', () => {
		expect(wallText(wall('2027-01-31 09:30') + 3600000, false)).toBe('2027-01-31 10:30');
		expect(addDays('2028-02-28', 2)).toBe('2028-03-01');
	});

	test('an end is a time of day, a length, or nothing', () => {
		expect(endText('2027-01-31 09:30', '2027-01-31 10:15', false)).toBe('10:15');
		expect(endText('2027-01-31 23:30', '2027-02-01 00:15', false)).toBe('00:15');
		expect(endText('2027-01-31 09:00', '2027-02-01 10:30', false)).toBe('25 h 30 min');
		expect(endText('2027-01-31 09:00', '2027-01-31 09:00', false)).toBe('');
		expect(endText('2027-01-31', '2027-02-01', true)).toBe('');
		expect(endText('2027-01-31', '2027-02-03', true)).toBe('3 days');
	});
});

describe('rules', () => {
	test('that a form can say are read and written', () => {
		for (const rule of ['', 'FREQ=DAILY', 'FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;COUNT=10', 'FREQ=MONTHLY;UNTIL=20271231', 'FREQ=YEARLY'])
			expect(ruleText(parseRule(rule, 'UTC'))).toBe(rule);
		expect(parseRule('weekly', 'UTC').freq).toBe('WEEKLY');
		expect(parseRule('FREQ=DAILY;UNTIL=20271231T230000Z', 'Europe/Berlin').until).toBe('2028-01-01');
	});

	test('that it cannot say stay as they are', () => {
		for (const rule of ['FREQ=MONTHLY;BYDAY=-1FR', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29', 'FREQ=DAILY;BYDAY=MO', 'nonsense']) {
			expect(parseRule(rule, 'UTC').freq).toBe('RULE');
			expect(ruleText(parseRule(rule, 'UTC'))).toBe(rule);
		}
	});
});

describe('the cells of an entry that moves', () => {
	const task = { start: '2027-01-04T09:00:00', repeats: true } as Task;
	const before: Span = { start: '2027-01-18 09:00', end: '2027-01-18 10:00', allDay: false };
	const later: Span = { start: '2027-01-19 11:00', end: '2027-01-19 12:00', allDay: false };

	test('this one, and those that follow, begin there; the series moves as it does', () => {
		expect(movedCells(task, before, later, 'this')).toEqual({ Start: '2027-01-19 11:00' });
		expect(movedCells(task, before, later, 'following')).toEqual({ Start: '2027-01-19 11:00' });
		expect(movedCells(task, before, later, 'all')).toEqual({ Start: '2027-01-05 11:00' });
	});

	test('another length, or whole days, have another end', () => {
		expect(movedCells(task, before, { ...before, end: '2027-01-18 10:30' }, 'all')).toEqual({ End: '10:30' });
		expect(movedCells(task, before, { start: '2027-01-18', end: '2027-01-20', allDay: true }, 'this')).toEqual({ Start: '2027-01-18', End: '2 days' });
		expect(movedCells(null, null, { start: '2027-01-18', end: '2027-01-19', allDay: true }, 'all')).toEqual({ Start: '2027-01-18' });
	});
});
