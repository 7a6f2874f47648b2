/*
 * latency - from sending an edit to its own echo, on an open loop: 24,000 and 240,000 edits a second of ten users. The
 * disk's fsync is measured before and after with the same seconds, since an edit waits for one, at the worst for three.
 */
import { measureFsync, round, writeOneSheet } from './common.mjs';

export async function latency(bench) {
	const before = measureFsync(bench, 1);
	const low = await writeOneSheet(bench, { seconds: bench.seconds, rate: 2400 });
	const high = await writeOneSheet(bench, { seconds: bench.seconds, rate: 24000 });
	const after = measureFsync(bench, 1);
	const fsync = Math.max(before.p99_ms, after.p99_ms);
	const limit = round(3 + 3 * fsync);

	bench.line('fsync of this disk p50, p99, ms', `${Math.max(before.p50_ms, after.p50_ms)}, ${fsync}`);
	bench.line('24,000 edits/s: echo p50, ms', low.p50_ms, '1', low.p50_ms <= 1);
	bench.line('24,000 edits/s: echo p99, ms', low.p99_ms, `3 + 3 x fsync p99 = ${limit}`, low.p99_ms <= limit);
	bench.line('240,000 edits/s: echo p50, ms', high.p50_ms, '2', high.p50_ms <= 2);
	bench.line('240,000 edits/s: echo p99, ms', high.p99_ms);
	return {
		fsync_p50_ms: Math.max(before.p50_ms, after.p50_ms),
		fsync_p99_ms: fsync,
		p50_ms_24k: low.p50_ms,
		p99_ms_24k: low.p99_ms,
		p50_ms_240k: high.p50_ms,
		p99_ms_240k: high.p99_ms,
	};
}
