// v2.properties.test.ts - property edits, which the page reads in both forms, and ignores.

import { describe, expect, test } from 'vitest';
import { CodecError, decodeBinary, decodeJson } from '../src/v2/codec';
import { Replica } from '../src/v2/replica';
import type { ServerMessage } from '../src/v2/messages';

const bytes = (hex: string) => Uint8Array.from(hex.match(/../g)!, (pair) => parseInt(pair, 16));

describe('property edits', () => {
	test.each([
		['{"t":"edits","seq":9,"more":false,"edits":[[5,"property",0,1,16777215,1,"width",120],[5,"property",5,1,7,3,"merge",null],[6,0,0,"x"]]}', '420900031a05000103313230092a20312077696474685a07030009352031206d65726765010600000178'],
		['{"t":"properties","seq":9,"more":false,"properties":[["property",0,0,16777215,16383,"freeze",{"rows":1}],["property",2,0,4,16383,"height",30]]}', '500900021a0000000a7b22726f7773223a317d0a2a202a20667265657a655a04000233300a32202a20686569676874'],
	])('%s', (json, hex) => {
		expect(decodeBinary(bytes(hex))).toEqual(decodeJson(json));
	});

	test.each(['[5,"property",2,0,1,0,"k",1]', '[5,"property",0,0,1,0,"a b",1]', '[5,"property",0,0,1,0,"k"]', '[5,"property",0,0,16777216,0,"k",1]'])(
		'%s is refused', (edit) => expect(() => decodeJson(`{"t":"edits","seq":1,"more":false,"edits":[${edit}]}`)).toThrow(CodecError),
	);

	test('extend the sheet, and change no cell', () => {
		const replica = new Replica();
		const message = decodeJson('{"t":"edits","seq":9,"more":false,"edits":[[5,"property",0,1,16777215,1,"width",120],[5,"property",5,0,7,16383,"height",30]]}');
		expect(replica.edits(message as Extract<ServerMessage, { t: 'edits' }>)).toEqual([]);
		expect([replica.rows, replica.cols, replica.cells.size, replica.seq]).toEqual([8, 2, 0, 9]);
	});
});
