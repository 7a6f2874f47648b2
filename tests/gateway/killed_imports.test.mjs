/*
 * killed_imports.test.mjs - a backend, the gateway, or all of PostgreSQL is killed (-9) in the middle of imports and exports: a sheet is as
 * before or as after, never between; what was acknowledged is there; no export looks whole that is not; nothing is left; and the next try
 * works. Stop points in the server say where the middle is. The long form has a file of 100 MB.
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { Cluster, database, waitUntil } from '../lib/cluster.mjs';
import { register, request } from '../lib/client.mjs';
import { isAlive, roundsToRun, signalAll } from '../lib/processes.mjs';

let cluster;
let gateway;
let anna;
/** With six cells each, they are more than two batches of the log. */
const lines = roundsToRun(24_000, 1_000_000);
const line = (word, i) => `${word} ${i},"a ""quoted"" text, ${i}",${i},2024-02-29,=A1,${'x'.repeat(50)}\r\n`;
const file = (word) => Buffer.from(Array.from({ length: lines }, (_, i) => line(word, i)).join(''));

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'max-upload-bytes': 256 << 20 }, postgres: { max_wal_size: '2GB' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
});
after(() => cluster?.stop());

const bearer = () => ({ authorization: `Bearer ${anna.token}` });
const ask = (method, address, body) =>
	request(gateway, method, address, { headers: { ...bearer(), ...(body ? { 'content-type': 'text/csv', 'content-length': body.length } : {}) }, body, timeoutMs: 240_000 });
const exported = async (sheet) => {
	const answer = await ask('GET', `/v2/sheets/${sheet}.csv?formulas=true`);
	assert.equal(answer.status, 200, answer.text);
	return answer.body;
};
const made = async (name, body) => {
	const answer = await ask('POST', `/v2/sheets/import?name=${name}&formulas=true`, body);
	assert.equal(answer.status, 200, answer.text);
	return answer.json.id;
};
const replaced = (sheet, body) => ask('PUT', `/v2/sheets/${sheet}/import?ref=A1&formulas=true`, body);
const sheets = () => cluster.psql('SELECT count(*) FROM sheet.list');
const ready = () => waitUntil(async () => (await request(gateway, 'GET', '/readyz', { timeoutMs: 5000 })).status === 200, 'the gateway to be ready', 60000);
const nothingLeft = () =>
	waitUntil(async () => (await cluster.psql('SELECT (SELECT count(*) FROM sheet.import) + (SELECT count(*) FROM sheet.import_part)')) === '0', 'the parts to be removed');
/** The answer of a request; status 0: it has none. */
const outcome = (promise) => promise.then((answer) => answer, (error) => ({ status: 0, error }));

/** All processes of the server. */
function serverProcesses() {
	const parents = fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).map((pid) => {
		try {
			const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
			return [Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])];
		} catch {
			return [Number(pid), 0]; // it has ended
		}
	});
	const found = new Set([cluster.postgres.pid]);
	for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
	return [...found];
}

const serverAgain = () => waitUntil(() => cluster.psql('SELECT 1').then((one) => one === '1', () => false), 'the server', 60000);

/** What is killed, and comes back. */
const victims = {
	async backend(pid) {
		signalAll([pid], 'SIGKILL');
		await waitUntil(() => !isAlive(pid), 'the backend to end');
		await serverAgain();
	},
	async gateway() {
		await gateway.kill();
		await gateway.start();
	},
	async server() {
		const all = serverProcesses();
		signalAll(all, 'SIGKILL');
		await cluster.postgres.ended;
		await waitUntil(() => !all.some(isAlive), 'the server to end');
		await cluster.startPostgres();
	},
};

/** Sessions of the gateway have the setting from now on. */
async function setStopPoint(setting) {
	await cluster.psql(`ALTER DATABASE ${database} ${setting ? `SET pg_sheet.stop_point = '${setting}'` : 'RESET pg_sheet.stop_point'}`);
	await gateway.stop();
	await gateway.start();
	await ready();
}

/** Kills the victim while one of the gateway's sessions is at the stop point for the n-th time, where begin() takes it. */
async function killAt(point, n, victim, begin) {
	await setStopPoint(`${point}:wait:${n}`);
	const lock = `locktype = 'advisory' AND objid = (hashtext('${point}')::bigint & 4294967295)::oid`;
	const holder = cluster.psqlSession();
	await holder.query(`SELECT pg_advisory_lock(hashtext('${point}'))`);
	const begun = begin();
	const pid = await waitUntil(() => cluster.psql(`SELECT pid FROM pg_locks WHERE ${lock} AND NOT granted`), 'a session to stop', 120_000);
	await victims[victim](Number(pid));
	holder.child.kill('SIGKILL');
	const result = await begun;
	// Of a gateway that was killed, the statement ends when the stop point is free.
	await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM pg_locks WHERE ${lock}`)) === '0', 'the session to go on', 120_000);
	await setStopPoint(null);
	return result;
}

for (const victim of Object.keys(victims))
	describe(`the ${victim} is killed`, () => {
		test('while the parts of a file come', async () => {
			const count = await sheets();
			const body = file('new');
			const options = { port: gateway.port, method: 'POST', path: '/v2/sheets/import?name=cut', agent: false, headers: { ...bearer(), 'content-type': 'text/csv', 'content-length': body.length } };
			const outgoing = http.request(options);
			const answered = outcome(new Promise((resolve, reject) => outgoing.on('response', (answer) => resolve(answer.resume())).on('error', reject)));
			outgoing.write(body.subarray(0, body.length / 2));
			await waitUntil(async () => Number(await cluster.psql('SELECT count(*) FROM sheet.import_part')) > 2, 'parts to come');
			await victims[victim](Number(await cluster.psql(`SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet writes' LIMIT 1`)));
			outgoing.end(body.subarray(body.length / 2));
			assert.notEqual((await answered).statusCode, 200);
			await ready();
			assert.equal(await sheets(), count);
			// The next import removes what a gateway has left a day before.
			await cluster.psql(`UPDATE sheet.import SET begun_at = begun_at - interval '2 days'`);
			assert.ok((await exported(await made('again', body))).equals(body));
			await nothingLeft();
		});

		test('while cells are set', async () => {
			const [old, changed] = [file('old'), file('changed')];
			const id = await made('old', old);
			const { status } = await killAt('append-stage', 2, victim, () => outcome(replaced(id, changed)));
			assert.notEqual(status, 200);
			const now = await exported(id);
			assert.ok(now.equals(old) || (victim === 'gateway' && now.equals(changed)));
			await cluster.psql(`UPDATE sheet.import SET begun_at = begun_at - interval '2 days'`);
			assert.equal((await replaced(id, changed)).status, 200);
			assert.ok((await exported(id)).equals(changed));
			await nothingLeft();
		});

		test('while a sheet is exported', async () => {
			const body = file('export');
			const id = await made('export', body);
			const whole = await killAt('read-slice', 2, victim, async () => {
				const outgoing = http.get({ port: gateway.port, path: `/v2/sheets/${id}.csv?formulas=true`, agent: false, headers: bearer() });
				const answer = await outcome(new Promise((resolve, reject) => outgoing.on('response', resolve).on('error', reject)));
				if (answer.statusCode !== 200) return false;
				return new Promise((resolve) => answer.on('error', () => resolve(false)).on('end', () => resolve(answer.complete)).resume());
			});
			assert.equal(whole, false, 'the export looks whole');
			assert.ok((await exported(id)).equals(body));
			await nothingLeft();
		});
	});
