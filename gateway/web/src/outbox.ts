// outbox.ts - the operations that are not acknowledged, in IndexedDB. They outlive the page: a later page sends them, or
// shows those that were refused, for a decision.
//
// Each page has a number of its own and a lock with its name, so that nobody else sends the operations of a page that is
// open.
import { findSheet, type Session } from './api';
import { SheetClient, newClient, type Operation, type Outbox } from './v2/client';
import type { Edit } from './v2/messages';

/** An operation as it is stored. */
interface Row {
	page: number;
	n: number;
	uid: number;
	sheet: number;
	client: number;
	acked: number;
	base: number;
	edits: Edit[];
	at: number;
	/** The gateway has refused it. */
	refused?: boolean;
}

/** The gateway remembers a client for at least this time. */
const retentionMs = 7 * 86400000;
const storeName = 'operations';
const heartbeatMs = 90000;
const drainMs = 20000;

let opened: Promise<IDBDatabase> | null = null;

function database(): Promise<IDBDatabase> {
	opened ??= new Promise((resolve, reject) => {
		const request = indexedDB.open('pg_sheet', 1);
		request.onupgradeneeded = () => request.result.createObjectStore(storeName, { keyPath: ['page', 'n'] });
		request.onsuccess = () => resolve(request.result);
		request.onerror = () => reject(request.error);
	});
	return opened;
}

/** Runs a transaction. Resolves when it is durable. */
async function transact<T>(mode: IDBTransactionMode, run: (store: IDBObjectStore) => IDBRequest<T> | void): Promise<T | undefined> {
	const transaction = (await database()).transaction(storeName, mode);
	const request = run(transaction.objectStore(storeName));
	return new Promise((resolve, reject) => {
		transaction.oncomplete = () => resolve(request ? request.result : undefined);
		transaction.onabort = transaction.onerror = () => reject(transaction.error);
	});
}

const lockName = (page: number): string => `pg_sheet.page.${page}`;

/** Holds the page's lock until the returned function is called. */
function holdPage(page: number): () => void {
	const name = lockName(page);
	if (navigator.locks) {
		let free = () => {};
		void navigator.locks.request(name, () => new Promise<void>((resolve) => (free = resolve)));
		return () => free();
	}
	// Without HTTPS there are no locks: the page stores from time to time that it is open.
	const beat = () => localStorage.setItem(name, String(Date.now()));
	beat();
	const timer = setInterval(beat, heartbeatMs / 10);
	return () => {
		clearInterval(timer);
		localStorage.removeItem(name);
	};
}

/** Runs something with the page's lock, unless the page is open. */
async function withPage(page: number, run: () => Promise<void>): Promise<void> {
	const name = lockName(page);
	if (navigator.locks) await navigator.locks.request(name, { ifAvailable: true }, async (lock) => { if (lock) await run(); });
	else if (Date.now() - Number(localStorage.getItem(name) ?? 0) > heartbeatMs) await run();
}

/** The operations of this page. */
export class PageOutbox implements Outbox {
	private readonly page = newClient();
	private readonly free = holdPage(this.page);
	private acked = 0;
	private clients = new Map<number, { client: number; at: number }>();

	constructor(
		private readonly uid: number,
		private readonly sheet: number,
	) {}

	put(operation: Operation, client: number): void {
		this.clients.set(operation.n, { client, at: Date.now() });
		this.write([operation]);
	}

	rebase(operations: readonly Operation[], moved: boolean): void {
		// Without structure edits since then, the stored base and edits are as good.
		if (moved) this.write(operations);
	}

	private write(operations: readonly Operation[]): void {
		const { page, uid, sheet, acked } = this;
		const rows = operations.map(({ n, base, edits }): Row => ({ page, n, uid, sheet, acked, base, edits, ...(this.clients.get(n) ?? { client: 0, at: 0 }) }));
		void transact('readwrite', (store) => rows.forEach((row) => store.put(row))).catch(() => {});
	}

	settle(n: number): void {
		this.acked = Math.max(this.acked, n);
		for (const known of this.clients.keys()) if (known <= n) this.clients.delete(known);
		void transact('readwrite', (store) => store.delete(IDBKeyRange.bound([this.page, 0], [this.page, n]))).catch(() => {});
	}

	remove(n: number): void {
		this.clients.delete(n);
		void transact('readwrite', (store) => store.delete([this.page, n])).catch(() => {});
	}

	close(): void {
		this.free();
	}
}

// ---- what earlier pages have left ----

/** Sends what closed pages of this account have left. Resolves to the numbers of operations that were sent, by sheet. */
export async function sendLeftovers(session: Session): Promise<Map<number, number>> {
	const sent = new Map<number, number>();
	for (const page of new Set((await rowsOf(session.uid)).filter(({ refused }) => !refused).map(({ page }) => page))) {
		await withPage(page, async () => {
			const rows = (await rowsOf(session.uid)).filter((row) => row.page === page && !row.refused);
			if (rows.length === 0) return;
			const count = await drain(session, rows);
			if (count > 0) sent.set(rows[0]!.sheet, (sent.get(rows[0]!.sheet) ?? 0) + count);
		});
	}
	return sent;
}

async function rowsOf(uid: number): Promise<Row[]> {
	try {
		const rows = (await transact<Row[]>('readonly', (store) => store.getAll())) ?? [];
		return rows.filter((row) => row.uid === uid);
	} catch {
		return [];
	}
}

/** Sends the operations of a closed page. Resolves to how many are in the sheet now. */
async function drain(session: Session, rows: Row[]): Promise<number> {
	const { page, sheet, client, acked } = rows[0]!;
	const refuse = (n: number) => transact('readwrite', (store) => store.put({ ...rows.find((row) => row.n === n)!, refused: true }));
	const old = rows.filter(({ at }) => Date.now() - at > retentionMs);
	await Promise.all(old.map(({ n }) => refuse(n)));
	const fresh = rows.filter((row) => !old.includes(row));
	if (fresh.length === 0) return 0;
	let left = fresh.length;
	const stored: Promise<unknown>[] = [];
	// No structure edit is between the bases: it would have moved all of them to its seq.
	const base = Math.max(...fresh.map((row) => row.base));
	let sender: SheetClient | undefined;
	await new Promise<void>((resolve) => {
		const settled = () => --left === 0 && resolve();
		sender = new SheetClient({
			url: async () => (await findSheet(session.token, sheet)).ws,
			sheet,
			client,
			token: () => session.token,
			onRefused: ({ n }) => (stored.push(refuse(n)), settled()),
			onFinished: ({ n }) => (stored.push(transact('readwrite', (store) => store.delete([page, n]))), settled()),
			onMessage: (message) => { if (message.t === 'hello' && message.role !== 'editor' && message.role !== 'owner') resolve(); },
			onClose: (_code, _reason, again) => { if (!again) resolve(); },
			onUnreachable: () => (resolve(), false),
		});
		sender.restore(fresh.map(({ n, edits }) => ({ n, base, lost: false, edits })), base, acked);
		setTimeout(resolve, drainMs);
		sender.connect();
	});
	sender?.close();
	await Promise.allSettled(stored);
	const remaining = (await rowsOf(session.uid)).filter((row) => row.page === page).length;
	return rows.length - remaining;
}

/** What of a sheet could not be sent: to be written again or discarded by the user. */
export interface LeftEdits {
	edits: Edit[];
	forget(): Promise<void>;
}

export async function refusedEdits(uid: number, sheet: number): Promise<LeftEdits[]> {
	const rows = (await rowsOf(uid)).filter((row) => row.refused && row.sheet === sheet);
	return rows.map(({ page, n, edits }) => ({ edits, forget: async () => void (await transact('readwrite', (store) => store.delete([page, n]))) }));
}

/** Sheets with operations that could not be sent. */
export async function refusedSheets(uid: number): Promise<number[]> {
	return [...new Set((await rowsOf(uid)).filter(({ refused }) => refused).map(({ sheet }) => sheet))];
}
