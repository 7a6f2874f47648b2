// layout.ts - the fields of protocol v2's messages, in the order of the binary form. The gateway's tables are
// gateway/ws/wire/v2_layout.c and v2_encode.c; tests/vectors/v2.json holds both to the same bytes.

export type FieldKind =
	| 'number'
	| 'text'
	| 'bool'
	| 'reason'
	| 'role'
	| 'kind'
	| 'edits' // from a client
	| 'logged' // edits with the uids of their authors
	| 'cells'
	| 'properties'
	| 'peers'
	| 'locks'
	| 'ranges'
	| 'cursors';

export interface Layout {
	code: number;
	/** since: the version (`v`) of messages that have the field. */
	fields: (readonly [name: string, kind: FieldKind, since: number])[];
}

/** The fields as text: NAME for a number, NAME:KIND for other kinds, NAME:KIND:VERSION for those of later versions. */
function layout(code: number, text: string): Layout {
	const fields = (text.match(/\S+/g) ?? []).map((field) => {
		const [name, kind = 'number', since = '0'] = field.split(':');
		return [name!, kind as FieldKind, Number(since)] as const;
	});
	return { code, fields };
}

export const clientLayouts: Record<string, Layout> = {
	hello: layout(1, 'v token:text client acked since'),
	auth: layout(2, 'token:text'),
	get: layout(3, 'id row col toRow toCol'),
	op: layout(4, 'n nacks base seen edits:edits'),
	lock: layout(5, 'row col base'),
	unlock: layout(6, 'row col base'),
	cursor: layout(7, 'row col toRow toCol base'),
	who: layout(8, 'uid'),
	calc: layout(9, 'seq cells:cells'),
	lockRange: layout(10, 'row col toRow toCol base wait:bool'),
	unlockRange: layout(11, 'row col toRow toCol base'),
};

export const serverLayouts: Record<string, Layout> = {
	hello: layout(
		65,
		'v session uid name:text role:role seq epoch rows cols landed resumed:bool retention lease maxEdits maxBytes peers:peers locks:locks ranges:ranges:3',
	),
	edits: layout(66, 'seq more:bool edits:logged'),
	block: layout(67, 'id row col toRow toCol seq more:bool cells:cells'),
	ack: layout(68, 'n seq'),
	nack: layout(69, 'n reason:reason row col block:bool'),
	lock: layout(70, 'row col session uid'),
	denied: layout(71, 'row col reason:reason'),
	peer: layout(72, 'session uid name:text here:bool'),
	cursors: layout(73, 'cursors:cursors'),
	user: layout(74, 'uid name:text'),
	version: layout(75, 'seq uid kind:kind cid label:text'),
	role: layout(76, 'role:role'),
	authed: layout(77, 'expires'),
	calc: layout(78, 'session seq cells:cells'),
	held: layout(79, 'held:bool holder:text application:text ms'),
	properties: layout(80, 'seq more:bool properties:properties'),
	range: layout(81, 'row col toRow toCol session uid'),
	blocked: layout(82, 'row col toRow toCol reason:reason waits:bool atRow atCol session uid'),
	changed: layout(83, ''),
	reminders: layout(84, ''),
	book: layout(85, ''),
};

/** Words that the binary form encodes by their index. */
export const words: Partial<Record<FieldKind, readonly string[]>> = {
	reason: ['none', 'role', 'locked', 'range', 'size', 'busy', 'base'],
	role: ['viewer', 'commenter', 'editor', 'owner'],
	kind: ['commit', 'rollback'],
};

/** Lists of items, each with the fields of such a layout. */
export const items: Partial<Record<FieldKind, Layout['fields']>> = {
	peers: layout(0, 'session uid name:text').fields,
	locks: layout(0, 'row col session uid').fields,
	ranges: layout(0, 'row col toRow toCol session uid').fields,
	cursors: layout(0, 'session row col toRow toCol').fields,
};
