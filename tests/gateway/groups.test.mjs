/* Batches of several sheets in one transaction: they share commits, and one sheet's trouble is not the others'. */
import { after, before, beforeEach, afterEach, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, register } from '../lib/client.mjs';

const count = 20;
let cluster;
let gateway;
let user;
let editors;

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	user = await register(gateway);
});
after(() => cluster?.stop());
beforeEach(async () => {
	editors = [];
	for (let i = 0; i < count; i++) {
		const fid = await newSheet(gateway, user);
		editors.push(Object.assign(await Editor.open(gateway, user, fid), { fid, sent: [] }));
	}
});
afterEach(() => {
	for (const editor of editors) editor.terminate();
});

function modify(editor, text) {
	editor.sent.push(text);
	editor.modify(editor.sent.length % 10, 0, text);
}

const logOf = async ({ fid }) =>
	(await cluster.rows(`SELECT new FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set' ORDER BY seq`)).map(
		(row) => row.new,
	);

/** Everything that was sent has come back, in its order, and stands in the log once. */
async function assertWhole(some) {
	for (const editor of some) {
		await waitUntil(
			() => editor.modifies().length >= editor.sent.length,
			() => `sheet ${editor.fid}: ${editor.modifies().length} of ${editor.sent.length}`,
			15000,
		);
		assert.deepEqual(
			editor.modifies().map(({ content }) => content),
			editor.sent,
		);
		assert.deepEqual(await logOf(editor), editor.sent);
	}
}

const groupBackend = () =>
	cluster.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_sheet group'").then(([{ pid }]) => pid);
/** The gateway has read all that this editor has sent. */
const hasRead = (editor) =>
	new Promise((resolve) => {
		editor.socket.once('pong', resolve);
		editor.socket.ping();
	});

test('sheets that are edited while a transaction is under way share the next one', async () => {
	const rounds = 5;
	const start = await gateway.metrics();
	const pid = await groupBackend();
	for (let i = 0; i < rounds; i++) {
		process.kill(pid, 'SIGSTOP');
		try {
			for (const editor of editors) modify(editor, `edit ${i}`);
			await Promise.all(editors.map(hasRead));
		} finally {
			process.kill(pid, 'SIGCONT');
		}
		await Promise.all(editors.map((editor) => editor.nextModify(editor.sent.length % 10, 0, `edit ${i}`)));
	}
	await assertWhole(editors);
	const end = await gateway.metrics();
	const since = (name) => end[`pg_sheet_${name}_total`] - start[`pg_sheet_${name}_total`];
	assert.equal(since('batches'), rounds * count);
	assert.ok(since('groups') >= rounds && since('groups') <= 2 * rounds, `${since('groups')} transactions in ${rounds} rounds`);
});

test('who has made an edit is told of it before all others, whatever sheet they are in', async () => {
	const [first, ...authors] = editors;
	const watchers = [];
	const told = [];
	const pid = await groupBackend();
	try {
		for (const { fid } of authors) watchers.push(await Editor.open(gateway, user, fid));
		for (const member of [...authors, ...watchers]) member.socket.on('message', () => told.push(member));
		process.kill(pid, 'SIGSTOP');
		try {
			modify(first, 'the transaction before');
			await hasRead(first);
			for (const author of authors) modify(author, 'edit');
			await Promise.all(authors.map(hasRead));
		} finally {
			process.kill(pid, 'SIGCONT');
		}
		await waitUntil(() => told.length === 2 * authors.length, () => `${told.length} of ${2 * authors.length} are told`);
		assert.deepEqual(told.map((member) => authors.includes(member)).indexOf(false), authors.length);
		await assertWhole(editors);
	} finally {
		for (const watcher of watchers) watcher.terminate();
	}
});

test('who goes on editing while an edit is under way is told of the next one before all others, too', async () => {
	const [author] = editors;
	const watcher = await Editor.open(gateway, user, author.fid);
	const pid = await groupBackend();
	const told = [];
	for (const member of [author, watcher])
		member.socket.on('message', (data) => `${data}`.includes('behind it') && told.push(member));
	// Each commit takes 50 ms: both have read the first edit long before the second is told, so they read it in its order.
	for (const setting of ['commit_siblings = 0', 'commit_delay = 50000']) await cluster.psql(`ALTER SYSTEM SET ${setting}`);
	await cluster.psql('SELECT pg_reload_conf()');
	try {
		await waitUntil(async () => (await cluster.psql('SHOW commit_delay')) === '50000', 'the setting');
		process.kill(pid, 'SIGSTOP');
		modify(author, 'under way');
		await hasRead(author);
		modify(author, 'behind it');
		await hasRead(author);
		process.kill(pid, 'SIGCONT');
		await waitUntil(() => told.length === 2, 'both to be told');
		assert.ok(told[0] === author);
	} finally {
		process.kill(pid, 'SIGCONT');
		watcher.terminate();
		for (const name of ['commit_siblings', 'commit_delay']) await cluster.psql(`ALTER SYSTEM RESET ${name}`);
		await cluster.psql('SELECT pg_reload_conf()');
	}
});

test('a sheet that SQL holds does not delay the others of its group, and loses nothing', async () => {
	const [held, ...others] = editors;
	const session = cluster.psqlSession();
	try {
		await session.query(`BEGIN; SELECT sheet.set(${held.fid}, 'J1', 'by SQL')`);
		for (let i = 0; i < 5; i++) {
			for (const editor of editors) modify(editor, `edit ${i}`);
			await Promise.all(others.map((editor) => editor.nextModify(editor.sent.length % 10, 0, `edit ${i}`)));
		}
		assert.equal(held.modifies().length, 0);
		await session.query('COMMIT');
	} finally {
		await session.close();
	}
	held.sent.unshift('by SQL');
	await assertWhole(editors);
	// It is back in the group of all.
	const start = await gateway.metrics();
	for (const editor of editors) modify(editor, 'together again');
	await assertWhole(editors);
	const end = await gateway.metrics();
	assert.ok(end.pg_sheet_groups_total > start.pg_sheet_groups_total);
});

test('a batch that is refused takes no other one of its group with it', async () => {
	const [refused, ...others] = editors;
	const trash = cluster.psql(`SELECT sheet.trash(${refused.fid})`);
	for (let i = 0; i < 40; i++) {
		for (const editor of others) modify(editor, `edit ${i}`);
		// Whether its editor is closed by the news or by a refusal of its batch depends on who comes first.
		if (!refused.closed) refused.modify(i % 10, 0, `edit ${i}`);
		await others[0].nextModify(others[0].sent.length % 10, 0, `edit ${i}`);
	}
	await trash;
	assert.equal((await refused.waitClosed()).code, 4410);
	await assertWhole(others);
	assert.deepEqual(await logOf(refused), refused.modifies().map(({ content }) => content));
});

test('when the connection of the groups is lost in the middle of one, every batch lands once', async () => {
	for (let i = 0; i < 60; i++) {
		for (const editor of editors) modify(editor, `edit ${i}`);
		if (i % 20 === 10) {
			await editors[0].nextModify(editors[0].sent.length % 10, 0);
			await cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg_sheet group'");
		}
	}
	await assertWhole(editors);
});

test('a crowd that takes more than a turn to be told: all get all, in one order, and a drain tells what is stored before it closes', async () => {
	const watchers = new Map(editors.map((editor) => [editor, []]));
	for (let i = 0; i < 15; i++) {
		const opened = await Promise.all(editors.map(({ fid }) => Editor.open(gateway, user, fid)));
		opened.forEach((watcher, sheet) => watchers.get(editors[sheet]).push(watcher));
	}
	const all = [...watchers.values()].flat();
	try {
		const told = (editor) => watchers.get(editor).every((watcher) => watcher.modifies().length >= editor.sent.length);
		for (let i = 0; i < 50; i++) for (const editor of editors) modify(editor, `edit ${i}`);
		await waitUntil(() => editors.every(told), 'all edits at all receivers', 15000);
		for (let i = 0; i < 50; i++) for (const editor of editors) modify(editor, `last ${i}`);
		await waitUntil(() => editors[0].modifies().length > 50, 'the first of the last edits', 15000, 1);
		assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
		for (const editor of editors) {
			const log = await logOf(editor);
			assert.deepEqual(log, editor.sent.slice(0, log.length), 'the log is a beginning of what was sent');
			assert.ok(log.length >= 50);
			for (const receiver of [editor, ...watchers.get(editor)]) {
				assert.equal((await receiver.waitClosed()).code, 1012);
				assert.deepEqual(
					receiver.modifies().map(({ content }) => content),
					log,
				);
			}
		}
	} finally {
		for (const watcher of all) watcher.terminate();
		if (!gateway.service.alive) await gateway.start();
	}
});

test('a gateway that is killed in the middle of groups: what came back is stored, in its order', async () => {
	for (let i = 0; i < 30; i++) for (const editor of editors) modify(editor, `edit ${i}`);
	await waitUntil(() => editors.some((editor) => editor.modifies().length > 0), 'the first edits', 10000, 1);
	await gateway.kill();
	for (const editor of editors) {
		await editor.waitClosed();
		const log = await logOf(editor);
		assert.deepEqual(log, editor.sent.slice(0, log.length), 'the log is a beginning of what was sent');
		assert.ok(log.length >= editor.modifies().length, 'what came back is stored');
	}
	await gateway.start();
});
