// files.ts - pictures of workbooks as files of sheets: stored in the transaction of an import, and read in that of an export.
import { createHash, type Hash } from 'node:crypto';
import type pg from 'pg';
import { ByteReader } from '../../gateway/web/src/v2/bytes';
import { readStoredProperties } from '../../gateway/web/src/v2/edits';
import { PropertySet } from '../../gateway/web/src/v2/properties';
import { stateOf } from '../database';
import type { Conversion } from './conversion';
import type { FileHead } from './messages';
import { mostPictureBytes, picturesOf } from './pictures';

/** The files of the account would exceed its quota. */
const full = 'SQ001';
/** Of a workbook that is made. */
const mostFiles = 5000;

const beginSql = 'SELECT name, upload_id FROM sheet.file_begin($1, $2, $3, $4, $5)';
const findSql = `SELECT upload_id, size FROM sheet.file_by_digest(sha256(convert_to($1, 'UTF8')), $2)`;

/** Stores one file after the other. */
export class FileWriter {
	private upload: unknown;
	private part = 0;
	private hash!: Hash;

	constructor(
		private readonly client: pg.Client,
		private readonly uid: string,
	) {}

	/** Resolves to its name; null: the account has no room for it. */
	async begin(sheet: unknown, { name, type, size }: FileHead): Promise<string | null> {
		await this.client.query('SAVEPOINT file');
		try {
			const { rows } = await this.client.query(beginSql, [sheet, name, type, size, this.uid]);
			await this.client.query('RELEASE SAVEPOINT file');
			this.upload = rows[0].upload_id;
			this.part = 0;
			this.hash = createHash('sha256');
			return rows[0].name;
		} catch (error) {
			if (stateOf(error) !== full) throw error;
			await this.client.query('ROLLBACK TO SAVEPOINT file');
			return null;
		}
	}

	async put(bytes: Uint8Array): Promise<void> {
		this.hash.update(bytes);
		await this.client.query('SELECT sheet.file_put($1, $2, $3)', [this.upload, this.part++, bytes]);
	}

	/** Resolves to its key. */
	async end(): Promise<string> {
		const { rows } = await this.client.query('SELECT sheet.file_end($1, $2) AS key', [this.upload, this.hash.digest('hex')]);
		return rows[0].key;
	}
}

/** Gives a conversion the files that properties name, each once. Those that are gone, or too many, are left out. */
export class FileSender {
	private readonly asked = new Set<string>();
	private bytes = 0;

	constructor(
		private readonly client: pg.Client,
		private readonly conversion: Conversion,
	) {}

	/** properties: of a sheet, as they are stored. */
	async send(properties: Uint8Array): Promise<void> {
		const set = new PropertySet();
		for (const property of readStoredProperties(new ByteReader(properties))) set.put(property);
		for (const { picture } of picturesOf(set)) {
			const { file, key, type } = picture;
			const name = `${key} ${file}`;
			if (this.asked.has(name) || this.asked.size === mostFiles) continue;
			this.asked.add(name);
			const { rows } = await this.client.query(findSql, [key, file]);
			const size = Number(rows[0]?.size ?? 0);
			if (size === 0 || this.bytes + size > mostPictureBytes) continue;
			this.bytes += size;
			await this.conversion.post({ t: 'picture', key, type });
			await this.sendBytes(rows[0].upload_id);
		}
	}

	private async sendBytes(upload: unknown): Promise<void> {
		for (let part = 0; ; part++) {
			const { rows } = await this.client.query('SELECT sheet.file_get($1, $2) AS bytes', [upload, part]);
			const bytes: Uint8Array | null = rows[0].bytes;
			await this.conversion.post({ t: 'pictureBytes', bytes: bytes ?? new Uint8Array() });
			if (!bytes) return;
		}
	}
}
