// tools.ts - what the page does with a sheet besides editing: finds and replaces, tags, publishes cells as a paste, prints. Keys and buttons,
// also those of guests.
import type { Session } from '../api';
import { cellName } from '../content';
import { cellsFrom } from '../csv';
import { bdi, button, h, notify } from '../dom';
import { chooseRows } from '../files/choose';
import { personName, t } from '../i18n';
import type { Navigation } from '../main';
import type { SheetSession } from '../sheet/session';
import type { Place } from '../v2/messages';
import type { UniverView } from '../view/univer';
import type { EditorContext } from './drawer';
import type { TagDrawer, TagSheet } from '../tags/drawer';
import type { FindDrawer } from './find';
import { addPrinting } from './print';

interface ToolParts {
	context: EditorContext;
	session: SheetSession;
	view(): UniverView | null;
	name(): string;
}

export interface Tools {
	buttons: HTMLElement[];
	end(): void;
}

export function addTools({ context, session, view, name }: ToolParts): Tools {
	let find: Promise<FindDrawer> | undefined;
	let tags: Promise<TagDrawer> | undefined;
	let ended = false;
	const sheetNow = () => {
		const grid = view();
		const parts = grid?.parts;
		if (!grid || !parts) return null;
		return { name: name(), parts, contentOf: (place: Place) => grid.contentOf(place) ?? { content: '', shown: '' }, unread: () => session.unread };
	};

	const cells = {
		contentAt({ row, col }: Place) {
			session.flush();
			return view()?.read(row, col).content ?? '';
		},
		shownAt: (place: Place) => view()?.contentOf(place)?.shown ?? '',
		canEdit: () => session.canEdit,
		lacks: (ranges: Parameters<SheetSession['lacks']>[0]) => session.lacks(ranges),
		holderOf: (place: Place) => session.holderOf(place),
		write: (...edits: Parameters<SheetSession['rewrite']>) => session.rewrite(...edits),
	};

	async function openTags(): Promise<void> {
		const sheet = sheetNow();
		if (!sheet) return;
		void view()?.acceptEditing();
		const property: TagSheet['property'] = (target) => session.properties().value(target);
		tags ??= import('../tags/drawer').then(({ TagDrawer }) => new TagDrawer(context, { ...sheet, ...cells, property }));
		try {
			const drawer = await tags;
			if (!ended) drawer.open();
		} catch {
			tags = undefined;
			notify(t('error.unreachable'), 'problem');
		}
	}

	async function openFind(replace: boolean): Promise<void> {
		const sheet = sheetNow();
		if (!sheet) return;
		void view()?.acceptEditing();
		find ??= import('./find').then(({ FindDrawer }) => new FindDrawer(context, { ...sheet, ...cells }));
		try {
			const drawer = await find;
			if (!ended) drawer.open(replace);
		} catch {
			find = undefined;
			notify(t('error.unreachable'), 'problem');
		}
	}

	async function publish(): Promise<void> {
		const parts = view()?.parts;
		if (!parts) return;
		const range = context.selection();
		try {
			await view()?.acceptEditing();
			const { publishRange } = await import('../pastes/publish');
			if (ended) return;
			await publishRange({ session: context.session, name: name(), parts, lacks: (ranges) => session.lacks(ranges) }, range);
		} catch {
			notify(t('error.unreachable'), 'problem');
		}
	}

	/** A file becomes the cells from the selected one on. */
	async function importHere(): Promise<void> {
		await view()?.acceptEditing();
		const { row, col } = context.selection();
		const ref = cellName(row, col);
		chooseRows(context.session, {
			request: () => cellsFrom(context.sheetApi.fid, ref),
			note: t('csv.hereHelp', { ref }),
			done: () => notify(t('csv.hereDone', { ref })),
		});
	}

	const listening = new AbortController();
	const keys = (event: KeyboardEvent) => {
		// On other keyboards than Latin ones, the key's place counts.
		const letter = (/^[a-z]$/i.test(event.key) ? event.key : event.code.replace('Key', '')).toLowerCase();
		if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || !/^[fh]$/.test(letter) || document.querySelector('dialog[open]')) return;
		event.preventDefault();
		event.stopPropagation();
		void openFind(letter === 'h');
	};
	window.addEventListener('keydown', keys, { capture: true, signal: listening.signal });
	const endPrinting = addPrinting(sheetNow);
	return {
		buttons: [
			button(t('find.title'), () => void openFind(false)),
			button(t('publish.title'), () => void publish(), { class: 'for-accounts', 'aria-haspopup': 'dialog' }),
			button(t('tags.title'), () => void openTags()),
			button(t('csv.here'), () => void importHere(), { class: 'for-editors', 'aria-haspopup': 'dialog' }),
			button(t('print.title'), () => window.print()),
		],
		end() {
			ended = true;
			listening.abort();
			endPrinting();
		},
	};
}

/** What a guest has instead of an account, with texts of links: the own name, and the ways out. */
export function guestButtons(guest: Session, navigation: Navigation): HTMLElement[] {
	return [
		h('span', { class: 'user' }, bdi(personName(guest.username))),
		button(t('signin.submit'), () => navigation.signIn(), { class: 'link' }),
		button(t('guest.leave'), () => navigation.leave(), { class: 'leave' }),
	];
}
