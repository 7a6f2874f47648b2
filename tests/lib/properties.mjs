/*
 * properties.mjs - a plain client of protocol v2, in either form, that keeps the properties of a sheet as the protocol tells
 * it to: written from docs/PROTOCOL.md alone, without the code that it tests. Edits have their JSON form everywhere.
 */
import { WebSocket } from 'ws';
import { waitUntil } from './processes.mjs';

const ROWS = 16777216;
const COLS = 16384;
const structure = ['insertRows', 'deleteRows', 'insertColumns', 'deleteColumns'];

// ---- the binary form ----

const number = (value) => {
	const bytes = [];
	for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
	return [...bytes, value];
};
const text = (value) => {
	const bytes = Buffer.from(value);
	return [...number(bytes.length), ...bytes];
};

const encodeEdit = ([first, ...rest]) => {
	if (structure.includes(first)) {
		const [at, n] = rest;
		const rows = first.endsWith('Rows');
		return [6 + structure.indexOf(first), 0, ...number(rows ? at : 0), ...number(rows ? 0 : at), ...text(String(n))];
	}
	if (first === 'property') {
		const [row, col, toRow, toCol, key, value] = rest;
		const allRows = row === 0 && toRow === ROWS - 1;
		const allCols = col === 0 && toCol === COLS - 1;
		const target = `${allRows ? '*' : row} ${allCols ? '*' : col} ${key}`;
		const content = value === null ? '' : JSON.stringify(value);
		return [0x1a, 0, ...number(allRows ? 0 : toRow), ...number(allCols ? 0 : toCol), ...text(content), ...text(target)];
	}
	return [1, 0, ...number(first), ...number(rest[0]), ...text(rest[1])];
};

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.position = 0;
	}

	number() {
		let value = 0;
		for (let factor = 1; ; factor *= 128) {
			const byte = this.bytes[this.position++];
			value += (byte % 128) * factor;
			if (byte < 128) return value;
		}
	}

	text() {
		const length = this.number();
		this.position += length;
		return this.bytes.subarray(this.position - length, this.position).toString();
	}

	edits(withUid) {
		const edits = [];
		let uid = 0;
		let row = 0;
		for (let count = this.number(); count > 0; count--) {
			const head = this.bytes[this.position++];
			if (!(head & 0x40)) uid = this.number();
			if (!(head & 0x80)) row = this.number();
			const col = this.number();
			const content = this.text();
			const style = head & 0x10 ? this.text() : null;
			const kind = head & 15;
			let edit = [row, col, content];
			if (kind >= 6 && kind <= 9) edit = [structure[kind - 6], kind < 8 ? row : col, Number(content)];
			if (kind === 10) {
				const [first, left, key] = style.split(' ');
				const rows = first === '*' ? [0, ROWS - 1] : [Number(first), row];
				const cols = left === '*' ? [0, COLS - 1] : [Number(left), col];
				edit = ['property', rows[0], cols[0], rows[1], cols[1], key, content === '' ? null : JSON.parse(content)];
			}
			if (kind === 3) edit = [row, col];
			edits.push(withUid ? [uid, ...edit] : edit);
		}
		return edits;
	}
}

const decode = (bytes) => {
	const reader = new Reader(bytes);
	const fields = (...names) => Object.fromEntries(names.map((name) => [name, reader.number()]));
	switch (reader.number()) {
		case 65: {
			const { v, session, uid } = fields('v', 'session', 'uid');
			const name = reader.text();
			const rest = fields('role', 'seq', 'epoch', 'rows', 'cols', 'landed', 'resumed');
			return { t: 'hello', v, session, uid, name, ...rest, resumed: rest.resumed === 1 };
		}
		case 66: {
			const { seq, more } = fields('seq', 'more');
			return { t: 'edits', seq, more: more === 1, edits: reader.edits(true) };
		}
		case 68:
			return { t: 'ack', ...fields('n', 'seq') };
		case 69: {
			const nack = fields('n', 'reason', 'row', 'col', 'block');
			return { t: 'nack', ...nack, reason: ['none', 'role', 'locked', 'range', 'size', 'busy', 'base'][nack.reason] };
		}
		case 80: {
			const { seq, more } = fields('seq', 'more');
			return { t: 'properties', seq, more: more === 1, properties: reader.edits(false) };
		}
		default:
			return { t: 'other' };
	}
};

// ---- the properties of a sheet ----

const moveAxis = (first, last, limit, insert, at, n) => {
	if (first === 0 && last === limit - 1) return [first, last];
	if (insert) {
		const moved = [first >= at ? first + n : first, last >= at ? Math.min(last + n, limit - 1) : last];
		return moved[0] < limit ? moved : null;
	}
	const before = (line) => Math.min(line, at) + Math.max(line - at - n, 0); // lines that stay before this one
	return before(first) < before(last + 1) ? [before(first), before(last + 1) - 1] : null;
};

export class PropertySet {
	constructor() {
		this.values = new Map(); // by "row,col,toRow,toCol,key"
	}

	apply([first, ...rest]) {
		if (first === 'property') {
			const value = rest.pop();
			if (value === null) this.values.delete(rest.join());
			else this.values.set(rest.join(), value);
		} else if (structure.includes(first)) this.move(first, ...rest);
	}

	move(name, at, n) {
		const moved = new Map();
		const sizes = new Map();
		for (const [place, value] of this.values) {
			let [row, col, toRow, toCol, key] = place.split(',').map((part, i) => (i < 4 ? Number(part) : part));
			const size = (toRow - row + 1) * (toCol - col + 1);
			const rows = name.endsWith('Rows');
			const axis = rows ? moveAxis(row, toRow, ROWS, name[0] === 'i', at, n) : moveAxis(col, toCol, COLS, name[0] === 'i', at, n);
			if (axis === null) continue;
			if (rows) [row, toRow] = axis;
			else [col, toCol] = axis;
			const to = [row, col, toRow, toCol, key].join();
			if (sizes.has(to) && sizes.get(to) < size) continue;
			sizes.set(to, size);
			moved.set(to, value);
		}
		this.values = moved;
	}

	list() {
		return [...this.values].map(([place, value]) => `${place}=${JSON.stringify(value)}`).sort();
	}
}


/** The same list, as the database has it. */
export const sqlProperties = async (cluster, fid, ...version) =>
	(
		await cluster.rows(
			`SELECT coalesce(row0, 0) AS row0, coalesce(col0, 0) AS col0, coalesce(row1, ${ROWS - 1}) AS row1, coalesce(col1, ${COLS - 1}) AS col1, key, value
			FROM sheet.properties(${[fid, ...version].join()})`,
		)
	)
		.map(({ row0, col0, row1, col1, key, value }) => `${[row0, col0, row1, col1, key].join()}=${JSON.stringify(value)}`)
		.sort();

// ---- a client ----

export class PropertyClient {
	constructor(gateway, fid, encoding) {
		Object.assign(this, { encoding, messages: [], position: 0, closed: null, set: new PropertySet(), seq: 0, n: 0, nacks: 0 });
		this.socket = new WebSocket(`ws://${gateway.host}/sheetws?fid=${fid}`, 'sheet.v2');
		this.opened = new Promise((resolve, reject) => this.socket.once('open', resolve).once('error', reject));
		this.socket.on('message', (data, isBinary) => this.take(isBinary ? decode(data) : JSON.parse(data.toString())));
		this.socket.on('close', (code, reason) => (this.closed = { code, reason: reason.toString() }));
	}

	static async open(gateway, user, fid, { encoding = 'json', client = 0, acked = 0, since = 0, set } = {}) {
		const self = new PropertyClient(gateway, fid, encoding);
		if (set) self.set = set;
		await self.opened;
		self.socket.send(
			encoding === 'json'
				? JSON.stringify({ t: 'hello', v: 2, token: user.token, client, acked, since })
				: Buffer.from([1, 2, ...text(user.token), ...number(client), ...number(acked), ...number(since)]),
		);
		self.hello = await self.next('hello');
		return self;
	}

	take(message) {
		this.messages.push(message);
		if (message.t === 'hello') this.seq = message.seq;
		if (message.t === 'nack') this.nacks++;
		if (message.t === 'properties') for (const edit of message.properties) this.set.apply(edit);
		if (message.t === 'edits') {
			for (const [, ...edit] of message.edits) this.set.apply(edit);
			if (!message.more) this.seq = message.seq;
		}
	}

	op(edits, { n = ++this.n, base = this.seq, nacks = this.nacks } = {}) {
		this.n = n;
		this.socket.send(
			this.encoding === 'json'
				? JSON.stringify({ t: 'op', n, nacks, base, edits })
				: Buffer.from([4, ...number(n), ...number(nacks), ...number(base), 0, ...number(edits.length), ...edits.flatMap(encodeEdit)]),
		);
	}

	/** The answer to the last operation. */
	async answer() {
		return this.next((message) => (message.t === 'ack' && message.n >= this.n) || (message.t === 'nack' && message.n === this.n));
	}

	async next(wanted) {
		const is = typeof wanted === 'string' ? ({ t }) => t === wanted : wanted;
		return waitUntil(
			() => {
				while (this.position < this.messages.length) {
					const message = this.messages[this.position++];
					if (is(message)) return message;
				}
				if (this.closed) throw new Error(`closed: ${JSON.stringify(this.closed)}`);
				return null;
			},
			() => `${wanted}; heard ${JSON.stringify(this.messages.slice(-4)).slice(0, 500)}`,
			30000,
			2,
		);
	}

	terminate() {
		this.socket.terminate();
	}
}
