/*
 * access.test.mjs - the page for everybody: each screen follows the rules of rules.mjs in both languages and themes, both are
 * remembered, changes of state are announced, and others can be followed.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil, roundsToRun } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';
import { brokenRules, invisibleFocus } from './rules.mjs';

test('the page for everybody', { timeout: 420000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const [ann, bob] = await Promise.all(['ann', 'bob'].map((name) => Person.arrive(browser, gateway, name)));
	await Promise.all([ann.register(), bob.register()]);
	const id = await ann.newSheet('Household');
	await ann.paste('A1', 'Item\tCost\nRent\t800\nFood\t350\nSum\t=SUM(B2:B3)');
	await ann.share('bob', 'editor');
	await bob.open(id);
	await bob.goTo('C5');
	await ann.page.getByRole('button', { name: 'Save version' }).click();
	await ann.page.getByText('Version 1 is saved.').waitFor();
	const trashed = Number(await cluster.psql(`SELECT sheet.create('Old', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
	await cluster.psql(`SELECT sheet.trash(${trashed})`);
	const { token } = await ann.page.evaluate(() => JSON.parse(sessionStorage.getItem('pg_sheet.session')));
	for (const name of ['photo.png', 'a table with a long name that needs two lines or three.csv']) {
		const form = new FormData();
		form.append('fid', id);
		form.append('token', token);
		form.append('uploadfile', new Blob([Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')]), name);
		await fetch(`${gateway.url}/uploadchunk`, { method: 'POST', body: form });
	}
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});

	/** Goes through all screens with `check(screen)`. The language's texts are in the buttons' order, not in their names. */
	async function visit(page, phone, check) {
		const goOn = async (selector) => {
			await page.locator(selector).first().waitFor();
			await page.waitForTimeout(300);
		};
		const action = async (n) => {
			if (phone) await page.locator('.bar > .fold').click();
			await page.locator('.actions-menu > button').nth(n).click();
		};
		await page.goto(`${gateway.url}/`);
		await goOn('main.sign-in');
		await check('sign-in');
		// A link that opens nothing. Another fragment is not another page.
		await page.evaluate(() => (location.hash = '#link=x'));
		await goOn('input[name=guest-name]');
		await check('guest');
		await page.locator('form button[type=submit]').click();
		await goOn('.problem:not(:empty)');
		await check('guest refused');
		await page.evaluate(() => (location.hash = ''));
		await goOn('input[name=username]');
		await page.locator('main.sign-in p > button').click();
		await goOn('input[type=email]');
		await check('register');
		await page.locator('main.sign-in p > button').click();
		await page.locator('form input[name=username]').fill(`nobody ${Math.random()}`);
		await page.locator('form input[name=password]').fill('not a password');
		await page.locator('form button[type=submit]').click();
		await goOn('.problem:not(:empty)');
		await check('sign-in refused');
		await page.locator('form input[name=username]').fill('ann');
		await page.locator('form input[name=password]').fill(ann.password);
		await page.locator('form button[type=submit]').click();
		await goOn('main.sheets table');
		await check('list');
		await page.locator('.bar .user').click();
		await goOn('dialog form');
		await check('account');
		await page.keyboard.press('Escape');
		await page.locator('.tools > button').click();
		await goOn('dialog .album img');
		await check('files');
		await page.keyboard.press('Escape');
		await page.locator('.heading .primary').click();
		await goOn('dialog form');
		await check('new sheet');
		await page.keyboard.press('Escape');
		await page.locator('.tabs button').nth(1).click();
		await goOn('td button.danger');
		await check('trash');
		await page.locator('td button.danger').click();
		await goOn('dialog button.danger');
		await check('question');
		await page.keyboard.press('Escape');
		await page.goto(`${gateway.url}/?id=${id}`);
		await goOn('.grid canvas');
		await waitUntil(() => page.evaluate(() => window.pgSheet?.contentOf(0, 0)), 'the grid to be filled');
		await page.locator('.cell-cursor[data-user="bob"]').waitFor({ state: 'attached' });
		await check('editor');
		if (phone) {
			await page.locator('.bar > .fold').click();
			await goOn('.actions-menu[data-open]');
			await check('menu');
			await page.keyboard.press('Escape');
			await page.locator('.people > .fold').click();
			await goOn('.faces .face');
		} else await page.locator('.faces .face[data-name="bob"]').click();
		await check('people');
		await page.keyboard.press('Escape');
		const box = await page.locator('.grid canvas').first().boundingBox();
		const at = [box.x + 200, box.y + 150];
		await page.mouse.click(...at, { button: 'right' });
		await goOn('.univer-popup button');
		await check('context menu');
		await page.keyboard.press('Escape');
		await action(1);
		await goOn('.drawer .entries button');
		await check('versions');
		await page.locator('.drawer .entries button').first().click();
		await goOn('dialog table');
		await check('preview');
		await page.keyboard.press('Escape');
		await action(2);
		await goOn('[data-drawer="history"] time');
		await check('history');
		await action(3);
		await goOn('dialog .links li');
		await check('share');
		await page.locator('dialog form input').first().fill('nobody');
		await page.locator('dialog form button[type=submit]').first().click();
		await goOn('dialog .problem:not(:empty)');
		assert.match(await page.locator('dialog .problem:not(:empty)').textContent(), /^(There is no user with this name\.|没有叫这个名字的用户。)$/);
		await check('share refused');
		await page.goto(`${gateway.url}/?id=${id}`);
		await waitUntil(() => page.evaluate(() => window.pgSheet?.contentOf(0, 0)), 'the grid to be filled');
		await goOn('.cell-cursor[data-user="bob"]');
		await page.locator('[id="__editor___INTERNAL_EDITOR__DOCS_NORMAL"]').waitFor({ state: 'attached' });
		await page.locator('.grid-host[data-ready]').waitFor({ state: 'attached' });
		await page.locator(phone ? '.bar > .fold' : '.editor-bar .fold.more').click();
		await page.locator('.more-menu button').nth(1).click();
		await goOn('dialog form');
		await check('publish');
		await page.keyboard.press('Escape');
		await page.mouse.click(...at);
		await page.keyboard.type('42');
		await waitUntil(async () => Object.values(await bob.locks()).includes('ann'), 'the cell to be edited');
		await cluster.psql(`SELECT sheet.delete_rows(${id}, 4, 4); SELECT sheet.insert_rows(${id}, 4, 4)`);
		await goOn('.kept-item button');
		await check('kept');
		await page.goto(`${gateway.url}/?id=999999`);
		await goOn('.stopped button');
		await check('stopped');
	}

	for (const locale of ['en', 'zh-CN'])
		for (const colorScheme of ['light', 'dark'])
			for (const phone of [false, true]) {
				// Half of them have each pair of properties.
				const odd = [locale === 'en', colorScheme === 'light', !phone].filter(Boolean).length % 2;
				if (odd === 0 && roundsToRun(1, 2) === 1) continue;
				await step(`each screen in ${locale}, ${colorScheme}, on a ${phone ? 'phone' : 'wide screen'}`, async () => {
					const size = phone ? { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } : { viewport: { width: 1280, height: 760 } };
					const context = await browser.newContext({ locale, colorScheme, ...size });
					const page = await context.newPage();
					const seen = [];
					await visit(page, phone, async (screen) => {
						const name = `${locale}-${colorScheme}-${phone ? 'phone' : 'wide'}-${screen}`;
						if (process.env.SCREENSHOTS) await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
						const { lang, theme, wide, ground } = await page.evaluate(() => ({
							lang: document.documentElement.lang,
							theme: document.documentElement.dataset.theme,
							wide: document.documentElement.scrollWidth - innerWidth,
							ground: getComputedStyle(document.documentElement).backgroundColor,
						}));
						assert.deepEqual([lang, theme, wide], [locale, colorScheme, 0], name);
						assert.equal(ground, colorScheme === 'dark' ? 'rgb(28, 31, 33)' : 'rgb(255, 255, 255)');
						// Controls that Univer has just added get their names in the next frame.
						let broken;
						const look = async () => [...(await brokenRules(page)), ...(locale === 'zh-CN' ? await englishTexts(page) : [])];
						await waitUntil(async () => (broken = await look()).length === 0, 'no broken rules', 15000).catch(() => {});
						assert.deepEqual(broken, [], name);
						seen.push(screen);
					});
					assert.equal(seen.length, phone ? 23 : 22);
					await context.close();
				});
			}

	await step('the rules find what breaks them', async () => {
		const page = await ann.context.newPage();
		await page.setContent(`<html lang="fr"><title>x</title><main><h1>A</h1><h3>B</h3><button></button><input id="a"><p id="a" style="color: #999">pale</p>
			<div aria-label="x" tabindex="2">y</div><ul><p>z</p></ul></main></html>`);
		const found = (await brokenRules(page)).map((line) => line.replace(/[:(].*/, ''));
		for (const rule of ['lang of the document', 'heading after level 1', 'no name', '2 elements have the id a', 'contrast 2.85 ', 'aria-label without a role', 'positive tabindex', 'list']) assert.ok(found.includes(rule), `${rule} in ${found}`);
		await page.close();
	});

	await step('the focus is visible on all controls', async () => {
		const page = await (await browser.newContext({ locale: 'en-US' })).newPage();
		await page.goto(`${gateway.url}/`);
		await page.getByLabel('Password').waitFor();
		const signIn = await invisibleFocus(page, 'body');
		assert.deepEqual([signIn.invisible, signIn.reached >= 5], [[], true]);
		const editor = await invisibleFocus(ann.page, 'body');
		assert.deepEqual([editor.invisible, editor.reached >= 8], [[], true], JSON.stringify(editor));
		await page.context().close();
	});

	await step('what a stopped sheet covers takes no focus', async () => {
		const page = await ann.context.newPage();
		await page.goto(`${gateway.url}/?id=999999`);
		await page.locator('.stopped button').first().waitFor();
		const reached = [];
		for (let i = 0; i < 4; i++) {
			await page.keyboard.press('Tab');
			reached.push(await page.evaluate(() => (document.activeElement === document.body ? null : document.activeElement.outerHTML.slice(0, 160))));
		}
		const names = reached.filter(Boolean);
		assert.ok(names.length > 1 && names.every((html) => /^<button/.test(html) && /Sheets|Try again/.test(html)), names.join('\n'));
		await page.close();
	});

	await step('theme and language are switched on each screen, and remembered', async () => {
		const { page } = bob;
		const state = () => page.evaluate(() => [document.documentElement.lang, document.documentElement.dataset.theme, document.documentElement.classList.contains('univer-dark')]);
		await page.getByRole('button', { name: 'Dark' }).click();
		assert.deepEqual(await state(), ['en', 'dark', true]);
		await page.getByRole('button', { name: '中文' }).click();
		await page.getByRole('button', { name: '历史' }).waitFor();
		await waitUntil(async () => (await bob.cell('A1'))?.shown === 'Item', 'the grid to be filled');
		assert.deepEqual(await state(), ['zh-CN', 'dark', true]);
		await page.getByRole('link', { name: '表格' }).click();
		await page.getByRole('button', { name: '新建表格' }).waitFor();
		assert.deepEqual((await state()).slice(0, 2), ['zh-CN', 'dark']);
		await page.getByRole('button', { name: '退出登录' }).click();
		await page.getByLabel('密码').waitFor();
		assert.deepEqual((await state()).slice(0, 2), ['zh-CN', 'dark']);
		await page.getByRole('button', { name: '浅色' }).click();
		await page.getByRole('button', { name: 'English' }).click();
		await page.getByLabel('Password').fill(bob.password);
		await page.getByLabel('User name').fill('bob');
		await page.locator('form button[type=submit]').click();
		await page.getByRole('heading', { name: 'Sheets' }).waitFor();
		assert.deepEqual(await state(), ['en', 'light', false]);
		// Chosen is what the system prefers, so the page follows the system again.
		await page.emulateMedia({ colorScheme: 'dark' });
		await waitUntil(async () => (await state())[1] === 'dark', 'the page to follow the system');
		await page.emulateMedia({ colorScheme: null });
		await bob.open(id);
	});

	await step('a page that is loaded has its theme before its modules', async () => {
		const context = await browser.newContext({ colorScheme: 'light' });
		const page = await context.newPage();
		await page.goto(`${gateway.url}/`);
		await page.evaluate(() => localStorage.setItem('pg_sheet.theme', 'dark'));
		await page.route('**/assets/*.js', (route) => route.abort());
		await page.reload({ waitUntil: 'commit' });
		await waitUntil(() => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor === 'rgb(28, 31, 33)'), 'a dark page without its modules', 5000);
		await context.close();
	});

	const announced = (person) => person.page.evaluate(() => [...(window.announced ?? [])]);
	const listen = (person) =>
		person.page.evaluate(() => {
			window.announced = [];
			for (const region of document.querySelectorAll('#announcements, #messages')) {
				new MutationObserver((changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach((node) => window.announced.push(node.textContent)))).observe(region, { childList: true });
			}
		});
	/** Waits for `text`, and takes it and what was announced before it. Resolves to these texts. */
	const untilAnnounced = (person, text) =>
		waitUntil(() => person.page.evaluate((text) => window.announced.includes(text) && window.announced.splice(0, window.announced.indexOf(text) + 1), text), async () => `${text}; it was ${JSON.stringify(await announced(person))}`, 15000);

	await step('saved, offline, back, refused, joined and left are announced, in regions that exist before', async () => {
		assert.deepEqual(await ann.page.locator('#announcements, #messages').evaluateAll((regions) => regions.map(({ role, ariaLive }) => `${role} ${ariaLive}`)), ['log polite', 'log polite']);
		await listen(ann);
		// The page is to notice that something is not saved.
		gateway.service.signal('SIGSTOP');
		try {
			await ann.type('A7', 'x');
			await waitUntil(async () => (await ann.page.locator('.status').getAttribute('data-unsaved')) !== '0', 'an unsaved edit');
		} finally {
			gateway.service.signal('SIGCONT');
		}
		await untilAnnounced(ann, 'Saved');
		await bob.page.goto(`${gateway.url}/`);
		await untilAnnounced(ann, 'bob has left.');
		await bob.open(id);
		await untilAnnounced(ann, 'bob has joined.');
		await bob.goTo('D7');
		await bob.page.keyboard.press('F2');
		await waitUntil(async () => (await ann.locks()).D7 === 'bob', 'the lock');
		await ann.goTo('D7');
		await ann.page.keyboard.press('F2');
		await untilAnnounced(ann, 'bob is editing D7');
		await bob.page.keyboard.press('Escape');
		await gateway.stop();
		const heard = await untilAnnounced(ann, 'Reconnecting …');
		// The page decides 1.5 s after a change who has left. It announces nobody while it is not connected.
		await ann.page.waitForTimeout(1500);
		await gateway.start();
		heard.push(...(await untilAnnounced(ann, 'Saved')));
		await Promise.all([ann.untilSaved(), bob.untilSaved()]);
		await ann.page.waitForTimeout(2500);
		assert.deepEqual([...heard, ...(await announced(ann))].filter((text) => text === 'bob has left.'), [], 'nobody has left because the connection was lost');
	});

	await step('who is here is shown, and can be followed until one moves or presses Escape', async () => {
		const log = () => cluster.psql(`SELECT count(*), max(seq) FROM sheet.log WHERE sheet_id = ${id}`);
		const before = await log();
		const face = ann.page.getByRole('button', { name: 'Follow bob' });
		const visibleRow = (row) => ann.page.locator(`.cell-cursor[data-user="bob"][data-cell="A${row}"]`).isVisible();
		const pressed = () => face.getAttribute('aria-pressed');
		const bobDown = async (times) => {
			for (let i = 0; i < times; i++) await bob.page.keyboard.press('PageDown');
		};
		const bobAt = () => bob.page.evaluate(() => Number(/^A([0-9]+)/.exec(document.querySelector('#cell-reader').textContent)?.[1]));
		await bob.goTo('A3');
		await waitUntil(() => visibleRow(3), "bob's selection");
		await face.click();
		assert.equal(await pressed(), 'true');
		await bobDown(3);
		await waitUntil(async () => visibleRow(await bobAt()), "ann's grid to scroll to bob", 10000);
		await ann.page.keyboard.press('Escape');
		assert.equal(await pressed(), 'false');
		await bobDown(2);
		const last = await bobAt();
		await ann.page.waitForTimeout(1500);
		assert.equal(await visibleRow(last), false, 'nobody is followed any more');
		await face.click();
		await waitUntil(() => visibleRow(last), "ann's grid to scroll to where bob is", 10000);
		await ann.grid.hover();
		await ann.page.mouse.wheel(0, -300);
		await waitUntil(async () => (await pressed()) === 'false', 'own scrolling to end it');
		assert.equal(await log(), before, 'presence is not logged');
		assert.equal(await face.locator('.initial').evaluate((element) => getComputedStyle(element).backgroundColor), await ann.page.locator('.cell-cursor[data-user="bob"]').evaluate((element) => getComputedStyle(element).borderTopColor));
	});

	await step('a page that nobody touches asks for few frames, and draws what others do', async () => {
		await ann.page.evaluate(() => {
			const { requestAnimationFrame } = window;
			window.framesAsked = 0;
			window.requestAnimationFrame = (run) => requestAnimationFrame(run, window.framesAsked++);
		});
		const asked = () => ann.page.evaluate(() => window.framesAsked);
		// A caret that blinks is drawn twice a second.
		const askedIn = async (ms) => -(await asked()) + (await ann.page.waitForTimeout(ms).then(asked));
		await waitUntil(async () => (await askedIn(1000)) < 12, 'the frames to end');
		const shown = () => ann.page.locator('.cell-cursor[data-user="bob"]').evaluateAll((all) => all.map(({ dataset }) => dataset.cell).join());
		const before = await shown();
		await bob.page.keyboard.press('ArrowRight');
		await waitUntil(async () => (await shown()) === before.replace('A', 'B'), "bob's selection");
	});
});

/** Names of controls and texts that have no Chinese letter, except data, names of fonts, and what is the same in all languages. */
function englishTexts(page) {
	return page.evaluate(() => {
		const same = /^(pg_sheet|Markdown|HTML|CSV|.*\.(png|csv)|[0-9]+ B ·|English|F6|ann|bob|Household|Old|Arial|fx|[A-Z]{1,2}[0-9]*(,.*)?|Item|Cost|Rent|Food|Sum|=SUM\(.*\)|[^\p{L}]*)$/u;
		const isEnglish = (text) => text && !/\p{Script=Han}/u.test(text) && !same.test(text);
		const found = new Set();
		for (const element of document.querySelectorAll('body *:not(script, style, noscript)')) {
			if (!element.checkVisibility({ visibilityProperty: true })) continue;
			const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent.trim());
			for (const text of [...own, element.getAttribute('aria-label') ?? '', element.title ?? '']) if (isEnglish(text)) found.add(text);
		}
		return [...found];
	});
}
