// find.ts - which cells have a text, and what they hold after it has been replaced. No grid.
//
// A cell is found by what it shows and by what was typed; a formula by its own text only if that is asked for. What is replaced
// is what was typed, as the sheet stores it.
import { textContent } from '../content';

export interface Search {
	text: string;
	matchCase: boolean;
	/** The text is all of the cell. */
	whole: boolean;
	/** Formulas are searched and replaced, too, not only their results. */
	formulas: boolean;
}

export const isFormula = (content: string): boolean => content.startsWith('=') && content.length > 1;

/** What was typed, without the apostrophe that makes it a text. */
const typed = (content: string): string => (content.startsWith("'") ? content.slice(1) : content);

/** Finds all places of the text in a cell. */
function patternOf({ text, matchCase, whole }: Search): RegExp {
	const escaped = text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
	return new RegExp(whole ? `^${escaped}$` : escaped, matchCase ? 'gu' : 'giu');
}

export class Finder {
	private readonly pattern: RegExp;

	constructor(private readonly search: Search) {
		this.pattern = patternOf(search);
	}

	private isIn(text: string): boolean {
		this.pattern.lastIndex = 0;
		return this.pattern.test(text);
	}

	/** shown: called only if the typed text does not decide. */
	finds(content: string, shown: () => string): boolean {
		if (content === '') return false;
		if ((this.search.formulas || !isFormula(content)) && this.isIn(typed(content))) return true;
		// Only numbers, dates and results may look different from what was typed.
		return /^[=+\-.\d]/.test(content) && this.isIn(shown());
	}

	/** The content after the replacement; null if there is nothing to replace: the result of a formula, or what only a format shows. */
	replaced(content: string, by: string): string | null {
		if (isFormula(content)) return this.search.formulas && this.isIn(content) ? content.replace(this.pattern, () => by) : null;
		const before = typed(content);
		if (!this.isIn(before)) return null;
		const after = before.replace(this.pattern, () => by);
		if (content.startsWith("'")) return textContent(after);
		// A text does not become a formula.
		return isFormula(after) ? `'${after}` : after;
	}
}
