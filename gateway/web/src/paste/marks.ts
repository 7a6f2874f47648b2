// marks.ts - what spreadsheets write about a cell into HTML, besides the text that it shows: its type, its value and its number
// format. Excel: mso-number-format, in a style sheet or an attribute. Google Sheets: data-sheets-*. LibreOffice: sdval, sdnum.
// WPS and old versions of Excel: x:num, x:str, x:bool.
import type { Locale } from './locale';

export interface Marks {
	/** The value; undefined: what the cell shows. */
	value?: string | number | boolean;
	/** The number format. '': the default one. @: text. */
	pattern?: string;
	/** The formula of Google Sheets, whose references are relative: =R[0]C[-1]. */
	formula?: string;
}

/** The names of Excel's formats, in small letters. */
function namedFormats({ datePattern }: Locale): Record<string, string> {
	return {
		...{ general: '', 'general number': '', fixed: '0.00', standard: '#,##0.00', currency: '$#,##0.00', percent: '0.00%', scientific: '0.00E+00' },
		...{ 'general date': `${datePattern} h:mm`, 'short date': datePattern, 'medium date': 'd-mmm-yy', 'long date': 'dddd, mmmm d, yyyy' },
		...{ 'short time': 'h:mm', 'medium time': 'h:mm AM/PM', 'long time': 'h:mm:ss AM/PM', text: '@' },
		...{ 'yes/no': '"Yes";"Yes";"No"', 'true/false': '"True";"True";"False"', 'on/off': '"On";"On";"Off"' },
	};
}

/** Characters with a backslash in CSS: \0022, \#, \\. */
function unescapeCss(text: string): string {
	return text.replace(/\\([0-9a-fA-F]{4,6}) ?|\\([\s\S])/g, (_, code: string | undefined, character: string) =>
		code ? String.fromCodePoint(parseInt(code, 16)) : character,
	);
}

/** The number format of a value of mso-number-format. */
export function excelFormat(value: string, locale: Locale): string {
	const text = unescapeCss(value.trim().replace(/^(["'])([\s\S]*)\1$/, '$2'));
	return namedFormats(locale)[text.toLowerCase()] ?? text;
}

/** Languages, as the lower ten bits of Windows' numbers, whose formats have a decimal comma; and places that differ. */
const commaLanguages = new Set([2, 5, 6, 7, 8, 10, 11, 12, 14, 16, 19, 20, 21, 22, 24, 25, 26, 27, 29, 31, 33, 34, 36, 42]);
const pointPlaces = new Set([2055, 5127, 2058, 21514]); // Switzerland, Liechtenstein, Mexico, Spanish in the USA
/** What languages write for the D, M, Y and H of dates and times. */
const dateLetters = new Map([
	[6, 'DMÅT'],
	[7, 'TMJH'],
	[10, 'DMAH'],
	[11, 'PKVT'],
	[12, 'JMAH'],
	[16, 'GMAH'],
	[19, 'DMJU'],
	[20, 'DMÅT'],
	[22, 'DMAH'],
	[29, 'DMÅT'],
]);

/** The number format of LibreOffice's sdnum: the language of the document; that of the format, 0: the same; the format in that language. */
function libreFormat(sdnum: string): string {
	const [document, own, ...rest] = sdnum.split(';');
	const code = rest.join(';');
	if (/^(general|standard)$/i.test(code)) return '';
	if (/^bool/i.test(code)) return code;
	const place = Number(own) || Number(document);
	const hasComma = commaLanguages.has(place & 1023) && !pointPlaces.has(place);
	const letters = dateLetters.get(place & 1023);
	const parts = code.split(/("[^"]*"|\\.|\[[^\]]*\]|AM\/PM)/); // each second one is the same in all languages
	const isDate = parts.some((part, i) => i % 2 === 0 && /(?![Ee])\p{L}/u.test(part));
	const translate = (part: string) => {
		if (!isDate) return hasComma ? part.replace(/[.,]|(?<=[#0])[\u00a0\u202f](?=[#0])/g, (sign) => (sign === ',' ? '.' : ',')) : part;
		const own = letters ? part.replace(/\p{L}/gu, (letter) => 'DMYH'[letters.indexOf(letter.toUpperCase())] ?? letter) : part;
		return hasComma ? own.replace(/,(?=0)/g, '.') : own;
	};
	return parts.map((part, i) => (i % 2 === 0 ? translate(part) : part)).join('');
}

function readJson(text: string): Record<string, unknown> {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
	} catch {
		return {};
	}
}

const numberOf = (text: string): number | undefined => (text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined);

function googleMarks(value: string, format: string | null): Marks {
	const { 1: type, 2: text, 3: number, 4: boolean } = readJson(value);
	const { 2: pattern } = readJson(format ?? '');
	const formatted = typeof pattern === 'string' ? { pattern } : {};
	if (type === 2 && typeof text === 'string') return { value: text, ...formatted };
	if (type === 3 && typeof number === 'number') return { value: number, ...formatted };
	if (type === 4) return { value: boolean === 1 || boolean === true, ...formatted };
	return formatted;
}

/** The marks of a cell. `attribute` reads an attribute of it, `msoFormat` is its mso-number-format. */
export function marksOf(attribute: (name: string) => string | null, msoFormat: string | undefined, locale: Locale): Marks {
	const google = attribute('data-sheets-value');
	if (google !== null) {
		const formula = attribute('data-sheets-formula');
		return { ...googleMarks(google, attribute('data-sheets-numberformat')), ...(formula !== null && { formula }) };
	}
	const sdnum = attribute('sdnum');
	const pattern = msoFormat !== undefined ? excelFormat(msoFormat, locale) : sdnum === null ? undefined : libreFormat(sdnum);
	const formatted = pattern === undefined ? {} : { pattern };
	const boolean = attribute('x:bool');
	if (boolean !== null) return { value: /^(true|1)$/i.test(boolean) };
	const text = attribute('x:str');
	// Without a value, the attribute says the type of what the cell shows.
	if (text !== null) return text === '' || text === 'x:str' ? { ...formatted, pattern: '@' } : { value: text, ...formatted };
	const number = numberOf(attribute('x:num') ?? attribute('sdval') ?? '');
	if (number === undefined) return formatted;
	return /^"?boolean/i.test(pattern ?? '') ? { value: number !== 0 } : { value: number, ...formatted };
}
