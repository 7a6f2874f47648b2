// sign-in.ts - the form to sign in or to register.
import { register, saveSession, signIn } from '../api';
import { button, explain, field, h, openDialog } from '../dom';
import { t } from '../i18n';
import type { Session } from '../api';
import { switches } from './switches';

export function showSignIn(root: HTMLElement, done: (session: Session) => void): void {
	let registering = false;
	const name = field(t('signin.username'), { name: 'username', autocomplete: 'username', required: true, autofocus: true });
	const email = field(t('signin.email'), { name: 'email', type: 'email', autocomplete: 'email', maxlength: 254 });
	const password = field(t('signin.password'), { name: 'password', type: 'password', required: true, maxlength: 1024 });
	const problem = h('p', { class: 'problem', role: 'alert' });
	const title = h('h1', {});
	const submit = h('button', { type: 'submit', class: 'primary' });
	const question = h('span', {});
	const other = button('', () => turn(!registering), { class: 'link' });

	function turn(toRegister: boolean): void {
		registering = toRegister;
		const kind = registering ? 'register' : 'signin';
		title.textContent = t(`${kind}.title`);
		submit.textContent = t(`${kind}.submit`);
		question.textContent = t(`${kind}.question`);
		other.textContent = t(`${kind}.other`);
		email.row.hidden = !registering;
		email.input.required = registering;
		password.input.autocomplete = registering ? 'new-password' : 'current-password';
		password.input.minLength = registering ? 8 : 0;
		problem.textContent = '';
	}

	async function send(event: Event): Promise<void> {
		event.preventDefault();
		problem.textContent = '';
		submit.disabled = true;
		try {
			const username = name.input.value.trim();
			done(registering ? await register(username, email.input.value.trim(), password.input.value) : await signIn(username, password.input.value));
		} catch (error) {
			problem.textContent = explain(error);
			name.input.focus();
		} finally {
			submit.disabled = false;
		}
	}

	turn(false);
	root.append(
		h(
			'main',
			{ class: 'sign-in' },
			h('p', { class: 'brand' }, h('span', { class: 'logo', 'aria-hidden': 'true' }), t('product')),
			title,
			h('form', { submit: (event) => void send(event) }, name.row, email.row, password.row, problem, submit),
			h('p', {}, question, ' ', other),
			switches(),
		),
	);
	name.input.focus();
}

/**
 * Asks for the password in place, after the token has ended. Resolves to whether the session has a new token. `leave` is
 * called if the user does not sign in again.
 */
export function askPassword(session: Session, leave: () => void): Promise<boolean> {
	return new Promise((resolve) => {
		const password = field(t('signin.password'), { name: 'password', type: 'password', required: true, maxlength: 1024, autocomplete: 'current-password' });
		const problem = h('p', { class: 'problem', role: 'alert' });
		const submit = h('button', { type: 'submit', class: 'primary' }, t('signin.submit'));
		let done = false;
		const send = async (event: Event) => {
			event.preventDefault();
			submit.disabled = true;
			try {
				Object.assign(session, await signIn(session.username, password.input.value));
				saveSession(session);
				done = true;
				close();
			} catch (error) {
				problem.textContent = explain(error);
				password.input.select();
			} finally {
				submit.disabled = false;
			}
		};
		const form = h(
			'form',
			{ submit: (event) => void send(event) },
			password.row,
			problem,
			h(
				'footer',
				{},
				button(t('signout'), () => (close(), leave())),
				submit,
			),
		);
		const { dialog, close } = openDialog(t('signin.again', { name: session.username }), h('p', {}, t('signin.againHelp')), form);
		dialog.addEventListener('close', () => resolve(done));
		password.input.focus();
	});
}
