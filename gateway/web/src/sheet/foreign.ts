// foreign.ts - what formulas of other spreadsheets have that formulas here have not, and what to write instead.

export interface ForeignPart {
	/** The text for the user: formula.KIND. */
	kind: 'semicolons' | 'open' | 'unknown';
	/** The function, or the range. */
	name: string;
	instead: string;
}

const quoted = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\{[^{}]*\}/g;
/** Both kinds of open ranges: C2:C, C2:5. */
const openRange = /(?<![\w.$!])(\$?[A-Z]{1,3}\$?[1-9][0-9]*):(\$?[A-Z]{1,3}|\$?[1-9][0-9]*)(?![\w.(!:])/i;
const longEnough = 1000;

/** C2:C as C2:C1001; C2:5 as C2:Z5. */
function closed(first: string, last: string): string {
	const row = Number(/[0-9]+$/.exec(first)![0]);
	return /[0-9]$/.test(last) ? `${first}:Z${last.replace('$', '')}` : `${first}:${last}${row + longEnough - 1}`;
}

/** The first such part of a content; null if there is none. `isFunction`: whether there is a function of this name. */
export function foreignPart(content: string, isFunction: (name: string) => boolean): ForeignPart | null {
	if (!content.startsWith('=')) return null;
	const text = content.replace(quoted, (part) => ' '.repeat(part.length));
	for (const [, name] of text.matchAll(/(?<![\w.])([A-Z_][\w.]*)\s*\(/gi)) {
		const upper = name!.toUpperCase();
		// Names that are bound by LET and LAMBDA are not functions of ours.
		if (!isFunction(upper) && !/\b(LET|LAMBDA)\s*\(/i.test(text)) return { kind: 'unknown', name: upper, instead: '' };
	}
	const open = openRange.exec(text);
	if (open) return { kind: 'open', name: open[0], instead: closed(open[1]!, open[2]!) };
	return text.includes(';') ? { kind: 'semicolons', name: '', instead: '' } : null;
}
