/* Pages of the log and of the versions, newest first, whose cost does not grow with the log. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster } from '../lib/cluster.mjs';
import { call, newSheet, post, register, request } from '../lib/client.mjs';

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

	test('is searched for a person and for cells, in pages that cost the same in a log of any size', async () => {
		const ben = await register(gateway);
		const sheet = await newSheet(gateway, anna);
		const edit = (row, col, content, uid) => cluster.psql(`SELECT sheet.import_csv_into(${sheet}, '${'ABC'[col]}${row + 1}', '${content}', as_uid => ${uid})`);
		await edit(0, 0, 'of anna', anna.uid);
		await call(gateway, '/sharesheet', { token: anna.token, fid: sheet, username: ben.username, role: 'editor' }, 12);
		await edit(1, 1, 'of ben', ben.uid);
		await cluster.psql(`SELECT count(sheet.set(${sheet}, n, 2, 'edit ' || n)) FROM generate_series(1, 25000) n`);
		await edit(0, 0, 'again of anna', anna.uid);
		/** All that is found, and how many pages it took. */
		const search = async (query) => {
			const found = [];
			let pages = 0;
			for (let next = Number.MAX_SAFE_INTEGER; next !== null; pages++) {
				const { status, json, text } = await get(`${sheet}/log?${query}&before=${next}`);
				assert.equal(status, 200, text);
				found.push(...json.edits);
				next = json.next;
			}
			return [found.filter(({ kind }) => kind === 'set').map((one) => one.new), pages];
		};
		assert.deepEqual(await search(`uid=${anna.uid}`), [['again of anna', 'of anna'], 3]);
		assert.deepEqual(await search(`uid=${ben.uid}`), [['of ben'], 3]);
		assert.deepEqual(await search('range=A1:B2'), [['again of anna', 'of ben', 'of anna'], 3]);
		assert.deepEqual(await search(`range=A1:B2&uid=${ben.uid}`), [['of ben'], 3]);
		assert.deepEqual(await search('range=B:B'), [['of ben'], 3]);
		assert.deepEqual(await search('range=C25001'), [['edit 25000'], 3]);
		assert.deepEqual(await search('uid=999999'), [[], 3]);
		const all = await search('range=C:C&limit=500');
		assert.equal(all[0].length, 25000);
		for (const query of ['uid=x', 'uid=', 'range=', 'range=A1:ZZZZ9', 'range=1&uid=-1']) assert.equal((await get(`${sheet}/log?${query}`)).status, 400, query);
		assert.equal((await get(`${sheet}/log?uid=1`, await register(gateway))).status, 403);
		assert.deepEqual((await get(`${await newSheet(gateway, anna)}/log?uid=77777`)).json, { edits: [], next: null });
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
	test('have a label, from the beginning or later', async () => {
		const sheet = await newSheet(gateway, anna);
		const commit = async (label) => {
			await cluster.psql(`SELECT sheet.set(${sheet}, 0, 0, clock_timestamp()::text)`);
			return (await post(gateway, '/commitsheet', { token: anna.token, fid: sheet, label })).json;
		};
		const rename = (version, label, user = anna) => post(gateway, `/v2/sheets/${sheet}/label`, { token: user.token, version, label });
		const labels = async () => (await get(`${sheet}/versions`)).json.versions.map(({ label }) => label);
		assert.deepEqual(await commit('before the audit'), { success: true, msg: 28, data: 1 });
		assert.equal((await commit()).data, 2);
		assert.equal((await commit('')).data, 3);
		assert.deepEqual(await labels(), ['', '', 'before the audit']);
		assert.deepEqual([(await rename(2, 'second')).json, (await rename(1, '')).json], [{}, {}]);
		assert.deepEqual(await labels(), ['', 'second', '']);
		await rename(2, 'twice');
		assert.deepEqual(await labels(), ['', 'twice', '']);
		assert.equal(await cluster.psql(`SELECT string_agg(coalesce(label, '-'), ',' ORDER BY version_id) FROM sheet.versions(${sheet})`), '-,twice,-');
		for (const bad of ['a\u0007b', 'a\u202eb', 'x'.repeat(5000)]) {
			for (const answer of [(await rename(2, bad)).json, await commit(bad)]) assert.deepEqual([answer.msg, answer.code], [0, 'label'], JSON.stringify(answer));
		}
		assert.deepEqual([(await rename(77, 'x')).status, (await rename(77, 'x')).json.code], [404, 'no_version']);
		assert.equal((await rename('2', 'x')).status, 400);
		assert.equal((await post(gateway, '/commitsheet', { token: anna.token, fid: sheet, label: 5 })).status, 400);
		const ben = await register(gateway);
		assert.equal((await rename(2, 'x', ben)).status, 403);
		await call(gateway, '/sharesheet', { token: anna.token, fid: sheet, username: ben.username, role: 'viewer' }, 12);
		assert.equal((await rename(2, 'x', ben)).status, 403);
		await cluster.psql(`SELECT sheet.trim(${sheet}, 3)`);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.version_label WHERE sheet_id = ${sheet}`), '0');
		await rename(3, 'kept');
		assert.deepEqual(await labels(), ['kept']);
		await cluster.psql(`SELECT sheet.purge(${sheet})`);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.version_label WHERE sheet_id = ${sheet}`), '0');
	});

	test('come in pages, newest first, without contents', async () => {
		const sheet = await newSheet(gateway, anna);
		for (let i = 1; i <= 5; i++) await cluster.psql(`SELECT sheet.set(${sheet}, 0, 0, '${i}'); SELECT sheet.commit(${sheet}, 'label ${i}');`);
		const first = (await get(`${sheet}/versions?limit=3`)).json;
		assert.deepEqual(first.versions.map(({ cid, label, kind }) => [cid, label, kind]), [[5, 'label 5', 'commit'], [4, 'label 4', 'commit'], [3, 'label 3', 'commit']]);
		const second = (await get(`${sheet}/versions?limit=3&before=${first.next}`)).json;
		assert.deepEqual([second.versions.map(({ cid }) => cid), second.next], [[2, 1], null]);
	});
});
