/* Live editing: browsers and SQL see each other, joins in a flood, slow readers. */
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, newSheet, post, register } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;
const opened = [];

before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'send-queue-bytes': 1 << 20, 'stalled-receiver-seconds': 5 }, postgres: { track_functions: 'all' } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});
afterEach(() => {
	for (const editor of opened.splice(0)) editor.terminate();
});

async function open(user, options = {}) {
	const editor = await Editor.open(gateway, user, fid, options);
	opened.push(editor);
	return editor;
}

const sqlGrid = async () =>
	(await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid}) WHERE content <> ''`))
		.map(({ row, col, content }) => [`${row},${col}`, content])
		.sort(([a], [b]) => (a < b ? -1 : 1));

describe('SQL and browsers', () => {
	test('an edit made by SQL appears in open editors', async () => {
		const editors = [await open(anna), await open(ben)];
		await cluster.psql(`SELECT sheet.set(${fid}, 'B3', 'by SQL')`);
		for (const editor of editors) {
			const { body } = await editor.nextModify(2, 1, 'by SQL');
			assert.deepEqual(Object.keys(body).sort(), ['col', 'content', 'info', 'row', 'username']);
			assert.equal(typeof body.username, 'string');
		}
	});

	test('an edit made in a browser is visible to the next SQL statement', async () => {
		const a = await open(anna);
		for (let i = 0; i < 20; i++) {
			a.modify(0, i % 10, `edit ${i}`);
			await a.nextModify(0, i % 10, `edit ${i}`);
			assert.equal(
				await cluster.psql(`SELECT content FROM sheet.cells WHERE sheet_id = ${fid} AND "row" = 0 AND col = ${i % 10}`),
				`edit ${i}`,
			);
		}
		const [{ username, origin }] = await cluster.rows(
			`SELECT username, origin FROM sheet.log WHERE sheet_id = ${fid} AND new = 'edit 0'`,
		);
		assert.equal(username, anna.username);
		assert.notEqual(origin, null);
	});

	test('rows that are inserted by SQL move under nobody: editors come again, and find the cells where they are', async () => {
		const editors = [await open(anna), await open(ben)];
		editors[0].modify(2, 1, 'moves');
		for (const editor of editors) await editor.nextModify(2, 1, 'moves');
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'before'), sheet.insert_rows(${fid}, 1, 2), sheet.set(${fid}, 'A2', 'after')`);
		for (const editor of editors) {
			const { code, reason } = await editor.waitClosed();
			assert.equal(code, 1012);
			assert.match(reason, /moved/);
			assert.ok(!editor.modifies().some(({ content }) => content === 'after'), 'nothing is told of what lies elsewhere now');
		}
		const again = await open(anna);
		assert.deepEqual([...again.grid()].sort(), await sqlGrid());
		assert.deepEqual(await sqlGrid(), [
			['0,0', 'before'],
			['1,0', 'after'],
			['4,1', 'moves'],
		]);
		again.modify(4, 1, 'goes on');
		await again.nextModify(4, 1, 'goes on');
	});

	test('an edit for a place that has moved before it was stored goes where its cell is then; of a row that is gone nowhere', async () => {
		const a = await open(anna);
		a.modify(5, 0, 'five');
		await a.nextModify(5, 0, 'five');
		const session = cluster.psqlSession();
		try {
			await session.query(`BEGIN; SELECT sheet.delete_rows(${fid}, 2, 2)`);
			a.modify(5, 0, 'five, late');
			a.modify(3, 0, 'gone with its row');
			await cluster.sheetIsHeld();
			await session.query('COMMIT');
		} finally {
			await session.close();
		}
		assert.equal((await a.waitClosed()).code, 1012);
		const again = await open(anna);
		const { body } = await again.settle(9, 4);
		const truth = [['3,0', 'five, late'], ['9,4', body.content]];
		assert.deepEqual(await sqlGrid(), truth);
		assert.deepEqual([...again.grid()], truth);
	});

	test('an open transaction shows nothing; its commit shows all of it; a rolled back one never', async () => {
		const a = await open(anna);
		const session = cluster.psqlSession();
		try {
			await session.query(`BEGIN; SELECT sheet.set(${fid}, 'A1', 'one'); SELECT sheet.set(${fid}, 'A2', 'two')`);
			await sleep(400);
			assert.equal(a.modifies().length, 0, 'nothing before the commit');
			await session.query('COMMIT');
			await a.nextModify(0, 0, 'one');
			await a.nextModify(1, 0, 'two');
			await session.query(`BEGIN; SELECT sheet.set(${fid}, 'A1', 'never'); ROLLBACK`);
			await a.settle(9, 9);
			assert.ok(!a.modifies().some(({ content }) => content === 'never'));
		} finally {
			await session.close();
		}
	});

	test('an edit of a browser waits for an open SQL transaction on the sheet, and comes after it', async () => {
		const a = await open(anna);
		const session = cluster.psqlSession();
		try {
			await session.query(`BEGIN; SELECT sheet.set(${fid}, 'A1', 'SQL first')`);
			a.modify(0, 0, 'browser second');
			await sleep(300);
			assert.equal(a.modifies().length, 0);
			await session.query('COMMIT');
			await a.nextModify(0, 0, 'browser second');
			assert.deepEqual(
				a.modifies().map(({ content }) => content),
				['SQL first', 'browser second'],
			);
			assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'browser second');
		} finally {
			await session.close();
		}
	});

	test('a sheet that is locked by SQL does not hold up the others', async () => {
		const a = await open(anna);
		const other = await newSheet(gateway, ben);
		const b = await Editor.open(gateway, ben, other);
		opened.push(b);
		const session = cluster.psqlSession();
		try {
			await session.query(`BEGIN; SELECT sheet.set(${fid}, 'A1', 'held')`);
			a.modify(1, 1, 'waiting');
			await sleep(100);
			b.modify(1, 1, 'not waiting');
			await b.nextModify(1, 1, 'not waiting');
			assert.equal(a.modifies().length, 0);
			await session.query('COMMIT');
			await a.nextModify(1, 1, 'waiting');
		} finally {
			await session.close();
		}
	});

	test('a change by SQL of more than one answer of the database holds reaches everybody, and the edit that waited comes after it', async () => {
		const editors = [await open(anna), await open(ben)];
		const cells = 2200; // of 32,000 bytes: 70 MB, and an answer holds 64 MB
		const session = cluster.psqlSession();
		try {
			await session.query(
				`BEGIN; DO $$ BEGIN FOR i IN 0..${cells - 1} LOOP PERFORM sheet.set(${fid}, i % 100, i / 100, i || repeat('x', 32000)); END LOOP; END $$`,
				60000,
			);
			editors[0].modify(0, 50, 'waited');
			await sleep(100);
			await session.query('COMMIT');
			for (const editor of editors) await editor.nextModify(0, 50, 'waited', 30000);
		} finally {
			await session.close();
		}
		for (const editor of editors) {
			assert.equal(editor.closed, null);
			const contents = editor.modifies().map(({ content }) => content);
			assert.equal(contents.length, cells + 1);
			assert.equal(contents.at(-1), 'waited');
			assert.ok(contents.slice(0, cells).every((content, i) => content === `${i}${'x'.repeat(32000)}`));
		}
	});

	test('a request that waits for an SQL transaction holds up no other one', async () => {
		const a = await open(anna);
		a.modify(0, 0, 'something to commit');
		await a.nextModify(0, 0);
		const session = cluster.psqlSession();
		try {
			await session.query(`BEGIN; SELECT sheet.set(${fid}, 'A1', 'held')`);
			const waiting = [1, 2].map(() => post(gateway, '/commitsheet', { token: anna.token, fid }));
			for (let i = 0; i < 10; i++) {
				const other = await newSheet(gateway, ben);
				opened.push(await Editor.open(gateway, ben, other));
			}
			for (const answer of await Promise.all(waiting)) {
				assert.equal(answer.status, 503);
				assert.match(answer.json.data, /another transaction holds the sheet/);
				assert.equal(answer.headers['retry-after'], '1');
			}
			await session.query('COMMIT');
			await call(gateway, '/commitsheet', { token: anna.token, fid }, 28);
		} finally {
			await session.close();
		}
	});

	test('edits by SQL and by browsers at the same time have one order everywhere', async () => {
		const editors = [await open(anna), await open(ben)];
		const session = cluster.psqlSession();
		try {
			const bySql = session.query(
				`DO $$ BEGIN FOR i IN 1..200 LOOP PERFORM sheet.set(${fid}, i % 3, 0, 'sql ' || i); COMMIT; END LOOP; END $$`,
			);
			for (let i = 1; i <= 400; i++) {
				editors[i % 2].modify(i % 3, 0, `web ${i}`);
				if (i % 20 === 0) await sleep(5);
			}
			await bySql;
			const count = () => cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set'`);
			await waitUntil(async () => (await count()) === '600', 'all edits in the log', 20000, 100);
			await waitUntil(
				() => editors.every((editor) => editor.modifies().length >= 600),
				'all edits at the editors',
				10000,
			);
		} finally {
			await session.close();
		}
		const log = (
			await cluster.rows(`SELECT new FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set' ORDER BY seq`)
		).map((row) => row.new);
		for (const editor of editors)
			assert.deepEqual(
				editor.modifies().map(({ content }) => content),
				log,
			);
	});

	test('commit and rollback by SQL show at once in open editors', async () => {
		const editors = [await open(anna), await open(ben)];
		const [a] = editors;
		a.modify(0, 0, 'old');
		a.modify(1, 1, 'also old');
		await a.nextModify(1, 1);
		const cid = await cluster.psql(`SELECT sheet.commit(${fid})`);
		a.modify(0, 0, 'new');
		a.modify(5, 5, 'added');
		await a.nextModify(5, 5);
		await cluster.psql(`SELECT sheet.rollback(${fid}, ${cid})`);
		const want = [
			['0,0', 'old'],
			['1,1', 'also old'],
		];
		for (const editor of editors)
			await waitUntil(
				() => JSON.stringify(editor.grid()) === JSON.stringify(want),
				() => `the old content, have ${JSON.stringify(editor.grid())}`,
			);
		assert.deepEqual(await sqlGrid(), want);
		a.modify(2, 2, 'goes on');
		await a.nextModify(2, 2, 'goes on');
		const kept = await cluster.psql(
			`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND new IN ('new', 'added')`,
		);
		assert.equal(kept, '2', 'the log still holds every edit');
	});

	test('the names of many authors are asked for once each, whatever the numbers of their accounts', async () => {
		const editor = await open(anna);
		const names = [];
		for (let i = 0; i < 6; i++) {
			await cluster.psql(`SELECT setval('sheet.account_uid_seq', last_value + 4095) FROM sheet.account_uid_seq`);
			const { username } = await register(gateway);
			await cluster.psql(`CREATE ROLE author${i} LOGIN; SELECT sheet.link_account('${username}', 'author${i}'); SELECT sheet.share(${fid}, '${username}', 'editor')`);
			names.push(username);
		}
		await gateway.stop();
		await gateway.start(); // and knows no names
		const reader = await open(anna);
		const asked = async () => Number(await cluster.psql(`SELECT pg_stat_force_next_flush(); SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'account_get'`));
		const before = await asked();
		gateway.service.signal('SIGSTOP');
		try {
			for (let round = 0; round < 5; round++)
				for (let i = 0; i < names.length; i++) await cluster.psql(`SELECT sheet.set(${fid}, ${round}, ${i}, 'by ${i}')`, { role: `author${i}` });
		} finally {
			gateway.service.signal('SIGCONT');
		}
		for (let i = 0; i < names.length; i++) assert.equal((await reader.nextModify(4, i)).body.username, names[i]);
		await cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet %' AND application_name <> 'pg_sheet coordinator'"); // which tell what they have counted
		await waitUntil(async () => (await asked()) - before >= names.length, 'the counts');
		assert.ok((await asked()) - before <= names.length + 4, `${(await asked()) - before} questions`);
		editor.terminate();
	});

	test('a style that SQL brings back is told with the content, which stays', async () => {
		const editors = [await open(anna), await open(ben)];
		const [a] = editors;
		a.modify(0, 0, 'text', { bold: true });
		a.modify(0, 1, '', { bold: true });
		await a.nextModify(0, 1);
		const cid = await cluster.psql(`SELECT sheet.commit(${fid})`);
		a.modify(0, 0, 'text', { bold: false });
		a.modify(0, 1, '', { bold: false });
		await a.nextModify(0, 1);
		await editors[1].nextModify(0, 1, '', 10000);
		await editors[1].nextModify(0, 1, '', 10000);
		await cluster.psql(`SELECT sheet.rollback(${fid}, ${cid})`);
		for (const editor of editors) {
			assert.deepEqual((await editor.nextModify(0, 0)).body.info, { bold: true });
			assert.deepEqual((await editor.nextModify(0, 1)).body.info, { bold: true });
			assert.deepEqual(editor.modifies().filter(({ col }) => col === 0).map(({ content }) => content), ['text', 'text', 'text']);
		}
	});

	test('rollback by the v1 route shows at once, too', async () => {
		const a = await open(anna);
		a.modify(0, 0, 'old');
		await a.nextModify(0, 0, 'old');
		const cid = await call(gateway, '/commitsheet', { token: anna.token, fid }, 28);
		a.modify(0, 0, 'new');
		await a.nextModify(0, 0, 'new');
		await call(gateway, '/rollbacksheet', { token: anna.token, fid, cid }, 30);
		await a.nextModify(0, 0, 'old');
		assert.deepEqual((await open(ben)).grid(), [['0,0', 'old']]);
	});

	test('trashing a sheet closes its editors, by SQL and by the route', async () => {
		for (const trash of [
			() => cluster.psql(`SELECT sheet.trash(${fid})`),
			() => call(gateway, '/deletesheet', { token: anna.token, fid }, 16),
		]) {
			const editors = [await open(anna), await open(ben)];
			await trash();
			for (const editor of editors) await editor.waitClosed();
			await call(gateway, '/recoversheet', { token: anna.token, fid }, 25);
			const a = await open(anna);
			a.modify(0, 0, 'back again');
			await a.nextModify(0, 0, 'back again');
			a.terminate();
		}
	});
});

describe('a flood', () => {
	const contentOf = (writer, i) => `${writer}:${i}:${'x'.repeat(i % 90)}`;

	test('joiners in the middle of it lose and double nothing', async () => {
		const writers = [];
		for (let k = 0; k < 4; k++) writers.push(await open(k % 2 ? anna : ben));
		const sent = writers.map(() => 0);
		let joining = true;
		const flood = Promise.all(
			writers.map(async (writer, k) => {
				while (joining) {
					for (let i = 0; i < 5; i++, sent[k]++)
						writer.modify(sent[k] % 7, (sent[k] * (k + 3)) % 10, contentOf(k, sent[k]));
					await sleep(2);
				}
			}),
		);
		const joiners = [];
		for (let i = 0; i < 25; i++) {
			joiners.push(await open(i % 2 ? anna : ben));
			await sleep(10);
		}
		joining = false;
		await flood;
		// One more, so that there is something after the last snapshot, too.
		writers[0].modify(sent[0] % 7, (sent[0] * 3) % 10, contentOf(0, sent[0]++));
		const total = sent.reduce((sum, count) => sum + count);
		const have = () => writers.map((writer) => writer.modifies().length);
		await waitUntil(
			() => have().every((count) => count >= total),
			() => `all ${total} edits at all writers: ${have()}`,
			30000,
		);
		const last = writers[0].modifies().at(-1).content;
		for (const editor of [...writers, ...joiners])
			await waitUntil(() => editor.modifies().at(-1)?.content === last, 'the last edit at everybody');

		const stream = writers[0].modifies();
		const text = stream.map((body) => JSON.stringify(body));
		for (const writer of writers)
			assert.deepEqual(
				writer.modifies().map((body) => JSON.stringify(body)),
				text,
				'one total order',
			);
		for (let k = 0; k < writers.length; k++) {
			const own = stream.filter(({ content }) => content.startsWith(`${k}:`)).map(({ content }) => content);
			assert.deepEqual(
				own,
				[...Array(sent[k]).keys()].map((i) => contentOf(k, i)),
				'each sender in its own order',
			);
		}
		let inTheMiddle = 0;
		for (const joiner of joiners) {
			const seen = joiner.modifies().map((body) => JSON.stringify(body));
			assert.deepEqual(seen, text.slice(text.length - seen.length), 'a joiner sees a suffix');
			const replayed = new Map();
			for (const { row, col, content } of stream.slice(0, stream.length - seen.length))
				replayed.set(`${row},${col}`, content);
			const { columns, content } = joiner.onConn.body;
			for (const [cell, want] of replayed) {
				const [row, col] = cell.split(',').map(Number);
				assert.equal(content[row * columns + col], want, 'the snapshot holds everything before the suffix');
			}
			assert.deepEqual(joiner.grid(), writers[0].grid());
			if (seen.length > 0 && seen.length < text.length) inTheMiddle++;
		}
		assert.ok(inTheMiddle >= 20, `${inTheMiddle} joined in the middle of the flood`);
		assert.deepEqual(await sqlGrid(), writers[0].grid());

		const cells = new Map();
		let changed = 0;
		for (const { row, col, content } of stream) {
			if ((cells.get(`${row},${col}`) ?? '') !== content) changed++;
			cells.set(`${row},${col}`, content);
		}
		assert.equal(
			await cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set'`),
			String(changed),
		);
	});

	test('a reader that takes something every now and then is waited for, and gets everything', async () => {
		const [a, slow] = [await open(anna), await open(ben)];
		const each = 30000;
		const filler = 'w'.repeat(400);
		slow.socket.pause();
		for (let i = 0; i < each; i++) a.modify(i % 10, 2, `a ${i} ${filler}`);
		for (let pause = 0; pause < 3; pause++) {
			const pauses = (await gateway.metrics()).pg_sheet_sender_pauses_total;
			await sleep(2000); // less than stalled-receiver-seconds, which begin again with each byte that is taken
			slow.socket.resume();
			await sleep(50);
			slow.socket.pause();
			assert.ok(pause > 0 || pauses > 0, 'the sender is waiting');
		}
		slow.socket.resume();
		await waitUntil(() => slow.closed || slow.modifies().length >= each, 'the slow reader to have everything', 60000);
		assert.equal(slow.closed, null);
		await waitUntil(() => a.modifies().length >= each, 'the sender to have everything, too', 60000);
		assert.deepEqual([a.modifies().length, slow.modifies().length], [each, each]);
	});

	test('a reader that does not read holds the others up for a limited time, and is right again or cut afterwards', async () => {
		const [a, b, slow] = [await open(anna), await open(ben), await open(ben)];
		slow.socket.pause();
		const each = 10000;
		const filler = 'y'.repeat(400);
		for (let i = 0; i < each; i++) {
			a.modify(i % 10, 0, `a ${i} ${filler}`);
			b.modify(i % 10, 1, `b ${i} ${filler}`);
			if (i % 100 === 99) await sleep(1);
		}
		await waitUntil(
			() => a.modifies().length >= 2 * each && b.modifies().length >= 2 * each,
			() => `the others to go on: ${a.modifies().length}`,
			30000,
		);
		slow.socket.resume();
		await waitUntil(
			() => slow.closed || JSON.stringify(slow.grid()) === JSON.stringify(a.grid()),
			'the slow reader to be right again or cut',
			20000,
			100,
		);
		assert.deepEqual((await open(ben)).grid(), a.grid());
	});

	test('a sender that never reads is slowed, not lost, and memory stays bounded', async () => {
		const fs = await import('node:fs');
		const [a, b] = [await open(anna), await open(ben)];
		const start = gateway.memory();
		const each = 30000;
		for (let i = 0; i < each; i++) a.modify(i % 10, i % 10, `${i} ${'z'.repeat(300)}`);
		await waitUntil(
			() => a.modifies().length >= each && b.modifies().length >= each,
			() => `everything that was sent: ${a.modifies().length} and ${b.modifies().length} of ${each}`,
			60000,
		);
		assert.equal(a.modifies().length, each);
		assert.equal(b.modifies().length, each);
		assert.ok(gateway.memory() - start < 100 * 1024, `the gateway grew by ${gateway.memory() - start} kB`);
	});
});
