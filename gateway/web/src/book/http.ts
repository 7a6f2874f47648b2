// http.ts - the books of the account.
import { ask } from '../api';
import type { Role } from '../v2/messages';

/** A book of the list. */
export interface BookInfo {
	id: number;
	name: string;
	owner: string | null;
	role: Role;
	trashed: boolean;
	createdAt: string;
}

export async function listBooks(token: string): Promise<BookInfo[]> {
	const books: BookInfo[] = [];
	for (let after: number | null = null; ;) {
		const page = (await ask('GET', `/v2/books?limit=1000${after === null ? '' : `&after=${after}`}`, token)) as { books: BookInfo[]; next: number | null };
		books.push(...page.books);
		if (page.next === null) return books;
		after = page.next;
	}
}

/** The sheet that is shown when a book is opened: the first tab that is not hidden; null: the book has none. */
export async function firstTab(token: string, book: number): Promise<number | null> {
	const { tabs } = (await ask('GET', `/v2/books/${book}`, token)) as { tabs: { id: number; hidden: boolean; trashed: boolean }[] };
	const there = tabs.filter(({ trashed }) => !trashed);
	return (there.find(({ hidden }) => !hidden) ?? there[0])?.id ?? null;
}

/** Creates a book with one tab, and returns the tab. */
export async function newBook(token: string, name: string, tab: string): Promise<number> {
	const book = (await ask('POST', '/v2/books', token, { name })) as { id: number };
	return addTab(token, book.id, tab);
}

export async function addTab(token: string, book: number, name: string): Promise<number> {
	return ((await ask('POST', `/v2/books/${book}/tabs`, token, { name })) as { id: number }).id;
}

export async function changeBook(token: string, book: number, work: 'rename' | 'trash' | 'recover' | 'purge', name?: string): Promise<void> {
	const path = `/v2/books/${book}`;
	if (work === 'rename') await ask('PATCH', path, token, { name });
	else if (work === 'recover') await ask('POST', `${path}/recover`, token, {});
	else await ask('DELETE', work === 'purge' ? `${path}?purge=true` : path, token);
}
