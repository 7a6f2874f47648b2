// additions.ts - what the grid has beyond Univer: names for its controls, keys, touch, and the theme of the page.
import { onTheme } from '../theme';
import { addKeys, type KeyParts } from './input/keys';
import { nameToolbarButtons } from './labels';
import { addLinks } from './input/links';
import { addMenuKeys } from './input/menu';
import { addMonths } from './input/months';
import { addPaste, type PasteEvents } from './input/paste';
import { addShortcuts } from './input/shortcuts';
import { addStart } from './start';
import { addStatus } from './status';
import { addTouch } from './input/touch';
import { addTyped } from './input/typed';
import type { UniverView } from './univer';

/** Adds them, until the returned function is called. Those that need cells are added when there are some. */
export function addToGrid(view: UniverView, unreadEnd: KeyParts['unreadEnd'], pasting: PasteEvents, statusBar: HTMLElement): () => void {
	const removals = [onTheme((dark) => view.setDark(dark)), nameToolbarButtons(document.body)];
	view.onCreated((parts) => {
		removals.push(
			addStart(parts),
			addKeys({ ...parts, unreadEnd }),
			addMenuKeys(parts),
			addTouch(parts),
			addPaste(parts, pasting),
			addTyped(parts),
			addStatus(parts, statusBar),
			addShortcuts(parts),
			addLinks(parts),
		);
		addMonths(parts);
	});
	return () => removals.forEach((remove) => remove());
}
