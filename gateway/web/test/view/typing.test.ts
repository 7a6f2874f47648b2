// typing.test.ts - what becomes of text that may not go into its cell, or that Univer has failed to write.
import { KeyCode } from '@univerjs/ui';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DOCS_NORMAL_EDITOR_UNIT_ID_KEY } from '@univerjs/core';
import { Typing } from '../../src/view/input/typing';

class Target {
	id = `__editor_${DOCS_NORMAL_EDITOR_UNIT_ID_KEY}`;
	readonly matches = () => false;
}

const close = 'sheet.operation.set-cell-edit-visible';

/** A window, and a column of cells of which the first is selected. */
function open(patterns: Record<number, string> = {}) {
	const window = new EventTarget();
	const input = new Target();
	vi.stubGlobal('window', window);
	vi.stubGlobal('HTMLElement', Target);
	vi.stubGlobal('document', { activeElement: input, querySelector: () => null });
	vi.stubGlobal('navigator', { language: 'en-US' });
	const state = { row: 0, locked: true, isOpen: false, text: null as string | null, cells: new Map<number, string>() };
	const offered: string[] = [];
	const unsaved: string[] = [];
	const injector = {
		get: () => ({
			getEditLocation: () => ({ row: state.row, column: 0 }),
			getContextValue: () => false,
			getFocusedUnit: () => null,
			focusUnit() {},
			getRenderById: () => undefined,
		}),
	};
	const typing = new Typing({
		host: { querySelector: () => null, closest: () => null } as never,
		injector: () => injector as never,
		unitId: 'book',
		editor: {
			get isOpen() {
				return state.isOpen;
			},
			text: () => state.text,
		},
		read: (row) => {
			if (state.cells.get(row) === 'unreadable') throw new Error('unreadable');
			return { content: state.cells.get(row) ?? '', style: patterns[row] ? { n: { pattern: patterns[row] } } : null };
		},
		events: {
			refusal: () => (state.locked ? 'locked' : null),
			onRefusedText: ({ row, content }) => offered.push(`${row}=${content}`),
			onUnsaved: (edits) => unsaved.push(...edits.map(({ row, content }) => `${row}=${content}`)),
		},
	});
	const fire = (type: string, fields: object) => {
		const event = Object.assign(new Event(type, { cancelable: true }), fields);
		Object.defineProperty(event, 'target', { value: input });
		window.dispatchEvent(event);
		return event;
	};
	const key = (key: string) => fire('keydown', { key });
	const type = (text: string) => [...text].forEach((data) => (key(data), fire('beforeinput', { data })));
	/** Enter in the open editor. */
	const enter = (text: string) => {
		Object.assign(state, { locked: false, isOpen: true, text });
		typing.allows(close, { visible: false, keycode: KeyCode.ENTER });
		state.isOpen = false;
	};
	return { typing, state, offered, unsaved, fire, key, type, enter };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

test('refused text is offered as its cell would take it', () => {
	const { type, offered } = open({ 0: '@' });
	type('007');
	type('=1');
	vi.runAllTimers();
	expect(offered).toEqual(['0=007=1']);
	const text = open({ 0: '@' });
	text.type('1/2/2024');
	vi.runAllTimers();
	expect(text.offered).toEqual(['0=1/2/2024']);
});

test('Backspace takes back the last letter of it, and nothing of the cell', () => {
	const { type, key, offered } = open();
	type('ab👍🏽');
	expect(key('Backspace').defaultPrevented).toBe(true);
	type('c');
	vi.runAllTimers();
	expect(offered).toEqual(['0=abc']);
	type('x');
	key('Backspace');
	expect(key('Backspace').defaultPrevented).toBe(false);
	vi.runAllTimers();
	expect(offered).toEqual(['0=abc']);
});

test('refused text moves with its cell, with its references, and is given back if that is deleted', () => {
	const { typing, state, type, offered } = open();
	state.row = 4;
	type('=A2');
	expect(typing.move({ kind: 'insertRows', at: 0, n: 2 })).toBe(null);
	state.row = 6;
	type('+1');
	vi.runAllTimers();
	expect(offered).toEqual(['6==A4+1']);
	type('lost');
	expect(typing.move({ kind: 'deleteRows', at: 5, n: 2 })).toBe('lost');
	vi.runAllTimers();
	expect(offered.length).toBe(1);
});

test('an error while the editor closes counts only if the cell lacks the text afterwards', () => {
	const { typing, state, unsaved, fire, enter } = open();
	const write = (run: () => void) => {
		enter('typed');
		run();
		vi.runAllTimers();
		typing.closed();
	};
	const fail = () => fire('error', { error: new Error('some listener') });
	write(() => fire('error', { message: 'ResizeObserver loop completed with undelivered notifications.', error: null }));
	write(() => {
		fail();
		typing.reported([{ row: 0, col: 0 }]);
	});
	write(() => {
		fail();
		state.cells.set(0, 'typed');
	});
	expect(unsaved).toEqual([]);
	state.cells.set(0, 'old');
	write(() => (fail(), fail()));
	expect(unsaved).toEqual(['0=typed']);
	state.cells.set(0, 'unreadable');
	write(() => fire('unhandledrejection', { reason: new Error('the write') }));
	expect(unsaved).toEqual(['0=typed', '0=typed']);
});
