// intersection.ts - formulas that are computed for one cell. In a workbook a formula that is no array takes one cell of a range where a
// function or an operator takes one value: that of its own row or column. Programs show this as "@", and write it as SINGLE() in arrays.
// In a sheet each formula may fill several cells, so SINGLE() says it there, too.
import { bracketsPattern } from './structured';

type Node =
	| { is: 'text'; text: string }
	| { is: 'operator'; text: string }
	/** isRange: of several cells. */
	| { is: 'reference'; text: string; isRange: boolean }
	| { is: 'constant'; text: string }
	| { is: 'group'; parts: Node[][] }
	| { is: 'call'; name: string; parts: Node[][] };

/** What is taken of a range: one cell; the range, if it is the whole argument; all, also in what is computed of it. */
type Mode = 'V' | 'R' | 'A';

/**
 * How functions take their arguments, by letters of Mode. The last ones repeat: as many as are in parentheses. Others take one value of each.
 */
const takes = new Map<string, [first: string, rest: string]>();
function list(pattern: string, names: string): void {
	const [, first = '', rest = ''] = /^([VRA]*)(?:\(([VRA]+)\))?$/.exec(pattern)!;
	for (const name of names.split(/\s+/)) takes.set(name, [first, rest || first.at(-1)!]);
}
list(
	'R',
	`SUM AVERAGE AVERAGEA COUNT COUNTA MAX MAXA MIN MINA PRODUCT STDEV STDEV.S STDEV.P STDEVA STDEVP STDEVPA VAR VAR.S VAR.P VARA VARP VARPA MEDIAN
	MODE MODE.SNGL KURT SKEW SKEW.P GEOMEAN HARMEAN AVEDEV DEVSQ SUMSQ AND OR XOR GCD LCM MULTINOMIAL CONCAT COUNTBLANK ROW COLUMN ROWS COLUMNS AREAS
	ISREF FORMULATEXT ISFORMULA SHEET SHEETS N T PHONETIC IMSUM IMPRODUCT`,
);
list('RV', 'COUNTIF LARGE SMALL PERCENTILE PERCENTILE.INC PERCENTILE.EXC QUARTILE QUARTILE.INC QUARTILE.EXC PERCENTRANK PERCENTRANK.INC PERCENTRANK.EXC');
list('RV', 'TRIMMEAN OFFSET IRR Z.TEST ZTEST');
list('AV', 'INDEX');
list('RVR', 'SUMIF AVERAGEIF DAVERAGE DCOUNT DCOUNTA DGET DMAX DMIN DPRODUCT DSTDEV DSTDEVP DSUM DVAR DVARP');
list('(RV)', 'COUNTIFS');
list('R(RV)', 'SUMIFS AVERAGEIFS MAXIFS MINIFS');
list('VRV', 'RANK RANK.EQ RANK.AVG MATCH VLOOKUP HLOOKUP');
list('VR', 'CHOOSE IF NPV FVSCHEDULE SUBTOTAL CELL');
list('(VR)', 'IFS');
list('VVR', 'TEXTJOIN NETWORKDAYS WORKDAY');
list('VVVR', 'NETWORKDAYS.INTL WORKDAY.INTL SERIESSUM');
list('VRR', 'XNPV');
list('RRV', 'XIRR');
list('RVV', 'MIRR');
list('VVA', 'AGGREGATE');
list('VAA', 'LOOKUP FORECAST FORECAST.LINEAR');
list('VAAV', 'XLOOKUP FORECAST.ETS FORECAST.ETS.CONFINT');
list('VAV', 'XMATCH');
list(
	'A',
	`SUMPRODUCT MDETERM SUMX2MY2 SUMX2PY2 SUMXMY2 CORREL COVAR COVARIANCE.P COVARIANCE.S PEARSON RSQ SLOPE INTERCEPT STEYX FTEST F.TEST TTEST T.TEST
	CHITEST CHISQ.TEST PROB FORECAST.ETS.SEASONALITY FORECAST.ETS.STAT SINGLE ANCHORARRAY ISOMITTED ARRAYTOTEXT`,
);
/** Functions whose result may be several values. */
const several = new Set(
	`MMULT MINVERSE MUNIT TRANSPOSE FREQUENCY LINEST LOGEST TREND GROWTH MODE.MULT INDIRECT SEQUENCE RANDARRAY FILTER SORT SORTBY UNIQUE TOCOL TOROW VSTACK
	HSTACK WRAPROWS WRAPCOLS TAKE DROP EXPAND CHOOSECOLS CHOOSEROWS TEXTSPLIT LET LAMBDA MAP REDUCE SCAN BYROW BYCOL MAKEARRAY GROUPBY PIVOTBY TRIMRANGE
	REGEXEXTRACT FILTERXML FLATTEN ARRAY_CONSTRAIN`.split(/\s+/),
);

const one: [string, string] = ['V', 'V'];
const all: [string, string] = ['A', 'A'];

function modeOf(name: string, at: number): Mode {
	const [first, rest] = takes.get(name) ?? (several.has(name) && name !== 'INDIRECT' ? all : one);
	return (first[at] ?? rest[(at - first.length) % rest.length]) as Mode;
}

// ---- reading ----

const name = '[\\p{L}_\\\\][\\p{L}\\p{N}_.\\\\]*';
const cell = '\\$?[A-Za-z]{1,3}\\$?[0-9]+';
const tab = `(?:'(?:[^']|'')*'!|[\\p{L}\\p{N}_.]+(?::[\\p{L}\\p{N}_.]+)?!)?`;
const lines = '\\$?[A-Za-z]{1,3}:\\$?[A-Za-z]{1,3}|\\$?[0-9]+:\\$?[0-9]+';
const end = '(?![\\p{L}\\p{N}_.(!])';
const tokens = new RegExp(
	[
		`"(?:[^"]|"")*"|#REF!(?:${cell}(?::${cell})?|${lines})?|#(?:N/A|[A-Za-z0-9/_]+[!?])`,
		`\\{(?:"(?:[^"]|"")*"|[^"{}])*\\}`,
		`(${tab}(?:${cell}:${cell}|${lines})${end})`,
		`(${tab}${cell}${end})`,
		`${name}\\(`,
		`[(),]|<=|>=|<>|[-+*/^&=<>%@:#]|\\s+`,
		`(?:${bracketsPattern}|'(?:[^']|'')*'!|[\\p{L}\\p{N}_.\\\\$!?])+|[^]`,
	].join('|'),
	'gu',
);

const isPlace = (node: Node | undefined): boolean => node?.is === 'reference' || node?.is === 'call' || node?.is === 'group';
const callOf = (name: string, argument: Node): Node => ({ is: 'call', name, parts: [[argument]] });

/** null: the formula is none, or too deep. */
function parse(formula: string): Node[] | null {
	const top: Node[][] = [[]];
	const open: Node[][][] = [top];
	for (const [text, range, cell] of formula.matchAll(tokens)) {
		const parts = open.at(-1)!;
		const add = (node: Node): void => {
			const part = parts.at(-1)!;
			const before = part.at(-1);
			// @A1:A3 and A1# are functions in workbooks.
			if (before?.is === 'operator' && before.text === '@' && isPlace(node)) part[part.length - 1] = callOf('SINGLE', node);
			else if (text === '#' && isPlace(before)) part[part.length - 1] = callOf('ANCHORARRAY', before!);
			else part.push(node);
		};
		if (range !== undefined || cell !== undefined) add({ is: 'reference', text, isRange: range !== undefined });
		else if (text.endsWith('(')) {
			const inner: Node[][] = [[]];
			add(text === '(' ? { is: 'group', parts: inner } : { is: 'call', name: text.slice(0, -1), parts: inner });
			if (open.push(inner) > 100) return null;
		} else if (text === ')') {
			open.pop();
			if (open.length === 0) return null;
		} else if (text === ',') parts.push([]);
		else if (/^([-+*/^&=<>%@:#]|<=|>=|<>)$/.test(text)) add({ is: 'operator', text });
		else add({ is: text.length > 1 && text.startsWith('{') ? 'constant' : 'text', text });
	}
	return open.length === 1 && top.length === 1 ? top[0]! : null;
}

// ---- writing ----

const write = (nodes: Node[], visit: (node: Node) => string): string => nodes.map(visit).join('');

/** As it was, or without SINGLE(). */
function plain(node: Node, isBare: boolean): string {
	const inside = (parts: Node[][]) => parts.map((part) => write(part, (one) => plain(one, isBare))).join(',');
	if (node.is === 'group') return `(${inside(node.parts)})`;
	if (node.is !== 'call') return node.text;
	return isBare && node.name.toUpperCase() === 'SINGLE' ? inside(node.parts) : `${node.name}(${inside(node.parts)})`;
}

class Writer {
	/** A list of values in braces is computed as an array, wherever it is. */
	hasConstant = false;

	expression(nodes: Node[], mode: Mode): string {
		const isOperator = (node: Node): boolean => node.is === 'operator' && node.text !== ':';
		const own = mode === 'R' && nodes.some(isOperator) ? 'V' : mode;
		let text = '';
		let operand: Node[] = [];
		for (const node of nodes)
			if (isOperator(node)) {
				text += this.operand(operand, own) + write([node], (one) => plain(one, false));
				operand = [];
			} else operand.push(node);
		return text + this.operand(operand, own);
	}

	private operand(nodes: Node[], mode: Mode): string {
		// A range between what functions give, or an intersection.
		const isJoined = nodes.filter(isPlace).length > 1;
		if (!isJoined) return write(nodes, (node) => this.node(node, mode));
		const text = write(nodes, (node) => this.node(node, node.is === 'call' ? 'R' : 'A'));
		return mode === 'V' ? single(text) : text;
	}

	private node(node: Node, mode: Mode): string {
		switch (node.is) {
			case 'reference':
				return node.isRange && mode === 'V' ? single(node.text) : node.text;
			case 'constant':
				this.hasConstant ||= mode === 'V';
				return node.text;
			case 'group':
				// A list of references in parentheses is one.
				return `(${node.parts.map((part) => this.expression(part, node.parts.length > 1 ? 'A' : mode)).join(',')})`;
			case 'call':
				return this.call(node, mode);
			default:
				return node.text;
		}
	}

	private call({ name: given, parts }: Node & { is: 'call' }, mode: Mode): string {
		const name = given.toUpperCase();
		const passes = name === 'IF' || name === 'IFS' || name === 'CHOOSE';
		const args = parts.map((part, i) => {
			const own = modeOf(name, i);
			const hadConstant = this.hasConstant;
			const arg = this.expression(part, mode === 'A' ? 'A' : passes && own === 'R' ? mode : own);
			if (own !== 'V' && !passes) this.hasConstant = hadConstant;
			return arg;
		});
		const text = `${given}(${args.join(',')})`;
		return mode === 'V' && givesSeveral(name, parts) ? single(text) : text;
	}
}

const single = (text: string): string => `SINGLE(${text.trim()})`;

function givesSeveral(name: string, parts: Node[][]): boolean {
	const part = (at: number): string => write(parts[at] ?? [], (node) => plain(node, false)).trim();
	// All rows, or all columns.
	if (name === 'INDEX') return parts.length > 1 && [1, 2].some((at) => at < parts.length && ['', '0'].includes(part(at)));
	// A row or a column of what it looks in.
	if (name === 'XLOOKUP') return !isLine(part(2));
	if (name === 'OFFSET') return parts.length > 3 || parts[0]!.some((node) => node.is === 'reference' && node.isRange);
	if (name === 'ROW' || name === 'COLUMN')
		return parts[0]!.some((node) => isSeveral(node) || (node.is === 'call' && givesSeveral(node.name.toUpperCase(), node.parts)));
	if (name === 'LET' || name === 'LAMBDA') return parts.flat().some(isSeveral);
	return several.has(name);
}

/** A reference to one row, one column or one cell. */
function isLine(reference: string): boolean {
	const [, col, row, toCol, toRow] = /^(?:.*!)?\$?([a-z]+)?\$?([0-9]+)?(?::\$?([a-z]+)?\$?([0-9]+)?)?$/i.exec(reference) ?? [];
	if (col === undefined && row === undefined) return false;
	return (
		(toCol === undefined && toRow === undefined) || (col !== undefined && col.toUpperCase() === toCol?.toUpperCase()) || (row !== undefined && row === toRow)
	);
}

function isSeveral(node: Node): boolean {
	if (node.is === 'reference') return node.isRange;
	if (node.is === 'call' && node.name.toUpperCase() !== 'LET' && several.has(node.name.toUpperCase())) return true;
	return node.is === 'constant' || ((node.is === 'call' || node.is === 'group') && node.parts.flat().some(isSeveral));
}

/** It has neither ranges nor functions. */
const isSimple = (formula: string): boolean => !/[:{(@# ]/.test(formula);

/** A formula of one cell, as a sheet has it: what takes one cell of a range says so. */
export function intersected(formula: string): string {
	if (isSimple(formula)) return formula;
	const nodes = parse(formula);
	if (!nodes) return formula;
	const writer = new Writer();
	const text = writer.expression(nodes, 'V');
	return writer.hasConstant ? single(text) : text;
}

/** Whether an argument that may be a range is computed alike in an array, as names are, and in one cell. */
export function isAlike(formula: string): boolean {
	if (isSimple(formula)) return true;
	const nodes = parse(formula);
	if (!nodes) return false;
	const writer = new Writer();
	return writer.expression(nodes, 'R') === write(nodes, (node) => plain(node, false)) && !writer.hasConstant;
}

/** Functions whose result is one value in most formulas, but may be several. */
const seldom = /\b(?:INDEX|OFFSET|XLOOKUP)\(/i;

/** Whether a formula of a sheet has one value, whatever it reads. */
export const givesOne = (formula: string): boolean => !seldom.test(formula) && asSingle(formula) !== null;

/** The formula of a sheet with functions for "@" and "#". */
export function withFunctions(formula: string): string {
	const nodes = /[@#]/.test(formula) ? parse(formula) : null;
	return nodes ? write(nodes, (node) => plain(node, false)) : formula;
}

/** The formula of a sheet as that of one cell of a workbook; null: it may be an array there. */
export function asSingle(formula: string): string | null {
	if (isSimple(formula)) return formula;
	const nodes = parse(formula);
	if (!nodes) return formula;
	const bare = write(nodes, (node) => plain(node, true));
	return intersected(bare) === write(nodes, (node) => plain(node, false)) ? bare : null;
}
