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

export interface LogEntry {
	row: number;
	col: number;
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
