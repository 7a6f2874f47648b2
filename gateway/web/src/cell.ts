// cell.ts - converts between the text of a cell (content.ts) and Univer's cell data.
import { CellValueType } from '@univerjs/core';
import type { ICellData, IDocumentData, IStyleData, Nullable, Styles } from '@univerjs/core';
import { formattedContent, isNumberText, parseContent, textContent } from './content';
import { isTextFormat } from './paste/value';
import { knownStyle } from './style';

const formatted = (number: number, pattern: string): ICellData => ({ v: number, t: CellValueType.NUMBER, s: { n: { pattern } } });

/** A complete cell, for a new sheet. `pattern`: its number format. A date that a program writes into a cell of texts is a text. */
export function cellOfContent(content: string, pattern?: string): ICellData | null {
	const parsed = parseContent(content);
	const isDate = parsed.kind === 'date' || parsed.kind === 'time';
	const value = isDate && isTextFormat(pattern) ? { kind: 'text' as const, text: content, forced: false } : parsed;
	switch (value.kind) {
		case 'empty':
			return null;
		case 'formula':
			return { f: value.formula };
		case 'number':
			return { v: value.number, t: CellValueType.NUMBER };
		case 'boolean':
			return { v: value.boolean ? 1 : 0, t: CellValueType.BOOLEAN };
		case 'date':
			return formatted(value.serial, value.hasTime ? 'yyyy-mm-dd hh:mm:ss' : 'yyyy-mm-dd');
		case 'time':
			return formatted(value.serial, value.serial >= 1 ? '[h]:mm:ss' : value.hasSeconds ? 'hh:mm:ss' : 'hh:mm');
		case 'text':
			return {
				v: value.text,
				t: value.forced ? CellValueType.FORCE_STRING : CellValueType.STRING,
				...(value.text.includes('\n') && { p: documentOf(value.text) }),
			};
	}
}

/** Univer shows and edits a text of several lines as a document. */
export function documentOf(text: string): IDocumentData {
	const dataStream = `${text.replace(/\r?\n/g, '\r')}\r\n`;
	const paragraphs = [...dataStream.matchAll(/\r/g)].map(({ index }) => ({ startIndex: index }));
	return { id: 'cell', documentStyle: {}, body: { dataStream, paragraphs, textRuns: [], customRanges: [] } };
}

export const textOfDocument = ({ body }: IDocumentData): string => body?.dataStream.replace(/\r\n$/, '').replace(/\r/g, '\n') ?? '';

/**
 * Formats and links of parts of a text are not stored: takes them out of a cell that the user writes. A format of the whole
 * text becomes the cell's. Returns whether something is gone.
 */
export function makePlain(cell: ICellData): boolean {
	const body = cell.p?.body;
	if (!body) return false;
	const { textRuns = [], customRanges = [], dataStream } = body;
	const styled = textRuns.filter(({ ts }) => ts && Object.keys(ts).length > 0);
	const ofAll = styled.length === 1 && styled[0]!.st === 0 && styled[0]!.ed >= dataStream.length - 2;
	if (ofAll && typeof cell.s !== 'string') cell.s = { ...cell.s, ...styled[0]!.ts } as IStyleData;
	const text = dataStream.replace(/\r\n$/, '');
	if (text.includes('\r')) cell.p!.body = { ...body, textRuns: [], customRanges: [] };
	else Object.assign(cell, { v: text, t: CellValueType.STRING, p: null });
	return (styled.length > 0 && !ofAll) || customRanges.length > 0;
}

/** Univer takes 0x1F and Infinity as numbers, which no other page does. */
export function settleType(cell: ICellData): void {
	if (typeof cell.v !== 'string' || cell.f || cell.t === CellValueType.STRING || cell.t === CellValueType.FORCE_STRING || cell.t === CellValueType.BOOLEAN)
		return;
	if (cell.v.trim() !== '' && !Number.isNaN(Number(cell.v)) && !isNumberText(cell.v.trim())) cell.t = CellValueType.STRING;
}

/** Marks a cell whose format only shows its date or time, and is not stored: it goes with them. */
export const implied = (format: string) => (impliedMarks[format] ??= { impliedFormat: format });
const impliedMarks: Record<string, { impliedFormat: string }> = {};

/** Whether the format of a cell is that of the date or time in it, and not stored. */
const isImplied = (cell: Nullable<ICellData>, style: Nullable<IStyleData>) => !!style?.n && cell?.custom?.impliedFormat === style.n.pattern;

/** A patch of the user empties a cell: the format that is not stored goes, too. */
export function leaveImplied(patch: ICellData, old: Nullable<ICellData>, styles: Styles): void {
	const empties = 'v' in patch && (patch.v ?? '') === '' && !patch.f && !patch.si && !patch.p;
	if (!empties || patch.s === null || !isImplied(old, styles.getStyleByCell(old))) return;
	patch.custom = null;
	const style = typeof patch.s === 'string' ? styles.get(patch.s) : patch.s;
	patch.s = { ...style, n: null };
}

/** The same as a patch of an existing cell: removed properties are null. style: that of the cell, unless it gets another one. */
export function patchOfContent(content: string, style: Nullable<IStyleData>, old?: Nullable<ICellData>): ICellData {
	const goes = isImplied(old, style);
	const format = goes ? undefined : style?.n?.pattern;
	const { s, ...cell } = cellOfContent(content, format) ?? {};
	const patch: ICellData = { v: null, f: null, si: null, p: null, ...cell };
	// Without a format, a date would show as a number.
	if (s && !format) Object.assign(patch, { s, custom: implied((s as IStyleData).n!.pattern) });
	else if (goes) Object.assign(patch, { s: { n: null }, custom: null });
	return patch;
}

/** A patch with which a received style replaces the old one: properties that it lacks are null. */
export function stylePatch(style: IStyleData, oldStyle: Nullable<IStyleData>): IStyleData {
	const patch: Record<string, unknown> = {};
	for (const key of Object.keys(oldStyle ?? {})) patch[key] = null;
	return { ...patch, ...style } as IStyleData;
}

/** What Univer can show of a stored style: another client may store any JSON, or the JSON text of a style. */
export function styleOfInfo(info: unknown): IStyleData | null {
	let value = info;
	if (typeof value === 'string') {
		try {
			value = JSON.parse(value);
		} catch {
			return null;
		}
	}
	return knownStyle(value) as IStyleData | null;
}

/** The content of a cell, for the server. The caller resolves shared formulas. */
export function contentOfCell(cell: Nullable<ICellData>, formula: Nullable<string>, style: Nullable<IStyleData>): string {
	if (formula) return formula;
	if (!cell) return '';
	if (cell.p?.body) return textContent(textOfDocument(cell.p));
	const { v } = cell;
	if (v === undefined || v === null || v === '') return '';
	if (cell.t === CellValueType.BOOLEAN || typeof v === 'boolean') return v === 1 || v === true || v === '1' ? 'TRUE' : 'FALSE';
	if (cell.t === CellValueType.FORCE_STRING) return textContent(String(v));
	if (typeof v === 'number') return formattedContent(v, style?.n?.pattern);
	return textContent(String(v));
}

/** The value of a cell without a formula; undefined: it is empty. */
export function valueOf(cell: Nullable<ICellData>): number | string | boolean | undefined {
	if (!cell) return undefined;
	if (cell.p?.body) return cell.p.body.dataStream.replace(/\r\n$/, '').replace(/\r/g, '\n');
	const { v, t } = cell;
	if (v === null || v === undefined || v === '') return undefined;
	if (t === CellValueType.BOOLEAN) return v === 1 || v === true || v === '1';
	if (t === CellValueType.NUMBER && !Number.isNaN(Number(v))) return Number(v);
	return t === CellValueType.STRING || t === CellValueType.FORCE_STRING ? String(v) : v;
}
