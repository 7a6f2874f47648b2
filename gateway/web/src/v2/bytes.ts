// bytes.ts - the binary form's numbers (LEB128) and texts (a length, then UTF-8).

export class CodecError extends Error {}

/** Returns the value, which must be an integer that the protocol has. */
export function checkNumber(value: unknown): number {
	if (!Number.isSafeInteger(value) || (value as number) < 0) throw new CodecError('a number is out of range');
	return value as number;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

export class ByteWriter {
	private bytes = new Uint8Array(256);
	private used = 0;

	private reserve(more: number): void {
		if (this.used + more <= this.bytes.length) return;
		const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.used + more));
		grown.set(this.bytes.subarray(0, this.used));
		this.bytes = grown;
	}

	byte(value: number): void {
		this.reserve(1);
		this.bytes[this.used++] = value;
	}

	number(value: number): void {
		checkNumber(value);
		this.reserve(8);
		for (; value >= 0x80; value = Math.floor(value / 128)) this.bytes[this.used++] = (value % 128) | 0x80;
		this.bytes[this.used++] = value;
	}

	text(value: string): void {
		const encoded = encoder.encode(value);
		this.number(encoded.length);
		this.reserve(encoded.length);
		this.bytes.set(encoded, this.used);
		this.used += encoded.length;
	}

	finish(): Uint8Array<ArrayBuffer> {
		return this.bytes.slice(0, this.used);
	}
}

export class ByteReader {
	private at = 0;

	constructor(private readonly bytes: Uint8Array) {}

	get atEnd(): boolean {
		return this.at === this.bytes.length;
	}

	get left(): number {
		return this.bytes.length - this.at;
	}

	byte(): number {
		const value = this.bytes[this.at++];
		if (value === undefined) throw new CodecError('the message ends too early');
		return value;
	}

	number(): number {
		let value = 0;
		for (let factor = 1, i = 0; i < 8; i++, factor *= 128) {
			const byte = this.byte();
			value += (byte & 0x7f) * factor;
			if (byte < 0x80) return checkNumber(value);
		}
		throw new CodecError('a number is out of range');
	}

	text(): string {
		const length = this.number();
		if (length > this.left) throw new CodecError('the message ends too early');
		try {
			return decoder.decode(this.bytes.subarray(this.at, (this.at += length)));
		} catch {
			throw new CodecError('a text is not UTF-8');
		}
	}
}
