// pictures.test.ts - pictures of workbooks as files and properties of sheets, and back (calc/books), without a database.
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { Conversion } from '../../../../calc/books/conversion';
import type { FromChild } from '../../../../calc/books/messages';
import { type Picture, picturesOf } from '../../../../calc/books/pictures';
import { type NotCarried, Refused } from '../../../../calc/books/read/refused';
import { WorkbookReader } from '../../../../calc/books/read/workbook';
import { Cells } from '../../../../calc/books/write/cells';
import { type Tree } from '../../../../calc/books/trees';
import { WorkbookWriter } from '../../../../calc/books/write/workbook';
import { maxCols, maxRows } from '../../src/v2/lines';
import { isProperty, type PropertyEdit } from '../../src/v2/messages';
import { PropertySet } from '../../src/v2/properties';
import { randomOf } from '../person';
import { main, partOf, relation, relations, types, zipped } from './workbooks';

interface File {
	tab: number;
	name: string;
	type: string;
	bytes: Buffer;
}

interface Read {
	/** Those of pictures, by tabs. */
	tabs: PropertyEdit[][];
	files: File[];
	lost: NotCarried[];
	kept: NotCarried[];
}

const keyOf = ({ tab, name, bytes }: File): string => createHash('sha256').update(`${tab} ${name} `).update(bytes).digest('hex').slice(0, 32);

/** room: bytes that the account may still store. */
async function read(bytes: Buffer, room = Infinity): Promise<Read> {
	const tabs: PropertyEdit[][] = [];
	const files: File[] = [];
	let tab = -1;
	let left = room;
	const { lost, kept } = await WorkbookReader.read(bytes, {
		tab: async () => void (tab = tabs.push([]) - 1),
		edits: async (edits) => void tabs[tab]!.push(...edits.filter(isProperty).filter(({ key }) => key === 'xlsx.picture')),
		endTab: async () => {},
		again: async (number) => void (tab = number),
		file: async ({ name, type, size }, chunks) => {
			if (size > left) return null;
			left -= size;
			const all: Uint8Array[] = [];
			for await (const chunk of chunks) all.push(chunk);
			const file = { tab, name, type, bytes: Buffer.concat(all) };
			expect(file.bytes.length).toBe(size);
			files.push(file);
			return { file: name, key: keyOf(file) };
		},
	});
	return { tabs, files, lost, kept };
}

/** The workbook that has these properties and files. */
async function written({ tabs, files }: Pick<Read, 'tabs' | 'files'>): Promise<Buffer> {
	const names = tabs.map((_, i) => `Tab${i + 1}`);
	const writer = new WorkbookWriter(names);
	const chunks: Buffer[] = [];
	const output = (async () => {
		for await (const chunk of writer.output) chunks.push(chunk as Buffer);
	})();
	for (const file of files) {
		writer.pictures.begin(keyOf(file), file.type);
		for (let at = 0; at < file.bytes.length; at += 100_000) await writer.pictures.add(file.bytes.subarray(at, at + 100_000));
		await writer.pictures.add(Buffer.alloc(0));
	}
	for (const [i, list] of tabs.entries()) {
		const properties = new PropertySet();
		for (const property of list) properties.put(property);
		await writer.addTab({ name: names[i]!, colour: null, hidden: false, properties, cells: new Cells() });
	}
	await writer.end();
	await output;
	return Buffer.concat(chunks);
}

const namespaces = `xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="${types}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"`;

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * i) & 255))]);

/** A workbook whose tabs have these drawings. images: targets of rId1, rId2... */
function workbook(
	drawings: string | string[],
	{ images = ['../media/image1.png'], parts = {}, more = '' }: { images?: string[]; parts?: Record<string, string | Buffer>; more?: string } = {},
): Promise<Buffer> {
	const list = [drawings].flat();
	const numbers = list.map((_, i) => i + 1);
	const perTab = list.flatMap((drawing, i): [string, string][] => [
		[`xl/worksheets/sheet${i + 1}.xml`, `<worksheet ${main} xmlns:r="${types}"><sheetData/><drawing r:id="rId1"/></worksheet>`],
		[`xl/worksheets/_rels/sheet${i + 1}.xml.rels`, relations(relation('rId1', 'drawing', `../drawings/drawing${i + 1}.xml`))],
		[`xl/drawings/drawing${i + 1}.xml`, `<xdr:wsDr ${namespaces}>${drawing}</xdr:wsDr>`],
		[`xl/drawings/_rels/drawing${i + 1}.xml.rels`, relations(...images.map((target, n) => relation(`rId${n + 1}`, 'image', target)), more)],
	]);
	return zipped({
		'_rels/.rels': relations(relation('rId1', 'officeDocument', 'xl/workbook.xml')),
		'xl/workbook.xml': `<workbook ${main} xmlns:r="${types}"><sheets>${numbers.map((n) => `<sheet name="Tab${n}" sheetId="${n}" r:id="rId${n}"/>`).join('')}</sheets></workbook>`,
		'xl/_rels/workbook.xml.rels': relations(
			...numbers.map((n) => relation(`rId${n}`, 'worksheet', `/xl/worksheets/sheet${n}.xml`)),
			relation('rId900', 'styles', 'styles.xml'),
		),
		'xl/styles.xml': `<styleSheet ${main}><fonts><font><sz val="11"/><name val="Arial"/></font></fonts></styleSheet>`,
		'xl/media/image1.png': png,
		...Object.fromEntries(perTab),
		...parts,
	});
}

const pic = ({ embed = 'r:embed="rId1"', name = 'Picture 1', inside = '', blip = '' } = {}) =>
	`<xdr:pic><xdr:nvPicPr><xdr:cNvPr id="7" name="${name}" descr="a &lt;cat&gt;">${inside}</xdr:cNvPr><xdr:cNvPicPr><a:picLocks noChangeAspect="1"/></xdr:cNvPicPr></xdr:nvPicPr>
	<xdr:blipFill><a:blip ${embed} cstate="print">${blip}</a:blip><a:srcRect l="1000"/><a:stretch><a:fillRect/></a:stretch></xdr:blipFill>
	<xdr:spPr><a:xfrm rot="5400000"><a:off x="1" y="2"/><a:ext cx="3" cy="4"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></xdr:spPr></xdr:pic>`;
const marker = (name: string, col: number, colOff: number, row: number, rowOff: number) =>
	`<xdr:${name}><xdr:col>${col}</xdr:col><xdr:colOff>${colOff}</xdr:colOff><xdr:row>${row}</xdr:row><xdr:rowOff>${rowOff}</xdr:rowOff></xdr:${name}>`;
const two = (object: string, more = '') =>
	`<xdr:twoCellAnchor${more}>${marker('from', 1, 10, 2, 20)}${marker('to', 3, 30, 5, 40)}${object}<xdr:clientData fPrintsWithSheet="0"/></xdr:twoCellAnchor>`;
const one = (object: string, row = 2) =>
	`<xdr:oneCellAnchor>${marker('from', 1, 10, row, 20)}<xdr:ext cx="9525" cy="19050"/>${object}<xdr:clientData/></xdr:oneCellAnchor>`;
const absolute = (object: string) => `<xdr:absoluteAnchor><xdr:pos x="5" y="6"/><xdr:ext cx="7" cy="8"/>${object}<xdr:clientData/></xdr:absoluteAnchor>`;

const losses = ({ lost }: Read) => Object.fromEntries(lost.map(({ what, count }) => [what, count]));
const placesOf = ({ tabs }: Read) =>
	tabs.map((list) =>
		list.map(({ row, col, toRow, toCol, value }) => [
			[row, col, toRow, toCol],
			...(value as Picture[]).map(({ anchor, from, to, span, size, edit }) => ({ anchor, from, to, span, size, edit })),
		]),
	);

const isEqual = async (first: Read): Promise<Buffer> => {
	const bytes = await written(first);
	const again = await read(bytes);
	expect(again.lost).toEqual([]);
	expect(placesOf(again)).toEqual(placesOf(first));
	const pictures = ({ tabs, files }: Read) =>
		tabs.map((list) =>
			list.map(({ value }) =>
				(value as Picture[]).map(({ key, data, picture }) => [files.find((file) => keyOf(file) === key)!.bytes, data, withoutIds(picture)]),
			),
		);
	expect(pictures(again)).toEqual(pictures(first));
	return bytes;
};
/** Pictures have other numbers in the drawing that is made. */
const withoutIds = (tree: unknown): unknown => JSON.parse(JSON.stringify(tree).replaceAll(/"id":"[0-9]+"/g, '"id":""'));

describe('a picture', () => {
	test('has its place, whatever its anchor is, and is the same again', async () => {
		const first = await read(await workbook(two(pic()) + two(pic({ name: 'Picture 2' }), ' editAs="oneCell"') + one(pic()) + absolute(pic())));
		const corner = [2, 1, 2, 1];
		const [from, to, size] = [
			[10, 20],
			[30, 40],
			[9525, 19050],
		];
		expect(placesOf(first)).toEqual([
			[
				[[2, 1, 5, 3], { anchor: 'twoCell', from, to }],
				[corner, { anchor: 'twoCell', from, to, span: [2, 3], edit: 'oneCell' }, { anchor: 'oneCell', from, size }],
				[[0, 0, maxRows - 1, maxCols - 1], { anchor: 'absolute', from: [5, 6], size: [7, 8] }],
			],
		]);
		expect([first.lost, first.kept]).toEqual([[], [{ tab: 'Tab1', what: 'pictures', count: 4 }]]);
		expect(first.files.map(({ tab, name, type, bytes }) => [tab, name, type, bytes.equals(png)])).toEqual([[0, 'picture 1.png', 'image/png', true]]);
		const bytes = await isEqual(first);
		const drawing = await partOf(bytes, 'xl/drawings/drawing1.xml');
		expect(drawing).toContain('<xdr:cNvPr id="2" name="Picture 1" descr="a &lt;cat&gt;"></xdr:cNvPr>');
		expect(drawing).toContain('<a:blip cstate="print" r:embed="rId1"></a:blip><a:srcRect l="1000"></a:srcRect>');
		expect(await partOf(bytes, 'xl/worksheets/sheet1.xml')).toMatch(/<drawing r:id="rIdDrawing"\/><\/worksheet>$/);
		const contentTypes = await partOf(bytes, '[Content_Types].xml');
		expect(contentTypes).toContain('<Default Extension="png" ContentType="image/png"/>');
		expect(contentTypes).toContain('PartName="/xl/drawings/drawing1.xml"');
	});

	test('moves with rows and columns; one that does not grow has its size', async () => {
		const first = await read(await workbook(two(pic()) + two(pic(), ' editAs="oneCell"')));
		const set = new PropertySet();
		for (const property of first.tabs[0]!) set.put(property);
		for (const at of [0, 5]) set.move({ kind: 'insertRows', at, n: 2 });
		const moved = await read(await written({ tabs: [set.list()], files: first.files }));
		expect(placesOf(moved)).toEqual([
			[
				[[4, 1, 9, 3], { anchor: 'twoCell', from: [10, 20], to: [30, 40] }],
				[[4, 1, 4, 1], { anchor: 'twoCell', from: [10, 20], to: [30, 40], span: [2, 3], edit: 'oneCell' }],
			],
		]);
	});

	test('of one part that many name, is one file of each tab', async () => {
		const drawing = one(pic(), 1) + one(pic({ embed: 'r:embed="rId2"' }), 2);
		const first = await read(
			await workbook([drawing, drawing], { images: ['/xl/media/image1.png', '../media/IMAGE2.JPG'], parts: { 'xl/media/image2.jpg': Buffer.from('second') } }),
		);
		expect(first.files.map(({ tab, name, type }) => [tab, name, type])).toEqual([
			[0, 'picture 1.png', 'image/png'],
			[0, 'picture 2.jpg', 'image/jpeg'],
			[1, 'picture 1.png', 'image/png'],
			[1, 'picture 2.jpg', 'image/jpeg'],
		]);
		await isEqual(first);
	});

	test('of a second drawing of the tab is kept, too', async () => {
		const first = relation('rId1', 'drawing', '../drawings/drawing1.xml') + relation('rId2', 'drawing', '../drawings/drawing1.xml');
		const both = await read(await workbook(one(pic()), { parts: { 'xl/worksheets/_rels/sheet1.xml.rels': relations(first) } }));
		expect([both.files.length, both.kept, placesOf(both)[0]![0]!.length]).toEqual([1, [{ tab: 'Tab1', what: 'pictures', count: 2 }], 3]);
	});

	test('of two forms, the first one that is known counts', async () => {
		const either = (choice: string, fallback: string) =>
			`<mc:AlternateContent><mc:Choice Requires="a14">${choice}</mc:Choice><mc:Fallback>${fallback}</mc:Fallback></mc:AlternateContent>`;
		const chart = '<xdr:graphicFrame><a:graphic/></xdr:graphicFrame>';
		const ink = '<xdr:contentPart r:id="rId9"/>';
		const first = await read(
			await workbook(
				[two(either(pic(), pic())), two(either(chart, pic())), two(either(ink, pic())), either(one(pic()), two(chart)), either(two(chart), two(pic()))].join(
					'',
				),
			),
		);
		expect([losses(first), placesOf(first)[0]!.map(([range, ...list]) => [range, list.length])]).toEqual([
			{ charts: 2 },
			[
				[[2, 1, 5, 3], 2],
				[[2, 1, 2, 1], 1],
			],
		]);
	});
});

test('what is no picture with bytes is listed, each kind by its name', async () => {
	const external = relation('rId90', 'image', 'https://example.com/a.png', ' TargetMode="External"');
	const drawing = [
		one(pic({ embed: 'r:embed="rId2"' })),
		one(pic({ embed: 'r:embed="rId3"' })),
		one(pic({ embed: 'r:embed="rId4"' })),
		one(pic({ embed: 'r:embed="rId99"' })),
		one(pic({ embed: 'r:embed="rId90"' })),
		one(pic({ embed: 'r:link="rId90"' })),
		one(pic({ embed: '' })),
		one(pic(), -1),
		one(pic(), maxRows),
		one(`<xdr:grpSp><xdr:grpSpPr><a:xfrm><a:ext cx="1" cy="1"/></a:xfrm></xdr:grpSpPr>${pic()}<xdr:sp/></xdr:grpSp>`),
		two('<xdr:sp><xdr:spPr><a:ext cx="1" cy="1"/></xdr:spPr></xdr:sp>'),
		two('<xdr:cxnSp/>'),
		one(pic({ embed: 'r:embed="rId1" r:link="rId90"', inside: '<a:hlinkClick r:id="rId90"/>' })),
		one(one('')),
		one('<xdr:pic macro="run"><xdr:spPr/></xdr:pic>'),
		pic(),
	].join('');
	const images = ['../media/image1.png', '../media/none.png', '../../../etc/passwd', '../media/image1.svg', '../media/image2.svg'];
	const all = await read(await workbook(drawing, { images, more: external, parts: { 'xl/media/image1.svg': '<svg/>' } }));
	expect(losses(all)).toEqual({
		'pictures that are missing': 4,
		'pictures of other formats': 1,
		'vector forms of pictures': 1,
		'pictures that are links': 2,
		'pictures without a place': 3,
		'pictures in groups': 1,
		shapes: 3,
		'links of pictures': 2,
		macros: 1,
		pictures: 1,
	});
	expect(placesOf(all)[0]!.length).toBe(1);
});

describe('bounds', () => {
	test('10,000 pictures of one part are one file, and as many properties as a sheet has room for', async () => {
		const drawing = Array.from({ length: 10_001 }, (_, i) => one(pic(), i)).join('');
		const all = await read(await workbook(drawing));
		const [kept] = all.kept;
		expect([all.files.length, kept!.count, all.tabs[0]!.length + losses(all)['pictures']!]).toEqual([1, all.tabs[0]!.length, 10_001]);
		expect(Buffer.byteLength(JSON.stringify(all.tabs[0]!.map(({ value }) => value)))).toBeLessThan(700_000);
	});

	test('those that begin in one cell, and what one says of itself', async () => {
		const all = await read(await workbook(Array.from({ length: 200 }, () => one(pic())).join('') + one(pic({ name: 'x'.repeat(9000) }), 9)));
		const [{ value }] = all.tabs[0]! as [PropertyEdit];
		expect([all.tabs[0]!.length, (value as Picture[]).length + losses(all)['pictures']!]).toEqual([1, 201]);
		expect(Buffer.byteLength(JSON.stringify(value))).toBeLessThan(32_768);
	});

	test('a part that is too large, parts that together are, and an account without room', async () => {
		const large = await read(await workbook(one(pic()), { parts: { 'xl/media/image1.png': randomBytes((32 << 20) + 1) } }));
		expect([large.files, losses(large)]).toEqual([[], { 'pictures of more than 32 MB': 1 }]);
		const full = await read(
			await workbook([one(pic()), one(pic()) + one(pic({ embed: 'r:embed="rId2"' }), 5)], {
				images: ['../media/image1.png', '../media/small.png'],
				parts: { 'xl/media/small.png': 'x' },
			}),
			png.length + 5,
		);
		expect(full.lost).toEqual([{ tab: 'Tab2', what: 'pictures for which the account has no room', count: 1 }]);
		expect(full.kept).toEqual([
			{ tab: 'Tab1', what: 'pictures', count: 1 },
			{ tab: 'Tab2', what: 'pictures', count: 1 },
		]);
		const tabs = await read(
			await workbook(
				Array.from({ length: 9 }, () => one(pic())),
				{ parts: { 'xl/media/image1.png': randomBytes(32 << 20) } },
			),
		);
		expect([tabs.files.length, tabs.lost]).toEqual([8, [{ tab: 'Tab9', what: 'pictures beyond 256 MB of a workbook', count: 1 }]]);
	});

	test('a drawing that is not there is listed', async () => {
		const { tabs, lost } = await read(
			await workbook(one(pic()), { parts: { 'xl/worksheets/_rels/sheet1.xml.rels': relations(relation('rId1', 'drawing', '../drawings/none.xml')) } }),
		);
		expect([tabs, lost]).toEqual([[[]], [{ tab: 'Tab1', what: 'drawings that are missing', count: 1 }]]);
	});

	test('an empty part is missing', async () => {
		const empty = await read(await workbook(one(pic()), { parts: { 'xl/media/image1.png': '' } }));
		expect([empty.files, empty.tabs, losses(empty)]).toEqual([[], [[]], { 'pictures that are missing': 1 }]);
	});
});

describe('values of properties that others have set', () => {
	const cell = { row: 0, col: 0, toRow: 0, toCol: 0, key: 'xlsx.picture' };
	const picture = async () => (await read(await workbook(one(pic())))).tabs[0]![0]!.value as Picture[];
	const found = (value: unknown) => {
		const set = new PropertySet();
		set.put({ ...cell, value });
		return picturesOf(set).length;
	};

	test('are left out if they are no pictures', async () => {
		const [good] = await picture();
		expect(found([good, good])).toBe(2);
		for (const value of [1, 'x', {}, good, [[]], [null], [1], ['x']]) expect(found(value)).toBe(0);
		for (const change of [
			...[
				{ file: 1 },
				{ key: null },
				{ type: 'text/html' },
				{ order: 'x' },
				{ anchor: 'none' },
				{ from: [1] },
				{ from: [1, 'x'] },
				{ size: undefined },
				{ size: [1, 1e300] },
			],
			...[
				{ anchor: 'twoCell' },
				{ span: [0.5, 1] },
				{ edit: 'x"' },
				{ data: null },
				{ data: { a: 1 } },
				{ data: { fPrintsWithSheet: 'x' } },
				{ picture: ['sp', {}] },
				{ picture: ['pic', {}] },
			],
		])
			expect(found([{ ...good, ...change }])).toBe(0);
	});

	test('have no links, for which a workbook would need relations', async () => {
		const first = await read(await workbook(one(pic())));
		const link: Tree = ['hlinkClick', { id: 'rId9' }];
		for (const { value } of first.tabs.flat()) for (const { picture: tree } of value as Picture[]) ((tree as Tree)[2] as Tree).push(link);
		expect(await partOf(await written(first), 'xl/drawings/drawing1.xml')).not.toContain('hlinkClick');
	});

	test('and so are those whose file is gone, and those below the last row of workbooks', async () => {
		const first = await read(await workbook(one(pic())));
		const gone = await read(await written({ tabs: first.tabs, files: [] }));
		const below = first.tabs.map((list) => list.map((property) => ({ ...property, row: 1_048_576, toRow: 1_048_576 })));
		expect([gone.tabs, gone.lost]).toEqual([[[]], []]);
		expect((await read(await written({ tabs: below, files: first.files }))).tabs).toEqual([[]]);
	});
});

test('pictures in headers are listed', async () => {
	const sheet = `<worksheet ${main} xmlns:r="${types}"><sheetData/><legacyDrawingHF r:id="rId9"/></worksheet>`;
	expect(losses(await read(await workbook('', { parts: { 'xl/worksheets/sheet1.xml': sheet } })))).toEqual({ 'pictures in headers': 1 });
});

test('a process stores a picture in parts, and takes it in parts', async () => {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pictures-'));
	try {
		const script = path.join(directory, 'child.mjs');
		const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
		const [entry, modules] = ['../../../../calc/books/child.ts', '../../node_modules'].map((name) => fileURLToPath(new URL(name, import.meta.url)));
		buildSync({ entryPoints: [entry!], nodePaths: [modules!], bundle: true, platform: 'node', format: 'esm', outfile: script, banner });
		const large = randomBytes(600_000);
		const bytes = await workbook(one(pic()) + one(pic({ embed: 'r:embed="rId2"' }), 9), {
			images: ['../media/image1.png', '../media/none.gif'],
			parts: { 'xl/media/image1.png': large, 'xl/media/none.gif': 'x' },
		});
		const told: FromChild[] = [];
		const reading = new Conversion(pathToFileURL(script), 256, async (message) => {
			told.push(message);
			if (message.t === 'beginFile') await reading.post({ t: 'answer', answer: message.type === 'image/gif' ? null : message.name });
			if (message.t === 'endFile') await reading.post({ t: 'answer', answer: 'key' });
		});
		for (let at = 0; at < bytes.length; at += 100_000) await reading.post({ t: 'bytes', bytes: bytes.subarray(at, at + 100_000) });
		await reading.post({ t: 'read', uid: 1 });
		expect(await reading.done).toMatchObject({ lost: [{ what: 'pictures for which the account has no room' }], kept: [{ what: 'pictures', count: 1 }] });
		const kinds = told.map(({ t }) => t);
		expect(kinds).toEqual(['tab', 'endTab', 'again', 'beginFile', 'fileBytes', 'fileBytes', 'fileBytes', 'endFile', 'beginFile', 'edits', 'read']);
		const parts = told.flatMap((message) => (message.t === 'fileBytes' ? [message.bytes] : []));
		expect([parts.map(({ length }) => length), Buffer.concat(parts).equals(large)]).toEqual([[262_144, 262_144, 75_712], true]);

		const chunks: Uint8Array[] = [];
		const writing = new Conversion(pathToFileURL(script), 256, async (message) => void (message.t === 'file' && chunks.push(message.bytes)));
		await writing.post({ t: 'write', names: ['Tab'] });
		// A stored property has a seq before it, where a batch of one edit has a head.
		const [batch] = told.flatMap((message) => (message.t === 'edits' ? [message.bytes] : []));
		const properties = Buffer.concat([Buffer.of(0), batch!.subarray(4)]);
		await writing.post({ t: 'tab', name: 'Tab', colour: null, hidden: false, properties, isComputed: true });
		await writing.post({ t: 'picture', key: 'key', type: 'image/png' });
		for (const part of [...parts, new Uint8Array()]) await writing.post({ t: 'pictureBytes', bytes: part });
		await writing.post({ t: 'end' });
		await writing.done;
		const again = await read(Buffer.concat(chunks));
		expect([again.lost, again.files.map((file) => file.bytes.equals(large))]).toEqual([[], [true]]);
	} finally {
		fs.rmSync(directory, { recursive: true });
	}
});

test('a damaged drawing is read, or refused', async () => {
	const below = randomOf(5);
	const drawing = two(pic()) + one(pic({ inside: '<a:extLst><a:ext/></a:extLst>' })) + absolute(pic()) + two('<xdr:grpSp><xdr:sp/></xdr:grpSp>');
	const letters = '<>&"\'=/ x09A:';
	let refused = 0;
	const rounds = Number(process.env['ROUNDS'] ?? 300);
	for (let i = 0; i < rounds; i++) {
		let damaged = drawing;
		for (let n = 1 + below(3); n > 0; n--) {
			const at = below(damaged.length);
			damaged = damaged.slice(0, at) + (below(3) ? letters[below(letters.length)] : '') + damaged.slice(at + below(3));
		}
		await workbook(damaged)
			.then(read)
			.then(async (all) => {
				expect(
					all.tabs[0]!.every(({ row, toRow, col, toCol }) => row >= 0 && row <= toRow && toRow < maxRows && col >= 0 && col <= toCol && toCol < maxCols),
				).toBe(true);
				await read(await written(all));
			})
			.catch((error: unknown) => {
				if (!(error instanceof Refused)) throw error;
				refused++;
			});
	}
	expect(refused).toBeGreaterThan(rounds / 10);
	expect(refused).toBeLessThan(rounds * 0.98);
});
