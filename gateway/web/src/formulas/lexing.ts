// lexing.ts - what Univer's lexer misreads: an array constant behind an operator; an array, a text, TRUE or FALSE behind a minus; line breaks
// in texts, which it takes for spaces; intersections and unions.
import { type LexerNode, type LexerTreeBuilder, OPERATOR_TOKEN_SET } from '@univerjs/engine-formula';

interface Lexing {
	_currentLexerNode: LexerNode;
	/** Whether an array constant may follow. */
	_formulaSpellCheck(): boolean;
	_nodeMaker(formula: { replace(...args: unknown[]): string }, ...rest: unknown[]): unknown;
}

const text = '"(?:[^"]|"")*"';
const name = "'(?:[^']|'')*'";
const lineBreak = new RegExp(`${text}|${name}|[\\r\\n]`, 'g');
const array = '\\{(?:"[^"]*"|[^"{}])*\\}';
const truth = '(?:TRUE|FALSE)\\b(?!\\s*[(!.:])';
const constant = new RegExp(`${name}|(-\\s*)?(${text}|${array}|${truth})`, 'gi');

/** A formula as the lexer reads it: line breaks are in texts alone, and a constant behind a minus is in brackets. */
function prepare(formula: string): string {
	return formula
		.replace(lineBreak, (part) => (part === '\r' || part === '\n' ? ' ' : part))
		.replace(constant, (part, minus: string | undefined, value: string) => (minus ? `-(${value})` : part));
}

const tokens = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\{(?:"[^"]*"|[^"{}])*\}|[\p{L}\p{M}\p{N}_.$!\\?]+|\s+|[^]/gu;
const isOperand = (token: string): boolean => /^["'{\p{L}\p{N}_$\\]/u.test(token);
const endsOperand = (token: string): boolean => /["'}\p{L}\p{M}\p{N}_.)]$/u.test(token);

/**
 * Whether a formula has the operator of intersections (a blank) or of unions (a comma within brackets that are not those of a function).
 * Univer computes neither, and gives another number for some.
 */
export function joinsReferences(formula: string): boolean {
	/** For each open bracket, whether it is a function's. */
	const calls: boolean[] = [];
	let before = '';
	let isBehindBlank = false;
	for (const [token] of formula.matchAll(tokens)) {
		if (token.trim() === '') {
			isBehindBlank = true;
			continue;
		}
		if (isBehindBlank && endsOperand(before) && (isOperand(token) || (token === '(' && before === ')'))) return true;
		if (token === '(') calls.push(endsOperand(before));
		else if (token === ')') calls.pop();
		else if (token === ',' && calls.at(-1) === false) return true;
		before = token;
		isBehindBlank = false;
	}
	return false;
}

export function correctLexer(builder: LexerTreeBuilder): void {
	const lexing = builder as unknown as Lexing;
	lexing._formulaSpellCheck = function () {
		const last = this._currentLexerNode
			.getChildren()
			.filter((child) => typeof child !== 'string' || child.trim() !== '')
			.at(-1);
		return last === undefined || (typeof last === 'string' && (last.trim() === '(' || OPERATOR_TOKEN_SET.has(last.trim())));
	};
	// The first that it does with a formula is to replace its line breaks.
	const makeNodes = lexing._nodeMaker.bind(builder);
	lexing._nodeMaker = (formula, ...rest) => makeNodes({ replace: () => prepare(String(formula)) }, ...rest);
}
