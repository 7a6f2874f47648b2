// blocked.ts - Univer's commands and mutations that the server cannot store. They would change one browser's grid only.
// Their menu items are hidden, their shortcuts are refused, and a command that contains one (a paste of merged cells) goes on
// without it.

/** Refused commands by kind. The texts have a message for each kind (`blocked.KIND`). */
const commands: Record<string, string[]> = {
	structure: [
		'move-rows', 'move-cols',
		'insert-range-move-down', 'insert-range-move-right', 'insert-range-move-down-confirm', 'insert-range-move-right-confirm',
		'delete-range-move-left', 'delete-range-move-up', 'delete-range-move-left-confirm', 'delete-range-move-up-confirm',
		'append-row',
	],
	merge: ['add-worksheet-merge', 'add-worksheet-merge-all', 'add-worksheet-merge-horizontal', 'add-worksheet-merge-vertical', 'remove-worksheet-merge'],
	size: [
		'set-worksheet-col-width', 'delta-column-width', 'set-col-auto-width', 'set-col-is-auto-width', 'paste-col-width', 'set-col-data',
		'set-row-height', 'delta-row-height', 'set-row-is-auto-height', 'set-row-data',
	],
	hide: [
		'hide-row-confirm', 'set-rows-hidden', 'set-selected-rows-visible', 'set-specific-rows-visible',
		'hide-col-confirm', 'set-col-hidden', 'set-selected-cols-visible', 'set-col-visible-on-cols',
	],
	freeze: ['set-frozen', 'set-selection-frozen', 'set-row-frozen', 'set-col-frozen', 'set-first-row-frozen', 'set-first-column-frozen', 'cancel-frozen'],
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
	other: [
		'reorder-range', 'toggle-cell-checkbox', 'set-worksheet-right-to-left', 'set-worksheet-default-style', 'set-worksheet-range-theme-style',
		'toggle-gridlines', 'set-gridlines-color', 'set-range-custom-metadata',
	],
};

/** Mutations that change cells: their effect is sent to the server. */
const stored = new Set(['set-range-values', 'move-range', 'set.numfmt', 'remove.numfmt'].map((name) => `sheet.mutation.${name}`));

/** Mutations without an effect on what is stored. */
const local = new Set(
	[
		'set-worksheet-row-auto-height', 'set-worksheet-row-count', 'set-worksheet-column-count', 'empty', 'mark-dirty-filter-change',
		'data-validation-formula-mark-dirty',
	].map((name) => `sheet.mutation.${name}`),
);

/** The kinds of refused mutations; `other` if none fits. */
const mutationKinds: [RegExp, string][] = [
	[/merge/, 'merge'],
	[/hidden|visible/, 'hide'],
	[/frozen/, 'freeze'],
	[/width|height|row-data|col-data/, 'size'],
	[/insert-|remove-|move-/, 'structure'],
];

const kinds = new Map<string, string>();
for (const [kind, names] of Object.entries(commands)) for (const name of names) kinds.set(`sheet.command.${name}`, kind);

export function changesCells(id: string): boolean {
	return stored.has(id);
}

/** The kind of a refused command or mutation; undefined if it is allowed. */
export function blockedKind(id: string): string | undefined {
	if (!id.startsWith('sheet.mutation.')) return kinds.get(id);
	if (stored.has(id) || local.has(id)) return undefined;
	return mutationKinds.find(([pattern]) => pattern.test(id))?.[1] ?? 'other';
}

/** Univer's menu settings: hides the items of these commands, and submenus that would be empty. */
export function hiddenMenus(): Record<string, { hidden: boolean }> {
	const ids = [...kinds.keys(), 'sheet-permission.operation.openDialog', 'sheet-permission.operation.openPanel',
		'contextMenu.permission', 'sheet.contextMenu.permission', 'sheet.toolbar.sheet-frozen', 'sheet.menu.sheet-frozen',
		'sheet.column-header-menu.sheet-frozen', 'sheet.row-header-menu.sheet-frozen'];
	return Object.fromEntries(ids.map((id) => [id, { hidden: true }]));
}
