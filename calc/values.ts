// values.ts - values of formulas as contents, as the page has them.
import { isErrorName } from '../gateway/web/src/formulas/evaluator';
import type { Result } from '../gateway/web/src/formulas/messages';
import { contentOfCell } from '../gateway/web/src/cell';

/** A cell as Univer has it. */
type Shown = NonNullable<Result[2]>;

const patternOf = (style: Shown['s']): string | undefined => (typeof style === 'object' ? style?.n?.pattern : undefined);

/** What the database takes for an error. */
const errorPattern = /^#(?:[A-Z0-9/_]+[!?]|N\/A)$/;

/** The value of a formula as a content. `own`: the number format of its cell, which counts before that of the result. */
export function valueContent(value: Shown, own: string | undefined): string {
	const { v } = value;
	if (typeof v === 'number' && value.t !== 3 && !Number.isFinite(v)) return '#NUM!';
	if (typeof v === 'string' && isErrorName(v)) return v;
	const pattern = own ?? patternOf(value.s);
	const content = contentOfCell(value, null, pattern ? { n: { pattern } } : null);
	if (content === '') return "'";
	// The database stores no NUL.
	return errorPattern.test(content) ? `'${content}` : content.replaceAll('\0', '\ufffd');
}
