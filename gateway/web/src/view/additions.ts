// additions.ts - what the grid has beyond Univer: names for its controls, keys, touch, and the theme of the page.
import { onTheme } from '../theme';
import { addKeys, type KeyParts } from './input/keys';
import { nameToolbarButtons } from './labels';
import { addMenuKeys } from './input/menu';
import { addPaste, type PasteEvents } from './input/paste';
import { addStart } from './start';
import { addTouch } from './input/touch';
import type { UniverView } from './univer';

/** Adds them, until the returned function is called. Those that need cells are added when there are some. */
export function addToGrid(view: UniverView, unreadEnd: KeyParts['unreadEnd'], pasting: PasteEvents): () => void {
	const removals = [onTheme((dark) => view.setDark(dark)), nameToolbarButtons(document.body)];
	view.onCreated((parts) => removals.push(addStart(parts), addKeys({ ...parts, unreadEnd }), addMenuKeys(parts), addTouch(parts), addPaste(parts, pasting)));
	return () => removals.forEach((remove) => remove());
}
