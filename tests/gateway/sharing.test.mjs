/* Who may see which sheets: new ones are private, links have keys and end, and the own list has what one has opened, page by page. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, getSheet, newSheet, post, refused, register, request, shareByLink } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let ben;
let eve;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' }, postgres: { wal_writer_delay: '10s' } });
	[gateway] = cluster.gateways;
	[anna, ben, eve] = [await register(gateway), await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());

const open = (user, fid, link, at = gateway) => post(at, `/v2/sheets/${fid}/open`, { token: user.token, link });
const probe = (user, fid, link) => request(gateway, 'GET', `/sheetws?query=1&token=${user.token}&fid=${fid}${link ? `&link=${link}` : ''}`);
const cells = (user, fid) => request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1`, { headers: { authorization: `Bearer ${user.token}` } });
const list = async (user, body = {}) => (await call(gateway, '/getuser', { token: user.token, ...body }, 10)).sheets.map(({ fid }) => fid);

describe('a new sheet is private', () => {
	test('a stranger who tries ids reads and edits nothing', async () => {
		const fids = [];
		for (let i = 0; i < 10; i++) fids.push(await newSheet(gateway, anna));
		await cluster.psql(fids.map((fid) => `SELECT sheet.set(${fid}, 'A1', 'secret');`).join(''));
		for (let fid = 1; fid <= Math.max(...fids); fid++) {
			await refused(gateway, '/getsheet', { token: eve.token, fid }, 13);
			await refused(gateway, '/getallchunks', { token: eve.token, fid }, 13);
			assert.equal((await probe(eve, fid)).json.msg, 13);
			assert.equal((await cells(eve, fid)).status, 403);
			assert.equal((await open(eve, fid, '')).status, 403);
			const editor = await Editor.open(gateway, eve, fid).catch(() => null);
			if (editor) assert.equal((await editor.waitClosed()).code, 4403);
		}
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.log WHERE uid = ${eve.uid}`), '0');
		assert.deepEqual(await list(eve), []);
		assert.equal((await getSheet(gateway, anna, fids[0])).content[0], 'secret');
	});

	test('unless the gateway is told to share sheets by their id; a link ends that', async () => {
		await gateway.stop();
		await gateway.start({ 'default-link-role': 'viewer' });
		const fid = await newSheet(gateway, anna);
		assert.equal((await getSheet(gateway, ben, fid)).fid, fid);
		assert.deepEqual(await cluster.psql(`SELECT sheet.role_of(${fid}, ${ben.uid})`), 'viewer');
		await call(gateway, '/sharelink', { token: anna.token, fid, role: 'viewer' }, 12);
		await refused(gateway, '/getsheet', { token: ben.token, fid }, 13);
		await gateway.stop();
		await gateway.start({ 'default-link-role': 'none' });
	});
});

describe('a link', () => {
	test('has a key that cannot be guessed, a new one each time', async () => {
		const fid = await newSheet(gateway, anna);
		const keys = [];
		for (let i = 0; i < 4; i++) keys.push(await shareByLink(gateway, anna, fid, 'viewer'));
		assert.equal(new Set(keys).size, 4);
		for (const key of keys) assert.match(key, /^[A-Za-z0-9_-]{22}$/);
		for (const key of [...keys.slice(0, 3), '', 'x', keys[3].toLowerCase(), `${keys[3]}x`, 'x'.repeat(5000)]) {
			const answer = await open(eve, fid, key);
			assert.deepEqual([answer.status, answer.json.data], [403, 'the sheet is not shared with you'], key);
		}
		const missing = await open(eve, 999999, keys[3]);
		assert.equal(missing.status, 404);
		assert.equal((await post(gateway, `/v2/sheets/${fid}/open`, { token: eve.token })).status, 400);
		assert.equal((await post(gateway, `/v2/sheets/${fid}/open`, { token: 'x', link: keys[3] })).status, 401);
		assert.equal((await cells(eve, fid)).status, 403);
	});

	test('opens the sheet from then on, and its end closes it at once, for open sessions too', async () => {
		const fid = await newSheet(gateway, anna);
		await shareByLink(gateway, anna, fid, 'editor', ben);
		const editor = await Editor.open(gateway, ben, fid);
		editor.modify(0, 0, 'by link');
		await editor.nextModify(0, 0, 'by link');
		assert.deepEqual(await list(ben), [fid], 'it is in the own list');
		assert.equal((await cells(ben, fid)).status, 200);
		await call(gateway, '/sharelink', { token: anna.token, fid, role: null }, 12);
		assert.equal((await cells(ben, fid)).status, 403);
		assert.equal((await editor.waitClosed()).code, 4403);
		await refused(gateway, '/getsheet', { token: ben.token, fid }, 13);
		assert.deepEqual(await list(ben), []);
	});

	test('comes with the address of the WebSocket as well, and with the question where to connect', async () => {
		const fid = await newSheet(gateway, anna);
		const link = await shareByLink(gateway, anna, fid, 'editor');
		const wrong = await Editor.open(gateway, ben, fid, { extra: '&link=AAAAAAAAAAAAAAAAAAAAAA' }).catch((error) => error);
		if (wrong instanceof Editor) assert.equal((await wrong.waitClosed()).code, 4403);
		const editor = await Editor.open(gateway, ben, fid, { extra: `&link=${link}` });
		await editor.settle(1, 1);
		assert.equal((await probe(eve, fid)).json.msg, 13);
		assert.equal((await probe(eve, fid, link)).json.msg, 20);
		assert.equal((await getSheet(gateway, eve, fid)).fid, fid);
	});

	test('of a sheet in the trash opens nothing, and the owner needs none', async () => {
		const fid = await newSheet(gateway, anna);
		const link = await shareByLink(gateway, anna, fid, 'viewer');
		assert.deepEqual((await open(anna, fid, 'whatever')).json, { role: 'owner' });
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		assert.equal((await open(ben, fid, link)).status, 410);
		assert.equal((await open(ben, fid, 'whatever')).status, 403);
		assert.deepEqual((await list(ben)).includes(fid), false);
	});
});

describe('who has access', () => {
	const access = (user, fid, query = '') => request(gateway, 'GET', `/v2/sheets/${fid}/access${query}`, { headers: { authorization: `Bearer ${user.token}` } });
	const member = ({ uid, username }, role, byLink = false) => ({ uid, username, role, byLink });

	test('is seen by who has it, with roles and the role of the link, and taken back', async () => {
		const fid = await newSheet(gateway, anna);
		assert.deepEqual((await access(anna, fid)).json, { role: 'owner', owner: anna.username, link: null, members: [member(anna, 'owner')], next: null });
		assert.equal((await access(eve, fid)).status, 403);
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'viewer' }, 12);
		await shareByLink(gateway, anna, fid, 'editor', eve);
		assert.deepEqual((await access(ben, fid)).json, {
			role: 'viewer',
			owner: anna.username,
			link: 'editor',
			members: [member(anna, 'owner'), member(ben, 'viewer'), member(eve, 'editor', true)],
			next: null,
		});
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: null }, 12);
		await call(gateway, '/sharelink', { token: anna.token, fid, role: null }, 12);
		assert.deepEqual((await access(anna, fid)).json.members, [member(anna, 'owner')]);
		assert.equal((await access(ben, fid)).status, 403);
		assert.equal((await access(anna, 999999)).status, 404);
		assert.equal((await access({ token: 'x' }, fid)).status, 401);
		assert.equal((await access(anna, fid, '?after=x')).status, 400);
	});

	test('comes in pages', async () => {
		const fid = await newSheet(gateway, anna);
		await cluster.psql(
			`INSERT INTO sheet.account (name) SELECT 'member ' || n FROM generate_series(1, 450) n; SELECT count(sheet.share(${fid}, 'member ' || n, 'viewer')) FROM generate_series(1, 450) n; SELECT count(sheet.unshare(${fid}, 'member ' || n)) FROM generate_series(100, 299) n`,
		);
		const names = [];
		let pages = 0;
		for (let next = ''; next !== null; pages++) {
			const { json } = await access(anna, fid, next && `?after=${next}`);
			names.push(...json.members.map(({ username }) => username));
			next = json.next;
		}
		assert.deepEqual([names.length, new Set(names).size, pages], [251, 251, 3]);
	});
});

describe('a sheet is renamed', () => {
	const rename = (user, fid, name) => post(gateway, `/v2/sheets/${fid}/rename`, { token: user.token, name });

	test('by who may edit it, and everybody has the new name at the next look', async () => {
		const fid = await newSheet(gateway, anna);
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'viewer' }, 12);
		for (const user of [ben, eve]) assert.equal((await rename(user, fid, 'theirs')).status, 403);
		assert.deepEqual((await rename(anna, fid, 'Plan "B" 表')).json, {});
		assert.equal((await getSheet(gateway, ben, fid)).name, 'Plan "B" 表');
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'editor' }, 12);
		assert.equal((await rename(ben, fid, 'of ben')).status, 200);
		assert.equal((await getSheet(gateway, anna, fid)).name, 'of ben');
		for (const name of ['', 'a\nb', 'a\u202eb', 'n'.repeat(256)]) {
			const answer = await rename(anna, fid, name);
			assert.deepEqual([answer.status, answer.json.code], [400, 'sheet_name'], JSON.stringify(name));
		}
		assert.equal((await rename(anna, fid, 7)).status, 400);
		assert.equal((await rename({ token: 'x' }, fid, 'x')).status, 401);
		assert.equal((await rename(anna, 999999, 'x')).status, 404);
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		assert.equal((await rename(anna, fid, 'x')).status, 410);
	});
});

describe('the own list', () => {
	test('has a sheet that is open by its id when it has been opened, by a WebSocket or by getsheet', async () => {
		const [mia, noa] = [await register(gateway), await register(gateway)];
		const fid = Number(await cluster.psql(`SELECT sheet.create('by id', 10, 10, 'viewer', ${anna.uid})`));
		const listed = (user) => waitUntil(async () => (await list(user)).includes(fid), 'the sheet in the list');
		assert.deepEqual([await list(mia), await list(noa)], [[], []]);
		await getSheet(gateway, mia, fid);
		await listed(mia);
		const editor = await Editor.open(gateway, noa, fid);
		await listed(noa);
		await editor.close();
		assert.deepEqual((await call(gateway, '/getuser', { token: noa.token }, 10)).sheets.map(({ owner }) => owner), [anna.username]);
	});

	test('an opening is registered once an hour, and moves the sheet to the head', async () => {
		const max = await register(gateway);
		const [first, second] = [await newSheet(gateway, max), await newSheet(gateway, max)];
		const opened = () => cluster.psql(`SELECT opened_at FROM sheet.member WHERE sheet_id = ${first} AND uid = ${max.uid}`);
		assert.deepEqual(await list(max), [second, first]);
		const before_ = await opened();
		assert.equal(await cluster.psql(`SELECT sheet.register_opening(${first}, ${max.uid})`), 'f');
		assert.equal(await opened(), before_);
		await cluster.psql(`UPDATE sheet.member SET opened_at = opened_at - interval '61 minutes' WHERE uid = ${max.uid}`);
		await getSheet(gateway, max, first);
		await waitUntil(async () => (await opened()) > before_, 'the opening');
		assert.deepEqual(await list(max), [first, second]);
	});

	test('registering an opening does not wait for the disk, unless more is in its transaction', async () => {
		const max = await register(gateway);
		const fid = await newSheet(gateway, max);
		const flushes = async (sql) => {
			const said = await cluster.psql(`UPDATE sheet.member SET opened_at = opened_at - interval '2 hours' WHERE sheet_id = ${fid};
				SELECT pg_current_wal_insert_lsn() AS before \\gset
				${sql};
				SELECT pg_current_wal_flush_lsn() > :'before'`);
			return said === 't\nt';
		};
		// Another process may flush the record at any time.
		await waitUntil(async () => !(await flushes(`SELECT sheet.register_opening(${fid}, ${max.uid})`)), 'an opening that is not flushed');
		assert.ok(await flushes(`BEGIN; SELECT sheet.register_opening(${fid}, ${max.uid}); COMMIT`));
	});

	test('who opens waits for nobody who holds the row, the sheet or the account', async () => {
		const fid = Number(await cluster.psql(`SELECT sheet.create('held', 10, 10, 'editor', ${anna.uid})`));
		const holder = cluster.psqlSession();
		const holds = {
			'the row, which is not there yet': `SELECT sheet.share(${fid}, '${ben.username}', 'viewer')`,
			'the sheet': `SELECT 1 FROM sheet.sheet WHERE sheet_id = ${fid} FOR UPDATE`,
			'the table': 'LOCK TABLE sheet.member IN SHARE MODE',
		};
		for (const [what, sql] of Object.entries(holds)) {
			await holder.query(`BEGIN; ${sql}`);
			assert.equal(await cluster.psql(`SELECT sheet.register_opening(${fid}, ${ben.uid})`, { timeoutMs: 5000 }), '', what);
			assert.equal((await getSheet(gateway, ben, fid)).fid, fid, what);
			const editor = await Editor.open(gateway, ben, fid);
			await editor.settle(0, 0);
			await editor.close();
			await waitUntil(async () => (await gateway.metrics())['pg_sheet_database_queue{class="writes"}'] === 0, 'the openings to be tried');
			await holder.query('ROLLBACK');
		}
		assert.equal(await cluster.psql(`SELECT sheet.register_opening(${fid}, ${ben.uid})`), 't');
		await cluster.psql(`UPDATE sheet.member SET opened_at = opened_at - interval '2 hours' WHERE sheet_id = ${fid}`);
		await holder.query(`BEGIN; SELECT 1 FROM sheet.member WHERE sheet_id = ${fid} FOR UPDATE`);
		assert.equal(await cluster.psql(`SELECT sheet.register_opening(${fid}, ${ben.uid})`, { timeoutMs: 5000 }), '', 'the row');
		await holder.query(`ROLLBACK; BEGIN; SELECT 1 FROM sheet.account WHERE uid = ${ben.uid} FOR UPDATE`);
		assert.equal(await cluster.psql(`SELECT sheet.register_opening(${fid}, ${ben.uid})`, { timeoutMs: 5000 }), 't', 'the account does not matter');
		await holder.close();
	});

	test('comes in pages, in the order of the last openings', async () => {
		const max = await register(gateway);
		const fids = (await cluster.psql(`SELECT sheet.create('sheet ' || n, 10, 10, as_uid => ${max.uid}) FROM generate_series(1, 205) n`)).split('\n').map(Number);
		await cluster.psql(`UPDATE sheet.member SET opened_at = now() - interval '2 days' - sheet_id % 3 * interval '1 hour' WHERE uid = ${max.uid}`);
		const order = fids.slice().sort((a, b) => (a % 3) - (b % 3) || b - a);
		const { info } = await call(gateway, '/login', { username: max.username, password: max.password }, 4);
		assert.deepEqual(info.sheets.map(({ fid }) => fid), order.slice(0, 200));
		const page = (body) => call(gateway, '/getuser', { token: max.token, ...body }, 10);
		const rest = await page({ limit: 200, after: info.next });
		assert.deepEqual([rest.sheets.map(({ fid }) => fid), rest.next], [order.slice(200), null]);
		const found = [];
		for (let after_ = null, pages = 0; ; pages++) {
			const { sheets, next } = await page({ limit: 41, after: after_ });
			found.push(...sheets.map(({ fid }) => fid));
			if (next === null) {
				assert.equal(pages, 5, 'the last page, which happens to be full, says that there may be more');
				break;
			}
			after_ = next;
		}
		assert.deepEqual(found, order);
		assert.deepEqual(await list(max), order, 'a client that knows nothing of pages gets up to 1000');
		for (const body of [{ limit: 0 }, { limit: 1001 }, { limit: '5' }, { after: 5 }, { after: 'x' }, { after: '5-' }])
			assert.equal((await post(gateway, '/getuser', { token: max.token, ...body })).status, 400, JSON.stringify(body));
	});

	test('a page costs no more for sheets that can be seen no more: they take their place on it', async () => {
		const [mia, noa] = [await register(gateway), await register(gateway)];
		const fids = (await cluster.psql(`SELECT sheet.create('sheet ' || n, 10, 10, as_uid => ${mia.uid}) FROM generate_series(1, 6) n`)).split('\n').map(Number);
		await cluster.psql(fids.map((fid) => `SELECT sheet.share(${fid}, '${noa.username}', 'viewer');`).join(''));
		await cluster.psql(`SELECT sheet.trash(${fids[5]}), sheet.trash(${fids[4]}), sheet.trash(${fids[1]}), sheet.unshare(${fids[0]}, '${noa.username}')`);
		const first = await call(gateway, '/getuser', { token: noa.token, limit: 2 }, 10);
		assert.deepEqual(first.sheets, []);
		const second = await call(gateway, '/getuser', { token: noa.token, limit: 2, after: first.next }, 10);
		assert.deepEqual(second.sheets.map(({ fid }) => fid), [fids[3], fids[2]]);
		assert.deepEqual((await call(gateway, '/getuser', { token: noa.token, limit: 2, after: second.next }, 10)), {
			uid: noa.uid,
			username: noa.username,
			sheets: [],
			next: null,
		});
		assert.deepEqual(await list(mia), fids.slice().reverse(), 'those in the trash are shown to their owner');
	});
});

describe('a refusal that a person can cause', () => {
	test('has a code', async () => {
		const fid = await newSheet(gateway, anna);
		const share = (username) => post(gateway, '/sharesheet', { token: anna.token, fid, username, role: 'editor' });
		const account = (username, password = 'password') => post(gateway, '/register', { username, password, email: '' });
		const coded = async (answer) => [(await answer).status, (await answer).json.code];
		assert.deepEqual(await coded(share('nobody of this name')), [404, 'no_account']);
		assert.deepEqual(await coded(share(anna.username)), [400, 'owner']);
		assert.deepEqual(await coded(account('two\nlines')), [400, 'account']);
		assert.deepEqual(await coded(account('n'.repeat(101))), [400, 'account']);
		assert.deepEqual(await coded(account('long', 'p'.repeat(1025))), [400, 'password']);
		assert.deepEqual(await coded(post(gateway, '/newsheet', { token: anna.token, name: 'n'.repeat(256) })), [400, 'sheet_name']);
		assert.deepEqual(await coded(post(gateway, '/newsheet', { token: anna.token, name: 7 })), [400, undefined], 'a malformed request has none');
	});
});
