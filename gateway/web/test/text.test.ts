// Texts: answers of HTTP, names of cells, what typed text means, and the texts of the page in two languages.
import { describe, expect, it } from 'vitest';
import { cellName, formatDate, isDateFormat, numberContent, parseContent, textContent } from '../src/content';
import { english as en, chinese as zh, parts } from './texts';
import { parseAnswer, parseLogEntry, parsePage, parseRoute, parseSheet, ProtocolError } from '../src/answers';

describe('answers of HTTP', () => {
	it('reads answers, sheets, logs and routes', () => {
		expect(parseAnswer({ success: true, msg: 5 })).toEqual({ success: true, msg: 5, data: null });
		expect(() => parseAnswer('nonsense')).toThrow(ProtocolError);
		const sheet = parseSheet({
			id: 7,
			name: 'n',
			owner: 'ann',
			role: 'owner',
			trashed: false,
			createdAt: 'c',
			updatedAt: 'u',
			book: 3,
		});
		expect(sheet).toEqual({ fid: 7, name: 'n', owner: 'ann', isOwn: true, isDeleted: false, updatedAt: 'u', book: 3 });
		expect(parsePage({ edits: [{ seq: 3, at: 't', kind: 'commit', row: -1, col: -1, segment: 1 }], next: 3 }, 'edits', parseLogEntry)).toMatchObject({
			items: [{ seq: 3, row: -1, old: '' }],
			next: 3,
		});
		expect(parseLogEntry({ seq: 4, at: 't', kind: 'property', row: 4, col: -1, old: '', new: '40', segment: 1, target: '5:5', key: 'height' })).toMatchObject({
			target: '5:5',
			key: 'height',
		});
		expect(parseRoute({ http: 'http://a:1/', ws: 'ws://a:1', epoch: 3 })).toEqual({ http: 'http://a:1', ws: 'ws://a:1', members: [] });
		expect(() => parseRoute({ http: 'javascript:1', ws: 'x' })).toThrow(ProtocolError);
	});
});

describe('names of cells', () => {
	it.each([
		[0, 0, 'A1'],
		[2, 1, 'B3'],
		[0, 25, 'Z1'],
		[0, 26, 'AA1'],
		[9, 701, 'ZZ10'],
		[16777215, 16383, 'XFD16777216'],
	])('%i, %i is %s', (row, col, name) => {
		expect(cellName(row, col)).toBe(name);
	});
});

describe('content', () => {
	it.each([
		['42', 'number'],
		['-1.5e3', 'number'],
		['0', 'number'],
		['007', 'text'],
		['12345678901234567890', 'text'],
		['1,5', 'text'],
		['=A1', 'formula'],
		['=', 'text'],
		["'=A1", 'text'],
		['TRUE', 'boolean'],
		['true', 'text'],
		['2024-01-31', 'date'],
		['2024-02-31', 'text'],
		['', 'empty'],
	])('%j is %s', (text, kind) => expect(parseContent(text).kind).toBe(kind));

	it('comes back as it was typed', () => {
		for (const text of ['42', '-1.5', '0.1', '123456789012345']) {
			const value = parseContent(text);
			expect(value.kind === 'number' && numberContent(value.number)).toBe(text);
		}
		for (const text of ['2024-01-31', '2000-02-29 13:45:07', '1999-12-31 23:59:59']) {
			const value = parseContent(text);
			expect(value.kind === 'date' && formatDate(value.serial)).toBe(text);
		}
		expect(parseContent('2024-01-01')).toMatchObject({ serial: 45292 });
		for (const text of ['plain', '5', '=x', "'quoted", 'TRUE', '2024-01-31']) {
			const value = parseContent(textContent(text));
			expect(value.kind === 'text' && value.text).toBe(text);
		}
	});
	it('knows formats of dates', () => {
		expect(['yyyy-mm-dd', 'd/m/yy h:mm', 'mmm yyyy'].every(isDateFormat)).toBe(true);
		expect(['0.00', '#,##0', '0%', '"day" 0', '[Red]0', 'General', '@'].some(isDateFormat)).toBe(false);
	});
});

describe('texts of the page', () => {
	const keys = (texts: Record<string, string>) => Object.keys(texts).sort();
	const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
	it('are the same in all languages', () => {
		for (const [english, chinese] of parts) expect(keys(chinese)).toEqual(keys(english));
		expect(Object.keys(en)).toHaveLength(parts.reduce((sum, [english]) => sum + Object.keys(english).length, 0));
	});
	it('have the same places for values', () => {
		for (const [key, text] of Object.entries(en as Record<string, string>))
			expect([key, places((zh as Record<string, string>)[key])]).toEqual([key, places(text)]);
	});
});
