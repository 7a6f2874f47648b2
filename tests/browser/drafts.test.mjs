/*
 * drafts.test.mjs - half-typed text and changes without text are not lost silently: the page asks before it is left, and
 * offers or names them afterwards.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { register } from '../lib/client.mjs';
import { roundsToRun, waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('what is not in the sheet yet', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, gateway, 'ann');
	const sql = (text) => cluster.psql(text);
	await ann.register();
	const ben = await register(gateway);
	let id;
	const offered = (text) => ann.page.locator('.kept-item', { hasText: text });
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);
	const mayWrite = (role) => sql(`SELECT sheet.share(${id}, 'ann', '${role}')`);
	const part = (name, run) =>
		t.test(name, async () => {
			id = Number(await sql(`SELECT sheet.create('Drafts', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = '${ben.username}'))`));
			await mayWrite('editor');
			await ann.open(id);
			await run();
		});
	/** Types without Enter. */
	const halfType = async (cell, text) => {
		await ann.goTo(cell);
		await ann.page.keyboard.type(text);
	};
	/** Answers what the page asks while `run` runs, and returns the number of questions. */
	const asked = async (accept, run) => {
		let count = 0;
		const answer = (dialog) => {
			count++;
			return accept ? dialog.accept() : dialog.dismiss();
		};
		ann.page.on('dialog', answer);
		await run().finally(() => ann.page.off('dialog', answer));
		return count;
	};
	const back = async () => {
		await ann.page.evaluate(() => {
			history.pushState(null, '', '/');
			window.dispatchEvent(new PopStateEvent('popstate'));
		});
	};
	/** Without a server that answers, then with one. */
	const leave = async (run, meanwhile) => {
		gateway.service.signal('SIGSTOP');
		await run();
		await waitUntil(async () => (await ann.page.locator('.status').getAttribute('data-unsaved')) !== '0', 'an unsaved edit');
		await ann.untilKept();
		await gateway.kill();
		await ann.page.close({ runBeforeUnload: false });
		await gateway.start();
		await meanwhile();
		await ann.anotherPage();
		await ann.page.goto(`${gateway.url}/?id=${id}`);
	};
	const widenA = async () => {
		const box = await ann.grid.boundingBox();
		const [x, y] = [box.x + 46 + 96, box.y + 10];
		await ann.page.mouse.move(x, y);
		await ann.page.waitForTimeout(300);
		await ann.page.mouse.down();
		await ann.page.mouse.move(x + 64, y, { steps: 8 });
		await ann.page.mouse.up();
	};

	await part('leaving while a cell is being written asks, and the text is offered afterwards', async () => {
		await halfType('B2', 'half');
		assert.equal(await asked(false, back), 1);
		await ann.page.keyboard.type(' typed');
		assert.equal(await asked(true, back), 1);
		await ann.page.getByRole('heading', { name: 'Sheets' }).waitFor();
		await ann.open(id);
		await offered('B2: “half typed”').waitFor();
		await offered('B2').getByRole('button', { name: 'Write it' }).click();
		await waitUntil(async () => (await stored()) === 'B2=half typed', 'it to be stored');

		// The page is left at once, both with the text and with the decision about it.
		for (let round = 0; round < roundsToRun(2, 8); round++) {
			await halfType('B3', `reloaded ${round}`);
			assert.equal(await asked(true, () => ann.open(id)), 1);
			await offered(`B3: “reloaded ${round}”`).waitFor();
			assert.equal(await ann.page.locator('.kept-item').count(), 1);
			await offered('B3').getByRole('button', { name: 'Discard' }).click();
			await ann.open(id);
		}
	});

	await part('a switch of the language asks, and the text is offered in the new one', async () => {
		const switchTo = async (language) => {
			await Promise.all([ann.page.waitForEvent('dialog'), ann.page.getByRole('button', { name: language }).click()]);
		};
		await halfType('B2', 'half');
		assert.equal(await asked(false, () => switchTo('中文')), 1);
		assert.equal(await ann.page.evaluate(() => document.documentElement.lang), 'en');
		assert.equal(await asked(true, () => switchTo('中文')), 1);
		await offered('B2: “half”').waitFor();
		await ann.page.getByText('这是您之前写的').waitFor();
		assert.equal(await ann.page.evaluate(() => document.documentElement.lang), 'zh-CN');
		await offered('B2').getByRole('button', { name: '写入' }).click();
		await waitUntil(async () => (await stored()) === 'B2=half', 'it to be stored');
		await waitUntil(async () => (await ann.status()) === '已保存', 'the page to say so');
		assert.equal(await asked(true, async () => {
			await ann.page.getByRole('button', { name: 'English' }).click();
			await waitUntil(() => ann.page.evaluate(() => document.documentElement.lang === 'en').catch(() => false), 'the English page');
		}), 0);
		await ann.untilOpen();
	});

	await part('a tab that is closed asks, and the text is offered in the next one', async () => {
		await halfType('B2', 'closed');
		const { page } = ann;
		const closed = new Promise((resolve) => page.once('close', resolve));
		page.once('dialog', (dialog) => dialog.accept());
		await page.close({ runBeforeUnload: true });
		await closed;
		await ann.anotherPage();
		await ann.open(id);
		await offered('B2: “closed”').waitFor();
		await offered('B2').getByRole('button', { name: 'Write it' }).click();
		await waitUntil(async () => (await stored()) === 'B2=closed', 'it to be stored');
		await ann.untilSaved();
		await ann.open(id);
		await ann.page.waitForTimeout(1000);
		assert.equal(await ann.page.locator('.kept-item').count(), 0);
	});

	await part('an editor whose text is the cell\'s, or that was closed, is no reason to ask', async () => {
		await ann.type('A1', 'same');
		await ann.untilSaved();
		await ann.goTo('A1');
		await ann.page.keyboard.press('F2');
		await waitUntil(() => ann.editorText(), 'the editor to open');
		assert.equal(await asked(true, () => ann.open(id)), 0);
		await halfType('A2', 'stays');
		await asked(false, back);
		await ann.page.keyboard.press('Enter');
		await ann.untilSaved();
		assert.equal(await asked(true, () => ann.open(id)), 0);
		await ann.page.waitForTimeout(1000);
		assert.equal(await offered('stays').count(), 0);
		assert.equal(await stored(), 'A1=same A2=stays');
	});

	await part('text that is being typed when the role ends is offered', async () => {
		await halfType('C3', 'too late');
		await mayWrite('viewer');
		await offered('C3: “too late”').waitFor();
		await ann.page.getByText('You may read this sheet, not change it.').first().waitFor();
		await offered('C3').getByRole('button', { name: 'Discard' }).click();
		assert.equal(await asked(true, () => ann.open(id)), 0);
	});

	await part('sizes that could not be saved are named until the user has seen it', async () => {
		await leave(widenA, () => mayWrite('viewer'));
		await offered('sizes, hidden rows').waitFor({ timeout: 40000 });
		assert.equal(await offered('sizes').getByRole('button', { name: 'Write it' }).count(), 0);
		await ann.open(id);
		await offered('sizes, hidden rows').getByRole('button', { name: 'Discard' }).click();
		await ann.open(id);
		await ann.page.waitForTimeout(1000);
		assert.equal(await offered('sizes').count(), 0);
	});

	await part('Copy without a clipboard shows the whole text, selected', async () => {
		const text = 'long '.repeat(20).trim();
		await halfType('A1', text);
		await mayWrite('viewer');
		await offered('A1').waitFor();
		const copy = async () => {
			await offered('A1').getByRole('button', { name: 'Copy' }).click();
			await ann.page.getByText('The browser does not let us copy').waitFor();
			assert.equal(await ann.page.evaluate(() => document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)), text);
		};
		await ann.page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error('no'))));
		await copy();
		await ann.page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
		await copy();
		await offered('A1').getByRole('button', { name: 'Discard' }).click();
	});

	assert.deepEqual(ann.problems, []);
});
