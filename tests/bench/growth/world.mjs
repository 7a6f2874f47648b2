/*
 * world.mjs - the two databases that the benchmark `growth` compares, each with a gateway: the same account, the same sheets and the
 * same cells, but one has a thousand times the history of the other, and many more sheets.
 */
import { Gateway, freePort, waitUntil } from '../../lib/cluster.mjs';
import { Editor, call, post, register } from '../../lib/client.mjs';
import { mustRunAs, runAs } from '../../lib/processes.mjs';
import path from 'node:path';

const sheetsAtOnce = 1000; // in a transaction
const busySheets = 3;

/** Edits of a sheet of 10 x 10 cells, a hundred to a batch; with versions, one after each hundred batches. */
const fillSql = (fid, edits, versions) => `DO $$ BEGIN
	FOR i IN 1 .. ${Math.ceil(edits / 100)} LOOP
		PERFORM sheet.set_range(${fid}, 'A1', array_fill(i::text, ARRAY[10, 10]));
		IF i % 100 = 0 THEN
			COMMIT;
			${versions ? `PERFORM sheet.commit(${fid});` : ''}
		END IF;
	END LOOP; END $$`;

export class World {
	constructor(cluster, name, { edits, sheets }) {
		Object.assign(this, { cluster, name, edits, sheets });
	}

	/** An account with so many sheets, the busy ones among them, and one for floods. */
	async make() {
		const { cluster, name } = this;
		await this.#admin(`CREATE DATABASE ${name}`);
		await this.psql('CREATE EXTENSION pg_sheet');
		this.gateway = new Gateway(cluster, name, await freePort(), undefined, await freePort());
		cluster.gateways.push(this.gateway);
		await this.gateway.start({ database: cluster.conninfo('gateway', name) });
		this.user = await register(this.gateway, 'owner', 'password of owner');
		await this.#makeSheets();
		this.busy = [];
		for (let i = 0; i < busySheets; i++) this.busy.push(await this.makeSheet(`busy ${i}`));
		this.flooded = await this.makeSheet('flooded', 'editor');
		for (const fid of this.busy) await this.psql(fillSql(fid, this.edits, true));
		await this.psql(fillSql(this.flooded, this.edits, false));
		await this.untilVersionsAreMade();
		await this.psql('VACUUM ANALYZE');
	}

	async #makeSheets() {
		const pieces = Math.ceil(this.sheets / sheetsAtOnce);
		const piece = Math.min(sheetsAtOnce, this.sheets);
		const make = (from, to) =>
			this.psql(`DO $$ BEGIN FOR i IN ${from} .. ${to} LOOP
				PERFORM sheet.create('sheet ' || n, 10, 10, as_uid => ${this.user.uid}) FROM generate_series(1, ${piece}) n;
				COMMIT; END LOOP; END $$`);
		const half = Math.ceil(pieces / 2);
		await Promise.all([make(1, half), make(half + 1, pieces)]);
	}

	async makeSheet(name, linkRole = null) {
		const role = linkRole === null ? 'NULL' : `'${linkRole}'`;
		return Number(await this.psql(`SELECT sheet.create('${name}', 10, 10, ${role}, ${this.user.uid})`));
	}

	/** Background workers have nothing to do. */
	untilVersionsAreMade() {
		const idle = 'SELECT queued = 0 AND workers = 0 FROM sheet.version_stats';
		return waitUntil(async () => (await this.psql(idle)) === 't', 'versions to be made', 600000, 100);
	}

	#admin(sql) {
		return mustRunAs(path.join(this.cluster.bin, 'psql'), ['-XqAt', '-c', sql, this.cluster.conninfo('postgres', 'postgres')]);
	}

	async psql(sql) {
		const args = ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', '-', this.cluster.conninfo('postgres', this.name)];
		const { code, stdout, stderr } = await runAs(path.join(this.cluster.bin, 'psql'), args, { input: sql, timeoutMs: 1200000 });
		if (code !== 0) throw new Error(stderr);
		return stdout.trimEnd();
	}

	/**
	 * Times of statements in one session, ms, by psql: of each of the last `count` of them. Before each, `before` runs, if it is
	 * given.
	 */
	async time(sql, count, { before = '', warm = 5 } = {}) {
		const once = `${before ? `\\timing off\n${before} \\g /dev/null\n` : ''}\\timing on\n${sql} \\g /dev/null\n`;
		const output = await this.psql(once.repeat(count + warm));
		return [...output.matchAll(/^Time: ([\d.]+) ms/gm)].map((match) => Number(match[1])).slice(-count);
	}

	/** After the server was restarted. */
	untilServing() {
		const open = async () => {
			const editor = await Editor.open(this.gateway, this.user, this.busy[0], { timeoutMs: 3000 });
			await editor.settle(0, 0);
			await editor.close();
			return true;
		};
		return waitUntil(open, `the gateway of ${this.name} to serve`, 60000, 200);
	}

	call(route, body, msg) {
		return call(this.gateway, route, { token: this.user.token, ...body }, msg);
	}

	login() {
		return post(this.gateway, '/login', { username: this.user.username, password: this.user.password });
	}
}
