// names.test.ts - names and tables in formulas of workbooks become references (calc/books/read/names.ts, structured.ts).
import { describe, expect, test } from 'vitest';
import { intersected } from '../../../../calc/books/intersection';
import { type DefinedName, Names } from '../../../../calc/books/read/names';
import type { Table } from '../../../../calc/books/read/tables';
import { columnKey } from '../../../../calc/books/structured';
import { randomOf } from '../person';

const tableOf = (name: string, at: number, [row, col, toRow, toCol]: number[], columns: string[], more: Partial<Table> = {}): Table => ({
	name,
	at,
	range: { row: row!, col: col!, toRow: toRow!, toCol: toCol! },
	hasHeader: true,
	hasTotals: false,
	columns: new Map(columns.map((column, i) => [columnKey(column), i])),
	tree: ['table', {}],
	...more,
});
const nameOf = (name: string, text: string, at: number | null = null): DefinedName => ({ at, name: { name, text, local: at !== null, hidden: false } });

// Sales is Data!A1:D10 with totals; Plain is 'my tab'!B2:C4 without a header.
const odd = ['a[b]', "it's", '#no', 'two\nlines', 'x "y"', '@at'];
const tables = [
	tableOf('Sales', 1, [0, 0, 9, 3], ['Item', 'Unit Price', 'Amount', 'Größe'], { hasTotals: true }),
	tableOf('Plain', 2, [1, 1, 3, 2], ['Column1', 'Column2'], { hasHeader: false }),
	tableOf('Odd', 0, [20, 0, 22, 5], odd),
	tableOf('Tax', 0, [30, 0, 31, 0], ['only']),
];
const names = [
	nameOf('rate', 'Data!$B$1'),
	nameOf('Range', "'my tab'!$A$1:$B$9"),
	nameOf('cols', 'Data!$A:$C'),
	nameOf('rows', 'DATA!$1:$3'),
	nameOf('circle', '3.14'),
	nameOf('minus', '-5'),
	nameOf('text', '"a ""rate"" b"'),
	nameOf('yes', 'TRUE'),
	nameOf('list', '{1,2;"a","}"}'),
	nameOf('gone', 'Data!#REF!'),
	nameOf('gone2', '#REF!'),
	nameOf('sum', 'SUM(Data!$A$1:$A$9)*rate'),
	nameOf('dynamic', 'OFFSET(Data!$A$1,0,0,COUNTA(Data!$A:$A),1)'),
	nameOf('newer', '_xlfn.CONCAT(Data!$A$1,"x")'),
	nameOf('let', '_xlfn.LET(_xlpm.rate,1,_xlpm.rate+Data!$A$1)'),
	nameOf('arrayed', 'SUM(Data!$A$1:$A$9*2)'),
	nameOf('relative', 'Data!A1'),
	nameOf('mixed', 'Data!$A1+1'),
	nameOf('bare', '$A$1'),
	nameOf('other', 'Other!$A$1'),
	nameOf('external', '[1]Data!$A$1'),
	nameOf('three', 'Main:Data!$A$1'),
	nameOf('union', 'Data!$A$1,Data!$C$1'),
	nameOf('own', 'SUM(own,1)'),
	nameOf('first', 'second'),
	nameOf('second', 'FIRST+1'),
	nameOf('alias', 'Rate'),
	nameOf('unknown', 'nothing*2'),
	nameOf('amounts', 'Sales[Amount]'),
	nameOf('thisRow', 'Sales[[#This Row],[Amount]]'),
	nameOf('A1', '7'),
	nameOf('A', 'Data!$Z$1'),
	nameOf('XFE5', 'Data!$Z$2'),
	nameOf('A2000000', 'Data!$Z$3'),
	nameOf('fn', '_xlfn.LAMBDA(_xlpm.x,_xlpm.x+1)'),
	nameOf('calling', 'fn(2)'),
	nameOf('_xlfn.CONCAT', '#NAME?'),
	nameOf('_xlpm.x', '#NAME?'),
	nameOf('_under.score\\x?', '8'),
	nameOf('Straße', '9'),
	nameOf('local', 'Main!$A$1', 0),
	nameOf('rate', 'Data!$B$2', 1),
	nameOf('viaLocal', 'rate', 1),
	nameOf('empty', ''),
	nameOf('toRow', 'Data!$B$4'),
];
const all = new Names(['Main', 'Data', 'my tab', undefined], names, tables);
const inMain = (formula: string) => all.write(formula, { at: 0, row: 4, col: 5 });
const inData = (formula: string, row = 4) => all.write(formula, { at: 1, row, col: 2 });

describe('names', () => {
	test.each([
		['rate*2', 'Data!$B$1*2'],
		['RATE+Rate', 'Data!$B$1+Data!$B$1'],
		['SUM(Range)', "SUM('my tab'!$A$1:$B$9)"],
		['SUM(cols,rows)', 'SUM(Data!$A:$C,Data!$1:$3)'],
		['circle^minus', '3.14^(-5)'],
		['text&"rate"', '"a ""rate"" b"&"rate"'],
		['IF(yes,1,2)', 'IF(TRUE,1,2)'],
		['SUM(list)', 'SUM({1,2;"a","}"})'],
		['gone+gone2', '#REF!+#REF!'],
		['sum/2', '(SUM(Data!$A$1:$A$9)*Data!$B$1)/2'],
		['COUNT(dynamic)', 'COUNT((OFFSET(Data!$A$1,0,0,COUNTA(Data!$A:$A),1)))'],
		['newer', '(_xlfn.CONCAT(Data!$A$1,"x"))'],
		['let', '(_xlfn.LET(_xlpm.rate,1,_xlpm.rate+Data!$A$1))'],
		['alias', 'Data!$B$1'],
		['SUM(union)', 'SUM((Data!$A$1,Data!$C$1))'],
		['SUM(amounts)', 'SUM(Data!$C$2:$C$9)'],
		['local', '$A$1'],
		['Main!local+Data!rate+[0]!rate', '$A$1+Data!$B$2+Data!$B$1'],
		["'Data'!rate", 'Data!$B$2'],
		['rate:toRow', 'Data!$B$1:$B$4'],
		['toRow:rate', 'Data!$B$1:$B$4'],
		['toRow : rate', 'Data!$B$4 : Data!$B$1'],
		['INDEX(cols,1):rate', 'INDEX(Data!$A:$C,1):Data!$B$1'],
		['A2000000+XFE5', 'Data!$Z$3+Data!$Z$2'],
		['A*2', 'Data!$Z$1*2'],
		['_under.score\\x?+straße', '8+9'],
		['_xlfn.LET(_xlpm.rate,1,_xlpm.rate)', '_xlfn.LET(_xlpm.rate,1,_xlpm.rate)'],
		['_xlfn.CONCAT(_xlfn.LET(_xlpm.x,rate,_xlpm.x))', '_xlfn.CONCAT(_xlfn.LET(_xlpm.x,Data!$B$1,_xlpm.x))'],
	])('%s', (formula, wanted) => expect(inMain(formula)).toEqual({ text: wanted, hasNames: false }));

	test.each([
		...['"rate"', '"a""rate"""', "'rate'!A1", 'rate!A1', "'it''s rate'!B2", 'rate(1)', 'SUM(1)', 'A1+$A$1+A$1+$A1', 'SUM(A:A,$A:A,A:$B)', 'rates+rate2+xrate'],
		...[
			'x.rate',
			'[1]!rate',
			"'[1]Data'!rate",
			'1E5',
			'{"rate"}',
			'#N/A',
			'Other!rate',
			'Data!$A$1:$B$2',
			'Sheet1:A!B2',
			'',
			'=',
			'((',
			'"rate',
			"'rate",
			'[rate',
		],
	])('stay: %s', (formula) => expect(inMain(formula)).toEqual({ text: formula, hasNames: false }));

	test.each([...['arrayed', 'relative', 'mixed', 'bare', 'other', 'external', 'three', 'own', 'first', 'second', 'unknown', 'thisRow', 'empty']])(
		'that mean something else elsewhere, or nothing, stay: %s',
		(name) => expect(inMain(`SUM(${name},rate)`)).toEqual({ text: `SUM(${name},Data!$B$1)`, hasNames: true }),
	);

	test('that are functions stay', () => {
		expect(inMain('fn(rate)+LOG10(1)+rate (1)')).toEqual({ text: 'fn(Data!$B$1)+LOG10(1)+Data!$B$1 (1)', hasNames: true });
		expect(inMain('calling+rate')).toEqual({ text: 'calling+Data!$B$1', hasNames: true });
		expect(inMain('other!fn(1)+[1]!fn(1)+LOG10(1)')).toEqual({ text: 'other!fn(1)+[1]!fn(1)+LOG10(1)', hasNames: false });
	});

	test('of a tab come before those of all', () => {
		expect(inData('rate+viaLocal+local')).toEqual({ text: '$B$2+$B$2+local', hasNames: false });
		expect(all.write('rate', { at: 2, row: 0, col: 0 }).text).toBe('Data!$B$1');
	});

	test('that are ranges become one cell where one is expected', () => {
		const written = (formula: string): string => intersected(inMain(formula).text);
		expect(written('Range*2')).toBe("SINGLE('my tab'!$A$1:$B$9)*2");
		expect(written('Sales[Amount]*2+SUM(Sales[Amount])')).toBe('SINGLE(Data!$C$2:$C$9)*2+SUM(Data!$C$2:$C$9)');
		expect(written('SUM(dynamic)+dynamic')).toMatch(/^SUM\(\(OFFSET.*\)\)\+\(SINGLE\(OFFSET.*\)\)$/);
	});
});

describe('tables', () => {
	test.each([
		['SUM(Sales[Amount])', 'SUM(Data!$C$2:$C$9)'],
		['SUM(sales[AMOUNT],SALES[grösse],Sales[größe])', 'SUM(Data!$C$2:$C$9,SALES[grösse],Data!$D$2:$D$9)'],
		['SUM(Sales[])+ROWS(Sales)', 'SUM(Data!$A$2:$D$9)+ROWS(Data!$A$2:$D$9)'],
		['Sales[#All]', 'Data!$A$1:$D$10'],
		['Sales[#Data]', 'Data!$A$2:$D$9'],
		['Sales[#Headers]', 'Data!$A$1:$D$1'],
		['Sales[ #totals ]', 'Data!$A$10:$D$10'],
		['Sales[[#All],[Amount]]', 'Data!$C$1:$C$10'],
		['Sales[[#Totals],[Amount]]', 'Data!$C$10'],
		['Sales[[#Headers],[Unit Price]]', 'Data!$B$1'],
		['Sales[[Item]:[Amount]]', 'Data!$A$2:$C$9'],
		['Sales[[Amount]:[Item]]', 'Data!$A$2:$C$9'],
		['Sales[[#Headers],[#Data],[Item]:[Amount]]', 'Data!$A$1:$C$9'],
		['Sales[ [#Data] , [#Totals] , [Item] : [Amount] ]', 'Data!$A$2:$C$10'],
		['Sales[[#Headers],[#Data]]', 'Data!$A$1:$D$9'],
		['Sales[[Unit Price]]', 'Data!$B$2:$B$9'],
		['Sales[Item]:Sales[Amount]', 'Data!$A$2:$C$9'],
		['Sales[Amount]:Sales[[#Totals],[Item]]', 'Data!$A$2:$C$10'],
		['SUM(Plain[Column2])', "SUM('my tab'!$C$2:$C$4)"],
		['Plain[#All]', "'my tab'!$B$2:$C$4"],
		["Odd[a'[b']]+Odd[it''s]+Odd['#no]+Odd['@at]", '$A$22:$A$23+$B$22:$B$23+$C$22:$C$23+$F$22:$F$23'],
		['Odd[two\nlines]+Odd[x "y"]&"Odd[x]"', '$D$22:$D$23+$E$22:$E$23&"Odd[x]"'],
		["Odd[[a'[b']]:[it''s]]", '$A$22:$B$23'],
		['Tax[only]', '$A$32'],
	])('%s', (formula, wanted) => expect(inMain(formula).text).toBe(wanted));

	test.each([
		['Sales[@Amount]*2', '$C5*2'],
		['Sales[[#This Row],[Amount]]', '$C5'],
		['Sales[[#This Row],[Item]:[Amount]]', '$A5:$C5'],
		['SUM(Sales[@])', 'SUM($A5:$D5)'],
		['Sales[@[Unit Price]]', '$B5'],
		['Sales[@[Item]:[Amount]]', '$A5:$C5'],
		['Sales[#This Row]', '$A5:$D5'],
		['[@Amount]+[Amount]', '$C5+$C$2:$C$9'],
		['[@[Unit Price]]*[@]', '$B5*$A5:$D5'],
		['SUM([[#This Row],[Item]:[Amount]])', 'SUM($A5:$C5)'],
		['SUM(Sales[[#Headers],[Amount]]:Sales[[#This Row],[Amount]])', 'SUM($C$1:$C5)'],
		['SUM(INDEX([Amount],1):[@Amount])', 'SUM(INDEX($C$2:$C$9,1):$C5)'],
		['SUM(C2:[@Amount])', 'SUM(C2:$C5)'],
		['Sales[Amount]', '$C$2:$C$9'],
		["SUM(Odd[it''s])", 'SUM(Main!$B$22:$B$23)'],
	])('in the tab of the table: %s', (formula, wanted) => expect(inData(formula).text).toBe(wanted));

	test.each([
		...[
			'Sales[nothing]',
			'Gone[Amount]',
			'Sales[@Amount]',
			'Sales[[#This Row],[Amount]]',
			'Plain[#Headers]',
			'Plain[#Totals]',
			"Odd[[#Totals],[it''s]]",
			'[Amount]',
		],
		...[
			'Sales[[Item],[Amount]]',
			'Sales[[#Headers],[#Totals]]',
			'Sales[[Item]:[#All]]',
			'Sales[#Foo]',
			'Sales[[#All]',
			'Sales[[]',
			'Sales[[Item]x]',
			'Sales[:[Item]]',
		],
		...[
			'Sales[[Item]:[Amount]:[Item]]',
			'Sales[[#This Row],[#All],[Item]]',
			'Data!Sales[Amount]',
			'[1]!Sales[Amount]',
			'"Sales[Amount]"',
			"'Sales[Amount]'!A1",
			'Sales(1)',
		],
	])('stay: %s', (formula) => expect(inMain(formula)).toEqual({ text: formula, hasNames: false }));

	test('of this row: only beside the data', () => {
		expect([0, 1, 8, 9, 10].map((row) => inData('Sales[@Amount]', row).text)).toEqual(['Sales[@Amount]', '$C2', '$C9', 'Sales[@Amount]', 'Sales[@Amount]']);
		// Column H is beside the table, too, but not in it.
		expect(all.write('[@Amount]+Sales[@Amount]', { at: 1, row: 4, col: 7 }).text).toBe('[@Amount]+$C5');
	});
});

describe('bounds', () => {
	const place = { at: 0, row: 0, col: 0 };
	const of = (list: DefinedName[]) => new Names(['Tab'], list, []);

	test('whatever formulas are made of, without names they are as they were, and with names nothing fails', () => {
		const below = randomOf(5);
		const parts = [
			'A1',
			'$A$1',
			':',
			'!',
			'"',
			"'",
			'[',
			']',
			'#',
			'@',
			'(',
			')',
			',',
			' ',
			'1',
			'.',
			'E',
			'{',
			'}',
			'rate',
			'Sales',
			'Data',
			'Amount',
			'#All',
			'#REF!',
			'é',
			'🙂',
			'\n',
		];
		const other = new Names(['Main', 'Data'], [nameOf('unused', '1')], [tableOf('Unused', 0, [0, 0, 3, 0], ['x'])]);
		for (let i = 0; i < 20_000; i++) {
			const formula = Array.from({ length: 1 + below(14) }, () => parts[below(parts.length)]).join('');
			expect(other.write(formula, { at: 1, row: 0, col: 0 })).toEqual({ text: formula, hasNames: false });
			expect(typeof intersected(inMain(formula).text)).toBe('string');
			of([nameOf('made', formula)]).write('made', place);
		}
	});

	test('a hundred thousand names, each of the next one', () => {
		const chain = Array.from({ length: 100_000 }, (_, i) => nameOf(`n_${i}`, i === 99_999 ? '1' : `n_${i + 1}+1`));
		const chained = of(chain);
		expect(chained.write('n_0+n_50000', place)).toEqual({ text: 'n_0+n_50000', hasNames: true });
		expect(chained.write('n_99997', place).text).toBe('((1+1)+1)');
	});

	test('names that double', () => {
		const doubled = of(Array.from({ length: 30 }, (_, i) => nameOf(`d_${i}`, i === 0 ? '123+4' : `d_${i - 1}+d_${i - 1}`)));
		expect(doubled.write('d_29', place)).toEqual({ text: 'd_29', hasNames: true });
		expect(doubled.write('d_2', place).text).toBe('(((123+4)+(123+4))+((123+4)+(123+4)))');
	});

	test('what all names mean has a size', () => {
		const long = `"${'x'.repeat(32_000)}"`;
		const many = of(Array.from({ length: 2000 }, (_, i) => nameOf(`l_${i}`, long)));
		const written = Array.from({ length: 2000 }, (_, i) => many.write(`l_${i}`, place)).filter(({ hasNames }) => !hasNames).length;
		expect(written).toBe(Math.floor((16 << 20) / long.length));
	});

	test('what formulas have in their place has a size', () => {
		const long = of([nameOf('long', `"${'x'.repeat(32_000)}"`)]);
		const written = Array.from({ length: 5000 }, () => long.write('long', place).text).filter((text) => text !== 'long').length;
		expect(written).toBe(Math.floor((128 << 20) / 31_998));
	});

	test('a formula that would be too long stays', () => {
		const long = of([nameOf('long', `"${'x'.repeat(20_000)}"`)]);
		expect(long.write('long&""', place).text.length).toBe(20_005);
		expect(long.write('long&long', place)).toEqual({ text: 'long&long', hasNames: true });
		const calls = `LEN(${'long&'.repeat(6000)}"")`;
		expect(long.write(calls, place)).toEqual({ text: calls, hasNames: true });
		expect(long.write(`long&"${'x'.repeat(40_000)}"`, place).text.length).toBeGreaterThan(40_000);
	});

	test('names of tabs have quotes where they need them', () => {
		const tabs = ['Tab', 'a b', "it's", 'A1', 'XFD1', 'R', 'r1c1', 'C', '2024', 'x.y_1', 'Größe', 'TRUE', 'a-b'];
		const quoted = tabs.map(
			(_, at) =>
				new Names([...tabs, 'Last'], [nameOf('n', `'${tabs[at]!.replaceAll("'", "''")}'!$A$1`)], []).write('n', { at: tabs.length, row: 0, col: 0 }).text,
		);
		expect(quoted.map((text) => text.slice(0, -5)).join(' ')).toBe("Tab 'a b' 'it''s' 'A1' 'XFD1' 'R' 'r1c1' 'C' '2024' x.y_1 Größe 'TRUE' 'a-b'");
	});

	test.each(['[', "['", '[[', '[a', "'", '"', '{', 'a:', 'a!', '$', '1', 'x', '\u0663', '\u0301'])('32,000 characters of %s take little time', (part) => {
		const began = performance.now();
		of([nameOf('a', '1')]).write(part.repeat(32_000 / part.length), place);
		expect(performance.now() - began).toBeLessThan(2000);
	});
});
