/* viewers - one user edits, VIEWERS=5000 watch: when the last one has the edit. */
import { setting } from '../../common/site.mjs';
import { crowd, expectWhole, newSheets } from './common.mjs';

export async function viewers(bench) {
	const count = setting('VIEWERS', 5000, 1, 11000);
	const [fid] = await newSheets(bench, 1);
	const members = Array.from({ length: count + 1 }, (_, i) => [fid, bench.users[i % bench.users.length].token]);
	const result = await crowd(bench, members, { rate: 4, seconds: bench.seconds, writers: 1 });
	expectWhole(bench, result, `${count} viewers`);
	bench.line(`an edit reaches the last of ${count} viewers, p50, ms`, result.last_p50_ms);
	bench.line('the slowest edit, ms', result.last_max_ms, '150', result.last_max_ms <= 150);
	return { viewers_last_p50_ms: result.last_p50_ms, viewers5000_ms: result.last_max_ms };
}
