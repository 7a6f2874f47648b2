// typed.ts - what is typed into a cell means what it would mean if it were pasted (src/paste/value.ts), on every page. Univer's own
// reading depends on neither the user's language nor the database: it takes 0x1F as a number, and 03/04/2024 as a day in March.
import { DOCS_NORMAL_EDITOR_UNIT_ID_KEY, IUniverInstanceService, numfmt, UniverInstanceType } from '@univerjs/core';
import type { DocumentDataModel, ICellData, IStyleData, Nullable, Styles } from '@univerjs/core';
import { AFTER_CELL_EDIT, BEFORE_CELL_EDIT, SheetInterceptorService } from '@univerjs/sheets';
import { formatTime, numberContent, parseContent } from '../../content';
import { localeOf } from '../../paste/locale';
import { typedText, typedValue } from '../../paste/value';
import { cellOfContent, contentOfCell, documentOf, textOfDocument } from '../../cell';
import { withoutDerived } from '../formulas/values';
import type { GridParts } from '../parts';

const language = () => localeOf(navigator.language);

/** The content for a text that the user has typed, or has begun to type. */
export const typedContent = (text: string, format?: string): string => typedValue(text, language(), format).content;

/** What the user has typed, as Univer's editor submits it; null if it is a formula. */
function submittedText({ v, f, si, p, t }: ICellData): string | null {
	if (f || si) return null;
	if (p) return p.body ? textOfDocument(p) : null;
	if (v === undefined || v === null || v === '') return null;
	// Univer has taken the apostrophe.
	return `${t === 4 ? "'" : ''}${String(v).replace(/\r/g, '\n')}`;
}

/** Univer has changed the letters of some words, such as true. The editor still has them as they were typed. */
function asTyped(text: string, { injector }: GridParts): string {
	const editor = injector.get(IUniverInstanceService).getUnit<DocumentDataModel>(DOCS_NORMAL_EDITOR_UNIT_ID_KEY, UniverInstanceType.UNIVER_DOC);
	const typed = editor?.getBody() && textOfDocument(editor.getSnapshot());
	const plain = (letters: string) => letters.normalize('NFKC').toLowerCase();
	return typed && plain(typed) === plain(text) ? typed : text;
}

const kindOf = (pattern: string) => numfmt.getFormatInfo(pattern).type ?? pattern;

/** Whether a value is shown in its own format: the cell has none, or one for other values. */
function bringsFormat(pattern: string | undefined, old: string | undefined): pattern is string {
	return pattern !== undefined && (!old || kindOf(old) !== kindOf(pattern));
}

function typedCell(value: ICellData, text: string, styles: Styles): ICellData {
	const style = typeof value.s === 'string' ? styles.get(value.s) : value.s;
	const format = style?.n?.pattern;
	const { content, pattern } = typedValue(text, language(), format);
	const { s, ...cell } = cellOfContent(content, format) ?? {};
	const parsed = parseContent(content);
	// Formats of a part of the text are refused later, with a message.
	if (parsed.kind === 'text' && !parsed.forced && value.p && parsed.text === text) return value;
	const wanted = pattern ?? (s as IStyleData | undefined)?.n?.pattern;
	return { ...value, f: null, si: null, p: null, ...cell, ...(bringsFormat(wanted, format) && { s: { ...style, n: { pattern: wanted } } }) };
}

/** What the editor shows for a cell, if that is not what the cell shows: typing it gives the same content again. */
export function editedText(content: string, pattern: string | undefined): string | null {
	const value = parseContent(content);
	if (value.kind === 'text') {
		const text = typedText(value.text, language(), pattern);
		return text === value.text && !value.forced ? null : text;
	}
	if (value.kind === 'time') return formatTime(value.serial).replace(/^([0-9]+:[0-9]{2}):00$/, '$1');
	if (value.kind === 'date') {
		const time = value.hasTime ? ` ${formatTime(value.serial % 1)}` : '';
		return numfmt.format(language().datePattern, Math.floor(value.serial)) + time;
	}
	if (value.kind !== 'number') return null;
	// The cell may show a rounded value.
	const percent = `${numberContent(Number(`${content}e2`))}%`;
	return pattern && numfmt.getFormatInfo(pattern).isPercent && typedContent(percent, pattern) === content ? percent : content;
}

function editedCell(cell: ICellData, raw: ICellData, style: Nullable<IStyleData>): ICellData | null {
	const content = contentOfCell(raw, null, style);
	const text = editedText(content, style?.n?.pattern);
	if (text === null) return null;
	return { ...cell, t: 1, v: text, p: text.includes('\n') ? documentOf(text) : null };
}

/** Listens until the returned function is called. */
export function addTyped(parts: GridParts): () => void {
	const { writeCellInterceptor } = parts.injector.get(SheetInterceptorService);
	const after = writeCellInterceptor.intercept(AFTER_CELL_EDIT, {
		priority: 1000,
		handler(submitted, { workbook, worksheet, row, col }, next) {
			const value = submitted && withoutDerived(submitted, worksheet.getCellRaw(row, col), workbook.getStyles());
			const text = value && submittedText(value);
			return text ? typedCell(value, asTyped(text, parts), workbook.getStyles()) : next(value);
		},
	});
	const before = writeCellInterceptor.intercept(BEFORE_CELL_EDIT, {
		priority: 1000,
		handler(value, { workbook, worksheet, row, col }, next) {
			const shown = next(value);
			const raw = worksheet.getCellRaw(row, col);
			if (!raw || raw.f || raw.si || shown?.f) return shown;
			return editedCell(shown ?? {}, raw, workbook.getStyles().getStyleByCell(raw)) ?? shown;
		},
	});
	return () => {
		after();
		before();
	};
}
