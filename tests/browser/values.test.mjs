/*
 * values.test.mjs - what is typed means the same to everybody: numbers, texts, dates and times, on the pages of people with
 * different languages and time zones, and in SQL.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';

test('values', { timeout: 420000 }, async (t) => {
	const { cluster, gateway, persons: [ann, bob] } = await meet(t, {
		ann: { locale: 'en-GB', timezoneId: 'Pacific/Auckland' },
		bob: { locale: 'en-US', timezoneId: 'America/Los_Angeles' },
	});
	const step = (name, run) => t.test(name, run);
	const id = await ann.newSheet('Values');
	await ann.share('bob', 'editor');
	await bob.open(id);
	const sql = (name) => cluster.psql(`SELECT content FROM sheet.range(${id}) WHERE a1 = '${name}'`);
	const untilStored = async (name, content) => {
		let last;
		await waitUntil(async () => (last = await sql(name)) === content, () => `${name} to be ${content} in the database; it is ${last}`);
	};
	/** Types into the cells of a column, from row 1 on; both pages and the database have these contents then. */
	const types = async (person, column, rows) => {
		const names = rows.map((_, i) => `${column}${i + 1}`);
		const contents = rows.map(([typed, content]) => `${typed}: ${content}`);
		const stored = async () => {
			const found = await cluster.rows(`SELECT content FROM sheet.range(${id}) WHERE a1 IN ('${names.join("', '")}') ORDER BY "row"`);
			return found.map(({ content }, i) => `${rows[i]?.[0]}: ${content}`);
		};
		const on = (each, what) => Promise.all(names.map(async (name, i) => `${rows[i][0]}: ${(await each.cell(name))[what]}`));
		const untilThere = (look, where) => {
			let last;
			return waitUntil(async () => isDeepStrictEqual((last = await look()), contents), () => `${where} to have ${contents.join('; ')}; it has ${last.join('; ')}`);
		};
		await person.type(names[0], ...rows.map(([typed]) => typed));
		await untilThere(stored, 'the database');
		for (const each of [ann, bob]) await untilThere(() => on(each, 'content'), `${each.name}'s page`);
		for (const each of [ann, bob]) assert.deepEqual(await on(each, 'shown'), rows.map(([typed, content, shown = content]) => `${typed}: ${shown}`), each.name);
	};
	/** What the editor of a cell shows; closes it as Enter does. */
	const edited = async (person, name) => {
		await person.goTo(name);
		await person.page.keyboard.press('F2');
		const text = await waitUntil(() => person.editorText(), `the editor of ${name} to open`);
		await person.page.keyboard.press('Enter');
		await person.untilSaved();
		return text;
	};

	await step('only what every spreadsheet reads as a number is one', () =>
		types(ann, 'A', [['0x1F', '0x1F'], ['0b1', '0b1'], ['0o7', '0o7'], ['Infinity', 'Infinity'], ['1_000', '1_000'], [' 12 ', '12'], ['1E5', '100000'], ['12345678901234567', '12345678901234567'], ['007', '007'], ['1,234.50', '1234.5', '1,234.50'], ['.5', '0.5'], ['1/2', '1/2']]));

	await step('numbers compute, texts do not', async () => {
		await ann.type('B1', '=SUM(A1:A12)');
		for (const person of [ann, bob]) await person.untilShows('B1', '101247');
	});

	await step('a formula stays as it was typed, but for the case of names', async () => {
		const formulas = [
			['=IF(2>1.50,"right","WRONG")', 'right'],
			['=100.00*2&"z"', '200z'],
			['=sum(1.0,2.0)&"abc"', '3abc', '=SUM(1.0,2.0)&"abc"'],
			['=TEXT(1234.50,"0.00")', '1234.50'],
			['=IF(1.0=1,"yes","no")', 'yes'],
			['=1E-3*1000&" 1.50"&if(true,.5,"x")', '1 1.500.5', '=1E-3*1000&" 1.50"&IF(TRUE,.5,"x")'],
		];
		await types(ann, 'B', formulas.map(([typed, shown, content = typed]) => [typed, content, shown]));
		for (let i = 0; i < formulas.length; i++) {
			await edited(bob, `B${i + 1}`);
			assert.equal(await sql(`B${i + 1}`), formulas[i][2] ?? formulas[i][0]);
		}
	});

	await step('an apostrophe makes a text, which it does not show', async () => {
		await types(bob, 'C', [["'007", '007'], ["'12", "'12", '12'], ["'=1+1", "'=1+1", '=1+1'], ["'3 April 2024", '3 April 2024'], ["'TRUE", "'TRUE", 'TRUE'], ["'Bob", 'Bob']]);
		for (const [name, text] of [['C2', "'12"], ['C3', "'=1+1"], ['C4', "'3 April 2024"], ['C6', 'Bob']]) assert.equal(await edited(ann, name), text);
		for (const [name, content] of [['C2', "'12"], ['C3', "'=1+1"], ['C4', '3 April 2024'], ['C6', 'Bob']]) assert.equal(await sql(name), content, `${name} is as it was after Enter in its editor`);
	});

	await step('a cell of texts takes everything literally', async () => {
		await ann.goTo('D1');
		await ann.page.evaluate((html) => {
			const clipboardData = new DataTransfer();
			clipboardData.setData('text/html', html);
			document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
		}, `<table>${'<tr><td style="mso-number-format:\'\\@\'">x</td></tr>'.repeat(8)}</table>`);
		await untilStored('D8', 'x');
		await ann.goTo('J20');
		await types(ann, 'D', [['007', '007'], ['=sum(1)', "'=sum(1)", '=sum(1)'], ['1/2', '1/2'], ['2024-01-31', "'2024-01-31", '2024-01-31'], ['31/01/2024', '31/01/2024'], ['true', 'true'], ['10:30', "'10:30", '10:30'], ['0x1F', '0x1F']]);
		assert.equal(await edited(bob, 'D4'), '2024-01-31');
		assert.equal(await sql('D4'), "'2024-01-31");
	});

	await step("dates are those of the writer's language, for everybody", async () => {
		await types(ann, 'E', [['03/04/2024', '2024-04-03', '03/04/2024'], ['31/01/2024', '2024-01-31', '31/01/2024'], ['3 April 2024', '2024-04-03', '03/04/2024'], ['01/01/1900', '1900-01-01', '01/01/1900'], ['2024-01-31', '2024-01-31'], ['03/04/2024 10:30', '2024-04-03 10:30:00', '03/04/2024 10:30']]);
		await types(bob, 'F', [['03/04/2024', '2024-03-04', '03/04/2024'], ['31/01/2024', '31/01/2024']]);
		assert.equal(await edited(bob, 'E1'), '04/03/2024');
		assert.equal(await sql('E1'), '2024-04-03', 'the date is the same after Enter in the editor of another language');
		await ann.type('G1', '=E2-E1', '=E4', '=YEAR(E4)');
		await ann.untilShows('G1', '-63');
		await ann.untilShows('G3', '1900');
	});

	await step('times are times, typed or written by a program', async () => {
		await types(ann, 'H', [['10:30', '10:30:00', '10:30'], ['9:05:07', '09:05:07'], ['1:30 PM', '13:30:00', '1:30 PM'], ['25:30', '25:30:00']]);
		await cluster.psql(`SELECT sheet.set(${id}, 'H5', '10:30:00')`);
		await cluster.psql(`SELECT sheet.set(${id}, 'H6', '1900-01-01')`);
		await ann.type('I1', '=H5*24', '=H1+H2', '=H6', '=HOUR(H5)');
		for (const person of [ann, bob]) {
			await person.untilShows('H5', '10:30:00');
			await person.untilShows('H6', '1900-01-01');
			await person.untilShows('I1', '10.5');
			await person.untilShows('I4', '10');
		}
		assert.equal(await edited(bob, 'H1'), '10:30');
		assert.equal(await sql('H1'), '10:30:00');
	});

	await step('what a cell shows rounded is whole in its editor, and after Enter there', async () => {
		await types(ann, 'K', [['10:30:15.25', '10:30:15.25', '10:30:15'], ['31/01/2024 10:30:15.25', '2024-01-31 10:30:15.25', '31/01/2024 10:30'], ['12.345%', '0.12345', '12.35%'], ['$1,234.567', '1234.567', '$1,234.57']]);
		for (const [name, text, content] of [['K1', '10:30:15.25', '10:30:15.25'], ['K2', '31/01/2024 10:30:15.25', '2024-01-31 10:30:15.25'], ['K3', '12.345%', '0.12345'], ['K4', '1234.567', '1234.567']]) {
			assert.equal(await edited(ann, name), text);
			assert.equal(await sql(name), content);
		}
	});

	await step('the sheet has one time zone, that of its first editor, for formulas on all pages', async () => {
		const zone = () => cluster.psql(`SELECT value FROM sheet.properties(${id}) WHERE key = 'timezone'`);
		assert.equal(await zone(), '"Pacific/Auckland"');
		const there = (name) => {
			const parts = Object.fromEntries(new Intl.DateTimeFormat('en-US', { timeZone: name, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' }).formatToParts().map(({ type, value }) => [type, value]));
			return { day: `${parts.year}-${parts.month}-${parts.day}`, hour: Number(parts.hour) + Number(parts.minute) / 60 };
		};
		/** Both pages show the day and about the time there. */
		const showsTime = async (name) => {
			for (const person of [ann, bob]) {
				let last;
				await waitUntil(async () => {
					last = [(await person.cell('J1')).shown, Number((await person.cell('J2')).shown)];
					const { day, hour } = there(name);
					const apart = Math.abs(last[1] - hour);
					return last[0] === day && Math.min(apart, 24 - apart) < 0.5;
				}, () => `${person.name}'s formulas to be computed in ${name}; they show ${last}`);
			}
		};
		await ann.type('J1', '=TODAY()', '=(NOW()-TODAY())*24');
		assert.equal(await bob.page.locator('.status-bar .zone').textContent(), 'Time zone: Pacific/Auckland');
		await showsTime('Pacific/Auckland');
		await bob.page.getByRole('button', { name: 'Time zone: Pacific/Auckland' }).click();
		await bob.page.getByLabel('Time zone', { exact: true }).selectOption('Pacific/Honolulu');
		await bob.page.getByRole('button', { name: 'Use this zone' }).click();
		await waitUntil(async () => (await zone()) === '"Pacific/Honolulu"', 'the zone to be stored');
		await ann.page.getByRole('button', { name: 'Time zone: Pacific/Honolulu' }).waitFor();
		await showsTime('Pacific/Honolulu');
		await cluster.psql(`SELECT sheet.set_property(${id}, NULL, 'timezone', '"Nowhere/Atlantis"')`);
		await ann.page.getByRole('button', { name: 'Time zone: UTC' }).waitFor();
		await showsTime('UTC');
	});

	await step('the bar below the cells has the sum of the selected ones, and the zoom', async () => {
		await cluster.psql(`SELECT sheet.set_range(${id}, 'J10', ARRAY[['1'], ['2.5'], ['x'], ['0x1F'], ['-0.5']])`);
		await bob.untilShows('J14', '-0.5');
		await bob.goTo('J10');
		await bob.page.keyboard.down('Shift');
		await bob.goTo('J15');
		await bob.page.keyboard.up('Shift');
		const sums = () => bob.page.locator('.status-bar .sums').textContent();
		await waitUntil(async () => (await sums()) === 'Sum: 3   Average: 1   Count: 5', async () => `the sums; they are ${await sums()}`);
		await cluster.psql(`SELECT sheet.set(${id}, 'J15', '7')`);
		await waitUntil(async () => (await sums()) === 'Sum: 10   Average: 2.5   Count: 6', 'the sums of the new cell');
		// Dates have no sum, times and percentages are shown as such, and errors, texts and TRUE are only counted.
		for (const [cells, expected] of [
			[['2024-01-31', '2024-02-02', '=DATE(2024,2,4)'], 'Average: 2024-02-02   Count: 3'],
			[['2024-01-31', '5', '1'], 'Sum: 6   Average: 3   Count: 3'],
			[['10:30:00', '14:00:00', '=TIME(1,0,0)'], 'Sum: 25:30:00   Average: 8:30:00   Count: 3'],
			[['=1/0', 'TRUE', "'5"], 'Count: 3'],
			[['=1/0', '2', '0.1'], 'Sum: 2.1   Average: 1.05   Count: 3'],
		]) {
			await cluster.psql(`SELECT sheet.set_range(${id}, 'J10', ARRAY[${[...cells, '', '', ''].map((cell) => `['${cell.replaceAll("'", "''")}']`)}])`);
			await waitUntil(async () => (await sums()) === expected, async () => `the bar to say ${expected}; it says ${await sums()}`);
		}
		await bob.type('J10', '12%', '13%');
		await cluster.psql(`SELECT sheet.set(${id}, 'J12', '')`);
		await bob.goTo('J10');
		await bob.page.keyboard.down('Shift');
		await bob.goTo('J15');
		await bob.page.keyboard.up('Shift');
		await waitUntil(async () => (await sums()) === 'Sum: 25%   Average: 12.5%   Count: 2', async () => `percentages; the bar says ${await sums()}`);
		const { page } = bob;
		await page.getByRole('button', { name: 'Zoom in' }).click();
		await page.getByRole('button', { name: 'Zoom 110%' }).click();
		await page.getByRole('button', { name: 'Zoom 100%' }).waitFor();
		await page.getByRole('button', { name: 'Zoom out' }).click();
		await page.getByRole('button', { name: 'Zoom 90%' }).click();
		await page.getByRole('button', { name: 'Zoom 100%' }).waitFor();
	});

	await step('columns have one width on all pages, live and after a reload', async () => {
		const long = 'a text that is much longer than a column is wide, by far';
		await ann.type('L1', long);
		await bob.untilShows('L1', long);
		const width = (person) => person.page.evaluate(() => window.pgSheet.layoutOf(0, 11).width);
		assert.deepEqual([await width(ann), await width(bob)], [96, 96]);
		await bob.open(id);
		await bob.untilShows('L1', long);
		assert.equal(await width(bob), 96);
	});

	await step('formulas of other spreadsheets are kept, and a message says what to write', async () => {
		const said = async (text) => {
			let last;
			await waitUntil(async () => (last = await ann.page.locator('#messages').textContent()).includes(text), () => `the message ${text}; it is ${last}`);
		};
		await ann.type('K1', '=ARRAYFORMULA(A31:A32*2)');
		await said('K1: there is no function ARRAYFORMULA here.');
		await untilStored('K1', '=ARRAYFORMULA(A31:A32*2)');
		await ann.paste('K2', '=SUM(A31;A32)\n=SUM(A31:A)');
		await said('K2: arguments are separated by commas here');
		await untilStored('K3', '=SUM(A31:A)');
		await ann.paste('K4', '=SUM(A31:A)');
		await said('K4: a range has two ends here. Write A31:A1030 instead of A31:A.');
	});

	await step('links open in a page of their own, other addresses do not', async () => {
		const address = `${gateway.url}/nowhere`;
		await ann.type('K10', `=HYPERLINK("${address}","here")`, '=HYPERLINK("javascript:alert(1)","no")', '=HYPERLINK("mailto:ann@example.org")');
		await ann.untilShows('K10', 'here');
		await ann.goTo('K10');
		const card = ann.page.locator('.link-card');
		const link = card.getByRole('link');
		await link.waitFor();
		assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel'), await link.getAttribute('target')], [address, 'noopener noreferrer', '_blank']);
		const opens = async (run) => {
			const [opened] = await Promise.all([ann.context.waitForEvent('page'), run()]);
			await opened.waitForURL(address);
			assert.equal(await opened.evaluate(() => window.opener), null);
			await opened.close();
		};
		await opens(() => link.click());
		await ann.goTo('J20'); // two clicks in one place may be a double click
		await ann.goTo('K10');
		await link.waitFor();
		await opens(() => ann.page.keyboard.press('Alt+Enter'));
		await ann.goTo('J20');
		await ann.page.keyboard.down('Control');
		await opens(() => ann.goTo('K10'));
		await ann.page.keyboard.up('Control');
		await ann.goTo('J20');
		await ann.goTo('K11');
		await card.waitFor({ state: 'hidden' });
		await ann.goTo('J20');
		await ann.goTo('K12');
		await waitUntil(async () => (await link.getAttribute('href')) === 'mailto:ann@example.org', 'the address of mail');
		await ann.goTo('J20');
		await card.waitFor({ state: 'hidden' });
	});

	await step('the panel of keys lists what the keys do', async () => {
		const { page } = ann;
		const { keyboard } = page;
		await page.getByRole('link', { name: 'Sheets' }).first().click();
		const sheet = await ann.newSheet('Keys');
		await cluster.psql(`SELECT sheet.set_range(${sheet}, 'B2', ARRAY[['5', 'y', NULL, 'z'], ['6', NULL, NULL, NULL], [NULL, NULL, NULL, NULL], [NULL, NULL, NULL, NULL], ['7', NULL, NULL, NULL]])`);
		await ann.untilShows('B6', '7');
		const until = async (what, wanted) => {
			let last;
			await waitUntil(async () => (last = await what()) === wanted, () => `${wanted}; it is ${last}`, 8000);
		};
		const content = (name) => async () => (await ann.cell(name)).content;
		const style = (name, key) => async () => JSON.stringify((await ann.cell(name)).style?.[key] ?? null);
		const size = (row, col, of) => () => page.evaluate(([r, c, key]) => window.pgSheet.layoutOf(r, c)[key], [row, col, of]);
		const editor = () => ann.editorText();
		const panelWidth = () => page.evaluate(() => document.querySelector('[data-u-comp="sidebar"]')?.getBoundingClientRect().width ?? 0);
		const zoom = () => page.locator('.status-bar .percent').textContent();
		/** From a cell, the key selects another one, or a range. */
		const moves = (from, to) => async (key) => {
			await ann.goTo('J1');
			await ann.goTo(from);
			await keyboard.press(key);
			await until(() => ann.selected(), to);
		};
		const at = async (name, ...keys) => {
			await ann.goTo('J1');
			await ann.goTo(name);
			for (const key of keys) await keyboard.press(key);
		};
		const selects = (...cells) => async () => {
			await ann.goTo(cells[0]);
			await keyboard.down('Shift');
			await ann.goTo(cells[1]);
			await keyboard.up('Shift');
		};
		const toggles = (name, key, wanted) => async (pressed) => {
			await at(name, pressed);
			await until(style(name, key), wanted);
		};
		const does = {
			'Undo Ctrl+Z': async (key) => {
				await ann.type('G1', 'q');
				await keyboard.press(key);
				await until(content('G1'), '');
			},
			'Redo Ctrl+Y': async (key) => {
				await keyboard.press(key);
				await until(content('G1'), 'q');
			},
			'Redo Ctrl+Shift+Z': async (key) => {
				await keyboard.press('Control+z');
				await until(content('G1'), '');
				await keyboard.press(key);
				await until(content('G1'), 'q');
			},
			'Cut Ctrl+X': async (key) => {
				await at('G1', key);
				await at('G2', 'Control+v');
				await until(content('G2'), 'q');
				await until(content('G1'), '');
			},
			'Copy Ctrl+C': async (key) => {
				await at('B2', key);
				await at('G3', 'Control+v');
				await until(content('G3'), '5');
				await keyboard.press('Escape');
			},
			'Paste Ctrl+V': async (key) => {
				await ann.paste('G4', 'pasted');
				assert.equal(key, 'Control+v');
				await until(content('G4'), 'pasted');
				await at('G2', 'Delete', 'ArrowDown', 'Delete', 'ArrowDown', 'Delete');
				await until(content('G4'), '');
			},
			'Select the cell above ↑': moves('C5', 'C4'),
			'Select the cell below ↓': moves('C5', 'C6'),
			'Select the right cell →': moves('C5', 'D5'),
			'Select the left cell ←': moves('C5', 'B5'),
			'Expand selection up Shift+↑': moves('C5', 'C4:C5'),
			'Expand selection down Shift+↓': moves('C5', 'C5:C6'),
			'Expand selection left Shift+←': moves('C5', 'B5:C5'),
			'Expand selection right Shift+→': moves('C5', 'C5:D5'),
			'Select all Ctrl+A': async (key) => {
				await at('H9', key);
				await waitUntil(async () => /^1:[0-9]{3,}$|^A1:Z/.test(await ann.selected()), 'all cells to be selected');
			},
			'Select the cell below Enter': moves('C5', 'C6'),
			'Select the previous cell Shift+Tab': moves('C5', 'B5'),
			'Select the next cell Tab': moves('C5', 'D5'),
			'Select the cell above Shift+Enter': moves('C5', 'C4'),
			'Select the cell below that has value Ctrl+↓': moves('B2', 'B3'),
			'Select the cell above that has value Ctrl+↑': moves('B6', 'B3'),
			'Select the cell left that has value Ctrl+←': moves('E2', 'C2'),
			'Select the cell right that has value Ctrl+→': moves('B2', 'C2'),
			'Expand selection to the below gap Ctrl+Shift+↓': moves('B2', 'B2:B3'),
			'Expand selection to the up gap Ctrl+Shift+↑': moves('B3', 'B2:B3'),
			'Expand selection to the left gap Ctrl+Shift+←': moves('C2', 'B2:C2'),
			'Expand selection to the right gap Ctrl+Shift+→': moves('B2', 'B2:C2'),
			'Zoom in Ctrl+=': async (key) => {
				await at('C5', key);
				await until(zoom, '120%');
			},
			'Zoom out Ctrl+-': async (key) => {
				await keyboard.press(key);
				await until(zoom, '100%');
			},
			'Clear and start editing Backspace': async (key) => {
				await at('B2', key);
				await until(editor, '');
				await keyboard.press('Escape');
				await until(editor, null);
				await until(content('B2'), '5');
			},
			'Toggle bold Ctrl+B': toggles('B2', 'bl', '1'),
			'Repeat last action F4': async (key) => {
				await toggles('B2', 'it', '1')('Control+i');
				await at('B3', key);
				await until(style('B3', 'it'), '1');
				await toggles('B2', 'it', 'null')('Control+i');
			},
			'Toggle italic Ctrl+I': toggles('B2', 'it', '1'),
			'Toggle underline Ctrl+U': toggles('B2', 'ul', '{"s":1}'),
			'Toggle strike through Ctrl+Shift+X': toggles('B2', 'st', '{"s":1}'),
			'Start Editing (Selection into the Editor) F2': async (key) => {
				await at('B2', key);
				await until(editor, '5');
			},
			'Break line Alt+Enter': async (key) => {
				if ((await editor()) === null) await at('B2', 'F2');
				await until(editor, '5');
				await keyboard.press(key);
				await until(editor, '5\n');
			},
			'Abort editing Esc': async (key) => {
				if ((await editor()) === null) await at('B2', 'F2');
				await keyboard.press(key);
				await until(editor, null);
				await until(content('B2'), '5');
			},
			'First cell of the row Home': moves('D5', 'A5'),
			'Last cell of the row with content End': moves('B2', 'E2'),
			'First cell of the sheet Ctrl+Home': moves('D5', 'A1'),
			'Last cell with content Ctrl+End': async (key) => {
				await at('H9', 'Control+b');
				await until(style('H9', 'bl'), '1');
				await moves('D5', 'E6')(key);
			},
			'Down by a screen PageDown': async (key) => {
				await at('A1', key);
				await waitUntil(async () => Number((await ann.selected()).slice(1)) > 10, 'a cell far below to be selected');
			},
			'Up by a screen PageUp': async (key) => {
				await keyboard.press(key);
				await until(() => ann.selected(), 'A1');
			},
			'Select the row Shift+Space': moves('C5', '5:5'),
			'Select the column Ctrl+Space': moves('C5', 'C:C'),
			'Hide the selected rows Ctrl+9': async (key) => {
				await at('C5', key);
				await until(size(4, 0, 'height'), 0);
			},
			'Show hidden rows in the selection Ctrl+Shift+9': async (key) => {
				await selects('C4', 'C6')();
				await keyboard.press(key);
				await until(size(4, 0, 'height'), 24);
			},
			'Hide the selected columns Ctrl+0': async (key) => {
				await at('D5', key);
				await until(size(0, 3, 'width'), 0);
			},
			'Show hidden columns in the selection Ctrl+Shift+0': async (key) => {
				await selects('C5', 'E5')();
				await keyboard.press(key);
				await until(size(0, 3, 'width'), 96);
			},
			'Insert as many rows or columns as are selected Ctrl++': async (key) => {
				await at('C5', 'Shift+Space', key);
				await until(content('B7'), '7');
			},
			'Delete the selected rows or columns Ctrl+-': async (key) => {
				await at('C5', 'Shift+Space', key);
				await until(content('B6'), '7');
				assert.equal(await zoom(), '100%');
			},
			'Move the selected rows down (columns: →) Alt+Shift+↓': async (key) => {
				await ann.untilSaved();
				await at('C6', 'Shift+Space', key);
				await until(content('B7'), '7');
			},
			'Move the selected rows up (columns: ←) Alt+Shift+↑': async (key) => {
				await ann.untilSaved();
				await at('C7', 'Shift+Space', key);
				await until(content('B6'), '7');
			},
			'Write the date Ctrl+;': async (key) => {
				await at('G5', key);
				await waitUntil(async () => /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test((await ann.cell('G5')).content), 'a date');
			},
			'Write the time Ctrl+Shift+;': async (key) => {
				await at('G6', key);
				await waitUntil(async () => /^[0-9]{2}:[0-9]{2}:[0-9]{2}$/.test((await ann.cell('G6')).content), 'a time');
				// What the key writes with Shift depends on the keyboard.
				for (const [name, written] of [['G7', ';'], ['G8', ':'], ['G9', '.']]) {
					await at(name);
					await page.evaluate((letter) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: letter, code: 'Semicolon', ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true })), written);
					await waitUntil(async () => /^[0-9]{2}:[0-9]{2}:[0-9]{2}$/.test((await ann.cell(name)).content), `a time in ${name}`);
				}
			},
			'Open the link of the cell Alt+Enter': async (key) => {
				await ann.type('H1', `=HYPERLINK("${gateway.url}/nowhere")`);
				await ann.goTo('H1');
				await page.locator('.link-card').waitFor();
				const [opened] = await Promise.all([ann.context.waitForEvent('page'), keyboard.press(key)]);
				await opened.close();
			},
			'Find in the sheet Ctrl+F': async (key) => {
				const drawer = page.locator('.drawer[data-drawer=find]');
				await at('C5', key);
				await drawer.getByLabel('Find', { exact: true }).waitFor();
				await keyboard.press('Escape');
				await drawer.waitFor({ state: 'detached' });
			},
			'Find and replace in the sheet Ctrl+H': async (key) => {
				await at('C5', key);
				await page.locator('.drawer[data-drawer=find]').getByLabel('Replace with', { exact: true }).waitFor();
				await keyboard.press('Escape');
				await page.locator('.drawer[data-drawer=find]').waitFor({ state: 'detached' });
			},
			'Open the menu Shift+F10': async (key) => {
				await at('C5', key);
				const menu = page.locator('section[dir] > section button');
				await menu.first().waitFor();
				await keyboard.press('Escape');
				await menu.first().waitFor({ state: 'hidden' });
			},
			'Leave the cells, and come back to them F6': async (key) => {
				await at('C5', key);
				await until(() => page.evaluate(() => document.activeElement.className), 'back');
				await keyboard.press(key);
				await until(() => page.evaluate(() => document.activeElement.closest('.grid') !== null), true);
			},
			'Toggle Shortcut Panel Ctrl+\\': async (key) => {
				await at('C5', key);
				await waitUntil(async () => (await panelWidth()) > 100, 'the panel to be open');
				await keyboard.press(key);
				await until(panelWidth, 0);
			},
		};
		await ann.goTo('C5');
		const rows = page.locator('li li');
		// Univer adds the panel some seconds after the grid.
		await waitUntil(async () => {
			await keyboard.press('Control+\\');
			return rows.first().waitFor({ timeout: 2000 }).then(() => true, () => false);
		}, 'the panel to open');
		const listed = await rows.evaluateAll((all) => all.map((row) => [...row.children].map((child) => child.textContent).join(' ')));
		await keyboard.press('Control+\\');
		await until(panelWidth, 0);
		assert.deepEqual([...listed].sort(), Object.keys(does).sort());
		const names = { '↑': 'ArrowUp', '↓': 'ArrowDown', '←': 'ArrowLeft', '→': 'ArrowRight', Ctrl: 'Control', Esc: 'Escape', '+': 'NumpadAdd' };
		const problems = [];
		for (const [entry, run] of Object.entries(does)) {
			const shown = entry.split(' ').at(-1);
			const parts = shown.endsWith('++') ? ['Ctrl', '+'] : shown.split('+');
			const key = parts.map((part) => names[part] ?? (/^[A-Z]$/.test(part) ? part.toLowerCase() : part)).join('+');
			await run(key).catch(async (error) => problems.push(`${entry} (${key}): ${error.message}; ${await ann.selected()} is selected; ${await page.locator('#messages').textContent()}`));
		}
		assert.deepEqual(problems, []);
	});

	const drag = async (from, ...to) => {
		const { mouse } = ann.page;
		await mouse.move(...from);
		await mouse.down();
		for (const point of to) await mouse.move(...point, { steps: 4 });
		await mouse.up();
	};

	await step('a series of times is filled to the second', async () => {
		const other = await cluster.psql(`SELECT sheet.create('Times', 10, 10, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`);
		await cluster.psql(`SELECT sheet.set(${other}, 'A1', '12:00:00'), sheet.set(${other}, 'A2', '13:00:00'), sheet.set(${other}, 'B1', '2024-01-31 12:00:00'), sheet.set(${other}, 'B2', '2024-01-31 13:00:00')`);
		await ann.open(other);
		const { x, y } = await ann.grid.boundingBox();
		await drag([x + 86, y + 32], [x + 182, y + 56]); // A1:B2
		await drag([x + 237, y + 67], [x + 182, y + 104], [x + 182, y + 176]); // its corner to row 7
		const filled = () => cluster.psql(`SELECT string_agg(content, ' ' ORDER BY a1) FROM sheet.range(${other}) WHERE "row" >= 2`);
		const wanted = [...[14, 15, 16, 17, 18].map((hour) => `${hour}:00:00`), ...[14, 15, 16, 17, 18].map((hour) => `2024-01-31 ${hour}:00:00`)].join(' ');
		let last;
		await waitUntil(async () => (last = await filled()) === wanted, () => `the series to be filled; it is ${last}`);
	});

	await step('dates that are months apart are filled by months, down and up', async () => {
		const other = await cluster.psql(`SELECT sheet.create('Months', 10, 10, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`);
		await cluster.psql(`SELECT sheet.set_range(${other}, 'A4', ARRAY[['2024-01-31'], ['2024-02-29']])`);
		await ann.open(other);
		const { x, y } = await ann.grid.boundingBox();
		const column = () => cluster.psql(`SELECT string_agg(content, ' ' ORDER BY "row") FROM sheet.range(${other})`);
		const until = async (wanted) => {
			let last;
			await waitUntil(async () => (last = await column()) === wanted, () => `the months ${wanted}; they are ${last}`);
		};
		await drag([x + 86, y + 104], [x + 86, y + 128]); // A4:A5
		await drag([x + 141, y + 139], [x + 86, y + 160], [x + 86, y + 176]); // its corner to row 7
		await until('2024-01-31 2024-02-29 2024-03-31 2024-04-30');
		await drag([x + 86, y + 104], [x + 86, y + 128]);
		await drag([x + 141, y + 139], [x + 86, y + 90], [x + 86, y + 56]); // up to row 2
		await until('2023-11-30 2023-12-31 2024-01-31 2024-02-29 2024-03-31 2024-04-30');
	});

	await step('without errors', () => {
		for (const person of [ann, bob]) assert.deepEqual(person.problems, []);
	});
});
