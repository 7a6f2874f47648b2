// codec.test.ts - the page's codec of protocol v2 against tests/vectors/v2.json, which the gateway's own is held to as well
// (tests/unit/test_v2.c).

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CodecError, decodeBinary, decodeJson, encodeBinary, encodeJson } from '../../src/v2/codec';
import { tupleToEdit } from '../../src/v2/edits';
import type { ClientMessage } from '../../src/v2/messages';

interface Vector {
	name: string;
	json: string;
	hex: string;
}

const vectors = JSON.parse(readFileSync(new URL('../../../../tests/vectors/v2.json', import.meta.url), 'utf8')) as {
	client: Vector[];
	server: Vector[];
};
const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const fromHex = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));

/** What the JSON of a client's message says, as a value. */
function messageOf(json: string): ClientMessage {
	const value = JSON.parse(json) as { edits?: unknown[]; cells?: unknown[] };
	const { edits, cells } = value;
	return { ...value, ...(edits && { edits: edits.map(tupleToEdit) }), ...(cells && { cells: cells.map(tupleToEdit) }) } as unknown as ClientMessage;
}

describe('messages of clients', () => {
	test.each(vectors.client)('$name: both forms are written to the byte', ({ json, hex }) => {
		expect(encodeJson(messageOf(json))).toBe(json);
		expect(toHex(encodeBinary(messageOf(json)))).toBe(hex);
	});

	test('numbers that the protocol does not have are not sent', () => {
		for (const uid of [-1, 0.5, 2 ** 53, NaN]) expect(() => encodeBinary({ t: 'who', uid })).toThrow(CodecError);
	});
});

describe('messages of the gateway', () => {
	test.each(vectors.server)('$name: both forms say the same', ({ json, hex }) => {
		const message = decodeJson(json);
		expect(decodeBinary(fromHex(hex))).toEqual(message);
		expect(message.t).toBe((JSON.parse(json) as { t: string }).t);
	});

	test.each(vectors.server)('$name: no beginning of it is a message', ({ json, hex }) => {
		const bytes = fromHex(hex);
		for (let length = 0; length < bytes.length; length++) expect(() => decodeBinary(bytes.subarray(0, length))).toThrow(CodecError);
		for (let length = 0; length < json.length; length++) expect(() => decodeJson(json.slice(0, length))).toThrow(CodecError);
	});

	test('edits have what they change, and nothing else', () => {
		expect(decodeJson('{"t":"edits","seq":3,"more":false,"edits":[[1,0,0,"x"],[2,1,2,null,null],[0,9,9]]}')).toEqual({
			t: 'edits',
			seq: 3,
			more: false,
			edits: [
				{ uid: 1, row: 0, col: 0, content: 'x' },
				{ uid: 2, row: 1, col: 2, style: null },
				{ uid: 0, row: 9, col: 9 },
			],
		});
	});

	test.each([
		'7',
		'null',
		'{}',
		'{"t":"nothing"}',
		'{"t":"constructor"}',
		'{"t":"ack","n":1}',
		'{"t":"ack","n":-1,"seq":1}',
		'{"t":"nack","n":1,"reason":"whim","row":0,"col":0,"block":false}',
		'{"t":"nack","n":1,"reason":"role","row":0,"col":0,"block":0}',
		'{"t":"role","role":7}',
		'{"t":"cursors","cursors":[[1,2,3]]}',
		'{"t":"edits","seq":1,"more":false,"edits":[[1,0,16384,"x"]]}',
		'{"t":"edits","seq":1,"more":false,"edits":[[1,0,0,7]]}',
		'{"t":"edits","seq":1,"more":false,"edits":[[1,0,0,"x","y"]]}',
	])('malformed: %s', (json) => {
		expect(() => decodeJson(json)).toThrow(CodecError);
	});

	test.each(['', '00', '40', '440101ff', '4c09', '45010900000000', '420100010600000000', '42010001210000000000', '4effff'])('malformed: binary %s', (hex) => {
		expect(() => decodeBinary(fromHex(hex))).toThrow(CodecError);
	});
});
