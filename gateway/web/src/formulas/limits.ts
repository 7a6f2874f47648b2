// limits.ts - how much a formula may compute (docs/design/page.md, How formulas are bounded). What exceeds the sizes is an error
// in every page; what exceeds the time is one in the page that has waited.

/** A range of more cells is read as far as something is in it. */
export const mostRead = 100_000;

/** Cells that a formula reads at once, or an array that it makes: #NUM!. */
export const mostCells = 10_000_000;

/** Cells that the array of a formula fills: #NUM!. */
export const mostFilled = 250_000;

/** Length of a text, as in other spreadsheets: #VALUE!. */
export const longestText = 32_767;

/** How often a formula may be computed again because an array has changed its size: #CYCLE!. */
export const mostRounds = 100;

/** A formula that takes longer is stopped: #CALC!. */
export const deadlineMs = 5000;

/** After so many formulas have been stopped, none is computed any more. */
export const mostStopped = 10;

/** So many formulas are told one by one before they are computed, at a cost that nobody notices. */
export const mostTold = 2000;
