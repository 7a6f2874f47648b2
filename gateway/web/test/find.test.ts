// What is found in a cell, and what replaces it.
import { describe, expect, it } from 'vitest';
import { Finder, type Search } from '../src/sheet/find';

const search = (text: string, more: Partial<Search> = {}) => new Finder({ text, matchCase: false, whole: false, formulas: false, ...more });
const finds = (finder: Finder, content: string, shown = content) => finder.finds(content, () => shown);

describe('find', () => {
	it('looks for the text in what was typed and in what is shown', () => {
		expect(finds(search('rent'), 'Current')).toBe(true);
		expect(finds(search('rent', { matchCase: true }), 'Rent')).toBe(false);
		expect(finds(search('rent', { whole: true }), 'Rent')).toBe(true);
		expect(finds(search('rent', { whole: true }), 'Rents')).toBe(false);
		expect(finds(search('31/01'), '2024-01-31', '31/01/2024')).toBe(true);
		expect(finds(search('01-31'), '2024-01-31', '31/01/2024')).toBe(true);
		expect(finds(search("'"), "'0012", '0012')).toBe(false);
		expect(finds(search('TRUE'), 'TRUE')).toBe(true);
		expect(finds(search('5 %'), '0.05', '5 %')).toBe(true);
		expect(finds(search('5 %'), '-.05', '-5 %')).toBe(true);
		expect(finds(search('STRASSE'), 'Straße')).toBe(false);
		expect(finds(search('ÄRGER'), 'ärger')).toBe(true);
		expect(finds(search('b'), 'a\nb\nc')).toBe(true);
	});
	it('takes signs as they are', () => {
		for (const text of ['.', '$', '(', '[a]', '\\', '?', '*', '^', '|', '/', '-', '{2}']) {
			expect(finds(search(text), `x${text}y`)).toBe(true);
			expect(finds(search(text), 'xy')).toBe(false);
			expect(search(text).replaced(`x${text}y`, '')).toBe('xy');
		}
		for (const by of ['$&', '$1', '$$', '\\1', "$'"]) expect(search('b').replaced('abc', by)).toBe(`a${by}c`);
	});
	it('looks into formulas if asked to', () => {
		expect(finds(search('sum'), '=SUM(A1:A2)', '3')).toBe(false);
		expect(finds(search('sum', { formulas: true }), '=SUM(A1:A2)', '3')).toBe(true);
		expect(finds(search('3'), '=SUM(A1:A2)', '3')).toBe(true);
		expect(search('3').replaced('=SUM(A1:A2)', '4')).toBe(null);
		expect(search('a1', { formulas: true }).replaced('=SUM(A1:A2)', 'B1')).toBe('=SUM(B1:A2)');
		expect(search('9', { formulas: true }).replaced('=SUM(A1:A2)', 'B1')).toBe(null);
	});
	it('replaces each place in what was typed, and nothing else', () => {
		expect(search('a').replaced('banAna', 'o')).toBe('bonono');
		expect(search('a', { matchCase: true }).replaced('banAna', 'o')).toBe('bonAno');
		expect(search('31/01').replaced('2024-01-31', 'x')).toBe(null);
		expect(search('2024').replaced('2024-01-31', '2025')).toBe('2025-01-31');
		expect(search('1').replaced('100', '2')).toBe('200');
		expect(search('b').replaced('a\nb', 'c')).toBe('a\nc');
	});
	it('a text stays a text', () => {
		expect(search('12').replaced("'0012", '13')).toBe('0013');
		expect(search('2').replaced("'12", '3')).toBe("'13");
		expect(search('x').replaced('x=1+1', '')).toBe("'=1+1");
		expect(search('x').replaced("'=x", 'y')).toBe("'=y");
	});
});
