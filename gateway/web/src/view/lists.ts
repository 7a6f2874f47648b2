// lists.ts - the columns whose cells hold lists with a separator of their own: tags/chips.ts draws them, and is loaded if there are any.
import type { Chips } from '../tags/chips';
import { separatorsOf } from '../sheet/arrange';
import type { PropertySet } from '../v2/properties';
import type { GridParts } from './parts';

export class ListColumns {
	private chips: Promise<Chips> | undefined;
	private shown = '';

	constructor(
		private readonly parts: Pick<GridParts, 'injector' | 'sheet'>,
		private readonly properties: () => PropertySet,
	) {}

	/** The properties may have changed. */
	arrange(): void {
		const separators = separatorsOf(this.properties());
		const name = JSON.stringify([...separators]);
		if (name === this.shown || (name === '[]' && !this.chips)) return;
		this.shown = name;
		this.chips ??= import('../tags/chips').then(({ Chips }) => new Chips(this.parts));
		this.chips.then(
			(chips) => chips.show(separators),
			() => {
				this.chips = undefined;
				this.shown = '';
			},
		);
	}
}
