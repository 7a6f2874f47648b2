// upload.ts - the upload of a file to a sheet. Its address opens it for everybody who has it.
import { ApiError, type Session } from '../api';
import { refusal } from '../csv';

export interface UploadedFile {
	/** The name that the sheet has for it. */
	name: string;
	url: string;
}

export interface Upload {
	/** Throws an ApiError if the file was not taken, with code `canceled` if the user has cancelled it. */
	done: Promise<UploadedFile>;
	cancel(): void;
}

const canceled = () => new ApiError(null, 'canceled');

/** Uploads a file. progress: the share that was sent, from 0 to 1. */
export function uploadFile(session: Session, fid: number, file: File, name: string, progress: (share: number) => void): Upload {
	// fetch() tells nothing of its progress.
	const sending = new XMLHttpRequest();
	const done = new Promise<UploadedFile>((resolve, reject) => {
		sending.responseType = 'json';
		sending.open('POST', '/uploadchunk');
		sending.upload.onprogress = ({ loaded, total }) => progress(total === 0 ? 1 : loaded / total);
		sending.onload = () => {
			const answer = sending.response as { success?: unknown; msg?: unknown; data?: unknown; url?: unknown } | null;
			if (sending.status !== 200) reject(refusal(sending.status));
			else if (answer?.success !== true && typeof answer?.msg === 'number') reject(new ApiError(answer.msg));
			else if (typeof answer?.data === 'string' && typeof answer.url === 'string') resolve({ name: answer.data, url: answer.url });
			else reject(new ApiError(null));
		};
		sending.onerror = () => reject(new ApiError(null));
		sending.onabort = () => reject(canceled());
		const form = new FormData();
		form.append('fid', String(fid));
		form.append('token', session.token);
		form.append('uploadfile', file, name);
		sending.send(form);
	});
	return { done, cancel: () => sending.abort() };
}
