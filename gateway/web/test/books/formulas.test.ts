// formulas.test.ts - formulas as workbooks and as sheets write them (calc/books/formulas.ts).
import { describe, expect, test } from 'vitest';
import { missingOf, moveFormula, readLink, renameTabs, withoutPrefixes, withPrefixes } from '../../../../calc/books/formulas';

describe('formulas that cells share', () => {
	test.each([
		['A1*2', 1, 1, 'B2*2'],
		['$A1+A$1+$A$1', 2, 3, '$A3+D$1+$A$1'],
		['SUM(A1:B2)', 1, 0, 'SUM(A2:B3)'],
		['SUM(A:A)+SUM(1:1)', 1, 1, 'SUM(B:B)+SUM(2:2)'],
		['SUM($A:B)+SUM($1:2)', 1, 1, 'SUM($A:C)+SUM($1:3)'],
		["'Tab A1'!A1+Tab!B2+A1!C3", 1, 0, "'Tab A1'!A2+Tab!B3+A1!C4"],
		['"A1"&A1&"a""A1"', 1, 0, '"A1"&A2&"a""A1"'],
		['LOG10(A1)+ATAN2(A1,1)+DEC2BIN(A1)', 1, 0, 'LOG10(A2)+ATAN2(A2,1)+DEC2BIN(A2)'],
		['Table1[A1]+x.A1+A1x+_A1+Ä1', 1, 0, 'Table1[A1]+x.A1+A1x+_A1+Ä1'],
		['A1', -1, 0, '#REF!'],
		['SUM(A1:A3)', -1, 0, 'SUM(#REF!)'],
		['#REF!+#N/A+A1', 1, 0, '#REF!+#N/A+A2'],
		['1E5+A1%', 1, 0, '1E5+A2%'],
		['XFD1', 0, 1, '#REF!'],
		['ABCD1+A0', 1, 1, 'ABCD1+A0'],
	])('%s, %i down, %i to the right', (formula, rows, cols, moved) => expect(moveFormula(formula, rows, cols)).toBe(moved));
});

describe('prefixes of newer functions', () => {
	test.each([
		['_xlfn.CONCAT(A1,"_xlfn.CONCAT(")', 'CONCAT(A1,"_xlfn.CONCAT(")'],
		['_xlfn._xlws.FILTER(A1:A3,A1:A3>1)', 'FILTER(A1:A3,A1:A3>1)'],
		['_xlfn.LET(_xlpm.x,1,_xlpm.x+x1)', 'LET(x,1,x+x1)'],
		['_xlfn.LAMBDA(_xlpm.a,_xlpm.b,_xlpm.a*_xlpm.b)(1,2)', 'LAMBDA(a,b,a*b)(1,2)'],
		['_xlfn.LET(_xlpm.a,1,_xlpm.b,SUM(a1,2),_xlpm.a+_xlpm.b)', 'LET(a,1,b,SUM(a1,2),a+b)'],
		["_xlfn.STDEV.S(A1:A9)+STDEV(A1)+'_xlfn.CONCAT('!A1", "STDEV.S(A1:A9)+STDEV(A1)+'_xlfn.CONCAT('!A1"],
		['_xlfn.SINGLE(A1:A3)', 'SINGLE(A1:A3)'],
		['SUM(A1)', 'SUM(A1)'],
	])('%s', (workbook, sheet) => {
		expect(withoutPrefixes(workbook)).toBe(sheet);
		expect(withPrefixes(sheet)).toBe(workbook);
	});
});

test('what is not there after an import', () => {
	expect(missingOf('[1]Sheet1!A1')).toBe('formulas that refer to other workbooks');
	expect(missingOf("'[2]Sheet 1'!A1")).toBe('formulas that refer to other workbooks');
	expect(missingOf('SUM(ANCHORARRAY(A1))')).toBe('formulas that refer to what an array fills');
	expect(missingOf('SUM(Table1[x])')).toBe('formulas that refer to tables');
	expect(missingOf('"[1]"&\'a\'!A1')).toBeUndefined();
});

test('other names of tabs', () => {
	const names = new Map([
		['a/b', 'a_b'],
		['long', "it's"],
		['longer', 'longer'],
		['x', 'x'],
	]);
	expect(renameTabs("'a/b'!A1+Long!A2+longer!A3+\"'a/b'!\"&'x'!A1", names)).toBe("'a_b'!A1+'it''s'!A2+longer!A3+\"'a/b'!\"&'x'!A1");
	expect([renameTabs('Other!A1', names), renameTabs('"Other!A1"', names)]).toEqual([null, '"Other!A1"']);
});

test('links', () => {
	expect(readLink('=HYPERLINK("https://a/?""x""","te""xt")')).toEqual({ link: 'https://a/?"x"', text: 'te"xt' });
	expect(readLink('=HYPERLINK("#A1")')).toEqual({ link: '#A1', text: '#A1' });
	expect(readLink('=HYPERLINK(A1,"x")')).toBeNull();
	expect(readLink('=HYPERLINK("a","b")&"c"')).toBeNull();
});
