// kept.ts - what of a tab is kept as properties, though sheets do not show it: notes, validations, conditional formats, filters, tables,
// what is printed, and names.
import { wholeSheet } from '../../../gateway/web/src/sheet/arrange';
import { maxCols, maxRows } from '../../../gateway/web/src/v2/lines';
import type { PropertyEdit, Range } from '../../../gateway/web/src/v2/messages';
import { keys, pageElements, type Tree, TreeReader } from '../trees';
import type { Colours } from './colours';
import { rangeOf } from './sheet';
import type { Attributes } from './xml';

export interface KeptProperty extends PropertyEdit {
	/** What it is to people. */
	what: string;
	count: number;
	/** Bytes of its key and value. */
	size: number;
}

/** A name of the workbook. */
export interface KeptName {
	name: string;
	text: string;
	/** Only in formulas of its tab. */
	local: boolean;
	hidden: boolean;
}

const mostBytes = 32_000;
const words: Record<string, string> = { dataValidation: 'validations', conditionalFormatting: 'conditional formats', autoFilter: 'filters' };
export const isKept = (name: string): boolean => Object.hasOwn(words, name) || pageElements.includes(name);

/** Colours of the theme as they are. */
export const plainColours = (colours: Colours) => (name: string, attributes: Attributes) => {
	const rgb = /^(color|fgColor|bgColor)$/.test(name) ? colours.read(attributes) : undefined;
	return rgb === undefined ? attributes : { rgb: `FF${rgb.slice(1).toUpperCase()}` };
};

const rangesOf = (references: string | undefined): Range[] | undefined => {
	const ranges = (references ?? '').trim().split(/\s+/).map(rangeOf);
	const fits = ranges.every((range) => range && range.toRow < maxRows && range.toCol < maxCols);
	return fits ? (ranges as Range[]) : undefined;
};

export class Kept {
	private tree: TreeReader | undefined;
	private readonly list: KeptProperty[] = [];
	private readonly conditional = new Map<string, { range: Range; trees: Tree[] }>();
	private readonly page: Tree[] = [];

	/** dxf: a format that rules name by its number. lose: what cannot be kept. */
	constructor(
		private readonly colours: Colours,
		private readonly dxf: (index: string) => Tree | undefined,
		private readonly lose: (what: string) => void,
	) {}

	get isOpen(): boolean {
		return this.tree !== undefined;
	}

	open(name: string, attributes: Attributes): boolean {
		this.tree ??= new TreeReader(plainColours(this.colours));
		return this.tree.begin(name, attributes);
	}

	text(text: string): void {
		this.tree?.text(text);
	}

	close(): void {
		const tree = this.tree!.end();
		if (!tree) return;
		this.tree = undefined;
		this.take(tree);
	}

	private take([name, attributes, ...children]: Tree): void {
		const { sqref, ref, ...others } = attributes;
		if (pageElements.includes(name)) return void this.page.push([name, attributes, ...children]);
		const ranges = rangesOf(name === 'autoFilter' ? ref : sqref);
		if (!ranges) return this.lose(words[name]!);
		const tree: Tree = [name, others, ...children];
		if (name === 'conditionalFormatting') return this.rules(ranges, tree);
		const key = name === 'autoFilter' ? keys.filter : keys.validation;
		for (const [i, range] of ranges.entries()) this.add({ ...range, key, value: tree, what: words[name]!, count: i === 0 ? 1 : 0 });
	}

	/** Of one range may be several rules. */
	private rules(ranges: Range[], tree: Tree): void {
		for (const child of tree) {
			if (!Array.isArray(child)) continue;
			const { dxfId, ...attributes } = child[1];
			const format = dxfId === undefined ? undefined : this.dxf(dxfId);
			child[1] = attributes;
			if (format) child.push(format);
		}
		for (const range of ranges) {
			const name = Object.values(range).join();
			const entry = this.conditional.get(name) ?? { range, trees: [] };
			entry.trees.push(tree);
			this.conditional.set(name, entry);
		}
	}

	note(reference: string | undefined, text: string, author: string): void {
		const range = rangeOf(reference);
		if (range) this.add({ ...range, key: keys.note, value: { text, author }, what: 'notes', count: 1 });
		else this.lose('notes');
	}

	table(range: Range, tree: Tree): void {
		this.add({ ...range, key: keys.table, value: tree, what: 'tables', count: 1 });
	}

	/** Of values that several ranges have. */
	private readonly sizes = new Map<unknown, number>();

	private add(property: Omit<KeptProperty, 'size'>): void {
		let size = this.sizes.get(property.value);
		if (size === undefined) this.sizes.set(property.value, (size = Buffer.byteLength(JSON.stringify(property.value))));
		if (size <= mostBytes) this.list.push({ ...property, size: size + property.key.length });
		else this.lose(property.what);
	}

	properties(names: KeptName[]): KeptProperty[] {
		for (const { range, trees } of this.conditional.values())
			this.add({ ...range, key: keys.conditional, value: trees, what: words['conditionalFormatting']!, count: trees.flat().filter(Array.isArray).length });
		if (this.page.length > 0)
			this.add({ ...wholeSheet, key: keys.page, value: this.page, what: 'print settings', count: this.page.some(([name]) => name !== 'pageMargins') ? 1 : 0 });
		if (names.length > 0) this.add({ ...wholeSheet, key: keys.names, value: names, what: 'defined names', count: names.length });
		return this.list;
	}
}
