/*
 * leftovers.test.mjs - edits that only IndexedDB has are never called saved: they are sent as soon as they can be, by any open
 * page, or shown for a decision. And pages that the user has left, or signed out of, do not come back.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { post, register } from '../lib/client.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { RawClient, sheetClient } from '../lib/v2.mjs';
import { Person, startBrowser } from './page.mjs';

/** How long sending what was left takes at most: an attempt, a pause and another attempt. */
const lookMs = 40000;

test('what other pages have left', { timeout: 420000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, gateway, 'ann');
	const sql = (text) => cluster.psql(text);
	await ann.register();
	const ben = await register(gateway);
	const elsewhere = /Not saved yet, from another tab or an earlier visit: 1/;
	let id;
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);
	const untilStored = (cells) => waitUntil(async () => (await stored()) === cells, `${cells} to be stored`, lookMs);
	const picture = async (name) => {
		if (process.env.SCREENSHOTS) await ann.page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
	};
	const typeUnsaved = async (cell, text) => {
		await ann.type(cell, text);
		await waitUntil(async () => (await ann.page.locator('.status').getAttribute('data-unsaved')) !== '0', 'an unsaved edit');
		await ann.untilKept();
	};
	/** Types while the gateway is stopped, and closes the page before it goes on. */
	const leave = async (cell, text) => {
		gateway.service.signal('SIGSTOP');
		await typeUnsaved(cell, text);
		await gateway.kill();
		await ann.page.close({ runBeforeUnload: false });
		await gateway.start();
		await ann.anotherPage();
	};
	const toList = async () => {
		await ann.page.locator('.bar a.back').click();
		await ann.page.getByRole('heading', { name: 'Sheets' }).waitFor();
	};
	const offered = (text) => ann.page.locator('.kept-item', { hasText: text });
	const goTo = () => ann.page.goto(`${gateway.url}/?id=${id}`);
	/** A part of the test with a sheet of Ann's. */
	const part = (name, owner, run) =>
		t.test(name, async () => {
			id = Number(await sql(`SELECT sheet.create('Left', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = '${owner}'))`));
			await sql(`SELECT sheet.share(${id}, '${owner === 'ann' ? ben.username : 'ann'}', 'editor')`);
			await run();
		});

	await part('Back from a sheet that is still loading stays in the list', 'ann', async () => {
		const { page } = ann;
		await page.route(/editor-[^/]*\.js$/, async (route) => {
			await new Promise((resolve) => setTimeout(resolve, 1500));
			await route.continue();
		});
		await page.goto(`${gateway.url}/`);
		await page.getByRole('link', { name: 'Left' }).click();
		await page.getByText('Opening').waitFor();
		await page.evaluate(() => history.back());
		await page.waitForTimeout(3000);
		assert.equal(new URL(page.url()).search, '');
		assert.equal(await page.locator('.status').count(), 0);
		assert.ok(await page.getByRole('heading', { name: 'Sheets' }).isVisible());
		await page.unrouteAll({ behavior: 'wait' });
	});

	await part('an editor that cannot be loaded is told, and loaded when the user tries again', 'ann', async () => {
		const { page } = ann;
		await page.route(/editor-[^/]*\.js$/, (route) => route.abort());
		await page.goto(`${gateway.url}/?id=${id}`);
		await page.getByRole('alert').getByText('No gateway answers').waitFor();
		await page.unrouteAll({ behavior: 'wait' });
		await page.getByRole('button', { name: 'Try again' }).click();
		await ann.untilSaved();
		await page.goto(`${gateway.url}/`);
		await page.getByRole('heading', { name: 'Sheets' }).waitFor();
	});

	await t.test('signing out does not sign in again, whatever becomes of the request', async () => {
		const { page } = ann;
		const signOut = async () => {
			await page.getByRole('button', { name: 'Sign out' }).click();
			await page.getByRole('heading', { name: 'Sign in' }).waitFor();
			await page.waitForTimeout(500);
			assert.equal(await page.getByRole('heading').first().textContent(), 'Sign in');
		};
		const signIn = async () => {
			await page.getByLabel('User name').fill('ann');
			await page.getByLabel('Password').fill(ann.password);
			await page.locator('form button[type=submit]').click();
			await page.getByRole('heading', { name: 'Sheets' }).waitFor();
		};
		await page.route('**/v2/session/end', async (route) => {
			await new Promise((resolve) => setTimeout(resolve, 1000));
			await route.continue();
		});
		await signOut();
		await waitUntil(async () => (await ann.context.cookies(`${gateway.url}/v2/session`)).length === 0, 'the cookie to go');
		await page.reload();
		await page.getByRole('heading', { name: 'Sign in' }).waitFor();
		await signIn();
		await page.unrouteAll({ behavior: 'wait' });
		await page.route('**/v2/session/end', (route) => route.abort());
		await signOut();
		await page.getByText('Signed out in this tab only').waitFor();
		await picture('signed-out');
		await page.reload();
		await page.getByRole('heading', { name: 'Sign in' }).waitFor();
		await page.unrouteAll({ behavior: 'wait' });
		await signIn();
	});

	await t.test('signing out ends the session in the other tabs, and the token everywhere', async () => {
		const { page } = ann;
		const other = await ann.context.newPage();
		const token = await page.evaluate(() => JSON.parse(sessionStorage.getItem('pg_sheet.session')).token);
		await other.goto(`${gateway.url}/?id=${id}`);
		await other.locator('.grid canvas').first().waitFor();
		await waitUntil(() => other.evaluate(() => window.pgSheet?.contentOf(0, 0)), 'the grid to be filled');
		const script = await RawClient.open(gateway, { token }, id);
		await page.getByRole('button', { name: 'Sign out' }).click();
		await other.getByRole('heading', { name: 'Sign in' }).waitFor();
		await other.getByText('You have signed out in another tab.').waitFor();
		assert.equal(await other.locator('dialog[open]').count(), 0);
		assert.deepEqual(await script.waitClosed(), { code: 4401, reason: 'the token has been revoked' });
		assert.equal((await post(gateway, '/getuser', { token })).json.msg, 1);
		await other.reload();
		await other.getByRole('heading', { name: 'Sign in' }).waitFor();
		await other.close();
		await page.getByLabel('User name').fill('ann');
		await page.getByLabel('Password').fill(ann.password);
		await page.locator('form button[type=submit]').click();
		await page.getByRole('heading', { name: 'Sheets' }).waitFor();
	});

	await part('an edit that waits for a transaction, and whose page was left, is not called saved', 'ann', async () => {
		await ann.open(id);
		ann.page.once('dialog', (dialog) => dialog.accept());
		const held = cluster.psqlSession();
		await held.query(`BEGIN; SELECT sheet.set(${id}, 30, 5, 'held')`);
		await typeUnsaved('A1', 'mine');
		await toList();
		await goTo();
		let status;
		await waitUntil(async () => elsewhere.test((status = await ann.status())), () => `the page to say so, instead of ${status}`);
		await picture('elsewhere');
		await held.query('COMMIT');
		await held.close();
		await ann.untilShows('A1', 'mine', lookMs);
		await ann.untilSaved();
	});

	await part('a move that waits for an edit is kept with it, when the sheet or the tab is left', 'ann', async () => {
		for (const close of [false, true]) {
			await sql(`SELECT sheet.set(${id}, 0, 0, 'here'), sheet.set(${id}, 1, 0, 'below')`);
			await ann.open(id);
			const held = cluster.psqlSession();
			await held.query(`BEGIN; SELECT sheet.set(${id}, 30, 5, '${close}')`);
			await typeUnsaved('A1', 'mine');
			await ann.selectRows(1);
			await ann.page.keyboard.press('Alt+Shift+ArrowDown');
			await waitUntil(async () => (await ann.page.locator('.status').getAttribute('data-unsaved')) === '2', 'the move to be unsaved');
			ann.page.once('dialog', (dialog) => dialog.accept());
			if (!close) await toList();
			else {
				const closed = ann.page.waitForEvent('close');
				await ann.page.close({ runBeforeUnload: true });
				await closed;
				await ann.anotherPage();
			}
			await held.query('COMMIT');
			await held.close();
			await goTo();
			await untilStored(`A1=below A2=mine F31=${close}`);
			await ann.untilShows('A2', 'mine', lookMs);
			await ann.untilSaved();
		}
	});

	await part('an edit of a page that was left a moment ago is sent when the gateway is back', 'ann', async () => {
		await ann.open(id);
		ann.page.once('dialog', (dialog) => dialog.accept());
		gateway.service.signal('SIGSTOP');
		await typeUnsaved('A1', 'mine');
		await ann.page.evaluate(() => history.pushState(null, '', '/'));
		await ann.page.evaluate(() => window.dispatchEvent(new PopStateEvent('popstate')));
		await ann.page.getByRole('heading', { name: 'Sheets' }).waitFor();
		await ann.page.evaluate((sheet) => history.pushState(null, '', `/?id=${sheet}`), id);
		await ann.page.evaluate(() => window.dispatchEvent(new PopStateEvent('popstate')));
		await ann.page.locator('.status').waitFor();
		await gateway.kill();
		await gateway.start();
		await untilStored('A1=mine');
		await ann.untilShows('A1', 'mine');
		await ann.untilSaved();
	});

	await part('a tab that stays open sends what another one has left', 'ann', async () => {
		await ann.open(id);
		const first = ann.page;
		await ann.anotherPage();
		await ann.open(id);
		const second = ann.page;
		ann.page = first;
		gateway.service.signal('SIGSTOP');
		await typeUnsaved('A2', 'first tab');
		await gateway.kill();
		await first.close({ runBeforeUnload: false });
		await gateway.start();
		ann.page = second;
		await untilStored('A2=first tab');
		await ann.untilShows('A2', 'first tab');
	});

	await part('what may not be written any more is shown for a decision', ben.username, async () => {
		await ann.open(id);
		await leave('A1', 'no editor');
		await sql(`SELECT sheet.share(${id}, 'ann', 'viewer')`);
		await goTo();
		await offered('A1: “no editor”').waitFor();
		await offered('A1: “no editor”').getByRole('button', { name: 'Discard' }).click();
		await sql(`SELECT sheet.share(${id}, 'ann', 'editor')`);
		await ann.open(id);
		await leave('A2', 'no member');
		await sql(`SELECT sheet.unshare(${id}, 'ann')`);
		await goTo();
		await offered('A2: “no member”').waitFor();
		await ann.page.getByText('You may not open this sheet.').waitFor();
		await picture('no-member');
		await offered('A2: “no member”').getByRole('button', { name: 'Discard' }).click();
		assert.equal(await stored(), '');
	});

	await part('an edit of a client that the database has forgotten never overwrites newer text by itself', 'ann', async () => {
		await ann.open(id);
		await ann.type('A1', 'first');
		await ann.untilSaved();
		gateway.service.signal('SIGSTOP');
		await typeUnsaved('A5', 'late');
		await gateway.kill();
		await ann.page.close({ runBeforeUnload: false });
		await sql('DELETE FROM sheet.client');
		await gateway.start();
		for (const text of ['newer', 'newest']) {
			await sql(`SELECT sheet.set(${id}, 4, 0, '${text}')`);
			await ann.anotherPage();
			await ann.open(id);
			await offered('A5: “late”').waitFor({ timeout: lookMs });
			assert.equal(await stored(), `A1=first A5=${text}`);
			if (text === 'newer') await ann.page.close({ runBeforeUnload: false });
		}
		await offered('A5: “late”').getByRole('button', { name: 'Write it' }).click();
		await untilStored('A1=first A5=late');
		await waitUntil(async () => (await ann.rowsKept()) === 0, 'IndexedDB to be empty');
		await ann.open(id);
		assert.equal(await offered('late').count(), 0);
	});

	await part('a refused edit outlives the page until the user decides, and moves with its rows', 'ann', async () => {
		await ann.open(id);
		const other = sheetClient(gateway, ben, id, { load: null });
		await waitUntil(() => other.hello, 'hello');
		other.send({ t: 'lock', row: 1, col: 2, base: other.replica.seq });
		await waitUntil(async () => (await ann.locks()).C2, 'the lock');
		await ann.paste('B2', 'refused\tpaste');
		await offered('B2: “refused”').waitFor();
		other.close();
		await ann.untilKept();
		await ann.page.close({ runBeforeUnload: false });
		await ann.anotherPage();
		await ann.open(id);
		await offered('B2: “refused”').waitFor();
		await sql(`SELECT sheet.insert_rows(${id}, 0, 1)`);
		await offered('B3: “refused”').waitFor();
		await ann.type('A5', 'x');
		await ann.untilSaved();
		await ann.page.waitForTimeout(300);
		await ann.open(id);
		await offered('B3: “refused”, C3: “paste”').waitFor();
		await offered('B3').getByRole('button', { name: 'Write it' }).click();
		await untilStored('B3=refused C3=paste A5=x');
	});

	await part('IndexedDB that fails at first is used later, and the user is told when it does not store', 'ann', async () => {
		await ann.page.addInitScript(() => {
			const open = indexedDB.open.bind(indexedDB);
			window.failing = true;
			indexedDB.open = (...values) => {
				if (window.failing) throw new Error('not now');
				return open(...values);
			};
		});
		await ann.open(id);
		await ann.type('A1', 'not kept');
		await ann.page.getByText('does not keep unsaved edits').waitFor();
		await ann.untilSaved();
		await ann.page.evaluate(() => (window.failing = false));
		await leave('A2', 'kept');
		await ann.open(id);
		await untilStored('A1=not kept A2=kept');
	});

	assert.deepEqual(ann.problems, []);
});
