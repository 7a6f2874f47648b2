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
	const entries = Object.entries(ordered(style) as Fields).filter(
		([name, value]) => !(Object.hasOwn(defaults, name) && defaults[name]!.includes(JSON.stringify(value))),
	);
	return entries.length === 0 ? null : Object.fromEntries(entries);
}

export function sameStyle(a: Style, b: Style): boolean {
	return a === b || JSON.stringify(plainStyle(a)) === JSON.stringify(plainStyle(b));
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number';
/** Objects whose fields, as far as they are known, have values that fit. */
const objectOf =
	(fields: Record<string, Check>): Check =>
	(value) =>
		isObject(value) && Object.entries(fields).every(([name, fits]) => !Object.hasOwn(value, name) || value[name] === null || fits(value[name]));

const colour = objectOf({ rgb: isText, th: isNumber });
const line = objectOf({ s: isNumber, c: isNumber, cl: colour, t: isNumber });
const borders = Object.fromEntries(['t', 'r', 'b', 'l', 'tl_br', 'tl_bc', 'tl_mr', 'bl_tr', 'ml_tr', 'bc_tr'].map((side) => [side, line]));
const padding = objectOf({ t: isNumber, r: isNumber, b: isNumber, l: isNumber });
const fields = new Map<string, Check>(
	Object.entries({
		...{ ff: isText, fs: isNumber, it: isNumber, bl: isNumber, va: isNumber, ht: isNumber, vt: isNumber, tb: isNumber, td: isNumber },
		...{ ul: line, bbl: line, st: line, ol: line, cl: colour, bg: colour, bd: objectOf(borders), pd: padding },
		...{ tr: objectOf({ a: isNumber, v: isNumber }), n: objectOf({ pattern: isText }) },
	}),
);

/** The fields of a style that the grid knows, as far as their values are of the right type. */
export function knownStyle(style: unknown): Style {
	if (!isObject(style)) return null;
	const entries = Object.entries(style).filter(([name, value]) => fields.has(name) && (value === null || fields.get(name)!(value)));
	return entries.length === 0 ? null : Object.fromEntries(entries);
}
