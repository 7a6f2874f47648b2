/* Pages of the log and of the versions, newest first, whose cost does not grow with the log. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let fid;
const get = (path, user = anna) => request(gateway, 'GET', `/v2/sheets/${path}`, { headers: { authorization: `Bearer ${user.token}` } });

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	fid = await newSheet(gateway, anna);
});
after(() => cluster?.stop());

describe('the log', () => {
	test('comes in pages, newest first, each edit once', async () => {
		await cluster.psql(`SELECT count(sheet.set(${fid}, n, 1, 'edit ' || n)) FROM generate_series(0, 449) n`);
		const all = [];
		let before = '';
		let pages = 0;
		do {
			const { status, json, text } = await get(`${fid}/log?limit=100${before}`);
			assert.equal(status, 200, text);
			all.push(...json.edits);
			before = json.next === null ? null : `&before=${json.next}`;
			pages++;
		} while (before !== null);
		assert.equal(pages, 5);
		const seqs = all.map(({ seq }) => seq);
		assert.deepEqual(seqs, [...seqs].sort((a, b) => b - a));
		assert.equal(new Set(seqs).size, seqs.length);
		const { seq: _seq, at, ...first } = all[0];
		assert.deepEqual(first, { kind: 'set', row: 449, col: 1, old: '', new: 'edit 449', uid: 0, username: '', segment: 1 });
		assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60000, at);
		assert.equal((await get(`${fid}/log`)).json.edits.length, 200);
	});

	test('of a million edits opens as fast as a small one', async () => {
		const big = await newSheet(gateway, anna);
		const csv = (suffix) => `(SELECT string_agg(n || '${suffix},' || n || ',a,b,c,d,e,f,g,${suffix}', E'\\n') FROM generate_series(1, 50000) n)`;
		for (const suffix of ['', 'x', 'y', 'z', 'u', 'v', 'w', 'q']) await cluster.psql(`SELECT sheet.import_csv_into(${big}, 'A1', ${csv(suffix)})`);
		const [{ n }] = await cluster.rows(`SELECT max(seq) AS n FROM sheet.log WHERE sheet_id = ${big}`);
		assert.ok(Number(n) > 1000000, `${n} edits`);
		for (const before of ['', `?before=${Math.floor(n / 2)}`]) {
			const start = Date.now();
			const { json } = await get(`${big}/log${before}`);
			assert.equal(json.edits.length, 200);
			assert.ok(Date.now() - start < 500, `${Date.now() - start} ms`);
		}
	});

	test('long contents are cut', async () => {
		await cluster.psql(`SELECT sheet.set(${fid}, 0, 0, repeat('长', 30000))`);
		assert.equal([...(await get(`${fid}/log?limit=1`)).json.edits[0].new].length, 1024);
	});

	test('tells what properties were set, and of which rows, columns or cells', async () => {
		const set = [['5:5', 'height', '40'], ['B:D', 'hidden', 'true'], ['A1:B2', 'merge', 'true'], [null, 'freeze', '{"rows": 1}']];
		for (const [target, key, value] of set) await cluster.psql(`SELECT sheet.set_property(${fid}, ${target ? `'${target}'` : 'NULL'}, '${key}', '${value}')`);
		await cluster.psql(`SELECT sheet.set(${fid}, 0, 0, 'cell')`);
		const [cell, ...edits] = (await get(`${fid}/log?limit=5`)).json.edits;
		assert.deepEqual(edits.reverse().map(({ kind, row, col, target, key, new: value }) => [kind, row, col, target, key, value]), [
			['property', 4, -1, '5:5', 'height', '40'],
			['property', -1, 1, 'B:D', 'hidden', 'true'],
			['property', 0, 0, 'A1:B2', 'merge', 'true'],
			['property', -1, -1, '', 'freeze', '{"rows": 1}'],
		]);
		assert.deepEqual(['target' in cell, 'key' in cell], [false, false]);
	});

	test('is for those who may read the sheet, and asked for in numbers', async () => {
		const ben = await register(gateway);
		for (const what of ['log', 'versions']) {
			assert.equal((await get(`${fid}/${what}`, ben)).status, 403);
			assert.equal((await get(`${fid}/${what}`, { token: 'none' })).status, 401);
			assert.equal((await get(`987654321/${what}`)).status, 404);
			for (const query of ['limit=0', 'limit=501', 'before=x', 'before=', 'before=99999999999999999', 'limit=-1'])
				assert.equal((await get(`${fid}/${what}?${query}`)).status, 400, query);
		}
		await cluster.psql(`SELECT sheet.share(${fid}, '${ben.username}', 'viewer')`);
		assert.equal((await get(`${fid}/log?limit=1`, ben)).status, 200);
	});
});

describe('the versions', () => {
	test('come in pages, newest first, without contents', async () => {
		const sheet = await newSheet(gateway, anna);
		for (let i = 1; i <= 5; i++) await cluster.psql(`SELECT sheet.set(${sheet}, 0, 0, '${i}'); SELECT sheet.commit(${sheet}, 'label ${i}');`);
		const first = (await get(`${sheet}/versions?limit=3`)).json;
		assert.deepEqual(first.versions.map(({ cid, label, kind }) => [cid, label, kind]), [[5, 'label 5', 'commit'], [4, 'label 4', 'commit'], [3, 'label 3', 'commit']]);
		const second = (await get(`${sheet}/versions?limit=3&before=${first.next}`)).json;
		assert.deepEqual([second.versions.map(({ cid }) => cid), second.next], [[2, 1], null]);
	});
});
