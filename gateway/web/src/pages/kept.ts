// kept.ts - what the user wrote and the sheet does not have: refused edits, texts for cells that somebody else was editing,
// and texts whose cells were deleted. The user writes them again, copies them, or discards them.
import { cellName } from '../content';
import { button, h, notify } from '../dom';
import { t } from '../i18n';
import type { Keep } from '../outbox';
import { moveContent, movePlace } from '../v2/lines';
import { type CellEdit, type Edit, type Place, type StructureEdit, isCell, isProperty } from '../v2/messages';

const mostCells = 3;
const mostLetters = 60;

interface Item {
	edits: CellEdit[];
	/** Texts whose cells are deleted. They are written into the selected cell, and those below it. */
	lost: string[];
	/** Sizes and the like, and structure edits: they are only named. */
	others: readonly Edit[];
	element: HTMLElement;
	reason: string;
	keep: Keep;
}

export class KeptList {
	readonly element = h('section', { class: 'kept', 'aria-label': t('kept.title') });
	private items: Item[] = [];

	constructor(
		private readonly write: (edits: CellEdit[]) => void,
		private readonly selected: () => Place,
	) {}

	/** Number of what is offered. */
	get count(): number {
		return this.items.length;
	}

	/** Offers edits, and keeps them until the user has decided. `reason` says why they are not in the sheet. */
	add(edits: readonly Edit[], reason: string, keep: Keep, others: readonly Edit[] = []): void {
		const cells = edits.filter(isCell);
		keep([...cells, ...others]);
		if (cells.length + others.length > 0) this.offer({ edits: cells, lost: [], others, reason, keep });
	}

	/** Offers texts whose cells were deleted. */
	addLost(texts: string[], reason: string, keep: Keep = () => {}): void {
		if (texts.length > 0) this.offer({ edits: [], lost: texts, others: [], reason, keep });
	}

	private offer(content: Omit<Item, 'element'>): void {
		const item = { ...content, element: h('div', { class: 'kept-item', role: 'alert' }) };
		this.show(item);
		this.items.push(item);
		this.element.append(item.element);
	}

	private show(item: Item): void {
		const forCells = [
			button(item.lost.length > 0 ? t('kept.writeHere') : t('kept.write'), () => this.writeItem(item), { class: 'primary' }),
			button(t('kept.copy'), () => this.copy(item)),
		];
		item.element.replaceChildren(
			h('p', {}, item.reason, ' ', h('strong', {}, this.describe(item))),
			...(item.edits.length + item.lost.length > 0 ? forCells : []),
			button(t('kept.discard'), () => this.remove(item)),
		);
	}

	/** Without the clipboard, shows the whole text selected. */
	private copy(item: Item): void {
		const texts = [...item.edits.map(({ content }) => content ?? ''), ...item.lost].join('\n');
		const copied = navigator.clipboard?.writeText(texts) ?? Promise.reject(new Error('no clipboard'));
		copied.then(
			() => notify(t('kept.copied')),
			() => {
				const area = h('textarea', { readonly: true, 'aria-label': t('kept.copy') }, texts);
				item.element.querySelector('textarea')?.remove();
				item.element.append(area);
				area.select();
				notify(t('share.copyByHand'));
			},
		);
	}

	private writeItem(item: Item): void {
		const { row, col } = this.selected();
		this.write([...item.edits, ...item.lost.map((content, i) => ({ row: row + i, col, content }))]);
		this.remove(item);
	}

	move(change: StructureEdit): void {
		for (const item of this.items) {
			const before = item.edits;
			item.edits = before.flatMap((edit) => {
				const place = movePlace(edit, change);
				return place ? [{ ...edit, ...place, ...(edit.content && { content: moveContent(edit.content, change) ?? edit.content }) }] : [];
			});
			item.lost.push(...before.flatMap((edit) => (edit.content && !movePlace(edit, change) ? [edit.content] : [])));
			if (item.edits.length + item.lost.length + item.others.length === 0) this.remove(item);
			else this.show(item);
			// A text whose cell is deleted stays stored with its last place.
			if (item.lost.length === 0) item.keep([...item.edits, ...item.others]);
		}
	}

	private describe({ edits, lost, others }: Item): string {
		const short = (text: string): string => `“${text.length > mostLetters ? `${text.slice(0, mostLetters)}…` : text}”`;
		const all = [
			...edits.map(({ row, col, content }) => `${cellName(row, col)}: ${content === undefined ? `“${t('kept.format')}”` : short(content)}`),
			...lost.map(short),
		];
		const kinds = new Set(others.map((edit) => t(isProperty(edit) ? 'kept.layout' : 'kept.structure')));
		const more = all.length - mostCells;
		const cells = all.slice(0, mostCells).join(', ') + (more > 0 ? ` ${t('kept.more', { count: more })}` : '');
		return [...(cells ? [cells] : []), ...kinds].join(', ');
	}

	private remove(item: Item): void {
		this.items = this.items.filter((other) => other !== item);
		item.element.remove();
		item.keep([]);
	}
}
