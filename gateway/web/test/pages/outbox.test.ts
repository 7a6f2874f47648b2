// outbox.test.ts - what is kept in the browser, in an IndexedDB of the test: whose it is, and what ends with the visit of a guest.
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { Session } from '../../src/api';
import type { Leftovers, PageOutbox, Row } from '../../src/outbox';

const rows = new Map<string, Row>();
const later = (run: () => void) => queueMicrotask(run);

/** One store, whose requests are done at once. */
const database = {
	transaction() {
		const transaction = { objectStore: () => store, commit: () => later(() => transaction.oncomplete()), oncomplete() {} };
		return transaction;
	},
};
const store = {
	put: (row: Row) => rows.set(`${row.page} ${row.n}`, structuredClone(row)),
	delete: ([page, n]: [number, number]) => rows.delete(`${page} ${n}`),
	getAll: () => ({ result: structuredClone([...rows.values()]) }),
};

let outbox: typeof import('../../src/outbox');
beforeAll(async () => {
	vi.stubGlobal('indexedDB', {
		open() {
			const request = { result: database, onsuccess() {} };
			later(() => request.onsuccess());
			return request;
		},
	});
	const kept = new Map<string, string>();
	const storage = {
		getItem: (name: string) => kept.get(name) ?? null,
		setItem: (name: string, value: string) => kept.set(name, value),
		removeItem: (name: string) => kept.delete(name),
	};
	vi.stubGlobal('localStorage', storage);
	vi.stubGlobal('sessionStorage', storage);
	vi.stubGlobal('location', new URL('http://localhost/'));
	vi.stubGlobal('navigator', { language: 'en', languages: ['en'] });
	vi.stubGlobal('window', { addEventListener() {}, removeEventListener() {} });
	outbox = await import('../../src/outbox');
});
afterAll(() => vi.unstubAllGlobals());
beforeEach(() => rows.clear());

const guest = (username: string): Session => ({ token: 't', uid: 2 ** 52 + 7, username, link: 'key' });
const open = (session: Session): PageOutbox => new outbox.PageOutbox(session, 5, () => expect.unreachable());
/** What another page of a person is offered. */
async function offered(session: Session): Promise<unknown[]> {
	const found = await new Promise<Leftovers>((resolve) => {
		const end = outbox.watchLeftovers(session, 1, (leftovers) => (later(() => end()), resolve(leftovers)));
	});
	return found.refused.map(({ edits }) => edits);
}
const text = [{ row: 0, col: 0, content: 'private' }];

test('what a guest has left is offered to a guest of the same name only, though all guests of a link have one uid', async () => {
	const page = open(guest('Ann'));
	page.keep()(text);
	page.close();
	await vi.waitFor(() => expect(rows.size).toBe(1));
	expect(await offered(guest('Ben'))).toEqual([]);
	expect(await offered({ token: 't', uid: guest('Ann').uid, username: 'Ann' })).toEqual([]);
	expect(await offered(guest('Ann'))).toEqual([text]);
});

test('a guest who leaves takes along what this page and closed ones have stored, and nothing of others', async () => {
	const [ann, ben] = [guest('Ann'), guest('Ben')];
	const [closed, elsewhere, of, page] = [open(ann), open(ann), open(ben), open(ann)];
	for (const each of [closed, elsewhere, of, page]) each.keep()(text);
	page.put({ n: 1, base: 3, edits: text, lost: false }, 9, 0);
	closed.close();
	of.close();
	await vi.waitFor(() => expect(rows.size).toBe(5));
	await page.discard();
	expect([...rows.values()].map((row) => row.page).sort()).toEqual([elsewhere.page, of.page].sort());
	page.close();
	elsewhere.close();
});

test('rows of an account have no name, and an account finds them', async () => {
	const account = { token: 't', uid: 3, username: 'ann' };
	const page = open(account);
	page.keep()(text);
	page.close();
	await vi.waitFor(() => expect(rows.size).toBe(1));
	expect([...rows.values()][0]).not.toHaveProperty('guest');
	expect(await offered({ ...account, username: 'renamed' })).toEqual([text]);
});
