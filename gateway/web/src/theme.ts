// theme.ts - light or dark: what the user has chosen, or what the system prefers. public/preferences.js sets it before the
// first frame; style.css has the colours of each.

const storageKey = 'pg_sheet.theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<(dark: boolean) => void>();

export function isDark(): boolean {
	return document.documentElement.dataset.theme === 'dark';
}

function show(dark: boolean): void {
	document.documentElement.dataset.theme = dark ? 'dark' : 'light';
	for (const listener of listeners) listener(dark);
}

/** Remembers the choice, unless it is what the system prefers: the page then follows the system. */
export function setDark(dark: boolean): void {
	if (dark === system.matches) localStorage.removeItem(storageKey);
	else localStorage.setItem(storageKey, dark ? 'dark' : 'light');
	show(dark);
}

/** Calls `listener` now and after each change, until the returned function is called. */
export function onTheme(listener: (dark: boolean) => void): () => void {
	listeners.add(listener);
	listener(isDark());
	return () => listeners.delete(listener);
}

system.addEventListener('change', () => {
	if (localStorage.getItem(storageKey) === null) show(system.matches);
});
// Another tab has changed it.
window.addEventListener('storage', ({ key, newValue }) => {
	if (key === storageKey) show(newValue === null ? system.matches : newValue === 'dark');
});
