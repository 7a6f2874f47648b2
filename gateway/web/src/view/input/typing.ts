// typing.ts - where typed text goes: as a whole into the selected cell, or nowhere.
//
// Univer takes what is typed in a hidden editor, which has the text of the selected cell, and shows it at the first letter. What
// may not be edited is refused before Univer sees the key, a composition of an input method as a whole; and the texts of the
// hidden editor and of the formula bar do not change while no cell is edited. So nothing of what was refused is left when the
// cell may be edited later.
//
// The next key goes to the selected cell, also if nothing has the focus, or Univer's state is that of an editor that was closed.
import { DOCS_FORMULA_BAR_EDITOR_UNIT_ID_KEY, DOCS_NORMAL_EDITOR_UNIT_ID_KEY, EDITOR_ACTIVATED, FOCUSING_EDITOR_INPUT_FORMULA, FOCUSING_FX_BAR_EDITOR, IContextService, IUniverInstanceService } from '@univerjs/core';
import type { Injector } from '@univerjs/core';
import { DocSelectionRenderService } from '@univerjs/docs-ui';
import { IRenderManagerService } from '@univerjs/engine-render';
import { IEditorBridgeService } from '@univerjs/sheets-ui';
import type { Place } from '../../v2/messages';
import { canvasOf } from '../parts';
import type { CellEditor } from './cell-editor';

const inputId = (editor: string) => `__editor_${editor}`;
const inputs = new Set([DOCS_NORMAL_EDITOR_UNIT_ID_KEY, DOCS_FORMULA_BAR_EDITOR_UNIT_ID_KEY].map(inputId));
/** Keys that are not for the cells if nothing has the focus. */
const otherKeys = /^(Tab|Escape|Shift|Control|Alt|AltGraph|Meta|CapsLock|NumLock|ScrollLock|F[13-9]|F1[0-2])$/;

interface TypingParts {
	host: HTMLElement;
	/** Null while there is no grid. */
	injector(): Injector | null;
	unitId: string;
	editor: CellEditor;
	/** Whether the user may edit a cell now. Tells the user if not. */
	mayEdit(place: Place): boolean;
}

export class Typing {
	private readonly listeners = new AbortController();
	/** A composition that was refused is going on. */
	private refusing = false;
	private replacing = false;

	/** Has to be made before Univer, which listens for keys of the window too. */
	constructor(private readonly parts: TypingParts) {
		const listen = <Type extends keyof WindowEventMap>(type: Type, run: (event: WindowEventMap[Type]) => void) =>
			window.addEventListener(type, (event) => parts.injector() && run(event), { capture: true, signal: this.listeners.signal });
		listen('keydown', (event) => this.prepare(event.key));
		listen('beforeinput', (event) => this.filter(event));
		listen('compositionstart', (event) => {
			this.refusing = this.isRefused(event);
			this.filter(event);
		});
		for (const type of ['input', 'compositionupdate'] as const) listen(type, (event) => this.refusing && stop(event));
		listen('compositionend', (event) => {
			if (!this.refusing) return;
			this.refusing = false;
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
	private prepare(key: string): void {
		const focused = document.activeElement;
		const nothing = focused === null || focused === document.body || focused === canvasOf(this.parts.host);
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

	private isRefused({ target }: Event): boolean {
		return target instanceof HTMLElement && inputs.has(target.id) && !this.parts.editor.isOpen && !this.mayEdit();
	}

	private filter(event: Event): void {
		if (this.refusing || this.isRefused(event)) stop(event);
	}

	private mayEdit(): boolean {
		const location = this.get<IEditorBridgeService>(IEditorBridgeService).getEditLocation();
		return !location || this.parts.mayEdit({ row: location.row, col: location.column });
	}

	/** Whether Univer may execute this now. */
	allows(id: string, params?: { visible?: boolean; unitId?: string }): boolean {
		if (this.parts.editor.isOpen) return true;
		if (id === 'sheet.operation.set-cell-edit-visible') return !params?.visible || this.mayEdit();
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

	dispose(): void {
		this.listeners.abort();
	}
}

function stop(event: Event): void {
	event.preventDefault();
	event.stopImmediatePropagation();
}
