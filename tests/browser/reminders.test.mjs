/*
 * reminders.test.mjs - reminders of calendars in open pages: two pages of one account show the same ones at once, and lose them at
 * once; another person sees none.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';
import { brokenRules } from './rules.mjs';

const pictures = process.env.REMINDER_PICTURES; // a directory

test('reminders', { timeout: 300000 }, async (t) => {
	const window = { locale: 'en-GB', timezoneId: 'Asia/Kathmandu' };
	const { gateway, persons: [ann, bob], sql } = await meet(t, { ann: window, bob: window }, { gatewayFlags: { 'default-link-role': 'none' } });
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([ann, bob].flatMap(({ problems }) => problems.splice(0)), []);
		});
	const cards = (page) => page.locator('.reminders li');
	const titles = (page) => page.locator('.reminders li a').allTextContents();
	const untilTitles = (page, wanted) => {
		let last;
		return waitUntil(async () => JSON.stringify((last = await titles(page))) === JSON.stringify(wanted), () => `${wanted}, not ${last}`);
	};
	const picture = (page, name) => pictures && page.screenshot({ path: `${pictures}/${name}.png` });
	/** A task that begins at the next full minute but one, and is to be reminded of at once. */
	const due = async (title, more = {}) => {
		const start = new Date(Math.ceil(Date.now() / 60000 + 1) * 60000).toISOString();
		const cells = JSON.stringify({ Title: title, Start: start.slice(0, 16).replace('T', ' '), End: '45 min', Who: 'ann', Reminder: '1 h', ...more });
		await sql(`SELECT sheet.add_task(${calendar}, '${cells}', as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`);
		return start;
	};
	const fid = await ann.newSheet('Plan');
	const sheet = ann.page;
	const calendar = Number(await sql(`SELECT sheet.create_calendar('Team', 'UTC', (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
	await sql(`SELECT sheet.share(${calendar}, 'bob', 'editor'), sheet.share(${fid}, 'bob', 'editor')`);
	await ann.anotherPage();
	const page = ann.page;
	await page.goto(`${gateway.url}/?calendar=${calendar}`);
	await page.getByLabel('Team', { exact: true }).waitFor();
	await bob.open(fid);

	await step('a card is in the open sheet and among the calendars, with the local time', async () => {
		const start = await due('Stand-up', { Place: 'Room 1' });
		for (const one of [sheet, page]) {
			await cards(one).getByText('Stand-up').waitFor();
			const local = await one.evaluate((at) => new Intl.DateTimeFormat('en', { hour: 'numeric', minute: '2-digit', timeZone: 'Asia/Kathmandu' }).format(new Date(at)), start);
			assert.ok((await cards(one).locator('time').textContent()).replace(/\s/g, ' ').includes(local.replace(/\s/g, ' ').replace(/ [AP]M/, '')), local);
			await cards(one).getByText('Room 1').waitFor();
			assert.deepEqual(await brokenRules(one), []);
		}
		const asked = bob.page.waitForResponse((answer) => answer.url().endsWith('/v2/reminders'));
		await bob.page.reload();
		assert.deepEqual(await (await asked).json(), { reminders: [] });
		assert.equal(await cards(bob.page).count(), 0);
		assert.equal(await sheet.locator('.reminders').getAttribute('aria-live'), 'polite');
		await picture(sheet, 'sheet');
		await picture(page, 'calendar');
	});

	await step('dismissed in one page, it is gone in the other', async () => {
		await sheet.getByRole('button', { name: 'Dismiss: Stand-up' }).focus();
		await sheet.keyboard.press('Enter');
		await untilTitles(sheet, []);
		await untilTitles(page, []);
		assert.equal(await sql('SELECT count(*) FROM sheet.notice'), '0');
	});

	await step('three are shown and the number of the others; the focus of one that goes moves to another', async () => {
		for (const n of [1, 2, 3, 4, 5]) await due(`Call ${n}`);
		await due('Trip', { Start: new Date(Date.now() + 86400000).toISOString().slice(0, 10), End: '2 days', Reminder: '3 days' });
		await untilTitles(page, ['Trip', 'Call 5', 'Call 4']);
		await page.getByText('3 more').waitFor();
		await untilTitles(sheet, ['Trip', 'Call 5', 'Call 4']);
		assert.ok(!(await cards(page).first().locator('time').textContent()).includes(':'), 'of whole days, without a time of day');
		await page.getByRole('button', { name: 'Dismiss: Call 5' }).focus();
		await page.keyboard.press('Enter');
		await untilTitles(page, ['Trip', 'Call 4', 'Call 3']);
		assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Dismiss: Trip');
		await untilTitles(sheet, ['Trip', 'Call 4', 'Call 3']);
		await picture(page, 'more');
		await sheet.getByRole('button', { name: 'Dark' }).click();
		await picture(sheet, 'dark');
		assert.deepEqual(await brokenRules(sheet), []);
		await sheet.setViewportSize({ width: 400, height: 700 });
		await untilTitles(sheet, ['Trip']);
		await sheet.getByText('4 more').waitFor();
		await picture(sheet, 'narrow');
	});

	await step('the list of sheets shows them when it opens; the link leads to the day; all are dismissed at once', async () => {
		await page.goto(`${gateway.url}/`);
		await untilTitles(page, ['Trip', 'Call 4', 'Call 3']);
		assert.deepEqual(await brokenRules(page), []);
		await page.locator('.reminders').getByRole('link', { name: 'Trip' }).click();
		await page.getByLabel('Team', { exact: true }).waitFor();
		assert.match(page.url(), new RegExp(`\\?calendar=${calendar}&day=${new Date(Date.now() + 86400000).toISOString().slice(0, 10)}$`));
		await page.locator('.ec-event', { hasText: 'Trip' }).first().waitFor();
		await untilTitles(page, ['Trip', 'Call 4', 'Call 3']);
		await page.getByRole('button', { name: 'Dismiss all' }).click();
		for (const one of [page, sheet]) {
			await untilTitles(one, []);
			await one.locator('.reminders').waitFor({ state: 'hidden' });
		}
	});
});
