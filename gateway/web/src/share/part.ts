// part.ts - the rectangle that a share link opens: a table, which follows the sheet. Guests of a link for editors write in it
// (writing.ts). Loaded at its first use.
import { ApiError } from '../api';
import { Msg } from '../answers';
import { isNumberText } from '../content';
import { bdi, button, explain, h, isSignedOut } from '../dom';
import { t } from '../i18n';
import type { Navigation } from '../main';
import { readPart, type Guest, type Part } from './http';
import { partWriting } from './writing';
import { knownStyle, plainStyle } from '../style';
import { enterAgain } from './guest';
import { switches } from '../pages/switches';

const refreshMs = 10000;
const aligns = ['', 'left', 'center', 'right', 'justify'];
/** So many rows are shown; the others on demand. */
const rowsAtOnce = 500;

interface CellStyle {
	bl?: number;
	it?: number;
	ht?: number;
	cl?: { rgb?: string };
	bg?: { rgb?: string };
}

function cellOf(content: string | null | undefined, style: unknown): HTMLElement {
	// The gateway sends no formulas: they may name cells outside the part.
	const text = content === null ? '= …' : (content ?? '').replace(/^'/, '');
	const cell = h('td', { class: content === null && 'formula', title: content === null && t('part.formulaHelp') }, text);
	const { bl, it, ht, cl, bg } = (knownStyle(plainStyle(style)) ?? {}) as CellStyle;
	const { style: css } = cell;
	css.textAlign = (ht && aligns[ht]) || (typeof content === 'string' && isNumberText(content) ? 'right' : '');
	if (bl) css.fontWeight = 'bold';
	if (it) css.fontStyle = 'italic';
	// Either colour alone may not be readable in a dark theme.
	if (cl?.rgb || bg?.rgb) Object.assign(css, { color: cl?.rgb ?? '#1c2421', backgroundColor: bg?.rgb ?? '#fff' });
	return cell;
}

/** Returns what tells of texts that would be lost, and what ends the page. */
export function showPart(root: HTMLElement, guest: Guest, navigation: Navigation): { unsaved(): number; end(): void } {
	const state = h('p', { class: 'part-state', role: 'status', 'data-state': 'connecting' }, t('editor.opening'));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const area = h('div', { class: 'cells', tabindex: 0, role: 'region', 'aria-label': t('part.title') });
	const again = button(t('guest.again'), () => void read(true), { hidden: true });
	const more = button(t('part.more'), () => ((shown += rowsAtOnce), draw()), { hidden: true });
	const ended = new AbortController();
	const help = h('p', { class: 'hint' }, t('part.help'));
	let part: Part | null = null;
	let cells = new Map<string, { content: string | null; style: unknown }>();
	let tag: string | null = null;
	let shown = rowsAtOnce;
	let timer: ReturnType<typeof setTimeout> | undefined;
	let reading = false;

	/** Cells have come that are not shown yet: a field is open. */
	let stale = false;
	let wanted = false;

	const cellAt = (row: number, col: number) => {
		const { content, style } = cells.get(`${row},${col}`) ?? {};
		return cellOf(writing.typed(row, col) ?? content, style);
	};

	const writing = partWriting({
		guest,
		area,
		size: () => ({ rows: part?.rows ?? 0, cols: part?.cols ?? 0, shown }),
		stored: (row, col) => {
			const cell = cells.get(`${row},${col}`);
			return cell ? cell.content : '';
		},
		show(row, col) {
			const old = area.querySelector('table')?.rows[row]?.cells[col];
			if (!old) return;
			const cell = cellAt(row, col);
			const focused = old.contains(document.activeElement);
			old.replaceWith(cell);
			writing.cellShown(cell, row, col, focused);
		},
		closed: () => stale && draw(),
		read: () => again.hidden && void read(),
	});

	function draw(): void {
		stale = writing.isOpen();
		if (!part || stale) return;
		const { scrollTop, scrollLeft } = area;
		const { rows, cols } = part;
		const focused = area !== document.activeElement && area.contains(document.activeElement);
		const line = (row: number) => h('tr', {}, ...Array.from({ length: cols }, (_, col) => cellAt(row, col)));
		area.replaceChildren(h('table', {}, h('tbody', {}, ...Array.from({ length: Math.min(rows, shown) }, (_, row) => line(row)))));
		writing.drawn(focused);
		Object.assign(area, { scrollTop, scrollLeft });
		more.hidden = rows <= shown;
	}

	function tell(kind: string, text: string, why = ''): void {
		state.dataset.state = kind;
		if (state.textContent !== text) state.textContent = text;
		if (problem.textContent !== why) problem.textContent = why;
	}

	/** The link opens nothing any more: what it has shown is not shown on. */
	function end(why: string): void {
		writing.stop();
		part = tag = null;
		cells.clear();
		area.replaceChildren();
		more.hidden = true;
		again.hidden = false;
		tell('stopped', t('part.ended'), why);
	}

	/** asked: the visitor has asked to enter again. */
	async function read(asked = false): Promise<void> {
		clearTimeout(timer);
		wanted = reading;
		if (reading || ended.signal.aborted) return;
		reading = true;
		again.hidden = true;
		let goesOn = true;
		try {
			const inSheet = writing.inSheet();
			const answer = await readPart(guest, tag);
			if (ended.signal.aborted) return;
			writing.settle(inSheet);
			if (answer.part) {
				({ part, tag } = answer);
				cells = new Map(answer.part.cells.map(([row, col, content, style]) => [`${row},${col}`, { content, style }]));
			}
			const other = writing.permit(answer.writes);
			if (other) help.textContent = t(answer.writes ? 'part.writeHelp' : 'part.help');
			if (answer.part || other || inSheet.length > 0) draw();
			tell('connected', t('part.current'));
		} catch (error) {
			if (ended.signal.aborted) return;
			const entering = isSignedOut(error) ? await enterAgain(guest, asked) : null;
			if (ended.signal.aborted) return;
			goesOn = entering === null || entering === 'entered';
			if (entering === 'entered') setTimeout(() => void read());
			else if (entering !== null) end(t(entering === 'ended' ? 'guest.ended' : 'guest.againHelp'));
			else if (error instanceof ApiError && error.msg !== null) end(error.msg === Msg.NoPermission ? t('part.gone') : explain(error));
			else tell('reconnecting', t('part.old'), explain(error));
		} finally {
			reading = false;
		}
		if (goesOn && wanted) timer = setTimeout(() => void read());
		else if (goesOn && !document.hidden) timer = setTimeout(() => void read(), refreshMs);
	}

	const { signal } = ended;
	const look = () => !document.hidden && again.hidden && void read();
	document.addEventListener('visibilitychange', look, { signal });
	window.addEventListener('online', look, { signal });
	document.title = `${t('part.title')} – ${t('product')}`;
	root.replaceChildren(
		h(
			'header',
			{ class: 'bar' },
			h('span', { class: 'brand' }, h('span', { class: 'logo', 'aria-hidden': 'true' }), t('product')),
			state,
			h('span', { class: 'space' }),
			h('span', { class: 'user' }, bdi(guest.name)),
			switches(),
			button(t('guest.leave'), () => navigation.leave()),
		),
		h('main', { class: 'part' }, h('h1', {}, t('part.title')), help, problem, again, writing.refused, area, more),
	);
	void read();
	return {
		unsaved: () => writing.unsaved(),
		end() {
			ended.abort();
			writing.end();
			clearTimeout(timer);
		},
	};
}
