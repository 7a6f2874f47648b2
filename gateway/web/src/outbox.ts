// outbox.ts - the operations that are not acknowledged, in IndexedDB. They outlive the page: another page sends them, or
// shows those that were refused, for a decision.
//
// Each page has a number of its own and a lock with its name, so that nobody else sends the operations of a page that is
// open. Pages look from time to time for what closed ones have left.
import { Msg } from './answers';
import { ApiError, locateSheet, type Session } from './api';
import type { Operation, Outbox, SheetClient } from './v2/client';
import { newClient } from './v2/identity';
import { closeCodes, type Edit } from './v2/messages';

/** An operation as it is stored. */
export interface Row {
	page: number;
	/** The operation's, or a negative number: edits that are not an operation any more. */
	n: number;
	uid: number;
	/** The name of a guest. All guests of a link have one uid. */
	guest?: string;
	sheet: number;
	client: number;
	acked: number;
	base: number;
	edits: Edit[];
	seen?: number;
	at: number;
	/** The user decides about it. */
	refused?: boolean;
}

/** Stores edits until the user has decided about them. None: the user has. */
export type Keep = (edits: readonly Edit[]) => void;

/** The gateway remembers a client for at least this time. */
const retentionMs = 7 * 86400000;
const storeName = 'operations';
const heartbeatMs = 90000;
const drainMs = 20000;
const lookMs = 5000;
/** What another open page sends is rarely unsaved for so long. */
const briefMs = 1000;

let opened: Promise<IDBDatabase> | null = null;

/** The connection, opened again if that has failed, or if the browser has closed it. */
function database(): Promise<IDBDatabase> {
	if (opened) return opened;
	const opening = new Promise<IDBDatabase>((resolve, reject) => {
		const request = indexedDB.open('pg_sheet', 1);
		request.onupgradeneeded = () => request.result.createObjectStore(storeName, { keyPath: ['page', 'n'] });
		request.onsuccess = () => {
			request.result.onclose = () => (opened = null);
			resolve(request.result);
		};
		request.onerror = () => reject(request.error);
	});
	opening.catch(() => (opened = null));
	return (opened = opening);
}

/** Runs a transaction. Resolves when it is durable. */
async function transact<T>(mode: IDBTransactionMode, run: (store: IDBObjectStore) => IDBRequest<T> | void): Promise<T | undefined> {
	const transaction = (await database()).transaction(storeName, mode);
	const request = run(transaction.objectStore(storeName));
	// Otherwise the page commits when it hears of the last request's success. A page that is being left does not.
	transaction.commit();
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
	if (navigator.locks)
		await navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
			if (lock) await run();
		});
	else if (Date.now() - Number(localStorage.getItem(name) ?? 0) > heartbeatMs) await run();
}

/** Whether a page is open, in any tab. */
async function isOpen(page: number): Promise<boolean> {
	const name = lockName(page);
	if (navigator.locks) return (await navigator.locks.query()).held!.some((lock) => lock.name === name);
	return Date.now() - Number(localStorage.getItem(name) ?? 0) <= heartbeatMs;
}

const put = (...rows: Row[]) => transact('readwrite', (store) => rows.forEach((row) => store.put(row)));
const erase = (page: number, n: number) => transact('readwrite', (store) => store.delete([page, n]));

/** Who may send or see a row. */
const ownerOf = ({ uid, username, link }: Session): Pick<Row, 'uid' | 'guest'> => ({ uid, ...(link !== undefined && { guest: username }) });

/** The operations of this page. */
export class PageOutbox implements Outbox {
	readonly page = newClient();
	private readonly free = holdPage(this.page);
	private clients = new Map<number, { client: number; acked: number; at: number }>();
	private kept = 0;
	private works = true;

	constructor(
		private readonly session: Session,
		private readonly sheet: number,
		/** Edits cannot be stored. Called once. */
		private readonly onFailure: () => void,
	) {}

	put(operation: Operation, client: number, acked: number): void {
		this.clients.set(operation.n, { client, acked, at: Date.now() });
		this.write([operation]);
	}

	rebase(operations: readonly Operation[], moved: boolean): void {
		// Without structure edits since then, the stored base and edits are as good.
		if (moved) this.write(operations);
	}

	private write(operations: readonly Operation[]): void {
		const none = { client: 0, acked: 0, at: 0 };
		this.store(
			operations.map(({ n, base, edits, seen }) => ({ ...this.named(n), ...(this.clients.get(n) ?? none), base, edits, ...(seen !== undefined && { seen }) })),
		);
	}

	private named(n: number): Pick<Row, 'page' | 'n' | 'uid' | 'guest' | 'sheet'> {
		return { page: this.page, n, ...ownerOf(this.session), sheet: this.sheet };
	}

	private store(rows: Row[]): void {
		void put(...rows).catch(() => {
			if (this.works) this.onFailure();
			this.works = false;
		});
	}

	settle(n: number): void {
		for (const known of this.clients.keys()) if (known <= n) this.clients.delete(known);
		void transact('readwrite', (store) => store.delete(IDBKeyRange.bound([this.page, 0], [this.page, n]))).catch(() => {});
	}

	remove(n: number): void {
		this.clients.delete(n);
		void erase(this.page, n).catch(() => {});
	}

	/** For edits of this page that are not in the sheet, and wait for the user's decision. */
	keep(): Keep {
		const n = -++this.kept;
		return (edits) => {
			if (edits.length > 0) this.store([{ ...this.named(n), client: 0, acked: 0, base: 0, edits: [...edits], at: Date.now(), refused: true }]);
			else this.remove(n);
		};
	}

	/** Removes what the user has written and the sheet does not have: in this page, and in those that are closed. */
	async discard(): Promise<void> {
		for (const { page, n } of await rowsOf(this.session)) if (page === this.page || !(await isOpen(page))) await erase(page, n);
	}

	close(): void {
		this.free();
	}
}

// ---- what other pages have left ----

export interface Leftovers {
	/** Operations that are in the sheet now. */
	sent: Row[];
	/** Operations of other pages that are not acknowledged. */
	unsent: Row[];
	/** What could not be sent: to be written again or discarded by the user. */
	refused: Row[];
}

/**
 * Sends what closed pages of this account have left: now, when the network is back, and from time to time. Calls `show`
 * before and after. own: the page that asks. Returns a function that ends this.
 */
export function watchLeftovers(session: Session, own: number, show: (leftovers: Leftovers) => void): () => void {
	let busy = false;
	let ended = false;
	const look = async () => {
		if (ended) return;
		try {
			// Also while something is being sent, which can take long.
			if ((await report([])) === 0 || busy) return;
			busy = true;
			await report(await sendLeftovers(session, own).finally(() => (busy = false)));
		} catch {
			// Without IndexedDB, nothing was left.
		}
	};
	const report = async (sent: Row[]): Promise<number> => {
		const rows = (await rowsOf(session)).filter(({ page }) => page !== own);
		const unsent = rows.filter(({ refused }) => !refused);
		const open = new Set<number>();
		for (const page of new Set(rows.map((row) => row.page))) if (await isOpen(page)) open.add(page);
		const isLeft = ({ page, at }: Row) => !open.has(page) || Date.now() - at > briefMs;
		if (!ended) show({ sent, unsent: unsent.filter(isLeft), refused: rows.filter(({ page, refused }) => refused && !open.has(page)) });
		return unsent.length;
	};
	const timer = setInterval(() => void look(), lookMs);
	const listener = () => void look();
	window.addEventListener('online', listener);
	void look();
	return () => {
		ended = true;
		clearInterval(timer);
		window.removeEventListener('online', listener);
	};
}

async function sendLeftovers(session: Session, own: number): Promise<Row[]> {
	const unsent = async () => (await rowsOf(session)).filter(({ page, refused }) => page !== own && !refused);
	const sent: Row[] = [];
	for (const page of new Set((await unsent()).map((row) => row.page))) {
		const send = async () => {
			const rows = (await unsent()).filter((row) => row.page === page);
			if (rows.length > 0) sent.push(...(await drain(session, rows)));
		};
		// What one page has left does not hinder the others.
		await withPage(page, send).catch(() => {});
	}
	return sent;
}

async function rowsOf(session: Session): Promise<Row[]> {
	const { uid, guest } = ownerOf(session);
	const rows = (await transact<Row[]>('readonly', (store) => store.getAll())) ?? [];
	return rows.filter((row) => row.uid === uid && row.guest === guest);
}

/** Close codes that say nothing of what was left. */
const neutralCodes = new Set<number>([1000, closeCodes.unauthorized, closeCodes.replaced]);

/** Sends the operations of a closed page. Returns those that are in the sheet now. */
async function drain(session: Session, rows: Row[]): Promise<Row[]> {
	const { page, sheet, client } = rows[0]!;
	const sent: Row[] = [];
	const writes: Promise<unknown>[] = [];
	const left = new Map(rows.map((row) => [row.n, row]));
	const refuse = (row: Row, edits = row.edits) => {
		left.delete(row.n);
		writes.push(put({ ...row, edits, refused: true }));
	};
	for (const row of rows) if (Date.now() - row.at > retentionMs) refuse(row);
	// Each operation has the base with which it was stored. What came since the first of them is read again.
	const bases = [...left.values()].flatMap(({ base }) => (base > 0 ? [base] : []));
	const { SheetClient: Client } = await import('./v2/client');
	let sender: SheetClient | undefined;
	if (left.size > 0)
		await new Promise<void>((resolve) => {
			const refuseAll = () => left.forEach((row) => refuse(row));
			const settled = () => left.size === 0 && resolve();
			sender = new Client({
				url: (moved) => locateSheet(session.token, sheet, moved),
				sheet,
				client,
				token: () => session.token,
				onRefused: ({ n, edits }) => (refuse(left.get(n)!, edits), settled()),
				onFinished({ n }) {
					sent.push(left.get(n)!);
					left.delete(n);
					writes.push(erase(page, n));
					settled();
				},
				onClose(code, _reason, again) {
					// If the database has forgotten the client, the operations may have been in the sheet before.
					if (code === closeCodes.unknown || !(again || neutralCodes.has(code))) refuseAll();
					if (code === closeCodes.unknown || !again) resolve();
				},
				onUnreachable(error) {
					if (error instanceof ApiError && error.msg !== null && error.msg !== Msg.InvalidToken) refuseAll();
					resolve();
					return false;
				},
			});
			sender.restore(
				[...left.values()].map((row) => ({ ...row, lost: false })),
				bases.length > 0 ? Math.min(...bases) : 0,
				Math.max(...rows.map(({ acked }) => acked)),
			);
			setTimeout(resolve, drainMs);
			sender.connect();
		});
	sender?.close();
	await Promise.all(writes);
	return sent;
}

/** For refused edits of a closed page. */
export const keepRow =
	(row: Row): Keep =>
	(edits) =>
		void (edits.length > 0 ? put({ ...row, edits: [...edits] }) : erase(row.page, row.n)).catch(() => {});
