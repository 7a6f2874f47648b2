// workbooks.ts - workbooks that tests make of XML or of edits, and read.
import { ZipFile } from 'yazl';
import type { NotCarried } from '../../../../calc/books/read/refused';
import { WorkbookReader } from '../../../../calc/books/read/workbook';
import { Zip } from '../../../../calc/books/read/zip';
import { Cells } from '../../../../calc/books/write/cells';
import { WorkbookWriter } from '../../../../calc/books/write/workbook';
import { ByteWriter } from '../../src/v2/bytes';
import { writeEdits } from '../../src/v2/edits';
import { type CellEdit, type Edit, isProperty, isStructure, type PropertyEdit } from '../../src/v2/messages';
import { PropertySet } from '../../src/v2/properties';

export interface ReadTab {
	name: string;
	colour: string | null;
	hidden: boolean;
	cells: CellEdit[];
	properties: PropertyEdit[];
}

export async function read(bytes: Buffer): Promise<{ tabs: ReadTab[]; lost: NotCarried[]; kept: NotCarried[] }> {
	const tabs: ReadTab[] = [];
	const { lost, kept } = await WorkbookReader.read(bytes, {
		tab: async (name) => void tabs.push({ name, colour: null, hidden: false, cells: [], properties: [] }),
		edits: async (edits) => {
			for (const edit of edits)
				if (isProperty(edit)) tabs.at(-1)!.properties.push(edit);
				else if (!isStructure(edit)) tabs.at(-1)!.cells.push(edit);
		},
		endTab: async (colour, hidden) => void Object.assign(tabs.at(-1)!, { colour, hidden }),
		again: async () => {},
		file: async () => null,
	});
	return { tabs, lost, kept };
}

export async function zipped(parts: Record<string, string | Buffer>): Promise<Buffer> {
	const zip = new ZipFile();
	for (const [name, content] of Object.entries(parts)) zip.addBuffer(Buffer.from(content), name);
	zip.end();
	const chunks: Buffer[] = [];
	for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer);
	return Buffer.concat(chunks);
}

export const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"';
export const types = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
export const relation = (id: string, type: string, target: string, more = '') => `<Relationship Id="${id}" Type="${types}/${type}" Target="${target}"${more}/>`;
export const relations = (...list: string[]) =>
	`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${list.join('')}</Relationships>`;

/** A workbook of one tab with this XML in it. */
export const workbook = (
	sheet: string,
	{ book = '', parts = {}, sheetRelations = '' }: { book?: string; parts?: Record<string, string>; sheetRelations?: string } = {},
) =>
	zipped({
		'_rels/.rels': relations(relation('rId1', 'officeDocument', 'xl/workbook.xml')),
		'xl/workbook.xml': `<workbook ${main} xmlns:r="${types}">${book}<sheets><sheet name="Tab" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		'xl/_rels/workbook.xml.rels': relations(
			relation('rId1', 'worksheet', '/xl/worksheets/sheet1.xml'),
			relation('rId2', 'styles', 'styles.xml'),
			relation('rId3', 'sharedStrings', 'sharedStrings.xml'),
		),
		'xl/worksheets/sheet1.xml': `<worksheet ${main} xmlns:r="${types}">${sheet}</worksheet>`,
		...(sheetRelations && { 'xl/worksheets/_rels/sheet1.xml.rels': relations(sheetRelations) }),
		...parts,
	});

/** The text of a part. */
export async function partOf(bytes: Buffer, name: string): Promise<string> {
	const chunks: Buffer[] = [];
	for await (const chunk of (await Zip.open(bytes)).read(name)) chunks.push(chunk);
	return Buffer.concat(chunks).toString();
}

function batch(edits: Edit[]): Uint8Array {
	const to = new ByteWriter();
	for (const number of [1, 1, 0]) to.number(number);
	writeEdits(to, edits);
	return to.finish();
}

export interface MadeTab {
	name: string;
	edits: CellEdit[];
	values?: CellEdit[];
	properties?: PropertyEdit[];
	isComputed?: boolean;
}

export async function writtenBook(tabs: MadeTab[]): Promise<Buffer> {
	const writer = new WorkbookWriter(tabs.map(({ name }) => name));
	const chunks: Buffer[] = [];
	const output = (async () => {
		for await (const chunk of writer.output) chunks.push(chunk as Buffer);
	})();
	for (const { name, edits, values = [], properties = [], isComputed = true } of tabs) {
		const cells = new Cells(isComputed);
		cells.add(batch(edits));
		if (values.length > 0) cells.addValues(batch(values));
		const set = new PropertySet();
		properties.forEach((property) => set.put(property));
		await writer.addTab({ name, colour: '#112233', hidden: true, properties: set, cells });
	}
	await writer.end();
	await output;
	return Buffer.concat(chunks);
}

export const written = (name: string, edits: CellEdit[], values: CellEdit[] = [], properties: PropertyEdit[] = [], isComputed = true): Promise<Buffer> =>
	writtenBook([{ name, edits, values, properties, isComputed }]);
