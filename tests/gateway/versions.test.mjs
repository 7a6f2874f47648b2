/* Versions that the background worker makes while people edit: nobody's view of the sheet is disturbed by them. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, getSheet, newSheet, refused, register } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let ben;

before(async () => {
	cluster = await Cluster.start({
		postgres: { 'pg_sheet.version_edits': 50, 'pg_sheet.version_interval': 0 },
	});
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());

describe('versions that are made by themselves', () => {
	test('editors go on over them, and see every edit once, in one order', async () => {
		const fid = await newSheet(gateway, anna);
		const a = await Editor.open(gateway, anna, fid);
		const b = await Editor.open(gateway, ben, fid);
		try {
			const made = async () => Number(await cluster.psql(`SELECT count(*) FROM sheet.versions(${fid}) WHERE cause = 'log'`));
			let sent = 0;
			await waitUntil(async () => {
				for (let i = 0; i < 20; i++, sent++) (sent % 2 ? a : b).modify(sent % 10, 3, `edit ${sent}`);
				await a.settle();
				return (await made()) >= 3;
			}, 'three versions');
			for (const editor of [a, b]) await editor.settle();
			const last = await a.settle();
			await b.nextModify(last.body.row, last.body.col, last.body.content); // authors hear of their edits before others do
			const contents = (editor) => editor.modifies().map(({ content }) => content).filter((text) => text.startsWith('edit '));
			assert.deepEqual(contents(a), contents(b));
			assert.equal(new Set(contents(a)).size, sent);
			assert.equal(contents(a).length, sent);
			assert.deepEqual(a.grid(), b.grid());
			const [{ severity, what }] = await cluster.rows(`SELECT severity, what FROM sheet.fsck(${fid}, true, false)`);
			assert.deepEqual([severity, what], ['info', 'clean']);
		} finally {
			a.terminate();
			b.terminate();
		}
	});

	test('they are not in the list of versions, and do not keep people from theirs', async () => {
		const fid = await newSheet(gateway, anna);
		await cluster.psql(`SELECT sheet.set(${fid}, 0, 0, 'edit ' || i) FROM generate_series(1, 60) i`);
		await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.versions(${fid})`)) === '1', 'a version');
		let sheet = await getSheet(gateway, anna, fid);
		assert.deepEqual([sheet.checkpoint_num, sheet.checkPointBrief], [1, []]);
		const log = await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: 1 }, 23);
		assert.deepEqual([log.at(-1).row, log.at(-1).col, log.at(-1).new], [-1, -1, '']);
		assert.deepEqual(await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: sheet.checkpoint_num + 1 }, 23), []);
		assert.equal(await call(gateway, '/commitsheet', { token: anna.token, fid }, 28), 2);
		await refused(gateway, '/commitsheet', { token: anna.token, fid }, 29);
		sheet = await getSheet(gateway, anna, fid);
		assert.deepEqual([sheet.checkpoint_num, sheet.checkPointBrief.map(({ cid }) => cid)], [2, [2]]);
		assert.equal((await call(gateway, '/getsheetchkp', { token: anna.token, fid, cid: 1 }, 21)).content[0], 'edit 60');
	});
});
