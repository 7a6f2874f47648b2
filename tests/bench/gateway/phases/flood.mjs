/* flood - ten users write to one sheet as fast as TCP takes it: JSON, one edit a frame in and out, durable. */
import { writeOneSheet } from './common.mjs';

export async function flood(bench) {
	const result = await writeOneSheet(bench, { seconds: bench.seconds, rate: 0 });
	bench.line('received, edits a second and user', result.recv, '500,000', result.recv >= 500000);
	bench.line('echo p50, ms (the senders fill all buffers)', result.p50_ms);
	bench.line('backlog delivered after the last edit was sent, s', (result.total_seconds - result.send_seconds).toFixed(2));
	bench.line(
		'CPU, ns an edit: gateway + PostgreSQL + generator',
		`${result.cpu.gateway} + ${result.cpu.postgres} + ${result.cpu.generator}`,
	);
	return {
		v1_recv_per_user: result.recv,
		v1_backlog_s: Number((result.total_seconds - result.send_seconds).toFixed(2)),
		v1_gateway_ns: result.cpu.gateway,
		v1_postgres_ns: result.cpu.postgres,
		v1_generator_ns: result.cpu.generator,
	};
}
