// Cells that become a paste: quoting, what is empty, and texts that look like formulas.
import { expect, it, vi } from 'vitest';
import Papa from 'papaparse';
import { readTable, writeTable } from '../../src/paste/tsv';

vi.stubGlobal('document', { documentElement: { lang: 'en' } });
const { escapeFormulas, trimmed, writeCsv } = await import('../../src/pastes/publish');

const rows = [
	['a,b', ' c ', 'say "hi"'],
	['two\nlines', 'tab\there', ''],
	['', '', 'end'],
];

it('CSV and TSV have the same cells', () => {
	expect(Papa.parse(writeCsv(rows)).data).toEqual(rows);
	expect(readTable(writeTable(rows))).toEqual(rows);
});
it('a row that is one empty cell is no empty line', () => {
	expect(writeCsv([['a'], [''], ['b']])).toBe('a\n""\nb');
});
it('empty rows and columns at the end are left out, and none else', () => {
	expect(
		trimmed([
			['', 'x', ''],
			['', '', ''],
			['y', '', ''],
			['', '', ''],
		]),
	).toEqual([
		['', 'x'],
		['', ''],
		['y', ''],
	]);
	expect(trimmed([['', '']])).toEqual([]);
});
it('a text that begins like a formula is none for programs', () => {
	expect(escapeFormulas([['=1+1', '-5', 'a=b']])).toEqual([["'=1+1", '-5', 'a=b']]);
});
