/* calc: edits by SQL become values, whatever is edited, and whatever ends in between (docs/design/calc.md). */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { roundsToRun } from '../lib/processes.mjs';
import { makeSheet, setCells, startCalc, valuesOf, waitValues } from '../lib/calc.mjs';

const endless = '=REDUCE(0,SEQUENCE(100000),LAMBDA(a,b,a+SUM(SEQUENCE(100000))))';
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

describe('values follow edits', () => {
	test('of numbers, texts, dates, booleans and errors', async () => {
		const sheet = await makeSheet(cluster, {
			...{ A1: '1', A2: '2024-01-31', A3: "'12", B1: '=A1+1', B2: '=TEXT(A2,"yyyy")', B3: '=A3&"!"', B4: '=1=1', B5: '=1/0' },
			...{ B6: '=""', B7: '=A1/3', B8: '=A3', B9: '=NOPE()', B10: '="#ABC!"', B11: '=DATE(2024,2,29)', B12: '="TRUE"' },
		});
		await waitValues(cluster, sheet, {
			...{ A1: '1', B1: '2', B2: '2024', B3: '12!', B4: 'TRUE', B5: '#DIV/0!', B6: '', B7: '0.3333333333333333', B8: '12' },
			...{ B9: '#NAME?', B10: '#ABC!', B11: '2024-02-29', B12: 'TRUE' },
		});
		await setCells(cluster, sheet, { A1: '41' });
		await waitValues(cluster, sheet, { B1: '42' });
	});

	test('a formula that goes has no value any more, and one that comes has one', async () => {
		const sheet = await makeSheet(cluster, { A1: '1', B1: '=A1', C1: '=B1' });
		await waitValues(cluster, sheet, { B1: '1', C1: '1' });
		await setCells(cluster, sheet, { B1: null });
		await waitValues(cluster, sheet, { B1: null, C1: '0' });
		await setCells(cluster, sheet, { B1: 'text', D1: '=B1' });
		await waitValues(cluster, sheet, { B1: 'text', C1: 'text', D1: 'text' });
		// A sheet that loses its last formula, and gets a new one.
		await setCells(cluster, sheet, { C1: null, D1: null });
		await waitValues(cluster, sheet, { B1: 'text', C1: null, D1: null });
		await setCells(cluster, sheet, { D1: '=B1&B1' });
		await waitValues(cluster, sheet, { D1: 'texttext' });
	});

	test('arrays fill cells, as far as they are empty', async () => {
		const sheet = await makeSheet(cluster, { A1: '=SEQUENCE(2,2)' });
		await waitValues(cluster, sheet, { A1: '1', B1: '2', A2: '3', B2: '4' });
		await setCells(cluster, sheet, { B2: 'x' });
		await waitValues(cluster, sheet, { A1: '#SPILL!', B1: null, A2: null, B2: 'x' });
		await setCells(cluster, sheet, { B2: null, A1: '=SEQUENCE(1,3)' });
		await waitValues(cluster, sheet, { A1: '1', B1: '2', C1: '3', A2: null, B2: null });
	});

	test('rows and columns are inserted and deleted', async () => {
		const sheet = await makeSheet(cluster, { A1: '1', A2: '2', B1: '=A1+A2', D1: '=SEQUENCE(2)' });
		await waitValues(cluster, sheet, { B1: '3', D2: '2' });
		await cluster.psql(`SELECT sheet.insert_rows(${sheet}, 1, 2)`);
		await waitValues(cluster, sheet, { B1: '3', A4: '2', D1: '1', D2: '2', D4: null });
		await setCells(cluster, sheet, { A4: '5' });
		await waitValues(cluster, sheet, { B1: '6' });
		await cluster.psql(`SELECT sheet.delete_columns(${sheet}, 0, 1)`);
		await waitValues(cluster, sheet, { A1: '#REF!', C1: '1', C2: '2' });
	});

	test('a version comes back', async () => {
		const sheet = await makeSheet(cluster, { A1: '1', B1: '=A1*2' });
		const version = await cluster.psql(`SELECT sheet.commit(${sheet})`);
		await setCells(cluster, sheet, { A1: '5', B1: '=A1*3', C1: '=B1' });
		await waitValues(cluster, sheet, { B1: '15', C1: '15' });
		await cluster.psql(`SELECT sheet.rollback(${sheet}, ${version})`);
		await waitValues(cluster, sheet, { B1: '2', C1: null });
	});

	test('formats of cells, the time zone and hidden rows count as in the page', async () => {
		const sheet = await makeSheet(cluster, { A1: '1', A2: '2', A3: '3', B1: '=SUBTOTAL(109,A1:A3)', B2: '=TODAY()', B3: '=A1+45000' });
		await cluster.psql(`SELECT sheet.set_property(${sheet}, '2:2', 'hidden', 'true'); SELECT sheet.set_property(${sheet}, NULL, 'timezone', '"Pacific/Kiritimati"')`);
		const today = new Date(Date.now() + 14 * 3600000).toISOString().slice(0, 10);
		await waitValues(cluster, sheet, { B1: '4', B2: today });
		assert.equal(await cluster.psql(`SELECT again_at > now() AND again_at <= now() + interval '1 day' FROM sheet.computed WHERE sheet_id = ${sheet}`), 't');
	});

	test('a sheet that has properties when it is read', async () => {
		const properties = [
			...[['NULL', 'timezone', '"Pacific/Kiritimati"'], ["'2:2'", 'hidden', 'true'], ["'B:C'", 'width', '120'], ["'D5:E6'", 'merge', 'true']],
			...[['NULL', 'freeze', '{"rows": 1}'], ["'A1:ZZ9999'", 'note', `"${'ü'.repeat(500)}"`], ["'3:3'", 'height', 'null']],
		];
		const sheet = await makeSheet(cluster, { A1: '1', A2: '2', A3: '3' });
		for (const [place, key, value] of properties) await cluster.psql(`SELECT sheet.set_property(${sheet}, ${place}, '${key}', '${value}')`);
		await setCells(cluster, sheet, { B1: '=SUBTOTAL(109,A1:A3)' });
		await waitValues(cluster, sheet, { B1: '4' });
		await calc.kill();
		await setCells(cluster, sheet, { A1: '10' });
		calc = startCalc(cluster);
		await waitValues(cluster, sheet, { B1: '13' });
		await cluster.psql(`SELECT sheet.set_property(${sheet}, '1:1', 'hidden', 'true')`);
		await waitValues(cluster, sheet, { B1: '3' });
	});

	test('10,000 formulas depend on one cell', async () => {
		const sheet = await makeSheet(cluster, { A1: '1' });
		await cluster.psql(`SELECT sheet.set_range(${sheet}, 'B1', array_agg(ARRAY['=A$1+' || i])) FROM generate_series(1, 10000) i`);
		await waitValues(cluster, sheet, { B1: '2', B10000: '10001' });
		const began = Date.now();
		await setCells(cluster, sheet, { A1: '2' });
		await waitValues(cluster, sheet, { B1: '3', B10000: '10002' });
		assert.ok(Date.now() - began < 15000, 'it takes seconds at most'); // measured: 0.4 to 1.1 s
	});
});

describe('bad formulas', () => {
	test('a circle shows an error, until it is none', async () => {
		const sheet = await makeSheet(cluster, { A1: '=B1', B1: '=A1+1', C1: '=1' });
		await waitValues(cluster, sheet, { A1: '#CYCLE!', B1: '#CYCLE!', C1: '1' });
		await setCells(cluster, sheet, { A1: '1' });
		await waitValues(cluster, sheet, { A1: '1', B1: '2' });
	});

	test('one that never ends is stopped, and other sheets are computed meanwhile', async () => {
		const innocent = await makeSheet(cluster, { A1: '1', B1: '=A1*2' });
		await waitValues(cluster, innocent, { B1: '2' });
		// On a slow machine, the formula may be stopped before the other sheet is computed. Then another one is tried.
		let meanwhile = false;
		for (let i = 2; !meanwhile; i++) {
			assert.ok(i < 7, 'the other sheet has waited each time');
			const sheet = await makeSheet(cluster, { A1: '5', B1: '=A1+1', B2: endless });
			await setCells(cluster, innocent, { A1: `${i}` });
			await waitValues(cluster, innocent, { B1: `${i * 2}` });
			meanwhile = (await valuesOf(cluster, sheet)).B2 === '#BUSY! (stale)';
			await waitValues(cluster, sheet, { B1: '6', B2: '#CALC!' });
			await setCells(cluster, sheet, { A1: '7' });
			await waitValues(cluster, sheet, { B1: '8', B2: '#CALC!' });
		}
	});
});

test('a formula that was stopped is tried again, in a sheet that is in memory, too', async () => {
	await calc.stop();
	calc = startCalc(cluster, { 'calc-retry-seconds': 1 });
	const sheet = await makeSheet(cluster, { A1: '100000', B1: '=REDUCE(0,SEQUENCE(A1),LAMBDA(a,b,a+SUM(SEQUENCE(A1))))' });
	await waitValues(cluster, sheet, { B1: '#CALC!' });
	const isComputed = async () => {
		await setCells(cluster, sheet, { A1: '3', C1: crypto.randomUUID() });
		await waitUntil(async () => !(await valuesOf(cluster, sheet)).B1.endsWith('(stale)'), 'calc to follow the sheet');
		return (await valuesOf(cluster, sheet)).B1 === '18';
	};
	await waitUntil(isComputed, 'the formula to be tried again');
	await calc.stop();
	calc = startCalc(cluster);
});

describe('what ends in between', () => {
	test('a calc that is killed while it computes loses nothing', async () => {
		const sheets = [];
		for (let i = 0; i < 20; i++) sheets.push(await makeSheet(cluster, { A1: '1', B1: '=A1+1' }));
		await calc.kill();
		for (const [i, sheet] of sheets.entries()) await setCells(cluster, sheet, { A1: `${i}` });
		calc = startCalc(cluster);
		await setCells(cluster, sheets[0], { A1: '100' });
		await waitValues(cluster, sheets[0], { B1: '101' });
		await calc.kill();
		calc = startCalc(cluster);
		await waitValues(cluster, sheets[0], { B1: '101' });
		for (const [i, sheet] of sheets.entries()) if (i > 0) await waitValues(cluster, sheet, { B1: `${i + 1}` });
	});

	test('PostgreSQL is restarted, and crashes', async () => {
		const sheet = await makeSheet(cluster, { A1: '1', B1: '=A1+1' });
		await waitValues(cluster, sheet, { B1: '2' });
		await cluster.restartPostgres('fast');
		await setCells(cluster, sheet, { A1: '2' });
		await waitValues(cluster, sheet, { B1: '3' });
		await setCells(cluster, sheet, { A1: '3' });
		await cluster.restartPostgres('immediate');
		await waitValues(cluster, sheet, { B1: '4' });
		assert.ok(calc.alive);
	});

	test('a sheet that is in memory is purged', async () => {
		const [sheet, other] = [await makeSheet(cluster, { A1: '1', B1: '=A1+1' }), await makeSheet(cluster, { A1: '1', B1: '=A1+1' })];
		await waitValues(cluster, sheet, { B1: '2' });
		await cluster.psql(`SELECT sheet.set(${sheet}, 'A1', '2'); SELECT sheet.trash(${sheet}); SELECT sheet.purge(${sheet})`);
		await setCells(cluster, other, { A1: '2' });
		await waitValues(cluster, other, { B1: '3' });
		assert.ok(calc.alive);
	});

	test('SIGTERM ends it within some seconds', async () => {
		assert.equal((await calc.stop('SIGTERM', 5000)).code, 0);
		calc = startCalc(cluster);
	});
});

test('after random edits and kills, all values are those of a calc that begins anew', { timeout: 600000 }, async () => {
	const contents = ['1', '2.5', 'text', '', '=A1+B2', '=SUM(A1:C4)', '=SEQUENCE(2,2)', '=B1&"x"', '=C3*2', '=IF(A2>1,B2,1/0)', '=RAND()'];
	const pick = (n) => crypto.randomInt(n);
	const sheets = await Promise.all([0, 1, 2].map(() => makeSheet(cluster)));
	const edit = (sheet) => {
		const kind = pick(10);
		if (kind === 0) return `SELECT sheet.insert_rows(${sheet}, ${pick(4)}, 1)`;
		if (kind === 1) return `SELECT sheet.delete_columns(${sheet}, ${pick(4)}, 1)`;
		return `SELECT sheet.set(${sheet}, ${pick(5)}, ${pick(4)}, '${contents[pick(contents.length)].replaceAll("'", "''")}')`;
	};
	for (let round = roundsToRun(3, 30); round > 0; round--) {
		for (let i = 0; i < 40; i++) await cluster.psql(Array.from({ length: 1 + pick(3) }, () => edit(sheets[pick(3)])).join(';\n'));
		await calc.kill();
		calc = startCalc(cluster);
	}
	const settled = async () => (await cluster.psql(`SELECT count(*) FROM sheet.to_compute(ARRAY[${sheets}])`)) === '0';
	await waitUntil(settled, 'all to be computed');
	const all = () => Promise.all(sheets.map((sheet) => cluster.psql(`SELECT row, col, content, value, stale FROM sheet.range(${sheet})`)));
	const followed = await all();
	await calc.kill();
	await cluster.psql('DELETE FROM sheet.value; UPDATE sheet.computed SET seq = 0');
	calc = startCalc(cluster);
	await waitUntil(settled, 'all to be computed anew');
	assert.deepEqual(followed, await all());
});

describe('many sheets', () => {
	test('of two calcs, one takes the sheets of the other when it ends', async () => {
		second = startCalc(cluster, { 'calc-name': 'second' });
		const sheets = [];
		for (let i = 0; i < 10; i++) sheets.push(await makeSheet(cluster, { A1: `${i}`, B1: '=A1+1' }));
		await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.calculator WHERE name IN ('calc', 'second')`)) === '2', 'two calcs');
		for (const [i, sheet] of sheets.entries()) await waitValues(cluster, sheet, { B1: `${i + 1}` });
		await second.stop();
		for (const [i, sheet] of sheets.entries()) await setCells(cluster, sheet, { A1: `${i + 10}` });
		for (const [i, sheet] of sheets.entries()) await waitValues(cluster, sheet, { B1: `${i + 11}` });
	});

	test('only a few are in memory, and those without formulas are not', async () => {
		await cluster.psql(`ALTER ROLE gateway SET log_statement = 'all'`);
		const { log } = cluster.postgres;
		const before = fs.statSync(log).size;
		const reads = () => fs.readFileSync(log).subarray(before).toString().match(/FROM sheet\.read_cells\(/g)?.length ?? 0;
		await calc.stop();
		calc = startCalc(cluster, { 'calc-cells': 2000 });
		const sheets = [];
		for (let i = 0; i < 20; i++) sheets.push(await makeSheet(cluster, { A1: `${i}`, B1: '=A1+1' }));
		const plain = await makeSheet(cluster, { A1: '1' });
		for (let round = 0; round < 2; round++) {
			for (const [i, sheet] of sheets.entries()) await setCells(cluster, sheet, { A1: `${i + round}` });
			for (const [i, sheet] of sheets.entries()) await waitValues(cluster, sheet, { B1: `${i + round + 1}` });
		}
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.to_compute(ARRAY[${plain}])`), '0');
		// Three or four of the twenty fit, so most were read a second time.
		assert.ok(reads() >= 30, `${reads()} reads`);
	});
});
