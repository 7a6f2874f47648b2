// workbook.ts - reads a workbook (.xlsx): its tabs one after the other, each as edits of a new sheet (docs/design/workbooks.md).
import path from 'node:path';
import type { Edit } from '../../../gateway/web/src/v2/messages';
import { mostTabs, own } from '../formats';
import type { FileHead } from '../messages';
import type { StoredFile } from '../pictures';
import { Colours } from './colours';
import { Kept, type KeptName } from './kept';
import { type DefinedName, Names } from './names';
import { Pictures, type Room } from './pictures';
import { Losses, type NotCarried, Refused } from './refused';
import { type Links, TabReader } from './sheet';
import { Strings } from './strings';
import { Styles } from './styles';
import { readTable, type Table } from './tables';
import { type Attributes, bare, isTrue, readXml, unescapeText } from './xml';
import { Zip } from './zip';

/** Who takes what is read. The reader waits for the promises. */
export interface Taker {
	tab(name: string): Promise<void>;
	/** Of the tab that was named last. */
	edits(edits: Edit[]): Promise<void>;
	/** All of it is there. */
	endTab(colour: string | null, hidden: boolean): Promise<void>;
	/** What follows is of this tab, which has ended: its number from 0. */
	again(tab: number): Promise<void>;
	/** A file of the tab; null: the account has no room for it, and its bytes were not read. */
	file(head: FileHead, bytes: AsyncIterable<Uint8Array>): Promise<StoredFile | null>;
}

/** Of a sheet. */
const mostProperties = 10_000;
/** Of what is only kept. A sheet has at most 1 MB of keys and values. */
const mostPropertyBytes = 700_000;
const batchEdits = 10_000;
const batchCharacters = 1 << 20;
/** Of contents and styles: cells may share one. */
const mostCharacters = 512 << 20;

/** Of all tables. */
const mostTableColumns = 1_000_000;

/** Styles are shared by cells. */
const styleSizes = new WeakMap<object, number>();

function sizeOf(edit: Edit): number {
	const content = 'content' in edit ? (edit.content?.length ?? 0) : 0;
	const style = 'style' in edit ? edit.style : null;
	if (!style) return content;
	const size = styleSizes.get(style) ?? JSON.stringify(style).length;
	styleSizes.set(style, size);
	return content + size;
}

export interface Relation {
	/** The last word of its type: worksheet, hyperlink. */
	type: string;
	/** The part, or the address. */
	target: string;
	external: boolean;
}

interface Sheet {
	name: string;
	state: string;
	id: string;
}

/** A tab that is a sheet. */
interface TabPart {
	sheet: Sheet;
	/** Its place among all tabs. */
	at: number;
	part: string;
}

async function readRelations(zip: Zip, part: string): Promise<Map<string, Relation>> {
	const relations = new Map<string, Relation>();
	const directory = path.posix.dirname(part);
	const file = path.posix.join(directory, '_rels', `${path.posix.basename(part)}.rels`);
	if (!zip.has(file)) return relations;
	await readXml(zip, file, {
		open: (name, { Id: id, Type: type = '', Target: target = '', TargetMode: mode }) => {
			if (name !== 'Relationship' || id === undefined) return;
			const external = mode === 'External';
			const local = target.replaceAll('\\', '/');
			const resolved = external ? target : local.startsWith('/') ? local.slice(1) : path.posix.join(directory, local);
			relations.set(id, { type: type.slice(type.lastIndexOf('/') + 1), target: resolved, external });
		},
	});
	return relations;
}

const partOf = (relations: Map<string, Relation>, type: string): string | undefined =>
	[...relations.values()].find((one) => one.type === type && !one.external)?.target;

/** What parts that belong to a tab or to the workbook are to the user. */
const lostParts: Record<string, string> = {
	...{ pivotTable: 'pivot tables', slicer: 'slicers', timeline: 'timelines', externalLink: 'links to other workbooks', vbaProject: 'macros' },
	...{ threadedComment: 'conversations', connections: 'connections to data', queryTable: 'connections to data' },
};

export class WorkbookReader {
	private readonly losses = new Losses();
	private readonly colours = new Colours();
	private readonly styles = new Styles(this.colours);
	private readonly strings = new Strings();
	private readonly pictures: Pictures;
	private mac = false;
	private characters = 0;
	private sheets: Sheet[] = [];
	private readonly definedNames: DefinedName[] = [];
	private readonly tables: Table[] = [];

	private constructor(
		private readonly zip: Zip,
		private readonly part: string,
	) {
		this.pictures = new Pictures(zip, this.losses);
	}

	/** Reads the workbook; resolves to what was not taken over, and to what is only kept. Fails with a Refused. */
	static async read(bytes: Buffer, taker: Taker): Promise<{ lost: NotCarried[]; kept: NotCarried[] }> {
		const zip = await Zip.open(bytes);
		const part = partOf(await readRelations(zip, ''), 'officeDocument');
		if (part?.endsWith('.bin')) throw new Refused('workbook_unknown', 'the workbook has the format .xlsb: save it as .xlsx');
		if (!part || !zip.has(part)) throw new Refused('workbook_unknown', 'the file is no workbook (.xlsx): it is an archive of something else');
		const reader = new WorkbookReader(zip, part);
		await reader.readAll(taker);
		return { lost: reader.losses.list(), kept: reader.losses.kept };
	}

	private async readAll(taker: Taker): Promise<void> {
		const relations = await readRelations(this.zip, this.part);
		await this.readWorkbook();
		const theme = partOf(relations, 'theme');
		if (theme && this.zip.has(theme)) await this.colours.readTheme(this.zip, theme);
		const styles = partOf(relations, 'styles');
		if (styles && this.zip.has(styles)) await this.styles.read(this.zip, styles);
		const strings = partOf(relations, 'sharedStrings');
		if (strings && this.zip.has(strings)) await this.strings.read(this.zip, strings);
		if (!/^arial$/i.test(this.styles.fontName)) this.losses.add(null, `the font of cells without another one, ${this.styles.fontName}`);
		for (const { type } of relations.values()) this.losePart(null, type);
		await this.readSheets(relations, taker);
		await this.pictures.store(taker);
	}

	private losePart(tab: string | null, type: string): void {
		const what = own(lostParts, type);
		if (what !== undefined) this.losses.add(tab, what);
	}

	private async readWorkbook(): Promise<void> {
		let named: Attributes | undefined;
		let text = '';
		await readXml(this.zip, this.part, {
			open: (name, attributes) => {
				if (name === 'workbookPr') this.mac = isTrue(attributes['date1904']);
				if (name === 'sheet') {
					const { name: title = '', state = 'visible', id = '' } = bare(attributes);
					this.sheets.push({ name: title, state, id });
				}
				if (name === 'definedName') {
					named = attributes;
					text = '';
				}
				if (name === 'workbookProtection' && isTrue(attributes['lockStructure'])) this.losses.add(null, 'protection');
				return name === 'extLst' ? false : undefined;
			},
			text: (characters) => {
				if (named) text += characters;
			},
			close: (name) => {
				if (name === 'definedName' && named) this.definedName(named, text);
				named = undefined;
			},
		});
	}

	private definedName({ name = '', localSheetId, hidden }: Attributes, text: string): void {
		// Programs make it of the filter.
		if (/^_xlnm\._FilterDatabase$/i.test(name)) return;
		const at = localSheetId === undefined ? null : Number(localSheetId);
		this.definedNames.push({ at, name: { name, text, local: at !== null, hidden: isTrue(hidden) } });
	}

	private async readSheets(relations: Map<string, Relation>, taker: Taker): Promise<void> {
		const tabs: TabPart[] = [];
		for (const [at, sheet] of this.sheets.entries()) {
			const relation = relations.get(sheet.id);
			if (!relation) throw new Refused('workbook_broken', 'a tab has no part', { part: this.part, tab: sheet.name });
			if (relation.type === 'worksheet') tabs.push({ sheet, at, part: relation.target });
			else this.losses.add(sheet.name, relation.type === 'chartsheet' ? 'tabs that are charts' : 'tabs that are no sheets');
		}
		if (tabs.length === 0) throw new Refused('workbook_broken', 'the workbook has no tabs', { part: this.part });
		if (tabs.length > mostTabs) throw new Refused('workbook_limit', `a book has at most ${mostTabs} tabs, the workbook has ${tabs.length}`);
		await this.readTables(tabs);
		const isSheet = (at: number): boolean => tabs.some((tab) => tab.at === at);
		const tabNames = this.sheets.map(({ name }, at) => (isSheet(at) ? name : undefined));
		const names = new Names(tabNames, this.definedNames, this.tables);
		const first = tabs.findIndex(({ sheet }) => sheet.state === 'visible');
		for (const [i, tab] of tabs.entries()) {
			const { sheet, at } = tab;
			const hidden = sheet.state !== 'visible' && i !== Math.max(first, 0);
			if (sheet.state === 'veryHidden') this.losses.add(sheet.name, 'that only programs show the tab');
			await taker.tab(sheet.name);
			// Names of the whole workbook are with its first tab.
			const keptNames = this.definedNames.filter(({ at: of }) => (of === null ? i === 0 : of === at)).map(({ name }) => name);
			const colour = await this.readTab(tab, names, keptNames, taker);
			await taker.endTab(colour, hidden);
		}
	}

	/** Before all tabs: formulas of each may refer to them. */
	private async readTables(tabs: TabPart[]): Promise<void> {
		let columns = 0;
		for (const { sheet, at, part } of tabs) {
			const lose = (what: string): void => this.losses.add(sheet.name, what);
			for (const { type, target, external } of (await readRelations(this.zip, part)).values()) {
				if (type !== 'table' || external) continue;
				const table = await readTable(this.zip, target, at, lose);
				if (table && (columns += table.columns.size) <= mostTableColumns) this.tables.push(table);
				else lose('tables');
				for (const relation of (await readRelations(this.zip, target)).values()) this.losePart(sheet.name, relation.type);
			}
		}
	}

	private async readTab({ sheet: { name: tab }, at, part }: TabPart, names: Names, keptNames: KeptName[], taker: Taker): Promise<string | null> {
		const relations = await readRelations(this.zip, part);
		const links: Links = {
			some: await this.mentions(part, 'hyperlink'),
			targets: new Map([...relations].filter(([, { type }]) => type === 'hyperlink').map(([id, { target }]) => [id, target])),
		};
		// Full batches are sent when the reader pauses. Cells may share texts, so a small part can become many batches.
		const full: Edit[][] = [];
		let batch: Edit[] = [];
		let characters = 0;
		const put = (edit: Edit): void => {
			batch.push(edit);
			characters += sizeOf(edit);
			this.characters += sizeOf(edit);
			if (this.characters > mostCharacters) throw new Refused('workbook_limit', `the cells have more than ${mostCharacters >> 20} million characters`, { tab });
			if (batch.length < batchEdits && characters < batchCharacters) return;
			full.push(batch);
			batch = [];
			characters = 0;
		};
		const kept = new Kept(
			this.colours,
			(index) => this.styles.dxf(index),
			(what) => this.losses.add(tab, what),
		);
		const reader = new TabReader(tab, at, part, { strings: this.strings, styles: this.styles, losses: this.losses, names, mac: this.mac }, links, kept, put);
		await readXml(this.zip, part, {
			open: (name, attributes) => reader.open(name, attributes),
			text: (text) => reader.text(text),
			close: (name) => reader.close(name),
			pause: async () => {
				for (const edits of full.splice(0)) await taker.edits(edits);
			},
		});
		const { arrangement } = reader;
		await this.readNotes(relations, kept);
		for (const table of this.tables) if (table.at === at) kept.table(table.range, table.tree);
		const properties = arrangement.properties();
		for (const property of properties) put(property);
		let room = mostProperties - properties.length;
		let bytes = mostPropertyBytes;
		for (const { what, count, size, ...property } of kept.properties(keptNames)) {
			if (room-- > 0 && (bytes -= size) >= 0) {
				put(property);
				if (count > 0) this.losses.keep(tab, what, count);
			} else this.losses.add(tab, what, count);
		}
		full.push(batch);
		for (const edits of full) if (edits.length > 0) await taker.edits(edits);
		await this.readOthers(tab, relations, { properties: room, bytes });
		const { colourAttributes } = arrangement;
		return (colourAttributes && this.colours.read(colourAttributes)) ?? null;
	}

	private async readNotes(relations: Map<string, Relation>, kept: Kept): Promise<void> {
		const part = partOf(relations, 'comments');
		if (!part || !this.zip.has(part)) return;
		const authors: string[] = [];
		let note: Attributes = {};
		let text = '';
		let reads = false;
		await readXml(this.zip, part, {
			open: (name, attributes) => {
				if (name === 'comment') note = attributes;
				if (name === 'comment' || name === 'author') text = '';
				if (name === 't' || name === 'author') reads = true;
				return name === 'rPh' ? false : undefined;
			},
			text: (characters) => {
				if (reads) text += characters;
			},
			close: (name) => {
				if (name === 'author') authors.push(text);
				if (name === 't' || name === 'author') reads = false;
				if (name === 'comment') kept.note(note['ref'], unescapeText(text), authors[Number(note['authorId'])] ?? '');
			},
		});
	}

	private async mentions(part: string, word: string): Promise<boolean> {
		let end = '';
		for await (const chunk of this.zip.read(part)) {
			if (chunk.includes(word) || (end + chunk.toString('latin1', 0, word.length)).includes(word)) return true;
			end = chunk.toString('latin1', Math.max(0, chunk.length - word.length));
		}
		return false;
	}

	/** What the tab refers to, and was not read: pictures are kept. */
	private async readOthers(tab: string, relations: Map<string, Relation>, room: Room): Promise<void> {
		const pictures = this.pictures.tab(tab, room);
		for (const { type, target, external } of relations.values()) {
			this.losePart(tab, type);
			if (type !== 'drawing' || external) continue;
			if (this.zip.has(target)) await pictures.read(target, await readRelations(this.zip, target));
			else pictures.lose('drawings that are missing');
		}
	}
}
