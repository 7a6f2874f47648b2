// answers.ts - the answers of the gateways' HTTP routes. Malformed ones are refused with a ProtocolError.

export class ProtocolError extends Error {}

type Fields = Record<string, unknown>;

function fieldsOf(value: unknown, what: string): Fields {
	if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ProtocolError(`${what} is not an object`);
	return value as Fields;
}

function textOf(value: unknown, what: string): string {
	if (value === undefined || value === null) return '';
	if (typeof value !== 'string') throw new ProtocolError(`${what} is not a text`);
	return value;
}

/** A row or column; 0 if it is left out. */
function indexOf(value: unknown, what: string): number {
	if (value === undefined) return 0;
	if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) throw new ProtocolError(`${what} is not an index: ${String(value)}`);
	return value;
}

function listOf(value: unknown, what: string): unknown[] {
	if (value === undefined || value === null) return [];
	if (!Array.isArray(value)) throw new ProtocolError(`${what} is not a list`);
	return value;
}

/** The numbers of `msg` that the page acts on. */
export const Msg = {
	InvalidFormat: 0,
	InvalidToken: 1,
	NoPermission: 13,
	NoSheet: 14,
	InTrash: 18,
	NothingToCommit: 29,
} as const;

export interface Answer {
	success: boolean;
	msg: number;
	data: unknown;
}

export function parseAnswer(value: unknown): Answer {
	const bean = fieldsOf(value, 'the answer');
	if (typeof bean.success !== 'boolean' || typeof bean.msg !== 'number') throw new ProtocolError('the answer has no success and msg');
	return { success: bean.success, msg: bean.msg, data: bean.data ?? null };
}

/** A sheet of the list. */
export interface SheetInfo {
	fid: number;
	name: string;
	/** null: a superuser without an account. */
	owner: string | null;
	isOwn: boolean;
	isDeleted: boolean;
	updatedAt: string;
	/** The book of which it is a tab. */
	book: number | null;
}

export function parseSheet(value: unknown): SheetInfo {
	const sheet = fieldsOf(value, 'the sheet');
	if (typeof sheet.id !== 'number') throw new ProtocolError('the sheet has no id');
	return {
		fid: sheet.id,
		name: textOf(sheet.name, 'name'),
		owner: sheet.owner === null ? null : textOf(sheet.owner, 'owner'),
		isOwn: sheet.role === 'owner',
		isDeleted: sheet.trashed === true,
		updatedAt: textOf(sheet.updatedAt, 'updatedAt'),
		book: typeof sheet.book === 'number' ? sheet.book : null,
	};
}

/** A page of a list, and the number before which the next one begins; null: there is none. */
export interface Page<Item> {
	items: Item[];
	next: number | null;
}

export function parsePage<Item>(value: unknown, name: string, parse: (item: unknown) => Item): Page<Item> {
	const page = fieldsOf(value, 'the page');
	return { items: listOf(page[name], name).map(parse), next: typeof page.next === 'number' ? page.next : null };
}

export interface Version {
	cid: number;
	at: string;
	label: string;
	kind: string;
	username: string;
}

/** Who may open a sheet, and how. */
export interface Access {
	/** The own role. */
	role: string;
	/** The role of the link; null: there is none. */
	link: string | null;
	members: Member[];
	/** Where the next page begins; null: there is none. */
	next: number | null;
}

export interface Member {
	username: string;
	role: string;
	/** The account has the role of the link. */
	byLink: boolean;
}

export function parseAccess(value: unknown): Access {
	const access = fieldsOf(value, 'the access');
	const { items: members, next } = parsePage(value, 'members', (item) => {
		const member = fieldsOf(item, 'a member');
		return { username: textOf(member.username, 'username'), role: textOf(member.role, 'role'), byLink: member.byLink === true };
	});
	return { role: textOf(access.role, 'role'), link: access.link === null ? null : textOf(access.link, 'link'), members, next };
}

export function parseVersion(value: unknown): Version {
	const version = fieldsOf(value, 'a version');
	const text = (name: string) => textOf(version[name], name);
	return { cid: indexOf(version.cid, 'cid'), at: text('at'), label: text('label'), kind: text('kind'), username: text('username') };
}

export interface LogEntry {
	seq: number;
	at: string;
	kind: string;
	/** -1 if the entry has none. */
	row: number;
	col: number;
	old: string;
	new: string;
	uid: number;
	username: string;
	segment: number;
	/** Of an edit of a property; target '': the sheet. */
	target: string;
	key: string;
}

export function parseLogEntry(value: unknown): LogEntry {
	const entry = fieldsOf(value, 'an entry');
	const text = (name: string) => textOf(entry[name], name);
	const place = (line: unknown) => (typeof line === 'number' ? line : -1);
	return {
		...{ seq: indexOf(entry.seq, 'seq'), at: text('at'), kind: text('kind'), row: place(entry.row), col: place(entry.col) },
		...{ old: text('old'), new: text('new'), uid: indexOf(entry.uid, 'uid'), username: text('username'), segment: indexOf(entry.segment, 'segment') },
		...{ target: text('target'), key: text('key') },
	};
}

export interface Route {
	http: string;
	ws: string;
	members: string[];
}

/** The answer of GET /v2/sheets/ID/route: `{http, ws, members}`, or v1's answer with it in `data`. */
export function parseRoute(value: unknown): Route {
	let route = fieldsOf(value, 'the route');
	if (typeof route.data === 'object' && route.data !== null) route = route.data as Fields;
	const http = textOf(route.http, 'http').replace(/\/$/, '');
	const ws = textOf(route.ws, 'ws');
	if (!/^https?:\/\//.test(http) || !/^wss?:\/\//.test(ws)) throw new ProtocolError('the route names no address');
	const members = listOf(route.members, 'members').filter((member): member is string => typeof member === 'string');
	return { http, ws, members };
}
