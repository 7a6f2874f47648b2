/*
 * writer.mjs - an editor that never gives up: it sends unique contents as fast as they are acknowledged, connects again
 * when it is cut off, and remembers what was acknowledged and what each of its connections was told, so that a test can hold
 * the database to it.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Editor } from './client.mjs';

export class Writer {
	/**
	 * choose() gives the gateway to try next. Each writer has a row of its own. window: edits that wait for their echoes;
	 * pauseMs: between looks at what has come.
	 */
	constructor(name, row, user, fid, choose, { window = 40, pauseMs = 2 } = {}) {
		Object.assign(this, {
			window,
			pauseMs,
			name,
			row,
			user,
			fid,
			choose,
			sent: 0,
			echoed: new Map(),
			order: [],
			streams: [],
			connections: 0,
			stopping: false,
			refused: 0,
		});
		this.done = this.run();
	}

	async run() {
		while (!this.stopping) {
			let editor;
			try {
				editor = await Editor.open(this.choose(), this.user, this.fid, { timeoutMs: 5000 });
			} catch (error) {
				this.lastProblem = error;
				await sleep(50);
				continue;
			}
			this.connections++;
			this.editor = editor;
			this.streams.push(editor);
			await this.write(editor);
			await this.drain(editor);
			editor.terminate();
		}
	}

	/** Takes the messages that have come; true when one of them was the echo of our content. */
	take(editor) {
		while (editor.position < editor.messages.length) {
			const { msgType, body } = editor.messages[editor.position++];
			if (msgType === 'modify' && body.content.startsWith(`${this.name}:`) && !this.echoed.has(body.content)) {
				this.echoed.set(body.content, body.col);
				this.order.push(body.content);
				this.inFlight.delete(body.content);
			}
		}
	}

	async write(editor) {
		this.inFlight = new Set();
		while (!this.stopping && !editor.closed) {
			this.take(editor);
			while (this.inFlight.size < this.window) {
				const content = `${this.name}:${++this.sent}`;
				this.inFlight.add(content);
				editor.modify(this.row, this.sent % 10, content);
			}
			await sleep(this.pauseMs);
		}
	}

	/** When stopping: until everything in flight has been acknowledged. */
	async drain(editor) {
		const end = Date.now() + 10000;
		while (this.stopping && !editor.closed && this.inFlight.size && Date.now() < end) {
			await sleep(5);
			this.take(editor);
		}
		this.take(editor);
		this.unanswered = this.inFlight.size;
	}

	async stop() {
		this.stopping = true;
		await this.done;
	}

	/** Resolves when `count` more edits have been acknowledged. */
	async progress(count, timeoutMs = 60000) {
		const goal = this.echoed.size + count;
		const end = Date.now() + timeoutMs;
		while (this.echoed.size < goal) {
			assert.ok(
				Date.now() < end,
				`${this.name}: ${count} more edits were not acknowledged in ${timeoutMs} ms (${this.echoed.size} of ${this.sent} so far, ${this.connections} connections; ${this.lastProblem?.message ?? 'no problem connecting'})`,
			);
			await sleep(5);
		}
	}
}

/**
 * Holds the log and the cells of a sheet to what its writers have seen: every acknowledged edit is there, once, in the
 * writer's order; the log has no gap; and each cell holds the last edit of it that is logged. The same for typists.
 */
export async function checkNothingLost(cluster, fid, writers, typists = []) {
	const log = await cluster.rows(`SELECT seq, kind, "row", col, new FROM sheet.log WHERE sheet_id = ${fid} ORDER BY seq`);
	log.forEach((entry, i) => assert.equal(entry.seq, i + 1, 'seq has no gap'));
	const places = new Map();
	const last = new Map();
	for (const { seq, row, col, new: content } of log) {
		if (!/^\w+:\d+$/.test(content)) continue;
		assert.ok(!places.has(content), `${content} was logged twice`);
		places.set(content, seq);
		last.set(`${row},${col}`, content);
	}
	for (const writer of [...writers, ...typists]) {
		let before = 0;
		for (const content of writer.order) {
			assert.ok(places.has(content), `${content} was acknowledged and is not in the log`);
			assert.ok(places.get(content) > before, `${content} is out of order`);
			before = places.get(content);
		}
	}
	// A version, also one that the server has made by itself, has a seq, and nobody is told of it.
	checkStreams(
		log.filter(({ kind }) => kind !== 'commit'),
		writers,
		typists,
	);
	const cells = await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid})`);
	const held = new Map(cells.map(({ row, col, content }) => [`${row},${col}`, content]));
	for (const [cell, content] of last) assert.equal(held.get(cell), content, `cell ${cell}`);
	return log;
}

/**
 * One total order: what a connection was told between onConn and its end is a piece of the edits without a gap, and the
 * snapshot in onConn holds everything before that piece.
 */
function checkStreams(edits, writers, typists) {
	const contents = edits.map((entry) => entry.new);
	const places = new Map(contents.map((content, i) => [content, i]));
	const checkPiece = (name, told) => {
		const first = places.get(told[0]);
		assert.ok(first !== undefined, `${name} was told of ${told[0]}, which is not in the log`);
		assert.deepEqual(told, contents.slice(first, first + told.length), `what ${name} was told is a piece of the log`);
		return first;
	};
	for (const { name, streams } of writers) {
		for (const { onConn, messages } of streams) {
			const told = messages.filter(({ msgType }) => msgType === 'modify').map(({ body }) => body.content);
			if (told.length > 0) checkSnapshot(name, onConn.body, edits.slice(0, checkPiece(name, told)));
		}
	}
	for (const { name, told } of typists) for (const piece of told) if (piece.length > 0) checkPiece(name, piece);
}

function checkSnapshot(name, { columns, content }, before) {
	const cells = new Map(before.map((entry) => [entry.row * columns + entry.col, entry.new]));
	for (const [at, want] of cells) assert.equal(content[at] ?? '', want, `${name}: cell ${at} of the snapshot`);
}
