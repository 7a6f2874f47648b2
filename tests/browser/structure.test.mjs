/*
 * structure.test.mjs - rows and columns that come, go and move while two people write: open editors, undo, moves by drag, menu
 * and key, and in the end both pages and the database have the same.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

test('rows and columns come, go and move', { timeout: 300000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const [ann, bob] = await Promise.all(['ann', 'bob'].map((name) => Person.arrive(browser, gateway, name)));
	const sql = (text) => cluster.psql(text);
	let id;
	const everyone = (name, shown) => Promise.all([ann.untilShows(name, shown), bob.untilShows(name, shown)]);
	const picture = async (person, name) => {
		if (process.env.SCREENSHOTS) await person.page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
	};
	const stored = () => sql(`SELECT string_agg(a1 || '=' || content, ' ' ORDER BY "row", col) FROM sheet.range(${id}) WHERE content <> ''`);
	const untilStored = (contents) => {
		let last;
		return waitUntil(async () => (last = await stored()) === contents, () => `${contents} to be stored; there is ${last}`);
	};
	const saved = () => Promise.all([ann.untilSaved(), bob.untilSaved()]);

	await Promise.all([ann.register(), bob.register()]);

	/** A sheet of their own for each step. */
	const step = (name, run) =>
		t.test(name, async () => {
			id = Number(await sql(`SELECT sheet.create('Structure', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
			await sql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
			await Promise.all([ann.turnTo(id), bob.turnTo(id)]);
			await run();
			assert.deepEqual([...ann.problems.splice(0), ...bob.problems.splice(0)], []);
		});

	await step('the references of a half-typed formula move with their rows', async () => {
		await ann.paste('A1', '1\n2\n3');
		await everyone('A3', '3');
		await ann.goTo('C5');
		await ann.page.keyboard.type('=SUM(A1:A3');
		await bob.rows('2', 'rows above');
		await bob.untilShows('A3', '2');
		await ann.untilShows('A3', '2');
		await ann.page.keyboard.type(')*2');
		await picture(ann, 'formula-moved');
		await ann.page.keyboard.press('Enter');
		await everyone('C6', '12');
		await saved();
		assert.equal(await stored(), 'A1=1 A3=2 A4=3 C6==SUM(A1:A4)*2');
	});

	await step('the text of an editor whose cell is deleted is kept, and written elsewhere', async () => {
		await ann.goTo('B5');
		await ann.page.keyboard.type('still here');
		await waitUntil(async () => (await bob.locks()).B5 === 'ann', 'the lock');
		await bob.rows('5', 'Delete Selected Row');
		await bob.page.getByText('ann is editing B5').waitFor();
		// SQL asks nobody.
		await sql(`SELECT sheet.delete_rows(${id}, 4, 1)`);
		await ann.page.locator('.kept-item', { hasText: '“still here”' }).waitFor();
		await picture(ann, 'kept-deleted');
		await ann.goTo('C2');
		await ann.page.getByRole('button', { name: 'Write it into the selected cell' }).click();
		await everyone('C2', 'still here');
		await saved();
		assert.equal(await stored(), 'C2=still here');
	});

	await step('undo brings deleted rows back, with formats and formulas, after others have moved them', async () => {
		await ann.paste('A1', '1\n2\n3\n=SUM(A1:A3)\n=A2*10');
		await everyone('A5', '20');
		await ann.goTo('A2');
		await ann.page.keyboard.press('Control+b');
		await waitUntil(async () => (await bob.cell('A2')).style?.bl === 1, 'the format');
		await ann.selectRows(2);
		await ann.page.keyboard.press('Control+-');
		await everyone('A3', '4');
		await untilStored('A1=1 A2=3 A3==SUM(A1:A2) A4==#REF!*10');
		await bob.rows('1', 'rows above');
		await everyone('A4', '4');
		await ann.page.keyboard.press('Control+z');
		await everyone('A6', '20');
		await everyone('A5', '6');
		await waitUntil(async () => (await bob.cell('A3')).style?.bl === 1, 'the format to come back');
		await saved();
		assert.equal(await stored(), 'A2=1 A3=2 A4=3 A5==SUM(A2:A4) A6==A3*10');
		await ann.page.keyboard.press('Control+y');
		await everyone('A4', '4');
		await ann.page.keyboard.press('Control+z');
		await everyone('A6', '20');
	});

	await step('undo of an insertion, which stays if another has written into it', async () => {
		await ann.paste('A1', '1\n2\n3');
		await everyone('A3', '3');
		await ann.selectRows(2, 3);
		await ann.page.keyboard.press('Control+Shift+Equal');
		await everyone('A4', '2');
		await everyone('A5', '3');
		await ann.page.keyboard.press('Control+z');
		await everyone('A3', '3');
		await ann.page.keyboard.press('Control+y');
		await everyone('A5', '3');
		await bob.type('A2', 'mine');
		await everyone('A2', 'mine');
		await ann.goTo('E1');
		await ann.page.keyboard.press('Control+z');
		await ann.page.getByText('somebody has written into these rows').waitFor();
		await saved();
		assert.equal(await stored(), 'A1=1 A2=mine A4=2 A5=3');
	});

	await step('rows are moved by drag, menu and key, and formulas follow', async () => {
		await ann.paste('A1', '1\n2\n3\n4\n=A2*10\n=SUM(A1:A4)');
		await everyone('A6', '10');
		await ann.selectRows(2);
		await ann.dragRow(2, 3);
		await untilStored('A1=1 A2=3 A3=2 A4=4 A5==A3*10 A6==SUM(A1:A4)');
		await everyone('A3', '2');
		await everyone('A5', '20');
		await picture(ann, 'moved');
		await bob.rows('3', 'Move up');
		await untilStored('A1=1 A2=2 A3=3 A4=4 A5==A2*10 A6==SUM(A1:A4)');
		await everyone('A3', '3');
		await bob.selectRows(1, 2);
		await bob.page.keyboard.press('Alt+Shift+ArrowDown');
		await untilStored('A1=3 A2=1 A3=2 A4=4 A5==A3*10 A6==SUM(A1:A4)');
		await everyone('A6', '10');
		await bob.page.keyboard.press('Control+z');
		await bob.page.keyboard.press('Control+z');
		await untilStored('A1=1 A2=3 A3=2 A4=4 A5==A3*10 A6==SUM(A1:A4)');
		await everyone('A3', '2');
	});

	await step('an insertion or a deletion that is refused leaves both pages with what the database has', async () => {
		const seen = (person) =>
			person.page.evaluate(() => {
				const cells = Array.from({ length: 20 }, (_, row) => Array.from({ length: 8 }, (_, col) => [`${'ABCDEFGH'[col]}${row + 1}`, window.pgSheet.contentOf(row, col).content])).flat();
				return cells.filter(([, content]) => content !== '').map((cell) => cell.join('=')).join(' ');
			});
		/** Both pages and the database have these cells, and the grid has its size. */
		const all = async (contents) => {
			await untilStored(contents);
			for (const person of [ann, bob]) {
				let last;
				await waitUntil(async () => (last = await seen(person)) === contents.replace(/ ?XFD\d+=end/, ''), () => `${person.name}'s page to show ${contents}; it shows ${last}`);
			}
		};
		await bob.paste('A1', '1\n2\n3\n=SUM(A1:A3)\n5');
		await everyone('A4', '6');
		await ann.goTo('B2');
		await ann.page.keyboard.type('mine');
		await waitUntil(async () => (await bob.locks()).B2 === 'ann', 'the lock');
		// What follows a refused deletion was written for rows that are still there.
		gateway.service.signal('SIGSTOP');
		await bob.rows('2', 'Delete Selected Row');
		await bob.type('A6', 'six');
		await bob.rows('5', 'rows above');
		gateway.service.signal('SIGCONT');
		await bob.page.getByText('ann is editing B2').waitFor();
		await bob.untilSaved();
		await all('A1=1 A2=2 A3=3 A4==SUM(A1:A3) A6=5 A7=six');
		await ann.page.keyboard.press('Enter');
		await all('A1=1 A2=2 B2=mine A3=3 A4==SUM(A1:A3) A6=5 A7=six');

		// A cell in the last column has no room to move.
		await sql(`SELECT sheet.set(${id}, 'XFD9', 'end')`);
		await saved();
		await bob.columns('A', 'cols left');
		await bob.page.locator('#messages p.problem').first().waitFor();
		await bob.type('A8', 'eight');
		await saved();
		await all('A1=1 A2=2 B2=mine A3=3 A4==SUM(A1:A3) A6=5 A7=six A8=eight XFD9=end');
	});

	await step('both insert, delete, move and write at once: both pages have what the database has', async () => {
		await ann.paste('A1', Array.from({ length: 14 }, (_, i) => `r${i}\t${i}\t=B${i + 1}*2`).join('\n'));
		await everyone('C14', '26');
		const work = async (person, column, first) => {
			const { keyboard } = person.page;
			for (let i = 0; i < 3; i++) {
				await person.selectRows(first, first + 1);
				await keyboard.press('Control+Shift+Equal');
				if (i === 1) await keyboard.press('Control+z');
				await person.type(`${column}1`, `${person.name} ${i}`, `=B${first + i}+1`);
				await person.selectRows(first + 2);
				await keyboard.press('Alt+Shift+ArrowDown');
				// Whatever row that is now, it comes back.
				await person.selectRows(first + 3);
				await keyboard.press('Control+-');
				await person.untilSaved();
				await keyboard.press('Control+z');
			}
		};
		await Promise.all([work(ann, 'E', 3), work(bob, 'F', 8)]);
		await saved();
		const seen = async (person) =>
			person.page.evaluate(() =>
				Array.from({ length: 40 }, (_, row) => Array.from({ length: 14 }, (_, col) => [row, col, window.pgSheet.contentOf(row, col).content])).flat().filter(([, , content]) => content !== ''),
			);
		const truth = async () => (await cluster.rows(`SELECT "row", col, content FROM sheet.range(${id}) WHERE content <> '' ORDER BY 1, 2`)).map(({ row, col, content }) => [Number(row), Number(col), content]);
		let last;
		await waitUntil(
			async () => {
				await saved();
				last = [await truth(), await seen(ann), await seen(bob)].map((cells) => JSON.stringify(cells));
				return last[0] === last[1] && last[0] === last[2];
			},
			() => `the same everywhere:\n${last.join('\n')}`,
		);
		const cells = await truth();
		const names = cells.filter(([, , content]) => /^r\d+$/.test(content)).map(([, , content]) => content).sort();
		assert.deepEqual(names, Array.from({ length: 14 }, (_, i) => `r${i}`).sort());
		// Each row still computes from its own number.
		for (const [row, col] of cells.filter(([, , content]) => /^r\d+$/.test(content))) assert.ok(cells.some(([r, c, content]) => r === row && c === col + 2 && content === `=B${row + 1}*2`));
		await picture(ann, 'both');
	});
});
