// properties.test.ts - properties: tests/vectors/properties.json, which the C code is held to as well
// (tests/unit/test_properties.c), and replicas that edit properties and structure at the same time.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CodecError, decodeBinary, decodeJson, encodeBinary, encodeJson } from '../../src/v2/codec';
import { editToTuple, tupleToEdit } from '../../src/v2/edits';
import { maxCols, maxRows, transform } from '../../src/v2/lines';
import { PropertySet } from '../../src/v2/properties';
import { Replica } from '../../src/v2/replica';
import { type ClientMessage, type Edit, type ServerMessage, type StructureEdit, isProperty, isStructure } from '../../src/v2/messages';

interface Vector {
	name: string;
	json: string;
	hex: string;
	changes: unknown[];
	edits: unknown[];
	result: unknown[];
}
const vectors = JSON.parse(readFileSync(new URL('../../../../tests/vectors/properties.json', import.meta.url), 'utf8')) as Record<
	'client' | 'server' | 'sets' | 'late',
	Vector[]
>;
const bytes = (hex: string) => Uint8Array.from(hex.match(/../g)!, (pair) => parseInt(pair, 16));

function apply(set: PropertySet, edits: readonly Edit[]): void {
	for (const edit of edits) {
		if (isProperty(edit)) set.put(edit);
		else if (isStructure(edit)) set.move(edit);
	}
}

const listed = (set: PropertySet) =>
	set
		.list()
		.map((property) => JSON.stringify(editToTuple(property)))
		.sort();

describe('property edits', () => {
	test.each(vectors.client)('of a client: $name', ({ json, hex }) => {
		const message = JSON.parse(json) as { edits: unknown[] };
		const typed = { ...message, edits: message.edits.map(tupleToEdit) } as ClientMessage;
		expect(JSON.parse(encodeJson(typed))).toEqual(message);
		expect([...encodeBinary(typed)]).toEqual([...bytes(hex)]);
	});

	test.each(vectors.server)('of the gateway: $name', ({ json, hex }) => {
		expect(decodeBinary(bytes(hex))).toEqual(decodeJson(json));
	});

	test.each(['[5,"property",2,0,1,0,"k",1]', '[5,"property",0,0,1,0,"a b",1]', '[5,"property",0,0,1,0,"k"]', '[5,"property",0,0,16777216,0,"k",1]'])(
		'%s is refused',
		(edit) => expect(() => decodeJson(`{"t":"edits","seq":1,"more":false,"edits":[${edit}]}`)).toThrow(CodecError),
	);

	test.each(vectors.sets)('make a set: $name', ({ edits, result }) => {
		const set = new PropertySet();
		apply(set, edits.map(tupleToEdit));
		expect(listed(set)).toEqual(result.map((property) => JSON.stringify(property)).sort());
	});

	test.each(vectors.late)('late: $name', ({ changes, edits, result }) => {
		expect(transform(edits.map(tupleToEdit), changes.map(tupleToEdit).filter(isStructure)).map(editToTuple)).toEqual(result);
	});

	test('extend the sheet, and change no cell', () => {
		const replica = new Replica();
		const message = decodeJson('{"t":"edits","seq":9,"more":false,"edits":[[5,"property",0,1,16777215,1,"width",120],[5,"property",5,0,7,16383,"height",30]]}');
		expect(replica.edits(message as Extract<ServerMessage, { t: 'edits' }>)).toEqual([]);
		expect([replica.rows, replica.cols, replica.cells.size, replica.seq, replica.properties.size]).toEqual([8, 2, 0, 9, 2]);
		replica.reset(0);
		expect(replica.properties.size).toBe(0);
	});
});

/** A generator of numbers from 0 to n - 1. */
function random(seed: number): (n: number) => number {
	let state = seed;
	return (n) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor((state / 2 ** 32) * n);
	};
}

describe('replicas', () => {
	test.each(Array.from({ length: 60 }, (_, seed) => seed))('that edit properties and structure converge, seed %i', (seed) => {
		const roll = random(seed + 1);
		const structure = (): StructureEdit => ({
			kind: (['insertRows', 'deleteRows', 'insertColumns', 'deleteColumns'] as const)[roll(4)]!,
			at: roll(12),
			n: 1 + roll(3),
		});
		const edit = (): Edit => {
			if (roll(3) === 0) return structure();
			const rows = roll(3) === 0 ? [0, maxRows - 1] : [roll(8), 8 + roll(6)];
			const cols = roll(3) === 0 ? [0, maxCols - 1] : [roll(8), 8 + roll(6)];
			return { row: rows[0]!, toRow: rows[1]!, col: cols[0]!, toCol: cols[1]!, key: ['width', 'merge'][roll(2)]!, value: roll(4) === 0 ? null : roll(100) };
		};
		// The sheet has one order. Each client has applied a beginning of it, and its operations are moved by what it reads
		// (pending) and by what it has not read yet when they arrive.
		const log: Edit[][] = [];
		const sheet = new PropertySet();
		const clients = Array.from({ length: 3 }, () => ({ set: new PropertySet(), read: 0, pending: [] as Edit[][], moved: [] as Edit[][] }));
		const readOne = (client: (typeof clients)[0]) => {
			const commit = log[client.read++]!;
			apply(client.set, commit);
			client.pending = client.pending.map((edits) => transform(edits, commit.filter(isStructure)));
		};
		for (let step = 0; step < 80; step++) {
			const client = clients[roll(3)]!;
			const what = roll(3);
			if (what === 0) client.pending.push(Array.from({ length: 1 + roll(3) }, edit));
			else if (what === 1 && client.read < log.length) readOne(client);
			else if (what === 2 && client.pending.length > 0) {
				const unread = log.slice(client.read).flat().filter(isStructure);
				const commit = transform(client.pending.shift()!, unread);
				apply(sheet, commit);
				log.push(commit);
			}
		}
		for (const client of clients) {
			while (client.read < log.length) readOne(client);
			expect(listed(client.set)).toEqual(listed(sheet));
		}
		expect(log.flat().filter(isProperty).length).toBeGreaterThan(3);
	});

	test('an edit that is moved step by step lies where one lies that is moved at once', () => {
		const roll = random(7);
		for (let round = 0; round < 500; round++) {
			const changes = Array.from({ length: 1 + roll(4) }, (): StructureEdit => ({
				kind: (['insertRows', 'deleteRows'] as const)[roll(2)]!,
				at: roll(12),
				n: 1 + roll(2),
			}));
			const first = roll(10);
			const edits: Edit[] = [{ row: first, toRow: first + roll(6), col: 0, toCol: maxCols - 1, key: 'height', value: 9 }];
			const stepwise = changes.reduce((moved, change) => transform(moved, [change]), edits).filter(isProperty);
			const atOnce = transform(edits, changes).filter(isProperty);
			// What others have inserted at a deleted edge is in only one of both; all rows of the author are in both.
			for (const [inner] of [atOnce]) if (inner) expect(stepwise[0]!.row <= inner.row && stepwise[0]!.toRow >= inner.toRow).toBe(true);
		}
	});
});
