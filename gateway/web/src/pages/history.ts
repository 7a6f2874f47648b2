// history.ts - the drawer of the edits, the newest first, a page at a time.
import { cellName, columnName, rangeName } from '../content';
import { bdi, button, explain, h } from '../dom';
import { formatTime, personName, t, tOr } from '../i18n';
import type { LogEntry } from '../answers';
import { openDrawer } from './drawer';
import type { EditorContext } from './drawer';

/** So many pages of a search are read at a time until one has an edit; each is of 10,000 edits. */
const mostPages = 10;

/** of: whose edits are shown at first. */
export function openHistory(context: EditorContext, of?: { uid: number; username: string }): void {
	const { sheetApi } = context;
	const { body, isOpen } = openDrawer(context, 'history', t('history.title'));
	const list = h('ol', { class: 'entries' });
	const more = button(t('history.more'), () => void load());
	const problem = h('p', { class: 'problem', role: 'alert' });
	const again = button(t('history.refresh'), () => restart());
	const person = h('select', { id: 'history-person' }, h('option', { value: '' }, t('history.everybody')));
	const cells = button(t('history.cells'), () => {
		range = range === null ? rangeName(context.selection()) : null;
		restart();
	});
	const filters = h('div', { class: 'filters' }, h('label', { for: 'history-person' }, t('history.person')), person, cells);
	body.append(h('p', {}, t('history.help')), filters, again, list, problem, more);
	let before: number | null = null;
	/** The cells whose edits are shown; null: all. */
	let range: string | null = null;
	/** An answer to an earlier question is not shown. */
	let loads = 0;
	person.addEventListener('change', () => restart());

	function restart(): void {
		before = null;
		list.replaceChildren();
		cells.setAttribute('aria-pressed', String(range !== null));
		cells.textContent = range === null ? t('history.cells') : t('history.onlyCells', { range });
		void load();
	}

	/** Adds who has made these edits to those that can be chosen. */
	function addPeople(items: Pick<LogEntry, 'uid' | 'username'>[]): void {
		for (const { uid, username } of items) {
			if (username === '' || [...person.options].some(({ value }) => value === String(uid))) continue;
			person.append(h('option', { value: String(uid), dir: 'auto' }, personName(username)));
		}
	}

	/** A search for few edits goes on over pages without any, up to a limit. */
	async function load(): Promise<void> {
		const current = ++loads;
		const found = { ...(person.value === '' ? {} : { uid: Number(person.value) }), ...(range === null ? {} : { range }) };
		more.hidden = true;
		problem.textContent = '';
		try {
			let shown = 0;
			for (let pages = 0; pages < mostPages && shown === 0; pages++) {
				const { items, next } = await sheetApi.log(before, found);
				if (!isOpen() || current !== loads) return;
				before = next;
				shown = items.length;
				list.append(...items.map(entry));
				addPeople(items);
				if (next === null) break;
			}
			if (list.childElementCount === 0)
				list.append(
					h('li', { class: 'empty' }, t(before !== null ? 'history.noneYet' : person.value !== '' || range !== null ? 'history.notFound' : 'history.none')),
				);
			else if (shown > 0) list.querySelector('.empty')?.remove();
			more.hidden = before === null;
		} catch (error) {
			if (current !== loads) return;
			problem.textContent = explain(error);
			more.hidden = false;
		}
	}

	if (of) {
		addPeople([of]);
		person.value = String(of.uid);
	}
	restart();
}

/** A target as people name it: a range, a row, columns. */
function nameOf(target: string): string {
	const [first, last = first] = target.split(':');
	const kind = target === '' ? 'sheet' : /[0-9]/.test(first!) ? (/[A-Z]/.test(first!) ? 'cells' : 'row') : 'column';
	return t(`history.at.${kind}${first !== last && kind !== 'cells' ? 's' : ''}`, { target, first: first!, last: last! });
}

/** The rows and columns of a value of `freeze`. Any client may have set it. */
function frozen(value: string): { rows: number; cols: number } {
	try {
		const { rows = 0, cols = 0 } = JSON.parse(value) as { rows?: number; cols?: number };
		return { rows: Number(rows), cols: Number(cols) };
	} catch {
		return { rows: 0, cols: 0 };
	}
}

/** What an edit of a property did, in a sentence. */
function propertyText({ target, key, new: value }: LogEntry): string {
	const at = nameOf(target);
	if (key === 'hidden' || key === 'merge') return t(`history.property.${key}${value === 'true' ? '' : '.off'}`, { at });
	if (key === 'freeze') return t('history.property.freeze', frozen(value));
	if (key === 'timezone' && value) return t('history.property.timezone', { value: value.replaceAll('"', '') });
	return t(`history.property.${key === 'width' || key === 'height' ? key : 'other'}`, { at, key, value: value || t('history.property.none') });
}

/** What an entry is about: a cell, or properties, rows, columns or versions. */
function subject(log: LogEntry): string {
	const { kind, row, col, segment, new: count } = log;
	if (kind === 'property') return propertyText(log);
	if (kind === 'commit') return t('history.commit', { cid: segment });
	if (kind === 'resize') return t('history.resize', { rows: row + 1, cols: col + 1 });
	if (row >= 0 && col >= 0) return cellName(row, col);
	const at = row >= 0 ? String(row + 1) : col >= 0 ? columnName(col) : '';
	return tOr(`history.${kind}`, 'history.other', { at, count, kind });
}

function entry(log: LogEntry): HTMLElement {
	const time = h('time', { datetime: log.at }, formatTime(log.at));
	const who = h('span', { class: 'who' }, bdi(personName(log.username) || t('history.nobody')));
	const title = h('strong', {}, subject(log));
	if (log.row < 0 || log.col < 0 || log.kind === 'resize' || log.kind === 'property') return h('li', { class: 'commit' }, title, who, time);
	if (log.kind === 'style') return h('li', {}, title, who, time, h('span', { class: 'change nothing' }, t('kept.format')));
	const empty = () => h('span', { class: 'nothing' }, t('history.empty'));
	const before = log.old === '' ? empty() : h('del', { dir: 'auto' }, log.old);
	const after = log.new === '' ? empty() : h('ins', { dir: 'auto' }, log.new);
	const change = h('span', { class: 'change' }, before, h('span', { 'aria-hidden': 'true' }, ' → '), after);
	return h('li', {}, title, who, time, change);
}
