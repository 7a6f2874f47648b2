// typing.ts - where typed text goes: as a whole into the selected cell, or nowhere.
//
// Univer takes what is typed in a hidden editor, which has the text of the selected cell, and shows it at the first letter. What
// may not be edited is refused before Univer sees the key, a composition of an input method as a whole; and the texts of the
// hidden editor and of the formula bar do not change while no cell is edited. So nothing of what was refused is left when the
// cell may be edited later. What was typed into a cell that somebody else is editing is offered.
//
// The next key goes to the selected cell, also if nothing has the focus, or Univer's state is that of an editor that was closed.
import { DOCS_FORMULA_BAR_EDITOR_UNIT_ID_KEY, DOCS_NORMAL_EDITOR_UNIT_ID_KEY, EDITOR_ACTIVATED, FOCUSING_EDITOR_INPUT_FORMULA, FOCUSING_FX_BAR_EDITOR, IContextService, IUniverInstanceService } from '@univerjs/core';
import type { Injector } from '@univerjs/core';
import { DocSelectionRenderService } from '@univerjs/docs-ui';
import { IRenderManagerService } from '@univerjs/engine-render';
import { IEditorBridgeService } from '@univerjs/sheets-ui';
import { KeyCode } from '@univerjs/ui';
import type { CellEdit, Place } from '../../v2/messages';
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
	editor: CellEditor;
	events: Pick<GridEvents, 'refusal' | 'onRefusedText' | 'onUnsaved'>;
}

export class Typing {
	private readonly listeners = new AbortController();
	/** Why the composition that is going on is refused; null: it is not. */
	private refusing: 'role' | 'locked' | null = null;
	private replacing = false;
	/** Refused text for a cell that somebody else is editing, until it is offered. */
	private refused: (Place & { content: string }) | null = null;
	private pause: ReturnType<typeof setTimeout> | undefined;
	/** The text of the editor that is being closed, until it is reported as the user's change. */
	private closing: CellEdit | null = null;

	/** Has to be made before Univer, which listens for keys of the window too. */
	constructor(private readonly parts: TypingParts) {
		const listen = <Type extends keyof WindowEventMap>(type: Type, run: (event: WindowEventMap[Type]) => void) =>
			window.addEventListener(type, (event) => parts.injector() && run(event), { capture: true, signal: this.listeners.signal });
		listen('keydown', (event) => this.prepare(event));
		listen('beforeinput', (event) => {
			const reason = this.refusing ?? this.refusalOf(event);
			if (reason === 'locked' && !this.refusing) this.collect(event.data);
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
			if (this.refusing === 'locked') this.collect(event.data);
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
	private prepare({ key, ctrlKey, altKey, metaKey }: KeyboardEvent): void {
		const isLetter = [...key].length === 1 && key !== ' ' && !ctrlKey && !altKey && !metaKey;
		const focused = document.activeElement;
		const nothing = focused === null || focused === document.body || focused === canvasOf(this.parts.host) || (isLetter && isControl(focused));
		const isInput = focused?.id === inputId(DOCS_NORMAL_EDITOR_UNIT_ID_KEY);
		if (this.parts.editor.isOpen || !(isInput || nothing)) return;
		if (nothing && (otherKeys.test(key) || document.querySelector('dialog[open]') || this.parts.host.closest('[inert]'))) return;
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
	private collect(text: string | null): void {
		const { place, refused } = this;
		if (!place || !text) return;
		if (refused && (refused.row !== place.row || refused.col !== place.col)) this.offer();
		this.refused = { ...place, content: (this.refused?.content ?? '') + text };
		clearTimeout(this.pause);
		this.pause = setTimeout(() => this.offer(), pauseMs);
	}

	private offer(): void {
		clearTimeout(this.pause);
		if (this.refused) this.parts.events.onRefusedText({ ...this.refused, content: typedContent(this.refused.content) });
		this.refused = null;
	}

	/** The cell that is edited, or would be. */
	private get place(): Place | null {
		const location = this.get<IEditorBridgeService>(IEditorBridgeService).getEditLocation();
		return location ? { row: location.row, col: location.column } : null;
	}

	private typed(): CellEdit | null {
		const { place } = this;
		const content = this.parts.editor.text();
		return place && content ? { ...place, content: typedContent(content) } : null;
	}

	/** Whether Univer may execute this now. */
	allows(id: string, params?: { visible?: boolean; unitId?: string; keycode?: number }): boolean {
		if (this.parts.editor.isOpen) {
			if (id === 'sheet.operation.set-cell-edit-visible' && !params?.visible) this.closing = params?.keycode === KeyCode.ESC ? null : this.typed();
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
		if (changes.some(({ row, col }) => this.closing?.row === row && this.closing.col === col)) this.closing = null;
	}

	/** The editor is closed, and Univer has written its text. */
	closed(): void {
		this.closing = null;
	}

	/** Something has failed. If Univer was about to write the text of the editor, it has not. */
	private failed(error: unknown): void {
		if (this.closing) this.parts.events.onUnsaved([this.closing], error);
		this.closing = null;
	}

	dispose(): void {
		this.offer();
		this.listeners.abort();
	}
}

/** A button or a link has no use for letters: after a click on it, they are for the selected cell. */
function isControl(element: Element): boolean {
	return element.matches('button, a') && !element.closest('dialog, [role="menu"], [role="listbox"], [data-u-comp="rect-popup"]');
}

function stop(event: Event): void {
	event.preventDefault();
	event.stopImmediatePropagation();
}
