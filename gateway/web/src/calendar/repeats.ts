// repeats.ts - the part of the form of an entry that says how it repeats.
import { h } from '../dom';
import { language, t } from '../i18n';
import { check, choice, input, type Field } from './fields';
import { parseRule, ruleText, weekdays, type Repeat } from './rule';

/** 2024-01-01 was a Monday. */
const dayName = (index: number): string => new Intl.DateTimeFormat(language, { weekday: 'short', timeZone: 'UTC' }).format(Date.UTC(2024, 0, 1 + index));

export interface RepeatFields {
	rows: HTMLElement[];
	freq: Field<HTMLSelectElement>;
	/** The cell Repeats; as it was, if nothing was changed. */
	value(): string;
}

export function repeatFields(before: string, zone: string, changed: () => void): RepeatFields {
	const repeat = parseRule(before, zone);
	const freqs: Repeat['freq'][] = ['', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY', 'RULE'];
	const freq = choice(
		t('calendar.repeats'),
		freqs.map((value) => [value, t(`calendar.repeats.${value === '' ? 'never' : value.toLowerCase()}`)]),
		repeat.freq,
	);
	const interval = input(t('calendar.interval'), { type: 'number', min: 1, max: 999, value: repeat.interval });
	const days = weekdays.map((day, i) => check(dayName(i), repeat.days.includes(day)));
	const onDays = h('fieldset', { class: 'days' }, h('legend', {}, t('calendar.days')), ...days.map(({ row }) => row));
	const ends = choice(
		t('calendar.ends'),
		[
			['never', t('calendar.ends.never')],
			['until', t('calendar.ends.until')],
			['count', t('calendar.ends.count')],
		],
		repeat.until !== '' ? 'until' : repeat.count > 0 ? 'count' : 'never',
	);
	const until = input(t('calendar.until'), { type: 'date', value: repeat.until });
	const count = input(t('calendar.count'), { type: 'number', min: 1, max: 20000, value: repeat.count || 10 });
	const text = input(t('calendar.rule'), { value: repeat.freq === 'RULE' ? before : '', spellcheck: 'false' }, t('calendar.ruleHint'));
	const series = h('div', { class: 'pair' }, interval.row, ends.row, until.row, count.row);
	const show = () => {
		const kind = freq.control.value;
		series.hidden = kind === '' || kind === 'RULE';
		onDays.hidden = kind !== 'WEEKLY';
		text.row.hidden = kind !== 'RULE';
		until.row.hidden = ends.control.value !== 'until';
		count.row.hidden = ends.control.value !== 'count';
	};
	for (const { control } of [freq, ends]) control.addEventListener('change', show);
	show();
	const now = (): Repeat => ({
		freq: freq.control.value as Repeat['freq'],
		interval: Math.max(1, Math.round(Number(interval.control.value)) || 1),
		days: weekdays.filter((_, i) => days[i]!.control.checked),
		until: ends.control.value === 'until' ? until.control.value : '',
		count: ends.control.value === 'count' ? Math.max(1, Math.round(Number(count.control.value)) || 1) : 0,
		text: text.control.value,
	});
	// A rule in other words, such as "weekly", is not written again.
	const first = ruleText(now());
	const rows = [freq.row, series, onDays, text.row];
	for (const row of rows) row.addEventListener('input', changed);
	return { rows, freq, value: () => (ruleText(now()) === first ? before : ruleText(now())) };
}
