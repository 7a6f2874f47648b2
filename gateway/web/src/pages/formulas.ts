// formulas.ts - what the page says about formulas that are not computed, and the way to open a sheet without them (?formulas=off).
import { cellName } from '../content';
import { button, h, notify } from '../dom';
import { t } from '../i18n';
import type { ComputingOptions, StoredValues } from '../view/formulas/computing';

export class FormulaNotice {
	private readonly text = h('span', {});
	private readonly other = button('', () => this.reopen());
	/** For the bar. */
	readonly element = h('span', { class: 'formula-notice', role: 'status' }, this.text, ' ', this.other);
	private isOff = new URLSearchParams(location.search).get('formulas') === 'off';

	constructor() {
		this.element.hidden = true;
		if (this.isOff) this.show(t('formulas.off'));
	}

	private show(text: string): void {
		this.text.textContent = text;
		this.other.textContent = t(this.isOff ? 'formulas.compute' : 'formulas.openWithout');
		this.element.hidden = false;
	}

	/** Opens the sheet with formulas, or without. */
	private reopen(): void {
		const address = new URL(location.href);
		if (this.isOff) address.searchParams.delete('formulas');
		else address.searchParams.set('formulas', 'off');
		if (address.href === location.href) location.reload();
		else location.assign(address);
	}

	/** For the grid. */
	options(seq: () => number, stored: () => Promise<StoredValues>, others: ComputingOptions['others']): ComputingOptions {
		return {
			off: this.isOff,
			seq,
			stored,
			others,
			onStopped: ({ row, col }) => notify(t('formulas.stopped', { cell: cellName(row, col) }), 'problem'),
			onSlow: () => this.show(t('formulas.slow')),
			onComputed: () => (this.element.hidden = !this.isOff),
			onOff: () => {
				this.isOff = true;
				this.show(t('formulas.off'));
			},
		};
	}
}
