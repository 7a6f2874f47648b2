// xml.ts - reads the XML of a part as it is unpacked. Names have no prefixes. A document type, and so an entity of its own, is refused.
import { SaxesParser } from 'saxes';
import { Refused } from './refused';
import type { Zip } from './zip';

export type Attributes = Record<string, string>;

export interface Handler {
	/** False: what is in the element is passed over. */
	open(name: string, attributes: Attributes): boolean | void;
	close?(name: string): void;
	text?(text: string): void;
	/** After each piece: it is waited for before the next one is read. */
	pause?(): Promise<void>;
}

const withoutPrefix = (name: string): string => name.slice(name.indexOf(':') + 1);

function decoderOf(first: Buffer): TextDecoder {
	const mark = first.length >= 2 ? first.readUInt16BE(0) : 0;
	return new TextDecoder(mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8', { fatal: true });
}

function parserOf(part: string, handler: Handler): SaxesParser {
	const parser = new SaxesParser();
	const broken = (reason: string) => new Refused('workbook_broken', `the XML of a part is broken: ${reason}`, { part });
	/** How deep the element is that is passed over; 0: none is. */
	let skipped = 0;
	parser.on('error', (error) => {
		throw broken(error.message);
	});
	parser.on('doctype', () => {
		throw broken('it has a document type, which workbooks have not');
	});
	parser.on('opentag', ({ name, attributes }) => {
		if (skipped > 0 || handler.open(withoutPrefix(name), attributes as Attributes) === false) skipped++;
	});
	parser.on('closetag', ({ name }) => {
		if (skipped > 0) skipped--;
		else handler.close?.(withoutPrefix(name));
	});
	const text = (characters: string) => {
		if (skipped === 0) handler.text?.(characters);
	};
	parser.on('text', text);
	parser.on('cdata', text);
	return parser;
}

export async function readXml(zip: Zip, part: string, handler: Handler): Promise<void> {
	const parser = parserOf(part, handler);
	let decoder: TextDecoder | undefined;
	try {
		for await (const chunk of zip.read(part)) {
			decoder ??= decoderOf(chunk);
			parser.write(decoder.decode(chunk, { stream: true }));
			await handler.pause?.();
		}
		parser.write(decoder?.decode() ?? '').close();
	} catch (error) {
		if (error instanceof TypeError && /encoded data/.test(error.message)) throw new Refused('workbook_broken', 'the text of a part is not UTF-8', { part });
		throw error;
	}
}

/** Attributes by their names without prefixes: r:id is id. */
export const bare = (attributes: Attributes): Attributes => Object.fromEntries(Object.entries(attributes).map(([name, value]) => [withoutPrefix(name), value]));

export const isTrue = (value: string | undefined): boolean => value === '1' || value === 'true' || value === 'on';

/** A number of an attribute; undefined: there is none. */
export function numberOf(value: string | undefined): number | undefined {
	const number = value === undefined || value.trim() === '' ? NaN : Number(value);
	return Number.isFinite(number) ? number : undefined;
}

/** What the database does not store. */
const unstored = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Characters that XML does not have: _x000A_. */
export const unescapeText = (text: string): string =>
	text.includes('_x') ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, code: string) => String.fromCharCode(parseInt(code, 16))).replace(unstored, '\ufffd') : text;
