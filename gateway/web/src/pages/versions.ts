// versions.ts - the drawer of versions: saves, previews and restores them.
import { columnName } from '../content';
import { attempt, bdi, button, confirmDialog, explain, field, h, notify, openDialog } from '../dom';
import { formatTime, personName, t } from '../i18n';
import type { Version } from '../answers';
import { openDrawer } from './drawer';
import type { EditorContext } from './drawer';

const rowsAtOnce = 200;
const mostColumns = 200;

export function openVersions(context: EditorContext): void {
	const { sheetApi } = context;
	const { body, isOpen } = openDrawer(context, 'versions', t('versions.title'));
	const list = h('ol', { class: 'entries' });
	const label = field(t('versions.label'), { name: 'label', autocomplete: 'off' });
	const save = h('button', { type: 'submit', class: 'primary' }, t('versions.save'));
	const saving = h(
		'form',
		{
			class: 'inline for-editors',
			submit: (event) => {
				event.preventDefault();
				void saveNow();
			},
		},
		label.row,
		save,
	);
	const more = button(t('versions.older'), () => void load(true));
	let before: number | null = null;
	/** A later call shows the list. */
	let loads = 0;
	more.hidden = true;
	body.append(h('p', {}, t('versions.help')), saving, list, more);

	async function saveNow(): Promise<void> {
		save.disabled = true;
		await attempt(async () => {
			const cid = await sheetApi.commit(label.input.value.trim());
			if (cid !== null) label.input.value = '';
			notify(cid === null ? t('versions.nothing') : t('versions.saved', { cid }));
			await load();
		});
		save.disabled = false;
	}

	/** Reads the newest versions, or those after the shown ones. */
	async function load(next = false): Promise<void> {
		const current = ++loads;
		more.disabled = true;
		try {
			const page = await sheetApi.versions(next ? before : null);
			if (!isOpen() || current !== loads) return;
			before = page.next;
			const entries = page.items.map(entry);
			if (next) list.append(...entries);
			else list.replaceChildren(...(entries.length > 0 ? entries : [h('li', { class: 'empty' }, t('versions.none'))]));
			more.hidden = before === null;
		} catch (error) {
			if (current !== loads) return;
			list.replaceChildren(h('li', { class: 'problem' }, explain(error)));
		}
		more.disabled = false;
	}

	function entry({ cid, at, label, kind, username }: Version): HTMLElement {
		// The label that the database gives is English.
		const restored = kind === 'rollback' ? /^rollback to version ([0-9]+)$/.exec(label) : null;
		return h(
			'li',
			{ 'data-cid': cid },
			h('strong', {}, t('versions.number', { cid })),
			h('span', { class: 'who' }, bdi(personName(username) || t('history.nobody'))),
			h('time', { datetime: at }, formatTime(at)),
			label !== '' && !restored && h('span', { class: 'change label' }, bdi(label)),
			kind === 'rollback' && h('span', { class: 'change' }, restored ? t('versions.restoredFrom', { cid: restored[1]! }) : t('versions.byRestore')),
			h(
				'span',
				{ class: 'actions' },
				button(t('versions.preview'), () => void preview(context, cid, () => void (isOpen() && load())), { 'aria-label': t('versions.previewOf', { cid }) }),
				button(t('versions.restore'), () => void restore(cid), { 'aria-label': t('versions.restoreOf', { cid }), class: 'for-editors' }),
				button(t('versions.rename'), (event) => rename(event.target as HTMLElement, cid, restored ? '' : label), {
					'aria-label': t('versions.renameOf', { cid }),
					class: 'for-editors',
				}),
			),
		);
	}

	/** Shows a field for the name instead of the buttons of the entry. */
	function rename(from: HTMLElement, cid: number, before: string): void {
		const entry = from.closest('li');
		const actions = from.closest('.actions');
		const name = field(t('versions.label'), { value: before, autocomplete: 'off' });
		const back = () => {
			form.replaceWith(actions!);
			from.focus();
		};
		const send = async (event: Event) => {
			event.preventDefault();
			const next = name.input.value.trim();
			if (await attempt(() => sheetApi.label(cid, next))) await load();
			if (isOpen()) list.querySelector<HTMLElement>(`[data-cid="${cid}"] button`)?.focus();
		};
		const form = h('form', { class: 'inline', submit: (event) => void send(event) }, name.row, h('button', { type: 'submit' }, t('versions.renameSave')));
		form.addEventListener('keydown', (event) => {
			if (event.key !== 'Escape') return;
			event.stopPropagation();
			back();
		});
		if (!entry || !actions) return;
		actions.replaceWith(form);
		name.input.select();
	}

	async function restore(cid: number): Promise<void> {
		if ((await restoreVersion(context, cid)) && isOpen()) await load();
	}

	list.append(h('li', {}, t('loading')));
	void load();
}

async function restoreVersion({ sheetApi }: EditorContext, cid: number): Promise<boolean> {
	if (!(await confirmDialog(t('versions.restoreOf', { cid }), t('versions.restoreQuestion', { cid }), t('versions.restore')))) return false;
	return attempt(async () => {
		await sheetApi.rollback(cid);
		notify(t('versions.restored', { cid }));
	});
}

/** Shows a version as a read-only table. */
async function preview(context: EditorContext, cid: number, restored: () => void): Promise<void> {
	await attempt(async () => {
		const { columns, content } = await context.sheetApi.version(cid);
		const { rows, columns: used } = usedPart(content, columns);
		const body = h('tbody', {});
		const more = button(t('versions.more'), () => addRows());
		let shown = 0;
		function addRows(): void {
			const end = Math.min(rows, shown + rowsAtOnce);
			for (; shown < end; shown++) {
				const cells = content.slice(shown * columns, shown * columns + used).map((text) => h('td', {}, text));
				body.append(h('tr', {}, h('th', { scope: 'row' }, String(shown + 1)), ...cells));
			}
			more.hidden = shown >= rows;
		}
		addRows();
		const names = Array.from({ length: used }, (_, col) => h('th', { scope: 'col' }, columnName(col)));
		const table = h('table', { class: 'preview' }, h('thead', {}, h('tr', {}, h('td', {}), ...names)), body);
		const { dialog, close } = openDialog(
			t('versions.number', { cid }),
			h('div', { class: 'preview-area', tabindex: 0, role: 'region', 'aria-label': t('versions.number', { cid }) }, table, more),
			h(
				'footer',
				{},
				button(t('close'), () => close()),
				button(t('versions.restore'), () => void restoreHere(), { class: 'primary for-editors' }),
			),
		);
		dialog.classList.add('wide');
		async function restoreHere(): Promise<void> {
			if (!(await restoreVersion(context, cid))) return;
			close();
			restored();
		}
	});
}

/** The number of rows and columns up to the last non-empty ones, at most mostColumns columns. */
function usedPart(content: string[], columns: number): { rows: number; columns: number } {
	let lastRow = 0;
	let lastColumn = 0;
	content.forEach((text, i) => {
		if (text === '') return;
		lastRow = Math.floor(i / columns);
		lastColumn = Math.max(lastColumn, i % columns);
	});
	return { rows: lastRow + 1, columns: Math.min(lastColumn + 1, mostColumns) };
}
