/*
 * large.test.mjs - sheets of any size open at their first screen: a million cells, of which little is sent before it, and a
 * sheet that is read only as far as it is scrolled, or as a command needs.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('large sheets', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const sql = (text) => cluster.psql(text);
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, cluster.gateways[0], 'ann');
	await ann.register();
	let bytes;
	ann.page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => (bytes += payload.length)));
	const content = (row, col) => ann.page.evaluate(([r, c]) => window.pgSheet?.contentOf(r, c)?.content, [row, col]);
	const makeOf = async (rows, row) => {
		const id = Number(await sql(`SELECT sheet.create('Large', 10, 10, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
		await sql(`SELECT sheet.import_csv_into(${id}, 'A1', (SELECT string_agg(${row}, E'\\n' ORDER BY n) FROM generate_series(0, ${rows - 1}) n))`);
		return id;
	};
	const make = (rows, cols) => makeOf(rows, Array.from({ length: cols }, (_, col) => `n || 'c${col}'`).join(` || ',' || `));

	await t.test('a million cells: the first screen comes first, then the rest', async () => {
		const id = await make(20000, 50);
		bytes = 0;
		await ann.page.goto(`${ann.gateway.url}/?id=${id}`);
		const start = Date.now();
		await waitUntil(async () => (await content(0, 0)) === '0c0', 'the first screen');
		assert.ok(bytes < 1e6, `${bytes} bytes before the first screen`);
		t.diagnostic(`first screen of a million cells ${Date.now() - start} ms after navigation, ${bytes} bytes`);
		await ann.untilSaved(100000);
		assert.deepEqual([await content(19999, 49), await content(12345, 6)], ['19999c49', '12345c6']);
		await sql(`SELECT sheet.set(${id}, 15000, 3, 'told')`);
		await waitUntil(async () => (await content(15000, 3)) === 'told', 'an edit far below');
		// The last row and the last column: a formula that reads all cells may exceed its deadline on a busy machine.
		await ann.type('A1', '=COUNTA(A20000:AW20000)+COUNTA(AX1:AX20000)');
		await ann.untilShows('A1', String(49 + 20000), 60000);
	});

	await t.test('rows of several lines get their heights when they are about to be seen', async () => {
		const id = await makeOf(100000, `n || ',' || CASE WHEN n % 2 = 1 THEN '"two' || E'\\n' || 'lines"' ELSE 'one' END`);
		const high = (...rows) => ann.page.evaluate((all) => all.map((row) => window.pgSheet.layoutOf(row, 0).height > 30), rows);
		const untilHigh = (rows, wanted) => {
			let last;
			return waitUntil(async () => JSON.stringify((last = await high(...rows))) === JSON.stringify(wanted), () => `${rows} to be ${wanted}, not ${last}`);
		};
		await ann.open(id);
		await untilHigh([0, 1, 2, 3, 4, 5], [false, true, false, true, false, true]);
		await sql(`SELECT sheet.insert_rows(${id}, 3, 1)`);
		await waitUntil(async () => (await content(4, 0)) === '3', 'the inserted row');
		await untilHigh([1, 2, 3, 4, 5, 6], [true, false, false, true, false, true]);
		assert.deepEqual(await high(50000, 99998, 100000), [false, false, false]);
		await ann.goTo('A1');
		await ann.page.keyboard.press('Control+End');
		await waitUntil(async () => (await ann.selected()) === 'B100001', 'the last row to be selected');
		await untilHigh([99997, 99998, 99999, 100000], [false, true, false, true]);
		// It is still at the lower end of the screen.
		await ann.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
		const { height } = await ann.grid.boundingBox();
		await ann.grid.click({ position: { x: 60, y: height - 30 } });
		let lowest;
		await waitUntil(async () => /^A10000[0-3]$/.test((lowest = await ann.selected())), () => `the last row to be visible, not ${lowest}`, 5000);
		assert.deepEqual(ann.problems, []);
	});

	await t.test('ten million cells are read as they are scrolled', async () => {
		const id = await make(200000, 1);
		await sql(`SELECT sheet.set(${id}, 199999, 49, 'the end')`);
		bytes = 0;
		await ann.page.goto(`${ann.gateway.url}/?id=${id}`);
		await waitUntil(async () => (await content(0, 0)) === '0c0', 'the first screen', 30000);
		await ann.untilSaved();
		const rows = () => ann.page.evaluate(() => { let n = 0; for (let row = 50000; row < 150000; row++) if (window.pgSheet.contentOf(row, 0).content !== '') n++; return n; });
		assert.equal(await rows(), 0);
		const box = await ann.grid.boundingBox();
		await ann.page.mouse.move(box.x + box.width - 5, box.y + 30);
		await ann.page.mouse.down();
		await ann.page.mouse.move(box.x + box.width - 5, box.y + box.height / 2, { steps: 10 });
		await ann.page.mouse.up();
		await waitUntil(async () => (await rows()) > 20, 'the cells that were scrolled to', 20000);
		await ann.grid.click({ position: { x: 60, y: 40 } });
		await ann.page.keyboard.press('Control+End');
		await waitUntil(async () => (await ann.selected()) === 'AX200000', 'the last cell to be selected');
		await waitUntil(async () => (await content(199999, 49)) === 'the end', 'the last cell to be read');
		await ann.page.keyboard.press('Control+Shift+Home');
		await waitUntil(async () => (await ann.selected()) === 'A1:AX200000', 'all cells to be selected');
		assert.ok(bytes < 1e6 && (await rows()) < 5000, `${bytes} bytes`);
		assert.deepEqual(ann.problems, []);
	});

	await t.test('cells that have not been read are not taken for empty ones', async () => {
		const id = await make(200000, 1);
		await sql(`SELECT sheet.set(${id}, 150000, 1, 'far'), sheet.set(${id}, 199999, 49, 'the end')`);
		const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY a1) FROM sheet.range(${id}) WHERE col > 0 AND content <> ''`);
		const message = (text) => ann.page.getByText(text).first().waitFor();
		await ann.page.goto(`${ann.gateway.url}/?id=${id}`);
		await waitUntil(async () => (await content(0, 0)) === '0c0', 'the first screen', 30000);
		await ann.untilOpen();
		await ann.grid.click({ position: { x: 20, y: 10 } });
		await ann.page.keyboard.press('Delete');
		await message('These are too many cells for this page');
		const columnB = { position: { x: 46 + 96 + 40, y: 10 } };
		await ann.grid.click(columnB);
		await ann.page.keyboard.press('Delete');
		await message('Not all of these cells had been read');
		await waitUntil(async () => (await content(150000, 1)) === 'far', 'the column to be read', 30000);
		await ann.untilSaved();
		assert.equal(await stored(), 'AX200000=the end B150001=far');
		await ann.grid.click(columnB);
		await ann.page.keyboard.press('Delete');
		await waitUntil(async () => (await stored()) === 'AX200000=the end', 'the cell to be cleared', 30000);
		await ann.untilSaved();
		await ann.type('C1', '=COUNTA(AX1:AX200000)');
		await waitUntil(async () => (await ann.status()).includes('formulas may be wrong'), 'a warning');
		assert.deepEqual(ann.problems, []);
	});
});
