// merging.test.ts - no content is deleted by a merge without a question that names its cell.
import { ICommandService } from '@univerjs/core';
import { expect, test, vi } from 'vitest';
import { Merging } from '../../src/view/input/merging';

vi.mock('../../src/i18n', () => ({ t: (name: string) => name }));

const merge = 'sheet.command.add-worksheet-merge';

test('a cell that others write while the question is open is asked about, also if the grid does not show it yet', async () => {
	const rows: Record<number, Record<number, { v: string }>> = { 0: { 0: { v: 'stays' }, 1: { v: 'named' } } };
	let arrived: (() => void)[] = [];
	const asked: string[][] = [];
	const executed: string[] = [];
	const answers: ((yes: boolean) => void)[] = [];
	const events = {
		beforeChange: () => arrived.splice(0).forEach((show) => show()),
		confirmMerge: (_: string[], cells: string[]) => new Promise<boolean>((answer) => (asked.push(cells), answers.push(answer))),
	};
	const merging: Merging = new Merging({
		injector: {
			get: (service: unknown) =>
				service === ICommandService && { executeCommand: (id: string, params: unknown) => void (merging.holds(id, params) || executed.push(id)) },
		},
		sheet: { getMergeData: () => [], getCellMatrix: () => ({ getMatrix: () => rows }) },
		pointers: { track: (ranges: unknown) => ({ ranges, end() {} }) },
		events,
		readOnly: () => false,
	} as never);
	const selection = { startRow: 0, endRow: 0, startColumn: 0, endColumn: 2 };
	expect(merging.holds(merge, { selections: [selection], value: undefined })).toBe(true);
	await vi.waitFor(() => expect(asked).toEqual([['B1']]));
	arrived.push(() => (rows[0]![2] = { v: 'theirs' }));
	answers[0]!(true);
	await vi.waitFor(() => expect(asked).toEqual([['B1'], ['B1', 'C1']]));
	expect(executed).toEqual([]);
	answers[1]!(true);
	await vi.waitFor(() => expect(executed).toEqual([merge]));
});
