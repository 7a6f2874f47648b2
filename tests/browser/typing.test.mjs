/*
 * typing.test.mjs - what people type is never lost and never damaged: refused keys leave nothing behind, of two who begin in one
 * cell at the same time both keep their texts, what others do leaves an open editor alone, and a key goes to the selected cell
 * wherever the focus is.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';

test('what people type', { timeout: 300000 }, async (t) => {
	const { gateway, browser, sql, persons: [ann, bob] } = await meet(t);
	const id = await ann.newSheet('Typing');
	const shareWith = (name, role) => sql(`SELECT sheet.share(${id}, '${name}', '${role}')`);
	await sql(`SELECT sheet.share_link(${id}, NULL)`);
	await shareWith('bob', 'editor');
	await bob.open(id);
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);
	const untilStored = (text) => {
		let last;
		return waitUntil(async () => (last = await stored()) === text, () => `the sheet to have ${text}; it has ${JSON.stringify(last)}`);
	};
	const offered = (person, text) => person.page.locator('.kept-item', { hasText: text });
	const untilTold = (person, text) => person.page.locator('#messages p', { hasText: text }).waitFor();
	const untilLocked = (person, cell) => waitUntil(async () => cell in (await person.locks()), `${cell} to be locked`);
	const untilFree = (person, cell) => waitUntil(async () => !(cell in (await person.locks())), `${cell} to be free`);
	const untilRole = (person, role) => waitUntil(() => person.page.evaluate((wanted) => document.body.dataset.role === wanted, role), `${person.name} to be ${role}`);
	const step = (name, run) =>
		t.test(name, async () => {
			await sql(`SELECT sheet.set(${id}, a1, '') FROM sheet.range(${id}) WHERE content <> ''`);
			await Promise.all([ann, bob].map((person) => waitUntil(async () => (await person.cells('A1', 'B3', 'C5', 'D7')).every((content) => content === ''), 'the sheet to be empty')));
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});

	/** The second's keys are refused while the first has the lock, and offered; what comes after that is whole. */
	async function refusedThenTyped(text, type) {
		await bob.goTo('B3');
		await bob.page.keyboard.type('b');
		await untilLocked(ann, 'B3');
		await ann.goTo('B3');
		await type();
		await untilTold(ann, 'bob is editing B3');
		await bob.page.keyboard.press('Escape');
		await untilFree(ann, 'B3');
		await ann.page.keyboard.type('again');
		await ann.page.keyboard.press('Enter');
		await untilStored('B3=again');
		await Promise.all([ann.untilShows('B3', 'again'), bob.untilShows('B3', 'again')]);
		await offered(ann, `B3: “${text}`).first().waitFor();
		while ((await ann.page.locator('.kept-item').count()) > 0) await ann.page.getByRole('button', { name: 'Discard' }).first().click();
	}

	await step('keys that are refused because of a lock leave nothing behind', () => refusedThenTyped('xx', () => ann.page.keyboard.type('xx')));

	await step('nor does a composition, which is refused as a whole', async () => {
		const session = await ann.page.context().newCDPSession(ann.page);
		await refusedThenTyped('你', async () => {
			for (const text of ['n', 'ni', 'nih']) await session.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length });
			await session.send('Input.insertText', { text: '你' });
		});
		// The lock ends in the middle of a composition.
		await bob.goTo('B4');
		await bob.page.keyboard.type('b');
		await untilLocked(ann, 'B4');
		await ann.goTo('B4');
		await session.send('Input.imeSetComposition', { text: 'ni', selectionStart: 2, selectionEnd: 2 });
		await bob.page.keyboard.press('Escape');
		await untilFree(ann, 'B4');
		await session.send('Input.imeSetComposition', { text: 'niha', selectionStart: 4, selectionEnd: 4 });
		await session.send('Input.insertText', { text: '你好' });
		await ann.page.keyboard.type('whole');
		await ann.page.keyboard.press('Enter');
		await untilStored('B3=again B4=whole');
		await offered(ann, 'B4: “你好”').getByRole('button', { name: 'Discard' }).click();
		await sql(`SELECT sheet.set(${id}, 'B4', '')`);
	});

	await step('nor do F2, Backspace, a double click, the formula bar or the clipboard', () =>
		refusedThenTyped('f', async () => {
			const { keyboard } = ann.page;
			await keyboard.press('F2');
			await keyboard.type('f2');
			await keyboard.press('Backspace');
			const bar = await ann.page.locator('[data-u-comp="formula-bar"]').boundingBox();
			await ann.page.mouse.click(bar.x + bar.width / 2, bar.y + bar.height / 2);
			await ann.page.evaluate(() => navigator.clipboard.writeText('pasted'));
			await keyboard.type('bar');
			await keyboard.press('Control+v');
			const box = await ann.grid.boundingBox();
			await ann.page.mouse.dblclick(box.x + 46 + 96 + 40, box.y + 20 + 48 + 12);
			await keyboard.type('xx');
		}),
	);

	await step('Backspace takes back what is refused, and the text moves with its cell', async () => {
		await bob.goTo('B3');
		await bob.page.keyboard.type('b');
		await untilLocked(ann, 'B3');
		await ann.goTo('B3');
		await ann.page.keyboard.type('ab');
		await ann.page.keyboard.press('Backspace');
		await sql(`SELECT sheet.insert_rows(${id}, 0, 1)`);
		await untilLocked(ann, 'B4');
		await offered(ann, /B4: “a”/).getByRole('button', { name: 'Discard' }).click();
		await bob.page.keyboard.press('Escape');
		await untilFree(ann, 'B4');
		await sql(`SELECT sheet.delete_rows(${id}, 0, 1)`);
	});

	await step('what a viewer types is refused once, and is whole when the role comes back', async () => {
		await shareWith('bob', 'viewer');
		await untilRole(bob, 'viewer');
		await bob.goTo('C5');
		await bob.page.keyboard.type('refused');
		await untilTold(bob, 'You may read this sheet, not change it.');
		await bob.page.keyboard.press('Delete');
		await bob.page.keyboard.press('F2');
		const bar = await bob.page.locator('[data-u-comp="formula-bar"]').boundingBox();
		await bob.page.mouse.click(bar.x + bar.width / 2, bar.y + bar.height / 2);
		await bob.page.keyboard.type('bar');
		await bob.page.keyboard.press('Backspace');
		// Each key would repeat the message, and it goes after a while.
		assert.ok((await bob.page.locator('#messages p', { hasText: 'You may read this sheet' }).count()) <= 1);
		await bob.goTo('C5');
		await shareWith('bob', 'editor');
		await untilRole(bob, 'editor');
		await bob.page.keyboard.type('clean');
		await bob.page.keyboard.press('Enter');
		await untilStored('C5=clean');
		await ann.untilShows('C5', 'clean');
	});

	await step('a viewer sees that the sheet is read only, and what a viewer may do; the page follows the role', async () => {
		const { page } = bob;
		const seen = async () => {
			const names = { mark: 'text="View only"', toolbar: '[data-u-comp="headerbar"]', save: 'header button:text-is("Save version")', share: 'header button:text-is("Share")', restore: '.drawer button:text-is("Restore")', versions: 'header button:text-is("Versions")', preview: '.drawer button:text-is("Preview")' };
			const visible = await Promise.all(Object.entries(names).map(async ([name, selector]) => ((await page.locator(selector).first().isVisible()) ? name : '')));
			return visible.filter(Boolean).join(' ');
		};
		const untilSeen = (wanted) => {
			let last;
			return waitUntil(async () => (last = await seen()) === wanted, () => `bob to see ${wanted}; he sees ${last}`);
		};
		const menuOf = async (what) => {
			await bob.grid.click({ position: { x: what === 'row' ? 20 : 86, y: 32 }, button: 'right' });
			const items = page.locator('section[dir] > section').locator('button, [role="menuitem"]');
			await items.first().waitFor();
			const texts = await items.allInnerTexts();
			await page.keyboard.press('Escape');
			await items.first().waitFor({ state: 'hidden' });
			return texts.map((text) => text.split('\n')[0].trim());
		};
		await ann.type('A1', 'first');
		await ann.untilSaved();
		await ann.page.getByRole('button', { name: 'Save version' }).click();
		await ann.page.getByText('Version 1 is saved.').waitFor();
		await page.getByRole('button', { name: 'Versions', exact: true }).click();
		await untilSeen('toolbar save restore versions preview');
		await bob.type('E2', 'own');
		await bob.untilSaved();
		await shareWith('bob', 'viewer');
		await untilSeen('mark versions preview');
		await page.getByText('You may read this sheet, not change it.').waitFor();
		await bob.goTo('E5');
		await page.locator('#messages p').first().waitFor({ state: 'detached', timeout: 20000 });
		await page.keyboard.press('Control+z');
		await page.getByText('You may read this sheet, not change it.').waitFor();
		assert.equal(await page.locator('.kept-item').count(), 0, 'an undo is refused before it changes anything');
		assert.equal((await bob.cell('E2')).content, 'own');
		assert.deepEqual(await menuOf('row'), ['Copy']);
		assert.deepEqual(await menuOf('cell'), ['Copy']);
		await page.locator('.drawer').getByRole('button', { name: 'Preview version 1' }).click();
		await page.locator('dialog table').waitFor();
		assert.equal(await page.locator('dialog button', { hasText: 'Restore' }).isVisible(), false);
		await page.keyboard.press('Escape');
		await shareWith('bob', 'editor');
		await untilSeen('toolbar save restore versions preview');
		assert.ok((await menuOf('row')).length > 3, 'an editor has the whole menu again');

		// A restored version is a new one, which the list has at once.
		await ann.type('A1', 'second');
		await ann.untilSaved();
		await page.locator('.drawer').getByRole('button', { name: 'Preview version 1' }).click();
		await page.locator('dialog').getByRole('button', { name: 'Restore' }).click();
		await page.locator('dialog').last().getByRole('button', { name: 'Restore' }).click();
		await page.locator('.drawer .entries li', { hasText: 'Restored from version 1' }).first().waitFor();
		await ann.untilShows('A1', 'first');
		await page.locator('.drawer').getByRole('button', { name: 'Restore version 1' }).click();
		await page.locator('dialog').getByRole('button', { name: 'Restore' }).click();
		await page.locator('.drawer .entries li', { hasText: 'Restored from version 1' }).nth(1).waitFor();
		assert.equal(await page.locator('.drawer .entries', { hasText: 'rollback' }).count(), 0, 'the label is in the language of the page');
		await page.locator('.drawer').getByRole('button', { name: 'Close' }).click();
	});

	await t.test('a first visit asks for no session that does not exist', async () => {
		const context = await browser.newContext();
		const page = await context.newPage();
		const failed = [];
		page.on('response', (response) => response.status() >= 400 && failed.push(`${response.status()} ${response.url()}`));
		page.on('console', (message) => message.type() === 'error' && failed.push(message.text()));
		await page.goto(`${gateway.url}/`);
		await page.getByRole('heading', { name: 'Sign in' }).waitFor();
		assert.deepEqual(failed, []);
		await context.close();
	});

	await step('of two who begin at the same time, the second keeps the whole text', async () => {
		await Promise.all([ann.goTo('D7'), bob.goTo('D7')]);
		gateway.service.signal('SIGSTOP'); // neither knows of the other's lock
		await Promise.all([ann, bob].map(({ page, name }) => page.keyboard.type(name)));
		gateway.service.signal('SIGCONT');
		const second = await waitUntil(async () => ((await ann.locks()).D7 ? ann : (await bob.locks()).D7 ? bob : null), 'one to have the lock');
		const first = second === ann ? bob : ann;
		await untilTold(second, 'Somebody else is editing D7, too.');
		await Promise.all([ann, bob].map(({ page }) => page.keyboard.type(' writes a text')));
		await second.page.keyboard.press('Enter');
		await offered(second, `D7: “${second.name} writes a text”`).waitFor();
		await first.page.keyboard.press('Enter');
		await untilStored(`D7=${first.name} writes a text`);
		await second.untilShows('D7', `${first.name} writes a text`);
		await offered(second, 'D7').getByRole('button', { name: 'Write it' }).click();
		await untilStored(`D7=${second.name} writes a text`);

		// The first gives up: nobody is overwritten.
		await Promise.all([ann.goTo('D8'), bob.goTo('D8')]);
		await first.page.keyboard.type('first');
		await Promise.all([untilLocked(second, 'D8')]);
		await first.page.keyboard.press('Escape');
		await untilFree(second, 'D8');
		await second.page.keyboard.type('second');
		await second.page.keyboard.press('Enter');
		await untilStored(`D7=${second.name} writes a text D8=second`);
		assert.equal(await offered(second, 'D8').count(), 0);
		await sql(`SELECT sheet.set(${id}, 'D8', '')`);
	});

	await step('what others write into a cell leaves the open editor alone', async () => {
		await ann.goTo('A1');
		await ann.page.keyboard.type('half');
		await sql(`SELECT sheet.set(${id}, 'A1', 'by SQL')`);
		await ann.untilShows('A1', 'by SQL');
		await ann.page.keyboard.type(' typed');
		await ann.page.keyboard.press('Enter');
		await untilStored('A1=half typed');
	});

	await step('an editor that is open while the sheet is read again keeps its text', async () => {
		await ann.type('A1', 'old');
		await ann.untilSaved();
		await ann.page.keyboard.press('ArrowUp');
		await ann.page.keyboard.type('half');
		await gateway.kill();
		await waitUntil(async () => /Reconnecting|Offline/.test(await ann.status()), 'the connection to end');
		await ann.page.keyboard.type(' typed');
		await sql(`SELECT sheet.set(${id}, 'B3', 'meanwhile')`);
		await gateway.start();
		await ann.untilShows('B3', 'meanwhile');
		await ann.page.keyboard.type(' on');
		await ann.page.keyboard.press('Enter');
		await untilStored('A1=half typed on B3=meanwhile');
		await bob.untilSaved();
	});

	await step('the next key goes to the selected cell, wherever the focus is and whatever has happened meanwhile', async () => {
		const { page } = ann;
		const session = await page.context().newCDPSession(page);
		const lifecycle = (state) => session.send('Page.setWebLifecycleState', { state });
		await sql(`SELECT sheet.set_property(${id}, NULL, 'freeze', '{"rows": 1, "cols": 0}')`);
		await waitUntil(() => page.evaluate(() => window.pgSheet.layoutOf(0, 0).frozen[0] === 1), 'the first row to be frozen');
		const cases = {
			'nothing has the focus': () => page.evaluate(() => document.activeElement.blur()),
			'a click beside the cells': () => page.locator('.status').click(),
			'a dialog was closed': () => ann.share('bob', 'editor'),
			'the page was frozen': async () => {
				await lifecycle('frozen');
				await lifecycle('active');
			},
			'the page was behind another one': async () => {
				const other = await ann.context.newPage();
				await other.bringToFront();
				await page.bringToFront();
				await other.close();
			},
			'the sheet was read again': async () => {
				await gateway.kill();
				await page.evaluate(() => document.activeElement.blur());
				await sql(`SELECT sheet.set(${id}, 'B3', 'meanwhile'), sheet.commit(${id})`);
				await sql(`SELECT sheet.trim(${id}, (SELECT max(version_id) FROM sheet.saved_versions(${id})))`);
				await gateway.start();
				await ann.untilShows('B3', 'meanwhile');
				await sql(`SELECT sheet.set(${id}, 'B3', '')`);
			},
		};
		for (const [cell, [name, run]] of Object.entries(cases).map((one, i) => [`A${i + 3}`, one])) {
			await ann.goTo(cell);
			await run();
			await page.keyboard.type('typed');
			await page.keyboard.press('Enter');
			await waitUntil(async () => (await stored()) === `${cell}=typed`, async () => `${cell} to be typed when ${name}; the sheet has ${await stored()}`);
			await sql(`SELECT sheet.set(${id}, '${cell}', '')`);
		}
		await sql(`SELECT sheet.set_property(${id}, NULL, 'freeze', NULL)`);
		await bob.untilSaved();
	});

	await step('a change that the page cannot queue is named and offered, and no later one is lost', async () => {
		await ann.page.evaluate(() => {
			const { encode } = TextEncoder.prototype;
			TextEncoder.prototype.encode = function (text) {
				if (text.includes('☠')) throw new Error('broken');
				return encode.call(this, text);
			};
		});
		await ann.type('A1', '☠ text', 'later');
		await offered(ann, 'A1: “☠ text”').waitFor();
		assert.equal(await ann.status(), 'Not saved: reload the page');
		await untilStored('A2=later');
		assert.equal(ann.problems.splice(0).length, 1);
		await ann.open(id);
		await offered(ann, 'A1: “☠ text”').getByRole('button', { name: 'Write it' }).click();
		await untilStored('A1=☠ text A2=later');
	});

	await step('a letter that is typed before a changed formula has its colours stays, as do those after it', async () => {
		// React's tasks wait. Each ends when it has done one thing, as on a busy machine: the colours are a task of their own.
		await ann.page.addInitScript(() => {
			const { set } = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage');
			const now = performance.now.bind(performance);
			let held = null;
			let calls = NaN;
			performance.now = () => now() + (++calls > 2 ? 10 : 0);
			Object.defineProperty(MessagePort.prototype, 'onmessage', {
				set(run) {
					set.call(this, (event) => (held ? held.push(() => run(event)) : run(event)));
				},
			});
			window.tasks = {
				hold: () => void (held = []),
				/** Types a letter after so many tasks. Returns whether there are more. */
				typeAfter(count, letter) {
					for (const run of held.splice(0, count)) {
						calls = 0;
						run();
					}
					calls = NaN;
					document.execCommand('insertText', false, letter);
					const rest = held;
					held = null;
					for (const run of rest) run();
					return rest.length > 0;
				},
			};
		});
		await ann.open(id);
		const untilText = (text) => {
			let last;
			return waitUntil(async () => (last = await ann.editorText()) === text, () => `the editor to have ${text}; it has ${last}`, 10000);
		};
		let more = true;
		for (let count = 0; more; count++) {
			await ann.goTo('C5');
			await ann.page.keyboard.type('=SUM(A1:A3');
			await untilText('=SUM(A1:A3');
			await ann.frames();
			await ann.page.evaluate(() => window.tasks.hold());
			await sql(`SELECT sheet.insert_rows(${id}, 1, 1)`);
			await untilText('=SUM(A1:A4');
			more = await ann.page.evaluate((n) => window.tasks.typeAfter(n, ')'), count);
			await ann.page.keyboard.type('*2');
			await untilText('=SUM(A1:A4)*2');
			await ann.page.keyboard.press('Enter');
			await waitUntil(async () => (await ann.cell('C6')).content === '=SUM(A1:A4)*2', 'C6 to have the formula');
			await ann.untilSaved();
		}
	});
});
