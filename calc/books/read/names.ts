// names.ts - what names and tables mean in the formulas of a workbook. Sheets know neither: formulas have the references, or the
// constants, in their place (docs/design/workbooks.md).
import { columnOf, isCellName, quotedTab } from '../formulas';
import { isAlike } from '../intersection';
import { bracketsPattern, cellsOf, type NamedTable } from '../structured';
import type { KeptName } from './kept';

/** Of a formula, and of what a name means. */
const mostCharacters = 32_766;
/** Of what all names mean. */
const mostMeanings = 16 << 20;
/** Of what formulas have in place of names, beyond these. */
const mostGrowth = 128 << 20;
/** Names of names. */
const mostDepth = 32;

export interface DefinedName {
	/** The tab whose formulas know it, as its place among all; null: those of all tabs. */
	at: number | null;
	name: KeptName;
}

/** Where a formula is. */
export interface Place {
	/** The tab's place among all. */
	at: number;
	row: number;
	col: number;
}

interface Written {
	text: string;
	/** It has a name that cannot be written as what it means. */
	hasNames: boolean;
}

interface Meaning {
	/** Of a reference, without the name of its tab. */
	text: string;
	/** The tab of a reference. */
	at?: number;
}

// ---- parts of formulas ----

const inWord = '[\\p{L}\\p{M}\\p{N}_.\\\\?]';
const tabWord = '[\\p{L}\\p{M}\\p{N}_.]+';
const word = `[\\p{L}_\\\\]${inWord}*`;
const cell = '\\$?[A-Z]{1,3}\\$?[1-9][0-9]{0,7}';
const tokens = new RegExp(
	[
		`"(?:[^"]|"")*"|\\{(?:"(?:[^"]|"")*"|[^"{}])*\\}|#(?:N/A|DIV/0!|[A-Z_]+[!?])|(?:TRUE|FALSE)(?!${inWord}|[(!\\[])`,
		`(?:(?<tab>'(?:[^']|'')*'|(?:\\[[^\\[\\]]*\\])?(?:${tabWord}(?::${tabWord})?)?)!)?(?:` +
			`(?<reference>(?:${cell}(?::${cell})?|\\$?[A-Z]{1,3}:\\$?[A-Z]{1,3}|\\$?[0-9]+:\\$?[0-9]+)(?!${inWord}|[($!\\[]))|` +
			`(?<name>${word})(?<brackets>${bracketsPattern})?|(?<missing>#REF!))`,
		`(?<own>${bracketsPattern})`,
		`[0-9.]+(?:E[+-]?[0-9]+)?`,
		// A text or a bracket that is not closed, and all behind it.
		`(?<open>["'{\\[][^]*)`,
		`${tabWord}|[^]`,
	].join('|'),
	'giu',
);

type Groups = Partial<Record<'tab' | 'reference' | 'name' | 'brackets' | 'missing' | 'own' | 'open', string>>;

const isAbsolute = (reference: string): boolean => /^(?:\$[A-Z]+\$[0-9]+(?::\$[A-Z]+\$[0-9]+)?|\$[A-Z]+:\$[A-Z]+|\$[0-9]+:\$[0-9]+)$/i.test(reference);

/** The range from one reference to another; undefined: one is of whole rows or columns. */
function join(from: string, to: string): string | undefined {
	const corners = [...from.split(':'), ...to.split(':')].map((corner) => /^\$([A-Z]+)(\$?)([0-9]+)$/i.exec(corner));
	if (corners.includes(null)) return undefined;
	const cols = corners.map((corner) => corner![1]!).sort((a, b) => columnOf(a) - columnOf(b));
	const rows = corners.map((corner) => ({ text: corner![2]! + corner![3]!, row: Number(corner![3]) })).sort((a, b) => a.row - b.row);
	return `$${cols[0]}${rows[0]!.text}:$${cols.at(-1)}${rows.at(-1)!.text}`;
}

/** A formula that is written part by part. */
class Formula {
	text = '';
	/** The reference that was written last, and where. */
	private last: { from: number; to: number; at: number; text: string } | undefined;

	/** tabOf: how the name of a tab is written. */
	constructor(private readonly tabOf: (at: number) => string) {}

	add({ text, at }: Meaning): void {
		const { last } = this;
		this.last = undefined;
		if (at === undefined) {
			this.text += text;
			// A colon may join it and the next one.
			if (text === ':' && last?.to === this.text.length - 1) this.last = last;
			return;
		}
		const joined = last?.at === at && last.to < this.text.length ? join(last.text, text) : undefined;
		if (joined) this.text = this.text.slice(0, last!.from);
		const from = this.text.length;
		this.text += this.tabOf(at) + (joined ?? text);
		this.last = { from, to: this.text.length, at, text: joined ?? text };
	}
}

const nameKey = (at: number | null, name: string): string => `${at ?? ''}!${name.toLowerCase()}`;

export class Names {
	/** By tab and name. */
	private readonly texts = new Map<string, string>();
	/** Of names that formulas use; null: none that can be written. */
	private readonly meanings = new Map<string, Meaning | null>();
	private readonly tables = new Map<string, NamedTable>();
	private readonly places: ReadonlyMap<string, number>;
	private room = mostMeanings;
	private growth = mostGrowth;

	/** tabs: the names of all; undefined: one is no sheet. */
	constructor(
		private readonly tabs: (string | undefined)[],
		names: DefinedName[],
		tables: NamedTable[],
	) {
		this.places = new Map(tabs.flatMap((name, at) => (name === undefined ? [] : [[name.toLowerCase(), at] as const])).reverse());
		for (const { at, name } of names) {
			const key = nameKey(at, name.name);
			// Programs define these for functions that they do not know.
			const isFunction = /^_xl(?!nm\.)/i.test(name.name);
			if (!isFunction && !this.texts.has(key)) this.texts.set(key, name.text);
		}
		for (const table of tables) if (!this.tables.has(table.name.toLowerCase())) this.tables.set(table.name.toLowerCase(), table);
	}

	/** The formula with what names and tables mean in their place. Those that cannot be written so stay. */
	write(formula: string, place: Place): Written {
		const written = { text: formula, hasNames: false };
		if ((this.texts.size === 0 && this.tables.size === 0) || formula.length > mostCharacters) return written;
		const to = new Formula((at) => (at === place.at ? '' : this.tabName(at)));
		for (const { 0: text, index, groups } of formula.matchAll(tokens)) {
			const meaning = this.inFormula(groups as Groups, formula[index + text.length], place);
			written.hasNames ||= meaning === null;
			to.add(meaning ?? { text });
			if (to.text.length > mostCharacters) return { text: formula, hasNames: true };
		}
		if ((this.growth -= Math.max(to.text.length - formula.length, 0)) < 0) return { text: formula, hasNames: true };
		return { ...written, text: to.text };
	}

	private tabName(at: number): string {
		return `${quotedTab(this.tabs[at]!)}!`;
	}

	/** undefined: it is no name. null: it stays. */
	private inFormula({ tab, reference, name, brackets, own }: Groups, next: string | undefined, place: Place): Meaning | null | undefined {
		if (own !== undefined) return this.ofTable(this.tableAt(place), own, place);
		const word = name ?? reference;
		if (word === undefined || isCellName(word) || (brackets === undefined && next === '[')) return undefined;
		if (brackets === undefined && next === '(') return this.isFunction(word, tab, place.at) ? null : undefined;
		if (brackets !== undefined) return tab === undefined ? this.ofTable(this.tables.get(word.toLowerCase()), brackets, place) : undefined;
		return this.named(word, tab, place.at, 0);
	}

	private tableAt({ at, row, col }: Place): NamedTable | undefined {
		for (const table of this.tables.values()) {
			const { range } = table;
			if (table.at === at && row >= range.row && row <= range.toRow && col >= range.col && col <= range.toCol) return table;
		}
		return undefined;
	}

	private ofTable(table: NamedTable | undefined, brackets: string, place: Place | undefined): Meaning | undefined {
		const text = table && cellsOf(table, brackets, place?.at === table.at ? place.row : undefined);
		return text === undefined ? undefined : { text, at: table!.at };
	}

	/** at: the tab whose formulas know the name. */
	private named(name: string, tab: string | undefined, at: number | null, depth: number): Meaning | null | undefined {
		const scope = this.scopeOf(name, tab, at);
		if (scope !== undefined) return this.meaning(name, scope, depth);
		return tab === undefined ? this.ofTable(this.tables.get(name.toLowerCase()), '[]', undefined) : undefined;
	}

	/** The tab whose formulas know the name, null: those of all; undefined: there is no such name. */
	private scopeOf(name: string, tab: string | undefined, at: number | null): number | null | undefined {
		const isOfBook = tab === '[0]';
		const of = tab === undefined || isOfBook ? at : this.tabAt(tab);
		if (of === undefined) return undefined;
		return (isOfBook ? [null] : [of, null]).find((one) => this.texts.has(nameKey(one, name)));
	}

	/** Other names may be called as functions of programs are. */
	private isFunction(name: string, tab: string | undefined, at: number | null): boolean {
		const scope = this.scopeOf(name, tab, at);
		return scope !== undefined && /^\s*=?\s*(?:_xlfn\.)?LAMBDA\s*\(/i.test(this.texts.get(nameKey(scope, name))!);
	}

	private tabAt(tab: string): number | undefined {
		return this.places.get((tab.startsWith("'") ? tab.slice(1, -1).replaceAll("''", "'") : tab).toLowerCase());
	}

	// ---- what a name means ----

	private meaning(name: string, at: number | null, depth: number): Meaning | null {
		const key = nameKey(at, name);
		const known = this.meanings.get(key);
		if (known !== undefined) return known;
		// Until it is known: it may contain itself.
		this.meanings.set(key, null);
		const meaning = this.read(this.texts.get(key)!.trim().replace(/^=/, ''), at, depth + 1);
		if (!meaning || (this.room -= meaning.text.length) < 0) return null;
		this.meanings.set(key, meaning);
		return meaning;
	}

	private read(text: string, at: number | null, depth: number): Meaning | null {
		if (text === '' || text.length > mostCharacters || depth > mostDepth) return null;
		const to = new Formula((of) => this.tabName(of));
		let only: Meaning | undefined;
		for (const { 0: part, index, groups } of text.matchAll(tokens)) {
			const meaning = this.inName(groups as Groups, part, text[index + part.length], at, depth);
			if (!meaning) return null;
			if (part.length === text.length) only = meaning;
			to.add(meaning);
			if (to.text.length > mostCharacters) return null;
		}
		if (only) return only;
		return isAlike(to.text) ? { text: `(${to.text})` } : null;
	}

	/** A part of what a name means. null: it is relative to the cell, or not known. */
	private inName(
		{ tab, reference, name, brackets, missing, own, open }: Groups,
		part: string,
		next: string | undefined,
		at: number | null,
		depth: number,
	): Meaning | null {
		if (missing !== undefined) return { text: '#REF!' };
		if (own !== undefined || open !== undefined) return null;
		if (reference !== undefined && (tab !== undefined || isCellName(reference) || !/^[A-Z]+[0-9]+$/i.test(reference))) {
			const of = tab === undefined ? undefined : this.tabAt(tab);
			return of !== undefined && isAbsolute(reference) ? { text: reference, at: of } : null;
		}
		const word = name ?? reference;
		if (word === undefined || (brackets === undefined && /^_xlpm\./i.test(word))) return { text: part };
		if (brackets === undefined && next === '(') return this.isFunction(word, tab, at) ? null : { text: part };
		if (brackets !== undefined) return (tab === undefined && this.ofTable(this.tables.get(word.toLowerCase()), brackets, undefined)) || null;
		return this.named(word, tab, at, depth) ?? null;
	}
}
