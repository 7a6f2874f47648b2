/*
 * sharedb-load.mjs - users of a ShareDB document of type json0: a sheet is {row: {col: content}} (load.mjs tells how it is
 * called). ShareDB's client has one operation under way and would merge those that wait: a transaction of several edits
 * is one operation here, and WINDOW is 1.
 *
 * Each user is a client with a document of its own, which takes what others write while it comes: there is no way to
 * receive without that. Checked: every user got each sender's edits in order; all documents, and that of somebody who only
 * joins now, hold the cells that were written last.
 */
import { isDeepStrictEqual } from 'node:util';
import { Connection } from 'sharedb/lib/client/index.js';
import WebSocket from 'ws';
import { serve } from './load.mjs';
import { cellsAfter, editAt } from './workload.mjs';

const rows = Number(process.argv[3]); /* USERS: each has one */

class User {
	constructor(index, { port, batch, run }) {
		Object.assign(this, { index, batch, run, made: 0, acknowledged: 0, others: 0, reordered: 0, next: [], faults: [] });
		this.connection = new Connection(new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false }));
		this.doc = this.connection.get('sheets', 'sheet');
		this.doc.on('op', (op, own) => {
			if (!own) for (const edit of op) this.take(edit);
		});
		this.doc.on('error', (error) => this.faults.push(error.message));
	}

	async join() {
		const call = (method, ...args) =>
			new Promise((resolve, reject) => this.doc[method](...args, (error) => (error ? reject(error) : resolve())));
		await call('subscribe');
		if (!this.doc.type) await call('create', Object.fromEntries(Array.from({ length: rows }, (_, row) => [row, {}])));
		return this;
	}

	/** An edit of somebody else. */
	take({ p: [row, col], oi }) {
		const sender = Number(row);
		const wanted = editAt(sender, (this.next[sender] ??= 0), this.batch);
		this.next[sender]++;
		if (String(wanted.col) !== col || wanted.content !== oi) this.reordered++;
		this.others++;
		this.run.news();
	}

	get edits() {
		return this.others + this.acknowledged;
	}

	get received() {
		return this.edits / this.batch;
	}

	fill() {
		if (!this.run.take()) return;
		const row = String(this.index);
		const op = [];
		for (let i = 0; i < this.batch; i++) {
			const { col, content } = editAt(this.index, this.made++, this.batch);
			const before = this.doc.data[row][col];
			op.push({ p: [row, String(col)], oi: content, ...(before !== undefined && { od: before }) });
		}
		this.doc.submitOp(op, (error) => {
			if (error) return this.faults.push(error.message);
			this.acknowledged += this.batch;
			this.run.news();
			this.fill();
		});
	}
}

const join = (index, options) => new User(index, options).join();

async function check(users, options) {
	const sent = options.run.transactions * options.batch;
	const received = users.reduce((sum, { edits }) => sum + edits, 0);
	const wanted = Object.fromEntries(
		cellsAfter(
			users.map(({ made }) => made),
			options.batch,
		).map((row, index) => [String(index), row]),
	);
	const late = await join(users.length, options);
	const diverging = [...users, late].filter(({ doc }) => !isDeepStrictEqual(doc.data, wanted)).length;
	return {
		received,
		lost: sent * users.length - received,
		reordered: users.reduce((sum, { reordered }) => sum + reordered, 0),
		problems: [
			...users.flatMap(({ faults }) => faults),
			...(diverging ? [`${diverging} of ${users.length + 1} documents have other cells than were written`] : []),
		],
	};
}

serve({ join, check });
