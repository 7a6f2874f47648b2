// tabs.ts - which tabs the bar shows, which one is next, and where a moved one comes to stand.
import type { Tab } from './book';

/** Those that are not hidden, and the open one. */
export function shownTabs(tabs: readonly Tab[], current: number): Tab[] {
	return tabs.filter(({ sheet, hidden }) => !hidden || sheet === current);
}

/** The sheet of the next shown tab to the right (1) or to the left (-1); null: there is none. */
export function nextTab(tabs: readonly Tab[], current: number, step: 1 | -1): number | null {
	const shown = shownTabs(tabs, current);
	const at = shown.findIndex(({ sheet }) => sheet === current);
	return at < 0 ? null : (shown[at + step]?.sheet ?? null);
}

/** The tab that is shown when this one is left for good: the right neighbour, else the left one, else a hidden one. */
export function neighbour(tabs: readonly Tab[], left: number): number | null {
	const others = tabs.filter(({ sheet, hidden }) => sheet !== left && !hidden);
	return nextTab(tabs, left, 1) ?? nextTab(tabs, left, -1) ?? others[0]?.sheet ?? tabs.find(({ sheet }) => sheet !== left)?.sheet ?? null;
}

/** The tab before which a tab is put to be the one number `to` of those that are shown; null: behind all. */
export function placeBefore(tabs: readonly Tab[], current: number, moved: number, to: number): number | null {
	return shownTabs(tabs, current).filter(({ sheet }) => sheet !== moved)[to]?.sheet ?? null;
}

/** The first name of make(from), make(from + 1), ... that no tab has, without regard to case. */
export function freeName(tabs: readonly Tab[], from: number, make: (n: number) => string): { name: string; n: number } {
	const taken = new Set(tabs.map(({ name }) => name.toLowerCase()));
	let n = from;
	while (taken.has(make(n).toLowerCase())) n++;
	return { name: make(n), n };
}
