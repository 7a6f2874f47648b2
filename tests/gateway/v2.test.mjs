/* Protocol v2: who may come, operations and their answers, blocks, resuming, locks, presence; with v1 on the same sheet. */
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, newSheet, post, register, request, shareByLink, signToken, tokenParts } from '../lib/client.mjs';
import { RawClient, RefusedError, gridOf, sheetClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;
let silent;
let silentSince;
const opened = [];

before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'lease-seconds': 5, 'send-queue-bytes': 1 << 20 } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
	silent = new RawClient(gateway, 1);
	silentSince = Date.now();
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});
afterEach(() => {
	for (const client of opened.splice(0)) (client.terminate ?? client.close).call(client);
});

const keep = (client) => (opened.push(client), client);
const raw = async (user, options) => keep(await RawClient.open(gateway, user, fid, options));
const whole = (user, options) => keep(sheetClient(gateway, user, fid, options));
const v1 = async (user) => keep(await Editor.open(gateway, user, fid));
const set = (row, col, content) => ({ row, col, content });
const sqlGrid = async () =>
	(await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid}) WHERE content <> ''`))
		.map(({ row, col, content }) => [`${row},${col}`, content])
		.sort(([a], [b]) => (a < b ? -1 : 1));
let lastClient = 100;
const someClient = () => ++lastClient;

describe('greeting', () => {
	for (const encoding of ['json', 'binary'])
		test(`the hello tells what is needed, in the form in which one came: ${encoding}`, async () => {
			const a = await raw(anna, { encoding, client: someClient() });
			const [{ last_seq, epoch }] = await cluster.rows(
				`SELECT (SELECT max(last_seq) FROM sheet.log_batch WHERE sheet_id = ${fid}) AS last_seq, epoch FROM sheet.ownership WHERE sheet_id = ${fid}`,
			);
			assert.equal(a.lastWasBinary, encoding === 'binary');
			const { session, name, ...rest } = a.hello;
			assert.ok(session > 0 && typeof name === 'string');
			assert.deepEqual(rest, {
				t: 'hello',
				v: 2,
				uid: anna.uid,
				role: 'owner',
				seq: last_seq,
				epoch,
				rows: 10,
				cols: 10,
				landed: 0,
				resumed: false,
				retention: 604800,
				lease: 5,
				maxEdits: 16384,
				maxBytes: 1 << 20,
				peers: [],
				locks: [],
			});
		});

	test('what is wrong with it is told by the close code', async () => {
		const hello = { t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 };
		const expect = async (code, first, sheet = fid) => {
			const client = keep(new RawClient(gateway, sheet));
			await client.opened;
			client.sendRaw(typeof first === 'string' ? first : JSON.stringify(first));
			const { code: actual, reason } = await client.waitClosed();
			assert.equal(actual, code, `${JSON.stringify(first).slice(0, 100)}: ${reason}`);
			assert.ok(reason.length > 0);
		};
		const { header, claims } = tokenParts(anna.token);
		const expired = signToken(header, { ...claims, exp: Math.floor(Date.now() / 1000) - 10 }, cluster.jwtKey);
		const stranger = await newSheet(gateway, ben);
		await call(gateway, '/sharelink', { token: ben.token, fid: stranger, role: null }, 12);
		await expect(4401, { ...hello, token: 'a.b.c' });
		await expect(4401, { ...hello, token: expired });
		await expect(4403, hello, stranger);
		await expect(4404, hello, 999999);
		await expect(4400, { ...hello, v: 6 });
		await expect(4400, { t: 'who', uid: 1 });
		await expect(4400, 'hello');
		await expect(1009, { ...hello, token: 'x'.repeat(8300) });
	});

	test('a token is not looked for in the address', async () => {
		const client = keep(new RawClient(gateway, `${fid}&token=${anna.token}`));
		await client.opened;
		client.send({ t: 'who', uid: anna.uid });
		assert.equal((await client.waitClosed()).code, 4400);
	});

	test('a new token is taken; one of another account ends the connection', async () => {
		const a = await raw(anna);
		a.send({ t: 'auth', token: anna.token });
		assert.equal((await a.next('authed')).expires, tokenParts(anna.token).claims.exp);
		a.send({ t: 'auth', token: ben.token });
		assert.equal((await a.waitClosed()).code, 4401);
	});

	test('tokens that come faster than the database answers are one question to it', async () => {
		const a = await raw(anna);
		const session = cluster.psqlSession();
		await session.query('BEGIN; LOCK TABLE sheet.account IN ACCESS EXCLUSIVE MODE');
		const sent = 40000; // more than may wait for the database
		for (let i = 0; i < sent; i++) a.send({ t: 'auth', token: anna.token });
		const authed = () => a.messages.filter((message) => message.t === 'authed').length;
		await waitUntil(() => a.closed || authed() === sent, 'all to be taken');
		await session.query('COMMIT');
		await session.close();
		assert.equal(a.closed, null);
		a.op(1, [set(0, 0, 'x')]);
		await a.next('nack');
	});

	// The gateway looks for 250 ms (lock_timeout), and closes with 1012 if it has not heard of the revocation by then.
	test('a token that is revoked while its account is being looked at does not stay', async () => {
		let code;
		for (let attempt = 0; attempt < 20 && code !== 4401; attempt++) {
			const cara = await register(gateway);
			await cluster.psql(`SELECT sheet.share(${fid}, '${cara.username}', 'editor')`);
			await call(gateway, '/getuser', { token: cara.token }, 10); // remembered until the gateway hears of a change
			const [session, revoking] = [cluster.psqlSession(), cluster.psqlSession()];
			await revoking.query('SELECT 1');
			await session.query('BEGIN; LOCK TABLE sheet.sheet IN ACCESS EXCLUSIVE MODE');
			const c = keep(new RawClient(gateway, fid));
			await c.opened;
			c.send({ t: 'hello', v: 2, token: cara.token, client: 0, acked: 0, since: 0 });
			await revoking.query(`
				DO $$ BEGIN
					WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'sheet.sheet'::regclass)
						AND clock_timestamp() < now() + '2 s' LOOP END LOOP;
				END $$;
				SELECT sheet.account_revoke_tokens(${cara.uid})`);
			// This request needs no table that is locked, before and after the gateway hears of it.
			const refused = async () => (await post(gateway, '/getuser', { token: cara.token })).json.msg === 1;
			await waitUntil(refused, 'the gateway to hear of it').finally(() => session.query('COMMIT'));
			await Promise.all([session.close(), revoking.close()]);
			({ code } = await c.waitClosed());
			assert.ok([4401, 1012].includes(code), `closed with ${code}`);
		}
		assert.equal(code, 4401);
	});
});

describe('operations', () => {
	for (const encoding of ['json', 'binary'])
		test(`one is committed as a whole, acknowledged, and told to all in both forms: sent as ${encoding}`, async () => {
			const a = await raw(anna, { encoding, client: someClient() });
			const others = [await raw(ben, { encoding: 'json' }), await raw(ben, { encoding: 'binary' })];
			const old = await v1(ben);
			const edits = [
				set(1, 1, 'plain "text"'),
				{ row: 1, col: 2, content: '你好 😀', style: { bold: true } },
				{ row: 1, col: 1, style: { color: 'red' } },
				{ row: 30, col: 20 },
			];
			a.op(1, edits);
			const ack = await a.next('ack');
			assert.deepEqual(ack, { t: 'ack', n: 1, seq: a.hello.seq + 4 });
			for (const client of [a, ...others]) {
				client.position = 0;
				assert.deepEqual(await client.next('edits'), {
					t: 'edits',
					seq: ack.seq,
					more: false,
					edits: edits.map((edit) => ({ uid: anna.uid, ...edit })),
				});
			}
			const { body } = await old.nextModify(1, 2, '你好 😀');
			assert.deepEqual(body.info, { bold: true });
			const log = await cluster.rows(
				`SELECT kind, "row", col, new, style FROM sheet.log_edits(${fid}) WHERE seq > ${a.hello.seq} ORDER BY seq`,
			);
			assert.deepEqual(
				log.map(({ kind, row, col }) => [kind, row, col]),
				[['set', 1, 1], ['set', 1, 2], ['style', 1, 1], ['resize', 30, 20]],
			);
			assert.deepEqual(JSON.parse(log[2].style), { color: 'red' });
		});

	test('the name of an author elsewhere that is not read yet holds up clients of version 1 alone', async () => {
		const cara = { uid: Number(await cluster.psql("SELECT sheet.account_create('elsewhere', NULL, NULL)")), username: 'elsewhere' }; // whom the gateway does not know
		await cluster.psql(`CREATE ROLE elsewhere LOGIN; SELECT sheet.link_account('elsewhere', 'elsewhere'); SELECT sheet.share(${fid}, 'elsewhere', 'editor')`);
		const [a, old] = [await raw(anna, { client: someClient() }), await v1(ben)];
		// The server processes that the gateway asks for the name, which wait for locks for 250 ms only.
		let pids = [];
		await waitUntil(async () => {
			pids = (await cluster.psql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet reads%' AND state = 'idle'")).split('\n').map(Number);
			return pids.length === 3;
		}, 'all of them to be there');
		for (const pid of pids) process.kill(pid, 'SIGSTOP');
		try {
			await cluster.psql(`SELECT sheet.set(${fid}, 0, 0, 'by cara')`, { role: 'elsewhere' });
			assert.deepEqual((await a.next('edits')).edits, [{ uid: cara.uid, ...set(0, 0, 'by cara') }]);
			old.modify(0, 2, 'by ben', 17);
			a.op(1, [set(0, 1, 'by anna')]);
			await a.next('ack');
			assert.deepEqual(old.modifies(), []);
		} finally {
			for (const pid of pids) process.kill(pid, 'SIGCONT');
		}
		await old.nextModify(0, 1, 'by anna');
		await waitUntil(() => old.modifies().length === 3, 'all edits');
		assert.deepEqual(old.modifies()[0], { row: 0, col: 0, content: 'by cara', info: null, username: cara.username });
		assert.deepEqual(
			old.modifies().slice(1).sort((x, y) => x.col - y.col),
			[
				{ row: 0, col: 1, content: 'by anna', info: null, username: anna.username },
				{ row: 0, col: 2, content: 'by ben', info: 17, username: ben.username },
			],
		);
	});

	test('a refused one has no effect, stops the line, and brings what the cells hold', async () => {
		const a = await raw(anna, { client: someClient() });
		const b = await raw(ben);
		await cluster.psql(`SELECT sheet.set(${fid}, 'B2', 'theirs')`);
		b.send({ t: 'lock', row: 1, col: 1 });
		await a.next('lock', ({ session }) => session === b.hello.session);
		a.op(1, [set(0, 0, 'before')]);
		a.op(2, [set(0, 1, 'half'), set(1, 1, 'mine')]);
		a.op(3, [set(0, 2, 'after')]);
		const nack = await a.next('nack');
		assert.deepEqual(nack, { t: 'nack', n: 2, reason: 'locked', row: 1, col: 1, block: true });
		const block = await a.next('block');
		assert.deepEqual(
			[block.id, block.row, block.col, block.toRow, block.toCol, block.cells],
			[0, 0, 1, 1, 1, [set(1, 1, 'theirs')]],
		);
		a.position = 0;
		assert.equal((await a.next('ack')).n, 1);
		a.op(3, [set(0, 2, 'after')], { nacks: 1 });
		assert.equal((await a.next('ack')).n, 3);
		assert.deepEqual(await sqlGrid(), [['0,0', 'before'], ['0,2', 'after'], ['1,1', 'theirs']]);
	});

	test('each reason of a refusal', async () => {
		const a = await raw(anna, { client: someClient() });
		let nacks = 0;
		const refused = async (reason, edits, block) => {
			a.op(1, edits, { nacks });
			const nack = await a.next('nack');
			nacks++;
			assert.deepEqual([nack.n, nack.reason, nack.block], [1, reason, block]);
		};
		await refused('range', [set(16777216, 0, 'x')], false);
		await refused('size', [set(3, 3, 'x'.repeat(32768))], true);
		await refused('size', Array.from({ length: 16385 }, (_, i) => set(i, 0, '')), true);
		const share = (role) => call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role }, 12);
		await call(gateway, '/sharelink', { token: anna.token, fid, role: null }, 12);
		await share('viewer');
		const b = await raw(ben, { client: someClient() });
		assert.equal(b.hello.role, 'viewer');
		b.op(1, [set(0, 0, 'x')]);
		assert.equal((await b.next('nack')).reason, 'role');
		b.send({ t: 'lock', row: 0, col: 0 });
		assert.equal((await b.next('denied')).reason, 'role');
		await share('editor');
		assert.equal((await b.next('role')).role, 'editor');
		b.op(1, [set(0, 0, 'x')], { nacks: 1 });
		assert.equal((await b.next('ack')).n, 1);
		const reader = await raw(anna);
		reader.op(1, [set(0, 0, 'y')]);
		assert.equal((await reader.next('nack')).reason, 'role', 'without a client');
	});

	test('what is malformed ends the connection with 4400', async () => {
		for (const text of ['{"t":"op","n":1,"edits":[[0,0]', '{"t":"hello","v":2,"token":"a"}', '{}']) {
			const a = await raw(anna);
			a.sendRaw(text);
			assert.equal((await a.waitClosed()).code, 4400);
		}
		const a = await raw(anna);
		a.sendRaw(`{"t":"op","n":1,"edits":[[0,0,"${'x'.repeat(1 << 20)}"]]}`);
		assert.equal((await a.waitClosed()).code, 1009);
	});

	test('one that comes again is acknowledged again, not made again', async () => {
		const client = someClient();
		const a = await raw(anna, { client });
		const b = await raw(ben, { client: someClient() });
		a.op(1, [set(0, 0, 'from a')]);
		const first = await a.next('ack');
		b.op(1, [set(0, 0, 'from b')]);
		await b.next('ack');
		a.op(1, [set(0, 0, 'from a')]);
		assert.equal((await a.next('ack')).n, 1);
		assert.deepEqual(await sqlGrid(), [['0,0', 'from b']]);
		assert.ok(first.seq > 0);
	});

	test('a second connection of a client ends the first', async () => {
		const client = someClient();
		const a = await raw(anna, { client });
		const again = await raw(anna, { client });
		assert.equal((await a.waitClosed()).code, 4409);
		again.op(1, [set(0, 0, 'x')]);
		assert.equal((await again.next('ack')).n, 1);
		const other = await raw(ben, { client });
		assert.equal(other.hello.landed, 0, 'the number is the account\'s own');
		assert.equal(again.closed, null);
	});
});

describe('blocks and resuming', () => {
	test('a large block comes in parts, all of one seq', async () => {
		const a = await raw(anna, { client: someClient(), encoding: 'binary' });
		const text = 'x'.repeat(30000);
		for (let row = 0; row < 40; row++) a.op(row + 1, [set(row, 0, `${row}${text}`)]);
		await a.next('ack', ({ n }) => n === 40);
		a.send({ t: 'get', id: 5, row: 10, col: 0, toRow: 39, toCol: 5 });
		const parts = [await a.next('block')];
		while (parts.at(-1).more) parts.push(await a.next('block'));
		assert.ok(parts.length > 2);
		assert.ok(parts.every(({ id, seq }) => id === 5 && seq === parts[0].seq));
		assert.deepEqual(
			parts.flatMap(({ cells }) => cells.map(({ row, content }) => [row, content.length])),
			Array.from({ length: 30 }, (_, i) => [i + 10, 30002]),
		);
	});

	test('a batch larger than a message is told in parts, and counts when it has ended', async () => {
		const a = await raw(anna);
		await cluster.psql(
			`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(ARRAY[repeat('y', 1000)]) FROM generate_series(1, 900)))`,
		);
		const parts = [await a.next('edits')];
		while (parts.at(-1).more) parts.push(await a.next('edits'));
		assert.ok(parts.length > 2);
		assert.equal(parts.flatMap(({ edits }) => edits).length, 900);
		assert.ok(parts.every(({ seq }) => seq === a.hello.seq + 900));
	});

	test('who was cut off hears of what came after, of all kinds, and nothing twice', async () => {
		const a = await raw(anna);
		const writer = await raw(ben, { client: someClient() });
		writer.op(1, [set(0, 0, '1'), set(0, 1, '2')]);
		const { seq } = await a.next('edits');
		a.terminate();
		writer.op(2, [set(0, 0, '3')]);
		await writer.next('ack', ({ n }) => n === 2);
		await cluster.psql(`SELECT sheet.set(${fid}, 'C3', 'SQL'); SELECT sheet.commit(${fid}, 'kept')`);
		writer.op(3, [{ row: 5, col: 5, style: { bold: true } }]);
		await writer.next('ack', ({ n }) => n === 3);
		for (const encoding of ['json', 'binary']) {
			const again = await raw(anna, { since: seq, encoding });
			assert.equal(again.hello.resumed, true);
			assert.equal(again.hello.seq, seq);
			await again.next('edits', (message) => message.seq === seq + 4);
			const told = again.messages.filter(({ t }) => t === 'edits' || t === 'version');
			assert.deepEqual(
				told.map((message) => [message.t, message.seq, message.edits?.length ?? message.label, message.more]),
				[
					['edits', seq + 3, 2, true],
					['version', seq + 3, 'kept', undefined],
					['edits', seq + 4, 1, false],
				],
			);
			again.terminate();
		}
		const level = await raw(anna, { since: seq + 4 });
		assert.equal(level.hello.resumed, true);
	});

	test('nobody is resumed from what the log does not have', async () => {
		const writer = await raw(ben, { client: someClient() });
		writer.op(1, [set(0, 0, '1')]);
		const { seq } = await writer.next('ack');
		const ahead = await raw(anna, { since: seq + 1000 });
		assert.deepEqual([ahead.hello.resumed, ahead.hello.seq], [false, seq]);
		await cluster.psql(`SELECT sheet.commit(${fid}); SELECT sheet.set(${fid}, 'A1', 'x')`);
		// A room that has not heard of it when it is trimmed begins anew, and takes nobody meanwhile.
		await ahead.next('edits', ({ edits }) => edits.some(({ content }) => content === 'x'));
		await cluster.psql(`SELECT sheet.trim(${fid}, 1)`);
		const trimmed = await raw(anna, { since: 1 });
		assert.equal(trimmed.hello.resumed, false);
	});

	test('versions are told as they are made', async () => {
		const a = await raw(anna);
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'one'); SELECT sheet.commit(${fid}, 'first')`);
		assert.deepEqual(await a.next('version'), { t: 'version', seq: a.hello.seq + 2, uid: 0, kind: 'commit', cid: 0, label: 'first' });
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'two'); SELECT sheet.rollback(${fid}, 1)`);
		const rollback = await a.next('version', ({ kind }) => kind === 'rollback');
		assert.equal(rollback.cid, 1);
		await cluster.psql("ALTER SYSTEM SET pg_sheet.version_edits = 100; ALTER SYSTEM SET pg_sheet.version_interval = 0; SELECT pg_reload_conf()");
		await cluster.psql(
			`SELECT sheet.set_range(${fid}, 'A1', (SELECT array_agg(ARRAY[i::text]) FROM generate_series(1, 300) i))`,
		);
		await waitUntil(
			async () => (await cluster.psql(`SELECT count(*) FROM sheet.version WHERE sheet_id = ${fid} AND cause = 2`)) === '1',
			'a version that is made by itself',
		);
		await cluster.psql("ALTER SYSTEM RESET ALL; SELECT pg_reload_conf()");
		const [{ seq }] = await cluster.rows(`SELECT max(seq) AS seq FROM sheet.version WHERE sheet_id = ${fid}`);
		await waitUntil(() => a.messages.some((message) => message.t === 'edits' && message.seq >= seq), 'its record');
		const told = a.messages.filter(({ t }) => t === 'version').map(({ kind }) => kind);
		assert.deepEqual(told, ['commit', 'rollback', 'commit'], 'a rollback makes a version; that of the worker is not told');
		await a.next('edits', ({ edits }) => edits.some(({ content }) => content === 'one'));
	});
});

describe('locks and presence', () => {
	test('a lock is a session\'s: not its user\'s other one\'s, nor anybody\'s of v1', async () => {
		const [a, twin, old] = [await raw(anna, { client: someClient() }), await raw(anna, { client: someClient() }), await v1(anna)];
		a.send({ t: 'lock', row: 2, col: 3 });
		const held = { t: 'lock', row: 2, col: 3, session: a.hello.session, uid: anna.uid };
		assert.deepEqual(await twin.next('lock'), held);
		assert.deepEqual((await old.nextOf('acquire')).body, { row: 2, col: 3, username: anna.username });
		twin.send({ t: 'lock', row: 2, col: 3 });
		assert.deepEqual(await twin.next('denied'), { t: 'denied', row: 2, col: 3, reason: 'locked' });
		old.modify(2, 3, 'never');
		twin.op(1, [set(2, 3, 'never')]);
		assert.equal((await twin.next('nack')).reason, 'locked');
		a.op(1, [set(2, 3, 'mine')]);
		await a.next('ack');
		const late = await raw(ben);
		assert.deepEqual(late.hello.locks, [{ row: 2, col: 3, session: a.hello.session, uid: anna.uid }]);
		a.terminate();
		assert.deepEqual(await twin.next('lock', ({ session }) => session === 0), { t: 'lock', row: 2, col: 3, session: 0, uid: 0 });
		assert.deepEqual(await sqlGrid(), [['2,3', 'mine']]);
		old.acquire(4, 4);
		assert.deepEqual(await twin.next('lock'), { t: 'lock', row: 4, col: 4, session: 0, uid: anna.uid });
		twin.op(2, [set(4, 4, 'never')], { nacks: 1 });
		assert.equal((await twin.next('nack')).reason, 'locked');
	});

	test('a lease that nobody renews ends, and all are told', async () => {
		const [a, b] = [await raw(anna), await raw(ben)];
		a.send({ t: 'lock', row: 0, col: 0 });
		await b.next('lock', ({ session }) => session !== 0);
		await b.next('lock', ({ session, uid }) => session === 0 && uid === 0, 20000);
	});

	test('comings, goings and selections are told; selections only as they are last', async () => {
		const a = await raw(anna);
		const b = await raw(ben, { encoding: 'binary' });
		assert.deepEqual(b.hello.peers, [{ session: a.hello.session, uid: anna.uid, name: anna.username }]);
		assert.deepEqual(await a.next('peer'), { t: 'peer', session: b.hello.session, uid: ben.uid, name: ben.username, here: true });
		for (let row = 0; row < 50; row++) b.send({ t: 'cursor', row, col: 1, toRow: row, toCol: 2 });
		const last = { session: b.hello.session, row: 49, col: 1, toRow: 49, toCol: 2 };
		await a.next('cursors', ({ cursors }) => JSON.stringify(cursors) === JSON.stringify([last]));
		assert.ok(a.messages.filter(({ t }) => t === 'cursors').length < 10, 'they are thinned');
		const c = await raw(anna);
		assert.deepEqual((await c.next('cursors')).cursors, [last], 'a newcomer hears of them');
		b.terminate();
		assert.equal((await a.next('peer', ({ here }) => !here)).session, b.hello.session);
		a.send({ t: 'who', uid: ben.uid });
		assert.deepEqual(await a.next('user'), { t: 'user', uid: ben.uid, name: ben.username });
		a.send({ t: 'who', uid: 4000000000 });
		assert.equal((await a.next('user')).name, '');
	});

	test('names are those of people who are to be seen in the sheet; strangers have none', async () => {
		const [stranger, member, author, old, guest, gone] = await Promise.all(Array.from({ length: 6 }, () => register(gateway)));
		const a = await raw(anna);
		const name = async ({ uid }) => {
			a.send({ t: 'who', uid });
			return (await a.next('user', (user) => user.uid === uid)).name;
		};
		for (const person of [stranger, member, author, guest, gone]) assert.equal(await name(person), '', 'has an account only');
		assert.equal(await name(anna), anna.username);
		await call(gateway, '/sharesheet', { token: anna.token, fid, username: member.username, role: 'viewer' }, 12);
		assert.equal(await name(member), member.username);
		// Who edited once, by SQL, and has no place in the sheet any more.
		await cluster.psql(`CREATE ROLE once; SELECT sheet.link_account('${old.username}', 'once'), sheet.share(${fid}, '${old.username}', 'editor');
			SET ROLE once; SELECT sheet.set(${fid}, 'A1', 'x'); RESET ROLE; SELECT sheet.unshare(${fid}, '${old.username}')`);
		assert.equal(await name(old), old.username);
		// By the sheet's link, who is here.
		await shareByLink(gateway, anna, fid, 'viewer', guest);
		await raw(guest);
		assert.equal(await name(guest), guest.username);
		for (const person of [stranger, author, gone]) assert.equal(await name(person), '');
		// Another sheet of somebody else tells nothing of this one's people, and this one nothing of theirs.
		const other = keep(await RawClient.open(gateway, stranger, await newSheet(gateway, stranger)));
		other.send({ t: 'who', uid: member.uid });
		assert.equal((await other.next('user')).name, '');
		assert.equal(await name(stranger), '');
	});
});

describe('computed values', () => {
	test('are told to all for the places of now, and stored nowhere; older ones are left out', async () => {
		const a = await raw(anna);
		const b = await raw(ben, { encoding: 'binary' });
		const calc = (client, seq, cells) => client.send({ t: 'calc', seq, cells });
		const { seq } = a.hello;
		calc(a, seq, [set(5, 0, '42'), set(5, 1, ''), set(5, 0, '43')]);
		const told = { t: 'calc', session: a.hello.session, seq, cells: [set(5, 0, '42'), set(5, 1, ''), set(5, 0, '43')] };
		assert.deepEqual(await b.next('calc'), told);
		assert.deepEqual(await a.next('calc'), told);
		await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 2); SELECT sheet.delete_rows(${fid}, 9, 1)`);
		await b.next('edits', (message) => message.seq === seq + 2);
		calc(b, seq + 2, [set(5, 0, 'newer')]);
		assert.deepEqual((await a.next('calc')).cells, [set(5, 0, 'newer')]);
		calc(a, seq, [set(3, 0, 'older'), set(4, 0, 'moved'), set(7, 0, 'gone'), set(8, 0, 'moved, too')]);
		assert.deepEqual((await b.next('calc', ({ session }) => session === a.hello.session)).cells, [set(6, 0, 'moved'), set(9, 0, 'moved, too')]);
		assert.deepEqual(await sqlGrid(), []);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.log_edits(${fid}) WHERE seq > ${seq}`), '2');
	});

	test('are refused from who may not edit, and of a state that nobody knows', async () => {
		const a = await raw(anna);
		a.send({ t: 'calc', seq: a.hello.seq + 1, cells: [set(2, 3, 'x')] });
		assert.deepEqual(await a.next('denied'), { t: 'denied', row: 2, col: 3, reason: 'base' });
		await shareByLink(gateway, anna, fid, 'viewer', ben);
		const viewer = await raw(ben);
		viewer.send({ t: 'calc', seq: viewer.hello.seq, cells: [set(2, 3, 'x')] });
		assert.deepEqual(await viewer.next('denied'), { t: 'denied', row: 2, col: 3, reason: 'role' });
		assert.ok(!a.messages.some(({ t }) => t === 'calc'));
	});
});

describe('the page\'s client', () => {
	test('clients of both protocols and both forms, SQL and newcomers end with the same cells', async () => {
		const writers = [whole(anna, { encoding: 'json' }), whole(ben, { encoding: 'binary' }), whole(anna, { encoding: 'binary' })];
		const old = [await v1(ben), await v1(anna)];
		await waitUntil(() => writers.every(({ hello }) => hello), 'hello');
		const waits = [];
		const late = [];
		for (let round = 0; round < 60; round++) {
			writers.forEach((client, i) => {
				const edits = Array.from({ length: 1 + (round % 7) }, (_, k) => set((round * 3 + k) % 8, (round + k) % 5, `${i} ${round} ${k}`));
				waits.push(client.operate(edits));
			});
			old.forEach((client, i) => client.modify(round % 8, round % 5, `v1 ${i} ${round}`));
			if (round % 20 === 10) waits.push(cluster.psql(`SELECT sheet.set(${fid}, 'B${(round % 8) + 1}', 'SQL ${round}')`));
			if (round % 20 === 5) late.push(whole(ben, { encoding: round % 40 === 5 ? 'json' : 'binary' }));
			if (round % 20 === 15) late[0].socket?.terminate();
			await new Promise(setImmediate);
		}
		await Promise.all(waits);
		for (const client of old) await client.settle(9, 9); // edits of version 1 have no answer of their own
		const truth = await sqlGrid();
		const all = [...writers, ...late];
		await waitUntil(() => all.every((client) => JSON.stringify(gridOf(client)) === JSON.stringify(truth)), 'all to agree', 10000);
		await waitUntil(() => old.every((client) => JSON.stringify(client.grid()) === JSON.stringify(truth)), 'those of version 1 to agree');
		const [{ gaps }] = await cluster.rows(
			`SELECT count(*) AS gaps FROM (SELECT seq - lag(seq) OVER (ORDER BY seq) AS step FROM sheet.log_edits(${fid})) s WHERE step <> 1`,
		);
		assert.equal(gaps, 0);
	});

	test('a refusal is told to whom it concerns; what was sent behind it lands', async () => {
		const a = whole(anna);
		const b = await raw(ben);
		await waitUntil(() => a.hello, 'hello');
		b.send({ t: 'lock', row: 0, col: 0 });
		await b.next('lock');
		const results = await Promise.allSettled([
			a.operate([set(1, 0, 'one')]),
			a.operate([set(0, 0, 'never')]),
			a.operate([set(2, 0, 'two')]),
			a.operate([set(3, 0, 'also never'), set(0, 0, 'never')]),
			a.operate([set(4, 0, 'three')]),
		]);
		assert.deepEqual(
			results.map(({ status, reason }) => (reason instanceof RefusedError ? reason.reason : status)),
			['fulfilled', 'locked', 'fulfilled', 'locked', 'fulfilled'],
		);
		assert.deepEqual(await sqlGrid(), [['1,0', 'one'], ['2,0', 'two'], ['4,0', 'three']]);
		await waitUntil(() => JSON.stringify(gridOf(a)) === JSON.stringify([['1,0', 'one'], ['2,0', 'two'], ['4,0', 'three']]), 'the grid');
	});
});

const resident = () => gateway.memory() / 1024;

test('who asks and does not read takes little memory, holds nobody up, and is answered when he reads', async () => {
	const mute = await raw(anna);
	const other = await raw(ben, { client: someClient() });
	const before = resident();
	mute.socket.pause();
	const asked = 200000;
	const question = JSON.stringify({ t: 'who', uid: ben.uid });
	for (let i = 0; i < asked; i++) mute.socket.send(question);
	for (let n = 1; n <= 50; n++) {
		other.op(n, [set(0, n % 10, `${n}`)]);
		await other.next('ack', (ack) => ack.n === n);
	}
	assert.ok(resident() - before < 8, `${before} to ${resident()} MB`);
	mute.socket.resume();
	await waitUntil(() => mute.messages.length > 10000, 'answers');
});

test('who asks for many large blocks and does not read them takes little memory, and gets them all when he reads', async () => {
	const [rows, asked] = [32, 64];
	const writer = await raw(anna, { client: someClient() });
	for (let row = 0; row < rows; row++) {
		writer.op(row + 1, Array.from({ length: 50 }, (_, col) => set(row, col, 'x'.repeat(2000))));
		await writer.next('ack', (ack) => ack.n === row + 1);
	}
	const mute = await raw(anna);
	const before = resident();
	mute.socket.pause();
	for (let id = 1; id <= asked; id++) mute.send({ t: 'get', id, row: 0, col: 0, toRow: rows - 1, toCol: 49 });
	for (let n = rows + 1; n <= rows + 50; n++) {
		writer.op(n, [set(0, 0, `${n}`)]);
		await writer.next('ack', (ack) => ack.n === n);
	}
	assert.ok(resident() - before < 40, `${before} to ${resident()} MB`);
	mute.socket.resume();
	const cells = new Map();
	for (let id = 1; id <= asked; ) {
		const block = await mute.next('block');
		assert.equal(block.id, id);
		cells.set(id, (cells.get(id) ?? 0) + block.cells.length);
		if (!block.more) id++;
	}
	assert.deepEqual([...new Set(cells.values())], [rows * 50]);
});

test('who says nothing is closed after ten seconds', async () => {
	assert.equal((await silent.waitClosed()).code, 4408);
	assert.ok(Date.now() - silentSince > 9000);
});
