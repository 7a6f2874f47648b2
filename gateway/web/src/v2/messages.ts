// messages.ts - the messages of protocol v2 (docs/PROTOCOL.md) as values. codec.ts has their two encodings.

export type Role = 'viewer' | 'commenter' | 'editor' | 'owner';
export const mayEdit = (role: Role | null | undefined): boolean => role === 'editor' || role === 'owner';
export type Reason = 'none' | 'role' | 'locked' | 'range' | 'size' | 'busy' | 'base';
export type VersionKind = 'commit' | 'rollback';

/** An object that the clients define; null removes the style. */
export type Style = Record<string, unknown> | null;

export interface Place {
	row: number;
	col: number;
}

export interface Range extends Place {
	toRow: number;
	toCol: number;
}

/** A change of one cell. An undefined content or style stays. Without both, the sheet is extended to the cell. */
export interface CellEdit extends Place {
	content?: string;
	style?: Style;
}

/** Inserts n rows or columns before index `at`, or deletes n from there on. */
export interface StructureEdit {
	kind: 'insertRows' | 'deleteRows' | 'insertColumns' | 'deleteColumns';
	at: number;
	n: number;
}

/** Sets the property `key` of exactly this range to a JSON value; null removes it. */
export interface PropertyEdit extends Range {
	key: string;
	value: unknown;
}

export type Edit = CellEdit | StructureEdit | PropertyEdit;

export type LoggedEdit = Edit & { uid: number };

export type LoggedStructure = StructureEdit & { uid: number };

export const isProperty = <T extends object>(edit: T): edit is Extract<T, PropertyEdit> => 'key' in edit;

export const isCell = (edit: Edit): edit is CellEdit => !isStructure(edit) && !isProperty(edit);

export const isStructure = <T extends object>(edit: T): edit is Extract<T, StructureEdit> => 'kind' in edit;

export interface Peer {
	session: number;
	uid: number;
	name: string;
}

/** session 0: a user of protocol v1, on any connection. uid also 0: the cell is free. */
export interface HeldCell extends Place {
	session: number;
	uid: number;
}

/** session and uid 0: the range is free. */
export interface HeldRange extends Range {
	session: number;
	uid: number;
}

export interface Cursor extends Range {
	session: number;
}

export type ClientMessage =
	| { t: 'hello'; v: 2 | 3 | 4 | 5; token: string; client: number; acked: number; since: number }
	| { t: 'auth'; token: string }
	| ({ t: 'get'; id: number } & Range)
	| { t: 'op'; n: number; nacks: number; base: number; seen?: number; edits: Edit[] }
	| ({ t: 'lock'; base: number } & Place)
	| ({ t: 'unlock'; base: number } & Place)
	| ({ t: 'cursor'; base: number } & Range)
	| { t: 'who'; uid: number }
	| { t: 'calc'; seq: number; cells: CellEdit[] }
	| ({ t: 'lockRange'; base: number; wait?: boolean } & Range)
	| ({ t: 'unlockRange'; base: number } & Range);

export interface Hello {
	t: 'hello';
	v: number;
	session: number;
	uid: number;
	name: string;
	role: Role;
	seq: number;
	epoch: number;
	rows: number;
	cols: number;
	landed: number;
	resumed: boolean;
	retention: number;
	lease: number;
	maxEdits: number;
	maxBytes: number;
	peers: Peer[];
	locks: HeldCell[];
	/** If the version is 3 or later. */
	ranges?: HeldRange[];
}

export type ServerMessage =
	| Hello
	| { t: 'edits'; seq: number; more: boolean; edits: LoggedEdit[] }
	| ({ t: 'block'; id: number; seq: number; more: boolean; cells: CellEdit[] } & Range)
	| { t: 'properties'; seq: number; more: boolean; properties: PropertyEdit[] }
	| { t: 'ack'; n: number; seq: number }
	| ({ t: 'nack'; n: number; reason: Reason; block: boolean } & Place)
	| ({ t: 'lock' } & HeldCell)
	| ({ t: 'range' } & HeldRange)
	| ({ t: 'denied'; reason: Reason } & Place)
	| ({ t: 'blocked'; reason: Reason; waits: boolean; atRow: number; atCol: number; session: number; uid: number } & Range)
	| ({ t: 'peer'; here: boolean } & Peer)
	| { t: 'cursors'; cursors: Cursor[] }
	| { t: 'user'; uid: number; name: string }
	| { t: 'version'; seq: number; uid: number; kind: VersionKind; cid: number; label: string }
	| { t: 'role'; role: Role }
	| { t: 'authed'; expires: number }
	| { t: 'calc'; session: number; seq: number; cells: CellEdit[] }
	| { t: 'held'; held: boolean; holder: string; application: string; ms: number }
	/** For those who watch a published view. */
	| { t: 'changed' }
	/** If the version is 4 or later: the reminders of the account have changed. */
	| { t: 'reminders' }
	/** If the version is 5 or later: the book of the sheet has changed, or the sheet is in another one, or in none. */
	| { t: 'book' };

/** Close codes of protocol v2. */
export const closeCodes = {
	malformed: 4400,
	unauthorized: 4401,
	forbidden: 4403,
	notFound: 4404,
	timeout: 4408,
	replaced: 4409,
	gone: 4410,
	moved: 4307,
	unknown: 4412,
} as const;
