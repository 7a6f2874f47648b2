// errors.ts - refusals in words.
import { ApiError } from './api';
import { notify } from './dom';
import { t, tOr } from './i18n';
import { Msg } from './protocol';

export function explain(error: unknown): string {
	if (error instanceof ApiError && error.msg === null) return t('error.unreachable');
	if (error instanceof ApiError && error.msg === Msg.InvalidFormat && error.detail) return t('error.0.because', { detail: error.detail });
	if (error instanceof ApiError) return tOr(`error.${error.msg}`, 'error.other', { code: error.msg ?? 0 });
	return t('error.unexpected', { detail: error instanceof Error ? error.message : String(error) });
}

export function isSignedOut(error: unknown): boolean {
	return error instanceof ApiError && error.msg === Msg.InvalidToken;
}

/** Runs something that talks to a gateway; tells the user when it fails. True when it did not. */
export async function attempt(run: () => Promise<void>): Promise<boolean> {
	try {
		await run();
		return true;
	} catch (error) {
		notify(explain(error), 'problem');
		return false;
	}
}
