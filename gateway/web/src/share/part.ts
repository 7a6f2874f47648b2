// part.ts - the rectangle that a share link opens: a table to read, which follows the sheet. Loaded at its first use.
import { ApiError } from '../api';
import { Msg } from '../answers';
import { isNumberText } from '../content';
import { button, explain, h, isSignedOut } from '../dom';
import { t } from '../i18n';
import type { Navigation } from '../main';
import { readPart, type Guest, type Part } from './http';
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

function tableOf({ rows, cols, cells }: Part, shown: number): HTMLElement {
	const contents = new Map(cells.map(([row, col, content, style]) => [`${row},${col}`, { content, style }]));
	const cellAt = (row: number, col: number) => {
		const cell = contents.get(`${row},${col}`);
		return cellOf(cell ? cell.content : undefined, cell?.style);
	};
	const line = (row: number) => h('tr', {}, ...Array.from({ length: cols }, (_, col) => cellAt(row, col)));
	return h('table', {}, h('tbody', {}, ...Array.from({ length: Math.min(rows, shown) }, (_, row) => line(row))));
}

/** Returns what ends the page. */
export function showPart(root: HTMLElement, guest: Guest, navigation: Navigation): () => void {
	const state = h('p', { class: 'part-state', role: 'status', 'data-state': 'connecting' }, t('editor.opening'));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const area = h('div', { class: 'cells', tabindex: 0, role: 'region', 'aria-label': t('part.title') });
	const again = button(t('guest.again'), () => void read(true), { hidden: true });
	const more = button(t('part.more'), () => ((shown += rowsAtOnce), draw()), { hidden: true });
	const ended = new AbortController();
	let part: Part | null = null;
	let tag: string | null = null;
	let shown = rowsAtOnce;
	let timer: ReturnType<typeof setTimeout> | undefined;
	let reading = false;

	function draw(): void {
		if (!part) return;
		const { scrollTop, scrollLeft } = area;
		area.replaceChildren(tableOf(part, shown));
		Object.assign(area, { scrollTop, scrollLeft });
		more.hidden = part.rows <= shown;
	}

	function tell(kind: string, text: string, why = ''): void {
		state.dataset.state = kind;
		if (state.textContent !== text) state.textContent = text;
		if (problem.textContent !== why) problem.textContent = why;
	}

	/** The link opens nothing any more: what it has shown is not shown on. */
	function end(why: string): void {
		part = tag = null;
		area.replaceChildren();
		more.hidden = true;
		again.hidden = false;
		tell('stopped', t('part.ended'), why);
	}

	/** asked: the visitor has asked to enter again. */
	async function read(asked = false): Promise<void> {
		clearTimeout(timer);
		if (reading || ended.signal.aborted) return;
		reading = true;
		again.hidden = true;
		let goesOn = true;
		try {
			const answer = await readPart(guest, tag);
			if (ended.signal.aborted) return;
			if (answer) ({ part, tag } = answer);
			if (answer) draw();
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
		if (goesOn && !document.hidden) timer = setTimeout(() => void read(), refreshMs);
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
			h('span', { class: 'user' }, guest.name),
			switches(),
			button(t('guest.leave'), () => navigation.leave()),
		),
		h('main', { class: 'part' }, h('h1', {}, t('part.title')), h('p', { class: 'hint' }, t('part.help')), problem, again, area, more),
	);
	void read();
	return () => {
		ended.abort();
		clearTimeout(timer);
	};
}
