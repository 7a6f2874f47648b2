/*
 * functions.test.mjs - the texts that describe functions, which the page loads when somebody first turns to the grid, and the list of
 * names while one is typed.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('functions are described while a formula is typed', { timeout: 120000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, cluster.gateways[0], 'ann');
	await ann.register();
	await ann.newSheet('Functions');
	const { page } = ann;
	await ann.goTo('B2');
	await page.keyboard.type('=SUMIFS', { delay: 50 });
	await page.getByText('Adds all of its arguments that meet multiple criteria').first().waitFor();
	assert.equal(await page.getByText('functionList').count(), 0, 'keys instead of texts');
	await page.keyboard.press('Escape');
	await page.keyboard.press('Escape');

	// The list stays for 300 ms after a key. It takes Enter and Tab only for the name for which it was made.
	const typeName = async (cell, name) => {
		await ann.goTo(cell);
		await page.keyboard.type(name);
		await page.locator('ul[data-u-comp="sheets-formula-editor"]').waitFor();
	};
	for (const [cell, key] of [['B2', 'Enter'], ['D2', 'Tab']]) {
		await typeName(cell, '=SU');
		await page.keyboard.type('M(A5:A9)');
		await page.keyboard.press(key);
		await page.keyboard.type('next');
		await page.keyboard.press('Enter');
	}
	await waitUntil(async () => (await ann.cell('E2')).content === 'next', 'E2 to be next');
	assert.deepEqual(await ann.cells('B2', 'B3', 'D2', 'E2'), ['=SUM(A5:A9)', 'next', '=SUM(A5:A9)', 'next']);
	await typeName('B5', '=AVERAGEI');
	// The list of the letters before, which is shown until then, begins with another one.
	await waitUntil(async () => /^AVERAGEIF/.test((await page.locator('ul[data-u-comp="sheets-formula-editor"] li').first().textContent()) ?? ''), 'the list of the whole name');
	await page.keyboard.press('Enter');
	await waitUntil(async () => (await ann.editorText()) === '=AVERAGEIF(', 'the name to be completed');
	assert.deepEqual(ann.problems, []);
});
