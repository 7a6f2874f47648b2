// writing.ts - how guests write in the rectangle that a share link opens. part.ts shows its cells; here are the cursor, the
// field in a cell, and what was typed until it is in the sheet. Loaded with it.
//
// With each text goes what the guest has seen in the cell, and the size of the rectangle: the gateway refuses the text if the
// cell has another content, or rows or columns have come or gone inside. A refused text is kept in a list, and offered.
import { cellName } from '../content';
import { button, explain, h, notify } from '../dom';
import { t } from '../i18n';
import { writePart, type Guest, type PartText } from './http';

/** What a cell has: a text, or null for a formula, which guests do not see. */
export type Content = string | null;

interface Typed extends PartText {
	/** It is in the sheet; the next answer that is asked for has it. */
	stored: boolean;
}

/** The field in a cell. */
interface Field {
	row: number;
	col: number;
	input: HTMLTextAreaElement;
	seen: Content;
	size: [rows: number, cols: number];
	/** What it began with. */
	before: string;
}

export interface WritingOptions {
	guest: Guest;
	/** Has the table. */
	area: HTMLElement;
	/** The rows and columns of the part, and those that are shown. */
	size(): { rows: number; cols: number; shown: number };
	/** What the sheet has, as far as the page knows. */
	stored(row: number, col: number): Content;
	/** Shows the cell anew. */
	show(row: number, col: number): void;
	/** The field was closed: what has come meanwhile can be shown. */
	closed(): void;
	/** Asks for the cells. */
	read(): void;
}

const keyOf = (row: number, col: number) => `${row},${col}`;

export function partWriting({ guest, area, size, stored, show, closed, read }: WritingOptions) {
	/** Refused texts. */
	const refused = h('ul', { class: 'unsent refused', role: 'alert' });
	const typed = new Map<string, Typed>();
	let current = { row: 0, col: 0 };
	let field: Field | null = null;
	let mayWrite = false;
	let ended = false;
	let sending = Promise.resolve();
	let waiting = 0;

	const contentOf = (row: number, col: number): Content => typed.get(keyOf(row, col))?.content ?? stored(row, col);
	const cellAt = ({ row, col }: { row: number; col: number }): HTMLTableCellElement | undefined => area.querySelector('table')?.rows[row]?.cells[col];
	const sizeNow = (): [number, number] => [size().rows, size().cols];

	// ---- what was typed ----

	function write(row: number, col: number, content: string, seen: Content, of: [number, number]): void {
		const text: Typed = { row, col, content, seen, size: of, stored: false };
		typed.set(keyOf(row, col), text);
		show(row, col);
		waiting++;
		sending = sending.then(() => send(text)).finally(() => waiting--);
	}

	async function send(text: Typed): Promise<void> {
		if (ended) return;
		try {
			const changed = await writePart(guest, text);
			// Of a request whose answer was lost, the cell has the text already.
			if (!changed || changed.content === text.content) {
				text.stored = true;
				read();
				return;
			}
			const { content } = changed;
			refuse(text, content === null ? t('part.nowFormula') : content === '' ? t('part.nowEmpty') : t('part.now', { text: content }), changed);
		} catch (error) {
			refuse(text, explain(error), null);
		}
		read();
	}

	/** now: what the cell has instead, if the gateway has said so. */
	function refuse(text: PartText, why: string, now: { content: Content } | null): void {
		const { row, col, content } = text;
		if (typed.get(keyOf(row, col)) === text) {
			typed.delete(keyOf(row, col));
			show(row, col);
		}
		if (ended) return;
		const remove = () => {
			item.remove();
			cellAt(current)?.focus();
		};
		const again = () => {
			const [rows, cols] = sizeNow();
			// Another cell may have this place now.
			if (rows !== text.size[0] || cols !== text.size[1] || !mayWrite) return notify(t(mayWrite ? 'error.moved' : 'error.role'), 'problem');
			remove();
			write(row, col, content, now ? now.content : text.seen, text.size);
		};
		const copy = () =>
			void (navigator.clipboard?.writeText(content) ?? Promise.reject(new Error('no clipboard'))).then(
				() => notify(t('part.copied')),
				() => notify(t('part.copyByHand'), 'problem'),
			);
		const item = h(
			'li',
			{},
			h('p', {}, t('part.refused', { cell: cellName(row, col) }), ' ', why),
			h('p', { class: 'text' }, content === '' ? t('part.emptied') : content),
			h(
				'p',
				{ class: 'actions' },
				content.startsWith('=') ? null : button(t('part.again'), again),
				button(t('part.copy'), copy),
				button(t('part.drop'), remove),
			),
		);
		refused.append(item);
	}

	// ---- the field ----

	function open(begin: string | null): void {
		const cell = cellAt(current);
		if (!cell || field) return;
		const seen = contentOf(current.row, current.col);
		const input = h('textarea', {
			rows: 1,
			'aria-label': cellName(current.row, current.col),
			placeholder: seen === null && t('part.replacesFormula'),
			spellcheck: 'false',
		});
		const { width, height } = cell.getBoundingClientRect();
		field = { ...current, input, seen, size: sizeNow(), before: begin ?? seen ?? '' };
		input.value = field.before;
		Object.assign(input.style, { minWidth: `${width}px`, minHeight: `${height}px` });
		cell.classList.add('writing');
		cell.replaceChildren(input);
		// Another window may have the focus for a while.
		input.addEventListener('blur', () => document.hasFocus() && close(true, true));
		input.focus();
		input.setSelectionRange(input.value.length, input.value.length);
	}

	/** Closes the field. Returns false if the text cannot be taken, and stays in the field. */
	function close(take: boolean, left = false): boolean {
		if (!field) return true;
		const { row, col, input, seen, size: of } = field;
		const content = input.value.replace(/\r\n?/g, '\n');
		const changed = take && content !== (seen ?? '');
		const isFormula = changed && content.startsWith('=');
		if (isFormula && !left) {
			input.setAttribute('aria-invalid', 'true');
			notify(t('error.formula'), 'problem');
			return false;
		}
		field = null;
		if (isFormula) refuse({ row, col, content, seen, size: of }, t('error.formula'), null);
		else if (changed) write(row, col, content, seen, of);
		show(row, col);
		closed();
		return true;
	}

	// ---- the cursor ----

	/** The cell that Tab reaches. */
	function mark(): void {
		const { rows, cols, shown } = size();
		current = { row: Math.max(0, Math.min(current.row, rows - 1, shown - 1)), col: Math.max(0, Math.min(current.col, cols - 1)) };
		for (const other of area.querySelectorAll('td[tabindex="0"]')) other.setAttribute('tabindex', '-1');
		if (mayWrite) cellAt(current)?.setAttribute('tabindex', '0');
	}

	function move(rows: number, cols: number): void {
		current = { row: current.row + rows, col: current.col + cols };
		mark();
		cellAt(current)?.focus();
	}

	const moves: Record<string, [number, number]> = {
		...{ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] },
		...{ PageUp: [-20, 0], PageDown: [20, 0], Home: [0, -Infinity], End: [0, Infinity] },
	};

	function keyInField(event: KeyboardEvent): void {
		if (!field || event.isComposing) return;
		const { input } = field;
		const by = event.shiftKey ? -1 : 1;
		if (event.key === 'Enter' && event.altKey) input.setRangeText('\n', input.selectionStart, input.selectionEnd, 'end');
		else if (event.key === 'Enter') close(true) && move(by, 0);
		else if (event.key === 'Tab') close(true) && move(0, by);
		else if (event.key === 'Escape') {
			close(false);
			cellAt(current)?.focus();
		} else return;
		event.preventDefault();
		event.stopPropagation();
	}

	function keyInCell(event: KeyboardEvent): void {
		const { key } = event;
		const by = moves[key];
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		if (by) move(...by);
		else if (key === 'Enter' || key === 'F2') open(null);
		else if (key === 'Delete' || key === 'Backspace') {
			const seen = contentOf(current.row, current.col);
			if (seen !== '') write(current.row, current.col, '', seen, sizeNow());
		} else {
			// The field gets the key itself, also of an input method.
			if ([...key].length === 1 || key === 'Process') open('');
			return;
		}
		event.preventDefault();
	}

	/** A cell that is clicked is the current one. A double click opens its field, and so does tapping the current cell. */
	function pointed(event: MouseEvent): void {
		const cell = (event.target as HTMLElement).closest('td');
		if (!cell || field?.input === event.target) return;
		const row = (cell.parentElement as HTMLTableRowElement).rowIndex;
		const col = cell.cellIndex;
		const again = row === current.row && col === current.col;
		current = { row, col };
		mark();
		cellAt(current)?.focus();
		if (again && (event.detail > 1 || matchMedia('(pointer: coarse)').matches)) open(null);
	}

	area.addEventListener('keydown', (event) => {
		if (!mayWrite || !(event.target instanceof HTMLElement)) return;
		if (field) keyInField(event);
		else if (event.target.closest('td')) keyInCell(event);
	});
	area.addEventListener('click', (event) => mayWrite && pointed(event));

	return {
		refused,
		/** A text that is typed into the cell, and may not be in the sheet yet. */
		typed: (row: number, col: number): string | undefined => typed.get(keyOf(row, col))?.content,
		/** The table must stay as it is. */
		isOpen: () => field !== null,
		/** The role was told. Returns whether it is another one. */
		permit(may: boolean): boolean {
			if (may === mayWrite) return false;
			mayWrite = may;
			// The text is kept: it is refused.
			if (!may) close(true, true);
			return true;
		},
		/** The table was drawn anew. focused: a cell had the focus. */
		drawn(focused: boolean): void {
			const table = area.querySelector('table');
			if (mayWrite) {
				table?.setAttribute('role', 'grid');
				table?.setAttribute('aria-label', t('part.title'));
				for (const cell of area.querySelectorAll('td')) cell.setAttribute('tabindex', '-1');
			}
			mark();
			if (focused && mayWrite) cellAt(current)?.focus({ preventScroll: true });
		},
		/** A cell was shown anew. */
		cellShown(cell: HTMLElement, row: number, col: number, focused: boolean): void {
			if (mayWrite) cell.setAttribute('tabindex', row === current.row && col === current.col ? '0' : '-1');
			if (focused) cell.focus({ preventScroll: true });
		},
		/** What is in the sheet before the cells are asked for; to be given to settle() when they have come. */
		inSheet: (): [string, unknown][] => [...typed].filter(([, text]) => text.stored),
		settle(texts: [string, unknown][]): void {
			for (const [key, text] of texts) if (typed.get(key) === text) typed.delete(key);
		},
		/** The link opens nothing any more: what is in the field is kept with what was refused. */
		stop(): void {
			close(true, true);
		},
		/** Texts that would be lost. */
		unsaved: (): number => waiting + refused.childElementCount + (field && field.input.value !== field.before ? 1 : 0),
		end(): void {
			ended = true;
		},
	};
}
