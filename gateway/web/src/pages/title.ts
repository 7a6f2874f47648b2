// title.ts - the name of a sheet in the bar, which is renamed where it stands.
import { ApiError } from '../api';
import { bdi, button, explain, h, notify } from '../dom';
import { isolated, t } from '../i18n';

export class SheetTitle {
	readonly element = h('h1', { class: 'sheet-name' }, '…');
	private name = '';
	private renamable = false;

	constructor(private readonly rename: (name: string) => Promise<void>) {}

	/** Shows the name that the gateway has told. */
	show(name: string): void {
		this.name = name;
		document.title = `${isolated(name) || t('sheets.unnamed')} – ${t('product')}`;
		if (!this.isEdited()) this.draw();
	}

	/** Whether the user may rename the sheet. */
	allow(renamable: boolean): void {
		this.renamable = renamable;
		if (!this.isEdited()) this.draw();
	}

	private isEdited(): boolean {
		return this.element.querySelector('input') !== null;
	}

	private draw(): void {
		const name = this.name || t('sheets.unnamed');
		if (this.renamable) this.element.replaceChildren(button(name, () => this.edit(), { class: 'link', dir: 'auto', title: t('sheets.rename') }));
		else this.element.replaceChildren(bdi(name));
	}

	private edit(): void {
		const input = h('input', { dir: 'auto', 'aria-label': t('sheets.newName') });
		let ended = false;
		const end = (focus: boolean) => {
			ended = true;
			this.draw();
			if (focus) this.element.querySelector('button')?.focus();
		};
		const save = async (focus: boolean) => {
			const next = input.value.trim();
			if (ended || input.disabled) return;
			if (next === this.name) return end(focus);
			input.disabled = true;
			try {
				await this.rename(next);
				this.name = next;
				this.show(next);
				end(focus);
			} catch (error) {
				notify(explain(error), 'problem');
				input.disabled = false;
				// What cannot be a name is corrected; for other reasons the old name is shown again.
				if (focus && error instanceof ApiError && error.code === 'sheet_name') input.focus();
				else end(false);
			}
		};
		input.value = this.name;
		input.addEventListener('blur', () => void save(false));
		input.addEventListener('keydown', (event) => {
			event.stopPropagation();
			if (event.isComposing) return;
			// The button that has the focus next must not hear of this key.
			if (event.key === 'Enter' || event.key === 'Escape') event.preventDefault();
			if (event.key === 'Enter') void save(true);
			else if (event.key === 'Escape') end(true);
		});
		this.element.replaceChildren(input);
		input.select();
	}
}
