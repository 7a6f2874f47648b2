// formulas.ts - formulas as workbooks and as sheets write them: newer functions have prefixes in workbooks, cells that share a formula
// have it once, and other tabs may have other names.
import { columnName } from '../../gateway/web/src/content';
import { maxCols, maxRows } from '../../gateway/web/src/v2/lines';
import { bracketsPattern } from './structured';

/** A text, the name of a tab, a reference in brackets, and an error are one part each. */
const fixed = `"(?:[^"]|"")*"|'(?:[^']|'')*'|${bracketsPattern}|#[A-Za-z0-9/]+[!?]?`;
const letter = '[\\p{L}\\p{N}_.\\\\]';
const cell = '\\$?[A-Za-z]{1,3}\\$?[1-9][0-9]{0,7}';
const alone = `(?<!${letter}|\\$)`;
const ends = `(?!${letter}|[($!])`;
const references = new RegExp(`${fixed}|${alone}(?:(${cell}(?::${cell})?)|(\\$?[A-Za-z]{1,3}:\\$?[A-Za-z]{1,3}|\\$?[1-9][0-9]*:\\$?[1-9][0-9]*))${ends}`, 'gu');
const words = new RegExp(`${fixed}|${letter}+`, 'gu');
const tabNames = new RegExp(`'((?:[^']|'')*)'(?=!)|(${letter}+)(?=!)|${fixed}|${letter}+`, 'gu');

/** Of a sheet in a workbook. */
export const workbookRows = 1_048_576;

export const columnOf = (letters: string): number => [...letters.toUpperCase()].reduce((sum, one) => sum * 26 + one.charCodeAt(0) - 64, 0) - 1;

/** A corner moved; null: out of the sheet. Each part with a $ stays. */
function moveCorner(corner: string, rows: number, cols: number): string | null {
	const [, colSign = '', letters = '', rowSign = '', digits = ''] = /^(\$?)([A-Za-z]*)(\$?)([0-9]*)$/.exec(corner)!;
	const isRow = letters === '' && digits !== '';
	const fixedRow = rowSign !== '' || (isRow && colSign !== '');
	const col = letters === '' ? 0 : columnOf(letters) + (colSign ? 0 : cols);
	const row = digits === '' ? 0 : Number(digits) - 1 + (fixedRow ? 0 : rows);
	if (col < 0 || col >= maxCols || row < 0 || row >= maxRows) return null;
	return `${colSign}${letters && columnName(col)}${rowSign}${digits && row + 1}`;
}

/** The formula of a cell, for a cell that is `rows` below and `cols` to the right of it: relative references move. */
export function moveFormula(formula: string, rows: number, cols: number): string {
	return formula.replace(references, (whole, cells: string | undefined, lines: string | undefined) => {
		const corners = (cells ?? lines)?.split(':');
		if (!corners) return whole;
		const moved = corners.map((corner) => moveCorner(corner, rows, cols));
		return moved.includes(null) ? '#REF!' : moved.join(':');
	});
}

/** A formula of a workbook without the prefixes of newer functions. */
export const withoutPrefixes = (formula: string): string =>
	formula.includes('_xl') ? formula.replace(words, (word) => word.replace(/^(?:_xlfn\.|_xlws\.|_xlpm\.)+/i, '')) : formula;

/** What of a workbook a formula refers to that is not there after the import; undefined: nothing. */
export function missingOf(formula: string): string | undefined {
	if (/\bANCHORARRAY\(/i.test(formula)) return 'formulas that refer to what an array fills';
	return outsideOf(formula);
}

/** What a formula has in brackets. */
export function outsideOf(formula: string): string | undefined {
	if (!formula.includes('[')) return undefined;
	const bare = formula.replace(/"(?:[^"]|"")*"/g, '""');
	if (/\[[0-9]+\]/.test(bare)) return 'formulas that refer to other workbooks';
	return bare.replace(/'(?:[^']|'')*'/g, '').includes('[') ? 'formulas that refer to tables' : undefined;
}

const wrote = (names: string): string[] => names.split(/\s+/);
/** Functions that came after the format: workbooks have them with the prefix _xlfn. */
const newer = new Set(
	wrote(`ANCHORARRAY SINGLE ACOT ACOTH AGGREGATE ARABIC BASE BETA.DIST BETA.INV BINOM.DIST BINOM.DIST.RANGE BINOM.INV BITAND BITLSHIFT BITOR BITRSHIFT BITXOR
	BYCOL BYROW CEILING.MATH CEILING.PRECISE CHISQ.DIST CHISQ.DIST.RT CHISQ.INV CHISQ.INV.RT CHISQ.TEST CHOOSECOLS CHOOSEROWS COMBINA CONCAT
	CONFIDENCE.NORM CONFIDENCE.T COT COTH COVARIANCE.P COVARIANCE.S CSC CSCH DAYS DECIMAL DROP ERF.PRECISE ERFC.PRECISE EXPAND EXPON.DIST
	F.DIST F.DIST.RT F.INV F.INV.RT F.TEST FILTERXML FLOOR.MATH FLOOR.PRECISE FORECAST.ETS FORECAST.ETS.CONFINT FORECAST.ETS.SEASONALITY
	FORECAST.ETS.STAT FORECAST.LINEAR FORMULATEXT GAMMA GAMMA.DIST GAMMA.INV GAMMALN.PRECISE GAUSS HSTACK HYPGEOM.DIST IFNA IFS IMAGE IMCOSH
	IMCOT IMCSC IMCSCH IMSEC IMSECH IMSINH IMTAN ISFORMULA ISOMITTED ISOWEEKNUM LAMBDA LET LOGNORM.DIST LOGNORM.INV MAKEARRAY MAP MAXIFS
	MINIFS MODE.MULT MODE.SNGL MUNIT NEGBINOM.DIST NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV NUMBERVALUE PDURATION PERCENTILE.EXC
	PERCENTILE.INC PERCENTRANK.EXC PERCENTRANK.INC PERMUTATIONA PHI POISSON.DIST QUARTILE.EXC QUARTILE.INC RANDARRAY RANK.AVG RANK.EQ REDUCE
	RRI SCAN SEC SECH SEQUENCE SHEET SHEETS SKEW.P SORTBY STDEV.P STDEV.S SWITCH T.DIST T.DIST.2T T.DIST.RT T.INV T.INV.2T T.TEST TAKE
	TEXTAFTER TEXTBEFORE TEXTJOIN TEXTSPLIT TOCOL TOROW UNICHAR UNICODE UNIQUE VALUETOTEXT ARRAYTOTEXT VAR.P VAR.S VSTACK WEBSERVICE
	WEIBULL.DIST WRAPCOLS WRAPROWS XLOOKUP XMATCH XOR Z.TEST PIVOTBY GROUPBY PERCENTOF TRIMRANGE REGEXTEST REGEXEXTRACT REGEXREPLACE`),
);
const newest = new Set(['FILTER', 'SORT']);

/** The arguments of the function whose "(" is at `from`, as texts. */
function argumentsAt(formula: string, from: number): string[] {
	const list = [''];
	const parts = new RegExp(`${fixed}|[^]`, 'gu');
	let depth = 0;
	for (const [part] of formula.slice(from).matchAll(parts)) {
		if (/^[({]$/.test(part) && depth++ === 0) continue;
		if (/^[)}]$/.test(part) && --depth === 0) return list;
		if (part === ',' && depth === 1) list.push('');
		else list[list.length - 1] += part;
	}
	return list;
}

/** The names that LET and LAMBDA give to values, in capitals. */
function givenNames(formula: string): Set<string> {
	const names = new Set<string>();
	for (const { 0: word, index } of formula.matchAll(/\b(?:LET|LAMBDA)(?=\()/gi)) {
		const list = argumentsAt(formula, index + word.length).slice(0, -1);
		list.forEach((text, i) => {
			const name = text.trim();
			if ((i % 2 === 0 || /^LAMBDA$/i.test(word)) && /^[\p{L}_][\p{L}\p{N}_.]*$/u.test(name)) names.add(name.toUpperCase());
		});
	}
	return names;
}

/** A formula as workbooks have it, with the prefixes of newer functions. */
export function withPrefixes(formula: string): string {
	const names = /\b(?:LET|LAMBDA)\(/i.test(formula) ? givenNames(formula) : new Set<string>();
	return formula.replace(words, (word, at: number) => {
		const name = word.toUpperCase();
		if (/^["'[#]/.test(word) || formula[at + word.length] === '!') return word;
		if (formula[at + word.length] !== '(') return names.has(name) ? `_xlpm.${word}` : word;
		if (newest.has(name)) return `_xlfn._xlws.${word}`;
		if (newer.has(name)) return `_xlfn.${word}`;
		return names.has(name) ? `_xlpm.${word}` : word;
	});
}

/** Whether a word is a cell in workbooks, whose sheets have fewer rows than ours. */
export function isCellName(text: string): boolean {
	const [, letters, digits] = /^([A-Z]{1,3})([0-9]+)$/i.exec(text) ?? [];
	return letters !== undefined && columnOf(letters) < maxCols && Number(digits) <= workbookRows;
}

/** The name of a tab before a "!". In quotes, unless it is a word that is no reference. */
export const quotedTab = (name: string): string =>
	/^[\p{L}_][\p{L}\p{N}_.]*$/u.test(name) && !/^(?:[a-z]{1,3}[0-9]+|r[0-9]*c?[0-9]*|c|true|false)$/i.test(name) ? name : `'${name.replaceAll("'", "''")}'`;

/** The formula with the names that the workbook has for tabs, by their names in small letters; null: it names a tab that is not there. */
export function renameTabs(formula: string, names: ReadonlyMap<string, string>): string | null {
	let isWhole = true;
	const renamed = formula.replace(tabNames, (whole, quoted: string | undefined, bare: string | undefined) => {
		const old = quoted?.replaceAll("''", "'") ?? bare;
		if (old === undefined) return whole;
		const name = names.get(old.toLowerCase());
		isWhole &&= name !== undefined;
		return name === undefined || name === old ? whole : `'${name.replaceAll("'", "''")}'`;
	});
	return isWhole ? renamed : null;
}

export const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** Links as the page writes them: =HYPERLINK("address"), =HYPERLINK("address","text"). */
export function readLink(formula: string): { link: string; text: string } | null {
	const match = /^=HYPERLINK\("((?:[^"]|"")*)"(?:,"((?:[^"]|"")*)")?\)$/i.exec(formula);
	if (!match) return null;
	const link = match[1]!.replaceAll('""', '"');
	return { link, text: match[2]?.replaceAll('""', '"') ?? link };
}
