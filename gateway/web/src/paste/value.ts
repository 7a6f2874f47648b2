// value.ts - the content of a cell for a text that was typed or pasted, and for a value that another spreadsheet shows.
import { getNumfmtParseValueFilter, numfmt } from '@univerjs/core';
import {
	formattedContent,
	formatTime,
	isDateFormat,
	isNumberText,
	isTimeFormat,
	losesDigits,
	numberContent,
	parseContent,
	parseTime,
	textContent,
} from '../content';
import { orderOf, readDate, readTime } from './dates';
import type { Locale } from './locale';
import type { Marks } from './marks';

/** A content, and the number format that it brings. */
export interface Value {
	content: string;
	/** undefined: that of the cell. */
	pattern?: string | undefined;
}

const textFormat = '@';

const timePatterns = { minutes: 'hh:mm', seconds: 'hh:mm:ss', hours: '[h]:mm:ss', half: 'h:mm AM/PM', halfSeconds: 'h:mm:ss AM/PM' };

/** 9:30, 9:30:15, 9:30 pm, 25:30; null: no time. */
function typedTime(text: string): Value | null {
	const time = readTime(text);
	const hasSeconds = /:.*:/.test(text);
	const [half, whole] = hasSeconds ? [timePatterns.halfSeconds, timePatterns.seconds] : [timePatterns.half, timePatterns.minutes];
	const pattern = /[ap]/i.test(text) ? half : whole;
	if (time !== null) return { content: formatTime(time), pattern };
	const duration = parseTime(text);
	return duration === null ? null : { content: formatTime(duration), pattern: timePatterns.hours };
}

/** A number with one decimal comma, and no point that is not between groups of digits. */
const commaPattern = /^[^0-9.,]*(?:[0-9]{1,3}(?:[. \u00a0\u202f][0-9]{3})+|[0-9]+),[0-9]+[^0-9.,]*$/;

/** 1.234,5 as 1,234.5 if the language writes so. What other languages write otherwise (1,234.5, 1,234,567) stays. */
function withPoint(text: string, { comma }: Locale): string {
	if (!comma || !commaPattern.test(text)) return text;
	return text.replace(/([0-9])[. \u00a0\u202f](?=[0-9])|,/g, (_, digit: string | undefined) => (digit === undefined ? '.' : `${digit},`));
}

/** A text without an apostrophe as somebody types it, if it is not that text; null if it is. */
function typedOther(typed: string, locale: Locale): Value | null {
	if (parseContent(typed).kind === 'formula') return { content: typed };
	const text = withPoint(typed.trim(), locale);
	const { kind } = parseContent(text);
	if (kind === 'formula') return null;
	if (/[\r\n\t]/.test(text)) return null;
	if (kind === 'number') return { content: numberContent(Number(text)) };
	if (kind === 'date') return { content: text, pattern: text.includes(':') ? 'yyyy-mm-dd hh:mm:ss' : 'yyyy-mm-dd' };
	if (/^(true|false)$/i.test(text)) return { content: text.toUpperCase() };
	const date = readDate(text, locale);
	if (date) return { content: date, pattern: date.includes(':') ? `${locale.datePattern} h:mm` : locale.datePattern };
	const time = typedTime(text);
	if (time) return time;
	// 1,234.5, 12 %, $5, .5, (5). Not a day and a month without a year, whose order nobody knows, and no number that would change.
	const parsed = getNumfmtParseValueFilter(text);
	const pattern = parsed?.z;
	if (typeof parsed?.v !== 'number' || (pattern && isDateFormat(pattern)) || losesDigits(text) || /^[^0-9]*0[0-9]/.test(text)) return null;
	if (pattern && isTimeFormat(pattern)) return { content: formattedContent(parsed.v, pattern), pattern };
	// A number without a format is one of those that the database knows, except for signs: .5, 5., (5), 1E400 is none.
	if (/e/i.test(text) && !isNumberText(text)) return null;
	return { content: numberContent(parsed.v), ...(pattern && { pattern }) };
}

/** Letters of the width of Chinese ones, as Chinese and Japanese keyboards write them. */
const halfWidth = (text: string) => text.replace(/[\uff01-\uff5e]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) - 0xfee0)).replaceAll('\u3000', ' ');

/** A text as somebody types it into a cell of this number format. */
export function typedValue(text: string, locale: Locale, format?: string): Value {
	if (/^['\uff07]./s.test(text)) return { content: textContent(text.slice(1)) };
	if (isTextFormat(format)) return { content: textContent(text) };
	const half = halfWidth(text);
	return typedOther(text, locale) ?? (half.startsWith('=') ? null : typedOther(half, locale)) ?? { content: textContent(text) };
}

/** What the editor shows for a text of a cell, so that typing it gives that text again. */
export function typedText(text: string, locale: Locale, format?: string): string {
	return typedValue(text, locale, format).content === textContent(text) ? text : `'${text}`;
}

/** The digits and what divides them, without signs, currencies and spaces. */
const figures = (shown: string) => shown.replace(/[^0-9.,]/g, '').replace(/^[.,]+(?=[0-9]+[.,])|[.,]+$/g, '');

/** The number that a source shows in this format; null: it is not understood. The source's decimal mark follows from the format. */
function shownNumber(shown: string, pattern: string): number | null {
	const section = pattern.replace(/"[^"]*"|\\.|_.|\*./g, '').split(';')[0]!;
	const scientific = /^(.*?)E([+-]?[0-9]+)\s*$/i.exec(shown.trim());
	const mantissa = scientific ? scientific[1]! : shown;
	if (!/[0-9]/.test(mantissa)) return null;
	const decimals = /\.([0#?]+)/.exec(section)?.[1]!.length ?? (section === '' || /general/i.test(section) ? Infinity : 0);
	const text = figures(mantissa);
	const mark = Math.max(text.lastIndexOf('.'), text.lastIndexOf(','));
	const hasDecimals = mark >= 0 && decimals > 0 && text.length - mark - 1 <= decimals;
	const digits = hasDecimals ? `${text.slice(0, mark).replace(/[.,]/g, '')}.${text.slice(mark + 1)}` : text.replace(/[.,]/g, '');
	let number = Number(`${digits || '0'}${scientific ? `e${scientific[2]}` : ''}`);
	if (/%/.test(section)) number = Number(`${number}e-2`);
	if (/^\s*[-\u2212]|[-\u2212]\s*$|\(.*\)/.test(mantissa.replace(/[^0-9.,()\u2212-]/g, ''))) number = -number;
	return Number.isFinite(number) ? number : null;
}

/** Whether the format shows the number in this way, whatever divides its digits. */
function showsSame(pattern: string, number: number, shown: string): boolean {
	const bare = (text: string) => text.replace(/[\s.,'\u2019]/g, '').replace(/\u2212/g, '-');
	try {
		return bare(numfmt.format(pattern, number)) === bare(shown);
	} catch {
		return false;
	}
}

/** What a cell of another spreadsheet has that shows this text in this format; null: it is not understood. */
export function shownValue(shown: string, pattern: string, locale: Locale): Value | null {
	const text = shown.trim();
	if (pattern === textFormat) return { content: textContent(shown), pattern };
	if (pattern === '' || text === '' || text.startsWith('=')) return typedValue(pattern === '' ? text : shown, locale);
	try {
		numfmt.format(pattern, 1);
	} catch {
		return null;
	}
	if (isDateFormat(pattern)) {
		const content = readDate(text, { ...locale, order: orderOf(pattern) ?? locale.order });
		return content ? { content, pattern } : null;
	}
	const time = /h|s/i.test(pattern.replace(/"[^"]*"|\\.|\[[$~][^\]]*\]/g, '')) ? readTime(text) : null;
	if (time !== null) return { content: formatTime(time), pattern };
	const number = shownNumber(text, pattern);
	if (number !== null && showsSame(pattern, number, text)) return { content: numberContent(number), pattern };
	// A text in a cell with a number format.
	return /[0-9]/.test(text) ? null : { content: typedValue(text, locale).content, pattern };
}

/** The content of a cell of another spreadsheet. `understood`: its format is kept. */
export function pastedValue(shown: string, { value, pattern }: Marks, locale: Locale): Value & { understood: boolean } {
	if (typeof value === 'boolean') return { content: value ? 'TRUE' : 'FALSE', understood: true };
	if (typeof value === 'string') return { content: textContent(value), ...(pattern === textFormat && { pattern }), understood: true };
	if (typeof value === 'number') {
		// Programs differ in the numbers of days before 1900-03-01.
		const known = value < 61 && pattern && isDateFormat(pattern) ? shownValue(shown, pattern, locale) : null;
		return known ? { ...known, understood: true } : numberIn(value, pattern);
	}
	if (pattern === undefined) return { ...typedValue(shown, locale), understood: true };
	const known = shownValue(shown, pattern, locale);
	return known ? { ...known, understood: true } : { ...typedValue(shown, locale), understood: false };
}

/** A number in a format. */
function numberIn(number: number, pattern = ''): Value & { understood: boolean } {
	let understood = true;
	try {
		numfmt.format(pattern || 'General', number);
	} catch {
		understood = false;
	}
	return { content: formattedContent(number, pattern), ...(pattern && understood && { pattern }), understood };
}

/** Whether a text that is typed into a cell of this format stays as it is. */
export const isTextFormat = (pattern: string | undefined): boolean => pattern === textFormat;
