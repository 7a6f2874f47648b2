// guard.test.ts - each change that a command of the user makes in the grid is given to the page, or reported as not saved.
import {
	CommandService,
	CommandType,
	ConfigService,
	DesktopLogService,
	ICommandService,
	IConfigService,
	type IExecutionOptions,
	ILogService,
	Injector,
	IUndoRedoService,
} from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { expect, test, vi } from 'vitest';
import type { CellState } from '../src/sheet/mirror';
import type { Change } from '../src/sheet/undo';
import { Guard } from '../src/view/input/guard';

vi.mock('../src/i18n', () => ({ t: (name: string) => name }));

const setValues = 'sheet.mutation.set-range-values';

/** A grid of one column, with a guard; `read` may fail. */
function open() {
	const cells = new Map<number, string>();
	const changed: string[] = [];
	const unsaved: string[] = [];
	const grid = {
		readOnly: false,
		fails: (_row: number) => false,
		onChanges: (changes: Change[]) => void changed.push(...changes.map(({ row, after }) => `${row}=${after.content}`)),
	};
	const read = (row: number): CellState => {
		if (grid.fails(row)) throw new Error('unreadable');
		return { content: cells.get(row) ?? '', style: null };
	};
	const injector = new Injector([
		[ILogService, { useClass: DesktopLogService }],
		[IConfigService, { useClass: ConfigService }],
		[ICommandService, { useClass: CommandService }],
		[IUndoRedoService, { useValue: { pushUndoRedo() {}, _updateStatus() {}, _undoRedoStatus$: { next() {} } } as never }],
		[SheetsSelectionsService, { useValue: { getCurrentSelections: () => [] } as never }],
	]);
	const commands = injector.get(ICommandService);
	const handler = (_: unknown, { cellValue }: { cellValue: Record<number, { 0: { v: string } }> }) => {
		for (const [
			row,
			{
				0: { v },
			},
		] of Object.entries(cellValue))
			cells.set(Number(row), v);
		return true;
	};
	commands.registerCommand({ id: setValues, type: CommandType.MUTATION, handler: handler as never });
	const nothing = () => {};
	const events = {
		beforeChange: nothing,
		lacks: () => null,
		onBlocked: (kind: string) => unsaved.push(kind),
		onChanges: (changes: Change[]) => grid.onChanges(changes),
		onUnsaved: (edits: { row: number; content?: string }[]) => unsaved.push(...edits.map(({ row, content }) => `${row}=${content}`)),
	};
	const typing = { allows: () => true, reported: nothing };
	const pointers = { refuses: () => false };
	new Guard({
		injector,
		unitId: 'book',
		sheet: { getCellRaw: () => ({ f: '=1' }) },
		contents: { read, stores() {} },
		extent: {},
		layout: { take: () => [] },
		events,
		typing,
		pointers,
		readOnly: () => grid.readOnly,
		isFocused: () => true,
	} as never);
	const write = (row: number, v: string, options?: IExecutionOptions) =>
		commands.syncExecuteCommand(setValues, { cellValue: { [row]: { 0: { v } } } }, options);
	return { commands, grid, write, changed, unsaved };
}

test('what the user writes is reported, also if a listener of Univer fails', async () => {
	const { commands, write, changed, unsaved } = open();
	commands.onCommandExecuted(() => {
		throw new Error('a listener');
	});
	expect(() => write(1, 'typed')).toThrow('a listener');
	await Promise.resolve();
	expect([changed, unsaved]).toEqual([['1=typed'], []]);
});

test('a cell that cannot be read is named, and keeps no other change from being reported', async () => {
	const { grid, write, changed, unsaved } = open();
	grid.fails = (row) => row === 1;
	write(1, 'poison');
	write(2, 'typed');
	await Promise.resolve();
	write(3, 'later');
	await Promise.resolve();
	expect([changed, unsaved]).toEqual([['2=typed', '3=later'], ['1=undefined']]);
});

test('what the page cannot take is reported as not saved, with its content', async () => {
	const { grid, write, changed, unsaved } = open();
	const { onChanges } = grid;
	grid.onChanges = () => {
		throw new Error('the queue');
	};
	write(1, 'lost');
	await Promise.resolve();
	grid.onChanges = onChanges;
	write(2, 'later');
	await Promise.resolve();
	expect([changed, unsaved]).toEqual([['2=later'], ['1=lost']]);
});

test("only the edits of others and the results of formulas are not the user's", async () => {
	const { write, changed } = open();
	write(1, 'others', { fromCollab: true });
	write(2, 'result', { onlyLocal: true, fromFormula: true, applyFormulaCalculationResult: true });
	write(4, '=A1', { onlyLocal: true, fromFormula: true });
	write(3, 'by Univer, later', { onlyLocal: true });
	await Promise.resolve();
	expect(changed).toEqual(['3=by Univer, later']);
});

test('a change without the role is refused with a message, and is not in the grid', async () => {
	const { grid, write, changed, unsaved } = open();
	grid.readOnly = true;
	write(1, 'refused');
	await Promise.resolve();
	grid.readOnly = false;
	write(1, 'typed');
	await Promise.resolve();
	expect([changed, unsaved]).toEqual([['1=typed'], ['role']]);
});
