/*
 * tab_formulas.test.mjs - formulas in the page that read other tabs of their book, while another person edits these.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';

/** Waits until the cell shows this. */
const untilShown = async (person, cell, wanted) => {
	let last;
	await waitUntil(async () => (last = (await person.cell(cell)).shown) === wanted, () => `${cell} to show ${wanted}, not ${last}`, 15000);
};

test('formulas that read other tabs', { timeout: 300000 }, async (t) => {
	const { persons: [ann, bob], sql } = await meet(t, { ann: {}, bob: {} }, { gatewayFlags: { 'default-link-role': 'none' } });
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual([ann, bob].flatMap(({ problems }) => problems.splice(0)), []);
		});
	const uid = await sql(`SELECT uid FROM sheet.account WHERE name = '${ann.name}'`);
	const book = await sql(`SELECT sheet.create_book('Book', ${uid})`);
	const add = async (name) => Number(await sql(`SELECT sheet.add_tab(${book}, '${name}', as_uid => ${uid})`));
	const set = (sheet, cells) => sql(Object.entries(cells).map(([cell, content]) => `SELECT sheet.set(${sheet}, '${cell}', '${content.replaceAll("'", "''")}')`).join(';\n'));
	const [sum, data, chain] = [await add('Sum'), await add('Data'), await add('a b')];
	await set(data, { A1: '1', A2: '2', B1: '=A1+A2', C1: '2024-01-31' });
	await set(chain, { A1: '=Data!B1*10' });
	await set(sum, { A1: '=SUM(Data!A:A)', A2: "='a b'!A1", A3: '=Nowhere!A1', A4: '=TEXT(Data!C1,"yyyy")', A5: '=INDIRECT("Data!A"&2)' });
	await sql(`SELECT sheet.share_book(${book}, '${bob.name}', 'editor', ${uid})`);

	await step('are computed when the sheet is opened, through other tabs, too', async () => {
		await ann.open(sum);
		for (const [cell, shown] of Object.entries({ A1: '3', A2: '30', A3: '#REF!', A4: '2024', A5: '2' })) await untilShown(ann, cell, shown);
	});

	await step('follow what another person writes there, and rows that are inserted', async () => {
		await bob.open(data);
		await bob.type('A2', '5');
		for (const [cell, shown] of Object.entries({ A1: '6', A2: '60', A5: '5' })) await untilShown(ann, cell, shown);
		await sql(`SELECT sheet.insert_rows(${data}, 0, 1)`);
		for (const [cell, shown] of Object.entries({ A1: '6', A2: '60' })) await untilShown(ann, cell, shown);
		await bob.type('A2', '10');
		for (const [cell, shown] of Object.entries({ A1: '15', A2: '150' })) await untilShown(ann, cell, shown);
	});

	await step('read a tab that gets the name, and one that comes back from the trash', async () => {
		await sql(`SELECT sheet.set(sheet.add_tab(${book}, 'Nowhere', as_uid => ${uid}), 'A1', '7')`);
		await untilShown(ann, 'A3', '7');
		await sql(`SELECT sheet.trash(${data}, ${uid})`);
		await untilShown(ann, 'A1', '#REF!');
		await sql(`SELECT sheet.recover(${data}, ${uid})`);
		await untilShown(ann, 'A1', '15');
	});

	await step('follow a rollback of the other tab, and one that goes to another book and comes back', async () => {
		const version = await sql(`SELECT sheet.commit(${data})`);
		await sql(`SELECT sheet.delete_rows(${data}, 0, 2)`);
		await untilShown(ann, 'A1', '5');
		await sql(`SELECT sheet.rollback(${data}, ${version})`);
		await sql(`SELECT sheet.set(${sum}, 'A1', '=SUM(Data!A:A)')`);
		await untilShown(ann, 'A1', '15');
		const other = await sql(`SELECT sheet.create_book('Other', ${uid})`);
		await sql(`SELECT sheet.move_tab(${data}, ${other}, as_uid => ${uid})`);
		await untilShown(ann, 'A1', '#REF!');
		await sql(`SELECT sheet.move_tab(${data}, ${book}, as_uid => ${uid})`);
		await untilShown(ann, 'A1', '15');
	});

	await step('are typed, and go on after the connection was lost', async () => {
		await ann.type('B1', '=Data!B2+1');
		await untilShown(ann, 'B1', '16');
		// It was in the trash.
		await bob.open(data);
		await ann.page.context().setOffline(true);
		await bob.type('A2', '11');
		await ann.page.context().setOffline(false);
		await untilShown(ann, 'B1', '17');
	});

	await step('show #REF! to whom the other tab is not shared with, until it is', async () => {
		await sql(`SELECT sheet.share(${sum}, '${bob.name}', 'viewer', ${uid}); SELECT sheet.unshare(${data}, '${bob.name}', ${uid})`);
		await bob.open(sum);
		await untilShown(bob, 'B1', '#REF!');
		await sql(`SELECT sheet.share(${data}, '${bob.name}', 'viewer', ${uid})`);
		await untilShown(bob, 'B1', '17');
	});
});
