// again.ts - when formulas with the present time are to be computed again: TODAY() when a day begins in the time zone of the
// sheet, NOW() also when an hour begins.
import { clockIn } from '../gateway/web/src/sheet/timezone';

const hourMs = 3_600_000;
/** Days begin at whole quarters of an hour in every zone. */
const stepMs = hourMs / 4;

/** By zones: the next day begins there at this time. */
const days = new Map<string, number>();

function nextDay(zone: string, now: number): number {
	const known = days.get(zone);
	if (known !== undefined && known > now && known - now <= 26 * hourMs) return known;
	const dayAt = (at: number) => clockIn(zone, new Date(at)).slice(0, 10);
	const today = dayAt(now);
	let at = now - (now % stepMs) + stepMs;
	while (dayAt(at) === today) at += stepMs;
	days.set(zone, at);
	return at;
}

/** In milliseconds since 1970; null: no formula has the time. */
export function againAt(zone: string, formulas: Iterable<{ text: string; volatile: boolean }>, now = Date.now()): number | null {
	let [hasDay, hasTime] = [false, false];
	for (const { text, volatile } of formulas) {
		if (!volatile) continue;
		hasDay ||= /\bTODAY\s*\(/i.test(text);
		hasTime ||= /\bNOW\s*\(/i.test(text);
	}
	if (!hasDay && !hasTime) return null;
	const day = nextDay(zone, now);
	return hasTime ? Math.min(day, now - (now % hourMs) + hourMs) : day;
}
