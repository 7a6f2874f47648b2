// texts.ts - all texts of the page, by language.
import en from '../src/i18n/en.json';
import enDialogs from '../src/i18n/en.dialogs.json';
import enEditor from '../src/i18n/en.editor.json';
import enLinks from '../src/i18n/en.links.json';
import enCalendar from '../src/i18n/en.calendar.json';
import enPastes from '../src/i18n/en.pastes.json';
import zh from '../src/i18n/zh-CN.json';
import zhDialogs from '../src/i18n/zh-CN.dialogs.json';
import zhEditor from '../src/i18n/zh-CN.editor.json';
import zhLinks from '../src/i18n/zh-CN.links.json';
import zhCalendar from '../src/i18n/zh-CN.calendar.json';
import zhPastes from '../src/i18n/zh-CN.pastes.json';

/** Those of the pages that need no sheet. */
export const first: Record<string, string> = en;
export const english: Record<string, string> = { ...en, ...enDialogs, ...enEditor, ...enLinks, ...enPastes, ...enCalendar };
export const chinese: Record<string, string> = { ...zh, ...zhDialogs, ...zhEditor, ...zhLinks, ...zhPastes, ...zhCalendar };
export const parts: [english: Record<string, string>, chinese: Record<string, string>][] = [
	[en, zh],
	[enDialogs, zhDialogs],
	[enEditor, zhEditor],
	[enLinks, zhLinks],
	[enPastes, zhPastes],
	[enCalendar, zhCalendar],
];
