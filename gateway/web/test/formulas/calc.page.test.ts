// calc.page.test.ts - the page and calc show the same for each function, and for random formulas.
import { expect, test } from 'vitest';
import { ComputedSheet } from '../../../../calc/sheet';
import { valueContent } from '../../../../calc/values';
import { cellName } from '../../src/content';
import { ByteWriter } from '../../src/v2/bytes';
import { writeEdits } from '../../src/v2/edits';
import type { CellEdit } from '../../src/v2/messages';
import { evaluator, Page, wait } from './computing_page';
import { data, randomFormulas } from './random_formulas';

const rows = 60;
const firstCol = 8;
const cols = 10;

/** What calc stores for these contents. */
async function stored(contents: Record<string, string>, places: Map<string, [number, number]>): Promise<Map<string, string | null>> {
	const writer = new ByteWriter();
	writer.byte(1);
	writer.number(1);
	writer.number(0);
	writeEdits(
		writer,
		Object.entries(contents).map(([name, content]): CellEdit => ({ row: places.get(name)![0], col: places.get(name)![1], content })),
	);
	const sheet = new ComputedSheet(evaluator, [], false, { alive: () => {}, pause: wait });
	sheet.setNames([]);
	sheet.setProperties(rows, null);
	sheet.addCells(rows, writer.finish());
	const values = (await sheet.compute(1))!;
	return new Map(values.row.map((row, i) => [cellName(row, values.col[i]!), values.value[i]!]));
}

test('of each function and of random formulas', { timeout: 600_000 }, async () => {
	const formulas = randomFormulas(29, 10_000);
	let same = 0;
	let errors = 0;
	while (formulas.length > 0) {
		const contents: Record<string, string> = {};
		const places = new Map<string, [number, number]>();
		const put = (row: number, col: number, content: string) => {
			places.set(cellName(row, col), [row, col]);
			if (content !== '') contents[cellName(row, col)] = content;
		};
		data.forEach((line, row) => line.forEach((content, col) => put(row, col, content)));
		for (let row = 0; row < rows; row++) for (let col = firstCol; col < firstCol + cols && formulas.length > 0; col++) put(row, col, formulas.pop()!);
		const page = new Page();
		page.write(contents);
		await page.settled();
		const values = await stored(contents, places);
		for (const [name, content] of Object.entries(contents)) {
			if (!content.startsWith('=')) continue;
			const cell = page.raw(name)!;
			const shown = valueContent(
				{ v: cell.v ?? null, t: cell.t ?? null, p: cell.p ?? null, s: { n: page.format(name) ? { pattern: page.format(name)! } : null } },
				undefined,
			);
			expect([content, values.get(name)]).toEqual([content, shown]);
			same++;
			errors += Number(/^#/.test(shown));
		}
		page.computing.dispose();
	}
	expect(same).toBeGreaterThanOrEqual(10_000);
	// Not all of them are errors.
	expect(errors).toBeLessThan(same * 0.9);
});
