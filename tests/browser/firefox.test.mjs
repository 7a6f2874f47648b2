/*
 * firefox.test.mjs - the main journey in Debian's Firefox: sign in, make a sheet, type, and edit it with somebody in Chromium.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { Person, startBrowser, startFirefox } from './page.mjs';

test('somebody in Firefox and somebody in Chromium', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const [firefox, chromium] = await Promise.all([startFirefox(), startBrowser()]);
	t.after(() => Promise.all([firefox.close(), chromium.close()]));
	const [fay, cleo] = await Promise.all([Person.arrive(firefox, gateway, 'fay'), Person.arrive(chromium, gateway, 'cleo')]);
	const everyone = (name, shown) => Promise.all([fay.untilShows(name, shown, 20000), cleo.untilShows(name, shown, 20000)]);
	let id;

	await t.test('Firefox registers, signs in again, makes a sheet and writes a formula', async () => {
		await Promise.all([fay.register(), cleo.register()]);
		assert.match(await fay.page.evaluate(() => navigator.userAgent), /Firefox\//);
		await fay.page.getByRole('button', { name: 'Sign out' }).click();
		await fay.page.getByLabel('User name').fill('fay');
		await fay.page.getByLabel('Password').fill(fay.password);
		await fay.page.locator('form button[type=submit]').click();
		id = await fay.newSheet('From Firefox');
		await fay.type('A1', '40', '2', '=A1+A2');
		await fay.untilShows('A3', '42');
		await fay.untilSaved();
		assert.equal(await cluster.psql(`SELECT string_agg(content, ' ' ORDER BY "row") FROM sheet.range(${id})`), '40 2 =A1+A2');
	});

	await t.test('each sees what the other writes, and the cell that the other is editing', async () => {
		await fay.share('cleo', 'editor');
		await cleo.open(id);
		await cleo.type('A1', '100');
		await everyone('A3', '102');
		await fay.type('B1', '你好');
		await everyone('B1', '你好');
		await fay.page.locator('.face[data-name="cleo"]').waitFor();
		await cleo.goTo('C3');
		await cleo.page.keyboard.press('F2');
		await fay.page.locator('.cell-lock[data-cell="C3"][data-user="cleo"]').waitFor();
		await cleo.page.keyboard.press('Escape');
	});

	await t.test('keys and undo work in Firefox', async () => {
		await fay.goTo('C3');
		await fay.page.keyboard.press('Control+Home');
		await fay.page.keyboard.type('7');
		await fay.page.keyboard.press('Enter');
		await everyone('A3', '9');
		await fay.page.keyboard.press('Control+z');
		await everyone('A3', '102');
	});

	assert.deepEqual([...fay.problems, ...cleo.problems], []);
});
