// html.ts - a table in HTML, as spreadsheets, word processors and browsers put it on the clipboard: texts, marks (marks.ts),
// links, merged cells, and the formats of whole cells.
//
// A style sheet is read for rules of a tag, a class or an id, which is what spreadsheets write. The browser's own CSS would
// leave out mso-number-format.
import type { Style } from '../v2/messages';
import { plainStyle } from '../style';
import type { Locale } from './locale';
import { marksOf, type Marks } from './marks';

export interface PastedCell {
	text: string;
	marks: Marks;
	style: Style;
	/** The address of a link that is the whole text. */
	link?: string | undefined;
	/** Extent of a merged cell. */
	rows: number;
	cols: number;
}

/** Rows of cells by their columns. What a merged cell covers is missing. */
export type PastedRows = Map<number, PastedCell>[];

type Declarations = Map<string, string>;

const linkPattern = /^(https?:\/\/|mailto:)/i;

// ---- style sheets ----

function readDeclarations(text: string): Declarations {
	const declarations: Declarations = new Map();
	// A semicolon may stand in quotation marks, or behind a backslash.
	for (const [, name, value] of text.matchAll(/([\w-]+)\s*:\s*((?:"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|\\[\s\S]|[^;"'\\])+)/g))
		declarations.set(name!.toLowerCase(), value!.trim());
	return declarations;
}

/** The rules of a style sheet by their selectors, which have no spaces. */
function readRules(text: string): Map<string, Declarations> {
	const rules = new Map<string, Declarations>();
	const plain = text.replace(/<!--|-->/g, '').replace(/\/\*[\s\S]*?\*\//g, '');
	for (const [, selectors, body] of plain.matchAll(/([^{}]+)\{((?:"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|\\[\s\S]|[^}"'\\])*)\}/g)) {
		for (const selector of selectors!.split(',').map((one) => one.trim().toLowerCase()))
			rules.set(selector, new Map([...(rules.get(selector) ?? []), ...readDeclarations(body!)]));
	}
	return rules;
}

class Styles {
	private readonly rules: Map<string, Declarations>;
	private readonly found = new Map<string, Declarations>();

	constructor(document: Document) {
		this.rules = readRules([...document.querySelectorAll('style')].map(({ textContent }) => textContent ?? '').join('\n'));
	}

	/** The declarations for an element, without inherited ones. */
	of(element: Element): Declarations {
		const tag = element.localName;
		const name = `${tag}#${element.id}.${element.className}`;
		let ruled = this.found.get(name);
		if (!ruled) {
			const classes = [...element.classList].map((one) => `.${one.toLowerCase()}`);
			const selectors = [tag, ...classes, ...classes.map((one) => tag + one), `#${element.id.toLowerCase()}`];
			ruled = new Map(selectors.flatMap((selector) => [...(this.rules.get(selector) ?? [])]));
			this.found.set(name, ruled);
		}
		const inline = element.getAttribute('style');
		return inline ? new Map([...ruled, ...readDeclarations(inline)]) : ruled;
	}
}

// ---- formats ----

const sizes: Record<string, number> = { px: 0.75, pt: 1, em: 11, rem: 11, pc: 12 };

const colourOf = (text: string | undefined): string | undefined => {
	const colour = /^(#[0-9a-f]{3,8}|rgba?\([^)]*\)|[a-z]+)/i.exec(text ?? '')?.[0];
	return !colour || /^(transparent|inherit|initial|none|auto|windowtext|currentcolor|window)$/i.test(colour) ? undefined : colour;
};

const borderStyles: Record<string, number> = { hair: 2, dotted: 3, dashed: 4, 'dot-dash': 5, 'dot-dot-dash': 6, double: 7 };

/** Univer's form of a border such as ".5pt solid black". */
function borderOf(text: string | undefined): { s: number; cl: { rgb: string } } | undefined {
	if (!text || /\b(none|hidden)\b/.test(text) || /^0/.test(text)) return undefined;
	const words = text.replace(/\([^)]*\)/g, (inside) => inside.replaceAll(' ', '')).split(/\s+/);
	const style = words.find((word) => word === 'solid' || word in borderStyles);
	if (!style) return undefined;
	const width = words.map((word) => /^([0-9.]+)(px|pt)$/.exec(word)).find(Boolean);
	const points = width ? Number(width[1]) * sizes[width[2]!]! : 0.5;
	const colour = colourOf(words.find((word) => word !== style && !/^[0-9.]/.test(word)));
	return { s: borderStyles[style] ?? (points >= 2 ? 13 : points >= 1 ? 8 : 1), cl: { rgb: colour ?? '#000000' } };
}

/** The format of a cell, in the form of style.ts. */
function styleOf(css: Declarations): Style {
	const text = (name: string) => css.get(name)?.toLowerCase();
	const weight = text('font-weight');
	const decoration = `${text('text-decoration') ?? ''} ${text('text-decoration-line') ?? ''}`;
	const size = /^([0-9.]+)(px|pt|em|rem|pc)/.exec(text('font-size') ?? '');
	const family = css.get('font-family')?.split(',')[0]!.replace(/["']/g, '').trim();
	const background = colourOf(text('background-color') ?? text('background'));
	const foreground = colourOf(text('color'));
	const align = { left: 1, center: 2, right: 3, justify: 4 }[text('text-align') ?? ''];
	const vertical = { top: 1, middle: 2, bottom: 3 }[text('vertical-align') ?? ''];
	const borders = Object.fromEntries(
		(['top', 'right', 'bottom', 'left'] as const).flatMap((side) => {
			const border = borderOf(text(`border-${side}`) ?? text('border'));
			return border ? [[side[0]!, border]] : [];
		}),
	);
	return plainStyle({
		...(weight && (weight.startsWith('bold') || Number(weight) >= 600) && { bl: 1 }),
		...(/italic|oblique/.test(text('font-style') ?? '') && { it: 1 }),
		...(/underline/.test(decoration) && { ul: { s: 1 } }),
		...(/line-through/.test(decoration) && { st: { s: 1 } }),
		...(size && { fs: Math.round(Number(size[1]) * sizes[size[2]!]! * 10) / 10 }),
		...(family && !/^(inherit|initial)$/i.test(family) && { ff: family }),
		...(background && { bg: { rgb: background } }),
		...(foreground && { cl: { rgb: foreground } }),
		...(align && { ht: align }),
		...(vertical && { vt: vertical }),
		...(text('white-space') === 'normal' || text('white-space')?.startsWith('pre') || text('word-wrap') === 'break-word' ? { tb: 3 } : {}),
		...(Object.keys(borders).length > 0 && { bd: borders }),
	});
}

/** What the tag of an element means. */
function tagDeclarations(element: Element): [string, string][] {
	const tags: Record<string, [string, string][]> = {
		...{
			b: [['font-weight', 'bold']],
			strong: [['font-weight', 'bold']],
			th: [
				['font-weight', 'bold'],
				['text-align', 'center'],
			],
		},
		...{ i: [['font-style', 'italic']], em: [['font-style', 'italic']] },
		...{ u: [['text-decoration', 'underline']], s: [['text-decoration', 'line-through']], del: [['text-decoration', 'line-through']] },
	};
	const attributes: [string, string][] = [
		['align', 'text-align'],
		['valign', 'vertical-align'],
		['bgcolor', 'background-color'],
		['color', 'color'],
		['face', 'font-family'],
	];
	return [
		...(tags[element.localName] ?? []),
		...attributes.flatMap(([name, property]): [string, string][] => (element.hasAttribute(name) ? [[property, element.getAttribute(name)!]] : [])),
	];
}

// ---- texts ----

const blocks = new Set([
	'p',
	'div',
	'li',
	'ul',
	'ol',
	'h1',
	'h2',
	'h3',
	'h4',
	'h5',
	'h6',
	'pre',
	'blockquote',
	'tr',
	'table',
	'section',
	'article',
	'dt',
	'dd',
]);
const unread = new Set(['style', 'script', 'head', 'title', 'meta', 'link', 'template', 'noscript']);

/** The text of nodes as a browser shows it. */
class TextReader {
	private text = '';
	/** A space, or a line break, before the next character. */
	private due = '';

	read(nodes: Iterable<Node>, keepsSpaces = false): string {
		for (const node of nodes) this.node(node, keepsSpaces);
		return this.text;
	}

	private add(text: string): void {
		this.text += (this.text === '' && this.due === ' ' ? '' : this.due) + text;
		this.due = '';
	}

	private breakLine(): void {
		if (this.text !== '') this.due = '\n';
	}

	private node(node: Node, keepsSpaces: boolean): void {
		if (node.nodeType === 3) return this.characters(node.nodeValue ?? '', keepsSpaces);
		if (node.nodeType !== 1) return;
		const element = node as Element;
		const tag = element.localName;
		if (unread.has(tag)) return;
		if (tag === 'br') {
			this.text += this.due === ' ' ? '' : this.due;
			this.due = '';
			this.text += '\n';
			return;
		}
		const style = element.getAttribute('style') ?? '';
		// Excel writes spaces of its own as no-break spaces.
		if (/mso-spacerun/.test(style)) return this.add((element.textContent ?? '').replace(/[\s\u00a0]/g, ' '));
		const isBlock = blocks.has(tag);
		if (isBlock) this.breakLine();
		for (const child of element.childNodes) this.node(child, keepsSpaces || tag === 'pre' || /white-space\s*:\s*(pre|break)/.test(style));
		if (isBlock) this.breakLine();
		if (tag === 'td' || tag === 'th') this.due ||= ' ';
	}

	private characters(text: string, keepsSpaces: boolean): void {
		if (keepsSpaces) return text === '' ? undefined : this.add(text.replace(/\r\n?/g, '\n'));
		const words = text.split(/[ \t\r\n\f]+/);
		words.forEach((word, i) => {
			if (i > 0 && this.due === '' && !/\n$/.test(this.text)) this.due = ' ';
			if (word !== '') this.add(word);
		});
	}
}

/** The text of a cell. A line break at its end is the editor's. */
function textOf(element: Element, css: Declarations): string {
	const text = new TextReader().read(element.childNodes, /^(pre|break)/.test(css.get('white-space') ?? ''));
	return text.replace(/\n$/, '').replaceAll('\u00a0', ' ');
}

// ---- cells ----

/** The elements that hold the whole text of this one: itself, its only child, and so on. */
function wrappers(element: Element): Element[] {
	const children = [...element.childNodes].filter(({ nodeType, nodeValue }) => nodeType === 1 || (nodeType === 3 && nodeValue!.trim() !== ''));
	const [only] = children;
	return children.length === 1 && only!.nodeType === 1 ? [element, ...wrappers(only as Element)] : [element];
}

const inherited = /^(font|color$|text-|white-space$|vertical-align$)/;

function readCell(element: Element, above: Declarations, styles: Styles, locale: Locale): PastedCell {
	const own = styles.of(element);
	const chain = wrappers(element);
	const css: Declarations = new Map([
		...[...above].filter(([name]) => inherited.test(name) || name.startsWith('background')),
		...chain.flatMap((one) => [...tagDeclarations(one), ...styles.of(one)].filter(([name]) => one === element || inherited.test(name))),
	]);
	const link = chain
		.find((one) => one.localName === 'a')
		?.getAttribute('href')
		?.trim();
	const span = (name: string) => Math.max(1, Math.min(Number(element.getAttribute(name)) || 1, 16384));
	return {
		text: textOf(element, css),
		marks: marksOf((name) => element.getAttribute(name), own.get('mso-number-format'), locale),
		style: styleOf(css),
		...(link && linkPattern.test(link) && { link }),
		...{ rows: span('rowspan'), cols: span('colspan') },
	};
}

const ownRows = (table: Element) => [...table.querySelectorAll('tr')].filter((row) => row.closest('table') === table);

function readTableRows(table: Element, styles: Styles, locale: Locale, rows: PastedRows): void {
	const first = rows.length;
	const covered = new Set<string>();
	const ofTable = styles.of(table);
	for (const tr of ownRows(table)) {
		const row = rows.length;
		const cells: PastedRows[number] = new Map();
		rows.push(cells);
		const above = new Map([...ofTable, ...tagDeclarations(tr), ...styles.of(tr)]);
		let col = 0;
		for (const element of [...tr.children].filter(({ localName }) => localName === 'td' || localName === 'th')) {
			while (covered.has(`${row},${col}`)) col++;
			const cell = readCell(element, above, styles, locale);
			cells.set(col, cell);
			for (let r = 0; r < Math.min(cell.rows, 1000); r++) for (let c = 0; c < cell.cols; c++) if (r > 0) covered.add(`${row + r},${col + c}`);
			col += cell.cols;
		}
	}
	// A merged cell ends with its table.
	for (let row = first; row < rows.length; row++) for (const cell of rows[row]!.values()) cell.rows = Math.min(cell.rows, rows.length - row);
}

const plainCell = (text: string, link?: string): PastedCell => ({ text, marks: {}, style: null, ...(link && { link }), rows: 1, cols: 1 });

/** The lines of what stands outside of tables. */
function readLines(nodes: Node[], rows: PastedRows): void {
	const elements = nodes.flatMap((node) => (node.nodeType === 1 ? [node as Element] : []));
	const text = new TextReader().read(nodes).replace(/\n$/, '').replaceAll('\u00a0', ' ');
	if (text.trim() === '') return;
	const links = elements.flatMap((element) => (element.localName === 'a' ? [element] : [...element.querySelectorAll('a')]));
	for (const line of text.split('\n')) {
		const link = links
			.find((one) => new TextReader().read(one.childNodes).trim() === line.trim())
			?.getAttribute('href')
			?.trim();
		rows.push(new Map([[0, plainCell(line, link && linkPattern.test(link) ? link : undefined)]]));
	}
}

/** The tables of a document, and the lines before, between and after them. */
function readParts(element: Element, styles: Styles, locale: Locale, rows: PastedRows): void {
	let lines: Node[] = [];
	const endLines = () => {
		readLines(lines, rows);
		lines = [];
	};
	for (const node of element.childNodes) {
		const child = node.nodeType === 1 ? (node as Element) : null;
		if (child && unread.has(child.localName)) continue;
		if (!child || !(child.localName === 'table' || child.querySelector('table'))) lines.push(node);
		else {
			endLines();
			if (child.localName === 'table') readTableRows(child, styles, locale, rows);
			else readParts(child, styles, locale, rows);
		}
	}
	endLines();
}

/**
 * The cells of HTML that has a table, or of which a whole line is a link. Null: there is neither, so that the plain text says
 * all that cells can store.
 */
export function readHtml(html: string, locale: Locale): PastedRows | null {
	const document = new DOMParser().parseFromString(html, 'text/html');
	const rows: PastedRows = [];
	readParts(document.body, new Styles(document), locale, rows);
	const hasTable = document.body.querySelector('table') !== null;
	return rows.length > 0 && (hasTable || rows.some((row) => row.get(0)?.link)) ? rows : null;
}

/** Plain text as cells. */
export function cellsOfRows(rows: string[][]): PastedRows {
	return rows.map((row) => new Map(row.map((text, col) => [col, plainCell(text)])));
}
