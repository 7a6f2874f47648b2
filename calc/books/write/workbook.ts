// workbook.ts - writes a workbook (.xlsx), tab by tab, as a stream of bytes (docs/design/workbooks.md).
import { Readable } from 'node:stream';
import { ZipFile } from 'yazl';
import { outsideOf, renameTabs, workbookRows } from '../formulas';
import { Names } from '../read/names';
import { Refused } from '../read/refused';
import { placesOf } from '../structured';
import { boxesXml, filterRange, namesOf, notesOf, notesXml } from './kept';
import { WorkbookPictures } from './pictures';
import { StyleTables } from './styles';
import { relationsXml, type Tab, tabXml } from './tab';
import { tableName, tablesOf, tableXml, type WrittenTable } from './tables';
import { attributes, escapeText, escapeXml, head, namespaces } from './xml';

const mostNameCharacters = 31;

/** Names as workbooks have them: short, without some characters, and different in more than case. */
export function tabNames(names: string[]): string[] {
	const taken = new Set<string>();
	return names.map((name) => {
		const plain = name.replace(/[[\]:*?/\\]/g, '_').replace(/^'|'$/g, '_') || '_';
		for (let i = 1; ; i++) {
			const end = i === 1 ? '' : ` (${i})`;
			const own =
				plain
					.slice(0, mostNameCharacters - end.length)
					.replace(/[\ud800-\udbff]$/, '')
					.replace(/'$/, '_') + end;
			if (taken.has(own.toLowerCase()) || own.toLowerCase() === 'history') continue;
			taken.add(own.toLowerCase());
			return own;
		}
	});
}

/** Cells with cm="1" have formulas that fill as many cells as they give values. */
const arraysXml = `${head}<metadata xmlns="${namespaces.main}" xmlns:xda="http://schemas.microsoft.com/office/spreadsheetml/2017/dynamicarray"><metadataTypes count="1"><metadataType name="XLDAPR" minSupportedVersion="120000" copy="1" pasteAll="1" pasteValues="1" merge="1" splitFirst="1" rowColShift="1" clearFormats="1" clearComments="1" assign="1" coerce="1" cellMeta="1"/></metadataTypes><futureMetadata name="XLDAPR" count="1"><bk><extLst><ext uri="{bdbb8cdc-fa1e-496e-a857-3c3f30c029c3}"><xda:dynamicArrayProperties fDynamic="1" fCollapsed="0"/></ext></extLst></bk></futureMetadata><cellMetadata count="1"><bk><rc t="1" v="0"/></bk></cellMetadata></metadata>`;

interface DefinedName {
	name: string;
	text: string;
	/** The number of the tab whose formulas know it; undefined: those of all. */
	tab: number | undefined;
	hidden: boolean;
}

export class WorkbookWriter {
	private readonly zip = new ZipFile();
	private readonly styles = new StyleTables();
	private readonly texts = new Map<string, number>();
	private readonly tabs: { name: string; hidden: boolean }[] = [];
	private readonly names: string[];
	/** By the names in the book, in small letters. */
	private readonly renamed: ReadonlyMap<string, string>;
	/** By their tab and name in small letters: a copy of a tab has names, too. */
	private readonly definedNames = new Map<string, DefinedName>();
	private readonly tables: WrittenTable[] = [];
	/** Numbers of tabs that have notes. */
	private readonly noted: number[] = [];
	/** What is given to it before a tab is added may be in the tab. */
	readonly pictures = new WorkbookPictures(this.zip);
	/** Numbers of tabs that have pictures. */
	private readonly drawn: number[] = [];
	private uses = 0;
	private hasArrays = false;

	/** names: of all tabs. */
	constructor(names: string[]) {
		this.names = tabNames(names);
		this.renamed = new Map(names.map((name, i) => [name.toLowerCase(), this.names[i]!]));
	}

	/** The bytes of the file. They come while tabs are added. */
	get output(): Readable {
		return this.zip.outputStream as Readable;
	}

	private async add(name: string, pieces: Iterable<string>): Promise<void> {
		function* bytes() {
			for (const piece of pieces) if (piece !== '') yield Buffer.from(piece);
		}
		const stream = Readable.from(bytes());
		const ended = new Promise<void>((resolve, reject) => {
			stream.once('end', resolve);
			stream.once('error', reject);
		});
		this.zip.addReadStream(stream, name);
		await ended;
	}

	private readonly text = (text: string): number => {
		const number = this.texts.get(text) ?? this.texts.size;
		this.texts.set(text, number);
		this.uses++;
		return number;
	};

	private readonly rename = (formula: string): string | null => (formula.includes('!') ? renameTabs(formula, this.renamed) : formula);

	async addTab(tab: Tab): Promise<void> {
		if (tab.cells.lastRow >= workbookRows)
			throw new Refused('workbook_limit', `a workbook has at most ${workbookRows} rows`, { tab: tab.name, row: tab.cells.lastRow + 1 });
		const n = this.tabs.push({ name: this.names[this.tabs.length]!, hidden: tab.hidden });
		const drawing = this.pictures.drawing(tab.properties);
		const tables = tablesOf(tab.properties, tab.cells);
		const ids = tables.map((table) => this.tables.push(table));
		const { styles, text, rename } = this;
		await this.add(`xl/worksheets/sheet${n}.xml`, tabXml(tab, { styles, text, rename, tables: tables.length, hasDrawing: drawing !== undefined }));
		this.hasArrays ||= tab.cells.hasArrays;
		for (const { name, text, local, hidden } of namesOf(tab.properties)) {
			const renamed = this.rename(text);
			if (renamed !== null) this.define({ name, text: renamed, tab: local ? n - 1 : undefined, hidden });
		}
		// Some programs know a filter by this name alone.
		const filter = filterRange(tab.properties);
		if (filter) {
			const text = `'${this.names[n - 1]!.replaceAll("'", "''")}'!${filter}`;
			this.define({ name: '_xlnm._FilterDatabase', text, tab: n - 1, hidden: true });
		}
		const notes = notesOf(tab.properties);
		if (notes.length > 0) {
			this.noted.push(n);
			await this.add(`xl/comments${n}.xml`, [notesXml(notes)]);
			await this.add(`xl/drawings/vmlDrawing${n}.vml`, [boxesXml(notes)]);
		}
		if (drawing) {
			this.drawn.push(n);
			await this.add(`xl/drawings/drawing${n}.xml`, [drawing.xml]);
			await this.add(`xl/drawings/_rels/drawing${n}.xml.rels`, [drawing.relations]);
		}
		const relations = relationsXml(tab, n, ids, drawing !== undefined);
		if (relations) await this.add(`xl/worksheets/_rels/sheet${n}.xml.rels`, [relations]);
	}

	private define(name: DefinedName): void {
		const key = `${name.tab ?? ''}!${name.name.toLowerCase()}`;
		if (!this.definedNames.has(key)) this.definedNames.set(key, name);
	}

	/** Writes the tables, and gives the names, without those of tables, columns and workbooks that are not there. */
	private async addTables(): Promise<string> {
		const all = [...this.definedNames.values()];
		const taken = new Set(all.map(({ name }) => name.toLowerCase()));
		const named = this.tables.map((table, i) => ({ ...table, name: tableName(table, i + 1, taken) }));
		for (const [i, table] of named.entries()) await this.add(`xl/tables/table${i + 1}.xml`, [tableXml(table, i + 1)]);
		const tables = named.map((table) => ({ ...table, at: 0, columns: placesOf(table.columns.map(({ name }) => name)) }));
		const meanings = new Names(['_'], [], tables);
		const names = all.filter(({ text }) => outsideOf(meanings.write(text, { at: 0, row: -1, col: -1 }).text) === undefined);
		const texts = names.map(({ name, text, tab, hidden }) => {
			const values = attributes({ name, localSheetId: tab, hidden: hidden ? 1 : undefined });
			return `<definedName${values}>${escapeXml(text)}</definedName>`;
		});
		return texts.length > 0 ? `<definedNames>${texts.join('')}</definedNames>` : '';
	}

	async end(): Promise<void> {
		const first = Math.max(
			this.tabs.findIndex(({ hidden }) => !hidden),
			0,
		);
		const sheets = this.tabs.map(({ name, hidden }, i) => {
			const state = hidden && i !== first ? 'hidden' : undefined;
			return `<sheet${attributes({ name, sheetId: i + 1, state, 'r:id': `rId${i + 1}` })}/>`;
		});
		const names = await this.addTables();
		const book = `<bookViews><workbookView activeTab="${first}" firstSheet="${first}"/></bookViews><sheets>${sheets.join('')}</sheets>${names}<calcPr fullCalcOnLoad="1"/>`;
		await this.add('xl/workbook.xml', [`${head}<workbook xmlns="${namespaces.main}" xmlns:r="${namespaces.relations}">${book}</workbook>`]);
		const parts = [...this.tabs.map((_, i) => ['worksheet', `worksheets/sheet${i + 1}.xml`]), ['styles', 'styles.xml'], ['sharedStrings', 'sharedStrings.xml']];
		if (this.hasArrays) parts.push(['sheetMetadata', 'metadata.xml']);
		const relations = parts.map(([type, Target], i) => `<Relationship${attributes({ Id: `rId${i + 1}`, Type: `${namespaces.relations}/${type}`, Target })}/>`);
		await this.add('xl/_rels/workbook.xml.rels', [`${head}<Relationships xmlns="${namespaces.packageRelations}">${relations.join('')}</Relationships>`]);
		if (this.hasArrays) await this.add('xl/metadata.xml', [arraysXml]);
		await this.add('xl/styles.xml', [this.styles.xml()]);
		await this.add('xl/sharedStrings.xml', this.stringsXml());
		const root = attributes({ Id: 'rId1', Type: `${namespaces.relations}/officeDocument`, Target: 'xl/workbook.xml' });
		await this.add('_rels/.rels', [`${head}<Relationships xmlns="${namespaces.packageRelations}"><Relationship${root}/></Relationships>`]);
		await this.add('[Content_Types].xml', [this.typesXml()]);
		this.zip.end();
	}

	private *stringsXml(): Generator<string> {
		yield `${head}<sst xmlns="${namespaces.main}" count="${this.uses}" uniqueCount="${this.texts.size}">`;
		let piece = '';
		for (const text of this.texts.keys()) {
			const keeps = /^\s|\s$|[\n\t]| {2}/.test(text) ? ' xml:space="preserve"' : '';
			piece += `<si><t${keeps}>${escapeText(text)}</t></si>`;
			if (piece.length < 1 << 16) continue;
			yield piece;
			piece = '';
		}
		yield `${piece}</sst>`;
	}

	private typesXml(): string {
		const type = (name: string) => `application/vnd.openxmlformats-officedocument.spreadsheetml.${name}+xml`;
		const parts = [
			['/xl/workbook.xml', 'sheet.main'],
			...this.tabs.map((_, i) => [`/xl/worksheets/sheet${i + 1}.xml`, 'worksheet']),
			...this.noted.map((n) => [`/xl/comments${n}.xml`, 'comments']),
			...this.tables.map((_, i) => [`/xl/tables/table${i + 1}.xml`, 'table']),
			...(this.hasArrays ? [['/xl/metadata.xml', 'sheetMetadata']] : []),
			['/xl/styles.xml', 'styles'],
			['/xl/sharedStrings.xml', 'sharedStrings'],
		];
		const overrides = parts.map(([PartName, name]) => `<Override${attributes({ PartName, ContentType: type(name!) })}/>`);
		const rels = attributes({ Extension: 'rels', ContentType: 'application/vnd.openxmlformats-package.relationships+xml' });
		return `${head}<Types xmlns="${namespaces.types}"><Default${rels}/><Default Extension="xml" ContentType="application/xml"/><Default Extension="vml" ContentType="application/vnd.openxmlformats-officedocument.vmlDrawing"/>${this.pictures.typesXml(this.drawn)}${overrides.join('')}</Types>`;
	}
}
