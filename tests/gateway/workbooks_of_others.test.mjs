/*
 * workbooks_of_others.test.mjs - workbooks that Excel, LibreOffice and other programs have written become books, and these workbooks
 * again, which are compared cell by cell, as openpyxl reads them (docs/design/workbooks.md).
 *
 * Debian packages have the files of Excel (scripts/test-data). The others are made here.
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
import { roundsToRun } from '../lib/processes.mjs';
import { makeWorkbooks, packagedFiles, throughLibreOffice } from '../lib/workbook_makers.mjs';

let cluster;
let gateway;
let calc;
let anna;
const books = [];
/** Larger files, with 120,000 cells, are in the long form. */
const largest = roundsToRun(60_000, 1 << 30);

describe('workbooks of others', () => {
	before(async () => {
		cluster = await Cluster.start();
		[gateway] = cluster.gateways;
		calc = startCalc(cluster);
		anna = await register(gateway);
		await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
		const made = path.join(cluster.directory, 'made');
		for (const folder of [made, path.join(cluster.directory, 'exported')]) fs.mkdirSync(folder);
		const packaged = packagedFiles('.xlsx').filter((name) => fs.statSync(name).size <= largest);
		const files = [...packaged, ...makeWorkbooks(made)];
		books.push(...files.map((file) => ({ name: path.basename(file, '.xlsx'), file })));
	});
	after(async () => {
		await calc?.stop();
		await cluster?.stop();
	});

	const bearer = () => ({ authorization: `Bearer ${anna.token}` });
	async function imported(name, bytes) {
		const answer = await request(gateway, 'POST', `/v2/books/import?name=${encodeURIComponent(name)}`, { headers: { ...bearer(), 'content-length': bytes.length }, body: bytes });
		assert.equal(answer.status, 201, `${name}: ${answer.text}`);
		return answer.json;
	}
	async function exported({ id }) {
		const answer = await request(gateway, 'GET', `/v2/books/${id}.xlsx`, { headers: bearer() });
		assert.equal(answer.status, 200, answer.text);
		return answer.body;
	}
	const cellsOf = ({ tabs }) => Promise.all(tabs.map(({ id }) => cluster.rows(`SELECT a1, content, style FROM sheet.range(${id}, NULL, true)`)));
	const computed = ({ tabs }) =>
		waitUntil(
			async () => (await cluster.psql(`SELECT count(*) FROM unnest('{${tabs.map(({ id }) => id)}}'::bigint[]) id, sheet.range(id) r WHERE r.stale`)) === '0',
			'the values',
		);

	test('forty workbooks of other programs become books', async () => {
		for (const book of books) Object.assign(book, await imported(book.name, fs.readFileSync(book.file)));
		assert.ok(books.length >= 40, `${books.length} workbooks`);
	});

	/** What differs and should: [what, workbook, why]. */
	const known = [
		['unreadable', /^(cloneEmptyWorksheetExample|cloneWorksheetExample|datasets)$/, 'openpyxl does not read it; LibreOffice does'],
		['shown', /^xlsxwriter_/, 'XlsxWriter computes no formulas: it stores 0'],
		['shown', /^loadExample$/, 'RAND()'],
		['shown', /^readTest$/, 'a formula that is an error: it becomes a cell with this error'],
		['cell', /^skip_empty_lines$/, 'an empty cell, which LibreOffice leaves out of one of them'],
		['tab', /^xlsxwriter_features$/, 'a tab that is a chart, which the answer lists'],
	];

	/** Where workbooks differ that should not: [name, tab, cell, what, before, after]. */
	function differencesOf(pairs) {
		const list = path.join(cluster.directory, 'pairs.json');
		fs.writeFileSync(list, JSON.stringify(pairs));
		const script = path.join(repository, 'tests/lib/workbook_compare.py');
		const differences = JSON.parse(execFileSync('/usr/bin/python3', [script, list], { maxBuffer: 1 << 30 }));
		// Programs draw pivot tables into their tabs anew.
		const tabsThatLost = (one) => books.flatMap(({ name, not_carried: lost }) => lost.filter(({ what }) => what === one).map(({ tab }) => `${name}/${tab}`));
		const pivots = tabsThatLost('pivot tables');
		// LibreOffice gives a cell the font of the first part of its text.
		const rich = tabsThatLost('formats of parts of texts');
		const isKnown = ([name, tab, , what]) =>
			pivots.includes(`${name}/${tab}`) || (what === 'font' && rich.includes(`${name}/${tab}`)) || known.some(([one, names]) => one === what && names.test(name));
		return differences.filter((one) => !isKnown(one)).slice(0, 100);
	}

	test('they are workbooks again, which have the same cells', async () => {
		for (const book of books) {
			await computed(book);
			book.exported = path.join(cluster.directory, 'exported', `${book.id}.xlsx`);
			fs.writeFileSync(book.exported, await exported(book));
		}
		assert.deepEqual(differencesOf(books.map(({ name, file, exported: after_ }) => [name, file, after_])), []);
	});

	test('LibreOffice shows the same cells of both', () => {
		const folders = ['sources', 'opened-sources', 'opened-exported'].map((name) => path.join(cluster.directory, name));
		for (const folder of folders) fs.mkdirSync(folder);
		const [sources, openedSources, openedExported] = folders;
		for (const { id, file } of books) fs.copyFileSync(file, path.join(sources, `${id}.xlsx`));
		throughLibreOffice(books.map(({ id }) => path.join(sources, `${id}.xlsx`)), openedSources, path.join(cluster.directory, 'profile'));
		throughLibreOffice(books.map(({ exported: file }) => file), openedExported, path.join(cluster.directory, 'profile'));
		const pairs = books.map(({ name, id }) => [name, path.join(openedSources, `${id}.xlsx`), path.join(openedExported, `${id}.xlsx`)]);
		assert.deepEqual(differencesOf(pairs), []);
	});

	test('and imported once more, the books have the same cells', async () => {
		for (const book of books) {
			const again = await imported('again', fs.readFileSync(book.exported));
			assert.deepEqual(await cellsOf(again), await cellsOf(book), book.name);
		}
	});
});
