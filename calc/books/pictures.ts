// pictures.ts - pictures of a workbook as a property of the cells where they begin. Their bytes are files of the sheet, which the key
// opens, also from a copy of the sheet (docs/design/workbooks.md).
import type { PropertyEdit } from '../../gateway/web/src/v2/messages';
import type { PropertySet } from '../../gateway/web/src/v2/properties';
import { isTree, keys, type Tree } from './trees';

export interface StoredFile {
	/** The name that the sheet has for it. */
	file: string;
	key: string;
}

export const anchors = ['twoCell', 'oneCell', 'absolute'] as const;

/** What moves or resizes a picture with two cells, other than both of them. */
export const edits = ['oneCell', 'absolute'] as const;

/** In EMU: a pixel has 9525. */
type Point = [x: number, y: number];

/** Where a picture is, from the first cell of its property on. */
export interface Place {
	anchor: (typeof anchors)[number];
	/** From the corner of the first cell; of an absolute one, of the sheet. */
	from: Point;
	/** Of one with two cells: from the corner of the last cell. */
	to?: Point;
	/** Columns and rows from the first to the last cell, of one with `edit`. Others grow with the range of the property. */
	span?: Point;
	/** Of the others. */
	size?: Point;
	edit?: (typeof edits)[number];
}

export interface Picture extends StoredFile, Place {
	/** Of the file: image/png. */
	type: string;
	/** Those with greater numbers are before the others. */
	order: number;
	/** Of dataNames. */
	data: Record<string, string>;
	/** The element pic: names, what is shown of the picture, borders, effects. */
	picture: Tree;
}

/** Elements of a picture that are links. A workbook has them by relations, which are not kept. */
export const linkNames = ['hlinkClick', 'hlinkHover'];

/** Attributes of clientData. */
export const dataNames = ['fLocksWithSheet', 'fPrintsWithSheet'] as const;

/** The types of files that programs show, by the ends of their names. */
export const pictureTypes: Record<string, string> = {
	...{ png: 'image/png', jpeg: 'image/jpeg', jpg: 'image/jpeg', gif: 'image/gif', bmp: 'image/bmp', tiff: 'image/tiff', tif: 'image/tiff' },
	...{ webp: 'image/webp', emf: 'image/x-emf', wmf: 'image/x-wmf' },
};
export const suffixOf = (type: string): string | undefined => Object.keys(pictureTypes).find((suffix) => pictureTypes[suffix] === type);

/** Of all pictures of a workbook. */
export const mostPictureBytes = 256 << 20;

const mostPlace = 2 ** 40;
export const isPoint = (value: unknown): value is Point =>
	Array.isArray(value) && value.length === 2 && value.every((number) => Number.isInteger(number) && Math.abs(number) < mostPlace);

const pictureParts = ['nvPicPr', 'blipFill', 'spPr'];

/** An element pic that has all that it must have. */
export const isPictureTree = (value: unknown): value is Tree =>
	isTree(value, ['pic']) && pictureParts.every((name) => value.some((child) => Array.isArray(child) && child[0] === name));

/** Others may have set any value. */
function isPicture(value: unknown): value is Picture {
	if (typeof value !== 'object' || value === null) return false;
	const { file, key, type, order, anchor, from, to, span, size, edit, data, picture } = value as Record<string, unknown>;
	return (
		[file, key].every((text) => typeof text === 'string') &&
		typeof type === 'string' &&
		suffixOf(type) !== undefined &&
		Number.isInteger(order) &&
		anchors.some((one) => one === anchor) &&
		isPoint(from) &&
		isPoint(anchor === 'twoCell' ? to : size) &&
		(span === undefined || isPoint(span)) &&
		(edit === undefined || edits.some((one) => one === edit)) &&
		isTree(['data', data]) &&
		Object.values(data as object).every((flag) => flag === '0' || flag === '1') &&
		isPictureTree(picture)
	);
}

/** The pictures of a sheet in their order, each with its property. */
export const picturesOf = (properties: PropertySet): { picture: Picture; property: PropertyEdit }[] =>
	properties
		.of(keys.picture)
		.flatMap((property) => (Array.isArray(property.value) ? property.value : []).filter(isPicture).map((picture) => ({ picture, property })))
		.sort((a, b) => a.picture.order - b.picture.order);
