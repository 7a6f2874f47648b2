// csv.ts - sheets as CSV files: downloads that the browser writes to its disk, and uploads that become sheets.
import { ApiError, type Session } from './api';
import { Msg } from './answers';
import { tOr, t } from './i18n';

/** A refusal of a file: what is wrong with it, and where. */
export class CsvError extends Error {}

const refusals = new Map<number, number>([
	[401, Msg.InvalidToken],
	[403, Msg.NoPermission],
	[404, Msg.NoSheet],
	[410, Msg.InTrash],
]);

/** What an HTTP status means that has no body of ours. */
export function refusal(status: number, code = `http.${status}`): ApiError {
	const msg = refusals.get(status);
	return new ApiError(msg ?? (status >= 500 || status === 0 ? null : Msg.InvalidFormat), msg === undefined ? code : String(msg));
}

/**
 * Has the browser download a sheet. It sends the cookie for files, so it is asked first whether that may read the sheet. Guests
 * have no cookie: their page reads the file by the token.
 */
export async function downloadCsv(fid: number, token: string | null): Promise<void> {
	const address = `/v2/sheets/${fid}.csv`;
	const how: RequestInit =
		token === null ? { method: 'HEAD', credentials: 'same-origin' } : { headers: { authorization: `Bearer ${token}` }, credentials: 'omit' };
	const answer = await fetch(address, { ...how, cache: 'no-store' }).catch(() => null);
	if (!answer?.ok) throw refusal(answer?.status ?? 0, answer ? undefined : 'unreachable');
	const link = document.createElement('a');
	link.href = token === null ? address : URL.createObjectURL(await answer.blob());
	link.download = token === null ? '' : `${fid}.csv`;
	link.click();
	if (token !== null) setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** The name of a sheet that is made of this file. */
export function sheetNameOf(file: { name: string }): string {
	return [...file.name.replace(/\.(csv|tsv|txt|jsonl)$/i, '')].slice(0, 255).join('') || t('sheets.untitled');
}

/** The options of an import. The gateway recognises those that are absent or empty. */
export interface ImportOptions {
	format?: 'csv' | 'tsv' | 'jsonl';
	encoding?: string;
	/** One letter, or tab. */
	separator?: string;
	lenient?: boolean;
	decimal?: '.' | ',';
	/** The order of day and month in dates that end with the year. */
	dates?: string;
	/** =A1 is a formula, and 1E5 a number. */
	formulas?: boolean;
}

export interface Preview {
	encoding: string;
	separator: string | null;
	/** The place of the first field that is refused unless misplaced quotation marks are permitted. */
	malformed: { line: number; column: number } | null;
	/** The orders in which all dates that end with the year make sense: dmy, mdy. */
	dates: string[];
	rows: string[][];
	/** There are no rows, since the first one ends behind the first bytes. */
	incomplete: boolean;
}

export interface Imported {
	/** Of the new sheet; undefined: cells of a sheet were set. */
	id?: number;
	/** How many fields have misplaced quotation marks, and the line of the first one. */
	forgiven: number;
	forgivenLine: number | null;
}

/** The first bytes of a file, of which the gateway makes a preview. */
const headBytes = 65536;

const queryOf = (options: ImportOptions) => {
	const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== '');
	return given.map(([name, value]) => `&${name}=${encodeURIComponent(String(value))}`).join('');
};

/** Why the gateway has refused a file. */
function fileError(status: number, answer: { code?: unknown; line?: unknown; column?: unknown; offset?: unknown } | null): Error {
	if (typeof answer?.code !== 'string') return refusal(status);
	const { code, line, column, offset } = answer;
	if (offset !== undefined) return new CsvError(t('csv.error.csv_encoding.offset', { offset: String(offset) }));
	return new CsvError(tOr(`csv.error.${code}`, 'error.other', { code, line: String(line), column: String(column) }));
}

/** The first rows of a file, as they would be imported. */
export async function previewImport(session: Session, file: Blob, options: ImportOptions): Promise<Preview> {
	const sent = await fetch(`/v2/sheets/import/preview?${queryOf(options).slice(1)}`, {
		method: 'POST',
		headers: { authorization: `Bearer ${session.token}`, 'content-type': 'text/csv' },
		body: file.slice(0, headBytes),
		credentials: 'omit',
	}).catch(() => null);
	if (!sent) throw refusal(0, 'unreachable');
	const answer = (await sent.json().catch(() => null)) as Preview | null;
	if (!sent.ok || !answer) throw fileError(sent.status, answer as object | null);
	return answer;
}

export interface CsvUpload {
	/** What has become of it. Throws a CsvError if the file cannot become a sheet. */
	done: Promise<Imported>;
	cancel(): void;
}

/** What a file becomes: the method and the address of the request, without the options. */
export type ImportRequest = ['POST' | 'PUT', string];
export const sheetOf = (name: string): ImportRequest => ['POST', `/v2/sheets/import?name=${encodeURIComponent(name)}`];
/** A tab of the book, before another one; null: behind all. */
export const tabOf = (name: string, book: number, before: number | null): ImportRequest => {
	const [method, path] = sheetOf(name);
	return [method, `${path}&book=${book}${before === null ? '' : `&before=${before}`}`];
};
export const cellsFrom = (sheet: number, ref: string): ImportRequest => ['PUT', `/v2/sheets/${sheet}/import?ref=${ref}`];

/** Uploads a file. progress: the share that was sent, from 0 to 1. Nothing is left if it fails. */
export function uploadCsv(session: Session, [method, path]: ImportRequest, file: Blob, options: ImportOptions, progress: (share: number) => void): CsvUpload {
	// fetch() tells nothing of its progress.
	const sending = new XMLHttpRequest();
	const done = new Promise<Imported>((resolve, reject) => {
		sending.responseType = 'json';
		sending.open(method, `${path}${queryOf(options)}`);
		sending.setRequestHeader('authorization', `Bearer ${session.token}`);
		sending.setRequestHeader('content-type', 'text/csv');
		sending.upload.onprogress = ({ loaded, total }) => progress(total === 0 ? 1 : loaded / total);
		sending.onload = () => {
			const answer = sending.response as Imported | null;
			if (sending.status === 200 && answer) resolve(answer);
			else reject(fileError(sending.status, answer as object | null));
		};
		sending.onerror = () => reject(new CsvError(t('csv.broken')));
		sending.onabort = () => reject(new CsvError(t('csv.canceled')));
		sending.send(file);
	});
	return { done, cancel: () => sending.abort() };
}
