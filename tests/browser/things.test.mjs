/*
 * things.test.mjs - what is around the grid: names of sheets, the list, who has access, the account, CSV files, uploaded
 * files, names of versions, and the history of a person or of cells.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { post } from '../lib/client.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { meet, Person } from './page.mjs';

test('around the grid', { timeout: 420000 }, async (t) => {
	const { cluster, gateway, browser, persons: [ann, bob] } = await meet(t, undefined, { gatewayFlags: { 'default-link-role': 'none' } });
	const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'csv-'));
	t.after(() => fs.rm(directory, { recursive: true }));
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});
	const title = (person) => person.page.locator('.sheet-name').textContent();
	const toList = (person) => person.page.goto(`${gateway.url}/`);
	/** The names in the list, from above. */
	const names = (person) => person.page.locator('.list tbody td:first-child').allTextContents();
	const untilNames = (person, expected) => waitUntil(async () => JSON.stringify(await names(person)) === JSON.stringify(expected), async () => `the list to have ${expected}: ${await names(person)}`);
	const says = (person, text) => person.page.getByText(text).first().waitFor();
	const id = await ann.newSheet('Household');
	await ann.type('A1', 'Rent', 'Food');

	await step('a sheet is renamed in its title, by Enter, and not by Escape', async () => {
		const { page } = ann;
		await page.locator('.sheet-name button').click();
		await page.locator('.sheet-name input').fill('Not this');
		await page.keyboard.press('Escape');
		assert.equal(await title(ann), 'Household');
		await page.locator('.sheet-name button').click();
		await page.locator('.sheet-name input').fill('  Our house ');
		await page.keyboard.press('Enter');
		await page.locator('.sheet-name button', { hasText: 'Our house' }).waitFor();
		assert.match(await page.title(), /^Our house –/);
		assert.equal(await cluster.psql(`SELECT name FROM sheet.info(${id})`), 'Our house');
		assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Our house');
		await page.locator('.sheet-name button').click();
		await page.keyboard.press('Enter');
		await page.locator('.sheet-name button', { hasText: 'Our house' }).waitFor();
		await page.locator('.sheet-name button').click();
		await page.locator('.sheet-name input').fill('👨‍👩‍👧 '.repeat(31).trim());
		await page.keyboard.press('Enter');
		await page.locator('.sheet-name button', { hasText: '👨‍👩‍👧' }).waitFor();
		assert.equal(await cluster.psql(`SELECT length(name) FROM sheet.info(${id})`), String(31 * 6 - 1), 'letters of two UTF-16 units are not cut');
		await cluster.psql(`SELECT sheet.rename(${id}, 'Our house')`);
		await ann.open(id);
		for (const bad of ['', 'a\u202eb', '\u200b', '😀'.repeat(256)]) {
			await page.locator('.sheet-name button').click();
			await page.locator('.sheet-name input').fill(bad);
			await page.keyboard.press('Enter');
			await says(ann, 'Names of sheets have 1 to 255 characters');
			await page.locator('.sheet-name input:not(:disabled)').press('Escape');
			assert.equal(await title(ann), 'Our house');
			await page.evaluate(() => document.querySelector('#messages').replaceChildren());
		}
		assert.deepEqual(await ann.cells('A1', 'A2'), ['Rent', 'Food'], 'keys of the name do not reach the grid');
	});

	await step('the owner sees who has access, changes it, and takes it back; others see it', async () => {
		const { page } = ann;
		await ann.share('bob', 'viewer');
		const link = await ann.shareByLink('editor');
		await page.getByRole('button', { name: 'Share', exact: true }).click();
		const rows = page.locator('.members li');
		await waitUntil(async () => (await rows.count()) === 2, 'two members');
		assert.equal(await rows.nth(0).textContent(), 'annowner');
		assert.equal(await page.getByLabel('Access of bob').inputValue(), 'viewer');
		// Bob has the sheet by the link, too, which lets him do more than his role.
		await bob.page.goto(link);
		await bob.untilOpen();
		await bob.page.locator('.sheet-name button').waitFor();
		await page.getByLabel('User name').fill('bob');
		await page.getByLabel('Role', { exact: true }).selectOption('viewer');
		await page.locator('dialog button[type=submit]').first().click();
		await says(ann, 'bob is still editor of this sheet, by the link.');
		await page.getByLabel('Whoever opens the link is').selectOption('viewer');
		await page.getByRole('button', { name: 'Set', exact: true }).click();
		await says(bob, 'You may read this sheet, not change it.');
		await page.getByLabel('Whoever opens the link is').selectOption('editor');
		await page.getByRole('button', { name: 'Set', exact: true }).click();
		await says(ann, 'A link gives people with an account access to this sheet. Whoever opens it is editor.');
		assert.deepEqual(await page.getByLabel('Role', { exact: true }).locator('option').allTextContents(), ['editor', 'viewer']);
		assert.ok(!(await page.locator('dialog').textContent()).includes('commenter'));

		await bob.open(id);
		assert.equal(await bob.page.locator('.sheet-name button').count(), 0, 'a viewer cannot rename');
		await page.getByLabel('Access of bob').selectOption('editor');
		await says(ann, 'bob is now editor of this sheet.');
		await bob.page.locator('.sheet-name button').waitFor();
		await bob.page.getByRole('button', { name: 'Who has access' }).click();
		await says(bob, 'A link gives people with an account access to this sheet.');
		assert.deepEqual(await bob.page.locator('.members li').allTextContents(), ['annowner', 'bobeditor']);
		assert.equal(await bob.page.locator('dialog form').isVisible(), false, 'an editor does not share');
		await bob.page.keyboard.press('Escape');
		await page.getByLabel('Whoever opens the link is').selectOption('off');
		await page.getByRole('button', { name: 'Set', exact: true }).click();
		await says(ann, 'No link gives people with an account access to this sheet.');
		await page.getByRole('button', { name: 'Remove bob' }).click();
		await waitUntil(async () => (await rows.count()) === 1, 'bob to be gone from the list');
		await bob.page.locator('.stopped').waitFor();
		await page.keyboard.press('Escape');
		assert.ok(link.includes('#join='));
		await ann.share('bob', 'editor');
		await bob.open(id);
		await bob.type('B1', 'from bob');
		await bob.untilSaved();
	});

	await step('a version gets a name when it is saved, and another one later', async () => {
		const { page } = ann;
		await page.getByRole('button', { name: 'Versions', exact: true }).click();
		await page.getByLabel('Name of the version').fill('before the move');
		await page.locator('.drawer').getByRole('button', { name: 'Save version' }).click();
		await page.locator('.drawer .label', { hasText: 'before the move' }).waitFor();
		await page.getByRole('button', { name: 'Name version 1' }).click();
		await page.locator('.entries').getByLabel('Name of the version').fill('the old flat');
		await page.keyboard.press('Enter');
		await page.locator('.drawer .label', { hasText: 'the old flat' }).waitFor();
		assert.equal(await cluster.psql(`SELECT string_agg(label, ',') FROM sheet.versions(${id}) WHERE cause = 'commit'`), 'the old flat');
		await page.getByRole('button', { name: 'Name version 1' }).click();
		await page.locator('.entries').getByLabel('Name of the version').press('Escape');
		assert.equal(await page.getByRole('button', { name: 'Preview version 1' }).isVisible(), true, 'the drawer is still there');
	});

	await step('the history of a person, and of the selected cells', async () => {
		const { page } = ann;
		await page.getByRole('button', { name: 'History', exact: true }).click();
		const entries = () => page.locator('.entries li strong').allTextContents();
		const untilEntries = (expected) => waitUntil(async () => JSON.stringify(await entries()) === JSON.stringify(expected), async () => `${expected}: ${await entries()}`);
		await untilEntries(['Version 1', 'B1', 'A2', 'A1', 'Time zone: UTC', 'The sheet has 84 rows and 60 columns']);
		await page.getByLabel('By', { exact: true }).selectOption('bob');
		await untilEntries(['B1']);
		await page.getByLabel('By', { exact: true }).selectOption('everybody');
		await untilEntries(['Version 1', 'B1', 'A2', 'A1', 'Time zone: UTC', 'The sheet has 84 rows and 60 columns']);
		await ann.goTo('A2');
		await page.getByRole('button', { name: 'Selected cells only' }).click();
		await untilEntries(['A2']);
		await page.getByLabel('By', { exact: true }).selectOption('bob');
		await says(ann, 'No such edits were found.');
		await page.getByRole('button', { name: 'Only A2' }).click();
		await untilEntries(['B1']);
		await page.keyboard.press('Escape');
	});

	/** Chooses a file, and says yes to its preview. */
	const importFile = async (page, file) => {
		await page.locator('input[type=file]').setInputFiles(file);
		await page.getByRole('button', { name: 'Import', exact: true }).click();
	};

	await step('a sheet is downloaded as CSV, and CSV becomes a sheet', async () => {
		const { page } = ann;
		await page.locator('.bar .more').click();
		const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download CSV' }).click()]);
		assert.equal(download.suggestedFilename(), 'Our house.csv');
		const file = path.join(directory, 'Copied.csv');
		await download.saveAs(file);
		assert.equal(await fs.readFile(file, 'utf8'), 'Rent,from bob\r\nFood,\r\n');

		await toList(ann);
		await importFile(page, file);
		await ann.untilOpen();
		assert.deepEqual([await title(ann), ...(await ann.cells('A1', 'B1', 'A2'))], ['Copied', 'Rent', 'from bob', 'Food']);

		await toList(ann);
		await page.locator('.list table').waitFor();
		const dropped = await page.evaluateHandle(() => {
			const transfer = new DataTransfer();
			transfer.items.add(new File(['x,y\n1,"2'], 'bad.csv', { type: 'text/csv' }));
			return transfer;
		});
		const taken = (target) => page.evaluate(([to, dataTransfer]) => {
			const event = new DragEvent('dragover', { dataTransfer, bubbles: true, cancelable: true });
			return [!document.querySelector(to).dispatchEvent(event), event.dataTransfer.dropEffect];
		}, [target, dropped]);
		assert.equal((await taken('header.bar'))[0], true, 'a browser would open the file in place of the page');
		assert.equal(await page.locator('main.sheets.dropping').count(), 1);
		await page.dispatchEvent('header.bar', 'drop', { dataTransfer: dropped });
		await says(ann, 'Line 2, field 2: a quotation mark is misplaced, or not closed, or the line is no JSON array. Nothing was imported.');
		await page.keyboard.press('Escape');
		const other = path.join(directory, 'köln.csv');
		await fs.writeFile(other, Buffer.from('Ort;Wert;Maß\nK\u00f6ln;1.234,5;"5" Rohr\n', 'latin1'));
		await page.locator('input[type=file]').setInputFiles(other);
		await says(ann, 'Line 2, field 3: a quotation mark is misplaced, or not closed, or the line is no JSON array. Nothing was imported.');
		const dialog = page.getByRole('dialog', { name: 'Import CSV' });
		const shown = () => dialog.locator('td').allTextContents();
		assert.equal(await page.getByRole('button', { name: 'Import', exact: true }).isDisabled(), true);
		assert.deepEqual([await dialog.getByLabel('Encoding').inputValue(), await dialog.getByLabel('Separator').inputValue()], ['windows-1252', ';']);
		await dialog.getByLabel('Take misplaced quotation marks').check();
		await waitUntil(async () => (await shown()).join('|') === 'Ort|Wert|Maß|Köln|1.234,5|5 Rohr', 'all rows to be shown');
		await dialog.getByLabel('Numbers have a decimal comma').check();
		await waitUntil(async () => (await shown())[4] === '1234.5', 'the number');
		await dialog.getByLabel('Encoding').selectOption('windows-1251');
		await waitUntil(async () => (await shown())[3] === 'Kцln', 'the other encoding');
		await dialog.getByLabel('Encoding').selectOption('windows-1252');
		await waitUntil(async () => (await shown())[3] === 'Köln', 'the encoding again');
		await dialog.getByLabel('Separator').selectOption(',');
		await waitUntil(async () => (await shown())[0] === 'Ort;Wert;Maß', 'the other separator');
		await dialog.getByLabel('Separator').selectOption(';');
		await waitUntil(async () => (await shown())[0] === 'Ort', 'the separator again');
		await page.getByRole('button', { name: 'Import', exact: true }).click();
		await says(ann, 'Fields with misplaced quotation marks: 1, the first one in line 2.');
		await ann.untilOpen();
		assert.deepEqual(await ann.cells('A1', 'A2', 'B2', 'C2'), ['Ort', 'Köln', '1234.5', '5 Rohr']);
		await cluster.psql("SELECT sheet.purge(sheet_id) FROM sheet.sheet WHERE name = 'köln'");
		await toList(ann);
		// Dates that end with the year: recognised where there is one order, else that of the language (en-US), or as they are.
		const days = path.join(directory, 'Days.csv');
		for (const [text, recognised, rows] of [
			['31.01.2024,1.2.2024\n', 'dmy', '2024-01-31|2024-02-01'],
			['1/2/2024,x\n', 'mdy', '2024-01-02|x'],
			['31/1/2024,1/31/2024\n', '', '31/1/2024|1/31/2024'],
		]) {
			await fs.writeFile(days, text);
			await page.locator('input[type=file]').setInputFiles(days);
			await waitUntil(async () => (await shown()).join('|') === rows, `${rows} to be shown`);
			assert.equal(await dialog.getByLabel('Dates').inputValue(), recognised);
			await dialog.getByLabel('Dates').selectOption('');
			await waitUntil(async () => (await shown()).join() === text.trim(), 'the texts');
			await page.getByRole('button', { name: 'Cancel' }).click();
		}
		// Formulas and codes stay texts, unless the user takes them for what they look like.
		const codes = path.join(directory, 'Codes.csv');
		await fs.writeFile(codes, '=1+1,1E5,+49301234,007,12\n');
		for (const [taken, formulas, values, stored] of [
			[false, [], ['12'], "'=1+1|'1E5|'+49301234|007|12"],
			[true, ['=1+1'], ['1E5', '+49301234', '12'], '=1+1|1E5|+49301234|007|12'],
		]) {
			await page.locator('input[type=file]').setInputFiles(codes);
			assert.equal(await dialog.getByLabel('Take fields that begin with =').isChecked(), false);
			await dialog.getByLabel('Take fields that begin with =').setChecked(taken);
			await waitUntil(async () => (await dialog.locator('td.value').allTextContents()).join() === values.join(), 'the preview');
			assert.deepEqual(await dialog.locator('td.formula').allTextContents(), formulas);
			assert.deepEqual(await shown(), ['=1+1', '1E5', '+49301234', '007', '12']);
			await page.getByRole('button', { name: 'Import', exact: true }).click();
			await ann.untilOpen();
			assert.equal(await cluster.psql("SELECT string_agg(content, '|') FROM sheet.sheet s, sheet.range(s.sheet_id) WHERE name = 'Codes'"), stored);
			await cluster.psql("SELECT sheet.purge(sheet_id) FROM sheet.sheet WHERE name = 'Codes'");
			await toList(ann);
		}
		// Excel's own: semicolons, and UTF-16 with tabs.
		for (const [name, bytes] of [['Semikolon.csv', '\ufeffName;Wert, EUR\r\nMüller;"3;5"\r\n'], ['Sep.csv', 'sep=;\r\nName;Wert, EUR\r\nMüller;"3;5"\r\n'], ['Unicode.txt', Buffer.from('\ufeffName\tWert, EUR\r\nMüller\t3;5\r\n', 'utf16le')]]) {
			await fs.writeFile(path.join(directory, name), bytes);
			await toList(ann);
			await importFile(page, path.join(directory, name));
			await ann.untilOpen();
			assert.deepEqual(await ann.cells('A1', 'B1', 'A2', 'B2'), ['Name', 'Wert, EUR', 'Müller', '3;5'], name);
			assert.equal(await page.evaluate(() => {
				const dataTransfer = new DataTransfer();
				dataTransfer.items.add(new File(['x'], 'x.csv'));
				return document.querySelector('.grid').dispatchEvent(new DragEvent('dragover', { dataTransfer, bubbles: true, cancelable: true }));
			}), false, 'a file that is dropped on an open sheet does not take its place');
			await cluster.psql(`SELECT sheet.purge(sheet_id) FROM sheet.sheet WHERE name = '${name.slice(0, -4)}'`);
		}
		await toList(ann);
		await untilNames(ann, ['Copied', 'Our house']);
	});

	await step('an import is cancelled while it is sent, and nothing is left', async () => {
		const { page } = ann;
		const network = await page.context().newCDPSession(page);
		await network.send('Network.enable');
		await network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 200000 });
		const file = path.join(directory, 'large.csv');
		await fs.writeFile(file, 'a,b,c\n'.repeat(1 << 20));
		await importFile(page, file);
		await waitUntil(async () => Number(await cluster.psql('SELECT count(*) FROM sheet.import_part')) > 0, 'a part to arrive');
		await page.getByRole('button', { name: 'Cancel' }).click();
		await network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
		await waitUntil(async () => (await cluster.psql('SELECT (SELECT count(*) FROM sheet.import) + (SELECT count(*) FROM sheet.import_part)')) === '0', 'the parts to be removed');
		await toList(ann);
		await untilNames(ann, ['Copied', 'Our house']);
	});

	await step('what one has uploaded is shown in small, its address is copied, and it is deleted', async () => {
		const { page } = ann;
		const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
		const { token } = await page.evaluate(() => JSON.parse(sessionStorage.getItem('pg_sheet.session')));
		for (const [name, content] of [['a (1) [x].png', png], ['notes.txt', 'some notes'], ['fake.png', '<html>']]) {
			const form = new FormData();
			form.append('fid', id);
			form.append('token', token);
			form.append('uploadfile', new Blob([content]), name);
			assert.equal((await (await fetch(`${gateway.url}/uploadchunk`, { method: 'POST', body: form })).json()).success, true);
		}
		const loaded = () => page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => /\/album-/.test(name)).length);
		assert.equal(await loaded(), 0);
		await page.getByRole('button', { name: 'My files' }).click();
		const dialog = page.getByRole('dialog', { name: 'My files' });
		await dialog.getByText('Files: 3, 86 bytes in all').waitFor();
		assert.ok((await loaded()) > 0);
		assert.deepEqual(await dialog.locator('li .name').allTextContents(), ['fake.png', 'notes.txt', 'a (1) [x].png']);
		assert.deepEqual(await dialog.locator('li .about a').allTextContents(), ['Our house', 'Our house', 'Our house']);
		// A name does not make a picture: the gateway gives such a file as an attachment.
		const picture = dialog.locator('.thumbnail img');
		await waitUntil(async () => (await picture.count()) === 1 && (await picture.evaluate((image) => image.naturalWidth)) === 1, 'one picture');
		const copied = async (name) => {
			await page.evaluate(() => navigator.clipboard.writeText(''));
			await dialog.getByRole('button', { name }).click();
			return waitUntil(() => page.evaluate(() => navigator.clipboard.readText()), 'the address');
		};
		const url = await copied('Copy the address of a (1)');
		assert.match(url, /^http:\/\/[^/]+\/i\/[\w-]+\/a%20(\(|%28)1(\)|%29)%20(\[|%5B)x(\]|%5D)\.png$/);
		assert.equal((await fetch(url)).headers.get('content-type'), 'image/png');
		assert.equal(await copied('Copy a (1) [x].png as Markdown'), `![a (1) \\[x\\].png](${url.replace('(', '%28').replace(')', '%29')})`);
		assert.equal(await copied('Copy a (1) [x].png as HTML'), `<img src="${url}" alt="a (1) [x].png">`);
		await dialog.getByRole('button', { name: 'Delete notes.txt' }).click();
		await page.locator('dialog').last().getByRole('button', { name: 'Delete', exact: true }).click();
		await dialog.getByText('Files: 2, 76 bytes in all').waitFor();
		assert.match(await page.evaluate(() => document.activeElement.ariaLabel), /^Delete a \(1\)/);
		assert.equal(await cluster.psql(`SELECT string_agg(name, ' ' ORDER BY name) FROM sheet.file WHERE sheet_id = ${id}`), 'a (1) [x].png fake.png');
		await page.keyboard.press('Escape');
		await dialog.waitFor({ state: 'detached' });
	});

	await step('the list is searched, sorted, and sheets are renamed in it', async () => {
		const { page } = ann;
		await page.getByRole('button', { name: 'Rename Copied' }).click();
		await page.getByLabel('Name of the sheet').fill('');
		await page.getByLabel('Name of the sheet').fill('a\u202eb');
		await page.getByRole('button', { name: 'Save', exact: true }).click();
		await says(ann, 'Names of sheets have 1 to 255 characters');
		await page.getByLabel('Name of the sheet').fill('Plan 9');
		await page.getByRole('button', { name: 'Save', exact: true }).click();
		await untilNames(ann, ['Plan 9', 'Our house']);
		// More than a page of the list: what is searched and sorted is all of it.
		await cluster.psql(`SELECT count(sheet.create('Plan ' || n, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))) FROM generate_series(10, 250) n`);
		await toList(ann);
		await waitUntil(async () => (await names(ann)).length === 200, 'the first page');
		await page.getByLabel('Search sheets').fill('our');
		await untilNames(ann, ['Our house']);
		// While the first page is being read, and while the second is and a new name makes the list be read again.
		const holdAnswer = () => {
			let release;
			const held = new Promise((resolve) => (release = resolve));
			const asked = page.waitForRequest('**/v2/sheets?*');
			return page.route('**/v2/sheets?*', async (route) => (await held, route.continue()), { times: 1 }).then(() => ({ asked, release }));
		};
		const first = await holdAnswer();
		await toList(ann);
		await first.asked;
		await page.getByLabel('Search sheets').fill('our');
		first.release();
		await untilNames(ann, ['Our house']);
		await toList(ann);
		await waitUntil(async () => (await names(ann)).length === 200, 'the first page');
		const second = await holdAnswer();
		await page.getByLabel('Search sheets').fill('our');
		await second.asked;
		await page.getByLabel('Search sheets').fill('plan 250');
		await page.getByRole('button', { name: 'Rename Plan 250' }).click();
		await page.getByLabel('Name of the sheet').fill('Plan 250 of our house');
		await page.getByRole('button', { name: 'Save', exact: true }).click();
		await page.locator('dialog').waitFor({ state: 'detached' });
		await page.getByLabel('Search sheets').fill('our');
		await untilNames(ann, ['Plan 250 of our house', 'Our house']);
		second.release();
		await untilNames(ann, ['Plan 250 of our house', 'Our house']);
		await page.getByRole('button', { name: 'Rename Plan 250 of our house' }).click();
		await page.getByLabel('Name of the sheet').fill('Plan 250');
		await page.getByRole('button', { name: 'Save', exact: true }).click();
		await untilNames(ann, ['Our house']);
		await page.getByLabel('Search sheets').fill('none of them');
		await says(ann, 'No sheet has this in its name');
		await page.getByLabel('Search sheets').fill('plan 1');
		await waitUntil(async () => (await names(ann)).length === 132, 'the plans that have a 1');
		await page.getByLabel('Search sheets').fill('plan');
		await page.getByRole('button', { name: 'Name', exact: true }).click();
		await waitUntil(async () => (await names(ann))[0] === 'Plan 9' && (await names(ann))[1] === 'Plan 10', 'the order of the names');
		assert.equal(await page.locator('th').first().getAttribute('aria-sort'), 'ascending');
		await page.getByRole('button', { name: 'Name', exact: true }).click();
		await waitUntil(async () => (await names(ann))[0] === 'Plan 250', 'the names backward');
		await page.getByRole('button', { name: 'Last edited' }).click();
		await waitUntil(async () => (await names(ann))[0] === 'Plan 250', 'the last edited first');
		await page.getByLabel('Search sheets').fill('');
		await page.getByRole('button', { name: 'Last edited' }).click();
		await waitUntil(async () => (await names(ann))[0] === 'Our house', 'the first edited first');
	});

	await step('the list by keys: the focus stays in the row, and what moves to the trash is not deleted by chance', async () => {
		const { page } = ann;
		const focus = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
		const untilFocus = (expected) => waitUntil(async () => (await focus()) === expected, async () => `the focus at ${expected}: ${await focus()}`);
		const trashed = (name) => cluster.psql(`SELECT trashed_at IS NOT NULL FROM sheet.sheet WHERE name = '${name}'`);
		await toList(ann);
		await page.getByLabel('Search sheets').fill('plan 24');
		await untilNames(ann, [249, 248, 247, 246, 245, 244, 243, 242, 241, 240, 224, 124, 24].map((n) => `Plan ${n}`));
		await page.getByRole('button', { name: 'Rename Plan 248' }).focus();
		await page.keyboard.press('Enter');
		await page.keyboard.type('Plan 24 and 8');
		await page.keyboard.press('Enter');
		await waitUntil(async () => (await names(ann))[1] === 'Plan 24 and 8', 'the new name');
		await untilFocus('Rename Plan 24 and 8');
		await page.keyboard.press('Tab');
		await page.keyboard.press('Enter');
		await says(ann, '“Plan 24 and 8” is in the trash.');
		await untilFocus('Move Plan 247 to the trash');
		// A double click of the first row, whose place the second takes.
		const { x, y } = await page.getByRole('button', { name: 'Move Plan 249 to the trash' }).boundingBox();
		await page.mouse.move(x + 5, y + 5);
		await page.mouse.down();
		await page.mouse.up();
		await says(ann, '“Plan 249” is in the trash.');
		await waitUntil(async () => (await names(ann))[0] === 'Plan 247', 'the list without it');
		await page.mouse.down({ clickCount: 2 });
		await page.mouse.up({ clickCount: 2 });
		// A list that is older than the move to the trash.
		await cluster.psql(`SELECT sheet.trash(sheet_id) FROM sheet.sheet WHERE name = 'Plan 246'`);
		await page.getByRole('button', { name: 'Move Plan 246 to the trash' }).click();
		await says(ann, 'This sheet is in the trash.');
		assert.deepEqual([await trashed('Plan 246'), await trashed('Plan 247'), await trashed('Plan 249')], ['t', 'f', 't']);
		await page.getByRole('button', { name: 'Trash', exact: true }).click();
		await untilNames(ann, ['Plan 249', 'Plan 24 and 8', 'Plan 246']);
		// A trash that is older than the recovery.
		await cluster.psql(`SELECT sheet.recover(sheet_id) FROM sheet.sheet WHERE name = 'Plan 246'`);
		await page.getByRole('button', { name: 'Delete Plan 246 for good' }).click();
		await page.locator('dialog').getByRole('button', { name: 'Delete for good' }).click();
		await says(ann, 'This sheet has been recovered already.');
		assert.equal(await trashed('Plan 246'), 'f');
		await page.getByRole('button', { name: 'Recover Plan 249' }).focus();
		await page.keyboard.press('Enter');
		await says(ann, '“Plan 249” is in the list again.');
		await untilFocus('Recover Plan 24 and 8');
		await page.getByRole('button', { name: 'Delete Plan 24 and 8 for good' }).click();
		await page.locator('dialog').getByRole('button', { name: 'Delete for good' }).click();
		await says(ann, '“Plan 24 and 8” is deleted.');
		assert.equal(await trashed('Plan 24 and 8'), '');
		await untilFocus('Search sheets');
	});

	await step('a new name and a new password, while a sheet is open', async () => {
		const { page } = ann;
		await ann.open(id);
		await page.getByRole('button', { name: 'ann', exact: true }).click();
		await page.getByLabel('Display name').fill('bob');
		await page.getByRole('button', { name: 'Change name' }).click();
		await says(ann, 'This user name is taken.');
		for (const bad of ['   ', 'x'.repeat(101), 'a\u202eb']) {
			await page.getByLabel('Display name').fill(bad);
			await page.getByRole('button', { name: 'Change name' }).click();
			await says(ann, 'Names have 1 to 100 characters, which');
			await page.getByLabel('Display name').fill('bob');
			await page.getByRole('button', { name: 'Change name' }).click();
			await says(ann, 'This user name is taken.');
		}
		await page.getByLabel('Display name').fill('Ann Smith');
		await page.getByRole('button', { name: 'Change name' }).click();
		await says(ann, 'Your name is now Ann Smith.');
		await page.getByLabel('Current password').fill('wrong');
		await page.getByLabel('New password').fill('a newer password');
		await page.getByRole('button', { name: 'Change password' }).click();
		await says(ann, 'The current password is wrong.');
		await page.getByLabel('Current password').fill(ann.password);
		await page.getByRole('button', { name: 'Change password' }).click();
		await says(ann, 'Your password is changed.');
		ann.password = 'a newer password';
		await page.getByRole('button', { name: 'Close', exact: true }).click();
		await page.getByRole('button', { name: 'Ann Smith' }).waitFor();
		await ann.untilSaved();
		await ann.type('A3', 'after the change');
		await bob.untilShows('A3', 'after the change');
		assert.equal(await page.locator('dialog').count(), 0, 'nobody is asked for the password');
	});

	await step('an access token is created, shown once, used by a program, and revoked', async () => {
		const { page } = ann;
		await page.getByRole('button', { name: 'Ann Smith' }).click();
		await page.getByRole('button', { name: 'Access tokens' }).click();
		const dialog = page.getByRole('dialog', { name: 'Access tokens' });
		await dialog.getByText('You have no access tokens.').waitFor();
		await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('report');
		await dialog.getByRole('checkbox', { name: /^read / }).uncheck();
		await dialog.getByRole('button', { name: 'Create access token' }).click();
		await dialog.getByText('Choose at least one scope.').waitFor();
		await dialog.getByRole('checkbox', { name: /^edit / }).check();
		await dialog.getByRole('combobox', { name: 'End' }).selectOption('30');
		await dialog.getByRole('button', { name: 'Create access token' }).click();
		const token = await waitUntil(() => dialog.getByLabel(/^The new token/).inputValue(), 'the token');
		const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
		const write = (value) => fetch(`${gateway.url}/v2/sheets/${id}/cells?range=A4`, { method: 'PUT', headers, body: JSON.stringify({ values: [[value]] }) });
		assert.equal((await write('by a program')).status, 200);
		await bob.untilShows('A4', 'by a program');
		await dialog.getByRole('row', { name: /report edit .* not yet/ }).waitFor();
		await dialog.getByRole('button', { name: 'Revoke report' }).click();
		await page.locator('dialog').last().getByRole('button', { name: 'Revoke', exact: true }).click();
		await dialog.getByText('You have no access tokens.').waitFor();
		assert.equal((await write('no more')).status, 401);
		await page.keyboard.press('Escape');
		await page.keyboard.press('Escape');
		await page.locator('dialog').first().waitFor({ state: 'detached' });
	});

	await step('names from right to left have a direction of their own, wherever they stand', async () => {
		const { page } = ann;
		const dana = await Person.arrive(browser, gateway, 'דנה כהן');
		await post(gateway, '/register', { username: dana.name, password: dana.password, email: 'dana@example.org' });
		await dana.page.goto(`${gateway.url}/`);
		await dana.page.getByLabel('User name').fill(dana.name);
		await dana.page.getByLabel('Password').fill(dana.password);
		await dana.page.locator('form button[type=submit]').click();
		await dana.page.getByRole('heading', { name: 'Sheets' }).waitFor();
		await cluster.psql(`SELECT sheet.rename(${id}, 'תקציב'); SELECT sheet.share(${id}, '${dana.name}', 'editor'); SELECT sheet.create_link(${id}, label => 'לוח')`);
		/** The elements that have Hebrew letters, and those where they would turn what is beside them. */
		const hebrew = (of) =>
			of.evaluate(() => {
				const [all, bare] = [[], []];
				const look = (element, text, isolated) => {
					if (!/[\u0590-\u05ff]{2}/.test(text)) return;
					all.push(text);
					if (!isolated && !/^[^\u0590-\u05ff]*\u2068[^\u2069]*\u2069[^\u0590-\u05ff]*$/.test(text)) bare.push(element.outerHTML);
				};
				for (const element of document.querySelectorAll('title, body *')) {
					for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE) look(element, node.data, element.closest('bdi, [dir=auto]'));
					for (const name of ['title', 'aria-label', 'placeholder', 'alt']) look(element, element.getAttribute(name) ?? '', false);
				}
				return { all, bare };
			});
		const shows = async (of, ...texts) => {
			let last;
			await waitUntil(
				async () => {
					last = await hebrew(of);
					return texts.every((text) => last.all.some((other) => other.includes(text)));
				},
				() => `${texts} to be shown; there are ${last.all}`,
			);
			assert.deepEqual(last.bare, []);
		};
		await dana.open(id);
		await dana.type('D1', 'שלום');
		await ann.open(id);
		await shows(page, 'תקציב', dana.name);
		await page.locator('.face').first().click();
		await page.getByRole('button', { name: 'History', exact: true }).click();
		await page.locator('.drawer .who', { hasText: dana.name }).first().waitFor();
		await shows(page, dana.name);
		await page.getByRole('button', { name: 'Share', exact: true }).click();
		await shows(page, 'לוח', dana.name);
		await page.keyboard.press('Escape');
		await toList(dana);
		await shows(dana.page, 'תקציב', dana.name);
		assert.deepEqual(dana.problems, []);
		await dana.context.close();
	});

	await step('signing out everywhere signs out other browsers, and this one', async () => {
		const { page } = ann;
		const other = await Person.arrive(browser, gateway, 'ann elsewhere');
		await other.page.goto(`${gateway.url}/`);
		await other.page.getByLabel('User name').fill('Ann Smith');
		await other.page.getByLabel('Password').fill(ann.password);
		await other.page.locator('form button[type=submit]').click();
		await other.page.locator('.list table').waitFor();
		await page.getByRole('button', { name: 'Ann Smith' }).click();
		await page.getByRole('button', { name: 'Sign out everywhere' }).click();
		await page.locator('dialog').last().getByRole('button', { name: 'Sign out everywhere' }).click();
		await page.locator('main.sign-in').waitFor();
		await other.page.goto(`${gateway.url}/?id=${id}`);
		await other.page.locator('main.sign-in, dialog input[type=password]').first().waitFor();
		await page.goto(`${gateway.url}/`);
		await page.locator('main.sign-in').waitFor();
		assert.deepEqual(other.problems, []);
	});
});
