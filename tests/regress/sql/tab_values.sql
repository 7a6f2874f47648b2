-- Values that depend on other tabs: who is to be computed again, and which tabs a formula may read.
SET client_min_messages = warning;
SELECT sheet.account_create('tabs anna', NULL, 'x') AS anna \gset
SELECT sheet.account_create('tabs ben', NULL, 'x') AS ben \gset
SELECT sheet.create_book('book', :anna) AS book \gset
SELECT sheet.add_tab(:book, 'One', as_uid => :anna) AS one \gset
SELECT sheet.add_tab(:book, 'Two', as_uid => :anna) AS two \gset
SELECT sheet.add_tab(:book, 'Three', as_uid => :anna) AS three \gset
SELECT sheet.set(:one, 'A1', '=Two!A1') > 0, sheet.set(:two, 'A1', '7') > 0;
CREATE TEMP VIEW tabs AS SELECT * FROM (VALUES (:one, 'one'), (:two, 'two'), (:three, 'three')) v (id, tab);

-- which tabs there are, and the states of those that are asked for
SELECT name, seq > 0 AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two, :one]);
SELECT count(*) FROM sheet.tabs_to_read(sheet.create('alone'), ARRAY[:two]);
SELECT sheet.tabs_to_read(NULL);

-- an account that may edit the sheet, and not see the tab
SELECT sheet.share(:one, 'tabs ben', 'viewer', :anna);
SELECT tab, seq > 0 AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two]) r JOIN tabs ON id = r.tab_id WHERE tab = 'two';
SELECT sheet.share(:one, 'tabs ben', 'editor', :anna);
SELECT tab, seq > 0 AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two]) r JOIN tabs ON id = r.tab_id WHERE tab = 'two';
SELECT sheet.share(:two, 'tabs ben', 'viewer', :anna);
SELECT tab, seq > 0 AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two]) r JOIN tabs ON id = r.tab_id WHERE tab = 'two';
-- guests
SELECT link_id FROM sheet.create_link(:one, 'editor', now() + interval '1 hour', as_uid => :anna) \gset
SELECT tab, seq > 0 AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two]) r JOIN tabs ON id = r.tab_id WHERE tab = 'two';
SELECT sheet.revoke_link(:link_id, :anna);
SELECT tab, seq > 0 AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two]) r JOIN tabs ON id = r.tab_id WHERE tab = 'two';

-- an account that may edit a tab that is read, and not see another one that is read
SELECT sheet.share(:one, 'tabs ben', 'viewer', :anna), sheet.share(:two, 'tabs ben', 'editor', :anna);
SELECT name, seq IS NOT NULL AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two]);
SELECT name, seq IS NOT NULL AS readable FROM sheet.tabs_to_read(:one, ARRAY[:two, :three]);
SELECT sheet.share(:two, 'tabs ben', 'viewer', :anna);

-- values are computed again after a change of the tab that they depend on
SELECT sheet.put_values(:one, sheet.last_seq(:one), '{0}', '{0}', '{7}', source_ids => ARRAY[:two, 0], source_seqs => ARRAY[sheet.last_seq(:two), sheet.book_state(:one)]);
SELECT count(*) FROM sheet.to_compute(ARRAY[:one], ARRAY[:two, :three]);
SELECT sheet.set(:two, 'A1', '8') > 0;
SELECT tab FROM sheet.to_compute('{}', ARRAY[:two, :three]) c JOIN tabs ON id = c.sheet_id;
SELECT tab, due FROM sheet.computed_sheets() c JOIN tabs ON id = c.sheet_id;
SELECT content, value, stale FROM sheet.range(:one, 'A1:A1');
SELECT sheet.put_values(:one, sheet.last_seq(:one), '{0}', '{0}', '{8}', source_ids => ARRAY[:two, 0], source_seqs => ARRAY[sheet.last_seq(:two), sheet.book_state(:one)]);
SELECT tab, due FROM sheet.computed_sheets() c JOIN tabs ON id = c.sheet_id;
SELECT content, value, stale FROM sheet.range(:one, 'A1:A1');

-- and after a change of the book
SELECT count(*) FROM sheet.to_compute(ARRAY[:one]);
SELECT sheet.rename(:three, 'Four', :anna);
SELECT count(*) FROM sheet.to_compute(ARRAY[:one]);
-- older values of the tab do not replace newer ones
SELECT sheet.put_values(:one, sheet.last_seq(:one), '{0}', '{0}', '{7}', source_ids => ARRAY[:two], source_seqs => ARRAY[sheet.last_seq(:two) - 1]);
SELECT sheet.put_values(:one, sheet.last_seq(:one), '{0}', '{0}', '{8}');
SELECT sheet.rename(:three, 'Five', :anna);
SELECT count(*) FROM sheet.to_compute(ARRAY[:one]);
SELECT count(*) FROM sheet.value_source WHERE sheet_id = :one;

-- nothing is left of sheets that are purged
SELECT sheet.put_values(:one, sheet.last_seq(:one), '{0}', '{0}', '{8}', source_ids => ARRAY[:two], source_seqs => ARRAY[1]);
SELECT sheet.trash_book(:book, :anna), sheet.purge_book(:book, :anna);
SELECT count(*) FROM sheet.value_source WHERE sheet_id IN (:one, :two) OR source_id IN (:one, :two);
DROP VIEW tabs;
