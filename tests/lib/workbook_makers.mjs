/* workbook_makers.mjs - workbooks as SheetJS writes them, and as LibreOffice and Gnumeric write workbooks of others. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import * as XLSX from '@e965/xlsx';
import { repository } from './cluster.mjs';

const rows = (n) => Array.from({ length: n }, (_, i) => [i, i / 3, `text ${i % 7}`, i % 2 === 0, '', `  ${i} `, i % 3 ? 'Größe & <x>' : "'quoted"]);

/** A workbook of SheetJS; `options` are those of its writer. */
function sheetJs(file, options) {
	const book = XLSX.utils.book_new();
	const sheet = XLSX.utils.aoa_to_sheet(rows(50));
	const set = (name, cell) => (sheet[name] = cell);
	set('H1', { t: 'n', f: 'SUM(A1:A50)', v: 1225 });
	set('H2', { t: 's', f: 'C1&"!"', v: 'text 0!' });
	set('H3', { t: 'e', f: '1/0', v: 7 });
	set('H4', { t: 'b', f: 'A1=0', v: true });
	set('H5', { t: 'n', v: 45351.5625, z: 'yyyy-mm-dd hh:mm' });
	set('H6', { t: 'n', v: 0.256, z: '0.0%' });
	set('H7', { t: 'n', f: "'Second tab'!A1*2", v: 2 });
	set('H8', { t: 's', v: 'two\r\nlines\ttab' });
	set('H9', { t: 'e', v: 0x2a });
	sheet['!ref'] = 'A1:H50';
	sheet['!merges'] = [XLSX.utils.decode_range('A60:B61')];
	sheet['!cols'] = [{ wch: 20 }, { hidden: true }];
	XLSX.utils.book_append_sheet(book, sheet, 'Erste');
	XLSX.utils.book_append_sheet(book, XLSX.utils.aoa_to_sheet([[1], [new Date(Date.UTC(2024, 1, 29))]], { UTC: true }), 'Second tab');
	fs.writeFileSync(file, XLSX.write(book, { type: 'buffer', bookType: 'xlsx', ...options }));
}

/** The files of Debian packages (scripts/test-data) whose names end so. */
export function packagedFiles(...ends) {
	const folder = process.env.PG_SHEET_TEST_DATA;
	if (!folder) throw new Error('PG_SHEET_TEST_DATA is not set: scripts/test-data DIR unpacks the files');
	const names = fs.readdirSync(folder, { recursive: true });
	return names.filter((name) => ends.some((end) => name.endsWith(end))).map((name) => path.join(folder, name)).sort();
}

const soffice = '/usr/bin/soffice';

/** Computes all formulas when it opens a workbook, instead of the values that are stored in it. */
const alwaysCompute = `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
`;

/** Workbooks as LibreOffice writes them, with what it computes, in another folder under the same names. */
export function throughLibreOffice(files, folder, profile) {
	fs.mkdirSync(path.join(profile, 'user'), { recursive: true });
	fs.writeFileSync(path.join(profile, 'user/registrymodifications.xcu'), alwaysCompute);
	const filter = 'xlsx:Calc MS Excel 2007 XML';
	execFileSync(soffice, [`-env:UserInstallation=file://${profile}`, '--headless', '--norestore', '--convert-to', filter, '--outdir', folder, ...files], {
		stdio: ['ignore', 'pipe', 'pipe'],
		env: { ...process.env, HOME: profile },
		timeout: 240_000,
	});
}

/** Makes workbooks in this folder: [name, file]. */
export function makeWorkbooks(folder) {
	const lib = path.join(repository, 'tests/lib');
	execFileSync('/usr/bin/python3', [path.join(lib, 'workbook_makers.py'), folder]);
	sheetJs(path.join(folder, 'sheetjs.xlsx'), {});
	sheetJs(path.join(folder, 'sheetjs_shared.xlsx'), { bookSST: true, compression: true });
	return fs.readdirSync(folder).filter((name) => name.endsWith('.xlsx')).sort().map((name) => path.join(folder, name));
}
