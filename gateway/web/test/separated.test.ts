import { describe, expect, it } from 'vitest';
import { asCsv, Separated, separatorOf } from '../src/separated';

const utf16 = (text: string, bigEndian = false) => {
	const bytes = new Uint8Array(2 * text.length + 2);
	const view = new DataView(bytes.buffer);
	[...'\ufeff', ...text.split('')].forEach((letter, i) => view.setUint16(2 * i, letter.charCodeAt(0), !bigEndian));
	return bytes;
};
const converted = async (content: string | Uint8Array, comma = false) => (await asCsv(new Blob([content as BlobPart]), comma)).text();

describe('separated', () => {
	it('finds the separator of the first records', () => {
		for (const [text, separator] of [
			['a,b\n1,2\n', ','],
			['a;b;c\n1,5;2;3\n', ';'],
			['a\tb\r\n1\t2,5\r\n', '\t'],
			['"a,b";c\n"d\n,;e";f', ';'],
			['note\nfirst; second\n', ','],
			['1,5;2,5\n3,5;4\n', ';'],
			['Name;Wert, EUR\nx;3,5', ';'],
			['a;b,c', ','],
			['a;b', ';'],
			['', ','],
			['only one\n', ','],
			['a;b\n\n1;2\n', ';'],
		] as const)
			expect([text, separatorOf(text).separator]).toEqual([text, separator]);
		expect(separatorOf('sep=;\r\na\n')).toEqual({ separator: ';', skip: 7 });
	});

	it('leaves CSV as it is', async () => {
		const file = new Blob(['\ufeffa,b\r\n1,"2;3"']);
		expect(await asCsv(file, true)).toBe(file);
	});

	it('writes commas, and quotation marks where a field has some', async () => {
		expect(await converted('\ufeffa;b;c\r\n"x;""y""\n,z";1,5;\r\n;;last')).toBe('a,b,c\r\n"x;""y""\n,z","1,5",\r\n,,last');
		expect(await converted('a;b\n1.234,50;-2,5', true)).toBe('a,b\n1234.50,-2.5');
		expect(await converted('a;b\n"1,5";1,5,6', true)).toBe('a,b\n"1,5","1,5,6"');
		expect(await converted('sep=;\na;b')).toBe('a,b');
		expect(await converted('sep=,\na;b,c')).toBe('a;b,c');
	});

	it('reads UTF-16', async () => {
		for (const bigEndian of [false, true]) expect(await converted(utf16('Größe\t😀\r\n1\ta,b', bigEndian))).toBe('Größe,😀\r\n1,"a,b"');
		await expect(asCsv(new Blob([new Uint8Array([0xff, 0xfe, 0x00, 0xd8, 0x41, 0x00])]), false)).rejects.toThrow();
	});

	it('leaves mistakes to the gateway, in their lines', async () => {
		expect(await converted('a;b\n1;"open\n2;3')).toBe('a,b\n1,"open\n2;3');
		expect(await converted('a;b\n1;"x"y\n2;5" pipe, long\n')).toBe('a,b\n1,"x"y\n2,5" pipe, long\n');
		await expect(converted(new Uint8Array([0x61, 0x3b, 0xc4, 0x0a]))).rejects.toThrow();
	});

	it('does not depend on where a part of the file ends', () => {
		const text = 'a;"b;""c"";";1,5\r\n"";x,y;"z"\n';
		const whole = new Separated(';', 0, false);
		const expected = whole.add(text) + whole.end();
		for (let at = 0; at <= text.length; at++) {
			const parts = new Separated(';', 0, false);
			expect(parts.add(text.slice(0, at)) + parts.add(text.slice(at)) + parts.end()).toBe(expected);
		}
		expect(expected).toBe('a,"b;""c"";","1,5"\r\n"","x,y","z"\n');
	});
});
