// times.ts - times as the cells of a calendar have them: what the clocks of a zone show.

const minuteMs = 60000;
const dayMs = 24 * 60 * minuteMs;

const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** Without a known place, browsers say Etc/Unknown. */
export const browserZone = here && here !== 'Etc/Unknown' ? here : 'UTC';

/** What the clocks of a zone show: 2027-01-31 09:30. RangeError: the browser does not know the zone. */
export function localTime(at: Date, zone: string): string {
	const format = new Intl.DateTimeFormat('en-US', {
		timeZone: zone,
		hourCycle: 'h23',
		year: 'numeric',
		month: '2-digit',
		day: '2-digit',
		hour: '2-digit',
		minute: '2-digit',
	});
	const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
	return `${part.year!.padStart(4, '0')}-${part.month}-${part.day} ${part.hour}:${part.minute}`;
}

/** A date or local time as a number that can be added to. */
export const wall = (local: string): number => Date.parse(`${local.slice(0, 10)}T${local.slice(11, 16) || '00:00'}Z`);

/** The reverse of wall(). */
export function wallText(at: number, allDay: boolean): string {
	const text = new Date(at).toISOString();
	return allDay ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

export const addDays = (date: string, days: number): string => wallText(wall(date) + days * dayMs, true);

/** The date of the browser's clock. */
export function dateOf(at: Date): string {
	return wallText(Date.UTC(at.getFullYear(), at.getMonth(), at.getDate()), true);
}

/**
 * The cell End: a time of day if that is enough, otherwise a length, so that it is right for each occurrence. Of whole days, `end`
 * is the day after the last one.
 */
export function endText(start: string, end: string, allDay: boolean): string {
	const lasts = wall(end) - wall(start);
	if (allDay) return lasts <= dayMs ? '' : `${Math.round(lasts / dayMs)} days`;
	if (lasts <= 0) return '';
	if (lasts < dayMs) return end.slice(11, 16);
	const minutes = Math.round(lasts / minuteMs);
	return [minutes >= 60 ? `${Math.floor(minutes / 60)} h` : '', minutes % 60 ? `${minutes % 60} min` : ''].filter(Boolean).join(' ');
}
