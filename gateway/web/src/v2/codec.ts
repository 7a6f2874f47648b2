// codec.ts - messages of protocol v2 to and from JSON and bytes. Malformed messages are refused with a CodecError.

import { ByteReader, ByteWriter, CodecError, checkNumber } from './bytes';
import { editToTuple, readCells, readEdits, readProperties, tupleToCell, tupleToLogged, tupleToProperty, writeEdits } from './edits';
import { type FieldKind, type Layout, clientLayouts, items, serverLayouts, words } from './layout';
import type { ClientMessage, Edit, ServerMessage } from './messages';

export { CodecError };

type Fields = Record<string, unknown>;

// ---- from the client ----

export function encodeJson(message: ClientMessage): string {
	const fields: Fields = { t: message.t };
	for (const [name, kind] of clientLayouts[message.t]!.fields) {
		const value = (message as unknown as Fields)[name];
		fields[name] = kind === 'edits' || kind === 'cells' ? (value as Edit[]).map(editToTuple) : value;
	}
	return JSON.stringify(fields);
}

export function encodeBinary(message: ClientMessage): Uint8Array<ArrayBuffer> {
	const layout = clientLayouts[message.t]!;
	const to = new ByteWriter();
	to.byte(layout.code);
	for (const [name, kind] of layout.fields) {
		const value = (message as unknown as Fields)[name];
		if (kind === 'number') to.number((value as number | undefined) ?? 0);
		else if (kind === 'bool') to.number(value ? 1 : 0);
		else if (kind === 'text') to.text(value as string);
		else writeEdits(to, value as Edit[]);
	}
	return to.finish();
}

// ---- from the gateway: binary ----

/** Whether a message with these fields has one of a later version. */
const has = (fields: Fields, since: number): boolean => since === 0 || (fields.v as number) >= since;

function wordAt(kind: FieldKind, index: number): string {
	const word = words[kind]?.[index];
	if (word === undefined) throw new CodecError(`unknown ${kind} ${index}`);
	return word;
}

function flagOf(value: number): boolean {
	if (value > 1) throw new CodecError('neither true nor false');
	return value === 1;
}

function readItems(from: ByteReader, kind: FieldKind): Fields[] {
	const count = from.number();
	if (count > from.left) throw new CodecError('the message ends too early');
	return Array.from({ length: count }, () => readFields(from, items[kind]!));
}

function readField(from: ByteReader, kind: FieldKind): unknown {
	switch (kind) {
		case 'number':
			return from.number();
		case 'text':
			return from.text();
		case 'bool':
			return flagOf(from.number());
		case 'reason':
		case 'role':
		case 'kind':
			return wordAt(kind, from.number());
		case 'logged':
			return readEdits(from);
		case 'cells':
			return readCells(from);
		case 'properties':
			return readProperties(from);
		default:
			return readItems(from, kind);
	}
}

function readFields(from: ByteReader, fields: Layout['fields']): Fields {
	const values: Fields = {};
	for (const [name, kind, since] of fields) if (has(values, since)) values[name] = readField(from, kind);
	return values;
}

const serverNames = new Map(Object.entries(serverLayouts).map(([name, layout]) => [layout.code, name]));

export function decodeBinary(bytes: Uint8Array): ServerMessage {
	const from = new ByteReader(bytes);
	const name = serverNames.get(from.byte());
	if (name === undefined) throw new CodecError('unknown type');
	const message = { t: name, ...readFields(from, serverLayouts[name]!.fields) };
	if (!from.atEnd) throw new CodecError('the message has bytes after its end');
	return message as unknown as ServerMessage;
}

// ---- from the gateway: JSON ----

function listOf(value: unknown): unknown[] {
	if (!Array.isArray(value)) throw new CodecError('not a list');
	return value;
}

function textOf(value: unknown): string {
	if (typeof value !== 'string') throw new CodecError('not a text');
	return value;
}

function tupleToItem(value: unknown, kind: FieldKind): Fields {
	const list = listOf(value);
	const fields = items[kind]!;
	if (list.length !== fields.length) throw new CodecError('a list is too long or too short');
	return Object.fromEntries(fields.map(([name, itemKind], i) => [name, checkField(list[i], itemKind)]));
}

function checkField(value: unknown, kind: FieldKind): unknown {
	switch (kind) {
		case 'number':
			return checkNumber(value);
		case 'text':
			return textOf(value);
		case 'bool':
			if (typeof value !== 'boolean') throw new CodecError('neither true nor false');
			return value;
		case 'reason':
		case 'role':
		case 'kind':
			return wordAt(kind, words[kind]!.indexOf(textOf(value)));
		case 'logged':
			return listOf(value).map(tupleToLogged);
		case 'cells':
			return listOf(value).map(tupleToCell);
		case 'properties':
			return listOf(value).map(tupleToProperty);
		default:
			return listOf(value).map((item) => tupleToItem(item, kind));
	}
}

export function decodeJson(text: string): ServerMessage {
	let value: unknown;
	try {
		value = JSON.parse(text);
	} catch {
		throw new CodecError('not JSON');
	}
	if (typeof value !== 'object' || value === null) throw new CodecError('not an object');
	const fields = value as Fields;
	if (!Object.hasOwn(serverLayouts, textOf(fields.t))) throw new CodecError('unknown type');
	const layout = serverLayouts[fields.t as string]!;
	const message: Fields = { t: fields.t };
	for (const [name, kind, since] of layout.fields) if (has(message, since)) message[name] = checkField(fields[name], kind);
	return message as unknown as ServerMessage;
}
