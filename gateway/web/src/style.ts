// style.ts - styles of cells as JSON. A stored style has only what differs from the default.
import type { Style } from './v2/messages';

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Values that are the same as no value. */
const defaults: Record<string, string[]> = {
	ff: ['"Arial"', '"arial"', '""'],
	fs: ['11'],
	it: ['0'],
	bl: ['0'],
	va: ['0', '1'],
	ht: ['0'],
	vt: ['0'],
	tb: ['0'],
	td: ['0'],
	tr: ['{"a":0}', '{"a":0,"v":0}', '{"v":0}'],
	ul: ['{"s":0}'],
	st: ['{"s":0}'],
	ol: ['{"s":0}'],
	cl: ['{"rgb":"#000"}', '{"rgb":"#000000"}', '{"rgb":"rgb(0,0,0)"}', '{"rgb":"rgb(0, 0, 0)"}'],
	bg: ['{"rgb":"transparent"}', '{"rgb":"rgba(0,0,0,0)"}', '{"rgb":"rgba(0, 0, 0, 0)"}', '{"rgb":""}', '{"rgb":null}'],
	pd: ['{"b":2,"l":2,"r":2,"t":0}', '{"b":1,"l":2,"r":2,"t":0}'],
	n: ['{"pattern":""}', '{"pattern":"General"}'],
};

/** The value with the names of its objects in order, and without null and empty objects. */
function ordered(value: unknown): unknown {
	if (!isObject(value)) return value;
	const entries = Object.keys(value)
		.sort()
		.map((name) => [name, ordered(value[name])] as const)
		.filter(([, part]) => part !== null && part !== undefined && !(isObject(part) && Object.keys(part).length === 0));
	return Object.fromEntries(entries);
}

/** What of a style differs from the default; null if nothing does. */
export function plainStyle(style: unknown): Style {
	if (!isObject(style)) return null;
	const entries = Object.entries(ordered(style) as Fields).filter(([name, value]) => !defaults[name]?.includes(JSON.stringify(value)));
	return entries.length === 0 ? null : Object.fromEntries(entries);
}

export function sameStyle(a: Style, b: Style): boolean {
	return a === b || JSON.stringify(plainStyle(a)) === JSON.stringify(plainStyle(b));
}
