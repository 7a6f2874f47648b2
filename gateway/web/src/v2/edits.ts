// edits.ts - edits in both forms. The binary form is common/edit_codec.h's, in which the database stores them.

import { ByteReader, ByteWriter, CodecError, checkNumber } from './bytes';
import { isOfRows, maxCols, maxRows } from './lines';
import { type CellEdit, type Edit, type LoggedEdit, type PropertyEdit, type StructureEdit, type Style, isProperty, isStructure } from './messages';

const kindSet = 1;
const kindStyle = 2;
const kindResize = 3;
const kindCommit = 4;
const kindRollback = 5;
const kindInsertRows = 6;
const kindProperty = 10;
const kindMask = 0x0f;
const hasStyle = 0x10;
const hasOld = 0x20;
const sameUid = 0x40;
const sameRow = 0x80;

/** The first has the kind kindInsertRows. */
const changeKinds = ['insertRows', 'deleteRows', 'insertColumns', 'deleteColumns'] as const;

const kindOf = (edit: CellEdit): number => (edit.content !== undefined ? kindSet : edit.style !== undefined ? kindStyle : kindResize);

/** A structure edit in the binary form: its position as a cell, and the count as content. */
function changeAsCell(change: StructureEdit): { kind: number; row: number; col: number; content: string } {
	const [row, col] = isOfRows(change) ? [change.at, 0] : [0, change.at];
	return { kind: kindInsertRows + changeKinds.indexOf(change.kind), row, col, content: `${change.n}` };
}

/** A property edit likewise: the end of its range as the cell, `R C KEY` as style, the value as content. */
function propertyAsCell({ row, col, toRow, toCol, key, value }: PropertyEdit): { kind: number; row: number; col: number; content: string; style: string } {
	const [allRows, allCols] = [row === 0 && toRow === maxRows - 1, col === 0 && toCol === maxCols - 1];
	const style = `${allRows ? '*' : row} ${allCols ? '*' : col} ${key}`;
	return { kind: kindProperty, row: allRows ? 0 : toRow, col: allCols ? 0 : toCol, content: value === null ? '' : JSON.stringify(value), style };
}

function cellOf(edit: CellEdit): { kind: number; row: number; col: number; content: string; style: string | undefined } {
	const { row, col, content = '', style } = edit;
	return { kind: kindOf(edit), row, col, content, style: style === undefined ? undefined : style === null ? '' : JSON.stringify(style) };
}

function makeChange(kind: StructureEdit['kind'] | undefined, at: number, n: number): StructureEdit {
	if (kind === undefined) throw new CodecError('unknown kind of edit');
	const change = { kind, at, n };
	const limit = isOfRows(change) ? maxRows : maxCols;
	if (!Number.isSafeInteger(n) || n < 1 || at >= limit || n > limit - at) throw new CodecError('no such rows or columns');
	return change;
}

/** Leaves out undefined properties, so that equal edits are deeply equal. */
function makeEdit(row: number, col: number, content: string | undefined, style: Style | undefined): CellEdit {
	if (row >= maxRows || col >= maxCols) throw new CodecError('no such row or column');
	return { row, col, ...(content !== undefined && { content }), ...(style !== undefined && { style }) };
}

const keyPattern = /^[\w.-]{1,64}$/;

function makeProperty(row: number, col: number, toRow: number, toCol: number, key: unknown, value: unknown): PropertyEdit {
	if (row > toRow || col > toCol || toRow >= maxRows || toCol >= maxCols) throw new CodecError('no such range');
	if (typeof key !== 'string' || !keyPattern.test(key)) throw new CodecError('not a key');
	return { row, col, toRow, toCol, key, value };
}

/** The first row or column as digits, or * for all. Returns the first and the last one. */
function spanOf(first: string, last: number, limit: number): [number, number] {
	if (first === '*') return [0, limit - 1];
	if (!/^(?:0|[1-9][0-9]{0,7})$/.test(first)) throw new CodecError('not a row or column');
	return [Number(first), last];
}

/** The property edit of a binary form. */
function propertyOf(toRow: number, toCol: number, content: string, place: string): PropertyEdit {
	const [first, second, key, ...rest] = place.split(' ');
	if (key === undefined || rest.length > 0) throw new CodecError('a property is malformed');
	const [row, lastRow] = spanOf(first!, toRow, maxRows);
	const [col, lastCol] = spanOf(second!, toCol, maxCols);
	try {
		return makeProperty(row, col, lastRow, lastCol, key, content === '' ? null : JSON.parse(content));
	} catch {
		throw new CodecError('a property is malformed');
	}
}

// ---- binary ----

export function writeEdits(to: ByteWriter, edits: readonly (Edit & { uid?: number })[]): void {
	let before: { uid: number; row: number } | undefined;
	to.number(edits.length);
	for (const edit of edits) {
		const uid = edit.uid ?? 0;
		const { kind, row, col, content, style } = isStructure(edit)
			? { ...changeAsCell(edit), style: undefined }
			: isProperty(edit)
				? propertyAsCell(edit)
				: cellOf(edit);
		const uidIsKnown = before?.uid === uid;
		const rowIsKnown = before?.row === row;
		to.byte(kind | (style !== undefined ? hasStyle : 0) | (uidIsKnown ? sameUid : 0) | (rowIsKnown ? sameRow : 0));
		if (!uidIsKnown) to.number(uid);
		if (!rowIsKnown) to.number(row);
		to.number(col);
		to.text(content);
		if (style !== undefined) to.text(style);
		before = { uid, row };
	}
}

/** SQL may have stored any JSON as a style; only an object is one. */
function styleOf(text: string): Style {
	try {
		const value: unknown = text === '' ? null : JSON.parse(text);
		return typeof value === 'object' && !Array.isArray(value) ? (value as Style) : null;
	} catch {
		return null;
	}
}

/** The number of rows or columns of a structure edit. */
function countOf(digits: string): number {
	if (!/^[1-9][0-9]{0,7}$/.test(digits)) throw new CodecError('not a number of lines');
	return Number(digits);
}

/** What an edit leaves out if it is the same as in the one before. */
interface Before {
	uid: number;
	row: number;
}

/** The parts of an edit that all kinds have. */
function readParts(from: ByteReader, before: Before) {
	const head = from.byte();
	if (!(head & sameUid)) before.uid = from.number();
	if (!(head & sameRow)) before.row = from.number();
	const col = from.number();
	const content = from.text();
	const text = head & hasStyle ? from.text() : undefined;
	return { head, kind: head & kindMask, uid: before.uid, row: before.row, col, content, text };
}

function editOf({ kind, uid, row, col, content, text }: ReturnType<typeof readParts>): LoggedEdit {
	const change = changeKinds[kind - kindInsertRows];
	if (kind < kindSet || (kind > kindResize && !change && kind !== kindProperty)) throw new CodecError('unknown kind of edit');
	if (kind === kindProperty) return { uid, ...propertyOf(row, col, content, text ?? '') };
	if (change) return { uid, ...makeChange(change, change.endsWith('Rows') ? row : col, countOf(content)) };
	return { uid, ...makeEdit(row, col, kind === kindSet ? content : undefined, text === undefined ? undefined : styleOf(text)) };
}

export function readEdits(from: ByteReader): LoggedEdit[] {
	const edits: LoggedEdit[] = [];
	const before: Before = { uid: 0, row: 0 };
	const count = from.number();
	if (count > from.left) throw new CodecError('the message ends too early');
	for (let i = 0; i < count; i++) {
		const parts = readParts(from, before);
		if (parts.head & hasOld) throw new CodecError('unknown kind of edit');
		edits.push(editOf(parts));
	}
	return edits;
}

/** Batches as the database stores them: they also have old contents, which are left out here, and marks of versions, which are null. */
export function* readBatches(from: ByteReader): Generator<{ seq: number; edit: LoggedEdit | null }> {
	while (!from.atEnd) {
		if (from.byte() !== 1) throw new CodecError('not a batch of this version');
		const first = from.number();
		from.number(); // its time
		const count = from.number();
		const before: Before = { uid: 0, row: 0 };
		for (let i = 0; i < count; i++) {
			const parts = readParts(from, before);
			if (parts.head & hasOld) from.text();
			const isMark = parts.kind === kindCommit || parts.kind === kindRollback;
			yield { seq: first + i, edit: isMark ? null : editOf(parts) };
		}
	}
}

/** The properties of a sheet as the database stores them (common/properties.h): each with the seq that has set it. */
export function* readStoredProperties(from: ByteReader): Generator<PropertyEdit> {
	while (!from.atEnd) {
		from.number();
		const { uid: _uid, ...edit } = editOf(readParts(from, { uid: 0, row: 0 }));
		if (!isProperty(edit)) throw new CodecError('not a property');
		yield edit;
	}
}

export function readCells(from: ByteReader): CellEdit[] {
	return readEdits(from).map(({ uid: _uid, ...edit }) => {
		if (isStructure(edit) || isProperty(edit)) throw new CodecError('a block has cells only');
		return edit;
	});
}

export function readProperties(from: ByteReader): PropertyEdit[] {
	return readEdits(from).map(({ uid: _uid, ...edit }) => {
		if (!isProperty(edit)) throw new CodecError('not a property');
		return edit;
	});
}

// ---- JSON: [row,col], [row,col,content], [row,col,content,style], [row,col,null,style], ["insertRows",at,n]; a logged
// edit begins with the uid ----

export function editToTuple(edit: Edit): unknown[] {
	if (isStructure(edit)) return [edit.kind, edit.at, edit.n];
	if (isProperty(edit)) return ['property', edit.row, edit.col, edit.toRow, edit.toCol, edit.key, edit.value];
	if (edit.style !== undefined) return [edit.row, edit.col, edit.content ?? null, edit.style];
	return edit.content !== undefined ? [edit.row, edit.col, edit.content] : [edit.row, edit.col];
}

export function tupleToEdit(tuple: unknown): Edit {
	if (Array.isArray(tuple) && tuple[0] === 'property') return tupleToProperty(tuple);
	if (Array.isArray(tuple) && typeof tuple[0] === 'string') {
		if (tuple.length !== 3) throw new CodecError('an edit is malformed');
		return makeChange(
			changeKinds.find((kind) => kind === tuple[0]),
			checkNumber(tuple[1]),
			checkNumber(tuple[2]),
		);
	}
	return tupleToCell(tuple);
}

export function tupleToCell(tuple: unknown): CellEdit {
	if (!Array.isArray(tuple) || tuple.length < 2 || tuple.length > 4) throw new CodecError('an edit is malformed');
	const [row, col, content, style] = tuple as unknown[];
	if (content !== undefined && content !== null && typeof content !== 'string') throw new CodecError('a content is not a text');
	if (style !== undefined && (typeof style !== 'object' || Array.isArray(style))) throw new CodecError('a style is not an object');
	if (content === null && tuple.length !== 4) throw new CodecError('an edit changes nothing');
	return makeEdit(checkNumber(row), checkNumber(col), content ?? undefined, style as Style | undefined);
}

export function tupleToProperty(tuple: unknown): PropertyEdit {
	if (!Array.isArray(tuple) || tuple.length !== 7 || tuple[0] !== 'property') throw new CodecError('a property is malformed');
	const [row, col, toRow, toCol] = tuple.slice(1, 5).map(checkNumber) as [number, number, number, number];
	return makeProperty(row, col, toRow, toCol, tuple[5], tuple[6]);
}

export function tupleToLogged(tuple: unknown): LoggedEdit {
	if (!Array.isArray(tuple)) throw new CodecError('an edit is malformed');
	return { uid: checkNumber(tuple[0]), ...tupleToEdit(tuple.slice(1)) };
}
