/* workbooks.test.mjs - a workbook (.xlsx) is chosen or dropped in the list of sheets, and becomes a book. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { startCalc } from '../lib/calc.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { makeWorkbook } from '../lib/workbook.mjs';
import { meet } from './page.mjs';
import { brokenRules } from './rules.mjs';

test('workbooks', { timeout: 180000 }, async (t) => {
	const { cluster, gateway, persons: [ann] } = await meet(t, { ann: {} });
	const calc = startCalc(cluster);
	t.after(() => calc.stop());
	await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
	const { page } = ann;
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual(ann.problems.splice(0), []);
		});
	const file = path.join(cluster.directory, 'Household.xlsx');
	const dialog = page.getByRole('dialog', { name: 'Import a workbook' });
	const choose = async (chosen) => {
		await page.goto(`${gateway.url}/`);
		await page.locator('input[type=file]').setInputFiles(chosen);
	};

	await step('one that a book has wholly is opened', async () => {
		makeWorkbook(file, 3, 2);
		// openpyxl's font is another one.
		await choose(file);
		await dialog.getByText('the font of cells without another one, Calibri').waitFor();
		await dialog.getByRole('button', { name: 'Open' }).click();
		await ann.untilOpen();
		assert.deepEqual(await ann.cells('A1', 'B1', 'A3', 'B3'), ['0', 'text 1', '5', 'text 5']);
		assert.equal(await cluster.psql('SELECT name FROM sheet.book'), 'Household');
	});

	await step('what was not taken over is listed, and the book is opened then', async () => {
		makeWorkbook(file);
		await choose(file);
		await dialog.getByText('kept: conditional formats (3)').waitFor();
		assert.deepEqual(await brokenRules(page), []);
		await dialog.getByRole('button', { name: 'Open' }).click();
		await ann.untilOpen();
		assert.deepEqual(await ann.cells('A2', 'A4', 'B4', 'C1'), ['007', "'=1+1", '0.1', '2024-02-29 13:30:00']);
	});

	await step('one that is damaged is refused with its place', async () => {
		fs.writeFileSync(file, fs.readFileSync(file).subarray(0, 3000));
		await choose(file);
		await dialog.getByText('The workbook is damaged. Nothing was imported.').waitFor();
		await dialog.getByRole('button', { name: 'Cancel' }).click();
	});
});
