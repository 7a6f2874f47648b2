/* published_workbook.test.mjs - /s/KEY.xlsx: a published view as a workbook, as openpyxl reads it, and what it never has. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startCalc, waitValues } from '../lib/calc.mjs';
import { newSheet, post, register, request } from '../lib/client.mjs';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { parseWorkbook, workbookType } from '../lib/workbook.mjs';

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'published-workbook-'));
let cluster;
let gateway;
let calc;
let anna;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' }, postgres: { fsync: 'off' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
});
after(async () => {
	await calc?.stop();
	await cluster?.stop();
	fs.rmSync(directory, { recursive: true });
});

const get = (address, headers = {}, method = 'GET') => request(gateway, method, address, { headers });
const create = async (fid, values = {}) => (await post(gateway, `/v2/sheets/${fid}/links`, { token: anna.token, ...values })).json;
const set = (fid, cells) => cluster.psql(Object.entries(cells).map(([ref, content]) => `SELECT sheet.set(${fid}, '${ref}', '${content}')`).join(';'));
const sheet = async (cells, name) => {
	const fid = await newSheet(gateway, anna, { name });
	await set(fid, cells);
	return fid;
};
/** The contents of the only tab, by their names. */
const cellsOf = (bytes) => {
	const tabs = parseWorkbook(path.join(directory, 'view.xlsx'), bytes);
	assert.equal(tabs.length, 1);
	return [tabs[0].name, Object.fromEntries(Object.entries(tabs[0].cells).map(([name, { value }]) => [name, value]))];
};

test('without a program that converts, the answer says so', async () => {
	const { key } = await create(await sheet({ A1: 'x' }));
	const { status, json } = await get(`/s/${key}.xlsx`);
	assert.deepEqual([status, json.code], [503, 'workbook_unserved']);
	calc = startCalc(cluster);
	await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
});

test('a sheet, with its formulas, for everybody who has the address, until it changes', async () => {
	const fid = await sheet({ A1: 'Sum', B1: '=B2*2', B2: '21' }, 'Prices & más');
	const { key } = await create(fid);
	await waitValues(cluster, fid, { B1: '42' });
	const { status, headers, body } = await get(`/s/${key}.xlsx`);
	assert.deepEqual([status, headers['content-type']], [200, workbookType]);
	assert.equal(headers['content-disposition'], "attachment; filename*=UTF-8''Prices%20%26%20m%C3%A1s.xlsx");
	assert.deepEqual([headers['access-control-allow-origin'], headers['x-robots-tag']], ['*', 'noindex']);
	assert.deepEqual(cellsOf(body), ['Prices & más', { A1: 'Sum', B1: '=B2*2', B2: '21' }]);
	// Its values may change without an edit of the sheet.
	assert.equal(headers.etag, undefined);
	assert.ok((await get(`/s/${key}`)).text.includes(`href="/s/${key}.xlsx"`));
	assert.equal((await request(gateway, 'POST', `/s/${key}.xlsx`)).status, 405);
});

test('a sheet without formulas has an ETag, which answers without the workbook have not', async () => {
	const fid = await sheet({ A1: 'x' });
	const { key } = await create(fid);
	const { status, headers } = await get(`/s/${key}.xlsx`);
	assert.equal(status, 200);
	assert.match(headers.etag, /^W\/"/);
	const known = { 'if-none-match': headers.etag };
	const again = await get(`/s/${key}.xlsx`, known);
	assert.deepEqual([again.status, again.headers.etag, again.headers['cache-control']], [304, headers.etag, headers['cache-control']]);
	const head = await get(`/s/${key}.xlsx`, {}, 'HEAD');
	assert.deepEqual([head.status, head.headers.etag, head.body.length], [200, headers.etag, 0]);
	await set(fid, { A16777216: 'too far' });
	const refused = await get(`/s/${key}.xlsx`, known);
	assert.deepEqual([refused.status, refused.headers.etag], [400, undefined]);
});

test('a link that ends while the workbook is made is not found', async () => {
	const { key, link } = await create(await sheet({ A1: 'x' }));
	process.kill(calc.pid, 'SIGSTOP');
	const asked = get(`/s/${key}.xlsx`);
	await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.workbook_job')) === '1', 'the job');
	await cluster.psql(`SELECT sheet.revoke_link(${link})`);
	process.kill(calc.pid, 'SIGCONT');
	assert.equal((await asked).status, 404);
});

test('a rectangle: nothing outside, wherever its cells move, and no formula', async () => {
	const fid = await sheet({ A1: 'above', B2: 'in 1', C2: '=A1', B3: '2024-05-01', D2: 'right', B4: 'below', A2: 'left' }, 'Payroll');
	const note = JSON.stringify(['comment', {}, ['secret']]);
	await cluster.psql(`SELECT sheet.set_property(${fid}, 'A1', 'xlsx.note', '${note}'), sheet.set_property(${fid}, 'B2', 'xlsx.note', '${note}')`);
	const { key } = await create(fid, { ref: 'B2:C3' });
	const wanted = ['Cells', { A1: 'in 1', A2: '2024-05-01 00:00:00' }];
	const answer = await get(`/s/${key}.xlsx`);
	assert.equal(answer.headers['content-disposition'], "attachment; filename*=UTF-8''Cells.xlsx");
	assert.deepEqual(cellsOf(answer.body), wanted);
	const parts = execFileSync('unzip', ['-p', path.join(directory, 'view.xlsx')]).toString();
	assert.ok(!/secret|Payroll|above|below/.test(parts), parts);
	await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 3); SELECT sheet.insert_columns(${fid}, 0, 1)`);
	assert.deepEqual(cellsOf((await get(`/s/${key}.xlsx`)).body), wanted);
});

test('whatever is no published view has one answer', async () => {
	const fid = await sheet({ A1: 'x' });
	const [revoked, locked, editor] = [await create(fid), await create(fid, { password: 'a password' }), await create(fid, { role: 'editor' })];
	await cluster.psql(`SELECT sheet.revoke_link(${revoked.link})`);
	const keys = [revoked.key, locked.key, editor.key, 'A'.repeat(22), 'short', `${revoked.key}.csv`, ''];
	const answers = await Promise.all(keys.map((key) => get(`/s/${key}.xlsx`)));
	const { 'x-request-id': id, date, ...headers } = answers[3].headers;
	for (const answer of answers) {
		const { 'x-request-id': own, date: at, ...others } = answer.headers;
		assert.deepEqual([answer.status, others, answer.text.replace(own, '')], [404, headers, answers[3].text.replace(id, '')]);
	}
	assert.ok(date);
});
