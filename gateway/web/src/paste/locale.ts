// locale.ts - how people who use a language write dates and numbers, by the browser's Intl.

export interface Locale {
	/** The order of day, month and year in numeric dates. */
	order: 'dmy' | 'mdy' | 'ymd';
	/** The number format of a date. */
	datePattern: string;
	/** Names of months in small letters, long and short, also English: their numbers from 1. */
	months: Map<string, number>;
}

const known = new Map<string, Locale>();

export function localeOf(language: string): Locale {
	let locale = known.get(language);
	if (!locale) known.set(language, (locale = readLocale(language)));
	return locale;
}

function readLocale(language: string): Locale {
	const parts = new Intl.DateTimeFormat(language, { day: '2-digit', month: '2-digit', year: 'numeric' }).formatToParts(Date.UTC(2024, 11, 31));
	const order = parts.map(({ type }) => ({ day: 'd', month: 'm', year: 'y' })[type as string] ?? '').join('');
	const separator = parts.find(({ type }) => type === 'literal')?.value.trim().replace(/[^/.-]/, '-') || '-';
	const patterns = { dmy: ['dd', 'mm', 'yyyy'], mdy: ['mm', 'dd', 'yyyy'], ymd: ['yyyy', 'mm', 'dd'] };
	const found = order in patterns ? (order as Locale['order']) : 'ymd';
	const months = new Map<string, number>();
	for (const [of, month] of [['en', 'long'], ['en', 'short'], [language, 'long'], [language, 'short']] as const) {
		for (let number = 1; number <= 12; number++) {
			// The name as it stands in a date, which differs in some languages from the name alone.
			const inDate = new Intl.DateTimeFormat(of, { month, day: 'numeric', timeZone: 'UTC' }).formatToParts(Date.UTC(2024, number - 1, 15));
			const alone = new Intl.DateTimeFormat(of, { month, timeZone: 'UTC' }).format(Date.UTC(2024, number - 1, 15));
			for (const name of [alone, inDate.find(({ type }) => type === 'month')?.value ?? alone]) months.set(plainMonth(name), number);
		}
	}
	return { order: found, datePattern: patterns[found].join(separator), months };
}

/** A month's name without what differs between spellings. */
export function plainMonth(name: string): string {
	return name.toLowerCase().replace(/\.$/, '');
}
