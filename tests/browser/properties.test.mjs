/*
 * properties.test.mjs - sizes, hidden rows and columns, merges and the frozen part: what one person sets reaches the other,
 * the database, and the page that is opened again; it moves with structure edits, is taken back, and is refused.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { register } from '../lib/client.mjs';
import { Cluster } from '../lib/cluster.mjs';
import { PropertyClient, sqlProperties } from '../lib/properties.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { sheetClient } from '../lib/v2.mjs';
import { Person, place, startBrowser } from './page.mjs';

const ROW = 16777215;
const COL = 16383;
/** Pixels of the headers, of a column and of a row. */
const [LEFT, TOP, WIDTH, HEIGHT] = [46, 20, 96, 24];

test('properties in the page', { timeout: 400000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const timezoneId = 'Europe/Berlin';
	const [ann, bob] = await Promise.all(['ann', 'bob'].map((name) => Person.arrive(browser, gateway, name, { timezoneId })));
	const sql = (text) => cluster.psql(text);
	let id;
	const picture = async (person, name) => {
		if (process.env.SCREENSHOTS) await person.page.screenshot({ path: path.join(process.env.SCREENSHOTS, `properties-${name}.png`) });
	};
	const layout = (person, cell) => person.page.evaluate(([row, col]) => window.pgSheet.layoutOf(row, col), place(cell));
	const merges = async (person) => (await layout(person, 'A1')).merges.map(({ row, col, toRow, toCol }) => [row, col, toRow, toCol].join());
	/** Waits until both pages show this of a cell: height, width, merges or frozen. */
	const both = (cell, what, value, people = [ann, bob]) =>
		Promise.all(people.map((person) => {
			let last;
			return waitUntil(
				async () => JSON.stringify((last = what === 'merges' ? await merges(person) : (await layout(person, cell))[what])) === JSON.stringify(value),
				() => `${person.name}'s ${what} of ${cell} to be ${JSON.stringify(value)}; it is ${JSON.stringify(last)}`,
			);
		}));
	/** Without the time zone that the first page has given the sheet. */
	const stored = async () => (await sqlProperties(cluster, id)).filter((property) => property !== `0,0,16777215,16383,timezone=${JSON.stringify(timezoneId)}`);
	const saved = () => Promise.all([ann.untilSaved(), bob.untilSaved()]);
	const drag = async (person, from, to) => {
		const box = await person.grid.boundingBox();
		await person.page.mouse.move(box.x + from[0], box.y + from[1]);
		await person.page.mouse.down();
		await person.page.mouse.move(box.x + to[0], box.y + to[1], { steps: 5 });
		await person.page.mouse.up();
	};
	const select = (person, from, to) => {
		const at = ([row, col]) => [LEFT + col * WIDTH + WIDTH / 2, TOP + row * HEIGHT + HEIGHT / 2];
		return drag(person, at(place(from)), at(place(to)));
	};
	/** Drags the right edge of column A; resolves to its new width. */
	const widen = async (person) => {
		await drag(person, [LEFT + WIDTH, TOP / 2], [LEFT + WIDTH + 64, TOP / 2]);
		const { width } = await layout(person, 'A1');
		return width;
	};
	const undo = (person) => person.page.keyboard.press('Control+z');
	const mergeSelected = async (person) => {
		await person.page.locator('[data-u-command="sheet.command.add-worksheet-merge"]').first().click();
		await picture(person, 'menu');
		await person.page.getByText('Merge all').first().click();
	};
	const again = async (person) => {
		await person.untilSaved();
		await person.open(id);
	};

	await Promise.all([ann.register(), bob.register()]);
	const step = (name, run) =>
		t.test(name, async () => {
			id = Number(await sql(`SELECT sheet.create('Properties', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
			await sql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
			await Promise.all([ann.turnTo(id), bob.turnTo(id)]);
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});

	await step('a width and a height that are dragged', async () => {
		const width = await widen(ann);
		assert.ok(width > 140);
		await both('A1', 'width', width);
		await drag(bob, [LEFT / 2, TOP + 2 * HEIGHT], [LEFT / 2, TOP + 2 * HEIGHT + 26]);
		const { height } = await layout(bob, 'A2');
		assert.ok(height > 40);
		await both('A2', 'height', height);
		await saved();
		assert.deepEqual(await stored(), [`0,0,${ROW},0,width=${width}`, `1,0,1,${COL},height=${height}`]);
		await picture(bob, 'sizes');
		await again(bob);
		await both('A1', 'width', width);
		await both('A2', 'height', height);
		await ann.goTo('C5');
		await undo(ann);
		await both('A1', 'width', 96);
		await ann.page.keyboard.press('Control+y');
		await both('A1', 'width', width);
		// Bob's height is not Ann's to take back.
		await undo(ann);
		await both('A1', 'width', 96);
		await undo(ann);
		await saved();
		assert.deepEqual(await stored(), [`1,0,1,${COL},height=${height}`]);
	});

	await step('hidden rows and columns', async () => {
		await ann.columns('B', 'Hide Selected Column');
		await both('B1', 'width', 0);
		await bob.rows('3', 'Hide Selected Row');
		await both('A3', 'height', 0);
		await saved();
		assert.deepEqual(await stored(), [`0,1,${ROW},1,hidden=true`, `2,0,2,${COL},hidden=true`]);
		await picture(ann, 'hidden');
		await again(ann);
		await both('B1', 'width', 0);
		await both('A3', 'height', 0);
		await undo(bob);
		await both('A3', 'height', HEIGHT);
		await saved();
		assert.deepEqual(await stored(), [`0,1,${ROW},1,hidden=true`]);
	});

	await step('a frozen part', async () => {
		await ann.goTo('B3');
		await ann.grid.click({ position: { x: LEFT + WIDTH + 40, y: TOP + 2 * HEIGHT + 12 }, button: 'right' });
		await ann.page.getByText('Freeze', { exact: true }).first().hover();
		await ann.page.getByText('Freeze to row').first().click();
		await both('A1', 'frozen', [2, 0]);
		await saved();
		assert.deepEqual(await stored(), [`0,0,${ROW},${COL},freeze={"cols":0,"rows":2}`]);
		await picture(bob, 'frozen');
		await again(bob);
		await both('A1', 'frozen', [2, 0]);
		await bob.rows('1', 'rows above');
		await bob.untilSaved();
		await both('A1', 'frozen', [2, 0]);
		await undo(ann);
		await both('A1', 'frozen', [0, 0]);
	});

	await step('a merge, which moves with rows that the other inserts', async () => {
		await ann.type('B2', 'title');
		await select(ann, 'B2', 'C3');
		await mergeSelected(ann);
		await both('B2', 'merges', ['1,1,2,2']);
		await picture(bob, 'merged');
		await bob.rows('1', 'rows above');
		await both('B2', 'merges', ['2,1,3,2']);
		await bob.rows('4', 'rows above');
		await both('B2', 'merges', ['2,1,4,2']);
		await saved();
		assert.deepEqual(await stored(), ['2,1,4,2,merge=true']);
		await again(bob);
		await both('B2', 'merges', ['2,1,4,2']);
		assert.equal((await bob.cell('B3')).content, 'title');
		await undo(ann);
		await both('B2', 'merges', []);
		await saved();
		assert.deepEqual(await stored(), []);
	});

	await step('a paste with merged cells is one operation', async () => {
		const { page } = ann;
		await page.evaluate(async () => {
			const html = '<table><tr><td colspan="2">merged</td><td>last</td></tr><tr><td>1</td><td>2</td><td>3</td></tr></table>';
			await navigator.clipboard.write([new ClipboardItem({ 'text/html': new Blob([html], { type: 'text/html' }), 'text/plain': new Blob(['merged\t\tlast\n1\t2\t3'], { type: 'text/plain' }) })]);
		});
		await page.evaluate(() => {
			const send = WebSocket.prototype.send;
			window.operations = [];
			WebSocket.prototype.send = function (data) {
				const message = JSON.parse(data);
				if (message.t === 'op') window.operations.push(message.edits);
				return send.call(this, data);
			};
		});
		await ann.goTo('A3');
		await page.keyboard.press('Control+v');
		await both('A3', 'merges', ['2,0,2,1']);
		await bob.untilShows('C3', 'last');
		await saved();
		const operations = await page.evaluate(() => window.operations);
		assert.equal(operations.length, 1, JSON.stringify(operations));
		assert.deepEqual(operations[0].filter(([first]) => first === 'property'), [['property', 2, 0, 2, 1, 'merge', true]]);
		await undo(ann);
		await both('A3', 'merges', []);
		await bob.untilShows('C3', '');
	});

	await step('SQL, and a rollback', async () => {
		const cid = await sql(`SELECT sheet.commit(${id}, true)`).catch(() => sql(`SELECT sheet.set(${id}, 0, 0, 'x')`).then(() => sql(`SELECT sheet.commit(${id})`)));
		await sql(`SELECT sheet.set_property(${id}, 'A:C', 'width', '140'), sheet.set_property(${id}, 'B:B', 'width', '60'), sheet.set_property(${id}, 'A4:B5', 'merge', 'true'),
			sheet.set_property(${id}, '7:8', 'hidden', 'true'), sheet.set_property(${id}, '3:3', 'height', '70')`);
		await both('A7', 'height', 0);
		await both('A3', 'height', 70);
		await both('B1', 'width', 60);
		await both('C1', 'width', 140);
		await both('A1', 'merges', ['3,0,4,1']);
		await sql(`SELECT sheet.set_property(${id}, 'B:B', 'width', NULL)`);
		await both('B1', 'width', 140);
		await sql(`SELECT sheet.rollback(${id}, ${cid})`);
		await both('A1', 'merges', []);
		await both('A7', 'height', HEIGHT);
		await both('A3', 'height', HEIGHT);
		await both('C1', 'width', 96);
		assert.deepEqual(await stored(), []);
	});

	await step('the history says what was set, and of what', async () => {
		const set = [['3:3', 'height', '70'], ['B:D', 'width', '60'], ['B:D', 'width', 'null'], ['7:8', 'hidden', 'true'], ['7:8', 'hidden', 'null'], ['A4:B5', 'merge', 'true'], ['A4:B5', 'merge', 'null'], ['C:C', 'note', '"x"']];
		for (const [target, key, value] of set) await sql(`SELECT sheet.set_property(${id}, '${target}', '${key}', '${value}')`);
		await sql(`SELECT sheet.set_property(${id}, NULL, 'freeze', '{"rows": 2}')`);
		const history = async (person, name) => {
			await person.page.getByRole('button', { name, exact: true }).click();
			await person.page.locator('.drawer time').first().waitFor();
			return person.page.locator('.drawer li strong').allTextContents();
		};
		assert.deepEqual((await history(ann, 'History')).slice(0, 9).reverse(), ['Height of row 3: 70', 'Width of columns B to D: 60', 'Width of columns B to D: standard', 'Hidden: rows 7 to 8', 'Shown: rows 7 to 8',
			'Merged: A4:B5', 'No longer merged: A4:B5', 'note of column C: "x"', 'Frozen rows: 2, frozen columns: 0']);
		assert.equal(await ann.page.locator('.drawer .change').count(), 0, 'an edit of a property is not shown as one of a cell');
		await picture(ann, 'history');
		await bob.page.getByRole('button', { name: '中文' }).click();
		assert.deepEqual((await history(bob, '历史')).slice(0, 3), ['冻结 2 行、0 列', 'C 列的 note："x"', '取消合并：A4:B5']);
		await bob.page.getByRole('button', { name: 'English' }).click();
		await bob.untilOpen();
	});

	await step('while the page is not connected, and over a reload', async () => {
		await ann.type('A1', 'x');
		await saved();
		await ann.page.evaluate(() => {
			// Nothing is sent from now on.
			WebSocket.prototype.send = () => {};
		});
		const width = await widen(ann);
		assert.ok(width > 140);
		await waitUntil(async () => /1/.test(await ann.status()), 'the page to say that it is not saved');
		assert.deepEqual(await stored(), []);
		await sql(`SELECT sheet.insert_columns(${id}, 0, 1)`);
		let asked = 0;
		ann.page.once('dialog', (dialog) => {
			asked++;
			return dialog.accept();
		});
		await ann.open(id);
		assert.equal(asked, 1);
		await both('B1', 'width', width);
		await saved();
		assert.deepEqual(await stored(), [`0,1,${ROW},1,width=${width}`]);
	});

	await step('what the database refuses is not shown', async () => {
		const account = await register(gateway);
		await sql(`SELECT sheet.share(${id}, '${account.username}', 'editor')`);
		const carl = await PropertyClient.open(gateway, account, id, { client: 1 });
		// A sheet has 10,000 at most; one is its time zone.
		carl.op(Array.from({ length: 9999 }, (_, row) => ['property', row, 0, row, COL, 'note', 1]));
		await waitUntil(async () => (await stored()).length === 9999, 'the properties to be stored');
		carl.terminate();
		await widen(ann);
		await ann.page.getByText('The sheet has no room for more sizes').waitFor();
		await picture(ann, 'refused');
		await both('A1', 'width', 96);
		await ann.untilSaved();
		assert.equal((await stored()).length, 9999);
	});

	await step('a viewer changes nothing, and a height that follows the content is not stored', async () => {
		await sql(`SELECT sheet.share(${id}, 'bob', 'viewer')`);
		await bob.open(id);
		await widen(bob);
		await ann.goTo('A1');
		await ann.page.keyboard.type('one');
		await ann.page.keyboard.press('Alt+Enter');
		await ann.page.keyboard.type('two');
		await ann.page.keyboard.press('Enter');
		await waitUntil(async () => (await bob.cell('A1')).content === 'one\ntwo', 'the cell of two lines');
		assert.ok((await layout(ann, 'A1')).height > HEIGHT + 5);
		await saved();
		await both('B1', 'width', 96);
		assert.deepEqual(await stored(), []);
	});

	await step('a row is as high as its content on every page, and after a reload', async () => {
		const isHigh = (person, cell) => waitUntil(async () => (await layout(person, cell)).height > HEIGHT + 5, `${person.name}'s row of ${cell} to be high`);
		await ann.goTo('A1');
		await ann.page.keyboard.type('one');
		await ann.page.keyboard.press('Alt+Enter');
		await ann.page.keyboard.type('two');
		await ann.page.keyboard.press('Enter');
		await isHigh(bob, 'A1');
		await saved();
		await ann.open(id);
		await isHigh(ann, 'A1');
		await picture(ann, 'lines');
		await ann.goTo('A1');
		await ann.page.keyboard.press('F2');
		await ann.page.keyboard.type('!');
		await ann.page.keyboard.press('Enter');
		await waitUntil(async () => (await bob.cell('A1')).content === 'one\ntwo!', 'both lines to be kept');
		const account = await register(gateway);
		await sql(`SELECT sheet.share(${id}, '${account.username}', 'editor')`);
		const carl = sheetClient(gateway, account, id, { load: null });
		await waitUntil(() => carl.hello, 'Carl to join');
		await carl.operate([{ row: 4, col: 0, content: 'large', style: { fs: 30 } }]);
		carl.close();
		await isHigh(bob, 'A5');
		await isHigh(ann, 'A5');
		await sql(`SELECT sheet.set(${id}, 0, 0, 'one')`);
		await both('A1', 'height', HEIGHT);
	});

	await step('a format of a part of a text is refused, and the text is kept', async () => {
		await ann.goTo('C9');
		await ann.page.keyboard.type('plain bold');
		await ann.page.keyboard.press('Enter');
		await ann.goTo('C9');
		await ann.page.keyboard.press('F2');
		for (let n = 0; n < 4; n++) await ann.page.keyboard.press('Shift+ArrowLeft');
		await ann.page.keyboard.press('Control+b');
		await ann.page.keyboard.press('Enter');
		await ann.page.getByText('Formats and links of a part of a text are not kept; the text is.').waitFor();
		await saved();
		await bob.untilShows('C9', 'plain bold');
		assert.deepEqual(await bob.cell('C9'), { ...(await ann.cell('C9')), content: 'plain bold' });
	});
});
