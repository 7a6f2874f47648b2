/*
 * v2_merged.test.mjs - edits that others have committed one by one come in few messages: in the order of seqs, in both
 * forms, to who is there and to who comes again.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { agree, anna, ben, cluster, fid, raw, whole } from '../lib/two_people.mjs';
import { waitUntil } from '../lib/processes.mjs';

const many = 10000;
/** Many edits by one statement: every cell of a rectangle, and between them always the same cell. */
const burst = () => cluster.psql(`SELECT count(sheet.set(${fid}, (n % 2) * (1 + n / 100), (n % 2) * (n % 100), n::text)) FROM generate_series(0, ${many - 1}) n`);
const expected = () =>
	Array.from({ length: many }, (_, n) => [(n % 2) * (1 + Math.floor(n / 100)), (n % 2) * (n % 100), String(n)].join());
const seqNow = async () => Number(await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${fid}`));
/** The messages of the sheet's edits up to a seq. */
async function told(client, seq) {
	const messages = () => client.messages.filter(({ t }) => t === 'edits' || t === 'version');
	await waitUntil(() => messages().some((message) => message.seq >= seq && !message.more), `edits up to ${seq}`);
	return messages();
}
const editsOf = (messages) => messages.flatMap(({ edits }) => edits.map(({ row, col, content }) => [row, col, content].join()));

test('ten thousand edits by one statement are few messages, in their order', async () => {
	const clients = [await raw(anna), await raw(ben, { encoding: 'binary' })];
	const keeper = await whole(ben);
	await burst();
	const seq = await seqNow();
	for (const client of clients) {
		const messages = await told(client, seq);
		assert.ok(messages.length <= 8, `${messages.length} messages`);
		assert.deepEqual(editsOf(messages), expected());
		const seqs = messages.map((message) => message.seq);
		assert.deepEqual(seqs, [...seqs].sort((a, b) => a - b));
		assert.equal(seqs.at(-1), seq);
	}
	await agree([keeper]);
});

test('who comes again gets what was missed in few messages, as one commit', async () => {
	const before = await raw(anna);
	const since = before.hello.seq;
	before.terminate();
	await burst();
	const seq = await seqNow();
	for (const encoding of ['json', 'binary']) {
		const client = await raw(anna, { since, encoding });
		assert.equal(client.hello.resumed, true);
		const messages = await told(client, seq);
		assert.ok(messages.length <= 8, `${messages.length} messages`);
		assert.deepEqual(editsOf(messages), expected());
		assert.deepEqual(messages.map(({ more }) => more), messages.map((_, i) => i < messages.length - 1));
	}
});

test('versions are told between the edits, and structure edits in a message of their own', async () => {
	const clients = [await raw(anna), await raw(ben, { encoding: 'binary' })];
	await cluster.psql(`
		BEGIN;
		SELECT sheet.set(${fid}, 5, 0, 'a'), sheet.set(${fid}, 5, 1, '=A6');
		SELECT sheet.commit(${fid}, 'between');
		SELECT sheet.set(${fid}, 6, 0, 'b');
		SELECT sheet.insert_rows(${fid}, 3, 2);
		SELECT sheet.set(${fid}, 6, 0, 'c'), sheet.set(${fid}, 7, 0, 'd');
		COMMIT`);
	const seq = await seqNow();
	for (const client of clients) {
		const messages = await told(client, seq);
		const short = messages.map(({ t, more, label, edits }) => (t === 'version' ? label : [edits.map((edit) => edit.kind ?? `${edit.row},${edit.col},${edit.content}`).join(' '), more]));
		assert.deepEqual(short, [['5,0,a 5,1,=A6', true], 'between', ['6,0,b', false], ['insertRows', false], ['7,1,=A8 6,0,c 7,0,d', false]]);
		const commit = messages.find(({ t }) => t === 'version');
		assert.ok(commit.seq < seq && commit.seq > messages[0].seq - 2, 'the version has its own seq');
	}
});
