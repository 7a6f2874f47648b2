// preferences.js - sets the theme and the language of the document before anything is drawn. A script of its own, since modules
// run after the first frame, and the policy of the page has no inline scripts. src/theme.ts and src/i18n are the readers.
(() => {
	const dark = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
	const zh = navigator.languages.find((tag) => /^(en|zh)\b/i.test(tag))?.toLowerCase().startsWith('zh');
	let chosen = {};
	try {
		chosen = localStorage;
	} catch {
		// The browser refuses storage: nothing is remembered.
	}
	const { 'pg_sheet.theme': theme, 'pg_sheet.language': language } = chosen;
	document.documentElement.dataset.theme = theme === 'dark' || theme === 'light' ? theme : dark;
	document.documentElement.lang = language === 'en' || language === 'zh-CN' ? language : zh ? 'zh-CN' : 'en';
})();
