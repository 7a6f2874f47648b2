/*
 * random_formulas.mjs - random formulas of functions that Excel, LibreOffice and this program define alike, and the cells that they
 * read. The same seed makes the same formulas.
 */

/** A generator of numbers below n, as all tests have it. */
export function randomFrom(seed) {
	let state = seed;
	return (n) => (state = (state * 48271) % 2147483647) % n;
}

/** What formulas read: numbers in A and B, texts in C, booleans, dates and empty cells in D to F, of 20 rows. */
export function cellsToRead() {
	const words = ['apple', 'Pear', 'fig tree', 'ÄPFEL', 'x', '12', 'a-b', '', 'kiwi  kiwi', 'Zoë'];
	const numbers = [0, 1, -1, 2.5, -7.25, 10, 100, 3, 0.1, 42, -3.5, 7, 12, 1000.5, 6, -20, 8, 0.75, 5, 9];
	return Array.from({ length: 20 }, (_, i) => [
		String(numbers[i]),
		String(((i * 7) % 20) + 1),
		words[i % 10] === '12' ? "'12" : words[i % 10],
		i % 3 === 0 ? 'FALSE' : 'TRUE',
		`20${String(10 + i)}-${String((i % 12) + 1).padStart(2, '0')}-${String(((i * 5) % 28) + 1).padStart(2, '0')}`,
		i % 2 === 0 ? '' : String(i * 1.5),
	]);
}

/*
 * What each function takes: n a number, p one above 0, i a small whole number, d a date, t a text, b a boolean, r a range of numbers,
 * s a range of positive ones, w a range of texts, m a range of numbers with empty cells, c a criterion; v any value. A word in quotes is written as it is. A star
 * repeats what stands before it up to three times.
 */
const numeric = `
	ABS n|SIGN n|INT n|ROUND n i|ROUNDUP n i|ROUNDDOWN n i|TRUNC n|TRUNC n i|MOD n p|POWER p i|SQRT p|EXP i|LN p|LOG10 p|LOG p "2"|SIN n|COS n|TAN i
	ASIN "0.5"|ACOS "-0.25"|ATAN n|ATAN2 p n|SINH i|COSH i|TANH n|ASINH n|DEGREES n|RADIANS n|PI|EVEN n|ODD n|FACT i|FACTDOUBLE i|COMBIN "9" i|COMBINA "5" i|PERMUT "9" i
	GCD i p|LCM i i|QUOTIENT n p|MROUND p p|CEILING p p|FLOOR p p|CEILING.MATH n p|FLOOR.MATH n p|SQRTPI p|MULTINOMIAL i i|SERIESSUM i "1" "2" s
	SUM r|SUM n n|SUM m|SUMSQ r|PRODUCT s|SUMPRODUCT r r|SUMX2MY2 r s|SUMX2PY2 r s|SUMXMY2 r s|AVERAGE r|AVERAGE m|AVERAGEA r|MIN r|MAX m|MINA r|MAXA m|MEDIAN r|COUNT r|COUNT w|COUNTA w|COUNTA m|COUNTBLANK m
	LARGE r i|SMALL r i|STDEV.S r|STDEV.P r|VAR.S r|VAR.P r|STDEV r|VARP r|AVEDEV r|DEVSQ r|GEOMEAN s|HARMEAN s|SKEW r|KURT r|MODE.SNGL s|TRIMMEAN r "0.2"
	RANK.EQ "A3" r|RANK.AVG "B4" s|PERCENTILE.INC r "0.3"|PERCENTILE.EXC r "0.4"|QUARTILE.INC r i|QUARTILE.EXC r "1"|PERCENTRANK.INC r "A3"|CORREL r s|COVARIANCE.P r s|COVARIANCE.S r s|PEARSON r s|RSQ r s|SLOPE r s|INTERCEPT r s|FORECAST n r s|STEYX r s
	SUMIF r c|SUMIF s c r|COUNTIF r c|COUNTIF w "\\"*p*\\""|COUNTIF w "\\"x\\""|AVERAGEIF s c r|SUMIFS r s c|COUNTIFS r c s c|AVERAGEIFS r s c|MAXIFS r s c|MINIFS r s c
	NORM.DIST n n p b|NORM.S.DIST n b|NORM.INV "0.3" n p|NORM.S.INV "0.7"|EXPON.DIST p p b|POISSON.DIST i p b|BINOM.DIST i "10" "0.3" b|GAMMA p|GAMMALN p|STANDARDIZE n n p|FISHER "0.4"|FISHERINV n|CONFIDENCE.NORM "0.05" p "20"
	T.DIST n p b|T.DIST.2T p p|T.INV "0.3" p|CHISQ.DIST p p b|CHISQ.INV "0.4" p|F.DIST p p p b|GAMMA.DIST p p p b|BETA.DIST "0.3" p p b|WEIBULL.DIST p p p b|LOGNORM.DIST p n p b|HYPGEOM.DIST "1" "4" "8" "20" b|NEGBINOM.DIST i p "0.4" b|PHI n|GAUSS n|ERF p|ERFC n
	YEAR d|MONTH d|DAY d|WEEKDAY d|WEEKDAY d "2"|WEEKNUM d|ISOWEEKNUM d|DAYS d d|DAYS360 d d|DATEDIF "E1" "E9" "\\"m\\""|NETWORKDAYS d d|YEARFRAC d d "1"|HOUR "0.7"|MINUTE "0.71"|SECOND "0.712"|TIMEVALUE "\\"10:30\\""|DATEVALUE "\\"2024-02-29\\""
	PMT "0.05" p n|FV "0.05" p n|PV "0.05" p n|NPER "0.05" p "-1000"|NPV "0.1" r|RATE p "-100" "500"|IPMT "0.05" "1" i n|PPMT "0.05" "1" i n|SLN "1000" "100" p|SYD "1000" "100" p "1"|DB "1000" "100" "5" "2"|DDB "1000" "100" "5" "2"|EFFECT "0.1" p|NOMINAL "0.1" p
	TIME i i i|LEN t|FIND "\\"e\\"" t|SEARCH "\\"P*\\"" t|CODE t|UNICODE t|VALUE "\\"12.5\\""|MATCH "B3" s "0"|MATCH "A4" r "0"|ROWS r|COLUMNS r|ROW "C5"|COLUMN "D2"|INDEX r i|INDEX r "2" "1"|VLOOKUP "B5" "B1:E20" "3" "FALSE"|HLOOKUP "A1" "A1:F4" i "FALSE"|LOOKUP i s|OFFSET "A1" i "1"|INDIRECT "\\"B\\"&3"|CHOOSE "2" n n n
	HEX2DEC "\\"FF\\""|BIN2DEC "\\"1011\\""|OCT2DEC "\\"17\\""|BITAND i "13"|BITOR i "6"|BITXOR i "5"|BITLSHIFT i "2"|BITRSHIFT "77" "1"|DELTA i i|GESTEP n i|ARABIC "\\"XLII\\""|DECIMAL "\\"1F\\"" "16"|NUMBERVALUE "\\"1.234,5\\"" "\\",\\"" "\\".\\""|CONVERT n "\\"m\\"" "\\"ft\\""|N b|N n|TYPE v`;
const textual = `
	UPPER t|LOWER t|PROPER t|TRIM t|LEFT t i|RIGHT t i|MID t "2" i|REPT t i|CONCATENATE t t|CONCAT t n|CONCATENATE t n n|TEXTJOIN "\\"-\\"" "TRUE" w|TEXTJOIN "\\"-\\"" "FALSE" n t n|SUBSTITUTE t "\\"p\\"" "\\"Q\\""|REPLACE t "2" "1" "\\"_\\""|CHAR "65"|UNICHAR "233"|CLEAN t|T t|T n|FIXED n "2"
	TEXT n "\\"0.00\\""|TEXT n "\\"#,##0\\""|TEXT d "\\"yyyy-mm-dd\\""|TEXT n "\\"0%\\""|DEC2HEX i|DEC2BIN i|DEC2OCT i|HEX2BIN "\\"F\\""|BASE i "7"|ROMAN i|ADDRESS i "3"|ADDRESS i "3" "4"|COMPLEX i i|IMSUM "\\"1+2i\\"" "\\"3i\\""|IMPRODUCT "\\"1+2i\\"" "\\"3-1i\\""`;
const logical = `
	AND b b*|OR b b*|XOR b b|NOT b|ISNUMBER v|ISTEXT v|ISBLANK "F1"|ISBLANK v|ISLOGICAL v|ISERROR v|ISNONTEXT v|ISEVEN i|ISODD i|ISERR v|ISNA v|EXACT t t|ISREF "A1"`;
const dated = `DATE "2024" i i|EDATE d i|EOMONTH d i|WORKDAY d i`;

const parse = (kind, table) =>
	table
		.trim()
		.split(/[|\n]/)
		.map((line) => line.trim())
		.filter(Boolean)
		.map((line) => {
			const [name, ...takes] = line.match(/"(?:\\"|[^"])*"|\S+/g);
			return { kind, name, takes };
		});
export const functions = [...parse('n', numeric), ...parse('t', textual), ...parse('b', logical), ...parse('d', dated)];

/** Functions that give one of these kinds, whose result may stand where the other kind is wanted. */
const givers = { n: ['n'], t: ['t'], b: ['b'], d: ['d'], v: ['n', 't', 'b'] };

/** Makes formulas with `random` numbers. */
export class FormulaMaker {
	constructor(random) {
		this.random = random;
	}

	one(list) {
		return list[this.random(list.length)];
	}

	range(column) {
		const from = this.random(10) + 1;
		return `${column}${from}:${column}${from + 9}`;
	}

	/** An expression of this kind with functions in functions so deep. */
	argument(kind, depth) {
		if (kind.startsWith('"')) return kind.slice(1, -1).replaceAll('\\"', '"');
		if (depth > 0 && givers[kind] && this.random(2) === 0) return this.expression(kind, depth - 1);
		const row = this.random(20) + 1;
		switch (kind) {
			case 'n':
				return this.one([`A${row}`, `A${row}`, `F${row}`, `B${row}`, (this.random(2000) / 100 - 10).toFixed(2), `(A${row}+B${row})`, `A${row}*2`, `-B${row}`, `B${row}%`, `A${row}^2`, `(A${row}-B${row}/3)`]);
			case 'p':
				return this.one([`B${row}`, String(this.random(90) / 10 + 0.5)]);
			case 'i':
				return String(this.random(4) + 1);
			case 'd':
				return this.one([`E${row}`, `E${row}+${this.random(60)}`]);
			case 't':
				return this.one([`C${row}`, '"Some text, here"', `C${row}&"-"&B${row}`]);
			case 'b':
				return this.one([`D${row}`, `A${row}>B${row}`, `C${row}="x"`, `B${row}<=5`, 'TRUE', `A${row}<>0`]);
			case 'v':
				return this.one([`A${row}`, `C${row}`, `D${row}`, `F${row}`, '1/0', `""`]);
			case 'r':
				return this.range('A');
			case 's':
				return this.range('B');
			case 'm':
				return this.range('F');
			case 'w':
				return this.range('C');
			case 'c':
				return this.one(['">3"', '"<=5"', '7', '"<>1"', '">="&B2']);
		}
		throw new Error(`no kind ${kind}`);
	}

	call({ name, takes }, depth) {
		const list = takes.flatMap((kind) => {
			if (!kind.endsWith('*')) return [this.argument(kind, depth)];
			return Array.from({ length: this.random(3) + 1 }, () => this.argument(kind[0], depth));
		});
		// Ranges of one function have one size.
		return `${name}(${list.join(',')})`;
	}

	expression(kind, depth) {
		const wanted = this.one(givers[kind]);
		switch (this.random(6)) {
			case 0:
				return `IF(${this.argument('b', depth)},${this.argument(wanted, depth)},${this.argument(wanted, depth)})`;
			case 1:
				return `IFERROR(${this.argument(wanted, depth)},${this.argument(wanted, 0)})`;
			case 2:
				if (wanted === 'n') return `(${this.argument('n', depth)}${this.one(['+', '-', '*', '/'])}${this.argument('n', depth)})`;
				if (wanted === 't') return `(${this.argument('t', depth)}&${this.argument(this.one(['n', 't']), 0)})`;
				if (wanted === 'b') return `(${this.argument('n', depth)}${this.one(['<', '>', '=', '<>', '>=', '<='])}${this.argument('n', depth)})`;
		}
		return this.call(this.one(functions.filter((one) => one.kind === wanted)), depth);
	}
}
