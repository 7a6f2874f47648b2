/*
 * typist.mjs - an editor of protocol v2, as the page is one: it stores one cell after the other, each after the former was
 * acknowledged, and follows its sheet to other gateways.
 */
import assert from 'node:assert/strict';
import { waitUntil } from './processes.mjs';
import { RawClient, sheetClient } from './v2.mjs';

export class Typist {
	/**
	 * pauseMs: between an acknowledgement and the next edit. living: gives a gateway to go to when its own has died. name: begins
	 * its contents. told: of each of its connections, the contents that it was told. options: of the page's client.
	 */
	constructor(gateway, user, fid, { pauseMs = 0, living = () => gateway, name = 't', ...options } = {}) {
		Object.assign(this, { fid, pauseMs, name, acknowledged: 0, acknowledgedAt: [], closes: [], told: [], stopping: false });
		const url = async (moved) => moved ?? `ws://${(this.closes.length === 0 ? gateway : living()).host}/sheetws`;
		const onClose = (code, reason) => this.closes.push({ code, reason });
		const onMessage = (message) => this.hear(message);
		this.client = sheetClient(gateway, user, fid, { url, onClose, onMessage, ...options });
		this.checking = setInterval(() => this.client.check(), 1000).unref();
		this.done = this.run();
	}

	hear(message) {
		if (message.t === 'hello') this.told.push([]);
		if (message.t === 'edits') for (const { content } of message.edits) this.told.at(-1).push(content);
	}

	async run() {
		while (!this.stopping) {
			const n = this.acknowledged + 1;
			await this.client.operate([{ row: 1 + (n % 9), col: 1, content: `${this.name}:${n}` }]);
			this.acknowledged = n;
			this.acknowledgedAt.push(performance.now());
			if (this.pauseMs) await new Promise((resolve) => setTimeout(resolve, this.pauseMs));
		}
	}

	progress(count, timeoutMs = 60000) {
		const goal = this.acknowledged + count;
		const problem = () => `${goal} edits; ${this.acknowledged} ${JSON.stringify(this.closes)}`;
		return waitUntil(() => this.acknowledged >= goal, problem, timeoutMs);
	}

	/** The longest time without an acknowledgement since then, in ms. */
	gap(since) {
		const times = [since, ...this.acknowledgedAt.filter((at) => at > since), performance.now()];
		return Math.max(...times.slice(1).map((at, i) => at - times[i]));
	}

	async stop() {
		this.stopping = true;
		await this.done;
		clearInterval(this.checking);
		this.client.close();
	}

	/** The acknowledged contents, in their order. */
	get order() {
		return Array.from({ length: this.acknowledged }, (_, i) => `${this.name}:${i + 1}`);
	}

	/** The acknowledged edits that are not in the log, and those that are there more than once or out of order. */
	async faults(cluster) {
		const rows = await cluster.rows(`SELECT new FROM sheet.log WHERE sheet_id = ${this.fid} AND new LIKE '${this.name}:%' ORDER BY seq`);
		const found = rows.map((row) => Number(row.new.slice(this.name.length + 1)));
		const lost = Array.from({ length: this.acknowledged }, (_, i) => i + 1).filter((n) => !found.includes(n)).length;
		return { lost, doubled: found.filter((n, i) => i > 0 && n <= found[i - 1]).length };
	}
}

/** The gateway of the cluster that serves a newcomer of protocol v2 who begins at `gateway`, and follows 4307. */
export async function enter(cluster, gateway, user, fid) {
	for (let tries = 0; tries < 4; tries++) {
		const client = new RawClient(gateway, fid);
		await client.opened;
		client.send({ t: 'hello', v: 2, token: user.token, client: 0, acked: 0, since: 0 });
		await waitUntil(() => client.closed || client.messages.length > 0, 'an answer', 20000, 2);
		if (!client.closed) {
			client.socket.close();
			return gateway;
		}
		assert.equal(client.closed.code, 4307, client.closed.reason);
		const { host } = new URL(JSON.parse(client.closed.reason).ws);
		gateway = cluster.gateways.find((candidate) => candidate.host === host);
	}
	throw new Error('sent to and fro');
}
