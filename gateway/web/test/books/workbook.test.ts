// workbook.test.ts - workbooks as edits of sheets, and back (calc/books), without a database.
import { describe, expect, test } from 'vitest';
import { Refused } from '../../../../calc/books/read/refused';
import { Zip } from '../../../../calc/books/read/zip';
import { tabNames } from '../../../../calc/books/write/workbook';
import type { CellEdit, PropertyEdit } from '../../src/v2/messages';
import { maxCols, maxRows } from '../../src/v2/lines';
import { randomOf } from '../person';
import { main, partOf, read, type ReadTab, relation, relations, workbook, written, zipped } from './workbooks';

const contents = async (sheet: string, options = {}): Promise<Record<string, unknown>> => {
	const { tabs } = await read(await workbook(`<sheetData>${sheet}</sheetData>`, options));
	return Object.fromEntries(tabs[0]!.cells.map(({ row, col, content }) => [`${row},${col}`, content]));
};

const formats = (...patterns: string[]) => ({
	'xl/styles.xml': `<styleSheet ${main}><numFmts>${patterns.map((code, i) => `<numFmt numFmtId="${200 + i}" formatCode="${code}"/>`).join('')}</numFmts>
		<fonts><font><sz val="11"/><name val="Arial"/></font></fonts><fills><fill/></fills><borders><border/></borders>
		<cellXfs><xf/>${patterns.map((_, i) => `<xf numFmtId="${200 + i}"/>`).join('')}</cellXfs><dxfs><dxf><font><b/></font></dxf></dxfs></styleSheet>`,
});

describe('contents', () => {
	test('of cells without a place are in order', async () => {
		const cells = await contents('<row><c><v>1</v></c><c/><c><v>2</v></c></row><row r="4"><c r="C4"><v>3</v></c><c><v>4</v></c></row>');
		expect(cells).toEqual({ '0,0': '1', '0,2': '2', '3,2': '3', '3,3': '4' });
	});

	test('texts, booleans, errors and dates', async () => {
		const cell = (i: number, type: string, value: string) => `<c r="A${i}" t="${type}">${value}</c>`;
		const rows = [
			cell(1, 'inlineStr', '<is><t>a</t></is>'),
			cell(2, 'inlineStr', '<is><r><rPr><b/></rPr><t>b</t></r><r><t xml:space="preserve"> c</t></r><rPh sb="0" eb="1"><t>x</t></rPh></is>'),
			cell(3, 'str', '<v>12</v>'),
			cell(4, 'b', '<v>1</v>'),
			cell(5, 'e', '<v>#DIV/0!</v>'),
			cell(6, 'd', '<v>2024-02-29T13:30:00</v>'),
			cell(7, 's', '<v>0</v>'),
			cell(8, 's', '<v>1</v>'),
			cell(9, 'str', '<v></v>'),
			cell(11, 'd', '<v>2024-02-29T00:00:00.000Z</v>'),
			cell(12, 'd', '<v>2024-02-29T13:30:00.123456+01:00</v>'),
			cell(13, 'd', '<v>T10:30:00</v>'),
			cell(14, 'd', '<v>2024-02-30</v>'),
			cell(10, 'str', '<v>_x0041_&#10;_x000D_&amp;_x0000__xD800__xD83D__xDE00_</v>'),
		];
		const dates = ['2024-02-29', '2024-02-29 13:30:00.123', '10:30:00', '2024-02-30'];
		const strings = `<sst ${main}><si><t>shared</t></si><si><r><rPr><i/></rPr><t>ri</t></r><r><t>ch</t></r></si></sst>`;
		const cells = await contents(rows.map((row, i) => `<row r="${i + 1}">${row}</row>`).join(''), { parts: { 'xl/sharedStrings.xml': strings } });
		expect(Object.values(cells)).toEqual([
			'a',
			'b c',
			"'12",
			'TRUE',
			'=#DIV/0!',
			'2024-02-29 13:30:00',
			'shared',
			'rich',
			"'",
			...dates,
			'A\n\r&\ufffd\ufffd😀',
		]);
	});

	test('dates of both epochs', async () => {
		const rows = `<row><c s="1"><v>0.5</v></c><c s="1"><v>1.25</v></c><c s="2"><v>1</v></c><c s="2"><v>59</v></c><c s="2"><v>60</v></c><c s="2"><v>61</v></c>
			<c s="2"><v>45351.5625</v></c><c s="3"><v>1.25</v></c><c s="2"><v>-1</v></c><c><v>45351</v></c></row>`;
		const parts = formats('h:mm', 'yyyy-mm-dd', '[h]:mm');
		expect(Object.values(await contents(rows, { parts }))).toEqual([
			...['12:00:00', '1900-01-01 06:00:00', '1900-01-01', '1900-02-28', '60', '1900-03-01', '2024-02-29 13:30:00', '30:00:00', '-1', '45351'],
		]);
		expect(Object.values(await contents(rows, { parts, book: '<workbookPr date1904="1"/>' }))).toEqual([
			...['12:00:00', '1904-01-02 06:00:00', '1904-01-02', '1904-02-29', '1904-03-01', '1904-03-02', '2028-03-01 13:30:00', '30:00:00'],
			...['1903-12-31', '45351'],
		]);
	});

	test('formulas: shared ones, arrays, and values of data tables', async () => {
		const cells = await contents(
			`<row r="1"><c r="A1"><f t="shared" ref="A1:A2" si="0">B1</f><v>1</v></c><c r="B1"><f t="array" ref="B1:B2">C1:C2*2</f><v>1</v></c>
				<c r="C1"><f t="dataTable" ref="C1:C2" r1="A1"/><v>7</v></c></row>
			<row r="2"><c r="A2"><f t="shared" si="0"/><v>2</v></c><c r="B2"><v>5</v></c><c r="C2"><f>"a"&amp;"&lt;b&gt;"</f><v>x</v></c></row>`,
		);
		expect(cells).toEqual({ '0,0': '=B1', '0,1': '=C1:C2*2', '0,2': '7', '1,0': '=B2', '1,2': '="a"&"<b>"' });
	});

	test('a formula that is no array takes one cell of a range', async () => {
		const sheet = `<sheetData><row r="1"><c r="A1"><f t="shared" ref="A1:A2" si="0">C1:C9*2</f><v>2</v></c><c r="B1" cm="1"><f t="array" ref="B1:B2">C1:C2*2</f><v>2</v></c></row>
			<row r="2"><c r="A2"><f t="shared" si="0"/><v>4</v></c><c r="B2"><v>4</v></c><c r="D2"><f>SUM(_xlfn.ANCHORARRAY(B1))</f></c><c r="E2"><f>_xlfn.SINGLE(C:C)</f></c></row></sheetData>`;
		const { tabs, lost } = await read(await workbook(sheet));
		expect(tabs[0]!.cells.map(({ content }) => content)).toEqual([
			...['=SINGLE(C1:C9)*2', '=C1:C2*2', '=SINGLE(C2:C10)*2', '=SUM(ANCHORARRAY(B1))', '=SINGLE(C:C)'],
		]);
		expect(lost).toEqual([{ tab: 'Tab', what: 'formulas that refer to what an array fills', count: 1 }]);
	});

	test('links are formulas; those of numbers are not carried', async () => {
		const sheet = `<sheetData><row><c t="str"><v>a "b"</v></c><c><v>1</v></c><c t="str"><v>in</v></c></row></sheetData>
			<hyperlinks><hyperlink ref="A1" r:id="rId9"/><hyperlink ref="B1" r:id="rId9"/><hyperlink ref="C1" location="Tab!A1"/></hyperlinks>`;
		const { tabs, lost } = await read(
			await workbook(sheet, { sheetRelations: relation('rId9', 'hyperlink', 'https://a/?x=1&amp;y', ' TargetMode="External"') }),
		);
		expect(tabs[0]!.cells.slice(3).map(({ content }) => content)).toEqual(['=HYPERLINK("https://a/?x=1&y","a ""b""")', '=HYPERLINK("#Tab!A1","in")']);
		expect(lost).toEqual([{ tab: 'Tab', what: 'links of cells without a text', count: 1 }]);
	});
});

describe('what a tab has besides cells', () => {
	test('widths behind the last cell do not widen the sheet, and rows with one height are one property', async () => {
		const rows = Array.from({ length: 5 }, (_, i) => `<row r="${i + 1}" ht="30" customHeight="1"${i === 2 ? ' hidden="1"' : ''}/>`).join('');
		const { tabs } = await read(
			await workbook(
				`<cols><col min="1" max="2" width="10" customWidth="1"/><col min="3" max="16384" width="20" customWidth="1"/></cols><sheetData>${rows}</sheetData>`,
			),
		);
		expect(tabs[0]!.properties.map(({ row, toRow, col, toCol, key, value }) => [key, value, row, toRow, col, toCol])).toEqual([
			['width', 70, 0, maxRows - 1, 0, 1],
			['width', 140, 0, maxRows - 1, 2, 25],
			['hidden', true, 2, 2, 0, maxCols - 1],
			['height', 40, 0, 4, 0, maxCols - 1],
		]);
	});

	test('rows that are hidden up to the last one', async () => {
		const format = '<sheetFormatPr defaultRowHeight="15" zeroHeight="1"/>';
		const { tabs, lost } = await read(await workbook(`${format}<sheetData><row r="2"/><row r="3" hidden="1"/><row r="4"/></sheetData>`));
		const hidden = tabs[0]!.properties.map(({ row, toRow, key, value }) => [row, toRow, key, value]);
		expect([hidden, lost]).toEqual([[0, 2, 4].map((row, i) => [row, [0, 2, maxRows - 1][i], 'hidden', true]), []]);
		// Row 7 has a cell and is hidden, too.
		const properties = [{ row: 4, col: 0, toRow: maxRows - 1, toCol: maxCols - 1, key: 'hidden', value: true }];
		const back = (await read(await written('x', [{ row: 6, col: 0, content: '1' }], [], properties))).tabs[0]!;
		expect([back.properties, back.cells.length]).toEqual([[expect.objectContaining(properties[0]!)], 1]);
	});

	test('colours of palettes and of the system', async () => {
		const fill = (colour: string) => `<fill><patternFill patternType="solid"><fgColor ${colour}/><bgColor indexed="64"/></patternFill></fill>`;
		const styles = `<styleSheet ${main}><fonts><font/></fonts><fills>${fill('indexed="8"')}${fill('indexed="9"')}${fill('indexed="64"')}${fill('indexed="65"')}${fill('indexed="10"')}</fills>
			<borders><border/></borders><cellXfs>${[0, 1, 2, 3, 4].map((i) => `<xf fillId="${i}"/>`).join('')}</cellXfs>
			<colors><indexedColors>${'<rgbColor rgb="00000000"/>'.repeat(8)}<rgbColor rgb="00ABCDEF"/><rgbColor rgb="x"/></indexedColors></colors></styleSheet>`;
		const cells = [0, 1, 2, 3, 4].map((i) => `<c s="${i}"><v>1</v></c>`).join('');
		const { tabs } = await read(await workbook(`<sheetData><row>${cells}</row></sheetData>`, { parts: { 'xl/styles.xml': styles } }));
		expect(tabs[0]!.cells.map(({ style }) => (style as { bg: { rgb: string } }).bg.rgb)).toEqual(['#abcdef', '#ffffff', '#000000', '#ffffff', '#ff0000']);
	});

	test('more than a sheet can have are counted', async () => {
		const rows = Array.from({ length: 12_000 }, (_, i) => `<row r="${i + 1}" ht="${20 + (i % 2)}" customHeight="1"/>`).join('');
		const { tabs, lost } = await read(
			await workbook(`<sheetData>${rows}</sheetData><mergeCells><mergeCell ref="A1:A1"/><mergeCell ref="A1:B500000"/></mergeCells>`),
		);
		expect(tabs[0]!.properties.length).toBe(10_000);
		expect(lost).toEqual([
			{ tab: 'Tab', what: 'merged cells', count: 1 },
			{ tab: 'Tab', what: 'heights', count: 2000 },
		]);
	});
});

describe('refused', () => {
	const refusal = async (bytes: Promise<Buffer>): Promise<unknown> => {
		const error = await read(await bytes).then(
			() => undefined,
			(caught: unknown) => caught,
		);
		expect(error).toBeInstanceOf(Refused);
		const { code, where } = error as Refused;
		return [code, where.row, where.column];
	};

	test.each([
		['<sheetData><row r="0"/></sheetData>', ['workbook_broken', undefined, undefined]],
		['<sheetData><row r="2"><c r="1A"/></row></sheetData>', ['workbook_broken', 2, undefined]],
		['<sheetData><row r="2"><c r="B2"><v>1.2.3</v></c></row></sheetData>', ['workbook_broken', 2, 2]],
		['<sheetData><row r="2"><c r="B2"><v>Infinity</v></c></row></sheetData>', ['workbook_broken', 2, 2]],
		['<sheetData><row>', ['workbook_broken', undefined, undefined]],
		['<sheetData>\u0001</sheetData>', ['workbook_broken', undefined, undefined]],
	])('%s', async (sheet, wanted) => expect(await refusal(workbook(sheet))).toEqual(wanted));

	test('a part twice, and none', async () => {
		const parts = { '_rels/.rels': relations(relation('rId1', 'officeDocument', 'xl/workbook.xml')) };
		expect(await refusal(zipped({ ...parts, 'xl/workbook.xml': `<workbook ${main}/>`, 'XL/workbook.xml': '' }))).toEqual([
			'workbook_broken',
			undefined,
			undefined,
		]);
		expect(await refusal(zipped(parts))).toEqual(['workbook_unknown', undefined, undefined]);
		expect(await refusal(zipped({ ...parts, 'xl/workbook.xml': `<workbook ${main}/>` }))).toEqual(['workbook_broken', undefined, undefined]);
		expect(await refusal(zipped({ mimetype: 'application/vnd.oasis.opendocument.spreadsheet' }))).toEqual(['workbook_unknown', undefined, undefined]);
	});
});

// ---- writing ----

test('what is written is read as the same', async () => {
	const texts = [
		'1',
		'-0.5',
		'1e300',
		'TRUE',
		'text',
		"'12",
		"''x",
		"'",
		'a\nb',
		' a ',
		'_x0041_',
		'\u0001',
		'<&>"',
		'2024-02-29',
		'2024-02-29 10:30:00',
		'10:30',
		'36:00:00',
		'=A1+1',
		'=#N/A',
	];
	const cells: CellEdit[] = texts.map((content, row) => ({ row, col: 0, content }));
	cells.push(
		{ row: 0, col: 2, style: { bl: 1 } },
		{ row: 100, col: 16383, content: 'far', style: { n: { pattern: '0.00' }, bd: { t: { s: 13, cl: { rgb: '#ff0000' } } } } },
	);
	const properties = [
		{ row: 0, col: 0, toRow: maxRows - 1, toCol: maxCols - 1, key: 'freeze', value: { rows: 2, cols: 0 } },
		{ row: 0, col: 1, toRow: maxRows - 1, toCol: 3, key: 'width', value: 120.5 },
		{ row: 7, col: 0, toRow: 9, toCol: maxCols - 1, key: 'height', value: 53.33 },
		{ row: 5, col: 5, toRow: 6, toCol: 7, key: 'merge', value: true },
	];
	const { tabs, lost } = await read(await written('a/b', cells, [], properties));
	expect(lost).toEqual([]);
	const [tab] = tabs;
	expect([tab!.name, tab!.colour, tab!.hidden]).toEqual(['a_b', '#112233', false]);
	const implied: Record<string, string> = {
		'2024-02-29': 'yyyy-mm-dd',
		'2024-02-29 10:30:00': 'yyyy-mm-dd hh:mm:ss',
		'10:30': 'hh:mm',
		'36:00:00': '[h]:mm:ss',
	};
	const wanted = cells.map((cell) => ({
		...cell,
		...(cell.content === '10:30' && { content: '10:30:00' }),
		...(implied[cell.content ?? ''] && { style: { n: { pattern: implied[cell.content!] } } }),
	}));
	expect(tab!.cells.sort((a, b) => a.row - b.row || a.col - b.col)).toEqual(wanted.sort((a, b) => a.row - b.row || a.col - b.col));
	expect(tab!.properties).toEqual([properties[0], properties[1], properties[3], properties[2]].map((property) => expect.objectContaining({ ...property })));
});

/** The formulas of the tab's XML: cell, range of an array, text. */
async function writtenFormulas(edits: CellEdit[], values: CellEdit[], isComputed = true): Promise<string[]> {
	const bytes = await written('x', edits, values, [], isComputed);
	const xml = await partOf(bytes, 'xl/worksheets/sheet1.xml');
	const formulas = [...xml.matchAll(/<c r="([A-Z0-9]+)"[^>]*?( cm="1")?[^>]*><f( t="array" ref="([^"]*)")?>([^<]*)/g)];
	for (const [, , cm, array] of formulas) expect(cm !== undefined).toBe(array !== undefined);
	expect((await Zip.open(bytes)).has('xl/metadata.xml')).toBe(formulas.some(([, , , array]) => array));
	return formulas.map(([, cell, , , range, text]) => `${cell} ${range ?? '-'} ${text}`);
}

describe('which cells an array fills', () => {
	const at = (name: string, content: string): CellEdit => ({ row: Number(name.slice(1)) - 1, col: name.charCodeAt(0) - 65, content });
	const all = (cells: Record<string, string>): CellEdit[] => Object.entries(cells).map(([name, content]) => at(name, content));

	test('is written, and read as one formula', async () => {
		const edits = all({ A1: '=SEQUENCE(2,2)', A6: '=1/0', A7: '=X()' });
		const values = all({ A1: '1', B1: '2', A2: '3', B2: '4', A6: '#DIV/0!', A7: '#CYCLE!' });
		expect(await writtenFormulas(edits, values)).toEqual(['A1 A1:B2 _xlfn.SEQUENCE(2,2)', 'A6 - 1/0', 'A7 - X()']);
		expect((await read(await written('x', edits, values))).tabs[0]!.cells.map(({ row, content }) => [row, content])).toEqual([
			[0, '=SEQUENCE(2,2)'],
			[5, '=1/0'],
			[6, '=X()'],
		]);
	});

	test('two beside each other, and one with empty cells', async () => {
		const edits = all({ A1: '=F1:F3', B1: '=G1:G3', A6: '=F6:H6', C5: '=INDEX(F:F,2)' });
		const values = all({ A1: '1', A2: '2', A3: '3', B1: '4', B2: '5', B3: '6', A6: '1', C5: '2' });
		expect(await writtenFormulas(edits, values)).toEqual(['A1 A1:A3 F1:F3', 'B1 B1:B3 G1:G3', 'C5 - INDEX(F:F,2)', 'A6 A6 F6:H6']);
		// C6 may be of A6, whose B6 is empty, or of C5.
		expect(await writtenFormulas(edits, [...values, at('C6', '3')])).toEqual(['A1 A1:A3 F1:F3', 'B1 B1:B3 G1:G3', 'C5 - INDEX(F:F,2)', 'A6 A6 F6:H6']);
		// Without C5, it is of A6.
		expect((await writtenFormulas(all({ A6: '=F6:H6' }), all({ A6: '1', C6: '3' })))[0]).toBe('A6 A6:C6 F6:H6');
	});

	test('is not known if more than one could have filled them', async () => {
		// B1 may have filled B2 and B6.
		const edits = all({ B1: '=OFFSET(F1,0,0)', A2: '=SEQUENCE(1,4)', A6: '=SEQUENCE(1,2)' });
		const values = all({ B1: '2', A2: '1', B2: '2', C2: '3', D2: '4', A6: '1', B6: '2' });
		expect(await writtenFormulas(edits, values)).toEqual(['B1 - OFFSET(F1,0,0)', 'A2 A2 _xlfn.SEQUENCE(1,4)', 'A6 A6 _xlfn.SEQUENCE(1,2)']);
		// A sum has one value.
		expect(await writtenFormulas([...all({ B1: '=SUM(F:F)' }), ...edits.slice(1)], values)).toEqual([
			...['B1 - SUM(F:F)', 'A2 A2:D2 _xlfn.SEQUENCE(1,4)', 'A6 A6:B6 _xlfn.SEQUENCE(1,2)'],
		]);
		expect((await read(await written('x', edits, values))).tabs[0]!.cells.length).toBe(3);
	});

	test('is not known of values that are older than the contents, or of an array without room', async () => {
		const [edits, values] = [all({ A1: '=1+1' }), all({ A1: '1', B1: '2' })];
		expect(await writtenFormulas(edits, values, false)).toEqual(['A1 - 1+1']);
		expect((await read(await written('x', edits, values, [], false))).tabs[0]!.cells.length).toBe(1);
		expect(
			await writtenFormulas(all({ A1: '=SEQUENCE(2)', A2: 'x', B2: '=SEQUENCE(2)', B1: '=1' }), all({ A1: '#SPILL!', B1: '1', B2: '1', B3: '2' })),
		).toEqual(...[['A1 A1 _xlfn.SEQUENCE(2)', 'B1 - 1', 'B2 B2:B3 _xlfn.SEQUENCE(2)']]);
	});
});

test('of a formula that names a tab which is not in the workbook, the value is written', async () => {
	const value = (row: number, content: string) => ({ row, col: 0, content });
	const cells = [value(0, '=x!B1+1'), value(1, '=SUM(Other!A:A)'), value(2, '=\'a b\'!A1&"!"'), value(3, '=Other!A1'), value(4, '="Other!A1"')];
	const values = [value(0, '2'), value(1, '42'), value(2, "'text!"), value(3, '#REF!'), value(4, 'Other!A1')];
	expect((await read(await written('x', cells, values))).tabs[0]!.cells.map(({ content }) => content)).toEqual([
		...['=x!B1+1', '42', 'text!', '=#REF!', '="Other!A1"'],
	]);
});

test('names of tabs', () => {
	expect(tabNames(['a', 'A', 'x'.repeat(40), 'x'.repeat(35), 'a:b?', "'q'", 'History', ''])).toEqual([
		...['a', 'A (2)', 'x'.repeat(31), `${'x'.repeat(27)} (2)`, 'a_b_', '_q_', 'History (2)', '_'],
	]);
});

describe('little that becomes much', () => {
	test('a text, or a formula, that many cells share', async () => {
		const strings = { 'xl/sharedStrings.xml': `<sst ${main}><si><t>${'x'.repeat(32_000)}</t></si></sst>` };
		const rows = Array.from({ length: 2000 }, () => `<row>${'<c t="s"><v>0</v></c>'.repeat(10)}</row>`).join('');
		await expect(read(await workbook(`<sheetData>${rows}</sheetData>`, { parts: strings }))).rejects.toMatchObject({
			code: 'workbook_limit',
			where: { tab: 'Tab' },
		});
		const first = `<row><c><f t="shared" ref="A1:B9" si="0">${'A1+'.repeat(9000)}1</f></c></row>`;
		const others = '<row><c><f t="shared" si="0"/></c></row>'.repeat(30_000);
		await expect(read(await workbook(`<sheetData>${first}${others}</sheetData>`))).rejects.toMatchObject({ code: 'workbook_limit' });
	});

	test('names that JavaScript has, too', async () => {
		const styles = `<styleSheet ${main}><fonts><font/></fonts><fills><fill/></fills><borders><border><constructor style="thin"/><toString/></border></borders>
			<cellXfs><xf><alignment horizontal="constructor" vertical="toString"/></xf></cellXfs></styleSheet>`;
		const { tabs, lost } = await read(
			await workbook('<constructor/><sheetData><row><c s="0"><v>1</v></c></row></sheetData><__proto__/>', { parts: { 'xl/styles.xml': styles } }),
		);
		expect(tabs[0]!.cells).toEqual([{ row: 0, col: 0, content: '1' }]);
		expect(lost.map(({ what }) => what)).toEqual(['inner borders', 'alignment constructor', 'vertical alignment toString']);
	});
});

/** The database takes it. */
function checkTab({ cells, properties }: ReadTab): void {
	for (const { row, col, content = '', style } of cells) {
		expect(row >= 0 && row < maxRows && col >= 0 && col < maxCols && !content.includes('\0') && [...content].length <= 32767).toBe(true);
		expect(JSON.stringify(style ?? null).length).toBeLessThan(4096);
	}
	for (const { row, toRow, col, toCol, key, value } of properties) {
		expect(row >= 0 && row <= toRow && toRow < maxRows && col >= 0 && col <= toCol && toCol < maxCols).toBe(true);
		const { rows = 0, cols = 0 } = value as { rows?: number; cols?: number };
		if (key === 'freeze') expect([rows, cols].every((count) => Number.isInteger(count) && count >= 0 && count <= 1000)).toBe(true);
		if (key === 'width' || key === 'height') expect((value as number) > 0 && (value as number) <= 10_000).toBe(true);
		if (key === 'hidden' || key === 'merge') expect(value).toBe(true);
	}
}

test('whatever is damaged is read, or refused', async () => {
	const below = randomOf(3);
	const sheet = `<sheetPr><tabColor theme="3" tint="-0.2"/></sheetPr><sheetViews><sheetView workbookViewId="0"><pane xSplit="1" ySplit="2" state="frozen"/></sheetView></sheetViews>
		<cols><col min="1" max="3" width="12.5" customWidth="1"/></cols><sheetData><row r="1" ht="20" customHeight="1"><c r="A1" s="1" t="s"><v>0</v></c>
		<c r="B1"><f t="shared" ref="B1:B2" si="0">SUM(A1:$A$9)&amp;"x"&amp;m+t[[#Headers],[a]:[b]]</f><v>1.5</v></c></row><row r="2"><c r="A2" t="b"><v>1</v></c><c r="B2"><f t="shared" si="0"/></c>
		<c r="C2" t="inlineStr"><is><r><rPr><b/></rPr><t>rich</t></r></is></c></row></sheetData><mergeCells><mergeCell ref="A3:B4"/></mergeCells>
		<conditionalFormatting sqref="A1:B2 C3"><cfRule type="cellIs" dxfId="0" priority="1"><formula>1</formula></cfRule></conditionalFormatting>
		<dataValidations count="1"><dataValidation type="list" sqref="A1"><formula1>"a,b"</formula1></dataValidation></dataValidations>
		<hyperlinks><hyperlink ref="C2" location="Tab!A1"/></hyperlinks><pageSetup orientation="landscape"/><extLst><ext><f>1</f><row/></ext></extLst>`;
	const book = '<definedNames><definedName name="n">Tab!$A$1</definedName><definedName name="m" localSheetId="0">SUM(t[a],n)*2</definedName></definedNames>';
	const parts = {
		...formats('yyyy-mm-dd'),
		'xl/sharedStrings.xml': `<sst ${main}><si><t xml:space="preserve"> a_x0041_</t></si></sst>`,
		'xl/tables/table1.xml': `<table ${main} id="1" displayName="t" ref="A1:B9" totalsRowCount="1"><autoFilter ref="A1:B8"><filterColumn colId="1"><filters><filter val="x"/></filters>
			</filterColumn></autoFilter><tableColumns count="2"><tableColumn id="1" name="a"/><tableColumn id="2" name="b" totalsRowFunction="sum"/></tableColumns></table>`,
	};
	const sheetRelations = relation('rId1', 'table', '../tables/table1.xml');
	const letters = '<>&"\'=/ x09A:!#$[]\u0001é';
	const damage = (text: string): string => {
		let damaged = text;
		for (let i = 1 + below(3); i > 0; i--) {
			const at = below(damaged.length);
			damaged = damaged.slice(0, at) + (below(3) ? letters[below(letters.length)] : '') + damaged.slice(at + below(3));
		}
		return damaged;
	};
	const rounds = Number(process.env['ROUNDS'] ?? 600);
	let refused = 0;
	for (let i = 0; i < rounds; i++) {
		const broken = Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, below(3) ? text : damage(text)]));
		const bytes = await workbook(below(4) ? damage(sheet) : sheet, { parts: broken, sheetRelations, book: below(3) ? book : damage(book) });
		// Of the archive, too.
		if (below(4) === 0) bytes[below(bytes.length)] = below(256);
		await read(bytes)
			.then(({ tabs }) => tabs.forEach(checkTab))
			.catch((error: unknown) => {
				if (!(error instanceof Refused)) throw error;
				refused++;
			});
	}
	expect(refused).toBeGreaterThan(rounds / 10);
	expect(refused).toBeLessThan(rounds * 0.98);
});

describe('what is only kept', () => {
	const range = { row: 0, col: 0, toRow: 2, toCol: 1 };
	const sheet = { row: 0, col: 0, toRow: maxRows - 1, toCol: maxCols - 1 };
	const kept: PropertyEdit[] = [
		{ ...range, toRow: 0, toCol: 0, key: 'xlsx.note', value: { text: 'a\n<b>', author: 'me & you' } },
		{ ...range, key: 'xlsx.validation', value: ['dataValidation', { type: 'list', prompt: 'two\nlines\tand more' }, ['formula1', {}, '"a,b"']] },
		{ ...range, key: 'xlsx.filter', value: ['autoFilter', {}, ['filterColumn', { colId: '0' }]] },
		{
			...range,
			key: 'xlsx.conditional',
			value: [['conditionalFormatting', {}, ['cfRule', { type: 'expression', priority: '1' }, ['formula', {}, 'A1<1'], ['dxf', {}, ['font', {}, ['b', {}]]]]]],
		},
		{ ...sheet, key: 'xlsx.page', value: [['pageSetup', { orientation: 'landscape' }]] },
		{ ...sheet, key: 'xlsx.names', value: [{ name: 'n', text: "'a/b'!$A$1", local: false, hidden: false }] },
	];
	const properties = async (given: PropertyEdit[]) => {
		const { tabs, lost } = await read(await written('a/b', [{ row: 0, col: 0, content: '1' }], [], given));
		expect(lost).toEqual([]);
		return tabs[0]!.properties.sort((a, b) => a.key.localeCompare(b.key));
	};

	test('is the same again; names of tabs are those of the workbook', async () => {
		const wanted = kept.map((property) =>
			property.key === 'xlsx.names' ? { ...property, value: [{ ...(property.value as object[])[0], text: "'a_b'!$A$1" }] } : property,
		);
		expect(await properties(kept)).toEqual(wanted.sort((a, b) => a.key.localeCompare(b.key)));
	});

	test('a rule that names a tab which is not in the workbook is left out, and the others name tabs as the workbook does', async () => {
		const of = (tab: string): PropertyEdit[] => [
			{ ...range, key: 'xlsx.validation', value: ['dataValidation', { type: 'list' }, ['formula1', {}, `'${tab}'!$A$1:$A$9`]] },
			{
				...range,
				toRow: 1,
				key: 'xlsx.conditional',
				value: [['conditionalFormatting', {}, ['cfRule', { type: 'expression', priority: '1' }, ['formula', {}, `'${tab}'!A1<1`]]]],
			},
		];
		expect(await properties(of('other'))).toEqual([]);
		expect(JSON.stringify(await properties(of('a/b')))).toBe(JSON.stringify(of('a_b').reverse()));
	});

	test('values that others have set, and are none of these, are left out', async () => {
		const deep = (depth: number): unknown => (depth === 0 ? 'x' : ['a', {}, deep(depth - 1)]);
		const values = [
			1,
			'x',
			{},
			[],
			[[]],
			[1],
			['script', {}],
			['dataValidation', { 'on"x': '1' }],
			['dataValidation', { a: 1 }],
			['cfRule', []],
			deep(60),
			[{ name: 1 }],
		];
		for (const value of values) for (const { key } of kept) expect(await properties([{ ...range, key, value }])).toEqual([]);
	});
});
