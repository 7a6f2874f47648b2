// dates.ts - reads dates and times as people write them, into the form in which cells store them: 2024-12-31, 2024-12-31 23:59:00.
import { formatTime, parseDate } from '../content';
import { plainMonth, type Locale } from './locale';

const two = (number: number) => String(number).padStart(2, '0');

/** Years of two digits, as spreadsheets read them. */
const fullYear = (text: string) => (text.length > 2 ? Number(text) : Number(text) + (Number(text) < 30 ? 2000 : 1900));

const timePattern = /^([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,3})[0-9]*)?)?(?:\s?([ap])\.?m?\.?)?$/i;

/** The time of a day, to the millisecond, as a part of days. */
export function readTime(text: string): number | null {
	const match = timePattern.exec(text.replace(/[\u202f\u00a0]/g, ' ').trim());
	if (!match) return null;
	const [, h, m, s = '0', fraction = '0', half] = match;
	let hour = Number(h);
	if (half) {
		if (hour < 1 || hour > 12) return null;
		hour = (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0);
	}
	return hour < 24 && Number(m) < 60 && Number(s) < 60 ? (hour * 3600 + Number(m) * 60 + Number(`${s}.${fraction}`)) / 86400 : null;
}

/** The content for a day and a time; null if there is no such day. */
function contentOf(year: number, month: number, day: number, time: number | null): string | null {
	const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`;
	const content = time === null ? date : `${date} ${formatTime(time)}`;
	return parseDate(content) ? content : null;
}

/** A text divided into a date and a time. */
function divide(text: string): { date: string; time: number | null } {
	const match = /^(.*?)(?:,|\s|T)\s*([0-9]{1,2}:[0-9]{2}.*)$/.exec(text);
	const time = match && readTime(match[2]!);
	return match && time !== null ? { date: match[1]!.replace(/,$/, ''), time } : { date: text, time: null };
}

/** Chinese and Japanese write the name of the day behind a date, without a space. */
function withoutEnd(date: string, fillers: ReadonlySet<string>): string {
	const match = /^(.*[日号號일])\s?(\S+)$/.exec(date);
	return match && fillers.has(match[2]!) ? match[1]! : date;
}

/**
 * Reads a date with a year: numbers in the given order, or with the year first, or with the name of a month. The separators of
 * a numeric date are equal. Returns null for everything else.
 */
export function readDate(text: string, { order, months, fillers }: Pick<Locale, 'order' | 'months' | 'fillers'>): string | null {
	const { date, time } = divide(text.replace(/[\u202f\u00a0]/g, ' ').trim());
	const numeric =
		/^([0-9]{1,4})([-/]|\.\s?)([0-9]{1,2})\2([0-9]{1,4})\.?$/.exec(date) ??
		/^([0-9]{4})(年|년)\s?([0-9]{1,2})[月월]\s?([0-9]{1,2})[日号號일]$/.exec(withoutEnd(date, fillers));
	if (numeric) {
		const [first, middle, last] = [numeric[1]!, numeric[3]!, numeric[4]!];
		if (first.length === 4 && last.length <= 2) return contentOf(Number(first), Number(middle), Number(last), time);
		if (first.length > 2 || last.length === 3 || last.length < 2) return null;
		if (order === 'ymd') return last.length === 2 ? contentOf(fullYear(first), Number(middle), Number(last), time) : null;
		const [day, month] = order === 'dmy' ? [first, middle] : [middle, first];
		return contentOf(fullYear(last), Number(month), Number(day), time);
	}
	// Friday, 1 March 2024; March 1, 2024; 1-Mar-24; 1. März 2024; 1 de marzo de 2024; 1er mars 2024
	const words = date
		.replace(/([0-9])(st|nd|rd|th|er|º|°)(?=[\s,]|$)/gi, '$1')
		.split(/[\s,/-]+|(?<=[0-9])\./)
		.filter((word) => word && !fillers.has(plainMonth(word)));
	const at = words.findIndex((word) => months.has(plainMonth(word)));
	if (at < 0) return null;
	const month = months.get(plainMonth(words[at]!))!;
	const numbers = words.filter((word, i) => i !== at && /^[0-9]+$/.test(word));
	if (numbers.length !== 2 || words.length !== 3) return null;
	const [a, b] = numbers as [string, string];
	const [year, day] = a.length === 4 ? [a, b] : [b, a];
	return (year.length === 4 || year.length === 2) && day.length <= 2 ? contentOf(fullYear(year), month, Number(day), time) : null;
}

/** The order of day, month and year in a number format; null if it lacks one of them. */
export function orderOf(pattern: string): Locale['order'] | null {
	const bare = pattern.replace(/"[^"]*"|\\.|\[[^\]]*\]/g, ' ').toLowerCase();
	const dates = bare.split(/h|s|;/)[0]!;
	const order = [...dates.matchAll(/d+|m+|y+/g)]
		.filter(([run]) => run !== 'dddd' && run !== 'ddd')
		.map(([run]) => run[0])
		.join('');
	return order === 'dmy' || order === 'mdy' || order === 'ymd' ? order : null;
}
