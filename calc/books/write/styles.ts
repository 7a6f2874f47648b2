// styles.ts - the styles of cells (style.ts in the page) as the tables of a workbook. Each style is in them once.
import type { Style } from '../../../gateway/web/src/v2/messages';
import * as formats from '../formats';
import { attributes, head, namespaces } from './xml';

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const nameOf = (names: Record<string, number>, value: unknown): string | undefined => Object.keys(names).find((name) => names[name] === value);

const colourNames: Record<string, string> = {
	...{ black: '000000', white: 'ffffff', red: 'ff0000', lime: '00ff00', blue: '0000ff', yellow: 'ffff00', magenta: 'ff00ff', fuchsia: 'ff00ff' },
	...{ cyan: '00ffff', aqua: '00ffff', green: '008000', gray: '808080', grey: '808080', silver: 'c0c0c0', maroon: '800000', olive: '808000' },
	...{ navy: '000080', purple: '800080', teal: '008080', orange: 'ffa500', pink: 'ffc0cb', brown: 'a52a2a' },
};

/** ffrrggbb; undefined: it is no colour. */
export function colourOf(value: unknown): string | undefined {
	const text = String(fieldsOf(value)['rgb'] ?? '')
		.trim()
		.toLowerCase();
	const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])[0-9a-f]?$/.exec(text);
	const long = /^#([0-9a-f]{6})(?:[0-9a-f]{2})?$/.exec(text);
	const parts = /^rgba?\(\s*([0-9]+)\s*[,\s]\s*([0-9]+)\s*[,\s]\s*([0-9]+)/.exec(text)?.slice(1);
	const hex = (part: string) => Math.min(Number(part), 255).toString(16).padStart(2, '0');
	const colour = short
		? short
				.slice(1)
				.map((one) => one + one)
				.join('')
		: (long?.[1] ?? parts?.map(hex).join('') ?? colourNames[text]);
	return colour && `FF${colour.toUpperCase()}`;
}

const tag = (name: string, values: Record<string, string | number | undefined>): string => `<${name}${attributes(values)}/>`;

/** Texts, each once, by their numbers. */
class Table {
	private readonly numbers = new Map<string, number>();

	constructor(first: string[]) {
		for (const text of first) this.add(text);
	}

	add(text: string): number {
		const number = this.numbers.get(text) ?? this.numbers.size;
		this.numbers.set(text, number);
		return number;
	}

	xml(name: string): string {
		return `<${name} count="${this.numbers.size}">${[...this.numbers.keys()].join('')}</${name}>`;
	}
}

const isOn = (value: unknown): boolean => fieldsOf(value)['s'] === 1;

function fontOf(style: Fields): string {
	const colour = colourOf(style['cl']);
	const size = typeof style['fs'] === 'number' && style['fs'] >= 1 ? Math.min(style['fs'], 409) : formats.sheetFont.size;
	const double = fieldsOf(style['ul'])['t'] === formats.doubleLine;
	const raised = style['va'] === formats.superscript ? 'superscript' : style['va'] === formats.subscript ? 'subscript' : undefined;
	return [
		'<font>',
		...[style['bl'] === 1 ? '<b/>' : '', style['it'] === 1 ? '<i/>' : '', isOn(style['st']) ? '<strike/>' : ''],
		isOn(style['ul']) ? tag('u', { val: double ? 'double' : undefined }) : '',
		raised ? tag('vertAlign', { val: raised }) : '',
		tag('sz', { val: size }),
		colour ? tag('color', { rgb: colour }) : '',
		tag('name', { val: typeof style['ff'] === 'string' && style['ff'] !== '' ? style['ff'].slice(0, 31) : formats.sheetFont.name }),
		'</font>',
	].join('');
}

function fillOf(style: Fields): string {
	const colour = colourOf(style['bg']);
	return colour ? `<fill><patternFill patternType="solid"><fgColor rgb="${colour}"/><bgColor indexed="64"/></patternFill></fill>` : noFill;
}
const noFill = '<fill><patternFill patternType="none"/></fill>';

function borderOf(style: Fields): string {
	const bd = fieldsOf(style['bd']);
	const side = (name: string, value: unknown): string => {
		const line = formats.borderStyles[Number(fieldsOf(value)['s'])];
		if (!line || line === 'none') return `<${name}/>`;
		return `<${name} style="${line}"><color rgb="${colourOf(fieldsOf(value)['cl']) ?? 'FF000000'}"/></${name}>`;
	};
	const drawn = (name: string) => Number(fieldsOf(bd[name])['s']) > 0;
	const [up, down] = [drawn('bl_tr'), drawn('tl_br')];
	const sides = Object.entries(formats.borderSides).map(([name, at]) => side(name, bd[at]));
	const diagonal = side('diagonal', up ? bd['bl_tr'] : bd['tl_br']);
	return `<border${attributes({ diagonalUp: up ? 1 : undefined, diagonalDown: down ? 1 : undefined })}>${sides.join('')}${diagonal}</border>`;
}

function alignmentOf(style: Fields): string {
	const { a, v } = fieldsOf(style['tr']);
	const angle = typeof a === 'number' ? Math.max(-90, Math.min(Math.round(a), 90)) : 0;
	const values = {
		horizontal: nameOf(formats.horizontals, style['ht'] === 5 ? formats.horizontals['justify'] : style['ht']),
		vertical: nameOf(formats.verticals, style['vt']),
		textRotation: v === 1 ? 255 : angle === 0 ? undefined : angle < 0 ? -angle : 90 + angle,
		wrapText: style['tb'] === formats.wrapped ? 1 : undefined,
	};
	return Object.values(values).some((value) => value !== undefined) ? tag('alignment', values) : '';
}

export class StyleTables {
	private readonly fonts = new Table([fontOf({})]);
	private readonly fills = new Table([noFill, '<fill><patternFill patternType="gray125"/></fill>']);
	private readonly borders = new Table([borderOf({})]);
	private readonly patterns = new Map<string, number>();
	private readonly styles = new Table(['<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>']);
	private readonly dxfs = new Table([]);
	private readonly known = new Map<string, number>();

	/** The number of a style. `implied`: the number format, if the style has none. */
	number(style: Style, implied?: string): number {
		if (style === null && implied === undefined) return 0;
		const key = `${JSON.stringify(style)}${implied ?? ''}`;
		let number = this.known.get(key);
		if (number === undefined) {
			number = this.add(style ?? {}, implied);
			this.known.set(key, number);
		}
		return number;
	}

	/** The number of a format that rules name. */
	dxf(xml: string): number {
		return this.dxfs.add(xml);
	}

	private add(style: Fields, implied: string | undefined): number {
		const own = fieldsOf(style['n'])['pattern'];
		const pattern = typeof own === 'string' && own !== '' ? own : implied;
		const alignment = alignmentOf(style);
		const ids = {
			numFmtId: this.format(pattern),
			fontId: this.fonts.add(fontOf(style)),
			fillId: this.fills.add(fillOf(style)),
			borderId: this.borders.add(borderOf(style)),
		};
		const applied = {
			...{ applyNumberFormat: ids.numFmtId ? 1 : undefined, applyFont: ids.fontId ? 1 : undefined, applyFill: ids.fillId ? 1 : undefined },
			...{ applyBorder: ids.borderId ? 1 : undefined, applyAlignment: alignment ? 1 : undefined },
		};
		const values = attributes({ ...ids, xfId: 0, ...applied });
		return this.styles.add(alignment ? `<xf${values}>${alignment}</xf>` : `<xf${values}/>`);
	}

	private format(pattern: string | undefined): number {
		if (pattern === undefined || pattern.toLowerCase() === 'general') return 0;
		for (const [id, known] of formats.builtinFormats) if (known === pattern) return id;
		const id = this.patterns.get(pattern) ?? formats.firstOwnFormat + this.patterns.size;
		this.patterns.set(pattern, id);
		return id;
	}

	xml(): string {
		const patterns = [...this.patterns].map(([formatCode, numFmtId]) => tag('numFmt', { numFmtId, formatCode }));
		return [
			`${head}<styleSheet xmlns="${namespaces.main}">`,
			patterns.length > 0 ? `<numFmts count="${patterns.length}">${patterns.join('')}</numFmts>` : '',
			...[this.fonts.xml('fonts'), this.fills.xml('fills'), this.borders.xml('borders')],
			'<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>',
			this.styles.xml('cellXfs'),
			'<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>',
			this.dxfs.xml('dxfs'),
			'</styleSheet>',
		].join('');
	}
}
