-- Books: sets of sheets, which are the tabs of the book (docs/design/books.md). The name of a tab is that of its sheet.

CREATE SEQUENCE sheet.book_id_seq MAXVALUE 9007199254740991;
CREATE TABLE sheet.book (
	book_id bigint PRIMARY KEY DEFAULT nextval('sheet.book_id_seq'),
	name text NOT NULL,
	owner bigint,
	created_at timestamptz NOT NULL DEFAULT now(),
	trashed_at timestamptz,
	changes bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE sheet.book IS 'The books: sets of sheets.';
COMMENT ON COLUMN sheet.book.owner IS 'uid, also of its tabs; null for a book created by a superuser without an account';
COMMENT ON COLUMN sheet.book.changes IS
	'counts changes of the book, its tabs and members: of two transactions that do not see each other, one fails';
COMMENT ON COLUMN sheet.book.trashed_at IS
	'when it was moved to the trash, with the tabs that have the same time; null: not in the trash';

CREATE TABLE sheet.book_tab (
	sheet_id bigint PRIMARY KEY,
	book_id bigint NOT NULL,
	place integer NOT NULL,
	colour text CHECK (colour ~ '^#[0-9a-f]{6}$'),
	hidden boolean NOT NULL DEFAULT false
);
CREATE INDEX book_tab_idx ON sheet.book_tab (book_id, place);
COMMENT ON TABLE sheet.book_tab IS 'The sheets that are in books.';
COMMENT ON COLUMN sheet.book_tab.place IS 'the order of the tabs, from left to right; may have gaps';

CREATE TABLE sheet.book_member (
	book_id bigint NOT NULL,
	uid bigint NOT NULL,
	role text NOT NULL CHECK (role IN ('viewer', 'commenter', 'editor', 'owner')),
	PRIMARY KEY (book_id, uid)
);
-- For the account's list of books, which is read in pages.
CREATE INDEX book_member_list_idx ON sheet.book_member (uid, book_id);
COMMENT ON TABLE sheet.book_member IS
	'The owner of each book and the accounts with which it is shared. The role in a tab is that of sheet.member.';

CREATE TABLE sheet.referring (
	sheet_id bigint PRIMARY KEY
);
COMMENT ON TABLE sheet.referring IS
	'Sheets that have, or had, formulas with names of sheets (X!A1). The row comes with the first of them.';

-- as in 20-catalog.sql
ALTER TABLE sheet.book_tab ALTER book_id SET (n_distinct = -0.05);
ALTER TABLE sheet.book_member ALTER book_id SET (n_distinct = -0.05), ALTER uid SET (n_distinct = -0.05);

SELECT pg_catalog.pg_extension_config_dump('sheet.book', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.book_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.book_tab', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.book_member', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.referring', '');

-- ---- books ----

CREATE FUNCTION sheet.create_book(name text, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_create_book';
COMMENT ON FUNCTION sheet.create_book(text, bigint) IS 'Creates a book without tabs and returns its id.';

CREATE FUNCTION sheet.book_info(INOUT book_id bigint, IN as_uid bigint DEFAULT NULL, OUT name text, OUT owner_uid bigint,
	OUT owner text, OUT role text, OUT trashed boolean, OUT created_at timestamptz)
	RETURNS SETOF record LANGUAGE c STABLE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_book_info';
COMMENT ON FUNCTION sheet.book_info(bigint, bigint) IS
	'Properties of a book: one row. name and role are null for an account that may see single tabs only. 42501: the '
	'account may see none.';

CREATE FUNCTION sheet.account_books(uid bigint, max_rows integer DEFAULT 200, after bigint DEFAULT NULL)
	RETURNS TABLE (book_id bigint, name text, owner text, role text, trashed boolean, created_at timestamptz)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_account_books';
COMMENT ON FUNCTION sheet.account_books(bigint, integer, bigint) IS
	'A page of the account''s list of books, newest first: those with ids below `after`. A row without a role is a book '
	'in the trash of somebody else. The page has max_rows rows unless the list ends. For gateways and for the account '
	'itself.';

CREATE FUNCTION sheet.rename_book(book_id bigint, name text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_rename_book';
COMMENT ON FUNCTION sheet.rename_book(bigint, text, bigint) IS 'Renames the book. Editors.';

CREATE FUNCTION sheet.trash_book(book_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_trash_book';
COMMENT ON FUNCTION sheet.trash_book(bigint, bigint) IS 'Moves the book to the trash, with all its tabs. Owners.';

CREATE FUNCTION sheet.recover_book(book_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_recover_book';
COMMENT ON FUNCTION sheet.recover_book(bigint, bigint) IS
	'Moves the book out of the trash, with the tabs that came there with it. Owners.';

CREATE FUNCTION sheet.purge_book(book_id bigint, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_purge_book';
COMMENT ON FUNCTION sheet.purge_book(bigint, bigint) IS 'Deletes the book for good, with all its tabs; see sheet.purge(). Owners.';

CREATE FUNCTION sheet.duplicate_book(book_id bigint, name text, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_duplicate_book';
COMMENT ON FUNCTION sheet.duplicate_book(bigint, text, bigint) IS
	'Creates a book of the caller with copies of the tabs that the caller sees, and returns its id; see '
	'sheet.duplicate_tab(). Viewers.';

-- ---- sharing ----

CREATE FUNCTION sheet.share_book(book_id bigint, account text, role text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_share_book';
COMMENT ON FUNCTION sheet.share_book(bigint, text, text, bigint) IS
	'Gives the account the role viewer, commenter or editor on the book and on each tab where it has no other role than '
	'the book gave it before. Owners.';

CREATE FUNCTION sheet.unshare_book(book_id bigint, account text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_unshare_book';
COMMENT ON FUNCTION sheet.unshare_book(bigint, text, bigint) IS
	'Removes the account''s role on the book, and on each tab where it is that of the book. Owners.';

CREATE FUNCTION sheet.book_members(book_id bigint, max_rows integer DEFAULT 200, after bigint DEFAULT 0, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (uid bigint, name text, role text)
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_book_members';
COMMENT ON FUNCTION sheet.book_members(bigint, integer, bigint, bigint) IS
	'A page of the owner and the accounts with which the book is shared: those with uids above `after`, by uid. Viewers.';

-- ---- tabs ----

CREATE FUNCTION sheet.tab_key(name text) RETURNS text
	LANGUAGE c STRICT STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'sheet_tab_key';
COMMENT ON FUNCTION sheet.tab_key(text) IS 'Internal: the same for names that differ only in the case of their letters.';

CREATE FUNCTION sheet.tabs(book_id bigint, as_uid bigint DEFAULT NULL)
	RETURNS TABLE (sheet_id bigint, name text, place integer, colour text, hidden boolean, role text, trashed boolean)
	LANGUAGE c STABLE PARALLEL UNSAFE ROWS 20 AS 'MODULE_PATHNAME', 'sheet_tabs';
COMMENT ON FUNCTION sheet.tabs(bigint, bigint) IS
	'The tabs of the book that the account may see, from left to right, hidden ones included; its owner also sees those '
	'in the trash. 42501: the account may see none.';

CREATE FUNCTION sheet.tab(book_id bigint, name text, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_tab';
COMMENT ON FUNCTION sheet.tab(bigint, text, bigint) IS
	'The id of the tab with that name, without regard to case; null: there is none that the account may see.';

CREATE FUNCTION sheet.add_tab(book_id bigint, name text, before bigint DEFAULT NULL, rows integer DEFAULT 100, cols integer DEFAULT 26,
	as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_add_tab';
COMMENT ON FUNCTION sheet.add_tab(bigint, text, bigint, integer, integer, bigint) IS
	'Creates a sheet as a tab of the book, before the tab `before` (null: behind all), and returns its id. It belongs to '
	'the owner of the book, and is shared as the book is. 23505: the book has a tab of that name, without regard to case. '
	'54000: the book has 256 tabs. Editors of the book.';

CREATE FUNCTION sheet.move_tab(sheet_id bigint, book_id bigint, before bigint DEFAULT NULL, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_move_tab';
COMMENT ON FUNCTION sheet.move_tab(bigint, bigint, bigint, bigint) IS
	'Puts the sheet into the book, before the tab `before` (null: behind all); book_id null: into none. The roles that '
	'its book has given end, and those of the new book begin. 55000: the book belongs to somebody else than the sheet. '
	'Editors of the book; to change the book, owners of the sheet.';

CREATE FUNCTION sheet.change_tab(sheet_id bigint, colour text DEFAULT NULL, hidden boolean DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_change_tab';
COMMENT ON FUNCTION sheet.change_tab(bigint, text, boolean, bigint) IS
	'Changes what is not null. colour: #rrggbb; empty: none. 55000: it is the last visible tab, which cannot be hidden, '
	'or no tab. Editors of the book.';

CREATE FUNCTION sheet.duplicate_tab(sheet_id bigint, name text, book_id bigint DEFAULT NULL, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_duplicate_tab';
COMMENT ON FUNCTION sheet.duplicate_tab(bigint, text, bigint, bigint) IS
	'Creates a sheet with the cells, styles, properties and the size of another one, without its history, links, webhooks '
	'and files, and returns its id. It becomes the next tab of the same book, with the same exceptions, or the last one of the book book_id; '
	'of a sheet that is in no book, a sheet of the caller. Viewers of the sheet who are editors of the book.';

CREATE VIEW sheet.books WITH (security_barrier) AS
	SELECT m.book_id, b.name, o.name AS owner, m.role, b.trashed_at IS NOT NULL AS trashed, b.created_at
	FROM sheet.book_member m CROSS JOIN LATERAL (SELECT b.* FROM sheet.book b WHERE b.book_id = m.book_id OFFSET 0) b
		LEFT JOIN LATERAL (SELECT a.name FROM sheet.account a WHERE a.uid = b.owner OFFSET 0) o ON true
	WHERE NOT (SELECT sheet.sees_all()) AND m.uid = (SELECT sheet.current_uid()) AND (b.trashed_at IS NULL OR m.role = 'owner')
	UNION ALL
	SELECT b.book_id, b.name, o.name, 'owner', b.trashed_at IS NOT NULL, b.created_at
	FROM sheet.book b LEFT JOIN sheet.account o ON o.uid = b.owner
	WHERE (SELECT sheet.sees_all());
COMMENT ON VIEW sheet.books IS 'Books that the current role owns or that are shared with it.';
COMMENT ON COLUMN sheet.books.role IS 'role of the current role''s account: viewer, commenter, editor or owner';
