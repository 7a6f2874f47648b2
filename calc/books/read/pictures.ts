// pictures.ts - pictures of a workbook: their bytes become files of the sheet, and their places properties (pictures.ts). Files are
// stored last, since the account has no other uploads meanwhile.
import type { PropertyEdit, Range } from '../../../gateway/web/src/v2/messages';
import { own } from '../formats';
import { mostPictureBytes, type Picture, pictureTypes, type StoredFile } from '../pictures';
import { keys } from '../trees';
import { type Drawn, DrawingReader } from './drawing';
import type { Losses } from './refused';
import type { Relation, Taker } from './workbook';
import { readXml } from './xml';
import type { Zip } from './zip';

const mostFileBytes = 32 << 20;
/** Of a workbook. */
const mostPictures = 10_000;
/** Of one picture, and of all that begin in a cell. */
const mostBytes = 8000;
const mostCellBytes = 32_000;
/** As long as any of the files that are made here. */
const someFile: StoredFile = { file: 'x'.repeat(20), key: 'x'.repeat(32) };

/** A picture whose bytes are not stored yet. */
interface Found {
	part: string;
	picture: Omit<Picture, keyof StoredFile>;
}

interface Place {
	range: Range;
	found: Found[];
	bytes: number;
}

/** What is left of the properties of a tab. */
export interface Room {
	properties: number;
	bytes: number;
}

const bytesOf = (picture: Found['picture']): number => Buffer.byteLength(JSON.stringify({ ...picture, ...someFile })) + 1;

class TabPictures {
	/** By their ranges. */
	readonly places = new Map<string, Place>();
	private order = 0;
	/** Ids of relations. */
	private readonly embedded = new Set<string>();

	constructor(
		readonly tab: string,
		private readonly room: Room,
		private readonly zip: Zip,
		private readonly losses: Losses,
		/** Counts those of the workbook: false if there are too many. */
		private readonly count: () => boolean,
	) {}

	lose(what: string): void {
		this.losses.add(this.tab, what);
	}

	/** relations: of the drawing. */
	async read(drawing: string, relations: ReadonlyMap<string, Relation>): Promise<void> {
		const reader = new DrawingReader(
			(drawn) => this.take(drawn, relations),
			(what) => this.lose(what),
		);
		await readXml(this.zip, drawing, {
			open: (name, attributes) => reader.open(name, attributes),
			text: (text) => reader.text(text),
			close: (name) => reader.close(name),
		});
		// Pictures name them in addition to others, for later programs.
		for (const [id, { target }] of relations) if (/\.svg$/i.test(target) && !this.embedded.has(id)) this.lose('vector forms of pictures');
	}

	private take({ range, place, data, picture, embed, isLink }: Drawn, relations: ReadonlyMap<string, Relation>): void {
		this.embedded.add(embed ?? '');
		const relation = relations.get(embed ?? '');
		if (relation?.external || (isLink && !relation)) return this.lose('pictures that are links');
		if (!relation || !this.zip.has(relation.target)) return this.lose('pictures that are missing');
		const part = relation.target;
		const type = own(pictureTypes, part.slice(part.lastIndexOf('.') + 1).toLowerCase());
		if (type === undefined) return this.lose('pictures of other formats');
		if (this.zip.size(part) > mostFileBytes) return this.lose(`pictures of more than ${mostFileBytes >> 20} MB`);
		if (isLink) this.lose('links of pictures');
		this.put(range, { part, picture: { type, order: this.order++, ...place, data, picture } });
	}

	private put(range: Range, found: Found): void {
		const name = Object.values(range).join();
		const before = this.places.get(name);
		const place = before ?? { range, found: [], bytes: keys.picture.length + 2 };
		const bytes = bytesOf(found.picture);
		const [taken, properties] = before ? [bytes, 0] : [place.bytes + bytes, 1];
		const fits = bytes <= mostBytes && place.bytes + bytes <= mostCellBytes;
		const hasRoom = taken <= this.room.bytes && properties <= this.room.properties;
		if (!fits || !hasRoom || !this.count()) return this.lose('pictures');
		this.room.bytes -= taken;
		this.room.properties -= properties;
		this.places.set(name, place);
		place.found.push(found);
		place.bytes += bytes;
	}
}

export class Pictures {
	private readonly tabs: TabPictures[] = [];
	private pictures = 0;
	private bytes = 0;

	constructor(
		private readonly zip: Zip,
		private readonly losses: Losses,
	) {}

	/** Those of the next tab. */
	tab(name: string, room: Room): TabPictures {
		const pictures = new TabPictures(name, room, this.zip, this.losses, () => this.pictures++ < mostPictures);
		this.tabs.push(pictures);
		return pictures;
	}

	/** Stores what all tabs have. */
	async store(taker: Taker): Promise<void> {
		for (const [i, tab] of this.tabs.entries()) {
			if (tab.places.size === 0) continue;
			await taker.again(i);
			const edits = await this.storeTab(tab, taker);
			if (edits.length > 0) await taker.edits(edits);
			const count = edits.reduce((sum, { value }) => sum + (value as Picture[]).length, 0);
			if (count > 0) this.losses.keep(tab.tab, 'pictures', count);
		}
	}

	/** A part that several pictures of a tab name is one file. */
	private async storeTab(tab: TabPictures, taker: Taker): Promise<PropertyEdit[]> {
		const files = new Map<string, StoredFile | string>();
		const edits: PropertyEdit[] = [];
		for (const { range, found } of tab.places.values()) {
			const value: Picture[] = [];
			for (const { part, picture } of found) {
				const file = files.get(part) ?? (await this.storeFile(part, picture.type, files.size + 1, taker));
				files.set(part, file);
				if (typeof file === 'string') tab.lose(file);
				else value.push({ ...file, ...picture });
			}
			if (value.length > 0) edits.push({ ...range, key: keys.picture, value });
		}
		return edits;
	}

	/** Otherwise why not. */
	private async storeFile(part: string, type: string, number: number, taker: Taker): Promise<StoredFile | string> {
		const size = this.zip.size(part);
		if (size === 0) return 'pictures that are missing';
		if (this.bytes + size > mostPictureBytes) return `pictures beyond ${mostPictureBytes >> 20} MB of a workbook`;
		this.bytes += size;
		const name = `picture ${number}.${part.slice(part.lastIndexOf('.') + 1).toLowerCase()}`;
		return (await taker.file({ name, type, size }, this.zip.read(part))) ?? 'pictures for which the account has no room';
	}
}
