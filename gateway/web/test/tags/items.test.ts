// Lists in cells: the same items as by sheet.split (tests/regress/sql/lists.sql), and what adding and removing one makes of a cell.
import { expect, it } from 'vitest';
import { changed, contentOf, itemsOf } from '../../src/tags/items';

it('items are those of SQL', () => {
	const lists: [string, string[]][] = [
		['', []],
		['red, green', ['red', 'green']],
		['red,,blue', ['red', '', 'blue']],
		[' green ,red, red', ['green', 'red', 'red']],
		[',', ['', '']],
		['"red, dark" ,green', ['red, dark', 'green']],
		['say ""x"", "a ""b"" c","",', ['say ""x""', 'a "b" c', '', '']],
		['5" disk,3" disk', ['5" disk', '3" disk']],
		['"open, to the end', ['"open, to the end']],
		[' ', ['']],
	];
	for (const [content, items] of lists) expect(itemsOf(content, ','), content).toEqual(items);
	expect(itemsOf('a and b', ' and ')).toEqual(['a', 'b']);
});
it('a tag is added once, and removed wherever it is', () => {
	expect(changed('', ',', 'red', true)).toBe('red');
	expect(changed('red,blue', ',', 'green', true)).toBe('red, blue, green');
	expect(changed('red, blue,red', ',', 'red', false)).toBe('blue');
	expect(changed('red', ',', 'red', false)).toBe('');
	expect(changed('a; b', ';', 'c', true)).toBe('a; b; c');
	expect(changed('a b', ' ', 'c', true)).toBe('a b c');
});
it('what is written is read as the same items', () => {
	const items = ['a, b', '"x"', 'say "hi"', 'plain'];
	expect(itemsOf(contentOf(items, ','), ',')).toEqual(items);
	expect(contentOf(['=1+1'], ',')).toBe("'=1+1");
});
