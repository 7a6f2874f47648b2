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
	return [...file.name.replace(/\.(csv|tsv|txt)$/i, '')].slice(0, 255).join('') || t('sheets.untitled');
}

export interface CsvUpload {
	/** The id of the new sheet. Throws a CsvError if the file cannot become one. */
	done: Promise<number>;
	cancel(): void;
}

/** Uploads the content of a file, which becomes a sheet. progress: the share that was sent, from 0 to 1. Nothing is left if it fails. */
export function uploadCsv(session: Session, file: { name: string }, content: Promise<Blob>, progress: (share: number) => void): CsvUpload {
	// fetch() tells nothing of its progress.
	const sending = new XMLHttpRequest();
	let canceled = false;
	const done = new Promise<number>((resolve, reject) => {
		sending.responseType = 'json';
		sending.open('POST', `/v2/sheets/import?name=${encodeURIComponent(sheetNameOf(file))}`);
		sending.setRequestHeader('authorization', `Bearer ${session.token}`);
		sending.setRequestHeader('content-type', 'text/csv');
		sending.upload.onprogress = ({ loaded, total }) => progress(total === 0 ? 1 : loaded / total);
		sending.onload = () => {
			const answer = sending.response as { id?: unknown; code?: unknown; line?: unknown; column?: unknown } | null;
			if (sending.status === 200 && typeof answer?.id === 'number') resolve(answer.id);
			else if (typeof answer?.code === 'string')
				reject(new CsvError(tOr(`csv.error.${answer.code}`, 'error.other', { code: answer.code, line: String(answer.line), column: String(answer.column) })));
			else reject(refusal(sending.status));
		};
		sending.onerror = () => reject(new CsvError(t('csv.broken')));
		sending.onabort = () => reject(new CsvError(t('csv.canceled')));
		void content.then((csv) => canceled || sending.send(csv));
	});
	const cancel = () => {
		canceled = true;
		sending.abort();
	};
	return { done, cancel };
}
