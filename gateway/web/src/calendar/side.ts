// side.ts - the list of calendars beside the calendar: which are shown, in which colour, and what is done with a whole one.
import { SheetApi, type Session } from '../api';
import { button, h, notify } from '../dom';
import { loadEditorTexts, t } from '../i18n';
import { invitations, type Choices } from './choices';
import { colourOf, colours } from './colours';
import type { Calendar } from './http';

export interface SideEvents {
	/** Others are shown. */
	changed(): void;
	setColour(calendar: Calendar, colour: string): void;
	toSheet(id: number): void;
	/** The last edit of a calendar that is known. */
	seqOf(id: number): number;
}

/** Opens the dialog that shares the sheet of a calendar. */
async function share(session: Session, { id, name }: Calendar, seqOf: SideEvents['seqOf']): Promise<void> {
	try {
		const [{ openShare }] = await Promise.all([import('../pages/share'), loadEditorTexts()]);
		const whole = { row: 0, col: 0, toRow: 0, toCol: 0 };
		openShare(
			{ session, sheetApi: new SheetApi(session, id), drawers: h('div'), selection: () => whole, seq: () => seqOf(id) },
			t('calendar.shareOf', { name }),
		);
	} catch {
		notify(t('error.unreachable'), 'problem');
	}
}

/** The rows of the list. */
export function calendarRows(session: Session, calendars: readonly Calendar[], hasInvitations: boolean, choices: Choices, events: SideEvents): HTMLElement[] {
	const row = ({ id, name, colour }: Pick<Calendar, 'id' | 'name' | 'colour'>, ...actions: HTMLElement[]) => {
		const swatch = h('input', {
			type: 'checkbox',
			checked: choices.isShown(id),
			change: () => {
				choices.show(id, swatch.checked);
				events.changed();
			},
		});
		const item = h('li', { 'data-calendar': id }, h('label', { class: 'check' }, swatch, ' ', h('span', { class: 'name' }, name)), ...actions);
		item.style.setProperty('--colour', colourOf({ id, colour }));
		return item;
	};
	const colour = (calendar: Calendar) => {
		const now = colourOf(calendar);
		const known: readonly string[] = colours;
		const select = h(
			'select',
			{ 'aria-label': t('calendar.colourOf', { name: calendar.name }), change: () => events.setColour(calendar, select.value) },
			...known.map((value, i) => h('option', { value, selected: value === now }, t(`calendar.colour.${i}`))),
			!known.includes(now) && h('option', { value: now, selected: true }, t('calendar.colour.other', { colour: now })),
		);
		return select;
	};
	const actions = (calendar: Calendar) => {
		const { id, name } = calendar;
		const follow = (event: Event) => {
			const click = event as MouseEvent;
			if (click.ctrlKey || click.metaKey || click.shiftKey || click.button !== 0) return;
			event.preventDefault();
			events.toSheet(id);
		};
		return h(
			'details',
			{ class: 'more' },
			h('summary', { 'aria-label': t('calendar.moreOf', { name }) }, '⋯'),
			h(
				'div',
				{},
				colour(calendar),
				h('a', { href: `/?id=${id}`, click: follow, 'aria-label': t('calendar.toSheetOf', { name }) }, t('calendar.toSheet')),
				calendar.role === 'owner' &&
					button(t('calendar.share'), () => void share(session, calendar, events.seqOf), { 'aria-label': t('calendar.shareOf', { name }) }),
			),
		);
	};
	return [
		...calendars.map((calendar) => row(calendar, actions(calendar))),
		...(hasInvitations ? [row({ id: invitations, name: t('calendar.invitations'), colour: null })] : []),
	];
}
