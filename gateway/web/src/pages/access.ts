// access.ts - who may open a sheet or a book, in the dialog that shares it: roles are changed and taken back by the owner.
import type { Access, Member } from '../answers';
import { bdi, button, explain, h, notify } from '../dom';
import { t } from '../i18n';

/** Runs a change, and tells what it has done, or in `problem` why it is refused. */
export const runIn =
	(problem: HTMLElement) =>
	async (work: () => Promise<void>, done: () => string): Promise<void> => {
		problem.textContent = '';
		try {
			await work();
			notify(done());
		} catch (error) {
			problem.textContent = explain(error);
		}
	};

/** The roles that the page offers. It does not offer commenter, because a commenter can do no more than a viewer. */
export const givenRoles = ['editor', 'viewer'];

/** Of a sheet or a book. */
export interface AccessApi {
	access(after: number | null): Promise<Access>;
	/** role null: takes it back. */
	share(username: string, role: string | null): Promise<void>;
	/** Says that somebody has a role now. */
	told(name: string, role: string): string;
}

export interface AccessList {
	element: HTMLElement;
	/** Reads the list again. */
	load(): Promise<void>;
	/** Gives a user a role, reads the list again, and tells the role that the user has now: a link may give a higher one. */
	give(username: string, role: string, done?: () => void): Promise<void>;
}

/** change: runs what may fail, and shows the problem, or what `done` tells. onAccess: called with the role and the link, whenever they were read. */
export function accessList(
	api: AccessApi,
	change: (work: () => Promise<void>, done: () => string) => Promise<void>,
	onAccess: (role: string, link: string | null) => void,
): AccessList {
	const list = h('ul', { class: 'members' });
	const problem = h('p', { role: 'alert' });
	const more = button(t('access.more'), () => void read(true));
	/** By name. */
	const members = new Map<string, Member>();
	let next: number | null = null;
	let isOwner = false;
	/** A later call shows the list. */
	let reads = 0;
	more.hidden = true;

	async function read(further: boolean): Promise<void> {
		const current = ++reads;
		more.disabled = true;
		try {
			const access = await api.access(further ? next : null);
			if (current !== reads) return;
			next = access.next;
			isOwner = access.role === 'owner';
			problem.textContent = '';
			onAccess(access.role, access.link);
			const rows = [...access.members].sort((a, b) => Number(b.role === 'owner') - Number(a.role === 'owner')).map(row);
			if (!further) members.clear();
			for (const member of access.members) members.set(member.username, member);
			if (further) list.append(...rows);
			else list.replaceChildren(...rows);
			more.hidden = next === null;
		} catch (error) {
			if (current !== reads) return;
			problem.textContent = explain(error);
		}
		more.disabled = false;
	}

	function give(username: string, role: string, done = () => {}): Promise<void> {
		const work = async () => {
			await api.share(username, role);
			done();
			await read(false);
		};
		return change(work, () => {
			const now = members.get(username.normalize('NFC'))?.role ?? role;
			return now === role ? api.told(username, t(`role.${role}`)) : t('share.more', { name: username, role: t(`role.${now}`) });
		});
	}

	function row({ username, role, byLink }: Member): HTMLElement {
		const name = h('span', { class: 'member' }, bdi(username));
		const shown = byLink ? t('access.byLink', { role: t(`role.${role}`) }) : t(`role.${role}`);
		if (!isOwner || role === 'owner') return h('li', {}, name, h('span', {}, shown));
		const again = () => read(false);
		const select = h('select', { 'aria-label': t('access.roleOf', { name: username }) });
		const choices = givenRoles.includes(role) && !byLink ? givenRoles : ['', ...givenRoles];
		select.append(...choices.map((choice) => h('option', { value: choice }, choice === '' ? shown : t(`role.${choice}`))));
		select.value = byLink ? '' : choices.includes(role) ? role : '';
		select.addEventListener('change', () => {
			if (select.value !== '') void give(username, select.value).then(again);
		});
		const remove = button(
			t('access.remove'),
			() =>
				void change(
					() => api.share(username, null),
					() => t('access.removed', { name: username }),
				).then(again),
			{
				'aria-label': t('access.removeOf', { name: username }),
			},
		);
		return h('li', {}, name, select, remove);
	}

	return { element: h('div', {}, h('h3', {}, t('access.title')), problem, list, more), load: () => read(false), give };
}
