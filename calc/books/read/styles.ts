// styles.ts - the styles of a workbook's cells, in the form of style.ts in the page.
import { numfmt } from '@univerjs/core';
import { plainStyle } from '../../../gateway/web/src/style';
import type { Style } from '../../../gateway/web/src/v2/messages';
import * as formats from '../formats';
import { type Tree, TreeReader } from '../trees';
import type { Colours } from './colours';
import { plainColours } from './kept';
import { type Attributes, isTrue, numberOf, readXml } from './xml';
import type { Zip } from './zip';

type Fields = Record<string, unknown>;

/** The style of cells that name it by its number. */
export interface CellStyle {
	style: Style;
	/** The number format; undefined: the usual one. */
	pattern: string | undefined;
	/** What of it sheets do not have. */
	lost: string[];
}

interface Part {
	fields: Fields;
	lost: string[];
}

/** The colours of texts and of windows in the system, by their numbers: they are used in fills. */
const systemColours: Record<string, string> = { 64: '#000000', 65: '#ffffff' };
const newPart = (): Part => ({ fields: {}, lost: [] });
const plain: CellStyle = { style: null, pattern: undefined, lost: [] };

function isUnderstood(pattern: string): boolean {
	try {
		numfmt.format(pattern, 1);
		return pattern.length <= 255;
	} catch {
		return false;
	}
}

function rotationOf(rotation: number): Fields {
	if (rotation === 255) return { tr: { a: 0, v: 1 } };
	return { tr: { a: rotation <= 90 ? -rotation : rotation - 90 } };
}

function alignmentOf(attributes: Attributes): Part {
	const { horizontal = 'general', vertical = 'bottom' } = attributes;
	const lost: string[] = [];
	const ht = formats.own(formats.horizontals, horizontal);
	const vt = formats.own(formats.verticals, vertical);
	if (horizontal !== 'general' && !ht) lost.push(`alignment ${horizontal}`);
	if (!vt) lost.push(`vertical alignment ${vertical}`);
	if (numberOf(attributes['indent'])) lost.push('indents');
	if (isTrue(attributes['shrinkToFit'])) lost.push('text that shrinks to its cell');
	if (numberOf(attributes['readingOrder'])) lost.push('reading orders');
	const rotation = numberOf(attributes['textRotation']) ?? 0;
	return {
		fields: {
			...(ht && { ht }),
			...(vt && attributes['vertical'] && { vt }),
			...(isTrue(attributes['wrapText']) && { tb: formats.wrapped }),
			...(rotation !== 0 && rotationOf(rotation)),
		},
		lost,
	};
}

export class Styles {
	private readonly cellStyles: CellStyle[] = [];
	private readonly patterns = new Map(formats.builtinFormats);
	private readonly fonts: Part[] = [];
	private readonly fills: Part[] = [];
	private readonly borders: Part[] = [];
	/** Formats that rules name by their numbers. */
	private readonly dxfs: Tree[] = [];
	/** Of the workbook's default font. */
	fontName: string = formats.sheetFont.name;

	constructor(private readonly colours: Colours) {}

	of(index: string | undefined): CellStyle {
		return this.cellStyles[Number(index ?? 0)] ?? plain;
	}

	dxf(index: string): Tree | undefined {
		return this.dxfs[Number(index)];
	}

	async read(zip: Zip, part: string): Promise<void> {
		await this.readPalette(zip, part);
		/** The group that the element is in: fonts, cellXfs and so on. */
		const path: string[] = [];
		let dxf: TreeReader | undefined;
		await readXml(zip, part, {
			open: (name, attributes) => {
				const group = path[1] ?? '';
				path.push(name);
				if (group === 'dxfs' && path.length === 3) dxf = new TreeReader(plainColours(this.colours));
				if (name === 'extLst' || name === 'cellStyleXfs' || dxf?.begin(name, attributes) === false) {
					path.pop();
					return false;
				}
				this.element(group, path.length, name, attributes, path);
				return;
			},
			close: () => {
				path.pop();
				const tree = dxf?.end();
				if (tree) {
					this.dxfs.push(tree);
					dxf = undefined;
				}
			},
		});
	}

	/** Reads the palette of the workbook. It comes after the styles that use it, so it is read first. */
	private async readPalette(zip: Zip, part: string): Promise<void> {
		let at = -1;
		await readXml(zip, part, {
			open: (name, attributes) => {
				if (name === 'indexedColors') at = 0;
				else if (name === 'rgbColor' && at >= 0 && at < 64) this.colours.setPalette(at++, (attributes['rgb'] ?? '').slice(-6));
			},
		});
	}

	private element(group: string, depth: number, name: string, attributes: Attributes, path: string[]): void {
		const begins = depth === 3;
		if (group === 'numFmts' && begins) this.patterns.set(Number(attributes['numFmtId']), attributes['formatCode'] ?? '');
		if (group === 'fonts') {
			if (begins) this.fonts.push(newPart());
			else this.font(this.fonts.at(-1)!, name, attributes);
		}
		if (group === 'fills') {
			if (begins) this.fills.push(newPart());
			else this.fill(this.fills.at(-1)!, name, attributes);
		}
		if (group === 'borders') {
			if (begins) this.borders.push({ ...newPart(), fields: { up: isTrue(attributes['diagonalUp']), down: isTrue(attributes['diagonalDown']) } });
			else this.border(this.borders.at(-1)!, name, attributes, path);
		}
		if (group === 'cellXfs') {
			if (begins) this.cellStyles.push(this.cellStyle(attributes));
			else if (name === 'alignment') this.align(attributes);
		}
	}

	private font({ fields, lost }: Part, name: string, attributes: Attributes): void {
		const value = attributes['val'];
		const isOn = value === undefined || isTrue(value);
		const colour = name === 'color' ? this.colours.read(attributes) : undefined;
		if (name === 'b' && isOn) fields['bl'] = 1;
		if (name === 'i' && isOn) fields['it'] = 1;
		if (name === 'strike' && isOn) fields['st'] = { s: 1 };
		if (name === 'u' && value !== 'none') fields['ul'] = { s: 1, ...(value?.startsWith('double') && { t: formats.doubleLine }) };
		if (name === 'u' && value?.endsWith('Accounting')) lost.push('underlines of accounting');
		if (colour) fields['cl'] = { rgb: colour };
		if (name === 'sz') fields['fs'] = numberOf(value) ?? formats.sheetFont.size;
		if (name === 'name' && value) fields['ff'] = value.slice(0, 100);
		if (name === 'vertAlign' && value === 'superscript') fields['va'] = formats.superscript;
		if (name === 'vertAlign' && value === 'subscript') fields['va'] = formats.subscript;
		if ((name === 'outline' || name === 'shadow') && isOn) lost.push('outlined and shadowed letters');
	}

	private fill({ fields, lost }: Part, name: string, attributes: Attributes): void {
		const pattern = attributes['patternType'] ?? 'none';
		if (name === 'gradientFill') lost.push('gradients');
		if (name === 'patternFill') {
			fields['solid'] = pattern !== 'none';
			fields['plain'] = pattern === 'solid';
			if (pattern !== 'none' && pattern !== 'solid') lost.push('patterns of fills');
		}
		// The second colour is for want of the first one.
		const colour = name === 'fgColor' || (name === 'bgColor' && !fields['bg']) ? this.colours.read(attributes) : undefined;
		const system = name === 'fgColor' && fields['plain'] ? formats.own(systemColours, attributes['indexed'] ?? '') : undefined;
		if ((colour ?? system) && fields['solid']) fields['bg'] = { rgb: colour ?? system };
	}

	private border({ fields, lost }: Part, name: string, attributes: Attributes, path: string[]): void {
		const at = name === 'color' ? path.at(-2)! : name;
		const side = formats.own<string>({ ...formats.borderSides, start: 'l', end: 'r' }, at);
		const names = at === 'diagonal' ? [...(fields['up'] ? ['bl_tr'] : []), ...(fields['down'] ? ['tl_br'] : [])] : side ? [side] : [];
		const s = formats.borderStyles.indexOf(attributes['style'] ?? 'none');
		if (at !== 'diagonal' && !side && s > 0) lost.push('inner borders');
		for (const side of names) {
			const bd = (fields['bd'] ??= {}) as Record<string, { s: number; cl: { rgb: string } }>;
			if (name === 'color') {
				if (bd[side]) bd[side].cl.rgb = this.colours.read(attributes) ?? '#000000';
			} else if (s > 0) bd[side] = { s, cl: { rgb: '#000000' } };
		}
	}

	private cellStyle(attributes: Attributes): CellStyle {
		const [font, fill, border] = [
			this.fonts[Number(attributes['fontId'] ?? 0)],
			this.fills[Number(attributes['fillId'] ?? 0)],
			this.borders[Number(attributes['borderId'] ?? 0)],
		];
		this.fontName = (this.fonts[0]?.fields['ff'] as string | undefined) ?? this.fontName;
		const lost = [font, fill, border].flatMap((part) => part?.lost ?? []);
		let pattern = this.patterns.get(Number(attributes['numFmtId'] ?? 0));
		if (pattern !== undefined && /^(general|)$/i.test(pattern)) pattern = undefined;
		if (pattern !== undefined && !isUnderstood(pattern)) {
			lost.push('number formats that are not understood');
			pattern = undefined;
		}
		const { ff, ...fontFields } = font?.fields ?? {};
		const fields = {
			...fontFields,
			...(ff !== this.fontName && { ff }),
			...(fill?.fields['bg'] ? { bg: fill.fields['bg'] } : {}),
			...(border?.fields['bd'] ? { bd: border.fields['bd'] } : {}),
			...(pattern !== undefined && { n: { pattern } }),
		};
		return { style: plainStyle(fields), pattern, lost };
	}

	private align(attributes: Attributes): void {
		const { fields, lost } = alignmentOf(attributes);
		const style = this.cellStyles.at(-1)!;
		style.style = plainStyle({ ...style.style, ...fields });
		style.lost.push(...lost);
	}
}
