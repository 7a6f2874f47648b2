// timezone.ts - the time zone of a sheet, in which NOW() and TODAY() are computed, so that all see the same. It is a property of the
// sheet (docs/PROTOCOL.md, Properties).
import { parseDate } from '../content';
import type { PropertyEdit } from '../v2/messages';
import type { PropertySet } from '../v2/properties';
import { wholeSheet } from './arrange';

const key = 'timezone';
const noZone = 'UTC';

export const zoneProperty = (zone: string): PropertyEdit => ({ ...wholeSheet, key, value: zone });

export const hasZone = (set: PropertySet): boolean => set.value({ ...wholeSheet, key }) !== null;

/** The last answer of isKnown(), which takes a millisecond to find. */
let last = { zone: noZone, known: true };

function isKnown(zone: string): boolean {
	if (zone === last.zone) return last.known;
	let known = true;
	try {
		new Intl.DateTimeFormat('en', { timeZone: zone });
	} catch {
		known = false;
	}
	last = { zone, known };
	return known;
}

/** The time zone of this browser, as a property may have it; undefined if the browser does not know where it is (Etc/Unknown). */
export function browserZone(zone = new Intl.DateTimeFormat().resolvedOptions().timeZone): string | undefined {
	return /^[a-z][a-z0-9/_+-]{0,63}$/i.test(zone) && isKnown(zone) ? zone : undefined;
}

/** UTC, if there is none, or one that the browser does not know. */
export function zoneOf(set: PropertySet): string {
	const zone = set.value({ ...wholeSheet, key });
	return typeof zone === 'string' && isKnown(zone) ? zone : noZone;
}

/** The date and the time there, as a cell stores them. */
export function clockIn(zone: string, at: Date): string {
	const format = new Intl.DateTimeFormat('en-US', {
		timeZone: zone,
		hourCycle: 'h23',
		calendar: 'gregory',
		year: 'numeric',
		month: '2-digit',
		day: '2-digit',
		hour: '2-digit',
		minute: '2-digit',
		second: '2-digit',
	});
	const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
	return `${parts['year']}-${parts['month']}-${parts['day']} ${parts['hour']}:${parts['minute']}:${parts['second']}`;
}

/** The present time of a zone as a number of days, as spreadsheets count them. */
export const serialIn = (zone: string): number => parseDate(clockIn(zone, new Date()))!.serial;
