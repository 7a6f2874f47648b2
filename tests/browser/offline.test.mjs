/*
 * offline.test.mjs - the network goes and comes back while people write, and pages and computers sleep: edits are kept, the
 * page says so, they are sent as soon as that is possible, and nothing is lost or written twice.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('without a network, and asleep', { timeout: 300000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	// A process draws the pages of one browser's only window: stopping it is like a computer that sleeps.
	const browsers = await Promise.all([startBrowser(), startBrowser()]);
	t.after(() => Promise.all(browsers.map((browser) => browser.close())));
	const [ann, bob] = await Promise.all(['ann', 'bob'].map((name, i) => Person.arrive(browsers[i], gateway, name)));
	await Promise.all([ann.register(), bob.register()]);
	const id = await ann.newSheet('Offline');
	await ann.share('bob', 'editor');
	await bob.open(id);
	const sql = (text) => cluster.psql(text);
	/** How often the contents were written, in the order of the cells. */
	const written = (range) =>
		sql(`SELECT coalesce(string_agg(l.a1 || '=' || l.new, ' ' ORDER BY l."row", l.seq), '') FROM sheet.log l JOIN sheet.range(${id}, '${range}') c USING ("row", col) WHERE l.sheet_id = ${id} AND l.kind = 'set'`);
	const says = (text, timeoutMs) => {
		let last;
		return waitUntil(async () => (last = await ann.status()) === text, () => `the page to say ${text}; it says ${last}`, timeoutMs);
	};
	const within = async (timeoutMs, run) => {
		const start = Date.now();
		await run();
		const took = Date.now() - start;
		assert.ok(took < timeoutMs, `${took} ms`);
	};
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});
	const network = (there) => ann.context.setOffline(!there);

	await step('what is typed without a network is kept, and sent at once when it is back', async () => {
		await network(false);
		await ann.type('A1', 'one', 'two');
		await bob.type('B1', 'meanwhile');
		await bob.untilSaved();
		await says('Offline; 2 not saved', 15000);
		if (process.env.SCREENSHOTS) await ann.page.screenshot({ path: path.join(process.env.SCREENSHOTS, 'offline.png') });
		// From the third failure on, the page waits for 2 s before it tries again. This pause has no end here.
		await ann.page.evaluate(
			() =>
				new Promise((resolve) => {
					const { setTimeout: later } = window;
					window.setTimeout = (run, pause, ...more) => (pause === 2000 ? ((window.setTimeout = later), resolve(), 1) : later(run, pause, ...more));
				}),
		);
		await ann.type('A3', 'three');
		await says('Offline; 3 not saved');
		assert.deepEqual(await ann.cells('A1', 'A2', 'A3'), ['one', 'two', 'three']);
		assert.equal(await written('A1:A3'), '');
		await network(true);
		await within(4000, () => says('Saved'));
		await bob.untilShows('A3', 'three');
		await ann.untilShows('B1', 'meanwhile');
		assert.equal(await written('A1:A3'), 'A1=one A2=two A3=three');
	});

	await step('a short time without a network, which the connection may have survived', async () => {
		await network(false);
		await ann.type('A4', 'four');
		await says('Offline; 1 not saved', 8000);
		await network(true);
		await within(2500, () => says('Saved'));
		await bob.untilShows('A4', 'four');
		assert.equal(await written('A4'), 'A4=four');
	});

	await step('nobody has written: the page says that it is offline, and shows what others have written afterwards', async () => {
		await network(false);
		await says('Offline', 15000);
		await bob.type('B2', 'news');
		await network(true);
		await within(4000, () => ann.untilShows('B2', 'news'));
		await says('Saved');
	});

	await step('what is replaced and tagged without a network does not overwrite what others write meanwhile', async () => {
		const { page } = ann;
		const drawer = (name) => page.locator(`.drawer[data-drawer=${name}]`);
		const refused = (cell) => page.getByText(`Others have changed ${cell}, or its row or column, at the same moment: it was not changed.`).first().waitFor();
		await ann.type('D1', 'old text', 'red');
		await bob.untilShows('D2', 'red');
		await ann.goTo('D1');
		await page.keyboard.press('Control+h');
		await drawer('find').getByLabel('Find', { exact: true }).fill('old');
		await drawer('find').getByLabel('Replace with').fill('new');
		await network(false);
		await drawer('find').getByRole('button', { name: 'Replace', exact: true }).click();
		await ann.untilShows('D1', 'new text');
		await bob.type('D1', "bob's old text");
		await bob.untilSaved();
		await network(true);
		await ann.untilShows('D1', "bob's old text");
		await refused('D1');
		await ann.goTo('D2');
		await page.locator('.bar .more').click();
		await page.getByRole('button', { name: 'Tags', exact: true }).click();
		await drawer('tags').getByRole('checkbox', { name: /red/ }).waitFor();
		await network(false);
		await drawer('tags').getByRole('checkbox', { name: /red/ }).click(); // the tag is in no cell any more
		await ann.untilShows('D2', '');
		await bob.type('D2', 'red, blue');
		await bob.untilSaved();
		await network(true);
		await ann.untilShows('D2', 'red, blue');
		await refused('D2');
		await says('Saved');
		assert.equal(await written('D1:D2'), "D1=old text D1=bob's old text D2=red D2=red, blue");
		await drawer('tags').getByRole('button', { name: 'Close' }).click();
	});

	/** Stops the process of ann's page until `run` ends. */
	const asleep = async (run) => {
		const session = await browsers[0].newBrowserCDPSession();
		const { processInfo } = await session.send('SystemInfo.getProcessInfo');
		await session.detach();
		const pids = processInfo.filter(({ type }) => type === 'renderer').map(({ id: pid }) => pid);
		assert.ok(pids.length > 0);
		for (const pid of pids) process.kill(pid, 'SIGSTOP');
		try {
			await run();
		} finally {
			for (const pid of pids) process.kill(pid, 'SIGCONT');
		}
	};
	/** Longer than the page takes for a pause of the timers. */
	const nap = () => new Promise((resolve) => setTimeout(resolve, 7000));

	await step('a page that has slept shows what others have written, and sends what was being written', async () => {
		await ann.goTo('A5');
		await ann.page.keyboard.type('five');
		await asleep(async () => {
			await bob.type('B3', 'while she slept');
			await bob.untilSaved();
			await nap();
		});
		await within(4000, () => ann.untilShows('B3', 'while she slept'));
		await ann.page.keyboard.press('Enter');
		await bob.untilShows('A5', 'five');
		await says('Saved');
		assert.equal(await written('A5'), 'A5=five');
	});

	await step('a gateway that is gone when the page wakes up, and does not say so, is noticed soon', async () => {
		await asleep(async () => {
			await nap();
			gateway.service.signal('SIGSTOP');
		});
		try {
			await within(8000, () => says('Reconnecting …', 20000));
			await ann.type('A6', 'six');
			await says('Reconnecting … 1 not saved');
		} finally {
			gateway.service.signal('SIGCONT');
		}
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		await bob.untilShows('A6', 'six');
		assert.equal(await written('A6'), 'A6=six');
	});

	await step('the gateway has closed the connection while the page slept', async () => {
		await ann.goTo('A7');
		await ann.page.keyboard.type('seven');
		await ann.page.keyboard.press('Enter');
		await asleep(async () => {
			await gateway.stop();
			await gateway.start();
			await nap();
		});
		await within(4000, () => says('Saved'));
		await bob.untilShows('A7', 'seven');
		assert.equal(await written('A7'), 'A7=seven');
	});
});
