// frames.ts - structure edits of the user that can be taken back.
//
// A frame is an entry of an undo stack. It is in the present coordinates, as long as it is the last entry. The entries below it
// are in those from before the user's structure edit, which taking it back brings back: so an edit in a row that the user
// has deleted since can be taken back after the deletion. `follow` carries somebody else's change over to them.
import { isInsert, isOfRows, moveContent, movePlace, transform } from '../v2/lines';
import type { CellEdit, Edit, Place, PropertyEdit, StructureEdit } from '../v2/messages';
import { moveProperty, propertyName, sameValue } from '../v2/properties';
import { keyOf } from '../v2/replica';
import { sameStyle } from '../style';
import {
	type Cells,
	type LineMove,
	type Sheet,
	cellsOf,
	followMove,
	moveBack,
	moveCells,
	moveChange,
	movedContent,
	movedPlace,
	moveEdits,
	structureOf,
	writes,
} from './moving';

/** Why a structure edit is not taken back: somebody has written into the rows, a formula refers to them, they are deleted,
 * their cells were not read, or they are too many for one operation. */
export type Hindrance = 'written' | 'referred' | 'deleted' | 'unread' | 'large';

export interface Frame {
	/** Somebody else's change, in the coordinates after the user's edit. Returns it in those before. */
	follow(change: StructureEdit): StructureEdit[];
	/** The user's edit. */
	changes(): StructureEdit[];
}

/** A frame that is taken back by these edits. */
export interface Reversal {
	edits: Edit[];
	/** Cells that are left, because they have changed since. */
	skipped: Place[];
}

const inverses = { insertRows: 'deleteRows', deleteRows: 'insertRows', insertColumns: 'deleteColumns', deleteColumns: 'insertColumns' } as const;

const inverse = (change: StructureEdit): StructureEdit => ({ kind: inverses[change.kind], at: change.at, n: change.n });

const structure = (edits: Edit[]): StructureEdit[] => edits as StructureEdit[];
const lostReferences = (text: string): number => text.split('#REF!').length;
const sameCells = (a: CellEdit[], b: CellEdit[]): boolean => {
	const cells = new Map(a.map((cell) => [keyOf(cell.row, cell.col), cell]));
	return (
		a.length === b.length &&
		b.every(({ row, col, content, style }) => {
			const cell = cells.get(keyOf(row, col));
			return cell && (cell.content ?? '') === (content ?? '') && sameStyle(cell.style ?? null, style ?? null);
		})
	);
};

/** Takes an insertion back: deletes the rows or columns, if they have the cells that the user has put there. */
export class Removal implements Frame {
	private runs: StructureEdit[];

	constructor(
		insert: StructureEdit,
		private cells: CellEdit[],
		/** Whether formulas that refer to the rows keep them. */
		private readonly keepsReferences: boolean,
	) {
		this.runs = [inverse(insert)];
	}

	follow(change: StructureEdit): StructureEdit[] {
		const below = structure(transform([change], this.runs));
		this.runs = structure(transform(this.runs, [change]));
		this.cells = moveCells(this.cells, [change]);
		return below;
	}

	changes(): StructureEdit[] {
		return [...this.runs].reverse().map(inverse);
	}

	reverse(sheet: Cells): Reversal | Hindrance {
		if (this.runs.length === 0) return 'deleted';
		let removed = 0;
		const present = this.runs.map((run) => {
			const shifted = { ...run, at: run.at + removed };
			removed += run.n;
			return cellsOf(shifted);
		});
		if (
			!sameCells(
				present.flatMap((range) => sheet.list(range)),
				this.cells,
			)
		)
			return 'written';
		const loses = (text: string) => lostReferences(this.runs.reduce((moved, run) => moveContent(moved, run) ?? moved, text)) > lostReferences(text);
		if (this.keepsReferences && sheet.formulas().some(({ content }) => loses(content))) return 'referred';
		return { edits: this.runs, skipped: [] };
	}
}

/** A formula that does not come back by itself when the rows that it refers to do. `content`: what the user's edit left. */
interface Formula extends Place {
	content: string;
	before: string;
}

type Text = (content: string) => string | undefined;

/** The formulas that an edit changes so that its inverse does not bring them back. */
function lossy(formulas: (Place & { content: string })[], place: (from: Place) => Place | undefined, edit: Text, back: Text): Formula[] {
	return formulas.flatMap(({ row, col, content: before }) => {
		const to = place({ row, col });
		const content = edit(before);
		return to && content !== undefined && back(content) !== before ? [{ ...to, content, before }] : [];
	});
}

/** The formulas after somebody else's change, which is `below` before the user's edit. */
const followFormulas = (formulas: Formula[], change: StructureEdit, below: StructureEdit[]): Formula[] =>
	moveCells(formulas, [change]).map((formula) => ({ ...formula, before: below.reduce((text, edit) => moveContent(text, edit) ?? text, formula.before) }));

/** What brings the formulas back, as far as nobody has changed them. place: where the reversal puts them. */
function restore(formulas: Formula[], sheet: Cells, place: (from: Place) => Place | undefined): { edits: CellEdit[]; skipped: Place[] } {
	const edits: CellEdit[] = [];
	const skipped: Place[] = [];
	for (const { row, col, content, before } of formulas) {
		const to = place({ row, col });
		if (to && sheet.read(row, col).content === content) edits.push({ ...to, content: before });
		else skipped.push({ row, col });
	}
	return { edits, skipped };
}

/** Takes a deletion back: inserts rows or columns, with their cells and the formulas that referred to them. */
export class Restoration implements Frame {
	private insert: StructureEdit | undefined;
	/** In the coordinates before the deletion. */
	cells: CellEdit[];
	private formulas: Formula[];
	/** Properties that do not come back by themselves, and what the deletion left of them. */
	private properties: { before: PropertyEdit; left: PropertyEdit | undefined }[];

	/** sheet: before the deletion. isRead: its cells are known. */
	constructor(
		removal: StructureEdit,
		sheet: Sheet,
		private readonly isRead: boolean,
	) {
		const insert = inverse(removal);
		this.insert = insert;
		this.cells = sheet.list(cellsOf(removal));
		this.formulas = lossy(
			sheet.formulas(),
			(place) => movePlace(place, removal),
			(text) => moveContent(text, removal),
			(text) => moveContent(text, insert),
		);
		this.properties = sheet.properties.flatMap((before) => {
			const left = moveProperty(before, removal);
			const back = left && moveProperty(left, insert);
			return back && propertyName(back) === propertyName(before) ? [] : [{ before, left }];
		});
	}

	follow(change: StructureEdit): StructureEdit[] {
		const { insert } = this;
		if (!insert) return [change];
		// What others insert in the place of the deleted rows comes before them.
		const shifts = isOfRows(change) === isOfRows(insert) && insert.at < change.at;
		const below = isInsert(change) ? [{ ...change, at: shifts ? change.at + insert.n : change.at }] : structure(transform([change], [insert]));
		this.insert = structure(transform([insert], [change]))[0];
		this.cells = moveCells(this.cells, below);
		this.formulas = followFormulas(this.formulas, change, below);
		this.properties = this.properties.flatMap(({ before, left }) => {
			const moved = below.reduce<PropertyEdit | undefined>((property, edit) => property && moveProperty(property, edit), before);
			return moved ? [{ before: moved, left: left && moveProperty(left, change) }] : [];
		});
		return below;
	}

	/** Brings the properties back that nobody has changed. */
	private restoreProperties(insert: StructureEdit, sheet: Sheet): PropertyEdit[] {
		const present = new Map(sheet.properties.map((property) => [propertyName(property), property.value]));
		return this.properties.flatMap(({ before, left }) => {
			if (left && !sameValue(present.get(propertyName(left)), before.value)) return [];
			const moved = left && moveProperty(left, insert);
			return [...(moved ? [{ ...moved, value: null }] : []), before];
		});
	}

	changes(): StructureEdit[] {
		return this.insert ? [inverse(this.insert)] : [];
	}

	reverse(sheet: Sheet): Reversal | Hindrance {
		const { insert } = this;
		if (!insert) return 'deleted';
		if (!this.isRead) return 'unread';
		const { edits, skipped } = restore(this.formulas, sheet, (place) => movePlace(place, insert));
		return { edits: [insert, ...this.cells.map(writes), ...edits, ...this.restoreProperties(insert, sheet)], skipped };
	}
}

/** Takes a move back by another one, whatever the rows have become. */
export class MoveBack implements Frame {
	move: LineMove | undefined;
	private formulas: Formula[];

	/** move: the user's. formulas: all of them, before it. */
	constructor(move: LineMove, formulas: (Place & { content: string })[]) {
		const back = moveBack(move);
		this.move = back;
		this.formulas = lossy(
			formulas,
			(place) => movedPlace(move, place),
			(text) => movedContent(move, text),
			(text) => movedContent(back, text),
		);
	}

	changes(): StructureEdit[] {
		return this.move ? structureOf(moveBack(this.move)) : [];
	}

	follow(change: StructureEdit): StructureEdit[] {
		const { move } = this;
		if (!move) return [change];
		const below = moveChange(move, change);
		this.move = followMove(move, change);
		this.formulas = followFormulas(this.formulas, change, below);
		return below;
	}

	reverse(sheet: Sheet): Reversal | Hindrance {
		const { move } = this;
		const edits = move && moveEdits(move, sheet);
		if (!edits) return move ? 'large' : 'deleted';
		const restored = restore(this.formulas, sheet, (place) => movedPlace(move, place));
		return { edits: [...edits, ...restored.edits], skipped: restored.skipped };
	}
}

export type StructureFrame = Removal | Restoration | MoveBack;
