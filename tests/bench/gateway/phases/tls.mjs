/* tls - the flood of `flood` against a gateway that speaks TLS, and against the same without: what TLS leaves of it. */
import { restartGateway, round, writeOneSheet } from './common.mjs';

export async function tls(bench) {
	const run = async (options) => {
		await restartGateway(bench, options);
		return writeOneSheet(bench, { seconds: bench.seconds, rate: 0 });
	};
	const secured = await run({ tls: true });
	const plain = await run();
	const ratio = round(secured.recv / plain.recv, 2);
	bench.line('received by TLS, edits a second and user', secured.recv);
	bench.line('against those without', ratio);
	bench.line('CPU of the gateway, ns an edit: TLS, without', `${secured.cpu.gateway}, ${plain.cpu.gateway}`);
	return { tls_recv_ratio: ratio, tls_gateway_ns: secured.cpu.gateway };
}
