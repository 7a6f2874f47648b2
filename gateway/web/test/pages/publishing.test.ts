// The pages that may show a published view in a frame: what people type becomes sources that the gateway takes.
import { expect, it } from 'vitest';
import { isPublished, sourcesOf } from '../../src/share/sources';

it('addresses become sources', () => {
	const typed: [string, string][] = [
		['https://example.org', 'https://example.org'],
		['https://example.org/blog?page=2, http://localhost:8080', 'https://example.org http://localhost:8080'],
		['example.org example.org', 'https://example.org'],
		['https://*.example.com:8443/', 'https://*.example.com:8443'],
		['HTTPS://Bücher.example', 'https://xn--bcher-kva.example'],
	];
	for (const [text, embed] of typed) expect(sourcesOf(text), text).toEqual({ embed });
});
it('others are named', () => {
	for (const address of ['ftp://example.org', "'self'", '*', 'https://', 'javascript:alert(1)', 'https://a_b.example'])
		expect(sourcesOf(`https://example.org ${address}`), address).toEqual({ invalid: address });
	expect(sourcesOf('  ')).toEqual({ invalid: '  ' });
	expect(sourcesOf(Array.from({ length: 60 }, (_, i) => `https://site${i}.example`).join(' '))).toHaveProperty('invalid');
});
it('a link for viewers without a password is published', () => {
	expect([isPublished('viewer', false), isPublished('viewer', true), isPublished('editor', false)]).toEqual([true, false, false]);
});
