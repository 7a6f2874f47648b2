// What pasted texts and values become (src/paste), without a browser. tests/browser/paste.test.mjs has HTML.
import { describe, expect, test } from 'vitest';
import { readDate } from '../src/paste/dates';
import { type Locale, localeOf } from '../src/paste/locale';
import { excelFormat, marksOf } from '../src/paste/marks';
import { pastedRange, planPaste } from '../src/paste/plan';
import { formulaAt } from '../src/paste/r1c1';
import { readTable, writeTable } from '../src/paste/tsv';
import { pastedValue, shownValue, typedText, typedValue } from '../src/paste/value';
import { parseContent } from '../src/content';
import type { PastedRows } from '../src/paste/html';

const en = localeOf('en-US');
const gb = localeOf('en-GB');
const de = localeOf('de-DE');

describe('a table as text', () => {
	const cases: [string, string, string[][]][] = [
		['one cell', 'a', [['a']]],
		['nothing', '', [['']]],
		[
			'tabs and a trailing line break',
			'a\tb\nc\td\n',
			[
				['a', 'b'],
				['c', 'd'],
			],
		],
		[
			'CRLF',
			'a\tb\r\nc\td\r\n',
			[
				['a', 'b'],
				['c', 'd'],
			],
		],
		['CR alone', 'a\rb\r', [['a'], ['b']]],
		['an empty row and an empty last cell', 'a\t\n\nb', [['a', ''], [''], ['b']]],
		['a quoted cell of several lines', 'a\t"line1\nline2"\t"say ""hi"""', [['a', 'line1\nline2', 'say "hi"']]],
		['line breaks of Windows inside of a cell', '"x\r\ny"\tz\r\n', [['x\ny', 'z']]],
		['a tab inside of a cell', '"a\tb"\tc', [['a\tb', 'c']]],
		['quotation marks that somebody has typed', '"hello"\t"a" b\t5" x', [['"hello"', '"a" b', '5" x']]],
		['a quotation mark without its end', '"abc\tdef\nghi', [['"abc', 'def'], ['ghi']]],
		['what looks like HTML', 'Bob <bob@example.org>\nAnn <ann@example.org>', [['Bob <bob@example.org>'], ['Ann <ann@example.org>']]],
		['spaces', '  a \t b', [['  a ', ' b']]],
	];
	test.each(cases)('%s', (_, text, rows) => expect(readTable(text)).toEqual(rows));

	test('is read as the same cells that were written', () => {
		const letters = ['a', '"', '\t', '\n', ' ', '', '""', '=1', "'"];
		let seed = 7;
		const next = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
		for (let round = 0; round < 2000; round++) {
			const cell = () => Array.from({ length: next(5) }, () => letters[next(letters.length)]).join('');
			const cols = 1 + next(3);
			const rows = Array.from({ length: 1 + next(3) }, () => Array.from({ length: cols }, cell));
			// A last row that is empty cannot be told from a line break at the end.
			if (cols === 1 && rows.at(-1)![0] === '') rows.at(-1)![0] = 'x';
			expect(readTable(writeTable(rows))).toEqual(rows);
		}
	});

	test('a million quotation marks are read in linear time', () => {
		const began = performance.now();
		expect(readTable('"a\n'.repeat(300000)).length).toBe(300000);
		expect(readTable(`"${'x""'.repeat(300000)}`)).toHaveLength(1);
		expect(performance.now() - began).toBeLessThan(5000);
	});
});

describe('what is typed', () => {
	const cases: [string, ReturnType<typeof localeOf>, string, string?][] = [
		['12', en, '12'],
		['1.50', en, '1.5'],
		['007', en, '007'],
		['1E5', en, '100000'],
		['0x1F', en, '0x1F'],
		['true', en, 'TRUE'],
		['=A1+1', en, '=A1+1'],
		["'007", en, '007'],
		['12345678901234567', en, '12345678901234567'],
		['03/04/2024', gb, '2024-04-03', 'dd/mm/yyyy'],
		['03/04/2024', en, '2024-03-04', 'mm/dd/yyyy'],
		['31/01/2024', gb, '2024-01-31', 'dd/mm/yyyy'],
		['31.01.2024', de, '2024-01-31', 'dd.mm.yyyy'],
		['1. März 2024', de, '2024-03-01', 'dd.mm.yyyy'],
		['1 March 2024', gb, '2024-03-01', 'dd/mm/yyyy'],
		['Friday, March 1, 2024', en, '2024-03-01', 'mm/dd/yyyy'],
		['2024-02-30', en, '2024-02-30'],
		['31/31/2024', gb, '31/31/2024'],
		['1/2', en, '1/2'],
		['May 5', en, 'May 5'],
		['50%', en, '0.5', '0%'],
		['1,234.50', en, '1234.5', '#,##0.00'],
		['2024-01-31 10:30', en, '2024-01-31 10:30', 'yyyy-mm-dd hh:mm:ss'],
		['Bob', en, 'Bob'],
		['192.168.1.10', gb, '192.168.1.10'],
		['1.2.3', de, '1.2.3'],
		['555-1234', en, '555-1234'],
		['0b1', en, '0b1'],
		['0o7', en, '0o7'],
		['Infinity', en, 'Infinity'],
		['NaN', en, 'NaN'],
		['1_000', en, '1_000'],
		[' 12 ', en, '12'],
		['  x ', en, '  x '],
		[' =1', en, ' =1'],
		['.5', en, '0.5'],
		['+5', en, '5'],
		['(5)', en, '-5'],
		['1e400', en, '1e400'],
		['1e-400', en, '1e-400'],
		['$12345678901234567', en, '$12345678901234567'],
		['1,234,567,890,123,456', en, '1,234,567,890,123,456'],
		['0.30000000000000004', en, '0.30000000000000004'],
		['3.14159265358979323846', en, '3.14159265358979323846'],
		["'=1+1", en, "'=1+1"],
		["'12", en, "'12"],
		["'3 April 2024", en, '3 April 2024'],
		["''x", en, "''x"],
		["'", en, "''"],
		['１２', en, '12'],
		['＝x', en, '＝x'],
		['10:30', en, '10:30:00', 'hh:mm'],
		['9:05:07', en, '09:05:07', 'hh:mm:ss'],
		['1:30 PM', en, '13:30:00', 'h:mm AM/PM'],
		['12:30:15 PM', en, '12:30:15', 'h:mm:ss AM/PM'],
		['5 am', en, '05:00:00', 'h:mm AM/PM'],
		['25:30', en, '25:30:00', '[h]:mm:ss'],
		['0:00', en, '00:00:00', 'hh:mm'],
		['10:61', en, '10:61'],
		['01/01/1900', gb, '1900-01-01', 'dd/mm/yyyy'],
		['29/02/1900', gb, '29/02/1900'],
		['31/12/1899', gb, '31/12/1899'],
		['3. April 2024', de, '2024-04-03', 'dd.mm.yyyy'],
		['2024年4月3日', localeOf('zh-CN'), '2024-04-03', 'yyyy/mm/dd'],
		['2024년 4월 3일', localeOf('ko-KR'), '2024-04-03', 'yyyy.mm.dd'],
		['3 de abril de 2024', localeOf('es-ES'), '2024-04-03', 'dd/mm/yyyy'],
		['1er avril 2024', localeOf('fr-FR'), '2024-04-01', 'dd/mm/yyyy'],
		['3 апреля 2024 г.', localeOf('ru-RU'), '2024-04-03', 'dd.mm.yyyy'],
		['a\n=b', en, 'a\n=b'],
		['+49 170 123', en, '+49 170 123'],
		['-', en, '-'],
		['1-2-3', en, '1-2-3'],
	];
	test.each(cases)('%s', (text, locale, content, pattern) => expect(typedValue(text, locale)).toEqual({ content, ...(pattern && { pattern }) }));
	test('a decimal comma is read where the language writes one, and what others write stays', () => {
		const contents = (locale: Locale, ...texts: string[]) => texts.map((text) => typedValue(text, locale).content);
		const comma = ['1,5', '-0,25', '1.234,56', '1.234.567,8', '1 234,5', '12,5 %', '1,234', '1,23456789012345678', '007,5', 'A1,5', '1,5,2', '1,2 - 3,4'];
		expect(contents(de, ...comma)).toEqual([
			'1.5',
			'-0.25',
			'1234.56',
			'1234567.8',
			'1234.5',
			'0.125',
			'1.234',
			'1,23456789012345678',
			'007,5',
			'A1,5',
			'1,5,2',
			'1,2 - 3,4',
		]);
		expect(contents(localeOf('fr-FR'), '1\u202f234,5', '1\u00a0234,5')).toEqual(['1234.5', '1234.5']);
		expect(contents(en, '1,5', '1.234,56', '1,234')).toEqual(['1,5', '1.234,56', '1234']);
		for (const locale of [de, en]) expect(contents(locale, '1.5', '1,234.5', '1,234,567', '1.234')).toEqual(['1.5', '1234.5', '1234567', '1.234']);
		expect(typedValue('1.234,56', de).pattern).toBe(typedValue('1,234.56', en).pattern);
	});
});

describe('what is typed into a cell of texts', () => {
	test.each([
		['007', '007'],
		['=1+1', "'=1+1"],
		['1/2', '1/2'],
		['2024-01-31', "'2024-01-31"],
		['31/01/2024', '31/01/2024'],
		['TRUE', "'TRUE"],
		[' 12 ', ' 12 '],
		["'7", "'7"],
	])('%s', (text, content) => {
		expect(typedValue(text, gb, '@')).toEqual({ content });
	});
	test('the editor shows a text so that it stays one', () => {
		const shown = ['007', '12', '=x', 'TRUE', '3 April 2024', '10:30', "'tis", 'Bob', ' 7'].map((text) => typedText(text, gb));
		expect(shown).toEqual(['007', "'12", "'=x", "'TRUE", "'3 April 2024", "'10:30", "''tis", 'Bob', "' 7"]);
		for (const text of shown) expect(typedText(parseContent(typedValue(text, gb).content).kind === 'text' ? text.replace(/^'/, '') : '?', gb)).toBe(text);
		expect(['007', '12', '=x', "'tis"].map((text) => typedText(text, gb, '@'))).toEqual(['007', '12', '=x', "''tis"]);
	});
	test.each([
		'en-US',
		'en-GB',
		'de-DE',
		'fr-FR',
		'es-ES',
		'it-IT',
		'pt-BR',
		'nl-NL',
		'sv-SE',
		'pl-PL',
		'cs-CZ',
		'tr-TR',
		'ru-RU',
		'uk-UA',
		'zh-CN',
		'zh-TW',
		'ja-JP',
		'ko-KR',
		'hu-HU',
		'lt-LT',
		'fi-FI',
		'id-ID',
	])('dates in words and in numbers of %s', (language) => {
		for (const [year, month, day] of [
			[2024, 4, 3],
			[2024, 12, 31],
			[1900, 1, 1],
			[2024, 5, 1],
		] as const)
			for (const options of [{ dateStyle: 'long' }, { dateStyle: 'full' }, { year: 'numeric', month: '2-digit', day: '2-digit' }] as const) {
				const text = new Intl.DateTimeFormat(language, { ...options, timeZone: 'UTC' }).format(Date.UTC(year, month - 1, day));
				expect([text, typedValue(text, localeOf(language)).content]).toEqual([
					text,
					`${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`,
				]);
			}
	});
});

describe('dates', () => {
	test.each([
		['2024/1/31', 'mdy', '2024-01-31'],
		['31-Jan-24', 'mdy', '2024-01-31'],
		['01/31/2024 5:07 PM', 'mdy', '2024-01-31 17:07:00'],
		['1/2/98', 'dmy', '1998-02-01'],
		['29/02/2023', 'dmy', null],
		['24/12/31', 'ymd', '2024-12-31'],
		['1/2-2024', 'mdy', null],
		['10:30', 'mdy', null],
		['March 2024', 'mdy', null],
		['call 1 March 2024 back', 'mdy', null],
		['2024年3月1日', 'ymd', '2024-03-01'],
	] as const)('%s as %s', (text, order, content) => expect(readDate(text, { ...en, order })).toBe(content));
});

describe('what another spreadsheet shows in a format', () => {
	test.each([
		['1,234.50', '#,##0.00', '1234.5'],
		['1.234,50', '#,##0.00', '1234.5'],
		['(1,234)', '#,##0_);(#,##0)', '-1234'],
		['-5', '0', '-5'],
		['12.50%', '0.00%', '0.125'],
		['1.23E+05', '0.00E+00', '123000'],
		['$1,000.00', '$#,##0.00', '1000'],
		['1 234', '# ##0', '1234'],
		['31-Jan-24', 'd-mmm-yy', '2024-01-31'],
		['31/01/2024', 'dd/mm/yyyy', '2024-01-31'],
		['007', '@', '007'],
		['1/2', '@', '1/2'],
		['=1+1', '@', "'=1+1"],
		['1E5', '@', "'1E5"],
		['00042', '00000', '42'],
		['n/a', '0.00', 'n/a'],
		['0.5', '', '0.5'],
		['6:30 PM', 'h:mm AM/PM', '18:30:00'],
	])('%s as %s', (shown, pattern, content) => {
		const value = shownValue(shown, pattern, en);
		expect(value).toEqual({ content, ...(pattern && { pattern }) });
	});
	test('what is not understood costs the format, not the value', () => {
		for (const [shown, pattern] of [
			['abc1', '0'],
			['12', 'Percen'],
			['12', '[[['],
			['####', '0.00'],
			['1.234,5', '0%'],
			['soon 5', 'yyyy-mm-dd'],
		] as const) {
			const { content, understood } = pastedValue(shown, { pattern }, en);
			expect([shown, content]).toEqual([shown, typedValue(shown, en).content]);
			if (/[0-9]/.test(shown)) expect([pattern, understood]).toEqual([pattern, false]);
		}
	});
});

describe('marks of a cell', () => {
	const marks = (attributes: Record<string, string>, mso?: string) => marksOf((name) => attributes[name] ?? null, mso, en);
	test("Excel's names and escapes", () => {
		expect(
			[
				'Percent',
				'"Short Date"',
				'Fixed',
				'Standard',
				'Scientific',
				'General',
				'"\\@"',
				'\\@',
				'"0\\.00"',
				'"\\#\\,\\#\\#0\\.00"',
				'"d\\\\-mmm\\\\-yy"',
				'"\\0022Total\\0022\\ 0"',
				'"Medium Time"',
				'"Long Date"',
			].map((name) => excelFormat(name, en)),
		).toEqual([
			'0.00%',
			'mm/dd/yyyy',
			'0.00',
			'#,##0.00',
			'0.00E+00',
			'',
			'@',
			'@',
			'0.00',
			'#,##0.00',
			'd\\-mmm\\-yy',
			'"Total" 0',
			'h:mm AM/PM',
			'dddd, mmmm d, yyyy',
		]);
	});
	test('Google Sheets, LibreOffice, WPS', () => {
		expect(marks({ 'data-sheets-value': '{"1":2,"2":"0041"}' })).toEqual({ value: '0041' });
		expect(marks({ 'data-sheets-value': '{"1":3,"3":41.5}', 'data-sheets-numberformat': '{"1":2,"2":"0.00"}' })).toEqual({ value: 41.5, pattern: '0.00' });
		expect(marks({ 'data-sheets-value': '{"1":4,"4":1}' })).toEqual({ value: true });
		expect(marks({ 'data-sheets-value': 'broken' })).toEqual({});
		expect(marks({ sdval: '45292', sdnum: '1033;0;YYYY-MM-DD' })).toEqual({ value: 45292, pattern: 'YYYY-MM-DD' });
		expect(marks({ sdnum: '1033;0;@' })).toEqual({ pattern: '@' });
		for (const [sdnum, pattern] of [
			['1031;0;0,0%', '0.0%'],
			['1031;0;#.##0,00', '#,##0.00'],
			['1031;0;TT.MM.JJJJ', 'DD.MM.YYYY'],
			['1031;0;TT.MM.JJJJ HH:MM:SS,00', 'DD.MM.YYYY HH:MM:SS.00'],
			['1031;0;0,00E+00', '0.00E+00'],
			['1031;0;Standard', ''],
			['1033;0;#,##0.00', '#,##0.00'],
			['1033;1031;0,0', '0.0'],
			['1031;1033;0.0', '0.0'],
			['2055;0;0.00', '0.00'],
			['1036;0;#\u202f##0,00" a,b"\\ [$€-40C]', '#,##0.00" a,b"\\ [$€-40C]'],
			['1036;0;JJ/MM/AAAA HH:MM AM/PM', 'DD/MM/YYYY HH:MM AM/PM'],
			['1053;0;ÅÅÅÅ-MM-DD TT:MM', 'YYYY-MM-DD HH:MM'],
		] as const)
			expect(marks({ sdval: '1', sdnum })).toEqual({ value: 1, pattern });
		expect(marks({ sdval: '1', sdnum: '1033;0;BOOLEAN' })).toEqual({ value: true });
		expect(marks({ 'x:str': '' })).toEqual({ pattern: '@' });
		expect(marks({ 'x:num': '1234.5' })).toEqual({ value: 1234.5 });
		expect(marks({ 'x:num': '' }, 'Percent')).toEqual({ pattern: '0.00%' });
	});
});

describe('where a paste goes', () => {
	const table = (...rows: string[][]): PastedRows =>
		rows.map((row) => new Map(row.map((text, col) => [col, { text, marks: {}, style: null, rows: 1, cols: 1 }])));
	const at = (row: number, col: number, toRow = row, toCol = col) => ({ row, col, toRow, toCol });
	test('as many cells as it has, or the selection if that is a multiple', () => {
		const two = table(['a', 'b']);
		expect(pastedRange(two, at(3, 3))).toEqual(at(3, 3, 3, 4));
		expect(pastedRange(two, at(3, 3, 4, 6))).toEqual(at(3, 3, 4, 6));
		expect(pastedRange(two, at(3, 3, 4, 5))).toEqual(at(3, 3, 3, 4));
	});
	test('a text keeps the formats of cells, and what is formatted as text takes it literally', () => {
		const plan = planPaste(
			table(['007', '5']),
			at(0, 0, 0, 1),
			'plain',
			en,
			(_, col) => (col === 0 ? { n: { pattern: '@' } } : null),
			() => true,
		);
		expect(plan.edits).toEqual([
			{ row: 0, col: 0, content: '007' },
			{ row: 0, col: 1, content: '5' },
		]);
		expect(
			planPaste(
				table(['=1+1', '']),
				at(0, 0, 0, 1),
				'plain',
				en,
				() => ({ n: { pattern: '@' } }),
				() => true,
			).edits.map(({ content }) => content),
		).toEqual(["'=1+1", '']);
	});
	test('formulas of Google Sheets are those of the cells into which they are pasted', () => {
		for (const [formula, expected] of [
			['=R[0]C[-1]*2', '=B5*2'],
			['=SUM(R[-2]C[0]:R[-1]C[0])', '=SUM(C3:C4)'],
			['=R1C1+R[0]C1+R1C[0]', '=$A$1+$A5+C$1'],
			['=SUM(C[-1]:C[-1])+SUM(R2:R2)+COUNTA(C1)', '=SUM(B:B)+SUM($2:$2)+COUNTA($A:$A)'],
			['=IF(R[0]C[-2]="R[0]C[-1] ""R1C1""",TRUE,LOG10(R[1]C[0]))', '=IF(A5="R[0]C[-1] ""R1C1""",TRUE,LOG10(C6))'],
			['=ARC1(R[0]C[-1])&RC.2', '=ARC1(B5)&RC.2'],
			['=RC1(2)', '=RC1(2)'],
			['=R[0]C[-3]', null],
			['=R[-5]C[0]', null],
			["='Other tab'!R[0]C[-1]", null],
			['=Other!R[0]C[-1]', null],
			['=SUM(R[0]C[-1]:C[-1])', null],
			['="a!"&R[0]C[-1]', '="a!"&B5'],
		] as const)
			expect([formula, formulaAt(formula, 4, 2)]).toEqual([formula, expected]);
		const cell = (formula: string, value: number) => ({ text: String(value), marks: { value, formula }, style: null, rows: 1, cols: 1 });
		const rows: PastedRows = [
			new Map([
				[0, cell('=R[0]C[-1]*2', 6)],
				[1, cell('=GOOGLEFINANCE(R[0]C[-1])', 7)],
				[2, cell('=R[-1]C[0]', 8)],
			]),
		];
		const contents = (kind: 'all' | 'values' | 'formats', row: number) =>
			planPaste(
				rows,
				at(row, 1, row, 3),
				kind,
				en,
				() => null,
				(formula) => !formula.includes('GOOGLE'),
			).edits.map(({ content }) => content);
		expect(contents('all', 4)).toEqual(['=A5*2', '7', '=D4']);
		expect(contents('all', 0)).toEqual(['=A1*2', '7', '8']);
		expect(contents('values', 4)).toEqual(['6', '7', '8']);
		expect(contents('formats', 4)).toEqual([undefined, undefined, undefined]);
	});
	test('links become formulas, merged cells ranges', () => {
		const rows: PastedRows = [new Map([[0, { text: 'a "b"', marks: {}, style: { bl: 1 }, link: 'https://x.org/?a=1&b=2', rows: 2, cols: 2 }]]), new Map()];
		const { edits, merges } = planPaste(
			rows,
			at(4, 1, 5, 2),
			'all',
			en,
			() => null,
			() => true,
		);
		expect(edits[0]).toEqual({ row: 4, col: 1, content: '=HYPERLINK("https://x.org/?a=1&b=2","a ""b""")', style: { bl: 1 } });
		expect(merges).toEqual([at(4, 1, 5, 2)]);
		expect(
			planPaste(
				rows,
				at(4, 1, 5, 2),
				'values',
				en,
				() => null,
				() => true,
			),
		).toMatchObject({ merges: [], edits: [{ content: 'a "b"' }, {}, {}, {}] });
	});
});
