// reading.ts - what formulas of the open sheet read of the other tabs of its book.
import { ApiError, locateSheet, type Session } from '../api';
import { Msg } from '../answers';
import { OtherTabs } from './others';
import type { Book } from './book';

/** A guest of a link sees one sheet alone. */
export function readTabs(account: Session, book: Book): OtherTabs {
	const others = new OtherTabs({
		sheet: book.sheet,
		token: () => account.token,
		locate: (sheet, moved) => locateSheet(account.token, sheet, moved),
		isRefusal: (error) => error instanceof ApiError && error.msg !== null && error.msg !== Msg.InvalidToken,
	});
	if (account.link !== undefined) others.setTabs([]);
	else book.onChange(() => others.setTabs(book.tabs));
	return others;
}
