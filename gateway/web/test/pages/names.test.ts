// names.test.ts - names that are written from right to left do not move what stands around them.
import { expect, test, vi } from 'vitest';

vi.stubGlobal('document', { documentElement: { lang: 'en' } });
const { isolated, personName, t } = await import('../../src/i18n');

test('a name from right to left is isolated in texts', () => {
	expect(t('{name} is editing {cell}!', { name: 'דנה 2', cell: 'B7' })).toBe('\u2068דנה 2\u2069 is editing B7!');
	expect(t('{name}: {label}', { name: 'Ann', label: 'لوحة' })).toBe('Ann: \u2068لوحة\u2069');
	expect(isolated('Zoë 张 1')).toBe('Zoë 张 1');
});

test('a name cannot end its isolation, nor turn what follows', () => {
	expect(isolated('דנה\u2069\u202e')).toBe('\u2068דנה\u2069');
	expect(isolated('a\u202eb')).toBe('ab');
	expect(t('{name}', { name: personName(isolated('דנה')) })).toBe('\u2068דנה\u2069');
});
