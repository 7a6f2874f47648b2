// published.test.ts - the script of published views: asks when it hears of a change and while there is no connection, also in a
// browser without AbortSignal.timeout (Safari before 16).
import { afterAll, expect, test, vi } from 'vitest';

afterAll(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

test('a browser without AbortSignal.timeout refreshes the view as often as others', async () => {
	vi.useFakeTimers();
	const asked = vi.fn((_path: string, _init: RequestInit) => Promise.resolve({ status: 304 }));
	const sockets: { url: string; onopen?(): void; onmessage?(): void; onclose?(event: { code: number }): void; close(): void }[] = [];
	vi.stubGlobal('document', { hidden: false, querySelector: () => ({ dataset: { etag: '"1"' } }), addEventListener() {} });
	vi.stubGlobal('location', { pathname: '/s/key', origin: 'https://example.org' });
	vi.stubGlobal('fetch', asked);
	vi.stubGlobal('AbortSignal', class {});
	vi.stubGlobal(
		'WebSocket',
		class {
			constructor(readonly url: string) {
				sockets.push(this);
			}
			close() {}
		},
	);
	// @ts-expect-error the script is no module
	await import('../../src/published');
	await vi.advanceTimersByTimeAsync(0);
	expect(sockets.map(({ url }) => url)).toEqual(['wss://example.org/sheetws?watch=key']);
	expect(asked).toHaveBeenCalledTimes(1);
	expect(asked.mock.calls[0]![1].headers).toMatchObject({ 'if-none-match': '"1"' });
	sockets[0]!.onopen!();
	await vi.advanceTimersByTimeAsync(10_000);
	expect(asked, 'once more, since a change may have come before').toHaveBeenCalledTimes(2);
	sockets[0]!.onmessage!();
	await vi.advanceTimersByTimeAsync(500);
	expect(asked, 'after a change').toHaveBeenCalledTimes(3);
	for (let times = 1; times <= 3; times++) {
		const part = [0, 0.5, 0.9][times - 1]!;
		vi.spyOn(Math, 'random').mockReturnValue(part);
		sockets.at(-1)!.onclose!({ code: 1006 });
		await vi.advanceTimersByTimeAsync(4000 * 2 ** (times - 1) * (1 - part / 2) - 1);
		expect(sockets, 'each page waits for another time').toHaveLength(times);
		await vi.advanceTimersByTimeAsync(2);
		expect(sockets, 'connects again').toHaveLength(times + 1);
		expect(asked, 'and asks, also without a connection').toHaveBeenCalledTimes(3 + times);
	}
});
