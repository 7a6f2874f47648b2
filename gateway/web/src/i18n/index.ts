// i18n - the texts of the page in the user's language. The server sends codes only.

export type Language = 'en' | 'zh-CN';
const storageKey = 'pg_sheet.language';

/** public/preferences.js has chosen it. */
export const language: Language = document.documentElement.lang === 'zh-CN' ? 'zh-CN' : 'en';
let texts: Record<string, string> = {};

/** Loads the texts of the language, before the page is shown. */
export async function loadTexts(): Promise<void> {
	texts = (await (language === 'en' ? import('./en.json') : import('./zh-CN.json'))).default;
}

export function setLanguage(next: Language): void {
	localStorage.setItem(storageKey, next);
	location.reload();
}

/** The text of a key, with its {placeholders} replaced. */
export function t(key: string, values: Record<string, string | number> = {}): string {
	const text = texts[key] ?? key;
	return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

/** t(key), or t(otherwise) if the key does not exist, for codes of the server. */
export function tOr(key: string, otherwise: string, values: Record<string, string | number> = {}): string {
	return t(key in texts ? key : otherwise, values);
}

export function formatTime(timestamp: string): string {
	const at = new Date(timestamp);
	if (Number.isNaN(at.getTime())) return timestamp;
	return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(at);
}
