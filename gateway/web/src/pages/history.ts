// history.ts - the drawer of the edits, by segment, the newest first.
import { cellName } from '../content';
import { button, explain, h } from '../dom';
import { formatTime, t } from '../i18n';
import type { LogEntry } from '../answers';
import { openDrawer } from './drawer';
import type { EditorContext } from './drawer';

const entriesAtOnce = 200;

export function openHistory(context: EditorContext): void {
	const { sheetApi } = context;
	const { body, isOpen } = openDrawer(context, 'history', t('history.title'));
	const list = h('ol', { class: 'entries' });
	const more = button(t('history.more'), () => void next());
	const problem = h('p', { class: 'problem', role: 'alert' });
	const again = button(t('history.refresh'), () => void start());
	body.append(h('p', {}, t('history.help')), again, list, problem, more);
	/** Entries that are read but not shown, the newest first, and the segment to read next. */
	let waiting: LogEntry[] = [];
	let nextSegment = 0;

	async function start(): Promise<void> {
		waiting = [];
		list.replaceChildren();
		problem.textContent = '';
		try {
			nextSegment = (await sheetApi.get()).lastVersion + 1;
			await next();
			if (list.childElementCount === 0) list.append(h('li', { class: 'empty' }, t('history.none')));
		} catch (error) {
			problem.textContent = explain(error);
		}
	}

	async function next(): Promise<void> {
		more.hidden = true;
		try {
			while (waiting.length < entriesAtOnce && nextSegment >= 1) waiting.push(...(await sheetApi.log(nextSegment--)).reverse());
			if (!isOpen()) return;
			list.append(...waiting.splice(0, entriesAtOnce).map(entry));
			more.hidden = waiting.length === 0 && nextSegment < 1;
		} catch (error) {
			problem.textContent = explain(error);
		}
	}

	more.hidden = true;
	void start();
}

function entry(log: LogEntry): HTMLElement {
	const time = h('time', { datetime: log.timestamp }, formatTime(log.timestamp));
	const who = h('span', { class: 'who' }, log.username || t('history.nobody'));
	if (log.row < 0) return h('li', { class: 'commit' }, h('strong', {}, t('history.commit', { cid: log.lid })), who, time);
	const empty = () => h('span', { class: 'nothing' }, t('history.empty'));
	const before = log.old === '' ? empty() : h('del', {}, log.old);
	const after = log.new === '' ? empty() : h('ins', {}, log.new);
	const change = h('span', { class: 'change' }, before, h('span', { 'aria-hidden': 'true' }, ' → '), after);
	return h('li', {}, h('strong', {}, cellName(log.row, log.col)), who, time, change);
}
