// shortcuts.ts - the panel that lists the keys: what Univer lists and the page has not changed, and the keys of the page (keys.ts,
// structure.ts). Ctrl+Shift+Z redoes, as Ctrl+Y does.
import { RedoCommand } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { IShortcutService, ISidebarService, KeyCode, MetaKeys, ShortcutPanelService, type IShortcutItem } from '@univerjs/ui';
import { t } from '../../i18n';
import type { GridParts } from '../parts';
import { keyOfStructure, linesOf } from '../structure';

/** What the panel shows instead of a binding. */
type Listed = IShortcutItem & { keys?: string };

const keysOfPage: [keys: string, text: string][] = [
	['Home', 'rowStart'],
	['End', 'rowEnd'],
	['Ctrl+Home', 'first'],
	['Ctrl+End', 'last'],
	['PageDown', 'pageDown'],
	['PageUp', 'pageUp'],
	['Shift+Space', 'selectRows'],
	['Ctrl+Space', 'selectColumns'],
	['Ctrl+9', 'hideRows'],
	['Ctrl+0', 'hideColumns'],
	['Ctrl+Shift+9', 'showRows'],
	['Ctrl+Shift+0', 'showColumns'],
	['Ctrl++', 'insert'],
	['Ctrl+-', 'delete'],
	['Alt+Shift+\u2191', 'moveBack'],
	['Alt+Shift+\u2193', 'moveForth'],
	['Ctrl+;', 'date'],
	['Ctrl+Shift+;', 'time'],
	['Alt+Enter', 'link'],
	['Ctrl+F', 'find'],
	['Ctrl+H', 'replace'],
	['Shift+F10', 'menu'],
	['F6', 'leave'],
];

/** Univer's items of keys that do something else: Ctrl+0 hides columns, Enter alone opens no editor, and Alt+= often sums up nothing. */
const changed = ({ id, binding, description }: IShortcutItem) =>
	binding === (KeyCode.Digit0 | MetaKeys.CTRL_COMMAND) || description === 'sheets-ui.shortcut.sheet.toggle-editing' || id.endsWith('.quick-sum');

/** Whether the page alone acts on the key (keys.ts, univer.ts). */
function isOfPage(event: KeyboardEvent, { injector, isEditing }: GridParts): boolean {
	if (isEditing()) return false;
	if (event.ctrlKey && /^Digit[09]$/.test(event.code)) return true;
	return keyOfStructure(event) !== undefined && linesOf(injector.get(SheetsSelectionsService).getCurrentSelections()).length > 0;
}

/** Changes the list, until the returned function is called. */
export function addShortcuts(parts: GridParts): () => void {
	const { injector } = parts;
	const service = injector.get(IShortcutService);
	const { getAllShortcuts, getShortcutDisplay } = service;
	const univers = getAllShortcuts.call(service).find(({ id }) => id === RedoCommand.id);
	const redo = service.registerShortcut({ ...univers, id: RedoCommand.id, binding: KeyCode.Z | MetaKeys.CTRL_COMMAND | MetaKeys.SHIFT });
	const ours = keysOfPage.map(([keys, text]): Listed => ({
		id: `pg-sheet.${text}`,
		keys,
		description: t(`keys.${text}`),
		group: '5_page',
		groupTitle: t('keys.title'),
	}));
	service.getAllShortcuts = () => [...getAllShortcuts.call(service).filter((item) => !changed(item)), ...ours];
	service.getShortcutDisplay = (item: Listed) => item.keys ?? getShortcutDisplay.call(service, item);
	// Its own button and Escape close the panel, too: the key opens it then.
	const closed = injector.get(ISidebarService).sidebarOptions$.subscribe(({ visible }) => visible === false && injector.get(ShortcutPanelService).close());
	// Univer listens first: it must not zoom when rows are deleted, or columns hidden.
	const { dispatch } = service;
	service.dispatch = (event) => (isOfPage(event, parts) ? undefined : dispatch.call(service, event));
	return () => {
		redo.dispose();
		closed.unsubscribe();
	};
}
