// people.ts - who else is in the sheet: a list in the bar (on a phone, a number that opens it), and following somebody: the
// grid scrolls to that person's selection, until the user moves or presses Escape.
import { bdi, h } from '../dom';
import { isolated, personName, t } from '../i18n';
import type { Mark } from '../sheet/presence';
import { colourOf } from '../view/marks';
import { announce } from './announce';
import { fold } from './fold';

const mostFaces = 5;
/** Somebody who reloads the page has neither left nor joined. */
const settleMs = 1500;

export class People {
	readonly element: HTMLElement;
	private readonly list = h('ul', { class: 'faces', 'aria-label': t('people.title') });
	private readonly number = h('span', { 'aria-hidden': 'true' }, '0');
	private readonly toggle: HTMLButtonElement;
	private readonly close: () => void;
	private names: string[] = [];
	/** Those who have been announced; null before the first. */
	private announced: string[] | null = null;
	private settling: ReturnType<typeof setTimeout> | undefined;
	private followed: string | null = null;
	private places = new Map<number, string>();
	private marks: Mark[] = [];
	private readonly listeners = new AbortController();

	/** `grid` is where the user's own moves end the following. Without a connection, nobody is known to have left. */
	constructor(
		grid: HTMLElement,
		private readonly scrollTo: (mark: Mark) => void,
		private readonly isConnected: () => boolean,
	) {
		({ toggle: this.toggle, close: this.close } = fold('people', t('people.title'), this.number, this.list));
		this.element = h('div', { class: 'people', hidden: true }, this.toggle, this.list);
		const { signal } = this.listeners;
		const own = () => this.follow(null);
		for (const type of ['pointerdown', 'wheel', 'keydown']) grid.addEventListener(type, own, { capture: true, passive: true, signal });
		document.addEventListener('keydown', ({ key }) => key === 'Escape' && this.follow(null), { capture: true, signal });
	}

	show(marks: Mark[], names: string[]): void {
		this.marks = marks;
		const different = [...new Set(names)].sort((a, b) => a.localeCompare(b));
		if (different.join('\n') !== this.names.join('\n') || this.announced === null) {
			this.names = different;
			this.draw();
			this.settling ??= setTimeout(() => this.settle(), this.announced === null ? 0 : settleMs);
		}
		const moved = marks.filter((mark) => this.places.get(mark.session) !== keyOf(mark));
		this.places = new Map(marks.map((mark) => [mark.session, keyOf(mark)]));
		const next = moved.find(({ name }) => name === this.followed);
		if (next) this.scrollTo(next);
	}

	/** Follows somebody, or nobody. */
	follow(name: string | null): void {
		if (name === this.followed) return;
		const before = this.followed;
		this.followed = name;
		announce(t(name === null ? 'people.followedNoMore' : 'people.followed', { name: personName(name ?? before ?? '') }));
		this.draw();
		const mark = this.marks.find((other) => other.name === name);
		if (mark) this.scrollTo(mark);
	}

	stop(): void {
		this.listeners.abort();
		clearTimeout(this.settling);
		this.close();
	}

	/** Announces who has come and who has left. */
	private settle(): void {
		this.settling = undefined;
		if (!this.isConnected()) return;
		const { announced: before, names } = this;
		this.announced = names;
		if (before === null) return;
		for (const name of names) if (!before.includes(name)) announce(t('people.joined', { name: personName(name) }));
		for (const name of before) if (!names.includes(name)) announce(t('people.left', { name: personName(name) }));
		if (this.followed !== null && !names.includes(this.followed)) this.follow(null);
	}

	private draw(): void {
		const { names } = this;
		const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.name : undefined;
		this.element.hidden = names.length === 0;
		this.number.textContent = String(names.length);
		this.toggle.setAttribute('aria-label', t('people.count', { count: names.length }));
		this.list.replaceChildren(...names.map((name) => h('li', {}, this.face(name))));
		this.element.classList.toggle('many', names.length > mostFaces);
		if (focused !== undefined) [...this.list.querySelectorAll('button')].find(({ dataset }) => dataset.name === focused)?.focus();
	}

	private face(name: string): HTMLElement {
		const followed = name === this.followed;
		const shown = personName(name);
		return h(
			'button',
			{
				type: 'button',
				class: / \(guest\)$/.test(name) ? 'face guest' : 'face',
				style: `--colour:${colourOf(name)}`,
				title: isolated(shown),
				'data-name': name,
				'aria-label': t('people.follow', { name: shown }),
				'aria-pressed': String(followed),
				click: () => this.follow(followed ? null : name),
			},
			h('span', { class: 'initial', 'aria-hidden': 'true' }, [...name][0]!.toUpperCase()),
			h('span', { class: 'name' }, bdi(shown)),
		);
	}
}

const keyOf = ({ row, col, toRow, toCol }: Mark): string => `${row},${col},${toRow},${toCol}`;
