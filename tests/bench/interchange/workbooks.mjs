/*
 * workbooks.mjs - the phase xlsx of the benchmark `interchange`: a workbook with everything that is carried, and one of XLSX_CELLS
 * cells, become books and workbooks again.
 */
import path from 'node:path';
import { register, request } from '../../lib/client.mjs';
import { waitUntil } from '../../lib/cluster.mjs';
import { differences, expected, makeWorkbook, parseWorkbook, workbookType } from '../../lib/workbook.mjs';
import { watchTree } from '../common/site.mjs';

const columns = 20;

export async function workbooks(cluster, calc, cells, report) {
	const [gateway] = cluster.gateways;
	const user = await register(gateway);
	const file = path.join(cluster.directory, 'workbook.xlsx');
	const authorization = `Bearer ${user.token}`;
	await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
	/** The workbook after it was a book, and the seconds of both ways. */
	const there = async (bytes) => {
		let began = performance.now();
		const headers = { authorization, 'content-type': workbookType, 'content-length': bytes.length };
		const made = await request(gateway, 'POST', '/v2/books/import?name=workbook', { headers, body: bytes, timeoutMs: 200000 });
		if (made.status !== 201) throw new Error(made.text);
		const imported = (performance.now() - began) / 1000;
		// The file has the values that are there.
		await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.computed c WHERE c.seq < sheet.last_seq(c.sheet_id)')) === '0', 'the formulas to be computed', 60000);
		began = performance.now();
		const got = await request(gateway, 'GET', `/v2/books/${made.json.id}.xlsx`, { headers: { authorization }, timeoutMs: 200000 });
		if (got.status !== 200) throw new Error(got.text);
		return { back: got.body, imported, exported: (performance.now() - began) / 1000 };
	};
	let wrong = 0;
	const bytes = makeWorkbook(file);
	wrong += differences(expected(parseWorkbook(file, (await there(bytes)).back)), expected(parseWorkbook(file, bytes))).length;
	const large = makeWorkbook(file, cells / columns, columns);
	const stop = watchTree(calc.pid);
	const { back, imported, exported } = await there(large);
	const most = stop();
	report('xlsx_import_s', [imported]);
	report('xlsx_export_s', [exported]);
	report('xlsx_calc_mb', [most]);
	// All cells of the large one take openpyxl minutes.
	const few = makeWorkbook(file, 5000, columns);
	wrong += differences(expected(parseWorkbook(file, (await there(few)).back)), expected(parseWorkbook(file, few))).length;
	if (back.length < large.length / 4) throw new Error(`${back.length} bytes came back`);
	report('xlsx_cells_wrong', [wrong]);
}
