// content.ts - the text of a cell as the server keeps it, and the typed value that a grid shows.
//
// The server keeps what a person typed, free of any locale: 1.5, TRUE, 2024-01-31, =SUM(A1:A3), text. A leading
// apostrophe forces text. Numbers with more than 15 digits and those with leading zeros stay text, so that nothing that
// was typed is lost in a double.

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
/** Day 0 of spreadsheets; right for every day since 1900-03-01. */
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

/** Does a number format show a date? Quoted parts, escapes and colours do not count. */
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

/** What to send for a text: an apostrophe in front when the plain text would be read as something else. */
export function textContent(text: string): string {
	const plain = parseContent(text);
	return plain.kind === 'text' && !plain.forced ? text : text === '' ? '' : `'${text}`;
}

/** What to send for a number: shortest digits that read back as the same double. */
export function numberContent(number: number): string {
	return String(number).replace('e+', 'e');
}
