// functions.test.ts - functions whose results differ from those of Univer: they are those of Excel and LibreOffice.
import { expect, test } from 'vitest';
import { Computed, expectValues } from './computed';

test('numbers as people write them, in formulas and in criteria', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=1.50+1': 2.5, '=.5*2': 1, '=1e5': 100000, '=1E-3*1000': 1, '=007+1': 8, '=5.': 5, '=-0.10': -0.1, '=1.0=1': 1, '=10.0>9.0': 1 },
		...{ '=IF(A2>1.50,"right","wrong")': 'right', '=COUNTIF(A1:A3,">="&1.50)': 2, '=COUNTIF(A1:A3,">1.0")': 2, '=SUMIF(A1:A3,"2.00")': 2 },
		...{ '=VLOOKUP(2.0,A1:A3,1,FALSE)': 2, '=MATCH(1.0,{1,2},0)': 1, '=SUM({1.50,2.0})': 3.5, '="1.50"&""': '1.50', '="007"': '007', '=LEN("1.0")': 3 },
	};
	await expectValues({ A1: 1, A2: 2, A3: 3 }, wanted);
});

test('quoted texts are texts, whatever they look like', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=LEN("1E5")': 3, '=LEFT("1E-3",2)': '1E', '=UPPER("1e-3")': '1E-3', '=CONCATENATE("1E5","-7")': '1E5-7', '=EXACT("1E5","100000")': 0 },
		...{ '=ISTEXT("1E5")': 1, '=IF(TRUE,"12E3")': '12E3', '="id "&IF(TRUE,"3E10","")': 'id 3E10', '=MATCH("1E5",A1:A3,0)': 1, '=FIND("1E5",A1)': 1 },
		...{ '=SWITCH(A1,"1E5","yes","no")': 'yes', '=SUBSTITUTE(A1,"1E5","yes")': 'yes', '=IF(TRUE,"1/2")': '1/2', '=IF(TRUE,"50%")': '50%' },
		...{ '=ISTEXT("2024-01-31")': 1, '=IF(TRUE,"2024-01-31")&""': '2024-01-31', '=IFS(TRUE,"10:30")': '10:30', '=VLOOKUP("50%",A1:A3,1,FALSE)': '50%' },
		...{ '=XLOOKUP("1/2",A1:A3,A1:A3)': '1/2', '=IFERROR(1/0,"$5")': '$5', '=CHOOSE(1,"1,500")': '1,500', '=REPT("1E5",2)': '1E51E5' },
		// Functions of dates and numbers read them.
		...{
			'=YEAR("2024-01-31")': 2024,
			'=DATEVALUE("2024-01-31")': 45322,
			'=EDATE("2024-01-31",1)=DATE(2024,2,29)': 1,
			'=VALUE("50%")': 0.5,
			'=TEXT("2024-01-31","yyyy")': '2024',
		},
	};
	await expectValues({ A1: '1E5', A2: '50%', A3: '1/2' }, wanted);
});

test('ROW() and COLUMN() need the place of a range, and not what is in it', async () => {
	const sheet = new Computed();
	const wanted: Record<string, unknown> = {
		'=ROW(C1)': 1,
		'=ROW(C1:C9)*10': 10,
		'=SUM(ROW(INDIRECT("1:10")))': 55,
		'=SUM(ROW($1:$20))': 210,
		'=SUM(COLUMN(A:J))': 55,
		'=COLUMN(C7)': 3,
		'=ROWS(C1:C20)': 20,
		'=COLUMNS(A:C)': 3,
		'=ROW()': 9,
		'=SUMPRODUCT((A1:A200000="x")*ROW(A1:A200000))': 7,
		'=SUM(ROW(A1:A50000))': 1250025000,
		'=ROW(A16777217)': '#REF!',
	};
	await sheet.write({ A3: 'x', A4: 'x', A5: 'y' });
	for (const [i, [formula, value]] of Object.entries(wanted).entries()) {
		const cell = `C${i + 1}`;
		await sheet.write({ [cell]: formula });
		expect([formula, sheet.of(cell)[0]]).toEqual([formula, value]);
		if (!formula.includes('*10')) continue;
		expect(sheet.of('C10')[0]).toBe(90);
		await sheet.write({ [cell]: null });
	}
});

test('arrays have texts with separators, and functions have arrays of them', async () => {
	const wanted: Record<string, unknown> = {
		'=INDEX({"a,b","c;d"},1,2)': 'c;d',
		'=COLUMNS({"a,b";"c"})': 1,
		'=ROWS({"a,b";"c"})': 2,
		'=INDEX({ 1 , "x ; y" ; 3 , TRUE },1,2)': 'x ; y',
		'=SUM({1,2;3,-4.5})': 1.5,
		'=INDEX({"say ""no""",1},1,1)': 'say "no"',
		'=INDEX({"",#N/A},1,1)&"x"': 'x',
		'=VLOOKUP("b",CHOOSE({1,2},B1:B3,A1:A3),2,FALSE)': 20,
		'=ROWS(CHOOSE({1,2},A1:A3,B1:B3))': 3,
		'=SUM(CHOOSE(2,A1:A2,A2:A3))': 50,
		'=SUM(HLOOKUP("h",D1:E3,{2;3},FALSE))': 7,
		'=SUM(VLOOKUP(10,A1:B3,{1,1},FALSE))': 20,
		'=HLOOKUP("h",D1:E3,2,FALSE)': 3,
	};
	await expectValues({ A1: 10, A2: 20, A3: 30, B1: 'a', B2: 'b', B3: 'c', D1: 'g', E1: 'h', D2: 1, E2: 3, D3: 2, E3: 4 }, wanted);
});

test('arrays behind operators', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=SUM(1-{1,2})': -1, '=SUM(1-({1,2}))': -1, '=SUM(-1*{1,2})': -3, '=SUM(A1*{1,2})': 15, '=SUM(2^{1,2})': 6, '=SUM(10^{0,1,2})': 111 },
		...{ '=INDEX("a"&{"b","c"},1,2)': 'ac', '=INDEX(1={1,2},1,2)': 0, '=IF(OR(A1={1,5}),"y","n")': 'y', '=IF(OR(A1 <> { 5 }),"y","n")': 'n' },
		...{ '=SUM({1,2}-1)': 1, '=SUM((1)-{1,2})': -1, '=SUM(1-A1:A3)': -15, '=SUM(50%*{1,2})': 1.5, '=SUM(SUM(A1:A2)*{1;2})': 33, '=LET(x,{1,2},SUM(1-x))': -1 },
		...{ '={1,2}{3,4}': '#VALUE!', '=1+{1,2}5': '#VALUE!', '=SUM(1){1,2}': '#VALUE!', '=(1){1}': '#VALUE!' },
	};
	await expectValues({ A1: 5, A2: 6, A3: 7 }, wanted);
});

test('arrays and texts behind a minus', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=SUM(-{1,2})': -3, '=SUMPRODUCT(-{1,2},{1,2})': -5, '=SUM(IF(-{1,0},5,7))': 12, '=SUM(- { 1 ; 2 })': -3, '=SUM(--{1,2})': 3, '=SUM(-({1,2}))': -3 },
		...{
			'=SUM(-{1,2}^2)': 5,
			'=SUM(2^-{1,2})': 0.75,
			'=INDEX(-{"a}",1},1,2)': -1,
			'=-"3"': -3,
			'=--"3"': 3,
			'=3-"2"': 1,
			'="-{1}"': '-{1}',
			'="a-""b"': 'a-"b',
		},
	};
	await expectValues({}, wanted);
});

test('texts in formulas have line breaks', async () => {
	const wanted: Record<string, unknown> = {
		...{ '="a\nb"': 'a\nb', '=CODE(MID("a\nb",2,1))': 10, '=LEN("a\r\nb")': 4, '=LEN("\r\n")': 2, '="a""\n"&"""b"': 'a"\n"b' },
		...{
			'=LEN(INDEX({"a\r\nb",1},1,1))': 4,
			'=INDEX({"a";"b\nc,d"},2,1)': 'b\nc,d',
			'=LEN("{1,\n2}")': 6,
			'=SUBSTITUTE(A1,"\n","-")': 'x-y',
			'=FIND("\n",A1)': 2,
		},
		...{ '=SUM(\n1,\r\n2)': 3, '=SUM({1,\r\n2;\n3,4})': 10, '=IF(A1="x\ny",\n"yes",\n"no")': 'yes', '=A1&\n-"1"': 'x\ny-1' },
	};
	await expectValues({ A1: 'x\ny' }, wanted);
});

test('functions give what Excel and LibreOffice give', async () => {
	const wanted: Record<string, unknown> = {
		...{
			'=TRUNC(-2)': -2,
			'=TRUNC(-2.9)': -2,
			'=TRUNC(-9.99,1)': -9.9,
			'=TRUNC(-14,1)': -14,
			'=TRUNC(8.9)': 8,
			'=SUM(TRUNC(A1:A3))': 1,
			'=TRUNC("-3")': -3,
			'=TRUNC(123456789.123,8)=123456789.123': 1,
			'=TRUNC(1e17)=1e17': 1,
			'=ROUND(1e300,2)=1e300': 1,
			'=ROUND(123.4,400)': 123.4,
			'=ROUND(2.5,0)': 3,
			'=ROUNDUP(-2.1,0)': -3,
			'=ROUNDDOWN(-14.58,1)': -14.5,
			'=TRUNC("x")': '#VALUE!',
		},
		...{
			'=ROUND(GAMMA(2.8),12)': 1.676490787764,
			'=GAMMA(5)': 24,
			'=ROUND(GAMMA(-1.5),12)': 2.363271801207,
			'=GAMMA(0)': '#NUM!',
			'=ROUND(GAMMA(170.5)/10^305,6)': 5.562092,
			'=GAMMA(172)': '#NUM!',
		},
		...{
			'=SEARCH("p*","apple-12")': 2,
			'=SEARCH("P?x","apple")': '#VALUE!',
			'=SEARCH("P?e","appxe")': 3,
			'=SEARCH("~*","a*b")': 2,
			'=SEARCH("*e","apple")': 1,
			'=SEARCH("l*p","apple")': '#VALUE!',
			'=SEARCH("p","apple",3)': 3,
			'=SEARCH("p*e","apple",3)': 3,
			'=SEARCH("E","straße")': 6,
			'=SEARCH("ß?E","Straße 12")': '#VALUE!',
			'=SEARCH("","")': 1,
			'=SEARCH("","abc",4)': 4,
			'=SEARCH("a","abc",5)': '#VALUE!',
		},
		...{
			'=PROPER("éCOLE über it\'s 2nd-hand")': "École Über It'S 2Nd-Hand",
			'=PROPER(B9)': '',
			'=ROUND(RATE(6,-100,500),9)': 0.054717925,
			'=RATE(0,-100,500)': '#NUM!',
		},
		...{
			'=ISOWEEKNUM(DATE(2011,3,29))': 13,
			'=ISOWEEKNUM(DATE(2027,1,3))': 53,
			'=ISOWEEKNUM(DATE(2024,12,30))': 1,
			'=ISOWEEKNUM(DATE(2020,12,31))': 53,
			'=ISOWEEKNUM("2027-06-02")': 22,
		},
		...{ '=MAXIFS(A1:A3,A1:A3,7)': 0, '=MINIFS(A1:A3,A1:A3,">9")': 0, '=MAXIFS(A1:A3,A1:A3,"<0")': -0.5, '=MINIFS(B1:B3,A1:A3,"<0")': 0 },
		...{
			'=CONCAT("x",11/6)': 'x1.83333333333333',
			'="x"&11/6': 'x1.83333333333333',
			'=TEXTJOIN("-",TRUE,1/3,2)': '0.333333333333333-2',
			'=CONCATENATE(0.1+0.2)': '0.3',
			'=CONCAT(1/0,"a")': '#DIV/0!',
			'=CONCAT(TRUE,A1:A2)': 'TRUE-2-0.5',
			'=A2&A1': '-0.5-2',
		},
	};
	await expectValues({ A1: -2, A2: -0.5, A3: 3.7 }, wanted);
});

test('EDATE() ends in the month', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=EDATE(DATE(2024,1,31),1)=DATE(2024,2,29)': 1, '=EDATE(DATE(2024,2,29),12)=DATE(2025,2,28)': 1, '=EDATE(DATE(2024,3,31),-1)=DATE(2024,2,29)': 1 },
		...{ '=EDATE(DATE(2024,1,15),1)=DATE(2024,2,15)': 1, '=SUM(EDATE(DATE(2024,1,31),{1,2}))=DATE(2024,2,29)+DATE(2024,3,31)': 1, '=EDATE("x",1)': '#VALUE!' },
	};
	await expectValues({}, wanted);
});

test('EDATE() and EOMONTH() cut months toward zero, and read numbers in texts', async () => {
	const wanted: Record<string, unknown> = {
		...{
			'=EDATE(45322,-1.9)': 45291,
			'=EDATE(45322,1.9)': 45351,
			'=EOMONTH(45322,-1.9)': 45291,
			'=EOMONTH(45322,0.9)': 45322,
			'=SUM(EDATE(45322,{-1.9,1}))': 90642,
		},
		...{ '=EDATE(45322,"1")': 45351, '=EDATE("45322","-1.9")': 45291, '=EDATE(A1,1)': 45351, '=EDATE(A2,A3)': 45351, '=EOMONTH(A1,A3)': 45351 },
		...{ '=SUM(EDATE({"45322";45321},{"1",2}))': 181465, '=EDATE(45322,"x")': '#VALUE!', '=EDATE("",1)': '#VALUE!', '=EDATE(A4,1)': '#VALUE!' },
		...{
			'=EDATE(45322,B9)': 45322,
			'=EDATE(45322,1/0)': '#DIV/0!',
			'=EOMONTH(45322,"x")': '#VALUE!',
			'=SUM(EOMONTH({45322;45353},1))': 90763,
			'=SUM(EOMONTH(45322,{0,"1"}))': 90673,
		},
		'=IFERROR(INDEX(EOMONTH({45322,"x"},1),1,2),"none")&INDEX(EOMONTH({45322,"x"},1),1,1)': 'none45351',
	};
	await expectValues({ A1: '45322', A2: '2024-01-31', A3: '1.5', A4: true }, wanted);
});

test('EDATE() is a date', async () => {
	const sheet = new Computed();
	await sheet.write({ A1: '=EDATE(DATE(2024,1,30),1)', A2: '=EDATE(DATE(2024,1,15),1)', A3: '=EDATE({45321,45306},1)' });
	expect(sheet.of('A1', 'A2', 'A3', 'B3')).toEqual([45351, 45337, 45351, 45337]);
	const date = sheet.formatsOf('A2')[0];
	expect(date).toBeTruthy();
	expect(sheet.formatsOf('A1', 'A3', 'B3')).toEqual([date, date, date]);
});

test('VLOOKUP() and HLOOKUP() have an element for each value and index', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=SUMPRODUCT(VLOOKUP({1;2;3},A1:B3,{1,2},FALSE))': 66, '=SUM(VLOOKUP(A1:A3,A1:B3,{1;2;1},FALSE))': 24, '=SUM(VLOOKUP(2.5,A1:B3,{1,2}))': 22 },
		...{ '=SUM(IFERROR(VLOOKUP(2,A1:B3,{1,3,2,0,"x"},FALSE),0))': 22, '=INDEX(VLOOKUP(2,A1:B3,{1,3},FALSE),1,2)': '#REF!' },
		...{ '=INDEX(VLOOKUP(2,A1:B3,{1,0},FALSE),1,2)': '#VALUE!', '=INDEX(VLOOKUP({1;9},A1:B3,{1,2},FALSE),2,2)': '#N/A' },
		...{ '=SUM(IFERROR(VLOOKUP({1;9},A1:B3,{1,2},FALSE),0))': 11, '=INDEX(VLOOKUP(A1:A3,A1:B3,{1;2},FALSE),3)': '#N/A' },
		...{ '=INDEX(VLOOKUP(2,A1:B3,{1,#DIV/0!},FALSE),1,2)': '#DIV/0!', '=SUM(IFERROR(VLOOKUP(2.5,A1:B3,{1,2},{TRUE;FALSE}),0))': 22 },
		...{ '=SUM(HLOOKUP({1,10},A1:B3,{1;2;3},FALSE))': 66, '=SUM(IFERROR(HLOOKUP({1,7},A1:B3,{1;2;4},FALSE),0))': 3 },
		...{ '=INDEX(HLOOKUP(1,A1:B3,{2;4},FALSE),2)': '#REF!', '=INDEX(HLOOKUP(1,A1:B3,{2;4},FALSE),1)': 2, '=HLOOKUP(10,A1:B3,{2},FALSE)': 20 },
	};
	await expectValues({ A1: 1, A2: 2, A3: 3, B1: 10, B2: 20, B3: 30 }, wanted);
});

test('intersections and unions, which are not computed, are errors and no other numbers', async () => {
	const refused = ['(A1:B2) (B2:C3)', '(A1:A3) (B1:B3)', 'A1:B2 B2:C3', '(A1:A3,B1:B3)', '-(A1,B1)', 'A1:A3 \n B1'];
	const computed: Record<string, unknown> = {
		'=SUM (A1:A3)': 6,
		'=SUM( A1 , ( A2 ) ) * ( 2 )': 6,
		'= A1 + A2': 3,
		'=IF((A1=1),"a b, c (d, e) f",2)': 'a b, c (d, e) f',
		'=SUM({1,2;3,4})': 10,
		'=LAMBDA(x,y,x+y)(1,2)': 3,
		'=SUM(A1 : A3)': 6,
		'=A1 &" "& A2': '1 2',
	};
	const errors = Object.fromEntries(refused.map((formula) => [`=SUM(${formula})`, '#ERROR!']));
	await expectValues({ A1: 1, A2: 2, A3: 3, B1: 10, B2: 20, B3: 30 }, { ...computed, ...errors });
});

test('of two errors, operators give the left one, also if a lookup has found nothing', async () => {
	const wanted: Record<string, unknown> = {
		...{ '=MATCH(5,A1:A3,0)-1/0': '#N/A', '=MATCH(A3,A1:A2,0)*SEARCH("q","abc")': '#N/A', '=VLOOKUP(5,A1:A3,1,FALSE)+SEARCH("q","abc")': '#N/A' },
		...{ '=1/0-MATCH(5,A1:A3,0)': '#DIV/0!', '=MATCH(2,A1:A3,0)/SEARCH("q","abc")': '#VALUE!', '=MATCH(5,A1:A3,0)=1/0': '#N/A' },
		...{
			'=MATCH(5,A1:A3,0)^(1/0)': '#N/A',
			'=MATCH(5,A1:A3,0)/0': '#N/A',
			'=MATCH(2,A1:A3,0)/0': '#DIV/0!',
			'=MATCH(2,A1:A3,0)^3': 8,
			'=IFNA(MATCH(5,A1:A3,0)-1/0,"none")': 'none',
			'=NA()+1/0': '#N/A',
			'=1/0+NA()': '#DIV/0!',
		},
	};
	await expectValues({ A1: 1, A2: 2, A3: 3 }, wanted);
});
