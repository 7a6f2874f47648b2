/*
 * Books: sets of sheets. Whoever may see, order, share and copy them by HTTP, and that what is done to a book holds for its tabs at
 * once, also for people who have one open.
 */
import { after, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Cluster } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let eve;
let book;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' }, postgres: { log_statement: 'all' } });
	[gateway] = cluster.gateways;
	[anna, ben, eve] = [await register(gateway), await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	book = (await done(201, 'POST', '/v2/books', { name: 'Accounts' })).id;
});

/** A request, which must have this status; returns the JSON. */
async function done(status, method, path, body, { user = anna } = {}) {
	const text = body === undefined ? undefined : JSON.stringify(body);
	const answer = await request(gateway, method, path, {
		headers: {
			authorization: `Bearer ${user.token}`,
			...(text !== undefined ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}),
		},
		body: text,
	});
	assert.equal(answer.status, status, `${method} ${path} ${text}: ${answer.text}`);
	return answer.json;
}

const add = async (name, more = {}, options) => (await done(201, 'POST', `/v2/books/${book}/tabs`, { name, ...more }, options)).id;
const get = (options, id = book) => done(200, 'GET', `/v2/books/${id}`, undefined, options);
const names = async (options, id) => (await get(options, id)).tabs.map(({ name }) => name);
const share = (user, role) => done(204, 'PUT', `/v2/books/${book}/members/${user.username}`, { role });
const cell = (status, sheet, options) => done(status, 'GET', `/v2/sheets/${sheet}/cells?range=A1`, undefined, options);

describe('tabs', () => {
	test('GET of a book is one statement', async () => {
		for (let i = 1; i <= 20; i++) await add(`Tab ${i}`);
		await get();
		const { log } = cluster.postgres;
		const from = fs.statSync(log).size;
		assert.deepEqual(await names(), Array.from({ length: 20 }, (_, i) => `Tab ${i + 1}`));
		const statements = fs.readFileSync(log).subarray(from).toString().split('\n').filter((line) => /LOG: {2}(statement|execute)/.test(line) && /sheet\.(book|tab|info|member)/.test(line));
		assert.equal(statements.length, 1, statements.join('\n'));
	});

	test('are made, ordered, coloured and hidden', async () => {
		const march = await add('March', { rows: 5, cols: 7 });
		const january = await add('January', { before: march });
		const { tabs, ...rest } = await get();
		assert.deepEqual({ ...rest, createdAt: 0 }, { id: book, name: 'Accounts', owner: anna.username, role: 'owner', trashed: false, createdAt: 0 });
		assert.ok(Math.abs(Date.parse(rest.createdAt) - Date.now()) < 600000, rest.createdAt);
		assert.deepEqual(tabs, [
			{ id: january, name: 'January', place: 1, colour: null, hidden: false, role: 'owner', trashed: false },
			{ id: march, name: 'March', place: 2, colour: null, hidden: false, role: 'owner', trashed: false },
		]);
		const { rows, cols, book: of } = await done(200, 'GET', `/v2/sheets/${march}`);
		assert.deepEqual([rows, cols, of], [5, 7, book]);
		const tab = (status, id, body) => done(status, 'PATCH', `/v2/books/${book}/tabs/${id}`, body);
		await tab(204, january, { before: null });
		assert.deepEqual(await names(), ['March', 'January']);
		await tab(204, january, { before: march, colour: '#ABCDEF' });
		await tab(204, march, { hidden: true });
		assert.deepEqual((await get()).tabs.map(({ colour, hidden }) => [colour, hidden]), [['#abcdef', false], [null, true]]);
		assert.equal((await tab(409, january, { hidden: true })).code, 'state');
		await tab(204, january, { colour: null });
		await tab(204, march, { hidden: false });
		assert.deepEqual((await get()).tabs.map(({ colour, hidden }) => [colour, hidden]), [[null, false], [null, false]]);
		for (const body of [{}, { before: 'x' }, { before: 1.5 }, { colour: 1 }, { colour: 'red' }, { hidden: 1 }, { name: 'x' }]) await tab(400, march, body);
		await tab(404, march, { before: await newSheet(gateway, anna) });
		await tab(404, await newSheet(gateway, anna), { hidden: true });
		await tab(404, 'x', { hidden: true });
		await tab(404, 999999, { hidden: true });
	});

	test('have names of their own, whatever the case', async () => {
		const one = await add('One');
		await add('Two');
		assert.equal((await done(409, 'POST', `/v2/books/${book}/tabs`, { name: 'TWO' })).code, 'name_taken');
		assert.equal((await done(409, 'PATCH', `/v2/sheets/${one}`, { name: 'two' })).code, 'name_taken');
		await done(200, 'PATCH', `/v2/sheets/${one}`, { name: 'ONE' });
		assert.deepEqual(await names(), ['ONE', 'Two']);
		// of several requests at a time, one gets the name
		const answers = await Promise.all(Array.from({ length: 4 }, (_, i) => {
			const body = JSON.stringify({ name: i % 2 ? 'three' : 'THREE' });
			return request(gateway, 'POST', `/v2/books/${book}/tabs`, {
				headers: { authorization: `Bearer ${anna.token}`, 'content-type': 'application/json', 'content-length': body.length }, body });
		}));
		assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409]);
		// one in the trash leaves its name, and needs another one's place to come back
		await done(204, 'DELETE', `/v2/sheets/${one}`);
		const again = await add('One');
		assert.equal((await done(409, 'POST', `/v2/sheets/${one}/recover`, {})).code, 'name_taken');
		await done(200, 'PATCH', `/v2/sheets/${again}`, { name: 'Another one' });
		await done(204, 'POST', `/v2/sheets/${one}/recover`, {});
	});

	test('are sheets that come and go', async () => {
		const fid = await newSheet(gateway, anna);
		const { name } = await done(200, 'GET', `/v2/sheets/${fid}`);
		const first = await add('First');
		await done(201, 'POST', `/v2/books/${book}/tabs`, { sheet: fid, before: first });
		assert.deepEqual(await names(), [name, 'First']);
		const listed = (await done(200, 'GET', '/v2/sheets')).sheets.find(({ id }) => id === fid);
		assert.equal(listed.book, book);
		const second = await done(201, 'POST', '/v2/books', { name: 'Second' });
		await done(201, 'POST', `/v2/books/${second.id}/tabs`, { sheet: fid });
		assert.deepEqual([await names(), await names({}, second.id)], [['First'], [name]]);
		await done(204, 'DELETE', `/v2/books/${second.id}/tabs/${fid}`);
		assert.equal((await done(200, 'GET', `/v2/sheets/${fid}`)).book, null);
		assert.deepEqual(await names({}, second.id), []);
		// only those of the book's owner
		const bens = await newSheet(gateway, ben);
		await share(ben, 'editor');
		assert.equal((await done(409, 'POST', `/v2/books/${book}/tabs`, { sheet: bens }, { user: ben })).code, 'state');
		await done(403, 'POST', `/v2/books/${book}/tabs`, { sheet: bens });
		await done(404, 'POST', `/v2/books/${book}/tabs`, { sheet: 999999 });
		for (const body of [{}, { name: 1 }, { name: '' }, { sheet: fid, name: 'x' }, { sheet: 'x' }, { sheet: fid, copy: fid }, { name: 'x', rows: 0 }, { name: 'x', copy: fid, rows: 5 }])
			await done(400, 'POST', `/v2/books/${book}/tabs`, body);
	});

	test('are copied, alone and with their book', async () => {
		const first = await add('First');
		await done(200, 'PUT', `/v2/sheets/${first}/cells?range=A1:B1`, { values: [[2, '=A1*2']] });
		const copy = await add('Copy', { copy: first });
		await add('Last');
		assert.deepEqual(await names(), ['First', 'Copy', 'Last']);
		assert.deepEqual((await done(200, 'GET', `/v2/sheets/${copy}/cells?range=A1:B1&formulas=true`)).cells.map(([, , content]) => content), ['2', '=A1*2']);
		await share(ben, 'viewer');
		await done(204, 'DELETE', `/v2/sheets/${first}/members/${ben.username}`);
		const made = await done(201, 'POST', `/v2/books/${book}/duplicate`, { name: 'Of ben' }, { user: ben });
		const { owner, role, name } = await get({ user: ben }, made.id);
		assert.deepEqual([owner, role, name], [ben.username, 'owner', 'Of ben']);
		assert.deepEqual(await names({ user: ben }, made.id), ['Copy', 'Last'], 'what ben sees');
		await done(403, 'GET', `/v2/books/${made.id}`);
		await done(403, 'POST', `/v2/books/${book}/duplicate`, { name: 'x' }, { user: eve });
	});
});

describe('members', () => {
	test('have their role in each tab at once, and lose it at once', async () => {
		const tabs = [await add('One'), await add('Two')];
		for (const tab of tabs) await cell(403, tab, { user: ben });
		await done(403, 'GET', `/v2/books/${book}`, undefined, { user: ben });
		await share(ben, 'viewer');
		for (const tab of tabs) await cell(200, tab, { user: ben });
		assert.deepEqual(await names({ user: ben }), ['One', 'Two']);
		assert.equal((await done(403, 'PUT', `/v2/sheets/${tabs[0]}/cells?range=A1`, { values: [[1]] }, { user: ben })).code, 'role');
		assert.equal((await done(403, 'PATCH', `/v2/books/${book}`, { name: 'x' }, { user: ben })).code, 'role');
		await share(ben, 'editor');
		await done(200, 'PUT', `/v2/sheets/${tabs[0]}/cells?range=A1`, { values: [[1]] }, { user: ben });
		await done(204, 'PATCH', `/v2/books/${book}`, { name: 'Of both' }, { user: ben });
		const three = await add('Three', {}, { user: ben });
		assert.equal((await get()).tabs.at(-1).role, 'owner');
		await done(403, 'DELETE', `/v2/books/${book}`, undefined, { user: ben });
		await done(403, 'PUT', `/v2/books/${book}/members/${eve.username}`, { role: 'viewer' }, { user: ben });
		const person = await RawClient.open(gateway, ben, three);
		await done(204, 'DELETE', `/v2/books/${book}/members/${ben.username}`);
		for (const tab of [...tabs, three]) await cell(403, tab, { user: ben });
		assert.equal((await person.waitClosed()).code, 4403);
		await done(403, 'GET', `/v2/books/${book}`, undefined, { user: ben });
	});

	test('are listed in pages, and may have other roles in single tabs', async () => {
		const [one, two] = [await add('One'), await add('Two')];
		await done(204, 'PUT', `/v2/sheets/${two}/members/${ben.username}`, { role: 'viewer' });
		await share(ben, 'editor');
		await share(eve, 'viewer');
		assert.deepEqual((await get({ user: ben })).tabs.map(({ role }) => role), ['editor', 'viewer']);
		const page = (query) => done(200, 'GET', `/v2/books/${book}/members${query}`, undefined, { user: eve });
		const all = await page('');
		assert.deepEqual(all, { members: [[anna, 'owner'], [ben, 'editor'], [eve, 'viewer']].map(([user, role]) => ({ uid: user.uid, username: user.username, role })), next: null });
		const first = await page('?limit=2');
		assert.deepEqual([first.members, (await page(`?limit=2&after=${first.next}`)).members], [all.members.slice(0, 2), all.members.slice(2)]);
		await done(204, 'DELETE', `/v2/books/${book}/members/${ben.username}`);
		await cell(403, one, { user: ben });
		await cell(200, two, { user: ben });
		const alone = await get({ user: ben });
		assert.deepEqual([alone.name, alone.role, alone.tabs.map(({ name }) => name)], [null, null, ['Two']], 'a tab that is shared alone');
		await done(403, 'GET', `/v2/books/${book}/members`, undefined, { user: ben });
		assert.equal((await done(404, 'PUT', `/v2/books/${book}/members/nobody`, { role: 'viewer' })).code, 'no_account');
		assert.equal((await done(409, 'PUT', `/v2/books/${book}/members/${anna.username}`, { role: 'viewer' })).code, 'owner');
		await done(400, 'PUT', `/v2/books/${book}/members/${ben.username}`, { role: 'owner' });
		await done(400, 'PUT', `/v2/books/${book}/members/${ben.username}`, {});
	});
});

describe('a book', () => {
	test('is listed in pages, newest first', async () => {
		const user = await register(gateway);
		const made = [];
		for (let i = 0; i < 5; i++) made.push((await done(201, 'POST', '/v2/books', { name: `Book ${i}` }, { user })).id);
		const page = (query = '') => done(200, 'GET', `/v2/books${query}`, undefined, { user });
		const all = await page();
		assert.deepEqual([all.books.map(({ id }) => id), all.next], [made.toReversed(), null]);
		const [first] = all.books;
		assert.deepEqual({ ...first, createdAt: 0 }, { id: made[4], name: 'Book 4', owner: user.username, role: 'owner', trashed: false, createdAt: 0 });
		const two = await page('?limit=2');
		const more = await page(`?limit=3&after=${two.next}`);
		assert.deepEqual([...two.books, ...more.books], all.books);
		assert.deepEqual(await page(`?after=${more.next}`), { books: [], next: null });
		for (const query of ['?limit=0', '?limit=1001', '?after=x']) await done(400, 'GET', `/v2/books${query}`, undefined, { user });
		for (const body of [{}, { name: 5 }, { name: '' }, { name: 'x'.repeat(256) }]) await done(400, 'POST', '/v2/books', body, { user });
		await done(404, 'GET', '/v2/books/999999');
		await done(404, 'PATCH', '/v2/books/999999', { name: 'x' });
	});

	test('goes to the trash and comes back with its tabs, and is purged with them', async () => {
		const [one, two] = [await add('One'), await add('Two')];
		await share(ben, 'viewer');
		const person = await RawClient.open(gateway, ben, one);
		await done(204, 'DELETE', `/v2/sheets/${two}`);
		assert.equal((await done(409, 'DELETE', `/v2/books/${book}?purge=true`)).code, 'not_in_trash');
		await done(204, 'DELETE', `/v2/books/${book}`);
		await cell(410, one);
		await person.waitClosed();
		await done(410, 'DELETE', `/v2/books/${book}`);
		await done(410, 'POST', `/v2/books/${book}/tabs`, { name: 'Three' });
		assert.match((await done(409, 'POST', `/v2/sheets/${one}/recover`)).data, /the book of sheet .* is in the trash/);
		await done(403, 'GET', `/v2/books/${book}`, undefined, { user: ben });
		assert.deepEqual((await done(200, 'GET', '/v2/books', undefined, { user: ben })).books.filter(({ id }) => id === book), []);
		assert.deepEqual((await get()).tabs.map(({ name, trashed }) => [name, trashed]), [['One', true], ['Two', true]]);
		await done(204, 'POST', `/v2/books/${book}/recover`);
		await cell(200, one, { user: ben });
		assert.deepEqual((await get()).tabs.map(({ name, trashed }) => [name, trashed]), [['One', false], ['Two', true]], 'what was there before stays there');
		assert.equal((await done(409, 'POST', `/v2/books/${book}/recover`)).code, 'not_in_trash');
		await done(204, 'DELETE', `/v2/books/${book}`);
		await done(403, 'DELETE', `/v2/books/${book}?purge=true`, undefined, { user: ben });
		await done(204, 'DELETE', `/v2/books/${book}?purge=true`);
		await done(404, 'GET', `/v2/books/${book}`);
		for (const tab of [one, two]) await done(404, 'GET', `/v2/sheets/${tab}`);
		await done(400, 'DELETE', `/v2/books/${book}?purge=yes`);
	});

	test('with 256 tabs takes no more, and says so', async () => {
		await cluster.psql(`SELECT count(sheet.add_tab(${book}, 'Tab ' || n, as_uid => ${anna.uid})) FROM generate_series(1, 256) n`);
		const other = await newSheet(gateway, anna);
		const [first] = (await get()).tabs;
		for (const body of [{ name: 'one more' }, { name: 'a copy', copy: first.id }, { sheet: other }])
			assert.equal((await done(409, 'POST', `/v2/books/${book}/tabs`, body)).code, 'book_full');
	});

	test('open pages of its tabs hear of each change of it, and of a sheet that enters or leaves it; others and earlier versions do not', async () => {
		const [one, two, three] = [await add('One'), await add('Two'), await add('Three')];
		const other = await newSheet(gateway, anna);
		await share(ben, 'viewer');
		const open = (user, sheet, options) => RawClient.open(gateway, user, sheet, { v: 5, ...options });
		const [viewer, binary, early, outside] = [await open(ben, one), await open(anna, two, { encoding: 'binary' }), await open(anna, one, { v: 4 }), await open(anna, other)];
		assert.equal(viewer.hello.v, 5);
		const heard = async (...sessions) => {
			for (const session of sessions) assert.deepEqual(await session.next('book'), { t: 'book' });
		};
		const change = (tab, body) => done(204, 'PATCH', `/v2/books/${book}/tabs/${tab}`, body);
		const changes = [
			() => change(three, { colour: '#00ff00' }),
			() => change(three, { hidden: true }),
			() => change(three, { before: one }),
			() => done(200, 'PATCH', `/v2/sheets/${three}`, { name: 'Third' }),
			() => done(204, 'PATCH', `/v2/books/${book}`, { name: 'Renamed' }),
			() => add('Four'),
			() => done(201, 'POST', `/v2/books/${book}/tabs`, { name: 'Copy', copy: three }),
			() => done(204, 'DELETE', `/v2/sheets/${three}`),
			() => done(204, 'POST', `/v2/sheets/${three}/recover`),
			() => share(eve, 'viewer'),
			() => cluster.psql(`SELECT sheet.change_tab(${three}, '#0000ff', false)`),
		];
		for (const run of changes) {
			await run();
			await heard(viewer, binary);
			viewer.position = viewer.messages.length;
			binary.position = binary.messages.length;
		}
		assert.deepEqual([early, outside].flatMap(({ messages }) => messages.filter(({ t }) => t === 'book')), []);
		await done(201, 'POST', `/v2/books/${book}/tabs`, { sheet: other });
		await heard(outside, viewer);
		await done(204, 'DELETE', `/v2/books/${book}/tabs/${other}`);
		await heard(outside, viewer);
	});

	test('is used by programs as the scopes of their tokens permit', async () => {
		const token = async (...scopes) => ({ token: (await done(201, 'POST', '/v2/tokens', { label: 'x', scopes })).token });
		const [read, edit, admin] = [await token('read'), await token('edit'), await token('admin')];
		const tab = await add('One');
		await get({ user: read });
		await done(200, 'GET', '/v2/books', undefined, { user: read });
		for (const user of [read, edit]) {
			assert.equal((await done(403, 'POST', '/v2/books', { name: 'x' }, { user })).code, 'scope');
			await done(403, 'POST', `/v2/books/${book}/tabs`, { name: 'x' }, { user });
			await done(403, 'POST', `/v2/books/${book}/duplicate`, { name: 'x' }, { user });
			await done(403, 'PUT', `/v2/books/${book}/members/${ben.username}`, { role: 'viewer' }, { user });
			await done(403, 'DELETE', `/v2/books/${book}`, undefined, { user });
		}
		await done(403, 'PATCH', `/v2/books/${book}`, { name: 'x' }, { user: read });
		await done(204, 'PATCH', `/v2/books/${book}`, { name: 'x' }, { user: edit });
		await done(204, 'PATCH', `/v2/books/${book}/tabs/${tab}`, { colour: '#000000' }, { user: edit });
		await done(201, 'POST', `/v2/books/${book}/tabs`, { name: 'Two' }, { user: admin });
		await done(401, 'GET', `/v2/books/${book}`, undefined, { user: { token: 'x' } });
	});
});
