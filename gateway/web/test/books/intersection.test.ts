// intersection.test.ts - formulas of one cell in workbooks and in sheets (calc/books/intersection.ts).
import { describe, expect, test } from 'vitest';
import { asSingle, intersected, withFunctions } from '../../../../calc/books/intersection';

describe('what takes one cell of a range says so', () => {
	test.each([
		['A:A*2', 'SINGLE(A:A)*2'],
		['A1:A10+1', 'SINGLE(A1:A10)+1'],
		['-A1:A10', '-SINGLE(A1:A10)'],
		["'a b'!$A$1:$A$10&Tab!1:1", "SINGLE('a b'!$A$1:$A$10)&SINGLE(Tab!1:1)"],
		['(A1:A10)', '(SINGLE(A1:A10))'],
		['A1:A3', 'SINGLE(A1:A3)'],
		['IF(A1:A3>1,"a:b",B1:B3)', 'IF(SINGLE(A1:A3)>1,"a:b",SINGLE(B1:B3))'],
		['SUM(A1:A3)+A1:A3', 'SUM(A1:A3)+SINGLE(A1:A3)'],
		['SUM(A1:A3*2,B:B)', 'SUM(SINGLE(A1:A3)*2,B:B)'],
		['SUM((A1:A3),(B1:B2,C1:C2))', 'SUM((A1:A3),(B1:B2,C1:C2))'],
		['SUM(IF(A1:A3>1,B1:B3))', 'SUM(IF(SINGLE(A1:A3)>1,B1:B3))'],
		['SUMPRODUCT((A1:A3>1)*ABS(B1:B3))', 'SUMPRODUCT((A1:A3>1)*ABS(B1:B3))'],
		['LOOKUP(2,1/(A1:A9<>""),B1:B9)', 'LOOKUP(2,1/(A1:A9<>""),B1:B9)'],
		['VLOOKUP(A:A,B:C,2,FALSE)', 'VLOOKUP(SINGLE(A:A),B:C,2,FALSE)'],
		['COUNTIFS(A:A,B:B,C:C,D1)', 'COUNTIFS(A:A,SINGLE(B:B),C:C,D1)'],
		['SUMIFS(A:A,B:B,C:C,D:D,"x")', 'SUMIFS(A:A,B:B,SINGLE(C:C),D:D,"x")'],
		['ABS(A1:A3)', 'ABS(SINGLE(A1:A3))'],
		['INDEX(A:A,3)', 'INDEX(A:A,3)'],
		['INDEX(A1:B9,0,1)', 'SINGLE(INDEX(A1:B9,0,1))'],
		['SUM(INDEX(A1:B9,,1))', 'SUM(INDEX(A1:B9,,1))'],
		['INDEX(A1:A3,0)', 'SINGLE(INDEX(A1:A3,0))'],
		['INDEX(D1:D3,MATCH(1,INDEX((A1:A3="x")*(B1:B3=2),0,1),0))', 'INDEX(D1:D3,MATCH(1,INDEX((A1:A3="x")*(B1:B3=2),0,1),0))'],
		['AGGREGATE(9,5,A1:A3,B1:B3)', 'AGGREGATE(9,5,A1:A3,B1:B3)'],
		['IMSUM(A1:A3)', 'IMSUM(A1:A3)'],
		['ROW(INDIRECT("1:3"))', 'SINGLE(ROW(INDIRECT("1:3")))'],
		['SUMPRODUCT(ROW(INDIRECT("1:3")))', 'SUMPRODUCT(ROW(INDIRECT("1:3")))'],
		['ROW(OFFSET(A1,0,0,3))', 'SINGLE(ROW(OFFSET(A1,0,0,3)))'],
		['#REF!A1:A3*2', '#REF!A1:A3*2'],
		['XLOOKUP(1,F:F,G:H)', 'SINGLE(XLOOKUP(1,F:F,G:H))'],
		["XLOOKUP(1,$1:$1,'a b'!$2:$2)", "XLOOKUP(1,$1:$1,'a b'!$2:$2)"],
		['OFFSET(A1,1,0)', 'OFFSET(A1,1,0)'],
		['OFFSET(A1,0,0,3,1)*2', 'SINGLE(OFFSET(A1,0,0,3,1))*2'],
		['INDIRECT("A1:A3")+1', 'SINGLE(INDIRECT("A1:A3"))+1'],
		['A1:INDEX(A:A,3)*2', 'SINGLE(A1:INDEX(A:A,3))*2'],
		['SUM(A1:INDEX(A:A,3))', 'SUM(A1:INDEX(A:A,3))'],
		['A1:C3 B2:B9', 'SINGLE(A1:C3 B2:B9)'],
		['TRANSPOSE(A1:A3)', 'SINGLE(TRANSPOSE(A1:A3))'],
		['ROW(A1:A3)', 'SINGLE(ROW(A1:A3))'],
		['ROW(A1)', 'ROW(A1)'],
		['{1,2,3}+1', 'SINGLE({1,2,3}+1)'],
		['SUM({1,2,3})', 'SUM({1,2,3})'],
		['SUM(VLOOKUP(A1,B:D,{2,3},0))', 'SUM(VLOOKUP(A1,B:D,{2,3},0))'],
		['SORT(A1:A3)', 'SINGLE(SORT(A1:A3))'],
		['LET(x,A1:A3,SUM(x))', 'SINGLE(LET(x,A1:A3,SUM(x)))'],
		['LET(a,1,a+1)', 'LET(a,1,a+1)'],
		['IF( A1 > 2 , "x" , B1 )', 'IF( A1 > 2 , "x" , B1 )'],
		['LOG10(A1)+Name*2+TRUE+1E5+1.5%', 'LOG10(A1)+Name*2+TRUE+1E5+1.5%'],
		['Table1[A1:B2]', 'Table1[A1:B2]'],
		['"A1:A3"&"a""A:A"', '"A1:A3"&"a""A:A"'],
		['#REF!+SUM(#REF!)', '#REF!+SUM(#REF!)'],
		['XLOOKUP(A1,B:B,C:C)', 'XLOOKUP(A1,B:B,C:C)'],
		['SUM(Sheet1:Sheet3!A1)', 'SUM(Sheet1:Sheet3!A1)'],
	])('%s', (workbook, sheet) => {
		expect(intersected(workbook)).toBe(sheet);
		// It is the same formula when it is exported.
		expect(asSingle(sheet)).toBe(workbook);
	});
});

test('formulas of sheets that are arrays in workbooks', () => {
	for (const formula of [
		'A1:A3*2',
		'SUM(A1:A3*2)',
		'SEQUENCE(3)',
		'{1,2}',
		'IF(A1:A3>1,SINGLE(B1:B3),2)',
		'ABS(A:A)',
		'SINGLE(A1)',
		'ROW(INDIRECT("1:3"))',
		'XLOOKUP(1,F:F,G:H)',
	])
		expect(asSingle(formula)).toBeNull();
});

test('signs of programs are functions in workbooks', () => {
	expect(withFunctions('@A1:A3*2+SUM(B1#)+@INDEX(A:A,1)&"@A1#"')).toBe('SINGLE(A1:A3)*2+SUM(ANCHORARRAY(B1))+SINGLE(INDEX(A:A,1))&"@A1#"');
	expect(withFunctions('#REF!+A1')).toBe('#REF!+A1');
	expect(asSingle('@A1:A3*2')).toBe('A1:A3*2');
});

test('what is no formula stays as it is', () => {
	for (const text of ['SUM(A1:A3', 'A1:A3)', 'A1:A3,B1:B3', '('.repeat(200) + 'A1:A3' + ')'.repeat(200)]) expect(intersected(text)).toBe(text);
});
