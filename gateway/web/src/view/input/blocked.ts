// blocked.ts - Univer's commands and mutations that the server cannot store. They would change one browser's grid only.
// Their menu items are hidden, their shortcuts are refused, and a command that contains one goes on
// without it.

/** Refused commands by kind. The texts have a message for each kind (`blocked.KIND`). */
const commands: Record<string, string[]> = {
	structure: [
		'insert-range-move-down',
		'insert-range-move-right',
		'insert-range-move-down-confirm',
		'insert-range-move-right-confirm',
		'delete-range-move-left',
		'delete-range-move-up',
		'delete-range-move-left-confirm',
		'delete-range-move-up-confirm',
		'append-row',
	],
	sheets: [
		'insert-sheet',
		'remove-sheet',
		'remove-sheet-confirm',
		'copy-sheet',
		'set-worksheet-name',
		'set-worksheet-hidden',
		'set-worksheet-order',
		'set-tab-color',
		'set-workbook-name',
	],
	names: ['insert-defined-name', 'set-defined-name', 'remove-defined-name'],
	protection: [
		'add-range-protection',
		'add-range-protection-from-toolbar',
		'add-range-protection-from-context-menu',
		'add-range-protection-from-sheet-bar',
		'set-range-protection-from-context-menu',
		'add-worksheet-protection',
		'set-worksheet-protection',
		'set-worksheet-permission-points',
		'change-sheet-protection-from-sheet-bar',
		'view-sheet-permission-from-context-menu',
		'view-sheet-permission-from-sheet-bar',
		'delete-range-protection',
		'delete-range-protection-from-context-menu',
		'delete-worksheet-protection',
	],
	other: [
		'reorder-range',
		'toggle-cell-checkbox',
		'set-worksheet-right-to-left',
		'set-worksheet-default-style',
		'set-worksheet-range-theme-style',
		'toggle-gridlines',
		'set-gridlines-color',
		'set-range-custom-metadata',
		'set-row-data',
		'set-col-data',
	],
};

/** Mutations that change cells: their effect is sent to the server. */
const stored = new Set(['set-range-values', 'move-range', 'set.numfmt', 'remove.numfmt'].map((name) => `sheet.mutation.${name}`));

/** Mutations that change properties (layout.ts). */
const arranging = new Set(
	[
		'set-worksheet-col-width',
		'set-worksheet-row-height',
		'set-worksheet-row-is-auto-height',
		'set-col-hidden',
		'set-col-visible',
		'set-row-hidden',
		'set-row-visible',
		'add-worksheet-merge',
		'remove-worksheet-merge',
		'set-frozen',
	].map((name) => `sheet.mutation.${name}`),
);

/** Mutations without an effect on what is stored. */
const local = new Set(
	[
		'set-worksheet-row-auto-height',
		'set-worksheet-row-count',
		'set-worksheet-column-count',
		'empty',
		'mark-dirty-filter-change',
		'data-validation-formula-mark-dirty',
	].map((name) => `sheet.mutation.${name}`),
);

/** The kinds of refused mutations; `other` if none fits. */
const mutationKinds: [RegExp, string][] = [[/insert-|remove-|move-/, 'structure']];

const kinds = new Map<string, string>();
for (const [kind, names] of Object.entries(commands)) for (const name of names) kinds.set(`sheet.command.${name}`, kind);

export function changesLayout(id: string): boolean {
	return arranging.has(id);
}

export function changesCells(id: string): boolean {
	return stored.has(id);
}

/** Commands whose effect depends on what all selected cells are. */
const ofSelection =
	/^univer\.command\.(copy|cut)$|^sheet\.command\.(copy|cut|clear-|set-style|set-border|numfmt|auto-fill|refill|move-range|add-worksheet-merge|text-to-number|split-text)/;

export function readsSelection(id: string): boolean {
	return ofSelection.test(id);
}

/** The kind of a refused command or mutation; undefined if it is allowed. */
export function blockedKind(id: string): string | undefined {
	if (!id.startsWith('sheet.mutation.')) return kinds.get(id);
	if (stored.has(id) || arranging.has(id) || local.has(id)) return undefined;
	return mutationKinds.find(([pattern]) => pattern.test(id))?.[1] ?? 'other';
}

/** Univer's menu settings: hides the items of these commands, and submenus that would be empty. */
export function hiddenMenus(): Record<string, { hidden: boolean }> {
	const ids = [
		...kinds.keys(),
		'sheet-permission.operation.openDialog',
		'sheet-permission.operation.openPanel',
		'contextMenu.permission',
		'sheet.contextMenu.permission',
	];
	return Object.fromEntries(ids.map((id) => [id, { hidden: true }]));
}
