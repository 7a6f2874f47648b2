// drawing.ts - the pictures of a drawing, each with its place. What else a drawing has is counted.
import { maxCols, maxRows } from '../../../gateway/web/src/v2/lines';
import type { Range } from '../../../gateway/web/src/v2/messages';
import { wholeSheet } from '../../../gateway/web/src/sheet/arrange';
import { dataNames, edits, isPictureTree, isPoint, linkNames, type Place } from '../pictures';
import { type Tree, TreeReader } from '../trees';
import { type Attributes, bare, isTrue, numberOf } from './xml';

export interface Drawn {
	range: Range;
	place: Place;
	data: Attributes;
	picture: Tree;
	/** The id of the relation to its bytes; undefined: it has none. */
	embed: string | undefined;
	isLink: boolean;
}

type Marker = Partial<Record<'col' | 'colOff' | 'row' | 'rowOff', number>>;

interface Anchor {
	kind: Place['anchor'];
	edit: string | undefined;
	from?: Marker;
	to?: Marker;
	point?: [number, number];
	size?: [number, number];
	data: Attributes;
	picture?: Tree;
	embed: string | undefined;
	isLink: boolean;
}

const kinds: Record<string, Place['anchor']> = { twoCellAnchor: 'twoCell', oneCellAnchor: 'oneCell', absoluteAnchor: 'absolute' };
const counted: Record<string, string> = { graphicFrame: 'charts', sp: 'shapes', cxnSp: 'shapes' };

const cellOf = (marker: Marker | undefined): { row: number; col: number } | undefined => {
	const { row, col } = marker ?? {};
	const fits = Number.isInteger(row) && Number.isInteger(col) && row! >= 0 && col! >= 0 && row! < maxRows && col! < maxCols;
	return fits ? { row: row!, col: col! } : undefined;
};
const offsetOf = ({ colOff = 0, rowOff = 0 }: Marker): [number, number] => [colOff, rowOff];

/** Where it is; undefined: that is not known. */
function placeOf({ kind, edit, from, to, point, size }: Anchor): { range: Range; place: Place } | undefined {
	const first = cellOf(from);
	const last = cellOf(to);
	if (kind === 'absolute') return isPoint(point) && isPoint(size) ? { range: wholeSheet, place: { anchor: kind, from: point, size } } : undefined;
	if (!first || !isPoint(offsetOf(from!))) return undefined;
	const range = { ...first, toRow: first.row, toCol: first.col };
	if (kind === 'oneCell') return isPoint(size) ? { range, place: { anchor: kind, from: offsetOf(from!), size } } : undefined;
	if (!last || !isPoint(offsetOf(to!)) || last.row < first.row || last.col < first.col) return undefined;
	const place: Place = { anchor: kind, from: offsetOf(from!), to: offsetOf(to!) };
	const own = edits.find((one) => one === edit);
	return own
		? { range, place: { ...place, edit: own, span: [last.col - first.col, last.row - first.row] } }
		: { range: { ...range, toRow: last.row, toCol: last.col }, place };
}

export class DrawingReader {
	private anchor: Anchor | undefined;
	private marker: Marker | undefined;
	private number = '';
	private tree: TreeReader | undefined;
	private groups = 0;
	/** Of two forms for two generations of programs, the first one is known. */
	private isKnown = false;

	/** take: what has been read. lose: what is left out. */
	constructor(
		private readonly take: (drawn: Drawn) => void,
		private readonly lose: (what: string) => void,
	) {}

	open(name: string, attributes: Attributes): boolean | void {
		if (this.tree) return this.openInPicture(name, attributes);
		if (name === 'pic') return this.openPicture(name, attributes);
		if (Object.hasOwn(counted, name)) return this.pass(counted[name]!);
		if (Object.hasOwn(kinds, name)) {
			this.anchor = { kind: kinds[name]!, edit: attributes['editAs'], data: {}, embed: undefined, isLink: false };
			return;
		}
		switch (name) {
			case 'AlternateContent':
				this.isKnown = false;
				return;
			case 'Fallback':
				return this.isKnown ? false : undefined;
			case 'grpSp':
				this.groups++;
				return;
			// Of a group, they are not those of the anchor.
			case 'grpSpPr':
			case 'nvGrpSpPr':
			case 'extLst':
				return false;
			case 'from':
			case 'to':
				this.marker = {};
				if (this.anchor) this.anchor[name] = this.marker;
				return;
			case 'ext':
				if (this.anchor) this.anchor.size = [numberOf(attributes['cx']) ?? NaN, numberOf(attributes['cy']) ?? NaN];
				return;
			case 'pos':
				if (this.anchor) this.anchor.point = [numberOf(attributes['x']) ?? NaN, numberOf(attributes['y']) ?? NaN];
				return;
			case 'clientData':
				if (this.anchor)
					this.anchor.data = Object.fromEntries(
						dataNames.flatMap((one) => (attributes[one] === undefined ? [] : [[one, isTrue(attributes[one]) ? '1' : '0']])),
					);
				return;
			default:
				this.number = '';
		}
	}

	private pass(what: string): false {
		this.lose(what);
		this.isKnown = true;
		return false;
	}

	private openPicture(name: string, attributes: Attributes): boolean {
		if (this.groups > 0) return this.pass('pictures in groups');
		if (!this.anchor || this.anchor.picture) return this.pass('pictures without a place');
		this.isKnown = true;
		if (attributes['macro']) this.lose('macros');
		this.tree = new TreeReader((_, { xmlns: _space, macro: _macro, ...others }) => others);
		return this.tree.begin(name, attributes);
	}

	private openInPicture(name: string, attributes: Attributes): boolean {
		const { embed, link } = bare(attributes);
		if (name === 'blip') {
			this.anchor!.embed ??= embed || undefined;
			this.anchor!.isLink ||= Boolean(link);
		}
		if (linkNames.includes(name)) this.lose('links of pictures');
		return !linkNames.includes(name) && name !== 'AlternateContent' && this.tree!.begin(name, attributes);
	}

	text(text: string): void {
		if (this.tree) this.tree.text(text);
		else if (this.marker) this.number += text;
	}

	close(name: string): void {
		if (this.tree) {
			const picture = this.tree.end();
			if (!picture) return;
			this.anchor!.picture = picture;
			this.tree = undefined;
		} else if (name === 'grpSp') this.groups--;
		else if (name === 'from' || name === 'to') this.marker = undefined;
		else if (this.marker) this.marker[name as keyof Marker] = numberOf(this.number) ?? NaN;
		else if (Object.hasOwn(kinds, name) && this.anchor) this.end(this.anchor);
	}

	private end(anchor: Anchor): void {
		const { data, picture, embed, isLink } = anchor;
		const placed = placeOf(anchor);
		this.anchor = undefined;
		if (!picture) return;
		if (!isPictureTree(picture)) this.lose('pictures');
		else if (placed) this.take({ ...placed, data, picture, embed, isLink });
		else this.lose('pictures without a place');
	}
}
