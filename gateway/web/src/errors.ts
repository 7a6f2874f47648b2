// errors.ts - refusals in words.
import { ApiError } from './api';
import { notify } from './dom';
import { t, tOr } from './i18n';
import { Msg } from './protocol';

export function explain(error: unknown): string {
	if (error instanceof ApiError) return error.msg === null ? t('error.unreachable') : tOr(`error.${error.msg}`, 'error.other', { code: error.msg });
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
