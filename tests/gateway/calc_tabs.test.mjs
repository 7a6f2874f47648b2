/* calc: formulas that read other tabs of their book (docs/design/calc.md). */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { roundsToRun } from '../lib/processes.mjs';
import { makeSheet, setCells, startCalc, waitValues } from '../lib/calc.mjs';

let cluster;
let calc;
let second;

before(async () => {
	cluster = await Cluster.start({ gateways: 0 });
	calc = startCalc(cluster);
});
after(async () => {
	await second?.stop();
	await calc?.stop();
	await cluster?.stop();
});

const psql = (sql) => cluster.psql(sql);

/** A book of an account, with tabs of these names and contents. */
async function makeBook(tabs) {
	const uid = await psql(`SELECT sheet.account_create('owner ${crypto.randomUUID()}', NULL, 'x')`);
	const book = await psql(`SELECT sheet.create_book('Book', ${uid})`);
	const made = { uid, book, ids: {} };
	for (const [name, cells] of Object.entries(tabs)) await addTab(made, name, cells);
	return made;
}

async function addTab({ uid, book, ids }, name, cells = {}) {
	ids[name] = await psql(`SELECT sheet.add_tab(${book}, '${name.replaceAll("'", "''")}', as_uid => ${uid})`);
	await setCells(cluster, ids[name], cells);
	return ids[name];
}

test('a formula reads other tabs, and follows them', async () => {
	const { ids } = await makeBook({
		Data: { A1: '1', A2: '2', B1: '=A1+A2', C1: '=SEQUENCE(2)' },
		"It's": { A1: '=Data!B1*10' },
		Sum: { A1: '=SUM(Data!A:A)', A2: "='It''s'!A1", A3: '=data!C2', A4: '=Nowhere!A1', A5: '=INDIRECT("Data!A" & 2)' },
	});
	await waitValues(cluster, ids.Sum, { A1: '3', A2: '30', A3: '2', A4: '#REF!', A5: '2' });
	await setCells(cluster, ids.Data, { A2: '5' });
	await waitValues(cluster, ids.Sum, { A1: '6', A2: '60', A5: '5' });
	await waitValues(cluster, ids["It's"], { A1: '60' });
	// What is edited in the reading tab alone.
	await setCells(cluster, ids.Sum, { A1: '=Data!A1+1' });
	await waitValues(cluster, ids.Sum, { A1: '2' });
	await psql(`SELECT sheet.set_property(${ids.Data}, '1:1', 'hidden', 'true')`);
	await setCells(cluster, ids.Sum, { A1: '=SUBTOTAL(109,Data!A1:A2)' });
	await waitValues(cluster, ids.Sum, { A1: '5' });
});

test('each value follows the tabs that it depends on, whatever ends in between', async () => {
	const { ids } = await makeBook({ A: { A1: '1' }, B: { A1: '=A!A1+1' }, C: { A1: '=B!A1+1' } });
	await waitValues(cluster, ids.C, { A1: '3' });
	await calc.kill();
	await setCells(cluster, ids.A, { A1: '10' });
	calc = startCalc(cluster);
	await waitValues(cluster, ids.C, { A1: '12' });
	await waitValues(cluster, ids.B, { A1: '11' });
	assert.equal(await psql(`SELECT bool_or(due) FROM sheet.computed_sheets() WHERE sheet_id IN (${Object.values(ids)})`), 'f');
});

test('formulas of several tabs that wait for each other show #CYCLE!', async () => {
	const { ids } = await makeBook({ A: { A1: '=B!A1+1' }, B: { A1: '=A!A1+1' } });
	await waitValues(cluster, ids.A, { A1: '#CYCLE!' });
	await waitValues(cluster, ids.B, { A1: '#CYCLE!' });
	await setCells(cluster, ids.B, { A1: '1' });
	await waitValues(cluster, ids.A, { A1: '2' });
});

test('tabs get names, come, and go', async () => {
	const made = await makeBook({ Own: { A1: '=Later!A1', A2: '=SHEETS()' } });
	const { ids, book, uid } = made;
	await waitValues(cluster, ids.Own, { A1: '#REF!', A2: '1' });
	await addTab(made, 'Later', { A1: '7' });
	await waitValues(cluster, ids.Own, { A1: '7', A2: '2' }, 10000);
	// While no calc is there.
	await calc.stop();
	await psql(`SELECT sheet.trash(${ids.Later}, ${uid})`);
	assert.equal(await psql(`SELECT count(*) FROM sheet.to_compute(ARRAY[${ids.Own}])`), '1');
	calc = startCalc(cluster);
	await waitValues(cluster, ids.Own, { A1: '#REF!', A2: '1' }, 10000);
	await psql(`SELECT sheet.purge(${ids.Later}, ${uid}); SELECT sheet.trash_book(${book}, ${uid}); SELECT sheet.purge_book(${book}, ${uid})`);
	assert.equal(await psql(`SELECT count(*) FROM sheet.value_source WHERE sheet_id IN (${Object.values(ids)})`), '0');
});

test('a formula cannot read a tab that somebody who may edit the sheet may not see', async () => {
	const { ids, uid, book } = await makeBook({ Open: { A1: '=Secret!A1', A2: '=IFERROR(SUM(Secret!A1:A2),"none")' }, Secret: { A1: '42' } });
	await waitValues(cluster, ids.Open, { A1: '42', A2: '42' });
	const name = `guest ${crypto.randomUUID()}`;
	await psql(`SELECT sheet.account_create('${name}', NULL, 'x')`);
	// A viewer sees values; an editor could write any formula.
	await psql(`SELECT sheet.share(${ids.Open}, '${name}', 'viewer', ${uid})`);
	await setCells(cluster, ids.Open, { A3: '=1+1' });
	await waitValues(cluster, ids.Open, { A1: '42', A3: '2' });
	await psql(`SELECT sheet.share(${ids.Open}, '${name}', 'editor', ${uid})`);
	await waitValues(cluster, ids.Open, { A1: '#REF!', A2: 'none' });
	await setCells(cluster, ids.Open, { A3: '=INDIRECT("Secret!A1")' });
	await waitValues(cluster, ids.Open, { A1: '#REF!', A2: 'none', A3: '#REF!' });
	await psql(`SELECT sheet.share(${ids.Secret}, '${name}', 'viewer', ${uid})`);
	await waitValues(cluster, ids.Open, { A1: '42', A2: '42', A3: '42' });
	// Guests of a link have no role in the other tab.
	const link = await psql(`SELECT link_id FROM sheet.create_link(${ids.Open}, 'editor', as_uid => ${uid})`);
	await waitValues(cluster, ids.Open, { A1: '#REF!' });
	await psql(`SELECT sheet.revoke_link(${link}, as_uid => ${uid})`);
	await waitValues(cluster, ids.Open, { A1: '42' });
	// Nor through another tab, which somebody else may edit: Open reads Between, and Between Secret.
	const between = await addTab({ uid, book, ids }, 'Between', { A1: '=Secret!A1' });
	await psql(`SELECT sheet.share(${between}, '${name}', 'viewer', ${uid})`);
	await setCells(cluster, ids.Open, { B1: '=Between!A1' });
	await waitValues(cluster, ids.Open, { B1: '42' });
	const other = `writer ${crypto.randomUUID()}`;
	await psql(`SELECT sheet.account_create('${other}', NULL, 'x'); SELECT sheet.share(${between}, '${other}', 'editor', ${uid}), sheet.share(${ids.Open}, '${other}', 'viewer', ${uid})`);
	await setCells(cluster, between, { A1: '=Secret!A1*1' });
	await waitValues(cluster, between, { A1: '#REF!' });
	await waitValues(cluster, ids.Open, { B1: '#REF!' });
});

test('two calcs, of which each has some tabs', async () => {
	second = startCalc(cluster, { 'calc-name': 'second' });
	await waitUntil(async () => (await psql(`SELECT count(*) FROM sheet.calculator WHERE name IN ('calc', 'second')`)) === '2', 'two calcs');
	const names = Array.from({ length: 8 }, (_, i) => `T${i}`);
	const { ids } = await makeBook(Object.fromEntries(names.map((name, i) => [name, { A1: i === 0 ? '1' : `=T${i - 1}!A1+1` }])));
	await waitValues(cluster, ids.T7, { A1: '8' });
	await setCells(cluster, ids.T0, { A1: '101' });
	for (const [i, name] of names.entries()) if (i > 0) await waitValues(cluster, ids[name], { A1: `${101 + i}` });
	await second.stop();
	second = undefined;
});

test('after random edits and kills, all values are those of a calc that begins anew', { timeout: 600000 }, async () => {
	const { ids } = await makeBook({ A: {}, B: {}, C: {} });
	const pick = (n) => crypto.randomInt(n);
	const names = Object.keys(ids);
	const cell = () => `${'ABC'[pick(3)]}${1 + pick(3)}`;
	const other = () => `${names[pick(3)]}!${cell()}`;
	const content = () => [`${pick(100)}`, '', `=${other()}+${other()}`, `=SUM(${other()}:C3)`, `=${cell()}&${other()}`, '=SEQUENCE(2,2)', `=INDIRECT("${other()}")`][pick(7)];
	for (let round = roundsToRun(3, 20); round > 0; round--) {
		for (let i = 0; i < 15; i++) {
			const edits = Array.from({ length: 1 + pick(3) }, () => `SELECT sheet.set(${ids[names[pick(3)]]}, ${pick(4)}, ${pick(4)}, '${content()}')`);
			await psql(edits.join(';\n'));
		}
		await calc.kill();
		calc = startCalc(cluster);
	}
	const settled = async () => (await psql(`SELECT count(*) FROM sheet.computed_sheets() WHERE due AND sheet_id IN (${Object.values(ids)})`)) === '0';
	await waitUntil(settled, 'all to be computed');
	const all = () => Promise.all(Object.values(ids).map((sheet) => psql(`SELECT row, col, content, value, stale FROM sheet.range(${sheet})`)));
	const followed = await all();
	await calc.kill();
	await psql('DELETE FROM sheet.value; DELETE FROM sheet.value_source; UPDATE sheet.computed SET seq = 0');
	calc = startCalc(cluster);
	await waitUntil(settled, 'all to be computed anew');
	assert.deepEqual(followed, await all());
});
