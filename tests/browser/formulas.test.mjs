/*
 * formulas.test.mjs - no formula stops a sheet: huge references, huge arrays, formulas that never end, large merged cells and
 * properties of all rows. Two pages show the same values, whatever the order in which they have heard of the edits.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';

test('formulas', { timeout: 900000 }, async (t) => {
	const { sql, persons: [ann, bob] } = await meet(t);
	const make = async (cells = {}) => {
		const id = Number(await sql(`SELECT sheet.create('Formulas', 10, 10, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
		await sql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
		for (const [name, content] of Object.entries(cells)) await sql(`SELECT sheet.set(${id}, '${name}', $f$${content}$f$)`);
		return id;
	};
	const stored = (id, name) => sql(`SELECT content FROM sheet.range(${id}) WHERE a1 = '${name}'`);

	await t.test('a formula that is typed is stored, and the tab takes keys', async () => {
		const id = await make({ A1: '1', A2: '2' });
		await ann.open(id);
		const start = Date.now();
		await ann.type('B1', '=SUM(A5:A99999999)', '=SUM(A1:A16777216)', '=SUM(A:A)', '=SUMPRODUCT(A:A*A:A)', '=REPT("x",1E9)', 'next');
		await ann.untilShows('B6', 'next', 5000);
		const seconds = (Date.now() - start) / 1000;
		assert.ok(seconds < 60, `typing took ${seconds} s`);
		await ann.untilSaved();
		assert.equal(await stored(id, 'B1'), '=SUM(A5:A99999999)');
		for (const [name, shown] of [['B1', '#REF!'], ['B2', '3'], ['B3', '3'], ['B4', '5'], ['B5', '#VALUE!']]) await ann.untilShows(name, shown);
		assert.deepEqual(ann.problems, []);
	});

	await t.test('a sheet with formulas over all cells opens, for everybody', async () => {
		const id = await make({ A1: '=SUM(A2:XFD16777216)', A2: '5', C3: '6', B1: '=COUNTA(A2:A99999999)', D1: '=SUM(INDIRECT("A2:C16777216"))', E1: '=ROWS(A2:XFD16777216)' });
		for (const person of [ann, bob]) {
			await person.open(id);
			for (const [name, shown] of [['A1', '11'], ['B1', '1'], ['D1', '11'], ['E1', '16777215']]) await person.untilShows(name, shown);
		}
		await sql(`SELECT sheet.set(${id}, 'A1', '=SUM(A1:C16777216)')`);
		for (const person of [ann, bob]) await person.untilShows('A1', '#CYCLE!');
	});

	await t.test('a date format that a formula gives goes with the formula', async () => {
		const id = await make({ A1: '=TODAY()', A2: '=TODAY()', A3: '=TODAY()' });
		await ann.open(id);
		await waitUntil(async () => /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test((await ann.cell('A1')).shown), () => 'today in A1');
		await ann.type('A1', '5', 'text', '1/2/2024');
		for (const [name, shown] of [['A1', '5'], ['A2', 'text'], ['A3', '01/02/2024']]) await ann.untilShows(name, shown);
		await ann.untilSaved();
		assert.deepEqual(await Promise.all(['A1', 'A2', 'A3'].map((name) => stored(id, name))), ['5', 'text', '2024-01-02']);
		assert.equal(await sql(`SELECT count(*) FROM sheet.range(${id}) WHERE a1 IN ('A1', 'A2') AND style IS NOT NULL`), '0');
	});

	await t.test('a date format that a formula gives is not stored for its copies, and a drag fills as soon as the sheet is open', async () => {
		const id = await make({ A1: '=TODAY()' });
		await ann.open(id);
		await waitUntil(async () => /^[0-9]{4}-/.test((await ann.cell('A1')).shown), () => 'today in A1');
		const { x, y } = await ann.grid.boundingBox();
		const { mouse, keyboard } = ann.page;
		await mouse.click(x + 86, y + 32);
		await mouse.move(x + 141, y + 43); // the handle at the corner of A1
		await mouse.down();
		for (const row of [2, 3]) await mouse.move(x + 86, y + 8 + 24 * row, { steps: 3 });
		await mouse.up();
		await waitUntil(async () => (await stored(id, 'A3')) === '=TODAY()', () => 'A3 to be filled');
		await ann.goTo('A1');
		await keyboard.press('Control+c');
		await ann.goTo('C1');
		await keyboard.press('Control+v');
		await waitUntil(async () => (await stored(id, 'C1')) === '=TODAY()', () => 'C1 to be pasted');
		await waitUntil(async () => /^[0-9]{4}-/.test((await ann.cell('C1')).shown), () => 'today in C1');
		assert.equal(await sql(`SELECT string_agg(a1 || coalesce(style::text, ''), ' ' ORDER BY a1) FROM sheet.range(${id})`), 'A1 A2 A3 C1');
		await ann.goTo('E5'); // two clicks on one cell would open its editor
		await ann.type('C1', '5');
		await ann.untilShows('C1', '5');
	});

	await t.test('a formula that never ends is stopped, alone', async () => {
		const endless = '=REDUCE(0,SEQUENCE(100000),LAMBDA(a,b,a+SUM(SEQUENCE(100000))))';
		const id = await make({ A1: '2', B1: '=A1*2', B2: endless, B3: '=B2', B4: '=A1*3' });
		await ann.open(id);
		await ann.type('A1', '5');
		await ann.untilSaved();
		await ann.untilShows('B2', '#CALC!', 60000);
		await ann.page.getByText('The formula in B2 takes too long').waitFor();
		for (const [name, shown] of [['B1', '10'], ['B3', '#CALC!'], ['B4', '15']]) await ann.untilShows(name, shown);
		await ann.type('B2', '=A1');
		await ann.untilShows('B3', '5');
		assert.deepEqual(ann.problems, []);
	});

	await t.test('a sheet is opened without formulas', async () => {
		const id = await make({ A1: '2', B1: '=A1*2' });
		await ann.page.goto(`${ann.gateway.url}/?id=${id}&formulas=off`);
		await ann.untilOpen();
		await ann.untilShows('B1', '=A1*2');
		await ann.type('A1', '7');
		await ann.untilSaved();
		assert.deepEqual([await stored(id, 'A1'), await stored(id, 'B1')], ['7', '=A1*2']);
		await ann.page.getByRole('button', { name: 'Compute formulas' }).click();
		await ann.untilOpen();
		await ann.untilShows('B1', '14');
	});

	await t.test('sheets with the largest merged cells, and with heights of all rows, open', async () => {
		const merged = await make({ A1: 'merged' });
		for (let n = 0; n < 10; n++) await sql(`SELECT sheet.set_property(${merged}, 'C${n * 10000 + 1}:L${n * 10000 + 10000}', 'merge', 'true')`);
		const high = await make({ A1: 'high', A16777216: 'x' });
		await sql(`SELECT sheet.set_property(${high}, '1:16777216', 'height', '30'), sheet.set_property(${high}, '5:16000000', 'hidden', 'true')`);
		for (const id of [merged, high]) {
			await ann.open(id);
			await ann.type('B1', 'typed');
			await ann.untilShows('B1', 'typed', 5000);
			await ann.untilSaved();
		}
		assert.deepEqual(ann.problems, []);
	});

	await t.test('two pages show the same: arrays that are blocked, and circles', async () => {
		const id = await make({ A1: '=SEQUENCE(4)', B1: '=SUM(A1:A4)' });
		await ann.open(id);
		await bob.open(id);
		const both = async (shown) => {
			for (const person of [ann, bob]) for (const [name, text] of Object.entries(shown)) await person.untilShows(name, text);
		};
		await both({ A1: '1', A3: '3', B1: '10' });
		await bob.type('A3', 'text');
		await both({ A1: '#SPILL!', A2: '', A3: 'text', A4: '', B1: '#SPILL!' });
		await ann.goTo('A3');
		await ann.page.keyboard.press('Delete');
		await both({ A1: '1', A3: '3', B1: '10' });
		await ann.type('C1', '=D1+1');
		await bob.type('D1', '=C1+1');
		await both({ C1: '#CYCLE!', D1: '#CYCLE!' });
		await ann.page.reload();
		await ann.untilOpen();
		await both({ C1: '#CYCLE!', D1: '#CYCLE!', A3: '3' });
		await bob.type('D1', '4');
		await both({ C1: '5', D1: '4' });
		await ann.type('E1', '=RAND()');
		await ann.untilSaved();
		let last;
		await waitUntil(
			async () => {
				last = await Promise.all([ann, bob].map(async (person) => (await person.cell('E1')).shown));
				return /^0\.[0-9]+$/.test(last[0]) && last[0] === last[1];
			},
			() => `the same random number, not ${last}`,
		);
		assert.deepEqual([ann.problems, bob.problems], [[], []]);
	});
});
