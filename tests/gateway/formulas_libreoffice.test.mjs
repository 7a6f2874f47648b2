/*
 * formulas_libreoffice.test.mjs - what LibreOffice computes from random formulas, calc computes too. The formulas go as a workbook to
 * LibreOffice, which computes all anew, so that what it has read is compared as well.
 */
// long form only
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, repository, waitUntil } from '../lib/cluster.mjs';
import { register, request } from '../lib/client.mjs';
import { startCalc } from '../lib/calc.mjs';
import { giveToService, roundsToRun } from '../lib/processes.mjs';
import { FormulaMaker, cellsToRead, functions, randomFrom } from '../lib/random_formulas.mjs';
import { throughLibreOffice } from '../lib/workbook_makers.mjs';

const seed = Number(process.env.PG_SHEET_SEED ?? 4711);
const rounds = roundsToRun(1, 10);
let cluster;
let gateway;
let calc;
let anna;

/** Where LibreOffice 7.4 differs from Excel, or its cells have no such values: [formulas, why]. */
const known = [
	[/\bMODE\.SNGL\(/, 'no number is there twice: #VALUE!, in Excel #N/A'],
	[/\bRANK\.(EQ|AVG)\(/, 'of a number that is not in the range; in Excel #N/A'],
	[/\b(ISNUMBER|TYPE|N|T|ISLOGICAL|ISNONTEXT|ISTEXT)\(/, 'booleans are numbers'],
	[/\bSECOND\(/, 'the nearest second'],
	[/\bPERCENTRANK\.INC\(/, 'more than three digits'],
	[/\bWEEKNUM\(/, 'the last days of a year are in the first week of the next'],
	[/\b(SYD|RATE)\((1000,100,)?0\./, 'a life or a time below 1'],
	[/\bLOOKUP\(-?[0-9.]+,/, 'numbers that are not in order'],
	[/\bVLOOKUP\(B5,B1:E20,3,FALSE\)/, 'booleans are numbers'],
	[/^CONCAT.*\bGAMMALN\(/, 'the last digits of a number behind another one'],
	[/\bCODE\(/, 'of letters that are not ASCII, and of nothing'],
];
/** Of these, Univer computes seven digits. */
const coarse = /\b(T\.DIST|T\.DIST\.2T|T\.INV|F\.DIST|CHISQ\.(DIST|INV)|GAMMA\.DIST|BETA\.DIST)\(/;

const numberOf = ([kind, value]) => (kind === 'boolean' ? Number(value) : kind === 'date' ? value / 86400 : kind === 'number' ? value : NaN);
/** A text with the digits of numbers that programs agree on. */
const short = (text, digits) => String(text).replace(/[0-9]+\.[0-9]{9,}(e[-+]?[0-9]+)?/gi, (number) => Number(number).toPrecision(digits));

/** Are these values, [kind, value], the same? */
function isSame(formula, ours, theirs) {
	// LibreOffice has one error for all bad arguments.
	if (ours[0] === 'error' && theirs[0] === 'error') return ours[1] === theirs[1] || (ours[1] === '#NUM!' && theirs[1] === '#VALUE!');
	const isCoarse = coarse.test(formula);
	const [a, b] = [ours, theirs].map(numberOf);
	if (!Number.isNaN(a) && !Number.isNaN(b)) return Math.abs(a - b) <= Math.max(Math.abs(a), Math.abs(b)) * (isCoarse ? 1e-6 : 1e-9) || Math.abs(a - b) < 1e-11;
	if (ours[0] !== theirs[0]) return false;
	// A half of the last digit may be rounded up or down.
	if (/\b(TEXT|FIXED)\(/.test(formula) && Math.abs(Number(ours[1]) - Number(theirs[1])) < 0.0100001) return true;
	return short(ours[1], isCoarse ? 6 : 12) === short(theirs[1], isCoarse ? 6 : 12);
}

/** Each function some times, with cells and with other functions as arguments. */
function formulasOf(maker) {
	const alone = functions.flatMap((one) => Array.from({ length: 3 }, () => maker.call(one, 0)));
	const nested = functions.flatMap((one) => Array.from({ length: 3 }, () => maker.call(one, 2)));
	const operators = Array.from({ length: 300 }, () => maker.expression('v', 3));
	return [...alone, ...nested, ...operators];
}

/** The workbook of a sheet with these formulas in column H, as this program writes it and as LibreOffice does: [before, after]. */
async function workbooks(formulas, folder) {
	const cells = cellsToRead();
	const rows = formulas.map((formula, row) => [...(cells[row] ?? ['', '', '', '', '', '']), '', `=${formula}`]);
	const headers = { authorization: `Bearer ${anna.token}`, 'content-type': 'text/csv' };
	const made = await request(gateway, 'POST', '/v2/sheets/import?name=random&format=jsonl&formulas=true', { headers, body: rows.map((row) => JSON.stringify(row)).join('\n') });
	assert.equal(made.status, 200, made.text);
	await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.range(${made.json.id}) WHERE stale`)) === '0', 'the values', 60000);
	const exported = await request(gateway, 'GET', `/v2/sheets/${made.json.id}.xlsx`, { headers });
	assert.equal(exported.status, 200, exported.text);
	const [before_, after_] = ['ours', 'theirs'].map((name) => path.join(folder, name));
	for (const name of [before_, after_]) fs.mkdirSync(name);
	fs.writeFileSync(path.join(before_, 'random.xlsx'), exported.body);
	throughLibreOffice([path.join(before_, 'random.xlsx')], after_, path.join(folder, 'profile'));
	return [before_, after_].map((name) => path.join(name, 'random.xlsx'));
}

describe('random formulas', () => {
	before(async () => {
		cluster = await Cluster.start();
		[gateway] = cluster.gateways;
		calc = startCalc(cluster);
		anna = await register(gateway);
		await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
	});
	after(async () => {
		await calc?.stop();
		await cluster?.stop();
	});

	test('have the values that LibreOffice computes', async (context) => {
		const wrong = [];
		for (let round = 0; round < rounds; round++) {
			const formulas = formulasOf(new FormulaMaker(randomFrom(seed + round)));
			const folder = path.join(cluster.directory, `round-${round}`);
			fs.mkdirSync(folder);
			giveToService(folder);
			const [ours, theirs] = await workbooks(formulas, folder);
			const list = path.join(folder, 'pairs.json');
			fs.writeFileSync(list, JSON.stringify([['random', ours, theirs]]));
			const differences = JSON.parse(execFileSync('/usr/bin/python3', [path.join(repository, 'tests/lib/workbook_compare.py'), list], { maxBuffer: 1 << 30 }));
			const shown = differences.filter(([, , place, what]) => what === 'shown' && place.startsWith('H'));
			const differ = shown.map(([, , place, , a, b]) => [formulas[Number(place.slice(1)) - 1], a, b]).filter(([formula, a, b]) => !isSame(formula, a, b));
			const unknown = differ.filter(([formula]) => !known.some(([pattern]) => pattern.test(formula)));
			context.diagnostic(`${formulas.length} formulas, ${differ.length} differ as it is known, but ${unknown.length}`);
			wrong.push(...unknown);
		}
		assert.deepEqual(wrong.slice(0, 50), []);
	});
});
