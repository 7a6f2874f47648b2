// published.test.ts - the script of published views asks again, also in a browser without AbortSignal.timeout (Safari before 16).
import { afterAll, expect, test, vi } from 'vitest';

afterAll(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

test('a browser without AbortSignal.timeout refreshes the view as often as others', async () => {
	vi.useFakeTimers();
	const asked = vi.fn((_path: string, _init: RequestInit) => Promise.resolve({ status: 304 }));
	vi.stubGlobal('document', { hidden: false, querySelector: () => ({ dataset: { etag: '"1"' } }), addEventListener() {} });
	vi.stubGlobal('location', { pathname: '/s/key' });
	vi.stubGlobal('fetch', asked);
	vi.stubGlobal('AbortSignal', class {});
	// @ts-expect-error the script is no module
	await import('../../src/published');
	for (let times = 1; times <= 3; times++) {
		await vi.advanceTimersByTimeAsync(4000);
		expect(asked).toHaveBeenCalledTimes(times);
	}
	expect(asked.mock.calls[0]![1].headers).toEqual({ 'if-none-match': '"1"' });
});
