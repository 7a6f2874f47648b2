// content.ts - names of cells, the text of a cell as the server stores it, and the typed value that a grid shows.
//
// The server stores what the user typed, independent of locale: 1.5, TRUE, 2024-01-31, =SUM(A1:A3), text. A leading
// apostrophe forces text. Numbers with more than 15 digits or leading zeros stay text, because a double would change
// them.

export function columnName(col: number): string {
	let name = '';
	for (let rest = col + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) name = String.fromCharCode(65 + ((rest - 1) % 26)) + name;
	return name;
}

/** A1 notation: row 2, column 1 is B3. */
export function cellName(row: number, col: number): string {
	return `${columnName(col)}${row + 1}`;
}

export type TypedValue =
	| { kind: 'empty' }
	| { kind: 'formula'; formula: string }
	| { kind: 'number'; number: number }
	| { kind: 'boolean'; boolean: boolean }
	| { kind: 'date'; serial: number; hasTime: boolean }
	| { kind: 'text'; text: string; forced: boolean };

const numberPattern = /^[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$/;
const datePattern = /^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?$/;
const dayMilliseconds = 86400000;
/** Day 0 of spreadsheets, valid for days since 1900-03-01. */
const firstDay = Date.UTC(1899, 11, 30);

export function isNumberText(text: string): boolean {
	return numberPattern.test(text) && text.replace(/[eE].*$/, '').replace(/[^0-9]/g, '').length <= 15 && Number.isFinite(Number(text));
}

export function parseDate(text: string): { serial: number; hasTime: boolean } | null {
	const match = datePattern.exec(text);
	if (!match) return null;
	const [year, month, day, hour, minute, second] = match.slice(1).map((part) => Number(part ?? 0));
	const at = new Date(Date.UTC(year, month - 1, day));
	if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day || year < 1901 || hour > 23 || minute > 59 || second > 59) return null;
	const seconds = hour * 3600 + minute * 60 + second;
	return { serial: (at.getTime() - firstDay) / dayMilliseconds + seconds / 86400, hasTime: match[4] !== undefined };
}

export function formatDate(serial: number): string {
	const seconds = Math.round(serial * 86400);
	const text = new Date(firstDay + seconds * 1000).toISOString();
	const time = text.slice(11, 19);
	return time === '00:00:00' ? text.slice(0, 10) : `${text.slice(0, 10)} ${time}`;
}

/** Whether a number format shows a date. Ignores quoted parts, escapes and colours. */
export function isDateFormat(pattern: string): boolean {
	const bare = pattern.replace(/"[^"]*"|\\.|\[[^\]]*\]|_./g, '').toLowerCase();
	return /[yd]/.test(bare) && !/[0#?]/.test(bare.replace(/\.0+/g, ''));
}

export function parseContent(content: string): TypedValue {
	if (content === '') return { kind: 'empty' };
	if (content.startsWith('=') && content.length > 1) return { kind: 'formula', formula: content };
	if (content.startsWith("'")) return { kind: 'text', text: content.slice(1), forced: true };
	if (isNumberText(content)) return { kind: 'number', number: Number(content) };
	if (content === 'TRUE' || content === 'FALSE') return { kind: 'boolean', boolean: content === 'TRUE' };
	const date = parseDate(content);
	if (date) return { kind: 'date', ...date };
	return { kind: 'text', text: content, forced: false };
}

/** The content for a text: with an apostrophe in front if the text alone would have another type. */
export function textContent(text: string): string {
	const plain = parseContent(text);
	return plain.kind === 'text' && !plain.forced ? text : text === '' ? '' : `'${text}`;
}

/** The content for a number: the shortest digits that parse as the same double. */
export function numberContent(number: number): string {
	return String(number).replace('e+', 'e');
}
