// share.ts - the dialog that shares a book with people by name. Loaded at its first use, with the texts of a sheet.
import { ask, type Session } from '../api';
import { field, h, openDialog } from '../dom';
import { parsePage, type Member } from '../answers';
import { t } from '../i18n';
import { accessList, givenRoles, runIn, type AccessApi } from '../pages/access';

const memberOf = (value: unknown): Member => ({ byLink: false, ...(value as { username: string; role: string }) });

export function openBookShare({ token }: Session, id: number, bookName: string): void {
	const members = `/v2/books/${id}/members`;
	const api: AccessApi = {
		async access(after) {
			const { items, next } = parsePage(await ask('GET', `${members}?limit=200${after === null ? '' : `&after=${after}`}`, token), 'members', memberOf);
			return { role: 'owner', link: null, members: items, next };
		},
		async share(username, role) {
			const path = `${members}/${encodeURIComponent(username)}`;
			if (role === null) await ask('DELETE', path, token);
			else await ask('PUT', path, token, { role });
		},
		told: (username, given) => t('books.shared', { name: username, role: given }),
	};
	const name = field(t('signin.username'), { required: true, autocomplete: 'off' });
	const role = h('select', { id: 'book-role' }, ...givenRoles.map((each) => h('option', { value: each }, t(`role.${each}`))));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const run = runIn(problem);
	const access = accessList(api, run, () => {});
	const share = (event: Event) => {
		event.preventDefault();
		void access.give(name.input.value.trim(), role.value, () => (name.input.value = ''));
	};
	const rolePart = h('div', { class: 'field' }, h('label', { for: 'book-role' }, t('share.role')), role);
	openDialog(
		t('books.share', { name: bookName }),
		h('p', {}, t('books.shareHelp')),
		h('form', { class: 'inline', submit: share }, name.row, rolePart, h('button', { type: 'submit', class: 'primary' }, t('share.add'))),
		problem,
		access.element,
	);
	void access.load();
}
