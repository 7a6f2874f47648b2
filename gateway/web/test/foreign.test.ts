// What formulas of other spreadsheets have that ours have not.
import { ALL_IMPLEMENTED_FUNCTIONS_SET } from '@univerjs/engine-formula';
import { expect, test } from 'vitest';
import { foreignPart } from '../src/sheet/foreign';

const isFunction = (name: string) => ALL_IMPLEMENTED_FUNCTIONS_SET.has(name as never);
test.each([
	['=SUM(A1;B1)', 'semicolons', ''],
	['=SUM({1;2},"a;b")', undefined, undefined],
	['=SUM(C2:C)', 'open', 'C2:C'],
	['=SUM($C$2:$C)+1', 'open', '$C$2:$C'],
	['=SUM(A2:5)', 'open', 'A2:5'],
	['=SUM(C:C)+SUM(2:2)+SUM(A1:B2)', undefined, undefined],
	['=ARRAYFORMULA(A1:A3*2)', 'unknown', 'ARRAYFORMULA'],
	['=query(A1:B2, "select A")', 'unknown', 'QUERY'],
	['=GOOGLEFINANCE("GOOG")', 'unknown', 'GOOGLEFINANCE'],
	['=IMPORTRANGE("x","y")', 'unknown', 'IMPORTRANGE'],
	['=LET(f,LAMBDA(x,x+1),f(2))', undefined, undefined],
	['="ARRAYFORMULA("', undefined, undefined],
	['=IF(A1>1,"C2:C",LOG10(B2))', undefined, undefined],
	['SUM(A1;B1)', undefined, undefined],
	["='my sheet;'!A1:B2", undefined, undefined],
	['=A1:INDEX(A:A,3)', undefined, undefined],
])('%s', (content, kind, name) => {
	const part = foreignPart(content, isFunction);
	expect([part?.kind, part?.name]).toEqual([kind, name]);
});
test('says what to write instead of an open range', () => {
	expect(['=SUM(C2:C)', '=SUM($C$2:$C)', '=SUM(A2:5)'].map((content) => foreignPart(content, isFunction)!.instead)).toEqual([
		'C2:C1001',
		'$C$2:$C1001',
		'A2:Z5',
	]);
});
