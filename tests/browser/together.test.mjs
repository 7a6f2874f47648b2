/*
 * together.test.mjs - what two people at the page may expect of each other: structure edits while both type, undo that
 * leaves others alone, cells that both start to edit, and nothing that looks saved and is not.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('two people in one sheet', { timeout: 300000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const [ann, bob] = await Promise.all(['ann', 'bob'].map((name) => Person.arrive(browser, gateway, name)));
	const sql = (text) => cluster.psql(text);
	let id;
	const everyone = (name, shown) => Promise.all([ann.untilShows(name, shown), bob.untilShows(name, shown)]);
	const picture = async (person, name) => {
		if (process.env.SCREENSHOTS) await person.page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
	};
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);

	await Promise.all([ann.register(), bob.register()]);

	/** A sheet of their own for each step. */
	const step = (name, run) =>
		t.test(name, async () => {
			id = Number(await sql(`SELECT sheet.create('Together', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
			await sql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
			await Promise.all([ann.turnTo(id), bob.turnTo(id)]);
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});

	await step('undo takes back own edits, and leaves what another has written over them', async () => {
		await ann.type('A1', 'a1');
		await everyone('A1', 'a1');
		await waitUntil(async () => Object.keys(await bob.locks()).length === 0, 'the lock to go');
		await bob.type('A1', 'b1');
		await everyone('A1', 'b1');
		await ann.page.keyboard.press('Control+z');
		await ann.page.getByText('Not taken back, since somebody else has changed it: A1').waitFor();
		await ann.type('A2', 'mine');
		await ann.page.keyboard.press('Control+z');
		await everyone('A2', '');
		await ann.page.keyboard.press('Control+y');
		await everyone('A2', 'mine');
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		assert.equal(await stored(), 'A1=b1 A2=mine');
	});

	await step('a paste of 10,000 cells and its undo are one operation each', async () => {
		await ann.page.evaluate(() => {
			const send = WebSocket.prototype.send;
			window.operations = [];
			WebSocket.prototype.send = function (data) {
				const message = JSON.parse(data);
				if (message.t === 'op') window.operations.push(message.edits.length);
				return send.call(this, data);
			};
		});
		await ann.paste('A1', Array.from({ length: 1000 }, (_, row) => Array.from({ length: 10 }, (_, col) => `${row},${col}`).join('\t')).join('\n'));
		await waitUntil(async () => (await bob.cell('A1'))?.content === '0,0' && (await bob.page.evaluate(() => window.pgSheet.contentOf(999, 9)?.content)) === '999,9', 'the paste to arrive', 30000);
		await ann.untilSaved();
		await ann.page.keyboard.press('Control+z');
		await waitUntil(async () => (await bob.page.evaluate(() => window.pgSheet.contentOf(999, 9)?.content)) === '', 'the undo to arrive', 30000);
		await ann.untilSaved();
		assert.deepEqual(await ann.page.evaluate(() => window.operations), [10000, 10000]);
		assert.equal(await stored(), '');
	});

	await step('rows and columns are inserted and deleted by both, and all see the same', async () => {
		await ann.paste('A1', '1\tx\n2\ty\n3\tz\n=SUM(A1:A3)');
		await everyone('A4', '6');
		await ann.rows('2', 'rows above');
		await everyone('A3', '2');
		await bob.rows('1', 'Delete Selected Row');
		await everyone('A2', '2');
		await everyone('A1', '');
		await bob.columns('A', 'cols left');
		await everyone('B2', '2');
		await everyone('C3', 'z');
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		assert.match(await stored(), /^B2=2 C2=y B3=3 C3=z B4==SUM\(/);
		await ann.columns('A', 'Delete Selected Column');
		await everyone('A2', '2');
	});

	await step('an open editor keeps its text and moves with its cell when rows are inserted above', async () => {
		await bob.type('B5', 'old');
		await everyone('B5', 'old');
		await waitUntil(async () => Object.keys(await ann.locks()).length === 0, 'the lock to go');
		await ann.goTo('B5');
		await ann.page.keyboard.type('half-ty');
		await bob.rows('2', 'rows above');
		await waitUntil(async () => (await ann.cell('B6')).content === 'old', 'the row to be inserted');
		await ann.page.keyboard.type('ped');
		await picture(ann, 'editor-moved');
		await ann.page.keyboard.press('Enter');
		await everyone('B6', 'half-typed');
		await everyone('B5', '');
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		assert.equal(await stored(), 'B6=half-typed');
	});

	await step('both insert rows while both type', async () => {
		await ann.paste('A1', Array.from({ length: 12 }, (_, i) => `r${i}`).join('\n'));
		await everyone('A12', 'r11');
		await Promise.all([
			(async () => { for (let i = 0; i < 3; i++) { await ann.rows('2', 'rows above'); await ann.type('C1', `ann ${i}`); } })(),
			(async () => { for (let i = 0; i < 3; i++) { await bob.rows('4', 'rows above'); await bob.type('D1', `bob ${i}`); } })(),
		]);
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		await everyone('A18', 'r11');
		const seen = async (person) => person.page.evaluate(() => Array.from({ length: 20 }, (_, row) => [0, 1, 2, 3].map((col) => window.pgSheet.contentOf(row, col).content)));
		await waitUntil(async () => JSON.stringify(await seen(ann)) === JSON.stringify(await seen(bob)), 'both to see the same');
		const rows = await seen(ann);
		assert.deepEqual(rows.map(([first]) => first).filter(Boolean), Array.from({ length: 12 }, (_, i) => `r${i}`));
		const inDatabase = await cluster.rows(`SELECT "row", col, content FROM sheet.range(${id}) WHERE content <> '' ORDER BY 1, 2`);
		assert.equal(inDatabase.length, rows.flat().filter(Boolean).length);
		for (const cell of inDatabase) assert.ok(rows.some((row) => row.includes(cell.content)));
	});

	await step('two who start in one cell at once: the text of the second is kept and offered', async () => {
		await bob.goTo('C3');
		await ann.goTo('C3');
		// Both have typed before the gateway gives the cell to one of them.
		gateway.service.signal('SIGSTOP');
		await Promise.all([ann.page.keyboard.type('first'), bob.page.keyboard.type('second')]).finally(() =>
			gateway.service.signal('SIGCONT'),
		);
		const kept = async (person) => person.page.locator('.kept-item').count();
		await waitUntil(async () => (await kept(ann)) + (await kept(bob)) === 1, 'one of them to be told');
		const [loser, winner] = (await kept(ann)) ? [ann, bob] : [bob, ann];
		await picture(loser, 'kept');
		await winner.page.keyboard.press('Enter');
		await winner.untilSaved();
		const text = loser === ann ? /“f[irst]*”/ : /“s[econd]*”/;
		await loser.page.locator('.kept-item', { hasText: text }).waitFor();
		await waitUntil(async () => Object.keys(await loser.locks()).length === 0, 'the lock to go');
		await loser.page.getByRole('button', { name: 'Write it' }).click();
		await loser.untilSaved();
		assert.equal(await loser.page.locator('.kept-item').count(), 0);
		assert.match(await stored(), loser === ann ? /^C3=f/ : /^C3=s/);
	});

	await step('a viewer reads from the first moment and changes nothing', async () => {
		await ann.type('A1', 'readable');
		const cleo = await Person.arrive(browser, gateway, 'cleo');
		await cleo.register();
		await ann.share('cleo', 'viewer');
		await cleo.open(id);
		await cleo.untilShows('A1', 'readable');
		await cleo.type('A1', 'changed');
		await cleo.page.keyboard.press('Delete');
		await cleo.paste('A1', 'pasted');
		await cleo.page.waitForTimeout(300);
		assert.equal((await cleo.cell('A1')).content, 'readable');
		assert.equal(await stored(), 'A1=readable');
		assert.deepEqual(cleo.problems, []);
		await cleo.context.close();
	});

	await step('formats alone reach every page, and a restore brings the formats back', async () => {
		await ann.type('A1', 'bold');
		await everyone('A1', 'bold');
		const cid = await sql(`SELECT sheet.commit(${id})`);
		// A style of A1 and no content, as the database stores it (common/edit_codec.h).
		const edit = Buffer.concat([Buffer.from([1, 0, 0, 1, 0x12, 0, 0, 0, 0, 8]), Buffer.from('{"bl":1}')]);
		await sql(`SELECT sheet.apply(${id}, '\\x${edit.toString('hex')}')`);
		await waitUntil(async () => (await bob.cell('A1')).style?.bl === 1 && (await ann.cell('A1')).style?.bl === 1, 'both to see it bold');
		assert.equal((await bob.cell('A1')).content, 'bold');
		await sql(`SELECT sheet.rollback(${id}, ${cid})`);
		await waitUntil(async () => (await bob.cell('A1')).style === null && (await ann.cell('A1')).style === null, 'the format to go');
	});

	await step('10,000 edits of SQL in one statement are in the page at once', async () => {
		const start = Date.now();
		await sql(`SELECT count(sheet.set(${id}, n / 10, n % 10, n::text)) FROM generate_series(0, 9999) n`);
		await waitUntil(async () => (await ann.page.evaluate(() => window.pgSheet.contentOf(999, 9).content)) === '9999', 'the last edit', 20000);
		t.diagnostic(`10,000 edits by SQL were shown after ${Date.now() - start} ms`);
		const different = await ann.page.evaluate(() => { let n = 0; for (let i = 0; i < 10000; i++) if (window.pgSheet.contentOf(Math.floor(i / 10), i % 10).content !== String(i)) n++; return n; });
		assert.equal(different, 0);
	});

	await step('the others here are named, with their selections', async () => {
		await bob.goTo('C4');
		await ann.page.locator('.people [data-name=bob]').waitFor();
		await ann.page.locator('.cell-cursor[data-cell=C4][data-user=bob]').waitFor();
		await picture(ann, 'presence');
	});
});
