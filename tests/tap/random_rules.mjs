/*
 * random_rules.mjs - reads lines of random_rules.py, and prints those whose times are not the ones of the npm package rrule.
 *
 * rrule 2.8.1 takes a negative BYSETPOS for another position where a set has fewer times, and gives a time twice that two
 * positions name: rules with one are passed over.
 */
import { createInterface } from 'node:readline';
import rrule from 'rrule';

const most = 30;
const years = 12;

for await (const line of createInterface({ input: process.stdin })) {
	const { rule, starts, times } = JSON.parse(line);
	if (/BYSETPOS=[^;]*-/.test(rule)) continue;
	const dtstart = new Date(`${starts}Z`);
	const end = dtstart.getTime() + years * 365 * 86400000;
	const found = [];
	rrule.rrulestr(rule.replace(/UNTIL=(\w+)/, 'UNTIL=$1Z'), { dtstart }).all((time) => {
		if (time.getTime() > end || found.length === most) return false;
		return found.push(time.toISOString().slice(0, 19));
	});
	if (!found.includes(starts)) found.unshift(starts); // the start is the first time, also if the rule does not name it
	if (found.slice(0, most).join() !== times.join()) process.stdout.write(`${rule} from ${starts}: ${found.slice(0, most)}\n`);
}
