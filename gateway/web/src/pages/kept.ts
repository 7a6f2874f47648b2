// kept.ts - what the user wrote and the sheet does not have: refused edits, and texts for cells that somebody else was
// editing. The user writes them again, copies them, or discards them.
import { cellName } from '../content';
import { button, h, notify } from '../dom';
import { t } from '../i18n';
import { movePlace } from '../v2/lines';
import { type CellEdit, type Edit, type StructureEdit, isStructure } from '../v2/messages';

const mostCells = 3;
const mostLetters = 60;

interface Item {
	edits: CellEdit[];
	element: HTMLElement;
	forget: () => void;
}

export class KeptList {
	readonly element = h('section', { class: 'kept', 'aria-label': t('kept.title') });
	private items: Item[] = [];

	constructor(private readonly write: (edits: CellEdit[]) => void) {}

	/** Offers edits. `reason` says why they are not in the sheet; `forget` is called when the user has decided. */
	add(edits: readonly Edit[], reason: string, forget: () => void = () => {}): void {
		const cells = edits.filter((edit): edit is CellEdit => !isStructure(edit));
		if (cells.length === 0) {
			forget();
			return;
		}
		const element = h('div', { class: 'kept-item', role: 'alert' });
		const item: Item = { edits: cells, element, forget };
		element.append(
			h('p', {}, reason, ' ', h('strong', {}, this.describe(cells))),
			button(t('kept.write'), () => {
				this.remove(item);
				this.write(item.edits);
			}, { class: 'primary' }),
			button(t('kept.copy'), () => void navigator.clipboard?.writeText(item.edits.map(({ content }) => content ?? '').join('\n')).then(() => notify(t('kept.copied')))),
			button(t('kept.discard'), () => this.remove(item)),
		);
		this.items.push(item);
		this.element.append(element);
	}

	move(change: StructureEdit): void {
		for (const item of this.items) {
			item.edits = item.edits.flatMap((edit) => {
				const place = movePlace(edit, change);
				return place ? [{ ...edit, ...place }] : [];
			});
		}
	}

	private describe(cells: CellEdit[]): string {
		const shown = cells.slice(0, mostCells).map(({ row, col, content }) => {
			const text = content === undefined ? t('kept.format') : content.length > mostLetters ? `${content.slice(0, mostLetters)}…` : content;
			return `${cellName(row, col)}: “${text}”`;
		});
		const more = cells.length - shown.length;
		return shown.join(', ') + (more > 0 ? ` ${t('kept.more', { count: more })}` : '');
	}

	private remove(item: Item): void {
		this.items = this.items.filter((other) => other !== item);
		item.element.remove();
		item.forget();
	}
}
