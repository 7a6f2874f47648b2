// sorting.ts - the list of sheets as it is searched and sorted. Pure.
import type { SheetInfo } from '../answers';

export type SortKey = 'name' | 'owner' | 'used';

export interface Arrangement {
	/** Words that the name, or the owner's, has. */
	search: string;
	/** null: in the order of the gateway, the last opened first. */
	by: SortKey | null;
	descending: boolean;
}

export const unarranged: Arrangement = { search: '', by: null, descending: false };

/** Whether all sheets of the list are needed to show it. */
export function needsAll({ search, by }: Arrangement): boolean {
	return by !== null || search.trim() !== '';
}

/** The next order after the header of a column was chosen: ascending, descending, none. Times begin with the latest. */
export function sortedNext({ search, by, descending }: Arrangement, key: SortKey): Arrangement {
	const first = key === 'used';
	if (by !== key) return { search, by: key, descending: first };
	return descending === first ? { search, by: key, descending: !first } : { search, by: null, descending: false };
}

export interface Shown {
	sheet: SheetInfo;
	name: string;
	owner: string;
}

const fold = (text: string) => text.normalize('NFKC').toLowerCase();

/** Those that the search finds, in order. Equal ones stay in the order of the gateway. */
export function arrange(sheets: Shown[], { search, by, descending }: Arrangement, language: string): Shown[] {
	const words = fold(search)
		.split(/\s+/)
		.filter((word) => word !== '');
	const found = sheets.filter(({ name, owner }) => words.every((word) => fold(name).includes(word) || fold(owner).includes(word)));
	if (by === null) return found;
	const { compare } = new Intl.Collator(language, { numeric: true });
	const order = (a: Shown, b: Shown) => (by === 'used' ? Date.parse(a.sheet.updatedAt) - Date.parse(b.sheet.updatedAt) : compare(a[by], b[by]));
	return found.sort((a, b) => (descending ? order(b, a) : order(a, b)));
}
