/* v2 - ten users write to one sheet as fast as TCP takes it, in the binary form of protocol v2: operations of 16 edits, durable. */
import { writeOneSheet } from './common.mjs';

export async function v2(bench) {
	const result = await writeOneSheet(bench, { seconds: bench.seconds, rate: 0, program: 'v2_flood' });
	bench.line('received, edits a second and user', result.recv, '1,000,000', result.recv >= 1000000);
	bench.line('bytes an edit to each user', (result.stream_bytes / Math.max(result.sent, 1)).toFixed(1));
	bench.line('backlog delivered after the last edit was sent, s', (result.total_seconds - result.send_seconds).toFixed(2));
	bench.line(
		'CPU, ns an edit: gateway + PostgreSQL + generator',
		`${result.cpu.gateway} + ${result.cpu.postgres} + ${result.cpu.generator}`,
	);
	return {
		v2_recv_per_user: result.recv,
		v2_gateway_ns: result.cpu.gateway,
		v2_postgres_ns: result.cpu.postgres,
		v2_generator_ns: result.cpu.generator,
	};
}
