// i18n - the texts of the page in the user's language. The server sends codes only.

export type Language = 'en' | 'zh-CN';
const storageKey = 'pg_sheet.language';

/** public/preferences.js has chosen it. */
export const language: Language = document.documentElement.lang === 'zh-CN' ? 'zh-CN' : 'en';
const texts: Record<string, string> = {};

async function add(part: Promise<{ default: Record<string, string> }>): Promise<void> {
	Object.assign(texts, (await part).default);
}

/** Loads the texts of the list of sheets and of signing in, before a page is shown. */
export const loadTexts = (): Promise<void> => add(language === 'en' ? import('./en.json') : import('./zh-CN.json'));
/** Loads the other texts, before a sheet is shown. */
export const loadEditorTexts = (): Promise<void> => add(language === 'en' ? import('./en.editor.json') : import('./zh-CN.editor.json'));

/** Loads the texts of what is loaded at its first use: dialogs of the account, uploads. */
export const loadDialogTexts = (): Promise<void> => add(language === 'en' ? import('./en.dialogs.json') : import('./zh-CN.dialogs.json'));

/** Loads the texts of share links and guests. */
export const loadLinkTexts = (): Promise<void> => add(language === 'en' ? import('./en.links.json') : import('./zh-CN.links.json'));

/** Loads the texts of calendars. */
export const loadCalendarTexts = (): Promise<void> => add(language === 'en' ? import('./en.calendar.json') : import('./zh-CN.calendar.json'));

/** Loads the texts of pastes. */
export const loadPasteTexts = (): Promise<void> => add(language === 'en' ? import('./en.pastes.json') : import('./zh-CN.pastes.json'));

export function setLanguage(next: Language): void {
	localStorage.setItem(storageKey, next);
	location.reload();
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const bidiControls = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A name within another text, or in an attribute: if it is written from right to left, it does not move what is around it. */
export function isolated(name: string): string {
	const plain = name.replace(bidiControls, '');
	return rightToLeft.test(plain) ? `\u2068${plain}\u2069` : plain;
}

/** The text of a key, with its {placeholders} replaced. */
export function t(key: string, values: Record<string, string | number> = {}): string {
	const text = texts[key] ?? key;
	return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? isolated(String(values[name])) : whole));
}

/** t(key), or t(otherwise) if the key does not exist, for codes of the server. */
export function tOr(key: string, otherwise: string, values: Record<string, string | number> = {}): string {
	return t(key in texts ? key : otherwise, values);
}

/** The name of somebody in a sheet. The gateway marks guests, and their links, in English. */
export const personName = (name: string): string =>
	name.replace(/^(.*) \((guest|link)\)$/, (_, given: string, kind: string) => t(`person.${kind}`, { name: given }));

export function formatTime(timestamp: string): string {
	const at = new Date(timestamp);
	if (Number.isNaN(at.getTime())) return timestamp;
	return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(at);
}
