// i18n - the texts of the page in the user's language. The server sends codes only.
import en from './en.json';
import zh from './zh-CN.json';

export type Language = 'en' | 'zh-CN';
const texts: Record<Language, Record<string, string>> = { en, 'zh-CN': zh };
const storageKey = 'pg_sheet.language';

function chosen(): Language {
	const stored = localStorage.getItem(storageKey);
	if (stored === 'en' || stored === 'zh-CN') return stored;
	return navigator.languages.find((tag) => /^(en|zh)\b/i.test(tag))?.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en';
}

export const language: Language = chosen();

export function setLanguage(next: Language): void {
	localStorage.setItem(storageKey, next);
	location.reload();
}

/** The text of a key, with its {placeholders} replaced. */
export function t(key: string, values: Record<string, string | number> = {}): string {
	const text = texts[language][key] ?? key;
	return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

/** t(key), or t(otherwise) if the key does not exist, for codes of the server. */
export function tOr(key: string, otherwise: string, values: Record<string, string | number> = {}): string {
	return t(key in texts[language] ? key : otherwise, values);
}

export function formatTime(timestamp: string): string {
	const at = new Date(timestamp);
	if (Number.isNaN(at.getTime())) return timestamp;
	return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(at);
}
