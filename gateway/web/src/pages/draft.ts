// draft.ts - the text in the open cell editor, which the sheet does not have yet. It is stored when the page is hidden or left,
// so that it is offered when the sheet is opened again.
import type { Keep } from '../outbox';
import { movePlace } from '../v2/lines';
import type { CellEdit, Place, StructureEdit, Style } from '../v2/messages';
import { typedContent } from '../view/input/typed';

interface View {
	editorText(): string | null;
	contentOf(place: Place): { content: string; style: Style } | null;
}

export class Draft {
	private place: Place | null = null;
	private keep: Keep | null = null;

	constructor(
		private readonly view: () => View | null,
		private readonly newKeep: () => Keep,
	) {}

	/** The user opened the editor of a cell (null: closed it). */
	edit(place: Place | null): void {
		this.place = place;
		this.drop();
	}

	move(change: StructureEdit): void {
		this.place = this.place && (movePlace(this.place, change) ?? null);
		if (this.keep) this.store();
	}

	/** What the editor would write; null if that is nothing new. */
	get content(): CellEdit | null {
		const text = this.view()?.editorText();
		const cell = this.place && this.view()?.contentOf(this.place);
		if (!this.place || !text || !cell || text === cell.content) return null;
		const content = typedContent(text, (cell.style?.['n'] as { pattern?: string } | undefined)?.pattern);
		return content === cell.content ? null : { ...this.place, content };
	}

	/** Stores the text until the editor is closed. */
	store(): void {
		const { content } = this;
		if (!content) this.drop();
		else (this.keep ??= this.newKeep())([content]);
	}

	private drop(): void {
		this.keep?.([]);
		this.keep = null;
	}
}
