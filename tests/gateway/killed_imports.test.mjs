/*
 * killed_imports.test.mjs - the gateway, a backend, or all of PostgreSQL is killed (-9) in the middle of imports and exports: a sheet is as
 * before or as after, never between; what was acknowledged is there; no export looks whole that is not; nothing is left; and the next try
 * works. The long form has a file of 100 MB.
 */
// long form only
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { Cluster, PsqlSession, waitUntil } from '../lib/cluster.mjs';
import { register, request } from '../lib/client.mjs';
import { isAlive, roundsToRun, signalAll } from '../lib/processes.mjs';

let cluster;
let gateway;
let anna;
const lines = roundsToRun(40_000, 1_000_000);
const line = (word, i) => `${word} ${i},"a ""quoted"" text, ${i}",${i},2024-02-29,=A1,${'x'.repeat(50)}\r\n`;
/** A file of so many lines: 4 MB, or 100 MB. */
const file = (word) => Buffer.from(Array.from({ length: lines }, (_, i) => line(word, i)).join(''));

describe('killed in the middle', () => {
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
	const sheets = () => cluster.psql('SELECT count(*) FROM sheet.list');
	const ready = () => waitUntil(async () => (await request(gateway, 'GET', '/readyz', { timeoutMs: 5000 })).status === 200, 'the gateway to be ready', 60000);
	const nothingLeft = () =>
		waitUntil(async () => (await cluster.psql('SELECT (SELECT count(*) FROM sheet.import) + (SELECT count(*) FROM sheet.import_part)')) === '0', 'the parts to be removed');
	/** The answer of a request; status 0: it has none. */
	const outcome = (promise) => promise.then((answer) => answer, (error) => ({ status: 0, error }));

	/** Waits, in the server, for a backend that has been active for `ms`; null: there was none while `until` was pending. */
	async function activeBackend(condition, ms, until) {
		const watcher = new PsqlSession(cluster);
		try {
			await watcher.query(`CREATE FUNCTION pg_temp.seen() RETURNS integer LANGUAGE plpgsql AS $$
				DECLARE found integer;
				BEGIN
					FOR i IN 1..10 LOOP
						PERFORM pg_stat_clear_snapshot();
						SELECT pid INTO found FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND ${condition}
							AND clock_timestamp() - query_start >= interval '${ms} ms' LIMIT 1;
						EXIT WHEN found IS NOT NULL;
						PERFORM pg_sleep(0.002);
					END LOOP;
					RETURN found;
				END $$`);
			let pending = true;
			until.finally(() => (pending = false));
			for (;;) {
				const pid = await watcher.query('SELECT pg_temp.seen()');
				if (pid) return Number(pid);
				if (!pending) return null;
			}
		} finally {
			watcher.child.kill('SIGKILL');
		}
	}

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

	/** What is killed, and how it comes back. */
	const victims = {
		'the gateway': async () => {
			await gateway.kill();
			await gateway.start();
			// What a gateway has left goes when an import begins a day later.
			await cluster.psql(`UPDATE sheet.import SET begun_at = begun_at - interval '2 days'`);
		},
		'a backend': async (pid) => {
			signalAll([pid], 'SIGKILL');
			await waitUntil(() => !isAlive(pid), 'the backend to end');
			await waitUntil(() => cluster.psql('SELECT 1').then((one) => one === '1', () => false), 'the server');
		},
		'all of PostgreSQL': async () => {
			const all = serverProcesses();
			signalAll(all, 'SIGKILL');
			await cluster.postgres.ended;
			await waitUntil(() => !all.some(isAlive), 'the server to end');
			await cluster.startPostgres();
		},
	};

	for (const [victim, kill] of Object.entries(victims))
		describe(`${victim} is killed`, () => {
			test('while the parts of a new sheet come', async () => {
				const before_ = await sheets();
				const body = file('new');
				const outgoing = http.request({ port: gateway.port, method: 'POST', path: '/v2/sheets/import?name=cut', agent: false, headers: { ...bearer(), 'content-type': 'text/csv', 'content-length': body.length } });
				const answered = outcome(new Promise((resolve, reject) => outgoing.on('response', (answer) => resolve(answer.resume())).on('error', reject)));
				outgoing.write(body.subarray(0, body.length / 2));
				await waitUntil(async () => Number(await cluster.psql('SELECT count(*) FROM sheet.import_part')) > 2, 'parts to come');
				await kill(Number(await cluster.psql(`SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet writes' LIMIT 1`)));
				outgoing.end(body.subarray(body.length / 2));
				assert.notEqual((await answered).statusCode, 200);
				await ready();
				assert.equal(await sheets(), before_);
				assert.ok((await exported(await made('again', body))).equals(body));
				await nothingLeft();
			});

			test('while cells of a sheet are set', async (context) => {
				const [old, changed] = [file('old'), file('changed')];
				const id = await made('old', old);
				const seen = [];
				for (const share of [0, 0.3, 0.7]) {
					const begun = performance.now();
					assert.equal((await ask('PUT', `/v2/sheets/${id}/import?ref=A1&formulas=true`, old)).status, 200);
					const took = performance.now() - begun;
					const asked = outcome(ask('PUT', `/v2/sheets/${id}/import?ref=A1&formulas=true`, changed));
					const pid = await activeBackend(`query LIKE '%import_end%'`, Math.round((took * share) / 2), asked);
					if (pid) await kill(pid);
					const answer = await asked;
					await ready();
					const now = await exported(id);
					assert.ok(answer.status === 200 ? now.equals(changed) : now.equals(old) || now.equals(changed), `after ${answer.status}`);
					seen.push(pid ? (now.equals(old) ? 'before' : 'after') : 'not killed');
					await ask('PUT', `/v2/sheets/${id}/import?ref=A1&formulas=true`, old);
					assert.ok((await exported(id)).equals(old));
					await nothingLeft();
				}
				context.diagnostic(seen.join(', '));
				assert.ok(seen.includes('before'), seen.join(', '));
			});

			test('while a sheet is exported', async () => {
				const body = file('export');
				const id = await made('export', body);
				const outgoing = http.get({ port: gateway.port, path: `/v2/sheets/${id}.csv?formulas=true`, agent: false, headers: bearer() });
				const answer = await new Promise((resolve, reject) => outgoing.on('response', resolve).on('error', reject));
				answer.pause(); // so that the rest of it waits
				const whole = new Promise((resolve) => answer.on('error', () => resolve(false)).on('end', () => resolve(answer.complete)));
				const pid = await activeBackend(`application_name = 'pg_sheet downloads'`, 0, whole);
				await kill(pid);
				answer.resume();
				assert.equal(await whole, false, 'the export looks whole');
				await ready();
				assert.ok((await exported(id)).equals(body));
				await nothingLeft();
			});
		});
});
