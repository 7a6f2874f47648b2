// draft.ts - the text in the open cell editor, which the sheet does not have yet. It is stored when the page is hidden or left,
// so that it is offered when the sheet is opened again. It is offered at once, in a pause, if somebody else has the cell's lock.
import type { Keep } from '../outbox';
import { movePlace } from '../v2/lines';
import type { CellEdit, Place, StructureEdit, Style } from '../v2/messages';
import { typedContent } from '../view/input/typed';

interface View {
	editorText(): string | null;
	contentOf(place: Place): { content: string; style: Style } | null;
}

/** The pause in typing, in milliseconds, after which a text is offered whose cell somebody else has locked. */
const pauseMs = 1000;

export class Draft {
	private pause: ReturnType<typeof setInterval> | undefined;
	private place: Place | null = null;
	private keep: Keep | null = null;

	constructor(
		private readonly view: () => View | null,
		private readonly newKeep: () => Keep,
	) {}

	/** The user opened the editor of a cell (null: closed it). */
	edit(place: Place | null): void {
		if (place && this.place && place.row === this.place.row && place.col === this.place.col) return;
		clearInterval(this.pause);
		this.place = place;
		this.drop();
	}

	/** Calls `offer` with what the user writes in the open editor, after a pause; not if the editor is closed before. */
	whenPaused(offer: (content: CellEdit) => void): void {
		let before = this.content?.content;
		clearInterval(this.pause);
		this.pause = setInterval(() => {
			const { content } = this;
			if (content && content.content === before) {
				clearInterval(this.pause);
				offer(content);
			}
			before = content?.content;
		}, pauseMs);
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

	/** The page is left. */
	end(): void {
		this.store();
		clearInterval(this.pause);
	}

	private drop(): void {
		this.keep?.([]);
		this.keep = null;
	}
}
