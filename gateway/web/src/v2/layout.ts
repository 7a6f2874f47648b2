// layout.ts - what the messages of protocol v2 consist of: the fields in the order in which the binary form has them.
// The gateway's tables are gateway/ws/v2/v2_layout.c and v2_encode.c; tests/vectors/v2.json holds both to the same bytes.

export type FieldKind =
	| 'number'
	| 'text'
	| 'bool'
	| 'reason'
	| 'role'
	| 'kind'
	| 'edits' // of a client
	| 'logged' // edits with the uids of those who made them
	| 'cells'
	| 'peers'
	| 'locks'
	| 'cursors';

export interface Layout {
	code: number;
	fields: readonly (readonly [name: string, kind: FieldKind])[];
}

const range = [
	['row', 'number'],
	['col', 'number'],
	['toRow', 'number'],
	['toCol', 'number'],
] as const;
const place = [
	['row', 'number'],
	['col', 'number'],
] as const;

export const clientLayouts: Record<string, Layout> = {
	hello: {
		code: 1,
		fields: [
			['v', 'number'],
			['token', 'text'],
			['client', 'number'],
			['acked', 'number'],
			['since', 'number'],
		],
	},
	auth: { code: 2, fields: [['token', 'text']] },
	get: { code: 3, fields: [['id', 'number'], ...range] },
	op: {
		code: 4,
		fields: [
			['n', 'number'],
			['nacks', 'number'],
			['base', 'number'],
			['edits', 'edits'],
		],
	},
	lock: { code: 5, fields: [...place, ['base', 'number']] },
	unlock: { code: 6, fields: [...place, ['base', 'number']] },
	cursor: { code: 7, fields: [...range, ['base', 'number']] },
	who: { code: 8, fields: [['uid', 'number']] },
	calc: {
		code: 9,
		fields: [
			['seq', 'number'],
			['cells', 'cells'],
		],
	},
};

export const serverLayouts: Record<string, Layout> = {
	hello: {
		code: 65,
		fields: [
			['v', 'number'],
			['session', 'number'],
			['uid', 'number'],
			['name', 'text'],
			['role', 'role'],
			['seq', 'number'],
			['epoch', 'number'],
			['rows', 'number'],
			['cols', 'number'],
			['landed', 'number'],
			['resumed', 'bool'],
			['retention', 'number'],
			['lease', 'number'],
			['maxEdits', 'number'],
			['maxBytes', 'number'],
			['peers', 'peers'],
			['locks', 'locks'],
		],
	},
	edits: {
		code: 66,
		fields: [
			['seq', 'number'],
			['more', 'bool'],
			['edits', 'logged'],
		],
	},
	block: {
		code: 67,
		fields: [['id', 'number'], ...range, ['seq', 'number'], ['more', 'bool'], ['cells', 'cells']],
	},
	ack: {
		code: 68,
		fields: [
			['n', 'number'],
			['seq', 'number'],
		],
	},
	nack: { code: 69, fields: [['n', 'number'], ['reason', 'reason'], ...place, ['block', 'bool']] },
	lock: { code: 70, fields: [...place, ['session', 'number'], ['uid', 'number']] },
	denied: { code: 71, fields: [...place, ['reason', 'reason']] },
	peer: {
		code: 72,
		fields: [
			['session', 'number'],
			['uid', 'number'],
			['name', 'text'],
			['here', 'bool'],
		],
	},
	cursors: { code: 73, fields: [['cursors', 'cursors']] },
	user: {
		code: 74,
		fields: [
			['uid', 'number'],
			['name', 'text'],
		],
	},
	version: {
		code: 75,
		fields: [
			['seq', 'number'],
			['uid', 'number'],
			['kind', 'kind'],
			['cid', 'number'],
			['label', 'text'],
		],
	},
	role: { code: 76, fields: [['role', 'role']] },
	authed: { code: 77, fields: [['expires', 'number']] },
	calc: {
		code: 78,
		fields: [
			['session', 'number'],
			['seq', 'number'],
			['cells', 'cells'],
		],
	},
	held: {
		code: 79,
		fields: [
			['held', 'bool'],
			['holder', 'text'],
			['application', 'text'],
			['ms', 'number'],
		],
	},
};

/** Values that the binary form has as their place here. */
export const words: Partial<Record<FieldKind, readonly string[]>> = {
	reason: ['none', 'role', 'locked', 'range', 'size', 'busy', 'base'],
	role: ['viewer', 'commenter', 'editor', 'owner'],
	kind: ['commit', 'rollback'],
};

/** Lists of numbers; a name behind them when `text` says so. */
export const tuples: Partial<Record<FieldKind, { numbers: readonly string[]; text?: string }>> = {
	peers: { numbers: ['session', 'uid'], text: 'name' },
	locks: { numbers: ['row', 'col', 'session', 'uid'] },
	cursors: { numbers: ['session', 'row', 'col', 'toRow', 'toCol'] },
};
