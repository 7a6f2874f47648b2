// locale.ts - how people who use a language write dates and numbers, by the browser's Intl.

export interface Locale {
	/** The order of day, month and year in numeric dates. */
	order: 'dmy' | 'mdy' | 'ymd';
	/** The number format of a date. */
	datePattern: string;
	/** Numbers have a decimal comma. */
	comma: boolean;
	/** Names of months in small letters, long and short, also English: their numbers from 1. */
	months: Map<string, number>;
	/** What else stands in a date in words, in small letters: de, Friday. */
	fillers: ReadonlySet<string>;
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
	const separator = parts.find(({ type }) => type === 'literal')?.value.match(/[/.-]/)?.[0] ?? '-';
	const patterns = { dmy: ['dd', 'mm', 'yyyy'], mdy: ['mm', 'dd', 'yyyy'], ymd: ['yyyy', 'mm', 'dd'] };
	const found = order in patterns ? (order as Locale['order']) : 'ymd';
	const months = new Map<string, number>();
	const fillers = new Set(['of', 'the', 'de']);
	for (const [of, length] of [
		['en', 'long'],
		['en', 'short'],
		[language, 'long'],
		[language, 'short'],
	] as const) {
		const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(of, { ...options, timeZone: 'UTC' });
		// The name as it stands in a date differs in some languages from the name alone.
		const [inDate, alone, dayAlone] = [
			format({ day: 'numeric', month: length, year: 'numeric', weekday: length }),
			format({ month: length }),
			format({ weekday: length }),
		];
		for (let number = 1; number <= 12; number++) {
			const at = Date.UTC(2024, number - 1, 15);
			for (const name of [alone.format(at), inDate.formatToParts(at).find(({ type }) => type === 'month')!.value])
				if (/\p{L}/u.test(name)) months.set(plainMonth(name), number);
		}
		for (let day = 1; day <= 7; day++) {
			for (const { type, value } of inDate.formatToParts(Date.UTC(2024, 0, day)))
				if (type === 'literal' || type === 'weekday') value.split(/[\s,/-]+/).forEach((word) => fillers.add(plainMonth(word)));
			dayAlone
				.format(Date.UTC(2024, 0, day))
				.split('-')
				.forEach((word) => fillers.add(plainMonth(word)));
		}
	}
	const comma = new Intl.NumberFormat(language).formatToParts(1.5).some(({ type, value }) => type === 'decimal' && value === ',');
	return { order: found, comma, datePattern: patterns[found].join(separator), months, fillers };
}

/** A month's name without what differs between spellings. */
export function plainMonth(name: string): string {
	return name.toLowerCase().replace(/\.$/, '');
}
