// http.ts - share links over HTTP: those of a sheet, for its owners, and entering by one as a guest. Loaded at its first use.
import { ApiError, ask, guestKey, refusalOf, type Session } from '../api';
import { ProtocolError } from '../answers';

/** A share link of a sheet, as its owners see it. */
export interface ShareLink {
	link: number;
	role: string;
	label: string;
	/** null: it has no end. */
	expires: string | null;
	/** The rectangle that it opens; null: the sheet, '': all its cells are deleted. */
	ref: string | null;
	password: boolean;
	state: 'valid' | 'blocked' | 'expired' | 'revoked';
	uses: number;
	lastUsed: string | null;
	createdBy: string | null;
	/** Which pages may show the published view in a frame; null: none. */
	embed: string | null;
	/** Search engines may list the published view. */
	index: boolean;
}

/** What is absent is chosen by the gateway, or stays. */
export interface LinkValues {
	role?: string;
	expires?: string | null;
	ref?: string;
	/** null: none. */
	password?: string | null;
	label?: string;
	blocked?: boolean;
	embed?: string | null;
	index?: boolean;
}

/** The addresses of a new link. They cannot be asked for later: only a digest of its key is stored. */
export interface NewLink {
	address: string;
	/** Of its published view; null: it has none. */
	published: string | null;
}

/** The uid of a link's guests in the log. */
export const guestsOf = (link: number): number => 2 ** 52 + link;

const pathOf = (fid: number, link?: number): string => `/v2/sheets/${fid}/links${link === undefined ? '' : `/${link}`}`;

export async function linksOf({ token }: Session, fid: number): Promise<ShareLink[]> {
	const value = (await ask('GET', pathOf(fid), token)) as { links?: unknown } | null;
	if (!Array.isArray(value?.links)) throw new ProtocolError('the answer has no links');
	return value.links as ShareLink[];
}

/** Fails if rows or columns have moved after `seq`: the rectangle of the values would be of other cells. */
export async function createLink({ token }: Session, fid: number, values: LinkValues, seq?: number): Promise<NewLink> {
	const headers: Record<string, string> = seq === undefined ? {} : { 'if-match': `"${seq}"` };
	const { url, published } = ((await ask('POST', pathOf(fid), token, values, headers)) ?? {}) as { url?: unknown; published?: unknown };
	if (typeof url !== 'string') throw new ProtocolError('the answer has no address');
	return { address: location.origin + url, published: typeof published === 'string' ? location.origin + published : null };
}

export async function changeLink({ token }: Session, fid: number, link: number, values: LinkValues): Promise<void> {
	await ask('PATCH', pathOf(fid, link), token, values);
}

export async function revokeLink({ token }: Session, fid: number, link: number): Promise<void> {
	await ask('DELETE', pathOf(fid, link), token);
}

// ---- guests ----

/** A visitor who has entered by a link. sessionStorage keeps the guest of a tab. */
export interface Guest extends Session {
	/** The key of the link. */
	link: string;
	/** The name without the mark that the gateway adds. */
	name: string;
	/** null: the link opens a rectangle. */
	fid: number | null;
}

/** The last name on this device. */
const nameKey = 'pg_sheet.guest-name';

/** The guest of this tab by a link. */
export function storedGuest(link: string): Guest | null {
	try {
		const guest = JSON.parse(sessionStorage.getItem(guestKey) ?? 'null') as Partial<Guest> | null;
		return guest?.link === link && typeof guest.token === 'string' && typeof guest.uid === 'number' ? (guest as Guest) : null;
	} catch {
		return null;
	}
}

export const lastName = (): string => localStorage.getItem(nameKey) ?? '';

/** Enters by a link. Throws a refusal with the code no_link, password_needed, password_wrong or name. */
export async function enter(link: string, name: string, password?: string): Promise<Guest> {
	const value = (await ask('POST', '/v2/link', null, { link, name, ...(password !== undefined && { password }) })) as Partial<Guest> | null;
	const { token, uid, username, fid } = value ?? {};
	if (typeof token !== 'string' || typeof uid !== 'number' || typeof username !== 'string' || (fid !== null && typeof fid !== 'number'))
		throw new ProtocolError('the answer has no guest');
	const guest = { token, uid, username, fid, link, name };
	sessionStorage.setItem(guestKey, JSON.stringify(guest));
	localStorage.setItem(nameKey, name);
	return guest;
}

/** The cells of a rectangle: row, column, content (null: a formula), and the style if there is one. */
export interface Part {
	rows: number;
	cols: number;
	cells: [row: number, col: number, content: string | null, style?: unknown][];
}

/** What a guest may read now. */
export interface PartRead {
	/** null: as it was when it had the tag. */
	part: Part | null;
	tag: string | null;
	/** The guest may write. */
	writes: boolean;
}

const askPart = ({ token }: Session, init: RequestInit, headers: Record<string, string>): Promise<Response | null> =>
	fetch('/v2/link/cells', {
		headers: { authorization: `Bearer ${token}`, ...headers },
		...{ ...init, cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout?.(10000) },
	}).catch(() => null);

/** The cells that a guest may read, unless they are the same as those that had the tag. */
export async function readPart(guest: Session, before: string | null): Promise<PartRead> {
	const answer = await askPart(guest, {}, before === null ? {} : { 'if-none-match': before });
	const writes = answer?.headers.get('link-role') === 'editor';
	if (answer?.status === 304) return { part: null, tag: before, writes };
	if (!answer?.ok) throw answer ? refusalOf(answer.status) : new ApiError(null);
	return { part: (await answer.json()) as Part, tag: answer.headers.get('etag'), writes };
}

/** A text for a cell of the rectangle, what was seen there (null: a formula), and the size of the rectangle that was seen. */
export interface PartText {
	row: number;
	col: number;
	content: string;
	seen: string | null;
	size: [rows: number, cols: number];
}

/** Writes a text. Returns null if it is in the sheet, otherwise what the cell has instead of what was seen. */
export async function writePart(guest: Session, { row, col, content, seen, size: [rows, cols] }: PartText): Promise<{ content: string | null } | null> {
	const body = JSON.stringify({ cells: [[row, col, content, seen]], rows, cols });
	const answer = await askPart(guest, { method: 'PATCH', body }, { 'content-type': 'application/json' });
	if (answer?.ok) return null;
	const { code, cell } = ((await answer?.json().catch(() => null)) ?? {}) as { code?: unknown; cell?: [number, number, string | null] };
	if (answer?.status === 412 && cell) return { content: cell[2] };
	throw answer ? refusalOf(answer.status, code) : new ApiError(null);
}
