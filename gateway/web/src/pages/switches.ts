// switches.ts - the switches of language and theme, which each screen has.
import { button, h } from '../dom';
import { language, setLanguage, t } from '../i18n';
import { isDark, setDark } from '../theme';

export function switches(): HTMLElement {
	const next = language === 'en' ? 'zh-CN' : 'en';
	const toLanguage = button(next === 'en' ? 'English' : '中文', () => setLanguage(next), { class: 'link language', lang: next });
	// style.css shows the one that is not the theme.
	const toTheme = button('', () => setDark(!isDark()), { class: 'link theme' });
	toTheme.append(h('span', { class: 'to-dark' }, t('theme.dark')), h('span', { class: 'to-light' }, t('theme.light')));
	return h('span', { class: 'switches' }, toLanguage, toTheme);
}
