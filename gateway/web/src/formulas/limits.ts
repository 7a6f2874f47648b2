// limits.ts - how much a formula may compute (docs/design/page.md, How formulas are bounded). A formula that exceeds a size shows
// an error in every page. A formula that exceeds the time shows one only in the page that has waited.

/** A range of more cells is read only up to the last row and column of the sheet that have contents. */
export const mostRead = 100_000;

/** Cells of one range, or of one array in a computation. A formula that exceeds it shows #NUM!. */
export const mostCells = 10_000_000;

/** Cells that the array of a formula fills. A formula that exceeds it shows #NUM!. */
export const mostFilled = 250_000;

/** Characters of a text, as in other spreadsheets. A formula that exceeds it shows #VALUE!. */
export const longestText = 32_767;

/** How often a formula is computed again because an array has changed its size. Then it shows #CYCLE!. */
export const mostRounds = 100;

/** The time for one formula, in milliseconds. A formula that exceeds it is stopped and shows #CALC!. */
export const deadlineMs = 5000;

/** The page stops computing formulas when this number of formulas has been stopped. */
export const mostStopped = 10;

/** With at most this number of formulas, the worker names each formula before it computes it. */
export const mostTold = 2000;
