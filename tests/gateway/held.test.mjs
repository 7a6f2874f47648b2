/*
 * Sheets that an SQL transaction holds: their editors wait, know for whom, and lose nothing; nobody else notices.
 */
// measures how long others wait
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, login, newSheet, post, register } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;
let holder;
const opened = [];

before(async () => {
	// The gateway is measured, not the disk.
	cluster = await Cluster.start({ gatewayFlags: { 'database-deadline-ms': 2000 }, postgres: { fsync: 'off' } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
	await cluster.psql(`CREATE ROLE clerk LOGIN; SELECT sheet.link_account('${ben.username}', 'clerk')`);
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
	holder = cluster.psqlSession();
});
afterEach(async () => {
	await holder.close();
	for (const client of opened.splice(0)) client.terminate();
});

const keep = (client) => (opened.push(client), client);
const v1 = async (user, options = {}) => keep(await Editor.open(gateway, user, options.fid ?? fid, options));
let lastClient = 0;
const v2 = async (user, options = {}) =>
	keep(await RawClient.open(gateway, user, options.fid ?? fid, { client: ++lastClient, ...options }));
const set = (row, col, content) => ({ row, col, content });
const backends = async () =>
	Number(await cluster.psql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet %'"));
const hold = (...sheets) =>
	holder.query(`BEGIN; ${sheets.map((sheet) => `SELECT sheet.set(${sheet}, 'J10', 'by SQL')`).join('; ')}`);
/** What was set by gateways, in the log's order. */
const history = async (sheet = fid) =>
	(await cluster.rows(`SELECT new FROM sheet.log_edits(${sheet}) WHERE kind = 'set' AND origin <> 0 ORDER BY seq`)).map((row) => row.new);

/** Runs each of the operations `rounds` times, in turns; resolves to the 90th percentile of each, ms. */
async function measure(operations, rounds) {
	const times = Object.fromEntries(Object.keys(operations).map((name) => [name, []]));
	for (let round = 0; round < rounds; round++)
		for (const [name, run] of Object.entries(operations)) {
			const start = performance.now();
			await run(round);
			times[name].push(performance.now() - start);
		}
	return Object.fromEntries(
		Object.entries(times).map(([name, list]) => [name, list.sort((a, b) => a - b)[Math.floor(list.length * 0.9)]]),
	);
}

describe('nobody else notices', () => {
	const sheets = 40;

	test('that some accounts have filled the queue of long statements: whoever has none in it comes next', async () => {
		const crowd = await Promise.all(Array.from({ length: 20 }, () => register(gateway)));
		const held = await Promise.all(crowd.map((user) => newSheet(gateway, user)));
		const free = await newSheet(gateway, ben);
		const author = await v1(ben, { fid: free });
		await author.settle();
		await hold(...held);
		let answered = 0;
		// Each waits for the lock for half a second, and there are two at a time.
		const many = Promise.all(
			crowd.flatMap((user, i) =>
				Array.from({ length: 5 }, async () => {
					const { status } = await post(gateway, '/commitsheet', { token: user.token, fid: held[i] });
					answered++;
					return status;
				}),
			),
		);
		await waitUntil(async () => (await gateway.metrics())['pg_sheet_database_queue{class="long"}'] >= 64, 'the queue to be full');
		const { status, text } = await post(gateway, '/commitsheet', { token: ben.token, fid: free });
		assert.equal(status, 200, text);
		assert.ok(answered < 80, `${answered} of 100 were answered before`);
		await holder.query('ROLLBACK');
		assert.ok((await many).every((one) => one === 200 || one === 503));
	});

	test('that one transaction holds many sheets, whose editors type and whose versions are asked for', async () => {
		const held = [];
		for (let i = 0; i < sheets; i++) held.push(await newSheet(gateway, anna));
		const editors = await Promise.all(held.map((sheet) => v1(anna, { fid: sheet })));
		const other = await newSheet(gateway, ben);
		const author = await v1(ben, { fid: other });
		const operations = {
			login: () => login(gateway, ben),
			list: () => call(gateway, '/getuser', { token: ben.token }, 10),
			read: () => call(gateway, '/getsheet', { token: ben.token, fid: other }, 12),
			edit: async (round) => {
				author.modify(1, 1, `round ${round}`);
				await author.nextModify(1, 1, `round ${round}`);
			},
			join: async () => {
				const sheet = await newSheet(gateway, ben);
				(await Editor.open(gateway, ben, sheet)).terminate();
			},
			create: () => newSheet(gateway, ben),
		};
		await measure(operations, 5);
		const before = await measure(operations, 20);
		const connections = await backends();
		await hold(...held);
		let typing = true;
		const typed = editors.map(() => 0);
		const writers = editors.map(async (editor, i) => {
			while (typing) {
				editor.modify(0, typed[i] % 9, `typed ${typed[i]++}`);
				await sleep(50);
			}
		});
		const savers = held.slice(0, 12).map(async (sheet) => {
			while (typing) {
				const { status } = await post(gateway, '/commitsheet', { token: anna.token, fid: sheet });
				assert.equal(status, 503);
				await sleep(100);
			}
		});
		await sleep(1000);
		const during = await measure(operations, 20);
		assert.equal(await backends(), connections, 'no server process stays behind');
		await sleep(3000); // more than a deadline
		assert.equal(await backends(), connections, 'nor later');
		typing = false;
		await Promise.all([...writers, ...savers]);
		// Twice, and what a busy machine may add: waiting for a lock or a deadline would take far longer.
		for (const name of Object.keys(operations))
			assert.ok(during[name] <= 2 * before[name] + 50, `${name}: ${before[name].toFixed(1)} ms before, ${during[name].toFixed(1)} ms while sheets are held`);
		const start = performance.now();
		await holder.query('COMMIT');
		await waitUntil(() => editors.every((editor, i) => editor.modifies().length === typed[i] + 1), 'all to land', 10000, 5);
		assert.ok(performance.now() - start < 1000, `all landed ${(performance.now() - start).toFixed(0)} ms after the commit`);
		for (const [i, editor] of editors.entries()) {
			const expected = Array.from({ length: typed[i] }, (_, n) => `typed ${n}`);
			assert.deepEqual(await history(held[i]), expected, 'each edit once, in order');
			assert.deepEqual(editor.modifies().map(({ content }) => content).sort(), ['by SQL', ...expected].sort());
		}
	});
});

describe('the editors of a held sheet', () => {
	test('are told who holds it, and when it is free; what they typed lands within a second of COMMIT and of ROLLBACK', async () => {
		for (const end of ['COMMIT', 'ROLLBACK']) {
			fid = await newSheet(gateway, anna);
			await call(gateway, '/sharesheet', { token: anna.token, fid, username: ben.username, role: 'editor' }, 12);
			const clerk = cluster.psqlSession('clerk');
			const members = [await v1(anna, { nack: true }), await v2(anna), await v2(ben, { encoding: 'binary' })];
			const quiet = await v1(anna);
			try {
				const asked = performance.now();
				await clerk.query(`BEGIN; SET application_name = 'month end'; SELECT sheet.set(${fid}, 'J10', 'by SQL')`);
				const began = performance.now();
				quiet.modify(0, 0, 'first');
				members[0].modify(1, 0, 'second');
				members[1].op(1, [set(2, 0, 'third')]);
				members[2].op(1, [set(3, 0, 'fourth')]);
				const notice = async (member, held) =>
					member instanceof RawClient
						? member.next('held', (message) => message.held === held)
						: (await member.next(({ msgType, body }) => msgType === 'held' && body.held === held)).body;
				for (const member of members) {
					const { holder: name, application, ms } = await notice(member, true);
					assert.deepEqual([name, application], [ben.username, 'month end']);
					const now = performance.now();
					assert.ok(ms <= now - asked + 50 && ms >= now - began - 1000, `${ms} ms, and it is ${(now - began).toFixed(0)} to ${(now - asked).toFixed(0)} ms`);
				}
				const late = await v2(anna);
				assert.equal((await late.next('held')).holder, ben.username, 'newcomers know it at once');
				quiet.modify(4, 0, 'fifth');
				assert.equal(quiet.modifies().length, 0);
				const start = performance.now();
				await clerk.query(end);
				for (const [row, content] of ['first', 'second', 'third', 'fourth', 'fifth'].entries()) await waitUntil(() => quiet.modifies().some((edit) => edit.row === row && edit.content === content), content, 5000, 5);
				assert.ok(performance.now() - start < 1000, `${(performance.now() - start).toFixed(0)} ms after ${end}`);
				for (const member of [...members, late]) assert.deepEqual((({ held, holder: name }) => [held, name])(await notice(member, false)), [false, '']);
				assert.ok(!quiet.messages.some(({ msgType }) => msgType === 'held'), 'who would not understand it is not told');
				assert.deepEqual((await history()).sort(), ['fifth', 'first', 'fourth', 'second', 'third']);
				assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'J10')`), end === 'COMMIT' ? 'by SQL' : '');
			} finally {
				await clerk.close();
			}
		}
	});

	test('may come while it is held, read it and type', async () => {
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'there')`);
		await hold(fid);
		const start = performance.now();
		const a = await v1(anna);
		const b = await v2(anna);
		assert.ok(performance.now() - start < 1000);
		assert.deepEqual(a.grid(), [['0,0', 'there']]);
		a.modify(1, 1, 'of a newcomer');
		b.op(1, [set(2, 2, 'of another')]);
		await sleep(300);
		assert.deepEqual(await history(), []);
		await holder.query('COMMIT');
		await b.next('ack');
		await a.nextModify(1, 1, 'of a newcomer');
		assert.equal(await cluster.psql(`SELECT epoch > 0 AND holder <> '' FROM sheet.ownership WHERE sheet_id = ${fid}`), 't', 'the sheet is claimed');
	});

	test('see what others commit in between, and their own edits move with the rows', async () => {
		const a = await v2(anna);
		const b = await v2(anna);
		await hold(fid);
		a.op(1, [set(5, 0, 'waits in row 5')]);
		await cluster.sheetIsHeld();
		await holder.query(`SELECT sheet.insert_rows(${fid}, 0, 2); COMMIT; BEGIN; SELECT sheet.set(${fid}, 'I9', 'again')`);
		for (const member of [a, b]) await member.next('edits', ({ edits }) => edits.some(({ kind }) => kind === 'insertRows'));
		await holder.query('COMMIT');
		await a.next('ack');
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A8')`), 'waits in row 5');
		assert.deepEqual(await history(), ['waits in row 5']);
	});

	test('get their turn between short transactions that follow one another', async () => {
		const a = await v1(anna);
		const loop = holder.query(
			`DO $$ DECLARE until timestamptz := clock_timestamp() + '4 s'; BEGIN
				WHILE clock_timestamp() < until LOOP PERFORM sheet.set(${fid}, 'J10', clock_timestamp()::text); PERFORM pg_sleep(0.02); COMMIT; END LOOP; END $$`,
			20000,
		);
		await sleep(200);
		const times = [];
		for (let i = 0; i < 10; i++) {
			const start = performance.now();
			a.modify(0, 0, `${i}`);
			await a.nextModify(0, 0, `${i}`);
			times.push(performance.now() - start);
		}
		await loop;
		assert.ok(Math.max(...times) < 1000, times.map((ms) => ms.toFixed(0)).join(' '));
	});

	test('lose nothing when the holder is killed', async () => {
		const a = await v2(anna);
		await hold(fid);
		a.op(1, [set(0, 0, 'kept')]);
		await cluster.sheetIsHeld();
		await cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'psql' AND state = 'idle in transaction'");
		await a.next('ack');
		assert.deepEqual(await history(), ['kept']);
	});
});

describe('a statement that takes too long', () => {
	test('is cancelled by the server, alone: its connection stays, and nobody stays behind', async () => {
		const lock = cluster.psqlSession();
		const connections = await backends();
		const pids = async () => (await cluster.rows("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet %' ORDER BY 1")).map(({ pid }) => pid);
		const before = await pids();
		try {
			await lock.query('BEGIN; LOCK TABLE sheet.account IN ACCESS EXCLUSIVE MODE');
			const refused = await Promise.all([1, 2, 3].map(() => post(gateway, '/login', { username: ben.username, password: ben.password })));
			for (const answer of refused) assert.equal(answer.status, 503, answer.text);
			await sleep(2500); // the deadline
			await lock.query('COMMIT');
		} finally {
			await lock.close();
		}
		await login(gateway, ben);
		assert.equal(await backends(), connections);
		assert.deepEqual(await pids(), before);
	});
});
