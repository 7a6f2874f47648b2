/* Share links: guests without an account, what they may do, and the end of a link by its time, its owner, or its sheet. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, repository, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, multipart, newSheet, post, register, request, shareByLink, signToken, tokenClaims, tokenParts } from '../lib/client.mjs';
import { memberRows } from '../lib/members.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;

before(async () => {
	cluster = await Cluster.start({
		gatewayFlags: { 'default-link-role': 'none', 'attempts-per-account': 4 },
		postgres: { log_min_duration_statement: 0, log_parameter_max_length: -1, log_parameter_max_length_on_error: -1 },
	});
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());

const guestBase = 2 ** 52;
const bearer = (user) => ({ headers: { authorization: `Bearer ${user.token}` } });
const create = async (fid, values = {}, user = anna) => {
	const answer = await post(gateway, `/v2/sheets/${fid}/links`, { token: user.token, ...values });
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
};
const change = (fid, link, values, user = anna) => {
	const body = JSON.stringify({ token: user.token, ...values });
	return request(gateway, 'PATCH', `/v2/sheets/${fid}/links/${link}`, { headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }, body });
};
const revoke = (fid, link, user = anna) => request(gateway, 'DELETE', `/v2/sheets/${fid}/links/${link}`, bearer(user));
const list = async (fid, user = anna) => (await request(gateway, 'GET', `/v2/sheets/${fid}/links`, bearer(user))).json.links;
const knock = (key, name = 'Zoe', password) => post(gateway, '/v2/link', { link: key, name, password });
const enter = async (key, name, password) => {
	const answer = await knock(key, name, password);
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
};
const cells = (user, fid) => request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1`, bearer(user));
const set = (row, col, content) => ({ row, col, content });

describe('a guest', () => {
	for (const encoding of ['json', 'binary'])
		test(`reads and edits by a link, and is not taken for an account: ${encoding}`, async () => {
			const fid = await newSheet(gateway, anna);
			const { link, key, url } = await create(fid, { role: 'editor', label: 'Field team' });
			assert.equal(url, `/?id=${fid}#link=${key}`);
			const zoe = await enter(key, ' Zoe'.trim());
			const { token, expires, ...rest } = zoe;
			assert.deepEqual(rest, { fid, role: 'editor', uid: guestBase + link, username: 'Zoe (guest)' });
			assert.equal(Date.parse(expires) / 1000, tokenClaims(token).exp);
			assert.deepEqual([tokenClaims(token).uid, tokenClaims(token).name], [-link, 'Zoe (guest)']);
			const owner = await RawClient.open(gateway, anna, fid, { encoding });
			const guest = await RawClient.open(gateway, zoe, fid, { encoding, client: 77 });
			assert.deepEqual([guest.hello.uid, guest.hello.role], [guestBase + link, 'editor']);
			const peer = await owner.next('peer');
			assert.deepEqual([peer.uid, peer.name], [guestBase + link, 'Zoe (guest)']);
			guest.send({ t: 'lock', row: 1, col: 1 });
			assert.equal((await owner.next('lock')).uid, guestBase + link);
			guest.op(1, [set(0, 0, 'of a guest')]);
			const { edits } = await owner.next('edits', (message) => message.edits.length > 0);
			assert.deepEqual(edits, [{ uid: guestBase + link, row: 0, col: 0, content: 'of a guest' }]);
			owner.send({ t: 'who', uid: guestBase + link });
			assert.deepEqual(await owner.next('user'), { t: 'user', uid: guestBase + link, name: 'Field team (link)' });
			assert.equal((await cells(zoe, fid)).status, 200);
			const log = (await request(gateway, 'GET', `/v2/sheets/${fid}/log?uid=${guestBase + link}`, bearer(zoe))).json.edits;
			assert.deepEqual(log.map(({ new: content, uid, username }) => [content, uid, username]), [['of a guest', guestBase + link, 'Field team (link)']]);
			assert.equal(await cluster.psql(`SELECT uid FROM sheet.log WHERE sheet_id = ${fid} AND new = 'of a guest'`), String(-link));
			// another one resumes, and knows what was acknowledged
			guest.terminate();
			const again = await RawClient.open(gateway, zoe, fid, { encoding, client: 77 });
			assert.equal(again.hello.landed, 1);
			again.terminate();
			owner.terminate();
		});

	test('reads and edits by protocol v1, under the label of the link', async () => {
		const fid = await newSheet(gateway, anna);
		const { link, key } = await create(fid, { role: 'editor', label: 'Old page' });
		const zoe = await enter(key);
		const owner = await Editor.open(gateway, anna, fid);
		const guest = await Editor.open(gateway, zoe, fid);
		guest.modify(0, 0, 'of a guest');
		assert.equal((await owner.nextModify(0, 0, 'of a guest')).body.username, 'Old page (link)');
		assert.equal((await change(fid, link, { label: 'New page' })).status, 200);
		guest.modify(0, 2, 'after that');
		assert.equal((await owner.nextModify(0, 2, 'after that')).body.username, 'New page (link)');
		await cluster.psql(`SELECT sheet.change_link(${link}, label => 'Page of SQL')`);
		let n = 3; // the change comes by an event
		await waitUntil(async () => {
			guest.modify(0, n, 'again');
			return (await owner.nextModify(0, n++, 'again')).body.username === 'Page of SQL (link)';
		}, 'the label that SQL has set');
		owner.modify(0, 1, 'of the owner');
		assert.equal((await guest.nextModify(0, 1, 'of the owner')).body.username, anna.username);
		const { ticket } = (await post(gateway, '/v2/ticket', { token: zoe.token, fid })).json;
		const byTicket = await Editor.open(gateway, null, fid, { path: `/sheetws?ticket=${ticket}&fid=${fid}` });
		assert.equal((await revoke(fid, link)).status, 200);
		for (const editor of [guest, byTicket]) assert.equal((await editor.waitClosed()).code, 4401);
		await owner.close();
	});

	test('overwrites nothing of another guest of the link with `seen`, and its own', async () => {
		const fid = await newSheet(gateway, anna);
		const { key } = await create(fid, { role: 'editor' });
		const zoe = await RawClient.open(gateway, await enter(key, 'Zoe'), fid, { client: 51 });
		const max = await RawClient.open(gateway, await enter(key, 'Max'), fid, { client: 52, encoding: 'binary' });
		const { seq: seen } = zoe.hello;
		const refused = async (n, edits, nacks) => {
			zoe.op(n, edits, { seen, nacks });
			const { reason, row, col } = await zoe.next('nack', (nack) => nack.n === n);
			return [reason, row, col];
		};
		zoe.op(1, [set(0, 0, 'of Zoe'), set(1, 0, 'of Zoe')]);
		await zoe.next('ack', ({ n }) => n === 1);
		max.op(1, [set(1, 0, 'of Max')]);
		await max.next('ack', ({ n }) => n === 1);
		zoe.op(2, [set(0, 0, '')], { seen });
		await zoe.next('ack', ({ n }) => n === 2);
		assert.deepEqual(await refused(3, [set(0, 0, 'x'), set(1, 0, '')], 0), ['base', 1, 0]);
		// what is pending, and is moved by a row that somebody else inserts meanwhile
		const session = cluster.psqlSession();
		await session.query(`BEGIN; SELECT sheet.insert_rows(${fid}, 0, 1)`);
		max.op(2, [set(5, 0, 'of Max')]);
		zoe.op(3, [set(6, 0, 'of Zoe')], { nacks: 1 });
		max.op(3, [set(7, 0, 'of Max')]);
		await cluster.sheetIsHeld();
		assert.deepEqual(await refused(4, [set(5, 0, '')], 1), ['base', 5, 0]);
		assert.deepEqual(await refused(4, [set(7, 0, '')], 2), ['base', 7, 0]);
		zoe.op(4, [set(6, 0, 'again')], { seen, nacks: 3 });
		await session.query('COMMIT');
		await zoe.next('ack', ({ n }) => n === 4);
		assert.deepEqual(await refused(5, [set(6, 0, '')], 3), ['base', 6, 0]);
		assert.deepEqual(await refused(5, [set(8, 0, '')], 4), ['base', 8, 0]);
		zoe.op(5, [set(7, 0, '')], { seen, nacks: 5 });
		await zoe.next('ack', ({ n }) => n === 5);
		await session.close();
		for (const guest of [zoe, max]) guest.terminate();
	});

	test('has the link for one sheet only, and views with that role', async () => {
		const [fid, other] = [await newSheet(gateway, anna), await newSheet(gateway, anna)];
		const { key } = await create(fid);
		const zoe = await enter(key);
		assert.equal(zoe.role, 'viewer');
		assert.equal((await cells(zoe, fid)).status, 200);
		assert.equal((await cells(zoe, other)).status, 404);
		for (const sheet of [other, 999999]) {
			for (const part of ['/log', '/versions', '/route', '.csv', '.tsv', '.jsonl']) assert.equal((await request(gateway, 'GET', `/v2/sheets/${sheet}${part}`, bearer(zoe))).status, 404, part);
			await call(gateway, '/getsheetchkp', { token: zoe.token, fid: sheet, cid: 1 }, 14);
		}
		const guest = await RawClient.open(gateway, zoe, fid);
		guest.op(1, [set(0, 0, 'no')]);
		assert.equal((await guest.next('nack')).reason, 'role');
		guest.terminate();
		const elsewhere = new RawClient(gateway, other);
		await elsewhere.opened;
		elsewhere.send({ t: 'hello', v: 2, token: zoe.token, client: 0, acked: 0, since: 0 });
		assert.equal((await elsewhere.waitClosed()).code, 4404);
		await call(gateway, '/sharelink', { token: anna.token, fid: other, role: 'editor' }, 12);
		assert.equal((await cells(zoe, other)).status, 404);
	});

	test('must have a name that a person may have', async () => {
		const fid = await newSheet(gateway, anna);
		const { key } = await create(fid);
		for (const name of ['', ' ', ' x', 'a\u202eb', 'a\nb', 'x'.repeat(51)]) {
			const answer = await knock(key, name);
			assert.deepEqual([answer.status, answer.json.code], [400, 'name'], JSON.stringify(name));
		}
		assert.equal((await post(gateway, '/v2/link', { link: key })).status, 400);
		assert.equal((await post(gateway, '/v2/link', { link: 5, name: 'x' })).status, 400);
		assert.equal((await enter(key, '"Zoë" \\ 佐伊')).username, '"Zoë" \\ 佐伊 (guest)');
		assert.equal((await enter(key, '𐍈'.repeat(50))).username, `${'𐍈'.repeat(50)} (guest)`);
		const answer = await post(gateway, '/register', { username: 'Zoe (guest)', password: 'x' });
		assert.equal(answer.status, 400);
	});
});

/* The routes that this guest may call on the sheet. */
async function openRoutes(zoe, fid) {
	const source = fs.readFileSync(path.join(repository, 'gateway/http/routes/router.c'), 'utf8');
	const routes = [...source.matchAll(/^\t\{"(\/[^"]*)", METHOD_(\w+), (\w+), ([^,]*),/gm)].map(([, address, method, caller, flags]) => ({ address, method, caller, flags }));
	assert.ok(routes.length > 40, `${routes.length} routes`);
	const free = ['/livez', '/readyz', '/healthz', '/*', '/login', '/register', '/v2/link', '/getchunk', '/i/*', '/paste', '/record', '/record/*', '/p/*', '/s/*', '/cal/*', '/.well-known/caldav'];
	const members = memberRows();
	const open = [];
	for (const { address, method, caller, flags } of routes) {
		if (caller === 'OPERATOR' || free.includes(address) || (address === '/' && method === 'GET')) continue;
		const target = address.replace('*', String(fid)).replace('*', '1');
		const values = {
			...{ token: zoe.token, fid, name: 'x', username: ben.username, role: 'viewer', label: 'x', cid: 1, version: 1, lid: 1, link: address.includes('links') ? 1 : 'x', password: 'x', oldPassword: 'x' },
			...{ initRows: 5, initColumns: 5, url: 'https://example.org/', cells: { Title: 'x' }, zone: 'UTC', answer: 'accepted', colour: '#1d5fbf' },
		};
		const names = ['token', ...(members.get(`${method} ${address}`) ?? [])];
		const body = address.startsWith('/v2/') ? Object.fromEntries(Object.entries(values).filter(([name]) => names.includes(name))) : values;
		const query = address === '/sheetws' ? `?query=1&fid=${fid}` : address.endsWith('import') ? '?name=x&ref=A1' : address.endsWith('cells') ? '?range=A1' : '';
		const headers = { authorization: `Bearer ${zoe.token}` };
		let answer;
		if (method === 'GET' || method === 'DELETE') answer = await request(gateway, method, target + query, { headers });
		else if (address === '/uploadchunk') answer = await request(gateway, method, target, multipart([['token', zoe.token], ['fid', String(fid)], ['uploadfile', Buffer.from('x'), 'a.png', 'image/png']]));
		else if (flags.includes('STREAM')) answer = await request(gateway, method, target + query, { headers: { ...headers, 'content-type': 'text/csv', 'content-length': 3 }, body: 'a,b' });
		else {
			const text = JSON.stringify(body);
			// Bodies of many values have no token, and a file has none.
			const own = /LARGE_BODY|FORM/.test(flags) ? headers : {};
			answer = await request(gateway, method, target + query, { headers: { ...own, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }, body: text });
		}
		if (answer.status === 200 && answer.json?.success !== false) open.push(address);
		else if (address === '/v2/session') assert.equal(answer.status, 204); // the token of a cookie alone, of which guests have none
		else if (flags.includes('DAV')) assert.ok([401, 403].includes(answer.status), `${method} ${address}: ${answer.status} ${answer.text}`);
		else if (!flags.includes('GUESTS')) assert.deepEqual([answer.status, answer.json?.data], [403, 'guests of a link have no account'], `${method} ${address}: ${answer.status} ${answer.text}`);
		assert.equal(answer.headers['set-cookie'], undefined, address);
	}
	return open.sort();
}

test('of all routes, a guest may call those that read the sheet', async () => {
	const fid = await newSheet(gateway, anna);
	await cluster.psql(`SELECT sheet.commit(${fid})`);
	const zoe = await enter((await create(fid, { role: 'editor' })).key);
	assert.deepEqual(await openRoutes(zoe, fid), ['/getsheetchkp', '/sheetws', '/v2/sheets/*.csv', '/v2/sheets/*.jsonl', '/v2/sheets/*.tsv', '/v2/sheets/*/cells', '/v2/sheets/*/log', '/v2/sheets/*/route', '/v2/sheets/*/versions', '/v2/ticket']);
	assert.equal(await cluster.psql('SELECT count(*) FROM sheet.member WHERE uid < 0'), '0');
	assert.equal(await cluster.psql('SELECT count(*) FROM sheet.file WHERE uid < 0'), '0');
});

test('a link to a rectangle shows its cells, wherever they are, and nothing else of the sheet', async () => {
	const fid = await newSheet(gateway, anna);
	await cluster.psql(`SELECT sheet.set_range(${fid}, 'A1', '{{secret,x},{in,=A1},{"''0",y}}')`);
	const { link, key } = await create(fid, { ref: 'A2:B2', label: 'Part' });
	const zoe = await enter(key);
	assert.deepEqual([zoe.fid, zoe.role], [null, 'viewer']);
	const part = () => request(gateway, 'GET', '/v2/link/cells', bearer(zoe));
	const { json, headers } = await part();
	assert.deepEqual(json, { rows: 1, cols: 2, cells: [[0, 0, 'in'], [0, 1, null]] });
	const unless = () => request(gateway, 'GET', '/v2/link/cells', { headers: { ...bearer(zoe).headers, 'if-none-match': headers.etag } });
	assert.equal((await unless()).status, 304);
	await cluster.psql(`SELECT sheet.set(${fid}, 'A2', 'other')`);
	await waitUntil(async () => (await unless()).status === 200, 'the edit');
	assert.deepEqual((await unless()).json.cells[0], [0, 0, 'other']);
	await cluster.psql(`SELECT sheet.set(${fid}, 'A2', 'in')`);
	await waitUntil(async () => (await unless()).status === 304, 'what it was before');
	const owner = await RawClient.open(gateway, anna, fid, { client: 3 });
	// styles, cells that have only one, and none of outside; an edit outside changes nothing
	const style = { bl: 1, cl: { rgb: '#ff0000' } };
	owner.op(1, [{ row: 1, col: 0, content: 'in', style }, { row: 1, col: 1, style }, { row: 2, col: 0, content: 'x', style }]);
	await owner.next('ack');
	const styled = await part();
	assert.deepEqual(styled.json.cells, [[0, 0, 'in', style], [0, 1, null, style]]);
	owner.op(2, [{ row: 1, col: 1, content: '', style }, { row: 0, col: 0, content: 'elsewhere' }]);
	await owner.next('ack');
	const bare = await part();
	assert.deepEqual(bare.json.cells, [[0, 0, 'in', style], [0, 1, '', style]]);
	owner.op(3, [{ row: 0, col: 0, content: 'again' }]);
	await owner.next('ack');
	assert.equal((await part()).headers.etag, bare.headers.etag);
	// its text is kept: the database is only asked about the link
	const hits = async () => (await gateway.metrics()).pg_sheet_window_hits_total;
	const before = await hits();
	await waitUntil(async () => {
		assert.deepEqual((await part()).json, bare.json);
		return (await hits()) > before;
	}, 'the kept text');
	owner.op(4, [{ row: 1, col: 0, content: 'in', style: null }, { row: 1, col: 1, content: '=A1', style: null }]);
	await owner.next('ack');
	owner.op(5, [{ kind: 'insertRows', at: 1, n: 2 }]);
	await owner.next('ack');
	assert.deepEqual((await part()).json, { rows: 1, cols: 2, cells: [[0, 0, 'in'], [0, 1, null]] });
	assert.equal((await list(fid))[0].ref, 'A4:B4');
	const seen = (tag) => post(gateway, `/v2/sheets/${fid}/links`, { token: anna.token, ref: 'A2' }, { headers: { 'if-match': tag } });
	assert.deepEqual([(await seen('"1"')).status, (await seen('"1"')).json.code], [412, 'changed']);
	assert.equal((await seen('x')).status, 400);
	const { etag } = (await cells(anna, fid)).headers;
	const present = await seen(etag);
	assert.equal(present.status, 200);
	assert.equal((await revoke(fid, present.json.link)).status, 200);
	assert.deepEqual(await openRoutes(zoe, fid), ['/v2/link/cells', '/v2/ticket']);
	for (const open of [
		() => Editor.open(gateway, zoe, fid).then((editor) => editor.waitClosed()),
		async () => {
			const guest = new RawClient(gateway, fid);
			await guest.opened;
			guest.send({ t: 'hello', v: 2, token: zoe.token, client: 0, acked: 0, since: 0 });
			const closed = await guest.waitClosed();
			assert.deepEqual(guest.messages, []);
			return closed;
		},
	]) {
		const refused = await open().catch((error) => error);
		assert.match(`${refused.code} ${refused.message}`, /4404/);
	}
	assert.equal((await change(fid, link, { role: 'commenter' })).status, 400);
	owner.op(6, [{ kind: 'deleteRows', at: 3, n: 1 }]);
	await owner.next('ack');
	const told = async (user) => (({ status, json }) => [status, json.data])(await request(gateway, 'GET', '/v2/link/cells', bearer(user)));
	assert.deepEqual(await told(zoe), [403, 'the part of the sheet has been deleted']);
	assert.equal((await knock(key)).status, 404);
	for (const other of [anna, await enter((await create(fid, {})).key)]) assert.deepEqual(await told(other), [403, 'the link is not to a part of a sheet']);
	const yan = await enter((await create(fid, { ref: 'A2' })).key);
	await cluster.psql(`SELECT sheet.trash(${fid})`);
	assert.deepEqual(await told(yan), [410, 'the sheet is in the trash']);
	owner.terminate();
});

test('guests of a rectangle for editors write in it, wherever it is, and nowhere else', async () => {
	const fid = await newSheet(gateway, anna);
	await cluster.psql(`SELECT sheet.set_range(${fid}, 'A1', '{{secret,x},{in,=A1},{in2,y},{below,z}}')`);
	const { link, key, published } = await create(fid, { ref: 'A2:B3', role: 'editor', label: 'Form' });
	assert.equal(published, undefined);
	const zoe = await enter(key);
	assert.deepEqual([zoe.fid, zoe.role], [null, 'editor']);
	const part = async (role) => {
		const { status, json, headers } = await request(gateway, 'GET', '/v2/link/cells', bearer(zoe));
		assert.deepEqual([status, headers['link-role']], [200, role]);
		return json.cells;
	};
	const send = async (body, { user = zoe, query = '', headers = {} } = {}) => {
		const text = JSON.stringify(body);
		const answer = await request(gateway, 'PATCH', `/v2/link/cells${query}`, { headers: { ...bearer(user).headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers }, body: text });
		assert.ok(answer.headers.etag === undefined && !/seq|sheet [0-9]|fid/.test(answer.text), answer.text); // nothing of the rest of the sheet
		return answer;
	};
	const write = async (cells, { size: [rows, cols] = [], ...options } = {}) => (({ status, json }) => [status, json?.code ?? json?.cells, json?.cell])(await send({ cells, rows, cols }, options));
	const stored = () => cluster.psql(`SELECT string_agg(content, ',' ORDER BY "row", col) FROM sheet.range(${fid})`);
	const owner = await RawClient.open(gateway, anna, fid, { client: 3 });

	// the owner sees it at once, under the label of the link
	assert.deepEqual(await write([[0, 0, 'mine', 'in'], [1, 1, 5, 'y']]), [200, 2, undefined]);
	const { edits } = await owner.next('edits', (message) => message.edits.length > 0);
	assert.deepEqual(edits, [{ uid: guestBase + link, row: 1, col: 0, content: 'mine' }, { uid: guestBase + link, row: 2, col: 1, content: '5' }]);
	owner.send({ t: 'who', uid: guestBase + link });
	assert.equal((await owner.next('user')).name, 'Form (link)');
	assert.deepEqual(await part('editor'), [[0, 0, 'mine'], [0, 1, null], [1, 0, 'in2'], [1, 1, '5']]);

	// nobody's text is overwritten by who has not seen it, and a formula only by who has seen one
	assert.deepEqual(await write([[0, 0, 'x', 'mine'], [1, 0, 'x', 'in']]), [412, 'changed', [1, 0, 'in2']]);
	assert.deepEqual(await write([[1, 0, 'x', '']]), [412, 'changed', [1, 0, 'in2']]);
	assert.deepEqual(await write([[1, 0, 'x', null]]), [412, 'changed', [1, 0, 'in2']]);
	for (const seen of [[], [''], ['A1']]) assert.deepEqual(await write([[0, 1, 'x', ...seen]]), [412, 'changed', [0, 1, null]]);
	assert.equal(await stored(), 'secret,x,mine,=A1,in2,5,below,z');
	assert.deepEqual(await write([[0, 1, 'no formula', null], [1, 0, '']]), [200, 2, undefined]);
	assert.equal(await stored(), 'secret,x,mine,no formula,5,below,z');

	// no formulas, nothing outside, nothing malformed
	for (const formula of ['=A1', '=', '=HYPERLINK("x")', '={1}']) assert.deepEqual(await write([[0, 0, formula]]), [400, 'formula', undefined], formula);
	assert.deepEqual(await write([[0, 0, '=A1'], [1, 0, "'=A1"]], { query: '?input=raw' }), [200, 2, undefined]);
	assert.deepEqual(await part('editor'), [[0, 0, "'=A1"], [0, 1, 'no formula'], [1, 0, "''=A1"], [1, 1, '5']]);
	assert.deepEqual(await write([[0, 0, 'mine', "'=A1"], [1, 0, '']]), [200, 2, undefined]);
	for (const place of [[2, 0], [0, 2], [16777215, 0]]) assert.deepEqual(await write([[0, 0, 'x'], [...place, 'x']]), [400, 'outside', undefined], String(place));
	for (const cell of [[-1, 0, 'x'], [0.5, 0, 'x'], [0, 0], [0, 0, null], [0, 0, {}], [0, 0, ['x']], [0, 0, 'x', 5], [0, 0, 'x', '', 1], ['0', 0, 'x'], [1e300, 0, 'x'], {}, 'x', null])
		assert.equal((await write([cell]))[0], 400, JSON.stringify(cell));
	for (const body of [{}, { cells: {} }, { cells: [] }, { cells: null }]) assert.equal((await send(body)).status, 400, JSON.stringify(body));
	assert.equal((await send({ cells: [[0, 0, 'x'.repeat(32768)]] })).status, 400);
	assert.equal((await send({ cells: [[0, 0, 'x']] }, { headers: { 'if-match': '"1"' } })).status, 400);
	assert.equal((await send({ cells: Array(16385).fill([0, 0, 'x']) })).status, 413);
	assert.deepEqual(await openRoutes(zoe, fid), ['/v2/link/cells', '/v2/ticket']);

	// it moves with its cells; while another transaction holds the sheet, nothing is written
	const session = cluster.psqlSession();
	await session.query(`BEGIN; SELECT sheet.insert_rows(${fid}, 0, 3)`);
	assert.equal((await write([[1, 0, 'after the rows', '']]))[0], 503);
	await session.query('COMMIT');
	await session.close();
	assert.deepEqual(await write([[1, 0, 'after the rows', '']], { size: [2, 2] }), [200, 1, undefined]);
	assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A6')`), 'after the rows');
	assert.equal(await stored(), 'secret,x,mine,no formula,after the rows,5,below,z');

	// rows that come or go inside make other cells of the rows below
	await cluster.psql(`SELECT sheet.insert_rows(${fid}, 5, 1)`);
	assert.deepEqual(await write([[1, 1, 'x', '5']], { size: [2, 2] }), [412, 'moved', undefined]);
	assert.deepEqual(await write([[1, 1, 'new row', '']], { size: [3, 2] }), [200, 1, undefined]);
	for (const size of [[3], ['3', 2], [3, -1], [3.5, 2], [null, 2]]) assert.equal((await write([[1, 1, 'x']], { size }))[0], 400, JSON.stringify(size));
	assert.deepEqual(await part('editor'), [[0, 0, 'mine'], [0, 1, 'no formula'], [1, 1, 'new row'], [2, 0, 'after the rows'], [2, 1, '5']]);

	// the role, and who may use the route
	const refused = [403, 'role', undefined];
	assert.equal((await change(fid, link, { role: 'viewer' })).status, 200);
	assert.deepEqual(await write([[0, 0, 'x']]), refused);
	assert.equal((await part('viewer')).length, 5);
	assert.deepEqual(await write([[0, 0, 'x']], { user: await enter((await create(fid, { ref: 'A1' })).key) }), refused);
	assert.equal((await change(fid, link, { role: 'editor' })).status, 200);
	await part('editor');
	for (const other of [anna, await enter((await create(fid, { role: 'editor' })).key)]) {
		const { status, json } = await send({ cells: [[0, 0, 'x']] }, { user: other });
		assert.deepEqual([status, json.data], [403, 'the link is not to a part of a sheet']);
	}
	owner.op(1, [{ kind: 'deleteRows', at: 4, n: 3 }]);
	await owner.next('ack');
	const gone = await send({ cells: [[0, 0, 'x']] });
	assert.deepEqual([gone.status, gone.json.data], [403, 'the part of the sheet has been deleted']);
	const yan = await enter((await create(fid, { ref: 'A2', role: 'editor' })).key);
	await cluster.psql(`SELECT sheet.trash(${fid})`);
	assert.equal((await send({ cells: [[0, 0, 'x']] }, { user: yan })).status, 410);
	assert.equal((await revoke(fid, link)).status, 200);
	assert.equal((await send({ cells: [[0, 0, 'x']] })).status, 401);
	owner.terminate();
});

test('a link that is unknown, expired, revoked or blocked is answered in one way', async () => {
	const fid = await newSheet(gateway, anna);
	const made = {};
	for (const kind of ['expired', 'revoked', 'blocked', 'trashed']) made[kind] = await create(kind === 'trashed' ? (made.sheet = await newSheet(gateway, anna)) : fid, { password: 'right' });
	await cluster.psql(`UPDATE sheet.link SET expires_at = now() WHERE link_id = ${made.expired.link}`);
	assert.equal((await revoke(fid, made.revoked.link)).status, 200);
	assert.equal((await change(fid, made.blocked.link, { blocked: true })).status, 200);
	await call(gateway, '/deletesheet', { token: anna.token, fid: made.sheet }, 16);
	const seen = new Set();
	for (const key of ['A'.repeat(22), '', 'x'.repeat(5000), ...['expired', 'revoked', 'blocked', 'trashed'].map((kind) => made[kind].key)])
		for (const password of [undefined, 'right', 'wrong']) {
			const { status, text, headers } = await knock(key, 'Zoe', password);
			const { date, 'x-request-id': id, ...same } = headers;
			seen.add(JSON.stringify([status, text, same]));
		}
	assert.equal(seen.size, 1, [...seen].join('\n'));
	assert.equal(JSON.parse([...seen][0])[0], 404);
	assert.deepEqual((await list(fid)).map(({ state }) => state), ['blocked', 'revoked', 'expired']);
	assert.equal((await change(fid, made.blocked.link, { blocked: false })).status, 200);
	assert.equal((await change(fid, made.expired.link, { expires: null })).status, 200);
	for (const kind of ['blocked', 'expired']) await enter(made[kind].key, 'Zoe', 'right');
	assert.equal((await change(fid, made.revoked.link, { role: 'editor' })).status, 409);
});

test('a wrong password is counted for the link and the address', async () => {
	const fid = await newSheet(gateway, anna);
	const [first, second] = [await create(fid, { password: 'right' }), await create(fid, { password: 'right' })];
	const needed = await knock(first.key);
	assert.deepEqual([needed.status, needed.json.code], [401, 'password_needed']);
	for (let i = 0; i < 10; i++) await enter(first.key, 'Zoe', 'right');
	for (let i = 0; i < 4; i++) {
		const { status, json } = await knock(first.key, 'Zoe', `wrong ${i}`);
		assert.deepEqual([status, json.code], [401, 'password_wrong']);
	}
	const refused = await knock(first.key, 'Zoe', 'right');
	assert.equal(refused.status, 429);
	assert.ok(Number(refused.headers['retry-after']) > 0);
	await enter(second.key, 'Zoe', 'right');
	assert.equal((await change(fid, second.link, { password: null })).status, 200);
	await enter(second.key);
	assert.doesNotMatch(await cluster.psql(`SELECT string_agg(l::text, '') FROM sheet.link l`), new RegExp(`right|${first.key}`));
});

test('a password that SQL has given is compared byte by byte, as those of accounts', async () => {
	const fid = await newSheet(gateway, anna);
	const key = await cluster.psql(`SELECT key FROM sheet.create_link(${fid}, password => 'gëheim ')`);
	for (const wrong of ['', 'geheim ', 'gëheim', 'ge\u0308heim ', 'x'.repeat(2000)]) {
		const { status, json } = await knock(key, 'Zoe', wrong);
		assert.deepEqual([status, json.code], wrong.length > 100 ? [429, undefined] : [401, 'password_wrong'], wrong);
	}
	const other = await cluster.psql(`SELECT key FROM sheet.create_link(${fid}, password => 'gëheim ')`);
	assert.equal((await knock(other, 'Zoe', 'x'.repeat(2000))).json.code, 'password_wrong');
	await enter(other, 'Zoe', 'gëheim ');
});

test('no key, token or password of a client is in the log of a server that logs all statements', async () => {
	const [fid, secrets] = [await newSheet(gateway, anna), {}];
	secrets.made = 'password-when-made';
	const { link, key } = await create(fid, { role: 'editor', password: secrets.made });
	secrets.key = key;
	await enter(key, 'Zoe', secrets.made);
	secrets.wrong = 'password-that-is-wrong';
	assert.equal((await knock(key, 'Zoe', secrets.wrong)).status, 401);
	secrets.changed = 'password-when-changed';
	assert.equal((await change(fid, link, { password: secrets.changed })).status, 200);
	secrets.unknown = 'key-that-nobody-has';
	assert.equal((await knock(secrets.unknown)).status, 404);
	secrets.session = (await enter(key, 'Zoe', secrets.changed)).token;
	assert.equal((await knock(key, '', secrets.changed)).status, 400); // an error of the database
	secrets.account = 'password-of-an-account';
	const eve = await register(gateway, undefined, secrets.account);
	secrets.login = eve.token;
	secrets.shared = await shareByLink(gateway, anna, fid, 'editor', eve);
	assert.equal((await post(gateway, `/v2/sheets/${fid}/open`, { token: eve.token, link: secrets.shared })).status, 200);
	const editor = await Editor.open(gateway, eve, fid, { extra: `&link=${secrets.shared}` });
	await editor.close();
	secrets.token = (await post(gateway, '/v2/tokens', { token: anna.token, label: 'log', scopes: ['read', 'upload'] })).json.token;
	assert.equal((await request(gateway, 'GET', '/v2/sheets', bearer({ token: secrets.token }))).status, 200);
	const upload = await request(gateway, 'POST', '/uploadchunk', multipart([['token', secrets.token], ['fid', String(fid)], ['uploadfile', Buffer.from('x'), 'a.png', 'image/png']]));
	secrets.file = /\/i\/([^/]+)\//.exec(upload.text)[1];
	for (const address of [`/i/${secrets.file}/a.png`, `/getchunk?fid=${fid}&chunk=a.png&key=${secrets.file}`]) assert.equal((await request(gateway, 'GET', address)).status, 200, address);
	secrets.next = 'password-of-an-account-next';
	assert.equal((await post(gateway, '/v2/account/password', { token: eve.token, oldPassword: secrets.account, password: secrets.next })).status, 200);
	const log = fs.readFileSync(path.join(cluster.directory, 'log', 'postgres.log'), 'utf8');
	for (const statement of ['sheet.enter_link', 'sheet.create_link', 'sheet.change_link', 'sheet.open_link_digest', 'sheet.create_token', 'sheet.token_find', 'sheet.file_by_digest', 'sheet.file_info', 'sheet.account_set_password'])
		assert.ok(log.includes(`SELECT`) && log.includes(statement), `${statement} is not in the log`);
	assert.match(log, /[Pp]arameters: \$1 = '\\x[0-9a-f]{64}', \$2 = 'Zoe'/);
	for (const [name, secret] of Object.entries(secrets)) assert.ok(!log.includes(secret), `${name} is in the log`);
});

describe('the end of a link', () => {
	test('closes its sessions, and nothing that is sent later is stored, whatever the timer does', async () => {
		const fid = await newSheet(gateway, anna);
		const { link, key } = await create(fid, { role: 'editor' });
		await cluster.psql(`UPDATE sheet.link SET expires_at = clock_timestamp() + interval '4 s' WHERE link_id = ${link}`);
		const zoe = await enter(key);
		const end = Number(await cluster.psql(`SELECT extract(epoch FROM expires_at) * 1000 FROM sheet.link WHERE link_id = ${link}`));
		const late = Date.parse(zoe.expires) - end;
		assert.ok(late >= -100 && late < 1200, `the token expires ${late} ms after the link`);
		const guests = [await RawClient.open(gateway, zoe, fid, { client: 5 }), await RawClient.open(gateway, zoe, fid, { client: 6, encoding: 'binary' })];
		const old = await Editor.open(gateway, zoe, fid);
		const everyone = [...guests, old];
		for (let n = 1; everyone.some((guest) => !guest.closed); n++) {
			for (const guest of guests) if (!guest.closed) guest.op(n, [set(n, 0, String(Date.now()))]);
			if (!old.closed) old.modify(n, 1, String(Date.now()));
			await new Promise((resolve) => setTimeout(resolve, 20)); // the end of the link is a time; they write until it has come
		}
		for (const guest of everyone) assert.equal(guest.closed.code, 4401);
		const stored = (await cluster.rows(`SELECT new FROM sheet.log WHERE sheet_id = ${fid} AND uid = ${-link}`)).map(({ new: sent }) => Number(sent));
		assert.ok(stored.length > 3, `${stored.length} edits were stored`);
		assert.ok(Math.max(...stored) <= end, `sent ${Math.max(...stored) - end} ms after the end`);
		// sessions may be closed a little before the end by the database's clock
		await waitUntil(async () => (await knock(key)).status === 404, 'the link to end');
		assert.equal((await cells(zoe, fid)).status, 401);
	});

	test('that is set to come sooner closes sessions that are open', async () => {
		const fid = await newSheet(gateway, anna);
		const { link, key } = await create(fid, { expires: null });
		const guest = await RawClient.open(gateway, await enter(key), fid);
		assert.equal((await change(fid, link, { expires: new Date(Date.now() + 2000).toISOString() })).status, 200);
		assert.equal((await guest.waitClosed()).code, 4401);
	});

	test('ends tokens that would be valid for longer', async () => {
		const fid = await newSheet(gateway, anna);
		const { link, key } = await create(fid);
		const zoe = await enter(key);
		assert.equal((await cells(zoe, fid)).status, 200);
		await cluster.psql(`UPDATE sheet.link SET expires_at = clock_timestamp() WHERE link_id = ${link}`); // which nobody is told of
		assert.equal((await cells(zoe, fid)).status, 401);
		const late = new RawClient(gateway, fid);
		await late.opened;
		late.send({ t: 'hello', v: 2, token: zoe.token, client: 0, acked: 0, since: 0 });
		assert.equal((await late.waitClosed()).code, 4401);
	});

	test('by its owner, or another password, closes sessions at once; another role is told', async () => {
		const fid = await newSheet(gateway, anna);
		const { link, key } = await create(fid, { role: 'editor' });
		const [zoe, stranger] = [await enter(key), await enter((await create(fid)).key)];
		const [guest, other] = [await RawClient.open(gateway, zoe, fid, { client: 9 }), await RawClient.open(gateway, stranger, fid)];
		assert.equal((await change(fid, link, { role: 'viewer', label: 'Readers' })).status, 200);
		assert.equal((await guest.next('role')).role, 'viewer');
		guest.op(1, [set(0, 0, 'no longer')]);
		assert.equal((await guest.next('nack')).reason, 'role');
		assert.equal((await change(fid, link, { password: 'new' })).status, 200);
		assert.equal((await guest.waitClosed()).code, 4401);
		assert.equal((await cells(zoe, fid)).status, 401);
		const again = await enter(key, 'Zoe', 'new');
		const next = await RawClient.open(gateway, again, fid);
		assert.equal((await revoke(fid, link)).status, 200);
		assert.equal((await next.waitClosed()).code, 4401);
		assert.equal((await cells(again, fid)).status, 401);
		assert.equal((await cells(stranger, fid)).status, 200);
		assert.equal(other.closed, null);
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		assert.ok([4401, 4410].includes((await other.waitClosed()).code));
		await call(gateway, '/deletesheet', { token: anna.token, fid, purge: true }, 16);
		assert.equal((await cells(stranger, fid)).status, 401);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.link WHERE sheet_id = ${fid}`), '0');
	});

	test('a token that somebody else has signed, or that names nobody, is refused', async () => {
		const fid = await newSheet(gateway, anna);
		const { link, key } = await create(fid);
		const zoe = await enter(key);
		const { header, claims } = tokenParts(zoe.token);
		const forged = [{ ...claims, uid: anna.uid }, { ...claims, uid: -link - 1 }].map((wrong) => signToken(header, wrong, 'not the key of this gateway at all'));
		for (const token of [...forged, `${zoe.token}x`]) assert.equal((await cells({ token }, fid)).status, 401);
	});
});

describe('the owner', () => {
	test('sees the links, without keys, and how often they were used', async () => {
		const fid = await newSheet(gateway, anna);
		const expires = `${new Date(Date.now() + 3600000).toISOString().slice(0, 19)}Z`;
		const { link, key } = await create(fid, { role: 'commenter', expires, label: 'Board', password: 'p' });
		const open = await create(fid, { expires: null });
		const week = await create(fid);
		for (let i = 0; i < 3; i++) await enter(open.key);
		const shown = await list(fid);
		assert.doesNotMatch(JSON.stringify(shown), new RegExp(`${key}|${open.key}|SCRAM`));
		const { createdAt, ...board } = shown[2];
		assert.ok(Date.parse(createdAt) > 0);
		assert.deepEqual(board, { link, role: 'commenter', label: 'Board', expires, ref: null, password: true, state: 'valid', uses: 0, lastUsed: null, createdBy: anna.username, embed: null, index: false });
		assert.equal(shown[1].expires, null);
		assert.ok(Math.abs(Date.parse(shown[0].expires) - Date.now() - 7 * 86400000) < 600000);
		assert.deepEqual([shown[0].link, shown[0].label], [week.link, `Link ${week.link}`]);
		await waitUntil(async () => (await list(fid))[1].uses === 3, 'the uses to be stored', 60000);
		assert.ok(Date.parse((await list(fid))[1].lastUsed) > 0);
	});

	test('alone may make, see, change and revoke them', async () => {
		const [fid, other] = [await newSheet(gateway, anna), await newSheet(gateway, anna)];
		const { link } = await create(fid);
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'editor' }, 12);
		assert.equal((await post(gateway, `/v2/sheets/${fid}/links`, { token: ben.token })).status, 403);
		assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}/links`, bearer(ben))).status, 403);
		for (const answer of [await change(fid, link, { role: 'editor' }, ben), await revoke(fid, link, ben), await revoke(fid, 999999, ben)]) assert.equal(answer.status, 403);
		for (const answer of [await change(other, link, { role: 'editor' }), await revoke(other, link), await revoke(fid, 999999)]) assert.equal(answer.status, 404, answer.text);
		assert.equal((await revoke(987654321, link)).status, 404);
		for (const values of [{ role: 'owner' }, { role: 5 }, { expires: 1 }, { expires: 'soon' }, { expires: 'infinity' }, { expires: '1970-01-01T00:00:01Z' }, { expires: '2033-05-18 03:33:20Z' }, { expires: '2033-05-18T03:33:20' }, { expires: '2033-13-01T00:00:00Z' }, { label: '' }, { label: 'a\nb' }, { password: 'x'.repeat(1025) }])
			assert.equal((await post(gateway, `/v2/sheets/${fid}/links`, { token: anna.token, ...values })).status, 400, JSON.stringify(values));
		for (const values of [{ blocked: 'yes' }, { blocked: null }, { role: 'owner' }, { expires: 1 }]) assert.equal((await change(fid, link, values)).status, 400, JSON.stringify(values));
		for (const wrong of ['x', '0', '', `${link}/`]) assert.equal((await change(fid, wrong, {})).status, 404, wrong);
		assert.equal((await list(fid))[0].state, 'valid');
	});
});

describe('a request', () => {
	test('with an argument that stands twice is refused, whatever the route', async () => {
		const fid = await newSheet(gateway, anna);
		for (const [method, address] of [
			['GET', `/v2/sheets/${fid}/cells?range=A1&range=B2`],
			['GET', `/v2/sheets/${fid}/log?limit=1&uid=1&limit=2`],
			['GET', '/v2/files?before=5&before='],
			['GET', `/v2/sheets/${fid}.csv?a&a`],
			['DELETE', `/v2/sheets/${fid}?purge=1&purge=0`],
			['GET', `/v2/sheets?${Array.from({ length: 40 }, (_, i) => `a${i}=1`).join('&')}`],
		]) {
			const answer = await request(gateway, method, address, bearer(anna));
			assert.deepEqual([answer.status, answer.json.data], [400, 'an argument stands twice in the query, or it has more than 32'], address);
		}
		assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1&ranges=1`, bearer(anna))).status, 200);
		assert.notEqual((await request(gateway, 'GET', '/?x=1&x=2')).status, 400);
	});

	test('with too many values, or a form that no paste is read from, is told so', async () => {
		const many = await post(gateway, '/v2/sheets', { token: anna.token, name: Array(1001).fill(1) });
		assert.deepEqual([many.status, /more than 1000 values/.test(many.json.data)], [400, true], many.text);
		const form = await request(gateway, 'POST', '/paste', multipart([['file', Buffer.from('x'.repeat(100)), 'a.txt', 'text/plain']]));
		assert.deepEqual([form.status, /must not be multipart/.test(form.text)], [400, true], form.text);
	});
});
