/* sheets - SHEETS=200 sheets of ten users each, 50 edits a second to each sheet. */
import fs from 'node:fs';
import { setting } from '../../common/site.mjs';
import { crowd, expectWhole, newSheets } from './common.mjs';

const rate = 50;

/** The log's order of each sheet against the order in which its first member received the edits. */
async function compareWithLog(bench, fids, order) {
	const logged = await bench.site.psql(
		`SELECT sheet_id || ' ' || new FROM sheet.log WHERE sheet_id IN (${fids.join(',')}) AND kind = 'set' ORDER BY sheet_id, seq`,
	);
	const sheetOf = (line) => Number(line.slice(0, line.indexOf(' ')));
	const received = fs.readFileSync(order, 'utf8').trimEnd().split('\n');
	received.sort((a, b) => sheetOf(a) - sheetOf(b)); // stable: the order within a sheet stays
	bench.expect(received.join('\n') === logged, 'the log has other edits, or another order, than what was received');
}

export async function sheets(bench) {
	const count = setting('SHEETS', 200, 1, 1000);
	const fids = await newSheets(bench, count);
	const members = fids.flatMap((fid) => bench.users.map(({ token }) => [fid, token]));
	const result = await crowd(bench, members, { rate, seconds: bench.seconds, writers: bench.users.length });
	expectWhole(bench, result, `${count} sheets`);
	await compareWithLog(bench, fids, result.order);
	bench.line(`${count} sheets x ${bench.users.length} users, ${rate} edits/s each: echo p50, ms`, result.echo_p50_ms);
	bench.line('echo p99, ms', result.echo_p99_ms, '20', result.echo_p99_ms <= 20);
	bench.line('the last of ten has it, p99, ms', result.last_p99_ms);
	bench.line(
		'CPU, ns an edit: gateway + PostgreSQL + generator',
		`${result.cpu.gateway} + ${result.cpu.postgres} + ${result.cpu.generator}`,
	);
	return {
		rooms_p50_ms: result.echo_p50_ms,
		rooms_p99_ms: result.echo_p99_ms,
		rooms_last_p99_ms: result.last_p99_ms,
		rooms_gateway_ns: result.cpu.gateway,
		rooms_postgres_ns: result.cpu.postgres,
	};
}
