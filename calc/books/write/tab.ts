// tab.ts - a sheet as the XML of a tab, in pieces.
import { rangeName } from '../../../gateway/web/src/content';
import { freezeOf, mergesOf, type Run, runsOf } from '../../../gateway/web/src/sheet/arrange';
import { maxCols, maxRows } from '../../../gateway/web/src/v2/lines';
import type { PropertySet } from '../../../gateway/web/src/v2/properties';
import { heightOfPixels, widthOfPixels } from '../formats';
import { workbookRows } from '../formulas';
import type { Cells } from './cells';
import { filterXml, notesOf, pageXml, rulesXml } from './kept';
import type { StyleTables } from './styles';
import { attributes, escapeXml, head, namespaces } from './xml';

const mostLines = 200_000;
const pieceCharacters = 1 << 16;

export interface Tab {
	name: string;
	colour: string | null;
	hidden: boolean;
	properties: PropertySet;
	cells: Cells;
}

const sizeOf = ({ property }: Run): number | undefined => (typeof property.value === 'number' && property.value > 0 ? property.value : undefined);
const isHidden = ({ property }: Run): boolean => property.value === true;

/** Ranges of columns with their widths. */
function columnsXml(properties: PropertySet): string {
	const [widths, hidden] = [runsOf(properties, 'width', false), runsOf(properties, 'hidden', false).filter(isHidden)];
	const edges = [...new Set([...widths, ...hidden].flatMap(({ first, last }) => [first, last + 1]))].sort((a, b) => a - b);
	const at = (runs: Run[], col: number) => runs.find(({ first, last }) => first <= col && col <= last);
	const columns = edges.slice(0, -1).flatMap((first, i) => {
		const last = Math.min(edges[i + 1]!, maxCols) - 1;
		const size = at(widths, first);
		const pixels = size && sizeOf(size);
		const isGone = at(hidden, first) !== undefined;
		if (pixels === undefined && !isGone) return [];
		const width = pixels === undefined ? 9.140625 : Math.min(widthOfPixels(pixels), 255);
		return [`<col${attributes({ min: first + 1, max: last + 1, width, customWidth: pixels && 1, hidden: isGone ? 1 : undefined })}/>`];
	});
	return columns.length > 0 ? `<cols>${columns.join('')}</cols>` : '';
}

/** From this row on all are hidden; undefined: they are not, or there are too many before. */
const hiddenFrom = (properties: PropertySet): number | undefined =>
	runsOf(properties, 'hidden', true).find((run) => isHidden(run) && run.last >= workbookRows - 1 && run.first <= mostLines)?.first;

/** The attributes of rows, by their numbers. Heights of all rows are left out. */
function rowAttributes(properties: PropertySet, rows: number): Map<number, string> {
	const values = new Map<number, string>();
	const put = (runs: Run[], text: (run: Run) => string) => {
		for (const run of runs) {
			if (run.last >= maxRows - 1) continue;
			for (let row = run.first; row <= Math.min(run.last, rows - 1) && values.size < mostLines; row++) values.set(row, (values.get(row) ?? '') + text(run));
		}
	};
	put(
		runsOf(properties, 'height', true).filter((run) => sizeOf(run) !== undefined),
		(run) => attributes({ ht: Math.min(heightOfPixels(sizeOf(run)!), 409), customHeight: 1 }),
	);
	put(
		runsOf(properties, 'hidden', true).filter((run) => isHidden(run) && run.last < workbookRows - 1),
		() => ' hidden="1"',
	);
	// Rows are hidden unless the tab names them: it names those before.
	for (let row = 0; row < (hiddenFrom(properties) ?? 0); row++) if (!values.has(row)) values.set(row, '');
	return values;
}

function viewXml(properties: PropertySet): string {
	const { rows, cols } = freezeOf(properties);
	if (rows === 0 && cols === 0) return '';
	const corner = rangeName({ row: rows, col: cols, toRow: rows, toCol: cols });
	const pane = rows > 0 && cols > 0 ? 'bottomRight' : rows > 0 ? 'bottomLeft' : 'topRight';
	const values = { xSplit: cols || undefined, ySplit: rows || undefined, topLeftCell: corner, activePane: pane, state: 'frozen' };
	return `<sheetViews><sheetView workbookViewId="0"><pane${attributes(values)}/></sheetView></sheetViews>`;
}

function formatXml(properties: PropertySet): string {
	const all = runsOf(properties, 'height', true).find(({ last }) => last >= maxRows - 1);
	const pixels = all && sizeOf(all);
	const zeroHeight = hiddenFrom(properties) === undefined ? undefined : 1;
	return pixels === undefined
		? `<sheetFormatPr${attributes({ defaultRowHeight: 15, zeroHeight })}/>`
		: `<sheetFormatPr${attributes({ defaultRowHeight: heightOfPixels(pixels), customHeight: 1, zeroHeight })}/>`;
}

export interface Shared {
	styles: StyleTables;
	text: (text: string) => number;
	rename: (formula: string) => string | null;
	/** How many the tab has. */
	tables: number;
	hasDrawing: boolean;
}

/** The tab in pieces. Its links are in tab.cells.links afterwards. */
export function* tabXml({ colour, properties, cells }: Tab, { styles, text, rename, tables, hasDrawing }: Shared): Generator<string> {
	yield `${head}<worksheet xmlns="${namespaces.main}" xmlns:r="${namespaces.relations}">`;
	if (colour) yield `<sheetPr><tabColor rgb="FF${colour.slice(1).toUpperCase()}"/></sheetPr>`;
	if (cells.lastRow >= 0) yield `<dimension ref="${rangeName({ row: 0, col: 0, toRow: cells.lastRow, toCol: cells.lastCol })}"/>`;
	yield viewXml(properties) + formatXml(properties) + columnsXml(properties);
	yield '<sheetData>';
	const rows = rowAttributes(properties, workbookRows);
	const hidden = hiddenFrom(properties) ?? maxRows;
	const lines = [...rows.keys()].sort((a, b) => a - b);
	let piece = '';
	let line = 0;
	let open = -1;
	const begin = (row: number): void => {
		if (open >= 0) piece += '</row>';
		// Rows without cells that have sizes, or are hidden.
		for (; line < lines.length && lines[line]! < row; line++) if (lines[line] !== open) piece += `<row r="${lines[line]! + 1}"${rows.get(lines[line]!)}/>`;
		open = row;
		if (row < maxRows) piece += `<row r="${row + 1}"${rows.get(row) ?? ''}${row >= hidden ? ' hidden="1"' : ''}>`;
	};
	for (const key of cells.keys()) {
		const row = Math.floor(key / maxCols);
		if (row !== open) begin(row);
		piece += cells.xml(key, styles, text, rename);
		if (piece.length < pieceCharacters) continue;
		yield piece;
		piece = '';
	}
	begin(maxRows);
	yield `${piece}</sheetData>${filterXml(properties)}`;
	const merges = mergesOf(properties).filter(({ toRow }) => toRow < workbookRows);
	if (merges.length > 0) yield `<mergeCells count="${merges.length}">${merges.map((merge) => `<mergeCell ref="${rangeName(merge)}"/>`).join('')}</mergeCells>`;
	yield rulesXml(properties, styles, rename);
	if (cells.links.length > 0) yield `<hyperlinks>${cells.links.map(linkXml).join('')}</hyperlinks>`;
	yield pageXml(properties);
	if (hasDrawing) yield '<drawing r:id="rIdDrawing"/>';
	if (notesOf(properties).length > 0) yield '<legacyDrawing r:id="rIdBoxes"/>';
	if (tables > 0)
		yield `<tableParts count="${tables}">${Array.from({ length: tables }, (_, i) => `<tablePart r:id="rIdTable${i + 1}"/>`).join('')}</tableParts>`;
	yield '</worksheet>';
}

const linkXml = ({ name, link }: { name: string; link: string }, i: number): string =>
	link.startsWith('#') ? `<hyperlink ref="${name}" location="${escapeXml(link.slice(1))}"/>` : `<hyperlink ref="${name}" r:id="rId${i + 1}"/>`;

/** What a tab refers to; undefined: nothing. n: its number. tables: the ids of its tables. */
export function relationsXml({ cells, properties }: Tab, n: number, tables: number[], hasDrawing: boolean): string | undefined {
	const relation = (Id: string, type: string, Target: string, TargetMode?: string) =>
		`<Relationship${attributes({ Id, Type: `${namespaces.relations}/${type}`, Target, TargetMode })}/>`;
	const relations = cells.links.flatMap(({ link }, i) => (link.startsWith('#') ? [] : [relation(`rId${i + 1}`, 'hyperlink', link, 'External')]));
	if (notesOf(properties).length > 0)
		relations.push(relation('rIdNotes', 'comments', `../comments${n}.xml`), relation('rIdBoxes', 'vmlDrawing', `../drawings/vmlDrawing${n}.vml`));
	if (hasDrawing) relations.push(relation('rIdDrawing', 'drawing', `../drawings/drawing${n}.xml`));
	tables.forEach((id, i) => relations.push(relation(`rIdTable${i + 1}`, 'table', `../tables/table${id}.xml`)));
	return relations.length > 0 ? `${head}<Relationships xmlns="${namespaces.packageRelations}">${relations.join('')}</Relationships>` : undefined;
}
