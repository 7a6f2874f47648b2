// share.ts - the dialog that shares a sheet: with a user by name, by links that open it without an account (share/links.ts), and by the
// link for accounts.
import { button, field, h, notify, openDialog } from '../dom';
import { loadLinkTexts, t } from '../i18n';
import { accessList, givenRoles, runIn } from './access';
import type { EditorContext } from './drawer';
import { openHistory } from './history';

function roleChoice(label: string, choices: string[]): { row: HTMLElement; select: HTMLSelectElement } {
	const id = `role-${label.length}-${choices.length}`;
	const select = h('select', { id }, ...choices.map((role) => h('option', { value: role }, role === '' ? t('share.choose') : t(`role.${role}`))));
	return { row: h('div', { class: 'field' }, h('label', { for: id }, label), select), select };
}

export function openShare(context: EditorContext, heading: string): void {
	const { session, sheetApi, selection } = context;
	const name = field(t('signin.username'), { name: 'share-name', required: true, autocomplete: 'off' });
	const role = roleChoice(t('share.role'), givenRoles);
	const problem = h('p', { class: 'problem', role: 'alert' });
	const run = runIn(problem);
	const linkRole = roleChoice(t('share.linkRole'), ['', 'off', 'viewer', 'editor']);
	const link = field(t('share.link'), { value: '', readonly: true, placeholder: t('share.noLink') });

	const linkState = h('p', { class: 'link-state' });
	const ofOwner = h('div', {});
	const links = h('div', {});
	const byLink = h('details', { hidden: true }, h('summary', {}, t('share.byLink')), h('p', {}, t('share.linkHelp')));
	const told = (username: string, given: string) => t('share.done', { name: username, role: given });
	const ofSheet = {
		access: (after: number | null) => sheetApi.access(after),
		share: (username: string, given: string | null) => sheetApi.share(username, given),
		told,
	};
	const access = accessList(ofSheet, run, (own, shared) => {
		ofOwner.hidden = byLink.hidden = links.hidden = own !== 'owner';
		linkState.textContent = shared === null ? t('access.noLink') : t('access.link', { role: t(`role.${shared}`) });
		byLink.open ||= shared !== null;
		if (own === 'owner' && links.childElementCount === 0) void showLinks();
	});

	/** The links that need no account, whose module is loaded now. */
	async function showLinks(): Promise<void> {
		const showEdits = (uid: number, label: string) => {
			dialog.addEventListener('close', () => openHistory(context, { uid, username: `${label} (link)` }));
			close();
		};
		links.append(h('p', {}, t('loading')));
		const loaded = await Promise.all([import('../share/links'), loadLinkTexts()]).catch(() => null);
		if (loaded) links.replaceChildren(loaded[0].linkSection({ session, fid: sheetApi.fid, seq: context.seq(), selection: selection(), showEdits }));
		else links.replaceChildren(h('p', { class: 'problem', role: 'alert' }, t('error.unreachable')));
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
				link.input.value = key === null ? '' : `${location.origin}/?id=${sheetApi.fid}#join=${key}`;
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
	ofOwner.append(h('form', { class: 'inline', submit: share }, name.row, role.row, h('button', { type: 'submit', class: 'primary' }, t('share.add'))));
	byLink.append(
		h('div', { class: 'inline' }, linkRole.row, button(t('share.setLink'), setLink)),
		h('div', { class: 'inline' }, link.row, button(t('share.copy'), copy)),
	);
	const { dialog, close } = openDialog(heading, ofOwner, problem, access.element, linkState, byLink, links);
	void access.load();
}
