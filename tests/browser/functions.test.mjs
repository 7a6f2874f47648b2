/*
 * functions.test.mjs - the texts that describe functions, which the page loads when somebody first turns to the grid.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
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
	assert.deepEqual(ann.problems, []);
});
