// album.ts - what the account has uploaded: pictures in small, addresses to copy, deletion, and the used part of the quota.
// Loaded at its first use.
import { knownGateways, tryGateways, type Session } from '../api';
import { ProtocolError } from '../answers';
import { copyText } from '../copying';
import { attempt, bdi, button, confirmDialog, explain, h, openDialog } from '../dom';
import { formatTime, language, t } from '../i18n';
import { openAccessTokens } from '../programs';
import './album.css';

interface Uploaded {
	id: number;
	/** Its sheet; null: the account can no longer see it. */
	fid: number | null;
	name: string;
	size: number;
	at: string;
	/** null: nobody can open it, because its sheet is in the trash, or the account can no longer see the sheet. */
	url: string | null;
}

interface AlbumPage {
	files: Uploaded[];
	/** Start of the next page; null at the end. */
	next: number | null;
	/** Bytes; null: there is no quota. */
	used: number | null;
	quota: number | null;
}

const pictureName = /\.(png|jpe?g|gif|webp|avif)$/i;
const isPicture = ({ name }: Uploaded) => pictureName.test(name);

/** The forms in which an address is copied. */
export const forms: Record<string, (file: { name: string; url: string }) => string> = {
	plain: ({ url }) => url,
	markdown: ({ name, url }) =>
		`${pictureName.test(name) ? '!' : ''}[${name.replace(/[\\[\]`*_<]/g, '\\$&')}](${url.replace(/[()]/g, (sign) => (sign === '(' ? '%28' : '%29'))})`,
	html({ name, url }) {
		const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
		return pictureName.test(name) ? `<img src="${escaped(url)}" alt="${escaped(name)}">` : `<a href="${escaped(url)}">${escaped(name)}</a>`;
	},
};

function sizeText(bytes: number): string {
	const power = Math.min(3, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
	const unit = ['byte', 'kilobyte', 'megabyte', 'gigabyte'][power]!;
	return new Intl.NumberFormat(language, {
		style: 'unit',
		unit,
		unitDisplay: power === 0 ? 'long' : 'short',
		maximumFractionDigits: power === 0 ? 0 : 1,
	}).format(bytes / 1000 ** power);
}

async function readPage({ token }: Session, before: number | null): Promise<AlbumPage> {
	const path = `/v2/files${before === null ? '' : `?before=${before}`}`;
	const page = (await tryGateways(knownGateways(), path, { headers: { authorization: `Bearer ${token}` } }, true)) as AlbumPage | null;
	if (!Array.isArray(page?.files)) throw new ProtocolError('the answer has no files');
	return page;
}

async function remove({ token }: Session, id: number): Promise<void> {
	await tryGateways(knownGateways(), `/v2/files/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } }, true);
}

/** sheetName: of a sheet whose name the page knows. */
export function openAlbum(session: Session, sheetName: (fid: number) => string | undefined): void {
	const list = h('ul', { class: 'album' });
	const none = h('p', { class: 'empty', hidden: true }, t('album.none'));
	const problem = h('p', { class: 'problem', role: 'alert' });
	const usage = h('p', { role: 'status' });
	let [next, shown, bytes]: [number | null, number, number] = [null, 0, 0];
	const more = button(t('album.more'), () => void load(), { hidden: true });

	/** used and quota of the gateway's last answer; without a quota, what the shown files have. */
	let quota: Pick<AlbumPage, 'used' | 'quota'> = { used: null, quota: null };
	function showUsage(): void {
		none.hidden = shown > 0 || next !== null;
		const { used, quota: allowed } = quota;
		usage.textContent =
			used !== null && allowed !== null
				? t('album.quota', { used: sizeText(used), quota: sizeText(allowed) })
				: t(next === null ? 'album.all' : 'album.shown', { count: shown, size: sizeText(bytes) });
	}

	async function load(): Promise<void> {
		more.hidden = true;
		problem.textContent = '';
		try {
			const page = await readPage(session, next);
			next = page.next;
			quota = page;
			shown += page.files.length;
			bytes += page.files.reduce((sum, { size }) => sum + size, 0);
			const items = page.files.map(itemOf);
			list.append(...items);
			if (document.activeElement === document.body) items[0]?.querySelector('button')?.focus();
			showUsage();
		} catch (error) {
			problem.textContent = explain(error);
		}
		more.hidden = next === null && problem.textContent === '';
		more.textContent = problem.textContent === '' ? t('album.more') : t('retry');
	}

	function itemOf(file: Uploaded): HTMLElement {
		const { name, size, at, fid, url } = file;
		const place = url === null ? null : new URL(url).pathname;
		const ending = /\.([^.]{1,5})$/.exec(name)?.[1]?.toUpperCase() ?? '';
		const sign = h('span', { class: 'ending', 'aria-hidden': 'true' }, ending || '…');
		// A file whose name is that of a picture may be something else.
		const thumbnail =
			place !== null && isPicture(file)
				? h('img', { loading: 'lazy', decoding: 'async', alt: '', src: place, error: () => thumbnail.replaceWith(sign) })
				: sign;
		const copies =
			url === null
				? []
				: Object.entries(forms).map(([form, write]) =>
						button(t(`album.${form}`), () => copyText(write({ name, url })), { 'aria-label': t(`album.${form}Of`, { name }) }),
					);
		const link = fid !== null && h('a', { href: `/?id=${fid}` }, bdi(sheetName(fid) ?? t('album.sheet', { fid })));
		const state = fid === null ? t('album.notShared') : url === null && t('album.trashed');
		const item = h(
			'li',
			{},
			place === null
				? h('span', { class: 'thumbnail' }, thumbnail)
				: h('a', { class: 'thumbnail', href: place, target: '_blank', rel: 'noopener', 'aria-label': name }, thumbnail),
			h('p', { class: 'name' }, bdi(name)),
			h('p', { class: 'about' }, `${sizeText(size)} · `, h('time', { datetime: at }, formatTime(at))),
			h('p', { class: 'about' }, link, link && state && ' · ', state),
			h(
				'div',
				{ class: 'copies', role: 'group', 'aria-label': t('album.copyOf', { name }) },
				url !== null && h('span', { class: 'about' }, t('album.copy')),
				...copies,
				button(t('album.delete'), () => void ask(), { class: 'danger', 'aria-label': t('album.deleteOf', { name }) }),
			),
		);
		async function ask(): Promise<void> {
			if (!(await confirmDialog(t('album.delete'), t('album.deleteQuestion', { name }), t('album.delete'), true))) return;
			if (!(await attempt(() => remove(session, file.id)))) return;
			const neighbour = item.nextElementSibling ?? item.previousElementSibling;
			item.remove();
			(neighbour?.querySelector<HTMLElement>('.danger') ?? dialog.querySelector<HTMLElement>('button'))?.focus();
			shown--;
			bytes -= size;
			if (quota.used !== null) quota = { ...quota, used: quota.used - size };
			showUsage();
		}
		return item;
	}

	const { dialog } = openDialog(
		t('album.title'),
		h('p', {}, t('album.help')),
		usage,
		problem,
		none,
		list,
		h(
			'footer',
			{},
			more,
			button(t('tokens.title'), () => openAccessTokens(session)),
		),
	);
	dialog.classList.add('wide');
	void load();
}
