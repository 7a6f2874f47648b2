/*
 * GET /v2/sheets/ID/cells: what it answers, what it refuses, and that an answer from memory is never older than what is
 * promised: not for who has been told of an edit by this gateway, not for who has lost access, not while nobody tells the
 * gateway what others do.
 */
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, login, newSheet, post, register, request, shareByLink, signToken, tokenParts } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;
const opened = [];
const keep = (client) => (opened.push(client), client);

const get = (query, { user = anna, sheet = fid, headers = {}, method = 'GET', at = gateway } = {}) =>
	request(at, method, `/v2/sheets/${sheet}/cells?${query}`, {
		headers: { ...(user ? { authorization: `Bearer ${user.token}` } : {}), ...headers },
	});

async function cellsOf(query, options) {
	const answer = await get(query, options);
	assert.equal(answer.status, 200, answer.text);
	return answer.json.cells;
}

/** A1, as the route tells it. */
const first = async (options) => (await cellsOf('range=A1', options))[0]?.[2] ?? '';

async function refusal(status, query, options) {
	const answer = await get(query, options);
	assert.equal(answer.status, status, `${query}: ${answer.text}`);
	assert.equal(answer.json.success, false);
	assert.ok(answer.json.data.length > 5, 'the reason');
	return answer;
}

/** The counters of the memory, and how they change while something is done. */
const counters = async (at = gateway) => {
	const metrics = await at.metrics();
	return Object.fromEntries(
		['hits_total', 'misses_total', 'evictions_total', 'bytes'].map((name) => [name, metrics[`pg_sheet_window_${name}`]]),
	);
};
async function counted(action) {
	const before_ = await counters();
	await action();
	const after_ = await counters();
	return { hits: after_.hits_total - before_.hits_total, misses: after_.misses_total - before_.misses_total };
}

/** Meanwhile the gateway is told nothing of what others do. */
async function withoutNews(action) {
	const pid = Number(
		await cluster.psql(`SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet follow'`),
	);
	process.kill(pid, 'SIGSTOP');
	try {
		return await action();
	} finally {
		process.kill(pid, 'SIGCONT');
	}
}

/** The window is in memory: it has been asked for, and is given again. */
async function cached(query = 'range=A1', options) {
	await waitUntil(async () => {
		const { hits } = await counted(() => cellsOf(query, options));
		return hits === 1;
	}, `${query} to be in memory`);
}

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});
afterEach(() => {
	for (const client of opened.splice(0)) client.terminate();
});

describe('what is answered', () => {
	test('the cells that hold something, at their seq, by range or by numbers', async () => {
		const text = 'a "quoted" \\ back\nslash \u0001 ünï 💡 </script>';
		await cluster.psql(`SELECT sheet.set(${fid}, 'B2', $x$${text}$x$), sheet.set(${fid}, 'C3', '=B2'), sheet.set(${fid}, 'D1', 'outside')`);
		const [{ seq }] = await cluster.rows(`SELECT max(seq) AS seq FROM sheet.log WHERE sheet_id = ${fid}`);
		const expected = {
			seq,
			rows: 10,
			cols: 10,
			row: 0,
			col: 0,
			toRow: 2,
			toCol: 2,
			cells: [
				[1, 1, text],
				[2, 2, '#BUSY!'], // a formula that nobody has computed
			],
		};
		for (const query of ['range=A1:C3', 'range=c3:a1', 'row=0&col=0&toRow=2&toCol=2', 'range=%24A%241%3AC3&styles=false']) {
			const answer = await get(query);
			assert.equal(answer.headers['content-type'], 'application/json');
			assert.deepEqual(answer.json, expected, query);
		}
		assert.deepEqual(await cellsOf('range=A1:C3&formulas=true'), [[1, 1, text], [2, 2, '=B2']]);
		assert.deepEqual(await cellsOf('row=1&col=1'), [[1, 1, text]]);
		assert.deepEqual(await cellsOf('range=XFD16777216'), []);
		assert.deepEqual(await cellsOf('range=A1:IV256'), [...expected.cells.slice(0, 0), [0, 3, 'outside'], ...expected.cells]);
	});

	test('styles on demand', async () => {
		const editor = keep(await Editor.open(gateway, anna, fid));
		editor.modify(0, 0, 'bold', { bold: true });
		editor.modify(0, 1, '', { italic: true });
		editor.modify(0, 2, 'plain');
		await editor.nextModify(0, 2);
		assert.deepEqual(await cellsOf('range=A1:C1'), [
			[0, 0, 'bold'],
			[0, 2, 'plain'],
		]);
		assert.deepEqual(await cellsOf('range=A1:C1&styles=true'), [
			[0, 0, 'bold', { bold: true }],
			[0, 1, '', { italic: true }],
			[0, 2, 'plain'],
		]);
	});

	test('HEAD tells the same, without the cells', async () => {
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'x')`);
		await waitUntil(async () => (await first()) === 'x', 'the cell');
		const whole = await get('range=A1:B2');
		const head = await get('range=A1:B2', { method: 'HEAD' });
		assert.equal(head.status, 200);
		assert.equal(head.body.length, 0);
		for (const name of ['etag', 'content-length', 'cache-control', 'content-type'])
			assert.equal(head.headers[name], whole.headers[name], name);
		assert.equal(Number(head.headers['content-length']), whole.body.length);
	});

	test('an unchanged window is 304, a changed one is not', async () => {
		const { headers } = await get('range=A1:B2');
		assert.match(headers.etag, /^"\d+-[0-9a-f]{16}"$/);
		assert.equal(headers['cache-control'], 'private, no-cache');
		for (const etag of [headers.etag, `"other", ${headers.etag}`, `W/${headers.etag}`, '*']) {
			const answer = await get('range=A1:B2', { headers: { 'if-none-match': etag } });
			assert.equal(answer.status, 304, etag);
			assert.equal(answer.body.length, 0);
			assert.equal(answer.headers.etag, headers.etag);
		}
		assert.notEqual((await get('range=A1:B3')).headers.etag, headers.etag, 'another range is another text');
		const editor = keep(await Editor.open(gateway, anna, fid));
		await editor.settle(0, 0);
		const changed = await get('range=A1:B2', { headers: { 'if-none-match': headers.etag } });
		assert.equal(changed.status, 200);
		assert.notEqual(changed.headers.etag, headers.etag);
	});

	test('the token may stand in the address', async () => {
		assert.deepEqual(await cellsOf(`range=A1&token=${anna.token}`, { user: null }), []);
	});

	test('the range may be a cell short of what is allowed, and no larger', async () => {
		assert.deepEqual(await cellsOf('row=0&col=0&toRow=65535&toCol=0'), []);
		await refusal(400, 'row=0&col=0&toRow=65536&toCol=0');
	});

	test('more than 16 MB of cells are refused', async () => {
		const large = await newSheet(gateway, anna, { rows: 600 });
		await cluster.psql(
			`DO $$ BEGIN FOR r IN 0..519 LOOP PERFORM sheet.set(${large}, r, 0, repeat('x', 32767)); END LOOP; END $$`,
		);
		await refusal(413, 'range=A1:A520', { sheet: large });
		assert.equal((await cellsOf('range=A1:A400', { sheet: large })).length, 400);
	});
});

describe('what is refused', () => {
	test('what is no range: 400', async () => {
		for (const query of [
			'',
			'range=',
			'range=A0',
			'range=A1:',
			'range=XFE1',
			'range=A:B',
			'range=A1:B2&row=0',
			'row=0',
			'col=0',
			'row=-1&col=0',
			'row=1.5&col=0',
			'row=0x1&col=0',
			'row=16777216&col=0',
			'row=0&col=16384',
			'row=5&col=5&toRow=4',
			'row=0&col=0&toRow=',
			'row=0&col=0&toCol=x',
			'row=99999999999999999999&col=0',
			'range=A1&styles=yes',
			'range=A1&styles',
		])
			await refusal(400, query);
	});

	test('other addresses below a sheet: 404; other methods: 405', async () => {
		for (const path of [`/v2/sheets/${fid}/cell`, `/v2/sheets/${fid}/cells/`, `/v2/sheets/${fid}/`, '/v2/sheets/x/cells?range=A1', '/v2/sheets/0/cells?range=A1'])
			assert.equal((await request(gateway, 'GET', path)).status, 404, path);
		const answer = await post(gateway, `/v2/sheets/${fid}/cells?range=A1`, {});
		assert.equal(answer.status, 405);
		assert.match(answer.headers.allow, /GET, HEAD/);
	});

	test('who is not known: 401; who may not: 403; what is not there: 404; what is in the trash: 410', async () => {
		const { header, claims } = tokenParts(anna.token);
		const expired = signToken(header, { ...claims, exp: Math.floor(Date.now() / 1000) - 10 }, cluster.jwtKey);
		const forged = signToken(header, claims, 'x'.repeat(32));
		for (const user of [null, { token: 'a.b.c' }, { token: expired }, { token: forged }]) {
			const answer = await refusal(401, 'range=A1', { user });
			assert.equal(answer.headers['www-authenticate'], 'Bearer');
		}
		await call(gateway, '/sharelink', { token: anna.token, fid, role: null }, 12);
		await refusal(403, 'range=A1', { user: ben });
		await refusal(404, 'range=A1', { sheet: 999999 });
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		await refusal(410, 'range=A1');
		await refusal(403, 'range=A1', { user: ben });
	});
});

describe('what has been acknowledged by this gateway is in what comes after it', () => {
	test('edits of protocols v1 and v2', async () => {
		const v1 = keep(await Editor.open(gateway, anna, fid));
		const v2 = keep(await RawClient.open(gateway, anna, fid, { client: 1 }));
		await cached();
		for (let i = 1; i <= 25; i++) {
			v1.modify(0, 0, `v1 ${i}`);
			await v1.nextModify(0, 0, `v1 ${i}`);
			assert.equal(await first(), `v1 ${i}`);
			v2.op(i, [{ row: 0, col: 0, content: `v2 ${i}` }]);
			const { seq } = await v2.next('ack', ({ n }) => n === i);
			const answer = (await get('range=A1')).json;
			assert.equal(answer.cells[0][2], `v2 ${i}`);
			assert.ok(answer.seq >= seq, `${answer.seq} ${seq}`);
		}
	});

	test('rows that are inserted and deleted over protocol v2', async () => {
		const v2 = keep(await RawClient.open(gateway, anna, fid, { client: 2 }));
		v2.op(1, [{ row: 0, col: 0, content: 'moves' }]);
		await v2.next('ack', ({ n }) => n === 1);
		await cached('range=A1:A3');
		await withoutNews(async () => {
			v2.op(2, [{ kind: 'insertRows', at: 0, n: 2 }]);
			await v2.next('ack', ({ n }) => n === 2);
			assert.deepEqual(await cellsOf('range=A1:A3'), [[2, 0, 'moves']]);
			v2.op(3, [{ kind: 'deleteRows', at: 1, n: 1 }]);
			await v2.next('ack', ({ n }) => n === 3);
			assert.deepEqual(await cellsOf('range=A1:A3'), [[1, 0, 'moves']]);
		});
	});

	test('a rollback', async () => {
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'good'), sheet.commit(${fid}, 'good')`);
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'bad')`);
		await cached();
		await withoutNews(async () => {
			assert.equal(await first(), 'bad');
			await call(gateway, '/rollbacksheet', { token: anna.token, fid, cid: 1 }, 30);
			assert.equal(await first(), 'good');
		});
	});

	test('the trash, the way back, and the end', async () => {
		await cached();
		await withoutNews(async () => {
			await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
			await refusal(410, 'range=A1');
			await call(gateway, '/recoversheet', { token: anna.token, fid }, 25);
			await cellsOf('range=A1');
			await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
			await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
			await refusal(404, 'range=A1');
		});
	});

	test('sharing that ends, and that begins again', async () => {
		await shareByLink(gateway, anna, fid, 'viewer', ben);
		await cached('range=A1', { user: ben });
		await withoutNews(async () => {
			assert.equal((await counted(() => cellsOf('range=A1', { user: ben }))).hits, 1);
			await call(gateway, '/sharelink', { token: anna.token, fid, role: null }, 12);
			await refusal(403, 'range=A1', { user: ben });
			await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'viewer' }, 12);
			await cellsOf('range=A1', { user: ben });
			await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: null }, 12);
			await refusal(403, 'range=A1', { user: ben });
		});
	});

	test('tokens that are revoked', async () => {
		const carol = await register(gateway);
		const sheet = await newSheet(gateway, carol);
		await cached('range=A1', { user: carol, sheet });
		await withoutNews(async () => {
			const answer = await post(gateway, '/v2/account/revoke', { token: carol.token });
			assert.equal(answer.status, 200);
			await refusal(401, 'range=A1', { user: carol, sheet });
			await cellsOf('range=A1', { user: { token: answer.json.token }, sheet });
		});
	});

	test('who asks while an answer is under way that is too old for them does not get that one', async () => {
		const proxy = await PgProxy.start(cluster, gateway);
		const editor = keep(await Editor.open(gateway, anna, fid));
		try {
			for (let i = 0; i < 3; i++) {
				await cached();
				editor.modify(0, 0, `old ${i}`);
				await editor.nextModify(0, 0, `old ${i}`);
				proxy.hold('pg_sheet reads');
				const early = first();
				await waitUntil(() => proxy.heldBytes > 0, 'the old cells to be on their way');
				editor.modify(0, 0, `new ${i}`);
				await editor.nextModify(0, 0, `new ${i}`);
				const late = Array.from({ length: 3 }, () => first());
				await waitUntil(
					async () => (await gateway.metrics()).pg_sheet_http_under_way === 1 + 1 + late.length,
					'the others to wait with it',
				);
				proxy.release();
				assert.match(await early, /^(old|new) /);
				assert.deepEqual(await Promise.all(late), late.map(() => `new ${i}`));
				assert.equal(await first(), `new ${i}`);
			}
		} finally {
			await proxy.remove();
		}
	});
});

test('who asks is answered while others change who may see their sheets, again and again', async () => {
	const other = await newSheet(gateway, anna);
	await shareByLink(gateway, anna, fid, 'viewer', ben);
	const proxy = await PgProxy.start(cluster, gateway);
	try {
		const listener = keep(await Editor.open(gateway, anna, other));
		let answer = null;
		proxy.hold('pg_sheet reads');
		const asking = get('range=A1', { user: ben }).then((it) => (answer = it));
		await waitUntil(async () => (await gateway.metrics()).pg_sheet_http_under_way === 2, 'the request to be there');
		// Who it is, whether they may, the cells: three questions. The gateway asks for its health as well.
		for (let round = 0; round < 40 && !answer; round++) {
			await waitUntil(() => answer || proxy.heldBytes > 0, 'an answer of the database');
			await cluster.psql(`SELECT sheet.share_link(${other}, 'viewer')`);
			await cluster.psql(`SELECT sheet.set(${other}, 'A1', 'heard ${round}')`);
			await listener.nextModify(0, 0, `heard ${round}`);
			proxy.release();
			proxy.hold('pg_sheet reads');
		}
		assert.equal(answer?.status, 200);
		await asking;
	} finally {
		await proxy.remove();
	}
});

describe('what others do is heard', () => {
	const bound = 2000; // of protocol v2's promise
	const within = (probe, what) => waitUntil(probe, what, bound + 8000, 5);

	test('edits by SQL, rows that move, a rollback, the trash, and the end of access', async () => {
		await shareByLink(gateway, anna, fid, 'viewer', ben);
		await cached();
		await cached('range=A1', { user: ben });
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'by SQL'), sheet.commit(${fid}, 'v')`);
		await within(async () => (await first()) === 'by SQL', 'the edit');
		await cached();
		await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 1)`);
		await within(async () => (await first()) === '', 'the row');
		await cached();
		await cluster.psql(`SELECT sheet.rollback(${fid}, 1)`);
		await within(async () => (await first()) === 'by SQL', 'the rollback');
		await cached('range=A1', { user: ben });
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		await within(async () => (await get('range=A1', { user: ben })).status === 403, 'the end of access');
		await cached();
		await cluster.psql(`SELECT sheet.trash(${fid})`);
		await within(async () => (await get('range=A1')).status === 410, 'the trash');
		await cluster.psql(`SELECT sheet.purge(${fid})`);
		await within(async () => (await get('range=A1')).status === 404, 'the purge');
	});

	test('tokens that are revoked by SQL', async () => {
		const carol = await register(gateway);
		const sheet = await newSheet(gateway, carol);
		await cached('range=A1', { user: carol, sheet });
		await cluster.psql(`SELECT sheet.account_revoke_tokens(${carol.uid})`);
		await within(async () => (await get('range=A1', { user: carol, sheet })).status === 401, 'the revocation');
		await cellsOf('range=A1', { user: await login(gateway, carol), sheet });
	});

	test('when nothing is heard for two seconds, the database is asked, and it goes on from memory when news are back', async () => {
		await cached();
		await withoutNews(async () => {
			await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'unheard')`);
			const committed = Date.now();
			let asked;
			await within(async () => {
				asked = Date.now();
				if ((await first()) === 'unheard') return true;
				assert.ok(asked - committed < bound, `older cells for who asked ${asked - committed} ms after the commit`);
				return false;
			}, 'the edit of which nobody tells');
			assert.deepEqual(await counted(() => first()), { hits: 0, misses: 1 });
			await cluster.psql(`SELECT sheet.share_link(${fid}, NULL), sheet.trash(${fid})`);
			await refusal(410, 'range=A1');
			await cluster.psql(`SELECT sheet.recover(${fid})`);
		});
		await cached();
	});

	test('a server that is restarted is heard again', async () => {
		await cached();
		await cluster.restartPostgres('immediate');
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'after the restart')`);
		await within(async () => (await first()) === 'after the restart', 'the edit');
		await cached();
	});
});

describe('memory', () => {
	const rows = 200;
	const limit = 16384;
	async function filled() {
		const sheet = await newSheet(gateway, anna, { rows });
		await cluster.psql(
			`DO $$ BEGIN FOR r IN 0..${rows - 1} LOOP PERFORM sheet.set(${sheet}, r, 0, repeat(chr(97 + r % 26), 1000)); END LOOP; END $$`,
		);
		return sheet;
	}
	const window = (sheet, row) => () => cellsOf(`row=${row}&col=0`, { sheet });

	after(async () => {
		await gateway.stop();
		await gateway.start({ 'range-cache-bytes': '32MB' });
	});

	test('the last ones used are kept, in as many bytes as are allowed', async () => {
		await gateway.stop();
		await gateway.start({ 'range-cache-bytes': limit });
		const sheet = await filled();
		await cached('row=0&col=0', { sheet });
		assert.deepEqual(await counted(window(sheet, 1)), { hits: 0, misses: 1 });
		assert.deepEqual(await counted(window(sheet, 1)), { hits: 1, misses: 0 });
		const { misses } = await counted(async () => {
			for (let row = 2; row < rows; row++) {
				await window(sheet, row)();
				await window(sheet, 0)();
				assert.ok((await counters()).bytes <= limit);
			}
		});
		assert.ok(misses < rows + 5, `${misses}: what is used again and again stays`);
		assert.deepEqual(await counted(window(sheet, rows - 1)), { hits: 1, misses: 0 }, 'the newest');
		assert.deepEqual(await counted(window(sheet, 1)), { hits: 0, misses: 1 }, 'long ago');
		const { bytes, evictions_total } = await counters();
		assert.ok(bytes > limit - 2000, `${bytes}: it is used`);
		assert.ok(evictions_total > rows / 2, `${evictions_total}`);
		assert.equal((await cellsOf('row=0&col=0&toRow=19&toCol=0', { sheet })).length, 20);
		assert.equal((await counted(() => cellsOf('row=0&col=0&toRow=19&toCol=0', { sheet }))).hits, 0, 'too large to be kept');
		assert.ok((await counters()).bytes <= limit);
	});

	test('without memory each answer is from the database, and nothing is kept', async () => {
		await gateway.stop();
		await gateway.start({ 'range-cache-bytes': 0 });
		for (let i = 0; i < 3; i++) assert.deepEqual(await counted(() => first()), { hits: 0, misses: 1 });
		assert.equal((await counters()).bytes, 0);
	});
});
