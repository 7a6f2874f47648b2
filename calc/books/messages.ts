// messages.ts - what calc (conversion.ts) and the process that converts a workbook (child.ts) tell each other. The other one answers
// each message, unless it is the last one, with { t: 'took' } when it has done it (flow.ts).
import type { Place } from '../../gateway/web/src/v2/messages';
import type { Code, NotCarried, Where } from './read/refused';

/** What a file of a sheet is. */
export interface FileHead {
	name: string;
	/** Of its content: image/png. */
	type: string;
	size: number;
}

export type ToChild =
	/** The next bytes of the file. */
	| { t: 'bytes'; bytes: Uint8Array }
	/** They are all there: read the workbook. uid: the author of the edits. */
	| { t: 'read'; uid: number }
	/** Write a workbook with these tabs. */
	| { t: 'write'; names: string[] }
	/** isComputed: the values are those of the cells. part: of a sheet, which begins there, the contents alone; formulas are left out. */
	| { t: 'tab'; name: string; colour: string | null; hidden: boolean; properties: Uint8Array | null; isComputed: boolean; part?: Place }
	/** Streams of sheet.read_cells() of the tab that was named last: contents, then values of formulas. */
	| { t: 'cells'; bytes: Uint8Array }
	| { t: 'values'; bytes: Uint8Array }
	/** A picture that tabs name by its key. Its bytes follow in parts, and a part without bytes. */
	| { t: 'picture'; key: string; type: string }
	| { t: 'pictureBytes'; bytes: Uint8Array }
	/** There are no more tabs. */
	| { t: 'end' }
	/** What a message asks for. */
	| { t: 'answer'; answer: string | null };

export type FromChild =
	/** The next tab of the workbook that is read. */
	| { t: 'tab'; name: string }
	/** Edits of this tab, as sheet.apply() takes them. */
	| { t: 'edits'; bytes: Uint8Array }
	| { t: 'endTab'; colour: string | null; hidden: boolean }
	/** What follows is of the tab with this number. */
	| { t: 'again'; tab: number }
	/** Begins a file of the tab, and asks for its name; null: there is no room for it. */
	| ({ t: 'beginFile' } & FileHead)
	| { t: 'fileBytes'; bytes: Uint8Array }
	/** All bytes are there. Asks for its key. */
	| { t: 'endFile' }
	| { t: 'read'; lost: NotCarried[]; kept: NotCarried[] }
	/** The next bytes of the workbook that is written. */
	| { t: 'file'; bytes: Uint8Array }
	| { t: 'written' }
	| { t: 'refused'; code: Code; reason: string; where: Where };
