-- Books: who may do what, tabs and their names, sharing with exceptions, copies, the trash, and what sheet.fsck says.
SET client_min_messages = warning;
CREATE ROLE book_anna LOGIN;
CREATE ROLE book_ben LOGIN;
CREATE ROLE book_eve LOGIN;
CREATE ROLE book_gateway LOGIN IN ROLE sheet_gateway;
SELECT sheet.account_create('book anna', NULL, 'x') AS anna \gset
SELECT sheet.account_create('book ben', NULL, 'x') AS ben \gset
SELECT sheet.account_create('book eve', NULL, 'x') AS eve \gset
SELECT sheet.link_account('book anna', 'book_anna'), sheet.link_account('book ben', 'book_ben'), sheet.link_account('book eve', 'book_eve');
CREATE FUNCTION public.tabs_of(book bigint) RETURNS TABLE (name text, place integer, colour text, hidden boolean, role text, trashed boolean) LANGUAGE sql AS $$
	SELECT t.name, t.place, t.colour, t.hidden, t.role, t.trashed FROM sheet.tabs(book) t $$;
-- The error of a statement, in which numbers of sheets and books are N.
CREATE FUNCTION public.error_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE query;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN regexp_replace(concat_ws(' | ', SQLSTATE, message, nullif(detail, ''), nullif(hint, '')), '(sheet|book) [0-9]+', '\1 N', 'g');
END
$$;
CREATE FUNCTION public.roles_of(book bigint) RETURNS TABLE (tab text, account text, role text) LANGUAGE sql SECURITY DEFINER AS $$
	SELECT s.name, a.name, m.role FROM sheet.book_tab t JOIN sheet.sheet s USING (sheet_id) JOIN sheet.member m USING (sheet_id)
		JOIN sheet.account a ON a.uid = m.uid WHERE t.book_id = book AND m.role IS DISTINCT FROM 'owner' ORDER BY t.place, a.name $$;

-- ---- making a book, and its tabs in order ----
SET ROLE book_anna;
SELECT sheet.create_book('accounts 2026') AS b \gset
SELECT name, owner, role, trashed, created_at <= now() AS made FROM sheet.books;
SELECT name, owner_uid = :anna AS mine, owner, role, trashed FROM sheet.book_info(:b);
SELECT count(*) FROM sheet.tabs(:b);
SELECT sheet.add_tab(:b, 'January') AS jan \gset
SELECT sheet.add_tab(:b, 'March', cols => 5, rows => 7) AS mar \gset
SELECT sheet.add_tab(:b, 'February', :mar) AS feb \gset
SELECT * FROM tabs_of(:b);
SELECT sheet.move_tab(:mar, :b, :jan);
SELECT name, place FROM tabs_of(:b);
SELECT sheet.move_tab(:mar, :b, :mar), sheet.move_tab(:jan, :b);
SELECT name, place FROM tabs_of(:b);
SELECT sheet.move_tab(:jan, :b, :mar), sheet.move_tab(:feb, :b, :mar);
SELECT name, place FROM tabs_of(:b);
SELECT sheet.tab(:b, 'FEBRUARY') = :feb AS february, sheet.tab(:b, 'April') AS april;
-- what is wrong with arguments
SELECT error_of('SELECT sheet.create_book(NULL)');
SELECT error_of('SELECT sheet.create_book('' '')');
SELECT error_of('SELECT sheet.tabs(NULL)');
SELECT error_of('SELECT sheet.tabs(0)');
SELECT error_of('SELECT sheet.book_info(0)');
SELECT error_of(format('SELECT sheet.tab(%s, NULL)', :b));
SELECT error_of(format('SELECT sheet.add_tab(%s, NULL)', :b));
SELECT error_of(format('SELECT sheet.add_tab(%s, '''')', :b));
SELECT error_of(format('SELECT sheet.add_tab(%s, ''x'', 0)', :b));
SELECT error_of(format('SELECT sheet.add_tab(%s, ''x'', rows => 0)', :b));
SELECT error_of('SELECT sheet.add_tab(0, ''x'')');
SELECT error_of(format('SELECT sheet.move_tab(%s, NULL, %s)', :jan, :mar));
SELECT error_of(format('SELECT sheet.move_tab(%s, 0)', :jan));
SELECT error_of(format('SELECT sheet.rename_book(%s, '''')', :b));
SELECT error_of(format('SELECT sheet.change_tab(%s, ''red'')', :jan));
SELECT error_of(format('SELECT sheet.share_book(%s, ''book ben'', ''owner'')', :b));
SELECT error_of(format('SELECT sheet.share_book(%s, ''nobody'', ''viewer'')', :b));
SELECT error_of(format('SELECT sheet.share_book(%s, ''book anna'', ''viewer'')', :b));
SELECT error_of(format('SELECT sheet.unshare_book(%s, ''book anna'')', :b));
SELECT error_of(format('SELECT sheet.book_members(%s, 0)', :b));
SELECT error_of(format('SELECT sheet.account_books(%s, 1001)', :anna));

-- ---- names: unique without regard to case, in every script ----
SELECT error_of(format('SELECT sheet.add_tab(%s, ''jANUARY'')', :b));
SELECT error_of(format('SELECT sheet.rename(%s, ''january'')', :feb));
SELECT sheet.rename(:feb, 'FEBRUARY'), sheet.rename(:feb, 'STRASSE'), sheet.rename(:mar, 'ΣΊΣΥΦΟΣ');
SELECT error_of(format('SELECT sheet.add_tab(%s, ''Straße'')', :b));
SELECT error_of(format('SELECT sheet.add_tab(%s, ''σίσυφος'')', :b));
SELECT error_of(format('SELECT sheet.add_tab(%s, U&''\03A3\0399\0301\03A3\03A5\03A6\039F\03A3'')', :b));
SELECT sheet.rename(:feb, 'February'), sheet.rename(:mar, 'March');
-- of the book only
SELECT sheet.create('January') > 0 AS alone, sheet.add_tab(sheet.create_book('other'), 'January') > 0 AS elsewhere;

-- ---- looks ----
SELECT sheet.change_tab(:jan, '#AABBCC'), sheet.change_tab(:feb, hidden => true);
SELECT name, colour, hidden FROM tabs_of(:b);
SELECT sheet.change_tab(:jan, hidden => true), sheet.change_tab(:jan);
SELECT name, colour, hidden FROM tabs_of(:b);
SELECT error_of(format('SELECT sheet.change_tab(%s, hidden => true)', :mar));
SELECT sheet.change_tab(:jan, '', false), sheet.change_tab(:feb, hidden => false);
SELECT name, colour, hidden FROM tabs_of(:b);
-- a tab in the trash is not visible
SELECT sheet.trash(:jan), sheet.trash(:feb);
SELECT error_of(format('SELECT sheet.change_tab(%s, hidden => true)', :mar));
SELECT name, trashed FROM tabs_of(:b);
-- its name is free, and may be taken when it comes back
SELECT sheet.rename(:mar, 'january');
SELECT error_of(format('SELECT sheet.recover(%s)', :jan));
SELECT sheet.rename(:mar, 'March'), sheet.recover(:jan), sheet.recover(:feb);

-- ---- sharing, and exceptions ----
SELECT sheet.share(:feb, 'book ben', 'viewer');
SELECT sheet.share_book(:b, 'book ben', 'editor');
SELECT * FROM roles_of(:b);
SELECT name, role FROM sheet.book_members(:b);
SELECT name FROM sheet.book_members(:b, 1);
SELECT name FROM sheet.book_members(:b, 1, :anna);
SELECT sheet.share_book(:b, 'book ben', 'commenter');
SELECT * FROM roles_of(:b);
-- an exception that is ended: the tab is unshared, and stays so
SELECT sheet.unshare(:mar, 'book ben');
SELECT sheet.share_book(:b, 'book ben', 'editor');
SELECT * FROM roles_of(:b);
SELECT sheet.add_tab(:b, 'April') AS apr \gset
SELECT * FROM roles_of(:b);
SET ROLE book_ben;
SELECT name, owner, role FROM sheet.books;
SELECT name, role FROM tabs_of(:b);
SELECT sheet.set(:jan, 'A1', 'ben') > 0 AS edited;
SELECT error_of(format('SELECT sheet.set(%s, ''A1'', ''ben'')', :feb));
SELECT error_of(format('SELECT sheet.get(%s, ''A1'')', :mar));
SELECT sheet.tab(:b, 'march') AS march;
-- an editor makes, orders and changes tabs, which are the owner's; and cannot do what owners can
SELECT sheet.add_tab(:b, 'May', :jan) AS may \gset
SELECT owner, role FROM sheet.info(:may);
SELECT sheet.rename_book(:b, 'accounts'), sheet.move_tab(:may, :b), sheet.change_tab(:may, '#00ff00'), sheet.rename(:may, 'may');
SELECT * FROM tabs_of(:b);
SELECT error_of(format('SELECT sheet.%s(%s)', f, :b)) FROM unnest(ARRAY['trash_book', 'recover_book', 'purge_book']) f;
SELECT error_of(format('SELECT sheet.share_book(%s, ''book eve'', ''viewer'')', :b));
SELECT error_of(format('SELECT sheet.unshare_book(%s, ''book ben'')', :b));
SELECT error_of(format('SELECT sheet.move_tab(%s, NULL)', :may));
SELECT error_of(format('SELECT sheet.change_tab(%s, '''')', :mar));
SELECT sheet.create_book('bens') AS bens \gset
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :jan, :bens));
SELECT sheet.create('his own') AS own \gset
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :own, :b));
SELECT error_of('SELECT sheet.account_books(' || :anna || ')');
-- a viewer
SET ROLE book_anna;
SELECT sheet.share_book(:b, 'book ben', 'viewer');
SET ROLE book_ben;
SELECT error_of(format('SELECT sheet.add_tab(%s, ''June'')', :b));
SELECT error_of(format('SELECT sheet.rename_book(%s, ''June'')', :b));
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :may, :b));
SELECT error_of(format('SELECT sheet.change_tab(%s, '''')', :may));
SELECT error_of(format('SELECT sheet.duplicate_tab(%s, ''June'')', :may));
SELECT name, role FROM sheet.book_members(:b);
-- others
SET ROLE book_eve;
SELECT count(*) FROM sheet.books;
SELECT error_of(format('SELECT sheet.tabs(%s)', :b));
SELECT error_of(format('SELECT sheet.tab(%s, ''may'')', :b));
SELECT error_of(format('SELECT sheet.book_info(%s)', :b));
SELECT error_of(format('SELECT sheet.book_members(%s)', :b));
SELECT error_of(format('SELECT sheet.duplicate_book(%s, ''x'')', :b));
SELECT error_of(format('SELECT sheet.change_tab(%s, '''')', :jan));
SELECT error_of('SELECT * FROM sheet.book');
SELECT error_of('SELECT * FROM sheet.book_tab');
SELECT error_of('SELECT * FROM sheet.book_member');
SELECT error_of(format('SELECT sheet.tabs(%s, %s)', :b, :anna));
-- a tab that is shared alone
SET ROLE book_anna;
SELECT sheet.share(:apr, 'book eve', 'editor');
SET ROLE book_eve;
SELECT count(*) FROM sheet.books;
SELECT name, role, owner FROM sheet.book_info(:b);
SELECT name, role FROM tabs_of(:b);
SELECT error_of(format('SELECT sheet.add_tab(%s, ''June'')', :b));
SELECT error_of(format('SELECT sheet.book_members(%s)', :b));
-- the end of the sharing leaves exceptions
SET ROLE book_anna;
SELECT sheet.unshare_book(:b, 'book ben'), sheet.unshare_book(:b, 'book eve');
SELECT * FROM roles_of(:b);
SELECT name, role FROM sheet.book_members(:b);

-- ---- moving between books ----
SELECT sheet.create_book('second') AS c \gset
SELECT sheet.share_book(:b, 'book ben', 'editor'), sheet.share_book(:c, 'book ben', 'viewer'), sheet.share_book(:c, 'book eve', 'viewer');
SELECT sheet.move_tab(:jan, :c);
SELECT * FROM roles_of(:c);
-- an exception stays
SELECT sheet.share(:apr, 'book ben', 'commenter'), sheet.move_tab(:apr, :c, :jan);
SELECT * FROM roles_of(:c);
SELECT sheet.move_tab(:apr, NULL), sheet.move_tab(:apr, NULL), sheet.move_tab(:jan, NULL);
SELECT count(*) FROM sheet.tabs(:c);
SELECT name, role FROM sheet.members(:apr);
SELECT name, role FROM sheet.members(:jan);
SELECT error_of(format('SELECT sheet.change_tab(%s, '''')', :jan));
SELECT sheet.rename(:apr, 'JANUARY'), sheet.move_tab(:apr, :c);
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :jan, :c));
SELECT error_of(format('SELECT sheet.move_tab(%s, %s, %s)', :jan, :b, :apr));
SELECT sheet.move_tab(:jan, :b, :feb);
SELECT * FROM roles_of(:b);
SELECT book_id = :b AS of_sheet FROM sheet.info(:jan);
SELECT name, book_id = :c AS of_list FROM sheet.account_sheets(:anna) WHERE sheet_id = :apr;
SELECT name, owner, role, trashed FROM sheet.account_books(:anna, 2);
SELECT name FROM sheet.account_books(:anna, 2, :c);

-- ---- copies ----
SELECT sheet.set_range(:jan, 'A1', ARRAY[['1', '=A1*2'], ['x', NULL]]) > 0 AS filled;
SELECT sheet.set_property(:jan, 'B:B', 'width', '120') > 0 AS wide, sheet.set_property(:jan, NULL, 'freeze', '{"rows": 1, "cols": 0}') > 0 AS frozen;
RESET ROLE;
SELECT first_seq > 0 AS styled FROM sheet.apply(:jan, '\x0100000112000101000a7b2262223a747275657d'::bytea);
SET ROLE book_anna;
SELECT a1, content, style, value FROM sheet.range(:jan);
SELECT sheet.share(:jan, 'book ben', 'commenter');
SELECT sheet.insert_rows(:jan, 0, 2) > 0 AS moved, sheet.change_tab(:jan, '#112233');
SELECT error_of(format('SELECT sheet.duplicate_tab(%s, ''february'')', :jan));
SELECT error_of(format('SELECT sheet.duplicate_tab(%s, NULL)', :jan));
SELECT error_of(format('SELECT sheet.duplicate_tab(%s, ''x'', 0)', :jan));
SELECT sheet.duplicate_tab(:jan, 'copy') AS copy \gset
SELECT name, place, colour FROM tabs_of(:b);
SELECT a1, content, style, value FROM sheet.range(:copy);
SELECT target, key, value FROM sheet.properties(:copy);
SELECT count(*), min(kind) FROM sheet.log_edits(:copy) WHERE kind NOT IN ('set', 'style', 'property', 'resize');
RESET ROLE;
SELECT j.rows = c.rows AND j.cols = c.cols AS same_size FROM sheet.read_cells(:jan, 0, 0, 0, 0) j, sheet.read_cells(:copy, 0, 0, 0, 0) c;
SELECT severity, what FROM sheet.fsck(:copy, true);
SET ROLE book_anna;
SELECT * FROM roles_of(:b) WHERE tab = 'copy';
SELECT sheet.share(:jan, 'book ben', 'editor'), sheet.share(:copy, 'book ben', 'editor'), sheet.unshare(:may, 'book ben');
SELECT sheet.set(:copy, 'A3', '5') > 0 AS edited, sheet.get(:jan, 'A3') AS unchanged;
SELECT sheet.duplicate_tab(:copy, 'copy', :c) > 0 AS elsewhere;
SELECT name FROM tabs_of(:c);
SELECT error_of(format('SELECT sheet.duplicate_tab(%s, ''x'')', :own));
SET ROLE book_ben;
SELECT sheet.duplicate_tab(:own, 'of a sheet without a book') AS alone \gset
SELECT owner, role, book_id FROM sheet.info(:alone);
-- the whole book: of ben, with what ben sees
SELECT sheet.duplicate_book(:b, 'bens copy') AS d \gset
SELECT * FROM tabs_of(:b);
SELECT * FROM tabs_of(:d);
SELECT * FROM roles_of(:d);
SELECT name, role FROM sheet.book_members(:d);
SELECT content FROM sheet.range(sheet.tab(:d, 'january'));

-- ---- a book is full ----
SET ROLE book_anna;
SELECT sheet.create_book('full') AS f \gset
SELECT count(sheet.add_tab(:f, 'tab ' || i, rows => 1, cols => 1)) FROM generate_series(1, 256) i;
SELECT error_of(format('SELECT sheet.add_tab(%s, ''one more'')', :f));
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :feb, :f));
SELECT error_of(format('SELECT sheet.duplicate_tab(%s, ''one more'')', sheet.tab(:f, 'tab 1')));
SELECT sheet.purge(sheet.tab(:f, 'tab 7'));
SELECT sheet.add_tab(:f, 'one more', sheet.tab(:f, 'TAB 2')) > 0 AS added;
SELECT name, place FROM tabs_of(:f) LIMIT 3;

-- ---- the trash ----
SELECT sheet.trash(:feb), sheet.trash_book(:b);
SELECT sheet.trash_book(:b);
SELECT name, role, trashed FROM sheet.books WHERE book_id = :b;
SELECT name, trashed FROM tabs_of(:b);
SELECT error_of(format('SELECT sheet.get(%s, ''A3'')', :jan));
SELECT error_of(format('SELECT sheet.recover(%s)', :jan));
SELECT error_of(format('SELECT sheet.add_tab(%s, ''June'')', :b));
SELECT error_of(format('SELECT sheet.rename_book(%s, ''June'')', :b));
SELECT error_of(format('SELECT sheet.share_book(%s, ''book eve'', ''viewer'')', :b));
SELECT error_of(format('SELECT sheet.unshare_book(%s, ''book ben'')', :b));
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :apr, :b));
SELECT error_of(format('SELECT sheet.duplicate_book(%s, ''x'')', :b));
SET ROLE book_ben;
SELECT count(*) FROM sheet.books WHERE book_id = :b;
SELECT error_of(format('SELECT sheet.book_info(%s)', :b));
SELECT name, role FROM sheet.account_books(:ben) WHERE book_id = :b;
SET ROLE book_anna;
SELECT sheet.recover_book(:b), sheet.recover_book(:b);
SELECT name, trashed FROM tabs_of(:b);
SET ROLE book_ben;
SELECT count(*) FROM sheet.tabs(:b);
SET ROLE book_anna;
SELECT sheet.trash_book(:b), sheet.purge_book(:b);
SELECT error_of(format('SELECT sheet.tabs(%s)', :b));
SELECT error_of(format('SELECT sheet.get(%s, ''A1'')', :jan));
RESET ROLE;
SELECT count(*) FROM sheet.book_member WHERE book_id = :b;
SELECT count(*) FROM sheet.book_tab WHERE book_id = :b;
SELECT count(*) FROM sheet.member WHERE sheet_id = :jan;
-- a purged sheet leaves its book
SELECT sheet.purge(:apr);
SELECT count(*) FROM sheet.book_tab WHERE sheet_id = :apr;

-- ---- superusers and gateways ----
SELECT sheet.create_book('nobodys') AS n \gset
SELECT sheet.add_tab(:n, 'one') AS one \gset
SELECT name, owner, role FROM sheet.books WHERE book_id = :n;
SELECT name, role FROM sheet.tabs(:n);
SELECT error_of(format('SELECT sheet.move_tab(%s, %s)', :own, :n));
SELECT sheet.share_book(:n, 'book eve', 'editor');
SELECT name, role FROM sheet.tabs(:n, :eve);
SET ROLE book_gateway;
SELECT sheet.create_book('by a gateway', :eve) AS g \gset
SELECT name, role FROM sheet.book_info(:g, :eve);
SELECT error_of(format('SELECT sheet.book_info(%s, %s)', :g, :ben));
SELECT error_of(format('SELECT sheet.book_info(%s)', :g));
SELECT error_of(format('SELECT sheet.book_info(%s, -5)', :g));
SELECT error_of('SELECT sheet.create_book(''guest'', -5)');
SELECT error_of('SELECT sheet.create_book(''no account'')');
SELECT sheet.add_tab(:g, 'one', as_uid => :eve) > 0 AS added;
SELECT sheet.tab(:g, 'ONE', :eve) > 0 AS found;
SELECT name, role FROM sheet.account_books(:eve);
RESET ROLE;

-- ---- what gateways hear ----
SELECT f."cursor" AS heard FROM sheet.follow(9, NULL, 0) f \gset
BEGIN;
SELECT sheet.rename_book(:n, 'not committed');
ROLLBACK;
SELECT count(*) AS none FROM sheet.follow(9, :heard, 0) f, unnest(f.seqs) seq WHERE seq = -4;
SELECT sheet.book_info(:n) IS NOT NULL AS looked, sheet.rename_book(:n, 'renamed'), sheet.add_tab(:n, 'heard of') AS added \gset
-- all tabs, and the one that has entered the book; each once
SELECT array_agg(s ORDER BY s) = (SELECT array_agg(t.sheet_id ORDER BY t.sheet_id) FROM sheet.tabs(:n) t) AS all_tabs, count(*) > 1 AS several
FROM sheet.follow(9, :heard, 0) f, unnest(f.sheet_ids, f.seqs) u (s, seq) WHERE seq = -4;

-- ---- what belongs to nothing ----
SELECT sheet_id IS NULL AS of_none, what FROM sheet.fsck_catalog(NULL) WHERE what ~ 'book' OR place ~ 'book';
BEGIN;
DELETE FROM sheet.book WHERE book_id = :g;
INSERT INTO sheet.book_tab (sheet_id, book_id, place) VALUES (9007199254740991, :n, 1);
INSERT INTO sheet.book_member VALUES (:c, 9007199254740991, 'viewer');
UPDATE sheet.book SET owner = :eve WHERE book_id = :n;
SELECT what, regexp_replace(place, '[0-9]+', 'N', 'g') AS place FROM sheet.fsck_catalog(NULL) WHERE what ~ 'book' OR place ~ 'book' ORDER BY 1, 2;
ROLLBACK;

DROP FUNCTION public.tabs_of, public.error_of, public.roles_of;
SELECT sheet.link_account('book anna', NULL), sheet.link_account('book ben', NULL), sheet.link_account('book eve', NULL);
DROP ROLE book_anna, book_ben, book_eve, book_gateway;
