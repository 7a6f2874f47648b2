// kept.ts - what an import has kept of a workbook (read/kept.ts), as elements again. Others may have set any values: what is none of
// these is left out.
import { cellName, rangeName } from '../../../gateway/web/src/content';
import type { PropertyEdit } from '../../../gateway/web/src/v2/messages';
import type { PropertySet } from '../../../gateway/web/src/v2/properties';
import type { KeptName } from '../read/kept';
import { isTree, keys, pageElements, type Tree, treeXml } from '../trees';
import type { StyleTables } from './styles';
import { escapeText, escapeXml, head, namespaces } from './xml';

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Ranges by the value that they have: one element says it of all. */
function byValue(properties: PropertyEdit[]): Map<string, { value: unknown; ranges: string[] }> {
	const groups = new Map<string, { value: unknown; ranges: string[] }>();
	for (const property of properties) {
		const name = JSON.stringify(property.value);
		const group = groups.get(name) ?? { value: property.value, ranges: [] };
		group.ranges.push(rangeName(property));
		groups.set(name, group);
	}
	return groups;
}

export function filterOf(properties: PropertySet): PropertyEdit | undefined {
	return properties.of(keys.filter).find(({ value }) => isTree(value, ['autoFilter']));
}

/** The elements before the merged cells. */
export function filterXml(properties: PropertySet): string {
	const filter = filterOf(properties);
	return filter ? treeXml(filter.value as Tree, ` ref="${rangeName(filter)}"`) : '';
}

/** The range of the filter, as names have it; undefined: there is none. */
export function filterRange(properties: PropertySet): string | undefined {
	const filter = filterOf(properties);
	return filter && rangeName(filter).replace(/([A-Z]+)([0-9]+)/g, '$$$1$$$2');
}

/** A rule whose formulas have the names that the workbook has for tabs; null: one names a tab that is not there. */
function withTabs(tree: Tree, rename: (formula: string) => string | null): Tree | null {
	const [name, attributes, ...children] = tree;
	if (/^formula[12]?$/.test(name)) {
		const formula = rename(children.filter((child) => typeof child === 'string').join(''));
		return formula === null ? null : [name, attributes, formula];
	}
	const inside = children.map((child) => (typeof child === 'string' ? child : withTabs(child, rename)));
	return inside.includes(null) ? null : [name, attributes, ...(inside as (Tree | string)[])];
}

/** Those behind them. */
export function rulesXml(properties: PropertySet, styles: StyleTables, rename: (formula: string) => string | null): string {
	const rule = (kept: Tree): string => {
		const tree = withTabs(kept, rename);
		if (!tree) return '';
		const [name, attributes, ...children] = tree;
		const format = children.find((child) => isTree(child, ['dxf'])) as Tree | undefined;
		const others = children.filter((child) => child !== format);
		return treeXml([name, attributes, ...others], format && ` dxfId="${styles.dxf(treeXml(format))}"`);
	};
	const conditional = [...byValue(properties.of(keys.conditional)).values()].flatMap(({ value, ranges }) => {
		const trees = Array.isArray(value) ? value.filter((tree) => isTree(tree, ['conditionalFormatting'])) : [];
		return trees.map(([name, attributes, ...rules]: Tree) => {
			const inside = rules.map((one) => (isTree(one, ['cfRule']) ? rule(one) : '')).join('');
			return inside && `${treeXml([name, attributes], ` sqref="${ranges.join(' ')}"`).slice(0, -2)}>${inside}</${name}>`;
		});
	});
	const validations = [...byValue(properties.of(keys.validation)).values()].flatMap(({ value, ranges }) => {
		const tree = isTree(value, ['dataValidation']) ? withTabs(value, rename) : null;
		return tree ? [treeXml(tree, ` sqref="${ranges.join(' ')}"`)] : [];
	});
	const validated = validations.length > 0 ? `<dataValidations count="${validations.length}">${validations.join('')}</dataValidations>` : '';
	return conditional.join('') + validated;
}

/** Those behind the links. */
export function pageXml(properties: PropertySet): string {
	const [page] = properties.of(keys.page);
	const trees = Array.isArray(page?.value) ? page.value.filter((tree): tree is Tree => isTree(tree, pageElements)) : [];
	return pageElements
		.map((name) => trees.filter(([one]) => one === name).slice(0, 1))
		.map((some) => some.map((tree) => treeXml(tree)).join(''))
		.join('');
}

/** The names that the properties of a tab have. */
export function namesOf(properties: PropertySet): KeptName[] {
	const [names] = properties.of(keys.names);
	if (!Array.isArray(names?.value)) return [];
	return names.value.filter((name): name is KeptName => isFields(name) && typeof name['name'] === 'string' && typeof name['text'] === 'string');
}

interface Note {
	row: number;
	col: number;
	text: string;
	author: string;
}

export const notesOf = (properties: PropertySet): Note[] =>
	properties
		.of(keys.note)
		.filter(({ value }) => isFields(value) && typeof value['text'] === 'string')
		.map(({ row, col, value }) => ({ row, col, text: (value as Fields)['text'] as string, author: String((value as Fields)['author'] ?? '') }))
		.sort((a, b) => a.row - b.row || a.col - b.col);

export function notesXml(notes: Note[]): string {
	const authors = [...new Set(notes.map(({ author }) => author))];
	const list = notes.map(
		({ row, col, text, author }) =>
			`<comment ref="${cellName(row, col)}" authorId="${authors.indexOf(author)}"><text><t xml:space="preserve">${escapeText(text)}</t></text></comment>`,
	);
	return `${head}<comments xmlns="${namespaces.main}"><authors>${authors.map((author) => `<author>${escapeXml(author)}</author>`).join('')}</authors><commentList>${list.join('')}</commentList></comments>`;
}

/** The boxes in which programs show notes. */
export function boxesXml(notes: Note[]): string {
	const boxes = notes.map(
		({ row, col }, i) =>
			`<v:shape id="_x0000_s${1025 + i}" type="#_x0000_t202" style="position:absolute;width:144px;height:79px;visibility:hidden" fillcolor="#ffffe1" o:insetmode="auto"><v:fill color2="#ffffe1"/><v:shadow color="black" obscured="t"/><v:path o:connecttype="none"/><v:textbox/><x:ClientData ObjectType="Note"><x:MoveWithCells/><x:SizeWithCells/><x:AutoFill>False</x:AutoFill><x:Row>${row}</x:Row><x:Column>${col}</x:Column></x:ClientData></v:shape>`,
	);
	const type =
		'<v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202" path="m,l,21600r21600,l21600,xe"><v:stroke joinstyle="miter"/><v:path gradientshapeok="t" o:connecttype="rect"/></v:shapetype>';
	return `<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:x="urn:schemas-microsoft-com:office:excel">${type}${boxes.join('')}</xml>`;
}
