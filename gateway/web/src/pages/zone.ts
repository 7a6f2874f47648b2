// zone.ts - the time zone of the sheet, in the bar below the grid: a button that names it, and a dialog in which editors change it.
import { button, h, openDialog } from '../dom';
import { t } from '../i18n';

export class ZoneButton {
	readonly element: HTMLButtonElement;
	private zone = '';

	constructor(
		private readonly canEdit: () => boolean,
		private readonly write: (zone: string) => void,
	) {
		this.element = button(t('zone.button', { zone: '\u2026' }), () => this.open(), { class: 'zone', 'aria-haspopup': 'dialog', title: t('zone.help') });
	}

	show(zone: string): void {
		if (zone === this.zone) return;
		this.zone = zone;
		this.element.textContent = t('zone.button', { zone });
	}

	private open(): void {
		const names = new Set(['UTC', this.zone, ...Intl.supportedValuesOf('timeZone')]);
		const canEdit = this.canEdit();
		const select = h(
			'select',
			{ id: 'zone', disabled: !canEdit },
			...[...names].sort().map((name) => h('option', { value: name, selected: name === this.zone }, name.replaceAll('_', ' '))),
		);
		const { close } = openDialog(
			t('zone.title'),
			h('p', {}, t('zone.help')),
			h('div', { class: 'field' }, h('label', { for: 'zone' }, t('zone.label')), select),
			h(
				'footer',
				{},
				button(t('cancel'), () => close()),
				button(
					t('zone.save'),
					() => {
						if (select.value !== this.zone) this.write(select.value);
						close();
					},
					{ class: 'primary', disabled: !canEdit },
				),
			),
		);
	}
}
