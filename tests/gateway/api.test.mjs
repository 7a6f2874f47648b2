/*
 * The API for programs: access tokens with scopes, and the routes below /v2/sheets by which programs make, read and write
 * sheets.
 */
import { after, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { Cluster, PsqlSession, repository, waitUntil } from '../lib/cluster.mjs';
import { call, multipart, newSheet, post, register, request } from '../lib/client.mjs';
import { rawExchange } from '../lib/raw.mjs';
import { RawClient, pageModule } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none', 'trusted-proxies': '127.0.0.1' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	ben = await register(gateway);
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});

/** A request with a token and, if there is one, a JSON body. */
function api(method, path, body, { token = anna.token, headers = {}, at = gateway } = {}) {
	const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
	return request(at, method, path, {
		headers: {
			...(token ? { authorization: `Bearer ${token}` } : {}),
			...(text !== undefined ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}),
			...headers,
		},
		body: text,
	});
}

/** The same, which must have this status; returns the JSON. */
async function done(status, method, path, body, options) {
	const answer = await api(method, path, body, options);
	assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify(body)?.slice(0, 200)}: ${answer.text}`);
	if (status >= 400) {
		assert.equal(answer.json.success, false);
		assert.ok(answer.json.data.length > 5, 'the reason');
	}
	return answer.json;
}

/** A new access token: {id, token, …}. */
const newToken = (scopes, { user = anna, ...rest } = {}) =>
	done(201, 'POST', '/v2/tokens', { label: `for ${scopes}`, scopes, ...rest }, { token: user.token });

const cells = async (range = 'A1:Z100', sheet = fid, options) => (await done(200, 'GET', `/v2/sheets/${sheet}/cells?range=${range}&formulas=true`, undefined, options)).cells;
const put = (range, values, options, query = '') => api('PUT', `/v2/sheets/${fid}/cells?range=${range}${query}`, { values }, options);

describe('access tokens', () => {
	test('are shown once, listed without secrets, and revoked', async () => {
		const made = await newToken(['edit', 'read']);
		assert.match(made.token, /^pgs_[A-Za-z0-9_-]{43}$/);
		assert.deepEqual(made.scopes, ['read', 'edit']);
		const days = (Date.parse(made.expiresAt) - Date.now()) / 86400000;
		assert.ok(days > 89.9 && days < 90.1, `${days} days`);
		const listed = async () => (await done(200, 'GET', '/v2/tokens')).tokens.find(({ id }) => id === made.id);
		assert.deepEqual({ ...(await listed()), createdAt: 0 }, { id: made.id, label: made.label, scopes: made.scopes, createdAt: 0, expiresAt: made.expiresAt, lastUsed: null });
		assert.ok(!JSON.stringify(await done(200, 'GET', '/v2/tokens')).includes(made.token));
		await done(200, 'GET', '/v2/sheets', undefined, { token: made.token });
		const used = await waitUntil(async () => (await listed()).lastUsed, 'the use to be registered');
		assert.match(used, /T\d\d:00:00Z$/);
		await done(404, 'DELETE', `/v2/tokens/${made.id}`, undefined, { token: ben.token });
		await done(200, 'GET', '/v2/sheets', undefined, { token: made.token });
		assert.equal((await api('DELETE', `/v2/tokens/${made.id}`)).status, 204);
		await done(401, 'GET', '/v2/sheets', undefined, { token: made.token });
		await done(404, 'DELETE', `/v2/tokens/${made.id}`);
		for (const id of ['x', '0', '', '1x']) await done(404, 'DELETE', `/v2/tokens/${id}`);
		assert.equal(await listed(), undefined);
	});

	test('have an end, which is compared with each request, or none', async () => {
		assert.equal((await newToken(['read'], { days: null })).expiresAt, null);
		const { token, id } = await newToken(['read'], { days: 1 });
		await done(200, 'GET', '/v2/sheets', undefined, { token });
		await cluster.psql(`UPDATE sheet.access_token SET expires_at = now() + interval '2 s' WHERE token_id = ${id}`);
		await waitUntil(async () => (await api('GET', '/v2/sheets', undefined, { token })).status === 401, 'the token to end');
	});

	test('revoked by SQL, they are refused', async () => {
		const token = await cluster.psql(`SELECT sheet.create_token('by SQL', '{read}', as_uid => ${anna.uid})`);
		await done(200, 'GET', '/v2/sheets', undefined, { token });
		await cluster.psql(`SELECT sheet.revoke_token(token_id) FROM sheet.token_find(sha256(convert_to('${token}', 'UTF8')))`);
		await waitUntil(async () => (await api('GET', '/v2/sheets', undefined, { token })).status === 401, 'the gateway to hear of it');
	});

	test('outlive a new password, and signing out everywhere', async () => {
		const carl = await register(gateway);
		const { token } = await newToken(['read'], { user: carl });
		carl.token = (await done(200, 'POST', '/v2/account/password', { token: carl.token, oldPassword: carl.password, password: 'another one for carl' }, { token: null })).token;
		await done(200, 'GET', '/v2/sheets', undefined, { token });
		await done(200, 'POST', '/v2/account/revoke', { token: carl.token }, { token: null });
		await done(200, 'GET', '/v2/sheets', undefined, { token });
	});

	test('may also be the member or the argument `token`, and set no cookie', async () => {
		const { token } = await newToken(['read', 'upload']);
		const answer = await post(gateway, '/getuser', { token });
		assert.deepEqual([answer.status, answer.json.msg, answer.headers['set-cookie']], [200, 10, undefined]);
		assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}?token=${token}`)).status, 200);
		const form = multipart([['token', token], ['fid', `${fid}`], ['uploadfile', Buffer.from('x'), 'x.txt', 'text/plain']]);
		const uploaded = await request(gateway, 'POST', '/uploadchunk', form);
		assert.equal(uploaded.json.msg, 33, uploaded.text);
		const { files } = await done(200, 'GET', `/v2/sheets/${fid}/files`, undefined, { token });
		assert.deepEqual(files, [{ name: 'x.txt', url: uploaded.json.url }]);
		assert.equal((await request(gateway, 'GET', new URL(files[0].url).pathname)).text, 'x');
	});

	test('that are wrong are refused, and after many of them the network', async () => {
		for (const token of ['pgs_', 'pgs_x', `pgs_${'A'.repeat(42)}`, `pgs_${'A'.repeat(44)}`, `pgs_${'A'.repeat(42)}=`, `pgs_${'B'.repeat(43)}`])
			await done(401, 'GET', '/v2/sheets', undefined, { token });
		const { token } = await newToken(['read']);
		await done(200, 'GET', '/v2/sheets', undefined, { token });
		const unused = await newToken(['read']);
		const from = (address, sent) => api('GET', '/v2/sheets', undefined, { token: sent, headers: { 'x-forwarded-for': address } });
		const statuses = new Map();
		for (let i = 0; i < 80; i++) {
			const { status } = await from('192.0.2.1', `pgs_${String(i).padStart(42, 'x')}A`);
			statuses.set(status, (statuses.get(status) ?? 0) + 1);
		}
		assert.ok(statuses.get(401) >= 60 && statuses.get(429) > 0, JSON.stringify([...statuses]));
		assert.equal((await from('192.0.2.1', unused.token)).status, 429);
		assert.equal((await from('192.0.2.2', unused.token)).status, 200);
		assert.equal((await from('192.0.2.1', unused.token)).status, 200, 'a token that is known is not looked up');
	});

	test('bad requests for tokens', async () => {
		for (const body of [{}, { label: 1 }, { label: 'x', scopes: 'read' }, { label: 'x', scopes: [1] }, { label: 'x', scopes: [] }, { label: 'x', scopes: ['write'] },
			{ label: 'x', scopes: ['re"ad\\'] }, { label: '' }, { label: 'x'.repeat(101) }, { label: 'x', days: 0 }, { label: 'x', days: 1.5 }, { label: 'x', days: '1' }])
			await done(400, 'POST', '/v2/tokens', body);
		const carl = await register(gateway);
		await cluster.psql(`SELECT count(sheet.create_token('many', as_uid => ${carl.uid})) FROM generate_series(1, 100)`);
		await done(409, 'POST', '/v2/tokens', { label: 'too many' }, { token: carl.token });
	});

	/** Every route, with the scope that permits it. A request that is permitted need not succeed: it is not refused for its scope. */
	const routes = [
		['read', 'POST', '/getuser', {}],
		['read', 'POST', '/getsheet', { fid: 1 }],
		['read', 'POST', '/getsheetchkp', { fid: 1, cid: 1 }],
		['read', 'POST', '/getsheetlog', { fid: 1, lid: 1 }],
		['read', 'POST', '/getallchunks', { fid: 1 }],
		['read', 'GET', '/sheetws?query=1&fid=1'],
		['read', 'GET', '/getchunk?fid=1&chunk=x'],
		['read', 'GET', '/v2/files'],
		['read', 'GET', '/v2/sheets'],
		['read', 'GET', '/v2/sheets/ID'],
		['read', 'GET', '/v2/sheets/ID.csv'],
		['read', 'GET', '/v2/sheets/ID.tsv'],
		['read', 'GET', '/v2/sheets/ID.jsonl'],
		['read', 'GET', '/v2/sheets/ID/access'],
		['read', 'GET', '/v2/sheets/ID/route'],
		['read', 'GET', '/v2/sheets/ID/log'],
		['read', 'GET', '/v2/sheets/ID/versions'],
		['read', 'GET', '/v2/sheets/ID/cells?range=A1'],
		['read', 'GET', '/v2/sheets/ID/diff?from=1'],
		['read', 'GET', '/v2/sheets/ID/members'],
		['read', 'GET', '/v2/sheets/ID/files'],
		['read', 'POST', '/v2/sheets/ID/open', { link: 'x' }],
		['edit', 'POST', '/commitsheet', { fid: 1 }],
		['edit', 'POST', '/rollbacksheet', { fid: 1, cid: 1 }],
		['edit', 'POST', '/v2/sheets/ID/rename', { name: 'x' }],
		['edit', 'POST', '/v2/sheets/ID/label', { version: 1, label: 'x' }],
		['edit', 'PATCH', '/v2/sheets/ID', { name: 'x' }],
		['edit', 'POST', '/v2/sheets/ID/versions', {}],
		['edit', 'POST', '/v2/sheets/ID/rollback', { version: 1 }],
		['edit', 'PUT', '/v2/sheets/ID/cells?range=A1', { values: [[1]] }],
		['edit', 'PATCH', '/v2/sheets/ID/cells', { cells: [{ a1: 'A1', value: 1 }] }],
		['edit', 'POST', '/v2/sheets/ID/append', { values: [[1]] }],
		['upload', 'POST', '/v2/sheets/import?name=x', 'a,b'],
		['upload', 'POST', '/v2/sheets/import/preview', 'a,b'],
		['edit', 'PUT', '/v2/sheets/ID/import?ref=A1', 'a,b'],
		['upload', 'POST', '/uploadchunk', 'form'],
		['admin', 'DELETE', '/v2/files/999999'],
		['admin', 'POST', '/newsheet', { name: 'x' }],
		['admin', 'POST', '/deletesheet', { fid: 1 }],
		['admin', 'POST', '/recoversheet', { fid: 1 }],
		['admin', 'POST', '/sharesheet', { fid: 1, username: 'x', role: null }],
		['admin', 'POST', '/sharelink', { fid: 1, role: null }],
		['admin', 'POST', '/v2/sheets', { name: 'x' }],
		['admin', 'POST', '/v2/sheets/ID/recover', {}],
		['admin', 'PUT', '/v2/sheets/ID/members/x', { role: 'viewer' }],
		['admin', 'DELETE', '/v2/sheets/ID/members/x'],
		['admin', 'DELETE', '/v2/sheets/ID'],
		[null, 'POST', '/modifyuser', { username: 'x' }],
		[null, 'POST', '/v2/session/end', {}],
		[null, 'POST', '/modifyuserauth', { password: 'a password that is long' }],
		[null, 'POST', '/v2/account/password', { oldPassword: 'x', password: 'a password that is long' }],
		[null, 'POST', '/v2/account/revoke', {}],
		[null, 'POST', '/v2/ticket', { fid: 1 }],
		[null, 'GET', '/v2/tokens'],
		[null, 'POST', '/v2/tokens', { label: 'x' }],
		[null, 'DELETE', '/v2/tokens/1'],
	];

	test('permit what their scopes say, and nothing else', async () => {
		const tokens = {};
		for (const scope of ['read', 'edit', 'upload', 'admin']) tokens[scope] = (await newToken([scope])).token;
		for (const [needed, method, path, body] of routes) {
			for (const [scope, token] of Object.entries(tokens)) {
				const what = `${method} ${path} with ${scope}`;
				let options = { token };
				let sent = body;
				if (body === 'form') {
					const form = multipart([['token', token], ['fid', `${fid}`], ['uploadfile', Buffer.from('x'), 'x.txt', 'text/plain']]);
					options = { token: null, headers: form.headers };
					sent = form.body.toString('latin1');
				}
				const answer = await api(method, path.replace('ID', fid), sent, options);
				if (scope === needed || (needed === 'read' && scope === 'edit')) {
					assert.ok(answer.status !== 401 && answer.json?.code !== 'scope' && answer.json?.msg !== 1, `${what}: ${answer.status} ${answer.text}`);
				} else {
					assert.deepEqual([answer.status, answer.json.code], [403, 'scope'], `${what}: ${answer.text}`);
					assert.match(answer.json.data, needed ? new RegExp(`the scope ${needed} is needed`) : /a sign-in is needed/, what);
				}
			}
		}
	});
});

describe('access tokens on WebSockets', () => {
	let client = 4711; // each its own: a client that connects again replaces the other connection
	const open = (token, { at = fid } = {}) => RawClient.open(gateway, { token }, at, { client: ++client, v: 3 });
	const hello = async (token, { at = fid, headers } = {}) => {
		const raw = new RawClient(gateway, at, { headers });
		await raw.opened;
		raw.send({ t: 'hello', v: 3, token, client: ++client, acked: 0, since: 0 });
		return raw;
	};
	/** How hello is refused. */
	const refusal = async (token, options) => (await hello(token, options)).waitClosed();
	/** The gateway answers. */
	const answers = async (raw) => {
		raw.send({ t: 'who', uid: anna.uid });
		return (await raw.next('user')).uid;
	};

	/** Holds locks for less time than the gateway's statements wait for one, also on a busy machine: it is open already. */
	let database;
	before(() => (database = new PsqlSession(cluster)));
	after(() => database.close());
	const whileLocked = async (table, run) => {
		await database.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
		try {
			return await run();
		} finally {
			await database.query('COMMIT');
		}
	};
	const waits = (table) => waitUntil(async () => (await database.query(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '${table}'::regclass`)) !== '0', `a query that waits for ${table}`);
	/** Until the gateway has read what was sent. */
	const read = async (raw) => {
		const pong = new Promise((resolve) => raw.socket.once('pong', resolve));
		raw.socket.ping();
		await pong;
	};

	test('with the scope read they read, hear others, and edit nothing', async () => {
		await put('A1', [['before']]);
		const reader = await open((await newToken(['read'])).token);
		assert.deepEqual([reader.hello.role, reader.hello.uid], ['viewer', anna.uid], "the owner's own sheet");
		reader.send({ t: 'get', id: 1, row: 0, col: 0, toRow: 5, toCol: 5 });
		assert.deepEqual((await reader.next('block')).cells.map(({ content }) => content), ['before']);
		await put('B2', [['after']]);
		await reader.next('edits', ({ edits }) => edits[0].content === 'after');
		reader.op(1, [{ row: 0, col: 0, content: 'by the reader' }]);
		assert.equal((await reader.next('nack')).reason, 'role');
		reader.send({ t: 'lock', row: 3, col: 3 });
		assert.equal((await reader.next('denied')).reason, 'role');
		reader.send({ t: 'lockRange', row: 3, col: 3, toRow: 4, toCol: 4 });
		assert.equal((await reader.next('blocked')).reason, 'role');
		assert.deepEqual(await cells(), [[0, 0, 'before'], [1, 1, 'after']]);
		reader.terminate();
	});

	test('with the scope edit they edit as far as the account may', async () => {
		const person = await RawClient.open(gateway, anna, fid, { client: 1 });
		const editor = await open((await newToken(['edit'])).token);
		assert.equal(editor.hello.role, 'owner');
		editor.op(1, [{ row: 0, col: 0, content: 'by a program' }]);
		await editor.next('ack');
		await person.next('edits', ({ edits }) => edits[0].content === 'by a program' && edits[0].uid === anna.uid);
		person.op(1, [{ row: 0, col: 1, content: 'by a person' }]);
		await editor.next('edits', ({ edits }) => edits[0].content === 'by a person');
		const { token } = await newToken(['edit'], { user: ben });
		assert.equal((await refusal(token)).code, 4403, 'the sheet is not shared');
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'viewer' }, 12);
		const viewer = await open(token);
		assert.equal(viewer.hello.role, 'viewer');
		viewer.op(1, [{ row: 0, col: 0, content: 'x' }]);
		assert.equal((await viewer.next('nack')).reason, 'role');
		// A role that changes is told, and a token without the scope edit stays with a viewer's.
		const reader = await open((await newToken(['read'], { user: ben })).token);
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'editor' }, 12);
		assert.equal((await viewer.next('role')).role, 'editor');
		reader.op(1, [{ row: 0, col: 0, content: 'x' }]);
		assert.equal((await reader.next('nack')).reason, 'role');
		for (const raw of [person, editor, viewer, reader]) raw.terminate();
	});

	test('revoked or ended, they are closed with the reason; others of the account are not', async () => {
		const made = await newToken(['edit']);
		const [closing, sql, staying] = [await open(made.token), await newToken(['read']), await open((await newToken(['read'])).token)];
		const bySql = await open(sql.token);
		assert.equal((await api('DELETE', `/v2/tokens/${made.id}`)).status, 204);
		assert.deepEqual(await closing.waitClosed(), { code: 4401, reason: 'the token has been revoked' });
		await cluster.psql(`SELECT sheet.revoke_token(${sql.id})`);
		assert.deepEqual(await bySql.waitClosed(), { code: 4401, reason: 'the token has been revoked' });
		for (const { token } of [made, sql]) assert.deepEqual(await refusal(token), { code: 4401, reason: 'the token is not valid' });
		const ending = await newToken(['read'], { days: 1 });
		await cluster.psql(`UPDATE sheet.access_token SET expires_at = now() + interval '8 s' WHERE token_id = ${ending.id}`);
		assert.deepEqual(await (await open(ending.token)).waitClosed(), { code: 4401, reason: 'the token has expired' });
		assert.deepEqual(await refusal(ending.token), { code: 4401, reason: 'the token is not valid' });
		assert.equal(await answers(staying), anna.uid);
		staying.terminate();
	});

	test('outlive a new password, which closes sign-ins', async () => {
		const carl = await register(gateway);
		const at = await newSheet(gateway, carl);
		const program = await open((await newToken(['read'], { user: carl })).token, { at });
		const person = await RawClient.open(gateway, carl, at);
		const changed = { token: carl.token, oldPassword: carl.password, password: 'another one for carl' };
		const { token } = await done(200, 'POST', '/v2/account/password', changed, { token: null });
		assert.equal((await person.waitClosed()).code, 4401);
		assert.equal((await api('DELETE', `/v2/sheets/${at}`, undefined, { token })).status, 204);
		assert.equal((await program.waitClosed()).code, 4410, 'the sheet is in the trash, and the token was valid');
	});

	test('are refused as over HTTP', async () => {
		const { token } = await newToken(['read']);
		for (const wrong of ['pgs_', `pgs_${'A'.repeat(42)}`, `pgs_${'A'.repeat(44)}`, `pgs_${'A'.repeat(100)}`, `pgs_${'D'.repeat(42)}A`, `${token}x`, token.slice(0, -1)])
			assert.deepEqual(await refusal(wrong), { code: 4401, reason: 'the token is not valid' }, wrong);
		for (const scope of ['upload', 'admin']) {
			const closed = await refusal((await newToken([scope])).token);
			assert.equal(closed.code, 4403);
			assert.match(closed.reason, /scope read/);
		}
		assert.equal((await refusal(token, { at: 999999999 })).code, 4404);
		const raw = await open(token);
		raw.send({ t: 'auth', token: anna.token });
		assert.match((await raw.waitClosed()).reason, /connect again/);
		const person = await RawClient.open(gateway, anna, fid);
		person.send({ t: 'auth', token });
		assert.equal((await person.waitClosed()).code, 4401);
	});

	test('unknown ones count for the network, which is refused', async () => {
		const headers = { 'x-forwarded-for': '192.0.2.77' };
		const codes = [];
		while (codes.at(-1) !== 1013 && codes.length < 200) codes.push((await refusal(`pgs_${String(codes.length).padStart(42, 'y')}A`, { headers })).code);
		assert.ok(codes.length > 60 && codes.length < 200 && codes.slice(0, -1).every((code) => code === 4401), codes.join());
		const { token } = await newToken(['read']);
		await done(200, 'GET', '/v2/sheets', undefined, { token });
		const raw = await hello(token, { headers });
		await raw.next('hello'); // a token that is known is not looked up
		raw.terminate();
	});

	test('of a message in fragments that begins before the answer, no part is taken for another message', async () => {
		const { token } = await newToken(['read']);
		const sheets = new PsqlSession(cluster);
		await sheets.query('BEGIN');
		const fragments = (raw, text) => {
			raw.socket.send(text.slice(0, 5), { fin: false });
			raw.socket.send(text.slice(5));
		};
		let raw;
		try {
			await whileLocked('sheet.access_token', async () => {
				raw = await hello(token);
				await waits('sheet.access_token');
				raw.socket.send('{"t":"who","u', { fin: false });
				await read(raw);
				await sheets.query('LOCK TABLE sheet.sheet IN ACCESS EXCLUSIVE MODE');
			});
			await waits('sheet.sheet'); // the token is valid, and the sheet is looked at
			raw.socket.send('id":1}');
			raw.socket.send('{"t":"unlock","row"', { fin: false });
			await read(raw);
		} finally {
			await sheets.close();
		}
		await raw.next('hello');
		raw.socket.send(':0,"col":0}');
		fragments(raw, JSON.stringify({ t: 'who', uid: anna.uid }));
		assert.equal((await raw.next('user')).uid, anna.uid);
		raw.terminate();
	});

	test('what is sent before the answer is ignored, and a client may leave before it', async () => {
		const { token } = await newToken(['edit']);
		const raw = await whileLocked('sheet.access_token', async () => {
			const early = await hello(token);
			await waits('sheet.access_token');
			early.op(1, [{ row: 0, col: 0, content: 'early' }]);
			early.send({ t: 'hello', v: 3, token, client, acked: 0, since: 0 });
			await read(early);
			return early;
		});
		await raw.next('hello');
		assert.equal(await answers(raw), anna.uid);
		assert.deepEqual(raw.messages.filter(({ t }) => t !== 'hello' && t !== 'user'), []);
		for (let i = 0; i < 20; i++) (await hello(`pgs_${String(i).padStart(42, 'z')}A`)).terminate();
		const tokens = await Promise.all(Array.from({ length: 10 }, () => newToken(['read'])));
		for (const made of tokens) (await hello(made.token)).terminate();
		assert.equal(await answers(raw), anna.uid);
		raw.terminate();
	});
});

describe('sheets', () => {
	test('are made, described, renamed, moved to the trash, recovered and purged', async () => {
		const made = await api('POST', '/v2/sheets', { name: 'Plan', rows: 20, cols: 5 });
		assert.equal(made.status, 201);
		const { id } = made.json;
		const path = `/v2/sheets/${id}`;
		assert.equal(made.headers.location, path);
		const { createdAt, updatedAt, ...rest } = await done(200, 'GET', path);
		assert.deepEqual(rest, { id, name: 'Plan', owner: anna.username, role: 'owner', trashed: false, book: null, seq: 1, rows: 20, cols: 5 });
		assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 600000 && Date.parse(updatedAt) >= Date.parse(createdAt));
		await done(200, 'PATCH', path, { name: 'Other plan' });
		assert.equal((await done(200, 'GET', path)).name, 'Other plan');
		await done(409, 'POST', `${path}/recover`, {});
		await done(409, 'DELETE', `${path}?purge=true`);
		await done(400, 'DELETE', `${path}?purge=yes`);
		assert.equal((await api('DELETE', path)).status, 204);
		await done(410, 'DELETE', path);
		assert.deepEqual([(await done(200, 'GET', path)).trashed, (await done(410, 'GET', `${path}/cells?range=A1`)).success], [true, false]);
		await done(410, 'PUT', `${path}/cells?range=A1`, { values: [[1]] });
		assert.equal((await api('POST', `${path}/recover`)).status, 204, 'without a body');
		assert.equal((await done(200, 'GET', path)).trashed, false);
		assert.equal((await api('DELETE', path)).status, 204);
		assert.equal((await api('DELETE', `${path}?purge=true`)).status, 204);
		await done(404, 'GET', path);
	});

	test('are listed in pages', async () => {
		const carl = await register(gateway);
		const ids = [];
		for (const name of ['a', 'b', 'c']) ids.push((await done(201, 'POST', '/v2/sheets', { name }, { token: carl.token })).id);
		const all = await done(200, 'GET', '/v2/sheets', undefined, { token: carl.token });
		assert.deepEqual([all.sheets.map(({ id }) => id).sort(), all.next], [ids.sort(), null]);
		assert.deepEqual(Object.keys(all.sheets[0]).sort(), ['book', 'createdAt', 'id', 'name', 'owner', 'role', 'trashed', 'updatedAt']);
		const seen = [];
		for (let next = ''; next !== null;) {
			const page = await done(200, 'GET', `/v2/sheets?limit=2${next && `&after=${encodeURIComponent(next)}`}`, undefined, { token: carl.token });
			seen.push(...page.sheets.map(({ id }) => id));
			next = page.next;
		}
		assert.deepEqual(seen.sort(), ids.sort());
		for (const query of ['limit=0', 'limit=1001', 'limit=x', 'after=x']) await done(400, 'GET', `/v2/sheets?${query}`);
	});

	test('members are listed, set and removed', async () => {
		const path = `/v2/sheets/${fid}/members`;
		const name = encodeURIComponent(ben.username);
		assert.equal((await api('PUT', `${path}/${name}`, { role: 'viewer' })).status, 204);
		const listed = await done(200, 'GET', path, undefined, { token: ben.token });
		assert.deepEqual(listed.members.map(({ username, role }) => [username, role]), [[anna.username, 'owner'], [ben.username, 'viewer']]);
		const refused = await done(403, 'PUT', `/v2/sheets/${fid}/cells?range=A1`, { values: [[1]] }, { token: ben.token });
		assert.match(refused.data, /"editor"; yours is "viewer"/);
		await done(403, 'DELETE', `/v2/sheets/${fid}`, undefined, { token: ben.token });
		await done(400, 'PUT', `${path}/${name}`, { role: 'king' });
		await done(400, 'PUT', `${path}/${name}`, {});
		await done(404, 'PUT', `${path}/nobody%20of%20this%20name`, { role: 'viewer' });
		await done(409, 'PUT', `${path}/${encodeURIComponent(anna.username)}`, { role: 'viewer' });
		assert.equal((await api('DELETE', `${path}/${name}`)).status, 204);
		await done(403, 'GET', `/v2/sheets/${fid}`, undefined, { token: ben.token });
	});

	test('versions are saved, compared and restored', async () => {
		const path = `/v2/sheets/${fid}`;
		assert.equal((await put('A1', [['x', 'y']])).status, 200);
		const { version } = await done(201, 'POST', `${path}/versions`, { label: 'first' });
		await done(409, 'POST', `${path}/versions`);
		assert.equal((await done(200, 'GET', `${path}/versions`)).versions[0].label, 'first');
		assert.equal((await put('A1', [['z', null]])).status, 200);
		assert.deepEqual(await done(200, 'GET', `${path}/diff?from=${version}`), {
			cells: [{ a1: 'A1', old: 'x', new: 'z' }, { a1: 'B1', old: 'y', new: '' }],
			next: null,
		});
		assert.deepEqual(await done(200, 'GET', `${path}/diff?from=${version}&limit=1`), { cells: [{ a1: 'A1', old: 'x', new: 'z' }], next: 'A1' });
		assert.deepEqual((await done(200, 'GET', `${path}/diff?from=${version}&limit=1&after=A1`)).cells, [{ a1: 'B1', old: 'y', new: '' }]);
		assert.deepEqual((await done(200, 'GET', `${path}/diff?from=${version}&to=${version}`)).cells, []);
		const restored = await done(200, 'POST', `${path}/rollback`, { version });
		assert.ok(restored.version > version);
		assert.deepEqual(await cells('A1:B1'), [[0, 0, 'x'], [0, 1, 'y']]);
		await done(404, 'POST', `${path}/rollback`, { version: 999 });
		await done(404, 'GET', `${path}/diff?from=999`);
		for (const query of ['', 'from=x', 'from=0', `from=${version}&to=x`, `from=${version}&limit=501`, `from=${version}&after=7`])
			await done(400, 'GET', `${path}/diff?${query}`);
		for (const body of [{}, { version: 'x' }, { version: 0 }]) await done(400, 'POST', `${path}/rollback`, body);
		await done(400, 'POST', `${path}/versions`, { label: 7 });
		await done(403, 'GET', `${path}/diff?from=${version}`, undefined, { token: ben.token });
	});

	test('of others: 403 for what exists, 404 for what does not, as for all routes', async () => {
		const routes = [['GET', ''], ['PATCH', '', { name: 'x' }], ['DELETE', ''], ['POST', '/recover', {}], ['POST', '/versions', {}], ['POST', '/rollback', { version: 1 }],
			['GET', '/diff?from=1'], ['GET', '/members'], ['PUT', '/members/x', { role: 'viewer' }], ['DELETE', '/members/x'], ['GET', '/files'],
			['PUT', '/cells?range=A1', { values: [[1]] }], ['PATCH', '/cells', { cells: [{ a1: 'A1', value: 1 }] }], ['POST', '/append', { values: [[1]] }]];
		for (const [method, path, body] of routes) {
			await done(403, method, `/v2/sheets/${fid}${path}`, body, { token: ben.token });
			await done(404, method, `/v2/sheets/999999999${path}`, body);
			await done(401, method, `/v2/sheets/${fid}${path}`, body, { token: null });
		}
	});

	test('wrong methods: 405 with those that the address takes', async () => {
		for (const [path, allow] of [
			['/v2/sheets', 'GET, HEAD, POST, OPTIONS'],
			[`/v2/sheets/${fid}`, 'GET, HEAD, PATCH, DELETE, OPTIONS'],
			[`/v2/sheets/${fid}/cells`, 'GET, HEAD, PUT, PATCH, OPTIONS'],
			[`/v2/sheets/${fid}/versions`, 'GET, HEAD, POST, OPTIONS'],
			[`/v2/sheets/${fid}/members/x`, 'PUT, DELETE, OPTIONS'],
			['/v2/tokens/1', 'DELETE, OPTIONS'],
		]) {
			const options = await api('OPTIONS', path, undefined, { token: null });
			assert.deepEqual([options.status, options.headers.allow, options.headers['access-control-allow-methods']], [204, allow, allow]);
			assert.match(options.headers['access-control-allow-headers'], /if-match/);
			for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']) {
				if (allow.includes(method)) continue;
				const answer = await api(method, path);
				assert.deepEqual([answer.status, answer.headers.allow], [405, allow], `${method} ${path}`);
			}
		}
		for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) await done(404, method, `/v2/sheets/${fid}/nothing`);
		const head = `Host: ${gateway.host}\r\nAuthorization: Bearer ${anna.token}\r\n`;
		assert.equal((await rawExchange(gateway, `PUT /v2/sheets/${fid}/cells?range=A1 HTTP/1.1\r\n${head}\r\n`)).status, 411);
		assert.equal((await rawExchange(gateway, `POST /v2/sheets/${fid}/versions HTTP/1.1\r\n${head}\r\n`)).status, 201, 'the body may be left out');
		await done(400, 'DELETE', `/v2/sheets/${fid}`, {});
	});
});

describe('writing cells', () => {
	test('PUT sets a rectangle: typed and raw values', async () => {
		const values = [['text', 1.5, true], [null, '=A1', '12'], ["'quoted", 0.1 + 0.2, -1e21]];
		const typed = await put('B2:D4', values);
		assert.deepEqual([typed.status, typed.json], [200, { seq: 9, cells: 9, range: 'B2:D4' }]);
		assert.equal(typed.headers.etag, '"9"');
		assert.deepEqual(await cells(), [[1, 1, 'text'], [1, 2, '1.5'], [1, 3, 'TRUE'], [2, 2, '=A1'], [2, 3, '12'], [3, 1, "'quoted"], [3, 2, '0.30000000000000004'], [3, 3, '-1e21']]);
		// The second one changes nothing but what is a text only if it is raw.
		await put('B2', values, {}, '&input=raw');
		assert.deepEqual(await cells('B3:D4'), [[2, 2, "'=A1"], [2, 3, "'12"], [3, 1, "''quoted"], [3, 2, '0.30000000000000004'], [3, 3, '-1e21']]);
		// One cell names the corner: rows may have different lengths, and other cells stay.
		assert.deepEqual((await put('A1', [['a'], [], ['b', 'c']])).json.range, 'A1:B3');
		assert.deepEqual(await cells('A1:B3'), [[0, 0, 'a'], [1, 1, 'text'], [2, 0, 'b'], [2, 1, 'c']]);
		// A rectangle is cleared.
		await put('A1:B1', [[null, null]]);
		assert.deepEqual(await cells('A1:B1'), []);
	});

	test('numbers and texts are what they are on the page', async () => {
		const { numberContent, textContent } = await pageModule('content.ts');
		const random = () => (Math.random() - 0.5) * 10 ** Math.floor(Math.random() * 80 - 40);
		const numbers = [0, -0, 1e15, 999999999999999, 1e21, 1e-6, 1e-7, 123456789012345680, 5e-324, 1.7976931348623157e308, 0.000001234567890123456, -1.5e-7, 2 ** 53, ...Array.from({ length: 500 }, random)];
		await put('A1', numbers.map((number) => [number]));
		assert.deepEqual(await cells(`A1:A${numbers.length}`), numbers.map((number, row) => [row, 0, numberContent(number)]));
		const words = ['', 'x', '=', '=A1', "'", "'x", 'TRUE', 'true', '0', '00', '007', '-0', '+1', '1.', '.5', '1.50', '1e5', '1E+05', '1e1234', '1e999', '1e-400', '0e-400', '0x1F', '1,000', ' 1', '1 ',
			'12345678901234567', '123456789012345680000', '1.2345678901234568e20', '0.30000000000000004', '0.300000000000000040', '9007199254740993', '1900-01-01', '1899-12-31', '2023-02-29', '2024-02-29', '1900-02-29', '2024-2-1',
			'2024-13-01', '2024-01-00', '2024-01-31T10:30', '2024-01-31 24:00', '2024-01-31 23:59:59.999', '2024-01-31 1:00', '2024-01-31x', '2024-01-31 ', '10:30', '9999:59', '10000:00', '1:60', '1:00:60', '1:00:00.1234', '1:00:00.', '1:0', '10:30:', '½', '１２'];
		const patterns = '0123456789.:-+eE =\'T';
		for (let i = 0; i < 500; i++) words.push(Array.from({ length: 1 + Math.random() * 6 }, () => patterns[Math.floor(Math.random() * patterns.length)]).join(''));
		await put('B1', words.map((word) => [word]), {}, '&input=raw');
		const stored = words.map((word, row) => [row, 1, textContent(word)]).filter(([, , content]) => content !== '');
		assert.deepEqual(await cells(`B1:B${words.length}`), stored);
	});

	test('PATCH sets single cells; the last value of a cell counts', async () => {
		const answer = await done(200, 'PATCH', `/v2/sheets/${fid}/cells`, { cells: [{ a1: 'B2', value: 'x' }, { a1: 'z99', value: 7 }, { a1: '$B$2', value: 'y' }] });
		assert.equal(answer.cells, 3);
		assert.deepEqual(await cells('A1:Z99'), [[1, 1, 'y'], [98, 25, '7']]);
	});

	test('append adds rows below the last content', async () => {
		assert.deepEqual(await done(200, 'POST', `/v2/sheets/${fid}/append`, { values: [['a', 1], ['b', 2]] }), { seq: 5, cells: 4, row: 0, range: 'A1:B2' });
		await put('C7', [['x']]);
		assert.deepEqual((await done(200, 'POST', `/v2/sheets/${fid}/append?column=c`, { values: [['c']] })).range, 'C8');
		assert.deepEqual(await cells('A8:C9'), [[7, 2, 'c']]);
		for (const column of ['', '1', 'A1', 'XFE', '$A', 'ABCDEFGH']) await done(400, 'POST', `/v2/sheets/${fid}/append?column=${column}`, { values: [[1]] });
		await put('A16777216', [['the last row']]);
		await done(400, 'POST', `/v2/sheets/${fid}/append`, { values: [[1]] });
	});

	test('appends of 8 clients at once never meet', async () => {
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'editor' }, 12);
		const each = 12;
		const client = async (number) => {
			const { token } = number % 2 ? anna : ben;
			for (let i = 0; i < each;) {
				const answer = await api('POST', `/v2/sheets/${fid}/append`, { values: [[`${number}.${i}`, number], [`${number}.${i}+`, number]] }, { token });
				if (answer.status === 503) continue; // too much is under way
				assert.equal(answer.status, 200, answer.text);
				i++;
			}
		};
		await Promise.all([...Array(8).keys()].map(client));
		const content = await cells('A1:B1000');
		const rows = content.filter(([, col]) => col === 0).map(([row, , text]) => [row, text]);
		assert.deepEqual(rows.map(([row]) => row), [...Array(8 * each * 2).keys()], 'no row is free, none is overwritten');
		assert.equal(new Set(rows.map(([, text]) => text)).size, rows.length);
		for (let i = 0; i < rows.length; i += 2) assert.equal(rows[i + 1][1], `${rows[i][1]}+`, 'rows of one request are together');
	});

	test('If-Match: only if nobody has set the cells since', async () => {
		const { seq } = (await put('A1:B1', [['a', 'b']])).json;
		const since = (etag) => ({ headers: { 'if-match': etag } });
		await put('C1', [['elsewhere']]);
		assert.equal((await put('A1', [['a2']], since(`"${seq}"`))).status, 200, 'other cells have changed');
		const failed = await put('A1:B1', [['a3', 'b3']], since(`"${seq}"`));
		assert.deepEqual([failed.status, failed.json.code], [412, 'changed']);
		assert.deepEqual(await cells('A1:B1'), [[0, 0, 'a2'], [0, 1, 'b']], 'nothing of it is stored');
		const { etag } = (await api('GET', `/v2/sheets/${fid}/cells?range=A1:B1`)).headers;
		assert.equal((await api('PATCH', `/v2/sheets/${fid}/cells`, { cells: [{ a1: 'B1', value: 'b4' }] }, since(etag))).status, 200, 'the ETag of GET');
		assert.equal((await api('POST', `/v2/sheets/${fid}/append`, { values: [[1]] }, since(etag))).status, 412, 'for rows any edit counts');
		assert.equal((await put('B1', [['any']], since(`W/"${seq}"`))).status, 412, 'as a proxy that compresses writes it');
		assert.equal((await put('A1', [['any']], since('*'))).status, 200);
		for (const wrong of ['x', '""', '"x"', `"${seq}", "${seq}"`, '"1', '"99999999999999999999"', `"${seq}"x`])
			assert.equal((await put('A1', [['x']], since(wrong))).status, 400, wrong);
		// Two clients that have read the same: one of them writes.
		for (let round = 0; round < 5; round++) {
			const now = (await api('GET', `/v2/sheets/${fid}/cells?range=A1`)).headers.etag;
			const answers = await Promise.all(['one', 'two'].map((text) => put('A1', [[`${text} ${round}`]], since(now))));
			assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 412]);
			assert.equal((await cells('A1'))[0][2], `${answers[0].status === 200 ? 'one' : 'two'} ${round}`);
		}
	});

	test('open editors see what programs write, and programs what they write', async () => {
		const editor = await RawClient.open(gateway, anna, fid, { client: 4711 });
		const { seq } = (await put('B2', [['by a program']])).json;
		const heard = await editor.next('edits', (message) => message.edits.some(({ content }) => content === 'by a program'));
		assert.equal(heard.seq, seq);
		editor.op(1, [{ row: 0, col: 0, content: 'by a person' }]);
		await editor.next('ack');
		assert.deepEqual(await cells('A1:B2'), [[0, 0, 'by a person'], [1, 1, 'by a program']]);
		assert.equal((await done(200, 'POST', `/v2/sheets/${fid}/append`, { values: [['next']] })).row, 2);
		editor.terminate();
	});

	test('a sheet that a transaction holds: 503 with Retry-After, and nobody else waits', async () => {
		const session = new PsqlSession(cluster);
		await session.query(`BEGIN; SELECT sheet.set(${fid}, 'A1', 'held')`);
		const free = await newSheet(gateway, ben);
		const waiting = api('POST', `/v2/sheets/${fid}/append`, { values: [['x']] }, { token: anna.token });
		assert.equal((await api('PUT', `/v2/sheets/${free}/cells?range=A1`, { values: [[1]] }, { token: ben.token })).status, 200);
		const answer = await waiting;
		assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '1'], answer.text);
		const patient = put('A1', [['after it']]);
		await session.query('COMMIT');
		if ((await patient).status === 503) assert.equal((await put('A1', [['after it']])).status, 200);
		assert.deepEqual(await cells('A1'), [[0, 0, 'after it']]);
		await session.close();
	});

	test('limits and malformed bodies', async () => {
		const path = `/v2/sheets/${fid}`;
		for (const body of ['', 'x', '[]', '{"values":[[1]]', { values: 1 }, { values: [1] }, { values: [] }, { values: [[]] }, { values: [[{}]] }, { values: [[[1]]] }, {}, '{"values":[[1e999]]}'])
			await done(400, 'PUT', `${path}/cells?range=A1`, body);
		for (const range of ['', 'range=', 'range=A0', 'range=x', 'row=1&col=1']) await done(400, 'PUT', `${path}/cells?${range}`, { values: [[1]] });
		for (const range of ['A1:B1', 'A1:A2', 'A1:B2', 'A:A', '1:1']) await done(400, 'PUT', `${path}/cells?range=${range}`, { values: [[1]] });
		for (const range of ['XFD1', 'A16777216']) await done(400, 'PUT', `${path}/cells?range=${range}`, { values: [[1, 2], [3, 4]] });
		for (const input of ['', 'RAW', 'x']) await done(400, 'PUT', `${path}/cells?range=A1&input=${input}`, { values: [[1]] });
		for (const list of [1, [], [1], [{}], [{ a1: 'A1' }], [{ value: 1 }], [{ a1: 'A1:B2', value: 1 }], [{ a1: 1, value: 1 }], [{ a1: 'A1', value: {} }]])
			await done(400, 'PATCH', `${path}/cells`, { cells: list });
		await done(400, 'PUT', `${path}/cells?range=A1`, { values: [['x'.repeat(32768)]] });
		await done(413, 'PUT', `${path}/cells?range=A1`, { values: [Array(16385).fill(1)] });
		await done(413, 'PUT', `${path}/cells?range=A1`, { values: [['x'.repeat(1 << 20)]] });
		assert.deepEqual(await cells(), [], 'nothing of them is stored');
		const most = await put('A1', Array(128).fill(Array(128).fill(1)));
		assert.deepEqual([most.status, most.json.cells, most.json.range], [200, 16384, 'A1:DX128']);
	});

	test('the body is not read for who has no token', async () => {
		const large = { values: [Array(16384).fill(1)] };
		const elapsed = async (token) => {
			const begin = gateway.processorMs();
			for (let i = 0; i < 5; i++) await api('PUT', `/v2/sheets/${fid}/cells?range=A1`, large, { token });
			return gateway.processorMs() - begin;
		};
		const refused = await elapsed(`pgs_${'C'.repeat(43)}`);
		const written = await elapsed(anna.token);
		assert.ok(refused < written, `${refused} ms for what is refused, ${written} ms for what is written`);
		await done(401, 'PUT', `/v2/sheets/${fid}/cells?range=A1`, { token: anna.token, values: [[1]] }, { token: null });
	});
});

describe('the example in Python', () => {
	const run = (token, { server = gateway.url, sheet = fid } = {}) =>
		new Promise((resolve) => {
			execFile('python3', [path.join(repository, 'clients/python/example.py'), server, String(sheet)], { env: { ...process.env, PG_SHEET_TOKEN: token } }, (error, stdout, stderr) =>
				resolve({ code: error?.code ?? 0, stdout, stderr }),
			);
		});
	test('appends rows, reads CSV, and counts without losing a change of others', async () => {
		const { token } = await newToken(['edit']);
		const first = await run(token);
		assert.deepEqual([first.code, first.stdout], [0, "appended A1:B2\n['apples', '3']\n['pears', '4.5']\nvisits: 1\n"], first.stderr);
		const all = await Promise.all(Array.from({ length: 4 }, () => run(token)));
		assert.deepEqual(all.map(({ code, stderr }) => [code, stderr]), Array(4).fill([0, '']));
		assert.deepEqual(all.map(({ stdout }) => /visits: (\d+)/.exec(stdout)[1]).sort(), ['2', '3', '4', '5']);
		assert.equal((await cells('A1:B100')).length, 20);
	});
	test('tells why it is refused', async () => {
		const { token } = await newToken(['edit']);
		for (const [given, where, text] of [
			[(await newToken(['read'])).token, {}, /^the token has not the scope edit.*\(403: .+\)\n$/],
			[`pgs_${'D'.repeat(43)}`, {}, /^the token is wrong.*\(401: .+\)\n$/],
			[token, { sheet: 999999 }, /^there is no such sheet \(404: .+\)\n$/],
			[token, { server: 'http://127.0.0.1:1' }, /^no connection to http:\/\/127.0.0.1:1: .+\n$/],
			['', {}, /^PG_SHEET_TOKEN is empty/],
		]) {
			const { code, stderr } = await run(given, where);
			assert.equal(code, 1);
			assert.match(stderr, text);
		}
	});
});
