/*
 * pointing.test.mjs - what points at cells while somebody else inserts and deletes rows and columns: what was cut or copied, the
 * selection, open questions, drags; merges, which ask before they delete; pictures for cells;
 * finding, replacing, tags and printing.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet, place } from './page.mjs';

test('what points at cells moves with them', { timeout: 600000 }, async (t) => {
	const { sql, persons: [ann, bob] } = await meet(t);
	const { page } = ann;
	const { keyboard, mouse } = page;
	let id;
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);
	const untilStored = (contents) => {
		let last;
		return waitUntil(async () => (last = await stored()) === contents, () => `${contents} to be stored; there is ${last}`);
	};
	/** Before row or column `at`, or from it on; the first one is 1. */
	const change = (kind, at, n = 1) => sql(`SELECT sheet.${kind}(${id}, ${at - 1}, ${n})`);
	const said = (text) => page.locator('#messages').getByText(text).waitFor();
	const untilSelected = (name) => waitUntil(async () => (await ann.selected()) === name, () => `${name} to be selected`, 10000);

	/** Runs in a sheet with these texts in A1 and below and beside it. open: loads the page again. */
	const step = (name, texts, run, open = () => ann.turnTo(id)) =>
		t.test(name, async () => {
			id = Number(await sql(`SELECT sheet.create('Pointing', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
			await sql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
			await open();
			await ann.paste('A1', texts);
			await ann.untilSaved();
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});
	const key = (...keys) => keys.reduce((done, one) => done.then(() => keyboard.press(one)), Promise.resolve());
	/** The middle of a cell on the screen. */
	const at = async (name) => {
		const box = await ann.grid.boundingBox();
		const [row, col] = place(name);
		return [box.x + 46 + col * 96 + 40, box.y + 20 + row * 24 + 12];
	};
	const select = async (from, to) => {
		await mouse.move(...(await at(from)));
		await mouse.down();
		await mouse.move(...(await at(to)), { steps: 4 });
		await mouse.up();
	};

	await step('a cut cell is pasted from where it is: rows above it come and go', '1\n2\n3\n4', async () => {
		await ann.goTo('A3');
		await key('Control+x');
		await change('insert_rows', 2, 2);
		await ann.untilShows('A5', '3');
		await ann.goTo('C1');
		await key('Control+v');
		await untilStored('A1=1 C1=3 A4=2 A6=4');
	});
	await step('what was cut grows with its rows, and is what others have made of it', '1\n2\n3\n4', async () => {
		await select('A2', 'A3');
		await key('Control+x');
		await change('insert_rows', 3);
		await ann.untilShows('A4', '3');
		await sql(`SELECT sheet.set(${id}, 'A3', 'between')`);
		await sql(`SELECT sheet.set(${id}, 'A4', '=A1+1')`);
		await ann.untilShows('A4', '2');
		await ann.goTo('C7');
		await key('Control+v');
		await untilStored('A1=1 A5=4 C7=2 C8=between C9==A1+1');
	});
	await step('a copied formula is pasted as from where it is, with the references that it has now', '1\n=$A$1+A1\n3', async () => {
		await ann.goTo('A2');
		await key('Control+c');
		await change('insert_rows', 1);
		await ann.untilShows('A3', '2');
		await ann.goTo('A5');
		await key('Control+v');
		await untilStored('A2=1 A3==$A$2+A2 A4=3 A5==$A$2+A4');
	});
	await step('columns do the same', 'a\tb\tc', async () => {
		await ann.goTo('B1');
		await key('Control+x');
		await change('insert_columns', 1);
		await ann.untilShows('C1', 'b');
		await ann.goTo('B4');
		await key('Control+v');
		await untilStored('B1=a D1=c B4=b');
	});
	await step('a cut whose cells are deleted is ended with a word; its values can still be pasted', '1\n2\n3\n4', async () => {
		await ann.goTo('A3');
		await key('Control+x');
		await change('delete_rows', 3);
		await said(/cells that you had cut are deleted/);
		await ann.goTo('C1');
		await key('Control+v');
		await untilStored('A1=1 C1=3 A2=2 A3=4');
	});
	await step('the mark around a cut is where its cells are', '1\n2\n3', async () => {
		const marked = async () => {
			await ann.frames();
			const [x, y] = await at('A4');
			const shot = (await page.screenshot({ clip: { x: x - 50, y: y - 14, width: 120, height: 28 } })).toString('base64');
			return page.evaluate(async (png) => {
				const image = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0))], { type: 'image/png' }));
				const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
				context.drawImage(image, 0, 0);
				const { data } = context.getImageData(0, 0, image.width, image.height);
				let blue = 0;
				for (let i = 0; i < data.length; i += 4) if (data[i + 2] > data[i] + 60) blue++;
				return blue > 40;
			}, shot);
		};
		await ann.goTo('J14');
		await waitUntil(async () => !(await marked()), 'no mark to be there', 10000);
		await ann.goTo('A3');
		await key('Control+x');
		await change('insert_rows', 1);
		await ann.untilShows('A4', '3');
		await ann.goTo('J14');
		await waitUntil(marked, 'the mark to be around A4', 10000);
	});
	await step('a drag that began before the rows moved does nothing, and says so', '1\n2\n3\n4', async () => {
		await ann.goTo('A3');
		const [x, y] = await at('A3');
		// The border of the selection moves cells.
		await mouse.move(x, y - 12);
		await mouse.down();
		await mouse.move(...(await at('C3')), { steps: 5 });
		await change('insert_rows', 2);
		await ann.untilShows('A4', '3');
		await mouse.move(...(await at('C6')), { steps: 5 });
		await mouse.up();
		await ann.frames();
		await untilStored('A1=1 A3=2 A4=3 A5=4');
		// The handle at its corner fills.
		await ann.goTo('J14');
		await ann.goTo('A4');
		const [left, top] = await at('A4');
		await mouse.move(left + 55, top + 11);
		await mouse.down();
		await mouse.move(...(await at('B4')), { steps: 5 });
		await mouse.move(...(await at('C4')), { steps: 5 });
		await change('delete_rows', 2);
		await ann.untilShows('A3', '3');
		await mouse.move(...(await at('D4')), { steps: 5 });
		await mouse.up();
		await ann.frames();
		await ann.goTo('A7');
		await keyboard.type('after');
		await key('Enter');
		await untilStored('A1=1 A2=2 A3=3 A4=4 A7=after');
		// A header moves its row.
		await mouse.click(...(await ann.rowHeader('2')));
		await mouse.move(...(await ann.rowHeader('2')));
		await mouse.down();
		await mouse.move(...(await ann.rowHeader('4')), { steps: 8 });
		await change('insert_rows', 1);
		await ann.untilShows('A4', '3');
		await mouse.up();
		await said(/Drag again/);
		await ann.untilSaved();
		assert.equal(await stored(), 'A2=1 A3=2 A4=3 A5=4 A8=after');
	});
	await step('a selection by the mouse goes on from the cell at which it began, a reference from the cell that it names', '1\n2\n3\n4', async () => {
		await ann.goTo('C1');
		await mouse.move(...(await at('A2')));
		await mouse.down();
		await mouse.move(...(await at('A3')), { steps: 4 });
		await change('insert_rows', 1);
		await ann.untilShows('A4', '3');
		await mouse.move(...(await at('A5')), { steps: 4 });
		await mouse.up();
		await untilSelected('A3:A5');
		await ann.goTo('C1');
		await keyboard.type('=');
		await ann.goTo('A3');
		await ann.frames();
		await change('insert_rows', 2, 2);
		await ann.untilShows('A5', '2');
		await key('Enter');
		await untilStored('C1==A5 A4=1 A5=2 A6=3 A7=4');
	});
	await step('of several selected ranges those stay that are there; whole columns stay whole', '1\n2\n3\n4', async () => {
		await ann.goTo('A2');
		await keyboard.down('Control');
		await ann.goTo('A4');
		await keyboard.up('Control');
		await change('delete_rows', 4);
		await ann.untilShows('A4', '');
		await untilSelected('A2');
		await key('Delete');
		await untilStored('A1=1 A3=3');
		await page.mouse.click(...(await at('C1')).map((pixel, i) => (i === 1 ? pixel - 20 : pixel)));
		await waitUntil(async () => /^C(1:C[0-9]+|:C)$/.test((await ann.selected()) ?? ''), 'column C to be selected', 10000);
		const before = await ann.selected();
		await change('delete_rows', 1, 2);
		await ann.untilShows('A1', '3');
		assert.equal(await ann.selected(), before);
	});
	await step('a menu whose rows are deleted is closed', '1\n2\n3\n4', async () => {
		await ann.grid.click({ position: { x: 20, y: 20 + 2 * 24 + 12 }, button: 'right' });
		await page.getByText('Delete selected row').first().waitFor();
		await change('delete_rows', 3);
		await said(/What was selected is deleted/);
		await page.getByText('Delete selected row').first().waitFor({ state: 'hidden' });
		await untilStored('A1=1 A2=2 A3=4');
	});
	await step('the selection that others see after a new connection is where its cells are', '1\n2\n3', async () => {
		await bob.open(id);
		await ann.goTo('A3');
		const cursor = async () => (await bob.page.locator('.cell-cursor').evaluateAll((all) => all.map(({ dataset }) => dataset.cell)))[0];
		await waitUntil(async () => (await cursor()) === 'A3', 'bob to see A3', 10000);
		await change('insert_rows', 1, 2);
		await ann.untilShows('A5', '3');
		await waitUntil(async () => (await cursor()) === 'A5', 'bob to see A5', 10000);
		await bob.page.reload();
		await bob.untilOpen();
		await waitUntil(async () => (await cursor()) === 'A5', 'bob to see A5 again', 10000);
		await bob.page.goto('about:blank');
	});

	await step('a merge names the contents that it deletes, wherever they have moved', 'a\tb\nc\td\ne\tf', async () => {
		const merge = async () => {
			await page.locator('[data-u-command="sheet.command.add-worksheet-merge"]').first().click();
			await page.getByText('Merge all', { exact: true }).click();
		};
		const question = page.locator('dialog[open]');
		await ann.goTo('H14');
		await select('A1', 'B2');
		await untilSelected('A1:B2');
		await merge();
		await question.getByText('B1, A2, B2').waitFor();
		await key('Escape');
		await question.waitFor({ state: 'hidden' });
		assert.equal(await stored(), 'A1=a B1=b A2=c B2=d A3=e B3=f');
		await select('A2', 'B2');
		await merge();
		await question.getByText('deleted: B2').waitFor();
		await change('insert_rows', 1);
		await ann.untilShows('A3', 'c');
		await question.getByRole('button', { name: 'Merge', exact: true }).click();
		// The cells have other names now.
		await question.getByText('A3:B3').waitFor();
		await question.getByRole('button', { name: 'Merge', exact: true }).click();
		await untilStored('A2=a B2=b A3=c A4=e B4=f');
		const merges = () => page.evaluate(() => JSON.stringify(window.pgSheet.layoutOf(0, 0).merges));
		await waitUntil(async () => (await merges()) === '[{"row":2,"col":0,"toRow":2,"toCol":1}]', 'A3:B3 to be merged');
		// Over merged cells, and one key takes it back.
		await select('A2', 'B4');
		await merge();
		await question.getByText('B2, A3, A4, B4').waitFor();
		await question.getByRole('button', { name: 'Merge', exact: true }).click();
		await untilStored('A2=a');
		await key('Control+z');
		await untilStored('A2=a B2=b A3=c A4=e B4=f');
		await waitUntil(async () => (await merges()) === '[{"row":2,"col":0,"toRow":2,"toCol":1}]', 'A3:B3 to be merged again');
		// A paste of own cells that would divide them names them.
		await select('A4', 'A5');
		await key('Control+c');
		await ann.goTo('B2');
		await key('Control+v');
		await said(/would divide the merged cells A3:B3/);
		assert.equal(await stored(), 'A2=a B2=b A3=c A4=e B4=f');
	});

	const drawer = page.locator('.drawer[data-drawer=find]');
	const counted = (text) => drawer.locator('.find-count').getByText(text, { exact: true }).waitFor();
	await step('Ctrl+F finds in what cells show, one after the other, and follows rows that move', 'rent\t5\nfood\t=B1*2\nRental\t10.5', async () => {
		await ann.goTo('B2');
		await key('Control+f');
		await drawer.getByLabel('Find', { exact: true }).waitFor();
		await keyboard.type('rent');
		await counted('Cells: 2');
		await key('Enter');
		await untilSelected('A3');
		await counted('2 of 2');
		await key('Enter');
		await untilSelected('A1');
		await change('insert_rows', 2, 2);
		await ann.untilShows('A5', 'Rental');
		await key('Enter');
		await untilSelected('A5');
		await key('Shift+Enter');
		await untilSelected('A1');
		await sql(`SELECT sheet.set(${id}, 'D2', 'current')`);
		await counted('1 of 3');
		await drawer.getByLabel('Match case').check();
		await counted('1 of 2');
		await drawer.getByLabel('Match case').uncheck();
		await drawer.getByLabel('Find', { exact: true }).fill('10');
		await counted('Cells: 2');
		await drawer.getByLabel('Also in formulas').check();
		await drawer.getByLabel('Find', { exact: true }).fill('B1');
		await counted('Cells: 1');
		await drawer.getByLabel('Find', { exact: true }).fill('nowhere');
		await counted('Not found');
		// Keys of the drawer are none of the cells.
		await key('Delete', 'Backspace');
		await key('Escape');
		await drawer.waitFor({ state: 'hidden' });
		await untilStored('A1=rent B1=5 D2=current A4=food B4==B1*2 A5=Rental B5=10.5');
	});
	await step('Ctrl+H replaces in one step of undo, and leaves locked cells and results alone, with a word', 'a1\ta2\na3\t="a"&4\na5\tb', async () => {
		await bob.open(id);
		await bob.goTo('A3');
		await bob.page.keyboard.type('mine');
		await waitUntil(async () => (await ann.locks()).A3 === 'bob', 'ann to see that bob edits A3');
		await ann.goTo('J14');
		await key('Control+h');
		await drawer.getByLabel('Find', { exact: true }).fill('A');
		await counted('Cells: 5');
		await drawer.getByLabel('Replace with').fill('$&x');
		await drawer.getByRole('button', { name: 'Replace all' }).click();
		await said('Replaced cells: 3');
		await said(/B2 \(the result of a formula\)/);
		await said(/A3 \(somebody is editing it\)/);
		await untilStored('A1=$&x1 B1=$&x2 A2=$&x3 B2=="a"&4 A3=a5 B3=b');
		await bob.page.keyboard.press('Escape');
		await ann.goTo('H14');
		await key('Control+z');
		await untilStored('A1=a1 B1=a2 A2=a3 B2=="a"&4 A3=a5 B3=b');
		// One after the other.
		await ann.goTo('B1');
		await drawer.getByLabel('Replace with').fill('c');
		await drawer.getByRole('button', { name: 'Replace', exact: true }).click();
		await untilSelected('A2');
		await untilStored('A1=a1 B1=c2 A2=a3 B2=="a"&4 A3=a5 B3=b');
		await bob.page.goto('about:blank');
		await drawer.getByRole('button', { name: 'Close' }).click();
	});
	await step('a count that comes while cells are replaced does not end that', `x1\n${`${'1\t'.repeat(60).trim()}\n`.repeat(400)}x2`, async () => {
		await ann.goTo('J14');
		await key('Control+h');
		await drawer.getByLabel('Replace with').fill('y');
		await drawer.getByLabel('Find', { exact: true }).fill('x'); // it is counted soon
		await drawer.getByRole('button', { name: 'Replace all' }).click();
		await key('Enter'); // of the button: nothing is left the second time
		await said('Replaced cells: 2');
		await said('Replaced cells: 0');
		assert.equal(await sql(`SELECT string_agg(content, ' ' ORDER BY "row") FROM sheet.range(${id}) WHERE content <> '1'`), 'y1 y2');
		await drawer.getByRole('button', { name: 'Close' }).click();
	});
	await step('a viewer finds, and replaces nothing', 'a1\ta2', async () => {
		await sql(`SELECT sheet.share(${id}, 'bob', 'viewer')`);
		await bob.open(id);
		await bob.goTo('J14');
		await bob.page.keyboard.press('Control+h');
		const panel = bob.page.locator('.drawer[data-drawer=find]');
		await panel.getByLabel('Find', { exact: true }).fill('a');
		await panel.getByText('Cells: 2').waitFor();
		await panel.getByText('You may read this sheet, not change it.').waitFor();
		assert.deepEqual(await Promise.all(['Replace', 'Replace all'].map((name) => panel.getByRole('button', { name, exact: true }).isDisabled())), [true, true]);
		await bob.page.goto('about:blank');
	});
	await step('a picture that is pasted or dropped is uploaded, then its cell has its address, for all', 'a', async () => {
		const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
		/** Sends the event of a paste, or of a drop onto a cell, with these files. */
		const give = (person, files, { onto, text = '' } = {}) =>
			person.page.evaluate(([list, point, plain]) => {
				const data = new DataTransfer();
				if (plain) data.setData('text/plain', plain);
				for (const { name, type, base64 } of list) data.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name, { type }));
				const init = { bubbles: true, cancelable: true };
				if (!point) return document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, ...init }));
				const [clientX, clientY] = point;
				for (const kind of ['dragover', 'drop']) document.elementFromPoint(clientX, clientY).dispatchEvent(new DragEvent(kind, { dataTransfer: data, clientX, clientY, ...init }));
			}, [files, onto, text]);
		const picture = (name) => ({ name, type: 'image/png', base64: png });
		const uploads = page.locator('.status-bar .upload');
		let [asked, answer, release] = [0, null, null];
		/** Holds the next upload until `release` is called, with what to answer instead of the gateway. */
		const hold = () => (answer = new Promise((done) => (release = done)));
		await page.route('**/uploadchunk', async (route) => {
			asked++;
			const instead = await answer;
			await (instead ? route.fulfill(instead) : route.continue()).catch(() => {}); // it was cancelled
		});
		const link = (row) => sql(`SELECT content FROM sheet.range(${id}) WHERE a1 = '${row}'`);

		await bob.open(id);
		await ann.goTo('B2');
		hold();
		await give(ann, [picture('a photo.png')]);
		await uploads.getByText('Sending a photo.png').waitFor();
		assert.equal(await stored(), 'A1=a');
		await change('insert_rows', 1);
		await ann.untilShows('A2', 'a');
		release();
		await ann.untilShows('B3', 'a photo.png');
		await bob.untilShows('B3', 'a photo.png');
		await uploads.waitFor({ state: 'detached' });
		assert.match(await link('B3'), /^=HYPERLINK\("http:\/\/[^/]+\/i\/[\w-]+\/a%20photo\.png","a photo\.png"\)$/);
		await bob.goTo('B3');
		const shown = bob.page.locator('.link-card img:not([hidden])');
		await shown.waitFor();
		assert.equal(await shown.evaluate((image) => image.naturalWidth), 1);
		await bob.goTo('A1');
		await shown.waitFor({ state: 'hidden' });
		await ann.goTo('H12');
		await key('Control+z');
		await untilStored('A2=a');

		await ann.goTo('B2');
		hold();
		await give(ann, [picture('image.png')]);
		await uploads.getByText(/Sending Picture 20\d\d-\d\d-\d\d \d\d\.\d\d\.\d\d\.png/).waitFor();
		release({ status: 413, body: '{}' });
		await said(/was not uploaded. This is too large for the gateway/);
		hold();
		await give(ann, [picture('no.png')]);
		await page.getByRole('button', { name: 'Cancel the upload of no.png' }).click();
		await said('The upload of no.png was cancelled.');
		release();
		// The button had the focus; keys go to the cells again.
		await key('ArrowDown', 'ArrowUp');
		hold();
		await give(ann, [picture('late.png')]);
		await uploads.waitFor();
		await sql(`SELECT sheet.set(${id}, 'B2', 'mine')`);
		await ann.untilShows('B2', 'mine');
		release();
		await page.locator('.kept-item').getByText('Somebody has written into B2').waitFor();
		await page.locator('.kept-item').getByRole('button', { name: 'Discard' }).click();
		await untilStored('A2=a B2=mine');

		// Two pictures, beside a file that is none; cells of a program that adds a picture of them.
		await give(ann, [picture('1.png'), { name: 'x.svg', type: 'image/svg+xml', base64: '' }, picture('2.png')], { onto: await at('D4') });
		await said('Cells take pictures of these kinds');
		await ann.untilShows('D5', '2.png');
		await ann.untilShows('D4', '1.png');
		await ann.goTo('F1');
		await give(ann, [picture('cells.png')], { text: 'one\ttwo' });
		await ann.untilShows('G1', 'two');
		await waitUntil(async () => (await sql(`SELECT count(*) FROM sheet.range(${id}) WHERE content LIKE '=HYPERLINK%'`)) === '2', 'two pictures');

		await sql(`SELECT sheet.share(${id}, 'bob', 'viewer')`);
		await bob.page.locator('body[data-role=viewer]').waitFor();
		const before = asked;
		await bob.goTo('B8');
		await give(bob, [picture('bob.png')]);
		await bob.page.locator('#messages').getByText('You may read this sheet, not change it.').waitFor();
		assert.equal(await bob.page.locator('.upload').count(), 0);
		assert.equal(asked, before);
		assert.equal(await sql(`SELECT count(*) FROM sheet.account_files(as_uid => (SELECT uid FROM sheet.account WHERE name = 'bob'))`), '0');
		await page.unroute('**/uploadchunk');
		await bob.page.goto('about:blank');
	});
	await step('tags of a column are counted, found, and chosen for a cell by the keyboard', 'red, blue\nred\n\n"a, b",blue\nlast\t=1+1', async () => {
		await sql(`SELECT sheet.set(${id}, 'A4', '"a, b",blue')`);
		await ann.untilShows('A4', '"a, b",blue');
		// A second click into A1 soon after that of the paste would open its editor.
		await ann.goTo('C1');
		await ann.goTo('A1');
		await page.locator('.bar .more').click();
		await page.getByRole('button', { name: 'Tags', exact: true }).click();
		const panel = page.locator('.drawer[data-drawer=tags]');
		const shown = () => panel.locator('.tags li').evaluateAll((all) => all.map((item) => `${item.dataset.tag} ${item.querySelector('.rows').textContent}${item.querySelector('input').checked ? ' *' : ''}`).join('; '));
		const untilTags = (expected) => {
			let last;
			return waitUntil(async () => (last = await shown()) === expected, () => `the tags ${expected}; there are ${last}`);
		};
		await untilTags('blue 2 *; red 2 *; a, b 1; last 1');
		assert.equal(await sql(`SELECT string_agg(tag || ' ' || rows, '; ') FROM sheet.tag_counts(${id}, 'A')`), 'blue 2; red 2; a, b 1; last 1', 'the counts of SQL');
		// A tag finds its cells, one after the other; a checkbox adds it to the cell.
		await panel.getByRole('button', { name: 'blue', exact: true }).focus();
		await key('Enter');
		await untilSelected('A4');
		await untilTags('blue 2 *; red 2; a, b 1 *; last 1');
		await key('Enter');
		await untilSelected('A1');
		await panel.getByRole('checkbox', { name: 'The selected cell has last' }).focus();
		await key('Space');
		await untilStored('A1=red, blue, last A2=red A4="a, b",blue A5=last B5==1+1');
		await untilTags('blue 2 *; last 2 *; red 2 *; a, b 1');
		await panel.getByRole('checkbox', { name: 'The selected cell has red' }).uncheck();
		await ann.goTo('A3');
		await panel.getByLabel('New tag').fill('x, y');
		await key('Enter');
		await untilStored('A1=blue, last A2=red A3="x, y" A4="a, b",blue A5=last B5==1+1');
		// What others write is counted, a column has its own separator, and a formula is not one of its lists.
		await sql(`SELECT sheet.set(${id}, 'A2', 'red;blue')`);
		await untilTags('blue 2; last 2; a, b 1; red;blue 1; x, y 1 *');
		await page.evaluate(() => {
			const texts = (window.drawnTexts = []);
			const { fillText } = CanvasRenderingContext2D.prototype;
			CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
				texts.push(text);
				return fillText.call(this, text, ...rest);
			};
		});
		const drawsChips = () => page.evaluate(() => ['red', 'blue'].every((item) => window.drawnTexts.includes(item)));
		await ann.frames();
		assert.ok(!(await drawsChips()));
		await panel.getByLabel('Separator').selectOption(';');
		await waitUntil(drawsChips, 'the items of A2 to be drawn as chips');
		await untilTags('"a, b",blue 1; blue 1; blue, last 1; last 1; red 1; x, y 1 *');
		assert.equal(await sql(`SELECT target || ' ' || value::text FROM sheet.properties(${id}) WHERE key = 'list'`), 'A:A ";"');
		await ann.goTo('B5');
		await panel.getByText('Column B has no lists.').waitFor();
		assert.equal(await panel.getByLabel('Separator').inputValue(), ',');
		assert.ok(await panel.getByLabel('New tag').isDisabled());
		await ann.goTo('A3');
		await untilTags('"a, b",blue 1; blue 1; blue, last 1; last 1; red 1; x, y 1 *');
		if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/tags.png` });
		await panel.getByRole('button', { name: 'Close' }).click();
	});
	await step('the drawer is loaded at its first use, and speaks Chinese', 'a', async () => {
		const loaded = () => page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => /\/find-/.test(name)).length);
		assert.equal(await loaded(), 0);
		await page.getByRole('button', { name: '中文' }).click();
		await ann.untilShows('A1', 'a');
		await page.locator('.bar .more').click();
		await page.getByRole('button', { name: '查找和替换' }).click();
		await drawer.getByLabel('查找', { exact: true }).fill('a');
		await counted('第 1 个，共 1 个');
		assert.ok((await loaded()) > 0);
		await page.getByRole('button', { name: 'English' }).click();
		await ann.untilShows('A1', 'a');
	}, () => ann.open(id));
	await step('print shows the used cells and nothing else, black on white', 'Item\tCost\tDay\nRent\t1200.5\t2024-01-31\nTwo lines\t\nlast\t=B2*2', async () => {
		await sql(`SELECT sheet.set(${id}, 'A3', E'two\\nlines')`);
		await select('A1', 'C1');
		await key('Control+b');
		await ann.untilSaved();
		await ann.goTo('J14');
		await sql(`SELECT sheet.set_property(${id}, 'B3:C3', 'merge', 'true')`);
		await sql(`SELECT sheet.set_property(${id}, NULL, 'freeze', '{"rows": 1}')`);
		await waitUntil(async () => (await page.evaluate(() => window.pgSheet.layoutOf(0, 0).frozen[0])) === 1, 'the first row to be frozen');
		await page.getByRole('button', { name: 'Dark' }).click();
		const paper = () => page.evaluate(() => {
			window.dispatchEvent(new Event('beforeprint'));
			const rows = [...document.querySelectorAll('.paper tr')].map((row) => [...row.cells].map((cell) => cell.textContent + (cell.colSpan > 1 ? `/${cell.colSpan}` : '')));
			const head = [...document.querySelectorAll('.paper thead td')].map((cell) => `${cell.textContent} ${getComputedStyle(cell).fontWeight}`);
			const width = document.querySelector('.paper col').style.width;
			window.dispatchEvent(new Event('afterprint'));
			return { rows, head, width, left: document.querySelectorAll('.paper').length };
		});
		const all = await paper();
		assert.deepEqual(all.rows, [['Item', 'Cost', 'Day'], ['Rent', '1200.5', '2024-01-31'], ['two\nlines', '/2'], ['last', '2401', '']]);
		assert.deepEqual(all.head, ['Item', 'Cost', 'Day'].map((text) => `${text} 700`));
		assert.match(all.width, /^[0-9]+px$/);
		assert.equal(all.left, 0);
		await select('A2', 'B2');
		assert.deepEqual((await paper()).rows, [['Rent', '1200.5']]);
		await ann.goTo('J14');
		// On paper there is neither the bar nor the toolbar.
		await page.emulateMedia({ media: 'print' });
		const shown = await page.evaluate(() => {
			window.dispatchEvent(new Event('beforeprint'));
			const { backgroundColor, color } = getComputedStyle(document.querySelector('.paper'));
			const visible = [...document.querySelectorAll('body > *')].filter((element) => element.getClientRects().length > 0).map(({ className }) => className);
			return { backgroundColor, color, visible };
		});
		assert.deepEqual(shown, { backgroundColor: 'rgb(255, 255, 255)', color: 'rgb(0, 0, 0)', visible: ['paper'] });
		if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/print.png` });
		await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
		await page.emulateMedia({ media: null });
		// Chromium itself tells the page that it prints.
		const papers = () => page.evaluate(() => [window.papers, document.querySelectorAll('.paper').length]);
		await page.evaluate(() => window.addEventListener('beforeprint', () => (window.papers = document.querySelectorAll('.paper').length)));
		const pdf = await page.pdf();
		assert.ok(pdf.length > 5000);
		await waitUntil(async () => String(await papers()) === '1,0', 'the table to have been there while Chromium printed');
		await page.getByRole('button', { name: 'Light' }).click();
	});
});
