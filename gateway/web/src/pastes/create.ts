// create.ts - makes a paste: the request, why it was refused, and the choice of its end.
import type { Session } from '../api';
import { h } from '../dom';
import { t } from '../i18n';

const leastBytes = 20;
export const mostBytes = 32768;
const ends = { hour: 3600, day: 86400, week: 604800 };

export interface NewPaste {
	content: string;
	title: string;
	lang: string;
	/** Seconds until its end. */
	expiration: number;
}

/** Why a text of this size cannot be a paste; '' if it can. */
export function sizeProblem(content: string): string {
	const size = new TextEncoder().encode(content).length;
	return size < leastBytes || size > mostBytes ? t('paste.refused.size', { size }) : '';
}

export function endChoice(id: string): HTMLSelectElement {
	return h('select', { id }, ...Object.entries(ends).map(([name, value]) => h('option', { value, selected: name === 'day' }, t(`paste.${name}`))));
}

/** The page that shows a paste. */
export const addressOf = (key: string): string => `${location.origin}/p/${key}.html`;

async function refusal(answer: Response | null, content: string): Promise<string> {
	const reason = ((await answer?.json().catch(() => null)) as { data?: unknown } | null)?.data;
	if (!answer) return t('paste.failed');
	if (answer.status === 401) return t('paste.refused.account');
	if (answer.status === 429) return t('paste.refused.rate', { seconds: answer.headers.get('retry-after') ?? '?' });
	if (answer.status === 501) return t('paste.refused.off');
	return sizeProblem(content) || t('paste.refused', { reason: String(reason) });
}

/** Makes a paste of the account, or of nobody: resolves to its key, or to why it was refused. */
export async function createPaste(session: Session | null, paste: NewPaste): Promise<{ key: string } | { key?: undefined; problem: string }> {
	const answer = await fetch('/record', {
		method: 'POST',
		headers: { 'content-type': 'application/json', ...(session ? { authorization: `Bearer ${session.token}` } : {}) },
		body: JSON.stringify(paste),
		credentials: 'omit',
	}).catch(() => null);
	const key = answer?.ok ? ((await answer.json().catch(() => null)) as { key?: unknown } | null)?.key : null;
	return typeof key === 'string' ? { key } : { problem: await refusal(answer, paste.content) };
}
