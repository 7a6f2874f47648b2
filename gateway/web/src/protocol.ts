// protocol.ts - protocol v1: parses and checks the messages of /sheetws and the answers of the HTTP routes. Malformed ones
// are refused with a ProtocolError. No DOM, no grid.

export interface CellPlace {
	row: number;
	col: number;
}

/** A cell's content, and its style if the message has one. */
export interface CellEdit extends CellPlace {
	content: string;
	info?: unknown;
}

export interface CellLock extends CellPlace {
	username: string;
}

export interface Snapshot {
	name: string;
	columns: number;
	content: string[];
	locks: CellLock[];
	/** Styles of cells, an extension of v1. */
	styles: { row: number; col: number; info: unknown }[];
}

export type ServerMessage =
	| { type: 'onConn'; snapshot: Snapshot }
	| { type: 'acquire' | 'release'; lock: CellLock }
	| { type: 'modify'; edit: CellEdit; username: string }
	| { type: 'refused'; place: CellPlace; reason: string; content: string | null }
	/** Edits wait because a transaction of `holder` has locked the sheet for `ms` milliseconds; null: it has ended. */
	| { type: 'held'; by: { holder: string; ms: number } | null };

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

function placeOf(body: Fields): CellPlace {
	return { row: indexOf(body.row, 'row'), col: indexOf(body.col, 'col') };
}

function listOf(value: unknown, what: string): unknown[] {
	if (value === undefined || value === null) return [];
	if (!Array.isArray(value)) throw new ProtocolError(`${what} is not a list`);
	return value;
}

function snapshotOf(body: Fields): Snapshot {
	const columns = indexOf(body.columns, 'columns');
	const content = listOf(body.content, 'content').map((text) => textOf(text, 'content'));
	if (columns === 0 && content.length > 0) throw new ProtocolError('columns is 0');
	const locks = listOf(body.cellLocks, 'cellLocks').map((entry) => {
		const lock = fieldsOf(entry, 'a lock');
		return { row: indexOf(lock.Row, 'Row'), col: indexOf(lock.Col, 'Col'), username: textOf(lock.Username, 'Username') };
	});
	const styles = listOf(body.styles, 'styles').map((entry) => {
		const style = fieldsOf(entry, 'a style');
		return { ...placeOf(style), info: style.info };
	});
	return { name: textOf(body.name, 'name'), columns, content, locks, styles };
}

/** Parses a message. Returns null for an unknown type, which a newer gateway may send. */
export function parseMessage(text: string): ServerMessage | null {
	let value: unknown;
	try {
		value = JSON.parse(text);
	} catch {
		throw new ProtocolError('not JSON');
	}
	const message = fieldsOf(value, 'the message');
	switch (message.msgType) {
		case 'onConn':
			return { type: 'onConn', snapshot: snapshotOf(fieldsOf(message.body, 'body')) };
		case 'acquire':
		case 'release': {
			const body = fieldsOf(message.body, 'body');
			return { type: message.msgType, lock: { ...placeOf(body), username: textOf(body.username, 'username') } };
		}
		case 'modify': {
			const body = fieldsOf(message.body, 'body');
			const info = body.info === null || body.info === '' ? undefined : body.info;
			return {
				type: 'modify',
				edit: { ...placeOf(body), content: textOf(body.content, 'content'), ...(info === undefined ? {} : { info }) },
				username: textOf(body.username, 'username'),
			};
		}
		case 'refused': {
			const body = fieldsOf(message.body, 'body');
			const content = body.content === undefined || body.content === null ? null : textOf(body.content, 'content');
			return { type: 'refused', place: placeOf(body), reason: textOf(body.reason, 'reason'), content };
		}
		case 'held': {
			const body = fieldsOf(message.body, 'body');
			return { type: 'held', by: body.held === true ? { holder: textOf(body.holder, 'holder'), ms: indexOf(body.ms, 'ms') } : null };
		}
		default:
			return null;
	}
}

export function encodeLock(kind: 'acquire' | 'release', place: CellPlace): string {
	return JSON.stringify({ msgType: kind, body: { row: place.row, col: place.col } });
}

export function encodeEdit(edit: CellEdit): string {
	const { row, col, content, info } = edit;
	return JSON.stringify({ msgType: 'modify', body: { row, col, content, ...(info === undefined ? {} : { info }) } });
}

/** The numbers of `msg` that the page acts on. */
export const Msg = {
	InvalidFormat: 0,
	InvalidToken: 1,
	NoPermission: 13,
	NoSheet: 14,
	DupConnection: 17,
	InTrash: 18,
	Redirect: 19,
	NoLog: 24,
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

export interface Version {
	cid: number;
	timestamp: string;
}

export interface SheetInfo {
	fid: number;
	name: string;
	owner: string | number;
	isDeleted: boolean;
	columns: number;
	updatedAt: string;
	versions: Version[];
	lastVersion: number;
}

export function parseSheet(value: unknown): SheetInfo {
	const sheet = fieldsOf(value, 'the sheet');
	if (typeof sheet.fid !== 'number') throw new ProtocolError('the sheet has no fid');
	const owner = typeof sheet.owner === 'number' ? sheet.owner : textOf(sheet.owner, 'owner');
	return {
		fid: sheet.fid,
		name: textOf(sheet.name, 'name'),
		owner,
		isDeleted: sheet.isDeleted === true,
		columns: indexOf(sheet.columns, 'columns'),
		updatedAt: textOf(sheet.UpdatedAt, 'UpdatedAt'),
		versions: listOf(sheet.checkPointBrief, 'checkPointBrief').map((entry) => {
			const version = fieldsOf(entry, 'a version');
			return { cid: indexOf(version.cid, 'cid'), timestamp: textOf(version.timestamp, 'timestamp') };
		}),
		lastVersion: indexOf(sheet.checkpoint_num ?? 0, 'checkpoint_num'),
	};
}

export interface LogEntry extends CellPlace {
	lid: number;
	timestamp: string;
	old: string;
	new: string;
	username: string;
}

export function parseLog(value: unknown): LogEntry[] {
	return listOf(value, 'the log').map((item) => {
		const entry = fieldsOf(item, 'an entry');
		return {
			lid: indexOf(entry.lid, 'lid'),
			timestamp: textOf(entry.timestamp, 'timestamp'),
			row: typeof entry.row === 'number' ? entry.row : 0,
			col: typeof entry.col === 'number' ? entry.col : 0,
			old: textOf(entry.old, 'old'),
			new: textOf(entry.new, 'new'),
			username: textOf(entry.username, 'username'),
		};
	});
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
