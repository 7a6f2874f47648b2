// separated.ts - the text of files that spreadsheets call CSV, as CSV: Excel separates by semicolons where numbers have a decimal comma,
// and writes "Unicode text" in UTF-16, with tabs. Streams, so a file may be larger than memory.

/** The first bytes, which decide on the separator. */
const headBytes = 65536;

/**
 * The file in UTF-8 with commas; itself if it is that already. comma: numbers have a decimal comma where the user
 * lives. Throws if a text that has to be converted is not of its encoding.
 */
export async function asCsv(file: Blob, comma: boolean): Promise<Blob> {
	const head = new Uint8Array(await file.slice(0, headBytes).arrayBuffer());
	const encoding = head[0] === 0xff && head[1] === 0xfe ? 'utf-16le' : head[0] === 0xfe && head[1] === 0xff ? 'utf-16be' : 'utf-8';
	const isWhole = file.size <= headBytes;
	const found = separatorOf(new TextDecoder(encoding).decode(head, { stream: !isWhole }), isWhole);
	if (encoding === 'utf-8' && found.separator === ',' && found.skip === 0) return file;
	const converter = new Separated(found.separator, found.skip, comma && found.separator === ';');
	const commas = new TransformStream<string, string>({
		transform: (text, out) => out.enqueue(converter.add(text)),
		flush: (out) => out.enqueue(converter.end()),
	});
	const texts = file.stream().pipeThrough(new TextDecoderStream(encoding, { fatal: true }) as unknown as ReadableWritablePair<string, Uint8Array>);
	return new Response(texts.pipeThrough(commas).pipeThrough(new TextEncoderStream())).blob();
}

/** The separator of a text, and the number of letters before its first record: a line like sep=; which Excel reads. */
export function separatorOf(head: string, isWhole = true): { separator: string; skip: number } {
	const told = /^sep=([,;\t])\r?\n/.exec(head);
	if (told) return { separator: told[1]!, skip: told[0].length };
	const counts = recordsOf(head, isWhole);
	const even = (separator: ';' | '\t') => counts.length > 0 && counts.every((count) => count[separator] > 0 && count[separator] === counts[0]![separator]);
	// A single record with commas says too little.
	const sure = counts.length > 1 || counts[0]?.[','] === 0;
	return { separator: !sure ? ',' : even(';') ? ';' : even('\t') ? '\t' : ',', skip: 0 };
}

interface Count {
	',': number;
	';': number;
	'\t': number;
}

/** How many of each separator the first records have outside of quotation marks. */
function recordsOf(head: string, isWhole: boolean, most = 100): Count[] {
	const counts: Count[] = [];
	let count: Count = { ',': 0, ';': 0, '\t': 0 };
	let [quoted, empty] = [false, true];
	for (const letter of head) {
		if (letter === '"') quoted = !quoted;
		else if (!quoted && (letter === '\n' || letter === '\r')) {
			if (!empty) counts.push(count);
			if (counts.length === most) return counts;
			count = { ',': 0, ';': 0, '\t': 0 };
			empty = true;
			continue;
		} else if (!quoted && letter in count) count[letter as keyof Count]++;
		empty = false;
	}
	if (!empty && isWhole) counts.push(count);
	return counts;
}

const decimal = /^[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+),[0-9]+$/;

/** Rewrites a text with another separator, in parts. Quoted fields stay as they are, and so do mistakes, in their lines. */
export class Separated {
	/** What has come of a field that is not quoted; null: the field is quoted. */
	private field: string | null = '';
	private inQuotes = false;

	constructor(
		private readonly separator: string,
		private skip: number,
		private readonly comma: boolean,
	) {}

	add(text: string): string {
		let out = '';
		const from = Math.min(this.skip, text.length);
		this.skip -= from;
		for (let i = from; i < text.length; i++) {
			const letter = text[i]!;
			if (this.field === null) {
				if (letter === '"') this.inQuotes = !this.inQuotes;
				else if (!this.inQuotes && (letter === this.separator || letter === '\n' || letter === '\r')) this.field = '';
				out += letter === this.separator && !this.inQuotes ? ',' : letter;
			} else if (letter === this.separator || letter === '\n' || letter === '\r') {
				out += this.end() + (letter === this.separator ? ',' : letter);
			} else if (letter === '"' && this.field === '') {
				[this.field, this.inQuotes] = [null, true];
				out += letter;
			} else this.field += letter;
		}
		return out;
	}

	/** The last field, if it has no separator behind it. */
	end(): string {
		const field = this.field ?? '';
		this.field = '';
		if (this.comma && decimal.test(field)) return field.replaceAll('.', '').replace(',', '.');
		return field.includes(',') && !field.includes('"') ? `"${field}"` : field;
	}
}
