// formats.ts - what both directions share: the names and numbers by which workbooks and sheets (style.ts) say the same.

/** Number formats that workbooks name by a number alone. */
export const builtinFormats = new Map<number, string>([
	...([
		[0, 'General'],
		[1, '0'],
		[2, '0.00'],
		[3, '#,##0'],
		[4, '#,##0.00'],
		[9, '0%'],
		[10, '0.00%'],
		[11, '0.00E+00'],
		[12, '# ?/?'],
		[13, '# ??/??'],
		[14, 'mm-dd-yy'],
		[15, 'd-mmm-yy'],
		[16, 'd-mmm'],
		[17, 'mmm-yy'],
		[18, 'h:mm AM/PM'],
		[19, 'h:mm:ss AM/PM'],
		[20, 'h:mm'],
		[21, 'h:mm:ss'],
		[22, 'm/d/yy h:mm'],
		[37, '#,##0_);(#,##0)'],
		[38, '#,##0_);[Red](#,##0)'],
		[39, '#,##0.00_);(#,##0.00)'],
		[40, '#,##0.00_);[Red](#,##0.00)'],
		[41, '_(* #,##0_);_(* \\(#,##0\\);_(* "-"_);_(@_)'],
		[42, '_("$"* #,##0_);_("$"* \\(#,##0\\);_("$"* "-"_);_(@_)'],
		[43, '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)'],
		[44, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'],
		[45, 'mm:ss'],
		[46, '[h]:mm:ss'],
		[47, 'mmss.0'],
		[48, '##0.0E+0'],
		[49, '@'],
	] as const),
]);
export const firstOwnFormat = 164;

/** By their numbers in sheets. */
export const borderStyles = [
	...['none', 'thin', 'hair', 'dotted', 'dashed', 'dashDot', 'dashDotDot', 'double', 'medium'],
	...['mediumDashed', 'mediumDashDot', 'mediumDashDotDot', 'slantDashDot', 'thick'],
];
export const borderSides = { left: 'l', right: 'r', top: 't', bottom: 'b' } as const;
export const horizontals: Record<string, number> = { left: 1, center: 2, right: 3, justify: 4, distributed: 6 };
export const verticals: Record<string, number> = { top: 1, center: 2, bottom: 3 };
export const wrapped = 3;
/** Of underlines (Univer's TextDecoration). */
export const doubleLine = 10;
export const subscript = 2;
export const superscript = 3;

/** The font of a cell without a style (style.ts). */
export const sheetFont = { name: 'Arial', size: 11 };

/** Workbooks measure columns in digits of their font, which are 7 pixels wide in the usual ones, and rows in points. */
const digitPixels = 7;
const round = (number: number, digits: number): number => Number(number.toFixed(digits));
export const pixelsOfWidth = (width: number): number => round(width * digitPixels, 2);
export const widthOfPixels = (pixels: number): number => round(pixels / digitPixels, 4);
export const pixelsOfHeight = (points: number): number => round((points * 4) / 3, 2);
export const heightOfPixels = (pixels: number): number => round(pixels * 0.75, 2);

/** The errors that workbooks store as values. */
export const isError = (text: string): boolean =>
	/^#(NULL!|DIV\/0!|VALUE!|REF!|NAME\?|NUM!|N\/A|GETTING_DATA|SPILL!|CALC!|FIELD!|BLOCKED!|CONNECT!|UNKNOWN!|BUSY!)$/.test(text);

/** Days between the epochs of 1900 and 1904. */
export const macDays = 1462;
export const mostTabs = 256;

/** What a record has under a name that a workbook gives. */
export const own = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined => (Object.hasOwn(record, name) ? record[name] : undefined);
