// trees.ts - elements of a workbook that sheets do not have, as JSON: [name, attributes, ...children]. They are kept as properties of
// the sheet (docs/design/workbooks.md), and are elements again in the workbook that is made of it.
import { escapeXml } from './write/xml';

export type Tree = [name: string, attributes: Record<string, string>, ...children: (Tree | string)[]];

/** The keys of the properties. */
export const keys = {
	note: 'xlsx.note',
	validation: 'xlsx.validation',
	conditional: 'xlsx.conditional',
	filter: 'xlsx.filter',
	table: 'xlsx.table',
	page: 'xlsx.page',
	names: 'xlsx.names',
	picture: 'xlsx.picture',
};

/** Elements of a tab's page, in their order. */
export const pageElements = ['printOptions', 'pageMargins', 'pageSetup', 'headerFooter', 'rowBreaks', 'colBreaks'];

const mostDepth = 20;
const namePattern = /^[A-Za-z][A-Za-z0-9]{0,40}$/;

/** Takes the events of an element and of what is in it. */
export class TreeReader {
	private readonly open: Tree[] = [];

	/** change: of attributes. */
	constructor(private readonly change: (name: string, attributes: Record<string, string>) => Record<string, string> = (_, attributes) => attributes) {}

	/** False: what is in the element is passed over. */
	begin(name: string, attributes: Record<string, string>): boolean {
		if (name === 'extLst' || this.open.length === mostDepth) return false;
		const plain = Object.entries(this.change(name, attributes)).filter(([key]) => namePattern.test(key));
		const tree: Tree = [name, Object.fromEntries(plain)];
		this.open.at(-1)?.push(tree);
		this.open.push(tree);
		return true;
	}

	text(text: string): void {
		const top = this.open.at(-1)!;
		if (text.trim() === '') return;
		if (typeof top.at(-1) === 'string') top[top.length - 1] += text;
		else top.push(text);
	}

	/** The tree, when it is complete. */
	end(): Tree | undefined {
		const tree = this.open.pop();
		return this.open.length === 0 ? tree : undefined;
	}
}

/** Whether a value of a property is a tree: others may have set any. */
export function isTree(value: unknown, names?: readonly string[], depth = 0): value is Tree {
	if (!Array.isArray(value) || depth > mostDepth) return false;
	const [name, attributes, ...children] = value as unknown[];
	return (
		typeof name === 'string' &&
		namePattern.test(name) &&
		(names === undefined || names.includes(name)) &&
		typeof attributes === 'object' &&
		attributes !== null &&
		Object.entries(attributes).every(([key, text]) => namePattern.test(key) && typeof text === 'string') &&
		children.every((child) => typeof child === 'string' || isTree(child, undefined, depth + 1))
	);
}

/** more: attributes that the tree has not, or has otherwise. */
export function treeXml([name, attributes, ...children]: Tree, more = ''): string {
	const own = Object.entries(attributes)
		.filter(([key]) => !more.includes(` ${key}=`))
		.map(([key, text]) => ` ${key}="${escapeXml(text)}"`)
		.join('');
	const inside = children.map((child) => (typeof child === 'string' ? escapeXml(child) : treeXml(child))).join('');
	return inside === '' ? `<${name}${more}${own}/>` : `<${name}${more}${own}>${inside}</${name}>`;
}
