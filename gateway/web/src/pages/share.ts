// share.ts - the dialog that shares a sheet with a user by name, or with everybody who opens its link.
import { button, explain, field, h, notify, openDialog } from '../dom';
import { t } from '../i18n';
import { accessList, givenRoles } from './access';
import type { EditorContext } from './drawer';

function roleChoice(label: string, choices: string[]): { row: HTMLElement; select: HTMLSelectElement } {
	const id = `role-${label.length}-${choices.length}`;
	const select = h('select', { id }, ...choices.map((role) => h('option', { value: role }, role === '' ? t('share.choose') : t(`role.${role}`))));
	return { row: h('div', { class: 'field' }, h('label', { for: id }, label), select), select };
}

export function openShare({ sheetApi }: EditorContext, heading: string): void {
	const name = field(t('signin.username'), { name: 'share-name', required: true, autocomplete: 'off' });
	const role = roleChoice(t('share.role'), givenRoles);
	const problem = h('p', { class: 'problem', role: 'alert' });
	const linkRole = roleChoice(t('share.linkRole'), ['', 'off', 'viewer', 'editor']);
	const link = field(t('share.link'), { value: '', readonly: true, placeholder: t('share.noLink') });

	const linkState = h('p', { class: 'link-state' });
	const ofOwner = h('div', {});
	const access = accessList(sheetApi, run, (own, shared) => {
		ofOwner.hidden = own !== 'owner';
		linkState.textContent = shared === null ? t('access.noLink') : t('access.link', { role: t(`role.${shared}`) });
	});

	async function run(work: () => Promise<void>, done: () => string): Promise<void> {
		problem.textContent = '';
		try {
			await work();
			notify(done());
		} catch (error) {
			problem.textContent = explain(error);
		}
	}
	const share = (event: Event) => {
		event.preventDefault();
		void access.give(name.input.value.trim(), role.select.value, () => (name.input.value = ''));
	};
	const setLink = () => {
		if (linkRole.select.value === '') {
			linkRole.select.focus();
			return;
		}
		const chosen = linkRole.select.value === 'off' ? null : linkRole.select.value;
		void run(
			async () => {
				const key = await sheetApi.shareLink(chosen);
				link.input.value = key === null ? '' : `${location.origin}/?id=${sheetApi.fid}#link=${key}`;
				await access.load();
			},
			() => t(chosen ? 'share.linkOn' : 'share.linkOff'),
		);
	};
	const copy = () => {
		if (link.input.value === '') {
			linkRole.select.focus();
			return;
		}
		link.input.select();
		const copied = navigator.clipboard?.writeText(link.input.value) ?? Promise.reject(new Error('no clipboard'));
		copied.then(
			() => notify(t('share.copied')),
			() => notify(t('share.copyByHand')),
		);
	};
	ofOwner.append(
		h('form', { class: 'inline', submit: share }, name.row, role.row, h('button', { type: 'submit', class: 'primary' }, t('share.add'))),
		h('h3', {}, t('share.byLink')),
		h('p', {}, t('share.linkHelp')),
		h('div', { class: 'inline' }, linkRole.row, button(t('share.setLink'), setLink)),
		h('div', { class: 'inline' }, link.row, button(t('share.copy'), copy)),
	);
	openDialog(heading, ofOwner, linkState, problem, access.element);
	void access.load();
}
