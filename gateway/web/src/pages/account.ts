// account.ts - the dialog of the own account: name, password, access tokens, and signing out everywhere. Loaded at its first use.
import { ApiError, changePassword, changeUsername, revokeTokens, type Session } from '../api';
import { Msg } from '../answers';
import { attempt, button, confirmDialog, explain, field, h, notify, openDialog } from '../dom';
import { t } from '../i18n';
import type { Navigation } from '../main';

/** Opens the dialog. renamed: called after session.username has changed. */
export function openAccount(session: Session, navigation: Navigation, renamed: () => void): void {
	const problem = h('p', { class: 'problem', role: 'alert' });
	const name = field(t('account.name'), { name: 'username', required: true, value: session.username, autocomplete: 'username' });
	const old = field(t('account.oldPassword'), { name: 'old-password', type: 'password', required: true, maxlength: 1024, autocomplete: 'current-password' });
	const password = field(t('account.newPassword'), {
		name: 'new-password',
		type: 'password',
		required: true,
		minlength: 8,
		maxlength: 1024,
		autocomplete: 'new-password',
	});

	/** A form whose only button does the work. */
	function form(label: string, work: () => Promise<void>, ...rows: HTMLElement[]): HTMLElement {
		const submit = h('button', { type: 'submit' }, label);
		const send = async (event: Event) => {
			event.preventDefault();
			problem.textContent = '';
			submit.disabled = true;
			try {
				await work();
			} catch (error) {
				problem.textContent = error instanceof ApiError && error.msg === Msg.NoPermission ? t('account.wrongPassword') : explain(error);
			} finally {
				submit.disabled = false;
			}
		};
		return h('form', { class: 'stacked', submit: (event) => void send(event) }, ...rows, h('footer', {}, submit));
	}

	async function rename(): Promise<void> {
		const next = name.input.value.trim();
		if (next === session.username) return;
		await changeUsername(session, next);
		renamed();
		notify(t('account.renamed', { name: next }));
	}
	async function setPassword(): Promise<void> {
		await changePassword(session, old.input.value, password.input.value);
		old.input.value = password.input.value = '';
		notify(t('account.passwordChanged'));
	}
	async function signOutEverywhere(): Promise<void> {
		if (!(await confirmDialog(t('account.everywhere'), t('account.everywhereQuestion'), t('account.everywhere'), true))) return;
		if (!(await attempt(() => revokeTokens(session)))) return;
		close();
		navigation.signOut();
	}

	const { close } = openDialog(
		t('account.title'),
		form(t('account.rename'), rename, name.row),
		h('h3', {}, t('account.password')),
		h('p', {}, t('account.passwordHelp')),
		form(t('account.changePassword'), setPassword, old.row, password.row),
		problem,
		h(
			'footer',
			{},
			button(t('tokens.title'), () => void import('../programs').then(({ openAccessTokens }) => openAccessTokens(session))),
			button(t('account.everywhere'), () => void signOutEverywhere(), { class: 'danger' }),
			button(t('signout'), () => (close(), navigation.signOut())),
		),
	);
}
