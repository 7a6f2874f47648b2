/* The v1 routes about sheets: shapes, sizes, the bin, versions, logs, and who may call them. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, PsqlSession } from '../lib/cluster.mjs';
import { call, getSheet, newSheet, post, register, uniqueName } from '../lib/client.mjs';
import * as client from '../lib/client.mjs';

let cluster;
let gateway;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
});
after(() => cluster?.stop());

const refused = (path, body, msg) => client.refused(gateway, path, body, msg);
const malformed = (path, body, headers) => client.malformed(gateway, path, body, headers);

describe('sheets', () => {
	let anna;
	let ben;
	before(async () => {
		[anna, ben] = [await register(gateway), await register(gateway)];
	});

	const set = (fid, row, col, content) => cluster.psql(`SELECT sheet.set(${fid}, ${row}, ${col}, '${content}')`);

	test('newsheet answers a bare integer, getsheet its exact shape', async () => {
		const name = uniqueName('budget');
		const answer = await post(gateway, '/newsheet', { token: anna.token, name, initRows: 12, initColumns: 15 });
		assert.match(answer.text, /"data":\s*\d+\s*[,}]/, 'data is a bare number');
		assert.equal(answer.json.msg, 11);
		const fid = answer.json.data;
		const sheet = await getSheet(gateway, anna, fid);
		assert.deepEqual(Object.keys(sheet).sort(), [
			'CreatedAt',
			'UpdatedAt',
			'checkPointBrief',
			'checkpoint_num',
			'columns',
			'content',
			'fid',
			'isDeleted',
			'name',
			'owner',
		]);
		assert.deepEqual(
			{
				fid: sheet.fid,
				isDeleted: sheet.isDeleted,
				name: sheet.name,
				checkpoint_num: sheet.checkpoint_num,
				checkPointBrief: sheet.checkPointBrief,
				columns: sheet.columns,
				owner: sheet.owner,
			},
			{ fid, isDeleted: false, name, checkpoint_num: 0, checkPointBrief: [], columns: 15, owner: anna.username },
		);
		assert.match(sheet.CreatedAt, RFC3339);
		assert.match(sheet.UpdatedAt, RFC3339);
		assert.equal(sheet.content.length, 12 * 15);
		assert.ok(sheet.content.every((text) => text === ''));
	});

	test('a sheet has at least 10 by 10 cells', async () => {
		for (const [rows, columns, wantRows, wantColumns] of [
			[0, 0, 10, 10],
			[3, 20, 10, 20],
			[20, 1, 20, 10],
		]) {
			const fid = await newSheet(gateway, anna, { rows, columns });
			const sheet = await getSheet(gateway, anna, fid);
			assert.deepEqual([sheet.columns, sheet.content.length], [wantColumns, wantRows * wantColumns]);
		}
		const answer = await post(gateway, '/newsheet', { token: anna.token, name: 'without a size' });
		assert.equal(answer.json.msg, 11, answer.text);
	});

	test('absurd sizes are refused and nothing is made', async () => {
		const count = () => cluster.psql('SELECT count(*) FROM sheet.sheet');
		const sheets = await count();
		for (const [initRows, initColumns] of [
			[-1, 10],
			[10, -5],
			[2 ** 31, 10],
			[10, 2 ** 31],
			[1e9, 1e9],
			[10, 16385],
			[16777217, 10],
		]) {
			const answer = await post(gateway, '/newsheet', { token: anna.token, name: 'absurd', initRows, initColumns });
			assert.equal(answer.json.success, false, `${initRows} x ${initColumns}: ${answer.text}`);
		}
		await malformed('/newsheet', '{"token":"x","name":"absurd","initRows":1e99,"initColumns":10}');
		assert.equal(await count(), sheets);
	});

	test('content is row-major, grows exactly to what was written, and escapes only what JSON requires', async () => {
		const fid = await newSheet(gateway, anna);
		await set(fid, 0, 1, 'a/b "c" \\ é 漢 😀');
		await set(fid, 11, 3, 'below');
		await set(fid, 2, 12, 'right');
		const answer = await post(gateway, '/getsheet', { token: anna.token, fid });
		const { columns, content } = answer.json.data;
		assert.equal(columns, 13);
		assert.equal(content.length, 12 * 13);
		assert.equal(content[1], 'a/b "c" \\ é 漢 😀');
		assert.equal(content[11 * 13 + 3], 'below');
		assert.equal(content[2 * 13 + 12], 'right');
		assert.ok(!answer.text.includes('\\/'), 'a slash is never escaped');
	});

	test('names need not be unique; strange ones come back as they are', async () => {
		for (const name of ['twice', 'twice', 'a#b#c', '漢字 😀 "quoted" \\ <b>', "Robert'); DROP TABLE sheet;--"]) {
			const fid = await newSheet(gateway, anna, { name });
			assert.equal((await getSheet(gateway, anna, fid)).name, name);
		}
		const answer = await post(gateway, '/newsheet', {
			token: anna.token,
			name: 'x'.repeat(5000),
			initRows: 10,
			initColumns: 10,
		});
		assert.equal(answer.json.success, false, 'a name of 5000 characters');
	});

	test('unknown sheets are msg 14', async () => {
		for (const fid of [0, 999999999, Number.MAX_SAFE_INTEGER]) {
			await refused('/getsheet', { token: anna.token, fid }, 14);
			await refused('/deletesheet', { token: anna.token, fid }, 14);
		}
	});

	test('sheets made through v1 are open to everyone signed in who has the id; the owner can end that', async () => {
		const fid = await newSheet(gateway, anna);
		assert.equal((await getSheet(gateway, ben, fid)).owner, anna.username);
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		for (const [route, body] of [
			['/getsheet', {}],
			['/deletesheet', {}],
			['/recoversheet', {}],
			['/commitsheet', {}],
			['/getsheetchkp', { cid: 1 }],
			['/getsheetlog', { lid: 1 }],
			['/rollbacksheet', { cid: 1 }],
			['/getallchunks', {}],
		]) {
			await refused(route, { token: ben.token, fid, ...body }, 13);
		}
		assert.equal((await getSheet(gateway, anna, fid)).fid, fid);
	});

	test('a collaborator cannot delete or purge', async () => {
		const fid = await newSheet(gateway, anna);
		await getSheet(gateway, ben, fid);
		await refused('/deletesheet', { token: ben.token, fid }, 13);
		assert.equal((await getSheet(gateway, anna, fid)).isDeleted, false);
	});

	test('deletesheet trashes, recoversheet brings back, the second deletesheet purges', async () => {
		const fid = await newSheet(gateway, anna, { name: 'to the bin' });
		await set(fid, 1, 1, 'kept');
		await refused('/recoversheet', { token: anna.token, fid }, 26);
		assert.equal(await call(gateway, '/deletesheet', { token: anna.token, fid }, 16), null);
		await refused('/getsheet', { token: anna.token, fid }, 18);
		await refused('/commitsheet', { token: anna.token, fid }, 18);
		const { sheets } = await call(gateway, '/getuser', { token: anna.token }, 10);
		assert.equal(sheets.find((sheet) => sheet.fid === fid).isDeleted, true);
		assert.equal(await call(gateway, '/recoversheet', { token: anna.token, fid }, 25), null);
		assert.equal((await getSheet(gateway, anna, fid)).content[11], 'kept');
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		await refused('/getsheet', { token: anna.token, fid }, 14);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.log_batch WHERE sheet_id = ${fid}`), '0');
	});

	test('deletesheet with purge does one of the two only', async () => {
		const fid = await newSheet(gateway, anna, { name: 'twice' });
		await refused('/deletesheet', { token: anna.token, fid, purge: true }, 26);
		assert.equal((await getSheet(gateway, anna, fid)).isDeleted, false);
		await call(gateway, '/deletesheet', { token: anna.token, fid, purge: false }, 16);
		await refused('/deletesheet', { token: anna.token, fid, purge: false }, 18);
		await call(gateway, '/recoversheet', { token: anna.token, fid }, 25);
		await call(gateway, '/deletesheet', { token: anna.token, fid, purge: false }, 16);
		await call(gateway, '/deletesheet', { token: anna.token, fid, purge: true }, 16);
		await refused('/getsheet', { token: anna.token, fid }, 14);
	});

	test('what cannot be purged because of an older snapshot stays, with a clear answer, and is purged after its end', async () => {
		// The edits of small sheets share blocks of the log.
		const sheets = [];
		for (let i = 0; i < 10; i++) sheets.push(await newSheet(gateway, anna));
		await cluster.psql(sheets.map((fid) => `SELECT sheet.set(${fid}, 0, 0, 'x'); SELECT sheet.trash(${fid});`).join('\n'));
		const backup = new PsqlSession(cluster);
		const v2 = (fid) => client.request(gateway, 'DELETE', `/v2/sheets/${fid}?purge=true`, { headers: { authorization: `Bearer ${anna.token}` } });
		const left = [];
		try {
			await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM sheet.log_batch');
			for (const fid of sheets) {
				const answer = await post(gateway, '/deletesheet', { token: anna.token, fid, purge: true });
				if (answer.status === 200) continue;
				left.push(fid);
				assert.deepEqual([answer.status, answer.json.code], [503, 'in_use'], answer.text);
				assert.match(answer.json.data, /older transaction, such as a backup/);
			}
			assert.ok(left.length >= 2, `${left.length} of 10 were refused`);
			const again = await v2(left[0]);
			assert.deepEqual([again.status, again.json.code], [503, 'in_use'], again.text);
			const batches = `SELECT count(*) FROM sheet.log_batch WHERE sheet_id = ${left[0]}`;
			assert.equal(await cluster.psql(batches), await backup.query(batches), 'nothing of it was deleted');
		} finally {
			await backup.close();
		}
		for (const fid of left) assert.equal((await v2(fid)).status, 204);
	});

	test('commit, versions, logs and rollback', async () => {
		const fid = await newSheet(gateway, anna);
		await refused('/getsheetchkp', { token: anna.token, fid, cid: 1 }, 22);
		await set(fid, 0, 0, 'one');
		await set(fid, 2, 3, 'two');
		assert.equal(await call(gateway, '/commitsheet', { token: anna.token, fid }, 28), 1);
		await refused('/commitsheet', { token: anna.token, fid }, 29);
		await set(fid, 0, 0, 'changed');

		const checkpoint = await call(gateway, '/getsheetchkp', { token: anna.token, fid, cid: 1 }, 21);
		assert.deepEqual(Object.keys(checkpoint).sort(), ['cid', 'columns', 'content', 'rows', 'timestamp']);
		assert.deepEqual(
			[checkpoint.cid, checkpoint.rows, checkpoint.columns, checkpoint.content.length],
			[1, 10, 10, 100],
		);
		assert.deepEqual([checkpoint.content[0], checkpoint.content[23]], ['one', 'two']);
		assert.match(checkpoint.timestamp, RFC3339);

		const sealed = await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: 1 }, 23);
		for (const entry of sealed)
			assert.deepEqual(Object.keys(entry).sort(), ['col', 'lid', 'new', 'old', 'row', 'timestamp', 'uid', 'username']);
		const edits = sealed.filter((entry) => entry.new !== '');
		assert.deepEqual(
			edits.slice(0, 2).map((entry) => [entry.lid, entry.row, entry.col, entry.old, entry.new]),
			[
				[1, 0, 0, '', 'one'],
				[1, 2, 3, '', 'two'],
			],
		);
		assert.deepEqual([sealed.at(-1).row, sealed.at(-1).col], [-1, -1], 'a sealed log ends with a commit record');
		const open = await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: 2 }, 23);
		assert.deepEqual(
			open.map((entry) => [entry.lid, entry.old, entry.new]),
			[[2, 'one', 'changed']],
		);
		await refused('/getsheetlog', { token: anna.token, fid, lid: 3 }, 24);
		await refused('/getsheetlog', { token: anna.token, fid, lid: 0 }, 24);

		assert.equal(await call(gateway, '/rollbacksheet', { token: anna.token, fid, cid: 1 }, 30), null);
		const sheet = await getSheet(gateway, anna, fid);
		assert.equal(sheet.content[0], 'one');
		assert.equal(sheet.checkpoint_num, sheet.checkPointBrief.length);
		assert.ok(sheet.checkpoint_num >= 2, 'rolling back makes a version and destroys none');
		for (const brief of sheet.checkPointBrief) {
			assert.deepEqual(Object.keys(brief).sort(), ['cid', 'timestamp']);
			assert.match(brief.timestamp, RFC3339);
		}
		await refused('/rollbacksheet', { token: anna.token, fid, cid: 99 }, 22);
		assert.equal(
			await cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND new = 'changed'`),
			'1',
			'the log keeps every edit',
		);
	});

	test('the list of sheets has own and shared ones, without content', async () => {
		const [cleo, dora] = [await register(gateway), await register(gateway)];
		const own = await newSheet(gateway, cleo, { name: 'own' });
		const shared = await newSheet(gateway, dora, { name: 'shared' });
		await cluster.psql(`SELECT sheet.share(${shared}, '${cleo.username}', 'editor')`);
		const { sheets } = await call(gateway, '/getuser', { token: cleo.token }, 10);
		assert.deepEqual(sheets.map((sheet) => sheet.fid).sort(), [own, shared].sort());
		for (const sheet of sheets) {
			assert.ok(!sheet.content, 'only /getsheet has content');
			assert.equal(sheet.owner, sheet.fid === own ? cleo.username : dora.username);
		}
	});
});
