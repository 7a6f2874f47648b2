// blocked.ts - Univer's commands that the server cannot store. They would change one browser's grid only. Their menu items
// are hidden, and their shortcuts are refused.

/** Refused commands by kind. The texts have a message for each kind (`blocked.KIND`). */
const commands: Record<string, string[]> = {
	structure: [
		'insert-row', 'insert-row-before', 'insert-row-after', 'insert-row-by-range', 'insert-multi-rows-above', 'insert-multi-rows-after',
		'insert-col', 'insert-col-before', 'insert-col-after', 'insert-col-by-range', 'insert-multi-cols-before', 'insert-multi-cols-right',
		'remove-row', 'remove-row-confirm', 'remove-row-by-range', 'remove-col', 'remove-col-confirm', 'remove-col-by-range',
		'move-rows', 'move-cols',
		'insert-range-move-down', 'insert-range-move-right', 'insert-range-move-down-confirm', 'insert-range-move-right-confirm',
		'delete-range-move-left', 'delete-range-move-up', 'delete-range-move-left-confirm', 'delete-range-move-up-confirm',
		'append-row',
	],
	merge: ['add-worksheet-merge', 'add-worksheet-merge-all', 'add-worksheet-merge-horizontal', 'add-worksheet-merge-vertical', 'remove-worksheet-merge'],
	sheets: [
		'insert-sheet', 'remove-sheet', 'remove-sheet-confirm', 'copy-sheet', 'set-worksheet-name', 'set-worksheet-hidden', 'set-worksheet-order',
		'set-tab-color', 'set-workbook-name',
	],
	names: ['insert-defined-name', 'set-defined-name', 'remove-defined-name'],
	protection: [
		'add-range-protection', 'add-range-protection-from-toolbar', 'add-range-protection-from-context-menu', 'add-range-protection-from-sheet-bar',
		'set-range-protection-from-context-menu', 'add-worksheet-protection', 'set-worksheet-protection', 'set-worksheet-permission-points',
		'change-sheet-protection-from-sheet-bar', 'view-sheet-permission-from-context-menu', 'view-sheet-permission-from-sheet-bar',
		'delete-range-protection', 'delete-range-protection-from-context-menu', 'delete-worksheet-protection',
	],
	other: ['reorder-range', 'toggle-cell-checkbox', 'set-worksheet-right-to-left', 'set-worksheet-default-style', 'set-worksheet-range-theme-style'],
};

const kinds = new Map<string, string>();
for (const [kind, names] of Object.entries(commands)) for (const name of names) kinds.set(`sheet.command.${name}`, kind);

/** The kind of a refused command; undefined if the command is allowed. */
export function blockedKind(command: string): string | undefined {
	return kinds.get(command);
}

/** Univer's menu settings: hides the items of these commands, and submenus that would be empty. */
export function hiddenMenus(): Record<string, { hidden: boolean }> {
	const ids = [...kinds.keys(), 'sheet.menu.cell-insert', 'sheet.menu.delete', 'sheet-permission.operation.openDialog', 'sheet-permission.operation.openPanel',
		'contextMenu.permission', 'sheet.contextMenu.permission', 'sheet.toolbar.sheet-frozen'];
	return Object.fromEntries(ids.map((id) => [id, { hidden: true }]));
}
