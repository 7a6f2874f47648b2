// typing.ts - where typed text goes: as a whole into the selected cell, or nowhere.
//
// Univer takes what is typed in a hidden editor, which has the text of the selected cell, and shows it at the first letter. What
// may not be edited is refused before Univer sees the key, a composition of an input method as a whole; and the texts of the
// hidden editor and of the formula bar do not change while no cell is edited. So nothing of what was refused is left when the
// cell may be edited later. What was typed into a cell that somebody else is editing is offered.
//
// The next key goes to the selected cell, also if nothing has the focus, or Univer's state is that of an editor that was closed.
import {
	DOCS_FORMULA_BAR_EDITOR_UNIT_ID_KEY,
	DOCS_NORMAL_EDITOR_UNIT_ID_KEY,
	EDITOR_ACTIVATED,
	FOCUSING_EDITOR_INPUT_FORMULA,
	FOCUSING_FX_BAR_EDITOR,
	IContextService,
	IUniverInstanceService,
} from '@univerjs/core';
import type { Injector } from '@univerjs/core';
import { DocSelectionRenderService } from '@univerjs/docs-ui';
import { IRenderManagerService } from '@univerjs/engine-render';
import { IEditorBridgeService } from '@univerjs/sheets-ui';
import { KeyCode } from '@univerjs/ui';
import type { CellState } from '../../sheet/mirror';
import { moveContent, movePlace } from '../../v2/lines';
import type { CellEdit, Place, StructureEdit } from '../../v2/messages';
import type { GridEvents } from '../events';
import { canvasOf } from '../parts';
import type { CellEditor } from './cell-editor';
import { typedContent } from './typed';

const inputId = (editor: string) => `__editor_${editor}`;
const inputs = new Set([DOCS_NORMAL_EDITOR_UNIT_ID_KEY, DOCS_FORMULA_BAR_EDITOR_UNIT_ID_KEY].map(inputId));
/** Keys that are not for the cells if nothing has the focus. */
const otherKeys = /^(Tab|Escape|Shift|Control|Alt|AltGraph|Meta|CapsLock|NumLock|ScrollLock|F[13-9]|F1[0-2])$/;

/** Refused text is offered after a pause of so long. */
const pauseMs = 1000;

interface TypingParts {
	host: HTMLElement;
	/** Null while there is no grid. */
	injector(): Injector | null;
	unitId: string;
	editor: Pick<CellEditor, 'isOpen' | 'text'>;
	read(row: number, col: number): CellState;
	events: Pick<GridEvents, 'refusal' | 'onRefusedText' | 'onUnsaved'>;
}

export class Typing {
	private readonly listeners = new AbortController();
	/** Why the composition that is going on is refused; null: it is not. */
	private refusing: 'role' | 'locked' | null = null;
	private replacing = false;
	/** Refused text for a cell that somebody else is editing, until it is offered. */
	private refused: (Place & { text: string }) | null = null;
	private pause: ReturnType<typeof setTimeout> | undefined;
	/** What the editor that is being closed has, until Univer has written it. */
	private closing: (Place & { text: string; isSettled: boolean }) | null = null;

	/** Has to be made before Univer, which listens for keys of the window too. */
	constructor(private readonly parts: TypingParts) {
		const listen = <Type extends keyof WindowEventMap>(type: Type, run: (event: WindowEventMap[Type]) => void) =>
			window.addEventListener(type, (event) => parts.injector() && run(event), { capture: true, signal: this.listeners.signal });
		listen('keydown', (event) => this.prepare(event));
		listen('beforeinput', (event) => {
			const reason = this.refusing ?? this.refusalOf(event);
			if (reason === 'locked' && !this.refusing) this.collect(event);
			if (reason) stop(event);
		});
		listen('compositionstart', (event) => {
			this.refusing = this.refusalOf(event);
			if (this.refusing) stop(event);
		});
		for (const type of ['input', 'compositionupdate'] as const) listen(type, (event) => this.refusing && stop(event));
		listen('error', ({ error }) => this.failed(error));
		listen('unhandledrejection', ({ reason }) => this.failed(reason));
		listen('compositionend', (event) => {
			if (!this.refusing) return;
			if (this.refusing === 'locked') this.collect(event);
			this.refusing = null;
			stop(event);
			(event.target as HTMLElement).replaceChildren();
		});
	}

	private get<T>(service: Parameters<Injector['get']>[0]): T {
		return this.parts.injector()!.get(service as never) as T;
	}

	private get input(): DocSelectionRenderService | undefined {
		return this.get<IRenderManagerService>(IRenderManagerService).getRenderById(DOCS_NORMAL_EDITOR_UNIT_ID_KEY)?.with(DocSelectionRenderService);
	}

	/** Lets the key that is being pressed go to the selected cell. */
	private prepare(event: KeyboardEvent): void {
		const { key, ctrlKey, altKey, metaKey } = event;
		const isLetter = [...key].length === 1 && key !== ' ' && !ctrlKey && !altKey && !metaKey;
		const focused = document.activeElement;
		const nothing = focused === null || focused === document.body || focused === canvasOf(this.parts.host) || (isLetter && isControl(focused));
		const isInput = focused?.id === inputId(DOCS_NORMAL_EDITOR_UNIT_ID_KEY);
		if (this.parts.editor.isOpen || !(isInput || nothing)) return;
		if (nothing && (otherKeys.test(key) || document.querySelector('dialog[open]') || this.parts.host.closest('[inert]'))) return;
		if (key === 'Backspace' && this.takeBack()) return stop(event);
		const contexts = this.get<IContextService>(IContextService);
		for (const context of [FOCUSING_FX_BAR_EDITOR, EDITOR_ACTIVATED, FOCUSING_EDITOR_INPUT_FORMULA]) {
			if (contexts.getContextValue(context)) contexts.setContextValue(context, false);
		}
		const instances = this.get<IUniverInstanceService>(IUniverInstanceService);
		if (instances.getFocusedUnit()?.getUnitId() !== this.parts.unitId) instances.focusUnit(this.parts.unitId);
		const { input } = this;
		if (nothing) input?.focus();
		// Without a cursor, the editor drops the key.
		if (input && !input.getActiveTextRange()) this.get<IEditorBridgeService>(IEditorBridgeService).refreshEditCellState();
	}

	/** Why an event may not open the editor of the selected cell; null: it may, or does not. */
	private refusalOf({ target }: Event): 'role' | 'locked' | null {
		const isInput = target instanceof HTMLElement && inputs.has(target.id);
		return isInput && !this.parts.editor.isOpen ? this.refusal() : null;
	}

	private refusal(): 'role' | 'locked' | null {
		const { place } = this;
		return place && this.parts.events.refusal(place);
	}

	/** Text for a cell that somebody else is editing. */
	private collect({ data }: Pick<InputEvent, 'data'>): void {
		const { place } = this;
		if (!place || !data) return;
		if (!isSame(this.refused, place)) this.offer();
		this.wait({ ...place, text: (this.refused?.text ?? '') + data });
	}

	/** Takes back the last letter of the refused text of the selected cell. Returns whether there is one. */
	private takeBack(): boolean {
		const { place, refused } = this;
		if (!refused || !place || !isSame(refused, place)) return false;
		const letters = [...new Intl.Segmenter().segment(refused.text)];
		this.wait({ ...place, text: refused.text.slice(0, letters.at(-1)?.index) });
		return true;
	}

	private wait(refused: Place & { text: string }): void {
		clearTimeout(this.pause);
		this.refused = refused.text === '' ? null : refused;
		this.pause = setTimeout(() => this.offer(), pauseMs);
	}

	private offer(): void {
		clearTimeout(this.pause);
		if (this.refused) this.parts.events.onRefusedText(this.editOf(this.refused, this.refused.text));
		this.refused = null;
	}

	/** The refused text moves with its cell. Returns it if the cell is deleted. */
	move(change: StructureEdit): string | null {
		const { refused } = this;
		const place = refused && movePlace(refused, change);
		this.refused = place ? { ...place, text: moveContent(refused.text, change) ?? refused.text } : null;
		return refused && !place ? refused.text : null;
	}

	/** A text as it is typed into a cell. */
	private editOf({ row, col }: Place, text: string): CellEdit {
		return { row, col, content: typedContent(text, (this.stateOf({ row, col }).style?.['n'] as { pattern?: string } | undefined)?.pattern) };
	}

	/** No text is lost because its cell cannot be read. */
	private stateOf({ row, col }: Place): CellState {
		try {
			return this.parts.read(row, col);
		} catch {
			return { content: '', style: null };
		}
	}

	/** The cell that is edited, or would be. */
	private get place(): Place | null {
		const location = this.get<IEditorBridgeService>(IEditorBridgeService).getEditLocation();
		return location ? { row: location.row, col: location.column } : null;
	}

	/** Whether Univer may execute this now. */
	allows(id: string, params?: { visible?: boolean; unitId?: string; keycode?: number }): boolean {
		if (this.parts.editor.isOpen) {
			if (id !== 'sheet.operation.set-cell-edit-visible' || params?.visible) return true;
			const { place } = this;
			const text = params?.keycode === KeyCode.ESC ? null : this.parts.editor.text();
			this.closing = place && text ? { ...place, text, isSettled: false } : null;
			return true;
		}
		if (id === 'sheet.operation.set-cell-edit-visible') return !params?.visible || !this.refusal();
		return id !== 'doc.mutation.rich-text-editing' || this.replacing || !inputs.has(inputId(params?.unitId ?? ''));
	}

	/** Runs what gives the hidden editor the text of the selected cell. */
	replace<T>(run: () => T): T {
		const before = this.replacing;
		this.replacing = true;
		try {
			return run();
		} finally {
			this.replacing = before;
		}
	}

	reported(changes: Place[]): void {
		const { closing } = this;
		if (closing && changes.some((place) => isSame(place, closing))) closing.isSettled = true;
	}

	/** The editor is closed, and Univer has written its text. */
	closed(): void {
		this.closing = null;
	}

	/** Something has failed. It may have been Univer while it wrote the text of the editor: the cell tells. */
	private failed(error: unknown): void {
		const { closing } = this;
		// Browsers report by such an event that a ResizeObserver waits for the next frame.
		if (!closing || error === null || error === undefined) return;
		setTimeout(() => {
			if (closing.isSettled) return;
			closing.isSettled = true;
			const edit = this.editOf(closing, closing.text);
			if (this.stateOf(closing).content !== edit.content) this.parts.events.onUnsaved([edit], error);
		});
	}

	dispose(): void {
		this.offer();
		this.listeners.abort();
	}
}

const isSame = (a: Place | null, b: Place): boolean => a?.row === b.row && a.col === b.col;

/** A button or a link has no use for letters: after a click on it, they are for the selected cell. */
function isControl(element: Element): boolean {
	return element.matches('button, a') && !element.closest('dialog, [role="menu"], [role="listbox"], [data-u-comp="rect-popup"]');
}

function stop(event: Event): void {
	event.preventDefault();
	event.stopImmediatePropagation();
}
