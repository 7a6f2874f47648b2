/*
 * kept.test.mjs - edits that are not saved yet outlive the page: Back, a closed tab, a crash, a token that ends, a gateway
 * that is silent or away.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('edits outlive the page', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, gateway, 'ann');
	const sql = (text) => cluster.psql(text);
	const picture = async (person, name) => {
		if (process.env.SCREENSHOTS) await person.page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
	};
	await ann.register();
	const id = await ann.newSheet('Kept');
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);
	const silent = async (run) => {
		gateway.service.signal('SIGSTOP');
		await run().finally(() => gateway.service.signal('SIGCONT'));
	};
	/** Types into a cell while the gateway is stopped, so that nothing is saved. */
	const typeUnsaved = async (cell, text) => {
		await ann.type(cell, text);
		await waitUntil(async () => (await ann.page.locator('.status').getAttribute('data-unsaved')) !== '0', 'an unsaved edit');
	};

	await t.test('a gateway that is silent is shown as such after three seconds', async () => {
		await silent(async () => {
			await typeUnsaved('A1', 'slow');
			const start = Date.now();
			await waitUntil(async () => /does not answer; 1 not saved/.test(await ann.status()), 'the page to say so', 8000);
			assert.ok(Date.now() - start < 6000);
			await picture(ann, 'silent');
		});
		await ann.untilSaved();
		assert.equal(await stored(), 'A1=slow');
	});

	await t.test('Back asks, and what was left is sent when the sheet comes back', async () => {
		const answers = [];
		let accept = false;
		const answer = (dialog) => {
			answers.push(dialog.message());
			return accept ? dialog.accept() : dialog.dismiss();
		};
		ann.page.on('dialog', answer);
		await silent(async () => {
			await typeUnsaved('A2', 'left behind');
			await ann.page.evaluate(() => history.back());
			await waitUntil(() => answers.length === 1, 'the question');
			assert.match(answers[0], /Edits that are not saved yet: 1/);
			await waitUntil(() => new URL(ann.page.url()).searchParams.get('id') === String(id), 'the page to stay');
			assert.equal((await ann.cell('A2')).content, 'left behind');
			accept = true;
			await ann.page.evaluate(() => history.back());
			await waitUntil(() => new URL(ann.page.url()).searchParams.get('id') === null, 'the list');
			await ann.page.waitForTimeout(2500);
			await gateway.kill();
		});
		await gateway.start();
		ann.page.off('dialog', answer);
		await ann.open(id);
		await ann.untilShows('A2', 'left behind');
		await waitUntil(async () => (await stored()) === 'A1=slow A2=left behind', 'it to be stored');
	});

	await t.test('a page that crashes loses nothing: the next one sends its edits, to where their rows have moved', async () => {
		gateway.service.signal('SIGSTOP');
		await typeUnsaved('A5', 'crashed');
		await ann.untilKept();
		const { page } = ann;
		await gateway.kill();
		const crashed = ann.page.waitForEvent('crash').catch(() => {});
		await Promise.race([page.goto('chrome://crash').catch(() => {}), crashed]);
		await page.close().catch(() => {});
		await gateway.start();
		await sql(`SELECT sheet.insert_rows(${id}, 0, 2)`);
		await ann.anotherPage();
		await ann.open(id);
		await ann.untilShows('A7', 'crashed');
		await waitUntil(async () => (await stored()) === 'A3=slow A4=left behind A7=crashed', 'it to be stored');
	});

	await t.test('a token that ends asks for the password in place, and loses nothing', async () => {
		await sql(`SELECT sheet.account_revoke_tokens(uid) FROM sheet.account WHERE name = 'ann'`);
		const dialog = ann.page.locator('dialog');
		await dialog.getByText('your session has ended').waitFor({ timeout: 30000 });
		await picture(ann, 'password');
		await dialog.getByLabel('Password').fill('wrong password');
		await dialog.getByRole('button', { name: 'Sign in' }).click();
		await dialog.getByText('no user with this name and password').waitFor();
		await dialog.getByLabel('Password').fill(ann.password);
		await dialog.getByRole('button', { name: 'Sign in' }).click();
		await ann.untilSaved();
		await ann.type('A8', 'after');
		await ann.untilSaved();
		assert.equal(await stored(), 'A3=slow A4=left behind A7=crashed A8=after');
	});

	await t.test('what an earlier page wrote and the sheet refuses is shown for a decision', async () => {
		const bob = await Person.arrive(browser, gateway, 'bob');
		await bob.register();
		await ann.share('bob', 'editor');
		gateway.service.signal('SIGSTOP');
		await typeUnsaved('B1', 'too late');
		await ann.untilKept();
		await gateway.kill();
		await ann.page.close({ runBeforeUnload: false });
		await gateway.start();
		await bob.open(id);
		await bob.goTo('B1');
		await bob.page.keyboard.press('F2');
		await ann.anotherPage();
		await ann.open(id);
		const item = ann.page.locator('.kept-item', { hasText: 'B1: “too late”' });
		await item.waitFor();
		await picture(ann, 'left');
		await bob.page.keyboard.press('Escape');
		await waitUntil(async () => Object.keys(await ann.locks()).length === 0, 'the lock to go');
		await item.getByRole('button', { name: 'Write it' }).click();
		await waitUntil(async () => /B1=too late/.test(await stored()), 'it to be stored');
		assert.deepEqual(bob.problems, []);
	});
	assert.deepEqual(ann.problems, []);
});
