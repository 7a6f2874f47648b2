// Edits by others are shown in time for the next frame, and at most once per frame.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Mirror, nextFrame } from '../src/sheet/mirror';
import type { CellEdit } from '../src/v2/messages';

const frames: (() => void)[] = [];
let tests = 0;

beforeEach(() => {
	vi.useFakeTimers();
	vi.stubGlobal('document', { hidden: false });
	vi.stubGlobal('requestAnimationFrame', (run: () => void) => frames.push(run));
	vi.advanceTimersByTime(1000 * ++tests); // the clock starts at 0 in each test
	frames.length = 0;
});
afterEach(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

test('a burst is shown once at its beginning, and once per frame after that', async () => {
	const shown: CellEdit[][] = [];
	const mirror = new Mirror({ apply: (edits) => shown.push(edits), fill: () => {}, move: () => {} }, nextFrame);
	const message = async (...cells: number[]) => {
		for (const col of cells) mirror.set({ row: 0, col, content: 'x' }, 1);
		await Promise.resolve();
	};
	const columns = () => shown.map((edits) => edits.map(({ col }) => col));
	await message(0, 1);
	expect(columns()).toEqual([[0, 1]]);
	expect(frames).toHaveLength(0);
	await message(2);
	await message(3, 2);
	expect(columns()).toEqual([[0, 1]]);
	vi.advanceTimersByTime(10);
	for (const run of frames.splice(0)) run();
	expect(columns()).toEqual([
		[0, 1],
		[2, 3],
	]);
	vi.advanceTimersByTime(17);
	await message(4);
	expect(columns()).toEqual([[0, 1], [2, 3], [4]]);
});

test('a burst whose edits take longer than a frame is shown once per frame as well', async () => {
	let shown = 0;
	const apply = () => {
		shown++;
		vi.advanceTimersByTime(30);
	};
	const mirror = new Mirror({ apply, fill: () => {}, move: () => {} }, nextFrame);
	for (let col = 0; col < 5; col++) {
		mirror.set({ row: 0, col, content: 'x' }, 1);
		await Promise.resolve();
	}
	expect(shown).toBe(1);
	for (const run of frames.splice(0)) run();
	expect(shown).toBe(2);
});

test('a hidden page shows edits soon, without frames', () => {
	vi.stubGlobal('document', { hidden: true });
	const run = vi.fn();
	nextFrame(run);
	expect(frames).toHaveLength(0);
	vi.advanceTimersByTime(50);
	expect(run).toHaveBeenCalledOnce();
});
