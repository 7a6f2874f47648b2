// api.ts - HTTP with the gateways: the session, v1's routes as functions, and the gateway of a sheet.
//
// Any gateway answers most requests. If one does not answer, the other known ones are tried. A request that is not
// idempotent is tried again only if it cannot have arrived.
import { Msg, parseAccess, parseAnswer, parseLogEntry, parsePage, parseRoute, parseSheet, parseVersion, ProtocolError } from './answers';
import type { Access, Answer, LogEntry, Page, Route, SheetInfo, Version } from './answers';

const timeoutMs = 10000;
/** For a question that another gateway answers as well. */
const shortTimeoutMs = 4000;
const membersKey = 'pg_sheet.gateways';

/** A refusal, with its number, or no answer (msg null). The texts have its code (`error.CODE`). */
export class ApiError extends Error {
	constructor(
		readonly msg: number | null,
		readonly code = msg === null ? 'unreachable' : String(msg),
		detail = '',
		/** When to try again; null: the gateway does not say. */
		readonly seconds: number | null = null,
	) {
		super(`${code} ${detail}`);
	}
}

/** The gateway of this page first, then the others. */
export function knownGateways(): string[] {
	let stored: unknown = [];
	try {
		stored = JSON.parse(sessionStorage.getItem(membersKey) ?? '[]');
	} catch {
		// The entry is not ours.
	}
	const others = Array.isArray(stored) ? stored.filter((url): url is string => typeof url === 'string') : [];
	return [...new Set([location.origin, ...others])];
}

function storeGateways(urls: string[]): void {
	const all = [...new Set([...knownGateways(), ...urls])].slice(0, 16);
	sessionStorage.setItem(membersKey, JSON.stringify(all));
}

const refusals = new Map<number, number>([
	[400, Msg.InvalidFormat],
	[401, Msg.InvalidToken],
	[403, Msg.NoPermission],
	[404, Msg.NoSheet],
	[410, Msg.InTrash],
]);

/** Their answers set cookies. */
const cookiePaths = new Set(['/login', '/register', '/v2/account/password', '/v2/account/revoke']);

async function request(base: string, path: string, init: RequestInit, timeout = timeoutMs): Promise<unknown> {
	const response = await fetch(base + path, {
		credentials: cookiePaths.has(path) ? 'same-origin' : 'omit',
		...init,
		signal: AbortSignal.timeout?.(timeout),
		cache: 'no-store',
	});
	// v1's routes answer a refusal with 200, v2's with HTTP status codes.
	if (response.status === 204) return null;
	if (response.ok) return (await response.json()) as unknown;
	const body = (await response.json().catch(() => null)) as { code?: unknown } | null;
	throw refusalOf(response.status, body?.code, Number(response.headers.get('retry-after')) || null);
}

/** What an HTTP status means. */
export function refusalOf(status: number, code?: unknown, seconds: number | null = null): ApiError {
	const known = refusals.get(status);
	const msg = known ?? (status >= 500 ? null : Msg.InvalidFormat);
	return new ApiError(msg, typeof code === 'string' ? code : known !== undefined ? String(known) : `http.${status}`, '', seconds);
}

function postInit(body: object): RequestInit {
	return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** Tries one gateway after another. */
export async function tryGateways(bases: string[], path: string, init: RequestInit, again: boolean, timeout = timeoutMs): Promise<unknown> {
	let problem: unknown;
	for (const base of bases) {
		try {
			return await request(base, path, init, timeout);
		} catch (error) {
			problem = error;
			if (error instanceof ApiError && error.msg !== null) break;
			const mayHaveArrived = !(error instanceof TypeError);
			if (mayHaveArrived && !again) break;
		}
	}
	throw problem instanceof ApiError ? problem : new ApiError(null, undefined, String(problem));
}

export async function post(path: string, body: object, { bases = knownGateways(), again = true } = {}): Promise<Answer> {
	return parseAnswer(await tryGateways(bases, path, postInit(body), again));
}

/** A route of v2, at any gateway. token null: for everybody. */
export function ask(method: string, path: string, token: string | null, body?: object, more: Record<string, string> = {}): Promise<unknown> {
	const headers = { ...(token !== null && { authorization: `Bearer ${token}` }), ...(body && { 'content-type': 'application/json' }), ...more };
	return tryGateways(knownGateways(), path, { method, headers, ...(body && { body: JSON.stringify(body) }) }, method !== 'POST');
}

async function call(path: string, body: object, options: { bases?: string[]; again?: boolean } = {}): Promise<unknown> {
	const answer = await post(path, body, options);
	if (!answer.success) throw new ApiError(answer.msg);
	return answer.data;
}

// ---- the session -------------------------------------------------------------------------------------------------------

/**
 * The signed-in user. sessionStorage keeps the session of a tab; new tabs get it by a cookie that scripts cannot read. The
 * token is never in an address.
 */
export interface Session {
	token: string;
	uid: number;
	username: string;
	/** Of a guest: the key of the link by which he has entered (share/http.ts). */
	link?: string;
}

const sessionKey = 'pg_sheet.session';
/** Instead of a session: this tab does not take that of the cookie, which is being removed. */
const signedOut = 'null';

function loadSession(): Session | null {
	try {
		const value = JSON.parse(sessionStorage.getItem(sessionKey) ?? 'null');
		return value && typeof value.token === 'string' && typeof value.username === 'string' ? (value as Session) : null;
	} catch {
		return null;
	}
}

export function saveSession(session: Session): void {
	sessionStorage.setItem(sessionKey, JSON.stringify(session));
}

/** The session of this tab, or of another one. */
export async function currentSession(): Promise<Session | null> {
	return loadSession() ?? (sessionStorage.getItem(sessionKey) === signedOut ? null : sharedSession());
}

/** The session of another tab of this browser, by its cookie; null: there is none. */
export async function sharedSession(): Promise<Session | null> {
	try {
		const init = { ...postInit({}), credentials: 'same-origin' as const };
		const value = (await request(location.origin, '/v2/session', init)) as Partial<Session> | null;
		if (typeof value?.token !== 'string' || typeof value.uid !== 'number' || typeof value.username !== 'string') return null;
		return { token: value.token, uid: value.uid, username: value.username };
	} catch {
		return null;
	}
}

/** Forgets a session that has ended. The tab takes that of the cookie, if another tab has signed in since. */
export function forgetSession(): void {
	sessionStorage.removeItem(sessionKey);
}

export const guestKey = 'pg_sheet.guest';

/** Forgets the guest of this tab (share/http.ts). */
export function forgetGuest(): void {
	sessionStorage.removeItem(guestKey);
}

export function isSignedIn(): boolean {
	return loadSession() !== null;
}

/** Tells the other tabs which account has been signed out. */
const signOuts = new BroadcastChannel('pg_sheet.sign-out');

/** Calls back when another tab has signed out the account of this one. */
export function onSignedOut(callback: () => void): void {
	signOuts.onmessage = ({ data }) => {
		if (loadSession()?.uid !== data) return;
		forgetSession();
		callback();
	};
}

/** Signs out, in this tab at once, then wherever the token is used. Throws if only this tab is signed out. */
export async function endSession(): Promise<void> {
	const session = loadSession();
	sessionStorage.setItem(sessionKey, signedOut);
	await request(location.origin, '/v2/session/end', { ...postInit(session ? { token: session.token } : {}), credentials: 'same-origin', keepalive: true });
	if (sessionStorage.getItem(sessionKey) === signedOut) forgetSession();
	if (session) signOuts.postMessage(session.uid);
}

// ---- accounts -----------------------------------------------------------------------------------------------------------

export async function signIn(username: string, password: string): Promise<Session> {
	const data = (await call('/login', { username, password })) as { token?: unknown } | null;
	return sessionOf(data?.token);
}

export async function register(username: string, email: string, password: string): Promise<Session> {
	return sessionOf(await call('/register', { username, password, email }, { again: false }));
}

async function sessionOf(token: unknown): Promise<Session> {
	if (typeof token !== 'string') throw new ProtocolError('the answer has no token');
	const user = (await call('/getuser', { token, limit: 1 })) as Record<string, unknown> | null;
	if (typeof user?.username !== 'string' || typeof user.uid !== 'number') throw new ProtocolError('the answer has no user');
	return { token, uid: user.uid, username: user.username };
}

/** A page of the account's sheets, the last used first. after: what the page before had as next; null at the end of the list. */
export async function listSheets(token: string, limit: number, after: string | null): Promise<{ sheets: SheetInfo[]; next: string | null }> {
	const query = new URLSearchParams({ limit: String(limit), ...(after !== null && { after }) });
	const data = (await ask('GET', `/v2/sheets?${query}`, token)) as Record<string, unknown> | null;
	if (!Array.isArray(data?.sheets)) throw new ProtocolError('the answer has no sheets');
	return { sheets: data.sheets.map(parseSheet), next: typeof data.next === 'string' ? data.next : null };
}

/** Gets a new token for the session. All others of the account, in other tabs too, end. */
async function renewToken(session: Session, path: string, body: object): Promise<void> {
	const value = (await request(location.origin, path, postInit({ token: session.token, ...body }))) as { token?: unknown } | null;
	if (typeof value?.token !== 'string') throw new ProtocolError('the answer has no token');
	session.token = value.token;
	saveSession(session);
}

/** The change of the token that is under way. An open sheet, whose token it ends, waits for it. */
let renewal: Promise<unknown> = Promise.resolve();

export async function tokenRenewal(): Promise<void> {
	await renewal.catch(() => {});
}

export function changePassword(session: Session, oldPassword: string, password: string): Promise<void> {
	const run = renewToken(session, '/v2/account/password', { oldPassword, password });
	renewal = run;
	return run;
}

/** Ends all tokens of the account but the session's, which is a new one. */
export function revokeTokens(session: Session): Promise<void> {
	const run = renewToken(session, '/v2/account/revoke', {});
	renewal = run;
	return run;
}

export async function changeUsername(session: Session, username: string): Promise<void> {
	await call('/modifyuser', { token: session.token, username }, { again: false });
	session.username = username;
	saveSession(session);
}

// ---- access tokens --------------------------------------------------------------------------------------------------------

/** A program acts as the account by it. */
export interface AccessToken {
	id: number;
	label: string;
	scopes: string[];
	expiresAt: string | null;
	lastUsed: string | null;
}

export async function accessTokens({ token }: Session): Promise<AccessToken[]> {
	const value = await tryGateways(knownGateways(), '/v2/tokens', { headers: { authorization: `Bearer ${token}` } }, true);
	const tokens = (value as { tokens?: unknown } | null)?.tokens;
	if (!Array.isArray(tokens)) throw new ProtocolError('the answer has no tokens');
	return tokens as AccessToken[];
}

/** Returns the token, which no other request tells again. days null: it has no end. */
export async function createAccessToken({ token }: Session, label: string, scopes: string[], days: number | null): Promise<string> {
	const value = (await tryGateways(knownGateways(), '/v2/tokens', postInit({ token, label, scopes, days }), false)) as { token?: unknown } | null;
	if (typeof value?.token !== 'string') throw new ProtocolError('the answer has no token');
	return value.token;
}

export async function revokeAccessToken({ token }: Session, id: number): Promise<void> {
	await tryGateways(knownGateways(), `/v2/tokens/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } }, true);
}

// ---- sheets -------------------------------------------------------------------------------------------------------------

export async function newSheet(token: string, name: string): Promise<number> {
	const fid = await call('/newsheet', { token, name, initRows: 84, initColumns: 60 }, { again: false });
	if (typeof fid !== 'number') throw new ProtocolError('the answer has no fid');
	return fid;
}

/** purge: deletes a sheet that is in the trash for good. Otherwise it is moved there. The gateway refuses what the other would do. */
export async function deleteSheet(token: string, fid: number, purge: boolean): Promise<void> {
	await call('/deletesheet', { token, fid, purge }, { again: false });
}

export async function recoverSheet(token: string, fid: number): Promise<void> {
	await call('/recoversheet', { token, fid }, { again: false });
}

export async function renameSheet(token: string, fid: number, name: string): Promise<void> {
	await tryGateways(knownGateways(), `/v2/sheets/${fid}/rename`, postInit({ token, name }), true);
}

/** Opens a sheet by its link. Later the account can open it without the link. */
export async function openLink(token: string, fid: number, link: string): Promise<void> {
	const value = (await tryGateways(knownGateways(), `/v2/sheets/${fid}/open`, postInit({ token, link }), true)) as { role?: unknown } | null;
	if (typeof value?.role !== 'string') throw new ProtocolError('the answer has no role');
}

/** Finds the gateway of a sheet. */
export async function findSheet(token: string, fid: number): Promise<Route> {
	const init = { headers: { authorization: `Bearer ${token}` } };
	const value = await tryGateways(knownGateways(), `/v2/sheets/${fid}/route`, init, true, shortTimeoutMs);
	const bean = value as { success?: unknown; msg?: unknown };
	if (bean && bean.success === false && typeof bean.msg === 'number') throw new ApiError(bean.msg);
	const route = parseRoute(value);
	const http = reachable(route.http);
	storeGateways([http, ...route.members]);
	return { ...route, http, ws: reachable(route.ws) };
}

/** The WebSocket's address of a sheet. moved: the one to which a gateway has sent the client. */
export async function locateSheet(token: string, fid: number, moved: string | null): Promise<string> {
	return moved === null ? (await findSheet(token, fid)).ws : reachable(moved);
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])$/;

/**
 * The address of a gateway that this page can use: encrypted if the page is, and with the page's host name if both are
 * loopback (to a browser, localhost and 127.0.0.1 are different origins).
 */
function reachable(address: string): string {
	const url = new URL(address);
	if (location.protocol === 'https:') url.protocol = url.protocol.startsWith('ws') ? 'wss:' : 'https:';
	if (loopback.test(url.hostname) && loopback.test(location.hostname)) url.hostname = location.hostname;
	return url.href.replace(/\/$/, '');
}

/** The routes of a sheet, sent to its gateway. */
export class SheetApi {
	constructor(
		private readonly session: Session,
		readonly fid: number,
	) {}

	private async call(path: string, body: object, again: boolean): Promise<unknown> {
		const { http } = await findSheet(this.session.token, this.fid);
		return call(path, { token: this.session.token, fid: this.fid, ...body }, { bases: [http, ...knownGateways().filter((base) => base !== http)], again });
	}

	/** The first cells, with the values of formulas that the server has stored. */
	async storedValues(): Promise<{ seq: number; cells: [row: number, col: number, content: string][] }> {
		return (await ask('GET', `/v2/sheets/${this.fid}/cells?row=0&col=0&toRow=199&toCol=39`, this.session.token)) as never;
	}

	/** The number of the new version; null if nothing has changed since the last one. */
	async commit(label = ''): Promise<number | null> {
		try {
			return (await this.call('/commitsheet', label === '' ? {} : { label }, false)) as number;
		} catch (error) {
			if (error instanceof ApiError && error.msg === Msg.NothingToCommit) return null;
			throw error;
		}
	}

	async version(cid: number): Promise<{ columns: number; content: string[] }> {
		const data = (await this.call('/getsheetchkp', { cid }, true)) as Record<string, unknown> | null;
		const columns = typeof data?.columns === 'number' ? data.columns : 0;
		return { columns, content: Array.isArray(data?.content) ? data.content.map(String) : [] };
	}

	async rollback(cid: number): Promise<void> {
		await this.call('/rollbacksheet', { cid }, false);
	}

	async label(version: number, label: string): Promise<void> {
		await tryGateways(knownGateways(), `/v2/sheets/${this.fid}/label`, postInit({ token: this.session.token, version, label }), true);
	}

	rename(name: string): Promise<void> {
		return renameSheet(this.session.token, this.fid, name);
	}

	/** A page of those who may open the sheet. after: where it begins; null: the first one. */
	async access(after: number | null = null): Promise<Access> {
		return parseAccess(await this.page('access', after === null ? {} : { after }));
	}

	private async page(path: string, query: Record<string, string | number>): Promise<unknown> {
		const { http } = await findSheet(this.session.token, this.fid);
		const bases = [http, ...knownGateways().filter((base) => base !== http)];
		const init = { headers: { authorization: `Bearer ${this.session.token}` } };
		const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
		return tryGateways(bases, `/v2/sheets/${this.fid}/${path}${search === '' ? '' : `?${search}`}`, init, true);
	}

	/**
	 * A page of the edits before a seq, the newest first. found: only those of an account (uid), of a range, or both; such a
	 * page may be empty though there are more.
	 */
	async log(before: number | null, found: { uid?: number; range?: string } = {}): Promise<Page<LogEntry>> {
		return parsePage(await this.page('log', { ...found, ...(before === null ? {} : { before }) }), 'edits', parseLogEntry);
	}

	/** A page of the saved versions before one, the newest first. */
	async versions(before: number | null): Promise<Page<Version>> {
		return parsePage(await this.page('versions', before === null ? {} : { before }), 'versions', parseVersion);
	}

	/** role null: takes it back. */
	async share(username: string, role: string | null): Promise<void> {
		await this.call('/sharesheet', { username, role }, false);
	}

	/** Creates a link and returns its key; role null: ends the link. */
	async shareLink(role: string | null): Promise<string | null> {
		const key = await this.call('/sharelink', { role }, false);
		return typeof key === 'string' ? key : null;
	}
}
