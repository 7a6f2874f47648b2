// history.ts - the drawer of the edits, the newest first, a page at a time.
import { cellName, columnName } from '../content';
import { button, explain, h } from '../dom';
import { formatTime, t, tOr } from '../i18n';
import type { LogEntry } from '../answers';
import { openDrawer } from './drawer';
import type { EditorContext } from './drawer';

export function openHistory(context: EditorContext): void {
	const { sheetApi } = context;
	const { body, isOpen } = openDrawer(context, 'history', t('history.title'));
	const list = h('ol', { class: 'entries' });
	const more = button(t('history.more'), () => void load());
	const problem = h('p', { class: 'problem', role: 'alert' });
	const again = button(t('history.refresh'), () => {
		before = null;
		list.replaceChildren();
		void load();
	});
	body.append(h('p', {}, t('history.help')), again, list, problem, more);
	let before: number | null = null;

	async function load(): Promise<void> {
		more.hidden = true;
		problem.textContent = '';
		try {
			const { items, next } = await sheetApi.log(before);
			if (!isOpen()) return;
			before = next;
			list.append(...items.map(entry));
			if (list.childElementCount === 0) list.append(h('li', { class: 'empty' }, t('history.none')));
			more.hidden = next === null;
		} catch (error) {
			problem.textContent = explain(error);
			more.hidden = false;
		}
	}

	void load();
}

/** What an entry is about: a cell, or rows, columns or versions. */
function subject({ kind, row, col, segment, new: count }: LogEntry): string {
	if (kind === 'commit') return t('history.commit', { cid: segment });
	if (kind === 'resize') return t('history.resize', { rows: row + 1, cols: col + 1 });
	if (row >= 0 && col >= 0) return cellName(row, col);
	const at = row >= 0 ? String(row + 1) : col >= 0 ? columnName(col) : '';
	return tOr(`history.${kind}`, 'history.other', { at, count, kind });
}

function entry(log: LogEntry): HTMLElement {
	const time = h('time', { datetime: log.at }, formatTime(log.at));
	const who = h('span', { class: 'who' }, log.username || t('history.nobody'));
	const title = h('strong', {}, subject(log));
	if (log.row < 0 || log.col < 0 || log.kind === 'resize') return h('li', { class: 'commit' }, title, who, time);
	if (log.kind === 'style') return h('li', {}, title, who, time, h('span', { class: 'change nothing' }, t('kept.format')));
	const empty = () => h('span', { class: 'nothing' }, t('history.empty'));
	const before = log.old === '' ? empty() : h('del', {}, log.old);
	const after = log.new === '' ? empty() : h('ins', {}, log.new);
	const change = h('span', { class: 'change' }, before, h('span', { 'aria-hidden': 'true' }, ' → '), after);
	return h('li', {}, title, who, time, change);
}
