// pictures.ts - the pictures of sheets as drawings of a workbook (../pictures.ts).
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { ZipFile } from 'yazl';
import { maxCols } from '../../../gateway/web/src/v2/lines';
import type { PropertyEdit } from '../../../gateway/web/src/v2/messages';
import type { PropertySet } from '../../../gateway/web/src/v2/properties';
import { workbookRows } from '../formulas';
import { dataNames, linkNames, type Picture, picturesOf, pictureTypes, suffixOf } from '../pictures';
import type { Tree } from '../trees';
import { attributes, escapeXml, head, namespaces } from './xml';

const drawingNamespace = 'http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing';
const mainNamespace = 'http://schemas.openxmlformats.org/drawingml/2006/main';

const markerXml = (name: string, row: number, col: number, [x, y]: [number, number]): string =>
	`<xdr:${name}><xdr:col>${col}</xdr:col><xdr:colOff>${x}</xdr:colOff><xdr:row>${row}</xdr:row><xdr:rowOff>${y}</xdr:rowOff></xdr:${name}>`;

/** What an anchor has before its picture. */
function placeXml({ anchor, from, to, span, size }: Picture, { row, col, toRow, toCol }: PropertyEdit): string {
	const sizeXml = size ? `<xdr:ext cx="${Math.abs(size[0])}" cy="${Math.abs(size[1])}"/>` : '';
	if (anchor === 'absolute') return `<xdr:pos x="${from[0]}" y="${from[1]}"/>${sizeXml}`;
	const first = markerXml('from', row, col, from);
	if (anchor === 'oneCell') return first + sizeXml;
	const [lastRow, lastCol] = span ? [row + Math.abs(span[1]), col + Math.abs(span[0])] : [toRow, toCol];
	return first + markerXml('to', Math.min(lastRow, workbookRows - 1), Math.min(lastCol, maxCols - 1), to!);
}

/** id: of the picture in its drawing. embed: of the relation to its bytes. */
function pictureXml([name, own, ...children]: Tree, ids: { id: number; embed: string }, depth = 0, parent = ''): string {
	const prefix = depth < 2 || parent === 'nvPicPr' ? 'xdr' : 'a';
	const values: Record<string, string | number> = { ...own };
	if (name === 'cNvPr') Object.assign(values, { id: ids.id, name: own['name'] ?? '' });
	if (name === 'blip' && depth === 2) values['r:embed'] = ids.embed;
	const plain = children.filter((child) => typeof child === 'string' || !linkNames.includes(child[0]));
	const inside = plain.map((child) => (typeof child === 'string' ? escapeXml(child) : pictureXml(child, ids, depth + 1, name))).join('');
	return `<${prefix}:${name}${attributes(values)}>${inside}</${prefix}:${name}>`;
}

export interface Drawing {
	xml: string;
	relations: string;
}

export class WorkbookPictures {
	/** The names of parts, by the keys of their files. */
	private readonly parts = new Map<string, string>();
	private stream = new PassThrough();

	constructor(private readonly zip: ZipFile) {}

	/** Begins a picture, whose bytes follow. */
	begin(key: string, type: string): void {
		const name = `image${this.parts.size + 1}.${suffixOf(type)}`;
		this.parts.set(key, name);
		this.stream = new PassThrough();
		// Pictures are compressed already.
		this.zip.addReadStream(this.stream, `xl/media/${name}`, { compressionLevel: 1 });
	}

	/** No bytes: they are all there. */
	async add(bytes: Uint8Array): Promise<void> {
		if (bytes.length === 0) this.stream.end();
		else if (!this.stream.write(bytes)) await once(this.stream, 'drain');
	}

	/** undefined: the tab has no pictures that are there. */
	drawing(properties: PropertySet): Drawing | undefined {
		const found = picturesOf(properties).filter(
			({ picture, property }) => this.parts.has(picture.key) && (picture.anchor === 'absolute' || property.row < workbookRows),
		);
		if (found.length === 0) return undefined;
		const parts = [...new Set(found.map(({ picture }) => this.parts.get(picture.key)!))];
		const anchors = found.map(({ picture, property }, i) => {
			const name = `xdr:${picture.anchor}Anchor`;
			const embed = `rId${parts.indexOf(this.parts.get(picture.key)!) + 1}`;
			const inside = placeXml(picture, property) + pictureXml(picture.picture, { id: i + 2, embed });
			return `<${name}${attributes({ editAs: picture.anchor === 'twoCell' ? picture.edit : undefined })}>${inside}<xdr:clientData${attributes(Object.fromEntries(dataNames.map((one) => [one, picture.data[one]])))}/></${name}>`;
		});
		const relations = parts.map(
			(part, i) => `<Relationship${attributes({ Id: `rId${i + 1}`, Type: `${namespaces.relations}/image`, Target: `../media/${part}` })}/>`,
		);
		return {
			xml: `${head}<xdr:wsDr xmlns:xdr="${drawingNamespace}" xmlns:a="${mainNamespace}" xmlns:r="${namespaces.relations}">${anchors.join('')}</xdr:wsDr>`,
			relations: `${head}<Relationships xmlns="${namespaces.packageRelations}">${relations.join('')}</Relationships>`,
		};
	}

	/** The types of its parts. tabs: the numbers of those with drawings. */
	typesXml(tabs: number[]): string {
		const suffixes = new Set([...this.parts.values()].map((name) => name.slice(name.lastIndexOf('.') + 1)));
		const defaults = [...suffixes].map((Extension) => `<Default${attributes({ Extension, ContentType: pictureTypes[Extension] })}/>`);
		const overrides = tabs.map(
			(n) => `<Override${attributes({ PartName: `/xl/drawings/drawing${n}.xml`, ContentType: 'application/vnd.openxmlformats-officedocument.drawing+xml' })}/>`,
		);
		return defaults.join('') + overrides.join('');
	}
}
