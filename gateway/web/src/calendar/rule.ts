// rule.ts - the rule of a series as choices of a form. A rule that these cannot express stays as it is.
import { localTime } from './times';

export const weekdays = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'] as const;

export interface Repeat {
	/** '': once; RULE: as the text says. */
	freq: '' | 'DAILY' | 'WEEKLY' | 'MONTHLY' | 'YEARLY' | 'RULE';
	interval: number;
	/** Of WEEKLY; none: the day of the start. */
	days: string[];
	/** The last date; '': none. */
	until: string;
	/** How often; 0: not counted. */
	count: number;
	text: string;
}

const words: Record<string, string> = { daily: 'FREQ=DAILY', weekly: 'FREQ=WEEKLY', monthly: 'FREQ=MONTHLY', yearly: 'FREQ=YEARLY' };
const known = /^(DAILY|WEEKLY|MONTHLY|YEARLY)$/;

function untilDate(value: string, zone: string): string | null {
	const parts = /^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})Z)?$/.exec(value);
	if (!parts) return null;
	const [, year, month, day, hour, minute, second] = parts;
	const date = `${year}-${month}-${day}`;
	return hour === undefined ? date : localTime(new Date(`${date}T${hour}:${minute}:${second}Z`), zone).slice(0, 10);
}

/** zone: of the task. */
export function parseRule(text: string, zone: string): Repeat {
	const repeat: Repeat = { freq: '', interval: 1, days: [], until: '', count: 0, text };
	const rule =
		words[text.trim().toLowerCase()] ??
		text
			.trim()
			.toUpperCase()
			.replace(/^RRULE:/, '');
	if (rule === '') return repeat;
	for (const part of rule.split(';')) {
		const [name, value = ''] = part.split('=') as [string, string?];
		const until = name === 'UNTIL' ? untilDate(value, zone) : null;
		if (name === 'FREQ' && known.test(value)) repeat.freq = value as Repeat['freq'];
		else if (name === 'INTERVAL' && /^[1-9]\d{0,3}$/.test(value)) repeat.interval = Number(value);
		else if (name === 'COUNT' && /^[1-9]\d{0,5}$/.test(value)) repeat.count = Number(value);
		else if (name === 'BYDAY' && value.split(',').every((day) => (weekdays as readonly string[]).includes(day))) repeat.days = value.split(',');
		else if (until !== null) repeat.until = until;
		else return { ...repeat, freq: 'RULE' };
	}
	return repeat.freq === '' || (repeat.days.length > 0 && repeat.freq !== 'WEEKLY') ? { ...repeat, freq: 'RULE' } : repeat;
}

export function ruleText({ freq, interval, days, until, count, text }: Repeat): string {
	if (freq === '') return '';
	if (freq === 'RULE') return text.trim();
	const parts = [`FREQ=${freq}`];
	if (interval > 1) parts.push(`INTERVAL=${interval}`);
	if (freq === 'WEEKLY' && days.length > 0) parts.push(`BYDAY=${weekdays.filter((day) => days.includes(day)).join()}`);
	if (until !== '') parts.push(`UNTIL=${until.replaceAll('-', '')}`);
	else if (count > 0) parts.push(`COUNT=${count}`);
	return parts.join(';');
}
