// content.ts - names of cells, the text of a cell as the server stores it, and the typed value that a grid shows.
//
// The server stores what the user typed, independent of locale: 1.5, TRUE, 2024-01-31, 10:30:00, =SUM(A1:A3), text. A leading
// apostrophe forces text; it is stored only if the text alone would be something else. Numbers that a double would change
// (more than 15 digits, leading zeros) stay text.

export function columnName(col: number): string {
	let name = '';
	for (let rest = col + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) name = String.fromCharCode(65 + ((rest - 1) % 26)) + name;
	return name;
}

/** A1 notation: row 2, column 1 is B3. */
export function cellName(row: number, col: number): string {
	return `${columnName(col)}${row + 1}`;
}

/** A range in A1 notation. */
export function rangeName({ row, col, toRow, toCol }: { row: number; col: number; toRow: number; toCol: number }): string {
	return row === toRow && col === toCol ? cellName(row, col) : `${cellName(row, col)}:${cellName(toRow, toCol)}`;
}

/** The first of many cells or ranges, and how many there are. */
export const named = (cells: string[], most = 5): string => cells.slice(0, most).join(', ') + (cells.length > most ? ` … (${cells.length})` : '');

export type TypedValue =
	| { kind: 'empty' }
	| { kind: 'formula'; formula: string }
	| { kind: 'number'; number: number }
	| { kind: 'boolean'; boolean: boolean }
	| { kind: 'date'; serial: number; hasTime: boolean }
	/** Days. */
	| { kind: 'time'; serial: number; hasSeconds: boolean }
	| { kind: 'text'; text: string; forced: boolean };

const numberPattern = /^[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$/;
const datePattern = /^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?))?$/;
/** Up to 9999 hours, as the duration of something has. */
const timePattern = /^([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,3})?))?$/;
const dayMilliseconds = 86400000;
const daySeconds = 86400;
/** Day 0 of spreadsheets for days since 1900-03-01. They count a 29 February 1900, as Excel does: earlier days are a day later. */
const firstDay = Date.UTC(1899, 11, 30);
const leapSerial = 60;
const longestTime = 10000 / 24;

/** The digits that count: 3 of -0.0120e5. */
function significantDigits(text: string): number {
	return text
		.replace(/[eE].*$/, '')
		.replace(/[^0-9]/g, '')
		.replace(/^0+/, '').length;
}

/** Whether the text is a number that a double keeps. Fifteen digits always are; more, if the double is written in this way. */
export function isNumberText(text: string): boolean {
	if (!numberPattern.test(text)) return false;
	const number = Number(text);
	if (!Number.isFinite(number) || (number === 0 && significantDigits(text) > 0)) return false;
	return significantDigits(text) <= 15 || numberContent(number) === text;
}

/** Whether a number with these digits, in any notation, may be more exact than a double. */
export function losesDigits(text: string): boolean {
	return significantDigits(text) > 15;
}

export interface ParsedDate {
	serial: number;
	hasTime: boolean;
}

export function parseDate(text: string): ParsedDate | null {
	const match = datePattern.exec(text);
	if (!match) return null;
	const [year, month, day] = match.slice(1, 4).map(Number) as [number, number, number];
	const at = new Date(Date.UTC(year, month - 1, day));
	const time = match[4] === undefined ? 0 : parseTime(match[4]);
	if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day || year < 1900 || time === null || time >= 1) return null;
	const days = (at.getTime() - firstDay) / dayMilliseconds;
	return { serial: (days > leapSerial ? days : days - 1) + time, hasTime: match[4] !== undefined };
}

/** A time, or a duration, as a part of days. */
export function parseTime(text: string): number | null {
	const match = timePattern.exec(text);
	return match ? (Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3] ?? 0)) / daySeconds : null;
}

const two = (number: number) => String(number).padStart(2, '0');

/** 0.4375 is 10:30:00. */
export function formatTime(days: number): string {
	const milliseconds = Math.round(days * dayMilliseconds);
	const [seconds, rest] = [Math.floor(milliseconds / 1000), milliseconds % 1000];
	const text = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
	return rest === 0 ? text : `${text}.${String(rest).padStart(3, '0').replace(/0+$/, '')}`;
}

/** The date and time of a serial number from 1 on, without the 29 February 1900, which is no day. */
export function formatDate(serial: number): string {
	const milliseconds = Math.round(serial * dayMilliseconds);
	const days = Math.floor(milliseconds / dayMilliseconds);
	const date = new Date(firstDay + (days < leapSerial ? days + 1 : days) * dayMilliseconds).toISOString().slice(0, 10);
	const time = milliseconds - days * dayMilliseconds;
	return time === 0 ? date : `${date} ${formatTime(time / dayMilliseconds)}`;
}

/** What a number format shows, without quoted parts, escapes and colours. */
const bareFormat = (pattern: string) => pattern.replace(/"[^"]*"|\\.|\[(?![hms]+\])[^\]]*\]|_./gi, '').toLowerCase();

/** Whether a number format shows a date. */
export function isDateFormat(pattern: string): boolean {
	const bare = bareFormat(pattern);
	return /[yd]/.test(bare) && !/[0#?]/.test(bare.replace(/\.0+/g, ''));
}

/** Whether a number format shows a time without a date. */
export function isTimeFormat(pattern: string): boolean {
	const bare = bareFormat(pattern).replace(/general/g, '');
	return /[hs]/.test(bare) && !/[yd0#?@]/.test(bare.replace(/\.0+/g, ''));
}

/** The content for a number in a format: a date or a time, if the format shows one and it has one. */
export function formattedContent(number: number, pattern: string | undefined): string {
	if (!pattern) return numberContent(number);
	const isTime = isTimeFormat(pattern);
	if (!isTime && !isDateFormat(pattern)) return numberContent(number);
	const isDuration = isTime && /\[[hms]+\]/i.test(pattern);
	if (number >= 0 && (isDuration ? number < longestTime : number < 1) && (isTime || number > 0)) return formatTime(number);
	return number >= 1 && Math.floor(number) !== leapSerial && number < 2958466 ? formatDate(number) : numberContent(number);
}

export function parseContent(content: string): TypedValue {
	if (content === '') return { kind: 'empty' };
	if (content.startsWith('=') && content.length > 1) return { kind: 'formula', formula: content };
	if (content.startsWith("'")) return { kind: 'text', text: content.slice(1), forced: true };
	if (isNumberText(content)) return { kind: 'number', number: Number(content) };
	if (content === 'TRUE' || content === 'FALSE') return { kind: 'boolean', boolean: content === 'TRUE' };
	const date = parseDate(content);
	if (date) return { kind: 'date', ...date };
	const time = parseTime(content);
	if (time !== null) return { kind: 'time', serial: time, hasSeconds: /:.*:/.test(content) };
	return { kind: 'text', text: content, forced: false };
}

/** The content for a text: with an apostrophe in front if the text alone would have another type. */
export function textContent(text: string): string {
	const plain = parseContent(text);
	return plain.kind === 'text' && !plain.forced ? text : text === '' ? '' : `'${text}`;
}

/** The content for a number: the shortest digits that parse as the same double. More than 15 before the point have an exponent. */
export function numberContent(number: number): string {
	const text = String(number);
	return (/^-?[0-9]{16,}$/.test(text) ? number.toExponential() : text).replace('e+', 'e');
}
