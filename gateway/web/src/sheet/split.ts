// split.ts - splits edits into operations that the gateway accepts.
import { type Edit, isCell } from '../v2/messages';

const encoder = new TextEncoder();
/** Bytes of an edit besides its content and style, at most. */
const editBytes = 40;

function sizeOf(edit: Edit): number {
	const parts: unknown[] = isCell(edit) ? [edit.content, edit.style] : [edit];
	const text = parts.map((part) => (part === undefined ? '' : JSON.stringify(part))).join('');
	return editBytes + (/^[\x20-\x7e]*$/.test(text) ? text.length : encoder.encode(text).length);
}

export function splitEdits(edits: Edit[], maxEdits = 16384, maxBytes = 1048576): Edit[][] {
	const parts: Edit[][] = [];
	let part: Edit[] = [];
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
