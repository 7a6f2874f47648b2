// programs.ts - the dialog of access tokens, by which programs act as the account: list, create, revoke. Loaded at its first use.
import { accessTokens, createAccessToken, revokeAccessToken, type AccessToken, type Session } from './api';
import { attempt, bdi, button, confirmDialog, explain, field, h, openDialog } from './dom';
import { formatTime, t } from './i18n';

const scopes = ['read', 'edit', 'upload', 'admin'];
/** Days until the end of a new token; 0: it has none. */
const ends = [30, 90, 365, 0];
const usualEnd = 90;

const scopeNames = (names: string[]) => names.map((name) => t(`tokens.scope.${name}`)).join(', ');
const timeOr = (time: string | null, otherwise: string) => (time === null ? t(otherwise) : formatTime(time));

/** A list of choices with checkboxes; the first one is chosen. */
function scopeChoice(): { row: HTMLElement; chosen: () => string[] } {
	const boxes = scopes.map((value, i) => h('input', { type: 'checkbox', value, checked: i === 0 }));
	const labels = boxes.map((box, i) => h('label', {}, box, ' ', t(`tokens.scope.${scopes[i]}`), h('small', {}, ` ${t(`tokens.may.${scopes[i]}`)}`)));
	return {
		row: h('fieldset', { class: 'stacked' }, h('legend', {}, t('tokens.scopes')), ...labels),
		chosen: () => boxes.filter((box) => box.checked).map((box) => box.value),
	};
}

export function openAccessTokens(session: Session): void {
	const list = h('tbody');
	const none = h('p', { hidden: true }, t('tokens.none'));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const name = field(t('tokens.name'), { name: 'token-name', required: true, maxlength: 100, autocomplete: 'off' });
	const choice = scopeChoice();
	const end = h(
		'select',
		{ id: 'token-end' },
		...ends.map((days) => h('option', { value: days, selected: days === usualEnd }, days === 0 ? t('tokens.never') : t('tokens.days', { days }))),
	);
	const made = field(t('tokens.made'), { readonly: true, autocomplete: 'off', spellcheck: 'false' });
	made.row.hidden = true;

	function rowOf(token: AccessToken): HTMLElement {
		const ended = token.expiresAt !== null && Date.parse(token.expiresAt) <= Date.now();
		return h(
			'tr',
			{},
			h('td', {}, bdi(token.label)),
			h('td', {}, scopeNames(token.scopes)),
			h('td', {}, ended ? t('tokens.ended') : timeOr(token.expiresAt, 'tokens.never')),
			h('td', {}, timeOr(token.lastUsed, 'tokens.unused')),
			h(
				'td',
				{},
				button(t('tokens.revoke'), () => void revoke(token), { class: 'danger', 'aria-label': t('tokens.revokeName', { name: token.label }) }),
			),
		);
	}
	async function show(): Promise<void> {
		const tokens = await accessTokens(session);
		list.replaceChildren(...tokens.map(rowOf));
		none.hidden = tokens.length > 0;
	}
	async function revoke(token: AccessToken): Promise<void> {
		if (!(await confirmDialog(t('tokens.revoke'), t('tokens.revokeQuestion', { name: token.label }), t('tokens.revoke'), true))) return;
		await attempt(async () => {
			await revokeAccessToken(session, token.id);
			await show();
		});
	}
	async function create(event: Event): Promise<void> {
		event.preventDefault();
		problem.textContent = '';
		const chosen = choice.chosen();
		if (chosen.length === 0) {
			problem.textContent = t('tokens.noScope');
			return;
		}
		submit.disabled = true;
		try {
			made.input.value = await createAccessToken(session, name.input.value.trim(), chosen, Number(end.value) || null);
			made.row.hidden = false;
			made.input.select();
			name.input.value = '';
			await show();
		} catch (error) {
			problem.textContent = explain(error);
		} finally {
			submit.disabled = false;
		}
	}

	const submit = h('button', { type: 'submit', class: 'primary' }, t('tokens.create'));
	openDialog(
		t('tokens.title'),
		h('p', {}, t('tokens.help')),
		h('table', {}, h('thead', {}, h('tr', {}, ...['name', 'scopes', 'end', 'used'].map((column) => h('th', {}, t(`tokens.${column}`))), h('th', {}))), list),
		none,
		h(
			'form',
			{ class: 'stacked', submit: (event) => void create(event) },
			name.row,
			choice.row,
			h('div', { class: 'field' }, h('label', { for: 'token-end' }, t('tokens.end')), end),
			problem,
			made.row,
			h('footer', {}, submit),
		),
	);
	void attempt(show);
}
