// sorting.ts - the list of sheets as it is searched and sorted. Pure.
import type { SheetInfo } from '../answers';
import type { BookInfo } from '../book/http';

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
	/** Of a book: its tab that was used last. */
	sheet: SheetInfo;
	name: string;
	owner: string;
	book?: BookInfo;
	/** Those of a book that have been read, in the list or in the trash. */
	tabs?: SheetInfo[];
}

/** One entry for all tabs of a book, in the place of the one that was used last. Tabs of a book that the account does not see, or that is not
 * in the trash with them, are sheets like others. Books without tabs come last. */
export function gather(sheets: SheetInfo[], books: BookInfo[]): { sheet: SheetInfo; book?: BookInfo; tabs?: SheetInfo[] }[] {
	const byId = new Map(books.map((book) => [book.id, book]));
	const entries = new Map<number, { sheet: SheetInfo; book: BookInfo; tabs: SheetInfo[] }>();
	const all = sheets.flatMap((sheet) => {
		const book = byId.get(sheet.book ?? 0);
		if (!book || book.trashed !== sheet.isDeleted) return [{ sheet }];
		const known = entries.get(book.id);
		const entry = known ?? { sheet, book, tabs: [] };
		entry.tabs.push(sheet);
		entries.set(book.id, entry);
		return known ? [] : [entry];
	});
	const empty = books.filter(({ id }) => !entries.has(id));
	const bare = ({ id, name, owner, role, trashed, createdAt }: BookInfo): SheetInfo => ({
		...{ fid: 0, name, owner, isOwn: role === 'owner', isDeleted: trashed, updatedAt: createdAt, book: id },
	});
	return [...all, ...empty.map((book) => ({ sheet: bare(book), book, tabs: [] }))];
}

const fold = (text: string) => text.normalize('NFKC').toLowerCase();

/** Those that the search finds, in order. Equal ones stay in the order of the gateway. */
export function arrange(sheets: Shown[], { search, by, descending }: Arrangement, language: string): Shown[] {
	const words = fold(search)
		.split(/\s+/)
		.filter((word) => word !== '');
	const has = ({ name, owner, tabs = [] }: Shown, word: string) => [name, owner, ...tabs.map((tab) => tab.name)].some((text) => fold(text).includes(word));
	const found = sheets.filter((each) => words.every((word) => has(each, word)));
	if (by === null) return found;
	const { compare } = new Intl.Collator(language, { numeric: true });
	const order = (a: Shown, b: Shown) => (by === 'used' ? Date.parse(a.sheet.updatedAt) - Date.parse(b.sheet.updatedAt) : compare(a[by], b[by]));
	return found.sort((a, b) => (descending ? order(b, a) : order(a, b)));
}
