// split.ts - splits edits into operations that the gateway accepts.
import type { CellEdit } from '../v2/messages';

const encoder = new TextEncoder();
/** Bytes of an edit besides its content and style, at most. */
const editBytes = 40;

function sizeOf({ content, style }: CellEdit): number {
	const text = (content === undefined ? '' : JSON.stringify(content)) + (style === undefined ? '' : JSON.stringify(style));
	return editBytes + (/^[\x20-\x7e]*$/.test(text) ? text.length : encoder.encode(text).length);
}

export function splitEdits(edits: CellEdit[], maxEdits = 16384, maxBytes = 1048576): CellEdit[][] {
	const parts: CellEdit[][] = [];
	let part: CellEdit[] = [];
	let bytes = 200;
	for (const edit of edits) {
		const size = sizeOf(edit);
		if (part.length === maxEdits || (bytes + size > maxBytes && part.length > 0)) {
			parts.push(part);
			part = [];
			bytes = 200;
		}
		part.push(edit);
		bytes += size;
	}
	if (part.length > 0) parts.push(part);
	return parts;
}
