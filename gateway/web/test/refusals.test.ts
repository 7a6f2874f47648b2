// Refusals: the page has a text of its own, in each language, for each that a gateway sends to a person.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { english as en, chinese as zh } from './texts';

const gateway = new URL('../../', import.meta.url);
const files = ['http/', 'ws/'].flatMap((folder) => (readdirSync(new URL(folder, gateway), { recursive: true }) as string[]).map((file) => folder + file));
const source = files
	.filter((file) => /\.[ch]$/.test(file))
	.map((file) => readFileSync(new URL(file, gateway), 'utf8') as string)
	.join('\n');
const words = (pattern: RegExp, text = source) => [...new Set([...text.matchAll(pattern)].map((match) => match[1]!))].sort();

/** Codes of HTTP for programs, which the page does not cause or which it takes for a number of `msg` (api.ts). */
const ofPrograms = ['400', '401', '403', '404', '405', '409', '410', '411', '412', '415', '416', '426', '307', '502'];
/** Numbers of `msg`: where another gateway is, and of routes that the page does not ask for. */
const notAsked = ['REDIRECT', 'NO_LOG'];

describe('a refusal', () => {
	const missing = (keys: string[]) => keys.filter((key) => !(key in en && key in zh));

	it('with a code has a text', () => {
		const codes = words(/request_(?:sql_)?error_code\([^;]*?"([a-z_]+)"/g);
		expect(codes).toEqual(expect.arrayContaining(['account', 'no_account', 'owner', 'password', 'sheet_name', 'large_version']));
		// Those of imports are in the texts of their dialogs.
		const inDialogs = (code: string) => `csv.error.${code}` in en || `workbook.error.${code}` in en;
		expect(missing(codes.filter((code) => !inDialogs(code)).map((code) => `error.${code}`))).toEqual([]);
	});
	it('with a status has a text', () => {
		const statuses = words(/request_(?:error|error_later|refuse)\(request, ([0-9]+),/g).filter((status) => !ofPrograms.includes(status));
		expect(statuses).toEqual(expect.arrayContaining(['413', '429', '503']));
		expect(missing(statuses.map((status) => `error.http.${status}`))).toEqual([]);
	});
	it('with a number has a text', () => {
		const failures = words(/MSG_BIT\(MSG_([A-Z_]+)\)/g, /msg_failures =([^;]*);/.exec(source)![1]).filter((name) => !notAsked.includes(name));
		const numbers = failures.map((name) => new RegExp(`MSG_${name} = ([0-9]+)`).exec(source)![1]!);
		expect(numbers.length).toBeGreaterThan(8);
		expect(missing(numbers.map((number) => `error.${number}`))).toEqual([]);
	});
	it('of an edit has a text', () => {
		const reasons = words(/\[V2_REASON_[A-Z]+\] = "([a-z]+)"/g).filter((reason) => reason !== 'none');
		expect(reasons.length).toBeGreaterThan(4);
		expect(missing(reasons.map((reason) => `refused.${reason}`))).toEqual([]);
	});
	it("is explained by it, and not in the gateway's words", async () => {
		vi.stubGlobal('document', { documentElement: { lang: 'zh-CN' } });
		const [{ ApiError }, { explain }, { loadTexts }] = await Promise.all([import('../src/api'), import('../src/dom'), import('../src/i18n')]);
		await loadTexts();
		expect(explain(new ApiError(0, 'owner'))).toBe(zh['error.owner']);
		expect(explain(new ApiError(13))).toBe(zh['error.13']);
		expect(explain(new ApiError(null, 'http.503'))).toBe(zh['error.http.503']);
		expect(explain(new ApiError(null, 'http.502'))).toBe(zh['error.unreachable']);
		expect(explain(new ApiError(0, 'newer'))).toBe(zh['error.other'].replace('{code}', 'newer'));
	});
});
