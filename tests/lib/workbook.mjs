/* workbook.mjs - workbooks (.xlsx) for tests, made and read by openpyxl (workbook.py), and compared. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { repository } from './cluster.mjs';

export const workbookType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
export const script = path.join(repository, 'tests/lib/workbook.py');
const python = (...args) => execFileSync('/usr/bin/python3', [script, ...args], { maxBuffer: 1 << 30 });

/** The bytes of a workbook with everything that is carried, or of one with so many cells. */
export function makeWorkbook(file, rows, columns) {
	if (rows === undefined) python('make', file);
	else python('big', file, String(rows), String(columns));
	return fs.readFileSync(file);
}

/** One with tables and names. */
export function makeTables(file) {
	python('tables', file);
	return fs.readFileSync(file);
}

/** Its tabs, with all cells. */
export function parseWorkbook(file, bytes) {
	fs.writeFileSync(file, bytes);
	return JSON.parse(python('read', file));
}

/** What a workbook of makeWorkbook() has after it was a book: cells of its default font have the sheet's, and colours of themes are colours. */
export function expected(tabs) {
	const colours = { B2: 'FFC0504D', B3: 'FFFF0000' };
	for (const tab of tabs) {
		// Programs store the values that an array has in other cells, or leave them out.
		if (tab.arrays.E10) for (const name of ['E11', 'E12']) delete tab.cells[name];
		for (const [name, cell] of Object.entries(tab.cells)) {
			if (cell.font[0] === 'Calibri') cell.font[0] = 'Arial';
			if (tab.name === 'styles' && colours[name]) cell.font[7] = colours[name];
			if (tab.name === 'styles' && name === 'C2') cell.fill = 'FF95B3D7';
			for (const side of Object.values(cell.border)) side[1] ??= 'FF000000';
			delete cell.shown;
		}
	}
	return tabs;
}

/** Where two values differ, with both: an assertion would print all cells. */
export function differences(a, b, at = '') {
	if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return Object.is(a, b) ? [] : [[at, a, b]];
	return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) => differences(a[key], b[key], `${at}.${key}`));
}
