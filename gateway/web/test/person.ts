// person.ts - somebody at a sheet without a browser: the page's session on a grid without Univer, and what people do at
// random. Also used by tests/gateway/convergence.test.mjs.
import { merge, mergesOf, setFreeze, setLines, unmerge } from '../src/sheet/arrange';
import type { CellState } from '../src/sheet/mirror';
import type { SessionEvents } from '../src/sheet/events';
import { SheetSession, type SessionGrid } from '../src/sheet/session';
import type { Socket } from '../src/v2/client';
import type { CellEdit, Hello, PropertyEdit, Range, StructureEdit } from '../src/v2/messages';
import { PropertySet, propertyName } from '../src/v2/properties';
import { contains, keyOf, moveKeys, placeOf } from '../src/v2/replica';

/** A grid without Univer: cells by "row,col". */
export class TestGrid implements SessionGrid {
	cells = new Map<string, CellState>();
	read(row: number, col: number): CellState {
		return this.cells.get(keyOf(row, col)) ?? { content: '', style: null };
	}
	arranged = 0;
	/** The properties, as they were when the grid was last arranged, and which merges of them count. */
	properties: string[] = [];
	merges: string[] = [];
	constructor(private readonly set = () => new PropertySet()) {}
	arrange(): void {
		this.arranged++;
		this.properties = listed(this.set().list());
		this.merges = listed(mergesOf(this.set()) as PropertyEdit[]);
	}
	apply(edits: CellEdit[]): void {
		for (const { row, col, content, style } of edits) {
			const before = this.read(row, col);
			this.cells.set(keyOf(row, col), { content: content ?? before.content, style: style === undefined ? before.style : style });
		}
	}
	fill(range: Range, cells: CellEdit[], skip: (row: number, col: number) => boolean): void {
		for (const key of this.cells.keys()) if (contains(range, ...placeOf(key)) && !skip(...placeOf(key))) this.cells.delete(key);
		this.apply(cells.filter(({ row, col }) => !skip(row, col)));
	}
	move(change: StructureEdit): void {
		moveKeys(this.cells, change);
	}
	list(range: Range): CellEdit[] {
		return [...this.cells].flatMap(([key, cell]) => {
			const [row, col] = placeOf(key);
			return contains(range, row, col) && (cell.content !== '' || cell.style) ? [{ row, col, ...cell }] : [];
		});
	}
	formulas() {
		return [...this.cells].flatMap(([key, { content }]) => (content.startsWith('=') ? [{ row: placeOf(key)[0], col: placeOf(key)[1], content }] : []));
	}
	contents(): Record<string, string> {
		return Object.fromEntries([...this.cells].filter(([, { content }]) => content !== '').map(([key, { content }]) => [key, content]));
	}
	styles(): Record<string, unknown> {
		return Object.fromEntries([...this.cells].filter(([, { style }]) => style).map(([key, { style }]) => [key, style]));
	}
}

/** Properties as "row,col,toRow,toCol,key=value", in order. */
export const listed = (properties: PropertyEdit[]): string[] =>
	properties.map((property) => `${propertyName(property)}=${JSON.stringify(property.value)}`).sort();

/** Numbers from 0 to n - 1, the same for each seed. */
export type Random = (n: number) => number;

export function randomOf(seed: number): Random {
	let state = seed >>> 0;
	return (n) => {
		state = (state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
	};
}

export interface PersonOptions {
	name: string;
	uid: number;
	sheet: number;
	url: string;
	token: string;
	open: (url: string, protocol: string) => Socket;
	random: Random;
}

export class Person {
	readonly grid: TestGrid = new TestGrid(() => this.session.properties());
	readonly session: SheetSession;
	/** Contents that this person has typed. */
	readonly typed: string[] = [];
	connected = false;
	refusals = 0;
	private frames: (() => void)[] = [];
	private attached = false;

	constructor(private readonly options: PersonOptions) {
		const { uid, sheet, url, token, open } = options;
		const heard: Partial<SessionEvents> = {
			onHello: (_hello: Hello) => {
				if (!this.attached) this.session.attach(this.grid);
				this.attached = true;
			},
			onStatus: ({ phase, loading }) => (this.connected = phase === 'connected' && !loading),
			onRefused: () => this.refusals++,
		};
		const events = new Proxy({} as SessionEvents, { get: (_, name: keyof SessionEvents) => heard[name] ?? (() => {}) });
		this.session = new SheetSession(
			{ sheet, uid, token: () => token, locate: async () => url, stopOf: () => null, open, schedule: (run) => this.frames.push(run) },
			events,
		);
		this.session.start();
	}

	/** An animation frame. */
	frame(): void {
		this.frames.splice(0).forEach((run) => run());
	}

	/** Nothing is on its way, as far as this person knows. */
	get isQuiet(): boolean {
		this.frame();
		return this.connected && this.session.unsaved === 0 && this.frames.length === 0;
	}

	/** Does something, in a sheet of about so many rows and columns. */
	act(rows: number, cols: number): void {
		if (!this.attached) return;
		const { random } = this.options;
		const what = random(100);
		if (what < 46) this.type(random(rows), random(cols), random(8));
		else if (what < 56) this.restructure(random(4), rows, cols);
		else if (what < 62) this.move(random(2) === 0, rows, cols);
		else if (what < 76) this.arrange(random(7), random(rows), random(cols));
		else if (what < 86) this.session.undo();
		else if (what < 91) this.session.redo();
		else this.frame();
	}

	private type(row: number, col: number, how: number): void {
		this.session.flush();
		const before = this.grid.read(row, col);
		const after =
			how === 0 ? { content: '', style: before.style } : how === 1 ? { ...before, style: { bl: this.typed.length } } : { ...before, content: this.text() };
		this.grid.cells.set(keyOf(row, col), after);
		this.session.changed([{ row, col, before, after }]);
	}

	private text(): string {
		const { name, random } = this.options;
		const cell = () => `${'ABCDEFGH'[random(8)]}${1 + random(10)}`;
		const formula = [`=${cell()}`, `=SUM(${cell()}:${cell()})`][random(8)];
		const content = `${formula ? `${formula}&"` : ''}${name}${this.typed.length}${formula ? '"' : ''}`;
		this.typed.push(content);
		return content;
	}

	private restructure(kind: number, rows: number, cols: number): void {
		const { random } = this.options;
		const n = 1 + random(2);
		// A sheet of few rows grows.
		if (kind < 2) this.session.restructure({ kind: kind === 0 || rows < 8 ? 'insertRows' : 'deleteRows', at: random(rows - 2), n });
		else this.session.restructure({ kind: kind === 2 || cols < 6 ? 'insertColumns' : 'deleteColumns', at: random(cols - 2), n });
	}

	private move(ofRows: boolean, rows: number, cols: number): void {
		const { random } = this.options;
		const lines = ofRows ? rows : cols;
		this.session.moveLines({ rows: ofRows, at: random(lines), n: 1 + random(2), to: random(lines + 1) });
	}

	/** Changes properties as the page does (view/layout.ts), and empties the cells that a merge covers. */
	private arrange(what: number, row: number, col: number): void {
		const { random } = this.options;
		this.session.flush();
		const before = this.session.properties();
		const set = before.copy();
		const range = { row, col, toRow: row + random(3), toCol: col + random(3) };
		const ofRows = random(2) === 0;
		const [first, last] = ofRows ? [row, range.toRow] : [col, range.toCol];
		if (what < 2) setLines(set, ofRows ? 'height' : 'width', ofRows, first, last, random(4) === 0 ? null : 20 + random(9));
		else if (what === 2) setLines(set, 'hidden', ofRows, first, last, random(2) === 0);
		else if (what === 3) setFreeze(set, { rows: random(3), cols: random(3) });
		else if (what === 4) unmerge(set, range);
		else merge(set, range);
		const covered = what < 5 ? [] : this.grid.list(range).filter((cell) => cell.row !== row || cell.col !== col);
		const changes = covered.map((cell) => ({ row: cell.row, col: cell.col, before: this.grid.read(cell.row, cell.col), after: { content: '', style: null } }));
		for (const change of changes) this.grid.cells.set(keyOf(change.row, change.col), change.after);
		const properties = set.since(before);
		if (changes.length + properties.length > 0) this.session.changed(changes, properties);
	}
}
