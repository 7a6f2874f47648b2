/*
 * hands.test.mjs - the sheet without a mouse: the keys of spreadsheets, the menu by keyboard, and the fingers of a phone.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('the sheet without a mouse', { timeout: 300000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());

	await t.test('keys', async (t) => {
		const ann = await Person.arrive(browser, gateway, 'ann');
		const { page } = ann;
		const keyboard = page.keyboard;
		await ann.register();
		const id = await ann.newSheet('Keys');
		await ann.paste('A1', 'Item\tCost\tNote\nRent\t800\tx\nFood\t350\n\nSum\t=SUM(B2:B3)');
		await ann.untilShows('B5', '1150');
		const box = () => ann.selected();
		/** Two clicks on one cell would edit it. */
		const goTo = async (name) => {
			await ann.goTo('J14');
			await ann.goTo(name);
		};
		const selects = async (from, key, selected) => {
			await goTo(from);
			for (const one of key.split(' ')) await keyboard.press(one);
			let last;
			await waitUntil(async () => (last = await box()) === selected || selected.test?.(last ?? ''), () => `${key} from ${from} to select ${selected}, not ${last}`, 5000);
		};
		const focused = () => page.evaluate(() => document.activeElement.ariaLabel || document.activeElement.textContent);
		const step = (name, run) => t.test(name, async () => { await run(); assert.deepEqual(ann.problems.splice(0), []); });

		await step('a sheet that is opened takes keys, without a click', async () => {
			await ann.open(id);
			await waitUntil(async () => (await box()) === 'A1', 'the first cell to be named');
			for (let n = 0; n < 4; n++) await keyboard.press('ArrowRight');
			await keyboard.type('typed');
			await keyboard.press('Enter');
			await ann.untilShows('E1', 'typed');
			await keyboard.press('ArrowUp');
			await keyboard.press('Delete');
			await ann.untilShows('E1', '');
		});
		for (const [from, key, selected] of [
			['C2', 'ArrowLeft', 'B2'], ['C2', 'ArrowRight', 'D2'], ['C2', 'ArrowDown', 'C3'], ['C2', 'ArrowUp', 'C1'], ['C2', 'Tab', 'D2'], ['C2', 'Shift+Tab', 'B2'], ['A2', 'Shift+Tab', 'A2'], ['C2', 'Tab Tab Shift+Tab', 'D2'],
			['C2', 'Shift+ArrowDown', 'C2:C3'], ['A1', 'Control+ArrowDown', 'A3'], ['A1', 'Control+ArrowRight', 'C1'], ['C3', 'Control+ArrowLeft', 'B3'],
			['A1', 'Control+Shift+ArrowDown', 'A1:A3'],
			['C2', 'Home', 'A2'], ['A2', 'End', 'C2'], ['C2', 'Control+Home', 'A1'], ['A1', 'Control+End', 'C5'],
			['C2', 'Shift+Home', 'A2:C2'], ['A2', 'Shift+End', 'A2:C2'], ['C2', 'Control+Shift+Home', 'A1:C2'], ['A2', 'Control+Shift+End', 'A2:C5'],
			['B2', 'PageDown', /^B2[0-9]$/], ['B9', 'PageUp', 'B1'], ['B2', 'PageDown PageUp', 'B2'], ['B2', 'Shift+PageDown', /^B2:B2[0-9]$/],
			['B2', 'Shift+Space', /^(2:2|A2:[A-Z]+2)$/], ['B2', 'Control+Space', /^(B:B|B1:B[0-9]+)$/],
		]) {
			await step(`${key} from ${from}`, async () => {
				await selects(from, key, selected);
				await keyboard.press('Control+Home');
			});
		}

		await step('Enter, F2, Delete and Escape', async () => {
			await goTo('E1');
			await keyboard.type('abc');
			await keyboard.press('Enter');
			await ann.untilShows('E1', 'abc');
			await goTo('E1');
			await keyboard.press('F2');
			await keyboard.type('d');
			await keyboard.press('Enter');
			await ann.untilShows('E1', 'abcd');
			await goTo('E1');
			await keyboard.press('F2');
			await keyboard.type('e');
			await keyboard.press('Escape');
			await goTo('E2');
			await ann.untilShows('E1', 'abcd');
			await goTo('E1');
			await keyboard.press('Delete');
			await ann.untilShows('E1', '');
		});
		await step('while a cell is being edited, Home and End move in its text', async () => {
			await goTo('E1');
			await keyboard.type('bc');
			await keyboard.press('F2');
			await keyboard.press('Home');
			await keyboard.type('a');
			await keyboard.press('End');
			await keyboard.type('d');
			await keyboard.press('Enter');
			await ann.untilShows('E1', 'abcd');
			// Lines, and a selection that typing replaces.
			await goTo('E1');
			await keyboard.press('F2');
			await keyboard.press('Alt+Enter');
			await keyboard.type('fg');
			await keyboard.press('Home');
			await keyboard.type('e');
			await keyboard.press('Control+Home');
			await keyboard.press('Shift+End');
			await keyboard.type('xy');
			await keyboard.press('Shift+Home');
			await keyboard.type('z');
			await keyboard.press('Control+End');
			await keyboard.type('h');
			await keyboard.press('Enter');
			await waitUntil(async () => (await ann.cell('E1')).content === 'z\nefgh', 'both lines');
			await goTo('E1');
			await keyboard.press('Delete');
			await ann.untilShows('E1', '');
			await goTo('E1');
			await keyboard.press('ArrowDown');
			assert.deepEqual(await ann.cells('A1', 'C1', 'A2'), ['Item', 'Note', 'Rent']);
			await waitUntil(async () => (await box()) === 'E2', 'E2 to be selected');
		});
		await step('Ctrl+; writes the date, Ctrl+Shift+; the time', async () => {
			const today = () => page.evaluate(() => new Date().toLocaleDateString('sv'));
			await goTo('E5');
			const before = await today();
			await keyboard.press('Control+Semicolon');
			await waitUntil(async () => (await ann.cell('E5')).content !== '', 'the date');
			assert.ok([before, await today()].includes((await ann.cell('E5')).content));
			await goTo('E6');
			await keyboard.press('Control+Shift+Semicolon');
			await waitUntil(async () => /^[0-9]{2}:[0-9]{2}:[0-9]{2}$/.test((await ann.cell('E6')).shown), 'the time');
			const [hours, minutes] = (await ann.cell('E6')).content.split(':');
			const fraction = (Number(hours) * 60 + Number(minutes)) / 1440;
			const now = await page.evaluate(() => (new Date().getHours() * 60 + new Date().getMinutes()) / 1440);
			assert.ok(Math.abs(fraction - now) < 0.01 || Math.abs(fraction - now) > 0.99, `${fraction} ${now}`);
			await ann.untilSaved();
			assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.range(${id}, 'E5:E6') WHERE content <> ''`), '2');
		});
		await step('Shift+F10 opens the menu, where the arrow keys, Enter and Escape work', async () => {
			await goTo('A2');
			await keyboard.press('Shift+F10');
			await waitUntil(async () => (await focused()) === 'Copy', 'the menu to have the focus');
			await keyboard.press('ArrowDown');
			assert.equal(await focused(), 'Cut');
			await keyboard.press('ArrowUp');
			await keyboard.press('ArrowUp');
			assert.notEqual(await focused(), 'Copy', 'the last item');
			await keyboard.press('Escape');
			await page.getByText('Paste Special').waitFor({ state: 'hidden' });
			await keyboard.press('ArrowDown');
			await waitUntil(async () => (await box()) === 'A3', 'the cells to have the focus again');
			await goTo('A2');
			const openInsert = async (key = 'ArrowRight') => {
				await keyboard.press('Shift+F10');
				await waitUntil(async () => (await focused()) === 'Copy', 'the menu to have the focus');
				for (let i = 0; i < 20 && (await focused()) !== 'Insert'; i++) await keyboard.press('ArrowDown');
				await keyboard.press(key);
				await waitUntil(async () => /rows above/.test(await focused()), 'the submenu to have the focus');
			};
			await openInsert();
			await keyboard.press('Escape');
			await openInsert(); // before the submenu that Escape has left is gone
			await keyboard.press('Escape');
			await page.getByText(/rows above/).waitFor({ state: 'hidden' });
			await openInsert();
			await goTo('A2'); // a press of the mouse beside it
			await page.getByText(/rows above/).waitFor({ state: 'hidden' });
			await openInsert('Enter');
			await keyboard.press('ArrowLeft');
			await waitUntil(async () => (await focused()) === 'Insert', 'the item to have the focus again');
			await keyboard.press('ArrowRight');
			await waitUntil(async () => /rows above/.test(await focused()), 'the submenu to have the focus');
			await keyboard.press('Enter');
			await ann.untilShows('A3', 'Rent');
			await ann.untilShows('B6', '1150');
			await keyboard.press('Shift+F10');
			await waitUntil(async () => (await focused()) === 'Copy', 'the menu to have the focus');
			for (let i = 0; i < 20 && (await focused()) !== 'Clear'; i++) await keyboard.press('ArrowDown');
			await keyboard.press('ArrowRight');
			await waitUntil(async () => /^Clear /.test(await focused()), 'the submenu to have the focus');
			const first = await focused();
			await keyboard.press('ArrowRight'); // its items have no submenu
			await keyboard.press('ArrowDown');
			await waitUntil(async () => /^Clear /.test(await focused()) && (await focused()) !== first, 'its next item to have the focus');
			await keyboard.press('Escape');
			await page.getByText('Paste Special').waitFor({ state: 'hidden' });
		});
		await step('the menu has the height of rows and the width of columns', async () => {
			const size = (row, col) => page.evaluate(([r, c]) => window.pgSheet.layoutOf(r, c), [row, col]);
			const open = async (cell, select, name, ...keys) => {
				await goTo(cell);
				await keyboard.press(select);
				await keyboard.press('Shift+F10');
				await waitUntil(async () => (await focused()) === 'Copy', 'the menu to have the focus');
				for (const key of keys) for (let i = 0; i < 30 && !(await focused()).startsWith(name); i++) await keyboard.press(key);
				assert.match(await focused(), new RegExp(`^${name}`));
			};
			await open('A2', 'Shift+Space', 'Row Height', 'ArrowDown');
			await keyboard.type('60');
			await keyboard.press('Enter');
			await waitUntil(async () => (await size(1, 0)).height === 60, 'the row to be 60 high');
			await keyboard.press('ArrowDown');
			await waitUntil(async () => (await box()) === 'A3', 'the cells to have the focus again');
			// In the number, the keys of the text and those of the menu.
			await open('A1', 'Control+Space', 'Column Width', 'Tab');
			await keyboard.type('15');
			await keyboard.press('ArrowLeft');
			await keyboard.type('2');
			await keyboard.press('Home');
			await keyboard.press('Delete');
			await keyboard.press('End');
			await keyboard.type('0');
			await keyboard.press('ArrowUp');
			await keyboard.press('Tab');
			await keyboard.press('Shift+Tab');
			await keyboard.press('ArrowDown');
			assert.match(await focused(), /^Column Width/);
			await keyboard.press('Enter');
			await waitUntil(async () => (await size(0, 0)).width === 250, 'the column to be 250 wide');
			await open('A1', 'Shift+Space', 'Row Height', 'Shift+Tab');
			await keyboard.type('99');
			await keyboard.press('Escape');
			await page.getByText('Row Height').waitFor({ state: 'hidden' });
			await keyboard.press('ArrowDown');
			await waitUntil(async () => (await box()) === 'A2', 'the cells to have the focus again');
			assert.equal((await size(0, 0)).height, 24);
			for (let n = 0; n < 2; n++) await keyboard.press('Control+z');
			await waitUntil(async () => (await size(1, 0)).height === 24 && (await size(0, 0)).width === 96, 'both to be taken back');
		});
		await step('Ctrl+9 and Ctrl+0 hide rows and columns, with Shift they are shown again', async () => {
			const hidden = async () => {
				const { rows, cols } = await page.evaluate(() => ({ rows: [0, 1, 2, 3].filter((row) => window.pgSheet.layoutOf(row, 0).height === 0), cols: [0, 1, 2, 3].filter((col) => window.pgSheet.layoutOf(0, col).width === 0) }));
				return `rows ${rows}, columns ${cols}`;
			};
			const untilHidden = async (what) => {
				let last;
				await waitUntil(async () => (last = await hidden()) === what, () => `${what} to be hidden, not ${last}`, 5000);
			};
			await goTo('C2');
			await keyboard.press('Shift+ArrowDown');
			await keyboard.press('Control+9');
			await untilHidden('rows 1,2, columns ');
			await goTo('B1');
			await keyboard.press('Control+0');
			await untilHidden('rows 1,2, columns 1');
			await ann.untilSaved();
			assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.properties(${id}) WHERE key = 'hidden'`), '2');
			await keyboard.press('Control+a');
			await keyboard.press('Control+Shift+9');
			await untilHidden('rows , columns 1');
			await keyboard.press('Control+a');
			await keyboard.press('Control+Shift+0');
			await untilHidden('rows , columns ');
		});
		await step('F6 leaves the cells and comes back, also in a narrow window', async () => {
			await goTo('B2');
			await keyboard.press('F6');
			assert.equal(await page.evaluate(() => document.activeElement.className), 'back');
			await keyboard.press('F6');
			await keyboard.press('ArrowRight');
			await waitUntil(async () => (await box()) === 'C2', 'the cells to have the focus');
			await page.setViewportSize({ width: 390, height: 760 });
			const hint = page.getByRole('button', { name: /^Go to the cells/ });
			const { x, width } = await hint.boundingBox();
			assert.ok(x > 0 && x + width < 390 && (await hint.evaluate((element) => element.checkVisibility({ opacityProperty: true }))));
			await hint.press('Enter');
			await keyboard.press('ArrowRight');
			await waitUntil(async () => (await box()) === 'D2', 'the cells to have the focus');
			await page.setViewportSize({ width: 1280, height: 760 });
			await keyboard.press('Control+Home');
		});
		// Univer fits the heights of the rows then: the last step.
		await step('Ctrl+D and Ctrl+R fill', async () => {
			await ann.paste('F1', '1\t2');
			await ann.untilShows('G1', '2');
			await goTo('F1');
			await keyboard.press('Shift+ArrowDown');
			await keyboard.press('Shift+ArrowDown');
			await keyboard.press('Control+d');
			await ann.untilShows('F3', '1');
			await goTo('G1');
			await keyboard.press('Shift+ArrowRight');
			await keyboard.press('Control+r');
			await ann.untilShows('H1', '2');
		});
		await page.close();
	});

	await t.test('fingers', async (t) => {
		const bob = await Person.arrive(browser, gateway, 'bob', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
		const { page } = bob;
		await bob.register();
		await bob.newSheet('A sheet whose name is too long for the bar of a phone');
		const session = await bob.context.newCDPSession(page);
		const area = await bob.grid.boundingBox();
		const at = (row, col) => ({ x: area.x + 46 + col * 96 + 40, y: area.y + 20 + row * 24 + 12 });
		const touch = (type, ...touchPoints) => session.send('Input.dispatchTouchEvent', { type, touchPoints });
		const move = async (from, to, steps = 10) => {
			for (let i = 1; i <= steps; i++) {
				await touch('touchMove', { x: from.x + ((to.x - from.x) * i) / steps, y: from.y + ((to.y - from.y) * i) / steps });
				await page.waitForTimeout(20);
			}
		};
		const tap = async (place) => {
			await touch('touchStart', place);
			await touch('touchEnd');
		};
		const box = () => bob.selected();
		const untilSelected = (range) => waitUntil(async () => (await box()) === range, `${range} to be selected`, 5000);
		const editor = () => page.evaluate(() => [document.activeElement.isContentEditable, document.activeElement.inputMode]);
		const step = (name, run) => t.test(name, async () => { await run(); assert.deepEqual(bob.problems.splice(0), []); });

		await step('the bar has one line, and nothing is wider than the screen', async () => {
			const { bar, wide } = await page.evaluate(() => ({ bar: document.querySelector('.bar').getBoundingClientRect(), wide: document.documentElement.scrollWidth }));
			assert.ok(bar.height < 56, `${bar.height}`);
			assert.equal(wide, 390);
			for (const control of await page.locator('.bar :is(a, button):visible').all()) {
				const { x, width } = await control.boundingBox();
				assert.ok(x >= 0 && x + width <= 390);
			}
			// A keyboard comes to the way out of the cells.
			const opacity = () => page.locator('.to-grid').evaluate((element) => getComputedStyle(element).opacity);
			assert.equal(await opacity(), '0');
			await page.locator('.bar .back').focus();
			for (const control of ['link', 'to-grid']) { // the sheet's name, which renames it, and the way out
				await page.keyboard.press('Tab');
				assert.equal(await page.evaluate(() => document.activeElement.className), control);
			}
			assert.equal(await opacity(), '1');
			await page.getByRole('button', { name: 'Menu', exact: true }).click();
			await page.getByRole('button', { name: 'History' }).click();
			await page.locator('.drawer').getByRole('button', { name: 'Close' }).click();
			assert.equal(await page.getByRole('button', { name: 'History' }).isVisible(), false);
		});
		await step('a tap selects, without the screen keyboard', async () => {
			await tap(at(3, 1));
			await untilSelected('B4');
			assert.equal((await editor())[1], 'none');
		});
		await step('a double tap edits, with the screen keyboard', async () => {
			const place = at(2, 1);
			await Promise.all([touch('touchStart', place), touch('touchEnd'), touch('touchStart', place), touch('touchEnd')]);
			await waitUntil(async () => String(await editor()) === 'true,', async () => `the editor to open: ${await editor()}`);
			await page.keyboard.type('typed');
			await page.keyboard.press('Enter');
			await bob.untilShows('B3', 'typed');
		});
		await step('a long press and a move select cells, and a long press alone opens the menu', async () => {
			await touch('touchStart', at(5, 0));
			await page.waitForTimeout(1500);
			await move(at(5, 0), at(8, 1));
			await touch('touchEnd');
			await untilSelected('A6:B9');
			await touch('touchStart', at(11, 1));
			await page.waitForTimeout(1500);
			await touch('touchEnd');
			await page.getByText('Paste Special').waitFor();
			await tap(at(1, 0));
			await page.getByText('Paste Special').waitFor({ state: 'hidden' });
		});
		await step('a swipe scrolls and selects nothing', async () => {
			await tap(at(1, 0));
			await untilSelected('A2');
			await touch('touchStart', at(20, 1));
			await move(at(20, 1), at(5, 1));
			await touch('touchEnd');
			assert.equal(await box(), 'A2');
			await page.waitForTimeout(1500);
			await tap(at(0, 0));
			let name;
			await waitUntil(async () => /^A(1[0-9]|[2-9][0-9])$/.test((name = await box())), () => `a later row to be at the top, not ${name}`, 5000);
		});
		await page.close();
	});
});
