// tables.test.ts - tables and names of workbooks: formulas that use them have references, and a workbook made of the book has them again.
import { describe, expect, test } from 'vitest';
import type { CellEdit, PropertyEdit } from '../../src/v2/messages';
import { maxCols, maxRows } from '../../src/v2/lines';
import { main, type MadeTab, partOf, read, relation, workbook, writtenBook } from './workbooks';

// ---- reading ----

const columnsXml = (...names: string[]) =>
	`<tableColumns count="${names.length}">${names.map((name, i) => `<tableColumn id="${i + 1}" name="${name}"/>`).join('')}</tableColumns>`;
const tableXml = (attributes: string, inside: string) => `<table ${main} id="1" name="T" ${attributes}>${inside}</table>`;
const sales = tableXml(
	'displayName="Sales" ref="A1:C4" totalsRowCount="1" headerRowDxfId="3" dataDxfId="2"',
	`<autoFilter ref="A1:C3"><filterColumn colId="2" hiddenButton="1"><filters><filter val="x"/></filters></filterColumn><filterColumn colId="1"><colorFilter dxfId="0"/></filterColumn></autoFilter>
	<sortState ref="A2:C3"><sortCondition ref="A2:A3"/></sortState>
	<tableColumns count="3"><tableColumn id="1" name="Item" totalsRowLabel="Sum" dataDxfId="1"/><tableColumn id="4" name="Two_x000a_lines" totalsRowFunction="sum"><calculatedColumnFormula>1</calculatedColumnFormula></tableColumn>
	<tableColumn id="5" name="Own" totalsRowFunction="custom"><totalsRowFormula>1+1</totalsRowFormula></tableColumn></tableColumns>
	<tableStyleInfo name="TableStyleMedium2" showRowStripes="1" showColumnStripes="0"/><extLst><ext><table/></ext></extLst>`,
);
const names = (...list: [name: string, text: string, more?: string][]) =>
	`<definedNames>${list.map(([name, text, more = '']) => `<definedName name="${name}"${more}>${text}</definedName>`).join('')}</definedNames>`;
const cells = (...formulas: string[]) =>
	`<sheetData>${formulas.map((formula) => `<row>${formula.startsWith('<') ? formula : `<c><f>${formula}</f></c>`}</row>`).join('')}</sheetData>`;
const withTables = (sheet: string, tables: string[], book = '') =>
	workbook(sheet, {
		book,
		parts: Object.fromEntries(tables.map((table, i) => [`xl/tables/table${i + 1}.xml`, table])),
		sheetRelations: tables.map((_, i) => relation(`rId${i + 1}`, 'table', `../tables/table${i + 1}.xml`)).join(''),
	});

describe('formulas of an import', () => {
	const formulasOf = async (sheet: string, book = '') => {
		const { tabs, lost } = await read(await withTables(sheet, [sales], book));
		const own = lost.filter(({ what }) => /^names|^formulas that refer/.test(what)).map(({ tab, what, count }) => `${tab}: ${what} ${count}`);
		return { formulas: tabs[0]!.cells.map(({ content }) => content), lost: own };
	};
	const written = (count: number) => `Tab: names in formulas: references are in their place ${count}`;

	test('have references, each of its own row, also shared ones', async () => {
		const shared = (row: number, text = '') => `<c r="D${row}"><f t="shared" si="0"${row === 1 ? ' ref="D1:D4"' : ''}>${text}</f></c>`;
		const sheet = cells(shared(1, 'Sales[[#This Row],[Item]]+A1+rate'), shared(2), shared(3), shared(4));
		expect(await formulasOf(sheet, names(['rate', 'Tab!$F$1']))).toEqual({
			formulas: ['=Sales[[#This Row],[Item]]+A1+$F$1', '=$A2+A2+$F$1', '=$A3+A3+$F$1', '=Sales[[#This Row],[Item]]+A4+$F$1'],
			lost: [written(4), 'Tab: formulas that refer to tables 2'],
		});
	});

	test('take one cell of a range, unless they are arrays', async () => {
		const sheet = cells('Sales[Item]*2', '<c cm="1"><f t="array" ref="A2">Sales[Item]*2</f></c>', 'SUM(Sales[Item])', 'SUMPRODUCT(items*1)');
		expect((await formulasOf(sheet, names(['items', 'Sales[Item]']))).formulas).toEqual([
			...['=SINGLE($A$2:$A$3)*2', '=$A$2:$A$3*2', '=SUM($A$2:$A$3)', '=SUMPRODUCT($A$2:$A$3*1)'],
		]);
	});

	test('have no references for what LET and LAMBDA name', async () => {
		const sheet = cells('_xlfn.LET(_xlpm.rate,2,_xlpm.rate*rate)', '_xlfn.CONCAT(rate)');
		expect((await formulasOf(sheet, names(['rate', '5']))).formulas).toEqual(['=LET(rate,2,rate*5)', '=CONCAT(5)']);
	});

	test('of names of a tab, and names that stay', async () => {
		const book = names(
			['a', '1'],
			['a', '2', ' localSheetId="0"'],
			['_xlnm.Print_Area', 'Tab!$A$1:$B$2', ' localSheetId="0"'],
			['b', 'Tab!A1'],
			['hid', '3', ' hidden="1"'],
		);
		expect(await formulasOf(cells('a', 'SUM(_xlnm.Print_Area)', 'b+a', 'hid', 'nothing', 'Gone[x]'), book)).toEqual({
			formulas: ['=2', '=SUM($A$1:$B$2)', '=b+2', '=3', '=nothing', '=Gone[x]'],
			lost: [written(4), 'Tab: formulas that refer to names 1', 'Tab: formulas that refer to tables 1'],
		});
	});

	test('that would be too long stay', async () => {
		const book = names(['long', `&quot;${'x'.repeat(30_000)}&quot;`], ['r', 'Tab!$A$1:$A$9']);
		const many = `ABS(r)${'+ABS(r)'.repeat(1430)}`;
		const { formulas, lost } = await formulasOf(cells('long&amp;long', 'long', many), book);
		expect([formulas[0], formulas[1]!.length, formulas[2] === `=${many}`]).toEqual(['=long&long', 30_003, true]);
		expect(lost.sort()).toEqual(['Tab: formulas that refer to names 2', written(1)]);
	});

	test('of other tabs have its name', async () => {
		const relations = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${relation('rId1', 'worksheet', '/xl/worksheets/sheet1.xml')}${relation('rId9', 'worksheet', '/xl/worksheets/sheet2.xml')}</Relationships>`;
		const types = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
		const bytes = await workbook(cells('1'), {
			parts: {
				'xl/workbook.xml': `<workbook ${main} xmlns:r="${types}"><sheets><sheet name="it's" r:id="rId1"/><sheet name="B" r:id="rId9"/></sheets>${names(['n', "'it''s'!$A$1"], ['n', '7', ' localSheetId="1"'])}</workbook>`,
				'xl/_rels/workbook.xml.rels': relations,
				'xl/worksheets/sheet2.xml': `<worksheet ${main}>${cells('SUM(Sales[Item])+n+[0]!n')}</worksheet>`,
				'xl/tables/table1.xml': sales,
			},
			sheetRelations: relation('rId1', 'table', '/xl/tables/table1.xml'),
		});
		expect((await read(bytes)).tabs[1]!.cells[0]!.content).toBe("=SUM('it''s'!$A$2:$A$3)+7+'it''s'!$A$1");
	});
});

describe('tables of an import', () => {
	test('are kept without what the cells have, and the answer lists what is not kept', async () => {
		const { tabs, lost, kept } = await read(await withTables('<tableParts><tablePart r:id="rId1"/></tableParts>', [sales]));
		expect(tabs[0]!.properties).toEqual([
			{
				...{ row: 0, col: 0, toRow: 3, toCol: 2, key: 'xlsx.table' },
				value: [
					'table',
					{ displayName: 'Sales', totalsRowCount: '1' },
					[
						'autoFilter',
						{},
						['filterColumn', { column: 'Own', hiddenButton: '1' }, ['filters', {}, ['filter', { val: 'x' }]]],
						['filterColumn', { column: 'Two\nlines' }],
					],
					[
						'tableColumns',
						{},
						['tableColumn', { name: 'Two\nlines', totalsRowFunction: 'sum' }],
						['tableColumn', { name: 'Own', totalsRowFunction: 'custom' }],
					],
					['tableStyleInfo', { name: 'TableStyleMedium2', showRowStripes: '1', showColumnStripes: '0' }],
				],
			},
		]);
		expect(kept).toEqual([{ tab: 'Tab', what: 'tables', count: 1 }]);
		expect(lost.map(({ what, count }) => `${what} ${count}`)).toEqual(['filters by colour 1', 'orders of tables 1', 'formulas that tables give to new rows 1']);
	});

	test.each([
		['no place', 'displayName="T"', columnsXml('a')],
		['a place that is none', 'displayName="T" ref="x"', columnsXml('a')],
		['no name', 'ref="A1:A3"', columnsXml('a')],
		['other columns', 'displayName="T" ref="A1:B3"', columnsXml('a')],
		['no rows', 'displayName="T" ref="A1:A1"', columnsXml('a')],
		['rows below all', `displayName="T" ref="A1:A${maxRows + 1}"`, columnsXml('a')],
		['columns beside all', 'displayName="T" ref="XFD1:XFE3"', columnsXml('a', 'b')],
	])('with %s are not carried', async (_, attributes, inside) => {
		const table = `<table ${main} id="1" ${attributes}>${inside}</table>`;
		const { tabs, lost, kept } = await read(await withTables(cells('SUM(T[a])'), [table]));
		expect([tabs[0]!.properties, kept]).toEqual([[], []]);
		expect(lost).toContainEqual({ tab: 'Tab', what: 'tables', count: 1 });
		expect(tabs[0]!.cells[0]!.content).toBe('=SUM(T[a])');
	});

	test('without a part, or of another program', async () => {
		const bytes = await workbook(cells('1'), { sheetRelations: relation('rId1', 'table', '../tables/gone.xml') });
		expect((await read(bytes)).lost).toContainEqual({ tab: 'Tab', what: 'tables', count: 1 });
		const styled = tableXml('displayName="T" ref="A1:A2"', `${columnsXml('a')}<tableStyleInfo name="Mine" showRowStripes="1"/>`);
		const { tabs, lost } = await read(await withTables('', [styled]));
		expect(lost).toContainEqual({ tab: 'Tab', what: 'styles of tables that are not those of all programs', count: 1 });
		expect(tabs[0]!.properties[0]!.value).toEqual(['table', { displayName: 'T' }, ['tableStyleInfo', { showRowStripes: '1' }]]);
	});

	test('of all columns, and with more columns than there are', async () => {
		const list = Array.from({ length: maxCols }, (_, i) => `c${i}`);
		const wide = tableXml(`displayName="Wide" ref="A1:XFD3"`, columnsXml(...list));
		const tooWide = tableXml(`displayName="More" ref="A1:XFD3"`, columnsXml(...list, ...list));
		const { tabs, kept, lost } = await read(await withTables(cells('SUM(Wide[[c1]:[c16383]])', 'SUM(More[c1])'), [wide, tooWide]));
		expect(tabs[0]!.cells.map(({ content }) => content)).toEqual(['=SUM($B$2:$XFD$3)', '=SUM(More[c1])']);
		expect(kept).toEqual([{ tab: 'Tab', what: 'tables', count: 1 }]);
		expect(lost).toContainEqual({ tab: 'Tab', what: 'tables', count: 1 });
	});

	test('a hundred thousand names', async () => {
		const many = names(...Array.from({ length: 100_000 }, (_, i): [string, string] => [`n_${i}`, i % 2 ? `n_${i - 1}*2` : `Tab!$A$${i + 1}`]));
		const { tabs, lost } = await read(await withTables(cells('n_99999+n_0'), [], many));
		expect(tabs[0]!.cells[0]!.content).toBe('=(Tab!$A$99999*2)+$A$1');
		expect(lost).toContainEqual(expect.objectContaining({ tab: 'Tab', what: 'defined names' }));
	});
});

// ---- writing ----

const text = (row: number, col: number, content: string): CellEdit => ({ row, col, content });
/** A header, and two rows of numbers, at A1. */
const rows = (...header: string[]): CellEdit[] => header.flatMap((name, col) => [text(0, col, name), text(1, col, '1'), text(2, col, '2')]);
const table = (value: unknown, [row, col, toRow, toCol]: number[] = [0, 0, 2, 1]): PropertyEdit => ({
	...{ row: row!, col: col!, toRow: toRow!, toCol: toCol! },
	key: 'xlsx.table',
	value,
});
const named = (displayName: string, attributes: object = {}, ...parts: unknown[]) => ['table', { displayName, ...attributes }, ...parts];

/** The parts of the tables in order; undefined: there are no more. */
async function tablesOf(...tabs: MadeTab[]): Promise<string[]> {
	const bytes = await writtenBook(tabs);
	const types = await partOf(bytes, '[Content_Types].xml');
	const parts = [
		...types.matchAll(/PartName="\/(xl\/tables\/[^"]*)" ContentType="application\/vnd\.openxmlformats-officedocument\.spreadsheetml\.table\+xml"/g),
	];
	return Promise.all(parts.map(([, part]) => partOf(bytes, part!)));
}
const one = async (edits: CellEdit[], ...properties: PropertyEdit[]) =>
	(await tablesOf({ name: 'x', edits, properties })).map((xml) => xml.replace(/^.*\n/, '').replace(` xmlns="${/"(.*)"/.exec(main)![1]}"`, ''));

describe('tables of an export', () => {
	const value = named(
		'Sales',
		{ totalsRowCount: '1' },
		[
			'autoFilter',
			{},
			['filterColumn', { column: 'b', hiddenButton: '1' }, ['filters', {}, ['filter', { val: 'x' }]]],
			['filterColumn', { column: 'gone' }, ['filters', {}]],
		],
		['tableColumns', {}, ['tableColumn', { name: 'B', totalsRowFunction: 'sum' }], ['tableColumn', { name: 'a', totalsRowFunction: 'custom' }]],
		['tableStyleInfo', { name: 'TableStyleLight1', showRowStripes: '1' }],
	);
	const style = '<tableStyleInfo name="TableStyleLight1" showFirstColumn="0" showLastColumn="0" showRowStripes="1" showColumnStripes="0"/>';

	test('have the header of the cells, totals and filters by the names of columns', async () => {
		const edits = [...rows('a', '_x0041_\n"', 'b'), text(3, 0, 'Sum & all'), text(3, 1, '3'), text(3, 2, '=SUM(C2:C3)')];
		expect(await one(edits, table(value, [0, 0, 3, 2]))).toEqual([
			'<table id="1" name="Sales" displayName="Sales" ref="A1:C4" totalsRowCount="1"><autoFilter ref="A1:C3"><filterColumn colId="2" hiddenButton="1"><filters><filter val="x"/></filters></filterColumn></autoFilter>' +
				`<tableColumns count="3"><tableColumn id="1" name="a" totalsRowLabel="Sum &amp; all"/><tableColumn id="2" name="_x005F_x0041__x000A_&quot;"/><tableColumn id="3" name="b" totalsRowFunction="sum"/></tableColumns>${style}</table>`,
		]);
		// Its row of totals is deleted.
		expect((await one(edits.slice(0, -1), table(value, [0, 0, 2, 2])))[0]).toMatch(/ref="A1:C3"><autoFilter ref="A1:C3">.*totalsRowFunction="sum"/);
	});

	test('are as they were when they are read again', async () => {
		const edits = [...rows("'2024", "it's", 'x\ny'), text(3, 0, '=1'), text(3, 2, 'Sum')];
		const kept = named(
			'Sälés.1',
			{ totalsRowCount: '1', totalsRowShown: '1' },
			['autoFilter', {}, ['filterColumn', { column: 'x\ny' }, ['filters', {}, ['filter', { val: 'x' }]]]],
			['tableColumns', {}, ['tableColumn', { name: '2024', totalsRowFunction: 'count' }]],
		);
		const bare = named('Bare', { headerRowCount: '0', totalsRowShown: '0' }, [
			'tableColumns',
			{},
			['tableColumn', { name: 'p' }],
			['tableColumn', { name: 'q' }],
		]);
		// Its totals are not shown.
		const hidden = named('Hidden', {}, [
			'tableColumns',
			{},
			['tableColumn', { totalsRowFunction: 'sum', name: '2024' }],
			['tableColumn', { totalsRowLabel: 'x\ny', name: 'x\ny' }],
		]);
		const properties = [table(kept, [0, 0, 3, 2]), table(bare, [9, 0, 9, 1]), table(hidden, [19, 0, 20, 2])];
		edits.push(...edits.slice(0, 9).map((edit) => ({ ...edit, row: edit.row + 19 })));
		const { tabs, kept: told } = await read(await writtenBook([{ name: 'x', edits, properties }]));
		const without = named('Sälés.1', { totalsRowCount: '1' }, ...(kept.slice(2) as unknown[]));
		expect(tabs[0]!.properties.map(({ value: read_ }) => read_)).toEqual([without, bare, hidden]);
		expect(told).toEqual([{ tab: 'x', what: 'tables', count: 3 }]);
	});

	test.each([
		['an empty text', ['a', '']],
		['the same text twice', ['a', 'A']],
		['a number', ['a', '1']],
		['a date', ['a', '2024-01-01']],
		['a formula', ['a', '="b"']],
		['a text that is too long', ['a', 'x'.repeat(256)]],
	])('are left out with %s in their header', async (_, header) => expect(await one(rows(...header), table(named('T')))).toEqual([]));

	test('have headers that are links', async () => expect(await one(rows('a', '=HYPERLINK("https://a/","b")'), table(named('T')))).toHaveLength(1));

	test('are left out in the place of another one, of a filter and of merged cells', async () => {
		const edits = rows('a', 'b', 'c');
		const others = [table(named('U'), [0, 1, 2, 2]), table(named('V'), [0, 2, 2, 2]), table(named('t'), [0, 2, 1, 2])];
		expect((await one(edits, table(named('T')), ...others)).map((xml) => / name="(.)"/.exec(xml)![1])).toEqual(['T', 'V']);
		expect(await one(edits, table(named('T')), { ...table(['autoFilter', {}], [2, 1, 5, 5]), key: 'xlsx.filter' })).toEqual([]);
		expect(await one(edits, table(named('T')), { ...table(true, [1, 0, 2, 0]), key: 'merge' })).toEqual([]);
		expect(await one(edits, table(named('T'), [0, 0, 0, 1]), table(named('T'), [0, 0, 1_048_576, 1]))).toEqual([]);
	});

	test('have different names and numbers, also in copies of a tab, and beside names', async () => {
		const property = {
			row: 0,
			col: 0,
			toRow: maxRows - 1,
			toCol: maxCols - 1,
			key: 'xlsx.names',
			value: [{ name: 'SALES_2', text: '1', local: false, hidden: false }],
		};
		const tab = (name: string, tableName: string): MadeTab => ({ name, edits: rows('a', 'b'), properties: [table(named(tableName)), property] });
		const tabs = [
			tab('1', 'Sales'),
			tab('2', 'sales'),
			...['A1', 'R1C1', 'c', 'two words', '', '"<', 'x'.repeat(300), 'XFE1'].map((name, i) => tab(`${i + 3}`, name)),
		];
		const called = (await tablesOf(...tabs)).map((xml) => /id="([0-9]+)" name="([^"]*)" displayName="([^"]*)"/.exec(xml)!.slice(1));
		expect(called.map(([id, name, displayName]) => [id, name === displayName, name])).toEqual([
			...['Sales', 'sales_3', 'Table3', 'Table4', 'Table5', 'Table6', 'Table7', 'Table8', 'Table9', 'XFE1'].map((name, i) => [`${i + 1}`, true, name]),
		]);
	});

	test('are in the tab behind all else, with their relations', async () => {
		const bytes = await writtenBook([
			{
				name: 'x',
				edits: rows('a', 'b', 'c'),
				properties: [table(named('T')), table(named('U'), [0, 2, 2, 2]), { ...table({ text: 'n' }, [0, 0, 0, 0]), key: 'xlsx.note' }],
			},
		]);
		expect(await partOf(bytes, 'xl/worksheets/sheet1.xml')).toMatch(
			/<legacyDrawing [^>]*><tableParts count="2"><tablePart r:id="rIdTable1"\/><tablePart r:id="rIdTable2"\/><\/tableParts><\/worksheet>$/,
		);
		const relations = await partOf(bytes, 'xl/worksheets/_rels/sheet1.xml.rels');
		expect([...relations.matchAll(/Id="(rIdTable.)"[^>]*\/table" Target="([^"]*)"/g)].map((match) => match.slice(1))).toEqual([
			['rIdTable1', '../tables/table1.xml'],
			['rIdTable2', '../tables/table2.xml'],
		]);
	});

	test('and names: those of tables, columns and workbooks that are not there are left out', async () => {
		const texts = { items: 'T[a]', gone: 'Gone[a]', column: 'SUM(T[gone],T[a])', workbook: '[1]x!$A$1', all: 'T[#All]', text: '"[x"', cell: 'x!$A$1' };
		const list = Object.entries(texts).map(([name, content]) => ({ name, text: content, local: false, hidden: false }));
		const property = { row: 0, col: 0, toRow: maxRows - 1, toCol: maxCols - 1, key: 'xlsx.names', value: [...list, list[0]!] };
		const book = await partOf(await writtenBook([{ name: 'x', edits: rows('a', 'b'), properties: [table(named('T')), property] }]), 'xl/workbook.xml');
		expect([...book.matchAll(/<definedName name="([^"]*)"/g)].map(([, name]) => name)).toEqual(['items', 'all', 'text', 'cell']);
	});

	test('values that others have set, and are none, are left out or made some', async () => {
		const none = [1, 'x', {}, [], ['tables', {}], ['table', { 'on"x': '1' }], ['table', { displayName: 1 }]];
		for (const bad of none) expect(await one(rows('a', 'b'), table(bad))).toEqual([]);
		const odd = [
			...[
				['table', {}],
				named('T', { totalsRowCount: 'x', headerRowCount: 'y', totalsRowShown: '"' }),
				named('T', {}, 'text', ['script', {}], ['tableColumns', { a: 'b' }, 'x', ['x', {}]]),
			],
			named(
				'T',
				{ totalsRowCount: '1' },
				['autoFilter', { ref: 'x' }, ['filterColumn', {}], ['filterColumn', { column: 'a' }, ['script', {}], ['filters', {}]]],
				['tableStyleInfo', { x: 'y' }, ['z', {}]],
			),
		];
		for (const made of odd) {
			const [xml, ...others] = await one(rows('a', 'b'), table(made));
			expect([others, /script|x"|y"|<z/.test(xml!.replace(/id="[^>]*ref="A1:B3"/, ''))]).toEqual([[], false]);
		}
	});

	test('of all columns', async () => {
		const edits = Array.from({ length: maxCols }, (_, col) => [text(0, col, `c${col}`), text(1, col, '1')]).flat();
		const [xml] = await one(edits, table(named('Wide'), [0, 0, 1, maxCols - 1]));
		expect(xml!.match(/<tableColumn /g)).toHaveLength(maxCols);
	});
});
