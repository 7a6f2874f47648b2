/*
 * scenario.test.mjs - one sheet, two people at the page and one in psql, with the real database and gateway: each sees at
 * once what the others do, versions come back, and a gateway that goes away in the middle loses nothing acknowledged.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('two people and psql in one sheet', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' } });
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, gateway, 'ann');
	const bob = await Person.arrive(browser, gateway, 'bob');
	let id;
	const everyone = (name, shown) => Promise.all([ann.untilShows(name, shown), bob.untilShows(name, shown)]);
	const sql = (text) => cluster.psql(text);
	// With SCREENSHOTS=directory, pictures of what they see.
	const picture = async (person, name) => {
		if (process.env.SCREENSHOTS) await person.page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
	};

	// Each step builds on those before: after a failure the others would only wait in vain.
	let failed = false;
	const step = (name, run) =>
		t.test(name, async () => {
			assert.ok(!failed, 'a step before this one has failed');
			failed = true;
			await run();
			failed = false;
		});

	await step('a name with characters that nobody sees is refused, in words', async () => {
		const { page } = ann;
		await page.goto(`${ann.gateway.url}/`);
		await page.getByRole('button', { name: 'Register' }).click();
		await page.getByLabel('User name').fill('ann\u202e');
		await page.getByLabel('E-mail').fill('ann@example.org');
		await page.getByLabel('Password').fill('a password');
		await page.locator('form button[type=submit]').click();
		await page.getByText('which are not control characters or invisible ones').waitFor();
	});

	await step('one registers, makes a sheet, types and pastes a block', async () => {
		await ann.register();
		id = await ann.newSheet('Household');
		await ann.type('A1', 'Item');
		await ann.type('B1', 'Cost');
		await ann.paste('A2', 'Rent\t800\nFood\t350\nBooks\t40.5\nSum\t=SUM(B2:B4)');
		await ann.untilShows('B5', '1190.5');
		await ann.untilSaved();
		assert.equal(await sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id})`),
			'A1=Item B1=Cost A2=Rent B2=800 A3=Food B3=350 A4=Books B4=40.5 A5=Sum B5==SUM(B2:B4)');
	});

	await step('a second one, shared with, sees it and each edit at once, formulas too', async () => {
		await bob.register();
		await ann.share('bob', 'editor');
		await bob.page.reload();
		await bob.page.getByRole('link', { name: 'Household' }).click();
		await bob.untilOpen();
		assert.deepEqual(await bob.cells('A1', 'B2', 'B5'), ['Item', '800', '=SUM(B2:B4)']);
		await bob.untilShows('B5', '1190.5');
		await ann.type('B2', '900');
		await everyone('B5', '1290.5');
		await bob.type('B3', '300');
		await everyone('B5', '1240.5');
		await bob.type('C1', '你好');
		await everyone('C1', '你好');
	});

	await step('a third one, to whom the id is of no use, opens it by its link, and loses it when the next link is made', async () => {
		const cleo = await Person.arrive(browser, gateway, 'cleo');
		await cleo.register();
		await cleo.page.goto(`${gateway.url}/?id=${id}`);
		await cleo.page.getByText('You may not open this sheet').waitFor();
		const address = await ann.shareByLink('viewer');
		assert.match(address, new RegExp(`/\\?id=${id}#join=[A-Za-z0-9_-]{22}$`));
		await cleo.page.goto(address);
		await cleo.untilOpen();
		await cleo.untilShows('B5', '1240.5');
		assert.equal(cleo.page.url(), `${gateway.url}/?id=${id}`, 'the key is not in the address any more');
		await cleo.page.goto(`${gateway.url}/`);
		await cleo.page.getByRole('link', { name: 'Household' }).click();
		await cleo.untilOpen();
		await ann.shareByLink('editor');
		await cleo.page.getByText('You may not open this sheet').waitFor();
		await cleo.page.close();
	});

	await step('a long list shows more sheets when it is asked to, in the order in which they were opened', async () => {
		const dan = await Person.arrive(browser, gateway, 'dan');
		await dan.register();
		await sql(`SELECT count(sheet.create('sheet ' || n, 10, 10, as_uid => a.uid)) FROM sheet.account a, generate_series(1, 430) n WHERE a.name = 'dan'`);
		await sql(`UPDATE sheet.member m SET opened_at = now() - interval '1 hour' * (431 - substr(s.name, 7)::int) FROM sheet.sheet s WHERE s.sheet_id = m.sheet_id AND s.name LIKE 'sheet %'`);
		await dan.page.reload();
		const names = () => dan.page.locator('.list tbody tr td:first-child').allTextContents();
		const more = dan.page.getByRole('button', { name: 'Show more sheets' });
		await more.waitFor();
		assert.deepEqual([(await names()).length, (await names())[0]], [200, 'sheet 430']);
		await more.click();
		await waitUntil(async () => (await names()).length === 400, 'a second page');
		await dan.page.getByRole('button', { name: 'Move sheet 429 to the trash' }).click();
		await waitUntil(async () => !(await names()).includes('sheet 429'), 'the list without it');
		await more.click();
		await waitUntil(async () => (await names()).length === 429, 'all of it');
		assert.equal(await more.count(), 0);
		assert.deepEqual(await names(), Array.from({ length: 430 }, (_, i) => `sheet ${430 - i}`).filter((name) => name !== 'sheet 429'));
		await dan.page.close();
	});

	await step('a cell that one is editing is visibly locked for the other, who cannot edit it', async () => {
		await ann.goTo('B4');
		await ann.page.keyboard.press('F2');
		await waitUntil(async () => (await bob.locks()).B4 === 'ann', 'the lock to be shown');
		await picture(bob, 'lock');
		let frame;
		await waitUntil(
			async () => (frame = await bob.page.locator('.cell-lock').boundingBox()) && frame.width > 80 && frame.height > 20,
			() => `the frame to cover the cell, not ${JSON.stringify(frame)}`,
		);
		await bob.type('B4', 'mine now');
		await bob.page.getByText('ann is editing B4').first().waitFor();
		assert.deepEqual(await ann.locks(), {});
		await ann.page.keyboard.press('Backspace');
		await ann.page.keyboard.press('Enter');
		await everyone('B4', '40');
		await waitUntil(async () => Object.keys(await bob.locks()).length === 0, 'the lock to go');
		await bob.goTo('A1');
		await bob.type('B4', '41');
		await everyone('B4', '41');
	});

	await step('a cell set in psql appears in both', async () => {
		await sql(`SELECT sheet.set(${id}, 'D2', 'from psql')`);
		await everyone('D2', 'from psql');
		await sql(`SELECT sheet.set(${id}, 'B2', '1000')`);
		await everyone('B5', '1341');
	});

	await step('a version committed in psql comes back in both when it is rolled back to, and the log has every edit', async () => {
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		const cid = await sql(`SELECT sheet.commit(${id})`);
		await ann.type('A6', 'after the version');
		await bob.type('B2', '1');
		await everyone('A6', 'after the version');
		await everyone('B5', '342');
		const before = Number(await sql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${id}`));
		await sql(`SELECT sheet.rollback(${id}, ${cid})`);
		await everyone('A6', '');
		await everyone('B5', '1341');
		const log = await cluster.rows(`SELECT a1, username, old, new FROM sheet.log WHERE sheet_id = ${id} AND a1 IN ('A6', 'B2') ORDER BY seq`);
		assert.ok(Number(await sql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${id}`)) > before);
		assert.deepEqual(log.filter(({ a1 }) => a1 === 'A6').map((entry) => entry.new ?? ''), ['after the version', '']);
		assert.deepEqual(log.filter(({ a1 }) => a1 === 'B2').map((entry) => entry.new), ['800', '900', '1000', '1', '1000']);
		assert.equal(log.find((entry) => entry.new === '1').username, 'bob');
	});

	await step('versions and history are in the drawers', async () => {
		await ann.page.getByRole('button', { name: 'Versions' }).click();
		await ann.page.getByRole('button', { name: 'Preview version 1' }).click();
		await ann.page.getByRole('cell', { name: 'from psql' }).waitFor();
		await ann.page.locator('dialog').getByRole('button', { name: 'Close', exact: true }).first().click();
		await ann.page.getByRole('button', { name: 'History' }).click();
		await ann.page.locator('.drawer li', { hasText: 'after the version' }).first().waitFor();
		await picture(ann, 'history');
		await ann.page.locator('.drawer').getByRole('button', { name: 'Close', exact: true }).click();
	});

	await step('a gateway that is stopped and started again: pages reconnect, what was typed meanwhile arrives', async () => {
		await ann.type('A8', 'saved before');
		await everyone('A8', 'saved before');
		await ann.untilSaved();
		await gateway.stop();
		await waitUntil(async () => /^Reconnecting/.test(await ann.status()), 'the page to notice');
		await ann.type('A9', 'typed while away');
		await waitUntil(async () => /1 not saved/.test(await ann.status()), 'the page to say what is not saved');
		await gateway.start();
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		await everyone('A8', 'saved before');
		await everyone('A9', 'typed while away');
	});

	await step('a gateway that is killed in the middle of typing loses nothing acknowledged', async () => {
		await ann.type('E1', ...Array.from({ length: 8 }, (_, i) => `line ${i}`));
		await gateway.kill();
		await gateway.start();
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		for (let i = 0; i < 8; i++) await everyone(`E${i + 1}`, `line ${i}`);
		assert.equal(await sql(`SELECT count(*) FROM sheet.range(${id}, 'E1:E8') WHERE content = 'line ' || "row"`), '8');
	});

	await step('a page that is loaded again shows the same', async () => {
		await bob.page.reload();
		await bob.untilOpen();
		assert.deepEqual(await bob.cells('A1', 'B2', 'B5', 'E8'), await ann.cells('A1', 'B2', 'B5', 'E8'));
		assert.equal(new URL(bob.page.url()).search, `?id=${id}`, 'no token in the address');
	});

	assert.deepEqual([...ann.problems, ...bob.problems], []);
});
