/* A gateway gives a sheet back when its last editor has left; one that a gateway has left behind when it died is checked, and repaired, when it is opened next. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register } from '../lib/client.mjs';

let cluster;
let gateway;
let user;

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	user = await register(gateway);
});
after(() => cluster?.stop());

const holder = (fid) => cluster.psql(`SELECT holder FROM sheet.ownership WHERE sheet_id = ${fid}`);
/** Sheets that were checked, or are going to be. */
const checks = async () => Number(await cluster.psql('SELECT checked + queued FROM sheet.version_stats'));
const log = () => fs.readFileSync(path.join(cluster.directory, 'log', 'postgres.log'), 'utf8');

async function edit(fid, content) {
	const editor = await Editor.open(gateway, user, fid);
	editor.modify(0, 0, content);
	await editor.nextModify(0, 0, content);
	return editor;
}

async function leave(fid, editor) {
	await editor.close();
	await waitUntil(async () => (await holder(fid)) === '', 'the sheet to be released');
}

test('a sheet that everybody has left is released, and claimed again without a check', async () => {
	const fid = await newSheet(gateway, user);
	const first = await edit(fid, 'first');
	assert.equal(await holder(fid), gateway.host);
	await leave(fid, first);
	await leave(fid, await edit(fid, 'second'));
	// A gateway that is stopped has released its sheets, too.
	const last = await edit(fid, 'last');
	await gateway.stop();
	await last.waitClosed();
	assert.equal(await holder(fid), '');
	await gateway.start();
	await leave(fid, await edit(fid, 'of the next one'));
	assert.equal(await checks(), 0);
});

test('an SQL transaction that holds the sheet keeps nobody from leaving it', async () => {
	const fid = await newSheet(gateway, user);
	const editor = await edit(fid, 'mine');
	const session = cluster.psqlSession();
	try {
		await session.query(`BEGIN; SELECT sheet.set(${fid}, 'B1', 'held')`);
		await editor.close();
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_rooms === 0, 'the room to end', 5000);
		assert.equal(await holder(fid), gateway.host, 'which could not be noted');
		await session.query('COMMIT');
	} finally {
		await session.close();
	}
});

test('a sheet of a gateway that was killed is checked once, repaired, and edited meanwhile', async () => {
	const fid = await newSheet(gateway, user);
	const editor = await edit(fid, 'kept');
	const version = await cluster.psql(`SELECT sheet.commit(${fid})`);
	await cluster.psql(
		`SET pg_sheet.allow_log_delete = on; DELETE FROM sheet.version WHERE sheet_id = ${fid}; DELETE FROM sheet.version_tile WHERE sheet_id = ${fid}`,
	);
	const before_ = await checks();
	await gateway.kill();
	await editor.waitClosed();
	await gateway.start();
	const again = await edit(fid, 'goes on');
	await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.versions(${fid})`)) === '1', 'the version');
	const told = new RegExp(`LOG: .*pg_sheet: sheet ${fid} in database "sheets", taken over from a gateway that did not release it: findings: 1, repaired: 1`);
	await waitUntil(() => told.test(log()), 'the repair in the log');
	await again.close();
	await waitUntil(async () => (await holder(fid)) === '', 'the sheet to be released');
	await leave(fid, await edit(fid, 'later'));
	assert.equal(await checks(), before_ + 1);
	assert.equal(await cluster.psql(`SELECT content FROM sheet.at(${fid}, ${version})`), 'kept');
	assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${fid}, true, false)`), 'clean');
});

test('without a database nobody waits to release a sheet', async () => {
	const fid = await newSheet(gateway, user);
	const editor = await edit(fid, 'mine');
	await cluster.stopPostgres();
	await editor.close();
	const began = Date.now();
	await gateway.stop();
	assert.ok(Date.now() - began < 5000, 'the gateway ends');
	await cluster.startPostgres();
	await gateway.start();
	assert.equal(await holder(fid), gateway.host);
});
