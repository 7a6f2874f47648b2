/*
 * books.test.mjs - the tabs of a book in the page: two people at the same book, one who edits it and one who looks on.
 *
 * BOOK_PICTURES: a directory for pictures. BOOK_TIMES=1: prints how long it takes to open a sheet and to show another tab.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';
import { brokenRules } from './rules.mjs';

const pictures = process.env.BOOK_PICTURES;

/** Univer's ribbon has tabs, too. */
const bar = ({ page }) => page.locator('.tab-list');
const tabs = (person) => bar(person).getByRole('tab').allTextContents();
const current = (person) => bar(person).locator('[aria-selected=true]').textContent();
const tab = (person, name) => bar(person).getByRole('tab', { name, exact: true });
const sheetOf = ({ page }) => Number(new URL(page.url()).searchParams.get('id'));
const untilTabs = (person, wanted, timeoutMs = 10000) => {
	let last;
	return waitUntil(async () => JSON.stringify((last = await tabs(person))) === JSON.stringify(wanted), () => `${person.name}'s tabs to be ${wanted}, not ${last}`, timeoutMs);
};
const untilCurrent = async (person, name) => {
	await waitUntil(async () => (await bar(person).locator('[aria-selected=true]').count()) > 0 && (await current(person)) === name, `${person.name} to be in ${name}`, 10000);
	await person.untilOpen();
};
const turn = async (person, name) => {
	await tab(person, name).click();
	await untilCurrent(person, name);
};
const choose = async (person, name, item) => {
	await tab(person, name).click({ button: 'right' });
	await person.page.getByRole('menuitem', { name: item, exact: true }).click();
};
const picture = (person, name) => pictures && person.page.screenshot({ path: `${pictures}/${name}.png` });

test('books', { timeout: 600000 }, async (t) => {
	const { gateway, browser, persons: [ann, bob], sql } = await meet(t, { ann: {}, bob: {} }, { gatewayFlags: { 'default-link-role': 'none' } });
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([ann, bob].flatMap(({ problems }) => problems.splice(0)), []);
		});
	const plan = await ann.newSheet('Plan');
	const { page } = ann;
	let book;

	await step('a sheet becomes a book by the button behind it, with a second tab, which is shown', async () => {
		await ann.type('A1', 'of the plan');
		await page.getByRole('button', { name: 'Make this sheet a book, with a second tab' }).click();
		await untilCurrent(ann, 'Sheet 2');
		await untilTabs(ann, ['Plan', 'Sheet 2']);
		book = Number(await sql(`SELECT book_id FROM sheet.book_tab WHERE sheet_id = ${plan}`));
		assert.equal(await sql(`SELECT name FROM sheet.book WHERE book_id = ${book}`), 'Plan');
		await page.getByRole('tablist', { name: 'Tabs of the book Plan' }).waitFor();
		assert.deepEqual(await brokenRules(page), []);
	});

	await step('a tab is shown without loading the page; back, forward and reload work; the address names the sheet', async () => {
		await page.evaluate(() => (window.mark = 1));
		const second = sheetOf(ann);
		await turn(ann, 'Plan');
		assert.equal(sheetOf(ann), plan);
		assert.equal((await ann.cell('A1')).content, 'of the plan');
		assert.equal(await page.title(), 'Plan – pg_sheet');
		await page.goBack();
		await untilCurrent(ann, 'Sheet 2');
		assert.equal(sheetOf(ann), second);
		await page.goForward();
		await untilCurrent(ann, 'Plan');
		assert.equal(await page.evaluate(() => window.mark), 1);
		const scripts = await page.evaluate(() => performance.getEntriesByType('resource').filter(({ initiatorType }) => initiatorType === 'script').length);
		await turn(ann, 'Sheet 2');
		assert.equal(await page.evaluate(() => performance.getEntriesByType('resource').filter(({ initiatorType }) => initiatorType === 'script').length), scripts);
		await page.reload();
		await untilCurrent(ann, 'Sheet 2');
	});

	await step('what is being typed is in the sheet that is left, and each sheet has one connection while it is shown', async () => {
		await ann.goTo('B2');
		await page.keyboard.type('half');
		await turn(ann, 'Plan');
		assert.equal(await sql(`SELECT content FROM sheet.cells WHERE sheet_id = (SELECT sheet_id FROM sheet.book_tab WHERE book_id = ${book} AND sheet_id <> ${plan})`), 'half');
		await turn(ann, 'Sheet 2');
		assert.equal((await ann.cell('B2')).content, 'half');
		await page.locator('.kept-item').waitFor({ state: 'detached' });
	});

	await step('keys: Ctrl+Page Up and Down in the cells, arrows in the bar, F2 renames', async () => {
		await ann.goTo('A1');
		await page.keyboard.press('Control+PageUp');
		await untilCurrent(ann, 'Plan');
		await page.keyboard.press('Control+PageUp'); // the first one
		await page.keyboard.press('Control+Shift+PageDown');
		await untilCurrent(ann, 'Sheet 2');
		await tab(ann, 'Sheet 2').focus();
		await page.keyboard.press('ArrowLeft');
		await page.keyboard.press('Enter');
		await untilCurrent(ann, 'Plan');
		assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Plan', 'the bar keeps the focus');
		await page.keyboard.press('F2');
		await page.keyboard.type('Budget');
		await page.keyboard.press('Enter');
		await untilTabs(ann, ['Budget', 'Sheet 2']);
		await page.getByRole('heading', { name: 'Budget' }).waitFor();
		assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Budget');
	});

	await step('a name that is taken is refused in place, and one with markup is text', async () => {
		await tab(ann, 'Budget').dblclick();
		const input = page.getByLabel('Name of the tab');
		await input.fill('sheet 2');
		await input.press('Enter');
		await page.locator('.tab-problem').getByText('This name is taken.').waitFor();
		await picture(ann, 'taken');
		await input.fill('');
		await input.press('Enter');
		await page.locator('.tab-problem').getByText('Names of sheets have 1 to 255 characters').waitFor();
		await input.press('Escape');
		await untilTabs(ann, ['Budget', 'Sheet 2']);
		await tab(ann, 'Budget').dblclick();
		await input.fill('<img src=x onerror="window.harm=1">');
		await input.press('Enter');
		await untilTabs(ann, ['<img src=x onerror="window.harm=1">', 'Sheet 2']);
		assert.equal(await page.evaluate(() => window.harm), undefined);
	});

	await step('a double click on a tab that is not shown shows and renames it, whether or not it is shown before the second click', async () => {
		const input = page.getByLabel('Name of the tab');
		await tab(ann, 'Sheet 2').dblclick();
		await input.fill('Twice');
		await input.press('Enter');
		await untilCurrent(ann, 'Twice');
		await tab(ann, '<img src=x onerror="window.harm=1">').click();
		await untilCurrent(ann, '<img src=x onerror="window.harm=1">');
		assert.equal(await input.count(), 0);
		const { x, y, width, height } = await tab(ann, 'Twice').boundingBox();
		await page.mouse.move(x + width / 2, y + height / 2);
		for (const clickCount of [1, 2]) {
			await page.mouse.down({ clickCount });
			await page.mouse.up({ clickCount });
			if (clickCount === 1) await untilCurrent(ann, 'Twice');
		}
		await input.fill('Sheet 2');
		await input.press('Enter');
		await untilTabs(ann, ['<img src=x onerror="window.harm=1">', 'Sheet 2']);
		await turn(ann, '<img src=x onerror="window.harm=1">');
	});

	await step('a viewer sees the tabs, and nothing that changes them', async () => {
		await sql(`SELECT sheet.share_book(${book}, 'bob', 'viewer')`);
		await bob.open(plan);
		await untilTabs(bob, ['<img src=x onerror="window.harm=1">', 'Sheet 2']);
		assert.equal(await bob.page.evaluate(() => window.harm), undefined);
		assert.deepEqual(await bob.page.locator('.tab-bar > button').evaluateAll((all) => all.filter((one) => one.checkVisibility()).map(({ title }) => title)), ['All tabs']);
		await tab(bob, 'Sheet 2').click({ button: 'right' });
		assert.equal(await bob.page.getByRole('menu').count(), 0);
		await tab(bob, '<img src=x onerror="window.harm=1">').dblclick();
		assert.equal(await bob.page.locator('.tab-name').count(), 0);
	});

	await step('what one changes, the other sees at once', async () => {
		await ann.page.bringToFront();
		await tab(ann, '<img src=x onerror="window.harm=1">').dblclick();
		await page.getByLabel('Name of the tab').fill('Budget');
		await page.getByLabel('Name of the tab').press('Enter');
		await untilTabs(bob, ['Budget', 'Sheet 2'], 2000);
		await bob.page.getByRole('heading', { name: 'Budget' }).waitFor();
		await page.getByRole('button', { name: 'New tab', exact: true }).click();
		await untilCurrent(ann, 'Sheet 3');
		await untilTabs(ann, ['Budget', 'Sheet 3', 'Sheet 2']);
		await untilTabs(bob, ['Budget', 'Sheet 3', 'Sheet 2'], 2000);
		await choose(ann, 'Sheet 3', 'Colour');
		await page.getByRole('button', { name: 'Blue', exact: true }).click();
		await waitUntil(async () => (await tab(bob, 'Sheet 3').getAttribute('style'))?.includes('#1d5fbf'), "the colour in bob's bar", 2000);
		await choose(ann, 'Sheet 3', 'Duplicate');
		await untilCurrent(ann, 'Copy of Sheet 3');
		await untilTabs(bob, ['Budget', 'Sheet 3', 'Copy of Sheet 3', 'Sheet 2'], 2000);
		await choose(ann, 'Sheet 2', 'Move left');
		await untilTabs(bob, ['Budget', 'Sheet 3', 'Sheet 2', 'Copy of Sheet 3'], 2000);
		await picture(ann, 'light');
	});

	await step('a tab is dragged to another place', async () => {
		const [from, to] = [await tab(ann, 'Copy of Sheet 3').boundingBox(), await tab(ann, 'Budget').boundingBox()];
		await page.mouse.move(from.x + 20, from.y + 10);
		await page.mouse.down();
		await page.mouse.move(to.x + 5, to.y + 10, { steps: 8 });
		await picture(ann, 'drag');
		await page.mouse.up();
		for (const person of [ann, bob]) await untilTabs(person, ['Copy of Sheet 3', 'Budget', 'Sheet 3', 'Sheet 2']);
		assert.equal(await current(ann), 'Copy of Sheet 3', 'a drag opens nothing');
	});

	await step('a file becomes the tab beside another one, and cells from the selected one on', async () => {
		const rows = { name: 'Rows.csv', mimeType: 'text/csv', buffer: Buffer.from('a;1\nb;2\n') };
		const importing = async (open) => {
			const [chooser] = await Promise.all([page.waitForEvent('filechooser'), open()]);
			await chooser.setFiles(rows);
			await page.getByRole('dialog').getByText('Rows.csv').waitFor();
			return () => page.getByRole('button', { name: 'Import', exact: true }).click();
		};
		const before = await tabs(ann);
		const [first] = before;
		await turn(ann, first);
		for (const name of ['Rows', 'Rows 2']) {
			await (await importing(() => choose(ann, first, 'Import a file beside it')))();
			await untilCurrent(ann, name);
			assert.deepEqual(await ann.cells('A1', 'B1', 'A2', 'B2'), ['a', '1', 'b', '2']);
			assert.equal((await tabs(ann))[1], name);
			await untilTabs(bob, await tabs(ann));
			await turn(ann, first);
		}
		await turn(bob, 'Rows');
		await turn(ann, 'Rows');
		await ann.goTo('B2');
		await page.locator('.bar .more').click();
		const confirm = await importing(() => page.getByRole('button', { name: 'Import a file here' }).click());
		await page.getByText('The fields of the file replace the cells from B2 on.').waitFor();
		await confirm();
		await page.getByText('The file was imported, from B2 on.').waitFor();
		for (const person of [ann, bob])
			await waitUntil(async () => (await person.cells('A2', 'B2', 'C2', 'B3', 'C3')).join() === 'b,a,1,b,2', `${person.name} to see the rows`);
		await sql(`SELECT sheet.trash(sheet_id) FROM sheet.sheet WHERE name IN ('Rows', 'Rows 2')`);
		await turn(ann, first);
		await turn(bob, 'Budget');
		for (const person of [ann, bob]) await untilTabs(person, before);
	});

	await step('a hidden tab is in the menu of all tabs only; the last shown one stays', async () => {
		await choose(ann, 'Copy of Sheet 3', 'Hide');
		await untilCurrent(ann, 'Budget');
		for (const person of [ann, bob]) await untilTabs(person, ['Budget', 'Sheet 3', 'Sheet 2']);
		await bob.page.getByRole('button', { name: 'All tabs' }).click();
		assert.deepEqual(await bob.page.getByRole('menuitemradio').allTextContents(), ['Copy of Sheet 3 (hidden)', 'Budget', 'Sheet 3', 'Sheet 2']);
		assert.deepEqual(await brokenRules(bob.page), []);
		await picture(bob, 'all');
		await bob.page.keyboard.press('Escape');
		await page.getByRole('button', { name: 'All tabs' }).click();
		await page.keyboard.press('Home');
		await page.keyboard.press('Enter');
		await untilCurrent(ann, 'Copy of Sheet 3 (hidden)');
		await page.getByRole('button', { name: 'Change this tab' }).click();
		await picture(ann, 'menu');
		await page.getByRole('menuitem', { name: 'Show', exact: true }).click();
		for (const person of [ann, bob]) await untilTabs(person, ['Copy of Sheet 3', 'Budget', 'Sheet 3', 'Sheet 2']);
	});

	await step('a tab that is moved to the trash is asked for first, and the page goes to its neighbour; others are told, and led on', async () => {
		await turn(ann, 'Sheet 3');
		await turn(bob, 'Sheet 3');
		await choose(ann, 'Sheet 3', 'Move to trash');
		await page.getByRole('button', { name: 'Cancel' }).click();
		await choose(ann, 'Sheet 3', 'Move to trash');
		await page.locator('dialog').getByRole('button', { name: 'Move to trash' }).click();
		await untilCurrent(ann, 'Sheet 2');
		await untilTabs(ann, ['Copy of Sheet 3', 'Budget', 'Sheet 2']);
		await bob.page.locator('.stopped').waitFor();
		await untilTabs(bob, ['Copy of Sheet 3', 'Budget', 'Sheet 2']);
		await picture(bob, 'trashed');
		await tab(bob, 'Budget').click();
		await untilCurrent(bob, 'Budget');
		assert.equal(await bob.page.locator('.stopped').count(), 0);
	});

	await step('who loses a role on a book loses its tabs; a sheet that has left its book has no bar for viewers', async () => {
		await sql(`SELECT sheet.share((SELECT sheet_id FROM sheet.book_tab WHERE book_id = ${book} AND sheet_id = ${plan}), 'bob', 'editor')`);
		await sql(`SELECT sheet.unshare_book(${book}, 'bob')`);
		await untilTabs(bob, ['Budget']);
		await sql(`SELECT sheet.move_tab(${plan}, NULL)`);
		await bob.page.locator('.tab-bar').waitFor({ state: 'hidden' });
		await sql(`SELECT sheet.move_tab(${plan}, ${book})`);
		await untilTabs(bob, ['Budget']);
		await untilTabs(ann, ['Copy of Sheet 3', 'Sheet 2', 'Budget']);
	});

	const ids = async (one) => (await sql(`SELECT sheet_id FROM sheet.book_tab WHERE book_id = ${one} ORDER BY place`)).split('\n').map(Number);

	await step('many tabs scroll, and the open one is in view; in Chinese, dark, and on a phone', async () => {
		const uid = Number(await sql(`SELECT uid FROM sheet.account WHERE name = 'ann'`));
		const large = Number(await sql(`SELECT sheet.create_book('Large', ${uid})`));
		for (let i = 1; i <= 20; i++) await sql(`SELECT sheet.set(sheet.add_tab(${large}, 'Department ${i}', as_uid => ${uid}), 0, 0, 'first ${i}')`);
		const all = await ids(large);
		await ann.open(all[19]);
		await untilCurrent(ann, 'Department 20');
		const inView = async ({ page: one }) => {
			const [box, list] = [await one.locator('.tab-list [aria-selected=true]').boundingBox(), await one.locator('.tab-list').boundingBox()];
			return box.x >= list.x - 1 && box.x + Math.min(box.width, list.width) <= list.x + list.width + 1;
		};
		assert.ok(await inView(ann));
		await page.keyboard.press('Control+PageUp');
		await untilCurrent(ann, 'Department 19');
		assert.ok(await inView(ann));
		await picture(ann, 'many');
		await page.getByRole('button', { name: 'Dark' }).click();
		await picture(ann, 'dark');
		await sql(`SELECT sheet.share_book(${large}, 'bob', 'editor')`);
		const phone = await browser.newContext({ viewport: { width: 390, height: 720 }, hasTouch: true, isMobile: true, locale: 'zh-CN', storageState: await bob.context.storageState() });
		t.after(() => phone.close());
		bob.page = await phone.newPage();
		bob.page.setDefaultTimeout(30000);
		await bob.page.goto(`${gateway.url}/?id=${all[9]}`);
		await tab(bob, 'Department 10').waitFor();
		await bob.grid.waitFor();
		await waitUntil(() => inView(bob), 'the open tab to be in view');
		await picture(bob, 'phone');
		await tab(bob, 'Department 11').tap();
		await waitUntil(async () => sheetOf(bob) === all[10] && (await bob.cell('A1'))?.content === 'first 11', 'the other tab on the phone');
		await bob.page.locator('.tab-actions').tap();
		await picture(bob, 'phone-menu');
		assert.deepEqual(await brokenRules(bob.page), []);
	});

	await step('sheets that were left are not kept in memory', async () => {
		const devtools = await page.context().newCDPSession(page);
		await devtools.send('Performance.enable');
		const listeners = async () => {
			for (let i = 0; i < 3; i++) await devtools.send('HeapProfiler.collectGarbage');
			return (await devtools.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'JSEventListeners').value;
		};
		for (const n of [18, 17]) await turn(ann, `Department ${n}`);
		const before = await listeners();
		for (let n = 16; n > 8; n--) await turn(ann, `Department ${n}`);
		let more;
		const few = async () => (more = (await listeners()) - before) < 200; // one sheet may wait for its last timer
		await waitUntil(few, () => `less than 200 listeners more, of which a sheet has about 200, after eight sheets; there are ${more}`);
	});

	await step('the list has one entry for a book: made, opened at its first shown tab, renamed, shared, and moved to the trash and back', async () => {
		await page.goto(`${gateway.url}/`);
		const row = (person, name) => person.page.getByRole('row').filter({ has: person.page.getByText(name, { exact: true }) });
		await row(ann, 'Large').getByText('Book, tabs: 20').waitFor();
		assert.equal(await page.getByText('Department 3').count(), 0);
		await page.getByLabel('Search sheets').fill('department 3');
		await row(ann, 'Large').waitFor();
		assert.equal(await page.locator('tbody tr').count(), 1);
		await page.getByLabel('Search sheets').fill('');
		await sql(`SELECT sheet.change_tab((SELECT sheet_id FROM sheet.listed WHERE name = 'Department 1' LIMIT 1), hidden => true)`);
		await row(ann, 'Large').getByRole('link').click();
		await untilCurrent(ann, 'Department 2');
		await page.goBack();
		await page.getByRole('button', { name: 'New book' }).click();
		await page.getByLabel('Name of the book').fill('Trips');
		await page.getByRole('button', { name: 'Create' }).click();
		await untilCurrent(ann, 'Sheet 1');
		await page.getByRole('link', { name: 'Sheets' }).click();
		await row(ann, 'Trips').getByText('Book, tabs: 1').waitFor();
		await page.getByRole('button', { name: 'Rename Trips' }).click();
		await page.getByLabel('Name of the book').fill('<b>Travel</b>');
		await page.locator('dialog button[type=submit]').click();
		await row(ann, '<b>Travel</b>').waitFor();
		assert.deepEqual(await brokenRules(page), []);
		await picture(ann, 'list');
		await page.getByRole('button', { name: 'Share <b>Travel</b>' }).click();
		await page.getByLabel('User name').fill('nobody');
		await page.locator('dialog button[type=submit]').click();
		await page.locator('dialog .problem').filter({ hasText: 'There is no' }).waitFor();
		await page.getByLabel('User name').fill('bob');
		await page.locator('dialog button[type=submit]').click();
		await page.getByText('bob is now editor of this book.').waitFor();
		assert.deepEqual(await brokenRules(page), []);
		await picture(ann, 'list-share');
		bob.page = await bob.context.newPage();
		await bob.page.goto(`${gateway.url}/`);
		await row(bob, '<b>Travel</b>').waitFor();
		assert.equal(await row(bob, '<b>Travel</b>').getByRole('button', { name: 'Move' }).count(), 0);
		await page.getByLabel('Access of bob').selectOption('viewer');
		await page.getByText('bob is now viewer of this book.').waitFor();
		await page.getByRole('button', { name: 'Remove bob' }).click();
		await page.getByText('bob has no access any more.').waitFor();
		await page.getByRole('button', { name: 'Close', exact: true }).click();
		await page.getByRole('button', { name: 'Move <b>Travel</b> to the trash' }).click();
		await row(ann, '<b>Travel</b>').waitFor({ state: 'detached' });
		await page.getByRole('button', { name: 'Trash', exact: true }).click();
		await page.getByRole('button', { name: 'Recover <b>Travel</b>' }).click();
		await page.getByRole('button', { name: 'All sheets' }).click();
		await row(ann, '<b>Travel</b>').getByText('Book, tabs: 1').waitFor();
		await page.getByRole('button', { name: 'Move <b>Travel</b> to the trash' }).click();
		await page.getByRole('button', { name: 'Trash', exact: true }).click();
		await page.getByRole('button', { name: 'Delete <b>Travel</b> for good' }).click();
		await page.locator('dialog').getByText('and all its tabs').waitFor();
		await page.locator('dialog').getByRole('button', { name: 'Delete for good' }).click();
		await row(ann, '<b>Travel</b>').waitFor({ state: 'detached' });
		assert.equal(await sql(`SELECT count(*) FROM sheet.book WHERE name LIKE '%Travel%'`), '0');
	});

	if (process.env.BOOK_TIMES) {
		const alone = Number(await sql(`SELECT sheet.create('alone', as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
		await sql(`SELECT sheet.set(${alone}, 0, 0, 'first')`);
		const [large] = (await sql(`SELECT book_id FROM sheet.book WHERE name = 'Large'`)).split('\n');
		const all = await ids(large);
		const median = (times) => Math.round(times.sort((a, b) => a - b)[times.length >> 1]);
		const open = async (id) => {
			await page.goto(`${gateway.url}/?id=${id}`);
			await page.waitForFunction(() => window.pgSheet?.contentOf(0, 0)?.content.startsWith('first'), undefined, { polling: 'raf' });
			return page.evaluate(() => performance.now());
		};
		const click = (name) =>
			page.evaluate(async (wanted) => {
				const from = performance.now();
				[...document.querySelectorAll('.tab-list .tab')].find(({ textContent }) => textContent === wanted).click();
				while (window.pgSheet.contentOf(0, 0)?.content !== wanted.replace('Department', 'first')) await new Promise(requestAnimationFrame);
				await new Promise(requestAnimationFrame);
				return performance.now() - from;
			}, name);
		const times = { alone: [], book: [], click: [] };
		for (let i = 0; i < 15; i++) {
			times.alone.push(await open(alone));
			times.book.push(await open(all[i]));
		}
		await untilCurrent(ann, 'Department 15');
		for (const name of await tabs(ann)) {
			if (name === (await current(ann))) continue;
			times.click.push(await click(name));
			await ann.untilOpen();
		}
		for (const [name, list] of Object.entries(times)) t.diagnostic(`${name}: median ${median(list)} ms, from ${Math.round(list[0])} to ${Math.round(list.at(-1))}`);
	}
});
