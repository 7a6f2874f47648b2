// edits.ts - edits in both forms. The binary one is that of common/edit_codec.h, in which they rest in the database.

import { ByteReader, ByteWriter, CodecError } from './bytes';
import type { Edit, LoggedEdit, Style } from './messages';

const kindSet = 1;
const kindStyle = 2;
const kindResize = 3;
const kindMask = 0x0f;
const hasStyle = 0x10;
const hasOld = 0x20;
const sameUid = 0x40;
const sameRow = 0x80;

const maxRows = 16777216;
const maxCols = 16384;

const kindOf = (edit: Edit): number =>
	edit.content !== undefined ? kindSet : edit.style !== undefined ? kindStyle : kindResize;

/** An edit without what it does not have, so that equal edits are deeply equal. */
function makeEdit(row: number, col: number, content: string | undefined, style: Style | undefined): Edit {
	if (row >= maxRows || col >= maxCols) throw new CodecError('no such row or column');
	return { row, col, ...(content !== undefined && { content }), ...(style !== undefined && { style }) };
}

// ---- binary ----

export function writeEdits(to: ByteWriter, edits: readonly (Edit & { uid?: number })[]): void {
	let before: (Edit & { uid?: number }) | undefined;
	to.number(edits.length);
	for (const edit of edits) {
		const kind = kindOf(edit);
		const uidIsKnown = before !== undefined && (before.uid ?? 0) === (edit.uid ?? 0);
		const rowIsKnown = before !== undefined && before.row === edit.row;
		to.byte(
			kind | (edit.style !== undefined ? hasStyle : 0) | (uidIsKnown ? sameUid : 0) | (rowIsKnown ? sameRow : 0),
		);
		if (!uidIsKnown) to.number(edit.uid ?? 0);
		if (!rowIsKnown) to.number(edit.row);
		to.number(edit.col);
		to.text(edit.content ?? '');
		if (edit.style !== undefined) to.text(edit.style === null ? '' : JSON.stringify(edit.style));
		before = edit;
	}
}

/** SQL may have stored anything as a style: what is no object is none. */
function styleOf(text: string): Style {
	try {
		const value: unknown = text === '' ? null : JSON.parse(text);
		return typeof value === 'object' && !Array.isArray(value) ? (value as Style) : null;
	} catch {
		return null;
	}
}

export function readEdits(from: ByteReader): LoggedEdit[] {
	const edits: LoggedEdit[] = [];
	let uid = 0;
	let row = 0;
	const count = from.number();
	if (count > from.left) throw new CodecError('the message ends too early');
	for (let i = 0; i < count; i++) {
		const head = from.byte();
		const kind = head & kindMask;
		if (kind < kindSet || kind > kindResize || head & hasOld) throw new CodecError('unknown kind of edit');
		if (!(head & sameUid)) uid = from.number();
		if (!(head & sameRow)) row = from.number();
		const col = from.number();
		const content = from.text();
		const style = head & hasStyle ? styleOf(from.text()) : undefined;
		edits.push({ uid, ...makeEdit(row, col, kind === kindSet ? content : undefined, style) });
	}
	return edits;
}

// ---- JSON: [row,col], [row,col,content], [row,col,content,style], [row,col,null,style]; logged ones begin with the uid ----

export function editToTuple(edit: Edit): unknown[] {
	if (edit.style !== undefined) return [edit.row, edit.col, edit.content ?? null, edit.style];
	return edit.content !== undefined ? [edit.row, edit.col, edit.content] : [edit.row, edit.col];
}

function index(value: unknown): number {
	if (!Number.isSafeInteger(value) || (value as number) < 0) throw new CodecError('a number is out of range');
	return value as number;
}

export function tupleToEdit(tuple: unknown): Edit {
	if (!Array.isArray(tuple) || tuple.length < 2 || tuple.length > 4) throw new CodecError('an edit is malformed');
	const [row, col, content, style] = tuple as unknown[];
	if (content !== undefined && content !== null && typeof content !== 'string')
		throw new CodecError('a content is not a text');
	if (style !== undefined && (typeof style !== 'object' || Array.isArray(style)))
		throw new CodecError('a style is not an object');
	if (content === null && tuple.length !== 4) throw new CodecError('an edit changes nothing');
	return makeEdit(index(row), index(col), content ?? undefined, style as Style | undefined);
}

export function tupleToLogged(tuple: unknown): LoggedEdit {
	if (!Array.isArray(tuple)) throw new CodecError('an edit is malformed');
	return { uid: index(tuple[0]), ...tupleToEdit(tuple.slice(1)) };
}
