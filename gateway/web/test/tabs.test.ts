// Tabs of a book: which are shown, which comes next, where a moved one stands, names of new ones, and what the bar learns of the gateway.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { freeName, neighbour, nextTab, placeBefore, shownTabs } from '../src/book/tabs';
import { stateOf, type Tab } from '../src/book/book';

const tab = (sheet: number, name = `Sheet ${sheet}`, hidden = false): Tab => ({ sheet, name, hidden, colour: null, role: 'owner' });
const tabs = [tab(1), tab(2, 'Two', true), tab(3), tab(4, 'Four', true), tab(5)];
const ids = (some: readonly Tab[]) => some.map(({ sheet }) => sheet);

describe('the bar', () => {
	it('shows the tabs that are not hidden, and the open one', () => {
		expect(ids(shownTabs(tabs, 1))).toEqual([1, 3, 5]);
		expect(ids(shownTabs(tabs, 4))).toEqual([1, 3, 4, 5]);
	});
	it('goes to the next shown tab, and stops at the ends', () => {
		expect([nextTab(tabs, 1, 1), nextTab(tabs, 1, -1), nextTab(tabs, 5, 1), nextTab(tabs, 4, -1)]).toEqual([3, null, null, 3]);
		expect(nextTab(tabs, 9, 1)).toBeNull();
	});
	it('goes to the right of a tab that is left for good, else to the left, else to a hidden one', () => {
		expect([neighbour(tabs, 1), neighbour(tabs, 5), neighbour(tabs, 4)]).toEqual([3, 3, 5]);
		expect(neighbour([tab(1), tab(2, 'Two', true)], 1)).toBe(2);
		expect(neighbour([tab(1)], 1)).toBeNull();
	});
	it('puts a moved tab before a shown one, or behind all', () => {
		expect(placeBefore(tabs, 1, 1, 1)).toBe(5);
		expect(placeBefore(tabs, 1, 1, 2)).toBeNull();
		expect(placeBefore(tabs, 1, 5, 0)).toBe(1);
		expect(placeBefore(tabs, 1, 5, 1)).toBe(3);
	});
	it('proposes a name that no tab has, without regard to case', () => {
		expect(freeName([tab(1), tab(2, 'SHEET 2'), tab(3, 'x')], 2, (n) => `Sheet ${n}`)).toEqual({ name: 'Sheet 3', n: 3 });
	});
});

describe('a book', () => {
	const answer = (more: object = {}) => ({
		id: 7,
		name: 'Accounts',
		role: 'editor' as const,
		tabs: [
			{ id: 1, name: 'One', place: 1, colour: '#1d5fbf', hidden: false, role: 'owner' as const, trashed: false },
			{ id: 2, name: 'Two', place: 2, colour: null, hidden: true, role: 'viewer' as const, trashed: false },
			{ id: 3, name: 'Three', place: 3, colour: null, hidden: false, role: 'owner' as const, trashed: true },
		],
		...more,
	});
	it('has no tabs that are in the trash', () => {
		expect(stateOf(answer()).tabs).toEqual([
			{ sheet: 1, name: 'One', colour: '#1d5fbf', hidden: false, role: 'owner' },
			{ sheet: 2, name: 'Two', colour: null, hidden: true, role: 'viewer' },
		]);
	});

	afterEach(() => vi.unstubAllGlobals());
	/** A module of its own, and a gateway that answers as it is told to. */
	async function load(answers: Record<string, object | number>) {
		const asked: string[] = [];
		vi.resetModules();
		vi.stubGlobal('location', { origin: 'http://gateway' });
		vi.stubGlobal('sessionStorage', { getItem: () => null, setItem() {} });
		vi.stubGlobal('document', { documentElement: { lang: 'en' } });
		vi.stubGlobal('fetch', async (url: string) => {
			const path = url.replace('http://gateway', '');
			asked.push(path);
			const found = answers[path] ?? 404;
			return new Response(JSON.stringify(typeof found === 'number' ? {} : found), { status: typeof found === 'number' ? found : 200 });
		});
		const { Book } = await import('../src/book/book');
		return { Book, asked, answers };
	}
	const account = { token: 't', uid: 1, username: 'ann' };

	it('is read with its sheet, then alone, and tells of changes only', async () => {
		const { Book, asked, answers } = await load({ '/v2/sheets/1': { book: 7 }, '/v2/books/7': answer() });
		const book = new Book(account, 1);
		const heard = vi.fn();
		book.onChange(heard);
		await book.read();
		expect([book.id, book.name, book.role, book.tabs.length, book.current?.name]).toEqual([7, 'Accounts', 'editor', 2, 'One']);
		await book.read();
		expect(heard).toHaveBeenCalledTimes(1);
		answers['/v2/books/7'] = answer({ name: 'Renamed' });
		await book.read();
		expect(heard).toHaveBeenCalledTimes(2);
		expect(asked).toEqual(['/v2/sheets/1', '/v2/books/7', '/v2/books/7', '/v2/books/7']);
		const next = new Book(account, 2);
		expect(next.tabs).toEqual(book.tabs);
		expect(new Book({ ...account, uid: 2 }, 2).tabs).toEqual([]);
		expect(new Book(account, 9).tabs).toEqual([]);
	});
	it('keeps the other tabs if the open one is in the trash, or not shared any more', async () => {
		const { Book, answers } = await load({ '/v2/sheets/1': { book: 7 }, '/v2/books/7': answer() });
		const book = new Book(account, 1);
		await book.read();
		answers['/v2/sheets/1'] = 410;
		answers['/v2/books/7'] = answer({ tabs: answer().tabs.slice(1) });
		await book.read();
		expect([book.id, ids(book.tabs), book.current]).toEqual([7, [2], undefined]);
		answers['/v2/books/7'] = 403;
		answers['/v2/sheets/1'] = { book: null };
		await book.read();
		expect([book.id, book.tabs]).toEqual([null, []]);
	});
	it('is as before while no gateway answers, and none for a guest', async () => {
		const { Book, answers, asked } = await load({ '/v2/sheets/1': { book: 7 }, '/v2/books/7': answer() });
		const book = new Book(account, 1);
		await book.read();
		answers['/v2/books/7'] = 503;
		await book.read();
		expect(book.tabs.length).toBe(2);
		const before = asked.length;
		const guest = new Book({ ...account, link: 'key' }, 1);
		await guest.read();
		expect([asked.length, guest.isKnown]).toEqual([before, false]);
	});
});
