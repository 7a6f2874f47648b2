// property_undo.ts - the part of undo.ts that concerns properties: of those that the user changed, the ones are taken back
// that nobody else has written since and that still have the user's value. Structure edits move them.
import type { PropertyEdit, StructureEdit } from '../v2/messages';
import { moveProperty, propertyName, type PropertySet, sameValue } from '../v2/properties';

/** `value` is what the user set, `before` what was there (null: nothing). */
export interface PropertyChange extends PropertyEdit {
	before: unknown;
}

export const isPropertyChange = (change: object): change is PropertyChange => 'key' in change;

/** What the user's edits change. */
export const propertyChanges = (edits: readonly PropertyEdit[], set: PropertySet): PropertyChange[] =>
	edits.map((edit) => ({ ...edit, before: set.value(edit) }));

/** The properties that somebody else has written last. */
export class ForeignProperties {
	private names = new Map<string, PropertyEdit>();

	written(edit: PropertyEdit, own: boolean): void {
		if (own) this.names.delete(propertyName(edit));
		else this.names.set(propertyName(edit), edit);
	}

	move(change: StructureEdit): void {
		const moved = [...this.names.values()].flatMap((property) => moveProperty(property, change) ?? []);
		this.names = new Map(moved.map((property) => [propertyName(property), property]));
	}

	/** The edit that takes a change back; undefined if somebody else's would be lost. */
	takeBack({ before, value, ...target }: PropertyChange, set: PropertySet): PropertyChange | undefined {
		if (this.names.has(propertyName(target)) || !sameValue(set.value(target), value)) return undefined;
		return { ...target, value: before, before: value };
	}
}
