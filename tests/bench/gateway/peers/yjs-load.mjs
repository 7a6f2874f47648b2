/*
 * yjs-load.mjs - users of a Yjs document: a sheet is a Y.Map of "row,col" to content (load.mjs tells how it is called).
 *
 * Users write into documents of their own, and keep what they receive until the run is over: then they apply it. So the
 * run shows what the server can do, not what ten browsers on one core can. What is checked then: everybody got the same
 * updates, each sender's in order and without a gap; all documents, and that of somebody who only joins now, hold the
 * cells that were written last.
 */
import { isDeepStrictEqual } from 'node:util';
import * as decoding from 'lib0/decoding';
import * as encoding from 'lib0/encoding';
import WebSocket from 'ws';
import * as sync from 'y-protocols/sync';
import * as Y from 'yjs';
import { serve } from './load.mjs';
import { cellsAfter, editAt } from './workload.mjs';

const messageSync = 0;

class User {
	constructor(index, { port, window, batch, run }) {
		Object.assign(this, { index, window, batch, run, made: 0, own: [], updates: [], live: false });
		this.doc = new Y.Doc();
		this.cells = this.doc.getMap('cells');
		this.doc.on('update', (update, origin) => {
			if (origin === this) this.own.push(Buffer.from(this.send((encoder) => sync.writeUpdate(encoder, update))));
		});
		this.ws = new WebSocket(`ws://127.0.0.1:${port}/sheet`, { perMessageDeflate: false });
		this.ws.on('message', (message) => this.take(message));
		this.joined = new Promise((resolve, reject) => {
			this.resolveJoined = resolve;
			this.ws.on('error', reject);
		});
		this.ws.on('open', () => this.send((encoder) => sync.writeSyncStep1(encoder, this.doc)));
	}

	send(write) {
		const encoder = encoding.createEncoder();
		encoding.writeVarUint(encoder, messageSync);
		write(encoder);
		const message = encoding.toUint8Array(encoder);
		this.ws.send(message);
		return message;
	}

	take(message) {
		if (message[0] !== messageSync) return; // who is where: nobody tells
		if (this.live && message[1] === sync.messageYjsUpdate) {
			this.updates.push(message);
			this.run.news();
			if (this.own.length === 0 || !message.equals(this.own[0])) return;
			this.own.shift();
			this.fill();
			return;
		}
		const decoder = decoding.createDecoder(message);
		decoding.readVarUint(decoder);
		const encoder = encoding.createEncoder();
		encoding.writeVarUint(encoder, messageSync);
		const type = sync.readSyncMessage(decoder, encoder, this.doc, null);
		if (encoding.length(encoder) > 1) this.ws.send(encoding.toUint8Array(encoder));
		if (type !== sync.messageYjsSyncStep2) return;
		this.live = true;
		this.resolveJoined(this);
	}

	get received() {
		return this.updates.length;
	}

	/** Writes until so many transactions are under way. */
	fill() {
		while (this.own.length < this.window && this.run.take()) this.write();
	}

	write() {
		this.doc.transact(() => {
			for (let i = 0; i < this.batch; i++) {
				const { col, content } = editAt(this.index, this.made++, this.batch);
				this.cells.set(`${this.index},${col}`, content);
			}
		}, this);
	}

	applyReceived() {
		for (const message of this.updates) Y.applyUpdate(this.doc, updateOf(message));
	}
}

const updateOf = (message) => {
	const decoder = decoding.createDecoder(message);
	decoding.readVarUint(decoder);
	decoding.readVarUint(decoder);
	return decoding.readVarUint8Array(decoder);
};

/** The edits of the stream that this user received, against what each sender wrote: how many are there, and in order. */
function checkStream({ updates, batch }, users) {
	const senders = new Map(users.map((user) => [user.doc.clientID, { index: user.index, next: 0 }]));
	let edits = 0;
	let reordered = 0;
	for (const message of updates) {
		for (const { id, length, content } of Y.decodeUpdate(updateOf(message)).structs) {
			const sender = senders.get(id.client);
			const wanted = sender && editAt(sender.index, sender.next, batch).content;
			if (!sender || id.clock !== sender.next || length !== 1 || content.arr?.[0] !== wanted) reordered++;
			if (sender) sender.next = id.clock + length;
			edits += length;
		}
	}
	return { edits, reordered };
}

const sameStream = (a, b) => a.updates.length === b.updates.length && a.updates.every((update, i) => update.equals(b.updates[i]));

async function check(users, options) {
	const { edits, reordered } = checkStream(users[0], users);
	const differing = users.filter((user) => !sameStream(user, users[0])).length;
	const sent = options.run.transactions * options.batch;
	const wanted = Object.fromEntries(
		cellsAfter(
			users.map(({ made }) => made),
			options.batch,
		).flatMap((row, index) => Object.entries(row).map(([col, content]) => [`${index},${col}`, content])),
	);
	const late = await join(users.length, options);
	for (const user of users) user.applyReceived();
	const diverging = [...users, late].filter(({ cells }) => !isDeepStrictEqual(cells.toJSON(), wanted)).length;
	const received = users.reduce((sum, user) => sum + user.received * options.batch, 0);
	return {
		received,
		lost: users.length * (sent + users[0].received * options.batch - edits) - received,
		reordered: reordered + differing,
		problems: diverging ? [`${diverging} of ${users.length + 1} documents have other cells than were written`] : [],
	};
}

const join = (index, options) => new User(index, options).joined;

serve({ join, check });
