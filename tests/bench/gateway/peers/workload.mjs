/*
 * workload.mjs - the edits of ../../edit/workload.h for loads in JavaScript: sender s writes random columns of row s,
 * "test" repeated 0 to 29 times, and edit i is a pure function of (s, i). The columns of one transaction are distinct:
 * where two of its edits meet in a cell, Yjs and json0 may send only the second.
 */
const columns = 100;
const repeats = 30;
const stride = 7; /* has no divisor in common with `columns` */
export const batchMax = 32;

const contents = Array.from({ length: repeats }, (_, i) => 'test'.repeat(i));

/* The finalizer of MurmurHash3. */
function mix(x) {
	x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
	x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
	return (x ^ (x >>> 16)) >>> 0;
}

/** Edit `index` of a sender who puts `batch` edits into a transaction: {col, content}. */
export function editAt(sender, index, batch) {
	const place = index % batch;
	const first = mix(Math.imul(sender + 1, 0x9e3779b1) + (index - place));
	return {
		col: (first + place * stride) % columns,
		content: contents[mix(Math.imul(sender + 1, 0x7feb352d) + index) % repeats],
	};
}

/** The cells after so many edits of each sender: [row][col], only those that were written. */
export function cellsAfter(edits, batch) {
	return edits.map((count, sender) => {
		const cells = {};
		for (let index = 0; index < count; index++) {
			const { col, content } = editAt(sender, index, batch);
			cells[col] = content;
		}
		return cells;
	});
}
