/*
 * others.test.mjs - what others do at the same moment as the user, and what they may store.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { register } from '../lib/client.mjs';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { sheetClient } from '../lib/v2.mjs';
import { Person, startBrowser } from './page.mjs';

const rounds = 3;

/** Styles of which the grid shows nothing, or what it can. */
const styles = [
	...[{ ff: { x: 1 } }, { constructor: 1 }, { toString: 1 }, { n: { pattern: 5 } }, { n: { pattern: '[[[' } }, { n: 'x' }, { bd: 5 }],
	...[{ bd: { t: { s: 99, cl: 'x' } } }, { bd: { t: { s: 99, cl: { rgb: 'x' } } } }, { bg: 'red' }, { bg: { rgb: 'no colour' } }, { cl: 5 }],
	...[{ tr: { a: 'x' } }, { tr: { a: 1e300 } }, { ht: 77, vt: -1, tb: 9 }, { pd: 'x' }, { ul: 5 }, { fs: { a: 1 } }, { fs: 1e9 }, { fs: -5 }],
];

test('others', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const sql = (text) => cluster.psql(text);
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, gateway, 'ann');
	await ann.register();
	const account = await register(gateway);
	let id;
	let ben;
	const meet = async () => {
		id = Number(await sql(`SELECT sheet.create('Others', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
		await sql(`SELECT sheet.share(${id}, '${account.username}', 'editor')`);
		ben?.close();
		ben = sheetClient(gateway, account, id, { load: null });
		await waitUntil(() => ben.hello, 'Ben to join');
	};
	t.after(() => ben.close());
	const columnA = () => ann.page.evaluate((rows) => rows.map((row) => window.pgSheet.contentOf(row, 0).content), [...Array(20).keys()]);

	await t.test('cells are formatted or cleared in the frame in which somebody else writes them: the grid has what is stored, undo brings it back', async () => {
		await meet();
		let heard = '';
		ann.page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => (heard += payload)));
		await ann.open(id);
		await ann.goTo('A1');
		await ann.page.keyboard.down('Shift');
		await ann.goTo('A20');
		await ann.page.keyboard.up('Shift');
		// Frames take so long that a command always comes between what arrives and its frame.
		await ann.page.evaluate(() => {
			const next = window.requestAnimationFrame.bind(window);
			window.requestAnimationFrame = (run) => next(() => setTimeout(() => next(run), 500));
			window.queueMicrotask = window.requestAnimationFrame; // the first edit is shown without waiting for a frame
		});
		const stored = () => sql(`SELECT string_agg(content, ' ' ORDER BY "row") FROM sheet.range(${id}) WHERE col = 0 AND content <> ''`);
		const agree = async (texts) => {
			await ann.page.waitForTimeout(1200);
			await ann.untilSaved();
			let last;
			const wanted = JSON.stringify([texts, texts.join(' ').trim()]);
			await waitUntil(async () => (last = JSON.stringify([await columnA(), await stored()])) === wanted, () => `${wanted}; it is ${last}`, 10000);
		};
		for (let round = 0; round < rounds; round++) {
			const texts = Array.from({ length: 20 }, (_, row) => `r${round}.${row}`);
			await ben.operate(texts.map((content, row) => ({ row, col: 0, content })));
			await waitUntil(() => heard.includes(`r${round}.19`), 'what Ben has written to arrive');
			await ann.page.keyboard.press(round === 0 ? 'Control+b' : 'Delete');
			await agree(round === 0 ? texts : texts.map(() => ''));
			await ann.page.keyboard.press('Control+z');
			await agree(texts);
		}
		assert.deepEqual(ann.problems, []);
	});

	await t.test('a style of any JSON does not keep the page from showing the other cells', async () => {
		await meet();
		await ann.open(id);
		const shows = (row, col, content) => waitUntil(() => ann.page.evaluate(([r, c, text]) => window.pgSheet?.contentOf(r, c)?.content === text, [row, col, content]), `${content} to be shown`);
		for (const [row, style] of styles.entries()) {
			await ben.operate([{ row, col: 0, content: '5', style }, { row, col: 1, content: `beside ${row}` }]);
			await shows(row, 1, `beside ${row}`);
		}
		for (const row of styles.keys()) await shows(row, 0, '5');
		await ann.goTo('A1');
		await ann.page.keyboard.press('Control+b');
		await ann.untilSaved();
		await ann.page.reload();
		await ann.untilOpen();
		for (const row of styles.keys()) await shows(row, 1, `beside ${row}`);
		assert.deepEqual(ann.problems, []);
	});

	await t.test('the grid is gone while an edit is still being sent and others go on', async () => {
		await meet();
		await ann.open(id);
		const held = cluster.psqlSession();
		await held.query(`BEGIN; SELECT sheet.set(${id}, 30, 5, 'held')`);
		await ann.type('A1', 'unsaved');
		await waitUntil(async () => (await ann.status()) !== 'Saved', 'an edit that is not saved');
		ann.page.once('dialog', (dialog) => dialog.accept());
		await ann.page.locator('.bar a.back').click();
		await ann.page.getByRole('heading', { name: 'Sheets' }).waitFor();
		// The first mark of somebody else comes when there is no grid.
		for (let i = 0; i < 15; i++) {
			ben.send({ t: 'cursor', row: 2 + i, col: 1, toRow: 2 + i, toCol: 1, base: ben.replica.seq });
			await ann.page.waitForTimeout(100);
		}
		await held.query('COMMIT');
		await held.close();
		assert.deepEqual(ann.problems, []);
	});
});
