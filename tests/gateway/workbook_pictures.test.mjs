/*
 * workbook_pictures.test.mjs - pictures of workbooks become files and properties of sheets, and pictures again, with a real gateway and
 * calc (docs/design/workbooks.md). Workbooks are made and read by openpyxl (tests/lib/workbook_pictures.py).
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, repository, waitUntil } from '../lib/cluster.mjs';
import { post, register, request } from '../lib/client.mjs';
import { startCalc } from '../lib/calc.mjs';
import { workbookType as type } from '../lib/workbook.mjs';

const script = path.join(repository, 'tests/lib/workbook_pictures.py');
const hash = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');
/** Bytes that begin as a picture does, in three parts and in one. */
const large = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), crypto.randomBytes(600_000)]);
const small = Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), crypto.randomBytes(300)]);

let cluster;
let gateway;
let calc;
let anna;
let ben;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' } });
	[gateway] = cluster.gateways;
	calc = startCalc(cluster);
	[anna, ben] = [await register(gateway), await register(gateway)];
	fs.writeFileSync(file('large.png'), large);
	fs.writeFileSync(file('small.jpeg'), small);
	await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
});
after(async () => {
	await calc?.stop();
	await cluster?.stop();
});

const file = (name) => path.join(cluster.directory, name);
const python = (...args) => execFileSync('/usr/bin/python3', [script, ...args], { encoding: 'utf8' });
function makeWorkbook() {
	python('make', file('made.xlsx'), file('large.png'), file('small.jpeg'));
	return fs.readFileSync(file('made.xlsx'));
}
function picturesOf(bytes) {
	fs.writeFileSync(file('read.xlsx'), bytes);
	return JSON.parse(python('read', file('read.xlsx')));
}
const bearer = (user) => ({ authorization: `Bearer ${user.token}` });
const get = (address, user = anna) => request(gateway, 'GET', address, { headers: bearer(user) });
async function done(body, name = 'Book', user = anna) {
	const answer = await request(gateway, 'POST', `/v2/books/import?name=${name}`, { headers: { ...bearer(user), 'content-type': type, 'content-length': body.length }, body });
	assert.equal(answer.status, 201, answer.text);
	return answer.json;
}
async function download(address, user) {
	const answer = await get(`/v2/${address}.xlsx`, user);
	assert.equal(answer.status, 200, answer.text);
	return answer.body;
}
const filesOf = async (sheet, user) => (await get(`/v2/sheets/${sheet}/files`, user)).json.files;
const listed = (list) => Object.fromEntries(list.map(({ tab, what, count }) => [`${tab ?? ''}: ${what}`, count]));
const pathOf = (url) => new URL(url).pathname;

describe('a workbook with pictures', () => {
	let original;
	let book;
	let sheets;

	before(async () => {
		const bytes = makeWorkbook();
		original = picturesOf(bytes);
		book = await done(bytes);
		sheets = book.tabs.map(({ id }) => id);
	});

	test('tells that they are kept, and what is not', () => {
		assert.deepEqual(listed(book.kept), { 'first: pictures': 4, 'first: notes': 1, 'second: pictures': 1 });
		assert.equal(listed(book.not_carried)['first: charts'], 1);
		assert.deepEqual(Object.keys(listed(book.not_carried)).filter((what) => /picture/.test(what)), []);
	});

	test('is the same when it is exported: bytes, places and sizes', async () => {
		assert.equal(original.first.length, 4);
		assert.deepEqual(picturesOf(await download(`books/${book.id}`)), original);
		assert.deepEqual(picturesOf(await download(`sheets/${sheets[1]}`)), { second: original.second });
	});

	test('imported again, it has the same pictures', async () => {
		const again = await done(await download(`books/${book.id}`), 'again');
		assert.deepEqual(again.not_carried, []);
		assert.deepEqual(picturesOf(await download(`books/${again.id}`)), original);
	});

	test('its files have addresses, and by their names those see them who see the sheet', async () => {
		const files = await filesOf(sheets[0]);
		assert.deepEqual(files.map(({ name }) => name), ['picture 1.png', 'picture 2.jpeg', 'picture 3.png', 'picture 4.jpeg']);
		const open = await request(gateway, 'GET', pathOf(files[0].url));
		assert.deepEqual([open.status, open.headers['content-type'], hash(open.body)], [200, 'image/png', hash(large)]);
		assert.equal(open.headers['etag'], `"${hash(large)}"`);
		const byName = ({ token }) => request(gateway, 'GET', `/getchunk?fid=${sheets[0]}&chunk=${encodeURIComponent('picture 2.jpeg')}&token=${token}`);
		assert.equal(hash((await byName(anna)).body), hash(small));
		assert.notEqual(hash((await byName(ben)).body), hash(small));
		await cluster.psql(`SELECT sheet.share(${sheets[0]}, '${ben.username}', 'viewer')`);
		assert.equal(hash((await byName(ben)).body), hash(small));
		assert.deepEqual(picturesOf(await download(`books/${book.id}`, ben)), { first: original.first });
		assert.equal(await cluster.psql(`SELECT string_agg(what, '; ') FROM sheet.fsck(${sheets[0]}, true, false)`), 'clean');
	});

	test('pictures move with rows', async () => {
		const moved = await done(makeWorkbook(), 'moved');
		await cluster.psql(`SELECT sheet.insert_rows(${moved.tabs[0].id}, 1, 3)`);
		const places = ({ first }) => first.map(({ _from: from, to }) => [from?.[2], to?.[2]]);
		const wanted = places(original).map((rows) => rows.map((row) => (row === undefined ? row : row + 3)));
		assert.deepEqual(places(picturesOf(await download(`books/${moved.id}`))), wanted);
	});

	test('copies have them as long as the file is there, and not in the trash', async () => {
		const { id, tabs } = await done(makeWorkbook(), 'source');
		const { id: copy } = (await post(gateway, `/v2/books/${id}/duplicate`, { token: anna.token, name: 'copy' })).json;
		const copied = async () => picturesOf(await download(`books/${copy}`));
		assert.deepEqual(await copied(), original);
		const { files } = (await get('/v2/files')).json;
		const [gone] = files.filter(({ fid, name }) => fid === tabs[0].id && name === 'picture 2.jpeg');
		assert.equal((await request(gateway, 'DELETE', `/v2/files/${gone.id}`, { headers: bearer(anna) })).status, 200);
		const left = { ...original, first: original.first.filter(({ name }) => name !== 'Image 3') };
		assert.deepEqual(await copied(), left);
		assert.deepEqual(picturesOf(await download(`books/${id}`)), left);
		await cluster.psql(`SELECT sheet.trash_book(${id})`);
		assert.deepEqual(await copied(), { first: [], second: [] });
		await cluster.psql(`SELECT sheet.recover_book(${id})`);
		assert.deepEqual(await copied(), left);
		await cluster.psql(`SELECT sheet.trash_book(${id}); SELECT sheet.purge_book(${id})`);
		assert.deepEqual(await copied(), { first: [], second: [] });
	});
});

test('the name of a file does not open it without its key, whoever has set the property', async () => {
	const [{ id: source }] = (await done(makeWorkbook(), 'source')).tabs;
	const [{ value: [picture] }] = await cluster.rows(`SELECT value FROM sheet.properties(${source}) WHERE key = 'xlsx.picture' AND target = 'C21'`);
	const own = await cluster.psql(`SELECT sheet.create('own', as_uid => ${ben.uid})`);
	const exported = async (value) => {
		await cluster.psql(`SELECT sheet.set_property(${own}, 'A1', 'xlsx.picture', '${JSON.stringify(value).replaceAll("'", "''")}')`);
		return picturesOf(await download(`sheets/${own}`, ben)).own.length;
	};
	assert.equal(await exported([picture]), 1);
	assert.equal(await exported([{ ...picture, key: 'x'.repeat(32) }, { ...picture, file: 'other.png' }, { ...picture, key: "'; --" }]), 0);
});

describe('the quota of files', () => {
	after(() => cluster.psql('ALTER DATABASE sheets RESET pg_sheet.file_quota'));

	test('holds: pictures for which there is no room are listed, and the book is made', async () => {
		await cluster.psql(`ALTER DATABASE sheets SET pg_sheet.file_quota = '700kB'`);
		const carl = await register(gateway);
		const { id, tabs, kept, not_carried: lost } = await done(makeWorkbook(), 'Book', carl);
		assert.deepEqual(listed(kept), { 'first: pictures': 3, 'first: notes': 1, 'second: pictures': 1 });
		assert.equal(listed(lost)['first: pictures for which the account has no room'], 1);
		assert.deepEqual((await filesOf(tabs[0].id, carl)).map(({ name }) => name), ['picture 1.png', 'picture 2.jpeg', 'picture 4.jpeg']);
		const pictures = picturesOf(await download(`books/${id}`, carl));
		assert.deepEqual([pictures.first.length, pictures.second.length], [3, 1]);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.file WHERE size IS NULL`), '0');
	});
});

test('an import that fails leaves no file', async () => {
	const files = () => cluster.psql('SELECT count(*), (SELECT count(*) FROM sheet.file_part) FROM sheet.file');
	const from = await files();
	const bytes = makeWorkbook();
	// The last picture is stored as it is, behind the head of a block, which is broken.
	bytes[bytes.lastIndexOf(small.subarray(0, 20)) - 5] = 0xff;
	const answer = await request(gateway, 'POST', '/v2/books/import?name=x', { headers: { ...bearer(anna), 'content-type': type, 'content-length': bytes.length }, body: bytes });
	assert.deepEqual([answer.status, answer.json.code], [400, 'workbook_broken'], answer.text);
	assert.match(answer.json.part, /^xl\/media\//);
	assert.equal(await files(), from);
});
