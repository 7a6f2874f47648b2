/*
 * links.test.mjs - share links at the page: the owner makes them, a visitor without an account enters by them, both edit, and
 * the link ends.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet, Person } from './page.mjs';
import { brokenRules } from './rules.mjs';

test('share links', { timeout: 420000 }, async (t) => {
	const { gateway, browser, persons: [ann], sql } = await meet(t, { ann: {} }, { gatewayFlags: { 'default-link-role': 'none', 'attempts-per-account': 4 } });
	const zoe = await Person.arrive(browser, gateway, 'Zoe');
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...zoe.problems.splice(0)], []);
		});
	const dialog = ann.page.locator('dialog').first();
	const openDialog = async () => {
		await ann.page.getByRole('button', { name: 'Share', exact: true }).click();
		await dialog.locator('.links li').first().waitFor();
	};
	/** Makes a link in the open dialog; resolves to its address. */
	const makeLink = async (values = {}) => {
		const before = await dialog.locator('.links li[data-link]').count();
		for (const [label, value] of Object.entries(values.choose ?? {})) await dialog.getByLabel(label, { exact: true }).selectOption(value);
		for (const [label, value] of Object.entries(values.fill ?? {})) await dialog.getByLabel(label, { exact: true }).fill(value);
		if (values.part) await dialog.getByRole('checkbox', { name: `Only the selected cells (${values.part})` }).check();
		await dialog.getByRole('button', { name: 'Make a link' }).click();
		await waitUntil(async () => (await dialog.locator('.links li[data-link]').count()) === before + 1, 'the new link in the list');
		return dialog.locator('input[name=new-link]').inputValue();
	};
	const closeDialog = async () => {
		await ann.page.keyboard.press('Escape');
		await dialog.waitFor({ state: 'detached' });
	};
	const linkOf = (label) => dialog.locator('.links li', { hasText: label });
	const enter = async (name, password) => {
		const { page } = zoe;
		await page.getByLabel('Your name').waitFor();
		if (name !== undefined) await page.getByLabel('Your name').fill(name);
		if (password !== undefined && (await page.getByLabel('Password').isVisible())) await page.getByLabel('Password').fill(password);
		await page.getByRole('button', { name: 'Open the sheet' }).click();
	};
	const rules = async (page, screen) => assert.deepEqual(await brokenRules(page), [], screen);

	const id = await ann.newSheet('Plan');
	await ann.paste('A1', 'Item\tCost\nRent\t800\nsecret\t5');
	let address;

	await step('the owner makes a link, whose address is told once', async () => {
		await openDialog();
		await dialog.getByText('There are no links yet.').waitFor();
		address = await makeLink({ choose: { 'Guests may': 'editor', Ends: '1' }, fill: { Password: 'open', Label: 'Field team' } });
		assert.match(address, new RegExp(`^${gateway.url}/\\?id=${id}#link=[A-Za-z0-9_-]{22}$`));
		await dialog.getByRole('button', { name: 'QR code' }).click();
		await waitUntil(() => dialog.getByAltText('QR code of the new link').evaluate((image) => image.naturalWidth > 100), 'the picture');
		await dialog.locator('.new-link').getByRole('button', { name: 'Copy' }).click();
		await ann.page.getByText('The link is in the clipboard.').waitFor();
		assert.equal(await ann.page.evaluate(() => navigator.clipboard.readText()), address);
		assert.match(await linkOf('Field team').textContent(), /until .*Edit · with a password · not used yet/);
		await rules(ann.page, 'the dialog');
		await closeDialog();
		await openDialog();
		assert.equal(await dialog.locator('input[name=new-link]').count(), 0);
		await closeDialog();
	});

	await step('a visitor enters with a name and the password, and both edit and see each other', async () => {
		const { page } = zoe;
		const asked = [];
		page.on('request', (request) => asked.push(request.url()));
		await sql(`SELECT sheet.set_property(${id}, NULL, 'timezone', NULL)`);
		await page.goto(address);
		await page.getByLabel('Your name').waitFor();
		assert.match(await page.getByLabel('Your name').inputValue(), /^Guest [0-9]{2}$/);
		await rules(page, 'the form');
		await enter('Zoe');
		await page.getByText('This link asks for a password.').waitFor();
		await enter('Zoe', 'wrong');
		await page.getByText("This password is not the link's.").waitFor();
		await enter('Zoe', 'open');
		await zoe.untilOpen();
		assert.equal(page.url(), address, 'the address opens the sheet again');
		const key = address.split('=').at(-1);
		assert.ok(asked.length > 10 && asked.every((url) => !url.split('#')[0].includes(key)), 'the key is in no address that was asked for');
		await ann.page.locator('.faces .face[data-name="Zoe (guest)"].guest').waitFor();
		await page.locator('.faces .face[data-name="ann"]').waitFor();
		await zoe.type('A4', 'by Zoe');
		await ann.type('A5', 'by Ann');
		await ann.untilShows('A4', 'by Zoe');
		await zoe.untilShows('A5', 'by Ann');
		assert.equal(await sql(`SELECT count(*) FROM sheet.properties(${id}) WHERE key = 'timezone'`), '0', 'a guest gives the sheet no time zone');
		await zoe.goTo('B5');
		await ann.page.locator('.cell-cursor[data-user="Zoe (guest)"][data-cell="B5"]').waitFor({ state: 'attached' });
		for (const name of ['Save version', 'Share', 'Who has access', 'Publish selection as paste']) assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name);
		assert.equal(await page.getByRole('link', { name: 'Sheets', exact: true }).count(), 0);
		assert.equal(await page.locator('.sheet-name button').count(), 0, 'a guest does not rename the sheet');
		await rules(page, 'the sheet of a guest');
		const download = page.waitForEvent('download');
		await page.locator('.fold.more').click();
		await page.getByRole('button', { name: 'Download CSV' }).click();
		assert.equal((await download).suggestedFilename(), `${id}.csv`);
		await page.reload();
		await zoe.untilOpen();
		await zoe.untilShows('A5', 'by Ann');
	});

	await step('the owner sees what its guests have edited', async () => {
		await openDialog();
		await waitUntil(async () => {
			if (/used once|used [0-9]+ times/.test(await linkOf('Field team').textContent())) return true;
			await closeDialog();
			await openDialog();
			return false;
		}, 'the use to be stored', 60000);
		await dialog.getByRole('button', { name: 'Edits: Field team' }).click();
		const drawer = ann.page.locator('[data-drawer="history"]');
		await drawer.locator('.who', { hasText: 'Field team (link)' }).first().waitFor();
		assert.deepEqual([...new Set(await drawer.locator('.who').allTextContents())], ['Field team (link)']);
		await drawer.getByRole('button', { name: 'Close' }).click();
	});

	await step('while the link is blocked, the page says so and what is not saved; after that, the guest enters again', async () => {
		const { page } = zoe;
		await gateway.stop();
		await page.locator('.status[data-state="reconnecting"]').waitFor();
		await zoe.type('A6', 'late');
		await zoe.untilKept();
		await sql(`SELECT sheet.change_link(link_id, blocked => true) FROM sheet.link`);
		await gateway.start();
		await page.getByText('The link by which you have entered opens this sheet no more').waitFor();
		await page.locator('.unsent li', { hasText: 'A6: late' }).waitFor();
		await rules(page, 'the ended visit');
		await page.getByRole('button', { name: 'Enter again' }).click();
		await page.locator('.unsent li', { hasText: 'A6: late' }).waitFor();
		await ann.untilSaved();
		await openDialog();
		await dialog.getByRole('button', { name: 'Unblock: Field team' }).click();
		await ann.page.getByText('“Field team” opens the sheet again.').waitFor();
		await closeDialog();
		await page.getByRole('button', { name: 'Enter again' }).click();
		await page.getByLabel('Password').fill('open');
		await page.locator('dialog').getByRole('button', { name: 'Open the sheet' }).click();
		await zoe.untilSaved();
		await ann.untilShows('A6', 'late');
		assert.equal(await page.locator('.stopped, [inert]').count(), 0);
	});

	await step('the owner revokes the link: what the guest was typing is kept, and can be copied', async () => {
		const { page } = zoe;
		await zoe.goTo('B6');
		await page.keyboard.type('half');
		await waitUntil(async () => (await zoe.editorText())?.trim() === 'half', 'the cell to be edited');
		await openDialog();
		await dialog.getByRole('button', { name: 'Revoke: Field team' }).click();
		await ann.page.locator('dialog').last().getByRole('button', { name: 'Revoke', exact: true }).click();
		await ann.page.getByText('“Field team” is revoked.').waitFor();
		await dialog.getByText('Revoked links').waitFor();
		await page.getByText('The link by which you have entered opens this sheet no more').first().waitFor();
		await page.locator('.kept-item', { hasText: 'half' }).getByRole('button', { name: 'Copy' }).click();
		assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'half');
		const asked = page.waitForEvent('dialog').then(async (dialog) => {
			const text = dialog.message();
			await dialog.accept();
			return text;
		});
		await page.getByRole('button', { name: 'Leave' }).last().click();
		assert.match(await asked, /They are discarded when you leave/);
		await page.locator('main.sign-in').waitFor();
		await waitUntil(async () => (await zoe.rowsKept()) === 0, 'what the guest has left unsaved to be removed from the browser');
	});

	await step('by a link to view, the sheet can only be read', async () => {
		const { page } = zoe;
		address = await makeLink({ choose: { Ends: '0' }, fill: { Label: 'Readers' } });
		await dialog.getByRole('button', { name: 'Change: Readers' }).click();
		await dialog.locator('.links form').getByLabel('Ends').selectOption('30');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await ann.page.getByText('“Readers” is changed.').waitFor();
		assert.match(await linkOf('Readers').textContent(), /until .*View/);
		await closeDialog();
		await page.goto(address);
		await page.getByLabel('Your name').waitFor();
		assert.equal(await page.getByLabel('Your name').inputValue(), 'Zoe');
		await enter();
		await zoe.untilOpen();
		await page.locator('.read-only').waitFor();
		await zoe.goTo('A1');
		await page.keyboard.type('x');
		await page.getByText('You may read this sheet, not change it.').waitFor();
		assert.deepEqual(await zoe.cells('A1', 'A6'), ['Item', 'late']);
	});

	await step('a link to view has a public address, of which the owner says who may show and list it', async () => {
		const { page } = ann;
		const seen = async (address) => {
			const { status, headers } = await fetch(address);
			return [status, /frame-ancestors ([^;]*)/.exec(headers.get('content-security-policy') ?? '')?.[1], headers.get('x-robots-tag')];
		};
		await openDialog();
		await dialog.locator('.publishing summary').click();
		await dialog.getByLabel('Pages that may show it in a frame').selectOption('pages');
		await dialog.getByLabel('Addresses, with a blank between them').fill('ftp://example.org');
		await dialog.getByRole('textbox', { name: 'Label' }).fill('Newspaper');
		await dialog.getByRole('button', { name: 'Make a link' }).click();
		await dialog.getByText('“ftp://example.org” is not the address of a page').waitFor();
		assert.equal(await page.evaluate(() => document.activeElement.name), 'link-embed', 'the field to correct has the focus');
		await rules(page, 'the fields of the public view');
		await dialog.getByLabel('Addresses, with a blank between them').fill('example.org/blog http://localhost:8080');
		const link = await makeLink({ fill: { Label: 'Newspaper' } });
		const view = await dialog.getByLabel('As a page', { exact: true }).inputValue();
		assert.equal(view, `${gateway.url}/s/${link.split('=').at(-1)}`);
		await dialog.getByRole('button', { name: 'Copy: As CSV' }).click();
		await page.getByText('The link is in the clipboard.').waitFor();
		const csv = await page.evaluate(() => navigator.clipboard.readText());
		assert.equal(csv, `${view}.csv`);
		assert.match(await (await fetch(csv)).text(), /^Item,Cost\r\n/);
		assert.equal((await (await fetch(await dialog.getByLabel('As JSON', { exact: true }).inputValue())).json()).title, 'Plan');
		assert.deepEqual(await seen(view), [200, 'https://example.org http://localhost:8080', 'noindex']);
		assert.match(await linkOf('Newspaper').textContent(), /View · with a public view · in frames of https:\/\/example.org http:\/\/localhost:8080 · not used/);
		await rules(page, 'the addresses of the public view');

		const form = dialog.locator('.links form');
		const change = async (fill) => {
			await dialog.getByRole('button', { name: 'Change: Newspaper' }).click();
			await fill();
			await form.getByRole('button', { name: 'Save' }).click();
			await form.waitFor({ state: 'detached' });
		};
		await change(async () => {
			await form.getByLabel('Pages that may show it in a frame').selectOption('*');
			await form.getByRole('checkbox', { name: 'Search engines may list it' }).check();
		});
		assert.match(await linkOf('Newspaper').textContent(), /in frames of any page · listed by search engines/);
		assert.deepEqual(await seen(view), [200, '*', null]);
		await change(async () => {
			assert.equal(await form.locator('.publishing').isVisible(), true);
			await form.getByLabel('Password').fill('secret');
			assert.equal(await form.locator('.publishing').isVisible(), false, 'with a password there is no public view');
			await rules(page, 'the form that changes a link');
		});
		assert.match(await linkOf('Newspaper').textContent(), /View · with a password/);
		assert.equal((await fetch(view)).status, 404);
		const entered = async (password) => {
			const body = JSON.stringify({ link: link.split('=').at(-1), name: 'Zoe', password });
			return (await fetch(`${gateway.url}/v2/link`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).status;
		};
		assert.equal(await entered('secret'), 200);
		await change(async () => {
			await form.getByLabel('Password', { exact: true }).selectOption('other');
			await form.getByLabel('New password').fill('other secret');
		});
		assert.deepEqual([await entered('secret'), await entered('other secret')], [401, 200]);
		await change(() => form.getByLabel('Password', { exact: true }).selectOption('none'));
		assert.deepEqual(await seen(view), [200, '*', null]);
		await closeDialog();
	});

	await step('who has an account opens the sheet as himself if he may, and otherwise as a guest', async () => {
		await ann.page.goto(address);
		await ann.untilOpen();
		assert.equal(ann.page.url(), `${gateway.url}/?id=${id}`);
		const { page } = zoe;
		await page.getByRole('button', { name: 'Sign in' }).click();
		await page.getByRole('button', { name: 'Register' }).click();
		await page.getByLabel('User name').fill('zoe');
		await page.getByLabel('E-mail').fill('zoe@example.org');
		await page.getByLabel('Password').fill('password of zoe');
		await page.locator('form button[type=submit]').click();
		await page.getByText('You are signed in as zoe. The sheet is not shared with this account').waitFor();
		assert.equal(await page.getByLabel('Your name').inputValue(), 'zoe');
	});

	await step('a link to a rectangle shows its cells and nothing else, and follows them', async () => {
		const { page } = zoe;
		const asked = [];
		await ann.goTo('A1');
		await ann.page.keyboard.press('Shift+ArrowDown');
		await openDialog();
		address = await makeLink({ part: 'A1:A2', fill: { Password: 'part', Label: 'First column' } });
		assert.match(address, new RegExp(`^${gateway.url}/#link=[A-Za-z0-9_-]{22}$`));
		assert.match(await linkOf('First column').textContent(), /View A1:A2 only/);
		await closeDialog();
		await page.goto(address);
		await enter('Zoe');
		await page.getByText('This link asks for a password.').waitFor();
		page.on('request', (request) => asked.push(new URL(request.url()).pathname));
		await enter('Zoe', 'part');
		await page.getByRole('cell', { name: 'Rent' }).waitFor();
		assert.deepEqual(await page.locator('main.part td').allTextContents(), ['Item', 'Rent']);
		await rules(page, 'the part');
		await ann.type('A2', 'Heating');
		await ann.untilSaved();
		await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
		await page.getByRole('cell', { name: 'Heating' }).waitFor();
		assert.ok(asked.includes('/v2/link/cells') && asked.every((path) => !/sheets\/|sheetws/.test(path)), asked.join('\n'));
		assert.doesNotMatch(await page.content(), /secret|800/);
		await sql(`SELECT sheet.revoke_link(link_id) FROM sheet.link WHERE revoked_at IS NULL`);
		await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
		await page.getByText('The link by which you have entered opens this sheet no more').waitFor();
		assert.equal(await page.locator('main.part td').count(), 0);
	});

	await step('a link to a rectangle to edit lets a visitor write in it, and overwrites nothing that was not seen', async () => {
		const { page } = zoe;
		const field = page.locator('main.part textarea');
		const cell = (name) => page.getByRole('gridcell', { name, exact: true });
		await ann.goTo('A1');
		await ann.page.keyboard.press('Shift+ArrowDown');
		await ann.page.keyboard.press('Shift+ArrowRight');
		await openDialog();
		address = await makeLink({ part: 'A1:B2', choose: { 'Guests may': 'editor' }, fill: { Label: 'Two rows' } });
		assert.match(await linkOf('Two rows').textContent(), /Edit A1:B2 only/);
		await closeDialog();
		await page.evaluate((address) => (location.href = address), address);
		await enter('Zoe');
		await cell('Heating').dblclick();
		await field.fill('Rent and heating');
		await rules(page, 'the field');
		await page.keyboard.press('Enter');
		await ann.untilShows('A2', 'Rent and heating');
		// typing replaces what is there, Tab goes on; Escape changes nothing
		await cell('Item').click();
		await page.keyboard.press('ArrowDown');
		await page.keyboard.type('Both');
		await page.keyboard.press('Tab');
		await page.keyboard.type('900');
		await page.keyboard.press('Enter');
		await ann.untilShows('A2', 'Both');
		await ann.untilShows('B2', '900');
		await cell('Cost').click();
		await page.keyboard.type('=B2');
		await page.keyboard.press('Enter');
		await page.getByText('Guests write no formulas here').waitFor();
		assert.equal(await field.inputValue(), '=B2', 'the text stays');
		await page.keyboard.press('Escape');
		assert.deepEqual(await page.locator('main.part td').allTextContents(), ['Item', 'Cost', 'Both', '900']);
		// somebody else is faster
		await page.keyboard.press('ArrowDown');
		await page.keyboard.press('F2');
		await field.fill('1000');
		await ann.type('B2', '950');
		await ann.untilSaved();
		await page.keyboard.press('Enter');
		await page.getByText('Not written into B2. The cell has another text now: “950”.').waitFor();
		await cell('950').waitFor();
		assert.equal(await page.locator('.refused .text').textContent(), '1000');
		assert.deepEqual(await page.locator('.refused button').allTextContents(), ['Write it', 'Copy', 'Discard']);
		await rules(page, 'what was refused');
		await page.getByRole('button', { name: 'Write it' }).click();
		await ann.untilShows('B2', '1000');
		await cell('1000').waitFor();
		assert.equal(await page.locator('.refused li').count(), 0);
		assert.equal(await sql(`SELECT DISTINCT username FROM sheet.log WHERE sheet_id = ${id} AND new IN ('Both', '900', '1000')`), 'Two rows (link)');
	});

	await step('who tries passwords is told how long to wait', async () => {
		const { page } = zoe;
		const key = await sql(`SELECT key FROM sheet.create_link(${id}, password => 'right')`);
		await page.evaluate((key) => (location.hash = `#link=${key}`), key);
		await enter('Zoe');
		const submit = page.getByRole('button', { name: 'Open the sheet' });
		await page.getByText('This link asks for a password.').waitFor();
		for (let i = 0; i < 4; i++) {
			await enter('Zoe', `wrong ${i}`);
			await page.getByText("This password is not the link's.").waitFor();
			await page.waitForFunction(() => !document.querySelector('form button[type=submit]').disabled);
		}
		await enter('Zoe', 'wrong again');
		await page.getByText(/^Too many attempts\. Try again in [0-9]+ seconds\.$/).waitFor();
		assert.equal(await submit.isDisabled(), true);
	});
});
