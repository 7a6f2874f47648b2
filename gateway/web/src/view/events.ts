// events.ts - what the grid asks the page, and tells it.
import type { LineMove } from '../sheet/moving';
import type { Change } from '../sheet/undo';
import type { CellEdit, Place, PropertyEdit, Range, StructureEdit } from '../v2/messages';
import type { PropertySet } from '../v2/properties';

export interface GridEvents {
	/** The user changed cells or properties: typed, pasted, formatted, merged, resized. One call for each command. */
	onChanges(changes: Change[], properties: PropertyEdit[]): void;
	/** What the user has done to these cells could not be given to the page, and is in the grid at most. */
	onUnsaved(edits: CellEdit[], error: unknown): void;
	/** A command of the user is about to read or change cells. */
	beforeChange(): void;
	/** The kind of refusal if not all of these cells are in the grid; null if they are. */
	lacks(ranges: Range[]): string | null;
	/** The properties to be shown. */
	properties(): PropertySet;
	/** The user inserts or deletes rows or columns, which the grid does not do itself. */
	onStructure(change: StructureEdit): void;
	onUndo(): void;
	onRedo(): void;
	/** The reason why the user may not edit a cell now, of which the user is told; null if the cell may be edited. */
	refusal(place: Place): 'role' | 'locked' | null;
	/** The user has typed this into a cell that somebody else is editing. */
	onRefusedText(edit: CellEdit): void;
	/** The user moves rows or columns, which the grid does not do itself. */
	onMoveLines(move: LineMove): void;
	/** The cell that was being edited is deleted. */
	onTextLost(text: string): void;
	/** The editor of a cell was opened, or closed (null). */
	onEditing(place: Place | null): void;
	/** A command was refused. The texts have its kind (`blocked.KIND`). */
	onBlocked(kind: string): void;
	/** A command would divide these merged cells, and was refused. */
	onDivides(merged: string): void;
	/** Asks whether these ranges are to be merged, which deletes the contents of the named cells. */
	confirmMerge(ranges: string[], cells: string[]): Promise<boolean>;
	onSelection(place: Place, range: Range): void;
	/** Other rows and columns are visible. */
	onView(range: Range): void;
}
