// zip.ts - the files in a workbook (ZIP), read one after the other with bounds: a file that unpacks to more than it says, or to much
// more than a workbook has, is refused before it is unpacked.
import { type Entry, fromBuffer, type ZipFile } from 'yauzl';
import { mostPictureBytes } from '../pictures';
import { Refused } from './refused';

const mostEntries = 10_000;
/** Of all files, unpacked. */
const mostBytes = 512 << 20;
/** Of what is read: tabs twice, pictures besides. */
const mostTaken = 2 * mostBytes + mostPictureBytes;
/** A larger file that unpacks to more than this many times its size is a bomb. Sheets of equal cells unpack to less than 100 times. */
const bombBytes = 8 << 20;
const mostRatio = 400;
const oleHead = Buffer.from('d0cf11e0a1b11ae1', 'hex');

const openZip = (bytes: Buffer) =>
	new Promise<ZipFile>((resolve, reject) => fromBuffer(bytes, { lazyEntries: true }, (error, zip) => (error ? reject(error) : resolve(zip!))));

function checkHead(bytes: Buffer): void {
	if (bytes.length === 0) throw new Refused('workbook_unknown', 'the file is empty');
	if (bytes.subarray(0, 8).equals(oleHead)) {
		const encrypted = bytes.includes(Buffer.from('EncryptedPackage', 'utf16le'));
		throw encrypted
			? new Refused('workbook_encrypted', 'the workbook is encrypted: save it without a password')
			: new Refused('workbook_unknown', 'the workbook has the old format .xls: save it as .xlsx');
	}
	if (bytes.toString('latin1', 0, 2) !== 'PK') throw new Refused('workbook_unknown', 'the file is no workbook (.xlsx)');
}

export class Zip {
	/** Bytes of what was read. Some parts are read twice; but many tabs may name one part. */
	private taken = 0;

	private constructor(
		private readonly zip: ZipFile,
		private readonly entries: Map<string, Entry>,
	) {}

	static async open(bytes: Buffer): Promise<Zip> {
		checkHead(bytes);
		try {
			const zip = await openZip(bytes);
			if (zip.entryCount > mostEntries) throw new Refused('workbook_limit', `the workbook has more than ${mostEntries} parts`);
			const entries = await Zip.readEntries(zip);
			if (entries.has('mimetype')) throw new Refused('workbook_unknown', 'the workbook is an OpenDocument (.ods): save it as .xlsx');
			return new Zip(zip, entries);
		} catch (error) {
			if (error instanceof Refused) throw error;
			throw new Refused('workbook_broken', `the file is no complete ZIP archive: ${(error as Error).message}`);
		}
	}

	private static readEntries(zip: ZipFile): Promise<Map<string, Entry>> {
		const entries = new Map<string, Entry>();
		let bytes = 0;
		const check = (entry: Entry): void => {
			const { fileName: name, uncompressedSize: size, compressedSize } = entry;
			const part = { part: name };
			// The names of parts differ in more than case.
			const key = name.toLowerCase();
			if (entries.has(key)) throw new Refused('workbook_broken', 'the workbook has a part twice', part);
			if (entry.isEncrypted()) throw new Refused('workbook_encrypted', 'the workbook is encrypted: save it without a password', part);
			bytes += size;
			if (bytes > mostBytes) throw new Refused('workbook_limit', `the workbook unpacks to more than ${mostBytes >> 20} MB`, part);
			if (size > bombBytes && size > compressedSize * mostRatio)
				throw new Refused('workbook_limit', `a part of the workbook unpacks to more than ${mostRatio} times its size`, part);
			entries.set(key, entry);
		};
		return new Promise((resolve, reject) => {
			zip.on('error', reject);
			zip.on('end', () => resolve(entries));
			zip.on('entry', (entry: Entry) => {
				try {
					check(entry);
					zip.readEntry();
				} catch (error) {
					reject(error as Error);
				}
			});
			zip.readEntry();
		});
	}

	/** In small letters. */
	get names(): string[] {
		return [...this.entries.keys()];
	}

	has(name: string): boolean {
		return this.entries.has(name.toLowerCase());
	}

	/** Bytes, unpacked; 0: there is no such file. */
	size(name: string): number {
		return this.entries.get(name.toLowerCase())?.uncompressedSize ?? 0;
	}

	/** The bytes of a file as they are unpacked. Their number and sum are checked. */
	async *read(name: string): AsyncGenerator<Buffer> {
		const entry = this.entries.get(name.toLowerCase());
		if (!entry) throw new Refused('workbook_broken', 'a part of the workbook is missing', { part: name });
		this.taken += entry.uncompressedSize;
		if (this.taken > mostTaken) throw new Refused('workbook_limit', `the tabs unpack to more than ${mostBytes >> 20} MB`, { part: name });
		try {
			const stream = await new Promise<NodeJS.ReadableStream>((resolve, reject) =>
				this.zip.openReadStream(entry, (error, opened) => (error ? reject(error) : resolve(opened))),
			);
			for await (const chunk of stream) yield chunk as unknown as Buffer;
		} catch (error) {
			if (error instanceof Refused) throw error;
			throw new Refused('workbook_broken', `a part of the workbook cannot be unpacked: ${(error as Error).message}`, { part: name });
		}
	}
}
